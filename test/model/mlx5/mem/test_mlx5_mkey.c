/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Indirect keys through the public API. */
#include "keys_env.h"

/* Checks that the bytes of b's buffer which a pattern or a list covers hold @data, in order. */
static void
expect_scattered(const struct env *e, const struct bb_interleaved *b, uint32_t n, uint32_t repeat,
		 const uint8_t *data)
{
	static uint8_t want[ENV_BUF];
	uint32_t i, k;

	memset(want, 0xee, sizeof(want));
	for (k = 0; k < repeat; k++) {
		for (i = 0; i < n; i++) {
			memcpy(want + (b[i].addr - (uintptr_t)e->b.buf) +
				       (size_t)k * (b[i].bytes + b[i].skip),
			       data, b[i].bytes);
			data += b[i].bytes;
		}
	}
	assert_memory_equal(e->b.buf, want, ENV_BUF);
}

/* Accesses the whole key at once, in two halves, and backwards byte by byte if it is short. */
static void
through_key(struct env *e, const struct bb_mkey *k, uint64_t iova, uint32_t len,
	    const struct bb_interleaved *b, uint32_t n, uint32_t repeat)
{
	static uint8_t data[ENV_BUF];
	struct bb_sge local = {iova, len, k->lkey}, sge;
	uint32_t cut = len / 2 + 1;

	/* a writes to b through the rkey. */
	memset(e->b.buf, 0xee, ENV_BUF);
	fill(e->a.buf, len, 3);
	assert_int_equal(try(e, OP_WRITE, iova, k->rkey, len), BB_WC_SUCCESS);
	expect_scattered(e, b, n, repeat, e->a.buf);
	memset(e->b.buf, 0xee, ENV_BUF);
	assert_int_equal(try(e, OP_WRITE, iova, k->rkey, cut), BB_WC_SUCCESS);
	memmove(e->a.buf, e->a.buf + cut, len - cut);
	assert_int_equal(try(e, OP_WRITE, iova + cut, k->rkey, len - cut), BB_WC_SUCCESS);
	fill(data, len, 3);
	expect_scattered(e, b, n, repeat, data);
	/* a reads it back. */
	memset(e->a.buf, 0, ENV_BUF);
	assert_int_equal(try(e, OP_READ, iova, k->rkey, len), BB_WC_SUCCESS);
	assert_memory_equal(e->a.buf, data, len);
	assert_int_equal(e->a.buf[len], 0);
	/* b gathers through the lkey. */
	memset(e->a.buf, 0, ENV_BUF);
	OK(bb_post_write(e->b.qp, 5, &local, 1, raddr_of(&e->a, 0), e->a.mr->rkey,
			 BB_SEND_SIGNALED));
	assert_int_equal(done(e, &e->b, BB_WC_RDMA_WRITE), BB_WC_SUCCESS);
	assert_memory_equal(e->a.buf, data, len);
	assert_int_equal(e->a.buf[len], 0);
	/* b scatters the data of a READ. */
	memset(e->b.buf, 0xee, ENV_BUF);
	fill(e->a.buf, len, 9);
	OK(bb_post_read(e->b.qp, 6, &local, 1, raddr_of(&e->a, 0), e->a.mr->rkey,
			BB_SEND_SIGNALED));
	assert_int_equal(done(e, &e->b, BB_WC_RDMA_READ), BB_WC_SUCCESS);
	expect_scattered(e, b, n, repeat, e->a.buf);
	/* b receives into it. */
	memset(e->b.buf, 0xee, ENV_BUF);
	sge = sge_of(&e->a, 0, len);
	OK(bb_post_recv(e->b.qp, 7, &local, 1));
	bb_qp_ring_recv(e->b.qp);
	OK(bb_post_send(e->a.qp, 8, &sge, 1, BB_SEND_SIGNALED));
	assert_int_equal(done(e, &e->a, BB_WC_SEND), BB_WC_SUCCESS);
	assert_int_equal(done(e, &e->b, BB_WC_RECV), BB_WC_SUCCESS);
	expect_scattered(e, b, n, repeat, e->a.buf);
	/* One byte more than the key has. */
	assert_int_equal(try(e, OP_WRITE, iova, k->rkey, len + 1), BB_WC_REM_ACCESS_ERR);
	local.len = len + 1;
	OK(bb_post_write(e->b.qp, 5, &local, 1, raddr_of(&e->a, 0), e->a.mr->rkey,
			 BB_SEND_SIGNALED));
	assert_int_equal(done(e, &e->b, BB_WC_RDMA_WRITE), BB_WC_LOC_PROT_ERR);
	fresh(e);
}

static struct bb_interleaved
block(const struct env *e, size_t off, uint32_t bytes, uint32_t skip)
{
	return (struct bb_interleaved){(uintptr_t)e->b.buf + off, bytes, skip, e->b.mr->lkey};
}

