/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Capabilities, CQs and counter sets through raw mailboxes. */
#include "soft_ctl_env.h"

struct bad {
	const char *what;
	uint32_t status;
	struct edit edit[2];
};

#define CQC(name, v)                                                                               \
	{                                                                                          \
		BB_PRM_CQC_##name, ENV_CQC, v                                                      \
	}
#define TOP(name, v)                                                                               \
	{                                                                                          \
		BB_PRM_##name, 0, v                                                                \
	}
#define RAW(byte, bit, v)                                                                          \
	{                                                                                          \
		BB_PRM_F(byte, bit, 1), 0, v                                                       \
	}

static const struct bad bad_cq[] = {
	{"padded CQEs", BB_PRM_STAT_BAD_PARAM, {CQC(CQE_SZ, 2)}},
	{"compressed CQEs of 128 bytes",
	 BB_PRM_STAT_BAD_PARAM,
	 {CQC(CQE_SZ, 1), CQC(CQE_COMP_EN, 1)}},
	{"unknown CQEs", BB_PRM_STAT_BAD_PARAM, {CQC(CQE_SZ, 7)}},
	{"too many CQEs", BB_PRM_STAT_BAD_PARAM, {CQC(LOG_CQ_SIZE, 23)}},
	{"2^31 CQEs", BB_PRM_STAT_BAD_PARAM, {CQC(LOG_CQ_SIZE, 31)}},
	{"more than fit", BB_PRM_STAT_BAD_PARAM, {CQC(LOG_CQ_SIZE, 11)}},
	{"no UAR", BB_PRM_STAT_BAD_RES, {CQC(UAR_PAGE, 0)}},
	{"UAR beyond the table", BB_PRM_STAT_BAD_RES, {CQC(UAR_PAGE, 0xffffff)}},
	{"no umem", BB_PRM_STAT_BAD_RES, {TOP(CREATE_CQ_UMEM_ID, 0)}},
	{"umem beyond the table", BB_PRM_STAT_BAD_RES, {TOP(CREATE_CQ_UMEM_ID, UINT32_MAX)}},
	{"no record umem", BB_PRM_STAT_BAD_RES, {CQC(DBR_UMEM_ID, 0)}},
	{"off 64 bytes", BB_PRM_STAT_BAD_PARAM, {TOP(CREATE_CQ_UMEM_OFFSET, 32)}},
	{"past the umem", BB_PRM_STAT_BAD_PARAM, {TOP(CREATE_CQ_UMEM_OFFSET, ENV_BYTES)}},
	{"end past the umem",
	 BB_PRM_STAT_BAD_PARAM,
	 {TOP(CREATE_CQ_UMEM_OFFSET, ENV_BYTES - 1024 + 64)}},
	{"end past 2^64", BB_PRM_STAT_BAD_PARAM, {TOP(CREATE_CQ_UMEM_OFFSET, UINT64_C(0) - 64)}},
	{"pages above the umem's", BB_PRM_STAT_BAD_PARAM, {CQC(LOG_PAGE_SIZE, 1)}},
	{"record off 8 bytes", BB_PRM_STAT_BAD_PARAM, {CQC(DBR_ADDR, ENV_CQ_DB + 4)}},
	{"record past the umem", BB_PRM_STAT_BAD_PARAM, {CQC(DBR_ADDR, ENV_BYTES)}},
	{"record's end past the umem", BB_PRM_STAT_BAD_PARAM, {CQC(DBR_ADDR, ENV_BYTES - 4)}},
	{"record past 2^64", BB_PRM_STAT_BAD_PARAM, {CQC(DBR_ADDR, UINT64_C(0) - 8)}},
	{"collapsed", BB_PRM_STAT_BAD_PARAM, {CQC(CC, 1)}},
	{"compressed without a format", BB_PRM_STAT_BAD_PARAM, {CQC(CQE_COMP_EN, 1)}},
	{"a format uncompressed", BB_PRM_STAT_BAD_PARAM, {CQC(MINI_CQE_RES_FORMAT, 1)}},
	{"status", BB_PRM_STAT_BAD_PARAM, {CQC(STATUS, 1)}},
	{"armed state", BB_PRM_STAT_BAD_PARAM, {CQC(ST, 9)}},
	{"page_offset", BB_PRM_STAT_BAD_PARAM, {CQC(PAGE_OFFSET, 1)}},
	{"producer counter", BB_PRM_STAT_BAD_PARAM, {CQC(PRODUCER_COUNTER, 1)}},
	{"op_mod", BB_PRM_STAT_BAD_PARAM, {TOP(CMD_OP_MOD, 1)}},
	{"reserved dword", BB_PRM_STAT_BAD_PARAM, {RAW(0x0c, 31, 1)}},
	{"reserved tail", BB_PRM_STAT_BAD_PARAM, {RAW(0x10c, 31, 1)}},
};

