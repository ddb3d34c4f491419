/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion queues: number, order and identification of completions. */
#include <sched.h>

#include "conform.h"

#define MAN_CREATE "ibv_create_cq(3)"
#define MAN        "ibv_poll_cq(3)"

/* ---- Creation */

ROW(run_create)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq = NULL;

	if (row->n == 2) {
		attr.size = 8;
		REFUSED(fx, bb_cq_create(fx->a.dev, &attr, &cq), -EINVAL, "bb_cq_attr_init");
	} else {
		attr.depth = row->n == 0 ? 0 : fx->a.attr.max_cqe + 1;
		REFUSED(fx, bb_cq_create(fx->a.dev, &attr, &cq), -EINVAL, "depth");
	}
	CHECK(fx, cq == NULL, "a refused bb_cq_create() wrote its out-pointer");
}

ROW(run_owner)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq = NULL;

	attr.lcore = 100;
	REFUSED(fx, bb_cq_create(fx->a.dev, &attr, &cq), -EINVAL, "lcore");
	CHECK(fx, cq == NULL, "a refused bb_cq_create() wrote its out-pointer");
}

ROW(run_depth)
{
	struct bb_cq *cq = fx_cq(fx, &fx->a, row->n);

	CHECK(fx, bb_cq_depth(cq) >= row->n, "asked for %u, made for %u", row->n, bb_cq_depth(cq));
	check_quiet(fx, cq, "a new CQ");
}

/* ---- Polling */

/* A poll returns the requested number, in order, for any array size. */
ROW(run_burst)
{
	struct pair p = fx_shared(fx);
	struct bb_wc wc[32];
	double end = now_s() + fx->timeout;
	uint64_t next = 1000;

	for (uint32_t i = 0; i < 30; i++)
		CHECK(fx, bb_post_nop(p.a, 1000 + i, BB_SEND_SIGNALED) == 0,
		      "the NOP is not taken");
	bb_qp_ring(p.a);
	CHECK(fx, bb_cq_poll(fx->a.cq, wc, 0) == 0, "0 were asked for");
	while (next < 1030) {
		unsigned int n;

		memset(wc, 0xff, sizeof(wc));
		n = fx_poll(fx, fx->a.cq, wc, row->n);
		CHECK(fx, n <= row->n, "%u were asked for, %u came", row->n, n);
		for (uint32_t i = 0; i < n; i++, next++)
			check_wc(fx, &wc[i], p.a, next, BB_WC_SUCCESS, "a NOP");
		CHECK(fx, n == RTE_DIM(wc) || wc[n].wr_id == UINT64_MAX,
		      "an entry behind the last was written");
		CHECK(fx, now_s() < end, "completions are missing");
	}
	check_quiet(fx, fx->a.cq, "30 NOPs");
}

/* Unsignalled requests free their room without a completion, without end. */
ROW(run_unsignaled)
{
	struct bb_qp_stats stats;
	struct pair_opts o = fx_opts(fx);
	struct pair p;
	double end = now_s() + fx->timeout;
	struct bb_wc wc;

	o.init.sq_depth = row->n;
	o.init.send_cq = o.init.recv_cq = fx_cq(fx, &fx->a, row->n + o.rq_depth_a);
	p = fx_pair(fx, &o);
	for (uint32_t i = 0; i <= 600; i++) {
		/* The last request is waited for. */
		uint32_t flags = i == 600 ? BB_SEND_SIGNALED : 0;

		while (bb_post_nop(p.a, i, flags) != 0) {
			bb_qp_ring(p.a);
			CHECK(fx, fx_poll(fx, o.init.send_cq, &wc, 1) == 0,
			      "an unsignalled NOP completed");
			CHECK(fx, now_s() < end, "the queue stays full after %u posts", i);
			sched_yield();
		}
		if (i % 5 == 0)
			bb_qp_ring(p.a);
	}
	expect_wc(fx, o.init.send_cq, p.a, 600, BB_WC_SUCCESS, "the signalled NOP");
	OK(fx, bb_qp_stats(p.a, &stats));
	CHECK(fx, stats.outstanding == 0 && stats.posted == 601,
	      "601 posted: the statistics say %" PRIu64 ", %u of them outstanding", stats.posted,
	      stats.outstanding);
}

