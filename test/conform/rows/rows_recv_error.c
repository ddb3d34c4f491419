/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Receives that are missing, too small, or of memory that the device must not write. */
#include "conform.h"

#define MAN "ibv_post_recv(3), ibv_poll_cq(3)"

enum fault {
	TOO_SMALL,
	TOO_SMALL_BY_PIECE,
	EMPTY,
	LKEY_UNKNOWN,
	LKEY_OTHER_PD,
	LKEY_READ_ONLY,
	RANGE_END,
	FAULTS,
};

static const struct {
	const char *name;
	enum bb_wc_status recv, send;
} fault_cell[FAULTS] = {
	[TOO_SMALL] = {"too-small/by-a-byte", BB_WC_LOC_LEN_ERR, BB_WC_REM_INV_REQ_ERR},
	[TOO_SMALL_BY_PIECE] = {"too-small/two-pieces", BB_WC_LOC_LEN_ERR, BB_WC_REM_INV_REQ_ERR},
	[EMPTY] = {"too-small/no-piece", BB_WC_LOC_LEN_ERR, BB_WC_REM_INV_REQ_ERR},
	[LKEY_UNKNOWN] = {"lkey/unknown", BB_WC_LOC_PROT_ERR, BB_WC_REM_OP_ERR},
	[LKEY_OTHER_PD] = {"lkey/other-pd", BB_WC_LOC_PROT_ERR, BB_WC_REM_OP_ERR},
	[LKEY_READ_ONLY] = {"lkey/no-local-write", BB_WC_LOC_PROT_ERR, BB_WC_REM_OP_ERR},
	[RANGE_END] = {"local-range/behind-end", BB_WC_LOC_PROT_ERR, BB_WC_REM_OP_ERR},
};

static uint32_t
bad_receive(struct fx *fx, const struct xfer *x, enum fault fault, struct bb_sge sge[2])
{
	uint32_t off = (uint32_t)(x->rsge[0].addr - (uintptr_t)fx->b.mem);

	sge[0] = sge_of(&fx->b, off, x->len);
	switch (fault) {
	case TOO_SMALL:
		sge[0].len--;
		return 1;
	case TOO_SMALL_BY_PIECE:
		sge[0].len = 10;
		sge[1] = sge_of(&fx->b, off + 10, x->len - 11);
		return 2;
	case EMPTY:
		return 0;
	case LKEY_UNKNOWN:
		sge[0].lkey ^= 0x55;
		return 1;
	case LKEY_OTHER_PD:
		sge[0].lkey = fx_mr(fx, fx_pd(fx, &fx->b), fx->b.mem, ARENA, fx->access)->lkey;
		return 1;
	case LKEY_READ_ONLY:
		sge[0].lkey = fx_mr(fx, fx->b.pd, fx->b.mem, ARENA, 0)->lkey;
		return 1;
	default:
		sge[0].lkey = fx_mr(fx, fx->b.pd, fx->b.mem + off, x->len - 1, fx->access)->lkey;
		return 1;
	}
}

ROW(run_bad)
{
	struct bb_sge sge[2];
	struct bb_wc wc[2];
	struct op op = *row->op;
	struct xfer x;
	uint32_t n;

	/* This function posts the receive. */
	op.takes_recv = false;
	xfer_init(&x, &op, fx_own_pair(fx));
	x.flags = row->flags;
	xfer_prepare(fx, &x);
	xfer_expect_nothing(fx, &x);
	n = bad_receive(fx, &x, row->n, sge);
	CHECK(fx, bb_post_recv(x.p.b, 11, sge, n) == 0, "the receive is not taken");
	/* A further receive, which is flushed. */
	CHECK(fx, bb_post_recv(x.p.b, 12, sge, n) == 0, "the receive is not taken");
	bb_qp_ring_recv(x.p.b);
	log_clear();
	xfer_post(fx, &x);
	wait_wc(fx, fx->b.cq, wc, 2, "the bad receive");
	check_wc(fx, &wc[0], x.p.b, 11, fault_cell[row->n].recv, "the bad receive");
	check_wc(fx, &wc[1], x.p.b, 12, BB_WC_WR_FLUSH_ERR, "the receive behind it");
	wait_wc(fx, fx->a.cq, wc, 1, op.name);
	check_wc(fx, &wc[0], x.p.a, x.wr_id, fault_cell[row->n].send, op.name);
	check_quiet(fx, fx->a.cq, op.name);
	check_quiet(fx, fx->b.cq, "the bad receive");
	check_state(fx, x.p.a, BB_QP_ERR, "the requester's");
	check_state(fx, x.p.b, BB_QP_ERR, "the receiver's");
	/* Data that fit may have been written before the error; the guard may not. */
	if (row->n > EMPTY)
		xfer_check_data(fx, &x);
	CHECK(fx, log_having(bb_wc_status_name(fault_cell[row->n].recv)) == 1,
	      "the log does not say once that the receive failed");
	CHECK(fx, log_having(bb_wc_status_name(fault_cell[row->n].send)) == 1,
	      "the log does not say once that the request failed");
}

