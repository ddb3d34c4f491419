/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Selective repeat at the requester: what the timers do, and losses without a NAK. */
#include "roce_selective_repeat_fake.h"

#define FLOOR (100 * RF_US)

/* Measures a round trip of 1 us. */
static void
begin_near(struct rf *f)
{
	begin(f, FLOOR);
	for (uint32_t i = 0; i < 50; i++) {
		rf_writes(f, 1);
		f->now += RF_US;
		rf_ack(f, f->qp.req.una, RF_ACK);
	}
}

/* A timer repeats one packet only if the peer keeps packets; then it is short. */
T_OWN_RF(test_timer_repeats_one_packet_only_for_a_keeping_peer)
{
	uint32_t i, psn;

	begin_near(f);
	psn = f->qp.req.una;
	rf_writes(f, 3);
	assert_int_equal(bb_roce_deadline(&f->qp), f->now + FLOOR);
	rf_timeout(f);
	all_again(f, psn, 3);
	rf_ack(f, psn + 2, RF_ACK);
	assert_false(f->qp.req.peer_stores);

	keep(f);
	psn = f->qp.req.una;
	rf_writes(f, 3);
	assert_int_equal(bb_roce_deadline(&f->qp), f->now + BB_ROCE_ADAPTIVE);
	rf_timeout(f);
	assert_int_equal(f->qp.req.retries, 7);
	alone(f, BB_ROCE_WRITE_ONLY, psn);
	/* The next timeout is twice as long. */
	assert_int_equal(bb_roce_deadline(&f->qp), f->now + 2 * BB_ROCE_ADAPTIVE);
	rf_timeout(f);
	row(f, BB_ROCE_WRITE_ONLY, psn, 2);
	rf_ack(f, psn + 2, RF_ACK);
	rf_expect_idle(f);
	/* The long timeout is for a peer that became slow; a NAK shows that it is not. */
	psn = f->qp.req.una;
	rf_writes(f, 5);
	rf_timeout(f);
	alone(f, BB_ROCE_WRITE_ONLY, psn);
	rf_timeout(f);
	row(f, BB_ROCE_WRITE_ONLY, psn, 2);
	assert_true(bb_roce_deadline(&f->qp) >= f->now + 4 * BB_ROCE_ADAPTIVE);
	lost(f, psn + 1);
	alone(f, BB_ROCE_WRITE_ONLY, psn + 1);
	assert_int_equal(bb_roce_deadline(&f->qp), f->now + BB_ROCE_ADAPTIVE);
	rf_ack(f, psn + 4, RF_ACK);
	rf_expect_idle(f);
	psn += 2;
	/*
	 * An ACK of the first packet shows that all were lost: all are sent again. The peer may
	 * still keep packets.
	 */
	i = (uint32_t)f->qp.req.attempts_left;
	rf_writes(f, 3);
	rf_timeout(f);
	alone(f, BB_ROCE_WRITE_ONLY, psn + 3);
	rf_ack(f, psn + 3, RF_ACK);
	all_again(f, psn + 4, 2);
	assert_true(f->qp.req.peer_stores);
	assert_int_equal(f->qp.req.attempts_left, i);
	rf_ack(f, psn + 5, RF_ACK);
	rf_expect_idle(f);
	/* The ack timeout sends all again at once. */
	rf_writes(f, 3);
	f->now = f->qp.req.deadline;
	bb_roce_tick(&f->qp, f->now);
	assert_int_equal(f->qp.stats.ack_timeout, 1);
	all_again(f, psn + 6, 3);
}

static enum bb_roce_kind
kind_of(char c)
{
	return c == 'W' ? BB_ROCE_MSG_WRITE : c == 'R' ? BB_ROCE_MSG_READ : BB_ROCE_MSG_FETCH_ADD;
}

/*
 * The early timer is only for a repeat of one packet. A READ or an atomic is requested again with
 * everything after it, and the peer answers all of it again. So it waits as long as with a peer
 * that drops packets.
 */
T_OWN_RF(test_early_timer_serves_only_single_packets)
{
	static const char *const kinds[] = {"WWWW", "WRRR", "W", "RRRR", "RWWW", "AWWW", "R"};
	uint32_t k;

	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		bool is_early = kinds[i][0] == 'W';

		begin_near(f);
		keep(f);
		for (k = 0; kinds[i][k] != '\0'; k++)
			rf_post(f, kind_of(kinds[i][k]), 8, 0);
		assert_int_equal(rf_run(f), k);
		assert_int_equal(f->qp.req.rto.deadline,
				 f->now + (is_early ? BB_ROCE_ADAPTIVE : FLOOR));
		bb_roce_tick(&f->qp, f->now + BB_ROCE_ADAPTIVE);
		assert_int_equal(rf_run(f), is_early);
	}
	/* The kind of the oldest outstanding message decides. */
	begin_near(f);
	keep(f);
	rf_post(f, BB_ROCE_MSG_WRITE, 8, 0);
	rf_post(f, BB_ROCE_MSG_READ, 8, 0);
	rf_run(f);
	rf_ack(f, f->qp.req.una, RF_ACK);
	assert_int_equal(f->qp.req.rto.deadline, f->now + FLOOR);
	/* While the requester goes back, few packets have been sent again. */
	begin_near(f);
	keep(f);
	rf_writes(f, 4);
	bb_roce_req_rewind(&f->qp);
	f->room = 2;
	assert_int_equal(rf_run(f), 2);
	assert_int_equal(f->qp.req.rto.deadline, f->now + BB_ROCE_ADAPTIVE);
}

