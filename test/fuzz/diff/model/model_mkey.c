/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Indirect keys: man mlx5dv_create_mkey, mlx5dv_wr_mr_list, mlx5dv_wr_mr_interleaved, and the doc
 * comments of bb_mkey.h. A key with fixed pieces holds its regions. A key that requests lay out
 * holds none, and every access resolves its pieces. All are zero-based.
 */
#include <errno.h>
#include <string.h>

#include "diff.h"

#define REMOTE_WRITES (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC)
#define RIGHTS        (BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ | REMOTE_WRITES)

static bool
access_ok(uint32_t access)
{
	return (access & ~(uint32_t)RIGHTS) == 0 &&
	       (!(access & REMOTE_WRITES) || access & BB_ACCESS_LOCAL_WRITE);
}

/*
 * Parses pieces of @words arguments each: key buf off len, and for blocks skip. Returns false if
 * the result is undefined.
 */
static bool
pieces_of(const struct model *m, const uint32_t *a, uint32_t n, uint32_t words, struct m_layout *l)
{
	l->n = n;
	for (uint32_t i = 0; i < n; i++, a += words) {
		if (a[0] > NO_KEY || a[1] > ZERO_BUF || a[2] >= BUF_LEN || a[3] > BUF_LEN)
			return false;
		l->piece[i] = (struct m_sge){a[0], model_key_gen(m, a[0]), a[1], a[2], a[3]};
		l->skip[i] = words > 4 ? a[4] : 0;
	}
	return true;
}

static uint32_t
round_len(const struct m_layout *l)
{
	uint32_t i, len = 0;

	for (i = 0; i < l->n; i++)
		len += l->piece[i].len;
	return len;
}

/* Steps that create keys: mkey pd access max_pieces n, and pieces. */
bool
model_mkey_of(const struct model *m, const struct step *s, struct m_mkey *k)
{
	const uint32_t *a = s->a;

	if (a[0] >= MKEYS || m->mkey[a[0]].live || a[1] >= PDS || !m->pd[a[1]].live || a[3] > 8 ||
	    a[4] > MAX_SGE || !m->world->mkeys)
		return false;
	*k = (struct m_mkey){.live = true,
			     .gen = m->mkey[a[0]].gen + 1,
			     .pd = a[1],
			     .access = a[2],
			     .max_pieces = a[3],
			     .free = a[3] != 0};
	k->layout.repeat = 1;
	return pieces_of(m, &a[5], a[4], 4, &k->layout);
}

/* Posts: qp flags mkey access, then n and pieces, or repeat, n and blocks. */
bool
model_layout_of(const struct model *m, const struct step *s, struct m_wqe *w)
{
	bool list = s->op == OP_MKEY_LIST;
	const uint32_t *a = s->a;

	if (a[2] >= MKEYS || !m->mkey[a[2]].live || (list ? a[4] > MAX_SGE : a[5] > MAX_BLOCKS) ||
	    (!list && a[4] > 16))
		return false;
	w->rkey = KEY_MKEY + a[2];
	w->rgen = model_key_gen(m, w->rkey);
	w->access = a[3];
	w->layout.repeat = list ? 1 : a[4];
	return list ? pieces_of(m, &a[5], a[4], 4, &w->layout)
		    : pieces_of(m, &a[6], a[5], 5, &w->layout);
}

bool
model_layout_ok(const struct model *m, const struct m_qp *qp, const struct m_wqe *w)
{
	const struct m_mkey *k = &m->mkey[(w->rkey - KEY_MKEY) % MKEYS];
	const struct m_layout *l = &w->layout;
	bool list = w->op == OP_MKEY_LIST;

	if (!model_is_layout(w->op))
		return true;
	/* The head of a pattern takes an entry, too. */
	if (k->max_pieces == 0 || k->pd != qp->pd || l->n + !list > k->max_pieces || l->n == 0 ||
	    l->repeat == 0 || !access_ok(w->access))
		return false;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->piece[i].len == 0 || (!list && l->piece[i].len + l->skip[i] > UINT16_MAX))
			return false;
	return true;
}

bool
model_is_layout(uint32_t op)
{
	return op == OP_MKEY_LIST || op == OP_MKEY_INTERLEAVED;
}

/* Executes the request. Returns its status. */
uint8_t
model_layout_run(struct model *m, const struct m_qp *qp, const struct m_wqe *w)
{
	struct m_mkey *k = &m->mkey[(w->rkey - KEY_MKEY) % MKEYS];

	if (!k->live || k->gen != w->rgen || k->pd != qp->pd || k->max_pieces == 0)
		return BB_WC_MW_BIND_ERR;
	if (w->op == OP_LOCAL_INV) {
		k->free = true;
		return BB_WC_SUCCESS;
	}
	k->layout = w->layout;
	k->access = w->access;
	k->free = false;
	return BB_WC_SUCCESS;
}

