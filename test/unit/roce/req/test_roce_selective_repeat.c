/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Selective repeat at the requester: which packets are sent again after a loss, and how it
 * concludes from answers what the peer keeps.
 */
#include "bb_roce_short.h"
#include "roce_selective_repeat_fake.h"

#define ATTEMPTS         3
#define ATTEMPTS_STORING 12
#define HOLD_OFF         64

/* One packet, the newest one, and new packets after it; the peer kept the others. */
T_BEGIN(0, test_peer_that_keeps_packets_gets_only_the_lost_one)
{
	rf_writes(f, 5);
	lost(f, RF_PSN + 1);
	rf_expect_done(f, 0, 1, 0);
	assert_int_equal(f->qp.stats.packet_seq_err, 1);
	assert_int_equal(bb_roce_short_room(&f->qp), 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	assert_int_equal(rf_run(f), 4);
	assert_int_equal(f->tx[f->seen].cookie, 1);
	assert_true(rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 1)->flags & BB_ROCE_ACKREQ);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 4);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 5);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 6);
	rf_expect_none(f);
	assert_int_equal(f->qp.stats.retransmitted, 2);
	assert_int_not_equal(bb_roce_short_room(&f->qp), 0);
	/* A packet that was only late proves nothing. */
	lost(f, RF_PSN + 1);
	assert_int_equal(rf_run(f), 0);
	assert_false(f->qp.req.peer_stores);
	rf_ack(f, RF_PSN + 4, RF_ACK);
	assert_true(f->qp.req.peer_stores);
	assert_int_equal(rf_run(f), 0);
	rf_ack(f, RF_PSN + 6, RF_ACK);
	rf_expect_idle(f);
	assert_int_equal(f->qp.stats.packet_seq_err, 1);
}

T_OWN_RF(test_any_packet_is_repeated_with_its_own_headers)
{
	static const uint8_t sends[] = {BB_ROCE_SEND_FIRST, BB_ROCE_SEND_MIDDLE,
					BB_ROCE_SEND_MIDDLE, BB_ROCE_SEND_LAST_IMM};
	static const uint8_t writes[] = {BB_ROCE_WRITE_FIRST, BB_ROCE_WRITE_MIDDLE,
					 BB_ROCE_WRITE_MIDDLE, BB_ROCE_WRITE_LAST};
	const uint32_t len = 3 * RF_MTU + 17;
	const struct rf_tx *tx;

	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < 4; i++) {
			rf_init(f, BB_ROCE_RC);
			f->attr.selective = true;
			f->attr.sq_psn = BB_ROCE_PSN_MASK - 2; /* the fourth packet wraps */
			rf_start(f);
			rf_writes(f, 1);
			rf_post(f, k == 0 ? BB_ROCE_MSG_SEND_IMM : BB_ROCE_MSG_WRITE, len,
				BB_ROCE_SOLICITED);
			rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
			assert_int_equal(rf_run(f), 5);
			f->seen = f->ntx;
			lost(f, f->attr.sq_psn + 1 + i);
			tx = alone(f, k == 0 ? sends[i] : writes[i], f->attr.sq_psn + 1 + i);
			check_payload(tx, 1, i * RF_MTU, i == 3 ? 17 : RF_MTU);
			assert_int_equal(tx->pkt.flags & BB_ROCE_SE,
					 k == 0 && i == 3 ? BB_ROCE_SE : 0);
			if (k == 0 && i == 3)
				assert_int_equal(tx->pkt.imm, 0x01020304);
			if (k == 1 && i == 0) {
				assert_fields(tx->pkt, va, RF_RADDR, rkey, RF_RKEY, dmalen, len);
			}
			rf_ack(f, f->attr.sq_psn + 5, RF_ACK);
			rf_expect_idle(f);
		}
}

/*
 * Only the repeated packet is acknowledged: all packets after it are sent again. Later answers of
 * that kind are stale.
 */
