/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Deadlines of the slots: a binary heap of slot indexes, the earliest deadline first. */
#include "bb_ibcm_priv.h"

static uint64_t
deadline_at(const struct bb_ibcm *cm, uint32_t at)
{
	return cm->conns[cm->heap[at]].deadline;
}

static void
heap_set(struct bb_ibcm *cm, uint32_t at, uint32_t index)
{
	cm->heap[at] = index;
	cm->conns[index].heap_at = at;
}

static void
swap(struct bb_ibcm *cm, uint32_t a, uint32_t b)
{
	uint32_t index = cm->heap[a];

	heap_set(cm, a, cm->heap[b]);
	heap_set(cm, b, index);
}

/* Moves the slot at position @at of the heap up or down, to the position of its deadline. */
static void
sift(struct bb_ibcm *cm, uint32_t at)
{
	uint32_t child;

	for (; at > 0 && deadline_at(cm, at) < deadline_at(cm, (at - 1) / 2); at = (at - 1) / 2)
		swap(cm, at, (at - 1) / 2);
	for (;;) {
		child = 2 * at + 1;
		if (child + 1 < cm->heap_len && deadline_at(cm, child + 1) < deadline_at(cm, child))
			child++;
		if (child >= cm->heap_len || deadline_at(cm, at) <= deadline_at(cm, child))
			return;
		swap(cm, at, child);
		at = child;
	}
}

void
bb_ibcm_clock_set(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t deadline)
{
	c->deadline = deadline;
	if (c->heap_at == BB_IBCM_NONE)
		heap_set(cm, cm->heap_len++, c->index);
	sift(cm, c->heap_at);
}

void
bb_ibcm_clock_stop(struct bb_ibcm *cm, struct bb_ibcm_conn *c)
{
	uint32_t at = c->heap_at;

	if (at == BB_IBCM_NONE)
		return;
	c->heap_at = BB_IBCM_NONE;
	cm->heap_len--;
	if (at == cm->heap_len)
		return;
	heap_set(cm, at, cm->heap[cm->heap_len]);
	sift(cm, at);
}

struct bb_ibcm_conn *
bb_ibcm_clock_first(const struct bb_ibcm *cm)
{
	return cm->heap_len == 0 ? NULL : &cm->conns[cm->heap[0]];
}
