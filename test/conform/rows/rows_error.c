/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Requests that a device must reject: bad local keys, bad remote keys, missing rights of the
 * target's QP, a target that is gone. Each gives its error completion, signalled or not. The
 * request after it is flushed and no byte moves. Both QPs are in the required states, and the log
 * says what failed.
 */
#include "conform.h"

#define MAN "ibv_post_send(3), ibv_poll_cq(3)"

enum fault {
	/* Faults of the local key. */
	LKEY_UNKNOWN,
	LKEY_ALL_ONES,
	LKEY_OTHER_PD,
	LKEY_GONE,
	LKEY_READ_ONLY,
	LOCAL_END,
	LOCAL_START,
	LOCAL_WRAP,
	/* Faults of the remote key. */
	RKEY_UNKNOWN,
	RKEY_ZERO,
	RKEY_OTHER_PD,
	RKEY_GONE,
	RKEY_REUSED,
	RKEY_NO_RIGHT,
	REMOTE_END,
	REMOTE_START,
	REMOTE_WRAP,
	REMOTE_NULL,
	/* Faults of the target's QP. */
	QP_NO_RIGHT,
	/* No target answers. */
	PEER_RESET,
	PEER_ERR,
	PEER_DESTROYED,
};

static const struct {
	const char *name;
	enum bb_wc_status status;
	enum bb_qp_state peer; /* final state of the target's QP */
	enum bb_event_type event;
	bool has_event;
} fault_cell[] = {
	[LKEY_UNKNOWN] = {"lkey/unknown", BB_WC_LOC_PROT_ERR, BB_QP_RTS, 0, false},
	[LKEY_ALL_ONES] = {"lkey/all-ones", BB_WC_LOC_PROT_ERR, BB_QP_RTS, 0, false},
	[LKEY_OTHER_PD] = {"lkey/other-pd", BB_WC_LOC_PROT_ERR, BB_QP_RTS, 0, false},
	[LKEY_GONE] = {"lkey/deregistered", BB_WC_LOC_PROT_ERR, BB_QP_RTS, 0, false},
	[LKEY_READ_ONLY] = {"lkey/no-local-write", BB_WC_LOC_PROT_ERR, BB_QP_RTS, 0, false},
	[LOCAL_END] = {"local-range/behind-end", BB_WC_LOC_PROT_ERR, BB_QP_RTS, 0, false},
	[LOCAL_START] = {"local-range/before-start", BB_WC_LOC_PROT_ERR, BB_QP_RTS, 0, false},
	[LOCAL_WRAP] = {"local-range/past-2^64", BB_WC_LOC_PROT_ERR, BB_QP_RTS, 0, false},
	[RKEY_UNKNOWN] = {"rkey/unknown", BB_WC_REM_ACCESS_ERR, BB_QP_ERR, BB_EVENT_QP_ACCESS,
			  true},
	[RKEY_ZERO] = {"rkey/zero", BB_WC_REM_ACCESS_ERR, BB_QP_ERR, BB_EVENT_QP_ACCESS, true},
	[RKEY_OTHER_PD] = {"rkey/other-pd", BB_WC_REM_ACCESS_ERR, BB_QP_ERR, BB_EVENT_QP_ACCESS,
			   true},
	[RKEY_GONE] = {"rkey/deregistered", BB_WC_REM_ACCESS_ERR, BB_QP_ERR, BB_EVENT_QP_ACCESS,
		       true},
	[RKEY_REUSED] = {"rkey/deregistered-and-reused", BB_WC_REM_ACCESS_ERR, BB_QP_ERR,
			 BB_EVENT_QP_ACCESS, true},
	[RKEY_NO_RIGHT] = {"rkey/no-right", BB_WC_REM_ACCESS_ERR, BB_QP_ERR, BB_EVENT_QP_ACCESS,
			   true},
	[REMOTE_END] = {"remote-range/behind-end", BB_WC_REM_ACCESS_ERR, BB_QP_ERR,
			BB_EVENT_QP_ACCESS, true},
	[REMOTE_START] = {"remote-range/before-start", BB_WC_REM_ACCESS_ERR, BB_QP_ERR,
			  BB_EVENT_QP_ACCESS, true},
	[REMOTE_WRAP] = {"remote-range/past-2^64", BB_WC_REM_ACCESS_ERR, BB_QP_ERR,
			 BB_EVENT_QP_ACCESS, true},
	[REMOTE_NULL] = {"remote-range/null", BB_WC_REM_ACCESS_ERR, BB_QP_ERR, BB_EVENT_QP_ACCESS,
			 true},
	[QP_NO_RIGHT] = {"qp-right/missing", BB_WC_REM_INV_REQ_ERR, BB_QP_ERR, BB_EVENT_QP_REQUEST,
			 true},
	[PEER_RESET] = {"peer-gone/reset", BB_WC_RETRY_EXC_ERR, BB_QP_RESET, 0, false},
	[PEER_ERR] = {"peer-gone/error", BB_WC_RETRY_EXC_ERR, BB_QP_ERR, 0, false},
	[PEER_DESTROYED] = {"peer-gone/destroyed", BB_WC_RETRY_EXC_ERR, BB_QP_RESET, 0, false},
};