/* Maps the start of [@off, @off + @len) of the key, as far as it is in one piece. */
static bool
map_part(const struct model *m, const struct m_mkey *k, uint32_t off, uint32_t *len, uint32_t right,
	 struct m_places *to)
{
	const struct m_layout *l = &k->layout;
	uint32_t turn = off / round_len(l), i;
	struct m_sge g;

	off %= round_len(l);
	for (i = 0; off >= l->piece[i].len; i++)
		off -= l->piece[i].len;
	g = l->piece[i];
	g.off += turn * (g.len + l->skip[i]) + off;
	g.len -= off;
	if (g.len > *len)
		g.len = *len;
	*len = g.len;
	return model_map_mr(m, k->pd, &g, right, to);
}

bool
model_map_mkey(const struct model *m, uint32_t pd, const struct m_sge *g, uint32_t right,
	       struct m_places *to)
{
	const struct m_mkey *k = &m->mkey[g->key - KEY_MKEY];
	bool writes = (right & (BB_ACCESS_LOCAL_WRITE | REMOTE_WRITES)) != 0;
	uint32_t off = g->off, left = g->len, size;

	if (!k->live || k->gen != g->gen || k->free || k->pd != pd || g->buf != ZERO_BUF ||
	    (k->access & right) != right)
		return false;
	size = round_len(&k->layout) * k->layout.repeat;
	if (off > size || left > size - off)
		return false;
	while (left != 0) {
		uint32_t part = left;

		if (!map_part(m, k, off, &part, writes ? BB_ACCESS_LOCAL_WRITE : 0, to))
			return false;
		off += part;
		left -= part;
	}
	return true;
}

static bool
names(const struct m_layout *l, uint32_t mr)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->piece[i].key == mr)
			return true;
	return false;
}

/* A key with fixed pieces holds its regions. */
bool
model_mkey_holds(const struct model *m, uint32_t mr)
{
	for (uint32_t i = 0; i < MKEYS; i++) {
		const struct m_mkey *k = &m->mkey[i];

		for (uint32_t j = 0; k->live && k->max_pieces == 0 && j < k->layout.n; j++)
			if (k->layout.piece[j].key == mr &&
			    k->layout.piece[j].gen == m->mr[mr].gen && m->mr[mr].pd == k->pd)
				return true;
	}
	return false;
}

/* Returns whether a key that requests lay out, or such a request, names the region. */
bool
model_mkey_names(const struct model *m, uint32_t mr)
{
	for (uint32_t i = 0; i < MKEYS; i++)
		if (m->mkey[i].live && names(&m->mkey[i].layout, mr))
			return true;
	for (uint32_t i = 0; i < QPS; i++) {
		const struct m_queue *q = &m->qp[i].sq;

		for (uint32_t k = q->done; k != q->posted; k++)
			if (names(&q->wqe[k % MAX_QUEUE].layout, mr))
				return true;
	}
	return false;
}

static bool
in_use(const struct model *m, uint32_t mkey)
{
	for (uint32_t i = 0; i < QPS; i++) {
		const struct m_queue *q = &m->qp[i].sq;

		for (uint32_t k = q->done; k != q->posted; k++)
			if (model_is_layout(q->wqe[k % MAX_QUEUE].op) &&
			    q->wqe[k % MAX_QUEUE].rkey == KEY_MKEY + mkey)
				return true;
	}
	return false;
}

void
model_judge_mkey(const struct model *m, const struct step *s, struct verdict *v)
{
	const uint32_t *a = s->a;
	struct m_mkey k;

	v->n = 1;
	v->ret[0] = 0;
	if (s->op == OP_MKEY_DESTROY) {
		v->skip = a[0] >= MKEYS || !m->mkey[a[0]].live || in_use(m, a[0]);
		return;
	}
	v->skip = !model_mkey_of(m, s, &k);
	if (v->skip)
		return;
	if (!access_ok(k.access) || (k.layout.n != 0) == (k.max_pieces != 0))
		v->ret[0] = -EINVAL;
	/* Atomics: the length of a fixed key must be a multiple of 8. */
	if ((k.access & BB_ACCESS_REMOTE_ATOMIC) != 0 && round_len(&k.layout) % 8 != 0)
		v->ret[0] = -EINVAL;
	for (uint32_t i = 0; i < k.layout.n; i++)
		if (k.layout.piece[i].len == 0)
			v->ret[0] = -EINVAL;
}

void
model_mkey_step(struct model *m, const struct step *s)
{
	struct m_mkey k;

	if (s->op == OP_MKEY_DESTROY) {
		m->mkey[s->a[0]].live = false;
		m->pd[m->mkey[s->a[0]].pd].refs--;
	} else if (model_mkey_of(m, s, &k)) {
		m->mkey[s->a[0]] = k;
		m->pd[k.pd].refs++;
	}
}
