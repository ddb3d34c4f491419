/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory windows: bound by requests of the target, used by its peer, and invalidated. */
#include "conform.h"

#define MAN        "ibv_alloc_mw(3)"
#define MAN_BIND   "ibv_bind_mw(3), ibv_post_send(3)"
#define MAN_DEREG  "ibv_dereg_mr(3)"
#define GROUP_HELD "window/rc/region-is-held"
#define LEN        4096u
#define OFF        8192u /* offset of the window in B's arena */
#define RW         BB_ACCESS_REMOTE_WRITE
#define RR         BB_ACCESS_REMOTE_READ

struct win {
	struct pair p;
	struct bb_mr *mr;
	struct bb_mw *mw;
};

static void
undo_mw(void *mw)
{
	(void)bb_mw_free(mw);
}

static struct bb_mw *
mw_of(struct fx *fx, struct bb_pd *pd, enum bb_mw_type type)
{
	struct bb_mw *mw;

	OK(fx, bb_mw_alloc(pd, type, &mw));
	fx_defer(fx, undo_mw, mw);
	return mw;
}

static void
win_make(struct fx *fx, struct win *w, enum bb_mw_type type)
{
	w->p = fx_own_pair(fx);
	w->mr = fx_mr(fx, fx->b.pd, fx->b.mem, ARENA, fx->access | BB_ACCESS_MW_BIND);
	w->mw = mw_of(fx, fx->b.pd, type);
}

/* The request posted on @qp of B completes as @opcode. */
static void
b_done(struct fx *fx, struct bb_qp *qp, int posted, enum bb_wc_opcode opcode)
{
	struct bb_wc wc;

	wc = complete(fx, fx->b.cq, qp, posted, 31, BB_WC_SUCCESS, "the target's request");
	CHECK(fx, wc.opcode == opcode, "opcode %u, expected %u", wc.opcode, opcode);
}

static void
bind(struct fx *fx, struct win *w, uint64_t off, uint64_t len, uint32_t access)
{
	uint32_t old = w->mw->rkey;
	int ret;

	if (w->mw->type == BB_MW_TYPE_1)
		ret = bb_mw_bind(w->p.b, 31, w->mw, w->mr, addr_of(&fx->b, (uint32_t)off), len,
				 access, BB_SEND_SIGNALED);
	else
		ret = bb_post_bind_mw(w->p.b, 31, w->mw, bb_inc_rkey(w->mw->rkey), w->mr,
				      addr_of(&fx->b, (uint32_t)off), len, access,
				      BB_SEND_SIGNALED);
	b_done(fx, w->p.b, ret, BB_WC_BIND_MW);
	CHECK(fx, w->mw->rkey != old && w->mw->rkey >> 8 == old >> 8,
	      "the key went from 0x%x to 0x%x", old, w->mw->rkey);
}

/* One request of A through @rkey: it succeeds, or is rejected and moves nothing. */
static void
use(struct fx *fx, struct pair p, const struct op *op, uint64_t raddr, uint32_t rkey, bool allowed)
{
	struct xfer x;

	xfer_init(&x, op, p);
	x.len = op->atomic ? 8 : 100;
	xfer_prepare(fx, &x);
	/* xfer.c places the data at the guard; this moves them to the window. */
	memcpy(fx->b.mem + OFF, (const void *)(uintptr_t)x.t.raddr, x.len);
	memcpy(fx->b.want + OFF, fx->b.want + (x.t.raddr - (uintptr_t)fx->b.mem), x.len);
	x.window = OFF + LEN;
	memcpy(fx->b.want + GUARD, fx->b.mem + GUARD, OFF - GUARD);
	memcpy(fx->b.want + OFF + x.len, fx->b.mem + OFF + x.len, LEN - x.len);
	memcpy(fx->a.want + GUARD + x.len, fx->a.mem + GUARD + x.len, x.window - GUARD - x.len);
	if (!allowed)
		xfer_expect_nothing(fx, &x);
	x.t.raddr = raddr;
	x.t.rkey = rkey;
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, p.a, x.wr_id, allowed ? BB_WC_SUCCESS : BB_WC_REM_ACCESS_ERR,
		  op->name);
	xfer_check_data(fx, &x);
	if (!allowed)
		wait_refusal(fx, op->name);
}

