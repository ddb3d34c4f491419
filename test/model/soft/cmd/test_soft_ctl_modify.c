/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* QP transitions through raw mailboxes: which are legal, and which fields each may have. */
#include "soft_ctl_env.h"

#define QPC(name, v)                                                                               \
	{                                                                                          \
		BB_PRM_QPC_##name, ENV_QPC, v                                                      \
	}
#define ADS(name, v)                                                                               \
	{                                                                                          \
		BB_PRM_ADS_##name, ENV_ADS, v                                                      \
	}
#define OPT(v)                                                                                     \
	{                                                                                          \
		BB_PRM_MODIFY_QP_OPT_PARAM_MASK, 0, v                                              \
	}
#define RAW(byte, bit, v)                                                                          \
	{                                                                                          \
		BB_PRM_F(byte, bit, 1), 0, v                                                       \
	}

static const uint16_t ops[] = {
	BB_PRM_OP_RST2INIT_QP, BB_PRM_OP_INIT2INIT_QP, BB_PRM_OP_INIT2RTR_QP, BB_PRM_OP_RTR2RTS_QP,
	BB_PRM_OP_RTS2RTS_QP,  BB_PRM_OP_2ERR_QP,      BB_PRM_OP_2RST_QP,
};

static uint32_t
state_of(const struct env *env)
{
	return env->dev->qps[env->qpn]->state;
}

T(test_each_command_is_for_its_states)
{
	static const uint32_t from[] = {BB_PRM_QP_RST, BB_PRM_QP_INIT, BB_PRM_QP_RTR, BB_PRM_QP_RTS,
					BB_PRM_QP_ERR};
	/* State after ops[] from from[]; -1 means BAD_QP_STATE. */
	static const int to[5][7] = {
		/* RST2INIT INIT2INIT INIT2RTR RTR2RTS RTS2RTS 2ERR 2RST */
		{BB_PRM_QP_INIT, -1, -1, -1, -1, BB_PRM_QP_ERR, BB_PRM_QP_RST},
		{-1, BB_PRM_QP_INIT, BB_PRM_QP_RTR, -1, -1, BB_PRM_QP_ERR, BB_PRM_QP_RST},
		{-1, -1, -1, BB_PRM_QP_RTS, -1, BB_PRM_QP_ERR, BB_PRM_QP_RST},
		{-1, -1, -1, -1, BB_PRM_QP_RTS, BB_PRM_QP_ERR, BB_PRM_QP_RST},
		{-1, -1, -1, -1, -1, BB_PRM_QP_ERR, BB_PRM_QP_RST},
	};
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	size_t i, j;
	int ret;

	for (i = 0; i < RTE_DIM(from); i++) {
		for (j = 0; j < RTE_DIM(ops); j++) {
			env_qp_to(env, from[i]);
			env_modify_in(env, ops[j], env->qpn, in);
			env_log(env);
			ret = soft_cmd_if.obj_modify(env->qp, in, env_modify_len(ops[j]), out,
						     sizeof(out));
			if (to[i][j] < 0) {
				env_refused(env, "transition", ret, out, BB_PRM_STAT_BAD_QP_STATE,
					    "_QP");
				assert_int_equal(state_of(env), from[i]);
			} else {
				assert_int_equal(ret, 0);
				assert_int_equal(state_of(env), to[i][j]);
			}
			env_qp_gone(env);
		}
	}
}

struct bad {
	const char *what;
	uint16_t op;
	uint32_t from;
	uint32_t status;
	struct edit edit[2];
};

