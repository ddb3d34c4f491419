/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Devices, memory, queues and their states, by mailboxes only; events. */
#include "soft_rig.h"

#include <stdlib.h>

#include "soft_ctl.h"

#define QPC 0x18
#define ADS (QPC + 0x18)
#define CQC 0x10

/* Used without the driver; a program with the driver uses the driver's function. */
__attribute__((weak)) void
mlx5_cmd_register(const struct mlx5_cmd_if *cmd)
{
	(void)cmd;
}

static void *
rig_alloc(size_t len)
{
	size_t size = (len + 4095) & ~(size_t)4095;
	void *p = aligned_alloc(4096, size);

	assert_non_null(p);
	memset(p, 0, size);
	return p;
}

static struct mlx5_umem *
rig_umem(struct rig_dev *d, void *p, size_t len)
{
	struct mlx5_umem *umem;

	OK(soft_cmd_if.umem_reg(d->ctx, p, (len + 4095) & ~(size_t)4095, BB_ACCESS_LOCAL_WRITE,
				4096, &umem));
	return umem;
}

void
rig_dev_open(struct rig_dev *d, const char *name, const char *args)
{
	struct mlx5_port port;
	struct mlx5_av av;

	memset(d, 0, sizeof(*d));
	OK(soft_cmd_if.open(name, args, &d->ctx));
	OK(soft_cmd_if.pd_alloc(d->ctx, &d->pd));
	if (args != NULL && strstr(args, "link=ib") != NULL) {
		/* Address for UD; the other QP types are connected by RoCE addresses. */
		OK(soft_cmd_if.port_query(d->ctx, 1, &port));
		OK(soft_cmd_if.gid_query(d->ctx, 1, 0, &d->gid));
		d->lid = port.lid;
		return;
	}
	/* RoCE v2 of the first address: without RoCE v1 the GID table has half as many entries. */
	d->gid_index = 3;
	if (soft_cmd_if.gid_query(d->ctx, 1, d->gid_index, &d->gid) != 0)
		d->gid_index = 1;
	OK(soft_cmd_if.gid_query(d->ctx, 1, d->gid_index, &d->gid));
	assert_int_equal(d->gid.type, BB_GID_ROCE_V2);
	OK(soft_cmd_if.av_resolve(d->ctx, d->pd, 1, d->gid_index, d->gid.raw, &av));
	memcpy(d->mac, av.dmac, sizeof(d->mac));
}

void
rig_dev_close(struct rig_dev *d)
{
	OK(soft_cmd_if.pd_free(d->ctx, d->pd));
	OK(soft_cmd_if.close(d->ctx));
}

void
rig_uar_open(struct rig_uar *u, struct rig_dev *d, enum mlx5_uar_type type)
{
	memset(u, 0, sizeof(*u));
	u->d = d;
	OK(soft_cmd_if.uar_alloc(d->ctx, type, &u->uar));
	soft_cmd_if.progress_of(d->ctx, u->uar, &u->progress, &u->arg);
}

void
rig_uar_close(struct rig_uar *u)
{
	OK(soft_cmd_if.uar_free(u->d->ctx, u->uar));
}

void
rig_mem_open(struct rig_mem *m, struct rig_dev *d, struct mlx5_pd *pd, size_t len, uint32_t access)
{
	uint8_t *p = rig_alloc(len);
	struct mlx5_mr_attr attr = mlx5_mr_mem(p, len, access);

	*m = (struct rig_mem){.d = d, .p = p, .len = len};
	OK(soft_cmd_if.mr_reg(d->ctx, pd != NULL ? pd : d->pd, &attr, &m->mr));
}

void
rig_mem_close(struct rig_mem *m)
{
	OK(soft_cmd_if.mr_dereg(m->d->ctx, m->mr));
	free(m->p);
}

