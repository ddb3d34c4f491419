/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "ibcm_sim.h"
#include "bb_ibcm.h"
#include "bb_test.h"

#define SERVICE  0x1061c06ull
#define MAX_TODO 65536u
#define MS       1000000ull

enum todo_kind {
	MAD,        /* deliver mad to end */
	ACCEPT,     /* the passive side answers conn */
	READY,      /* the active side answers the REP of conn */
	DISCONNECT, /* end disconnects conn */
};

struct todo {
	uint64_t at, order;
	enum todo_kind kind;
	uint32_t end, conn;
	struct bb_ibcm_net net;
	uint8_t mad[BB_IBCM_MAD];
};

/* One side of a connection. */
struct side {
	uint32_t id;
	uint32_t end; /* engine */
	bool has_id, established, ended;
	bool disconnects; /* has called bb_ibcm_disconnect() */
	bool failed;
};

struct conn {
	struct side side[2]; /* active, passive */
	uint64_t start;
	bool rejected;
	bool counted;
};

struct end {
	struct sim *sim;
	uint32_t index;
	struct bb_ibcm *cm;
	uint8_t gid[16];
};

struct sim {
	const struct sim_attr *attr;
	struct end end[2];
	struct conn *conns;
	uint32_t opened, over;
	struct todo *todo[MAX_TODO]; /* heap, the earliest first */
	uint32_t ntodo;
	uint64_t now, order, rng;
	struct sim_result r;
};

static uint32_t
rnd(struct sim *s, uint32_t below)
{
	s->rng = s->rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((s->rng >> 33) % below);
}

static bool
before(const struct todo *a, const struct todo *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void
push(struct sim *s, struct todo *t, uint64_t delay)
{
	uint32_t at = s->ntodo++;

	assert_true(at < MAX_TODO);
	t->at = s->now + delay;
	t->order = s->order++;
	for (; at > 0 && before(t, s->todo[(at - 1) / 2]); at = (at - 1) / 2)
		s->todo[at] = s->todo[(at - 1) / 2];
	s->todo[at] = t;
}

static struct todo *
pop(struct sim *s)
{
	struct todo *first = s->todo[0], *t = s->todo[--s->ntodo];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < s->ntodo) {
		if (child + 1 < s->ntodo && before(s->todo[child + 1], s->todo[child]))
			child++;
		if (!before(s->todo[child], t))
			break;
		s->todo[at] = s->todo[child];
		at = child;
	}
	s->todo[at] = t;
	return first;
}

static struct todo *
todo_new(enum todo_kind kind, uint32_t end, uint32_t conn)
{
	struct todo *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->kind = kind;
	t->end = end;
	t->conn = conn;
	return t;
}

static void
send_copy(struct sim *s, uint32_t end, const struct bb_ibcm_net *net, const uint8_t *mad)
{
	struct todo *t = todo_new(MAD, end, 0);

	t->net = *net;
	memcpy(t->mad, mad, BB_IBCM_MAD);
	push(s, t, 1000ull * (1 + rnd(s, s->attr->max_delay)));
}

static void
sim_tx(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD])
{
	const struct end *e = ctx;
	struct sim *s = e->sim;

	s->r.mras += mad[17] == BB_IBCM_MRA ? 1 : 0;
	if (rnd(s, 1000) < s->attr->loss) {
		s->r.lost++;
		return;
	}
	send_copy(s, 1 - e->index, net, mad);
	if (rnd(s, 1000) < s->attr->dup) {
		s->r.duplicated++;
		send_copy(s, 1 - e->index, net, mad);
	}
}

/* A side has its last event: gives the ID back, and counts the connection at the second one. */
static void
side_over(struct sim *s, struct conn *c, struct side *side)
{
	assert_false(side->ended);
	side->ended = true;
	OK(bb_ibcm_release(s->end[side->end].cm, side->id, s->now));
	if (!c->side[0].ended || (c->side[1].has_id && !c->side[1].ended) || c->counted)
		return;
	c->counted = true;
	s->over++;
	if (!c->rejected && !c->side[0].failed && !c->side[1].failed)
		s->r.established++;
	else if (c->rejected)
		s->r.rejected++;
	else
		s->r.failed++;
}

static void
result(struct sim *s, const struct conn *c)
{
	if (s->now - c->start > s->r.longest)
		s->r.longest = s->now - c->start;
}

static uint64_t
think(struct sim *s)
{
	return rnd(s, 1000) < s->attr->hesitate ? rnd(s, 4000) * MS : 0;
}

