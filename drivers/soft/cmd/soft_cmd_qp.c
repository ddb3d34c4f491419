/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands CREATE_QP, DESTROY_QP and QUERY_QP. */
#include <stdlib.h>
#include <string.h>

#include "bb_prm_kernel.h"
#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_shm.h"

#define SOFT_SYNDROME 0xbb030000u

/*
 * Values of cs_req and cs_res, from Linux drivers/infiniband/hw/mlx5/mlx5_ib.h:
 * MLX5_{REQ,RES}_SCAT_DATA{32,64}_CQE.
 */
#define CS_REQ_DATA32 0x11
#define CS_REQ_DATA64 0x22
#define CS_RES_DATA32 0x1
#define CS_RES_DATA64 0x2

/*
 * Fields that CREATE_QP accepts. Not accepted: fields that transitions set, WQE signatures, the
 * reserved lkey, end padding. A card would silently ignore the fields of transitions; this device
 * rejects them.
 */
static const struct soft_field create_fields[] = {
	{BB_PRM_CREATE_QP_WQ_UMEM_OFFSET, 0},     {BB_PRM_CREATE_QP_WQ_UMEM_ID, 0},
	{BB_PRM_CREATE_QP_WQ_UMEM_VALID, 0},      {BB_PRM_QPC_ST, SOFT_QPC_AT},
	{BB_PRM_QPC_PM_STATE, SOFT_QPC_AT},       {BB_PRM_QPC_PD, SOFT_QPC_AT},
	{BB_PRM_QPC_LOG_RQ_SIZE, SOFT_QPC_AT},    {BB_PRM_QPC_LOG_RQ_STRIDE, SOFT_QPC_AT},
	{BB_PRM_QPC_NO_SQ, SOFT_QPC_AT},          {BB_PRM_QPC_LOG_SQ_SIZE, SOFT_QPC_AT},
	{BB_PRM_QPC_TS_FORMAT, SOFT_QPC_AT},      {BB_PRM_QPC_COUNTER_SET_ID, SOFT_QPC_AT},
	{BB_PRM_QPC_UAR_PAGE, SOFT_QPC_AT},       {BB_PRM_QPC_USER_INDEX, SOFT_QPC_AT},
	{BB_PRM_QPC_LOG_PAGE_SIZE, SOFT_QPC_AT},  {BB_PRM_QPC_CQN_SND, SOFT_QPC_AT},
	{BB_PRM_QPC_CQN_RCV, SOFT_QPC_AT},        {BB_PRM_QPC_DBR_ADDR, SOFT_QPC_AT},
	{BB_PRM_QPC_RQ_TYPE, SOFT_QPC_AT},        {BB_PRM_QPC_SRQN_RMPN_XRQN, SOFT_QPC_AT},
	{BB_PRM_QPC_DBR_UMEM_VALID, SOFT_QPC_AT}, {BB_PRM_QPC_DBR_UMEM_ID, SOFT_QPC_AT},
	{BB_PRM_QPC_CS_REQ, SOFT_QPC_AT},         {BB_PRM_QPC_CS_RES, SOFT_QPC_AT},
};

/*
 * Further fields that a kernel's driver sets in QPs with a page list. It makes such QPs for itself
 * and for verbs (create_user_qp() and create_kernel_qp() of mlx5_ib, Linux 6.1). The device uses
 * only page_offset. It ignores the others: xrcd is a placeholder, because XRC is not supported, and
 * all lkeys are real keys.
 */
static const struct soft_field kernel_fields[] = {
	{BB_PRM_QPC_XRCD, SOFT_QPC_AT},        {BB_PRM_QPC_PAGE_OFFSET, SOFT_QPC_AT},
	{BB_PRM_QPC_RLKY, SOFT_QPC_AT},        {BB_PRM_QPC_FRE, SOFT_QPC_AT},
	{BB_PRM_QPC_BLOCK_LB_MC, SOFT_QPC_AT}, {BB_PRM_QPC_LATENCY_SENSITIVE, SOFT_QPC_AT},
	{BB_PRM_QPC_DETH_SQPN, SOFT_QPC_AT},
};

/* Objects that a QP refers to. Each object has a reference count of its QPs. */
struct parts {
	struct soft_pd *pd;
	struct soft_cq *scq, *rcq;
	struct soft_uar_page *uar;
	struct soft_queue_mem mem;
	struct soft_rmp *rmp;
	uint32_t counter_set;
	/*
	 * Lengths of the queues in bytes. The RQ comes first in memory, and the SQ follows
	 * directly.
	 */
	uint64_t rq_bytes, sq_bytes;
};

