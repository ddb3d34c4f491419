/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Sends: posts the WQEs of a send queue with ibv_wr_*(), or with ibv_post_send() if the provider
 * has no extended post.
 *
 * The driver completes a NOP itself, when all requests before it have completed. So the last
 * request of a doorbell, and each request before a NOP, is always posted as signalled. Otherwise
 * the driver could not detect that this
 * request has completed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_wqe_priv.h"
#include "verbs_drv.h"
#include "verbs_req.h"

/* Adds a request to own[]: the driver itself completes the request, in order. */
static void
own_add(struct verbs_qp *q, uint16_t idx, bool told, uint8_t syndrome)
{
	struct verbs_own *o = &q->own[q->own_tail++ & q->own_mask];

	o->after_seq = q->given;
	o->idx = idx;
	o->syndrome = syndrome;
	o->report = told;
}

static struct bb_wqe_ctrl *
ctrl_at(const struct bb_sq *sq, uint32_t idx)
{
	return (struct bb_wqe_ctrl *)(void *)sq->buf + (size_t)(idx & sq->mask) * 4;
}

static uint16_t
after(const struct bb_sq *sq, uint16_t idx)
{
	const uint32_t ds = bb_be32(ctrl_at(sq, idx)->qpn_ds) & BB_WQE_MAX_DS;

	if (sq->wqes[idx & sq->mask].direct != BB_SQ_BUILT)
		return (uint16_t)(idx + 1);
	return (uint16_t)(idx + bb_wqe_blocks(ds));
}

/*
 * Posts a marker request to a QP in ERR, where the provider flushes every request. The last earlier
 * request may be unsignalled, so only the completion of the marker shows that all earlier requests
 * have completed.
 */
