/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages of 48 bytes through the ring of examples/common between two processes, over the
 * shared-memory port, compared with an rte_ring in mapped memory.
 */
#include <errno.h>
#include <unistd.h>

#include "link.h"
#include "ring.h"

static int
run(void)
{
	static const struct {
		const char *name, *unit;
		measure_fn baseline, bluebell;
		uint64_t n;
		uint32_t batch;
		enum goal goal;
		double target;
	} points[] = {
		{"ring/latency", "ns one way; baseline: rte_ring", baseline_ring_latency,
		 ring_latency, 20000, 1, GOAL_AT_MOST, 1.3},
		{"ring/rate/batch1", "M/s; baseline: rte_ring", baseline_ring_rate, ring_rate,
		 256000, 1, GOAL_AT_LEAST, 0.3},
		{"ring/rate/batch32", "M/s; baseline: rte_ring", baseline_ring_rate, ring_rate,
		 1024000, RING_BATCH, GOAL_AT_LEAST, 0.3},
	};
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	unsigned int i;
	struct soft s;
	int rc = eal_start();

	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("ring", "needs two CPUs");
		return 0;
	}
	rc = remote_start();
	if (rc != 0)
		return rc;
	snprintf(here, sizeof(here), "soft0,shm=bench-ring-%d,ip=192.0.2.1/24", getpid());
	snprintf(there, sizeof(there), "soft0,shm=bench-ring-%d,ip=192.0.2.2/24", getpid());
	soft_inline = RDMA_RING_INLINE;
	rc = link_open(&s, here, there);
	soft_inline = SOFT_INLINE;
	if (rc == -ENOTSUP || rc == -EINVAL) {
		report_skip("ring", "this build's software device has no shared-memory port");
		return 0;
	}
	if (rc != 0)
		return rc;
	rc = ring_open(&s);
	for (i = 0; i < sizeof(points) / sizeof(points[0]) && rc == 0; i++) {
		struct ring_run r = {&s, opts.quick ? points[i].n / 20 : points[i].n,
				     points[i].batch};
		struct row row = {
			.unit = points[i].unit,
			.goal = points[i].goal,
			.target = points[i].target,
		};

		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair_cross(points[i].baseline, &r, points[i].bluebell, &r, &row.p);
		report_row(&row);
	}
	link_close(&s);
	return rc;
}

const struct bench_case case_ring = {
	.name = "ring",
	.what = "messages through rdma_ring to another process, beside rte_ring",
	.run = run,
};
