/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The completer of the RoCEv2 engine: answers, losses and time. */
#include "roce_req_fake.h"

static void
start(struct rf *f)
{
	rf_init(f, BB_ROCE_RC);
	rf_start(f);
}

/* @n WRITEs of one packet each, sent. */
static void
writes(struct rf *f, uint32_t n)
{
	while (n-- != 0)
		rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(f);
	f->seen = f->ntx;
}

static void
timeout(struct rf *f)
{
	assert_int_not_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
	f->now = bb_roce_deadline(&f->qp);
	bb_roce_tick(&f->qp, f->now - 1);
	assert_int_equal(bb_roce_deadline(&f->qp), f->now); /* not before its time */
	bb_roce_tick(&f->qp, f->now);
}

static void
atomic_ack(struct rf *f, uint32_t psn, uint64_t orig)
{
	rf_rx(f, BB_ROCE_ATOMIC_ACK, psn, (struct bb_roce_pkt){.syndrome = RF_ACK, .orig = orig});
}

/* One ACK is for all before it, in the order of posting, over the wrap of PSNs. */
static void
test_ack(void **state)
{
	static struct rf f;

	(void)state;
	rf_init(&f, BB_ROCE_RC);
	f.attr.sq_psn = 0xfffffe;
	rf_start(&f);
	writes(&f, 5);
	rf_post(&f, BB_ROCE_MSG_SEND, 3 * RF_MTU, 0);
	rf_run(&f);
	f.seen = f.ntx;
	rf_ack(&f, 0xfffffe, RF_ACK);
	rf_expect_done(&f, 0, 1, 0);
	rf_ack(&f, 1, RF_ACK);
	rf_expect_done(&f, 0, 4, 0);
	rf_ack(&f, 4, RF_ACK);
	rf_expect_done(&f, 0, 5, 0);
	rf_ack(&f, 5, RF_ACK);
	rf_expect_idle(&f);
}

/* Answers for what was not sent, or is done. */
static void
test_ghosts(void **state)
{
	static const uint8_t ops[] = {BB_ROCE_ACK, BB_ROCE_READ_RESP_ONLY, BB_ROCE_ATOMIC_ACK,
				      BB_ROCE_READ_RESP_MIDDLE};
	static struct rf f;
	uint32_t i, psn;

	(void)state;
	start(&f);
	writes(&f, 4);
	rf_ack(&f, RF_PSN + 1, RF_ACK);
	for (i = 0; i < 4; i++) {
		for (psn = 0; psn < 1 << 24; psn += 1 + psn / 2) {
			if (psn == 2 || psn == 3) /* waited for */
				continue;
			rf_rx(&f, ops[i], RF_PSN + psn,
			      (struct bb_roce_pkt){.syndrome = RF_NAK(2)});
			rf_rx(&f, ops[i], RF_PSN - psn, (struct bb_roce_pkt){.syndrome = 0xff});
		}
		rf_rx(&f, ops[i], RF_PSN + 4, (struct bb_roce_pkt){.syndrome = RF_ACK});
	}
	assert_true(f.qp.stats.drop_ghost > 100);
	rf_expect_done(&f, 0, 2, 0);
	rf_ack(&f, RF_PSN + 3, RF_ACK);
	rf_expect_idle(&f);
}

/* A READ's data, with what else a queue pair can have under way. */
static void
test_read(void **state)
{
	static struct rf f;

	(void)state;
	start(&f);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 2 * RF_MTU + 5, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 0, 0);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(&f);
	f.seen = f.ntx;
	/* It acknowledges the WRITE. */
	rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 1, 1, 0, RF_MTU);
	rf_expect_done(&f, 0, 1, 0);
	rf_data(&f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 2, 1, RF_MTU, RF_MTU);
	/* Twice: once only is it placed. */
	rf_data(&f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 2, 1, RF_MTU, RF_MTU);
	rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 1, 1, 0, RF_MTU);
	assert_int_equal(f.placed, 2 * RF_MTU);
	assert_int_equal(f.qp.stats.drop_ghost, 2);
	rf_data(&f, BB_ROCE_READ_RESP_LAST, RF_PSN + 3, 1, 2 * RF_MTU, 5);
	rf_expect_done(&f, 0, 2, 0);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 4, 2, 0, 1);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 5, 3, 0, 0);
	rf_expect_done(&f, 0, 4, 0);
	rf_ack(&f, RF_PSN + 6, RF_ACK);
	rf_expect_idle(&f);
}

