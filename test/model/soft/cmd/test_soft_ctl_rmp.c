/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * CREATE_RMP, MODIFY_RMP, QUERY_RMP, DESTROY_RMP. The mailboxes that mlx5_ib and UCX send are
 * accepted. Each wrong value is refused and changes nothing. The kernel's part follows devx.c.
 */
#include "soft_ctl_env.h"

#define RMPC   0x20
#define WQ     (RMPC + 0x30)
#define RMP_AT 24576
#define RMP_DB (16384 + 128)
#define LOG_SZ 4

static struct env env;
static struct mlx5_obj *rmp;
static uint32_t rmpn;

static void
rmp_in(uint8_t in[BB_PRM_SZ_RMP])
{
	memset(in, 0, BB_PRM_SZ_RMP);
	env_op(in, BB_PRM_OP_CREATE_RMP);
	bb_prm_set(in + RMPC, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in + WQ, BB_PRM_WQ_PD, env.pd->pdn);
	bb_prm_set(in + WQ, BB_PRM_WQ_LOG_STRIDE, 5);
	bb_prm_set(in + WQ, BB_PRM_WQ_LOG_SZ, LOG_SZ);
	bb_prm_set(in + WQ, BB_PRM_WQ_DBR_UMEM_ID, env.umem->id);
	bb_prm_set64(in + WQ, BB_PRM_WQ_DBR_ADDR, RMP_DB);
	bb_prm_set(in + WQ, BB_PRM_WQ_UMEM_ID, env.umem->id);
	bb_prm_set64(in + WQ, BB_PRM_WQ_UMEM_OFFSET, RMP_AT);
}

static int
create(const uint8_t *in, size_t len, uint8_t *out, struct mlx5_obj **obj)
{
	memset(out, 0, BB_PRM_SZ_SHORT);
	return soft_cmd_if.obj_create(env.ctx, in, len, out, BB_PRM_SZ_SHORT, obj);
}

static void
make(void)
{
	uint8_t in[BB_PRM_SZ_RMP], out[BB_PRM_SZ_SHORT];

	rmp_in(in);
	assert_int_equal(create(in, sizeof(in), out, &rmp), 0);
	rmpn = bb_prm_get(out, BB_PRM_CREATE_RMP_OUT_RMPN);
	assert_true(rmpn != 0);
}

static void
modify_in(uint8_t in[BB_PRM_SZ_RMP], uint32_t lwm)
{
	memset(in, 0, BB_PRM_SZ_RMP);
	env_op(in, BB_PRM_OP_MODIFY_RMP);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_RMPN, rmpn);
	bb_prm_set(in + 0x10, BB_PRM_RMP_BITMASK_LWM, 1);
	bb_prm_set(in + RMPC, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in + WQ, BB_PRM_WQ_LWM, lwm);
}

/* Runs QUERY_RMP; @out receives the whole output. */
static void
query(uint8_t out[BB_PRM_SZ_RMP])
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0};

	env_op(in, BB_PRM_OP_QUERY_RMP);
	bb_prm_set(in, BB_PRM_QUERY_RMP_RMPN, rmpn);
	OK(soft_cmd_if.obj_query(rmp, in, sizeof(in), out, BB_PRM_SZ_RMP));
}

