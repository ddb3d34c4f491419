/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Detects other work on the CPUs of a measurement. */
#ifndef SHARED_H
#define SHARED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sums since the threads, and the machine, were started; ns. */
struct shared_time {
	uint64_t waited; /* time that this program's threads were ready but waited for a CPU */
	uint64_t stolen; /* time that the host of a virtual machine took from the CPUs */
};

/*
 * Add the waiting time of a thread from its /proc/.../schedstat, and the time stolen from @cpu from
 * /proc/stat, with @hz ticks per second. Return false if the text has no such value; @t is then
 * unchanged.
 */
bool shared_add_thread(const char *schedstat, struct shared_time *t);
bool shared_add_cpu(const char *stat, unsigned int cpu, long hz, struct shared_time *t);

/*
 * Returns the part of @ns, from @before to @after, that a thread waited or a CPU was stolen.
 * Returns 0 if it is too small to affect medians: less than a 20th, or less than 10 ms. Each thread
 * start costs some of that.
 */
double shared_part(const struct shared_time *before, const struct shared_time *after, uint64_t ns);

/*
 * Gets the sums of all threads of this process and of @other (0 if none), and of the @n CPUs in
 * @cpus. Values that the machine does not provide are 0.
 */
void shared_now(pid_t other, const unsigned int *cpus, unsigned int n, struct shared_time *t);

#endif
