/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CREATE_QP, DESTROY_QP and QUERY_QP through raw mailboxes. */
#include "soft_ctl_env.h"

/* One or two spoiled fields. */
struct bad {
	const char *what;
	uint32_t status;
	struct edit edit[3];
};

#define QPC(name, v)                                                                               \
	{                                                                                          \
		BB_PRM_QPC_##name, ENV_QPC, v                                                      \
	}
#define TOP(name, v)                                                                               \
	{                                                                                          \
		BB_PRM_##name, 0, v                                                                \
	}
#define RAW(byte, bit, width, v)                                                                   \
	{                                                                                          \
		BB_PRM_F(byte, bit, width), 0, v                                                   \
	}

static const struct bad bad_create[] = {
	{"XRC", BB_PRM_STAT_BAD_PARAM, {QPC(ST, 3)}},
	{"DCI", BB_PRM_STAT_BAD_PARAM, {QPC(ST, 5)}},
	{"DCI", BB_PRM_STAT_BAD_PARAM, {QPC(ST, 5)}},
	{"path migration armed", BB_PRM_STAT_BAD_PARAM, {QPC(PM_STATE, 0)}},
	{"path migration rearm", BB_PRM_STAT_BAD_PARAM, {QPC(PM_STATE, 1)}},
	{"real time stamps", BB_PRM_STAT_BAD_PARAM, {QPC(TS_FORMAT, 2)}},
	{"no PD", BB_PRM_STAT_BAD_RES, {QPC(PD, 0)}},
	{"PD never given", BB_PRM_STAT_BAD_RES, {QPC(PD, 0x1fff)}},
	{"PD beyond the table", BB_PRM_STAT_BAD_RES, {QPC(PD, 0xffffff)}},
	{"no send CQ", BB_PRM_STAT_BAD_RES, {QPC(CQN_SND, 0)}},
	{"send CQ beyond the table", BB_PRM_STAT_BAD_RES, {QPC(CQN_SND, 0xffffff)}},
	{"no receive CQ", BB_PRM_STAT_BAD_RES, {QPC(CQN_RCV, 0)}},
	{"no UAR", BB_PRM_STAT_BAD_RES, {QPC(UAR_PAGE, 0)}},
	{"UAR beyond the table", BB_PRM_STAT_BAD_RES, {QPC(UAR_PAGE, 0xffffff)}},
	{"no ring umem", BB_PRM_STAT_BAD_RES, {TOP(CREATE_QP_WQ_UMEM_ID, 0)}},
	{"ring umem beyond the table",
	 BB_PRM_STAT_BAD_RES,
	 {TOP(CREATE_QP_WQ_UMEM_ID, UINT32_MAX)}},
	{"no record umem", BB_PRM_STAT_BAD_RES, {QPC(DBR_UMEM_ID, 0)}},
	{"counter set that is not there", BB_PRM_STAT_BAD_RES, {QPC(COUNTER_SET_ID, 9)}},
	{"SRQ that does not exist", BB_PRM_STAT_BAD_RES, {QPC(RQ_TYPE, 1)}},
	{"unknown RQ type", BB_PRM_STAT_BAD_PARAM, {QPC(RQ_TYPE, 2)}},
	{"SRQ number with an own RQ", BB_PRM_STAT_BAD_PARAM, {QPC(SRQN_RMPN_XRQN, 7)}},
	{"no RQ but a size", BB_PRM_STAT_BAD_PARAM, {QPC(RQ_TYPE, 3), QPC(LOG_RQ_STRIDE, 0)}},
	{"no RQ but a stride", BB_PRM_STAT_BAD_PARAM, {QPC(RQ_TYPE, 3), QPC(LOG_RQ_SIZE, 0)}},
	{"no SQ but a size", BB_PRM_STAT_BAD_PARAM, {QPC(NO_SQ, 1)}},
	{"receive WQEs too large", BB_PRM_STAT_BAD_PARAM, {QPC(LOG_RQ_STRIDE, 6)}},
	{"RQ of 16 bytes", BB_PRM_STAT_BAD_PARAM, {QPC(LOG_RQ_SIZE, 0), QPC(LOG_RQ_STRIDE, 0)}},
	{"RQ of 32 bytes", BB_PRM_STAT_BAD_PARAM, {QPC(LOG_RQ_SIZE, 1), QPC(LOG_RQ_STRIDE, 0)}},
	{"pages above the umem's", BB_PRM_STAT_BAD_PARAM, {QPC(LOG_PAGE_SIZE, 1)}},
	{"largest pages", BB_PRM_STAT_BAD_PARAM, {QPC(LOG_PAGE_SIZE, 31)}},
	{"ring off the block",
	 BB_PRM_STAT_BAD_PARAM,
	 {TOP(CREATE_QP_WQ_UMEM_OFFSET, ENV_QP_AT + 32)}},
	{"ring past the umem", BB_PRM_STAT_BAD_PARAM, {TOP(CREATE_QP_WQ_UMEM_OFFSET, ENV_BYTES)}},
	{"ring's end past the umem",
	 BB_PRM_STAT_BAD_PARAM,
	 {TOP(CREATE_QP_WQ_UMEM_OFFSET, ENV_BYTES - 1024 - 448)}},
	{"ring's end past 2^64",
	 BB_PRM_STAT_BAD_PARAM,
	 {TOP(CREATE_QP_WQ_UMEM_OFFSET, UINT64_C(0) - 64)}},
	{"SQ larger than the umem",
	 BB_PRM_STAT_BAD_PARAM,
	 {QPC(LOG_SQ_SIZE, 15), TOP(CREATE_QP_WQ_UMEM_OFFSET, 0)}},
	{"record off 8 bytes", BB_PRM_STAT_BAD_PARAM, {QPC(DBR_ADDR, ENV_QP_DB + 4)}},
	{"record past the umem", BB_PRM_STAT_BAD_PARAM, {QPC(DBR_ADDR, ENV_BYTES)}},
	{"record past 2^64", BB_PRM_STAT_BAD_PARAM, {QPC(DBR_ADDR, UINT64_C(0) - 8)}},
	{"op_mod", BB_PRM_STAT_BAD_PARAM, {TOP(CMD_OP_MOD, 1)}},
	{"a QP number asked for", BB_PRM_STAT_BAD_PARAM, {TOP(CREATE_QP_INPUT_QPN, 0x123)}},
	{"opt_param_mask", BB_PRM_STAT_BAD_PARAM, {TOP(CREATE_QP_OPT_PARAM_MASK, 2)}},
	{"state", BB_PRM_STAT_BAD_PARAM, {QPC(STATE, 3)}},
	{"mtu", BB_PRM_STAT_BAD_PARAM, {QPC(MTU, 3)}},
	{"remote QP", BB_PRM_STAT_BAD_PARAM, {QPC(REMOTE_QPN, 3)}},
	{"rights", BB_PRM_STAT_BAD_PARAM, {QPC(RWE, 1)}},
	{"page_offset", BB_PRM_STAT_BAD_PARAM, {QPC(PAGE_OFFSET, 1)}},
	{"scatter to CQE", BB_PRM_STAT_BAD_PARAM, {QPC(CS_REQ, 0x22)}},
	{"scatter to CQE, responder", BB_PRM_STAT_BAD_PARAM, {QPC(CS_RES, 2)}},
	{"scatter to CQE, UC's requests",
	 BB_PRM_STAT_BAD_PARAM,
	 {QPC(ST, BB_PRM_QP_ST_UC), QPC(CS_REQ, 0x11)}},
	{"scatter to CQE, UD's requests",
	 BB_PRM_STAT_BAD_PARAM,
	 {QPC(ST, BB_PRM_QP_ST_UD), QPC(CS_REQ, 0x11)}},
	{"scatter to CQE, UD's receives",
	 BB_PRM_STAT_BAD_PARAM,
	 {QPC(ST, BB_PRM_QP_ST_UD), QPC(CS_RES, 1)}},
	{"reserved lkey", BB_PRM_STAT_BAD_PARAM, {QPC(RLKY, 1)}},
	{"WQE signature", BB_PRM_STAT_BAD_PARAM, {RAW(ENV_QPC + 4, 0, 1, 1)}},
	{"q_key", BB_PRM_STAT_BAD_PARAM, {QPC(Q_KEY, 1)}},
	{"reserved bit of the header", BB_PRM_STAT_BAD_PARAM, {RAW(0x0c, 31, 1, 1)}},
	{"last reserved bit", BB_PRM_STAT_BAD_PARAM, {RAW(0x10c, 31, 1, 1)}},
	{"secondary path", BB_PRM_STAT_BAD_PARAM, {RAW(ENV_QPC + 0x44, 31, 1, 1)}},
};

