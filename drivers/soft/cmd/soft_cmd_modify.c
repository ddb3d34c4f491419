/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* QP state transitions: RST2INIT to RTS2RTS, 2ERR, 2RST. */
#include <string.h>

#include "bb_prm_kernel.h"
#include "soft_ctl.h"
#include "soft_shm.h"
#include "soft_wire.h"

#define SOFT_SYNDROME 0xbb050000u

#define ADS_IN_QPC 0x18

/* A field of the QP context (QPC) or of its address path (ADS), and the base of its offset. */
#define QPC(f)                                                                                     \
	{                                                                                          \
		f, 0                                                                               \
	}
#define ADS(f)                                                                                     \
	{                                                                                          \
		f, ADS_IN_QPC                                                                      \
	}

/* Fields of INIT2RTR for RC and UC: the peer, and the path to the peer. */
#define PEER_FIELDS                                                                                \
	QPC(BB_PRM_QPC_MTU), QPC(BB_PRM_QPC_LOG_MSG_MAX), QPC(BB_PRM_QPC_REMOTE_QPN),              \
		QPC(BB_PRM_QPC_NEXT_RCV_PSN), ADS(BB_PRM_ADS_GRH), ADS(BB_PRM_ADS_MLID),           \
		ADS(BB_PRM_ADS_RLID), ADS(BB_PRM_ADS_SRC_ADDR_INDEX), ADS(BB_PRM_ADS_STAT_RATE),   \
		ADS(BB_PRM_ADS_HOP_LIMIT), ADS(BB_PRM_ADS_TCLASS), ADS(BB_PRM_ADS_FLOW_LABEL),     \
		ADS(BB_PRM_ADS_RGID_RIP), ADS(BB_PRM_ADS_ECN), ADS(BB_PRM_ADS_DSCP),               \
		ADS(BB_PRM_ADS_UDP_SPORT), ADS(BB_PRM_ADS_ETH_PRIO), ADS(BB_PRM_ADS_SL),           \
		ADS(BB_PRM_ADS_RMAC_47_32), ADS(BB_PRM_ADS_RMAC_31_0)

/* Fields that each transition accepts for RC. */
static const struct soft_field init_fields[] = {
	QPC(BB_PRM_QPC_COUNTER_SET_ID),
	QPC(BB_PRM_QPC_RRE),
	QPC(BB_PRM_QPC_RWE),
	QPC(BB_PRM_QPC_RAE),
	QPC(BB_PRM_QPC_ATOMIC_MODE),
	ADS(BB_PRM_ADS_PKEY_INDEX),
	ADS(BB_PRM_ADS_VHCA_PORT_NUM),
};
static const struct soft_field rtr_fields[] = {
	PEER_FIELDS,
	QPC(BB_PRM_QPC_LOG_RRA_MAX),
	QPC(BB_PRM_QPC_MIN_RNR_NAK),
};
/* Fields that each transition accepts for UC, without READs, atomics, RNR and retries. */
static const struct soft_field uc_init_fields[] = {
	QPC(BB_PRM_QPC_COUNTER_SET_ID),
	QPC(BB_PRM_QPC_RWE),
	ADS(BB_PRM_ADS_PKEY_INDEX),
	ADS(BB_PRM_ADS_VHCA_PORT_NUM),
};
static const struct soft_field uc_rtr_fields[] = {PEER_FIELDS};
static const struct soft_field uc_rts_fields[] = {
	QPC(BB_PRM_QPC_LOG_ACK_REQ_FREQ),
	QPC(BB_PRM_QPC_NEXT_SEND_PSN),
};
/*
 * Fields that each transition accepts for UD, which has no peer. mlx5_ib sets mtu 4096 and
 * log_msg_max 12 in every transition.
 */
