/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Data in CQEs for QPs that ask for it (qpc cs_req, cs_res): data of READs and atomics, and of
 * receives from a QP's own RQ. Receives from an RMP are in test_soft_data_srq.c.
 */
#include "../soft_rig.h"

static void
expect_format(const struct rig_cq *c, const uint8_t *data, uint32_t len)
{
	const uint8_t *cqe = rig_cqe_bytes(c);

	assert_int_equal(cqe[63] & 0xc, data != NULL ? MLX5_INLINE_SCATTER_32 : 0);
	if (data != NULL)
		assert_memory_equal(cqe, data, len);
}

TEST(test_short_responses_are_in_the_cqe)
{
	struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 2, .log_stride = 6, .cs_req = 0x11};
	static struct rig_pair p;
	struct rig_link l = rig_link_default();
	struct rig_qp a;
	uint64_t old = 0x1122334455667788, now;

	rig_pair_open(&p, NULL, false, NULL);
	rig_qp_open(&a, p.u[0], &p.ca, &p.ca, &attr);
	rig_qp_reset(&p.b);
	rig_connect(&a, &p.b, &l);
	memset(p.ma.p, 0xee, 4096);
	memset(p.mb.p + 1000, 0x5a, 100);
	memcpy(p.mb.p + 2000, &old, 8);

	/*
	 * 32 bytes with a CQE are in the CQE; 33 bytes, or data of a request without a CQE, are
	 * in the buffer.
	 */
	rig_read(&a, &p.ma, 0, 32, &p.mb, 1000, RIG_CQE);
	rig_done(&a, MLX5_OPCODE_RDMA_READ, 0);
	expect_format(&p.ca, p.mb.p + 1000, 32);
	assert_int_equal(p.ma.p[0], 0xee);
	rig_read(&a, &p.ma, 0, 33, &p.mb, 1000, RIG_CQE);
	rig_done(&a, MLX5_OPCODE_RDMA_READ, 1);
	expect_format(&p.ca, NULL, 0);
	assert_memory_equal(p.ma.p, p.mb.p + 1000, 33);
	rig_read(&a, &p.ma, 100, 32, &p.mb, 1000, 0);
	rig_nop(&a, RIG_CQE);
	rig_done(&a, MLX5_OPCODE_NOP, 3);
	expect_format(&p.ca, NULL, 0);
	assert_memory_equal(p.ma.p + 100, p.mb.p + 1000, 32);
	/* Atomics, and the request after one in the queue. */
	rig_atomic(&a, MLX5_OPCODE_ATOMIC_FA, &p.ma, 200, &p.mb, 2000, 1, 0, RIG_CQE);
	rig_write(&a, &p.mb, 0, 8, &p.mb, 3000, RIG_CQE);
	rig_done(&a, MLX5_OPCODE_ATOMIC_FA, 4);
	expect_format(&p.ca, (uint8_t *)&old, 8);
	assert_int_equal(p.ma.p[200], 0xee);
	rig_expect_ok(&a, MLX5_OPCODE_RDMA_WRITE, 5);
	expect_format(&p.ca, NULL, 0);
	memcpy(&now, p.mb.p + 2000, 8);
	assert_int_equal(now, old + 1);
	rig_atomic(&a, MLX5_OPCODE_ATOMIC_FA, &p.ma, 200, &p.mb, 2000, 1, 0, 0);
	rig_nop(&a, RIG_CQE);
	rig_done(&a, MLX5_OPCODE_NOP, 7);
	assert_memory_equal(p.ma.p + 200, &now, 8);
	rig_qp_close(&a);
	rig_pair_close(&p);
}