static int
create(struct env *env, const uint8_t *in, size_t inlen, size_t outlen, uint8_t *out,
       struct mlx5_obj **obj)
{
	return soft_cmd_if.obj_create(env->ctx, in, inlen, out, outlen, obj);
}

/* Checks that the legal mailbox still succeeds, and destroys its object. */
static void
create_legal(struct env *env, const char *what)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj;

	env_qp_in(env, in);
	if (create(env, in, sizeof(in), sizeof(out), out, &obj) != 0)
		fail_msg("after %s: a legal CREATE_QP is refused: %s", what, env_log(env));
	OK(soft_cmd_if.obj_destroy(obj));
}

T(test_bad_create_qp_is_refused)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], out[BB_PRM_SZ_SHORT];
	struct census before = env_census(env);
	struct mlx5_obj *obj;
	size_t i, j;
	int ret;

	for (i = 0; i < RTE_DIM(bad_create); i++) {
		const struct bad *bad = &bad_create[i];

		env_qp_in(env, in);
		for (j = 0; j < RTE_DIM(bad->edit) && bad->edit[j].f.width != 0; j++)
			env_set(in, bad->edit[j]);
		obj = NULL;
		ret = create(env, in, sizeof(in), sizeof(out), out, &obj);
		env_refused(env, bad->what, ret, out, bad->status, "CREATE_QP");
		assert_null(obj);
		env_same(bad->what, before, env_census(env));
		create_legal(env, bad->what);
	}
}

