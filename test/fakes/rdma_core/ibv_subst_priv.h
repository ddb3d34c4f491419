/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations shared by the files of the substitute. */
#ifndef IBV_SUBST_PRIV_H
#define IBV_SUBST_PRIV_H

#include <sys/queue.h>

#include <infiniband/mlx5dv.h>

#include "ibv_subst.h"
#include "soft_ctl.h"

extern const struct mlx5_cmd_if soft_cmd_if;

struct ctx {
	struct mlx5_ctx *soft;
	struct verbs_context verbs; /* its last member is the context that callers get */
};

struct mlx5dv_devx_obj {
	struct mlx5_obj *soft;
};

struct umem {
	struct mlx5dv_devx_umem pub;
	struct mlx5_umem *soft;
	struct ctx *ctx;
};

struct uar {
	struct mlx5dv_devx_uar pub;
	struct mlx5_uar *soft;
	struct ctx *ctx;
	LIST_ENTRY(uar) link;
};

struct pd {
	struct ibv_pd pub;
	struct mlx5_pd *soft;
};

struct mr {
	struct ibv_mr pub;
	struct mlx5_mr *soft;
};

struct mw {
	struct ibv_mw pub;
	struct mlx5_mw *soft;
};

struct dm {
	struct ibv_dm pub;
	struct mlx5_dm *soft;
};

struct ah {
	struct ibv_ah pub;
	struct mlx5_wqe_av av;
};

struct channel {
	struct mlx5dv_devx_event_channel pub;
	struct ctx *ctx;
	struct mlx5_channel *comp; /* for channels without event data */
	/* peer of the socket that replaces the channel after removal, or -1 */
	int peer;
	/*
	 * Subscriptions, each of an object and a type. The kernel frees them with the channel,
	 * not with the object (devx.c: devx_async_event_destroy_uobj()).
	 */
	uint64_t *cookies;
	uint32_t subscriptions;
	LIST_ENTRY(channel) link;
};

LIST_HEAD(uar_list, uar);
extern struct uar_list subst_uars;

static inline struct ctx *
ctx_of(struct ibv_context *context)
{
	return container_of(context, struct ctx, verbs.context);
}

/* Sets the calls that libibverbs makes through the context: device memory, the clock. */
void subst_dm_ops(struct verbs_context *verbs);
void subst_clock_ops(struct verbs_context *verbs);
/* Sets the calls for memory windows. */
void subst_mw_ops(struct ibv_context *context);

/* Returns an MR of the software device as libibverbs returns it. */
struct ibv_mr *subst_reg_mr(struct ibv_pd *pd, const struct mlx5_mr_attr *attr);

/* Returns the errno if this call must fail, else 0. */
int turn(const char *call);
/* Allocates and frees the counted memory of a handle. */
void *handle(size_t size);
void release(void *p);
/* Sets errno and returns NULL. */
void *null(int err);
/*
 * Destroys by @destroy(h), unless this call must fail, and frees @mem. After removal the kernel
 * has destroyed the object, and so does this function.
 */
int destroyed(const char *call, int (*destroy)(void *h), void *h, void *mem);
/* Discards pending events. */
void subst_events_reset(void);

#endif
