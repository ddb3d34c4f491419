/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Creates the QPs of ibv_create_qp(), and executes the transitions of ibv_modify_qp(), as Linux
 * drivers/infiniband/hw/mlx5/qp.c does.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include "bb_prm.h"
#include "bb_wqe.h"
#include "uverbs_queue.h"

#define QKEY_OPTPAR(mask) (((mask)&IBV_QP_QKEY) != 0 ? BB_PRM_OPTPAR_Q_KEY : 0)

/* Returns the value MLX5_QP_ST_* of a QP type, -1 if the device does not support the type. */
static int
service(uint8_t type)
{
	switch (type) {
	case IBV_QPT_RC:
		return 0;
	case IBV_QPT_UC:
		return 1;
	case IBV_QPT_UD:
		return 2;
	default:
		return -1;
	}
}

/*
 * Lets the device write data of up to 32 bytes into CQEs of 64 bytes, and of up to 64 bytes into
 * CQEs of 128 bytes, as libmlx5 requests by default. On RC and UC this applies to received data. On
 * RC it applies to the data of READs and atomics, too, if each request has a CQE or if
 * MLX5_QP_FLAG_ALLOW_SCATTER_CQE is set (create_user_qp(), configure_requester_scat_cqe()).
 */
static void
scatter_to_cqe(const struct ib_uverbs_create_qp *a, const struct mlx5_ib_create_qp *q,
	       const struct uverbs_queue *scq, const struct uverbs_queue *rcq, void *qpc)
{
	if ((q->flags & MLX5_QP_FLAG_SCATTER_CQE) == 0)
		return;
	if (a->qp_type == IBV_QPT_RC || a->qp_type == IBV_QPT_UC)
		/* MLX5_RES_SCAT_DATA64_CQE, MLX5_RES_SCAT_DATA32_CQE */
		bb_prm_set(qpc, BB_PRM_QPC_CS_RES, rcq->cqe_size == 128 ? 0x2 : 0x1);
	if (a->qp_type == IBV_QPT_RC &&
	    (a->sq_sig_all || (q->flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE) != 0))
		/* MLX5_REQ_SCAT_DATA64_CQE, MLX5_REQ_SCAT_DATA32_CQE */
		bb_prm_set(qpc, BB_PRM_QPC_CS_REQ, scq->cqe_size == 128 ? 0x22 : 0x11);
}

