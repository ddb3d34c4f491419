/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion channels: arm, event, wake-up; with polling; solicited only. */
#include <poll.h>

#include "conform.h"

#define MAN     "ibv_req_notify_cq(3)"
#define MAN_GET "ibv_get_cq_event(3)"

struct rig {
	struct bb_channel *ch;
	struct bb_cq *cq; /* of B: the CQ that is armed */
	struct pair p;    /* B's QP completes into it */
};

static void
undo_channel(void *ch)
{
	(void)bb_channel_destroy(ch);
}

static struct bb_channel *
channel(struct fx *fx, struct side *s)
{
	struct bb_channel *ch;

	OK(fx, bb_channel_create(s->dev, &ch));
	fx_defer(fx, undo_channel, ch);
	return ch;
}

static void
undo_cq(void *cq)
{
	(void)bb_cq_destroy(cq);
}

static struct bb_cq *
cq_at(struct fx *fx, struct side *s, struct bb_channel *ch, uint32_t vector)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;

	attr.channel = ch;
	attr.comp_vector = vector;
	OK(fx, bb_cq_create(s->dev, &attr, &cq));
	fx_defer(fx, undo_cq, cq);
	return cq;
}

static struct bb_cq *
cq_on(struct fx *fx, struct side *s, struct bb_channel *ch)
{
	return cq_at(fx, s, ch, 0);
}

static void
rig_make_at(struct fx *fx, struct rig *r, uint32_t vector)
{
	struct bb_qp_init_attr init;
	struct pair_opts o = fx_opts(fx);

	r->ch = channel(fx, &fx->b);
	r->cq = cq_at(fx, &fx->b, r->ch, vector);
	init = o.init;
	init.send_cq = init.recv_cq = fx->a.cq;
	init.rq_depth = 16;
	r->p.a = fx_qp(fx, fx->a.pd, &init);
	init.send_cq = init.recv_cq = r->cq;
	r->p.b = fx_qp(fx, fx->b.pd, &init);
	fx_connect(fx, r->p, &o);
}

static void
rig_make(struct fx *fx, struct rig *r)
{
	rig_make_at(fx, r, 0);
}

static void
receives(struct fx *fx, struct rig *r, uint32_t n)
{
	struct bb_sge sge = sge_of(&fx->b, GUARD, 64);

	while (n-- > 0)
		CHECK(fx, bb_post_recv(r->p.b, n, &sge, 1) == 0, "the receive is not taken");
	bb_qp_ring_recv(r->p.b);
}

/* A sends; its completion shows that B has the message. */
static void
send_one(struct fx *fx, struct rig *r, uint32_t flags)
{
	complete(fx, fx->a.cq, r->p.a,
		 bb_post_send_inline(r->p.a, 9, "x", 1, BB_SEND_SIGNALED | flags), 9, BB_WC_SUCCESS,
		 "the SEND");
}

static void
take(struct fx *fx, struct rig *r, uint32_t n)
{
	struct bb_wc wc[8];

	wait_wc(fx, r->cq, wc, n, "the receives");
	while (n-- > 0)
		CHECK(fx, wc[n].status == BB_WC_SUCCESS, "a receive: %s",
		      bb_wc_status_name(wc[n].status));
}

static void
check_event(struct fx *fx, struct rig *r, const char *what)
{
	struct bb_cq *cq = NULL;
	int ret = bb_channel_wait(r->ch, (int)(fx->timeout * 1000), &cq);

	CHECK(fx, ret == 0, "%s: bb_channel_wait() returned %d", what, ret);
	CHECK(fx, cq == r->cq, "%s: the event names another CQ", what);
}

static void
check_silent(struct fx *fx, struct rig *r, const char *what)
{
	struct bb_cq *cq = NULL;
	int ret = bb_channel_wait(r->ch, 3, &cq);

	CHECK(fx, ret == -EAGAIN, "%s: bb_channel_wait() returned %d, expected %d", what, ret,
	      -EAGAIN);
	CHECK(fx, bb_channel_get(r->ch, &cq) == -EAGAIN && cq == NULL, "%s: an event is there",
	      what);
}

ROW(run_arm)
{
	struct rig r;

	rig_make(fx, &r);
	receives(fx, &r, 4);
	send_one(fx, &r, 0);
	check_silent(fx, &r, "a CQ that is not armed");
	take(fx, &r, 1);
	OK(fx, bb_cq_arm(r.cq, false));
	check_silent(fx, &r, "an empty CQ that is armed");
	send_one(fx, &r, 0);
	check_event(fx, &r, "an armed CQ");
	send_one(fx, &r, 0);
	check_silent(fx, &r, "an arm is for one event");
	take(fx, &r, 2);
	OK(fx, bb_cq_arm(r.cq, false));
	send_one(fx, &r, 0);
	check_event(fx, &r, "armed again");
	take(fx, &r, 1);
}

/* Unpolled completions raise the event: none is lost between poll and arm. */
ROW(run_late)
{
	struct rig r;

	rig_make(fx, &r);
	receives(fx, &r, 2);
	send_one(fx, &r, 0);
	fx_progress(fx);
	OK(fx, bb_cq_arm(r.cq, false));
	check_event(fx, &r, "armed behind a completion");
	take(fx, &r, 1);
}

ROW(run_solicited)
{
	struct rig r;

	rig_make(fx, &r);
	receives(fx, &r, 4);
	OK(fx, bb_cq_arm(r.cq, true));
	send_one(fx, &r, 0);
	check_silent(fx, &r, "a message that is not solicited");
	send_one(fx, &r, BB_SEND_SOLICITED);
	check_event(fx, &r, "a solicited message");
	take(fx, &r, 2);
}

