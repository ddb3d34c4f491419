/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Counters of posts to full queues and of completions that a reset removes. The rows error/rc,
 * receive/rc and post/rc of the conformance suite cover bad input on the data path.
 */
#include <sched.h>

#include "../mlx5_env.h"

/* Resets both QPs, connects them again, and checks that traffic flows. */
static void
recover(struct env *e)
{
	struct bb_qp_attr attr = e->attr;

	attr.state = BB_QP_RESET;
	OK(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE));
	OK(bb_qp_modify(e->b.qp, &attr, BB_QP_STATE));
	env_silent(e, &e->a);
	env_silent(e, &e->b);
	connect_pair(e->a.qp, e->b.qp, &e->attr);
	OK(bb_post_write_inline(e->a.qp, 4711, "again", 5, raddr_of(&e->b, 8), e->b.mr->rkey,
				BB_SEND_SIGNALED));
	env_done(e, &e->a, 4711, BB_WC_SUCCESS);
	assert_memory_equal(e->b.buf + 8, "again", 5);
}

ENV_TEST(test_post_to_a_full_queue_is_counted)
{
	struct bb_sge sge = sge_of(&e->b, 0, 64);
	struct bb_qp_stats stats;
	struct bb_wc wc[128];
	unsigned int i;

	for (i = 0; i < e->init.sq_depth; i++)
		OK(bb_post_nop(e->a.qp, i, BB_SEND_SIGNALED));
	assert_int_equal(bb_post_nop(e->a.qp, i, BB_SEND_SIGNALED), -EAGAIN);
	for (i = 0; i < e->init.rq_depth; i++)
		OK(bb_post_recv(e->b.qp, i, &sge, 1));
	assert_int_equal(bb_post_recv(e->b.qp, i, &sge, 1), -EAGAIN);
	bb_qp_ring(e->a.qp);
	bb_qp_ring_recv(e->b.qp);
	env_poll(e, &e->a, wc, e->init.sq_depth);
	for (i = 0; i < e->init.sq_depth; i++)
		expect(&wc[i], e->a.qp, i, BB_WC_SUCCESS);
	OK(bb_post_nop(e->a.qp, 0, BB_SEND_SIGNALED));
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, wc, 1);
	OK(bb_qp_stats(e->a.qp, &stats));
	assert_int_equal(stats.full, 1);
}

/* Unpolled completions are removed from the CQ by a reset of the QP. */
ENV_TEST(test_reset_counts_the_completions_it_removes)
{
	struct bb_cqring last = e->a.cq->ring;
	struct bb_qp_attr attr = e->attr;
	const uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	struct bb_cq_stats stats;
	unsigned int i;

	for (i = 0; i < 10; i++)
		OK(bb_post_nop(e->a.qp, i, BB_SEND_SIGNALED));
	bb_qp_ring(e->a.qp);
	last.ci += 9;
	while (bb_cqring_peek(&last) == NULL && rte_get_timer_cycles() < end) {
		bb_dev_progress(e->a.dev);
		sched_yield();
	}
	attr.state = BB_QP_RESET;
	OK(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE));
	OK(bb_cq_stats(e->a.cq, &stats));
	assert_int_equal(stats.purged, 10);
	assert_int_equal(bb_post_nop(e->a.qp, 1, 0), -ENOTCONN);
	recover(e);
}

TEST_MAIN(env_eal_init("mlx5_queue_counters"))
