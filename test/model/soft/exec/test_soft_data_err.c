/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Errors that the requester detects: malformed WQEs and bad local keys. Also the flush after an
 * error.
 */
#include <stdio.h>

#include "../soft_rig.h"

#define QP_OP      MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR
#define LENGTH     MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR
#define PROT       MLX5_CQE_SYNDROME_LOCAL_PROT_ERR
#define FLUSH      MLX5_CQE_SYNDROME_WR_FLUSH_ERR
#define REM_ACCESS MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR

static struct rig_pair *
open_pair(bool two_uars, const struct rig_link *l)
{
	static struct rig_pair p;

	rig_pair_open(&p, NULL, two_uars, l);
	return &p;
}

/* ---- The WQE itself. Each builder spoils one field; a NOP after it is flushed. */

/* Defines a function that posts a WQE and spoils it. */
#define BUILD(name, ...)                                                                           \
	static void name(struct rig_pair *p)                                                       \
	{                                                                                          \
		__VA_ARGS__;                                                                       \
	}

BUILD(ds_zero, rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
      ((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->a.qpn << 8))
BUILD(ds_too_large, rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
      ((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->a.qpn << 8 | 64))

/* A READ of 31 pieces: 528 bytes. */
static void
read_too_large(struct rig_pair *p)
{
	uint32_t i;

	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	for (i = 0; i < 31; i++)
		rig_data(&p->a, 2 + i, &p->ma, i * 8, 8);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_READ, RIG_CQE, 33, 0);
}

/* ds gives three blocks, but the record covers this block and the NOP's only. */
BUILD(beyond_record, rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
      ((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->a.qpn << 8 | 9))
BUILD(wrong_index, rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
      ((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->opmod_idx_opcode =
	      htobe32(1 << 8 | MLX5_OPCODE_RDMA_WRITE))
BUILD(wrong_qpn, rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
      ((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->b.qpn << 8 | 3))
BUILD(opmod, rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE); p->a.sq[0] = 1)
BUILD(unknown_opcode, rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE); p->a.sq[3] = 0x1f)
BUILD(no_raddr, rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 1, 0))
BUILD(atomic_short, rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
      rig_wqe(&p->a, MLX5_OPCODE_ATOMIC_FA, RIG_CQE, 3, 0))

static void
atomic_two_pieces(struct rig_pair *p)
{
	rig_data(&p->a, 4, &p->ma, 4, 4);
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
	((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->a.qpn << 8 | 5);
	p->a.pi++;
}

BUILD(atomic_4_bytes, rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
      mlx5dv_set_data_seg(rig_seg(&p->a, p->a.last, 3), 4, p->ma.mr->lkey, (uintptr_t)p->ma.p))
BUILD(inline_in_read, rig_inline(&p->a, 2, "x", 1);
      rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
      rig_wqe(&p->a, MLX5_OPCODE_RDMA_READ, RIG_CQE, 3, 0))
BUILD(inline_in_atomic, rig_inline(&p->a, 3, "abcdefgh", 8);
      rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
      rig_wqe(&p->a, MLX5_OPCODE_ATOMIC_CS, RIG_CQE, 4, 0))

static void
inline_too_long(struct rig_pair *p)
{
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_inline(&p->a, 2, "abcdefghijklm", 13);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0); /* 12 bytes fit */
}

static void
inline_too_long_two(struct rig_pair *p)
{
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_inline(&p->a, 2, p->ma.p, 45);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 5, 0); /* 44 bytes fit */
}

BUILD(inline_huge, rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
      *(uint32_t *)rig_seg(&p->a, p->a.pi, 2) = 0xffffffff;
      rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 4, 0))

/* 2^31 bytes, encoded as 0; the link allows 2^30. */
BUILD(too_long, rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
      mlx5dv_set_data_seg(rig_seg(&p->a, p->a.last, 2), 0, p->ma.mr->lkey, (uintptr_t)p->ma.p))

static void
too_long_sum(struct rig_pair *p)
{
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_data(&p->a, 2, &p->ma, 0, 1u << 30);
	rig_data(&p->a, 3, &p->ma, 0, 1);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_READ, RIG_CQE, 4, 0);
}

/* ---- Local keys */

static void
local(struct rig_pair *p, uint32_t lkey, uint64_t addr, uint32_t len, uint8_t opcode)
{
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	mlx5dv_set_data_seg(rig_seg(&p->a, p->a.pi, 2), len, lkey, addr);
	rig_wqe(&p->a, opcode, RIG_CQE, 3, 0);
}

BUILD(lkey_unknown, local(p, 0xfffe00, (uintptr_t)p->ma.p, 8, MLX5_OPCODE_RDMA_WRITE))
BUILD(lkey_index_out_of_table, local(p, 0xffffff00, (uintptr_t)p->ma.p, 8, MLX5_OPCODE_RDMA_WRITE))
BUILD(lkey_stale_variant,
      local(p, p->ma.mr->lkey ^ 1, (uintptr_t)p->ma.p, 8, MLX5_OPCODE_RDMA_WRITE))
