/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queue pairs: create, destroy, query. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "bb_core.h"
#include "bb_mem_table.h"

static int
refuse(const struct bb_dev *dev, const char *why)
{
	BB_LOG(ERR, "%s: QP not created: %s", dev->name, why);
	return -EINVAL;
}

static int
cqs_check(const struct bb_dev *dev, const struct bb_qp_init_attr *attr)
{
	if (attr->send_cq == NULL || attr->recv_cq == NULL)
		return refuse(dev, "send_cq is NULL, or recv_cq is NULL although rq_depth or srq "
				   "is set");
	if (attr->send_cq->ctrl->dev != dev || attr->recv_cq->ctrl->dev != dev)
		return refuse(dev, "send_cq or recv_cq belongs to another device");
	if (attr->send_cq->owner != attr->recv_cq->owner)
		return refuse(dev, "send_cq and recv_cq have different owners; one thread must "
				   "own a QP and its CQs");
	if (attr->srq != NULL && attr->srq->ctrl->pd->dev != dev)
		return refuse(dev, "the SRQ belongs to another device");
	if (attr->srq != NULL && attr->srq->ctrl->attr.lcore != attr->recv_cq->owner)
		return refuse(dev, "the SRQ and the CQs have different owners; one thread must "
				   "own an SRQ and all its QPs");
	/*
	 * A compressed CQE has no WQE index. The index is computed by counting up from the block's
	 * first CQE, because the receives of one queue complete in order. No public source says
	 * that this is also true for a queue from which several QPs consume receives, so an SRQ is
	 * rejected here.
	 */
	if (attr->srq != NULL && attr->recv_cq->ctrl->compress)
		return refuse(dev, "recv_cq is compressed, and compressed CQEs cannot name a "
				   "receive of an SRQ: give a recv_cq without compress");
	if (attr->send_cq->ctrl->compress)
		return refuse(dev, "send_cq is compressed, and only receives complete with "
				   "compressed CQEs: give a send_cq without compress");
	return 0;
}

/* Checks the requested attributes and fills in the defaults. */
static int
attr_resolve(const struct bb_dev *dev, struct bb_qp_init_attr *attr)
{
	const struct bb_dev_attr *max = &dev->attr;
	int ret;

	if (attr->type != BB_QPT_RC && attr->type != BB_QPT_UC && attr->type != BB_QPT_UD)
		return refuse(dev, "invalid type: give BB_QPT_RC, BB_QPT_UC or BB_QPT_UD");
	if (attr->db_mode != BB_DB_DOORBELL && attr->db_mode != BB_DB_BLUEFLAME)
		return refuse(dev, "invalid db_mode: give BB_DB_DOORBELL or BB_DB_BLUEFLAME");
	/*
	 * With an SRQ the receive limits are ignored, as man ibv_create_qp says for max_recv_wr and
	 * max_recv_sge.
	 */
	if (attr->srq != NULL) {
		attr->rq_depth = 0;
		attr->max_recv_sge = 0;
	} else if (attr->recv_cq == NULL && attr->rq_depth == 0) {
		attr->recv_cq = attr->send_cq;
	}
	ret = cqs_check(dev, attr);
	if (ret == 0)
		ret = bb_limit_check(dev, "sq_depth", attr->sq_depth, 1, max->max_qp_wr);
	if (ret == 0)
		ret = bb_limit_check(dev, "rq_depth", attr->rq_depth, 0, max->max_qp_wr);
	if (ret == 0)
		ret = bb_limit_check(dev, "max_sge", attr->max_sge, 0, max->max_sge);
	if (ret == 0)
		ret = bb_limit_check(dev, "max_recv_sge", attr->max_recv_sge, 0, max->max_recv_sge);
	if (ret == 0)
		ret = bb_limit_check(dev, "max_inline", attr->max_inline, 0, max->max_inline);
	if (ret == 0)
		ret = bb_limit_check(dev, "signal_every", attr->signal_every, 0, attr->sq_depth);
	if (ret != 0)
		return ret;
	if (attr->signal_all && attr->signal_every > 1)
		return refuse(dev, "signal_all already requests a CQE for every WQE: set "
				   "signal_every to 0");
	if (attr->signal_all)
		attr->signal_every = 1;
	if (attr->signal_every == 0)
		attr->signal_every = attr->sq_depth < 4 ? 1 : attr->sq_depth / 4;
	if (max->bf_size == 0)
		attr->db_mode = BB_DB_DOORBELL;
	return 0;
}

/*
 * Allocates a free slot of the QP table. The search starts where the last search ended, so a slot
 * is reused as late as possible. A late CQE of a destroyed QP then finds an empty slot.
 */
