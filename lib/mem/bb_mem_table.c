/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The address table of a PD and the lookup caches over it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_pause.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"

/*
 * FIRST_BLOCK: entries in the first allocation. MAX_BLOCK: maximum entries in a later allocation.
 */
#define FIRST_BLOCK 63
#define MAX_BLOCK   4096

/*
 * Makes the odd sequence number visible to find() before any changed field, and every changed field
 * before the next even number. Each field is stored with release and loaded with acquire order.
 */
static void
write_begin(struct bb_mem_table *t)
{
	__atomic_store_n(&t->seq, t->seq + 1, __ATOMIC_RELAXED);
}

static void
write_end(struct bb_mem_table *t)
{
	__atomic_store_n(&t->seq, t->seq + 1, __ATOMIC_RELEASE);
}

static struct bb_mem_entry *
entry_take(struct bb_mem_table *t)
{
	struct bb_mem_entry *e = t->free;

	t->free = e->left;
	t->n_free--;
	return e;
}

static void
entry_give(struct bb_mem_table *t, struct bb_mem_entry *e)
{
	__atomic_store_n(&e->left, t->free, __ATOMIC_RELEASE);
	t->free = e;
	t->n_free++;
}

/* Adds the range [start, end) of @reg. The caller has reserved the entry. */
static void
entry_add(struct bb_mem_table *t, struct bb_mem_reg *reg, uint64_t start, uint64_t end)
{
	struct bb_mem_entry *e = entry_take(t);

	__atomic_store_n(&e->start, start, __ATOMIC_RELEASE);
	__atomic_store_n(&e->end, end, __ATOMIC_RELEASE);
	__atomic_store_n(&e->lkey, reg->drv_mr->lkey, __ATOMIC_RELEASE);
	__atomic_store_n(&e->writable, reg->writable, __ATOMIC_RELEASE);
	e->reg = reg;
	bb_mem_tree_add(&t->root, e);
}

/* Removes the entry of @reg that starts at @start, if it exists. */
static void
entry_del(struct bb_mem_table *t, const struct bb_mem_reg *reg, uint64_t start)
{
	struct bb_mem_entry *e = bb_mem_tree_del(&t->root, start, reg);

	if (e != NULL)
		entry_give(t, e);
}

/* Allocates entries until @n are free. Returns 0 or -ENOMEM. */
static int
reserve(struct bb_mem_table *t, uint32_t n)
{
	struct bb_mem_block *b;
	uint32_t i, size;

	if (t->n_free >= n)
		return 0;
	size = t->blocks == NULL ? FIRST_BLOCK : RTE_MIN(t->blocks->n * 2, MAX_BLOCK);
	b = aligned_alloc(BB_CACHE_LINE, sizeof(*b) + size * sizeof(b->e[0]));
	if (b == NULL)
		return bb_no_memory(t->pd->dev, "the table of addresses");
	memset(b, 0, sizeof(*b) + size * sizeof(b->e[0]));
	b->n = size;
	b->next = t->blocks;
	t->blocks = b;
	for (i = size; i-- > 0;)
		entry_give(t, &b->e[i]);
	return 0;
}

int
bb_mem_table_create(struct bb_pd *pd, struct bb_mem_table **table)
{
	struct bb_mem_table *t = aligned_alloc(BB_CACHE_LINE, sizeof(*t));

	if (t == NULL)
		return bb_no_memory(pd->dev, "a PD");
	memset(t, 0, sizeof(*t));
	t->pd = pd;
	TAILQ_INIT(&t->heap);
	TAILQ_INIT(&t->pools);
	TAILQ_INIT(&t->retired);
	if (reserve(t, 1) != 0) {
		free(t);
		return -ENOMEM;
	}
	pthread_mutex_init(&t->lock, NULL);
	*table = t;
	return 0;
}

