/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Protection domains and memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5.h"

/* The access bits go to the kernel as they are; mlx5_cmd_dv.c asserts that they may. */
struct mr {
	struct bb_drv_mr base; /* first: core holds a pointer to it */
	struct mlx5_mr *mr;
};

int
mlx5_pd_alloc(struct bb_pd *pd)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	struct mlx5_pd *p;
	int ret;

	ret = d->cmd->pd_alloc(d->ctx, &p);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot allocate a PD: %s", d->ctx->name, strerror(-ret));
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

/* May run inside an EAL memory event callback: calloc() only. */
int
mlx5_mr_reg(struct bb_pd *pd, void *addr, size_t len, uint32_t access, struct bb_drv_mr **out)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	struct mr *m;
	int ret;

	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		BB_LOG(ERR, "%s: out of memory", d->ctx->name);
		return -ENOMEM;
	}
	ret = d->cmd->mr_reg(d->ctx, pd->priv, addr, len, access, &m->mr);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot register %zu bytes at %p: %s%s", d->ctx->name, len, addr,
		       strerror(-ret),
		       ret == -ENOMEM ? ": raise the locked memory limit (ulimit -l)" : "");
		free(m);
		return ret;
	}
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
	int ret = d->cmd->mr_dereg(d->ctx, m->mr);

	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot deregister lkey 0x%x: %s", d->ctx->name, mr->lkey,
		       strerror(-ret));
		return ret;
	}
	free(m);
	return 0;
}