static int
user_index_take(struct bb_dev *dev, uint32_t *index)
{
	uint32_t i, idx = dev->qps_next;

	for (i = 0; i < BB_MAX_USER_INDEX; i++) {
		if (dev->qps[idx] == NULL) {
			dev->qps_next = idx == BB_MAX_USER_INDEX ? 1 : idx + 1;
			*index = idx;
			return 0;
		}
		idx = idx == BB_MAX_USER_INDEX ? 1 : idx + 1;
	}
	BB_LOG(ERR,
	       "%s: QP not created: all %u user indexes of the device are in use; destroy a "
	       "QP first",
	       dev->name, BB_MAX_USER_INDEX);
	return -ENOMEM;
}

/* Returns true if a QP without SRQ uses its recv_cq: for receives, or as a CQ of its own. */
static bool
uses_recv_cq(const struct bb_qp_init_attr *attr)
{
	return attr->rq_depth != 0 || attr->recv_cq != attr->send_cq;
}

static int
credits_take(const struct bb_qp_init_attr *attr)
{
	int ret = bb_cq_attach(attr->send_cq, attr->sq_depth, "send queue");

	if (ret != 0)
		return ret;
	if (attr->srq != NULL)
		ret = bb_srq_attach(attr->srq, attr->recv_cq);
	else if (uses_recv_cq(attr))
		ret = bb_cq_attach(attr->recv_cq, attr->rq_depth, "receive queue");
	if (ret != 0)
		bb_cq_detach(attr->send_cq, attr->sq_depth);
	return ret;
}

static void
credits_give(const struct bb_qp_init_attr *attr)
{
	if (attr->srq != NULL)
		bb_srq_detach(attr->srq, attr->recv_cq);
	else if (uses_recv_cq(attr))
		bb_cq_detach(attr->recv_cq, attr->rq_depth);
	bb_cq_detach(attr->send_cq, attr->sq_depth);
}

/* Creates the device object, the rings and the table entry of a QP; call with dev->lock held. */
static int
qp_make(struct bb_pd *pd, const struct bb_qp_init_attr *attr, struct bb_qp *qp)
{
	struct bb_dev *dev = pd->dev;
	struct bb_qp_ctrl *ctrl = qp->ctrl;
	int ret;

	ctrl->pd = pd;
	ctrl->send_cq = attr->send_cq;
	ctrl->recv_cq = attr->recv_cq;
	ctrl->init = *attr;
	ctrl->attr.size = sizeof(ctrl->attr);
	LIST_INIT(&ctrl->mcasts);
	qp->state = BB_QP_RESET;
	ret = credits_take(attr);
	if (ret != 0)
		return ret;
	ret = user_index_take(dev, &qp->user_index);
	if (ret != 0)
		goto give_credits;
	ret = dev->drv->qp_create(qp, attr);
	if (ret != 0)
		goto give_credits;
	/* A QP without a receive queue needs rq.qpn only for the log line of a rejected post. */
	if (attr->rq_depth == 0) {
		qp->rq.qpn = qp->qpn;
		qp->rq.owner = attr->recv_cq->owner;
	}
	qp->rq.connected = attr->type != BB_QPT_UD;
	dev->qps[qp->user_index] = qp;
	dev->qps_used++;
	pd->qps++;
	return 0;

give_credits:
	credits_give(attr);
	return ret;
}

int
bb_qp_create_v(struct bb_pd *pd, const struct bb_qp_init_attr *attr, uint32_t layout,
	       struct bb_qp **out)
{
	struct bb_qp_init_attr init;
	struct bb_dev *dev;
	struct bb_qp *qp;
	int ret;

	if (pd == NULL || attr == NULL || out == NULL)
		return -EINVAL;
	dev = pd->dev;
	ret = bb_process_owns(dev);
	if (ret == 0)
		ret = bb_layout_check(layout);
	if (ret == 0)
		ret = bb_attr_size_check(attr->size, sizeof(*attr), "bb_qp_init_attr_init");
	if (ret != 0)
		return ret;
	init = *attr;
	ret = attr_resolve(dev, &init);
	if (ret != 0)
		return ret;

	qp = rte_zmalloc("bb_qp", sizeof(*qp), BB_CACHE_LINE);
	if (qp == NULL) {
		BB_LOG(ERR, "%s: no EAL memory for a QP: give EAL more, with -m or hugepages",
		       dev->name);
		return -ENOMEM;
	}
	qp->ctrl = bb_alloc(dev, "a QP", sizeof(*qp->ctrl));
	if (qp->ctrl == NULL) {
		rte_free(qp);
		return -ENOMEM;
	}
	pthread_mutex_lock(&dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = qp_make(pd, &init, qp);
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		free(qp->ctrl);
		rte_free(qp);
		return ret;
	}
	*out = qp;
	return 0;
}

