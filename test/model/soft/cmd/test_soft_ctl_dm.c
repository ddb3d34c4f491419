/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Device memory and umems of dma-bufs: allocations, and refused calls. */
#include "soft_ctl_env.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft_kernel.h"

#define LW   BB_ACCESS_LOCAL_WRITE
#define PAGE 4096u
#define DM   (8 * PAGE)

/* Opens a separate device with 8 pages that accepts memfds as dma-bufs. */
static int
dm_setup(void **state)
{
	struct env *env = malloc(sizeof(*env));

	assert_non_null(env);
	env_open(env, "dm=32768,dmabuf=memfd");
	*state = env;
	return 0;
}

static int
dm_teardown(void **state)
{
	assert_int_equal(soft_ctx(((struct env *)*state)->ctx)->dms, 0);
	return env_teardown(state);
}

static int
alloc(struct env *env, uint64_t len, uint32_t log_align, struct mlx5_dm **dm)
{
	return soft_cmd_if.dm_alloc(env->ctx, len, log_align, dm);
}

static void
dm_free(struct env *env, struct mlx5_dm *dm)
{
	OK(soft_cmd_if.dm_free(env->ctx, dm));
}

#define DM_TEST(name) TEST_AS(dm_setup, dm_teardown, NULL, struct env, env, name)

/* Whole contiguous pages are allocated, and returned when freed. */
DM_TEST(test_whole_pages_are_allocated_and_returned)
{
	struct mlx5_dm *dm[9] = {NULL}, *big = NULL;
	uint32_t i;

	for (i = 0; i < 8; i++)
		assert_int_equal(alloc(env, i == 0 ? 1 : i == 1 ? PAGE : 64, 0, &dm[i]), 0);
	env_log(env);
	assert_int_equal(alloc(env, 1, 0, &dm[8]), -ENOMEM);
	assert_null(dm[8]);
	assert_non_null(strstr(env_log(env), "device memory"));
	/* Two free pages that are not adjacent do not satisfy an allocation of two. */
	dm_free(env, dm[2]);
	dm_free(env, dm[4]);
	assert_int_equal(alloc(env, PAGE + 1, 0, &big), -ENOMEM);
	dm_free(env, dm[3]);
	assert_int_equal(alloc(env, 2 * PAGE + 1, 0, &big), 0);
	assert_int_equal(alloc(env, 1, 0, &dm[8]), -ENOMEM);
	dm_free(env, big);
	for (i = 0; i < 8; i++)
		if (i < 2 || i > 4)
			dm_free(env, dm[i]);
	assert_int_equal(alloc(env, DM, 12, &big), 0);
	dm_free(env, big);
}

DM_TEST(test_bad_allocations_are_refused)
{
	static const struct {
		uint64_t len;
		uint32_t log_align;
	} cases[] = {{0, 0}, {DM + 1, 0}, {UINT64_MAX, 0}, {64, 13}, {64, UINT32_MAX}};
	struct mlx5_dm *dm = NULL;
	size_t i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		env_log(env);
		assert_int_equal(alloc(env, cases[i].len, cases[i].log_align, &dm), -EINVAL);
		assert_null(dm);
		assert_non_null(strstr(env_log(env), "device memory"));
	}
}

/*
 * Copies words from and to any address of the process. The bounds are the requested size, not the
 * page.
 */
