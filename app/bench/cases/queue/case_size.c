/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Rate of WRITEs over message size, between two processes, in messages/s. RoCEv2 over net_memif is
 * compared with raw packets, the shared-memory port with UCX and TCP.
 */
#include <errno.h>
#include <unistd.h>

#include <rte_common.h>

#include "baseline_proc.h"
#include "pairs.h"
#include "raw.h"
#include "ucx.h"

#define RAW_ID 0
/* Bytes of headers of a RoCEv2 WRITE over IPv4. The value follows from BASELINE_NET_WRITE8. */
#define HEADERS (BASELINE_NET_WRITE8 - 8)

static const char unit_tcp[] = "M/s; baseline: TCP", unit_ucx[] = "M/s; baseline: UCX put",
		  unit_raw[] = "M/s; baseline: memif + CRC";

/* Returns the number of messages of a run: a power of two that takes some milliseconds. */
static uint64_t
messages(uint32_t size)
{
	const uint64_t bytes = opts.quick ? 1u << 20 : 64u << 20;

	return RTE_MAX(RTE_MIN(bytes / size, opts.quick ? 2048u : 65536u), opts.quick ? 4u : 64u);
}

static struct link_run
writes(struct soft *s, uint32_t size)
{
	const uint32_t window = RTE_MAX(RTE_MIN((2u << 20) / size, 128u), 4u);

	return (struct link_run){
		.s = s,
		.n = messages(size),
		.size = size,
		.set = (uint32_t)RTE_MIN(messages(size) * size, (uint64_t)BENCH_MAX_SIZE),
		.window = window,
		.signal_every = window / 4,
	};
}

static struct row
row_of(const char *port, uint32_t size, const char *unit)
{
	struct row row = {.unit = unit, .plot = PLOT_SIZE, .x = size};

	snprintf(row.name, sizeof(row.name), "size/%u/%s", size, port);
	return row;
}

/*
 * Parameters of the raw baseline. packets is the number of raw packets of a message: as many as
 * RoCEv2 needs with an MTU of 4096.
 */
struct raw_messages {
	struct raw_run run;
	uint32_t packets;
};

static double
raw_messages(void *arg)
{
	struct raw_messages *m = arg;
	double rate = raw_rate(&m->run);

	return rate > 0 ? rate / m->packets : -1;
}

static void
over_memif(struct soft *s, struct raw *raw, uint32_t size)
{
	const uint32_t packets = RTE_MAX(size / BASELINE_NET_MAX, 1u);
	struct raw_messages baseline = {
		{raw, messages(size) * packets, RTE_MIN(size + HEADERS, BASELINE_NET_MAX),
		 1u << 20},
		packets,
	};
	struct link_run bluebell = writes(s, size);
	struct row row = row_of("memif", size, unit_raw);

	row.bluebell_line = "Bluebell, RoCEv2 over memif";
	row.baseline_line = "raw packets over memif, copied, with CRC";
	measure_pair_cross(raw_messages, &baseline, link_messages, &bluebell, &row.p);
	report_row(&row);
}

/*
 * Compares the shared-memory port with UCX if UCX is installed, and reports TCP as an extra row.
 * Otherwise compares it with TCP.
 */
static void
over_shm(struct soft *s, uint32_t size)
{
	const uint64_t n = messages(size);
	struct baseline_proc_run stream = {RTE_MAX(n / 8, UINT64_C(4)), size};
	struct ucx_test put = {"ucp_put_bw", "shm", n, size};
	const bool ucx = ucx_present();
	struct link_run bluebell = writes(s, size);
	struct row row = row_of("shm", size, ucx ? unit_ucx : unit_tcp);

	row.bluebell_line = "Bluebell, shared memory";
	row.baseline_line = ucx ? "UCX put, shared memory" : "TCP of the kernel";
	/* Uses one buffer of the message size, as ucx_perftest does. */
	bluebell.set = size;
	measure_pair_cross(ucx ? ucx_rate : baseline_tcp_rate, ucx ? (void *)&put : (void *)&stream,
			   link_messages, &bluebell, &row.p);
	report_row(&row);
	if (!ucx)
		return;
	row = row_of("tcp", size, unit_tcp);
	row.baseline_line = "TCP of the kernel";
	measure_pair_cross(baseline_tcp_rate, &stream, NULL, NULL, &row.p);
	report_row(&row);
}

static int
memif_rows(void)
{
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	struct soft s;
	struct raw raw;
	unsigned int i;
	int rc;

	rc = wire_specs(here, there, sizeof(here), "");
	if (rc == 0)
		rc = link_open(&s, here, there);
	if (rc == -ENOTSUP) {
		report_skip("size/memif", "this build's software device has no ports");
		return 0;
	}
	if (rc != 0)
		return rc;
	rc = raw_open_memif(&raw, 0, RAW_ID);
	for (i = 0; i < opts.sizes.n && rc == 0; i++)
		over_memif(&s, &raw, opts.sizes.at[i]);
	if (rc == 0)
		raw_close(&raw);
	link_close(&s);
	return rc;
}

static int
shm_rows(void)
{
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	struct soft s;
	unsigned int i;
	int rc;

	snprintf(here, sizeof(here), "soft0,shm=bench-size-%d,ip=192.0.2.1/24", getpid());
	snprintf(there, sizeof(there), "soft0,shm=bench-size-%d,ip=192.0.2.2/24", getpid());
	rc = link_open(&s, here, there);
	if (rc == -ENOTSUP || rc == -EINVAL) {
		report_skip("size/shm", "this build's software device has no shared-memory port");
		return 0;
	}
	for (i = 0; i < opts.sizes.n && rc == 0; i++)
		over_shm(&s, opts.sizes.at[i]);
	if (rc == 0)
		link_close(&s);
	return rc;
}

static int
run(void)
{
	int rc = eal_start();

	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("size", "needs two CPUs");
		return 0;
	}
	rc = remote_start();
	if (rc == 0)
		rc = memif_rows();
	return rc == 0 ? shm_rows() : rc;
}

const struct bench_case case_size = {
	.name = "size",
	.what = "rate over message size (--size): memif, shared memory; raw packets, UCX, TCP",
	.run = run,
};
