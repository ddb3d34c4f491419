/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Indirect keys: one key over pieces of other keys' memory.
 *
 * A key is created over fixed pieces, or empty. Requests on a send queue (UMR) lay out an empty
 * key, any number of times, as a list of pieces or as an interleaved pattern. Its memory belongs
 * to other keys of the PD, which must stay registered. It serves as lkey and rkey like a memory
 * region's. Control-path rules are those of bb_dev.h.
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
	uint64_t len;        /**< bytes of a fixed key; 0 for a key that requests lay out */
	uint32_t access;     /**< of a fixed one */
	uint32_t max_pieces; /**< 0: fixed */
};

/** Attributes of an indirect key. */
struct bb_mkey_attr {
	uint32_t size;               /**< set by bb_mkey_attr_init() */
	const struct bb_sge *pieces; /**< pieces of a fixed key; the caller may reuse them on
				      * return */
	uint32_t n;                  /**< number of pieces, at most @ref bb_dev_attr
				      * max_mkey_pieces */
	uint64_t iova;               /**< address of the first byte */
	uint32_t access;             /**< rights of a fixed key: enum bb_access LOCAL_WRITE and
				      * REMOTE_* */
	uint32_t max_pieces;         /**< largest number of pieces, or of blocks of a pattern
				      * plus one, that requests lay out; 0 for a fixed key */
};

/** Sets the defaults: no pieces, zero-based. */
static inline void
bb_mkey_attr_init(struct bb_mkey_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
}

/**
 * Creates an indirect key. An access needs the right of this key, and LOCAL_WRITE of the pieces'
 * keys for writes. The device checks at every access that those keys exist and cover their
 * pieces.
 * @return 0; -EINVAL no pieces and no max_pieces, or both, too many, a piece of 0 or over 2^31
 *   bytes, iova + length overflows, rights that are unknown or lack LOCAL_WRITE, REMOTE_ATOMIC
 *   with an iova or a length that is not a multiple of @ref bb_dev_attr mkey_atomic_align, or
 *   where that is 0; -ENOTSUP the device has no indirect keys, or none that requests lay out;
 *   -ENOMEM.
 */
int bb_mkey_create(struct bb_pd *pd, const struct bb_mkey_attr *attr, struct bb_mkey **mkey);

/**
 * Destroys a key. It returns after the last access through it has ended. Requests that lay it out
 * must have completed before.
 */
int bb_mkey_destroy(struct bb_mkey *mkey);

/**
 * Lays out @p mkey as @p n consecutive pieces (mlx5dv_wr_mr_list). It completes as BB_WC_MKEY.
 * Later requests on this queue, and all requests posted after its completion, see the new layout.
 * For a request that uses the key at that moment, the time of the change is undefined. The key
 * needs no bb_post_local_inv() before a new layout.
 * @param access enum bb_access LOCAL_WRITE and REMOTE_*.
 * @return as every post; -EINVAL (logged) a fixed key, another PD's, more pieces than max_pieces
 *   or a WQE has room for, an empty piece, invalid rights.
 */
int bb_post_mkey_list(struct bb_qp *qp, uint64_t wr_id, struct bb_mkey *mkey, uint32_t access,
		      const struct bb_sge *sge, uint32_t n, uint32_t flags);

/**
 * Lays out @p mkey as @p repeat rounds of @p n blocks (mlx5dv_wr_mr_interleaved). Round k takes
 * the bytes of each block at its addr + k * (bytes + skip), one block after the other.
 * @return as bb_post_mkey_list(); -ENOTSUP the device has no patterns.
 */
int bb_post_mkey_interleaved(struct bb_qp *qp, uint64_t wr_id, struct bb_mkey *mkey,
			     uint32_t access, uint32_t repeat, const struct bb_interleaved *block,
			     uint32_t n, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
