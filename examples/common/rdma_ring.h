/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A queue of small messages from one thread to another, in the same process, another process or
 * another host. The producer writes slots into the consumer's memory. The consumer writes the
 * number of messages that it has consumed (credit) into the producer's memory. One RC queue pair
 * carries both types of WRITEs. There are no locks and no receives, and neither end waits for a
 * completion.
 *
 *   producer                                     consumer
 *   rdma_ring_push()   copies the message
 *   rdma_ring_tx_flush()  WRITE, inline, k * 64 bytes → slot[n % slots]  rdma_ring_pop()
 *   limit = credit + slots  ← WRITE, inline, 8 bytes                 rdma_ring_rx_flush()
 *
 * How does the consumer know that a slot is complete? Inside one WRITE an aligned unit of 8 bytes
 * is never torn. Nothing else is guaranteed, and the units may appear in any order. A card writes a
 * message as one or more PCIe packets, and PCIe does not order the bytes inside a packet. On
 * today's x86 hosts a 64-byte line appears at once, but that is not guaranteed. So a number at the
 * end of the slot proves nothing about the start of the slot. A checksum proves completeness only
 * with some probability, and costs more. A flag in a second WRITE costs a second request. Here
 * every unit has 16 bits of the message's number and 48 bits of data. The consumer accepts a slot
 * if all eight units have the expected number. The consumer takes the data from the same loads that
 * it checked, so no barrier is needed.
 *
 * The units of an empty slot have the number of the message from the previous pass over the ring.
 * Any other number means damage, a lost message or a second producer. rdma_ring_pop() then returns
 * -EPROTO.
 *
 * A message that is pushed alone travels in a WRITE of its own. Messages that are pushed before the
 * next rdma_ring_tx_flush() travel together, as many in one WRITE as the queue pair takes inline.
 * Nothing waits for more messages.
 *
 * Credit is a running count, so each credit WRITE also replaces a lost one. The consumer sends
 * credit after it has consumed a quarter of the ring. If the ring or the send queue is full,
 * rdma_ring_push() returns -EAGAIN. The caller then keeps the message and tries again. No WRITE is
 * signalled: Bluebell requests one CQE for several WRITEs, to free room in the send queue.
 *
 * Each end of a ring belongs to the owner of the end's queue pair. The owner also polls the CQ. A
 * poll updates the send queue's accounting, runs the software device, and reports a dead peer as a
 * failed request. Pass the error of such a request on with rdma_ring_tx_fail() or
 * rdma_ring_rx_fail().
 *
 * To use the ring in another program, copy rdma_ring.h and rdma_ring.c. Both compile as C and as
 * C++, and need Bluebell alone (pkg-config bluebell). test/consumer/ring.c is such a program.
 */
#ifndef RDMA_RING_H
#define RDMA_RING_H

#include <string.h>

#include <bluebell.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RDMA_RING_SLOT      64u /* bytes and alignment of a slot */
#define RDMA_RING_UNITS     (RDMA_RING_SLOT / 8)
#define RDMA_RING_DATA      (RDMA_RING_UNITS * 6) /* bytes of data in a message: 48 */
#define RDMA_RING_MIN_SLOTS 4u
#define RDMA_RING_MAX_WRITE 15u /* messages in a WRITE: a WQE has at most 1008 bytes */
/*
 * Bytes of inline data of a queue pair: up to 7 messages in one WRITE. Such a WQE takes 512 bytes
 * of the send queue.
 */
#define RDMA_RING_INLINE    (7 * RDMA_RING_SLOT)
#define RDMA_RING_MAX_SLOTS 32768u /* half of the 65536 message numbers of a unit */

/* Makes GCC unroll a loop over the units of a slot, which -O2 alone does not do. */
#define RDMA_RING_UNROLL _Pragma("GCC unroll 8")

/* State of the producer. */
struct rdma_ring_tx {
	struct bb_qp *qp;
	const uint64_t
		*credit; /* the consumer writes it; must share no cache line with other data */
	uint64_t raddr;
	uint32_t rkey;
	uint32_t slots;
	uint32_t per_write; /* maximum messages of a WRITE */
	int error;
	uint64_t head;   /* number of messages pushed */
	uint64_t stop;   /* value of head at which push must call rdma_ring_tx_wait() */
	uint64_t posted; /* number of messages in WRITEs that were posted */
	uint64_t rung;   /* number of messages whose doorbell was rung */
	uint64_t limit;  /* value of head at which the credit must be read again */
	uint64_t full; /* number of times that there was no room in the ring or in the send queue */
	/* messages of the next WRITE; the first one is message number posted */
	uint64_t next[RDMA_RING_MAX_WRITE][RDMA_RING_UNITS];
};