KEYS_TEST(test_fixed_key_covers_its_pieces)
{
	/*
	 * Entries of odd sizes: KLM. Equal powers of two with a shorter last entry: KSM. One
	 * entry: KSM.
	 */
	static const struct {
		uint32_t n, len[4];
		size_t off[4];
	} cases[] = {
		{3, {1, 4099, 300}, {8192, 3, 65536}},
		{3, {8192, 8192, 100}, {100000, 7, 50001}},
		{1, {5000}, {12345}},
		/* These fill their entries, but the iova is no multiple of the entry size: KLM. */
		{2, {8192, 8192}, {100000, 7}},
		{1, {4096}, {12345}},
		{4, {7, 7, 7, 7}, {30, 20, 10, 0}},
	};
	struct bb_mkey_attr attr;
	unsigned int c, i;

	for (c = 0; c < RTE_DIM(cases); c++) {
		struct bb_interleaved b[4];
		struct bb_sge sge[4];
		struct bb_mkey *k;
		uint32_t len = 0;

		for (i = 0; i < cases[c].n; i++) {
			b[i] = block(e, cases[c].off[i], cases[c].len[i], 0);
			sge[i] = sge_of(&e->b, cases[c].off[i], cases[c].len[i]);
			len += sge[i].len;
		}
		bb_mkey_attr_init(&attr);
		attr.pieces = sge;
		attr.n = cases[c].n;
		/* Without atomics: with atomics the start must be even. */
		attr.access = ENV_ALL & ~BB_ACCESS_REMOTE_ATOMIC;
		attr.iova = 0x1234567;
		OK(bb_mkey_create(e->b.pd, &attr, &k));
		assert_int_equal(k->len, len);
		through_key(e, k, attr.iova, len, b, cases[c].n, 1);
		assert_int_equal(try(e, OP_READ, attr.iova - 1, k->rkey, 8), BB_WC_REM_ACCESS_ERR);
		/* The key holds a reference on the region, so the region cannot be deregistered. */
		assert_int_equal(bb_mr_dereg(e->b.mr), -EBUSY);
		i = k->rkey;
		OK(bb_mkey_destroy(k));
		assert_int_equal(try(e, OP_READ, attr.iova, i, 1), BB_WC_REM_ACCESS_ERR);
	}
}

/*
 * With atomics start and length are multiples of 8: KLM, KSM, and a KSM that begins within an
 * entry.
 */
KEYS_TEST(test_atomic_right_needs_multiples_of_8)
{
	static const struct {
		uint64_t iova;
		uint32_t n, len[2];
		bool good;
	} cases[] = {
		{0x1000, 2, {4096, 4096}, true},  {0x1008, 2, {4096, 4096}, true},
		{0x1ff8, 2, {4096, 8}, true},     {8, 2, {24, 8}, true},
		{0x1004, 2, {4096, 4096}, false}, {0x1000, 2, {4096, 4}, false},
		{0x1000, 1, {4}, false},          {8, 2, {24, 9}, false},
	};
	struct bb_mkey_attr attr;
	struct bb_sge sge[2];
	struct bb_mkey *k;
	unsigned int i, p;

	for (i = 0; i < RTE_DIM(cases); i++) {
		for (p = 0; p < cases[i].n; p++)
			sge[p] = sge_of(&e->b, p * 8192, cases[i].len[p]);
		bb_mkey_attr_init(&attr);
		attr.pieces = sge;
		attr.n = cases[i].n;
		attr.access = ENV_ALL;
		attr.iova = cases[i].iova;
		assert_int_equal(bb_mkey_create(e->b.pd, &attr, &k), cases[i].good ? 0 : -EINVAL);
		if (cases[i].good) {
			assert_int_equal(try(e, OP_ATOMIC, attr.iova, k->rkey, 8), BB_WC_SUCCESS);
			assert_int_equal(try(e, OP_ATOMIC, attr.iova + k->len - 8, k->rkey, 8),
					 BB_WC_SUCCESS);
			OK(bb_mkey_destroy(k));
		}
		/* Without atomics all of them are created. */
		attr.access = ENV_ALL & ~BB_ACCESS_REMOTE_ATOMIC;
		OK(bb_mkey_create(e->b.pd, &attr, &k));
		OK(bb_mkey_destroy(k));
	}
}

