/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The software device runs inside the application's poll. Latency and rate of 8-byte WRITEs are
 * compared with those of the ideal device of baseline.h, which only copies the 8 bytes.
 */
#include <errno.h>

#include "rig.h"
#include "soft.h"

struct baseline_run {
	struct rig *r;
	uint64_t n;
	uint32_t batch;
	enum baseline_signal sig;
	bool rate;
};

static double
baseline_side(void *arg)
{
	struct baseline_run *f = arg;
	uint64_t t = tsc();
	double ns;

	baseline_post_poll(&f->r->baseline, f->n, f->batch, f->sig, baseline_ideal_run, &f->r->dev);
	ns = ns_since(t) / (double)f->n;
	return f->rate ? 1000 / ns : ns;
}

static double
bluebell_rate(void *run)
{
	double ns = soft_write8(run);

	return ns > 0 ? 1000 / ns : -1;
}

static int
run(void)
{
	static const struct {
		const char *name;
		uint32_t batch;
		bool all, rate;
		double limit, target;
	} points[] = {
		{"inline/latency", 1, true, false, 19, 3},
		{"inline/batch32/all", 32, true, true, 104, 0.25},
		{"inline/batch32/last", 32, false, true, 245, 0.25},
	};
	struct rig *f = rig_new(false);
	struct soft s = {.dev = NULL};
	unsigned int i;
	int rc = -ENOMEM;

	if (f == NULL)
		goto out;
	rc = soft_open(&s, "soft0", 1, 128, 8192);
	if (rc != 0)
		goto out;
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		const uint64_t n = opts.quick ? 32 * 50 : 32 * 400;
		struct baseline_run fr = {
			f, n, points[i].batch,
			points[i].all ? BASELINE_SIGNAL_ALL : BASELINE_SIGNAL_LAST, points[i].rate};
		struct soft_run sr = {&s, n, points[i].batch, points[i].batch, points[i].all, NULL};
		struct row row = {
			.unit = points[i].rate ? "M/s" : "ns, post to CQE",
			.goal = points[i].rate ? GOAL_AT_LEAST : GOAL_AT_MOST,
			.target = points[i].target,
			.limit_by = points[i].rate ? LIMIT_RATE : LIMIT_NS,
			.limit_lo = points[i].limit,
			.limit_hi = points[i].limit,
		};

		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair(baseline_side, &fr, points[i].rate ? bluebell_rate : soft_write8, &sr,
			     &row.p);
		report_row(&row);
	}
	soft_close(&s);
out:
	rig_free(f);
	return rc;
}

const struct bench_case case_inline = {
	.name = "inline",
	.what = "software device in the owner's poll: latency and rate, 8-byte writes",
	.run = run,
};