T(test_create_qp_of_another_length_is_refused)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN + 64] = {0}, out[BB_PRM_SZ_SHORT];
	struct census before = env_census(env);
	static const size_t lens[] = {16, 0x18, 0x10c, 0x118, sizeof(in)};
	struct mlx5_obj *obj = NULL;
	size_t i;
	int ret;

	env_qp_in(env, in);
	for (i = 0; i < RTE_DIM(lens); i++) {
		ret = create(env, in, lens[i], sizeof(out), out, &obj);
		env_refused(env, "input length", ret, out, BB_PRM_STAT_BAD_INP_LEN, "CREATE_QP");
	}
	/* Shorter than a header: the kernel refuses, and the output is unchanged. */
	assert_int_equal(create(env, in, 15, sizeof(out), out, &obj), -EINVAL);
	assert_int_equal(create(env, in, 0, sizeof(out), out, &obj), -EINVAL);
	assert_int_equal(create(env, in, BB_PRM_SZ_CREATE_QP_IN, 15, out, &obj), -EINVAL);
	assert_null(obj);
	env_same("lengths", before, env_census(env));
}

/* Numbers of another context's objects are refused as unknown. */
T(test_create_other_context)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], cq_in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj, *cq;
	struct mlx5_umem *umem;
	struct mlx5_uar *uar;
	struct mlx5_ctx *ctx;
	struct mlx5_pd *pd;
	struct env other = *env;
	size_t i;

	OK(soft_cmd_if.open("soft0", NULL, &ctx));
	OK(soft_cmd_if.pd_alloc(ctx, &pd));
	OK(soft_cmd_if.uar_alloc(ctx, MLX5_UAR_BF, &uar));
	OK(soft_cmd_if.umem_reg(ctx, env->mem, ENV_BYTES, BB_ACCESS_LOCAL_WRITE, 4096, &umem));
	other.ctx = ctx;
	other.uar = uar;
	other.umem = umem;
	env_cq_in(&other, cq_in);
	OK(soft_cmd_if.obj_create(ctx, cq_in, sizeof(cq_in), out, sizeof(out), &cq));
	const struct edit edits[] = {
		QPC(PD, pd->pdn),
		QPC(UAR_PAGE, uar->page_id),
		QPC(DBR_UMEM_ID, umem->id),
		TOP(CREATE_QP_WQ_UMEM_ID, umem->id),
		QPC(CQN_SND, bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN)),
		QPC(CQN_RCV, bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN)),
	};

	for (i = 0; i < RTE_DIM(edits); i++) {
		env_qp_in(env, in);
		env_set(in, edits[i]);
		env_refused(env, "another context's", create(env, in, sizeof(in), 16, out, &obj),
			    out, BB_PRM_STAT_BAD_RES, "CREATE_QP");
	}
	/* Handles are checked, too. */
	assert_int_equal(soft_cmd_if.umem_dereg(env->ctx, umem), -EINVAL);
	assert_int_equal(soft_cmd_if.uar_free(env->ctx, uar), -EINVAL);
	assert_int_equal(soft_cmd_if.pd_free(env->ctx, pd), -EINVAL);
	/* A context cannot be closed while it has objects. */
	assert_int_equal(soft_cmd_if.close(ctx), -EBUSY);
	OK(soft_cmd_if.obj_destroy(cq));
	assert_int_equal(soft_cmd_if.close(ctx), -EBUSY);
	OK(soft_cmd_if.umem_dereg(ctx, umem));
	assert_int_equal(soft_cmd_if.close(ctx), -EBUSY);
	OK(soft_cmd_if.uar_free(ctx, uar));
	assert_int_equal(soft_cmd_if.close(ctx), -EBUSY);
	OK(soft_cmd_if.pd_free(ctx, pd));
	OK(soft_cmd_if.close(ctx));
}