/*
 * The answer to a repeated packet measures the round trip. Where packets are always lost it is
 * the only measurement.
 */
T_BEGIN(BB_ROCE_ADAPTIVE, test_answer_to_a_repeat_measures_the_round_trip)
{
	rf_writes(f, 8);
	f->now += 10 * RF_US;
	lost(f, RF_PSN);
	alone(f, BB_ROCE_WRITE_ONLY, RF_PSN);
	assert_int_equal(f->qp.req.rto.srtt, 0);
	f->now += 20 * RF_US;
	lost(f, RF_PSN + 3);
	assert_int_equal(f->qp.req.rto.srtt, 20 * RF_US);
	row(f, BB_ROCE_WRITE_ONLY, RF_PSN + 3, 2);
	assert_int_equal(bb_roce_deadline(&f->qp), f->now + 30 * RF_US);
	/* A repeat by timer is not measured: the answer may belong to the first copy. */
	rf_timeout(f);
	row(f, BB_ROCE_WRITE_ONLY, RF_PSN + 3, 4);
	f->now += RF_US;
	rf_ack(f, RF_PSN + 7, RF_ACK);
	assert_int_equal(f->qp.req.rto.srtt, 20 * RF_US);
	rf_expect_idle(f);
}

/* Packets that requested no answer, and a repeated one that does: the timer runs for it. */
T_BEGIN(BB_ROCE_ADAPTIVE, test_timer_runs_for_a_repeat_that_requests_an_answer)
{
	rf_post(f, BB_ROCE_MSG_SEND, 8 * RF_MTU, 0);
	f->room = 3;
	assert_int_equal(rf_run(f), 3);
	f->seen = f->ntx;
	assert_int_equal(f->qp.req.rto.deadline, UINT64_MAX);
	f->room = 1;
	lost(f, RF_PSN + 1);
	assert_int_equal(rf_run(f), 1);
	rf_expect(f, BB_ROCE_SEND_MIDDLE, RF_PSN + 1);
	assert_fields(f->qp.req, rto.deadline, f->now + 1000 * RF_US, no_ack_req, 3);
}

/*
 * An ACK that ends before packets sent ahead of the repeated one. If the peer keeps packets, then
 * the next packet is missing too, and its NAK was lost.
 */
T_BEGIN(BB_ROCE_ADAPTIVE, test_ack_before_kept_packets_repeats_the_next_one)
{
	uint32_t psn;

	keep(f);
	psn = f->qp.req.una;
	rf_writes(f, 8);
	rf_timeout(f);
	alone(f, BB_ROCE_WRITE_ONLY, psn);
	rf_ack(f, psn + 2, RF_ACK);
	row(f, BB_ROCE_WRITE_ONLY, psn + 3, 2);
	/* The NAK arrives late. */
	lost(f, psn + 3);
	assert_int_equal(rf_run(f), 0);
	assert_int_equal(f->qp.req.retries, 7);
	rf_ack(f, psn + 5, RF_ACK);
	row(f, BB_ROCE_WRITE_ONLY, psn + 6, 2);
	/* Packets after the last repeated one are new. */
	rf_writes(f, 4);
	rf_ack(f, psn + 7, RF_ACK);
	assert_int_equal(rf_run(f), 0);
	assert_int_equal(f->qp.req.una, psn + 8);
	rf_ack(f, psn + 11, RF_ACK);
	rf_expect_idle(f);
	assert_int_equal(f->qp.stats.roce_adp_retrans, 1);
}

/*
 * Without a timer an ignored NAK or a lost answer would stall the queue pair. So all is sent
 * again, and each lost packet has a NAK of its own.
 */
T_RF(BB_ROCE_RC, test_without_a_timer_all_is_sent_again)
{
	f->attr.selective = true;
	f->attr.ack_timeout = 0;
	rf_start(f);
	rf_writes(f, 4);
	lost(f, RF_PSN + 1);
	all_again(f, RF_PSN + 1, 3);
	rf_ack(f, RF_PSN + 1, RF_ACK);
	lost(f, RF_PSN + 2);
	all_again(f, RF_PSN + 2, 2);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	rf_expect_idle(f);
	/* One of the two timers is enough. */
	rf_init(f, BB_ROCE_RC);
	f->attr.selective = true;
	f->attr.ack_timeout = 0;
	f->attr.adaptive = BB_ROCE_ADAPTIVE;
	rf_start(f);
	rf_writes(f, 4);
	lost(f, RF_PSN + 1);
	alone(f, BB_ROCE_WRITE_ONLY, RF_PSN + 1);
}

TEST_MAIN(0)