static const struct soft_field ud_init_fields[] = {
	QPC(BB_PRM_QPC_COUNTER_SET_ID), QPC(BB_PRM_QPC_Q_KEY), ADS(BB_PRM_ADS_PKEY_INDEX),
	ADS(BB_PRM_ADS_VHCA_PORT_NUM),  QPC(BB_PRM_QPC_MTU),   QPC(BB_PRM_QPC_LOG_MSG_MAX),
};
static const struct soft_field ud_rtr_fields[] = {
	QPC(BB_PRM_QPC_MTU),
	QPC(BB_PRM_QPC_LOG_MSG_MAX),
};
static const struct soft_field ud_rts_fields[] = {
	QPC(BB_PRM_QPC_LOG_ACK_REQ_FREQ),
	QPC(BB_PRM_QPC_NEXT_SEND_PSN),
	QPC(BB_PRM_QPC_MTU),
	QPC(BB_PRM_QPC_LOG_MSG_MAX),
};
static const struct soft_field rts_fields[] = {
	QPC(BB_PRM_QPC_LOG_ACK_REQ_FREQ), QPC(BB_PRM_QPC_LOG_SRA_MAX),
	QPC(BB_PRM_QPC_RETRY_COUNT),      QPC(BB_PRM_QPC_RNR_RETRY),
	QPC(BB_PRM_QPC_NEXT_SEND_PSN),    ADS(BB_PRM_ADS_ACK_TIMEOUT),
};

/*
 * Fields that transitions after RST2INIT use only if opt_param_mask has their bit (mlx5_ib:
 * opt_mask[]). Without the bit the device ignores the field, because UCX leaves old values in it.
 */
#define RC   (1u << BB_PRM_QP_ST_RC)
#define UC   (1u << BB_PRM_QP_ST_UC)
#define UD   (1u << BB_PRM_QP_ST_UD)
#define EACH (RC | UC | UD)
struct optional {
	uint32_t bit;
	uint32_t types;
	struct soft_field field;
};
static const struct optional optionals[] = {
	{BB_PRM_OPTPAR_RRE, RC, QPC(BB_PRM_QPC_RRE)},
	{BB_PRM_OPTPAR_RWE, RC | UC, QPC(BB_PRM_QPC_RWE)},
	{BB_PRM_OPTPAR_RAE, RC, QPC(BB_PRM_QPC_RAE)},
	{BB_PRM_OPTPAR_RAE, RC, QPC(BB_PRM_QPC_ATOMIC_MODE)},
	{BB_PRM_OPTPAR_RNR_TIMEOUT, RC, QPC(BB_PRM_QPC_MIN_RNR_NAK)},
	{BB_PRM_OPTPAR_PKEY_INDEX, EACH, ADS(BB_PRM_ADS_PKEY_INDEX)},
	{BB_PRM_OPTPAR_PRI_PORT, EACH, ADS(BB_PRM_ADS_VHCA_PORT_NUM)},
	{BB_PRM_OPTPAR_Q_KEY, UD, QPC(BB_PRM_QPC_Q_KEY)},
};

/*
 * Fields that mlx5_ib sets in every transition of a QP that it made with a page list
 * (__mlx5_ib_modify_qp(), Linux 6.1 to 7.2). They repeat the attributes of CREATE_QP. A card
 * ignores each of them except in the transition to which it belongs, and so does this device.
 */
static const struct soft_field kernel_fields[] = {
	QPC(BB_PRM_QPC_PD),        QPC(BB_PRM_QPC_CQN_SND),
	QPC(BB_PRM_QPC_CQN_RCV),   QPC(BB_PRM_QPC_LOG_ACK_REQ_FREQ),
	QPC(BB_PRM_QPC_DBR_ADDR),  QPC(BB_PRM_QPC_RLKY),
	QPC(BB_PRM_QPC_DETH_SQPN),
};

#define ACCESS_BITS (BB_PRM_OPTPAR_RRE | BB_PRM_OPTPAR_RAE | BB_PRM_OPTPAR_RWE)

/* Fields and mask bits that a transition accepts for one QP type. */
struct takes {
	/*
	 * Accepted bits of opt_param_mask: those of mlx5_ib's opt_mask[], except for path
	 * migration, LAG, DC, and changes of SRQ and CQ.
	 */
	uint32_t opt_mask;
	const struct soft_field *fields;
	unsigned int n;
};
#define TAKES(mask, f)                                                                             \
	{                                                                                          \
		mask, f, RTE_DIM(f)                                                                \
	}
#define ONLY(mask)                                                                                 \
	{                                                                                          \
		mask, NULL, 0                                                                      \
	}

#define PKEY BB_PRM_OPTPAR_PKEY_INDEX
#define PORT BB_PRM_OPTPAR_PRI_PORT
#define QKEY BB_PRM_OPTPAR_Q_KEY
#define RWE  BB_PRM_OPTPAR_RWE
#define RNR  BB_PRM_OPTPAR_RNR_TIMEOUT

