/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bb_barrier.h"
#include "bb_cqe.h"
#include "bb_prm.h"
#include "bb_wqe.h"
#include "qp1.h"
#include "soft_hooks.h"

/* Numbers of entries of the rings, powers of two. */
#define RECVS 1024u
#define SENDS 64u
#define CQES  2048u /* more than RECVS + SENDS, so that the CQ has room for all */

/* Size of a send WQE in blocks of 64 bytes. */
#define SEND_BLOCKS 2u
/* Size of a send WQE in 16-byte units: control segment, address vector, data segment. */
#define SEND_DS 5u
#define SLOT    512u /* bytes of a buffer */
#define PORT    1u
#define CQ_REC  8u /* offset of the CQ's doorbell record, in 4-byte units */
#define ARM     0x20
/* Times that the device runs before QP1 is closed. */
#define LAST_TURNS 64
/*
 * MADs that may wait until the link knows how to reach their destinations, and the number of times
 * that each is tried again, after QP1_RETRY_NS each: 2 s.
 */
#define HELD      64u
#define HELD_PEER 16u /* MADs of one destination that may wait */
#define TRIES     200u

/* Memory that the device reads and writes. Each ring starts on a page. */
struct rings {
	struct bb_wqe_data recv[RECVS];
	uint8_t send[SENDS][SEND_BLOCKS * BB_WQE_BB];
	struct bb_cqe cqe[CQES];
	uint32_t rec[1024]; /* doorbell records: receive and send counter; then those of the CQ */
	uint8_t recv_buf[RECVS][SLOT];
	uint8_t send_buf[SENDS][SLOT];
};
_Static_assert(offsetof(struct rings, send) % 4096 == 0, "page");
_Static_assert(offsetof(struct rings, cqe) % 4096 == 0, "page");
_Static_assert(offsetof(struct rings, rec) % 4096 == 0, "page");

struct held {
	uint32_t sgid_index, tries;
	struct bb_ibcm_net net;
	uint8_t mad[BB_IBCM_MAD];
};

/*
 * The rings of the only QP1. They are no mapping of their own, because the kernel could choose a
 * place where the program has unmapped registered memory.
 */
static struct rings rings __attribute__((aligned(4096)));

struct qp1 {
	struct mlx5_ctx *ctx;
	struct rings *m;
	struct mlx5_umem *umem;
	struct mlx5_pd *pd;
	struct mlx5_mr *mr;
	struct mlx5_uar *uar;
	struct mlx5_channel *ch;
	struct mlx5_obj *cq, *qp;
	uint32_t cqn, qpn;
	uint32_t ci, events; /* CQEs consumed; completion events received */
	uint32_t posted;     /* number of receives posted */
	uint32_t sent, completed;
	/*
	 * Received MADs that qp1_receive() has not returned yet, in order: entries of the ring got.
	 */
	uint32_t first, n;
	struct {
		uint32_t slot, len, qpn;
	} got[RECVS];
	bool failed; /* a completion with an error was reported */
	uint64_t drops[QP1_DROPS];
	uint32_t n_held;
	uint64_t retry_at; /* time at which the held MADs are tried again, ns */
	struct held held[HELD];
};

/* ---- Creation */

static uint32_t
log2_of(uint32_t v)
{
	return 31u - (uint32_t)__builtin_clz(v);
}

static int
make_cq(struct qp1 *q)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *cqc = bb_prm_sub(in, BB_PRM_CREATE_CQ_CQC);
	uint32_t eqn, i;
	int ret = q->ctx->cmd->query_eqn(q->ctx, 0, &eqn);

	if (ret != 0)
		return ret;
	for (i = 0; i < CQES; i++)
		q->m->cqe[i].op_own = BB_CQE_OP_OWN_INIT;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_CQ);
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, log2_of(CQES));
	bb_prm_set(cqc, BB_PRM_CQC_UAR_PAGE, q->uar->page_id);
	bb_prm_set(cqc, BB_PRM_CQC_C_EQN, eqn);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_VALID, 1);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_ID, q->umem->id);
	bb_prm_set64(cqc, BB_PRM_CQC_DBR_ADDR, offsetof(struct rings, rec[CQ_REC]));
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, q->umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, offsetof(struct rings, cqe));
	ret = q->ctx->cmd->obj_create(q->ctx, in, sizeof(in), out, sizeof(out), &q->cq);
	if (ret != 0)
		return ret;
	q->cqn = bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN);
	return q->ctx->cmd->channel_subscribe(q->ch, q->cq, 0);
}

