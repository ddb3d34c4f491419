/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Protection domains and explicit registrations. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>

#include "bb_core.h"
#include "bb_mem_table.h"

#define ACCESS_ALL                                                                                 \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC)
#define ACCESS_REMOTE (ACCESS_ALL & ~BB_ACCESS_LOCAL_WRITE)

struct bb_mr_priv {
	struct bb_mr pub;
	struct bb_mem_reg *reg;
};

int
bb_pd_alloc(struct bb_dev *dev, struct bb_pd **out)
{
	struct bb_pd *pd;
	int ret;

	if (dev == NULL || out == NULL)
		return -EINVAL;
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL)
		return -ENOMEM;
	pd->dev = dev;
	ret = bb_mem_table_create(pd, &pd->mem);
	if (ret != 0)
		goto free_pd;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->pd_alloc(pd);
	if (ret == 0)
		dev->pds++;
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		goto free_table;
	*out = pd;
	return 0;

free_table:
	bb_mem_table_free(pd->mem);
free_pd:
	free(pd);
	return ret;
}

/* Deregister what was registered automatically. */
static int
pd_empty(struct bb_pd *pd)
{
	struct bb_mem_table *t = pd->mem;
	int ret;

	bb_mem_heap_unfollow(t);
	pthread_mutex_lock(&t->lock);
	bb_mem_table_clear(t);
	TAILQ_CONCAT(&t->retired, &t->heap, link);
	TAILQ_CONCAT(&t->retired, &t->pools, link);
	t->stats.retired += t->stats.heap + t->stats.mempool;
	t->stats.heap = 0;
	t->stats.mempool = 0;
	t->stats.bytes = 0;
	pthread_mutex_unlock(&t->lock);
	ret = bb_mem_reap_locked(pd);
	return ret < 0 ? ret : 0;
}

