/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A queue of small messages from one thread to another one, in this process, another one or
 * another host: the producer writes slots into the consumer's memory, the consumer writes back
 * how many it has taken (credit). One RC queue pair carries both. No locks, no receives, no
 * completion that either side waits for.
 *
 *   producer                                     consumer
 *   rdma_ring_push()   WRITE, inline, 64 bytes → slot[n % slots]     rdma_ring_pop()
 *   limit = credit + slots  ← WRITE, inline, 8 bytes                 rdma_ring_rx_flush()
 *
 * When is a slot whole? All that is promised inside one WRITE is that an aligned unit of 8 bytes
 * is not torn; the units may be seen in any order. A card writes a message as one or more PCIe
 * packets, and PCIe orders nothing inside of them; that a line of 64 bytes appears at once is how
 * today's x86 hosts happen to work. So a number at the end of the slot proves nothing about its
 * beginning, a checksum proves it with some probability and costs more, and a flag in a second
 * WRITE costs a second request. Here every unit carries 16 bits of the message's number and 48 bits
 * of data. The consumer accepts a slot when all eight units have the number it waits for, and
 * takes the data out of the very loads that it has checked: no barrier is needed either.
 *
 * A slot that is not there yet holds the number of one round before. Any other number is damage, a
 * message lost or a second producer: -EPROTO.
 *
 * Credit is a running count, so that one that is left out is made up for by the next. It is sent
 * when a quarter of the ring has been taken. A full ring (or send queue) makes
 * rdma_ring_push() return 0: the producer keeps the message and comes again.
 *
 * Each side belongs to the owner of its queue pair, who also polls the CQ: that accounts for the
 * send queue, runs the software device, and reports a peer that is gone, as an error of a request.
 * Hand that on by rdma_ring_tx_fail() or rdma_ring_rx_fail().
 */
#ifndef RDMA_RING_H
#define RDMA_RING_H

#include <bluebell.h>

#define RDMA_RING_SLOT      64u /* bytes of a slot; slots start at multiples of it */
#define RDMA_RING_UNITS     (RDMA_RING_SLOT / 8)
#define RDMA_RING_DATA      (RDMA_RING_UNITS * 6) /* bytes of a message, 48 */
#define RDMA_RING_MIN_SLOTS 4u
#define RDMA_RING_MAX_SLOTS 32768u /* half of the numbers that a unit can tell apart */

/* The producer's side. */
struct rdma_ring_tx {
	struct bb_qp *qp;
	const uint64_t *credit; /* the consumer writes here; no line of ours is beside it */
	uint64_t raddr;
	uint32_t rkey;
	uint32_t slots;
	uint64_t head;  /* messages pushed */
	uint64_t limit; /* so many may be pushed without another look at the credit */
	bool pending;   /* pushed and not flushed */
	int error;
	uint64_t full; /* pushes refused for want of credit or of room in the send queue */
};

/* The consumer's. */
struct rdma_ring_rx {
	struct bb_qp *qp;
	const uint64_t *mem;
	uint64_t raddr; /* the producer's credit */
	uint32_t rkey;
	uint32_t slots;
	uint32_t batch; /* messages to a credit */
	uint64_t lap;   /* slots; 0 after an error: no slot is merely not there yet */
	int error;
	uint64_t tail;    /* messages taken */
	uint64_t told;    /* of them the producer knows */
	uint64_t credits; /* WRITEs of credit */
};

/* Bytes of memory that a consumer registers, with REMOTE_WRITE, aligned to RDMA_RING_SLOT. */
static inline size_t
rdma_ring_bytes(uint32_t slots)
{
	return (size_t)slots * RDMA_RING_SLOT;
}

/*
 * Make the memory an empty ring. Before a producer knows it.
 * @slots is a power of two, RDMA_RING_MIN_SLOTS to RDMA_RING_MAX_SLOTS.
 */
void rdma_ring_format(void *mem, uint32_t slots);

/*
 * @credit: 8 aligned bytes of zeros, registered with REMOTE_WRITE and told to the consumer, best
 * in a line of their own. @slots: what the consumer has told of its memory. @qp: max_inline is
 * RDMA_RING_SLOT at least. 0; -EINVAL that is no ring.
 */
int rdma_ring_tx_init(struct rdma_ring_tx *tx, struct bb_qp *qp, const void *credit,
		      const struct bb_region *slots);

/* @mem was formatted for @slots. @credit: what the producer has told. 0; -EINVAL. */
int rdma_ring_rx_init(struct rdma_ring_rx *rx, struct bb_qp *qp, const void *mem, uint32_t slots,
		      const struct bb_region *credit);

/* From now on push and pop return @error, a negative errno; the first one stays. */
void rdma_ring_tx_fail(struct rdma_ring_tx *tx, int error);
void rdma_ring_rx_fail(struct rdma_ring_rx *rx, int error);

