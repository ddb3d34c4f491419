/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory, ports and addresses. */
#include <errno.h>
#include <string.h>

#include "ibv_subst_priv.h"

/* The headers wrap these in macros; this file defines the functions themselves. */
#undef ibv_query_port
#undef ibv_reg_mr

/* ---- Memory */

static struct mlx5dv_devx_umem *
umem_made(struct ibv_context *context, struct mlx5_umem *soft, int ret)
{
	struct umem *u;

	if (ret != 0)
		return null(-ret);
	u = handle(sizeof(*u));
	u->ctx = ctx_of(context);
	u->soft = soft;
	u->pub.umem_id = soft->id;
	return &u->pub;
}

struct mlx5dv_devx_umem *
mlx5dv_devx_umem_reg_ex(struct ibv_context *context, struct mlx5dv_devx_umem_in *in)
{
	bool dmabuf = in->comp_mask == MLX5DV_UMEM_MASK_DMABUF;
	struct mlx5_ctx *soft = ctx_of(context)->soft;
	struct mlx5_umem *umem = NULL;
	int err = turn(__func__), ret;

	subst.umem_reg_ex++;
	subst.pgsz_bitmap = in->pgsz_bitmap;
	/* The kernel's errno for an unknown attribute. */
	if (err == 0 && (subst.no_bitmap || (subst.no_dmabuf && dmabuf)))
		err = EPROTONOSUPPORT;
	if (err == 0 && in->comp_mask != 0 && !dmabuf)
		err = EOPNOTSUPP;
	if (err == 0 && dmabuf && in->dmabuf_fd == -1)
		err = EBADF;
	if (err != 0)
		return null(err);
	if (dmabuf)
		ret = soft_cmd_if.umem_reg_dmabuf(soft, in->dmabuf_fd, (uintptr_t)in->addr,
						  in->size, in->access, in->pgsz_bitmap, &umem);
	else
		ret = soft_cmd_if.umem_reg(soft, in->addr, in->size, in->access, in->pgsz_bitmap,
					   &umem);
	return umem_made(context, umem, ret);
}

struct mlx5dv_devx_umem *
mlx5dv_devx_umem_reg(struct ibv_context *context, void *addr, size_t size, uint32_t access)
{
	struct mlx5_umem *umem = NULL;
	int err = turn(__func__), ret;

	subst.umem_reg++;
	if (err != 0)
		return null(err);
	/* Without a bitmap the kernel chooses any size that fits. */
	ret = soft_cmd_if.umem_reg(ctx_of(context)->soft, addr, size, access, ~UINT64_C(0xfff),
				   &umem);
	/* Without a bitmap: a large page, as hugepages make it; objects are at its start. */
	if (ret == 0 && subst.no_bitmap)
		((struct soft_umem *)umem)->pgsz = UINT64_C(1) << 40;
	return umem_made(context, umem, ret);
}

static int
destroy_umem(void *h)
{
	struct umem *u = h;

	return soft_cmd_if.umem_dereg(u->ctx->soft, u->soft);
}

int
mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *umem)
{
	return destroyed(__func__, destroy_umem, umem, umem);
}

struct mlx5dv_devx_uar *
mlx5dv_devx_alloc_uar(struct ibv_context *context, uint32_t flags)
{
	/* The first UAR of a 64 KiB page of the host is not that of the register. */
	static uint64_t first[4096 / 8];
	struct mlx5_uar *soft;
	struct uar *u;
	int err = turn(__func__), ret;

	/* libmlx5's mlx5_alloc_dyn_uar() on a kernel without objects for UARs. */
	if (err == 0 && subst.no_nc_uar && flags == MLX5DV_UAR_ALLOC_TYPE_NC)
		err = EOPNOTSUPP;
	if (err != 0)
		return null(err);
	ret = soft_cmd_if.uar_alloc(ctx_of(context)->soft,
				    flags == MLX5DV_UAR_ALLOC_TYPE_BF ? MLX5_UAR_BF : MLX5_UAR_NC,
				    &soft);
	if (ret != 0)
		return null(-ret);
	u = handle(sizeof(*u));
	u->ctx = ctx_of(context);
	u->soft = soft;
	u->pub.reg_addr = soft->reg_addr;
	u->pub.base_addr = first;
	u->pub.page_id = soft->page_id;
	LIST_INSERT_HEAD(&subst_uars, u, link);
	return &u->pub;
}

void
mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *uar)
{
	struct uar *u = (struct uar *)(void *)uar;

	if (soft_cmd_if.uar_free(u->ctx->soft, u->soft) != 0)
		return; /* leaks, which shows as a live handle */
	LIST_REMOVE(u, link);
	release(u);
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct mlx5_pd *soft;
	struct pd *p;
	int err = turn(__func__), ret;

	if (err != 0)
		return null(err);
	ret = soft_cmd_if.pd_alloc(ctx_of(context)->soft, &soft);
	if (ret != 0)
		return null(-ret);
	p = handle(sizeof(*p));
	p->pub.context = context;
	p->soft = soft;
	return &p->pub;
}

static int
destroy_pd(void *h)
{
	struct pd *p = h;

	return soft_cmd_if.pd_free(ctx_of(p->pub.context)->soft, p->soft);
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	return destroyed(__func__, destroy_pd, pd, pd);
}

