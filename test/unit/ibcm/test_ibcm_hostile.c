/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The CM engine with a hostile peer: fields, IDs, states, replays. */
#include <errno.h>

#include "ibcm_hostile.h"

static uint64_t
all_drops(const struct pair *p, unsigned int end)
{
	uint64_t n = 0;

	for (int i = 0; i < BB_IBCM_DROPS; i++)
		n += drops(p, end, (enum bb_ibcm_drop)i);
	return n;
}

/* Delivers the REQ of MAD 0 after @change. Returns the reason of the REJ, 0 if there is none. */
static uint32_t
inject_req(struct pair *p, void (*change)(struct bb_ibcm_msg *msg))
{
	struct bb_ibcm_msg msg;
	const uint32_t before = p->nmads;

	assert_int_equal(bb_ibcm_parse(&msg, p->mads[0].mad, BB_IBCM_MAD), BB_IBCM_PARSED);
	change(&msg);
	inject(p, 1, &msg);
	if (p->nmads == before)
		return 0;
	assert_int_equal(p->mads[before].type, BB_IBCM_REJ);
	assert_int_equal(bb_ibcm_parse(&msg, p->mads[before].mad, BB_IBCM_MAD), BB_IBCM_PARSED);
	return msg.rej.reason;
}

static void
foreign_local_gid(struct bb_ibcm_msg *msg)
{
	msg->req.primary.local_gid[15] ^= 0x40;
}

static void
foreign_remote_gid(struct bb_ibcm_msg *msg)
{
	msg->req.primary.remote_gid[0] ^= 1;
}

static void
rd_transport(struct bb_ibcm_msg *msg)
{
	msg->req.transport = 2;
}

static void
xrc_transport(struct bb_ibcm_msg *msg)
{
	msg->req.transport = 3;
	msg->req.ext_transport = 1;
}

static void
mtu_zero(struct bb_ibcm_msg *msg)
{
	msg->req.mtu = 0;
}

static void
mtu_six(struct bb_ibcm_msg *msg)
{
	msg->req.mtu = 6;
}

static void
qpn_one(struct bb_ibcm_msg *msg)
{
	msg->req.qpn = 1;
}

static void
other_pkey(struct bb_ibcm_msg *msg)
{
	msg->req.pkey = 0x8001;
}

static void
other_service(struct bb_ibcm_msg *msg)
{
	msg->req.service_id++;
}

PAIR_TEST(test_req_with_invalid_field_is_rejected_with_its_reason)
{
	static const struct {
		void (*change)(struct bb_ibcm_msg *msg);
		uint32_t reason;
	} bad[] = {
		{foreign_local_gid, BB_IBCM_REJ_GID},
		{foreign_remote_gid, BB_IBCM_REJ_GID},
		{rd_transport, BB_IBCM_REJ_TRANSPORT},
		{xrc_transport, BB_IBCM_REJ_TRANSPORT},
		{mtu_zero, BB_IBCM_REJ_MTU},
		{mtu_six, BB_IBCM_REJ_MTU},
		{qpn_one, BB_IBCM_REJ_UNSUPPORTED},
		{other_pkey, BB_IBCM_REJ_UNSUPPORTED},
		{other_service, BB_IBCM_REJ_SERVICE_ID},
	};

	connect_qpn(p, 0x111);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(inject_req(p, bad[i].change), bad[i].reason);
		assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 0);
		assert_int_equal(p->end[1].nev, 0);
	}
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_FIELD), 8);
}

