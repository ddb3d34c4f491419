/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The descriptors of a port's PMD. Programs that the program executes and children of fork() get
 * none of them, or a peer would not notice the end of this process.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_eal.h>

#include "libc.h"
#include "preload.h"

#define MAX_OWN 64

static __thread bool of_pmd; /* what the thread opens belongs to the PMD */

/*
 * Descriptors that the PMD has opened. A number may be in use for another file by now, so an entry
 * also has the file's identity.
 */
static struct own_fd {
	int fd; /* 1 + the descriptor; 0: free entry; atomic */
	dev_t dev;
	ino_t ino;
} own[MAX_OWN];

void
port_mark(bool pmd)
{
	of_pmd = pmd;
}

int
port_flags(int flags, int cloexec)
{
	return of_pmd ? flags | cloexec : flags;
}

int
port_own(int fd)
{
	struct stat st;
	unsigned int i;
	int none;

	if (!of_pmd || fd < 0 || libc_fstat(fd, &st) != 0)
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

	for (i = 0; of_pmd && i < MAX_OWN; i++)
		if (__atomic_load_n(&own[i].fd, __ATOMIC_RELAXED) == fd + 1)
			__atomic_store_n(&own[i].fd, 0, __ATOMIC_RELEASE);
}

void
port_close_all(void)
{
	struct stat st;
	unsigned int i;
	int fd;

	for (i = 0; i < MAX_OWN; i++) {
		fd = own[i].fd - 1;
		if (fd >= 0 && libc_fstat(fd, &st) == 0 && st.st_dev == own[i].dev &&
		    st.st_ino == own[i].ino)
			libc_close(fd);
		own[i].fd = 0;
	}
}

/*
 * Returns true for the folder of all PMDs. EAL would load each file in it: that takes time, and the
 * PMD of mlx5 calls ibv_fork_init(), which changes what fork() does with the program's memory
 * (mlx5_glue_constructor() in drivers/common/mlx5/linux/mlx5_common_os.c of DPDK).
 */
bool
port_hides(const char *path)
{
#ifdef RTE_EAL_PMD_PATH
	return of_pmd && strcmp(path, RTE_EAL_PMD_PATH) == 0;
#else
	(void)path;
	return false;
#endif
}
