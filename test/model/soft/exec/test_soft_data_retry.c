/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RNR, missing responses, duplicate and early PSNs, responder resources and fences. */
#include <stdio.h>

#include "../soft_rig.h"

#define RETRY_EXC MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR
#define INVALID   MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR

static struct rig_pair *
open_pair(bool two_uars, const struct rig_link *l)
{
	static struct rig_pair p;

	rig_pair_open(&p, NULL, two_uars, l);
	return &p;
}

static void
poll_both(struct rig_pair *p)
{
	rig_poll(p->u[0]);
	rig_poll(p->u[1]);
}

/* Polls both ends until the next CQE of @c; returns the elapsed time in microseconds. */
static uint64_t
wait_both(struct rig_pair *p, struct rig_cq *c, struct rig_cqe *e)
{
	uint64_t start = rig_now_us();

	while (!rig_cqe(c, e)) {
		poll_both(p);
		if (rig_now_us() - start > RIG_WAIT_US)
			fail_msg("no CQE came in %u seconds", RIG_WAIT_US / 1000000);
	}
	return rig_now_us() - start;
}

/* ---- Receiver not ready */

/* A receive that is posted in time resets the retry count. */
TEST(test_receive_in_time_resets_the_rnr_count)
{
	struct rig_link l = rig_link_default();
	struct rig_pair *p;
	struct rig_cqe e;
	uint32_t i;

	l.min_rnr = 20; /* 10 ms */
	l.rnr_retry = 1;
	p = open_pair(false, &l);
	for (i = 0; i < 4; i++) {
		rig_send(&p->a, &p->ma, 0, 8, RIG_CQE);
		rig_ring(&p->a);
		rig_polls(p->u[0], 10);
		rig_recv(&p->b, &p->mb, 0, 8);
		wait_both(p, &p->ca, &e);
		assert_int_equal(e.opcode, MLX5_CQE_REQ);
	}
	rig_pair_close(p);
}

/* ---- No response */

static void
expect_retry_exceeded(struct rig_pair *p, struct rig_qp *q, uint32_t timeout, uint32_t retry)
{
	uint64_t least = (uint64_t)((4.096 * (1u << timeout)) * (retry + 1)), took;
	struct rig_cqe e;

	took = wait_both(p, q->scq, &e);
	printf("no answer for %u us, at least %u\n", (unsigned int)took, (unsigned int)least);
	assert_int_equal(e.opcode, MLX5_CQE_REQ_ERR);
	assert_int_equal(e.syndrome, RETRY_EXC);
	assert_int_equal(e.qpn, q->qpn);
	assert_true(took + least / 20 >= least);
}

