/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The state machine of queue pairs: legal transitions, attributes, ranges. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "bb_core.h"

#define IB_SL_MAX   15
#define ROCE_SL_MAX 7

/*
 * Attributes of each transition. Required attributes: man ibv_modify_qp. Allowed attributes:
 * ib_modify_qp_is_ok() of Linux. Every state may go to RESET and to ERR.
 */
struct transition {
	enum bb_qp_state from, to;
	uint32_t required, optional;
};
#define TRANSITIONS 5
static const struct transition rc_transitions[TRANSITIONS] = {
	{BB_QP_RESET, BB_QP_INIT, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS, 0},
	{BB_QP_INIT, BB_QP_INIT, 0, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS},
	{BB_QP_INIT, BB_QP_RTR,
	 BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN | BB_QP_MAX_DEST_RD_ATOMIC |
		 BB_QP_MIN_RNR_TIMER,
	 BB_QP_ACCESS | BB_QP_PKEY_INDEX},
	{BB_QP_RTR, BB_QP_RTS,
	 BB_QP_TIMEOUT | BB_QP_RETRY_CNT | BB_QP_RNR_RETRY | BB_QP_SQ_PSN | BB_QP_MAX_RD_ATOMIC,
	 BB_QP_ACCESS | BB_QP_MIN_RNR_TIMER},
	{BB_QP_RTS, BB_QP_RTS, 0, BB_QP_ACCESS | BB_QP_MIN_RNR_TIMER},
};
static const struct transition uc_transitions[TRANSITIONS] = {
	{BB_QP_RESET, BB_QP_INIT, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS, 0},
	{BB_QP_INIT, BB_QP_INIT, 0, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS},
	{BB_QP_INIT, BB_QP_RTR, BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN,
	 BB_QP_ACCESS | BB_QP_PKEY_INDEX},
	{BB_QP_RTR, BB_QP_RTS, BB_QP_SQ_PSN, BB_QP_ACCESS},
	{BB_QP_RTS, BB_QP_RTS, 0, BB_QP_ACCESS},
};
static const struct transition ud_transitions[TRANSITIONS] = {
	{BB_QP_RESET, BB_QP_INIT, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_QKEY, 0},
	{BB_QP_INIT, BB_QP_INIT, 0, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_QKEY},
	{BB_QP_INIT, BB_QP_RTR, 0, BB_QP_PKEY_INDEX | BB_QP_QKEY},
	{BB_QP_RTR, BB_QP_RTS, BB_QP_SQ_PSN, BB_QP_QKEY},
	{BB_QP_RTS, BB_QP_RTS, 0, BB_QP_QKEY},
};
static const struct transition *const transitions_of[] = {
	[BB_QPT_RC] = rc_transitions,
	[BB_QPT_UC] = uc_transitions,
	[BB_QPT_UD] = ud_transitions,
};

static const char *const mask_names[] = {
	"BB_QP_STATE",         "BB_QP_ACCESS",    "BB_QP_PKEY_INDEX",
	"BB_QP_PORT",          "BB_QP_PATH",      "BB_QP_PATH_MTU",
	"BB_QP_DEST_QPN",      "BB_QP_RQ_PSN",    "BB_QP_MAX_DEST_RD_ATOMIC",
	"BB_QP_MIN_RNR_TIMER", "BB_QP_SQ_PSN",    "BB_QP_TIMEOUT",
	"BB_QP_RETRY_CNT",     "BB_QP_RNR_RETRY", "BB_QP_MAX_RD_ATOMIC",
	"BB_QP_QKEY",
};

const char *
bb_qp_state_name(enum bb_qp_state state)
{
	static const char *const names[] = {
		[BB_QP_RESET] = "RESET", [BB_QP_INIT] = "INIT", [BB_QP_RTR] = "RTR",
		[BB_QP_RTS] = "RTS",     [BB_QP_SQD] = "SQD",   [BB_QP_ERR] = "ERR",
	};

	return (unsigned int)state < RTE_DIM(names) ? names[state] : "?";
}

/* Returns the name of the attribute with the lowest bit that is set in @mask. @mask is not 0. */
static const char *
mask_name(uint32_t mask)
{
	unsigned int bit = (unsigned int)__builtin_ctz(mask);

	return bit < RTE_DIM(mask_names) ? mask_names[bit] : "an undefined bit";
}

