/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The model's data path: connections as in IBTA vol. 1, chapter 9, at the level of messages. A
 * request runs to its end or waits for a receive forever; all other timers expire at once.
 *
 * Order of checks where the specification leaves it open: the request's own keys, the target's
 * state, its rights, the remote key, the receive.
 */
#include <string.h>

#include "diff.h"

void
model_due(struct m_fifo *f, const struct m_wc *wc)
{
	f->wc[f->tail++ % FIFO] = *wc;
}

static uint8_t
wc_opcode(uint32_t op)
{
	switch (op) {
	case OP_WRITE:
	case OP_WRITE_IMM:
	case OP_WRITE_INLINE:
	case OP_WRITE_IMM_INLINE:
		return BB_WC_RDMA_WRITE;
	case OP_READ:
		return BB_WC_RDMA_READ;
	case OP_CMP_SWAP:
	case OP_MASKED_CMP_SWAP:
		return BB_WC_CMP_SWAP;
	case OP_FETCH_ADD:
	case OP_MASKED_FETCH_ADD:
		return BB_WC_FETCH_ADD;
	case OP_NOP:
		return BB_WC_NOP;
	case OP_BIND:
		return BB_WC_BIND_MW;
	case OP_MKEY_LIST:
	case OP_MKEY_INTERLEAVED:
		return BB_WC_MKEY;
	case OP_LOCAL_INV:
		return BB_WC_LOCAL_INV;
	default:
		return BB_WC_SEND;
	}
}

static bool
is_send(uint32_t op)
{
	return wc_opcode(op) == BB_WC_SEND;
}

bool
model_has_imm(uint32_t op)
{
	return op == OP_WRITE_IMM || op == OP_WRITE_IMM_INLINE || op == OP_SEND_IMM ||
	       op == OP_SEND_IMM_INLINE || op == OP_SEND_UD_IMM || op == OP_SEND_UD_IMM_INLINE;
}

bool
model_is_ud(uint32_t op)
{
	return op >= OP_SEND_UD && op <= OP_SEND_UD_IMM_INLINE;
}

bool
model_takes_receive(uint32_t op)
{
	return is_send(op) || op == OP_WRITE_IMM || op == OP_WRITE_IMM_INLINE;
}

/*
 * To ERR: all requests that the device knows are flushed; of an SRQ, the receive that the QP has
 * taken.
 */
void
model_fail_qp(struct model *m, struct m_qp *qp)
{
	struct m_wc wc = {.status = BB_WC_WR_FLUSH_ERR};
	bool first = qp->state != BB_QP_ERR;

	qp->state = BB_QP_ERR;
	for (; qp->sq.done != qp->sq.rung; qp->sq.done++) {
		const struct m_wqe *w = &qp->sq.wqe[qp->sq.done % MAX_QUEUE];

		model_mw_failed(m, w);
		wc.wr_id = w->wr_id;
		model_due(&qp->sends, &wc);
		qp->errors++;
	}
	while (qp->rq.done != qp->rq.rung || qp->holds)
		model_recv_due(m, qp, &wc);
	if (first && qp->srq != 0)
		model_event(m, BB_EVENT_SRQ_LAST_WQE, (uint32_t)(qp - m->qp));
}

/* Fails the request at the head with @status. */
static void
fail_send(struct model *m, struct m_qp *qp, uint8_t status)
{
	const struct m_wqe *w = &qp->sq.wqe[qp->sq.done++ % MAX_QUEUE];
	struct m_wc wc = {.wr_id = w->wr_id, .status = status};

	model_mw_failed(m, w);
	model_due(&qp->sends, &wc);
	qp->errors++;
	model_fail_qp(m, qp);
}

static void
finish_send(struct m_qp *qp, const struct m_wqe *w)
{
	struct m_wc wc = {.wr_id = w->wr_id, .opcode = wc_opcode(w->op), .len = w->len};

	wc.has_len = wc.opcode == BB_WC_RDMA_READ || wc.opcode == BB_WC_CMP_SWAP ||
		     wc.opcode == BB_WC_FETCH_ADD;
	qp->sq.done++;
	if (w->flags & BB_SEND_SIGNALED || qp->signal_all) {
		model_due(&qp->sends, &wc);
		qp->quiet = 0;
	} else {
		qp->quiet++;
	}
}

static bool
takes_in(uint32_t op)
{
	return op == OP_READ || model_is_atomic(op);
}

/* Maps the request's own pieces. */
static bool
local_map(const struct model *m, const struct m_qp *qp, const struct m_wqe *w, struct m_places *to)
{
	return model_map_list(m, qp->pd, qp, w->sge, w->n, w->len,
			      takes_in(w->op) ? BB_ACCESS_LOCAL_WRITE : 0, to);
}

static bool
remote_map(const struct model *m, const struct m_qp *p, const struct m_wqe *w, uint32_t right,
	   struct m_places *to)
{
	const struct m_sge g = {w->rkey, w->rgen, w->rbuf, w->roff, w->len};

