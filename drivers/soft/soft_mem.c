/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "soft_ctl.h"
#include "soft_kernel.h"

/* What ib_umem_get() refuses before and while it pins. */
static int
check_range(const char *name, const char *what, const void *addr, size_t len, bool write)
{
	uint64_t start = (uintptr_t)addr;
	int ret;

	if (len == 0 || len > UINT64_MAX - start || start + len > UINT64_MAX - 4095) {
		SOFT_LOG(ERR, "%s: %s of %zu bytes at %p: empty, or past the end of memory", name,
			 what, len, addr);
		return -EINVAL;
	}
	ret = soft_maps_check(addr, len, write);
	if (ret == -EFAULT)
		SOFT_LOG(ERR, "%s: %s of %zu bytes at %p: not all of it is mapped %s", name, what,
			 len, addr, write ? "for writing" : "for reading");
	else if (ret != 0)
		SOFT_LOG(ERR, "%s: %s: /proc/self/maps cannot be read, errno %d", name, what, -ret);
	return ret;
}

int
soft_umem_reg(struct mlx5_ctx *ctx_, void *addr, size_t len, uint32_t access, uint64_t pgsz_bitmap,
	      struct mlx5_umem **umem)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_dev *dev = ctx->dev;
	struct soft_umem *u;
	uint32_t id;
	int ret;

	ret = soft_kernel_umem_access(access);
	if (ret != 0)
		return ret;
	ret = check_range(dev->name, "umem", addr, len, (access & MLX5_ACCESS_LOCAL_WRITE) != 0);
	if (ret != 0)
		return ret;
	u = calloc(1, sizeof(*u));
	if (u == NULL) {
		SOFT_LOG(ERR, "%s: no memory for a umem", dev->name);
		return -ENOMEM;
	}
	u->pgsz = soft_kernel_umem_pgsz((uintptr_t)addr, len, pgsz_bitmap);
	if (u->pgsz == 0) {
		SOFT_LOG(ERR,
			 "%s: umem of %zu bytes at %p: no page size of 0x%" PRIx64
			 " starts there and divides the length: align it, or allow 4096",
			 dev->name, len, addr, pgsz_bitmap);
		free(u);
		return -EINVAL;
	}
	u->base = addr;
	u->len = len;
	u->writable = (access & MLX5_ACCESS_LOCAL_WRITE) != 0;
	u->ctx = ctx;
	pthread_mutex_lock(&dev->lock);
	ret = soft_ids_alloc(&dev->ctl->umem_ids, &id);
	if (ret == 0) {
		u->pub.id = id;
		dev->ctl->umems[id] = u;
		ctx->umems++;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		SOFT_LOG(ERR, "%s: all %u umems are in use", dev->name, 1u << SOFT_LOG_MAX_UMEM);
		free(u);
		return -ENOMEM;
	}
	*umem = &u->pub;
	return 0;
}

int
soft_umem_dereg(struct mlx5_ctx *ctx_, struct mlx5_umem *umem)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_umem *u = (struct soft_umem *)umem;
	struct soft_dev *dev = ctx->dev;

	if (u->ctx != ctx) {
		SOFT_LOG(ERR, "%s: umem 0x%x is another context's", dev->name, u->pub.id);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	if (u->refs != 0) {
		pthread_mutex_unlock(&dev->lock);
		SOFT_LOG(ERR,
			 "%s: umem 0x%x holds %u buffers and records: destroy the CQs and QPs "
			 "first",
			 dev->name, u->pub.id, u->refs);
		return -EBUSY;
	}
	dev->ctl->umems[u->pub.id] = NULL;
	soft_ids_free(&dev->ctl->umem_ids, u->pub.id);
	ctx->umems--;
	pthread_mutex_unlock(&dev->lock);
	free(u);
	return 0;
}

int
soft_pd_alloc(struct mlx5_ctx *ctx_, struct mlx5_pd **pd)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_dev *dev = ctx->dev;
	struct soft_pd *p;
	int ret;

	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		SOFT_LOG(ERR, "%s: no memory for a PD", dev->name);
		return -ENOMEM;
	}
	p->ctx = ctx;
	pthread_mutex_lock(&dev->lock);
	ret = soft_ids_alloc(&dev->ctl->pd_ids, &p->pub.pdn);
	if (ret == 0) {
		dev->ctl->pds[p->pub.pdn] = p;
		ctx->pds++;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		SOFT_LOG(ERR, "%s: all %u PDs are in use", dev->name, 1u << SOFT_LOG_MAX_PD);
		free(p);
		return -ENOMEM;
	}
	*pd = &p->pub;
	return 0;
}