/* Returns whether the fault can occur with the verb. */
static bool
applies(const struct op *op, enum fault fault)
{
	switch (fault) {
	case LKEY_READ_ONLY:
		return !op->to_target;
	case QP_NO_RIGHT:
		return op->right != 0;
	case PEER_RESET:
	case PEER_ERR:
	case PEER_DESTROYED:
		return true;
	default:
		return fault < RKEY_UNKNOWN || op->has_raddr;
	}
}

/* Separate memory, so that the arena's keys do not cover its surroundings. */
#define REGION 4096

/*
 * Returns a deregistered region of @mem. With @reuse another region of @mem may have its index by
 * now, but not its key. Linux (6.12, 7.2) returns the same key if UMRs load its translations: then
 * the other region is beside @mem, and the key must not reach @mem.
 */
static struct bb_mr *
gone(struct fx *fx, struct bb_pd *pd, uint8_t *mem, bool reuse)
{
	static struct bb_mr copy;
	struct bb_mr *mr;
	bool same;

	OK(fx, bb_mr_reg(pd, mem, REGION, fx->access, &mr));
	copy = *mr;
	OK(fx, bb_mr_dereg(mr));
	if (!reuse)
		return &copy;
	OK(fx, bb_mr_reg(pd, mem, REGION, fx->access, &mr));
	same = mr->rkey == copy.rkey;
	OK(fx, bb_mr_dereg(mr));
	CHECK(fx, !same || !fx->b.attr.software, "two regions in turn have the same key");
	fx_mr(fx, pd, same ? mem + REGION : mem, REGION, fx->access);
	return &copy;
}

static void
break_local(struct fx *fx, struct xfer *x, enum fault fault)
{
	struct bb_sge *sge = &x->sge[0];
	struct bb_mr *mr;

	switch (fault) {
	case LKEY_UNKNOWN:
		sge->lkey ^= 0x55;
		break;
	case LKEY_ALL_ONES:
		sge->lkey = UINT32_MAX;
		break;
	case LKEY_OTHER_PD:
		sge->lkey = fx_mr(fx, fx_pd(fx, &fx->a), fx->a.mem, ARENA, fx->access)->lkey;
		break;
	case LKEY_GONE:
		sge->lkey = gone(fx, fx->a.pd, (uint8_t *)(uintptr_t)sge->addr, false)->lkey;
		break;
	case LKEY_READ_ONLY:
		sge->lkey = fx_mr(fx, fx->a.pd, fx->a.mem, ARENA, 0)->lkey;
		break;
	case LOCAL_END:
	case LOCAL_START:
		mr = fx_mr(fx, fx->a.pd, fx->a.mem + GUARD, REGION, fx->access);
		sge->lkey = mr->lkey;
		sge->addr = fault == LOCAL_START ? (uintptr_t)mr->addr - 1
						 : (uintptr_t)mr->addr + REGION - sge->len + 1;
		break;
	default:
		sge->addr = UINT64_MAX - sge->len / 2 + 1;
		break;
	}
}

