/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared receive queues. Each has the ring to which the application posts, and the provider's SRQ.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "verbs_drv.h"

static int
create(struct verbs_srq *s, struct bb_srq *srq)
{
	const struct bb_srq_attr *attr = &srq->ctrl->attr;
	const struct bb_dev *dev = srq->ctrl->pd->dev;
	const struct verbs_pd *p = srq->ctrl->pd->priv;
	struct ibv_srq_init_attr init = {
		.srq_context = srq,
		.attr = {.max_wr = attr->depth, .max_sge = RTE_MAX(attr->max_sge, 1u)},
	};
	int ret;

	errno = 0;
	s->ib = ibv_create_srq(p->pd, &init);
	if (s->ib != NULL)
		return 0;
	ret = bb_ibv_errno();
	BB_LOG(ERR, "%s: cannot create an SRQ of depth %u: %s%s", dev->name, attr->depth,
	       strerror(-ret), ret == -ENOMEM ? ": raise the locked memory limit (ulimit -l)" : "");
	return ret;
}

int
verbs_srq_create(struct bb_srq *srq)
{
	struct bb_srq_attr *attr = &srq->ctrl->attr;
	struct bb_dev *dev = srq->ctrl->pd->dev;
	struct bb_srqring_conf conf = {0};
	struct verbs_srq *s;
	size_t ring_len;
	int ret;

	/*
	 * The ring needs one extra WQE, because the last free WQE cannot be posted: see
	 * bb_srqring.h.
	 */
	conf.wqes = rte_align32pow2(attr->depth + 1);
	conf.log_stride =
		rte_log2_u32(rte_align32pow2((1 + RTE_MAX(attr->max_sge, 1u)) * BB_WQE_SEG));
	conf.depth = attr->depth;
	conf.max_sge = RTE_MAX(attr->max_sge, 1u);
	conf.owner = attr->lcore;
	conf.ring = verbs_srq_ring;
	ring_len = (size_t)conf.wqes << conf.log_stride;
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		BB_LOG(ERR, "%s: out of memory for an SRQ", dev->name);
		return -ENOMEM;
	}
	s->ring =
		rte_zmalloc("bb_srq", ring_len + conf.wqes * (sizeof(uint64_t) + 1), BB_CACHE_LINE);
	if (s->ring == NULL) {
		BB_LOG(ERR, "%s: no EAL memory for an SRQ: give EAL more, with -m or hugepages",
		       dev->name);
		ret = -ENOMEM;
		goto free_srq;
	}
	conf.buf = s->ring;
	conf.wr_ids = (uint64_t *)(void *)((uint8_t *)s->ring + ring_len);
	conf.held = (uint8_t *)(conf.wr_ids + conf.wqes);
	ret = create(s, srq);
	if (ret != 0)
		goto free_ring;
	conf.srqn = s->ib->handle;
	ret = bb_srqring_init(&srq->ring, &conf);
	if (ret != 0)
		goto destroy;
	srq->srqn = s->ib->handle;
	attr->max_sge = conf.max_sge;
	srq->ctrl->priv = s;
	return 0;

destroy:
	(void)ibv_destroy_srq(s->ib);
free_ring:
	rte_free(s->ring);
free_srq:
	free(s);
	return ret;
}

int
verbs_srq_modify(struct bb_srq *srq, uint32_t limit)
{
	const struct verbs_srq *s = srq->ctrl->priv;
	struct ibv_srq_attr attr = {.srq_limit = limit};
	int err = ibv_modify_srq(s->ib, &attr, IBV_SRQ_LIMIT);

	if (err != 0)
		BB_LOG(ERR, "%s: cannot set the limit of SRQ 0x%x: %s", srq->ctrl->pd->dev->name,
		       srq->srqn, strerror(err));
	return -err;
}

int
verbs_srq_query(struct bb_srq *srq, uint32_t *limit)
{
	const struct verbs_srq *s = srq->ctrl->priv;
	struct ibv_srq_attr attr;
	int err = ibv_query_srq(s->ib, &attr);

	if (err != 0)
		BB_LOG(ERR, "%s: cannot query SRQ 0x%x: %s", srq->ctrl->pd->dev->name, srq->srqn,
		       strerror(err));
	else
		*limit = attr.srq_limit;
	return -err;
}

int
verbs_srq_destroy(struct bb_srq *srq)
{
	struct verbs_srq *s = srq->ctrl->priv;
	int err = verbs_gone(verbs_dev_of(srq->ctrl->pd->dev), ibv_destroy_srq(s->ib));

	/*
	 * After a failure the device may still read the ring, so free nothing. The caller may
	 * repeat the call.
	 */
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot destroy SRQ 0x%x: %s", srq->ctrl->pd->dev->name, srq->srqn,
		       strerror(err));
		return -err;
	}
	rte_free(s->ring);
	free(s);
	return 0;
}
