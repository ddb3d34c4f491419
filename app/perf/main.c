/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * bb_perf: the other end of ibv_*_pingpong and of perftest.
 *
 * Read next: perf.h (what there is), handshake.c (what the peers say to each other, in which
 * order), run_lat.c and run_bw.c (the RDMA), perf_msg.h (the words themselves).
 */
#include <stdarg.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "perf.h"

volatile sig_atomic_t stop_signal;

void
say(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "bb_perf: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}

static void
on_signal(int sig)
{
	stop_signal = sig;
}

/* The first signal ends the run in order, a second one ends the program. */
static void
catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* "--" and what stands behind it; EAL has what stands before. */
static int
split_args(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return argc;
}

static int
parse_args(struct options *o, int argc, char **argv, int eal_argc)
{
	int i, rc;

	for (i = 1; i < eal_argc; i++) {
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
			options_help(stdout);
			return 1;
		}
		if (options_known(argv[i])) {
			say("%s is not an EAL option: put it behind --, as in bb_perf -l 0 -- %s "
			    "...",
			    argv[i], argv[i]);
			return -1;
		}
	}
	if (eal_argc == argc)
		return options_parse(o, 1, argv);
	argv[eal_argc] = argv[0];
	rc = options_parse(o, argc - eal_argc, argv + eal_argc);
	argv[eal_argc] = NULL;
	return rc;
}

static int
run_test(struct perf *p)
{
	bool bw = p->o.proto->bandwidth;

	switch (p->o.proto->verb) {
	case VERB_PINGPONG:
		return run_pingpong(p);
	case VERB_WRITE:
		if (!bw)
			return run_write_lat(p);
		break;
	case VERB_SEND:
		if (!bw)
			return run_send_lat(p);
		if (p->server)
			return run_send_bw_server(p);
		break;
	default:
		break;
	}
	/* The target of a one-sided test has nothing to do but to keep its device going. */
	if (p->server)
		return 0;
	return bw ? run_bw(p) : run_lat(p);
}

static int
talk(struct perf *p)
{
	bool pingpong = p->o.proto->verb == VERB_PINGPONG;

	if (tcp_open(p) != 0)
		return -1;
	if ((pingpong ? pingpong_begin(p) : perftest_begin(p)) != 0)
		return -1;
	report_start(p);
	if (run_test(p) != 0)
		return -1;
	if (!pingpong && perftest_end(p) != 0)
		return -1;
	/* With pingpong nobody says that the last acknowledgement has come. */
	if (pingpong)
		perf_linger(p, 1);
	else
		tcp_finish(p);
	p->res.served = perf_served(p);
	if (p->server && check_target(p) != 0)
		return -1;
	report_result(p);
	return 0;
}

static int
run(struct perf *p)
{
	int rc = perf_open(p);

	if (rc != 0)
		return rc;
	if (talk(p) != 0)
		return stop_signal != 0 ? 128 + stop_signal : EXIT_FAILED;
	return 0;
}

int
main(int argc, char **argv)
{
	static struct perf p = {.fd = -1};
	int eal_argc = split_args(argc, argv), rc;

	rc = parse_args(&p.o, argc, argv, eal_argc);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	p.server = p.o.host == NULL;
	if (p.o.json != NULL && json_open(p.o.json) != 0)
		return EXIT_USAGE;
	if (rte_eal_init(eal_argc, argv) < 0) {
		say("EAL did not start: %s; without hugepages give --no-huge -m 256",
		    rte_strerror(rte_errno));
		json_close(&p, EXIT_FAILED);
		return EXIT_FAILED;
	}
	catch_signals();
	p.tsc_hz = rte_get_tsc_hz();
	rc = run(&p);
	if (json_close(&p, rc) != 0 && rc == 0)
		rc = EXIT_FAILED;
	perf_close(&p);
	/*
	 * No rte_eal_cleanup(): with a peer that goes at the same time, DPDK 22.11 unmaps memory
	 * there that EAL's interrupt thread reads for net_memif's sockets (SIGSEGV in
	 * rte_intr_fd_get()). The end of the process gives back as much.
	 */
	tcp_close(&p);
	return rc;
}