BUILD(local_before, local(p, p->ma.mr->lkey, (uintptr_t)p->ma.p - 1, 8, MLX5_OPCODE_RDMA_WRITE))
BUILD(local_past_end,
      local(p, p->ma.mr->lkey, (uintptr_t)p->ma.p + RIG_MEM - 7, 8, MLX5_OPCODE_RDMA_WRITE))
BUILD(local_overflow, local(p, p->ma.mr->lkey, UINT64_MAX - 3, 8, MLX5_OPCODE_RDMA_WRITE))

static void
local_second_piece(struct rig_pair *p)
{
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_data(&p->a, 2, &p->ma, 0, 8);
	rig_data(&p->a, 3, &p->ma, RIG_MEM, 1);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 4, 0);
}

TEST(test_malformed_wqe_fails_and_flushes)
{
	static const struct {
		const char *name;
		void (*build)(struct rig_pair *p);
		uint8_t syndrome, vendor;
	} cases[] = {
		{"ds_zero", ds_zero, QP_OP, 0x68},
		{"ds_too_large", ds_too_large, QP_OP, 0x68},
		{"read_too_large", read_too_large, QP_OP, 0x68},
		{"beyond_record", beyond_record, QP_OP, 0x68},
		{"wrong_index", wrong_index, QP_OP, 0x68},
		{"wrong_qpn", wrong_qpn, QP_OP, 0x68},
		{"opmod", opmod, QP_OP, 0x68},
		{"unknown_opcode", unknown_opcode, QP_OP, 0x71},
		{"no_raddr", no_raddr, QP_OP, 0x68},
		{"atomic_short", atomic_short, QP_OP, 0x68},
		{"atomic_two_pieces", atomic_two_pieces, QP_OP, 0x68},
		{"atomic_4_bytes", atomic_4_bytes, LENGTH, 0x69},
		{"inline_in_read", inline_in_read, QP_OP, 0x68},
		{"inline_in_atomic", inline_in_atomic, QP_OP, 0x68},
		{"inline_too_long", inline_too_long, QP_OP, 0x68},
		{"inline_too_long_two", inline_too_long_two, QP_OP, 0x68},
		{"inline_huge", inline_huge, QP_OP, 0x68},
		{"too_long", too_long, LENGTH, 0x69},
		{"too_long_sum", too_long_sum, LENGTH, 0x69},
		{"lkey_unknown", lkey_unknown, PROT, 0x52},
		{"lkey_index_out_of_table", lkey_index_out_of_table, PROT, 0x52},
		{"lkey_stale_variant", lkey_stale_variant, PROT, 0x52},
		{"local_before", local_before, PROT, 0x54},
		{"local_past_end", local_past_end, PROT, 0x54},
		{"local_overflow", local_overflow, PROT, 0x54},
		{"local_second_piece", local_second_piece, PROT, 0x54},
	};
	size_t i, k;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig_pair *p = open_pair(false, NULL);
		struct rig_cqe e;

		printf("%s\n", cases[i].name);
		rig_recv(&p->a, &p->ma, 0, 8);
		cases[i].build(p);
		rig_nop(&p->a, 0);
		rig_ring(&p->a);
		assert_int_equal(rig_expect_error(&p->a, 0, cases[i].syndrome), cases[i].vendor);
		/*
		 * The requests after it are flushed: the NOP, at whichever index the device finds
		 * it, and the receive.
		 */
		rig_wait(&p->ca, p->u[0], &e);
		assert_int_equal(e.opcode, MLX5_CQE_REQ_ERR);
		assert_int_equal(e.syndrome, FLUSH);
		rig_wait(&p->ca, p->u[0], &e);
		while (e.opcode == MLX5_CQE_REQ_ERR && e.syndrome == FLUSH)
			rig_wait(&p->ca, p->u[0], &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
		assert_int_equal(e.syndrome, FLUSH);
		rig_expect_none(&p->ca, p->u[0]);
		assert_int_equal(rig_qp_state(&p->a), BB_PRM_QP_ERR);
		/* The peer did not see the request. */
		assert_int_equal(rig_qp_state(&p->b), BB_PRM_QP_RTS);
		rig_expect_none(&p->cb, p->u[1]);
		for (k = 0; k < RIG_MEM; k++)
			assert_int_equal(p->mb.p[k], 0);
		rig_pair_close(p);
	}
}