static int
create_cq(struct env *env, const uint8_t *in, size_t inlen, uint8_t *out, struct mlx5_obj **obj)
{
	return soft_cmd_if.obj_create(env->ctx, in, inlen, out, BB_PRM_SZ_SHORT, obj);
}

static void
cq_legal(struct env *env, const char *what)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj;

	env_cq_in(env, in);
	if (create_cq(env, in, sizeof(in), out, &obj) != 0)
		fail_msg("after %s: a legal CREATE_CQ is refused: %s", what, env_log(env));
	OK(soft_cmd_if.obj_destroy(obj));
}

T(test_bad_create_cq_is_refused)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN + 16] = {0}, out[BB_PRM_SZ_SHORT];
	struct census before = env_census(env);
	struct mlx5_obj *obj = NULL;
	size_t i, j;
	int ret;

	for (i = 0; i < RTE_DIM(bad_cq); i++) {
		env_cq_in(env, in);
		for (j = 0; j < 2 && bad_cq[i].edit[j].f.width != 0; j++)
			env_set(in, bad_cq[i].edit[j]);
		ret = create_cq(env, in, BB_PRM_SZ_CREATE_CQ_IN, out, &obj);
		env_refused(env, bad_cq[i].what, ret, out, bad_cq[i].status, "CREATE_CQ");
		assert_null(obj);
		env_same(bad_cq[i].what, before, env_census(env));
		cq_legal(env, bad_cq[i].what);
	}
	/* The device writes CQEs, so a umem without LOCAL_WRITE is refused. */
	env_cq_in(env, in);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, env->ro_umem->id);
	ret = create_cq(env, in, BB_PRM_SZ_CREATE_CQ_IN, out, &obj);
	env_refused(env, "not writable", ret, out, BB_PRM_STAT_BAD_PARAM, "CREATE_CQ");
	/* Wrong mailbox lengths. */
	env_cq_in(env, in);
	ret = create_cq(env, in, BB_PRM_SZ_CREATE_CQ_IN - 4, out, &obj);
	env_refused(env, "short", ret, out, BB_PRM_STAT_BAD_INP_LEN, "CREATE_CQ");
	ret = create_cq(env, in, sizeof(in), out, &obj);
	env_refused(env, "long", ret, out, BB_PRM_STAT_BAD_INP_LEN, "CREATE_CQ");
	assert_null(obj);
	env_same("lengths", before, env_census(env));
}

/* An event queue that does not exist fails in the kernel, without an output mailbox. */
T(test_unknown_eqn_fails_in_the_kernel)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];
	static const uint32_t bad[] = {0, SOFT_FIRST_EQN - 1, SOFT_FIRST_EQN + SOFT_EQS,
				       UINT32_MAX};
	struct mlx5_obj *obj = NULL;
	uint32_t eqn, i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		env_cq_in(env, in);
		bb_prm_set(in + ENV_CQC, BB_PRM_CQC_C_EQN, bad[i]);
		memset(out, 0xee, sizeof(out));
		assert_int_equal(create_cq(env, in, sizeof(in), out, &obj), -ENOENT);
		assert_int_equal(out[0], 0xee);
		assert_null(obj);
	}
	for (i = 0; i < SOFT_EQS; i++) {
		OK(soft_cmd_if.query_eqn(env->ctx, i, &eqn));
		env_cq_in(env, in);
		bb_prm_set(in + ENV_CQC, BB_PRM_CQC_C_EQN, eqn);
		assert_int_equal(create_cq(env, in, sizeof(in), out, &obj), 0);
		OK(soft_cmd_if.obj_destroy(obj));
	}
	assert_int_equal(soft_cmd_if.query_eqn(env->ctx, SOFT_EQS, &eqn), -EINVAL);
}

