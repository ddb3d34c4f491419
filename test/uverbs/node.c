/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The device node for programs that have the software ConnectX in themselves: drivers/front/uverbs
 * with the calls of libc of app/verbs. libibverbs reads the files that stand for /sys by
 * SYSFS_PATH. The clock is a page of this test.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* it would rename calls of libc */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "libc.h"
#include "peer_sysfs.h"
#include "preload.h"

static int
install(void *arg, int fd, struct uverbs_events *events)
{
	(void)arg;
	return fds_set(fd, FD_EVENTS, events) ? 0 : -EMFILE;
}

/* The program's handlers do not use the device. */
bool
node_interrupted(void)
{
	return false;
}

/* Each poll runs the device. */
void
node_catch_up(void)
{
}

/* The program closes only what it has opened. */
void
node_closes(unsigned int first, unsigned int last)
{
	(void)first;
	(void)last;
}

/* There is no rdma_cm node. */
int
node_open_cm(void)
{
	errno = ENOENT;
	return -1;
}

int
cm_write(struct cm_file *file, const void *buf, size_t len)
{
	(void)file;
	(void)buf;
	(void)len;
	return EIO;
}

void
cm_get(struct cm_file *file)
{
	(void)file;
}

void
cm_put(struct cm_file *file)
{
	(void)file;
}

int
node_open(void)
{
	const struct uverbs_attr attr = {
		.dev = "soft0", .args = "", .clock = clock_page() != NULL, .install = install};
	struct uverbs_file *file;
	int fd, ret = uverbs_open(&attr, &file, &fd);

	if (ret == 0 && !fds_set(fd, FD_NODE, file)) {
		uverbs_close(file);
		close(fd);
		ret = -EMFILE;
	}
	if (ret == 0)
		return fd;
	errno = -ret;
	return -1;
}

const char *
node_path(const char *path, char *to)
{
	(void)to;
	return path != NULL && strcmp(path, VERBS_NODE) == 0 ? "/dev/null" : path;
}

/* ---- No device of the test has a DPDK port */

int
port_flags(int flags, int cloexec)
{
	(void)cloexec;
	return flags;
}

int
port_own(int fd)
{
	return fd;
}

void
port_disown(int fd)
{
	(void)fd;
}

bool
port_hides(const char *path)
{
	(void)path;
	return false;
}

static void __attribute__((constructor)) start(void)
{
	char dev[16];

	fds_init();
	snprintf(dev, sizeof(dev), "%d:%d\n", VERBS_MAJOR, VERBS_MINOR);
	if (peer_sysfs_start() != 0 ||
	    peer_sysfs_put("class/infiniband_verbs/uverbs0/dev", dev) != 0) {
		fprintf(stderr, "no /sys for libibverbs: TMPDIR, /tmp?\n");
		_exit(77);
	}
}

static void __attribute__((destructor)) stop(void)
{
	peer_sysfs_end();
}

/* ---- The clock's page, which libmlx5 maps and unmaps */

static void *
map(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	REAL(void *, mmap, void *, size_t, int, int, int, off_t);
	if (fds_maybe(fd) && offset == (off_t)UVERBS_CLOCK_PAGE * sysconf(_SC_PAGESIZE))
		return clock_page();
	return real(addr, len, prot, flags, fd, offset);
}

PUBLIC void *
mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return map(addr, len, prot, flags, fd, offset);
}

PUBLIC void *
mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t offset)
{
	return map(addr, len, prot, flags, fd, offset);
}

PUBLIC int
munmap(void *addr, size_t len)
{
	REAL(int, munmap, void *, size_t);
	return addr != NULL && addr == clock_page_mapped() ? 0 : real(addr, len);
}
