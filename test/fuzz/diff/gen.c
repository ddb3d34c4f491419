/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Random steps, most of them legal in the model's state. Coverage needs connected queue pairs, so
 * missing objects are created first. About one step in ten is unusual.
 */
#include <string.h>

#include "gen.h"

uint32_t
rng_below(struct rng *r, uint32_t n)
{
	r->s = r->s * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((r->s >> 33) % n);
}

static struct need
need_of(const struct m_qp *qp, uint32_t rights, bool recv)
{
	/* A remote right of the region is needed for the peer. */
	return (struct need){.pd = qp->pd,
			     .rights = rights,
			     .recv = recv,
			     .remote = (rights & ~(uint32_t)BB_ACCESS_LOCAL_WRITE) != 0};
}

/* Each returns false if it lacks a region. */
static bool
gen_list(struct rng *r, const struct model *m, const struct m_qp *qp, struct step *s)
{
	uint32_t n = odd(r, 3) ? rng_below(r, MAX_SGE + 1) : 1, i, total = 0, len;
	uint32_t *a = s->a, most = s->op == OP_RECV ? qp->max_recv_sge : qp->max_sge;
	const struct m_qp *peer = qp->peer < QPS ? &m->qp[qp->peer] : qp;
	bool recv = s->op == OP_RECV;
	struct need mine = need_of(qp, recv || s->op == OP_READ ? BB_ACCESS_LOCAL_WRITE : 0, recv);
	struct need its = need_of(
		peer, s->op == OP_READ ? BB_ACCESS_REMOTE_READ : BB_ACCESS_REMOTE_WRITE, false);

	if (n > most && !odd(r, 20))
		n = most;
	a[A_N] = odd(r, 100) ? MAX_SGE + 1 : n;
	for (i = 0; i < n; i++) {
		uint32_t *p = &a[A_SGE + 4 * i];

		len = gen_len(r);
		if (n > 1 || (odd(r, 2) && !recv))
			len %= 600;
		if (recv && !odd(r, 4))
			len = BUF_LEN;
		gen_range(r, m, &mine, &len, &p[0], &p[1], &p[2]);
		p[3] = odd(r, 150) ? 0x80000001u : len;
		total += len;
	}
	if (recv)
		return !mine.missing;
	if (model_has_imm(s->op))
		a[A_IMM] = rng_below(r, 1 << 30);
	if (s->op == OP_SEND_INV)
		a[A_RKEY] = gen_window(r, m, peer);
	if (s->op == OP_SEND || s->op == OP_SEND_IMM || s->op == OP_SEND_INV || model_is_ud(s->op))
		return !mine.missing;
	gen_range(r, m, &its, &total, &a[A_RKEY], &a[A_RBUF], &a[A_ROFF]);
	return !mine.missing && !its.missing;
}

static bool
gen_inline(struct rng *r, const struct model *m, const struct m_qp *qp, struct step *s)
{
	const struct m_qp *peer = qp->peer < QPS ? &m->qp[qp->peer] : qp;
	struct need its = need_of(peer, BB_ACCESS_REMOTE_WRITE, false);
	uint32_t *a = s->a;

	a[I_LEN] = gen_len(r) % (MAX_INLINE + 1);
	if (a[I_LEN] > qp->max_inline && !odd(r, 20))
		a[I_LEN] = qp->max_inline;
	a[I_SEED] = 1 + rng_below(r, 255);
	if (s->op == OP_SEND_INV_INLINE)
		a[I_RKEY] = gen_window(r, m, peer);
	if (model_has_imm(s->op))
		a[I_IMM] = rng_below(r, 1 << 30);
	if (s->op == OP_WRITE_INLINE || s->op == OP_WRITE_IMM_INLINE)
		gen_range(r, m, &its, &a[I_LEN], &a[I_RKEY], &a[I_RBUF], &a[I_ROFF]);
	return !its.missing;
}