DM_TEST(test_copies_reach_each_word_in_bounds)
{
	uint8_t in[140], out[140];
	struct mlx5_dm *dm, *next;
	size_t i;

	assert_int_equal(alloc(env, 100, 3, &dm), 0);
	assert_int_equal(alloc(env, 64, 0, &next), 0);
	/* A new allocation is not zero, so that no user relies on zeros. */
	OK(soft_cmd_if.dm_read(env->ctx, dm, out, 0, 100));
	for (i = 0; i < 100; i++)
		assert_int_not_equal(out[i], 0);
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i + 1);
	memset(out, 0, sizeof(out));
	OK(soft_cmd_if.dm_write(env->ctx, dm, 0, in, 100));
	OK(soft_cmd_if.dm_write(env->ctx, dm, 8, in + 101, 12));
	OK(soft_cmd_if.dm_read(env->ctx, dm, out + 1, 0, 100));
	assert_memory_equal(out + 1, in, 8);
	assert_memory_equal(out + 9, in + 101, 12);
	assert_memory_equal(out + 21, in + 20, 80);
	assert_int_equal(out[0] | out[101], 0);
	OK(soft_cmd_if.dm_read(env->ctx, dm, out, 96, 4));
	assert_memory_equal(out, in + 96, 4);
	dm_free(env, next);
	dm_free(env, dm);
}

DM_TEST(test_copies_out_of_bounds_are_refused)
{
	/* mlx5_access_dm() checks the bounds first. */
	static const struct {
		uint64_t off;
		size_t len;
		int ret;
	} cases[] = {
		{0, 101, -EFAULT},      {0, 104, -EFAULT},        {100, 4, -EFAULT},
		{101, 0, -EFAULT},      {UINT64_MAX, 4, -EFAULT}, {UINT64_MAX - 3, 4, -EFAULT},
		{4, SIZE_MAX, -EFAULT}, {2, 4, -EINVAL},          {0, 2, -EINVAL},
		{1, 3, -EINVAL},
	};
	uint8_t before[100], buf[104];
	struct mlx5_dm *dm;
	size_t i;

	assert_int_equal(alloc(env, 100, 0, &dm), 0);
	OK(soft_cmd_if.dm_read(env->ctx, dm, before, 0, 100));
	for (i = 0; i < RTE_DIM(cases); i++) {
		memset(buf, 7, sizeof(buf));
		env_log(env);
		assert_int_equal(
			soft_cmd_if.dm_write(env->ctx, dm, cases[i].off, buf, cases[i].len),
			cases[i].ret);
		assert_non_null(strstr(env_log(env), "soft0"));
		assert_int_equal(soft_cmd_if.dm_read(env->ctx, dm, buf, cases[i].off, cases[i].len),
				 cases[i].ret);
		assert_int_equal(buf[0], 7);
	}
	OK(soft_cmd_if.dm_read(env->ctx, dm, buf, 0, 100));
	assert_memory_equal(buf, before, 100);
	OK(soft_cmd_if.dm_read(env->ctx, dm, buf, 100, 0));
	dm_free(env, dm);
}

DM_TEST(test_memory_of_another_context_is_refused)
{
	struct mlx5_ctx *other;
	struct mlx5_dm *dm;

	OK(soft_cmd_if.open("soft0", NULL, &other));
	OK(soft_cmd_if.dm_alloc(other, DM, 0, &dm));
	/* All contexts of a device share one pool. */
	assert_int_equal(alloc(env, 1, 0, &dm), -ENOMEM);
	assert_int_equal(soft_cmd_if.dm_free(env->ctx, dm), -EINVAL);
	env_log(env);
	assert_int_equal(soft_cmd_if.close(other), -EBUSY);
	assert_non_null(strstr(env_log(env), "device memory"));
	OK(soft_cmd_if.dm_free(other, dm));
	OK(soft_cmd_if.close(other));
}

