/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Ctrl-C and SIGTERM: what is measured at the moment is given up, and the rows before it are
 * reported. What a case has made, namespaces and processes, goes the way it goes without a signal.
 */
#include <signal.h>

#include "bench.h"

static volatile sig_atomic_t stopped;

static void
stop(int sig)
{
	stopped = sig;
}

void
bench_stop_catch(void)
{
	/* The second one is for who does not want to wait: it ends the program as by default. */
	struct sigaction sa = {.sa_handler = stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	/* Nobody reads on, as behind "| head": the files are written all the same. */
	sa.sa_flags = SA_RESTART;
	sigaction(SIGPIPE, &sa, NULL);
}

bool
bench_stopped(void)
{
	return stopped != 0;
}
