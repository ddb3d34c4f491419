/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * UMR WQEs: change a memory key from a send queue, in order with its other requests.
 *
 * They are larger than the usual WQE of most queues (128 bytes and up), so one may count as several
 * WQEs. The library adds a small fence to the next WQE. The bytes are those of libmlx5; results are
 * those of bb_sq.h.
 */
#ifndef BB_SQ_UMR_H
#define BB_SQ_UMR_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum pieces of a list in one WQE: they are padded to whole blocks. */
#define BB_UMR_MAX_PIECES 52u
/** Maximum blocks of an interleaved layout: the pattern's head takes one entry. */
#define BB_UMR_MAX_BLOCKS (BB_UMR_MAX_PIECES - 1)

/** A block of an interleaved layout; the blocks are accessed in turn (mlx5dv_mr_interleaved). */
struct bb_interleaved {
	uint64_t addr;  /**< address of its first piece */
	uint32_t bytes; /**< bytes of each piece, at least 1 */
	uint32_t skip;  /**< bytes between its pieces; bytes + skip is at most 65535 */
	uint32_t lkey;
};

/** Target of a memory window's bind. */
struct bb_bind {
	uint64_t addr;
	uint64_t len;    /**< at most 2^31; 0 unbinds the window */
	uint32_t lkey;   /**< key of the MR */
	uint32_t access; /**< bits of IBV_ACCESS_* */
	bool zero_based; /**< the window's addresses start at 0, not at addr */
};

/** Flag of these functions: request a CQE, which is reported only if the request is signalled. */
#define BB_SQ_ASK_CQE (1u << 9)

/** Returns the slots that a change of a window takes: @p range for a bind, otherwise an unbind. */
static inline uint32_t
bb_sq_umr_slots(const struct bb_sq *sq, bool range)
{
	return bb_sq_slots(sq, BB_WQE_UMR_DS + (range ? BB_WQE_XLT_ALIGN : 0));
}

/** Frees the key @p rkey: it cannot be used until it is bound or laid out again. */
int bb_sq_post_local_inv(struct bb_sq *sq, uint64_t wr_id, uint32_t rkey, uint32_t flags);

/**
 * Binds a window. @p type2: the window is for peers of this QP only, and the bind fails if it is
 * bound already. @p rkey is the current key; its low byte changes to that of @p new_rkey.
 */
int bb_sq_post_bind(struct bb_sq *sq, uint64_t wr_id, bool type2, uint32_t rkey, uint32_t new_rkey,
		    const struct bb_bind *bind, uint32_t flags);

/** Lays out a key as the concatenation of the pieces. */
int bb_sq_post_mkey_list(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
			 const struct bb_sge *sge, uint32_t n, uint32_t flags);

/** Lays out a key as @p repeat rounds of one piece of every block. */
int bb_sq_post_mkey_interleaved(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
				uint32_t repeat, const struct bb_interleaved *block, uint32_t n,
				uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
