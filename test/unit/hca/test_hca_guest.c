/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Mappings of guest memory, windows on them, and files that get shorter. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bb_test.h"
#include "guest.h"

#define SIZE (64u * 4096)
#define BASE UINT64_C(0x40000000)

struct world {
	struct guest g;
	int fd;
	uint8_t *ram;
};

static int
setup(void **state)
{
	static struct world w;

	guest_init(&w.g);
	w.fd = memfd_create("ram", MFD_CLOEXEC);
	if (w.fd < 0 || ftruncate(w.fd, SIZE) != 0)
		return -1;
	w.ram = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, 0);
	*state = &w;
	return w.ram == MAP_FAILED || guest_map(&w.g, BASE, SIZE, w.fd, 0, true) != 0 ? -1 : 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	guest_fini(&w->g);
	munmap(w->ram, SIZE);
	close(w->fd);
	return 0;
}

#define WORLD(name_) TEST_AS(setup, teardown, NULL, struct world, w, name_)

WORLD(test_address_is_found_only_inside_one_mapping)
{
	assert_int_equal(guest_map(&w->g, BASE + SIZE, 4096, w->fd, 0, true), 0);
	assert_non_null(guest_at(&w->g, BASE, SIZE, true));
	assert_null(guest_at(&w->g, BASE, SIZE + 1, true));
	assert_null(guest_at(&w->g, BASE + SIZE - 1, 2, false));
	assert_non_null(guest_at(&w->g, BASE + SIZE - 1, 1, false));
	assert_null(guest_at(&w->g, BASE - 1, 2, false));
	assert_null(guest_at(&w->g, BASE + 1, UINT64_MAX, false));
	assert_null(guest_at(&w->g, UINT64_MAX, 1, false));
}

WORLD(test_read_only_and_files_without_memory_are_not_written)
{
	assert_int_equal(guest_map(&w->g, 0, 4096, w->fd, 0, false), 0);
	assert_int_equal(guest_map(&w->g, 4096, 4096, -1, 0, true), 0);
	assert_non_null(guest_at(&w->g, 0, 4096, false));
	assert_null(guest_at(&w->g, 0, 4096, true));
	assert_null(guest_at(&w->g, 4096, 1, false));
	assert_null(guest_window(&w->g, (uint64_t[]){0}, 1, 12));
	assert_null(guest_window(&w->g, (uint64_t[]){4096}, 1, 12));
}

WORLD(test_window_joins_pages_in_the_order_of_the_list)
{
	const uint64_t pa[] = {BASE + 3 * 4096, BASE + 4 * 4096, BASE, BASE + 9 * 4096};
	uint8_t *at = guest_window(&w->g, pa, 4, 12);
	unsigned int i;

	assert_non_null(at);
	for (i = 0; i < 4; i++) {
		w->ram[pa[i] - BASE + 17] = (uint8_t)(100 + i);
		assert_int_equal(at[i * 4096 + 17], 100 + i);
		at[i * 4096 + 18] = (uint8_t)(200 + i);
		assert_int_equal(w->ram[pa[i] - BASE + 18], 200 + i);
	}
	assert_int_equal(w->g.runs, 3);
	guest_window_free(&w->g, at);
	assert_int_equal(w->g.runs, 0);
}

WORLD(test_windows_that_make_no_sense_are_rejected)
{
	const uint64_t ok = BASE, odd = BASE + 8, outside = BASE + SIZE,
		       two[] = {BASE, BASE - 4096};

	assert_null(guest_window(&w->g, &ok, 0, 12));
	assert_null(guest_window(&w->g, &ok, 1, 11));
	assert_null(guest_window(&w->g, &ok, 1, 63));
	assert_null(guest_window(&w->g, &ok, 1, 64));
	assert_null(guest_window(&w->g, &ok, 1, 30)); /* longer than RAM */
	assert_null(guest_window(&w->g, &odd, 1, 12));
	assert_null(guest_window(&w->g, &outside, 1, 12));
	assert_null(guest_window(&w->g, two, 2, 12));
	assert_int_equal(w->g.runs, 0);
}

