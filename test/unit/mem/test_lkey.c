/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Address to lkey: hits, misses, boundaries, overlaps, holes. */
#include "../core/core_fixture.h"

#define P(addr) ((void *)(uintptr_t)(addr))

static struct bare_pd b;

static int
setup(void **state)
{
	bare_pd_init(&b);
	return 0;
}

static int
teardown(void **state)
{
	bare_pd_fini(&b);
	return 0;
}

static struct bb_mr *
reg(uint64_t addr, size_t len, uint32_t access)
{
	struct bb_mr *mr;

	assert_int_equal(bb_mr_reg(&b.pd, P(addr), len, access, &mr), 0);
	return mr;
}

static void
alloc_event(uint64_t addr, size_t len)
{
	bb_mem_heap_event(b.pd.mem, RTE_MEM_EVENT_ALLOC, P(addr), len);
}

static void
free_event(uint64_t addr, size_t len)
{
	bb_mem_heap_event(b.pd.mem, RTE_MEM_EVENT_FREE, P(addr), len);
}

#define L(name) TEST_WITH(setup, teardown, name)

L(test_empty)
{
	struct bb_lkey_cache c;

	bb_lkey_cache_init(&c, &b.pd);
	assert_int_equal(bb_mem_lkey(&c, P(0), 0), BB_LKEY_NONE);
	assert_int_equal(bb_mem_lkey(&c, P(0x1000), 1), BB_LKEY_NONE);
	assert_int_equal(bb_mem_lkey(&c, P(UINT64_MAX), 1), BB_LKEY_NONE);
	assert_int_equal(c.misses, 3);
}

L(test_borders)
{
	struct bb_mr *mr = reg(0x10000, 0x1000, BB_ACCESS_LOCAL_WRITE);
	struct bb_lkey_cache c;

	bb_lkey_cache_init(&c, &b.pd);
	/* The second pass hits the cache. */
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(bb_mem_lkey(&c, P(0x10000), 0x1000), mr->lkey);
		assert_int_equal(bb_mem_lkey(&c, P(0x10fff), 1), mr->lkey);
		assert_int_equal(bb_mem_lkey(&c, P(0x10fff), 0), mr->lkey);
		assert_int_equal(bb_mem_lkey(&c, P(0x10000), 0x1001), BB_LKEY_NONE);
		assert_int_equal(bb_mem_lkey(&c, P(0xffff), 1), BB_LKEY_NONE);
		assert_int_equal(bb_mem_lkey(&c, P(0x11000), 0), BB_LKEY_NONE);
		assert_int_equal(bb_mem_lkey(&c, P(0x10fff), 2), BB_LKEY_NONE);
		assert_int_equal(bb_mem_lkey(&c, P(0x10800), UINT64_MAX), BB_LKEY_NONE);
		assert_int_equal(bb_mem_lkey(&c, P(0x10800), UINT64_MAX - 0x10800 + 1),
				 BB_LKEY_NONE);
	}
	assert_int_equal(bb_mr_dereg(mr), 0);
}

/* Adjacent registrations with two keys: a range across both has no key. */
L(test_crossing)
{
	struct bb_mr *x, *y, *z;
	struct bb_lkey_cache c;

	x = reg(0x10000, 0x1000, BB_ACCESS_LOCAL_WRITE);
	y = reg(0x11000, 0x1000, BB_ACCESS_LOCAL_WRITE);
	bb_lkey_cache_init(&c, &b.pd);
	assert_int_equal(bb_mem_lkey(&c, P(0x10ff8), 8), x->lkey);
	assert_int_equal(bb_mem_lkey(&c, P(0x11000), 8), y->lkey);
	assert_int_equal(bb_mem_lkey(&c, P(0x10ffc), 8), BB_LKEY_NONE);
	/* Until one registration covers the whole range. */
	z = reg(0x10800, 0x1000, BB_ACCESS_LOCAL_WRITE);
	assert_int_equal(bb_mem_lkey(&c, P(0x10ffc), 8), z->lkey);
	assert_int_equal(bb_mr_dereg(z), 0);
	assert_int_equal(bb_mem_lkey(&c, P(0x10ffc), 8), BB_LKEY_NONE);
	assert_int_equal(bb_mr_dereg(x), 0);
	assert_int_equal(bb_mr_dereg(y), 0);
}

