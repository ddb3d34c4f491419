/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Device memory, and MRs of dma-bufs. */
#include <errno.h>

#include "ibv_subst_priv.h"

static int
to_dm(struct ibv_dm *dm, uint64_t dm_offset, const void *host_addr, size_t length)
{
	int err = turn("memcpy_to_dm");

	if (err != 0)
		return err;
	return -soft_cmd_if.dm_write(ctx_of(dm->context)->soft, ((struct dm *)(void *)dm)->soft,
				     dm_offset, host_addr, length);
}

static int
from_dm(void *host_addr, struct ibv_dm *dm, uint64_t dm_offset, size_t length)
{
	int err = turn("memcpy_from_dm");

	if (err != 0)
		return err;
	return -soft_cmd_if.dm_read(ctx_of(dm->context)->soft, ((struct dm *)(void *)dm)->soft,
				    host_addr, dm_offset, length);
}

static struct ibv_dm *
alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct mlx5_dm *soft;
	struct dm *d;
	int err = turn("ibv_alloc_dm"), ret;

	subst.dm_log_align = attr->log_align_req;
	if (err == 0 && attr->comp_mask != 0)
		err = EINVAL;
	if (err != 0)
		return null(err);
	ret = soft_cmd_if.dm_alloc(ctx_of(context)->soft, attr->length, attr->log_align_req, &soft);
	if (ret != 0)
		return null(-ret);
	d = handle(sizeof(*d));
	d->pub.context = context;
	d->pub.memcpy_to_dm = to_dm;
	d->pub.memcpy_from_dm = from_dm;
	d->soft = soft;
	return &d->pub;
}

static int
destroy_dm(void *h)
{
	struct dm *d = h;

	return soft_cmd_if.dm_free(ctx_of(d->pub.context)->soft, d->soft);
}

static int
free_dm(struct ibv_dm *dm)
{
	return destroyed("ibv_free_dm", destroy_dm, dm, dm);
}

static struct ibv_mr *
reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
	  unsigned int access)
{
	struct mlx5_mr_attr attr = {
		.kind = MLX5_MR_DM,
		.len = length,
		.access = access,
		.offset = dm_offset,
		.dm = ((struct dm *)(void *)dm)->soft,
	};
	int err = turn("ibv_reg_dm_mr");

	/* As ibv_cmd_reg_dm_mr(). */
	if (err == 0 && (access & IBV_ACCESS_ZERO_BASED) == 0)
		err = EINVAL;
	return err != 0 ? null(err) : subst_reg_mr(pd, &attr);
}

void
subst_dm_ops(struct verbs_context *verbs)
{
	verbs->alloc_dm = alloc_dm;
	verbs->free_dm = free_dm;
	verbs->reg_dm_mr = reg_dm_mr;
}

struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
		  int access)
{
	struct mlx5_mr_attr attr = {
		.kind = MLX5_MR_DMABUF,
		.len = length,
		.iova = iova,
		.access = (uint32_t)access,
		.offset = offset,
		.fd = fd,
	};
	int err = turn(__func__);

	if (err == 0 && subst.no_dmabuf)
		err = EOPNOTSUPP;
	/* The probe at open, which must not be logged. */
	if (err == 0 && fd == -1)
		err = EBADF;
	return err != 0 ? null(err) : subst_reg_mr(pd, &attr);
}
