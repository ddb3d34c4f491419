/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory and pages of a device: umems, UARs, protection domains, memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5_cmd_dv.h"

struct dv_umem {
	struct mlx5_umem base;
	struct mlx5dv_devx_umem *dv;
};

struct dv_uar {
	struct mlx5_uar base;
	struct mlx5dv_devx_uar *dv;
};

struct dv_pd {
	struct mlx5_pd base;
	struct ibv_pd *ibv;
};

struct dv_mr {
	struct mlx5_mr base;
	struct ibv_mr *ibv;
};

/* The kernel or library is older than page size bitmaps, or none of the sizes fits. */
static bool
bitmap_refused(int err)
{
	return err == EINVAL || err == EOPNOTSUPP || err == EPROTONOSUPPORT || err == ENOPROTOOPT;
}

int
dv_umem_reg(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access, uint64_t pgsz_bitmap,
	    struct mlx5_umem **umem)
{
	struct mlx5dv_devx_umem_in in = {
		.addr = addr, .size = len, .access = access, .pgsz_bitmap = pgsz_bitmap};
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct dv_umem *u;
	int ret;

	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -ENOMEM;
	errno = 0;
	u->dv = mlx5dv_devx_umem_reg_ex(c->ibv, &in);
	if (u->dv == NULL && bitmap_refused(errno))
		u->dv = mlx5dv_devx_umem_reg(c->ibv, addr, len, access);
	if (u->dv == NULL) {
		ret = dv_errno();
		free(u);
		return ret;
	}
	u->base.id = u->dv->umem_id;
	dv_born(c);
	*umem = &u->base;
	return 0;
}

int
dv_umem_dereg(struct mlx5_ctx *ctx, struct mlx5_umem *umem)
{
	struct dv_umem *u = (struct dv_umem *)(void *)umem;
	int ret = dv_died(dv_ctx_of(ctx), mlx5dv_devx_umem_dereg(u->dv));

	if (ret == 0)
		free(u);
	return ret;
}

int
dv_uar_alloc(struct mlx5_ctx *ctx, enum mlx5_uar_type type, struct mlx5_uar **uar)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct dv_uar *u;
	int ret;

	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -ENOMEM;
	errno = 0;
	u->dv = mlx5dv_devx_alloc_uar(c->ibv, type == MLX5_UAR_BF ? MLX5DV_UAR_ALLOC_TYPE_BF
								  : MLX5DV_UAR_ALLOC_TYPE_NC);
	if (u->dv == NULL) {
		ret = dv_errno();
		free(u);
		return ret;
	}
	u->base.reg_addr = u->dv->reg_addr;
	u->base.base_addr = u->dv->base_addr;
	u->base.page_id = u->dv->page_id;
	dv_born(c);
	*uar = &u->base;
	return 0;
}

int
dv_uar_free(struct mlx5_ctx *ctx, struct mlx5_uar *uar)
{
	struct dv_uar *u = (struct dv_uar *)(void *)uar;

	mlx5dv_devx_free_uar(u->dv);
	free(u);
	return dv_died(dv_ctx_of(ctx), 0);
}

struct ibv_pd *
dv_pd_handle(struct mlx5_pd *pd)
{
	return ((struct dv_pd *)(void *)pd)->ibv;
}

int
dv_pd_alloc(struct mlx5_ctx *ctx, struct mlx5_pd **pd)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct mlx5dv_pd num = {0};
	struct mlx5dv_obj obj = {0};
	struct dv_pd *p;
	int ret;

	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	errno = 0;
	p->ibv = ibv_alloc_pd(c->ibv);
	if (p->ibv == NULL) {
		ret = dv_errno();
		goto free_pd;
	}
	obj.pd.in = p->ibv;
	obj.pd.out = &num;
	ret = -mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD);
	if (ret != 0)
		goto dealloc;
	p->base.pdn = num.pdn;
	dv_born(c);
	*pd = &p->base;
	return 0;

dealloc:
	(void)ibv_dealloc_pd(p->ibv);
free_pd:
	free(p);
	return ret;
}

int
dv_pd_free(struct mlx5_ctx *ctx, struct mlx5_pd *pd)
{
	struct dv_pd *p = (struct dv_pd *)(void *)pd;
	int ret = dv_died(dv_ctx_of(ctx), ibv_dealloc_pd(p->ibv));

	if (ret == 0)
		free(p);
	return ret;
}

int
dv_mr_reg(struct mlx5_ctx *ctx, struct mlx5_pd *pd, void *addr, size_t len, uint32_t access,
	  struct mlx5_mr **mr)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct dv_mr *m;
	int ret;

	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	errno = 0;
	m->ibv = ibv_reg_mr(dv_pd_handle(pd), addr, len, (int)access);
	if (m->ibv == NULL) {
		ret = dv_errno();
		free(m);
		return ret;
	}
	m->base.lkey = m->ibv->lkey;
	m->base.rkey = m->ibv->rkey;
	dv_born(c);
	*mr = &m->base;
	return 0;
}

int
dv_mr_dereg(struct mlx5_ctx *ctx, struct mlx5_mr *mr)
{
	struct dv_mr *m = (struct dv_mr *)(void *)mr;
	int ret = dv_died(dv_ctx_of(ctx), ibv_dereg_mr(m->ibv));

	if (ret == 0)
		free(m);
	return ret;
}
