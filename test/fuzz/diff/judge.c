/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Values that each call may return in the model's state. Sources: the man pages of the ibv_*
 * calls that the headers name, and the headers' own promises beyond these.
 */
#include <errno.h>
#include <string.h>

#include "diff.h"

#define RIGHTS                                                                                     \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC)

bool
model_is_post(uint32_t op)
{
	return (op >= OP_WRITE && op <= OP_NOP) || model_is_ud(op) || model_is_masked(op) ||
	       (op >= OP_BIND && op <= OP_SEND_INV_INLINE) || model_is_layout(op);
}

uint8_t
model_pattern(uint32_t seed, uint32_t i)
{
	return (uint8_t)((seed + i) * 37 + (i >> 5));
}

static void
may(struct verdict *v, int ret)
{
	v->ret[v->n++] = ret;
}

/* Sets the only permitted value. */
static void
must(struct verdict *v, int ret)
{
	v->n = 0;
	may(v, ret);
}

/* ---- Control path */

static uint32_t
dev_of(const struct model *m, uint32_t slot)
{
	return slot % m->devs;
}

static bool
access_ok(uint32_t access)
{
	if (access & ~(uint32_t)(RIGHTS | BB_ACCESS_MW_BIND))
		return false;
	return !(access & (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC)) ||
	       access & BB_ACCESS_LOCAL_WRITE;
}

static void
judge_mr(const struct model *m, const struct step *s, struct verdict *v)
{
	const uint32_t *a = s->a;

	if (a[0] >= MRS || a[1] >= PDS || a[2] >= BUFS || !m->pd[a[1]].live || m->mr[a[0]].live) {
		v->skip = true;
		return;
	}
	must(v, a[4] != 0 && access_ok(a[5]) ? 0 : -EINVAL);
}

static bool
names(const struct m_wqe *w, uint32_t mr)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->sge[i].key == mr)
			return true;
	return w->rkey == mr;
}

static bool
queue_names(const struct m_queue *q, uint32_t mr)
{
	for (uint32_t k = q->done; k != q->posted; k++)
		if (names(&q->wqe[k % MAX_QUEUE], mr))
			return true;
	return false;
}

/*
 * Returns whether a pending WQE names the region; the effect of a re-registration on it is
 * undefined.
 */
static bool
in_use(const struct model *m, uint32_t mr)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (queue_names(&m->qp[i].sq, mr) || queue_names(&m->qp[i].rq, mr) ||
		    (m->qp[i].holds && names(&m->qp[i].held, mr)))
			return true;
	for (uint32_t i = 0; i < SRQS; i++)
		if (m->srq[i].live && queue_names(&m->srq[i].q, mr))
			return true;
	return false;
}

/* By a window, or by another key. */
static bool
held(const struct model *m, uint32_t mr)
{
	return model_mr_hold(m, mr) == HELD || model_mkey_holds(m, mr);
}

static void
judge_rereg(const struct model *m, const struct step *s, struct verdict *v)
{
	const uint32_t *a = s->a, flags = a[1];
	const struct m_mr *mr = &m->mr[a[0] % MRS];
	bool trans = flags & BB_MR_REREG_TRANSLATION;

	if (a[0] >= MRS || !mr->live || a[2] >= PDS || !m->pd[a[2]].live || a[3] >= BUFS ||
	    in_use(m, a[0]) || (model_mkey_names(m, a[0]) && !model_mkey_holds(m, a[0]))) {
		v->skip = true;
		return;
	}
	if (flags == 0 || flags > 7 || (trans && a[5] == 0) ||
	    (flags & BB_MR_REREG_PD && dev_of(m, a[2]) != dev_of(m, mr->pd)) ||
	    (a[6] != 0 && !(flags & BB_MR_REREG_ACCESS)) ||
	    (flags & BB_MR_REREG_ACCESS && !access_ok(a[6])) || mr->dm != 0)
		must(v, -EINVAL);
	else if (held(m, a[0]))
		must(v, -EBUSY);
	else if (flags & BB_MR_REREG_ACCESS && !trans && a[6] & WRITES && !mr->writable)
		must(v, -EACCES);
	else
		must(v, 0);
	if (v->ret[0] != -EBUSY && model_mr_hold(m, a[0]) == MAYBE_HELD)
		may(v, -EBUSY);
}