static void
break_remote(struct fx *fx, struct xfer *x, enum fault fault)
{
	struct target *t = &x->t;
	struct bb_mr *mr;
	/* A post would reject an atomic with a smaller offset. */
	uint32_t step = x->op->atomic ? 8 : 1;

	switch (fault) {
	case RKEY_UNKNOWN:
		t->rkey ^= 0x55;
		break;
	case RKEY_ZERO:
		t->rkey = 0;
		break;
	case RKEY_OTHER_PD:
		t->rkey = fx_mr(fx, fx_pd(fx, &fx->b), fx->b.mem, ARENA, fx->access)->rkey;
		break;
	case RKEY_GONE:
	case RKEY_REUSED:
		t->rkey = gone(fx, fx->b.pd, (uint8_t *)(uintptr_t)t->raddr, fault == RKEY_REUSED)
				  ->rkey;
		break;
	case RKEY_NO_RIGHT:
		t->rkey = fx_mr(fx, fx->b.pd, fx->b.mem, ARENA, fx->access & ~x->op->right)->rkey;
		break;
	case REMOTE_END:
	case REMOTE_START:
		mr = fx_mr(fx, fx->b.pd, fx->b.mem + GUARD, REGION, fx->access);
		t->rkey = mr->rkey;
		t->raddr = fault == REMOTE_START ? (uintptr_t)mr->addr - step
						 : (uintptr_t)mr->addr + REGION - x->len + step;
		break;
	case REMOTE_WRAP:
		t->raddr = UINT64_MAX - x->len / 2 + 1 - (x->op->atomic ? 4 : 0);
		break;
	default:
		t->raddr = 0;
		break;
	}
}

/* Stops @p.b from answering; PEER_DESTROYED destroys it. */
static void
break_peer(struct fx *fx, struct pair *p, enum fault fault)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct bb_wc wc[2];

	attr.state = fault == PEER_ERR ? BB_QP_ERR : BB_QP_RESET;
	OK(fx, bb_qp_modify(p->b, &attr, BB_QP_STATE));
	if (fault == PEER_DESTROYED) {
		fx_forget(fx, p->b);
		OK(fx, bb_qp_destroy(p->b));
		p->b = NULL;
	}
	/* Pending requests of the target are flushed with it. */
	while (fault == PEER_ERR && fx_poll(fx, fx->b.cq, wc, RTE_DIM(wc)) != 0)
		;
}

static void
check_failed(struct fx *fx, struct xfer *x, enum bb_wc_status status, uint64_t behind)
{
	struct bb_qp_stats stats;
	struct bb_wc wc[2];
	char what[64];

	snprintf(what, sizeof(what), "the bad %s", x->op->name);
	wait_wc(fx, fx->a.cq, wc, 2, what);
	check_wc(fx, &wc[0], x->p.a, x->wr_id, status, what);
	check_wc(fx, &wc[1], x->p.a, behind, BB_WC_WR_FLUSH_ERR, "the request behind it");
	check_quiet(fx, fx->a.cq, "behind the flush");
	CHECK(fx, x->p.a->state == BB_QP_ERR, "bb_qp.state is not ERR after an error completion");
	check_state(fx, x->p.a, BB_QP_ERR, "the requester's");
	OK(fx, bb_qp_stats(x->p.a, &stats));
	CHECK(fx, stats.outstanding == 0, "%u requests are still outstanding", stats.outstanding);
	CHECK(fx, log_having(bb_wc_status_name(status)) == 1,
	      "the log has %u lines that say \"%s\", expected 1",
	      log_having(bb_wc_status_name(status)), bb_wc_status_name(status));
}

