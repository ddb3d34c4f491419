/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The table of man ibv_post_send: every operation on every type of queue pair, with every length
 * and flag. Legal requests arrive byte for byte; illegal requests are refused and leave the queue
 * unchanged. Also lists, and the modes of the send queue.
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

	assert_int_equal(bb_post_recv(t->e.b.qp, 55, &sge, 1), 0);
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

/* Posts one legal request as a list of one, and checks its effect. */
static void
run(struct types_env *t, enum bb_qp_type type, enum bb_wr_opcode op, uint32_t len, uint32_t flags)
{
	struct env *e = &t->e;
	uint8_t *src = e->a.buf + AT_SRC, *dst = e->b.buf + AT_DST;
	uint32_t head = op == BB_WR_SEND || op == BB_WR_SEND_WITH_IMM ? types_head(type) : 0;
	struct bb_send_wr wr;
	struct bb_sge sge[4];
	uint64_t value;
	struct bb_wc wc;
	int err;

	fill(src, len + 8, len + (uint32_t)op);
	memset(dst, GUARD, len + head + 16);
	if (op == BB_WR_RDMA_READ || is_atomic(op)) {
		memset(src, GUARD, len + 16);
		fill(dst, len + 8, len + 3);
	}
	memcpy(&value, dst, sizeof(value));
	if (consumes_receive(op))
		post_receive(t, len + head);
	make(t, type, op, len, flags, sge, &wr);
	assert_int_equal(bb_qp_post_list(e->a.qp, &wr, 1, &err), 1);
	assert_int_equal(err, 0);
	/* The caller may reuse the memory of inline data. */
	if ((flags & BB_SEND_INLINE) != 0)
		memset(src, 0, len);
	bb_qp_ring(e->a.qp);
	if (consumes_receive(op))
		check_receive(t, type, op, len, flags);
	if ((flags & BB_SEND_SIGNALED) != 0) {
		env_poll(e, &e->a, &wc, 1);
		expect(&wc, e->a.qp, 77, BB_WC_SUCCESS);
	} else {
		assert_int_equal(bb_post_nop(e->a.qp, 78, BB_SEND_SIGNALED), 0);
		bb_qp_ring(e->a.qp);
		env_poll(e, &e->a, &wc, 1);
		expect(&wc, e->a.qp, 78, BB_WC_SUCCESS);
	}
	if ((flags & BB_SEND_INLINE) != 0)
		fill(src, len + 8, len + (uint32_t)op);
	if (is_atomic(op)) {
		assert_memory_equal(src, &value, 8);
		return;
	}
	assert_memory_equal(dst + head, src, len);
	assert_int_equal(op == BB_WR_RDMA_READ ? src[len] : dst[head + len], GUARD);
}

TEST(legal)
{
	static const uint32_t lens[] = {0, 1, 44, 1023, 1024, 1025, 4095, 4096, 4097, 65536};
	static const uint32_t inline_lens[] = {0, 1, 12, 44, 60, 64, 188};
	unsigned int type, i, k, done = 0;
	struct types_env t;

	for (type = BB_QPT_RC; type <= BB_QPT_UD; type++) {
		types_start(&t, type);
		for (i = 0; i < RTE_DIM(table); i++) {
			enum bb_wr_opcode op = table[i].opcode;

			if (table[i].rc_uc_ud[type] != 'y')
				continue;
			assert_int_equal(bb_wr_check(type, op, BB_SEND_SIGNALED), 0);
			for (k = 0; k < RTE_DIM(lens); k++) {
				if (type == BB_QPT_UD && lens[k] > 4096)
					continue;
				run(&t, type, op, lens[k], BB_SEND_SIGNALED);
				done++;
				if (is_atomic(op))
					break;
			}
			run(&t, type, op, 100, 0);
			if (type == BB_QPT_RC)
				run(&t, type, op, 100, BB_SEND_SIGNALED | BB_SEND_FENCE);
			if (consumes_receive(op))
				run(&t, type, op, 100, BB_SEND_SIGNALED | BB_SEND_SOLICITED);
		}
		types_stop(&t);
		assert_int_equal(bb_dev_open(env_dev_a(), &t.e.a.dev), 0);
		assert_int_equal(bb_dev_close(t.e.a.dev), 0);

		/* Inline data up to the limit of the queue. */
		memset(&t, 0, sizeof(t));
		env_open(&t.e);
		t.e.init.max_inline = 188;
		t.e.init.type = type;
		env_qps(&t.e);
		if (type == BB_QPT_UD) {
			struct bb_path path;

			assert_int_equal(bb_qp_ud_up(t.e.a.qp, 1, 0, TYPES_QKEY, 1), 0);
			assert_int_equal(bb_qp_ud_up(t.e.b.qp, 1, 0, TYPES_QKEY, 1), 0);
			types_path(&t.e.b, 1, &path);
			assert_int_equal(bb_ah_create(t.e.a.pd, &path, &t.to_b), 0);
		} else {
			connect_pair(t.e.a.qp, t.e.b.qp, &t.e.attr);
		}
		for (i = 0; i < 4; i++)
			for (k = 0; k < RTE_DIM(inline_lens) && table[i].rc_uc_ud[type] == 'y';
			     k++) {
				run(&t, type, table[i].opcode, inline_lens[k],
				    BB_SEND_SIGNALED | BB_SEND_INLINE);
				done++;
			}
		types_stop(&t);
	}
	/* 4 operations of RC and UC, 2 of UD; READ and atomics of RC only. */
	assert_int_equal(done, 4 * 10 + 10 + 4 + 4 * 10 + 2 * 8 + (4 + 4 + 2) * 7);
}

