/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The requester of the RoCEv2 engine: the packets of each message, and when they are sent. */
#include "roce_req_fake.h"

/* Opcodes of the packets of a message, by its kind. */
static const struct {
	enum bb_roce_kind kind;
	bool uc;
	uint8_t first, middle, last, only;
} kinds[] = {
	{BB_ROCE_MSG_SEND, true, BB_ROCE_SEND_FIRST, BB_ROCE_SEND_MIDDLE, BB_ROCE_SEND_LAST,
	 BB_ROCE_SEND_ONLY},
	{BB_ROCE_MSG_SEND_IMM, true, BB_ROCE_SEND_FIRST, BB_ROCE_SEND_MIDDLE, BB_ROCE_SEND_LAST_IMM,
	 BB_ROCE_SEND_ONLY_IMM},
	{BB_ROCE_MSG_SEND_INV, false, BB_ROCE_SEND_FIRST, BB_ROCE_SEND_MIDDLE,
	 BB_ROCE_SEND_LAST_INV, BB_ROCE_SEND_ONLY_INV},
	{BB_ROCE_MSG_WRITE, true, BB_ROCE_WRITE_FIRST, BB_ROCE_WRITE_MIDDLE, BB_ROCE_WRITE_LAST,
	 BB_ROCE_WRITE_ONLY},
	{BB_ROCE_MSG_WRITE_IMM, true, BB_ROCE_WRITE_FIRST, BB_ROCE_WRITE_MIDDLE,
	 BB_ROCE_WRITE_LAST_IMM, BB_ROCE_WRITE_ONLY_IMM},
};

static uint32_t
packets_of(uint32_t len)
{
	return len == 0 ? 1 : (len + RF_MTU - 1) / RF_MTU;
}

static void
check_message(struct rf *f, uint32_t k, uint32_t len, uint32_t psn, uint64_t cookie)
{
	uint8_t type = (uint8_t)f->attr.type;
	bool write = kinds[k].first == BB_ROCE_WRITE_FIRST;
	uint32_t n = packets_of(len), i, b;

	for (i = 0; i < n; i++) {
		bool first = i == 0, last = i + 1 == n;
		uint8_t op = first && last ? kinds[k].only
			     : first       ? kinds[k].first
			     : last        ? kinds[k].last
					   : kinds[k].middle;
		const struct rf_tx *tx = rf_next(f);
		const struct bb_roce_pkt *pkt = &tx->pkt;

		assert_fields(*pkt, opcode, op | type, psn, (psn + i) & BB_ROCE_PSN_MASK);
		assert_int_equal(pkt->pkey, 0xffff);
		assert_int_not_equal(pkt->flags & BB_ROCE_MIGREQ, 0);
		assert_fields(*pkt, dqpn, 0x222222, len, last ? len - i * RF_MTU : RF_MTU);
		for (b = 0; b < pkt->len; b++)
			assert_int_equal(tx->payload[b], rf_byte(cookie, i * RF_MTU + b));
		assert_int_equal(tx->cookie, cookie);
		if (first && write) {
			assert_fields(*pkt, va, RF_RADDR, rkey, RF_RKEY, dmalen, len);
		}
		if (last)
			assert_int_equal(pkt->imm, 0x01020304);
		assert_int_equal((pkt->flags & BB_ROCE_ACKREQ) != 0, last && type == BB_ROCE_RC);
		assert_int_equal((pkt->flags & BB_ROCE_SE) != 0,
				 last && kinds[k].kind != BB_ROCE_MSG_WRITE);
	}
}

T_OWN_RF(test_message_splits_into_packets_of_the_mtu)
{
	static const uint32_t lens[] = {0, 1, RF_MTU - 1, RF_MTU, RF_MTU + 1, 3 * RF_MTU, 1000};
	uint32_t psn;

	for (uint32_t uc = 0; uc < 2; uc++) {
		rf_init(f, uc ? BB_ROCE_UC : BB_ROCE_RC);
		f->attr.sq_psn = psn = 0xfffff0; /* wraps within the test */
		rf_start(f);
		for (uint32_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			if (uc && !kinds[k].uc)
				continue;
			for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
				rf_post(f, kinds[k].kind, lens[i], BB_ROCE_SOLICITED);
				rf_run(f);
				check_message(f, k, lens[i], psn, f->posted - 1);
				psn += packets_of(lens[i]);
				if (!uc)
					rf_ack(f, psn - 1, RF_ACK);
				rf_expect_idle(f);
			}
		}
	}
	assert_true(psn > BB_ROCE_PSN_MASK);
}

