/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "preload.h"

#define MAX_FDS  65536u
#define MAX_LEFT 64u

static uint8_t kinds[MAX_FDS]; /* enum fd_kind; atomic */
static void *files[MAX_FDS];
static struct fd_ref left[MAX_LEFT]; /* files without a descriptor, to be closed */
static unsigned int n_left;          /* number of used entries of left; atomic */
static unsigned int end; /* 1 + the highest descriptor that was ever in the table; atomic */
static pid_t owner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
lock_table(struct thread_state *before)
{
	thread_hold(before);
	pthread_mutex_lock(&lock);
}

static void
unlock_table(const struct thread_state *before)
{
	pthread_mutex_unlock(&lock);
	thread_release(before);
}

bool
fds_maybe(int fd)
{
	return fd >= 0 && (unsigned int)fd < MAX_FDS &&
	       __atomic_load_n(&kinds[fd], __ATOMIC_RELAXED) != FD_NONE;
}

/* Holds the lock during fork(), so that the child gets a consistent table. */
static void
before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void
in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * Runs in the child after fork(). The device stays with the parent, so the child's descriptors of
 * the device can only be closed.
 */
static void
in_child(void)
{
	unsigned int fd;

	for (fd = 0; fd < end; fd++)
		if (kinds[fd] != FD_NONE)
			kinds[fd] = FD_ORPHAN;
	n_left = 0;
	owner = getpid();
	pthread_mutex_unlock(&lock);
}

/*
 * Returns true in a child of vfork() or clone() that shares its parent's memory. The table then has
 * the descriptors of the parent.
 */
static bool
foreign(void)
{
	return getpid() != owner;
}

struct fd_ref
fds_get(int fd)
{
	struct fd_ref ref = {FD_NONE, NULL};
	struct thread_state before;

	if (!fds_maybe(fd) || foreign())
		return ref;
	lock_table(&before);
	ref.kind = (enum fd_kind)kinds[fd];
	ref.p = files[fd];
	if (ref.kind == FD_NODE)
		uverbs_get(ref.p);
	else if (ref.kind == FD_EVENTS)
		uverbs_events_get(ref.p);
	else if (ref.kind == FD_CM)
		cm_get(ref.p);
	unlock_table(&before);
	return ref;
}

void
fds_put(const struct fd_ref *ref)
{
	if (ref->kind == FD_NODE)
		uverbs_put(ref->p);
	else if (ref->kind == FD_EVENTS)
		uverbs_events_put(ref->p);
	else if (ref->kind == FD_CM)
		cm_put(ref->p);
}

