/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion queues: CREATE_CQ, DESTROY_CQ, MODIFY_CQ. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_cycles.h>

#include "mlx5.h"

/* maximum number of tries to read the last CQE of the old ring; one try takes a microsecond */
#define RESIZE_TRIES 100000

static int
create(struct mlx5_dev *d, struct mlx5_cq *c, uint32_t log_size, bool compress, uint32_t eqn)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_CREATE_CQ_CQC);
	int ret;

	mlx5_cmd_set_op(in, BB_PRM_OP_CREATE_CQ);
	if (compress) {
		bb_prm_set(cqc, BB_PRM_CQC_CQE_COMP_EN, 1);
		bb_prm_set(cqc, BB_PRM_CQC_MINI_CQE_RES_FORMAT, BB_PRM_CQ_MINI_CSUM);
	}
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, log_size);
	bb_prm_set(cqc, BB_PRM_CQC_UAR_PAGE, c->lcore->uar->page_id);
	bb_prm_set(cqc, BB_PRM_CQC_C_EQN, eqn);
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
	const uint32_t log_size = rte_log2_u32(attr->depth);
	struct mlx5_cq *c;
	uint32_t eqn;
	int ret;

	ret = d->cmd->query_eqn(d->ctx, attr->comp_vector, &eqn);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot create a CQ: no event queue for completion vector %u: %s",
		       d->ctx->name, attr->comp_vector, strerror(-ret));
		return ret;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		BB_LOG(ERR, "%s: out of memory for a CQ", d->ctx->name);
		return -ENOMEM;
	}
	ret = mlx5_lcore_get(d, cq->owner, &c->lcore);
	if (ret != 0)
		goto free_cq;
	ret = mlx5_qmem_alloc(&d->qmem, sizeof(struct bb_cqe) << log_size, BB_PRM_CQC_PAGE_OFFSET,
			      c->lcore->socket, &c->ring);
	if (ret != 0)
		goto put_lcore;
	ret = mlx5_dbr_alloc(&d->qmem, &c->lcore->cq_dbrs, c->lcore->socket, &c->dbr);
	if (ret != 0)
		goto free_ring;
	/* Initialise the ring before CREATE_CQ, because the device writes to it afterwards. */
	ret = bb_cqring_init(&cq->ring, c->ring.addr, log_size, c->dbr.rec);
	if (ret != 0)
		goto free_dbr;
	ret = create(d, c, log_size, attr->compress, eqn);
	if (ret != 0)
		goto free_dbr;
	ret = mlx5_evt_add(d, MLX5_EVT_CQ, c->obj, cq, &c->cookie);
	if (ret != 0)
		goto destroy;
	cq->ctrl->priv = c;
	cq->cqn = c->cqn;
	if (attr->channel != NULL) {
		ret = mlx5_channel_add(d, cq);
		if (ret != 0)
			goto del_event;
	}
	cq->progress = c->lcore->progress;
	cq->progress_arg = c->lcore->progress_arg;
	cq->ctrl->depth = 1u << log_size;
	return 0;

del_event:
	mlx5_evt_del(d, c->cookie);
destroy:
	/* If the device may still access the memory, do not return it to the heap. */
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

	/*
	 * After a failure the device may still write to the ring, so free nothing. The caller may
	 * repeat the call.
	 */
	ret = mlx5_obj_destroy(d, "DESTROY_CQ", c->obj);
	if (ret != 0)
		return ret;
	mlx5_evt_del(d, c->cookie);
	mlx5_dbr_free(&d->qmem, &c->dbr);
	mlx5_qmem_free(&d->qmem, &c->ring);
	if (c->left.slab != NULL)
		mlx5_qmem_free(&d->qmem, &c->left);
	mlx5_lcore_put(d, cq->owner);
	free(c);
	return 0;
}

/*
 * Replaces the ring of a CQ. Sets the fields that mlx5_ib_resize_cq() sets, except that a umem
 * describes the ring.
 */
