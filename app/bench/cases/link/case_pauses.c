/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A baseline for the tails of all latencies: the time that the machine takes away from a polling
 * loop. A thread that only reads the clock detects times in which it did not run, because of
 * interrupts, the scheduler or a hypervisor. A program that polls on the same CPU cannot have a
 * better p99.
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "bench.h"

#define STOP_NS 5000

struct loop {
	uint64_t ticks; /* time to run, in TSC ticks */
	uint64_t ran;
	uint64_t stops;
	/* TSC ticks for which the thread did not run: total, longest pause */
	uint64_t stopped, longest;
};

static void *
run_loop(void *arg)
{
	const uint64_t limit = (uint64_t)(STOP_NS * tsc_ghz()), start = tsc();
	struct loop *l = arg;
	uint64_t last = start, now, gap;

	do {
		now = tsc();
		gap = now - last;
		last = now;
		if (gap < limit)
			continue;
		l->stops++;
		l->stopped += gap;
		if (gap > l->longest)
			l->longest = gap;
	} while (now - start < l->ticks);
	l->ran = now - start;
	return NULL;
}

/* Measures both CPUs at the same time, as two polling threads. */
static bool
run_both(double *per_s, double *percent, double *longest_us)
{
	struct loop l[2];
	struct peer *peer = NULL;
	double ran;

	memset(l, 0, sizeof(l));
	l[0].ticks = l[1].ticks = (uint64_t)((opts.quick ? 20e6 : 100e6) * tsc_ghz());
	if (have_peer_cpu() && peer_start(run_loop, &l[1], &peer) != 0)
		return false;
	run_loop(&l[0]);
	if (peer != NULL)
		peer_join(peer);
	ran = (double)(l[0].ran + l[1].ran);
	*per_s = (double)(l[0].stops + l[1].stops) * tsc_ghz() * 1e9 / ran;
	*percent = 100.0 * (double)(l[0].stopped + l[1].stopped) / ran;
	*longest_us = (double)RTE_MAX(l[0].longest, l[1].longest) / tsc_ghz() / 1e3;
	return true;
}

static int
run(void)
{
	static double per_s[BENCH_MAX_REPEAT], percent[BENCH_MAX_REPEAT];
	struct row rate = {.name = "pauses/rate", .unit = "pauses per second"};
	struct row time = {.name = "pauses/time", .unit = "% of the time"};
	double longest = 0, one;
	unsigned int n;

	for (n = 0; n < opts.repeat && !bench_stopped(); n++) {
		if (!run_both(&per_s[n], &percent[n], &one))
			return -EAGAIN;
		longest = RTE_MAX(longest, one);
	}
	if (n < opts.repeat)
		return 0;
	rate.p.baseline = median(per_s, n);
	time.p.baseline = median(percent, n);
	rate.p.baseline_only = time.p.baseline_only = true;
	rate.p.valid = time.p.valid = true;
	rate.p.pairs = time.p.pairs = n;
	snprintf(rate.note, sizeof(rate.note),
		 "pauses of 5 us or more on each CPU; the longest "
		 "took %.0f us",
		 longest);
	report_row(&rate);
	report_row(&time);
	return 0;
}

const struct bench_case case_pauses = {
	.name = "pauses",
	.what = "baseline alone: time that scheduler and hypervisor take from a polling loop",
	.run = run,
};
