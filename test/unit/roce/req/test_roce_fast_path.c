/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The fast paths for one-packet SENDs and WRITEs and for ACKs, compared with the general code.
 * Two queue pairs get the same input. One uses a fast path wherever it applies, the other never
 * does. Their states must stay equal.
 */
#include "bb_roce_short.h"
#include "roce_req_fake.h"

static uint64_t seed;

static uint32_t
dice(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33) % n;
}

/* ---- Packets */

TEST(test_short_form_builds_and_parses_the_same_bytes)
{
	static const uint8_t flags[] = {0, BB_ROCE_SE, BB_ROCE_MIGREQ, BB_ROCE_ACKREQ,
					BB_ROCE_SE | BB_ROCE_MIGREQ | BB_ROCE_ACKREQ};
	uint8_t a[BB_ROCE_MAX_HDR], b[BB_ROCE_BTH_LEN];
	struct bb_roce_short s, back;

	for (uint32_t i = 0; i < 1000; i++) {
		const struct bb_roce_pkt pkt = {
			.opcode = BB_ROCE_RC | BB_ROCE_SEND_ONLY,
			.flags = flags[i % sizeof(flags)],
			.pkey = (uint16_t)dice(65536),
			.dqpn = dice(1 << 24),
			.psn = dice(1 << 24),
			.len = 1 + dice(4096),
		};

		s = (struct bb_roce_short){pkt.dqpn, pkt.psn, pkt.len, pkt.pkey, pkt.flags};
		assert_int_equal(bb_roce_build(a, &pkt), sizeof(b));
		bb_roce_short_build(b, &s);
		assert_memory_equal(a, b, sizeof(b));
		assert_true(
			bb_roce_short_parse(&back, b, sizeof(b) + pkt.len + bb_roce_pad(pkt.len)));
		assert_fields(back, len, pkt.len, psn, pkt.psn, dqpn, pkt.dqpn, pkey, pkt.pkey);
		assert_int_equal(back.flags, pkt.flags);
	}
}

/* Random bytes: what the fast path accepts is a packet, and parses to the same fields. */
TEST(test_fast_path_accepts_only_what_parses_alike)
{
	uint8_t hdr[BB_ROCE_MAX_HDR];
	struct bb_roce_short s;
	struct bb_roce_pkt pkt;
	uint32_t i, k, took = 0;

	for (i = 0; i < 400000; i++) {
		/* Lengths from the shortest packet up; most are valid. */
		size_t len = BB_ROCE_BTH_LEN + (dice(4) == 0 ? dice(70000) : 4 * dice(1100));

		for (k = 0; k < sizeof(hdr); k++)
			hdr[k] = (uint8_t)dice(256);
		if (dice(8) != 0)
			hdr[0] = BB_ROCE_RC | BB_ROCE_SEND_ONLY;
		if (dice(8) != 0)
			hdr[1] &= 0xf0;
		if (dice(8) != 0)
			hdr[4] &= 0x3f;
		if (!bb_roce_short_parse(&s, hdr, len))
			continue;
		took++;
		assert_int_equal(bb_roce_parse(&pkt, hdr, len), BB_ROCE_OK);
		assert_int_equal(pkt.opcode, BB_ROCE_RC | BB_ROCE_SEND_ONLY);
		assert_int_not_equal(pkt.len, 0);
		assert_fields(pkt, len, s.len, psn, s.psn, dqpn, s.dqpn, pkey, s.pkey);
		assert_int_equal(pkt.flags, s.flags);
	}
	assert_true(took > 100000);
}

/* ---- Two queue pairs in the same state */

static struct rf one, two;
static struct bb_roce_ops run_ops; /* callbacks of one; two completes one message at a time */