#define INIT    BB_PRM_OP_RST2INIT_QP, BB_PRM_QP_RST, BB_PRM_STAT_BAD_PARAM
#define AGAIN   BB_PRM_OP_INIT2INIT_QP, BB_PRM_QP_INIT, BB_PRM_STAT_BAD_PARAM
#define RTR     BB_PRM_OP_INIT2RTR_QP, BB_PRM_QP_INIT, BB_PRM_STAT_BAD_PARAM
#define RTS     BB_PRM_OP_RTR2RTS_QP, BB_PRM_QP_RTR, BB_PRM_STAT_BAD_PARAM
#define RTS2RTS BB_PRM_OP_RTS2RTS_QP, BB_PRM_QP_RTS, BB_PRM_STAT_BAD_PARAM
#define TOERR   BB_PRM_OP_2ERR_QP, BB_PRM_QP_RTS, BB_PRM_STAT_BAD_PARAM
#define TORST   BB_PRM_OP_2RST_QP, BB_PRM_QP_RTS, BB_PRM_STAT_BAD_PARAM

static const struct bad bad_eth[] = {
	/* Ports, keys, QP types. */
	{"no port", INIT, {ADS(VHCA_PORT_NUM, 0)}},
	{"port 2", INIT, {ADS(VHCA_PORT_NUM, 2)}},
	{"port 2 at INIT2INIT", AGAIN, {OPT(BB_PRM_OPTPAR_PRI_PORT), ADS(VHCA_PORT_NUM, 2)}},
	{"port 2 at RTR", RTR, {ADS(VHCA_PORT_NUM, 2)}},
	{"pkey_index", INIT, {ADS(PKEY_INDEX, 1)}},
	{"pkey_index at INIT2INIT", AGAIN, {OPT(BB_PRM_OPTPAR_PKEY_INDEX), ADS(PKEY_INDEX, 7)}},
	{"pkey_index at RTR", RTR, {OPT(BB_PRM_OPTPAR_PKEY_INDEX), ADS(PKEY_INDEX, 7)}},
	{"not migrated", INIT, {QPC(PM_STATE, 0)}},
	{"rearm", RTS, {QPC(PM_STATE, 1)}},
	{"UC", INIT, {QPC(ST, 1)}},
	{"UD at RTS", RTS, {QPC(ST, 2)}},
	{"atomic_mode", INIT, {QPC(ATOMIC_MODE, 4)}},
	{"atomic_mode at RTR", RTR, {OPT(BB_PRM_OPTPAR_RAE), QPC(ATOMIC_MODE, 8)}},
	/* opt_param_mask. */
	{"any bit at RST2INIT", INIT, {OPT(BB_PRM_OPTPAR_RRE)}},
	{"RNR at INIT2INIT", AGAIN, {OPT(BB_PRM_OPTPAR_RNR_TIMEOUT)}},
	{"RNR at RTR", RTR, {OPT(BB_PRM_OPTPAR_RNR_TIMEOUT)}},
	{"port at RTR", RTR, {OPT(BB_PRM_OPTPAR_PRI_PORT)}},
	{"pkey_index at RTS", RTS, {OPT(BB_PRM_OPTPAR_PKEY_INDEX)}},
	{"q_key at RTS", RTS, {OPT(BB_PRM_OPTPAR_Q_KEY)}},
	{"alternate path", RTR, {OPT(1u << 0)}},
	{"counter set at RTS2RTS", RTS2RTS, {OPT(1u << 25)}},
	{"top bit", RTS2RTS, {OPT(1u << 31)}},
	/* Limits in INIT2RTR. */
	{"mtu 0", RTR, {QPC(MTU, 0)}},
	{"mtu above the active one", RTR, {QPC(MTU, 6)}},
	{"mtu 7", RTR, {QPC(MTU, 7)}},
	{"log_msg_max", RTR, {QPC(LOG_MSG_MAX, 31)}},
	{"log_rra_max", RTR, {QPC(LOG_RRA_MAX, 5)}},
	/* The path on Ethernet. */
	{"rlid", RTR, {ADS(RLID, 1)}},
	{"mlid", RTR, {ADS(MLID, 1)}},
	{"grh", RTR, {ADS(GRH, 1)}},
	{"sl", RTR, {ADS(SL, 1)}},
	{"empty GID", RTR, {ADS(SRC_ADDR_INDEX, 4)}},
	{"GID past the table", RTR, {ADS(SRC_ADDR_INDEX, 16)}},
	{"GID far past the table", RTR, {ADS(SRC_ADDR_INDEX, 255)}},
	{"no hops", RTR, {ADS(HOP_LIMIT, 0)}},
	{"source port 0", RTR, {ADS(UDP_SPORT, 0)}},
	{"source port below the range", RTR, {ADS(UDP_SPORT, 0xbfff)}},
	{"source port with v1", RTR, {ADS(SRC_ADDR_INDEX, 2)}},
	{"group GID", RTR, {{BB_PRM_F(0x010, 0, 8), ENV_ADS, 0xff}}},
	/* RTR2RTS. */
	{"log_sra_max", RTS, {QPC(LOG_SRA_MAX, 5)}},
	/* Fields that the command does not have. */
	{"mtu at INIT", INIT, {QPC(MTU, 3)}},
	{"PD at INIT", INIT, {QPC(PD, 0x20)}},
	{"remote QP at RTS", RTS, {QPC(REMOTE_QPN, 5)}},
	{"timeout at RTR", RTR, {ADS(ACK_TIMEOUT, 14)}},
	{"retries at RTR", RTR, {QPC(RETRY_COUNT, 1)}},
	{"send PSN at RTR", RTR, {QPC(NEXT_SEND_PSN, 1)}},
	{"receive PSN at RTS", RTS, {QPC(NEXT_RCV_PSN, 1)}},
	{"path at RTS2RTS", RTS2RTS, {ADS(HOP_LIMIT, 1)}},
	{"counter set at RTR", RTR, {QPC(COUNTER_SET_ID, 1)}},
	{"state", RTR, {QPC(STATE, 2)}},
	{"force loopback", RTR, {RAW(ENV_ADS, 0, 1)}},
	{"f_dscp", RTR, {ADS(F_DSCP, 1)}},
	{"secondary path", RTR, {RAW(ENV_QPC + 0x44 + 0x24, 15, 1)}},
	{"op_mod", RTR, {{BB_PRM_CMD_OP_MOD, 0, 1}}},
	{"ece", RTR, {RAW(0x14, 31, 1)}},
	{"reserved tail", RTR, {RAW(0x10c, 31, 1)}},
	{"reserved at 2ERR", TOERR, {RAW(0x0c, 31, 1)}},
	{"reserved at 2RST", TORST, {RAW(0x0c, 0, 1)}},
};