static bool
gen_atomic(struct rng *r, const struct model *m, const struct m_qp *qp, struct step *s)
{
	const struct m_qp *peer = qp->peer < QPS ? &m->qp[qp->peer] : qp;
	struct need mine = need_of(qp, BB_ACCESS_LOCAL_WRITE, false);
	struct need its = need_of(peer, BB_ACCESS_REMOTE_ATOMIC, false);
	uint32_t *a = s->a, size = model_is_masked(s->op) && odd(r, 2) ? 4 : 8, len = size;
	uint64_t now;

	gen_range(r, m, &mine, &len, &a[AT_SGE], &a[AT_SGE + 1], &a[AT_SGE + 2]);
	a[AT_SGE + 3] = odd(r, 50) ? gen_len(r) : size;
	gen_range(r, m, &its, &len, &a[AT_RKEY], &a[AT_RBUF], &a[AT_ROFF]);
	if (!odd(r, 40))
		a[AT_ROFF] &= ~(size - 1);
	a[AT_X] = 1 + rng_below(r, 100);
	a[AT_Y] = rng_below(r, 100);
	/* A comparison that can succeed: 32 bits of the present value. */
	memcpy(&now, &m->mem[ARENA_OF(a[AT_RBUF] % BUFS, a[AT_ROFF] % BUF_LEN)], sizeof(now));
	if (s->op == OP_CMP_SWAP && odd(r, 2))
		a[AT_X] = (uint32_t)now;
	if (!model_is_masked(s->op))
		return !mine.missing && !its.missing;
	a[AT_X] = odd(r, 2) ? (uint32_t)now : rng_below(r, UINT32_MAX);
	a[AT_Y] = rng_below(r, UINT32_MAX);
	a[AT_X_MASK] = PICK(r, 0, 0xff, 0xffff, 0x80008080, 0xffffffff, 0x8421);
	a[AT_Y_MASK] = PICK(r, 0, 0xf0, 0xffff, 0xffffffff, 0xff00ff00, 1);
	return !mine.missing && !its.missing;
}

/* The receiver's Q_Key, or the sender's own; rarely another one. */
static bool
gen_datagram(struct rng *r, const struct model *m, const struct m_qp *qp, struct step *s)
{
	bool in = s->op == OP_SEND_UD_INLINE || s->op == OP_SEND_UD_IMM_INLINE;
	uint32_t *a = s->a, *way = &a[in ? I_RKEY : A_RKEY], self = (uint32_t)(qp - m->qp), i;
	const struct m_qp *p;
	bool ok = in ? gen_inline(r, m, qp, s) : gen_list(r, m, qp, s);

	way[1] = odd(r, 8) ? rng_below(r, QPS) : self ^ 1;
	p = &m->qp[way[1]];
	way[0] = rng_below(r, AHS);
	for (i = 0; i < AHS; i++) {
		const struct m_ah *ah = &m->ah[(way[0] + i) % AHS];

		if (ah->live && ah->pd == qp->pd && ah->dev == p->pd % m->devs)
			break;
	}
	if (i == AHS)
		return false;
	if (!odd(r, 12))
		way[0] = (way[0] + i) % AHS;
	way[2] = odd(r, 12) ? rng_below(r, 4) : p->qkey;
	if (odd(r, 8))
		way[2] = 0x80000000u | rng_below(r, 4);
	return ok;
}

/* Creates an address handle for the next try. */
static void
gen_ah(struct rng *r, const struct model *m, const struct m_qp *qp, struct step *s)
{
	uint32_t slot = rng_below(r, AHS), i;

	for (i = 0; i < AHS && m->ah[slot].live; i++)
		slot = (slot + 1) % AHS;
	*s = (struct step){.op = m->ah[slot].live ? OP_AH_DESTROY : OP_AH_CREATE, .a = {slot}};
	if (s->op == OP_AH_DESTROY)
		return;
	s->a[1] = odd(r, 12) ? rng_below(r, PDS) : qp->pd;
	s->a[2] = rng_below(r, m->devs);
	s->a[3] = odd(r, 30) ? GIDS : rng_below(r, GIDS);
	s->a[4] = odd(r, 2) ? 0 : rng_below(r, 256);
	s->a[5] = odd(r, 2) ? 0 : rng_below(r, odd(r, 15) ? 1u << 21 : 1u << 20);
	s->a[6] = odd(r, 2) ? 0 : 1 + rng_below(r, 255);
}