struct transition {
	uint16_t op;
	uint32_t from, to;
	bool from_any;
	struct takes takes[3]; /* Accepted fields by QPC.st: RC, UC, UD. */
};
static const struct transition transitions[] = {
	{BB_PRM_OP_RST2INIT_QP,
	 BB_PRM_QP_RST,
	 BB_PRM_QP_INIT,
	 false,
	 {TAKES(0, init_fields), TAKES(0, uc_init_fields), TAKES(0, ud_init_fields)}},
	{BB_PRM_OP_INIT2INIT_QP,
	 BB_PRM_QP_INIT,
	 BB_PRM_QP_INIT,
	 false,
	 {ONLY(ACCESS_BITS | PKEY | PORT), ONLY(RWE | PKEY | PORT),
	  TAKES(PKEY | QKEY | PORT, ud_rtr_fields)}},
	/*
	 * min_rnr_nak is mandatory here, because verbs require it from INIT to RTR and mlx5_ib then
	 * sets it. The opt_mask[] of mlx5_ib has no RNR_TIMEOUT for this transition.
	 */
	{BB_PRM_OP_INIT2RTR_QP,
	 BB_PRM_QP_INIT,
	 BB_PRM_QP_RTR,
	 false,
	 {TAKES(ACCESS_BITS | PKEY, rtr_fields), TAKES(RWE | PKEY, uc_rtr_fields),
	  TAKES(PKEY | QKEY, ud_rtr_fields)}},
	{BB_PRM_OP_RTR2RTS_QP,
	 BB_PRM_QP_RTR,
	 BB_PRM_QP_RTS,
	 false,
	 {TAKES(ACCESS_BITS | RNR, rts_fields), TAKES(RWE, uc_rts_fields),
	  TAKES(QKEY, ud_rts_fields)}},
	{BB_PRM_OP_RTS2RTS_QP,
	 BB_PRM_QP_RTS,
	 BB_PRM_QP_RTS,
	 false,
	 {ONLY(ACCESS_BITS | RNR), ONLY(RWE), TAKES(QKEY, ud_rtr_fields)}},
	{BB_PRM_OP_2ERR_QP, 0, BB_PRM_QP_ERR, true, {ONLY(0), ONLY(0), ONLY(0)}},
	{BB_PRM_OP_2RST_QP, 0, BB_PRM_QP_RST, true, {ONLY(0), ONLY(0), ONLY(0)}},
};

static const char *
state_name(uint32_t state)
{
	static const char *const names[] = {"RST", "INIT", "RTR", "RTS", "SQER", "SQD", "ERR"};

	return state < RTE_DIM(names) ? names[state] : "?";
}

static void
copy_field(uint8_t *to, const uint8_t *from, const struct soft_field *f)
{
	if (f->f.width == 0)
		memcpy(to + f->base + f->f.byte, from + f->base + f->f.byte, 16);
	else
		bb_prm_set(to + f->base, f->f, bb_prm_get(from + f->base, f->f));
}

/* Rejects the command if bits are set outside the fields that the transition accepts or ignores. */
static int
check_fields(struct soft_cmd *cmd, const struct transition *t, const struct soft_qp *qp)
{
	const struct takes *takes = &t->takes[qp->st];
	struct soft_field
		all[RTE_DIM(rtr_fields) + RTE_DIM(optionals) + RTE_DIM(kernel_fields) + 4];
	unsigned int i, n = 0;

	all[n++] = (struct soft_field){BB_PRM_MODIFY_QP_QPN, 0};
	if (cmd->desc->inlen == BB_PRM_SZ_MODIFY_QP_IN) {
		all[n++] = (struct soft_field){BB_PRM_MODIFY_QP_OPT_PARAM_MASK, 0};
		/*
		 * mlx5_ib sets the fields st and pm_state in every transition, so every transition
		 * accepts them.
		 */
		all[n++] = (struct soft_field){BB_PRM_QPC_ST, SOFT_QPC_AT};
		all[n++] = (struct soft_field){BB_PRM_QPC_PM_STATE, SOFT_QPC_AT};
		for (i = 0; i < RTE_DIM(optionals); i++)
			if ((optionals[i].types & 1u << qp->st) != 0)
				all[n++] = optionals[i].field;
		for (i = 0; i < takes->n; i++)
			all[n++] = takes->fields[i];
		/* A umem without a number holds the pages of a page list. */
		for (i = 0; qp->wq_umem->pub.id == 0 && i < RTE_DIM(kernel_fields); i++)
			all[n++] = kernel_fields[i];
		for (i = 4; i < n; i++)
			all[i].base += SOFT_QPC_AT;
	}
	return soft_cmd_only(cmd, all, n);
}

