/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The completer of the RoCEv2 engine: answers and losses. test_roce_retry_timer.c has the timers.
 */
#include "roce_req_fake.h"

static void
atomic_ack(struct rf *f, uint32_t psn, uint64_t orig)
{
	rf_rx(f, BB_ROCE_ATOMIC_ACK, psn, (struct bb_roce_pkt){.syndrome = RF_ACK, .orig = orig});
}

/* One ACK completes all messages before it, in posting order, across the wrap of PSNs. */
T_RF(BB_ROCE_RC, test_ack_completes_all_before_it_in_order)
{
	f->attr.sq_psn = 0xfffffe;
	rf_start(f);
	rf_writes(f, 5);
	rf_post(f, BB_ROCE_MSG_SEND, 3 * RF_MTU, 0);
	rf_run(f);
	f->seen = f->ntx;
	rf_ack(f, 0xfffffe, RF_ACK);
	rf_expect_done(f, 0, 1, 0);
	rf_ack(f, 1, RF_ACK);
	rf_expect_done(f, 0, 4, 0);
	rf_ack(f, 4, RF_ACK);
	rf_expect_done(f, 0, 5, 0);
	rf_ack(f, 5, RF_ACK);
	rf_expect_idle(f);
}

/* Answers to PSNs that were not sent or are done. */
T_BEGUN(test_answers_to_other_psns_are_dropped)
{
	static const uint8_t ops[] = {BB_ROCE_ACK, BB_ROCE_READ_RESP_ONLY, BB_ROCE_ATOMIC_ACK,
				      BB_ROCE_READ_RESP_MIDDLE};

	rf_writes(f, 4);
	rf_ack(f, RF_PSN + 1, RF_ACK);
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t psn = 0; psn < 1 << 24; psn += 1 + psn / 2) {
			if (psn == 2 || psn == 3) /* these two are outstanding */
				continue;
			rf_rx(f, ops[i], RF_PSN + psn, (struct bb_roce_pkt){.syndrome = RF_NAK(2)});
			rf_rx(f, ops[i], RF_PSN - psn, (struct bb_roce_pkt){.syndrome = 0xff});
		}
		rf_rx(f, ops[i], RF_PSN + 4, (struct bb_roce_pkt){.syndrome = RF_ACK});
	}
	assert_true(f->qp.stats.drop_ghost > 100);
	rf_expect_done(f, 0, 2, 0);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	rf_expect_idle(f);
}

T_BEGUN(test_read_data_arrive_beside_other_messages)
{
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(f, BB_ROCE_MSG_READ, 2 * RF_MTU + 5, 0);
	rf_post(f, BB_ROCE_MSG_READ, 1, 0);
	rf_post(f, BB_ROCE_MSG_READ, 0, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(f);
	f->seen = f->ntx;
	/* The first response packet acknowledges the WRITE before it. */
	rf_data(f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 1, 1, 0, RF_MTU);
	rf_expect_done(f, 0, 1, 0);
	rf_data(f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 2, 1, RF_MTU, RF_MTU);
	/* A repeated response packet is placed only once. */
	rf_data(f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 2, 1, RF_MTU, RF_MTU);
	rf_data(f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 1, 1, 0, RF_MTU);
	assert_fields(*f, placed, 2 * RF_MTU, qp.stats.drop_ghost, 2);
	rf_data(f, BB_ROCE_READ_RESP_LAST, RF_PSN + 3, 1, 2 * RF_MTU, 5);
	rf_expect_done(f, 0, 2, 0);
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 4, 2, 0, 1);
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 5, 3, 0, 0);
	rf_expect_done(f, 0, 4, 0);
	rf_ack(f, RF_PSN + 6, RF_ACK);
	rf_expect_idle(f);
}

/*
 * A READ of three packets, of which @n arrived. Asserts that the next one, as given, is rejected.
 */
static void
bad_read(uint32_t n, uint8_t opcode, uint32_t len, uint8_t syndrome)
{
	static uint8_t data[8192];
	static struct rf f;

	rf_begin(&f);
	rf_post(&f, BB_ROCE_MSG_READ, 2 * RF_MTU + 5, 0);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(&f);
	if (n > 0)
		rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN, 0, 0, RF_MTU);
	if (n > 1)
		rf_data(&f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 1, 0, RF_MTU, RF_MTU);
	assert_int_equal(f.nfailed, 0);
	rf_rx(&f, opcode, RF_PSN + n,
	      (struct bb_roce_pkt){.len = len, .payload = data, .syndrome = syndrome});
	rf_expect_failed(&f, 0, 0, BB_SYN_BAD_RESP);
}

