/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Registration of mempools.
 *
 * A mempool holds its objects in chunks. A pool of mbufs with pinned external buffers
 * (rte_pktmbuf_pool_create_extbuf()) holds only the mbufs in its chunks. DPDK does not record the
 * areas of the buffers, so the buffer address comes from each mbuf.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"

/* Smallest page size of all supported CPUs, in bytes. */
#define PAGE_MIN 4096

/*
 * Largest gap between two neighbouring buffers of an external memory area. The 16-bit field
 * rte_pktmbuf_extmem.elt_size limits the distance of their starts.
 */
#define BUFFER_STRIDE_MAX UINT16_MAX

struct range {
	uint64_t start, end;
};

struct ranges {
	struct range *r;
	uint32_t n, cap;
	uint32_t foreign; /* objects that are not mbufs of the pool */
};

static void
range_add(struct ranges *list, const void *addr, size_t len)
{
	if (list->n == list->cap || len == 0)
		return;
	list->r[list->n].start = (uintptr_t)addr;
	list->r[list->n].end = (uintptr_t)addr + len;
	list->n++;
}

static void
chunk_cb(struct rte_mempool *mp, void *arg, struct rte_mempool_memhdr *hdr, unsigned int idx)
{
	(void)mp;
	(void)idx;
	range_add(arg, hdr->addr, hdr->len);
}

static void
buffer_cb(struct rte_mempool *mp, void *arg, void *obj, unsigned int idx)
{
	const struct rte_mbuf *m = obj;

	(void)mp;
	(void)idx;
	range_add(arg, m->buf_addr, m->buf_len);
}

static void
foreign_cb(struct rte_mempool *mp, void *arg, void *obj, unsigned int idx)
{
	struct ranges *list = arg;

	(void)idx;
	list->foreign += ((const struct rte_mbuf *)obj)->pool != mp;
}

/*
 * Returns true if every object of the pool is an mbuf; a mempool does not record what its objects
 * are.
 */
static bool
pool_of_mbufs(struct rte_mempool *mp)
{
	struct ranges list = {0};

	if (mp->private_data_size < sizeof(struct rte_pktmbuf_pool_private) ||
	    mp->elt_size < sizeof(struct rte_mbuf) || mp->populated_size == 0)
		return false;
	rte_mempool_obj_iter(mp, foreign_cb, &list);
	return list.foreign == 0;
}