/* A READ of three packets; @n of them came. The next is as in the arguments: refused. */
static void
bad_read(uint32_t n, uint8_t opcode, uint32_t len, uint8_t syndrome)
{
	static uint8_t data[8192];
	static struct rf f;

	start(&f);
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

static void
test_bad_read(void **state)
{
	static const uint8_t good[] = {BB_ROCE_READ_RESP_FIRST, BB_ROCE_READ_RESP_MIDDLE,
				       BB_ROCE_READ_RESP_LAST};
	static const uint32_t lens[] = {RF_MTU, RF_MTU, 5};
	uint32_t n, op;

	(void)state;
	for (n = 0; n < 3; n++) {
		for (op = BB_ROCE_READ_RESP_FIRST; op <= BB_ROCE_READ_RESP_ONLY; op++)
			if (op != good[n])
				bad_read(n, (uint8_t)op, lens[n], RF_ACK);
		bad_read(n, good[n], lens[n] - 1, RF_ACK);
		bad_read(n, good[n], lens[n] + 1, RF_ACK);
		bad_read(n, good[n], 0, RF_ACK);
		bad_read(n, good[n], 4096, RF_ACK);
		bad_read(n, BB_ROCE_ATOMIC_ACK, 0, RF_ACK);
		if (n != 1) { /* a middle one has no AETH */
			bad_read(n, good[n], lens[n], RF_NAK(0));
			bad_read(n, good[n], lens[n], BB_ROCE_AETH_RNR);
			bad_read(n, good[n], lens[n], 0x5f);
			bad_read(n, good[n], lens[n], 0x80);
		}
	}
}

/* Answers of another kind than the request, and codes that nobody has given a meaning. */
static void
test_bad_kind(void **state)
{
	static const uint8_t synds[] = {RF_NAK(4), RF_NAK(5), RF_NAK(31), 0x40, 0x5f,
					0x80,      0x9f,      0xa0,       0xff};
	static struct rf f;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(synds); i++) {
		start(&f);
		writes(&f, 2);
		rf_ack(&f, RF_PSN, synds[i]);
		rf_expect_failed(&f, 0, 0, BB_SYN_BAD_RESP);
	}
	start(&f);
	writes(&f, 2);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 1, 0, 1);
	rf_expect_failed(&f, 0, 1, BB_SYN_BAD_RESP);
	start(&f);
	writes(&f, 2);
	atomic_ack(&f, RF_PSN, 1);
	rf_expect_failed(&f, 0, 0, BB_SYN_BAD_RESP);
	start(&f);
	rf_post(&f, BB_ROCE_MSG_CMP_SWAP, 8, 0);
	rf_run(&f);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN, 0, 0, 8);
	rf_expect_failed(&f, 0, 0, BB_SYN_BAD_RESP);
}

/* An ACK does not answer a READ or an atomic; one for something behind it says it got lost. */
static void
test_implied_nak(void **state)
{
	static struct rf f;

	(void)state;
	start(&f);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 2, 0);
	rf_post(&f, BB_ROCE_MSG_FETCH_ADD, 8, 0);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(&f);
	f.seen = f.ntx;
	rf_ack(&f, RF_PSN + 1, RF_ACK);
	rf_expect_done(&f, 0, 1, 0);
	assert_false(bb_roce_busy(&f.qp));
	rf_ack(&f, RF_PSN + 3, RF_ACK);
	assert_int_equal(f.qp.stats.implied_nak_seq, 1);
	assert_true(bb_roce_busy(&f.qp));
	rf_run(&f);
	rf_expect(&f, BB_ROCE_READ_REQUEST, RF_PSN + 1);
	rf_expect(&f, BB_ROCE_FETCH_ADD, RF_PSN + 2);
	rf_expect(&f, BB_ROCE_WRITE_ONLY, RF_PSN + 3);
	assert_int_equal(f.qp.stats.retransmitted, 3);
	/* The same news again, while that is under way. */
	atomic_ack(&f, RF_PSN + 2, 9);
	rf_ack(&f, RF_PSN + 3, RF_ACK);
	assert_int_equal(rf_run(&f), 0);
	assert_int_equal(f.qp.stats.implied_nak_seq, 1);
	assert_int_equal(f.orig, 0);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 1, 0, 2);
	rf_ack(&f, RF_PSN + 3, RF_ACK); /* and this is news: the atomic's got lost */
	assert_int_equal(f.qp.stats.implied_nak_seq, 2);
	rf_run(&f);
	rf_expect(&f, BB_ROCE_FETCH_ADD, RF_PSN + 2);
	rf_expect(&f, BB_ROCE_WRITE_ONLY, RF_PSN + 3);
	atomic_ack(&f, RF_PSN + 2, 9);
	assert_int_equal(f.orig, 9);
	rf_ack(&f, RF_PSN + 3, RF_ACK);
	rf_expect_idle(&f);
}

