/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory regions: ibv_reg_mr_iova2(), ibv_rereg_mr() and ibv_dereg_mr(), with the kernel's rules
 * (Linux drivers/infiniband/hw/mlx5/mr.c), and the key table.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "soft_ctl.h"
#include "soft_dm.h"
#include "soft_kernel.h"

/* Number of pages of the smallest key that the kernel caches (mlx5_mkey_cache_init()). */
#define MIN_ROOM 4u

/* Waits until no engine and no peer uses a key that was removed from the table. */
static void
mkey_wait(struct soft_dev *dev, uint32_t id)
{
	soft_quiesce();
	if (dev->share != NULL && dev->share->key_del(dev, id))
		dev->share->wait(dev);
}

/* Allocates a key number for @m. Returns 0 or -ENOMEM, logged. */
static int
mkey_number(struct soft_dev *dev, struct soft_mkey *m)
{
	int ret = soft_key_take(dev->ctl, &m->key);

	if (ret == -ENOSPC)
		SOFT_LOG(ERR, "%s: all %u mkeys are in use: register fewer and larger MRs",
			 dev->name, dev->ctl->mkey_draw.n);
	return ret == 0 ? 0 : -ENOMEM;
}

static void
mkey_publish(struct soft_dev *dev, struct soft_mkey *m)
{
	__atomic_store_n(&dev->mkeys[m->key >> 8], m, __ATOMIC_RELEASE);
	soft_mkey_share(dev, m);
}

/* Reports that the device has accessed pages that the program had unmapped or truncated. */
static void
report_filled(const struct soft_dev *dev, const struct soft_mkey *m)
{
	if (__atomic_load_n(&m->filled, __ATOMIC_RELAXED))
		SOFT_LOG(WARNING,
			 "%s: MR 0x%x: the program unmapped memory at %p, or truncated its file, "
			 "before it deregistered it: the device read zeros there, and writes to it "
			 "are lost; a card accesses the old pages",
			 dev->name, m->key, (void *)m->base);
}

int
soft_mkey_retire(struct soft_dev *dev, struct soft_mkey *m, struct soft_mkey *next)
{
	uint32_t id = m->key >> 8;
	bool bound;

	/* A bind finds its MR and counts the window under the same lock. */
	rte_ticketlock_lock(&dev->umr_lock);
	bound = m->windows != 0;
	if (!bound)
		__atomic_store_n(&dev->mkeys[id], next, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&dev->umr_lock);
	if (bound) {
		SOFT_LOG(ERR,
			 "%s: cannot deregister or re-register MR 0x%x: memory windows are bound "
			 "to it: invalidate them first",
			 dev->name, m->key);
		return -EBUSY;
	}
	mkey_wait(dev, id);
	if (next != NULL)
		soft_mkey_share(dev, next);
	report_filled(dev, m);
	soft_mkey_free(m);
	return 0;
}

/*
 * Allocates a key over process memory; the caller publishes the key. Returns NULL if out of memory,
 * logged.
 */
static struct soft_mkey *
mkey_make(const struct soft_dev *dev, const struct soft_pd *pd, const struct mlx5_mr_attr *attr)
{
	struct soft_mkey *m = calloc(1, sizeof(*m));
	uint32_t access = attr->access;

	if (m == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for an MR", dev->name);
		return NULL;
	}
	*m = (struct soft_mkey){
		.pdn = pd->pub.pdn,
		.start = attr->iova,
		.len = attr->len,
		.base = attr->addr,
		.lw = (access & MLX5_ACCESS_LOCAL_WRITE) != 0,
		.rr = (access & MLX5_ACCESS_REMOTE_READ) != 0,
		.rw = (access & MLX5_ACCESS_REMOTE_WRITE) != 0,
		.atomic = (access & MLX5_ACCESS_REMOTE_ATOMIC) != 0,
		.mw_bind = (access & MLX5_ACCESS_MW_BIND) != 0,
	};
	if ((access & MLX5_ACCESS_ON_DEMAND) != 0) {
		m->detour = SOFT_DETOUR_PAGED;
		/*
		 * An ON_DEMAND key allows no atomics, because rc_odp_caps.atomic is 0. No test
		 * shows how a card handles atomics on such a key.
		 */
		m->atomic = false;
	} else if ((access & MLX5_ACCESS_RELAXED_ORDERING) != 0 && !dev->opts.no_relaxed) {
		m->detour = SOFT_DETOUR_RELAXED;
	}
	if (m->detour != SOFT_DETOUR_NONE) {
		m->detour_len = m->len;
		m->len = 0;
	}
	return m;
}

