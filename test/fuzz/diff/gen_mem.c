/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory in the generator: regions, windows, device memory, and ranges for requests. */
#include <string.h>

#include "gen.h"

uint32_t
gen_access(struct rng *r)
{
	if (odd(r, 12))
		return odd(r, 8) ? 512 : rng_below(r, 32);
	return odd(r, 3) ? PICK(r, 0, 1, 3, 4, 5, 7, 9) : 15;
}

uint32_t
gen_len(struct rng *r)
{
	if (odd(r, 2))
		return PICK(r, 0, 1, 7, 8, 16, 28, 32, 44, 60, 63, 64, 65, 100, 127, 128, 256);
	return PICK(r, 512, 1000, 1023, 1024, 1025, 2048, 2049, 3000, 4096);
}

void
gen_mr(struct rng *r, struct step *s)
{
	uint32_t *a = s->a;

	a[1] = rng_below(r, PDS);
	a[2] = rng_below(r, BUFS);
	a[3] = odd(r, 2) ? 0 : rng_below(r, 64) * 8;
	a[4] = odd(r, 3) ? gen_len(r) : BUF_LEN - a[3];
	a[5] = gen_access(r);
}

/*
 * Returns a suitable key of another kind: a window for peers, or device memory. Returns NO_KEY if
 * there is none.
 */
static uint32_t
special_key(struct rng *r, const struct model *m, const struct need *need, uint32_t *buf,
	    uint32_t *off, uint32_t *len)
{
	uint32_t start = rng_below(r, MWS), i, k;

	for (k = 0; k < MWS && need->remote; k++) {
		const struct m_mw *w = &m->mw[i = (start + k) % MWS];
		bool zero = (w->access & BB_ACCESS_ZERO_BASED) != 0;

		if (!w->live || !w->bound || w->pd != need->pd || odd(r, 8))
			continue;
		*buf = zero ? ZERO_BUF : w->to.buf;
		*off = zero ? 0 : w->to.off;
		*len = w->to.len;
		return KEY_MW + i;
	}
	for (i = 0; i < MKEYS; i++) {
		const struct m_mkey *mk = &m->mkey[i];

		if (!mk->live || mk->free || mk->pd != need->pd || odd(r, 3))
			continue;
		*buf = ZERO_BUF;
		*off = 0;
		for (k = *len = 0; k < mk->layout.n; k++)
			*len += mk->layout.piece[k].len * mk->layout.repeat;
		if (*len > BUF_LEN)
			*len = BUF_LEN;
		return KEY_MKEY + i;
	}
	for (i = 0; i < MRS; i++) {
		const struct m_mr *mr = &m->mr[i];

		if (mr->live && mr->dm != 0 && mr->pd == need->pd) {
			*buf = ZERO_BUF;
			*off = 0;
			*len = mr->len;
			return i;
		}
	}
	return NO_KEY;
}

/* Picks a region and a range mostly inside it; may reduce *len. */
void
gen_range(struct rng *r, const struct model *m, struct need *need, uint32_t *len, uint32_t *key,
	  uint32_t *buf, uint32_t *off)
{
	uint32_t i, k = NO_KEY, start = rng_below(r, MRS);
	bool odd_one = odd(r, 8);
	const struct m_mr *mr;

	for (i = 0; i < MRS && k == NO_KEY; i++) {
		mr = &m->mr[(start + i) % MRS];
		if (mr->live && mr->dm == 0 && mr->pd == need->pd &&
		    (mr->access & need->rights) == need->rights &&
		    (mr->buf == RECV_BUF) == need->recv)
			k = (start + i) % MRS;
	}
	need->missing |= k == NO_KEY;
	/* A key that lacks only a right, or only belongs to another PD. */
	for (i = 0; i < MRS && need->rights != 0 && odd_one; i++) {
		bool lacks;

		mr = &m->mr[(start + i) % MRS];
		lacks = (mr->access & need->rights) == 0;
		if (mr->live && (mr->pd == need->pd) == lacks &&
		    (mr->buf == RECV_BUF) == need->recv && mr->len >= 8) {
			k = (start + i) % MRS;
			break;
		}
	}
	/* A key of another PD, or without the rights. */
	i = rng_below(r, MRS);
	if (odd(r, 30) && m->mr[i].live && (m->mr[i].buf == RECV_BUF) == need->recv)
		k = i;
	if (odd(r, 4)) {
		uint32_t room, special = special_key(r, m, need, buf, off, &room);

		if (special != NO_KEY) {
			*key = special;
			if (*len > room)
				*len = room;
			if (room > *len)
				*off += rng_below(r, room - *len + 1) & ~(odd(r, 3) ? 0u : 7u);
			if (odd(r, 40))
				*off = (*off + PICK(r, 1, 8)) % BUF_LEN;
			return;
		}
	}
	if (k == NO_KEY || odd(r, 60)) {
		*key = rng_below(r, NO_KEY + 1);
		*buf = need->recv ? RECV_BUF : rng_below(r, RECV_BUF);
		*off = rng_below(r, BUF_LEN);
		if (*key < MRS && m->mr[*key].gen != 0 &&
		    (m->mr[*key].buf == RECV_BUF) == need->recv) {
			*buf = m->mr[*key].buf;
			*off = m->mr[*key].off;
		}
		return;
	}
	mr = &m->mr[k];
	*key = k;
	*buf = mr->buf;
	*off = mr->off;
	if (*len > mr->len)
		*len = mr->len;
	if (mr->len > *len)
		*off += rng_below(r, mr->len - *len + 1) & ~(odd(r, 3) ? 0u : 7u);
	/* One or eight bytes across an end. */
	if (odd(r, 60))
		*off = mr->off + mr->len - *len + PICK(r, 1, 8);
	else if (odd(r, 60) && mr->off >= 8)
		*off = mr->off - PICK(r, 1, 8);
	*off %= BUF_LEN;
}

