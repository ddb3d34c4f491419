/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Operations of valid WQEs: opcodes, shapes, wraps. */
#include "../soft_rig.h"

/*
 * Checks that [at, at + len) of b's memory equals a's memory from @off, and that the bytes around
 * it are unchanged.
 */
static void
check_written(struct rig_pair *p, size_t at, size_t off, size_t len)
{
	size_t i;

	for (i = 0; i < RIG_MEM; i++) {
		uint8_t want = i >= at && i - at < len ? p->ma.p[off + i - at] : 0;

		if (p->mb.p[i] != want)
			fail_msg("byte %zu is 0x%02x, not 0x%02x", i, p->mb.p[i], want);
	}
	memset(p->mb.p + at, 0, len);
}

RIG_TEST(test_write_of_each_size_arrives, NULL)
{
	static const uint32_t sizes[] = {1,   2,    3,    4,    5,    7,    8,    9,     15,
					 16,  17,   31,   63,   64,   65,   100,  127,   128,
					 255, 1000, 1023, 1024, 1025, 4096, 5000, 65536, 131072};
	size_t i, at;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (at = 0; at < 9; at += 3) {
			rig_write(&p->a, &p->ma, 5 * at, sizes[i], &p->mb, 1000 + at, RIG_CQE);
			rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
			check_written(p, 1000 + at, 5 * at, sizes[i]);
		}
	}
	rig_expect_none(&p->ca, p->u[0]);
	rig_expect_none(&p->cb, p->u[1]);
}

RIG_TEST(test_read_names_its_queue_and_bytes, NULL)
{
	struct rig_cqe e;

	rig_read(&p->b, &p->mb, 64, 3000, &p->ma, 77, RIG_CQE);
	rig_ring(&p->b);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_REQ);
	assert_int_equal(e.sop, MLX5_OPCODE_RDMA_READ);
	assert_int_equal(e.bytes, 3000);
	assert_int_equal(e.qpn, p->b.qpn);
	assert_int_equal(e.uidx, 0xb0b);
	assert_int_equal(e.counter, 0);
	check_written(p, 64, 77, 3000);
}

RIG_TEST(test_atomics_return_the_old_value, NULL)
{
	uint64_t *target = (uint64_t *)(void *)(p->mb.p + 512);
	uint64_t *result = (uint64_t *)(void *)(p->ma.p + 256);
	struct rig_cqe e;

	*target = 0x1122334455667788;
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 256, &p->mb, 512, 3, 0, RIG_CQE);
	rig_ring(&p->a);
	rig_wait(&p->ca, p->u[0], &e);
	assert_int_equal(e.opcode, MLX5_CQE_REQ);
	assert_int_equal(e.sop, MLX5_OPCODE_ATOMIC_FA);
	assert_int_equal(e.bytes, 8);
	assert_int_equal(*result, 0x1122334455667788);
	assert_int_equal(*target, 0x112233445566778b);

	/* A comparison that fails, then one that succeeds. */
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_CS, &p->ma, 256, &p->mb, 512, 9, 5, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_ATOMIC_CS, 1);
	assert_int_equal(*result, 0x112233445566778b);
	assert_int_equal(*target, 0x112233445566778b);
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_CS, &p->ma, 256, &p->mb, 512, 9, 0x112233445566778b,
		   RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_ATOMIC_CS, 2);
	assert_int_equal(*result, 0x112233445566778b);
	assert_int_equal(*target, 9);
}

RIG_TEST(test_send_completes_its_receive, NULL)
{
	struct rig_cqe e;

	rig_recv(&p->b, &p->mb, 100, 64);
	rig_recv(&p->b, &p->mb, 300, 64);
	rig_send(&p->a, &p->ma, 10, 40, RIG_CQE);
	rig_data(&p->a, 1, &p->ma, 20, 64);
	rig_wqe(&p->a, MLX5_OPCODE_SEND_IMM, RIG_CQE | MLX5_WQE_CTRL_SOLICITED, 2, 0xdeadbeef);
	rig_done(&p->a, MLX5_OPCODE_SEND, 0);
	rig_expect_ok(&p->a, MLX5_OPCODE_SEND_IMM, 1);

	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	assert_int_equal(e.bytes, 40);
	assert_int_equal(e.counter, 0);
	assert_int_equal(e.uidx, 0xb0b);
	assert_int_equal(e.qpn, p->b.qpn);
	assert_false(e.solicited);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND_IMM);
	assert_int_equal(e.bytes, 64);
	assert_int_equal(e.counter, 1);
	assert_int_equal(e.imm, 0xdeadbeef);
	assert_true(e.solicited);
	assert_memory_equal(p->mb.p + 300, p->ma.p + 20, 64);
	memset(p->mb.p + 300, 0, 64);
	check_written(p, 100, 10, 40);
}

