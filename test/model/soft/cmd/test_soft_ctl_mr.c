/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* MRs: how the kernel treats access rights and iova, and which key a re-registration leaves. */
#include "soft_ctl_env.h"

#include <sys/mman.h>
#include <unistd.h>

#include "../../../fakes/process.h"
#include "soft_kernel.h"

#define LW    MLX5_ACCESS_LOCAL_WRITE
#define RW    MLX5_ACCESS_REMOTE_WRITE
#define RR    MLX5_ACCESS_REMOTE_READ
#define RA    MLX5_ACCESS_REMOTE_ATOMIC
#define MW    MLX5_ACCESS_MW_BIND
#define OD    MLX5_ACCESS_ON_DEMAND
#define RO    MLX5_ACCESS_RELAXED_ORDERING
#define PAGE  4096u
#define TRANS MLX5_REREG_TRANSLATION

static struct mlx5_mr *
reg(struct env *env, void *addr, size_t len, uint32_t access)
{
	struct mlx5_mr_attr attr = mlx5_mr_mem(addr, len, access);
	struct mlx5_mr *mr = NULL;

	OK(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr));
	assert_int_equal(mr->lkey, mr->rkey);
	return mr;
}

static void
dereg(struct env *env, struct mlx5_mr *mr)
{
	uint32_t key = mr->lkey;

	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	assert_null(soft_mkey_find(env->dev, key));
}

T(test_key_for_the_slow_path_is_no_plain_key)
{
	const struct soft_mkey *key;
	struct mlx5_mr *mr;

	/*
	 * A key that needs the slow path never passes the check of plain keys, whatever its
	 * range.
	 */
	mr = reg(env, env->mem, PAGE, LW | RW | RR | RO);
	key = soft_mkey_find(env->dev, mr->lkey);
	assert_int_equal(key->detour, SOFT_DETOUR_RELAXED);
	assert_int_equal(key->len, 0);
	assert_int_equal(key->detour_len, PAGE);
	dereg(env, mr);
	mr = reg(env, env->mem, PAGE, LW | RW | MW);
	key = soft_mkey_find(env->dev, mr->lkey);
	assert_int_equal(key->detour, SOFT_DETOUR_NONE);
	assert_true(key->mw_bind);
	dereg(env, mr);
}

T(test_region_uses_its_iova)
{
	static const struct {
		uint64_t iova;
		size_t off, len;
		int ret;
	} cases[] = {
		{0, 0, PAGE, 0},
		{0x12345000, 0, 1, 0},
		{0x12345007, 7, PAGE, 0},
		{UINT64_MAX - 4095, 0, PAGE - 1, 0},
		{UINT64_MAX - 4095, 0, PAGE, -EINVAL},
		{UINT64_MAX - 4095, 0, 2 * PAGE, -EINVAL},
		{0, 7, PAGE, -EINVAL},
		{7, 0, PAGE, -EINVAL},
	};
	size_t i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		struct mlx5_mr_attr attr = mlx5_mr_mem(env->mem + cases[i].off, cases[i].len, LW);
		struct mlx5_mr *mr = NULL;

		attr.iova = cases[i].iova;
		env_log(env);
		assert_int_equal(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr), cases[i].ret);
		if (cases[i].ret != 0) {
			assert_non_null(strstr(env_log(env), "iova"));
			assert_null(mr);
			continue;
		}
		assert_int_equal(soft_mkey_find(env->dev, mr->lkey)->start, cases[i].iova);
		assert_ptr_equal(soft_mkey_find(env->dev, mr->lkey)->base, env->mem + cases[i].off);
		dereg(env, mr);
	}
}

