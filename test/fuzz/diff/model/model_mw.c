/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory windows: IBTA vol. 1, 10.6.7.2 and o10-37.2.x, man ibv_alloc_mw, ibv_bind_mw and
 * ibv_post_send.
 *
 * A window has two states: after the posted requests (its rkey), and after those that the device
 * has executed.
 */
#include <errno.h>
#include <string.h>

#include "diff.h"

#define REMOTE        (BB_ACCESS_REMOTE_READ | REMOTE_WRITES)
#define REMOTE_WRITES (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC)

static bool
is_window(uint32_t key)
{
	return key >= KEY_MW && key < KEY_MW + MWS;
}

/* Returns the generation of the key after the last posted bind. */
uint32_t
model_mw_gen(const struct m_mw *w)
{
	return w->gen << 8 | w->tag;
}

static bool
holds(const struct m_mr *mr, uint32_t buf, uint32_t off, uint32_t len)
{
	return mr->buf == buf && off >= mr->off && len <= mr->len && off - mr->off <= mr->len - len;
}

/* Returns whether a bind follows the rules of its type, which the calls check. */
static bool
bind_ok(const struct model *m, const struct m_qp *qp, const struct m_wqe *w, bool list)
{
	const struct m_mw *mw = &m->mw[w->mw];
	const struct m_mr *mr = &m->mr[w->bind.key % MRS];
	bool none = w->bind.key >= MRS, zero = (w->access & BB_ACCESS_ZERO_BASED) != 0;

	/* A list binds windows of type 2 only: IBV_WR_BIND_MW. */
	if (list ? mw->type != BB_MW_TYPE_2 : w->wrong_call)
		return false;
	if (mw->pd != qp->pd)
		return false;
	if (mw->type == BB_MW_TYPE_1 && w->bind.len == 0)
		return true;
	if (none || w->bind.len == 0 || mr->pd != mw->pd || !(mr->access & BB_ACCESS_MW_BIND) ||
	    !holds(mr, w->bind.buf, w->bind.off, w->bind.len))
		return false;
	if (mw->type == BB_MW_TYPE_1 && zero)
		return false;
	return (w->access & ~(uint32_t)(REMOTE | BB_ACCESS_ZERO_BASED)) == 0 &&
	       (!(w->access & REMOTE_WRITES) || mr->access & BB_ACCESS_LOCAL_WRITE);
}

bool
model_bind_ok(const struct model *m, const struct m_qp *qp, const struct m_wqe *w, bool list)
{
	return w->op != OP_BIND || bind_ok(m, qp, w, list);
}

bool
model_bind_of(const struct model *m, const struct step *s, struct m_wqe *w)
{
	const uint32_t *a = s->a;

	if (a[2] >= MWS || !m->mw[a[2]].live || a[3] > NO_KEY ||
	    (a[3] < MRS && !m->mr[a[3]].live) || a[4] > ZERO_BUF || a[5] >= BUF_LEN ||
	    a[6] > BUF_LEN || a[8] > 255)
		return false;
	w->mw = a[2];
	w->bind = (struct m_sge){a[3], model_key_gen(m, a[3]), a[4], a[5], a[6]};
	w->access = a[7];
	w->tag = m->mw[w->mw].type == BB_MW_TYPE_1 ? (m->mw[w->mw].tag + 1) & 0xff : a[8];
	w->wrong_call = a[9] != 0;
	w->rgen = model_mw_gen(&m->mw[w->mw]);
	return true;
}

/* Records a posted request on a window. */
void
model_mw_posted(struct model *m, const struct m_wqe *w)
{
	struct m_mw *mw;

	if (w->op != OP_BIND && !(w->op == OP_LOCAL_INV && is_window(w->rkey)))
		return;
	mw = &m->mw[w->op == OP_BIND ? w->mw : w->rkey - KEY_MW];
	mw->requests++;
	if (w->op != OP_BIND)
		return;
	if (mw->n_binds == MW_BINDS)
		memmove(&mw->bind[0], &mw->bind[1], --mw->n_binds * sizeof(mw->bind[0]));
	mw->bind[mw->n_binds].wr_id = w->wr_id;
	mw->bind[mw->n_binds++].tag = mw->tag = w->tag;
	if (w->bind.len != 0)
		mw->touched |= 1u << w->bind.key;
}

