/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Replacements for the calls of libc that take a path. Paths below /dev/infiniband and
 * /sys/class/infiniband*, by which programs find devices, lead to files that bb_verbs has made.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* the headers would rename these functions of libc */
#undef _FORTIFY_SOURCE   /* the headers would define some of these functions inline */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libc.h"
#include "preload.h"

/* Returns the node that a path names, or FD_NONE. */
static enum fd_kind
node_of(const char *path)
{
	if (path == NULL)
		return FD_NONE;
	return strcmp(path, VERBS_NODE) == 0      ? FD_NODE
	       : strcmp(path, VERBS_CM_NODE) == 0 ? FD_CM
						  : FD_NONE;
}

static int
open_at(int at, const char *path, int flags, mode_t mode)
{
	char to[PATH_MAX];

	REAL(int, openat, int, const char *, int, ...);
	if (node_of(path) != FD_NONE && (flags & (O_PATH | O_DIRECTORY)) == 0)
		return node_of(path) == FD_CM ? node_open_cm() : node_open();
	return port_own(real(at, node_path(path, to), port_flags(flags, O_CLOEXEC), mode));
}

#define HAS_MODE(flags_) (((flags_)&O_CREAT) != 0 || ((flags_)&O_TMPFILE) == O_TMPFILE)
/*
 * Defines a variant of open() or openat(). Relative paths start at @at_. The parameters before the
 * path, if any, are the last arguments of the macro, each with a comma after it.
 */
#define OPEN(name_, more_, at_, ...)                                                               \
	PUBLIC int name_(__VA_ARGS__ const char *path, int flags, ...)                             \
	{                                                                                          \
		va_list ap;                                                                        \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(ap, flags);                                                               \
		mode = HAS_MODE(flags) ? va_arg(ap, mode_t) : 0;                                   \
		va_end(ap);                                                                        \
		return open_at(at_, path, flags | (more_), mode);                                  \
	}
OPEN(open, 0, AT_FDCWD, )
OPEN(open64, O_LARGEFILE, AT_FDCWD, )
OPEN(openat, 0, at, int at, )
OPEN(openat64, O_LARGEFILE, at, int at, )

/* Names of open() in programs that are built with _FORTIFY_SOURCE. */
#define OPEN_2(name_, more_)                                                                       \
	int name_(const char *path, int flags);                                                    \
	PUBLIC int name_(const char *path, int flags)                                              \
	{                                                                                          \
		return open_at(AT_FDCWD, path, flags | (more_), 0);                                \
	}
OPEN_2(__open_2, 0)
OPEN_2(__open64_2, O_LARGEFILE)

/* ---- Calls that return the type and the inode number of a file */

/*
 * Writes type and number of the device node to *st_. The program must not see type and number of
 * the file that replaces the node.
 */
#define AS_NODE(st_, kind_)                                                                        \
	do {                                                                                       \
		(st_)->st_mode = S_IFCHR | 0666;                                                   \
		(st_)->st_rdev = (kind_) == FD_CM ? makedev(VERBS_CM_MAJOR, VERBS_CM_MINOR)        \
						  : makedev(VERBS_MAJOR, VERBS_MINOR);             \
	} while (0)

#define STAT(name_, type_)                                                                         \
	PUBLIC int name_(const char *path, struct type_ *st)                                       \
	{                                                                                          \
		char to[PATH_MAX];                                                                 \
		int rc;                                                                            \
                                                                                                   \
		REAL(int, name_, const char *, struct type_ *);                                    \
		rc = real(node_path(path, to), st);                                                \
		if (rc == 0 && node_of(path) != FD_NONE)                                           \
			AS_NODE(st, node_of(path));                                                \
		return rc;                                                                         \
	}
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

/* Returns the node that a descriptor is of, or FD_NONE. */
static enum fd_kind
node_of_fd(int fd)
{
	struct fd_ref ref;

	if (!fds_maybe(fd))
		return FD_NONE;
	ref = fds_get(fd);
	fds_put(&ref);
	return ref.kind == FD_NODE || ref.kind == FD_CM ? ref.kind : FD_NONE;
}

#define FSTAT(name_, type_)                                                                        \
	PUBLIC int name_(int fd, struct type_ *st)                                                 \
	{                                                                                          \
		enum fd_kind kind;                                                                 \
		int rc;                                                                            \
                                                                                                   \
		REAL(int, name_, int, struct type_ *);                                             \
		rc = real(fd, st);                                                                 \
		kind = rc == 0 ? node_of_fd(fd) : FD_NONE;                                         \
		if (kind != FD_NONE)                                                               \
			AS_NODE(st, kind);                                                         \
		return rc;                                                                         \
	}
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

PUBLIC int
statx(int at, const char *path, int flags, unsigned int mask, struct statx *st)
{
	enum fd_kind kind = node_of(path);
	char to[PATH_MAX];
	int rc;

	REAL(int, statx, int, const char *, int, unsigned int, struct statx *);
	rc = real(at, node_path(path, to), flags, mask, st);
	if (rc == 0 && kind == FD_NONE && path[0] == '\0')
		kind = node_of_fd(at);
	if (rc == 0 && kind != FD_NONE) {
		st->stx_mode = S_IFCHR | 0666;
		st->stx_rdev_major = kind == FD_CM ? VERBS_CM_MAJOR : VERBS_MAJOR;
		st->stx_rdev_minor = kind == FD_CM ? VERBS_CM_MINOR : VERBS_MINOR;
	}
	return rc;
}

PUBLIC int
access(const char *path, int mode)
{
	char to[PATH_MAX];

	REAL(int, access, const char *, int);
	return real(node_path(path, to), mode);
}

/* ---- Calls that open a folder, a symbolic link or a stream */

PUBLIC DIR *
opendir(const char *path)
{
	char to[PATH_MAX];

	REAL(DIR *, opendir, const char *);
	return real(node_path(path, to));
}

PUBLIC int
scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
	int (*compare)(const struct dirent **, const struct dirent **))
{
	char to[PATH_MAX];

	REAL(int, scandir, const char *, struct dirent ***, int (*)(const struct dirent *),
	     int (*)(const struct dirent **, const struct dirent **));
	return real(node_path(path, to), list, filter, compare);
}

PUBLIC ssize_t
readlink(const char *path, char *buf, size_t len)
{
	char to[PATH_MAX];

	REAL(ssize_t, readlink, const char *, char *, size_t);
	return real(node_path(path, to), buf, len);
}

PUBLIC char *
realpath(const char *path, char *out)
{
	char to[PATH_MAX];

	REAL(char *, realpath, const char *, char *);
	return real(node_path(path, to), out);
}

/*
 * Name of realpath() in programs that are built with _FORTIFY_SOURCE. Debian's UCX finds the PCI
 * device of an RDMA device by it (uct_ib_device_get_sysfs_path()).
 */
char *__realpath_chk(const char *path, char *out, size_t size);
PUBLIC char *
__realpath_chk(const char *path, char *out, size_t size)
{
	char to[PATH_MAX];

	REAL(char *, __realpath_chk, const char *, char *, size_t);
	return real(node_path(path, to), out, size);
}

#define FOPEN(name_)                                                                               \
	PUBLIC FILE *name_(const char *path, const char *mode)                                     \
	{                                                                                          \
		char to[PATH_MAX];                                                                 \
                                                                                                   \
		REAL(FILE *, name_, const char *, const char *);                                   \
		return real(node_path(path, to), mode);                                            \
	}
FOPEN(fopen)
FOPEN(fopen64)