static int
setup(void **state)
{
	(void)state;
	env_open(&env, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (rmp != NULL)
		OK(soft_cmd_if.obj_destroy(rmp));
	rmp = NULL;
	env_close(&env);
	return 0;
}

#define R(f, v)                                                                                    \
	{                                                                                          \
		BB_PRM_##f, RMPC, v                                                                \
	}
#define W(f, v)                                                                                    \
	{                                                                                          \
		BB_PRM_##f, WQ, v                                                                  \
	}

#define RMP_TEST(name) TEST_WITH(setup, teardown, name)

RMP_TEST(test_bad_create_rmp_is_refused)
{
	static const struct {
		const char *what;
		uint32_t status;
		struct edit edit[2];
	} cases[] = {
		{"reset", BB_PRM_STAT_BAD_PARAM, {R(RMPC_STATE, 0)}},
		{"error", BB_PRM_STAT_BAD_PARAM, {R(RMPC_STATE, 3)}},
		{"striding", BB_PRM_STAT_BAD_PARAM, {W(WQ_TYPE, 2)}},
		{"cyclic striding", BB_PRM_STAT_BAD_PARAM, {W(WQ_TYPE, 3)}},
		{"list without heads", BB_PRM_STAT_BAD_PARAM, {R(RMPC_BASIC_CYCLIC, 1)}},
		{"too many WQEs", BB_PRM_STAT_BAD_PARAM, {W(WQ_LOG_SZ, 16)}},
		{"stride of a head alone", BB_PRM_STAT_BAD_PARAM, {W(WQ_LOG_STRIDE, 4)}},
		{"stride of 1024", BB_PRM_STAT_BAD_PARAM, {W(WQ_LOG_STRIDE, 10)}},
		{"cyclic stride of 8",
		 BB_PRM_STAT_BAD_PARAM,
		 {W(WQ_LOG_STRIDE, 3), R(RMPC_BASIC_CYCLIC, 1)}},
		{"limit", BB_PRM_STAT_BAD_PARAM, {W(WQ_LWM, 17)}},
		{"PD", BB_PRM_STAT_BAD_RES, {W(WQ_PD, 0xffff)}},
		{"umem", BB_PRM_STAT_BAD_RES, {W(WQ_UMEM_ID, 1)}},
		{"record's umem", BB_PRM_STAT_BAD_RES, {W(WQ_DBR_UMEM_ID, 1)}},
		{"outside the umem", BB_PRM_STAT_BAD_PARAM, {W(WQ_UMEM_OFFSET, ENV_BYTES - 448)}},
		{"offset", BB_PRM_STAT_BAD_PARAM, {W(WQ_UMEM_OFFSET, RMP_AT + 32)}},
		{"far offset", BB_PRM_STAT_BAD_PARAM, {W(WQ_UMEM_OFFSET, ~63ull)}},
		{"record outside", BB_PRM_STAT_BAD_PARAM, {W(WQ_DBR_ADDR, ENV_BYTES)}},
		{"record not aligned", BB_PRM_STAT_BAD_PARAM, {W(WQ_DBR_ADDR, RMP_DB + 4)}},
		{"page size", BB_PRM_STAT_BAD_PARAM, {W(WQ_LOG_PG_SZ, 1)}},
		{"signature", BB_PRM_STAT_BAD_PARAM, {{{0, 4, 1}, WQ, 1}}},
		{"page offset", BB_PRM_STAT_BAD_PARAM, {{{4, 11, 5}, WQ, 1}}},
		{"UAR page", BB_PRM_STAT_BAD_PARAM, {{{0xc, 8, 24}, WQ, 1}}},
		{"op_mod", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_CMD_OP_MOD, 0, 1}}},
	};
	uint8_t in[BB_PRM_SZ_RMP], out[BB_PRM_SZ_SHORT];
	struct census before = env_census(&env);
	struct mlx5_obj *obj = NULL;
	size_t i, k;

	for (i = 0; i < RTE_DIM(cases); i++) {
		rmp_in(in);
		for (k = 0; k < 2; k++)
			if (cases[i].edit[k].f.width != 0)
				env_set(in, cases[i].edit[k]);
		env_log(&env);
		env_refused(&env, cases[i].what, create(in, sizeof(in), out, &obj), out,
			    cases[i].status, "CREATE_RMP");
		env_same(cases[i].what, before, env_census(&env));
	}
	assert_null(obj);
	/* Lengths that are too short or too long. */
	rmp_in(in);
	env_log(&env);
	env_refused(&env, "short", create(in, sizeof(in) - 8, out, &obj), out,
		    BB_PRM_STAT_BAD_INP_LEN, "CREATE_RMP");
	assert_null(obj);
}

/*
 * wq.page_offset has 5 bits, cqc.page_offset 6. So an RMP can begin only in the first half of a
 * umem page, and a CQ anywhere.
 */
