/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Packets from one process to another: a ring with one producer and one consumer. The producer can
 * write only the data. The consumer can write only its head, the position up to which it has read.
 *
 * A nonzero length publishes a record. When a record becomes visible, the length of the next record
 * is already 0. Records begin at cache lines. So a short packet moves only one line from CPU to
 * CPU. The producer clears the lengths of SOFT_RING_AHEAD lines after each record. For a short
 * record it clears the last of these lines, after it has published the record. If it cleared the
 * next line first, it would wait for that line, and the polling consumer would meanwhile fetch the
 * line of the unfinished record.
 *
 * Neither process trusts the other. The producer may change bytes while the consumer reads them. So
 * the consumer copies a record's header before it checks the fields, and a parser first copies a
 * packet's headers.
 */
#ifndef SOFT_SHM_RING_H
#define SOFT_SHM_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#define SOFT_RING_SIZE  (1u << 20) /* Bytes; room for about 250 packets of 4 KiB. */
#define SOFT_RING_ALIGN 64u        /* Bytes of a cache line; records begin at multiples of it. */
#define SOFT_RING_AHEAD 4u         /* Lines after the tail whose first word is 0. */
/*
 * Bytes of the largest packet: BTH and all extension headers, 4096 bytes of payload, padding, and
 * spare room.
 */
#define SOFT_RING_MAX 4224u
/* Length value that makes the consumer continue at the ring's start. */
#define SOFT_RING_WRAP UINT32_MAX

/* Header of a record in the ring; the packet follows it. */
struct soft_ring_rec {
	/* Length of all packets in bytes; 0 until published. Written last. __atomic */
	uint32_t len;
	uint32_t flow_label;
	uint16_t sport;
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sgid; /* Index of the packet's source address in the sender's HELLO. */
	/*
	 * Length of a second packet at the end of the record, in bytes; 0 if there is none. It has
	 * the header's other fields, too. The requester appends a pending ACK to a SEND.
	 */
	uint8_t ack_len;
	uint8_t zero[2];
};

/* State of the producer, private to the producer. */
struct soft_ring_tx {
	uint8_t *data;
	const uint64_t *head; /* Address of the consumer's head (soft_ring_rx.head_out). */
	uint64_t tail;        /* Bytes written since the start; never wraps at the ring's size. */
	uint64_t last_head;   /* Last value read from *head. */
	bool broken;          /* The consumer wrote an impossible head, so the ring is unusable. */
};

/* State of the consumer, private to the consumer. */
struct soft_ring_rx {
	const uint8_t *data;
	/* Address to which this consumer writes its head, for the producer to read. */
	uint64_t *head_out;
	uint64_t head;
	uint32_t next; /* Bytes of the record that soft_ring_peek() last returned. */
	bool broken;   /* The producer wrote a malformed record, so the ring is unusable. */
};

/*
 * Initialize the state of the producer, and that of the consumer. The ring's memory and the
 * consumer's head must be zero.
 */
void soft_ring_tx_init(struct soft_ring_tx *r, uint8_t *data, const uint64_t *head);
void soft_ring_rx_init(struct soft_ring_rx *r, const uint8_t *data, uint64_t *head_out);

/* Returns the bytes that a packet of @len bytes takes in the ring, with the record's header. */
static inline uint32_t
soft_ring_size(uint32_t len)
{
	return (len + (uint32_t)sizeof(struct soft_ring_rec) + SOFT_RING_ALIGN - 1) &
	       ~(SOFT_RING_ALIGN - 1);
}

static inline struct soft_ring_rec *
soft_ring_at(uint8_t *data, uint64_t pos)
{
	return (struct soft_ring_rec *)(void *)(data + (pos & (SOFT_RING_SIZE - 1)));
}

/* Returns the record at position @pos of a consumer's ring. */
static inline const struct soft_ring_rec *
soft_ring_seen(const uint8_t *data, uint64_t pos)
{
	return (const struct soft_ring_rec *)(const void *)(data + (pos & (SOFT_RING_SIZE - 1)));
}

/* Returns the bytes from position @pos to the end of the ring's memory. */
static inline uint32_t
soft_ring_to_end(uint64_t pos)
{
	return SOFT_RING_SIZE - (uint32_t)(pos & (SOFT_RING_SIZE - 1));
}

