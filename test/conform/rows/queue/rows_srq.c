/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Shared receive queues: the order of receives, the limit, and rejected calls. */
#include "conform.h"

#define MAN      "ibv_create_srq(3)"
#define MAN_RECV "ibv_post_srq_recv(3)"
#define DEPTH    16u

static void
undo_srq(void *srq)
{
	(void)bb_srq_destroy(srq);
}

static struct bb_srq *
srq_of(struct fx *fx, uint32_t limit)
{
	struct bb_srq_attr attr = DEFAULTS(srq_attr);
	struct bb_srq *srq;

	attr.depth = DEPTH;
	attr.max_sge = RTE_MIN(fx->b.attr.max_srq_sge, 3u);
	attr.limit = limit;
	OK(fx, bb_srq_create(fx->b.pd, &attr, &srq));
	fx_defer(fx, undo_srq, srq);
	return srq;
}

/* Makes a pair whose B takes its receives from the SRQ. */
static struct pair
pair_on(struct fx *fx, struct bb_srq *srq, struct pair_opts *o)
{
	struct bb_qp_init_attr init;
	struct pair p;

	*o = fx_opts(fx);
	init = o->init;
	init.send_cq = init.recv_cq = fx->a.cq;
	init.rq_depth = o->rq_depth_a;
	p.a = fx_qp(fx, fx->a.pd, &init);
	init.send_cq = init.recv_cq = fx->b.cq;
	init.rq_depth = 0;
	init.srq = srq;
	p.b = fx_qp(fx, fx->b.pd, &init);
	fx_connect(fx, p, o);
	return p;
}

static void
recv_at(struct fx *fx, struct bb_srq *srq, uint64_t id, uint32_t off, uint32_t len)
{
	struct bb_sge sge = sge_of(&fx->b, off, len);

	CHECK(fx, bb_post_srq_recv(srq, id, &sge, 1) == 0, "the receive is not taken");
}

ROW(run_none)
{
	struct bb_srq_attr attr = DEFAULTS(srq_attr);
	struct bb_srq *srq = NULL;

	REFUSED(fx, bb_srq_create(fx->a.pd, &attr, &srq), -ENOTSUP, "shared receive queue");
	CHECK(fx, srq == NULL, "a refused bb_srq_create() wrote its out-pointer");
}

ROW(run_refused)
{
	static const char *const word[] = {"depth", "depth", "max_sge", "limit",
					   "bb_srq_attr_init"};
	struct bb_srq_attr attr = DEFAULTS(srq_attr);
	struct bb_srq *srq = NULL;

	if (row->n == 0)
		attr.depth = 0;
	else if (row->n == 1)
		attr.depth = fx->a.attr.max_srq_wr + 1;
	else if (row->n == 2)
		attr.max_sge = fx->a.attr.max_srq_sge + 1;
	else if (row->n == 3)
		attr.limit = attr.depth + 1;
	else
		attr.size = 8;
	REFUSED(fx, bb_srq_create(fx->a.pd, &attr, &srq), -EINVAL, word[row->n]);
	CHECK(fx, srq == NULL, "a refused bb_srq_create() wrote its out-pointer");
}

ROW(run_busy)
{
	struct bb_srq *srq = srq_of(fx, 0);
	struct pair_opts o;
	struct pair p = pair_on(fx, srq, &o);
	struct bb_sge sge = sge_of(&fx->b, GUARD, 8);

	REFUSED(fx, bb_srq_destroy(srq), -EBUSY, "QP");
	REFUSED(fx, bb_pd_free(fx->b.pd), -EBUSY, "SRQ");
	/* Its QP has no receive queue. */
	REFUSED(fx, bb_post_recv(p.b, 1, &sge, 1), -EINVAL, "receive queue");
}