T(test_on_demand_region_pins_nothing)
{
	struct mlx5_mr *mr = NULL;
	const struct soft_mkey *key;
	struct mlx5_mr_attr attr;
	uint8_t *p;

	NEED_KERNEL_COPIES();
	mr = reg(env, env->mem, PAGE, LW | RW | RR | RA | OD | RO);
	key = soft_mkey_find(env->dev, mr->lkey);
	assert_int_equal(key->detour, SOFT_DETOUR_PAGED);
	assert_int_equal(key->len, 0);
	assert_false(key->atomic);
	dereg(env, mr);
	mr = NULL;
	p = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	/* An on-demand MR pins no page, so no page has to exist. */
	dereg(env, reg(env, p, 4 * PAGE, LW | RW | OD));
	munmap(p, 4 * PAGE);
	dereg(env, reg(env, p, 4 * PAGE, LW | RW | OD | MLX5_ACCESS_HUGETLB));
	dereg(env, reg(env, NULL, UINT64_MAX, LW | RW | OD));
	/* Only impossible ranges are refused. */
	attr = mlx5_mr_mem(p, 0, LW | OD);
	assert_int_equal(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr), -EINVAL);
	attr = mlx5_mr_mem(p, UINT64_MAX - 8, LW | OD);
	assert_int_equal(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr), -EINVAL);
	attr = mlx5_mr_mem(NULL, UINT64_MAX, LW | OD);
	attr.iova = PAGE;
	assert_int_equal(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr), -EINVAL);
	attr = mlx5_mr_mem(NULL, UINT64_MAX, LW);
	assert_int_equal(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr), -EINVAL);
	assert_null(mr);
}

/* Options disable on-demand paging: refused with the kernel's errno. */
TEST(test_paging_switched_off_is_refused)
{
	struct mlx5_mr_attr attr;
	struct mlx5_mr *mr = NULL;
	struct env env;

	env_open(&env, "no_odp,no_relaxed");
	attr = mlx5_mr_mem(env.mem, PAGE, LW | OD);
	assert_int_equal(soft_cmd_if.mr_reg(env.ctx, env.pd, &attr, &mr), -EOPNOTSUPP);
	assert_null(mr);
	assert_non_null(strstr(env_log(&env), "no on-demand paging"));
	mr = reg(&env, env.mem, PAGE, LW | RW | RO);
	assert_int_equal(soft_mkey_find(env.dev, mr->lkey)->detour, SOFT_DETOUR_NONE);
	assert_int_equal(
		soft_cmd_if.mr_rereg(env.ctx, mr, MLX5_REREG_ACCESS, NULL, NULL, 0, LW | OD),
		-EOPNOTSUPP);
	dereg(&env, mr);
	env_close(&env);
}

/* All keys are in use: -ENOMEM with the number of keys; a freed key can be allocated again. */
TEST(test_exhausted_keys_name_their_number)
{
	struct mlx5_mr *mrs[64];
	struct mlx5_mr_attr attr;
	struct mlx5_mr *mr = NULL;
	struct env env;
	unsigned int n;

	env_open(&env, "log_max_mkey=6");
	attr = mlx5_mr_mem(env.mem, PAGE, LW);
	for (n = 0; n < 64; n++)
		if (soft_cmd_if.mr_reg(env.ctx, env.pd, &attr, &mrs[n]) != 0)
			break;
	/* The first 16 indices are reserved. */
	assert_int_equal(n, 48);
	env_log(&env);
	assert_int_equal(soft_cmd_if.mr_reg(env.ctx, env.pd, &attr, &mr), -ENOMEM);
	assert_null(mr);
	assert_non_null(strstr(env_log(&env), "all 48 mkeys are in use"));
	/* A re-registration that needs another key fails, too; the MR stays as it is. */
	assert_int_equal(
		soft_cmd_if.mr_rereg(env.ctx, mrs[5], MLX5_REREG_ACCESS, NULL, NULL, 0, LW | MW),
		-ENOMEM);
	assert_non_null(soft_mkey_find(env.dev, mrs[5]->lkey));
	assert_false(soft_mkey_find(env.dev, mrs[5]->lkey)->mw_bind);
	dereg(&env, mrs[7]);
	mrs[7] = reg(&env, env.mem, PAGE, LW);
	while (n-- > 0)
		dereg(&env, mrs[n]);
	env_close(&env);
}

