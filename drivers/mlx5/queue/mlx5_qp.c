/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queue pairs: sizes, CREATE_QP, DESTROY_QP. Transitions of state are in mlx5_qp_modify.c. */
#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "mlx5.h"

/*
 * 16-byte segments before the data of a WQE: the control segment and the remote address segment. A
 * UD WQE has its address vector instead of the remote address.
 */
#define HEAD_DS    2u
#define UD_HEAD_DS 4u
/* Number of segments of an atomic: control, remote address, operands and one data segment. */
#define ATOMIC_DS 4u

/*
 * Values of qpc.cs_req and qpc.cs_res: scatter to CQE for up to 32 bytes (Linux
 * drivers/infiniband/hw/mlx5/mlx5_ib.h: MLX5_REQ_SCAT_DATA32_CQE and _RES_).
 */
#define CS_REQ_DATA32 0x11u
#define CS_RES_DATA32 0x1u

/* Sizes of a QP's queues. */
struct sizes {
	uint32_t blocks; /* 64-byte blocks of the SQ */
	uint32_t wqes;   /* WQEs of the RQ; 0 if the QP has no RQ */
	uint32_t log_stride;
	size_t rq_bytes;
};

static int
sq_sizes(const struct mlx5_dev *d, const struct bb_qp_init_attr *attr, struct sizes *s)
{
	uint32_t head = attr->type == BB_QPT_UD ? UD_HEAD_DS : HEAD_DS;
	uint32_t ds, per_wqe, less = head - HEAD_DS;

	/*
	 * The sums cannot overflow, because lib/core has checked both values against the limits of
	 * the device.
	 */
	if (attr->max_sge + less > d->dev->attr.max_sge ||
	    attr->max_inline + less * BB_WQE_SEG > d->dev->attr.max_inline) {
		BB_LOG(ERR,
		       "%s: cannot create a QP of type %s with max_sge %u (at most %u) and "
		       "max_inline %u (at most %u bytes)",
		       d->ctx->name, bb_qp_type_name(attr->type), attr->max_sge,
		       d->dev->attr.max_sge - less, attr->max_inline,
		       d->dev->attr.max_inline - less * BB_WQE_SEG);
		return -EINVAL;
	}
	ds = head + RTE_MAX(attr->max_sge, bb_wqe_inline_ds(attr->max_inline));
	ds = RTE_MAX(ds, ATOMIC_DS);
	per_wqe = bb_wqe_blocks(ds);
	if (attr->sq_depth == 0 || attr->sq_depth > (1u << d->caps.log_max_qp_sz) / per_wqe) {
		BB_LOG(ERR,
		       "%s: cannot create a QP with sq_depth %u (1 to %u with the WQEs of %u "
		       "bytes that max_sge %u and max_inline %u need)",
		       d->ctx->name, attr->sq_depth, (1u << d->caps.log_max_qp_sz) / per_wqe,
		       per_wqe * BB_WQE_BB, attr->max_sge, attr->max_inline);
		return -EINVAL;
	}
	s->blocks = rte_align32pow2(attr->sq_depth * per_wqe);
	return 0;
}

static int
rq_sizes(const struct mlx5_dev *d, const struct bb_qp_init_attr *attr, struct sizes *s)
{
	uint32_t stride;

	if (attr->rq_depth == 0)
		return 0;
	if (attr->max_recv_sge > d->dev->attr.max_recv_sge ||
	    attr->rq_depth > 1u << d->caps.log_max_qp_sz) {
		BB_LOG(ERR,
		       "%s: cannot create a QP with rq_depth %u (at most %u) and max_recv_sge %u "
		       "(at most %u)",
		       d->ctx->name, attr->rq_depth, 1u << d->caps.log_max_qp_sz,
		       attr->max_recv_sge, d->dev->attr.max_recv_sge);
		return -EINVAL;
	}
	stride = rte_align32pow2(RTE_MAX(attr->max_recv_sge, 1u) * BB_WQE_SEG);
	s->log_stride = rte_log2_u32(stride);
	/* The SQ follows the RQ in memory and must start on a block boundary. */
	s->wqes = RTE_MAX(rte_align32pow2(attr->rq_depth), BB_WQE_BB / stride);
	s->rq_bytes = (size_t)s->wqes << s->log_stride;
	return 0;
}