RIG_TEST(test_write_with_immediate_completes_a_receive, NULL)
{
	struct rig_cqe e;

	rig_recv(&p->b, &p->mb, 0, 0);
	rig_raddr(&p->a, (uintptr_t)p->mb.p + 700, p->mb.mr->rkey);
	rig_data(&p->a, 2, &p->ma, 11, 200);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE_IMM, RIG_CQE, 3, 0x01020304);
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE_IMM, 0);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_WR_IMM);
	assert_int_equal(e.bytes, 200);
	assert_int_equal(e.imm, 0x01020304);
	assert_int_equal(e.counter, 0);
	check_written(p, 700, 11, 200);
}

/* A WQE in literal bytes: an RDMA WRITE of 8 inline bytes with a CQE. */
RIG_TEST(test_wqe_in_literal_bytes_is_executed, NULL)
{
	uint8_t wqe[64] = {
		0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x03, /* index 0, WRITE, ds 3 */
		0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, /* ce 2 */
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* address */
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* rkey */
		0x80, 0x00, 0x00, 0x08, 0x10, 0x11, 0x12, 0x13, /* inline, 8 bytes */
		0x14, 0x15, 0x16, 0x17, 0xee, 0xee, 0xee, 0xee, /* padding */
	};
	static const uint8_t want[12] = {0,    0,    0x10, 0x11, 0x12, 0x13,
					 0x14, 0x15, 0x16, 0x17, 0,    0};
	uint64_t addr = htobe64((uintptr_t)p->mb.p + 2);
	uint32_t rkey = htobe32(p->mb.mr->rkey);
	uint64_t head;

	wqe[4] = (uint8_t)(p->a.qpn >> 16);
	wqe[5] = (uint8_t)(p->a.qpn >> 8);
	wqe[6] = (uint8_t)p->a.qpn;
	memcpy(wqe + 16, &addr, 8);
	memcpy(wqe + 24, &rkey, 4);
	memcpy(p->a.sq, wqe, sizeof(wqe));
	p->a.dbrec[1] = htobe32(1);
	memcpy(&head, wqe, 8);
	__atomic_store_n((uint64_t *)(void *)p->ua.uar->reg_addr, head, __ATOMIC_RELEASE);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
	assert_memory_equal(p->mb.p, want, sizeof(want));
}

RIG_TEST(test_inline_and_pointed_data_arrive_in_order, NULL)
{
	static const uint32_t sizes[] = {1, 3, 4, 11, 12, 13, 28, 29, 60, 100, 188, 828, 956};
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t ds = 2;

		rig_raddr(&p->a, (uintptr_t)p->mb.p + 40, p->mb.mr->rkey);
		ds += rig_inline(&p->a, 2, p->ma.p + 9, sizes[i]);
		rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, ds, 0);
		rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
		check_written(p, 40, 9, sizes[i]);
	}
	/* Inline, pointer and inline in one list, with an empty inline segment between them. */
	rig_raddr(&p->a, (uintptr_t)p->mb.p + 40, p->mb.mr->rkey);
	assert_int_equal(rig_inline(&p->a, 2, p->ma.p, 20), 2);
	rig_inline(&p->a, 4, NULL, 0);
	rig_data(&p->a, 5, &p->ma, 20, 100);
	assert_int_equal(rig_inline(&p->a, 6, p->ma.p + 120, 7), 1);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 7, 0);
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
	check_written(p, 40, 0, 127);
	/* Inline data and a pointer in one block, and in two. */
	for (i = 0; i < 2; i++) {
		uint32_t len = i == 0 ? 4 : 40, ds = 2;

		rig_raddr(&p->a, (uintptr_t)p->mb.p + 40, p->mb.mr->rkey);
		ds += rig_inline(&p->a, 2, p->ma.p, len);
		rig_data(&p->a, ds, &p->ma, len, 16);
		rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, ds + 1, 0);
		rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
		check_written(p, 40, 0, len + 16);
	}
}

/* As many pieces as a WQE can hold: 61 of an RDMA WRITE, 30 of a READ; gathered and scattered. */
RIG_TEST(test_most_pieces_of_a_wqe_arrive, NULL)
{
	uint32_t i;

	rig_raddr(&p->a, (uintptr_t)p->mb.p + 1, p->mb.mr->rkey);
	for (i = 0; i < 61; i++)
		rig_data(&p->a, 2 + i, &p->ma, i * 33, 33);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 63, 0);
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
	check_written(p, 1, 0, 61 * 33);

	rig_raddr(&p->b, (uintptr_t)p->ma.p + 5, p->ma.mr->rkey);
	for (i = 0; i < 30; i++)
		rig_data(&p->b, 2 + i, &p->mb, i * 50, 50);
	rig_wqe(&p->b, MLX5_OPCODE_RDMA_READ, RIG_CQE, 32, 0);
	rig_done(&p->b, MLX5_OPCODE_RDMA_READ, 0);
	check_written(p, 0, 5, 30 * 50);
}

