/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Keys over other keys: memory windows, and the allocation of indirect keys. */
#include <errno.h>
#include <stdlib.h>

#include "soft_access.h"
#include "soft_ctl.h"

/* Entries of a window's key: one entry, rounded up to 64 bytes (Linux mlx5_ib_alloc_mw()). */
#define MW_ENTRIES 4

struct soft_mkey *
soft_indirect_make(uint32_t entries)
{
	struct soft_mkey *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->ind = calloc(1, sizeof(*m->ind) + entries * sizeof(m->ind->x[0]));
	if (m->ind == NULL) {
		free(m);
		return NULL;
	}
	m->ind->cap = entries;
	m->ind->qpn = BB_MKEY_ANY_QP;
	return m;
}

void
soft_indirect_free(struct soft_mkey *m)
{
	if (m->ind->phys != NULL) {
		soft_list_free(m->ind);
		soft_phys_drop(m->ind->phys);
	}
	free(m->ind);
	free(m);
}

void
soft_mkey_free(struct soft_mkey *m)
{
	if (m->ind != NULL) {
		soft_indirect_free(m);
		return;
	}
	soft_mkey_unpin(m);
	soft_window_close(&m->window);
	free(m);
}

/* ---- Memory windows */

/*
 * Allocates the key of an unbound window, with the values of Linux mlx5_ib_alloc_mw(). Returns NULL
 * if out of memory.
 */
static struct soft_mkey *
window_make(uint32_t pdn, uint32_t type)
{
	struct soft_mkey *m = soft_indirect_make(MW_ENTRIES);

	if (m == NULL)
		return NULL;
	m->pdn = pdn;
	m->ind->mw_type = (uint8_t)type;
	m->ind->umr = true;
	m->ind->en_rinval = type == 2;
	m->ind->free = true;
	m->ind->gate = SOFT_GATE_CLOSED;
	return m;
}

int
soft_mw_alloc(struct mlx5_ctx *ctx_, struct mlx5_pd *pd, uint32_t type, struct mlx5_mw **mw)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_pd *p = (struct soft_pd *)pd;
	struct soft_dev *dev = ctx->dev;
	struct soft_mw *w;
	int ret;

	if (p->ctx != ctx || (type != 1 && type != 2)) {
		SOFT_LOG(ERR, "%s: cannot allocate a memory window: %s", dev->name,
			 p->ctx != ctx ? "the PD belongs to another device context"
				       : "the type is not 1 or 2");
		return -EINVAL;
	}
	if (dev->opts.no_mw || dev->opts.no_umr) {
		SOFT_LOG(ERR,
			 "%s: cannot allocate a memory window: the device has no memory windows",
			 dev->name);
		return -EOPNOTSUPP;
	}
	ret = soft_fault_check(dev, "memory window");
	if (ret != 0)
		return ret;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		goto no_memory;
	w->mkey = window_make(p->pub.pdn, type);
	if (w->mkey == NULL)
		goto free_mw;
	w->ctx = ctx;
	w->pd = p;
	pthread_mutex_lock(&dev->lock);
	ret = soft_key_take(dev->ctl, &w->mkey->key);
	if (ret == 0) {
		w->pub.rkey = w->mkey->key;
		__atomic_store_n(&dev->mkeys[w->pub.rkey >> 8], w->mkey, __ATOMIC_RELEASE);
		soft_pd_count_mr(p, 1);
		ctx->mrs++;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		if (ret == -ENOSPC)
			SOFT_LOG(ERR,
				 "%s: cannot allocate a memory window: all mkeys are in use: "
				 "destroy some keys or MRs",
				 dev->name);
		soft_indirect_free(w->mkey);
		free(w);
		return -ENOMEM;
	}
	*mw = &w->pub;
	return 0;

free_mw:
	free(w);
no_memory:
	SOFT_LOG(ERR, "%s: out of memory for a memory window", dev->name);
	return -ENOMEM;
}

int
soft_mw_free(struct mlx5_ctx *ctx_, struct mlx5_mw *mw)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_mw *w = (struct soft_mw *)mw;
	struct soft_dev *dev = ctx->dev;
	uint32_t id = w->mkey->key >> 8;

	if (w->ctx != ctx) {
		SOFT_LOG(ERR,
			 "%s: cannot free a memory window that belongs to another device context",
			 dev->name);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	__atomic_store_n(&dev->mkeys[id], NULL, __ATOMIC_RELEASE);
	soft_quiesce();
	rte_ticketlock_lock(&dev->umr_lock);
	if (w->mkey->ind->bound != NULL)
		w->mkey->ind->bound->windows--;
	rte_ticketlock_unlock(&dev->umr_lock);
	soft_draw_give(&dev->ctl->mkey_draw, id);
	soft_pd_count_mr(w->pd, -1);
	ctx->mrs--;
	pthread_mutex_unlock(&dev->lock);
	soft_indirect_free(w->mkey);
	free(w);
	return 0;
}
