/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Rejected posts: the errno, one line per queue and reason, an unchanged ring, and a queue that
 * continues to work.
 */
#include "conform.h"

#define MAN      "ibv_post_send(3)"
#define MAN_RECV "ibv_post_recv(3)"

enum bad {
	MANY_PIECES,
	LONG_PIECE,
	LONG_PIECE_BEHIND,
	LONG_INLINE,
	ATOMIC_SHORT,
	ATOMIC_LONG,
	ATOMIC_ODD,
	ATOMIC_4,
	BADS,
};

static const struct {
	const char *name;
	const char *word; /* expected in the log line */
} bad_cell[BADS] = {
	[MANY_PIECES] = {"over-max_sge", "max_sge"},
	[LONG_PIECE] = {"piece-over-2^31", "2^31"},
	[LONG_PIECE_BEHIND] = {"second-piece-over-2^31", "2^31"},
	[LONG_INLINE] = {"over-max_inline", "max_inline"},
	[ATOMIC_SHORT] = {"4-bytes", "8 bytes"},
	[ATOMIC_LONG] = {"16-bytes", "8 bytes"},
	[ATOMIC_ODD] = {"address-plus-1", "a multiple of"},
	[ATOMIC_4] = {"address-plus-4", "a multiple of"},
};

static bool
applies(const struct op *op, enum bad bad)
{
	if (bad >= ATOMIC_SHORT)
		return op->atomic;
	if (bad == LONG_INLINE)
		return op->can_inline;
	return !op->atomic;
}

static int
post_bad(struct xfer *x, const struct pair_opts *o, enum bad bad)
{
	static uint8_t data[65536];
	struct bb_sge sge[PIECES + 1];
	struct target t = x->t;
	uint32_t n = 1;

	sge[0] = x->sge[0];
	switch (bad) {
	case MANY_PIECES:
		for (n = 0; n < o->init.max_sge + 1; n++)
			sge[n] = (struct bb_sge){x->sge[0].addr, 1, x->sge[0].lkey};
		break;
	case LONG_PIECE:
		sge[0].len = 0x80000001;
		break;
	case LONG_PIECE_BEHIND:
		sge[1] = sge[0];
		sge[1].len = UINT32_MAX;
		n = 2;
		break;
	case LONG_INLINE:
		return op_post_inline(x->op, x->p.a, 1, data, o->init.max_inline + 1, &t, 0);
	case ATOMIC_SHORT:
		sge[0].len = 4;
		break;
	case ATOMIC_LONG:
		sge[0].len = 16;
		break;
	case ATOMIC_ODD:
		t.raddr += 1;
		break;
	default:
		t.raddr += 4;
		break;
	}
	return op_post(x->op, x->p.a, 1, sge, n, &t, 0);
}

static void
check_same_stats(struct fx *fx, struct bb_qp *qp, const struct bb_qp_stats *before)
{
	struct bb_qp_stats now;

	OK(fx, bb_qp_stats(qp, &now));
	CHECK(fx,
	      now.posted == before->posted && now.outstanding == before->outstanding &&
		      now.recv_posted == before->recv_posted &&
		      now.recv_outstanding == before->recv_outstanding,
	      "a refused post is counted as posted");
}

ROW(run_bad)
{
	struct bb_qp_stats before;
	struct pair_opts o = fx_opts(fx);
	struct op op = *row->op;
	struct xfer x;

	/* The device's maximum: a queue that requests less may get more. */
	op.takes_recv = false;
	xfer_init(&x, &op, fx_pair(fx, &o));
	xfer_prepare(fx, &x);
	xfer_expect_nothing(fx, &x);
	OK(fx, bb_qp_stats(x.p.a, &before));
	REFUSED(fx, post_bad(&x, &o, row->n), -EINVAL, bad_cell[row->n].word);
	/*
	 * Once per queue and reason: a program that posts wrongly in a loop does not fill a disk.
	 */
	CHECK(fx, post_bad(&x, &o, row->n) == -EINVAL, "the second time it is not refused");
	CHECK(fx, log_lines() == 1, "the second time it is logged again");
	check_same_stats(fx, x.p.a, &before);
	bb_qp_ring(x.p.a);
	settle(fx, x.p.a, fx->a.cq);
	xfer_check_data(fx, &x);
	check_alive(fx, x.p);
}

ROW(run_bad_recv)
{
	struct bb_sge sge[PIECES + 1];
	struct bb_qp_stats before;
	struct pair_opts o = fx_opts(fx);
	struct pair p;
	uint32_t i, n = 1;

	o.init.max_recv_sge = 3;
	p = fx_pair(fx, &o);
	for (i = 0; i < RTE_DIM(sge); i++)
		sge[i] = sge_of(&fx->b, GUARD, 8);
	if (row->n == MANY_PIECES)
		n = 5; /* the WQE has room for 4 */
	else
		sge[0].len = 0x80000001;
	OK(fx, bb_qp_stats(p.b, &before));
	REFUSED(fx, bb_post_recv(p.b, 1, sge, n), -EINVAL, bad_cell[row->n].word);
	check_same_stats(fx, p.b, &before);
	check_alive(fx, p);
}

