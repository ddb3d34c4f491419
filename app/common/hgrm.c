/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <inttypes.h>
#include <math.h>

#include "hgrm.h"

#define TICKS 5.0 /* lines for each halving of the distance to 100 % */

/* Returns the percentage in the next line of the file after the line of percentage @level. */
static double
next_level(double level)
{
	double halvings = 2;

	while (100 / (100 - level) >= halvings)
		halvings *= 2;
	return level + 100 / (TICKS * halvings);
}

static void
print_line(FILE *f, double value, double percentile, uint64_t count)
{
	fprintf(f, "%12.3f %2.12f %10" PRIu64, value, percentile, count);
	if (percentile < 1)
		fprintf(f, " %14.2f\n", 1 / (1 - percentile));
	else
		fprintf(f, " %14s\n", "inf");
}

/* Returns the standard deviation, with each value in the middle of its bucket. */
static double
deviation(const struct hist *h, double mean)
{
	double middle, sum = 0;
	uint64_t low, top;
	uint32_t i;

	for (i = 0; i < HIST_BUCKETS && h->count > 0; i++) {
		if (h->bucket[i] == 0)
			continue;
		top = hist_bucket_top(i);
		low = i == 0 ? 0 : hist_bucket_top(i - 1) + 1;
		middle = ((double)low + (double)top) / 2;
		sum += (double)h->bucket[i] * (middle - mean) * (middle - mean);
	}
	return h->count == 0 ? 0 : sqrt(sum / (double)h->count);
}

void
hgrm_write(FILE *f, const struct hist *h, double scale)
{
	double mean = h->count == 0 ? 0 : (double)h->sum / (double)h->count, level = 0, value = 0;
	uint64_t count = 0, top;
	uint32_t i;

	fprintf(f, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	for (i = 0; i < HIST_BUCKETS && count < h->count; i++) {
		if (h->bucket[i] == 0)
			continue;
		count += h->bucket[i];
		top = hist_bucket_top(i);
		value = (double)(top < h->max ? top : h->max) * scale;
		/*
		 * Prints the last bucket only once, although it may reach several levels. The line
		 * of 100 % follows after the loop.
		 */
		while (level < 100 && level * (double)h->count <= 100 * (double)count) {
			print_line(f, value, level / 100, count);
			level = next_level(level);
			if (count == h->count)
				break;
		}
	}
	if (h->count > 0)
		print_line(f, value, 1, count);
	fprintf(f, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", mean * scale,
		deviation(h, mean) * scale);
	fprintf(f, "#[Max     = %12.3f, Total count    = %12" PRIu64 "]\n", (double)h->max * scale,
		h->count);
	/*
	 * A bucket of HdrHistogram has the values from one power of two to the next. The first
	 * bucket has all values that are recorded without rounding.
	 */
	fprintf(f, "#[Buckets = %12u, SubBuckets     = %12u]\n", HIST_BUCKETS / HIST_SUB - 1,
		2 * HIST_SUB);
}
