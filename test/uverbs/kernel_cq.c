/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * CQs that the kernel makes for ibv_create_cq(), resizes and moderates, after Linux
 * drivers/infiniband/hw/mlx5/cq.c. libmlx5 moves unread CQEs from ring to ring.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include "bb_prm.h"
#include "kernel_queue.h"

#define CQE        64u
#define MAX_CQE    (1u << 22)
#define MAX_PERIOD 4095u /* MLX5_MAX_CQ_PERIOD */

int
kernel_create_cq(const struct uverbs_cmd *c, uint64_t element, uint32_t cqe, int channel, bool ex)
{
	static const uint16_t types[] = {BB_PRM_EVENT_CQ_ERROR};
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_CREATE_CQ_CQC);
	struct ib_uverbs_ex_create_cq_resp core = {.response_length = sizeof(core)};
	struct mlx5_ib_create_cq_resp drv = {0};
	struct mlx5_ib_create_cq q = {0};
	uint64_t ring_at, rec_at;
	const struct kernel_handle *ch = channel >= 0 ? kernel_by_fd(channel) : NULL;
	struct kernel_queue *cq;
	uint32_t eqn;
	int ret;

	memcpy(&q, c->drv_in, c->drv_len < sizeof(q) ? c->drv_len : sizeof(q));
	/* The smallest power of two above the requested number. */
	cqe = 1u << (kernel_log2(cqe) + 1);
	if (q.cqe_size != CQE || (channel >= 0 && (ch == NULL || ch->kind != COMP)) ||
	    kernel_soft->cmd->query_eqn(kernel_soft, 0, &eqn) != 0)
		return EINVAL;
	cq = kernel_queue_begin(q.buf_addr, (uint64_t)cqe * CQE, q.db_addr, &ring_at, &rec_at);
	if (cq == NULL)
		return ENOMEM;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_CQ);
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, kernel_log2(cqe));
	bb_prm_set(cqc, BB_PRM_CQC_UAR_PAGE, q.uar_page_index);
	bb_prm_set(cqc, BB_PRM_CQC_C_EQN, eqn);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_VALID, 1);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_ID, cq->rec->id);
	bb_prm_set64(cqc, BB_PRM_CQC_DBR_ADDR, rec_at);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, cq->ring->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ring_at);
	ret = kernel_soft->cmd->obj_create(kernel_soft, in, sizeof(in), out, sizeof(out), &cq->obj);
	if (ret != 0) {
		(void)kernel_end_queue(cq);
		return EINVAL;
	}
	cq->num = bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN);
	cq->ring_at = ring_at;
	cq->element = element;
	cq->entries = cqe;
	core.base.cq_handle = kernel_queue_born(CQ, cq, types, 1);
	if (core.base.cq_handle == 0) {
		(void)kernel_end_queue(cq);
		return ENOMEM;
	}
	if (ch != NULL &&
	    kernel_soft->cmd->channel_subscribe(ch->p, cq->obj, core.base.cq_handle) != 0) {
		(void)kernel_destroy(CQ, core.base.cq_handle);
		return EINVAL;
	}
	core.base.cqe = cqe - 1;
	drv.cqn = cq->num;
	return uverbs_reply(c, &core, ex ? sizeof(core) : sizeof(core.base), &drv, sizeof(drv));
}

/* As mlx5_ib_resize_cq(), with a umem instead of pages. */
int
kernel_resize_cq(const struct uverbs_cmd *c)
{
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_MODIFY_CQ_CQC);
	struct ib_uverbs_resize_cq_resp core = {0};
	struct mlx5_ib_resize_cq drv = {0};
	struct ib_uverbs_resize_cq q;
	struct mlx5_umem *ring;
	struct kernel_queue *cq;
	uint64_t ring_at;
	uint32_t cqe;

	if (c->in_len < sizeof(q) + sizeof(drv))
		return EINVAL;
	memcpy(&q, c->in, sizeof(q));
	memcpy(&drv, c->in + sizeof(q), sizeof(drv));
	cq = kernel_get(CQ, q.cq_handle);
	if (cq == NULL || q.cqe < 1 || q.cqe >= MAX_CQE || drv.cqe_size != CQE)
		return EINVAL;
	cqe = 1u << (kernel_log2(q.cqe) + 1);
	core.cqe = cqe - 1;
	if (cqe == cq->entries)
		return uverbs_reply(c, &core, sizeof(core), NULL, 0);
	if (kernel_queue_umem(drv.buf_addr, (uint64_t)cqe * CQE, &ring, &ring_at) != 0)
		return ENOMEM;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, BB_PRM_CQ_OP_MOD_RESIZE);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, cq->num);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT,
		   BB_PRM_CQ_RESIZE_LOG_SIZE | BB_PRM_CQ_RESIZE_PG_OFFSET |
			   BB_PRM_CQ_RESIZE_PG_SIZE);
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, kernel_log2(cqe));
	bb_prm_set(in, BB_PRM_MODIFY_CQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, ring->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ring_at);
	if (kernel_soft->cmd->obj_modify(cq->obj, in, sizeof(in), out, sizeof(out)) != 0) {
		(void)kernel_soft->cmd->umem_dereg(kernel_soft, ring);
		return EINVAL;
	}
	(void)kernel_soft->cmd->umem_dereg(kernel_soft, cq->ring);
	cq->ring = ring;
	cq->ring_at = ring_at;
	cq->entries = cqe;
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

/*
 * As mlx5_ib_modify_cq(), except that this command goes through DEVX: there the kernel does not
 * set cq_umem_valid, so this mailbox names the ring.
 */
int
kernel_modify_cq(const struct uverbs_cmd *c)
{
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_MODIFY_CQ_CQC);
	struct ib_uverbs_ex_modify_cq q;
	const struct kernel_queue *cq;

	if (c->in_len < sizeof(q))
		return EINVAL;
	memcpy(&q, c->in, sizeof(q));
	cq = kernel_get(CQ, q.cq_handle);
	if (cq == NULL || q.attr_mask != IBV_CQ_ATTR_MODERATE || q.attr.cq_period > MAX_PERIOD)
		return EINVAL;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, cq->num);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT,
		   BB_PRM_CQ_MODIFY_PERIOD | BB_PRM_CQ_MODIFY_COUNT);
	bb_prm_set(cqc, BB_PRM_CQC_CQ_PERIOD, q.attr.cq_period);
	bb_prm_set(cqc, BB_PRM_CQC_CQ_MAX_COUNT, q.attr.cq_count);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, cq->ring->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, cq->ring_at);
	return kernel_soft->cmd->obj_modify(cq->obj, in, sizeof(in), out, sizeof(out)) != 0 ? EINVAL
											    : 0;
}