T_BEGIN(0, test_peer_that_drops_packets_gets_all_again)
{
	rf_writes(f, 5);
	lost(f, RF_PSN + 1);
	alone(f, BB_ROCE_WRITE_ONLY, RF_PSN + 1);
	rf_ack(f, RF_PSN + 1, RF_ACK);
	assert_false(f->qp.req.peer_stores);
	assert_int_equal(f->qp.req.attempts_left, ATTEMPTS - 1);
	lost(f, RF_PSN + 2);
	all_again(f, RF_PSN + 2, 3);
	lost(f, RF_PSN + 2);
	assert_int_equal(rf_run(f), 0);
	assert_int_equal(f->qp.stats.packet_seq_err, 1);
	/* A packet lost after a repeat of all proves nothing about what the peer keeps. */
	lost(f, RF_PSN + 3);
	all_again(f, RF_PSN + 3, 2);
	rf_ack(f, RF_PSN + 4, RF_ACK);
	assert_false(f->qp.req.peer_stores);
	assert_int_equal(f->qp.req.attempts_left, ATTEMPTS - 1);
	rf_expect_idle(f);
}

/*
 * The next packet is missing too: only it is sent again. After the last packet there is nothing
 * to find out.
 */
T_BEGIN(0, test_second_loss_in_a_row_is_repeated_alone)
{
	rf_writes(f, 6);
	lost(f, RF_PSN);
	alone(f, BB_ROCE_WRITE_ONLY, RF_PSN);
	lost(f, RF_PSN + 1);
	all_again(f, RF_PSN + 1, 5);
	assert_int_equal(f->qp.req.attempts_left, ATTEMPTS - 1);
	assert_false(f->qp.req.peer_stores);
	rf_ack(f, RF_PSN + 5, RF_ACK);
	rf_writes(f, 1);
	lost(f, RF_PSN + 6);
	all_again(f, RF_PSN + 6, 1);
	rf_ack(f, RF_PSN + 6, RF_ACK);
	/* Nothing is concluded while the requester goes back, either. */
	rf_writes(f, 4);
	bb_roce_req_rewind(&f->qp);
	f->room = 2;
	all_again(f, RF_PSN + 7, 2);
	f->room = UINT32_MAX;
	lost(f, RF_PSN + 7);
	all_again(f, RF_PSN + 7, 4);
}

/*
 * In one window of a peer that keeps packets, each loss doubles the number sent again in a row.
 */
T_BEGIN(0, test_each_loss_in_a_window_doubles_the_repeats)
{
	uint32_t psn;

	keep(f);
	psn = f->qp.req.una;
	rf_writes(f, 16);
	lost(f, psn);
	alone(f, BB_ROCE_WRITE_ONLY, psn);
	lost(f, psn + 2);
	row(f, BB_ROCE_WRITE_ONLY, psn + 2, 2);
	/* The second packet of the row is still on its way. */
	rf_ack(f, psn + 2, RF_ACK);
	assert_int_equal(rf_run(f), 0);
	rf_ack(f, psn + 3, RF_ACK);
	assert_int_equal(rf_run(f), 0);
	lost(f, psn + 6);
	row(f, BB_ROCE_WRITE_ONLY, psn + 6, 4);
	/* No more packets are outstanding. */
	lost(f, psn + 11);
	row(f, BB_ROCE_WRITE_ONLY, psn + 11, 5);
	assert_true(f->qp.req.peer_stores);
	rf_ack(f, psn + 15, RF_ACK);
	rf_expect_idle(f);
	/* A new window. */
	rf_writes(f, 4);
	lost(f, psn + 16);
	alone(f, BB_ROCE_WRITE_ONLY, psn + 16);
	rf_ack(f, psn + 19, RF_ACK);
	rf_expect_idle(f);
}

/*
 * A packet of the row is lost: half as many are sent from it on, once, whatever NAKs came before.
 */