/* Each set of the key's access rights, over a region that has LOCAL_WRITE only. */
KEYS_TEST(test_rights_of_the_key_count)
{
	struct bb_mkey_attr attr;
	struct bb_mkey *k;
	struct bb_sge sge;
	struct bb_mr *mr;
	uint32_t set;
	enum op op;

	OK(bb_mr_reg(e->b.pd, e->b.buf, 4096, BB_ACCESS_LOCAL_WRITE, &mr));
	sge = (struct bb_sge){(uintptr_t)e->b.buf, 4096, mr->lkey};
	for (set = 0; set < 8; set++) {
		bb_mkey_attr_init(&attr);
		attr.pieces = &sge;
		attr.n = 1;
		attr.access = BB_ACCESS_LOCAL_WRITE | set << 1;
		OK(bb_mkey_create(e->b.pd, &attr, &k));
		for (op = OP_WRITE; op < OPS; op++)
			assert_int_equal(try(e, op, 64, k->rkey, 8),
					 (attr.access & right_of[op]) != 0 ? BB_WC_SUCCESS
									   : BB_WC_REM_ACCESS_ERR);
		OK(bb_mkey_destroy(k));
	}
	OK(bb_mr_dereg(mr));
	/* A key with LOCAL_WRITE over a read-only region does not make the region writable. */
	OK(bb_mr_reg(e->b.pd, e->b.buf, 4096, 0, &mr));
	sge.lkey = mr->lkey;
	attr.access = ENV_ALL;
	OK(bb_mkey_create(e->b.pd, &attr, &k));
	assert_int_equal(try(e, OP_WRITE, 0, k->rkey, 8), BB_WC_REM_ACCESS_ERR);
	assert_int_equal(try(e, OP_ATOMIC, 0, k->rkey, 8), BB_WC_REM_ACCESS_ERR);
	assert_int_equal(try(e, OP_READ, 0, k->rkey, 8), BB_WC_SUCCESS);
	OK(bb_mkey_destroy(k));
	OK(bb_mr_dereg(mr));
}

static void
layout(struct env *e, struct bb_mkey *k, uint32_t repeat, const struct bb_interleaved *b,
       uint32_t n)
{
	struct bb_sge sge[16];
	uint32_t i;

	if (repeat != 0) {
		OK(bb_post_mkey_interleaved(e->b.qp, 4, k, ENV_ALL, repeat, b, n,
					    BB_SEND_SIGNALED));
	} else {
		for (i = 0; i < n; i++)
			sge[i] = (struct bb_sge){b[i].addr, b[i].bytes, b[i].lkey};
		OK(bb_post_mkey_list(e->b.qp, 4, k, ENV_ALL, sge, n, BB_SEND_SIGNALED));
	}
	assert_int_equal(done(e, &e->b, BB_WC_MKEY), BB_WC_SUCCESS);
}

KEYS_TEST(test_layout_of_a_key_can_change)
{
	struct bb_interleaved b[9];
	struct bb_mkey_attr attr;
	struct bb_mkey *k;
	uint32_t i;

	bb_mkey_attr_init(&attr);
	attr.max_pieces = 10;
	OK(bb_mkey_create(e->b.pd, &attr, &k));
	all_refused(e, 0, k->rkey);
	/* Columns: 4 bytes of each 64-byte row, and 12 bytes of each 100-byte row elsewhere. */
	b[0] = block(e, 17, 4, 60);
	b[1] = block(e, 40000, 12, 88);
	layout(e, k, 100, b, 2);
	through_key(e, k, 0, 1600, b, 2, 100);
	/* The key is changed to a list without being invalidated first. */
	b[0] = block(e, 90000, 5000, 0);
	b[1] = block(e, 3, 1, 0);
	b[2] = block(e, 70000, 12000, 0);
	layout(e, k, 0, b, 3);
	through_key(e, k, 0, 17001, b, 3, 1);
	/*
	 * As many blocks as a key of ten entries can have; the WQE takes several blocks of the
	 * queue.
	 */
	for (i = 0; i < 9; i++)
		b[i] = block(e, i * 1000, 1 + i, i);
	layout(e, k, 20, b, 9);
	through_key(e, k, 0, 20 * 45, b, 9, 20);
	/* Whole rows: no byte is skipped, so the parts are contiguous. */
	b[0] = block(e, 8, 4096, 0);
	layout(e, k, 5, b, 1);
	through_key(e, k, 0, 5 * 4096, b, 1, 5);
	OK(bb_post_local_inv(e->b.qp, 3, k->rkey, BB_SEND_SIGNALED));
	assert_int_equal(done(e, &e->b, BB_WC_LOCAL_INV), BB_WC_SUCCESS);
	all_refused(e, 0, k->rkey);
	layout(e, k, 5, b, 1);
	assert_int_equal(try(e, OP_ATOMIC, 8, k->rkey, 8), BB_WC_SUCCESS);
	/* 8 bytes in two parts cannot be the target of an atomic. */
	b[0] = block(e, 8, 4, 4);
	layout(e, k, 5, b, 1);
	assert_int_equal(try(e, OP_ATOMIC, 0, k->rkey, 8), BB_WC_REM_INV_REQ_ERR);
	OK(bb_mkey_destroy(k));
}