static int
check_common(struct soft_cmd *cmd, const struct transition *t, const struct soft_qp *qp,
	     const uint8_t *in, const uint8_t *image)
{
	uint32_t pm = bb_prm_get(in, BB_PRM_QPC_PM_STATE), st = bb_prm_get(in, BB_PRM_QPC_ST);
	uint32_t port = bb_prm_get(in + ADS_IN_QPC, BB_PRM_ADS_VHCA_PORT_NUM);
	uint32_t pkey = bb_prm_get(image + ADS_IN_QPC, BB_PRM_ADS_PKEY_INDEX);
	uint32_t atomic = bb_prm_get(image, BB_PRM_QPC_ATOMIC_MODE);
	uint32_t type = qp->special != 0 ? qp->special : qp->st;
	bool init = t->op == BB_PRM_OP_RST2INIT_QP;

	if (st != type)
		return SOFT_REFUSE(cmd, BAD_PARAM, "st %u is not the type of the QP (%u)", st,
				   type);
	if (pm != BB_PRM_QP_PM_MIGRATED && (pm != 0 || init))
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"invalid pm_state %u (3, MIGRATED: the device has no path migration)", pm);
	if (port != SOFT_PORT && (port != 0 || init))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid vhca_port_num %u (1: the device has one port)", port);
	if (pkey != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid pkey_index %u (0: the table has one entry)", pkey);
	/*
	 * Values of atomic_mode: 0 none, 1 as in the IB specification, 2 only 8 bytes, n from 3 on:
	 * up to 2^n bytes.
	 */
	if (cmd->dev->opts.no_atomic && (atomic != 0 || bb_prm_get(image, BB_PRM_QPC_RAE) != 0))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "rae or atomic_mode is set, but the device has no atomics");
	if (atomic > 3)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid atomic_mode %u (0 to 3: atomics have at most 8 bytes)",
				   atomic);
	return 0;
}

static int
check_rtr(struct soft_cmd *cmd, const struct soft_qp *qp, const uint8_t *image)
{
	uint32_t mtu = bb_prm_get(image, BB_PRM_QPC_MTU);
	uint32_t log_msg = bb_prm_get(image, BB_PRM_QPC_LOG_MSG_MAX);
	uint32_t log_rra = bb_prm_get(image, BB_PRM_QPC_LOG_RRA_MAX);

	/* mlx5_ib always sets the largest MTU for UD, even if the port's active MTU is smaller. */
	if (mtu == 0 || mtu > (qp->st == BB_PRM_QP_ST_UD ? SOFT_ACTIVE_MTU : cmd->dev->active_mtu))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid mtu %u (1, 256 bytes, to the active MTU, %u)%s", mtu,
				   cmd->dev->active_mtu,
				   cmd->dev->netif != NULL
					   ? "; the option framesz= of port= raises the active MTU"
					   : "");
	if (log_msg > cmd->dev->opts.log_max_msg)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid log_msg_max %u (0 to %u)", log_msg,
				   cmd->dev->opts.log_max_msg);
	if (log_rra > SOFT_LOG_MAX_RA)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid log_rra_max %u (0 to %u)", log_rra,
				   SOFT_LOG_MAX_RA);
	if (qp->st == BB_PRM_QP_ST_UD)
		return 0;
	return soft_cmd_check_path(cmd, image + ADS_IN_QPC);
}

static int
check_rts(struct soft_cmd *cmd, const uint8_t *image)
{
	uint32_t log_sra = bb_prm_get(image, BB_PRM_QPC_LOG_SRA_MAX);

	if (log_sra > SOFT_LOG_MAX_RA)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid log_sra_max %u (0 to %u)", log_sra,
				   SOFT_LOG_MAX_RA);
	return 0;
}

