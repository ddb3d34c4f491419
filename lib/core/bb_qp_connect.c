/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connects a QP with the addresses that two peers have exchanged, by three state transitions in one
 * call.
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "bb_core.h"

void
bb_qp_attr_init(struct bb_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->path_mtu = 1024;
	attr->max_rd_atomic = 16;
	attr->max_dest_rd_atomic = 16;
	attr->min_rnr_timer = 1;
	attr->timeout = 14;
	attr->retry_cnt = 7;
	attr->rnr_retry = 7;
	attr->path.port = 1;
}

int
bb_iwarp_refusal(const struct bb_dev *dev)
{
	BB_LOG(ERR,
	       "%s is iWARP, whose queue pairs are connected only through librdmacm: use "
	       "bb_connect.h or bb_ep.h with BB_CM_RDMACM",
	       dev->name);
	return -ENOTSUP;
}

int
bb_qp_addr(struct bb_qp *qp, uint8_t port, uint8_t sgid_index, struct bb_qp_addr *addr)
{
	struct bb_qp_addr a = {0};
	struct bb_port_attr attr;
	struct bb_gid gid;
	struct bb_dev *dev;
	uint32_t random;
	int ret;

	if (qp == NULL || addr == NULL)
		return -EINVAL;
	dev = qp->ctrl->pd->dev;
	if (dev->iwarp)
		return bb_iwarp_refusal(dev);
	ret = bb_port_query(dev, port, &attr);
	if (ret != 0)
		return ret;
	ret = bb_gid_query(dev, port, sgid_index, &gid);
	if (ret == 0) {
		memcpy(a.gid, gid.raw, sizeof(a.gid));
	} else if (attr.link_layer == BB_LINK_ETHERNET || attr.grh_required) {
		BB_LOG(ERR, "%s: port %u has no GID at index %u: %s needs a GID", dev->name, port,
		       sgid_index, attr.grh_required ? "a port that needs a GRH" : "RoCE");
		return ret;
	}
	a.qpn = qp->qpn;
	/*
	 * The PSN does not come from rte_rand(), because a peer that has seen some numbers of
	 * rte_rand() can compute the next ones.
	 */
	ret = bb_random(dev, &random, sizeof(random));
	if (ret != 0)
		return ret;
	a.psn = random & 0xffffff;
	a.lid = attr.lid;
	a.mtu = (uint16_t)attr.active_mtu;
	*addr = a;
	return 0;
}

/*
 * Moves the QP to INIT, RTR and RTS, each with the attributes of one entry of @masks. Resets the QP
 * on an error.
 */
static int
bring_up(struct bb_qp *qp, const char *caller, struct bb_qp_attr *a, const uint32_t *masks)
{
	static const enum bb_qp_state states[] = {BB_QP_INIT, BB_QP_RTR, BB_QP_RTS};
	struct bb_dev *dev = qp->ctrl->pd->dev;
	int ret = bb_process_owns(dev);
	unsigned int i;

	if (ret != 0)
		return ret;
	if (qp->state != BB_QP_RESET) {
		BB_LOG(ERR, "QP 0x%x is in %s: move it to RESET before %s", qp->qpn,
		       bb_qp_state_name(qp->state), caller);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	for (i = 0; i < RTE_DIM(states) && ret == 0; i++) {
		a->state = states[i];
		ret = bb_qp_modify_locked(qp, a, BB_QP_STATE | masks[i]);
	}
	if (ret != 0 && qp->state != BB_QP_RESET) {
		a->state = BB_QP_RESET;
		(void)bb_qp_modify_locked(qp, a, BB_QP_STATE);
	}
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

/*
 * Sets is_global if the port requires a GRH. On RoCE every path has a GRH, so nothing is changed
 * there.
 */
static int
grh_where_required(struct bb_dev *dev, struct bb_path *path)
{
	struct bb_port_attr port;
	int ret;

	if (dev->ethernet)
		return 0;
	ret = bb_port_query(dev, path->port, &port);
	if (ret == 0 && port.grh_required)
		path->is_global = 1;
	return ret;
}

int
bb_qp_unowned(const struct bb_qp *qp, const char *call)
{
	if (qp->ctrl->conn == NULL)
		return 0;
	BB_LOG(ERR,
	       "QP 0x%x: %s: refused because a connection owns the QP; close or destroy the "
	       "connection first",
	       qp->qpn, call);
	return -EBUSY;
}

int
bb_qp_connect_owned(struct bb_qp *qp, const struct bb_qp_addr *local,
		    const struct bb_qp_addr *remote, const struct bb_qp_attr *attr)
{
	static const uint32_t rc[] = {
		BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS,
		BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN |
			BB_QP_MAX_DEST_RD_ATOMIC | BB_QP_MIN_RNR_TIMER,
		BB_QP_TIMEOUT | BB_QP_RETRY_CNT | BB_QP_RNR_RETRY | BB_QP_SQ_PSN |
			BB_QP_MAX_RD_ATOMIC,
	};
	static const uint32_t uc[] = {
		BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS,
		BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN,
		BB_QP_SQ_PSN,
	};
	struct bb_qp_attr a;
	int ret;

	if (qp == NULL || local == NULL || remote == NULL || attr == NULL)
		return -EINVAL;
	if (local->qpn != qp->qpn) {
		BB_LOG(ERR,
		       "QP 0x%x: the local address names QP 0x%x: give this QP's own "
		       "address first, then the peer's",
		       qp->qpn, local->qpn);
		return -EINVAL;
	}
	if (qp->ctrl->init.type == BB_QPT_UD) {
		BB_LOG(ERR, "QP 0x%x is UD, which has no peer: use bb_qp_ud_up()", qp->qpn);
		return -EINVAL;
	}
	a = *attr;
	ret = grh_where_required(qp->ctrl->pd->dev, &a.path);
	if (ret != 0)
		return ret;
	memcpy(a.path.dgid, remote->gid, sizeof(a.path.dgid));
	a.path.dlid = remote->lid;
	a.path_mtu = RTE_MIN(local->mtu, remote->mtu);
	a.dest_qpn = remote->qpn;
	a.rq_psn = remote->psn;
	a.sq_psn = local->psn;
	return bring_up(qp, "bb_qp_connect()", &a, qp->ctrl->init.type == BB_QPT_UC ? uc : rc);
}

int
bb_qp_connect(struct bb_qp *qp, const struct bb_qp_addr *local, const struct bb_qp_addr *remote,
	      const struct bb_qp_attr *attr)
{
	int ret = qp == NULL ? -EINVAL : bb_qp_unowned(qp, "bb_qp_connect()");

	return ret != 0 ? ret : bb_qp_connect_owned(qp, local, remote, attr);
}

int
bb_qp_ud_up(struct bb_qp *qp, uint8_t port, uint16_t pkey_index, uint32_t qkey, uint32_t sq_psn)
{
	static const uint32_t ud[] = {BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_QKEY, 0, BB_QP_SQ_PSN};
	struct bb_qp_attr a;

	if (qp == NULL)
		return -EINVAL;
	if (qp->ctrl->init.type != BB_QPT_UD) {
		BB_LOG(ERR, "QP 0x%x is %s, not UD: use bb_qp_connect()", qp->qpn,
		       bb_qp_type_name(qp->ctrl->init.type));
		return -EINVAL;
	}
	bb_qp_attr_init(&a);
	a.path.port = port;
	a.pkey_index = pkey_index;
	a.qkey = qkey;
	a.sq_psn = sq_psn;
	return bring_up(qp, "bb_qp_ud_up()", &a, ud);
}
