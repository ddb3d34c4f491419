/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CREATE_MKEY: accepted mailboxes, and refused ones with one wrong field each; memory windows. */
#include "soft_ctl_env.h"

#define MKC   0x10
#define ENTRY BB_PRM_SZ_CREATE_MKEY_IN
#define MAX   (ENTRY + 130 * 16)

/* Fills a KLM key over two pieces with room for four, or a KSM key over two pieces of 4 KiB. */
static size_t
mkey_in(const struct env *env, bool ksm, uint8_t in[MAX])
{
	memset(in, 0, MAX);
	env_op(in, BB_PRM_OP_CREATE_MKEY);
	bb_prm_set(in + MKC, BB_PRM_MKC_ACCESS_MODE, ksm ? 3 : 2);
	bb_prm_set(in + MKC, BB_PRM_MKC_LR, 1);
	bb_prm_set(in + MKC, BB_PRM_MKC_LW, 1);
	bb_prm_set(in + MKC, BB_PRM_MKC_RW, 1);
	bb_prm_set(in + MKC, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(in + MKC, BB_PRM_MKC_PD, env->pd->pdn);
	bb_prm_set(in + MKC, BB_PRM_MKC_XLT_OCTWORD_SIZE, ksm ? 2 : 4);
	bb_prm_set(in + MKC, BB_PRM_MKC_LOG_PAGE_SIZE, ksm ? 12 : 0);
	bb_prm_set(in, BB_PRM_CREATE_MKEY_XLT_ACTUAL, 2);
	bb_prm_set64(in + MKC, BB_PRM_MKC_LEN, 8192);
	if (!ksm) {
		in[ENTRY + 2] = 0x10;
		in[ENTRY + 18] = 0x10;
	}
	return ENTRY + (ksm ? 32 : 64);
}

T(test_bad_create_mkey_is_refused)
{
	static const struct {
		bool ksm;
		struct edit edit;
		uint32_t status;
	} rows[] = {
		{false, {BB_PRM_MKC_ACCESS_MODE, MKC, 0}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_ACCESS_MODE, MKC, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_ACCESS_MODE_4_2, MKC, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_FREE, MKC, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_EN_RINVAL, MKC, 1}, BB_PRM_STAT_BAD_PARAM},
		{true, {BB_PRM_MKC_UMR_EN, MKC, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_QPN, MKC, 0}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_LR, MKC, 0}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_LW, MKC, 0}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_PD, MKC, 0xfff}, BB_PRM_STAT_BAD_RES},
		{false, {BB_PRM_MKC_LOG_PAGE_SIZE, MKC, 12}, BB_PRM_STAT_BAD_PARAM},
		{true, {BB_PRM_MKC_LOG_PAGE_SIZE, MKC, 11}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_LEN, MKC, 0}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_LEN, MKC, 8193}, BB_PRM_STAT_BAD_PARAM},
		{true, {BB_PRM_MKC_LEN, MKC, 8193}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_START_ADDR, MKC, UINT64_MAX - 8191}, BB_PRM_STAT_BAD_PARAM},
		{true, {BB_PRM_MKC_START_ADDR, MKC, 1}, BB_PRM_STAT_BAD_PARAM},
		{true, {BB_PRM_MKC_START_ADDR, MKC, 4096 + 2048}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_XLT_OCTWORD_SIZE, MKC, 0}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_XLT_OCTWORD_SIZE, MKC, 2}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_XLT_OCTWORD_SIZE, MKC, 8}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_MKC_XLT_OCTWORD_SIZE, MKC, 132}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 0}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 5}, BB_PRM_STAT_BAD_PARAM},
		{true, {BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, UINT32_MAX}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_F(0, 0, 32), ENTRY, 0}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_F(0, 0, 32), ENTRY + 16, 0x80000001}, BB_PRM_STAT_BAD_PARAM},
		{true, {BB_PRM_F(0, 0, 32), ENTRY, 4096}, BB_PRM_STAT_BAD_PARAM},
		/* Reserved fields, and fields of features that the device lacks. */
		{false, {BB_PRM_F(0x0c, 0, 1), 0, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_F(0x00, 0, 1), MKC, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_F(0x0c, 1, 1), MKC, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_F(0x20, 0, 32), MKC, 1}, BB_PRM_STAT_BAD_PARAM},
		{false, {BB_PRM_F(0x10c, 0, 32), 0, 1}, BB_PRM_STAT_BAD_PARAM},
	};
	struct mlx5_obj *obj = NULL;
	uint8_t in[MAX], out[BB_PRM_SZ_SHORT];
	struct census before = env_census(env);
	size_t i, len;

	for (i = 0; i < RTE_DIM(rows); i++) {
		char what[32];

		snprintf(what, sizeof(what), "row %zu", i);
		len = mkey_in(env, rows[i].ksm, in);
		env_set(in, rows[i].edit);
		env_log(env);
		env_refused(env, what,
			    soft_cmd_if.obj_create(env->ctx, in, len, out, sizeof(out), &obj), out,
			    rows[i].status, "CREATE_MKEY");
		env_same(what, before, env_census(env));
	}
	/* Lengths that the kernel refuses, then lengths that the device refuses. */
	len = mkey_in(env, false, in);
	assert_int_equal(soft_cmd_if.obj_create(env->ctx, in, 0x4f, out, sizeof(out), &obj),
			 -EINVAL);
	env_log(env);
	env_refused(env, "short", soft_cmd_if.obj_create(env->ctx, in, 0x50, out, 16, &obj), out,
		    BB_PRM_STAT_BAD_INP_LEN, "CREATE_MKEY");
	env_log(env);
	env_refused(env, "one more", soft_cmd_if.obj_create(env->ctx, in, len + 16, out, 16, &obj),
		    out, BB_PRM_STAT_BAD_PARAM, "CREATE_MKEY");
	env_log(env);
	env_refused(env, "one less", soft_cmd_if.obj_create(env->ctx, in, len - 16, out, 16, &obj),
		    out, BB_PRM_STAT_BAD_PARAM, "CREATE_MKEY");
	/*
	 * A free key is created without entries, so only the maximum limits its number of
	 * entries.
	 */
	bb_prm_set(in + MKC, BB_PRM_MKC_FREE, 1);
	bb_prm_set(in + MKC, BB_PRM_MKC_UMR_EN, 1);
	bb_prm_set(in, BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0);
	bb_prm_set(in + MKC, BB_PRM_MKC_XLT_OCTWORD_SIZE, (1u << SOFT_LOG_MAX_KLM) + 4);
	env_log(env);
	env_refused(env, "too many", soft_cmd_if.obj_create(env->ctx, in, ENTRY, out, 16, &obj),
		    out, BB_PRM_STAT_BAD_PARAM, "CREATE_MKEY");
	assert_null(obj);
	env_same("all", before, env_census(env));
}

