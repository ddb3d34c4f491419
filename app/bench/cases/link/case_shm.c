/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The shared-memory port between two processes, compared with a mapped write, UCX and TCP. */
#include <errno.h>
#include <unistd.h>

#include "baseline_proc.h"
#include "pairs.h"
#include "ucx.h"

static void
compare_ucx(struct soft *s)
{
	static const struct {
		const char *name, *unit;
		measure_fn baseline, bluebell;
		struct ucx_test test;
		uint64_t n;
		uint32_t size;
		enum goal goal;
		double target;
	} points[] = {
		{"shm/write8/latency/ucx",
		 "ns one way; baseline: UCX put",
		 ucx_latency,
		 link_latency,
		 {"ucp_put_lat", "shm", 100000, 8},
		 64000,
		 8,
		 GOAL_AT_MOST,
		 2},
		{"shm/write8/rate/ucx",
		 "M/s; baseline: UCX put",
		 ucx_rate,
		 link_write_rate,
		 {"ucp_put_bw", "shm", 1000000, 8},
		 512000,
		 8,
		 GOAL_AT_LEAST,
		 0.3},
		{"shm/send8/rate/ucx",
		 "M/s; baseline: UCX am",
		 ucx_rate,
		 link_send_rate,
		 {"ucp_am_bw", "shm", 500000, 8},
		 512000,
		 8,
		 GOAL_AT_LEAST,
		 1},
		{"shm/write/4KiB/ucx",
		 "GB/s; baseline: UCX put",
		 ucx_bandwidth,
		 link_bandwidth,
		 {"ucp_put_bw", "shm", 50000, 4096},
		 50000,
		 4096,
		 GOAL_NONE,
		 0},
		{"shm/write/64KiB/ucx",
		 "GB/s; baseline: UCX put",
		 ucx_bandwidth,
		 link_bandwidth,
		 {"ucp_put_bw", "shm", 10000, 65536},
		 10000,
		 65536,
		 GOAL_AT_LEAST,
		 0.9},
		{"shm/write/1MiB/ucx",
		 "GB/s; baseline: UCX put",
		 ucx_bandwidth,
		 link_bandwidth,
		 {"ucp_put_bw", "shm", 500, 1048576},
		 500,
		 1048576,
		 GOAL_AT_LEAST,
		 1},
	};
	unsigned int i;

	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		struct ucx_test test = points[i].test;
		/* Uses one buffer of the message size, as ucx_perftest does. */
		struct link_run bluebell = {
			.s = s,
			.n = points[i].n,
			.size = points[i].size,
			.set = points[i].size,
			.window = points[i].size > 65536 ? 4 : 32,
		};
		struct row row = {
			.unit = points[i].unit,
			.goal = points[i].goal,
			.target = points[i].target,
		};

		if (!ucx_present()) {
			report_skip(points[i].name, "ucx_perftest is not installed (Debian: "
						    "ucx-utils)");
			continue;
		}
		if (opts.quick) {
			test.n /= 50;
			bluebell.n /= 50;
		}
		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair_cross(points[i].baseline, &test, points[i].bluebell, &bluebell,
				   &row.p);
		report_row(&row);
	}
}

static int
run(void)
{
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	struct baseline_proc_run mapped = {opts.quick ? 2000 : 20000, 8};
	struct soft s;
	struct link_run bluebell = {.s = &s, .n = mapped.n};
	struct row latency = {
		.name = "shm/write8/latency",
		.unit = "ns one way; baseline: mapped",
		.goal = GOAL_BELOW_L,
		.target = 1.2,
	};
	int rc = eal_start();

	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("shm", "needs two CPUs");
		return 0;
	}
	rc = remote_start();
	if (rc != 0)
		return rc;
	snprintf(here, sizeof(here), "soft0,shm=bench-%d,ip=192.0.2.1/24", getpid());
	snprintf(there, sizeof(there), "soft0,shm=bench-%d,ip=192.0.2.2/24", getpid());
	rc = link_open(&s, here, there);
	if (rc == -ENOTSUP || rc == -EINVAL) {
		report_skip("shm", "this build's software device has no shared-memory port");
		return 0;
	}
	if (rc != 0)
		return rc;
	measure_pair_cross(baseline_mapped_latency, &mapped, link_latency, &bluebell, &latency.p);
	report_row(&latency);
	compare_ucx(&s);
	tcp_pairs("shm", &s);
	link_close(&s);
	return 0;
}

const struct bench_case case_shm = {
	.name = "shm",
	.what = "the shared-memory port to another process, beside UCX",
	.run = run,
};
