/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Protection domains, memory registration, and the lookup from address to lkey.
 *
 * The control-path rules of bb_dev.h apply. Local WQEs name memory by its lkey, peers by its rkey.
 * Only regions of bb_mr_reg() and its variants have rkeys.
 */
#ifndef BB_MEM_H
#define BB_MEM_H

#include "bb_dev.h"

struct rte_mempool;

#ifdef __cplusplus
extern "C" {
#endif

struct bb_pd;

/** Allocates a protection domain (man ibv_alloc_pd). */
int bb_pd_alloc(struct bb_dev *dev, struct bb_pd **pd);

/**
 * Frees a PD and its automatic registrations. Returns 0, or -EBUSY while the PD has MRs, indirect
 * keys, windows, QPs, SRQs or address handles, or while DEVX objects may use its number.
 */
int bb_pd_free(struct bb_pd *pd);

/** Access rights (man ibv_reg_mr: IBV_ACCESS_*; the same bits). Local reads are always allowed. */
enum bb_access {
	BB_ACCESS_LOCAL_WRITE = 1 << 0,
	BB_ACCESS_REMOTE_WRITE = 1 << 1, /**< needs LOCAL_WRITE */
	BB_ACCESS_REMOTE_READ = 1 << 2,
	BB_ACCESS_REMOTE_ATOMIC = 1 << 3, /**< needs LOCAL_WRITE */
	BB_ACCESS_MW_BIND = 1 << 4,       /**< allows binding memory windows */
	/** The region's first byte has address 0. The region must start on a page boundary. */
	BB_ACCESS_ZERO_BASED = 1 << 5,
	/**
	 * The kernel does not pin the region's pages, but looks them up at each access of a peer
	 * (@ref bb_dev_attr odp). Such a region has no lkey, because the kernel resolves no page
	 * faults of DEVX queues.
	 */
	BB_ACCESS_ON_DEMAND = 1 << 6,
	/** Hint that all pages are hugepages. It has an effect only with ON_DEMAND. */
	BB_ACCESS_HUGETLB = 1 << 7,
	/**
	 * Data written by peers may become visible in any order until the completion. The right has
	 * no effect without @ref bb_dev_attr relaxed_ordering. relaxed_ordering is also true if no
	 * call reports the capability, as in libibverbs. If such a device then rejects the right,
	 * the library registers the region without it.
	 */
	BB_ACCESS_RELAXED_ORDERING = 1 << 20,
};

/** Mask of the optional rights. A device ignores an optional right that it does not support. */
#define BB_ACCESS_OPTIONAL_RANGE 0x3ff00000u

/** A memory region; read-only for the application. */
struct bb_mr {
	struct bb_pd *pd;
	void *addr;
	size_t len;
	uint64_t iova; /**< address of the first byte, as WQEs and peers use it */
	uint32_t lkey; /**< key for local WQEs; BB_LKEY_NONE if local WQEs cannot use the region */
	uint32_t rkey; /**< key for peers; 0 if the region has no REMOTE right */
	uint32_t access; /**< rights in force, without the optional rights that the device does not
			  * support */
};

/**
 * Registers @p len bytes at @p addr (man ibv_reg_mr). The caller owns the memory and must not unmap
 * it before bb_mr_dereg(). Any memory of the process can be registered: EAL's, anonymous, a mapped
 * file, or external memory (rte_extmem_register()). The caller must not shorten a mapped file
 * meanwhile: on the software device, the next access to the lost part raises SIGBUS.
 *
 * With ON_DEMAND the memory need not be mapped at the call and may be unmapped before
 * bb_mr_dereg(). A peer that accesses unmapped memory gets an error. With ON_DEMAND, @p addr NULL
 * and @p len SIZE_MAX register the whole address space (@ref bb_dev_attr odp_implicit).
 * @return 0; -EINVAL if the range is empty, overflows or is longer than max_mr_size, if a right is
 *   unknown, needs LOCAL_WRITE, or is REMOTE_ATOMIC on a device without atomics, or if ZERO_BASED
 *   memory does not start on a page. -EFAULT if the memory is not mapped, lies after the end of a
 *   mapped file, or is not writable although a right needs it; -ENOTSUP if the device does not
 *   support ON_DEMAND with these rights, or accepts only RELAXED_ORDERING for memory that peers
 *   write; -ENOMEM, also when all max_mr keys are in use or the limit of locked memory is reached.
 */
int bb_mr_reg(struct bb_pd *pd, void *addr, size_t len, uint32_t access, struct bb_mr **mr);

/**
 * Does the same as bb_mr_reg(), but with @p iova as the address of the first byte (man
 * ibv_reg_mr_iova). bb_mem_lkey() does not find such a region unless @p iova equals @p addr.
 * @return as bb_mr_reg(); -EINVAL also if @p iova and @p addr have different offsets in their
 *   pages, or @p iova + @p len overflows.
 */
int bb_mr_reg_iova(struct bb_pd *pd, void *addr, size_t len, uint64_t iova, uint32_t access,
		   struct bb_mr **mr);

/** Changes that bb_mr_rereg() makes, combined with OR (man ibv_rereg_mr: IBV_REREG_MR_CHANGE_*). */
enum bb_mr_rereg_flags {
	BB_MR_REREG_TRANSLATION = 1 << 0, /**< the memory */
	BB_MR_REREG_PD = 1 << 1,
	BB_MR_REREG_ACCESS = 1 << 2,
};

/**
 * Changes a region (man ibv_rereg_mr) as if it were deregistered and registered again. Both keys
 * may change: read them from @p mr afterwards. When the call returns 0, no access uses the old
 * keys, the old rights or the old memory. WQEs that were posted before and have not completed may
 * fail.
 *
 * With TRANSLATION the iova becomes @p addr, also if the region was registered with an iova or
 * ZERO_BASED. Without TRANSLATION the iova does not change.
 * @param pd new PD of the same device, with BB_MR_REREG_PD.
 * @param addr new memory of @p len bytes, with BB_MR_REREG_TRANSLATION.
 * @param access new rights, with BB_MR_REREG_ACCESS; else 0.
 * @return 0; errors of bb_mr_reg(). -EINVAL if @p flags is 0 or has unknown bits, @p access has
 *   ZERO_BASED or is given without BB_MR_REREG_ACCESS, or the region is of device memory or a
 *   dma-buf. -EBUSY if a memory window or another key refers to the region. -EACCES if the new
 *   rights include writes, but the memory was registered for reading: give TRANSLATION, too.
 *   -ENOTSUP if ON_DEMAND would change without TRANSLATION. These errors leave the region
 *   unchanged. After -EIO or another failure of the device the keys may be invalid, and the region
 *   can only be deregistered.
 */
int bb_mr_rereg(struct bb_mr *mr, uint32_t flags, struct bb_pd *pd, void *addr, size_t len,
		uint32_t access);

/**
 * Deregisters a region. The call returns after the last access through its keys has ended. A WQE
 * that uses the keys later fails, unless a region that was registered since has the same keys: a
 * kernel's driver may return them again (Linux 6.12 and 7.2 do if UMRs load its translations). Do
 * not call it from an EAL memory callback.
 * @return 0; -EBUSY while a memory window is bound to the region, or another key refers to it.
 */
int bb_mr_dereg(struct bb_mr *mr);

/**
 * Registers the memory of a mempool with LOCAL_WRITE. The registrations have lkeys and no rkeys.
 * They cover the memory chunks of the pool. For a pool of mbufs with pinned external buffers
 * (rte_pktmbuf_pool_create_extbuf()) they cover these buffers. Adjacent chunks share a
 * registration. Chunks that are added to the pool after the call are not registered. The memory
 * must stay mapped until bb_mem_del_mempool().
 * @return 0; -EEXIST if the pool is registered already; -EINVAL if the pool has no memory yet, or
 *   its mbufs have no data room, because their data belong to another pool; otherwise an error of
 *   the device. On an error the call has registered no memory.
 */
int bb_mem_add_mempool(struct bb_pd *pd, struct rte_mempool *mp);

/**
 * Deregisters a mempool, which must still exist.
 * @return 0; -ENOENT if the mempool is not registered; otherwise an error of the device, as
 * bb_mem_del_heap() describes it.
 */
int bb_mem_del_mempool(struct bb_pd *pd, struct rte_mempool *mp);

/**
 * Registers the memory of all EAL heaps with LOCAL_WRITE. The registrations have lkeys and no
 * rkeys. EAL reports each change of a heap as a memory event, and the library then updates them:
 * - When EAL maps memory, the library registers it before rte_malloc() can return it.
 * - When EAL unmaps memory, bb_mem_lkey() no longer finds its key. When all memory of a
 *   registration is unmapped, the next control-path call on the PD, or bb_mem_reap(), deregisters
 *   it. Memory that is mapped during this call has one registration per contiguous range.
 * - The same is true for external memory of a heap (rte_malloc_heap_memory_add()). Memory of
 *   rte_extmem_register() is not part of a heap: register it with bb_mr_reg().
 *
 * With --no-huge or --legacy-mem EAL reports no memory events. EAL's own heap does not change in
 * these modes, so this call registers it once. The library does not notice when external memory is
 * added to a heap or removed. So call bb_mem_add_heap() for it: before this call if a heap has
 * external memory already, and each time you add external memory later.
 * @return 0; -EALREADY if the PD follows the heaps already; -ENOTSUP if EAL reports no events, and
 *   a heap has external memory for which bb_mem_add_heap() was not called; otherwise an error of
 *   the device. On an error this call has registered nothing.
 */
int bb_mem_follow_heap(struct bb_pd *pd);

/**
 * Registers external memory of a heap, [@p addr, @p addr + @p len), as bb_mem_follow_heap()
 * registers heaps. The call is needed only if EAL reports no memory events. Call it after
 * rte_malloc_heap_memory_add(). A program may call it in every EAL mode, because memory that is
 * registered already does not change. The memory must stay mapped until bb_mem_del_heap() or
 * bb_pd_free() returns.
 * @return 0; -EINVAL if the range is empty or exceeds the address space; otherwise an error of the
 * device.
 */
int bb_mem_add_heap(struct bb_pd *pd, const void *addr, size_t len);

/**
 * Deregisters a range that bb_mem_add_heap() has registered. Call it before
 * rte_malloc_heap_memory_remove(). The call returns after the last access through the keys has
 * ended, so the memory may be unmapped afterwards. Give the whole range of a registration: while a
 * part of it is left, the device keeps the key, and all of the range must stay mapped.
 * @return 0; -ENOENT if no part of the range is registered as heap memory; -EINVAL if the range is
 *   empty or exceeds the address space; otherwise an error of the device. After an error of the
 *   device bb_mem_lkey() finds no key for the range, but the device may still use the memory. So
 *   the memory must stay mapped until bb_mem_reap() or bb_pd_free() succeeds.
 */
int bb_mem_del_heap(struct bb_pd *pd, const void *addr, size_t len);

/**
 * Deregisters memory that EAL has unmapped since the last control-path call on the PD.
 * @return number of registrations removed; a negative errno if the device rejected a
 *   deregistration, which the next call then repeats.
 */
int bb_mem_reap(struct bb_pd *pd);

/** Number of registrations of a PD, for each way of registering. */
struct bb_mem_stats {
	uint32_t size;    /**< bytes of the caller's struct; set by bb_mem_stats() */
	uint32_t mrs;     /**< regions of bb_mr_reg() and its variants */
	uint32_t heap;    /**< registrations of heap memory */
	uint32_t mempool; /**< registrations of mempools */
	uint32_t retired; /**< registrations of unmapped memory, which bb_mem_reap() removes */
	uint64_t bytes;   /**< bytes of all live registrations */
};

/** Implements bb_mem_stats(), which sets the struct's size. Call bb_mem_stats() instead. */
int bb_mem_stats_v(struct bb_pd *pd, struct bb_mem_stats *stats);

/** Reads the counts of registrations of a PD. Any thread may call this function. */
static inline int
bb_mem_stats(struct bb_pd *pd, struct bb_mem_stats *stats)
{
	if (stats != NULL)
		stats->size = sizeof(*stats);
	return bb_mem_stats_v(pd, stats);
}

/** Return value of bb_mem_lkey() if no registration covers the range. */
#define BB_LKEY_NONE UINT32_MAX

/** Entries of a lookup cache. */
#define BB_LKEY_CACHE_ENTRIES 4

/** One registered range of a lookup cache. */
struct bb_lkey_range {
	uint64_t start, len; /**< first address and length in bytes; an empty entry has len 0 */
	uint32_t lkey;
	uint32_t pad;
};

/**
 * Lookup cache from address to lkey: one for each thread (or queue) and PD, set up by
 * bb_lkey_cache_init(). The caller owns the cache's memory and must not use the cache after the PD
 * was freed.
 */
struct bb_lkey_cache {
	const uint32_t *seq; /**< sequence count of the PD's table */
	uint32_t seq_filled; /**< value of *seq when the entries were filled */
	uint32_t last; /**< index of the entry of the last hit; the next lookup tries it first */
	struct bb_lkey_range range[BB_LKEY_CACHE_ENTRIES];
	/* A lookup that finds its address in this cache does not access the following fields. */
	uint32_t next; /**< index of the entry that the next miss replaces */
	struct bb_pd *pd;
	uint64_t misses; /**< lookups that searched the table */
};

/** Sets up an empty cache for @p pd. */
void bb_lkey_cache_init(struct bb_lkey_cache *cache, struct bb_pd *pd);

/** Searches the PD's table. Slow path of bb_mem_lkey(). */
uint32_t bb_mem_lkey_miss(struct bb_lkey_cache *cache, uint64_t addr, uint64_t len);

/**
 * Returns true if @p r holds all of [@p addr, @p addr + @p len). If @p len is 0, @p r must hold the
 * byte at @p addr.
 */
static inline bool
bb_lkey_range_holds(const struct bb_lkey_range *r, uint64_t addr, uint64_t len)
{
	uint64_t off = addr - r->start;

	return (off < r->len) & (len <= r->len - off);
}

/**
 * Returns the lkey of a registration that holds all of [@p addr, @p addr + @p len). In WQEs the
 * registration has the same addresses as in the process. A registration with LOCAL_WRITE takes
 * precedence.
 *
 * The call takes no lock. It costs about 1 ns if the range of the last lookup contains the address,
 * and 4 ns if another cached range does. A miss searches a sorted table, which costs 10 to 20 ns.
 * Ranges without LOCAL_WRITE are not cached. Only the owner of the cache may call this function.
 * The owner must not free the memory while it uses the key.
 * @return the lkey; BB_LKEY_NONE if no single registration covers the range. The range is then not
 *   registered, or it lies in two registrations and you must split it.
 */
static inline uint32_t
bb_mem_lkey(struct bb_lkey_cache *cache, const void *ptr, uint64_t len)
{
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	const struct bb_lkey_range *r = &cache->range[cache->last];
	uint32_t i, hit = 0;

	if (__builtin_expect(__atomic_load_n(cache->seq, __ATOMIC_ACQUIRE) != cache->seq_filled, 0))
		return bb_mem_lkey_miss(cache, addr, len);
	if (bb_lkey_range_holds(r, addr, len))
		return r->lkey;
	/* The loop has no branch per entry, because the CPU cannot predict which entry matches. */
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
