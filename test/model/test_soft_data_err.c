/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Every error CQE: what provokes it, on which side it shows, what follows. */
#include <stdio.h>

#include "soft_rig.h"

#define QP_OP        MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR
#define LENGTH       MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR
#define PROT         MLX5_CQE_SYNDROME_LOCAL_PROT_ERR
#define FLUSH        MLX5_CQE_SYNDROME_WR_FLUSH_ERR
#define INVALID      MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
#define REM_ACCESS   MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR
#define REM_OP       MLX5_CQE_SYNDROME_REMOTE_OP_ERR
#define EVENT_CATAS  0x05
#define EVENT_INVAL  0x10
#define EVENT_ACCESS 0x11

static struct rig_pair *
open_pair(bool two_uars, const struct rig_link *l)
{
	static struct rig_pair p;

	rig_pair_open(&p, NULL, two_uars, l);
	return &p;
}

/* The state of a QP that another engine moves: its owner has to poll. */
static void
expect_state(struct rig_pair *p, struct rig_qp *q, uint32_t state)
{
	rig_polls(p->u[0], 3);
	rig_polls(p->u[1], 3);
	assert_int_equal(rig_qp_state(q), state);
}

/* ---- The WQE itself. Each builder spoils one thing; a NOP behind it is flushed. */

static void
ds_zero(struct rig_pair *p)
{
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->a.qpn << 8);
}

static void
ds_too_large(struct rig_pair *p)
{
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->a.qpn << 8 | 64);
}

/* ds of three blocks, but the record covers this one and the NOP. */
static void
beyond_record(struct rig_pair *p)
{
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->a.qpn << 8 | 9);
}

static void
wrong_index(struct rig_pair *p)
{
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->opmod_idx_opcode =
		htobe32(1 << 8 | MLX5_OPCODE_RDMA_WRITE);
}

static void
wrong_qpn(struct rig_pair *p)
{
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->b.qpn << 8 | 3);
}

static void
opmod(struct rig_pair *p)
{
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	p->a.sq[0] = 1;
}

static void
unknown_opcode(struct rig_pair *p)
{
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	p->a.sq[3] = 0x1f;
}

static void
no_raddr(struct rig_pair *p)
{
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 1, 0);
}

static void
atomic_short(struct rig_pair *p)
{
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_wqe(&p->a, MLX5_OPCODE_ATOMIC_FA, RIG_CQE, 3, 0);
}

static void
atomic_two_pieces(struct rig_pair *p)
{
	rig_data(&p->a, 4, &p->ma, 4, 4);
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
	((struct mlx5_wqe_ctrl_seg *)(void *)p->a.sq)->qpn_ds = htobe32(p->a.qpn << 8 | 5);
	p->a.pi++;
}

static void
atomic_4_bytes(struct rig_pair *p)
{
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
	mlx5dv_set_data_seg(rig_seg(&p->a, p->a.last, 3), 4, p->ma.mr->lkey, (uintptr_t)p->ma.p);
}

static void
inline_in_read(struct rig_pair *p)
{
	rig_inline(&p->a, 2, "x", 1);
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_READ, RIG_CQE, 3, 0);
}

static void
inline_in_atomic(struct rig_pair *p)
{
	rig_inline(&p->a, 3, "abcdefgh", 8);
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_wqe(&p->a, MLX5_OPCODE_ATOMIC_CS, RIG_CQE, 4, 0);
}

static void
inline_too_long(struct rig_pair *p)
{
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_inline(&p->a, 2, "abcdefghijklm", 13);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0); /* 12 bytes fit */
}

static void
inline_huge(struct rig_pair *p)
{
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	*(uint32_t *)rig_seg(&p->a, p->a.pi, 2) = 0xffffffff;
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 4, 0);
}

/* 2^31 bytes, written as 0; the link allows 2^30. */
static void
too_long(struct rig_pair *p)
{
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	mlx5dv_set_data_seg(rig_seg(&p->a, p->a.last, 2), 0, p->ma.mr->lkey, (uintptr_t)p->ma.p);
}

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