static void
mark(const struct bb_qp *qp, struct verbs_qp *q)
{
	struct ibv_send_wr *bad, wr = {
					 .wr_id = VERBS_WR_MARK | (uint64_t)qp->user_index << 16,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	/* UD has no marker, for lack of a destination: treat all requests as completed. */
	if (qp->sq.type == BB_QPT_UD || ibv_post_send(q->ib, &wr, &bad) != 0)
		__atomic_store_n(&q->done, q->given, __ATOMIC_RELAXED);
}

/*
 * Handles the rejection of the request at block @from by the provider. Posts nothing more to the
 * provider, and completes all requests before @end with an error.
 */
static void
refused(struct bb_qp *qp, struct verbs_qp *q, uint16_t from, uint16_t end, int err)
{
	const bool bind = qp->sq.wqes[from & qp->sq.mask].opcode == BB_SQ_BIND_MW;
	uint8_t syndrome = bind ? BB_SYN_MW_BIND : BB_SYN_LOCAL_QP_OP;

	if (!q->refused) {
		q->refused = true;
		verbs_qp_stop(qp, err == VERBS_LOGGED ? NULL : "a request", err);
		if (q->done != q->given)
			mark(qp, q);
	} else {
		syndrome = BB_SYN_WR_FLUSH;
	}
	for (; from != end; from = after(&qp->sq, from)) {
		own_add(q, from, true, syndrome);
		syndrome = BB_SYN_WR_FLUSH;
	}
}

/* ---- Extended post: ibv_wr_*() */

static inline void
ex_data(struct ibv_qp_ex *ex, const struct verbs_req *r)
{
	if (r->n == 1 && !r->is_inline)
		ibv_wr_set_sge(ex, r->sge[0].lkey, r->sge[0].addr, r->sge[0].length);
	else if (!r->is_inline)
		ibv_wr_set_sge_list(ex, r->n, r->sge);
	else if (r->n == 1)
		ibv_wr_set_inline_data(ex, r->data[0].addr, r->data[0].length);
	else
		ibv_wr_set_inline_data_list(ex, r->n, r->data);
}

/* Logs that the extended post of the provider lacks the operation of @r. Returns VERBS_LOGGED. */
static int
ex_lacks(const struct verbs_qp *q, const struct verbs_req *r)
{
	BB_LOG(ERR,
	       "QP 0x%x: the provider's extended post (ibv_wr_*()) does not support the operation "
	       "%s; the QP goes to ERR",
	       q->ib->qp_num, bb_wqe_opcode_name(r->opcode));
	return VERBS_LOGGED;
}

/* Posts an atomic or a request that changes a key. Returns 0 or VERBS_LOGGED. */
static int
ex_other(struct verbs_qp *q, const struct verbs_req *r)
{
	struct ibv_qp_ex *ex = q->ex;

	switch (r->opcode) {
	case BB_WQE_ATOMIC_CS:
		ibv_wr_atomic_cmp_swp(ex, r->rkey, r->raddr, r->compare, r->swap_add);
		ex_data(ex, r);
		return 0;
	case BB_WQE_ATOMIC_FA:
		ibv_wr_atomic_fetch_add(ex, r->rkey, r->raddr, r->swap_add);
		ex_data(ex, r);
		return 0;
	case BB_WQE_SEND_INV:
		if ((q->ops & IBV_QP_EX_WITH_SEND_WITH_INV) == 0)
			return ex_lacks(q, r);
		ibv_wr_send_inv(ex, bb_be32(r->imm));
		ex_data(ex, r);
		return 0;
	case BB_SQ_LOCAL_INV:
		if ((q->ops & IBV_QP_EX_WITH_LOCAL_INV) == 0)
			return ex_lacks(q, r);
		ibv_wr_local_inv(ex, bb_be32(r->imm));
		return 0;
	case BB_SQ_BIND_MW:
		if ((q->ops & IBV_QP_EX_WITH_BIND_MW) == 0)
			return ex_lacks(q, r);
		ibv_wr_bind_mw(ex, r->mw, r->rkey, &r->bind);
		return 0;
	default:
		return ex_lacks(q, r);
	}
}

static inline int
ex_put(struct verbs_qp *q, const struct verbs_req *r)
{
	struct ibv_qp_ex *ex = q->ex;

	ex->wr_id = r->wr_id;
	ex->wr_flags = r->flags;
	switch (r->opcode) {
	case BB_WQE_RDMA_WRITE:
		ibv_wr_rdma_write(ex, r->rkey, r->raddr);
		break;
	case BB_WQE_RDMA_WRITE_IMM:
		ibv_wr_rdma_write_imm(ex, r->rkey, r->raddr, r->imm);
		break;
	case BB_WQE_RDMA_READ:
		ibv_wr_rdma_read(ex, r->rkey, r->raddr);
		break;
	case BB_WQE_SEND:
		ibv_wr_send(ex);
		break;
	case BB_WQE_SEND_IMM:
		ibv_wr_send_imm(ex, r->imm);
		break;
	default:
		return ex_other(q, r);
	}
	if (r->ah != NULL)
		ibv_wr_set_ud_addr(ex, r->ah, r->dest_qpn, r->qkey);
	ex_data(ex, r);
	return 0;
}

/* ---- ibv_post_send(), one request per call; this path is not optimized */

static const struct {
	uint8_t wqe;
	enum ibv_wr_opcode wr;
} plain_opcodes[] = {
	{BB_WQE_RDMA_WRITE, IBV_WR_RDMA_WRITE},
	{BB_WQE_RDMA_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM},
	{BB_WQE_SEND, IBV_WR_SEND},
	{BB_WQE_SEND_IMM, IBV_WR_SEND_WITH_IMM},
	{BB_WQE_SEND_INV, IBV_WR_SEND_WITH_INV},
	{BB_WQE_RDMA_READ, IBV_WR_RDMA_READ},
	{BB_WQE_ATOMIC_CS, IBV_WR_ATOMIC_CMP_AND_SWP},
	{BB_WQE_ATOMIC_FA, IBV_WR_ATOMIC_FETCH_AND_ADD},
	{BB_SQ_LOCAL_INV, IBV_WR_LOCAL_INV},
	{BB_SQ_BIND_MW, IBV_WR_BIND_MW},
};

static void
plain_args(const struct verbs_req *r, struct ibv_send_wr *wr)
{
	wr->imm_data = r->imm;
	switch (r->opcode) {
	case BB_WQE_SEND_INV:
	case BB_SQ_LOCAL_INV:
		wr->invalidate_rkey = bb_be32(r->imm);
		break;
	case BB_SQ_BIND_MW:
		wr->bind_mw.mw = r->mw;
		wr->bind_mw.rkey = r->rkey;
		wr->bind_mw.bind_info = r->bind;
		break;
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
		wr->wr.atomic.remote_addr = r->raddr;
		wr->wr.atomic.rkey = r->rkey;
		wr->wr.atomic.compare_add =
			r->opcode == BB_WQE_ATOMIC_CS ? r->compare : r->swap_add;
		wr->wr.atomic.swap = r->swap_add;
		break;
	default:
		if (r->ah != NULL) {
			wr->wr.ud.ah = r->ah;
			wr->wr.ud.remote_qpn = r->dest_qpn;
			wr->wr.ud.remote_qkey = r->qkey;
		} else {
			wr->wr.rdma.remote_addr = r->raddr;
			wr->wr.rdma.rkey = r->rkey;
		}
	}
}

/* Returns why iWARP does not support @r, NULL if it does. Some providers would accept @r. */
static const char *
iwarp_lacks(const struct bb_dev *dev, const struct verbs_req *r)
{
	switch (r->opcode) {
	case BB_WQE_RDMA_WRITE_IMM:
	case BB_WQE_SEND_IMM:
		return "immediate data";
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
		return dev->attr.atomics ? NULL : "atomics";
	case BB_WQE_RDMA_READ:
		return r->n > dev->attr.max_read_sge
			       ? "READs with more SGEs than max_read_sge of bb_dev_query()"
			       : NULL;
	default:
		return NULL;
	}
}

static int
plain_put(struct verbs_qp *q, const struct verbs_req *r)
{
	struct ibv_send_wr *bad, wr = {.wr_id = r->wr_id, .send_flags = r->flags};
	const struct bb_dev *dev = q->bb->ctrl->pd->dev;
	const char *lacks = dev->iwarp ? iwarp_lacks(dev, r) : NULL;
	struct ibv_sge sge[VERBS_MAX_SGE];
	uint32_t i;

	if (lacks != NULL) {
		BB_LOG(ERR, "QP 0x%x: iWARP does not support %s; the QP goes to ERR", q->bb->qpn,
		       lacks);
		return VERBS_LOGGED;
	}

	for (i = 0; i < RTE_DIM(plain_opcodes); i++)
		if (plain_opcodes[i].wqe == r->opcode)
			break;
	if (i == RTE_DIM(plain_opcodes))
		return EOPNOTSUPP;
	wr.opcode = plain_opcodes[i].wr;
	/*
	 * siw rejects a fence on a READ ("A READ cannot be fenced", siw_activate_tx()). iWARP
	 * executes READs in order in any case, so remove the flag.
	 */
	if (r->opcode == BB_WQE_RDMA_READ && verbs_dev_of(dev)->siw)
		wr.send_flags &= ~(unsigned int)IBV_SEND_FENCE;
	plain_args(r, &wr);
	wr.num_sge = (int)r->n;
	wr.sg_list = (struct ibv_sge *)(uintptr_t)r->sge;
	if (r->is_inline) {
		wr.sg_list = sge;
		for (i = 0; i < r->n; i++) {
			sge[i].addr = (uintptr_t)r->data[i].addr;
			sge[i].length = (uint32_t)r->data[i].length;
			sge[i].lkey = 0;
		}
	}
	/* siw's provider returns a negative errno, so use the absolute value. */
	return abs(ibv_post_send(q->ib, &wr, &bad));
}

/*
 * Binds a window of type 1 with ibv_bind_mw(). That call computes the new key with ibv_inc_rkey()
 * from the key in the window's struct, but Bluebell has already chosen the new key. So the function
 * first sets the key in the struct to the predecessor of the new key. If all earlier binds
 * succeeded, the struct already has that key. The man page permits the change: "fix the mw
 * structure" (man ibv_bind_mw).
 */
static int
bind_put(struct verbs_qp *q, const struct verbs_req *r)
{
	struct ibv_mw_bind b = {.wr_id = r->wr_id, .send_flags = r->flags, .bind_info = r->bind};

	r->mw->rkey = (r->rkey & ~UINT32_C(0xff)) | ((r->rkey - 1) & 0xff);
	return ibv_bind_mw(q->ib, r->mw, &b);
}

/* ---- Rings */

/* Requests posted between ibv_wr_start() and ibv_wr_complete(). */
struct batch {
	bool open;
	uint16_t from;  /* first block of the batch */
	uint32_t given; /* value of q->given before the batch, to restore it after an error */
};

/* Completes the batch. Returns 0, or an errno if the provider accepted no request of the batch. */
static int
batch_end(struct verbs_qp *q, struct batch *b)
{
	int err;

	if (!b->open)
		return 0;
	b->open = false;
	if (q->given == b->given) {
		ibv_wr_abort(q->ex);
		return 0;
	}
	err = ibv_wr_complete(q->ex);
	if (err != 0)
		q->given = b->given;
	return err;
}

static int
put(struct verbs_qp *q, struct batch *b, const struct verbs_req *r, uint16_t idx)
{
	int err;

	if (bb_unlikely(q->ex == NULL || r->n > q->ex_pieces ||
			(r->opcode == BB_SQ_BIND_MW && r->mw->type == IBV_MW_TYPE_1))) {
		err = batch_end(q, b);
		if (err != 0)
			return err;
		b->from = idx;
		b->given = q->given;
		if (r->opcode == BB_SQ_BIND_MW && r->mw->type == IBV_MW_TYPE_1)
			return bind_put(q, r);
		return plain_put(q, r);
	}
	if (!b->open) {
		ibv_wr_start(q->ex);
		b->open = true;
		b->from = idx;
		b->given = q->given;
	}
	err = ex_put(q, r);
	if (bb_unlikely(err != 0)) {
		/* Only this request was rejected, so first post the requests before it. */
		int first = batch_end(q, b);

		if (first != 0)
			return first;
		b->from = idx;
	}
	return err;
}

/* Posts a signalled WRITE of zero bytes in place of a NOP: see verbs_post.c. */
static void
nop_put(struct verbs_qp *q, struct batch *b, const struct bb_sq_wqe *w, uint16_t idx, bool told)
{
	struct ibv_qp_ex *ex = q->ex;

	if (!b->open) {
		ibv_wr_start(ex);
		b->open = true;
		b->from = idx;
		b->given = q->given;
	}
	ex->wr_id = q->wr_base | idx | (told ? VERBS_WR_REPORT : 0);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, 0, 0);
	ibv_wr_set_sge_list(ex, 0, NULL);
	__atomic_store_n(&q->given, w->seq, __ATOMIC_RELAXED);
}