void
model_mw_failed(struct model *m, const struct m_wqe *w)
{
	struct m_mw *mw = &m->mw[w->mw];
	uint32_t i = 0;

	if (w->op != OP_BIND)
		return;
	while (i < mw->n_binds && mw->bind[i].wr_id != w->wr_id)
		i++;
	if (i == mw->n_binds)
		return;
	mw->n_binds--;
	memmove(&mw->bind[i], &mw->bind[i + 1], (mw->n_binds - i) * sizeof(mw->bind[0]));
	if (mw->n_binds != 0)
		mw->tag = mw->bind[mw->n_binds - 1].tag;
}

static bool
bind_waits(const struct model *m, uint32_t mr)
{
	for (uint32_t i = 0; i < QPS; i++) {
		const struct m_queue *q = &m->qp[i].sq;

		for (uint32_t k = q->done; k != q->posted && m->qp[i].live; k++) {
			const struct m_wqe *w = &q->wqe[k % MAX_QUEUE];

			if (w->op == OP_BIND && w->bind.len != 0 && w->bind.key == mr)
				return true;
		}
	}
	return false;
}

/*
 * Man ibv_dereg_mr: not while a window is bound to the region. Also not while one may be: the
 * effect of an unsignalled request, or of one on a queue that was reset, is not known at once
 * (bb_mw.h).
 */
enum m_hold
model_mr_hold(const struct model *m, uint32_t mr)
{
	enum m_hold hold = bind_waits(m, mr) ? HELD : NOT_HELD;

	for (uint32_t i = 0; i < MWS; i++) {
		const struct m_mw *w = &m->mw[i];

		if (!w->live || (w->touched & 1u << mr) == 0)
			continue;
		if (w->bound && w->to.key == mr)
			hold = HELD;
		else if (hold == NOT_HELD)
			hold = MAYBE_HELD;
	}
	return hold;
}

/* A window tracks at most eight requests with unknown outcome. */
bool
model_mw_full(const struct model *m, const struct m_wqe *w)
{
	if (w->op == OP_LOCAL_INV)
		return is_window(w->rkey) && m->mw[w->rkey - KEY_MW].requests >= 8;
	return w->op == OP_BIND && m->mw[w->mw].requests >= 8;
}

bool
model_mw_in_use(const struct model *m, uint32_t mw)
{
	for (uint32_t i = 0; i < QPS; i++) {
		const struct m_queue *q = &m->qp[i].sq;

		for (uint32_t k = q->done; k != q->posted; k++)
			if (q->wqe[k % MAX_QUEUE].op == OP_BIND && q->wqe[k % MAX_QUEUE].mw == mw)
				return true;
	}
	return false;
}

static bool
mine(const struct m_mw *mw, const struct model *m, const struct m_qp *qp)
{
	return mw->qp == (uint32_t)(qp - m->qp) && mw->qp_gen == qp->gen;
}

static uint8_t
run_bind(struct model *m, const struct m_qp *qp, const struct m_wqe *w)
{
	struct m_mw *mw = &m->mw[w->mw];
	struct m_places at = {0};

	/*
	 * An old rkey; or a bound type 2 window, which must be invalidated first (o10-37.2.21).
	 */
	if (mw->bound && (mw->type == BB_MW_TYPE_2 || mw->dev_gen != w->rgen))
		return BB_WC_MW_BIND_ERR;
	if (w->bind.len == 0) {
		mw->bound = false;
		return BB_WC_SUCCESS;
	}
	if (!model_map_mr(m, qp->pd, &w->bind, BB_ACCESS_MW_BIND, &at))
		return BB_WC_MW_BIND_ERR;
	mw->bound = true;
	mw->dev_gen = mw->gen << 8 | w->tag;
	mw->to = w->bind;
	mw->access = w->access;
	mw->qp = (uint32_t)(qp - m->qp);
	mw->qp_gen = qp->gen;
	return BB_WC_SUCCESS;
}

