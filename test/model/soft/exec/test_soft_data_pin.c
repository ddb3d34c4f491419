/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory regions in files: the device accesses them after the program has unmapped them. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../soft_rig.h"
#include "soft_gaps.h"
#include "soft_hooks.h"

#define PAGE  4096u
#define BYTES (3 * PAGE)
#define START 100u /* of the region, from the start of the file */

static int file;
static uint8_t *start; /* the program's address of the file's first byte */
static bool known;     /* find() finds the file */
static uint64_t part;  /* bytes of a region that find() finds at most */

/* A soft_memory_fn. */
static bool
find(const uint8_t *addr, uint64_t len, struct soft_memory *m)
{
	struct stat st;

	assert_int_equal(fstat(file, &st), 0);
	*m = (struct soft_memory){.fd = file,
				  .dev = st.st_dev,
				  .ino = st.st_ino,
				  .off = (uint64_t)(addr - start),
				  .len = len < part ? len : part};
	return known;
}

/* A region in a file, and a second view of the file. */
struct region {
	struct rig_mem m;
	uint8_t *view;
};

static void
region_open(struct region *r, struct rig_pair *p, uint32_t access)
{
	struct mlx5_mr_attr attr;

	file = memfd_create("pin", 0);
	assert_true(file >= 0 && ftruncate(file, BYTES) == 0);
	start = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	r->view = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_true(start != MAP_FAILED && r->view != MAP_FAILED);
	known = true;
	part = UINT64_MAX;
	soft_share_by(p->d.ctx, find);
	r->m = (struct rig_mem){.d = &p->d, .p = start + START, .len = BYTES - START};
	attr = mlx5_mr_mem(r->m.p, r->m.len, access);
	OK(soft_cmd_if.mr_reg(p->d.ctx, p->d.pd, &attr, &r->m.mr));
}

static void
region_close(struct region *r, struct rig_pair *p)
{
	OK(soft_cmd_if.mr_dereg(p->d.ctx, r->m.mr));
	munmap(r->view, BYTES);
	close(file);
}

/* A WRITE to the region, a READ from it, and a SEND to a receive in it. */
static void
access_all(struct rig_pair *p, const struct region *r, const uint8_t *seen, uint8_t byte)
{
	struct rig_cqe e;

	memset(p->ma.p, byte, 300);
	rig_write(&p->a, &p->ma, 0, 300, &r->m, 5000, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
	assert_memory_equal(seen + 5000, p->ma.p, 300);
	rig_read(&p->a, &p->ma, 400, 300, &r->m, 5000, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_RDMA_READ, p->a.last);
	assert_memory_equal(p->ma.p + 400, p->ma.p, 300);
	rig_recv(&p->b, &r->m, 7000, 300);
	rig_send(&p->a, &p->ma, 0, 300, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_SEND, p->a.last);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.bytes, 300);
	assert_memory_equal(seen + 7000, p->ma.p, 300);
}

RIG_TEST(test_requests_after_munmap_reach_the_pages_of_the_file, NULL)
{
	struct region r;

	region_open(&r, p, RIG_ALL);
	munmap(start, BYTES);
	access_all(p, &r, r.view + START, 1);
	region_close(&r, p);
}

RIG_TEST(test_relaxed_ordering_after_munmap, NULL)
{
	struct region r;

	region_open(&r, p, RIG_ALL | MLX5_ACCESS_RELAXED_ORDERING);
	munmap(start, BYTES);
	access_all(p, &r, r.view + START, 1);
	region_close(&r, p);
}

/* A new registration of the key names other memory. */
RIG_TEST(test_rereg_moves_the_key_to_the_new_memory, NULL)
{
	struct region r;

	region_open(&r, p, RIG_ALL);
	known = false;
	OK(soft_cmd_if.mr_rereg(p->d.ctx, r.m.mr, MLX5_REREG_TRANSLATION, NULL, p->mb.p,
				BYTES - START, 0));
	r.m.p = p->mb.p;
	munmap(start, BYTES);
	access_all(p, &r, p->mb.p, 1);
	assert_int_equal(r.view[START + 5000], 0);
	region_close(&r, p);
}