T_OWN_RF(test_read_response_of_wrong_kind_or_length_is_refused)
{
	static const uint8_t good[] = {BB_ROCE_READ_RESP_FIRST, BB_ROCE_READ_RESP_MIDDLE,
				       BB_ROCE_READ_RESP_LAST};
	static const uint32_t lens[] = {RF_MTU, RF_MTU, 5};

	for (uint32_t n = 0; n < 3; n++) {
		for (uint32_t op = BB_ROCE_READ_RESP_FIRST; op <= BB_ROCE_READ_RESP_ONLY; op++)
			if (op != good[n])
				bad_read(n, (uint8_t)op, lens[n], RF_ACK);
		bad_read(n, good[n], lens[n] - 1, RF_ACK);
		bad_read(n, good[n], lens[n] + 1, RF_ACK);
		bad_read(n, good[n], 0, RF_ACK);
		bad_read(n, good[n], 4096, RF_ACK);
		bad_read(n, BB_ROCE_ATOMIC_ACK, 0, RF_ACK);
		if (n != 1) { /* a middle packet has no AETH */
			bad_read(n, good[n], lens[n], RF_NAK(0));
			bad_read(n, good[n], lens[n], BB_ROCE_AETH_RNR);
			bad_read(n, good[n], lens[n], 0x5f);
			bad_read(n, good[n], lens[n], 0x80);
		}
	}
	/* PSN 0 is an ordinary PSN. */
	rf_init(f, BB_ROCE_RC);
	f->attr.sq_psn = BB_ROCE_PSN_MASK;
	rf_start(f);
	rf_post(f, BB_ROCE_MSG_READ, 3 * RF_MTU, 0);
	rf_run(f);
	rf_data(f, BB_ROCE_READ_RESP_FIRST, BB_ROCE_PSN_MASK, 0, 0, RF_MTU);
	rf_data(f, BB_ROCE_READ_RESP_FIRST, 0, 0, RF_MTU, RF_MTU);
	rf_expect_failed(f, 0, 0, BB_SYN_BAD_RESP);
}

/* Answers that do not fit the request, and reserved syndromes. */
T_OWN_RF(test_answer_of_another_kind_is_refused)
{
	static const uint8_t synds[] = {RF_NAK(4), RF_NAK(5), RF_NAK(31), 0x40, 0x5f,
					0x80,      0x9f,      0xa0,       0xff};

	for (uint32_t i = 0; i < sizeof(synds); i++) {
		rf_begin(f);
		rf_writes(f, 2);
		rf_ack(f, RF_PSN, synds[i]);
		rf_expect_failed(f, 0, 0, BB_SYN_BAD_RESP);
	}
	rf_begin(f);
	rf_writes(f, 2);
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 1, 0, 1);
	rf_expect_failed(f, 0, 1, BB_SYN_BAD_RESP);
	rf_begin(f);
	rf_writes(f, 2);
	atomic_ack(f, RF_PSN, 1);
	rf_expect_failed(f, 0, 0, BB_SYN_BAD_RESP);
	rf_begin(f);
	rf_post(f, BB_ROCE_MSG_CMP_SWAP, 8, 0);
	rf_run(f);
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN, 0, 0, 8);
	rf_expect_failed(f, 0, 0, BB_SYN_BAD_RESP);
}

/* An ACK does not answer a READ or an atomic. An ACK past it shows that the answer was lost. */
T_BEGUN(test_ack_past_a_read_implies_a_lost_response)
{
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(f, BB_ROCE_MSG_READ, 2, 0);
	rf_post(f, BB_ROCE_MSG_FETCH_ADD, 8, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(f);
	f->seen = f->ntx;
	rf_ack(f, RF_PSN + 1, RF_ACK);
	rf_expect_done(f, 0, 1, 0);
	assert_false(bb_roce_busy(&f->qp));
	rf_ack(f, RF_PSN + 3, RF_ACK);
	assert_int_equal(f->qp.stats.implied_nak_seq, 1);
	assert_true(bb_roce_busy(&f->qp));
	rf_run(f);
	rf_expect(f, BB_ROCE_READ_REQUEST, RF_PSN + 1);
	rf_expect(f, BB_ROCE_FETCH_ADD, RF_PSN + 2);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 3);
	assert_int_equal(f->qp.stats.retransmitted, 3);
	/* A second such ACK changes nothing while the request is being sent again. */
	atomic_ack(f, RF_PSN + 2, 9);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	assert_int_equal(rf_run(f), 0);
	assert_fields(*f, qp.stats.implied_nak_seq, 1, orig, 0);
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 1, 0, 2);
	rf_ack(f, RF_PSN + 3, RF_ACK); /* this ACK shows that the atomic's answer was lost */
	assert_int_equal(f->qp.stats.implied_nak_seq, 2);
	rf_run(f);
	rf_expect(f, BB_ROCE_FETCH_ADD, RF_PSN + 2);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 3);
	atomic_ack(f, RF_PSN + 2, 9);
	assert_int_equal(f->orig, 9);
	rf_ack(f, RF_PSN + 3, RF_ACK);
	rf_expect_idle(f);
}