/* The branches of mlx5_ib_rereg_user_mr(): the key stays, or a new key replaces it. */
T(test_registration_anew_keeps_or_replaces_the_key)
{
	static const struct {
		const char *what;
		uint32_t from, to, flags;
		uint32_t pages, to_pages; /* when registered, then when registered again */
		bool stays;
	} cases[] = {
		{"fewer rights", LW | RW | RR, LW, MLX5_REREG_ACCESS, 1, 1, true},
		{"more rights", LW, LW | RW | RR | RA | RO, MLX5_REREG_ACCESS, 1, 1, true},
		{"bind right", LW, LW | MW, MLX5_REREG_ACCESS, 1, 1, false},
		{"PD", LW, LW, MLX5_REREG_PD, 1, 1, true},
		{"as large", LW, LW, TRANS, 1, 1, true},
		{"as much as there is room for", LW, LW, TRANS, 1, 4, true},
		{"more", LW, LW, TRANS, 1, 5, false},
		{"room is a power of two", LW, LW, TRANS, 5, 8, true},
		{"more than that", LW, LW, TRANS, 5, 9, false},
		{"smaller", LW, LW, TRANS, 8, 1, true},
		{"all", LW, LW | RR, TRANS | MLX5_REREG_PD | MLX5_REREG_ACCESS, 4, 4, true},
		{"all, bind right", LW, LW | MW, TRANS | MLX5_REREG_PD | MLX5_REREG_ACCESS, 4, 4,
		 false},
		{"on demand", LW, LW | OD, TRANS | MLX5_REREG_ACCESS, 1, 1, false},
		{"no more on demand", LW | OD, LW, TRANS | MLX5_REREG_ACCESS, 1, 1, false},
		{"on demand, elsewhere", LW | OD, LW | OD, TRANS, 1, 1, false},
		{"on demand, rights", LW | OD, LW | RW | OD, MLX5_REREG_ACCESS, 1, 1, true},
	};
	struct mlx5_pd *pd;
	size_t i;

	OK(soft_cmd_if.pd_alloc(env->ctx, &pd));
	for (i = 0; i < RTE_DIM(cases); i++) {
		uint32_t flags = cases[i].flags, old;
		const struct soft_mkey *key;
		struct mlx5_mr *mr;
		uint64_t len;

		if (((cases[i].from | cases[i].to) & OD) != 0 && !env->dev->odp)
			continue;
		mr = reg(env, env->mem, cases[i].pages * PAGE, cases[i].from);
		old = mr->lkey;
		OK(soft_cmd_if.mr_rereg(env->ctx, mr, flags, flags & MLX5_REREG_PD ? pd : NULL,
					flags & TRANS ? env->mem + PAGE : NULL,
					flags & TRANS ? cases[i].to_pages * PAGE : 0,
					flags & MLX5_REREG_ACCESS ? cases[i].to : 0));
		if ((mr->lkey == old) != cases[i].stays)
			fail_msg("%s: the key %s", cases[i].what,
				 mr->lkey == old ? "stays" : "changes");
		assert_int_equal(mr->lkey, mr->rkey);
		if (!cases[i].stays)
			assert_null(soft_mkey_find(env->dev, old));
		key = soft_mkey_find(env->dev, mr->lkey);
		assert_non_null(key);
		len = key->detour != SOFT_DETOUR_NONE ? key->detour_len : key->len;
		assert_int_equal(len, (flags & TRANS ? cases[i].to_pages : cases[i].pages) * PAGE);
		assert_ptr_equal(key->base, flags & TRANS ? env->mem + PAGE : env->mem);
		assert_int_equal(key->start, (uintptr_t)key->base);
		assert_int_equal(key->pdn, flags & MLX5_REREG_PD ? pd->pdn : env->pd->pdn);
		assert_int_equal(key->rw, (cases[i].to & RW) != 0);
		assert_int_equal(key->rr, (cases[i].to & RR) != 0);
		assert_int_equal(key->mw_bind, (cases[i].to & MW) != 0);
		dereg(env, mr);
	}
	OK(soft_cmd_if.pd_free(env->ctx, pd));
}

