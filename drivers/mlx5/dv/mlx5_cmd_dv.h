/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations shared by the files of the command interface on libibverbs and mlx5dv. */
#ifndef MLX5_CMD_DV_H
#define MLX5_CMD_DV_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "bb_ibv.h"
#include "mlx5_cmd.h"

/* A DEVX event channel for events of queues: mlx5_cmd_dv_event.c. */
struct dv_events {
	LIST_ENTRY(dv_events) next;
	struct mlx5dv_devx_event_channel *dv;
	/* number of subscriptions made on the channel, including those of destroyed objects */
	uint32_t subscriptions;
	uint32_t objs; /* number of existing objects with subscriptions on the channel */
};

LIST_HEAD(dv_events_list, dv_events);

struct dv_ctx {
	struct mlx5_ctx base;
	struct ibv_context *ibv;
	pthread_mutex_t events_lock; /* protects events, because any thread may read events */
	/*
	 * list of event channels, the newest first; the first one gets new subscriptions. Empty if
	 * the kernel has no event channels
	 */
	struct dv_events_list events;
	uint32_t live;           /* number of existing objects; __atomic */
	bool fatal;              /* true if the device is gone; __atomic */
	struct ibv_pd *probe_pd; /* PD that dv_dmabuf_probe() uses */
};

struct dv_obj {
	struct mlx5_obj base;
	struct mlx5dv_devx_obj *dv;
	/* channel that has the object's subscriptions; NULL if there are none */
	struct dv_events *events;
};

static inline struct dv_obj *
dv_obj_of(struct mlx5_obj *obj)
{
	return (struct dv_obj *)(void *)obj;
}

static inline struct dv_ctx *
dv_ctx_of(struct mlx5_ctx *ctx)
{
	return (struct dv_ctx *)(void *)ctx;
}

static inline void
dv_born(struct dv_ctx *c)
{
	__atomic_add_fetch(&c->live, 1, __ATOMIC_RELAXED);
}

/*
 * Converts @err, the positive errno of a destroy call, to 0 or a negative errno. If the device is
 * gone, returns 0 for EIO, because the kernel has already destroyed all objects.
 */
int dv_died(struct dv_ctx *c, int err);

/* mlx5_cmd_dv_obj.c */
int dv_general(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen);
int dv_obj_create(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen,
		  struct mlx5_obj **obj);
int dv_obj_modify(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen);
int dv_obj_query(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen);
int dv_obj_destroy(struct mlx5_obj *obj);
int dv_query_eqn(struct mlx5_ctx *ctx, uint32_t vector, uint32_t *eqn);

/* mlx5_cmd_dv_mem.c */
int dv_umem_reg(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access, uint64_t pgsz_bitmap,
		struct mlx5_umem **umem);
int dv_umem_reg_dmabuf(struct mlx5_ctx *ctx, int fd, uint64_t offset, size_t len, uint32_t access,
		       uint64_t pgsz_bitmap, struct mlx5_umem **umem);
int dv_umem_dereg(struct mlx5_ctx *ctx, struct mlx5_umem *umem);
int dv_uar_alloc(struct mlx5_ctx *ctx, enum mlx5_uar_type type, struct mlx5_uar **uar);
int dv_uar_free(struct mlx5_ctx *ctx, struct mlx5_uar *uar);
int dv_pd_alloc(struct mlx5_ctx *ctx, struct mlx5_pd **pd);
int dv_pd_free(struct mlx5_ctx *ctx, struct mlx5_pd *pd);
int dv_mr_reg(struct mlx5_ctx *ctx, struct mlx5_pd *pd, const struct mlx5_mr_attr *attr,
	      struct mlx5_mr **mr);
int dv_mr_dereg(struct mlx5_ctx *ctx, struct mlx5_mr *mr);
int dv_mr_rereg(struct mlx5_ctx *ctx, struct mlx5_mr *mr, uint32_t flags, struct mlx5_pd *pd,
		void *addr, uint64_t len, uint32_t access);
int dv_mw_alloc(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t type, struct mlx5_mw **mw);
int dv_mw_free(struct mlx5_ctx *ctx, struct mlx5_mw *mw);
struct ibv_pd *dv_pd_handle(struct mlx5_pd *pd);

/* mlx5_cmd_dv_dm.c */
int dv_dm_alloc(struct mlx5_ctx *ctx, uint64_t len, uint32_t log_align, struct mlx5_dm **dm);
int dv_dm_free(struct mlx5_ctx *ctx, struct mlx5_dm *dm);
int dv_dm_write(struct mlx5_ctx *ctx, struct mlx5_dm *dm, uint64_t off, const void *src,
		size_t len);
int dv_dm_read(struct mlx5_ctx *ctx, struct mlx5_dm *dm, void *dst, uint64_t off, size_t len);
struct ibv_dm *dv_dm_handle(const struct mlx5_dm *dm);
/* Tests at open whether dma-bufs can be registered as MRs, because no capability reports it. */
void dv_dmabuf_probe(struct dv_ctx *c);
/*
 * Releases the PD that dv_dmabuf_probe() used. If the release fails, close calls this function
 * again.
 */
void dv_dmabuf_probe_end(struct dv_ctx *c);

/* mlx5_cmd_dv_port.c */
int dv_port_query(struct mlx5_ctx *ctx, uint32_t port, struct mlx5_port *attr);
int dv_pkey_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, uint16_t *pkey);
int dv_gid_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, struct bb_gid *gid);
int dv_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port, uint32_t sgid_index,
		  const uint8_t dgid[16], struct mlx5_av *av);
int dv_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index, const uint8_t dgid[16]);

/* mlx5_cmd_dv_event.c */
int dv_events_open(struct dv_ctx *c);
void dv_events_close(struct dv_ctx *c);
int dv_event_subscribe(struct mlx5_ctx *ctx, struct mlx5_obj *obj, const uint16_t *types,
		       unsigned int n, uint64_t cookie);
/* Removes a destroyed object from its event channel. */
void dv_event_remove(struct dv_ctx *c, struct dv_events *events);
int dv_event_get(struct mlx5_ctx *ctx, struct mlx5_cmd_event *event);
int dv_set_nonblock(int fd);

/* mlx5_cmd_dv_channel.c */
int dv_clock(struct mlx5_ctx *ctx, uint64_t *now);
int dv_channel_create(struct mlx5_ctx *ctx, struct mlx5_channel **ch);
int dv_channel_destroy(struct mlx5_ctx *ctx, struct mlx5_channel *ch);
int dv_channel_subscribe(struct mlx5_channel *ch, struct mlx5_obj *cq, uint64_t cookie);
int dv_channel_get(struct mlx5_channel *ch, uint64_t *cookie);

#endif
