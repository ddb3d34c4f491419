/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <pthread.h>
#include <signal.h>

#include "preload.h"

void
thread_hold(struct thread_state *before)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	sigset_t mask;
	unsigned int i;

	sigfillset(&mask);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&mask, faults[i]);
	pthread_sigmask(SIG_BLOCK, &mask, &before->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel);
}

void
thread_release(const struct thread_state *before)
{
	pthread_setcancelstate(before->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
}