static int
find_parts(struct soft_cmd *cmd, const void *qpc, struct parts *p)
{
	uint32_t pdn = bb_prm_get(qpc, BB_PRM_QPC_PD);
	uint32_t scqn = bb_prm_get(qpc, BB_PRM_QPC_CQN_SND);
	uint32_t rcqn = bb_prm_get(qpc, BB_PRM_QPC_CQN_RCV);
	uint32_t uar_id = bb_prm_get(qpc, BB_PRM_QPC_UAR_PAGE);
	int ret;

	p->pd = soft_cmd_pd(cmd, pdn);
	/* The QP that posts UMRs for the kernel has no PD: create_kernel_qp() of mlx5_ib,
	 * Linux 6.1. */
	if (p->pd == NULL && (bb_prm_get(qpc, BB_PRM_QPC_ST) != BB_PRM_QP_ST_REG_UMR || pdn != 0))
		return SOFT_REFUSE(cmd, BAD_RES, "PD 0x%x does not exist", pdn);
	p->scq = soft_cmd_cq(cmd, scqn);
	if (p->scq == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "cqn_snd 0x%x does not exist", scqn);
	p->rcq = soft_cmd_cq(cmd, rcqn);
	if (p->rcq == NULL)
		return SOFT_REFUSE(
			cmd, BAD_RES,
			"cqn_rcv 0x%x does not exist (a QP without receives needs one too)", rcqn);
	p->uar = soft_cmd_uar(cmd, uar_id);
	if (p->uar == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "UAR page 0x%x does not exist", uar_id);
	p->mem = (struct soft_queue_mem){
		.what = "queue buffer (RQ, then SQ)",
		.umem_field = "wq_umem_id",
		.umem_valid = bb_prm_get(cmd->in, BB_PRM_CREATE_QP_WQ_UMEM_VALID) != 0,
		.umem_id = bb_prm_get(cmd->in, BB_PRM_CREATE_QP_WQ_UMEM_ID),
		.offset = bb_prm_get64(cmd->in, BB_PRM_CREATE_QP_WQ_UMEM_OFFSET),
		.log_page_size = bb_prm_get(qpc, BB_PRM_QPC_LOG_PAGE_SIZE),
		.page_offset = bb_prm_get(qpc, BB_PRM_QPC_PAGE_OFFSET),
		.page_offset_field = BB_PRM_QPC_PAGE_OFFSET,
		.list = BB_PRM_CREATE_QP_PAS,
		.has_dbr = true,
		.dbr_valid = bb_prm_get(qpc, BB_PRM_QPC_DBR_UMEM_VALID) != 0,
		.dbr_id = bb_prm_get(qpc, BB_PRM_QPC_DBR_UMEM_ID),
		.dbr_addr = bb_prm_get64(qpc, BB_PRM_QPC_DBR_ADDR),
	};
	ret = soft_queue_mem_find(cmd, &p->mem);
	if (ret != 0)
		return ret;
	p->counter_set = bb_prm_get(qpc, BB_PRM_QPC_COUNTER_SET_ID);
	if (p->counter_set != 0 &&
	    !soft_ctx_may_use(cmd->ctx, cmd->dev->ctl->counter_ctx[p->counter_set]))
		return SOFT_REFUSE(cmd, BAD_RES, "counter_set_id %u does not exist",
				   p->counter_set);
	return 0;
}

/*
 * Returns true if only a kernel creates QPs of type @st: QP0 and QP1 for management datagrams, and
 * the QP that posts UMRs. The engine runs all of these as UD QPs.
 */
static bool
kernels_own(const struct soft_cmd *cmd, uint32_t st)
{
	return cmd->ctx->host != NULL && cmd->ctx->role == SOFT_ROLE_KERNEL &&
	       (st == BB_PRM_QP_ST_QP0 || st == BB_PRM_QP_ST_QP1 || st == BB_PRM_QP_ST_REG_UMR);
}