static int
create(struct uverbs_file *f, const struct uverbs_cmd *c, const struct ib_uverbs_create_qp *a,
       bool ex)
{
	static const uint16_t types[] = {BB_PRM_EVENT_COMM_EST, BB_PRM_EVENT_WQ_CATAS_ERROR,
					 BB_PRM_EVENT_WQ_INVAL_REQ_ERROR,
					 BB_PRM_EVENT_WQ_ACCESS_ERROR, BB_PRM_EVENT_SRQ_LAST_WQE};
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *qpc = bb_prm_sub(in, BB_PRM_CREATE_QP_QPC);
	struct ib_uverbs_ex_create_qp_resp core = {.response_length = sizeof(core)};
	struct mlx5_ib_create_qp_resp drv = {0};
	const struct uverbs_queue *scq = uverbs_find(f, UV_CQ, a->send_cq_handle);
	const struct uverbs_queue *rcq = uverbs_find(f, UV_CQ, a->recv_cq_handle);
	const struct uverbs_queue *srq = a->is_srq ? uverbs_find(f, UV_SRQ, a->srq_handle) : NULL;
	struct mlx5_pd *pd = uverbs_find(f, UV_PD, a->pd_handle);
	struct mlx5_ib_create_qp q = {0};
	uint64_t ring_at, rec_at;
	struct uverbs_queue *qp;
	int ret;

	memcpy(&q, c->drv_in, c->drv_len < sizeof(q) ? c->drv_len : sizeof(q));
	if (pd == NULL || scq == NULL || rcq == NULL || (a->is_srq && srq == NULL))
		return EINVAL;
	if (service(a->qp_type) < 0 || (q.flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) == 0 ||
	    (q.flags & MLX5_QP_FLAG_SIGNATURE) != 0)
		return EOPNOTSUPP;
	if (q.rq_wqe_count != 0 && (q.rq_wqe_shift < 4 || q.rq_wqe_shift > 16))
		return EINVAL;
	qp = uverbs_queue_begin(
		f, q.buf_addr,
		(q.rq_wqe_count != 0 ? (uint64_t)q.rq_wqe_count << q.rq_wqe_shift : 0) +
			(uint64_t)q.sq_wqe_count * 64,
		q.db_addr, &ring_at, &rec_at);
	if (qp == NULL)
		return ENOMEM;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_QP);
	bb_prm_set(qpc, BB_PRM_QPC_ST, (uint32_t)service(a->qp_type));
	bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
	bb_prm_set(qpc, BB_PRM_QPC_PD, pd->pdn);
	bb_prm_set(qpc, BB_PRM_QPC_UAR_PAGE, q.bfreg_index);
	bb_prm_set(qpc, BB_PRM_QPC_USER_INDEX, q.uidx);
	scatter_to_cqe(a, &q, scq, rcq, qpc);
	/*
	 * Timestamps are MLX5_TIMESTAMP_FORMAT_FREE_RUNNING (0) if the device has a clock,
	 * otherwise _DEFAULT (1), as in get_qp_ts_format().
	 */
	bb_prm_set(qpc, BB_PRM_QPC_TS_FORMAT, !uverbs_has_clock(f));
	if (q.sq_wqe_count != 0)
		bb_prm_set(qpc, BB_PRM_QPC_LOG_SQ_SIZE, uverbs_log2(q.sq_wqe_count));
	else
		bb_prm_set(qpc, BB_PRM_QPC_NO_SQ, 1);
	if (srq != NULL) {
		bb_prm_set(qpc, BB_PRM_QPC_RQ_TYPE, BB_PRM_RQ_TYPE_SRQ);
		bb_prm_set(qpc, BB_PRM_QPC_SRQN_RMPN_XRQN, srq->num);
	} else if (q.rq_wqe_count != 0) {
		bb_prm_set(qpc, BB_PRM_QPC_LOG_RQ_SIZE, uverbs_log2(q.rq_wqe_count));
		bb_prm_set(qpc, BB_PRM_QPC_LOG_RQ_STRIDE, q.rq_wqe_shift - 4);
		bb_prm_set(qpc, BB_PRM_QPC_RQ_TYPE, BB_PRM_RQ_TYPE_REGULAR);
	} else {
		bb_prm_set(qpc, BB_PRM_QPC_RQ_TYPE, BB_PRM_RQ_TYPE_ZERO);
	}
	bb_prm_set(qpc, BB_PRM_QPC_CQN_SND, scq->num);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_RCV, rcq->num);
	bb_prm_set(qpc, BB_PRM_QPC_DBR_UMEM_VALID, 1);
	bb_prm_set(qpc, BB_PRM_QPC_DBR_UMEM_ID, qp->rec->id);
	bb_prm_set64(qpc, BB_PRM_QPC_DBR_ADDR, rec_at);
	bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_ID, qp->ring->id);
	bb_prm_set64(in, BB_PRM_CREATE_QP_WQ_UMEM_OFFSET, ring_at);
	ret = f->soft->cmd->obj_create(f->soft, in, sizeof(in), out, sizeof(out), &qp->obj);
	if (ret != 0) {
		(void)uverbs_queue_end(f, qp);
		return uverbs_queue_errno(ret, out);
	}
	qp->num = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
	qp->uar = q.bfreg_index;
	qp->type = a->qp_type;
	qp->pd = pd;
	qp->element = a->user_handle;
	qp->made = *a;
	/*
	 * Return the size of the receive ring, as the kernel does (set_rq_size()): the program may
	 * use all entries and SGEs of the ring.
	 */
	qp->made.max_recv_wr = srq == NULL ? q.rq_wqe_count : 0;
	qp->made.max_recv_sge =
		srq == NULL && q.rq_wqe_count != 0 ? (1u << q.rq_wqe_shift) / BB_WQE_SEG : 0;
	core.base.qp_handle = uverbs_queue_born(f, UV_QP, qp, types, 5);
	if (core.base.qp_handle == 0) {
		(void)uverbs_queue_end(f, qp);
		return ENOMEM;
	}
	core.base.qpn = qp->num;
	core.base.max_send_wr = a->max_send_wr;
	core.base.max_recv_wr = a->max_recv_wr;
	core.base.max_send_sge = a->max_send_sge;
	core.base.max_recv_sge = a->max_recv_sge;
	core.base.max_inline_data = a->max_inline_data;
	/* The value MLX5_IB_INVALID_BFREG means that the library uses its own register. */
	drv.bfreg_index = UINT32_MAX;
	return uverbs_reply(c, &core, ex ? sizeof(core) : sizeof(core.base), &drv, sizeof(drv));
}