/* On a device without windows, or of an invalid type. */
ROW(run_alloc_refused)
{
	const bool none = fx->a.attr.memory_windows == 0;
	struct bb_mw *mw = NULL;

	REFUSED(fx, bb_mw_alloc(fx->a.pd, row->n, &mw), none ? -ENOTSUP : -EINVAL,
		none ? "memory windows" : "type");
	CHECK(fx, mw == NULL, "a refused bb_mw_alloc() wrote its out-pointer");
}

/* The rights of the window count, not those of the region. */
ROW(run_rights)
{
	static const uint32_t access[] = {RW, RR, BB_ACCESS_REMOTE_ATOMIC,
					  RW | RR | BB_ACCESS_REMOTE_ATOMIC};
	uint32_t a = access[row->flags] & fx->access;
	struct win w;

	win_make(fx, &w, row->n);
	bind(fx, &w, OFF, LEN, a);
	use(fx, w.p, row->op, addr_of(&fx->b, OFF), w.mw->rkey, (a & row->op->right) != 0);
}

ROW(run_range)
{
	static const int64_t at[] = {LEN - 100, LEN - 99, -1};
	struct win w;

	win_make(fx, &w, row->n);
	bind(fx, &w, OFF, LEN, RW);
	if (row->flags == 0) {
		struct bb_sge sge = sge_of(&fx->a, GUARD, 100);

		complete(fx, fx->a.cq, w.p.a,
			 bb_post_write(w.p.a, 1, &sge, 1, addr_of(&fx->b, OFF) + (uint64_t)at[0],
				       w.mw->rkey, BB_SEND_SIGNALED),
			 1, BB_WC_SUCCESS, "the last bytes");
		return;
	}
	use(fx, w.p, op_find("write"), addr_of(&fx->b, OFF) + (uint64_t)at[row->flags], w.mw->rkey,
	    false);
}

ROW(run_zero_based)
{
	struct win w;

	win_make(fx, &w, BB_MW_TYPE_2);
	bind(fx, &w, OFF, LEN, RW | BB_ACCESS_ZERO_BASED);
	use(fx, w.p, op_find("write"), 0, w.mw->rkey, true);
	use(fx, w.p, op_find("write"), LEN - 99, w.mw->rkey, false);
}

enum taken {
	REBOUND,
	UNBOUND,
	LOCAL_INV,
	SEND_INV,
	FREED,
};

/* An invalidated key is dead, whatever invalidated it. */
ROW(run_taken)
{
	enum bb_mw_type type = row->flags;
	struct bb_sge sge = sge_of(&fx->b, 65536, 64);
	struct bb_wc wc;
	struct win w;
	uint32_t old;

	win_make(fx, &w, type);
	bind(fx, &w, OFF, LEN, RW);
	old = w.mw->rkey;
	use(fx, w.p, op_find("write"), addr_of(&fx->b, OFF), old, true);
	switch ((enum taken)row->n) {
	case REBOUND:
		bind(fx, &w, OFF, LEN, RW);
		use(fx, w.p, op_find("write"), addr_of(&fx->b, OFF), w.mw->rkey, true);
		break;
	case UNBOUND:
		b_done(fx, w.p.b, bb_mw_bind(w.p.b, 31, w.mw, NULL, 0, 0, 0, BB_SEND_SIGNALED),
		       BB_WC_BIND_MW);
		break;
	case LOCAL_INV:
		b_done(fx, w.p.b, bb_post_local_inv(w.p.b, 31, old, BB_SEND_SIGNALED),
		       BB_WC_LOCAL_INV);
		break;
	case SEND_INV:
		CHECK(fx, bb_post_recv(w.p.b, 71, &sge, 1) == 0, "the receive is not taken");
		bb_qp_ring_recv(w.p.b);
		complete(fx, fx->a.cq, w.p.a,
			 bb_post_send_inv_inline(w.p.a, 72, "done", 4, old, BB_SEND_SIGNALED), 72,
			 BB_WC_SUCCESS, "SEND with invalidate");
		wc = expect_wc(fx, fx->b.cq, w.p.b, 71, BB_WC_SUCCESS, "its receive");
		CHECK(fx, wc.flags == BB_WC_WITH_INV && wc.imm == old && wc.byte_len == 4,
		      "the receive's flags 0x%x and key 0x%x", wc.flags, wc.imm);
		CHECK(fx, memcmp(fx->b.mem + 65536, "done", 4) == 0, "it brought other bytes");
		break;
	case FREED:
		fx_forget(fx, w.mw);
		OK(fx, bb_mw_free(w.mw));
		break;
	}
	/* The region can be deregistered when no window is bound to it. */
	if (row->n != REBOUND) {
		fx_forget(fx, w.mr);
		OK(fx, bb_mr_dereg(w.mr));
	}
	use(fx, w.p, op_find("write"), addr_of(&fx->b, OFF), old, false);
}