T(test_create_cq_sets_up_the_ring)
{
	const struct soft_cq *cq = env->dev->cqs[env->cqn];
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj;

	assert_ptr_equal(cq->buf, env->mem + ENV_CQ_AT);
	assert_ptr_equal(cq->dbrec, env->mem + ENV_CQ_DB);
	assert_int_equal(cq->log_size, ENV_CQ_LOG);
	assert_int_equal(cq->pi, 0);
	assert_ptr_equal(cq->obj, env->cq);
	/* A CQ of one CQE, and a CQ at the end of the umem. */
	env_cq_in(env, in);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_LOG_CQ_SIZE, 0);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ENV_BYTES - 64);
	bb_prm_set64(in + ENV_CQC, BB_PRM_CQC_DBR_ADDR, ENV_BYTES - 8);
	assert_int_equal(create_cq(env, in, sizeof(in), out, &obj), 0);
	OK(soft_cmd_if.obj_destroy(obj));
}

/* Pages above 4 KiB, up to the umem's page size; offsets are in 64ths of the umem's page. */
T(test_umem_pages_above_4_kib_are_accepted)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_umem *big;
	struct mlx5_obj *obj;

	OK(soft_cmd_if.umem_reg(env->ctx, env->mem, ENV_BYTES, BB_ACCESS_LOCAL_WRITE, UINT64_MAX,
				&big));
	/*
	 * This umem has small pages, whatever the caller asks for. The test sets the page size
	 * that a hugepage would give.
	 */
	assert_int_equal(((struct soft_umem *)big)->pgsz, 4096);
	((struct soft_umem *)big)->pgsz = ENV_BYTES;
	env_cq_in(env, in);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, big->id);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_LOG_PAGE_SIZE, 4);
	assert_int_equal(create_cq(env, in, sizeof(in), out, &obj), 0);
	OK(soft_cmd_if.obj_destroy(obj));
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, 1024);
	assert_int_equal(create_cq(env, in, sizeof(in), out, &obj), 0);
	OK(soft_cmd_if.obj_destroy(obj));
	env_log(env);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, 512);
	env_refused(env, "offset", create_cq(env, in, sizeof(in), out, &obj), out,
		    BB_PRM_STAT_BAD_PARAM, "CREATE_CQ");
	/* Small pages in the object do not change the result. */
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_LOG_PAGE_SIZE, 0);
	env_refused(env, "offset", create_cq(env, in, sizeof(in), out, &obj), out,
		    BB_PRM_STAT_BAD_PARAM, "CREATE_CQ");
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, 0);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_LOG_PAGE_SIZE, 5);
	env_refused(env, "page", create_cq(env, in, sizeof(in), out, &obj), out,
		    BB_PRM_STAT_BAD_PARAM, "CREATE_CQ");
	OK(soft_cmd_if.umem_dereg(env->ctx, big));
}

static int
query_cap(struct env *env, uint32_t op_mod, uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT])
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0};

	env_op(in, BB_PRM_OP_QUERY_HCA_CAP);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, op_mod);
	return soft_cmd_if.general(env->ctx, in, sizeof(in), out, BB_PRM_SZ_QUERY_HCA_CAP_OUT);
}

static uint32_t
cap(const uint8_t *out, struct bb_prm_field f)
{
	return bb_prm_get(out + BB_PRM_HCA_CAP_OUT_CAPS, f);
}