static void
lkey_unknown(struct rig_pair *p)
{
	local(p, 0xfffe00, (uintptr_t)p->ma.p, 8, MLX5_OPCODE_RDMA_WRITE);
}

static void
lkey_index_out_of_table(struct rig_pair *p)
{
	local(p, 0xffffff00, (uintptr_t)p->ma.p, 8, MLX5_OPCODE_RDMA_WRITE);
}

static void
lkey_stale_variant(struct rig_pair *p)
{
	local(p, p->ma.mr->lkey ^ 1, (uintptr_t)p->ma.p, 8, MLX5_OPCODE_RDMA_WRITE);
}

static void
local_before(struct rig_pair *p)
{
	local(p, p->ma.mr->lkey, (uintptr_t)p->ma.p - 1, 8, MLX5_OPCODE_RDMA_WRITE);
}

static void
local_past_end(struct rig_pair *p)
{
	local(p, p->ma.mr->lkey, (uintptr_t)p->ma.p + RIG_MEM - 7, 8, MLX5_OPCODE_RDMA_WRITE);
}

static void
local_overflow(struct rig_pair *p)
{
	local(p, p->ma.mr->lkey, UINT64_MAX - 3, 8, MLX5_OPCODE_RDMA_WRITE);
}

static void
local_second_piece(struct rig_pair *p)
{
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_data(&p->a, 2, &p->ma, 0, 8);
	rig_data(&p->a, 3, &p->ma, RIG_MEM, 1);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 4, 0);
}

static void
test_requester(void **state)
{
	static const struct {
		const char *name;
		void (*build)(struct rig_pair *p);
		uint8_t syndrome;
	} cases[] = {
		{"ds_zero", ds_zero, QP_OP},
		{"ds_too_large", ds_too_large, QP_OP},
		{"beyond_record", beyond_record, QP_OP},
		{"wrong_index", wrong_index, QP_OP},
		{"wrong_qpn", wrong_qpn, QP_OP},
		{"opmod", opmod, QP_OP},
		{"unknown_opcode", unknown_opcode, QP_OP},
		{"no_raddr", no_raddr, QP_OP},
		{"atomic_short", atomic_short, QP_OP},
		{"atomic_two_pieces", atomic_two_pieces, QP_OP},
		{"atomic_4_bytes", atomic_4_bytes, LENGTH},
		{"inline_in_read", inline_in_read, QP_OP},
		{"inline_in_atomic", inline_in_atomic, QP_OP},
		{"inline_too_long", inline_too_long, QP_OP},
		{"inline_huge", inline_huge, QP_OP},
		{"too_long", too_long, LENGTH},
		{"too_long_sum", too_long_sum, LENGTH},
		{"lkey_unknown", lkey_unknown, PROT},
		{"lkey_index_out_of_table", lkey_index_out_of_table, PROT},
		{"lkey_stale_variant", lkey_stale_variant, PROT},
		{"local_before", local_before, PROT},
		{"local_past_end", local_past_end, PROT},
		{"local_overflow", local_overflow, PROT},
		{"local_second_piece", local_second_piece, PROT},
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig_pair *p = open_pair(false, NULL);
		struct rig_cqe e;

		printf("%s\n", cases[i].name);
		rig_recv(&p->a, &p->ma, 0, 8);
		cases[i].build(p);
		rig_nop(&p->a, 0);
		rig_ring(&p->a);
		rig_expect_error(&p->a, 0, cases[i].syndrome);
		/* What is behind it: the NOP, wherever the device takes it to be, the receive. */
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
		/* The peer saw nothing of it. */
		assert_int_equal(rig_qp_state(&p->b), BB_PRM_QP_RTS);
		rig_expect_none(&p->cb, p->u[1]);
		for (k = 0; k < RIG_MEM; k++)
			assert_int_equal(p->mb.p[k], 0);
		rig_pair_close(p);
	}
}

/* READ, atomic result and receive need a key that allows local writes; WRITE does not. */
static void
test_local_read_only(void **state)
{
	struct rig_pair *p;
	struct rig_mem ro;
	uint32_t i;

	(void)state;
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
		rig_ring(&p->a);
		rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
		if (i < 2)
			rig_expect_error(&p->a, 1, PROT);
		rig_mem_close(&ro);
		rig_pair_close(p);
	}
}

