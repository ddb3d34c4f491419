/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * UMR WQEs: change a memory key from a send queue, in order with its other requests.
 *
 * They are larger than what most queues are made for (128 bytes and up), so one may count
 * as several of the queue's WQEs. The WQE behind one gets a small fence by itself. Built as
 * libmlx5 builds them; results are those of bb_sq.h.
 */
#ifndef BB_SQ_UMR_H
#define BB_SQ_UMR_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most pieces of a list that a WQE has room for: they are padded to whole blocks. */
#define BB_UMR_MAX_PIECES 52u
/** Most blocks of an interleaved layout: one place goes to the pattern's head. */
#define BB_UMR_MAX_BLOCKS (BB_UMR_MAX_PIECES - 1)

/** One of the blocks that an interleaved layout takes in turn (mlx5dv_mr_interleaved). */
struct bb_interleaved {
	uint64_t addr;  /**< of its first piece */
	uint32_t bytes; /**< of each piece, at least 1 */
	uint32_t skip;  /**< between its pieces; with bytes at most 65535 */
	uint32_t lkey;
};

/** What a memory window is bound to. */
struct bb_bind {
	uint64_t addr;
	uint64_t len;    /**< at most 2^31; 0 takes the window back */
	uint32_t lkey;   /**< of the MR */
	uint32_t access; /**< bits of IBV_ACCESS_* */
	bool zero_based; /**< the window's addresses start at 0, not at addr */
};

/** A flag of these functions: ask for a CQE, which is reported only if the request is signalled. */
#define BB_SQ_ASK_CQE (1u << 9)

/** Slots that a change of a window takes: a bind to a range, or what takes it back. */
static inline uint32_t
bb_sq_umr_slots(const struct bb_sq *sq, bool range)
{
	return bb_sq_slots(sq, BB_WQE_UMR_DS + (range ? BB_WQE_XLT_ALIGN : 0));
}

/** Free the key @p rkey: nobody may use it until it is bound or laid out again. */
int bb_sq_post_local_inv(struct bb_sq *sq, uint64_t wr_id, uint32_t rkey, uint32_t flags);

/**
 * Bind a window. @p type2: for peers of this QP only, and refused if it is bound already.
 * @p rkey names the window now, the low byte of @p new_rkey is the key's from then on.
 */
int bb_sq_post_bind(struct bb_sq *sq, uint64_t wr_id, bool type2, uint32_t rkey, uint32_t new_rkey,
		    const struct bb_bind *bind, uint32_t flags);

/** Lay out a key as the pieces one behind the other. */
int bb_sq_post_mkey_list(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
			 const struct bb_sge *sge, uint32_t n, uint32_t flags);

/** Lay out a key as @p repeat rounds of one piece of every block. */
int bb_sq_post_mkey_interleaved(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
				uint32_t repeat, const struct bb_interleaved *block, uint32_t n,
				uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