static void
cq_open(struct rig_cq *c, struct rig_uar *u, uint32_t log, uint32_t cqe, bool oi)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT];
	size_t bytes = (size_t)cqe << log;
	uint32_t eqn, i;

	memset(c, 0, sizeof(*c));
	c->d = u->d;
	c->log = log;
	c->cqe = cqe;
	c->mem = rig_alloc(bytes + 64);
	c->dbrec = (uint32_t *)(void *)(c->mem + bytes);
	for (i = 0; i < 1u << log; i++)
		c->mem[(size_t)(i + 1) * cqe - 1] = 0xf1;
	c->umem = rig_umem(c->d, c->mem, bytes + 64);
	OK(soft_cmd_if.query_eqn(c->d->ctx, 0, &eqn));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_CQ);
	bb_prm_set(in + CQC, BB_PRM_CQC_C_EQN, eqn);
	bb_prm_set(in + CQC, BB_PRM_CQC_CQE_SZ, cqe == 128);
	bb_prm_set(in + CQC, BB_PRM_CQC_LOG_CQ_SIZE, log);
	bb_prm_set(in + CQC, BB_PRM_CQC_OI, oi);
	bb_prm_set(in + CQC, BB_PRM_CQC_UAR_PAGE, u->uar->page_id);
	bb_prm_set(in + CQC, BB_PRM_CQC_DBR_UMEM_ID, c->umem->id);
	bb_prm_set64(in + CQC, BB_PRM_CQC_DBR_ADDR, bytes);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, c->umem->id);
	OK(soft_cmd_if.obj_create(c->d->ctx, in, sizeof(in), out, sizeof(out), &c->obj));
	c->cqn = bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN);
}

void
rig_cq_open(struct rig_cq *c, struct rig_uar *u, uint32_t log)
{
	cq_open(c, u, log, 64, false);
}

void
rig_cq_open_size(struct rig_cq *c, struct rig_uar *u, uint32_t log, uint32_t cqe)
{
	cq_open(c, u, log, cqe, false);
}

void
rig_cq_open_oi(struct rig_cq *c, struct rig_uar *u, uint32_t log)
{
	cq_open(c, u, log, 64, true);
}

void
rig_cq_close(struct rig_cq *c)
{
	OK(soft_cmd_if.obj_destroy(c->obj));
	OK(soft_cmd_if.umem_dereg(c->d->ctx, c->umem));
	free(c->mem);
}

struct soft_cq *
rig_soft_cq(const struct rig_cq *c)
{
	return soft_ctx(c->d->ctx)->dev->cqs[c->cqn];
}

struct soft_qp *
rig_soft_qp(const struct rig_qp *q)
{
	return soft_qp_find(soft_ctx(q->d->ctx)->dev, q->qpn);
}

void
rig_qp_open(struct rig_qp *q, struct rig_uar *u, struct rig_cq *scq, struct rig_cq *rcq,
	    const struct rig_qp_attr *attr)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN] = {0}, out[BB_PRM_SZ_SHORT];
	size_t rq = attr->no_rq ? 0 : (size_t)1 << (attr->log_rq + attr->log_stride);
	size_t sq = (size_t)64 << attr->log_sq;

	memset(q, 0, sizeof(*q));
	q->d = u->d;
	q->u = u;
	q->scq = scq;
	q->rcq = rcq;
	q->st = attr->st;
	q->log_sq = attr->log_sq;
	q->log_rq = attr->log_rq;
	q->log_stride = attr->log_stride;
	q->mem = rig_alloc(rq + sq + 64);
	q->rq = q->mem;
	q->sq = q->mem + rq;
	q->dbrec = (uint32_t *)(void *)(q->mem + rq + sq);
	q->umem = rig_umem(q->d, q->mem, rq + sq + 64);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_QP);
	bb_prm_set(in + QPC, BB_PRM_QPC_ST, attr->st);
	bb_prm_set(in + QPC, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
	bb_prm_set(in + QPC, BB_PRM_QPC_PD, (attr->pd != NULL ? attr->pd : q->d->pd)->pdn);
	bb_prm_set(in + QPC, BB_PRM_QPC_CS_REQ, attr->cs_req);
	bb_prm_set(in + QPC, BB_PRM_QPC_CS_RES, attr->cs_res);
	bb_prm_set(in + QPC, BB_PRM_QPC_SRQN_RMPN_XRQN, attr->rmpn);
	if (attr->no_rq) {
		bb_prm_set(in + QPC, BB_PRM_QPC_RQ_TYPE,
			   attr->rmpn != 0 ? BB_PRM_RQ_TYPE_SRQ : BB_PRM_RQ_TYPE_ZERO);
	} else {
		bb_prm_set(in + QPC, BB_PRM_QPC_LOG_RQ_SIZE, attr->log_rq);
		bb_prm_set(in + QPC, BB_PRM_QPC_LOG_RQ_STRIDE, attr->log_stride - 4);
	}
	bb_prm_set(in + QPC, BB_PRM_QPC_LOG_SQ_SIZE, attr->log_sq);
	bb_prm_set(in + QPC, BB_PRM_QPC_UAR_PAGE, u->uar->page_id);
	bb_prm_set(in + QPC, BB_PRM_QPC_USER_INDEX, attr->uidx);
	bb_prm_set(in + QPC, BB_PRM_QPC_COUNTER_SET_ID, attr->counter_set);
	bb_prm_set(in + QPC, BB_PRM_QPC_CQN_SND, scq->cqn);
	bb_prm_set(in + QPC, BB_PRM_QPC_CQN_RCV, rcq->cqn);
	bb_prm_set(in + QPC, BB_PRM_QPC_DBR_UMEM_ID, q->umem->id);
	bb_prm_set64(in + QPC, BB_PRM_QPC_DBR_ADDR, rq + sq);
	bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_ID, q->umem->id);
	OK(soft_cmd_if.obj_create(q->d->ctx, in, sizeof(in), out, sizeof(out), &q->obj));
	q->qpn = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
}

