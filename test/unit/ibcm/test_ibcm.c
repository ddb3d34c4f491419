/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The CM engine with a well-behaved peer: life cycle, losses, services, SIDR. */
#include <errno.h>

#include "ibcm_test.h"

static uint32_t
connect_a(struct pair *p)
{
	const struct bb_ibcm_net net = pair_net(p, 0);
	const struct bb_ibcm_req req = pair_req(SERVICE, 0x111);
	uint32_t id = 0;

	OK(bb_ibcm_connect(p->end[0].cm, &net, &req, "hello", 5, 7, p->now, &id));
	return id;
}

static struct pair_event *
last(struct pair *p, unsigned int end, enum bb_ibcm_event_type type)
{
	struct pair_end *e = &p->end[end];

	assert_true(e->nev > 0);
	assert_int_equal(e->ev[e->nev - 1].type, type);
	return &e->ev[e->nev - 1];
}

/* Establishes a connection. Returns the IDs of both ends. */
static void
establish(struct pair *p, uint32_t *a, uint32_t *b)
{
	const struct bb_ibcm_rep rep = pair_rep(0x222);

	*a = connect_a(p);
	pair_deliver_all(p);
	*b = last(p, 1, BB_IBCM_EV_REQ)->id;
	OK(bb_ibcm_accept(p->end[1].cm, *b, &rep, "yes", 3, 8, p->now));
	pair_deliver_all(p);
	last(p, 0, BB_IBCM_EV_REP);
	OK(bb_ibcm_ready(p->end[0].cm, *a, NULL, 0));
	pair_deliver_all(p);
	last(p, 1, BB_IBCM_EV_ESTABLISHED);
}

static void
run_until_idle(struct pair *p, uint64_t limit)
{
	do
		pair_deliver_all(p);
	while (pair_time(p, limit));
}

static void
assert_nothing_left(struct pair *p)
{
	run_until_idle(p, UINT64_MAX - 1);
	assert_int_equal(bb_ibcm_in_use(p->end[0].cm), 0);
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 0);
	assert_int_equal(bb_ibcm_deadline(p->end[0].cm), BB_IBCM_NEVER);
}

PAIR_TEST(test_connection_reports_the_fields_of_both_ends)
{
	struct pair_event *ev;
	uint32_t a, b;

	establish(p, &a, &b);
	assert_int_equal(p->nmads, 3);
	ev = &p->end[1].ev[0];
	assert_fields(*ev, cookie, 99, msg.req.qpn, 0x111, msg.req.psn, 0x123456, msg.local_id, a);
	assert_fields(ev->msg.req, ca_guid, 0xa0, primary.flow_label, 0x12345, primary.tclass, 8,
		      primary.sl, 3, primary.hop_limit, 64, primary.ack_timeout, 14);
	assert_memory_equal(ev->msg.req.primary.local_gid, p->end[0].gid, 16);
	assert_memory_equal(ev->msg.req.primary.remote_gid, p->end[1].gid, 16);
	assert_memory_equal(ev->priv, "hello\0", 6);
	ev = &p->end[0].ev[0];
	assert_fields(*ev, cookie, 7, msg.rep.qpn, 0x222, msg.rep.psn, 0x654321, msg.rep.ca_guid,
		      0xa1, msg.remote_id, a, msg.local_id, b);
	assert_memory_equal(ev->priv, "yes\0", 4);
	assert_int_equal(p->end[1].ev[1].cookie, 8);
	/* All messages of the connection have the TID of the REQ. */
	assert_int_equal(p->mads[0].mad[8] | 1, p->mads[2].mad[8] | 1);
	assert_memory_equal(p->mads[0].mad + 8, p->mads[1].mad + 8, 8);
	assert_memory_equal(p->mads[0].mad + 8, p->mads[2].mad + 8, 8);
}

