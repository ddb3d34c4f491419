/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Requests: translates a step to work requests and to the calls of bb_post.h. */
#include <string.h>

#include "exec.h"

/* A work request and the memory it points to. */
struct request {
	struct bb_send_wr wr;
	struct bb_sge sge[MAX_SGE + 1];
	uint8_t data[MAX_INLINE];
};

/*
 * Returns a key's number. Each device numbers its keys by itself, so a key of the other device
 * may be valid here by chance. Such a key would test nothing.
 */
uint32_t
exec_key_on(const struct exec *x, const uint32_t *keys, uint32_t slot, uint32_t dev)
{
	return keys[slot != NO_KEY && x->key_dev[slot] != dev ? NO_KEY : slot];
}

static uint32_t
lkey_of(const struct exec *x, const struct model *m, uint32_t qp, uint32_t slot)
{
	return exec_key_on(x, x->lkey, slot, m->qp[qp].pd % x->world.devs);
}

static uint32_t
window_key(const struct exec *x, uint32_t mw, uint32_t tag)
{
	return (x->mw_first[mw] & ~0xffu) | ((x->mw_first[mw] + tag) & 0xff);
}

/* Computes the windows' keys, which binds change. */
static void
keys_of_windows(struct exec *x, const struct model *m)
{
	for (uint32_t i = 0; i < MWS; i++)
		if (x->mw[i] != NULL)
			x->rkey[KEY_MW + i] = window_key(x, i, m->mw[i].tag);
}

static uint32_t
rkey_of(const struct exec *x, const struct model *m, uint32_t qp, uint32_t slot)
{
	const uint32_t peer = m->qp[qp].peer;

	return exec_key_on(x, x->rkey, slot, peer < QPS ? m->qp[peer].pd % x->world.devs : 0);
}

static enum bb_wr_opcode
opcode_of(uint32_t op)
{
	switch (op) {
	case OP_WRITE:
	case OP_WRITE_INLINE:
		return BB_WR_RDMA_WRITE;
	case OP_WRITE_IMM:
	case OP_WRITE_IMM_INLINE:
		return BB_WR_RDMA_WRITE_WITH_IMM;
	case OP_READ:
		return BB_WR_RDMA_READ;
	case OP_CMP_SWAP:
		return BB_WR_ATOMIC_CMP_AND_SWP;
	case OP_FETCH_ADD:
		return BB_WR_ATOMIC_FETCH_AND_ADD;
	case OP_MASKED_CMP_SWAP:
		return BB_WR_MASKED_CMP_AND_SWP;
	case OP_MASKED_FETCH_ADD:
		return BB_WR_MASKED_FETCH_AND_ADD;
	case OP_BIND:
		return BB_WR_BIND_MW;
	case OP_LOCAL_INV:
		return BB_WR_LOCAL_INV;
	case OP_SEND_INV:
	case OP_SEND_INV_INLINE:
		return BB_WR_SEND_WITH_INV;
	default:
		return model_has_imm(op) ? BB_WR_SEND_WITH_IMM : BB_WR_SEND;
	}
}

static void
sges_of(const struct exec *x, const struct model *m, uint32_t qp, const struct m_wqe *w,
	struct request *r)
{
	for (uint32_t i = 0; i < w->n; i++)
		r->sge[i] = (struct bb_sge){exec_addr(x, w->sge[i].buf, w->sge[i].off),
					    w->sge[i].len, lkey_of(x, m, qp, w->sge[i].key)};
}

static void
request_of(struct exec *x, const struct model *m, const struct step *s, uint64_t wr_id,
	   struct request *r)
{
	uint32_t qp = s->a[A_QP], rkey;
	uint64_t raddr;
	struct m_wqe w;

