/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* This process: its descriptors, its program, and whether the kernel copies its memory. */
#ifndef PROCESS_H
#define PROCESS_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PROCESS_MAX_ARGS 64

/* Returns the number of open file descriptors of this process; a leak shows in it. */
static inline int
descriptors(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Raises the limit of file descriptors to its hard limit. Returns false if that is below @n. */
static inline bool
descriptors_raise(rlim_t n)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_max < n)
		return false;
	lim.rlim_cur = lim.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &lim) == 0;
}

static struct rlimit process_limit; /* before descriptors_leave() */

/* Leaves @n free file descriptors until descriptors_restore(), if none above the next is open. */
static inline void
descriptors_leave(unsigned int n)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit few;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &process_limit) != 0)
		abort();
	close(fd);
	few = process_limit;
	few.rlim_cur = (rlim_t)fd + n;
	if (setrlimit(RLIMIT_NOFILE, &few) != 0)
		abort();
}

static inline void
descriptors_restore(void)
{
	if (setrlimit(RLIMIT_NOFILE, &process_limit) != 0)
		abort();
}

/*
 * Executes the program of this process again with @argv; returns only if that fails. The kernel
 * does not execute a program that an emulator runs: meson names the emulator in MESON_EXE_WRAPPER,
 * quoted for a shell. The program then gets its file name as argv[0].
 */
static inline void
exec_again(char *const *argv)
{
	char sh[] = "sh", option[] = "-c", line[] = "eval \"exec $MESON_EXE_WRAPPER \\\"\\$@\\\"\"";
	char *by_shell[PROCESS_MAX_ARGS + 4] = {sh, option, line, sh};
	char path[PATH_MAX];
	ssize_t len;
	int i;

	if (getenv("MESON_EXE_WRAPPER") == NULL) {
		execv("/proc/self/exe", argv);
		return;
	}
	len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (len < 0)
		return;
	path[len] = '\0';
	by_shell[4] = path;
	for (i = 1; argv[i] != NULL && i < PROCESS_MAX_ARGS - 1; i++)
		by_shell[4 + i] = argv[i];
	execv("/bin/sh", by_shell);
}

/*
 * Returns true if the kernel copies memory between processes by process_vm_readv(2). A seccomp
 * filter can forbid the call, and QEMU's emulation of Linux lacks it.
 */
static inline bool
kernel_copies_memory(void)
{
	char from = 1, to = 0;
	const struct iovec here = {&to, 1}, there = {&from, 1};

	return syscall(SYS_process_vm_readv, getpid(), &here, 1ul, &there, 1ul, 0ul) == 1;
}

/* Skips a test whose device needs that call, as for memory on demand. */
#define NEED_KERNEL_COPIES()                                                                       \
	do {                                                                                       \
		if (!kernel_copies_memory()) {                                                     \
			printf("skipped: process_vm_readv(): %s\n", strerror(errno));              \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

#endif
