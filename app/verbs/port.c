/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The ethdev of a device with the option port=: starts EAL in the program's process, and creates
 * the vdev that the launcher was given.
 *
 * The program knows nothing of DPDK. So its threads keep their CPUs and their signal masks, and no
 * signal handler runs on a thread of EAL. Programs that it executes and children of fork() get no
 * sockets of the PMD, or a peer would not notice the end of this process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "preload.h"

#define MEMORY_MB "128" /* for the mbufs; only used pages take memory */
#define MAX_OWN   64

/* True in threads of EAL, and in the thread that starts EAL. */
static __thread bool of_eal;
static pid_t opened_by; /* process that has started EAL; 0: none */

/*
 * Descriptors that threads of EAL have opened. A number may be in use for another file by now, so
 * an entry also has the file's identity.
 */
static struct own_fd {
	int fd; /* 1 + the descriptor; 0: free entry; atomic */
	dev_t dev;
	ino_t ino;
} own[MAX_OWN];

int
port_flags(int flags, int cloexec)
{
	return of_eal ? flags | cloexec : flags;
}

int
port_own(int fd)
{
	struct stat st;
	unsigned int i;
	int none;

	if (!of_eal || fd < 0 || fstat(fd, &st) != 0)
		return fd;
	for (i = 0; i < MAX_OWN; i++) {
		none = 0;
		if (!__atomic_compare_exchange_n(&own[i].fd, &none, fd + 1, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		own[i].dev = st.st_dev;
		own[i].ino = st.st_ino;
		break;
	}
	return fd;
}

void
port_disown(int fd)
{
	unsigned int i;

	for (i = 0; of_eal && i < MAX_OWN; i++)
		if (__atomic_load_n(&own[i].fd, __ATOMIC_RELAXED) == fd + 1)
			__atomic_store_n(&own[i].fd, 0, __ATOMIC_RELEASE);
}

/* Closes the PMD's descriptors in a child of fork(). */
static void
in_child(void)
{
	struct stat st;
	unsigned int i;
	int fd;

	for (i = 0; i < MAX_OWN; i++) {
		fd = own[i].fd - 1;
		if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == own[i].dev &&
		    st.st_ino == own[i].ino)
			close(fd);
		own[i].fd = 0;
	}
}

/* ---- One process has the port */

/*
 * Locks the port for this process. The lock is that of a file beside those for /sys, which all
 * processes of a launcher share. It ends with the process, and fork() does not pass it on.
 */
static int
lock_port(const char *vdev, int *fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	const char *tree = getenv(VERBS_ENV_TREE);
	char path[PATH_MAX];
	int ret;

	if (tree == NULL || snprintf(path, sizeof(path), "%s/port", tree) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*fd < 0) {
		ret = -errno;
		fprintf(stderr, "bb_verbs: %s: %s\n", path, strerror(-ret));
		return ret;
	}
	if (fcntl(*fd, F_SETLK, &l) == 0)
		return 0;
	(void)fcntl(*fd, F_GETLK, &l);
	fprintf(stderr,
		"bb_verbs: process %d of this bb_verbs command has %.*s: one process can use a port; "
		"start each process by its own bb_verbs, with a port and an address of its own\n",
		(int)l.l_pid, (int)strcspn(vdev, ","), vdev);
	close(*fd);
	return -EBUSY;
}

/* ---- EAL */

/*
 * Returns true for the folder of all PMDs. EAL would load each file in it: that takes time, and the
 * PMD of mlx5 calls ibv_fork_init(), which changes what fork() does with the program's memory
 * (mlx5_glue_constructor() in drivers/common/mlx5/linux/mlx5_common_os.c of DPDK).
 */
bool
port_hides(const char *path)
{
#ifdef RTE_EAL_PMD_PATH
	return of_eal && strcmp(path, RTE_EAL_PMD_PATH) == 0;
#else
	(void)path;
	return false;
#endif
}

#define MAX_ARGS 32

struct args {
	char *v[MAX_ARGS];
	int n;
};

/* Adds a copy of an argument. EAL refers to its arguments until the process ends. */
static void
add(struct args *a, const char *arg)
{
	char *copy = strdup(arg);

	if (copy != NULL && a->n < MAX_ARGS - 1)
		a->v[a->n++] = copy;
}

/* Adds the options that make EAL load the library librte_@name. */
static void
add_library(struct args *a, const char *name)
{
#ifdef RTE_EAL_PMD_PATH
	char pattern[PATH_MAX];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/librte_%s.so*", RTE_EAL_PMD_PATH, name);
	if (glob(pattern, 0, NULL, &found) == 0) {
		add(a, "-d");
		add(a, found.gl_pathv[0]);
	}
	globfree(&found);
#else
	(void)a;
	(void)name;
#endif
}

/* Adds the options for one lcore, which may run on each CPU of this process. */
static void
add_cpus(struct args *a)
{
	char list[8 * CPU_SETSIZE] = "0@(";
	size_t at = strlen(list);
	unsigned int c, end;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		CPU_ZERO(&set);
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
	add(a, "--lcores");
	add(a, list);
}

static int
start_eal(const char *vdev)
{
	/* net_memif would warn that --no-shconf leaves no room for secondary processes. */
	static const char *const fixed[] = {"bb_verbs",
					    "--no-huge",
					    "-m",
					    MEMORY_MB,
					    "--no-pci",
					    "--no-shconf",
					    "--no-telemetry",
					    "--log-level=warning",
					    "--log-level=pmd.net.memif:error"};
	struct args a = {.n = 0};
	const char *driver = port_driver(vdev);
	unsigned int i;

	for (i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		add(&a, fixed[i]);
	add_cpus(&a);
	add_library(&a, "bus_vdev");
	add_library(&a, "mempool_ring");
	add_library(&a, driver != NULL ? driver : "net_memif");
	if (rte_eal_init(a.n, a.v) >= 0)
		return 0;
	/* EAL does not set rte_errno for every failure. */
	fprintf(stderr, "bb_verbs: EAL cannot start%s%s; see the lines of EAL above\n",
		rte_errno != 0 ? ": " : "", rte_errno != 0 ? strerror(rte_errno) : "");
	return rte_errno != 0 ? -rte_errno : -EIO;
}

static void
mark_thread(void *done)
{
	of_eal = true;
	__atomic_store_n((bool *)done, true, __ATOMIC_RELEASE);
}

struct start {
	const char *vdev;
	int ret;
};

/* Starts EAL and creates the vdev. EAL binds its calling thread, so this is a temporary thread. */
static void *
start(void *arg)
{
	struct start *s = arg;
	bool done = false;
	char name[64];
	size_t len = strcspn(s->vdev, ",");

	of_eal = true;
	/* A program that uses DPDK has started EAL itself. */
	s->ret = rte_lcore_count() == 0 ? start_eal(s->vdev) : 0;
	if (s->ret != 0)
		return NULL;
	/* Marks EAL's interrupt thread, which opens the sockets of some PMDs. */
	if (rte_eal_alarm_set(1, mark_thread, &done) == 0)
		while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
			usleep(20);
	snprintf(name, sizeof(name), "%.*s", (int)len, s->vdev);
	s->ret = rte_eal_hotplug_add("vdev", name, s->vdev + len + (s->vdev[len] == ','));
	if (s->ret != 0)
		fprintf(stderr,
			"bb_verbs: --vdev %s: cannot be created: %s; see the lines above, and "
			"check its options and your rights; is the PMD of DPDK installed?\n",
			s->vdev, strerror(-s->ret));
	return NULL;
}

/* Runs start() with signals blocked, so that EAL's threads block them, too. */
static int
run_start(struct start *s)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	sigset_t mask, before;
	pthread_t thread;
	unsigned int i;
	int ret;

	sigfillset(&mask);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&mask, faults[i]);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	ret = -pthread_create(&thread, NULL, start, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret != 0)
		return ret;
	pthread_join(thread, NULL);
	return s->ret;
}

int
port_open(void)
{
	struct start s = {.vdev = getenv(VERBS_ENV_VDEV)};
	int ret, fd;

	if (s.vdev == NULL || opened_by == getpid())
		return 0;
	if (opened_by != 0) {
		fprintf(stderr,
			"bb_verbs: process %d was forked by process %d, which has %.*s: a child of "
			"fork() cannot use a device with port=; start a program with exec()\n",
			(int)getpid(), (int)opened_by, (int)strcspn(s.vdev, ","), s.vdev);
		return -ENODEV;
	}
	ret = lock_port(s.vdev, &fd);
	if (ret != 0)
		return ret;
	ret = run_start(&s);
	if (ret != 0) {
		close(fd);
		return ret;
	}
	opened_by = getpid();
	(void)pthread_atfork(NULL, NULL, in_child);
	return 0;
}

bool
port_waits(void)
{
	const char *vdev = getenv(VERBS_ENV_VDEV);

	return vdev != NULL && strncmp(vdev, "net_memif", strlen("net_memif")) == 0;
}