/* Without device memory the capability bit and its capability page are absent. */
TEST(test_device_without_memory_says_so)
{
	uint8_t in[BB_PRM_SZ_QUERY_HCA_CAP_IN] = {0}, out[BB_PRM_SZ_QUERY_HCA_CAP_OUT];
	const uint8_t *cap = out + BB_PRM_HCA_CAP_OUT_CAPS;
	struct mlx5_dm *dm = NULL;
	struct mlx5_ctx *ctx;

	env_op(in, BB_PRM_OP_QUERY_HCA_CAP);
	OK(soft_cmd_if.open("soft3", "no_dm", &ctx));
	OK(soft_cmd_if.general(ctx, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(cap, BB_PRM_HCA_DEVICE_MEMORY), 0);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, BB_PRM_CAP_DEV_MEM << 1 | 1);
	assert_int_equal(soft_cmd_if.general(ctx, in, sizeof(in), out, sizeof(out)), -EREMOTEIO);
	assert_int_equal(soft_cmd_if.dm_alloc(ctx, 64, 0, &dm), -EOPNOTSUPP);
	assert_null(dm);
	OK(soft_cmd_if.close(ctx));

	OK(soft_cmd_if.open("soft3", NULL, &ctx));
	OK(soft_cmd_if.general(ctx, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(cap, BB_PRM_DEV_MEM_CAP_MEMIC), 1);
	assert_int_equal(bb_prm_get(cap, BB_PRM_DEV_MEM_CAP_MAX_MEMIC_SIZE), 128 << 10);
	assert_int_equal(bb_prm_get(cap, BB_PRM_DEV_MEM_CAP_LOG_MAX_MEMIC_ADDR_ALIGNMENT), 6);
	OK(soft_cmd_if.dm_alloc(ctx, 128 << 10, 12, &dm));
	OK(soft_cmd_if.dm_free(ctx, dm));
	OK(soft_cmd_if.close(ctx));
}

static int
memfd(size_t len, int seals)
{
	int fd = memfd_create("bb_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int
umem_of(struct env *env, int fd, uint64_t off, size_t len, uint32_t access, uint64_t pgsz,
	struct mlx5_umem **umem)
{
	return soft_cmd_if.umem_reg_dmabuf(env->ctx, fd, off, len, access, pgsz, umem);
}

/* A CQ and its record in a dma-buf, at an offset that is not page-aligned. */
DM_TEST(test_cq_works_in_an_unaligned_dmabuf)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT], *mem, *mapped;
	int fd = memfd(8 * PAGE, F_SEAL_SHRINK);
	struct soft_umem *u;
	struct mlx5_umem *umem, *ro;
	struct mlx5_obj *obj;

	mem = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(umem_of(env, fd, PAGE + 64, 3 * PAGE, LW, PAGE, &umem), 0);
	/* A umem without LOCAL_WRITE is mapped read-only. */
	assert_int_equal(umem_of(env, fd, 0, PAGE, 0, PAGE, &ro), 0);
	assert_int_equal(soft_maps_check(((struct soft_umem *)ro)->base, PAGE, true), -EFAULT);
	OK(soft_cmd_if.umem_dereg(env->ctx, ro));
	close(fd);
	u = (struct soft_umem *)umem;
	assert_int_equal(u->len, 3 * PAGE);
	u->base[0] = 0x5a;
	assert_int_equal(mem[PAGE + 64], 0x5a);
	mem[4 * PAGE + 63] = 0x77;
	assert_int_equal(u->base[3 * PAGE - 1], 0x77);
	env_cq_in(env, in);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, PAGE - 64);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_DBR_UMEM_ID, umem->id);
	bb_prm_set64(in + ENV_CQC, BB_PRM_CQC_DBR_ADDR, 0);
	OK(soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, sizeof(out), &obj));
	env_log(env);
	assert_int_equal(soft_cmd_if.umem_dereg(env->ctx, umem), -EBUSY);
	assert_non_null(strstr(env_log(env), "destroy"));
	OK(soft_cmd_if.obj_destroy(obj));
	mapped = u->base;
	assert_int_equal(soft_maps_check(mapped, 3 * PAGE, true), 0);
	OK(soft_cmd_if.umem_dereg(env->ctx, umem));
	assert_int_equal(soft_maps_check(mapped, 1, false), -EFAULT);
	munmap(mem, 8 * PAGE);
}

