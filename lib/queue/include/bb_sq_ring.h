/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Send queue: doorbells and completions.
 * Included by bb_sq.h. The copies of WQEs to the register are in bb_bf_copy.h, which is not
 * installed.
 */
#ifndef BB_SQ_RING_H
#define BB_SQ_RING_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Records a doorbell for all WQEs up to @p seq, which must be sq->seq. @p seq must also be above
 * the low half of rung_seq, which means that seq has not wrapped since the last doorbell.
 */
static inline void
bb_sq_rung_to(struct bb_sq *sq, uint32_t seq)
{
	bb_count_low(&sq->rung_seq, seq);
	bb_count_add(&sq->doorbells, 1);
}

/**
 * Slow path of bb_sq_rung(), for three cases: no WQE was built, seq wrapped, or the calling thread
 * is not the owner. Not on the fast path.
 */
__attribute__((cold)) uint32_t bb_sq_rung_over(struct bb_sq *sq);

/**
 * Records a doorbell.
 * @return number of WQEs that the doorbell covers. Returns 0 if no WQE was built or if the calling
 * thread is not the owner; the caller must then do nothing.
 */
static inline uint32_t
bb_sq_rung(struct bb_sq *sq)
{
	const uint32_t seq = (uint32_t)bb_sq_where(sq), rung = (uint32_t)sq->rung_seq;

	if (bb_unlikely(seq <= rung || !bb_queue_check_owner(sq->owner)))
		return bb_sq_rung_over(sq);
	bb_sq_rung_to(sq, seq);
	return seq - rung;
}

/**
 * Writes the index after the last built WQE to the doorbell record. @p where is the result of
 * bb_sq_where().
 */
static inline void
bb_sq_record(struct bb_sq *sq, uint64_t where)
{
	bb_dma_wmb();
	bb_dbrec_store(sq->dbrec, bb_be32((uint32_t)(where >> 48)));
	bb_db_wmb();
}

/**
 * Rings the doorbell of a queue whose register is never used for BlueFlame copies: one 8-byte
 * store, always to the first half, as DPDK does.
 */
static inline void
bb_sq_doorbell(struct bb_sq *sq)
{
	const uint64_t where = bb_sq_where(sq);
	uint64_t head;

	/*
	 * Update software state before the fences. After them the update would wait until the store
	 * to the register is complete.
	 */
	if (bb_unlikely(bb_sq_rung(sq) == 0))
		return;
	memcpy(&head, sq->last, sizeof(head));
	bb_sq_record(sq, where);
	bb_uar_store64((volatile uint64_t *)(void *)sq->reg, head);
	bb_wc_flush();
}

/**
 * Calls the queue's own doorbell function. Not inlined, so that the pointer is loaded only here and
 * the caller only compares it with NULL.
 */
static __attribute__((noinline, unused)) void
bb_sq_ring_own(struct bb_sq *sq)
{
	sq->ring(sq);
}

/** Rings the doorbell once for all WQEs that were built since the last doorbell. */
static inline void
bb_sq_ring(struct bb_sq *sq)
{
	if (bb_unlikely(sq->ring != NULL))
		bb_sq_ring_own(sq);
	else
		bb_sq_doorbell(sq);
}

/** Records that the request of entry @p w and all requests before it are complete. */
static inline void
bb_sq_completed(struct bb_sq *sq, const struct bb_sq_wqe *w)
{
	/* Store atomically, because control-path calls read sq->done from other threads. */
	__atomic_store_n(&sq->done, w->seq, __ATOMIC_RELAXED);
	bb_count_add(&sq->cqes, 1);
}

/**
 * Processes a CQE that names block @p wqe_counter: the WQE at that block and all before it are
 * complete. The high bits of @p wqe_counter are ignored.
 * @return the entry that was recorded when the WQE was posted.
 */
static inline const struct bb_sq_wqe *
bb_sq_complete(struct bb_sq *sq, uint32_t wqe_counter)
{
	const struct bb_sq_wqe *w = &sq->wqes[wqe_counter & sq->mask];

	bb_sq_completed(sq, w);
	return w;
}

#ifdef __cplusplus
}
#endif

#endif
