/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The entries of an address table: a height-balanced search tree (AVL), sorted by start address.
 * Each entry holds the largest end in its subtree, so that a search skips subtrees that end too
 * early.
 *
 * One writer at a time changes a tree. Readers may walk it meanwhile, as bb_mem_table.h says, so
 * the writer stores every field that readers load with release order.
 */
#ifndef BB_MEM_TREE_H
#define BB_MEM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bb_mem_reg;

/* Largest height of a tree: an AVL tree of 2^32 entries has at most 46 levels. */
#define BB_MEM_TREE_HEIGHT 46

/*
 * A range of addresses. If EAL has unmapped parts of a registration, each remaining part has an
 * entry.
 */
struct bb_mem_entry {
	struct bb_mem_entry *left; /* left child; in a free entry, the next free entry */
	struct bb_mem_entry *right;
	uint64_t start, end;
	uint64_t max_end; /* largest end in the subtree */
	uint32_t lkey;
	uint8_t writable;
	/* Only writers access the fields below. */
	uint8_t height;
	struct bb_mem_reg *reg; /* registration of the range */
	uint64_t heap_end;      /* largest end of a heap entry in the subtree, 0 if none */
};

/* Adds @e, whose start, end, lkey, writable and reg are set. */
void bb_mem_tree_add(struct bb_mem_entry **root, struct bb_mem_entry *e);
/*
 * Removes and returns the entry of @reg that starts at @start. Returns NULL if there is none. The
 * fields of the returned entry stay unchanged.
 */
struct bb_mem_entry *bb_mem_tree_del(struct bb_mem_entry **root, uint64_t start,
				     const struct bb_mem_reg *reg);
/* Returns the first heap entry that overlaps [start, end), NULL if none. */
struct bb_mem_entry *bb_mem_tree_heap(struct bb_mem_entry *root, uint64_t start, uint64_t end);

#endif
