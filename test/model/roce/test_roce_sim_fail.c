/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * RC queue pairs that must fail: which side reports which error, when, and what was executed
 * before.
 */
#include "roce_sim.h"

#define ACK_TIMEOUT 14u
#define ACK_NS      (UINT64_C(4096) << ACK_TIMEOUT)
#define RNR_TIMER   12u
#define RNR_NS      (640 * SIM_US) /* RNR timer code 12, table 45 */

struct pair {
	struct sim *s;
	struct sim_qp *q[2];
	uint64_t start;
};

static void
open_pair(struct pair *p, uint64_t seed, uint32_t retry_cnt, uint32_t rnr_retry)
{
	struct bb_roce_attr a;

	p->s = sim_open(seed, 2, seed % 2);
	sim_attr(p->s, &a);
	a.ack_timeout = ACK_TIMEOUT;
	a.min_rnr_timer = RNR_TIMER;
	a.retry_cnt = retry_cnt;
	a.rnr_retry = rnr_retry;
	sim_pair(p->s, &a, 0, p->q);
	p->q[0]->may_fail = p->q[1]->may_fail = true;
	p->start = p->s->now;
}

static void
post(struct sim_qp *q, uint8_t kind, uint32_t len)
{
	struct sim_msg m;

	sim_make(q, &m, kind, len);
	m.flags = 0;
	assert_true(sim_post(q, &m));
}

/* Expects @ok successes, one failure with @status, and flush errors for all other messages. */
static void
expect_failure(const struct pair *p, uint64_t ok, uint8_t status)
{
	const struct sim_qp *q = p->q[0];

	assert_int_equal(q->error, status);
	assert_int_equal(q->ok, ok);
	assert_int_equal(q->done, q->posted);
	assert_true(q->failed && !q->failed_responder);
	assert_int_equal(q->failed_synd, status);
	assert_int_equal(q->qp.state, BB_ROCE_ERR);
	assert_true(bb_roce_deadline(&q->qp) == UINT64_MAX && !bb_roce_busy(&q->qp));
}

static uint64_t
time_of_failure(struct pair *p)
{
	while (!p->q[0]->failed && p->s->now - p->start < 60 * SIM_SEC)
		sim_run(p->s, p->s->now + 10 * SIM_US);
	return p->s->now - p->start;
}

/* All requests are lost: the specified number of attempts, each after its timeout. */
TEST(test_lost_requests_fail_after_all_attempts)
{
	uint32_t retries, i;
	struct pair p;
	uint64_t ns;

	for (retries = 0; retries <= 7; retries++) {
		open_pair(&p, retries, retries, 7);
		p.s->hosts[0].out.loss = 1000000;
		for (i = 0; i < 5; i++)
			post(p.q[0], BB_ROCE_MSG_WRITE, 3000);
		ns = time_of_failure(&p);
		sim_finish(p.s);
		expect_failure(&p, 0, BB_SYN_RETRY_EXC);
		assert_int_equal(p.q[0]->qp.stats.ack_timeout, retries + 1);
		assert_int_equal(p.q[0]->qp.stats.retry_exceeded, 1);
		assert_true(ns >= (retries + 1) * ACK_NS);
		assert_true(ns < (retries + 1) * (ACK_NS + 100 * SIM_US));
		assert_int_equal(p.q[1]->exec, 0);
		sim_close(p.s);
	}
}

/*
 * All requests arrive and all responses are lost: the QP fails, and each message was executed
 * once.
 */
TEST(test_lost_responses_execute_each_message_once)
{
	struct pair p;
	uint8_t kind;

	for (kind = 0; kind < 8; kind++) {
		open_pair(&p, 10 + kind, 7, 7);
		p.s->hosts[1].out.loss = 1000000;
		sim_recvs(p.q[1], 3);
		post(p.q[0], kind, 2000);
		post(p.q[0], kind, 8);
		post(p.q[0], kind, 0);
		sim_finish(p.s);
		expect_failure(&p, 0, BB_SYN_RETRY_EXC);
		assert_int_equal(p.q[1]->exec, 3);
		assert_false(p.q[1]->failed);
		sim_close(p.s);
	}
}

TEST(test_outage_within_the_retries_fails_nothing)
{
	const struct sim_faults dead = {.loss = 1000000}, alive = {0};
	struct pair p;
	uint64_t seed;

	for (seed = 20; seed < 40; seed++) {
		open_pair(&p, seed, 7, 7);
		p.q[0]->may_fail = p.q[1]->may_fail = false;
		sim_recvs(p.q[1], 10);
		p.q[0]->load = (struct sim_load){
			.messages = 500, .kinds = 0xff, .max_len = 4000, .depth = 20};
		sim_run(p.s, p.s->now + 20 * SIM_US + sim_below(&p.s->rng, 40000));
		sim_faults(p.s, &dead);
		sim_run(p.s, p.s->now + 6 * ACK_NS);
		sim_faults(p.s, &alive);
		sim_finish(p.s);
		assert_int_equal(p.q[0]->ok, 500);
		assert_true(p.q[0]->qp.stats.ack_timeout >= 5);
		sim_close(p.s);
	}
}