static void
on_req(struct sim *s, const struct end *e, const struct bb_ibcm_event *ev)
{
	uint32_t n;
	struct conn *c;

	memcpy(&n, ev->msg->priv, sizeof(n));
	assert_true(n < s->opened);
	c = &s->conns[n];
	/*
	 * A REQ is reported once, however often it arrives. If all REJs of a request were lost, a
	 * REQ that the peer repeats later is a new request.
	 */
	if (c->side[1].has_id) {
		assert_true(c->side[1].ended && !c->side[1].established);
		c->side[1].ended = c->side[1].failed = false;
		s->r.again++;
	}
	assert_int_equal(e->index, c->side[1].end);
	assert_int_equal(ev->msg->req.qpn, 0x100 + n);
	c->side[1].has_id = true;
	c->side[1].id = ev->id;
	push(s, todo_new(ACCEPT, e->index, n), think(s));
}

static void
on_event(void *ctx, const struct bb_ibcm_event *ev)
{
	const struct end *e = ctx;
	struct sim *s = e->sim;
	struct side *side;
	struct conn *c;
	uint32_t n;

	if (ev->type == BB_IBCM_EV_REQ) {
		on_req(s, e, ev);
		return;
	}
	/* Before bb_ibcm_accept() the cookie is that of the service: find the connection by ID. */
	n = (uint32_t)(ev->cookie >> 1);
	if (ev->cookie == UINT64_MAX)
		for (n = 0; n < s->opened; n++)
			if (s->conns[n].side[1].has_id && !s->conns[n].side[1].ended &&
			    s->conns[n].side[1].id == ev->id && s->conns[n].side[1].end == e->index)
				break;
	assert_true(n < s->opened);
	c = &s->conns[n];
	side = &c->side[ev->cookie & 1];
	assert_int_equal(side->id, ev->id);
	assert_int_equal(side->end, e->index);
	assert_false(side->ended);
	switch (ev->type) {
	case BB_IBCM_EV_REP:
		assert_int_equal(ev->msg->rep.qpn, 0x100 + n);
		push(s, todo_new(READY, e->index, n), think(s));
		break;
	case BB_IBCM_EV_ESTABLISHED:
		assert_false(side->established);
		side->established = true;
		result(s, c);
		push(s, todo_new(DISCONNECT, e->index, n), rnd(s, 300) * MS);
		break;
	case BB_IBCM_EV_DISCONNECTED:
		/* A DREQ may overtake the RTU, but the active side was ready before it. */
		assert_true(c->side[0].established);
		side_over(s, c, side);
		break;
	case BB_IBCM_EV_REJECTED:
	case BB_IBCM_EV_FAILED:
		assert_false(side->established);
		side->failed = true;
		result(s, c);
		side_over(s, c, side);
		break;
	default:
		fail_msg("unexpected event %d", ev->type);
	}
}

static const struct bb_ibcm_ops ops = {.tx = sim_tx, .event = on_event};

static void
open_one(struct sim *s)
{
	const uint32_t n = s->opened++;
	struct conn *c = &s->conns[n];
	const struct end *from = &s->end[n & 1];
	const struct bb_ibcm_req req = {
		.service_id = SERVICE,
		.qpn = 0x100 + n,
		.remote_timeout = 15, /* 134 ms */
		.local_timeout = 15,
		.pkey = 0xffff,
		.mtu = 3,
		.cm_retries = s->attr->cm_retries,
		.primary = {.ack_timeout = 18}, /* 1 s: longer than MADs are delayed */
	};
	struct bb_ibcm_net net = {.hop_limit = 64};

	memcpy(net.src, from->gid, 16);
	memcpy(net.dst, s->end[1 - from->index].gid, 16);
	c->start = s->now;
	c->side[0].has_id = true;
	c->side[0].end = from->index;
	c->side[1].end = 1 - from->index;
	OK(bb_ibcm_connect(from->cm, &net, &req, &n, sizeof(n), 2 * (uint64_t)n, s->now,
			   &c->side[0].id));
}

static void
do_accept(struct sim *s, uint32_t n)
{
	const struct bb_ibcm_rep rep = {.qpn = 0x100 + n};
	struct conn *c = &s->conns[n];
	struct side *side = &c->side[1];
	struct bb_ibcm *cm = s->end[side->end].cm;

	if (side->ended)
		return;
	if (rnd(s, 1000) < s->attr->reject) {
		c->rejected = true;
		OK(bb_ibcm_reject(cm, side->id, BB_IBCM_REJ_CONSUMER, NULL, 0, s->now));
		side_over(s, c, side);
	} else {
		OK(bb_ibcm_accept(cm, side->id, &rep, NULL, 0, 2 * (uint64_t)n + 1, s->now));
	}
}