T(test_create_qp_sets_up_the_data_path)
{
	const struct soft_qp *qp;

	env_qp_to(env, BB_PRM_QP_RST);
	qp = env->dev->qps[env->qpn];
	assert_ptr_equal(qp->rq, env->mem + ENV_QP_AT);
	assert_int_equal(qp->log_rq, ENV_RQ_LOG);
	assert_int_equal(qp->log_rq_stride, 6);
	assert_ptr_equal(qp->sq, env->mem + ENV_QP_AT + (64 << ENV_RQ_LOG));
	assert_int_equal(qp->log_sq, ENV_SQ_LOG);
	assert_ptr_equal(qp->dbrec, env->mem + ENV_QP_DB);
	assert_int_equal(qp->user_index, 0xabcdef);
	assert_int_equal(qp->pdn, env->pd->pdn);
	assert_int_equal(qp->uar->id, env->uar->page_id);
	assert_int_equal(qp->scq->cqn, env->cqn);
	assert_true(qp->has_sq && qp->has_rq);
	assert_int_equal(qp->state, BB_PRM_QP_RST);
}

/* The largest ring that fits, no RQ, no SQ. */
T(test_largest_and_missing_rings_are_accepted)
{
	static const struct bad good[] = {
		{"ring at the end", 0, {TOP(CREATE_QP_WQ_UMEM_OFFSET, ENV_BYTES - 512 - 1024)}},
		{"record at the end", 0, {QPC(DBR_ADDR, ENV_BYTES - 8)}},
		{"no RQ", 0, {QPC(RQ_TYPE, 3), QPC(LOG_RQ_SIZE, 0), QPC(LOG_RQ_STRIDE, 0)}},
		{"no SQ", 0, {QPC(NO_SQ, 1), QPC(LOG_SQ_SIZE, 0)}},
		{"one block", 0, {QPC(LOG_SQ_SIZE, 0)}},
		{"RQ of 64 bytes", 0, {QPC(LOG_RQ_SIZE, 0)}},
		{"RQ of 4 times 16 bytes", 0, {QPC(LOG_RQ_SIZE, 2), QPC(LOG_RQ_STRIDE, 0)}},
		{"largest receive WQEs", 0, {QPC(LOG_RQ_SIZE, 1), QPC(LOG_RQ_STRIDE, 5)}},
		{"records in a umem without LOCAL_WRITE", 0, {QPC(TS_FORMAT, 1)}},
	};
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], out[BB_PRM_SZ_SHORT];
	struct census before = env_census(env);
	struct mlx5_obj *obj;
	size_t i, j;

	for (i = 0; i < RTE_DIM(good); i++) {
		env_qp_in(env, in);
		for (j = 0; j < 3 && good[i].edit[j].f.width != 0; j++)
			env_set(in, good[i].edit[j]);
		if (i == RTE_DIM(good) - 1) {
			bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_ID, env->ro_umem->id);
			bb_prm_set(in + ENV_QPC, BB_PRM_QPC_DBR_UMEM_ID, env->ro_umem->id);
		}
		if (create(env, in, sizeof(in), sizeof(out), out, &obj) != 0)
			fail_msg("%s: refused: %s", good[i].what, env_log(env));
		OK(soft_cmd_if.obj_destroy(obj));
		env_same(good[i].what, before, env_census(env));
	}
}

