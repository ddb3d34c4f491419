/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Registrations of a PD and the sorted address table over them.
 *
 * Readers are data-path threads whose lookup cache had no entry for the address. Readers take no
 * lock and use a sequence count. Every field that a reader loads is atomic. A reader that races
 * with a change may see a mix of old and new values. It detects the change by the sequence count
 * before it follows the next link, and starts again. Entries stay allocated until the PD is freed,
 * so a reader never touches freed memory.
 *
 * Writers hold bb_mem_table.lock. EAL's memory event callbacks take it under EAL's own memory lock.
 * So a writer must not call a function that takes EAL's lock (rte_malloc, a memory walk). It must
 * not call mr_dereg either, which may wait. Lock order: dev->lock, EAL's memory lock,
 * bb_mem_table.lock.
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
#include "bb_mem_tree.h"

struct rte_mempool;

enum bb_mem_kind {
	BB_MEM_EXPLICIT, /* memory that bb_mr_reg() or a similar call registers */
	BB_MEM_HEAP,     /* memory of an EAL heap; entries of this kind never overlap */
	BB_MEM_POOL,
};

/* A range of memory that the driver has registered with the device. */
struct bb_mem_reg {
	TAILQ_ENTRY(bb_mem_reg) link;
	enum bb_mem_kind kind;
	bool writable;
	bool named;  /* BB_MEM_HEAP only: registered by bb_mem_add_heap() */
	bool listed; /* true if lookups may find the registration, because WQEs use the process's
		      * addresses with its lkey */
	struct bb_drv_mr *drv_mr;
	uint64_t start, end;
	uint64_t live;            /* bytes that EAL has not unmapped; constant unless the
				   * registration is of type BB_MEM_HEAP */
	struct rte_mempool *pool; /* BB_MEM_POOL only: the mempool */
};
TAILQ_HEAD(bb_mem_regs, bb_mem_reg);

/* Memory of entries. */
struct bb_mem_block {
	struct bb_mem_block *next;
	uint32_t n;
	struct bb_mem_entry e[] __attribute__((aligned(64)));
};

struct bb_mem_table {
	/* Every lookup reads these two fields. No other field shares their cache line. */
	uint32_t seq; /* odd while a writer changes the table */
	struct bb_mem_entry *root;

	pthread_mutex_t lock __attribute__((aligned(64)));
	struct bb_pd *pd;
	struct bb_mem_block *blocks;
	struct bb_mem_entry *free; /* free entries, linked through their field left */
	uint32_t n_free;
	struct bb_mem_regs heap;
	struct bb_mem_regs pools;
	struct bb_mem_regs retired; /* registrations that have no entry in the table and are not
				     * deregistered yet */
	struct bb_mem_stats stats;
	bool following; /* bb_mem_follow_heap() was called: the PD follows EAL's heap */
	bool events;    /* true if a callback for heap events is registered */
	char callback[RTE_MEM_EVENT_CALLBACK_NAME_LEN];
};

int bb_mem_table_create(struct bb_pd *pd, struct bb_mem_table **table);
/* Frees the table. The caller has ended all readers and deregistered all registrations. */
void bb_mem_table_free(struct bb_mem_table *t);

/* Call the functions below with t->lock held. */

/* Adds the range of @reg. Returns 0 or -ENOMEM. */
int bb_mem_table_insert(struct bb_mem_table *t, struct bb_mem_reg *reg);
/*
 * Removes the entry of @reg, which is not a heap registration. Does nothing if @reg has no entry.
 */
void bb_mem_table_remove(struct bb_mem_table *t, const struct bb_mem_reg *reg);
/* Removes every entry. */
void bb_mem_table_clear(struct bb_mem_table *t);
/*
 * Cuts [start, end) out of heap entries. Registrations without a remaining entry move from
 * t->heap to t->retired. Returns the number of bytes that had an entry.
 */
uint64_t bb_mem_table_cut(struct bb_mem_table *t, uint64_t start, uint64_t end);
/*
 * Finds the first part of [start, end) that no heap entry holds, as [*start, *gap_end). Returns
 * false if there is none.
 */
bool bb_mem_table_gap(const struct bb_mem_table *t, uint64_t *start, uint64_t end,
		      uint64_t *gap_end);

/* ---- functions of bb_mem.c: registrations */

/* Registers memory with the driver but does not add it to the table. Allocates only from libc. */
int bb_mem_reg_create(struct bb_pd *pd, enum bb_mem_kind kind, const struct bb_drv_mr_attr *attr,
		      struct bb_mem_reg **reg);
/* Does the same as bb_mem_reg_create(), with LOCAL_WRITE, the right of automatic registrations. */
int bb_mem_reg_auto(struct bb_pd *pd, enum bb_mem_kind kind, uint64_t start, uint64_t len,
		    struct bb_mem_reg **reg);
/* Sets the range of @reg. Call this function only while no table has an entry of @reg. */
void bb_mem_reg_range(struct bb_mem_reg *reg, uint64_t start, uint64_t len, uint64_t iova,
		      uint32_t access);
/* Deregisters and frees @reg. On an error @reg is unchanged. Call without t->lock. */
int bb_mem_reg_destroy(struct bb_pd *pd, struct bb_mem_reg *reg);
/*
 * Executes bb_mem_reap() with dev->lock held; every control-path call on a PD starts with it. If
 * the device rejects a deregistration, the registration stays in the retired list and the device's
 * error is returned.
 */
int bb_mem_reap_locked(struct bb_pd *pd);

/* ---- functions of bb_mem_heap.c: following the EAL heap */

/*
 * Handles one EAL memory event. EAL calls this function; tests also call it in EAL modes without
 * events.
 */
void bb_mem_heap_event(struct bb_mem_table *t, enum rte_mem_event event, const void *addr,
		       size_t len);
/* Stops following the heap without deregistering any memory. Call with dev->lock held. */
void bb_mem_heap_unfollow(struct bb_mem_table *t);

#endif