/* Two changed fields each, so that exactly one rule refuses; and the last accepted values. */
T(test_last_accepted_values_are_accepted)
{
	static const struct {
		bool ksm;
		struct edit edit[3];
		uint32_t status;
	} rows[] = {
		{true,
		 {{BB_PRM_MKC_LOG_PAGE_SIZE, MKC, 11}, {BB_PRM_MKC_LEN, MKC, 4096}},
		 BB_PRM_STAT_BAD_PARAM},
		{false,
		 {{BB_PRM_MKC_RW, MKC, 0}, {BB_PRM_MKC_LW, MKC, 0}, {BB_PRM_MKC_A, MKC, 1}},
		 BB_PRM_STAT_BAD_PARAM},
		{false,
		 {{BB_PRM_F(0, 0, 32), ENTRY, 0}, {BB_PRM_MKC_LEN, MKC, 4096}},
		 BB_PRM_STAT_BAD_PARAM},
		{false, {{BB_PRM_F(0, 0, 32), ENTRY, 0x80000000}}, 0},
		/* Padding counted as entries, as DPDK does; and the length that it then has. */
		{false, {{BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 4}}, 0},
		{false,
		 {{BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 4}, {BB_PRM_MKC_LEN, MKC, 8193}},
		 BB_PRM_STAT_BAD_PARAM},
		{false,
		 {{BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 4}, {BB_PRM_F(4, 0, 32), ENTRY + 48, 1}},
		 BB_PRM_STAT_BAD_PARAM},
		{false,
		 {{BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 3}, {BB_PRM_F(0, 0, 32), ENTRY + 32, 1}},
		 0},
		{true, {{BB_PRM_MKC_START_ADDR, MKC, 4096}}, 0},
		{true, {{BB_PRM_MKC_START_ADDR, MKC, 4095}, {BB_PRM_MKC_LEN, MKC, 4097}}, 0},
		{true,
		 {{BB_PRM_MKC_START_ADDR, MKC, 4095}, {BB_PRM_MKC_LEN, MKC, 4098}},
		 BB_PRM_STAT_BAD_PARAM},
		{false, {{BB_PRM_MKC_START_ADDR, MKC, 4095}}, 0},
		/* Start and length of a key with atomics. */
		{false, {{BB_PRM_MKC_A, MKC, 1}, {BB_PRM_MKC_START_ADDR, MKC, 8}}, 0},
		{true,
		 {{BB_PRM_MKC_A, MKC, 1},
		  {BB_PRM_MKC_START_ADDR, MKC, 4088},
		  {BB_PRM_MKC_LEN, MKC, 4096 + 8}},
		 0},
		{false,
		 {{BB_PRM_MKC_A, MKC, 1}, {BB_PRM_MKC_START_ADDR, MKC, 4}},
		 BB_PRM_STAT_BAD_PARAM},
		{false,
		 {{BB_PRM_MKC_A, MKC, 1}, {BB_PRM_MKC_LEN, MKC, 8191}},
		 BB_PRM_STAT_BAD_PARAM},
		{true,
		 {{BB_PRM_MKC_A, MKC, 1}, {BB_PRM_MKC_LEN, MKC, 4100}},
		 BB_PRM_STAT_BAD_PARAM},
		{false, {{BB_PRM_MKC_START_ADDR, MKC, UINT64_MAX - 8192}}, 0},
	};
	uint8_t in[MAX], out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj;
	size_t i, k, len;

	for (i = 0; i < RTE_DIM(rows); i++) {
		char what[32];
		int ret;

		snprintf(what, sizeof(what), "edge %zu", i);
		len = mkey_in(env, rows[i].ksm, in);
		for (k = 0; k < 3 && rows[i].edit[k].f.width != 0; k++)
			env_set(in, rows[i].edit[k]);
		env_log(env);
		ret = soft_cmd_if.obj_create(env->ctx, in, len, out, sizeof(out), &obj);
		if (rows[i].status != 0) {
			env_refused(env, what, ret, out, rows[i].status, "CREATE_MKEY");
			continue;
		}
		assert_int_equal(ret, 0);
		k = bb_prm_get(out, BB_PRM_CREATE_MKEY_OUT_INDEX);
		assert_non_null(env->dev->mkeys[k]);
		OK(soft_cmd_if.obj_destroy(obj));
		assert_null(env->dev->mkeys[k]);
	}
}