int
uverbs_create_qp(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_create_qp q;

	memcpy(&q, c->in, sizeof(q));
	return create(f, c, &q, false);
}

int
uverbs_create_qp_ex(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_create_qp q = {0};
	struct ib_uverbs_ex_create_qp e;

	memcpy(&e, c->in, sizeof(e));
	if (e.create_flags != 0)
		return EOPNOTSUPP;
	q.user_handle = e.user_handle;
	q.pd_handle = e.pd_handle;
	q.send_cq_handle = e.send_cq_handle;
	q.recv_cq_handle = e.recv_cq_handle;
	q.max_send_wr = e.max_send_wr;
	q.max_recv_wr = e.max_recv_wr;
	q.max_send_sge = e.max_send_sge;
	q.max_recv_sge = e.max_recv_sge;
	q.max_inline_data = e.max_inline_data;
	q.sq_sig_all = e.sq_sig_all;
	q.qp_type = e.qp_type;
	q.is_srq = e.is_srq;
	q.srq_handle = e.srq_handle;
	return create(f, c, &q, true);
}

static void
ib_path(const struct ib_uverbs_qp_dest *d, void *ads)
{
	bb_prm_set(ads, BB_PRM_ADS_RLID, d->dlid);
	bb_prm_set(ads, BB_PRM_ADS_MLID, d->src_path_bits & 0x7f);
	bb_prm_set(ads, BB_PRM_ADS_SL, d->sl & 0xf);
	bb_prm_set(ads, BB_PRM_ADS_VHCA_PORT_NUM, d->port_num);
	if (d->is_global == 0)
		return;
	bb_prm_set(ads, BB_PRM_ADS_GRH, 1);
	bb_prm_set(ads, BB_PRM_ADS_SRC_ADDR_INDEX, d->sgid_index);
	bb_prm_set(ads, BB_PRM_ADS_HOP_LIMIT, d->hop_limit);
	bb_prm_set(ads, BB_PRM_ADS_TCLASS, d->traffic_class);
	bb_prm_set(ads, BB_PRM_ADS_FLOW_LABEL, d->flow_label & 0xfffff);
	memcpy(bb_prm_sub(ads, BB_PRM_ADS_RGID_RIP), d->dgid, sizeof(d->dgid));
}

/*
 * Fills in the address path @ads as mlx5_set_path() does. RoCE needs a GRH; the MAC is that of the
 * GID in the GRH. Returns 0 or an errno.
 */
