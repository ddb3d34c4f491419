/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The cost of a post and a poll together: 8-byte inline WRITEs over the null device. The device
 * runs in the same thread, with the same code for Bluebell, the baseline and libmlx5.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "post_poll.h"

static double
baseline_side(void *arg)
{
	struct post_poll *p = arg;
	uint64_t t = tsc();

	baseline_post_poll(&p->r->baseline, p->n, p->batch, p->sig, baseline_null_run, &p->r->dev);
	return ns_since(t) / (double)p->n;
}

/* Reports a row from a line that bench_libmlx5 has printed. */
static void
peer_row(const char *line)
{
	struct row row = {
		.unit = "ns/WQE",
		.goal = GOAL_AT_MOST,
		.target = 0.5,
		.note = "compared with libmlx5, which is no baseline: ibv_post_send(), "
			"ibv_poll_cq()",
	};
	char name[32];

	if (sscanf(line, "%31s %lf %lf %lf %u %lf", name, &row.p.baseline, &row.p.bluebell,
		   &row.p.ratio, &row.p.pairs, &row.p.shared) != 6)
		return;
	row.p.valid = true;
	snprintf(row.name, sizeof(row.name), "%s/libmlx5", name);
	report_row(&row);
}

/* Reports the same measurements for the installed libmlx5 in place of the baseline. */
static void
peer(void)
{
	char repeat[16], text[1024], *line, *save = NULL;
	const char *argv[] = {NULL, repeat, opts.quick ? "quick" : NULL, NULL};

	snprintf(repeat, sizeof(repeat), "%u", opts.repeat);
	if (child_run_beside("bench_libmlx5", argv, text, sizeof(text)) != 0) {
		report_skip("post_poll/libmlx5", "bench_libmlx5 failed: run bench_libmlx5 alone "
						 "to see its error");
		return;
	}
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
		peer_row(line);
}

static int
run(void)
{
	struct rig *f = rig_new(false), *o = rig_new(true);
	unsigned int i;
	int rc = -ENOMEM;

	if (f == NULL || o == NULL)
		goto out;
	for (i = 0; i < POST_POLL_POINTS; i++) {
		const struct post_poll_point *at = &post_poll_points[i];
		const uint64_t n = opts.quick ? 16 * 200 : 16 * 1500;
		struct post_poll fp = {f, at->batch, at->sig, n}, op = {o, at->batch, at->sig, n};
		struct row row = {
			.unit = "ns/WQE",
			.goal = GOAL_AT_MOST,
			.target = at->target,
			.limit_by = LIMIT_NS,
			.limit_lo = at->baseline_ticks / 2.6,
			.limit_hi = at->baseline_ticks / 2.6,
		};

		snprintf(row.name, sizeof(row.name), "%s", at->name);
		measure_pair(baseline_side, &fp, post_poll_bluebell, &op, &row.p);
		report_row(&row);
	}
	peer();
	rc = 0;
out:
	rig_free(f);
	rig_free(o);
	return rc;
}

const struct bench_case case_post_poll = {
	.name = "post_poll",
	.what = "post and poll over a null device in the same thread; libmlx5 beside it",
	.run = run,
};