/* Returns true if the request before block @idx was posted last and is unsignalled. */
static bool
silent(const struct bb_sq *sq, const struct verbs_qp *q, uint16_t idx)
{
	/* Inside a longer WQE, entries are from an earlier pass over the ring: seq differs. */
	const struct bb_sq_wqe *w = &sq->wqes[(idx - 1u) & sq->mask];

	return w->direct == BB_SQ_DIRECT_SILENT && w->seq == q->given;
}

/* Returns true if the request before @next must be signalled: see the top of the file. */
static inline bool
awaited(const struct bb_sq *sq, uint16_t next, uint16_t end)
{
	return next == end || sq->wqes[next & sq->mask].opcode == BB_WQE_NOP;
}

/*
 * Fast path: posts WRITEs and SENDs of one SGE from block @idx on, with no flag other than the
 * request for a CQE. Stops at the first other request. Returns its index; @end if there is none.
 */
static inline uint16_t
put_plain(const struct bb_qp *qp, struct verbs_qp *q, struct batch *b, uint16_t idx, uint16_t end)
{
	struct ibv_qp_ex *ex = q->ex;
	const struct bb_sq *sq = &qp->sq;
	const struct bb_sq_wqe *w = NULL;

	while (idx != end) {
		const struct bb_wqe_ctrl *ctrl = ctrl_at(sq, idx);
		const struct bb_wqe_data *d = (const void *)(ctrl + 2);
		const uint32_t ds = bb_be32(ctrl->qpn_ds) & BB_WQE_MAX_DS;
		const uint8_t opcode = sq->wqes[idx & sq->mask].opcode;
		const bool report = (ctrl->fm_ce_se & BB_WQE_CE_CQE) != 0;
		uint32_t len;

		if (opcode == BB_WQE_SEND && ds == 2)
			d--;
		else if (opcode != BB_WQE_RDMA_WRITE || ds != 3)
			break;
		len = bb_be32(d->byte_count);
		/* 0 means 2^31 bytes, larger values mean inline data; the slow path handles both.
		 */
		if (len - 1 >= BB_WQE_INLINE - 1 || (ctrl->fm_ce_se & ~BB_WQE_CE_CQE) != 0)
			break;
		if (!b->open) {
			ibv_wr_start(ex);
			b->open = true;
			b->from = idx;
			b->given = q->given;
		}
		ex->wr_id = q->wr_base | idx | (report ? VERBS_WR_REPORT : 0);
		ex->wr_flags =
			report || awaited(sq, (uint16_t)(idx + 1), end) ? IBV_SEND_SIGNALED : 0;
		if (opcode == BB_WQE_SEND) {
			ibv_wr_send(ex);
		} else {
			const struct bb_wqe_raddr *raddr = (const void *)(ctrl + 1);

			ibv_wr_rdma_write(ex, bb_be32(raddr->rkey), bb_be64(raddr->raddr));
		}
		ibv_wr_set_sge(ex, bb_be32(d->lkey), bb_be64(d->addr), len);
		w = &sq->wqes[idx & sq->mask];
		idx++;
	}
	if (w != NULL)
		__atomic_store_n(&q->given, w->seq, __ATOMIC_RELAXED);
	return idx;
}

