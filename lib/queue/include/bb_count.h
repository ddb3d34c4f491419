/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Numbers with one writing thread and any number of reading threads: statistics, indices.
 *
 * The owner of a queue writes them with plain aligned stores. A reader loads each number alone and
 * gets a value that it had at some time; two numbers may be of different times. They order no other
 * accesses. Under ThreadSanitizer the stores are __atomic too, because it cannot know that there is
 * one writer.
 */
#ifndef BB_COUNT_H
#define BB_COUNT_H

#include <stdint.h>
#include <string.h>

#include "bb_barrier.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Adds to a number. The caller is its only writer. */
static inline void
bb_count_add(uint64_t *n, uint64_t by)
{
#ifdef BB_TSAN
	__atomic_store_n(n, *n + by, __ATOMIC_RELAXED);
#else
	*n += by;
#endif
}

/** Adds to a 32-bit number, which wraps. The caller is its only writer. */
static inline void
bb_count_add32(uint32_t *n, uint32_t by)
{
#ifdef BB_TSAN
	__atomic_store_n(n, *n + by, __ATOMIC_RELAXED);
#else
	*n += by;
#endif
}

/** Sets the low half of a number. The caller is its only writer. */
static inline void
bb_count_low(uint64_t *n, uint32_t low)
{
#ifdef BB_TSAN
	__atomic_store_n(n, *n >> 32 << 32 | low, __ATOMIC_RELAXED);
#else
	memcpy(n, &low, sizeof(low)); /* little-endian only: bb_sq_commit() checks it */
#endif
}

/** Stores 8 bytes from @p first on, which is 8-byte aligned; @p v has their memory layout. */
static inline void
bb_count_store_pair(uint32_t *first, uint64_t v)
{
#ifdef BB_TSAN
	__atomic_store_n((uint64_t *)(void *)first, v, __ATOMIC_RELAXED);
#else
	memcpy(first, &v, sizeof(v));
#endif
}

/** Reads a number. Any thread. */
static inline uint64_t
bb_count_get(const uint64_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

/** Reads a 32-bit number. Any thread. */
static inline uint32_t
bb_count_get32(const uint32_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif

#endif
