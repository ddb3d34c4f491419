/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* umems: memory of the process or of a dma-buf, for rings and doorbell records. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "soft_ctl.h"
#include "soft_kernel.h"

/*
 * Chooses the page size with which the device maps a umem. Returns 0, or a negative errno, logged.
 */
static int
choose_page(const char *name, uint64_t addr, uint64_t len, uint64_t real_page, uint64_t pgsz_bitmap,
	    uint64_t *pgsz)
{
	const uint64_t host = soft_kernel_host_page();

	*pgsz = soft_kernel_umem_pgsz(host, addr, len, real_page, pgsz_bitmap);
	if (*pgsz != 0)
		return 0;
	SOFT_LOG(ERR,
		 "%s: cannot register a umem of %" PRIu64 " bytes at 0x%" PRIx64
		 ": no page size in pgsz_bitmap 0x%" PRIx64 " fits memory with pages of %" PRIu64
		 " bytes: set bit 0x%" PRIx64 " in pgsz_bitmap",
		 name, len, addr, pgsz_bitmap, real_page, host);
	return -EINVAL;
}

int
soft_umem_enter(struct soft_ctx *ctx, struct soft_umem *u)
{
	uint32_t id;

	if (soft_ids_alloc(&ctx->dev->ctl->umem_ids, &id) != 0)
		return -ENOMEM;
	u->ctx = ctx;
	u->pub.id = id;
	ctx->dev->ctl->umems[id] = u;
	ctx->umems++;
	return 0;
}

void
soft_umem_leave(struct soft_umem *u)
{
	struct soft_ctl *ctl = u->ctx->dev->ctl;

	ctl->umems[u->pub.id] = NULL;
	soft_ids_free(&ctl->umem_ids, u->pub.id);
	u->ctx->umems--;
}

/* Enters @u in the table. On an error the caller still owns @u. */
static int
publish(struct soft_ctx *ctx, struct soft_umem *u, struct mlx5_umem **umem)
{
	struct soft_dev *dev = ctx->dev;
	int ret;

	pthread_mutex_lock(&dev->lock);
	ret = soft_umem_enter(ctx, u);
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		SOFT_LOG(ERR, "%s: all %u umems are in use: deregister some", dev->name,
			 1u << SOFT_LOG_MAX_UMEM);
		return -ENOMEM;
	}
	*umem = &u->pub;
	return 0;
}

static struct soft_umem *
umem_new(const struct soft_dev *dev, uint64_t len, uint32_t access)
{
	struct soft_umem *u = calloc(1, sizeof(*u));

	if (u == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for a umem", dev->name);
		return NULL;
	}
	u->len = len;
	u->writable = (access & MLX5_ACCESS_LOCAL_WRITE) != 0;
	return u;
}

int
soft_umem_reg(struct mlx5_ctx *ctx_, void *addr, size_t len, uint32_t access, uint64_t pgsz_bitmap,
	      struct mlx5_umem **umem)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_dev *dev = ctx->dev;
	const uint64_t host = soft_kernel_host_page();
	uint64_t page = host;
	struct soft_umem *u;
	int ret;

	ret = soft_kernel_umem_access(access);
	if (ret == 0)
		ret = soft_fault_check(dev, "umem");
	if (ret == 0)
		ret = soft_mem_check(dev->name, "umem", addr, len,
				     (access & MLX5_ACCESS_LOCAL_WRITE) != 0);
	/*
	 * Reading smaps is slow, so the page size of the memory is read only if the choice depends
	 * on it.
	 */
	if (ret == 0 && pgsz_bitmap != host && len > host) {
		ret = soft_maps_page(addr, len, &page);
		if (ret != 0)
			SOFT_LOG(ERR,
				 "%s: cannot find the page size of a umem: cannot read "
				 "/proc/self/smaps: %s",
				 dev->name, strerror(-ret));
		page = RTE_MAX(page, host);
	}
	if (ret != 0)
		return ret;
	u = umem_new(dev, len, access);
	if (u == NULL)
		return -ENOMEM;
	u->base = addr;
	ret = choose_page(dev->name, (uintptr_t)addr, len, page, pgsz_bitmap, &u->pgsz);
	if (ret == 0)
		ret = publish(ctx, u, umem);
	if (ret != 0)
		free(u);
	return ret;
}

int
soft_umem_reg_dmabuf(struct mlx5_ctx *ctx_, int fd, uint64_t offset, size_t len, uint32_t access,
		     uint64_t pgsz_bitmap, struct mlx5_umem **umem)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_dev *dev = ctx->dev;
	struct soft_umem *u;
	int ret;

	ret = soft_kernel_umem_access(access);
	if (ret == 0)
		ret = soft_fault_check(dev, "umem");
	if (ret != 0)
		return ret;
	u = umem_new(dev, len, access);
	if (u == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&dev->lock);
	ret = soft_dmabuf_map(dev, "umem", fd, offset, len, u->writable, &u->map);
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		goto free_umem;
	u->base = u->map.base;
	/* The page size of the exporter is unknown, so the smallest size is assumed. */
	ret = choose_page(dev->name, offset, len, soft_kernel_host_page(), pgsz_bitmap, &u->pgsz);
	if (ret == 0)
		ret = publish(ctx, u, umem);
	if (ret != 0)
		goto unmap;
	return 0;

unmap:
	soft_dmabuf_unmap(&u->map);
free_umem:
	free(u);
	return ret;
}

int
soft_umem_dereg(struct mlx5_ctx *ctx_, struct mlx5_umem *umem)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_umem *u = (struct soft_umem *)umem;
	struct soft_dev *dev = ctx->dev;

	if (u->ctx != ctx) {
		SOFT_LOG(ERR,
			 "%s: cannot deregister umem 0x%x: it belongs to another device context",
			 dev->name, u->pub.id);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	if (u->refs != 0) {
		pthread_mutex_unlock(&dev->lock);
		SOFT_LOG(ERR,
			 "%s: cannot deregister umem 0x%x: it holds %u buffers and doorbell "
			 "records: destroy the CQs and QPs first",
			 dev->name, u->pub.id, u->refs);
		return -EBUSY;
	}
	soft_umem_leave(u);
	pthread_mutex_unlock(&dev->lock);
	soft_dmabuf_unmap(&u->map);
	free(u);
	return 0;
}
