/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Limits of the CM engine: how many slots the peers of one address, and all peers, may use. */
#include "ibcm_hostile.h"

PAIR_TEST(test_flood_of_one_address_leaves_room_for_others)
{
	struct pair_mad m;

	connect_qpn(p, 0x111);
	m = p->mads[0];
	for (uint32_t i = 0; i < 1000; i++) {
		struct bb_ibcm_msg msg;

		assert_int_equal(bb_ibcm_parse(&msg, p->mads[0].mad, BB_IBCM_MAD), BB_IBCM_PARSED);
		msg.local_id += i;
		msg.req.qpn += i;
		assert_true(bb_ibcm_build(m.mad, &msg));
		pair_deliver(p, &m);
	}
	/* 16 of a GID, 32 in all: see pair_new(). Nothing was sent for the others. */
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 16);
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_PER_GID), 1000 - 16);
	assert_int_equal(p->nmads, 1);
	for (uint32_t i = 0; i < 200; i++) {
		struct bb_ibcm_msg msg;

		assert_int_equal(bb_ibcm_parse(&msg, p->mads[0].mad, BB_IBCM_MAD), BB_IBCM_PARSED);
		m.net.src[14] = msg.req.primary.local_gid[14] = (uint8_t)(1 + i);
		assert_true(bb_ibcm_build(m.mad, &msg));
		pair_deliver(p, &m);
	}
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 32);
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_PENDING), 200 - 16);
	/* All requests end, and the engine takes new ones. */
	while (pair_time(p, UINT64_MAX - 1))
		;
	for (uint32_t i = 0; i < p->end[1].nev; i++)
		if (p->end[1].ev[i].type == BB_IBCM_EV_REQ)
			OK(bb_ibcm_release(p->end[1].cm, p->end[1].ev[i].id, p->now));
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 0);
}

/*
 * Delivers request @i of the peer with the last byte @gid of its address. Returns the number of
 * events.
 */
static uint32_t
deliver_request(struct pair *p, uint32_t i, uint8_t gid)
{
	struct pair_mad m = p->mads[0];
	struct bb_ibcm_msg msg;

	assert_int_equal(bb_ibcm_parse(&msg, p->mads[0].mad, BB_IBCM_MAD), BB_IBCM_PARSED);
	msg.local_id += i;
	msg.tid += i;
	msg.req.qpn += i;
	m.net.src[15] = msg.req.primary.local_gid[15] = gid;
	assert_true(bb_ibcm_build(m.mad, &msg));
	p->end[1].nev = 0;
	pair_deliver(p, &m);
	return p->end[1].nev;
}

/* Delivers a new request, and returns its ID. */
static uint32_t
request(struct pair *p, uint32_t i, uint8_t gid)
{
	assert_int_equal(deliver_request(p, i, gid), 1);
	assert_int_equal(p->end[1].ev[0].type, BB_IBCM_EV_REQ);
	return p->end[1].ev[0].id;
}

/* Ends request @i in one of four ways. */
static void
end_request(struct pair *p, uint32_t i, uint32_t id)
{
	const struct bb_ibcm_rep rep = pair_rep(0x10000 + i);
	struct bb_ibcm_msg msg = {.type = BB_IBCM_REJ, .remote_id = id};
	struct bb_ibcm_msg req;

	switch (i % 4) {
	case 0:
		OK(bb_ibcm_reject(p->end[1].cm, id, BB_IBCM_REJ_CONSUMER, NULL, 0, p->now));
		break;
	case 1: /* the peer cancels its request */
		assert_int_equal(bb_ibcm_parse(&req, p->mads[0].mad, BB_IBCM_MAD), BB_IBCM_PARSED);
		msg.local_id = req.local_id + i;
		msg.rej.reason = BB_IBCM_REJ_CONSUMER;
		inject(p, 1, &msg);
		assert_int_equal(p->end[1].ev[1].type, BB_IBCM_EV_REJECTED);
		break;
	case 2:
		OK(bb_ibcm_accept(p->end[1].cm, id, &rep, NULL, 0, 8, p->now));
		break;
	default:
		break;
	}
	OK(bb_ibcm_release(p->end[1].cm, id, p->now));
}

