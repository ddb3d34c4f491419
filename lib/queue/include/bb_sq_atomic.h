/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Send queue: atomics. Results and rules are those of bb_sq.h.
 */
#ifndef BB_SQ_ATOMIC_H
#define BB_SQ_ATOMIC_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Builds a WQE for an 8-byte atomic. The queue must have room. */
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

/** Posts an 8-byte CMP_SWAP or FETCH_ADD. The device writes the original remote value to @p sge. */
static inline __attribute__((always_inline)) int
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

		if (!bb_queue_check_owner(sq->owner))
			return bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
		return sq->ops->atomic(sq, BB_SQ_WHAT(opcode, flags), wr_id, &piece, raddr, rkey,
				       swap_add, compare);
	}
	bb_sq_build_atomic(sq, opcode, wr_id, sge, raddr, rkey, swap_add, compare, flags);
	return 0;
}

/**
 * Posts a masked atomic of 4 or 8 bytes (sge->len).
 * CMP_SWAP: @p a is the swap value, @p b the compare value, @p c the swap mask and @p d the
 * compare mask. FETCH_ADD: @p a is the addend, and @p b has a 1 at the top bit of each field.
 */
int bb_sq_post_masked(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, const struct bb_sge *sge,
		      uint64_t raddr, uint32_t rkey, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		      uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