DM_TEST(test_bad_dmabufs_are_refused)
{
	int fd = memfd(2 * PAGE, F_SEAL_SHRINK), open_fd = memfd(2 * PAGE, 0);
	int ro = memfd(2 * PAGE, F_SEAL_SHRINK | F_SEAL_WRITE), pipes[2];
	struct census before = env_census(env);
	struct mlx5_umem *umem = NULL;
	size_t i;

	assert_int_equal(pipe(pipes), 0);
	/* ib_umem_dmabuf_get(), dma_buf_get(), devx_umem_get() */
	const struct {
		const char *what;
		int fd;
		uint64_t off;
		size_t len;
		uint32_t access;
		uint64_t pgsz;
		int ret;
	} cases[] = {
		{"-1", -1, 0, PAGE, LW, PAGE, -EBADF},
		{"no file", 9999, 0, PAGE, LW, PAGE, -EBADF},
		{"a pipe", pipes[0], 0, PAGE, LW, PAGE, -EINVAL},
		{"a memfd that may shrink", open_fd, 0, PAGE, LW, PAGE, -EINVAL},
		{"a memfd that is not written", ro, 0, PAGE, LW, PAGE, -EINVAL},
		{"empty", fd, 0, 0, LW, PAGE, -EINVAL},
		{"longer", fd, 0, 2 * PAGE + 1, LW, PAGE, -EINVAL},
		{"behind it", fd, 2 * PAGE, 1, LW, PAGE, -EINVAL},
		{"over its end", fd, PAGE + 1, PAGE, LW, PAGE, -EINVAL},
		{"past 2^64", fd, UINT64_MAX, 2, LW, PAGE, -EINVAL},
		{"past 2^64 by length", fd, PAGE, SIZE_MAX, LW, PAGE, -EINVAL},
		{"REMOTE_WRITE without LOCAL_WRITE", fd, 0, PAGE, BB_ACCESS_REMOTE_WRITE, PAGE,
		 -EINVAL},
		{"REMOTE_ATOMIC", fd, 0, PAGE, LW | BB_ACCESS_REMOTE_ATOMIC, PAGE, -EINVAL},
		{"large pages", fd, 0, 2 * PAGE, LW, 2 * PAGE, -EINVAL},
		{"no pages", fd, 0, 2 * PAGE, LW, 0, -EINVAL},
	};

	for (i = 0; i < RTE_DIM(cases); i++) {
		env_log(env);
		if (umem_of(env, cases[i].fd, cases[i].off, cases[i].len, cases[i].access,
			    cases[i].pgsz, &umem) != cases[i].ret)
			fail_msg("%s: not refused by %d: %s", cases[i].what, cases[i].ret,
				 env_log(env));
		assert_null(umem);
		if (strstr(env_log(env), "soft: ") == NULL)
			fail_msg("%s: nothing in the log", cases[i].what);
		env_same(cases[i].what, before, env_census(env));
	}
	close(fd);
	close(ro);
	close(open_fd);
	close(pipes[0]);
	close(pipes[1]);
}

static int
mr_reg(struct env *env, const struct mlx5_mr_attr *attr, struct mlx5_mr **mr)
{
	return soft_cmd_if.mr_reg(env->ctx, env->pd, attr, mr);
}

/* An MR of device memory is zero-based, whatever its offset in the device memory. */
DM_TEST(test_region_of_device_memory_is_zero_based)
{
	struct mlx5_mr_attr attr = {.kind = MLX5_MR_DM,
				    .len = 36,
				    .iova = 64, /* ignored */
				    .access = LW | BB_ACCESS_ZERO_BASED | BB_ACCESS_REMOTE_ATOMIC,
				    .offset = 64};
	const struct soft_mkey *key;
	struct mlx5_mr *mr;
	uint32_t lkey;

	assert_int_equal(alloc(env, 100, 0, &attr.dm), 0);
	assert_int_equal(mr_reg(env, &attr, &mr), 0);
	key = soft_mkey_find(env->dev, mr->lkey);
	assert_non_null(key);
	assert_int_equal(key->start, 0);
	assert_int_equal(key->len, 36);
	assert_ptr_equal(key->base, ((struct soft_dm *)attr.dm)->base + 64);
	assert_true(key->lw && key->atomic && !key->rr && !key->rw);
	env_log(env);
	assert_int_equal(soft_cmd_if.dm_free(env->ctx, attr.dm), -EBUSY);
	assert_non_null(strstr(env_log(env), "1 MRs"));
	assert_int_equal(soft_cmd_if.mr_rereg(env->ctx, mr, MLX5_REREG_ACCESS, NULL, NULL, 0, LW),
			 -EINVAL);
	lkey = mr->lkey;
	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	assert_null(soft_mkey_find(env->dev, lkey));
	dm_free(env, attr.dm);
}

