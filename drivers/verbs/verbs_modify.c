/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* QP transitions through ibv_modify_qp(). */
#include <errno.h>
#include <string.h>

#include "verbs_drv.h"

static enum ibv_qp_state
state_to(enum bb_qp_state state)
{
	switch (state) {
	case BB_QP_RESET:
		return IBV_QPS_RESET;
	case BB_QP_INIT:
		return IBV_QPS_INIT;
	case BB_QP_RTR:
		return IBV_QPS_RTR;
	case BB_QP_RTS:
		return IBV_QPS_RTS;
	case BB_QP_SQD:
		return IBV_QPS_SQD;
	case BB_QP_ERR:
		break;
	}
	return IBV_QPS_ERR;
}

static enum bb_qp_state
state_from(enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_RESET:
		return BB_QP_RESET;
	case IBV_QPS_INIT:
		return BB_QP_INIT;
	case IBV_QPS_RTR:
		return BB_QP_RTR;
	case IBV_QPS_RTS:
		return BB_QP_RTS;
	case IBV_QPS_SQD:
		return BB_QP_SQD;
	default:
		return BB_QP_ERR;
	}
}

/* Attribute bits of Bluebell and the corresponding bits of libibverbs. */
static const struct {
	uint32_t bb_mask;
	int ibv_mask;
} masks[] = {
	{BB_QP_ACCESS, IBV_QP_ACCESS_FLAGS},
	{BB_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX},
	{BB_QP_PORT, IBV_QP_PORT},
	{BB_QP_PATH, IBV_QP_AV},
	{BB_QP_PATH_MTU, IBV_QP_PATH_MTU},
	{BB_QP_DEST_QPN, IBV_QP_DEST_QPN},
	{BB_QP_RQ_PSN, IBV_QP_RQ_PSN},
	{BB_QP_SQ_PSN, IBV_QP_SQ_PSN},
	{BB_QP_MAX_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC},
	{BB_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC},
	{BB_QP_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER},
	{BB_QP_TIMEOUT, IBV_QP_TIMEOUT},
	{BB_QP_RETRY_CNT, IBV_QP_RETRY_CNT},
	{BB_QP_RNR_RETRY, IBV_QP_RNR_RETRY},
	{BB_QP_QKEY, IBV_QP_QKEY},
};

static int
fill(const struct bb_dev *dev, const struct bb_qp_attr *attr, uint32_t mask, enum bb_qp_state to,
     struct ibv_qp_attr *a)
{
	int ibv_mask = IBV_QP_STATE;
	unsigned int i;

	memset(a, 0, sizeof(*a));
	a->qp_state = state_to(to);
	/*
	 * For RESET and ERR the kernel needs only the state and does not check other attributes, so
	 * pass no other.
	 */
	if (to == BB_QP_RESET || to == BB_QP_ERR)
		return ibv_mask;
	for (i = 0; i < RTE_DIM(masks); i++)
		if ((mask & masks[i].bb_mask) != 0)
			ibv_mask |= masks[i].ibv_mask;
	a->qp_access_flags = attr->access;
	a->pkey_index = attr->pkey_index;
	a->port_num = attr->path.port;
	verbs_path(dev, &attr->path, &a->ah_attr);
	a->path_mtu = verbs_mtu(attr->path_mtu);
	a->dest_qp_num = attr->dest_qpn;
	a->rq_psn = attr->rq_psn;
	a->sq_psn = attr->sq_psn;
	a->max_rd_atomic = attr->max_rd_atomic;
	a->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	a->min_rnr_timer = attr->min_rnr_timer;
	a->timeout = attr->timeout;
	a->retry_cnt = attr->retry_cnt;
	a->rnr_retry = attr->rnr_retry;
	a->qkey = attr->qkey;
	return ibv_mask;
}

/* Resets the driver's state of the QP, because the provider has dropped all requests. */
static void
after_reset(struct bb_qp *qp, struct verbs_qp *q)
{
	verbs_drain_qp(qp);
	verbs_ah_drop_waits(qp->ctrl->pd->priv, q);
	verbs_sq_reset(q);
}

