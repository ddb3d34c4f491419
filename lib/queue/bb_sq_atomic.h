/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Send queue, continued: atomics. Returns and rules are those of bb_sq.h.
 */
#ifndef BB_SQ_ATOMIC_H
#define BB_SQ_ATOMIC_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** bb_sq_post_atomic() without room at first sight, as bb_sq_post_slow(). */
int bb_sq_post_atomic_slow(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id,
			   const struct bb_sge *sge, uint64_t raddr, uint32_t rkey,
			   uint64_t swap_add, uint64_t compare, uint32_t flags);

/** Build an atomic of 8 bytes; there is room. */
static inline void
bb_sq_build_atomic(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, const struct bb_sge *sge,
		   uint64_t raddr, uint32_t rkey, uint64_t swap_add, uint64_t compare,
		   uint32_t flags)
{
	const uint32_t ds = 4;
	struct bb_wqe_ctrl *ctrl = bb_sq_commit(sq, opcode, ds, wr_id, flags, 0);
	struct bb_wqe_atomic *a = (struct bb_wqe_atomic *)(void *)(ctrl + 2);

	bb_sq_fill_raddr(ctrl + 1, raddr, rkey);
	a->swap_add = bb_be64(swap_add);
	a->compare = bb_be64(compare);
	bb_sq_fill_data(ctrl + 3, sge);
}

/** CMP_SWAP and FETCH_ADD of 8 bytes; the old value lands in @p sge. */
static inline int
bb_sq_post_atomic(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, const struct bb_sge *sge,
		  uint64_t raddr, uint32_t rkey, uint64_t swap_add, uint64_t compare,
		  uint32_t flags)
{
	if (bb_unlikely(sge->len != 8))
		return bb_sq_refuse_arg(sq, BB_REFUSED_ATOMIC_LEN);
	if (bb_unlikely((raddr & 7) != 0))
		return bb_sq_refuse_arg(sq, BB_REFUSED_ATOMIC_ALIGN);
	if (bb_unlikely(!bb_sq_has_room_in(sq, sq->rd_limit))) {
		const struct bb_sge piece = *sge;

		return bb_sq_post_atomic_slow(sq, opcode, wr_id, &piece, raddr, rkey, swap_add,
					      compare, flags);
	}
	bb_sq_build_atomic(sq, opcode, wr_id, sge, raddr, rkey, swap_add, compare, flags);
	return 1;
}

/**
 * The masked atomics of 4 and 8 bytes (sge->len). @p a to @p d: of CMP_SWAP swap,
 * compare, swap mask and compare mask; of FETCH_ADD what to add and the field boundaries.
 */
int bb_sq_post_masked(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, const struct bb_sge *sge,
		      uint64_t raddr, uint32_t rkey, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		      uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