DM_TEST(test_bad_regions_of_device_memory_are_refused)
{
	const uint32_t zb = BB_ACCESS_ZERO_BASED;
	const struct {
		const char *what;
		uint64_t off, len;
		uint32_t access;
	} cases[] = {
		/* UVERBS_METHOD_DM_MR_REG, mlx5_ib_reg_dm_mr() */
		{"not ZERO_BASED", 0, 64, LW},
		{"MW_BIND", 0, 64, LW | zb | BB_ACCESS_MW_BIND},
		{"ON_DEMAND", 0, 64, LW | zb | BB_ACCESS_ON_DEMAND},
		{"RELAXED_ORDERING", 0, 64, LW | zb | BB_ACCESS_RELAXED_ORDERING},
		{"REMOTE_WRITE without LOCAL_WRITE", 0, 64, zb | BB_ACCESS_REMOTE_WRITE},
		{"longer", 0, 101, LW | zb},
		{"over the end", 96, 8, LW | zb},
		{"behind", 101, 1, LW | zb},
		{"past 2^64", UINT64_MAX, 2, LW | zb},
		{"past 2^64 by length", 4, UINT64_MAX, LW | zb},
	};
	struct mlx5_mr_attr attr = {.kind = MLX5_MR_DM};
	struct census before = env_census(env);
	struct mlx5_ctx *other;
	struct mlx5_mr *mr = NULL;
	size_t i;
	int ret;

	assert_int_equal(alloc(env, 100, 0, &attr.dm), 0);
	for (i = 0; i < RTE_DIM(cases); i++) {
		attr.offset = cases[i].off;
		attr.len = cases[i].len;
		attr.access = cases[i].access;
		env_log(env);
		ret = (attr.access & BB_ACCESS_ON_DEMAND) != 0 && !env->dev->odp ? -EOPNOTSUPP
										 : -EINVAL;
		if (mr_reg(env, &attr, &mr) != ret)
			fail_msg("%s: not refused by %d: %s", cases[i].what, ret, env_log(env));
		assert_null(mr);
		if (strstr(env_log(env), "soft: ") == NULL)
			fail_msg("%s: nothing in the log", cases[i].what);
		env_same(cases[i].what, before, env_census(env));
	}
	/* The kernel and firmware accept an empty range. */
	attr.offset = 100;
	attr.len = 0;
	attr.access = LW | zb;
	assert_int_equal(mr_reg(env, &attr, &mr), 0);
	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	mr = NULL;
	dm_free(env, attr.dm);
	/* Handles belong to the context that made them. */
	OK(soft_cmd_if.open("soft0", NULL, &other));
	OK(soft_cmd_if.dm_alloc(other, 64, 0, &attr.dm));
	attr = (struct mlx5_mr_attr){
		.kind = MLX5_MR_DM, .len = 64, .access = LW | zb, .dm = attr.dm};
	assert_int_equal(mr_reg(env, &attr, &mr), -EINVAL);
	assert_null(mr);
	OK(soft_cmd_if.dm_free(other, attr.dm));
	OK(soft_cmd_if.close(other));
}

