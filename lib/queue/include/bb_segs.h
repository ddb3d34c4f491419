/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * SGEs, and the segments of a send WQE that describe them.
 */
#ifndef BB_SEGS_H
#define BB_SEGS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bb_wqe.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Branch hint: the condition is usually true. */
#define bb_likely(x) __builtin_expect(!!(x), 1)
/** Branch hint: the condition is rarely true. */
#define bb_unlikely(x) __builtin_expect(!!(x), 0)

/**
 * A scatter/gather element: a contiguous range of registered memory (man ibv_post_send: struct
 * ibv_sge).
 */
struct bb_sge {
	uint64_t addr; /**< virtual address */
	uint32_t len;  /**< bytes, 0 to 2^31 */
	uint32_t lkey; /**< local key of the MR that covers the whole range */
};
BB_STATIC_ASSERT(offsetof(struct bb_sge, lkey) == offsetof(struct bb_sge, len) + 4,
		 "read together by bb_sq_fill_data()");

/**
 * Stores 8 bytes with one instruction. Volatile, because gcc otherwise builds a vector of two
 * adjacent values, which takes more instructions than two stores.
 */
static inline void
bb_wqe_store64(void *to, uint64_t v)
{
	typedef uint64_t __attribute__((may_alias)) word;

	*(volatile word *)to = v;
}

/** Writes the remote address segment of an RDMA or atomic WQE. */
static inline void
bb_sq_fill_raddr(void *seg, uint64_t raddr, uint32_t rkey)
{
	bb_wqe_store64(seg, bb_be64(raddr));
	bb_wqe_store64((uint8_t *)seg + 8, bb_be32(rkey));
}

/** Writes a data segment for an SGE that is not empty. */
static inline void
bb_sq_fill_data(void *seg, const struct bb_sge *sge)
{
	uint64_t words[2];

	/*
	 * Swap the bytes of length and key with one operation, then move each to its half of the
	 * word.
	 */
	memcpy(&words[0], &sge->len, sizeof(words[0]));
	words[0] = bb_be64(words[0]);
	words[0] = words[0] << 32 | words[0] >> 32;
	/* A length of 2^31 must be written as 0, because its bit would mark an inline segment. */
	words[0] &= ~(uint64_t)bb_be32(BB_WQE_INLINE);
	words[1] = bb_be64(sge->addr);
	memcpy(seg, words, sizeof(words));
}

/** Returns the number of non-empty SGEs, or -EINVAL if one is longer than 2^31 bytes. */
static inline int
bb_sq_count_sge(const struct bb_sge *sge, uint32_t nsge)
{
	uint32_t i;
	int n = 0;

	for (i = 0; i < nsge; i++) {
		if (bb_unlikely(sge[i].len > BB_WQE_MAX_SGE_LEN))
			return -EINVAL;
		n += sge[i].len != 0;
	}
	return n;
}

/**
 * Copies the few bytes that fit into a WQE's first block. Avoids a call of memcpy() for 4 to 16
 * bytes.
 */
static inline void
bb_sq_copy_inline(uint8_t *dst, const void *data, uint32_t len)
{
	const uint8_t *src = (const uint8_t *)data;

	if (!__builtin_constant_p(len) && len >= 8 && len <= 16) {
		memcpy(dst, src, 8);
		memcpy(dst + len - 8, src + len - 8, 8);
	} else if (!__builtin_constant_p(len) && len >= 4 && len < 8) {
		memcpy(dst, src, 4);
		memcpy(dst + len - 4, src + len - 4, 4);
	} else {
		memcpy(dst, src, len);
	}
}

#ifdef __cplusplus
}
#endif

#endif