static void
judge_qp_create(const struct model *m, const struct step *s, struct verdict *v)
{
	const uint32_t *a = s->a;
	uint32_t room, recvs;

	if (a[0] >= QPS || m->qp[a[0]].live || a[1] >= PDS || !m->pd[a[1]].live || a[2] >= CQS ||
	    !m->cq[a[2]].live || a[3] >= CQS || !m->cq[a[3]].live || a[4] > MAX_QUEUE ||
	    a[5] > MAX_QUEUE || a[6] > MAX_SGE || a[7] > MAX_SGE || a[8] > MAX_INLINE ||
	    a[12] > BB_QPT_UD || a[13] > SRQS || (a[13] != 0 && !m->srq[a[13] - 1].live)) {
		v->skip = true;
		return;
	}
	if (dev_of(m, a[1]) != dev_of(m, a[2]) || dev_of(m, a[1]) != dev_of(m, a[3]) || a[4] == 0 ||
	    (a[9] > a[4] && !a[11] && !m->own_pace) ||
	    (a[13] != 0 && dev_of(m, a[1]) != dev_of(m, m->srq[a[13] - 1].pd))) {
		must(v, -EINVAL);
		return;
	}
	recvs = a[13] != 0 ? model_srq_credits(m, a[13], a[3]) : a[5];
	room = m->cq[a[2]].depth - m->cq[a[2]].promised;
	if (a[2] == a[3])
		must(v, a[4] + recvs <= room ? 0 : -ENOSPC);
	else
		must(v, a[4] <= room && recvs <= m->cq[a[3]].depth - m->cq[a[3]].promised
				? 0
				: -ENOSPC);
}

/* man ibv_modify_qp: transitions, and the number of required attributes by QP type. */
static void
judge_modify(const struct model *m, const struct step *s, struct verdict *v)
{
	const uint32_t *a = s->a, to = a[1];
	const struct m_qp *qp = &m->qp[a[0] % QPS];
	static const uint32_t to_rtr[] = {6, 4, 0}, to_rts[] = {5, 1, 1};
	uint32_t needs = 0;
	bool legal;

	if (a[0] >= QPS || !qp->live || to > BB_QP_ERR || a[2] >= QPS || a[6] > 7 || a[7] > 7) {
		v->skip = true;
		return;
	}
	if (to == BB_QP_SQD) {
		must(v, -ENOTSUP);
		return;
	}
	if (to == BB_QP_RESET || to == BB_QP_ERR)
		legal = true;
	else if (qp->state == BB_QP_RESET)
		legal = to == BB_QP_INIT, needs = 3;
	else if (qp->state == BB_QP_INIT)
		legal = to == BB_QP_INIT || to == BB_QP_RTR,
		needs = to == BB_QP_RTR ? to_rtr[qp->type] : 0;
	else if (qp->state == BB_QP_RTR)
		legal = to == BB_QP_RTS, needs = to_rts[qp->type];
	else
		legal = qp->state == BB_QP_RTS && to == BB_QP_RTS;
	/* A required attribute is missing, or a forbidden one is given. */
	if (!legal || (needs != 0 && a[4] != 0) || a[5] != 0)
		must(v, -EINVAL);
	else
		must(v, qp->type != BB_QPT_UD && (a[3] & ~(uint32_t)RIGHTS) != 0 &&
					(to == BB_QP_INIT || to == BB_QP_RTS)
				? -EINVAL
				: 0);
}

/* ---- Posts */

uint32_t
model_seq_sges(const struct step *s, struct m_sge *sge)
{
	uint32_t i, n = s->a[A_N] > MAX_SGE ? MAX_SGE : s->a[A_N];

	for (i = 0; i < n; i++) {
		const uint32_t *p = &s->a[A_SGE + 4 * i];

		sge[i] = (struct m_sge){.key = p[0], .buf = p[1], .off = p[2], .len = p[3]};
	}
	return n;
}

bool
model_is_inline(uint32_t op)
{
	return (op >= OP_WRITE_INLINE && op <= OP_SEND_IMM_INLINE) || op == OP_SEND_UD_INLINE ||
	       op == OP_SEND_UD_IMM_INLINE || op == OP_SEND_INV_INLINE;
}

/* The post copies the path of a datagram. */
static bool
datagram_of(const struct model *m, const uint32_t *r, struct m_wqe *w)
{
	if (r[0] >= AHS || !m->ah[r[0]].live || r[1] >= QPS)
		return false;
	w->ah = m->ah[r[0]];
	w->dest = r[1];
	w->dest_gen = m->qp[r[1]].live ? m->qp[r[1]].gen : 0;
	w->qkey = r[2];
	return true;
}

