/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The cost of a poll alone: of an empty CQ, and of a CQ with CQEs that another core writes. */
#include <errno.h>

#include "bench.h"
#include "rig.h"

enum {
	/*
	 * number of CQEs that the writer thread writes at a time; they complete the WQEs in blocks
	 * 0 to FILL - 1
	 */
	FILL = (1 << RIG_LOG_CQES) / 2,
};

struct poll {
	struct rig *r;
	uint64_t n;
	/*
	 * Used for polls of CQEs. In round k, from 1 to rounds, the main thread sets go to k. Then
	 * the writer thread writes FILL CQEs into the ring and sets ready to k.
	 */
	uint32_t rounds;
	uint32_t go, ready; /* accessed with __atomic */
};

static double
baseline_empty(void *arg)
{
	struct poll *p = arg;
	uint64_t t = tsc();

	if (baseline_poll_empty(&p->r->baseline, p->n) != 0)
		return -1;
	return ns_since(t) / (double)p->n;
}

static double
bluebell_empty(void *arg)
{
	struct poll *p = arg;
	uint64_t i, t = tsc();
	unsigned int found = 0;
	struct bb_wc wc[32];

	for (i = 0; i < p->n; i++)
		found += bb_cq_poll(&p->r->cq, wc, 32);
	return found != 0 ? -1 : ns_since(t) / (double)p->n;
}

static void *
writer(void *arg)
{
	struct poll *p = arg;
	uint32_t k;

	for (k = 1; k <= p->rounds; k++) {
		while (__atomic_load_n(&p->go, __ATOMIC_ACQUIRE) != k)
			;
		baseline_write_cqes(&p->r->dev, FILL);
		__atomic_store_n(&p->ready, k, __ATOMIC_RELEASE);
	}
	return NULL;
}

static double
rounds(struct poll *p, uint32_t (*take)(struct rig *r))
{
	double v[BENCH_MAX_REPEAT];
	struct peer *peer;
	uint32_t k, taken = FILL;

	p->go = p->ready = 0;
	if (peer_start(writer, p, &peer) != 0)
		return -1;
	for (k = 1; k <= p->rounds; k++) {
		uint64_t t;

		__atomic_store_n(&p->go, k, __ATOMIC_RELEASE);
		while (__atomic_load_n(&p->ready, __ATOMIC_ACQUIRE) != k)
			;
		t = tsc();
		if (take(p->r) != FILL)
			taken = 0;
		v[k - 1] = ns_since(t) / FILL;
	}
	peer_join(peer);
	return taken == FILL ? median(v, p->rounds) : -1;
}

static uint32_t
take_baseline(struct rig *r)
{
	return baseline_poll_ready(&r->baseline, FILL);
}

static uint32_t
take_bluebell(struct rig *r)
{
	struct bb_wc wc[32];
	uint32_t n, got = 0;

	do {
		n = bb_cq_poll(&r->cq, wc, 32);
		got += n;
	} while (n != 0 && got < FILL);
	return got;
}

static double
baseline_ready(void *arg)
{
	return rounds(arg, take_baseline);
}

static double
bluebell_ready(void *arg)
{
	return rounds(arg, take_bluebell);
}

/* Posts FILL signalled WQEs from block 0, which the CQEs complete. */
static int
fill_queue(struct rig *r)
{
	uint32_t i;

	for (i = 0; i < FILL; i++)
		if (rig_post_inline8(&r->qp, rig_data(r), i, BB_SEND_SIGNALED) != 0)
			return -EIO;
	return 0;
}

static int
run(void)
{
	struct rig *f = rig_new(false), *o = rig_new(true);
	struct poll fp = {.r = f, .n = opts.quick ? 20000 : 100000, .rounds = 300};
	struct poll op = {.r = o, .n = fp.n, .rounds = 300};
	struct row empty = {
		.name = "poll/empty",
		.unit = "ns",
		.limit_by = LIMIT_NS,
		.limit_lo = 0.7,
		.limit_hi = 0.7,
	};
	struct row ready = {
		.name = "poll/cqe",
		.unit = "ns/CQE",
		.limit_by = LIMIT_NS,
		.limit_lo = 9.9,
		.limit_hi = 9.9,
		.note = "CQEs written by the other core, taken in bursts of 32",
	};
	int rc = -ENOMEM;

	if (f == NULL || o == NULL)
		goto out;
	rc = fill_queue(o);
	if (rc != 0)
		goto out;
	measure_pair(baseline_empty, &fp, bluebell_empty, &op, &empty.p);
	report_row(&empty);
	if (have_peer_cpu()) {
		measure_pair_cross(baseline_ready, &fp, bluebell_ready, &op, &ready.p);
		report_row(&ready);
	} else {
		report_skip(ready.name, "needs two CPUs");
	}
out:
	rig_free(f);
	rig_free(o);
	return rc;
}

const struct bench_case case_poll = {
	.name = "poll",
	.what = "poll an empty CQ; poll CQEs written by the other core",
	.run = run,
};
