/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages that meet a remainder of an earlier connection: the QPN of a peer that died before its
 * connection was established, the last message of an ended connection.
 */
#include <errno.h>

#include "ibcm_test.h"

#define QPN 0x111u

static uint32_t
connect_qp(struct pair *p)
{
	const struct bb_ibcm_net net = pair_net(p, 0);
	const struct bb_ibcm_req req = pair_req(SERVICE, QPN);
	uint32_t id = 0;

	OK(bb_ibcm_connect(p->end[0].cm, &net, &req, NULL, 0, 7, p->now, &id));
	return id;
}

/* Lets the active side disappear after its REQ. Returns the ID of the passive side, which accepts.
 */
static uint32_t
accept_dead_peer(struct pair *p)
{
	const struct bb_ibcm_rep rep = pair_rep(0x222);
	const uint32_t a = connect_qp(p);

	pair_deliver_all(p);
	OK(bb_ibcm_abandon(p->end[0].cm, a, p->now));
	assert_int_equal(p->end[1].ev[0].type, BB_IBCM_EV_REQ);
	OK(bb_ibcm_accept(p->end[1].cm, p->end[1].ev[0].id, &rep, NULL, 0, 8, p->now));
	p->next = p->nmads;
	return p->end[1].ev[0].id;
}

/* Connects the QP of the dead peer again. */
static void
connect_successor(struct pair *p, bool stale)
{
	p->end[0].nev = p->end[1].nev = 0;
	p->next = p->nmads;
	connect_qp(p);
	pair_deliver_all(p);
	if (stale) {
		assert_int_equal(p->end[1].nev, 0);
		assert_fields(p->end[0].ev[0], type, BB_IBCM_EV_REJECTED, msg.rej.reason,
			      BB_IBCM_REJ_STALE);
	} else {
		assert_int_equal(p->end[0].nev, 0);
		assert_int_equal(p->end[1].ev[0].type, BB_IBCM_EV_REQ);
	}
}

/* As in Linux, which sends a DREQ only for an established connection (ib_send_cm_dreq()). */
PAIR_TEST(test_qpn_of_a_peer_that_died_before_rtu_is_stale_until_the_reply_times_out)
{
	const uint64_t end = p->now + (4 + 1) * (4096ull << 14); /* see pair_req() */
	const uint32_t b = accept_dead_peer(p);
	uint32_t n = 0, stale = 0;

	while (p->end[1].ev[0].type != BB_IBCM_EV_FAILED) {
		assert_true(n++ < 5);
		connect_successor(p, true);
		stale++;
		p->end[1].nev = 0;
		assert_true(pair_time(p, end));
	}
	assert_int_equal(p->now, end);
	assert_fields(p->end[1].ev[0], id, b, status, -ETIMEDOUT);
	assert_int_equal(bb_ibcm_stats(p->end[1].cm)->rejects[BB_IBCM_REJ_STALE], stale);
	connect_successor(p, false);
}

/* A successor that gets the repeated REP ends the old connection earlier. */
PAIR_TEST(test_successor_of_a_dead_peer_rejects_the_repeated_reply)
{
	const uint32_t b = accept_dead_peer(p);

	connect_successor(p, true);
	assert_true(pair_time(p, p->now + (4096ull << 14)));
	pair_deliver_all(p);
	assert_fields(p->end[1].ev[0], type, BB_IBCM_EV_REJECTED, id, b, msg.rej.reason,
		      BB_IBCM_REJ_COMM_ID);
	connect_successor(p, false);
}

/* The network delivers the MAD with this number, and no other. Returns the number of MADs sent. */
static uint32_t
deliver_one(struct pair *p, uint32_t n)
{
	const uint32_t before = p->nmads;

	pair_deliver(p, &p->mads[n]);
	return p->nmads - before;
}

/* Uses each of the 64 slots of both ends once: end 1 rejects with private data. */
static void
use_all_slots(struct pair *p)
{
	for (unsigned int i = 0; i < 64; i++) {
		const uint32_t a = connect_qp(p);

		pair_deliver_all(p);
		OK(bb_ibcm_reject(p->end[1].cm, p->end[1].ev[0].id, BB_IBCM_REJ_CONSUMER, "secret",
				  6, p->now));
		pair_deliver_all(p);
		OK(bb_ibcm_release(p->end[0].cm, a, p->now));
		OK(bb_ibcm_release(p->end[1].cm, p->end[1].ev[0].id, p->now));
		while (pair_time(p, UINT64_MAX - 1))
			;
		p->end[0].nev = p->end[1].nev = 0;
		p->nmads = p->next = 0;
	}
}

/* The slot of the cancelled request had sent the REJ of another connection before. */
PAIR_TEST(test_repeated_request_after_its_cancellation_gets_no_message_of_an_earlier_connection)
{
	struct bb_ibcm_msg rej = {.type = BB_IBCM_REJ};
	struct pair_mad m = {.net = pair_net(p, 0)};

	use_all_slots(p);
	rej.local_id = connect_qp(p);
	rej.rej.reason = BB_IBCM_REJ_TIMEOUT;
	assert_true(bb_ibcm_build(m.mad, &rej));
	assert_int_equal(deliver_one(p, 0), 0);
	pair_deliver(p, &m);
	assert_fields(p->end[1].ev[1], type, BB_IBCM_EV_REJECTED, id, p->end[1].ev[0].id);
	assert_int_equal(deliver_one(p, 0), 0);
	assert_int_equal(bb_ibcm_stats(p->end[1].cm)->drop[BB_IBCM_DROP_DUPLICATE], 1);
}

/* If the active side repeated its REQ, the passive side would report a request of a dead peer. */
PAIR_TEST(test_delayed_reply_of_a_connection_that_its_peer_ended_gets_no_request)
{
	const struct bb_ibcm_rep rep = pair_rep(0x222);

	connect_qp(p);
	pair_deliver_all(p);
	OK(bb_ibcm_accept(p->end[1].cm, p->end[1].ev[0].id, &rep, NULL, 0, 8, p->now));
	pair_deliver_all(p);
	OK(bb_ibcm_release(p->end[1].cm, p->end[1].ev[0].id, p->now));
	pair_deliver_all(p);
	assert_int_equal(p->end[0].ev[1].type, BB_IBCM_EV_REJECTED);
	assert_int_equal(p->mads[1].type, BB_IBCM_REP);
	assert_int_equal(deliver_one(p, 1), 0);
	assert_int_equal(bb_ibcm_stats(p->end[0].cm)->answered_again, 0);
}

TEST_MAIN(0)