PAIR_TEST(test_packet_that_is_not_from_qp1_is_dropped)
{
	struct bb_ibcm_gmp gmp;

	connect_qpn(p, 0x111);
	gmp = pair_gmp(&p->mads[0]);
	gmp.qkey = 0x11111111;
	bb_ibcm_rx(p->end[1].cm, &gmp, p->mads[0].mad, BB_IBCM_MAD, p->now);
	gmp = pair_gmp(&p->mads[0]);
	gmp.sqpn = 2;
	bb_ibcm_rx(p->end[1].cm, &gmp, p->mads[0].mad, BB_IBCM_MAD, p->now);
	gmp = pair_gmp(&p->mads[0]);
	bb_ibcm_rx(p->end[1].cm, &gmp, p->mads[0].mad, BB_IBCM_MAD - 1, p->now);
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_QKEY), 1);
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_SQPN), 1);
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_LENGTH), 1);
	assert_int_equal(p->end[1].nev, 0);
	assert_int_equal(p->nmads, 1);
}

PAIR_TEST(test_mad_of_other_class_or_version_is_counted)
{
	static const struct {
		unsigned int byte;
		uint8_t value;
		enum bb_ibcm_drop why;
	} bad[] = {
		{0, 2, BB_IBCM_DROP_VERSION},  {2, 1, BB_IBCM_DROP_VERSION},
		{1, 4, BB_IBCM_DROP_CLASS},    {3, 0x81, BB_IBCM_DROP_METHOD},
		{17, 0x40, BB_IBCM_DROP_TYPE},
	};

	connect_qpn(p, 0x111);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const uint64_t before = drops(p, 1, bad[i].why);
		struct pair_mad m = p->mads[0];

		m.mad[bad[i].byte] = bad[i].value;
		pair_deliver(p, &m);
		assert_int_equal(drops(p, 1, bad[i].why), before + 1);
	}
	assert_int_equal(p->end[1].nev, 0);
}

/* Messages that name a connection, with IDs that are not those of the connection. */
static const uint8_t with_ids[] = {BB_IBCM_MRA,  BB_IBCM_REJ,  BB_IBCM_REP, BB_IBCM_RTU,
				   BB_IBCM_DREQ, BB_IBCM_DREP, BB_IBCM_LAP, BB_IBCM_APR};

PAIR_TEST(test_message_with_wrong_ids_changes_nothing)
{
	uint32_t a, b, events;

	establish(p, &a, &b);
	events = p->end[0].nev + p->end[1].nev;
	for (unsigned int i = 0; i < sizeof(with_ids); i++) {
		for (unsigned int wrong = 0; wrong < 4; wrong++) {
			struct bb_ibcm_msg msg = {.type = with_ids[i]};
			const uint64_t before = all_drops(p, 1);

			msg.local_id = wrong == 0 ? a ^ 1 : a;
			/* Of another slot, of another generation of the slot, 0. */
			msg.remote_id = wrong == 1   ? b ^ 1
					: wrong == 2 ? b ^ 0x80000000
					: wrong == 3 ? 0
						     : b;
			if (msg.type == BB_IBCM_DREQ)
				msg.dreq.remote_qpn = 0x222;
			if (msg.type == BB_IBCM_REJ)
				msg.rej.reason = BB_IBCM_REJ_TIMEOUT;
			inject(p, 1, &msg);
			assert_int_equal(all_drops(p, 1), before + 1);
		}
	}
	assert_int_equal(p->end[0].nev + p->end[1].nev, events);
	OK(bb_ibcm_disconnect(p->end[1].cm, b, NULL, 0, p->now));
}

PAIR_TEST(test_message_of_another_host_changes_nothing)
{
	uint32_t a, b, events;

	establish(p, &a, &b);
	events = p->end[1].nev;
	for (unsigned int i = 0; i < sizeof(with_ids); i++) {
		struct bb_ibcm_msg msg = {.type = with_ids[i], .local_id = a, .remote_id = b};
		struct pair_mad m = {.net = pair_net(p, 0)};
		const uint32_t sent = p->nmads;

		m.net.src[15] = 200;
		if (msg.type == BB_IBCM_DREQ)
			msg.dreq.remote_qpn = 0x222;
		assert_true(bb_ibcm_build(m.mad, &msg));
		pair_deliver(p, &m);
		assert_int_equal(p->nmads, sent);
	}
	assert_int_equal(p->end[1].nev, events);
	/* An APR is dropped before its IDs are read. */
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_PEER), sizeof(with_ids) - 1);
}

