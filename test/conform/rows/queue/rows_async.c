/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Asynchronous events without an invalid request: a first message in RTR, and failures of the
 * hardware. A program cannot cause the latter, so these rows open a software device with option
 * fault.
 */
#include "conform.h"

#define MAN    "ibv_get_async_event(3)"
#define FAULTY "soft15" /* not used by other rows */

/* One WRITE and its completion. */
static void
write_one(struct fx *fx, struct pair p, uint64_t id)
{
	CHECK(fx,
	      bb_post_write_inline(p.a, id, &id, 8, addr_of(&fx->b, GUARD), fx->b.mr->rkey,
				   BB_SEND_SIGNALED) == 0,
	      "the WRITE is not taken");
	bb_qp_ring(p.a);
}

static void
write_done(struct fx *fx, struct pair p, struct bb_cq *cq, uint64_t id, enum bb_wc_status status)
{
	uint64_t got;

	expect_wc(fx, cq, p.a, id, status, "the WRITE");
	memcpy(&got, fx->b.mem + GUARD, 8);
	CHECK(fx, (got == id) == (status == BB_WC_SUCCESS), "the target has %" PRIu64, got);
}

static void
wait_data(struct fx *fx, uint64_t id)
{
	double end = now_s() + fx->timeout;

	while (__atomic_load_n((uint64_t *)(void *)(fx->b.mem + GUARD), __ATOMIC_ACQUIRE) != id &&
	       now_s() < end)
		fx_progress(fx);
}

static void
want_event(struct fx *fx, enum bb_event_type type, struct bb_qp *qp, struct bb_cq *cq,
	   uint32_t port)
{
	struct bb_event event = wait_event(fx, &fx->a, bb_event_name(type));

	CHECK(fx, event.type == type, "event \"%s\", expected \"%s\"", bb_event_name(event.type),
	      bb_event_name(type));
	CHECK(fx, event.qp == qp && event.cq == cq && event.port == port && event.srq == NULL,
	      "event \"%s\" names another object", bb_event_name(type));
}

/* ---- A first message */

/* The target stays in RTR; the first message raises the event, later ones do not. */
ROW(run_comm_est)
{
	struct side *s = fx->two ? &fx->b : &fx->a;
	struct bb_qp_init_attr init;
	struct bb_qp_addr a, b;
	struct bb_qp_attr attr;
	struct bb_event event;
	struct pair_opts o = fx_opts(fx);
	struct pair p;
	uint32_t common;

	init = o.init;
	init.type = row->type;
	init.send_cq = init.recv_cq = fx->a.cq;
	p.a = fx_qp(fx, fx->a.pd, &init);
	init.send_cq = init.recv_cq = fx->b.cq;
	p.b = fx_qp(fx, fx->b.pd, &init);
	OK(fx, bb_qp_addr(p.a, 1, fx->a.gid, &a));
	OK(fx, bb_qp_addr(p.b, 1, fx->b.gid, &b));
	OK(fx, bb_qp_connect(p.a, &a, &b, &o.a));
	attr = o.b;
	attr.path_mtu = fx->mtu;
	attr.dest_qpn = a.qpn;
	attr.rq_psn = a.psn;
	attr.sq_psn = b.psn;
	memcpy(attr.path.dgid, a.gid, sizeof(a.gid));
	attr.path.dlid = a.lid;
	attr.path.is_global = fx->b.port.grh_required;
	attr.state = BB_QP_INIT;
	OK(fx,
	   bb_qp_modify(p.b, &attr, BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS));
	attr.state = BB_QP_RTR;
	common = BB_QP_STATE | BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN;
	OK(fx, bb_qp_modify(p.b, &attr,
			    row->type == BB_QPT_UC
				    ? common
				    : common | BB_QP_MAX_DEST_RD_ATOMIC | BB_QP_MIN_RNR_TIMER));
	check_no_event(fx, s, "a QP in RTR");
	write_one(fx, p, 1);
	event = wait_event(fx, s, "the first message");
	CHECK(fx, event.type == BB_EVENT_QP_COMM_EST && event.qp == p.b, "event \"%s\"",
	      bb_event_name(event.type));
	/* Completions on an unreliable QP prove nothing about the target. */
	wait_data(fx, 1);
	write_done(fx, p, fx->a.cq, 1, BB_WC_SUCCESS);
	write_one(fx, p, 2);
	wait_data(fx, 2);
	write_done(fx, p, fx->a.cq, 2, BB_WC_SUCCESS);
	check_no_event(fx, s, "the second message");
	check_state(fx, p.b, BB_QP_RTR, "the target's");
}

/* ---- Hardware failures */

/* Options of a faulty device, and the function that checks it. */
struct fault {
	const char *cell, *option;
	void (*run)(struct fx *fx);
};

