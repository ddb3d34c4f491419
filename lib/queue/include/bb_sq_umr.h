/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Posts of UMR WQEs. A UMR WQE changes a memory key, in order with the other requests of its send
 * queue.
 *
 * A UMR WQE has 128 bytes or more, which is above the usual WQE of most queues. So it may count as
 * several WQEs. The library adds a small fence to the next WQE. The layout of the WQEs is that of
 * libmlx5. Results are those of bb_sq.h.
 */
#ifndef BB_SQ_UMR_H
#define BB_SQ_UMR_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum pieces in one UMR WQE, which pads its list of pieces to whole blocks of 64 bytes. */
#define BB_UMR_MAX_PIECES 52u
/** Maximum blocks of an interleaved layout. Its header takes the room of one piece. */
#define BB_UMR_MAX_BLOCKS (BB_UMR_MAX_PIECES - 1)

/** A block of an interleaved layout (mlx5dv_mr_interleaved): equal pieces at equal distances. */
struct bb_interleaved {
	uint64_t addr;  /**< address of the first piece */
	uint32_t bytes; /**< bytes of each piece, at least 1 */
	uint32_t skip;  /**< bytes between two pieces; bytes + skip is at most 65535 */
	uint32_t lkey;
};

/** Memory and rights that a bind gives to a memory window. */
struct bb_bind {
	uint64_t addr;
	uint64_t len;    /**< at most 2^31; 0 unbinds the window */
	uint32_t lkey;   /**< key of the MR */
	uint32_t access; /**< bits of IBV_ACCESS_* */
	bool zero_based; /**< the window's addresses start at 0, not at addr */
};

/** Flag of the posts below: request a CQE. It is reported only if the post is signalled, too. */
#define BB_SQ_ASK_CQE (1u << 9)

/** Returns the slots of a WQE that binds a window (@p range true) or unbinds it (false). */
static inline uint32_t
bb_sq_umr_slots(const struct bb_sq *sq, bool range)
{
	return bb_sq_slots(sq, BB_WQE_UMR_DS + (range ? BB_WQE_XLT_ALIGN : 0));
}

/** Posts a LOCAL_INV: no access can use @p rkey until a later bind or layout. */
int bb_sq_post_local_inv(struct bb_sq *sq, uint64_t wr_id, uint32_t rkey, uint32_t flags);

/**
 * Posts a bind of a memory window. A window of type 2 (@p type2) can be used only through this QP,
 * and the bind fails if the window is bound already. @p rkey is the current key of the window. The
 * bind changes its low byte to that of @p new_rkey.
 */
int bb_sq_post_bind(struct bb_sq *sq, uint64_t wr_id, bool type2, uint32_t rkey, uint32_t new_rkey,
		    const struct bb_bind *bind, uint32_t flags);

/** Posts a layout: the memory of @p key is then the @p n pieces of @p sge, one after the other. */
int bb_sq_post_mkey_list(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
			 const struct bb_sge *sge, uint32_t n, uint32_t flags);

/**
 * Posts an interleaved layout of @p repeat rounds. The memory of @p key is then: piece 0 of each of
 * the @p n blocks, piece 1 of each block, and so on.
 */
int bb_sq_post_mkey_interleaved(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
				uint32_t repeat, const struct bb_interleaved *block, uint32_t n,
				uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
