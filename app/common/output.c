/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "output.h"

extern char *program_invocation_short_name; /* of libc, which shows it to _GNU_SOURCE only */

/* ---- Opening */

/*
 * Number of the descriptor that a path names: /dev/stdout, /dev/stderr, /dev/fd/N (as `>(program)`
 * of a shell gives it), /proc/self/fd/N. -1: another path.
 */
static int
named_fd(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	unsigned int i, n;
	char end;

	if (strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t len = strlen(folders[i]);

		if (strncmp(path, folders[i], len) == 0 && path[len] >= '0' && path[len] <= '9' &&
		    sscanf(path + len, "%9u%c", &n, &end) == 1)
			return (int)n;
	}
	return -1;
}

/* Mode that a new file of results gets. */
static mode_t
new_mode(void)
{
	/* There is no call that only asks. What another thread makes now is private. */
	mode_t mask = umask(077);

	umask(mask);
	return 0666 & ~mask;
}

/*
 * Checks an open file that was there before. A file of another user would let that user read or
 * change the results; one of several names may be anything of this user's. @keep: its mode stays,
 * else it loses what the mode of a new file has not. NULL, or what is wrong.
 *
 * The kernel compares the real owner for fchmod(), also where a user namespace shows several users
 * as one.
 */
static const char *
check_existing(int fd, bool keep)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return strerror(errno);
	if (S_ISCHR(st.st_mode))
		return NULL;
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return "not a plain file";
	if (st.st_uid != geteuid())
		return "it belongs to another user; remove it or give another file";
	if (S_ISREG(st.st_mode) && st.st_nlink != 1)
		return "it has other names too (hard links); remove it or give another file";
	if (S_ISREG(st.st_mode) && fchmod(fd, st.st_mode & (keep ? 07777 : new_mode())) != 0)
		return strerror(errno);
	return NULL;
}

/*
 * Opens @path without following a link; @keep: a file that is there stays as it is. Says what is
 * wrong. -1: it cannot be written.
 */
static int
open_fd(const char *option, const char *path, bool keep, bool *made)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW;
	const char *why = NULL;
	int fd = named_fd(path);

	*made = false;
	if (fd >= 0) {
		fflush(stdout);
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	} else {
		fd = open(path, flags | O_CREAT | O_EXCL, 0666);
		*made = fd >= 0;
		if (fd < 0 && errno == EEXIST) {
			fd = open(path, flags);
			why = fd >= 0 ? check_existing(fd, keep) : NULL;
		}
	}
	if (fd >= 0 && why == NULL)
		return fd;
	if (fd < 0)
		why = errno == ELOOP ? "a symbolic link; give the file itself" : strerror(errno);
	fprintf(stderr, "%s: --%s %s: %s%s\n", program_invocation_short_name, option, path, why,
		fd < 0 && errno != ELOOP ? "; give a file that can be written" : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The open file is what @path names, and a plain file. */
static bool
is_file(int fd, const char *path)
{
	struct stat st, named;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lstat(path, &named) == 0 &&
	       named.st_dev == st.st_dev && named.st_ino == st.st_ino;
}

bool
output_try(const char *option, const char *path)
{
	struct stat st;
	bool made;
	int fd;

	if (path == NULL)
		return true;
	/* Its reader would take our close for the end. */
	if (lstat(path, &st) == 0 && S_ISFIFO(st.st_mode))
		return true;
	fd = open_fd(option, path, true, &made);
	if (fd < 0)
		return false;
	if (made && is_file(fd, path))
		unlink(path);
	close(fd);
	return true;
}

FILE *
output_open(const char *option, const char *path)
{
	bool made;
	int fd = open_fd(option, path, false, &made);
	FILE *f;

	if (fd < 0)
		return NULL;
	f = is_file(fd, path) && ftruncate(fd, 0) != 0 ? NULL : fdopen(fd, "w");
	if (f == NULL) {
		fprintf(stderr, "%s: --%s %s: %s\n", program_invocation_short_name, option, path,
			strerror(errno));
		close(fd);
	}
	return f;
}

int
output_close(FILE *f, const char *option, const char *path)
{
	/* What did not fit a full disk may have been lost before. */
	int rc = ferror(f) ? -EIO : 0;
	const char *why = "not all of it was written";
	int fd = dup(fileno(f));
	bool removed = false;

	if (fclose(f) != 0) {
		rc = -errno;
		why = strerror(errno);
	}
	if (rc != 0 && fd >= 0 && is_file(fd, path))
		removed = unlink(path) == 0;
	if (fd >= 0)
		close(fd);
	if (rc == 0)
		return 0;
	fprintf(stderr, "%s: --%s %s: %s; %sgive a file that has room\n",
		program_invocation_short_name, option, path, why,
		removed ? "cut short it is of no use, and removed; " : "");
	return rc;
}

/* ---- Standard output */

static void
check_stdout(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	if (ferror(stdout) == 0 && fflush(stdout) == 0)
		return;
	/* Who closed a pipe needs no line: SIGPIPE has ended what was under way. */
	if (poll(&out, 1, 0) != 1 || (out.revents & POLLERR) == 0)
		fprintf(stderr, "%s: what it printed could not all be written: is the disk full?\n",
			program_invocation_short_name);
	_exit(EXIT_FAILURE);
}

void
output_watch(void)
{
	atexit(check_stdout);
}
