/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Packets from one process to another: a ring with one producer and one consumer, each of whom can
 * write only its own part. The producer's is the data, the consumer's one word, how far it has
 * read.
 *
 * A record is published by its length, which the producer has set to 0 before it published the one
 * in front: a packet that fits into a cache line costs the consumer one miss. Neither side trusts
 * the other. What the consumer reads may change under its eyes at any time: the header of a record
 * is copied before it is looked at, and who parses a packet copies its headers first.
 */
#ifndef SOFT_SHM_RING_H
#define SOFT_SHM_RING_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_RING_SIZE  (1u << 20) /* the packets of one window with a full MTU */
#define SOFT_RING_ALIGN 16u
/* BTH and all that may follow, 4096 bytes, padding, and room to spare. */
#define SOFT_RING_MAX  4224u
#define SOFT_RING_WRAP UINT32_MAX /* length of a record that says: go on at the start */

/* What stands in front of a packet. */
struct soft_ring_rec {
	uint32_t len; /* of the packet; 0: not there yet. Written last, __atomic */
	uint32_t flow_label;
	uint16_t sport;
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sgid; /* which of the sender's addresses */
	uint8_t zero[3];
};

/* The producer's view: private to it. */
struct soft_ring_tx {
	uint8_t *data;
	const uint64_t *head; /* the consumer's word */
	uint64_t tail;        /* bytes written, free running */
	uint64_t seen;        /* head as last read */
	bool broken;          /* the consumer's word made no sense */
};

/* The consumer's view: private to it. */
struct soft_ring_rx {
	const uint8_t *data;
	uint64_t *head_out; /* its word */
	uint64_t head;
	uint32_t next; /* bytes of the record that soft_ring_peek() gave */
	bool broken;   /* the producer's data made no sense */
};

/* The ring's memory and the consumer's word are zero. */
void soft_ring_tx_init(struct soft_ring_tx *r, uint8_t *data, const uint64_t *head);
void soft_ring_rx_init(struct soft_ring_rx *r, const uint8_t *data, uint64_t *head_out);

/*
 * Room for a packet of @len bytes, up to SOFT_RING_MAX, behind the header of its record. NULL: none
 * now, or the ring is broken.
 */
struct soft_ring_rec *soft_ring_reserve(struct soft_ring_tx *r, uint32_t len);
/* It is written: the header but its length, and the packet. */
void soft_ring_publish(struct soft_ring_tx *r, struct soft_ring_rec *rec, uint32_t len);

/*
 * The next packet: its header in *rec, and where it is. NULL: none, or the ring is broken. The
 * bytes may be anything, and others the next time they are read.
 */
const uint8_t *soft_ring_peek(struct soft_ring_rx *r, struct soft_ring_rec *rec);
/* That packet is done with. The producer learns it by soft_ring_release(). */
static inline void
soft_ring_pop(struct soft_ring_rx *r)
{
	__atomic_store_n(&r->head, r->head + r->next, __ATOMIC_RELAXED);
}

/* Hand back what was popped. */
static inline void
soft_ring_release(struct soft_ring_rx *r)
{
	/* Release: the packets are read before the producer writes there again. */
	__atomic_store_n(r->head_out, r->head, __ATOMIC_RELEASE);
}

static inline struct soft_ring_rec *
soft_ring_at(uint8_t *data, uint64_t pos)
{
	return (struct soft_ring_rec *)(void *)(data + (pos & (SOFT_RING_SIZE - 1)));
}

/* Is there something? What a poll looks at, also one that has no lock on the consumer's side. */
static inline bool
soft_ring_waiting(const struct soft_ring_rx *r)
{
	uint64_t pos = __atomic_load_n(&r->head, __ATOMIC_RELAXED) & (SOFT_RING_SIZE - 1);
	const struct soft_ring_rec *rec =
		(const struct soft_ring_rec *)(const void *)(__atomic_load_n(&r->data,
									     __ATOMIC_RELAXED) +
							     pos);

	return __atomic_load_n(&rec->len, __ATOMIC_RELAXED) != 0;
}

#endif
