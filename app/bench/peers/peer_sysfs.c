/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Creates a /sys/class for libibverbs, which reads its location from SYSFS_PATH.
 *
 * A killed process cannot remove its files, so another process, the sweeper, removes them. The
 * sweeper reads from a pipe and sleeps there, because only this process holds the write end and
 * never writes. When this process ends, even by a kill, the pipe is closed and the sweeper wakes
 * up.
 */
#define _GNU_SOURCE /* for nftw() and pipe2() */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer_sysfs.h"

static char root[200];
static int alive = -1; /* write end of the pipe that the sweeper sleeps on; -1 if there is none */
static pid_t owner;

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void
remove_all(void)
{
	(void)nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/*
 * Runs the sweeper process and never returns. The sweeper has no terminal, no parent and no
 * inherited output.
 */
static void __attribute__((noreturn)) sweep(const int *ends)
{
	/* Uses openat(), because peer_uverbs.c defines open(). */
	const int null = openat(AT_FDCWD, "/dev/null", O_RDWR);
	int i;
	char c;

	for (i = 0; i <= 2; i++)
		dup2(null, i);
	close(ends[1]);
	while (read(ends[0], &c, 1) < 0 && errno == EINTR)
		;
	remove_all();
	_exit(0);
}

static int
watch(void)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork() == 0)
			sweep(ends);
		_exit(0);
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return -errno;
	}
	waitpid(pid, NULL, 0);
	alive = ends[1];
	owner = getpid();
	return 0;
}

int
peer_sysfs_put(const char *path, const char *text)
{
	char name[400];
	FILE *f;
	char *s;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	for (s = name + strlen(root) + 1; (s = strchr(s, '/')) != NULL; *s++ = '/') {
		*s = '\0';
		if (mkdir(name, 0700) != 0 && errno != EEXIST)
			return -errno;
	}
	f = fopen(name, "w");
	if (f == NULL)
		return -errno;
	fputs(text, f);
	return fclose(f) == 0 ? 0 : -errno;
}

int
peer_sysfs_start(void)
{
	static const char *const files[][2] = {
		{"class/infiniband_verbs/abi_version", "6\n"},
		{"class/infiniband_verbs/uverbs0/dev", "1:3\n"}, /* device number of /dev/null */
		{"class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n"},
		{"class/infiniband_verbs/uverbs0/abi_version", "1\n"},
		{"class/infiniband/mlx5_0/node_type", "1: CA\n"},
		{"class/infiniband/mlx5_0/ports/1/pkeys/0", "0xffff\n"},
		/* PCI ID of a ConnectX-5. */
		{"class/infiniband/mlx5_0/device/modalias",
		 "pci:v000015B3d00001017sv000015B3sd00000007bc02sc07i00\n"},
	};
	const char *tmp = getenv("TMPDIR");
	unsigned int i;
	int ret;

	if (tmp == NULL || tmp[0] == '\0' || strlen(tmp) > sizeof(root) - 30)
		tmp = "/tmp";
	snprintf(root, sizeof(root), "%s/bluebell-uverbs-XXXXXX", tmp);
	if (mkdtemp(root) == NULL)
		return -errno;
	ret = watch();
	for (i = 0; i < sizeof(files) / sizeof(files[0]) && ret == 0; i++)
		ret = peer_sysfs_put(files[i][0], files[i][1]);
	if (ret == 0 && setenv("SYSFS_PATH", root, 1) != 0)
		ret = -errno;
	if (ret != 0)
		remove_all();
	return ret;
}

void
peer_sysfs_end(void)
{
	if (alive < 0 || getpid() != owner)
		return;
	remove_all();
	close(alive);
	alive = -1;
}