/* Returns an operation that mostly is legal for the type. */
static uint32_t
some_op(struct rng *r, uint32_t type)
{
	bool any = odd(r, 25);

	if (type == BB_QPT_UD && !any)
		return odd(r, 10)
			       ? (uint32_t)OP_NOP
			       : OP_SEND_UD + rng_below(r, OP_SEND_UD_IMM_INLINE - OP_SEND_UD + 1);
	if (!any && odd(r, 6))
		return PICK(r, OP_BIND, OP_BIND, OP_MKEY_LIST, OP_MKEY_LIST, OP_LOCAL_INV,
			    OP_SEND_INV, OP_SEND_INV_INLINE);
	if (type == BB_QPT_UC && !any)
		return PICK(r, OP_WRITE, OP_WRITE_IMM, OP_SEND, OP_SEND_IMM, OP_WRITE_INLINE,
			    OP_WRITE_IMM_INLINE, OP_SEND_INLINE, OP_SEND_IMM_INLINE, OP_NOP);
	if (!any && odd(r, 10))
		return odd(r, 2) ? OP_MASKED_CMP_SWAP : OP_MASKED_FETCH_ADD;
	if (any && odd(r, 2))
		return OP_SEND_UD + rng_below(r, OP_SEND_UD_IMM_INLINE - OP_SEND_UD + 1);
	return OP_WRITE + rng_below(r, OP_NOP - OP_WRITE + 1);
}

static bool
gen_lacks_recv(const struct model *m, const struct m_qp *p)
{
	if (p->srq != 0)
		return m->srq[p->srq - 1].q.done == m->srq[p->srq - 1].q.rung;
	return p->rq_depth != 0 && p->rq.done == p->rq.rung;
}

/* A step for SRQ @srq. */
static void
gen_srq(struct rng *r, const struct model *m, uint32_t srq, struct step *s)
{
	uint32_t *a = s->a;

	a[0] = srq;
	if (!m->srq[srq].live) {
		s->op = OP_SRQ_CREATE;
		a[1] = odd(r, 10) ? rng_below(r, PDS) : rng_below(r, 2);
		a[2] = odd(r, 20) ? 0 : 1 + rng_below(r, 8);
		a[3] = rng_below(r, MAX_SGE + 1);
		a[4] = odd(r, 2) ? 0 : rng_below(r, a[2] + 2);
		return;
	}
	s->op = odd(r, 6) ? OP_SRQ_DESTROY : OP_SRQ_MODIFY;
	if (s->op == OP_SRQ_MODIFY)
		a[1] = rng_below(r, m->srq[srq].depth + (odd(r, 6) ? 2 : 1));
}

/* A receive for QP @q, in its SRQ if it has one. */
static bool
gen_recv(struct rng *r, const struct model *m, const struct m_qp *q, struct step *s)
{
	struct m_qp as_qp;

	if (q->srq == 0)
		return gen_list(r, m, q, s);
	as_qp = *q;
	as_qp.pd = m->srq[q->srq - 1].pd;
	as_qp.max_recv_sge = m->srq[q->srq - 1].max_sge;
	if (!gen_list(r, m, &as_qp, s))
		return false;
	s->op = OP_SRQ_RECV;
	s->a[A_QP] = q->srq - 1;
	return true;
}