/* An error wakes a waiter for solicited completions. */
ROW(run_solicited_error)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct bb_wc wc[2];
	struct rig r;

	rig_make(fx, &r);
	receives(fx, &r, 2);
	OK(fx, bb_cq_arm(r.cq, true));
	attr.state = BB_QP_ERR;
	OK(fx, bb_qp_modify(r.p.b, &attr, BB_QP_STATE));
	check_event(fx, &r, "an error");
	wait_wc(fx, r.cq, wc, 2, "the flush");
}

/* The descriptor is readable exactly while an event is pending. */
ROW(run_fd)
{
	struct pollfd fd = {.events = POLLIN};
	struct bb_cq *cq;
	struct rig r;
	double end;

	rig_make(fx, &r);
	fd.fd = bb_channel_fd(r.ch);
	CHECK(fx, fd.fd >= 0, "no descriptor");
	receives(fx, &r, 1);
	OK(fx, bb_cq_arm(r.cq, false));
	CHECK(fx, poll(&fd, 1, 0) == 0, "readable without an event");
	send_one(fx, &r, 0);
	for (end = now_s() + fx->timeout; poll(&fd, 1, 0) == 0 && now_s() < end;)
		fx_progress(fx);
	CHECK(fx, poll(&fd, 1, 0) == 1, "not readable with an event");
	OK(fx, bb_channel_get(r.ch, &cq));
	CHECK(fx, cq == r.cq, "the event names another CQ");
	CHECK(fx, poll(&fd, 1, 0) == 0, "still readable");
	take(fx, &r, 1);
}

ROW(run_busy)
{
	struct bb_channel *ch = channel(fx, &fx->a);

	cq_on(fx, &fx->a, ch);
	REFUSED(fx, bb_channel_destroy(ch), -EBUSY, "CQ");
}

ROW(run_no_channel)
{
	REFUSED(fx, bb_cq_arm(fx->a.cq, false), -EINVAL, "channel");
}

ROW(run_other_device)
{
	struct bb_channel *ch = channel(fx, &fx->b);
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq = NULL;

	attr.channel = ch;
	REFUSED(fx, bb_cq_create(fx->a.dev, &attr, &cq), -EINVAL, "device");
	CHECK(fx, cq == NULL, "a refused bb_cq_create() wrote its out-pointer");
}

/* The first and the last completion vector raise events; a higher one is rejected. */
ROW(run_vector)
{
	struct bb_dev_attr dev;
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq = NULL;
	struct rig r;

	OK(fx, bb_dev_query(fx->b.dev, &dev));
	CHECK(fx, dev.comp_vectors >= 1, "the device has no completion vector");
	attr.comp_vector = dev.comp_vectors;
	REFUSED(fx, bb_cq_create(fx->b.dev, &attr, &cq), -EINVAL, "completion vector");
	CHECK(fx, cq == NULL, "a refused bb_cq_create() wrote its out-pointer");
	rig_make_at(fx, &r, row->n == 0 ? 0 : dev.comp_vectors - 1);
	receives(fx, &r, 1);
	OK(fx, bb_cq_arm(r.cq, false));
	send_one(fx, &r, 0);
	check_event(fx, &r, "an armed CQ");
	take(fx, &r, 1);
}

/* Two CQs on one channel: each event names its CQ. */
ROW(run_two)
{
	struct pair_opts o = fx_opts(fx);
	struct bb_cq *got;
	struct pair q;
	struct bb_wc wc;
	struct rig r;

	rig_make(fx, &r);
	o.init.send_cq = o.init.recv_cq = cq_on(fx, &fx->a, fx->two ? channel(fx, &fx->a) : r.ch);
	q = fx_pair(fx, &o);
	OK(fx, bb_cq_arm(o.init.send_cq, false));
	OK(fx, bb_cq_arm(r.cq, false));
	receives(fx, &r, 1);
	send_one(fx, &r, 0);
	check_event(fx, &r, "the first CQ");
	if (fx->two)
		return;
	CHECK(fx, bb_post_nop(q.a, 1, BB_SEND_SIGNALED) == 0, "the NOP is not taken");
	bb_qp_ring(q.a);
	OK(fx, bb_channel_wait(r.ch, (int)(fx->timeout * 1000), &got));
	CHECK(fx, got == o.init.send_cq, "the event names the other CQ");
	wait_wc(fx, o.init.send_cq, &wc, 1, "the NOP");
}

void
rows_event(struct rows *rows)
{
	row_add(rows, MAN, run_arm, "event/rc/arm", "one-event-each");
	row_add(rows, MAN, run_late, "event/rc/arm", "behind-a-completion");
	row_add(rows, MAN, run_solicited, "event/rc/solicited-only", "messages");
	row_add(rows, MAN, run_solicited_error, "event/rc/solicited-only", "error");
	row_add(rows, MAN_GET, run_fd, "event/rc/descriptor", "readable");
	row_add(rows, MAN_GET, run_two, "event/rc/two-cqs", "one-channel");
	row_add(rows, "ibv_create_cq(3)", run_vector, "event/rc/comp-vector", "first");
	row_add(rows, "ibv_create_cq(3)", run_vector, "event/rc/comp-vector", "last")->n = 1;
	row_add(rows, "ibv_create_comp_channel(3)", run_busy, "event/children-live", "cq");
	row_add(rows, MAN, run_no_channel, "event/refused", "no-channel");
	row_add(rows, "ibv_create_cq(3)", run_other_device, "event/refused",
		"channel-of-another-device")
		->needs = NEED_TWO_DEVICES;
}