void
fds_init(void)
{
	static bool registered;

	if (registered)
		return;
	registered = true;
	owner = getpid();
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

bool
fds_set(int fd, enum fd_kind kind, void *p)
{
	struct thread_state before;

	if (fd < 0 || (unsigned int)fd >= MAX_FDS)
		return false;
	lock_table(&before);
	files[fd] = p;
	__atomic_store_n(&kinds[fd], (uint8_t)kind, __ATOMIC_RELAXED);
	if ((unsigned int)fd >= end)
		__atomic_store_n(&end, (unsigned int)fd + 1, __ATOMIC_RELAXED);
	unlock_table(&before);
	return true;
}

/* Returns true if descriptors of the kind may be duplicated. */
static bool
has_duplicates(enum fd_kind kind)
{
	return kind == FD_NODE || kind == FD_CM || kind == FD_ORPHAN;
}

/* Returns true if a descriptor of the file is open. Call with the lock held. */
static bool
is_open(const void *file)
{
	unsigned int fd;

	for (fd = 0; fd < end; fd++)
		if (kinds[fd] != FD_NONE && files[fd] == file)
			return true;
	return false;
}

bool
fds_dup(int fd, int to)
{
	enum fd_kind kind;
	struct thread_state before;

	if (to < 0 || !fds_maybe(fd) || foreign())
		return true;
	lock_table(&before);
	kind = (enum fd_kind)kinds[fd];
	if (has_duplicates(kind) && (unsigned int)to < MAX_FDS) {
		files[to] = files[fd];
		__atomic_store_n(&kinds[to], (uint8_t)kind, __ATOMIC_RELAXED);
		if ((unsigned int)to >= end)
			__atomic_store_n(&end, (unsigned int)to + 1, __ATOMIC_RELAXED);
	}
	unlock_table(&before);
	return !has_duplicates(kind) || (unsigned int)to < MAX_FDS;
}

/*
 * Gives a descriptor the kind @kind. Returns the file that it had, of kind FD_NONE if another
 * descriptor has the file, too. Call with the lock held.
 */
static struct fd_ref
take(unsigned int fd, enum fd_kind kind)
{
	struct fd_ref ref = {(enum fd_kind)kinds[fd], files[fd]};

	__atomic_store_n(&kinds[fd], (uint8_t)kind, __ATOMIC_RELAXED);
	files[fd] = NULL;
	if ((ref.kind == FD_NODE || ref.kind == FD_CM) && is_open(ref.p))
		ref.kind = FD_NONE;
	return ref;
}

static void
close_file(const struct fd_ref *ref)
{
	if (ref->kind == FD_NODE)
		uverbs_close(ref->p);
	else if (ref->kind == FD_EVENTS)
		uverbs_events_close(ref->p);
	else if (ref->kind == FD_CM)
		cm_put(ref->p);
}

/* Gives a descriptor the kind @kind, and closes its file if no other descriptor has it. */
static void
release(int fd, enum fd_kind kind)
{
	struct fd_ref ref;
	struct thread_state before;

	lock_table(&before);
	ref = take((unsigned int)fd, kind);
	unlock_table(&before);
	close_file(&ref);
}

void
fds_leave(unsigned int first, unsigned int last)
{
	struct thread_state before;
	unsigned int fd;

	if (foreign())
		return;
	lock_table(&before);
	for (fd = first; fd < end && fd <= last; fd++) {
		const struct fd_ref ref = take(fd, FD_NONE);

		/* An orphan has no file. A file that has no room here stays open. */
		if (ref.kind == FD_NONE || ref.kind == FD_ORPHAN || n_left == MAX_LEFT)
			continue;
		left[n_left] = ref;
		__atomic_store_n(&n_left, n_left + 1, __ATOMIC_RELAXED);
	}
	unlock_table(&before);
}

/* Closes the files that fds_leave() has left. */
static void
close_left(void)
{
	struct fd_ref ref;
	struct thread_state before;

	while (__atomic_load_n(&n_left, __ATOMIC_RELAXED) != 0 && !foreign()) {
		ref.kind = FD_NONE;
		lock_table(&before);
		if (n_left != 0) {
			ref = left[n_left - 1];
			__atomic_store_n(&n_left, n_left - 1, __ATOMIC_RELAXED);
		}
		unlock_table(&before);
		close_file(&ref);
	}
}

void
fds_close(int fd)
{
	if (fds_maybe(fd) && !foreign())
		release(fd, FD_NONE);
}

void
fds_close_range(unsigned int first, unsigned int last)
{
	const unsigned int stop = __atomic_load_n(&end, __ATOMIC_RELAXED);
	unsigned int fd;

	close_left();
	for (fd = first; fd < stop && fd <= last; fd++)
		fds_close((int)fd);
}

bool
fds_orphan(void)
{
	const unsigned int stop = __atomic_load_n(&end, __ATOMIC_RELAXED);
	bool any = false;
	unsigned int fd;

	close_left();
	for (fd = 0; fd < stop; fd++) {
		if (!fds_maybe((int)fd))
			continue;
		any = true;
		release((int)fd, FD_ORPHAN);
	}
	return any;
}

bool
fds_any_node(void)
{
	const unsigned int stop = __atomic_load_n(&end, __ATOMIC_RELAXED);
	unsigned int fd;

	for (fd = 0; fd < stop; fd++)
		if (__atomic_load_n(&kinds[fd], __ATOMIC_RELAXED) == FD_NODE)
			return true;
	return __atomic_load_n(&n_left, __ATOMIC_RELAXED) != 0;
}
