/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "histogram.h"

void
hist_reset(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

uint64_t
hist_bucket_top(uint32_t index)
{
	uint32_t shift;
	uint64_t lead;

	if (index < 2 * HIST_SUB)
		return index;
	shift = index / HIST_SUB - 1;
	lead = index - shift * HIST_SUB;
	return (lead << shift) + ((UINT64_C(1) << shift) - 1);
}

uint64_t
hist_quantile(const struct hist *h, uint32_t ppm)
{
	uint64_t rank, seen = 0, top;
	uint32_t i;

	if (h->count == 0)
		return 0;
	/*
	 * The quantile is the value with this rank, rounded up. The product is split so that it
	 * cannot overflow.
	 */
	rank = h->count / 1000000 * ppm + (h->count % 1000000 * ppm + 999999) / 1000000;
	if (rank == 0)
		rank = 1;
	for (i = 0; i < HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank) {
			top = hist_bucket_top(i);
			return top < h->max ? top : h->max;
		}
	}
	return h->max;
}

void
hist_merge(struct hist *h, const struct hist *from)
{
	uint32_t i;

	for (i = 0; i < HIST_BUCKETS; i++)
		h->bucket[i] += from->bucket[i];
	h->count += from->count;
	h->sum += from->sum;
	if (from->min < h->min)
		h->min = from->min;
	if (from->max > h->max)
		h->max = from->max;
}

void
hist_add_since(struct hist *h, const struct hist *now, const struct hist *before)
{
	uint32_t i;

	for (i = 0; i < HIST_BUCKETS; i++)
		h->bucket[i] += now->bucket[i] - before->bucket[i];
	h->count += now->count - before->count;
	h->sum += now->sum - before->sum;
	if (now->min < h->min)
		h->min = now->min;
	if (now->max > h->max)
		h->max = now->max;
}