T_BEGUN(test_unsolicited_send_has_no_solicited_bit)
{
	rf_post(f, BB_ROCE_MSG_SEND, 10, 0);
	rf_run(f);
	assert_int_equal(rf_expect(f, BB_ROCE_SEND_ONLY, RF_PSN)->flags & BB_ROCE_SE, 0);
}

T_BEGUN(test_atomic_packets_have_their_operands)
{
	const struct bb_roce_pkt *pkt;

	rf_post(f, BB_ROCE_MSG_CMP_SWAP, 8, 0);
	rf_post(f, BB_ROCE_MSG_FETCH_ADD, 8, 0);
	rf_run(f);
	pkt = rf_expect(f, BB_ROCE_CMP_SWAP, RF_PSN);
	assert_fields(*pkt, swap_add, 7, compare, 8, va, RF_RADDR, rkey, RF_RKEY, len, 0);
	pkt = rf_expect(f, BB_ROCE_FETCH_ADD, RF_PSN + 1);
	assert_fields(*pkt, swap_add, 7, compare, 0);
}

/*
 * At most window packets are outstanding. The last one that fits requests an acknowledgement, as
 * do some before it.
 */
T_RF(BB_ROCE_RC, test_window_bounds_outstanding_packets)
{
	uint32_t i, una = RF_PSN, asked = 0;

	f->attr.window = 8;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_WRITE, 100 * RF_MTU, 0);
	assert_int_equal(rf_run(f), 8);
	assert_false(bb_roce_busy(&f->qp));
	for (i = 0; i < 8; i++)
		asked += (rf_next(f)->pkt.flags & BB_ROCE_ACKREQ) != 0;
	assert_int_equal(asked, 4);
	assert_int_not_equal(f->tx[7].pkt.flags & BB_ROCE_ACKREQ, 0);
	for (i = 1; i < 8; i++) {
		una += i;
		rf_ack(f, una - 1, RF_ACK);
		assert_true(bb_roce_busy(&f->qp));
		assert_int_equal(rf_run(f), i);
		assert_int_equal(f->tx[f->ntx - 1].pkt.psn, una + 7);
		assert_int_not_equal(f->tx[f->ntx - 1].pkt.flags & BB_ROCE_ACKREQ, 0);
	}
	/* The window also ends between messages. */
	rf_init(f, BB_ROCE_RC);
	f->attr.window = 3;
	rf_start(f);
	for (i = 0; i < 5; i++)
		rf_post(f, BB_ROCE_MSG_SEND, 1, 0);
	assert_int_equal(rf_run(f), 3);
	rf_ack(f, RF_PSN, RF_ACK);
	assert_int_equal(rf_run(f), 1);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	assert_int_equal(rf_run(f), 1);
	f->seen = f->ntx;
	rf_ack(f, RF_PSN + 4, RF_ACK);
	rf_expect_idle(f);
}

static void
expect_read(struct rf *f, uint32_t psn, uint64_t off, uint32_t len)
{
	const struct bb_roce_pkt *pkt = rf_expect(f, BB_ROCE_READ_REQUEST, psn);

	assert_fields(*pkt, va, RF_RADDR + off, dmalen, len, rkey, RF_RKEY, len, 0);
}

