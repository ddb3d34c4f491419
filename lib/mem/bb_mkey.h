/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Indirect keys: one key over pieces of other keys' memory.
 *
 * A key is made either over pieces that never change, or empty, to be laid out by requests
 * on a send queue (UMR) as often as one likes: as a list of pieces, or as an interleaved
 * pattern. Its memory is that of other keys of the PD, which must stay registered. It serves
 * as lkey and rkey like a memory region's. Control-path rules are those of bb_dev.h.
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
	uint64_t iova;       /**< address of the first byte in WQEs and for peers */
	uint64_t len;        /**< of a fixed one; 0: as the last request laid it out */
	uint32_t access;     /**< of a fixed one */
	uint32_t max_pieces; /**< 0: fixed */
};

/** What an indirect key is to be like. */
struct bb_mkey_attr {
	uint32_t size;               /**< set by bb_mkey_attr_init() */
	const struct bb_sge *pieces; /**< of a fixed key; may be reused on return */
	uint32_t n;                  /**< how many; @ref bb_dev_attr max_mkey_pieces at most */
	uint64_t iova;               /**< address that names the first byte */
	uint32_t access;             /**< enum bb_access LOCAL_WRITE and REMOTE_*, of a fixed key */
	uint32_t max_pieces;         /**< to be laid out by requests: of so many pieces, or blocks
				      *   of a pattern and one; 0: fixed */
};

/** Defaults: nothing; zero-based. */
static inline void
bb_mkey_attr_init(struct bb_mkey_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
}

/**
 * Create an indirect key. Access through it needs the right of this key, and LOCAL_WRITE of
 * the pieces' keys for what writes; that they exist and cover their pieces is found out then,
 * at every access.
 * @return 0; -EINVAL no pieces and no max_pieces, or both, too many, a piece of 0 or over
 *   2^31 bytes, iova + length overflows, rights that are not known or lack LOCAL_WRITE,
 *   REMOTE_ATOMIC with an iova or a length that is no multiple of @ref bb_dev_attr
 *   mkey_atomic_align, or where that is 0;
 *   -ENOTSUP the device has no indirect keys, or none that requests lay out; -ENOMEM.
 */
int bb_mkey_create(struct bb_pd *pd, const struct bb_mkey_attr *attr, struct bb_mkey **mkey);

/**
 * Destroy it. Returns after the last access through it has ended. A request that lays it out
 * must have completed before.
 */
int bb_mkey_destroy(struct bb_mkey *mkey);

/**
 * Lay out @p mkey as @p n pieces one behind the other (mlx5dv_wr_mr_list). Completes as
 * BB_WC_MKEY. Requests behind it on this queue, and all requests from its completion on, see
 * the new layout; one that is used at this moment is changed when it is not. To be laid out
 * again, it needs no bb_post_local_inv() before.
 * @param access enum bb_access LOCAL_WRITE and REMOTE_*.
 * @return as every post; -EINVAL (logged) a fixed key, another PD's, more pieces than
 *   max_pieces or a WQE has room for, an empty piece, bad rights.
 */
int bb_post_mkey_list(struct bb_qp *qp, uint64_t wr_id, struct bb_mkey *mkey, uint32_t access,
		      const struct bb_sge *sge, uint32_t n, uint32_t flags);

/**
 * Lay out @p mkey as @p repeat rounds of @p n blocks: round k takes the bytes of each block
 * at its addr + k * (bytes + skip), one block behind the other (mlx5dv_wr_mr_interleaved).
 * @return as bb_post_mkey_list(); -ENOTSUP the device knows no patterns.
 */
int bb_post_mkey_interleaved(struct bb_qp *qp, uint64_t wr_id, struct bb_mkey *mkey,
			     uint32_t access, uint32_t repeat, const struct bb_interleaved *block,
			     uint32_t n, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