WORLD(test_limit_of_mappings_is_held)
{
	uint64_t pa[64];
	uint8_t *at;
	unsigned int i;

	for (i = 0; i < 64; i++)
		pa[i] = BASE + (63 - i) * 4096;
	w->g.max_runs = 100;
	at = guest_window(&w->g, pa, 64, 12);
	assert_non_null(at);
	assert_null(guest_window(&w->g, pa, 64, 12));
	guest_window_free(&w->g, at);
	at = guest_window(&w->g, pa, 64, 12);
	assert_non_null(at);
	guest_window_free(&w->g, at);
}

/* A guest may register the same memory many times. */
WORLD(test_limits_of_all_windows_are_held)
{
	const uint64_t pa[] = {BASE, BASE + 8192}, all = BASE;
	uint8_t *first, *second;

	w->g.max_pages = 3;
	first = guest_window(&w->g, pa, 2, 12);
	assert_non_null(first);
	assert_null(guest_window(&w->g, pa, 2, 12));
	second = guest_window(&w->g, pa, 1, 12);
	assert_non_null(second);
	assert_null(guest_window(&w->g, pa, 1, 12));
	guest_window_free(&w->g, first);
	guest_window_free(&w->g, second);
	w->g.max_bytes = SIZE + 4096;
	first = guest_window(&w->g, &all, 1, 18);
	assert_non_null(first);
	assert_null(guest_window(&w->g, &all, 1, 18));
	second = guest_window(&w->g, &all, 1, 12);
	assert_non_null(second);
	guest_window_free(&w->g, first);
	guest_window_free(&w->g, second);
	assert_true(w->g.pages == 0 && w->g.bytes == 0 && w->g.runs == 0);
}

WORLD(test_blocked_memory_is_not_accessible)
{
	const uint64_t pa[] = {BASE + 4096, BASE};
	uint8_t *at = guest_window(&w->g, pa, 2, 12);

	assert_non_null(at);
	w->ram[17] = 5;
	guest_block(&w->g, true);
	assert_null(guest_at(&w->g, BASE, 1, false));
	assert_null(guest_window(&w->g, pa, 2, 12));
	assert_int_equal(at[4096 + 17], 0);
	at[4096 + 17] = 9;
	/* Memory that is mapped meanwhile is blocked, too. */
	assert_int_equal(guest_unmap(&w->g, BASE, SIZE), 0);
	assert_int_equal(guest_map(&w->g, BASE, SIZE, w->fd, 0, true), 0);
	assert_null(guest_at(&w->g, BASE, 1, false));
	guest_block(&w->g, false);
	assert_non_null(guest_at(&w->g, BASE, 1, false));
	assert_int_equal(at[4096 + 17], 5);
	w->ram[4096] = 7;
	assert_int_equal(at[0], 7);
	guest_window_free(&w->g, at);
	assert_int_equal(w->g.runs, 0);
}

WORLD(test_window_keeps_its_mappings_reserved)
{
	uint64_t pa[64];
	unsigned int i;
	uint8_t *at;

	for (i = 0; i < 64; i++)
		pa[i] = BASE + (63 - i) * 4096;
	at = guest_window(&w->g, pa, 64, 12);
	assert_int_equal(w->g.runs, 64);
	guest_block(&w->g, true);
	assert_int_equal(w->g.runs, 64);
	guest_block(&w->g, false);
	assert_int_equal(w->g.runs, 64);
	/* Pages 8 to 15 stay: a run of zeros, 8 pages, a run of zeros. */
	assert_int_equal(guest_unmap(&w->g, BASE, SIZE), 0);
	assert_int_equal(guest_map(&w->g, BASE + 8 * 4096, 8 * 4096, w->fd, 0, true), 0);
	assert_int_equal(w->g.runs, 64);
	w->ram[0] = 3;
	assert_int_equal(at[55 * 4096], 3);
	assert_int_equal(at[54 * 4096] | at[56 * 4096], 0);
	guest_window_free(&w->g, at);
	assert_int_equal(w->g.runs, 0);
}

