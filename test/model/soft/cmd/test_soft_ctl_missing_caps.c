/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Mailboxes that use a capability which the device lacks; a device with the capability accepts
 * the same mailbox. The library checks capabilities first, so no test of the library reaches
 * these refusals.
 */
#include "soft_ctl_env.h"

#define MKC    0x10
#define ENTRY  BB_PRM_SZ_CREATE_MKEY_IN
#define RMPC   0x20
#define WQ     (RMPC + 0x30)
#define RMP_AT 32768
#define RMP_DB (ENV_CQ_DB + 128)
#define MAX_IN 512

/* Kernel method that passes the mailbox to the firmware. */
enum way {
	CREATE,
	MODIFY_CQ,
	GENERAL,
};

static size_t
cq_in(const struct env *env, uint8_t *in)
{
	env_cq_in(env, in);
	return BB_PRM_SZ_CREATE_CQ_IN;
}

static size_t
moderated_cq(const struct env *env, uint8_t *in)
{
	size_t len = cq_in(env, in);

	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_CQ_MAX_COUNT, 9);
	return len;
}

static size_t
compressed_cq(const struct env *env, uint8_t *in)
{
	size_t len = cq_in(env, in);

	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_CQE_COMP_EN, 1);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_MINI_CQE_RES_FORMAT, BB_PRM_CQ_MINI_CSUM);
	return len;
}

static size_t
resize(const struct env *env, uint8_t *in)
{
	env_op(in, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, BB_PRM_CQ_OP_MOD_RESIZE);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, env->cqn);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT, 7);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_LOG_CQ_SIZE, 3);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, env->umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, RMP_AT);
	return BB_PRM_SZ_MODIFY_CQ_IN;
}

static size_t
moderate(const struct env *env, uint8_t *in)
{
	env_op(in, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, env->cqn);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_CQ_MAX_COUNT, 9);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT, BB_PRM_CQ_MODIFY_COUNT);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, env->umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ENV_CQ_AT);
	return BB_PRM_SZ_MODIFY_CQ_IN;
}

static size_t
congestion(const struct env *env, uint8_t *in)
{
	(void)env;
	env_op(in, BB_PRM_OP_QUERY_CONG_STATISTICS);
	return BB_PRM_SZ_QUERY_CONG_STATISTICS_IN;
}

static size_t
rmp(const struct env *env, uint8_t *in)
{
	env_op(in, BB_PRM_OP_CREATE_RMP);
	bb_prm_set(in + RMPC, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in + WQ, BB_PRM_WQ_TYPE, BB_PRM_WQ_TYPE_LIST);
	bb_prm_set(in + WQ, BB_PRM_WQ_PD, env->pd->pdn);
	bb_prm_set(in + WQ, BB_PRM_WQ_LOG_STRIDE, 5);
	bb_prm_set(in + WQ, BB_PRM_WQ_LOG_SZ, 4);
	bb_prm_set(in + WQ, BB_PRM_WQ_DBR_UMEM_ID, env->umem->id);
	bb_prm_set64(in + WQ, BB_PRM_WQ_DBR_ADDR, RMP_DB);
	bb_prm_set(in + WQ, BB_PRM_WQ_UMEM_ID, env->umem->id);
	bb_prm_set64(in + WQ, BB_PRM_WQ_UMEM_OFFSET, RMP_AT);
	return BB_PRM_SZ_RMP;
}