/* A small registration inside a large one does not hide it. */
L(test_nested)
{
	struct bb_mr *big, *small[20];
	struct bb_lkey_cache c;

	big = reg(0x100000, 0x100000, BB_ACCESS_LOCAL_WRITE);
	for (unsigned int i = 0; i < RTE_DIM(small); i++)
		small[i] = reg(0x110000 + i * 0x1000, 0x800, BB_ACCESS_LOCAL_WRITE);
	bb_lkey_cache_init(&c, &b.pd);
	assert_int_equal(bb_mem_lkey(&c, P(0x1ffff0), 16), big->lkey);
	bb_lkey_cache_init(&c, &b.pd);
	assert_int_equal(bb_mem_lkey(&c, P(0x113400), 0x800), big->lkey);
	bb_lkey_cache_init(&c, &b.pd);
	assert_int_equal(bb_mem_lkey(&c, P(0x113400), 0x400), small[3]->lkey);
	for (unsigned int i = 0; i < RTE_DIM(small); i++)
		assert_int_equal(bb_mr_dereg(small[i]), 0);
	assert_int_equal(bb_mem_lkey(&c, P(0x113400), 0x400), big->lkey);
	assert_int_equal(bb_mr_dereg(big), 0);
}

/* A writable registration is preferred to a read-only one, cached or not. */
L(test_read_only)
{
	struct bb_mr *ro = reg(0x10000, 0x4000, BB_ACCESS_REMOTE_READ), *rw;
	struct bb_lkey_cache c;

	bb_lkey_cache_init(&c, &b.pd);
	assert_int_equal(bb_mem_lkey(&c, P(0x11000), 64), ro->lkey);
	rw = reg(0x10800, 0x1000, BB_ACCESS_LOCAL_WRITE);
	assert_int_equal(bb_mem_lkey(&c, P(0x12000), 64), ro->lkey);
	assert_int_equal(bb_mem_lkey(&c, P(0x11000), 64), rw->lkey);
	assert_int_equal(bb_mr_dereg(rw), 0);
	assert_int_equal(bb_mem_lkey(&c, P(0x11000), 64), ro->lkey);
	assert_int_equal(bb_mr_dereg(ro), 0);
}

/*
 * With as many ranges as entries there is no miss after the first round. With one more there are
 * misses.
 */
L(test_hits)
{
	struct bb_mr *mr[BB_LKEY_CACHE_ENTRIES + 1];
	struct bb_lkey_cache c;

	for (unsigned int i = 0; i < RTE_DIM(mr); i++)
		mr[i] = reg(0x10000 + i * 0x10000, 0x1000, BB_ACCESS_LOCAL_WRITE);
	bb_lkey_cache_init(&c, &b.pd);
	for (unsigned int round = 0; round < 10; round++)
		for (unsigned int i = 0; i < BB_LKEY_CACHE_ENTRIES; i++)
			assert_int_equal(bb_mem_lkey(&c, P(0x10080 + i * 0x10000), 64),
					 mr[i]->lkey);
	assert_int_equal(c.misses, BB_LKEY_CACHE_ENTRIES);
	assert_int_equal(bb_mem_lkey(&c, P(0x10080 + BB_LKEY_CACHE_ENTRIES * 0x10000), 64),
			 mr[BB_LKEY_CACHE_ENTRIES]->lkey);
	assert_int_equal(c.misses, BB_LKEY_CACHE_ENTRIES + 1);
	for (unsigned int i = 0; i < RTE_DIM(mr); i++)
		assert_int_equal(bb_mr_dereg(mr[i]), 0);
	/* A cache returns no key of a removed registration. */
	for (unsigned int i = 0; i < RTE_DIM(mr); i++)
		assert_int_equal(bb_mem_lkey(&c, P(0x10080 + i * 0x10000), 64), BB_LKEY_NONE);
}