RMP_TEST(test_rmp_in_the_second_half_of_a_umem_page_is_refused)
{
	static const struct {
		uint64_t at;
		bool refused;
	} cases[] = {
		{0, false},
		{31 * 512, false},
		{32 * 512, true},
		{63 * 512, true},
		{64 * 512, false},
		{(64 + 31) * 512, false},
		{(64 + 32) * 512, true},
	};
	uint8_t in[BB_PRM_SZ_RMP], cq_in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];
	struct soft_umem *umem = (struct soft_umem *)env.umem;
	const uint64_t pgsz = umem->pgsz;
	struct mlx5_obj *obj = NULL;

	umem->pgsz = UINT64_C(64) * 512;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		rmp_in(in);
		bb_prm_set64(in + WQ, BB_PRM_WQ_UMEM_OFFSET, cases[i].at);
		env_log(&env);
		if (cases[i].refused) {
			assert_int_equal(create(in, sizeof(in), out, &obj), -EREMOTEIO);
			assert_int_equal(bb_prm_get(out, BB_PRM_CMD_STATUS), BB_PRM_STAT_BAD_PARAM);
			assert_non_null(strstr(env_log(&env), "page_offset has 5 bits (0 to 31)"));
		} else {
			OK(create(in, sizeof(in), out, &obj));
			OK(soft_cmd_if.obj_destroy(obj));
			obj = NULL;
		}
		env_cq_in(&env, cq_in);
		bb_prm_set64(cq_in, BB_PRM_CREATE_CQ_UMEM_OFFSET, cases[i].at);
		OK(create(cq_in, sizeof(cq_in), out, &obj));
		OK(soft_cmd_if.obj_destroy(obj));
		obj = NULL;
	}
	umem->pgsz = pgsz;
}

/* Limits of accepted values: both kinds, with and without a head. */
RMP_TEST(test_limits_of_create_rmp_are_accepted)
{
	static const struct edit kinds[][3] = {
		{W(WQ_TYPE, 0)},
		{W(WQ_TYPE, 1)},
		{W(WQ_TYPE, 1), R(RMPC_BASIC_CYCLIC, 1), W(WQ_LOG_STRIDE, 4)},
		{W(WQ_LOG_STRIDE, 9), W(WQ_LOG_SZ, 3)},
		{W(WQ_LOG_SZ, 0), W(WQ_LOG_STRIDE, 6)},
		{W(WQ_LWM, 16)},
		/* The kernel sets these two bits; a user who sets them, too, is accepted. */
		{W(WQ_UMEM_VALID, 1), W(WQ_DBR_UMEM_VALID, 1)},
	};
	uint8_t in[BB_PRM_SZ_RMP], out[BB_PRM_SZ_SHORT], got[BB_PRM_SZ_RMP];
	struct census before = env_census(&env);
	size_t i, k;

	for (i = 0; i < RTE_DIM(kinds); i++) {
		rmp_in(in);
		for (k = 0; k < 3; k++)
			if (kinds[i][k].f.width != 0)
				env_set(in, kinds[i][k]);
		assert_int_equal(create(in, sizeof(in), out, &rmp), 0);
		rmpn = bb_prm_get(out, BB_PRM_CREATE_RMP_OUT_RMPN);
		/* As created, with the kernel's bits. */
		bb_prm_set(in + WQ, BB_PRM_WQ_UMEM_VALID, 1);
		bb_prm_set(in + WQ, BB_PRM_WQ_DBR_UMEM_VALID, 1);
		query(got);
		assert_memory_equal(got + RMPC, in + RMPC, SOFT_RMPC_BYTES);
		OK(soft_cmd_if.obj_destroy(rmp));
		rmp = NULL;
		env_same("create and destroy", before, env_census(&env));
	}
}

