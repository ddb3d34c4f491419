/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The software device on a separate lcore: latency and rate of 8-byte WRITEs, compared with the
 * ideal device on that lcore. The ideal device (baseline.h) is hand-written and only copies the
 * payload and writes the CQE. Each measurement starts and stops its device. So the core is
 * free while L (the round trip of a cache line) or the other device is measured.
 */
#include <errno.h>

#include "rig.h"
#include "soft.h"

#define WINDOW 128

/* Number of timed blocks. The result is the median of the blocks, which excludes preempted ones. */
#define BLOCKS 31

struct lcore_run {
	struct rig *r;
	/* number of WRITEs per measured block; a run has BLOCKS blocks and takes their median */
	uint64_t n;
	uint32_t batch, window;
	bool all, rate;
};

/* Returns the number of WRITEs that a latency run times one by one. */
static uint64_t
singles(const struct lcore_run *run)
{
	return run->rate ? 0 : run->n * (opts.quick ? 2 : BLOCKS);
}

static double
in_unit(const struct lcore_run *run, double ns)
{
	if (ns <= 0)
		return -1;
	return run->rate ? 1000 / ns : ns;
}

static double
baseline_side(void *arg)
{
	struct lcore_run *f = arg;
	const enum baseline_signal sig = f->all ? BASELINE_SIGNAL_ALL : BASELINE_SIGNAL_LAST;
	double v[BLOCKS];
	struct peer *peer;
	uint64_t k, last;
	unsigned int i;

	__atomic_store_n(&f->r->dev.stop, 0, __ATOMIC_RELAXED);
	if (peer_start(f->rate ? baseline_ideal_thread : baseline_register_thread, &f->r->dev,
		       &peer) != 0)
		return -1;
	for (i = 0; i < BLOCKS; i++) {
		uint64_t t = tsc();

		if (f->rate)
			baseline_post_window(&f->r->baseline, f->n, f->batch, f->window, sig);
		else
			baseline_post_register(&f->r->baseline, f->n);
		v[i] = ns_since(t) / (double)f->n;
	}
	last = tsc();
	for (k = 0; k < singles(f); k++) {
		baseline_post_register(&f->r->baseline, 1);
		sample_whole(&last);
	}
	__atomic_store_n(&f->r->dev.stop, 1, __ATOMIC_RELAXED);
	peer_join(peer);
	return in_unit(f, median(v, BLOCKS));
}

static double
bluebell_side(void *arg)
{
	const struct lcore_run *o = arg;
	char spec[64];
	struct soft s;
	struct soft_run run = {&s, o->n, o->batch, o->window, o->all, NULL};
	double v[BLOCKS];
	uint64_t k, last;
	unsigned int i;

	snprintf(spec, sizeof(spec), "soft0,progress=lcore,lcore=%u", peer_lcore());
	/* Uses BlueFlame, because the baseline also copies WQEs into its register. */
	soft_db_mode = BB_DB_BLUEFLAME;
	i = soft_open(&s, spec, 1, WINDOW, 8192) == 0;
	soft_db_mode = BB_DB_DOORBELL;
	if (i == 0)
		return -1;
	for (i = 0; i < BLOCKS; i++) {
		v[i] = soft_write8(&run);
		if (v[i] < 0)
			break;
	}
	run.n = 1;
	last = tsc();
	for (k = 0; k < singles(o) && i == BLOCKS; k++) {
		if (soft_write8(&run) < 0)
			i = 0;
		sample_whole(&last);
	}
	soft_close(&s);
	return i < BLOCKS ? -1 : in_unit(o, median(v, BLOCKS));
}

static int
run(void)
{
	static const struct {
		const char *name;
		uint32_t batch, window;
		bool all, rate;
		double limit_lo, limit_hi, target;
	} points[] = {
		{"lcore/latency", 1, 1, true, false, 1.25, 1.25, 2},
		{"lcore/batch1", 1, WINDOW, true, true, 16, 16, 0},
		{"lcore/batch32/all", 32, WINDOW, true, true, 60, 60, 0.35},
		{"lcore/batch32/last", 32, WINDOW, false, true, 94, 142, 0.35},
	};
	struct rig *f;
	unsigned int i;
	int rc = eal_start();

	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("lcore", "needs a second lcore, on a CPU of its own");
		return 0;
	}
	f = rig_new(false);
	if (f == NULL)
		return -ENOMEM;
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		struct lcore_run lr = {f,
				       points[i].batch == 1 ? 640 : 6400,
				       points[i].batch,
				       points[i].window,
				       points[i].all,
				       points[i].rate};
		struct row row = {
			.unit = points[i].rate ? "M/s" : "ns, post to CQE",
			.goal = !points[i].rate         ? GOAL_BELOW_L
				: points[i].target != 0 ? GOAL_AT_LEAST
							: GOAL_NONE,
			.target = points[i].target,
			.limit_by = points[i].rate ? LIMIT_RATE_L : LIMIT_L,
			.limit_lo = points[i].limit_lo,
			.limit_hi = points[i].limit_hi,
		};

		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair_cross(baseline_side, &lr, bluebell_side, &lr, &row.p);
		report_row(&row);
	}
	rig_free(f);
	return 0;
}

const struct bench_case case_lcore = {
	.name = "lcore",
	.what = "software device on an lcore of its own: latency and rate, 8-byte writes",
	.run = run,
};