	to->n = 0;
	/* The key of a message without payload is not checked (9.7.4.1.4). */
	return w->len == 0 || model_map(m, p->pd, p, &g, right, to);
}

/* A rejected request raises an event at the target, too; UC reports nothing. */
static enum answer
refuse(struct model *m, const struct m_qp *p, enum answer why)
{
	if (p->type == BB_QPT_RC)
		model_event(m, why == ACCESS ? BB_EVENT_QP_ACCESS : BB_EVENT_QP_REQUEST,
			    (uint32_t)(p - m->qp));
	return why;
}

/* Takes a receive for a message and, with @data, scatters the data into its buffers. */
static enum answer
receive(struct model *m, struct m_qp *p, const struct m_wqe *r, const struct m_wqe *w,
	const struct m_places *own, const uint8_t *data)
{
	struct m_wc wc = {.has_len = true, .len = w->len};
	struct m_places to = {0};
	uint8_t status = data != NULL ? model_recv_map(m, p, r, w->len, &to) : BB_WC_SUCCESS;
	bool inv = w->op == OP_SEND_INV || w->op == OP_SEND_INV_INLINE;

	/*
	 * A message too long for the receive is dropped, and the receive stays: class D, 9.9.3.
	 */
	if (status == BB_WC_LOC_LEN_ERR && p->type == BB_QPT_UC)
		return NOT_NOW;
	/* Class J; rxe reports it at its own side, too. */
	if (status == BB_WC_SUCCESS && inv && !model_remote_inv(m, p, w))
		status = BB_WC_REM_INV_REQ_ERR;
	if (status != BB_WC_SUCCESS) {
		wc.status = status;
		model_recv_due(m, p, &wc);
		return status == BB_WC_LOC_LEN_ERR ? INVALID : OPERATION;
	}
	model_clash(m, own, &to);
	model_put(m, &to, data);
	if (inv) {
		wc.flags |= BB_WC_WITH_INV;
		wc.imm = w->rkey;
	}
	wc.opcode = data != NULL ? BB_WC_RECV : BB_WC_RECV_RDMA_IMM;
	if (model_has_imm(w->op)) {
		wc.flags |= BB_WC_WITH_IMM;
		wc.imm = w->imm;
	}
	if (w->flags & BB_SEND_SOLICITED)
		wc.flags |= BB_WC_SOLICITED;
	model_recv_due(m, p, &wc);
	return DONE;
}

static enum answer
respond_write(struct model *m, struct m_qp *p, const struct m_wqe *w, const struct m_places *own,
	      const uint8_t *data)
{
	const struct m_wqe *r = NULL;
	struct m_places to;

	if (!(p->access & BB_ACCESS_REMOTE_WRITE))
		return refuse(m, p, INVALID);
	if (!remote_map(m, p, w, BB_ACCESS_REMOTE_WRITE, &to))
		return refuse(m, p, ACCESS);
	if (model_has_imm(w->op) && !model_has_recvs(p))
		return refuse(m, p, INVALID);
	if (model_has_imm(w->op)) {
		r = model_recv_next(m, p);
		if (r == NULL)
			return NOT_NOW;
	}
	model_clash(m, own, &to);
	model_put(m, &to, data);
	return r != NULL ? receive(m, p, r, w, own, NULL) : DONE;
}

static enum answer
respond_atomic(struct model *m, struct m_qp *p, const struct m_wqe *w, const struct m_places *own)
{
	struct m_places at;
	uint8_t result[8];

	if (!(p->access & BB_ACCESS_REMOTE_ATOMIC))
		return refuse(m, p, INVALID);
	if (!remote_map(m, p, w, BB_ACCESS_REMOTE_ATOMIC, &at))
		return refuse(m, p, ACCESS);
	/* Memory that is unaligned or in two pieces (bb_mr_reg_dm(); 9.4.5). */
	if (at.n != 1 || at.p[0].at % w->len != 0)
		return refuse(m, p, INVALID);
	model_clash(m, own, &at);
	model_atomic(m, w, &m->mem[at.p[0].at], result);
	model_put(m, own, result);
	return DONE;
}

static enum answer
respond_read(struct model *m, const struct m_qp *p, const struct m_wqe *w,
	     const struct m_places *own)
{
	static uint8_t data[MAX_SGE * BUF_LEN];
	struct m_places from;

	if (!(p->access & BB_ACCESS_REMOTE_READ))
		return refuse(m, p, INVALID);
	if (!remote_map(m, p, w, BB_ACCESS_REMOTE_READ, &from))
		return refuse(m, p, ACCESS);
	model_clash(m, own, &from);
	model_get(m, &from, data);
	model_put(m, own, data);
	return DONE;
}

