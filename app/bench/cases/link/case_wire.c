/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * RoCEv2 between two processes over a port, compared with raw packets of the same payload over
 * another net_memif, and with TCP.
 */
#include <errno.h>

#include "baseline_proc.h"
#include "link.h"
#include "pairs.h"
#include "raw.h"
#include "ucx.h"

#define RAW_ID  0
#define SOFT_ID 1

/* Creates a pair of net_memif for the two devices. */
static int
make_vdevs(void)
{
	struct remote_msg msg = {.op = REMOTE_VDEV};
	char here[REMOTE_TEXT];
	int rc;

	raw_memif_text(here, sizeof(here), true, SOFT_ID, 0);
	raw_memif_text(msg.text, sizeof(msg.text), false, SOFT_ID, 0);
	rc = vdev_make(here);
	return rc == 0 ? remote_call(&msg) : rc;
}

int
wire_specs(char *here, char *there, size_t size, const char *more)
{
	static const char own[] = "soft0,port=net_memif%u,framesz=4198,ip=192.0.2.%u/24%s";
	int rc = remote_start();

	if (rc != 0)
		return rc;
	if (opts.device != NULL) {
		snprintf(here, size, "%s%s", opts.device, more);
		snprintf(there, size, "%s%s", opts.peer_device, more);
		return 0;
	}
	snprintf(here, size, own, SOFT_ID, 1, more);
	snprintf(there, size, own, SOFT_ID, 2, more);
	return make_vdevs();
}

void
tcp_pairs(const char *name, struct soft *s)
{
	struct baseline_proc_run ping = {opts.quick ? 200 : 2000, 8};
	struct baseline_proc_run stream = {opts.quick ? 1000 : 20000, 8};
	struct ucx_test am_ping = {"ucp_am_lat", "tcp", ping.n, 8};
	struct ucx_test am_stream = {"ucp_am_bw", "tcp", stream.n, 8};
	struct link_run our_ping = {.s = s, .n = opts.quick ? 640 : 6400};
	struct link_run our_stream = {.s = s, .n = opts.quick ? 5120 : 102400};
	const bool ucx = ucx_present();
	struct row row = {
		.unit = ucx ? "ns one way; baseline: UCX over TCP" : "ns one way; baseline: TCP",
		.goal = GOAL_AT_MOST,
		.target = 0.1,
	};

	snprintf(row.name, sizeof(row.name), "%s/write8/latency/tcp", name);
	if (ucx)
		measure_pair_cross(ucx_latency, &am_ping, link_latency, &our_ping, &row.p);
	else
		measure_pair_cross(baseline_tcp_latency, &ping, link_latency, &our_ping, &row.p);
	report_row(&row);

	row = (struct row){
		.unit = ucx ? "M/s; baseline: UCX over TCP" : "M/s; baseline: TCP",
		.goal = GOAL_AT_LEAST,
		.target = 30,
	};
	snprintf(row.name, sizeof(row.name), "%s/write8/rate/tcp", name);
	if (ucx)
		measure_pair_cross(ucx_rate, &am_stream, link_write_rate, &our_stream, &row.p);
	else
		measure_pair_cross(baseline_tcp_rate, &stream, link_write_rate, &our_stream,
				   &row.p);
	report_row(&row);
}

static void
small(struct soft *s, struct raw *raw)
{
	const uint64_t n = opts.quick ? 5120 : 204800;
	struct raw_run ping = {raw, opts.quick ? 640 : 6400, BASELINE_NET_WRITE8, 0};
	struct raw_run stream = {raw, opts.quick ? 20000 : 300000, BASELINE_NET_WRITE8, 1u << 20};
	struct link_run our_ping = {.s = s, .n = ping.n};
	struct link_run our_stream = {.s = s, .n = n};
	struct row latency = {
		.name = "wire/write8/latency",
		.unit = "ns one way; baseline: memif + CRC",
		.goal = GOAL_AT_MOST,
		.target = 1.5,
	};
	struct row rate = {
		.name = "wire/write8/rate",
		.unit = "M/s; baseline: memif + CRC",
		.goal = GOAL_AT_LEAST,
		.target = 0.3,
	};
	struct row sends = {.name = "wire/send8/rate", .unit = "M/s; baseline: memif + CRC"};

	measure_pair_cross(raw_latency, &ping, link_latency, &our_ping, &latency.p);
	report_row(&latency);
	measure_pair_cross(raw_rate, &stream, link_write_rate, &our_stream, &rate.p);
	report_row(&rate);
	measure_pair_cross(raw_rate, &stream, link_send_rate, &our_stream, &sends.p);
	report_row(&sends);
}

static void
large(struct soft *s, struct raw *raw)
{
	static const struct {
		const char *name;
		uint32_t size, window;
	} points[] = {
		/*
		 * Each window exceeds the number of WRITEs that the device keeps in flight, so the
		 * device always has the next WRITE. The baseline's window, 2^20 packets, exceeds
		 * its ring too.
		 */
		{"wire/write/4KiB", 4096, 128},
		{"wire/write/64KiB", 65536, 32},
		{"wire/write/1MiB", 1048576, 4},
	};
	struct raw_run stream = {raw, opts.quick ? 5000 : 50000, 4096, 1u << 20};
	unsigned int i;

	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		struct link_run bluebell = {
			.s = s,
			.n = (opts.quick ? 1 : 16) * (LINK_BYTES / points[i].size),
			.size = points[i].size,
			.set = BASELINE_NET_SET,
			.window = points[i].window,
		};
		struct row row = {
			.unit = "GB/s; baseline: memif + CRC, 4 KiB",
			.goal = GOAL_AT_LEAST,
			.target = 0.6,
		};

		snprintf(row.name, sizeof(row.name), "%s", points[i].name);
		measure_pair_cross(raw_bandwidth, &stream, link_bandwidth, &bluebell, &row.p);
		report_row(&row);
	}
}

static int
run(void)
{
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	struct soft s;
	struct raw raw;
	int rc = eal_start();

	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("wire", "needs two CPUs");
		return 0;
	}
	rc = wire_specs(here, there, sizeof(here), "");
	if (rc != 0)
		return rc;
	rc = link_open(&s, here, there);
	if (rc == -ENOTSUP) {
		report_skip("wire", "this build's software device has no ports");
		return 0;
	}
	if (rc != 0)
		return rc;
	rc = raw_open_memif(&raw, 0, RAW_ID);
	if (rc == 0) {
		small(&s, &raw);
		large(&s, &raw);
		raw_close(&raw);
		tcp_pairs("wire", &s);
	}
	link_close(&s);
	return rc;
}

const struct bench_case case_wire = {
	.name = "wire",
	.what = "RoCEv2 to another process over net_memif, or --device and --peer-device",
	.run = run,
};
