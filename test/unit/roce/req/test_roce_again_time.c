/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Selective repeat, the requester's half: what it does by time, and without a NAK. */
#include "roce_again_fake.h"

#define FLOOR (100 * RF_US)

/* The round trip is 1 us. */
static void
begin_near(struct rf *f)
{
	uint32_t i;

	begin(f, FLOOR);
	for (i = 0; i < 50; i++) {
		rf_writes(f, 1);
		f->now += RF_US;
		rf_ack(f, f->qp.req.una, RF_ACK);
	}
}

/* By time only where the peer keeps, and then soon. */
TEST(test_time)
{
	static struct rf f;
	uint32_t i, psn;

	begin_near(&f);
	psn = f.qp.req.una;
	rf_writes(&f, 3);
	assert_int_equal(bb_roce_deadline(&f.qp), f.now + FLOOR);
	rf_timeout(&f);
	all_again(&f, psn, 3);
	rf_ack(&f, psn + 2, RF_ACK);
	assert_false(f.qp.req.keeps);

	keep(&f);
	psn = f.qp.req.una;
	rf_writes(&f, 3);
	assert_int_equal(bb_roce_deadline(&f.qp), f.now + BB_ROCE_ADAPTIVE);
	rf_timeout(&f);
	assert_int_equal(f.qp.req.retries, 7);
	alone(&f, BB_ROCE_WRITE_ONLY, psn);
	/* The next one takes twice as long. */
	assert_int_equal(bb_roce_deadline(&f.qp), f.now + 2 * BB_ROCE_ADAPTIVE);
	rf_timeout(&f);
	row(&f, BB_ROCE_WRITE_ONLY, psn, 2);
	rf_ack(&f, psn + 2, RF_ACK);
	rf_expect_idle(&f);
	/* That is for a peer that has become slow; a NAK says that it has not. */
	psn = f.qp.req.una;
	rf_writes(&f, 5);
	rf_timeout(&f);
	alone(&f, BB_ROCE_WRITE_ONLY, psn);
	rf_timeout(&f);
	row(&f, BB_ROCE_WRITE_ONLY, psn, 2);
	assert_true(bb_roce_deadline(&f.qp) >= f.now + 4 * BB_ROCE_ADAPTIVE);
	lost(&f, psn + 1);
	alone(&f, BB_ROCE_WRITE_ONLY, psn + 1);
	assert_int_equal(bb_roce_deadline(&f.qp), f.now + BB_ROCE_ADAPTIVE);
	rf_ack(&f, psn + 4, RF_ACK);
	rf_expect_idle(&f);
	psn += 2;
	/* If all was lost, as an ACK of the first says, all again; it may well keep. */
	i = (uint32_t)f.qp.req.chances;
	rf_writes(&f, 3);
	rf_timeout(&f);
	alone(&f, BB_ROCE_WRITE_ONLY, psn + 3);
	rf_ack(&f, psn + 3, RF_ACK);
	all_again(&f, psn + 4, 2);
	assert_true(f.qp.req.keeps);
	assert_int_equal(f.qp.req.chances, i);
	rf_ack(&f, psn + 5, RF_ACK);
	rf_expect_idle(&f);
	/* The ack timeout does it all at once. */
	rf_writes(&f, 3);
	f.now = f.qp.req.deadline;
	bb_roce_tick(&f.qp, f.now);
	assert_int_equal(f.qp.stats.ack_timeout, 1);
	all_again(&f, psn + 6, 3);
}

static enum bb_roce_kind
kind_of(char c)
{
	return c == 'W' ? BB_ROCE_MSG_WRITE : c == 'R' ? BB_ROCE_MSG_READ : BB_ROCE_MSG_FETCH_ADD;
}

/*
 * Early is only what costs one packet. A READ or an atomic is asked for again with all behind it,
 * and that is answered again: it waits as long as where the peer does not keep.
 */
TEST(test_early)
{
	static const char *const kinds[] = {"WWWW", "WRRR", "W", "RRRR", "RWWW", "AWWW", "R"};
	static struct rf f;
	uint32_t i, k;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		bool is_early = kinds[i][0] == 'W';

		begin_near(&f);
		keep(&f);
		for (k = 0; kinds[i][k] != '\0'; k++)
			rf_post(&f, kind_of(kinds[i][k]), 8, 0);
		assert_int_equal(rf_run(&f), k);
		assert_int_equal(f.qp.req.rto.deadline,
				 f.now + (is_early ? BB_ROCE_ADAPTIVE : FLOOR));
		bb_roce_tick(&f.qp, f.now + BB_ROCE_ADAPTIVE);
		assert_int_equal(rf_run(&f), is_early);
	}
	/* What is the oldest now decides. */
	begin_near(&f);
	keep(&f);
	rf_post(&f, BB_ROCE_MSG_WRITE, 8, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 8, 0);
	rf_run(&f);
	rf_ack(&f, f.qp.req.una, RF_ACK);
	assert_int_equal(f.qp.req.rto.deadline, f.now + FLOOR);
	/* While it goes back little has been sent again. */
	begin_near(&f);
	keep(&f);
	rf_writes(&f, 4);
	bb_roce_req_rewind(&f.qp);
	f.room = 2;
	assert_int_equal(rf_run(&f), 2);
	assert_int_equal(f.qp.req.rto.deadline, f.now + BB_ROCE_ADAPTIVE);
}

