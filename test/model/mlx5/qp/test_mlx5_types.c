/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The illegal cells of the table of man ibv_post_send: refused on every type of queue pair, with
 * the queue unchanged. The rows data, list and unreliable of the conformance suite post the legal
 * ones. Also inline data, the pieces of a READ, and a queue that signals all.
 */
#include "../mlx5_types.h"

#define AT_SRC 0u
#define AT_DST (128u * 1024) /* offset in the peer's buffer */
#define GUARD  0xabu

/* The table as the man page prints it, and the kernel's masked atomics; 'n' is -ENOTSUP. */
static const struct {
	enum bb_wr_opcode opcode;
	const char *rc_uc_ud;
} table[] = {
	{BB_WR_SEND, "yyy"},
	{BB_WR_SEND_WITH_IMM, "yyy"},
	{BB_WR_RDMA_WRITE, "yy-"},
	{BB_WR_RDMA_WRITE_WITH_IMM, "yy-"},
	{BB_WR_RDMA_READ, "y--"},
	{BB_WR_ATOMIC_CMP_AND_SWP, "y--"},
	{BB_WR_ATOMIC_FETCH_AND_ADD, "y--"},
	{BB_WR_MASKED_CMP_AND_SWP, "y--"},
	{BB_WR_MASKED_FETCH_AND_ADD, "y--"},
	{BB_WR_TSO, "nnn"},
	{BB_WR_DRIVER1, "nnn"},
	{BB_WR_FLUSH, "nnn"},
	{BB_WR_ATOMIC_WRITE, "nnn"},
	{(enum bb_wr_opcode)99, "---"},
};

static bool
is_atomic(enum bb_wr_opcode op)
{
	return op == BB_WR_ATOMIC_CMP_AND_SWP || op == BB_WR_ATOMIC_FETCH_AND_ADD ||
	       op == BB_WR_MASKED_CMP_AND_SWP || op == BB_WR_MASKED_FETCH_AND_ADD;
}

static bool
consumes_receive(enum bb_wr_opcode op)
{
	return op == BB_WR_SEND || op == BB_WR_SEND_WITH_IMM || op == BB_WR_RDMA_WRITE_WITH_IMM;
}

/* Builds a request of @len bytes from side a to side b, in pieces of @sge (room for 4). */
static void
make(struct types_env *t, enum bb_qp_type type, enum bb_wr_opcode op, uint32_t len, uint32_t flags,
     struct bb_sge *sge, struct bb_send_wr *wr)
{
	struct env *e = &t->e;
	uint32_t cut = len / 3;

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = 77;
	wr->opcode = op;
	wr->flags = flags;
	wr->sge = sge;
	if (is_atomic(op)) {
		sge[0] = sge_of(&e->a, AT_SRC, 8);
		wr->nsge = 1;
		wr->atomic.raddr = raddr_of(&e->b, AT_DST);
		wr->atomic.rkey = e->b.mr->rkey;
		wr->atomic.compare_add = 5;
		return;
	}
	/* Three adjacent pieces; for the shortest length one of them is empty. */
	sge[0] = sge_of(&e->a, AT_SRC, cut);
	sge[1] = sge_of(&e->a, AT_SRC + cut, cut);
	sge[2] = sge_of(&e->a, AT_SRC + 2 * cut, len - 2 * cut);
	wr->nsge = 3;
	wr->imm_or_inv = 0x44332211;
	if (type == BB_QPT_UD) {
		wr->ud.ah = t->to_b;
		wr->ud.qpn = e->b.qp->qpn;
		wr->ud.qkey = TYPES_QKEY;
	} else {
		wr->rdma.raddr = raddr_of(&e->b, AT_DST);
		wr->rdma.rkey = e->b.mr->rkey;
	}
}

static void
post_receive(struct types_env *t, uint32_t len)
{
	struct bb_sge sge = sge_of(&t->e.b, AT_DST, len);

	OK(bb_post_recv(t->e.b.qp, 55, &sge, 1));
	bb_qp_ring_recv(t->e.b.qp);
}

static void
check_receive(struct types_env *t, enum bb_qp_type type, enum bb_wr_opcode op, uint32_t len,
	      uint32_t flags)
{
	bool imm = op != BB_WR_SEND;
	struct bb_wc wc;

	env_poll(&t->e, &t->e.b, &wc, 1);
	expect(&wc, t->e.b.qp, 55, BB_WC_SUCCESS);
	assert_int_equal(wc.opcode,
			 op == BB_WR_RDMA_WRITE_WITH_IMM ? BB_WC_RECV_RDMA_IMM : BB_WC_RECV);
	assert_int_equal(wc.byte_len,
			 len + (op != BB_WR_RDMA_WRITE_WITH_IMM ? types_head(type) : 0));
	assert_int_equal((wc.flags & BB_WC_WITH_IMM) != 0, imm);
	assert_int_equal(wc.imm, imm ? 0x44332211 : 0);
	assert_int_equal((wc.flags & BB_WC_SOLICITED) != 0, (flags & BB_SEND_SOLICITED) != 0);
	assert_int_equal((wc.flags & BB_WC_GRH) != 0, type == BB_QPT_UD);
	assert_int_equal(wc.src_qp, type == BB_QPT_UD ? t->e.a.qp->qpn : 0);
}