/* A READ goes on where it was when a part of its response is lost. */
static void
test_read_resumed(void **state)
{
	const struct bb_roce_pkt *pkt;
	static struct rf f;
	uint32_t stale;

	(void)state;
	for (stale = 0; stale < 2; stale++) {
		start(&f);
		rf_post(&f, BB_ROCE_MSG_READ, 10 * RF_MTU, 0);
		rf_run(&f);
		rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN, 0, 0, RF_MTU);
		rf_data(&f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 1, 0, RF_MTU, RF_MTU);
		rf_data(&f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 4, 0, 4 * RF_MTU, RF_MTU);
		assert_int_equal(f.placed, 2 * RF_MTU);
		assert_int_equal(f.qp.stats.implied_nak_seq, 1);
		rf_run(&f);
		rf_expect(&f, BB_ROCE_READ_REQUEST, RF_PSN);
		pkt = rf_expect(&f, BB_ROCE_READ_REQUEST, RF_PSN + 2);
		assert_int_equal(pkt->va, RF_RADDR + 2 * RF_MTU);
		assert_int_equal(pkt->dmalen, 8 * RF_MTU);
		rf_expect_none(&f);
		/* What comes late of the first is as good as what comes for the second. */
		rf_data(&f, stale ? BB_ROCE_READ_RESP_MIDDLE : BB_ROCE_READ_RESP_FIRST, RF_PSN + 2,
			0, 2 * RF_MTU, RF_MTU);
		rf_data(&f, BB_ROCE_READ_RESP_MIDDLE, RF_PSN + 3, 0, 3 * RF_MTU, RF_MTU);
		assert_int_equal(f.placed, 4 * RF_MTU);
		/* But a response begins only where it was asked to. */
		rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 4, 0, 4 * RF_MTU, RF_MTU);
		rf_expect_failed(&f, 0, 0, BB_SYN_BAD_RESP);
	}
	/* Its last packet alone. */
	start(&f);
	rf_post(&f, BB_ROCE_MSG_READ, RF_MTU + 7, 0);
	rf_run(&f);
	rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN, 0, 0, RF_MTU);
	timeout(&f);
	rf_run(&f);
	assert_int_equal(f.tx[1].pkt.dmalen, 7);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 0, RF_MTU, 7);
	f.seen = f.ntx;
	rf_expect_idle(&f);
	/* READs do not count twice when they are sent again. */
	rf_init(&f, BB_ROCE_RC);
	f.attr.max_rd_atomic = 2;
	rf_start(&f);
	rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
	assert_int_equal(rf_run(&f), 2);
	timeout(&f);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN, 0, 0, 1); /* late, not asked again yet */
	assert_int_equal(rf_run(&f), 2);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 1, 1, 0, 1);
	rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN + 2, 2, 0, 1);
	f.seen = f.ntx;
	rf_expect_idle(&f);
	assert_int_equal(f.qp.req.rd_atomic, 0);
}

