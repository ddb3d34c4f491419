/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The ethdev of a device with the option port=: starts EAL in the program's process, and creates
 * the vdev that the launcher was given.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_lcore.h>

#include "eal_foreign.h"
#include "libc.h"
#include "preload.h"

#define MEMORY_MB "128" /* for the mbufs; only used pages take memory */
/* EAL's interrupt thread must run within MARK_NAPS pauses of MARK_NAP_US microseconds: 10 s. */
#define MARK_NAPS   100000u
#define MARK_NAP_US 100

/*
 * Process that has started EAL, recorded before EAL starts; 0: none. A child of fork() has the
 * value of its parent, also if the program has started EAL itself.
 */
static pid_t eal_pid;
static pid_t opened_by; /* process that has the port; 0: none */
static bool marked;     /* EAL's interrupt thread is marked; atomic */

/* Adds the options that make EAL load the library librte_@name. */
static void
add_library(struct eal_argv *a, const char *name)
{
#ifdef RTE_EAL_PMD_PATH
	char pattern[PATH_MAX];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/librte_%s.so*", RTE_EAL_PMD_PATH, name);
	if (glob(pattern, 0, NULL, &found) == 0) {
		eal_argv_add(a, "-d");
		eal_argv_add(a, found.gl_pathv[0]);
	}
	globfree(&found);
#else
	(void)a;
	(void)name;
#endif
}

static void
add_args(struct eal_argv *a, const char *vdev)
{
	/* net_memif would warn that --no-shconf leaves no room for secondary processes. */
	static const char *const fixed[] = {"--no-huge",
					    "-m",
					    MEMORY_MB,
					    "--no-pci",
					    "--no-shconf",
					    "--no-telemetry",
					    "--log-level=warning",
					    "--log-level=pmd.net.memif:error"};
	const char *driver = port_driver(vdev);
	unsigned int i;

	for (i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		eal_argv_add(a, fixed[i]);
	add_library(a, "bus_vdev");
	add_library(a, "mempool_ring");
	add_library(a, driver != NULL ? driver : "net_memif");
}

static void
mark_thread(void *arg)
{
	(void)arg;
	port_mark(true);
	__atomic_store_n(&marked, true, __ATOMIC_RELEASE);
}

/* Marks EAL's interrupt thread, which opens the sockets of some PMDs. */
static int
mark_eal(const char *vdev)
{
	int ret = rte_eal_alarm_set(1, mark_thread, NULL);
	unsigned int i;

	for (i = 0; ret == 0 && !__atomic_load_n(&marked, __ATOMIC_ACQUIRE); i++) {
		if (i == MARK_NAPS)
			ret = -ETIMEDOUT;
		usleep(MARK_NAP_US);
	}
	if (ret != 0)
		fprintf(stderr,
			"bb_verbs: --vdev %s: DPDK's interrupt thread executes no alarm: %s; open "
			"the device in the process that has started DPDK\n",
			vdev, strerror(-ret));
	return ret;
}

struct start {
	const char *vdev;
	int ret;
};

/* Starts EAL and creates the vdev. */
static void *
start(void *arg)
{
	struct start *s = arg;
	char name[64];
	size_t len = strcspn(s->vdev, ",");

	port_mark(true);
	eal_pid = getpid();
	s->ret = eal_foreign_start(add_args, s->vdev);
	if (s->ret != 0)
		fprintf(stderr, "bb_verbs: EAL cannot start: %s; see the lines of EAL above\n",
			strerror(-s->ret));
	else
		s->ret = mark_eal(s->vdev);
	if (s->ret != 0)
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)len, s->vdev);
	s->ret = rte_eal_hotplug_add("vdev", name, s->vdev + len + (s->vdev[len] == ','));
	if (s->ret != 0)
		fprintf(stderr,
			"bb_verbs: --vdev %s: cannot be created: %s; see the lines above, and "
			"check its options and your rights; is the PMD of DPDK installed?\n",
			s->vdev, strerror(-s->ret));
	return NULL;
}

int
port_open(void)
{
	struct start s = {.vdev = getenv(VERBS_ENV_VDEV)};
	pthread_t thread;
	int ret, fd;

	if (s.vdev == NULL || opened_by == getpid())
		return 0;
	if (eal_pid != 0 && eal_pid != getpid()) {
		fprintf(stderr,
			"bb_verbs: process %d was forked after process %d had started DPDK: such a "
			"child of fork() cannot use %.*s; start a program with exec()\n",
			(int)getpid(), (int)eal_pid, (int)strcspn(s.vdev, ","), s.vdev);
		return -ENODEV;
	}
	ret = port_lock(s.vdev, &fd);
	if (ret != 0)
		return ret;
	ret = eal_foreign_thread(&thread, start, &s);
	if (ret == 0) {
		pthread_join(thread, NULL);
		ret = s.ret;
	}
	if (ret != 0) {
		libc_close(fd);
		return ret;
	}
	opened_by = getpid();
	return 0;
}

/* Notes that the program has started EAL, of which the child gets a copy without threads. */
static void
before_fork(void)
{
	if (eal_pid == 0 && rte_lcore_count() != 0)
		eal_pid = getpid();
}

static void __attribute__((constructor)) watch_forks(void)
{
	if (getenv(VERBS_ENV_VDEV) != NULL)
		(void)pthread_atfork(before_fork, NULL, port_close_all);
}

bool
port_waits(void)
{
	const char *vdev = getenv(VERBS_ENV_VDEV);

	return vdev != NULL && strncmp(vdev, "net_memif", strlen("net_memif")) == 0;
}