/* Posts the WQEs from @idx on. Returns an errno if those from b->from on were rejected. */
static __attribute__((noinline)) int
give(struct bb_qp *qp, struct verbs_qp *q, struct batch *b, uint16_t idx, uint16_t end)
{
	const struct bb_sq *sq = &qp->sq;
	struct verbs_req r;

	for (;;) {
		const struct bb_sq_wqe *w;
		struct bb_wqe_ctrl *ctrl;
		uint16_t next;
		uint32_t ds;
		int err;

		if (bb_likely(q->ex != NULL))
			idx = put_plain(qp, q, b, idx, end);
		if (idx == end)
			return 0;
		ctrl = ctrl_at(sq, idx);
		w = &sq->wqes[idx & sq->mask];
		ds = bb_be32(ctrl->qpn_ds) & BB_WQE_MAX_DS;
		next = (uint16_t)(idx + bb_wqe_blocks(ds));
		if (bb_unlikely(w->opcode == BB_WQE_NOP)) {
			const bool told = (ctrl->fm_ce_se & BB_WQE_CE_CQE) != 0;

			if (silent(sq, q, idx))
				nop_put(q, b, w, idx, told);
			else
				own_add(q, idx, told, 0);
			idx = next;
			continue;
		}
		err = verbs_req_read(q, sq, ctrl, w, ds, &r);
		if (bb_unlikely(err != 0)) {
			err = batch_end(q, b);
			if (err != 0)
				return err;
			b->from = idx;
			return VERBS_LOGGED;
		}
		r.wr_id |= q->wr_base | idx;
		if (awaited(sq, next, end))
			r.flags |= IBV_SEND_SIGNALED;
		err = put(q, b, &r, idx);
		if (bb_unlikely(err != 0))
			return err;
		__atomic_store_n(&q->given, w->seq, __ATOMIC_RELAXED);
		idx = next;
	}
}