static void
test_nak_sequence(void **state)
{
	static struct rf f;
	uint32_t i;

	(void)state;
	start(&f);
	writes(&f, 5);
	rf_ack(&f, RF_PSN + 2, RF_NAK(BB_ROCE_NAK_PSN));
	rf_expect_done(&f, 0, 2, 0);
	/* Once more, before and after it was followed. */
	rf_ack(&f, RF_PSN + 2, RF_NAK(BB_ROCE_NAK_PSN));
	assert_int_equal(rf_run(&f), 3);
	rf_ack(&f, RF_PSN + 2, RF_NAK(BB_ROCE_NAK_PSN));
	assert_int_equal(rf_run(&f), 0);
	assert_int_equal(f.qp.stats.packet_seq_err, 1);
	for (i = 2; i < 5; i++)
		rf_expect(&f, BB_ROCE_WRITE_ONLY, RF_PSN + i);
	rf_ack(&f, RF_PSN + 4, RF_ACK);
	rf_expect_idle(&f);
	/* In the middle of a message. */
	rf_post(&f, BB_ROCE_MSG_WRITE, 4 * RF_MTU, 0);
	rf_run(&f);
	f.seen = f.ntx;
	rf_ack(&f, RF_PSN + 7, RF_NAK(BB_ROCE_NAK_PSN));
	rf_run(&f);
	rf_expect(&f, BB_ROCE_WRITE_MIDDLE, RF_PSN + 7);
	assert_int_equal(f.tx[f.seen - 1].payload[3], rf_byte(5, 2 * RF_MTU + 3));
	rf_expect(&f, BB_ROCE_WRITE_LAST, RF_PSN + 8);
	/* What was sent first came after all, while it is being sent again. */
	timeout(&f);
	assert_int_equal(bb_roce_run(&f.qp, 1, f.now), 1);
	rf_expect(&f, BB_ROCE_WRITE_MIDDLE, RF_PSN + 7);
	rf_ack(&f, RF_PSN + 8, RF_ACK);
	rf_expect_idle(&f);
}

/* A NAK that tells of progress costs nothing; seven without are followed, the eighth is not. */
static void
test_retry_count(void **state)
{
	static struct rf f;
	uint32_t i;

	(void)state;
	start(&f);
	writes(&f, 20);
	for (i = 0; i < 20; i++) {
		rf_ack(&f, RF_PSN + i, RF_NAK(BB_ROCE_NAK_PSN));
		assert_int_equal(rf_run(&f), 20 - i);
		if (i % 2 == 0) {
			timeout(&f);
			rf_run(&f);
		}
	}
	assert_int_equal(f.nfailed, 0);
	for (i = 0; i < 3; i++) { /* of the seven one went with the NAK */
		timeout(&f);
		assert_int_equal(rf_run(&f), 1);
		rf_ack(&f, RF_PSN + 19, RF_NAK(BB_ROCE_NAK_PSN));
		assert_int_equal(rf_run(&f), 1);
	}
	timeout(&f);
	rf_expect_failed(&f, 0, 19, BB_SYN_RETRY_EXC);
	assert_int_equal(f.qp.stats.retry_exceeded, 1);
}

static void
test_timeout(void **state)
{
	static struct rf f;
	uint32_t retries, i;

	(void)state;
	for (retries = 0; retries <= 7; retries += 7) {
		rf_init(&f, BB_ROCE_RC);
		f.attr.retry_cnt = retries;
		rf_start(&f);
		writes(&f, 2);
		for (i = 0; i < retries; i++) {
			assert_int_equal(bb_roce_deadline(&f.qp), f.now + RF_TIMEOUT);
			timeout(&f);
			assert_int_equal(bb_roce_deadline(&f.qp), UINT64_MAX);
			f.now += 5 * RF_TIMEOUT; /* it does not run while nothing is out */
			assert_int_equal(rf_run(&f), 2);
			rf_expect(&f, BB_ROCE_WRITE_ONLY, RF_PSN);
			rf_expect(&f, BB_ROCE_WRITE_ONLY, RF_PSN + 1);
		}
		timeout(&f);
		rf_expect_failed(&f, 0, 0, BB_SYN_RETRY_EXC);
		assert_int_equal(f.qp.stats.ack_timeout, retries + 1);
	}
	/* From the last progress on; later packets do not put it off. */
	start(&f);
	writes(&f, 2);
	f.now += 1000;
	writes(&f, 1);
	assert_int_equal(bb_roce_deadline(&f.qp), f.now - 1000 + RF_TIMEOUT);
	rf_ack(&f, RF_PSN, RF_ACK);
	assert_int_equal(bb_roce_deadline(&f.qp), f.now + RF_TIMEOUT);
	f.now += 1000;
	rf_ack(&f, RF_PSN, RF_ACK); /* nothing new */
	assert_int_equal(bb_roce_deadline(&f.qp), f.now - 1000 + RF_TIMEOUT);
	rf_ack(&f, RF_PSN + 2, RF_ACK);
	rf_expect_idle(&f);
	/* By code; 0 waits for ever. */
	for (i = 0; i < 32; i++) {
		rf_init(&f, BB_ROCE_RC);
		f.attr.ack_timeout = i;
		rf_start(&f);
		writes(&f, 1);
		assert_int_equal(bb_roce_deadline(&f.qp),
				 i == 0 ? UINT64_MAX : f.now + (UINT64_C(4096) << i));
	}
	/* Progress gives all retries back. */
	start(&f);
	writes(&f, 3);
	for (i = 0; i < 21; i++) {
		if (i % 7 == 0 && i > 0)
			rf_ack(&f, RF_PSN + i / 7 - 1, RF_ACK);
		timeout(&f);
		assert_int_equal(rf_run(&f), 3 - i / 7);
	}
	assert_int_equal(f.nfailed, 0);
}