PAIR_TEST(test_disconnection_by_either_side_frees_both_ends)
{
	for (unsigned int side = 0; side < 2; side++) {
		uint32_t id[2];

		establish(p, &id[0], &id[1]);
		OK(bb_ibcm_disconnect(p->end[side].cm, id[side], "bye", 3, p->now));
		pair_deliver_all(p);
		assert_memory_equal(last(p, 1 - side, BB_IBCM_EV_DISCONNECTED)->priv, "bye", 3);
		assert_int_equal(last(p, side, BB_IBCM_EV_DISCONNECTED)->status, 0);
		assert_int_equal(bb_ibcm_disconnect(p->end[side].cm, id[side], NULL, 0, p->now),
				 -EINVAL);
		OK(bb_ibcm_release(p->end[0].cm, id[0], p->now));
		OK(bb_ibcm_release(p->end[1].cm, id[1], p->now));
		assert_int_equal(bb_ibcm_release(p->end[1].cm, id[1], p->now), -ENOENT);
		/* The slots stay for the time in which old packets may arrive. */
		assert_int_equal(bb_ibcm_in_use(p->end[0].cm), 1);
		assert_nothing_left(p);
	}
}

PAIR_TEST(test_crossing_disconnections_end_once_on_each_side)
{
	uint32_t a, b, events;

	establish(p, &a, &b);
	events = p->end[0].nev + p->end[1].nev;
	OK(bb_ibcm_disconnect(p->end[0].cm, a, NULL, 0, p->now));
	OK(bb_ibcm_disconnect(p->end[1].cm, b, NULL, 0, p->now));
	pair_deliver_all(p);
	last(p, 0, BB_IBCM_EV_DISCONNECTED);
	last(p, 1, BB_IBCM_EV_DISCONNECTED);
	assert_int_equal(p->end[0].nev + p->end[1].nev, events + 2);
}

PAIR_TEST(test_released_connection_disconnects_without_events)
{
	uint32_t a, b, events;

	establish(p, &a, &b);
	events = p->end[0].nev;
	OK(bb_ibcm_release(p->end[0].cm, a, p->now));
	pair_deliver_all(p);
	last(p, 1, BB_IBCM_EV_DISCONNECTED);
	assert_int_equal(p->end[0].nev, events);
	OK(bb_ibcm_release(p->end[1].cm, b, p->now));
	assert_nothing_left(p);
}

/* A caller that ends does not wait for seconds until a lost DREQ is repeated. */
PAIR_TEST(test_end_repeats_lost_dreqs_soon)
{
	struct bb_ibcm *cm = p->end[0].cm;
	uint32_t a, b, i;

	establish(p, &a, &b);
	assert_int_equal(bb_ibcm_finish(cm, PAIR_MS, p->now), 0);
	OK(bb_ibcm_release(cm, a, p->now));
	for (i = 0; i < 3; i++) {
		p->next = p->nmads; /* the DREQ is lost */
		assert_int_equal(bb_ibcm_finish(cm, PAIR_MS, p->now), 1);
		assert_int_equal(bb_ibcm_deadline(cm), p->now + PAIR_MS);
		assert_true(pair_time(p, p->now + PAIR_MS));
		assert_int_equal(p->nmads - p->next, 1);
	}
	pair_deliver_all(p);
	last(p, 1, BB_IBCM_EV_DISCONNECTED);
	assert_int_equal(bb_ibcm_finish(cm, PAIR_MS, p->now), 0);
	OK(bb_ibcm_release(p->end[1].cm, b, p->now));
	assert_nothing_left(p);
}

/* A connection no longer waits after it is abandoned, after the peer's DREQ, and after a timeout.
 */
PAIR_TEST(test_end_counts_connections_that_wait_for_an_answer)
{
	struct bb_ibcm *cm = p->end[0].cm;
	uint32_t a, b, i;

	for (i = 0; i < 3; i++) {
		establish(p, &a, &b);
		assert_int_equal(bb_ibcm_finish(cm, PAIR_MS, p->now), 0);
		OK(bb_ibcm_disconnect(cm, a, NULL, 0, p->now));
		p->next = p->nmads; /* the DREQ is lost */
		assert_int_equal(bb_ibcm_finish(cm, PAIR_MS, p->now), 1);
		if (i == 0)
			OK(bb_ibcm_abandon(cm, a, p->now));
		while (i == 2 && bb_ibcm_finish(cm, PAIR_MS, p->now) != 0) {
			assert_true(pair_time(p, p->now + PAIR_MS));
			p->next = p->nmads;
		}
		OK(bb_ibcm_disconnect(p->end[1].cm, b, NULL, 0, p->now));
		pair_deliver_all(p);
		assert_int_equal(bb_ibcm_finish(cm, PAIR_MS, p->now), 0);
	}
}

