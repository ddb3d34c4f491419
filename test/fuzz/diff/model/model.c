/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Changes of the model's state by successful calls. */
#include <string.h>

#include "diff.h"

/* Nearby bytes differ, so that data at a wrong address are detected. */
void
memory_init(uint8_t mem[ARENA])
{
	for (uint32_t i = 0; i < ARENA; i++)
		mem[i] = (uint8_t)(i * 0x9e3779b1u >> 24);
}

void
model_init(struct model *m, const struct world *world)
{
	memset(m, 0, sizeof(*m));
	m->world = world;
	m->own_pace = world->own_pace;
	m->devs = world->devs;
	memory_init(m->mem);
}

static void
qp_create(struct model *m, const uint32_t *a)
{
	struct m_qp *qp = &m->qp[a[0]];
	uint32_t gen = qp->gen + 1;

	memset(qp, 0, sizeof(*qp));
	qp->live = true;
	qp->gen = gen;
	qp->pd = a[1];
	qp->scq = a[2];
	qp->rcq = a[3];
	qp->sq_depth = a[4];
	qp->rq_depth = a[5];
	qp->max_sge = a[6];
	qp->max_recv_sge = a[7];
	qp->max_inline = a[8];
	qp->type = a[12];
	qp->srq = a[13];
	if (qp->srq != 0) {
		/* max_recv_wr and max_recv_sge as in man ibv_create_qp. */
		qp->rq_depth = qp->max_recv_sge = 0;
		m->srq[qp->srq - 1].refs++;
		m->cq[qp->rcq].refs++;
		qp->live = false;
		m->cq[qp->rcq].promised += model_srq_credits(m, qp->srq, qp->rcq);
		qp->live = true;
	}
	qp->peer = QPS;
	qp->signal_all = a[11] || m->own_pace;
	qp->sig_every = qp->signal_all ? 1 : a[9] != 0 ? a[9] : a[4] < 4 ? 1 : a[4] / 4;
	m->pd[qp->pd].refs++;
	m->cq[qp->scq].refs++;
	m->cq[qp->scq].promised += qp->sq_depth;
	if (qp->srq == 0 && (qp->rq_depth != 0 || qp->rcq != qp->scq))
		m->cq[qp->rcq].refs++;
	m->cq[qp->rcq].promised += qp->rq_depth;
}

static void
qp_destroy(struct model *m, struct m_qp *qp)
{
	qp->live = false;
	if (qp->srq != 0) {
		m->srq[qp->srq - 1].refs--;
		m->cq[qp->rcq].refs--;
		m->cq[qp->rcq].promised -= model_srq_credits(m, qp->srq, qp->rcq);
	}
	m->pd[qp->pd].refs--;
	m->cq[qp->scq].refs--;
	m->cq[qp->scq].promised -= qp->sq_depth;
	if (qp->srq == 0 && (qp->rq_depth != 0 || qp->rcq != qp->scq))
		m->cq[qp->rcq].refs--;
	m->cq[qp->rcq].promised -= qp->rq_depth;
}

static void
modify(struct model *m, const uint32_t *a)
{
	struct m_qp *qp = &m->qp[a[0]], *peer = &m->qp[a[2]];
	bool ud = qp->type == BB_QPT_UD;

	switch (a[1]) {
	case BB_QP_RESET:
		memset(&qp->sq, 0, sizeof(qp->sq));
		memset(&qp->rq, 0, sizeof(qp->rq));
		qp->peer = QPS;
		/* A receive already taken is not returned. */
		qp->holds = false;
		qp->comm_est = false;
		break;
	case BB_QP_ERR:
		model_fail_qp(m, qp);
		break;
	case BB_QP_RTR:
		/* The values that the two QPs would have agreed on; exec.c uses the same. */
		qp->peer = ud ? QPS : a[2];
		qp->peer_gen = peer->live ? peer->gen : 0;
		qp->sq_psn = peer->state == BB_QP_RTR || peer->state == BB_QP_RTS ? peer->epsn
										  : PSN_START;
		qp->epsn = peer->state == BB_QP_RTR || peer->state == BB_QP_RTS ? peer->sq_psn
										: PSN_START;
		qp->rnr_retry = a[6];
		break;
	default:
		qp->access = a[3];
		qp->qkey = a[8];
		break;
	}
	if (a[1] == BB_QP_RTS && qp->state == BB_QP_RTR)
		qp->rnr_retry = a[6];
	qp->state = a[1];
}