TEST(test_silent_peer_exceeds_the_retries)
{
	static const char *const names[] = {"peer in ERR", "peer in RST", "peer in INIT",
					    "peer connected elsewhere", "no such QP"};
	const struct rig_qp_attr attr = {.log_sq = 4, .log_rq = 2, .log_stride = 6, .uidx = 3};
	uint32_t i;

	for (i = 0; i < 5; i++) {
		struct rig_link l = rig_link_default();
		struct rig_pair *p;
		struct rig_qp x;

		printf("%s\n", names[i]);
		l.timeout = 9; /* 2 ms */
		l.retry = 2;
		p = open_pair(false, NULL);
		rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
		if (i == 0)
			rig_qp_error(&p->b);
		if (i == 1 || i == 2)
			rig_qp_reset(&p->b);
		if (i == 2)
			assert_int_equal(rig_qp_modify(&p->b, BB_PRM_OP_RST2INIT_QP, &p->d, 0, &l),
					 0);
		rig_qp_up(&x, &p->d, i == 4 ? 0x1ffff : p->b.qpn, &l);
		rig_write(&x, &p->ma, 0, 8, &p->mb, 0, 0);
		rig_nop(&x, 0);
		rig_ring(&x);
		expect_retry_exceeded(p, &x, 9, 2);
		rig_expect_error(&x, 1, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		assert_int_equal(p->mb.p[0], 0);
		rig_qp_close(&x);
		rig_pair_close(p);
	}
}

RIG_TEST(test_peer_ready_in_time_loses_no_request, NULL)
{
	const struct rig_qp_attr attr = {.log_sq = 4, .log_rq = 2, .log_stride = 6, .uidx = 3};
	struct rig_qp x, y;
	struct rig_link l = rig_link_default();
	struct rig_cqe e;

	l.timeout = 12; /* 17 ms */
	l.retry = 7;
	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
	rig_qp_open(&y, p->u[0], &p->cb, &p->cb, &attr);
	rig_qp_up(&x, &p->d, y.qpn, &l);
	rig_write(&x, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	rig_ring(&x);
	rig_expect_none(&p->ca, p->u[0]);
	rig_qp_up(&y, &p->d, x.qpn, &l);
	wait_both(p, &p->ca, &e);
	assert_int_equal(e.opcode, MLX5_CQE_REQ);
	assert_memory_equal(p->mb.p, p->ma.p, 8);
	rig_qp_close(&x);
	rig_qp_close(&y);
}

/* ack_timeout 0: the request waits without limit; a reset ends it. */
RIG_TEST(test_timeout_0_waits_without_limit, NULL)
{
	struct rig_link l = rig_link_default();
	struct rig_cqe e;
	uint64_t start;

	l.timeout = 0;
	rig_qp_reset(&p->a);
	rig_qp_up(&p->a, &p->d, p->b.qpn, &l);
	rig_qp_error(&p->b);
	rig_nop(&p->a, 0);
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	rig_ring(&p->a);
	start = rig_now_us();
	while (rig_now_us() - start < 50000) {
		poll_both(p);
		assert_false(rig_cqe(&p->ca, &e));
	}
	rig_qp_error(&p->a);
	rig_expect_error(&p->a, 1, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
}

/* ---- PSNs */

/* A PSN ahead of the expected one: each attempt gets a NAK at once, without a timeout. */
RIG_TEST(test_psn_ahead_gets_a_nak_at_once, NULL)
{
	struct rig_link l = rig_link_default();

	rig_qp_reset(&p->a);
	l.sq_psn = (l.sq_psn + 1) & 0xffffff;
	rig_qp_up(&p->a, &p->d, p->b.qpn, &l);
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, 0);
	rig_ring(&p->a);
	rig_expect_error(&p->a, 0, RETRY_EXC);
	assert_int_equal(p->mb.p[0], 0);
	assert_int_equal(rig_qp_state(&p->b), BB_PRM_QP_RTS);
}

/*
 * A PSN behind by three packets: requests are acknowledged and not executed until the PSN is the
 * expected one. A SEND consumes no receive, a READ is served again.
 */
RIG_TEST(test_psn_behind_is_acknowledged_not_executed, NULL)
{
	struct rig_link l = rig_link_default();
	struct rig_cqe e;

	rig_qp_reset(&p->a);
	l.sq_psn = (l.sq_psn - 3) & 0xffffff;
	rig_qp_up(&p->a, &p->d, p->b.qpn, &l);
	rig_recv(&p->b, &p->mb, 64, 8);
	p->mb.p[32] = 0x77;
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	rig_send(&p->a, &p->ma, 0, 8, RIG_CQE);
	rig_read(&p->a, &p->ma, 100, 8, &p->mb, 32, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_expect_ok(&p->a, MLX5_OPCODE_SEND, 1);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_READ, 2);
	rig_expect_none(&p->cb, p->u[1]);
	assert_int_equal(p->mb.p[0], 0);
	assert_int_equal(p->mb.p[64], 0);
	assert_int_equal(p->ma.p[100], 0x77);
	/* Requests from here on are new. */
	rig_send(&p->a, &p->ma, 0, 8, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_SEND, 3);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	assert_memory_equal(p->mb.p + 64, p->ma.p, 8);
}

/*
 * A duplicate atomic gets the stored response and is not executed again; an unknown duplicate
 * gets no response.
 */
RIG_TEST(test_duplicate_atomic_gets_the_stored_response, NULL)
{
	uint64_t *target = (uint64_t *)(void *)p->mb.p, *result = (uint64_t *)(void *)p->ma.p;
	struct rig_link l = rig_link_default();
	struct rig_cqe e;

	*target = 100;
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 8, &p->mb, 0, 1, 0, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_ATOMIC_FA, 0);
	rig_expect_ok(&p->a, MLX5_OPCODE_ATOMIC_FA, 1);
	rig_qp_reset(&p->a);
	result[0] = result[1] = 0;
	rig_qp_up(&p->a, &p->d, p->b.qpn, &l);
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 8, &p->mb, 0, 1, 0, RIG_CQE);
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 16, &p->mb, 0, 1, 0, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_ATOMIC_FA, 0);
	rig_expect_ok(&p->a, MLX5_OPCODE_ATOMIC_FA, 1);
	rig_expect_ok(&p->a, MLX5_OPCODE_ATOMIC_FA, 2);
	assert_true(result[0] == 100 && result[1] == 101 && result[2] == 102);
	assert_true(*target == 103);
	/* A duplicate of an atomic that was never executed: no response. */
	rig_qp_reset(&p->a);
	l.sq_psn -= 10;
	rig_qp_up(&p->a, &p->d, p->b.qpn, &l);
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
	rig_ring(&p->a);
	wait_both(p, &p->ca, &e);
	assert_int_equal(e.syndrome, RETRY_EXC);
	assert_true(*target == 103);
}