/* New rights, but the same memory, which the program has unmapped. */
RIG_TEST(test_rereg_of_rights_after_munmap, NULL)
{
	struct region r;

	region_open(&r, p, RIG_ALL);
	munmap(start, BYTES);
	known = false;
	OK(soft_cmd_if.mr_rereg(p->d.ctx, r.m.mr, MLX5_REREG_ACCESS, NULL, NULL, 0,
				MLX5_ACCESS_LOCAL_WRITE));
	OK(soft_cmd_if.mr_rereg(p->d.ctx, r.m.mr, MLX5_REREG_ACCESS, NULL, NULL, 0, RIG_ALL));
	access_all(p, &r, r.view + START, 1);
	region_close(&r, p);
}

/* A part of the region is in a file: the device accesses all of it at the program's address. */
RIG_TEST(test_region_that_is_not_all_in_a_file, NULL)
{
	struct mlx5_mr_attr attr;
	struct region r;
	uint8_t *other =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(other != MAP_FAILED);
	region_open(&r, p, RIG_ALL);
	OK(soft_cmd_if.mr_dereg(p->d.ctx, r.m.mr));
	part = PAGE;
	r.m.p = other + START;
	attr = mlx5_mr_mem(r.m.p, r.m.len, RIG_ALL);
	OK(soft_cmd_if.mr_reg(p->d.ctx, p->d.pd, &attr, &r.m.mr));
	access_all(p, &r, other + START, 1);
	munmap(start, BYTES);
	region_close(&r, p);
	munmap(other, BYTES);
}

/* While sharing pauses for fork(), the program makes the memory private, and then shares it again.
 */
