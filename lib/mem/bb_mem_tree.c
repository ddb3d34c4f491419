/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The balanced tree of an address table. Recursion is at most BB_MEM_TREE_HEIGHT levels deep. */
#include <assert.h>

#include "bb_mem_table.h"
#include "bb_mem_tree.h"

static_assert(sizeof(struct bb_mem_entry) <= 64, "an entry has one cache line");

static void
link_set(struct bb_mem_entry **link, struct bb_mem_entry *e)
{
	if (*link != e)
		__atomic_store_n(link, e, __ATOMIC_RELEASE);
}

static unsigned int
height(const struct bb_mem_entry *e)
{
	return e == NULL ? 0 : e->height;
}

/* Recomputes the height of @e and the largest ends in its subtree. */
static void
update(struct bb_mem_entry *e)
{
	const struct bb_mem_entry *l = e->left, *r = e->right;
	uint64_t max = e->end, heap = e->reg->kind == BB_MEM_HEAP ? e->end : 0;

	if (l != NULL) {
		max = RTE_MAX(max, l->max_end);
		heap = RTE_MAX(heap, l->heap_end);
	}
	if (r != NULL) {
		max = RTE_MAX(max, r->max_end);
		heap = RTE_MAX(heap, r->heap_end);
	}
	if (e->max_end != max)
		__atomic_store_n(&e->max_end, max, __ATOMIC_RELEASE);
	e->heap_end = heap;
	e->height = (uint8_t)(1 + RTE_MAX(height(l), height(r)));
}

/* Makes the left child the root of the subtree. Returns the new root. */
static struct bb_mem_entry *
rotate_right(struct bb_mem_entry *e)
{
	struct bb_mem_entry *l = e->left;

	link_set(&e->left, l->right);
	link_set(&l->right, e);
	update(e);
	update(l);
	return l;
}

static struct bb_mem_entry *
rotate_left(struct bb_mem_entry *e)
{
	struct bb_mem_entry *r = e->right;

	link_set(&e->right, r->left);
	link_set(&r->left, e);
	update(e);
	update(r);
	return r;
}

/* Balances a subtree whose children differ in height by at most 2. Returns its root. */
static struct bb_mem_entry *
balance(struct bb_mem_entry *e)
{
	unsigned int l = height(e->left), r = height(e->right);

	if (l > r + 1) {
		if (height(e->left->left) < height(e->left->right))
			link_set(&e->left, rotate_left(e->left));
		return rotate_right(e);
	}
	if (r > l + 1) {
		if (height(e->right->right) < height(e->right->left))
			link_set(&e->right, rotate_right(e->right));
		return rotate_left(e);
	}
	update(e);
	return e;
}

/*
 * Returns true if an entry of @reg that starts at @start comes before @e in the tree. The order is
 * total, because a registration has at most one entry with the same start.
 */
static bool
before(uint64_t start, const struct bb_mem_reg *reg, const struct bb_mem_entry *e)
{
	return start != e->start ? start < e->start : (uintptr_t)reg < (uintptr_t)e->reg;
}

static struct bb_mem_entry *
add(struct bb_mem_entry *at, struct bb_mem_entry *e)
{
	if (at == NULL)
		return e;
	if (before(e->start, e->reg, at))
		link_set(&at->left, add(at->left, e));
	else
		link_set(&at->right, add(at->right, e));
	return balance(at);
}

/* Removes the first entry of a subtree. Returns the root of the rest. */
static struct bb_mem_entry *
del_first(struct bb_mem_entry *at, struct bb_mem_entry **first)
{
	if (at->left == NULL) {
		*first = at;
		return at->right;
	}
	link_set(&at->left, del_first(at->left, first));
	return balance(at);
}

static struct bb_mem_entry *
del(struct bb_mem_entry *at, uint64_t start, const struct bb_mem_reg *reg,
    struct bb_mem_entry **found)
{
	struct bb_mem_entry *next, *right;

	if (at == NULL)
		return NULL;
	if (at->start != start || at->reg != reg) {
		if (before(start, reg, at))
			link_set(&at->left, del(at->left, start, reg, found));
		else
			link_set(&at->right, del(at->right, start, reg, found));
		return balance(at);
	}
	*found = at;
	if (at->right == NULL)
		return at->left;
	right = del_first(at->right, &next);
	link_set(&next->left, at->left);
	link_set(&next->right, right);
	return balance(next);
}

void
bb_mem_tree_add(struct bb_mem_entry **root, struct bb_mem_entry *e)
{
	link_set(&e->left, NULL);
	link_set(&e->right, NULL);
	update(e);
	link_set(root, add(*root, e));
}

struct bb_mem_entry *
bb_mem_tree_del(struct bb_mem_entry **root, uint64_t start, const struct bb_mem_reg *reg)
{
	struct bb_mem_entry *found = NULL;

	link_set(root, del(*root, start, reg, &found));
	return found;
}

struct bb_mem_entry *
bb_mem_tree_heap(struct bb_mem_entry *root, uint64_t start, uint64_t end)
{
	struct bb_mem_entry *e;

	if (root == NULL || root->heap_end <= start)
		return NULL;
	e = bb_mem_tree_heap(root->left, start, end);
	if (e != NULL || root->start >= end)
		return e;
	if (root->end > start && root->reg->kind == BB_MEM_HEAP)
		return root;
	return bb_mem_tree_heap(root->right, start, end);
}
