/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Starts EAL in the process of a program that knows nothing of DPDK. The program's threads keep
 * their CPUs and their signal masks, and no signal handler runs on a thread of EAL.
 */
#ifndef EAL_FOREIGN_H
#define EAL_FOREIGN_H

#include <pthread.h>

#define EAL_FOREIGN_ARGS 32

struct eal_argv {
	char *v[EAL_FOREIGN_ARGS];
	int n;
	int error; /* negative errno if an argument is missing, else 0 */
};

/* Adds a copy of an argument. */
void eal_argv_add(struct eal_argv *a, const char *arg);

/*
 * Starts a thread that blocks all signals but faults, as the threads do that it starts. Returns 0
 * or a negative errno.
 */
int eal_foreign_thread(pthread_t *thread, void *(*run)(void *), void *arg);

/*
 * Starts EAL on the calling thread, which EAL binds: call it on a temporary thread of
 * eal_foreign_thread(), with a lock held. EAL has one lcore, which may run on each CPU of the
 * caller. @add adds further arguments, with @arg. Does nothing if the program has started EAL
 * itself. EAL cannot be started twice in a process, so further calls return the error of a failed
 * start.
 */
int eal_foreign_start(void (*add)(struct eal_argv *a, const char *arg), const char *arg);

#endif