static int
make_qp(struct qp1 *q)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	void *qpc = bb_prm_sub(in, BB_PRM_CREATE_QP_QPC);
	int ret;

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_QP);
	bb_prm_set(qpc, BB_PRM_QPC_ST, 2); /* UD (mlx5_ifc.h: MLX5_QPC_ST_UD) */
	bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
	bb_prm_set(qpc, BB_PRM_QPC_PD, q->pd->pdn);
	bb_prm_set(qpc, BB_PRM_QPC_UAR_PAGE, q->uar->page_id);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_SQ_SIZE, log2_of(SENDS * SEND_BLOCKS));
	bb_prm_set(qpc, BB_PRM_QPC_LOG_RQ_SIZE, log2_of(RECVS));
	bb_prm_set(qpc, BB_PRM_QPC_RQ_TYPE, BB_PRM_RQ_TYPE_REGULAR);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_SND, q->cqn);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_RCV, q->cqn);
	bb_prm_set(qpc, BB_PRM_QPC_DBR_UMEM_VALID, 1);
	bb_prm_set(qpc, BB_PRM_QPC_DBR_UMEM_ID, q->umem->id);
	bb_prm_set64(qpc, BB_PRM_QPC_DBR_ADDR, offsetof(struct rings, rec));
	bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_VALID, 1);
	bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_ID, q->umem->id);
	ret = q->ctx->cmd->obj_create(q->ctx, in, sizeof(in), out, sizeof(out), &q->qp);
	if (ret != 0)
		return ret;
	q->qpn = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
	return q->ctx->cmd->qp1_claim(q->ctx, q->qpn);
}

/* Moves the QP from RESET to RTS. UD QPs have the MTU and message size of mlx5_ib. */
static int
start(struct qp1 *q)
{
	static const uint16_t ops[] = {BB_PRM_OP_RST2INIT_QP, BB_PRM_OP_INIT2RTR_QP,
				       BB_PRM_OP_RTR2RTS_QP};
	unsigned int i;
	int ret = 0;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]) && ret == 0; i++) {
		uint8_t in[BB_PRM_SZ_MODIFY_QP_IN] = {0}, out[BB_PRM_SZ_SHORT] = {0};
		void *qpc = bb_prm_sub(in, BB_PRM_MODIFY_QP_QPC);

		bb_prm_set(in, BB_PRM_CMD_OPCODE, ops[i]);
		bb_prm_set(in, BB_PRM_MODIFY_QP_QPN, q->qpn);
		bb_prm_set(qpc, BB_PRM_QPC_ST, 2);
		bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
		bb_prm_set(qpc, BB_PRM_QPC_MTU, 5);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_MSG_MAX, 12);
		if (ops[i] == BB_PRM_OP_RST2INIT_QP) {
			bb_prm_set(bb_prm_sub(qpc, BB_PRM_QPC_ADS), BB_PRM_ADS_VHCA_PORT_NUM, PORT);
			bb_prm_set(qpc, BB_PRM_QPC_Q_KEY, BB_IBCM_QKEY);
		}
		ret = q->ctx->cmd->obj_modify(q->qp, in, sizeof(in), out, sizeof(out));
	}
	return ret;
}

static void
post_receive(struct qp1 *q, uint32_t slot)
{
	q->m->recv[q->posted % RECVS] = (struct bb_wqe_data){
		.byte_count = bb_be32(SLOT),
		.lkey = bb_be32(q->mr->lkey),
		.addr = bb_be64((uintptr_t)q->m->recv_buf[slot]),
	};
	q->posted++;
	bb_dma_wmb();
	bb_dbrec_store(&q->m->rec[0], bb_be32(q->posted & 0xffff));
}

