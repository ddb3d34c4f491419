/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Registrations of a PD and the sorted address table over them.
 *
 * Readers are fast-path threads that missed in their cache: no lock, a sequence
 * count. Every field a reader loads is an atomic; a reader that raced with a
 * change sees mixed but mapped values and starts again. Arrays that were outgrown
 * are kept until the PD goes, so a reader never touches freed memory; they double,
 * so all of them together are no larger than the last.
 *
 * Writers hold bb_mem_table.lock. It is taken inside EAL's memory event callbacks,
 * under EAL's own memory lock: whoever holds it calls nothing that takes EAL's
 * (no rte_malloc, no walk), and not mr_dereg, which may wait.
 * Lock order: dev->lock, EAL's memory lock, bb_mem_table.lock.
 */
#ifndef BB_MEM_TABLE_H
#define BB_MEM_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_memory.h>

#include "bb_driver.h"

struct rte_mempool;

enum bb_mem_kind {
	BB_MEM_EXPLICIT, /* bb_mr_reg() and its like */
	BB_MEM_HEAP,     /* these never overlap each other */
	BB_MEM_POOL,
};

/* One registration of a driver. */
struct bb_mem_reg {
	TAILQ_ENTRY(bb_mem_reg) link;
	enum bb_mem_kind kind;
	bool writable;
	bool named;  /* heap: by bb_mem_add_heap() */
	bool listed; /* belongs into the table: its lkey names memory by its addresses */
	struct bb_drv_mr *drv_mr;
	uint64_t start, end;
	uint64_t live;            /* bytes not freed yet; heap only shrinks it */
	struct rte_mempool *pool; /* of BB_MEM_POOL */
};
TAILQ_HEAD(bb_mem_regs, bb_mem_reg);

/* A range of the table. Several entries may name one registration: holes. */
struct bb_mem_entry {
	uint64_t start, end;
	uint64_t max_end; /* largest end of this entry and all before it */
	uint32_t lkey;
	uint32_t writable;
	struct bb_mem_reg *reg; /* writers only */
};

struct bb_mem_array {
	struct bb_mem_array *older;
	uint32_t cap;
	uint32_t n;
	struct bb_mem_entry e[]; /* sorted by start */
};

struct bb_mem_table {
	/* Read by every lookup: a line of its own. */
	uint32_t seq; /* odd while a writer is at it */
	struct bb_mem_array *arr;

	pthread_mutex_t lock __attribute__((aligned(64)));
	struct bb_pd *pd;
	struct bb_mem_regs heap;
	struct bb_mem_regs pools;
	struct bb_mem_regs retired; /* no entry left, not deregistered yet */
	struct bb_mem_stats stats;
	bool following; /* the heap */
	bool events;    /* and its events: a callback is registered */
	char callback[RTE_MEM_EVENT_CALLBACK_NAME_LEN];
};

int bb_mem_table_create(struct bb_pd *pd, struct bb_mem_table **table);
/* No reader is left; registrations are gone. */
void bb_mem_table_free(struct bb_mem_table *t);

/* The functions from here on are called with t->lock held. */

/* Add [start, end) of @reg. -ENOMEM. */
int bb_mem_table_insert(struct bb_mem_table *t, struct bb_mem_reg *reg);
/* Remove every entry of @reg. */
void bb_mem_table_remove(struct bb_mem_table *t, const struct bb_mem_reg *reg);
/* Remove every entry. */
void bb_mem_table_clear(struct bb_mem_table *t);
/*
 * Cuts [start, end) out of heap entries. Registrations of which nothing is left
 * move from t->heap to t->retired. Returns the bytes that had an entry.
 */
uint64_t bb_mem_table_cut(struct bb_mem_table *t, uint64_t start, uint64_t end);
/*
 * The first part of [start, end) that no heap entry holds, as [*start, *gap_end).
 * False when there is none.
 */
bool bb_mem_table_gap(const struct bb_mem_table *t, uint64_t *start, uint64_t end,
		      uint64_t *gap_end);

/* ---- bb_mem.c */

/* Register with the driver; not in the table yet. Allocates from libc only. */
int bb_mem_reg_create(struct bb_pd *pd, enum bb_mem_kind kind, const struct bb_drv_mr_attr *attr,
		      struct bb_mem_reg **reg);
/* The same with what automatic registrations have: LOCAL_WRITE. */
int bb_mem_reg_auto(struct bb_pd *pd, enum bb_mem_kind kind, uint64_t start, uint64_t len,
		    struct bb_mem_reg **reg);
/* What @reg covers; it is in no table. */
void bb_mem_reg_range(struct bb_mem_reg *reg, uint64_t start, uint64_t len, uint64_t iova,
		      uint32_t access);
/* Deregister and free; on an error nothing has changed. Without t->lock. */
int bb_mem_reg_destroy(struct bb_pd *pd, struct bb_mem_reg *reg);
/*
 * bb_mem_reap() with dev->lock held: every control call on a PD starts with it. What
 * cannot be deregistered stays retired; then the error is returned.
 */
int bb_mem_reap_locked(struct bb_pd *pd);

/* ---- bb_mem_heap.c */

/* One EAL memory event. Called by EAL; by tests too, where no events come. */
void bb_mem_heap_event(struct bb_mem_table *t, enum rte_mem_event event, const void *addr,
		       size_t len);
/* Stop following; registrations stay. dev->lock held. */
void bb_mem_heap_unfollow(struct bb_mem_table *t);

#endif