static const struct bad bad_ib[] = {
	{"no LID", RTR, {ADS(RLID, 0)}},
	{"group LID", RTR, {ADS(RLID, 0xc000)}},
	{"permissive LID", RTR, {ADS(RLID, 0xffff)}},
	{"source port", RTR, {ADS(UDP_SPORT, 0xc000)}},
	{"MAC", RTR, {ADS(RMAC_31_0, 1)}},
	{"MAC, upper half", RTR, {ADS(RMAC_47_32, 1)}},
	{"eth_prio", RTR, {ADS(ETH_PRIO, 1)}},
	{"dscp", RTR, {ADS(DSCP, 1)}},
	{"ecn", RTR, {ADS(ECN, 1)}},
	{"empty GID", RTR, {ADS(GRH, 1), ADS(SRC_ADDR_INDEX, 1)}},
	{"GID past the table", RTR, {ADS(GRH, 1), ADS(SRC_ADDR_INDEX, 200)}},
};

/* The valid mailbox without a GRH has an empty rgid_rip. */
static const struct bad bad_grh[] = {
	{"GRH to nobody", RTR, {ADS(GRH, 1)}},
};

static const struct bad bad_grh_required[] = {
	{"no GRH", RTR, {ADS(GRH, 0)}},
};

static const struct bad bad_no_atomic[] = {
	{"rae", INIT, {QPC(RAE, 1)}},
	{"atomic_mode", INIT, {QPC(ATOMIC_MODE, 1)}},
	{"rae at RTR", RTR, {OPT(BB_PRM_OPTPAR_RAE), QPC(RAE, 1)}},
};

