/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A baseline for RoCEv2: packets over net_memif whose payload is copied in and out, with a CRC at
 * both ends.
 */
#include "raw.h"
#include "soft.h"

static int
run(void)
{
	static const struct {
		const char *name;
		uint32_t size;
		double limit;
	} points[] = {
		{"memif/64B/rate", 64 - BASELINE_NET_OVERHEAD, 30},
		{"memif/82B/rate", BASELINE_NET_WRITE8, 0},
		{"memif/1KiB/rate", 1024, 9.3},
		{"memif/4KiB/rate", 4096, 4},
	};
	struct raw raw;
	struct raw_run ping = {&raw, opts.quick ? 1000 : 10000, 64 - BASELINE_NET_OVERHEAD, 0};
	struct row latency = {
		.name = "memif/64B/latency",
		.unit = "ns one way",
		.limit_by = LIMIT_L,
		.limit_lo = 1.5,
		.limit_hi = 1.5,
	};
	unsigned int i;
	int rc = eal_start();

	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("memif", "needs two CPUs");
		return 0;
	}
	rc = raw_open_memif(&raw, 0, 0);
	if (rc != 0)
		return rc;
	measure_pair_cross(raw_latency, &ping, NULL, NULL, &latency.p);
	report_row(&latency);
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		const uint64_t n = (opts.quick ? 20000 : 300000) / (points[i].size > 100 ? 4 : 1);
		struct raw_run r = {&raw, n, points[i].size, n + 64};
		struct row row = {
			.unit = "M/s",
			.limit_by = points[i].limit != 0 ? LIMIT_RATE_L : LIMIT_NONE,
			.limit_lo = points[i].limit,
			.limit_hi = points[i].limit,
		};

		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair_cross(raw_rate, &r, NULL, NULL, &row.p);
		report_row(&row);
	}
	raw_close(&raw);
	return 0;
}

const struct bench_case case_memif = {
	.name = "memif",
	.what = "baseline alone: raw packets over net_memif, copied, with a CRC; 64 B to 4 KiB",
	.run = run,
};