T(test_capabilities_are_reported)
{
	uint8_t max[BB_PRM_SZ_QUERY_HCA_CAP_OUT], cur[BB_PRM_SZ_QUERY_HCA_CAP_OUT];
	uint8_t in[BB_PRM_SZ_SHORT + 16] = {0};
	uint32_t i;

	memset(max, 0xee, sizeof(max));
	assert_int_equal(query_cap(env, 0, max), 0);
	assert_int_equal(query_cap(env, 1, cur), 0);
	assert_memory_equal(max, cur, sizeof(max));
	assert_int_equal(cap(cur, BB_PRM_HCA_LOG_MAX_QP), SOFT_LOG_MAX_QP);
	assert_int_equal(cap(cur, BB_PRM_HCA_LOG_MAX_QP_SZ), 15);
	assert_int_equal(cap(cur, BB_PRM_HCA_LOG_MAX_CQ_SZ), 22);
	assert_int_equal(cap(cur, BB_PRM_HCA_LOG_MAX_MSG), 30);
	assert_int_equal(cap(cur, BB_PRM_HCA_CQE_VERSION), 1);
	assert_int_equal(cap(cur, BB_PRM_HCA_NUM_PORTS), 1);
	assert_int_equal(cap(cur, BB_PRM_HCA_PORT_TYPE), 1);
	assert_int_equal(cap(cur, BB_PRM_HCA_ROCE), 1);
	assert_int_equal(cap(cur, BB_PRM_HCA_ATOMIC), 1);
	assert_int_equal(cap(cur, BB_PRM_HCA_BF), 1);
	assert_int_equal(cap(cur, BB_PRM_HCA_LOG_BF_REG_SIZE), 9);
	assert_int_equal(cap(cur, BB_PRM_HCA_MAX_QP_CNT), 255);
	assert_int_equal(cap(cur, BB_PRM_HCA_DEVICE_MEMORY), 1);
	assert_int_equal(cap(cur, BB_PRM_HCA_LOG_MAX_MKEY), 20);
	assert_int_equal(cap(cur, BB_PRM_HCA_RELAXED_ORDERING_WRITE), 1);
	assert_int_equal(cap(cur, BB_PRM_HCA_PG), env->dev->odp);

	assert_int_equal(query_cap(env, BB_PRM_CAP_ATOMIC << 1 | 1, cur), 0);
	assert_int_equal(cap(cur, BB_PRM_ATOMIC_CAP_MODE), 0xf);
	assert_int_equal(cap(cur, BB_PRM_ATOMIC_CAP_SIZE_QP), 4 | 8);
	assert_int_equal(query_cap(env, BB_PRM_CAP_DEV_EVENT << 1 | 1, cur), 0);
	/* No path migration: types 1 and 7 are absent. */
	assert_int_equal(bb_prm_get64(cur + BB_PRM_HCA_CAP_OUT_CAPS, BB_PRM_F(0, 0, 64)), 0x1f0034);
	assert_int_equal(query_cap(env, BB_PRM_CAP_ROCE << 1 | 1, cur), 0);
	assert_int_equal(cap(cur, BB_PRM_ROCE_CAP_VERSION), 5);
	assert_int_equal(cap(cur, BB_PRM_ROCE_CAP_R_ROCE_MIN_SRC_UDP_PORT), 0xc000);
	/* No flow tables. */
	assert_int_equal(query_cap(env, BB_PRM_CAP_FLOW_TABLE << 1 | 1, cur), 0);
	for (i = BB_PRM_HCA_CAP_OUT_CAPS; i < sizeof(cur); i++)
		assert_int_equal(cur[i], 0);

	env_log(env);
	for (i = 0; i < 0x40; i++)
		if (i != BB_PRM_CAP_GENERAL && i != BB_PRM_CAP_ATOMIC && i != BB_PRM_CAP_ROCE &&
		    i != BB_PRM_CAP_DEV_MEM && i != BB_PRM_CAP_DEV_EVENT &&
		    i != BB_PRM_CAP_FLOW_TABLE && (i != BB_PRM_CAP_ODP || !env->dev->odp))
			env_refused(env, "capability type", query_cap(env, i << 1, cur), cur,
				    BB_PRM_STAT_BAD_PARAM, "QUERY_HCA_CAP");
	env_op(in, BB_PRM_OP_QUERY_HCA_CAP);
	env_refused(env, "long", soft_cmd_if.general(env->ctx, in, 32, cur, sizeof(cur)), cur,
		    BB_PRM_STAT_BAD_INP_LEN, "QUERY_HCA_CAP");
	env_refused(env, "short output",
		    soft_cmd_if.general(env->ctx, in, 16, cur, sizeof(cur) - 4), cur,
		    BB_PRM_STAT_BAD_OUTP_LEN, "QUERY_HCA_CAP");
	in[0x0c] = 1;
	env_refused(env, "reserved", soft_cmd_if.general(env->ctx, in, 16, cur, sizeof(cur)), cur,
		    BB_PRM_STAT_BAD_PARAM, "QUERY_HCA_CAP");
}

