/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Posts of UMR WQEs. A UMR WQE changes a memory key, in order with the other requests of its send
 * queue.
 *
 * A UMR WQE has at least 128 bytes. That is more than the slot size of most queues, so the WQE may
 * occupy several slots (bb_sq_slots()). The library adds a small fence to the next WQE, so that the
 * next WQE uses the changed key. The WQE layout is that of libmlx5. Results are those of bb_sq.h.
 */
#ifndef BB_SQ_UMR_H
#define BB_SQ_UMR_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum SGEs in one UMR WQE. The list of SGEs is padded to a multiple of 64 bytes. */
#define BB_UMR_MAX_PIECES 52u
/** Maximum blocks of an interleaved layout. Its header takes the room of one SGE. */
#define BB_UMR_MAX_BLOCKS (BB_UMR_MAX_PIECES - 1)

struct bb_drv_mr; /* struct of the driver interface; this file does not access its fields */

/**
 * One block of an interleaved layout (mlx5dv_mr_interleaved): ranges of equal size at equal
 * distances.
 */
struct bb_interleaved {
	uint64_t addr;  /**< address of the first range */
	uint32_t bytes; /**< bytes of each range, at least 1 */
	uint32_t skip;  /**< bytes between two ranges; bytes + skip is at most 65535 */
	uint32_t lkey;
};

/** Memory and access rights that a bind gives to a memory window. */
struct bb_bind {
	uint64_t addr;
	uint64_t len;    /**< bytes of the range, at most 2^31; 0 unbinds the window */
	uint32_t lkey;   /**< lkey of the MR */
	uint32_t access; /**< bits of IBV_ACCESS_* */
	bool zero_based; /**< true if the window's addresses start at 0, false if they start at addr
			  */
	struct bb_drv_mr *mw_obj; /**< the window's driver object, for bb_sq_ops.bind */
	struct bb_drv_mr *mr_obj; /**< the MR's driver object, for bb_sq_ops.bind; NULL if len is 0
				   */
};

/**
 * Flag of the posts below: request a CQE. Without BB_SEND_SIGNALED that CQE frees room but is not
 * reported.
 */
#define BB_SQ_ASK_CQE (1u << 9)

/**
 * Returns the number of slots of a WQE that binds a window (@p range true) or unbinds a window (@p
 * range false).
 */
static inline uint32_t
bb_sq_umr_slots(const struct bb_sq *sq, bool range)
{
	return bb_sq_slots(sq, BB_WQE_UMR_DS + (range ? BB_WQE_XLT_ALIGN : 0));
}

/** Posts a LOCAL_INV. Every access through @p rkey then fails until a later bind or layout. */
int bb_sq_post_local_inv(struct bb_sq *sq, uint64_t wr_id, uint32_t rkey, uint32_t flags);

/**
 * Posts a bind of a memory window. @p rkey is the current key of the window; the bind replaces its
 * low byte with that of @p new_rkey.
 * @p type2 selects a window of type 2. Such a window can be used only through this QP, and its
 * bind fails if it is already bound.
 */
int bb_sq_post_bind(struct bb_sq *sq, uint64_t wr_id, bool type2, uint32_t rkey, uint32_t new_rkey,
		    const struct bb_bind *bind, uint32_t flags);

/**
 * Posts a layout for @p key. The key then covers the @p n ranges of @p sge, one after the other.
 */
int bb_sq_post_mkey_list(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
			 const struct bb_sge *sge, uint32_t n, uint32_t flags);

/**
 * Posts an interleaved layout for @p key. The key then covers @p repeat rounds: first range 0 of
 * each of the @p n blocks, then range 1 of each block, and so on.
 */
int bb_sq_post_mkey_interleaved(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
				uint32_t repeat, const struct bb_interleaved *block, uint32_t n,
				uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
