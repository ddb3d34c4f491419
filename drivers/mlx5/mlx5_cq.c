/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion queues: CREATE_CQ, DESTROY_CQ. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5.h"

static int
create(struct mlx5_dev *d, struct mlx5_cq *c, uint32_t log_size)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_CREATE_CQ_CQC);
	int ret;

	mlx5_cmd_set_op(in, BB_PRM_OP_CREATE_CQ);
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, log_size);
	bb_prm_set(cqc, BB_PRM_CQC_UAR_PAGE, c->lcore->uar->page_id);
	bb_prm_set(cqc, BB_PRM_CQC_C_EQN, d->eqn);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_VALID, 1);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_ID, c->dbr.umem_id);
	bb_prm_set64(cqc, BB_PRM_CQC_DBR_ADDR, c->dbr.offset);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, c->ring.umem_id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, c->ring.offset);
	ret = mlx5_obj_create(d, "CREATE_CQ", in, sizeof(in), out, sizeof(out), &c->obj);
	if (ret == 0)
		c->cqn = bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN);
	return ret;
}

int
mlx5_cq_create(struct bb_cq *cq, const struct bb_cq_attr *attr)
{
	struct mlx5_dev *d = mlx5_dev_of(cq->ctrl->dev);
	uint32_t log_size;
	struct mlx5_cq *c;
	int ret;

	if (attr->depth == 0 || attr->depth > 1u << d->caps.log_max_cq_sz) {
		BB_LOG(ERR, "%s: CQ depth %u: must be 1 to %u", d->ctx->name, attr->depth,
		       1u << d->caps.log_max_cq_sz);
		return -EINVAL;
	}
	log_size = rte_log2_u32(attr->depth);
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		BB_LOG(ERR, "%s: out of memory", d->ctx->name);
		return -ENOMEM;
	}
	ret = mlx5_lcore_get(d, cq->owner, &c->lcore);
	if (ret != 0)
		goto free_cq;
	ret = mlx5_qmem_alloc(&d->qmem, sizeof(struct bb_cqe) << log_size, c->lcore->socket,
			      &c->ring);
	if (ret != 0)
		goto put_lcore;
	ret = mlx5_dbr_alloc(&d->qmem, &c->lcore->cq_dbrs, c->lcore->socket, &c->dbr);
	if (ret != 0)
		goto free_ring;
	/* Before the device knows the ring: it owns what is in it afterwards. */
	ret = bb_cqring_init(&cq->ring, c->ring.addr, log_size, c->dbr.rec);
	if (ret != 0)
		goto free_dbr;
	ret = create(d, c, log_size);
	if (ret != 0)
		goto free_dbr;
	ret = mlx5_evt_add(d, MLX5_EVT_CQ, c->obj, cq, &c->cookie);
	if (ret != 0)
		goto destroy;
	cq->progress = c->lcore->progress;
	cq->progress_arg = c->lcore->progress_arg;
	cq->ctrl->depth = 1u << log_size;
	cq->ctrl->priv = c;
	return 0;

destroy:
	/* What the device still holds must not go back to the heap. */
	if (mlx5_obj_destroy(d, "DESTROY_CQ", c->obj) != 0)
		return ret;
free_dbr:
	mlx5_dbr_free(&d->qmem, &c->dbr);
free_ring:
	mlx5_qmem_free(&d->qmem, &c->ring);
put_lcore:
	mlx5_lcore_put(d, cq->owner);
free_cq:
	free(c);
	return ret;
}

int
mlx5_cq_destroy(struct bb_cq *cq)
{
	struct mlx5_dev *d = mlx5_dev_of(cq->ctrl->dev);
	struct mlx5_cq *c = cq->ctrl->priv;
	int ret;

	/* On a failure the device may still write: nothing is freed, the call may be repeated. */
	ret = mlx5_obj_destroy(d, "DESTROY_CQ", c->obj);
	if (ret != 0)
		return ret;
	mlx5_evt_del(d, c->cookie);
	mlx5_dbr_free(&d->qmem, &c->dbr);
	mlx5_qmem_free(&d->qmem, &c->ring);
	mlx5_lcore_put(d, cq->owner);
	free(c);
	return 0;
}