RMP_TEST(test_modify_rmp_sets_the_limit)
{
	static const struct {
		const char *what;
		struct edit edit;
	} cases[] = {
		{"rmp_state", {BB_PRM_MODIFY_RMP_STATE, 0, 0}},
		{"rmp_state ERR", {BB_PRM_MODIFY_RMP_STATE, 0, 3}},
		{"state", R(RMPC_STATE, 0)},
		{"state ERR", R(RMPC_STATE, 3)},
		{"limit", W(WQ_LWM, 17)},
		{"PD", W(WQ_PD, 1)},
		{"bitmask", {{0, 0, 32}, 0x10, 1}},
	};
	uint8_t in[BB_PRM_SZ_RMP], out[BB_PRM_SZ_SHORT], got[BB_PRM_SZ_RMP];
	size_t i;

	make();
	modify_in(in, 9);
	OK(soft_cmd_if.obj_modify(rmp, in, sizeof(in), out, sizeof(out)));
	query(got);
	assert_int_equal(bb_prm_get(got + WQ, BB_PRM_WQ_LWM), 9);
	for (i = 0; i < RTE_DIM(cases); i++) {
		modify_in(in, 5);
		env_set(in, cases[i].edit);
		env_log(&env);
		env_refused(&env, cases[i].what,
			    soft_cmd_if.obj_modify(rmp, in, sizeof(in), out, sizeof(out)), out,
			    BB_PRM_STAT_BAD_PARAM, "MODIFY_RMP");
		query(got);
		assert_int_equal(bb_prm_get(got + WQ, BB_PRM_WQ_LWM), 9);
	}
	/* Without its bit the limit is ignored. */
	modify_in(in, 5);
	bb_prm_set(in + 0x10, BB_PRM_RMP_BITMASK_LWM, 0);
	OK(soft_cmd_if.obj_modify(rmp, in, sizeof(in), out, sizeof(out)));
	query(got);
	assert_int_equal(bb_prm_get(got + WQ, BB_PRM_WQ_LWM), 9);
	/* The doorbell record, as software wrote it. */
	env.mem[RMP_DB + 3] = 7;
	query(got);
	assert_int_equal(bb_prm_get(got + WQ, BB_PRM_WQ_SW_COUNTER), 7);
	assert_int_equal(bb_prm_get(got + WQ, BB_PRM_WQ_HW_COUNTER), 0);
	assert_int_equal(bb_prm_get(got + RMPC, BB_PRM_RMPC_STATE), BB_PRM_RMPC_RDY);
	env.mem[RMP_DB + 3] = 0;
}

/*
 * devx.c: a handle must match the number in the mailbox; ARM_RQ is not allowed with an RMP's
 * handle.
 */
RMP_TEST(test_handle_of_an_rmp_is_checked)
{
	uint8_t in[BB_PRM_SZ_RMP], out[BB_PRM_SZ_RMP];
	struct mlx5_obj *first, *obj = NULL;
	uint32_t first_n;

	make();
	first = rmp;
	first_n = rmpn;
	make();
	modify_in(in, 5);
	assert_int_equal(soft_cmd_if.obj_modify(first, in, sizeof(in), out, sizeof(out)), -EINVAL);
	assert_int_equal(soft_cmd_if.obj_modify(env.cq, in, sizeof(in), out, sizeof(out)), -EINVAL);
	memset(in, 0, sizeof(in));
	env_op(in, 0x81c); /* ARM_RQ */
	bb_prm_set(in, BB_PRM_MODIFY_RMP_RMPN, rmpn);
	assert_int_equal(soft_cmd_if.obj_modify(rmp, in, 16, out, sizeof(out)), -EINVAL);
	env_op(in, BB_PRM_OP_DESTROY_RMP);
	assert_int_equal(soft_cmd_if.obj_modify(rmp, in, 16, out, sizeof(out)), -EINVAL);
	assert_int_equal(soft_cmd_if.general(env.ctx, in, 16, out, sizeof(out)), -EINVAL);
	assert_int_equal(soft_cmd_if.obj_create(env.ctx, in, 16, out, sizeof(out), &obj), -EINVAL);
	env_op(in, BB_PRM_OP_QUERY_RMP);
	assert_int_equal(soft_cmd_if.obj_query(first, in, 16, out, sizeof(out)), -EINVAL);
	env_log(&env);
	env_refused(&env, "short answer", soft_cmd_if.obj_query(rmp, in, 16, out, 64), out,
		    BB_PRM_STAT_BAD_OUTP_LEN, "QUERY_RMP");
	/* The kernel sets the uid. */
	modify_in(in, 5);
	bb_prm_set(in, BB_PRM_CMD_UID, 1);
	assert_int_equal(soft_cmd_if.obj_modify(rmp, in, sizeof(in), out, sizeof(out)), -EINVAL);
	OK(soft_cmd_if.obj_destroy(first));
	assert_true(first_n != rmpn);
}