/* A device with real-time timestamps refuses the free-running clock, which 0 asks for. */
TEST(test_real_time_device_refuses_the_free_clock)
{
	static const bool good[] = {false, true, true, false};
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj;
	struct env env;
	uint32_t ts;

	env_open(&env, "no_clock");
	for (ts = 0; ts < RTE_DIM(good); ts++) {
		env_qp_in(&env, in);
		bb_prm_set(in + ENV_QPC, BB_PRM_QPC_TS_FORMAT, ts);
		if (!good[ts]) {
			env_log(&env);
			env_refused(&env, "ts_format",
				    create(&env, in, sizeof(in), sizeof(out), out, &obj), out,
				    BB_PRM_STAT_BAD_PARAM, "CREATE_QP");
			continue;
		}
		assert_int_equal(create(&env, in, sizeof(in), sizeof(out), out, &obj), 0);
		OK(soft_cmd_if.obj_destroy(obj));
	}
	env_close(&env);
}

/*
 * 1000 QPs that are created one after another have 1000 different numbers, which do not count up.
 */
T(test_numbers_do_not_count_up_and_rest)
{
	uint8_t *used = calloc(1u << SOFT_LOG_MAX_QP, 1);
	uint32_t last = 0, i, next = 0;

	assert_non_null(used);
	for (i = 0; i < 1000; i++) {
		env_qp_to(env, BB_PRM_QP_RST);
		assert_in_range(env->qpn, 0x100, (1u << SOFT_LOG_MAX_QP) - 1);
		assert_int_equal(used[env->qpn], 0);
		used[env->qpn] = 1;
		/* One in 130,000 does by chance. */
		next += env->qpn == last + 1;
		last = env->qpn;
		env_qp_gone(env);
	}
	assert_in_range(next, 0, 10);
	free(used);
}

T(test_exhausted_qp_numbers_are_refused)
{
	struct soft_draw *draw = &env->dev->ctl->qp_draw;
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], out[BB_PRM_SZ_SHORT];
	struct census before = env_census(env);
	uint32_t keep = draw->free;
	struct mlx5_obj *obj;
	int ret;

	draw->free = 0;
	env_qp_in(env, in);
	ret = create(env, in, sizeof(in), sizeof(out), out, &obj);
	draw->free = keep;
	env_refused(env, "numbers", ret, out, BB_PRM_STAT_NO_RES, "CREATE_QP");
	env_same("numbers", before, env_census(env));
	create_legal(env, "numbers");
}

