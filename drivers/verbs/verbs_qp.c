/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queue pairs. Each has the rings to which the application posts, and the provider's QP. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "verbs_drv.h"

#define OPS_SEND (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC   (OPS_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_RC                                                                                     \
	(OPS_UC | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define OPS_KEYS (IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)

/* Sizes of a QP's queues. */
struct sizes {
	uint32_t slots; /* number of requests that the SQ can hold */
	uint32_t wqes;  /* WQEs of the RQ; 0 if the QP has no RQ */
	uint32_t log_stride;
	size_t rq_bytes;
};

static int
sizes_of(const struct bb_dev *dev, const struct bb_qp_init_attr *attr, struct sizes *s)
{
	if (attr->sq_depth > VERBS_MAX_WR) {
		BB_LOG(ERR, "%s: cannot create a QP with sq_depth %u (at most %u)", dev->name,
		       attr->sq_depth, VERBS_MAX_WR);
		return -EINVAL;
	}
	s->slots = rte_align32pow2(attr->sq_depth);
	if (attr->rq_depth == 0)
		return 0;
	s->log_stride = rte_log2_u32(rte_align32pow2(RTE_MAX(attr->max_recv_sge, 1u) * BB_WQE_SEG));
	s->wqes = rte_align32pow2(attr->rq_depth);
	s->rq_bytes = (size_t)s->wqes << s->log_stride;
	return 0;
}

static struct ibv_qp_cap
caps_of(const struct bb_qp_init_attr *attr)
{
	return (struct ibv_qp_cap){
		.max_send_wr = attr->sq_depth,
		.max_recv_wr = attr->rq_depth,
		.max_send_sge = RTE_MAX(attr->max_sge, 1u),
		.max_recv_sge = attr->rq_depth != 0 ? RTE_MAX(attr->max_recv_sge, 1u) : 0,
		.max_inline_data = attr->max_inline,
	};
}

/*
 * Creates a QP. If @ops is not 0, the QP supports ibv_wr_*() for these operations.
 *
 * On mlx5, creates the QP without scatter to CQE. By default the device writes received data of
 * up to 32 bytes into the CQE (64 bytes with CQEs of 128 bytes). libmlx5 then copies the data to
 * the address in the request (rdma-core providers/mlx5/cq.c, handle_responder()). That address is
 * not a valid pointer if an MR is zero-based, has another iova, or is device memory.
 */
static struct ibv_qp *
create_qp(struct verbs_dev *d, struct bb_qp *qp, struct ibv_pd *pd, uint64_t ops)
{
	const struct bb_qp_init_attr *attr = &qp->ctrl->init;
	const struct verbs_cq *scq = attr->send_cq->ctrl->priv, *rcq = attr->recv_cq->ctrl->priv;
	const struct verbs_srq *srq = attr->srq != NULL ? attr->srq->ctrl->priv : NULL;
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
	};
	struct ibv_qp_init_attr_ex a = {
		.qp_context = qp,
		.send_cq = scq->cq,
		.recv_cq = rcq->cq,
		.srq = srq != NULL ? srq->ib : NULL,
		.cap = caps_of(attr),
		.qp_type = verbs_qp_type(attr->type),
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops != 0 ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = pd,
		.send_ops_flags = ops,
	};

	errno = 0;
	return d->mlx5 ? mlx5dv_create_qp(d->ctx, &a, &dv) : ibv_create_qp_ex(d->ctx, &a);
}

static bool
unknown(void)
{
	return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
}

/*
 * Creates the QP with support for ibv_wr_*(), also for operations on keys. If the provider does not
 * support these operations, creates it without them. If the provider does not support ibv_wr_*() at
 * all, creates it without. Does not use ibv_wr_*() without a thread domain, because the provider
 * may hold a lock from ibv_wr_start() on; nor on rxe (verbs_caps.c); nor on iWARP, where the driver
 * checks each request first.
 */
