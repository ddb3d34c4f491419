/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * QP transitions and QUERY_QP.
 *
 * lib/core has checked that the transition is legal and has all required attributes. Of the
 * optional attributes the device uses only those whose bits are in opt_param_mask. If a bit does
 * not belong to the transition, the device rejects the command (kernel: opt_mask[][][] in
 * drivers/infiniband/hw/mlx5/qp.c).
 */
#include <errno.h>
#include <string.h>

#include <rte_bitops.h>

#include "mlx5.h"

/*
 * Value of qpc.atomic_mode for atomics of 8 bytes as InfiniBand defines them (kernel:
 * MLX5_ATOMIC_MODE_IB_COMP).
 */
#define ATOMIC_MODE_IB 1u
/*
 * Value of qpc.atomic_mode that also allows masked atomics of up to 8 bytes (kernel:
 * MLX5_ATOMIC_MODE_8B).
 */
#define ATOMIC_MODE_8B 3u
/*
 * MTU code of 4096 bytes and log2 of a message's bytes. mlx5_ib sets these for UD in every
 * transition, whatever the port's MTU is.
 */
#define UD_MTU_CODE 5u
#define UD_LOG_MSG  12u
/*
 * log2 of the number of packets after which the device requests an ACK within a message: at least
 * one request per 2^8 packets, as in mlx5_ib (MLX5_IB_ACK_REQ_FREQ) and UCX. 0 would request an ACK
 * for every packet.
 */
#define LOG_ACK_REQ_FREQ 8u
#define OPTPAR_ACCESS    (BB_PRM_OPTPAR_RRE | BB_PRM_OPTPAR_RAE | BB_PRM_OPTPAR_RWE)

struct xfer {
	struct mlx5_dev *d;
	struct bb_qp *qp;
	const struct bb_qp_attr *attr;
	uint32_t mask;
	uint32_t opt;
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN];
	void *qpc;
	void *ads;
};

/*
 * Returns qpc.mtu for an MTU in bytes: 1 (256 bytes) to 5 (4096 bytes), or 0 for less than 256
 * bytes.
 */
static uint32_t
mtu_code(uint32_t bytes)
{
	return bytes < 256 ? 0 : rte_log2_u32(bytes) - 7;
}

static int
set_access(struct xfer *x, uint32_t access)
{
	/* UC executes only WRITEs, so ignore the other rights (kernel: to_mlx5_access_flags()). */
	if (x->qp->ctrl->init.type == BB_QPT_UC) {
		bb_prm_set(x->qpc, BB_PRM_QPC_RWE, (access & BB_ACCESS_REMOTE_WRITE) != 0);
		return 0;
	}
	if ((access & BB_ACCESS_REMOTE_ATOMIC) && !x->d->caps.atomic) {
		BB_LOG(ERR,
		       "%s: cannot give QP 0x%x the right REMOTE_ATOMIC: the device has no atomics",
		       x->d->ctx->name, x->qp->qpn);
		return -EOPNOTSUPP;
	}
	bb_prm_set(x->qpc, BB_PRM_QPC_RRE, (access & BB_ACCESS_REMOTE_READ) != 0);
	bb_prm_set(x->qpc, BB_PRM_QPC_RWE, (access & BB_ACCESS_REMOTE_WRITE) != 0);
	bb_prm_set(x->qpc, BB_PRM_QPC_RAE, (access & BB_ACCESS_REMOTE_ATOMIC) != 0);
	if (x->d->caps.atomic)
		bb_prm_set(x->qpc, BB_PRM_QPC_ATOMIC_MODE,
			   x->d->caps.masked_atomics != 0 ? ATOMIC_MODE_8B : ATOMIC_MODE_IB);
	return 0;
}

/* Sets the access rights, which are an optional attribute in transitions after RST2INIT. */
static int
opt_access(struct xfer *x)
{
	if (!(x->mask & BB_QP_ACCESS))
		return 0;
	x->opt |= x->qp->ctrl->init.type == BB_QPT_UC ? BB_PRM_OPTPAR_RWE : OPTPAR_ACCESS;
	return set_access(x, x->attr->access);
}

/*
 * Sets the access rights in transitions from RTR on. log_rra_max 0 allows one READ or atomic at a
 * time, so this field cannot forbid all of them. If the QP accepts none, the function removes the
 * rights for READs and atomics (kernel: set_qpc_atomic_flags()).
 */
