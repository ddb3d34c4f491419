/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * CREATE_RMP, MODIFY_RMP, QUERY_RMP, DESTROY_RMP: receive queues that several QPs share.
 *
 * mlx5_ib creates linked lists for SRQs of verbs (srq_cmd.c, create_rmp_cmd()); UCX creates cyclic
 * queues. The limit event is armed as in arm_rmp_cmd() of mlx5_ib.
 */
#include <stdlib.h>
#include <string.h>

#include "bb_prm_kernel.h"
#include "soft_ctl.h"

#define SOFT_SYNDROME 0xbb060000u

#define CTX_AT     0x20
#define WQ_AT      (CTX_AT + 0x30)
#define BITMASK_AT 0x10

/*
 * Fields that CREATE_RMP accepts. Not accepted: signatures, striding, header split.
 */
static const struct soft_field create_fields[] = {
	{BB_PRM_RMPC_STATE, CTX_AT},    {BB_PRM_RMPC_BASIC_CYCLIC, CTX_AT},
	{BB_PRM_WQ_TYPE, WQ_AT},        {BB_PRM_WQ_LWM, WQ_AT},
	{BB_PRM_WQ_PD, WQ_AT},          {BB_PRM_WQ_DBR_ADDR, WQ_AT},
	{BB_PRM_WQ_LOG_STRIDE, WQ_AT},  {BB_PRM_WQ_LOG_PG_SZ, WQ_AT},
	{BB_PRM_WQ_LOG_SZ, WQ_AT},      {BB_PRM_WQ_DBR_UMEM_VALID, WQ_AT},
	{BB_PRM_WQ_UMEM_VALID, WQ_AT},  {BB_PRM_WQ_DBR_UMEM_ID, WQ_AT},
	{BB_PRM_WQ_UMEM_ID, WQ_AT},     {BB_PRM_WQ_UMEM_OFFSET, WQ_AT},
	{BB_PRM_WQ_PAGE_OFFSET, WQ_AT},
};

struct soft_rmp *
soft_cmd_rmp(const struct soft_cmd *cmd, uint32_t rmpn)
{
	struct soft_rmp *rmp = rmpn < 1u << SOFT_LOG_MAX_RMP ? cmd->dev->ctl->rmps[rmpn] : NULL;

	return rmp != NULL && soft_ctx_may_use(cmd->ctx, soft_ctx(rmp->obj->ctx)) ? rmp : NULL;
}

/* Checks the type (linked list or cyclic) and size of the queue, and stores them in @rmp. */
static int
check_kind(struct soft_cmd *cmd, const void *ctx, const void *wq, struct soft_rmp *rmp)
{
	uint32_t type = bb_prm_get(wq, BB_PRM_WQ_TYPE);
	uint32_t state = bb_prm_get(ctx, BB_PRM_RMPC_STATE);
	bool basic = bb_prm_get(ctx, BB_PRM_RMPC_BASIC_CYCLIC) != 0;

	if (cmd->dev->opts.no_srq)
		return SOFT_REFUSE(cmd, NO_RES, "the device has no RMPs (log_max_rmp is 0)");
	if (state != BB_PRM_RMPC_RDY)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid state %u of a new RMP (1, RDY)", state);
	if (type != BB_PRM_WQ_TYPE_LIST && type != BB_PRM_WQ_TYPE_CYCLIC)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid wq_type %u (0 linked list, 1 cyclic queue)", type);
	if (basic && type != BB_PRM_WQ_TYPE_CYCLIC)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"basic_cyclic_rcv_wqe is set for a linked list, whose WQEs need a next "
			"segment");
	rmp->list = type == BB_PRM_WQ_TYPE_LIST;
	rmp->head_bytes = basic ? 0 : BB_WQE_SEG;
	rmp->log_size = bb_prm_get(wq, BB_PRM_WQ_LOG_SZ);
	rmp->log_stride = bb_prm_get(wq, BB_PRM_WQ_LOG_STRIDE);
	rmp->lwm = bb_prm_get(wq, BB_PRM_WQ_LWM);
	if (rmp->log_size > SOFT_LOG_MAX_SRQ_SZ)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid log_wq_sz %u (0 to %d)", rmp->log_size,
				   SOFT_LOG_MAX_SRQ_SZ);
	if (1u << rmp->log_stride > SOFT_MAX_RQ_STRIDE ||
	    1u << rmp->log_stride < rmp->head_bytes + BB_WQE_SEG)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"invalid log_wq_stride %u (WQEs of %u to %d bytes, including a next "
			"segment of %u bytes)",
			rmp->log_stride, rmp->head_bytes + BB_WQE_SEG, SOFT_MAX_RQ_STRIDE,
			rmp->head_bytes);
	if (rmp->lwm > 1u << rmp->log_size)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid lwm %u (0 to %u, the WQEs of the RMP)",
				   rmp->lwm, 1u << rmp->log_size);
	return 0;
}