/* Copies the fields of the QP context to the QP. Call it under the engine's lock. */
static void
load(struct soft_qp *qp, const struct transition *t)
{
	const uint8_t *q = qp->qpc;

	/*
	 * Engines of peers read these fields without this engine's lock, so the stores are atomic.
	 */
	__atomic_store_n(&qp->rre, bb_prm_get(q, BB_PRM_QPC_RRE) != 0, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->rwe, bb_prm_get(q, BB_PRM_QPC_RWE) != 0, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->rae, bb_prm_get(q, BB_PRM_QPC_RAE) != 0, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->atomic_mode, bb_prm_get(q, BB_PRM_QPC_ATOMIC_MODE), __ATOMIC_RELAXED);
	__atomic_store_n(&qp->min_rnr_nak, bb_prm_get(q, BB_PRM_QPC_MIN_RNR_NAK), __ATOMIC_RELAXED);
	qp->q_key = bb_prm_get(q, BB_PRM_QPC_Q_KEY);
	if (t->op == BB_PRM_OP_INIT2RTR_QP) {
		qp->mtu = 128u << RTE_MIN(bb_prm_get(q, BB_PRM_QPC_MTU), qp->dev->active_mtu);
		/* The value 0 has no special meaning: it limits messages to one byte. */
		qp->log_msg_max = bb_prm_get(q, BB_PRM_QPC_LOG_MSG_MAX);
		qp->remote_qpn = bb_prm_get(q, BB_PRM_QPC_REMOTE_QPN);
		qp->log_rra_max = bb_prm_get(q, BB_PRM_QPC_LOG_RRA_MAX);
		qp->epsn = bb_prm_get(q, BB_PRM_QPC_NEXT_RCV_PSN);
	} else if (t->op == BB_PRM_OP_RTR2RTS_QP) {
		qp->log_sra_max = bb_prm_get(q, BB_PRM_QPC_LOG_SRA_MAX);
		qp->retry_count = bb_prm_get(q, BB_PRM_QPC_RETRY_COUNT);
		qp->rnr_retry = bb_prm_get(q, BB_PRM_QPC_RNR_RETRY);
		qp->ack_timeout = bb_prm_get(q + ADS_IN_QPC, BB_PRM_ADS_ACK_TIMEOUT);
		qp->sq_psn = bb_prm_get(q, BB_PRM_QPC_NEXT_SEND_PSN);
		qp->retries_left = qp->retry_count;
		qp->rnr_left = qp->rnr_retry;
	}
}

/* Clears the fields that transitions set, for 2RST. The fields of CREATE_QP stay. */
static void
clear_connection(uint8_t *image)
{
	static const uint8_t zero[SOFT_QPC_BYTES];
	unsigned int i;

	/* Skips entry 0, the counter set, because CREATE_QP may have set it. */
	for (i = 1; i < RTE_DIM(init_fields); i++)
		copy_field(image, zero, &init_fields[i]);
	for (i = 0; i < RTE_DIM(rtr_fields); i++)
		copy_field(image, zero, &rtr_fields[i]);
	for (i = 0; i < RTE_DIM(rts_fields); i++)
		copy_field(image, zero, &rts_fields[i]);
	for (i = 1; i < RTE_DIM(ud_init_fields); i++)
		copy_field(image, zero, &ud_init_fields[i]);
}

/* Builds and checks the QP context as it will be after the transition, and looks up the peer. */
static int
next_image(struct soft_cmd *cmd, const struct transition *t, const struct soft_qp *qp,
	   uint8_t *image, struct soft_dev **peer)
{
	const struct takes *takes = &t->takes[qp->st];
	const uint8_t *in = cmd->in + SOFT_QPC_AT;
	uint32_t mask = bb_prm_get(cmd->in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK);
	uint32_t set;
	unsigned int i;
	int ret;

	if ((mask & ~takes->opt_mask) != 0)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"opt_param_mask 0x%x: bits 0x%x are not allowed in this transition", mask,
			mask & ~takes->opt_mask);
	for (i = 0; i < takes->n; i++)
		copy_field(image, in, &takes->fields[i]);
	for (i = 0; i < RTE_DIM(optionals); i++)
		if ((mask & optionals[i].bit) != 0)
			copy_field(image, in, &optionals[i].field);
	/*
	 * mlx5_ib binds the counter set in RST2INIT. If the command names no set, the set of
	 * CREATE_QP stays.
	 */
	if (t->op == BB_PRM_OP_RST2INIT_QP && bb_prm_get(in, BB_PRM_QPC_COUNTER_SET_ID) == 0)
		bb_prm_set(image, BB_PRM_QPC_COUNTER_SET_ID, qp->counter_set);
	set = bb_prm_get(image, BB_PRM_QPC_COUNTER_SET_ID);
	if (set != 0 && !soft_ctx_may_use(cmd->ctx, cmd->dev->ctl->counter_ctx[set]))
		return SOFT_REFUSE(cmd, BAD_RES, "counter_set_id %u does not exist", set);
	ret = check_common(cmd, t, qp, in, image);
	if (ret == 0 && t->op == BB_PRM_OP_INIT2RTR_QP)
		ret = check_rtr(cmd, qp, image);
	if (ret == 0 && t->op == BB_PRM_OP_RTR2RTS_QP)
		ret = check_rts(cmd, image);
	if (ret == 0 && t->op == BB_PRM_OP_INIT2RTR_QP)
		*peer = qp->st == BB_PRM_QP_ST_UD
				? NULL
				: soft_cmd_find_peer(cmd, qp, image + ADS_IN_QPC,
						     bb_prm_get(image, BB_PRM_QPC_REMOTE_QPN));
	return ret;
}