static void
refuse_all(struct env *env, const struct bad *bad, size_t n)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT], image[SOFT_QPC_BYTES];
	struct soft_qp *qp, copy;
	size_t i, j;
	int ret;

	for (i = 0; i < n; i++) {
		env_qp_to(env, bad[i].from);
		qp = env->dev->qps[env->qpn];
		memcpy(image, qp->qpc, sizeof(image));
		copy = *qp;
		env_modify_in(env, bad[i].op, env->qpn, in);
		for (j = 0; j < RTE_DIM(bad->edit) && bad[i].edit[j].f.width != 0; j++)
			env_set(in, bad[i].edit[j]);
		env_log(env);
		ret = soft_cmd_if.obj_modify(env->qp, in, env_modify_len(bad[i].op), out,
					     sizeof(out));
		env_refused(env, bad[i].what, ret, out, bad[i].status, "_QP");
		/* The QP did not change, and the legal transition succeeds. */
		if (memcmp(image, qp->qpc, sizeof(image)) != 0 || copy.state != qp->state ||
		    copy.mtu != qp->mtu || copy.epsn != qp->epsn || copy.rwe != qp->rwe ||
		    copy.peer_dev != qp->peer_dev || copy.counter_set != qp->counter_set)
			fail_msg("%s: refused, but something changed", bad[i].what);
		assert_int_equal(env_modify(env, env->qp, env->qpn, bad[i].op), 0);
		env_qp_gone(env);
	}
}

T(test_bad_transitions_on_ethernet_are_refused)
{
	refuse_all(env, bad_eth, RTE_DIM(bad_eth));
}

TEST(test_bad_transitions_on_infiniband_are_refused)
{
	struct env env;

	env_open(&env, "link=ib");
	refuse_all(&env, bad_ib, RTE_DIM(bad_ib));
	refuse_all(&env, bad_grh, RTE_DIM(bad_grh));
	env_close(&env);
	env_open(&env, "link=ib,grh_required");
	refuse_all(&env, bad_ib, RTE_DIM(bad_ib));
	refuse_all(&env, bad_grh_required, RTE_DIM(bad_grh_required));
	env_close(&env);
}

TEST(test_atomic_rights_need_the_capability)
{
	struct env env;

	env_open(&env, "no_atomic");
	refuse_all(&env, bad_no_atomic, RTE_DIM(bad_no_atomic));
	env_close(&env);
}

T(test_empty_gid_refused)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];

	env_qp_to(env, BB_PRM_QP_INIT);
	env_modify_in(env, BB_PRM_OP_INIT2RTR_QP, env->qpn, in);
	memset(in + ENV_ADS + BB_PRM_ADS_RGID_RIP.byte, 0, 16);
	env_log(env);
	env_refused(env, "empty rgid",
		    soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)), out,
		    BB_PRM_STAT_BAD_PARAM, "INIT2RTR_QP");
}