void
rig_qp_close(struct rig_qp *q)
{
	OK(soft_cmd_if.obj_destroy(q->obj));
	OK(soft_cmd_if.umem_dereg(q->d->ctx, q->umem));
	free(q->mem);
}

struct rig_link
rig_link_default(void)
{
	return (struct rig_link){
		.access = RIG_ALL,
		.atomic_mode = 1,
		.mtu = 3,
		.log_msg_max = 30,
		.log_sra = 4,
		.log_rra = 4,
		.retry = 2,
		.rnr_retry = 7,
		.min_rnr = 1,
		.timeout = 6,
		.sq_psn = 0x123456,
		.rq_psn = 0x123456,
	};
}

static void
rig_mailbox_rights(const struct rig_qp *q, const struct rig_link *l, uint8_t *qpc)
{
	if (q->st == BB_PRM_QP_ST_UD)
		return;
	bb_prm_set(qpc, BB_PRM_QPC_RWE, (l->access & BB_ACCESS_REMOTE_WRITE) != 0);
	if (q->st == BB_PRM_QP_ST_UC)
		return;
	bb_prm_set(qpc, BB_PRM_QPC_RRE, (l->access & BB_ACCESS_REMOTE_READ) != 0);
	bb_prm_set(qpc, BB_PRM_QPC_RAE, (l->access & BB_ACCESS_REMOTE_ATOMIC) != 0);
	bb_prm_set(qpc, BB_PRM_QPC_ATOMIC_MODE,
		   (l->access & BB_ACCESS_REMOTE_ATOMIC) != 0 ? l->atomic_mode : 0);
}

static void
rig_mailbox_rtr(const struct rig_qp *q, const struct rig_dev *pd, uint32_t remote_qpn,
		const struct rig_link *l, uint8_t *qpc, uint8_t *ads)
{
	if (q->st == BB_PRM_QP_ST_UD) {
		bb_prm_set(qpc, BB_PRM_QPC_MTU, 5);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_MSG_MAX, 12);
		return;
	}
	bb_prm_set(qpc, BB_PRM_QPC_MTU, l->mtu);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_MSG_MAX, l->log_msg_max);
	bb_prm_set(qpc, BB_PRM_QPC_REMOTE_QPN, remote_qpn);
	bb_prm_set(qpc, BB_PRM_QPC_NEXT_RCV_PSN, l->rq_psn);
	bb_prm_set(ads, BB_PRM_ADS_SRC_ADDR_INDEX, q->d->gid_index);
	bb_prm_set(ads, BB_PRM_ADS_HOP_LIMIT, 64);
	bb_prm_set(ads, BB_PRM_ADS_UDP_SPORT, l->sport != 0 ? l->sport : 0xc001);
	bb_prm_set(ads, BB_PRM_ADS_FLOW_LABEL, l->flow_label);
	bb_prm_set(ads, BB_PRM_ADS_TCLASS, l->tclass);
	bb_prm_set(ads, BB_PRM_ADS_DSCP, l->tclass >> 2);
	bb_prm_set(ads, BB_PRM_ADS_RMAC_47_32, (uint32_t)pd->mac[0] << 8 | pd->mac[1]);
	bb_prm_set(ads, BB_PRM_ADS_RMAC_31_0, bb_prm_dword(pd->mac, 2));
	memcpy(bb_prm_sub(ads, BB_PRM_ADS_RGID_RIP), pd->gid.raw, 16);
	if (q->st != BB_PRM_QP_ST_RC)
		return;
	bb_prm_set(qpc, BB_PRM_QPC_LOG_RRA_MAX, l->log_rra);
	bb_prm_set(qpc, BB_PRM_QPC_MIN_RNR_NAK, l->min_rnr);
}