static int
transition_check(const struct bb_qp *qp, uint32_t mask, enum bb_qp_state to)
{
	const char *from_name = bb_qp_state_name(qp->state), *to_name = bb_qp_state_name(to);
	uint32_t required = 0, optional = 0, given = mask & ~(uint32_t)BB_QP_STATE;
	const struct transition *transitions = transitions_of[qp->ctrl->init.type];
	const char *type = bb_qp_type_name(qp->ctrl->init.type);
	bool legal = to == BB_QP_RESET || to == BB_QP_ERR;
	unsigned int i;

	if (to == BB_QP_SQD) {
		BB_LOG(ERR,
		       "QP 0x%x: state SQD is not supported: to drain the QP, stop posting and "
		       "poll until bb_qp_drain() returns 0",
		       qp->qpn);
		return -ENOTSUP;
	}
	for (i = 0; i < TRANSITIONS; i++) {
		if (transitions[i].from == qp->state && transitions[i].to == to) {
			legal = true;
			required = transitions[i].required;
			optional = transitions[i].optional;
		}
	}
	if (!legal) {
		BB_LOG(ERR,
		       "QP 0x%x: no transition from %s to %s: the order is RESET, INIT, "
		       "RTR, RTS",
		       qp->qpn, from_name, to_name);
		return -EINVAL;
	}
	if ((required & ~given) != 0) {
		BB_LOG(ERR,
		       "QP 0x%x: the transition from %s to %s lacks attribute %s, which %s "
		       "needs",
		       qp->qpn, from_name, to_name, mask_name(required & ~given), type);
		return -EINVAL;
	}
	if ((given & ~(required | optional)) != 0) {
		BB_LOG(ERR,
		       "QP 0x%x: the transition from %s to %s does not allow attribute %s "
		       "on %s",
		       qp->qpn, from_name, to_name, mask_name(given & ~(required | optional)),
		       type);
		return -EINVAL;
	}
	return 0;
}

static int
out_of_range_of(const char *what, const char *name, uint32_t value, const char *range)
{
	BB_LOG(ERR, "%s: invalid %s %u: %s", what, name, value, range);
	return -EINVAL;
}

static int
out_of_range(const struct bb_qp *qp, const char *name, uint32_t value, const char *range)
{
	char what[16];

	snprintf(what, sizeof(what), "QP 0x%x", qp->qpn);
	return out_of_range_of(what, name, value, range);
}