static void
expect_refused(struct types_env *t, const struct bb_send_wr *wr, int errno_)
{
	struct bb_qp_stats before, after;
	int err = 12345;

	OK(bb_qp_stats(t->e.a.qp, &before));
	assert_int_equal(bb_qp_post_list(t->e.a.qp, wr, 1, &err), 0);
	assert_int_equal(err, errno_);
	OK(bb_qp_stats(t->e.a.qp, &after));
	assert_int_equal(before.posted, after.posted);
}

/* Every illegal cell of the table, and every illegal flag of the legal cells. */
TEST(test_operations_and_flags_a_type_lacks_are_refused)
{
	static const uint32_t flags[] = {BB_SEND_FENCE, BB_SEND_SOLICITED, BB_SEND_INLINE,
					 1u << 20};
	unsigned int type, i, k, cells = 0, flag_cells = 0;
	struct types_env t;
	struct bb_send_wr wr;
	struct bb_sge sge[4];

	for (type = BB_QPT_RC; type <= BB_QPT_UD; type++) {
		types_start(&t, type);
		for (i = 0; i < RTE_DIM(table); i++) {
			enum bb_wr_opcode op = table[i].opcode;
			char cell = table[i].rc_uc_ud[type];

			make(&t, type, op, 8, BB_SEND_SIGNALED, sge, &wr);
			if (cell != 'y') {
				expect_refused(&t, &wr, cell == 'n' ? -ENOTSUP : -EINVAL);
				cells++;
				continue;
			}
			for (k = 0; k < RTE_DIM(flags); k++) {
				bool ok = flags[k] == BB_SEND_FENCE       ? type == BB_QPT_RC
					  : flags[k] == BB_SEND_SOLICITED ? consumes_receive(op)
					  : flags[k] == BB_SEND_INLINE
						  ? consumes_receive(op) || op == BB_WR_RDMA_WRITE
						  : false;

				make(&t, type, op, 8, BB_SEND_SIGNALED | flags[k], sge, &wr);
				if (ok)
					continue;
				expect_refused(&t, &wr, -EINVAL);
				flag_cells++;
			}
		}
		types_stop(&t);
	}
	assert_int_equal(cells, 5 + 10 + 12);
	assert_int_equal(flag_cells, 20 + 9 + 4);
}

/* Illegal requests by the functions of bb_post.h, which check nothing else. */
TYPES_TEST(BB_QPT_UD, test_post_functions_refuse_what_the_type_lacks)
{
	struct bb_sge sge;
	struct env *e = &t->e;

	sge = sge_of(&e->a, 0, 8);
	assert_int_equal(bb_post_send(e->a.qp, 1, &sge, 1, 0), -EINVAL);
	assert_int_equal(bb_post_send_inline(e->a.qp, 1, "x", 1, 0), -EINVAL);
	OK(bb_post_nop(e->a.qp, 2, BB_SEND_SIGNALED));
	env_done(e, &e->a, 2, BB_WC_SUCCESS);
	types_stop(t);

	types_start(t, BB_QPT_RC);
	sge = sge_of(&e->a, 0, 8);
	/* An address handle on a QP that does not use one. */
	{
		struct bb_path path;
		struct bb_ah *ah;

		types_path(&e->b, 1, &path);
		OK(bb_ah_create(e->a.pd, &path, &ah));
		assert_int_equal(bb_post_send_ud(e->a.qp, 1, &sge, 1, ah, 1, 1, 0), -EINVAL);
		assert_int_equal(bb_post_send_ud_inline(e->a.qp, 1, "x", 1, ah, 1, 1, 0), -EINVAL);
		assert_int_equal(bb_pd_free(e->a.pd), -EBUSY);
		OK(bb_ah_destroy(ah));
	}
}

