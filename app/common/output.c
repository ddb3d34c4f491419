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

extern char *program_invocation_short_name; /* libc declares this variable only with _GNU_SOURCE */

/* ---- Opening */

/*
 * Returns the descriptor that a path names: /dev/stdout, /dev/stderr, /dev/fd/N (the form of a
 * shell's `>(program)`) or /proc/self/fd/N. Returns -1 for any other path.
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

/* Returns the permission bits that a new result file gets under the current umask. */
static mode_t
new_mode(void)
{
	/*
	 * A process can read its umask only by setting it. The temporary umask is strict, so files
	 * that other threads create meanwhile are private.
	 */
	mode_t mask = umask(077);

	umask(mask);
	return 0666 & ~mask;
}

/*
 * Checks whether results may be written to the existing file that is open as @fd. Returns NULL, or
 * the text of the error. Rejects a file of another user, who could read or change the results.
 * Rejects a file with several hard links, because the results would overwrite the file under its
 * other names, too.
 *
 * If @keep is true, the file's mode stays unchanged. Otherwise the function removes the permissions
 * that a new file would not have. In both cases it calls fchmod(), which fails if the file belongs
 * to another user. A comparison of st_uid is not enough, because in a user namespace several users
 * may have the same number.
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
 * Opens @path without following a symbolic link. @keep: leaves an existing file unchanged. Sets
 * *@made to true if the file is new. Returns the descriptor, or -1 after printing the error.
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

/* Returns true if @path names the open file @fd and it is a regular file. */
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
	/*
	 * Does not open a FIFO. After the test this function would have to close the FIFO, and its
	 * reader would take the close for the end of the data.
	 */
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
	/*
	 * Checks for earlier errors too: data may have been lost when an earlier write found a full
	 * disk.
	 */
	int rc = ferror(f) ? -EIO : 0;
	const char *why = "the file was not written completely";
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
		removed ? "it is incomplete and was removed; " : "");
	return rc;
}

/* ---- Standard output */

static void
check_stdout(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	if (ferror(stdout) == 0 && fflush(stdout) == 0)
		return;
	/*
	 * Prints no error if the reader has closed the pipe, because SIGPIPE has then stopped the
	 * run.
	 */
	if (poll(&out, 1, 0) != 1 || (out.revents & POLLERR) == 0)
		fprintf(stderr,
			"%s: standard output was not written completely: is the disk "
			"full?\n",
			program_invocation_short_name);
	_exit(EXIT_FAILURE);
}

void
output_watch(void)
{
	atexit(check_stdout);
}