static int
opt_access_connected(struct xfer *x)
{
	const struct bb_qp_attr *set = &x->qp->ctrl->attr;
	bool serves = (x->mask & BB_QP_MAX_DEST_RD_ATOMIC) ? x->attr->max_dest_rd_atomic != 0
							   : set->max_dest_rd_atomic != 0;
	uint32_t access = (x->mask & BB_QP_ACCESS) ? x->attr->access : set->access;

	if (x->qp->ctrl->init.type != BB_QPT_RC || serves ||
	    !(x->mask & (BB_QP_ACCESS | BB_QP_MAX_DEST_RD_ATOMIC)))
		return opt_access(x);
	x->opt |= OPTPAR_ACCESS;
	return set_access(x, access & BB_ACCESS_REMOTE_WRITE);
}

/* Sets the Q_Key. RST2INIT needs no bit in the optional mask for it. */
static void
set_qkey(struct xfer *x, bool optional)
{
	if (!(x->mask & BB_QP_QKEY))
		return;
	bb_prm_set(x->qpc, BB_PRM_QPC_Q_KEY, x->attr->qkey);
	if (optional)
		x->opt |= BB_PRM_OPTPAR_Q_KEY;
}

static int
fill_init(struct xfer *x, bool from_reset)
{
	const struct bb_qp_attr *set = &x->qp->ctrl->attr;

	bb_prm_set(x->ads, BB_PRM_ADS_VHCA_PORT_NUM,
		   (x->mask & BB_QP_PORT) ? x->attr->path.port : set->path.port);
	bb_prm_set(x->ads, BB_PRM_ADS_PKEY_INDEX,
		   (x->mask & BB_QP_PKEY_INDEX) ? x->attr->pkey_index : set->pkey_index);
	if (from_reset) {
		if (x->d->counters.obj != NULL)
			bb_prm_set(x->qpc, BB_PRM_QPC_COUNTER_SET_ID, x->d->counters.id);
		/*
		 * Assign the port once: if the port fails, the card itself moves the QP to another
		 * port.
		 */
		if (x->d->caps.lag_ports != 0)
			bb_prm_set(x->qpc, BB_PRM_QPC_LAG_TX_PORT_AFFINITY,
				   1 + x->d->lag_next++ % x->d->caps.lag_ports);
		set_qkey(x, false);
		return (x->mask & BB_QP_ACCESS) ? set_access(x, x->attr->access) : 0;
	}
	if (x->mask & BB_QP_PKEY_INDEX)
		x->opt |= BB_PRM_OPTPAR_PKEY_INDEX;
	if (x->mask & BB_QP_PORT)
		x->opt |= BB_PRM_OPTPAR_PRI_PORT;
	set_qkey(x, true);
	return opt_access(x);
}

static void
opt_pkey(struct xfer *x)
{
	if (!(x->mask & BB_QP_PKEY_INDEX))
		return;
	bb_prm_set(x->ads, BB_PRM_ADS_PKEY_INDEX, x->attr->pkey_index);
	x->opt |= BB_PRM_OPTPAR_PKEY_INDEX;
}

static int
fill_rtr(struct xfer *x)
{
	enum bb_qp_type type = x->qp->ctrl->init.type;
	const struct bb_qp_attr *a = x->attr;
	struct mlx5_dev *d = x->d;
	int ret;

	opt_pkey(x);
	if (type == BB_QPT_UD) {
		set_qkey(x, true);
		return 0;
	}
	ret = mlx5_path_set(d, x->qp, &a->path, a->dest_qpn, x->ads);
	if (ret != 0)
		return ret;
	bb_prm_set(x->qpc, BB_PRM_QPC_MTU, mtu_code(a->path_mtu));
	bb_prm_set(x->qpc, BB_PRM_QPC_LOG_MSG_MAX, RTE_MIN(d->caps.log_max_msg, MLX5_LOG_MSG_MAX));
	bb_prm_set(x->qpc, BB_PRM_QPC_REMOTE_QPN, a->dest_qpn);
	bb_prm_set(x->qpc, BB_PRM_QPC_NEXT_RCV_PSN, a->rq_psn);
	if (type == BB_QPT_RC) {
		bb_prm_set(x->qpc, BB_PRM_QPC_MIN_RNR_NAK, a->min_rnr_timer);
		/*
		 * Round up here. The initiator's value is rounded down, so a target never gets more
		 * requests than it can hold.
		 */
		bb_prm_set(x->qpc, BB_PRM_QPC_LOG_RRA_MAX,
			   rte_log2_u32(RTE_MAX(a->max_dest_rd_atomic, 1u)));
	}
	return opt_access_connected(x);
}