/* State of the consumer. */
struct rdma_ring_rx {
	struct bb_qp *qp;
	const uint64_t *mem;
	uint64_t raddr; /* address of the producer's credit */
	uint32_t rkey;
	uint32_t slots; /* 1 after an error, with a slot in mem that is never valid */
	uint32_t batch; /* messages consumed between two credit WRITEs */
	/* number of slots; a second copy, so that rdma_ring_pop() needs one register less */
	uint64_t wrap_slots;
	int error;
	uint64_t tail;        /* number of messages consumed */
	uint64_t last_credit; /* value of the last credit sent */
	uint64_t credits;     /* number of credit WRITEs */
};

/*
 * Returns the size of a ring's memory in bytes. The consumer registers this memory with
 * REMOTE_WRITE, aligned to RDMA_RING_SLOT.
 */
static inline size_t
rdma_ring_bytes(uint32_t slots)
{
	return (size_t)slots * RDMA_RING_SLOT;
}

/*
 * Initializes the memory @mem as an empty ring. Call it before the producer gets the address of the
 * memory. @slots is a power of two from RDMA_RING_MIN_SLOTS to RDMA_RING_MAX_SLOTS.
 */
void rdma_ring_format(void *mem, uint32_t slots);

/*
 * Initializes the producer.
 *
 * @max_inline: that of @qp, at least RDMA_RING_SLOT, best RDMA_RING_INLINE. @credit: 8 aligned
 * bytes with value 0, best on a cache line of their own. The producer registers them with
 * REMOTE_WRITE and sends their address and key to the consumer. @slots: the consumer's ring.
 * Returns 0, or -EINVAL if
 * @max_inline is too small or the size or alignment of @slots or @credit is invalid.
 */
int rdma_ring_tx_init(struct rdma_ring_tx *tx, struct bb_qp *qp, uint32_t max_inline,
		      const void *credit, const struct bb_region *slots);

/*
 * Initializes the consumer. @mem: memory of the ring, which rdma_ring_format() has initialized for
 * @slots slots. @credit: address and key of the producer's credit. Returns 0, or -EINVAL for
 * invalid parameters.
 */
int rdma_ring_rx_init(struct rdma_ring_rx *rx, struct bb_qp *qp, const void *mem, uint32_t slots,
		      const struct bb_region *credit);

/*
 * Make all later calls of rdma_ring_push() or rdma_ring_pop() return @error, a negative errno. A
 * second call of the same function changes nothing. Messages that were pushed but not posted, and
 * messages that were not popped, are discarded.
 */
void rdma_ring_tx_fail(struct rdma_ring_tx *tx, int error);
void rdma_ring_rx_fail(struct rdma_ring_rx *rx, int error);

/*
 * Slow paths of rdma_ring_push() and rdma_ring_pop(). rdma_ring_tx_wait() posts a complete WRITE
 * and reads the credit again; rdma_ring_rx_wait() examines a slot without the expected number. Both
 * return the ring's error, if there is one.
 */
int rdma_ring_tx_wait(struct rdma_ring_tx *tx);
int rdma_ring_rx_wait(struct rdma_ring_rx *rx);

/* Encodes the RDMA_RING_DATA bytes of @data as message number @n. */
static inline void
rdma_ring_encode(uint64_t slot[RDMA_RING_UNITS], uint64_t n, const void *data)
{
	const uint8_t *from = (const uint8_t *)data;
	uint64_t w;
	unsigned int i;

	RDMA_RING_UNROLL
	for (i = 0; i < RDMA_RING_UNITS - 1; i++) {
		memcpy(&w, from + i * 6, 8);
		slot[i] = w << 16 | (uint16_t)n;
	}
	memcpy(&w, from + RDMA_RING_DATA - 8, 8);
	slot[i] = (w & ~UINT64_C(0xffff)) | (uint16_t)n;
}

/*
 * Loads the units of a slot. Returns the message number of the slot if all units have the same
 * number, otherwise UINT32_MAX.
 */
static inline uint32_t
rdma_ring_load(const uint64_t slot[RDMA_RING_UNITS], uint64_t w[RDMA_RING_UNITS])
{
	uint64_t any = 0, all = UINT64_MAX;
	unsigned int i;

	RDMA_RING_UNROLL
	for (i = 0; i < RDMA_RING_UNITS; i++) {
		w[i] = __atomic_load_n(&slot[i], __ATOMIC_RELAXED);
		any |= w[i];
		all &= w[i];
	}
	return (uint16_t)any == (uint16_t)all ? (uint16_t)any : UINT32_MAX;
}

/* Writes the message that the units @w contain to @data. */
static inline void
rdma_ring_decode(const uint64_t w[RDMA_RING_UNITS], void *data)
{
	uint8_t *to = (uint8_t *)data;
	unsigned int i;
	uint64_t v;

	/* Each store writes 2 bytes too many. The next store overwrites them. */
	RDMA_RING_UNROLL
	for (i = 0; i < RDMA_RING_UNITS - 1; i++) {
		v = w[i] >> 16;
		memcpy(to + i * 6, &v, 8);
	}
	v = w[i] >> 16;
	memcpy(to + i * 6, &v, 6);
}

