/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Changes to an existing completion queue: depth and event moderation. */
#include <errno.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "bb_core.h"
#include "bb_post.h"

/* Limits of the two moderation fields: cqc.cq_max_count has 16 bits, cqc.cq_period has 12 bits. */
#define MAX_COUNT  0xffffu
#define MAX_PERIOD 0xfffu

int
bb_cq_arm_slow(struct bb_cq *cq, bool solicited_only)
{
	if (cq->ctrl->channel != NULL)
		return cq->ctrl->dev->drv->cq_arm(cq, solicited_only);
	BB_LOG(ERR, "%s: CQ 0x%x cannot be armed: it was created without a channel",
	       cq->ctrl->dev->name, cq->cqn);
	return -EINVAL;
}

/* Returns the SRQ from which a QP takes receives that complete in the CQ, or NULL. */
static const struct bb_srq *
srq_of(const struct bb_cq *cq, const struct bb_qp *qp)
{
	return qp != NULL && qp->ctrl->recv_cq == cq ? qp->ctrl->init.srq : NULL;
}

/*
 * Returns an upper bound of the CQEs that may still arrive or are unpolled: one for each posted WQE
 * that is not known to be complete. The caller owns all queues of the CQ, so no other thread posts
 * to them during the count. Call with dev->lock held.
 */
static uint64_t
outstanding(const struct bb_cq *cq)
{
	const struct bb_srq *srq;
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i <= cq->qps_mask; i++) {
		const struct bb_qp *qp = cq->qps[i];

		if (qp == NULL)
			continue;
		if (qp->ctrl->send_cq == cq)
			n += bb_sq_outstanding(&qp->sq);
		if (qp->ctrl->recv_cq != cq)
			continue;
		n += qp->rq.pi - qp->rq.ci;
		srq = srq_of(cq, qp);
		if (srq == NULL || srq->ctrl->counted)
			continue;
		n += srq->ring.pi - srq->ring.ci;
		srq->ctrl->counted = true;
	}
	for (i = 0; i <= cq->qps_mask; i++) {
		srq = srq_of(cq, cq->qps[i]);
		if (srq != NULL)
			srq->ctrl->counted = false;
	}
	return n;
}

/* Checks whether the CQ can have the new depth; call with dev->lock held. */
static int
resize_check(const struct bb_cq *cq, uint32_t depth)
{
	const struct bb_cq_ctrl *ctrl = cq->ctrl;
	const struct bb_dev *dev = ctrl->dev;
	uint64_t out;

	if (!dev->attr.cq_resize) {
		BB_LOG(ERR,
		       "%s: CQ 0x%x is not resized: the device cannot resize CQs; create a "
		       "deeper CQ (a card may support it: open it with the option cq_resize, "
		       "which is unproven)",
		       dev->name, cq->cqn);
		return -ENOTSUP;
	}
	if (rte_align32pow2(depth) < ctrl->reserved) {
		BB_LOG(ERR,
		       "%s: CQ 0x%x cannot be resized to %u CQEs: its %u queue%s reserve %u CQEs; "
		       "destroy some of their QPs first",
		       dev->name, cq->cqn, depth, ctrl->queues, BB_PLURAL(ctrl->queues),
		       ctrl->reserved);
		return -EINVAL;
	}
	out = outstanding(cq);
	/*
	 * During the change the CQE that marks the resize occupies one slot of the old and of the
	 * new ring.
	 */
	if (out >= RTE_MIN(ctrl->depth, rte_align32pow2(depth))) {
		BB_LOG(ERR,
		       "%s: CQ 0x%x is not resized from %u to %u CQEs: with %llu requests "
		       "outstanding the device may have no free CQE to signal the change; poll "
		       "the CQ, then call again",
		       dev->name, cq->cqn, ctrl->depth, rte_align32pow2(depth),
		       (unsigned long long)out);
		return -EBUSY;
	}
	return 0;
}

int
bb_cq_resize(struct bb_cq *cq, uint32_t depth)
{
	struct bb_dev *dev;
	int ret;

	if (cq == NULL)
		return -EINVAL;
	dev = cq->ctrl->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	if (depth == 0 || depth > dev->attr.max_cqe) {
		BB_LOG(ERR, "%s: CQ depth %u is out of range: give 1 to %u", dev->name, depth,
		       dev->attr.max_cqe);
		return -EINVAL;
	}
	if (rte_align32pow2(depth) == cq->ctrl->depth)
		return 0;
	pthread_mutex_lock(&dev->lock);
	ret = resize_check(cq, depth);
	if (ret == 0)
		ret = dev->drv->cq_resize(cq, rte_align32pow2(depth));
	if (ret == 0)
		/*
		 * Adds -1: the CQE that marks the end of the old ring does not count as a
		 * completion.
		 */
		bb_count_add(&cq->more, UINT64_MAX);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

int
bb_cq_moderate(struct bb_cq *cq, uint32_t count, uint32_t period_us)
{
	struct bb_dev *dev;
	int ret;

	if (cq == NULL)
		return -EINVAL;
	dev = cq->ctrl->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	if (count > MAX_COUNT || period_us > MAX_PERIOD) {
		BB_LOG(ERR,
		       "%s: CQ 0x%x: event moderation by %u CQEs and %u us is out of range: at "
		       "most %u CQEs and %u us",
		       dev->name, cq->cqn, count, period_us, MAX_COUNT, MAX_PERIOD);
		return -EINVAL;
	}
	if (!dev->attr.cq_moderation) {
		BB_LOG(ERR, "%s: the device does not moderate events of CQs", dev->name);
		return -ENOTSUP;
	}
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->cq_moderate(cq, (uint16_t)count, (uint16_t)period_us);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}
