/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Numbers with a single writing thread and any number of reading threads, such as statistics and
 * indices.
 *
 * The owner of a queue writes such a number with a plain aligned store. A reader gets a value that
 * the number had at some time. Two numbers that are read one after the other may come from
 * different times. These accesses do not order any other accesses. Under ThreadSanitizer the
 * stores are __atomic as well, because it cannot know that there is only one writer.
 */
#ifndef BB_COUNT_H
#define BB_COUNT_H

#include <stdint.h>
#include <string.h>

#include "bb_barrier.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Adds @p by to *@p n. The calling thread must be the only writer. */
static inline void
bb_count_add(uint64_t *n, uint64_t by)
{
#ifdef BB_TSAN
	__atomic_store_n(n, *n + by, __ATOMIC_RELAXED);
#else
	*n += by;
#endif
}

/**
 * Adds @p by to the 32-bit number *@p n, which may wrap. The calling thread must be the only
 * writer.
 */
static inline void
bb_count_add32(uint32_t *n, uint32_t by)
{
#ifdef BB_TSAN
	__atomic_store_n(n, *n + by, __ATOMIC_RELAXED);
#else
	*n += by;
#endif
}

/** Sets the low half of *@p n. The calling thread must be the only writer. */
static inline void
bb_count_low(uint64_t *n, uint32_t low)
{
#ifdef BB_TSAN
	__atomic_store_n(n, *n >> 32 << 32 | low, __ATOMIC_RELAXED);
#else
	memcpy(n, &low, sizeof(low)); /* the low half comes first on little-endian hosts only;
					 bb_sq_commit() asserts this */
#endif
}

/**
 * Stores 8 bytes from *@p first on. @p first must be 8-byte aligned, and @p v has the bytes in the
 * order in which they are stored.
 */
static inline void
bb_count_store_pair(uint32_t *first, uint64_t v)
{
#ifdef BB_TSAN
	__atomic_store_n((uint64_t *)(void *)first, v, __ATOMIC_RELAXED);
#else
	memcpy(first, &v, sizeof(v));
#endif
}

/** Reads a number. May be called from any thread. */
static inline uint64_t
bb_count_get(const uint64_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

/** Reads a 32-bit number. May be called from any thread. */
static inline uint32_t
bb_count_get32(const uint32_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif

#endif