ROW(run_again)
{
	struct win w;

	win_make(fx, &w, BB_MW_TYPE_2);
	for (uint32_t i = 0; i < 300; i++) {
		bind(fx, &w, OFF, LEN, RW);
		b_done(fx, w.p.b, bb_post_local_inv(w.p.b, 31, w.mw->rkey, BB_SEND_SIGNALED),
		       BB_WC_LOCAL_INV);
	}
	bind(fx, &w, OFF, LEN, RW);
	use(fx, w.p, op_find("write"), addr_of(&fx->b, OFF), w.mw->rkey, true);
}

/* Type 2 is for the peer of the QP that bound it; type 1 for every QP of the PD. */
ROW(run_other_qp)
{
	struct win w;

	win_make(fx, &w, row->n);
	bind(fx, &w, OFF, LEN, RW);
	use(fx, fx_own_pair(fx), op_find("write"), addr_of(&fx->b, OFF), w.mw->rkey,
	    row->n == BB_MW_TYPE_1);
}

ROW(run_busy)
{
	struct win w;

	win_make(fx, &w, row->n);
	bind(fx, &w, OFF, LEN, RW);
	REFUSED(fx, bb_mr_dereg(w.mr), -EBUSY, "window");
	REFUSED(fx, bb_mr_rereg(w.mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, 0), -EBUSY, "window");
	use(fx, w.p, op_find("write"), addr_of(&fx->b, OFF), w.mw->rkey, true);
	REFUSED(fx, bb_pd_free(fx->b.pd), -EBUSY, "live");
}

#define HELD(fx, mr) REFUSED(fx, bb_mr_dereg(mr), -EBUSY, "bound to it")

static void
dereg(struct fx *fx, struct bb_mr *mr)
{
	fx_forget(fx, mr);
	OK(fx, bb_mr_dereg(mr));
}

/* A request of B's QP that fails. */
static void
b_fails(struct fx *fx, struct bb_qp *qp, int posted)
{
	complete(fx, fx->b.cq, qp, posted, 31, BB_WC_MW_BIND_ERR, "a request that fails");
}

/* A posted bind holds the region until its completion is polled. */
static void
held_until_done(struct fx *fx, struct win *w, bool signaled)
{
	uint32_t flags = signaled ? BB_SEND_SIGNALED : 0;
	int ret;

	if (w->mw->type == BB_MW_TYPE_1)
		ret = bb_mw_bind(w->p.b, 31, w->mw, NULL, 0, 0, 0, flags);
	else
		ret = bb_post_local_inv(w->p.b, 31, w->mw->rkey, flags);
	CHECK(fx, ret == 0, "the post returned %d", ret);
	HELD(fx, w->mr);
	if (!signaled) {
		bb_qp_ring(w->p.b);
		HELD(fx, w->mr);
		settle(fx, w->p.b, fx->b.cq);
	} else {
		b_done(fx, w->p.b, ret,
		       w->mw->type == BB_MW_TYPE_1 ? BB_WC_BIND_MW : BB_WC_LOCAL_INV);
	}
	dereg(fx, w->mr);
}

