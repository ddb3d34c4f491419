/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "output.h"

extern char *program_invocation_short_name; /* of libc, which shows it to _GNU_SOURCE only */

static FILE *
open_for(const char *option, const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (f == NULL)
		fprintf(stderr, "%s: --%s %s: %s; give a file that can be written\n",
			program_invocation_short_name, option, path, strerror(errno));
	return f;
}

bool
output_try(const char *option, const char *path)
{
	struct stat before;
	bool was;
	FILE *f;

	if (path == NULL)
		return true;
	was = stat(path, &before) == 0;
	/* Who reads it would take our close for the end. */
	if (was && S_ISFIFO(before.st_mode))
		return true;
	f = open_for(option, path, "a");
	if (f == NULL)
		return false;
	fclose(f);
	if (!was)
		remove(path);
	return true;
}

FILE *
output_open(const char *option, const char *path)
{
	return open_for(option, path, "w");
}

int
output_close(FILE *f, const char *option, const char *path)
{
	/* What did not fit a full disk may have been lost before. */
	int rc = ferror(f) ? -EIO : 0;
	const char *why = "not all of it was written";
	bool removed = false;
	struct stat st;

	if (fclose(f) != 0) {
		rc = -errno;
		why = strerror(errno);
	}
	if (rc == 0)
		return 0;
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		removed = remove(path) == 0;
	fprintf(stderr, "%s: --%s %s: %s; %sgive a file that has room\n",
		program_invocation_short_name, option, path, why,
		removed ? "cut short it is of no use, and removed; " : "");
	return rc;
}

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
