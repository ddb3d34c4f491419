/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory and pages of a device: umems, UARs, protection domains, memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_driver.h"
#include "mlx5_cmd_dv.h"

/*
 * Bytes of a UAR of the device, whatever the host's page size is (kernel: MLX5_ADAPTER_PAGE_SIZE).
 */
#define UAR_SIZE 4096u

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

struct dv_mw {
	struct mlx5_mw base;
	struct ibv_mw *ibv;
};

struct dv_mr {
	struct mlx5_mr base;
	struct ibv_mr *ibv;
};

static int
umem_reg(struct mlx5_ctx *ctx, struct mlx5dv_devx_umem_in *in, struct mlx5_umem **umem)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct dv_umem *u;
	int ret;

	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -ENOMEM;
	errno = 0;
	/*
	 * If any page size is allowed, use the older call, because some kernels do not support the
	 * bitmap.
	 */
	if (in->pgsz_bitmap == BB_UMEM_ANY_PAGE && in->comp_mask == 0)
		u->dv = mlx5dv_devx_umem_reg(c->ibv, in->addr, in->size, in->access);
	else
		u->dv = mlx5dv_devx_umem_reg_ex(c->ibv, in);
	if (u->dv == NULL) {
		ret = in->comp_mask == 0 ? bb_ibv_reg_errno(in->addr, in->size) : bb_ibv_errno();
		free(u);
		/*
		 * A kernel returns these errors if it does not support an attribute, here the
		 * bitmap or the file descriptor.
		 */
		return ret == -EPROTONOSUPPORT || ret == -ENOPROTOOPT ? -EOPNOTSUPP : ret;
	}
	u->base.id = u->dv->umem_id;
	dv_born(c);
	*umem = &u->base;
	return 0;
}

int
dv_umem_reg(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access, uint64_t pgsz_bitmap,
	    struct mlx5_umem **umem)
{
	struct mlx5dv_devx_umem_in in = {
		.addr = addr, .size = len, .access = access, .pgsz_bitmap = pgsz_bitmap};

	return umem_reg(ctx, &in, umem);
}

int
dv_umem_reg_dmabuf(struct mlx5_ctx *ctx, int fd, uint64_t offset, size_t len, uint32_t access,
		   uint64_t pgsz_bitmap, struct mlx5_umem **umem)
{
#ifdef HAVE_UMEM_DMABUF
	/* The offset is passed in the field for the address (man mlx5dv_devx_umem_reg). */
	struct mlx5dv_devx_umem_in in = {.addr = (void *)(uintptr_t)offset,
					 .size = len,
					 .access = access,
					 .pgsz_bitmap = pgsz_bitmap,
					 .comp_mask = MLX5DV_UMEM_MASK_DMABUF,
					 .dmabuf_fd = fd};

	return umem_reg(ctx, &in, umem);
#else
	(void)fd;
	(void)offset;
	(void)len;
	(void)access;
	(void)pgsz_bitmap;
	(void)umem;
	BB_LOG(ERR,
	       "%s: cannot register a dma-buf as umem: this library was built with an rdma-core "
	       "older than 44: build it with a newer one",
	       ctx->name);
	return -EOPNOTSUPP;
#endif
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
		ret = bb_ibv_errno();
		free(u);
		return ret;
	}
	u->base.reg_addr = u->dv->reg_addr;
	/*
	 * Compute the start of the UAR from the register. libmlx5's base_addr is the start of the
	 * mapping, a host page that may hold 16 UARs (mlx5_insert_dyn_uuars()). In older versions
	 * base_addr is NULL for some registers (DPDK's mlx5_devx_alloc_uar() retries). The device
	 * accepts doorbells only on the UAR that the CQ and QP name, which contains the register.
	 */
	u->base.base_addr =
		(uint8_t *)u->dv->reg_addr - ((uintptr_t)u->dv->reg_addr & (UAR_SIZE - 1));
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
		ret = bb_ibv_errno();
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

static struct ibv_mr *
reg_mr(struct ibv_pd *pd, const struct mlx5_mr_attr *attr)
{
	switch (attr->kind) {
	case MLX5_MR_MEM:
		return ibv_reg_mr_iova2(pd, attr->addr, attr->len, attr->iova, attr->access);
	case MLX5_MR_DM:
		return ibv_reg_dm_mr(pd, dv_dm_handle(attr->dm), attr->offset, attr->len,
				     attr->access);
	case MLX5_MR_DMABUF:
		return ibv_reg_dmabuf_mr(pd, attr->offset, attr->len, attr->iova, attr->fd,
					 (int)attr->access);
	}
	errno = EINVAL;
	return NULL;
}

int
dv_mr_reg(struct mlx5_ctx *ctx, struct mlx5_pd *pd, const struct mlx5_mr_attr *attr,
	  struct mlx5_mr **mr)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct dv_mr *m;
	int ret;

	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	errno = 0;
	m->ibv = reg_mr(dv_pd_handle(pd), attr);
	if (m->ibv == NULL) {
		ret = attr->kind == MLX5_MR_MEM && (attr->access & BB_ACCESS_ON_DEMAND) == 0
			      ? bb_ibv_reg_errno(attr->addr, attr->len)
			      : bb_ibv_errno();
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

int
dv_mr_rereg(struct mlx5_ctx *ctx, struct mlx5_mr *mr, uint32_t flags, struct mlx5_pd *pd,
	    void *addr, uint64_t len, uint32_t access)
{
	struct dv_mr *m = (struct dv_mr *)(void *)mr;
	int ret;

	errno = 0;
	ret = ibv_rereg_mr(m->ibv, (int)flags, pd != NULL ? dv_pd_handle(pd) : NULL, addr, len,
			   (int)access);
	/*
	 * The new registration is valid. Only MADV_DOFORK on the old memory failed, so log it and
	 * go on.
	 */
	if (ret == IBV_REREG_MR_ERR_DO_FORK_OLD)
		BB_LOG(WARNING,
		       "%s: an MR was re-registered, but the kernel still excludes its old memory "
		       "from fork(): child processes cannot access that memory",
		       ctx->name);
	else if (ret != 0)
		return (flags & MLX5_REREG_TRANSLATION) != 0 ? bb_ibv_reg_errno(addr, len)
							     : bb_ibv_errno();
	m->base.lkey = m->ibv->lkey;
	m->base.rkey = m->ibv->rkey;
	return 0;
}

int
dv_mw_alloc(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t type, struct mlx5_mw **mw)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct dv_mw *m;
	int ret;

	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	errno = 0;
	m->ibv = ibv_alloc_mw(dv_pd_handle(pd), type == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (m->ibv == NULL) {
		ret = bb_ibv_errno();
		free(m);
		return ret;
	}
	m->base.rkey = m->ibv->rkey;
	dv_born(c);
	*mw = &m->base;
	return 0;
}

int
dv_mw_free(struct mlx5_ctx *ctx, struct mlx5_mw *mw)
{
	struct dv_mw *m = (struct dv_mw *)(void *)mw;
	int ret = dv_died(dv_ctx_of(ctx), ibv_dealloc_mw(m->ibv));

	if (ret == 0)
		free(m);
	return ret;
}
