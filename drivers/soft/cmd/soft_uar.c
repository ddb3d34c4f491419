/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_ctl.h"
#include "soft_data.h"
#include "soft_engine.h"
#include "soft_host.h"
#include "soft_sleep.h"

/* Byte offset of the second doorbell register in a page. */
#define SECOND_REG (SOFT_BF_OFFSET + 2 * SOFT_BF_HALF)

/*
 * Returns a UAR page of @ctx with a free register, or NULL. @bf: the page must (true) or must not
 * (false) support BlueFlame.
 */
static struct soft_uar_page *
find_shared(struct soft_ctx *ctx, bool bf)
{
	struct soft_uar_page *page;

	LIST_FOREACH(page, &ctx->dev->uars, link)
		if (page->ctx == ctx && page->bf == bf && page->regs != 3)
			return page;
	return NULL;
}

/*
 * Allocates the number of a page. If the host of the context shares pages with its guest, the
 * numbers of shared pages are those from soft_host.uar_first on.
 */
static int
page_number(struct soft_uar_page *p)
{
	struct soft_ids *ids = &p->ctx->dev->ctl->uar_ids;
	const struct soft_host *host = p->ctx->host;

	if (host == NULL || host->uar_first == 0)
		return soft_ids_alloc(ids, &p->id);
	p->shared = p->ctx->role == SOFT_ROLE_USER;
	if (p->shared)
		return soft_ids_alloc_in(ids, host->uar_first, ids->size, &p->id);
	return soft_ids_alloc_in(ids, ids->first, host->uar_first, &p->id);
}

static int
page_create(struct soft_ctx *ctx, bool bf, struct soft_uar_page **page)
{
	struct soft_dev *dev = ctx->dev;
	struct soft_uar_page *p;
	int ret = -ENOMEM;

	p = calloc(1, sizeof(*p));
	if (p == NULL)
		goto no_memory;
	p->bf = bf;
	p->ctx = ctx;
	if (page_number(p) != 0)
		goto no_memory;
	p->copies = bf && dev->link == NULL && !p->shared;
	if (!soft_node_uar(dev, p))
		goto free_id;
	p->engine = dev->engine != NULL ? dev->engine : soft_engine_create(dev);
	if (p->engine == NULL)
		goto free_id;
	ret = soft_engine_add_uar(p->engine, p);
	if (ret != 0)
		goto free_engine;
	LIST_INSERT_HEAD(&dev->uars, p, link);
	*page = p;
	return 0;

free_engine:
	if (dev->engine == NULL)
		soft_engine_destroy(p->engine);
free_id:
	soft_ids_free(&dev->ctl->uar_ids, p->id);
	if (p->base != NULL)
		soft_node_uar_free(dev, p);
no_memory:
	SOFT_LOG(ERR, "%s: cannot create a UAR page: out of memory, or all page numbers are in use",
		 dev->name);
	free(p);
	return ret;
}

/*
 * Returns the number of threads that may store to the page. A guest stores to a shared page while
 * this process polls it, and any user of QP1 to its page; each counts as one thread more.
 */
static uint32_t
owners(const struct soft_uar_page *page)
{
	return page->allocs + page->shared + page->of_qp1;
}

int
soft_uar_alloc(struct mlx5_ctx *ctx_, enum mlx5_uar_type type, struct mlx5_uar **uar)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_dev *dev = ctx->dev;
	bool bf = type == MLX5_UAR_BF;
	struct soft_uar_page *page = NULL;
	struct soft_uar *u;
	int ret = soft_fault_check(dev, "UAR");

	if (ret != 0)
		return ret;
	if (bf && dev->opts.no_bf) {
		/*
		 * The errno is that of MLX5_IB_METHOD_UAR_OBJ_ALLOC on a machine without write
		 * combining.
		 */
		SOFT_LOG(ERR,
			 "%s: cannot allocate a BlueFlame UAR (option no_bf): allocate a "
			 "non-cached UAR",
			 dev->name);
		return -EOPNOTSUPP;
	}
	u = calloc(1, sizeof(*u));
	if (u == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for a UAR", dev->name);
		return -ENOMEM;
	}
	pthread_mutex_lock(&dev->lock);
	if (dev->opts.uar_share)
		page = find_shared(ctx, bf);
	if (page == NULL)
		ret = page_create(ctx, bf, &page);
	if (ret != 0) {
		pthread_mutex_unlock(&dev->lock);
		free(u);
		return ret;
	}
	u->ctx = ctx;
	u->page = page;
	u->reg = page->regs & 1;
	page->regs |= (uint8_t)(1 << u->reg);
	page->allocs++;
	soft_engine_owners(page->engine, owners(page));
	u->pub.base_addr = page->base;
	u->pub.reg_addr = page->base + (u->reg == 0 ? SOFT_BF_OFFSET : SECOND_REG);
	u->pub.page_id = page->id;
	u->pub.rung = &page->rung[u->reg];
	ctx->uars++;
	pthread_mutex_unlock(&dev->lock);
	*uar = &u->pub;
	return 0;
}

int
soft_uar_free(struct mlx5_ctx *ctx_, struct mlx5_uar *uar)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_uar *u = (struct soft_uar *)uar;
	struct soft_dev *dev = ctx->dev;
	struct soft_uar_page *page;

	if (u->ctx != ctx) {
		SOFT_LOG(ERR, "%s: cannot free a UAR that belongs to another device context",
			 dev->name);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	page = u->page;
	if (page->allocs == 1 && page->refs != 0) {
		pthread_mutex_unlock(&dev->lock);
		SOFT_LOG(ERR,
			 "%s: cannot free UAR page 0x%x: %u CQs and QPs use it: destroy them first",
			 dev->name, page->id, page->refs);
		return -EBUSY;
	}
	page->regs &= (uint8_t) ~(1 << u->reg);
	page->allocs--;
	soft_engine_owners(page->engine, owners(page));
	if (page->allocs == 0) {
		struct soft_engine *engine = page->engine;

		LIST_REMOVE(page, link);
		soft_engine_del_uar(engine, page);
		soft_quiesce();
		if (dev->engine == NULL)
			soft_engine_destroy(engine);
		soft_ids_free(&dev->ctl->uar_ids, page->id);
		soft_node_uar_free(dev, page);
		free(page);
	}
	ctx->uars--;
	pthread_mutex_unlock(&dev->lock);
	free(u);
	return 0;
}

void
soft_progress_of(struct mlx5_ctx *ctx, struct mlx5_uar *uar, void (**fn)(void *arg), void **arg)
{
	if (soft_ctx(ctx)->dev->engine != NULL)
		return;
	*fn = soft_engine_poll_of(soft_ctx(ctx)->dev);
	*arg = ((struct soft_uar *)uar)->page->engine;
}

bool
soft_progress_left(const struct mlx5_uar *uar)
{
	const struct soft_engine *e = ((const struct soft_uar *)uar)->page->engine;

	return e->n_run > e->n_full || __atomic_load_n(&e->inbox, __ATOMIC_RELAXED) != NULL ||
	       soft_engine_scans(e);
}
