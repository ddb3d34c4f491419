/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands CREATE_CQ, DESTROY_CQ and MODIFY_CQ. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "bb_prm_kernel.h"
#include "soft_ctl.h"

#define SOFT_SYNDROME 0xbb020000u

#define CQC_AT 0x10
#define CQE    64u
/* Values of cqc.cqe_sz: CQE_STRIDE_* of Linux include/linux/mlx5/cq.h. */
#define CQE_STRIDE_64  0u
#define CQE_STRIDE_128 1u

/*
 * Fields that CREATE_CQ accepts. The list does not have the fields of features that the device does
 * not support. These are collapsed CQs, the enhanced layout of compressed CQEs, and period modes.
 * The list does not have page_offset either: it belongs to page lists. For a ring in a umem,
 * umem_offset gives the offset.
 */
static const struct soft_field create_fields[] = {
	{BB_PRM_CREATE_CQ_UMEM_OFFSET, 0},
	{BB_PRM_CREATE_CQ_UMEM_ID, 0},
	{BB_PRM_CREATE_CQ_UMEM_VALID, 0},
	{BB_PRM_CQC_DBR_UMEM_VALID, CQC_AT},
	{BB_PRM_CQC_CQE_SZ, CQC_AT},
	{BB_PRM_CQC_DBR_UMEM_ID, CQC_AT},
	{BB_PRM_CQC_LOG_CQ_SIZE, CQC_AT},
	{BB_PRM_CQC_UAR_PAGE, CQC_AT},
	{BB_PRM_CQC_C_EQN, CQC_AT},
	{BB_PRM_CQC_LOG_PAGE_SIZE, CQC_AT},
	{BB_PRM_CQC_PAGE_OFFSET, CQC_AT},
	{BB_PRM_CQC_DBR_ADDR, CQC_AT},
	{BB_PRM_CQC_CQE_COMP_EN, CQC_AT},
	{BB_PRM_CQC_CQ_PERIOD, CQC_AT},
	{BB_PRM_CQC_OI, CQC_AT},
	{BB_PRM_CQC_CQ_MAX_COUNT, CQC_AT},
	{BB_PRM_CQC_MINI_CQE_RES_FORMAT, CQC_AT},
};

/*
 * Rejects event moderation or CQE compression if the device's options disable it. Also rejects mini
 * CQEs of receives with a stride index, because the device supports only mini CQEs with a checksum.
 */
static int
create_features(struct soft_cmd *cmd, const void *cqc)
{
	bool moderation = bb_prm_get(cqc, BB_PRM_CQC_CQ_PERIOD) != 0 ||
			  bb_prm_get(cqc, BB_PRM_CQC_CQ_MAX_COUNT) != 0;
	uint32_t format = bb_prm_get(cqc, BB_PRM_CQC_MINI_CQE_RES_FORMAT);
	bool zip = bb_prm_get(cqc, BB_PRM_CQC_CQE_COMP_EN) != 0;

	if (moderation && cmd->dev->opts.no_cq_moderation)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"the device has no CQ moderation: set cq_period and cq_max_count to 0");
	if (zip && cmd->dev->opts.no_compress)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "the device has no CQE compression: set cqe_comp_en to 0");
	if (format != (zip ? BB_PRM_CQ_MINI_CSUM : 0u))
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"invalid mini_cqe_res_format %u (%d, checksum, if cqe_comp_en is set, "
			"else 0)",
			format, BB_PRM_CQ_MINI_CSUM);
	return 0;
}

/* Reads the location of the ring and of the doorbell record from the mailbox. */
static void
cq_mem(const struct soft_cmd *cmd, const void *cqc, struct soft_queue_mem *m)
{
	*m = (struct soft_queue_mem){
		.what = "CQ buffer",
		.umem_field = "cq_umem_id",
		.umem_valid = bb_prm_get(cmd->in, BB_PRM_CREATE_CQ_UMEM_VALID) != 0,
		.umem_id = bb_prm_get(cmd->in, BB_PRM_CREATE_CQ_UMEM_ID),
		.offset = bb_prm_get64(cmd->in, BB_PRM_CREATE_CQ_UMEM_OFFSET),
		.log_page_size = bb_prm_get(cqc, BB_PRM_CQC_LOG_PAGE_SIZE),
		.page_offset = bb_prm_get(cqc, BB_PRM_CQC_PAGE_OFFSET),
		.page_offset_field = BB_PRM_CQC_PAGE_OFFSET,
		.list = BB_PRM_CREATE_CQ_PAS,
		.has_dbr = true,
		.dbr_valid = bb_prm_get(cqc, BB_PRM_CQC_DBR_UMEM_VALID) != 0,
		.dbr_id = bb_prm_get(cqc, BB_PRM_CQC_DBR_UMEM_ID),
		.dbr_addr = bb_prm_get64(cqc, BB_PRM_CQC_DBR_ADDR),
	};
}