T(test_bad_registration_anew_changes_nothing)
{
	uint8_t *ro = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mlx5_ctx *other;
	struct mlx5_pd *pd;
	struct mlx5_mr *mr;
	size_t i;

	assert_ptr_not_equal(ro, MAP_FAILED);
	OK(soft_cmd_if.open("soft0", NULL, &other));
	OK(soft_cmd_if.pd_alloc(other, &pd));
	mr = reg(env, ro, PAGE, RR);
	const struct {
		const char *what;
		uint32_t flags;
		struct mlx5_pd *pd;
		void *addr;
		uint64_t len;
		uint32_t access;
		int ret;
	} cases[] = {
		{"nothing", 0, NULL, NULL, 0, 0, -EINVAL},
		{"unknown flag", 8, NULL, NULL, 0, 0, -EINVAL},
		{"NULL", TRANS, NULL, NULL, PAGE, 0, -EINVAL},
		{"empty", TRANS, NULL, env->mem, 0, 0, -EINVAL},
		{"past 2^64", TRANS, NULL, env->mem, UINT64_MAX, 0, -EINVAL},
		{"not mapped", TRANS, NULL, (void *)(UINT64_C(1) << 63), PAGE, 0, -EFAULT},
		{"read-only", TRANS | MLX5_REREG_ACCESS, NULL, ro, PAGE, LW, -EFAULT},
		{"pinned for reading", MLX5_REREG_ACCESS, NULL, NULL, 0, LW, -EACCES},
		{"pinned for reading, bind", MLX5_REREG_ACCESS, NULL, NULL, 0, MW, -EACCES},
		{"right without LOCAL_WRITE", MLX5_REREG_ACCESS, NULL, NULL, 0, RW, -EINVAL},
		{"unknown right", MLX5_REREG_ACCESS, NULL, NULL, 0, 1 << 9, -EINVAL},
		{"other context's PD", MLX5_REREG_PD, pd, NULL, 0, 0, -EINVAL},
		{"on demand in place", MLX5_REREG_ACCESS, NULL, NULL, 0, OD, -EOPNOTSUPP},
	};

	for (i = 0; i < RTE_DIM(cases); i++) {
		uint32_t key = mr->lkey;
		const struct soft_mkey *m = soft_mkey_find(env->dev, key);

		env_log(env);
		if (soft_cmd_if.mr_rereg(env->ctx, mr, cases[i].flags, cases[i].pd, cases[i].addr,
					 cases[i].len, cases[i].access) != cases[i].ret)
			fail_msg("%s: not refused by %d: %s", cases[i].what, cases[i].ret,
				 env_log(env));
		if (strstr(env_log(env), "soft: ") == NULL)
			fail_msg("%s: nothing in the log", cases[i].what);
		/* The key is unchanged. */
		assert_int_equal(mr->lkey, key);
		assert_ptr_equal(soft_mkey_find(env->dev, key), m);
	}
	assert_int_equal(soft_cmd_if.mr_rereg(other, mr, TRANS, NULL, env->mem, PAGE, 0), -EINVAL);
	/* Memory that was pinned for writing may lose and regain LOCAL_WRITE. */
	dereg(env, mr);
	mr = reg(env, env->mem, PAGE, LW);
	OK(soft_cmd_if.mr_rereg(env->ctx, mr, MLX5_REREG_ACCESS, NULL, NULL, 0, RR));
	OK(soft_cmd_if.mr_rereg(env->ctx, mr, MLX5_REREG_ACCESS, NULL, NULL, 0, LW));
	dereg(env, mr);
	OK(soft_cmd_if.pd_free(other, pd));
	OK(soft_cmd_if.close(other));
	munmap(ro, PAGE);
}

/*
 * ib_check_mr_access() with every combination, the optional range included. This is the last
 * test: it logs so much that the log is truncated.
 */
TEST(test_each_combination_of_rights_is_checked)
{
	uint32_t a, odp;

	for (odp = 0; odp < 2; odp++) {
		for (a = 0; a < 256; a++) {
			int want = (a & (RW | RA)) != 0 && (a & LW) == 0 ? -EINVAL
				   : (a & OD) != 0 && !odp               ? -EOPNOTSUPP
									 : 0;

			assert_int_equal(soft_kernel_mr_access(a, odp), want);
			assert_int_equal(soft_kernel_mr_access(a | 0x3ff00000, odp), want);
			assert_int_equal(soft_kernel_mr_access(a | 1u << 8, odp), -EINVAL);
			assert_int_equal(soft_kernel_mr_access(a | 1u << 19, odp), -EINVAL);
			assert_int_equal(soft_kernel_mr_access(a | 1u << 30, odp), -EINVAL);
		}
	}
}

TEST_MAIN(0)