static void
same(void)
{
	struct bb_roce_qp a = one.qp, b = two.qp;

	for (uint32_t i = a.req.tail; i != a.req.head; i++) {
		const struct bb_roce_msg *m = &one.ring[i % RF_SLOTS], *n = &two.ring[i % RF_SLOTS];

		assert_fields(*m, cookie, n->cookie, kind, n->kind, flags, n->flags, len, n->len);
		if (i - a.req.tail >= a.req.unassigned - a.req.tail)
			continue;
		assert_fields(*m, psn, n->psn, packets, n->packets, ssn, n->ssn);
	}
	a.ctx = b.ctx = NULL;
	a.ops = b.ops = NULL;
	a.req.ring = b.req.ring = NULL;
	a.resp.replay = b.resp.replay = NULL;
	assert_memory_equal(&a, &b, sizeof(a));
	assert_fields(one, ndone, two.ndone, nfailed, two.nfailed);
}

static void
start_both(const struct bb_roce_ops *ops)
{
	rf_init(&one, BB_ROCE_RC);
	rf_init(&two, BB_ROCE_RC);
	one.attr.adaptive = two.attr.adaptive = 4000;
	one.attr.window = two.attr.window = dice(2) == 0 ? 24 : 200;
	one.attr.sq_psn = two.attr.sq_psn = 0xffffe0;
	one.attr.rq_psn = two.attr.rq_psn = 0xffffe0;
	rf_start(&one);
	rf_start(&two);
	two.qp.ops = ops;
	run_ops = *ops;
	run_ops.complete_run = rf_op_complete_run;
	one.qp.ops = &run_ops;
}

/* ---- Requester */

static void
both_run(void)
{
	uint32_t sent = rf_run(&one);

	assert_int_equal(rf_run(&two), sent);
}

static void
send_both(uint32_t len, uint8_t flags)
{
	const struct rf_tx *tx;
	struct bb_roce_short s;

	bb_roce_short_send(&one.qp, one.posted, len, flags, one.now, &s);
	one.posted++;
	rf_post(&two, BB_ROCE_MSG_SEND, len, flags);
	assert_int_equal(rf_run(&two), 1);
	tx = &two.tx[(two.ntx - 1) % RF_LOG];
	assert_fields(tx->pkt, opcode, BB_ROCE_RC | BB_ROCE_SEND_ONLY, psn, s.psn, len, s.len);
	assert_fields(tx->pkt, pkey, s.pkey, dqpn, s.dqpn, flags, s.flags);
}

/* Posts up to @n messages; each knows whether another one follows. Returns the number posted. */
static uint32_t
plain_both(uint32_t n)
{
	static const struct {
		uint8_t kind, opcode;
	} ops[] = {
		{BB_ROCE_MSG_SEND, BB_ROCE_SEND_ONLY},
		{BB_ROCE_MSG_SEND_IMM, BB_ROCE_SEND_ONLY_IMM},
		{BB_ROCE_MSG_WRITE, BB_ROCE_WRITE_ONLY},
		{BB_ROCE_MSG_WRITE_IMM, BB_ROCE_WRITE_ONLY_IMM},
	};
	uint32_t room = bb_roce_short_room(&one.qp), psn[RF_SLOTS], op[RF_SLOTS], i, first;
	bool ask[RF_SLOTS];

	if (n > room)
		n = room;
	for (i = 0; i < n; i++) {
		struct bb_roce_msg *m = bb_roce_short_msg(&one.qp);
		uint32_t len = 1 + dice(RF_MTU);
		uint8_t flags = dice(3) == 0 ? BB_ROCE_SOLICITED : 0;

		op[i] = dice(sizeof(ops) / sizeof(ops[0]));
		*m = rf_msg(&one, ops[op[i]].kind, len, flags);
		psn[i] = one.qp.req.nxt;
		bb_roce_short_assign(&one.qp, m);
		ask[i] = i + 1 == n || bb_roce_short_quiet(&one.qp) == 0;
		bb_roce_short_timers(&one.qp, ask[i], one.now);
		one.posted++;
		rf_post(&two, ops[op[i]].kind, len, flags);
	}
	first = two.ntx;
	assert_int_equal(rf_run(&two), n);
	for (i = 0; i < n; i++) {
		const struct bb_roce_pkt *pkt = &two.tx[(first + i) % RF_LOG].pkt;

		assert_fields(*pkt, opcode, BB_ROCE_RC | ops[op[i]].opcode, psn, psn[i]);
		assert_int_equal((pkt->flags & BB_ROCE_ACKREQ) != 0, ask[i]);
	}
	return n;
}