static void
held_signaled(struct fx *fx, struct win *w)
{
	held_until_done(fx, w, true);
}

static void
held_unsignaled(struct fx *fx, struct win *w)
{
	held_until_done(fx, w, false);
}

/* The device rejects an old key; a window of type 1 cannot be invalidated. */
static void
held_failed(struct fx *fx, struct win *w)
{
	uint32_t key = w->mw->rkey ^ (w->mw->type == BB_MW_TYPE_2 ? 0x80 : 0);

	b_fails(fx, w->p.b, bb_post_local_inv(w->p.b, 31, key, BB_SEND_SIGNALED));
	HELD(fx, w->mr);
	fx_forget(fx, w->mw);
	OK(fx, bb_mw_free(w->mw));
	dereg(fx, w->mr);
}

/* From one region to another: both are held until the bind completes or fails. */
static void
held_moved(struct fx *fx, struct win *w)
{
	struct bb_mr *to = fx_mr(fx, fx->b.pd, fx->b.mem, ARENA, fx->access | BB_ACCESS_MW_BIND);
	int ret;

	if (w->mw->type == BB_MW_TYPE_1)
		ret = bb_mw_bind(w->p.b, 31, w->mw, to, addr_of(&fx->b, OFF), LEN, RW,
				 BB_SEND_SIGNALED);
	else /* Not while it is bound. */
		ret = bb_post_bind_mw(w->p.b, 31, w->mw, bb_inc_rkey(w->mw->rkey), to,
				      addr_of(&fx->b, OFF), LEN, RW, BB_SEND_SIGNALED);
	HELD(fx, w->mr);
	HELD(fx, to);
	if (w->mw->type == BB_MW_TYPE_1) {
		b_done(fx, w->p.b, ret, BB_WC_BIND_MW);
		HELD(fx, to);
		fx_forget(fx, w->mw);
		OK(fx, bb_mw_free(w->mw));
	} else {
		b_fails(fx, w->p.b, ret);
		HELD(fx, w->mr);
	}
	dereg(fx, to);
}

/* Requests that the QP did not report before it was destroyed may have executed or not. */
static void
held_by_lost_qp(struct fx *fx, struct win *w)
{
	struct bb_qp *b = w->p.b;
	int ret;

	if (w->mw->type == BB_MW_TYPE_1)
		ret = bb_mw_bind(b, 31, w->mw, NULL, 0, 0, 0, BB_SEND_SIGNALED);
	else
		ret = bb_post_local_inv(b, 31, w->mw->rkey, BB_SEND_SIGNALED);
	CHECK(fx, ret == 0, "the post returned %d", ret);
	fx_forget(fx, b);
	OK(fx, bb_qp_destroy(b));
	HELD(fx, w->mr);
	/* A type 2 window bound to a destroyed QP can only be freed (man ibv_alloc_mw). */
	w->p = fx_own_pair(fx);
	if (w->mw->type == BB_MW_TYPE_2)
		b_fails(fx, w->p.b, bb_post_local_inv(w->p.b, 31, w->mw->rkey, BB_SEND_SIGNALED));
	HELD(fx, w->mr);
	fx_forget(fx, w->mw);
	OK(fx, bb_mw_free(w->mw));
	dereg(fx, w->mr);
}

/* The QP of the same number invalidates it after a reset. */
static void
held_over_reset(struct fx *fx, struct win *w)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct pair_opts o = fx_opts(fx);

	CHECK(fx, bb_post_local_inv(w->p.b, 31, w->mw->rkey, BB_SEND_SIGNALED) == 0,
	      "the post is not taken");
	attr.state = BB_QP_RESET;
	OK(fx, bb_qp_modify(w->p.b, &attr, BB_QP_STATE));
	OK(fx, bb_qp_modify(w->p.a, &attr, BB_QP_STATE));
	HELD(fx, w->mr);
	fx_connect(fx, w->p, &o);
	b_done(fx, w->p.b, bb_post_local_inv(w->p.b, 31, w->mw->rkey, BB_SEND_SIGNALED),
	       BB_WC_LOCAL_INV);
	dereg(fx, w->mr);
}

