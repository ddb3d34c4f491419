/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The cost of a post: WQE, doorbell record and doorbell, without a device or completions. After
 * every 64 WQEs the case marks all WQEs of the queue as complete, which costs next to nothing.
 */
#include <errno.h>
#include <string.h>

#include "bench.h"
#include "rig.h"

struct post {
	struct rig *r;
	uint32_t batch;
	uint64_t n;
};

static double
baseline_inline8(void *arg)
{
	struct post *p = arg;
	uint64_t t = tsc();

	baseline_post_inline8(&p->r->baseline, p->n, p->batch);
	return ns_since(t) / (double)p->n;
}

static double
baseline_sge64(void *arg)
{
	struct post *p = arg;
	uint64_t t = tsc();

	baseline_post_sge64(&p->r->baseline, p->n, p->batch, BASELINE_SIGNAL_ALL);
	return ns_since(t) / (double)p->n;
}

/* Inlined, because posts are inlined in programs: a call per WQE would measure the bench itself. */
static inline __attribute__((always_inline)) double
post_bluebell(struct post *p, int (*post)(struct bb_qp *, struct rig_data, uint64_t, uint32_t))
{
	struct rig *r = p->r;
	const struct rig_data data = rig_data(r);
	const uint32_t batch = p->batch;
	const uint64_t n = p->n;
	uint64_t i, t = tsc();
	uint32_t k;

	for (i = 0; i < n; i += batch) {
		for (k = 0; k < batch; k++)
			if (post(&r->qp, data, i + k, BB_SEND_SIGNALED) != 0)
				return -1;
		bb_qp_ring(&r->qp);
		if (((i + batch) & 63) == 0)
			bb_sq_complete(&r->qp.sq, (uint16_t)(r->qp.sq.pi - 1));
	}
	return ns_since(t) / (double)p->n;
}

static double
bluebell_inline8(void *arg)
{
	return post_bluebell(arg, rig_post_inline8);
}

static double
bluebell_sge64(void *arg)
{
	return post_bluebell(arg, rig_post_sge64);
}

static int
run(void)
{
	static const struct {
		uint32_t batch;
		double limit, target;
	} points[] = {
		{1, 4.4, 2.0},
		{16, 1.24, 0},
		{32, 1.19, 2.5},
	};
	struct rig *f = rig_new(false), *o = rig_new(true);
	unsigned int i, k;
	int rc = -ENOMEM;

	if (f == NULL || o == NULL)
		goto out;
	for (k = 0; k < 2; k++) {
		for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
			const uint64_t n = opts.quick ? 64 * 100 : 64 * 800;
			struct post fp = {f, points[i].batch, n}, op = {o, points[i].batch, n};
			struct row row = {
				.unit = "ns/WQE",
				.goal = points[i].target != 0 ? GOAL_AT_MOST : GOAL_NONE,
				.target = points[i].target,
				.limit_by = LIMIT_NS,
				.limit_lo = points[i].limit,
				.limit_hi = points[i].limit,
			};

			snprintf(row.name, sizeof(row.name), "post/%s/batch%u",
				 k == 0 ? "inline8" : "sge64", points[i].batch);
			measure_pair(k == 0 ? baseline_inline8 : baseline_sge64, &fp,
				     k == 0 ? bluebell_inline8 : bluebell_sge64, &op, &row.p);
			report_row(&row);
		}
	}
	rc = 0;
out:
	rig_free(f);
	rig_free(o);
	return rc;
}

const struct bench_case case_post = {
	.name = "post",
	.what = "build a WQE, doorbell record, doorbell; batch 1, 16, 32",
	.run = run,
};
