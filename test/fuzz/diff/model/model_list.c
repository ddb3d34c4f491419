/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Lists of requests (man ibv_post_send: bad_wr). Steps with LISTED save requests; post_list or
 * recv_list posts the saved ones up to the first that is rejected.
 */
#include <string.h>

#include "diff.h"

static uint32_t
plain(uint32_t op)
{
	switch (op) {
	case OP_SEND_UD:
		return OP_SEND;
	case OP_SEND_UD_IMM:
		return OP_SEND_IMM;
	case OP_SEND_UD_INLINE:
		return OP_SEND_INLINE;
	default:
		return OP_SEND_IMM_INLINE;
	}
}

uint32_t
model_list_get(const struct model *m, uint32_t qp, bool recv, struct step *s)
{
	const struct m_list *l = recv ? &m->qp[qp].recv_list : &m->qp[qp].send_list;
	uint32_t i, n = 0;
	struct verdict v;

	for (i = 0; i < l->n; i++) {
		uint32_t at = model_is_inline(l->s[i].op) ? I_RKEY : A_RKEY;

		s[n] = l->s[i];
		/*
		 * The QP type decides the kind of SEND; types other than UD ignore the
		 * destination.
		 */
		if (model_is_ud(s[n].op) && m->qp[qp].type != BB_QPT_UD) {
			s[n].op = plain(s[n].op);
			memset(&s[n].a[at], 0, 3 * sizeof(s[n].a[0]));
		}
		model_judge_post(m, &s[n], true, &v);
		n += !v.skip;
	}
	return n;
}

void
model_list_add(struct model *m, const struct step *s)
{
	struct m_qp *qp = &m->qp[s->a[A_QP]];
	struct m_list *l = s->op == OP_RECV ? &qp->recv_list : &qp->send_list;

	l->s[l->n++] = *s;
}

bool
model_list_post(struct model *m, const struct step *s, int ret, char *why, size_t size)
{
	bool recv = s->op == OP_RECV_LIST;
	struct step list[MAX_LIST];
	uint32_t n = model_list_get(m, s->a[A_QP], recv, list), i, k;
	uint32_t done = (uint32_t)ret >> 8;
	int err = -(ret & 0xff);
	struct verdict v;

	if (done > n || (done == n && err != 0)) {
		snprintf(why, size, "the list of %u: %u posted, error %d", n, done, err);
		return false;
	}
	for (i = 0; i < n && i <= done; i++) {
		int one = i < done ? 0 : err != 0 ? err : -EAGAIN;

		model_judge_post(m, &list[i], true, &v);
		for (k = 0; k < v.n && v.ret[k] != one; k++)
			;
		if (k == v.n) {
			snprintf(why, size, "the list of %u: request %u (%s) returned %d, not %d%s",
				 n, i, op_name(list[i].op), one, v.ret[0],
				 v.n > 1 ? " or another" : "");
			return false;
		}
		if (one == 0)
			model_post(m, &list[i]);
	}
	if (recv)
		m->qp[s->a[A_QP]].recv_list.n = 0;
	else
		m->qp[s->a[A_QP]].send_list.n = 0;
	return true;
}