/* Fills a CREATE_MKEY over two pieces of 4 KiB, with room for four. */
static size_t
mkey(const struct env *env, uint8_t *in)
{
	env_op(in, BB_PRM_OP_CREATE_MKEY);
	bb_prm_set(in + MKC, BB_PRM_MKC_ACCESS_MODE, BB_PRM_MKC_MODE_KLMS);
	bb_prm_set(in + MKC, BB_PRM_MKC_LR, 1);
	bb_prm_set(in + MKC, BB_PRM_MKC_LW, 1);
	bb_prm_set(in + MKC, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(in + MKC, BB_PRM_MKC_PD, env->pd->pdn);
	bb_prm_set(in + MKC, BB_PRM_MKC_XLT_OCTWORD_SIZE, 4);
	bb_prm_set(in, BB_PRM_CREATE_MKEY_XLT_ACTUAL, 2);
	bb_prm_set64(in + MKC, BB_PRM_MKC_LEN, 8192);
	in[ENTRY + 2] = 0x10;
	in[ENTRY + 18] = 0x10;
	return ENTRY + 64;
}

static size_t
ksm(const struct env *env, uint8_t *in)
{
	(void)mkey(env, in);
	bb_prm_set(in + MKC, BB_PRM_MKC_ACCESS_MODE, BB_PRM_MKC_MODE_KSM);
	bb_prm_set(in + MKC, BB_PRM_MKC_LOG_PAGE_SIZE, 12);
	bb_prm_set(in + MKC, BB_PRM_MKC_XLT_OCTWORD_SIZE, 2);
	memset(in + ENTRY, 0, 32);
	return ENTRY + 32;
}

static size_t
atomic_mkey(const struct env *env, uint8_t *in)
{
	size_t len = mkey(env, in);

	bb_prm_set(in + MKC, BB_PRM_MKC_A, 1);
	return len;
}

static size_t
umr_mkey(const struct env *env, uint8_t *in)
{
	size_t len = mkey(env, in);

	bb_prm_set(in + MKC, BB_PRM_MKC_UMR_EN, 1);
	return len;
}

static const struct row {
	const char *option, *command;
	size_t (*build)(const struct env *env, uint8_t *in);
	enum way way;
	uint32_t status;
	const char *why;
} rows[] = {
	{"no_cq_moderation", "CREATE_CQ", moderated_cq, CREATE, BB_PRM_STAT_BAD_PARAM,
	 "no CQ moderation"},
	{"no_cq_moderation", "MODIFY_CQ", moderate, MODIFY_CQ, BB_PRM_STAT_BAD_PARAM,
	 "no CQ moderation"},
	{"no_compress", "CREATE_CQ", compressed_cq, CREATE, BB_PRM_STAT_BAD_PARAM,
	 "no CQE compression"},
	{"no_cq_resize", "MODIFY_CQ", resize, MODIFY_CQ, BB_PRM_STAT_BAD_PARAM, "resize"},
	{"no_counters", "QUERY_CONG_STATISTICS", congestion, GENERAL, BB_PRM_STAT_BAD_OP,
	 "statistics"},
	{"link=ib", "QUERY_CONG_STATISTICS", congestion, GENERAL, BB_PRM_STAT_BAD_OP, "statistics"},
	{"no_srq", "CREATE_RMP", rmp, CREATE, BB_PRM_STAT_NO_RES, "no RMPs"},
	{"no_mkey", "CREATE_MKEY", mkey, CREATE, BB_PRM_STAT_BAD_PARAM,
	 "does not support access mode"},
	{"no_mkey", "CREATE_MKEY", ksm, CREATE, BB_PRM_STAT_BAD_PARAM,
	 "does not support access mode"},
	{"no_ksm", "CREATE_MKEY", ksm, CREATE, BB_PRM_STAT_BAD_PARAM,
	 "does not support access mode"},
	{"no_atomic", "CREATE_MKEY", atomic_mkey, CREATE, BB_PRM_STAT_BAD_PARAM, "no atomics"},
	{"no_umr_atomic", "CREATE_MKEY", atomic_mkey, CREATE, BB_PRM_STAT_BAD_PARAM,
	 "on indirect keys"},
	{"no_umr", "CREATE_MKEY", umr_mkey, CREATE, BB_PRM_STAT_BAD_PARAM, "no UMR"},
};

/* Sends the row's mailbox. @obj receives the object of a CREATE, else NULL. */
static int
ask(struct env *env, const struct row *row, uint8_t *out, struct mlx5_obj **obj)
{
	uint8_t in[MAX_IN] = {0};
	size_t len = row->build(env, in);

	*obj = NULL;
	switch (row->way) {
	case CREATE:
		return soft_cmd_if.obj_create(env->ctx, in, len, out, BB_PRM_SZ_SHORT, obj);
	case MODIFY_CQ:
		return soft_cmd_if.obj_modify(env->cq, in, len, out, BB_PRM_SZ_SHORT);
	case GENERAL:
		return soft_cmd_if.general(env->ctx, in, len, out,
					   BB_PRM_SZ_QUERY_CONG_STATISTICS_OUT);
	}
	return -EINVAL;
}

TEST(test_commands_of_missing_capabilities_are_refused)
{
	uint8_t out[BB_PRM_SZ_QUERY_CONG_STATISTICS_OUT];
	struct mlx5_obj *obj;
	struct census before;
	struct env env;
	size_t i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		const struct row *row = &rows[i];
		char what[64];
		int ret;

		snprintf(what, sizeof(what), "%s with %s", row->command, row->option);
		env_open(&env, NULL);
		ret = ask(&env, row, out, &obj);
		if (ret != 0)
			fail_msg("%s, without it: %d; log: %s", what, ret, env_log(&env));
		if (obj != NULL)
			OK(soft_cmd_if.obj_destroy(obj));
		env_close(&env);

		env_open(&env, row->option);
		before = env_census(&env);
		env_log(&env);
		ret = ask(&env, row, out, &obj);
		if (strstr(env.log_text, row->why) == NULL)
			fail_msg("%s: \"%s\" is not in the log: %s", what, row->why, env.log_text);
		env_refused(&env, what, ret, out, row->status, row->command);
		assert_null(obj);
		env_same(what, before, env_census(&env));
		env_close(&env);
	}
}