/* Finds and checks the memory of a CQ. Returns 0, or rejects the command. */
static int
open_mem(struct soft_cmd *cmd, struct soft_queue_mem *m, uint32_t log_size, uint32_t cqe_sz)
{
	int ret = soft_queue_mem_find(cmd, m);

	if (ret != 0)
		return ret;
	if (m->umem_valid && !m->umem->writable)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"the device cannot write CQEs to umem 0x%x: register the umem with "
			"LOCAL_WRITE",
			m->umem_id);
	return soft_queue_mem_open(cmd, m, (uint64_t)CQE << (log_size + cqe_sz), CQE);
}

int
soft_cmd_create_cq(struct soft_cmd *cmd)
{
	const void *cqc = bb_prm_csub(cmd->in, BB_PRM_CREATE_CQ_CQC);
	uint32_t log_size = bb_prm_get(cqc, BB_PRM_CQC_LOG_CQ_SIZE);
	uint32_t cqe_sz = bb_prm_get(cqc, BB_PRM_CQC_CQE_SZ);
	uint32_t uar_id = bb_prm_get(cqc, BB_PRM_CQC_UAR_PAGE);
	struct soft_uar_page *uar = soft_cmd_uar(cmd, uar_id);
	struct soft_queue_mem mem;
	struct soft_cq *cq;
	int ret;

	ret = soft_cmd_only(cmd, create_fields, RTE_DIM(create_fields));
	if (ret != 0)
		return ret;
	cq_mem(cmd, cqc, &mem);
	if (cqe_sz > CQE_STRIDE_128)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid cqe_sz %u (0: CQEs of 64 bytes, 1: CQEs of 128 bytes)",
				   cqe_sz);
	if (cqe_sz != CQE_STRIDE_64 && bb_prm_get(cqc, BB_PRM_CQC_CQE_COMP_EN) != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "the device compresses only CQEs of 64 bytes: set cqe_sz or "
				   "cqe_comp_en to 0");
	if (log_size > SOFT_LOG_MAX_CQ_SZ)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid log_cq_size %u (0 to %d)", log_size,
				   SOFT_LOG_MAX_CQ_SZ);
	ret = create_features(cmd, cqc);
	if (ret != 0)
		return ret;
	if (uar == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "UAR page 0x%x does not exist", uar_id);
	ret = open_mem(cmd, &mem, log_size, cqe_sz);
	if (ret != 0)
		return ret;

	cq = calloc(1, sizeof(*cq));
	if (cq == NULL) {
		soft_queue_mem_drop(&mem);
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a CQ");
	}
	if (soft_ids_alloc(&cmd->dev->ctl->cq_ids, &cq->cqn) != 0) {
		soft_queue_mem_drop(&mem);
		free(cq);
		return SOFT_REFUSE(cmd, NO_RES, "all CQ numbers are in use: destroy some CQs");
	}
	cq->uar = uar;
	cq->umem = mem.umem;
	cq->db_umem = mem.db_umem;
	cq->buf = mem.umem->base + mem.offset;
	cq->dbrec = (uint32_t *)(void *)(mem.db_umem->base + mem.dbr_addr);
	cq->log_size = log_size;
	cq->obj = cmd->obj;
	cq->ignore_overrun = bb_prm_get(cqc, BB_PRM_CQC_OI) != 0;
	cq->mod_count = (uint16_t)bb_prm_get(cqc, BB_PRM_CQC_CQ_MAX_COUNT);
	cq->mod_period = (uint16_t)bb_prm_get(cqc, BB_PRM_CQC_CQ_PERIOD);
	cq->flags = bb_prm_get(cqc, BB_PRM_CQC_CQE_COMP_EN) ? SOFT_CQ_ZIP : 0;
	if (cqe_sz == CQE_STRIDE_128)
		cq->flags |= SOFT_CQ_BIG;
	if (soft_opts_defect(&cmd->dev->opts) != SOFT_DEFECT_NONE)
		cq->flags |= SOFT_CQ_DEFECT;
	if (((cq->flags & SOFT_CQ_ZIP) != 0 && soft_zip_init(cq) != 0) || soft_cq_attach(cq) != 0) {
		soft_zip_fini(cq);
		soft_ids_free(&cmd->dev->ctl->cq_ids, cq->cqn);
		soft_queue_mem_drop(&mem);
		free(cq);
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a CQ");
	}
	uar->refs++;
	mem.umem->refs++;
	mem.db_umem->refs++;
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
		return SOFT_REFUSE(
			cmd, RES_BUSY,
			"CQ 0x%x is used by %u send and receive queues: destroy their QPs first",
			cqn, cq->refs);
	__atomic_store_n(&cmd->dev->cqs[cqn], NULL, __ATOMIC_RELEASE);
	soft_cq_detach(cq);
	soft_quiesce();
	soft_channel_remove_cq(cmd->dev, cq);
	soft_ids_free(&cmd->dev->ctl->cq_ids, cqn);
	cq->uar->refs--;
	soft_umem_unref(cq->umem);
	soft_umem_unref(cq->db_umem);
	soft_zip_fini(cq);
	free(cq);
	return 0;
}