static int
check_kind(struct soft_cmd *cmd, const void *qpc)
{
	uint32_t st = bb_prm_get(qpc, BB_PRM_QPC_ST);
	uint32_t pm = bb_prm_get(qpc, BB_PRM_QPC_PM_STATE);
	uint32_t ts = bb_prm_get(qpc, BB_PRM_QPC_TS_FORMAT);
	bool real_time = cmd->dev->opts.no_clock && !cmd->dev->opts.link_ib;
	uint32_t cs_req = bb_prm_get(qpc, BB_PRM_QPC_CS_REQ);
	uint32_t cs_res = bb_prm_get(qpc, BB_PRM_QPC_CS_RES);

	if (st != BB_PRM_QP_ST_RC && st != BB_PRM_QP_ST_UC && st != BB_PRM_QP_ST_UD &&
	    !kernels_own(cmd, st))
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid st %u (0 RC, 1 UC, 2 UD)", st);
	if (pm != BB_PRM_QP_PM_MIGRATED)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"invalid pm_state %u (3, MIGRATED: the device has no path migration)", pm);
	/* The kernel makes the same checks in create_user_qp(). */
	if (cs_req != 0 && st != BB_PRM_QP_ST_RC)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "cs_req is set (0: only an RC QP gets responses with data)");
	if (cs_res != 0 && st == BB_PRM_QP_ST_UD)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "cs_res is set (0: the device writes no datagram into a CQE)");
	/*
	 * Values: 0 is free running, 1 default, 2 real time. A device without free-running
	 * timestamps also rejects 0, as a card with REAL_TIME_CLOCK_ENABLE does (mlx5_ib:
	 * get_qp_ts_format()).
	 */
	if (ts > 1 && !real_time)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"invalid ts_format %u (0 or 1: the device has no real-time clock)", ts);
	if (ts > 2 || (ts == 0 && real_time))
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"invalid ts_format %u (0 free running, 1 default, 2 real time; 0 is not "
			"allowed if the capability qp_ts_format is real time)",
			ts);
	return 0;
}

/* A CQE of 64 bytes has room for 32 bytes of data, a CQE of 128 bytes has room for 64. */
static int
check_scatter(struct soft_cmd *cmd, const void *qpc, const struct parts *p)
{
	const uint32_t cs_req = bb_prm_get(qpc, BB_PRM_QPC_CS_REQ);
	const uint32_t cs_res = bb_prm_get(qpc, BB_PRM_QPC_CS_RES);
	const bool big_req = __atomic_load_n(&p->scq->flags, __ATOMIC_RELAXED) & SOFT_CQ_BIG;
	const bool big_res = __atomic_load_n(&p->rcq->flags, __ATOMIC_RELAXED) & SOFT_CQ_BIG;

	if (cs_req != 0 && cs_req != CS_REQ_DATA32 && (cs_req != CS_REQ_DATA64 || !big_req))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid cs_req 0x%x (0 or 0x%x, with CQEs of 128 bytes also "
				   "0x%x; these have %u)",
				   cs_req, CS_REQ_DATA32, CS_REQ_DATA64, big_req ? 128 : 64);
	if (cs_res != 0 && cs_res != CS_RES_DATA32 && (cs_res != CS_RES_DATA64 || !big_res))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid cs_res 0x%x (0 or 0x%x, with CQEs of 128 bytes also "
				   "0x%x; these have %u)",
				   cs_res, CS_RES_DATA32, CS_RES_DATA64, big_res ? 128 : 64);
	return 0;
}

/* Returns the number of bytes of data that go into a CQE. @cs is cs_req or cs_res. */
static uint8_t
scatter_bytes(uint32_t cs)
{
	return (uint8_t)((cs & 0xf) * 32);
}