/* Checks the ranges of the attributes that do not depend on the port. */
static int
numbers_check(const struct bb_qp *qp, const struct bb_qp_attr *a, uint32_t mask)
{
	const struct bb_dev_attr *dev = &qp->ctrl->pd->dev->attr;
	const uint32_t rights = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE |
				BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC;

	if ((mask & BB_QP_ACCESS) && (a->access & ~rights) != 0)
		return out_of_range(qp, "access", a->access,
				    "only LOCAL_WRITE and REMOTE_* rights "
				    "are allowed");
	if ((mask & BB_QP_ACCESS) && (a->access & BB_ACCESS_REMOTE_ATOMIC) && !dev->atomics)
		return out_of_range(qp, "access", a->access, "the device has no atomics");
	if ((mask & BB_QP_PORT) && (a->path.port < 1 || a->path.port > dev->ports))
		return out_of_range(qp, "path.port", a->path.port,
				    "the device has no such port "
				    "(bb_dev_query())");
	if ((mask & BB_QP_DEST_QPN) && a->dest_qpn > 0xffffff)
		return out_of_range(qp, "dest_qpn", a->dest_qpn, "at most 24 bits");
	if ((mask & BB_QP_RQ_PSN) && a->rq_psn > 0xffffff)
		return out_of_range(qp, "rq_psn", a->rq_psn, "at most 24 bits");
	if ((mask & BB_QP_SQ_PSN) && a->sq_psn > 0xffffff)
		return out_of_range(qp, "sq_psn", a->sq_psn, "at most 24 bits");
	if ((mask & BB_QP_MAX_RD_ATOMIC) && a->max_rd_atomic > dev->max_rd_atomic)
		return out_of_range(qp, "max_rd_atomic", a->max_rd_atomic,
				    "more than the device's max_rd_atomic (bb_dev_query())");
	if ((mask & BB_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > dev->max_dest_rd_atomic)
		return out_of_range(qp, "max_dest_rd_atomic", a->max_dest_rd_atomic,
				    "more than the device's max_dest_rd_atomic (bb_dev_query())");
	if ((mask & BB_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return out_of_range(qp, "min_rnr_timer", a->min_rnr_timer, "give 0 to 31");
	if ((mask & BB_QP_TIMEOUT) && a->timeout > 31)
		return out_of_range(qp, "timeout", a->timeout, "give 0 to 31");
	if ((mask & BB_QP_RETRY_CNT) && a->retry_cnt > 7)
		return out_of_range(qp, "retry_cnt", a->retry_cnt, "give 0 to 7");
	if ((mask & BB_QP_RNR_RETRY) && a->rnr_retry > 7)
		return out_of_range(qp, "rnr_retry", a->rnr_retry, "give 0 to 7");
	return 0;
}

int
bb_path_check(struct bb_dev *dev, const char *what, const struct bb_path *p,
	      const struct bb_port_attr *port)
{
	bool roce = port->link_layer == BB_LINK_ETHERNET;
	static const uint8_t none[16];
	struct bb_gid gid;
	int ret;

	if (p->flow_label > 0xfffff)
		return out_of_range_of(what, "path.flow_label", p->flow_label, "at most 20 bits");
	if (p->sl > (roce ? ROCE_SL_MAX : IB_SL_MAX))
		return out_of_range_of(what, "path.sl", p->sl,
				       roce ? "give 0 to 7" : "give 0 to 15");
	if (p->src_path_bits > (roce ? 0 : 127))
		return out_of_range_of(what, "path.src_path_bits", p->src_path_bits,
				       roce ? "give 0 on Ethernet" : "give 0 to 127");
	if (!roce && p->dlid == 0)
		return out_of_range_of(what, "path.dlid", p->dlid,
				       "InfiniBand needs the peer's LID");
	if (!roce && !p->is_global && port->grh_required)
		return out_of_range_of(what, "path.is_global", 0,
				       "this port needs a GRH: give 1 and the peer's GID");
	if (!roce && !p->is_global)
		return 0;
	/*
	 * The all-zero GID is reserved and belongs to no port, so it is not a valid destination
	 * (IBTA vol. 1, 4.1.1).
	 */
	if (memcmp(p->dgid, none, sizeof(none)) == 0)
		return out_of_range_of(what, "path.dgid", 0,
				       roce ? "RoCE needs the peer's GID here"
					    : "a GRH needs the peer's GID");
	if (p->sgid_index >= port->gids)
		return out_of_range_of(what, "path.sgid_index", p->sgid_index,
				       "the port has fewer GIDs");
	ret = dev->drv->gid_query(dev, p->port, p->sgid_index, &gid);
	if (ret == -ENOENT)
		return out_of_range_of(what, "path.sgid_index", p->sgid_index,
				       "that entry of the GID table is empty");
	return ret;
}

static int
path_check(const struct bb_qp *qp, const struct bb_path *p, const struct bb_port_attr *port)
{
	char what[16];

	if (p->port != qp->ctrl->attr.path.port)
		return out_of_range(qp, "path.port", p->port, "the QP got another port at INIT");
	/* Rates 2 to 23 are IB_RATE_2_5_GBPS to IB_RATE_800_GBPS (mlx5r_ib_rate() in Linux). */
	if (p->static_rate == 1 || p->static_rate > 23)
		return out_of_range(qp, "path.static_rate", p->static_rate, "give 0, or 2 to 23");
	snprintf(what, sizeof(what), "QP 0x%x", qp->qpn);
	return bb_path_check(qp->ctrl->pd->dev, what, p, port);
}

/* Checks pkey_index. Index 0 is valid on every port. */
static int
pkey_check(const struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask)
{
	struct bb_dev *dev = qp->ctrl->pd->dev;
	struct bb_port_attr port = {0};
	int ret;

	if ((mask & BB_QP_PKEY_INDEX) == 0 || attr->pkey_index == 0)
		return 0;
	ret = dev->drv->port_query(
		dev, (mask & BB_QP_PORT) ? attr->path.port : qp->ctrl->attr.path.port, &port);
	if (ret == 0 && attr->pkey_index >= port.pkeys)
		return out_of_range(qp, "pkey_index", attr->pkey_index,
				    "the port has fewer P_Keys");
	return ret;
}

static bool
mtu_valid(uint32_t mtu)
{
	return mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0;
}

int
bb_qp_modify_check(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
		   enum bb_qp_state to)
{
	struct bb_dev *dev = qp->ctrl->pd->dev;
	struct bb_port_attr port = {0};
	int ret;

	ret = transition_check(qp, mask, to);
	if (ret != 0)
		return ret;
	ret = numbers_check(qp, attr, mask);
	if (ret != 0)
		return ret;
	ret = pkey_check(qp, attr, mask);
	if (ret != 0)
		return ret;
	if ((mask & (BB_QP_PATH | BB_QP_PATH_MTU)) == 0)
		return 0;

	ret = dev->drv->port_query(dev, qp->ctrl->attr.path.port, &port);
	if (ret != 0)
		return ret;
	if ((mask & BB_QP_PATH_MTU) &&
	    (!mtu_valid(attr->path_mtu) || attr->path_mtu > port.active_mtu))
		return out_of_range(qp, "path_mtu", attr->path_mtu,
				    "give 256, 512, 1024, 2048 or 4096, at most the port's "
				    "active MTU");
	return (mask & BB_QP_PATH) ? path_check(qp, &attr->path, &port) : 0;
}

/* Stores the attributes that were set; queries and the driver's next transition read them. */
static void
attr_merge(struct bb_qp_attr *to, const struct bb_qp_attr *from, uint32_t mask)
{
	if (mask & BB_QP_ACCESS)
		to->access = from->access;
	if (mask & BB_QP_PKEY_INDEX)
		to->pkey_index = from->pkey_index;
	if (mask & BB_QP_PORT)
		to->path.port = from->path.port;
	if (mask & BB_QP_PATH)
		to->path = from->path;
	if (mask & BB_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & BB_QP_DEST_QPN)
		to->dest_qpn = from->dest_qpn;
	if (mask & BB_QP_RQ_PSN)
		to->rq_psn = from->rq_psn;
	if (mask & BB_QP_SQ_PSN)
		to->sq_psn = from->sq_psn;
	if (mask & BB_QP_MAX_RD_ATOMIC)
		to->max_rd_atomic = from->max_rd_atomic;
	if (mask & BB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if (mask & BB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & BB_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & BB_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & BB_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
	if (mask & BB_QP_QKEY)
		to->qkey = from->qkey;
}

/*
 * Resets the library's state of a QP (CQEs, rings, attributes) after the device has reset the QP.
 */
static void
after_reset(struct bb_qp *qp)
{
	struct bb_qp_ctrl *ctrl = qp->ctrl;

	bb_cq_purge(ctrl->send_cq, qp);
	if (ctrl->recv_cq != ctrl->send_cq)
		bb_cq_purge(ctrl->recv_cq, qp);
	bb_qp_stats_fold(qp);
	bb_mw_qp_reset(qp);
	bb_sq_reset(&qp->sq);
	if (ctrl->init.rq_depth != 0)
		bb_rq_reset(&qp->rq);
	memset(&ctrl->attr, 0, sizeof(ctrl->attr));
	ctrl->attr.size = sizeof(ctrl->attr);
	ctrl->error_logged = false;
	bb_qp_error_clear(qp);
	ctrl->send_error = 0;
	__atomic_store_n(&ctrl->send_failed, false, __ATOMIC_RELAXED);
	memset(&ctrl->recovery, 0, sizeof(ctrl->recovery));
}

static void
enable(struct bb_qp *qp, enum bb_qp_state state)
{
	if (state == BB_QP_RTS || state == BB_QP_ERR)
		bb_sq_enable(&qp->sq, true);
	if (qp->ctrl->init.rq_depth != 0)
		bb_rq_enable(&qp->rq);
}

int
bb_qp_modify_locked(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask)
{
	struct bb_dev *dev = qp->ctrl->pd->dev;
	enum bb_qp_state to = (mask & BB_QP_STATE) ? attr->state : qp->state;
	int ret;

	ret = bb_attr_size_check(attr->size, sizeof(*attr), "bb_qp_attr_init");
	if (ret != 0)
		return ret;
	ret = bb_qp_modify_check(qp, attr, mask, to);
	if (ret != 0)
		return ret;
	ret = dev->drv->qp_modify(qp, attr, mask, to);
	if (ret != 0)
		return ret;
	if (to == BB_QP_RESET) {
		after_reset(qp);
	} else {
		attr_merge(&qp->ctrl->attr, attr, mask);
		enable(qp, to);
	}
	qp->state = to;
	qp->ctrl->attr.state = to;
	return 0;
}

int
bb_qp_adopt(struct bb_qp *qp)
{
	struct bb_dev *dev = qp->ctrl->pd->dev;
	int ret = 0;

	pthread_mutex_lock(&dev->lock);
	if (!dev->iwarp || qp->state != BB_QP_INIT) {
		ret = -EINVAL;
	} else {
		enable(qp, BB_QP_RTS);
		qp->state = BB_QP_RTS;
		qp->ctrl->attr.state = BB_QP_RTS;
	}
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

int
bb_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask)
{
	struct bb_dev *dev;
	int ret;

	if (qp == NULL || attr == NULL)
		return -EINVAL;
	dev = qp->ctrl->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = bb_qp_modify_locked(qp, attr, mask);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}