/* A READ takes the PSNs of its response and is requested in parts that fit the window. */
T_RF(BB_ROCE_RC, test_read_is_requested_in_parts_of_the_window)
{
	f->attr.window = 8;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_READ, 0, 0);
	rf_post(f, BB_ROCE_MSG_READ, 2 * RF_MTU, 0);
	rf_post(f, BB_ROCE_MSG_READ, 9 * RF_MTU + 1, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(f);
	expect_read(f, RF_PSN, 0, 0);
	expect_read(f, RF_PSN + 1, 0, 2 * RF_MTU);
	expect_read(f, RF_PSN + 3, 0, 4 * RF_MTU);
	rf_expect_none(f); /* 7 of 8 PSNs are in use, the next part needs 4 */
	assert_false(bb_roce_busy(&f->qp));
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN, 0, 0, 0);
	rf_data(f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 1, 1, 0, RF_MTU);
	assert_int_equal(rf_run(f), 0);
	rf_data(f, BB_ROCE_READ_RESP_LAST, RF_PSN + 2, 1, RF_MTU, RF_MTU);
	rf_run(f);
	expect_read(f, RF_PSN + 7, 4 * RF_MTU, 4 * RF_MTU);
	rf_data(f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 3, 2, 0, RF_MTU);
	rf_data(f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 4, 2, RF_MTU, RF_MTU);
	rf_run(f);
	expect_read(f, RF_PSN + 11, 8 * RF_MTU, RF_MTU + 1);
	rf_expect_none(f);
	rf_data(f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 5, 2, 2 * RF_MTU, RF_MTU);
	rf_run(f);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 13);
	rf_data(f, BB_ROCE_READ_RESP_LAST, RF_PSN + 6, 2, 3 * RF_MTU, RF_MTU);
	for (uint32_t i = 0; i < 4; i++)
		rf_data(f,
			(uint8_t)(i == 0   ? BB_ROCE_READ_RESP_FIRST
				  : i == 3 ? BB_ROCE_READ_RESP_LAST
					   : BB_ROCE_READ_RESP_MIDDLE),
			RF_PSN + 7 + i, 2, (4 + i) * RF_MTU, RF_MTU);
	rf_expect_done(f, 0, 2, 0);
	rf_data(f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 11, 2, 8 * RF_MTU, RF_MTU);
	rf_data(f, BB_ROCE_READ_RESP_LAST, RF_PSN + 12, 2, 9 * RF_MTU, 1);
	rf_expect_done(f, 0, 3, 0);
	rf_ack(f, RF_PSN + 13, RF_ACK);
	rf_expect_idle(f);
}

/*
 * 2 GiB at the smallest MTU needs as many PSNs as can be distinguished: fewer are outstanding at
 * once.
 */
T_RF(BB_ROCE_RC, test_longest_read_never_exceeds_the_psn_space)
{
	const uint32_t part = BB_ROCE_MAX_WINDOW / 2;
	const struct bb_roce_pkt *pkt;

	f->attr.window = BB_ROCE_MAX_WINDOW;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_READ, 1u << 31, 0);
	rf_post(f, BB_ROCE_MSG_READ, 1, 0);
	rf_run(f);
	expect_read(f, RF_PSN, 0, part * RF_MTU);
	expect_read(f, RF_PSN + part, (uint64_t)part * RF_MTU, part * RF_MTU);
	rf_expect_none(f);
	f->blind = true;
	for (uint32_t i = 0; i < 4 * part; i++) {
		uint8_t op = i % part == 0          ? BB_ROCE_READ_RESP_FIRST
			     : i % part == part - 1 ? BB_ROCE_READ_RESP_LAST
						    : BB_ROCE_READ_RESP_MIDDLE;

		rf_rx(f, op, RF_PSN + i,
		      (struct bb_roce_pkt){.len = RF_MTU, .payload = f->scratch});
		rf_run(f);
	}
	rf_expect_done(f, 0, 1, 0);
	expect_read(f, RF_PSN + 2 * part, UINT64_C(1) << 30, part * RF_MTU);
	expect_read(f, RF_PSN + 3 * part, UINT64_C(3) << 29, part * RF_MTU);
	pkt = rf_expect(f, BB_ROCE_READ_REQUEST, RF_PSN + 4 * part);
	assert_int_equal(pkt->dmalen, 1);
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 4 * part, 1, 0, 1);
	rf_expect_idle(f);
	/* One request asks for at most 2 GiB. */
	rf_init(f, BB_ROCE_RC);
	f->attr.window = BB_ROCE_MAX_WINDOW;
	f->attr.mtu = 4096;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_READ, 1u << 31, 0);
	rf_run(f);
	assert_int_equal(rf_next(f)->pkt.dmalen, 1u << 31);
}