static int
fill_rts(struct xfer *x)
{
	const struct bb_qp_attr *a = x->attr;

	bb_prm_set(x->qpc, BB_PRM_QPC_NEXT_SEND_PSN, a->sq_psn);
	set_qkey(x, true);
	if (x->qp->ctrl->init.type != BB_QPT_RC)
		return opt_access_connected(x);
	bb_prm_set(x->qpc, BB_PRM_QPC_LOG_ACK_REQ_FREQ, LOG_ACK_REQ_FREQ);
	bb_prm_set(x->ads, BB_PRM_ADS_ACK_TIMEOUT, a->timeout);
	bb_prm_set(x->qpc, BB_PRM_QPC_RETRY_COUNT, a->retry_cnt);
	bb_prm_set(x->qpc, BB_PRM_QPC_RNR_RETRY, a->rnr_retry);
	bb_prm_set(x->qpc, BB_PRM_QPC_LOG_SRA_MAX,
		   31u - (uint32_t)__builtin_clz(RTE_MAX(a->max_rd_atomic, 1u)));
	return opt_access_connected(x);
}

static void
opt_rnr(struct xfer *x)
{
	if (!(x->mask & BB_QP_MIN_RNR_TIMER))
		return;
	bb_prm_set(x->qpc, BB_PRM_QPC_MIN_RNR_NAK, x->attr->min_rnr_timer);
	x->opt |= BB_PRM_OPTPAR_RNR_TIMEOUT;
}

/* Fills in the mailbox of a transition whose command has a QP context. */
static int
fill(struct xfer *x, enum bb_qp_state from, enum bb_qp_state to, uint16_t *op, const char **what)
{
	int ret;

	if (to == BB_QP_INIT) {
		bool from_reset = from == BB_QP_RESET;

		*op = from_reset ? BB_PRM_OP_RST2INIT_QP : BB_PRM_OP_INIT2INIT_QP;
		*what = from_reset ? "RST2INIT_QP" : "INIT2INIT_QP";
		return fill_init(x, from_reset);
	}
	if (to == BB_QP_RTR) {
		*op = BB_PRM_OP_INIT2RTR_QP;
		*what = "INIT2RTR_QP";
		return fill_rtr(x);
	}
	if (from == BB_QP_RTR) {
		*op = BB_PRM_OP_RTR2RTS_QP;
		*what = "RTR2RTS_QP";
		ret = fill_rts(x);
	} else {
		*op = BB_PRM_OP_RTS2RTS_QP;
		*what = "RTS2RTS_QP";
		set_qkey(x, true);
		ret = opt_access_connected(x);
	}
	opt_rnr(x);
	return ret;
}

static int
transition(struct xfer *x, enum bb_qp_state from, enum bb_qp_state to)
{
	struct mlx5_qp *q = x->qp->ctrl->priv;
	const char *what;
	uint16_t op;
	int ret;

	x->qpc = bb_prm_sub(x->in, BB_PRM_MODIFY_QP_QPC);
	x->ads = bb_prm_sub(x->qpc, BB_PRM_QPC_ADS);
	bb_prm_set(x->qpc, BB_PRM_QPC_ST, mlx5_qp_st(x->qp->ctrl->init.type));
	bb_prm_set(x->qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
	if (x->qp->ctrl->init.type == BB_QPT_UD) {
		bb_prm_set(x->qpc, BB_PRM_QPC_MTU, UD_MTU_CODE);
		bb_prm_set(x->qpc, BB_PRM_QPC_LOG_MSG_MAX, UD_LOG_MSG);
	}
	ret = fill(x, from, to, &op, &what);
	if (ret != 0)
		return ret;
	mlx5_cmd_set_op(x->in, op);
	bb_prm_set(x->in, BB_PRM_MODIFY_QP_QPN, x->qp->qpn);
	bb_prm_set(x->in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK, x->opt);
	return mlx5_obj_modify(x->d, what, q->obj, x->in, sizeof(x->in));
}

/* Moves the QP to ERR or RESET. The commands of these transitions have no QP context. */
static int
leave(struct mlx5_dev *d, struct bb_qp *qp, uint16_t op, const char *what)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0};
	struct mlx5_qp *q = qp->ctrl->priv;

	mlx5_cmd_set_op(in, op);
	bb_prm_set(in, BB_PRM_MODIFY_QP_QPN, qp->qpn);
	return mlx5_obj_modify(d, what, q->obj, in, sizeof(in));
}

int
mlx5_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask, enum bb_qp_state to)
{
	struct mlx5_dev *d = mlx5_dev_of(qp->ctrl->pd->dev);
	struct xfer x = {.d = d, .qp = qp, .attr = attr, .mask = mask};

	switch (to) {
	case BB_QP_RESET:
		return leave(d, qp, BB_PRM_OP_2RST_QP, "2RST_QP");
	case BB_QP_ERR:
		return leave(d, qp, BB_PRM_OP_2ERR_QP, "2ERR_QP");
	case BB_QP_INIT:
	case BB_QP_RTR:
	case BB_QP_RTS:
		return transition(&x, qp->state, to);
	default:
		return -ENOTSUP;
	}
}

