/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion queues: create, destroy, reserve CQEs for queues, purge. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "bb_channel.h"
#include "bb_core.h"
#include "bb_post.h"

static int
cq_attr_check(const struct bb_dev *dev, const struct bb_cq_attr *attr, uint32_t layout)
{
	int ret;

	ret = bb_layout_check(layout);
	if (ret == 0)
		ret = bb_attr_size_check(attr->size, sizeof(*attr), "bb_cq_attr_init");
	if (ret == 0)
		ret = bb_limit_check(dev, "CQ depth", attr->depth, 1, dev->attr.max_cqe);
	if (ret == 0)
		ret = bb_limit_check(dev, "completion vector", attr->comp_vector, 0,
				     dev->attr.comp_vectors - 1);
	if (ret != 0)
		return ret;
	if (attr->channel != NULL && attr->channel->dev != dev) {
		BB_LOG(ERR, "%s: CQ not created: its channel belongs to another device", dev->name);
		return -EINVAL;
	}
	return 0;
}

static int
cq_caps_check(const struct bb_dev *dev, const struct bb_cq_attr *attr)
{
	if (attr->compress && attr->timestamps) {
		BB_LOG(ERR,
		       "%s: CQ not created: compressed CQEs have no timestamps; set either "
		       "compress or timestamps",
		       dev->name);
		return -EINVAL;
	}
	if (attr->compress && !dev->attr.cqe_compression) {
		BB_LOG(ERR,
		       "%s: CQ not created: the device cannot compress CQEs; leave "
		       "bb_cq_attr.compress false",
		       dev->name);
		return -ENOTSUP;
	}
	if (attr->timestamps && dev->attr.clock_hz == 0) {
		BB_LOG(ERR,
		       "%s: CQ not created: the device has no clock for timestamps; leave "
		       "bb_cq_attr.timestamps false",
		       dev->name);
		return -ENOTSUP;
	}
	return 0;
}

int
bb_cq_create_v(struct bb_dev *dev, const struct bb_cq_attr *attr, uint32_t layout,
	       struct bb_cq **out)
{
	struct bb_cq *cq;
	uint32_t owner;
	int ret;