T_RF(BB_ROCE_RC, test_reads_and_atomics_wait_for_their_limit)
{
	f->attr.max_rd_atomic = 2;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_FETCH_ADD, 8, 0);
	rf_post(f, BB_ROCE_MSG_READ, 1, 0);
	rf_post(f, BB_ROCE_MSG_CMP_SWAP, 8, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 8, 0);
	assert_int_equal(rf_run(f), 2);
	assert_false(bb_roce_busy(&f->qp));
	rf_rx(f, BB_ROCE_ATOMIC_ACK, RF_PSN, (struct bb_roce_pkt){.syndrome = RF_ACK, .orig = 5});
	assert_int_equal(f->orig, 5);
	assert_int_equal(rf_run(f), 2);
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 1, 0, 1);
	rf_rx(f, BB_ROCE_ATOMIC_ACK, RF_PSN + 2, (struct bb_roce_pkt){.syndrome = RF_ACK});
	rf_expect_done(f, 0, 3, 0);
	/* With a limit of one, the next part of a READ waits for the previous one. */
	rf_init(f, BB_ROCE_RC);
	f->attr.max_rd_atomic = 1;
	f->attr.window = 4;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_READ, 4 * RF_MTU + 1, 0);
	assert_int_equal(rf_run(f), 1);
	expect_read(f, RF_PSN, 0, 4 * RF_MTU);
	rf_data(f, BB_ROCE_READ_RESP_FIRST, RF_PSN, 0, 0, RF_MTU);
	rf_data(f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 1, 0, RF_MTU, RF_MTU);
	rf_data(f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 2, 0, 2 * RF_MTU, RF_MTU);
	assert_int_equal(rf_run(f), 0);
	rf_data(f, BB_ROCE_READ_RESP_LAST, RF_PSN + 3, 0, 3 * RF_MTU, RF_MTU);
	rf_run(f);
	expect_read(f, RF_PSN + 4, 4 * RF_MTU, 1);
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 4, 0, 4 * RF_MTU, 1);
	rf_expect_idle(f);
}

/* The peer accepts no READs: they fail instead of staying queued forever. */
T_RF(BB_ROCE_RC, test_read_to_a_peer_that_accepts_none_fails)
{
	f->attr.max_rd_atomic = 0;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(f, BB_ROCE_MSG_READ, 1, 0);
	assert_int_equal(rf_run(f), 1);
	rf_ack(f, RF_PSN, RF_ACK);
	rf_expect_failed(f, 0, 1, BB_SYN_LOCAL_QP_OP);
}

T_BEGUN(test_fence_waits_for_reads_and_atomics)
{
	rf_post(f, BB_ROCE_MSG_READ, 1, 0);
	rf_post(f, BB_ROCE_MSG_FETCH_ADD, 8, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, BB_ROCE_FENCE);
	assert_int_equal(rf_run(f), 3);
	assert_false(bb_roce_busy(&f->qp));
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN, 0, 0, 1);
	assert_int_equal(rf_run(f), 0);
	rf_rx(f, BB_ROCE_ATOMIC_ACK, RF_PSN + 1, (struct bb_roce_pkt){.syndrome = RF_ACK});
	/* The preceding WRITE need not be acknowledged. */
	rf_expect_done(f, 0, 2, 0);
	assert_int_equal(rf_run(f), 1);
	/* A fenced READ of several parts does not wait for its own parts. */
	rf_init(f, BB_ROCE_RC);
	f->attr.window = 8;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_READ, 8 * RF_MTU, BB_ROCE_FENCE);
	assert_int_equal(rf_run(f), 2);
}

/* When the port is full, no packet is lost or sent twice. */
T_BEGUN(test_full_port_loses_and_repeats_no_packet)
{
	f->room = 0;
	rf_post(f, BB_ROCE_MSG_WRITE, 3 * RF_MTU, BB_ROCE_SOLICITED);
	rf_post(f, BB_ROCE_MSG_READ, 3 * RF_MTU, 0);
	rf_post(f, BB_ROCE_MSG_SEND, 3 * RF_MTU, BB_ROCE_SOLICITED);
	for (uint32_t i = 0; i < 7; i++) {
		assert_int_equal(rf_run(f), 0);
		assert_true(bb_roce_busy(&f->qp));
		assert_int_equal(rf_run(f), 0);
		f->room = 1;
		assert_int_equal(rf_run(f), 1);
	}
	assert_false(bb_roce_busy(&f->qp));
	check_message(f, 3, 3 * RF_MTU, RF_PSN, 0);
	expect_read(f, RF_PSN + 3, 0, 3 * RF_MTU);
	check_message(f, 0, 3 * RF_MTU, RF_PSN + 6, 2);
	assert_fields(f->qp.stats, tx_packets, 7, retransmitted, 0);
}