static void
destroy(struct qp1 *q)
{
	const struct mlx5_cmd_if *cmd = q->ctx->cmd;

	if (q->qp != NULL)
		(void)cmd->obj_destroy(q->qp);
	if (q->cq != NULL)
		(void)cmd->obj_destroy(q->cq);
	if (q->ch != NULL)
		(void)cmd->channel_destroy(q->ctx, q->ch);
	if (q->uar != NULL)
		(void)cmd->uar_free(q->ctx, q->uar);
	if (q->mr != NULL)
		(void)cmd->mr_dereg(q->ctx, q->mr);
	if (q->pd != NULL)
		(void)cmd->pd_free(q->ctx, q->pd);
	if (q->umem != NULL)
		(void)cmd->umem_dereg(q->ctx, q->umem);
	free(q);
}

int
qp1_open(struct mlx5_ctx *ctx, struct qp1 **out)
{
	struct qp1 *q = calloc(1, sizeof(*q));
	struct mlx5_mr_attr attr;
	uint32_t i;
	int ret;

	if (q == NULL)
		return -ENOMEM;
	q->ctx = ctx;
	q->m = &rings;
	memset(q->m->rec, 0, sizeof(q->m->rec));
	attr = mlx5_mr_mem(q->m, sizeof(*q->m), MLX5_ACCESS_LOCAL_WRITE);
	ret = ctx->cmd->umem_reg(ctx, q->m, sizeof(*q->m), MLX5_ACCESS_LOCAL_WRITE, UINT64_MAX,
				 &q->umem);
	if (ret == 0)
		ret = ctx->cmd->pd_alloc(ctx, &q->pd);
	if (ret == 0)
		ret = ctx->cmd->mr_reg(ctx, q->pd, &attr, &q->mr);
	if (ret == 0)
		ret = ctx->cmd->uar_alloc(ctx, MLX5_UAR_NC, &q->uar);
	if (ret == 0)
		ret = ctx->cmd->channel_create(ctx, &q->ch);
	if (ret == 0)
		ret = make_cq(q);
	if (ret == 0)
		ret = make_qp(q);
	if (ret == 0)
		ret = start(q);
	if (ret != 0) {
		destroy(q);
		return ret;
	}
	for (i = 0; i < RECVS; i++)
		post_receive(q, i);
	*out = q;
	return 0;
}

/* ---- Completions */

static const struct bb_cqe *
next_cqe(const struct qp1 *q)
{
	const struct bb_cqe *cqe = &q->m->cqe[q->ci % CQES];
	const uint8_t own = bb_cqe_own_load(&cqe->op_own);

	if ((own & 1) != ((q->ci & CQES) != 0) || own >> 4 == BB_CQE_INVALID)
		return NULL;
	bb_dma_rmb();
	return cqe;
}

/* A completion with an error means that QP1 sends and receives no more. */
static void
report_error(struct qp1 *q, const struct bb_cqe *cqe)
{
	if (!q->failed)
		fprintf(stderr,
			"bb_verbs: QP1 failed with syndrome 0x%x: rdma_cm gets no more messages in "
			"this process\n",
			bb_cqe_syndrome(cqe));
	q->failed = true;
}

/* Consumes all CQEs. Appends received MADs to the ring q->got. */
static void
reap(struct qp1 *q)
{
	const struct bb_cqe *cqe;
	const uint32_t ci = q->ci;

	while ((cqe = next_cqe(q)) != NULL) {
		switch (cqe->op_own >> 4) {
		case BB_CQE_REQ:
			q->completed++;
			break;
		case BB_CQE_RESP_SEND:
		case BB_CQE_RESP_SEND_IMM: {
			const uint32_t at = (q->first + q->n++) % RECVS;

			q->got[at].slot = bb_be16(cqe->wqe_counter) % RECVS;
			q->got[at].len = bb_be32(cqe->byte_cnt);
			q->got[at].qpn = bb_be32(cqe->flags_rqpn) & BB_CQE_RQPN_QPN;
			break;
		}
		default:
			report_error(q, cqe);
		}
		q->ci++;
	}
	if (q->ci == ci)
		return;
	bb_dma_rmb();
	bb_dbrec_store(&q->m->rec[CQ_REC], bb_be32(q->ci & 0xffffff));
}