/* CQEs of 128 bytes hold up to 64 bytes of data, in the half before their fields. */
TEST(test_cqes_of_128_bytes_have_64_bytes_of_data)
{
	struct rig_qp_attr attr = {
		.log_sq = 6, .log_rq = 4, .log_stride = 6, .cs_req = 0x22, .cs_res = 0x2};
	static struct rig_pair p;
	struct rig_link l = rig_link_default();
	struct rig_cq big;
	struct rig_cqe e;
	struct rig_qp a;
	uint32_t i;

	rig_pair_open(&p, NULL, false, NULL);
	rig_cq_open_size(&big, p.u[0], 2, 128);
	rig_qp_open(&a, p.u[0], &big, &big, &attr);
	rig_qp_reset(&p.b);
	rig_connect(&a, &p.b, &l);
	memset(p.ma.p, 0xee, 4096);
	memset(p.mb.p + 1000, 0x5a, 64);
	/* More CQEs than the ring has, so that the owner bit changes. */
	for (i = 0; i < 6; i++) {
		p.mb.p[1000] = (uint8_t)i;
		rig_read(&a, &p.ma, 0, 64, &p.mb, 1000, RIG_CQE);
		rig_done(&a, MLX5_OPCODE_RDMA_READ, (uint16_t)i);
		assert_int_equal(rig_cqe_bytes(&big)[63] & 0xc, MLX5_INLINE_SCATTER_64);
		assert_memory_equal(rig_cqe_bytes(&big) - 64, p.mb.p + 1000, 64);
	}
	assert_int_equal(p.ma.p[0], 0xee);
	rig_read(&a, &p.ma, 0, 65, &p.mb, 1000, RIG_CQE);
	rig_done(&a, MLX5_OPCODE_RDMA_READ, 6);
	expect_format(&big, NULL, 0);
	assert_memory_equal(p.ma.p, p.mb.p + 1000, 65);
	/* A receive of 64 bytes. */
	rig_recv(&a, &p.ma, 200, 64);
	rig_data(&p.b, 1, &p.mb, 1000, 64);
	rig_wqe(&p.b, MLX5_OPCODE_SEND, RIG_CQE, 2, 0);
	rig_ring(&p.b);
	rig_wait(&big, p.u[0], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	assert_int_equal(e.bytes, 64);
	assert_memory_equal(rig_cqe_bytes(&big) - 64, p.mb.p + 1000, 64);
	assert_int_equal(p.ma.p[200], 0xee);
	rig_qp_close(&a);
	rig_cq_close(&big);
	rig_pair_close(&p);
}

/* Data gathered from several pieces and inline data, to a receive of the QP's own RQ. */
TEST(test_short_messages_are_in_the_cqe_of_the_receive)
{
	struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 4, .log_stride = 6, .cs_res = 1};
	static struct rig_pair p;
	struct rig_link l = rig_link_default();
	struct rig_cqe e;
	struct rig_qp b;
	uint8_t want[32];

	rig_pair_open(&p, NULL, false, NULL);
	rig_qp_open(&b, p.u[1], &p.cb, &p.cb, &attr);
	rig_qp_reset(&p.a);
	rig_connect(&p.a, &b, &l);
	memset(p.mb.p, 0xee, 4096);
	rig_recv(&b, &p.mb, 0, 64);
	rig_recv(&b, &p.mb, 128, 64);
	rig_data(&p.a, 1, &p.ma, 0, 10);
	rig_data(&p.a, 2, &p.ma, 500, 22);
	rig_wqe(&p.a, MLX5_OPCODE_SEND_IMM, RIG_CQE, 3, htobe32(0x01020304));
	rig_ring(&p.a);
	rig_wait(&p.cb, p.u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND_IMM);
	assert_int_equal(e.bytes, 32);
	assert_int_equal(e.imm, htobe32(0x01020304));
	memcpy(want, p.ma.p, 10);
	memcpy(want + 10, p.ma.p + 500, 22);
	expect_format(&p.cb, want, 32);
	assert_int_equal(p.mb.p[0], 0xee);
	rig_expect_ok(&p.a, MLX5_OPCODE_SEND_IMM, 0);
	/* The data of a WRITE goes to no CQE. */
	rig_raddr(&p.a, (uintptr_t)p.mb.p + 2048, p.mb.mr->rkey);
	rig_data(&p.a, 2, &p.ma, 0, 8);
	rig_wqe(&p.a, MLX5_OPCODE_RDMA_WRITE_IMM, RIG_CQE, 3, 0);
	rig_ring(&p.a);
	rig_wait(&p.cb, p.u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_WR_IMM);
	assert_int_equal(e.counter, 1);
	expect_format(&p.cb, NULL, 0);
	assert_memory_equal(p.mb.p + 2048, p.ma.p, 8);
	rig_qp_close(&b);
	rig_pair_close(&p);
}

TEST_MAIN(0)