/* The first half of the message is a duplicate, the second half is new. */
RIG_TEST(test_partly_duplicate_message_is_refused, NULL)
{
	struct rig_link l = rig_link_default();

	rig_qp_reset(&p->a);
	l.sq_psn--;
	rig_qp_up(&p->a, &p->d, p->b.qpn, &l);
	rig_write(&p->a, &p->ma, 0, 1025, &p->mb, 0, 0); /* two packets of 1024 */
	rig_ring(&p->a);
	rig_expect_error(&p->a, 0, INVALID);
	assert_int_equal(rig_qp_state(&p->b), BB_PRM_QP_ERR);
}

/* A message consumes one PSN per packet, wrapping at 24 bits, for every MTU. */
TEST(test_message_takes_one_psn_per_packet)
{
	static const uint32_t sizes[] = {20000, 1, 4096, 4097, 256, 257, 0};
	uint32_t mtu;

	for (mtu = 1; mtu <= 5; mtu++) {
		uint32_t bytes = 128u << mtu, psn = 0xfffffe, i, k;
		struct rig_link l = rig_link_default();
		struct rig_pair *p;

		l.mtu = mtu;
		l.sq_psn = psn;
		p = open_pair(false, &l);
		for (i = 0; i < 14; i++) {
			uint32_t size = sizes[i % 7], packets = (size + bytes - 1) / bytes;

			rig_recv(&p->b, &p->mb, 0, 20000);
			rig_write(&p->a, &p->ma, 0, size, &p->mb, 0, RIG_CQE);
			rig_read(&p->a, &p->ma, 0, size, &p->mb, 0, RIG_CQE);
			rig_send(&p->a, &p->ma, 0, size, RIG_CQE);
			rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0,
				   RIG_CQE);
			rig_nop(&p->a, RIG_CQE);
			rig_ring(&p->a);
			for (k = 0; k < 5; k++) {
				struct rig_cqe e;

				rig_wait(&p->ca, p->u[0], &e);
				assert_int_equal(e.opcode, MLX5_CQE_REQ);
			}
			psn = (psn + 3 * (packets == 0 ? 1 : packets) + 1) & 0xffffff;
			assert_int_equal(rig_qp_query(&p->a, BB_PRM_QPC_NEXT_SEND_PSN), psn);
			assert_int_equal(rig_qp_query(&p->b, BB_PRM_QPC_NEXT_RCV_PSN), psn);
		}
		rig_pair_close(p);
	}
}

