/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* PDs, MRs and umems: which memory can be registered, and what a key allows. */
#include "soft_ctl_env.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../fakes/process.h"
#include "soft_kernel.h"

#define LW   BB_ACCESS_LOCAL_WRITE
#define RW   BB_ACCESS_REMOTE_WRITE
#define RR   BB_ACCESS_REMOTE_READ
#define RA   BB_ACCESS_REMOTE_ATOMIC
#define PAGE 4096u

static int
mr_reg(struct env *env, void *addr, size_t len, uint32_t access, struct mlx5_mr **mr)
{
	struct mlx5_mr_attr attr = mlx5_mr_mem(addr, len, access);

	return soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, mr);
}

T(test_region_has_its_keys)
{
	static const uint32_t access[] = {0, LW, RR, LW | RW, LW | RA, LW | RR | RW | RA};
	const struct soft_mkey *key;
	struct mlx5_mr *mr;
	size_t i;

	for (i = 0; i < RTE_DIM(access); i++) {
		/* Any address and length, in bytes. */
		assert_int_equal(mr_reg(env, env->mem + 3, 4097, access[i], &mr), 0);
		assert_int_equal(mr->lkey, mr->rkey);
		key = soft_mkey_find(env->dev, mr->lkey);
		assert_non_null(key);
		assert_int_equal(key->pdn, env->pd->pdn);
		assert_int_equal(key->start, (uintptr_t)env->mem + 3);
		assert_int_equal(key->len, 4097);
		assert_ptr_equal(key->base, env->mem + 3);
		assert_int_equal(key->lw, (access[i] & LW) != 0);
		assert_int_equal(key->rw, (access[i] & RW) != 0);
		assert_int_equal(key->rr, (access[i] & RR) != 0);
		assert_int_equal(key->atomic, (access[i] & RA) != 0);
		/* The key's index is not reserved. */
		assert_true(mr->lkey >> 8 >= 0x10);
		OK(soft_cmd_if.mr_dereg(env->ctx, mr));
		assert_null(soft_mkey_find(env->dev, mr == NULL ? 0 : (uint32_t)(0x10 + i) << 8));
	}
}

T(test_bad_regions_are_refused)
{
	uint8_t *hole, *ro;
	size_t i;

	hole = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(hole, MAP_FAILED);
	assert_int_equal(mprotect(hole + PAGE, PAGE, PROT_NONE), 0);
	ro = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ro, MAP_FAILED);
	const struct {
		const char *what;
		uint8_t *addr;
		size_t len;
		uint32_t access;
		int ret;
	} cases[] = {
		{"REMOTE_WRITE without LOCAL_WRITE", env->mem, PAGE, RW, -EINVAL},
		{"REMOTE_ATOMIC without LOCAL_WRITE", env->mem, PAGE, RA | RR, -EINVAL},
		{"unknown right", env->mem, PAGE, LW | 1 << 8, -EINVAL},
		{"empty", env->mem, 0, LW, -EINVAL},
		{"past 2^64", env->mem, SIZE_MAX, LW, -EINVAL},
		{"end at 2^64", (uint8_t *)-(uintptr_t)PAGE, PAGE, LW, -EINVAL},
		{"NULL", NULL, PAGE, LW, -EFAULT},
		{"reserved, not mapped", hole + PAGE, PAGE, LW, -EFAULT},
		{"into the reserved part", hole, PAGE + 1, LW, -EFAULT},
		{"over the reserved part", hole, 3 * PAGE, LW, -EFAULT},
		{"from the reserved part", hole + 2 * PAGE - 1, PAGE, LW, -EFAULT},
		{"reserved, for reading", hole + PAGE, 1, 0, -EFAULT},
		{"read-only, for writing", ro, PAGE, LW, -EFAULT},
		{"kernel space", (uint8_t *)(UINT64_C(1) << 63), PAGE, LW, -EFAULT},
	};
	struct census before = env_census(env);
	struct mlx5_mr *mr = NULL;

	for (i = 0; i < RTE_DIM(cases); i++) {
		env_log(env);
		if (mr_reg(env, cases[i].addr, cases[i].len, cases[i].access, &mr) != cases[i].ret)
			fail_msg("%s: not refused by %d: %s", cases[i].what, cases[i].ret,
				 env_log(env));
		assert_null(mr);
		if (strstr(env_log(env), "soft: ") == NULL)
			fail_msg("%s: nothing in the log", cases[i].what);
		env_same(cases[i].what, before, env_census(env));
	}
	/* Memory up to the hole, after the hole, and read-only memory for reading. */
	assert_int_equal(mr_reg(env, hole, PAGE, LW, &mr), 0);
	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	assert_int_equal(mr_reg(env, hole + 2 * PAGE, PAGE, LW, &mr), 0);
	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	assert_int_equal(mr_reg(env, ro, PAGE, RR, &mr), 0);
	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	munmap(hole, 3 * PAGE);
	munmap(ro, PAGE);
}