T(test_key_lives_and_dies)
{
	uint8_t in[MAX], out[BB_PRM_SZ_SHORT];
	struct census before = env_census(env);
	struct mlx5_mw *one, *two, *none = NULL;
	struct mlx5_obj *obj[2];
	struct mlx5_ctx *other;
	struct mlx5_pd *pd;
	uint32_t id;
	size_t len;

	OK(soft_cmd_if.pd_alloc(env->ctx, &pd));
	len = mkey_in(env, false, in);
	bb_prm_set(in + MKC, BB_PRM_MKC_PD, pd->pdn);
	bb_prm_set(in + MKC, BB_PRM_MKC_MKEY_7_0, 0x5a);
	OK(soft_cmd_if.obj_create(env->ctx, in, len, out, sizeof(out), &obj[0]));
	assert_int_equal(env->dev->mkeys[bb_prm_get(out, BB_PRM_CREATE_MKEY_OUT_INDEX)]->key & 0xff,
			 0x5a);
	len = mkey_in(env, true, in);
	OK(soft_cmd_if.obj_create(env->ctx, in, len, out, sizeof(out), &obj[1]));
	/* A PD cannot be freed while it has keys or windows. */
	assert_int_equal(soft_cmd_if.pd_free(env->ctx, pd), -EBUSY);
	OK(soft_cmd_if.mw_alloc(env->ctx, pd, 1, &one));
	OK(soft_cmd_if.mw_alloc(env->ctx, pd, 2, &two));
	assert_int_not_equal(one->rkey >> 8, two->rkey >> 8);
	assert_int_equal(soft_cmd_if.mw_alloc(env->ctx, pd, 3, &none), -EINVAL);
	OK(soft_cmd_if.open("soft0", NULL, &other));
	assert_int_equal(soft_cmd_if.mw_alloc(other, pd, 1, &none), -EINVAL);
	assert_int_equal(soft_cmd_if.mw_free(other, one), -EINVAL);
	OK(soft_cmd_if.close(other));
	assert_null(none);
	OK(soft_cmd_if.obj_destroy(obj[0]));
	assert_int_equal(soft_cmd_if.pd_free(env->ctx, pd), -EBUSY);
	id = one->rkey >> 8;
	assert_non_null(env->dev->mkeys[id]);
	OK(soft_cmd_if.mw_free(env->ctx, one));
	assert_null(env->dev->mkeys[id]);
	OK(soft_cmd_if.mw_free(env->ctx, two));
	OK(soft_cmd_if.pd_free(env->ctx, pd));
	OK(soft_cmd_if.obj_destroy(obj[1]));
	env_same("all", before, env_census(env));
}

TEST(test_destroyed_keys_free_their_index)
{
	uint8_t in[MAX], out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj;
	struct mlx5_mw *mw;
	struct env env;
	unsigned int i;

	env_open(&env, "log_max_mkey=5");
	for (i = 0; i < 64; i++) {
		size_t len = mkey_in(&env, i % 2 != 0, in);

		OK(soft_cmd_if.obj_create(env.ctx, in, len, out, sizeof(out), &obj));
		OK(soft_cmd_if.mw_alloc(env.ctx, env.pd, 1 + i % 2, &mw));
		OK(soft_cmd_if.obj_destroy(obj));
		OK(soft_cmd_if.mw_free(env.ctx, mw));
	}
	env_close(&env);
}

TEST_MAIN(0)