PAIR_TEST(test_dreq_for_another_qp_is_dropped)
{
	struct bb_ibcm_msg msg = {.type = BB_IBCM_DREQ};
	uint32_t a, b, sent;

	establish(p, &a, &b);
	sent = p->nmads;
	msg.local_id = a;
	msg.remote_id = b;
	msg.dreq.remote_qpn = 0x223;
	inject(p, 1, &msg);
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_QPN), 1);
	assert_int_equal(p->nmads, sent);
	msg.dreq.remote_qpn = 0x222;
	inject(p, 1, &msg);
	assert_int_equal(p->mads[sent].type, BB_IBCM_DREP);
}

PAIR_TEST(test_dreq_of_an_unknown_connection_is_answered)
{
	struct bb_ibcm_msg msg = {.type = BB_IBCM_DREQ, .tid = 5, .local_id = 6, .remote_id = 7};

	inject(p, 1, &msg);
	assert_int_equal(p->nmads, 1);
	assert_int_equal(bb_ibcm_parse(&msg, p->mads[0].mad, BB_IBCM_MAD), BB_IBCM_PARSED);
	assert_fields(msg, type, BB_IBCM_DREP, tid, 5, local_id, 7, remote_id, 6);
	assert_int_equal(drops(p, 1, BB_IBCM_DROP_ID), 1);
}

/* Every message in every state from REQ_SENT on, with the right IDs: no event twice, no new slot.
 */
PAIR_TEST(test_replayed_messages_are_handled_once)
{
	uint32_t a, b, ends;

	establish(p, &a, &b);
	OK(bb_ibcm_disconnect(p->end[0].cm, a, NULL, 0, p->now));
	pair_deliver_all(p);
	ends = p->end[0].nev + p->end[1].nev;
	for (unsigned int round = 0; round < 3; round++) {
		const uint32_t n = p->nmads;

		for (uint32_t i = 0; i < n && i < 64; i++)
			pair_deliver(p, &p->mads[i]);
		assert_int_equal(p->end[0].nev + p->end[1].nev, ends);
		assert_int_equal(bb_ibcm_in_use(p->end[0].cm), 1);
		assert_int_equal(bb_ibcm_in_use(p->end[1].cm), 1);
	}
}

PAIR_TEST(test_replayed_reply_of_an_ended_connection_is_rejected)
{
	uint32_t a, b, sent;

	establish(p, &a, &b);
	OK(bb_ibcm_disconnect(p->end[0].cm, a, NULL, 0, p->now));
	pair_deliver_all(p);
	OK(bb_ibcm_release(p->end[0].cm, a, p->now));
	OK(bb_ibcm_release(p->end[1].cm, b, p->now));
	while (pair_time(p, UINT64_MAX - 1))
		;
	assert_int_equal(bb_ibcm_in_use(p->end[0].cm), 0);
	sent = p->nmads;
	pair_deliver(p, &p->mads[1]);
	assert_int_equal(p->nmads, sent + 1);
	assert_int_equal(p->mads[sent].type, BB_IBCM_REJ);
	assert_int_equal(bb_ibcm_stats(p->end[0].cm)->rejects[BB_IBCM_REJ_COMM_ID], 1);
	assert_int_equal(bb_ibcm_in_use(p->end[0].cm), 0);
}

