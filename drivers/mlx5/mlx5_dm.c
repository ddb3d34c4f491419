/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Device memory, and umems of the application. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "mlx5.h"

int
mlx5_dm_alloc(struct bb_dm_ctrl *dm)
{
	struct mlx5_dev *d = mlx5_dev_of(dm->pub.dev);
	struct mlx5_dm *m;
	int ret = d->cmd->dm_alloc(d->ctx, dm->pub.len, dm->pub.log_align, &m);

	if (ret != 0) {
		BB_LOG(ERR,
		       "%s: cannot allocate %" PRIu64 " bytes of device memory aligned to 2^%u: "
		       "%s%s",
		       d->ctx->name, dm->pub.len, dm->pub.log_align, strerror(-ret),
		       ret == -ENOMEM
			       ? ": the free device memory is too small (all processes share the "
				 "device memory): free some"
			       : "");
		return ret;
	}
	dm->priv = m;
	return 0;
}

int
mlx5_dm_free(struct bb_dm_ctrl *dm)
{
	struct mlx5_dev *d = mlx5_dev_of(dm->pub.dev);
	int ret = d->cmd->dm_free(d->ctx, dm->priv);

	if (ret != 0)
		BB_LOG(ERR, "%s: cannot free %" PRIu64 " bytes of device memory: %s", d->ctx->name,
		       dm->pub.len, strerror(-ret));
	return ret;
}

static int
copied(const struct mlx5_dev *d, uint64_t off, size_t len, int ret)
{
	if (ret != 0)
		BB_LOG(ERR, "%s: cannot copy %zu bytes at offset %" PRIu64 " of device memory: %s",
		       d->ctx->name, len, off, strerror(-ret));
	return ret;
}

int
mlx5_dm_write(struct bb_dm_ctrl *dm, uint64_t off, const void *src, size_t len)
{
	struct mlx5_dev *d = mlx5_dev_of(dm->pub.dev);

	return copied(d, off, len, d->cmd->dm_write(d->ctx, dm->priv, off, src, len));
}

int
mlx5_dm_read(struct bb_dm_ctrl *dm, void *dst, uint64_t off, size_t len)
{
	struct mlx5_dev *d = mlx5_dev_of(dm->pub.dev);

	return copied(d, off, len, d->cmd->dm_read(d->ctx, dm->priv, dst, off, len));
}

int
mlx5_umem_reg(struct bb_umem_ctrl *umem, const struct bb_umem_attr *attr)
{
	struct mlx5_dev *d = mlx5_dev_of(umem->pub.dev);
	struct mlx5_umem *u;
	int ret;

	if (attr->dmabuf_fd == -1)
		ret = d->cmd->umem_reg(d->ctx, attr->addr, attr->len, attr->access,
				       attr->pgsz_bitmap, &u);
	else
		ret = d->cmd->umem_reg_dmabuf(d->ctx, attr->dmabuf_fd, (uintptr_t)attr->addr,
					      attr->len, attr->access, attr->pgsz_bitmap, &u);
	if (ret != 0) {
		BB_LOG(ERR,
		       "%s: cannot register a umem of %zu bytes at %p%s, pgsz_bitmap 0x%" PRIx64
		       ": %s%s",
		       d->ctx->name, attr->len, attr->addr,
		       attr->dmabuf_fd == -1 ? "" : " of a dma-buf", attr->pgsz_bitmap,
		       strerror(-ret), bb_mem_hint(ret, attr->dmabuf_fd != -1));
		return ret;
	}
	umem->priv = u;
	umem->pub.id = u->id;
	return 0;
}

int
mlx5_umem_dereg(struct bb_umem_ctrl *umem)
{
	struct mlx5_dev *d = mlx5_dev_of(umem->pub.dev);
	int ret = d->cmd->umem_dereg(d->ctx, umem->priv);

	if (ret != 0)
		BB_LOG(ERR, "%s: cannot deregister umem 0x%x: %s%s", d->ctx->name, umem->pub.id,
		       strerror(-ret),
		       ret == -EBUSY ? ": destroy the objects in the umem first" : "");
	return ret;
}