static int
path(struct uverbs_file *f, const struct uverbs_queue *qp, const struct ib_uverbs_qp_dest *d,
     void *ads)
{
	struct mlx5_port port;
	struct mlx5_av av;
	struct bb_gid gid;
	int ret = f->soft->cmd->port_query(f->soft, d->port_num, &port);

	if (ret == 0 && port.link_layer != BB_LINK_ETHERNET) {
		ib_path(d, ads);
		return 0;
	}
	if (ret == 0 && d->is_global == 0)
		ret = -EINVAL;
	if (ret == 0)
		ret = f->soft->cmd->gid_query(f->soft, d->port_num, d->sgid_index, &gid);
	if (ret == 0)
		ret = f->soft->cmd->av_resolve(f->soft, qp->pd, d->port_num, d->sgid_index, d->dgid,
					       &av);
	if (ret != 0)
		return -ret;
	bb_prm_set(ads, BB_PRM_ADS_RMAC_47_32, (uint32_t)av.dmac[0] << 8 | av.dmac[1]);
	bb_prm_set(ads, BB_PRM_ADS_RMAC_31_0,
		   (uint32_t)av.dmac[2] << 24 | (uint32_t)av.dmac[3] << 16 |
			   (uint32_t)av.dmac[4] << 8 | av.dmac[5]);
	bb_prm_set(ads, BB_PRM_ADS_ETH_PRIO, d->sl & 7);
	if (gid.type == BB_GID_ROCE_V2) {
		bb_prm_set(ads, BB_PRM_ADS_DSCP, d->traffic_class >> 2);
		bb_prm_set(ads, BB_PRM_ADS_UDP_SPORT, 0xc000);
	}
	bb_prm_set(ads, BB_PRM_ADS_SRC_ADDR_INDEX, d->sgid_index);
	bb_prm_set(ads, BB_PRM_ADS_HOP_LIMIT, d->hop_limit);
	bb_prm_set(ads, BB_PRM_ADS_TCLASS, d->traffic_class);
	bb_prm_set(ads, BB_PRM_ADS_FLOW_LABEL, d->flow_label & 0xfffff);
	memcpy(bb_prm_sub(ads, BB_PRM_ADS_RGID_RIP), d->dgid, sizeof(d->dgid));
	bb_prm_set(ads, BB_PRM_ADS_VHCA_PORT_NUM, d->port_num);
	return 0;
}

/*
 * Attributes that a transition requires and permits, among those used here: qp_state_table of
 * Linux drivers/infiniband/core/verbs.c.
 */
