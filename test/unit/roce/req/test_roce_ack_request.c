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

TEST_MAIN(0)