static int
create(struct verbs_dev *d, struct bb_qp *qp, struct verbs_qp *q, struct ibv_pd *pd)
{
	const bool extended = !d->no_qp_ex && q->domain != NULL && !d->rxe && !d->dev->iwarp;
	const enum bb_qp_type type = qp->ctrl->init.type;
	const uint64_t ops = type == BB_QPT_RC ? OPS_RC : type == BB_QPT_UC ? OPS_UC : OPS_SEND;

	if (extended) {
		q->send_ops = type == BB_QPT_UD ? ops : ops | OPS_KEYS;
		q->ib = create_qp(d, qp, pd, q->send_ops);
		if (q->ib == NULL && unknown() && q->send_ops != ops) {
			q->send_ops = ops;
			q->ib = create_qp(d, qp, pd, ops);
		}
		if (q->ib != NULL) {
			q->ex = ibv_qp_to_qp_ex(q->ib);
			return 0;
		}
		if (!unknown())
			return bb_ibv_errno();
	}
	q->ib = create_qp(d, qp, pd, 0);
	if (q->ib == NULL)
		return bb_ibv_errno();
	/*
	 * Creating the QP without support for ibv_wr_*() succeeded, so the failure was not due to a
	 * limit of the device.
	 */
	if (extended) {
		BB_LOG(INFO,
		       "%s: the provider has no extended post: requests are posted by "
		       "ibv_post_send()",
		       d->ibname);
		d->no_qp_ex = true;
	}
	return 0;
}

