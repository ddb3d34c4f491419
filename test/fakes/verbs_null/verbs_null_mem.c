/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The null provider's memory: regions, windows and device memory. */
#include <string.h>
#include <sys/queue.h>

#include "verbs_null_priv.h"

struct dm {
	struct verbs_context *none;
	struct ibv_dm dm;
	uint8_t mem[NULL_DM];
};

/* Addresses in device memory count from 0. */
struct null_mr {
	struct ibv_mr mr;
	uint8_t *base; /* NULL: process memory */
	LIST_ENTRY(null_mr) link;
};

static LIST_HEAD(, null_mr) dm_mrs = LIST_HEAD_INITIALIZER(dm_mrs);
static uint32_t next_key = 0x100;

void *
null_at(uint32_t key, uint64_t addr)
{
	const struct null_mr *m;

	LIST_FOREACH(m, &dm_mrs, link) {
		if (m->mr.lkey == key)
			return m->base + addr;
	}
	return (void *)(uintptr_t)addr;
}

static struct ibv_mw *
alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	if (null_dev.no_mw) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	MAKE(struct ibv_mw, mw);
	mw->pd = pd;
	mw->context = pd->context;
	mw->type = type;
	mw->rkey = next_key += 0x100;
	return mw;
}

static int
dealloc_mw(struct ibv_mw *mw)
{
	return null_destroy("ibv_dealloc_mw", mw);
}

static int
to_dm(struct ibv_dm *dm, uint64_t off, const void *src, size_t len)
{
	int err = null_turn(__func__);

	if (err == 0)
		memcpy(outer_of(dm, struct dm, dm)->mem + off, src, len);
	return err;
}

static int
from_dm(void *dst, struct ibv_dm *dm, uint64_t off, size_t len)
{
	int err = null_turn(__func__);

	if (err == 0)
		memcpy(dst, outer_of(dm, struct dm, dm)->mem + off, len);
	return err;
}

static struct ibv_dm *
alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
	MAKE(struct dm, m);
	m->dm.context = ctx;
	m->dm.memcpy_to_dm = to_dm;
	m->dm.memcpy_from_dm = from_dm;
	null_dev.dm_len = attr->length;
	null_dev.dm_log_align = attr->log_align_req;
	return &m->dm;
}

static int
free_dm(struct ibv_dm *dm)
{
	return null_destroy(__func__, outer_of(dm, struct dm, dm));
}

static struct ibv_mr *
mr_make(struct ibv_pd *pd, void *addr, size_t len, uint8_t *base)
{
	MAKE(struct null_mr, m);
	m->mr.context = pd->context;
	m->mr.pd = pd;
	m->mr.addr = addr;
	m->mr.length = len;
	m->mr.lkey = next_key += 0x100;
	m->mr.rkey = m->mr.lkey;
	m->base = base;
	if (base != NULL)
		LIST_INSERT_HEAD(&dm_mrs, m, link);
	return &m->mr;
}

/* A kernel before 5.7 knows no optional right, and libibverbs drops it in one call only. */
static bool
refuses_access(unsigned int access)
{
	null_dev.reg_access = access;
	return null_dev.no_optional && (access & IBV_ACCESS_OPTIONAL_RANGE) != 0;
}

/* The kernel accepts no other rights for device memory (mlx5_ib_reg_dm_mr()). */
static struct ibv_mr *
reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len, unsigned int access)
{
	if (refuses_access(access) || (access & IBV_ACCESS_ZERO_BASED) == 0 || len > NULL_DM ||
	    off > NULL_DM - len)
		return null_fail(EINVAL);
	return mr_make(pd, NULL, len, outer_of(dm, struct dm, dm)->mem + off);
}

#undef ibv_reg_mr
struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	(void)access;
	return mr_make(pd, addr, len, NULL);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned int access)
{
	null_dev.reg_iova = iova;
	null_dev.reg_access = null_dev.no_optional ? access & ~IBV_ACCESS_OPTIONAL_RANGE : access;
	return mr_make(pd, addr, len, NULL);
}

struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t off, size_t len, uint64_t iova, int fd, int access)
{
	(void)off;
	(void)iova;
	if (refuses_access((unsigned int)access))
		return null_fail(EINVAL);
	return fd < 0 ? null_fail(EBADF) : mr_make(pd, NULL, len, NULL);
}

int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len, int access)
{
	int err = null_turn(__func__);

	null_dev.rereg.flags = flags;
	null_dev.rereg.pd = pd;
	null_dev.rereg.addr = addr;
	null_dev.rereg.len = len;
	null_dev.rereg.access = access;
	if (err == 0 && refuses_access((unsigned int)access))
		err = EINVAL;
	if (err != 0) {
		errno = err;
		return IBV_REREG_MR_ERR_CMD;
	}
	mr->lkey = next_key += 0x100;
	mr->rkey = mr->lkey;
	errno = null_dev.rereg.code != 0 ? EINVAL : 0;
	return null_dev.rereg.code;
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	struct null_mr *m = outer_of(mr, struct null_mr, mr);

	if (m->base != NULL)
		LIST_REMOVE(m, link);
	return null_destroy(__func__, m);
}

void
null_mem_ops(struct verbs_context *v)
{
	v->alloc_dm = alloc_dm;
	v->free_dm = free_dm;
	v->reg_dm_mr = reg_dm_mr;
	/* By their old names: libibverbs calls them through the context. */
	v->context.ops.alloc_mw = alloc_mw;
	v->context.ops.dealloc_mw = dealloc_mw;
}
