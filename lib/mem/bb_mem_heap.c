/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A PD that follows the EAL heap, that is, has all its memory registered. One walk over the heap
 * registers the existing memory; after that EAL's memory events report each change.
 *
 * With --no-huge and --legacy-mem EAL accepts no event callbacks. EAL's own heap does not change in
 * these modes, so the walk is enough. Heaps of external memory can change in these modes too. The
 * walk does not register external memory, because its key would stay valid after the memory was
 * unmapped. So the application must call bb_mem_add_heap() for external memory.
 *
 * EAL holds its memory lock during a callback. Any thread that calls rte_malloc() or rte_free() may
 * run a callback, and that thread or another may hold dev->lock. So a callback takes t->lock only,
 * allocates from libc, and deregisters nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <rte_errno.h>
#include <rte_memory.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"

/* Registers a range that no heap entry covers. Call with t->lock held. */
static int
heap_add(struct bb_mem_table *t, uint64_t start, uint64_t len, bool named)
{
	struct bb_mem_reg *reg;
	int ret;

	ret = bb_mem_reg_auto(t->pd, BB_MEM_HEAP, start, len, &reg);
	if (ret == 0) {
		reg->named = named;
		t->stats.bytes += len;
		ret = bb_mem_table_insert(t, reg);
		if (ret == 0) {
			TAILQ_INSERT_TAIL(&t->heap, reg, link);
			t->stats.heap++;
		} else {
			/*
			 * mr_dereg may wait, so it must not be called here. The next control-path
			 * call on the PD deregisters the range.
			 */
			TAILQ_INSERT_TAIL(&t->retired, reg, link);
			t->stats.retired++;
			t->stats.bytes -= len;
		}
	}
	if (ret != 0)
		BB_LOG(ERR,
		       "%s: %" PRIu64 " bytes of heap at 0x%" PRIx64
		       " are not registered (error %d): "
		       "lookups of these addresses find no lkey",
		       t->pd->dev->name, len, start, ret);
	return ret;
}

/*
 * Registers the parts of [start, end) that are not registered yet. Some parts may be registered
 * already, because the walk over the heaps and a memory event may both report them. Call with
 * t->lock held.
 */
