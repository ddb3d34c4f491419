/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stddef.h>

#include "stop.h"

volatile sig_atomic_t stop_signal;

static void
on_signal(int sig)
{
	stop_signal = sig;
}

void
stop_catch(int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags | (int)SA_RESETHAND};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sa.sa_flags = flags;
	sigaction(SIGPIPE, &sa, NULL);
	signal(SIGXFSZ, SIG_IGN);
}