static bool
whole_address_space(const struct mlx5_mr_attr *attr)
{
	return (attr->access & MLX5_ACCESS_ON_DEMAND) != 0 && attr->addr == NULL &&
	       attr->len == UINT64_MAX;
}

static int
rights_check(const struct soft_dev *dev, uint32_t access)
{
	if ((access & MLX5_ACCESS_REMOTE_ATOMIC) != 0 && dev->opts.no_atomic) {
		SOFT_LOG(ERR,
			 "%s: cannot register an MR with REMOTE_ATOMIC: the device has no atomics",
			 dev->name);
		return -EINVAL;
	}
	return soft_kernel_mr_access(access, dev->odp);
}

/* Checks the arguments first and the memory last, which is the kernel's order. */
static int
mr_check(const struct soft_dev *dev, const struct mlx5_mr_attr *attr)
{
	int ret;

	ret = rights_check(dev, attr->access);
	if (ret == 0)
		ret = soft_kernel_mr_iova((uintptr_t)attr->addr, attr->iova);
	if (ret != 0)
		return ret;
	if (whole_address_space(attr)) {
		if (attr->iova == 0)
			return 0;
		SOFT_LOG(ERR,
			 "%s: invalid iova 0x%" PRIx64
			 " of an MR over the whole address space (only 0 is valid)",
			 dev->name, attr->iova);
		return -EINVAL;
	}
	if (attr->len > UINT64_MAX - attr->iova) {
		SOFT_LOG(ERR,
			 "%s: invalid iova 0x%" PRIx64 " of an MR of %" PRIu64
			 " bytes: iova + length exceeds 2^64",
			 dev->name, attr->iova, attr->len);
		return -EINVAL;
	}
	/* ON_DEMAND: pages are checked at each access, so only the range is checked now. */
	if ((attr->access & MLX5_ACCESS_ON_DEMAND) != 0)
		return soft_mem_range(dev->name, "MR", attr->addr, attr->len);
	return soft_mem_check(dev->name, "MR", attr->addr, attr->len,
			      soft_kernel_writable(attr->access));
}

/*
 * Checks m->attr and finds the memory. On success m->attr holds two addresses of the memory: in
 * this process (addr), and in requests (iova).
 */
static int
mr_memory(const struct soft_ctx *ctx, struct soft_mr *m)
{
	struct mlx5_mr_attr *attr = &m->attr;
	uint8_t *base = NULL;
	int ret;

	if (attr->kind == MLX5_MR_MEM)
		return mr_check(ctx->dev, attr);
	ret = rights_check(ctx->dev, attr->access);
	if (ret != 0)
		return ret;
	if (attr->kind == MLX5_MR_DM) {
		ret = soft_dm_mr(ctx, attr, &base);
		m->dm = (struct soft_dm *)attr->dm;
		attr->iova = 0;
	} else {
		pthread_mutex_lock(&ctx->dev->lock);
		ret = soft_dmabuf_mr(ctx->dev, attr, &m->map);
		pthread_mutex_unlock(&ctx->dev->lock);
		base = m->map.base;
	}
	attr->addr = base;
	return ret;
}

/* Returns the number of pages that @attr covers. */
static uint64_t
pages_of(const struct mlx5_mr_attr *attr)
{
	uint64_t off = (uintptr_t)attr->addr & 4095;

	return whole_address_space(attr) || attr->len == 0 ? 0 : (attr->len - 1 + off) / 4096 + 1;
}

/* Returns the number of translation entries of a new key, a power of two (assumption [A]). */
static uint64_t
room_of(const struct mlx5_mr_attr *attr)
{
	uint64_t pages = pages_of(attr);

	return pages <= MIN_ROOM ? MIN_ROOM : UINT64_C(1) << (64 - __builtin_clzll(pages - 1));
}