PAIR_TEST(test_abandoned_ids_send_nothing)
{
	uint32_t a, b, c, mads;

	establish(p, &a, &b);
	c = connect_a(p);
	mads = p->next = p->nmads; /* the REQ is lost */
	OK(bb_ibcm_abandon(p->end[0].cm, a, p->now));
	OK(bb_ibcm_abandon(p->end[0].cm, c, p->now));
	OK(bb_ibcm_abandon(p->end[1].cm, b, p->now));
	assert_int_equal(bb_ibcm_abandon(p->end[1].cm, b, p->now), -ENOENT);
	/* The slots of established connections stay, as after a disconnection. */
	assert_int_equal(bb_ibcm_in_use(p->end[0].cm), 1);
	assert_nothing_left(p);
	assert_int_equal(p->nmads, mads);
}

/* After the MRA the peer does not repeat its REQ for 69 s. */
PAIR_TEST(test_abandoned_request_whose_peer_waits_after_an_mra_is_rejected)
{
	uint32_t a = connect_a(p), b;

	pair_deliver_all(p);
	b = last(p, 1, BB_IBCM_EV_REQ)->id;
	assert_true(pair_time(p, UINT64_MAX - 1));
	pair_deliver_all(p);
	assert_int_equal(p->mads[p->nmads - 1].type, BB_IBCM_MRA);
	OK(bb_ibcm_abandon(p->end[1].cm, b, p->now));
	assert_int_equal(bb_ibcm_abandon(p->end[1].cm, b, p->now), -ENOENT);
	pair_deliver_all(p);
	assert_fields(*last(p, 0, BB_IBCM_EV_REJECTED), id, a, msg.rej.reason,
		      BB_IBCM_REJ_NO_RESOURCES);
	assert_int_equal(bb_ibcm_stats(p->end[1].cm)->drop[BB_IBCM_DROP_ABANDONED], 0);
	OK(bb_ibcm_release(p->end[0].cm, a, p->now));
	assert_nothing_left(p);
}

PAIR_TEST(test_rejection_has_reason_and_private_data)
{
	uint32_t a = connect_a(p), b;
	struct pair_event *ev;

	pair_deliver_all(p);
	b = last(p, 1, BB_IBCM_EV_REQ)->id;
	OK(bb_ibcm_reject(p->end[1].cm, b, BB_IBCM_REJ_CONSUMER, "no", 2, p->now));
	pair_deliver_all(p);
	ev = last(p, 0, BB_IBCM_EV_REJECTED);
	assert_fields(*ev, id, a, msg.rej.reason, BB_IBCM_REJ_CONSUMER, msg.rej.answers,
		      BB_IBCM_ANSWERS_REQ, status, -ECONNREFUSED);
	assert_memory_equal(ev->priv, "no", 2);
	/* A REQ that is repeated because the REJ was late gets the same REJ. */
	pair_deliver(p, &p->mads[0]);
	assert_int_equal(p->mads[p->nmads - 1].type, BB_IBCM_REJ);
	assert_int_equal(p->end[1].nev, 1);
	OK(bb_ibcm_release(p->end[0].cm, a, p->now));
	OK(bb_ibcm_release(p->end[1].cm, b, p->now));
	assert_nothing_left(p);
}

PAIR_TEST(test_active_side_rejects_rep)
{
	const struct bb_ibcm_rep rep = pair_rep(0x222);
	uint32_t a = connect_a(p), b;

	pair_deliver_all(p);
	b = last(p, 1, BB_IBCM_EV_REQ)->id;
	OK(bb_ibcm_accept(p->end[1].cm, b, &rep, NULL, 0, 8, p->now));
	pair_deliver_all(p);
	OK(bb_ibcm_reject(p->end[0].cm, a, BB_IBCM_REJ_CONSUMER, NULL, 0, p->now));
	pair_deliver_all(p);
	assert_int_equal(last(p, 1, BB_IBCM_EV_REJECTED)->msg.rej.answers, BB_IBCM_ANSWERS_REP);
	OK(bb_ibcm_release(p->end[0].cm, a, p->now));
	OK(bb_ibcm_release(p->end[1].cm, b, p->now));
	assert_nothing_left(p);
}