/* More requests on a window than are tracked: the queue is full until they complete. */
static void
held_many(struct fx *fx, struct win *w)
{
	uint32_t n;
	int ret = 0;

	for (n = 0; n < 20 && ret == 0; n += ret == 0)
		ret = bb_mw_bind(w->p.b, 31, w->mw, w->mr, addr_of(&fx->b, OFF), LEN, RW, 0);
	CHECK(fx, ret == -EAGAIN && n == 8, "%u binds are taken, the last returned %d", n, ret);
	bb_qp_ring(w->p.b);
	settle(fx, w->p.b, fx->b.cq);
	b_done(fx, w->p.b, bb_mw_bind(w->p.b, 31, w->mw, NULL, 0, 0, 0, BB_SEND_SIGNALED),
	       BB_WC_BIND_MW);
	dereg(fx, w->mr);
}

static const struct held {
	const char *name;
	void (*run)(struct fx *fx, struct win *w);
	/*
	 * Bits 1 and 2: window types. Assumed: the status of a failed LOCAL_INV (rxe has another
	 * one), and that a reset leaves a type 2 window bound.
	 */
	uint32_t types, assumed;
} held[] = {
	{"taken-back", held_signaled, 3, 0},     {"taken-back-unsignaled", held_unsignaled, 3, 0},
	{"not-taken-back", held_failed, 3, 3},   {"moved", held_moved, 3, 0},
	{"qp-destroyed", held_by_lost_qp, 3, 2}, {"qp-reset", held_over_reset, 2, 2},
	{"many-requests", held_many, 1, 0},
};

ROW(run_held)
{
	const struct held *h = row->arg;
	struct win w;

	win_make(fx, &w, row->n);
	bind(fx, &w, OFF, LEN, RW);
	h->run(fx, &w);
}

enum bad {
	BAD_NO_RIGHT_TO_BIND,
	BAD_RANGE,
	BAD_WRAP,
	BAD_ACCESS,
	BAD_LOCAL_WRITE,
	BAD_TYPE,
	BAD_PD,
	BAD_KEY,
	BAD_ATOMICS,
	BADS,
};
static const char *const bad_name[BADS] = {
	"mr-without-MW_BIND", "range-leaves-mr",        "range-wraps",
	"local-right",        "mr-without-local-write", "other-type",
	"mr-of-another-pd",   "key-of-another-window",  "no-window-atomics",
};

ROW(run_bind_refused)
{
	uint64_t addr = addr_of(&fx->b, OFF), len = LEN;
	uint32_t access = RW, rkey;
	struct bb_qp_stats before, after;
	struct win w;

	win_make(fx, &w, row->flags);
	if (row->n == BAD_NO_RIGHT_TO_BIND)
		w.mr = fx_mr(fx, fx->b.pd, fx->b.mem, ARENA, fx->access);
	else if (row->n == BAD_RANGE)
		len = ARENA;
	else if (row->n == BAD_WRAP)
		addr = UINT64_MAX - 10;
	else if (row->n == BAD_ACCESS)
		access = RW | BB_ACCESS_LOCAL_WRITE;
	else if (row->n == BAD_ATOMICS)
		access = RW | BB_ACCESS_REMOTE_ATOMIC;
	else if (row->n == BAD_LOCAL_WRITE)
		w.mr = fx_mr(fx, fx->b.pd, fx->b.mem, ARENA, RR | BB_ACCESS_MW_BIND);
	else if (row->n == BAD_PD)
		w.mr = fx_mr(fx, fx_pd(fx, &fx->b), fx->b.mem, ARENA,
			     fx->access | BB_ACCESS_MW_BIND);
	rkey = bb_inc_rkey(w.mw->rkey) ^ (row->n == BAD_KEY ? 0x100 : 0);
	OK(fx, bb_qp_stats(w.p.b, &before));
	if ((row->flags == BB_MW_TYPE_1) != (row->n == BAD_TYPE))
		REFUSED(fx, bb_mw_bind(w.p.b, 31, w.mw, w.mr, addr, len, access, 0), -EINVAL,
			"bound");
	else
		REFUSED(fx, bb_post_bind_mw(w.p.b, 31, w.mw, rkey, w.mr, addr, len, access, 0),
			-EINVAL, "bound");
	OK(fx, bb_qp_stats(w.p.b, &after));
	CHECK(fx, before.posted == after.posted, "it is counted as posted");
}

