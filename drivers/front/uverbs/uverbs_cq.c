/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Creates, resizes and moderates the CQs of ibv_create_cq(), as Linux
 * drivers/infiniband/hw/mlx5/cq.c does. After a resize libmlx5 moves the unread CQEs to the new
 * ring.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include "bb_prm.h"
#include "uverbs_queue.h"

#define MAX_CQE    (1u << 22)
#define MAX_PERIOD 4095u /* MLX5_MAX_CQ_PERIOD */

/* Attributes of a CQ that the program requests. */
struct request {
	uint64_t element;
	uint32_t cqe, vector;
	int channel;
};

static int
create(struct uverbs_file *f, const struct uverbs_cmd *c, const struct request *r, bool ex)
{
	static const uint16_t types[] = {BB_PRM_EVENT_CQ_ERROR};
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_CREATE_CQ_CQC);
	struct ib_uverbs_ex_create_cq_resp core = {.response_length = sizeof(core)};
	struct mlx5_ib_create_cq_resp drv = {0};
	struct mlx5_ib_create_cq q = {0};
	uint64_t ring_at, rec_at;
	const struct uverbs_events *ev = r->channel >= 0 ? uverbs_events_find(f, r->channel) : NULL;
	struct uverbs_queue *cq;
	uint32_t eqn, cqe;
	int ret;

	memcpy(&q, c->drv_in, c->drv_len < sizeof(q) ? c->drv_len : sizeof(q));
	if (r->cqe < 1 || r->cqe >= MAX_CQE || r->vector >= UVERBS_COMP_VECTORS)
		return EINVAL;
	/* The smallest power of two above the requested number. */
	cqe = 1u << (uverbs_log2(r->cqe) + 1);
	if ((q.cqe_size != 64 && q.cqe_size != 128) ||
	    (r->channel >= 0 && (ev == NULL || ev->kind != UV_COMP)) ||
	    f->soft->cmd->query_eqn(f->soft, r->vector, &eqn) != 0)
		return EINVAL;
	cq = uverbs_queue_begin(f, q.buf_addr, (uint64_t)cqe * q.cqe_size, q.db_addr, &ring_at,
				&rec_at);
	if (cq == NULL)
		return ENOMEM;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_CQ);
	bb_prm_set(cqc, BB_PRM_CQC_CQE_SZ, q.cqe_size == 128);
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, uverbs_log2(cqe));
	bb_prm_set(cqc, BB_PRM_CQC_UAR_PAGE, q.uar_page_index);
	bb_prm_set(cqc, BB_PRM_CQC_C_EQN, eqn);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_VALID, 1);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_ID, cq->rec->id);
	bb_prm_set64(cqc, BB_PRM_CQC_DBR_ADDR, rec_at);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, cq->ring->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ring_at);
	ret = f->soft->cmd->obj_create(f->soft, in, sizeof(in), out, sizeof(out), &cq->obj);
	if (ret != 0) {
		(void)uverbs_queue_end(f, cq);
		return uverbs_queue_errno(ret, out);
	}
	cq->num = bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN);
	cq->uar = q.uar_page_index;
	cq->ring_at = ring_at;
	cq->element = r->element;
	cq->entries = cqe;
	cq->cqe_size = (uint16_t)q.cqe_size;
	core.base.cq_handle = uverbs_queue_born(f, UV_CQ, cq, types, 1);
	if (core.base.cq_handle == 0) {
		(void)uverbs_queue_end(f, cq);
		return ENOMEM;
	}
	if (ev != NULL &&
	    f->soft->cmd->channel_subscribe(ev->ch, cq->obj, core.base.cq_handle) != 0) {
		(void)uverbs_destroy(f, UV_CQ, core.base.cq_handle);
		return EINVAL;
	}
	core.base.cqe = cqe - 1;
	drv.cqn = cq->num;
	return uverbs_reply(c, &core, ex ? sizeof(core) : sizeof(core.base), &drv, sizeof(drv));
}

int
uverbs_create_cq(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_create_cq q;

	memcpy(&q, c->in, sizeof(q));
	return create(f, c,
		      &(const struct request){q.user_handle, q.cqe, q.comp_vector, q.comp_channel},
		      false);
}

int
uverbs_create_cq_ex(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_create_cq q;

	memcpy(&q, c->in, sizeof(q));
	/* The flag for timestamps needs no action, because each CQE has a timestamp. */
	if ((q.flags & ~(uint32_t)IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION) != 0)
		return EOPNOTSUPP;
	return create(f, c,
		      &(const struct request){q.user_handle, q.cqe, q.comp_vector, q.comp_channel},
		      true);
}

/* Resizes a CQ as mlx5_ib_resize_cq() does. The new ring is in a umem instead of a page list. */
int
uverbs_resize_cq(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_MODIFY_CQ_CQC);
	struct ib_uverbs_resize_cq_resp core = {0};
	struct mlx5_ib_resize_cq drv = {0};
	struct ib_uverbs_resize_cq q;
	struct mlx5_umem *ring;
	struct uverbs_queue *cq;
	uint64_t ring_at;
	uint32_t cqe;

	if (c->drv_len < sizeof(drv))
		return EINVAL;
	memcpy(&q, c->in, sizeof(q));
	memcpy(&drv, c->drv_in, sizeof(drv));
	cq = uverbs_find(f, UV_CQ, q.cq_handle);
	if (cq == NULL || q.cqe < 1 || q.cqe >= MAX_CQE || drv.cqe_size != cq->cqe_size)
		return EINVAL;
	cqe = 1u << (uverbs_log2(q.cqe) + 1);
	core.cqe = cqe - 1;
	if (cqe == cq->entries)
		return uverbs_reply(c, &core, sizeof(core), NULL, 0);
	if (uverbs_queue_umem(f, drv.buf_addr, (uint64_t)cqe * drv.cqe_size, &ring, &ring_at) != 0)
		return ENOMEM;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, BB_PRM_CQ_OP_MOD_RESIZE);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, cq->num);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT,
		   BB_PRM_CQ_RESIZE_LOG_SIZE | BB_PRM_CQ_RESIZE_PG_OFFSET |
			   BB_PRM_CQ_RESIZE_PG_SIZE);
	bb_prm_set(cqc, BB_PRM_CQC_CQE_SZ, cq->cqe_size == 128);
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, uverbs_log2(cqe));
	bb_prm_set(in, BB_PRM_MODIFY_CQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, ring->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ring_at);
	if (f->soft->cmd->obj_modify(cq->obj, in, sizeof(in), out, sizeof(out)) != 0) {
		(void)f->soft->cmd->umem_dereg(f->soft, ring);
		return EINVAL;
	}
	(void)f->soft->cmd->umem_dereg(f->soft, cq->ring);
	cq->ring = ring;
	cq->ring_at = ring_at;
	cq->entries = cqe;
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

/*
 * Moderates the events of a CQ, as mlx5_ib_modify_cq() does. That function leaves the ring out of
 * the mailbox. This mailbox names the ring and sets cq_umem_valid, as DEVX does, because the ring
 * is in a umem.
 */
int
uverbs_modify_cq(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_MODIFY_CQ_CQC);
	struct ib_uverbs_ex_modify_cq q;
	const struct uverbs_queue *cq;

	memcpy(&q, c->in, sizeof(q));
	cq = uverbs_find(f, UV_CQ, q.cq_handle);
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
	return uverbs_queue_errno(
		f->soft->cmd->obj_modify(cq->obj, in, sizeof(in), out, sizeof(out)), out);
}
