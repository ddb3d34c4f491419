/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Protection domains and memory regions. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5.h"

/*
 * A memory key of any kind. Access bits are passed to the kernel unchanged; mlx5_cmd_dv.c asserts
 * that they are equal.
 */
struct mr {
	/* must be the first member, because lib/core holds a pointer to it */
	struct bb_drv_mr base;
	enum bb_drv_mr_kind kind;
	union {
		struct mlx5_mr *mr;
		struct mlx5_obj *obj; /* valid only for kind INDIRECT */
		struct mlx5_mw *mw;   /* valid only for kind MW */
	};
};

int
mlx5_pd_alloc(struct bb_pd *pd)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	struct mlx5_pd *p;
	int ret;

	ret = d->cmd->pd_alloc(d->ctx, &p);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot allocate a PD: %s%s", d->ctx->name, strerror(-ret),
		       bb_mem_hint(ret, false));
		return ret;
	}
	pd->priv = p;
	return 0;
}

int
mlx5_pd_free(struct bb_pd *pd)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	int ret = d->cmd->pd_free(d->ctx, pd->priv);

	if (ret != 0)
		BB_LOG(ERR, "%s: cannot free a PD: %s", d->ctx->name, strerror(-ret));
	return ret;
}

static enum mlx5_mr_kind
kind_of(enum bb_drv_mr_kind kind)
{
	switch (kind) {
	case BB_DRV_MR_MEM:
	case BB_DRV_MR_INDIRECT:
	case BB_DRV_MR_MW:
		break;
	case BB_DRV_MR_DM:
		return MLX5_MR_DM;
	case BB_DRV_MR_DMABUF:
		return MLX5_MR_DMABUF;
	}
	return MLX5_MR_MEM;
}

/* Logs the possible reasons for -ENOMEM from the kernel or the device. */
static void
out_of_keys(const struct mlx5_dev *d)
{
	struct bb_dev_attr attr;

	mlx5_caps_attr(d, &attr);
	BB_LOG(ERR,
	       "%s: out of memory for an MR: the locked memory limit is reached, or all keys of "
	       "the device are in use. Raise the limit (ulimit -l), or register fewer and larger "
	       "regions (max_mr of %u; %u MRs in this process)",
	       d->ctx->name, attr.max_mr, __atomic_load_n(&d->mrs, __ATOMIC_RELAXED));
}

static int
window_make(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct mr *m)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	int ret = d->cmd->mw_alloc(d->ctx, pd->priv, attr->mw_type, &m->mw);

	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot allocate a memory window of type %u: %s%s", d->ctx->name,
		       attr->mw_type, strerror(-ret), bb_mem_hint(ret, false));
		return ret;
	}
	m->base.rkey = m->mw->rkey;
	return 0;
}

static int
indirect_make(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct mr *m)
{
	int ret = mlx5_mkey_create(pd, attr, &m->obj, &m->base.lkey);

	m->base.rkey = m->base.lkey;
	return ret;
}

/* Creates an indirect key or a memory window. Never called in EAL callbacks. */
static int
other_make(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_drv_mr **out)
{
	struct mr *m = calloc(1, sizeof(*m));
	int ret;

	if (m == NULL) {
		BB_LOG(ERR, "%s: out of memory for a memory region or window", pd->dev->name);
		return -ENOMEM;
	}
	m->kind = attr->kind;
	ret = attr->kind == BB_DRV_MR_MW ? window_make(pd, attr, m) : indirect_make(pd, attr, m);
	if (ret != 0) {
		free(m);
		return ret;
	}
	*out = &m->base;
	return 0;
}

/*
 * Checks the rights @access of a registration on a device that accepts only keys with relaxed
 * ordering. Adds that right if no peer writes by the key: the program then learns of data by a CQE,
 * and no CQE overtakes its data. Otherwise the program must request the right, because data of one
 * message may then overtake the data of an earlier message.
 */
static int
relaxed_only(const struct mlx5_dev *d, uint32_t *access)
{
	const uint32_t remote =
		MLX5_ACCESS_REMOTE_WRITE | MLX5_ACCESS_REMOTE_ATOMIC | MLX5_ACCESS_MW_BIND;

	if (!d->caps.relaxed_only || (*access & MLX5_ACCESS_RELAXED_ORDERING) != 0)
		return 0;
	if ((*access & remote) == 0) {
		*access |= MLX5_ACCESS_RELAXED_ORDERING;
		return 0;
	}
	BB_LOG(ERR,
	       "%s: memory not registered with access 0x%x: the device accepts only keys with "
	       "relaxed ordering: add BB_ACCESS_RELAXED_ORDERING if the order in which data of "
	       "several messages arrive does not matter",
	       d->ctx->name, *access);
	return -ENOTSUP;
}