T_BEGUN(test_late_ack_does_not_answer_a_read)
{
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(f, BB_ROCE_MSG_READ, 2, 0);
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(f);
	f->seen = f->ntx;
	rf_timeout(f);
	rf_ack(f, RF_PSN + 2, RF_ACK);
	rf_expect_done(f, 0, 1, 0);
	rf_run(f);
	rf_expect(f, BB_ROCE_READ_REQUEST, RF_PSN + 1);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + 2);
	rf_data(f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 1, 0, 2);
	rf_ack(f, RF_PSN + 2, RF_ACK);
	rf_expect_done(f, 0, 3, 0);
	rf_expect_idle(f);
}

/*
 * An acknowledgement may end the queue pair: the payload of the next message vanished before it
 * could be sent again. The rest of the answer is then ignored.
 */
T_BEGUN(test_failure_by_progress_ignores_the_rest_of_the_answer)
{
	rf_writes(f, 2);
	rf_ack(f, RF_PSN, RF_NAK(BB_ROCE_NAK_PSN));
	f->bad_cookie = 1;
	f->bad = BB_SYN_LOCAL_PROT;
	rf_run(f);
	rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN);
	rf_ack(f, RF_PSN + 1, RF_NAK(BB_ROCE_NAK_ACCESS));
	rf_expect_failed(f, 0, 1, BB_SYN_LOCAL_PROT);
}

/* A READ counts once per request sent: the SSN of later messages includes these requests. */
T_BEGUN(test_ssn_counts_each_request_of_a_read)
{
	uint32_t chunk;

	chunk = f->qp.req.chunk;
	f->blind = true;
	rf_post(f, BB_ROCE_MSG_READ, chunk * RF_MTU, 0);
	rf_post(f, BB_ROCE_MSG_SEND, 1, 0);
	rf_run(f);
	assert_fields(*f, ring[0].ssn, 1, ring[1].ssn, 2);
	rf_begin(f);
	rf_post(f, BB_ROCE_MSG_READ, chunk * RF_MTU + 1, 0);
	rf_post(f, BB_ROCE_MSG_SEND, 1, 0);
	rf_run(f);
	assert_fields(*f, ring[0].ssn, 2, ring[1].ssn, 3);
}