void
rows_mw(struct rows *rows)
{
	static const char *const access[] = {"rw", "rr", "ra", "all"};
	static const char *const verbs[] = {"write", "read", "fetch_add"};
	static const struct {
		const char *name;
		enum taken how;
		enum bb_mw_type type;
	} taken[] = {
		{"bound-again", REBOUND, BB_MW_TYPE_1},
		{"unbound", UNBOUND, BB_MW_TYPE_1},
		{"freed", FREED, BB_MW_TYPE_1},
		{"local-invalidate", LOCAL_INV, BB_MW_TYPE_2},
		{"send-with-invalidate", SEND_INV, BB_MW_TYPE_2},
		{"freed-type-2", FREED, BB_MW_TYPE_2},
	};
	unsigned int first;
	struct row *row;

	for (unsigned int t = 1; t <= 2; t++) {
		row = row_add(rows, MAN, run_alloc_refused, "window/none", "type-%u", t);
		row->n = t;
		row->needs = NEED_NO_MW;
	}
	first = rows->n;
	row = row_add(rows, MAN, run_alloc_refused, "window/alloc-refused", "type-3");
	row->n = 3;
	for (unsigned int t = 1; t <= 2; t++) {
		for (unsigned int i = 0; i < RTE_DIM(verbs); i++) {
			for (unsigned int k = 0; k < RTE_DIM(access); k++) {
				row = row_add(rows, MAN_BIND, run_rights, "window/rc/rights",
					      "type-%u/%s/%s", t, access[k], verbs[i]);
				row->op = op_find(verbs[i]);
				row->n = t;
				row->flags = k;
				row->needs =
					row->op->needs | (k >= 2 ? (uint64_t)NEED_MW_ATOMICS : 0);
			}
		}
		for (unsigned int k = 0; k < 3; k++) {
			row = row_add(rows, MAN_BIND, run_range, "window/rc/range", "type-%u/%s", t,
				      k == 0   ? "last-bytes"
				      : k == 1 ? "behind-end"
					       : "before-start");
			row->n = t;
			row->flags = k;
		}
		row = row_add(rows, MAN_BIND, run_other_qp, "window/rc/other-qp", "type-%u", t);
		row->n = t;
		row = row_add(rows, MAN_DEREG, run_busy, GROUP_HELD, "type-%u", t);
		row->n = t;
		for (unsigned int k = 0; k < RTE_DIM(held); k++) {
			if ((held[k].types & t) == 0)
				continue;
			row = row_add(rows, (held[k].assumed & t) != 0 ? ASSUMED : MAN_DEREG,
				      run_held, GROUP_HELD, "type-%u/%s", t, held[k].name);
			row->n = t;
			row->arg = &held[k];
		}
		for (unsigned int k = 0; k < BADS; k++) {
			if (k == BAD_KEY && t == 1)
				continue;
			row = row_add(rows, MAN_BIND, run_bind_refused, "window/rc/bind-refused",
				      "type-%u/%s", t, bad_name[k]);
			row->n = k;
			row->flags = t;
			row->needs = k == BAD_ATOMICS ? (uint64_t)NEED_NO_MW_ATOMICS : 0;
		}
	}
	row_add(rows, MAN_BIND, run_zero_based, "window/rc/zero-based", "type-2");
	for (unsigned int i = 0; i < RTE_DIM(taken); i++) {
		row = row_add(rows, MAN_BIND, run_taken, "window/rc/old-key-is-dead", "%s",
			      taken[i].name);
		row->n = taken[i].how;
		row->flags = taken[i].type;
	}
	row_add(rows, MAN_BIND, run_again, "window/rc/key-goes-round", "300-times");
	for (unsigned int i = first; i < rows->n; i++)
		rows->row[i].needs |= NEED_MW;
}
