/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Post and poll together: 8-byte inline writes over the null device, which runs
 * in the same thread and is the same code for both sides.
 */
#include <errno.h>

#include "bench.h"
#include "rig.h"

struct post_poll {
	struct rig *r;
	uint32_t batch;
	enum floor_signal sig;
	uint64_t n;
};

static double
floor_side(void *arg)
{
	struct post_poll *p = arg;
	uint64_t t = tsc();

	floor_post_poll(&p->r->floor, p->n, p->batch, p->sig, floor_null_run, &p->r->dev);
	return ns_since(t) / (double)p->n;
}

static double
our_side(void *arg)
{
	struct post_poll *p = arg;
	struct rig *r = p->r;
	const struct rig_data data = rig_data(r);
	const uint32_t batch = p->batch;
	const uint32_t cqes = p->sig == FLOOR_SIGNAL_ALL ? batch : 1;
	const uint32_t flags = p->sig == FLOOR_SIGNAL_ALL ? BB_SEND_SIGNALED : 0;
	uint64_t i, t = tsc();
	struct bb_wc wc[32];

	for (i = 0; i < p->n; i += batch) {
		uint32_t k, got = 0;

		for (k = 0; k < batch; k++)
			if (rig_post_inline8(&r->qp, data, i + k,
					     k + 1 == batch ? BB_SEND_SIGNALED : flags) != 1)
				return -1;
		bb_qp_ring(&r->qp);
		floor_null_run(&r->dev);
		while (got < cqes)
			got += bb_cq_poll(&r->cq, wc, 32);
		if (wc[0].status != BB_WC_SUCCESS)
			return -1;
	}
	return ns_since(t) / (double)p->n;
}

static int
run(void)
{
	/* Ticks of 2.6 GHz recorded elsewhere: the floor, and what libmlx5 44 took. */
	static const struct {
		const char *name;
		uint32_t batch;
		enum floor_signal sig;
		double floor_ticks, libmlx5_ticks, target;
	} points[] = {
		{"post_poll/batch1/all", 1, FLOOR_SIGNAL_ALL, 46, 132, 1.4},
		{"post_poll/batch16/all", 16, FLOOR_SIGNAL_ALL, 17, 71, 2.0},
		{"post_poll/batch16/last", 16, FLOOR_SIGNAL_LAST, 14, 41, 1.4},
	};
	struct rig *f = rig_new(false), *o = rig_new(true);
	unsigned int i;
	int rc = -ENOMEM;

	if (f == NULL || o == NULL)
		goto out;
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		const uint64_t n = opts.quick ? 16 * 200 : 16 * 1500;
		struct post_poll fp = {f, points[i].batch, points[i].sig, n};
		struct post_poll op = {o, points[i].batch, points[i].sig, n};
		struct row row = {
			.unit = "ns/WQE",
			.goal = GOAL_AT_MOST,
			.target = points[i].target,
			.limit_by = LIMIT_NS,
			.limit_lo = points[i].floor_ticks / 2.6,
			.limit_hi = points[i].floor_ticks / 2.6,
		};

		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair(floor_side, &fp, our_side, &op, &row.p);
		snprintf(row.note, sizeof(row.note),
			 "libmlx5 44's ibv_post_send, recorded elsewhere, scaled by clock: %.1f ns",
			 points[i].libmlx5_ticks / 2.6 * row.p.floor_limit_scale);
		report_row(&row);
	}
	report_skip("post_poll/ibv_post_send", "not measured here: libmlx5 needs a device");
	rc = 0;
out:
	rig_free(f);
	rig_free(o);
	return rc;
}

const struct bench_case case_post_poll = {
	.name = "post_poll",
	.what = "post and poll over a null device in the same thread",
	.run = run,
};
