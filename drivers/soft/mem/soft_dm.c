/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Device memory (memic). Allocated in pages as the kernel does (drivers/infiniband/hw/mlx5/dm.c).
 * Every allocation takes whole pages of the device's memory window, so it starts at a page
 * boundary. The device reports no larger alignment.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "soft_dm.h"
#include "soft_host.h"
#include "soft_kernel.h"

/* Fill byte of new device memory, because a card does not promise zeros (assumption [A]). */
#define FRESH 0xd3

int
soft_dm_start(struct soft_dev *dev)
{
	struct soft_memic *m = &dev->ctl->memic;

	m->pages = dev->opts.no_dm ? 0 : dev->opts.dm / SOFT_KERNEL_PAGE;
	if (m->pages == 0)
		return 0;
	m->owner = calloc(m->pages, sizeof(m->owner[0]));
	m->mem = soft_node_dm(dev, m->pages);
	if (m->owner != NULL && m->mem != NULL)
		return 0;
	SOFT_LOG(ERR,
		 "%s: cannot open the device: out of memory for %u bytes of device memory (option "
		 "dm)",
		 dev->name, dev->opts.dm);
	soft_dm_stop(dev);
	return -ENOMEM;
}

void
soft_dm_stop(struct soft_dev *dev)
{
	struct soft_memic *m = &dev->ctl->memic;

	free(m->owner);
	if (m->mem != NULL)
		(void)munmap(m->mem, (size_t)m->pages * SOFT_KERNEL_PAGE);
	memset(m, 0, sizeof(*m));
}

/*
 * Returns the first of @n consecutive free pages from @first on and before @end, or @end if no such
 * range exists (like bitmap_find_next_zero_area() of the kernel).
 */
static uint32_t
find_pages(const struct soft_memic *m, uint32_t n, uint32_t first, uint32_t end)
{
	uint32_t i, run = 0;

	for (i = first; i < end; i++) {
		run = m->owner[i] != NULL ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return end;
}

static uint32_t
pages_of(uint64_t len)
{
	return (uint32_t)((len + SOFT_KERNEL_PAGE - 1) / SOFT_KERNEL_PAGE);
}

struct soft_dm *
soft_dm_take(struct soft_ctx *ctx, uint64_t len, uint32_t first, uint32_t end)
{
	struct soft_memic *m = &ctx->dev->ctl->memic;
	uint32_t n = pages_of(len), page = find_pages(m, n, first, end), i;
	struct soft_dm *d;

	if (page == end)
		return NULL;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return NULL;
	d->pub.len = len;
	d->ctx = ctx;
	d->page = page;
	d->pages = n;
	d->base = m->mem + (size_t)page * SOFT_KERNEL_PAGE;
	for (i = 0; i < n; i++)
		m->owner[page + i] = d;
	memset(d->base, FRESH, (size_t)n * SOFT_KERNEL_PAGE);
	return d;
}

void
soft_dm_give(struct soft_dm *d)
{
	memset(d->ctx->dev->ctl->memic.owner + d->page, 0, d->pages * sizeof(struct soft_dm *));
	free(d);
}

struct soft_dm *
soft_dm_find(const struct soft_dev *dev, uint64_t addr, uint64_t len)
{
	const struct soft_memic *m = &dev->ctl->memic;
	uint64_t at = addr - SOFT_DM_BAR, off;
	struct soft_dm *d;

	if (addr < SOFT_DM_BAR || at / SOFT_KERNEL_PAGE >= m->pages)
		return NULL;
	d = m->owner[at / SOFT_KERNEL_PAGE];
	if (d == NULL)
		return NULL;
	off = at - (uint64_t)d->page * SOFT_KERNEL_PAGE;
	return len > d->pub.len || off > d->pub.len - len ? NULL : d;
}

uint8_t *
soft_dm_at(struct mlx5_ctx *ctx, uint64_t addr, uint64_t len)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	struct soft_dm *d;
	uint8_t *at = NULL;

	pthread_mutex_lock(&dev->lock);
	d = soft_dm_find(dev, addr, len);
	if (d != NULL)
		at = dev->ctl->memic.mem + (addr - SOFT_DM_BAR);
	pthread_mutex_unlock(&dev->lock);
	return at;
}