T(test_object_in_use_is_not_destroyed)
{
	struct census before;

	env_qp_to(env, BB_PRM_QP_RST);
	before = env_census(env);
	env_log(env);
	/* The kernel returns the errno of RES_BUSY. */
	assert_int_equal(soft_cmd_if.obj_destroy(env->cq), -EBUSY);
	assert_non_null(strstr(env_log(env), "DESTROY_CQ rejected: RES_BUSY"));
	assert_int_equal(soft_cmd_if.umem_dereg(env->ctx, env->umem), -EBUSY);
	assert_non_null(strstr(env_log(env), "destroy the CQs and QPs first"));
	assert_int_equal(soft_cmd_if.pd_free(env->ctx, env->pd), -EBUSY);
	assert_int_equal(soft_cmd_if.uar_free(env->ctx, env->uar), -EBUSY);
	assert_int_equal(soft_cmd_if.close(env->ctx), -EBUSY);
	env_same("busy", before, env_census(env));
	/* The teardown asserts that all objects can be destroyed in order afterwards. */
}

T(test_query_reports_a_connected_qp)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_QUERY_QP_OUT];
	const uint8_t *qpc = out + SOFT_QPC_AT, *ads = out + SOFT_ADS_AT;
	struct soft_qp *qp;

	env_qp_to(env, BB_PRM_QP_RTS);
	qp = env->dev->qps[env->qpn];
	qp->dbrec[0] = bb_be32(5);
	qp->dbrec[1] = bb_be32(7);
	env_op(in, BB_PRM_OP_QUERY_QP);
	bb_prm_set(in, BB_PRM_QUERY_QP_QPN, env->qpn);
	memset(out, 0xee, sizeof(out));
	OK(soft_cmd_if.obj_query(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(out, BB_PRM_CMD_STATUS), 0);
	assert_int_equal(bb_prm_get(out, BB_PRM_CMD_SYNDROME), 0);

	const struct {
		const uint8_t *base;
		struct bb_prm_field f;
		uint32_t want;
	} fields[] = {
		{qpc, BB_PRM_QPC_STATE, BB_PRM_QP_RTS},
		{qpc, BB_PRM_QPC_ST, BB_PRM_QP_ST_RC},
		{qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED},
		{qpc, BB_PRM_QPC_PD, env->pd->pdn},
		{qpc, BB_PRM_QPC_UAR_PAGE, env->uar->page_id},
		{qpc, BB_PRM_QPC_CQN_SND, env->cqn},
		{qpc, BB_PRM_QPC_CQN_RCV, env->cqn},
		{qpc, BB_PRM_QPC_USER_INDEX, 0xabcdef},
		{qpc, BB_PRM_QPC_LOG_SQ_SIZE, ENV_SQ_LOG},
		{qpc, BB_PRM_QPC_LOG_RQ_SIZE, ENV_RQ_LOG},
		{qpc, BB_PRM_QPC_LOG_RQ_STRIDE, 2},
		{qpc, BB_PRM_QPC_MTU, 3},
		{qpc, BB_PRM_QPC_LOG_MSG_MAX, 30},
		{qpc, BB_PRM_QPC_REMOTE_QPN, env->qpn},
		{qpc, BB_PRM_QPC_NEXT_RCV_PSN, 0x123456},
		{qpc, BB_PRM_QPC_NEXT_SEND_PSN, 0x123456},
		{qpc, BB_PRM_QPC_LOG_RRA_MAX, 4},
		{qpc, BB_PRM_QPC_LOG_SRA_MAX, 4},
		{qpc, BB_PRM_QPC_MIN_RNR_NAK, 13},
		{qpc, BB_PRM_QPC_RETRY_COUNT, 7},
		{qpc, BB_PRM_QPC_RNR_RETRY, 6},
		{qpc, BB_PRM_QPC_RWE, 1},
		{qpc, BB_PRM_QPC_RRE, 0},
		{qpc, BB_PRM_QPC_RAE, 0},
		{qpc, BB_PRM_QPC_HW_SQ_WQEBB_COUNTER, 0},
		{qpc, BB_PRM_QPC_SW_SQ_WQEBB_COUNTER, 7},
		{qpc, BB_PRM_QPC_HW_RQ_COUNTER, 0},
		{qpc, BB_PRM_QPC_SW_RQ_COUNTER, 5},
		{ads, BB_PRM_ADS_VHCA_PORT_NUM, 1},
		{ads, BB_PRM_ADS_SRC_ADDR_INDEX, 3},
		{ads, BB_PRM_ADS_HOP_LIMIT, 64},
		{ads, BB_PRM_ADS_UDP_SPORT, 0xc001},
		{ads, BB_PRM_ADS_ACK_TIMEOUT, 14},
		{ads, BB_PRM_ADS_RMAC_47_32, 0x02bb},
	};
	size_t i;

	for (i = 0; i < RTE_DIM(fields); i++)
		if (bb_prm_get(fields[i].base, fields[i].f) != fields[i].want)
			fail_msg("field %zu of QUERY_QP: 0x%x, not 0x%x", i,
				 bb_prm_get(fields[i].base, fields[i].f), fields[i].want);
	assert_memory_equal(ads + BB_PRM_ADS_RGID_RIP.byte, env->dev->gids[3].raw, 16);

	/* QUERY_QP in ERR, and in RST, where the connection is erased. */
	assert_int_equal(env_modify(env, env->qp, env->qpn, BB_PRM_OP_2ERR_QP), 0);
	OK(soft_cmd_if.obj_query(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_STATE), BB_PRM_QP_ERR);
	assert_int_equal(env_modify(env, env->qp, env->qpn, BB_PRM_OP_2RST_QP), 0);
	OK(soft_cmd_if.obj_query(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_STATE), BB_PRM_QP_RST);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_REMOTE_QPN), 0);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_RWE), 0);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_PD), env->pd->pdn);
	assert_null(qp->peer_dev);
}