/* Executes the request at the target. @own: its pieces at the requester. */
static enum answer
respond(struct model *m, struct m_qp *p, const struct m_wqe *w, const struct m_places *own)
{
	static uint8_t data[MAX_SGE * BUF_LEN];
	const struct m_wqe *r;

	if (w->op == OP_READ)
		return respond_read(m, p, w, own);
	if (model_is_atomic(w->op))
		return respond_atomic(m, p, w, own);
	if (w->is_inline)
		memcpy(data, w->data, w->len);
	else
		model_get(m, own, data);
	if (wc_opcode(w->op) == BB_WC_RDMA_WRITE)
		return respond_write(m, p, w, own, data);
	if (!model_has_recvs(p))
		return refuse(m, p, INVALID);
	r = model_recv_next(m, p);
	return r == NULL ? NOT_NOW : receive(m, p, r, w, own, data);
}

/* Returns the QP that answers @qp: one that is connected to it and may receive. */
static struct m_qp *
target(struct model *m, const struct m_qp *qp)
{
	uint32_t self = (uint32_t)(qp - m->qp);
	struct m_qp *p = qp->peer < QPS ? &m->qp[qp->peer] : NULL;

	if (p == NULL || !p->live || p->gen != qp->peer_gen || p->peer != self ||
	    p->peer_gen != qp->gen || p->type != qp->type ||
	    (p->state != BB_QP_RTR && p->state != BB_QP_RTS))
		return NULL;
	if (p->state == BB_QP_RTR && !p->comm_est) {
		p->comm_est = true;
		model_event(m, BB_EVENT_QP_COMM_EST, qp->peer);
	}
	return p;
}

/* No QP answers: the request is done, unless its own QP was the target and failed. */
static void
gone(struct m_qp *qp, const struct m_wqe *w)
{
	if (qp->state == BB_QP_RTS)
		finish_send(qp, w);
}

/*
 * UC: an invalid message is dropped and the next one is accepted, whatever its PSN (IBTA vol. 1,
 * 9.8.2.2 and 9.9.3). Only a receive that cannot be written fails (class C).
 */
static void
run_uc(struct model *m, struct m_qp *qp, const struct m_wqe *w, const struct m_places *own)
{
	struct m_qp *p = target(m, qp);

	if (p != NULL && respond(m, p, w, own) == OPERATION)
		model_fail_qp(m, p);
	gone(qp, w);
}

/* Executes one request. Returns false if none could move. */
static bool
run_one(struct model *m, struct m_qp *qp)
{
	struct m_wqe w = qp->sq.wqe[qp->sq.done % MAX_QUEUE];
	uint32_t packets = w.len == 0 ? 1 : (w.len + MTU - 1) / MTU;
	struct m_places own;
	struct m_qp *p;

	if (model_is_ud(w.op) && w.len > m->world->ud_mtu) {
		fail_send(m, qp, BB_WC_LOC_LEN_ERR);
		return true;
	}
	if (!local_map(m, qp, &w, &own)) {
		fail_send(m, qp, BB_WC_LOC_PROT_ERR);
		return true;
	}
	if (w.op == OP_BIND || w.op == OP_LOCAL_INV || model_is_layout(w.op)) {
		uint8_t status = model_mw_run(m, qp, &w);

		if (status != BB_WC_SUCCESS)
			fail_send(m, qp, status);
		else
			finish_send(qp, &w);
		return true;
	}
	if (w.op == OP_NOP) {
		finish_send(qp, &w);
		return true;
	}
	if (qp->type != BB_QPT_RC) {
		if (qp->type == BB_QPT_UC) {
			run_uc(m, qp, &w, &own);
		} else {
			model_ud_send(m, qp, &w, &own);
			gone(qp, &w);
		}
		return true;
	}
	p = target(m, qp);
	if (p == NULL) {
		fail_send(m, qp, BB_WC_RETRY_EXC_ERR);
		return true;
	}
	/* The PSN is after the expected PSN. An earlier PSN does not occur here. */
	if (qp->sq_psn != p->epsn) {
		fail_send(m, qp, BB_WC_RETRY_EXC_ERR);
		return true;
	}
	switch (respond(m, p, &w, &own)) {
	case DONE:
		qp->sq_psn = (qp->sq_psn + packets) & 0xffffff;
		p->epsn = (p->epsn + packets) & 0xffffff;
		finish_send(qp, &w);
		return true;
	case NOT_NOW:
		if (qp->rnr_retry == 7)
			return false;
		fail_send(m, qp, BB_WC_RNR_RETRY_EXC_ERR);
		return true;
	case INVALID:
		fail_send(m, qp, BB_WC_REM_INV_REQ_ERR);
		break;
	case ACCESS:
		fail_send(m, qp, BB_WC_REM_ACCESS_ERR);
		break;
	default:
		fail_send(m, qp, BB_WC_REM_OP_ERR);
		break;
	}
	model_fail_qp(m, p);
	return true;
}

void
model_run(struct model *m)
{
	bool moved;

	m->blur = false;
	m->receivers = 0;
	for (uint32_t i = 0; i < QPS; i++)
		m->qp[i].quiet = 0;
	do {
		moved = false;
		for (uint32_t i = 0; i < QPS; i++) {
			struct m_qp *qp = &m->qp[i];

			while (qp->live && qp->state == BB_QP_RTS && qp->sq.done != qp->sq.rung &&
			       run_one(m, qp))
				moved = true;
		}
	} while (moved);
}
