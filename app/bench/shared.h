/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Did anybody else use the CPUs that were measured on? */
#ifndef SHARED_H
#define SHARED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sums since the threads, and the machine, were started; ns. */
struct shared_time {
	uint64_t waited; /* of our threads, ready to run, for a CPU that another task had */
	uint64_t stolen; /* from our CPUs, by the host of a virtual machine */
};

/*
 * Add what a thread waited, by its /proc/.../schedstat; what was stolen from @cpu, by /proc/stat,
 * of @hz ticks a second. False: the text does not tell; @t is as before.
 */
bool shared_add_thread(const char *schedstat, struct shared_time *t);
bool shared_add_cpu(const char *stat, unsigned int cpu, long hz, struct shared_time *t);

/*
 * The part of @ns, from @before to @after, that a thread waited or a CPU was not there. 0 if
 * medians do not feel it: less than a 20th, or than 10 ms, of which each start of a thread costs
 * some.
 */
double shared_part(const struct shared_time *before, const struct shared_time *after, uint64_t ns);

/*
 * The sums of all threads of this process and of @other (0: there is none), and of the @n CPUs of
 * @cpus. What the machine does not tell is 0.
 */
void shared_now(pid_t other, const unsigned int *cpus, unsigned int n, struct shared_time *t);

#endif