	memset(r, 0, sizeof(*r));
	(void)model_wqe_of(m, s, &w);
	keys_of_windows(x, m);
	raddr = exec_addr(x, w.rbuf, w.roff);
	rkey = rkey_of(x, m, qp, w.rkey);
	r->wr = (struct bb_send_wr){.wr_id = wr_id,
				    .opcode = opcode_of(s->op),
				    .flags = s->a[A_FLAGS] & ~LISTED,
				    .sge = r->sge,
				    .nsge = w.n,
				    .imm_or_inv = w.imm};
	sges_of(x, m, qp, &w, r);
	if (w.is_inline) {
		memcpy(r->data, w.data, w.len);
		r->sge[0] = (struct bb_sge){(uintptr_t)r->data, w.len, 0};
		r->wr.nsge = 1;
	} else if (w.n == MAX_SGE && s->a[A_N] > MAX_SGE) {
		/* More pieces than the limit: the last ones are empty. */
		r->wr.nsge = MAX_SGE + 1;
	}
	if (model_is_ud(s->op)) {
		r->wr.ud.ah = x->ah[s->a[w.is_inline ? I_RKEY : A_RKEY]];
		/* As with keys: a number of the other device may be valid here. */
		r->wr.ud.qpn = x->qp[w.dest] != NULL && m->qp[w.dest].pd % m->devs == w.ah.dev
				       ? x->qp[w.dest]->qpn
				       : NO_QPN;
		r->wr.ud.qkey = w.qkey;
	} else if (s->op == OP_BIND) {
		r->wr.bind_mw.mw = x->mw[w.mw];
		r->wr.bind_mw.mr = w.bind.key < MRS ? x->mr[w.bind.key] : NULL;
		r->wr.bind_mw.addr = exec_addr(x, w.bind.buf, w.bind.off);
		r->wr.bind_mw.len = w.bind.len;
		r->wr.bind_mw.access = w.access;
		r->wr.bind_mw.rkey = window_key(x, w.mw, w.tag);
	} else if (s->op == OP_LOCAL_INV) {
		r->wr.imm_or_inv = exec_key_on(x, x->rkey, w.rkey, m->qp[qp].pd % x->world.devs);
	} else if (s->op == OP_SEND_INV || s->op == OP_SEND_INV_INLINE) {
		r->wr.imm_or_inv = rkey;
	} else if (model_is_atomic(s->op)) {
		r->wr.atomic.raddr = raddr;
		r->wr.atomic.rkey = rkey;
		r->wr.atomic.compare_add = w.x;
		r->wr.atomic.swap = w.y;
		r->wr.atomic.compare_mask = w.x_mask;
		r->wr.atomic.swap_mask = w.y_mask;
	} else {
		r->wr.rdma.raddr = raddr;
		r->wr.rdma.rkey = rkey;
	}
}

static int
post_inline(struct bb_qp *qp, const struct step *s, const struct request *r)
{
	const struct bb_send_wr *w = &r->wr;
	uint32_t len = r->sge[0].len;

	switch (s->op) {
	case OP_WRITE_INLINE:
		return bb_post_write_inline(qp, w->wr_id, r->data, len, w->rdma.raddr, w->rdma.rkey,
					    w->flags);
	case OP_WRITE_IMM_INLINE:
		return bb_post_write_imm_inline(qp, w->wr_id, r->data, len, w->rdma.raddr,
						w->rdma.rkey, w->imm_or_inv, w->flags);
	case OP_SEND_INLINE:
		return bb_post_send_inline(qp, w->wr_id, r->data, len, w->flags);
	case OP_SEND_IMM_INLINE:
		return bb_post_send_imm_inline(qp, w->wr_id, r->data, len, w->imm_or_inv, w->flags);
	case OP_SEND_INV_INLINE:
		return bb_post_send_inv_inline(qp, w->wr_id, r->data, len, w->imm_or_inv, w->flags);
	case OP_SEND_UD_INLINE:
		return bb_post_send_ud_inline(qp, w->wr_id, r->data, len, w->ud.ah, w->ud.qpn,
					      w->ud.qkey, w->flags);
	default:
		return bb_post_send_ud_imm_inline(qp, w->wr_id, r->data, len, w->ud.ah, w->ud.qpn,
						  w->ud.qkey, w->imm_or_inv, w->flags);
	}
}