int
soft_pd_free(struct mlx5_ctx *ctx_, struct mlx5_pd *pd)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_pd *p = (struct soft_pd *)pd;
	struct soft_dev *dev = ctx->dev;

	if (p->ctx != ctx) {
		SOFT_LOG(ERR, "%s: PD 0x%x is another context's", dev->name, p->pub.pdn);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	if (p->mrs != 0 || p->qps != 0) {
		pthread_mutex_unlock(&dev->lock);
		SOFT_LOG(ERR, "%s: PD 0x%x has %u MRs and %u QPs: destroy them first", dev->name,
			 p->pub.pdn, p->mrs, p->qps);
		return -EBUSY;
	}
	dev->ctl->pds[p->pub.pdn] = NULL;
	soft_ids_free(&dev->ctl->pd_ids, p->pub.pdn);
	ctx->pds--;
	pthread_mutex_unlock(&dev->lock);
	free(p);
	return 0;
}

int
soft_mr_reg(struct mlx5_ctx *ctx_, struct mlx5_pd *pd, void *addr, size_t len, uint32_t access,
	    struct mlx5_mr **mr)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_pd *p = (struct soft_pd *)pd;
	struct soft_dev *dev = ctx->dev;
	struct soft_mr *m;
	uint32_t id;
	int ret;

	if (p->ctx != ctx) {
		SOFT_LOG(ERR, "%s: PD 0x%x is another context's", dev->name, p->pub.pdn);
		return -EINVAL;
	}
	ret = soft_kernel_mr_access(access);
	if (ret != 0)
		return ret;
	if ((access & MLX5_ACCESS_REMOTE_ATOMIC) != 0 && dev->opts.no_atomic) {
		SOFT_LOG(ERR, "%s: MR with REMOTE_ATOMIC: the device has no atomics", dev->name);
		return -EINVAL;
	}
	ret = check_range(dev->name, "MR", addr, len, (access & MLX5_ACCESS_LOCAL_WRITE) != 0);
	if (ret != 0)
		return ret;
	m = calloc(1, sizeof(*m));
	if (m != NULL)
		m->mkey = calloc(1, sizeof(*m->mkey));
	if (m == NULL || m->mkey == NULL) {
		SOFT_LOG(ERR, "%s: no memory for an MR", dev->name);
		free(m);
		return -ENOMEM;
	}
	m->ctx = ctx;
	m->pd = p;
	*m->mkey = (struct soft_mkey){
		.pdn = p->pub.pdn,
		.start = (uintptr_t)addr,
		.len = len,
		.base = addr,
		.lw = (access & MLX5_ACCESS_LOCAL_WRITE) != 0,
		.rr = (access & MLX5_ACCESS_REMOTE_READ) != 0,
		.rw = (access & MLX5_ACCESS_REMOTE_WRITE) != 0,
		.atomic = (access & MLX5_ACCESS_REMOTE_ATOMIC) != 0,
	};
	pthread_mutex_lock(&dev->lock);
	ret = soft_ids_alloc(&dev->ctl->mkey_ids, &id);
	if (ret == 0) {
		/* The variant moves on, so that a key that was given back finds nothing. */
		m->mkey->key = id << 8 | dev->ctl->mkey_variant[id]++;
		m->pub.lkey = m->mkey->key;
		m->pub.rkey = m->mkey->key;
		__atomic_store_n(&dev->mkeys[id], m->mkey, __ATOMIC_RELEASE);
		p->mrs++;
		ctx->mrs++;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		SOFT_LOG(ERR, "%s: all %u mkeys are in use: register larger pieces", dev->name,
			 1u << SOFT_LOG_MAX_MKEY);
		free(m->mkey);
		free(m);
		return -ENOMEM;
	}
	*mr = &m->pub;
	return 0;
}

int
soft_mr_dereg(struct mlx5_ctx *ctx_, struct mlx5_mr *mr)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_mr *m = (struct soft_mr *)mr;
	struct soft_dev *dev = ctx->dev;
	uint32_t id = m->mkey->key >> 8;

	if (m->ctx != ctx) {
		SOFT_LOG(ERR, "%s: MR 0x%x is another context's", dev->name, m->pub.lkey);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	__atomic_store_n(&dev->mkeys[id], NULL, __ATOMIC_RELEASE);
	/* After this no engine works with the key: the memory may go. */
	soft_quiesce();
	soft_ids_free(&dev->ctl->mkey_ids, id);
	m->pd->mrs--;
	ctx->mrs--;
	pthread_mutex_unlock(&dev->lock);
	free(m->mkey);
	free(m);
	return 0;
}