KEYS_TEST(test_bad_layouts_are_refused)
{
	struct bb_interleaved b = block(e, 0, 16, 48);
	struct bb_sge sge[2] = {sge_of(&e->b, 0, 64), sge_of(&e->b, 64, 64)};
	struct bb_mkey_attr attr;
	struct bb_mkey *k;

	bb_mkey_attr_init(&attr);
	attr.pieces = sge;
	attr.n = 2;
	attr.access = BB_ACCESS_MW_BIND;
	assert_int_equal(bb_mkey_create(e->b.pd, &attr, &k), -EINVAL);
	bb_mkey_attr_init(&attr);
	attr.max_pieces = 2;
	OK(bb_mkey_create(e->b.pd, &attr, &k));

	assert_int_equal(bb_post_mkey_list(e->b.qp, 0, k, ENV_ALL, sge, 0, 0), -EINVAL);
	assert_int_equal(bb_post_mkey_interleaved(e->b.qp, 0, k, ENV_ALL, 0, &b, 1, 0), -EINVAL);
	b.skip = UINT16_MAX;
	assert_int_equal(bb_post_mkey_interleaved(e->b.qp, 0, k, ENV_ALL, 1, &b, 1, 0), -EINVAL);
	b.skip = 0;
	b.bytes = 0;
	assert_int_equal(bb_post_mkey_interleaved(e->b.qp, 0, k, ENV_ALL, 1, &b, 1, 0), -EINVAL);
	env_silent(e, &e->b);
	/* The device refuses a key of another kind. */
	OK(bb_post_local_inv(e->b.qp, 3, e->b.mr->rkey, BB_SEND_SIGNALED));
	assert_int_equal(done(e, &e->b, BB_WC_LOCAL_INV), BB_WC_MW_BIND_ERR);
	fresh(e);
	OK(bb_mkey_destroy(k));
}

TEST(test_missing_capability_is_reported_and_refused)
{
	static const char *const specs[] = {"soft2,no_mkey", "soft2,no_umr", "soft2,no_interleaved",
					    "soft2,no_mw",   "soft2,no_ksm", "soft2,no_umr_atomic"};
	unsigned int i;

	for (i = 0; i < RTE_DIM(specs); i++) {
		bool mkey = i != 0, atomic = i != 5, umr = i > 1, mw = i != 1 && i != 3;
		struct bb_mkey_attr attr;
		struct bb_dev_attr caps;
		struct bb_sge sge = {0};
		struct bb_mkey *k;
		struct bb_dev *dev;
		struct bb_mw *w;
		struct bb_pd *pd;
		struct bb_mr *mr;
		void *mem = rte_zmalloc("without", 4096, 4096);

		OK(bb_dev_open(specs[i], &dev));
		OK(bb_pd_alloc(dev, &pd));
		OK(bb_dev_query(dev, &caps));
		assert_int_equal(caps.max_mkey_pieces != 0, mkey);
		assert_int_equal(caps.mkey_layout, umr);
		assert_int_equal(caps.mkey_interleaved, umr && i != 2);
		assert_int_equal(caps.memory_windows, mw);
		assert_int_equal(caps.memory_window_atomics, mw && atomic);
		assert_int_equal(caps.mkey_atomic_align, mkey && atomic ? 8 : 0);
		assert_int_equal(bb_mw_alloc(pd, BB_MW_TYPE_1, &w), mw ? 0 : -ENOTSUP);
		if (mw)
			OK(bb_mw_free(w));
		OK(bb_mr_reg(pd, mem, 4096, 0, &mr));
		sge = (struct bb_sge){(uintptr_t)mem, 4096, mr->lkey};
		bb_mkey_attr_init(&attr);
		attr.pieces = &sge;
		attr.n = 1;
		assert_int_equal(bb_mkey_create(pd, &attr, &k), mkey ? 0 : -ENOTSUP);
		if (mkey)
			OK(bb_mkey_destroy(k));
		attr.access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_ATOMIC;
		assert_int_equal(bb_mkey_create(pd, &attr, &k), !mkey    ? -ENOTSUP
								: atomic ? 0
									 : -EINVAL);
		if (mkey && atomic)
			OK(bb_mkey_destroy(k));
		bb_mkey_attr_init(&attr);
		attr.max_pieces = 1;
		assert_int_equal(bb_mkey_create(pd, &attr, &k), umr ? 0 : -ENOTSUP);
		if (umr)
			OK(bb_mkey_destroy(k));
		OK(bb_mr_dereg(mr));
		OK(bb_pd_free(pd));
		OK(bb_dev_close(dev));
		rte_free(mem);
	}
}

TEST_MAIN(env_eal_init("mlx5_mkey"))