static void
test_rnr(void **state)
{
	/* 9.7.5.2.8 table 45, in microseconds. */
	static const uint32_t us[] = {
		655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,    320,
		480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
		20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};
	static struct rf f;
	uint32_t i;

	(void)state;
	start(&f); /* with 7 retries: any number */
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(&f, BB_ROCE_MSG_SEND, 1, 0);
	rf_post(&f, BB_ROCE_MSG_SEND, 1, 0);
	rf_run(&f);
	f.seen = f.ntx;
	for (i = 0; i < 32; i++) {
		f.now += 777;
		rf_ack(&f, RF_PSN + 1, (uint8_t)(BB_ROCE_AETH_RNR | i));
		rf_expect_done(&f, 0, 1, 0);
		assert_int_equal(bb_roce_deadline(&f.qp), f.now + us[i] * RF_US);
		assert_false(bb_roce_busy(&f.qp));
		/* The peer drops what is behind it, and may say so. */
		rf_ack(&f, RF_PSN + 1, RF_NAK(BB_ROCE_NAK_PSN));
		rf_ack(&f, RF_PSN + 1, BB_ROCE_AETH_RNR);
		assert_int_equal(rf_run(&f), 0);
		assert_int_equal(bb_roce_deadline(&f.qp), f.now + us[i] * RF_US);
		timeout(&f);
		assert_int_equal(bb_roce_deadline(&f.qp), UINT64_MAX);
		assert_int_equal(rf_run(&f), 2);
		rf_expect(&f, BB_ROCE_SEND_ONLY, RF_PSN + 1);
		rf_expect(&f, BB_ROCE_SEND_ONLY, RF_PSN + 2);
	}
	assert_int_equal(f.qp.stats.rnr_nak_retry, 32);
	assert_int_equal(f.qp.stats.packet_seq_err, 0);
	rf_ack(&f, RF_PSN + 2, RF_ACK);
	rf_expect_idle(&f);
	/* A late answer ends the wait. */
	writes(&f, 1);
	rf_ack(&f, RF_PSN + 3, BB_ROCE_AETH_RNR);
	rf_ack(&f, RF_PSN + 3, RF_ACK);
	rf_expect_idle(&f);
}

static void
test_rnr_count(void **state)
{
	static struct rf f;
	uint32_t retries, i, done;

	(void)state;
	for (retries = 0; retries < 7; retries += 3) {
		rf_init(&f, BB_ROCE_RC);
		f.attr.rnr_retry = retries;
		rf_start(&f);
		writes(&f, 3);
		for (done = 0; done < 3; done++) { /* all again after each message */
			for (i = 0; i < retries; i++) {
				rf_ack(&f, RF_PSN + done, BB_ROCE_AETH_RNR | 1);
				timeout(&f);
				assert_int_equal(rf_run(&f), 3 - done);
			}
			if (done < 2)
				rf_ack(&f, RF_PSN + done, RF_ACK);
		}
		rf_ack(&f, RF_PSN + 2, BB_ROCE_AETH_RNR | 1);
		rf_expect_failed(&f, 0, 2, BB_SYN_RNR_RETRY_EXC);
		assert_int_equal(f.qp.stats.rnr_retry_exceeded, 1);
		assert_int_equal(f.qp.stats.rnr_nak_retry, 3 * retries + 1);
	}
}