bool
gen_has_window(const struct model *m, const struct m_qp *qp)
{
	for (uint32_t i = 0; i < MWS; i++)
		if (m->mw[i].live && m->mw[i].bound && m->mw[i].type == BB_MW_TYPE_2 &&
		    m->mw[i].qp == (uint32_t)(qp - m->qp))
			return true;
	return false;
}

uint32_t
gen_window(struct rng *r, const struct model *m, const struct m_qp *qp)
{
	uint32_t start = rng_below(r, MWS), i;

	for (i = 0; i < MWS; i++) {
		const struct m_mw *w = &m->mw[(start + i) % MWS];

		if (w->live && w->bound && w->type == BB_MW_TYPE_2 &&
		    w->qp == (uint32_t)(qp - m->qp) && !odd(r, 20))
			break;
	}
	return odd(r, 30) ? rng_below(r, KEYS) : KEY_MW + (start + i) % MWS;
}

void
gen_mw(struct rng *r, const struct model *m, struct step *s)
{
	uint32_t *a = s->a;

	a[0] = rng_below(r, MWS);
	s->op = m->mw[a[0]].live ? OP_MW_FREE : OP_MW_ALLOC;
	if (s->op == OP_MW_FREE)
		return;
	a[1] = odd(r, 8) ? rng_below(r, PDS) : rng_below(r, 2);
	a[2] = odd(r, 20) ? rng_below(r, 4) : odd(r, 3) ? 1 : 2;
}

void
gen_dm(struct rng *r, const struct model *m, struct step *s)
{
	uint32_t *a = s->a, dm = rng_below(r, DMS), i;

	a[0] = dm;
	s->op = OP_DM_ALLOC;
	a[1] = odd(r, 12) ? rng_below(r, DM_LEN + 1) : DM_LEN;
	a[2] = rng_below(r, 7);
	if (!m->dm[dm].live)
		return;
	memset(a, 0, sizeof(s->a));
	a[0] = dm;
	if (m->dm[dm].refs != 0 && !odd(r, 4)) {
		s->op = odd(r, 6) ? OP_DM_FREE : OP_DM_WRITE;
		if (s->op == OP_DM_FREE)
			return;
		a[1] = rng_below(r, DM_LEN / 4) * (odd(r, 20) ? 1 : 4);
		a[2] = odd(r, 10) ? gen_len(r) % (DM_LEN + 1)
				  : rng_below(r, (DM_LEN - a[1] % DM_LEN) / 4 + 1) * 4;
		a[3] = 1 + rng_below(r, 255);
		return;
	}
	for (i = 0; i < MRS && m->mr[i].live; i++)
		;
	s->op = i < MRS ? OP_MR_REG_DM : OP_MR_DEREG;
	a[0] = i < MRS ? i : rng_below(r, MRS);
	if (i == MRS)
		return;
	a[1] = odd(r, 12) ? rng_below(r, PDS) : dm;
	a[2] = dm;
	a[3] = odd(r, 3) ? rng_below(r, DM_LEN / 4) * (odd(r, 2) ? 1 : 4) : 0;
	a[4] = odd(r, 10) ? gen_len(r) : DM_LEN - a[3];
	a[5] = odd(r, 8) ? gen_access(r) : 15 | (odd(r, 2) ? BB_ACCESS_ZERO_BASED : 0);
}

