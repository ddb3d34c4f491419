/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared receive queues end to end: many QPs on one SRQ, its limit, its errors, and the order in
 * which receives are consumed and returned. Rules: man ibv_create_srq, ibv_modify_srq,
 * ibv_post_srq_recv, ibv_get_async_event; errnos as in bb_srq.h.
 */
#include "mlx5_srq_env.h"

SRQ_TEST(QPS, 1, test_write_with_immediate_consumes_a_receive_and_leaves_its_buffer)
{
	struct bb_wc wc;

	memset(r->e.b.buf, 0x55, ENV_BUF);
	post_some(r, 3, 1);
	OK(bb_post_write_imm_inline(r->a[2], 9, "ABCDEFGH", 8, raddr_of(&r->e.b, 100000),
				    r->e.b.mr->rkey, 0x01020304, 0));
	bb_qp_ring(r->a[2]);
	env_poll(&r->e, &r->e.b, &wc, 1);
	expect(&wc, r->b[2], 1003, BB_WC_SUCCESS);
	assert_int_equal(wc.opcode, BB_WC_RECV_RDMA_IMM);
	assert_int_equal(wc.imm, 0x01020304);
	assert_memory_equal(r->e.b.buf + 100000, "ABCDEFGH", 8);
	assert_int_equal(r->e.b.buf[3 * LEN], 0x55);
}

/*
 * The completions of two CQs are polled in another order than they arrived, so receives are
 * returned out of order. The whole depth of the queue stays usable over several wraps of its
 * counter.
 */
SRQ_TEST(1, 1, test_receives_returned_out_of_order_are_usable)
{
	struct bb_cq *other;
	struct bb_cq_attr cq;
	struct bb_wc wc[DEPTH];
	uint32_t round, i, n = 0;
	uint64_t seen;

	bb_cq_attr_init(&cq);
	cq.depth = 64;
	OK(bb_cq_create(r->e.b.dev, &cq, &other));
	{
		struct bb_qp_init_attr init = r->e.init;

		init.send_cq = r->e.b.cq;
		init.recv_cq = other;
		init.srq = r->srq;
		r->a[1] = make_qp(r, &r->e.a, NULL);
		OK(bb_qp_create(r->e.b.pd, &init, &r->b[1]));
		connect_pair(r->a[1], r->b[1], &r->e.attr);
	}
	for (round = 0; round < 40; round++) {
		/* The SRQ is full: one receive more is refused. */
		for (i = 0; i < DEPTH; i++)
			assert_int_equal(post(r, i), 0);
		assert_int_equal(post(r, 0), -EAGAIN);
		bb_srq_ring(r->srq);
		for (i = 0; i < DEPTH; i++) {
			/* Each sender's queue holds 16 requests. */
			send_from(r, i & 1, n + i);
			if (i % 8 == 7)
				env_poll(&r->e, &r->e.a, wc, 8);
		}
		/* Polls the CQ of the odd QPs first. */
		{
			struct side s = {.cq = other};

			env_poll(&r->e, &s, wc, DEPTH / 2);
		}
		env_poll(&r->e, &r->e.b, wc + DEPTH / 2, DEPTH / 2);
		seen = 0;
		for (i = 0; i < DEPTH; i++) {
			uint32_t odd = i < DEPTH / 2, k = i % (DEPTH / 2);

			/*
			 * The messages of each QP are in order, whichever receives they consumed.
			 */
			assert_ptr_equal(wc[i].qp, r->b[odd]);
			assert_int_equal(wc[i].status, BB_WC_SUCCESS);
			check_data(r, &wc[i], n + 2 * k + odd);
			seen |= 1ull << (wc[i].wr_id - 1000);
		}
		assert_int_equal(seen, UINT32_MAX);
		n += DEPTH;
	}
	OK(bb_qp_destroy(r->b[1]));
	r->b[1] = NULL;
	OK(bb_cq_destroy(other));
}

