/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The provider starts EAL in a program that knows nothing of DPDK. */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define PLAIN_PAGES "--no-huge -m 64 --no-shconf --no-pci"

static void __attribute__((constructor)) prepare(void)
{
	log_reasons();
}

/* Opens a fabric with @eal as EAL's arguments. Copies what the provider logs about EAL to @line. */
static int
open_fabric(struct fi_info *info, const char *eal, char line[256])
{
	struct fid_fabric *fabric;
	const char *text;
	int ret;

	setenv("FI_BLUEBELL_EAL", eal, 1);
	log_begin();
	ret = fi_fabric(info->fabric_attr, &fabric, NULL);
	text = strstr(log_end(), "EAL cannot start: ");
	snprintf(line, 256, "%.*s", text != NULL ? (int)strcspn(text, "\n") : 0, text);
	return ret;
}

/*
 * Starts EAL with @bad arguments, then opens fabrics with @bad and with good arguments. Returns
 * true if each open returns and logs the error of the first one.
 */
static bool
all_opens_fail(struct fi_info *info, const char *bad)
{
	char first[256], again[256];
	int ret, error = open_fabric(info, bad, first);
	unsigned int i;

	printf("%d: %s\n", error, first);
	if (error >= 0 || first[0] == '\0')
		return false;
	for (i = 0; i < 3; i++) {
		ret = open_fabric(info, i == 0 ? bad : PLAIN_PAGES, again);
		if (ret == error && strcmp(again, first) == 0)
			continue;
		printf("open %u: %d: %s\n", i, ret, again);
		return false;
	}
	return true;
}

/*
 * Opens and closes a fabric, and forks. Returns true if a child cannot open one, because it has a
 * copy of EAL without threads.
 */
static bool
child_cannot_open(struct fi_info *info, const char *eal)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	int status = 1;
	pid_t pid;

	setenv("FI_BLUEBELL_EAL", eal, 1);
	if (fi_fabric(info->fabric_attr, &fabric, NULL) != 0 ||
	    fi_domain(fabric, info, &domain, NULL) != 0 || fi_close(&domain->fid) != 0 ||
	    fi_close(&fabric->fid) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		log_begin();
		status = fi_fabric(info->fabric_attr, &fabric, NULL) != -FI_EOPNOTSUPP ||
			 strstr(log_end(), "before fork()") == NULL;
		_exit(status);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* EAL starts at most once in a process, so children of this process open the fabrics. */
static void
check_in_child(bool (*check)(struct fi_info *info, const char *eal), const char *eal)
{
	struct fi_info *hints = hints_of(FI_MSG), *info;
	int status = 0;
	pid_t pid;

	OK(fi_getinfo(VERSION, pair_ip(), "0", FI_SOURCE, hints, &info));
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(60);
		status = !check(info, eal);
		fflush(stdout);
		_exit(status);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

TEST(test_refused_argument_of_eal_fails_each_open_with_the_same_error)
{
	check_in_child(all_opens_fail, PLAIN_PAGES " --no-such-option");
}

/* EAL has its memory and its lcores when it finds that the vdev has no driver. */
TEST(test_half_started_eal_fails_each_open_with_the_same_error)
{
	check_in_child(all_opens_fail, PLAIN_PAGES " --vdev=net_nothing0");
}

TEST(test_child_of_a_program_that_has_closed_the_device_opens_none)
{
	check_in_child(child_cannot_open, PLAIN_PAGES);
}

/* Reads the signals that a thread blocks: bit N - 1 is signal N. Returns false if it has ended. */
static bool
blocked_signals(const char *tid, uint64_t *set)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", tid);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = sscanf(line, "SigBlk: %" SCNx64, set) == 1;
	fclose(f);
	return found;
}

/*
 * Returns true if each thread may run on @cpus, if only this thread takes SIGTERM, and if all take
 * SIGSEGV. Sets @others to the number of other threads.
 */
static bool
threads_are_right(const cpu_set_t *cpus, unsigned int *others)
{
	const uint64_t term = UINT64_C(1) << (SIGTERM - 1), fault = UINT64_C(1) << (SIGSEGV - 1);
	DIR *dir = opendir("/proc/self/task");
	struct dirent *task;
	bool right = true;
	uint64_t blocked;
	cpu_set_t now;
	pid_t tid;

	assert_non_null(dir);
	*others = 0;
	while (right && (task = readdir(dir)) != NULL) {
		tid = (pid_t)atoi(task->d_name);
		if (tid == 0)
			continue;
		right = sched_getaffinity(tid, sizeof(now), &now) == 0 && CPU_EQUAL(cpus, &now) &&
			blocked_signals(task->d_name, &blocked) && (blocked & fault) == 0 &&
			((blocked & term) != 0) == (tid != getpid());
		*others += tid != getpid();
	}
	closedir(dir);
	return right;
}

TEST(test_program_keeps_its_cpus_and_signals)
{
	unsigned int others, i;
	cpu_set_t cpus;
	struct pair p;

	OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	setenv("FI_BLUEBELL_EAL", PLAIN_PAGES, 1);
	pair_open(&p, &(struct want){.counters = false});
	/* A new thread blocks all signals until it runs, and a thread that ends is still listed. */
	for (i = 0; !threads_are_right(&cpus, &others); i++) {
		assert_true(i < 1000);
		usleep(10000);
	}
	assert_true(others >= 2); /* EAL's and the provider's */
	pair_close(&p);
}

TEST_MAIN(0)
