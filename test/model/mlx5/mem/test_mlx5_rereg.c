/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory regions that are registered again while a peer uses them. */
#include "mem_env.h"

/* The key stays, and covers the new range as soon as the call returns. */
ENV_TEST(test_smaller_range_keeps_the_key)
{
	uint64_t at = raddr_of(&e->b, 0), there = raddr_of(&e->b, 8 * PAGE);
	struct bb_pd *pd;
	struct bb_mr *mr;
	uint32_t rkey;

	OK(bb_mr_reg(e->b.pd, e->b.buf, 4 * PAGE, LW | RW | RR, &mr));
	rkey = mr->rkey;
	OK(bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW | RR));
	assert_int_equal(mr->rkey, rkey);
	check(e, OP_READ, at, rkey, BB_WC_SUCCESS);
	check(e, OP_WRITE, at, rkey, BB_WC_REM_ACCESS_ERR);
	OK(bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW | RW | RR));
	reaches(e, at, rkey, e->b.buf, 1);
	/* A shorter range at another address. */
	OK(bb_mr_rereg(mr, BB_MR_REREG_TRANSLATION, NULL, e->b.buf + 8 * PAGE, 100, 0));
	assert_int_equal(mr->rkey, rkey);
	reaches(e, there + 36, rkey, e->b.buf + 8 * PAGE + 36, 2);
	check(e, OP_READ, there + 37, rkey, BB_WC_REM_ACCESS_ERR);
	check(e, OP_READ, at, rkey, BB_WC_REM_ACCESS_ERR);
	/* Another PD, which none of these QPs belongs to. */
	OK(bb_pd_alloc(e->b.dev, &pd));
	OK(bb_mr_rereg(mr, BB_MR_REREG_PD, pd, NULL, 0, 0));
	assert_int_equal(mr->rkey, rkey);
	check(e, OP_READ, there, rkey, BB_WC_REM_ACCESS_ERR);
	assert_int_equal(bb_pd_free(pd), -EBUSY);
	OK(bb_mr_rereg(mr, BB_MR_REREG_PD, e->b.pd, NULL, 0, 0));
	reaches(e, there, rkey, e->b.buf + 8 * PAGE, 3);
	OK(bb_pd_free(pd));
	OK(bb_mr_dereg(mr));
}

/* More memory than the key has room for, or another kind of memory: the old key becomes invalid. */
ENV_TEST(test_larger_range_gets_a_new_key)
{
	uint64_t at = raddr_of(&e->b, 0);
	struct bb_mr *mr;
	uint32_t old;

	OK(bb_mr_reg(e->b.pd, e->b.buf, PAGE, LW | RW | RR, &mr));
	old = mr->rkey;
	OK(bb_mr_rereg(mr, BB_MR_REREG_TRANSLATION, NULL, e->b.buf, 32 * PAGE, 0));
	assert_int_not_equal(mr->rkey, old);
	reaches(e, at, mr->rkey, e->b.buf, 1);
	reaches(e, at + 31 * PAGE, mr->rkey, e->b.buf + 31 * PAGE, 2);
	check(e, OP_READ, at, old, BB_WC_REM_ACCESS_ERR);
	old = mr->rkey;
	OK(bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW | RW | RR | BB_ACCESS_MW_BIND));
	check(e, OP_READ, at, old, mr->rkey == old ? BB_WC_SUCCESS : BB_WC_REM_ACCESS_ERR);
	reaches(e, at, mr->rkey, e->b.buf, 3);
	OK(bb_mr_dereg(mr));
}

ENV_TEST(test_refused_change_leaves_the_region)
{
	uint8_t *ro = map(PAGE, PROT_READ);
	struct bb_mr *mr, was;

	OK(bb_mr_reg(e->b.pd, e->b.buf, PAGE, LW | RW | RR, &mr));
	was = *mr;
	assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_TRANSLATION, NULL, ro, PAGE, 0), -EFAULT);
	assert_memory_equal(mr, &was, sizeof(was));
	reaches(e, raddr_of(&e->b, 0), mr->rkey, e->b.buf, 1);
	OK(bb_mr_rereg(mr, BB_MR_REREG_TRANSLATION | BB_MR_REREG_ACCESS, NULL, ro, PAGE, RR));
	/* ib_umem_check_rereg(): memory pinned for reading does not become writable. */
	was = *mr;
	assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW | RR), -EACCES);
	assert_memory_equal(mr, &was, sizeof(was));
	check(e, OP_READ, (uintptr_t)ro, mr->rkey, BB_WC_SUCCESS);
	OK(bb_mr_dereg(mr));
	munmap(ro, PAGE);
}

TEST_MAIN(env_eal_init("mlx5_rereg"))