/* A payload that cannot be read: the message fails, those before it succeed. */
T_OWN_RF(test_unreadable_payload_fails_its_message_alone)
{
	for (uint32_t at = 0; at < 3; at++) {
		rf_init(f, BB_ROCE_RC);
		rf_start(f);
		f->bad_cookie = at;
		f->bad = BB_SYN_LOCAL_PROT;
		rf_post(f, BB_ROCE_MSG_WRITE, RF_MTU, 0);
		rf_post(f, BB_ROCE_MSG_WRITE, RF_MTU, 0);
		rf_post(f, BB_ROCE_MSG_WRITE, RF_MTU, 0);
		/* The packets before it had no AckReq: they are sent once more with it. */
		assert_int_equal(rf_run(f), 2 * at);
		if (at > 0) {
			assert_int_equal(f->tx[at - 1].pkt.flags & BB_ROCE_ACKREQ, 0);
			assert_int_not_equal(f->tx[2 * at - 1].pkt.flags & BB_ROCE_ACKREQ, 0);
			/* They are sent again if they get lost. */
			assert_false(bb_roce_busy(&f->qp));
			f->now = bb_roce_deadline(&f->qp);
			bb_roce_tick(&f->qp, f->now);
			assert_int_equal(rf_run(f), at);
			assert_int_equal(f->ndone, 0);
			rf_ack(f, RF_PSN + at - 1, RF_ACK);
		}
		rf_expect_failed(f, 0, at, BB_SYN_LOCAL_PROT);
	}
	/* In the middle of a message. */
	rf_init(f, BB_ROCE_UC);
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_SEND, 2 * RF_MTU, 0);
	assert_int_equal(bb_roce_run(&f->qp, 1, 0), 1);
	f->bad = BB_SYN_LOCAL_LENGTH;
	rf_run(f);
	rf_expect_failed(f, 0, 0, BB_SYN_LOCAL_LENGTH);
}

T_RF(BB_ROCE_UC, test_uc_message_completes_when_sent)
{
	f->attr.window = 0;
	rf_start(f);
	for (uint32_t i = 0; i < 10; i++)
		rf_post(f, BB_ROCE_MSG_WRITE, 100 * RF_MTU, BB_ROCE_FENCE);
	f->room = 199;
	rf_run(f);
	rf_expect_done(f, 0, 1, 0);
	f->room = 1;
	rf_run(f);
	rf_expect_done(f, 0, 2, 0);
	assert_int_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
	f->room = UINT32_MAX;
	rf_run(f);
	assert_int_equal(f->ntx, 1000);
	f->seen = f->ntx;
	rf_expect_idle(f);
}

/* AETH credits (9.7.7.2 table 46): number of SENDs that may follow the last completed message. */
T_OWN_RF(test_credits_bound_sends_past_the_last_completion)
{
	static const uint32_t table[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24};

	for (uint32_t code = 0; code < 10; code++) {
		uint32_t more;

		rf_init(f, BB_ROCE_RC);
		rf_start(f);
		rf_post(f, BB_ROCE_MSG_SEND, 1, 0);
		assert_int_equal(rf_run(f), 1);
		rf_rx(f, BB_ROCE_ACK, RF_PSN,
		      (struct bb_roce_pkt){.syndrome = (uint8_t)code, .msn = 1});
		for (uint32_t i = 0; i < 30; i++)
			rf_post(f, BB_ROCE_MSG_SEND_IMM, 1, 0);
		/* With no credit one SEND is sent, and requests an acknowledgement. */
		more = table[code] == 0 ? 1 : table[code];
		assert_int_equal(rf_run(f), more);
		assert_false(bb_roce_busy(&f->qp));
		assert_int_not_equal(f->tx[f->ntx - 1].pkt.flags & BB_ROCE_ACKREQ, 0);
		/* The peer stopped counting credits. */
		rf_rx(f, BB_ROCE_ACK, RF_PSN + 1,
		      (struct bb_roce_pkt){.syndrome = RF_ACK, .msn = 2});
		assert_int_equal(rf_run(f), 30 - more);
	}
}