static int
modify_ring(struct mlx5_dev *d, struct mlx5_cq *c, const struct mlx5_qbuf *ring, uint32_t log_size)
{
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_MODIFY_CQ_CQC);

	mlx5_cmd_set_op(in, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, BB_PRM_CQ_OP_MOD_RESIZE);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, c->cqn);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT,
		   BB_PRM_CQ_RESIZE_LOG_SIZE | BB_PRM_CQ_RESIZE_PG_OFFSET |
			   BB_PRM_CQ_RESIZE_PG_SIZE);
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, log_size);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, ring->umem_id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ring->offset);
	return mlx5_obj_modify(d, "MODIFY_CQ (resize)", c->obj, in, sizeof(in));
}

int
mlx5_cq_resize(struct bb_cq *cq, uint32_t depth)
{
	struct mlx5_dev *d = mlx5_dev_of(cq->ctrl->dev);
	struct mlx5_cq *c = cq->ctrl->priv;
	const uint32_t log_size = rte_log2_u32(depth);
	struct mlx5_qbuf ring, old = c->ring;
	unsigned int tries;
	int ret;

	/* An earlier resize failed: the device writes to the new ring, software reads the old. */
	if (c->left.slab != NULL) {
		BB_LOG(ERR,
		       "%s: cannot resize CQ 0x%x: an earlier resize failed after the device had "
		       "switched to the new ring: destroy and create the CQ and its QPs",
		       d->ctx->name, c->cqn);
		return -EIO;
	}
	ret = mlx5_qmem_alloc(&d->qmem, sizeof(struct bb_cqe) << log_size, BB_PRM_CQC_PAGE_OFFSET,
			      c->lcore->socket, &ring);
	if (ret != 0)
		return ret;
	bb_cqring_clear(ring.addr, log_size);
	ret = modify_ring(d, c, &ring, log_size);
	if (ret != 0) {
		mlx5_qmem_free(&d->qmem, &ring);
		return ret;
	}
	/*
	 * The device now uses the new ring. Before the command completed, the device wrote the last
	 * CQE of the old ring.
	 */
	c->ring = ring;
	for (tries = 0; tries < RESIZE_TRIES; tries++) {
		ret = bb_cqring_move(&cq->ring, ring.addr, log_size);
		if (ret != -EAGAIN)
			break;
		rte_delay_us_block(1);
	}
	if (ret != 0) {
		BB_LOG(ERR,
		       "%s: CQ 0x%x was resized, but the device wrote no RESIZE CQE into the old "
		       "ring within %u us: destroy and create the CQ and its QPs",
		       d->ctx->name, c->cqn, RESIZE_TRIES);
		c->left = old;
		return -EIO;
	}
	mlx5_qmem_free(&d->qmem, &old);
	cq->ctrl->depth = depth;
	return 0;
}

int
mlx5_cq_moderate(struct bb_cq *cq, uint16_t count, uint16_t period_us)
{
	struct mlx5_dev *d = mlx5_dev_of(cq->ctrl->dev);
	struct mlx5_cq *c = cq->ctrl->priv;
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_MODIFY_CQ_CQC);

	mlx5_cmd_set_op(in, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, c->cqn);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT,
		   BB_PRM_CQ_MODIFY_PERIOD | BB_PRM_CQ_MODIFY_COUNT);
	bb_prm_set(cqc, BB_PRM_CQC_CQ_PERIOD, period_us);
	bb_prm_set(cqc, BB_PRM_CQC_CQ_MAX_COUNT, count);
	/*
	 * The kernel sets cq_umem_valid in every MODIFY_CQ (devx_set_umem_valid()), so pass the
	 * umem of the current ring.
	 */
	bb_prm_set(in, BB_PRM_MODIFY_CQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, c->ring.umem_id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, c->ring.offset);
	return mlx5_obj_modify(d, "MODIFY_CQ (moderation)", c->obj, in, sizeof(in));
}