/*
 * The peer chooses for how long the slot of an ended request repeats the answer. In this time the
 * slot is not one of the 16 pending requests of the peer's address.
 */
PAIR_TEST(test_ended_requests_of_one_address_do_not_count_as_pending)
{
	uint64_t sent;

	connect_qpn(p, 0x111);
	for (uint32_t i = 0; i < 100; i++) {
		end_request(p, i, request(p, i, 1));
		assert_int_equal(bb_ibcm_in_use(p->end[1].cm), i < 16 ? i + 1 : 16);
	}
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_PER_GID), 0);
	/* The last request gets its answer again. The first one has no slot any more: it is new. */
	sent = bb_ibcm_stats(p->end[1].cm)->tx[BB_IBCM_REJ - BB_IBCM_REQ];
	assert_int_equal(deliver_request(p, 99, 1), 0);
	assert_int_equal(bb_ibcm_stats(p->end[1].cm)->tx[BB_IBCM_REJ - BB_IBCM_REQ], sent + 1);
	end_request(p, 0, request(p, 0, 1));
	while (pair_time(p, UINT64_MAX - 1))
		;
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 0);
}

/* Without a limit for all addresses together, ended requests would fill the table of 64 slots. */
PAIR_TEST(test_ended_requests_of_many_addresses_leave_room_for_others)
{
	const struct bb_ibcm_net net = pair_net(p, 1);
	const struct bb_ibcm_req req = pair_req(SERVICE, 0x333);
	uint32_t id;

	connect_qpn(p, 0x111);
	for (uint32_t i = 0; i < 200; i++) {
		id = request(p, i, (uint8_t)(3 + i));
		OK(bb_ibcm_reject(p->end[1].cm, id, BB_IBCM_REJ_CONSUMER, NULL, 0, p->now));
		OK(bb_ibcm_release(p->end[1].cm, id, p->now));
		assert_true(bb_ibcm_in_use(p->end[1].cm) <= 32);
	}
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_PENDING), 0);
	OK(bb_ibcm_connect(p->end[1].cm, &net, &req, NULL, 0, 7, p->now, &id));
	OK(bb_ibcm_release(p->end[1].cm, id, p->now));
}

/*
 * Without a limit, ended connections of one address would fill the table of 64 slots: no time
 * passes between them.
 */
PAIR_TEST(test_ended_connections_of_one_address_leave_room_for_others)
{
	uint32_t a, b;

	for (unsigned int i = 0; i < 200; i++) {
		p->end[0].nev = p->end[1].nev = 0;
		establish(p, &a, &b);
		OK(bb_ibcm_disconnect(p->end[0].cm, a, NULL, 0, p->now));
		pair_deliver_all(p);
		OK(bb_ibcm_release(p->end[0].cm, a, p->now));
		OK(bb_ibcm_release(p->end[1].cm, b, p->now));
		assert_true(bb_ibcm_in_use(p->end[0].cm) <= 16);
		assert_true(bb_ibcm_in_use(p->end[1].cm) <= 16);
	}
	/* The newest connections are those that still answer a repeated DREQ. */
	pair_deliver(p, &p->mads[3]);
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_DUPLICATE), 1);
	while (pair_time(p, UINT64_MAX - 1))
		;
	assert_int_equal(bb_ibcm_in_use(p->end[0].cm), 0);
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 0);
}