int
soft_dm_alloc(struct mlx5_ctx *ctx_, uint64_t len, uint32_t log_align, struct mlx5_dm **dm)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_dev *dev = ctx->dev;
	struct soft_memic *m = &dev->ctl->memic;
	uint64_t max = (uint64_t)m->pages * SOFT_KERNEL_PAGE;
	struct soft_dm *d;
	int ret;

	ret = soft_kernel_dm(dev->name, len, log_align, max, SOFT_LOG_DM_ALIGN);
	if (ret == 0)
		ret = soft_fault_check(dev, "device memory");
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	d = soft_dm_take(ctx, len, 0, m->pages);
	if (d != NULL)
		ctx->dms++;
	pthread_mutex_unlock(&dev->lock);
	if (d == NULL) {
		SOFT_LOG(ERR,
			 "%s: cannot allocate %u contiguous pages of 4096 bytes of the %u pages of "
			 "device memory: free some, or open the device with a larger dm=BYTES",
			 dev->name, pages_of(len), m->pages);
		return -ENOMEM;
	}
	*dm = &d->pub;
	return 0;
}

int
soft_dm_free(struct mlx5_ctx *ctx_, struct mlx5_dm *dm)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_dm *d = (struct soft_dm *)dm;
	struct soft_dev *dev = ctx->dev;

	if (d->ctx != ctx) {
		SOFT_LOG(ERR,
			 "%s: cannot free device memory that belongs to another device context",
			 dev->name);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	/* The kernel's uverbs_free_dm() makes this check, too. */
	if (d->mrs != 0) {
		pthread_mutex_unlock(&dev->lock);
		SOFT_LOG(ERR,
			 "%s: cannot free device memory that %u MRs use: deregister them first",
			 dev->name, d->mrs);
		return -EBUSY;
	}
	soft_dm_give(d);
	ctx->dms--;
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

int
soft_dm_write(struct mlx5_ctx *ctx, struct mlx5_dm *dm, uint64_t off, const void *src, size_t len)
{
	struct soft_dm *d = (struct soft_dm *)dm;
	const uint8_t *from = src;
	uint32_t *to, word;
	size_t i;
	int ret = soft_kernel_dm_copy(ctx->name, d->pub.len, off, len);

	if (ret != 0)
		return ret;
	to = (uint32_t *)(void *)(d->base + off);
	/*
	 * Copies word by word, as libmlx5 does. No program may rely on the order, because libmlx5
	 * promises none. This loop runs backwards.
	 */
	for (i = len / sizeof(word); i-- > 0;) {
		memcpy(&word, from + i * sizeof(word), sizeof(word));
		__atomic_store_n(&to[i], word, __ATOMIC_RELEASE);
	}
	return 0;
}

int
soft_dm_read(struct mlx5_ctx *ctx, struct mlx5_dm *dm, void *dst, uint64_t off, size_t len)
{
	struct soft_dm *d = (struct soft_dm *)dm;
	uint8_t *to = dst;
	uint32_t *from, word;
	size_t i;
	int ret = soft_kernel_dm_copy(ctx->name, d->pub.len, off, len);

	if (ret != 0)
		return ret;
	from = (uint32_t *)(void *)(d->base + off);
	for (i = len / sizeof(word); i-- > 0;) {
		word = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
		memcpy(to + i * sizeof(word), &word, sizeof(word));
	}
	return 0;
}

int
soft_dm_mr(const struct soft_ctx *ctx, const struct mlx5_mr_attr *attr, uint8_t **base)
{
	const struct soft_dm *d = (const struct soft_dm *)attr->dm;
	int ret;

	if (d->ctx != ctx) {
		SOFT_LOG(ERR,
			 "%s: cannot register device memory that belongs to another device context",
			 ctx->dev->name);
		return -EINVAL;
	}
	ret = soft_kernel_dm_mr(ctx->dev->name, attr->access, attr->offset, attr->len, d->pub.len);
	if (ret == 0)
		*base = d->base + attr->offset;
	return ret;
}