#define INIT   (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RTR    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static bool
allowed(const struct uverbs_queue *qp, uint8_t to, uint32_t mask)
{
	static const struct {
		uint8_t from, to, type;
		uint32_t must, may;
	} table[] = {
		{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_RC, INIT | IBV_QP_ACCESS_FLAGS, 0},
		{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UC, INIT | IBV_QP_ACCESS_FLAGS, 0},
		{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UD, INIT | IBV_QP_QKEY, 0},
		{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_RC, 0, INIT | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UC, 0, INIT | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UD, 0, INIT | IBV_QP_QKEY},
		{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_RC, RTR | RTR_RC,
		 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
		{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UC, RTR,
		 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
		{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
		{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC, IBV_QP_SQ_PSN | RTS_RC,
		 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
		{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UC, IBV_QP_SQ_PSN,
		 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UD, IBV_QP_SQ_PSN,
		 IBV_QP_CUR_STATE | IBV_QP_QKEY},
		{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_RC, 0,
		 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
		{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UC, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
	};
	unsigned int i;

	mask &= ~(uint32_t)IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask == 0;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].from == qp->state && table[i].to == to && table[i].type == qp->type)
			return (mask & table[i].must) == table[i].must &&
			       (mask & ~(table[i].must | table[i].may)) == 0;
	return false;
}

/* Checks the attributes whose fields have no room for all values, as mlx5_ib_modify_qp() does. */
static bool
in_range(const struct ib_uverbs_modify_qp *m)
{
	if ((m->attr_mask & IBV_QP_PATH_MTU) != 0 &&
	    (m->path_mtu < IBV_MTU_256 || m->path_mtu > IBV_MTU_4096))
		return false;
	if ((m->attr_mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 &&
	    m->max_rd_atomic > UVERBS_MAX_RD_ATOMIC)
		return false;
	return (m->attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC) == 0 ||
	       m->max_dest_rd_atomic <= UVERBS_MAX_RD_ATOMIC;
}

/* Stores the attributes of a transition on which the access rights of later ones depend. */
static void
remember(struct uverbs_queue *qp, const struct ib_uverbs_modify_qp *m)
{
	if ((m->attr_mask & IBV_QP_ACCESS_FLAGS) != 0)
		qp->access = m->qp_access_flags;
	if ((m->attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0)
		qp->max_dest_rd_atomic = m->max_dest_rd_atomic;
}

/*
 * Sets the access rights. The field log_rra_max cannot forbid READs and atomics. If the QP serves
 * none, this function removes the rights for them, as set_qpc_atomic_flags() does.
 */
static void
rights(const struct uverbs_queue *qp, const struct ib_uverbs_modify_qp *m, void *qpc)
{
	struct uverbs_queue after = *qp;
	uint32_t access;

	remember(&after, m);
	access = after.access;
	if (after.max_dest_rd_atomic == 0)
		access &= IBV_ACCESS_REMOTE_WRITE;
	bb_prm_set(qpc, BB_PRM_QPC_RWE, (access & IBV_ACCESS_REMOTE_WRITE) != 0);
	if (qp->type != IBV_QPT_RC)
		return;
	bb_prm_set(qpc, BB_PRM_QPC_RRE, (access & IBV_ACCESS_REMOTE_READ) != 0);
	bb_prm_set(qpc, BB_PRM_QPC_RAE, (access & IBV_ACCESS_REMOTE_ATOMIC) != 0);
	bb_prm_set(qpc, BB_PRM_QPC_ATOMIC_MODE, 1);
}

/*
 * Fills the context of a transition. Returns its opcode and optional parameters, or a negative
 * errno.
 */
static int
fill(struct uverbs_file *f, const struct uverbs_queue *qp, const struct ib_uverbs_modify_qp *m,
     uint8_t to, void *qpc, uint32_t *opt)
{
	void *ads = bb_prm_sub(qpc, BB_PRM_QPC_ADS);
	const uint32_t mask = m->attr_mask;
	int rc;

	if (qp->type == IBV_QPT_UD) {
		bb_prm_set(qpc, BB_PRM_QPC_MTU, 5);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_MSG_MAX, 12);
	}
	if ((mask & IBV_QP_QKEY) != 0)
		bb_prm_set(qpc, BB_PRM_QPC_Q_KEY, m->qkey);
	if ((mask & IBV_QP_PORT) != 0)
		bb_prm_set(ads, BB_PRM_ADS_VHCA_PORT_NUM, m->port_num);
	if ((mask & IBV_QP_PKEY_INDEX) != 0)
		bb_prm_set(ads, BB_PRM_ADS_PKEY_INDEX, m->pkey_index);
	if (qp->state == IBV_QPS_RESET) {
		rights(qp, m, qpc);
		return BB_PRM_OP_RST2INIT_QP;
	}
	*opt |= QKEY_OPTPAR(mask);
	if ((mask & IBV_QP_PORT) != 0)
		*opt |= BB_PRM_OPTPAR_PRI_PORT;
	if ((mask & IBV_QP_PKEY_INDEX) != 0)
		*opt |= BB_PRM_OPTPAR_PKEY_INDEX;
	if ((mask & (IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_DEST_RD_ATOMIC)) != 0) {
		rights(qp, m, qpc);
		*opt |= BB_PRM_OPTPAR_RWE;
		if (qp->type == IBV_QPT_RC)
			*opt |= BB_PRM_OPTPAR_RRE | BB_PRM_OPTPAR_RAE;
	}
	if (to == IBV_QPS_INIT)
		return BB_PRM_OP_INIT2INIT_QP;
	if (to == IBV_QPS_RTR) {
		if (qp->type == IBV_QPT_UD)
			return BB_PRM_OP_INIT2RTR_QP;
		rc = path(f, qp, &m->dest, ads);
		if (rc != 0)
			return -rc;
		bb_prm_set(qpc, BB_PRM_QPC_MTU, m->path_mtu);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_MSG_MAX, 30);
		bb_prm_set(qpc, BB_PRM_QPC_REMOTE_QPN, m->dest_qp_num);
		bb_prm_set(qpc, BB_PRM_QPC_NEXT_RCV_PSN, m->rq_psn);
		bb_prm_set(qpc, BB_PRM_QPC_MIN_RNR_NAK, m->min_rnr_timer);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_RRA_MAX, uverbs_log2_up(m->max_dest_rd_atomic));
		return BB_PRM_OP_INIT2RTR_QP;
	}
	if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) {
		bb_prm_set(qpc, BB_PRM_QPC_MIN_RNR_NAK, m->min_rnr_timer);
		*opt |= BB_PRM_OPTPAR_RNR_TIMEOUT;
	}
	if (qp->state == IBV_QPS_RTS)
		return BB_PRM_OP_RTS2RTS_QP;
	bb_prm_set(qpc, BB_PRM_QPC_NEXT_SEND_PSN, m->sq_psn);
	if (qp->type == IBV_QPT_RC) {
		bb_prm_set(qpc, BB_PRM_QPC_LOG_ACK_REQ_FREQ, 8);
		bb_prm_set(ads, BB_PRM_ADS_ACK_TIMEOUT, m->timeout);
		bb_prm_set(qpc, BB_PRM_QPC_RETRY_COUNT, m->retry_cnt);
		bb_prm_set(qpc, BB_PRM_QPC_RNR_RETRY, m->rnr_retry);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_SRA_MAX, uverbs_log2_up(m->max_rd_atomic));
	}
	return BB_PRM_OP_RTR2RTS_QP;
}

static int
modify(struct uverbs_file *f, const struct ib_uverbs_modify_qp *m)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *qpc = bb_prm_sub(in, BB_PRM_MODIFY_QP_QPC);
	struct uverbs_queue *qp = uverbs_find(f, UV_QP, m->qp_handle);
	size_t len = sizeof(in);
	uint32_t opt = 0;
	uint8_t to;
	int op, ret;

	if (qp == NULL)
		return EINVAL;
	to = (m->attr_mask & IBV_QP_STATE) != 0 ? m->qp_state : qp->state;
	if (!allowed(qp, to, m->attr_mask) || !in_range(m))
		return EINVAL;
	if (to == IBV_QPS_RESET && qp->state == IBV_QPS_RESET)
		return 0;
	if (to == IBV_QPS_ERR || to == IBV_QPS_RESET) {
		op = to == IBV_QPS_ERR ? BB_PRM_OP_2ERR_QP : BB_PRM_OP_2RST_QP;
		len = BB_PRM_SZ_SHORT;
	} else {
		bb_prm_set(qpc, BB_PRM_QPC_ST, (uint32_t)service(qp->type));
		bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
		op = fill(f, qp, m, to, qpc, &opt);
		if (op < 0)
			return -op;
		bb_prm_set(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK, opt);
	}
	bb_prm_set(in, BB_PRM_CMD_OPCODE, (uint32_t)op);
	bb_prm_set(in, BB_PRM_MODIFY_QP_QPN, qp->num);
	ret = f->soft->cmd->obj_modify(qp->obj, in, len, out, sizeof(out));
	if (ret == 0) {
		qp->state = to;
		remember(qp, m);
	}
	return uverbs_queue_errno(ret, out);
}

