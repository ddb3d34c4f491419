/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Device memory on libibverbs, and the probe for dma-buf support. */
#include <errno.h>
#include <stdlib.h>

#include "bb_barrier.h"
#include "mlx5_cmd_dv.h"

struct dv_dm {
	struct mlx5_dm base;
	struct ibv_dm *ibv;
};

struct ibv_dm *
dv_dm_handle(const struct mlx5_dm *dm)
{
	return ((const struct dv_dm *)(const void *)dm)->ibv;
}

int
dv_dm_alloc(struct mlx5_ctx *ctx, uint64_t len, uint32_t log_align, struct mlx5_dm **dm)
{
	struct ibv_alloc_dm_attr attr = {.length = len, .log_align_req = log_align};
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct dv_dm *m;
	int ret;

	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	errno = 0;
	m->ibv = ibv_alloc_dm(c->ibv, &attr);
	if (m->ibv == NULL) {
		ret = bb_ibv_errno();
		free(m);
		return ret;
	}
	m->base.len = len;
	dv_born(c);
	*dm = &m->base;
	return 0;
}

int
dv_dm_free(struct mlx5_ctx *ctx, struct mlx5_dm *dm)
{
	int ret = dv_died(dv_ctx_of(ctx), ibv_free_dm(dv_dm_handle(dm)));

	if (ret == 0)
		free(dm);
	return ret;
}

int
dv_dm_write(struct mlx5_ctx *ctx, struct mlx5_dm *dm, uint64_t off, const void *src, size_t len)
{
	int ret = ibv_memcpy_to_dm(dv_dm_handle(dm), off, src, len);

	(void)ctx;
	/*
	 * The mapping is write-combining, so flush: a doorbell must not overtake data in the
	 * write-combining buffer.
	 */
	bb_wc_flush();
	return -ret;
}

int
dv_dm_read(struct mlx5_ctx *ctx, struct mlx5_dm *dm, void *dst, uint64_t off, size_t len)
{
	(void)ctx;
	bb_dm_rmb();
	return -ibv_memcpy_from_dm(dst, dv_dm_handle(dm), off, len);
}

void
dv_dmabuf_probe(struct dv_ctx *c)
{
	struct ibv_mr *mr;

	c->probe_pd = ibv_alloc_pd(c->ibv);
	if (c->probe_pd == NULL)
		return;
	/*
	 * A kernel that supports the call detects that the descriptor -1 is invalid, and returns
	 * EBADF. Other kernels and older libraries fail earlier with another errno.
	 */
	errno = 0;
	mr = ibv_reg_dmabuf_mr(c->probe_pd, 0, 4096, 0, -1, 0);
	c->base.dmabuf = mr == NULL && errno == EBADF;
	dv_dmabuf_probe_end(c);
}

void
dv_dmabuf_probe_end(struct dv_ctx *c)
{
	if (c->probe_pd != NULL && ibv_dealloc_pd(c->probe_pd) == 0)
		c->probe_pd = NULL;
}