/*
 * Registers memory. May run inside an EAL memory event callback, so it allocates only with
 * calloc().
 */
int
mlx5_mr_reg(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_drv_mr **out)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	struct mlx5_mr_attr a = {
		.kind = kind_of(attr->kind),
		.addr = attr->addr,
		.len = attr->len,
		.iova = attr->iova,
		.access = attr->access,
		.offset = attr->offset,
		.dm = attr->dm == NULL ? NULL : attr->dm->priv,
		.fd = attr->fd,
	};
	struct mr *m;
	int ret;

	if (attr->kind == BB_DRV_MR_INDIRECT || attr->kind == BB_DRV_MR_MW)
		return other_make(pd, attr, out);
	/* For device memory the kernel rejects the right (MLX5_IB_DM_MEMIC_ALLOWED_ACCESS). */
	ret = attr->kind == BB_DRV_MR_DM ? 0 : relaxed_only(d, &a.access);
	if (ret != 0)
		return ret;
	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		BB_LOG(ERR, "%s: out of memory for a memory region or window", d->ctx->name);
		return -ENOMEM;
	}
	m->kind = attr->kind;
	ret = d->cmd->mr_reg(d->ctx, pd->priv, &a, &m->mr);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot register %" PRIu64 " bytes %s %p with access 0x%x: %s%s",
		       d->ctx->name, attr->len,
		       attr->kind == BB_DRV_MR_DMABUF ? "of a dma-buf at" : "at",
		       attr->kind == BB_DRV_MR_DMABUF ? (void *)(uintptr_t)attr->offset
						      : attr->addr,
		       attr->access, strerror(-ret),
		       ret == -ENOMEM ? "" : bb_mem_hint(ret, attr->kind == BB_DRV_MR_DMABUF));
		if (ret == -ENOMEM)
			out_of_keys(d);
		free(m);
		return ret;
	}
	__atomic_add_fetch(&d->mrs, 1, __ATOMIC_RELAXED);
	m->base.lkey = m->mr->lkey;
	m->base.rkey = m->mr->rkey;
	*out = &m->base;
	return 0;
}

int
mlx5_mr_dereg(struct bb_pd *pd, struct bb_drv_mr *mr)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	struct mr *m = container_of(mr, struct mr, base);
	int ret;

	if (m->kind == BB_DRV_MR_INDIRECT)
		ret = mlx5_obj_destroy(d, "DESTROY_MKEY", m->obj);
	else if (m->kind == BB_DRV_MR_MW)
		ret = d->cmd->mw_free(d->ctx, m->mw);
	else
		ret = d->cmd->mr_dereg(d->ctx, m->mr);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot release key 0x%x: %s", d->ctx->name, mr->rkey,
		       strerror(-ret));
		return ret;
	}
	if (m->kind != BB_DRV_MR_INDIRECT && m->kind != BB_DRV_MR_MW)
		__atomic_sub_fetch(&d->mrs, 1, __ATOMIC_RELAXED);
	free(m);
	return 0;
}

int
mlx5_mr_rereg(struct bb_pd *pd, struct bb_drv_mr *mr, uint32_t flags, struct bb_pd *new_pd,
	      void *addr, uint64_t len, uint32_t access)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	struct mr *m = container_of(mr, struct mr, base);
	int ret = (flags & BB_MR_REREG_ACCESS) != 0 ? relaxed_only(d, &access) : 0;

	if (ret != 0)
		return ret;
	ret = d->cmd->mr_rereg(d->ctx, m->mr, flags, new_pd != NULL ? new_pd->priv : NULL, addr,
			       len, access);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot re-register lkey 0x%x (flags 0x%x): %s%s", d->ctx->name,
		       mr->lkey, flags, strerror(-ret),
		       ret == -EACCES   ? ": the MR was registered without write access; set "
					  "BB_MR_REREG_TRANSLATION too"
		       : ret == -ENOMEM ? ""
					: bb_mem_hint(ret, false));
		if (ret == -ENOMEM)
			out_of_keys(d);
		return ret;
	}
	mr->lkey = m->mr->lkey;
	mr->rkey = m->mr->rkey;
	return 0;
}