/* Runs the row on a device of its own; it must close whatever happened to it. */
ROW(run_fault)
{
	const struct fault *fault = row->arg;
	static struct fx own;
	volatile bool good = false;
	bool closed;
	char spec[64];

	snprintf(spec, sizeof(spec), FAULTY ",fault=%s", fault->option);
	OK(fx, fx_open(&own, spec, fx->timeout, NULL, 0));
	if (setjmp(own.jmp) == 0) {
		fault->run(&own);
		check_no_event(&own, &own.a, "at the end of the row");
		good = true;
	}
	fx_undo(&own);
	closed = fx_close(&own);
	CHECK(fx, good, "%s", own.why);
	CHECK(fx, closed, "not everything could be destroyed");
}

static enum bb_port_state
port_state(struct fx *fx)
{
	struct bb_port_attr attr;

	OK(fx, bb_port_query(fx->a.dev, 1, &attr));
	return attr.state;
}

/* The second request finds the port down and is repeated until it gets through. */
static void
port_flaps(struct fx *fx)
{
	struct bb_dev_stats stats;
	struct pair_opts o = fx_opts(fx);
	struct pair p;

	o.a.timeout = 14; /* 67 ms */
	o.a.retry_cnt = 7;
	p = fx_pair(fx, &o);
	write_one(fx, p, 1);
	write_done(fx, p, fx->a.cq, 1, BB_WC_SUCCESS);
	write_one(fx, p, 2);
	want_event(fx, BB_EVENT_PORT_DOWN, NULL, NULL, 1);
	CHECK(fx, port_state(fx) == BB_PORT_DOWN, "the port is not down");
	check_quiet(fx, fx->a.cq, "a port that is down");
	want_event(fx, BB_EVENT_PORT_ACTIVE, NULL, NULL, 1);
	CHECK(fx, port_state(fx) == BB_PORT_ACTIVE, "the port is not active");
	write_done(fx, p, fx->a.cq, 2, BB_WC_SUCCESS);
	check_state(fx, p.a, BB_QP_RTS, "the requester's");
	OK(fx, bb_dev_stats(fx->a.dev, &stats));
	CHECK(fx, stats.ack_timeout == 3, "%" PRIu64 " requests were repeated, not 3",
	      stats.ack_timeout);
}

static void
recover(struct fx *fx, struct pair p, const struct pair_opts *o, struct bb_qp_recovery *r)
{
	struct bb_wr_end rest[64];
	struct bb_qp_recovery rb = {.ends = rest, .max = RTE_DIM(rest)};
	struct bb_qp_addr a, b;

	OK(fx, bb_qp_addr(p.a, 1, fx->a.gid, &a));
	OK(fx, bb_qp_addr(p.b, 1, fx->b.gid, &b));
	OK(fx, bb_qp_recover(p.a, &a, &b, &o->a, r));
	OK(fx, bb_qp_recover(p.b, &b, &a, &o->b, &rb));
}

/* The port stays down for longer than the request is repeated. */
static void
port_down_too_long(struct fx *fx)
{
	struct bb_wr_end ends[64];
	struct bb_qp_recovery r = {.ends = ends, .max = RTE_DIM(ends)};
	struct pair_opts o = fx_opts(fx);
	struct pair p;

	o.a.timeout = 10; /* 4 ms */
	o.a.retry_cnt = 1;
	p = fx_pair(fx, &o);
	memset(fx->b.mem + GUARD, 0, 8);
	write_one(fx, p, 1);
	want_event(fx, BB_EVENT_PORT_DOWN, NULL, NULL, 1);
	write_done(fx, p, fx->a.cq, 1, BB_WC_RETRY_EXC_ERR);
	check_state(fx, p.a, BB_QP_ERR, "the requester's");
	check_state(fx, p.b, BB_QP_RTS, "the target's");
	recover(fx, p, &o, &r);
	CHECK(fx, r.n == 0, "%u requests are told of that had a completion", r.n);
	write_one(fx, p, 2);
	write_done(fx, p, fx->a.cq, 2, BB_WC_SUCCESS);
	want_event(fx, BB_EVENT_PORT_ACTIVE, NULL, NULL, 1);
	check_alive(fx, p);
}

/* Only destroy calls work, which the end of the row makes. */
static void
device_dies(struct fx *fx)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_qp_attr got;
	struct bb_cq *cq = NULL;
	struct bb_mr *mr = NULL;
	struct bb_pd *pd = NULL;
	struct bb_qp *qp = NULL;
	struct pair_opts o = fx_opts(fx);
	struct pair p;
	uint64_t old;

	o.a.timeout = 8; /* 1 ms */
	p = fx_pair(fx, &o);
	write_one(fx, p, 1);
	write_done(fx, p, fx->a.cq, 1, BB_WC_SUCCESS);
	write_one(fx, p, 2);
	want_event(fx, BB_EVENT_DEV_FATAL, NULL, NULL, 0);
	check_quiet(fx, fx->a.cq, "a dead device");
	memcpy(&old, fx->b.mem + GUARD, 8);
	CHECK(fx, old == 1, "a dead device has written");
	CHECK(fx, port_state(fx) == BB_PORT_DOWN, "the port of a dead device is not down");
	REFUSED(fx, bb_cq_create(fx->a.dev, &attr, &cq), -EIO, "gone or in error");
	REFUSED(fx, bb_pd_alloc(fx->a.dev, &pd), -EIO, "gone or in error");
	REFUSED(fx, bb_mr_reg(fx->a.pd, fx->a.mem, ARENA, 0, &mr), -EIO, "gone or in error");
	o.init.send_cq = o.init.recv_cq = fx->a.cq;
	REFUSED(fx, bb_qp_create(fx->a.pd, &o.init, &qp), -EIO, "gone or in error");
	REFUSED(fx, bb_qp_query(p.a, &got), -EIO, "gone or in error");
	CHECK(fx, cq == NULL && pd == NULL && mr == NULL && qp == NULL,
	      "a refused call wrote its out-pointer");
	check_no_event(fx, &fx->a, "a dead device");
}