/* A key of another PD, on each side. */
static void
test_other_pd(void **state)
{
	struct rig_pair *p = open_pair(false, NULL);
	struct rig_mem other;
	struct mlx5_pd *pd;

	(void)state;
	assert_int_equal(soft_cmd_if.pd_alloc(p->d.ctx, &pd), 0);
	rig_mem_open(&other, &p->d, pd, 4096, RIG_ALL);
	rig_write(&p->a, &other, 0, 8, &p->mb, 0, RIG_CQE);
	rig_ring(&p->a);
	rig_expect_error(&p->a, 0, PROT);
	rig_write(&p->b, &p->mb, 0, 8, &other, 0, RIG_CQE);
	rig_mem_close(&other);
	assert_int_equal(soft_cmd_if.pd_free(p->d.ctx, pd), 0);
	rig_pair_close(p);

	p = open_pair(false, NULL);
	assert_int_equal(soft_cmd_if.pd_alloc(p->d.ctx, &pd), 0);
	rig_mem_open(&other, &p->d, pd, 4096, RIG_ALL);
	rig_write(&p->a, &p->ma, 0, 8, &other, 0, RIG_CQE);
	rig_ring(&p->a);
	rig_expect_error(&p->a, 0, REM_ACCESS);
	rig_mem_close(&other);
	assert_int_equal(soft_cmd_if.pd_free(p->d.ctx, pd), 0);
	rig_pair_close(p);
}

/* A key that was deregistered is gone for both sides. */
static void
test_deregistered(void **state)
{
	struct rig_pair *p = open_pair(false, NULL);
	struct rig_mem m;

	(void)state;
	rig_mem_open(&m, &p->d, NULL, 4096, RIG_ALL);
	rig_write(&p->a, &p->ma, 0, 8, &m, 0, RIG_CQE);
	rig_write(&p->b, &m, 0, 8, &p->ma, 0, RIG_CQE);
	rig_mem_close(&m);
	rig_ring(&p->a);
	rig_expect_error(&p->a, 0, REM_ACCESS);
	rig_pair_close(p);
}

/* ---- What the responder refuses: error here, event and ERR there. */

static void
remote(struct rig_pair *p, uint32_t rkey, uint64_t addr, uint32_t len, uint8_t opcode)
{
	rig_raddr(&p->a, addr, rkey);
	rig_data(&p->a, 2, &p->ma, 0, len);
	rig_wqe(&p->a, opcode, RIG_CQE, 3, 0);
}

static void
rkey_unknown(struct rig_pair *p)
{
	remote(p, 0x123400, (uintptr_t)p->mb.p, 8, MLX5_OPCODE_RDMA_WRITE);
}

static void
rkey_stale_variant(struct rig_pair *p)
{
	remote(p, p->mb.mr->rkey ^ 0x80, (uintptr_t)p->mb.p, 8, MLX5_OPCODE_RDMA_READ);
}

static void
remote_before(struct rig_pair *p)
{
	remote(p, p->mb.mr->rkey, (uintptr_t)p->mb.p - 1, 8, MLX5_OPCODE_RDMA_WRITE);
}

static void
remote_past_end(struct rig_pair *p)
{
	remote(p, p->mb.mr->rkey, (uintptr_t)p->mb.p + RIG_MEM - 7, 8, MLX5_OPCODE_RDMA_READ);
}

static void
remote_overflow(struct rig_pair *p)
{
	remote(p, p->mb.mr->rkey, UINT64_MAX - 6, 8, MLX5_OPCODE_RDMA_WRITE);
}

static void
remote_write_imm(struct rig_pair *p)
{
	rig_recv(&p->b, &p->mb, 0, 8);
	remote(p, p->mb.mr->rkey, (uintptr_t)p->mb.p - 9, 8, MLX5_OPCODE_RDMA_WRITE_IMM);
}