static int
check_sizes(struct soft_cmd *cmd, const void *qpc, struct parts *p)
{
	uint32_t rq_type = bb_prm_get(qpc, BB_PRM_QPC_RQ_TYPE);
	uint32_t srqn = bb_prm_get(qpc, BB_PRM_QPC_SRQN_RMPN_XRQN);
	uint32_t log_rq = bb_prm_get(qpc, BB_PRM_QPC_LOG_RQ_SIZE);
	uint32_t stride = 16u << bb_prm_get(qpc, BB_PRM_QPC_LOG_RQ_STRIDE);
	uint32_t log_sq = bb_prm_get(qpc, BB_PRM_QPC_LOG_SQ_SIZE);
	bool no_sq = bb_prm_get(qpc, BB_PRM_QPC_NO_SQ) != 0;

	if (rq_type != BB_PRM_RQ_TYPE_REGULAR && rq_type != BB_PRM_RQ_TYPE_SRQ &&
	    rq_type != BB_PRM_RQ_TYPE_ZERO)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid rq_type %u (0 own RQ, 1 RMP, 3 no RQ)",
				   rq_type);
	if (rq_type == BB_PRM_RQ_TYPE_SRQ) {
		p->rmp = soft_cmd_rmp(cmd, srqn);
		if (p->rmp == NULL)
			return SOFT_REFUSE(cmd, BAD_RES, "RMP 0x%x does not exist", srqn);
	} else if (srqn != 0 && p->mem.umem_valid) {
		/*
		 * Without an SRQ, mlx5_ib sets srqn to a placeholder in QPs that it creates with a
		 * page list (create_user_qp()), so srqn is checked only in QPs with a umem.
		 */
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "srqn 0x%x is set, but rq_type is %u (1 for an RMP)", srqn,
				   rq_type);
	}
	if (rq_type != BB_PRM_RQ_TYPE_REGULAR && (log_rq != 0 || stride != 16))
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"log_rq_size or log_rq_stride is set, but the QP has no RQ of its own");
	if (no_sq && log_sq != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM, "log_sq_size is %u, but no_sq is set", log_sq);
	/* The size fields have only four bits, so no value exceeds the largest queue. */
	RTE_BUILD_BUG_ON(SOFT_LOG_MAX_QP_SZ < 15);
	if (stride > SOFT_MAX_RQ_STRIDE)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid RQ stride of %u bytes (16 to %d)",
				   stride, SOFT_MAX_RQ_STRIDE);
	p->rq_bytes = rq_type != BB_PRM_RQ_TYPE_REGULAR ? 0 : (uint64_t)stride << log_rq;
	p->sq_bytes = no_sq ? 0 : (uint64_t)BB_WQE_BB << log_sq;
	if (p->rq_bytes % BB_WQE_BB != 0)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"the RQ has %u bytes, which is not a multiple of 64, so the SQ after it "
			"is not aligned",
			(uint32_t)p->rq_bytes);
	return 0;
}

/* Adds @change (1 or -1) to the reference counts of the objects that a QP refers to. */
static void
count_parts(struct soft_qp *qp, int change)
{
	uint32_t by = (uint32_t)change;

	if (qp->pd != NULL)
		qp->pd->qps += by;
	qp->scq->refs += by;
	qp->rcq->refs += by;
	qp->uar->refs += by;
	qp->wq_umem->refs += by;
	qp->db_umem->refs += by;
	soft_umem_discard(qp->wq_umem);
	soft_umem_discard(qp->db_umem);
	if (qp->rmp != NULL)
		qp->rmp->refs += by;
	qp->dev->ctl->counter_refs[qp->counter_set] += by;
}

static void
fill_qp(struct soft_cmd *cmd, const void *qpc, const struct parts *p, struct soft_qp *qp)
{
	uint8_t *buf = p->mem.umem->base + p->mem.offset;

	qp->dev = cmd->dev;
	qp->obj = cmd->obj;
	qp->pd = p->pd;
	qp->pdn = p->pd != NULL ? p->pd->pub.pdn : 0;
	qp->st = bb_prm_get(qpc, BB_PRM_QPC_ST);
	if (qp->st > BB_PRM_QP_ST_UD) {
		qp->special = (uint8_t)qp->st;
		qp->st = BB_PRM_QP_ST_UD;
	}
	qp->sqpn = qp->special == BB_PRM_QP_ST_QP1 ? 1 : qp->qpn;
	qp->user_index = bb_prm_get(qpc, BB_PRM_QPC_USER_INDEX);
	qp->state = BB_PRM_QP_RST;
	qp->uar = p->uar;
	qp->engine = p->uar->engine;
	qp->scq = p->scq;
	qp->rcq = p->rcq;
	qp->wq_umem = p->mem.umem;
	qp->db_umem = p->mem.db_umem;
	qp->has_rq = p->rq_bytes != 0;
	qp->rq = buf;
	qp->log_rq = bb_prm_get(qpc, BB_PRM_QPC_LOG_RQ_SIZE);
	qp->log_rq_stride = 4 + bb_prm_get(qpc, BB_PRM_QPC_LOG_RQ_STRIDE);
	qp->has_sq = p->sq_bytes != 0;
	qp->sq = buf + p->rq_bytes;
	qp->log_sq = bb_prm_get(qpc, BB_PRM_QPC_LOG_SQ_SIZE);
	qp->dbrec = (uint32_t *)(void *)(p->mem.db_umem->base + p->mem.dbr_addr);
	qp->rmp = p->rmp;
	qp->cs_req = scatter_bytes(bb_prm_get(qpc, BB_PRM_QPC_CS_REQ));
	qp->cs_res = scatter_bytes(bb_prm_get(qpc, BB_PRM_QPC_CS_RES));
	qp->counter_set = p->counter_set;
	memcpy(qp->qpc, qpc, sizeof(qp->qpc));
}