/*
 * The monitor maps RAM again in pieces, so that a window needs more mappings than before. The guest
 * can cause this, for example by the registers for the shadow RAM of a PC.
 */
WORLD(test_window_that_needs_too_many_mappings_after_ram_changed_reads_as_zeros)
{
	const uint64_t pa[] = {BASE, BASE + 4096, BASE + 8192};
	uint8_t *at;
	unsigned int i;

	w->ram[0] = 1;
	w->g.max_runs = 2;
	at = guest_window(&w->g, pa, 3, 12);
	assert_int_equal(w->g.runs, 1);
	assert_int_equal(guest_unmap(&w->g, BASE, SIZE), 0);
	assert_int_equal(guest_map(&w->g, pa[0], 4096, w->fd, 0, true), 0);
	assert_int_equal(w->g.runs, 2);
	assert_int_equal(at[0], 1);
	for (i = 1; i < 3; i++)
		assert_int_equal(guest_map(&w->g, pa[i], 4096, w->fd, i * 8192, true), 0);
	assert_int_equal(w->g.runs, 2);
	assert_int_equal(at[0], 0);
	/* All in one piece again. */
	for (i = 0; i < 3; i++)
		assert_int_equal(guest_unmap(&w->g, pa[i], 4096), 0);
	assert_int_equal(guest_map(&w->g, BASE, SIZE, w->fd, 0, true), 0);
	assert_int_equal(at[0], 1);
	guest_window_free(&w->g, at);
	assert_int_equal(w->g.runs, 0);
}

/* Registers as many pages as @g may map, in an order that needs a mapping for each page. */
static uint8_t *
widest_window(struct guest *g)
{
	uint64_t *pa = calloc(g->max_runs, sizeof(*pa));
	uint32_t i;
	uint8_t *at;

	for (i = 0; i < g->max_runs; i++)
		pa[i] = BASE + (63 - i % 64) * 4096;
	at = guest_window(g, pa, g->max_runs, 12);
	free(pa);
	return at;
}

/* Exits with 0 if guest A gets its memory back after B has registered as much as it may. */
static void
block_one_guest_while_the_other_registers(int fd)
{
	static struct guest a, b;
	uint8_t *at;

	guest_init(&a);
	guest_init(&b);
	if (guest_map(&a, BASE, SIZE, fd, 0, true) != 0 ||
	    guest_map(&b, BASE, SIZE, fd, 0, true) != 0)
		_exit(1);
	at = widest_window(&a);
	if (at == NULL)
		_exit(2);
	guest_block(&a, true);
	if (widest_window(&b) == NULL)
		_exit(3);
	guest_block(&a, false);
	_exit(at[63 * 4096] == 5 ? 0 : 4);
}