TEST(test_options_switch_capabilities_off)
{
	uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT], in[BB_PRM_SZ_SHORT] = {0};
	struct mlx5_obj *obj = NULL;
	struct mlx5_uar *uar;
	struct mlx5_mr *mr;
	struct mlx5_mr_attr attr;
	struct env env;

	env_open(
		&env,
		"no_atomic,no_bf,no_counters,link=ib,log_max_msg=12,no_odp,no_relaxed,log_max_mkey=7");
	assert_int_equal(query_cap(&env, 1, out), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_ATOMIC), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_BF), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_LOG_BF_REG_SIZE), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_MAX_QP_CNT), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_ROCE), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_PORT_TYPE), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_LOG_MAX_MSG), 12);
	assert_int_equal(cap(out, BB_PRM_HCA_PG), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_NULL_MKEY), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_RELAXED_ORDERING_WRITE), 0);
	assert_int_equal(cap(out, BB_PRM_HCA_LOG_MAX_MKEY), 7);
	env_log(&env);
	env_refused(&env, "atomic", query_cap(&env, BB_PRM_CAP_ATOMIC << 1, out), out,
		    BB_PRM_STAT_BAD_PARAM, "QUERY_HCA_CAP");
	env_refused(&env, "ODP", query_cap(&env, BB_PRM_CAP_ODP << 1, out), out,
		    BB_PRM_STAT_BAD_PARAM, "QUERY_HCA_CAP");
	env_refused(&env, "RoCE", query_cap(&env, BB_PRM_CAP_ROCE << 1, out), out,
		    BB_PRM_STAT_BAD_PARAM, "QUERY_HCA_CAP");
	env_op(in, BB_PRM_OP_ALLOC_Q_COUNTER);
	env_refused(&env, "counters", soft_cmd_if.obj_create(env.ctx, in, 16, out, 16, &obj), out,
		    BB_PRM_STAT_NO_RES, "ALLOC_Q_COUNTER");
	assert_int_equal(soft_cmd_if.uar_alloc(env.ctx, MLX5_UAR_BF, &uar), -EOPNOTSUPP);
	attr = mlx5_mr_mem(env.mem, 4096, MLX5_ACCESS_LOCAL_WRITE | MLX5_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(soft_cmd_if.mr_reg(env.ctx, env.pd, &attr, &mr), -EINVAL);
	env_close(&env);
}

static int
alloc_set(struct env *env, uint8_t *out, struct mlx5_obj **set)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0};

	env_op(in, BB_PRM_OP_ALLOC_Q_COUNTER);
	return soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, BB_PRM_SZ_SHORT, set);
}

