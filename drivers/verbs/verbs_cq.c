/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Completion queues. Each has the provider's CQ and a ring of CQEs, which the driver fills from
 * that CQ.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "verbs_drv.h"

/*
 * Fields of a completion that the driver reads besides status and wr_id. QP_NUM is needed for
 * receives from SRQs.
 */
#define WC_FLAGS                                                                                   \
	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |                    \
	 IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL)

/*
 * Creates an extended CQ. @depth is the capacity that lib/core reserves for queues: attr->depth,
 * rounded up.
 */
static struct ibv_cq_ex *
create_ex(struct verbs_dev *d, struct bb_cq *cq, const struct bb_cq_attr *attr, uint32_t depth,
	  struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex a = {
		.cqe = depth,
		.cq_context = cq,
		.channel = channel,
		.comp_vector = attr->comp_vector,
		.wc_flags = WC_FLAGS | (attr->timestamps ? IBV_WC_EX_WITH_COMPLETION_TIMESTAMP : 0),
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		/* A CQ has one owner, so the provider need not take locks. */
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *ex;

	errno = 0;
	ex = ibv_create_cq_ex(d->ctx, &a);
	if (ex == NULL && (errno == EOPNOTSUPP || errno == EINVAL)) {
		/* The provider may not support the flag, so try again without it. */
		a.comp_mask = 0;
		a.flags = 0;
		errno = 0;
		ex = ibv_create_cq_ex(d->ctx, &a);
	}
	return ex;
}

static int
create(struct verbs_dev *d, struct verbs_cq *c, struct bb_cq *cq, const struct bb_cq_attr *attr,
       uint32_t depth)
{
	struct verbs_channel *h = attr->channel != NULL ? attr->channel->priv : NULL;
	struct ibv_comp_channel *channel = h != NULL ? h->ib : NULL;

	if (!d->no_cq_ex) {
		c->ex = create_ex(d, cq, attr, depth, channel);
		if (c->ex != NULL) {
			c->cq = ibv_cq_ex_to_cq(c->ex);
			return 0;
		}
		if (errno != EOPNOTSUPP && errno != ENOSYS)
			return bb_ibv_errno();
		BB_LOG(INFO,
		       "%s: the provider has no extended CQs: CQs are polled by ibv_poll_cq()",
		       d->ibname);
		d->no_cq_ex = true;
	}
	if (attr->timestamps) {
		BB_LOG(ERR,
		       "%s: cannot create a CQ with timestamps: the provider has no extended CQs",
		       d->ibname);
		return -ENOTSUP;
	}
	errno = 0;
	c->cq = ibv_create_cq(d->ctx, (int)depth, cq, channel, (int)attr->comp_vector);
	return c->cq != NULL ? 0 : bb_ibv_errno();
}

static int
ring_alloc(const struct bb_dev *dev, uint32_t log_size, void **ring)
{
	*ring = rte_malloc("bb_cq", sizeof(struct bb_cqe) << log_size, BB_CACHE_LINE);
	if (*ring != NULL)
		return 0;
	BB_LOG(ERR, "%s: no EAL memory for a CQ: give EAL more, with -m or hugepages", dev->name);
	return -ENOMEM;
}

int
verbs_cq_create(struct bb_cq *cq, const struct bb_cq_attr *attr)
{
	struct verbs_dev *d = verbs_dev_of(cq->ctrl->dev);
	uint32_t log_size = rte_log2_u32(attr->depth);
	struct verbs_cq *c;
	void *ring;
	int ret;

	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		BB_LOG(ERR, "%s: out of memory for a CQ", cq->ctrl->dev->name);
		return -ENOMEM;
	}
	ret = ring_alloc(cq->ctrl->dev, log_size, &ring);
	if (ret != 0)
		goto free_cq;
	ret = bb_cqring_init(&cq->ring, ring, log_size, c->dbrec);
	if (ret != 0)
		goto free_ring;
	ret = create(d, c, cq, attr, 1u << log_size);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot create a CQ of depth %u: %s%s", cq->ctrl->dev->name,
		       attr->depth, strerror(-ret),
		       ret == -ENOMEM ? ": raise the locked memory limit (ulimit -l)" : "");
		goto free_ring;
	}
	c->bb = cq;
	c->d = d;
	c->timestamps = attr->timestamps;
	cq->cqn = c->cq->handle;
	cq->progress = verbs_poll;
	cq->progress_arg = c;
	cq->poll = verbs_cq_poll;
	cq->ctrl->depth = 1u << log_size;
	cq->ctrl->priv = c;
	return 0;

free_ring:
	rte_free(ring);
free_cq:
	free(c);
	return ret;
}

int
verbs_cq_destroy(struct bb_cq *cq)
{
	struct verbs_cq *c = cq->ctrl->priv;
	int err = verbs_gone(c->d, ibv_destroy_cq(c->cq));

	if (err != 0) {
		BB_LOG(ERR, "%s: cannot destroy CQ 0x%x: %s", cq->ctrl->dev->name, cq->cqn,
		       strerror(err));
		return -err;
	}
	if (cq->ctrl->channel != NULL)
		verbs_channel_remove(cq->ctrl->channel->priv, c);
	rte_free(cq->ring.buf);
	free(c);
	return 0;
}

int
verbs_cq_resize(struct bb_cq *cq, uint32_t depth)
{
	const uint32_t log_size = rte_log2_u32(depth);
	struct verbs_cq *c = cq->ctrl->priv;
	void *ring, *old = cq->ring.buf;
	int ret, err;

	ret = ring_alloc(cq->ctrl->dev, log_size, &ring);
	if (ret != 0)
		return ret;
	bb_cqring_clear(ring, log_size);
	err = abs(ibv_resize_cq(c->cq, (int)depth)); /* some providers return a negative errno */
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot resize CQ 0x%x to %u CQEs: %s", cq->ctrl->dev->name,
		       cq->cqn, depth, strerror(err));
		rte_free(ring);
		return -err;
	}
	verbs_ring_end(c);
	/*
	 * bb_cqring_move() cannot fail: the old ring has an end mark, and lib/core has checked that
	 * both rings have room.
	 */
	(void)bb_cqring_move(&cq->ring, ring, log_size);
	rte_free(old);
	cq->ctrl->depth = depth;
	return 0;
}

int
verbs_cq_moderate(struct bb_cq *cq, uint16_t count, uint16_t period_us)
{
	struct verbs_cq *c = cq->ctrl->priv;
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = count, .cq_period = period_us},
	};
	int err = ibv_modify_cq(c->cq, &attr);

	if (err != 0)
		BB_LOG(ERR, "%s: cannot moderate CQ 0x%x: %s", cq->ctrl->dev->name, cq->cqn,
		       strerror(err));
	return -err;
}