T(test_mailboxes_of_other_lengths_are_refused)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN + 16] = {0}, out[BB_PRM_SZ_SHORT];
	static const size_t lens[] = {16, 0x100, 0x10c, 0x120};
	size_t i;
	int ret;

	env_qp_to(env, BB_PRM_QP_RST);
	env_modify_in(env, BB_PRM_OP_RST2INIT_QP, env->qpn, in);
	env_log(env);
	for (i = 0; i < RTE_DIM(lens); i++) {
		ret = soft_cmd_if.obj_modify(env->qp, in, lens[i], out, sizeof(out));
		env_refused(env, "length", ret, out, BB_PRM_STAT_BAD_INP_LEN, "RST2INIT_QP");
	}
	assert_int_equal(soft_cmd_if.obj_modify(env->qp, in, 8, out, sizeof(out)), -EINVAL);
	assert_int_equal(soft_cmd_if.obj_modify(env->qp, in, BB_PRM_SZ_MODIFY_QP_IN, out, 8),
			 -EINVAL);
	env_modify_in(env, BB_PRM_OP_2ERR_QP, env->qpn, in);
	env_log(env);
	ret = soft_cmd_if.obj_modify(env->qp, in, BB_PRM_SZ_MODIFY_QP_IN, out, sizeof(out));
	env_refused(env, "length", ret, out, BB_PRM_STAT_BAD_INP_LEN, "2ERR_QP");
	assert_int_equal(state_of(env), BB_PRM_QP_RST);
}

T(test_largest_and_smallest_values_are_accepted)
{
	static const struct bad good[] = {
		{"mtu 256", RTR, {QPC(MTU, 1)}},
		{"mtu 4096", RTR, {QPC(MTU, 5)}},
		{"messages of one byte", RTR, {QPC(LOG_MSG_MAX, 0)}},
		{"no READs", RTR, {QPC(LOG_RRA_MAX, 0)}},
		{"lowest source port", RTR, {ADS(UDP_SPORT, 0xc000)}},
		{"highest source port", RTR, {ADS(UDP_SPORT, 0xffff)}},
		{"v1 without a source port", RTR, {ADS(SRC_ADDR_INDEX, 2), ADS(UDP_SPORT, 0)}},
		{"port again", RTR, {ADS(VHCA_PORT_NUM, 1)}},
		{"migrated again", RTR, {QPC(PM_STATE, 3)}},
		{"traffic class and label", RTR, {ADS(TCLASS, 0xff), ADS(FLOW_LABEL, 0xfffff)}},
		{"dscp and priority", RTR, {ADS(DSCP, 63), ADS(ETH_PRIO, 7)}},
		{"wait for ever", RTS, {ADS(ACK_TIMEOUT, 0)}},
		{"no retries", RTS, {QPC(RETRY_COUNT, 0), QPC(RNR_RETRY, 0)}},
		{"largest PSN", RTS, {QPC(NEXT_SEND_PSN, 0xffffff)}},
	};
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	size_t i, j;

	for (i = 0; i < RTE_DIM(good); i++) {
		env_qp_to(env, good[i].from);
		env_modify_in(env, good[i].op, env->qpn, in);
		for (j = 0; j < 2 && good[i].edit[j].f.width != 0; j++)
			env_set(in, good[i].edit[j]);
		if (soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)) != 0)
			fail_msg("%s: refused: %s", good[i].what, env_log(env));
		if (i == 2)
			assert_int_equal(env->dev->qps[env->qpn]->log_msg_max, 0);
		env_qp_gone(env);
	}
}