T(test_counter_set_lives_and_dies)
{
	uint8_t in[BB_PRM_SZ_QUERY_Q_COUNTER_IN] = {0}, out[BB_PRM_SZ_QUERY_Q_COUNTER_OUT];
	struct soft_counters *counters;
	struct mlx5_obj *set;
	uint32_t id, i;
	uint64_t *each;

	assert_int_equal(alloc_set(env, out, &set), 0);
	id = bb_prm_get(out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID);
	assert_int_not_equal(id, 0);
	counters = env->dev->counters[id];
	each = (uint64_t *)counters;
	for (i = 0; i < sizeof(*counters) / sizeof(*each); i++)
		each[i] = 1000 + i;
	counters->rx_read = UINT64_C(1) << 32 | 5;

	env_op(in, BB_PRM_OP_QUERY_Q_COUNTER);
	bb_prm_set(in, BB_PRM_QUERY_Q_COUNTER_ID, id);
	memset(out, 0xee, sizeof(out));
	OK(soft_cmd_if.obj_query(set, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_RX_WRITE_REQUESTS), 1000);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_RX_READ_REQUESTS), 5);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_RX_ATOMIC_REQUESTS), 1002);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_OUT_OF_BUFFER), 1003);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_CQ_OVERFLOW), 1021);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_REQ_CQE_FLUSH_ERROR), 1023);
	/* Each counter is reported exactly once: the sum of the output is the sum of the set. */
	uint64_t sum = 0, want = 5;

	for (i = 0x10; i < sizeof(out); i += 4)
		sum += bb_prm_dword(out, (uint16_t)i);
	for (i = 0; i < sizeof(*counters) / sizeof(*each); i++)
		want += i == 1 ? 0 : 1000 + i;
	assert_int_equal(sum, want);

	/* Reads and clears. */
	bb_prm_set(in, BB_PRM_QUERY_Q_COUNTER_CLEAR, 1);
	OK(soft_cmd_if.obj_query(set, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_RX_WRITE_REQUESTS), 1000);
	OK(soft_cmd_if.obj_query(set, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_RX_WRITE_REQUESTS), 0);

	env_log(env);
	env_refused(env, "short", soft_cmd_if.obj_query(set, in, sizeof(in), out, 0xfc), out,
		    BB_PRM_STAT_BAD_OUTP_LEN, "QUERY_Q_COUNTER");
	in[0x18] |= 0x40; /* aggregate */
	env_refused(env, "aggregate", soft_cmd_if.obj_query(set, in, sizeof(in), out, sizeof(out)),
		    out, BB_PRM_STAT_BAD_PARAM, "QUERY_Q_COUNTER");
	in[0x18] = 0;
	in[0x08] = 0x80; /* other_vport */
	env_refused(env, "vport", soft_cmd_if.obj_query(set, in, sizeof(in), out, sizeof(out)), out,
		    BB_PRM_STAT_BAD_PARAM, "QUERY_Q_COUNTER");
	OK(soft_cmd_if.obj_destroy(set));
}

T(test_exhausted_counter_sets_are_refused)
{
	struct mlx5_obj *set[SOFT_MAX_COUNTER_SETS - 1], *more = NULL;
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_SHORT];
	uint32_t i;

	env_op(in, BB_PRM_OP_ALLOC_Q_COUNTER);
	in[15] = 1;
	env_refused(env, "reserved", soft_cmd_if.obj_create(env->ctx, in, 16, out, 16, &more), out,
		    BB_PRM_STAT_BAD_PARAM, "ALLOC_Q_COUNTER");
	for (i = 0; i < RTE_DIM(set); i++)
		assert_int_equal(alloc_set(env, out, &set[i]), 0);
	env_refused(env, "one more", alloc_set(env, out, &more), out, BB_PRM_STAT_NO_RES,
		    "ALLOC_Q_COUNTER");
	assert_null(more);
	for (i = 0; i < RTE_DIM(set); i++)
		OK(soft_cmd_if.obj_destroy(set[i]));
}