/* Every message takes the oldest receive, whichever QP it is for. */
ROW(run_share)
{
	struct bb_srq *srq = srq_of(fx, 0);
	struct pair_opts o;
	struct pair p[3];
	struct bb_srq_stats stats;
	struct bb_wc wc;
	uint32_t i, len = row->n;

	for (i = 0; i < 3; i++)
		p[i] = pair_on(fx, srq, &o);
	for (i = 0; i < DEPTH; i++)
		recv_at(fx, srq, 100 + i, GUARD + i * 2048, 2048);
	bb_srq_ring(srq);
	memset(fx->b.mem + GUARD, 0, DEPTH * 2048);
	for (i = 0; i < DEPTH; i++) {
		struct bb_sge sge = sge_of(&fx->a, GUARD, len);

		pattern(fx->a.mem + GUARD, len, 7000 + i);
		CHECK(fx, bb_post_send_imm(p[i % 3].a, i, &sge, 1, i, BB_SEND_SIGNALED) == 0,
		      "the SEND is not taken");
		bb_qp_ring(p[i % 3].a);
		wc = expect_wc(fx, fx->b.cq, p[i % 3].b, 100 + i, BB_WC_SUCCESS,
			       "a receive of the SRQ");
		CHECK(fx,
		      wc.opcode == BB_WC_RECV && wc.byte_len == len && wc.imm == i &&
			      wc.flags == BB_WC_WITH_IMM,
		      "the receive's opcode, length or immediate data is wrong");
		CHECK(fx, memcmp(fx->b.mem + GUARD + i * 2048, fx->a.mem + GUARD, len) == 0,
		      "message %u is not in receive %u", i, i);
		expect_wc(fx, fx->a.cq, p[i % 3].a, i, BB_WC_SUCCESS, "the SEND");
	}
	OK(fx, bb_srq_stats(srq, &stats));
	CHECK(fx, stats.outstanding == 0 && stats.posted == DEPTH && stats.qps == 3,
	      "the statistics say %u outstanding, %u QPs", stats.outstanding, stats.qps);
	check_quiet(fx, fx->b.cq, "an SRQ");
}

/* A full SRQ returns 0; an empty one makes senders wait. */
ROW(run_full_and_empty)
{
	struct bb_srq *srq = srq_of(fx, 0);
	struct bb_srq_attr attr;
	struct bb_sge sge = sge_of(&fx->b, GUARD, 8);
	struct pair_opts o;
	struct pair p = pair_on(fx, srq, &o);
	struct bb_wc wc;
	double end;
	uint32_t i;

	OK(fx, bb_srq_query(srq, &attr));
	CHECK(fx, attr.depth >= DEPTH, "asked for %u, made for %u", DEPTH, attr.depth);
	CHECK(fx, bb_post_send_inline(p.a, 1, "late", 4, BB_SEND_SIGNALED) == 0,
	      "the SEND is not taken");
	bb_qp_ring(p.a);
	for (end = now_s() + 0.002; now_s() < end;)
		CHECK(fx, fx_poll(fx, fx->a.cq, &wc, 1) == 0, "it completed without a receive");
	for (i = 0; i < attr.depth; i++)
		CHECK(fx, bb_post_srq_recv(srq, i, &sge, 1) == 0, "receive %u is not taken", i);
	log_clear();
	CHECK(fx, bb_post_srq_recv(srq, i, &sge, 1) == -EAGAIN, "a full SRQ takes one more");
	CHECK(fx, log_lines() == 0, "a full SRQ is logged");
	bb_srq_ring(srq);
	expect_wc(fx, fx->a.cq, p.a, 1, BB_WC_SUCCESS, "the SEND that waited");
	expect_wc(fx, fx->b.cq, p.b, 0, BB_WC_SUCCESS, "its receive");
	CHECK(fx, memcmp(fx->b.mem + GUARD, "late", 4) == 0, "it brought other bytes");
	CHECK(fx, bb_post_srq_recv(srq, 99, &sge, 1) == 0, "it is still full");
}

static void
send_one(struct fx *fx, struct pair p)
{
	struct bb_wc wc;

	complete(fx, fx->a.cq, p.a, bb_post_send_inline(p.a, 5, "x", 1, BB_SEND_SIGNALED), 5,
		 BB_WC_SUCCESS, "the SEND");
	wait_wc(fx, fx->b.cq, &wc, 1, "the receive");
	CHECK(fx, wc.status == BB_WC_SUCCESS, "the receive: %s", bb_wc_status_name(wc.status));
}

/* One event when fewer than the limit are left; none again before it is armed again. */
ROW(run_limit)
{
	struct bb_srq *srq = srq_of(fx, row->n == 0 ? 4 : 0);
	struct side *s = fx->two ? &fx->b : &fx->a;
	struct bb_srq_attr attr;
	struct bb_event event;
	struct pair_opts o;
	struct pair p = pair_on(fx, srq, &o);

	for (uint32_t i = 0; i < 6; i++)
		recv_at(fx, srq, i, GUARD + i * 64, 64);
	bb_srq_ring(srq);
	if (row->n != 0)
		OK(fx, bb_srq_modify(srq, 4));
	OK(fx, bb_srq_query(srq, &attr));
	CHECK(fx, attr.limit == 4, "the limit is %u, 4 was set", attr.limit);
	send_one(fx, p);
	send_one(fx, p);
	check_no_event(fx, s, "4 left, limit 4");
	send_one(fx, p);
	event = wait_event(fx, s, "3 left, limit 4");
	CHECK(fx, event.type == BB_EVENT_SRQ_LIMIT && event.srq == srq, "event \"%s\"",
	      bb_event_name(event.type));
	OK(fx, bb_srq_query(srq, &attr));
	CHECK(fx, attr.limit == 0, "the limit is %u after it has fired", attr.limit);
	send_one(fx, p);
	check_no_event(fx, s, "a limit that has fired");
	OK(fx, bb_srq_modify(srq, 2));
	send_one(fx, p);
	event = wait_event(fx, s, "1 left, limit 2");
	CHECK(fx, event.type == BB_EVENT_SRQ_LIMIT, "event \"%s\"", bb_event_name(event.type));
	OK(fx, bb_srq_modify(srq, 0));
	REFUSED(fx, bb_srq_modify(srq, 10000), -EINVAL, "limit");
}

