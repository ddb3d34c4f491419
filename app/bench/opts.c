/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Options of the whole run, and the parsing of numbers in options. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "stop.h"

struct bench_opts opts = {
	.repeat = 31,
	.sizes = {{8, 64, 512, 4096, 32768, 262144}, 6},
	.qps = {{1, 10, 100, 1000}, 4},
};

uint64_t
bench_number(const char *what, const char *text, uint64_t lo, uint64_t hi)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno != 0 || end == text || *end != '\0' || *text == '-' || v < lo || v > hi) {
		fprintf(stderr, "bench: %s takes a number from %lu to %lu, not \"%s\"\n", what,
			(unsigned long)lo, (unsigned long)hi, text);
		exit(2);
	}
	return v;
}

static void
sweep(const char *what, const char *text, uint64_t lo, uint64_t hi, struct bench_sweep *to)
{
	char *copy = strdup(text), *save = NULL, *item;

	to->n = 0;
	for (item = copy != NULL ? strtok_r(copy, ", ", &save) : NULL; item != NULL;
	     item = strtok_r(NULL, ", ", &save)) {
		const uint32_t v = (uint32_t)bench_number(what, item, lo, hi);

		if (to->n == BENCH_MAX_POINTS || (to->n > 0 && v <= to->at[to->n - 1])) {
			fprintf(stderr,
				"bench: %s takes up to %d numbers in ascending order, "
				"not \"%s\"\n",
				what, BENCH_MAX_POINTS, text);
			exit(2);
		}
		to->at[to->n++] = v;
	}
	free(copy);
	if (to->n == 0) {
		fprintf(stderr, "bench: %s needs numbers, separated by commas\n", what);
		exit(2);
	}
}

void
bench_sizes(const char *what, const char *text)
{
	unsigned int i;

	sweep(what, text, BENCH_MIN_SIZE, BENCH_MAX_SIZE, &opts.sizes);
	for (i = 0; i < opts.sizes.n; i++) {
		if ((opts.sizes.at[i] & (opts.sizes.at[i] - 1)) != 0) {
			fprintf(stderr, "bench: %s takes powers of two, not %u\n", what,
				opts.sizes.at[i]);
			exit(2);
		}
	}
}

void
bench_qps(const char *what, const char *text)
{
	sweep(what, text, 1, BENCH_MAX_QPS, &opts.qps);
}

bool
bench_stopped(void)
{
	return stop_signal != 0;
}
