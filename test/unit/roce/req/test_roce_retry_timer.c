/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The completer of the RoCEv2 engine: timers and the number of retries. */
#include "bb_roce_short.h"
#include "roce_req_fake.h"

/*
 * A NAK that reports progress uses no retry. Seven without progress are followed, the eighth is
 * not.
 */
T_BEGUN(test_nak_without_progress_uses_a_retry)
{
	rf_writes(f, 20);
	for (uint32_t i = 0; i < 20; i++) {
		rf_ack(f, RF_PSN + i, RF_NAK(BB_ROCE_NAK_PSN));
		assert_int_equal(rf_run(f), 20 - i);
		if (i % 2 == 0) {
			rf_timeout(f);
			rf_run(f);
		}
	}
	assert_int_equal(f->nfailed, 0);
	for (uint32_t i = 0; i < 3; i++) { /* the NAK used one of the seven */
		rf_timeout(f);
		assert_int_equal(rf_run(f), 1);
		rf_ack(f, RF_PSN + 19, RF_NAK(BB_ROCE_NAK_PSN));
		assert_int_equal(rf_run(f), 1);
	}
	rf_timeout(f);
	rf_expect_failed(f, 0, 19, BB_SYN_RETRY_EXC);
	assert_int_equal(f->qp.stats.retry_exceeded, 1);
}

T_OWN_RF(test_timeouts_use_up_the_retries)
{
	for (uint32_t retries = 0; retries <= 7; retries += 7) {
		rf_init(f, BB_ROCE_RC);
		f->attr.retry_cnt = retries;
		rf_start(f);
		rf_writes(f, 2);
		for (uint32_t i = 0; i < retries; i++) {
			assert_int_equal(bb_roce_deadline(&f->qp), f->now + RF_TIMEOUT);
			rf_timeout(f);
			assert_int_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
			f->now += 5 * RF_TIMEOUT; /* no timer runs while nothing is outstanding */
			assert_int_equal(rf_run(f), 2);
			rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN);
			rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 1);
		}
		rf_timeout(f);
		rf_expect_failed(f, 0, 0, BB_SYN_RETRY_EXC);
		assert_int_equal(f->qp.stats.ack_timeout, retries + 1);
	}
	/* The timeout starts at the last progress; later packets do not postpone it. */
	rf_begin(f);
	rf_writes(f, 2);
	f->now += 1000;
	rf_writes(f, 1);
	assert_int_equal(bb_roce_deadline(&f->qp), f->now - 1000 + RF_TIMEOUT);
	rf_ack(f, RF_PSN, RF_ACK);
	assert_int_equal(bb_roce_deadline(&f->qp), f->now + RF_TIMEOUT);
	f->now += 1000;
	rf_ack(f, RF_PSN, RF_ACK); /* no progress */
	assert_int_equal(bb_roce_deadline(&f->qp), f->now - 1000 + RF_TIMEOUT);
	rf_ack(f, RF_PSN + 2, RF_ACK);
	rf_expect_idle(f);
	/* The timeout by code; 0 waits forever. */
	for (uint32_t i = 0; i < 32; i++) {
		rf_init(f, BB_ROCE_RC);
		f->attr.ack_timeout = i;
		rf_start(f);
		rf_writes(f, 1);
		assert_int_equal(bb_roce_deadline(&f->qp),
				 i == 0 ? UINT64_MAX : f->now + (UINT64_C(4096) << i));
	}
	/* Progress restores all retries. */
	rf_begin(f);
	rf_writes(f, 3);
	for (uint32_t i = 0; i < 21; i++) {
		if (i % 7 == 0 && i > 0)
			rf_ack(f, RF_PSN + i / 7 - 1, RF_ACK);
		rf_timeout(f);
		assert_int_equal(rf_run(f), 3 - i / 7);
	}
	assert_int_equal(f->nfailed, 0);
}

