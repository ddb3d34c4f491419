/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Detects other work on the CPUs of a measurement. */
#ifndef SHARED_H
#define SHARED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * CPU time that this program lost to other work, in ns. waited counts from the start of the
 * threads, stolen from the start of the machine.
 */
struct shared_time {
	uint64_t waited; /* time that this program's threads were ready but waited for a CPU */
	uint64_t stolen; /* time that the host of a virtual machine took from the CPUs */
};

/*
 * shared_add_thread() adds the waiting time of a thread, from the text of its /proc/.../schedstat.
 * shared_add_cpu() adds the time that was stolen from @cpu, from the text of /proc/stat with @hz
 * ticks per second. Both return false and leave *@t unchanged if the text has no such value.
 */
bool shared_add_thread(const char *schedstat, struct shared_time *t);
bool shared_add_cpu(const char *stat, unsigned int cpu, long hz, struct shared_time *t);

/*
 * Returns the fraction of the @ns nanoseconds between @before and @after in which a thread waited
 * for a CPU or the host took a CPU. Returns 0 if the fraction is too small to affect medians: less
 * than a 20th, or less than 10 ms. Such short waits also occur whenever a thread starts.
 */
double shared_part(const struct shared_time *before, const struct shared_time *after, uint64_t ns);

/*
 * Reads the total times of all threads of this process and of process @other, and of the @n CPUs in
 * @cpus. @other is 0 if there is no other process. A time that the machine does not provide is 0.
 */
void shared_now(pid_t other, const unsigned int *cpus, unsigned int n, struct shared_time *t);

#endif