static void
atomic_past_end(struct rig_pair *p)
{
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_CS, &p->ma, 0, &p->mb, RIG_MEM, 1, 0, RIG_CQE);
}

static void
atomic_unaligned(struct rig_pair *p)
{
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 4, 1, 0, RIG_CQE);
}

static void
check_refused(struct rig_pair *p, uint8_t syndrome, uint16_t event, bool has_recv)
{
	struct rig_cqe e;
	uint32_t i;

	for (i = 0; i < 10; i++) {
		rig_poll(p->u[0]);
		rig_poll(p->u[1]);
	}
	rig_expect_error(&p->a, 0, syndrome);
	expect_state(p, &p->a, BB_PRM_QP_ERR);
	expect_state(p, &p->b, BB_PRM_QP_ERR);
	rig_expect_event(&p->d, event, 0xb);
	rig_expect_no_event(&p->d);
	if (has_recv) {
		rig_wait(&p->cb, p->u[1], &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
		assert_int_equal(e.syndrome, FLUSH);
	}
	rig_expect_none(&p->cb, p->u[1]);
}

static void
subscribe(struct rig_pair *p)
{
	rig_subscribe(&p->d, p->b.obj, EVENT_ACCESS, 0xb);
	rig_subscribe(&p->d, p->b.obj, EVENT_INVAL, 0xb);
	rig_subscribe(&p->d, p->b.obj, EVENT_CATAS, 0xb);
	rig_subscribe(&p->d, p->a.obj, EVENT_CATAS, 0xa);
}

static void
test_responder(void **state)
{
	static const struct {
		const char *name;
		void (*build)(struct rig_pair *p);
		uint8_t syndrome;
		uint16_t event;
	} cases[] = {
		{"rkey_unknown", rkey_unknown, REM_ACCESS, EVENT_ACCESS},
		{"rkey_stale_variant", rkey_stale_variant, REM_ACCESS, EVENT_ACCESS},
		{"remote_before", remote_before, REM_ACCESS, EVENT_ACCESS},
		{"remote_past_end", remote_past_end, REM_ACCESS, EVENT_ACCESS},
		{"remote_overflow", remote_overflow, REM_ACCESS, EVENT_ACCESS},
		{"remote_write_imm", remote_write_imm, REM_ACCESS, EVENT_ACCESS},
		{"atomic_past_end", atomic_past_end, REM_ACCESS, EVENT_ACCESS},
		{"atomic_unaligned", atomic_unaligned, INVALID, EVENT_INVAL},
	};
	size_t i;
	int two;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (two = 0; two < 2; two++) {
			struct rig_pair *p = open_pair(two, NULL);

			printf("%s, %d engines\n", cases[i].name, two + 1);
			subscribe(p);
			cases[i].build(p);
			rig_ring(&p->a);
			check_refused(p, cases[i].syndrome, cases[i].event,
				      cases[i].build == remote_write_imm);
			rig_pair_close(p);
		}
	}
}

/* Rights: of the QP, then of the key, for each operation. */
static void
test_rights(void **state)
{
	static const uint32_t rights[] = {BB_ACCESS_REMOTE_WRITE, BB_ACCESS_REMOTE_READ,
					  BB_ACCESS_REMOTE_ATOMIC};
	uint32_t op, of, two;

	(void)state;
	for (op = 0; op < 3; op++) {
		for (of = 0; of < 3; of++) {
			for (two = 0; two < 2; two++) {
				uint32_t access = RIG_ALL & ~(of == 2 ? 0 : rights[op]);
				struct rig_pair *p;
				struct rig_link l;
				struct rig_mem m;

				rig_link_default(&l);
				if (of == 0)
					l.access = access;
				p = open_pair(two != 0, &l);
				subscribe(p);
				rig_mem_open(&m, &p->d, NULL, 4096, of == 1 ? access : RIG_ALL);
				if (op == 0)
					rig_write(&p->a, &p->ma, 0, 8, &m, 8, RIG_CQE);
				else if (op == 1)
					rig_read(&p->a, &p->ma, 0, 8, &m, 8, RIG_CQE);
				else
					rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &m, 8,
						   1, 0, RIG_CQE);
				rig_ring(&p->a);
				if (of == 2)
					rig_expect_ok(&p->a, p->a.head[3], 0);
				else
					check_refused(p, REM_ACCESS, EVENT_ACCESS, false);
				rig_mem_close(&m);
				rig_pair_close(p);
			}
		}
	}
}

