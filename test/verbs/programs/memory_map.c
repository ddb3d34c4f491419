/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Cases of memory.c: shared memory that the program moves or discards, and whose descriptors it
 * closes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

#define FILE_FD 512 /* descriptor of the only region's file */

/* Memory that moves and grows: old pages stay the region, new pages are zeros of its own. */
void
remapped(void)
{
	uint8_t *p = pages(2, 1), *other = pages(2, 3), *q;
	struct ibv_mr *mr = reg(p, 2 * PAGE), *second = reg(other, 2 * PAGE);
	uint64_t v = 7;

	check_direct(mr, p, 7);
	q = mremap(p, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED);
	CHECK(q[2 * PAGE - 1] == 1 && q[2 * PAGE] == 0 && q[64 * PAGE - 1] == 0);
	memset(q + 2 * PAGE, 4, 62 * PAGE);
	CHECK(other[0] == 3 && other[2 * PAGE - 1] == 3);
	v = 5;
	CHECK(order(OP_WRITE, true, mr, p + 8, &v) == IBV_WC_SUCCESS);
	CHECK(*(uint64_t *)(void *)(q + 8) == 5);
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(second) == 0);
	mr = reg(q, 64 * PAGE);
	CHECK(is_shared(q + 63 * PAGE));
	check_access(mr, q + 63 * PAGE, 9);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* Discarded pages are zeros for the program and for the peer. */
void
advised(void)
{
	static const int advice[] = {MADV_DONTNEED, MADV_FREE};
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE);
	unsigned int i;
	uint64_t v;

	for (i = 0; i < 2; i++) {
		check_direct(mr, p, 7);
		CHECK(madvise(p, PAGE, advice[i]) == 0);
		CHECK(p[0] == 0 && p[PAGE] == 1);
		v = 1;
		CHECK(order(OP_READ, true, mr, p, &v) == IBV_WC_SUCCESS && v == 0);
	}
	check_direct(mr, p, 7);
	/* The kernel refuses locked pages, whose content stays. */
	p[0] = 1;
	CHECK(mlock(p, PAGE) == 0);
	for (i = 0; i < 2; i++) {
		CHECK(madvise(p, 2 * PAGE, advice[i]) == -1 && errno == EINVAL);
		CHECK(p[0] == 1 && p[PAGE] == 1);
	}
	CHECK(munlock(p, PAGE) == 0);
	CHECK(mprotect(p, PAGE, PROT_READ) == 0 && madvise(p, PAGE, MADV_DONTNEED) == 0);
	CHECK(p[0] == 0 && mprotect(p, PAGE, PROT_READ | PROT_WRITE) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* Opens a file of the program at the number @at. */
static void
open_own(int at)
{
	static const char text[PAGE] = "of the program";
	const int fd = memfd_create("own", 0);

	CHECK(fd >= 0 && write(fd, text, PAGE) == PAGE);
	CHECK(dup2(fd, at) == at && close(fd) == 0);
}

static void
check_unchanged(int fd)
{
	char text[PAGE];

	CHECK(pread(fd, text, PAGE, 0) == PAGE && strcmp(text, "of the program") == 0);
}

/* Returns the device's own descriptor of the only region's file. */
static int
find_part(void)
{
	char path[32], name[32];
	int fd;

	for (fd = 3; fd < FILE_FD; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, name, sizeof(name)) > 0 &&
		    strncmp(name, "/memfd:bb-verbs", strlen("/memfd:bb-verbs")) == 0)
			return fd;
	}
	CHECK(!"the device has the file");
	return -1;
}

/*
 * The program closes the descriptors of its regions: pages are discarded, no other file is changed,
 * and a child gets the pages.
 */
void
descriptors_gone(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE);
	pid_t pid;

	check_direct(mr, p, 7);
	CHECK(close_range(500, ~0u, 0) == 0);
	open_own(FILE_FD);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS) == 0);
	check_access(mr, p, 3);
	p[0] = 1;
	CHECK(madvise(p, PAGE, MADV_DONTNEED) == 0 && p[0] == 0 && p[PAGE] == 1);
	CHECK(mprotect(p, PAGE, PROT_READ) == 0 && madvise(p, PAGE, MADV_DONTNEED) == 0);
	CHECK(mprotect(p, PAGE, PROT_READ | PROT_WRITE) == 0);
	check_unchanged(FILE_FD);
	p[0] = 5;
	pid = fork();
	if (pid == 0)
		_exit(p[0] != 5 || p[PAGE] != 1);
	wait_for(pid, 0);
	check_unchanged(FILE_FD);
	/* The pages have a new file. */
	check_direct(mr, p, 9);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* The program closes all descriptors: its regions still work, and no other file is shared. */
void
descriptors(void)
{
	uint8_t *p = pages(1, 1);
	struct ibv_mr *mr = reg(p, PAGE), *again;
	int fd;

	check_direct(mr, p, 7);
	CHECK(close_range(500, ~0u, 0) == 0);
	fd = open("/dev/null", O_RDWR);
	CHECK(fd >= 0 && dup2(fd, FILE_FD) == FILE_FD);
	again = reg(p, PAGE);
	check_access(again, p, 9);
	CHECK(ibv_dereg_mr(again) == 0);
	check_direct(mr, p, 11);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/*
 * The program replaces the device's own descriptor of shared memory: the peer does not get the
 * program's file, and the device does not close it.
 */
void
descriptor_of_part(void)
{
	uint8_t *p = pages(2, 1), *other = pages(1, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE), *second;
	int fd;

	CHECK(ibv_dereg_mr(mr) == 0);
	/* The peer replaces its mapping of the file, so that check_direct() waits for a new one. */
	mr = reg(other, PAGE);
	check_direct(mr, other, 5);
	CHECK(ibv_dereg_mr(mr) == 0);
	mr = reg(p, PAGE);
	check_direct(mr, p, 7);
	fd = find_part();
	open_own(fd);
	second = reg(p + PAGE, PAGE);
	check_access(second, p + PAGE, 9);
	check_direct(mr, p, 11);
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(second) == 0);
	check_unchanged(fd);
}
