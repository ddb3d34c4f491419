/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Bad input on the data path: each error is a completion that names the cause, and the queue pair
 * works again after RESET. The rows error/rc and receive/rc of the conformance suite cover the
 * other causes.
 */
#include <sched.h>

#include "../mlx5_env.h"

/* Starts with a pair in RTS; the teardown brings both QPs out of ERR again. */
static int
setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	*state = e;
	if (e == NULL)
		return -1;
	env_start(e);
	return 0;
}

/* Resets both QPs, connects them again, and checks that traffic flows. */
static void
recover(struct env *e)
{
	struct bb_qp_attr attr = e->attr;
	struct bb_wc wc;

	attr.state = BB_QP_RESET;
	assert_int_equal(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE), 0);
	assert_int_equal(bb_qp_modify(e->b.qp, &attr, BB_QP_STATE), 0);
	env_silent(e, &e->a);
	env_silent(e, &e->b);
	connect_pair(e->a.qp, e->b.qp, &e->attr);
	assert_int_equal(bb_post_write_inline(e->a.qp, 4711, "again", 5, raddr_of(&e->b, 8),
					      e->b.mr->rkey, BB_SEND_SIGNALED),
			 0);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, &wc, 1);
	expect(&wc, e->a.qp, 4711, BB_WC_SUCCESS);
	assert_memory_equal(e->b.buf + 8, "again", 5);
}

static int
teardown(void **state)
{
	struct env *e = *state;

	env_stop(e);
	free(e);
	return 0;
}

/* Posts two WRITEs: the first fails with @status, the second is flushed. */
static void
write_fails(struct env *e, const struct bb_sge *sge, uint64_t raddr, uint32_t rkey,
	    enum bb_wc_status status)
{
	struct bb_wc wc[2];

	memset(e->b.buf, 0x5a, ENV_BUF);
	assert_int_equal(bb_post_write(e->a.qp, 1, sge, 1, raddr, rkey, BB_SEND_SIGNALED), 0);
	assert_int_equal(
		bb_post_write_inline(e->a.qp, 2, "x", 1, raddr_of(&e->b, 0), e->b.mr->rkey, 0), 0);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, wc, 2);
	expect(&wc[0], e->a.qp, 1, status);
	assert_int_not_equal(wc[0].syndrome, 0);
	expect(&wc[1], e->a.qp, 2, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(e->a.qp->state, BB_QP_ERR);
	assert_int_equal(bb_sq_outstanding(&e->a.qp->sq), 0);
	assert_int_equal(e->b.buf[0], 0x5a);
	recover(e);
}

#define T(name) TEST_WITH(setup, teardown, name)

T(wrong_rkey)
{
	struct env *e = *state;
	struct bb_sge sge = sge_of(&e->a, 0, 64);

	write_fails(e, &sge, raddr_of(&e->b, 0), e->b.mr->rkey + 1, BB_WC_REM_ACCESS_ERR);
	write_fails(e, &sge, raddr_of(&e->b, 0), 0xffffffff, BB_WC_REM_ACCESS_ERR);
	write_fails(e, &sge, raddr_of(&e->b, 0), 0, BB_WC_REM_ACCESS_ERR);
}

T(local_range)
{
	struct env *e = *state;
	struct bb_sge sge = sge_of(&e->a, ENV_BUF - 63, 64);

	write_fails(e, &sge, raddr_of(&e->b, 0), e->b.mr->rkey, BB_WC_LOC_PROT_ERR);
	sge.addr = UINT64_MAX - 31;
	write_fails(e, &sge, raddr_of(&e->b, 0), e->b.mr->rkey, BB_WC_LOC_PROT_ERR);
	sge = sge_of(&e->a, 0, 1 << 30);
	write_fails(e, &sge, raddr_of(&e->b, 0), e->b.mr->rkey, BB_WC_LOC_PROT_ERR);
	/* Longer than the longest message. */
	sge.len = 0x80000000;
	write_fails(e, &sge, raddr_of(&e->b, 0), e->b.mr->rkey, BB_WC_LOC_LEN_ERR);
}