/* A hole in a heap registration: both parts keep their key, the hole has none. */
L(test_hole)
{
	struct bb_lkey_cache c;
	uint32_t key;

	alloc_event(0x100000, 0x10000);
	bb_lkey_cache_init(&c, &b.pd);
	key = bb_mem_lkey(&c, P(0x100000), 0x10000);
	assert_int_not_equal(key, BB_LKEY_NONE);
	free_event(0x104000, 0x2000);
	assert_int_equal(bb_mem_lkey(&c, P(0x104000), 1), BB_LKEY_NONE);
	assert_int_equal(bb_mem_lkey(&c, P(0x105fff), 1), BB_LKEY_NONE);
	assert_int_equal(bb_mem_lkey(&c, P(0x103fff), 2), BB_LKEY_NONE);
	assert_int_equal(bb_mem_lkey(&c, P(0x100000), 0x10000), BB_LKEY_NONE);
	assert_int_equal(bb_mem_lkey(&c, P(0x100000), 0x4000), key);
	assert_int_equal(bb_mem_lkey(&c, P(0x106000), 0xa000), key);
	assert_int_equal(bb_mem_reap(&b.pd), 0);
	assert_int_equal(fake.mrs, 1);

	/* Mapped again: a new registration, and no key for a range across the boundaries. */
	alloc_event(0x104000, 0x2000);
	assert_int_equal(fake.mrs, 2);
	assert_int_not_equal(bb_mem_lkey(&c, P(0x104000), 0x2000), BB_LKEY_NONE);
	assert_int_not_equal(bb_mem_lkey(&c, P(0x104000), 0x2000), key);
	assert_int_equal(bb_mem_lkey(&c, P(0x103000), 0x2000), BB_LKEY_NONE);

	/* A free of both: the old registration is retired with its last byte only. */
	free_event(0x103000, 0xd000);
	assert_int_equal(b.pd.mem->stats.retired, 1);
	assert_int_equal(bb_mem_reap(&b.pd), 1);
	assert_int_equal(bb_mem_lkey(&c, P(0x102fff), 1), key);
	assert_int_equal(bb_mem_lkey(&c, P(0x103000), 1), BB_LKEY_NONE);
	free_event(0x100000, 0x3000);
	assert_int_equal(bb_mem_reap(&b.pd), 1);
	assert_int_equal(fake.mrs, 0);
}

/* A second event for a range, or one that covers old parts: only the gaps are registered. */
L(test_told_twice)
{
	struct bb_lkey_cache c;
	uint32_t key;

	alloc_event(0x104000, 0x2000);
	alloc_event(0x104000, 0x2000);
	assert_int_equal(fake.regs, 1);
	bb_lkey_cache_init(&c, &b.pd);
	key = bb_mem_lkey(&c, P(0x104000), 0x2000);
	alloc_event(0x100000, 0x10000);
	assert_int_equal(fake.regs, 3);
	assert_int_equal(bb_mem_lkey(&c, P(0x104000), 0x2000), key);
	assert_int_not_equal(bb_mem_lkey(&c, P(0x100000), 0x4000), BB_LKEY_NONE);
	assert_int_not_equal(bb_mem_lkey(&c, P(0x106000), 0xa000), BB_LKEY_NONE);
	assert_int_equal(b.pd.mem->stats.bytes, 0x10000);
	free_event(0x100000, 0x10000);
	assert_int_equal(b.pd.mem->stats.retired, 3);
	/* A second free, or a free of unknown memory, changes nothing. */
	free_event(0x100000, 0x10000);
	assert_int_equal(b.pd.mem->stats.retired, 3);
}

/* A heap event does not change explicit registrations. */
L(test_free_and_explicit)
{
	struct bb_mr *mr;
	struct bb_lkey_cache c;

	alloc_event(0x100000, 0x4000);
	mr = reg(0x101000, 0x1000, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ);
	free_event(0x100000, 0x4000);
	assert_int_equal(bb_mem_reap(&b.pd), 1);
	bb_lkey_cache_init(&c, &b.pd);
	assert_int_equal(bb_mem_lkey(&c, P(0x101000), 0x1000), mr->lkey);
	assert_int_equal(bb_mem_lkey(&c, P(0x100000), 1), BB_LKEY_NONE);
	assert_int_equal(bb_mr_dereg(mr), 0);
}

TEST_MAIN(0)