/* Pieces of the sender and of the receiver with different sizes. */
RIG_TEST(test_unequal_pieces_of_both_sides_match, NULL)
{
	struct mlx5_wqe_data_seg *s = (void *)p->b.rq;
	struct rig_cqe e;

	mlx5dv_set_data_seg(&s[0], 10, p->mb.mr->lkey, (uintptr_t)p->mb.p);
	mlx5dv_set_data_seg(&s[1], 100, p->mb.mr->lkey, (uintptr_t)p->mb.p + 10);
	mlx5dv_set_data_seg(&s[2], 1, p->mb.mr->lkey, (uintptr_t)p->mb.p + 110);
	mlx5dv_set_data_seg(&s[3], 500, p->mb.mr->lkey, (uintptr_t)p->mb.p + 111);
	p->b.dbrec[0] = htobe32(1);
	rig_data(&p->a, 1, &p->ma, 0, 3);
	rig_data(&p->a, 2, &p->ma, 3, 150);
	rig_data(&p->a, 3, &p->ma, 153, 47);
	rig_wqe(&p->a, MLX5_OPCODE_SEND, RIG_CQE, 4, 0);
	rig_done(&p->a, MLX5_OPCODE_SEND, 0);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.bytes, 200);
	check_written(p, 0, 0, 200);
}

RIG_TEST(test_unsignalled_wqes_have_no_completion, NULL)
{
	uint32_t i;

	for (i = 0; i < 5; i++)
		rig_write(&p->a, &p->ma, i, 1, &p->mb, i, 0);
	rig_nop(&p->a, 0);
	rig_nop(&p->a, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_NOP, 6);
	rig_expect_none(&p->ca, p->u[0]);
	check_written(p, 0, 0, 5);
}

/*
 * 70,000 WQEs of 1 to 4 blocks in a ring of 64: every WQE offset at the ring's end, and wraps of
 * the 16-bit index. The CQ of 256 CQEs wraps 273 times.
 */
RIG_TEST(test_wqes_survive_the_wraps_of_ring_and_index, NULL)
{
	uint32_t i;

	for (i = 0; i < 70000; i++) {
		uint32_t n = 1 + i % 11, k, at = i % 999;
		uint16_t idx = p->a.pi;

		rig_raddr(&p->a, (uintptr_t)p->mb.p + at, p->mb.mr->rkey);
		for (k = 0; k < n; k++)
			rig_data(&p->a, 2 + k, &p->ma, i % 77 + 3 * k, 3);
		rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 2 + n, 0);
		rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, idx);
		if (memcmp(p->mb.p + at, p->ma.p + i % 77, 3 * n) != 0 || p->mb.p[at + 3 * n] != 0)
			fail_msg("WQE %u at index %u wrote something else", i, idx);
		memset(p->mb.p + at, 0, 3 * n);
	}
	assert_true(p->ca.ci == 70000);
}

RIG_TEST(test_inline_data_wraps_at_the_rings_end, NULL)
{
	uint32_t i, len;

	for (i = 0; i < 600; i++) {
		uint32_t ds = 2;

		/*
		 * Blocks: first 3 or 4; then 1 or 2, of which one WQE in three crosses the ring's
		 * end.
		 */
		len = i < 300 ? 150 + i % 70 : i % 3 == 0 ? 8 : 29 + i % 64;
		rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
		ds += rig_inline(&p->a, 2, p->ma.p + i, len);
		rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, ds, 0);
		rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
		assert_memory_equal(p->mb.p, p->ma.p + i, len);
	}
}

/* SENDs of 1 to 4 blocks in a ring of 64 blocks. */
RIG_TEST(test_inline_sends_wrap_at_the_rings_end, NULL)
{
	struct rig_cqe e;
	uint32_t i, len;

	for (i = 0; i < 600; i++) {
		len = 1 + i % 229;
		rig_recv(&p->b, &p->mb, 0, 256);
		rig_wqe(&p->a, MLX5_OPCODE_SEND, RIG_CQE,
			1 + rig_inline(&p->a, 1, p->ma.p + i, len), 0);
		rig_done(&p->a, MLX5_OPCODE_SEND, p->a.last);
		rig_wait(&p->cb, p->u[1], &e);
		assert_int_equal(e.bytes, len);
		assert_memory_equal(p->mb.p, p->ma.p + i, len);
	}
}