/* Handle all cases of soft_ring_reserve() and soft_ring_peek(). */
struct soft_ring_rec *soft_ring_reserve_slow(struct soft_ring_tx *r, uint32_t len);
const uint8_t *soft_ring_peek_slow(struct soft_ring_rx *r, struct soft_ring_rec *rec);

/*
 * Reserves a record for a packet of @len bytes, at most SOFT_RING_MAX. The packet's bytes follow
 * the record. Returns NULL if the ring has no room or is broken.
 */
static inline struct soft_ring_rec *
soft_ring_reserve(struct soft_ring_tx *r, uint32_t len)
{
	const uint32_t size = soft_ring_size(len);

	if (unlikely(r->broken || len > SOFT_RING_MAX || size > soft_ring_to_end(r->tail) ||
		     size + SOFT_RING_AHEAD * SOFT_RING_ALIGN >
			     SOFT_RING_SIZE - (r->tail - r->last_head)))
		return soft_ring_reserve_slow(r, len);
	return soft_ring_at(r->data, r->tail);
}

/* Sets the first word of the line at position @pos to 0. */
static inline void
soft_ring_clear(const struct soft_ring_tx *r, uint64_t pos)
{
	__atomic_store_n(&soft_ring_at(r->data, pos)->len, 0, __ATOMIC_RELAXED);
}

/* Publishes a record of any length, whose size in the ring is @size. */
void soft_ring_publish_slow(struct soft_ring_tx *r, struct soft_ring_rec *rec, uint32_t size,
			    uint32_t len);

/* Publishes a record; the caller has written the packet and the header except its length. */
static inline void
soft_ring_publish(struct soft_ring_tx *r, struct soft_ring_rec *rec, uint32_t len)
{
	if (unlikely(len > SOFT_RING_ALIGN - sizeof(*rec))) {
		soft_ring_publish_slow(r, rec, soft_ring_size(len), len);
		return;
	}
	__atomic_store_n(&rec->len, len, __ATOMIC_RELEASE);
	r->tail += SOFT_RING_ALIGN;
	soft_ring_clear(r, r->tail + (SOFT_RING_AHEAD - 1) * SOFT_RING_ALIGN);
}

/*
 * Returns the next packet's bytes and copies its header to *rec. Returns NULL if no packet is
 * waiting or the ring is broken. The producer may write any bytes, and may change them between two
 * reads.
 */
static inline const uint8_t *
soft_ring_peek(struct soft_ring_rx *r, struct soft_ring_rec *rec)
{
	const struct soft_ring_rec *at = soft_ring_seen(r->data, r->head);
	/* Acquire: the producer wrote the packet before its length. */
	const uint32_t len = __atomic_load_n(&at->len, __ATOMIC_ACQUIRE);
	const uint32_t size = soft_ring_size(len);

	if (len == 0)
		return NULL;
	if (unlikely(len > SOFT_RING_MAX || size > soft_ring_to_end(r->head) || r->broken))
		return soft_ring_peek_slow(r, rec);
	/* The rest of this record, or the next record. */
	rte_prefetch0((const uint8_t *)at + SOFT_RING_ALIGN);
	memcpy(rec, at, sizeof(*rec));
	/* Stores the checked length, because the producer may have changed it before the copy. */
	rec->len = len;
	r->next = size;
	return (const uint8_t *)(at + 1);
}

/*
 * Consumes the packet that soft_ring_peek() returned. The producer sees the free space only after
 * soft_ring_release().
 */
static inline void
soft_ring_pop(struct soft_ring_rx *r)
{
	__atomic_store_n(&r->head, r->head + r->next, __ATOMIC_RELAXED);
}

/* Returns the space of consumed packets to the producer. */
static inline void
soft_ring_release(struct soft_ring_rx *r)
{
	/*
	 * Release: the consumer's reads of the packets come before the producer's next writes
	 * there.
	 */
	__atomic_store_n(r->head_out, r->head, __ATOMIC_RELEASE);
}

/* Returns true if a packet is waiting. The caller need not hold the consumer's lock. */
static inline bool
soft_ring_waiting(const struct soft_ring_rx *r)
{
	const uint8_t *data = __atomic_load_n(&r->data, __ATOMIC_ACQUIRE);
	const uint64_t pos = __atomic_load_n(&r->head, __ATOMIC_RELAXED);

	return __atomic_load_n(&soft_ring_seen(data, pos)->len, __ATOMIC_RELAXED) != 0;
}

#endif