static int
create(struct mlx5_dev *d, struct mlx5_qp *q, const struct bb_qp *qp, const struct sizes *s,
       uint32_t *qpn)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	const struct mlx5_pd *pd = qp->ctrl->pd->priv;
	const struct mlx5_cq *scq = qp->ctrl->send_cq->ctrl->priv;
	const struct mlx5_cq *rcq = qp->ctrl->recv_cq->ctrl->priv;
	const struct bb_qp_init_attr *init = &qp->ctrl->init;
	void *qpc = bb_prm_sub(in, BB_PRM_CREATE_QP_QPC);
	int ret;

	mlx5_cmd_set_op(in, BB_PRM_OP_CREATE_QP);
	bb_prm_set(qpc, BB_PRM_QPC_ST, mlx5_qp_st(init->type));
	bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
	bb_prm_set(qpc, BB_PRM_QPC_PD, pd->pdn);
	bb_prm_set(qpc, BB_PRM_QPC_UAR_PAGE, q->lcore->uar->page_id);
	bb_prm_set(qpc, BB_PRM_QPC_USER_INDEX, qp->user_index);
	bb_prm_set(qpc, BB_PRM_QPC_TS_FORMAT, d->caps.qp_ts_format);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_SQ_SIZE, rte_log2_u32(s->blocks));
	if (s->wqes != 0) {
		bb_prm_set(qpc, BB_PRM_QPC_LOG_RQ_SIZE, rte_log2_u32(s->wqes));
		bb_prm_set(qpc, BB_PRM_QPC_LOG_RQ_STRIDE, s->log_stride - 4);
		bb_prm_set(qpc, BB_PRM_QPC_RQ_TYPE, BB_PRM_RQ_TYPE_REGULAR);
	} else if (init->srq != NULL) {
		bb_prm_set(qpc, BB_PRM_QPC_RQ_TYPE, BB_PRM_RQ_TYPE_SRQ);
		bb_prm_set(qpc, BB_PRM_QPC_SRQN_RMPN_XRQN, init->srq->srqn);
	} else {
		bb_prm_set(qpc, BB_PRM_QPC_RQ_TYPE, BB_PRM_RQ_TYPE_ZERO);
	}
	/*
	 * By default (0) the device never writes data of receives or responses into CQEs. cs_req is
	 * set only for RC, because no other type has responses. cs_res is not set for UD, because
	 * the device never writes the data of a datagram into a CQE (kernel: create_user_qp()).
	 */
	if (init->scatter_to_cqe && init->type == BB_QPT_RC)
		bb_prm_set(qpc, BB_PRM_QPC_CS_REQ, CS_REQ_DATA32);
	if (init->scatter_to_cqe && init->type != BB_QPT_UD)
		bb_prm_set(qpc, BB_PRM_QPC_CS_RES, CS_RES_DATA32);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_SND, scq->cqn);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_RCV, rcq->cqn);
	bb_prm_set(qpc, BB_PRM_QPC_DBR_UMEM_VALID, 1);
	bb_prm_set(qpc, BB_PRM_QPC_DBR_UMEM_ID, q->dbr.umem_id);
	bb_prm_set64(qpc, BB_PRM_QPC_DBR_ADDR, q->dbr.offset);
	bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_ID, q->ring.umem_id);
	bb_prm_set64(in, BB_PRM_CREATE_QP_WQ_UMEM_OFFSET, q->ring.offset);
	ret = mlx5_obj_create(d, "CREATE_QP", in, sizeof(in), out, sizeof(out), &q->obj);
	if (ret == 0)
		*qpn = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
	return ret;
}

/* Initializes the structs that the data path uses. */
static int
init_queues(struct bb_qp *qp, struct mlx5_qp *q, const struct bb_qp_init_attr *attr,
	    const struct sizes *s)
{
	struct bb_sq_wqe *wqes = (struct bb_sq_wqe *)(void *)(q + 1);
	const struct mlx5_dev *d = mlx5_dev_of(qp->ctrl->pd->dev);
	struct bb_sq_conf sq = {
		.buf = q->ring.addr + s->rq_bytes,
		.wqes = wqes,
		.blocks = s->blocks,
		.qpn = qp->qpn,
		.depth = attr->sq_depth,
		.max_sge = attr->max_sge,
		.max_inline = attr->max_inline,
		.type = attr->type,
		.signal_all = attr->signal_all,
		.sig_every = attr->signal_every,
		.dbrec = &q->dbr.rec[1],
		.reg = q->lcore->uar->reg_addr,
		.bf_size = q->lcore->bf_size,
		.bf_offset = &q->lcore->bf_offset,
		.db_mode = d->bf_none ? BB_DB_DOORBELL : attr->db_mode,
		.bf_copy = d->bf_copy,
		.rung = q->lcore->uar->rung,
		.umr_no_atomic = !d->caps.mkey_atomics,
		.owner = qp->ctrl->send_cq->owner,
	};
	struct bb_rq_conf rq = {
		.buf = q->ring.addr,
		.wr_ids = (uint64_t *)(void *)(wqes + s->blocks),
		.wqes = s->wqes,
		.depth = attr->rq_depth,
		.log_stride = s->log_stride,
		.max_sge = attr->max_recv_sge,
		.dbrec = &q->dbr.rec[0],
		.qpn = qp->qpn,
		.owner = qp->ctrl->recv_cq->owner,
	};
	int ret;

	ret = bb_sq_init(&qp->sq, &sq);
	if (ret == 0 && s->wqes != 0)
		ret = bb_rq_init(&qp->rq, &rq);
	return ret;
}