int
bb_qp_destroy(struct bb_qp *qp)
{
	struct bb_qp_ctrl *ctrl;
	struct bb_dev *dev;
	int ret;

	if (qp == NULL)
		return -EINVAL;
	ctrl = qp->ctrl;
	dev = ctrl->pd->dev;
	ret = bb_process_owns(dev);
	if (ret == 0)
		ret = bb_qp_unowned(qp, "bb_qp_destroy()");
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	(void)bb_mem_reap_locked(ctrl->pd);
	ret = bb_qp_mcast_none(qp);
	/* Destroys the device object first, so that no CQE arrives after the purge. */
	if (ret == 0)
		ret = dev->drv->qp_destroy(qp);
	if (ret == 0) {
		bb_cq_purge(ctrl->send_cq, qp);
		if (ctrl->recv_cq != ctrl->send_cq)
			bb_cq_purge(ctrl->recv_cq, qp);
		bb_mw_qp_reset(qp);
		bb_qp_error_clear(qp);
		dev->qps[qp->user_index] = NULL;
		dev->qps_used--;
		credits_give(&ctrl->init);
		ctrl->pd->qps--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		return ret;
	free(ctrl);
	rte_free(qp);
	return 0;
}

int
bb_qp_query_v(struct bb_qp *qp, struct bb_qp_attr *attr)
{
	struct bb_qp_attr tmp;
	struct bb_dev *dev;
	int ret;

	if (qp == NULL || attr == NULL)
		return -EINVAL;
	dev = qp->ctrl->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	tmp = qp->ctrl->attr;
	tmp.state = __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
	ret = dev->drv->qp_query(qp, &tmp);
	/*
	 * Only ERR is copied to qp->state. Another state may be stale, because the owner may have
	 * polled an error CQE after the device replied.
	 */
	if (ret == 0 && tmp.state == BB_QP_ERR)
		bb_qp_failed(qp);
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		return ret;
	return bb_out(attr, &tmp, sizeof(tmp));
}

void
bb_qp_stats_fold(struct bb_qp *qp)
{
	struct bb_qp_stats now;

	(void)bb_qp_stats(qp, &now);
	qp->ctrl->past = now;
	/*
	 * Receives that a reset has dropped count as posted and completed, so that they do not look
	 * outstanding.
	 */
	bb_count_add(&qp->rq.done, now.recv_outstanding);
}

int
bb_qp_stats_v(const struct bb_qp *qp, struct bb_qp_stats *out)
{
	struct bb_qp_stats now = {0}, *stats = &now;
	const struct bb_qp_ctrl *ctrl;
	const struct bb_sq *sq;
	const struct bb_rq *rq;
	uint32_t done, seq, ci;
	uint64_t rung;

	if (qp == NULL || out == NULL)
		return -EINVAL;
	ctrl = qp->ctrl;
	sq = &qp->sq;
	rq = &qp->rq;
	/*
	 * Reads the counters of completed requests before those of posted requests. The owner may
	 * post between the two reads, and the difference must not become negative.
	 */
	done = bb_count_get32(&sq->done);
	rung = bb_count_get(&sq->rung_seq);
	bb_smp_rmb();
	seq = bb_count_get32(&sq->seq);
	stats->posted = ctrl->past.posted + rung + (uint32_t)(seq - (uint32_t)rung) -
			bb_count_get(&sq->extra);
	stats->doorbells = ctrl->past.doorbells + bb_count_get(&sq->doorbells);
	stats->full = ctrl->past.full + bb_count_get(&sq->full) + bb_count_get(&rq->full);
	stats->outstanding = RTE_MIN(seq - done, ctrl->init.sq_depth);
	stats->send_cqes = ctrl->past.send_cqes + bb_count_get(&sq->cqes);
	ci = bb_count_get32(&rq->ci);
	stats->recv_posted = bb_count_get(&rq->done);
	bb_smp_rmb();
	stats->recv_outstanding = RTE_MIN(bb_count_get32(&rq->pi) - ci, ctrl->init.rq_depth);
	stats->recv_posted += stats->recv_outstanding;
	stats->errors = bb_count_get(&ctrl->errors);
	return bb_out(out, &now, sizeof(now));
}

int
bb_qp1_claim(struct bb_qp *qp)
{
	struct bb_dev *dev = qp->ctrl->pd->dev;
	int ret;

	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->qp1_claim(qp);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}