static int
qpn_note(struct verbs_dev *d, uint32_t qpn, uint16_t user_index)
{
	uint16_t **page = &d->qpns.page[qpn >> VERBS_QPN_BITS & 0xfff];

	if (*page == NULL) {
		uint16_t *p = calloc(1u << VERBS_QPN_BITS, sizeof(*p));

		if (p == NULL)
			return -ENOMEM;
		__atomic_store_n(page, p, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&(*page)[qpn & ((1u << VERBS_QPN_BITS) - 1)], user_index,
			 __ATOMIC_RELAXED);
	return 0;
}

/* Initializes the structs that the data path uses. */
static int
init_queues(struct bb_qp *qp, struct verbs_qp *q, const struct sizes *s)
{
	const struct bb_qp_init_attr *attr = &qp->ctrl->init;
	struct bb_sq_conf sq = {
		.wqes = q->wqes,
		.blocks = s->slots,
		.qpn = qp->qpn,
		.depth = attr->sq_depth,
		.max_sge = attr->max_sge,
		.max_inline = attr->max_inline,
		.type = attr->type,
		.signal_all = attr->signal_all,
		.sig_every = attr->signal_every,
		.ring = q->ex != NULL ? verbs_post_ring : verbs_sq_ring,
		.ops = q->ex != NULL ? &verbs_post_ops : &verbs_chain_ops,
		.driver = q->ex,
		.piece = q->ex != NULL ? q->ex->wr_set_sge : NULL,
		.db_mode = BB_DB_DOORBELL,
		.owner = attr->send_cq->owner,
	};
	struct bb_rq_conf rq = {
		.buf = q->ring,
		.wr_ids = (uint64_t *)(void *)(q->wqes + s->slots),
		.wqes = s->wqes,
		.depth = attr->rq_depth,
		.log_stride = s->log_stride,
		.max_sge = attr->max_recv_sge,
		.ring = verbs_rq_ring,
		.qpn = qp->qpn,
		.owner = attr->recv_cq->owner,
	};
	int ret;

	q->own = (struct verbs_own *)(void *)(rq.wr_ids + s->wqes);
	q->own_mask = s->slots - 1;
	q->slot_mask = (s->slots - 1) * sizeof(*q->wqes);
	q->wr_base = (uint64_t)qp->user_index << VERBS_WR_USER_SHIFT;
	q->wr_reported = q->wr_base | VERBS_WR_REPORT;
	verbs_sq_reset(q);
	ret = bb_sq_init(&qp->sq, &sq);
	if (ret == 0 && s->wqes != 0)
		ret = bb_rq_init(&qp->rq, &rq);
	return ret;
}

static int
no_memory(const struct bb_dev *dev)
{
	BB_LOG(ERR, "%s: no EAL memory for a QP: give EAL more (-m, or hugepages)", dev->name);
	return -ENOMEM;
}

static struct verbs_qp *
memory(const struct bb_dev *dev, const struct sizes *s)
{
	struct verbs_qp *q;

	q = rte_zmalloc("bb_qp",
			sizeof(*q) + s->slots * sizeof(struct bb_sq_wqe) +
				s->wqes * sizeof(uint64_t) + s->slots * sizeof(struct verbs_own),
			BB_CACHE_LINE);
	if (q != NULL && s->rq_bytes != 0)
		q->ring = rte_zmalloc("bb_qp", s->rq_bytes, BB_CACHE_LINE);
	if (q != NULL && (q->ring != NULL || s->rq_bytes == 0))
		return q;
	rte_free(q);
	(void)no_memory(dev);
	return NULL;
}

static void
memory_free(struct verbs_qp *q)
{
	rte_free(q->slots);
	rte_free(q->ring);
	rte_free(q);
}

int
verbs_qp_create(struct bb_qp *qp, const struct bb_qp_init_attr *attr)
{
	struct bb_pd *pd = qp->ctrl->pd;
	struct verbs_dev *d = verbs_dev_of(pd->dev);
	struct verbs_pd *p = pd->priv;
	struct sizes s = {0};
	struct ibv_pd *parent;
	struct verbs_qp *q;
	int ret;

	if (pd->dev->iwarp && attr->type != BB_QPT_RC) {
		BB_LOG(ERR, "%s: cannot create a QP of type %s: an iWARP device has RC QPs only",
		       pd->dev->name, bb_qp_type_name(attr->type));
		return -ENOTSUP;
	}
	ret = sizes_of(pd->dev, attr, &s);
	if (ret != 0)
		return ret;
	q = memory(pd->dev, &s);
	if (q == NULL)
		return -ENOMEM;
	q->bb = qp;
	q->scq = attr->send_cq->ctrl->priv;
	parent = verbs_domain_get(pd, attr->send_cq->owner, &q->domain);
	ret = create(d, qp, q, parent);
	if (ret != 0) {
		BB_LOG(ERR,
		       "%s: cannot create a QP of type %s with sq_depth %u, max_sge %u, "
		       "max_inline %u and rq_depth %u: %s%s",
		       pd->dev->name, bb_qp_type_name(attr->type), attr->sq_depth, attr->max_sge,
		       attr->max_inline, attr->rq_depth, strerror(-ret),
		       ret == -ENOMEM ? ": raise the locked memory limit (ulimit -l), or make "
					"fewer or smaller queues"
				      : "");
		goto put_domain;
	}
	if (verbs_chain_init(q, attr, s.slots) != 0) {
		ret = no_memory(pd->dev);
		goto destroy;
	}
	qp->qpn = q->ib->qp_num;
	ret = init_queues(qp, q, &s);
	if (ret != 0)
		goto destroy;
	ret = qpn_note(d, qp->qpn, (uint16_t)qp->user_index);
	if (ret != 0)
		goto destroy;
	if (attr->type == BB_QPT_UD)
		LIST_INSERT_HEAD(&p->ud, q, link);
	qp->ctrl->priv = q;
	return 0;

destroy:
	(void)ibv_destroy_qp(q->ib);
put_domain:
	verbs_domain_put(q->domain);
	memory_free(q);
	return ret;
}

int
verbs_qp_destroy(struct bb_qp *qp)
{
	struct verbs_dev *d = verbs_dev_of(qp->ctrl->pd->dev);
	struct verbs_qp *q = qp->ctrl->priv;
	const bool open = verbs_post_abort(q);
	int err;

	verbs_srq_stop(qp);
	verbs_drain_qp(qp);
	err = verbs_gone(d, ibv_destroy_qp(q->ib));
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot destroy QP 0x%x: %s", qp->ctrl->pd->dev->name, qp->qpn,
		       strerror(err));
		if (open)
			verbs_post_lost(&qp->sq, err);
		return -err;
	}
	verbs_drain_qp(qp);
	verbs_chain_drop(q);
	(void)qpn_note(d, qp->qpn, 0);
	if (qp->ctrl->init.type == BB_QPT_UD) {
		LIST_REMOVE(q, link);
		verbs_ah_drop_waits(qp->ctrl->pd->priv, q);
	}
	verbs_domain_put(q->domain);
	memory_free(q);
	return 0;
}

static int
mcast_failed(const struct bb_qp *qp, const char *what, int err)
{
	if (err != 0)
		BB_LOG(ERR, "%s: QP 0x%x: cannot %s a multicast group: %s", qp->ctrl->pd->dev->name,
		       qp->qpn, what, strerror(err));
	return -err;
}

int
verbs_mcast_attach(struct bb_qp *qp, struct bb_mcast *m)
{
	struct verbs_qp *q = qp->ctrl->priv;
	union ibv_gid gid;

	memcpy(gid.raw, m->gid, sizeof(gid.raw));
	return mcast_failed(qp, "attach to", ibv_attach_mcast(q->ib, &gid, m->lid));
}

int
verbs_mcast_detach(struct bb_qp *qp, struct bb_mcast *m)
{
	struct verbs_qp *q = qp->ctrl->priv;
	union ibv_gid gid;
	int err;

	memcpy(gid.raw, m->gid, sizeof(gid.raw));
	err = verbs_gone(verbs_dev_of(qp->ctrl->pd->dev), ibv_detach_mcast(q->ib, &gid, m->lid));
	return mcast_failed(qp, "detach from", err);
}