/* After RST2INIT, rights are applied only with their bits (MLX5_QP_OPTPAR_*). */
T(test_rights_are_applied_only_with_their_bits)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	uint8_t *qpc = in + ENV_QPC;
	const struct soft_qp *qp;

	env_qp_to(env, BB_PRM_QP_INIT);
	qp = env->dev->qps[env->qpn];
	assert_true(qp->rwe && !qp->rre && !qp->rae);

	/* INIT2INIT with RRE only: rre is applied, rwe = 0 is ignored. */
	env_modify_in(env, BB_PRM_OP_INIT2INIT_QP, env->qpn, in);
	bb_prm_set(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK, BB_PRM_OPTPAR_RRE);
	bb_prm_set(qpc, BB_PRM_QPC_RRE, 1);
	OK(soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_true(qp->rwe && qp->rre && !qp->rae);

	/* INIT2RTR without bits: rights and atomic_mode are ignored, min_rnr_nak is applied. */
	env_modify_in(env, BB_PRM_OP_INIT2RTR_QP, env->qpn, in);
	bb_prm_set(qpc, BB_PRM_QPC_RAE, 1);
	bb_prm_set(qpc, BB_PRM_QPC_ATOMIC_MODE, 3);
	OK(soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_true(qp->rwe && qp->rre && !qp->rae);
	assert_int_equal(qp->atomic_mode, 0);
	assert_int_equal(qp->min_rnr_nak, 13);

	/*
	 * RTR2RTS with RAE and RWE: both rights and atomic_mode are applied; min_rnr_nak without
	 * its bit is not.
	 */
	env_modify_in(env, BB_PRM_OP_RTR2RTS_QP, env->qpn, in);
	bb_prm_set(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK, BB_PRM_OPTPAR_RAE | BB_PRM_OPTPAR_RWE);
	bb_prm_set(qpc, BB_PRM_QPC_RAE, 1);
	bb_prm_set(qpc, BB_PRM_QPC_ATOMIC_MODE, 1);
	bb_prm_set(qpc, BB_PRM_QPC_MIN_RNR_NAK, 1);
	OK(soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_true(!qp->rwe && qp->rre && qp->rae);
	assert_int_equal(qp->atomic_mode, 1);
	assert_int_equal(qp->min_rnr_nak, 13);

	/* RTS2RTS with RNR. */
	env_modify_in(env, BB_PRM_OP_RTS2RTS_QP, env->qpn, in);
	bb_prm_set(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK, BB_PRM_OPTPAR_RNR_TIMEOUT);
	bb_prm_set(qpc, BB_PRM_QPC_MIN_RNR_NAK, 1);
	OK(soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(qp->min_rnr_nak, 1);
	assert_true(!qp->rwe && qp->rre && qp->rae);
}

/* UCX's INIT2RTR: mask 0xe and all rights. */
T(test_init2rtr_as_ucx_sends_it_is_accepted)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	uint8_t *qpc = in + ENV_QPC;
	const struct soft_qp *qp;

	env_qp_to(env, BB_PRM_QP_INIT);
	qp = env->dev->qps[env->qpn];
	env_modify_in(env, BB_PRM_OP_INIT2RTR_QP, env->qpn, in);
	bb_prm_set(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK, 0xe);
	bb_prm_set(qpc, BB_PRM_QPC_RRE, 1);
	bb_prm_set(qpc, BB_PRM_QPC_RWE, 1);
	bb_prm_set(qpc, BB_PRM_QPC_RAE, 1);
	bb_prm_set(qpc, BB_PRM_QPC_ATOMIC_MODE, 3);
	OK(soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_true(qp->rwe && qp->rre && qp->rae);
	assert_int_equal(qp->atomic_mode, 3);
}

/* Peers by GID and MAC, and by LID. An unknown peer is not refused; its messages are lost. */
T(test_peers_are_found_by_gid_and_mac)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	struct soft_dev *soft1 = soft_dev_get(1);
	uint8_t *ads = in + ENV_ADS, *gid = ads + BB_PRM_ADS_RGID_RIP.byte;
	const struct {
		uint8_t gid[16];
		uint32_t mac_low;
		struct soft_dev *peer;
	} cases[] = {
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}, 0, env->dev},
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 2}, 1, soft1},
		{{0xfe, 0x80, [9] = 0xbb, [11] = 0xff, 0xfe, [15] = 1}, 1, soft1},
		/* Another device's MAC; a GID of no device. */
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 2}, 0, NULL},
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 99}, 0, NULL},
		{{[10] = 0xff, [11] = 0xff, 192, 0, 3, 1}, 0, NULL},
	};
	size_t i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		env_qp_to(env, BB_PRM_QP_INIT);
		env_modify_in(env, BB_PRM_OP_INIT2RTR_QP, env->qpn, in);
		memcpy(gid, cases[i].gid, 16);
		bb_prm_set(ads, BB_PRM_ADS_RMAC_31_0, cases[i].mac_low);
		env_log(env);
		OK(soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)));
		assert_ptr_equal(env->dev->qps[env->qpn]->peer_dev, cases[i].peer);
		assert_int_equal(strstr(env_log(env), "will be lost") == NULL,
				 cases[i].peer != NULL);
		env_qp_gone(env);
	}
}

