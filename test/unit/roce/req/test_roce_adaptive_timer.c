/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Adaptive retransmission of the RoCEv2 engine: when it goes back before the ack timeout, and the
 * effects.
 */
#include "bb_roce_priv.h"
#include "roce_req_fake.h"

#define FLOOR   4000u
#define INITIAL (1000 * RF_US)
#define LONGEST (UINT64_C(4096) << 20)

static void
begin(struct rf *f, uint32_t ack_timeout)
{
	rf_init(f, BB_ROCE_RC);
	assert_int_equal(bb_roce_qp_rtr(&f->qp, &f->attr), 0);
	f->attr.adaptive = FLOOR;
	f->attr.ack_timeout = ack_timeout;
	assert_int_equal(bb_roce_qp_rts(&f->qp, &f->attr), 0);
}

#define T_BEGIN(ack_timeout, name)                                                                 \
	TEST_ON(NULL, NULL, struct rf, begin(f, ack_timeout), (void)0, name)

static uint64_t
until_deadline(const struct rf *f)
{
	return bb_roce_deadline(&f->qp) - f->now;
}

/* Posts a WRITE that is answered after @ns. */
static void
round_trip(struct rf *f, uint64_t ns)
{
	rf_writes(f, 1);
	f->now += ns;
	rf_ack(f, f->qp.req.una, RF_ACK);
	rf_expect_idle(f);
}

/* A dead peer: a limited number of early tries, and the error at the time of the ack timeouts. */
T_OWN_RF(test_dead_peer_fails_at_the_time_of_the_ack_timeouts)
{
	uint32_t early;
	uint64_t ns, start;

	for (uint32_t retries = 0; retries < 8; retries++) {
		rf_init(f, BB_ROCE_RC);
		f->attr.adaptive = FLOOR;
		f->attr.retry_cnt = retries;
		rf_start(f);
		start = f->now;
		rf_writes(f, 2);
		ns = INITIAL;
		early = 0;
		for (uint32_t tries = 0; tries <= retries; tries++) {
			uint64_t sent = f->now;

			for (uint32_t i = 0; f->now - sent + ns < RF_TIMEOUT && ns < RF_TIMEOUT;
			     i++) {
				assert_int_equal(until_deadline(f), ns);
				rf_timeout(f);
				assert_int_equal(f->qp.req.retries, retries - tries);
				assert_int_equal(f->qp.stats.roce_adp_retrans, ++early);
				assert_int_equal(rf_run(f), 2);
				rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN);
				rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 1);
				ns *= 2;
			}
			assert_int_equal(bb_roce_deadline(&f->qp), sent + RF_TIMEOUT);
			assert_int_equal(f->qp.stats.ack_timeout, tries);
			rf_timeout(f);
			if (tries < retries)
				assert_int_equal(rf_run(f), 2);
			f->seen = f->ntx;
		}
		rf_expect_failed(f, 0, 0, BB_SYN_RETRY_EXC);
		assert_int_equal(f->now - start, (retries + 1) * RF_TIMEOUT);
		assert_int_equal(early, retries == 0 ? 6 : 7);
	}
}