/* The longest message that a QP may send, and one byte more, for each operation. */
TEST(test_message_over_the_limit_fails)
{
	struct rig_link l = rig_link_default();
	uint32_t op, n;

	l.log_msg_max = 10;
	for (op = 0; op < 3; op++) {
		struct rig_pair *p = open_pair(false, &l);

		rig_recv(&p->b, &p->mb, 0, 4096);
		rig_recv(&p->b, &p->mb, 0, 4096);
		for (n = 1024; n <= 1025; n++) {
			if (op == 0)
				rig_write(&p->a, &p->ma, 0, n, &p->mb, 0, RIG_CQE);
			else if (op == 1)
				rig_read(&p->a, &p->ma, 0, n, &p->mb, 0, RIG_CQE);
			else
				rig_send(&p->a, &p->ma, 0, n, RIG_CQE);
		}
		rig_done(&p->a, p->a.head[3], 0);
		rig_expect_error(&p->a, 1, LENGTH);
		rig_pair_close(p);
	}
}

/* READ, atomic result and receive need a key with LOCAL_WRITE; a WRITE does not. */
TEST(test_scatter_needs_local_write)
{
	struct rig_pair *p;
	struct rig_mem ro;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		p = open_pair(false, NULL);
		rig_mem_open(&ro, &p->d, NULL, 4096, BB_ACCESS_REMOTE_READ);
		rig_write(&p->a, &ro, 0, 8, &p->mb, 0, RIG_CQE);
		if (i == 0)
			rig_read(&p->a, &ro, 0, 8, &p->mb, 0, RIG_CQE);
		else if (i == 1)
			rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &ro, 0, &p->mb, 0, 1, 0, RIG_CQE);
		else
			rig_nop(&p->a, RIG_CQE);
		rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
		if (i < 2)
			assert_int_equal(rig_expect_error(&p->a, 1, PROT), 0x33);
		rig_mem_close(&ro);
		rig_pair_close(p);
	}
}

/* ---- Flush */

/* One CQE per WQE in order, unsignalled WQEs too, then one per WQE posted later, on both queues. */
RIG_TEST(test_flush_reports_every_wqe_in_order, NULL)
{
	struct rig_cqe e;
	uint16_t first;
	uint32_t i;

	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, 0);
	lkey_unknown(p);
	/* Two blocks, one block, one block. */
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	for (i = 0; i < 4; i++)
		rig_data(&p->a, 2 + i, &p->ma, 0, 1);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, 0, 6, 0);
	rig_nop(&p->a, 0);
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 8, RIG_CQE);
	for (i = 0; i < 3; i++)
		rig_recv(&p->a, &p->ma, 0, 8);
	rig_ring(&p->a);
	rig_expect_error(&p->a, 1, PROT);
	rig_expect_error(&p->a, 2, FLUSH);
	rig_expect_error(&p->a, 4, FLUSH);
	rig_expect_error(&p->a, 5, FLUSH);
	for (i = 0; i < 3; i++) {
		rig_wait(&p->ca, p->u[0], &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
		assert_int_equal(e.syndrome, FLUSH);
		assert_int_equal(e.counter, i);
		assert_int_equal(e.uidx, 0xa11ce);
	}
	rig_expect_none(&p->ca, p->u[0]);
	assert_memory_equal(p->mb.p, p->ma.p, 8); /* the preceding request was executed */
	assert_int_equal(p->mb.p[8], 0);

	first = p->a.pi;
	rig_nop(&p->a, 0);
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 8, 0);
	rig_ring(&p->a);
	rig_expect_error(&p->a, first, FLUSH);
	rig_expect_error(&p->a, first + 1, FLUSH);
	rig_recv(&p->a, &p->ma, 0, 8);
	rig_wait(&p->ca, p->u[0], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
	assert_int_equal(e.counter, 3);
	rig_expect_none(&p->ca, p->u[0]);
	assert_int_equal(p->mb.p[8], 0);
}

/* 2ERR flushes. 2RST does not flush, and the counters start at 0 again. */
RIG_TEST(test_2err_flushes_and_2rst_does_not, NULL)
{
	struct rig_link l = rig_link_default();
	struct rig_cqe e;

	rig_recv(&p->a, &p->ma, 0, 8);
	rig_nop(&p->a, 0);
	rig_record(&p->a);
	rig_qp_error(&p->a);
	rig_expect_error(&p->a, 0, FLUSH);
	rig_wait(&p->ca, p->u[0], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
	rig_expect_none(&p->ca, p->u[0]);

	rig_qp_reset(&p->a);
	rig_qp_reset(&p->b);
	rig_connect(&p->a, &p->b, &l);
	rig_recv(&p->b, &p->mb, 0, 8);
	rig_send(&p->a, &p->ma, 0, 8, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_SEND, 0);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	assert_int_equal(e.counter, 0);
	rig_recv(&p->b, &p->mb, 0, 8);
	rig_qp_reset(&p->b);
	rig_expect_none(&p->cb, p->u[1]);
}

TEST_MAIN(0)