static int
check_memory(struct soft_cmd *cmd, const void *wq, struct soft_rmp *rmp)
{
	uint32_t pdn = bb_prm_get(wq, BB_PRM_WQ_PD);
	struct soft_queue_mem m = {
		.what = "queue buffer",
		.umem_field = "wq_umem_id",
		.umem_valid = bb_prm_get(wq, BB_PRM_WQ_UMEM_VALID) != 0,
		.umem_id = bb_prm_get(wq, BB_PRM_WQ_UMEM_ID),
		.offset = bb_prm_get64(wq, BB_PRM_WQ_UMEM_OFFSET),
		.log_page_size = bb_prm_get(wq, BB_PRM_WQ_LOG_PG_SZ),
		.page_offset = bb_prm_get(wq, BB_PRM_WQ_PAGE_OFFSET),
		.page_offset_field = BB_PRM_WQ_PAGE_OFFSET,
		.list = WQ_AT + BB_PRM_WQ_PAS,
		.has_dbr = true,
		.dbr_valid = bb_prm_get(wq, BB_PRM_WQ_DBR_UMEM_VALID) != 0,
		.dbr_id = bb_prm_get(wq, BB_PRM_WQ_DBR_UMEM_ID),
		.dbr_addr = bb_prm_get64(wq, BB_PRM_WQ_DBR_ADDR),
	};
	int ret;

	rmp->pd = soft_cmd_pd(cmd, pdn);
	if (rmp->pd == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "PD 0x%x does not exist", pdn);
	ret = soft_queue_mem_find(cmd, &m);
	if (ret == 0)
		ret = soft_queue_mem_open(cmd, &m, UINT64_C(1) << (rmp->log_size + rmp->log_stride),
					  BB_WQE_BB);
	if (ret != 0)
		return ret;
	rmp->pdn = pdn;
	rmp->umem = m.umem;
	rmp->db_umem = m.db_umem;
	rmp->buf = m.umem->base + m.offset;
	rmp->dbrec = (uint32_t *)(void *)(m.db_umem->base + m.dbr_addr);
	return 0;
}

static void
drop_memory(struct soft_rmp *rmp)
{
	soft_umem_discard(rmp->umem);
	soft_umem_discard(rmp->db_umem);
}

int
soft_cmd_create_rmp(struct soft_cmd *cmd)
{
	const void *ctx = bb_prm_csub(cmd->in, BB_PRM_CREATE_RMP_CTX);
	const void *wq = bb_prm_csub(ctx, BB_PRM_RMPC_WQ);
	struct soft_rmp found = {0}, *rmp;
	int ret;

	ret = soft_cmd_only(cmd, create_fields, RTE_DIM(create_fields));
	if (ret == 0)
		ret = check_kind(cmd, ctx, wq, &found);
	if (ret == 0)
		ret = check_memory(cmd, wq, &found);
	if (ret != 0)
		return ret;
	rmp = calloc(1, sizeof(*rmp));
	if (rmp == NULL) {
		drop_memory(&found);
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for an RMP");
	}
	*rmp = found;
	if (soft_ids_alloc(&cmd->dev->ctl->rmp_ids, &rmp->rmpn) != 0) {
		drop_memory(&found);
		free(rmp);
		return SOFT_REFUSE(cmd, NO_RES, "all RMP numbers are in use: destroy some RMPs");
	}
	rmp->dev = cmd->dev;
	rmp->obj = cmd->obj;
	rte_ticketlock_init(&rmp->lock);
	memcpy(rmp->ctx, ctx, sizeof(rmp->ctx));
	rmp->pd->rmps++;
	rmp->umem->refs++;
	rmp->db_umem->refs++;
	cmd->dev->ctl->rmps[rmp->rmpn] = rmp;
	bb_prm_set(cmd->out, BB_PRM_CREATE_RMP_OUT_RMPN, rmp->rmpn);
	return 0;
}