/* A right that goes while the QP is in RTS. */
static void
test_rights_change(void **state)
{
	struct rig_pair *p = open_pair(false, NULL);
	struct rig_link l;

	(void)state;
	rig_link_default(&l);
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	rig_ring(&p->a);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
	l.access = BB_ACCESS_REMOTE_READ;
	assert_int_equal(rig_qp_modify(&p->b, BB_PRM_OP_RTS2RTS_QP, &p->d, p->a.qpn, &l), 0);
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	rig_ring(&p->a);
	rig_expect_error(&p->a, 1, REM_ACCESS);
	rig_pair_close(p);
}

/* ---- Receives that fail: an error CQE on both sides. */

static void
test_receive(void **state)
{
	static const struct {
		const char *name;
		uint32_t bytes;
		uint64_t lkey_xor, addr_add;
		uint8_t here, there;
	} cases[] = {
		{"too small", 63, 0, 0, LENGTH, INVALID},
		{"no such key", 64, 0x100000, 0, PROT, REM_OP},
		{"outside", 64, 0, RIG_MEM - 63, PROT, REM_OP},
		{"inline bit", 0x80000040, 0, 0, QP_OP, REM_OP},
	};
	size_t i;
	int two;

	(void)state;
	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		size_t c = i / 2;
		struct rig_pair *p;
		struct mlx5_wqe_data_seg *s;
		struct rig_cqe e;
		uint32_t k;

		two = (int)(i & 1);
		p = open_pair(two, NULL);
		printf("%s, %d engines\n", cases[c].name, two + 1);
		subscribe(p);
		rig_recv(&p->b, &p->mb, 0, 64);
		rig_recv(&p->b, &p->mb, 0, 64);
		s = (void *)p->b.rq;
		mlx5dv_set_data_seg(s, cases[c].bytes, p->mb.mr->lkey ^ (uint32_t)cases[c].lkey_xor,
				    (uintptr_t)p->mb.p + cases[c].addr_add);
		rig_send(&p->a, &p->ma, 0, 64, RIG_CQE);
		rig_ring(&p->a);
		for (k = 0; k < 10; k++) {
			rig_poll(p->u[0]);
			rig_poll(p->u[1]);
		}
		rig_expect_error(&p->a, 0, cases[c].there);
		rig_wait(&p->cb, p->u[1], &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
		assert_int_equal(e.syndrome, cases[c].here);
		assert_int_equal(e.counter, 0);
		rig_wait(&p->cb, p->u[1], &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
		assert_int_equal(e.syndrome, FLUSH);
		assert_int_equal(e.counter, 1);
		expect_state(p, &p->b, BB_PRM_QP_ERR);
		rig_expect_no_event(&p->d);
		rig_pair_close(p);
	}
}

/* Entries of the list that a message does not reach are not looked at. */
static void
test_receive_unused_entry(void **state)
{
	struct rig_pair *p = open_pair(false, NULL);
	struct mlx5_wqe_data_seg *s = (void *)p->b.rq;
	struct rig_cqe e;

	(void)state;
	rig_recv(&p->b, &p->mb, 0, 64);
	mlx5dv_set_data_seg(&s[1], 64, 0x777700, 0);
	rig_send(&p->a, &p->ma, 0, 64, RIG_CQE);
	rig_ring(&p->a);
	rig_expect_ok(&p->a, MLX5_OPCODE_SEND, 0);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	rig_pair_close(p);
}

/* A QP without a receive queue cannot take a SEND at all. */
static void
test_no_receive_queue(void **state)
{
	const struct rig_qp_attr attr = {.log_sq = 4, .no_rq = true, .log_stride = 4, .uidx = 3};
	struct rig_pair *p = open_pair(false, NULL);
	struct rig_link l;
	struct rig_qp x, y;

	(void)state;
	rig_link_default(&l);
	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
	rig_qp_open(&y, p->u[0], &p->cb, &p->cb, &attr);
	rig_connect(&x, &y, &l);
	rig_write(&x, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	rig_send(&x, &p->ma, 0, 8, RIG_CQE);
	rig_ring(&x);
	rig_expect_ok(&x, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_expect_error(&x, 1, INVALID);
	assert_int_equal(rig_qp_state(&y), BB_PRM_QP_ERR);
	rig_qp_close(&x);
	rig_qp_close(&y);
	rig_pair_close(p);
}

/* The receive record is more than a ring ahead. */
static void
test_receive_record(void **state)
{
	struct rig_pair *p = open_pair(false, NULL);

	(void)state;
	subscribe(p);
	p->b.dbrec[0] = htobe32(17); /* of 16 */
	rig_send(&p->a, &p->ma, 0, 8, RIG_CQE);
	rig_ring(&p->a);
	rig_expect_error(&p->a, 0, REM_OP);
	rig_expect_event(&p->d, EVENT_CATAS, 0xb);
	assert_int_equal(rig_qp_state(&p->b), BB_PRM_QP_ERR);
	rig_pair_close(p);
}

/* Path MTUs that differ: a message of one packet may pass, a longer one cannot. */
static void
test_mtu_mismatch(void **state)
{
	const struct rig_qp_attr attr = {.log_sq = 4, .log_rq = 2, .log_stride = 6, .uidx = 3};
	struct rig_pair *p = open_pair(false, NULL);
	struct rig_link l;
	struct rig_qp x, y;

	(void)state;
	rig_link_default(&l);
	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
	rig_qp_open(&y, p->u[0], &p->cb, &p->cb, &attr);
	l.mtu = 3;
	rig_qp_up(&x, &p->d, y.qpn, &l);
	l.mtu = 2;
	rig_qp_up(&y, &p->d, x.qpn, &l);
	rig_write(&x, &p->ma, 0, 512, &p->mb, 0, RIG_CQE);
	rig_write(&x, &p->ma, 0, 513, &p->mb, 0, RIG_CQE);
	rig_ring(&x);
	rig_expect_ok(&x, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_expect_error(&x, 1, INVALID);
	rig_qp_close(&x);
	rig_qp_close(&y);
	rig_pair_close(p);
}

/* ---- Flush */

/* One CQE per WQE in order, unsignalled ones too, then those posted later, on both queues. */
static void
test_flush(void **state)
{
	struct rig_pair *p = open_pair(false, NULL);
	struct rig_cqe e;
	uint16_t first;
	uint32_t i;

	(void)state;
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, 0);
	lkey_unknown(p);
	/* Two blocks, one, one. */
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
	assert_memory_equal(p->mb.p, p->ma.p, 8); /* the one before went through */
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
	rig_pair_close(p);
}

/* 2ERR flushes, 2RST does not, and counts from 0 again. */
static void
test_to_error_and_reset(void **state)
{
	struct rig_pair *p = open_pair(false, NULL);
	struct rig_link l;
	struct rig_cqe e;

	(void)state;
	rig_link_default(&l);
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
	rig_ring(&p->a);
	rig_expect_ok(&p->a, MLX5_OPCODE_SEND, 0);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	assert_int_equal(e.counter, 0);
	rig_recv(&p->b, &p->mb, 0, 8);
	rig_qp_reset(&p->b);
	rig_expect_none(&p->cb, p->u[1]);
	rig_pair_close(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requester),
		cmocka_unit_test(test_local_read_only),
		cmocka_unit_test(test_other_pd),
		cmocka_unit_test(test_deregistered),
		cmocka_unit_test(test_responder),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_rights_change),
		cmocka_unit_test(test_receive),
		cmocka_unit_test(test_receive_unused_entry),
		cmocka_unit_test(test_no_receive_queue),
		cmocka_unit_test(test_receive_record),
		cmocka_unit_test(test_mtu_mismatch),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_to_error_and_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