/* RFC 6298. One further round trip is the least spread, and the requested minimum applies. */
T_BEGIN(14, test_measured_round_trips_set_the_interval)
{
	round_trip(f, 10 * RF_US);
	rf_writes(f, 1);
	assert_int_equal(until_deadline(f), 30 * RF_US);
	f->now += 18 * RF_US;
	rf_ack(f, RF_PSN + 1, RF_ACK);
	rf_writes(f, 1); /* 11 us, plus 4 * (3 * 5 + 8) / 4 */
	assert_int_equal(until_deadline(f), 34 * RF_US);
	f->now += 3 * RF_US;
	rf_ack(f, RF_PSN + 2, RF_ACK);
	rf_writes(f, 1); /* 10 us, plus 4 * (3 * 5.75 + 8) / 4 */
	assert_int_equal(until_deadline(f), 10 * RF_US + 25248);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	for (uint32_t i = 0; i < 100; i++)
		round_trip(f, 10 * RF_US);
	rf_writes(f, 1);
	assert_in_range(until_deadline(f), 19 * RF_US, 20 * RF_US);
	rf_ack(f, f->qp.req.una, RF_ACK);
	for (uint32_t i = 0; i < 100; i++)
		round_trip(f, i % 10);
	rf_writes(f, 1);
	assert_int_equal(until_deadline(f), FLOOR);
	rf_ack(f, f->qp.req.una, RF_ACK);
	for (uint32_t i = 0; i < 100; i++)
		round_trip(f, i < 4 ? 0 : RF_TIMEOUT / 2 - 1);
	rf_writes(f, 1);
	assert_in_range(until_deadline(f), RF_TIMEOUT - 1000, RF_TIMEOUT - 1);
	rf_ack(f, f->qp.req.una, RF_ACK);
	for (uint32_t i = 0; i < 100; i++)
		round_trip(f, RF_TIMEOUT - 1);
	/*
	 * The round trip is as long as the ack timeout, which then waits twice the longest one.
	 */
	rf_writes(f, 1);
	assert_in_range(until_deadline(f), 2 * RF_TIMEOUT - 1000, 2 * RF_TIMEOUT - 2);
	rf_ack(f, f->qp.req.una, RF_ACK);
	/* At most four times the requested timeout. */
	for (uint32_t i = 0; i < 10; i++)
		round_trip(f, 5 * RF_TIMEOUT);
	rf_writes(f, 1);
	assert_int_equal(until_deadline(f), 4 * RF_TIMEOUT);
	rf_timeout(f);
	assert_fields(f->qp.stats, ack_timeout, 1, roce_adp_retrans, 0);
	assert_int_equal(rf_run(f), 1);
	rf_ack(f, f->qp.req.una, RF_ACK);
	f->seen = f->ntx;
	/* The longest wait is dropped after a while of quick answers. */
	for (uint32_t i = 0; i < 200; i++) {
		f->now += RF_TIMEOUT;
		round_trip(f, 10 * RF_US);
	}
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), RF_TIMEOUT);
}

/* A repeated packet is not timed. The interval stays doubled until a new packet is timed. */
T_BEGIN(14, test_repeated_packet_is_not_timed)
{
	round_trip(f, 10 * RF_US); /* 30 us from now on */
	rf_writes(f, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(until_deadline(f), 30 * RF_US << i);
		rf_timeout(f);
		assert_int_equal(rf_run(f), 3);
	}
	f->now += 2 * RF_US;
	rf_ack(f, RF_PSN + 1, RF_ACK);
	assert_int_equal(until_deadline(f), 240 * RF_US);
	rf_ack(f, RF_PSN + 2, RF_ACK);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	f->seen = f->ntx;
	rf_expect_idle(f);
	/* The first new packet is timed: 13 us, plus 4 * (3 * 5 + 24) / 4. */
	rf_writes(f, 1);
	rf_writes(f, 1);
	assert_int_equal(until_deadline(f), 240 * RF_US);
	f->now += 34 * RF_US;
	rf_ack(f, RF_PSN + 4, RF_ACK);
	assert_int_equal(until_deadline(f), 52 * RF_US);
	/* The next timeout doubles it, too, despite progress before it: the peer may be slow. */
	rf_timeout(f);
	assert_int_equal(rf_run(f), 1);
	rf_writes(f, 1);
	rf_ack(f, RF_PSN + 5, RF_ACK);
	assert_int_equal(until_deadline(f), 104 * RF_US);
	rf_timeout(f);
	assert_int_equal(rf_run(f), 1);
	assert_int_equal(until_deadline(f), 208 * RF_US);
}