int
soft_mr_reg(struct mlx5_ctx *ctx_, struct mlx5_pd *pd, const struct mlx5_mr_attr *attr,
	    struct mlx5_mr **mr)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_pd *p = (struct soft_pd *)pd;
	struct soft_dev *dev = ctx->dev;
	struct soft_mr *m;
	int ret;

	if (p->ctx != ctx) {
		SOFT_LOG(ERR,
			 "%s: cannot register an MR: PD 0x%x belongs to another device context",
			 dev->name, p->pub.pdn);
		return -EINVAL;
	}
	ret = soft_fault_check(dev, "MR");
	if (ret != 0)
		return ret;
	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for an MR", dev->name);
		return -ENOMEM;
	}
	m->attr = *attr;
	ret = mr_memory(ctx, m);
	if (ret != 0)
		goto free_mr;
	m->mkey = mkey_make(dev, p, &m->attr);
	if (m->mkey == NULL) {
		ret = -ENOMEM;
		goto unmap;
	}
	m->ctx = ctx;
	m->pd = p;
	m->writable = soft_kernel_writable(attr->access);
	m->room = room_of(&m->attr);
	pthread_mutex_lock(&dev->lock);
	if (attr->kind == MLX5_MR_MEM)
		soft_mkey_pin(dev, m->mkey);
	ret = mkey_number(dev, m->mkey);
	if (ret == 0) {
		mkey_publish(dev, m->mkey);
		m->pub.lkey = m->mkey->key;
		m->pub.rkey = m->mkey->key;
		soft_pd_count_mr(p, 1);
		ctx->mrs++;
		if (m->dm != NULL)
			m->dm->mrs++;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		goto free_mkey;
	*mr = &m->pub;
	return 0;

free_mkey:
	soft_mkey_free(m->mkey);
unmap:
	soft_dmabuf_unmap(&m->map);
free_mr:
	free(m);
	return ret;
}

uint64_t
soft_mr_length(const struct mlx5_mr *mr)
{
	return ((const struct soft_mr *)mr)->attr.len;
}