T(posts_that_never_go)
{
	struct env *e = *state;
	struct bb_sge sge = sge_of(&e->a, 0, 8), many[64] = {{0}};
	uint8_t big[1024] = {0};

	/* Misaligned, wrong size, too many pieces, too much inline data, a piece over 2^31. */
	assert_int_equal(
		bb_post_fetch_add(e->a.qp, 1, &sge, raddr_of(&e->b, 4), e->b.mr->rkey, 1, 0),
		-EINVAL);
	sge.len = 4;
	assert_int_equal(
		bb_post_cmp_swap(e->a.qp, 1, &sge, raddr_of(&e->b, 0), e->b.mr->rkey, 1, 1, 0),
		-EINVAL);
	assert_int_equal(bb_post_write(e->a.qp, 1, many, RTE_DIM(many), 0, 0, 0), -EINVAL);
	assert_int_equal(bb_post_write_inline(e->a.qp, 1, big, sizeof(big), 0, 0, 0), -EINVAL);
	sge.len = 0x80000001;
	assert_int_equal(bb_post_write(e->a.qp, 1, &sge, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(bb_post_recv(e->a.qp, 1, &sge, 1), -EINVAL);
	assert_int_equal(bb_post_recv(e->a.qp, 1, many, RTE_DIM(many)), -EINVAL);
	assert_int_equal(bb_sq_outstanding(&e->a.qp->sq), 0);
}

T(full_queues)
{
	struct env *e = *state;
	struct bb_sge sge = sge_of(&e->b, 0, 64);
	struct bb_qp_stats stats;
	struct bb_wc wc[128];
	unsigned int i;

	for (i = 0; i < e->init.sq_depth; i++)
		assert_int_equal(bb_post_nop(e->a.qp, i, BB_SEND_SIGNALED), 0);
	assert_int_equal(bb_post_nop(e->a.qp, i, BB_SEND_SIGNALED), -EAGAIN);
	for (i = 0; i < e->init.rq_depth; i++)
		assert_int_equal(bb_post_recv(e->b.qp, i, &sge, 1), 0);
	assert_int_equal(bb_post_recv(e->b.qp, i, &sge, 1), -EAGAIN);
	bb_qp_ring(e->a.qp);
	bb_qp_ring_recv(e->b.qp);
	env_poll(e, &e->a, wc, e->init.sq_depth);
	for (i = 0; i < e->init.sq_depth; i++)
		expect(&wc[i], e->a.qp, i, BB_WC_SUCCESS);
	assert_int_equal(bb_post_nop(e->a.qp, 0, BB_SEND_SIGNALED), 0);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, wc, 1);
	assert_int_equal(bb_qp_stats(e->a.qp, &stats), 0);
	assert_int_equal(stats.full, 1);
}

/* 2ERR: one flush error for each WQE that was rung, and for each WQE posted afterwards. */
T(flush_counts)
{
	struct env *e = *state;
	struct bb_sge rsge = sge_of(&e->a, 0, 64);
	struct bb_qp_attr attr = e->attr;
	struct bb_wc wc[16];
	unsigned int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(bb_post_recv(e->a.qp, 10 + i, &rsge, 1), 0);
	bb_qp_ring_recv(e->a.qp);
	/* The peer has no receive, so the requests wait. */
	for (i = 0; i < 5; i++)
		assert_int_equal(bb_post_send_inline(e->a.qp, i, "x", 1, i & 1), 0);
	bb_qp_ring(e->a.qp);
	env_silent(e, &e->a);
	attr.state = BB_QP_ERR;
	assert_int_equal(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE), 0);
	env_poll(e, &e->a, wc, 8);
	for (i = 0; i < 8; i++)
		assert_int_equal(wc[i].status, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(bb_sq_outstanding(&e->a.qp->sq), 0);
	env_silent(e, &e->a);

	assert_int_equal(bb_post_nop(e->a.qp, 77, 0), 0);
	assert_int_equal(bb_post_recv(e->a.qp, 78, &rsge, 1), 0);
	bb_qp_ring(e->a.qp);
	bb_qp_ring_recv(e->a.qp);
	env_poll(e, &e->a, wc, 2);
	assert_int_equal(wc[0].status, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(wc[1].status, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(wc[0].wr_id + wc[1].wr_id, 77 + 78);
	recover(e);
}

/* Unpolled completions are removed from the CQ by a reset of the QP. */
T(reset_purges)
{
	struct env *e = *state;
	struct bb_cqring last = e->a.cq->ring;
	struct bb_qp_attr attr = e->attr;
	const uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	struct bb_cq_stats stats;
	unsigned int i;

	for (i = 0; i < 10; i++)
		assert_int_equal(bb_post_nop(e->a.qp, i, BB_SEND_SIGNALED), 0);
	bb_qp_ring(e->a.qp);
	last.ci += 9;
	while (bb_cqring_peek(&last) == NULL && rte_get_timer_cycles() < end) {
		bb_dev_progress(e->a.dev);
		sched_yield();
	}
	attr.state = BB_QP_RESET;
	assert_int_equal(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE), 0);
	assert_int_equal(bb_cq_stats(e->a.cq, &stats), 0);
	assert_int_equal(stats.purged, 10);
	assert_int_equal(bb_post_nop(e->a.qp, 1, 0), -ENOTCONN);
	recover(e);
}

TEST_MAIN(env_eal_init("mlx5_errors"))