/* ---- Responder resources */

#define READ   MLX5_OPCODE_RDMA_READ
#define ATOMIC MLX5_OPCODE_ATOMIC_FA

/* Opcode of request @i of a burst: alternates between @first and @second. */
#define BURST_OP(first, second, i) ((uint8_t)((i) % 2 == 0 ? (first) : (second)))

/* Sends @n READs or atomics in one burst; the request at @fenced has a fence. */
static struct rig_pair *
burst(uint8_t first, uint8_t second, uint32_t log_sra, uint32_t log_rra, uint32_t n,
      uint32_t fenced)
{
	struct rig_link l = rig_link_default();
	struct rig_pair *p;
	uint32_t i;

	l.log_sra = log_sra;
	l.log_rra = log_rra;
	p = open_pair(false, &l);
	memset(p->mb.p, 0, 8);
	for (i = 0; i < n; i++) {
		uint8_t flags = i == fenced ? RIG_CQE | MLX5_WQE_CTRL_FENCE : RIG_CQE;

		if (BURST_OP(first, second, i) == READ)
			rig_read(&p->a, &p->ma, 0, 8, &p->mb, 0, flags);
		else
			rig_atomic(&p->a, ATOMIC, &p->ma, 0, &p->mb, 0, 1, 0, flags);
	}
	rig_ring(&p->a);
	return p;
}

TEST(test_reads_beyond_the_responders_limit_are_refused)
{
	static const uint8_t kinds[][2] = {{READ, READ}, {ATOMIC, ATOMIC}, {READ, ATOMIC}};
	struct rig_pair *p = NULL;
	uint32_t i, k;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const uint8_t one = kinds[k][0], two = kinds[k][1];
		uint64_t word, adds = (one == ATOMIC) + (two == ATOMIC);

		/* The requester's own limit delays the requests. */
		p = burst(one, two, 2, 2, 20, 99);
		for (i = 0; i < 20; i++)
			rig_expect_ok(&p->a, BURST_OP(one, two, i), (uint16_t)i);
		memcpy(&word, p->mb.p, 8);
		assert_int_equal(word, 10 * adds);
		rig_pair_close(p);
		/*
		 * The requester's limit is 8, the peer's 4: the fifth request is refused and not
		 * executed.
		 */
		p = burst(one, two, 3, 2, 5, 99);
		for (i = 0; i < 4; i++)
			rig_expect_ok(&p->a, BURST_OP(one, two, i), (uint16_t)i);
		rig_expect_error(&p->a, 4, INVALID);
		assert_int_equal(rig_qp_state(&p->b), BB_PRM_QP_ERR);
		memcpy(&word, p->mb.p, 8);
		assert_int_equal(word, 2 * adds);
		rig_pair_close(p);
		/* A fence on the fifth request makes it wait for the previous ones. */
		p = burst(one, two, 3, 2, 5, 4);
		for (i = 0; i < 5; i++)
			rig_expect_ok(&p->a, BURST_OP(one, two, i), (uint16_t)i);
		if (k + 1 != sizeof(kinds) / sizeof(kinds[0]))
			rig_pair_close(p);
	}
	for (i = 0; i < 4; i++)
		rig_read(&p->a, &p->ma, 0, 8, &p->mb, 0, 0);
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE | MLX5_WQE_CTRL_FENCE);
	for (i = 0; i < 4; i++)
		rig_read(&p->a, &p->ma, 0, 8, &p->mb, 0, i == 3 ? RIG_CQE : 0);
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, 9);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_READ, 13);
	/*
	 * Requests that are posted after the previous ones completed are within the limit, too.
	 */
	for (i = 0; i < 4; i++)
		rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
	rig_ring(&p->a);
	for (i = 0; i < 4; i++)
		rig_expect_ok(&p->a, MLX5_OPCODE_ATOMIC_FA, (uint16_t)(14 + i));
	rig_pair_close(p);
}

TEST_MAIN(0)