/* The timer runs from the first packet that requests an answer, and restarts with each answer. */
T_BEGIN(14, test_each_answer_restarts_the_timer)
{
	uint64_t due;

	rf_post(f, BB_ROCE_MSG_WRITE, 20 * RF_MTU, 0);
	f->room = 15;
	assert_int_equal(rf_run(f), 15);
	assert_int_equal(until_deadline(f), RF_TIMEOUT);
	f->now += 7 * RF_US;
	f->room = 3;
	assert_int_equal(rf_run(f), 3);
	assert_int_equal(until_deadline(f), INITIAL);
	f->now += 7 * RF_US;
	rf_ack(f, RF_PSN + 15, RF_ACK); /* the two packets after it request no answer */
	assert_int_equal(until_deadline(f), RF_TIMEOUT);
	f->room = UINT32_MAX;
	assert_int_equal(rf_run(f), 2);
	assert_int_equal(until_deadline(f), 21 * RF_US);
	f->now += 7 * RF_US;
	rf_ack(f, RF_PSN + 19, RF_ACK);
	f->seen = f->ntx;
	rf_expect_idle(f);
	/* A READ: the timer restarts with the first response packet, then with each. */
	rf_post(f, BB_ROCE_MSG_READ, 20 * RF_MTU, 0);
	assert_int_equal(rf_run(f), 1);
	for (uint32_t i = 0; i < 20; i++) {
		f->now += i == 0 ? 7 * RF_US : 10 * RF_US;
		bb_roce_tick(&f->qp, f->now);
		rf_data(f,
			i == 0    ? BB_ROCE_READ_RESP_FIRST
			: i == 19 ? BB_ROCE_READ_RESP_LAST
				  : BB_ROCE_READ_RESP_MIDDLE,
			RF_PSN + 20 + i, 1, i * RF_MTU, RF_MTU);
		assert_int_equal(f->qp.req.rto.srtt, 7 * RF_US);
		if (i < 19)
			assert_in_range(until_deadline(f), 14 * RF_US, 21 * RF_US);
	}
	f->seen = f->ntx;
	rf_expect_idle(f);
	/* Packets sent later do not postpone the timeout. */
	rf_writes(f, 1);
	due = bb_roce_deadline(&f->qp);
	f->now += 5 * RF_US;
	rf_writes(f, 1);
	assert_int_equal(bb_roce_deadline(&f->qp), due);
	assert_fields(f->qp.stats, roce_adp_retrans, 0, retransmitted, 0);
}

/*
 * A NAK after the timeout is stale and uses no retry. A NAK after progress shows that packets
 * were lost.
 */
T_BEGIN(14, test_nak_after_the_timeout_uses_no_retry)
{
	round_trip(f, 10 * RF_US);
	rf_writes(f, 4);
	for (uint32_t i = 1; i <= 3; i++) {
		rf_timeout(f);
		rf_ack(f, RF_PSN + 1, RF_NAK(BB_ROCE_NAK_PSN));
		assert_int_equal(rf_run(f), 4);
		rf_ack(f, RF_PSN + 1, RF_NAK(BB_ROCE_NAK_PSN));
		assert_int_equal(rf_run(f), 0);
		assert_int_equal(f->qp.req.retries, 7);
		assert_int_equal(until_deadline(f), 30 * RF_US << i);
	}
	assert_int_equal(f->qp.stats.packet_seq_err, 0);
	rf_ack(f, RF_PSN + 2, RF_NAK(BB_ROCE_NAK_PSN));
	assert_int_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
	assert_fields(f->qp, stats.packet_seq_err, 1, req.retries, 6);
	f->now += 99 * RF_US;
	assert_int_equal(rf_run(f), 3);
	assert_int_equal(until_deadline(f), 30 * RF_US);
	f->now += RF_US;
	rf_ack(f, RF_PSN + 4, RF_ACK);
	assert_int_equal(f->qp.req.rto.srtt, 10 * RF_US); /* sent again: not timed */
}

T_BEGIN(14, test_requester_waits_after_an_rnr_nak)
{
	round_trip(f, 10 * RF_US);
	rf_post(f, BB_ROCE_MSG_SEND, 1, 0);
	rf_run(f);
	rf_ack(f, RF_PSN + 1, BB_ROCE_AETH_RNR | 31);
	assert_int_equal(until_deadline(f), 491520 * RF_US);
	rf_timeout(f);
	assert_int_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
	assert_int_equal(rf_run(f), 1);
	assert_int_equal(until_deadline(f), 30 * RF_US);
	f->now += RF_US;
	rf_ack(f, RF_PSN + 1, RF_ACK);
	f->seen = f->ntx;
	rf_expect_idle(f);
	assert_fields(f->qp, stats.roce_adp_retrans, 0, req.rto.srtt, 10 * RF_US);
}