/* Sets the value of head at which a WRITE is complete or the credit must be read. */
static inline void
rdma_ring_tx_plan(struct rdma_ring_tx *tx)
{
	/* A WRITE must not go past the end of the ring. */
	const uint32_t left = tx->slots - (uint32_t)(tx->posted & (tx->slots - 1));
	const uint64_t end = tx->posted + (left < tx->per_write ? left : tx->per_write);

	tx->stop = end < tx->limit ? end : tx->limit;
}

/*
 * Posts one WRITE with the messages that no WRITE has yet; there must be at least one. Returns 0,
 * or the error of bb_post_write_inline(), after which the messages wait for the next call.
 */
static inline int
rdma_ring_tx_post(struct rdma_ring_tx *tx)
{
	const uint64_t to = tx->raddr + (tx->posted & (tx->slots - 1)) * RDMA_RING_SLOT;
	const uint32_t n = (uint32_t)(tx->head - tx->posted);
	int rc;

	/* A constant length lets the compiler make the code of the common case shorter. */
	if (n == 1)
		rc = bb_post_write_inline(tx->qp, tx->posted, tx->next, RDMA_RING_SLOT, to,
					  tx->rkey, 0);
	else
		rc = bb_post_write_inline(tx->qp, tx->posted, tx->next, n * RDMA_RING_SLOT, to,
					  tx->rkey, 0);
	if (bb_unlikely(rc != 0)) {
		tx->full += rc == -EAGAIN;
		return rc;
	}
	tx->posted = tx->head;
	rdma_ring_tx_plan(tx);
	return 0;
}

/*
 * Queues a message of RDMA_RING_DATA bytes. @data may be reused on return. rdma_ring_tx_flush()
 * sends the message. Returns 0. Returns -EAGAIN if the ring or the send queue is full: flush, poll
 * the CQ and try again. Returns -EPROTO if the credit exceeds the pushed messages, the error of
 * rdma_ring_tx_fail(), or -ENOTCONN and others of bb_post_write_inline().
 */
static inline int
rdma_ring_push(struct rdma_ring_tx *tx, const void *data)
{
	int rc;

	if (bb_unlikely(tx->head == tx->stop)) {
		rc = rdma_ring_tx_wait(tx);
		if (rc != 0)
			return rc;
	}
	rdma_ring_encode(tx->next[tx->head - tx->posted], tx->head, data);
	tx->head++;
	return 0;
}

/* Returns true if the doorbell of a pushed message was not rung yet; false after an error. */
static inline bool
rdma_ring_tx_pending(const struct rdma_ring_tx *tx)
{
	return tx->head != tx->rung;
}

/*
 * Posts the remaining messages and rings one doorbell for all messages pushed since the last call.
 * If the send queue is full, the remaining messages wait for the next call. Call it again after a
 * poll while rdma_ring_tx_pending() is true. If a post fails, the next push returns the error.
 */
static inline void
rdma_ring_tx_flush(struct rdma_ring_tx *tx)
{
	if (!rdma_ring_tx_pending(tx) || bb_unlikely(tx->error != 0))
		return;
	if (bb_likely(tx->head != tx->posted)) {
		int rc = rdma_ring_tx_post(tx);

		if (bb_unlikely(rc != 0 && rc != -EAGAIN))
			rdma_ring_tx_fail(tx, rc);
	}
	bb_qp_ring(tx->qp);
	tx->rung = tx->posted;
}

/*
 * Consumes the next message and writes it to @data. Returns 1, or 0 if no message is complete.
 * Returns -EPROTO for a damaged ring, or the error of rdma_ring_rx_fail().
 */
static inline int
rdma_ring_pop(struct rdma_ring_rx *rx, void *data)
{
	const uint64_t *slot = rx->mem + (rx->tail & (rx->slots - 1)) * RDMA_RING_UNITS;
	uint64_t w[RDMA_RING_UNITS];
	uint32_t n = rdma_ring_load(slot, w);

	if (n != (uint16_t)rx->tail)
		return bb_likely(n == (uint16_t)(rx->tail - rx->wrap_slots))
			       ? 0
			       : rdma_ring_rx_wait(rx);
	rdma_ring_decode(w, data);
	rx->tail++;
	return 1;
}

/*
 * Sends credit if a batch of messages was consumed. Call it regularly, also while no messages
 * arrive.
 */
static inline void
rdma_ring_rx_flush(struct rdma_ring_rx *rx)
{
	/* If the send queue is full, the next call sends the credit, which may then be larger. */
	if (rx->tail - rx->last_credit < rx->batch ||
	    bb_post_write_inline(rx->qp, rx->tail, &rx->tail, sizeof(rx->tail), rx->raddr, rx->rkey,
				 0) != 0)
		return;
	bb_qp_ring(rx->qp);
	rx->last_credit = rx->tail;
	rx->credits++;
}

#ifdef __cplusplus
}
#endif

#endif