/*
 * Resizes a CQ. The command has the same fields as in mlx5_ib_resize_cq(), which lists pages; DEVX
 * names a umem instead.
 */
static int
resize(struct soft_cmd *cmd, struct soft_cq *cq)
{
	static const struct soft_field fields[] = {
		{BB_PRM_CMD_OP_MOD, 0},
		{BB_PRM_MODIFY_CQ_CQN, 0},
		{BB_PRM_MODIFY_CQ_FIELD_SELECT, 0},
		{BB_PRM_CREATE_CQ_UMEM_OFFSET, 0},
		{BB_PRM_CREATE_CQ_UMEM_ID, 0},
		{BB_PRM_MODIFY_CQ_UMEM_VALID, 0},
		{BB_PRM_CQC_CQE_SZ, CQC_AT},
		{BB_PRM_CQC_LOG_CQ_SIZE, CQC_AT},
		{BB_PRM_CQC_LOG_PAGE_SIZE, CQC_AT},
		{BB_PRM_CQC_PAGE_OFFSET, CQC_AT},
	};
	const uint32_t all =
		BB_PRM_CQ_RESIZE_LOG_SIZE | BB_PRM_CQ_RESIZE_PG_OFFSET | BB_PRM_CQ_RESIZE_PG_SIZE;
	const void *cqc = bb_prm_csub(cmd->in, BB_PRM_MODIFY_CQ_CQC);
	const bool big = (__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_BIG) != 0;
	const uint32_t cqe_sz = big ? CQE_STRIDE_128 : CQE_STRIDE_64;
	uint32_t log_size = bb_prm_get(cqc, BB_PRM_CQC_LOG_CQ_SIZE);
	uint32_t select = bb_prm_get(cmd->in, BB_PRM_MODIFY_CQ_FIELD_SELECT);
	struct soft_queue_mem mem;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (cmd->dev->opts.no_cq_resize)
		return SOFT_REFUSE(cmd, BAD_PARAM, "the device cannot resize CQs");
	/* MODIFY_CQ must change the size and the buffer of a CQ together (assumption [A]). */
	if (select != all)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"invalid field select 0x%x for a resize (0x%x: log size, page offset and "
			"page size together)",
			select, all);
	if (bb_prm_get(cqc, BB_PRM_CQC_CQE_SZ) != cqe_sz)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid cqe_sz %u (%u, as at creation: a resize cannot change "
				   "the size of CQEs)",
				   bb_prm_get(cqc, BB_PRM_CQC_CQE_SZ), cqe_sz);
	if (log_size > SOFT_LOG_MAX_CQ_SZ)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid log_cq_size %u (0 to %d)", log_size,
				   SOFT_LOG_MAX_CQ_SZ);
	cq_mem(cmd, cqc, &mem);
	mem.has_dbr = false; /* the CQ keeps its doorbell record */
	ret = open_mem(cmd, &mem, log_size, cqe_sz);
	if (ret != 0)
		return ret;
	ret = soft_cq_move(cq, mem.umem->base + mem.offset, log_size);
	if (ret != 0)
		soft_umem_discard(mem.umem);
	switch (ret) {
	case 0:
		break;
	case -EINVAL:
		return SOFT_REFUSE(
			cmd, BAD_SIZE_OUTS_CQES,
			"CQ 0x%x holds more unread CQEs than the new ring has entries (%u): poll "
			"the CQ first",
			cq->cqn, 1u << log_size);
	case -ENOSPC:
		/* A card may return another status if the CQ is full (assumption [A]). */
		return SOFT_REFUSE(
			cmd, BAD_SIZE_OUTS_CQES,
			"CQ 0x%x is full, so the device cannot write the RESIZE CQE: poll the CQ "
			"first",
			cq->cqn);
	default:
		return SOFT_REFUSE(cmd, BAD_RES_STATE,
				   "CQ 0x%x is in the error state: destroy and create it", cq->cqn);
	}
	mem.umem->refs++;
	soft_umem_unref(cq->umem);
	cq->umem = mem.umem;
	return 0;
}

