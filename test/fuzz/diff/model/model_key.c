/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Resolves addresses through keys: of memory regions, device memory, windows and indirect keys.
 * Also copies through keys.
 */
#include <string.h>

#include "diff.h"

uint32_t
model_key_gen(const struct model *m, uint32_t key)
{
	if (key < MRS)
		return m->mr[key].gen;
	if (key >= KEY_MW && key < KEY_MW + MWS)
		return model_mw_gen(&m->mw[key - KEY_MW]);
	if (key >= KEY_MKEY && key < KEY_MKEY + MKEYS)
		return m->mkey[key - KEY_MKEY].gen;
	return 0;
}

static bool
add_place(struct m_places *to, uint32_t at, uint32_t len)
{
	/* Adjacent memory is joined, whatever the keys are. */
	if (to->n != 0 && to->p[to->n - 1].at + to->p[to->n - 1].len == at) {
		to->p[to->n - 1].len += len;
		return true;
	}
	if (to->n == MAX_PLACES)
		return false;
	to->p[to->n++] = (struct m_place){at, len};
	return true;
}

bool
model_map_mr(const struct model *m, uint32_t pd, const struct m_sge *g, uint32_t right,
	     struct m_places *to)
{
	const struct m_mr *mr = &m->mr[g->key % MRS];

	if (g->key >= MRS || !mr->live || mr->gen != g->gen || mr->pd != pd ||
	    (mr->access & right) != right || mr->buf != g->buf || g->off < mr->off ||
	    g->len > mr->len || g->off - mr->off > mr->len - g->len)
		return false;
	return add_place(to, mr->base + (g->off - mr->off), g->len);
}

bool
model_map(const struct model *m, uint32_t pd, const struct m_qp *qp, const struct m_sge *g,
	  uint32_t right, struct m_places *to)
{
	if (g->key >= KEY_MW && g->key < KEY_MW + MWS)
		return model_map_mw(m, qp, g, right, to);
	if (g->key >= KEY_MKEY && g->key < KEY_MKEY + MKEYS)
		return model_map_mkey(m, pd, g, right, to);
	return model_map_mr(m, pd, g, right, to);
}

bool
model_map_list(const struct model *m, uint32_t pd, const struct m_qp *qp, const struct m_sge *sge,
	       uint32_t n, uint32_t len, uint32_t right, struct m_places *to)
{
	to->n = 0;
	for (uint32_t i = 0; i < n && len != 0; i++) {
		struct m_sge g = sge[i];

		if (g.len > len)
			g.len = len;
		/* Empty pieces are ignored. */
		if (g.len != 0 && !model_map(m, pd, qp, &g, right, to))
			return false;
		len -= g.len;
	}
	return true;
}

void
model_get(const struct model *m, const struct m_places *from, uint8_t *to)
{
	for (uint32_t i = 0; i < from->n; i++) {
		memcpy(to, &m->mem[from->p[i].at], from->p[i].len);
		to += from->p[i].len;
	}
}

void
model_put(struct model *m, const struct m_places *to, const uint8_t *from)
{
	model_clash(m, to, to);
	for (uint32_t i = 0; i < to->n; i++) {
		memcpy(&m->mem[to->p[i].at], from, to->p[i].len);
		from += to->p[i].len;
	}
}

/* Copies that overlap, or write a byte twice, are undefined. */
void
model_clash(struct model *m, const struct m_places *a, const struct m_places *b)
{
	for (uint32_t i = 0; i < a->n; i++)
		for (uint32_t k = 0; k < b->n; k++)
			if ((a != b || i != k) && a->p[i].at < b->p[k].at + b->p[k].len &&
			    b->p[k].at < a->p[i].at + a->p[i].len)
				m->blur = true;
}

uint8_t
model_recv_map(const struct model *m, const struct m_qp *p, const struct m_wqe *r, uint32_t len,
	       struct m_places *to)
{
	uint64_t room = 0;

	if (!model_map_list(m, model_recv_pd(m, p), p, r->sge, r->n, len, BB_ACCESS_LOCAL_WRITE,
			    to))
		return BB_WC_LOC_PROT_ERR;
	for (uint32_t i = 0; i < r->n; i++)
		room += r->sge[i].len;
	return room < len ? BB_WC_LOC_LEN_ERR : BB_WC_SUCCESS;
}