/* 70,000 receives: the 16-bit WQE counter of the RQ wraps, too. */
RIG_TEST(test_receive_counter_wraps, NULL)
{
	struct rig_cqe e;
	uint32_t i;

	for (i = 0; i < 70000; i++) {
		rig_recv(&p->b, &p->mb, i % 100, 8);
		rig_send(&p->a, &p->ma, i % 64, 8, 0);
		rig_ring(&p->a);
		rig_wait(&p->cb, p->u[1], &e);
		if (e.opcode != MLX5_CQE_RESP_SEND || e.counter != (uint16_t)i ||
		    memcmp(p->mb.p + i % 100, p->ma.p + i % 64, 8) != 0)
			fail_msg("receive %u: opcode %u counter %u", i, e.opcode, e.counter);
	}
}

/* A full ring under one doorbell, with more WQEs than one turn executes. */
RIG_TEST(test_full_ring_is_executed_by_one_doorbell, NULL)
{
	const struct rig_qp_attr attr = {.log_sq = 8, .log_rq = 2, .log_stride = 6, .uidx = 1};
	struct rig_link l = rig_link_default();
	struct rig_qp q;
	uint32_t i;

	rig_qp_open(&q, &p->ua, &p->ca, &p->ca, &attr);
	rig_connect(&q, &q, &l);
	for (i = 0; i < 256; i++)
		rig_write(&q, &p->ma, i, 1, &p->mb, i, RIG_CQE);
	rig_ring(&q);
	for (i = 0; i < 256; i++)
		rig_expect_ok(&q, MLX5_OPCODE_RDMA_WRITE, (uint16_t)i);
	check_written(p, 0, 0, 256);
	rig_qp_close(&q);
}

RIG_TEST(test_qp_connected_to_itself_works_and_fails, NULL)
{
	const struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 2, .log_stride = 6, .uidx = 1};
	struct rig_link l = rig_link_default();
	struct rig_cqe e;
	struct rig_qp q;

	rig_qp_open(&q, &p->ua, &p->ca, &p->cb, &attr);
	rig_connect(&q, &q, &l);
	rig_recv(&q, &p->mb, 0, 100);
	rig_send(&q, &p->ma, 0, 100, RIG_CQE);
	rig_done(&q, MLX5_OPCODE_SEND, 0);
	rig_wait(&p->cb, &p->ua, &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	check_written(p, 0, 0, 100);
	/* After an error: one error CQE, then one flush error per WQE, on each queue. */
	rig_recv(&q, &p->mb, 0, 10);
	rig_recv(&q, &p->mb, 0, 10);
	rig_send(&q, &p->ma, 0, 100, 0);
	rig_nop(&q, 0);
	rig_ring(&q);
	rig_expect_error(&q, 1, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
	rig_expect_error(&q, 2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_wait(&p->cb, &p->ua, &e);
	assert_int_equal(e.syndrome, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
	rig_wait(&p->cb, &p->ua, &e);
	assert_int_equal(e.syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_expect_none(&p->ca, &p->ua);
	rig_expect_none(&p->cb, &p->ua);
	rig_qp_close(&q);
}

/* With "shuffle" every byte still arrives, for pieces of all sizes and all offsets. */
TEST(test_shuffled_payload_arrives_whole)
{
	static struct rig_pair p;
	uint32_t len, at, i;

	rig_pair_open(&p, "shuffle=1,seed=7", false, NULL);
	for (len = 1; len < 5000; len += 1 + len / 7) {
		for (at = 0; at < 130; at += 13) {
			rig_write(&p.a, &p.ma, 1, len, &p.mb, at, RIG_CQE);
			rig_done(&p.a, MLX5_OPCODE_RDMA_WRITE, p.a.last);
			check_written(&p, at, 1, len);
		}
	}
	rig_raddr(&p.a, (uintptr_t)p.mb.p + 3, p.mb.mr->rkey);
	for (i = 0; i < 8; i++)
		rig_data(&p.a, 2 + i, &p.ma, i * 777, 777);
	rig_wqe(&p.a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 10, 0);
	rig_read(&p.a, &p.mb, 100000, 70000, &p.ma, 0, RIG_CQE);
	rig_done(&p.a, MLX5_OPCODE_RDMA_WRITE, p.a.last - 3);
	rig_expect_ok(&p.a, MLX5_OPCODE_RDMA_READ, p.a.last);
	assert_memory_equal(p.mb.p + 100000, p.ma.p, 70000);
	memset(p.mb.p + 100000, 0, 70000);
	check_written(&p, 3, 0, 8 * 777);
	rig_pair_close(&p);
}

TEST_MAIN(0)
