/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Measures the rate of 8-byte WRITEs for several numbers of queue pairs. One thread posts, runs the
 * software device and polls. If all queue pairs are active, the baseline is as many queues and a
 * device written by hand. Another measurement uses only one of the queue pairs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "baseline.h"
#include "soft.h"

#define DEPTH 16

/*
 * A hand-written queue of DEPTH blocks and CQEs. All queues share one doorbell register and nothing
 * else.
 */
struct raw_queue {
	uint8_t sq[DEPTH * 64], cq[DEPTH * 64];
	uint32_t sq_rec[16], cq_rec[16];
	struct baseline_qp q;
	struct baseline_dev d;
} __attribute__((aligned(64)));

struct scale {
	struct soft *s;
	struct raw_queue *raw_queues;
	uint32_t qps;
	uint64_t writes;
};

static struct raw_queue *
raw_queues_new(struct soft *s, uint32_t n)
{
	struct raw_queue *raw_queues =
		aligned_alloc(4096, RTE_ALIGN_CEIL(n * sizeof(*raw_queues), 4096));
	static uint64_t reg[8];
	uint32_t i, k;

	if (raw_queues == NULL)
		return NULL;
	memset(raw_queues, 0, n * sizeof(*raw_queues));
	for (i = 0; i < n; i++) {
		struct raw_queue *h = &raw_queues[i];
		const size_t offset = 8 * (size_t)(i % 512);

		h->q = (struct baseline_qp){
			.sq = h->sq,
			.cq = h->cq,
			.sq_mask = DEPTH - 1,
			.cq_mask = DEPTH - 1,
			.cq_log = rte_log2_u32(DEPTH),
			.qpn = 0x100 + i,
			.sq_rec = &h->sq_rec[1],
			.cq_rec = h->cq_rec,
			.reg = reg,
			.src = s->from + offset,
			.raddr = (uintptr_t)s->to + offset,
		};
		h->d = (struct baseline_dev){
			.sq = h->sq,
			.cq = h->cq,
			.sq_mask = DEPTH - 1,
			.cq_mask = DEPTH - 1,
			.cq_log = rte_log2_u32(DEPTH),
			.sq_rec = &h->sq_rec[1],
			.reg = reg,
		};
		for (k = 0; k < DEPTH; k++)
			h->cq[k * 64 + 63] = 0xf1;
	}
	return raw_queues;
}

/*
 * Posts one WRITE on every queue, runs the devices of all queues, polls all queues, and repeats
 * this. Returns millions of WRITEs per second.
 */
static double
raw_in_turn(void *arg)
{
	const struct scale *c = arg;
	const uint64_t rounds = c->writes / c->qps;
	uint64_t r, t = tsc();
	uint32_t i;

	for (r = 0; r < rounds; r++) {
		for (i = 0; i < c->qps; i++)
			baseline_post_inline8(&c->raw_queues[i].q, 1, 1);
		for (i = 0; i < c->qps; i++)
			baseline_ideal_run(&c->raw_queues[i].d);
		for (i = 0; i < c->qps; i++)
			if (baseline_poll(&c->raw_queues[i].q) != 1)
				return -1;
	}
	return 1000 * (double)(rounds * c->qps) / ns_since(t);
}

static double
in_turn(void *arg)
{
	const struct scale *c = arg;
	uint64_t worst;
	double ns = soft_in_turn(c->s, c->qps, c->writes, &worst);

	return ns > 0 ? 1000 / ns : -1;
}

static double
one_active(void *arg)
{
	const struct scale *c = arg;
	struct soft_run run = {c->s, c->writes, 1, DEPTH, true, NULL};
	double ns = soft_write8(&run);

	return ns > 0 ? 1000 / ns : -1;
}

/*
 * Runs @side, a measurement of the baseline or of Bluebell, and returns true if its WRITEs have
 * copied the data.
 */
static bool
written(struct soft *s, uint32_t n, measure_fn side, void *arg)
{
	const size_t bytes = 8 * (size_t)RTE_MIN(n, 512u);
	size_t i;

	for (i = 0; i < bytes; i++)
		s->from[i] = (uint8_t)(i * 7 + 1);
	memset(s->to, 0, bytes);
	return side(arg) > 0 && memcmp(s->from, s->to, bytes) == 0;
}

static int
point(uint32_t n)
{
	const uint64_t writes = RTE_MAX(opts.quick ? 2000u : 40000u, 4 * n) / n * n;
	struct row all = {
		.unit = "M/s; baseline: queues and device by hand",
		.plot = PLOT_QPS,
		.x = n,
		.bluebell_line = "Bluebell, all active, one write each",
		.baseline_line = "queues and device by hand",
	};
	struct row one = {
		.unit = "M/s; baseline: all active",
		.plot = PLOT_QPS,
		.x = n,
		.bluebell_line = "Bluebell, one active, 16 writes",
	};
	struct scale c = {.qps = n, .writes = writes};
	struct soft s;
	int rc = soft_open(&s, "soft0", (n + 1) / 2, DEPTH, 8192);

	if (rc != 0)
		return rc;
	c.s = &s;
	c.raw_queues = raw_queues_new(&s, n);
	if (c.raw_queues == NULL) {
		rc = -ENOMEM;
		goto close;
	}
	snprintf(all.name, sizeof(all.name), "scale/%u/all active", n);
	measure_pair(raw_in_turn, &c, in_turn, &c, &all.p);
	if (!written(&s, n, raw_in_turn, &c) || !written(&s, n, in_turn, &c))
		all.p.valid = false;
	report_row(&all);
	snprintf(one.name, sizeof(one.name), "scale/%u/1 active", n);
	measure_pair(in_turn, &c, one_active, &c, &one.p);
	report_row(&one);
	free(c.raw_queues);
close:
	soft_close(&s);
	return rc;
}

static int
run(void)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < opts.qps.n && rc == 0; i++)
		rc = point(opts.qps.at[i]);
	return rc;
}

const struct bench_case case_scale = {
	.name = "scale",
	.what = "rate over the number of queue pairs (--qps), beside queues written by hand",
	.run = run,
};
