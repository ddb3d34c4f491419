/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Receiver not ready, on the real clock. Each code of min_rnr_timer waits as long as man
 * ibv_modify_qp says, and rnr_retry gives the number of retries. Also the wrap of a receive queue's
 * counter.
 */
#include "../mlx5_env.h"
#include "bb_roce_pkt.h"
#include "soft_data.h"

/* man ibv_modify_qp, min_rnr_timer, in units of 0.01 ms. */
static const uint32_t delay[32] = {
	65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
	48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

struct pair {
	struct bb_qp *a, *b;
};

static void
pair_open(struct env *e, struct pair *p, uint8_t timer, uint8_t retry)
{
	struct bb_qp_init_attr init = e->init;
	struct bb_qp_attr attr = e->attr;

	init.sq_depth = 4;
	init.rq_depth = 4;
	init.send_cq = e->a.cq;
	init.recv_cq = e->a.cq;
	OK(bb_qp_create(e->a.pd, &init, &p->a));
	init.send_cq = e->b.cq;
	init.recv_cq = e->b.cq;
	OK(bb_qp_create(e->b.pd, &init, &p->b));
	attr.min_rnr_timer = timer;
	attr.rnr_retry = retry;
	connect_pair(p->a, p->b, &attr);
}

static void
pair_close(struct pair *p)
{
	OK(bb_qp_destroy(p->a));
	OK(bb_qp_destroy(p->b));
}

static uint64_t
now_us(void)
{
	return rte_get_timer_cycles() * 1000000 / rte_get_timer_hz();
}

/* The delay of each code, exactly: a measured time cannot show small differences. */
TEST(test_each_code_has_its_delay)
{
	uint32_t i;

	for (i = 0; i < 32; i++)
		assert_int_equal(bb_roce_rnr_ns(i), delay[i] * UINT64_C(10000));
}

/* All codes at the same time, each with its own pair: one retry, then the error. */
ENV_TEST_OPEN(test_no_retry_comes_before_its_delay)
{
	struct pair p[32];
	uint64_t start[32], end;
	uint32_t i, got = 0;
	struct bb_wc wc;

	for (i = 0; i < 32; i++)
		pair_open(e, &p[i], (uint8_t)i, 1);
	for (i = 0; i < 32; i++) {
		OK(bb_post_send_inline(p[i].a, i, "12345678", 8, 0));
		start[i] = now_us();
		bb_qp_ring(p[i].a);
	}
	end = now_us() + ENV_WAIT_S * UINT64_C(1000000);
	while (got < 32 && now_us() < end) {
		uint64_t took;

		bb_dev_progress(e->a.dev);
		bb_dev_progress(e->b.dev);
		if (bb_cq_poll(e->a.cq, &wc, 1) == 0)
			continue;
		got++;
		took = now_us() - start[wc.wr_id];
		expect(&wc, p[wc.wr_id].a, wc.wr_id, BB_WC_RNR_RETRY_EXC_ERR);
		/*
		 * Two clocks: allows one percent. No upper bound, because the thread may lose the
		 * CPU.
		 */
		if (took * 101 < (uint64_t)delay[wc.wr_id] * 10 * 100)
			fail_msg("code %u: after %u us, not %u", (unsigned int)wc.wr_id,
				 (unsigned int)took, delay[wc.wr_id] * 10);
	}
	assert_int_equal(got, 32);
	for (i = 0; i < 32; i++)
		pair_close(&p[i]);
}

/*
 * Short delays are not longer than necessary. The elapsed time has no bound, because a busy
 * machine can stretch it. The delay began before the poll that counted the NAK returned, so a
 * poll that begins one delay later must find it expired. Needs a device that runs only when
 * polled. A few polls are allowed for the steps of the second attempt.
 */
TEST_IF(!env_thread(), test_no_retry_waits_beyond_its_delay)
{
	struct bb_dev_stats before, after;
	struct bb_wc wc;
	struct env e;
	uint32_t i;

	env_open(&e);
	for (i = 1; i <= 16; i += 3) {
		uint64_t begins, latest = UINT64_MAX;
		uint64_t end = now_us() + ENV_WAIT_S * UINT64_C(1000000);
		uint32_t late = 0;
		struct pair p;

		pair_open(&e, &p, (uint8_t)i, 1);
		OK(bb_dev_stats(e.a.dev, &before));
		OK(bb_post_send_inline(p.a, i, "12345678", 8, 0));
		bb_qp_ring(p.a);
		while (bb_cq_poll(e.a.cq, &wc, 1) == 0) {
			begins = now_us();
			assert_true(begins < end);
			bb_dev_progress(e.a.dev);
			bb_dev_progress(e.b.dev);
			if (latest == UINT64_MAX) {
				OK(bb_dev_stats(e.a.dev, &after));
				/* Two clocks: allows one percent and the rounding of both. */
				if (after.rnr_nak_retry != before.rnr_nak_retry)
					latest = now_us() + delay[i] * 10 * 101 / 100 + 4;
			} else if (begins > latest && ++late > 8) {
				fail_msg("code %u: not over %u us after its end", i,
					 (unsigned int)(begins - latest));
			}
		}
		expect(&wc, p.a, i, BB_WC_RNR_RETRY_EXC_ERR);
		/* The poll that counted the NAK was not the last one. */
		assert_true(latest != UINT64_MAX);
		pair_close(&p);
	}
	env_stop(&e);
}

/* rnr_retry + 1 attempts, counted by the device; 7 retries without end. */
ENV_TEST_OPEN(test_attempts_follow_rnr_retry)
{
	struct bb_dev_stats before, after, peer_before, peer_after;
	struct bb_wc wc;
	uint8_t n;

	for (n = 0; n <= 6; n++) {
		struct pair p;

		pair_open(e, &p, 8, n);
		OK(bb_dev_stats(e->a.dev, &before));
		OK(bb_dev_stats(e->b.dev, &peer_before));
		OK(bb_post_send_inline(p.a, n, "12345678", 8, 0));
		bb_qp_ring(p.a);
		env_poll(e, &e->a, &wc, 1);
		expect(&wc, p.a, n, BB_WC_RNR_RETRY_EXC_ERR);
		OK(bb_dev_stats(e->a.dev, &after));
		assert_int_equal(after.rnr_nak_retry - before.rnr_nak_retry, n + 1);
		assert_int_equal(after.rnr_retry_exceeded - before.rnr_retry_exceeded, 1);
		OK(bb_dev_stats(e->b.dev, &peer_after));
		assert_int_equal(peer_after.out_of_buffer - peer_before.out_of_buffer, n + 1);
		pair_close(&p);
	}
	{
		struct bb_sge sge = sge_of(&e->b, 0, 8);
		uint64_t end = now_us() + ENV_WAIT_S * UINT64_C(1000000);
		struct pair p;

		pair_open(e, &p, 1, 7);
		OK(bb_dev_stats(e->a.dev, &before));
		OK(bb_post_send_inline(p.a, 1, "12345678", 8, BB_SEND_SIGNALED));
		bb_qp_ring(p.a);
		do {
			bb_dev_progress(e->a.dev);
			bb_dev_progress(e->b.dev);
			assert_int_equal(bb_cq_poll(e->a.cq, &wc, 1), 0);
			OK(bb_dev_stats(e->a.dev, &after));
		} while (after.rnr_nak_retry - before.rnr_nak_retry < 100 && now_us() < end);
		assert_true(after.rnr_nak_retry - before.rnr_nak_retry >= 100);
		OK(bb_post_recv(p.b, 2, &sge, 1));
		bb_qp_ring_recv(p.b);
		env_poll(e, &e->a, &wc, 1);
		expect(&wc, p.a, 1, BB_WC_SUCCESS);
		env_poll(e, &e->b, &wc, 1);
		expect(&wc, p.b, 2, BB_WC_SUCCESS);
		pair_close(&p);
	}
}

/* ---- The receive queue */

/* More than 65,536 receives through a ring whose depth is no power of two. */
ENV_TEST_OPEN(test_receive_counter_wraps)
{
	struct bb_sge sge;
	struct bb_wc wc[10];
	uint32_t i, k;

	e->init.rq_depth = 10;
	env_up(e);
	for (i = 0; i < 66000; i += 10) {
		for (k = 0; k < 10; k++) {
			sge = sge_of(&e->b, (size_t)k * 8, 4);
			OK(bb_post_recv(e->b.qp, i + k, &sge, 1));
		}
		assert_int_equal(bb_post_recv(e->b.qp, 0, &sge, 1), -EAGAIN);
		bb_qp_ring_recv(e->b.qp);
		for (k = 0; k < 10; k++) {
			uint32_t v = i + k;

			OK(bb_post_send_inline(e->a.qp, k, &v, 4, k == 9 ? BB_SEND_SIGNALED : 0));
		}
		bb_qp_ring(e->a.qp);
		env_poll(e, &e->b, wc, 10);
		for (k = 0; k < 10; k++) {
			expect(&wc[k], e->b.qp, i + k, BB_WC_SUCCESS);
			assert_memory_equal(e->b.buf + (size_t)k * 8, &(uint32_t){i + k}, 4);
		}
		env_poll(e, &e->a, wc, 1);
	}
}

TEST_MAIN(env_eal_init("mlx5_rnr"))
