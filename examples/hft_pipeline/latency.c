/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <inttypes.h>

#include <rte_cycles.h>

#include "hgrm.h"
#include "latency.h"
#include "output.h"

#define BAR  50
#define ROWS 128

static const struct {
	const char *name, *key;
	uint32_t ppm;
} points[] = {
	{"p50", "p50", 500000},     {"p90", "p90", 900000},       {"p99", "p99", 990000},
	{"p99.9", "p99_9", 999000}, {"p99.99", "p99_99", 999900},
};

#define POINTS (sizeof(points) / sizeof(points[0]))

double
latency_ns(uint64_t cycles)
{
	return (double)cycles * 1e9 / (double)rte_get_tsc_hz();
}

const char *
time_text(char text[TIME_TEXT], double ns)
{
	static const char *const unit[] = {"ns", "us", "ms", "s"};
	uint32_t i = 0;

	while (ns >= 999.5 && i < 3) {
		ns /= 1000;
		i++;
	}
	snprintf(text, TIME_TEXT, "%.*f %s",
		 i == 0 || ns >= 99.95 ? 0
		 : ns >= 9.995         ? 1
				       : 2,
		 ns, unit[i]);
	return text;
}

void
latency_print(const char *what, const struct hist *h)
{
	char text[TIME_TEXT];
	uint32_t i;

	printf("%s: min %s", what, time_text(text, latency_ns(h->min)));
	for (i = 0; i < POINTS; i++)
		printf("  %s %s", points[i].name,
		       time_text(text, latency_ns(hist_quantile(h, points[i].ppm))));
	printf("  max %s\n", time_text(text, latency_ns(h->max)));
}

/*
 * Returns the lower bound of row @row of the printed histogram, in ns. Rows begin at 2^n and 1.5 *
 * 2^n ns.
 */
static double
row_from(uint32_t row)
{
	return (double)(UINT64_C(1) << row / 2) * (row % 2 != 0 ? 1.5 : 1.0);
}

void
latency_print_histogram(const struct hist *h)
{
	uint64_t rows[ROWS] = {0}, most = 1;
	uint32_t i, row, lo = ROWS, hi = 0;
	char from[TIME_TEXT], to[TIME_TEXT];
	int bar;

	for (i = 0; i < HIST_BUCKETS; i++) {
		uint64_t ns = (uint64_t)latency_ns(hist_bucket_top(i));

		if (h->bucket[i] == 0)
			continue;
		if (ns < 2)
			ns = 2;
		row = 2 * (63 - (uint32_t)__builtin_clzll(ns));
		row += ns >> (row / 2 - 1) & 1;
		rows[row] += h->bucket[i];
		if (rows[row] > most)
			most = rows[row];
		lo = row < lo ? row : lo;
		hi = row > hi ? row : hi;
	}
	for (row = lo; row <= hi && lo < ROWS; row++) {
		if (rows[row] == 0) {
			if (rows[row - 1] != 0)
				printf("  ...\n");
			continue;
		}
		bar = (int)((rows[row] * BAR + most - 1) / most);
		printf("  %8s to %8s  %9" PRIu64 "  %.*s\n", time_text(from, row_from(row)),
		       time_text(to, row_from(row + 1)), rows[row], bar,
		       "##################################################");
	}
}

void
latency_json(FILE *f, const char *key, const struct hist *h)
{
	const char *comma = "";
	uint32_t i;

	fprintf(f, "  \"%s\": {\"samples\": %" PRIu64, key, h->count);
	for (i = 0; i < POINTS && h->count > 0; i++)
		fprintf(f, ", \"%s\": %.1f", points[i].key,
			latency_ns(hist_quantile(h, points[i].ppm)));
	if (h->count > 0)
		fprintf(f, ", \"min\": %.1f, \"max\": %.1f", latency_ns(h->min),
			latency_ns(h->max));
	/* Each bucket is an array: smallest value, largest value, number of values. */
	fprintf(f, ", \"buckets\": [");
	for (i = 0; i < HIST_BUCKETS; i++) {
		if (h->bucket[i] == 0)
			continue;
		fprintf(f, "%s[%.1f, %.1f, %" PRIu64 "]", comma,
			latency_ns(i == 0 ? 0 : hist_bucket_top(i - 1) + 1),
			latency_ns(hist_bucket_top(i)), h->bucket[i]);
		comma = ", ";
	}
	fprintf(f, "]},\n");
}

int
latency_hgrm(const char *path, const struct hist *h)
{
	FILE *f = output_open("hgrm", path);

	if (f == NULL)
		return -EIO;
	hgrm_write(f, h, latency_ns(1) / 1000);
	return output_close(f, "hgrm", path);
}
