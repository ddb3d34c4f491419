/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Wakes the device's thread at a doorbell. While the thread sleeps, the program's mappings of UAR
 * pages are write-protected. A store to a doorbell register waits in a page fault. The page fault
 * wakes the thread, which then ends the protection.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "libc.h"
#include "share.h"

static struct share_file node;

#define PAGE      4096u
#define MAX_PAGES 512 /* protected pages; with more, the thread does not sleep */

struct watch {
	int uffd;
	bool (*own)(void *arg, const void *at);
	void *arg;
	bool failed;
};

/* The pages that are protected. Only the device's thread uses them. */
static uint8_t *pages[MAX_PAGES];
static unsigned int n_pages;

void
doorbell_file(int node_fd)
{
	struct stat st;

	if (libc_fstat(node_fd, &st) != 0)
		return;
	/* A child of fork() has the list of its parent. */
	n_pages = 0;
	node = (struct share_file){.fd = node_fd, .dev = st.st_dev, .ino = st.st_ino};
}

/*
 * Protects the program's pages of a mapping. A mapping may also contain pages that only the device
 * uses.
 */
static bool
protect(void *arg, const struct share_file *file, uintptr_t at, size_t len, uint64_t off)
{
	struct watch *w = arg;
	size_t i;

	(void)file;
	for (i = 0; i < len && !w->failed; i += PAGE) {
		if (off + i < soft_uar_start() || w->own(w->arg, (void *)(at + i)))
			continue;
		w->failed = n_pages == MAX_PAGES;
		if (w->failed)
			break;
		pages[n_pages++] = (uint8_t *)at + i;
		w->failed = share_protect(w->uffd, (void *)(at + i), PAGE) != 0;
	}
	return !w->failed;
}

/*
 * Ends the protection of each page, so that waiting stores continue. A close() alone does not end
 * the protection, because a child of fork() may have the descriptor, too.
 */
static void
disarm(int fd)
{
	while (n_pages != 0)
		share_unprotect(fd, pages[--n_pages], PAGE);
	libc_close(fd);
}

static int
arm(bool (*own)(void *arg, const void *at), void *arg)
{
	struct watch w = {.uffd = share_uffd(NULL), .own = own, .arg = arg};

	if (w.uffd < 0)
		return -1;
	if (share_each(0, UINTPTR_MAX, &node, 1, protect, &w) && !w.failed)
		return w.uffd;
	disarm(w.uffd);
	return -1;
}

const struct soft_doorbell_ops doorbell_ops = {.arm = arm, .disarm = disarm};
