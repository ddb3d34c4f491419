/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Wakes the device's thread at a doorbell. While the thread sleeps, the program's mappings of UAR
 * pages are write-protected. A store to a doorbell register waits in a page fault, which the thread
 * sees; then it ends the protection.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "share.h"

static struct share_file node;

struct watch {
	int uffd;
	bool (*own)(void *arg, const void *at);
	void *arg;
	bool failed;
};

void
doorbell_file(int node_fd)
{
	struct stat st;

	if (fstat(node_fd, &st) != 0)
		return;
	node = (struct share_file){.fd = node_fd, .dev = st.st_dev, .ino = st.st_ino};
}

static bool
protect(void *arg, const struct share_file *file, uintptr_t at, size_t len, uint64_t off)
{
	struct watch *w = arg;

	(void)file;
	if (off >= soft_uar_start() && !w->own(w->arg, (void *)at))
		w->failed = share_protect(w->uffd, (void *)at, len) != 0;
	return !w->failed;
}

static int
arm(bool (*own)(void *arg, const void *at), void *arg)
{
	struct watch w = {.uffd = share_uffd(NULL), .own = own, .arg = arg};

	if (w.uffd < 0)
		return -1;
	share_each(0, UINTPTR_MAX, &node, 1, protect, &w);
	if (!w.failed)
		return w.uffd;
	close(w.uffd);
	return -1;
}

static void
disarm(int fd)
{
	/* Ends the protection of all pages, and lets the stores that wait go on. */
	close(fd);
}

const struct soft_doorbell_ops doorbell_ops = {.arm = arm, .disarm = disarm};