static void
do_ready(struct sim *s, uint32_t n)
{
	struct conn *c = &s->conns[n];
	struct side *side = &c->side[0];
	struct bb_ibcm *cm = s->end[side->end].cm;

	if (side->ended)
		return;
	if (rnd(s, 1000) < s->attr->reject) {
		c->rejected = true;
		OK(bb_ibcm_reject(cm, side->id, BB_IBCM_REJ_CONSUMER, NULL, 0, s->now));
		side_over(s, c, side);
		return;
	}
	OK(bb_ibcm_ready(cm, side->id, NULL, 0));
	side->established = true;
	result(s, c);
	push(s, todo_new(DISCONNECT, side->end, n), rnd(s, 300) * MS);
}

static void
do_disconnect(struct sim *s, uint32_t n, uint32_t end)
{
	struct conn *c = &s->conns[n];
	struct side *side = &c->side[c->side[0].end == end ? 0 : 1];

	if (!side->ended && !side->disconnects) {
		side->disconnects = true;
		OK(bb_ibcm_disconnect(s->end[end].cm, side->id, NULL, 0, s->now));
	}
}

static void
run_todo(struct sim *s, struct todo *t)
{
	const struct bb_ibcm_gmp gmp = {.net = t->net, .sqpn = BB_IBCM_QPN, .qkey = BB_IBCM_QKEY};

	switch (t->kind) {
	case MAD:
		bb_ibcm_rx(s->end[t->end].cm, &gmp, t->mad, BB_IBCM_MAD, s->now);
		break;
	case ACCEPT:
		do_accept(s, t->conn);
		break;
	case READY:
		do_ready(s, t->conn);
		break;
	case DISCONNECT:
		do_disconnect(s, t->conn, t->end);
		break;
	}
	free(t);
}

static void
start(struct sim *s)
{
	const struct bb_ibcm_service service = {
		.service_id = SERVICE, .mask = UINT64_MAX, .cookie = UINT64_MAX};

	for (uint32_t i = 0; i < 2; i++) {
		struct end *e = &s->end[i];
		struct bb_ibcm_attr attr;

		e->sim = s;
		e->index = i;
		e->gid[10] = e->gid[11] = 0xff;
		e->gid[15] = (uint8_t)(1 + i);
		bb_ibcm_attr_init(&attr);
		attr.max_conns = 16 * s->attr->at_a_time;
		attr.max_pending_per_gid = attr.max_pending;
		attr.ca_guid = 1 + i;
		attr.seed = s->attr->seed + i;
		attr.ops = &ops;
		attr.ctx = e;
		OK(bb_ibcm_create(&attr, &e->cm));
		OK(bb_ibcm_listen(e->cm, &service));
	}
}

struct sim_result
sim_run(const struct sim_attr *attr)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct sim_result r;

	assert_non_null(s);
	s->attr = attr;
	s->rng = attr->seed;
	s->conns = calloc(attr->conns, sizeof(*s->conns));
	assert_non_null(s->conns);
	start(s);
	for (;;) {
		uint64_t next = UINT64_MAX, d;

		while (s->opened < attr->conns && s->opened - s->over < attr->at_a_time)
			open_one(s);
		if (s->ntodo > 0)
			next = s->todo[0]->at;
		for (uint32_t i = 0; i < 2; i++) {
			d = bb_ibcm_deadline(s->end[i].cm);
			next = d < next ? d : next;
		}
		if (next == UINT64_MAX)
			break;
		assert_true(next >= s->now);
		s->now = next;
		for (uint32_t i = 0; i < 2; i++)
			bb_ibcm_tick(s->end[i].cm, s->now);
		while (s->ntodo > 0 && s->todo[0]->at <= s->now)
			run_todo(s, pop(s));
	}
	assert_int_equal(s->over, attr->conns);
	s->r.end = s->now;
	for (uint32_t i = 0; i < 2; i++) {
		const struct bb_ibcm_stats *stats = bb_ibcm_stats(s->end[i].cm);

		s->r.repeats += stats->repeats;
		s->r.answered_again += stats->answered_again;
		assert_int_equal(bb_ibcm_in_use(s->end[i].cm), 0);
		bb_ibcm_destroy(s->end[i].cm);
	}
	r = s->r;
	free(s->conns);
	free(s);
	return r;
}
