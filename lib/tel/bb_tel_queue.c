/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Telemetry: queue pairs and completion queues. */
#include <rte_common.h>

#include "bb_tel_dev.h"

static void
each_qp(const struct bb_dev *dev, struct bb_tel_page *page)
{
	uint32_t i;

	for (i = 0; i <= BB_MAX_USER_INDEX; i++)
		if (dev->qps[i] != NULL)
			bb_tel_page_add(page, dev->qps[i]->qpn);
}

static const void *
find_qp(struct bb_dev *dev, uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i <= BB_MAX_USER_INDEX; i++)
		if (dev->qps[i] != NULL && dev->qps[i]->qpn == qpn)
			return dev->qps[i];
	return NULL;
}

static void
add_qp_config(struct rte_tel_data *d, const struct bb_qp *qp)
{
	const struct bb_qp_ctrl *ctrl = qp->ctrl;
	enum bb_qp_state state = __atomic_load_n(&qp->state, __ATOMIC_RELAXED);

	bb_tel_dict_uint(d, "qpn", qp->qpn);
	rte_tel_data_add_dict_string(d, "type", bb_qp_type_name(ctrl->init.type));
	rte_tel_data_add_dict_string(d, "state", bb_qp_state_name(state));
	bb_tel_dict_uint(d, "lcore", ctrl->send_cq->owner);
	bb_tel_dict_uint(d, "send_cqn", ctrl->send_cq->cqn);
	bb_tel_dict_uint(d, "recv_cqn", ctrl->recv_cq->cqn);
	bb_tel_dict_uint(d, "dest_qpn", ctrl->attr.dest_qpn);
	bb_tel_dict_uint(d, "path_mtu", ctrl->attr.path_mtu);
	bb_tel_dict_uint(d, "timeout", ctrl->attr.timeout);
	bb_tel_dict_uint(d, "retry_cnt", ctrl->attr.retry_cnt);
	bb_tel_dict_uint(d, "rnr_retry", ctrl->attr.rnr_retry);
	bb_tel_dict_uint(d, "signal_every", ctrl->init.signal_every);
}

static void
add_qp_stats(struct rte_tel_data *d, const struct bb_qp *qp)
{
	const struct bb_qp_init_attr *init = &qp->ctrl->init;
	struct bb_qp_stats s;
	uint64_t done;

	(void)bb_qp_stats(qp, &s);
	done = s.posted > s.outstanding ? s.posted - s.outstanding : 0;
	bb_tel_dict_uint(d, "sq_depth", init->sq_depth);
	bb_tel_dict_uint(d, "sq_outstanding", s.outstanding);
	bb_tel_dict_uint(d, "sq_occupancy_permille",
			 bb_tel_permille(s.outstanding, init->sq_depth));
	bb_tel_dict_uint(d, "posted", s.posted);
	bb_tel_dict_uint(d, "doorbells", s.doorbells);
	bb_tel_dict_uint(d, "doorbells_per_1000_ops", bb_tel_permille(s.doorbells, s.posted));
	bb_tel_dict_uint(d, "send_cqes", s.send_cqes);
	bb_tel_dict_uint(d, "signalled_per_1000_ops", bb_tel_permille(s.send_cqes, done));
	bb_tel_dict_uint(d, "queue_full", s.full);
	bb_tel_dict_uint(d, "rq_depth", init->rq_depth);
	bb_tel_dict_uint(d, "rq_outstanding", s.recv_outstanding);
	bb_tel_dict_uint(d, "recv_posted", s.recv_posted);
	bb_tel_dict_uint(d, "errors", s.errors);
}

/* Adds the retry counters of a QP if the device has such counters. */
static void
add_qp_retries(struct rte_tel_data *d, const struct bb_qp *qp)
{
	uint64_t retries, rnr_retries;

	if (qp->ctrl->pd->dev->drv->qp_retries(qp, &retries, &rnr_retries) != 0)
		return;
	bb_tel_dict_uint(d, "retries", retries);
	bb_tel_dict_uint(d, "rnr_retries", rnr_retries);
}

static void
add_qp(struct rte_tel_data *d, const void *object)
{
	add_qp_config(d, object);
	add_qp_stats(d, object);
	add_qp_retries(d, object);
}

static const struct bb_tel_kind qps = {
	.list = "qps",
	.none = "the device has no QP of that number: see /bluebell/qp/list",
	.each = each_qp,
	.find = find_qp,
	.add = add_qp,
};

static int
qp_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return bb_tel_list(&qps, params, d);
}

static int
qp_info(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return bb_tel_info(&qps, params, d);
}

static void
each_cq(const struct bb_dev *dev, struct bb_tel_page *page)
{
	const struct bb_cq_ctrl *ctrl;

	LIST_FOREACH(ctrl, &dev->cq_list, link)
		bb_tel_page_add(page, ctrl->cq->cqn);
}

static const void *
find_cq(struct bb_dev *dev, uint32_t cqn)
{
	const struct bb_cq_ctrl *ctrl;

	LIST_FOREACH(ctrl, &dev->cq_list, link)
		if (ctrl->cq->cqn == cqn)
			break;
	return ctrl;
}

static void
add_cq(struct rte_tel_data *d, const void *object)
{
	const struct bb_cq_ctrl *ctrl = object;
	struct bb_cq_stats s;

	(void)bb_cq_stats(ctrl->cq, &s);
	bb_tel_dict_uint(d, "cqn", ctrl->cq->cqn);
	bb_tel_dict_uint(d, "lcore", ctrl->cq->owner);
	bb_tel_dict_uint(d, "depth", ctrl->depth);
	bb_tel_dict_uint(d, "reserved", ctrl->reserved);
	bb_tel_dict_uint(d, "queues", ctrl->queues);
	bb_tel_dict_uint(d, "channel", ctrl->channel != NULL);
	bb_tel_dict_uint(d, "events", __atomic_load_n(&ctrl->cq->arm_sn, __ATOMIC_RELAXED));
	bb_tel_dict_uint(d, "compress", ctrl->compress);
	bb_tel_dict_uint(d, "cqes", s.cqes);
	bb_tel_dict_uint(d, "errors", s.errors);
	bb_tel_dict_uint(d, "purged", s.purged);
}

static const struct bb_tel_kind cqs = {
	.list = "cqs",
	.none = "the device has no CQ of that number: see /bluebell/cq/list",
	.each = each_cq,
	.find = find_cq,
	.add = add_cq,
};

static int
cq_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return bb_tel_list(&cqs, params, d);
}

static int
cq_info(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return bb_tel_info(&cqs, params, d);
}

RTE_INIT(bb_tel_queue_init)
{
	rte_telemetry_register_cmd("/bluebell/qp/list", qp_list,
				   "QP numbers. Parameters: device[,first]");
	rte_telemetry_register_cmd("/bluebell/qp/info", qp_info,
				   "State, occupancy, doorbells, signalling, errors, retries. "
				   "Parameters: device,QP number");
	rte_telemetry_register_cmd("/bluebell/cq/list", cq_list,
				   "CQ numbers. Parameters: device[,first]");
	rte_telemetry_register_cmd("/bluebell/cq/info", cq_info,
				   "Depth, credits, CQEs, errors. Parameters: device,CQ number");
}
