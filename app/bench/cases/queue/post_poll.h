/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * WRITEs of 8 bytes inline in batches. The null device executes each batch, and the program then
 * polls the CQ.
 */
#ifndef POST_POLL_H
#define POST_POLL_H

#include "bench.h"
#include "rig.h"

struct post_poll {
	struct rig *r;
	uint32_t batch;
	enum baseline_signal sig;
	uint64_t n;
};

static const struct post_poll_point {
	const char *name;
	uint32_t batch;
	enum baseline_signal sig;
	/*
	 * TSC ticks of the baseline, recorded on another machine with 2.6 GHz; and target for the
	 * ratio
	 */
	double baseline_ticks, target;
} post_poll_points[] = {
	{"post_poll/batch1/all", 1, BASELINE_SIGNAL_ALL, 46, 1.4},
	{"post_poll/batch16/all", 16, BASELINE_SIGNAL_ALL, 17, 2.0},
	{"post_poll/batch16/last", 16, BASELINE_SIGNAL_LAST, 14, 1.4},
};
#define POST_POLL_POINTS (sizeof(post_poll_points) / sizeof(post_poll_points[0]))

/* Measures Bluebell; @arg is a struct post_poll. Returns ns per WRITE. */
static inline double
post_poll_bluebell(void *arg)
{
	struct post_poll *p = arg;
	struct rig *r = p->r;
	const struct rig_data data = rig_data(r);
	const uint32_t batch = p->batch;
	const uint32_t cqes = p->sig == BASELINE_SIGNAL_ALL ? batch : 1;
	const uint32_t flags = p->sig == BASELINE_SIGNAL_ALL ? BB_SEND_SIGNALED : 0;
	uint64_t i, t = tsc();
	struct bb_wc wc[32];

	for (i = 0; i < p->n; i += batch) {
		uint32_t k, got = 0;

		for (k = 0; k < batch; k++)
			if (rig_post_inline8(&r->qp, data, i + k,
					     k + 1 == batch ? BB_SEND_SIGNALED : flags) != 0)
				return -1;
		bb_qp_ring(&r->qp);
		baseline_null_run(&r->dev);
		while (got < cqes)
			got += bb_cq_poll(&r->cq, wc, 32);
		if (wc[0].status != BB_WC_SUCCESS)
			return -1;
	}
	return ns_since(t) / (double)p->n;
}

#endif