/*
 * Returns the first block of the requests that verbs_post() posted since the last doorbell. The
 * requests end before block @end. Each has one block, and no other blocks are between them.
 */
static uint16_t
direct_from(const struct bb_sq *sq, uint16_t end)
{
	const uint32_t n = sq->wqes[(end - 1u) & sq->mask].seq - (uint32_t)sq->rung_seq;
	const struct bb_sq_wqe *first = &sq->wqes[(end - n) & sq->mask];

	/* If there is no such request, this block has an earlier request or is unused. */
	if (n - 1 >= sq->depth || first->direct == BB_SQ_BUILT ||
	    first->seq != (uint32_t)sq->rung_seq + 1)
		return end;
	return (uint16_t)(end - n);
}

/* Returns the first block that was posted since the last doorbell. */
static uint16_t
first_of(const struct bb_sq *sq, const struct verbs_qp *q)
{
	const bool built = sq->built != BB_SQ_NONE;

	if (q->open)
		return direct_from(sq, (uint16_t)(built ? sq->built : sq->pi));
	return built ? (uint16_t)sq->built : q->head;
}

static void
hand_over(struct bb_sq *sq, int err)
{
	struct bb_qp *qp = container_of(sq, struct bb_qp, sq);
	struct verbs_qp *q = sq->driver;
	const uint16_t end = (uint16_t)sq->pi;
	const uint16_t built = sq->built != BB_SQ_NONE ? (uint16_t)sq->built : end;
	uint16_t idx = first_of(sq, q);
	struct batch b = {.open = q->open, .from = idx};

	/*
	 * verbs_sq_ring() has run since the batch was opened and has not updated q->given. It rings
	 * only requests that are posted to the provider, so the last request rung is also the last
	 * one posted.
	 */
	if (q->open && q->opened != (uint32_t)sq->rung_seq) {
		q->opened = (uint32_t)sq->rung_seq;
		__atomic_store_n(&q->given, q->opened, __ATOMIC_RELAXED);
	}
	b.given = q->given;
	if (bb_sq_rung(sq) == 0)
		return;
	q->head = end;
	q->open = false;
	sq->direct_limit = 0;
	sq->built = BB_SQ_NONE;
	if (q->refused || err != 0) {
		refused(qp, q, idx, end, err);
		verbs_own_done(q);
		return;
	}
	if (b.open && idx != built) {
		idx = built;
		__atomic_store_n(&q->given, sq->wqes[(idx - 1u) & sq->mask].seq, __ATOMIC_RELAXED);
	}
	err = give(qp, q, &b, idx, end);
	if (bb_likely(err == 0))
		err = batch_end(q, &b);
	if (bb_unlikely(err != 0))
		refused(qp, q, b.from, end, err);
	if (bb_unlikely(q->own_head != q->own_tail))
		verbs_own_done(q);
}

void
verbs_sq_give(struct bb_sq *sq)
{
	hand_over(sq, 0);
}

void
verbs_sq_refused(struct bb_sq *sq, int err)
{
	hand_over(sq, err);
}
