/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Numbers that one thread changes and others may read meanwhile: statistics, indices.
 *
 * The owner of a queue changes them by plain aligned stores, as on its own; a reader
 * loads each by itself and gets a value that it had, of two numbers maybe one older than
 * the other. Nothing is ordered by them. Under ThreadSanitizer the stores are __atomic
 * too, as it cannot know that they are single.
 */
#ifndef BB_COUNT_H
#define BB_COUNT_H

#include <stdint.h>
#include <string.h>

#include "bb_barrier.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Add to a number: its only writer. */
static inline void
bb_count_add(uint64_t *n, uint64_t by)
{
#ifdef BB_TSAN
	__atomic_store_n(n, *n + by, __ATOMIC_RELAXED);
#else
	*n += by;
#endif
}

/** The same with 32 bits, which wrap. */
static inline void
bb_count_add32(uint32_t *n, uint32_t by)
{
#ifdef BB_TSAN
	__atomic_store_n(n, *n + by, __ATOMIC_RELAXED);
#else
	*n += by;
#endif
}

/** Set the low half of a number: its only writer. */
static inline void
bb_count_low(uint64_t *n, uint32_t low)
{
#ifdef BB_TSAN
	__atomic_store_n(n, *n >> 32 << 32 | low, __ATOMIC_RELAXED);
#else
	memcpy(n, &low, sizeof(low)); /* little-endian: bb_sq_commit() says so */
#endif
}

/** Store what lies in 8 bytes from @p first, 8-byte aligned: @p v as memory has it. */
static inline void
bb_count_store_pair(uint32_t *first, uint64_t v)
{
#ifdef BB_TSAN
	__atomic_store_n((uint64_t *)(void *)first, v, __ATOMIC_RELAXED);
#else
	memcpy(first, &v, sizeof(v));
#endif
}

/** Read a number, in any thread. */
static inline uint64_t
bb_count_get(const uint64_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

/** The same with 32 bits. */
static inline uint32_t
bb_count_get32(const uint32_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif

#endif
