/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The command interface on libibverbs and mlx5dv: what its files share. */
#ifndef MLX5_CMD_DV_H
#define MLX5_CMD_DV_H

#include <stdbool.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "mlx5_cmd.h"

struct dv_ctx {
	struct mlx5_ctx base;
	struct ibv_context *ibv;
	struct mlx5dv_devx_event_channel *events; /* NULL: the kernel has none */
	uint32_t live;                            /* objects; __atomic */
	bool fatal;                               /* the device is gone; __atomic */
};

static inline struct dv_ctx *
dv_ctx_of(struct mlx5_ctx *ctx)
{
	return (struct dv_ctx *)(void *)ctx;
}

/* errno as a negative value, never 0. */
int dv_errno(void);

static inline void
dv_born(struct dv_ctx *c)
{
	__atomic_add_fetch(&c->live, 1, __ATOMIC_RELAXED);
}

/*
 * What destroying gave, @err a positive errno. When the device is gone the kernel
 * has destroyed all objects already and answers EIO: that counts as done.
 */
int dv_died(struct dv_ctx *c, int err);

/* mlx5_cmd_dv_obj.c */
int dv_general(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen);
int dv_obj_create(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen,
		  struct mlx5_obj **obj);
int dv_obj_modify(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen);
int dv_obj_query(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen);
int dv_obj_destroy(struct mlx5_obj *obj);
struct mlx5dv_devx_obj *dv_obj_handle(struct mlx5_obj *obj);
int dv_query_eqn(struct mlx5_ctx *ctx, uint32_t vector, uint32_t *eqn);

/* mlx5_cmd_dv_mem.c */
int dv_umem_reg(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access, uint64_t pgsz_bitmap,
		struct mlx5_umem **umem);
int dv_umem_dereg(struct mlx5_ctx *ctx, struct mlx5_umem *umem);
int dv_uar_alloc(struct mlx5_ctx *ctx, enum mlx5_uar_type type, struct mlx5_uar **uar);
int dv_uar_free(struct mlx5_ctx *ctx, struct mlx5_uar *uar);
int dv_pd_alloc(struct mlx5_ctx *ctx, struct mlx5_pd **pd);
int dv_pd_free(struct mlx5_ctx *ctx, struct mlx5_pd *pd);
int dv_mr_reg(struct mlx5_ctx *ctx, struct mlx5_pd *pd, void *addr, size_t len, uint32_t access,
	      struct mlx5_mr **mr);
int dv_mr_dereg(struct mlx5_ctx *ctx, struct mlx5_mr *mr);
struct ibv_pd *dv_pd_handle(struct mlx5_pd *pd);

/* mlx5_cmd_dv_port.c */
int dv_port_query(struct mlx5_ctx *ctx, uint32_t port, struct mlx5_port *attr);
int dv_gid_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, struct bb_gid *gid);
int dv_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port, uint32_t sgid_index,
		  const uint8_t dgid[16], struct mlx5_av *av);

/* mlx5_cmd_dv_event.c */
int dv_events_open(struct dv_ctx *c);
void dv_events_close(struct dv_ctx *c);
int dv_event_subscribe(struct mlx5_ctx *ctx, struct mlx5_obj *obj, const uint16_t *types,
		       unsigned int n, uint64_t cookie);
int dv_event_get(struct mlx5_ctx *ctx, struct mlx5_cmd_event *event);

#endif