size_t
rig_qp_mailbox(const struct rig_qp *q, uint16_t op, const struct rig_dev *pd, uint32_t remote_qpn,
	       const struct rig_link *l, uint8_t *in)
{
	uint8_t *qpc = in + QPC, *ads = in + ADS;

	memset(in, 0, BB_PRM_SZ_MODIFY_QP_IN);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, op);
	bb_prm_set(in, BB_PRM_MODIFY_QP_QPN, q->qpn);
	switch (op) {
	case BB_PRM_OP_RST2INIT_QP:
		bb_prm_set(ads, BB_PRM_ADS_VHCA_PORT_NUM, 1);
		bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
		rig_mailbox_rights(q, l, qpc);
		if (q->st == BB_PRM_QP_ST_UD)
			bb_prm_set(qpc, BB_PRM_QPC_Q_KEY, RIG_QKEY);
		break;
	case BB_PRM_OP_RTS2RTS_QP:
		if (q->st == BB_PRM_QP_ST_RC)
			bb_prm_set(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK,
				   BB_PRM_OPTPAR_RRE | BB_PRM_OPTPAR_RAE | BB_PRM_OPTPAR_RWE);
		bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
		rig_mailbox_rights(q, l, qpc);
		break;
	case BB_PRM_OP_INIT2RTR_QP:
		rig_mailbox_rtr(q, pd, remote_qpn, l, qpc, ads);
		break;
	case BB_PRM_OP_RTR2RTS_QP:
		bb_prm_set(qpc, BB_PRM_QPC_NEXT_SEND_PSN, l->sq_psn);
		if (q->st != BB_PRM_QP_ST_RC)
			break;
		bb_prm_set(qpc, BB_PRM_QPC_LOG_SRA_MAX, l->log_sra);
		bb_prm_set(qpc, BB_PRM_QPC_RETRY_COUNT, l->retry);
		bb_prm_set(qpc, BB_PRM_QPC_RNR_RETRY, l->rnr_retry);
		bb_prm_set(ads, BB_PRM_ADS_ACK_TIMEOUT, l->timeout);
		break;
	case BB_PRM_OP_INIT2INIT_QP:
		break;
	default:
		return BB_PRM_SZ_SHORT;
	}
	bb_prm_set(qpc, BB_PRM_QPC_ST, q->st);
	return BB_PRM_SZ_MODIFY_QP_IN;
}

int
rig_qp_modify(struct rig_qp *q, uint16_t op, const struct rig_dev *pd, uint32_t remote_qpn,
	      const struct rig_link *l)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	size_t len = rig_qp_mailbox(q, op, pd, remote_qpn, l, in);

	return soft_cmd_if.obj_modify(q->obj, in, len, out, sizeof(out));
}

void
rig_qp_up(struct rig_qp *q, const struct rig_dev *pd, uint32_t remote_qpn, const struct rig_link *l)
{
	assert_int_equal(rig_qp_modify(q, BB_PRM_OP_RST2INIT_QP, pd, remote_qpn, l), 0);
	assert_int_equal(rig_qp_modify(q, BB_PRM_OP_INIT2RTR_QP, pd, remote_qpn, l), 0);
	assert_int_equal(rig_qp_modify(q, BB_PRM_OP_RTR2RTS_QP, pd, remote_qpn, l), 0);
}

void
rig_connect(struct rig_qp *a, struct rig_qp *b, const struct rig_link *l)
{
	struct rig_link other = *l;

	other.sq_psn = l->rq_psn;
	other.rq_psn = l->sq_psn;
	rig_qp_up(a, b->d, b->qpn, l);
	if (a != b)
		rig_qp_up(b, a->d, a->qpn, &other);
}

