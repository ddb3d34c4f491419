/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * BlueFlame copies: which stores a device's send queues use, and that the device executes the
 * copied WQEs.
 */
#define ALLOW_EXPERIMENTAL_API /* for the bound on vectors */
#include "../mlx5_env.h"

#include <rte_vect.h>

#include "bb_bf_copy.h"

/*
 * Posts WQEs one at a time on a device opened with @args, whose doorbells are by @ring. Polls their
 * CQEs.
 */
static void
copies_by(const char *args, void (*ring)(struct bb_sq *sq))
{
	struct env e;
	uint64_t i;

	env_open_spec(&e, args);
	env_up(&e);
	assert_ptr_equal(e.a.qp->sq.listed_ring, ring);
	for (i = 0; i < 100; i++) {
		OK(bb_post_write_inline(e.a.qp, i, &i, sizeof(i), raddr_of(&e.b, 0), e.b.mr->rkey,
					BB_SEND_SIGNALED));
		env_done(&e, &e.a, i, BB_WC_SUCCESS);
		assert_memory_equal(e.b.buf, &i, sizeof(i));
	}
	env_stop(&e);
}

static void
copies(const char *args, enum bb_bf_copy want)
{
	copies_by(args, bb_bf_ring(want));
}

TEST(test_none_stores_8_bytes_to_the_blueflame_register)
{
	copies_by("soft0,bf_copy=none", bb_bf_ring_head);
}

/* Every kind that the CPU supports is used when the option names it; the others are refused. */
TEST(test_kind_is_the_one_asked_for)
{
	struct bb_dev *dev = NULL;
	char args[64];
	enum bb_bf_copy i;

	assert_int_equal(rte_vect_set_max_simd_bitwidth(512), 0);
	for (i = 0; i < BB_BF_COPY_KINDS; i++) {
		snprintf(args, sizeof(args), "soft0,bf_copy=%s", bb_bf_copy_name(i));
		if (bb_bf_copy_has(i))
			copies(args, i);
		else
			assert_int_equal(bb_dev_open(args, &dev), -ENOTSUP);
	}
	assert_int_equal(bb_dev_open("soft0,bf_copy=avx1024", &dev), -EINVAL);
	assert_null(dev);
}

/* A kind that EAL's bound on vectors forbids is refused. MOVDIR64B is not a vector instruction. */
TEST(test_vectors_that_eal_forbids_are_refused)
{
	static const uint16_t bits[BB_BF_COPY_KINDS] = {
		[BB_BF_COPY_NEON] = 128,
		[BB_BF_COPY_AVX2] = 256,
		[BB_BF_COPY_AVX512] = 512,
	};
	struct bb_dev *dev = NULL;
	char args[64];
	enum bb_bf_copy i;

	assert_int_equal(rte_vect_set_max_simd_bitwidth(64), 0);
	for (i = 0; i < BB_BF_COPY_KINDS; i++) {
		snprintf(args, sizeof(args), "soft0,bf_copy=%s", bb_bf_copy_name(i));
		if (bits[i] == 0 && bb_bf_copy_has(i))
			copies(args, i);
		else
			assert_int_equal(bb_dev_open(args, &dev), -ENOTSUP);
	}
	assert_null(dev);
}

/*
 * Without the option the widest kind that EAL allows is used. MOVDIR64B is not used on ordinary
 * memory.
 */
TEST(test_kind_is_the_widest_allowed)
{
	static const struct {
		uint16_t bits;
		enum bb_bf_copy widest;
	} bounds[] = {
		{64, BB_BF_COPY_PLAIN},
		{128, BB_BF_COPY_NEON},
		{256, BB_BF_COPY_AVX2},
		{512, BB_BF_COPY_AVX512},
	};
	enum bb_bf_copy want;
	size_t i;

	for (i = 0; i < RTE_DIM(bounds); i++) {
		assert_int_equal(rte_vect_set_max_simd_bitwidth(bounds[i].bits), 0);
		for (want = bounds[i].widest; !bb_bf_copy_has(want); want--)
			;
		assert_int_equal(bb_bf_copy_best(true), want);
		copies("soft0", want);
		if (bb_bf_copy_has(BB_BF_COPY_MOVDIR64B))
			want = BB_BF_COPY_MOVDIR64B;
		assert_int_equal(bb_bf_copy_best(false), want);
	}
}

TEST_MAIN(env_eal_init("mlx5_bf_copy"))