/* Receives a random answer to any outstanding packet. Returns true if the fast path took it. */
static bool
answer_both(void)
{
	static const uint8_t kinds[] = {RF_ACK, RF_ACK, RF_ACK, BB_ROCE_AETH_RNR | 5,
					RF_NAK(BB_ROCE_NAK_PSN)};
	uint32_t out = (one.qp.req.sent - one.qp.req.una) & BB_ROCE_PSN_MASK;
	/* Rarely, the peer starts to count credits. */
	uint8_t kind = dice(200) == 0 ? BB_ROCE_AETH_ACK | 3 : kinds[dice(sizeof(kinds))];
	uint32_t psn = one.qp.req.una + (out == 0 ? 0 : dice(out));

	rf_ack(&two, psn, kind);
	psn &= BB_ROCE_PSN_MASK;
	if (!bb_roce_short_ack_next(&one.qp, psn, kind)) {
		rf_ack(&one, psn, kind);
		return false;
	}
	bb_roce_short_acked(&one.qp, psn, one.now);
	return true;
}

TEST(test_fast_and_plain_requester_agree)
{
	uint32_t i, shorts = 0, plains = 0, longs = 0, acks = 0;

	for (i = 0; i < 100000; i++) {
		uint32_t what = dice(10);
		uint8_t flags = dice(3) == 0 ? BB_ROCE_SOLICITED : 0;

		if (i % 1000 == 0)
			start_both(&rf_ops);
		one.now += dice(2000);
		two.now = one.now;
		if (what < 3 && bb_roce_short_room(&one.qp) != 0) {
			send_both(1 + dice(RF_MTU), flags);
			shorts++;
		} else if (what < 5 && bb_roce_short_room(&one.qp) != 0) {
			plains += plain_both(1 + dice(RF_SLOTS));
		} else if (what < 6 && one.qp.req.head - one.qp.req.tail < RF_SLOTS) {
			uint32_t len = dice(4 * RF_MTU);

			if (dice(4) == 0)
				flags |= BB_ROCE_FENCE;
			rf_post(&one, BB_ROCE_MSG_SEND_IMM, len, flags);
			rf_post(&two, BB_ROCE_MSG_SEND_IMM, len, flags);
			longs++;
		} else if (what < 7) {
			both_run();
		} else if (what < 9) {
			acks += answer_both();
		} else if (bb_roce_deadline(&one.qp) != UINT64_MAX) {
			one.now += dice(3) == 0 ? 10000 : 0;
			two.now = one.now;
			if (one.now >= bb_roce_deadline(&one.qp)) {
				bb_roce_tick(&one.qp, one.now);
				bb_roce_tick(&two.qp, two.now);
			}
		}
		same();
	}
	assert_true(shorts > 1000 && plains > 1000 && longs > 1000 && acks > 1000);
}

/* ---- Responder */

/* Sends what is due. Returns true if it was a single ACK by the fast path. */
static bool
answer(void)
{
	const struct bb_roce_pkt *pkt;
	uint32_t psn, msn;

	if (!bb_roce_short_ack_due(&one.qp) || dice(4) == 0) {
		both_run();
		return false;
	}
	psn = bb_roce_ack_psn(&one.qp.resp);
	msn = one.qp.resp.msn;
	bb_roce_short_ack_sent(&one.qp);
	assert_int_equal(rf_run(&two), 1);
	pkt = &two.tx[(two.ntx - 1) % RF_LOG].pkt;
	assert_fields(*pkt, opcode, BB_ROCE_RC | BB_ROCE_ACK, syndrome, RF_ACK, psn, psn, msn, msn);
	return true;
}