/* Only windows of type 2, by the QP that bound them or when they are free (o10-37.2.26). */
static uint8_t
run_local_inv(struct model *m, const struct m_qp *qp, const struct m_wqe *w)
{
	struct m_mw *mw = &m->mw[(w->rkey - KEY_MW) % MWS];

	if (!is_window(w->rkey) || !mw->live || w->rgen >> 8 != mw->gen ||
	    mw->type != BB_MW_TYPE_2 || mw->pd != qp->pd)
		return BB_WC_MW_BIND_ERR;
	if (mw->bound && (mw->dev_gen != w->rgen || !mine(mw, m, qp)))
		return BB_WC_MW_BIND_ERR;
	mw->bound = false;
	return BB_WC_SUCCESS;
}

uint8_t
model_mw_run(struct model *m, const struct m_qp *qp, const struct m_wqe *w)
{
	if (model_is_layout(w->op) || (w->op == OP_LOCAL_INV && w->rkey >= KEY_MKEY))
		return model_layout_run(m, qp, w);
	return w->op == OP_BIND ? run_bind(m, qp, w) : run_local_inv(m, qp, w);
}

bool
model_remote_inv(struct model *m, const struct m_qp *p, const struct m_wqe *w)
{
	struct m_mw *mw = &m->mw[(w->rkey - KEY_MW) % MWS];

	if (!is_window(w->rkey) || !mw->live || !mw->bound || mw->type != BB_MW_TYPE_2 ||
	    mw->dev_gen != w->rgen || mw->pd != p->pd || !mine(mw, m, p))
		return false;
	mw->bound = false;
	mw->touched = 0;
	mw->requests = 0;
	return true;
}

bool
model_map_mw(const struct model *m, const struct m_qp *qp, const struct m_sge *g, uint32_t right,
	     struct m_places *to)
{
	const struct m_mw *mw = &m->mw[g->key - KEY_MW];
	const struct m_sge *b = &mw->to;
	bool zero = (mw->access & BB_ACCESS_ZERO_BASED) != 0;
	uint32_t start = zero ? 0 : b->off;
	struct m_sge below = *b;

	/* For peers only. */
	if (!mw->live || !mw->bound || mw->dev_gen != g->gen || mw->pd != qp->pd ||
	    (right & ~(uint32_t)REMOTE) != 0 || right == 0 || (mw->access & right) != right)
		return false;
	if (mw->type == BB_MW_TYPE_2 && !mine(mw, m, qp))
		return false;
	if (g->buf != (zero ? ZERO_BUF : b->buf) || g->off < start || g->len > b->len ||
	    g->off - start > b->len - g->len)
		return false;
	below.off = b->off + (g->off - start);
	below.len = g->len;
	return model_map_mr(m, qp->pd, &below,
			    right == BB_ACCESS_REMOTE_READ ? 0 : BB_ACCESS_LOCAL_WRITE, to);
}

void
model_judge_mw(const struct model *m, const struct step *s, struct verdict *v)
{
	const uint32_t *a = s->a;

	v->n = 1;
	v->ret[0] = 0;
	if (s->op == OP_MW_FREE) {
		v->skip = a[0] >= MWS || !m->mw[a[0]].live || model_mw_in_use(m, a[0]);
		return;
	}
	v->skip = a[0] >= MWS || m->mw[a[0]].live || a[1] >= PDS || !m->pd[a[1]].live;
	if (a[2] != BB_MW_TYPE_1 && a[2] != BB_MW_TYPE_2)
		v->ret[0] = -EINVAL;
}

void
model_mw_step(struct model *m, const struct step *s)
{
	const uint32_t *a = s->a;
	struct m_mw *mw = &m->mw[a[0]];
	uint32_t gen = mw->gen;

	if (s->op == OP_MW_FREE) {
		mw->live = false;
		m->pd[mw->pd].refs--;
		return;
	}
	*mw = (struct m_mw){.live = true, .gen = gen + 1, .pd = a[1], .type = a[2], .n_binds = 1};
	m->pd[a[1]].refs++;
}
