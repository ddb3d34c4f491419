/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Lookup of the lkey of an address. Either one registration is looked up repeatedly (hit), or 64
 * registrations in turn, which is more than the cache holds (miss).
 */
#include "baseline.h"
#include "soft.h"

#define REGIONS 64
#define REGION  4096

struct lkey {
	uint64_t n;
	uint64_t addr[BASELINE_SPREAD + 1];
	struct baseline_range ranges[REGIONS];
	struct bb_lkey_cache cache;
	bool hit;
};

static double
baseline_side(void *arg)
{
	const struct lkey *l = arg;
	uint64_t t = tsc(), sum;

	sum = l->hit ? baseline_range_one(&l->ranges[0], l->addr, l->n)
		     : baseline_range_search(l->ranges, REGIONS, l->addr, l->n);
	return sum == 0 ? -1 : ns_since(t) / (double)l->n;
}

static double
bluebell_side(void *arg)
{
	struct lkey *l = arg;
	uint64_t i, bad = 0, t = tsc();

	for (i = 0; i < l->n; i++) {
		const uint64_t a = l->addr[i & BASELINE_SPREAD];

		bad += bb_mem_lkey(&l->cache, (const void *)(uintptr_t)a, 64) == BB_LKEY_NONE;
	}
	return bad != 0 ? -1 : ns_since(t) / (double)l->n;
}

static void
measure(struct lkey *l, const char *name)
{
	uint64_t misses = l->cache.misses;
	struct row row = {
		.unit = "ns",
		.goal = l->hit ? GOAL_BELOW : GOAL_NONE,
		.target = 3,
	};

	snprintf(row.name, sizeof(row.name), "%s", name);
	measure_pair(baseline_side, l, bluebell_side, l, &row.p);
	snprintf(row.note, sizeof(row.note), "%.0f %% of the lookups missed the cache",
		 100.0 * (double)(l->cache.misses - misses) / ((double)l->n * (opts.repeat + 1)));
	report_row(&row);
}

static int
run(void)
{
	static struct lkey l;
	struct bb_mr *mrs[REGIONS] = {NULL};
	struct soft s;
	unsigned int i;
	int rc;

	/* Registers every other page, so that adjacent registrations do not merge. */
	rc = soft_open(&s, "soft0", 1, 16, 2 * REGIONS * REGION);
	if (rc != 0)
		return rc;
	bb_mr_dereg(s.src);
	s.src = NULL;
	for (i = 0; i < REGIONS && rc == 0; i++) {
		uint8_t *at = s.from + 2 * (size_t)i * REGION;

		rc = bb_mr_reg(s.pd, at, REGION, BB_ACCESS_LOCAL_WRITE, &mrs[i]);
		l.ranges[i] = (struct baseline_range){(uintptr_t)at, (uintptr_t)at + REGION, i + 1};
	}
	if (rc != 0)
		goto out;
	bb_lkey_cache_init(&l.cache, s.pd);
	l.n = opts.quick ? 20000 : 100000;
	for (i = 0; i <= BASELINE_SPREAD; i++)
		l.addr[i] = l.ranges[0].start + i * 7;
	l.hit = true;
	measure(&l, "lkey/hit");
	/*
	 * Steps by 37, which is coprime to 64. So every registration is used once before any
	 * registration is used again.
	 */
	for (i = 0; i <= BASELINE_SPREAD; i++)
		l.addr[i] = l.ranges[i * 37 % REGIONS].start + i * 7;
	l.hit = false;
	measure(&l, "lkey/miss");
out:
	for (i = 0; i < REGIONS; i++)
		if (mrs[i] != NULL)
			bb_mr_dereg(mrs[i]);
	soft_close(&s);
	return rc;
}

const struct bench_case case_lkey = {
	.name = "lkey",
	.what = "address to lkey: hit and miss",
	.run = run,
};