static enum bb_roce_take
take(void *ctx, struct bb_roce_qp *qp)
{
	return BB_ROCE_TAKE_OK;
}

static uint8_t
place(void *ctx, struct bb_roce_qp *qp, uint32_t off, const uint8_t *data, uint32_t len)
{
	return 0;
}

static uint8_t
done(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_recv *r)
{
	return 0;
}

/* Both receive the packet. Returns true if the fast path took it. */
static bool
receive(struct bb_roce_pkt *pkt)
{
	struct bb_roce_net net = one.net;
	struct bb_roce_short s;
	bool is_short = pkt->opcode == (BB_ROCE_RC | BB_ROCE_SEND_ONLY) && pkt->len != 0;

	net.tclass = (uint8_t)(dice(20) == 0 ? 3 : dice(3));
	if (dice(40) == 0)
		net.src[7] = 1;
	if (dice(40) == 0)
		net.dst[3] = 1;
	bb_roce_rx(&two.qp, pkt, &net, two.now);
	s = (struct bb_roce_short){pkt->dqpn, pkt->psn, pkt->len, pkt->pkey, pkt->flags};
	if (is_short && bb_roce_short_expected(&one.qp, &s, net.src, net.dst, net.tclass)) {
		bb_roce_short_accepted(&one.qp, &s);
		return true;
	}
	bb_roce_rx(&one.qp, pkt, &net, one.now);
	return false;
}

TEST(test_fast_and_plain_responder_agree)
{
	static const uint8_t opcodes[] = {BB_ROCE_SEND_FIRST, BB_ROCE_SEND_LAST, BB_ROCE_WRITE_ONLY,
					  BB_ROCE_READ_REQUEST};
	struct bb_roce_ops ops = rf_ops;
	uint32_t i, round, shorts = 0, longs = 0, acks = 0;
	uint8_t data[2 * RF_MTU] = {0};

	ops.recv_take = take;
	ops.recv_place = place;
	ops.recv_done = done;
	for (round = 0; round < 400; round++) {
		start_both(&ops);
		for (i = 0; i < 300; i++) {
			const struct bb_roce_resp *r = &two.qp.resp;
			struct bb_roce_pkt pkt = {
				.opcode = BB_ROCE_RC | BB_ROCE_SEND_ONLY,
				.flags = (uint8_t)((dice(2) ? BB_ROCE_ACKREQ : 0) |
						   (dice(4) ? BB_ROCE_MIGREQ : BB_ROCE_SE)),
				.pkey = dice(60) == 0 ? 0x7fff : 0xffff,
				.psn = r->epsn,
				.dqpn = 0x11,
				.rkey = RF_RKEY,
				.va = RF_RADDR,
				.payload = data,
				.len = 1 + dice(RF_MTU),
			};

			/* Rarely, a new message starts inside another one, which is fatal. */
			if ((r->in_message && dice(50) != 0) || dice(8) == 0) {
				pkt.opcode = opcodes[r->in_message ? dice(2) : 2 * dice(2)];
				if (pkt.opcode == BB_ROCE_WRITE_ONLY)
					pkt.dmalen = pkt.len;
				else
					pkt.len = RF_MTU;
				if (!r->in_message && dice(3) == 0) {
					pkt.opcode = BB_ROCE_READ_REQUEST;
					pkt.dmalen = dice(3 * RF_MTU);
					pkt.len = 0;
				}
				if (r->in_message)
					pkt.opcode = BB_ROCE_SEND_LAST;
			}
			if (dice(10) == 0)
				pkt.psn += dice(8) - 4u;
			pkt.psn &= BB_ROCE_PSN_MASK;
			if (dice(300) == 0)
				pkt.len = RF_MTU + 4;
			if (receive(&pkt))
				shorts++;
			else
				longs++;
			if (dice(6) == 0)
				acks += answer();
			same();
		}
	}
	assert_true(shorts > 1000 && longs > 1000 && acks > 1000);
}

TEST_MAIN(0)