int
mlx5_qp_create(struct bb_qp *qp, const struct bb_qp_init_attr *attr)
{
	struct mlx5_dev *d = mlx5_dev_of(qp->ctrl->pd->dev);
	uint32_t owner = qp->ctrl->send_cq->owner;
	struct sizes s = {0};
	struct mlx5_lcore *l;
	struct mlx5_qp *q;
	int ret;

	ret = sq_sizes(d, attr, &s);
	if (ret == 0)
		ret = rq_sizes(d, attr, &s);
	if (ret != 0)
		return ret;
	ret = mlx5_lcore_get(d, owner, &l);
	if (ret != 0)
		return ret;
	q = rte_zmalloc_socket("bb_qp",
			       sizeof(*q) + s.blocks * sizeof(struct bb_sq_wqe) +
				       s.wqes * sizeof(uint64_t),
			       RTE_CACHE_LINE_SIZE, SOCKET_ID_ANY);
	if (q == NULL) {
		BB_LOG(ERR, "%s: no EAL memory for a QP: give EAL more (-m, or hugepages)",
		       d->ctx->name);
		ret = -ENOMEM;
		goto put_lcore;
	}
	q->lcore = l;
	ret = mlx5_qmem_alloc(&d->qmem, s.rq_bytes + (size_t)s.blocks * BB_WQE_BB,
			      BB_PRM_QPC_PAGE_OFFSET, l->socket, &q->ring);
	if (ret != 0)
		goto free_qp;
	ret = mlx5_dbr_alloc(&d->qmem, &l->qp_dbrs, l->socket, &q->dbr);
	if (ret != 0)
		goto free_ring;
	ret = create(d, q, qp, &s, &qp->qpn);
	if (ret != 0)
		goto free_dbr;
	ret = mlx5_evt_add(d, MLX5_EVT_QP, q->obj, qp, &q->cookie);
	if (ret != 0)
		goto destroy;
	ret = init_queues(qp, q, attr, &s);
	if (ret != 0)
		goto del_events;
	qp->ctrl->priv = q;
	return 0;

del_events:
	mlx5_evt_del(d, q->cookie);
destroy:
	/* If the device may still access the memory, do not return it to the heap. */
	if (mlx5_obj_destroy(d, "DESTROY_QP", q->obj) != 0)
		return ret;
free_dbr:
	mlx5_dbr_free(&d->qmem, &q->dbr);
free_ring:
	mlx5_qmem_free(&d->qmem, &q->ring);
free_qp:
	rte_free(q);
put_lcore:
	mlx5_lcore_put(d, owner);
	return ret;
}

int
mlx5_qp_destroy(struct bb_qp *qp)
{
	struct mlx5_dev *d = mlx5_dev_of(qp->ctrl->pd->dev);
	struct mlx5_qp *q = qp->ctrl->priv;
	int ret;

	/* After a failure the device may still access the memory, so free nothing. */
	ret = mlx5_obj_destroy(d, "DESTROY_QP", q->obj);
	if (ret != 0)
		return ret;
	mlx5_evt_del(d, q->cookie);
	mlx5_dbr_free(&d->qmem, &q->dbr);
	mlx5_qmem_free(&d->qmem, &q->ring);
	rte_free(q);
	mlx5_lcore_put(d, qp->ctrl->send_cq->owner);
	return 0;
}

int
mlx5_qp1_claim(struct bb_qp *qp)
{
	struct mlx5_dev *d = mlx5_dev_of(qp->ctrl->pd->dev);

	return d->cmd->qp1_claim != NULL ? d->cmd->qp1_claim(d->ctx, qp->qpn) : -ENOTSUP;
}
