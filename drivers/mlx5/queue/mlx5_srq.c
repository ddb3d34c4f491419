/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared receive queues. An SRQ is an RMP with a linked list of WQEs, as the kernel creates for the
 * SRQs of verbs (drivers/infiniband/hw/mlx5/srq_cmd.c). A cyclic RMP would release receives only in
 * order, so one slow QP would stop the others.
 *
 * MODIFY_RMP arms the limit, as in the kernel's arm_rmp_cmd(), because DEVX does not accept ARM_RQ
 * for an RMP.
 */
#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "mlx5.h"

static int
create(struct mlx5_dev *d, struct mlx5_srq *s, const struct mlx5_pd *pd, uint32_t wqes,
       uint32_t log_stride, uint32_t *srqn)
{
	uint8_t in[BB_PRM_SZ_RMP] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *ctx = bb_prm_sub(in, BB_PRM_CREATE_RMP_CTX);
	void *wq = bb_prm_sub(ctx, BB_PRM_RMPC_WQ);
	int ret;

	mlx5_cmd_set_op(in, BB_PRM_OP_CREATE_RMP);
	bb_prm_set(ctx, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(wq, BB_PRM_WQ_TYPE, BB_PRM_WQ_TYPE_LIST);
	bb_prm_set(wq, BB_PRM_WQ_PD, pd->pdn);
	bb_prm_set(wq, BB_PRM_WQ_LOG_STRIDE, log_stride);
	bb_prm_set(wq, BB_PRM_WQ_LOG_SZ, rte_log2_u32(wqes));
	bb_prm_set(wq, BB_PRM_WQ_DBR_UMEM_VALID, 1);
	bb_prm_set(wq, BB_PRM_WQ_DBR_UMEM_ID, s->dbr.umem_id);
	bb_prm_set64(wq, BB_PRM_WQ_DBR_ADDR, s->dbr.offset);
	bb_prm_set(wq, BB_PRM_WQ_UMEM_VALID, 1);
	bb_prm_set(wq, BB_PRM_WQ_UMEM_ID, s->ring.umem_id);
	bb_prm_set64(wq, BB_PRM_WQ_UMEM_OFFSET, s->ring.offset);
	ret = mlx5_obj_create(d, "CREATE_RMP", in, sizeof(in), out, sizeof(out), &s->obj);
	if (ret == 0)
		*srqn = bb_prm_get(out, BB_PRM_CREATE_RMP_OUT_RMPN);
	return ret;
}

int
mlx5_srq_create(struct bb_srq *srq)
{
	struct mlx5_dev *d = mlx5_dev_of(srq->ctrl->pd->dev);
	struct bb_srq_attr *attr = &srq->ctrl->attr;
	struct bb_srqring_conf conf = {0};
	struct mlx5_lcore *l;
	struct mlx5_srq *s;
	uint32_t stride;
	int ret;

	/*
	 * The ring needs one extra WQE, because the last free WQE cannot be posted: see
	 * bb_srqring.h.
	 */
	conf.wqes = rte_align32pow2(attr->depth + 1);
	stride = rte_align32pow2((1 + RTE_MAX(attr->max_sge, 1u)) * BB_WQE_SEG);
	conf.log_stride = rte_log2_u32(stride);
	conf.depth = attr->depth;
	conf.max_sge = stride / BB_WQE_SEG - 1;
	conf.owner = attr->lcore;
	ret = mlx5_lcore_get(d, attr->lcore, &l);
	if (ret != 0)
		return ret;
	s = rte_zmalloc_socket("bb_srq", sizeof(*s) + conf.wqes * (sizeof(uint64_t) + 1),
			       RTE_CACHE_LINE_SIZE, SOCKET_ID_ANY);
	if (s == NULL) {
		BB_LOG(ERR, "%s: no EAL memory for an SRQ: give EAL more (-m, or hugepages)",
		       d->ctx->name);
		ret = -ENOMEM;
		goto put_lcore;
	}
	ret = mlx5_qmem_alloc(&d->qmem, (size_t)conf.wqes << conf.log_stride, BB_PRM_WQ_PAGE_OFFSET,
			      l->socket, &s->ring);
	if (ret != 0)
		goto free_srq;
	/*
	 * Allocate the doorbell record from the page of the QP records. The software device reads
	 * the record, so it must not share a cache line with CQ records.
	 */
	ret = mlx5_dbr_alloc(&d->qmem, &l->qp_dbrs, l->socket, &s->dbr);
	if (ret != 0)
		goto free_ring;
	conf.buf = s->ring.addr;
	conf.wr_ids = (uint64_t *)(void *)(s + 1);
	conf.held = (uint8_t *)(conf.wr_ids + conf.wqes);
	conf.dbrec = s->dbr.rec;
	/*
	 * Link the WQEs before CREATE_RMP, because the device may read the ring from that command
	 * on.
	 */
	ret = bb_srqring_init(&srq->ring, &conf);
	if (ret != 0)
		goto free_dbr;
	ret = create(d, s, srq->ctrl->pd->priv, conf.wqes, conf.log_stride, &srq->srqn);
	if (ret != 0)
		goto free_dbr;
	ret = mlx5_evt_add(d, MLX5_EVT_SRQ, s->obj, srq, &s->cookie);
	if (ret != 0)
		goto destroy;
	srq->ring.srqn = srq->srqn;
	attr->max_sge = conf.max_sge;
	srq->ctrl->priv = s;
	return 0;

destroy:
	/* If the device may still access the memory, do not return it to the heap. */
	if (mlx5_obj_destroy(d, "DESTROY_RMP", s->obj) != 0)
		return ret;
free_dbr:
	mlx5_dbr_free(&d->qmem, &s->dbr);
free_ring:
	mlx5_qmem_free(&d->qmem, &s->ring);
free_srq:
	rte_free(s);
put_lcore:
	mlx5_lcore_put(d, attr->lcore);
	return ret;
}

int
mlx5_srq_modify(struct bb_srq *srq, uint32_t limit)
{
	struct mlx5_dev *d = mlx5_dev_of(srq->ctrl->pd->dev);
	struct mlx5_srq *s = srq->ctrl->priv;
	uint8_t in[BB_PRM_SZ_RMP] = {0};
	void *ctx = bb_prm_sub(in, BB_PRM_MODIFY_RMP_CTX);

	mlx5_cmd_set_op(in, BB_PRM_OP_MODIFY_RMP);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_RMPN, srq->srqn);
	bb_prm_set(bb_prm_sub(in, BB_PRM_MODIFY_RMP_BITMASK), BB_PRM_RMP_BITMASK_LWM, 1);
	bb_prm_set(ctx, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(bb_prm_sub(ctx, BB_PRM_RMPC_WQ), BB_PRM_WQ_LWM, limit);
	return mlx5_obj_modify(d, "MODIFY_RMP", s->obj, in, sizeof(in));
}

int
mlx5_srq_query(struct bb_srq *srq, uint32_t *limit)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_RMP] = {0};
	const void *ctx = bb_prm_csub(out, BB_PRM_QUERY_RMP_OUT_CTX);
	struct mlx5_dev *d = mlx5_dev_of(srq->ctrl->pd->dev);
	struct mlx5_srq *s = srq->ctrl->priv;
	int ret;

	mlx5_cmd_set_op(in, BB_PRM_OP_QUERY_RMP);
	bb_prm_set(in, BB_PRM_QUERY_RMP_RMPN, srq->srqn);
	ret = mlx5_obj_query(d, "QUERY_RMP", s->obj, in, sizeof(in), out, sizeof(out));
	if (ret == 0)
		*limit = bb_prm_get(bb_prm_csub(ctx, BB_PRM_RMPC_WQ), BB_PRM_WQ_LWM);
	return ret;
}

int
mlx5_srq_destroy(struct bb_srq *srq)
{
	struct mlx5_dev *d = mlx5_dev_of(srq->ctrl->pd->dev);
	struct mlx5_srq *s = srq->ctrl->priv;
	int ret;

	/*
	 * After a failure the device may still read the ring, so free nothing. The caller may
	 * repeat the call.
	 */
	ret = mlx5_obj_destroy(d, "DESTROY_RMP", s->obj);
	if (ret != 0)
		return ret;
	mlx5_evt_del(d, s->cookie);
	mlx5_dbr_free(&d->qmem, &s->dbr);
	mlx5_qmem_free(&d->qmem, &s->ring);
	rte_free(s);
	mlx5_lcore_put(d, srq->ctrl->attr.lcore);
	return 0;
}