struct ibv_mr *
subst_reg_mr(struct ibv_pd *pd, const struct mlx5_mr_attr *attr)
{
	struct mlx5_mr *soft;
	struct mr *m;
	int ret;

	ret = soft_cmd_if.mr_reg(ctx_of(pd->context)->soft, ((struct pd *)(void *)pd)->soft, attr,
				 &soft);
	if (ret != 0)
		return null(-ret);
	m = handle(sizeof(*m));
	m->pub.context = pd->context;
	m->pub.lkey = soft->lkey;
	m->pub.rkey = soft->rkey;
	m->soft = soft;
	return &m->pub;
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct mlx5_mr_attr attr = {
		.kind = MLX5_MR_MEM, .addr = addr, .len = length, .iova = iova, .access = access};
	int err = turn(__func__);

	return err != 0 ? null(err) : subst_reg_mr(pd, &attr);
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct mr *m = (struct mr *)(void *)mr;
	int err = turn(__func__), ret;

	/* Rules of libibverbs itself. */
	if (err == 0 &&
	    ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 ||
	     ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 && (length == 0 || addr == NULL)) ||
	     (access != 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) == 0))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (err != 0) {
		errno = err;
		return IBV_REREG_MR_ERR_CMD;
	}
	ret = soft_cmd_if.mr_rereg(ctx_of(mr->context)->soft, m->soft, (uint32_t)flags,
				   pd != NULL ? ((struct pd *)(void *)pd)->soft : NULL, addr,
				   length, (uint32_t)access);
	if (ret != 0) {
		errno = -ret;
		return IBV_REREG_MR_ERR_CMD;
	}
	mr->lkey = m->soft->lkey;
	mr->rkey = m->soft->rkey;
	return subst.rereg_code;
}

static int
destroy_mr(void *h)
{
	struct mr *m = h;

	return soft_cmd_if.mr_dereg(ctx_of(m->pub.context)->soft, m->soft);
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	return destroyed(__func__, destroy_mr, mr, mr);
}

static struct ibv_mw *
alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	int err = turn("ibv_alloc_mw"), ret;
	struct mlx5_mw *soft;
	struct mw *m;

	if (err != 0)
		return null(err);
	ret = soft_cmd_if.mw_alloc(ctx_of(pd->context)->soft, ((struct pd *)(void *)pd)->soft,
				   (uint32_t)type, &soft);
	if (ret != 0)
		return null(-ret);
	m = handle(sizeof(*m));
	m->pub.context = pd->context;
	m->pub.pd = pd;
	m->pub.type = type;
	m->pub.rkey = soft->rkey;
	m->soft = soft;
	return &m->pub;
}

static int
destroy_mw(void *h)
{
	struct mw *m = h;

	return soft_cmd_if.mw_free(ctx_of(m->pub.context)->soft, m->soft);
}

static int
dealloc_mw(struct ibv_mw *mw)
{
	return destroyed("ibv_dealloc_mw", destroy_mw, mw, mw);
}

void
subst_mw_ops(struct ibv_context *context)
{
	context->ops.alloc_mw = alloc_mw;
	context->ops.dealloc_mw = dealloc_mw;
}

/* ---- Ports and addresses */

int
ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)(void *)compat;
	struct mlx5_port p;
	int err = turn(__func__), ret;

	if (err != 0)
		return err;
	ret = soft_cmd_if.port_query(ctx_of(context)->soft, port_num, &p);
	if (ret != 0)
		return -ret;
	attr->state = p.state == BB_PORT_ACTIVE ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	attr->link_layer = p.link_layer == BB_LINK_ETHERNET ? IBV_LINK_LAYER_ETHERNET
							    : IBV_LINK_LAYER_INFINIBAND;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = p.active_mtu == 4096 ? IBV_MTU_4096 : IBV_MTU_1024;
	attr->lid = p.lid;
	attr->gid_tbl_len = (int)p.gids;
	attr->pkey_tbl_len = (uint16_t)p.pkeys;
	/* The kernel reports it for every RoCE port (RDMA_CORE_CAP_IB_GRH_REQUIRED). */
	attr->flags = p.grh_required ? IBV_QPF_GRH_REQUIRED : 0;
	return 0;
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		  struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	static const uint32_t types[] = {
		[BB_GID_IB] = IBV_GID_TYPE_IB,
		[BB_GID_ROCE_V1] = IBV_GID_TYPE_ROCE_V1,
		[BB_GID_ROCE_V2] = IBV_GID_TYPE_ROCE_V2,
	};
	struct bb_gid gid;
	int err = turn(__func__), ret;

	if (err == 0 && (flags != 0 || entry_size != sizeof(*entry)))
		err = EINVAL;
	if (err != 0)
		return err;
	ret = soft_cmd_if.gid_query(ctx_of(context)->soft, port_num, gid_index, &gid);
	if (ret != 0)
		return ret == -ENOENT ? ENODATA : -ret;
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->gid.raw, gid.raw, sizeof(gid.raw));
	entry->gid_type = subst.gid_type != 0 ? subst.gid_type : types[gid.type];
	return 0;
}

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct mlx5_av av;
	struct ah *a;
	int err = turn(__func__), ret;

	if (err == 0 && (!attr->is_global || attr->grh.hop_limit == 0))
		err = EINVAL;
	if (err != 0)
		return null(err);
	ret = soft_cmd_if.av_resolve(ctx_of(pd->context)->soft, ((struct pd *)(void *)pd)->soft,
				     attr->port_num, attr->grh.sgid_index, attr->grh.dgid.raw, &av);
	if (ret != 0)
		return null(-ret);
	a = handle(sizeof(*a));
	memcpy(a->av.rmac, av.dmac, sizeof(av.dmac));
	return &a->pub;
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	release(ah);
	return 0;
}

int
mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	int err = turn(__func__);

	if (err != 0)
		return err;
	switch (obj_type) {
	case MLX5DV_OBJ_PD:
		obj->pd.out->pdn = ((struct pd *)(void *)obj->pd.in)->soft->pdn;
		return 0;
	case MLX5DV_OBJ_AH:
		obj->ah.out->av = &((struct ah *)(void *)obj->ah.in)->av;
		return 0;
	default:
		return EOPNOTSUPP;
	}
}