T_OWN_RF(test_loss_within_repeats_halves_them)
{
	uint32_t psn;

	for (uint32_t acked = 0; acked < 2; acked++) {
		begin(f, 0);
		keep(f);
		psn = f->qp.req.una;
		rf_writes(f, 24);
		lost(f, psn);
		alone(f, BB_ROCE_WRITE_ONLY, psn);
		lost(f, psn + 1);
		row(f, BB_ROCE_WRITE_ONLY, psn + 1, 2);
		lost(f, psn + 4);
		row(f, BB_ROCE_WRITE_ONLY, psn + 4, 4);
		lost(f, psn + 8);
		row(f, BB_ROCE_WRITE_ONLY, psn + 8, 8);
		if (acked)
			rf_ack(f, psn + 10, RF_ACK);
		assert_int_equal(rf_run(f), 0);
		lost(f, psn + 11);
		row(f, BB_ROCE_WRITE_ONLY, psn + 11, 4);
		lost(f, psn + 11);
		assert_int_equal(rf_run(f), 0);
		lost(f, psn + 14);
		row(f, BB_ROCE_WRITE_ONLY, psn + 14, 2);
		lost(f, psn + 15);
		alone(f, BB_ROCE_WRITE_ONLY, psn + 15);
		/* The window ends here. */
		lost(f, psn + 18);
		row(f, BB_ROCE_WRITE_ONLY, psn + 18, 2);
		/* Of all these losses only the second could have shown what the peer keeps. */
		assert_fields(f->qp, req.attempts_left, ATTEMPTS_STORING - 1, stats.packet_seq_err,
			      9);
		rf_ack(f, psn + 23, RF_ACK);
		rf_expect_idle(f);
	}
}

/* A row continues from message to message, up to a READ or a message whose memory is gone. */
T_OWN_RF(test_repeats_go_on_to_the_next_read)
{
	uint32_t psn;

	for (uint32_t i = 0; i < 3; i++) {
		begin(f, 0);
		keep(f);
		psn = f->qp.req.una;
		rf_writes(f, 1);
		rf_post(f, BB_ROCE_MSG_SEND, 3 * RF_MTU, 0);
		rf_post(f, i == 1 ? BB_ROCE_MSG_READ : BB_ROCE_MSG_SEND, RF_MTU, 0);
		rf_post(f, BB_ROCE_MSG_SEND, RF_MTU, 0);
		rf_run(f);
		f->seen = f->ntx;
		lost(f, psn);
		alone(f, BB_ROCE_WRITE_ONLY, psn);
		lost(f, psn + 1);
		assert_int_equal(rf_run(f), 2);
		lost(f, psn + 3);
		f->bad_cookie = f->posted - 2;
		f->bad = i == 2 ? BB_SYN_LOCAL_PROT : 0;
		assert_int_equal(rf_run(f), i == 0 ? 3 : i == 1 ? 1 : 2);
		rf_expect(f, BB_ROCE_SEND_FIRST, psn + 1);
		rf_expect(f, BB_ROCE_SEND_MIDDLE, psn + 2);
		rf_expect(f, BB_ROCE_SEND_LAST, psn + 3);
		if (i == 0) {
			rf_expect(f, BB_ROCE_SEND_ONLY, psn + 4);
			rf_expect(f, BB_ROCE_SEND_ONLY, psn + 5);
		}
		assert_int_equal(f->qp.state, BB_ROCE_RTS);
		if (i == 2) {
			lost(f, psn + 4);
			rf_run(f);
			rf_expect_failed(f, 0, 6, BB_SYN_LOCAL_PROT);
		}
	}
}

/* A peer that drops packets: ATTEMPTS repeats in vain, then one try in HOLD_OFF losses. */
T_BEGIN(0, test_dropping_peer_is_tried_again_seldom)
{
	for (uint32_t i = 0; i < ATTEMPTS; i++)
		dropped(f, true);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 1; i < HOLD_OFF; i++)
			dropped(f, false);
		dropped(f, true);
	}
	/* The peer begins to keep packets. */
	for (uint32_t i = 1; i < HOLD_OFF; i++)
		dropped(f, false);
	keep(f);
	keep(f);
	/* One failure to keep is no reason to stop. */
	for (uint32_t i = 0; i < 2 * ATTEMPTS; i++)
		dropped(f, true);
	assert_true(f->qp.req.peer_stores);
	keep(f);
	while (f->qp.req.attempts_left > 0)
		dropped(f, true);
	assert_false(f->qp.req.peer_stores);
	dropped(f, false);
}