/* The message that is named fails, those before it have been done, those behind are flushed. */
static void
test_nak_fatal(void **state)
{
	static const struct {
		uint8_t nak, synd;
	} fatal[] = {
		{BB_ROCE_NAK_INVALID, BB_SYN_REMOTE_INVAL_REQ},
		{BB_ROCE_NAK_ACCESS, BB_SYN_REMOTE_ACCESS},
		{BB_ROCE_NAK_OP, BB_SYN_REMOTE_OP},
	};
	static struct rf f;
	uint32_t i, k;

	(void)state;
	for (i = 0; i < 3; i++) {
		start(&f);
		writes(&f, 2);
		rf_post(&f, BB_ROCE_MSG_SEND, 3 * RF_MTU, 0);
		rf_post(&f, BB_ROCE_MSG_READ, 3 * RF_MTU, 0);
		rf_run(&f);
		rf_ack(&f, RF_PSN + 3, RF_NAK(fatal[i].nak)); /* of its second packet */
		rf_expect_failed(&f, 0, 2, fatal[i].synd);
		bb_roce_qp_flush(&f.qp, BB_SYN_WR_FLUSH);
		assert_int_equal(f.ndone, 4);
		assert_int_equal(f.done[3].cookie, 3);
		assert_int_equal(f.done[3].status, BB_SYN_WR_FLUSH);
		/* Of a READ, whatever packet of it. */
		for (k = 0; k < 3; k++) {
			start(&f);
			writes(&f, 1);
			rf_post(&f, BB_ROCE_MSG_READ, 3 * RF_MTU, 0);
			rf_run(&f);
			rf_ack(&f, RF_PSN + 1 + k, RF_NAK(fatal[i].nak));
			rf_expect_failed(&f, 0, 1, fatal[i].synd);
		}
		/* Not before the READ that is still to be answered. */
		start(&f);
		rf_post(&f, BB_ROCE_MSG_READ, 1, 0);
		writes(&f, 1);
		rf_ack(&f, RF_PSN + 1, RF_NAK(fatal[i].nak));
		assert_int_equal(f.ndone, 0);
		assert_int_equal(f.qp.stats.implied_nak_seq, 1);
		assert_int_equal(rf_run(&f), 2);
		rf_data(&f, BB_ROCE_READ_RESP_ONLY, RF_PSN, 0, 0, 1);
		rf_ack(&f, RF_PSN + 1, RF_NAK(fatal[i].nak));
		rf_expect_failed(&f, 0, 1, fatal[i].synd);
	}
}

static void
test_local_error(void **state)
{
	static struct rf f;

	(void)state;
	start(&f);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_post(&f, BB_ROCE_MSG_READ, 2 * RF_MTU, 0);
	rf_run(&f);
	rf_data(&f, BB_ROCE_READ_RESP_FIRST, RF_PSN + 1, 1, 0, RF_MTU);
	f.bad_cookie = 1;
	f.bad = BB_SYN_LOCAL_PROT;
	rf_data(&f, BB_ROCE_READ_RESP_LAST, RF_PSN + 2, 1, RF_MTU, RF_MTU);
	rf_expect_failed(&f, 0, 1, BB_SYN_LOCAL_PROT);
	start(&f);
	f.bad_cookie = 0;
	f.bad = BB_SYN_LOCAL_ACCESS;
	rf_post(&f, BB_ROCE_MSG_FETCH_ADD, 8, 0);
	rf_run(&f);
	atomic_ack(&f, RF_PSN, 1);
	rf_expect_failed(&f, 0, 0, BB_SYN_LOCAL_ACCESS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ack),          cmocka_unit_test(test_ghosts),
		cmocka_unit_test(test_read),         cmocka_unit_test(test_bad_read),
		cmocka_unit_test(test_bad_kind),     cmocka_unit_test(test_implied_nak),
		cmocka_unit_test(test_read_resumed), cmocka_unit_test(test_nak_sequence),
		cmocka_unit_test(test_retry_count),  cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_rnr),          cmocka_unit_test(test_rnr_count),
		cmocka_unit_test(test_nak_fatal),    cmocka_unit_test(test_local_error),
	};

	return cmocka_run_group_tests_name("roce_comp", tests, NULL, NULL);
}
