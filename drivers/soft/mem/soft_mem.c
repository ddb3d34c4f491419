/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "soft_access.h"
#include "soft_ctl.h"
#include "soft_kernel.h"

int
soft_mem_range(const char *name, const char *what, const void *addr, size_t len)
{
	uint64_t start = (uintptr_t)addr;

	if (len == 0 || len > UINT64_MAX - start || start + len > UINT64_MAX - 4095) {
		SOFT_LOG(ERR,
			 "%s: invalid %s of %zu bytes at %p: the range is empty or ends after the "
			 "address space",
			 name, what, len, addr);
		return -EINVAL;
	}
	return 0;
}

/*
 * Maximum length of memory that soft_mem_check() populates, bytes. The kernel populates memory of
 * any length when it pins it, but memory that the program has not touched yet costs time and pages.
 */
#define POPULATE_MAX ((size_t)64 << 10)

int
soft_mem_check(const char *name, const char *what, const void *addr, size_t len, bool write)
{
	int ret = soft_mem_range(name, what, addr, len);

	if (ret != 0)
		return ret;
	/*
	 * One system call instead of a look at the mappings, which is slow before Linux 6.11. It
	 * fails if a part is not mapped, and before Linux 5.14.
	 */
	if (len <= POPULATE_MAX && soft_paged_populate((uint8_t *)(uintptr_t)addr, len, write))
		return 0;
	ret = soft_maps_check(addr, len, write);
	if (ret == -EFAULT)
		SOFT_LOG(
			ERR,
			"%s: invalid %s of %zu bytes at %p: not all of this memory is mapped %s, or it "
			"lies after the end of a mapped file",
			name, what, len, addr, write ? "for writing" : "for reading");
	else if (ret != 0)
		SOFT_LOG(ERR,
			 "%s: cannot check the memory of the %s: cannot read /proc/self/maps: %s",
			 name, what, strerror(-ret));
	return ret;
}

int
soft_pd_alloc(struct mlx5_ctx *ctx_, struct mlx5_pd **pd)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_dev *dev = ctx->dev;
	struct soft_pd *p;
	int ret = soft_fault_check(dev, "PD");

	if (ret != 0)
		return ret;
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for a PD", dev->name);
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
		SOFT_LOG(ERR, "%s: all %u PDs are in use: free some", dev->name,
			 1u << SOFT_LOG_MAX_PD);
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
	bool busy;

	if (p->ctx != ctx) {
		SOFT_LOG(ERR, "%s: cannot free PD 0x%x: it belongs to another device context",
			 dev->name, p->pub.pdn);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	/* A UMR may move a key to this PD at the same time; umr_lock excludes that. */
	rte_ticketlock_lock(&dev->umr_lock);
	busy = p->mrs != 0 || p->qps != 0 || p->rmps != 0;
	if (!busy)
		dev->ctl->pds[p->pub.pdn] = NULL;
	rte_ticketlock_unlock(&dev->umr_lock);
	if (busy) {
		pthread_mutex_unlock(&dev->lock);
		SOFT_LOG(ERR,
			 "%s: cannot free PD 0x%x: it has %u MRs, %u QPs and %u RMPs: destroy them "
			 "first",
			 dev->name, p->pub.pdn, p->mrs, p->qps, p->rmps);
		return -EBUSY;
	}
	soft_ids_free(&dev->ctl->pd_ids, p->pub.pdn);
	ctx->pds--;
	pthread_mutex_unlock(&dev->lock);
	free(p);
	return 0;
}

void
soft_pd_count_mr(struct soft_pd *pd, int change)
{
	__atomic_fetch_add(&pd->mrs, (uint32_t)change, __ATOMIC_RELAXED);
}

bool
soft_mkey_move(struct soft_dev *dev, struct soft_mkey *m, uint32_t pdn)
{
	struct soft_pd *to = pdn < 1u << SOFT_LOG_MAX_PD ? dev->ctl->pds[pdn] : NULL;

	if (to == NULL || to->ctx->host != m->window.host)
		return false;
	soft_pd_count_mr(dev->ctl->pds[m->pdn], -1);
	soft_pd_count_mr(to, 1);
	__atomic_store_n(&m->pdn, pdn, __ATOMIC_RELAXED);
	return true;
}
