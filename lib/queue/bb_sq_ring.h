/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/** @file Send queue: doorbells and completions. Included by bb_sq.h. */
#ifndef BB_SQ_RING_H
#define BB_SQ_RING_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Returns word @p i of a block. */
static inline uint64_t
bb_sq_bf_word(const uint8_t *block, uint32_t i)
{
	uint64_t w;

	memcpy(&w, block + i * sizeof(w), sizeof(w));
	return w;
}

/** Copies one block to the register. */
static inline void
bb_sq_bf_block(volatile uint64_t *reg, const uint8_t *block)
{
	/*
	 * In ascending order, as libmlx5 does, which warns that the order matters (mlx5_bf_copy()
	 * of rdma-core's providers/mlx5/qp.c). All loads before all stores: with loads in between
	 * many cores send the parts one by one (Linux, __iowrite64_copy() of arm64).
	 */
	const uint64_t w0 = bb_sq_bf_word(block, 0), w1 = bb_sq_bf_word(block, 1);
	const uint64_t w2 = bb_sq_bf_word(block, 2), w3 = bb_sq_bf_word(block, 3);
	const uint64_t w4 = bb_sq_bf_word(block, 4), w5 = bb_sq_bf_word(block, 5);
	const uint64_t w6 = bb_sq_bf_word(block, 6), w7 = bb_sq_bf_word(block, 7);

	bb_uar_store64(reg, w0);
	bb_uar_store64(reg + 1, w1);
	bb_uar_store64(reg + 2, w2);
	bb_uar_store64(reg + 3, w3);
	bb_uar_store64(reg + 4, w4);
	bb_uar_store64(reg + 5, w5);
	bb_uar_store64(reg + 6, w6);
	bb_uar_store64(reg + 7, w7);
}

/**
 * Copies the last WQE, of @p blocks, to the register block by block, wrapping at the end of the
 * ring.
 */
static inline void
bb_sq_blueflame(const struct bb_sq *sq, volatile uint64_t *reg, uint32_t blocks)
{
	const uint8_t *src = sq->last;
	const uint8_t *end = sq->buf + ((size_t)sq->mask + 1) * BB_WQE_BB;

	do {
		bb_sq_bf_block(reg, src);
		reg += BB_WQE_BB / 8;
		src += BB_WQE_BB;
		if (src == end)
			src = sq->buf;
	} while (--blocks > 0);
}

/**
 * Records a doorbell for all WQEs up to @p seq, which is sq->seq and above the low half of
 * rung_seq.
 */
static inline void
bb_sq_rung_to(struct bb_sq *sq, uint32_t seq)
{
	bb_count_low(&sq->rung_seq, seq);
	bb_count_add(&sq->doorbells, 1);
}

/** Slow path of bb_sq_rung(): no WQE was built, or seq wrapped. Off the fast path. */
uint32_t bb_sq_rung_over(struct bb_sq *sq);

/**
 * Records a doorbell.
 * @return number of WQEs that it covers. 0: none was built, or the calling thread is not the owner;
 * the caller must then do nothing.
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

/** Writes the doorbell record: the current end of the ring. */
static inline void
bb_sq_record(struct bb_sq *sq, uint64_t where)
{
	bb_dma_wmb();
	bb_dbrec_store(sq->dbrec, bb_be32((uint32_t)(where >> 48)));
	bb_db_wmb();
}

/**
 * bb_sq_ring() for a queue whose register is never used for copies: 8 bytes, always to the first
 * half, as DPDK does.
 */
static inline void
bb_sq_doorbell(struct bb_sq *sq)
{
	const uint64_t where = bb_sq_where(sq);
	uint64_t head;

	/* Update software state first: after the fences it would wait for the register. */
	if (bb_unlikely(bb_sq_rung(sq) == 0))
		return;
	memcpy(&head, sq->last, sizeof(head));
	bb_sq_record(sq, where);
	bb_uar_store64((volatile uint64_t *)(void *)sq->reg, head);
	bb_wc_flush();
}

/**
 * bb_sq.ring for a queue whose register is used for copies, by this queue if @p copy, or by another
 * one. Called through a pointer, so that programs need not inline it at each doorbell. The device
 * may still be reading the half used before. So the next user of the register takes the other half,
 * whatever it stores, as libmlx5 does (post_send_db() of rdma-core's providers/mlx5/qp.c).
 */
static inline void
bb_sq_doorbell_or_copy(struct bb_sq *sq, bool copy)
{
	const uint64_t where = bb_sq_where(sq);
	const uint32_t built = bb_sq_rung(sq);
	const uint16_t offset = *sq->bf_offset;
	volatile uint64_t *reg;
	uint64_t head;
	uint32_t ds;

	if (bb_unlikely(built == 0))
		return;
	reg = (volatile uint64_t *)(void *)(sq->reg + offset);
	*sq->bf_offset = offset ^ sq->bf_size;
	memcpy(&head, sq->last, sizeof(head));
	ds = head >> 56 & BB_WQE_MAX_DS;
	bb_sq_record(sq, where);
	if (copy && built == 1 && ds > 1 && bb_wqe_blocks(ds) * BB_WQE_BB <= sq->bf_size)
		bb_sq_blueflame(sq, reg, bb_wqe_blocks(ds));
	else
		bb_uar_store64(reg, head);
	bb_wc_flush();
}

/** Passes every WQE built since the last call to the device, with one doorbell. */
static inline void
bb_sq_ring(struct bb_sq *sq)
{
	if (sq->ring != NULL)
		sq->ring(sq);
	else
		bb_sq_doorbell(sq);
}

/**
 * Processes a CQE that names block @p wqe_counter: this WQE and all before it are complete.
 * @return the entry recorded when it was posted.
 */
static inline const struct bb_sq_wqe *
bb_sq_complete(struct bb_sq *sq, uint16_t wqe_counter)
{
	const struct bb_sq_wqe *w = &sq->wqes[wqe_counter & sq->mask];

	/* Atomic, because control calls read it from other threads. */
	__atomic_store_n(&sq->done, w->seq, __ATOMIC_RELAXED);
	bb_count_add(&sq->cqes, 1);
	return w;
}

#ifdef __cplusplus
}
#endif

#endif