static int
moderate(struct soft_cmd *cmd, struct soft_cq *cq)
{
	static const struct soft_field fields[] = {
		{BB_PRM_MODIFY_CQ_CQN, 0},         {BB_PRM_MODIFY_CQ_FIELD_SELECT, 0},
		{BB_PRM_MODIFY_CQ_UMEM_VALID, 0},  {BB_PRM_CREATE_CQ_UMEM_ID, 0},
		{BB_PRM_CREATE_CQ_UMEM_OFFSET, 0}, {BB_PRM_CQC_CQ_PERIOD, CQC_AT},
		{BB_PRM_CQC_CQ_MAX_COUNT, CQC_AT},
	};
	const void *cqc = bb_prm_csub(cmd->in, BB_PRM_MODIFY_CQ_CQC);
	uint32_t select = bb_prm_get(cmd->in, BB_PRM_MODIFY_CQ_FIELD_SELECT);
	uint32_t umem_id = bb_prm_get(cmd->in, BB_PRM_CREATE_CQ_UMEM_ID);
	uint64_t offset = bb_prm_get64(cmd->in, BB_PRM_CREATE_CQ_UMEM_OFFSET);
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (cmd->dev->opts.no_cq_moderation)
		return SOFT_REFUSE(cmd, BAD_PARAM, "the device has no CQ moderation");
	if (select == 0 || (select & ~(BB_PRM_CQ_MODIFY_PERIOD | BB_PRM_CQ_MODIFY_COUNT)) != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid field select 0x%x (1 period, 2 count, 3 both)", select);
	/*
	 * The kernel sets cq_umem_valid in every MODIFY_CQ of DEVX. If the field select does not
	 * name the ring, firmware may or may not use the umem (assumption [A]). Firmware that uses
	 * it would move the ring, so the device rejects any umem that is not the ring's.
	 */
	if (bb_prm_get(cmd->in, BB_PRM_MODIFY_CQ_UMEM_VALID) != 0 &&
	    (umem_id != cq->umem->pub.id || cq->umem->base + offset != cq->buf))
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"umem 0x%x, offset 0x%" PRIx64
			" is not the ring of CQ 0x%x: name that ring, because the kernel sets "
			"cq_umem_valid",
			umem_id, offset, cq->cqn);
	soft_cq_moderate(cq,
			 (select & BB_PRM_CQ_MODIFY_COUNT) != 0
				 ? (uint16_t)bb_prm_get(cqc, BB_PRM_CQC_CQ_MAX_COUNT)
				 : cq->mod_count,
			 (select & BB_PRM_CQ_MODIFY_PERIOD) != 0
				 ? (uint16_t)bb_prm_get(cqc, BB_PRM_CQC_CQ_PERIOD)
				 : cq->mod_period);
	return 0;
}

int
soft_cmd_modify_cq(struct soft_cmd *cmd)
{
	uint32_t cqn = bb_prm_get(cmd->in, BB_PRM_MODIFY_CQ_CQN);
	uint32_t op_mod = bb_prm_get(cmd->in, BB_PRM_CMD_OP_MOD);
	struct soft_cq *cq = soft_cmd_cq(cmd, cqn);

	if (cq == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "CQ 0x%x does not exist", cqn);
	if (op_mod == BB_PRM_CQ_OP_MOD_RESIZE)
		return resize(cmd, cq);
	if (op_mod != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid op_mod %u (0 to moderate, %d to resize)", op_mod,
				   BB_PRM_CQ_OP_MOD_RESIZE);
	return moderate(cmd, cq);
}