TEST(test_peers_on_infiniband_are_found_by_lid)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	struct env env;
	uint32_t lid;

	env_open(&env, "link=ib");
	for (lid = 1; lid <= 18; lid++) {
		env_qp_to(&env, BB_PRM_QP_INIT);
		env_modify_in(&env, BB_PRM_OP_INIT2RTR_QP, env.qpn, in);
		bb_prm_set(in + ENV_ADS, BB_PRM_ADS_RLID, lid);
		OK(soft_cmd_if.obj_modify(env.qp, in, sizeof(in), out, sizeof(out)));
		assert_ptr_equal(env.dev->qps[env.qpn]->peer_dev,
				 lid <= 16 ? soft_dev_get(lid - 1) : NULL);
		env_qp_gone(&env);
	}
	env_close(&env);
}

T(test_infiniband_and_ethernet_do_not_meet)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_ctx *ib;

	OK(soft_cmd_if.open("soft1", "link=ib", &ib));
	env_qp_to(env, BB_PRM_QP_INIT);
	env_modify_in(env, BB_PRM_OP_INIT2RTR_QP, env->qpn, in);
	in[ENV_ADS + BB_PRM_ADS_RGID_RIP.byte + 15] = 2;
	bb_prm_set(in + ENV_ADS, BB_PRM_ADS_RMAC_31_0, 1);
	OK(soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_null(env->dev->qps[env->qpn]->peer_dev);
	OK(soft_cmd_if.close(ib));
}

/* RST2INIT or CREATE_QP binds a counter set, which cannot be freed while it is bound. */
T(test_bound_counter_set_is_not_freed)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT], alloc[BB_PRM_SZ_SHORT] = {0};
	struct mlx5_obj *set;
	uint32_t id;

	env_op(alloc, BB_PRM_OP_ALLOC_Q_COUNTER);
	OK(soft_cmd_if.obj_create(env->ctx, alloc, sizeof(alloc), out, sizeof(out), &set));
	id = bb_prm_get(out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID);
	env_qp_to(env, BB_PRM_QP_RST);
	env_modify_in(env, BB_PRM_OP_RST2INIT_QP, env->qpn, in);
	bb_prm_set(in + ENV_QPC, BB_PRM_QPC_COUNTER_SET_ID, id + 1);
	env_log(env);
	env_refused(env, "unknown set",
		    soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)), out,
		    BB_PRM_STAT_BAD_RES, "RST2INIT_QP");
	bb_prm_set(in + ENV_QPC, BB_PRM_QPC_COUNTER_SET_ID, id);
	OK(soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(env->dev->qps[env->qpn]->counter_set, id);
	assert_int_equal(soft_cmd_if.obj_destroy(set), -EBUSY);
	env_qp_gone(env);

	env_qp_in(env, in);
	bb_prm_set(in + ENV_QPC, BB_PRM_QPC_COUNTER_SET_ID, id);
	OK(soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, sizeof(out), &env->qp));
	env->qpn = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
	assert_int_equal(soft_cmd_if.obj_destroy(set), -EBUSY);
	/* RST2INIT without a counter set keeps the binding. */
	assert_int_equal(env_modify(env, env->qp, env->qpn, BB_PRM_OP_RST2INIT_QP), 0);
	assert_int_equal(env->dev->qps[env->qpn]->counter_set, id);
	env_qp_gone(env);
	OK(soft_cmd_if.obj_destroy(set));
}

TEST_MAIN(0)