/* Receives an ACK of @psn with MSN and credit. */
static void
credit(struct rf *f, uint32_t psn, uint32_t msn, uint8_t code)
{
	rf_rx(f, BB_ROCE_ACK, psn, (struct bb_roce_pkt){.syndrome = code, .msn = msn});
}

T_RF(BB_ROCE_RC, test_only_sends_use_credits)
{
	f->attr.window = 8;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_SEND, 1, 0);
	rf_run(f);
	credit(f, RF_PSN, 1, 0);
	/*
	 * WRITEs, READs and atomics need no credit; each request of a READ counts as the peer
	 * counts it.
	 */
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);              /* MSN 2 */
	rf_post(f, BB_ROCE_MSG_READ, 5 * RF_MTU, 0);      /* MSNs 3 and 4 */
	rf_post(f, BB_ROCE_MSG_FETCH_ADD, 8, 0);          /* MSN 5 */
	rf_post(f, BB_ROCE_MSG_SEND, 3 * RF_MTU, 0);      /* MSN 6 */
	rf_post(f, BB_ROCE_MSG_WRITE_IMM, 3 * RF_MTU, 0); /* MSN 7 */
	rf_post(f, BB_ROCE_MSG_SEND_INV, 1, 0);           /* MSN 8 */
	assert_int_equal(rf_run(f), 4);
	credit(f, RF_PSN + 1, 2, 0);
	assert_int_equal(rf_run(f), 0);
	for (uint32_t i = 0; i < 5; i++)
		rf_data(f,
			(uint8_t)(i == 0   ? BB_ROCE_READ_RESP_FIRST
				  : i == 3 ? BB_ROCE_READ_RESP_LAST
				  : i == 4 ? BB_ROCE_READ_RESP_ONLY
					   : BB_ROCE_READ_RESP_MIDDLE),
			RF_PSN + 2 + i, 2, i * RF_MTU, RF_MTU);
	rf_expect_done(f, 0, 3, 0);
	/* The atomic's answer grants one credit: the whole SEND is sent, nothing after it. */
	rf_rx(f, BB_ROCE_ATOMIC_ACK, RF_PSN + 7, (struct bb_roce_pkt){.syndrome = 1, .msn = 5});
	assert_int_equal(rf_run(f), 3);
	assert_false(bb_roce_busy(&f->qp));
	/* A late answer with fewer credits changes nothing; neither does this one. */
	credit(f, RF_PSN + 7, 1, 0);
	credit(f, RF_PSN + 10, 6, 0);
	/*
	 * Out of credits: a WRITE with immediate is sent whole, of a SEND the first packet only.
	 */
	assert_int_equal(rf_run(f), 3);
	assert_false(bb_roce_busy(&f->qp));
	credit(f, RF_PSN + 13, 7, 0);
	rf_post(f, BB_ROCE_MSG_SEND, 3 * RF_MTU, 0); /* MSN 9 */
	assert_int_equal(rf_run(f), 1);
	credit(f, RF_PSN + 14, 8, 0);
	assert_int_equal(rf_run(f), 1);
	assert_int_equal(f->tx[f->ntx - 1].pkt.opcode, BB_ROCE_SEND_FIRST);
	assert_int_not_equal(f->tx[f->ntx - 1].pkt.flags & BB_ROCE_ACKREQ, 0);
	/* The SEND had a receive: its other packets need no credit. */
	credit(f, RF_PSN + 15, 8, 0);
	assert_int_equal(rf_run(f), 2);
	credit(f, RF_PSN + 17, 9, 0);
	/* Credits may arrive unsolicited. */
	for (uint32_t i = 0; i < 5; i++)
		rf_post(f, BB_ROCE_MSG_SEND, 1, 0); /* MSNs 10 to 14 */
	assert_int_equal(rf_run(f), 1);
	credit(f, RF_PSN + 17, 9, 3);
	credit(f, RF_PSN + 17, 9, 0); /* late */
	assert_int_equal(rf_run(f), 2);
	assert_int_equal(f->qp.stats.drop_ghost, 0);
}

TEST_MAIN(0)