static void
expect_refused(struct types_env *t, const struct bb_send_wr *wr, int errno_)
{
	struct bb_qp_stats before, after;
	int err = 12345;

	assert_int_equal(bb_qp_stats(t->e.a.qp, &before), 0);
	assert_int_equal(bb_qp_post_list(t->e.a.qp, wr, 1, &err), 0);
	assert_int_equal(err, errno_);
	assert_int_equal(bb_qp_stats(t->e.a.qp, &after), 0);
	assert_int_equal(before.posted, after.posted);
}

/* Every illegal cell of the table, and every illegal flag of the legal cells. */
TEST(illegal)
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
TEST(illegal_direct)
{
	struct types_env t;
	struct bb_sge sge;
	struct env *e = &t.e;
	struct bb_wc wc;

	types_start(&t, BB_QPT_UC);
	sge = sge_of(&e->a, 0, 8);
	assert_int_equal(bb_post_read(e->a.qp, 1, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey, 0),
			 -EINVAL);
	assert_int_equal(
		bb_post_fetch_add(e->a.qp, 1, &sge, raddr_of(&e->b, 0), e->b.mr->rkey, 1, 0),
		-EINVAL);
	assert_int_equal(
		bb_post_cmp_swap(e->a.qp, 1, &sge, raddr_of(&e->b, 0), e->b.mr->rkey, 1, 1, 0),
		-EINVAL);
	assert_int_equal(bb_post_masked_fetch_add(e->a.qp, 1, &sge, raddr_of(&e->b, 0),
						  e->b.mr->rkey, 1, 0, 0),
			 -EINVAL);
	types_stop(&t);

	types_start(&t, BB_QPT_UD);
	sge = sge_of(&e->a, 0, 8);
	assert_int_equal(bb_post_send(e->a.qp, 1, &sge, 1, 0), -EINVAL);
	assert_int_equal(bb_post_send_inline(e->a.qp, 1, "x", 1, 0), -EINVAL);
	assert_int_equal(bb_post_write(e->a.qp, 1, &sge, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(bb_post_write_inline(e->a.qp, 1, "x", 1, 0, 0, 0), -EINVAL);
	assert_int_equal(bb_post_read(e->a.qp, 1, &sge, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(bb_post_fetch_add(e->a.qp, 1, &sge, 0, 0, 1, 0), -EINVAL);
	assert_int_equal(bb_post_nop(e->a.qp, 2, BB_SEND_SIGNALED), 0);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, &wc, 1);
	expect(&wc, e->a.qp, 2, BB_WC_SUCCESS);
	types_stop(&t);

	types_start(&t, BB_QPT_RC);
	sge = sge_of(&e->a, 0, 8);
	/* An address handle on a QP that does not use one. */
	{
		struct bb_path path;
		struct bb_ah *ah;

		types_path(&e->b, 1, &path);
		assert_int_equal(bb_ah_create(e->a.pd, &path, &ah), 0);
		assert_int_equal(bb_post_send_ud(e->a.qp, 1, &sge, 1, ah, 1, 1, 0), -EINVAL);
		assert_int_equal(bb_post_send_ud_inline(e->a.qp, 1, "x", 1, ah, 1, 1, 0), -EINVAL);
		assert_int_equal(bb_pd_free(e->a.pd), -EBUSY);
		assert_int_equal(bb_ah_destroy(ah), 0);
	}
	types_stop(&t);
}

/*
 * The post returns the index of the first bad request; requests before it are posted, the bad
 * request is not.
 */
TEST(lists)
{
	struct types_env t;
	struct env *e = &t.e;
	struct bb_send_wr wr[6];
	struct bb_recv_wr rwr[3];
	struct bb_sge sge[6][4], rsge[3];
	struct bb_wc wc[8];
	unsigned int i;
	int err;

	types_start(&t, BB_QPT_RC);
	for (i = 0; i < 3; i++) {
		rsge[i] = sge_of(&e->b, AT_DST + i * 100, 100);
		rwr[i] = (struct bb_recv_wr){.wr_id = i, .sge = &rsge[i], .nsge = 1};
	}
	rsge[2].len = BB_WQE_MAX_SGE_LEN + 1;
	assert_int_equal(bb_qp_post_recv_list(e->b.qp, rwr, 3, &err), 2);
	assert_int_equal(err, -EINVAL);
	bb_qp_ring_recv(e->b.qp);
	for (i = 0; i < 6; i++)
		make(&t, BB_QPT_RC, i < 2 ? BB_WR_SEND : BB_WR_RDMA_WRITE, 30, BB_SEND_SIGNALED,
		     sge[i], &wr[i]);
	fill(e->a.buf, 30, 9);
	wr[2].nsge = 200;
	assert_int_equal(bb_qp_post_list(e->a.qp, wr, 6, &err), 2);
	assert_int_equal(err, -EINVAL);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, wc, 2);
	expect(&wc[1], e->a.qp, 77, BB_WC_SUCCESS);
	env_poll(e, &e->b, wc, 2);
	assert_memory_equal(e->b.buf + AT_DST + 100, e->a.buf, 30);
	env_silent(e, &e->a);

	/* A full queue is not an error. */
	wr[2].nsge = 3;
	for (i = 0; bb_qp_post_list(e->a.qp, &wr[2], 4, &err) == 4; i++)
		assert_int_equal(err, 0);
	assert_int_equal(err, 0);
	assert_true(i >= 128 / 4 - 1);
	types_stop(&t);

	/* All requests of the list are refused; the doorbell then has nothing to ring. */
	types_start(&t, BB_QPT_UD);
	make(&t, BB_QPT_UD, BB_WR_SEND, 30, 0, sge[0], &wr[0]);
	wr[0].ud.ah = NULL;
	expect_refused(&t, &wr[0], -EINVAL);
	/* The address handle is of another PD than the QP's. */
	wr[0].ud.ah = t.to_b;
	{
		struct bb_pd *pd;
		struct bb_path path;
		struct bb_ah *ah;

		assert_int_equal(bb_pd_alloc(e->a.dev, &pd), 0);
		types_path(&e->b, 1, &path);
		assert_int_equal(bb_ah_create(pd, &path, &ah), 0);
		wr[0].ud.ah = ah;
		expect_refused(&t, &wr[0], -EINVAL);
		assert_int_equal(bb_ah_destroy(ah), 0);
		assert_int_equal(bb_pd_free(pd), 0);
	}
	types_stop(&t);
}

/*
 * A READ may have max_read_sge pieces, as many as its WQE holds; SEND and WRITE may have max_sge.
 */
TEST(most_pieces)
{
	static const enum bb_wr_opcode opcode[] = {BB_WR_SEND, BB_WR_RDMA_WRITE, BB_WR_RDMA_READ};
	const uint32_t part = 50;
	struct env e;
	struct bb_sge sge[61], rsge;
	struct bb_dev_attr attr;
	struct bb_wc wc;
	unsigned int op, i;
	int err;

	env_open(&e);
	assert_int_equal(bb_dev_query(e.a.dev, &attr), 0);
	assert_int_equal(attr.max_sge, RTE_DIM(sge));
	assert_int_equal(attr.max_read_sge, 30);
	e.init.max_sge = attr.max_sge;
	env_qps(&e);
	connect_pair(e.a.qp, e.b.qp, &e.attr);
	rsge = sge_of(&e.b, AT_DST, RTE_DIM(sge) * part);
	for (i = 0; i < RTE_DIM(sge); i++)
		sge[i] = sge_of(&e.a, i * part, part);
	for (op = 0; op < RTE_DIM(opcode); op++) {
		bool read = opcode[op] == BB_WR_RDMA_READ;
		struct bb_send_wr wr = {
			.wr_id = op,
			.opcode = opcode[op],
			.flags = BB_SEND_SIGNALED,
			.sge = sge,
			.nsge = read ? attr.max_read_sge : attr.max_sge,
			.rdma = {raddr_of(&e.b, AT_DST), e.b.mr->rkey},
		};
		uint8_t *from = read ? e.b.buf + AT_DST : e.a.buf;

		fill(from, wr.nsge * part, op);
		if (opcode[op] == BB_WR_SEND) {
			assert_int_equal(bb_post_recv(e.b.qp, 9, &rsge, 1), 0);
			bb_qp_ring_recv(e.b.qp);
		}
		assert_int_equal(bb_qp_post_list(e.a.qp, &wr, 1, &err), 1);
		bb_qp_ring(e.a.qp);
		env_poll(&e, &e.a, &wc, 1);
		expect(&wc, e.a.qp, op, BB_WC_SUCCESS);
		if (opcode[op] == BB_WR_SEND)
			env_poll(&e, &e.b, &wc, 1);
		assert_memory_equal(e.b.buf + AT_DST, e.a.buf, wr.nsge * part);
		wr.nsge++;
		assert_int_equal(bb_qp_post_list(e.a.qp, &wr, 1, &err), 0);
		assert_int_equal(err, read ? -ENOTSUP : -EINVAL);
	}
	/* If it is posted nevertheless, the device fails it. */
	assert_int_equal(bb_post_read(e.a.qp, 9, sge, 31, raddr_of(&e.b, AT_DST), e.b.mr->rkey,
				      BB_SEND_SIGNALED),
			 0);
	bb_qp_ring(e.a.qp);
	env_poll(&e, &e.a, &wc, 1);
	expect(&wc, e.a.qp, 9, BB_WC_LOC_QP_OP_ERR);
	env_stop(&e);
}

/* Too much inline data, in one piece and in several; keys are not checked. */
TEST(inline_rules)
{
	struct types_env t;
	struct env *e = &t.e;
	struct bb_send_wr wr;
	struct bb_sge sge[4];
	struct bb_wc wc;
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
		env_poll(e, &e->a, &wc, 1);
		expect(&wc, e->a.qp, 77, BB_WC_SUCCESS);
		make(&t, type, BB_WR_SEND, max + 1, BB_SEND_SIGNALED | BB_SEND_INLINE, sge, &wr);
		expect_refused(&t, &wr, -EINVAL);
		/* A sum that does not fit 32 bits. */
		sge[0].len = sge[1].len = sge[2].len = 0x80000000u;
		expect_refused(&t, &wr, -EINVAL);
		types_stop(&t);
	}
}

/* Every send is reported, whatever its flags. */
TEST(signal_all)
{
	struct types_env t = {0};
	struct env *e = &t.e;
	struct bb_qp_init_attr bad;
	struct bb_wc wc[16];
	struct bb_qp *qp;
	unsigned int i;

	env_open(e);
	e->init.signal_all = true;
	bad = e->init;
	bad.send_cq = bad.recv_cq = e->a.cq;
	bad.signal_every = 2;
	assert_int_equal(bb_qp_create(e->a.pd, &bad, &qp), -EINVAL);
	env_qps(e);
	connect_pair(e->a.qp, e->b.qp, &e->attr);
	for (i = 0; i < 10; i++)
		assert_int_equal(bb_post_write_inline(e->a.qp, i, "abcd", 4, raddr_of(&e->b, 0),
						      e->b.mr->rkey,
						      i % 3 == 0 ? BB_SEND_SIGNALED : 0),
				 0);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, wc, 10);
	for (i = 0; i < 10; i++)
		expect(&wc[i], e->a.qp, i, BB_WC_SUCCESS);
	env_silent(e, &e->a);
	env_stop(e);
}

TEST_MAIN(env_eal_init("mlx5_types"))