/* More than 65,536 receives, so that 16-bit counters wrap. */
SRQ_TEST(2, 1, test_receive_counter_of_the_srq_wraps)
{
	struct bb_wc wc[16];
	uint32_t i, k;

	for (i = 0; i < 70000 / 16; i++) {
		post_some(r, 0, 16);
		for (k = 0; k < 16; k++)
			OK(bb_post_send_inline(r->a[k & 1], k, &i, 4,
					       k >= 14 ? BB_SEND_SIGNALED : 0));
		bb_qp_ring(r->a[0]);
		bb_qp_ring(r->a[1]);
		env_poll(&r->e, &r->e.b, wc, 16);
		for (k = 0; k < 16; k++)
			assert_int_equal(wc[k].status, BB_WC_SUCCESS);
		env_poll(&r->e, &r->e.a, wc, 2);
	}
	assert_int_equal(memcmp(r->e.b.buf + 15 * LEN, &(uint32_t){i - 1}, 4), 0);
}

static void
no_event(struct rig *r)
{
	struct bb_event ev;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		bb_dev_progress(r->e.b.dev);
		assert_int_equal(bb_event_get(r->e.b.dev, &ev), -EAGAIN);
	}
}

static void
message(struct rig *r, uint32_t qp)
{
	struct bb_wc wc;

	send_from(r, qp, 1);
	env_poll(&r->e, &r->e.b, &wc, 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	env_poll(&r->e, &r->e.a, &wc, 1);
}

SRQ_TEST(2, 1, test_limit_armed_below_it_raises_its_event_at_the_next_message)
{
	struct bb_srq_attr attr;
	struct bb_event ev;

	post_some(r, 0, 10);
	/* The limit is armed while the queue is below it: the next message raises the event. */
	OK(bb_srq_modify(r->srq, DEPTH));
	no_event(r);
	message(r, 0);
	env_event(&r->e, r->e.b.dev, &ev);
	assert_int_equal(ev.type, BB_EVENT_SRQ_LIMIT);
	/* The limit is disarmed in time: no event. */
	OK(bb_srq_modify(r->srq, 5));
	OK(bb_srq_modify(r->srq, 0));
	message(r, 0);
	no_event(r);
	/* A limit above the depth is refused, and the armed limit stays. */
	OK(bb_srq_modify(r->srq, 2));
	assert_int_equal(bb_srq_modify(r->srq, DEPTH + 1), -EINVAL);
	OK(bb_srq_query(r->srq, &attr));
	assert_int_equal(attr.limit, 2);
}

static void
to_state(struct bb_qp *qp, enum bb_qp_state state)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = state;
	OK(bb_qp_modify(qp, &attr, BB_QP_STATE));
}

/* Destroying a QP in ERR takes no receive with it; a new QP uses the SRQ. */
SRQ_TEST(2, 1, test_new_qp_takes_the_receives_that_a_failed_qp_left)
{
	struct bb_event ev;
	struct bb_wc wc;

	post_some(r, 9, 1);
	to_state(r->b[1], BB_QP_ERR);
	env_event(&r->e, r->e.b.dev, &ev);
	assert_int_equal(ev.type, BB_EVENT_SRQ_LAST_WQE);
	assert_ptr_equal(ev.srq, r->srq);
	OK(bb_qp_destroy(r->b[1]));
	r->b[1] = make_qp(r, &r->e.b, r->srq);
	to_state(r->a[1], BB_QP_RESET);
	connect_pair(r->a[1], r->b[1], &r->e.attr);
	send_from(r, 1, 123);
	env_poll(&r->e, &r->e.b, &wc, 1);
	expect(&wc, r->b[1], 1009, BB_WC_SUCCESS);
}

/* A receive that is too short, or has a bad key, fails only its message. */
SRQ_TEST(3, 2, test_bad_receive_fails_only_its_message)
{
	struct bb_sge sge[2];
	struct bb_wc wc;

	sge[0] = sge_of(&r->e.b, 0, 10);
	sge[1] = sge_of(&r->e.b, 100, LEN - 11);
	OK(bb_post_srq_recv(r->srq, 1, sge, 2));
	sge[1].lkey ^= 0x700;
	sge[1].len = LEN;
	OK(bb_post_srq_recv(r->srq, 2, sge, 2));
	post_some(r, 3, 1);
	send_from(r, 0, 5);
	env_poll(&r->e, &r->e.b, &wc, 1);
	expect(&wc, r->b[0], 1, BB_WC_LOC_LEN_ERR);
	env_poll(&r->e, &r->e.a, &wc, 1);
	expect(&wc, r->a[0], 5, BB_WC_REM_INV_REQ_ERR);
	send_from(r, 1, 6);
	env_poll(&r->e, &r->e.b, &wc, 1);
	expect(&wc, r->b[1], 2, BB_WC_LOC_PROT_ERR);
	env_poll(&r->e, &r->e.a, &wc, 1);
	expect(&wc, r->a[1], 6, BB_WC_REM_OP_ERR);
	send_from(r, 2, 7);
	env_poll(&r->e, &r->e.b, &wc, 1);
	expect(&wc, r->b[2], 1003, BB_WC_SUCCESS);
	check_data(r, &wc, 7);
	/* All three receives are free again. */
	post_some(r, 0, DEPTH);
	assert_int_equal(post(r, 0), -EAGAIN);
}