T(test_bad_queries_are_refused)
{
	uint8_t in[BB_PRM_SZ_SHORT + 16] = {0}, out[BB_PRM_SZ_QUERY_QP_OUT];
	uint8_t *q = in;

	env_qp_to(env, BB_PRM_QP_INIT);
	env_op(in, BB_PRM_OP_QUERY_QP);
	bb_prm_set(in, BB_PRM_QUERY_QP_QPN, env->qpn);
	env_log(env);
	env_refused(env, "long", soft_cmd_if.obj_query(env->qp, q, 32, out, sizeof(out)), out,
		    BB_PRM_STAT_BAD_INP_LEN, "QUERY_QP");
	env_refused(env, "short output", soft_cmd_if.obj_query(env->qp, q, 16, out, 0x10f), out,
		    BB_PRM_STAT_BAD_OUTP_LEN, "QUERY_QP");
	in[15] = 1;
	env_refused(env, "reserved", soft_cmd_if.obj_query(env->qp, q, 16, out, sizeof(out)), out,
		    BB_PRM_STAT_BAD_PARAM, "QUERY_QP");
	in[15] = 0;
	in[3] = 1; /* reserved; other commands have a uid there */
	env_refused(env, "uid", soft_cmd_if.obj_query(env->qp, q, 16, out, sizeof(out)), out,
		    BB_PRM_STAT_BAD_PARAM, "QUERY_QP");
	in[3] = 0;
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 1);
	env_refused(env, "op_mod", soft_cmd_if.obj_query(env->qp, q, 16, out, sizeof(out)), out,
		    BB_PRM_STAT_BAD_PARAM, "QUERY_QP");
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 0);
	OK(soft_cmd_if.obj_query(env->qp, q, 16, out, 0x110));
}

TEST_MAIN(0)