DM_TEST(test_range_and_rights_of_a_dmabuf_are_checked)
{
	int fd = memfd(4 * PAGE, F_SEAL_SHRINK);
	struct mlx5_mr_attr attr = {.kind = MLX5_MR_DMABUF,
				    .len = 2 * PAGE,
				    .iova = 0x5550008,
				    .access = LW | BB_ACCESS_REMOTE_READ,
				    .offset = PAGE + 8,
				    .fd = fd};
	const uint64_t iova = attr.iova;
	const struct {
		const char *what;
		int fd;
		uint64_t off, len, iova;
		uint32_t access;
		int ret;
	} cases[] = {
		/* UVERBS_METHOD_REG_DMABUF_MR, ib_umem_dmabuf_get(), dma_buf_get() */
		{"another offset in the page", fd, 8, PAGE, iova + 4, LW, -EINVAL},
		{"MW_BIND", fd, 8, PAGE, iova, LW | BB_ACCESS_MW_BIND, -EINVAL},
		{"ZERO_BASED", fd, 8, PAGE, iova, LW | BB_ACCESS_ZERO_BASED, -EINVAL},
		{"REMOTE_ATOMIC without LOCAL_WRITE", fd, 8, PAGE, iova, BB_ACCESS_REMOTE_ATOMIC,
		 -EINVAL},
		{"longer", fd, 8, 4 * PAGE, iova, LW, -EINVAL},
		{"empty", fd, 8, 0, iova, LW, -EINVAL},
		{"iova past 2^64", fd, 8, PAGE, UINT64_MAX - 4095 + 8, LW, -EINVAL},
		{"-1", -1, 8, PAGE, iova, LW, -EBADF},
	};
	struct census before = env_census(env);
	const struct soft_mkey *key;
	struct mlx5_mr *mr = NULL;
	uint8_t *mapped;
	size_t i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		struct mlx5_mr_attr bad = {.kind = MLX5_MR_DMABUF,
					   .len = cases[i].len,
					   .iova = cases[i].iova,
					   .access = cases[i].access,
					   .offset = cases[i].off,
					   .fd = cases[i].fd};

		env_log(env);
		if (mr_reg(env, &bad, &mr) != cases[i].ret)
			fail_msg("%s: not refused by %d", cases[i].what, cases[i].ret);
		assert_null(mr);
		if (strstr(env_log(env), "soft: ") == NULL)
			fail_msg("%s: nothing in the log", cases[i].what);
		env_same(cases[i].what, before, env_census(env));
	}
	assert_int_equal(mr_reg(env, &attr, &mr), 0);
	assert_int_equal(pwrite(fd, "dmabuf", 6, PAGE + 8 + 100), 6);
	close(fd);
	key = soft_mkey_find(env->dev, mr->lkey);
	assert_non_null(key);
	assert_int_equal(key->start, iova);
	assert_int_equal(key->len, 2 * PAGE);
	assert_memory_equal(key->base + 100, "dmabuf", 6);
	mapped = key->base;
	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	assert_int_equal(soft_maps_check(mapped, 1, false), -EFAULT);
}

/* By default only a real dma-buf is accepted. A kernel may also have no dma-bufs. */
TEST(test_only_real_dmabufs_are_accepted)
{
	int fd = memfd(PAGE, F_SEAL_SHRINK);
	struct mlx5_umem *umem = NULL;
	struct mlx5_ctx *ctx;

	OK(soft_cmd_if.open("soft3", NULL, &ctx));
	assert_true(ctx->dmabuf);
	assert_int_equal(soft_cmd_if.umem_reg_dmabuf(ctx, fd, 0, PAGE, 0, PAGE, &umem), -EINVAL);
	OK(soft_cmd_if.close(ctx));
	OK(soft_cmd_if.open("soft3", "no_dmabuf,dmabuf=memfd", &ctx));
	assert_false(ctx->dmabuf);
	assert_int_equal(soft_cmd_if.umem_reg_dmabuf(ctx, fd, 0, PAGE, 0, PAGE, &umem),
			 -EOPNOTSUPP);
	assert_null(umem);
	OK(soft_cmd_if.close(ctx));
	close(fd);
}

TEST_MAIN(0)