static int
check_fields(struct soft_cmd *cmd)
{
	struct soft_field all[RTE_DIM(create_fields) + RTE_DIM(kernel_fields)];
	uint32_t n = RTE_DIM(create_fields);

	memcpy(all, create_fields, sizeof(create_fields));
	if (bb_prm_get(cmd->in, BB_PRM_CREATE_QP_WQ_UMEM_VALID) == 0) {
		memcpy(all + n, kernel_fields, sizeof(kernel_fields));
		n += RTE_DIM(kernel_fields);
	}
	return soft_cmd_only(cmd, all, n);
}

int
soft_cmd_create_qp(struct soft_cmd *cmd)
{
	const void *qpc = bb_prm_csub(cmd->in, BB_PRM_CREATE_QP_QPC);
	struct soft_dev *dev = cmd->dev;
	struct parts parts = {0};
	struct soft_qp *qp;
	int ret;

	ret = check_fields(cmd);
	if (ret == 0)
		ret = check_kind(cmd, qpc);
	if (ret == 0)
		ret = find_parts(cmd, qpc, &parts);
	if (ret == 0)
		ret = check_scatter(cmd, qpc, &parts);
	if (ret == 0)
		ret = check_sizes(cmd, qpc, &parts);
	if (ret == 0)
		ret = soft_queue_mem_open(cmd, &parts.mem, parts.rq_bytes + parts.sq_bytes,
					  BB_WQE_BB);
	if (ret != 0)
		return ret;

	qp = calloc(1, sizeof(*qp));
	if (qp == NULL) {
		soft_queue_mem_drop(&parts.mem);
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a QP");
	}
	ret = soft_draw_take(&dev->ctl->qp_draw, &dev->ctl->random, &qp->qpn);
	if (ret != 0) {
		soft_queue_mem_drop(&parts.mem);
		free(qp);
		if (ret == -EIO)
			return SOFT_REFUSE(cmd, NO_RES, "no random number for the QP");
		return dev->opts.port.host[0] == '\0'
			       ? SOFT_REFUSE(cmd, NO_RES,
					     "all QP numbers are in use: destroy some QPs")
			       : SOFT_REFUSE(cmd, NO_RES,
					     "all %u QP numbers that a process has with host= are "
					     "in use: destroy some QPs, use several processes, or "
					     "leave out host=",
					     1u << SOFT_LOG_QPNS);
	}
	fill_qp(cmd, qpc, &parts, qp);
	if (soft_qp_attach(qp) != 0) {
		soft_draw_give(&dev->ctl->qp_draw, qp->qpn);
		soft_wire_destroy(qp->wire);
		soft_queue_mem_drop(&parts.mem);
		free(qp);
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for the QP in the engine");
	}
	/*
	 * Only now may engines find the QP. An engine may receive a packet for its number that is
	 * of an older QP.
	 */
	__atomic_store_n(&dev->qps[qp->qpn], qp, __ATOMIC_RELEASE);
	/*
	 * If a kernel creates a second QP1, packets for QP1 go to the new one from now on
	 * (assumption [A]).
	 */
	if (qp->special == BB_PRM_QP_ST_QP1)
		__atomic_store_n(&dev->qp1, qp, __ATOMIC_RELEASE);
	count_parts(qp, 1);
	bb_prm_set(cmd->out, BB_PRM_CREATE_QP_OUT_QPN, qp->qpn);
	return 0;
}