void
rig_qp_reset(struct rig_qp *q)
{
	assert_int_equal(rig_qp_modify(q, BB_PRM_OP_2RST_QP, NULL, 0, NULL), 0);
	q->dbrec[0] = 0;
	q->dbrec[1] = 0;
	q->pi = 0;
	q->rq_pi = 0;
}

void
rig_qp_error(struct rig_qp *q)
{
	assert_int_equal(rig_qp_modify(q, BB_PRM_OP_2ERR_QP, NULL, 0, NULL), 0);
}

uint32_t
rig_qp_query(struct rig_qp *q, struct bb_prm_field f)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_QUERY_QP_OUT];

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_QP);
	bb_prm_set(in, BB_PRM_QUERY_QP_QPN, q->qpn);
	OK(soft_cmd_if.obj_query(q->obj, in, sizeof(in), out, sizeof(out)));
	return bb_prm_get(bb_prm_csub(out, BB_PRM_QUERY_QP_OUT_QPC), f);
}

void
rig_subscribe(struct rig_dev *d, struct mlx5_obj *obj, uint16_t type, uint64_t cookie)
{
	OK(soft_cmd_if.event_subscribe(d->ctx, obj, &type, 1, cookie));
}

void
rig_expect_event(struct rig_dev *d, uint16_t type, uint64_t cookie)
{
	struct mlx5_cmd_event e;

	OK(soft_cmd_if.event_get(d->ctx, &e));
	assert_int_equal(e.type, type);
	assert_int_equal(e.cookie, cookie);
}

void
rig_expect_no_event(struct rig_dev *d)
{
	struct mlx5_cmd_event e;

	assert_int_equal(soft_cmd_if.event_get(d->ctx, &e), -EAGAIN);
}

/* ---- Pairs */

void
rig_pair_open(struct rig_pair *p, const char *args, bool two_uars, const struct rig_link *l)
{
	const struct rig_qp_attr attr = {
		.log_sq = 6, .log_rq = 4, .log_stride = 6, .uidx = 0xa11ce};
	struct rig_qp_attr attr_b = attr;
	struct rig_link link = rig_link_default();
	size_t i;

	attr_b.uidx = 0xb0b;
	memset(p, 0, sizeof(*p));
	rig_dev_open(&p->d, "soft0", args);
	rig_uar_open(&p->ua, &p->d, MLX5_UAR_BF);
	p->u[0] = p->u[1] = &p->ua;
	if (two_uars) {
		rig_uar_open(&p->ub, &p->d, MLX5_UAR_BF);
		p->u[1] = &p->ub;
	}
	rig_cq_open(&p->ca, p->u[0], 8);
	rig_cq_open(&p->cb, p->u[1], 8);
	rig_qp_open(&p->a, p->u[0], &p->ca, &p->ca, &attr);
	rig_qp_open(&p->b, p->u[1], &p->cb, &p->cb, &attr_b);
	rig_connect(&p->a, &p->b, l != NULL ? l : &link);
	rig_mem_open(&p->ma, &p->d, NULL, RIG_MEM, RIG_ALL);
	rig_mem_open(&p->mb, &p->d, NULL, RIG_MEM, RIG_ALL);
	for (i = 0; i < RIG_MEM; i++)
		p->ma.p[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
}

void
rig_pair_close(struct rig_pair *p)
{
	rig_qp_close(&p->a);
	rig_qp_close(&p->b);
	rig_cq_close(&p->ca);
	rig_cq_close(&p->cb);
	rig_mem_close(&p->ma);
	rig_mem_close(&p->mb);
	if (p->u[1] != p->u[0])
		rig_uar_close(&p->ub);
	rig_uar_close(&p->ua);
	rig_dev_close(&p->d);
}

/* A program has one pair at a time; a test begins with its options. */
static int
pair_setup(void **state, bool two_uars)
{
	static struct rig_pair p;

	rig_pair_open(&p, *state, two_uars, NULL);
	*state = &p;
	return 0;
}

int
rig_setup(void **state)
{
	return pair_setup(state, false);
}

int
rig_setup_two(void **state)
{
	return pair_setup(state, true);
}

int
rig_teardown(void **state)
{
	rig_pair_close(*state);
	return 0;
}