T(test_exhausted_cq_numbers_are_refused)
{
	struct soft_ids *ids = &env->dev->ctl->cq_ids;
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];
	size_t bytes = (ids->size + 63) / 64 * sizeof(uint64_t);
	struct census before = env_census(env);
	struct mlx5_obj *obj = NULL;
	void *keep = malloc(bytes);
	int ret;

	assert_non_null(keep);
	memcpy(keep, ids->used, bytes);
	memset(ids->used, 0xff, bytes);
	env_cq_in(env, in);
	ret = create_cq(env, in, sizeof(in), out, &obj);
	memcpy(ids->used, keep, bytes);
	free(keep);
	env_refused(env, "numbers", ret, out, BB_PRM_STAT_NO_RES, "CREATE_CQ");
	env_same("numbers", before, env_census(env));
	cq_legal(env, "numbers");
}

/*
 * QUERY_CQ passes the kernel with any valid handle of a CQ; the firmware refuses the unknown
 * number.
 */
T(test_query_of_an_unknown_cq_is_refused)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[0x100];

	env_op(in, 0x402);
	bb_prm_set(in, BB_PRM_DESTROY_CQ_CQN, env->cqn);
	env_log(env);
	env_refused(env, "QUERY_CQ", soft_cmd_if.obj_query(env->cq, in, 16, out, sizeof(out)), out,
		    BB_PRM_STAT_BAD_OP, "opcode");
	bb_prm_set(in, BB_PRM_DESTROY_CQ_CQN, env->cqn + 1);
	assert_int_equal(soft_cmd_if.obj_query(env->cq, in, 16, out, sizeof(out)), -EINVAL);
}

/*
 * A handle cannot ask for the destruction of a destroyed object; the firmware refuses it
 * nevertheless.
 */
T(test_unknown_numbers_are_refused_by_the_firmware)
{
	static const struct {
		int (*exec)(struct soft_cmd *cmd);
		uint16_t op;
		const char *name;
	} cmds[] = {
		{soft_cmd_destroy_cq, BB_PRM_OP_DESTROY_CQ, "DESTROY_CQ"},
		{soft_cmd_destroy_qp, BB_PRM_OP_DESTROY_QP, "DESTROY_QP"},
		{soft_cmd_query_qp, BB_PRM_OP_QUERY_QP, "QUERY_QP"},
		{soft_cmd_dealloc_q_counter, BB_PRM_OP_DEALLOC_Q_COUNTER, "DEALLOC_Q_COUNTER"},
		{soft_cmd_query_q_counter, BB_PRM_OP_QUERY_Q_COUNTER, "QUERY_Q_COUNTER"},
		{soft_cmd_modify_qp, BB_PRM_OP_2ERR_QP, "2ERR_QP"},
	};
	uint8_t in[BB_PRM_SZ_QUERY_Q_COUNTER_IN], out[BB_PRM_SZ_QUERY_QP_OUT];
	static const uint32_t numbers[] = {0, 0x7f, 0xffffff};
	size_t i, j;

	for (i = 0; i < RTE_DIM(cmds); i++) {
		for (j = 0; j < RTE_DIM(numbers); j++) {
			const struct soft_cmd_desc desc = {
				.op = cmds[i].op, .inlen = sizeof(in), .name = cmds[i].name};
			struct soft_cmd cmd = {.ctx = soft_ctx(env->ctx),
					       .dev = env->dev,
					       .desc = &desc,
					       .in = in,
					       .out = out,
					       .outlen = sizeof(out)};

			memset(in, 0, sizeof(in));
			env_op(in, cmds[i].op);
			if (cmds[i].op == BB_PRM_OP_DEALLOC_Q_COUNTER)
				bb_prm_set(in, BB_PRM_DEALLOC_Q_COUNTER_ID, numbers[j]);
			else if (cmds[i].op == BB_PRM_OP_QUERY_Q_COUNTER)
				bb_prm_set(in, BB_PRM_QUERY_Q_COUNTER_ID, numbers[j]);
			else
				bb_prm_set(in, BB_PRM_DESTROY_QP_QPN, numbers[j]);
			env_log(env);
			env_refused(env, cmds[i].name, cmds[i].exec(&cmd), out, BB_PRM_STAT_BAD_RES,
				    cmds[i].name);
		}
	}
}

TEST_MAIN(0)
