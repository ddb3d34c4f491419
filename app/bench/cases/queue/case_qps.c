/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Measures a device with 10,000 queue pairs in RTS. First, each of them transfers data, which is
 * checked. Then there are three cases. In the first, only one queue pair is active; the baseline is
 * a device that has only one pair. In the second, several queue pairs ring the same doorbell
 * register between two polls of the device. In the third, 1,000 queue pairs have one WRITE
 * outstanding each. This case also measures how many polls of the device a WRITE waits for.
 */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "soft.h"

#define DEPTH     16
#define ACTIVE    1000
#define TOGETHER  10
#define MAX_POLLS 1000000

static uint32_t
many_qps(void)
{
	return opts.quick ? 1000 : 10000;
}

static uint64_t
resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	fclose(f);
	return (uint64_t)pages * 4096;
}

/*
 * Makes every QP write 8 bytes, different for each QP, to its peer's buffer, and compares all of
 * them.
 */
static int
check_traffic(struct soft *s)
{
	uint32_t i, done = 0, polls = 0;
	struct bb_wc wc[64];

	memset(s->to, 0, s->bytes);
	for (i = 0; i < s->n; i++) {
		const uint64_t v = 0x5ec0de0000000000u + i * 0x10001u;

		if (bb_post_write_inline(s->qps[i], i, &v, 8, (uintptr_t)(s->to + 8 * (size_t)i),
					 s->dst->rkey, BB_SEND_SIGNALED) != 0)
			return -EIO;
		bb_qp_ring(s->qps[i]);
	}
	while (done < s->n && polls++ < MAX_POLLS) {
		unsigned int k, got = bb_cq_poll(s->cq, wc, RTE_DIM(wc));

		for (k = 0; k < got; k++)
			if (wc[k].status != BB_WC_SUCCESS)
				return -EIO;
		done += got;
	}
	for (i = 0; i < s->n; i++) {
		const uint64_t v = 0x5ec0de0000000000u + i * 0x10001u;

		if (memcmp(s->to + 8 * (size_t)i, &v, 8) != 0) {
			fprintf(stderr,
				"bench: queue pair %u of %u: its write did not arrive, "
				"or arrived with wrong data\n",
				i, s->n);
			return -EIO;
		}
	}
	return done == s->n ? 0 : -ETIMEDOUT;
}

static void
one_active(struct soft *one, struct soft *all)
{
	static const struct {
		const char *name;
		uint32_t batch;
	} points[] = {{"batch1", 1}, {"batch8", 8}};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const uint64_t n = opts.quick ? 800 : 8000;
		struct soft_run a = {one, n, points[i].batch, points[i].batch, true, NULL};
		struct soft_run b = {all, n, points[i].batch, points[i].batch, true, NULL};
		struct row row = {
			.unit = "ns/write; baseline: 1 pair open",
			.goal = GOAL_AT_MOST,
			.target = 1.5,
		};

		snprintf(row.name, sizeof(row.name), "qps/%u open, 1 active/%s", all->n,
			 points[i].name);
		measure_pair(soft_write8, &a, soft_write8, &b, &row.p);
		report_row(&row);
	}
}

/*
 * Measures rounds in which a few of the device's many QPs ring the doorbell between two polls. In
 * the baseline only one of these QPs rings it.
 */
static void
some_active(struct soft *s)
{
	static const struct {
		const char *name;
		uint32_t active;
		bool random;
	} points[] = {{"2", 2, false},
		      {"10", TOGETHER, false},
		      {"100", 10 * TOGETHER, false},
		      {"10 others each time", TOGETHER, true}};
	unsigned int i;

	for (i = 0; i < RTE_DIM(points); i++) {
		const uint64_t writes = opts.quick ? 2000 : 20000;
		struct soft_rounds a = {s, writes, 1, false};
		struct soft_rounds b = {s, writes / points[i].active, points[i].active,
					points[i].random};
		struct row row = {
			.unit = "ns/write; baseline: 1 of them",
			.goal = GOAL_AT_MOST,
			.target = 3,
		};

		snprintf(row.name, sizeof(row.name), "qps/%s of %u ring together", points[i].name,
			 s->n);
		measure_pair(soft_together, &a, soft_together, &b, &row.p);
		report_row(&row);
	}
}

static void
many_active(struct soft *s)
{
	double v[BENCH_MAX_REPEAT];
	const uint32_t bound = 2 * s->n / 16 + 1;
	uint64_t worst = 0, w = 0;
	unsigned int i;
	struct row row = {
		.name = "qps/1000 active in turn",
		.unit = "ns/write",
		.p = {.valid = true, .pairs = opts.repeat},
	};

	for (i = 0; i < opts.repeat; i++) {
		v[i] = soft_in_turn(s, ACTIVE, 20 * ACTIVE, &w);
		if (v[i] < 0)
			row.p.valid = false;
		if (w > worst)
			worst = w;
	}
	row.p.bluebell = median(v, opts.repeat);
	if (worst > bound)
		row.p.valid = false;
	snprintf(row.note, sizeof(row.note),
		 "%s write waited longer than %" PRIu64
		 " polls of the device; its bound is 2 x QPs / scan + 1 = %u",
		 worst > bound ? "a" : "no", worst > bound ? bound : worst, bound);
	report_row(&row);
}

static void
memory_row(uint64_t rss, uint64_t heap, uint64_t eal, const struct soft *s)
{
	struct row row = {
		.unit = "bytes",
		.p = {.valid = true, .bluebell = (double)rss / s->n},
	};

	snprintf(row.name, sizeof(row.name), "qps/memory per queue pair");
	snprintf(row.note, sizeof(row.note),
		 "resident, the software device's side included; of EAL's heap %" PRIu64
		 ", of malloc %" PRIu64,
		 eal / s->n, heap / s->n);
	report_row(&row);
}

static uint64_t
eal_heap(void)
{
	struct rte_malloc_socket_stats st;

	return rte_malloc_get_socket_stats(0, &st) == 0 ? st.heap_allocsz_bytes : 0;
}

static int
run(void)
{
	uint64_t rss, heap, eal;
	struct soft one, all;
	int rc;

	rc = soft_open(&one, "soft0", 1, DEPTH, 128 * 1024);
	if (rc != 0)
		return rc;
	rss = resident();
	heap = mallinfo2().uordblks;
	eal = eal_heap();
	rc = soft_open(&all, "soft1", many_qps() / 2, DEPTH, 128 * 1024);
	if (rc != 0)
		goto close_one;
	rc = check_traffic(&all);
	if (rc != 0) {
		fprintf(stderr, "bench: traffic over %u queue pairs: %s\n", all.n, strerror(-rc));
		goto close_all;
	}
	rss = resident() - rss;
	heap = mallinfo2().uordblks - heap;
	eal = eal_heap() - eal;
	one_active(&one, &all);
	some_active(&all);
	many_active(&all);
	memory_row(rss, heap, eal, &all);
close_all:
	soft_close(&all);
close_one:
	soft_close(&one);
	return rc;
}

const struct bench_case case_qps = {
	.name = "qps",
	.what = "10,000 queue pairs: one active, some that ring together, 1,000 in turn, memory",
	.run = run,
};