int
bb_pd_free(struct bb_pd *pd)
{
	struct bb_dev *dev;
	int ret;

	if (pd == NULL)
		return -EINVAL;
	dev = pd->dev;
	pthread_mutex_lock(&dev->lock);
	if (pd->mrs != 0 || pd->qps != 0) {
		BB_LOG(ERR, "%s: the PD is not freed: %u MR%s and %u QP%s live; destroy them first",
		       dev->name, pd->mrs, BB_PLURAL(pd->mrs), pd->qps, BB_PLURAL(pd->qps));
		ret = -EBUSY;
	} else {
		ret = pd_empty(pd);
		if (ret == 0)
			ret = dev->drv->pd_free(pd);
		if (ret == 0)
			dev->pds--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		return ret;
	bb_mem_table_free(pd->mem);
	free(pd);
	return 0;
}

int
bb_mem_reg_create(struct bb_pd *pd, enum bb_mem_kind kind, uint64_t start, uint64_t len,
		  uint32_t access, struct bb_mem_reg **out)
{
	struct bb_mem_reg *reg = calloc(1, sizeof(*reg));
	int ret;

	if (reg == NULL)
		return -ENOMEM;
	reg->kind = kind;
	reg->writable = (access & BB_ACCESS_LOCAL_WRITE) != 0;
	reg->start = start;
	reg->end = start + len;
	reg->live = len;
	ret = pd->dev->drv->mr_reg(pd, (void *)(uintptr_t)start, len, access, &reg->drv_mr);
	if (ret != 0) {
		free(reg);
		return ret;
	}
	*out = reg;
	return 0;
}

int
bb_mem_reg_destroy(struct bb_pd *pd, struct bb_mem_reg *reg)
{
	int ret = pd->dev->drv->mr_dereg(pd, reg->drv_mr);

	if (ret == 0)
		free(reg);
	return ret;
}

int
bb_mem_reap_locked(struct bb_pd *pd)
{
	struct bb_mem_table *t = pd->mem;
	struct bb_mem_regs work, left;
	struct bb_mem_reg *reg;
	int n = 0, err = 0;

	TAILQ_INIT(&work);
	TAILQ_INIT(&left);
	pthread_mutex_lock(&t->lock);
	TAILQ_CONCAT(&work, &t->retired, link);
	pthread_mutex_unlock(&t->lock);
	if (TAILQ_EMPTY(&work))
		return 0;

	/* Without t->lock: mr_dereg may wait for a thread that waits in an event. */
	while ((reg = TAILQ_FIRST(&work)) != NULL) {
		int ret;

		TAILQ_REMOVE(&work, reg, link);
		ret = bb_mem_reg_destroy(pd, reg);
		if (ret == 0) {
			n++;
			continue;
		}
		TAILQ_INSERT_TAIL(&left, reg, link);
		err = ret;
	}

	pthread_mutex_lock(&t->lock);
	TAILQ_CONCAT(&t->retired, &left, link);
	t->stats.retired -= (uint32_t)n;
	pthread_mutex_unlock(&t->lock);
	return err != 0 ? err : n;
}

int
bb_mem_reap(struct bb_pd *pd)
{
	int ret;

	if (pd == NULL)
		return -EINVAL;
	pthread_mutex_lock(&pd->dev->lock);
	ret = bb_mem_reap_locked(pd);
	pthread_mutex_unlock(&pd->dev->lock);
	return ret;
}

/* The argument rules of man ibv_reg_mr. */
static int
mr_check(const struct bb_dev *dev, const void *addr, size_t len, uint32_t access)
{
	const char *why = NULL;

	if (len == 0)
		why = "it is empty";
	else if (len > UINTPTR_MAX - (uintptr_t)addr)
		why = "it reaches past the end of the address space";
	else if (len > dev->attr.max_mr_size)
		why = "it is longer than the device's max_mr_size";
	else if ((access & ~(uint32_t)ACCESS_ALL) != 0)
		why = "an access right is not known";
	else if ((access & (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC)) != 0 &&
		 (access & BB_ACCESS_LOCAL_WRITE) == 0)
		why = "REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE too";
	else if ((access & BB_ACCESS_REMOTE_ATOMIC) != 0 && !dev->attr.atomics)
		why = "the device has no atomics";
	if (why == NULL)
		return 0;
	BB_LOG(ERR, "%s: %zu bytes at %p with access 0x%x are not registered: %s", dev->name, len,
	       addr, access, why);
	return -EINVAL;
}

int
bb_mr_reg(struct bb_pd *pd, void *addr, size_t len, uint32_t access, struct bb_mr **out)
{
	struct bb_mr_priv *mr;
	struct bb_mem_table *t;
	int ret;

	if (pd == NULL || out == NULL)
		return -EINVAL;
	ret = mr_check(pd->dev, addr, len, access);
	if (ret != 0)
		return ret;
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return -ENOMEM;
	t = pd->mem;

	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = bb_mem_reg_create(pd, BB_MEM_EXPLICIT, (uintptr_t)addr, len, access, &mr->reg);
	if (ret != 0)
		goto free_mr;
	pthread_mutex_lock(&t->lock);
	ret = bb_mem_table_insert(t, mr->reg);
	if (ret == 0) {
		t->stats.mrs++;
		t->stats.bytes += len;
	}
	pthread_mutex_unlock(&t->lock);
	if (ret != 0)
		goto destroy_reg;
	pd->mrs++;
	mr->pub.pd = pd;
	mr->pub.addr = addr;
	mr->pub.len = len;
	mr->pub.lkey = mr->reg->drv_mr->lkey;
	mr->pub.rkey = (access & ACCESS_REMOTE) != 0 ? mr->reg->drv_mr->rkey : 0;
	mr->pub.access = access;
	pthread_mutex_unlock(&pd->dev->lock);
	*out = &mr->pub;
	return 0;

destroy_reg:
	(void)bb_mem_reg_destroy(pd, mr->reg);
free_mr:
	pthread_mutex_unlock(&pd->dev->lock);
	free(mr);
	return ret;
}

int
bb_mr_dereg(struct bb_mr *pub)
{
	struct bb_mr_priv *mr = (struct bb_mr_priv *)pub;
	struct bb_mem_table *t;
	struct bb_pd *pd;
	int ret;

	if (pub == NULL)
		return -EINVAL;
	pd = pub->pd;
	t = pd->mem;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	/* Lookups stop finding the key before it dies, so that none dies in a hand. */
	pthread_mutex_lock(&t->lock);
	bb_mem_table_remove(t, mr->reg);
	pthread_mutex_unlock(&t->lock);
	ret = bb_mem_reg_destroy(pd, mr->reg);
	pthread_mutex_lock(&t->lock);
	if (ret == 0) {
		t->stats.mrs--;
		t->stats.bytes -= pub->len;
		pd->mrs--;
	} else {
		/* There is room: an entry went a moment ago, and arrays do not shrink. */
		(void)bb_mem_table_insert(t, mr->reg);
	}
	pthread_mutex_unlock(&t->lock);
	pthread_mutex_unlock(&pd->dev->lock);
	if (ret == 0)
		free(mr);
	return ret;
}

int
bb_mem_stats(struct bb_pd *pd, struct bb_mem_stats *stats)
{
	if (pd == NULL || stats == NULL)
		return -EINVAL;
	pthread_mutex_lock(&pd->mem->lock);
	*stats = pd->mem->stats;
	pthread_mutex_unlock(&pd->mem->lock);
	return 0;
}