static enum bb_qp_state
state_of(uint32_t prm)
{
	switch (prm) {
	case BB_PRM_QP_RST:
		return BB_QP_RESET;
	case BB_PRM_QP_INIT:
		return BB_QP_INIT;
	case BB_PRM_QP_RTR:
		return BB_QP_RTR;
	case BB_PRM_QP_RTS:
		return BB_QP_RTS;
	case BB_PRM_QP_SQD:
		return BB_QP_SQD;
	default:
		return BB_QP_ERR;
	}
}

static void
get_init(const void *qpc, struct bb_qp_attr *attr)
{
	const void *ads = bb_prm_csub(qpc, BB_PRM_QPC_ADS);

	attr->access = (bb_prm_get(qpc, BB_PRM_QPC_RRE) ? BB_ACCESS_REMOTE_READ : 0) |
		       (bb_prm_get(qpc, BB_PRM_QPC_RWE) ? BB_ACCESS_REMOTE_WRITE : 0) |
		       (bb_prm_get(qpc, BB_PRM_QPC_RAE) ? BB_ACCESS_REMOTE_ATOMIC : 0);
	attr->qkey = bb_prm_get(qpc, BB_PRM_QPC_Q_KEY);
	attr->pkey_index = (uint16_t)bb_prm_get(ads, BB_PRM_ADS_PKEY_INDEX);
	attr->path.port = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_VHCA_PORT_NUM);
}

static void
get_rtr(const struct mlx5_dev *d, enum bb_qp_type type, const void *qpc, struct bb_qp_attr *attr)
{
	if (type == BB_QPT_UD)
		return;
	attr->path_mtu = 128u << bb_prm_get(qpc, BB_PRM_QPC_MTU);
	attr->dest_qpn = bb_prm_get(qpc, BB_PRM_QPC_REMOTE_QPN);
	attr->rq_psn = bb_prm_get(qpc, BB_PRM_QPC_NEXT_RCV_PSN);
	mlx5_path_get(d, bb_prm_csub(qpc, BB_PRM_QPC_ADS), &attr->path);
	if (type != BB_QPT_RC)
		return;
	attr->max_dest_rd_atomic = (uint8_t)(1u << bb_prm_get(qpc, BB_PRM_QPC_LOG_RRA_MAX));
	attr->min_rnr_timer = (uint8_t)bb_prm_get(qpc, BB_PRM_QPC_MIN_RNR_NAK);
}

static void
get_rts(enum bb_qp_type type, const void *qpc, struct bb_qp_attr *attr)
{
	const void *ads = bb_prm_csub(qpc, BB_PRM_QPC_ADS);

	attr->sq_psn = bb_prm_get(qpc, BB_PRM_QPC_NEXT_SEND_PSN);
	if (type != BB_QPT_RC)
		return;
	attr->max_rd_atomic = (uint8_t)(1u << bb_prm_get(qpc, BB_PRM_QPC_LOG_SRA_MAX));
	attr->timeout = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_ACK_TIMEOUT);
	attr->retry_cnt = (uint8_t)bb_prm_get(qpc, BB_PRM_QPC_RETRY_COUNT);
	attr->rnr_retry = (uint8_t)bb_prm_get(qpc, BB_PRM_QPC_RNR_RETRY);
}

int
mlx5_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_QUERY_QP_OUT] = {0};
	const void *qpc = bb_prm_csub(out, BB_PRM_QUERY_QP_OUT_QPC);
	struct mlx5_dev *d = mlx5_dev_of(qp->ctrl->pd->dev);
	enum bb_qp_type type = qp->ctrl->init.type;
	struct mlx5_qp *q = qp->ctrl->priv;
	int ret;

	mlx5_cmd_set_op(in, BB_PRM_OP_QUERY_QP);
	bb_prm_set(in, BB_PRM_QUERY_QP_QPN, qp->qpn);
	ret = mlx5_obj_query(d, "QUERY_QP", q->obj, in, sizeof(in), out, sizeof(out));
	if (ret != 0)
		return ret;
	attr->state = state_of(bb_prm_get(qpc, BB_PRM_QPC_STATE));
	/*
	 * A QP in an error state may have an invalid context, so return the values that were set
	 * last.
	 */
	if (attr->state == BB_QP_INIT || attr->state == BB_QP_RTR || attr->state == BB_QP_RTS)
		get_init(qpc, attr);
	if (attr->state == BB_QP_RTR || attr->state == BB_QP_RTS)
		get_rtr(d, type, qpc, attr);
	if (attr->state == BB_QP_RTS)
		get_rts(type, qpc, attr);
	return 0;
}
