/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A turn of an engine executes a limited number of bytes, of all its QPs together, so that a
 * program with other work is not held up. Later turns execute the rest, and no QP starves.
 */
#include <unistd.h>

#include "../soft_rig.h"

#define MTU     1024u
#define PACKETS 2048u /* SOFT_TURN_PACKETS */
#define LONG    (1u << 20)
/* Messages that a turn executes at most, the last one beyond the limit. */
#define PER_TURN       (PACKETS * MTU / LONG + 1)
#define REQUESTS       16u
#define PAIRS          30u
#define TURNS          100u
#define ACK_TIMEOUT_US 110000u /* more than SOFT_PEER_CHECK_NS */

static const struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 4, .log_stride = 6, .uidx = 9};

static void
memory(struct rig_pair *p, struct rig_mem *from, struct rig_mem *to)
{
	rig_mem_open(from, &p->d, NULL, LONG, RIG_ALL);
	rig_mem_open(to, &p->d, NULL, LONG, RIG_ALL);
	memset(from->p, 0x5a, LONG);
}

enum kind {
	WRITE,
	WRITE_TWO, /* two SGEs: not for the fast path */
	READ,
	SEND,
	KINDS
};

static void
post(struct rig_qp *q, enum kind kind, const struct rig_mem *from, const struct rig_mem *to)
{
	switch (kind) {
	case WRITE:
		rig_write(q, from, 0, LONG, to, 0, RIG_CQE);
		break;
	case WRITE_TWO:
		rig_raddr(q, (uintptr_t)to->p, to->mr->rkey);
		rig_data(q, 2, from, 0, LONG / 2);
		rig_data(q, 3, from, LONG / 2, LONG / 2);
		rig_wqe(q, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 4, 0);
		break;
	case READ:
		rig_read(q, to, 0, LONG, from, 0, RIG_CQE);
		break;
	default:
		rig_send(q, from, 0, LONG, RIG_CQE);
		break;
	}
}

RIG_TEST(test_turn_executes_a_limited_number_of_bytes_of_one_qp, NULL)
{
	struct rig_mem from, to;
	uint32_t kind, i, n, done, turns;

	memory(p, &from, &to);
	for (kind = 0; kind < KINDS; kind++) {
		memset(to.p, 0, LONG);
		for (i = 0; i < REQUESTS; i++) {
			if (kind == SEND)
				rig_recv(&p->b, &to, 0, LONG);
			post(&p->a, kind, &from, &to);
		}
		rig_ring(&p->a);
		for (done = 0, turns = 0; done < REQUESTS; done += n, turns++) {
			rig_poll(&p->ua);
			n = rig_completed(&p->ca);
			assert_in_range(n, 1, PER_TURN);
		}
		assert_int_equal(done, REQUESTS);
		assert_true(turns >= REQUESTS / PER_TURN);
		assert_int_equal(rig_completed(&p->cb), kind == SEND ? REQUESTS : 0);
		assert_memory_equal(to.p, from.p, LONG);
	}
	rig_mem_close(&from);
	rig_mem_close(&to);
}

RIG_TEST(test_short_request_of_another_qp_waits_for_few_turns, NULL)
{
	struct rig_mem from, to;
	uint32_t i;

	memory(p, &from, &to);
	for (i = 0; i < REQUESTS; i++)
		post(&p->a, WRITE, &from, &to);
	rig_ring(&p->a);
	rig_poll(&p->ua);
	rig_write(&p->b, &p->mb, 0, 8, &p->ma, 0, RIG_CQE);
	rig_ring(&p->b);
	rig_polls(&p->ua, 3);
	assert_int_equal(rig_completed(&p->cb), 1);
	assert_in_range(rig_completed(&p->ca), 1, 4 * PER_TURN);
	rig_polls(&p->ua, TURNS);
	rig_mem_close(&from);
	rig_mem_close(&to);
}

/* QPs on the engine of a whose peers are on the engine of b. */
struct pairs {
	struct rig_qp x[PAIRS], y[PAIRS];
	struct rig_mem from, to;
};

