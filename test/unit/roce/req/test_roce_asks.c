/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The requester of the RoCEv2 engine: which packets ask for an answer. */
#include "roce_req_fake.h"

/* Which of the next @n packets ask for an answer: bit i of @asks the i-th. */
static void
expect_asks(struct rf *f, uint32_t n, uint64_t asks)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		assert_int_equal((rf_next(f)->pkt.flags & BB_ROCE_ACKREQ) != 0, asks >> i & 1);
}

/* One answer for messages that are sent together; each for what nothing must keep waiting. */
TEST(test_asks)
{
	static struct rf f;
	uint32_t i;

	rf_init(&f, BB_ROCE_RC);
	f.attr.window = 256;
	f.attr.max_rd_atomic = 1;
	rf_start(&f);
	for (i = 0; i < 8; i++)
		rf_post(&f, i % 2 ? BB_ROCE_MSG_WRITE : BB_ROCE_MSG_SEND, 8, 0);
	assert_int_equal(rf_run(&f), 8);
	expect_asks(&f, 8, 0x80);
	/* Lost: all of them ask now. */
	rf_timeout(&f);
	assert_int_equal(rf_run(&f), 8);
	expect_asks(&f, 8, 0xff);
	rf_ack(&f, RF_PSN + 7, RF_ACK);
	assert_int_equal(f.ndone, 8);
	/* What may have to wait for other answers does not keep back the one before it. */
	rf_post(&f, BB_ROCE_MSG_WRITE, 8, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 8, 0);
	rf_post(&f, BB_ROCE_MSG_WRITE, 8, 0);
	rf_post(&f, BB_ROCE_MSG_WRITE, 8, BB_ROCE_FENCE);
	assert_int_equal(rf_run(&f), 3);
	expect_asks(&f, 3, 7);
	rf_ack(&f, RF_PSN + 8, RF_ACK);
	assert_int_equal(f.ndone, 9);
	/* Not for long. */
	rf_init(&f, BB_ROCE_RC);
	f.attr.window = 256;
	rf_start(&f);
	for (i = 0; i < 24; i++)
		rf_post(&f, BB_ROCE_MSG_WRITE, 8, 0);
	assert_int_equal(rf_run(&f), 24);
	expect_asks(&f, 24, 1u << 15 | 1u << 23);
}

TEST_MAIN(0)