/* A WRITE, a message of @kind and another WRITE; the first was lost. */
static void
behind(struct rf *f, enum bb_roce_kind kind)
{
	begin(f, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(f, kind, 8, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	assert_int_equal(rf_run(f), 3);
	f->seen = f->ntx;
	lost(f, RF_PSN);
	alone(f, BB_ROCE_WRITE_ONLY, RF_PSN);
}

T_OWN_RF(test_lost_read_is_requested_again_with_all_after_it)
{
	static const enum bb_roce_kind kinds[] = {BB_ROCE_MSG_READ, BB_ROCE_MSG_FETCH_ADD};

	for (uint32_t i = 0; i < 2; i++) {
		uint8_t request = i == 0 ? BB_ROCE_READ_REQUEST : BB_ROCE_FETCH_ADD;

		begin(f, 0);
		keep(f);
		rf_post(f, kinds[i], 8, 0);
		rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
		assert_int_equal(rf_run(f), 2);
		f->seen = f->ntx;
		lost(f, RF_PSN + 4);
		assert_int_equal(rf_run(f), 2);
		rf_expect(f, request, RF_PSN + 4);
		rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 5);
		rf_expect_none(f);
		assert_int_equal(f->qp.req.rd_atomic, 1);

		/* Its answer after the lost WRITE shows that the peer kept it. */
		behind(f, kinds[i]);
		assert_int_equal(f->qp.req.rd_atomic, 1);
		if (i == 0)
			rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 1, 0, 8);
		else
			rf_rx(f, BB_ROCE_ATOMIC_ACK, RF_PSN + 1,
			      (struct bb_roce_pkt){.syndrome = RF_ACK, .orig = 5});
		assert_true(f->qp.req.peer_stores);
		assert_int_equal(f->qp.req.rd_atomic, 0);
		rf_expect_done(f, 0, 2, 0);
		rf_ack(f, RF_PSN + 2, RF_ACK);
		rf_expect_idle(f);

		/* The ACK of the message after it shows the same if its answer was lost. */
		behind(f, kinds[i]);
		rf_ack(f, RF_PSN + 2, RF_ACK);
		assert_true(f->qp.req.peer_stores);
		rf_expect_done(f, 0, 1, 0);
		assert_int_equal(rf_run(f), 2);
		rf_expect(f, request, RF_PSN + 1);
		rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 2);
	}
}

T_BEGIN(0, test_repeat_waits_for_the_port_before_new_packets)
{
	rf_writes(f, 4);
	f->room = 0;
	lost(f, RF_PSN);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	assert_int_equal(rf_run(f), 0);
	assert_true(f->qp.req.run_left != 0 && bb_roce_busy(&f->qp));
	assert_int_equal(f->qp.stats.retransmitted, 0);
	assert_int_equal(bb_roce_short_room(&f->qp), 0);
	f->room = 2;
	assert_int_equal(rf_run(f), 2);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 3);
	assert_int_equal(f->qp.req.run_left, 0);
	f->room = UINT32_MAX;
	assert_int_equal(rf_run(f), 1);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 4);
	rf_ack(f, RF_PSN + 4, RF_ACK);
	/* The missing packet arrived before it could be sent again. */
	rf_writes(f, 4);
	f->room = 0;
	lost(f, RF_PSN + 5);
	assert_int_equal(rf_run(f), 0);
	rf_ack(f, RF_PSN + 8, RF_ACK);
	assert_int_equal(f->qp.req.run_left, 0);
	f->room = UINT32_MAX;
	rf_expect_idle(f);
	/* A full window does not hold back a repeat. */
	rf_init(f, BB_ROCE_RC);
	f->attr.selective = true;
	f->attr.window = 4;
	rf_start(f);
	rf_writes(f, 5);
	lost(f, RF_PSN);
	alone(f, BB_ROCE_WRITE_ONLY, RF_PSN);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	all_again(f, RF_PSN + 4, 1);
}

/* The payload of the packet is no longer accessible. */
T_BEGIN(0, test_repeat_without_payload_fails_its_message)
{
	rf_writes(f, 4);
	lost(f, RF_PSN + 1);
	f->bad = BB_SYN_LOCAL_PROT;
	f->bad_cookie = 1;
	assert_int_equal(rf_run(f), 0);
	rf_expect_failed(f, 0, 1, BB_SYN_LOCAL_PROT);
}

