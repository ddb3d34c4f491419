/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "child.h"

#define SECONDS 60

/* The child makes only async-signal-safe calls between fork and exec. */
pid_t
child_spawn(const char *path, const char *const *argv, char *const *env, unsigned int cpu, int out)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		cpu_set_t set;
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		dup2(null, 0);
		dup2(out >= 0 ? out : null, 1);
		dup2(null, 2);
		execve(path, (char *const *)(uintptr_t)argv, env);
		_exit(127);
	}
	return pid;
}

/* Reads from @fd to its end. Returns false on a timeout. */
static bool
read_all(int fd, char *text, size_t size)
{
	uint64_t start = tsc();
	size_t len = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int left = (int)(SECONDS * 1000 - ns_since(start) / 1e6);
		ssize_t k = -1;

		if (left <= 0 || len + 1 >= size)
			return false;
		if (poll(&p, 1, left) == 1)
			k = read(fd, text + len, size - 1 - len);
		if (k > 0)
			len += (size_t)k;
		text[len] = '\0';
		if (k == 0)
			return true;
	}
}

int
child_run(const char *path, const char *const *argv, char *const *env, char *text, size_t size)
{
	int fds[2], status;
	bool good;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid = child_spawn(path, argv, env, cpu_self, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -EAGAIN;
	}
	good = read_all(fds[0], text, size);
	close(fds[0]);
	if (!good)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!good)
		return -ETIMEDOUT;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EAGAIN;
}

int
child_run_beside(const char *name, const char **argv, char *text, size_t size)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (len < 0)
		return -errno;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (slash == NULL ||
	    (size_t)snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s", name) >=
		    sizeof(path) - (size_t)(slash + 1 - path))
		return -ENAMETOOLONG;
	if (access(path, X_OK) != 0)
		return -errno;
	argv[0] = path;
	return child_run(path, argv, environ, text, size);
}
