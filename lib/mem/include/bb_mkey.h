/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Indirect keys: one key for several ranges of memory that have keys of their own.
 *
 * Each of these ranges is called a piece, and is described by a struct bb_sge with the lkey of the
 * memory. That lkey must belong to the same PD and must stay registered. There are two types of
 * indirect keys:
 * - A key with a fixed layout ("fixed key") gets its pieces at creation. The pieces never change.
 * - Other keys are created without pieces. Requests on a send queue (UMR) then set the key's
 *   layout, any number of times: a list of pieces, or an interleaved pattern.
 *
 * An indirect key can be used as lkey and as rkey, like the keys of a memory region. The
 * control-path rules of bb_dev.h apply.
 *
 * Source: man mlx5dv_create_mkey, mlx5dv_wr_mr_list, mlx5dv_wr_mr_interleaved.
 */
#ifndef BB_MKEY_H
#define BB_MKEY_H

#include "bb_qp.h"
#include "bb_sq_umr.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An indirect key; read-only for the application. */
struct bb_mkey {
	struct bb_pd *pd;
	uint32_t lkey;
	uint32_t rkey;
	uint64_t iova;       /**< address of the first byte, as WQEs and peers use it */
	uint64_t len;        /**< bytes of a fixed key; 0 if requests set the layout */
	uint32_t access;     /**< rights of a fixed key, enum bb_access */
	uint32_t max_pieces; /**< largest number of pieces in a layout; 0 for a fixed key */
};

/** Attributes of an indirect key. */
struct bb_mkey_attr {
	uint32_t size;               /**< set by bb_mkey_attr_init() */
	const struct bb_sge *pieces; /**< memory ranges of a fixed key, copied by the call; NULL
				      * if requests set the layout */
	uint32_t n;                  /**< entries of @ref pieces, at most @ref bb_dev_attr
				      * max_mkey_pieces */
	uint64_t iova;               /**< address of the first byte, as WQEs and peers use it */
	uint32_t access;             /**< rights of a fixed key: LOCAL_WRITE and REMOTE_* of enum
				      * bb_access */
	uint32_t max_pieces;         /**< largest layout that requests set: number of pieces,
				      * or number of blocks of a pattern plus one. 0 for a fixed
				      * key */
};

/** Sets the defaults: no pieces, and the key's first byte has address 0. */
static inline void
bb_mkey_attr_init(struct bb_mkey_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
}

/**
 * Creates an indirect key. An access through the indirect key needs the matching right of this key.
 * If it writes, it also needs LOCAL_WRITE of the keys of the pieces. At every access the device
 * checks that these keys exist and cover their pieces.
 * @return 0. -ENOTSUP if the device has no indirect keys, or has only fixed keys. -ENOMEM. -EINVAL
 *   in these cases:
 *   - both pieces and max_pieces are given, or neither, or one of them is over its limit;
 *   - a piece has 0 bytes or more than 2^31, or iova plus the length overflows;
 *   - a right is unknown, or a right needs LOCAL_WRITE, which is not given;
 *   - REMOTE_ATOMIC is given, and the iova or the length is not a multiple of @ref bb_dev_attr
 *     mkey_atomic_align, or the device's mkey_atomic_align is 0.
 */
int bb_mkey_create(struct bb_pd *pd, const struct bb_mkey_attr *attr, struct bb_mkey **mkey);

/**
 * Destroys an indirect key. The call returns after the last access through the key has ended.
 * Requests that set the key's layout must have completed before this call.
 */
int bb_mkey_destroy(struct bb_mkey *mkey);

/**
 * Posts a request that sets the layout of @p mkey to @p n consecutive pieces (mlx5dv_wr_mr_list).
 * The request completes with opcode BB_WC_MKEY. Later requests on this queue use the new layout,
 * and so do all requests that are posted after the completion. For other requests that use the key
 * meanwhile, the time of the change is undefined. The key needs no bb_post_local_inv() before a new
 * layout.
 * @param access enum bb_access LOCAL_WRITE and REMOTE_*.
 * @return 0 or an error of bb_post_send(). -EINVAL (logged) in these cases:
 *   - the key is fixed or belongs to another PD, or the rights are invalid;
 *   - there are more pieces than max_pieces or than a WQE has room for, or a piece is empty.
 */
int bb_post_mkey_list(struct bb_qp *qp, uint64_t wr_id, struct bb_mkey *mkey, uint32_t access,
		      const struct bb_sge *sge, uint32_t n, uint32_t flags);

/**
 * Posts a request that sets the layout of @p mkey to @p repeat rounds of @p n blocks
 * (mlx5dv_wr_mr_interleaved). Round k consists of range k of each block, one block after the other.
 * Range k of a block starts at addr + k * (bytes + skip).
 * @return as bb_post_mkey_list(). -ENOTSUP if the device does not support patterns.
 */
int bb_post_mkey_interleaved(struct bb_qp *qp, uint64_t wr_id, struct bb_mkey *mkey,
			     uint32_t access, uint32_t repeat, const struct bb_interleaved *block,
			     uint32_t n, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