/* Sets the operands. Without masks all bits count, and 64 bits are one field. */
static void
atomic_of(const struct step *s, struct m_wqe *w)
{
	const uint32_t *a = s->a;

	w->x = a[AT_X];
	w->y = a[AT_Y];
	w->y_mask = UINT64_MAX;
	w->x_mask = model_is_cmp_swap(s->op) ? UINT64_MAX : 0;
	if (!model_is_masked(s->op))
		return;
	w->x = model_wide(a[AT_X]);
	w->y = model_wide(a[AT_Y]);
	w->x_mask = model_wide_mask(a[AT_X_MASK]);
	w->y_mask = model_wide_mask(a[AT_Y_MASK]);
}

bool
model_wqe_of(const struct model *m, const struct step *s, struct m_wqe *w)
{
	const uint32_t *a = s->a, *r = &a[A_RKEY];
	bool recv = s->op == OP_RECV || s->op == OP_SRQ_RECV;

	memset(w, 0, sizeof(*w));
	w->op = s->op;
	w->flags = a[A_FLAGS] & (BB_SEND_SIGNALED | BB_SEND_SOLICITED | BB_SEND_FENCE);
	w->rkey = NO_KEY;
	if (s->op == OP_NOP)
		return true;
	if (s->op == OP_BIND)
		return model_bind_of(m, s, w);
	if (model_is_layout(s->op))
		return model_layout_of(m, s, w);
	if (s->op == OP_LOCAL_INV) {
		w->rkey = a[2];
		w->rgen = model_key_gen(m, w->rkey);
		return w->rkey < KEYS;
	}
	if (model_is_inline(s->op)) {
		w->is_inline = true;
		w->len = a[I_LEN];
		for (uint32_t i = 0; i < w->len && i < MAX_INLINE; i++)
			w->data[i] = model_pattern(a[I_SEED], i);
		r = &a[I_RKEY];
		w->imm = a[I_IMM];
	} else if (model_is_atomic(s->op)) {
		w->n = 1;
		w->sge[0] = (struct m_sge){.key = a[AT_SGE],
					   .buf = a[AT_SGE + 1],
					   .off = a[AT_SGE + 2],
					   .len = a[AT_SGE + 3]};
		r = &a[AT_RKEY];
		atomic_of(s, w);
	} else {
		w->n = model_seq_sges(s, w->sge);
		w->imm = recv ? 0 : a[A_IMM];
	}
	if (model_is_ud(s->op)) {
		if (!datagram_of(m, r, w))
			return false;
	} else if (!recv) {
		w->rkey = r[0];
		w->rbuf = r[1];
		w->roff = r[2];
	}
	if (w->rkey >= KEYS || w->rbuf > ZERO_BUF || w->rbuf == RECV_BUF || w->roff >= BUF_LEN)
		return false;
	w->rgen = model_key_gen(m, w->rkey);
	for (uint32_t i = 0; i < w->n; i++) {
		struct m_sge *g = &w->sge[i];

		if (g->key >= KEYS || g->buf > ZERO_BUF || g->off >= BUF_LEN ||
		    (g->len > BUF_LEN && g->len >> 31 == 0))
			return false;
		if (g->buf != ZERO_BUF && (g->buf == RECV_BUF) != recv)
			return false;
		g->gen = model_key_gen(m, g->key);
		w->len += g->len;
	}
	return true;
}

static bool
overlap(uint32_t buf, uint32_t off, uint32_t len, uint32_t buf2, uint32_t off2, uint32_t len2)
{
	return buf == buf2 && buf != ZERO_BUF && off < off2 + len2 && off2 < off + len;
}

/*
 * Copies with overlapping source and destination, or overlapping pieces, are undefined. Addresses
 * that start at 0 are resolved when they are used.
 */
bool
model_entangled(const struct m_wqe *w)
{
	bool remote = w->op == OP_WRITE || w->op == OP_WRITE_IMM || w->op == OP_READ ||
		      model_is_atomic(w->op);

	for (uint32_t i = 0; i < w->n; i++) {
		const struct m_sge *g = &w->sge[i];

		if (remote && overlap(g->buf, g->off, g->len, w->rbuf, w->roff, w->len))
			return true;
		for (uint32_t j = 0;
		     j < i && (w->op == OP_READ || w->op == OP_RECV || w->op == OP_SRQ_RECV); j++)
			if (overlap(g->buf, g->off, g->len, w->sge[j].buf, w->sge[j].off,
				    w->sge[j].len))
				return true;
	}
	return false;
}

