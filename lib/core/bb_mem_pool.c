/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Registration of mempools, chunk by chunk. */
#include <errno.h>
#include <stdlib.h>

#include <rte_log.h>
#include <rte_mempool.h>

#include "bb_core.h"
#include "bb_mem_table.h"

struct chunk {
	uint64_t start, end;
};

struct chunks {
	struct chunk *c;
	uint32_t n, cap;
};

static void
chunk_cb(struct rte_mempool *mp, void *arg, struct rte_mempool_memhdr *hdr, unsigned int idx)
{
	struct chunks *list = arg;

	(void)mp;
	(void)idx;
	if (list->n < list->cap) {
		list->c[list->n].start = (uintptr_t)hdr->addr;
		list->c[list->n].end = (uintptr_t)hdr->addr + hdr->len;
		list->n++;
	}
}

static int
chunk_cmp(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The pool's chunks, sorted, neighbours joined: a pool can have one per page. */
static int
chunks_collect(const struct bb_pd *pd, struct rte_mempool *mp, struct chunks *list)
{
	uint32_t i, n = 0;

	list->n = 0;
	list->cap = mp->nb_mem_chunks;
	if (list->cap == 0) {
		BB_LOG(ERR, "mempool %s has no memory yet: populate it first", mp->name);
		return -EINVAL;
	}
	list->c = bb_alloc(pd->dev, "the chunks of a mempool", list->cap * sizeof(*list->c));
	if (list->c == NULL)
		return -ENOMEM;
	rte_mempool_mem_iter(mp, chunk_cb, list);
	qsort(list->c, list->n, sizeof(*list->c), chunk_cmp);
	for (i = 1; i < list->n; i++) {
		if (list->c[i].start <= list->c[n].end) {
			if (list->c[i].end > list->c[n].end)
				list->c[n].end = list->c[i].end;
		} else {
			list->c[++n] = list->c[i];
		}
	}
	list->n = n + 1;
	return 0;
}

/* Move what belongs to the pool out of the table. t->lock held. */
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
pool_add_chunk(struct bb_pd *pd, struct rte_mempool *mp, const struct chunk *c)
{
	struct bb_mem_table *t = pd->mem;
	struct bb_mem_reg *reg;
	int ret;

	ret = bb_mem_reg_auto(pd, BB_MEM_POOL, c->start, c->end - c->start, &reg);
	if (ret != 0)
		return ret;
	reg->pool = mp;
	pthread_mutex_lock(&t->lock);
	ret = bb_mem_table_insert(t, reg);
	if (ret == 0) {
		TAILQ_INSERT_TAIL(&t->pools, reg, link);
		t->stats.mempool++;
		t->stats.bytes += c->end - c->start;
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
	struct chunks list = {0};
	uint32_t i;
	int ret;

	if (pd == NULL || mp == NULL)
		return -EINVAL;
	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = pool_known(pd->mem, mp) ? -EEXIST : chunks_collect(pd, mp, &list);
	for (i = 0; ret == 0 && i < list.n; i++)
		ret = pool_add_chunk(pd, mp, &list.c[i]);
	if (ret != 0 && i > 0) {
		pthread_mutex_lock(&pd->mem->lock);
		(void)pool_retire(pd->mem, mp);
		pthread_mutex_unlock(&pd->mem->lock);
		(void)bb_mem_reap_locked(pd);
	}
	pthread_mutex_unlock(&pd->dev->lock);
	free(list.c);
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
