/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CREATE_CQ, DESTROY_CQ. */
#include <stdlib.h>

#include "soft_ctl.h"

#define SOFT_SYNDROME 0xbb020000u

#define CQC_AT 0x10
#define CQE    64u

/*
 * Absent: collapsed CQs, CQE compression, overrun ignored, interrupt moderation. The
 * device has none of them, and page_offset has no place beside a umem offset.
 */
static const struct soft_field create_fields[] = {
	{BB_PRM_CREATE_CQ_UMEM_OFFSET, 0}, {BB_PRM_CREATE_CQ_UMEM_ID, 0},
	{BB_PRM_CREATE_CQ_UMEM_VALID, 0},  {BB_PRM_CQC_DBR_UMEM_VALID, CQC_AT},
	{BB_PRM_CQC_CQE_SZ, CQC_AT},       {BB_PRM_CQC_DBR_UMEM_ID, CQC_AT},
	{BB_PRM_CQC_LOG_CQ_SIZE, CQC_AT},  {BB_PRM_CQC_UAR_PAGE, CQC_AT},
	{BB_PRM_CQC_C_EQN, CQC_AT},        {BB_PRM_CQC_LOG_PAGE_SIZE, CQC_AT},
	{BB_PRM_CQC_DBR_ADDR, CQC_AT},
};

int
soft_cmd_create_cq(struct soft_cmd *cmd)
{
	const void *cqc = bb_prm_csub(cmd->in, BB_PRM_CREATE_CQ_CQC);
	uint32_t log_size = bb_prm_get(cqc, BB_PRM_CQC_LOG_CQ_SIZE);
	uint32_t cqe_sz = bb_prm_get(cqc, BB_PRM_CQC_CQE_SZ);
	uint32_t uar_id = bb_prm_get(cqc, BB_PRM_CQC_UAR_PAGE);
	uint32_t umem_id = bb_prm_get(cmd->in, BB_PRM_CREATE_CQ_UMEM_ID);
	uint32_t db_umem_id = bb_prm_get(cqc, BB_PRM_CQC_DBR_UMEM_ID);
	uint64_t offset = bb_prm_get64(cmd->in, BB_PRM_CREATE_CQ_UMEM_OFFSET);
	uint64_t dbr_addr = bb_prm_get64(cqc, BB_PRM_CQC_DBR_ADDR);
	struct soft_umem *umem = soft_cmd_umem(cmd, umem_id);
	struct soft_umem *db_umem = soft_cmd_umem(cmd, db_umem_id);
	struct soft_uar_page *uar = soft_cmd_uar(cmd, uar_id);
	struct soft_cq *cq;
	int ret;

	ret = soft_cmd_only(cmd, create_fields, RTE_DIM(create_fields));
	if (ret != 0)
		return ret;
	if (cqe_sz != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM, "cqe_sz %u: CQEs have 64 bytes (0)", cqe_sz);
	if (log_size > SOFT_LOG_MAX_CQ_SZ)
		return SOFT_REFUSE(cmd, BAD_PARAM, "log_cq_size %u is above %d", log_size,
				   SOFT_LOG_MAX_CQ_SZ);
	if (uar == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "UAR page 0x%x does not exist", uar_id);
	if (umem == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "cq_umem_id 0x%x does not exist", umem_id);
	if (db_umem == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "dbr_umem_id 0x%x does not exist", db_umem_id);
	if (!umem->writable)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "umem 0x%x was registered without LOCAL_WRITE: CQEs could not "
				   "be written",
				   umem_id);
	ret = soft_cmd_page_size(cmd, umem, bb_prm_get(cqc, BB_PRM_CQC_LOG_PAGE_SIZE), offset);
	if (ret == 0)
		ret = soft_cmd_umem_range(cmd, "CQ buffer", umem, offset, (uint64_t)CQE << log_size,
					  CQE);
	if (ret == 0)
		ret = soft_cmd_umem_range(cmd, "doorbell record", db_umem, dbr_addr, 8, 8);
	if (ret != 0)
		return ret;

	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "no memory");
	if (soft_ids_alloc(&cmd->dev->ctl->cq_ids, &cq->cqn) != 0) {
		free(cq);
		return SOFT_REFUSE(cmd, NO_RES, "all CQ numbers are in use");
	}
	cq->uar = uar;
	cq->umem = umem;
	cq->db_umem = db_umem;
	cq->buf = umem->base + offset;
	cq->dbrec = (uint32_t *)(void *)(db_umem->base + dbr_addr);
	cq->log_size = log_size;
	cq->eqn = bb_prm_get(cqc, BB_PRM_CQC_C_EQN);
	cq->obj = cmd->obj;
	uar->refs++;
	umem->refs++;
	db_umem->refs++;
	__atomic_store_n(&cmd->dev->cqs[cq->cqn], cq, __ATOMIC_RELEASE);
	bb_prm_set(cmd->out, BB_PRM_CREATE_CQ_OUT_CQN, cq->cqn);
	return 0;
}

int
soft_cmd_destroy_cq(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_DESTROY_CQ_CQN, 0}};
	uint32_t cqn = bb_prm_get(cmd->in, BB_PRM_DESTROY_CQ_CQN);
	struct soft_cq *cq = soft_cmd_cq(cmd, cqn);
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (cq == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "CQ 0x%x does not exist", cqn);
	if (cq->refs != 0)
		return SOFT_REFUSE(cmd, RES_BUSY,
				   "CQ 0x%x is attached to %u send and receive queues", cqn,
				   cq->refs);
	__atomic_store_n(&cmd->dev->cqs[cqn], NULL, __ATOMIC_RELEASE);
	soft_quiesce();
	soft_ids_free(&cmd->dev->ctl->cq_ids, cqn);
	cq->uar->refs--;
	cq->umem->refs--;
	cq->db_umem->refs--;
	free(cq);
	return 0;
}