int
uverbs_modify_qp(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_modify_qp q;

	memcpy(&q, c->in, sizeof(q));
	return modify(f, &q);
}

int
uverbs_modify_qp_ex(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	const struct ib_uverbs_ex_modify_qp_resp core = {.response_length = sizeof(core)};
	int rc = uverbs_modify_qp(f, c);

	return rc != 0 ? rc : uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

static uint8_t
state_of(uint32_t prm)
{
	switch (prm) {
	case BB_PRM_QP_RST:
		return IBV_QPS_RESET;
	case BB_PRM_QP_INIT:
		return IBV_QPS_INIT;
	case BB_PRM_QP_RTR:
		return IBV_QPS_RTR;
	case BB_PRM_QP_RTS:
		return IBV_QPS_RTS;
	default:
		return IBV_QPS_ERR;
	}
}

int
uverbs_query_qp(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_QUERY_QP_OUT] = {0};
	const void *qpc = bb_prm_csub(out, BB_PRM_QUERY_QP_OUT_QPC);
	const void *ads = bb_prm_csub(qpc, BB_PRM_QPC_ADS);
	struct ib_uverbs_query_qp_resp r = {0};
	struct ib_uverbs_query_qp q;
	struct uverbs_queue *qp;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	qp = uverbs_find(f, UV_QP, q.qp_handle);
	if (qp == NULL)
		return EINVAL;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_QP);
	bb_prm_set(in, BB_PRM_QUERY_QP_QPN, qp->num);
	ret = f->soft->cmd->obj_query(qp->obj, in, sizeof(in), out, sizeof(out));
	if (ret != 0)
		return uverbs_queue_errno(ret, out);
	qp->state = state_of(bb_prm_get(qpc, BB_PRM_QPC_STATE));
	r.max_send_wr = qp->made.max_send_wr;
	r.max_recv_wr = qp->made.max_recv_wr;
	r.max_send_sge = qp->made.max_send_sge;
	r.max_recv_sge = qp->made.max_recv_sge;
	r.max_inline_data = qp->made.max_inline_data;
	r.sq_sig_all = qp->made.sq_sig_all;
	r.path_mig_state = IBV_MIG_MIGRATED;
	r.qp_state = qp->state;
	r.cur_qp_state = qp->state;
	r.path_mtu = (uint8_t)bb_prm_get(qpc, BB_PRM_QPC_MTU);
	r.qkey = bb_prm_get(qpc, BB_PRM_QPC_Q_KEY);
	r.rq_psn = bb_prm_get(qpc, BB_PRM_QPC_NEXT_RCV_PSN);
	r.sq_psn = bb_prm_get(qpc, BB_PRM_QPC_NEXT_SEND_PSN);
	r.dest_qp_num = bb_prm_get(qpc, BB_PRM_QPC_REMOTE_QPN);
	r.qp_access_flags = (bb_prm_get(qpc, BB_PRM_QPC_RRE) != 0 ? IBV_ACCESS_REMOTE_READ : 0) |
			    (bb_prm_get(qpc, BB_PRM_QPC_RWE) != 0 ? IBV_ACCESS_REMOTE_WRITE : 0) |
			    (bb_prm_get(qpc, BB_PRM_QPC_RAE) != 0 ? IBV_ACCESS_REMOTE_ATOMIC : 0);
	r.pkey_index = (uint16_t)bb_prm_get(ads, BB_PRM_ADS_PKEY_INDEX);
	r.max_rd_atomic = (uint8_t)(1u << bb_prm_get(qpc, BB_PRM_QPC_LOG_SRA_MAX));
	r.max_dest_rd_atomic = (uint8_t)(1u << bb_prm_get(qpc, BB_PRM_QPC_LOG_RRA_MAX));
	r.min_rnr_timer = (uint8_t)bb_prm_get(qpc, BB_PRM_QPC_MIN_RNR_NAK);
	r.port_num = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_VHCA_PORT_NUM);
	r.timeout = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_ACK_TIMEOUT);
	r.retry_cnt = (uint8_t)bb_prm_get(qpc, BB_PRM_QPC_RETRY_COUNT);
	r.rnr_retry = (uint8_t)bb_prm_get(qpc, BB_PRM_QPC_RNR_RETRY);
	memcpy(r.dest.dgid, bb_prm_csub(ads, BB_PRM_ADS_RGID_RIP), sizeof(r.dest.dgid));
	r.dest.sgid_index = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_SRC_ADDR_INDEX);
	r.dest.hop_limit = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_HOP_LIMIT);
	r.dest.traffic_class = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_TCLASS);
	r.dest.flow_label = bb_prm_get(ads, BB_PRM_ADS_FLOW_LABEL);
	r.dest.sl = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_ETH_PRIO);
	r.dest.port_num = r.port_num;
	r.dest.dlid = (uint16_t)bb_prm_get(ads, BB_PRM_ADS_RLID);
	r.dest.src_path_bits = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_MLID);
	/* A path on Ethernet has no LID, but it always has a GRH. */
	r.dest.is_global = r.dest.dlid == 0 || bb_prm_get(ads, BB_PRM_ADS_GRH) != 0;
	if (r.dest.dlid != 0)
		r.dest.sl = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_SL);
	return uverbs_reply(c, &r, sizeof(r), NULL, 0);
}