bool
gen_bind(struct rng *r, const struct model *m, uint32_t qp, struct step *s)
{
	uint32_t pd = m->qp[qp].pd, *a = s->a, start = rng_below(r, MWS), i, k;
	const struct m_mr *mr;

	s->op = OP_BIND;
	for (i = 0; i < MWS; i++) {
		const struct m_mw *w = &m->mw[(start + i) % MWS];

		/* A bound window of type 2 is mostly left alone. */
		if (w->live && (w->pd == pd || odd(r, 20)) &&
		    (w->type == BB_MW_TYPE_1 || !w->bound || odd(r, 8)))
			break;
	}
	for (k = 0; k < MRS; k++) {
		mr = &m->mr[(start + k) % MRS];
		if (mr->live && mr->dm == 0 && mr->buf != RECV_BUF &&
		    ((mr->pd == pd && mr->access & BB_ACCESS_MW_BIND) || odd(r, 40)))
			break;
	}
	if (i == MWS) {
		gen_mw(r, m, s);
		return false;
	}
	if (k == MRS) {
		gen_mr(r, s);
		s->op = OP_MR_REG;
		a[0] = rng_below(r, MRS);
		a[1] = pd;
		a[2] %= RECV_BUF;
		a[5] = 31;
		return false;
	}
	a[2] = (start + i) % MWS;
	a[3] = (start + k) % MRS;
	a[4] = mr->buf;
	a[6] = odd(r, 20) ? 0 : odd(r, 2) ? mr->len : 1 + gen_len(r) % mr->len;
	a[5] = mr->off + (mr->len > a[6] ? rng_below(r, mr->len - a[6] + 1) & ~7u : 0);
	if (odd(r, 30))
		a[5] += PICK(r, 1, 8);
	a[7] = odd(r, 8) ? rng_below(r, 64) : PICK(r, 14, 14, 14, 4, 2, 8);
	if (m->mw[a[2]].type == BB_MW_TYPE_2 && odd(r, 3))
		a[7] |= BB_ACCESS_ZERO_BASED;
	a[8] = odd(r, 10) ? rng_below(r, 256) : (m->mw[a[2]].tag + 1) & 0xff;
	a[9] = odd(r, 40);
	return true;
}

/* Picks a piece of a region of @pd. Returns false if there is none. */
static bool
gen_piece(struct rng *r, const struct model *m, uint32_t pd, uint32_t most, uint32_t *p)
{
	uint32_t start = rng_below(r, MRS), i;

	for (i = 0; i < MRS; i++) {
		const struct m_mr *mr = &m->mr[p[0] = (start + i) % MRS];

		if (!mr->live || (mr->pd != pd && !odd(r, 40)) ||
		    (!(mr->access & BB_ACCESS_LOCAL_WRITE) && !odd(r, 8)))
			continue;
		p[1] = mr->buf;
		p[3] = odd(r, 40) ? 0 : 1 + gen_len(r) % (mr->len < most ? mr->len : most);
		if (odd(r, 2))
			p[3] = (p[3] + 7) & ~7u;
		p[2] = mr->off;
		if (mr->len > p[3])
			p[2] += rng_below(r, mr->len - p[3] + 1) & ~(odd(r, 6) ? 0u : 7u);
		return true;
	}
	return false;
}

bool
gen_mkey(struct rng *r, const struct model *m, struct step *s)
{
	uint32_t *a = s->a, len = 0, i;

	a[0] = rng_below(r, MKEYS);
	s->op = m->mkey[a[0]].live ? OP_MKEY_DESTROY : OP_MKEY_CREATE;
	if (s->op == OP_MKEY_DESTROY)
		return true;
	a[1] = odd(r, 20) ? rng_below(r, PDS) : rng_below(r, 2);
	a[2] = odd(r, 4) ? gen_access(r) : 15;
	if (odd(r, 2)) {
		a[3] = odd(r, 4) ? rng_below(r, 9) : 8;
		a[4] = odd(r, 20);
	} else {
		a[4] = odd(r, 20) ? 0 : 1 + rng_below(r, MAX_SGE);
	}
	for (i = 0; i < a[4]; i++) {
		if (!gen_piece(r, m, a[1], 600, &a[5 + 4 * i]))
			return false;
		len += a[5 + 4 * i + 3];
	}
	/* Atomics need a length that is a multiple of 8. */
	if (len % 8 != 0 && !odd(r, 20))
		a[2] &= ~(uint32_t)BB_ACCESS_REMOTE_ATOMIC;
	return true;
}

bool
gen_layout(struct rng *r, const struct model *m, uint32_t qp, struct step *s)
{
	bool list = odd(r, 2);
	uint32_t *a = s->a, pd = m->qp[qp].pd, i, n;

	s->op = list ? OP_MKEY_LIST : OP_MKEY_INTERLEAVED;
	a[2] = rng_below(r, MKEYS);
	for (i = 0; i < MKEYS; i++)
		if (m->mkey[i].live && m->mkey[i].max_pieces != 0 && m->mkey[i].pd == pd)
			a[2] = i;
	a[3] = odd(r, 4) ? gen_access(r) : 15;
	if (list) {
		n = a[4] = odd(r, 30) ? 0 : 1 + rng_below(r, MAX_SGE);
	} else {
		a[4] = odd(r, 30) ? 0 : 1 + rng_below(r, 8);
		n = a[5] = odd(r, 30) ? 0 : 1 + rng_below(r, MAX_BLOCKS);
	}
	for (i = 0; i < n; i++) {
		uint32_t *p = list ? &a[5 + 4 * i] : &a[6 + 5 * i];

		if (!gen_piece(r, m, pd, list ? 600 : 64, p))
			return false;
		if (!list)
			p[4] = odd(r, 60) ? 65535 : rng_below(r, 64);
	}
	return m->mkey[a[2]].live && (m->mkey[a[2]].max_pieces != 0 || odd(r, 10));
}