T(test_unmapped_memory_is_refused)
{
	struct mlx5_mr *mr = NULL;
	uint8_t *p =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(munmap(p + 3 * PAGE, PAGE), 0);
	assert_int_equal(mr_reg(env, p, 8 * PAGE, LW, &mr), -EFAULT);
	assert_null(mr);
	munmap(p, 3 * PAGE);
	munmap(p + 4 * PAGE, 4 * PAGE);
}

/* Thousands of adjacent mappings, so that the list is read in many pieces. */
TEST(test_thousands_of_mappings_are_read)
{
	const uint32_t n = 3000;
	uint8_t *p;
	uint32_t i;

	p = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	for (i = 0; i < n; i += 2)
		assert_int_equal(mprotect(p + (size_t)i * PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(soft_maps_check(p, (size_t)n * PAGE, false), 0);
	assert_int_equal(soft_maps_check(p, (size_t)n * PAGE, true), -EFAULT);
	for (i = 0; i < n; i += 97) {
		assert_int_equal(soft_maps_check(p + (size_t)i * PAGE, PAGE, true),
				 i % 2 == 0 ? -EFAULT : 0);
		assert_int_equal(soft_maps_check(p + (size_t)i * PAGE, 3 * PAGE, false), 0);
	}
	assert_int_equal(mprotect(p + (size_t)(n / 2) * PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(soft_maps_check(p, (size_t)n * PAGE, false), -EFAULT);
	assert_int_equal(soft_maps_check(p, (size_t)n / 2 * PAGE, false), 0);
	munmap(p, (size_t)n * PAGE);
}

/* Small memory is checked by one system call. If that call fails, the check reads a file. */
T(test_registration_needs_a_descriptor_only_for_the_reason_of_a_failure)
{
	void *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mlx5_mr *mr = NULL;
	bool populates;
	int ret, small;

	assert_ptr_not_equal(hole, MAP_FAILED);
	/* Linux before 5.14 has no such call, and QEMU's emulation of Linux ignores it. */
	populates = madvise(env->mem, PAGE, MADV_POPULATE_READ) == 0 &&
		    madvise(hole, PAGE, MADV_POPULATE_READ) != 0;
	env_log(env);
	descriptors_leave(0);
	small = mr_reg(env, env->mem, PAGE, LW, &mr);
	if (small == 0)
		OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	mr = NULL;
	ret = mr_reg(env, hole, PAGE, LW, &mr);
	descriptors_restore();
	assert_int_equal(ret, -EMFILE);
	assert_null(mr);
	assert_non_null(strstr(env_log(env), "/proc/self/maps"));
	munmap(hole, PAGE);
	assert_int_equal(small, populates ? 0 : -EMFILE);
}

TEST(test_hugepages_are_recognized)
{
	const size_t len = 2 << 20;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
		       -1, 0);
	uint64_t page;
	void *next;

	if (p == MAP_FAILED) {
		print_message("no 2 MiB hugepage to try\n");
		skip();
	}
	assert_int_equal(soft_maps_check(p, len, true), 0);
	assert_int_equal(soft_maps_page(p, len, &page), 0);
	assert_int_equal(page, len);
	assert_int_equal(soft_maps_page((uint8_t *)p + len - 100, 100, &page), 0);
	assert_int_equal(page, len);
	/* The smallest page size counts, even if it comes after the large one. */
	next = mmap((uint8_t *)p + len, PAGE, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (next != MAP_FAILED) {
		assert_int_equal(soft_maps_page(p, len + PAGE, &page), 0);
		assert_int_equal(page, PAGE);
		munmap(next, PAGE);
	}
	munmap(p, len);
}

TEST(test_page_size_of_plain_memory_is_found)
{
	uint8_t *p = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t page = 1;

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(soft_maps_page(p + 1, 3 * PAGE - 1, &page), 0);
	assert_int_equal(page, PAGE);
	munmap(p, 3 * PAGE);
	page = 1;
	assert_int_equal(soft_maps_page(p, PAGE, &page), -EFAULT);
	assert_int_equal(soft_maps_page((void *)(uintptr_t)8, PAGE, &page), -EFAULT);
	assert_int_equal(page, 1);
}

/* All numbers of a kind are in use: -ENOMEM, and no object is lost. */
T(test_exhausted_numbers_lose_no_object)
{
	struct soft_ctl *ctl = env->dev->ctl;
	struct soft_ids *const ids[] = {&ctl->pd_ids, &ctl->umem_ids, &ctl->uar_ids};
	struct census before = env_census(env);
	struct mlx5_umem *umem = NULL;
	struct mlx5_uar *uar = NULL;
	struct mlx5_mr *mr = NULL;
	struct mlx5_pd *pd = NULL;
	uint32_t free_keys = ctl->mkey_draw.free;
	size_t i, bytes;
	void *keep;
	int ret = 0;

	ctl->mkey_draw.free = 0;
	ctl->mkey_draw.max = ctl->mkey_draw.n;
	env_log(env);
	assert_int_equal(mr_reg(env, env->mem, PAGE, LW, &mr), -ENOMEM);
	ctl->mkey_draw.free = free_keys;
	assert_null(mr);
	assert_non_null(strstr(env_log(env), "mkeys are in use"));
	env_same("exhausted", before, env_census(env));
	for (i = 0; i < RTE_DIM(ids); i++) {
		bytes = (ids[i]->size + 63) / 64 * sizeof(uint64_t);
		keep = malloc(bytes);
		assert_non_null(keep);
		memcpy(keep, ids[i]->used, bytes);
		memset(ids[i]->used, 0xff, bytes);
		env_log(env);
		switch (i) {
		case 0:
			ret = soft_cmd_if.pd_alloc(env->ctx, &pd);
			break;
		case 1:
			ret = soft_cmd_if.umem_reg(env->ctx, env->mem, PAGE, LW, PAGE, &umem);
			break;
		case 2:
			ret = soft_cmd_if.uar_alloc(env->ctx, MLX5_UAR_BF, &uar);
			break;
		}
		memcpy(ids[i]->used, keep, bytes);
		free(keep);
		assert_int_equal(ret, -ENOMEM);
		assert_true(pd == NULL && umem == NULL && uar == NULL);
		assert_non_null(strstr(env_log(env), "soft: "));
		env_same("exhausted", before, env_census(env));
	}
}

T(test_pd_in_use_is_not_freed)
{
	struct mlx5_mr_attr attr = mlx5_mr_mem(env->mem, PAGE, LW);
	struct mlx5_mr *mr;
	struct mlx5_pd *pd;

	OK(soft_cmd_if.pd_alloc(env->ctx, &pd));
	assert_int_not_equal(pd->pdn, env->pd->pdn);
	OK(soft_cmd_if.mr_reg(env->ctx, pd, &attr, &mr));
	env_log(env);
	assert_int_equal(soft_cmd_if.pd_free(env->ctx, pd), -EBUSY);
	assert_non_null(strstr(env_log(env), "1 MRs"));
	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	OK(soft_cmd_if.pd_free(env->ctx, pd));
}

T(test_objects_of_another_context_are_refused)
{
	struct mlx5_mr_attr attr = mlx5_mr_mem(env->mem, PAGE, LW);
	struct mlx5_mr *mr, *none = NULL;
	struct mlx5_ctx *other;

	OK(soft_cmd_if.open("soft0", NULL, &other));
	assert_int_equal(mr_reg(env, env->mem, PAGE, LW, &mr), 0);
	assert_int_equal(soft_cmd_if.mr_dereg(other, mr), -EINVAL);
	assert_int_equal(soft_cmd_if.mr_reg(other, env->pd, &attr, &none), -EINVAL);
	assert_null(none);
	assert_int_equal(soft_cmd_if.umem_dereg(other, env->umem), -EINVAL);
	/*
	 * Closing the other context does not affect the object; its own context cannot be closed.
	 */
	OK(soft_cmd_if.close(other));
	assert_int_equal(soft_cmd_if.close(env->ctx), -EBUSY);
	assert_non_null(soft_mkey_find(env->dev, mr->lkey));
	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
}

T(test_bad_umems_are_refused)
{
	uint8_t *ro = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mlx5_umem *umem = NULL;
	size_t i;

	assert_ptr_not_equal(ro, MAP_FAILED);
	const struct {
		const char *what;
		uint8_t *addr;
		size_t len;
		uint32_t access;
		uint64_t pgsz;
		int ret;
	} cases[] = {
		{"REMOTE_WRITE without LOCAL_WRITE", env->mem, PAGE, RW, PAGE, -EINVAL},
		{"REMOTE_ATOMIC", env->mem, PAGE, LW | RA, PAGE, -EINVAL},
		{"unknown right", env->mem, PAGE, LW | 1 << 20, PAGE, -EINVAL},
		{"empty", env->mem, 0, LW, PAGE, -EINVAL},
		{"past 2^64", env->mem, SIZE_MAX - 1, LW, PAGE, -EINVAL},
		{"not mapped", NULL, PAGE, LW, PAGE, -EFAULT},
		{"read-only", ro, PAGE, LW, PAGE, -EFAULT},
		{"no page size", env->mem, PAGE, LW, 0, -EINVAL},
		{"page sizes below 4 KiB", env->mem, PAGE, LW, 0xfff, -EINVAL},
		{"page larger than the umem", env->mem, PAGE, LW, 2 << 20, -EINVAL},
		{"page that does not divide it", env->mem, 3 * PAGE, LW, 2 * PAGE, -EINVAL},
		{"page it does not start with", env->mem + PAGE, 2 * PAGE, LW, 2 * PAGE, -EINVAL},
	};
	struct census before = env_census(env);

	for (i = 0; i < RTE_DIM(cases); i++) {
		env_log(env);
		if (soft_cmd_if.umem_reg(env->ctx, cases[i].addr, cases[i].len, cases[i].access,
					 cases[i].pgsz, &umem) != cases[i].ret)
			fail_msg("%s: not refused by %d", cases[i].what, cases[i].ret);
		assert_null(umem);
		if (strstr(env_log(env), "soft: ") == NULL)
			fail_msg("%s: nothing in the log", cases[i].what);
		env_same(cases[i].what, before, env_census(env));
	}
	/* Read-only memory, for queues and records that are only read. */
	OK(soft_cmd_if.umem_reg(env->ctx, ro, PAGE, 0, PAGE, &umem));
	OK(soft_cmd_if.umem_dereg(env->ctx, umem));
	munmap(ro, PAGE);
}

TEST(test_umem_takes_the_largest_page_size)
{
	const uint64_t m2 = 2 << 20, g1 = 1 << 30, all = ~UINT64_C(4095), whole = UINT64_C(1) << 63;
	const struct {
		uint64_t addr, len, real, bitmap, want;
	} cases[] = {
		/* One contiguous piece of memory. */
		{0x10000000, 0x10000, whole, all, 0x10000},
		{0x10000000, 0x11000, whole, all, 0x1000},
		{0x10000000, 0x18000, whole, all, 0x8000},
		{0x10001000, 0x10000, whole, all, 0x1000},
		{0x10000000, 0x10000, whole, 0x1000, 0x1000},
		{0x10000000, 0x10000, whole, 0x3000, 0x2000},
		{0x10000000, 0x10000, whole, 0x2000, 0x2000},
		{0x10000040, 0x10000, whole, all, 0x1000},
		{0x10000040, 100, whole, all, 0x1000},
		{g1, m2, whole, m2 | g1 | 0x1000, m2},
		{g1, 3 * m2, whole, m2 | g1 | 0x1000, m2},
		{g1, g1, whole, m2 | g1 | 0x1000, g1},
		{g1, m2, whole, UINT64_MAX, m2},
		{whole, whole, whole, UINT64_MAX, whole},
		/* Not larger than the length, rounded up. */
		{0x10000040, 100, whole, 0x2000, 0},
		{0x10000000, 0x10000, whole, 0x20000, 0},
		{0x10000000, 0x10001, whole, 0x20000, 0x1000},
		{0x10000000, 0x1000, whole, 0x2000, 0},
		{0x10000000, 0x10000, whole, 0xfff, 0},
		{0x10000000, 0x10000, whole, 0, 0},
		/* The kernel tries half the size if the bitmap does not name a size. */
		{0x10000000, 0x11000, whole, 0x2000, 0x1000},
		{g1 + 0x1000, m2, whole, m2, 0x1000},
		{g1 + 0x8000, 0x8000, whole, 0x8000, 0x8000},
		/* Pages of 4 KiB and 2 MiB at unrelated addresses. */
		{0x10000000, 0x10000, 0x1000, all, 0x1000},
		{0x10000000, 0x10000, 0x1000, 0x2000, 0},
		{0x10000000, 0x1000, 0x1000, all, 0x1000},
		{0x10000800, 0x1001, 0x1000, 0x2000, 0},
		{0x10000800, 0x801, 0x1000, 0x3000, 0x1000},
		{g1, 4 * m2, m2, all, m2},
		{g1, 4 * m2, m2, 2 * m2, 0},
		{g1, 4 * m2, m2, 2 * m2 | 0x4000, 0x4000},
		{g1, m2, m2, all, m2},
		{g1 + m2 / 2, m2, m2, all, m2 / 2},
		{g1 + 0x1000, m2 / 2, m2, all, 0x1000},
		{g1 + 0x10000, 0x10000, m2, m2, 0},
		{g1 + 0x10000, 0x10000, m2, 0x30000, 0x10000},
	};
	size_t i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		uint64_t got = soft_kernel_umem_pgsz(0x1000, cases[i].addr, cases[i].len,
						     cases[i].real, cases[i].bitmap);

		if (got != cases[i].want)
			fail_msg("case %zu: 0x%" PRIx64 ", not 0x%" PRIx64, i, got, cases[i].want);
	}
}

TEST(test_pages_of_64_kib_are_not_split)
{
	const uint64_t host = 0x10000, all = UINT64_MAX, m2 = 2 << 20;

	assert_int_equal(soft_kernel_umem_pgsz(host, m2, m2, host, 0x1000), 0);
	assert_int_equal(soft_kernel_umem_pgsz(host, m2, m2, host, 0xf000), 0);
	assert_int_equal(soft_kernel_umem_pgsz(host, m2, m2, host, 0x11000), host);
	assert_int_equal(soft_kernel_umem_pgsz(host, m2, m2, host, all), host);
	assert_int_equal(soft_kernel_umem_pgsz(host, m2 + 0x1000, 0x3000, host, all), host);
	assert_int_equal(soft_kernel_umem_pgsz(host, m2 + 0x1000, 0x3000, host, 0x1000), 0);
	assert_int_equal(soft_kernel_umem_pgsz(host, m2, m2, m2, 0x7f000), 0x40000);
	assert_int_equal(soft_kernel_umem_pgsz(host, m2, m2, m2, all), m2);
}

/* A umem may begin inside a page, but the objects in it must be aligned by address, too. */
T(test_objects_in_an_unaligned_umem_are_aligned)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_umem *umem;
	struct mlx5_obj *obj;

	OK(soft_cmd_if.umem_reg(env->ctx, env->mem + 8, 8192, LW, PAGE, &umem));
	env_cq_in(env, in);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, umem->id);
	env_log(env);
	env_refused(env, "CQ",
		    soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, sizeof(out), &obj), out,
		    BB_PRM_STAT_BAD_PARAM, "CREATE_CQ");
	env_cq_in(env, in);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_DBR_UMEM_ID, umem->id);
	bb_prm_set64(in + ENV_CQC, BB_PRM_CQC_DBR_ADDR, 4096);
	OK(soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, sizeof(out), &obj));
	assert_int_equal(soft_cmd_if.umem_dereg(env->ctx, umem), -EBUSY);
	OK(soft_cmd_if.obj_destroy(obj));
	OK(soft_cmd_if.umem_dereg(env->ctx, umem));
}

TEST_MAIN(0)
