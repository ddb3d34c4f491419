/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE /* memfd_create(), F_ADD_SEALS */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include "soft_own.h"
#include "soft_shm_mem.h"

static_assert(sizeof(struct soft_shm_key) == SOFT_SHM_LINE, "an entry has a line");
static_assert(sizeof(struct soft_shm_qp) == SOFT_SHM_LINE, "an entry has a line");
static_assert(offsetof(struct soft_shm_dir, engine) == SOFT_SHM_LINE, "lines of their own");

/* Seals that fix the size, and forbid further changes of the seals. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static bool fenced;
static pthread_once_t fenced_once = PTHREAD_ONCE_INIT;

static void
fenced_init(void)
{
	const int want = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
	long can = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	fenced = can >= 0 && (can & want) == want &&
		 syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool
soft_shm_fenced(void)
{
	pthread_once(&fenced_once, fenced_init);
	return fenced;
}

void
soft_shm_fence(void)
{
	bb_smp_mb();
	/* The call cannot fail, because the registration has succeeded (membarrier(2)). */
	if (soft_shm_fenced())
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

int
soft_shm_create(struct soft_dev *dev, const char *name, size_t len, int *out, void **map)
{
	const int fd = soft_own_file(name, len, MFD_ALLOW_SEALING);
	void *mem;
	int ret;

	if (fd < 0)
		return fd;
	mem = soft_own_map(dev, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) {
		ret = -errno;
		goto close_fd;
	}
	/* This mapping stays writable, but no process can make another writable mapping. */
	if (fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_FUTURE_WRITE) != 0) {
		ret = -errno;
		goto unmap;
	}
	*out = fd;
	*map = mem;
	return 0;

unmap:
	munmap(mem, len);
close_fd:
	close(fd);
	return ret;
}

const void *
soft_shm_reserve(struct soft_dev *dev, size_t len)
{
	void *mem = soft_own_map(dev, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

int
soft_shm_unmap(size_t len, const void *at)
{
	/*
	 * The mapping is replaced in place, so a concurrent reader finds the old content or zeros.
	 */
	void *mem = mmap((void *)(uintptr_t)at, len, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	return mem == MAP_FAILED ? -errno : 0;
}

int
soft_shm_map(int fd, size_t len, const void *at)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *mem;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return -EPERM;
	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size != (off_t)len)
		return -EINVAL;
	mem = mmap((void *)(uintptr_t)at, len, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	return mem == MAP_FAILED ? -errno : 0;
}

int
soft_shm_map_segment(struct soft_dev *dev, int fd, uint64_t off, uint64_t len, void **map)
{
	struct stat st;
	void *mem;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || len == 0 || len > (uint64_t)st.st_size ||
	    off > (uint64_t)st.st_size - len)
		return -EINVAL;
	/* MAP_NORESERVE: the process that created the file has already reserved the memory. */
	mem = soft_own_map(dev, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, off);
	if (mem == MAP_FAILED)
		return -errno;
	*map = mem;
	return 0;
}
