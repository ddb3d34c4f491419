/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The balanced tree of the address table: order, balance and sums after every change. */
#include "../core/core_fixture.h"

#define MANY 60000u

static struct bb_mem_reg regs[3] = {
	{.kind = BB_MEM_EXPLICIT}, {.kind = BB_MEM_HEAP}, {.kind = BB_MEM_POOL}};
static struct bb_mem_entry *entries, *root;
static bool *in;
static uint64_t rng;

static uint32_t
rnd(uint32_t n)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 33) % n;
}

static int
setup(void **state)
{
	entries = calloc(MANY, sizeof(*entries));
	in = calloc(MANY, sizeof(*in));
	root = NULL;
	rng = 1;
	return entries == NULL || in == NULL;
}

static int
teardown(void **state)
{
	free(entries);
	free(in);
	return 0;
}

/* Checks a subtree. Returns the number of its entries. */
static uint32_t
check(const struct bb_mem_entry *e, const struct bb_mem_entry **last)
{
	uint64_t max, heap;
	int l, r;
	uint32_t n;

	if (e == NULL)
		return 0;
	n = 1 + check(e->left, last);
	if (*last != NULL)
		assert_true((*last)->start < e->start ||
			    ((*last)->start == e->start && (*last)->reg < e->reg));
	*last = e;
	n += check(e->right, last);
	l = e->left != NULL ? e->left->height : 0;
	r = e->right != NULL ? e->right->height : 0;
	assert_int_equal(e->height, 1 + RTE_MAX(l, r));
	assert_in_range(l - r + 1, 0, 2);
	max = e->end;
	heap = e->reg->kind == BB_MEM_HEAP ? e->end : 0;
	if (e->left != NULL) {
		max = RTE_MAX(max, e->left->max_end);
		heap = RTE_MAX(heap, e->left->heap_end);
	}
	if (e->right != NULL) {
		max = RTE_MAX(max, e->right->max_end);
		heap = RTE_MAX(heap, e->right->heap_end);
	}
	assert_int_equal(e->max_end, max);
	assert_int_equal(e->heap_end, heap);
	return n;
}

static void
check_all(uint32_t n)
{
	const struct bb_mem_entry *last = NULL;

	assert_int_equal(check(root, &last), n);
}

static void
put(uint32_t i, uint64_t start, uint64_t len, struct bb_mem_reg *reg)
{
	entries[i].start = start;
	entries[i].end = start + len;
	entries[i].reg = reg;
	bb_mem_tree_add(&root, &entries[i]);
	in[i] = true;
}

static void
take(uint32_t i)
{
	assert_ptr_equal(bb_mem_tree_del(&root, entries[i].start, entries[i].reg), &entries[i]);
	in[i] = false;
}

/* Few starts and three registrations, and many entries have the same start. */
TEST_WITH(setup, teardown, test_random_changes_keep_order_balance_and_sums)
{
	const uint32_t n = 3 * 64;
	uint32_t live = 0;

	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t i = rnd(n);

		if (in[i]) {
			take(i);
			live--;
		} else {
			assert_null(bb_mem_tree_del(&root, i / 3, &regs[i % 3]));
			put(i, i / 3, 1 + rnd(200), &regs[i % 3]);
			live++;
		}
		check_all(live);
	}
}

/*
 * The number of levels bounds the steps of each change and lookup. A scan of the entries, or a tree
 * that is not balanced, has thousands.
 */
TEST_WITH(setup, teardown, test_60000_entries_in_any_order_have_23_levels_at_most)
{
	/* Each step visits all entries, because it has no factor in common with their number. */
	static const uint32_t steps[] = {1, MANY - 1, 7919, MANY / 2 + 1};

	for (size_t k = 0; k < RTE_DIM(steps); k++) {
		uint32_t j = 0;

		for (uint32_t i = 0; i < MANY; i++, j = (j + steps[k]) % MANY)
			put(j, j * 4096ull, 4096, &regs[0]);
		check_all(MANY);
		/* log2(60,000) * 1.44, the limit of AVL trees */
		assert_true(root->height <= 23);
		for (uint32_t i = 0; i < MANY - 1000; i++, j = (j + steps[k]) % MANY)
			take(j);
		check_all(1000);
		assert_true(root->height <= 14);
		for (uint32_t i = 0; i < 1000; i++, j = (j + steps[k]) % MANY)
			take(j);
		assert_null(root);
	}
}

TEST_MAIN(0)