void
bb_mem_table_free(struct bb_mem_table *t)
{
	while (t->blocks != NULL) {
		struct bb_mem_block *b = t->blocks;

		t->blocks = b->next;
		free(b);
	}
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int
bb_mem_table_insert(struct bb_mem_table *t, struct bb_mem_reg *reg)
{
	/*
	 * Reserves one more entry than needed, so that bb_mem_table_cut() can split an entry even
	 * if there is no memory.
	 */
	if (reserve(t, 2) != 0)
		return -ENOMEM;
	write_begin(t);
	entry_add(t, reg, reg->start, reg->end);
	write_end(t);
	return 0;
}

void
bb_mem_table_remove(struct bb_mem_table *t, const struct bb_mem_reg *reg)
{
	write_begin(t);
	entry_del(t, reg, reg->start);
	write_end(t);
}

void
bb_mem_table_clear(struct bb_mem_table *t)
{
	struct bb_mem_block *b;
	uint32_t i;

	write_begin(t);
	__atomic_store_n(&t->root, NULL, __ATOMIC_RELEASE);
	t->free = NULL;
	t->n_free = 0;
	for (b = t->blocks; b != NULL; b = b->next)
		for (i = 0; i < b->n; i++)
			entry_give(t, &b->e[i]);
	write_end(t);
}

/* Cuts [start, end) out of [first, last), which is the range of an entry of @reg. */
static void
entry_cut(struct bb_mem_table *t, struct bb_mem_reg *reg, uint64_t first, uint64_t last,
	  uint64_t start, uint64_t end)
{
	entry_del(t, reg, first);
	if (start > first)
		entry_add(t, reg, first, start);
	if (end >= last)
		return;
	if (t->n_free != 0)
		entry_add(t, reg, end, last);
	else
		BB_LOG(ERR,
		       "no memory to store the key of the registered range %p to %p: lookups of "
		       "its addresses fail",
		       (void *)(uintptr_t)end, (void *)(uintptr_t)last);
}

uint64_t
bb_mem_table_cut(struct bb_mem_table *t, uint64_t start, uint64_t end)
{
	const struct bb_mem_entry *e;
	uint64_t bytes = 0;

	/* Heap entries do not overlap, so at most one entry is split into two. */
	(void)reserve(t, 1);
	write_begin(t);
	while ((e = bb_mem_tree_heap(t->root, start, end)) != NULL) {
		struct bb_mem_reg *reg = e->reg;
		uint64_t from = RTE_MAX(e->start, start), to = RTE_MIN(e->end, end);

		entry_cut(t, reg, e->start, e->end, from, to);
		start = to;
		reg->live -= to - from;
		bytes += to - from;
		if (reg->live == 0) {
			TAILQ_REMOVE(&t->heap, reg, link);
			TAILQ_INSERT_TAIL(&t->retired, reg, link);
			t->stats.heap--;
			t->stats.retired++;
			t->stats.bytes -= reg->end - reg->start;
		}
	}
	write_end(t);
	return bytes;
}

bool
bb_mem_table_gap(const struct bb_mem_table *t, uint64_t *start, uint64_t end, uint64_t *gap_end)
{
	const struct bb_mem_entry *e;

	while ((e = bb_mem_tree_heap(t->root, *start, end)) != NULL && e->start <= *start)
		*start = e->end;
	*gap_end = e != NULL ? e->start : end;
	return *start < end;
}

/*
 * Searches the tree for find(), from the entry with the largest start down. Returns false if the
 * table has changed since it had the sequence number @seq.
 */
static bool
find_at(const struct bb_mem_table *t, uint32_t seq, uint64_t addr, uint64_t len,
	struct bb_lkey_range *range, bool *found, bool *writable)
{
	const struct bb_mem_entry *e = __atomic_load_n(&t->root, __ATOMIC_ACQUIRE);
	/* entries still to check; the left subtree of an entry is searched after the entry */
	const struct bb_mem_entry *path[BB_MEM_TREE_HEIGHT];
	uint32_t n = 0;
	uint64_t end;

	*found = false;
	*writable = false;
	for (;;) {
		/*
		 * The link to the entry @e was loaded before this check. If the sequence number is
		 * still @seq, the link belongs to the tree of @seq. So the path is not longer than
		 * the height of that tree.
		 */
		if (__atomic_load_n(&t->seq, __ATOMIC_RELAXED) != seq)
			return false;
		if (e != NULL && __atomic_load_n(&e->max_end, __ATOMIC_ACQUIRE) > addr) {
			if (__atomic_load_n(&e->start, __ATOMIC_ACQUIRE) <= addr) {
				path[n++] = e;
				e = __atomic_load_n(&e->right, __ATOMIC_ACQUIRE);
			} else {
				e = __atomic_load_n(&e->left, __ATOMIC_ACQUIRE);
			}
			continue;
		}
		if (n == 0)
			return true;
		e = path[--n];
		end = __atomic_load_n(&e->end, __ATOMIC_ACQUIRE);
		if (end > addr && len <= end - addr) {
			*writable = __atomic_load_n(&e->writable, __ATOMIC_ACQUIRE);
			if (!*found || *writable) {
				range->start = __atomic_load_n(&e->start, __ATOMIC_ACQUIRE);
				range->len = end - range->start;
				range->lkey = __atomic_load_n(&e->lkey, __ATOMIC_ACQUIRE);
				*found = true;
			}
			if (*writable)
				return __atomic_load_n(&t->seq, __ATOMIC_RELAXED) == seq;
		}
		e = __atomic_load_n(&e->left, __ATOMIC_ACQUIRE);
	}
}

/*
 * Finds a registration that covers [addr, addr + len). Writable registrations take precedence. The
 * result is consistent with the even sequence number in @seq_out. Returns false if no registration
 * covers the range.
 */
static bool
find(const struct bb_mem_table *t, uint64_t addr, uint64_t len, struct bb_lkey_range *range,
     bool *writable, uint32_t *seq_out)
{
	uint32_t seq;
	bool found;

	do {
		while ((seq = __atomic_load_n(&t->seq, __ATOMIC_ACQUIRE)) & 1)
			rte_pause();
	} while (!find_at(t, seq, addr, len, range, &found, writable));
	*seq_out = seq;
	return found;
}

void
bb_lkey_cache_init(struct bb_lkey_cache *cache, struct bb_pd *pd)
{
	memset(cache, 0, sizeof(*cache));
	cache->pd = pd;
	cache->seq = &pd->mem->seq;
	/* No consistent table has an odd sequence number, so the first lookup misses. */
	cache->seq_filled = 1;
}

uint32_t
bb_mem_lkey_miss(struct bb_lkey_cache *cache, uint64_t addr, uint64_t len)
{
	struct bb_lkey_range range = {0};
	bool found, writable = false;
	uint32_t seq;

	cache->misses++;
	found = find(cache->pd->mem, addr, len, &range, &writable, &seq);
	if (seq != cache->seq_filled) {
		memset(cache->range, 0, sizeof(cache->range));
		cache->next = 0;
		cache->seq_filled = seq;
	}
	if (!found)
		return BB_LKEY_NONE;
	/*
	 * A read-only range is not cached. A part of the range may also belong to a writable
	 * registration, which a hit of the read-only range would hide.
	 */
	if (writable) {
		cache->range[cache->next] = range;
		cache->last = cache->next;
		cache->next = (cache->next + 1) % BB_LKEY_CACHE_ENTRIES;
	}
	return range.lkey;
}
