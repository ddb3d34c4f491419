/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Completion channels. Each is a DEVX event channel, on which CQs subscribe to their completion
 * events. The cookies of subscriptions are those of mlx5_event.c, so the event of a destroyed CQ
 * has an old generation and is dropped.
 */
#include <errno.h>
#include <string.h>

#include "mlx5.h"

#define CHANNEL_MAX_DROPS 64u /* maximum events of destroyed CQs skipped per call */

int
mlx5_channel_create(struct bb_channel *ch)
{
	struct mlx5_dev *d = mlx5_dev_of(ch->dev);
	struct mlx5_channel *c;
	int ret = d->cmd->channel_create(d->ctx, &c);

	if (ret == -EOPNOTSUPP)
		BB_LOG(ERR,
		       "%s: cannot create a completion channel: the kernel or firmware has no "
		       "completion events: poll the CQs, or update kernel and firmware",
		       d->ctx->name);
	else if (ret != 0)
		BB_LOG(ERR, "%s: cannot create a completion channel: %s", d->ctx->name,
		       strerror(-ret));
	if (ret != 0)
		return ret;
	ch->fd = c->fd;
	ch->priv = c;
	return 0;
}

int
mlx5_channel_destroy(struct bb_channel *ch)
{
	struct mlx5_dev *d = mlx5_dev_of(ch->dev);
	int ret = d->cmd->channel_destroy(d->ctx, ch->priv);

	if (ret != 0)
		BB_LOG(ERR, "%s: cannot destroy a completion channel: %s", d->ctx->name,
		       strerror(-ret));
	return ret;
}

int
mlx5_channel_get(struct bb_channel *ch, struct bb_cq **cq)
{
	struct mlx5_dev *d = mlx5_dev_of(ch->dev);
	uint64_t cookie;
	unsigned int i;
	int ret;

	for (i = 0; i < CHANNEL_MAX_DROPS; i++) {
		ret = d->cmd->channel_get(ch->priv, &cookie);
		if (ret != 0) {
			if (ret != -EAGAIN)
				BB_LOG(ERR, "%s: cannot read completion events: %s", d->ctx->name,
				       strerror(-ret));
			return ret;
		}
		*cq = mlx5_evt_obj(d, MLX5_EVT_CQ, cookie);
		if (*cq != NULL)
			return 0;
	}
	return -EAGAIN;
}

int
mlx5_channel_add(struct mlx5_dev *d, struct bb_cq *cq)
{
	struct mlx5_cq *c = cq->ctrl->priv;
	int ret;

	ret = d->cmd->channel_subscribe(cq->ctrl->channel->priv, c->obj, c->cookie);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot attach CQ 0x%x to its channel: %s", d->ctx->name, c->cqn,
		       strerror(-ret));
		return ret;
	}
	cq->arm_reg = (uint64_t *)(void *)(c->lcore->uar->base_addr + BB_UAR_ARM_OFFSET);
	return 0;
}
