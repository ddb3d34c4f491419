/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Lists of requests: posted in order up to the first invalid one, whose index is returned. Also
 * the table of man ibv_post_send: an operation or flag that the QP type does not have is
 * rejected, and the queue stays unchanged.
 */
#include "conform.h"

#define MAN "ibv_post_send(3)"

enum bad {
	BAD_OPCODE,
	BAD_FLAG,
	BAD_PIECES,
	BAD_LENGTH,
	BAD_INLINE,
};

static const char *const bad_name[] = {"opcode", "flag", "pieces", "length", "inline"};

#define N 6u

/* N valid WRITEs of 32 bytes each. */
static void
good_list(struct fx *fx, struct xfer *x, struct bb_send_wr *wr, struct bb_sge *sge)
{
	for (uint32_t i = 0; i < N; i++) {
		sge[i] = (struct bb_sge){x->sge[0].addr + i * 32, 32, x->sge[0].lkey};
		wr[i] = (struct bb_send_wr){
			.wr_id = 100 + i,
			.opcode = BB_WR_RDMA_WRITE,
			.flags = BB_SEND_SIGNALED,
			.sge = &sge[i],
			.nsge = 1,
			.rdma = {.raddr = x->t.raddr + i * 32, .rkey = x->t.rkey},
		};
	}
	(void)fx;
}

static void
check_list(struct fx *fx, const struct xfer *x, uint32_t n)
{
	struct bb_wc wc[N];

	bb_qp_ring(x->p.a);
	wait_wc(fx, fx->a.cq, wc, n, "the list");
	for (uint32_t i = 0; i < n; i++)
		check_wc(fx, &wc[i], x->p.a, 100 + i, BB_WC_SUCCESS, "the list");
	settle(fx, x->p.a, fx->a.cq);
	xfer_check_data(fx, x);
}

ROW(run_all)
{
	struct bb_send_wr wr[N];
	struct bb_sge sge[N];
	struct xfer x;
	int err = -1;

	xfer_init(&x, op_find("write"), fx_shared(fx));
	x.len = N * 32;
	xfer_prepare(fx, &x);
	good_list(fx, &x, wr, sge);
	CHECK(fx, bb_qp_post_list(x.p.a, wr, 0, &err) == 0 && err == 0, "an empty list");
	err = -1;
	CHECK(fx, bb_qp_post_list(x.p.a, wr, N, &err) == N && err == 0, "error %d", err);
	check_list(fx, &x, N);
}

/* Returns the invalid request's index and errno; exactly those before it execute. */
ROW(run_bad)
{
	static uint8_t much[65536];
	struct bb_sge many[PIECES + 1], sge[N], big;
	uint32_t at = row->flags, posted, i;
	struct bb_send_wr wr[N];
	struct xfer x;
	int err = 0;

	xfer_init(&x, op_find("write"), fx_own_pair(fx));
	x.len = N * 32;
	xfer_prepare(fx, &x);
	good_list(fx, &x, wr, sge);
	for (i = 0; i <= PIECES; i++)
		many[i] = (struct bb_sge){sge[0].addr, 1, sge[0].lkey};
	big = (struct bb_sge){(uintptr_t)much, fx->max_inline + 1, 0};
	switch ((enum bad)row->n) {
	case BAD_OPCODE:
		wr[at].opcode = BB_WR_OPCODES;
		break;
	case BAD_FLAG:
		wr[at].flags |= 1u << 20;
		break;
	case BAD_PIECES:
		wr[at].sge = many;
		wr[at].nsge = fx->max_sge + 1;
		break;
	case BAD_LENGTH:
		sge[at].len = 0x80000001;
		break;
	case BAD_INLINE:
		wr[at].sge = &big;
		wr[at].flags |= BB_SEND_INLINE;
		break;
	}
	/* Memory of the invalid request and of those after it is not written. */
	memcpy(fx->b.want + (x.t.raddr - (uintptr_t)fx->b.mem) + at * 32,
	       (const uint8_t *)(uintptr_t)x.t.raddr + at * 32, (N - at) * 32);
	log_clear();
	posted = bb_qp_post_list(x.p.a, wr, N, &err);
	CHECK(fx, posted == at, "%u were posted, the bad one is %u", posted, at);
	CHECK(fx, err == -EINVAL, "error %d, expected %d", err, -EINVAL);
	CHECK(fx, log_lines() == 1, "%u lines were logged, expected 1", log_lines());
	check_list(fx, &x, at);
}

/* A full queue is no error: as many as fit are posted, the rest later. */
ROW(run_full)
{
	struct bb_send_wr wr[40];
	struct pair_opts o = fx_opts(fx);
	struct bb_wc wc[40];
	uint32_t n;
	int err = -1;
	struct pair p = fx_pair(fx, &o);

	for (uint32_t i = 0; i < 40; i++)
		wr[i] = (struct bb_send_wr){
			.wr_id = i, .opcode = BB_WR_RDMA_WRITE, .flags = BB_SEND_SIGNALED};
	n = bb_qp_post_list(p.a, wr, 40, &err);
	CHECK(fx, n == o.init.sq_depth && err == 0, "%u of 40 were posted, error %d", n, err);
	bb_qp_ring(p.a);
	wait_wc(fx, fx->a.cq, wc, n, "a full queue");
	CHECK(fx, bb_qp_post_list(p.a, wr + n, 40 - n, &err) == 40 - n && err == 0, "error %d",
	      err);
	bb_qp_ring(p.a);
	wait_wc(fx, fx->a.cq, wc, 40 - n, "the rest");
	check_wc(fx, &wc[39 - n], p.a, 39, BB_WC_SUCCESS, "the last");
}