/* A READ may have fewer pieces than the queue's max_sge, because its WQE holds fewer. */
ENV_TEST_OPEN(test_read_of_more_than_max_read_sge_pieces_fails)
{
	struct bb_send_wr wr = {.opcode = BB_WR_RDMA_READ, .flags = BB_SEND_SIGNALED};
	struct bb_sge sge[61];
	struct bb_dev_attr attr;
	unsigned int i;
	int err;

	OK(bb_dev_query(e->a.dev, &attr));
	assert_int_equal(attr.max_sge, RTE_DIM(sge));
	assert_int_equal(attr.max_read_sge, 30);
	e->init.max_sge = attr.max_sge;
	env_up(e);
	for (i = 0; i < RTE_DIM(sge); i++)
		sge[i] = sge_of(&e->a, i * 50, 50);
	wr.sge = sge;
	wr.nsge = attr.max_read_sge + 1;
	assert_int_equal(bb_qp_post_list(e->a.qp, &wr, 1, &err), 0);
	assert_int_equal(err, -ENOTSUP);
	/* If it is posted nevertheless, the device fails it. */
	OK(bb_post_read(e->a.qp, 9, sge, wr.nsge, raddr_of(&e->b, AT_DST), e->b.mr->rkey,
			BB_SEND_SIGNALED));
	env_done(e, &e->a, 9, BB_WC_LOC_QP_OP_ERR);
}

/* Too much inline data, in one piece and in several; keys are not checked. */
TEST(test_inline_data_over_the_limit_is_refused)
{
	struct types_env t;
	struct env *e = &t.e;
	struct bb_send_wr wr;
	struct bb_sge sge[4];
	unsigned int type;
	int err;

	for (type = BB_QPT_RC; type <= BB_QPT_UD; type++) {
		uint32_t max;

		types_start(&t, type);
		max = e->a.qp->sq.max_inline;
		assert_true(max >= 64);
		make(&t, type, BB_WR_SEND, max, BB_SEND_SIGNALED | BB_SEND_INLINE, sge, &wr);
		sge[0].lkey = sge[1].lkey = sge[2].lkey = 0xdeadbeef;
		post_receive(&t, max + types_head(type));
		assert_int_equal(bb_qp_post_list(e->a.qp, &wr, 1, &err), 1);
		bb_qp_ring(e->a.qp);
		check_receive(&t, type, BB_WR_SEND, max, 0);
		env_expect(e, &e->a, 77, BB_WC_SUCCESS);
		make(&t, type, BB_WR_SEND, max + 1, BB_SEND_SIGNALED | BB_SEND_INLINE, sge, &wr);
		expect_refused(&t, &wr, -EINVAL);
		/* A sum that does not fit 32 bits. */
		sge[0].len = sge[1].len = sge[2].len = 0x80000000u;
		expect_refused(&t, &wr, -EINVAL);
		types_stop(&t);
	}
}

/* Every send is reported, whatever its flags. */
TEST(test_signal_all_reports_every_request)
{
	struct types_env t = {0};
	struct env *e = &t.e;
	struct bb_qp_init_attr bad;
	struct bb_wc wc[16];
	struct bb_mr *mr;
	struct bb_mw *mw;
	struct bb_qp *qp;
	unsigned int i;

	env_open(e);
	e->init.signal_all = true;
	bad = e->init;
	bad.send_cq = bad.recv_cq = e->a.cq;
	bad.signal_every = 2;
	assert_int_equal(bb_qp_create(e->a.pd, &bad, &qp), -EINVAL);
	env_up(e);
	for (i = 0; i < 10; i++)
		OK(bb_post_write_inline(e->a.qp, i, "abcd", 4, raddr_of(&e->b, 0), e->b.mr->rkey,
					i % 3 == 0 ? BB_SEND_SIGNALED : 0));
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, wc, 10);
	for (i = 0; i < 10; i++)
		expect(&wc[i], e->a.qp, i, BB_WC_SUCCESS);
	/* The library asks for a CQE of each of these requests, whatever the caller asks for. */
	OK(bb_mr_reg(e->a.pd, e->a.buf, 64, BB_ACCESS_MW_BIND, &mr));
	OK(bb_mw_alloc(e->a.pd, BB_MW_TYPE_2, &mw));
	for (i = 0; i <= BB_SEND_SIGNALED; i += BB_SEND_SIGNALED) {
		OK(bb_post_bind_mw(e->a.qp, 20, mw, bb_inc_rkey(mw->rkey), mr, raddr_of(&e->a, 0),
				   64, BB_ACCESS_REMOTE_READ, i));
		OK(bb_post_local_inv(e->a.qp, 21, mw->rkey, i));
		bb_qp_ring(e->a.qp);
		env_poll(e, &e->a, wc, 2);
		expect(&wc[0], e->a.qp, 20, BB_WC_SUCCESS);
		expect(&wc[1], e->a.qp, 21, BB_WC_SUCCESS);
	}
	OK(bb_mw_free(mw));
	OK(bb_mr_dereg(mr));
	env_silent(e, &e->a);
	env_stop(e);
}

TEST_MAIN(env_eal_init("mlx5_types"))
