/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * bb_perf: can be the peer of ibv_*_pingpong and of perftest.
 *
 * Read next: perf.h (overview), handshake.c and sizes.c (sequence of messages), run_lat.c and
 * run_bw.c (the RDMA), perf_msg.h (the messages), cm.c (-R).
 */
#include <rte_cycles.h>

#include "perf.h"

static int
run_test(struct perf *p)
{
	if (p->o.proto->verb != VERB_PINGPONG)
		return sizes_run(p);
	if (run_pingpong(p) != 0)
		return -1;
	sizes_end(p);
	return 0;
}

static int
run_session(struct perf *p)
{
	bool pingpong = p->o.proto->verb == VERB_PINGPONG;

	if (peer_open(p) != 0)
		return -1;
	if ((pingpong ? pingpong_begin(p) : perftest_begin(p)) != 0)
		return -1;
	report_start(p);
	if (run_test(p) != 0)
		return -1;
	if (!pingpong && perftest_end(p) != 0)
		return -1;
	/*
	 * No message of ibv_*_pingpong confirms that the last acknowledgement has arrived, so runs
	 * the device for another second.
	 */
	if (!pingpong)
		peer_finish(p);
	else if (!tcp_pingpong_finish(p))
		perf_linger(p, 1);
	p->res.served = perf_served(p);
	if ((p->server || p->o.bidirectional) && check_target(p) != 0)
		return -1;
	report_result(p);
	return 0;
}

/* Connects a client that cannot run to its server and closes, so that the server stops waiting. */
static void
decline(const struct perf *p)
{
	if (is_client(p))
		tcp_decline(p);
}

static int
run(struct perf *p)
{
	int rc = perf_open(p);

	if (rc != 0) {
		decline(p);
		return rc;
	}
	if (run_session(p) != 0)
		return stop_signal != 0 ? 128 + stop_signal : EXIT_FAILED;
	return 0;
}

int
main(int argc, char **argv)
{
	static struct perf p = {.fd = -1};
	int eal_argc, rc;

	rc = program_args(&perf_program, &p.o, argc, argv, &eal_argc);
	p.server = p.o.host == NULL;
	if (rc < 0)
		decline(&p);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	if (p.o.json != NULL && json_open(p.o.json) != 0) {
		decline(&p);
		return EXIT_USAGE;
	}
	if (program_start(eal_argc, argv) != 0) {
		decline(&p);
		json_close(&p, EXIT_FAILED);
		return EXIT_FAILED;
	}
	p.tsc_hz = rte_get_tsc_hz();
	rc = run(&p);
	if (json_close(&p, rc) != 0 && rc == 0)
		rc = EXIT_FAILED;
	cm_close(&p); /* before the queue pairs, which its connections own */
	perf_close(&p);
	program_end();
	tcp_close(&p);
	return rc;
}