/*
 * Moves a QP from RESET to ERR. The kernel's table allows this transition, but rxe does not. So the
 * QP passes through INIT; the attributes of INIT have no effect in ERR.
 */
static int
reset_to_err(struct verbs_qp *q, enum bb_qp_type type)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	int err = ibv_modify_qp(q->ib, &a,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					(type == BB_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));

	a.qp_state = IBV_QPS_ERR;
	return err != 0 ? err : ibv_modify_qp(q->ib, &a, IBV_QP_STATE);
}

int
verbs_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask, enum bb_qp_state to)
{
	const struct bb_dev *dev = qp->ctrl->pd->dev;
	struct verbs_qp *q = verbs_qp_of(qp);
	struct ibv_qp_attr a;
	int ibv_mask = fill(dev, attr, mask, to, &a), err;
	bool open = false;

	/*
	 * Refuse RTR and RTS on iWARP, because there the kernel makes these transitions itself for
	 * librdmacm.
	 */
	if (dev->iwarp && (to == BB_QP_RTR || to == BB_QP_RTS))
		return bb_iwarp_refusal(dev);
	if (to == BB_QP_RESET) {
		open = verbs_post_abort(q);
		verbs_srq_stop(qp);
		verbs_drain_qp(qp);
	}
	/* Makes the next post check the new state. */
	verbs_sq_close(q);
	err = ibv_modify_qp(q->ib, &a, ibv_mask);
	if (err == EINVAL && to == BB_QP_ERR && qp->state == BB_QP_RESET)
		err = reset_to_err(q, qp->ctrl->init.type);
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot modify QP 0x%x from %s to %s: %s%s", dev->name, qp->qpn,
		       bb_qp_state_name(qp->state), bb_qp_state_name(to), strerror(err),
		       err == ENETUNREACH || err == EHOSTUNREACH || err == ETIMEDOUT
			       ? ": check that the peer is in the neighbour table and routed "
				 "through this port"
			       : "");
		if (open)
			verbs_post_lost(&qp->sq, err);
		return -err;
	}
	if (to == BB_QP_RESET) {
		after_reset(qp, q);
	} else if (to == BB_QP_ERR) {
		q->failed = true;
		verbs_own_done(q);
		verbs_drain_qp(qp);
	}
	return 0;
}

int
verbs_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int err = ibv_query_qp(verbs_qp_of(qp)->ib, &a, IBV_QP_STATE, &init);

	if (err != 0) {
		BB_LOG(ERR, "%s: cannot query QP 0x%x: %s", qp->ctrl->pd->dev->name, qp->qpn,
		       strerror(err));
		return -err;
	}
	attr->state = state_from(a.qp_state);
	/*
	 * siw does not report the state: Linux 6.1 leaves it 0 (RESET), 6.12 reports siw's IDLE as
	 * INIT. So return the state that this driver has set.
	 */
	if (qp->ctrl->pd->dev->iwarp && (attr->state == BB_QP_RESET || attr->state == BB_QP_INIT))
		attr->state = qp->state;
	return 0;
}

void
verbs_qp_stop(struct bb_qp *qp, const char *what, int err)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	struct verbs_qp *q = verbs_qp_of(qp);

	if (what != NULL)
		BB_LOG(ERR, "QP 0x%x: the provider rejected %s: %s%s; the QP goes to ERR", qp->qpn,
		       what, strerror(err),
		       err == EIO && verbs_gone(verbs_dev_of(qp->ctrl->pd->dev), err) == 0
			       ? ": the device is gone"
			       : "");
	q->failed = true;
	(void)ibv_modify_qp(q->ib, &a, IBV_QP_STATE);
}

void
verbs_srq_stop(struct bb_qp *qp)
{
	if (qp->ctrl->init.srq != NULL && (qp->state == BB_QP_RTR || qp->state == BB_QP_RTS))
		verbs_qp_stop(qp, NULL, 0);
}