/* A REQ with the QPN of an established connection: the peer has lost that connection. */
PAIR_TEST(test_stale_connection_is_rejected_and_ends)
{
	uint32_t a, b, again, sent;

	establish(p, &a, &b);
	sent = p->nmads;
	again = connect_qpn(p, 0x111);
	assert_int_equal(pair_deliver_next(p), BB_IBCM_REQ);
	assert_int_equal(p->mads[sent + 1].type, BB_IBCM_REJ);
	assert_int_equal(p->mads[sent + 2].type, BB_IBCM_DREQ);
	pair_deliver_all(p);
	assert_int_equal(bb_ibcm_stats(p->end[1].cm)->rejects[BB_IBCM_REJ_STALE], 1);
	assert_fields(p->end[0].ev[1], type, BB_IBCM_EV_REJECTED, id, again, msg.rej.reason,
		      BB_IBCM_REJ_STALE);
	assert_fields(p->end[0].ev[2], type, BB_IBCM_EV_DISCONNECTED, id, a);
	/* The QP may connect now. */
	connect_qpn(p, 0x111);
	pair_deliver_all(p);
	assert_int_equal(p->end[1].ev[p->end[1].nev - 1].type, BB_IBCM_EV_REQ);
}

/* The peer has lost the other connection: as in Linux (cm_rep_handler()), DREQ ends it. */
PAIR_TEST(test_rep_with_the_qpn_of_another_connection_is_stale_and_ends_the_other)
{
	const struct bb_ibcm_rep rep = pair_rep(0x222);
	uint32_t a, b, c, d, sent;

	establish(p, &a, &b);
	c = connect_qpn(p, 0x112);
	pair_deliver_all(p);
	d = p->end[1].ev[p->end[1].nev - 1].id;
	p->end[0].nev = p->end[1].nev = 0;
	OK(bb_ibcm_accept(p->end[1].cm, d, &rep, NULL, 0, 8, p->now));
	sent = p->nmads;
	pair_deliver_all(p);
	assert_int_equal(p->mads[sent].type, BB_IBCM_REJ);
	assert_int_equal(p->mads[sent + 1].type, BB_IBCM_DREQ);
	assert_fields(p->end[0].ev[0], type, BB_IBCM_EV_FAILED, id, c, status, -ECONNREFUSED);
	assert_fields(p->end[1].ev[0], type, BB_IBCM_EV_REJECTED, id, d, msg.rej.reason,
		      BB_IBCM_REJ_STALE);
	assert_fields(p->end[1].ev[1], type, BB_IBCM_EV_DISCONNECTED, id, b);
	assert_fields(p->end[0].ev[1], type, BB_IBCM_EV_DISCONNECTED, id, a, status, 0);
	/* The QP of the peer may connect now. */
	c = connect_qpn(p, 0x112);
	pair_deliver_all(p);
	OK(bb_ibcm_accept(p->end[1].cm, p->end[1].ev[2].id, &rep, NULL, 0, 8, p->now));
	pair_deliver_all(p);
	assert_fields(p->end[0].ev[2], type, BB_IBCM_EV_REP, id, c);
}

PAIR_TEST(test_length_of_reject_information_is_limited_to_its_field)
{
	struct bb_ibcm_msg msg = {.type = BB_IBCM_REJ, .local_id = 9};

	msg.remote_id = connect_qpn(p, 0x111);
	msg.rej.reason = BB_IBCM_REJ_CONSUMER;
	msg.rej.ari_len = 127;
	inject(p, 0, &msg);
	assert_int_equal(p->end[0].ev[0].type, BB_IBCM_EV_REJECTED);
	assert_int_equal(p->end[0].ev[0].msg.rej.ari_len, BB_IBCM_ARI);
}