/* Requests an event at the next completion. */
static void
arm(struct qp1 *q)
{
	const uint32_t word = (q->events & 3) << 28 | (q->ci & 0xffffff);

	bb_dbrec_store(&q->m->rec[CQ_REC + 1], bb_be32(word));
	bb_db_wmb();
	bb_uar_store64((volatile uint64_t *)(void *)(q->uar->base_addr + ARM),
		       bb_be64((uint64_t)word << 32 | q->cqn));
	bb_wc_flush();
	soft_run(q->ctx);
}

/* Receives complete in order, so the buffer of a WQE is the one with the WQE's index. */
const uint8_t *
qp1_receive(struct qp1 *q, struct bb_ibcm_gmp *gmp, uint32_t *len)
{
	const uint8_t *at;
	uint64_t cookie;

	for (;;) {
		if (q->n == 0)
			reap(q);
		if (q->n == 0) {
			while (q->ctx->cmd->channel_get(q->ch, &cookie) == 0)
				q->events++;
			arm(q);
			reap(q);
			if (q->n == 0)
				return NULL;
		}
		at = q->m->recv_buf[q->got[q->first].slot];
		memset(gmp, 0, sizeof(*gmp));
		*len = q->got[q->first].len;
		if (*len >= BB_IBCM_GRH && *len <= SLOT && bb_ibcm_net_parse(&gmp->net, at))
			break;
		q->drops[QP1_DROP_MALFORMED]++;
		qp1_done(q);
	}
	/* The device has checked the Q_Key. */
	gmp->qkey = BB_IBCM_QKEY;
	gmp->sqpn = q->got[q->first].qpn;
	*len -= BB_IBCM_GRH;
	return at + BB_IBCM_GRH;
}

void
qp1_done(struct qp1 *q)
{
	post_receive(q, q->got[q->first].slot);
	q->first = (q->first + 1) % RECVS;
	q->n--;
}

int
qp1_fd(const struct qp1 *q)
{
	return q->ch->fd;
}

/* ---- Sends */

int
qp1_reach(struct qp1 *q, uint32_t sgid_index, const uint8_t dgid[16])
{
	return q->ctx->cmd->av_ready(q->ctx, PORT, sgid_index, dgid);
}

/* Sends a MAD to a destination that the link can reach. */
static void
send_now(struct qp1 *q, uint32_t sgid_index, const struct bb_ibcm_net *net,
	 const uint8_t mad[BB_IBCM_MAD])
{
	const uint32_t i = q->sent % SENDS;
	uint8_t *wqe = q->m->send[i];
	struct bb_wqe_ctrl *ctrl = (struct bb_wqe_ctrl *)(void *)wqe;
	struct bb_wqe_av *av = (struct bb_wqe_av *)(void *)(wqe + sizeof(*ctrl));
	struct bb_wqe_data *data =
		(struct bb_wqe_data *)(void *)(wqe + sizeof(*ctrl) + sizeof(*av));
	struct mlx5_av mac;
	uint64_t head;

	if (q->sent - q->completed == SENDS) {
		soft_run(q->ctx);
		reap(q);
	}
	if (q->sent - q->completed == SENDS) {
		q->drops[QP1_DROP_NO_ROOM]++;
		return;
	}
	if (q->ctx->cmd->av_resolve(q->ctx, q->pd, PORT, sgid_index, net->dst, &mac) != 0) {
		q->drops[QP1_DROP_NO_ADDRESS]++;
		return;
	}
	memcpy(q->m->send_buf[i], mad, BB_IBCM_MAD);
	memset(wqe, 0, SEND_BLOCKS * BB_WQE_BB);
	ctrl->opmod_idx_opcode = bb_be32((q->sent * SEND_BLOCKS & 0xffff) << 8 | BB_WQE_SEND);
	ctrl->qpn_ds = bb_be32(q->qpn << 8 | SEND_DS);
	ctrl->fm_ce_se = BB_WQE_CE_CQE;
	av->qkey = bb_be32(BB_IBCM_QKEY);
	av->dest_qpn = bb_be32(BB_IBCM_QPN | BB_WQE_EXT_AV);
	av->rate_sl = (uint8_t)((net->sl & 7) << 1);
	memcpy(av->rmac, mac.dmac, sizeof(av->rmac));
	av->tclass = net->tclass;
	av->hop_limit = net->hop_limit;
	av->grh_gid_fl = bb_be32(sgid_index << 20 | (net->flow_label & 0xfffff));
	memcpy(av->rgid, net->dst, sizeof(av->rgid));
	/* The UDP source port. Any dynamic port is valid; libmlx5 chooses from the same range. */
	av->rlid = bb_be16(0xc000);
	data->byte_count = bb_be32(BB_IBCM_MAD);
	data->lkey = bb_be32(q->mr->lkey);
	data->addr = bb_be64((uintptr_t)q->m->send_buf[i]);
	q->sent++;
	memcpy(&head, wqe, sizeof(head));
	bb_dma_wmb();
	bb_dbrec_store(&q->m->rec[1], bb_be32(q->sent * SEND_BLOCKS & 0xffff));
	bb_db_wmb();
	bb_uar_store64((volatile uint64_t *)(void *)q->uar->reg_addr, head);
	bb_wc_flush();
	soft_run(q->ctx);
}