/* No receive: retried as often as agreed, then an error; the target continues. */
ROW(run_rnr)
{
	struct bb_dev_stats before, after;
	struct op op = *row->op;
	struct pair_opts o = fx_opts(fx);
	struct xfer x;

	o.a.rnr_retry = (uint8_t)row->n;
	o.b.min_rnr_timer = 1; /* 10 us */
	op.takes_recv = false;
	xfer_init(&x, &op, fx_pair(fx, &o));
	x.flags = row->flags;
	xfer_prepare(fx, &x);
	xfer_expect_nothing(fx, &x);
	/* The payload of a WRITE_WITH_IMM may arrive before the missing receive is found. */
	if (op.has_raddr)
		x.len = 0, x.sge[0].len = 0;
	OK(fx, bb_dev_stats(fx->a.dev, &before));
	log_clear();
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, x.p.a, x.wr_id, BB_WC_RNR_RETRY_EXC_ERR, op.name);
	check_state(fx, x.p.a, BB_QP_ERR, "the requester's");
	check_state(fx, x.p.b, BB_QP_RTS, "the receiver's");
	check_quiet(fx, fx->b.cq, "at the receiver");
	xfer_check_data(fx, &x);
	OK(fx, bb_dev_stats(fx->a.dev, &after));
	if (fx->a.attr.counters)
		CHECK(fx, after.rnr_retry_exceeded == before.rnr_retry_exceeded + 1,
		      "bb_dev_stats.rnr_retry_exceeded went from %" PRIu64 " to %" PRIu64,
		      before.rnr_retry_exceeded, after.rnr_retry_exceeded);
	CHECK(fx, log_having(bb_wc_status_name(BB_WC_RNR_RETRY_EXC_ERR)) == 1,
	      "the log does not say once that the request failed");
}

/* Six retries take at least six times 20.48 ms, long enough to post the receive. */
#define LATE_S     0.06
#define LATE_TRIES 100

/*
 * Posts a request without a receive and checks for 2 ms that it does not complete. Returns false
 * if this thread was suspended for so long that the request may have given up.
 */
static bool
post_without_recv(struct fx *fx, const struct row *row, const struct pair_opts *o,
		  const struct op *op, struct xfer *x)
{
	double start, now;
	struct bb_wc wc;
	bool got = false;

	xfer_init(x, op, fx_pair(fx, o));
	xfer_prepare(fx, x);
	start = now_s();
	xfer_post(fx, x);
	do {
		got = fx_poll(fx, fx->a.cq, &wc, 1) != 0;
		now = now_s();
	} while (!got && now < start + 0.002);
	if (row->n == 7 || now < start + LATE_S) {
		CHECK(fx, !got, "it completed (\"%s\") without a receive",
		      bb_wc_status_name(wc.status));
		return true;
	}
	if (!got)
		expect_wc(fx, fx->a.cq, x->p.a, x->wr_id, BB_WC_RNR_RETRY_EXC_ERR, op->name);
	return false;
}

/* rnr_retry 7 means forever: the request waits for the receive and executes once. */
ROW(run_late)
{
	struct op op = *row->op;
	struct pair_opts o = fx_opts(fx);
	struct xfer x;
	int i = 0;

	o.a.rnr_retry = (uint8_t)row->n;
	o.b.min_rnr_timer = row->n == 7 ? 1 : 22; /* 10 us; 20.48 ms */
	op.takes_recv = false;
	while (!post_without_recv(fx, row, &o, &op, &x))
		CHECK(fx, ++i < LATE_TRIES, "%d times this thread did not run for %.0f ms", i,
		      LATE_S * 1e3);
	x.op = row->op;
	x.recv_id = fx->wr_id++;
	CHECK(fx, bb_post_recv(x.p.b, x.recv_id, x.rsge, op.recv_data ? 1 : 0) == 0,
	      "the receive is not taken");
	bb_qp_ring_recv(x.p.b);
	settle_one(fx, &x);
	xfer_check_data(fx, &x);
}

