/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Operations of an RC queue pair on the software device, with data checked. Covers what the rows
 * data/rc and atomic/rc of the conformance suite do not.
 */
#include "../mlx5_env.h"

ENV_TEST(test_write_is_executed_after_its_doorbell)
{
	struct bb_sge sge;
	struct bb_wc wc;

	fill(e->a.buf, 4096, 1);
	sge = sge_of(&e->a, 0, 4096);
	OK(bb_post_write(e->a.qp, 7, &sge, 1, raddr_of(&e->b, 512), e->b.mr->rkey,
			 BB_SEND_SIGNALED));
	/* No request is executed before the doorbell. */
	env_silent(e, &e->a);
	assert_int_equal(e->b.buf[512 + 1], 0);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, &wc, 1);
	expect(&wc, e->a.qp, 7, BB_WC_SUCCESS);
	assert_int_equal(wc.opcode, BB_WC_RDMA_WRITE);
	assert_memory_equal(e->b.buf + 512, e->a.buf, 4096);
	assert_int_equal(e->b.buf[511], 0);
	assert_int_equal(e->b.buf[512 + 4096], 0);
	/* The target gets no completion. */
	env_silent(e, &e->b);
}

ENV_TEST(test_inline_write_of_each_length_arrives)
{
	uint8_t data[64];
	uint32_t len;

	for (len = 1; len <= sizeof(data); len++) {
		fill(data, len, len);
		OK(bb_post_write_inline(e->a.qp, len, data, len, raddr_of(&e->b, len * 64),
					e->b.mr->rkey, BB_SEND_SIGNALED));
		/* The post copied the data. */
		memset(data, 0, sizeof(data));
		env_done(e, &e->a, len, BB_WC_SUCCESS);
		fill(data, len, len);
		assert_memory_equal(e->b.buf + len * 64, data, len);
	}
}

ENV_TEST(test_nop_completes)
{
	struct bb_wc wc;

	OK(bb_post_nop(e->a.qp, 77, BB_SEND_SIGNALED));
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, &wc, 1);
	expect(&wc, e->a.qp, 77, BB_WC_SUCCESS);
	assert_int_equal(wc.opcode, BB_WC_NOP);
}

/* Both doorbell modes, through ring ends and past 2^16 blocks. */
static void
doorbell_mode(enum bb_db_mode mode)
{
	uint64_t rounds, n, seen = 0, posted = 0;
	struct bb_qp_stats stats;
	struct bb_wc wc[16];
	struct env e;
	unsigned int i, got;

	env_open(&e);
	e.init.db_mode = mode;
	e.init.sq_depth = 32;
	env_up(&e);
	for (rounds = 0; posted < 70000; rounds++) {
		n = rounds % 3 == 0 ? 1 : rounds % 7 + 1;
		for (i = 0; i < n; i++) {
			uint64_t v = posted + 1;

			OK(bb_post_write_inline(e.a.qp, v, &v, sizeof(v),
						raddr_of(&e.b, posted % 64 * 8), e.b.mr->rkey,
						BB_SEND_SIGNALED));
			posted++;
		}
		bb_qp_ring(e.a.qp);
		for (got = 0; got < n;) {
			unsigned int k = bb_cq_poll(e.a.cq, wc, RTE_DIM(wc)), j;

			for (j = 0; j < k; j++) {
				expect(&wc[j], e.a.qp, ++seen, BB_WC_SUCCESS);
				assert_true(((uint64_t *)(void *)e.b.buf)[(seen - 1) % 64] >= seen);
			}
			got += k;
		}
	}
	assert_int_equal(seen, posted);
	OK(bb_qp_stats(e.a.qp, &stats));
	assert_int_equal(stats.posted, posted);
	assert_int_equal(stats.doorbells, rounds);
	assert_int_equal(stats.outstanding, 0);
	env_stop(&e);
}

TEST(test_doorbell_mode_survives_the_wraps)
{
	doorbell_mode(BB_DB_DOORBELL);
}

TEST(test_blueflame_mode_survives_the_wraps)
{
	doorbell_mode(BB_DB_BLUEFLAME);
}

/* Posts are limited to what the QP was created with, even where its WQEs have room for more. */
TEST(test_post_over_the_limits_asked_for_is_refused)
{
	static const uint32_t inline_bytes[] = {0, 1, 12, 13, 28, 30, 64, 100};
	static const uint8_t data[128];
	struct bb_sge sge[8];
	struct env e;
	uint32_t i, n;

	for (i = 0; i < RTE_DIM(inline_bytes); i++) {
		const uint32_t len = inline_bytes[i], pieces = 1 + i % 4;
		const struct bb_sge two[2] = {{(uintptr_t)data, len, 0}, {(uintptr_t)data, 1, 0}};
		struct bb_send_wr wr = {.opcode = BB_WR_SEND, .flags = BB_SEND_INLINE, .sge = two};
		int err;

		env_open(&e);
		e.init.max_inline = len;
		e.init.max_sge = pieces;
		e.init.max_recv_sge = pieces;
		env_up(&e);
		for (n = 0; n < RTE_DIM(sge); n++)
			sge[n] = sge_of(&e.a, 8 * n, 8);
		OK(bb_post_send_inline(e.a.qp, 1, data, len, 0));
		assert_int_equal(bb_post_send_inline(e.a.qp, 1, data, len + 1, 0), -EINVAL);
		wr.nsge = 1;
		assert_int_equal(bb_qp_post_list(e.a.qp, &wr, 1, &err), 1);
		wr.nsge = 2;
		assert_int_equal(bb_qp_post_list(e.a.qp, &wr, 1, &err), 0);
		assert_int_equal(err, -EINVAL);
		OK(bb_post_send(e.a.qp, 1, sge, pieces, 0));
		assert_int_equal(bb_post_send(e.a.qp, 1, sge, pieces + 1, 0), -EINVAL);
		OK(bb_post_recv(e.a.qp, 1, sge, pieces));
		assert_int_equal(bb_post_recv(e.a.qp, 1, sge, pieces + 1), -EINVAL);
		env_stop(&e);
	}
}

TEST_MAIN(env_eal_init("mlx5_ops"))