T_OWN_RF(test_rnr_waits_for_the_time_of_the_peer)
{
	/* RNR timers of 9.7.5.2.8 table 45, in microseconds. */
	static const uint32_t us[] = {
		655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,    320,
		480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
		20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};

	rf_begin(f); /* 7 means unlimited RNR retries */
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(f, BB_ROCE_MSG_SEND, 1, 0);
	rf_post(f, BB_ROCE_MSG_SEND, 1, 0);
	rf_run(f);
	f->seen = f->ntx;
	for (uint32_t i = 0; i < 32; i++) {
		f->now += 777;
		rf_ack(f, RF_PSN + 1, (uint8_t)(BB_ROCE_AETH_RNR | i));
		rf_expect_done(f, 0, 1, 0);
		assert_int_equal(bb_roce_deadline(&f->qp), f->now + us[i] * RF_US);
		assert_false(bb_roce_busy(&f->qp));
		/* The peer drops the packets after it and may NAK them. */
		rf_ack(f, RF_PSN + 1, RF_NAK(BB_ROCE_NAK_PSN));
		rf_ack(f, RF_PSN + 1, BB_ROCE_AETH_RNR);
		assert_int_equal(rf_run(f), 0);
		assert_int_equal(bb_roce_deadline(&f->qp), f->now + us[i] * RF_US);
		rf_timeout(f);
		assert_int_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
		assert_int_equal(rf_run(f), 2);
		rf_expect(f, BB_ROCE_SEND_ONLY, RF_PSN + 1);
		rf_expect(f, BB_ROCE_SEND_ONLY, RF_PSN + 2);
	}
	assert_fields(f->qp.stats, rnr_nak_retry, 32, packet_seq_err, 0);
	rf_ack(f, RF_PSN + 2, RF_ACK);
	rf_expect_idle(f);
	/* A late answer ends the wait. */
	rf_writes(f, 1);
	rf_ack(f, RF_PSN + 3, BB_ROCE_AETH_RNR);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	rf_expect_idle(f);
	rf_post(f, BB_ROCE_MSG_SEND, 1, 0);
	assert_int_equal(rf_run(f), 1);
	/* Between the end of the wait and the repeat an RNR NAK is stale. */
	rf_ack(f, RF_PSN + 4, BB_ROCE_AETH_RNR);
	rf_timeout(f);
	rf_ack(f, RF_PSN + 4, BB_ROCE_AETH_RNR);
	assert_int_equal(rf_run(f), 1);
	/* After the wait the repeated packet may be lost. */
	rf_ack(f, RF_PSN + 4, RF_NAK(BB_ROCE_NAK_PSN));
	assert_int_equal(rf_run(f), 1);
	rf_ack(f, RF_PSN + 4, BB_ROCE_AETH_RNR);
	rf_timeout(f);
	assert_int_equal(rf_run(f), 1);
	rf_ack(f, RF_PSN + 4, RF_NAK(BB_ROCE_NAK_PSN));
	assert_int_equal(rf_run(f), 1);
	assert_int_equal(f->qp.stats.packet_seq_err, 2);
}

T_OWN_RF(test_rnr_retries_count_per_message)
{
	for (uint32_t retries = 0; retries < 7; retries += 3) {
		rf_init(f, BB_ROCE_RC);
		f->attr.rnr_retry = retries;
		rf_start(f);
		rf_writes(f, 3);
		for (uint32_t done = 0; done < 3; done++) { /* everything is sent again after each
							     * message */
			for (uint32_t i = 0; i < retries; i++) {
				rf_ack(f, RF_PSN + done, BB_ROCE_AETH_RNR | 1);
				rf_timeout(f);
				assert_int_equal(rf_run(f), 3 - done);
			}
			if (done < 2)
				rf_ack(f, RF_PSN + done, RF_ACK);
		}
		rf_ack(f, RF_PSN + 2, BB_ROCE_AETH_RNR | 1);
		rf_expect_failed(f, 0, 2, BB_SYN_RNR_RETRY_EXC);
		assert_fields(f->qp.stats, rnr_retry_exceeded, 1, rnr_nak_retry, 3 * retries + 1);
	}
}