/* The answer to what was sent again is the round trip: where packets are always lost, the only one.
 */
TEST(test_measured)
{
	static struct rf f;

	begin(&f, BB_ROCE_ADAPTIVE);
	rf_writes(&f, 8);
	f.now += 10 * RF_US;
	lost(&f, RF_PSN);
	alone(&f, BB_ROCE_WRITE_ONLY, RF_PSN);
	assert_int_equal(f.qp.req.rto.srtt, 0);
	f.now += 20 * RF_US;
	lost(&f, RF_PSN + 3);
	assert_int_equal(f.qp.req.rto.srtt, 20 * RF_US);
	row(&f, BB_ROCE_WRITE_ONLY, RF_PSN + 3, 2);
	assert_int_equal(bb_roce_deadline(&f.qp), f.now + 30 * RF_US);
	/* One by time is not: the answer may be to the one before it. */
	rf_timeout(&f);
	row(&f, BB_ROCE_WRITE_ONLY, RF_PSN + 3, 4);
	f.now += RF_US;
	rf_ack(&f, RF_PSN + 7, RF_ACK);
	assert_int_equal(f.qp.req.rto.srtt, 20 * RF_US);
	rf_expect_idle(&f);
}

/* Packets that asked for no answer, and one sent again that does: the interval runs for it. */
TEST(test_unasked)
{
	static struct rf f;

	begin(&f, BB_ROCE_ADAPTIVE);
	rf_post(&f, BB_ROCE_MSG_SEND, 8 * RF_MTU, 0);
	f.room = 3;
	assert_int_equal(rf_run(&f), 3);
	f.seen = f.ntx;
	assert_int_equal(f.qp.req.rto.deadline, UINT64_MAX);
	f.room = 1;
	lost(&f, RF_PSN + 1);
	assert_int_equal(rf_run(&f), 1);
	rf_expect(&f, BB_ROCE_SEND_MIDDLE, RF_PSN + 1);
	assert_int_equal(f.qp.req.rto.deadline, f.now + 1000 * RF_US);
	assert_int_equal(f.qp.req.no_ack_req, 3);
}

/*
 * An ACK that stops short of what went out before the packet sent again: where the peer keeps, the
 * next one is missing as well, and the NAK that says so has been lost.
 */
TEST(test_ack_short)
{
	static struct rf f;
	uint32_t psn;

	begin(&f, BB_ROCE_ADAPTIVE);
	keep(&f);
	psn = f.qp.req.una;
	rf_writes(&f, 8);
	rf_timeout(&f);
	alone(&f, BB_ROCE_WRITE_ONLY, psn);
	rf_ack(&f, psn + 2, RF_ACK);
	row(&f, BB_ROCE_WRITE_ONLY, psn + 3, 2);
	/* The NAK comes after all. */
	lost(&f, psn + 3);
	assert_int_equal(rf_run(&f), 0);
	assert_int_equal(f.qp.req.retries, 7);
	rf_ack(&f, psn + 5, RF_ACK);
	row(&f, BB_ROCE_WRITE_ONLY, psn + 6, 2);
	/* What is behind the last one is new. */
	rf_writes(&f, 4);
	rf_ack(&f, psn + 7, RF_ACK);
	assert_int_equal(rf_run(&f), 0);
	assert_int_equal(f.qp.req.una, psn + 8);
	rf_ack(&f, psn + 11, RF_ACK);
	rf_expect_idle(&f);
	assert_int_equal(f.qp.stats.roce_adp_retrans, 1);
}

/*
 * No timer runs: a NAK that is ignored, or an answer that is lost, would be the end. All is sent
 * again then, and each packet that is lost has a NAK of its own.
 */
TEST(test_no_timer)
{
	static struct rf f;

	rf_init(&f, BB_ROCE_RC);
	f.attr.selective = true;
	f.attr.ack_timeout = 0;
	rf_start(&f);
	rf_writes(&f, 4);
	lost(&f, RF_PSN + 1);
	all_again(&f, RF_PSN + 1, 3);
	rf_ack(&f, RF_PSN + 1, RF_ACK);
	lost(&f, RF_PSN + 2);
	all_again(&f, RF_PSN + 2, 2);
	rf_ack(&f, RF_PSN + 3, RF_ACK);
	rf_expect_idle(&f);
	/* One of the two is enough. */
	rf_init(&f, BB_ROCE_RC);
	f.attr.selective = true;
	f.attr.ack_timeout = 0;
	f.attr.adaptive = BB_ROCE_ADAPTIVE;
	rf_start(&f);
	rf_writes(&f, 4);
	lost(&f, RF_PSN + 1);
	alone(&f, BB_ROCE_WRITE_ONLY, RF_PSN + 1);
}

TEST_MAIN(0)