static int
heap_add_gaps(struct bb_mem_table *t, uint64_t start, uint64_t end, bool named)
{
	uint64_t gap_end;
	int ret = 0;

	while (ret == 0 && bb_mem_table_gap(t, &start, end, &gap_end)) {
		ret = heap_add(t, start, gap_end - start, named);
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
		(void)heap_add_gaps(t, start, start + len, false);
	else if (event == RTE_MEM_EVENT_FREE)
		(void)bb_mem_table_cut(t, start, start + len);
	pthread_mutex_unlock(&t->lock);
}

static void
event_cb(enum rte_mem_event event, const void *addr, size_t len, void *arg)
{
	bb_mem_heap_event(arg, event, addr, len);
}

struct walk {
	struct bb_mem_table *t;
	int err; /* error of the callback; rte_memseg_contig_walk() reports only that there was
		  * an error */
};

/* Rejects external memory whose removal EAL would not report. Call with t->lock held. */
static int
external_check(const struct bb_mem_table *t, uint64_t start, uint64_t end)
{
	uint64_t gap_end;

	/*
	 * External memory that bb_mem_add_heap() has registered is accepted, because the
	 * application reports its removal by bb_mem_del_heap().
	 */
	if (!bb_mem_table_gap(t, &start, end, &gap_end))
		return 0;
	BB_LOG(ERR,
	       "%s: the heap is not registered: EAL reports no memory events with --no-huge or "
	       "--legacy-mem, and a heap has %" PRIu64 " bytes of external memory at 0x%" PRIx64 ""
	       ": call bb_mem_add_heap() for external memory first",
	       t->pd->dev->name, gap_end - start, start);
	return -ENOTSUP;
}

/*
 * Callback of the walk over the heaps: registers one range of memory. If EAL reports no events,
 * only checks external memory (external_check()). Skips memory of rte_extmem_register(), which
 * belongs to the application and not to a heap.
 */
static int
walk_cb(const struct rte_memseg_list *msl, const struct rte_memseg *ms, size_t len, void *arg)
{
	struct walk *w = arg;
	uint64_t start = ms->addr_64;

	if (msl->external && !msl->heap)
		return 0;
	pthread_mutex_lock(&w->t->lock);
	if (msl->external && !w->t->events)
		w->err = external_check(w->t, start, start + len);
	else
		w->err = heap_add_gaps(w->t, start, start + len, false);
	pthread_mutex_unlock(&w->t->lock);
	return w->err;
}

/*
 * Registers the callback for memory events before it walks over the heaps. So memory that EAL maps
 * meanwhile is reported by an event, by the walk, or by both.
 */
static int
follow(struct bb_mem_table *t)
{
	struct walk w = {.t = t};

	/* The name is unique per PD, because EAL identifies a callback by its name and argument. */
	snprintf(t->callback, sizeof(t->callback), "bluebell-pd-%p", (void *)t);
	if (rte_mem_event_callback_register(t->callback, event_cb, t) == 0) {
		t->events = true;
	} else if (rte_errno != ENOTSUP) {
		BB_LOG(ERR,
		       "%s: the heap is not registered: EAL accepts no memory event callback "
		       "(error %d)",
		       t->pd->dev->name, rte_errno);
		return -rte_errno;
	}
	(void)rte_memseg_contig_walk(walk_cb, &w);
	return w.err;
}

void
bb_mem_heap_unfollow(struct bb_mem_table *t)
{
	/*
	 * rte_mem_event_callback_unregister() returns only when no callback is running. A callback
	 * takes t->lock, so t->lock must not be held here.
	 */
	if (t->events)
		rte_mem_event_callback_unregister(t->callback, t);
	t->events = false;
	t->following = false;
}

/* Retires all heap registrations except those of bb_mem_add_heap(). */
static void
heap_retire_followed(struct bb_mem_table *t)
{
	struct bb_mem_reg *reg, *next;

	pthread_mutex_lock(&t->lock);
	for (reg = TAILQ_FIRST(&t->heap); reg != NULL; reg = next) {
		next = TAILQ_NEXT(reg, link);
		if (!reg->named)
			(void)bb_mem_table_cut(t, reg->start, reg->end);
	}
	pthread_mutex_unlock(&t->lock);
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
		heap_retire_followed(t);
		(void)bb_mem_reap_locked(pd);
		goto out;
	}
	t->following = true;
	BB_LOG(INFO, "%s: heap registered, %u ranges; %s", pd->dev->name, t->stats.heap,
	       t->events ? "changes of the heap are registered automatically"
			 : "EAL has no memory events, so external memory added later is not "
			   "registered");
out:
	pthread_mutex_unlock(&pd->dev->lock);
	return ret;
}

/* Checks the range of a call of bb_mem_add_heap() or bb_mem_del_heap(). */
static int
range_check(const struct bb_pd *pd, const char *call, const void *addr, size_t len)
{
	if (len != 0 && len - 1 <= UINTPTR_MAX - (uintptr_t)addr)
		return bb_process_owns(pd->dev);
	BB_LOG(ERR,
	       "%s: %s: invalid range of %zu bytes at %p: empty, or past the end of the "
	       "address space",
	       pd->dev->name, call, len, addr);
	return -EINVAL;
}

int
bb_mem_add_heap(struct bb_pd *pd, const void *addr, size_t len)
{
	uint64_t start = (uintptr_t)addr;
	int ret;

	if (pd == NULL || addr == NULL)
		return -EINVAL;
	ret = range_check(pd, "bb_mem_add_heap()", addr, len);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	pthread_mutex_lock(&pd->mem->lock);
	ret = heap_add_gaps(pd->mem, start, start + len, true);
	pthread_mutex_unlock(&pd->mem->lock);
	pthread_mutex_unlock(&pd->dev->lock);
	return ret;
}

int
bb_mem_del_heap(struct bb_pd *pd, const void *addr, size_t len)
{
	uint64_t start = (uintptr_t)addr, cut;
	int ret;

	if (pd == NULL || addr == NULL)
		return -EINVAL;
	ret = range_check(pd, "bb_mem_del_heap()", addr, len);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pd->dev->lock);
	pthread_mutex_lock(&pd->mem->lock);
	cut = bb_mem_table_cut(pd->mem, start, start + len);
	pthread_mutex_unlock(&pd->mem->lock);
	ret = bb_mem_reap_locked(pd);
	pthread_mutex_unlock(&pd->dev->lock);
	if (ret < 0)
		return ret;
	return cut == 0 ? -ENOENT : 0;
}