/*
 * Returns the number of MADs with the destination of @net among the first @n held MADs. MADs of one
 * destination keep their order, so that an RTU arrives before the DREQ.
 */
static uint32_t
waiting(const struct qp1 *q, uint32_t n, const struct bb_ibcm_net *net)
{
	uint32_t i, found = 0;

	for (i = 0; i < n; i++)
		found += memcmp(q->held[i].net.dst, net->dst, sizeof(net->dst)) == 0;
	return found;
}

void
qp1_send(struct qp1 *q, uint32_t sgid_index, const struct bb_ibcm_net *net,
	 const uint8_t mad[BB_IBCM_MAD])
{
	const uint32_t before = waiting(q, q->n_held, net);
	const int ret = before != 0 ? -EAGAIN : qp1_reach(q, sgid_index, net->dst);
	struct held *h = &q->held[q->n_held];

	if (ret == 0) {
		send_now(q, sgid_index, net, mad);
		return;
	}
	if (ret != -EAGAIN || q->n_held == HELD || before == HELD_PEER) {
		q->drops[ret != -EAGAIN ? QP1_DROP_NO_ADDRESS : QP1_DROP_NO_ROOM]++;
		return;
	}
	*h = (struct held){.sgid_index = sgid_index, .tries = TRIES, .net = *net};
	memcpy(h->mad, mad, sizeof(h->mad));
	q->n_held++;
}

void
qp1_retry(struct qp1 *q, uint64_t now)
{
	uint32_t i, left = 0;

	if (q->n_held == 0 || now < q->retry_at)
		return;
	q->retry_at = now + QP1_RETRY_NS;
	for (i = 0; i < q->n_held; i++) {
		struct held *h = &q->held[i];
		const int ret = waiting(q, left, &h->net) != 0
					? -EAGAIN
					: qp1_reach(q, h->sgid_index, h->net.dst);

		if (ret == 0)
			send_now(q, h->sgid_index, &h->net, h->mad);
		else if (ret == -EAGAIN && --h->tries > 0)
			q->held[left++] = *h;
		else
			q->drops[QP1_DROP_NO_ADDRESS]++;
	}
	q->n_held = left;
}

bool
qp1_holds(const struct qp1 *q)
{
	return q->n_held != 0;
}

const uint64_t *
qp1_drops(const struct qp1 *q)
{
	return q->drops;
}

const char *
qp1_drop_name(enum qp1_drop why)
{
	static const char *const names[QP1_DROPS] = {"malformed", "no_room", "no_address"};

	return names[why];
}

void
qp1_close(struct qp1 *q)
{
	unsigned int i;

	for (i = 0; i < LAST_TURNS && q->sent != q->completed; i++) {
		soft_run(q->ctx);
		reap(q);
	}
	destroy(q);
}