/* Linux limits the mappings of the process, which are those of all guests. */
WORLD(test_mappings_of_blocked_guest_are_not_taken_by_other_guest)
{
	int status;
	pid_t pid;

	if (w->g.max_runs > 200000) {
		print_message(
			"the limit vm.max_map_count is so high that the test would be slow\n");
		skip();
	}
	w->ram[0] = 5;
	pid = fork();
	if (pid == 0)
		block_one_guest_while_the_other_registers(w->fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Returns the number of pages of a window of @n pages that are in memory. */
static unsigned int
resident(uint8_t *window, unsigned int n)
{
	unsigned char *in = test_calloc(n, 1);
	unsigned int i, sum = 0;

	assert_int_equal(mincore(window, (size_t)n * 4096, in), 0);
	for (i = 0; i < n; i++)
		sum += in[i] & 1;
	test_free(in);
	return sum;
}

/* Peers still write to the registered memory of a guest that is blocked. */
WORLD(test_writes_to_blocked_memory_take_no_memory)
{
	enum {
		N = 80,
		PAGES = 128,
		CALLS = 64,
	};
	uint64_t pa[PAGES];
	unsigned int i;
	uint8_t *at[N];

	for (i = 0; i < PAGES; i++)
		pa[i] = BASE + i % 64 * 4096;
	for (i = 0; i < N; i++) {
		at[i] = guest_window(&w->g, pa, PAGES, 12);
		assert_non_null(at[i]);
	}
	w->ram[0] = 5;
	guest_block(&w->g, true);
	for (i = 0; i < N; i++) {
		memset(at[i], 1, PAGES * 4096);
		assert_int_equal(resident(at[i], PAGES), PAGES);
	}
	for (i = 0; i < CALLS; i++)
		guest_drop_writes(&w->g);
	for (i = 0; i < N; i++) {
		assert_int_equal(resident(at[i], PAGES), 0);
		assert_int_equal(at[i][0], 0);
	}
	/* Memory with holes keeps what is in RAM. */
	guest_block(&w->g, false);
	assert_int_equal(guest_unmap(&w->g, BASE, SIZE), 0);
	assert_int_equal(guest_map(&w->g, BASE, SIZE / 2, w->fd, 0, true), 0);
	at[0][SIZE / 2] = 1;
	for (i = 0; i < CALLS; i++)
		guest_drop_writes(&w->g);
	assert_int_equal(at[0][SIZE / 2], 0);
	assert_int_equal(at[0][0], 5);
	for (i = 0; i < N; i++)
		guest_window_free(&w->g, at[i]);
	guest_drop_writes(&w->g);
}

/* QEMU unmaps RAM and maps it again, at another offset or in pieces, while windows exist. */
WORLD(test_window_follows_its_ram)
{
	const uint64_t pa[] = {BASE, BASE + 4096};
	uint8_t *at = guest_window(&w->g, pa, 2, 12);

	w->ram[0] = 1;
	w->ram[8 * 4096] = 8;
	assert_int_equal(guest_unmap(&w->g, BASE, SIZE), 0);
	assert_int_equal(at[0], 0);
	at[0] = 77; /* lost */
	assert_int_equal(w->ram[0], 1);
	assert_int_equal(guest_map(&w->g, BASE, 4096, w->fd, 8 * 4096, true), 0);
	assert_int_equal(at[0], 8);
	assert_int_equal(at[4096], 0);
	assert_int_equal(guest_map(&w->g, BASE + 4096, 4096, w->fd, 0, true), 0);
	assert_int_equal(at[4096], 1);
	guest_window_free(&w->g, at);
}

/* The kernel would round the length of each mapping up to a hugepage. */
WORLD(test_file_of_hugepages_is_rejected)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	struct stat st;

	/* The file needs no hugepages of the host until it is accessed. */
	if (fd < 0 || fstat(fd, &st) != 0 || ftruncate(fd, st.st_blksize) != 0) {
		print_message("the kernel has no hugepages\n");
		skip();
	}
	assert_int_equal(guest_map(&w->g, 0, 4096, fd, 0, true), -EINVAL);
	assert_int_equal(guest_map(&w->g, 0, (uint64_t)st.st_blksize, fd, 0, true), -EINVAL);
	assert_int_equal(w->g.n_maps, 1);
	close(fd);
}

WORLD(test_truncated_file_reads_as_zeros)
{
	const uint64_t pa = BASE + 8 * 4096;
	uint8_t *at = guest_window(&w->g, &pa, 1, 12), *direct;
	unsigned int lost;

	guest_catch_sigbus();
	lost = guest_lost_pages();
	w->ram[8 * 4096] = 5;
	direct = guest_at(&w->g, BASE + 20 * 4096, 8, true);
	assert_int_equal(ftruncate(w->fd, 4096), 0);
	assert_int_equal(*(volatile uint8_t *)at, 0);
	*(volatile uint8_t *)direct = 1;
	assert_int_equal(guest_lost_pages() - lost, 2);
	guest_window_free(&w->g, at);
}

TEST_MAIN(0)