void
model_post(struct model *m, const struct step *s)
{
	struct m_qp *qp = &m->qp[s->a[A_QP]];
	bool recv = s->op == OP_RECV;
	struct m_queue *q = recv ? &qp->rq : &qp->sq;
	struct m_wqe *w = &q->wqe[q->posted % MAX_QUEUE];

	(void)model_wqe_of(m, s, w);
	/* Bit 0 is the direction; a failed completion has no opcode. */
	w->wr_id = ++m->next_wr << 1 | recv;
	model_mw_posted(m, w);
	q->posted++;
	if (recv)
		qp->recv_posted++;
	else
		qp->posted++;
}

void
model_step(struct model *m, const struct step *s, int ret)
{
	const uint32_t *a = s->a;
	struct m_mr *mr;

	if (ret < 0)
		return;
	if (model_is_post(s->op) || s->op == OP_RECV) {
		if (s->a[A_FLAGS] & LISTED)
			model_list_add(m, s);
		else
			model_post(m, s);
		return;
	}
	switch (s->op) {
	case OP_PD_ALLOC:
		m->pd[a[0]] = (struct m_pd){.live = true};
		break;
	case OP_PD_FREE:
		m->pd[a[0]].live = false;
		break;
	case OP_MR_REG:
		mr = &m->mr[a[0]];
		*mr = (struct m_mr){true, a[5] & WRITES, mr->gen + 1,          a[1], a[2], a[3],
				    a[4], a[5],          ARENA_OF(a[2], a[3]), 0};
		m->pd[a[1]].refs++;
		break;
	case OP_MR_REREG:
		mr = &m->mr[a[0]];
		mr->gen++;
		if (a[1] & BB_MR_REREG_PD) {
			m->pd[mr->pd].refs--;
			mr->pd = a[2];
			m->pd[mr->pd].refs++;
		}
		if (a[1] & BB_MR_REREG_ACCESS)
			mr->access = a[6];
		if (a[1] & BB_MR_REREG_TRANSLATION) {
			mr->buf = a[3];
			mr->off = a[4];
			mr->len = a[5];
			mr->base = ARENA_OF(a[3], a[4]);
			mr->writable = mr->access & WRITES;
		}
		break;
	case OP_MR_DEREG:
		m->mr[a[0]].live = false;
		if (m->mr[a[0]].dm != 0)
			m->dm[m->mr[a[0]].dm - 1].refs--;
		m->pd[m->mr[a[0]].pd].refs--;
		break;
	case OP_CQ_CREATE:
		m->cq[a[0]] = (struct m_cq){.live = true, .depth = 1};
		while (m->cq[a[0]].depth < a[1])
			m->cq[a[0]].depth *= 2;
		break;
	case OP_CQ_DESTROY:
		m->cq[a[0]].live = false;
		break;
	case OP_QP_CREATE:
		qp_create(m, a);
		break;
	case OP_QP_DESTROY:
		qp_destroy(m, &m->qp[a[0]]);
		break;
	case OP_MODIFY:
		modify(m, a);
		break;
	case OP_MW_ALLOC:
	case OP_MW_FREE:
		model_mw_step(m, s);
		break;
	case OP_MKEY_CREATE:
	case OP_MKEY_DESTROY:
		model_mkey_step(m, s);
		break;
	case OP_DM_ALLOC:
	case OP_DM_FREE:
	case OP_DM_WRITE:
	case OP_MR_REG_DM:
		model_dm_step(m, s);
		break;
	case OP_SRQ_CREATE:
	case OP_SRQ_DESTROY:
	case OP_SRQ_MODIFY:
	case OP_SRQ_RECV:
	case OP_SRQ_RING:
		model_srq_step(m, s, ret);
		break;
	case OP_AH_CREATE:
		m->ah[a[0]] = (struct m_ah){true, a[1], a[2], a[3], a[4], a[5], a[6]};
		m->pd[a[1]].refs++;
		break;
	case OP_AH_DESTROY:
		m->ah[a[0]].live = false;
		m->pd[m->ah[a[0]].pd].refs--;
		break;
	case OP_RING:
		m->qp[a[0]].sq.rung = m->qp[a[0]].sq.posted;
		break;
	case OP_RING_RECV:
		m->qp[a[0]].rq.rung = m->qp[a[0]].rq.posted;
		break;
	default:
		for (uint32_t i = 0; i < a[2]; i++)
			m->mem[ARENA_OF(a[0], a[1] + i)] = model_pattern(a[3], i);
		break;
	}
	if (s->op == OP_RING || s->op == OP_RING_RECV)
		if (m->qp[a[0]].state == BB_QP_ERR)
			model_fail_qp(m, &m->qp[a[0]]);
}