ROW(run_recv)
{
	struct pair p = fx_shared(fx);
	struct bb_sge sge[4];
	struct bb_recv_wr wr[4];
	struct bb_wc wc[4];
	uint32_t i, bad = row->n;
	int err = -1;

	for (i = 0; i < 4; i++) {
		sge[i] = sge_of(&fx->b, GUARD + i * 64, 64);
		wr[i] = (struct bb_recv_wr){.wr_id = 60 + i, .sge = &sge[i], .nsge = 1};
	}
	if (bad < 4) {
		struct pair_opts o = fx_opts(fx);

		p = fx_pair(fx, &o);
		sge[bad].len = UINT32_MAX;
	}
	log_clear();
	CHECK(fx, bb_qp_post_recv_list(p.b, wr, 4, &err) == bad, "the index is not %u", bad);
	CHECK(fx, err == (bad < 4 ? -EINVAL : 0), "error %d", err);
	CHECK(fx, log_lines() == (bad < 4), "%u lines were logged", log_lines());
	bb_qp_ring_recv(p.b);
	for (i = 0; i < bad; i++)
		CHECK(fx, bb_post_send_inline(p.a, i, &i, 1, 0) == 0, "the SEND is not taken");
	bb_qp_ring(p.a);
	wait_wc(fx, fx->b.cq, wc, bad, "the receives");
	for (i = 0; i < bad; i++)
		check_wc(fx, &wc[i], p.b, 60 + i, BB_WC_SUCCESS, "the receives");
	settle(fx, p.a, fx->a.cq);
}

/* ---- The table */

static const struct {
	enum bb_wr_opcode opcode;
	const char *name;
	int err;
} illegal[] = {
	{BB_WR_TSO, "TSO", -ENOTSUP},
	{BB_WR_DRIVER1, "DRIVER1", -ENOTSUP},
	{BB_WR_OPCODES, "one-past-the-last", -EINVAL},
	{(enum bb_wr_opcode)1000, "1000", -EINVAL},
	{BB_WR_FLUSH, "FLUSH", -ENOTSUP},
	{BB_WR_ATOMIC_WRITE, "ATOMIC_WRITE", -ENOTSUP},
};

static void
check_cell(struct fx *fx, const struct bb_send_wr *wr, int want)
{
	struct bb_qp_stats before, after;
	int err = 0;
	struct pair p = fx_own_pair(fx);

	OK(fx, bb_qp_stats(p.a, &before));
	log_clear();
	CHECK(fx, bb_qp_post_list(p.a, wr, 1, &err) == 0, "it is posted");
	CHECK(fx, err == want, "error %d (%s), expected %d", err, strerror(-err), want);
	CHECK(fx, log_lines() == 1, "%u lines were logged, expected 1", log_lines());
	OK(fx, bb_qp_stats(p.a, &after));
	CHECK(fx, after.posted == before.posted && after.outstanding == before.outstanding,
	      "it is counted as posted");
	check_alive(fx, p);
}

ROW(run_illegal)
{
	struct bb_send_wr wr = {.opcode = illegal[row->n].opcode};

	check_cell(fx, &wr, illegal[row->n].err);
}

/* INLINE with incoming data, SOLICITED where no receive is consumed. */
ROW(run_illegal_flag)
{
	struct bb_sge sge = sge_of(&fx->a, GUARD, 8);
	struct bb_send_wr wr = {.opcode = row->op->wr, .flags = row->flags, .sge = &sge, .nsge = 1};

	wr.rdma.raddr = addr_of(&fx->b, GUARD);
	wr.rdma.rkey = fx->b.mr->rkey;
	if (row->op->atomic) {
		wr.atomic.raddr = addr_of(&fx->b, GUARD);
		wr.atomic.rkey = fx->b.mr->rkey;
	}
	check_cell(fx, &wr, -EINVAL);
}

void
rows_list(struct rows *rows)
{
	static const uint32_t place[] = {0, 1, N - 1};
	struct row *row;

	row_add(rows, MAN, run_all, "list/rc/sends", "all-good");
	row_add(rows, MAN, run_full, "list/rc/sends", "more-than-fit");
	for (unsigned int i = 0; i < RTE_DIM(bad_name); i++) {
		for (unsigned int k = 0; k < RTE_DIM(place); k++) {
			row = row_add(rows, MAN, run_bad, "list/rc/first-bad-is-told", "%s/at-%u",
				      bad_name[i], place[k]);
			row->n = i;
			row->flags = place[k];
		}
	}
	for (unsigned int i = 0; i <= 4; i += 2)
		row_add(rows, "ibv_post_recv(3)", run_recv, "list/rc/receives", "%s-%u",
			i < 4 ? "bad-at" : "all", i)
			->n = i;
	for (unsigned int i = 0; i < RTE_DIM(illegal); i++)
		row_add(rows, MAN, run_illegal, "list/rc/illegal-operation", "%s", illegal[i].name)
			->n = i;
	for (unsigned int i = 0; i < n_ops; i++) {
		if (!ops[i].can_inline) {
			row = row_add(rows, MAN, run_illegal_flag, "list/rc/illegal-flag",
				      "%s/inline", ops[i].name);
			row->op = &ops[i];
			row->flags = BB_SEND_INLINE;
			row->needs = ops[i].needs;
		}
		if (!ops[i].takes_recv) {
			row = row_add(rows, MAN, run_illegal_flag, "list/rc/illegal-flag",
				      "%s/solicited", ops[i].name);
			row->op = &ops[i];
			row->flags = BB_SEND_SOLICITED;
			row->needs = ops[i].needs;
		}
	}
}