T_BEGIN(0, test_without_an_ack_timeout_it_retries_forever)
{
	uint64_t ns = INITIAL;

	rf_writes(f, 1);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(until_deadline(f), ns);
		rf_timeout(f);
		assert_int_equal(rf_run(f), 1);
		ns = 2 * ns < LONGEST ? 2 * ns : LONGEST;
	}
	assert_int_equal(ns, LONGEST);
	assert_int_equal(f->qp.stats.ack_timeout, 0);
	rf_ack(f, RF_PSN, RF_ACK);
	f->seen = f->ntx;
	rf_expect_idle(f);
}

/* A packet is lost while the port is full: nothing is outstanding and no timer runs. */
T_BEGIN(14, test_loss_on_a_full_port_runs_no_timer)
{
	uint64_t start = f->now;

	rf_writes(f, 2);
	f->room = 0;
	rf_timeout(f);
	assert_int_equal(rf_run(f), 0);
	assert_int_equal(bb_roce_deadline(&f->qp), start + RF_TIMEOUT);
	/* It arrived after all: only the missing packets are sent again. */
	rf_ack(f, RF_PSN, RF_ACK);
	f->room = UINT32_MAX;
	assert_int_equal(rf_run(f), 1);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 1);
	assert_int_equal(until_deadline(f), 2 * INITIAL);
	rf_ack(f, RF_PSN + 1, RF_ACK);
	rf_expect_idle(f);
}

/* Makes the peer progress @ns after the wait that began at @at. */
static void
waited(struct rf *f, uint64_t at, uint64_t ns)
{
	bb_roce_rto_waits(&f->qp, at);
	bb_roce_rto_waits(&f->qp, at + ns / 2); /* the wait has already begun */
	bb_roce_rto_waited(&f->qp, at + ns);
}

/*
 * The ack timeout is twice the longest wait of this window of 64 timeouts and of the previous
 * one. It lies between the requested timeout and four times that.
 */
T_BEGIN(14, test_ack_timeout_is_twice_the_longest_recent_wait)
{
	const uint64_t ms = 1000 * RF_US, window = 64 * RF_TIMEOUT;
	uint64_t at = f->now;

	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), RF_TIMEOUT);
	waited(f, at, 20 * ms);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), RF_TIMEOUT);
	waited(f, at + 100 * ms, 100 * ms);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), 200 * ms);
	/* Shorter waits of the same window. */
	waited(f, at + 300 * ms, ms);
	waited(f, at + 400 * ms, ms);
	waited(f, at + window - ms, ms / 2);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), 200 * ms);
	/* Progress without a wait changes nothing. */
	bb_roce_rto_waited(&f->qp, at + window);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), 200 * ms);
	/* The next window still includes this wait, the one after it does not. */
	waited(f, at + 2 * window, 50 * ms);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), 200 * ms);
	waited(f, at + 2 * window + 100 * ms, ms);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), 200 * ms);
	waited(f, at + 4 * window, ms);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), 100 * ms);
	waited(f, at + 6 * window, ms);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), RF_TIMEOUT);
	waited(f, at + 7 * window, 1000 * ms);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), 4 * RF_TIMEOUT);
	/* Without adaptive timeouts, and without any timeout. */
	f->qp.attr.adaptive = 0;
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), RF_TIMEOUT);
	begin(f, 0);
	waited(f, at, 1000 * ms);
	assert_int_equal(f->qp.req.rto.longest_wait[0], 0);
}

/* An RNR NAK is an answer: the delay that it asks for does not count as a wait. */
T_BEGIN(14, test_delay_of_an_rnr_nak_is_no_wait)
{
	rf_writes(f, 1);
	rf_ack(f, RF_PSN, BB_ROCE_AETH_RNR | 31); /* 491.52 ms */
	rf_timeout(f);
	assert_true(f->now > 7 * RF_TIMEOUT);
	rf_run(f);
	f->now += 5 * RF_US;
	rf_ack(f, RF_PSN, RF_ACK);
	assert_int_equal(bb_roce_rto_ack_timeout(&f->qp), RF_TIMEOUT);
}

TEST_MAIN(0)