/* Man ibv_post_send: operations by type of QP. */
static bool
type_does(uint32_t type, uint32_t op)
{
	if (op == OP_NOP || op == OP_RECV)
		return true;
	if (model_is_ud(op))
		return type == BB_QPT_UD;
	if (type == BB_QPT_UC)
		return op != OP_READ && !model_is_atomic(op);
	return type == BB_QPT_RC;
}

/* EINVAL by man ibv_post_send, for the request by itself. */
bool
model_request_ok(const struct m_wqe *w)
{
	if (model_is_masked(w->op) && w->sge[0].len == 4)
		return (w->roff & 3) == 0;
	if (model_is_atomic(w->op))
		return w->sge[0].len == 8 && (w->roff & 7) == 0;
	for (uint32_t i = 0; i < w->n; i++)
		if (w->sge[i].len > 0x80000000u)
			return false;
	return true;
}

/* More than was requested at creation: a queue may have higher limits (man ibv_create_qp). */
static bool
over_limits(const struct m_qp *qp, const struct step *s, const struct m_wqe *w)
{
	if (w->is_inline)
		return w->len > qp->max_inline;
	if (w->op == OP_NOP || model_is_atomic(w->op) || w->op == OP_BIND ||
	    w->op == OP_LOCAL_INV || model_is_layout(w->op))
		return false;
	return s->a[A_N] > (w->op == OP_RECV ? qp->max_recv_sge : qp->max_sge);
}

/* Man ibv_post_send, send_flags: the rules that a list is checked against. */
static bool
flags_ok(uint32_t type, const struct m_wqe *w)
{
	if (w->flags & BB_SEND_FENCE && type != BB_QPT_RC)
		return false;
	return !(w->flags & BB_SEND_SOLICITED) || model_takes_receive(w->op);
}

/*
 * Returns the WQEs whose room a request may take, beyond one, in a queue for short requests. In
 * blocks of 64 bytes, masked CMP_SWAP has two, an invalidation two and a bind three.
 */
static uint32_t
may_be_more(const struct m_wqe *w)
{
	if (w->op == OP_BIND || model_is_layout(w->op))
		return 2;
	return (w->op == OP_MASKED_CMP_SWAP && w->len == 8) || w->op == OP_LOCAL_INV;
}

/* Returns whether the queue exists and the result of the request is defined. */
static bool
post_defined(const struct model *m, const struct step *s, bool list, struct m_wqe *w)
{
	const struct m_qp *qp = &m->qp[s->a[A_QP] % QPS];

	if (s->a[A_QP] >= QPS || !qp->live || !model_wqe_of(m, s, w) || model_entangled(w) ||
	    (w->is_inline && w->len > MAX_INLINE) ||
	    (list && (w->op == OP_NOP || model_is_layout(w->op))) ||
	    (model_is_masked(w->op) && m->world->masked != 12))
		return false;
	/* A single post takes any handle unchecked. */
	return list || !model_is_ud(w->op) || w->ah.pd == qp->pd;
}

void
model_judge_post(const struct model *m, const struct step *s, bool list, struct verdict *v)
{
	const struct m_qp *qp = &m->qp[s->a[A_QP] % QPS];
	bool recv = s->op == OP_RECV, over, full, bad;
	const struct m_queue *q = recv ? &qp->rq : &qp->sq;
	uint32_t depth = recv ? qp->rq_depth : qp->sq_depth, waiting = model_waiting(q), most, i;
	struct m_wqe w;

	memset(v, 0, sizeof(*v));
	if (!post_defined(m, s, list, &w)) {
		v->skip = true;
		return;
	}
	full = model_mw_full(m, &w);
	over = over_limits(qp, s, &w) || depth <= may_be_more(&w);
	if (!model_request_ok(&w) || !type_does(qp->type, s->op) || (recv && qp->rq_depth == 0) ||
	    (list && !recv && !flags_ok(qp->type, &w)) || !model_bind_ok(m, qp, &w, list) ||
	    !model_layout_ok(m, qp, &w) || (model_is_ud(w.op) && w.ah.pd != qp->pd))
		may(v, -EINVAL);
	/* A receive may be posted in any state. */
	if (!recv && qp->state != BB_QP_RTS && qp->state != BB_QP_ERR)
		may(v, -ENOTCONN);
	if (v->n != 0 || over)
		may(v, -EINVAL);
	bad = v->n > over;
	if (full) {
		may(v, -EAGAIN);
		may(v, -ENOMEM);
	}
	if (bad)
		return;
	if (waiting >= depth) {
		may(v, -EAGAIN);
		return;
	}
	may(v, 0);
	/* Unsignalled requests that are done may still count as outstanding: sig_every - 1. */
	most = waiting + (recv ? 0 : qp->sig_every - 1) + may_be_more(&w);
	for (i = q->done; i != q->posted; i++)
		most += may_be_more(&q->wqe[i % MAX_QUEUE]);
	if (most >= depth)
		may(v, -EAGAIN);
}