/* The peer has no receive: everything waits, then is sent again. */
T_BEGIN(0, test_rnr_sends_everything_again)
{
	rf_writes(f, 4);
	lost(f, RF_PSN);
	rf_ack(f, RF_PSN, BB_ROCE_AETH_RNR | 12);
	assert_int_equal(f->qp.req.run_left, 0);
	assert_int_equal(rf_run(f), 0);
	rf_timeout(f);
	all_again(f, RF_PSN, 4);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	assert_int_equal(f->qp.req.attempts_left, ATTEMPTS);
	/* An RNR NAK of the next packet: the peer kept it, else it would report it missing. */
	rf_writes(f, 4);
	lost(f, RF_PSN + 4);
	alone(f, BB_ROCE_WRITE_ONLY, RF_PSN + 4);
	rf_ack(f, RF_PSN + 5, BB_ROCE_AETH_RNR | 12);
	assert_true(f->qp.req.peer_stores);
	assert_int_equal(rf_run(f), 0);
	rf_timeout(f);
	all_again(f, RF_PSN + 5, 3);
}

/*
 * Retries are counted as without selective repeat: a NAK until the timer expires, and a timeout.
 */
T_OWN_RF(test_retries_count_as_without_selective_repeat)
{
	for (uint32_t selective = 0; selective < 2; selective++) {
		rf_init(f, BB_ROCE_RC);
		f->attr.selective = selective;
		rf_start(f);
		rf_writes(f, 3);
		for (uint32_t left = 7; left != UINT32_MAX; left -= 2) {
			assert_int_equal(f->qp.req.retries, left);
			lost(f, RF_PSN);
			/* Packets sent again by the timer may have arrived since. */
			assert_int_equal(rf_run(f), selective && left == 7 ? 2 : 3);
			lost(f, RF_PSN);
			assert_int_equal(rf_run(f), 0);
			assert_int_equal(f->qp.req.retries, left - 1);
			rf_timeout(f);
			rf_run(f);
		}
		rf_expect_failed(f, 0, 0, BB_SYN_RETRY_EXC);
	}
}

/*
 * Until the peer is known to keep packets, the newest packet shows it that this side repeats
 * selectively. The newest packet does not follow if it comes right after the lost one. It does
 * not follow either if it is a READ or an atomic, which cannot be sent alone.
 */
T_OWN_RF(test_newest_packet_follows_the_lost_one_until_the_peer_keeps)
{
	for (uint32_t kind = BB_ROCE_MSG_SEND; kind <= BB_ROCE_MSG_FETCH_ADD; kind++) {
		for (uint32_t n = 1; n < 4; n++) {
			const bool shows = n > 1 && kind < BB_ROCE_MSG_READ;

			begin(f, 0);
			rf_writes(f, n);
			rf_post(f, (enum bb_roce_kind)kind, 8, 0);
			assert_int_equal(rf_run(f), 1);
			f->seen = f->ntx;
			lost(f, RF_PSN);
			assert_int_equal(rf_run(f), 1 + shows);
			rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN);
			if (shows)
				assert_int_equal(rf_next(f)->pkt.psn, RF_PSN + n);
			rf_expect_none(f);
			/* The lost packet is in the newest message. */
			assert_int_equal(f->qp.req.run_left, 0);
			f->qp.req.peer_stores = true;
			lost(f, RF_PSN);
			assert_int_equal(rf_run(f), 0);
		}
	}
	begin(f, 0);
	rf_writes(f, 2);
	rf_post(f, BB_ROCE_MSG_SEND, 3 * RF_MTU, 0);
	f->room = 2;
	assert_int_equal(rf_run(f), 2);
	f->seen = f->ntx;
	lost(f, RF_PSN);
	f->room = 2;
	rf_run(f);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN);
	rf_expect(f, BB_ROCE_SEND_MIDDLE, RF_PSN + 3);
	f->room = UINT32_MAX;
	assert_int_equal(rf_run(f), 1);
	rf_expect(f, BB_ROCE_SEND_LAST, RF_PSN + 4);
}

/* Not enabled, or a type without answers: all is sent again as before. */
T_BEGUN(test_without_selective_repeat_all_is_sent_again)
{
	rf_writes(f, 4);
	lost(f, RF_PSN + 1);
	all_again(f, RF_PSN + 1, 3);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	assert_false(f->qp.req.peer_stores);
	rf_expect_idle(f);
	/* A peer that counts credits may need packets in order. */
	begin(f, 0);
	rf_writes(f, 1);
	rf_ack(f, RF_PSN, BB_ROCE_AETH_ACK | 20);
	assert_true(f->qp.req.credits);
	rf_writes(f, 4);
	lost(f, RF_PSN + 1);
	all_again(f, RF_PSN + 1, 4);
}

TEST_MAIN(0)