static int
bind(struct exec *x, const struct step *s, const struct bb_send_wr *w)
{
	struct bb_qp *qp = x->qp[s->a[A_QP]];
	struct bb_mw *mw = w->bind_mw.mw;
	int ret;

	/* The call for its type, unless the step says otherwise. */
	if ((mw->type == BB_MW_TYPE_1) != (s->a[9] != 0))
		ret = bb_mw_bind(qp, w->wr_id, mw, w->bind_mw.mr, w->bind_mw.addr, w->bind_mw.len,
				 w->bind_mw.access, w->flags);
	else
		ret = bb_post_bind_mw(qp, w->wr_id, mw, w->bind_mw.rkey, w->bind_mw.mr,
				      w->bind_mw.addr, w->bind_mw.len, w->bind_mw.access, w->flags);
	/* Binds that failed before have given the window its earlier key back. */
	return ret == 0 && mw->rkey != w->bind_mw.rkey ? -EPROTO : ret;
}

static int
lay_out(const struct exec *x, const struct model *m, const struct step *s, uint64_t wr_id)
{
	const uint32_t *a = s->a, dev = m->qp[a[0]].pd % m->devs;
	struct bb_interleaved block[MAX_SGE] = {{0}};
	struct bb_sge sge[MAX_SGE] = {{0}};
	struct bb_qp *qp = x->qp[a[0]];
	struct m_wqe w;

	(void)model_wqe_of(m, s, &w);
	for (uint32_t i = 0; i < w.layout.n; i++) {
		const struct m_sge *g = &w.layout.piece[i];
		uint32_t lkey = exec_key_on(x, x->lkey, g->key, dev);

		sge[i] = (struct bb_sge){exec_addr(x, g->buf, g->off), g->len, lkey};
		block[i] = (struct bb_interleaved){sge[i].addr, g->len, w.layout.skip[i], lkey};
	}
	if (s->op == OP_MKEY_LIST)
		return bb_post_mkey_list(qp, wr_id, x->mkey[a[2]], w.access, sge, w.layout.n,
					 a[A_FLAGS]);
	return bb_post_mkey_interleaved(qp, wr_id, x->mkey[a[2]], w.access, w.layout.repeat, block,
					w.layout.n, a[A_FLAGS]);
}

int
exec_post(struct exec *x, const struct model *m, const struct step *s)
{
	uint64_t wr_id = (m->next_wr + 1) << 1 | (s->op == OP_RECV);
	struct bb_qp *qp = x->qp[s->a[A_QP]];
	const struct bb_send_wr *w;
	struct request r;

	if (s->op == OP_NOP)
		return bb_post_nop(qp, wr_id, s->a[A_FLAGS]);
	if (model_is_layout(s->op))
		return lay_out(x, m, s, wr_id);
	request_of(x, m, s, wr_id, &r);
	w = &r.wr;
	switch (s->op) {
	case OP_RECV:
		return bb_post_recv(qp, wr_id, w->sge, w->nsge);
	case OP_WRITE:
		return bb_post_write(qp, wr_id, w->sge, w->nsge, w->rdma.raddr, w->rdma.rkey,
				     w->flags);
	case OP_WRITE_IMM:
		return bb_post_write_imm(qp, wr_id, w->sge, w->nsge, w->rdma.raddr, w->rdma.rkey,
					 w->imm_or_inv, w->flags);
	case OP_READ:
		return bb_post_read(qp, wr_id, w->sge, w->nsge, w->rdma.raddr, w->rdma.rkey,
				    w->flags);
	case OP_SEND:
		return bb_post_send(qp, wr_id, w->sge, w->nsge, w->flags);
	case OP_SEND_IMM:
		return bb_post_send_imm(qp, wr_id, w->sge, w->nsge, w->imm_or_inv, w->flags);
	case OP_FETCH_ADD:
		return bb_post_fetch_add(qp, wr_id, w->sge, w->atomic.raddr, w->atomic.rkey,
					 w->atomic.compare_add, w->flags);
	case OP_CMP_SWAP:
		return bb_post_cmp_swap(qp, wr_id, w->sge, w->atomic.raddr, w->atomic.rkey,
					w->atomic.compare_add, w->atomic.swap, w->flags);
	case OP_SEND_INV:
		return bb_post_send_inv(qp, wr_id, w->sge, w->nsge, w->imm_or_inv, w->flags);
	case OP_BIND:
		return bind(x, s, w);
	case OP_LOCAL_INV:
		return bb_post_local_inv(qp, wr_id, w->imm_or_inv, w->flags);
	case OP_MASKED_CMP_SWAP:
		return bb_post_masked_cmp_swap(qp, wr_id, w->sge, w->atomic.raddr, w->atomic.rkey,
					       w->atomic.compare_add, w->atomic.compare_mask,
					       w->atomic.swap, w->atomic.swap_mask, w->flags);
	case OP_MASKED_FETCH_ADD:
		return bb_post_masked_fetch_add(qp, wr_id, w->sge, w->atomic.raddr, w->atomic.rkey,
						w->atomic.compare_add, w->atomic.compare_mask,
						w->flags);
	case OP_SEND_UD:
		return bb_post_send_ud(qp, wr_id, w->sge, w->nsge, w->ud.ah, w->ud.qpn, w->ud.qkey,
				       w->flags);
	case OP_SEND_UD_IMM:
		return bb_post_send_ud_imm(qp, wr_id, w->sge, w->nsge, w->ud.ah, w->ud.qpn,
					   w->ud.qkey, w->imm_or_inv, w->flags);
	default:
		return post_inline(qp, s, &r);
	}
}