/*
 * The target's timer becomes a long one, in RTS or on the way there, and the single retry waits
 * as long. The rest of the time depends on the load of the machine.
 */
ROW(run_timer)
{
	uint32_t mask = BB_QP_STATE | BB_QP_MIN_RNR_TIMER;
	struct op op = *op_find("send");
	struct bb_qp_attr attr;
	struct pair_opts o = fx_opts(fx);
	struct bb_wc wc;
	struct xfer x;
	double start;

	o.a.rnr_retry = 1;
	o.b.min_rnr_timer = 1; /* 10 us */
	op.takes_recv = false;
	xfer_init(&x, &op, fx_pair(fx, &o));
	OK(fx, bb_qp_query(x.p.b, &attr));
	if (row->n != 0) {
		attr.state = BB_QP_RESET;
		OK(fx, bb_qp_modify(x.p.b, &attr, BB_QP_STATE));
		attr.state = BB_QP_INIT;
		OK(fx, bb_qp_modify(x.p.b, &attr,
				    BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS));
		attr.state = BB_QP_RTR;
		OK(fx, bb_qp_modify(x.p.b, &attr,
				    BB_QP_STATE | BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN |
					    BB_QP_RQ_PSN | BB_QP_MAX_DEST_RD_ATOMIC |
					    BB_QP_MIN_RNR_TIMER));
		mask |= BB_QP_TIMEOUT | BB_QP_RETRY_CNT | BB_QP_RNR_RETRY | BB_QP_SQ_PSN |
			BB_QP_MAX_RD_ATOMIC;
	}
	attr.state = BB_QP_RTS;
	attr.min_rnr_timer = 24; /* 40.96 ms */
	OK(fx, bb_qp_modify(x.p.b, &attr, mask));
	xfer_prepare(fx, &x);
	xfer_expect_nothing(fx, &x);
	start = now_s();
	xfer_post(fx, &x);
	wait_wc(fx, fx->a.cq, &wc, 1, op.name);
	/* Two clocks: a tolerance of one in a hundred. */
	CHECK(fx, now_s() - start > 0.0405, "it failed after %.3f ms, not 40.96",
	      (now_s() - start) * 1e3);
	check_wc(fx, &wc, x.p.a, x.wr_id, BB_WC_RNR_RETRY_EXC_ERR, op.name);
	check_state(fx, x.p.b, BB_QP_RTS, "the receiver's");
}

void
rows_recv_error(struct rows *rows)
{
	static const uint32_t retries[] = {0, 1, 3, 6};
	struct row *row;
	char group[64];

	for (unsigned int f = 0; f < FAULTS; f++) {
		for (unsigned int i = 0; i < n_ops; i++) {
			if (!ops[i].recv_data)
				continue;
			for (unsigned int s = 0; s <= 1; s++) {
				snprintf(group, sizeof(group), "receive/rc/%s", fault_cell[f].name);
				row = row_add(rows, MAN, run_bad, group, "%s/%s", ops[i].name,
					      s != 0 ? "signaled" : "unsignaled");
				row->op = &ops[i];
				row->n = f;
				row->flags = s != 0 ? BB_SEND_SIGNALED : 0;
			}
		}
	}
	for (unsigned int i = 0; i < n_ops; i++) {
		if (!ops[i].takes_recv)
			continue;
		for (unsigned int s = 0; s < RTE_DIM(retries); s++) {
			row = row_add(rows, "ibv_modify_qp(3), ibv_poll_cq(3)", run_rnr,
				      "receive/rc/none-posted", "%s/rnr_retry-%u", ops[i].name,
				      retries[s]);
			row->op = &ops[i];
			row->n = retries[s];
			row->flags = s % 2 != 0 ? BB_SEND_SIGNALED : 0;
		}
		for (unsigned int s = 6; s <= 7; s++) {
			row = row_add(rows, "ibv_modify_qp(3)", run_late, "receive/rc/comes-late",
				      "%s/rnr_retry-%u", ops[i].name, s);
			row->op = &ops[i];
			row->n = s;
		}
	}
	row_add(rows, "ibv_modify_qp(3)", run_timer, "receive/rc/change-min_rnr_timer", "in-RTS")
		->needs = NEED_RNR | NEED_QP_CONNECT;
	row = row_add(rows, "ibv_modify_qp(3)", run_timer, "receive/rc/change-min_rnr_timer",
		      "RTR-to-RTS");
	row->needs = NEED_RNR | NEED_QP_CONNECT;
	row->n = 1;
}