/* Memory windows use no mailbox: the kernel asks the device. */
TEST(test_windows_need_no_mailbox)
{
	static const char *const options[] = {"no_mw", "no_umr"};
	struct mlx5_mw *mw = NULL;
	struct env env;
	size_t i;

	for (i = 0; i < RTE_DIM(options); i++) {
		env_open(&env, options[i]);
		env_log(&env);
		assert_int_equal(soft_cmd_if.mw_alloc(env.ctx, env.pd, 1, &mw), -EOPNOTSUPP);
		assert_null(mw);
		assert_non_null(strstr(env_log(&env), "no memory windows"));
		env_close(&env);
	}
}

TEST(test_exhausted_rmps_and_keys_are_refused)
{
	static const struct row ask_for[] = {
		{"RMPs", "CREATE_RMP", rmp, CREATE, BB_PRM_STAT_NO_RES, NULL},
		{"mkeys", "CREATE_MKEY", mkey, CREATE, BB_PRM_STAT_NO_RES, NULL},
	};
	uint8_t out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj;
	struct mlx5_mw *mw = NULL;
	struct env env;
	size_t i;

	for (i = 0; i < RTE_DIM(ask_for); i++) {
		const struct row *row = &ask_for[i];
		struct soft_ids *ids;
		struct soft_draw *draw;
		struct census before;
		uint32_t free_keys;
		size_t bytes;
		void *keep;
		int ret, mw_ret;

		env_open(&env, NULL);
		ids = &env.dev->ctl->rmp_ids;
		draw = &env.dev->ctl->mkey_draw;
		free_keys = draw->free;
		bytes = (ids->size + 63) / 64 * sizeof(uint64_t);
		keep = malloc(bytes);
		assert_non_null(keep);
		before = env_census(&env);
		memcpy(keep, ids->used, bytes);
		if (row->build == mkey) {
			draw->free = 0;
			draw->max = draw->n;
		} else {
			memset(ids->used, 0xff, bytes);
		}
		env_log(&env);
		ret = ask(&env, row, out, &obj);
		env_refused(&env, row->option, ret, out, row->status, row->command);
		assert_null(obj);
		mw_ret = soft_cmd_if.mw_alloc(env.ctx, env.pd, 1, &mw);
		if (row->build == mkey) {
			assert_int_equal(mw_ret, -ENOMEM);
			assert_non_null(strstr(env_log(&env), "all mkeys are in use"));
		} else {
			assert_int_equal(mw_ret, 0);
			OK(soft_cmd_if.mw_free(env.ctx, mw));
		}
		memcpy(ids->used, keep, bytes);
		if (row->build == mkey)
			draw->free = free_keys;
		free(keep);
		env_same(row->option, before, env_census(&env));
		assert_int_equal(ask(&env, row, out, &obj), 0);
		OK(soft_cmd_if.obj_destroy(obj));
		env_close(&env);
	}
}

TEST_MAIN(0)