/* Two QPs on one CQ: each QP's completions are in order and name their QP. */
ROW(run_two_qps)
{
	struct pair_opts o = fx_opts(fx);
	struct pair p[2];
	struct bb_wc wc[40];
	uint32_t i, next[2] = {0, 0};

	p[0] = fx_pair(fx, &o);
	p[1] = fx_pair(fx, &o);
	for (i = 0; i < 40; i++) {
		CHECK(fx, bb_post_nop(p[i % 2].a, i / 2, BB_SEND_SIGNALED) == 0,
		      "the NOP is not taken");
		if (i % 3 == 0)
			bb_qp_ring(p[i % 2].a);
	}
	bb_qp_ring(p[0].a);
	bb_qp_ring(p[1].a);
	wait_wc(fx, fx->a.cq, wc, 40, "two QPs");
	for (i = 0; i < 40; i++) {
		uint32_t which = wc[i].qp == p[1].a;

		check_wc(fx, &wc[i], p[which].a, next[which]++, BB_WC_SUCCESS, "two QPs");
	}
}

/* Sends complete into one CQ, receives into another. */
ROW(run_two_cqs)
{
	struct bb_cq *scq = fx_cq(fx, &fx->a, 64), *rcq = fx_cq(fx, &fx->a, 64);
	struct bb_sge sge = sge_of(&fx->a, GUARD, 64);
	struct pair_opts o = fx_opts(fx);
	struct bb_wc wc;
	struct pair p;

	o.init.send_cq = scq;
	o.init.recv_cq = rcq;
	p = fx_pair(fx, &o);
	CHECK(fx, bb_post_recv(p.a, 5, &sge, 1) == 0, "the receive is not taken");
	bb_qp_ring_recv(p.a);
	CHECK(fx, bb_post_send_inline(p.b, 6, "hello", 5, BB_SEND_SIGNALED) == 0,
	      "the SEND is not taken");
	bb_qp_ring(p.b);
	wait_wc(fx, fx->b.cq, &wc, 1, "the SEND");
	expect_wc(fx, rcq, p.a, 5, BB_WC_SUCCESS, "the receive");
	check_quiet(fx, scq, "a receive in the CQ of sends");
	CHECK(fx, bb_post_nop(p.a, 7, BB_SEND_SIGNALED) == 0, "the NOP is not taken");
	bb_qp_ring(p.a);
	wait_wc(fx, scq, &wc, 1, "the NOP");
	check_quiet(fx, rcq, "a send in the CQ of receives");
}

/* Both sides send at once. */
ROW(run_both_ways)
{
	struct bb_sge a = sge_of(&fx->a, GUARD, 256), b = sge_of(&fx->b, GUARD, 256);
	struct pair p = fx_shared(fx);
	struct bb_wc wc[4];

	for (unsigned int i = 0; i < 2; i++) {
		CHECK(fx,
		      bb_post_recv(p.a, 10 + i, &a, 1) == 0 &&
			      bb_post_recv(p.b, 10 + i, &b, 1) == 0,
		      "the receive is not taken");
		CHECK(fx,
		      bb_post_send_imm_inline(p.a, 20 + i, "a", 1, 1, BB_SEND_SIGNALED) == 0 &&
			      bb_post_send_imm_inline(p.b, 20 + i, "b", 1, 2, BB_SEND_SIGNALED) ==
				      0,
		      "the SEND is not taken");
	}
	bb_qp_ring_recv(p.a);
	bb_qp_ring_recv(p.b);
	bb_qp_ring(p.a);
	bb_qp_ring(p.b);
	for (unsigned int k = 0; k < 2; k++) {
		struct side *s = k == 0 ? &fx->a : &fx->b;
		unsigned int sends = 0, recvs = 0;

		wait_wc(fx, s->cq, wc, 4, "both ways");
		for (unsigned int i = 0; i < 4; i++) {
			bool recv = wc[i].wr_id < 20;

			check_wc(fx, &wc[i], k == 0 ? p.a : p.b, recv ? 10 + recvs++ : 20 + sends++,
				 BB_WC_SUCCESS, "both ways");
			CHECK(fx, wc[i].opcode == (recv ? BB_WC_RECV : BB_WC_SEND), "opcode %u",
			      wc[i].opcode);
			if (recv)
				CHECK(fx, wc[i].imm == (k == 0 ? 2u : 1u), "immediate %u",
				      wc[i].imm);
		}
		check_quiet(fx, s->cq, "both ways");
	}
}

