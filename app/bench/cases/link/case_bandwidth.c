/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Large WRITEs through the inline software device, compared with memcpy() of the same blocks
 * between the same buffers. The one copy that the device makes should be the only cost. memcpy() is
 * measured on the same machine, so it needs no recorded figure.
 */
#include <string.h>

#include "baseline.h"
#include "soft.h"

#define SET (4u << 20)

struct band {
	struct soft *s;
	size_t block;
	uint64_t n;
	uint32_t batch;
};

static double
baseline_side(void *arg)
{
	const struct band *b = arg;
	uint64_t t = tsc();

	baseline_memcpy(b->s->to, b->s->from, b->s->bytes, b->block, b->n);
	return (double)(b->n * b->block) / ns_since(t);
}

static double
bluebell_side(void *arg)
{
	const struct band *b = arg;
	const struct soft *s = b->s;
	struct bb_qp *qp = s->qps[0];
	uint64_t i, t = tsc();
	size_t at = 0;

	for (i = 0; i < b->n; i += b->batch) {
		unsigned int polls = 0;
		struct bb_wc wc;
		uint32_t k;

		for (k = 1; k <= b->batch; k++) {
			struct bb_sge sge = {(uintptr_t)(s->from + at), (uint32_t)b->block,
					     s->src->lkey};

			if (bb_post_write(qp, i + k, &sge, 1, (uintptr_t)(s->to + at), s->dst->rkey,
					  k == b->batch ? BB_SEND_SIGNALED : 0) != 0)
				return -1;
			at += b->block;
			if (at == s->bytes)
				at = 0;
		}
		bb_qp_ring(qp);
		while (bb_cq_poll(s->cq, &wc, 1) == 0)
			if (++polls > 1000000)
				return -1;
		if (wc.status != BB_WC_SUCCESS)
			return -1;
	}
	return (double)(b->n * b->block) / ns_since(t);
}

static int
run(void)
{
	static const struct {
		const char *name;
		size_t block;
		uint32_t batch; /* WQEs per doorbell and per CQE */
		double target;
	} points[] = {
		/*
		 * Uses batches of 16 WQEs, because programs that transfer pages have many
		 * outstanding requests: ib_write_bw has 128, storage queues have 32 and more.
		 */
		{"bandwidth/4KiB", 4096, 16, 0.8},
		{"bandwidth/64KiB", 65536, 4, 0.95},
		{"bandwidth/1MiB", 1048576, 4, 0.95},
	};
	struct soft s;
	unsigned int i;
	int rc = soft_open(&s, "soft0", 1, 64, SET);

	if (rc != 0)
		return rc;
	for (i = 0; i < SET; i++)
		s.from[i] = (uint8_t)(i * 31 + (i >> 12));
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		struct band b = {&s, points[i].block,
				 (opts.quick ? 2 : 8) * (SET / points[i].block), points[i].batch};
		struct row row = {
			.unit = "GB/s; baseline: memcpy",
			.goal = GOAL_AT_LEAST,
			.target = points[i].target,
		};

		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair(baseline_side, &b, bluebell_side, &b, &row.p);
		/*
		 * Clears the target, so that a check can detect data that was not copied. The
		 * baseline writes to the same buffer.
		 */
		memset(s.to, 0, SET);
		if (bluebell_side(&b) < 0 || memcmp(s.from, s.to, SET) != 0)
			row.p.valid = false;
		report_row(&row);
	}
	soft_close(&s);
	return 0;
}

const struct bench_case case_bandwidth = {
	.name = "bandwidth",
	.what = "4 KiB, 64 KiB and 1 MiB writes beside memcpy over the same 4 MiB",
	.run = run,
};