RIG_TEST(test_memory_that_is_private_for_a_while, NULL)
{
	struct region r;

	region_open(&r, p, RIG_ALL);
	soft_share_pause(p->d.ctx);
	assert_ptr_equal(mmap(start, BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 start);
	access_all(p, &r, start + START, 1);
	assert_int_equal(r.view[START + 5000], 0);
	assert_ptr_equal(
		mmap(start, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0), start);
	soft_share_resume(p->d.ctx);
	munmap(start, BYTES);
	access_all(p, &r, r.view + START, 2);
	region_close(&r, p);
}

RIG_TEST(test_memory_that_was_unmapped_before_a_fork, NULL)
{
	struct region r;

	region_open(&r, p, RIG_ALL);
	munmap(start, BYTES);
	known = false;
	soft_share_pause(p->d.ctx);
	access_all(p, &r, r.view + START, 1);
	soft_share_resume(p->d.ctx);
	access_all(p, &r, r.view + START, 2);
	region_close(&r, p);
}

#define HOLE             64u     /* pages of a region that the program unmaps */
#define MAX_OTHER_PLACES 200000u /* pages; more than are free between mappings */

static bool
overlaps(const uint8_t *hole, const void *p, size_t len)
{
	return (const uint8_t *)p < hole + HOLE * PAGE && (const uint8_t *)p + len > hole;
}

/*
 * Maps pages in other places, until the kernel would map the next page in the hole. Returns false
 * if the kernel does not do so.
 */
static bool
fill_other_places(const uint8_t *hole)
{
	unsigned int n;

	for (n = 0; n < MAX_OTHER_PLACES; n++) {
		void *q = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_true(q != MAP_FAILED);
		if (overlaps(hole, q, PAGE)) {
			munmap(q, PAGE);
			return true;
		}
	}
	return false;
}

/*
 * Skips the test if the system calls are those of QEMU (seen: 7.2). It does not map pages in holes,
 * and MAP_FIXED_NOREPLACE does not fail with EEXIST.
 */
static void
need_linux_maps(void)
{
	uint8_t *hole = mmap(NULL, HOLE * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(hole != MAP_FAILED);
	if (mmap(hole, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
		    MAP_FAILED &&
	    errno == EEXIST) {
		munmap(hole, HOLE * PAGE);
		if (fill_other_places(hole))
			return;
	}
	print_message("the kernel does not map memory as Linux does\n");
	skip();
}

/* Pages of zeros come into private memory that is unmapped, and nowhere else. */
RIG_TEST(test_unmapped_private_memory_is_filled, NULL)
{
	struct mlx5_mr_attr attr;
	struct mlx5_mr *mr;
	unsigned char in_core;
	uint8_t *mem =
		mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need_linux_maps();
	assert_true(mem != MAP_FAILED);
	attr = mlx5_mr_mem(mem + START, BYTES - START, MLX5_ACCESS_LOCAL_WRITE);
	OK(soft_cmd_if.mr_reg(p->d.ctx, p->d.pd, &attr, &mr));
	munmap(mem, 2 * BYTES);
	assert_false(soft_fill(p->d.ctx, NULL));
	assert_false(soft_fill(p->d.ctx, mem));
	assert_false(soft_fill(p->d.ctx, mem + BYTES));
	assert_true(soft_fill(p->d.ctx, mem + PAGE + 1));
	assert_int_equal(mem[PAGE], 0);
	mem[PAGE] = 5;
	/* Two threads may fault at once. */
	assert_true(soft_fill(p->d.ctx, mem + PAGE));
	assert_int_equal(mem[PAGE], 5);
	/* The next page is mapped already, so only one page is new. */
	assert_true(soft_fill(p->d.ctx, mem + START));
	assert_int_equal(mem[0] + mem[START], 0);
	assert_int_equal(mem[PAGE], 5);
	/* Nothing is mapped after the region. */
	assert_int_equal(mincore(mem + BYTES, PAGE, &in_core), -1);
	OK(soft_cmd_if.mr_dereg(p->d.ctx, mr));
	assert_false(soft_fill(p->d.ctx, mem + START));
	munmap(mem, BYTES);
}

/* Pages of zeros replace pages after the end of their file, inside of the region only. */
RIG_TEST(test_page_after_the_end_of_its_file_is_replaced, NULL)
{
	struct mlx5_mr_attr attr;
	struct mlx5_mr *mr;
	uint8_t *mem;

	file = memfd_create("cut", 0);
	assert_true(file >= 0 && ftruncate(file, BYTES) == 0);
	mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_true(mem != MAP_FAILED);
	memset(mem, 1, BYTES);
	attr = mlx5_mr_mem(mem, 2 * PAGE, MLX5_ACCESS_LOCAL_WRITE);
	OK(soft_cmd_if.mr_reg(p->d.ctx, p->d.pd, &attr, &mr));
	assert_int_equal(ftruncate(file, PAGE), 0);
	assert_true(soft_fill_cut(p->d.ctx, mem + PAGE + 7));
	assert_int_equal(mem[PAGE] + mem[2 * PAGE - 1], 0);
	mem[PAGE] = 5;
	assert_int_equal(mem[0], 1);
	assert_false(soft_fill_cut(p->d.ctx, mem + 2 * PAGE));
	OK(soft_cmd_if.mr_dereg(p->d.ctx, mr));
	assert_false(soft_fill_cut(p->d.ctx, mem + PAGE));
	munmap(mem, BYTES);
	close(file);
}

/* ---- Mappings of the device's own */

/* Returns true if nothing is mapped in pages [from, end) of the hole. */
static bool
gone(uint8_t *hole, unsigned int from, unsigned int end)
{
	unsigned char in_core;

	for (; from < end; from++)
		if (mincore(hole + from * PAGE, PAGE, &in_core) == 0)
			return false;
	return true;
}

static void *
own(struct rig_pair *p, size_t len)
{
	void *q = soft_map_aside(p->d.ctx, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);

	assert_true(q != MAP_FAILED);
	return q;
}

/* No mapping of the device lies where a program has unmapped a region. */
RIG_TEST(test_own_mappings_avoid_unmapped_regions, "mmap")
{
	struct mlx5_mr_attr attr;
	struct mlx5_mr *mr, *odd;
	struct mlx5_uar *uar;
	struct region r;
	unsigned int i;
	uint8_t *hole =
		mmap(NULL, HOLE * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *q;

	need_linux_maps();
	assert_true(hole != MAP_FAILED);
	region_open(&r, p, RIG_ALL); /* calls soft_share_by() */
	attr = mlx5_mr_mem(hole + START, HOLE * PAGE - 2 * START, MLX5_ACCESS_LOCAL_WRITE);
	OK(soft_cmd_if.mr_reg(p->d.ctx, p->d.pd, &attr, &mr));
	/* Another region is a part of the hole. */
	attr = mlx5_mr_mem(hole + 8 * PAGE, PAGE, MLX5_ACCESS_LOCAL_WRITE);
	OK(soft_cmd_if.mr_reg(p->d.ctx, p->d.pd, &attr, &odd));
	munmap(hole, HOLE * PAGE);
	assert_true(fill_other_places(hole));
	for (i = 1; i <= HOLE; i++)
		assert_false(overlaps(hole, own(p, i * PAGE), i * PAGE));
	assert_true(fill_other_places(hole));
	OK(soft_cmd_if.uar_alloc(p->d.ctx, MLX5_UAR_NC, &uar));
	assert_false(overlaps(hole, uar->base_addr, PAGE));
	OK(soft_cmd_if.uar_free(p->d.ctx, uar));
	/* The device's own mapping of a region in a file. */
	OK(soft_cmd_if.mr_dereg(p->d.ctx, r.m.mr));
	attr = mlx5_mr_mem(start, PAGE, RIG_ALL);
	assert_true(fill_other_places(hole));
	OK(soft_cmd_if.mr_reg(p->d.ctx, p->d.pd, &attr, &r.m.mr));
	assert_true(gone(hole, 0, HOLE));
	/* Mapped pages in the middle of the hole stay as they are. */
	assert_true(soft_fill(p->d.ctx, hole + 40 * PAGE));
	memset(hole + 40 * PAGE, 7, PAGE);
	assert_true(fill_other_places(hole));
	for (i = 1; i <= 4 * HOLE; i++)
		assert_false(overlaps(hole, own(p, PAGE), PAGE));
	assert_int_equal(hole[40 * PAGE] + hole[41 * PAGE - 1], 14);
	assert_true(gone(hole, 0, 40));
	/* A mapping of a file has the content of the file. */
	q = soft_map_aside(p->d.ctx, BYTES, PROT_READ, MAP_SHARED, file, 0);
	assert_true(q != MAP_FAILED && !overlaps(hole, q, BYTES));
	r.view[PAGE + 1] = 9;
	assert_int_equal(((uint8_t *)q)[PAGE + 1], 9);
	munmap(q, BYTES);
	assert_true(soft_map_aside(p->d.ctx, PAGE, PROT_READ, MAP_SHARED, -1, 0) == MAP_FAILED);
	assert_true(soft_map_aside(p->d.ctx, 0, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED);
	OK(soft_cmd_if.mr_dereg(p->d.ctx, odd));
	OK(soft_cmd_if.mr_dereg(p->d.ctx, mr));
	munmap(start, BYTES);
	region_close(&r, p);
}

#define REGIONS (3 * HOLE)

/* More regions than the device can avoid one by one. They lie beside each other. */
RIG_TEST(test_own_mapping_avoids_many_unmapped_regions, NULL)
{
	struct mlx5_mr_attr attr;
	struct mlx5_mr *mr[REGIONS];
	struct region r;
	unsigned int i;
	uint8_t *holes = mmap(NULL, REGIONS * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint8_t *q;

	need_linux_maps();
	assert_true(holes != MAP_FAILED);
	region_open(&r, p, RIG_ALL);
	for (i = 0; i < REGIONS; i++) {
		attr = mlx5_mr_mem(holes + i * PAGE, PAGE, MLX5_ACCESS_LOCAL_WRITE);
		OK(soft_cmd_if.mr_reg(p->d.ctx, p->d.pd, &attr, &mr[i]));
	}
	munmap(holes, REGIONS * PAGE);
	assert_true(fill_other_places(holes + (REGIONS - HOLE) * PAGE));
	q = own(p, PAGE);
	assert_true(q + PAGE <= holes || q >= holes + REGIONS * PAGE);
	assert_true(gone(holes, 0, REGIONS));
	for (i = 0; i < REGIONS; i++)
		OK(soft_cmd_if.mr_dereg(p->d.ctx, mr[i]));
	munmap(start, BYTES);
	region_close(&r, p);
}

/* A page is mapped near the end of a large hole. */
RIG_TEST(test_own_mapping_avoids_a_large_region, NULL)
{
	const size_t len = (size_t)1 << 30;
	struct mlx5_mr_attr attr;
	struct mlx5_mr *mr;
	struct region r;
	uint8_t *hole = mmap(NULL, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *q;
	unsigned int i;

	need_linux_maps();
	assert_true(hole != MAP_FAILED);
	region_open(&r, p, RIG_ALL);
	attr = mlx5_mr_mem(hole, len, MLX5_ACCESS_LOCAL_WRITE);
	OK(soft_cmd_if.mr_reg(p->d.ctx, p->d.pd, &attr, &mr));
	munmap(hole, len - 12 * PAGE);
	munmap(hole + len - 11 * PAGE, 11 * PAGE);
	for (i = 1; i <= 32; i++) {
		q = own(p, i * PAGE);
		assert_true(q + i * PAGE <= hole || q >= hole + len);
	}
	assert_true(gone(hole, 0, 16));
	OK(soft_cmd_if.mr_dereg(p->d.ctx, mr));
	munmap(hole + len - 12 * PAGE, PAGE);
	munmap(start, BYTES);
	region_close(&r, p);
}

TEST_MAIN(0)