PAIR_TEST(test_lost_messages_are_repeated_at_the_requested_times)
{
	const uint64_t start = p->now;

	connect_a(p);
	/* 4 retries after 67.1 ms each, then a REJ that says so. */
	while (pair_time(p, start + 400 * PAIR_MS))
		;
	assert_int_equal(p->nmads, 6);
	for (unsigned int i = 0; i < 5; i++)
		assert_memory_equal(p->mads[i].mad, p->mads[0].mad, BB_IBCM_MAD);
	assert_int_equal(p->mads[5].type, BB_IBCM_REJ);
	assert_int_equal(p->now - start, 5 * (4096ull << 14));
	assert_int_equal(last(p, 0, BB_IBCM_EV_FAILED)->status, -ETIMEDOUT);
	assert_fields(*bb_ibcm_stats(p->end[0].cm), repeats, 4, timeouts, 1);
}

PAIR_TEST(test_lost_rtu_is_replaced_by_a_repeated_rep)
{
	const struct bb_ibcm_rep rep = pair_rep(0x222);
	uint32_t a = connect_a(p), b, events;

	pair_deliver_all(p);
	b = last(p, 1, BB_IBCM_EV_REQ)->id;
	OK(bb_ibcm_accept(p->end[1].cm, b, &rep, NULL, 0, 8, p->now));
	pair_deliver_all(p);
	OK(bb_ibcm_ready(p->end[0].cm, a, NULL, 0));
	p->next = p->nmads; /* lost */
	events = p->end[0].nev;
	assert_true(pair_time(p, UINT64_MAX - 1));
	pair_deliver_all(p);
	last(p, 1, BB_IBCM_EV_ESTABLISHED);
	assert_int_equal(p->end[0].nev, events);
}

PAIR_TEST(test_first_data_establishes_without_rtu)
{
	const struct bb_ibcm_rep rep = pair_rep(0x222);
	uint32_t a = connect_a(p), b, events;

	pair_deliver_all(p);
	b = last(p, 1, BB_IBCM_EV_REQ)->id;
	assert_int_equal(bb_ibcm_established(p->end[1].cm, b), -EINVAL);
	OK(bb_ibcm_accept(p->end[1].cm, b, &rep, NULL, 0, 8, p->now));
	OK(bb_ibcm_established(p->end[1].cm, b));
	events = p->end[1].nev;
	pair_deliver_all(p);
	OK(bb_ibcm_ready(p->end[0].cm, a, NULL, 0));
	pair_deliver_all(p);
	assert_int_equal(p->end[1].nev, events);
	assert_int_equal(bb_ibcm_stats(p->end[1].cm)->drop[BB_IBCM_DROP_DUPLICATE], 1);
}

PAIR_TEST(test_slow_answer_is_announced_by_mra)
{
	const struct bb_ibcm_rep rep = pair_rep(0x222);
	const uint64_t start = p->now;
	uint32_t b;

	connect_a(p);
	pair_deliver_all(p);
	b = last(p, 1, BB_IBCM_EV_REQ)->id;
	/* The first repeated REQ gets a MRA of 69 s: no further REQ follows before. */
	assert_true(pair_time(p, UINT64_MAX - 1));
	pair_deliver_all(p);
	assert_int_equal(p->mads[p->nmads - 1].type, BB_IBCM_MRA);
	assert_int_equal(bb_ibcm_deadline(p->end[0].cm) - p->now,
			 (4096ull << 24) + (4096ull << 14));
	p->now = start + 60000 * PAIR_MS;
	OK(bb_ibcm_accept(p->end[1].cm, b, &rep, NULL, 0, 8, p->now));
	pair_deliver_all(p);
	last(p, 0, BB_IBCM_EV_REP);
}

