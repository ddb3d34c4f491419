/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The lock of a port, by which one process of a launcher has it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libc.h"
#include "preload.h"

#define TRIES 100u

/*
 * Locks the file. Returns 0 or a negative errno. With -EBUSY, *holder is the process that has the
 * lock.
 */
static int
lock_file(int fd, int *holder)
{
	struct flock l;
	unsigned int i;

	/* The holder may give the lock back between the two calls. */
	for (i = 0; i < TRIES; i++) {
		l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
		if (libc_fcntl(fd, F_SETLK, &l) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		if (libc_fcntl(fd, F_GETLK, &l) != 0)
			return -errno;
		*holder = l.l_pid;
		if (l.l_type != F_UNLCK)
			return -EBUSY;
	}
	return -EAGAIN;
}

int
port_lock(const char *vdev, int *fd)
{
	const char *tree = getenv(VERBS_ENV_TREE);
	char path[PATH_MAX];
	int ret, holder = 0;

	if (tree == NULL || snprintf(path, sizeof(path), "%s/port", tree) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	*fd = libc_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*fd < 0) {
		ret = -errno;
		fprintf(stderr, "bb_verbs: %s: %s\n", path, strerror(-ret));
		return ret;
	}
	ret = lock_file(*fd, &holder);
	if (ret == 0)
		return 0;
	if (ret == -EBUSY)
		fprintf(stderr,
			"bb_verbs: process %d of this bb_verbs command has %.*s: one process can "
			"use a port; start each process by its own bb_verbs, with a port and an "
			"address of its own\n",
			holder, (int)strcspn(vdev, ","), vdev);
	else
		fprintf(stderr,
			"bb_verbs: %s: cannot be locked: %s; let TMPDIR name a folder whose file "
			"system has locks\n",
			path, strerror(-ret));
	libc_close(*fd);
	return ret;
}
