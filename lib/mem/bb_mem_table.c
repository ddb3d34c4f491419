/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The address table of a PD and the lookup caches over it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>
#include <rte_pause.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"

#define FIRST_CAP 64

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

static void
entry_store(struct bb_mem_entry *dst, const struct bb_mem_entry *src)
{
	__atomic_store_n(&dst->start, src->start, __ATOMIC_RELEASE);
	__atomic_store_n(&dst->end, src->end, __ATOMIC_RELEASE);
	__atomic_store_n(&dst->lkey, src->lkey, __ATOMIC_RELEASE);
	__atomic_store_n(&dst->writable, src->writable, __ATOMIC_RELEASE);
	dst->reg = src->reg;
}

/* Sets max_end of entry @from and all later entries. */
static void
max_end_update(struct bb_mem_array *a, uint32_t from)
{
	uint64_t max = from > 0 ? a->e[from - 1].max_end : 0;
	uint32_t i;

	for (i = from; i < a->n; i++) {
		if (a->e[i].end > max)
			max = a->e[i].end;
		if (a->e[i].max_end != max)
			__atomic_store_n(&a->e[i].max_end, max, __ATOMIC_RELEASE);
	}
}

/* Returns the index of the first entry that starts above @addr. */
static uint32_t
upper_bound(const struct bb_mem_array *a, uint32_t n, uint64_t addr)
{
	uint32_t lo = 0;

	while (lo < n) {
		uint32_t mid = lo + (n - lo) / 2;

		if (__atomic_load_n(&a->e[mid].start, __ATOMIC_ACQUIRE) <= addr)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

static void
entry_add(struct bb_mem_array *a, const struct bb_mem_entry *e)
{
	uint32_t at = upper_bound(a, a->n, e->start), i;

	for (i = a->n; i > at; i--)
		entry_store(&a->e[i], &a->e[i - 1]);
	entry_store(&a->e[at], e);
	__atomic_store_n(&a->n, a->n + 1, __ATOMIC_RELEASE);
	max_end_update(a, at);
}

static void
entry_del(struct bb_mem_array *a, uint32_t at)
{
	uint32_t i;

	for (i = at; i + 1 < a->n; i++)
		entry_store(&a->e[i], &a->e[i + 1]);
	__atomic_store_n(&a->n, a->n - 1, __ATOMIC_RELEASE);
	max_end_update(a, at);
}

/* Makes room for @n entries. */
static int
grow(struct bb_mem_table *t, uint32_t n)
{
	struct bb_mem_array *old = t->arr, *a;
	uint32_t cap = old != NULL ? old->cap : FIRST_CAP;

	if (old != NULL && n <= old->cap)
		return 0;
	while (cap < n)
		cap *= 2;
	a = bb_alloc(t->pd->dev, "the table of addresses", sizeof(*a) + cap * sizeof(a->e[0]));
	if (a == NULL)
		return -ENOMEM;
	a->cap = cap;
	a->older = old;
	if (old != NULL) {
		a->n = old->n;
		memcpy(a->e, old->e, old->n * sizeof(a->e[0]));
	}
	write_begin(t);
	__atomic_store_n(&t->arr, a, __ATOMIC_RELEASE);
	write_end(t);
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
	if (grow(t, 1) != 0) {
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
	while (t->arr != NULL) {
		struct bb_mem_array *a = t->arr;

		t->arr = a->older;
		free(a);
	}
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int
bb_mem_table_insert(struct bb_mem_table *t, struct bb_mem_reg *reg)
{
	struct bb_mem_entry e = {.start = reg->start,
				 .end = reg->end,
				 .lkey = reg->drv_mr->lkey,
				 .writable = reg->writable,
				 .reg = reg};

	/*
	 * Reserves one more entry than needed, so that bb_mem_table_cut() can split an entry even
	 * if there is no memory.
	 */
	if (grow(t, t->arr->n + 2) != 0)
		return -ENOMEM;
	write_begin(t);
	entry_add(t->arr, &e);
	write_end(t);
	return 0;
}

void
bb_mem_table_remove(struct bb_mem_table *t, const struct bb_mem_reg *reg)
{
	struct bb_mem_array *a = t->arr;
	uint32_t i = 0;

	write_begin(t);
	while (i < a->n) {
		if (a->e[i].reg == reg)
			entry_del(a, i);
		else
			i++;
	}
	write_end(t);
}

void
bb_mem_table_clear(struct bb_mem_table *t)
{
	write_begin(t);
	__atomic_store_n(&t->arr->n, 0, __ATOMIC_RELEASE);
	write_end(t);
}

/* Cuts [start, end) out of entry @i, which overlaps it. Returns true if entry @i was removed. */
static bool
entry_cut(struct bb_mem_array *a, uint32_t i, uint64_t start, uint64_t end)
{
	struct bb_mem_entry head = a->e[i], tail = a->e[i];

	head.end = start;
	tail.start = end;
	entry_del(a, i);
	if (head.end > head.start)
		entry_add(a, &head);
	if (tail.end > tail.start) {
		if (a->n < a->cap)
			entry_add(a, &tail);
		else
			BB_LOG(ERR,
			       "no memory to store the key of the registered range %p to %p: "
			       "lookups of its addresses fail",
			       (void *)(uintptr_t)tail.start, (void *)(uintptr_t)tail.end);
	}
	return head.end <= head.start;
}

uint64_t
bb_mem_table_cut(struct bb_mem_table *t, uint64_t start, uint64_t end)
{
	struct bb_mem_array *a;
	uint64_t bytes = 0;
	uint32_t i = 0;

	/* Heap entries do not overlap, so at most one entry is split into two. */
	(void)grow(t, t->arr->n + 1);
	a = t->arr;
	write_begin(t);
	while (i < a->n && a->e[i].start < end) {
		struct bb_mem_entry e = a->e[i];
		uint64_t from, to;

		if (e.reg->kind != BB_MEM_HEAP || e.end <= start) {
			i++;
			continue;
		}
		from = e.start > start ? e.start : start;
		to = e.end < end ? e.end : end;
		if (!entry_cut(a, i, from, to))
			i++;
		e.reg->live -= to - from;
		bytes += to - from;
		if (e.reg->live == 0) {
			TAILQ_REMOVE(&t->heap, e.reg, link);
			TAILQ_INSERT_TAIL(&t->retired, e.reg, link);
			t->stats.heap--;
			t->stats.retired++;
			t->stats.bytes -= e.reg->end - e.reg->start;
		}
	}
	write_end(t);
	return bytes;
}

bool
bb_mem_table_gap(const struct bb_mem_table *t, uint64_t *start, uint64_t end, uint64_t *gap_end)
{
	const struct bb_mem_array *a = t->arr;
	uint32_t i;

	*gap_end = end;
	for (i = 0; i < a->n && a->e[i].start < end; i++) {
		const struct bb_mem_entry *e = &a->e[i];

		if (e->reg->kind != BB_MEM_HEAP || e->end <= *start)
			continue;
		if (e->start > *start) {
			*gap_end = e->start;
			break;
		}
		*start = e->end;
	}
	return *start < end;
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
		const struct bb_mem_array *a;
		uint32_t i, n;

		while ((seq = __atomic_load_n(&t->seq, __ATOMIC_ACQUIRE)) & 1)
			rte_pause();
		found = false;
		a = __atomic_load_n(&t->arr, __ATOMIC_ACQUIRE);
		n = __atomic_load_n(&a->n, __ATOMIC_ACQUIRE);
		for (i = upper_bound(a, n, addr); i > 0; i--) {
			const struct bb_mem_entry *e = &a->e[i - 1];
			uint64_t end = __atomic_load_n(&e->end, __ATOMIC_ACQUIRE);

			if (__atomic_load_n(&e->max_end, __ATOMIC_ACQUIRE) <= addr)
				break;
			if (end <= addr || len > end - addr)
				continue;
			*writable = __atomic_load_n(&e->writable, __ATOMIC_ACQUIRE);
			if (found && !*writable)
				continue;
			range->start = __atomic_load_n(&e->start, __ATOMIC_ACQUIRE);
			range->len = end - range->start;
			range->lkey = __atomic_load_n(&e->lkey, __ATOMIC_ACQUIRE);
			found = true;
			if (*writable)
				break;
		}
	} while (__atomic_load_n(&t->seq, __ATOMIC_RELAXED) != seq);
	*seq_out = seq;
	return found;
}

void
bb_lkey_cache_init(struct bb_lkey_cache *cache, struct bb_pd *pd)
{
	memset(cache, 0, sizeof(*cache));
	cache->pd = pd;
	cache->seq = &pd->mem->seq;
	cache->seq_filled = 1; /* an odd number is never that of a consistent table, so the first
				* lookup misses */
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