	if (dev == NULL || attr == NULL || out == NULL)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret == 0)
		ret = cq_attr_check(dev, attr, layout);
	if (ret == 0)
		ret = cq_caps_check(dev, attr);
	if (ret != 0)
		return ret;
	ret = bb_lcore_resolve(attr->lcore, &owner);
	if (ret != 0)
		return ret;

	cq = rte_zmalloc("bb_cq", sizeof(*cq), BB_CACHE_LINE);
	if (cq == NULL) {
		BB_LOG(ERR, "%s: no EAL memory for a CQ: give EAL more, with -m or hugepages",
		       dev->name);
		return -ENOMEM;
	}
	ret = -ENOMEM;
	cq->ctrl = bb_alloc(dev, "a CQ", sizeof(*cq->ctrl));
	if (cq->ctrl == NULL)
		goto free_cq;
	cq->ctrl->dev = dev;
	cq->ctrl->cq = cq;
	cq->ctrl->channel = attr->channel;
	cq->ctrl->compress = attr->compress;
	cq->owner = owner;
	cq->qps = dev->qps;
	cq->qps_mask = BB_MAX_USER_INDEX;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->cq_create(cq, attr);
	if (ret == 0) {
		cq->ring.compress = attr->compress;
		dev->cqs++;
		LIST_INSERT_HEAD(&dev->cq_list, cq->ctrl, link);
		if (attr->channel != NULL) {
			attr->channel->cqs++;
			/*
			 * A CQ without arm_reg gets its events from libibverbs. These arrive
			 * without calls of the CQ's owner, so bb_channel_wait() need not run the
			 * device.
			 */
			attr->channel->run |= cq->progress != NULL && cq->arm_reg != NULL;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		goto free_ctrl;
	*out = cq;
	return 0;

free_ctrl:
	free(cq->ctrl);
free_cq:
	rte_free(cq);
	return ret;
}

int
bb_cq_destroy(struct bb_cq *cq)
{
	struct bb_dev *dev;
	int ret;

	if (cq == NULL)
		return -EINVAL;
	dev = cq->ctrl->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	if (cq->ctrl->queues != 0) {
		BB_LOG(ERR,
		       "%s: CQ 0x%x is not destroyed: %u queue%s complete%s into it; destroy "
		       "their QPs first",
		       dev->name, cq->cqn, cq->ctrl->queues, BB_PLURAL(cq->ctrl->queues),
		       cq->ctrl->queues == 1 ? "s" : "");
		ret = -EBUSY;
	} else {
		ret = dev->drv->cq_destroy(cq);
		if (ret == 0) {
			dev->cqs--;
			LIST_REMOVE(cq->ctrl, link);
			if (cq->ctrl->channel != NULL)
				cq->ctrl->channel->cqs--;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		return ret;
	free(cq->ctrl);
	rte_free(cq);
	return 0;
}

uint32_t
bb_cq_depth(const struct bb_cq *cq)
{
	return cq->ctrl->depth;
}

int
bb_cq_stats_v(const struct bb_cq *cq, struct bb_cq_stats *stats)
{
	struct bb_cq_stats now = {0};

	if (cq == NULL || stats == NULL)
		return -EINVAL;
	now.cqes = bb_count_get(&cq->ring.ci) + bb_count_get(&cq->more);
	now.errors = bb_count_get(&cq->ctrl->errors);
	now.purged = bb_count_get(&cq->ctrl->purged);
	return bb_out(stats, &now, sizeof(now));
}

int
bb_cq_attach(struct bb_cq *cq, uint32_t depth, const char *queue)
{
	struct bb_cq_ctrl *ctrl = cq->ctrl;

	if (depth > ctrl->depth - ctrl->reserved) {
		BB_LOG(ERR,
		       "%s: the CQ is too small for the %s: its depth is %u, of which %u CQEs "
		       "are reserved for %u other queue%s, and this queue needs %u; create the "
		       "CQ with a depth of at least %llu",
		       ctrl->dev->name, queue, ctrl->depth, ctrl->reserved, ctrl->queues,
		       BB_PLURAL(ctrl->queues), depth, (unsigned long long)ctrl->reserved + depth);
		return -ENOSPC;
	}
	ctrl->reserved += depth;
	ctrl->queues++;
	return 0;
}

void
bb_cq_detach(struct bb_cq *cq, uint32_t depth)
{
	cq->ctrl->reserved -= depth;
	cq->ctrl->queues--;
}

/*
 * Closes the gaps that purged CQEs leave in the ring. The function moves the other CQEs towards the
 * newest, then frees the slots at the front. Gaps would occupy slots that are reserved for the next
 * queue. Each slot keeps its owner bit. The device writes only after the newest valid CQE.
 */
void
bb_cq_compact(struct bb_cq *cq)
{
	struct bb_cqring end = cq->ring;
	uint64_t i;
	uint32_t freed = 0;

	while (end.ci - cq->ring.ci <= cq->ring.mask && bb_cqring_peek(&end) != NULL)
		end.ci++;
	for (i = end.ci; i != cq->ring.ci;) {
		struct bb_cqe *src, *dst;
		uint8_t own;

		i--;
		src = (struct bb_cqe *)(void *)cq->ring.buf + (i & cq->ring.mask);
		if ((bb_be32(src->srqn_uidx) & 0xffffff) == BB_CQE_NO_USER) {
			freed++;
			continue;
		}
		if (freed == 0)
			continue;
		dst = (struct bb_cqe *)(void *)cq->ring.buf + ((i + freed) & cq->ring.mask);
		own = bb_cqe_own_load(&dst->op_own) & 1;
		memcpy(dst, src, offsetof(struct bb_cqe, op_own));
		bb_cqe_own_store(&dst->op_own, (uint8_t)((src->op_own & ~1u) | own));
	}
	if (freed != 0) {
		bb_cqring_seek(&cq->ring, cq->ring.ci + freed);
		bb_count_add(&cq->more, -(uint64_t)freed);
		bb_dma_wmb();
		bb_cqring_update(&cq->ring);
	}
}

/*
 * For each CQE of the QP that is about to be dropped, returns the receive to the SRQ. Otherwise no
 * poll would ever free these receives.
 */
static void
srq_reclaim(struct bb_cq *cq, const struct bb_qp *qp, struct bb_srq *srq)
{
	struct bb_cqring walk = cq->ring;
	uint64_t wr_id;
	uint32_t i;

	for (i = 0; i <= cq->ring.mask; i++, walk.ci++) {
		const struct bb_cqe *cqe = bb_cqring_peek(&walk);
		uint8_t opcode;

		if (cqe == NULL)
			return;
		opcode = cqe->op_own >> 4;
		if ((bb_be32(cqe->srqn_uidx) & 0xffffff) != qp->user_index ||
		    opcode == BB_CQE_REQ || opcode == BB_CQE_REQ_ERR)
			continue;
		if (bb_srqring_complete(&srq->ring, bb_be16(cqe->wqe_counter), &wr_id))
			srq->ctrl->completed++;
	}
}

void
bb_cq_purge(struct bb_cq *cq, const struct bb_qp *qp)
{
	uint32_t n;

	if (qp->ctrl->init.srq != NULL)
		srq_reclaim(cq, qp, qp->ctrl->init.srq);
	n = bb_cqring_purge(&cq->ring, qp->user_index);

	if (n == 0)
		return;
	bb_count_add(&cq->ctrl->purged, n);
	bb_cq_compact(cq);
}
