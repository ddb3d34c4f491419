/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Protection domains, memory registration, and address to lkey.
 *
 * Control path rules are those of bb_dev.h. Keys: an lkey names memory for this
 * side's WQEs, an rkey lets a peer reach it. rkeys come from bb_mr_reg() only.
 */
#ifndef BB_MEM_H
#define BB_MEM_H

#include "bb_dev.h"

struct rte_mempool;

#ifdef __cplusplus
extern "C" {
#endif

struct bb_pd;

/** Allocate a protection domain (man ibv_alloc_pd). */
int bb_pd_alloc(struct bb_dev *dev, struct bb_pd **pd);

/** Free it. -EBUSY while MRs or QPs live. Automatic registrations go with it. */
int bb_pd_free(struct bb_pd *pd);

/** Access rights (man ibv_reg_mr: IBV_ACCESS_*; the same bits). Local read is always on. */
enum bb_access {
	BB_ACCESS_LOCAL_WRITE = 1 << 0,
	BB_ACCESS_REMOTE_WRITE = 1 << 1, /**< needs LOCAL_WRITE */
	BB_ACCESS_REMOTE_READ = 1 << 2,
	BB_ACCESS_REMOTE_ATOMIC = 1 << 3, /**< needs LOCAL_WRITE */
};

/** A memory region; read-only for the application. */
struct bb_mr {
	struct bb_pd *pd;
	void *addr;
	size_t len;
	uint32_t lkey;
	uint32_t rkey; /**< 0 unless a REMOTE right was asked for */
	uint32_t access;
};

/**
 * Register @p len bytes at @p addr (man ibv_reg_mr). The memory stays the
 * caller's and must not be unmapped before bb_mr_dereg().
 * @return 0; -EINVAL empty, overflowing, unknown right, or a REMOTE right that
 *   needs LOCAL_WRITE; -EFAULT not mapped, or not writable as asked; -ENOMEM.
 */
int bb_mr_reg(struct bb_pd *pd, void *addr, size_t len, uint32_t access, struct bb_mr **mr);

/**
 * Deregister. Returns after the last access through the keys has ended; a WQE
 * that names them later fails. Must not be called from an EAL memory callback.
 */
int bb_mr_dereg(struct bb_mr *mr);

/**
 * Register every memory chunk of a mempool (mbuf pools too) with LOCAL_WRITE,
 * for lkeys only; neighbouring chunks share a registration. Chunks added to the
 * pool later are not seen.
 * @return 0; -EEXIST it is registered; -EINVAL it has no memory yet; what the
 *   device says, nothing is registered then.
 */
int bb_mem_add_mempool(struct bb_pd *pd, struct rte_mempool *mp);

/** Undo it. The pool must outlive the registration. -ENOENT if it was not. */
int bb_mem_del_mempool(struct bb_pd *pd, struct rte_mempool *mp);

/**
 * Register the whole EAL heap with LOCAL_WRITE, for lkeys only, and follow its
 * memory events: what EAL maps later is registered before it is handed out,
 * what it unmaps gets no key any more and is deregistered by the next control
 * call on the PD or bb_mem_reap(). Under --no-huge and --legacy-mem there are
 * no events: the heap is registered once by a walk. Heaps of external memory
 * (rte_malloc_heap_memory_add()) are followed too; memory that is only known to
 * rte_extmem_register() is not heap: use bb_mr_reg() for it.
 * @return 0; -EALREADY; what the device says, nothing is registered then.
 */
int bb_mem_follow_heap(struct bb_pd *pd);

/**
 * Deregister what the heap gave back since the last call.
 * @return how many registrations went; a negative errno when the device keeps one,
 *   which is tried again by the next call.
 */
int bb_mem_reap(struct bb_pd *pd);

/** Registrations of a PD, explicit and automatic, and how they came about. */
struct bb_mem_stats {
	uint32_t mrs;     /**< explicit, bb_mr_reg() */
	uint32_t heap;    /**< automatic, heap */
	uint32_t mempool; /**< automatic, mempools */
	uint32_t retired; /**< waiting for bb_mem_reap() */
	uint64_t bytes;   /**< of all live ones */
};

/** Read them. */
int bb_mem_stats(struct bb_pd *pd, struct bb_mem_stats *stats);

/** lkey that bb_mem_lkey() returns when no registration holds the range. */
#define BB_LKEY_NONE UINT32_MAX

/** Entries of a lookup cache. */
#define BB_LKEY_CACHE_ENTRIES 4

/** One registered range, as a cache keeps it. */
struct bb_lkey_range {
	uint64_t start, len; /**< bytes; empty: len 0 */
	uint32_t lkey;
	uint32_t pad;
};

/**
 * Address → lkey cache. One per thread (or queue) and PD, set up by
 * bb_lkey_cache_init(); lives in the caller's memory, not longer than the PD.
 */
struct bb_lkey_cache {
	const uint32_t *seq; /**< changes of the PD's table */
	uint32_t seen;       /**< *seq when the entries were filled */
	uint32_t last;       /**< entry of the last hit: tried first */
	struct bb_lkey_range range[BB_LKEY_CACHE_ENTRIES];
	/* Not touched by a hit. */
	uint32_t next; /**< entry to replace next */
	struct bb_pd *pd;
	uint64_t misses; /**< statistics: lookups that searched the table */
};

/** Set up a cache for @p pd, empty. */
void bb_lkey_cache_init(struct bb_lkey_cache *cache, struct bb_pd *pd);

/** Slow half of bb_mem_lkey(): searches the PD's table. */
uint32_t bb_mem_lkey_miss(struct bb_lkey_cache *cache, uint64_t addr, uint64_t len);

/** Does a range hold all of [@p addr, @p addr + @p len)? Its first byte at least. */
static inline bool
bb_lkey_range_holds(const struct bb_lkey_range *r, uint64_t addr, uint64_t len)
{
	uint64_t off = addr - r->start;

	return (off < r->len) & (len <= r->len - off);
}

/**
 * The lkey of a registration that holds all of [@p addr, @p addr + @p len). One with
 * LOCAL_WRITE goes before one without.
 *
 * No lock. A hit costs about 1 ns for the range of the last lookup, 4 ns for another
 * one in the cache; a miss searches a sorted table, 10 to 20 ns. Ranges without
 * LOCAL_WRITE are not cached. The owner of the cache calls it, and keeps the memory
 * allocated while it uses the key.
 * @return the key; BB_LKEY_NONE when no single registration holds the range
 *   (not registered, or it crosses two: split it).
 */
static inline uint32_t
bb_mem_lkey(struct bb_lkey_cache *cache, const void *ptr, uint64_t len)
{
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	const struct bb_lkey_range *r = &cache->range[cache->last];
	uint32_t i, hit = 0;

	if (__builtin_expect(__atomic_load_n(cache->seq, __ATOMIC_ACQUIRE) != cache->seen, 0))
		return bb_mem_lkey_miss(cache, addr, len);
	if (bb_lkey_range_holds(r, addr, len))
		return r->lkey;
	/* Without a branch per entry: which one it is cannot be predicted. */
	for (i = 0; i < BB_LKEY_CACHE_ENTRIES; i++)
		hit = addr - cache->range[i].start < cache->range[i].len ? i : hit;
	r = &cache->range[hit];
	if (__builtin_expect(!bb_lkey_range_holds(r, addr, len), 0))
		return bb_mem_lkey_miss(cache, addr, len);
	cache->last = hit;
	return r->lkey;
}

#ifdef __cplusplus
}
#endif

#endif