int
soft_cmd_modify_qp(struct soft_cmd *cmd)
{
	uint32_t qpn = bb_prm_get(cmd->in, BB_PRM_MODIFY_QP_QPN), state;
	const struct transition *t = transitions;
	struct soft_qp *qp = soft_cmd_qp(cmd, qpn);
	uint8_t image[SOFT_QPC_BYTES];
	struct soft_dev *peer;
	int ret;

	while (t->op != cmd->desc->op)
		t++;
	if (qp == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "QP 0x%x does not exist", qpn);
	ret = check_fields(cmd, t, qp);
	if (ret != 0)
		return ret;
	memcpy(image, qp->qpc, sizeof(image));
	peer = qp->peer_dev;
	if (t->op == BB_PRM_OP_2RST_QP)
		clear_connection(image);
	else if (t->op != BB_PRM_OP_2ERR_QP)
		ret = next_image(cmd, t, qp, image, &peer);
	if (ret != 0)
		return ret;

	if (t->to != BB_PRM_QP_RTS)
		soft_shm_collect(cmd->dev, qp);
	/*
	 * The engine may move the QP to ERR at any time, so the state is checked under the engine's
	 * lock.
	 */
	/* Connects to peers that have sent their last packets and closed. */
	if (t->op == BB_PRM_OP_2ERR_QP && cmd->dev->shm != NULL)
		soft_shm_chores(cmd->dev->shm, rte_rdtsc());
	soft_engine_lock(qp->engine);
	if (t->op == BB_PRM_OP_2ERR_QP) {
		soft_shm_last_packets(qp->engine);
		soft_failures_run(qp->engine);
	}
	if (t->op == BB_PRM_OP_2RST_QP || t->op == BB_PRM_OP_2ERR_QP)
		soft_wire_last_ack(qp);
	state = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
	if (!t->from_any && state != t->from) {
		soft_engine_unlock(qp->engine);
		return SOFT_REFUSE(cmd, BAD_QP_STATE, "QP 0x%x is in state %s (%s is required)",
				   qpn, state_name(state), state_name(t->from));
	}
	memcpy(qp->qpc, image, sizeof(image));
	if (t->op == BB_PRM_OP_RST2INIT_QP) {
		cmd->dev->ctl->counter_refs[qp->counter_set]--;
		qp->counter_set = bb_prm_get(image, BB_PRM_QPC_COUNTER_SET_ID);
		cmd->dev->ctl->counter_refs[qp->counter_set]++;
	}
	if (t->op == BB_PRM_OP_INIT2RTR_QP)
		qp->peer_dev = peer;
	load(qp, t);
	__atomic_store_n(&qp->state, t->to, __ATOMIC_RELEASE);
	soft_qp_state_changed(qp, state);
	if (qp->wire != NULL && t->to == BB_PRM_QP_RTS)
		soft_wire_changed(qp->wire);
	/* Also publishes changed access rights to peers in other processes. */
	soft_shm_qp_update(qp);
	soft_engine_unlock(qp->engine);
	if (t->to == BB_PRM_QP_RTR)
		soft_shm_skip(cmd->dev, qp);
	soft_shm_wait(cmd->dev);
	/*
	 * Waits until no engine of a peer uses the old connection. After that a new connection may
	 * be set up.
	 */
	if (t->op == BB_PRM_OP_2RST_QP) {
		soft_quiesce();
		qp->peer_dev = NULL;
		/*
		 * Engines of peers set these fields. In RTR a peer may already be sending, so clear
		 * the fields before the QP leaves RESET.
		 */
		qp->comm_est = 0;
		memset(qp->replay, 0, sizeof(qp->replay));
	}
	return 0;
}