PAIR_TEST(test_mra_extends_the_wait_once_and_at_most_by_the_limit)
{
	struct bb_ibcm_msg msg = {.type = BB_IBCM_MRA, .local_id = 5};
	uint64_t deadline;

	msg.remote_id = connect_qpn(p, 0x111);
	msg.mra.timeout = 31;
	msg.mra.answers = BB_IBCM_ANSWERS_REP;
	inject(p, 0, &msg);
	assert_int_equal(drops(p, 0, BB_IBCM_DROP_STATE), 1);
	msg.mra.answers = BB_IBCM_ANSWERS_REQ;
	inject(p, 0, &msg);
	deadline = bb_ibcm_deadline(p->end[0].cm);
	assert_int_equal(deadline - p->now, (4096ull << 24) + (4096ull << 14));
	p->now += 1000;
	inject(p, 0, &msg);
	assert_int_equal(bb_ibcm_deadline(p->end[0].cm), deadline);
	assert_int_equal(drops(p, 0, BB_IBCM_DROP_DUPLICATE), 1);
}

/* Timeout codes 0 and 31 of a REQ are limited to 17 ms and 17 s. */
PAIR_TEST(test_timeouts_of_a_req_are_limited)
{
	static const uint32_t code[2] = {0, 31}, used[2] = {12, 22};

	for (unsigned int i = 0; i < 2; i++) {
		const struct bb_ibcm_net net = pair_net(p, 0);
		struct bb_ibcm_req req = pair_req(SERVICE, 0x111 + i);
		const struct bb_ibcm_rep rep = pair_rep(0x222 + i);
		uint32_t id, b;

		req.local_timeout = code[i];
		req.cm_retries = 0;
		OK(bb_ibcm_connect(p->end[0].cm, &net, &req, NULL, 0, 7, p->now, &id));
		pair_deliver_all(p);
		b = p->end[1].ev[p->end[1].nev - 1].id;
		OK(bb_ibcm_accept(p->end[1].cm, b, &rep, NULL, 0, 8, p->now));
		assert_int_equal(bb_ibcm_deadline(p->end[1].cm) - p->now, 4096ull << used[i]);
		OK(bb_ibcm_release(p->end[1].cm, b, p->now));
		while (pair_time(p, UINT64_MAX - 1))
			;
	}
}

PAIR_TEST(test_alternate_path_is_refused)
{
	struct bb_ibcm_msg msg = {.type = BB_IBCM_LAP};
	uint32_t a, b;

	establish(p, &a, &b);
	msg.local_id = a;
	msg.remote_id = b;
	inject(p, 1, &msg);
	assert_int_equal(bb_ibcm_parse(&msg, p->mads[p->nmads - 1].mad, BB_IBCM_MAD),
			 BB_IBCM_PARSED);
	assert_fields(msg, type, BB_IBCM_APR, apr.status, BB_IBCM_APR_UNSUPPORTED, remote_id, a);
	msg = (struct bb_ibcm_msg){.type = BB_IBCM_LAP, .local_id = a, .remote_id = b ^ 1};
	inject(p, 1, &msg);
	assert_int_equal(bb_ibcm_parse(&msg, p->mads[p->nmads - 1].mad, BB_IBCM_MAD),
			 BB_IBCM_PARSED);
	assert_int_equal(msg.apr.status, BB_IBCM_APR_COMM_ID);
}

/* The answer to a SIDR_REQ must come from the host that was asked. */
PAIR_TEST(test_sidr_reply_of_another_host_is_dropped)
{
	struct bb_ibcm_msg msg = {.type = BB_IBCM_SIDR_REP};
	const struct bb_ibcm_net net = pair_net(p, 0);
	struct pair_mad m = {.net = pair_net(p, 1)};

	OK(bb_ibcm_sidr(p->end[0].cm, &net, 1, 14, 2, NULL, 0, 7, p->now, &msg.local_id));
	assert_true(bb_ibcm_build(m.mad, &msg));
	m.net.src[15] = 77;
	pair_deliver(p, &m);
	assert_int_equal(drops(p, 0, BB_IBCM_DROP_PEER), 1);
	assert_int_equal(p->end[0].nev, 0);
	msg.local_id ^= 1;
	inject(p, 0, &msg);
	assert_int_equal(drops(p, 0, BB_IBCM_DROP_ID), 1);
}

TEST_MAIN(0)