static void
gen_post(struct rng *r, const struct model *m, uint32_t qp, struct step *s)
{
	const struct m_qp *q = &m->qp[qp];
	const struct m_qp *peer = q->type == BB_QPT_UD ? &m->qp[qp ^ 1]
				  : q->peer < QPS      ? &m->qp[q->peer]
						       : q;
	bool ok = true;

	s->a[A_QP] = qp;
	s->op = odd(r, 4) ? (uint32_t)OP_RECV : some_op(r, q->type);
	/* The peer lacks a receive: post one instead. */
	if (model_takes_receive(s->op) && gen_lacks_recv(m, peer) && !odd(r, 12)) {
		s->op = OP_RECV;
		s->a[A_QP] = (uint32_t)(peer - m->qp);
		q = peer;
		if (q->srq != 0 && m->srq[q->srq - 1].q.posted != m->srq[q->srq - 1].q.rung) {
			*s = (struct step){.op = OP_SRQ_RING, .a = {q->srq - 1}};
			return;
		}
		if (q->rq.posted != q->rq.rung) {
			s->op = OP_RING_RECV;
			return;
		}
	}
	if (s->op != OP_RECV)
		s->a[A_FLAGS] = (odd(r, 3) ? 0 : BB_SEND_SIGNALED) |
				(odd(r, 6) ? BB_SEND_FENCE : 0) |
				(odd(r, 4) ? BB_SEND_SOLICITED : 0);
	/* Rarely without a window to invalidate. */
	if ((s->op == OP_LOCAL_INV && !gen_has_window(m, q) && !odd(r, 12)) ||
	    ((s->op == OP_SEND_INV || s->op == OP_SEND_INV_INLINE) && !gen_has_window(m, peer) &&
	     !odd(r, 12)))
		s->op = OP_BIND;
	else if (s->op == OP_BIND && gen_has_window(m, q) && odd(r, 2))
		s->op = PICK(r, OP_LOCAL_INV, OP_SEND_INV, OP_SEND_INV_INLINE);
	if (s->op == OP_BIND) {
		if (!gen_bind(r, m, qp, s))
			return;
	} else if (s->op == OP_MKEY_LIST) {
		if (!gen_layout(r, m, qp, s)) {
			*s = (struct step){0};
			if (!gen_mkey(r, m, s))
				*s = (struct step){.op = OP_NOP, .a = {qp}};
			return;
		}
	} else if (s->op == OP_LOCAL_INV) {
		s->a[2] = odd(r, 6) ? KEY_MKEY + rng_below(r, MKEYS) : gen_window(r, m, q);
	} else if (model_is_ud(s->op)) {
		if (!gen_datagram(r, m, q, s) && !odd(r, 20)) {
			gen_ah(r, m, q, s);
			return;
		}
	} else if (model_is_inline(s->op))
		ok = gen_inline(r, m, q, s);
	else if (model_is_atomic(s->op))
		ok = gen_atomic(r, m, q, s);
	else if (s->op == OP_RECV)
		ok = gen_recv(r, m, q, s);
	else if (s->op != OP_NOP)
		ok = gen_list(r, m, q, s);
	if (ok && s->op != OP_NOP && s->op != OP_SRQ_RECV && !model_is_layout(s->op) && odd(r, 6))
		s->a[A_FLAGS] |= LISTED;
	if (ok || odd(r, 20))
		return;
	/* Registers a region for the next try, with all rights. */
	memset(s, 0, sizeof(*s));
	s->a[0] = rng_below(r, MRS);
	s->op = m->mr[s->a[0]].live ? OP_MR_DEREG : OP_MR_REG;
	if (s->op == OP_MR_REG)
		*s = (struct step){.op = OP_MR_REG,
				   .a = {s->a[0], odd(r, 2) ? q->pd : peer->pd,
					 rng_below(r, RECV_BUF), 0, BUF_LEN, 15}};
}

/* The next state on the way to RTS; rarely another one. */
static void
gen_modify(struct rng *r, const struct model *m, uint32_t qp, struct step *s)
{
	static const uint32_t next[] = {[BB_QP_RESET] = BB_QP_INIT,
					[BB_QP_INIT] = BB_QP_RTR,
					[BB_QP_RTR] = BB_QP_RTS,
					[BB_QP_RTS] = BB_QP_RTS,
					[BB_QP_ERR] = BB_QP_RESET};
	uint32_t *a = s->a;

	s->op = OP_MODIFY;
	a[0] = qp;
	a[1] = odd(r, 15) ? rng_below(r, BB_QP_ERR + 1) : next[m->qp[qp].state];
	a[2] = odd(r, 12) ? rng_below(r, QPS) : qp ^ 1;
	a[3] = odd(r, 10) ? gen_access(r) : 15;
	a[4] = odd(r, 25) ? 1 + rng_below(r, 6) : 0;
	a[5] = odd(r, 40);
	a[6] = odd(r, 3) ? rng_below(r, 3) : 7;
	a[7] = rng_below(r, 3);
	a[8] = rng_below(r, 3) | (odd(r, 4) ? 0x80000000u : 0);
}

/* At most as many WQEs as the CQ has room for; rarely more. */
static uint32_t
some_depth(struct rng *r, const struct m_cq *cq, uint32_t share)
{
	uint32_t room = cq->live ? (cq->depth - cq->promised) / share : MAX_QUEUE;

	if (room > MAX_QUEUE || odd(r, 20))
		room = MAX_QUEUE;
	return odd(r, 3) ? rng_below(r, room + 1) : room;
}