/* Messages consume receives in posting order. */
ROW(run_recv_order)
{
	struct pair p = fx_shared(fx);
	struct bb_wc wc[16];

	for (uint32_t i = 0; i < 16; i++) {
		struct bb_sge sge = sge_of(&fx->b, GUARD + i * 64, 64);

		CHECK(fx, bb_post_recv(p.b, 50 + i, &sge, 1) == 0, "the receive is not taken");
		CHECK(fx, bb_post_send_inline(p.a, i, &i, 1 + i % 4, 0) == 0,
		      "the SEND is not taken");
	}
	bb_qp_ring_recv(p.b);
	bb_qp_ring(p.a);
	wait_wc(fx, fx->b.cq, wc, 16, "16 receives");
	for (uint32_t i = 0; i < 16; i++) {
		check_wc(fx, &wc[i], p.b, 50 + i, BB_WC_SUCCESS, "16 receives");
		CHECK(fx, wc[i].byte_len == 1 + i % 4, "byte_len %u of message %u", wc[i].byte_len,
		      i);
		CHECK(fx, fx->b.mem[GUARD + i * 64] == i, "message %u is in another's buffer", i);
	}
	settle(fx, p.a, fx->a.cq);
}

/* Every status has a name and a cause of its own. */
ROW(run_texts)
{
	enum bb_wc_status s, t;

	for (s = BB_WC_SUCCESS; s <= BB_WC_GENERAL_ERR; s++) {
		CHECK(fx, strlen(bb_wc_status_name(s)) > 3, "status %d has no name", s);
		CHECK(fx, strlen(bb_wc_status_cause(s, 0)) > 10, "status %d has no cause", s);
		for (t = BB_WC_SUCCESS; t < s; t++)
			CHECK(fx,
			      strcmp(bb_wc_status_name(s), bb_wc_status_name(t)) != 0 &&
				      strcmp(bb_wc_status_cause(s, 0), bb_wc_status_cause(t, 0)) !=
					      0,
			      "statuses %d and %d have one text", s, t);
	}
}

void
rows_completion(struct rows *rows)
{
	static const uint32_t depth[] = {1, 2, 63, 64, 1000}, array[] = {1, 2, 7, 32},
			      queue[] = {1, 2, 3, 8, 32};

	row_add(rows, MAN_CREATE, run_create, "completion/create-refused", "depth-0")->n = 0;
	row_add(rows, MAN_CREATE, run_create, "completion/create-refused", "depth-over")->n = 1;
	row_add(rows, MAN_CREATE, run_create, "completion/create-refused",
		"size-of-another-version")
		->n = 2;
	row_add(rows, MAN_CREATE, run_owner, "completion/create-refused", "lcore-unknown");
	for (unsigned int i = 0; i < RTE_DIM(depth); i++)
		row_add(rows, MAN_CREATE, run_depth, "completion/depth", "%u", depth[i])->n =
			depth[i];
	for (unsigned int i = 0; i < RTE_DIM(array); i++)
		row_add(rows, MAN, run_burst, "completion/poll", "%u-at-a-time", array[i])->n =
			array[i];
	for (unsigned int i = 0; i < RTE_DIM(queue); i++)
		row_add(rows, "ibv_create_qp(3)", run_unsignaled, "completion/unsignaled-give-room",
			"sq_depth-%u", queue[i])
			->n = queue[i];
	row_add(rows, MAN, run_two_qps, "completion/order", "two-qps-one-cq");
	row_add(rows, MAN, run_two_cqs, "completion/order", "two-cqs");
	row_add(rows, MAN, run_both_ways, "completion/order", "both-ways")->needs = NEED_IMM;
	row_add(rows, MAN, run_recv_order, "completion/order", "receives");
	row_add(rows, "ibv_wc_status_str(3)", run_texts, "completion/texts", "each-its-own");
}