int
soft_mr_dereg(struct mlx5_ctx *ctx_, struct mlx5_mr *mr)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_mr *m = (struct soft_mr *)mr;
	struct soft_dev *dev = ctx->dev;
	uint32_t id = m->mkey->key >> 8;
	int ret;

	if (m->ctx != ctx) {
		SOFT_LOG(ERR, "%s: cannot deregister MR 0x%x: it belongs to another device context",
			 dev->name, m->pub.lkey);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	ret = soft_mkey_retire(dev, m->mkey, NULL);
	if (ret == 0) {
		soft_draw_give(&dev->ctl->mkey_draw, id);
		soft_pd_count_mr(m->pd, -1);
		ctx->mrs--;
		if (m->dm != NULL)
			m->dm->mrs--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		return ret;
	soft_dmabuf_unmap(&m->map);
	free(m);
	return 0;
}

/*
 * Returns 1 if the MR can retain its key (mlx5_ib_rereg_user_mr()), 0 if the memory needs another
 * key, or -EOPNOTSUPP.
 */
static int
rereg_in_place(const struct soft_mr *m, uint32_t flags, const struct mlx5_mr_attr *to)
{
	bool paged = (m->attr.access & MLX5_ACCESS_ON_DEMAND) != 0;
	bool rights = soft_kernel_rereg_in_place(m->attr.access, to->access);

	if ((flags & MLX5_REREG_TRANSLATION) == 0) {
		if (rights)
			return 1;
		return paged || (to->access & MLX5_ACCESS_ON_DEMAND) != 0 ? -EOPNOTSUPP : 0;
	}
	return !paged && (to->access & MLX5_ACCESS_ON_DEMAND) == 0 && rights &&
	       pages_of(to) <= m->room;
}

static int
rereg_check(const struct soft_mr *m, uint32_t flags, const struct soft_pd *pd,
	    const struct mlx5_mr_attr *to)
{
	const struct soft_dev *dev = m->ctx->dev;
	int ret;

	ret = soft_kernel_mr_rereg(flags, to->addr, to->len);
	if (ret != 0)
		return ret;
	/*
	 * The kernel's ib_uverbs_rereg_mr() makes this check, too. For a dma-buf, ibv_rereg_mr() of
	 * libibverbs makes it.
	 */
	if (m->attr.kind != MLX5_MR_MEM) {
		SOFT_LOG(ERR,
			 "%s: cannot re-register MR 0x%x of device memory or a dma-buf: deregister "
			 "and register it",
			 dev->name, m->pub.lkey);
		return -EINVAL;
	}
	if (pd->ctx != m->ctx) {
		SOFT_LOG(ERR,
			 "%s: cannot re-register an MR: PD 0x%x belongs to another device context",
			 dev->name, pd->pub.pdn);
		return -EINVAL;
	}
	if ((flags & MLX5_REREG_TRANSLATION) != 0)
		return mr_check(dev, to);
	ret = rights_check(dev, to->access);
	if (ret != 0)
		return ret;
	/* The kernel's ib_umem_check_rereg() makes this check, too. */
	if (soft_kernel_writable(to->access) && !m->writable) {
		SOFT_LOG(ERR,
			 "%s: cannot make MR 0x%x writable: it was registered without write "
			 "access: set BB_MR_REREG_TRANSLATION too",
			 dev->name, m->pub.lkey);
		return -EACCES;
	}
	return 0;
}

/* Replaces the memory and the rights of an MR that retains its key. */
static int
rereg_same_key(struct soft_dev *dev, struct soft_mkey *old, struct soft_mkey *m)
{
	m->key = old->key;
	return soft_mkey_retire(dev, old, m);
}

/*
 * Gives the MR a new key. Allocates the number of the new key before the old key is removed, so
 * that the MR stays valid if no number is free. Publishes the new key last: until then no window
 * can be bound to it, so a failure can free it.
 */
static int
rereg_other_key(struct soft_dev *dev, struct soft_mkey *old, struct soft_mkey *m)
{
	uint32_t id = old->key >> 8;
	int ret = mkey_number(dev, m);

	if (ret != 0)
		return ret;
	ret = soft_mkey_retire(dev, old, NULL);
	if (ret == 0)
		mkey_publish(dev, m);
	else
		id = m->key >> 8;
	soft_draw_give(&dev->ctl->mkey_draw, id);
	return ret;
}

int
soft_mr_rereg(struct mlx5_ctx *ctx_, struct mlx5_mr *mr, uint32_t flags, struct mlx5_pd *pd,
	      void *addr, uint64_t len, uint32_t access)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_mr *m = (struct soft_mr *)mr;
	struct soft_dev *dev = ctx->dev;
	struct mlx5_mr_attr to = m->attr;
	struct soft_pd *p = (flags & MLX5_REREG_PD) != 0 ? (struct soft_pd *)pd : m->pd;
	struct soft_mkey *key;
	int in_place, ret;
	bool passed;

	if (m->ctx != ctx) {
		SOFT_LOG(ERR,
			 "%s: cannot re-register MR 0x%x: it belongs to another device context",
			 dev->name, m->pub.lkey);
		return -EINVAL;
	}
	if ((flags & MLX5_REREG_ACCESS) != 0)
		to.access = access;
	if ((flags & MLX5_REREG_TRANSLATION) != 0) {
		/* mlx5_rereg_mr() of libmlx5 passes the address as iova. */
		to = mlx5_mr_mem(addr, len, to.access);
	}
	ret = soft_fault_check(dev, "MR");
	if (ret == 0)
		ret = rereg_check(m, flags, p, &to);
	if (ret != 0)
		return ret;
	in_place = rereg_in_place(m, flags, &to);
	if (in_place < 0) {
		SOFT_LOG(ERR,
			 "%s: cannot change ON_DEMAND of MR 0x%x without BB_MR_REREG_TRANSLATION",
			 dev->name, m->pub.lkey);
		return in_place;
	}
	key = mkey_make(dev, p, &to);
	if (key == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&dev->lock);
	/* The program may have unmapped memory that stays registered. */
	passed = (flags & MLX5_REREG_TRANSLATION) == 0 && soft_mkey_pass_pin(m->mkey, key);
	if (!passed)
		soft_mkey_pin(dev, key);
	ret = in_place == 1 ? rereg_same_key(dev, m->mkey, key)
			    : rereg_other_key(dev, m->mkey, key);
	if (ret == 0) {
		m->mkey = key;
		m->attr = to;
		if ((flags & MLX5_REREG_TRANSLATION) != 0)
			m->writable = soft_kernel_writable(to.access);
		if (in_place == 0)
			m->room = room_of(&to);
		m->pub.lkey = key->key;
		m->pub.rkey = key->key;
		soft_pd_count_mr(m->pd, -1);
		soft_pd_count_mr(p, 1);
		m->pd = p;
	} else if (passed) {
		(void)soft_mkey_pass_pin(key, m->mkey);
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		soft_mkey_free(key);
	return ret;
}