/* A peer that never answers a DREQ keeps a limited number of slots, whatever times it chose. */
PAIR_TEST(test_disconnects_without_answer_keep_few_slots)
{
	uint32_t a, b, i;

	for (i = 0; i < 100; i++) {
		establish(p, &a, &b);
		if (i % 2 == 0)
			OK(bb_ibcm_disconnect(p->end[1].cm, b, NULL, 0, p->now));
		OK(bb_ibcm_release(p->end[1].cm, b, p->now));
		assert_int_equal(p->mads[p->nmads - 1].type, BB_IBCM_DREQ);
		OK(bb_ibcm_abandon(p->end[0].cm, a, p->now));
		assert_int_equal(bb_ibcm_in_use(p->end[1].cm), i < 16 ? i + 1 : 16);
	}
}

/* A peer that gets no DREQ does not learn that its connection has ended. */
PAIR_TEST(test_rejections_do_not_stop_the_repeats_of_a_dreq_of_the_same_address)
{
	uint32_t a, b, i, id;

	establish(p, &a, &b);
	OK(bb_ibcm_release(p->end[1].cm, b, p->now));
	assert_int_equal(p->mads[p->nmads - 1].type, BB_IBCM_DREQ);
	for (i = 1; i <= 32; i++) {
		id = request(p, i, 1);
		OK(bb_ibcm_reject(p->end[1].cm, id, BB_IBCM_REJ_CONSUMER, NULL, 0, p->now));
		OK(bb_ibcm_release(p->end[1].cm, id, p->now));
	}
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 16);
	p->next = p->nmads; /* all messages up to now are lost */
	assert_true(pair_time(p, UINT64_MAX - 1));
	assert_int_equal(pair_deliver_next(p), BB_IBCM_DREQ);
	assert_fields(p->end[0].ev[p->end[0].nev - 1], type, BB_IBCM_EV_DISCONNECTED, id, a);
}

/* Establishes a connection whose peer has the longest timeouts. Returns its ID. */
static uint32_t
establish_slow(struct pair *p, uint32_t i, uint8_t gid)
{
	const struct bb_ibcm_rep rep = pair_rep(0x10000 + i);
	const uint32_t id = request(p, i, gid);
	struct bb_ibcm_msg rtu = {.type = BB_IBCM_RTU, .remote_id = id};
	struct pair_mad m = {.net = pair_net(p, 0)};

	OK(bb_ibcm_accept(p->end[1].cm, id, &rep, NULL, 0, 8, p->now));
	rtu.local_id = p->end[1].ev[0].msg.local_id;
	m.net.src[15] = gid;
	assert_true(bb_ibcm_build(m.mad, &rtu));
	pair_deliver(p, &m);
	assert_int_equal(p->end[1].ev[1].type, BB_IBCM_EV_ESTABLISHED);
	return id;
}

/*
 * Peers of four addresses never answer a DREQ, and could keep all 64 slots for 275 s. The DREQs of
 * the second half of the slots have 1.1 s, and four of each are sent.
 */
PAIR_TEST(test_disconnects_of_many_addresses_without_answer_leave_room_for_others)
{
	const struct bb_ibcm_net net = pair_net(p, 0);
	struct bb_ibcm_req req = pair_req(SERVICE, 0x111);
	const uint64_t start = p->now;
	uint32_t id;

	req.local_timeout = 22;
	req.cm_retries = 15;
	OK(bb_ibcm_connect(p->end[0].cm, &net, &req, NULL, 0, 7, p->now, &id));
	OK(bb_ibcm_abandon(p->end[0].cm, id, p->now));
	for (uint32_t i = 0; i < 64; i++) {
		id = establish_slow(p, i, (uint8_t)(3 + i / 16));
		OK(bb_ibcm_release(p->end[1].cm, id, p->now));
	}
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 64);
	while (pair_time(p, start + 1100 * PAIR_MS))
		;
	assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 32);
	assert_int_equal(bb_ibcm_stats(p->end[1].cm)->tx[BB_IBCM_DREQ - BB_IBCM_REQ], 32 + 32 * 4);
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_PENDING), 0);
	request(p, 64, 7);
}

TEST_MAIN(0)
