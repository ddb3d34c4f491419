/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared receive queues (IBTA vol. 1, 10.2.9; man ibv_create_srq, ibv_modify_srq), and how a
 * message finds its receive. A message takes a receive on arrival; the queue pair then has it
 * until it completes.
 */
#include <errno.h>
#include <string.h>

#include "diff.h"

/* Man ibv_get_async_event. */
void
model_event(struct model *m, uint32_t type, uint32_t slot)
{
	if (m->n_events < MAX_EVENTS)
		m->event[m->n_events++] = (struct m_event){type, slot};
}

bool
model_has_recvs(const struct m_qp *p)
{
	return p->rq_depth != 0 || p->srq != 0;
}

uint32_t
model_recv_pd(const struct model *m, const struct m_qp *p)
{
	return p->srq != 0 ? m->srq[p->srq - 1].pd : p->pd;
}

const struct m_wqe *
model_recv_next(struct model *m, struct m_qp *p)
{
	struct m_srq *srq;

	if (p->srq == 0)
		return p->rq.done == p->rq.rung ? NULL : &p->rq.wqe[p->rq.done % MAX_QUEUE];
	if (p->holds)
		return &p->held;
	srq = &m->srq[p->srq - 1];
	if (srq->q.done == srq->q.rung)
		return NULL;
	p->held = srq->q.wqe[srq->q.done++ % MAX_QUEUE];
	p->holds = true;
	/* Once, when fewer receives than the limit are left. */
	if (srq->limit != 0 && srq->q.rung - srq->q.done < srq->limit) {
		srq->limit = 0;
		model_event(m, BB_EVENT_SRQ_LIMIT, p->srq - 1);
	}
	return &p->held;
}

/* Completes the receive, which the application owns again. */
void
model_recv_due(struct model *m, struct m_qp *p, struct m_wc *wc)
{
	if (p->srq != 0) {
		wc->wr_id = p->held.wr_id;
		p->holds = false;
		m->srq[p->srq - 1].outstanding--;
	} else {
		wc->wr_id = p->rq.wqe[p->rq.done++ % MAX_QUEUE].wr_id;
	}
	model_due(&p->recvs, wc);
	if (wc->status != BB_WC_SUCCESS)
		p->errors++;
}

/* The first QP that combines an SRQ and a CQ counts the SRQ's receives there. */
uint32_t
model_srq_credits(const struct model *m, uint32_t srq, uint32_t cq)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (m->qp[i].live && m->qp[i].srq == srq && m->qp[i].rcq == cq)
			return 0;
	return m->srq[srq - 1].depth;
}

/* Returns the requests that wait for the SRQ's receives: the order of two is undefined. */
static uint32_t
waiting_for(const struct model *m, uint32_t srq)
{
	uint32_t i, n = 0;

	for (i = 0; i < QPS; i++) {
		const struct m_qp *qp = &m->qp[i];

		n += qp->live && qp->state == BB_QP_RTS && qp->sq.done != qp->sq.rung &&
		     qp->peer < QPS && m->qp[qp->peer].srq == srq + 1;
	}
	return n;
}

void
model_judge_srq(const struct model *m, const struct step *s, struct verdict *v)
{
	const uint32_t *a = s->a;
	const struct m_srq *srq = &m->srq[a[0] % SRQS];
	struct m_wqe w;

	v->n = 1;
	v->ret[0] = 0;
	v->skip = a[0] >= SRQS || srq->live == (s->op == OP_SRQ_CREATE);
	if (v->skip)
		return;
	switch (s->op) {
	case OP_SRQ_CREATE:
		v->skip = a[1] >= PDS || !m->pd[a[1]].live || a[2] > MAX_QUEUE || a[3] > MAX_SGE;
		if (a[2] == 0 || a[4] > a[2])
			v->ret[0] = -EINVAL;
		return;
	case OP_SRQ_DESTROY:
		if (srq->refs != 0)
			v->ret[0] = -EBUSY;
		return;
	case OP_SRQ_MODIFY:
		if (a[1] > srq->depth)
			v->ret[0] = -EINVAL;
		return;
	case OP_SRQ_RING:
		v->skip = waiting_for(m, a[0]) > 1;
		return;
	default:
		v->skip = !model_wqe_of(m, s, &w) || model_entangled(&w);
		v->n = 0;
		if (!model_request_ok(&w)) {
			v->ret[v->n++] = -EINVAL;
			return;
		}
		/* A queue may have higher limits than requested. */
		if (a[A_N] > srq->max_sge)
			v->ret[v->n++] = -EINVAL;
		v->ret[v->n++] = srq->outstanding < srq->depth ? 0 : -EAGAIN;
		return;
	}
}

void
model_srq_step(struct model *m, const struct step *s, int ret)
{
	const uint32_t *a = s->a;
	struct m_srq *srq = &m->srq[a[0]];
	struct m_wqe *w;

	switch (s->op) {
	case OP_SRQ_CREATE:
		*srq = (struct m_srq){
			.live = true, .pd = a[1], .depth = a[2], .max_sge = a[3], .limit = a[4]};
		m->pd[a[1]].refs++;
		return;
	case OP_SRQ_DESTROY:
		srq->live = false;
		m->pd[srq->pd].refs--;
		return;
	case OP_SRQ_MODIFY:
		srq->limit = a[1];
		return;
	case OP_SRQ_RING:
		srq->q.rung = srq->q.posted;
		return;
	default:
		if (ret != 0)
			return;
		w = &srq->q.wqe[srq->q.posted++ % MAX_QUEUE];
		(void)model_wqe_of(m, s, w);
		w->wr_id = ++m->next_wr << 1 | 1;
		srq->outstanding++;
		return;
	}
}