/* Off the fast path: no credit is known; a slot is not whole, or there is an error. */
int rdma_ring_tx_wait(struct rdma_ring_tx *tx);
int rdma_ring_rx_wait(struct rdma_ring_rx *rx);

/* Message @data, of RDMA_RING_DATA bytes, as message number @n. */
static inline void
rdma_ring_encode(uint64_t slot[RDMA_RING_UNITS], uint64_t n, const void *data)
{
	const uint8_t *from = (const uint8_t *)data;
	uint64_t w;
	unsigned int i;

	for (i = 0; i < RDMA_RING_UNITS - 1; i++) {
		memcpy(&w, from + i * 6, 8);
		slot[i] = w << 16 | (uint16_t)n;
	}
	memcpy(&w, from + RDMA_RING_DATA - 8, 8);
	slot[i] = (w & ~UINT64_C(0xffff)) | (uint16_t)n;
}

/* The units of a slot, each as it is now. The number that all of them have; UINT32_MAX: several. */
static inline uint32_t
rdma_ring_load(const uint64_t slot[RDMA_RING_UNITS], uint64_t w[RDMA_RING_UNITS])
{
	uint64_t any = 0, all = UINT64_MAX;
	unsigned int i;

	for (i = 0; i < RDMA_RING_UNITS; i++) {
		w[i] = __atomic_load_n(&slot[i], __ATOMIC_RELAXED);
		any |= w[i];
		all &= w[i];
	}
	return (uint16_t)any == (uint16_t)all ? (uint16_t)any : UINT32_MAX;
}

/* The message out of them. */
static inline void
rdma_ring_decode(const uint64_t w[RDMA_RING_UNITS], void *data)
{
	uint8_t *to = (uint8_t *)data;
	unsigned int i;
	uint64_t v;

	/* From the first to the last: each store is 2 bytes longer than its data. */
	for (i = 0; i < RDMA_RING_UNITS - 1; i++) {
		v = w[i] >> 16;
		memcpy(to + i * 6, &v, 8);
	}
	v = w[i] >> 16;
	memcpy(to + i * 6, &v, 6);
}

/*
 * Queue a message of RDMA_RING_DATA bytes; they may be reused on return. Nothing leaves before
 * rdma_ring_tx_flush().
 * 1; 0: full, poll the CQ and come again; -EPROTO credit for what was never pushed; the error of
 * rdma_ring_tx_fail(); -ENOTCONN and others of bb_post_write_inline().
 */
static inline int
rdma_ring_push(struct rdma_ring_tx *tx, const void *data)
{
	uint64_t slot[RDMA_RING_UNITS];
	int rc;

	if (bb_unlikely(tx->head == tx->limit)) {
		rc = rdma_ring_tx_wait(tx);
		if (rc <= 0)
			return rc;
	}
	rdma_ring_encode(slot, tx->head, data);
	rc = bb_post_write_inline(tx->qp, tx->head, slot, sizeof(slot),
				  tx->raddr + (tx->head & (tx->slots - 1)) * RDMA_RING_SLOT,
				  tx->rkey, 0);
	if (bb_unlikely(rc <= 0)) {
		tx->full += rc == 0;
		return rc;
	}
	tx->head++;
	tx->pending = true;
	return 1;
}

/* One doorbell for all that was pushed. */
static inline void
rdma_ring_tx_flush(struct rdma_ring_tx *tx)
{
	if (tx->pending) {
		bb_qp_ring(tx->qp);
		tx->pending = false;
	}
}

/* Take a message: 1; 0: none is there; -EPROTO; the error of rdma_ring_rx_fail(). */
static inline int
rdma_ring_pop(struct rdma_ring_rx *rx, void *data)
{
	const uint64_t *slot = rx->mem + (rx->tail & (rx->slots - 1)) * RDMA_RING_UNITS;
	uint64_t w[RDMA_RING_UNITS];
	uint32_t n = rdma_ring_load(slot, w);

	if (n != (uint16_t)rx->tail)
		return bb_likely(n == (uint16_t)(rx->tail - rx->lap)) ? 0 : rdma_ring_rx_wait(rx);
	rdma_ring_decode(w, data);
	rx->tail++;
	return 1;
}

/* Give credit back when there is a batch of it. Call it once a turn, also when nothing came. */
static inline void
rdma_ring_rx_flush(struct rdma_ring_rx *rx)
{
	/* A full send queue: the next turn finds the same, and more of it. */
	if (rx->tail - rx->told < rx->batch ||
	    bb_post_write_inline(rx->qp, rx->tail, &rx->tail, sizeof(rx->tail), rx->raddr, rx->rkey,
				 0) != 1)
		return;
	bb_qp_ring(rx->qp);
	rx->told = rx->tail;
	rx->credits++;
}

/* All that was pushed has been taken, as far as credit tells. */
static inline bool
rdma_ring_tx_taken(const struct rdma_ring_tx *tx, uint64_t n)
{
	return __atomic_load_n(tx->credit, __ATOMIC_ACQUIRE) >= n;
}

#endif
