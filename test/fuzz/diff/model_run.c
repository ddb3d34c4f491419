/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The model's data path: connections as IBTA vol. 1, chapter 9 has them, at the level of
 * messages. A request runs to its end or waits for a receive for ever; all
 * other timers run out at once.
 *
 * Order of checks where the specification leaves it open: a request's own keys first,
 * then the target's state, its rights, the remote key, the receive.
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

/* To ERR: everything that the device knows of is flushed. */
void
model_fail_qp(struct m_qp *qp)
{
	struct m_wc wc = {.status = BB_WC_WR_FLUSH_ERR};

	qp->state = BB_QP_ERR;
	for (; qp->sq.done != qp->sq.rung; qp->sq.done++) {
		wc.wr_id = qp->sq.wqe[qp->sq.done % MAX_QUEUE].wr_id;
		model_due(&qp->sends, &wc);
		qp->errors++;
	}
	for (; qp->rq.done != qp->rq.rung; qp->rq.done++) {
		wc.wr_id = qp->rq.wqe[qp->rq.done % MAX_QUEUE].wr_id;
		model_due(&qp->recvs, &wc);
		qp->errors++;
	}
}

/* The request at the head fails with @status. */
static void
fail_send(struct m_qp *qp, uint8_t status)
{
	struct m_wc wc = {.status = status};

	wc.wr_id = qp->sq.wqe[qp->sq.done++ % MAX_QUEUE].wr_id;
	model_due(&qp->sends, &wc);
	qp->errors++;
	model_fail_qp(qp);
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

bool
model_key_allows(const struct model *m, uint32_t key, uint32_t gen, uint32_t pd, uint32_t buf,
		 uint32_t off, uint32_t len, uint32_t right)
{
	const struct m_mr *mr;

	if (key >= MRS)
		return false;
	mr = &m->mr[key];
	return mr->live && mr->gen == gen && mr->pd == pd && (mr->access & right) == right &&
	       mr->buf == buf && off >= mr->off && len <= mr->len && off - mr->off <= mr->len - len;
}

static bool
local_ok(const struct model *m, const struct m_qp *qp, const struct m_wqe *w)
{
	bool in = w->op == OP_READ || model_is_atomic(w->op);
	uint32_t i;

	for (i = 0; i < w->n; i++) {
		const struct m_sge *g = &w->sge[i];

		/* Pieces without a byte are no pieces. */
		if (g->len != 0 && !model_key_allows(m, g->key, g->gen, qp->pd, g->buf, g->off,
						     g->len, in ? BB_ACCESS_LOCAL_WRITE : 0))
			return false;
	}
	return true;
}

void
model_gather_sges(const struct model *m, const struct m_sge *sge, uint32_t n, uint8_t *to,
		  uint32_t left)
{
	uint32_t i;

	for (i = 0; i < n && left != 0; i++) {
		uint32_t len = sge[i].len < left ? sge[i].len : left;

		memcpy(to, &m->mem[ARENA_OF(sge[i].buf, sge[i].off)], len);
		to += len;
		left -= len;
	}
}

void
model_gather(const struct model *m, const struct m_wqe *w, uint8_t *to)
{
	if (w->is_inline)
		memcpy(to, w->data, w->len);
	else
		model_gather_sges(m, w->sge, w->n, to, w->len);
}

void
model_scatter(struct model *m, const struct m_sge *sge, uint32_t n, const uint8_t *from,
	      uint32_t left)
{
	uint32_t i;

	for (i = 0; i < n && left != 0; i++) {
		uint32_t len = sge[i].len < left ? sge[i].len : left;

		memcpy(&m->mem[ARENA_OF(sge[i].buf, sge[i].off)], from, len);
		from += len;
		left -= len;
	}
}

uint8_t
model_recv_status(const struct model *m, const struct m_qp *p, const struct m_wqe *r, uint32_t len)
{
	uint32_t i;

	/* Pieces that get nothing are not looked at. */
	for (i = 0; i < r->n && len != 0; i++) {
		const struct m_sge *g = &r->sge[i];
		uint32_t part = g->len < len ? g->len : len;

		if (part != 0 && !model_key_allows(m, g->key, g->gen, p->pd, g->buf, g->off, part,
						   BB_ACCESS_LOCAL_WRITE))
			return BB_WC_LOC_PROT_ERR;
		len -= part;
	}
	return len != 0 ? BB_WC_LOC_LEN_ERR : BB_WC_SUCCESS;
}

/* The receive at the head fails. */
void
model_recv_fail(struct m_qp *p, uint8_t status)
{
	struct m_wc wc = {.wr_id = p->rq.wqe[p->rq.done % MAX_QUEUE].wr_id, .status = status};

	p->rq.done++;
	model_due(&p->recvs, &wc);
	p->errors++;
}

/* Take a receive for a message. With @data it is scattered into its buffers. */
static enum answer
receive(struct model *m, struct m_qp *p, const struct m_wqe *w, const uint8_t *data)
{
	const struct m_wqe *r = &p->rq.wqe[p->rq.done % MAX_QUEUE];
	struct m_wc wc = {.wr_id = r->wr_id, .has_len = true, .len = w->len};
	uint8_t status = data != NULL ? model_recv_status(m, p, r, w->len) : BB_WC_SUCCESS;

	/* A message too long for it is dropped, and the receive stays: class D, 9.9.3. */
	if (status == BB_WC_LOC_LEN_ERR && p->type == BB_QPT_UC)
		return NOT_NOW;
	if (status != BB_WC_SUCCESS) {
		model_recv_fail(p, status);
		return status == BB_WC_LOC_LEN_ERR ? INVALID : OPERATION;
	}
	p->rq.done++;
	if (data != NULL)
		model_scatter(m, r->sge, r->n, data, w->len);
	wc.opcode = data != NULL ? BB_WC_RECV : BB_WC_RECV_RDMA_IMM;
	if (model_has_imm(w->op)) {
		wc.flags |= BB_WC_WITH_IMM;
		wc.imm = w->imm;
	}
	if (w->flags & BB_SEND_SOLICITED)
		wc.flags |= BB_WC_SOLICITED;
	model_due(&p->recvs, &wc);
	return DONE;
}

static enum answer
respond_write(struct model *m, struct m_qp *p, const struct m_wqe *w, const uint8_t *data)
{
	if (!(p->access & BB_ACCESS_REMOTE_WRITE))
		return INVALID;
	if (w->len != 0 && !model_key_allows(m, w->rkey, w->rgen, p->pd, w->rbuf, w->roff, w->len,
					     BB_ACCESS_REMOTE_WRITE))
		return ACCESS;
	if (model_has_imm(w->op) && p->rq_depth == 0)
		return INVALID;
	if (model_has_imm(w->op) && p->rq.done == p->rq.rung)
		return NOT_NOW;
	memcpy(&m->mem[ARENA_OF(w->rbuf, w->roff)], data, w->len);
	return model_has_imm(w->op) ? receive(m, p, w, NULL) : DONE;
}

static enum answer
respond_atomic(struct model *m, struct m_qp *p, const struct m_wqe *w)
{
	uint8_t result[8];

	if (!(p->access & BB_ACCESS_REMOTE_ATOMIC))
		return INVALID;
	if (!model_key_allows(m, w->rkey, w->rgen, p->pd, w->rbuf, w->roff, w->len,
			      BB_ACCESS_REMOTE_ATOMIC))
		return ACCESS;
	model_atomic(m, w, &m->mem[ARENA_OF(w->rbuf, w->roff)], result);
	model_scatter(m, w->sge, 1, result, w->len);
	return DONE;
}

static enum answer
respond(struct model *m, struct m_qp *p, const struct m_wqe *w)
{
	static uint8_t data[MAX_SGE * BUF_LEN];

	model_gather(m, w, data);
	if (is_send(w->op)) {
		if (p->rq_depth == 0)
			return INVALID;
		return p->rq.done == p->rq.rung ? NOT_NOW : receive(m, p, w, data);
	}
	if (wc_opcode(w->op) == BB_WC_RDMA_WRITE)
		return respond_write(m, p, w, data);
	if (w->op != OP_READ)
		return respond_atomic(m, p, w);
	if (!(p->access & BB_ACCESS_REMOTE_READ))
		return INVALID;
	if (w->len != 0 && !model_key_allows(m, w->rkey, w->rgen, p->pd, w->rbuf, w->roff, w->len,
					     BB_ACCESS_REMOTE_READ))
		return ACCESS;
	model_scatter(m, w->sge, w->n, &m->mem[ARENA_OF(w->rbuf, w->roff)], w->len);
	return DONE;
}

/* Who answers to @qp: a QP that is connected to it and may receive. */
static struct m_qp *
target(struct model *m, const struct m_qp *qp)
{
	uint32_t self = (uint32_t)(qp - m->qp);
	struct m_qp *p = qp->peer < QPS ? &m->qp[qp->peer] : NULL;

	if (p == NULL || !p->live || p->gen != qp->peer_gen || p->peer != self ||
	    p->peer_gen != qp->gen || p->type != qp->type ||
	    (p->state != BB_QP_RTR && p->state != BB_QP_RTS))
		return NULL;
	return p;
}

/* Nobody answers: it is done, unless it was for the QP itself, which failed by it. */
static void
gone(struct m_qp *qp, const struct m_wqe *w)
{
	if (qp->state == BB_QP_RTS)
		finish_send(qp, w);
}

/*
 * UC: what is wrong with a message drops it, and the next one is taken, whatever its PSN (IBTA
 * vol. 1, 9.8.2.2 and 9.9.3). Only a receive that cannot be written fails (class C).
 */
static void
run_uc(struct model *m, struct m_qp *qp, const struct m_wqe *w)
{
	struct m_qp *p = target(m, qp);

	if (p != NULL && respond(m, p, w) == OPERATION)
		model_fail_qp(p);
	gone(qp, w);
}

/* One request. False: nothing moved. */
static bool
run_one(struct model *m, struct m_qp *qp)
{
	struct m_wqe w = qp->sq.wqe[qp->sq.done % MAX_QUEUE];
	uint32_t packets = w.len == 0 ? 1 : (w.len + MTU - 1) / MTU;
	struct m_qp *p;

	if (model_is_ud(w.op) && w.len > m->world->ud_mtu) {
		fail_send(qp, BB_WC_LOC_LEN_ERR);
		return true;
	}
	if (!local_ok(m, qp, &w)) {
		fail_send(qp, BB_WC_LOC_PROT_ERR);
		return true;
	}
	if (w.op == OP_NOP) {
		finish_send(qp, &w);
		return true;
	}
	if (qp->type != BB_QPT_RC) {
		if (qp->type == BB_QPT_UC) {
			run_uc(m, qp, &w);
		} else {
			model_ud_send(m, qp, &w);
			gone(qp, &w);
		}
		return true;
	}
	p = target(m, qp);
	if (p == NULL) {
		fail_send(qp, BB_WC_RETRY_EXC_ERR);
		return true;
	}
	/* Ahead of what the peer expects. Behind it does not happen here. */
	if (qp->sq_psn != p->epsn) {
		fail_send(qp, BB_WC_RETRY_EXC_ERR);
		return true;
	}
	switch (respond(m, p, &w)) {
	case DONE:
		qp->sq_psn = (qp->sq_psn + packets) & 0xffffff;
		p->epsn = (p->epsn + packets) & 0xffffff;
		finish_send(qp, &w);
		return true;
	case NOT_NOW:
		if (qp->rnr_retry == 7)
			return false;
		fail_send(qp, BB_WC_RNR_RETRY_EXC_ERR);
		return true;
	case INVALID:
		fail_send(qp, BB_WC_REM_INV_REQ_ERR);
		break;
	case ACCESS:
		fail_send(qp, BB_WC_REM_ACCESS_ERR);
		break;
	default:
		fail_send(qp, BB_WC_REM_OP_ERR);
		break;
	}
	model_fail_qp(p);
	return true;
}

void
model_run(struct model *m)
{
	bool moved;
	uint32_t i;

	m->blur = false;
	m->receivers = 0;
	for (i = 0; i < QPS; i++)
		m->qp[i].quiet = 0;
	do {
		moved = false;
		for (i = 0; i < QPS; i++) {
			struct m_qp *qp = &m->qp[i];

			while (qp->live && qp->state == BB_QP_RTS && qp->sq.done != qp->sq.rung &&
			       run_one(m, qp))
				moved = true;
		}
	} while (moved);
}