/* A QP that fails leaves its receives to the others, and reports when it takes no more. */
ROW(run_last_wqe)
{
	struct bb_srq *srq = srq_of(fx, 0);
	struct side *s = fx->two ? &fx->b : &fx->a;
	struct bb_qp_attr attr;
	struct bb_event event;
	struct pair_opts o;
	struct pair bad, good;

	bad = pair_on(fx, srq, &o);
	good = pair_on(fx, srq, &o);
	for (uint32_t i = 0; i < 4; i++)
		recv_at(fx, srq, i, GUARD + i * 64, 64);
	bb_srq_ring(srq);
	attr = o.b;
	attr.state = BB_QP_ERR;
	OK(fx, bb_qp_modify(bad.b, &attr, BB_QP_STATE));
	event = wait_event(fx, s, "a QP of an SRQ in ERR");
	CHECK(fx, event.type == BB_EVENT_SRQ_LAST_WQE && event.qp == bad.b, "event \"%s\"",
	      bb_event_name(event.type));
	check_quiet(fx, fx->b.cq, "receives of an SRQ are not flushed");
	for (uint32_t i = 0; i < 4; i++)
		send_one(fx, good);
}

ROW(run_bad_recv)
{
	struct bb_srq *srq = srq_of(fx, 0);
	struct bb_sge sge[64];

	for (uint32_t i = 0; i < RTE_DIM(sge); i++)
		sge[i] = sge_of(&fx->b, GUARD, 8);
	if (row->n == 0) {
		REFUSED(fx, bb_post_srq_recv(srq, 1, sge, RTE_DIM(sge)), -EINVAL, "max_sge");
	} else {
		sge[0].len = 0x80000001;
		REFUSED(fx, bb_post_srq_recv(srq, 1, sge, 1), -EINVAL, "2^31");
	}
}

void
rows_srq(struct rows *rows)
{
	static const struct {
		const char *group, *cell, *man;
		void (*run)(struct fx *fx, const struct row *row);
		uint32_t n;
	} list[] = {
		{"srq/create-refused", "depth-0", MAN, run_refused, 0},
		{"srq/create-refused", "depth-over", MAN, run_refused, 1},
		{"srq/create-refused", "max_sge-over", MAN, run_refused, 2},
		{"srq/create-refused", "limit-over-depth", MAN, run_refused, 3},
		{"srq/create-refused", "size-of-another-version", MAN, run_refused, 4},
		{"srq/children-live", "qp", MAN, run_busy, 0},
		{"srq/rc/three-qps", "1-byte", MAN_RECV, run_share, 1},
		{"srq/rc/three-qps", "64-bytes", MAN_RECV, run_share, 64},
		{"srq/rc/three-qps", "2048-bytes", MAN_RECV, run_share, 2048},
		{"srq/rc/full-and-empty", "one-qp", MAN_RECV, run_full_and_empty, 0},
		{"srq/rc/limit", "at-creation", "ibv_modify_srq(3)", run_limit, 0},
		{"srq/rc/limit", "armed-later", "ibv_modify_srq(3)", run_limit, 1},
		{"srq/rc/last-wqe", "error", "ibv_get_async_event(3)", run_last_wqe, 0},
		{"srq/post-refused", "over-max_sge", MAN_RECV, run_bad_recv, 0},
		{"srq/post-refused", "piece-over-2^31", MAN_RECV, run_bad_recv, 1},
	};
	struct row *row;

	row_add(rows, MAN, run_none, "srq/none", "create")->needs = NEED_NO_SRQ;
	for (unsigned int i = 0; i < RTE_DIM(list); i++) {
		row = row_add(rows, list[i].man, list[i].run, list[i].group, "%s", list[i].cell);
		row->n = list[i].n;
		row->needs = NEED_SRQ;
		if (list[i].run == run_share)
			row->needs |= NEED_IMM;
	}
}