static void
pairs_open(struct rig_pair *p, struct pairs *s)
{
	struct rig_link l = rig_link_default();
	uint32_t i;

	l.retry = 7;
	memory(p, &s->from, &s->to);
	for (i = 0; i < PAIRS; i++) {
		rig_qp_open(&s->x[i], p->u[0], &p->ca, &p->ca, &attr);
		rig_qp_open(&s->y[i], p->u[1], &p->cb, &p->cb, &attr);
		rig_connect(&s->x[i], &s->y[i], &l);
	}
}

static void
pairs_close(struct pairs *s)
{
	uint32_t i;

	for (i = 0; i < PAIRS; i++) {
		rig_qp_close(&s->x[i]);
		rig_qp_close(&s->y[i]);
	}
	rig_mem_close(&s->from);
	rig_mem_close(&s->to);
}

RIG_TEST(test_turn_executes_a_limited_number_of_bytes_of_all_qps, NULL)
{
	struct pairs s;
	uint32_t i, n, done = 0;

	pairs_open(p, &s);
	for (i = 0; i < PAIRS; i++) {
		post(&s.x[i], WRITE, &s.from, &s.to);
		rig_ring(&s.x[i]);
	}
	for (; done < PAIRS; done += n) {
		rig_poll(&p->ua);
		n = rig_completed(&p->ca);
		assert_in_range(n, 1, PER_TURN);
	}
	pairs_close(&s);
}

/* Puts a SEND of each pair in the inbox of the engine of b. */
static void
send_to_b(struct rig_pair *p, struct pairs *s)
{
	uint32_t i;

	for (i = 0; i < PAIRS; i++) {
		rig_recv(&s->y[i], &s->to, 0, LONG);
		post(&s->x[i], SEND, &s->from, &s->to);
		rig_ring(&s->x[i]);
		rig_polls(p->u[0], 2);
	}
}

RIG_TEST_TWO(test_turn_executes_a_limited_number_of_bytes_for_other_engines, NULL)
{
	struct pairs s;
	uint32_t n, done = 0;

	pairs_open(p, &s);
	send_to_b(p, &s);
	for (; done < PAIRS; done += n) {
		rig_poll(p->u[1]);
		n = rig_completed(&p->cb);
		assert_in_range(n, 1, PER_TURN);
	}
	assert_memory_equal(s.to.p, s.from.p, LONG);
	rig_polls(p->u[0], TURNS);
	assert_int_equal(rig_completed(&p->ca), PAIRS);
	pairs_close(&s);
}

/*
 * Each poll of the requesters comes after their ack timeout. The last SENDs wait for more polls
 * than the QPs have retries.
 */
RIG_TEST_TWO(test_sends_that_wait_for_turns_of_the_target_use_no_retries, NULL)
{
	struct pairs s;
	uint32_t done = 0;

	pairs_open(p, &s);
	send_to_b(p, &s);
	while (done < PAIRS) {
		rig_poll(p->u[1]);
		assert_in_range(rig_completed(&p->cb), 1, PER_TURN);
		usleep(ACK_TIMEOUT_US);
		rig_poll(p->u[0]);
		done += rig_completed(&p->ca);
	}
	pairs_close(&s);
}

RIG_TEST_TWO(test_requests_of_other_engines_do_not_starve_an_engine, NULL)
{
	struct pairs s;
	struct rig_cqe e;

	pairs_open(p, &s);
	send_to_b(p, &s);
	rig_write(&p->b, &p->mb, 0, 8, &p->ma, 0, RIG_CQE);
	rig_ring(&p->b);
	rig_polls(p->u[1], 2);
	do {
		assert_true(rig_cqe(&p->cb, &e));
		assert_int_equal(e.syndrome, 0);
	} while (e.opcode != MLX5_CQE_REQ);
	assert_in_range(rig_completed(&p->cb), 0, 2 * PER_TURN);
	rig_polls(p->u[1], TURNS);
	pairs_close(&s);
}

TEST_MAIN(0)