int
soft_cmd_modify_rmp(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {
		{BB_PRM_MODIFY_RMP_STATE, 0},
		{BB_PRM_MODIFY_RMP_RMPN, 0},
		{BB_PRM_RMP_BITMASK_LWM, BITMASK_AT},
		{BB_PRM_RMPC_STATE, CTX_AT},
		{BB_PRM_WQ_LWM, WQ_AT},
	};
	const void *ctx = bb_prm_csub(cmd->in, BB_PRM_MODIFY_RMP_CTX);
	uint32_t rmpn = bb_prm_get(cmd->in, BB_PRM_MODIFY_RMP_RMPN);
	uint32_t from = bb_prm_get(cmd->in, BB_PRM_MODIFY_RMP_STATE);
	uint32_t to = bb_prm_get(ctx, BB_PRM_RMPC_STATE);
	uint32_t lwm = bb_prm_get(bb_prm_csub(ctx, BB_PRM_RMPC_WQ), BB_PRM_WQ_LWM);
	bool has_lwm = bb_prm_get(bb_prm_csub(cmd->in, BB_PRM_MODIFY_RMP_BITMASK),
				  BB_PRM_RMP_BITMASK_LWM) != 0;
	struct soft_rmp *rmp = soft_cmd_rmp(cmd, rmpn);
	bool failed;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (rmp == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "RMP 0x%x does not exist", rmpn);
	if (from != BB_PRM_RMPC_RDY || to != BB_PRM_RMPC_RDY)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"invalid change of an RMP from state %u to state %u (both 1, RDY)", from,
			to);
	if (has_lwm && lwm > 1u << rmp->log_size)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid lwm %u (0 to %u, the WQEs of the RMP)",
				   lwm, 1u << rmp->log_size);
	rte_ticketlock_lock(&rmp->lock);
	failed = rmp->error;
	if (!failed && has_lwm)
		rmp->lwm = lwm;
	rte_ticketlock_unlock(&rmp->lock);
	if (failed)
		return SOFT_REFUSE(cmd, BAD_RES_STATE,
				   "RMP 0x%x is in state ERR: destroy and create it", rmpn);
	return 0;
}

int
soft_cmd_query_rmp(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_QUERY_RMP_RMPN, 0}};
	uint32_t rmpn = bb_prm_get(cmd->in, BB_PRM_QUERY_RMP_RMPN);
	void *ctx = bb_prm_sub(cmd->out, BB_PRM_QUERY_RMP_OUT_CTX);
	void *wq = bb_prm_sub(ctx, BB_PRM_RMPC_WQ);
	struct soft_rmp *rmp = soft_cmd_rmp(cmd, rmpn);
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (rmp == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "RMP 0x%x does not exist", rmpn);
	memcpy(ctx, rmp->ctx, sizeof(rmp->ctx));
	rte_ticketlock_lock(&rmp->lock);
	bb_prm_set(ctx, BB_PRM_RMPC_STATE, rmp->error ? BB_PRM_RMPC_ERR : BB_PRM_RMPC_RDY);
	bb_prm_set(wq, BB_PRM_WQ_LWM, rmp->lwm);
	bb_prm_set(wq, BB_PRM_WQ_HW_COUNTER, rmp->taken);
	bb_prm_set(wq, BB_PRM_WQ_SW_COUNTER,
		   bb_be32(__atomic_load_n(rmp->dbrec, __ATOMIC_ACQUIRE)) & 0xffff);
	rte_ticketlock_unlock(&rmp->lock);
	return 0;
}

int
soft_cmd_destroy_rmp(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_DESTROY_RMP_RMPN, 0}};
	uint32_t rmpn = bb_prm_get(cmd->in, BB_PRM_DESTROY_RMP_RMPN);
	struct soft_rmp *rmp = soft_cmd_rmp(cmd, rmpn);
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (rmp == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "RMP 0x%x does not exist", rmpn);
	if (rmp->refs != 0)
		return SOFT_REFUSE(cmd, RES_BUSY, "RMP 0x%x is used by %u QPs: destroy them first",
				   rmpn, rmp->refs);
	/*
	 * Engines find an RMP only through its QPs. No QP uses this RMP any more, so no engine can.
	 */
	cmd->dev->ctl->rmps[rmpn] = NULL;
	soft_ids_free(&cmd->dev->ctl->rmp_ids, rmpn);
	rmp->pd->rmps--;
	soft_umem_unref(rmp->umem);
	soft_umem_unref(rmp->db_umem);
	free(rmp);
	return 0;
}