ROW(run)
{
	enum fault fault = row->n;
	struct bb_event event;
	struct pair_opts o = fx_opts(fx);
	struct xfer x;
	uint64_t behind;

	if (fault == QP_NO_RIGHT)
		o.b.access &= ~row->op->right;
	if (fault >= PEER_RESET) {
		o.a.timeout = 8; /* 1 ms */
		o.a.retry_cnt = 1;
	}
	xfer_init(&x, row->op, fx_pair(fx, &o));
	x.flags = row->flags;
	xfer_prepare(fx, &x);
	xfer_expect_nothing(fx, &x);
	if (fault >= PEER_RESET)
		break_peer(fx, &x.p, fault);
	else if (fault >= RKEY_UNKNOWN && fault != QP_NO_RIGHT)
		break_remote(fx, &x, fault);
	else if (fault != QP_NO_RIGHT)
		break_local(fx, &x, fault);
	log_clear();
	CHECK(fx, op_post(row->op, x.p.a, x.wr_id, x.sge, x.nsge, &x.t, x.flags) == 0,
	      "the device, not the post, is to refuse it");
	behind = fx->wr_id++;
	CHECK(fx, bb_post_nop(x.p.a, behind, 0) == 0, "the NOP behind it is not taken");
	bb_qp_ring(x.p.a);
	check_failed(fx, &x, fault_cell[fault].status, behind);
	xfer_check_data(fx, &x);
	if (x.p.b != NULL)
		check_state(fx, x.p.b, fault_cell[fault].peer, "the target's");
	if (fault_cell[fault].has_event && fx->b.attr.refusal_events) {
		event = wait_event(fx, fx->two ? &fx->b : &fx->a, fault_cell[fault].name);
		CHECK(fx, event.type == fault_cell[fault].event && event.qp == x.p.b,
		      "event \"%s\", expected \"%s\" of the target's QP", bb_event_name(event.type),
		      bb_event_name(fault_cell[fault].event));
	}
}

/*
 * Assumed: an atomic without a valid place for the result leaves the target's word unchanged. A
 * device may check the local key only when the answer arrives, as rxe does.
 */
static bool
assumed(const struct op *op, enum fault fault)
{
	return op->atomic && fault < RKEY_UNKNOWN;
}

/* The last byte that a key covers is accessible, at both ends and on both sides. */
ROW(run_edge)
{
	struct xfer x;
	struct bb_mr *a, *b;

	xfer_init(&x, row->op, fx_shared(fx));
	xfer_prepare(fx, &x);
	a = fx_mr(fx, fx->a.pd, (void *)(uintptr_t)(x.sge[0].addr - row->n), x.len + row->n,
		  fx->access);
	b = fx_mr(fx, fx->b.pd, (void *)(uintptr_t)(x.rsge[0].addr - row->n), x.len + row->n,
		  fx->access);
	x.sge[0].lkey = a->lkey;
	x.t.rkey = b->rkey;
	xfer_post(fx, &x);
	settle_one(fx, &x);
	xfer_check_data(fx, &x);
}

void
rows_error(struct rows *rows)
{
	static const uint32_t before[] = {0, 40};
	struct row *row;
	char group[64];

	for (unsigned int f = 0; f < RTE_DIM(fault_cell); f++) {
		for (unsigned int i = 0; i < n_ops; i++) {
			if (!applies(&ops[i], f))
				continue;
			for (unsigned int s = 0; s <= 1; s++) {
				snprintf(group, sizeof(group), "error/rc/%s", fault_cell[f].name);
				row = row_add(rows, assumed(&ops[i], f) ? ASSUMED : MAN, run, group,
					      "%s/%s", ops[i].name,
					      s != 0 ? "signaled" : "unsignaled");
				row->op = &ops[i];
				row->n = f;
				row->flags = s != 0 ? BB_SEND_SIGNALED : 0;
				row->needs = ops[i].needs;
			}
		}
	}
	for (unsigned int i = 0; i < n_ops; i++) {
		for (unsigned int s = 0; s < RTE_DIM(before); s++) {
			row = row_add(rows, MAN, run_edge, "error/rc/range-exactly-fits",
				      "%s/%u-before", ops[i].name, before[s]);
			row->op = &ops[i];
			row->n = before[s];
			row->needs = ops[i].needs;
		}
	}
}
