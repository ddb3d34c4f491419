/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Masked atomics against a plain model of their definition (UCX's uct/ib/rc/accel and the
 * vendor's published InfiniBand extensions), with many random operands of each size.
 */
#include "../mlx5_env.h"

static uint64_t
rnd(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* Adds field by field and bit by bit, as plainly as possible. */
static uint64_t
add_fields(uint64_t a, uint64_t b, uint64_t boundary, unsigned int bits)
{
	uint64_t sum = 0;
	unsigned int i, carry = 0;

	for (i = 0; i < bits; i++) {
		unsigned int s = (a >> i & 1) + (b >> i & 1) + carry;

		sum |= (uint64_t)(s & 1) << i;
		carry = (boundary >> i & 1) ? 0 : s >> 1;
	}
	return sum;
}

static uint64_t
cmp_swap(uint64_t old, uint64_t compare, uint64_t compare_mask, uint64_t swap, uint64_t swap_mask)
{
	return (old & compare_mask) == (compare & compare_mask)
		       ? (old & ~swap_mask) | (swap & swap_mask)
		       : old;
}

static uint64_t
load(const uint8_t *p, uint32_t len)
{
	uint64_t v = 0;

	memcpy(&v, p, len);
	return v;
}

/* Returns the result as a number. */
static uint64_t
result(const struct bb_dev_attr *attr, const uint8_t *p, uint32_t len)
{
	uint64_t v = load(p, len);

	if ((attr->masked_atomics_be & len) == 0)
		return v;
	return len == 4 ? bb_be32((uint32_t)v) : bb_be64(v);
}

ENV_TEST_OPEN(test_masked_atomics_follow_their_definition)
{
	struct bb_dev_attr attr;
	unsigned int len, i, swapped = 0;
	struct bb_wc wc;

	OK(bb_dev_query(e->a.dev, &attr));
	assert_int_equal(attr.masked_atomics, 4 | 8);
	assert_int_equal(attr.masked_atomics_be, 4);
	e->init.max_sge = 1; /* 64 bytes per WQE: a masked CMP_SWAP of 8 bytes takes two slots */
	e->init.max_inline = 28;
	e->init.sq_depth = 16;
	env_up(e);
	for (len = 4; len <= 8; len += 4) {
		uint64_t all = len == 4 ? UINT32_MAX : UINT64_MAX;
		struct bb_sge sge = sge_of(&e->a, 64, len);

		for (i = 0; i < 2000; i++) {
			uint64_t old = rnd() & all, a = rnd() & all, b = rnd() & all;
			uint64_t c = rnd() & all, d = rnd() & all, want;
			size_t at = 128 + (i & 7) * len;

			/* Makes the comparison succeed half of the time. */
			if (i % 2 == 0)
				a = old ^ (~b & rnd() & all);
			memset(e->a.buf + 64, 0xee, 16);
			memset(e->b.buf + at - 8, 0xee, len + 16);
			memcpy(e->b.buf + at, &old, len);
			if (i % 3 == 0) {
				want = add_fields(old, a, b, len * 8);
				OK(bb_post_masked_fetch_add(e->a.qp, i, &sge, raddr_of(&e->b, at),
							    e->b.mr->rkey, a, b, BB_SEND_SIGNALED));
			} else {
				want = cmp_swap(old, a, b, c, d);
				swapped += want != old;
				OK(bb_post_masked_cmp_swap(e->a.qp, i, &sge, raddr_of(&e->b, at),
							   e->b.mr->rkey, a, b, c, d,
							   BB_SEND_SIGNALED));
			}
			bb_qp_ring(e->a.qp);
			env_poll(e, &e->a, &wc, 1);
			expect(&wc, e->a.qp, i, BB_WC_SUCCESS);
			assert_int_equal(wc.opcode, i % 3 == 0 ? BB_WC_FETCH_ADD : BB_WC_CMP_SWAP);
			assert_int_equal(wc.byte_len, len);
			assert_int_equal(load(e->b.buf + at, len), want);
			assert_int_equal(result(&attr, e->a.buf + 64, len), old);
			assert_int_equal(e->a.buf[64 + len], 0xee);
			assert_int_equal(e->b.buf[at + len], 0xee);
			assert_int_equal(e->b.buf[at - 1], 0xee);
		}
	}
	assert_true(swapped > 500);
}

/* Requests of two slots in an almost full queue, and requests that can never be posted. */
ENV_TEST_OPEN(test_request_of_two_slots_needs_two)
{
	struct bb_qp_stats stats;
	struct bb_sge sge;
	struct bb_wc wc[16];
	int n;

	e->init.max_sge = 1;
	e->init.max_inline = 28;
	e->init.sq_depth = 5;
	e->init.signal_every = 1;
	env_up(e);
	sge = sge_of(&e->a, 0, 8);
#define CS()                                                                                       \
	bb_post_masked_cmp_swap(e->a.qp, 1, &sge, raddr_of(&e->b, 0), e->b.mr->rkey, 1, 2, 3, 4,   \
				BB_SEND_SIGNALED)
	assert_int_equal(CS(), 0);
	assert_int_equal(CS(), 0);
	assert_int_equal(CS(), -EAGAIN);
	OK(bb_post_nop(e->a.qp, 2, BB_SEND_SIGNALED));
	assert_int_equal(bb_post_nop(e->a.qp, 2, BB_SEND_SIGNALED), -EAGAIN);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, wc, 3);
	for (n = 0; n < 40; n++) {
		assert_int_equal(CS(), 0);
		env_done(e, &e->a, 1, BB_WC_SUCCESS);
	}
	/* A request counts once, whatever room it takes. */
	OK(bb_qp_stats(e->a.qp, &stats));
	assert_int_equal(stats.posted, 43);
	assert_int_equal(stats.outstanding, 0);
	sge.len = 16;
	assert_int_equal(CS(), -EINVAL);
	sge.len = 8;
	assert_int_equal(bb_post_masked_fetch_add(e->a.qp, 1, &sge, raddr_of(&e->b, 4),
						  e->b.mr->rkey, 1, 0, 0),
			 -EINVAL);
	sge.len = 4;
	assert_int_equal(bb_post_masked_fetch_add(e->a.qp, 1, &sge, raddr_of(&e->b, 2),
						  e->b.mr->rkey, 1, 0, 0),
			 -EINVAL);
	OK(bb_post_masked_fetch_add(e->a.qp, 1, &sge, raddr_of(&e->b, 4), e->b.mr->rkey, 1, 0,
				    BB_SEND_SIGNALED));
	env_done(e, &e->a, 1, BB_WC_SUCCESS);
	env_stop(e);

	env_open(e);
	e->init.max_sge = 1;
	e->init.max_inline = 28;
	e->init.sq_depth = 1;
	env_up(e);
	sge = sge_of(&e->a, 0, 8);
	assert_int_equal(CS(), -EINVAL);
}

TEST(test_device_without_masked_atomics_refuses_them)
{
	struct bb_send_wr wr = {.opcode = BB_WR_MASKED_FETCH_AND_ADD, .nsge = 1};
	struct bb_dev_attr attr;
	struct bb_sge sge;
	struct env e;
	int err;

	env_open_spec(&e,
		      env_thread() ? "soft0,progress=thread,no_ext_atomic" : "soft0,no_ext_atomic");
	OK(bb_dev_query(e.a.dev, &attr));
	assert_int_equal(attr.masked_atomics, 0);
	assert_true(attr.atomics);
	env_up(&e);
	sge = sge_of(&e.a, 0, 8);
	wr.sge = &sge;
	wr.atomic.raddr = raddr_of(&e.b, 0);
	wr.atomic.rkey = e.b.mr->rkey;
	assert_int_equal(bb_qp_post_list(e.a.qp, &wr, 1, &err), 0);
	assert_int_equal(err, -ENOTSUP);
	/* Plain atomics work. */
	wr.opcode = BB_WR_ATOMIC_FETCH_AND_ADD;
	wr.flags = BB_SEND_SIGNALED;
	assert_int_equal(bb_qp_post_list(e.a.qp, &wr, 1, &err), 1);
	env_done(&e, &e.a, 0, BB_WC_SUCCESS);
	/* If it is posted nevertheless, the device does not know the opcode. */
	OK(bb_post_masked_fetch_add(e.a.qp, 7, &sge, raddr_of(&e.b, 0), e.b.mr->rkey, 1, 0, 0));
	env_done(&e, &e.a, 7, BB_WC_LOC_QP_OP_ERR);
	env_stop(&e);
}

TEST_MAIN(env_eal_init("mlx5_atomics"))