/* States that accept no request: the library's own rule, -ENOTCONN. */
ROW(run_state)
{
	enum bb_qp_state state = row->n;
	struct pair_opts o = fx_opts(fx);
	struct bb_qp_init_attr init;
	struct bb_qp_attr attr;
	struct bb_qp *qp;
	struct xfer x;

	init = o.init;
	init.send_cq = init.recv_cq = fx->a.cq;
	qp = fx_qp(fx, fx->a.pd, &init);
	attr = o.a;
	if (state != BB_QP_RESET) {
		attr.state = BB_QP_INIT;
		OK(fx, bb_qp_modify(qp, &attr,
				    BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS));
	}
	xfer_init(&x, row->op, (struct pair){qp, qp});
	memset(&x.t, 0, sizeof(x.t));
	x.sge[0] = sge_of(&fx->a, GUARD, x.len);
	REFUSED(fx, op_post(x.op, qp, 1, x.sge, 1, &x.t, 0), -ENOTCONN,
		bb_qp_state_name(BB_QP_RTS));
	check_state(fx, qp, state, "the refused");
	check_quiet(fx, fx->a.cq, "a refused post");
}

/*
 * Receives posted in RESET wait for the peer's messages; RESET discards them. The last one is
 * rung after the QP is up, together with the earlier ones.
 */
ROW(run_early_recv)
{
	struct bb_sge from = sge_of(&fx->a, GUARD, 8), to = sge_of(&fx->b, GUARD, 8);
	struct bb_qp_attr reset = {.size = sizeof(reset), .state = BB_QP_RESET};
	struct pair_opts o = fx_opts(fx);
	struct pair p;

	o.init.send_cq = o.init.recv_cq = fx->a.cq;
	p.a = fx_qp(fx, o.pd_a, &o.init);
	o.init.send_cq = o.init.recv_cq = fx->b.cq;
	o.init.rq_depth = 4;
	p.b = fx_qp(fx, o.pd_b, &o.init);
	CHECK(fx, bb_post_recv(p.b, 1, &to, 1) == 0, "a receive in RESET is refused");
	bb_qp_ring_recv(p.b);
	OK(fx, bb_qp_modify(p.b, &reset, BB_QP_STATE));
	for (uint64_t i = 2; i < 5; i++) {
		CHECK(fx, bb_post_recv(p.b, i, &to, 1) == 0, "a receive in RESET is refused");
		if (i == 3)
			bb_qp_ring_recv(p.b);
	}
	check_quiet(fx, fx->b.cq, "receives in RESET");
	fx_connect(fx, p, &o);
	bb_qp_ring_recv(p.b);
	for (uint64_t i = 2; i < 5; i++) {
		pattern(fx->a.mem + GUARD, 8, fx->seed++);
		CHECK(fx, bb_post_send(p.a, i, &from, 1, BB_SEND_SIGNALED) == 0, "a SEND");
		bb_qp_ring(p.a);
		expect_wc(fx, fx->b.cq, p.b, i, BB_WC_SUCCESS, "a receive posted in RESET");
		CHECK(fx, memcmp(fx->a.mem + GUARD, fx->b.mem + GUARD, 8) == 0,
		      "a receive posted in RESET has other data");
		expect_wc(fx, fx->a.cq, p.a, i, BB_WC_SUCCESS, "a SEND");
	}
}

/*
 * A full queue returns 0 instead of an error, logs nothing, and accepts posts again after a poll.
 */
ROW(run_full)
{
	struct bb_sge sge = sge_of(&fx->b, GUARD, 8);
	struct pair_opts o = fx_opts(fx);
	struct bb_wc wc[32];
	struct pair p;
	uint32_t i;

	o.init.sq_depth = 32;
	o.rq_depth_b = 32;
	p = fx_pair(fx, &o);
	log_clear();
	for (i = 0; i < 32; i++)
		CHECK(fx,
		      (row->n ? bb_post_recv(p.b, i, &sge, 1)
			      : bb_post_nop(p.a, i, BB_SEND_SIGNALED)) == 0,
		      "post %u of 32 is not taken", i + 1);
	CHECK(fx, (row->n ? bb_post_recv(p.b, i, &sge, 1) : bb_post_nop(p.a, i, 0)) == -EAGAIN,
	      "a full queue takes one more");
	CHECK(fx, log_lines() == 0, "a full queue is logged");
	if (row->n)
		return;
	bb_qp_ring(p.a);
	wait_wc(fx, fx->a.cq, wc, 32, "a full queue");
	for (i = 0; i < 32; i++)
		check_wc(fx, &wc[i], p.a, i, BB_WC_SUCCESS, "a full queue");
	settle(fx, p.a, fx->a.cq);
}

void
rows_post(struct rows *rows)
{
	struct row *row;
	char group[64];

	for (unsigned int b = 0; b < BADS; b++) {
		for (unsigned int i = 0; i < n_ops; i++) {
			if (!applies(&ops[i], b))
				continue;
			snprintf(group, sizeof(group), "post/rc/%s", bad_cell[b].name);
			row = row_add(rows, MAN, run_bad, group, "%s", ops[i].name);
			row->op = &ops[i];
			row->n = b;
			row->needs = ops[i].needs;
		}
	}
	for (unsigned int b = MANY_PIECES; b <= LONG_PIECE; b++) {
		snprintf(group, sizeof(group), "post/rc/%s", bad_cell[b].name);
		row = row_add(rows, MAN_RECV, run_bad_recv, group, "receive");
		row->n = b;
	}
	for (unsigned int i = 0; i < n_ops; i++) {
		for (unsigned int b = BB_QP_RESET; b <= BB_QP_INIT; b++) {
			row = row_add(rows, "IBTA vol. 1, 10.3.1", run_state, "post/rc/wrong-state",
				      "%s/%s", ops[i].name, bb_qp_state_name(b));
			row->op = &ops[i];
			row->n = b;
			row->needs = ops[i].needs;
		}
	}
	row_add(rows, MAN_RECV, run_early_recv, "post/rc/before-init", "receive");
	row_add(rows, MAN, run_full, "post/rc/full", "send")->n = 0;
	row_add(rows, MAN_RECV, run_full, "post/rc/full", "receive")->n = 1;
}
