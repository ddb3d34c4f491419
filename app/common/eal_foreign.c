/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <rte_config.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "eal_foreign.h"

void
eal_argv_add(struct eal_argv *a, const char *arg)
{
	if (a->n == EAL_FOREIGN_ARGS - 1)
		a->error = -E2BIG;
	else if ((a->v[a->n] = strdup(arg)) == NULL)
		a->error = -ENOMEM;
	else
		a->n++;
}

/*
 * Adds the options for one lcore, which may run on each CPU of this process. EAL takes the number
 * of an lcore for that of a CPU when it chooses a NUMA node.
 */
static void
add_cpus(struct eal_argv *a)
{
	char list[8 * CPU_SETSIZE];
	unsigned int c = 0, end;
	cpu_set_t set;
	size_t at;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		CPU_ZERO(&set);
	while (c < RTE_MAX_LCORE - 1 && !CPU_ISSET(c, &set))
		c++;
	at = (size_t)snprintf(list, sizeof(list), "%u@(", c);
	for (c = 0; c < CPU_SETSIZE; c = end) {
		end = c + 1;
		if (!CPU_ISSET(c, &set))
			continue;
		while (end < CPU_SETSIZE && CPU_ISSET(end, &set))
			end++;
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%u-%u",
				       list[at - 1] == '(' ? "" : ",", c, end - 1);
	}
	snprintf(list + at, sizeof(list) - at, ")");
	eal_argv_add(a, "--lcores");
	eal_argv_add(a, list);
}

int
eal_foreign_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	sigset_t mask, before;
	unsigned int i;
	int ret;

	sigfillset(&mask);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&mask, faults[i]);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	ret = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

int
eal_foreign_start(void (*add)(struct eal_argv *a, const char *arg), const char *arg)
{
	static struct eal_argv a; /* EAL refers to the words until the process ends */
	static int error;         /* negative errno of a failed start */
	char *words[EAL_FOREIGN_ARGS];

	/* A start that fails may leave lcores behind. */
	if (error != 0 || rte_lcore_count() != 0)
		return error;
	/* EAL also passes the first argument to openlog(), as the name of the program. */
	eal_argv_add(&a, program_invocation_short_name);
	add_cpus(&a);
	add(&a, arg);
	/* EAL overwrites the last pointer. */
	memcpy(words, a.v, sizeof(words));
	error = a.error;
	/* EAL does not set rte_errno for every failure. */
	if (error == 0 && rte_eal_init(a.n, words) < 0)
		error = rte_errno != 0 ? -rte_errno : -EIO;
	return error;
}