/* Judges a request that is saved or posted by itself. */
static void
judge_request(const struct model *m, const struct step *s, struct verdict *v)
{
	const struct m_qp *qp = &m->qp[s->a[A_QP] % QPS];

	model_judge_post(m, s, (s->a[A_FLAGS] & LISTED) != 0, v);
	if (v->skip || !(s->a[A_FLAGS] & LISTED))
		return;
	v->skip = (s->op == OP_RECV ? qp->recv_list.n : qp->send_list.n) == MAX_LIST;
	must(v, 0);
}

void
model_judge(const struct model *m, const struct step *s, struct verdict *v)
{
	const uint32_t *a = s->a;

	memset(v, 0, sizeof(*v));
	must(v, 0);
	switch (s->op) {
	case OP_PD_ALLOC:
		v->skip = a[0] >= PDS || m->pd[a[0]].live;
		return;
	case OP_PD_FREE:
		v->skip = a[0] >= PDS || !m->pd[a[0]].live;
		must(v, !v->skip && m->pd[a[0]].refs != 0 ? -EBUSY : 0);
		return;
	case OP_MR_REG:
		judge_mr(m, s, v);
		return;
	case OP_MR_REREG:
		judge_rereg(m, s, v);
		return;
	case OP_MR_DEREG:
		v->skip = a[0] >= MRS || !m->mr[a[0]].live;
		if (v->skip)
			return;
		must(v, held(m, a[0]) ? -EBUSY : 0);
		if (model_mr_hold(m, a[0]) == MAYBE_HELD)
			may(v, -EBUSY);
		return;
	case OP_MKEY_CREATE:
	case OP_MKEY_DESTROY:
		model_judge_mkey(m, s, v);
		return;
	case OP_MW_ALLOC:
	case OP_MW_FREE:
		model_judge_mw(m, s, v);
		return;
	case OP_DM_ALLOC:
	case OP_DM_FREE:
	case OP_DM_WRITE:
	case OP_MR_REG_DM:
		model_judge_dm(m, s, v);
		return;
	case OP_CQ_CREATE:
		v->skip = a[0] >= CQS || m->cq[a[0]].live || a[1] > 128;
		must(v, a[1] == 0 ? -EINVAL : 0);
		return;
	case OP_CQ_DESTROY:
		v->skip = a[0] >= CQS || !m->cq[a[0]].live;
		must(v, !v->skip && m->cq[a[0]].refs != 0 ? -EBUSY : 0);
		return;
	case OP_QP_CREATE:
		judge_qp_create(m, s, v);
		return;
	case OP_QP_DESTROY:
	case OP_RING:
	case OP_RING_RECV:
		v->skip = a[0] >= QPS || !m->qp[a[0]].live;
		return;
	case OP_MODIFY:
		judge_modify(m, s, v);
		return;
	case OP_SRQ_CREATE:
	case OP_SRQ_DESTROY:
	case OP_SRQ_MODIFY:
	case OP_SRQ_RECV:
	case OP_SRQ_RING:
		model_judge_srq(m, s, v);
		return;
	case OP_AH_CREATE:
		v->skip = a[0] >= AHS || m->ah[a[0]].live || a[1] >= PDS || !m->pd[a[1]].live ||
			  a[2] >= m->devs || a[3] > GIDS || a[4] > 255 || a[6] > 255;
		/* A GID table entry that is empty or missing; it is not checked without a GRH. */
		if (!v->skip && !m->world->ib &&
		    (a[3] == GIDS || !m->world->gid[dev_of(m, a[1])][a[3]].there))
			must(v, -EINVAL);
		else if (a[5] > 0xfffff)
			must(v, -EINVAL);
		return;
	case OP_AH_DESTROY:
		v->skip = a[0] >= AHS || !m->ah[a[0]].live;
		return;
	case OP_FILL:
		v->skip = a[0] >= BUFS || a[1] >= BUF_LEN || a[2] > BUF_LEN - a[1];
		return;
	case OP_POST_LIST:
	case OP_RECV_LIST:
		v->skip = a[0] >= QPS || !m->qp[a[0]].live;
		v->list = true;
		return;
	default:
		judge_request(m, s, v);
		return;
	}
}