TEST(test_read_continues_at_its_lost_response)
{
	const struct bb_roce_pkt *pkt;
	static struct rf f;

	for (uint32_t stale = 0; stale < 2; stale++) {
		rf_begin(&f);
		rf_post(&f, BB_ROCE_MSG_READ, 10 * RF_MTU, 0);
		rf_run(&f);
		rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN, 0, 0, RF_MTU);
		rf_data(&f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 1, 0, RF_MTU, RF_MTU);
		rf_data(&f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 4, 0, 4 * RF_MTU, RF_MTU);
		assert_fields(f, placed, 2 * RF_MTU, qp.stats.implied_nak_seq, 1);
		rf_run(&f);
		rf_expect(&f, BB_ROCE_READ_REQUEST, RF_PSN);
		pkt = rf_expect(&f, BB_ROCE_READ_REQUEST, RF_PSN + 2);
		assert_fields(*pkt, va, RF_RADDR + 2 * RF_MTU, dmalen, 8 * RF_MTU);
		rf_expect_none(&f);
		/* Late packets of the first response are as valid as those of the second. */
		rf_data(&f, stale ? BB_ROCE_READ_RESP_MIDDLE : BB_ROCE_READ_RESP_FIRST, RF_PSN + 2,
			0, 2 * RF_MTU, RF_MTU);
		rf_data(&f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 3, 0, 3 * RF_MTU, RF_MTU);
		assert_int_equal(f.placed, 4 * RF_MTU);
		/* But a response may start only where a request started. */
		rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 4, 0, 4 * RF_MTU, RF_MTU);
		rf_expect_failed(&f, 0, 0, BB_SYN_BAD_RESP);
	}
	/* The last packet of the READ alone. */
	rf_begin(&f);
	rf_post(&f, BB_ROCE_MSG_READ, RF_MTU + 7, 0);
	rf_run(&f);
	rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN, 0, 0, RF_MTU);
	rf_timeout(&f);
	rf_run(&f);
	assert_int_equal(f.tx[1].pkt.dmalen, 7);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 0, RF_MTU, 7);
	f.seen = f.ntx;
	rf_expect_idle(&f);
	/* A repeated request ends where the first one ended. */
	rf_init(&f, BB_ROCE_RC);
	f.attr.window = 8;
	rf_start(&f);
	rf_post(&f, BB_ROCE_MSG_READ, 8 * RF_MTU, 0);
	rf_run(&f);
	rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN, 0, 0, RF_MTU);
	rf_timeout(&f);
	assert_int_equal(rf_run(&f), 2);
	assert_fields(f, tx[2].pkt.dmalen, 3 * RF_MTU, tx[3].pkt.dmalen, 4 * RF_MTU);
	/* A READ that is sent again does not count twice against the limit. */
	rf_init(&f, BB_ROCE_RC);
	f.attr.max_rd_atomic = 2;
	rf_start(&f);
	rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
	assert_int_equal(rf_run(&f), 2);
	rf_timeout(&f);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN, 0, 0, 1); /* late, not yet requested again */
	assert_int_equal(rf_run(&f), 2);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 1, 0, 1);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 2, 2, 0, 1);
	f.seen = f.ntx;
	rf_expect_idle(&f);
	assert_int_equal(f.qp.req.rd_atomic, 0);
}

T_BEGUN(test_sequence_nak_repeats_once)
{
	rf_writes(f, 5);
	rf_ack(f, RF_PSN + 2, RF_NAK(BB_ROCE_NAK_PSN));
	rf_expect_done(f, 0, 2, 0);
	/* The same NAK again, before and after the repeat. */
	rf_ack(f, RF_PSN + 2, RF_NAK(BB_ROCE_NAK_PSN));
	assert_int_equal(rf_run(f), 3);
	rf_ack(f, RF_PSN + 2, RF_NAK(BB_ROCE_NAK_PSN));
	assert_int_equal(rf_run(f), 0);
	assert_int_equal(f->qp.stats.packet_seq_err, 1);
	for (uint32_t i = 2; i < 5; i++)
		rf_expect(f, BB_ROCE_WRITE_ONLY, RF_PSN + i);
	rf_ack(f, RF_PSN + 4, RF_ACK);
	rf_expect_idle(f);
	/* In the middle of a message. */
	rf_post(f, BB_ROCE_MSG_WRITE, 4 * RF_MTU, 0);
	rf_run(f);
	f->seen = f->ntx;
	rf_ack(f, RF_PSN + 7, RF_NAK(BB_ROCE_NAK_PSN));
	rf_run(f);
	rf_expect(f, BB_ROCE_WRITE_MIDDLE, RF_PSN + 7);
	assert_int_equal(f->tx[f->seen - 1].payload[3], rf_byte(5, 2 * RF_MTU + 3));
	rf_expect(f, BB_ROCE_WRITE_LAST, RF_PSN + 8);
	/* The first copies arrive after all while they are being sent again. */
	rf_timeout(f);
	rf_ack(f, RF_PSN + 7, RF_NAK(BB_ROCE_NAK_PSN)); /* a stale NAK */
	assert_int_equal(f->qp.stats.packet_seq_err, 2);
	assert_int_equal(bb_roce_run(&f->qp, 1, f->now), 1);
	rf_expect(f, BB_ROCE_WRITE_MIDDLE, RF_PSN + 7);
	rf_ack(f, RF_PSN + 8, RF_ACK);
	rf_expect_idle(f);
}