PAIR_TEST(test_request_without_answer_of_the_caller_times_out_on_both_sides)
{
	uint32_t a = connect_a(p), b;

	pair_deliver_all(p);
	b = last(p, 1, BB_IBCM_EV_REQ)->id;
	run_until_idle(p, UINT64_MAX - 1);
	assert_int_equal(last(p, 1, BB_IBCM_EV_FAILED)->status, -ETIMEDOUT);
	assert_int_equal(last(p, 0, BB_IBCM_EV_REJECTED)->msg.rej.reason, BB_IBCM_REJ_TIMEOUT);
	OK(bb_ibcm_release(p->end[0].cm, a, p->now));
	OK(bb_ibcm_release(p->end[1].cm, b, p->now));
	assert_nothing_left(p);
}

PAIR_TEST(test_unknown_service_is_rejected)
{
	uint32_t a;

	OK(bb_ibcm_unlisten(p->end[1].cm, &plain));
	assert_int_equal(bb_ibcm_unlisten(p->end[1].cm, &plain), -ENOENT);
	a = connect_a(p);
	pair_deliver_all(p);
	assert_int_equal(last(p, 0, BB_IBCM_EV_REJECTED)->msg.rej.reason, BB_IBCM_REJ_SERVICE_ID);
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 0);
	OK(bb_ibcm_release(p->end[0].cm, a, p->now));
	assert_nothing_left(p);
}

/* Connects to an IP service by a header with the destination 10.0.0.@last. */
static void
connect_ip(struct pair *p, uint8_t last_byte)
{
	const struct bb_ibcm_net net = pair_net(p, 0);
	static uint32_t qpn = 0x400;
	const struct bb_ibcm_req req = pair_req(SERVICE, qpn++);
	struct bb_ibcm_ip ip = {.version = 4, .sport = 4660};
	uint8_t priv[BB_IBCM_IP_LEN];
	uint32_t id;

	pair_gid(ip.src, 1);
	pair_gid(ip.dst, last_byte);
	bb_ibcm_ip_build(priv, &ip);
	OK(bb_ibcm_connect(p->end[0].cm, &net, &req, priv, sizeof(priv), 7, p->now, &id));
	pair_deliver_all(p);
}

PAIR_TEST(test_ip_service_is_found_by_its_address)
{
	struct bb_ibcm_service any = plain, two = plain;
	struct bb_ibcm *cm = p->end[1].cm;

	OK(bb_ibcm_unlisten(cm, &plain));
	any.ip = two.ip = true;
	any.cookie = 1;
	two.cookie = 2;
	pair_gid(two.addr, 2);
	/* The service with the address has precedence, in any order. */
	OK(bb_ibcm_listen(cm, &any));
	OK(bb_ibcm_listen(cm, &two));
	assert_int_equal(bb_ibcm_listen(cm, &two), -EADDRINUSE);
	connect_ip(p, 2);
	assert_fields(*last(p, 1, BB_IBCM_EV_REQ), cookie, 2, has_ip, true, ip.sport, 4660,
		      ip.dst[15], 2);
	connect_ip(p, 9);
	assert_int_equal(last(p, 1, BB_IBCM_EV_REQ)->cookie, 1);
	OK(bb_ibcm_unlisten(cm, &any));
	connect_ip(p, 9);
	assert_int_equal(last(p, 0, BB_IBCM_EV_REJECTED)->msg.rej.reason, BB_IBCM_REJ_SERVICE_ID);
	connect_a(p); /* without a header */
	pair_deliver_all(p);
	assert_int_equal(last(p, 0, BB_IBCM_EV_REJECTED)->msg.rej.reason, BB_IBCM_REJ_CONSUMER);
}

PAIR_TEST(test_range_of_services_by_mask)
{
	struct bb_ibcm_service range = {
		.service_id = SERVICE, .mask = BB_IBCM_PS_MASK, .cookie = 5};
	const struct bb_ibcm_net net = pair_net(p, 0);
	const struct bb_ibcm_req req = pair_req(SERVICE + 1, 0x111);
	uint32_t id;

	OK(bb_ibcm_listen(p->end[1].cm, &range));
	OK(bb_ibcm_connect(p->end[0].cm, &net, &req, NULL, 0, 7, p->now, &id));
	pair_deliver_all(p);
	assert_int_equal(last(p, 1, BB_IBCM_EV_REQ)->cookie, 5);
}