/* A QP on an RMP, and which object keeps which from being destroyed. */
RMP_TEST(test_rmp_and_its_qps_hold_each_other)
{
	static const struct {
		const char *what;
		uint32_t status;
		struct edit edit;
	} cases[] = {
		{"another RMP", BB_PRM_STAT_BAD_RES, {BB_PRM_QPC_SRQN_RMPN_XRQN, ENV_QPC, 0x7fff}},
		{"no such number",
		 BB_PRM_STAT_BAD_RES,
		 {BB_PRM_QPC_SRQN_RMPN_XRQN, ENV_QPC, 0xffffff}},
		{"RQ size", BB_PRM_STAT_BAD_PARAM, {BB_PRM_QPC_LOG_RQ_SIZE, ENV_QPC, 3}},
		{"RQ stride", BB_PRM_STAT_BAD_PARAM, {BB_PRM_QPC_LOG_RQ_STRIDE, ENV_QPC, 1}},
		{"rq_type 2", BB_PRM_STAT_BAD_PARAM, {BB_PRM_QPC_RQ_TYPE, ENV_QPC, 2}},
		{"none, with a number", BB_PRM_STAT_BAD_PARAM, {BB_PRM_QPC_RQ_TYPE, ENV_QPC, 3}},
		{"cs_req for 128 bytes", BB_PRM_STAT_BAD_PARAM, {BB_PRM_QPC_CS_REQ, ENV_QPC, 0x22}},
		{"cs_res for 128 bytes", BB_PRM_STAT_BAD_PARAM, {BB_PRM_QPC_CS_RES, ENV_QPC, 2}},
		{"cs_req of the other side",
		 BB_PRM_STAT_BAD_PARAM,
		 {BB_PRM_QPC_CS_REQ, ENV_QPC, 1}},
		{"cs_res of the other side",
		 BB_PRM_STAT_BAD_PARAM,
		 {BB_PRM_QPC_CS_RES, ENV_QPC, 0x11}},
	};
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], good[BB_PRM_SZ_CREATE_QP_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj = NULL;
	struct census before;
	size_t i;

	make();
	before = env_census(&env);
	env_qp_in(&env, good);
	bb_prm_set(good + ENV_QPC, BB_PRM_QPC_LOG_RQ_SIZE, 0);
	bb_prm_set(good + ENV_QPC, BB_PRM_QPC_LOG_RQ_STRIDE, 0);
	bb_prm_set(good + ENV_QPC, BB_PRM_QPC_RQ_TYPE, BB_PRM_RQ_TYPE_SRQ);
	bb_prm_set(good + ENV_QPC, BB_PRM_QPC_SRQN_RMPN_XRQN, rmpn);
	bb_prm_set(good + ENV_QPC, BB_PRM_QPC_CS_REQ, 0x11);
	bb_prm_set(good + ENV_QPC, BB_PRM_QPC_CS_RES, 0x1);
	for (i = 0; i < RTE_DIM(cases); i++) {
		memcpy(in, good, sizeof(in));
		env_set(in, cases[i].edit);
		env_log(&env);
		env_refused(&env, cases[i].what, create(in, sizeof(in), out, &obj), out,
			    cases[i].status, "CREATE_QP");
		env_same(cases[i].what, before, env_census(&env));
	}
	assert_int_equal(create(good, sizeof(good), out, &env.qp), 0);
	env.qpn = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
	env_log(&env);
	assert_int_equal(soft_cmd_if.obj_destroy(rmp), -EBUSY);
	assert_non_null(strstr(env_log(&env), "DESTROY_RMP rejected: RES_BUSY"));
	assert_int_equal(soft_cmd_if.pd_free(env.ctx, env.pd), -EBUSY);
	env_qp_gone(&env);
	env_same("QP made and destroyed", before, env_census(&env));
	assert_int_equal(soft_cmd_if.pd_free(env.ctx, env.pd), -EBUSY);
	assert_int_equal(soft_cmd_if.umem_dereg(env.ctx, env.umem), -EBUSY);
}

TEST_MAIN(0)