/* The named message fails, those before it succeed, those after it are flushed. */
TEST(test_fatal_nak_fails_only_its_message)
{
	static const struct {
		uint8_t nak, synd;
	} fatal[] = {
		{BB_ROCE_NAK_INVALID, BB_SYN_REMOTE_INVAL_REQ},
		{BB_ROCE_NAK_ACCESS, BB_SYN_REMOTE_ACCESS},
		{BB_ROCE_NAK_OP, BB_SYN_REMOTE_OP},
	};
	static struct rf f;

	for (uint32_t i = 0; i < 3; i++) {
		rf_begin(&f);
		rf_writes(&f, 2);
		rf_post(&f, BB_ROCE_MSG_SEND, 3 * RF_MTU, 0);
		rf_post(&f, BB_ROCE_MSG_READ, 3 * RF_MTU, 0);
		rf_run(&f);
		rf_ack(&f, RF_PSN + 3, RF_NAK(fatal[i].nak)); /* names the second packet of the
							       * message */
		rf_expect_failed(&f, 0, 2, fatal[i].synd);
		bb_roce_qp_flush(&f.qp, BB_SYN_WR_FLUSH);
		assert_fields(f, ndone, 4, done[3].cookie, 3, done[3].status, BB_SYN_WR_FLUSH);
		/* Any packet of a READ may be named. */
		for (uint32_t k = 0; k < 3; k++) {
			rf_begin(&f);
			rf_writes(&f, 1);
			rf_post(&f, BB_ROCE_MSG_READ, 3 * RF_MTU, 0);
			rf_run(&f);
			rf_ack(&f, RF_PSN + 1 + k, RF_NAK(fatal[i].nak));
			rf_expect_failed(&f, 0, 1, fatal[i].synd);
		}
		/* A message before it, a READ, is still unanswered. */
		rf_begin(&f);
		rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
		rf_writes(&f, 1);
		rf_ack(&f, RF_PSN + 1, RF_NAK(fatal[i].nak));
		assert_fields(f, ndone, 0, qp.stats.implied_nak_seq, 1);
		assert_int_equal(rf_run(&f), 2);
		rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN, 0, 0, 1);
		rf_ack(&f, RF_PSN + 1, RF_NAK(fatal[i].nak));
		rf_expect_failed(&f, 0, 1, fatal[i].synd);
	}
}

T_BEGUN(test_data_that_cannot_be_stored_fail_the_read)
{
	rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(f, BB_ROCE_MSG_READ, 2 * RF_MTU, 0);
	rf_run(f);
	rf_data(f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 1, 1, 0, RF_MTU);
	f->bad_cookie = 1;
	f->bad = BB_SYN_LOCAL_PROT;
	rf_data(f, BB_ROCE_READ_RESP_LAST, RF_PSN + 2, 1, RF_MTU, RF_MTU);
	rf_expect_failed(f, 0, 1, BB_SYN_LOCAL_PROT);
	rf_begin(f);
	f->bad_cookie = 0;
	f->bad = BB_SYN_LOCAL_ACCESS;
	rf_post(f, BB_ROCE_MSG_FETCH_ADD, 8, 0);
	rf_run(f);
	atomic_ack(f, RF_PSN, 1);
	rf_expect_failed(f, 0, 0, BB_SYN_LOCAL_ACCESS);
}

static void
end_complete(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint8_t status)
{
	rf_op_complete(ctx, qp, msg, status);
	bb_roce_qp_err(qp);
}

/*
 * A completion that cannot be written ends the queue pair, whatever remained to be done. No timer
 * runs, and a later message that failed to be sent is not reported.
 */
TEST(test_failed_completion_ends_the_queue_pair)
{
	struct bb_roce_ops ops = rf_ops;
	static struct rf f;

	ops.complete = end_complete;
	for (uint32_t bad = 0; bad <= 1; bad++) {
		rf_init(&f, BB_ROCE_RC);
		f.attr.adaptive = RF_US;
		rf_start(&f);
		f.qp.ops = &ops;
		f.bad_cookie = 3;
		f.bad = bad != 0 ? BB_SYN_LOCAL_PROT : 0;
		rf_writes(&f, 4);
		rf_ack(&f, RF_PSN + 1 + bad, RF_ACK);
		assert_int_equal(f.qp.state, BB_ROCE_ERR);
		assert_int_equal(bb_roce_deadline(&f.qp), UINT64_MAX);
		assert_fields(f, ndone, 2 + bad, done[1].status, 0);
		assert_int_equal(f.nfailed, 0); /* the caller already knows */
		assert_false(bb_roce_busy(&f.qp));
	}
	/* The answer of a READ that is no longer outstanding. */
	rf_begin(&f);
	f.qp.ops = &ops;
	rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(&f);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN, 0, 0, 1);
	assert_int_equal(f.ndone, 1);
	assert_int_equal(bb_roce_deadline(&f.qp), UINT64_MAX);
}

TEST_MAIN(0)
