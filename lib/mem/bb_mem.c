/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Protection domains, and the common part of all registrations. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"

int
bb_pd_alloc(struct bb_dev *dev, struct bb_pd **out)
{
	struct bb_pd *pd;
	int ret;

	if (dev == NULL || out == NULL)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pd = bb_alloc(dev, "a PD", sizeof(*pd));
	if (pd == NULL)
		return -ENOMEM;
	pd->dev = dev;
	ret = bb_mem_table_create(pd, &pd->mem);
	if (ret != 0)
		goto free_pd;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->pd_alloc(pd);
	if (ret == 0) {
		dev->pds++;
		LIST_INSERT_HEAD(&dev->pd_list, pd, link);
	}
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

/* Deregisters all automatic registrations. */
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
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	if (pd->ahs != 0) {
		BB_LOG(ERR,
		       "%s: the PD is not freed: %u address handle%s live%s; destroy them first",
		       dev->name, pd->ahs, BB_PLURAL(pd->ahs), pd->ahs == 1 ? "s" : "");
		ret = -EBUSY;
	} else if (pd->mkeys != 0 || pd->mws != 0) {
		BB_LOG(ERR,
		       "%s: the PD is not freed: %u indirect key%s and %u memory window%s live; "
		       "destroy them first",
		       dev->name, pd->mkeys, BB_PLURAL(pd->mkeys), pd->mws, BB_PLURAL(pd->mws));
		ret = -EBUSY;
	} else if (pd->mrs != 0 || pd->qps != 0 || pd->srqs != 0) {
		BB_LOG(ERR,
		       "%s: the PD is not freed: %u MR%s, %u QP%s and %u SRQ%s live; destroy them "
		       "first",
		       dev->name, pd->mrs, BB_PLURAL(pd->mrs), pd->qps, BB_PLURAL(pd->qps),
		       pd->srqs, BB_PLURAL(pd->srqs));
		ret = -EBUSY;
	} else if (pd->devx_number_read && dev->devx_objs != 0) {
		/*
		 * The device does not free a PD that a queue of these objects names. It reports
		 * this only after the automatic registrations are gone, so check before.
		 */
		BB_LOG(ERR,
		       "%s: the PD is not freed: %u DEVX object%s may use its number; destroy the "
		       "objects first",
		       dev->name, dev->devx_objs, BB_PLURAL(dev->devx_objs));
		ret = -EBUSY;
	} else {
		ret = pd_empty(pd);
		if (ret == 0)
			ret = dev->drv->pd_free(pd);
		if (ret == 0) {
			dev->pds--;
			LIST_REMOVE(pd, link);
		}
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		return ret;
	bb_mem_table_free(pd->mem);
	free(pd);
	return 0;
}

void
bb_mem_reg_range(struct bb_mem_reg *reg, uint64_t start, uint64_t len, uint64_t iova,
		 uint32_t access)
{
	reg->writable = (access & BB_ACCESS_LOCAL_WRITE) != 0;
	reg->start = start;
	reg->end = start + len;
	reg->live = len;
	reg->listed = iova == start && (access & BB_ACCESS_ON_DEMAND) == 0;
}

int
bb_mem_reg_create(struct bb_pd *pd, enum bb_mem_kind kind, const struct bb_drv_mr_attr *attr,
		  struct bb_mem_reg **out)
{
	struct bb_mem_reg *reg = bb_alloc(pd->dev, "a registration", sizeof(*reg));
	int ret;

	if (reg == NULL)
		return -ENOMEM;
	reg->kind = kind;
	bb_mem_reg_range(reg, (uintptr_t)attr->addr, attr->len, attr->iova, attr->access);
	/* Lookups are by process address, so they must find only process memory. */
	if (attr->kind != BB_DRV_MR_MEM)
		reg->listed = false;
	ret = pd->dev->drv->mr_reg(pd, attr, &reg->drv_mr);
	if (ret != 0) {
		free(reg);
		return ret;
	}
	*out = reg;
	return 0;
}

int
bb_mem_reg_auto(struct bb_pd *pd, enum bb_mem_kind kind, uint64_t start, uint64_t len,
		struct bb_mem_reg **reg)
{
	struct bb_drv_mr_attr attr = {
		.kind = BB_DRV_MR_MEM,
		.addr = (void *)(uintptr_t)start,
		.len = len,
		.iova = start,
		.access = BB_ACCESS_LOCAL_WRITE,
	};

	return bb_mem_reg_create(pd, kind, &attr, reg);
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

	/*
	 * This loop runs without t->lock, because mr_dereg may wait for a thread that waits for
	 * t->lock in a memory event.
	 */
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
	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pd->dev->lock);
	ret = bb_mem_reap_locked(pd);
	pthread_mutex_unlock(&pd->dev->lock);
	return ret;
}

int
bb_mem_stats_v(struct bb_pd *pd, struct bb_mem_stats *stats)
{
	struct bb_mem_stats now;
	int ret;

	if (pd == NULL || stats == NULL)
		return -EINVAL;
	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pd->mem->lock);
	now = pd->mem->stats;
	pthread_mutex_unlock(&pd->mem->lock);
	return bb_out(stats, &now, sizeof(now));
}
