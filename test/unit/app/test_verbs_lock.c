/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The lock of a port of bb_verbs, with a fcntl() whose results the test sets. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bb_test.h"
#include "libc.h"
#include "preload.h"

static int set_error;      /* errno of F_SETLK */
static unsigned int fails; /* number of calls of F_SETLK that fail */
static unsigned int calls; /* of F_SETLK */
static bool held;          /* F_GETLK finds a process that has the lock */
static int get_error;      /* errno of F_GETLK, or 0 */

static int
locks(int command, struct flock *l)
{
	if (command == F_SETLK) {
		calls++;
		errno = set_error;
		return calls <= fails ? -1 : 0;
	}
	assert_int_equal(command, F_GETLK);
	assert_int_equal(l->l_type, F_WRLCK);
	l->l_type = held ? F_WRLCK : F_UNLCK;
	l->l_pid = held ? 4711 : l->l_pid;
	errno = get_error;
	return get_error != 0 ? -1 : 0;
}

int
libc_fcntl(int fd, int command, ...)
{
	struct flock *l;
	va_list ap;

	(void)fd;
	va_start(ap, command);
	l = va_arg(ap, struct flock *);
	va_end(ap);
	return locks(command, l);
}

int
libc_open(const char *path, int flags, mode_t mode)
{
	return open(path, flags, mode);
}

int
libc_close(int fd)
{
	return close(fd);
}

/* Locks with these results. Returns what port_lock() returns. */
static int
lock(unsigned int failures, int error, bool other, int get)
{
	int fd = -1, ret;

	calls = 0;
	fails = failures;
	set_error = error;
	held = other;
	get_error = get;
	ret = port_lock("net_memif0,role=server", &fd);
	if (ret == 0)
		assert_int_equal(close(fd), 0);
	else
		assert_int_equal(close(fd), -1);
	return ret;
}

TEST(test_lock_is_busy_only_if_a_process_has_it)
{
	char folder[] = "/tmp/bb_lock.XXXXXX", path[64];

	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv(VERBS_ENV_TREE, folder, 1), 0);
	assert_int_equal(lock(0, 0, false, 0), 0);
	assert_int_equal(lock(1, EAGAIN, true, 0), -EBUSY);
	assert_int_equal(lock(1, EACCES, true, 0), -EBUSY);
	assert_int_equal(calls, 1);
	assert_int_equal(lock(1, ENOLCK, true, 0), -ENOLCK);
	assert_int_equal(calls, 1);
	assert_int_equal(lock(1, EAGAIN, true, EIO), -EIO);
	/* The holder has ended between the two calls. */
	assert_int_equal(lock(3, EAGAIN, false, 0), 0);
	assert_int_equal(calls, 4);
	assert_int_equal(lock(1000000, EAGAIN, false, 0), -EAGAIN);
	snprintf(path, sizeof(path), "%s/port", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(lock(0, 0, false, 0), -ENOENT);
}

int
main(void)
{
	return bb_test_run(__FILE__, NULL, NULL);
}