/* The completions of a reset or destroyed QP that are purged from the CQ return their receives. */
SRQ_TEST(2, 1, test_purged_completions_return_their_receives)
{
	struct bb_srq_stats stats;
	struct bb_wc wc[DEPTH];
	uint32_t i;

	post_some(r, 0, DEPTH);
	for (i = 0; i < 12; i++)
		send_from(r, i & 1, i);
	/* The senders' completions show that the device has executed all messages. */
	env_poll(&r->e, &r->e.a, wc, 12);
	to_state(r->b[0], BB_QP_RESET);
	OK(bb_srq_stats(r->srq, &stats));
	assert_int_equal(stats.outstanding, DEPTH - 6);
	env_poll(&r->e, &r->e.b, wc, 2);
	assert_ptr_equal(wc[0].qp, r->b[1]);
	OK(bb_qp_destroy(r->b[1]));
	r->b[1] = NULL;
	env_silent(&r->e, &r->e.b);
	OK(bb_srq_stats(r->srq, &stats));
	assert_int_equal(stats.outstanding, DEPTH - 12);
	/* Exactly twelve receives can be posted. */
	post_some(r, 32, 12);
	assert_int_equal(post(r, 0), -EAGAIN);
	/* The remaining completions arrive in order. */
	to_state(r->a[0], BB_QP_RESET);
	connect_pair(r->a[0], r->b[0], &r->e.attr);
	for (i = 0; i < DEPTH; i++) {
		send_from(r, 0, i);
		env_poll(&r->e, &r->e.b, wc, 1);
		expect(&wc[0], r->b[0], 1000 + 12 + i, BB_WC_SUCCESS);
		check_data(r, &wc[0], i);
		env_poll(&r->e, &r->e.a, wc, 1);
	}
}

/* bb_qp_recover() reports the receives that messages had consumed, and no others. */
SRQ_TEST(2, 1, test_recovery_reports_consumed_receives_only)
{
	struct bb_wr_end ends_a[64], ends_b[64];
	struct bb_qp_recovery ra = {.ends = ends_a, .max = 64}, rb = {.ends = ends_b, .max = 64};
	struct bb_qp_addr a, b;
	struct bb_srq_stats stats;
	struct bb_wc wc[2];

	post_some(r, 0, 8);
	send_from(r, 1, 1);
	send_from(r, 1, 2);
	env_poll(&r->e, &r->e.a, wc, 2);
	to_state(r->b[1], BB_QP_ERR);
	OK(bb_qp_addr(r->a[1], 1, 0, &a));
	OK(bb_qp_addr(r->b[1], 1, 0, &b));
	OK(bb_qp_recover(r->b[1], &b, &a, NULL, &rb));
	OK(bb_qp_recover(r->a[1], &a, &b, NULL, &ra));
	assert_int_equal(rb.n, 2);
	assert_int_equal(ends_b[0].wc.wr_id, 1000);
	assert_int_equal(ends_b[0].fate, BB_WR_DONE);
	assert_true(ends_b[1].recv);
	assert_int_equal(ra.n, 0);
	OK(bb_srq_stats(r->srq, &stats));
	assert_int_equal(stats.outstanding, 6);
	env_silent(&r->e, &r->e.b);
	send_from(r, 1, 3);
	env_poll(&r->e, &r->e.b, wc, 1);
	expect(&wc[0], r->b[1], 1002, BB_WC_SUCCESS);
	check_data(r, &wc[0], 3);
}

TEST_MAIN(env_eal_init("mlx5_srq"))
