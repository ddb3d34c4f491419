/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Replaces pages of the process while its threads run. The pages are write-protected by
 * userfaultfd(2), copied, and replaced by one mremap(2). A thread that writes meanwhile waits in a
 * page fault, and then writes to the new pages. Reads never wait.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>
#include <rte_atomic.h>

#include "libc.h"
#include "preload.h"
#include "share.h"
#include "soft_gaps.h"

/*
 * Maximum number of bytes that are replaced in one step. A thread that writes to them waits while
 * they are copied, so a smaller number means a shorter wait.
 */
#define BLOCK ((size_t)1 << 20)
/*
 * Flag of Linux 6.4 that also protects pages that are not present. The headers of older
 * distributions do not define it.
 */
#define FEATURE_UNPOPULATED ((uint64_t)1 << 13)
#define POPULATE_READ       22                  /* MADV_POPULATE_READ of Linux 5.14 */
#define USER_MODE_ONLY      1                   /* UFFD_USER_MODE_ONLY of Linux 5.11 */
#define FEATURE_SHMEM       ((uint64_t)1 << 12) /* Linux 5.19: protects shared pages, too */

/* Opens a userfaultfd with the flags and features given. Returns -1 if the kernel refuses them. */
static int
open_with(int flags, uint64_t features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags);

	if (fd < 0 || libc_ioctl(fd, UFFDIO_API, &api) == 0)
		return fd;
	libc_close(fd);
	return -1;
}

/* Opens a userfaultfd that can protect pages from writes, or returns -1. */
static int
open_uffd(int flags)
{
	const uint64_t features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | FEATURE_SHMEM;
	int fd = open_with(flags, features | FEATURE_UNPOPULATED);

	/*
	 * Without FEATURE_UNPOPULATED, only pages that are present can be protected. swap_block()
	 * makes them present.
	 */
	return fd >= 0 ? fd : open_with(flags, features);
}

int
share_uffd(enum share_guard *guard)
{
	int fd = open_uffd(0);

	if (guard != NULL)
		*guard = fd >= 0 ? SHARE_FULL_GUARD : SHARE_USER_GUARD;
	if (fd < 0)
		fd = open_uffd(USER_MODE_ONLY);
	if (guard != NULL && fd < 0)
		*guard = SHARE_NO_GUARD;
	return fd;
}

enum share_guard
share_guard(void)
{
	enum share_guard guard;
	int fd = share_uffd(&guard);

	if (fd >= 0)
		libc_close(fd);
	return guard;
}

int
share_protect(int uffd, void *at, size_t len)
{
	const struct uffdio_range range = {.start = (uintptr_t)at, .len = len};
	struct uffdio_register reg = {.range = range, .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect wp = {.range = range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};

	if (libc_ioctl(uffd, UFFDIO_REGISTER, &reg) != 0)
		return errno;
	return libc_ioctl(uffd, UFFDIO_WRITEPROTECT, &wp) != 0 ? errno : 0;
}

void
share_unprotect(int uffd, void *at, size_t len)
{
	struct uffdio_range range = {.start = (uintptr_t)at, .len = len};

	(void)libc_ioctl(uffd, UFFDIO_UNREGISTER, &range);
	/*
	 * UFFDIO_UNREGISTER wakes only threads that wait for missing pages. This call wakes threads
	 * that wait to write.
	 */
	(void)libc_ioctl(uffd, UFFDIO_WAKE, &range);
}

static struct mlx5_ctx *device;

void
share_device(struct mlx5_ctx *ctx)
{
	device = ctx;
}

static void *
new_pages(size_t len, int fd, uint64_t off)
{
	const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *to = soft_map_aside(device, len, PROT_READ | PROT_WRITE, flags, fd, off);

	if (to == MAP_FAILED)
		return NULL;
	/*
	 * A child that is made without fork() does not get the shared pages. It must not write
	 * into the memory of its parent.
	 */
	if (fd >= 0 && syscall(SYS_madvise, to, len, MADV_DONTFORK) != 0) {
		(void)munmap(to, len);
		return NULL;
	}
	return to;
}

/* Where this thread continues if its copy faults, NULL if it does not copy. */
static __thread sigjmp_buf *volatile escape;

void
share_escape(void)
{
	if (escape != NULL)
		siglongjmp(*escape, 1);
}

/*
 * Copies pages that another thread may unmap meanwhile. Returns 0 or EFAULT. Does not call
 * memcpy(), which AddressSanitizer replaces: the pages have bytes that it does not permit to read.
 */
static int
copy(uint64_t *to, const volatile uint64_t *from, size_t len)
{
	sigjmp_buf env;
	size_t i;

	if (sigsetjmp(env, 1) != 0) {
		escape = NULL;
		return EFAULT;
	}
	escape = &env;
	rte_compiler_barrier();
	for (i = 0; i < len / sizeof(*to); i++)
		to[i] = from[i];
	rte_compiler_barrier();
	escape = NULL;
	return 0;
}

/*
 * Replaces the @len bytes of memory at @at, at most BLOCK, by new pages with the same content: the
 * pages from byte @off of file @fd on, or anonymous pages if @fd is negative. Returns 0 or an
 * errno.
 */
static int
swap_block(int uffd, uint8_t *at, size_t len, int fd, uint64_t off)
{
	struct uffdio_range range = {.start = (uintptr_t)at, .len = len};
	void *to = new_pages(len, fd, off);
	int rc;

	if (to == NULL)
		return ENOMEM;
	(void)syscall(SYS_madvise, at, len, POPULATE_READ);
	rc = share_protect(uffd, at, len);
	if (rc == 0)
		rc = copy(to, (const uint64_t *)(const void *)at, len);
	if (rc != 0)
		goto unmap;
	/*
	 * UCX replaces mremap() of libc by a function that drops the last argument, and maps the
	 * pages at address 0 then (src/ucm/mmap/install.c of 1.13). The system call is not
	 * replaced.
	 */
	if (syscall(SYS_mremap, to, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == -1) {
		rc = errno;
		goto unmap;
	}
	/* The threads that wait for the old pages continue with the new pages. */
	(void)libc_ioctl(uffd, UFFDIO_WAKE, &range);
	return 0;

unmap:
	share_unprotect(uffd, at, len);
	(void)munmap(to, len);
	return rc;
}

int
share_swap(uint8_t *at, size_t len, int fd, uint64_t off)
{
	int uffd = share_uffd(NULL), rc = 0;
	struct thread_state before;
	size_t n, done;

	/* Without protection, stores of other threads could get lost. */
	if (uffd < 0)
		return errno;
	/*
	 * Blocks signals: a handler in this thread could write to protected pages, and would wait
	 * forever, because only this thread replaces the pages.
	 */
	thread_hold(&before);
	for (done = 0; done < len && rc == 0; done += n) {
		n = len - done < BLOCK ? len - done : BLOCK;
		rc = swap_block(uffd, at + done, n, fd, off + done);
	}
	thread_release(&before);
	libc_close(uffd);
	return rc;
}
