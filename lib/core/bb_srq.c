/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Shared receive queues: create, destroy, limit, and the CQs that receive their completions. */
#include <errno.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "bb_core.h"
#include "bb_mem_table.h"

static int
attr_check(const struct bb_dev *dev, const struct bb_srq_attr *attr, uint32_t layout)
{
	int ret;

	ret = bb_layout_check(layout);
	if (ret == 0)
		ret = bb_attr_size_check(attr->size, sizeof(*attr), "bb_srq_attr_init");
	if (ret != 0)
		return ret;
	if (dev->attr.max_srq == 0 || dev->drv->srq_create == NULL) {
		BB_LOG(ERR, "%s has no shared receive queues: give each QP an rq_depth", dev->name);
		return -ENOTSUP;
	}
	ret = bb_limit_check(dev, "depth", attr->depth, 1, dev->attr.max_srq_wr);
	if (ret == 0)
		ret = bb_limit_check(dev, "max_sge", attr->max_sge, 0, dev->attr.max_srq_sge);
	if (ret == 0)
		ret = bb_limit_check(dev, "limit", attr->limit, 0, attr->depth);
	return ret;
}

/*
 * Creates the device object and the ring of an SRQ; call with dev->lock held. Sets *left after an
 * error if the device object could not be destroyed: its events name @srq.
 */
static int
srq_make(struct bb_srq *srq, bool *left)
{
	struct bb_srq_ctrl *ctrl = srq->ctrl;
	struct bb_dev *dev = ctrl->pd->dev;
	int ret;

	ret = dev->drv->srq_create(srq);
	if (ret != 0 || ctrl->attr.limit == 0)
		return ret;
	ret = dev->drv->srq_modify(srq, ctrl->attr.limit);
	/*
	 * If the SRQ cannot be destroyed, the device may still read its memory, so the memory stays
	 * allocated.
	 */
	if (ret != 0)
		*left = dev->drv->srq_destroy(srq) != 0;
	return ret;
}

int
bb_srq_create_v(struct bb_pd *pd, const struct bb_srq_attr *attr, uint32_t layout,
		struct bb_srq **out)
{
	struct bb_dev *dev;
	struct bb_srq *srq;
	bool left = false;
	uint32_t owner;
	int ret;

	if (pd == NULL || attr == NULL || out == NULL)
		return -EINVAL;
	dev = pd->dev;
	ret = bb_process_owns(dev);
	if (ret == 0)
		ret = attr_check(dev, attr, layout);
	if (ret != 0)
		return ret;
	ret = bb_lcore_resolve(attr->lcore, &owner);
	if (ret != 0)
		return ret;

	srq = rte_zmalloc("bb_srq", sizeof(*srq), BB_CACHE_LINE);
	if (srq == NULL) {
		BB_LOG(ERR, "%s: no EAL memory for an SRQ: give EAL more, with -m or hugepages",
		       dev->name);
		return -ENOMEM;
	}
	srq->ctrl = bb_alloc(dev, "an SRQ", sizeof(*srq->ctrl));
	if (srq->ctrl == NULL) {
		rte_free(srq);
		return -ENOMEM;
	}
	srq->ctrl->pd = pd;
	srq->ctrl->attr = *attr;
	srq->ctrl->attr.lcore = owner;
	LIST_INIT(&srq->ctrl->cqs);
	pthread_mutex_lock(&dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = srq_make(srq, &left);
	if (ret == 0)
		pd->srqs++;
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		if (left)
			return ret;
		free(srq->ctrl);
		rte_free(srq);
		return ret;
	}
	*out = srq;
	return 0;
}

int
bb_srq_destroy(struct bb_srq *srq)
{
	struct bb_srq_ctrl *ctrl;
	struct bb_dev *dev;
	int ret;

	if (srq == NULL)
		return -EINVAL;
	ctrl = srq->ctrl;
	dev = ctrl->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	(void)bb_mem_reap_locked(ctrl->pd);
	if (ctrl->qps != 0) {
		BB_LOG(ERR, "%s: SRQ 0x%x is not destroyed: %u QP%s use%s it; destroy them first",
		       dev->name, srq->srqn, ctrl->qps, BB_PLURAL(ctrl->qps),
		       ctrl->qps == 1 ? "s" : "");
		ret = -EBUSY;
	} else {
		ret = dev->drv->srq_destroy(srq);
		if (ret == 0)
			ctrl->pd->srqs--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		return ret;
	free(ctrl);
	rte_free(srq);
	return 0;
}

int
bb_srq_modify(struct bb_srq *srq, uint32_t new_limit)
{
	struct bb_srq_ctrl *ctrl;
	struct bb_dev *dev;
	int ret;

	if (srq == NULL)
		return -EINVAL;
	ctrl = srq->ctrl;
	dev = ctrl->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	if (new_limit > ctrl->attr.depth) {
		BB_LOG(ERR, "%s: SRQ 0x%x: limit %u is greater than the SRQ's depth: give 0 to %u",
		       dev->name, srq->srqn, new_limit, ctrl->attr.depth);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->srq_modify(srq, new_limit);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

int
bb_srq_query_v(struct bb_srq *srq, struct bb_srq_attr *attr)
{
	struct bb_srq_attr now;
	struct bb_dev *dev;
	uint32_t armed = 0;
	int ret;

	if (srq == NULL || attr == NULL)
		return -EINVAL;
	dev = srq->ctrl->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->srq_query(srq, &armed);
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		return ret;
	now = srq->ctrl->attr;
	now.limit = armed;
	return bb_out(attr, &now, sizeof(now));
}

int
bb_srq_stats_v(const struct bb_srq *srq, struct bb_srq_stats *stats)
{
	struct bb_srq_stats now = {0};

	if (srq == NULL || stats == NULL)
		return -EINVAL;
	now.outstanding = srq->ring.pi - srq->ring.ci;
	now.completed = srq->ctrl->completed;
	now.posted = now.completed + now.outstanding;
	now.full = srq->ring.full;
	now.qps = srq->ctrl->qps;
	return bb_out(stats, &now, sizeof(now));
}

int
bb_srq_attach(struct bb_srq *srq, struct bb_cq *cq)
{
	struct bb_srq_ctrl *ctrl = srq->ctrl;
	struct bb_srq_cq *c;
	int ret;

	LIST_FOREACH(c, &ctrl->cqs, link) {
		if (c->cq == cq)
			break;
	}
	if (c == NULL) {
		c = bb_alloc(ctrl->pd->dev, "a QP of an SRQ", sizeof(*c));
		if (c == NULL)
			return -ENOMEM;
		ret = bb_cq_attach(cq, ctrl->attr.depth, "shared receive queue");
		if (ret != 0) {
			free(c);
			return ret;
		}
		c->cq = cq;
		LIST_INSERT_HEAD(&ctrl->cqs, c, link);
	}
	c->qps++;
	ctrl->qps++;
	return 0;
}

void
bb_srq_detach(struct bb_srq *srq, struct bb_cq *cq)
{
	struct bb_srq_ctrl *ctrl = srq->ctrl;
	struct bb_srq_cq *c = LIST_FIRST(&ctrl->cqs);

	while (c->cq != cq)
		c = LIST_NEXT(c, link);
	ctrl->qps--;
	if (--c->qps != 0)
		return;
	bb_cq_detach(cq, ctrl->attr.depth);
	LIST_REMOVE(c, link);
	free(c);
}