/* Expects @retries timeouts on a link that accepts nothing; the next one ends the queue pair. */
static void
stays_full(struct rf *f, uint32_t retries)
{
	for (uint32_t i = 0; i <= retries; i++) {
		assert_int_equal(f->nfailed, 0);
		assert_int_equal(rf_run(f), 0);
		assert_true(bb_roce_busy(&f->qp));
		assert_int_equal(bb_roce_deadline(&f->qp), f->now + RF_TIMEOUT);
		rf_timeout(f);
	}
	rf_expect_failed(f, 0, 0, BB_SYN_RETRY_EXC);
}

T_OWN_RF(test_full_link_ends_with_retry_exceeded_for_any_number_in_flight)
{
	for (uint32_t kind = 0; kind < 8; kind++) {
		for (uint32_t sent = 0; sent < RF_SLOTS; sent += 1 + sent / 2) {
			rf_init(f, BB_ROCE_RC);
			f->attr.retry_cnt = sent % 8;
			f->attr.max_rd_atomic = RF_SLOTS;
			rf_start(f);
			rf_writes(f, sent);
			if (sent != 0) { /* the first timeout has already passed */
				f->room = 0;
				rf_timeout(f);
			}
			if (f->nfailed != 0)
				continue;
			f->room = 0;
			rf_post(f, (enum bb_roce_kind)kind, 8, 0);
			stays_full(f, sent != 0 ? sent % 8 - 1 : 0);
		}
	}
}

/* Packets that are sent first instead, and the ends of other waits. */
T_OWN_RF(test_full_link_ends_with_retry_exceeded_after_any_wait)
{
	/* A congestion notification that finds no room either. */
	rf_init(f, BB_ROCE_RC);
	f->attr.retry_cnt = 1;
	rf_start(f);
	f->room = 0;
	f->net.tclass = 3;
	rf_ack(f, RF_PSN, RF_ACK);
	assert_true(f->qp.cnp_due);
	rf_post(f, BB_ROCE_MSG_WRITE, 8, 0);
	stays_full(f, 1);
	/* The peer had no receive. */
	rf_init(f, BB_ROCE_RC);
	f->attr.retry_cnt = 1;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_SEND, 8, 0);
	assert_int_equal(rf_run(f), 1);
	rf_ack(f, RF_PSN, BB_ROCE_AETH_RNR | 1);
	f->room = 0;
	rf_timeout(f);
	stays_full(f, 1);
	/* Without a timeout it waits forever (9.7.6.1.3). */
	rf_init(f, BB_ROCE_RC);
	f->attr.ack_timeout = 0;
	rf_start(f);
	f->room = 0;
	rf_post(f, BB_ROCE_MSG_SEND, 8, 0);
	assert_int_equal(rf_run(f), 0);
	assert_int_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
	f->room = UINT32_MAX;
	assert_int_equal(rf_run(f), 1);
}

/*
 * A message cannot be sent again, but its first transmission has arrived. The requester then
 * continues as if all packets had been sent once.
 */
T_BEGUN(test_late_ack_of_an_unreadable_message_restores_the_requester)
{
	rf_writes(f, 2);
	rf_timeout(f);
	f->bad = BB_SYN_LOCAL_PROT;
	f->bad_cookie = 1;
	assert_int_equal(rf_run(f), 1);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN);
	rf_ack(f, RF_PSN + 1, RF_ACK);
	rf_expect_done(f, 0, 2, 0);
	rf_expect_idle(f);
	assert_int_not_equal(bb_roce_short_room(&f->qp), 0);
	/* A later message has the same index after the indexes have wrapped. */
	f->qp.req.head = f->qp.req.tail = f->qp.req.next = f->qp.req.unassigned = 1;
	rf_writes(f, 1);
	rf_ack(f, RF_PSN + 2, RF_ACK);
	rf_expect_done(f, 0, 3, 0);
	rf_expect_idle(f);
}

TEST_MAIN(0)