/*
 * Host @host's link stops accepting packets while @n messages are in flight; if @lossy some of
 * them are being retransmitted. IBTA allows each attempt one to four times the timeout
 * (9.7.6.1.3).
 */
static void
stalled_for_ever(uint64_t seed, uint32_t host, uint8_t kind, uint32_t n, bool lossy)
{
	const uint32_t retries = seed % 3;
	struct pair p;
	uint64_t ns, at;
	uint32_t i;

	open_pair(&p, seed, retries, 7);
	sim_recvs(p.q[1], n);
	if (lossy)
		p.s->hosts[0].out.loss = 300000;
	for (i = 0; i < n; i++)
		post(p.q[0], kind, kind > BB_ROCE_MSG_READ ? 8 : 3000);
	/*
	 * In its first turn a host sends 16 packets: all of twelve messages except SENDs or
	 * WRITEs.
	 */
	if (host == 1 || (kind < BB_ROCE_MSG_READ && n == 12))
		sim_run(p.s, p.s->now + sim_below(&p.s->rng, 2000));
	p.s->hosts[host].out.stalled = UINT64_MAX;
	at = p.s->now;
	ns = time_of_failure(&p) - (at - p.start);
	sim_run(p.s, p.s->now + SIM_MS);
	expect_failure(&p, p.q[0]->ok, BB_SYN_RETRY_EXC);
	assert_true(p.q[0]->ok < n);
	assert_int_equal(p.q[0]->qp.stats.retry_exceeded, 1);
	/* A NAK for a packet that was lost earlier uses up a retry at once. */
	assert_true(lossy || ns > (retries + 1) * ACK_NS - 10 * SIM_US);
	assert_true(ns < (retries + 1) * 4 * ACK_NS + SIM_MS);
	sim_close(p.s);
}

TEST(test_stalled_link_ends_with_retry_exceeded)
{
	static const uint32_t in_flight[] = {1, 5, 12};
	uint64_t seed = 1000;
	uint32_t i, host;
	uint8_t kind;

	for (kind = 0; kind < 8; kind++)
		for (i = 0; i < 3; i++)
			for (host = 0; host < 2; host++, seed++)
				stalled_for_ever(seed, host, kind, in_flight[i], (seed + i) % 2);
}

/*
 * Stalls in both directions, shorter than the retries last: each message is delivered once, in
 * order.
 */
TEST(test_link_stalled_for_less_than_the_retries_loses_nothing)
{
	struct pair p;
	uint64_t seed;

	for (seed = 2000; seed < 2040; seed++) {
		open_pair(&p, seed, 7, 7);
		p.q[0]->may_fail = p.q[1]->may_fail = false;
		sim_recvs(p.q[1], 10);
		p.q[0]->load = (struct sim_load){
			.messages = 300, .kinds = 0xff, .max_len = 4000, .depth = 20};
		p.s->hosts[0].out.loss = p.s->hosts[1].out.loss = seed % 2 * 20000;
		sim_run(p.s, p.s->now + 20 * SIM_US + sim_below(&p.s->rng, 40000));
		p.s->hosts[seed / 2 % 2].out.stalled = p.s->now + 6 * ACK_NS;
		if (seed % 3 == 0)
			p.s->hosts[0].out.stalled = p.s->hosts[1].out.stalled =
				p.s->now + 5 * ACK_NS;
		sim_finish(p.s);
		assert_int_equal(p.q[0]->ok, 300);
		assert_true(p.s->stats.full != 0);
		assert_true(p.q[0]->qp.stats.ack_timeout >= 1);
		sim_close(p.s);
	}
}

TEST(test_rnr_retries_end_in_their_error)
{
	static const uint8_t kinds[] = {BB_ROCE_MSG_SEND, BB_ROCE_MSG_SEND_IMM,
					BB_ROCE_MSG_WRITE_IMM};
	uint32_t retries;
	struct pair p;
	uint64_t ns;

	for (retries = 0; retries < 7; retries++) {
		open_pair(&p, 50 + retries, 7, retries);
		sim_recvs(p.q[1], 1);
		post(p.q[0], BB_ROCE_MSG_SEND, 1500);
		post(p.q[0], kinds[retries % 3], 1500);
		post(p.q[0], BB_ROCE_MSG_READ, 100);
		p.q[1]->recv_delay = SIM_HOUR;
		ns = time_of_failure(&p);
		sim_finish(p.s);
		expect_failure(&p, 1, BB_SYN_RNR_RETRY_EXC);
		assert_int_equal(p.q[0]->qp.stats.rnr_nak_retry, retries + 1);
		assert_int_equal(p.q[0]->qp.stats.rnr_retry_exceeded, 1);
		assert_int_equal(p.q[0]->qp.stats.ack_timeout, 0);
		assert_true(ns >= retries * RNR_NS);
		assert_int_equal(p.q[1]->exec, 1);
		sim_close(p.s);
	}
}

