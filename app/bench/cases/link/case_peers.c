/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Measures other transports between two processes of this machine: UCX, and the kernel's TCP. */
#include "baseline_proc.h"
#include "soft.h"
#include "ucx.h"

static void
tcp_rows(void)
{
	struct baseline_proc_run ping = {opts.quick ? 200 : 2000, 8};
	struct baseline_proc_run stream = {opts.quick ? 1000 : 20000, 8};
	struct row latency = {.name = "peers/tcp/latency", .unit = "ns one way, 8 bytes"};
	struct row rate = {.name = "peers/tcp/rate", .unit = "M/s, 8 bytes"};

	measure_pair_cross(baseline_tcp_latency, &ping, NULL, NULL, &latency.p);
	report_row(&latency);
	measure_pair_cross(baseline_tcp_rate, &stream, NULL, NULL, &rate.p);
	report_row(&rate);
}

static int
run(void)
{
	static const struct {
		const char *name, *unit;
		measure_fn fn;
		struct ucx_test test;
	} points[] = {
		{"peers/ucx/shm/put/latency",
		 "ns one way, 8 bytes",
		 ucx_latency,
		 {"ucp_put_lat", "shm", 100000, 8}},
		{"peers/ucx/shm/put/rate",
		 "M/s, 8 bytes",
		 ucx_rate,
		 {"ucp_put_bw", "shm", 1000000, 8}},
		{"peers/ucx/shm/put/4KiB",
		 "GB/s",
		 ucx_bandwidth,
		 {"ucp_put_bw", "shm", 50000, 4096}},
		{"peers/ucx/shm/put/64KiB",
		 "GB/s",
		 ucx_bandwidth,
		 {"ucp_put_bw", "shm", 10000, 65536}},
		{"peers/ucx/shm/put/1MiB",
		 "GB/s",
		 ucx_bandwidth,
		 {"ucp_put_bw", "shm", 500, 1048576}},
		{"peers/ucx/shm/am/latency",
		 "ns one way, 8 bytes",
		 ucx_latency,
		 {"ucp_am_lat", "shm", 100000, 8}},
		{"peers/ucx/shm/am/rate",
		 "M/s, 8 bytes",
		 ucx_rate,
		 {"ucp_am_bw", "shm", 500000, 8}},
		{"peers/ucx/shm/am/64KiB",
		 "GB/s",
		 ucx_bandwidth,
		 {"ucp_am_bw", "shm", 2000, 65536}},
		{"peers/ucx/tcp/am/latency",
		 "ns one way, 8 bytes",
		 ucx_latency,
		 {"ucp_am_lat", "tcp", 5000, 8}},
		{"peers/ucx/tcp/am/rate", "M/s, 8 bytes", ucx_rate, {"ucp_am_bw", "tcp", 50000, 8}},
	};
	unsigned int i;
	int rc = eal_start();

	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("peers", "needs two CPUs");
		return 0;
	}
	rc = remote_start();
	if (rc != 0)
		return rc;
	tcp_rows();
	if (!ucx_present()) {
		report_skip("peers/ucx", "ucx_perftest is not installed (Debian: ucx-utils)");
		return 0;
	}
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		struct ucx_test test = points[i].test;
		struct row row = {.unit = points[i].unit};

		if (opts.quick)
			test.n /= 50;
		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair_cross(points[i].fn, &test, NULL, NULL, &row.p);
		report_row(&row);
	}
	return 0;
}

const struct bench_case case_peers = {
	.name = "peers",
	.what = "peers alone: kernel TCP; UCX by shared memory and TCP, where it is installed",
	.run = run,
};