int
exec_list(struct exec *x, const struct model *m, const struct step *s)
{
	bool recv = s->op == OP_RECV_LIST;
	struct bb_qp *qp = x->qp[s->a[A_QP]];
	struct bb_recv_wr recvs[MAX_LIST];
	struct bb_send_wr sends[MAX_LIST];
	struct request r[MAX_LIST];
	struct step list[MAX_LIST];
	uint32_t n = model_list_get(m, s->a[A_QP], recv, list), i, done;
	int err;

	for (i = 0; i < n; i++) {
		uint64_t wr_id = (m->next_wr + 1 + i) << 1 | recv;

		request_of(x, m, &list[i], wr_id, &r[i]);
		/* Inline data in two pieces. */
		if (model_is_inline(list[i].op)) {
			uint32_t half = r[i].sge[0].len / 2;

			r[i].sge[1] = r[i].sge[0];
			r[i].sge[0].len = half;
			r[i].sge[1].addr += half;
			r[i].sge[1].len -= half;
			r[i].wr.nsge = 2;
			r[i].wr.flags |= BB_SEND_INLINE;
		}
		sends[i] = r[i].wr;
		recvs[i] = (struct bb_recv_wr){wr_id, r[i].wr.sge, r[i].wr.nsge};
	}
	err = 1;
	done = recv ? bb_qp_post_recv_list(qp, recvs, n, &err)
		    : bb_qp_post_list(qp, sends, n, &err);
	return (int)(done << 8) | -err;
}

int
exec_srq(struct exec *x, const struct model *m, const struct step *s)
{
	struct bb_sge sge[MAX_SGE + 1] = {{0}};
	const uint32_t *a = s->a;
	struct bb_srq_attr attr;
	struct m_wqe w;
	int ret;

	switch (s->op) {
	case OP_SRQ_CREATE:
		bb_srq_attr_init(&attr);
		attr.depth = a[2];
		attr.max_sge = a[3];
		attr.limit = a[4];
		return bb_srq_create(x->pd[a[1]], &attr, &x->srq[a[0]]);
	case OP_SRQ_DESTROY:
		ret = bb_srq_destroy(x->srq[a[0]]);
		if (ret == 0)
			x->srq[a[0]] = NULL;
		return ret;
	case OP_SRQ_MODIFY:
		return bb_srq_modify(x->srq[a[0]], a[1]);
	case OP_SRQ_RING:
		bb_srq_ring(x->srq[a[0]]);
		return 0;
	default:
		(void)model_wqe_of(m, s, &w);
		for (uint32_t i = 0; i < w.n; i++)
			sge[i] = (struct bb_sge){
				exec_addr(x, w.sge[i].buf, w.sge[i].off), w.sge[i].len,
				exec_key_on(x, x->lkey, w.sge[i].key, m->srq[a[0]].pd % m->devs)};
		return bb_post_srq_recv(x->srq[a[0]], (m->next_wr + 1) << 1 | 1, sge,
					a[A_N] > MAX_SGE ? MAX_SGE + 1 : w.n);
	}
}
