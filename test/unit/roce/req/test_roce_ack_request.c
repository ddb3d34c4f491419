/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The requester of the RoCEv2 engine: which packets request an acknowledgement (AckReq). */
#include "roce_req_fake.h"

/* Asserts which of the next @n packets have AckReq: bit i of @asks stands for packet i. */
static void
expect_asks(struct rf *f, uint32_t n, uint64_t asks)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal((rf_next(f)->pkt.flags & BB_ROCE_ACKREQ) != 0, asks >> i & 1);
}

/* Messages sent together get one answer. A message that must not wait for others gets its own. */
T_RF(BB_ROCE_RC, test_messages_sent_together_request_one_answer)
{
	f->attr.window = 256;
	f->attr.max_rd_atomic = 1;
	rf_start(f);
	for (uint32_t i = 0; i < 8; i++)
		rf_post(f, i % 2 ? BB_ROCE_MSG_WRITE : BB_ROCE_MSG_SEND, 8, 0);
	assert_int_equal(rf_run(f), 8);
	expect_asks(f, 8, 0x80);
	/* After a loss every packet requests one. */
	rf_timeout(f);
	assert_int_equal(rf_run(f), 8);
	expect_asks(f, 8, 0xff);
	rf_ack(f, RF_PSN + 7, RF_ACK);
	assert_int_equal(f->ndone, 8);
	/*
	 * A message that may have to wait for other answers does not hold back the answer of the
	 * previous one.
	 */
	rf_post(f, BB_ROCE_MSG_WRITE, 8, 0);
	rf_post(f, BB_ROCE_MSG_READ, 8, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 8, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 8, BB_ROCE_FENCE);
	assert_int_equal(rf_run(f), 3);
	expect_asks(f, 3, 7);
	rf_ack(f, RF_PSN + 8, RF_ACK);
	assert_int_equal(f->ndone, 9);
	/* The wait for an answer is bounded. */
	rf_init(f, BB_ROCE_RC);
	f->attr.window = 256;
	rf_start(f);
	for (uint32_t i = 0; i < 24; i++)
		rf_post(f, BB_ROCE_MSG_WRITE, 8, 0);
	assert_int_equal(rf_run(f), 24);
	expect_asks(f, 24, 1u << 15 | 1u << 23);
}

/*
 * A message that cannot be sent leaves packets before it without AckReq. They are repeated once,
 * with AckReq (IBTA 9.7.5.1.1 allows a retry from the oldest packet without an answer). A request
 * that was answered is never repeated.
 */
T_RF(BB_ROCE_RC, test_packets_before_an_unsendable_message_are_repeated_only_if_unanswered)
{
	f->attr.window = 256;
	rf_start(f);
	f->bad_cookie = 3;
	f->bad = BB_SYN_LOCAL_PROT;
	for (uint32_t i = 0; i < 4; i++)
		rf_post(f, BB_ROCE_MSG_WRITE, 8, 0);
	assert_int_equal(bb_roce_run(&f->qp, 2, f->now), 2);
	expect_asks(f, 2, 0);
	rf_ack(f, RF_PSN, RF_ACK);
	assert_int_equal(f->ndone, 1);
	/* Packet 2 without AckReq, then packets 1 and 2 with AckReq, but not packet 0. */
	assert_int_equal(rf_run(f), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct rf_tx *tx = rf_next(f);

		assert_int_equal(tx->pkt.psn, (RF_PSN + (i == 1 ? 1 : 2)) & BB_ROCE_PSN_MASK);
		assert_int_equal((tx->pkt.flags & BB_ROCE_ACKREQ) != 0, i != 0);
	}
	rf_expect_none(f);
	assert_int_equal(f->qp.stats.retransmitted, 2);
	/* The repetition has its AckReq, so it is not repeated again before a timeout. */
	assert_int_equal(rf_run(f), 0);
	rf_ack(f, RF_PSN + 2, RF_ACK);
	rf_expect_failed(f, 0, 3, BB_SYN_LOCAL_PROT);
	rf_expect_none(f);
}

TEST_MAIN(0)