int
soft_qp1_claim(struct mlx5_ctx *ctx, uint32_t qpn)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	struct soft_qp *qp;
	int ret = 0;

	pthread_mutex_lock(&dev->lock);
	qp = soft_qp_find(dev, qpn);
	if (qp == NULL || qp->obj->ctx != ctx || qp->st != BB_PRM_QP_ST_UD ||
	    soft_qp_state(qp) != BB_PRM_QP_RST) {
		SOFT_LOG(ERR,
			 "%s: QP 0x%x cannot become QP1: it must be a UD QP of the caller in RESET",
			 dev->name, qpn);
		ret = -EINVAL;
	} else if (dev->shm != NULL && dev->shm->slot != SOFT_SHM_ALL && !dev->opts.mmap) {
		/*
		 * Processes with one host=NAME share an address, so a CM message must name its
		 * process. Only the CM of bb_verbs puts soft_id_prefix() into its IDs and reserves
		 * its port numbers. A message for another CM could reach any of the processes.
		 */
		SOFT_LOG(ERR,
			 "%s: host=%s: QP 0x%x cannot become QP1: a device that shares its address "
			 "has QP1 only under bb_verbs: leave out host=, or use BB_CM_TCP",
			 dev->name, dev->opts.port.host, qpn);
		ret = -ENOTSUP;
	} else if (dev->qp1 != NULL) {
		SOFT_LOG(ERR, "%s: QP 0x%x cannot become QP1: QP 0x%x is QP1; destroy it first",
			 dev->name, qpn, dev->qp1->qpn);
		ret = -EBUSY;
	} else {
		qp->sqpn = 1;
		soft_engine_qp1(qp->uar);
		__atomic_store_n(&dev->qp1, qp, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

int
soft_cmd_destroy_qp(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_DESTROY_QP_QPN, 0}};
	uint32_t qpn = bb_prm_get(cmd->in, BB_PRM_DESTROY_QP_QPN);
	struct soft_qp *qp = soft_cmd_qp(cmd, qpn);
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (qp == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "QP 0x%x does not exist", qpn);
	/*
	 * The status is an assumption [A]: the kernel itself refuses to destroy such a QP
	 * (uverbs_free_qp()).
	 */
	if (soft_mcg_busy(cmd->dev, qp))
		return SOFT_REFUSE(cmd, RES_BUSY,
				   "QP 0x%x is a member of a multicast group: detach it first",
				   qpn);
	soft_shm_collect(cmd->dev, qp);
	__atomic_store_n(&cmd->dev->qps[qpn], NULL, __ATOMIC_RELEASE);
	if (cmd->dev->qp1 == qp)
		__atomic_store_n(&cmd->dev->qp1, NULL, __ATOMIC_RELEASE);
	soft_qp_detach(qp);
	soft_quiesce();
	soft_shm_qp_gone(cmd->dev, qpn);
	count_parts(qp, -1);
	soft_draw_give(&cmd->dev->ctl->qp_draw, qpn);
	soft_wire_destroy(qp->wire);
	free(qp);
	return 0;
}

int
soft_cmd_query_qp(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_QUERY_QP_QPN, 0}};
	uint32_t qpn = bb_prm_get(cmd->in, BB_PRM_QUERY_QP_QPN);
	struct soft_qp *qp = soft_cmd_qp(cmd, qpn);
	void *qpc = bb_prm_sub(cmd->out, BB_PRM_QUERY_QP_OUT_QPC);
	uint32_t out, in;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (qp == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "QP 0x%x does not exist", qpn);
	soft_engine_lock(qp->engine);
	out = qp->sq_psn;
	in = __atomic_load_n(&qp->epsn, __ATOMIC_RELAXED);
	if (qp->wire != NULL)
		soft_wire_psns(qp->wire, &out, &in);
	memcpy(qpc, qp->qpc, sizeof(qp->qpc));
	bb_prm_set(qpc, BB_PRM_QPC_STATE, __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE));
	bb_prm_set(qpc, BB_PRM_QPC_NEXT_SEND_PSN, out);
	bb_prm_set(qpc, BB_PRM_QPC_NEXT_RCV_PSN, in);
	/*
	 * The HW counters are those of the device. The SW counters come from the doorbell records,
	 * which software writes.
	 */
	bb_prm_set(qpc, BB_PRM_QPC_HW_SQ_WQEBB_COUNTER, qp->sq_ci);
	bb_prm_set(qpc, BB_PRM_QPC_SW_SQ_WQEBB_COUNTER,
		   bb_be32(__atomic_load_n(&qp->dbrec[1], __ATOMIC_ACQUIRE)) & 0xffff);
	bb_prm_set(qpc, BB_PRM_QPC_HW_RQ_COUNTER, qp->rq_ci);
	bb_prm_set(qpc, BB_PRM_QPC_SW_RQ_COUNTER,
		   bb_be32(__atomic_load_n(&qp->dbrec[0], __ATOMIC_ACQUIRE)) & 0xffff);
	soft_engine_unlock(qp->engine);
	return 0;
}
