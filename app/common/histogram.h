/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A log-linear histogram with 128 buckets per power of two. A quantile is at most 1/128 above the
 * exact value, for any range. Values below 256 are exact. Adding a value costs a bit scan, a shift
 * and two increments.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

#define HIST_SUB_BITS 7
#define HIST_SUB      (1u << HIST_SUB_BITS)
/* Buckets for powers of two from 2^7 to 2^63, and for the exact values below them. */
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) * HIST_SUB)

struct hist {
	uint64_t count;
	unsigned __int128 sum;
	uint64_t min, max; /* smallest and largest value added, not rounded to a bucket */
	uint64_t bucket[HIST_BUCKETS];
};

void hist_reset(struct hist *h);

/* Returns the bucket of a value: its 8 leading bits, and the number of bits shifted out. */
static inline uint32_t
hist_index(uint64_t v)
{
	uint32_t shift;

	if (v < 2 * HIST_SUB)
		return (uint32_t)v;
	shift = 63 - (uint32_t)__builtin_clzll(v) - HIST_SUB_BITS;
	return shift * HIST_SUB + (uint32_t)(v >> shift);
}

/* Adds the value @v @n times. */
static inline void
hist_add_many(struct hist *h, uint64_t v, uint64_t n)
{
	h->bucket[hist_index(v)] += n;
	h->count += n;
	h->sum += (unsigned __int128)v * n;
	if (v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
}

static inline void
hist_add(struct hist *h, uint64_t v)
{
	hist_add_many(h, v, 1);
}

/* Returns the largest value of bucket @index. */
uint64_t hist_bucket_top(uint32_t index);

/*
 * Returns the value that @ppm millionths of all values do not exceed (500000: median). It is the
 * top of its bucket, but never above the exact maximum. Returns 0 if the histogram is empty.
 */
uint64_t hist_quantile(const struct hist *h, uint32_t ppm);

/*
 * Adds to @h the values that are in @now and not in @before. @before is an earlier copy of the
 * histogram @now. Afterwards min and max of @h are bounds only: they include those of all values in
 * @now.
 */
void hist_add_since(struct hist *h, const struct hist *now, const struct hist *before);

/* Adds all values of @from. */
void hist_merge(struct hist *h, const struct hist *from);

#endif
