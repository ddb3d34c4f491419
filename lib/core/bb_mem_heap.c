/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A PD that follows the EAL heap: one walk, then EAL's memory events.
 *
 * Inside a callback EAL holds its memory lock, the thread may be any that called
 * rte_malloc() or rte_free(), and dev->lock may be its own or another's: only
 * t->lock is taken, memory comes from libc, and nothing is deregistered.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <rte_errno.h>
#include <rte_log.h>
#include <rte_memory.h>

#include "bb_core.h"
#include "bb_mem_table.h"

/* Register one range that no heap entry holds. t->lock held. */
static int
heap_add(struct bb_mem_table *t, uint64_t start, uint64_t len)
{
	struct bb_mem_reg *reg;
	int ret;

	ret = bb_mem_reg_auto(t->pd, BB_MEM_HEAP, start, len, &reg);
	if (ret == 0) {
		t->stats.bytes += len;
		ret = bb_mem_table_insert(t, reg);
		if (ret == 0) {
			TAILQ_INSERT_TAIL(&t->heap, reg, link);
			t->stats.heap++;
		} else {
			/* No mr_dereg here: the next control call does it. */
			TAILQ_INSERT_TAIL(&t->retired, reg, link);
			t->stats.retired++;
			t->stats.bytes -= len;
		}
	}
	if (ret != 0)
		BB_LOG(ERR,
		       "%s: %" PRIu64 " bytes of heap at 0x%" PRIx64 " are not registered (%d): "
		       "lookups there find no lkey",
		       t->pd->dev->name, len, start, ret);
	return ret;
}

/* Register what of [start, end) is not yet: walk and events may tell of it twice. */
static int
heap_add_gaps(struct bb_mem_table *t, uint64_t start, uint64_t end)
{
	uint64_t gap_end;
	int ret = 0;

	while (ret == 0 && bb_mem_table_gap(t, &start, end, &gap_end)) {
		ret = heap_add(t, start, gap_end - start);
		start = gap_end;
	}
	return ret;
}

void
bb_mem_heap_event(struct bb_mem_table *t, enum rte_mem_event event, const void *addr, size_t len)
{
	uint64_t start = (uintptr_t)addr;

	pthread_mutex_lock(&t->lock);
	if (event == RTE_MEM_EVENT_ALLOC)
		(void)heap_add_gaps(t, start, start + len);
	else if (event == RTE_MEM_EVENT_FREE)
		bb_mem_table_cut(t, start, start + len);
	pthread_mutex_unlock(&t->lock);
}

static void
event_cb(enum rte_mem_event event, const void *addr, size_t len, void *arg)
{
	bb_mem_heap_event(arg, event, addr, len);
}

struct walk {
	struct bb_mem_table *t;
	int err; /* rte_memseg_contig_walk() itself tells only that there was one */
};

/* Memory of rte_extmem_register() is the application's, not a heap's. */
static int
walk_cb(const struct rte_memseg_list *msl, const struct rte_memseg *ms, size_t len, void *arg)
{
	struct walk *w = arg;

	if (msl->external && !msl->heap)
		return 0;
	pthread_mutex_lock(&w->t->lock);
	w->err = heap_add_gaps(w->t, ms->addr_64, ms->addr_64 + len);
	pthread_mutex_unlock(&w->t->lock);
	return w->err;
}

/* Events first, then the walk: what EAL maps in between is told by one or both. */
static int
follow(struct bb_mem_table *t)
{
	struct walk w = {.t = t};

	/* Unique, as EAL finds callbacks by name and argument. */
	snprintf(t->callback, sizeof(t->callback), "bluebell-pd-%p", (void *)t);
	if (rte_mem_event_callback_register(t->callback, event_cb, t) == 0) {
		t->events = true;
	} else if (rte_errno != ENOTSUP) {
		BB_LOG(ERR, "%s: no memory event callback (%d): the heap is not followed",
		       t->pd->dev->name, rte_errno);
		return -rte_errno;
	}
	(void)rte_memseg_contig_walk(walk_cb, &w);
	return w.err;
}

void
bb_mem_heap_unfollow(struct bb_mem_table *t)
{
	/* Returns when no callback runs any more; t->lock must not be held. */
	if (t->events)
		rte_mem_event_callback_unregister(t->callback, t);
	t->events = false;
	t->following = false;
}

int
bb_mem_follow_heap(struct bb_pd *pd)
{
	struct bb_mem_table *t;
	int ret;

	if (pd == NULL)
		return -EINVAL;
	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	t = pd->mem;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	if (t->following) {
		ret = -EALREADY;
		goto out;
	}
	ret = follow(t);
	if (ret != 0) {
		bb_mem_heap_unfollow(t);
		pthread_mutex_lock(&t->lock);
		bb_mem_table_cut(t, 0, UINT64_MAX);
		pthread_mutex_unlock(&t->lock);
		(void)bb_mem_reap_locked(pd);
		goto out;
	}
	t->following = true;
	BB_LOG(INFO, "%s: heap registered, %u ranges; %s", pd->dev->name, t->stats.heap,
	       t->events ? "its events are followed"
			 : "EAL has no memory events: it will not grow");
out:
	pthread_mutex_unlock(&pd->dev->lock);
	return ret;
}
