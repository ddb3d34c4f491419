/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A baseline: the time from a write to memory that both processes have mapped until the second
 * process sees it.
 */
#include "baseline_proc.h"
#include "soft.h"

static int
run(void)
{
	static const struct {
		const char *name;
		uint32_t size;
		double limit;
	} points[] = {
		{"mapped/8B", 8, 76.0 / 125},
		{"mapped/4KiB", 4096, 123.0 / 125},
	};
	unsigned int i;
	int rc = eal_start();

	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("mapped", "needs two CPUs");
		return 0;
	}
	rc = remote_start();
	for (i = 0; i < sizeof(points) / sizeof(points[0]) && rc == 0; i++) {
		struct baseline_proc_run f = {opts.quick ? 2000 : 20000, points[i].size};
		struct row row = {
			.unit = "ns one way",
			.limit_by = LIMIT_L,
			.limit_lo = points[i].limit,
			.limit_hi = points[i].limit,
		};

		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair_cross(baseline_mapped_latency, &f, NULL, NULL, &row.p);
		report_row(&row);
	}
	return rc;
}

const struct bench_case case_mapped = {
	.name = "mapped",
	.what = "baseline alone: time until another process sees a write; 8 bytes, 4 KiB",
	.run = run,
};