static void
gen_qp(struct rng *r, const struct model *m, uint32_t qp, struct step *s)
{
	uint32_t *a = s->a, i;

	s->op = OP_QP_CREATE;
	a[0] = qp;
	a[1] = odd(r, 10) ? rng_below(r, PDS) : qp % 2;
	a[2] = odd(r, 10) ? rng_below(r, CQS) : qp % 2;
	a[3] = odd(r, 3) ? rng_below(r, CQS) : a[2];
	a[4] = some_depth(r, &m->cq[a[2]], a[2] == a[3] ? 2 : 1);
	a[5] = some_depth(r, &m->cq[a[3]], a[2] == a[3] ? 2 : 1);
	if (a[4] == 0 && !odd(r, 20))
		a[4] = 1;
	a[6] = odd(r, 3) ? rng_below(r, 2) : MAX_SGE;
	a[7] = odd(r, 3) ? rng_below(r, 2) : MAX_SGE;
	a[8] = PICK(r, 0, 28, 64, 256, 256);
	a[9] = odd(r, 3) ? rng_below(r, a[4] + 2) : 0;
	a[10] = rng_below(r, 2);
	a[11] = odd(r, 6);
	for (i = 0; i < SRQS && odd(r, 3); i++)
		if (m->srq[i].live && (m->srq[i].pd % m->devs == a[1] % m->devs || odd(r, 10)))
			a[13] = i + 1;
	/* Mostly the type of the other QP. */
	a[12] = m->qp[qp ^ 1].live && !odd(r, 20)
			? m->qp[qp ^ 1].type
			: PICK(r, BB_QPT_RC, BB_QPT_RC, BB_QPT_RC, BB_QPT_UC, BB_QPT_UD);
}

/* Creates an object that traffic needs. Returns false if none is missing. */
static bool
gen_missing(struct rng *r, const struct model *m, struct step *s)
{
	for (uint32_t i = 0; i < 2; i++) {
		s->a[0] = i;
		s->op = OP_PD_ALLOC;
		if (!m->pd[i].live)
			return true;
		s->op = OP_CQ_CREATE;
		s->a[1] = PICK(r, 128, 64, 32, 16, 8, 8);
		if (!m->cq[i].live)
			return true;
		s->a[1] = 0;
	}
	/* For each PD: regions to send from, to receive into, and one that lacks rights. */
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t pd = i % 2, k, live = NO_KEY;
		bool recv = i == 2 || i == 3, few = i >= 4;

		for (k = 0; k < MRS; k++)
			if (m->mr[k].live && m->mr[k].pd == pd &&
			    ((m->mr[k].access & 15) != 15) == few && m->mr[k].dm == 0 &&
			    (m->mr[k].buf == RECV_BUF) == recv)
				live = k;
		if (live != NO_KEY)
			continue;
		gen_mr(r, s);
		for (k = 0; k < MRS && m->mr[k].live; k++)
			;
		s->op = k < MRS ? OP_MR_REG : OP_MR_DEREG;
		s->a[0] = k < MRS ? k : rng_below(r, MRS);
		s->a[1] = pd;
		s->a[2] = recv ? RECV_BUF : rng_below(r, RECV_BUF);
		s->a[5] = few ? PICK(r, 0, 1, 4, 3, 5, 7, 9, 13) : odd(r, 2) ? 31 : 15;
		return true;
	}
	memset(s->a, 0, sizeof(s->a));
	for (uint32_t i = 0; i < 2; i++) {
		if (!m->qp[i].live && !m->srq[i].live && odd(r, 3)) {
			gen_srq(r, m, i, s);
			return true;
		}
		if (!m->qp[i].live) {
			gen_qp(r, m, i, s);
			return true;
		}
	}
	return false;
}

