/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Goodput over a network that loses packets in both directions, compared with the same network
 * without loss. No error may reach the application, and the data must be correct. Each run has a
 * different seed.
 */
#include <errno.h>

#include "pairs.h"

#define REPEAT 3

struct loss {
	unsigned int percent, seed;
	uint64_t n;
};

/* Returns millions of 8-byte messages per second; half of the messages are WRITEs, half SENDs. */
static double
goodput(const struct loss *l, const char *more)
{
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	double writes, sends = -1;
	struct link_run run;
	struct soft s;
	int rc;

	/*
	 * Uses the default ack timeout. opts.quick is for the test of the bench itself. It uses a
	 * long timeout, because that test may run on a slow machine.
	 */
	soft_timeout = opts.quick ? SOFT_TIMEOUT_LONG : SOFT_TIMEOUT_USUAL;
	rc = wire_specs(here, there, sizeof(here), more);
	measure_setup_begin();
	if (rc == 0)
		rc = link_open(&s, here, there);
	measure_setup_end();
	soft_timeout = SOFT_TIMEOUT_LONG;
	if (rc != 0)
		return -1;
	run = (struct link_run){.s = &s, .n = l->n / 2};
	writes = link_write_rate(&run);
	if (writes > 0)
		sends = link_send_rate(&run);
	measure_setup_begin();
	link_close(&s);
	measure_setup_end();
	return sends > 0 ? 2 / (1 / writes + 1 / sends) : -1;
}

static double
without(void *arg)
{
	return goodput(arg, "");
}

static double
with(void *arg)
{
	struct loss *l = arg;
	char more[64];

	snprintf(more, sizeof(more), ",seed=%u,tx_drop=%u", ++l->seed, l->percent);
	return goodput(l, more);
}

static int
run(void)
{
	static const unsigned int percents[] = {1, 10};
	const unsigned int repeat = opts.repeat;
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	unsigned int i;
	struct soft s;
	int rc = eal_start();

	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("loss", "needs two CPUs");
		return 0;
	}
	rc = wire_specs(here, there, sizeof(here), "");
	if (rc == 0)
		rc = link_open(&s, here, there);
	if (rc == -ENOTSUP) {
		report_skip("loss", "this build's software device has no ports");
		return 0;
	}
	if (rc != 0)
		return rc;
	link_close(&s);
	if (opts.repeat > REPEAT)
		opts.repeat = REPEAT;
	for (i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		struct loss l = {.percent = percents[i], .n = opts.quick ? 2048 : 1024000};
		struct row row = {
			.unit = "M/s; baseline: without loss",
			.goal = percents[i] == 1 ? GOAL_AT_LEAST : GOAL_NONE,
			.target = 0.5,
		};

		snprintf(row.name, sizeof(row.name), "loss/%u%%", percents[i]);
		measure_pair_cross(without, &l, with, &l, &row.p);
		snprintf(row.note, sizeof(row.note),
			 "%lu messages in each run, seeds of the loss 1 to %u", (unsigned long)l.n,
			 l.seed);
		report_row(&row);
	}
	opts.repeat = repeat;
	return 0;
}

const struct bench_case case_loss = {
	.name = "loss",
	.what = "goodput over RoCEv2 with 1 % and 10 % of the packets lost",
	.run = run,
};
