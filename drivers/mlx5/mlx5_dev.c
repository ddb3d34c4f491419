/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The mlx5 driver: opens and closes devices of all command interfaces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5.h"

static int
mlx5_open(const char *name, const char *args, struct bb_dev *dev)
{
	struct mlx5_port port;
	struct mlx5_ctx *ctx;
	struct mlx5_dev *d;
	int ret;

	ret = mlx5_ctx_open(name, args, &ctx);
	if (ret != 0)
		return ret;
	d = calloc(1, sizeof(*d));
	if (d == NULL) {
		BB_LOG(ERR, "%s: cannot open the device: out of memory", name);
		ret = -ENOMEM;
		goto close_ctx;
	}
	d->dev = dev;
	d->ctx = ctx;
	d->cmd = ctx->cmd;
	mlx5_qmem_init(&d->qmem, ctx);
	ret = mlx5_evt_init(&d->evts);
	if (ret != 0)
		goto free_dev;
	ret = mlx5_caps_query(d);
	if (ret != 0)
		goto fini_events;
	ret = d->cmd->port_query(ctx, 1, &port);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot query port 1: %s", ctx->name, strerror(-ret));
		goto fini_events;
	}
	d->link = port.link_layer;
	ret = mlx5_bf_copy_choose(d);
	if (ret != 0)
		goto fini_events;
	ret = mlx5_evt_open(d);
	if (ret != 0)
		goto fini_events;
	mlx5_counters_init(d);
	mlx5_caps_attr(d, &dev->attr);
	dev->ethernet = d->link == BB_LINK_ETHERNET;
	dev->priv = d;
	return 0;

fini_events:
	mlx5_evt_fini(&d->evts);
free_dev:
	free(d);
close_ctx:
	(void)ctx->cmd->close(ctx);
	return ret;
}

static int
mlx5_close(struct bb_dev *dev)
{
	struct mlx5_dev *d = mlx5_dev_of(dev);
	int ret;

	/* If a step fails, return: close can then be called again, which repeats the step. */
	ret = mlx5_qmem_fini(&d->qmem);
	if (ret == 0)
		ret = mlx5_counters_fini(d);
	if (ret != 0)
		return ret;
	ret = d->cmd->close(d->ctx);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot close the device: %s", dev->name, strerror(-ret));
		return ret;
	}
	mlx5_evt_fini(&d->evts);
	free(d);
	return 0;
}

static int
mlx5_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr)
{
	struct mlx5_dev *d = mlx5_dev_of(dev);
	struct mlx5_port p;
	int ret = d->cmd->port_query(d->ctx, port, &p);

	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot query port %u: %s", d->ctx->name, port, strerror(-ret));
		return ret;
	}
	attr->state = p.state;
	attr->link_layer = p.link_layer;
	attr->max_mtu = p.max_mtu;
	attr->active_mtu = p.active_mtu;
	attr->lid = p.lid;
	attr->gids = p.gids;
	attr->pkeys = p.pkeys;
	attr->grh_required = p.grh_required;
	return 0;
}

static int
mlx5_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	struct mlx5_dev *d = mlx5_dev_of(dev);
	int ret = d->cmd->gid_query(d->ctx, port, index, gid);

	/* Do not log an empty entry, because callers that iterate over the GID table find many. */
	if (ret != 0 && ret != -ENOENT)
		BB_LOG(ERR, "%s: cannot read GID %u of port %u: %s", d->ctx->name, index, port,
		       strerror(-ret));
	return ret;
}

static int
mlx5_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey)
{
	struct mlx5_dev *d = mlx5_dev_of(dev);
	int ret = d->cmd->pkey_query(d->ctx, port, index, pkey);

	if (ret != 0)
		BB_LOG(ERR, "%s: cannot read P_Key %u of port %u: %s", d->ctx->name, index, port,
		       strerror(-ret));
	return ret;
}

static int
mlx5_clock(struct bb_dev *dev, uint64_t *now)
{
	struct mlx5_dev *d = mlx5_dev_of(dev);
	int ret = d->cmd->clock(d->ctx, now);

	if (ret == -EOPNOTSUPP)
		return -ENOTSUP;
	if (ret != 0)
		BB_LOG(ERR, "%s: cannot read the device's clock: %s", d->ctx->name, strerror(-ret));
	return ret;
}

static const struct bb_driver mlx5_driver = {
	.name = "mlx5",
	.list = mlx5_list,
	.open = mlx5_open,
	.close = mlx5_close,
	.port_query = mlx5_port_query,
	.gid_query = mlx5_gid_query,
	.pkey_query = mlx5_pkey_query,
	.event_get = mlx5_event_get,
	.stats = mlx5_stats,
	.drops = mlx5_drops,
	.progress = mlx5_progress,
	.pd_alloc = mlx5_pd_alloc,
	.pd_free = mlx5_pd_free,
	.mr_reg = mlx5_mr_reg,
	.mr_dereg = mlx5_mr_dereg,
	.mr_rereg = mlx5_mr_rereg,
	.dm_alloc = mlx5_dm_alloc,
	.dm_free = mlx5_dm_free,
	.dm_write = mlx5_dm_write,
	.dm_read = mlx5_dm_read,
	.umem_reg = mlx5_umem_reg,
	.umem_dereg = mlx5_umem_dereg,
	.devx = &mlx5_devx,
	.clock = mlx5_clock,
	.channel_create = mlx5_channel_create,
	.channel_destroy = mlx5_channel_destroy,
	.channel_get = mlx5_channel_get,
	.path_ready = mlx5_path_ready,
	.ah_resolve = mlx5_ah_resolve,
	.cq_create = mlx5_cq_create,
	.cq_destroy = mlx5_cq_destroy,
	.cq_resize = mlx5_cq_resize,
	.cq_moderate = mlx5_cq_moderate,
	.qp_create = mlx5_qp_create,
	.qp_modify = mlx5_qp_modify,
	.qp_query = mlx5_qp_query,
	.qp_retries = mlx5_qp_retries,
	.qp1_claim = mlx5_qp1_claim,
	.mcast_attach = mlx5_mcast_attach,
	.mcast_detach = mlx5_mcast_detach,
	.qp_destroy = mlx5_qp_destroy,
	.srq_create = mlx5_srq_create,
	.srq_modify = mlx5_srq_modify,
	.srq_query = mlx5_srq_query,
	.srq_destroy = mlx5_srq_destroy,
};
BB_DRIVER_REGISTER(mlx5_driver)