static void
gen_other(struct rng *r, const struct model *m, struct step *s)
{
	uint32_t *a = s->a;

	s->op = PICK(r, OP_PD_ALLOC, OP_PD_FREE, OP_MR_REG, OP_MR_REG, OP_MR_REG, OP_MR_REREG,
		     OP_MR_REREG, OP_MR_DEREG, OP_CQ_CREATE, OP_CQ_DESTROY, OP_QP_CREATE,
		     OP_QP_DESTROY, OP_AH_CREATE, OP_AH_DESTROY, OP_MKEY_CREATE, OP_MW_ALLOC,
		     OP_DM_ALLOC, OP_DM_ALLOC, OP_DM_ALLOC, OP_FILL, OP_FILL, OP_FILL, OP_FILL);
	switch (s->op) {
	case OP_MR_REG:
		gen_mr(r, s);
		a[0] = rng_below(r, MRS);
		return;
	case OP_MR_REREG:
		gen_mr(r, s);
		memmove(&a[2], &a[1], 5 * sizeof(a[0]));
		a[0] = rng_below(r, MRS);
		a[1] = odd(r, 8) ? rng_below(r, 9) : 1 + rng_below(r, 7);
		if (!(a[1] & BB_MR_REREG_ACCESS) && !odd(r, 8))
			a[6] = 0;
		return;
	case OP_CQ_CREATE:
		a[0] = rng_below(r, CQS);
		a[1] = odd(r, 20) ? 0 : 1 + rng_below(r, 64);
		return;
	case OP_QP_CREATE:
		gen_qp(r, m, rng_below(r, QPS), s);
		return;
	case OP_MKEY_CREATE:
		(void)gen_mkey(r, m, s);
		return;
	case OP_MW_ALLOC:
		gen_mw(r, m, s);
		return;
	case OP_SRQ_CREATE:
		gen_srq(r, m, rng_below(r, SRQS), s);
		return;
	case OP_DM_ALLOC:
		gen_dm(r, m, s);
		return;
	case OP_AH_CREATE:
		gen_ah(r, m, &m->qp[rng_below(r, QPS)], s);
		return;
	case OP_FILL:
		a[0] = rng_below(r, BUFS);
		a[1] = rng_below(r, 16) * 64;
		a[2] = gen_len(r) % (BUF_LEN - a[1]);
		a[3] = 1 + rng_below(r, 255);
		return;
	default:
		a[0] = rng_below(r, 4);
		return;
	}
}

/* Returns whether the QP is connected and its peer ready for requests. */
static bool
ready(const struct model *m, uint32_t qp)
{
	const struct m_qp *q = &m->qp[qp], *p = q->peer < QPS ? &m->qp[q->peer] : NULL;

	if (q->type == BB_QPT_UD)
		return q->state == BB_QP_RTS;
	return q->state == BB_QP_RTS && p != NULL && p->live && p->gen == q->peer_gen &&
	       p->peer == qp && p->peer_gen == q->gen &&
	       (p->state == BB_QP_RTR || p->state == BB_QP_RTS);
}

/* One transition towards two QPs that are ready for each other. */
static void
gen_connect(struct rng *r, const struct model *m, uint32_t qp, struct step *s)
{
	const struct m_qp *q = &m->qp[qp];
	uint32_t peer = q->state >= BB_QP_RTR && q->peer < QPS ? q->peer : qp ^ 1;

	/* Up, but connected to an old generation of the peer: start again. */
	if (q->state == BB_QP_RTS && m->qp[peer].live && m->qp[peer].state < BB_QP_RTR &&
	    m->qp[peer].gen == q->peer_gen) {
		gen_modify(r, m, peer, s);
		s->a[2] = qp;
		return;
	}
	gen_modify(r, m, qp, s);
	if (q->state == BB_QP_RTS)
		s->a[1] = BB_QP_RESET;
}

void
gen_step(struct rng *r, const struct model *m, struct step *s)
{
	uint32_t qp = rng_below(r, QPS), what = rng_below(r, 100);
	const struct m_qp *q;

	memset(s, 0, sizeof(*s));
	if (!odd(r, 8) && gen_missing(r, m, s))
		return;
	memset(s, 0, sizeof(*s));
	while (!m->qp[qp].live && !odd(r, 20))
		qp = rng_below(r, QPS);
	q = &m->qp[qp];
	if (what < 6)
		gen_other(r, m, s);
	else if (q->live && !ready(m, qp) && !odd(r, 6))
		gen_connect(r, m, qp, s);
	else if (what < 8)
		gen_modify(r, m, qp, s);
	else if ((q->send_list.n != 0 && odd(r, 4)) || q->send_list.n == MAX_LIST)
		*s = (struct step){.op = OP_POST_LIST, .a = {qp}};
	else if ((q->recv_list.n != 0 && odd(r, 3)) || q->recv_list.n == MAX_LIST)
		*s = (struct step){.op = OP_RECV_LIST, .a = {qp}};
	else if (q->sq.posted != q->sq.rung && odd(r, 2))
		*s = (struct step){.op = OP_RING, .a = {qp}};
	else if (q->rq.posted != q->rq.rung && odd(r, 2))
		*s = (struct step){.op = OP_RING_RECV, .a = {qp}};
	else
		gen_post(r, m, qp, s);
}