static int
range_cmp(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * Returns true if one registration can cover the gap from @end of one range to @start of the next:
 * no whole page lies between the ranges, or both are in one external memory area that EAL knows.
 * The second case is needed for buffers that are more than a page apart.
 */
static bool
joinable(uint64_t end, uint64_t start)
{
	const struct rte_memseg_list *msl;

	if (start <= RTE_ALIGN_CEIL(end, (uint64_t)PAGE_MIN))
		return true;
	if (start - end > BUFFER_STRIDE_MAX)
		return false;
	msl = rte_mem_virt2memseg_list((void *)(uintptr_t)(end - 1));
	return msl != NULL && msl->external &&
	       msl == rte_mem_virt2memseg_list((void *)(uintptr_t)start);
}

/* Sorts the ranges and joins neighbours, because a pool can have a separate chunk for each page. */
static void
ranges_join(struct ranges *list)
{
	uint32_t i, n = 0;

	qsort(list->r, list->n, sizeof(*list->r), range_cmp);
	for (i = 1; i < list->n; i++) {
		if (joinable(list->r[n].end, list->r[i].start))
			list->r[n].end = RTE_MAX(list->r[n].end, list->r[i].end);
		else
			list->r[++n] = list->r[i];
	}
	list->n = n + 1;
}

/* Collects the memory that holds the pool's data. */
static int
ranges_collect(const struct bb_pd *pd, struct rte_mempool *mp, struct ranges *list)
{
	const struct rte_pktmbuf_pool_private *priv = NULL;
	bool pinned;

	if (mp->nb_mem_chunks == 0) {
		BB_LOG(ERR,
		       "mempool %s is not registered: it has no memory yet; populate it "
		       "first",
		       mp->name);
		return -EINVAL;
	}
	if (pool_of_mbufs(mp))
		priv = rte_mempool_get_priv(mp);
	pinned = priv != NULL && (priv->flags & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0;
	if (priv != NULL && priv->mbuf_data_room_size == 0) {
		BB_LOG(ERR,
		       "mempool %s is not registered: its mbufs have no data room of their own; "
		       "register the pool or the memory that they are attached to",
		       mp->name);
		return -EINVAL;
	}
	list->cap = pinned ? mp->populated_size : mp->nb_mem_chunks;
	list->r = bb_alloc(pd->dev, "the memory of a mempool", list->cap * sizeof(*list->r));
	if (list->r == NULL)
		return -ENOMEM;
	if (pinned)
		rte_mempool_obj_iter(mp, buffer_cb, list);
	else
		rte_mempool_mem_iter(mp, chunk_cb, list);
	ranges_join(list);
	return 0;
}

/* Moves the pool's registrations from the table to the retired list. Call with t->lock held. */
static uint32_t
pool_retire(struct bb_mem_table *t, const struct rte_mempool *mp)
{
	struct bb_mem_reg *reg, *next;
	uint32_t n = 0;

	for (reg = TAILQ_FIRST(&t->pools); reg != NULL; reg = next) {
		next = TAILQ_NEXT(reg, link);
		if (reg->pool != mp)
			continue;
		bb_mem_table_remove(t, reg);
		TAILQ_REMOVE(&t->pools, reg, link);
		TAILQ_INSERT_TAIL(&t->retired, reg, link);
		t->stats.mempool--;
		t->stats.retired++;
		t->stats.bytes -= reg->end - reg->start;
		n++;
	}
	return n;
}

static int
pool_add_range(struct bb_pd *pd, struct rte_mempool *mp, const struct range *r)
{
	struct bb_mem_table *t = pd->mem;
	struct bb_mem_reg *reg;
	int ret;

	ret = bb_mem_reg_auto(pd, BB_MEM_POOL, r->start, r->end - r->start, &reg);
	if (ret != 0)
		return ret;
	reg->pool = mp;
	pthread_mutex_lock(&t->lock);
	ret = bb_mem_table_insert(t, reg);
	if (ret == 0) {
		TAILQ_INSERT_TAIL(&t->pools, reg, link);
		t->stats.mempool++;
		t->stats.bytes += r->end - r->start;
	}
	pthread_mutex_unlock(&t->lock);
	if (ret != 0)
		(void)bb_mem_reg_destroy(pd, reg);
	return ret;
}

static bool
pool_known(struct bb_mem_table *t, const struct rte_mempool *mp)
{
	struct bb_mem_reg *reg;

	TAILQ_FOREACH(reg, &t->pools, link)
		if (reg->pool == mp)
			return true;
	return false;
}

int
bb_mem_add_mempool(struct bb_pd *pd, struct rte_mempool *mp)
{
	struct ranges list = {0};
	uint32_t i;
	int ret;

	if (pd == NULL || mp == NULL)
		return -EINVAL;
	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = pool_known(pd->mem, mp) ? -EEXIST : ranges_collect(pd, mp, &list);
	for (i = 0; ret == 0 && i < list.n; i++)
		ret = pool_add_range(pd, mp, &list.r[i]);
	if (ret != 0 && i > 0) {
		pthread_mutex_lock(&pd->mem->lock);
		(void)pool_retire(pd->mem, mp);
		pthread_mutex_unlock(&pd->mem->lock);
		(void)bb_mem_reap_locked(pd);
	}
	pthread_mutex_unlock(&pd->dev->lock);
	free(list.r);
	return ret;
}

int
bb_mem_del_mempool(struct bb_pd *pd, struct rte_mempool *mp)
{
	uint32_t n;
	int ret;

	if (pd == NULL || mp == NULL)
		return -EINVAL;
	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pd->dev->lock);
	pthread_mutex_lock(&pd->mem->lock);
	n = pool_retire(pd->mem, mp);
	pthread_mutex_unlock(&pd->mem->lock);
	ret = bb_mem_reap_locked(pd);
	pthread_mutex_unlock(&pd->dev->lock);
	if (n == 0)
		return -ENOENT;
	return ret < 0 ? ret : 0;
}
