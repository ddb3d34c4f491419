/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Creates the SRQs of ibv_create_srq(), which are RMPs to the device, as Linux
 * drivers/infiniband/hw/mlx5/{srq,srq_cmd}.c does. libmlx5 links and posts the WQEs.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include "bb_prm.h"
#include "bb_wqe.h"
#include "uverbs_queue.h"

#define MAX_SGE 31u /* max_srq_sge of uverbs_query.c */

int
uverbs_create_srq(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	static const uint16_t types[] = {BB_PRM_EVENT_SRQ_RQ_LIMIT, BB_PRM_EVENT_SRQ_CATAS_ERROR};
	uint8_t in[BB_PRM_SZ_RMP] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *ctx = bb_prm_sub(in, BB_PRM_CREATE_RMP_CTX);
	void *wq = bb_prm_sub(ctx, BB_PRM_RMPC_WQ);
	struct ib_uverbs_create_srq_resp core = {0};
	struct mlx5_ib_create_srq_resp drv = {0};
	struct mlx5_ib_create_srq d = {0};
	struct ib_uverbs_create_srq q;
	uint64_t ring_at, rec_at;
	struct uverbs_queue *srq;
	uint32_t wqes, log_stride;
	struct mlx5_pd *pd;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	memcpy(&d, c->drv_in, c->drv_len < sizeof(d) ? c->drv_len : sizeof(d));
	pd = uverbs_find(f, UV_PD, q.pd_handle);
	if (pd == NULL || q.max_wr >= 1u << 16 || q.max_sge > MAX_SGE)
		return EINVAL;
	if ((d.flags & MLX5_SRQ_FLAG_SIGNATURE) != 0)
		return EOPNOTSUPP;
	/*
	 * libmlx5 has allocated the ring. It rounds the number and the size of the WQEs up to
	 * powers of two, so this function does the same. A WQE has at least 32 bytes, and a
	 * request for no WQE still gets a ring of one.
	 */
	wqes = q.max_wr != 0 ? 1u << (uverbs_log2(q.max_wr) + 1) : 1;
	log_stride = q.max_sge <= 1 ? 5 : uverbs_log2((1 + q.max_sge) * BB_WQE_SEG - 1) + 1;
	srq = uverbs_queue_begin(f, d.buf_addr, (uint64_t)wqes << log_stride, d.db_addr, &ring_at,
				 &rec_at);
	if (srq == NULL)
		return ENOMEM;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_RMP);
	bb_prm_set(ctx, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(wq, BB_PRM_WQ_TYPE, BB_PRM_WQ_TYPE_LIST);
	bb_prm_set(wq, BB_PRM_WQ_PD, pd->pdn);
	bb_prm_set(wq, BB_PRM_WQ_LOG_STRIDE, log_stride);
	bb_prm_set(wq, BB_PRM_WQ_LOG_SZ, uverbs_log2(wqes));
	bb_prm_set(wq, BB_PRM_WQ_DBR_UMEM_VALID, 1);
	bb_prm_set(wq, BB_PRM_WQ_DBR_UMEM_ID, srq->rec->id);
	bb_prm_set64(wq, BB_PRM_WQ_DBR_ADDR, rec_at);
	bb_prm_set(wq, BB_PRM_WQ_UMEM_VALID, 1);
	bb_prm_set(wq, BB_PRM_WQ_UMEM_ID, srq->ring->id);
	bb_prm_set64(wq, BB_PRM_WQ_UMEM_OFFSET, ring_at);
	ret = f->soft->cmd->obj_create(f->soft, in, sizeof(in), out, sizeof(out), &srq->obj);
	if (ret != 0) {
		(void)uverbs_queue_end(f, srq);
		return uverbs_queue_errno(ret, out);
	}
	srq->num = bb_prm_get(out, BB_PRM_CREATE_RMP_OUT_RMPN);
	srq->element = q.user_handle;
	srq->entries = wqes;
	srq->max_sge = q.max_sge;
	core.srq_handle = uverbs_queue_born(f, UV_SRQ, srq, types, 2);
	if (core.srq_handle == 0) {
		(void)uverbs_queue_end(f, srq);
		return ENOMEM;
	}
	core.max_wr = wqes - 1;
	core.max_sge = q.max_sge;
	core.srqn = srq->num;
	drv.srqn = srq->num;
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
}

/* Arms the limit of an SRQ as arm_rmp_cmd() does. An SRQ cannot be resized. */
int
uverbs_modify_srq(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	uint8_t in[BB_PRM_SZ_RMP] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *ctx = bb_prm_sub(in, BB_PRM_MODIFY_RMP_CTX);
	const struct uverbs_queue *srq;
	struct ib_uverbs_modify_srq q;

	memcpy(&q, c->in, sizeof(q));
	srq = uverbs_find(f, UV_SRQ, q.srq_handle);
	if (srq == NULL || (q.attr_mask & IBV_SRQ_MAX_WR) != 0)
		return EINVAL;
	if ((q.attr_mask & IBV_SRQ_LIMIT) == 0)
		return 0;
	if (q.srq_limit >= srq->entries)
		return EINVAL;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MODIFY_RMP);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_RMPN, srq->num);
	bb_prm_set(bb_prm_sub(in, BB_PRM_MODIFY_RMP_BITMASK), BB_PRM_RMP_BITMASK_LWM, 1);
	bb_prm_set(ctx, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(bb_prm_sub(ctx, BB_PRM_RMPC_WQ), BB_PRM_WQ_LWM, q.srq_limit);
	return uverbs_queue_errno(
		f->soft->cmd->obj_modify(srq->obj, in, sizeof(in), out, sizeof(out)), out);
}

int
uverbs_query_srq(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_RMP] = {0};
	const void *ctx = bb_prm_csub(out, BB_PRM_QUERY_RMP_OUT_CTX);
	struct ib_uverbs_query_srq_resp core = {0};
	const struct uverbs_queue *srq;
	struct ib_uverbs_query_srq q;

	memcpy(&q, c->in, sizeof(q));
	srq = uverbs_find(f, UV_SRQ, q.srq_handle);
	if (srq == NULL)
		return EINVAL;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_RMP);
	bb_prm_set(in, BB_PRM_QUERY_RMP_RMPN, srq->num);
	if (f->soft->cmd->obj_query(srq->obj, in, sizeof(in), out, sizeof(out)) != 0)
		return EINVAL;
	core.max_wr = srq->entries - 1;
	core.max_sge = srq->max_sge;
	core.srq_limit = bb_prm_get(bb_prm_csub(ctx, BB_PRM_RMPC_WQ), BB_PRM_WQ_LWM);
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}