/* Without an ack timeout, only an answer makes the requester send the packet again. */
TEST(test_send_whose_key_is_in_use_completes_without_ack_timeout)
{
	struct bb_roce_attr a;
	struct pair p;

	p.s = sim_open(61, 2, false);
	sim_attr(p.s, &a);
	a.ack_timeout = 0;
	a.adaptive = 0;
	sim_pair(p.s, &a, 0, p.q);
	sim_recvs(p.q[1], 1);
	p.q[1]->busy = 2;
	post(p.q[0], BB_ROCE_MSG_SEND_INV, 1500);
	sim_run(p.s, p.s->now + SIM_SEC);
	assert_int_equal(p.q[0]->ok, 1);
	assert_int_equal(p.q[0]->qp.stats.rnr_nak_retry, 2);
	assert_int_equal(p.q[1]->exec, 1);
	sim_close(p.s);
}

TEST(test_rnr_retry_7_has_no_limit)
{
	struct pair p;

	open_pair(&p, 60, 7, 7);
	p.q[0]->may_fail = false;
	post(p.q[0], BB_ROCE_MSG_SEND, 1500);
	sim_run(p.s, p.s->now + 60 * SIM_SEC);
	assert_int_equal(p.q[0]->done, 0);
	assert_true(p.q[0]->qp.stats.rnr_nak_retry > 60 * SIM_SEC / (RNR_NS + 100 * SIM_US));
	sim_recvs(p.q[1], 1);
	sim_finish(p.s);
	assert_int_equal(p.q[0]->ok, 1);
	sim_close(p.s);
}

/* The key does not cover the memory: older messages succeed, and no later one is executed. */
static void
refused(uint64_t seed, uint8_t kind, uint32_t loss)
{
	struct sim_faults f = {.loss = loss};
	struct sim_msg m;
	struct pair p;

	open_pair(&p, seed, 7, 7);
	sim_faults(p.s, &f);
	post(p.q[0], BB_ROCE_MSG_WRITE, 5000);
	post(p.q[0], BB_ROCE_MSG_READ, 5000);
	sim_make(p.q[0], &m, kind, 3000);
	m.off = p.q[1]->size - m.len + (m.len == 8 ? 8 : 1);
	assert_true(sim_post(p.q[0], &m));
	post(p.q[0], BB_ROCE_MSG_WRITE, 100);
	sim_finish(p.s);
	assert_true(p.q[1]->failed && p.q[1]->failed_responder);
	assert_int_equal(p.q[1]->failed_synd, BB_SYN_REMOTE_ACCESS);
	assert_int_equal(p.q[1]->exec, 2);
	/* A lost NAK is not repeated, because the peer is in ERR. */
	if (loss == 0 || p.q[0]->error != BB_SYN_RETRY_EXC) {
		expect_failure(&p, 2, BB_SYN_REMOTE_ACCESS);
	} else {
		assert_true(p.q[0]->ok <= 2);
		assert_int_equal(p.q[0]->done, 4);
	}
	sim_close(p.s);
}

TEST(test_refused_request_fails_both_sides)
{
	static const uint8_t kinds[] = {BB_ROCE_MSG_READ, BB_ROCE_MSG_CMP_SWAP,
					BB_ROCE_MSG_FETCH_ADD};
	uint64_t i;

	for (i = 0; i < 3; i++)
		refused(70 + i, kinds[i], 0);
	for (i = 0; i < 150; i++)
		refused(100 + i, kinds[i % 3], 150000);
}

/* A message longer than its receive: both sides fail, the requester with an invalid request. */
TEST(test_message_over_its_receive_fails_both_sides)
{
	struct pair p;
	uint32_t len;

	for (len = 1001; len < 6000; len += 999) {
		open_pair(&p, 300 + len, 7, 7);
		p.q[1]->recv_size = 1000;
		sim_recvs(p.q[1], 4);
		post(p.q[0], BB_ROCE_MSG_SEND, 1000);
		post(p.q[0], BB_ROCE_MSG_SEND, len);
		post(p.q[0], BB_ROCE_MSG_SEND, 1);
		sim_finish(p.s);
		expect_failure(&p, 1, BB_SYN_REMOTE_INVAL_REQ);
		assert_true(p.q[1]->failed && p.q[1]->failed_responder);
		assert_int_equal(p.q[1]->received, 2);
		assert_int_equal(p.q[1]->qp.stats.resp_local_length, 1);
		sim_close(p.s);
	}
}

TEST_MAIN(0)
