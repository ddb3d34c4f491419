/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Detects other work by the time that threads wait for a CPU. A polling thread that has a CPU to
 * itself never waits. If other work wants the CPU, Linux runs the two alternately. For each of them
 * Linux counts the time that it was ready and did not run.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shared.h"

#define LEAST_PART 0.05
#define LEAST_NS   10000000u
#define FILE_BYTES 65536u

bool
shared_add_thread(const char *schedstat, struct shared_time *t)
{
	uint64_t waited;

	/* Reads the second field, which follows the run time. */
	if (sscanf(schedstat, "%*u %" SCNu64, &waited) != 1)
		return false;
	t->waited += waited;
	return true;
}

bool
shared_add_cpu(const char *stat, unsigned int cpu, long hz, struct shared_time *t)
{
	uint64_t ticks;
	const char *line;
	char name[16];
	size_t len;

	len = (size_t)snprintf(name, sizeof(name), "cpu%u ", cpu);
	for (line = stat; strncmp(line, name, len) != 0; line++) {
		line = strchr(line, '\n');
		if (line == NULL)
			return false;
	}
	/* Skips user, nice, system, idle, iowait, irq and softirq; then follows the stolen time. */
	if (hz <= 0 || sscanf(line + len, "%*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1)
		return false;
	t->stolen += ticks * (1000000000u / (uint64_t)hz);
	return true;
}

static uint64_t
more(uint64_t before, uint64_t after)
{
	/*
	 * Returns 0 instead of a negative number, because the sum over threads decreases when a
	 * thread ends.
	 */
	return after > before ? after - before : 0;
}

double
shared_part(const struct shared_time *before, const struct shared_time *after, uint64_t ns)
{
	const uint64_t lost =
		more(before->waited, after->waited) + more(before->stolen, after->stolen);

	if (lost < LEAST_NS || (double)lost < LEAST_PART * (double)ns)
		return 0;
	return (double)lost / (double)ns;
}

static bool
slurp(const char *path, char text[static FILE_BYTES])
{
	FILE *f = fopen(path, "r");
	size_t n;

	if (f == NULL)
		return false;
	n = fread(text, 1, FILE_BYTES - 1, f);
	text[n] = '\0';
	fclose(f);
	return n > 0;
}

static void
add_process(pid_t pid, char text[static FILE_BYTES], struct shared_time *t)
{
	const struct dirent *task;
	char path[300];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (dir == NULL)
		return;
	while ((task = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, task->d_name);
		if (task->d_name[0] != '.' && slurp(path, text))
			shared_add_thread(text, t);
	}
	closedir(dir);
}

void
shared_now(pid_t other, const unsigned int *cpus, unsigned int n, struct shared_time *t)
{
	static char text[FILE_BYTES];
	unsigned int i;

	*t = (struct shared_time){0, 0};
	add_process(getpid(), text, t);
	if (other != 0)
		add_process(other, text, t);
	if (!slurp("/proc/stat", text))
		return;
	for (i = 0; i < n; i++)
		shared_add_cpu(text, cpus[i], sysconf(_SC_CLK_TCK), t);
}
