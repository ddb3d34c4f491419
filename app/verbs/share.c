/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shares registered memory with other processes. Each region has a file of its own, so a peer gets
 * only pages that were registered for it. Each file is much larger than its region and sparse: if
 * the program enlarges the mapping by mremap(), the new pages are zeros of the file.
 *
 * The file belongs to the memory, not to the MR: it stays until the program unmaps the memory.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libc.h"
#include "preload.h"
#include "share.h"

#define PAGE       ((uintptr_t)4096)
#define MAX_FILES  192u
#define FILE_BYTES ((uint64_t)1 << 46)
/* Descriptors of the files have high numbers, because programs count on low numbers. */
#define MIN_FD 512u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct share_file files[MAX_FILES];
static unsigned int n_files; /* number of used entries of files; accessed with __atomic */
static bool forking; /* true from before share_lock() takes the lock until share_unlock(); accessed
			with __atomic */

static void __attribute__((format(printf, 3, 4)))
report(const void *addr, uint64_t len, const char *fmt, ...)
{
	char how[256];
	va_list ap;

	if (getenv(VERBS_ENV_TRACE) == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(how, sizeof(how), fmt, ap);
	va_end(ap);
	/* One call, so that another process that has the same stderr cannot write into the line. */
	fprintf(stderr, "verbs: memory %p, %llu bytes: %s\n", addr, (unsigned long long)len, how);
}

static void
file_remove(unsigned int i)
{
	files[i] = files[n_files - 1];
	__atomic_store_n(&n_files, n_files - 1, __ATOMIC_RELAXED);
}

/* Returns false if the program has closed the descriptor of the file, such as by closefrom(). */
static bool
is_open(const struct share_file *f)
{
	struct stat st;

	return libc_fstat(f->fd, &st) == 0 && st.st_ino == f->ino && st.st_dev == f->dev;
}

/* Closes and forgets the files that the last share_scan() has found to be without a mapping. */
static void
prune(void)
{
	unsigned int i = 0;

	while (i < n_files) {
		if (files[i].mapped) {
			i++;
			continue;
		}
		if (is_open(&files[i]))
			libc_close(files[i].fd);
		file_remove(i);
	}
}

/* Creates a file. Returns it, or NULL with errno. */
static struct share_file *
file_new(void)
{
	struct share_file *f = &files[n_files];
	struct rlimit limit;
	struct stat st;
	int fd;

	if (n_files == MAX_FILES || getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
	    limit.rlim_cur != RLIM_INFINITY) {
		errno = n_files == MAX_FILES ? ENFILE : EFBIG;
		return NULL;
	}
	fd = memfd_create("bb-verbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return NULL;
	/* A peer must not be able to truncate the file beneath the program. */
	if (ftruncate(fd, (off_t)FILE_BYTES) != 0 || libc_fstat(fd, &st) != 0 ||
	    libc_fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
		libc_close(fd);
		return NULL;
	}
	f->fd = libc_fcntl(fd, F_DUPFD_CLOEXEC, MIN_FD);
	if (f->fd < 0)
		f->fd = fd;
	else
		libc_close(fd);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	__atomic_store_n(&n_files, n_files + 1, __ATOMIC_RELAXED);
	return f;
}

/*
 * Returns true if [from, end) is a block of malloc() that has its own mapping, and @addr is its
 * start. Such pages contain nothing else but two words before @addr: its size with flag 2,
 * IS_MMAPPED of glibc (malloc.c).
 */
static bool
own_block(const uint8_t *addr, uintptr_t from, uintptr_t end)
{
	size_t size;

	if ((uintptr_t)addr - from != 2 * sizeof(size))
		return false;
	memcpy(&size, addr - sizeof(size), sizeof(size));
	return size == ((end - from) | 2);
}

/*
 * Shares private pages. If @guard is not full protection, a system call that writes to the pages
 * meanwhile may fail. So then shares only pages that contain nothing but [addr, addr + len), so
 * that no other data of the program is affected.
 */
static bool
share_private(const uint8_t *addr, uint64_t len, enum share_guard guard, struct soft_memory *m)
{
	uintptr_t from = (uintptr_t)addr & ~(PAGE - 1);
	uintptr_t end = ((uintptr_t)addr + len + PAGE - 1) & ~(PAGE - 1);
	struct share_file *f;
	int rc;

	if (guard != SHARE_FULL_GUARD && !own_block(addr, from, end)) {
		from = ((uintptr_t)addr + PAGE - 1) & ~(PAGE - 1);
		end = ((uintptr_t)addr + len) & ~(PAGE - 1);
	}
	if (from >= end) {
		report(addr, len, "by packets: its pages hold other data, too");
		return false;
	}
	f = file_new();
	if (f == NULL) {
		report(addr, len, "by packets: no file for it: %s", strerror(errno));
		return false;
	}
	rc = share_swap((uint8_t *)from, end - from, f->fd, 0);
	if (rc != 0) {
		report(addr, len, "by packets: its pages cannot be replaced: %s", strerror(rc));
		return false;
	}
	m->fd = f->fd;
	m->dev = f->dev;
	m->ino = f->ino;
	m->skip = from > (uintptr_t)addr ? from - (uintptr_t)addr : 0;
	m->off = from > (uintptr_t)addr ? 0 : (uintptr_t)addr - from;
	m->len = (end < (uintptr_t)addr + len ? end - (uintptr_t)addr : len) - m->skip;
	report(addr, len, "shared, %llu bytes from byte %llu on", (unsigned long long)m->len,
	       (unsigned long long)m->skip);
	return true;
}

bool
share_memory(const uint8_t *addr, uint64_t len, struct soft_memory *m)
{
	const uintptr_t from = (uintptr_t)addr & ~(PAGE - 1);
	const uintptr_t end = ((uintptr_t)addr + len + PAGE - 1) & ~(PAGE - 1);
	const enum share_guard guard = share_guard();
	const bool stack = share_on_stack(from, end); /* called before the lock is taken, because
							 it allocates memory */
	struct share_found found;
	bool shared = false;

	if (getenv(VERBS_ENV_NO_SHARE) != NULL) {
		report(addr, len, "by packets: " VERBS_ENV_NO_SHARE " is set");
		return false;
	}
	pthread_mutex_lock(&lock);
	found = share_scan(from, end, files, n_files);
	if (found.kind == SHARE_OURS) {
		*m = (struct soft_memory){
			.fd = is_open(found.file) ? found.file->fd : -1,
			.dev = found.file->dev,
			.ino = found.file->ino,
			.off = found.off + ((uintptr_t)addr - from),
			.len = len,
		};
		shared = true;
		report(addr, len, "%s",
		       m->fd >= 0 ? "already shared"
				  : "by packets: the program has closed its descriptor");
	} else if (found.kind != SHARE_PRIVATE || stack) {
		report(addr, len, "by packets: %s",
		       share_why(found.kind != SHARE_PRIVATE ? found.kind : SHARE_STACK));
	} else if (guard == SHARE_NO_GUARD) {
		report(addr, len, "by packets: this system offers no userfaultfd");
	} else {
		prune();
		shared = share_private(addr, len, guard, m);
	}
	pthread_mutex_unlock(&lock);
	return shared;
}

/* ---- The end of sharing */

static bool
make_private(void *arg, const struct share_file *file, uintptr_t at, size_t len, uint64_t off)
{
	(void)arg;
	(void)file;
	(void)off;
	(void)share_swap((uint8_t *)at, len, -1, 0);
	return true;
}

void
share_end(void)
{
	if (n_files == 0)
		return;
	if (!share_each(0, UINTPTR_MAX, files, n_files, make_private, NULL))
		return; /* the memory stays shared, and a child does not get it */
	if (share_scan(0, PAGE, files, n_files).kind != SHARE_UNKNOWN)
		prune();
}

void
share_lock(void)
{
	__atomic_store_n(&forking, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&lock);
}

void
share_unlock(void)
{
	__atomic_store_n(&forking, false, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

/* ---- madvise() */

/*
 * Discards pages: the program then reads zeros, as in private memory. MADV_REMOVE needs no
 * descriptor, which the program may have closed, but a mapping with write rights. Sets the bool at
 * @arg, and ends share_each(), if the kernel refuses locked pages.
 */
static bool
discard(void *arg, const struct share_file *file, uintptr_t at, size_t len, uint64_t off)
{
	bool *locked = arg;

	if (syscall(SYS_madvise, at, len, MADV_REMOVE) == 0)
		return true;
	*locked = errno == EINVAL;
	if (errno == EACCES && is_open(file))
		(void)fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
				(off_t)len);
	return !*locked;
}

static bool
not_to_child(void *arg, const struct share_file *file, uintptr_t at, size_t len, uint64_t off)
{
	(void)arg;
	(void)file;
	(void)off;
	(void)syscall(SYS_madvise, at, len, MADV_DONTFORK);
	return true;
}

/*
 * Makes shared pages behave as private pages. MADV_DONTNEED and MADV_FREE discard their content.
 * MADV_DOFORK has no effect: children must not get the pages, or they would write into the memory
 * of this process.
 */
PUBLIC int
madvise(void *addr, size_t len, int advice)
{
	const uintptr_t end = ((uintptr_t)addr + len + PAGE - 1) & ~(PAGE - 1);
	const int saved = errno;
	bool locked = false;
	int cancel, rc, error;

	REAL(int, madvise, void *, size_t, int);
	rc = real(addr, len, advice);
	error = errno;
	if (__atomic_load_n(&n_files, __ATOMIC_RELAXED) == 0 ||
	    (advice != MADV_DONTNEED && advice != MADV_FREE && advice != MADV_DOFORK) ||
	    ((uintptr_t)addr & (PAGE - 1)) != 0 || end < (uintptr_t)addr)
		return rc;
	/* madvise() of libc is no cancellation point either. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/*
	 * An allocator may call madvise() while it holds a lock that its fork() handler takes, too.
	 * So this call does not wait for the end of a fork. During a fork all memory is private.
	 */
	while (pthread_mutex_trylock(&lock) != 0) {
		if (__atomic_load_n(&forking, __ATOMIC_ACQUIRE)) {
			pthread_setcancelstate(cancel, NULL);
			return rc;
		}
		sched_yield();
	}
	(void)share_each((uintptr_t)addr, end, files, n_files,
			 advice == MADV_DOFORK ? not_to_child : discard, &locked);
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
	/* The kernel frees only private pages by MADV_FREE; shared pages are discarded above. */
	if (rc != 0 && advice == MADV_FREE && !locked) {
		error = saved;
		rc = 0;
	}
	errno = error;
	return rc;
}