PAIR_TEST(test_connection_to_the_own_engine)
{
	struct bb_ibcm_net net = pair_net(p, 1);
	const struct bb_ibcm_req req = pair_req(SERVICE, 0x111);
	const struct bb_ibcm_rep rep = pair_rep(0x222);
	struct bb_ibcm *cm = p->end[1].cm;
	uint32_t a, b;

	memcpy(net.dst, net.src, 16);
	OK(bb_ibcm_connect(cm, &net, &req, NULL, 0, 7, p->now, &a));
	pair_deliver_all(p);
	b = last(p, 1, BB_IBCM_EV_REQ)->id;
	OK(bb_ibcm_accept(cm, b, &rep, NULL, 0, 8, p->now));
	pair_deliver_all(p);
	assert_int_equal(last(p, 1, BB_IBCM_EV_REP)->id, a);
	OK(bb_ibcm_ready(cm, a, NULL, 0));
	pair_deliver_all(p);
	assert_int_equal(last(p, 1, BB_IBCM_EV_ESTABLISHED)->id, b);
	OK(bb_ibcm_disconnect(cm, a, NULL, 0, p->now));
	pair_deliver_all(p);
	OK(bb_ibcm_release(cm, a, p->now));
	OK(bb_ibcm_release(cm, b, p->now));
	assert_nothing_left(p);
}

PAIR_TEST(test_sidr_resolves_and_refuses)
{
	struct bb_ibcm_service udp = {
		.service_id = 0x1110007, .mask = UINT64_MAX, .datagram = true, .cookie = 3};
	const struct bb_ibcm_net net = pair_net(p, 0);
	struct bb_ibcm *cm = p->end[0].cm;
	struct pair_event *ev;
	uint32_t id;

	OK(bb_ibcm_listen(p->end[1].cm, &udp));
	OK(bb_ibcm_sidr(cm, &net, udp.service_id, 14, 2, "ask", 3, 7, p->now, &id));
	p->next = p->nmads; /* lost */
	assert_true(pair_time(p, UINT64_MAX - 1));
	pair_deliver_all(p);
	ev = last(p, 1, BB_IBCM_EV_SIDR_REQ);
	assert_fields(*ev, cookie, 3, msg.local_id, id, msg.sidr_req.pkey, 0xffff);
	assert_memory_equal(ev->priv, "ask", 3);
	/* A repeated request while the caller has the ID is dropped. */
	pair_deliver(p, &p->mads[0]);
	assert_int_equal(p->end[1].nev, 1);
	OK(bb_ibcm_sidr_reply(p->end[1].cm, ev->id, BB_IBCM_SIDR_OK, 0x333, 0x1234, "ok", 2));
	assert_int_equal(
		bb_ibcm_sidr_reply(p->end[1].cm, ev->id, BB_IBCM_SIDR_OK, 0x333, 0, NULL, 0),
		-ENOENT);
	pair_deliver_all(p);
	ev = last(p, 0, BB_IBCM_EV_SIDR_REP);
	assert_fields(*ev, id, id, cookie, 7, msg.sidr_rep.qpn, 0x333, msg.sidr_rep.qkey, 0x1234,
		      msg.sidr_rep.service_id, udp.service_id);
	assert_nothing_left(p);
	/* A service of connections does not answer. */
	OK(bb_ibcm_sidr(cm, &net, SERVICE, 14, 2, NULL, 0, 7, p->now, &id));
	pair_deliver_all(p);
	assert_int_equal(last(p, 0, BB_IBCM_EV_SIDR_REP)->msg.sidr_rep.status,
			 BB_IBCM_SIDR_UNSUPPORTED);
	assert_int_equal(bb_ibcm_stats(p->end[1].cm)->sidr_refused, 1);
	assert_nothing_left(p);
}