/* A failed CQ fails its QPs; CQ and QPs must be created anew (IBTA vol. 1, 11.6.3.3). */
static void
cq_breaks(struct fx *fx)
{
	struct bb_event event;
	bool cq_told = false;
	struct bb_cq *cq = fx_cq(fx, &fx->a, 128);
	uint32_t told = 0, n;
	struct pair_opts o = fx_opts(fx);
	struct pair p, q;

	o.init.send_cq = o.init.recv_cq = cq;
	p = fx_pair(fx, &o);
	q = fx_pair(fx, &o);
	write_one(fx, p, 1);
	write_done(fx, p, cq, 1, BB_WC_SUCCESS);
	write_one(fx, p, 2);
	for (n = 0; n < 3; n++) {
		double end = now_s() + fx->timeout;

		while (bb_event_get(fx->a.dev, &event) != 0)
			CHECK(fx, now_s() < end, "%u events of 3 came", n);
		if (event.type == BB_EVENT_CQ_ERROR && event.cq == cq)
			cq_told = true;
		else if (event.type == BB_EVENT_QP_FATAL && event.qp == p.a)
			told |= 1;
		else if (event.type == BB_EVENT_QP_FATAL && event.qp == q.a)
			told |= 2;
		else
			fail(fx, "event \"%s\"", bb_event_name(event.type));
	}
	CHECK(fx, cq_told && told == 3, "an event came twice");
	check_quiet(fx, cq, "a broken CQ");
	check_state(fx, p.a, BB_QP_ERR, "the CQ's first");
	check_state(fx, q.a, BB_QP_ERR, "the CQ's second");
	check_state(fx, p.b, BB_QP_RTS, "the target's");
	fx_forget(fx, p.a);
	fx_forget(fx, q.a);
	fx_forget(fx, cq);
	OK(fx, bb_qp_destroy(p.a));
	OK(fx, bb_qp_destroy(q.a));
	OK(fx, bb_cq_destroy(cq));
	o.init.send_cq = o.init.recv_cq = fx_cq(fx, &fx->a, 128);
	p = fx_pair(fx, &o);
	write_one(fx, p, 3);
	write_done(fx, p, o.init.send_cq, 3, BB_WC_SUCCESS);
}

/* No completion gives a cause: the fate of outstanding requests is unknown. */
static void
qp_breaks(struct fx *fx)
{
	struct bb_wr_end ends[64];
	struct bb_qp_recovery r = {.ends = ends, .max = RTE_DIM(ends)};
	struct pair_opts o = fx_opts(fx);
	struct pair p = fx_pair(fx, &o);

	write_one(fx, p, 1);
	write_done(fx, p, fx->a.cq, 1, BB_WC_SUCCESS);
	write_one(fx, p, 2);
	want_event(fx, BB_EVENT_QP_FATAL, p.a, NULL, 0);
	check_state(fx, p.a, BB_QP_ERR, "the broken");
	recover(fx, p, &o, &r);
	CHECK(fx, r.n == 1 && ends[0].wc.wr_id == 2 && ends[0].wc.status == BB_WC_WR_FLUSH_ERR,
	      "%u requests are told of, status \"%s\"", r.n,
	      r.n != 0 ? bb_wc_status_name(ends[0].wc.status) : "");
	CHECK(fx, ends[0].fate == BB_WR_UNKNOWN, "its fate is \"%s\"",
	      bb_wr_fate_name(ends[0].fate));
	check_alive(fx, p);
}

void
rows_async(struct rows *rows)
{
	static const struct fault faults[] = {
		{"port/down-and-up", "port_down:2", port_flaps},
		{"port/down-too-long", "port_down:1", port_down_too_long},
		{"device/fatal", "dev_fatal:2", device_dies},
		{"cq/error", "cq_error:2", cq_breaks},
		{"qp/fatal", "qp_fatal:2", qp_breaks},
	};
	struct row *row;

	row_add(rows, MAN, run_comm_est, "async/rc/communication-established", "once");
	row = row_add(rows, MAN, run_comm_est, "async/uc/communication-established", "once");
	row->type = BB_QPT_UC;
	for (unsigned int i = 0; i < RTE_DIM(faults); i++) {
		row = row_add(rows, MAN, run_fault, "async/fault", "%s", faults[i].cell);
		row->arg = &faults[i];
		row->needs = NEED_SOFTWARE;
	}
}
