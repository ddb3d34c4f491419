/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Baselines of memory: copying, and address-to-key lookup. */
#include <string.h>

#include "baseline.h"

uint64_t
baseline_range_one(const struct baseline_range *r, const uint64_t *addr, uint64_t n)
{
	uint64_t i, sum = 0;

	for (i = 0; i < n; i++) {
		uint64_t a = addr[i & BASELINE_SPREAD];

		if (a >= r->start && a < r->end)
			sum += r->key;
		__asm__ volatile("" : "+r"(sum) : : "memory");
	}
	return sum;
}

uint64_t
baseline_range_search(const struct baseline_range *r, uint32_t ranges, const uint64_t *addr,
		      uint64_t n)
{
	uint64_t i, sum = 0;

	for (i = 0; i < n; i++) {
		uint64_t a = addr[i & BASELINE_SPREAD];
		uint32_t lo = 0, hi = ranges;

		while (hi - lo > 1) {
			uint32_t mid = lo + (hi - lo) / 2;

			if (a < r[mid].start)
				hi = mid;
			else
				lo = mid;
		}
		if (a >= r[lo].start && a < r[lo].end)
			sum += r[lo].key;
		__asm__ volatile("" : "+r"(sum) : : "memory");
	}
	return sum;
}

void
baseline_memcpy(uint8_t *dst, const uint8_t *src, size_t set, size_t block, uint64_t n)
{
	size_t at = 0;
	uint64_t i;

	for (i = 0; i < n; i++) {
		memcpy(dst + at, src + at, block);
		__asm__ volatile("" ::: "memory");
		at += block;
		if (at == set)
			at = 0;
	}
}
