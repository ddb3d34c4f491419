/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The check of process memory, by PROCMAP_QUERY and by reading /proc/self/maps, against a model of
 * the mappings that the test makes.
 */
#define _GNU_SOURCE /* syscall() */
#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bb_test.h"
#include "soft_ctl.h"

#define PAGES 48u

static bool old_kernel; /* ioctl() fails as in a kernel without PROCMAP_QUERY */
static uint32_t asked;  /* calls of ioctl() */
static uint32_t failed; /* calls of ioctl() that failed because the kernel lacks the request */

/* Replaces the function of libc. */
int
ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	asked++;
	if (old_kernel) {
		errno = ENOTTY;
		return -1;
	}
	ret = (int)syscall(SYS_ioctl, fd, request, arg);
	if (ret != 0 && errno != ENOENT)
		failed++;
	return ret;
}

static uint8_t *mem;
static size_t page;
static int prot[PAGES]; /* -1: not mapped */
static uint64_t rng = 1;

static uint32_t
rnd(uint32_t n)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 33) % n;
}

static void
map_pages(uint32_t first, uint32_t n, int to)
{
	uint8_t *at = mem + first * page;
	uint32_t i;

	if (to == -1)
		assert_int_equal(munmap(at, n * page), 0);
	else
		assert_ptr_equal(
			mmap(at, n * page, to, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
	for (i = first; i < first + n; i++)
		prot[i] = to;
}

/* Changes the rights of pages. Fails if some of them are not mapped. */
static void
protect_pages(uint32_t first, uint32_t n, int to)
{
	uint32_t i;

	for (i = first; i < first + n; i++)
		if (prot[i] == -1)
			return;
	assert_int_equal(mprotect(mem + first * page, n * page, to), 0);
	for (i = first; i < first + n; i++)
		prot[i] = to;
}

static int
expected(uint64_t off, uint64_t len, bool write)
{
	uint64_t i;

	for (i = off / page; i <= (off + len - 1) / page; i++)
		if (prot[i] == -1 || (prot[i] & PROT_READ) == 0 ||
		    (write && (prot[i] & PROT_WRITE) == 0))
			return -EFAULT;
	return 0;
}

static void
check_range(uint64_t off, uint64_t len)
{
	uint64_t size = 0;
	int write, old;

	for (write = 0; write < 2; write++) {
		for (old = 0; old < 2; old++) {
			old_kernel = old != 0;
			assert_int_equal(soft_maps_check(mem + off, len, write != 0),
					 expected(off, len, write != 0));
			if (expected(off, len, false) == 0) {
				assert_int_equal(soft_maps_page(mem + off, len, &size), 0);
				assert_int_equal(size, page);
			}
		}
	}
}

TEST(test_any_mix_of_mappings_and_rights_is_found)
{
	static const int prots[] = {-1,
				    PROT_NONE,
				    PROT_READ,
				    PROT_READ | PROT_WRITE,
				    PROT_READ | PROT_WRITE,
				    PROT_READ | PROT_WRITE};

	page = (size_t)sysconf(_SC_PAGESIZE);
	mem = mmap(NULL, PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	for (uint32_t step = 0; step < 1500; step++) {
		uint32_t first = rnd(PAGES), n = 1 + rnd(RTE_MIN(PAGES - first, 12u));
		uint64_t off = rnd((uint32_t)(PAGES * page));
		int to = prots[rnd(RTE_DIM(prots))];

		if (to != -1 && rnd(2) != 0)
			protect_pages(first, n, to);
		else
			map_pages(first, n, to);
		check_range(off, 1 + rnd((uint32_t)(PAGES * page - off)));
		check_range(off, 1 + rnd((uint32_t)(RTE_MIN(PAGES * page - off, 3 * page))));
	}
	map_pages(0, PAGES, PROT_READ | PROT_WRITE);
	check_range(0, PAGES * page);
	munmap(mem, PAGES * page);
}

/* The kernel is asked once per mapping of the range, with any number of other mappings. */
TEST(test_one_query_per_mapping)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	mem = mmap(NULL, PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	for (uint32_t i = 0; i < PAGES; i += 2)
		map_pages(i, 1, PROT_READ | PROT_WRITE);
	map_pages(8, 4, PROT_READ | PROT_WRITE);
	protect_pages(11, 1, PROT_READ);
	old_kernel = false;
	asked = 0;
	failed = 0;
	assert_int_equal(soft_maps_check(mem + 9 * page, page, true), 0);
	if (failed != 0) {
		munmap(mem, PAGES * page);
		print_message("needs Linux 6.11 or later, for PROCMAP_QUERY\n");
		skip();
	}
	assert_int_equal(asked, 1);
	asked = 0;
	assert_int_equal(soft_maps_check(mem + 9 * page, 3 * page, false), 0);
	assert_int_equal(asked, 2);
	munmap(mem, PAGES * page);
}

/* A mapping may be longer than its file. The kernel does not pin the pages after the file's end. */
TEST(test_pages_after_the_end_of_a_mapped_file_are_rejected)
{
	int fd = (int)syscall(SYS_memfd_create, "file", 0), old, write;

	if (!soft_paged_works()) {
		close(fd);
		print_message("needs process_vm_readv()\n");
		skip();
	}
	page = (size_t)sysconf(_SC_PAGESIZE);
	assert_int_equal(ftruncate(fd, (off_t)(2 * page - 5)), 0);
	mem = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	for (old = 0; old < 2; old++) {
		old_kernel = old != 0;
		for (write = 0; write < 2; write++) {
			assert_int_equal(soft_maps_check(mem, 1, write != 0), 0);
			assert_int_equal(soft_maps_check(mem, 2 * page, write != 0), 0);
			assert_int_equal(soft_maps_check(mem, 2 * page + 1, write != 0), -EFAULT);
			assert_int_equal(soft_maps_check(mem + page, 7 * page, write != 0),
					 -EFAULT);
			assert_int_equal(soft_maps_check(mem + 5 * page, 1, write != 0), -EFAULT);
		}
	}
	/* The file's part and other memory after it, in two mappings. */
	assert_ptr_equal(mmap(mem + 2 * page, page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem + 2 * page);
	for (old = 0; old < 2; old++) {
		old_kernel = old != 0;
		assert_int_equal(soft_maps_check(mem, 3 * page, true), 0);
		assert_int_equal(soft_maps_check(mem, 3 * page + 1, true), -EFAULT);
	}
	munmap(mem, 8 * page);
	close(fd);
}

TEST_MAIN(0)