/* The caller gives the ID of a request back without an answer, or abandons it. */
PAIR_TEST(test_released_sidr_request_is_rejected_and_abandoned_one_is_not)
{
	struct bb_ibcm_service udp = {
		.service_id = 0x1110007, .mask = UINT64_MAX, .datagram = true, .cookie = 3};
	const struct bb_ibcm_net net = pair_net(p, 0);
	uint32_t id, sent;

	OK(bb_ibcm_listen(p->end[1].cm, &udp));
	OK(bb_ibcm_sidr(p->end[0].cm, &net, udp.service_id, 14, 2, "ask", 3, 7, p->now, &id));
	pair_deliver_all(p);
	sent = p->nmads;
	OK(bb_ibcm_abandon(p->end[1].cm, last(p, 1, BB_IBCM_EV_SIDR_REQ)->id, p->now));
	assert_int_equal(p->nmads, sent);
	/* The peer asks again. */
	assert_true(pair_time(p, UINT64_MAX - 1));
	pair_deliver_all(p);
	OK(bb_ibcm_release(p->end[1].cm, last(p, 1, BB_IBCM_EV_SIDR_REQ)->id, p->now));
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 0);
	pair_deliver_all(p);
	assert_fields(*last(p, 0, BB_IBCM_EV_SIDR_REP), id, id, msg.sidr_rep.status,
		      BB_IBCM_SIDR_REJECT);
	assert_nothing_left(p);
}

PAIR_TEST(test_sidr_without_answer_fails)
{
	const struct bb_ibcm_net net = pair_net(p, 0);
	uint32_t id;

	OK(bb_ibcm_sidr(p->end[0].cm, &net, 1, 14, 2, NULL, 0, 7, p->now, &id));
	while (pair_time(p, UINT64_MAX - 1))
		;
	assert_int_equal(p->nmads, 3);
	assert_int_equal(last(p, 0, BB_IBCM_EV_FAILED)->status, -ETIMEDOUT);
	assert_nothing_left(p);
}

PAIR_TEST(test_invalid_arguments_are_refused)
{
	const struct bb_ibcm_net net = pair_net(p, 0);
	struct bb_ibcm_req req = pair_req(SERVICE, 0x111);
	struct bb_ibcm *cm = p->end[0].cm;
	struct bb_ibcm_attr attr;
	uint8_t priv[256] = {0};
	struct bb_ibcm *other;
	uint32_t id;

	assert_int_equal(bb_ibcm_connect(cm, &net, &req, priv, 93, 7, p->now, &id), -EINVAL);
	req.qpn = 1;
	assert_int_equal(bb_ibcm_connect(cm, &net, &req, NULL, 0, 7, p->now, &id), -EINVAL);
	req.qpn = 1 << 24;
	assert_int_equal(bb_ibcm_connect(cm, &net, &req, NULL, 0, 7, p->now, &id), -EINVAL);
	req = pair_req(SERVICE, 0x111);
	req.mtu = 6;
	assert_int_equal(bb_ibcm_connect(cm, &net, &req, NULL, 0, 7, p->now, &id), -EINVAL);
	req = pair_req(SERVICE, 0x111);
	req.cm_retries = 16;
	assert_int_equal(bb_ibcm_connect(cm, &net, &req, NULL, 0, 7, p->now, &id), -EINVAL);
	assert_int_equal(bb_ibcm_in_use(cm), 0);
	bb_ibcm_attr_init(&attr);
	assert_int_equal(bb_ibcm_create(&attr, &other), -EINVAL); /* without ops */
	attr.ops = &pair_ops;
	attr.max_conns = (1 << 20) + 1;
	assert_int_equal(bb_ibcm_create(&attr, &other), -EINVAL);
}

PAIR_TEST(test_connect_without_a_free_slot_fails)
{
	const struct bb_ibcm_net net = pair_net(p, 0);
	uint32_t id;

	for (uint32_t i = 0; i < 64; i++)
		connect_a(p);
	assert_int_equal(bb_ibcm_sidr(p->end[0].cm, &net, 1, 14, 2, NULL, 0, 7, p->now, &id),
			 -ENOSPC);
	assert_int_equal(bb_ibcm_in_use(p->end[0].cm), 64);
}

TEST_MAIN(0)
