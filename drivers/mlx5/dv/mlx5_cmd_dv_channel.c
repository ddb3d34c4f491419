/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The device's clock, and completion events. Completion events use DEVX event channels separate
 * from that of the context.
 *
 * The channels are created without event data. The kernel then allocates no memory per event, so it
 * cannot lose an event. It holds at most one event per subscription (devx.c: deliver_event()). A
 * read returns the cookie of the subscription.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for POLLRDHUP */
#endif
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "bb_driver.h"
#include "bb_prm.h"
#include "mlx5_cmd_dv.h"

struct dv_channel {
	struct mlx5_channel base;
	struct mlx5dv_devx_event_channel *dv;
	struct dv_ctx *ctx;
};

static struct dv_channel *
dv_channel_of(struct mlx5_channel *ch)
{
	return (struct dv_channel *)(void *)ch;
}

int
dv_channel_create(struct mlx5_ctx *ctx, struct mlx5_channel **out)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct dv_channel *ch;
	int ret;

	ch = calloc(1, sizeof(*ch));
	if (ch == NULL)
		return -ENOMEM;
	errno = 0;
	ch->dv = mlx5dv_devx_create_event_channel(
		c->ibv, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
	if (ch->dv == NULL) {
		ret = bb_ibv_errno();
		/* Kernels before 5.3 do not know the command. */
		if (ret == -EPROTONOSUPPORT)
			ret = -EOPNOTSUPP;
		goto free_channel;
	}
	ret = dv_set_nonblock(ch->dv->fd);
	if (ret != 0)
		goto destroy;
	ch->ctx = c;
	ch->base.fd = ch->dv->fd;
	dv_born(c);
	*out = &ch->base;
	return 0;

destroy:
	mlx5dv_devx_destroy_event_channel(ch->dv);
free_channel:
	free(ch);
	return ret;
}

int
dv_channel_destroy(struct mlx5_ctx *ctx, struct mlx5_channel *ch)
{
	mlx5dv_devx_destroy_event_channel(dv_channel_of(ch)->dv);
	free(ch);
	return dv_died(dv_ctx_of(ctx), 0);
}

int
dv_channel_subscribe(struct mlx5_channel *ch, struct mlx5_obj *cq, uint64_t cookie)
{
	uint16_t types[] = {BB_PRM_EVENT_COMP};

	return -mlx5dv_devx_subscribe_devx_event(dv_channel_of(ch)->dv, dv_obj_of(cq)->dv,
						 sizeof(types), types, cookie);
}

/*
 * Returns true if the kernel has detached the device. The channels of a detached device are always
 * readable, although a non-blocking read returns EAGAIN (devx.c: devx_async_event_poll(),
 * devx_async_event_read()).
 */
static bool
is_gone(const struct dv_channel *ch)
{
	struct pollfd pfd = {.fd = ch->dv->fd, .events = POLLRDHUP};

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLRDHUP) != 0;
}

int
dv_channel_get(struct mlx5_channel *ch, uint64_t *cookie)
{
	struct mlx5dv_devx_async_event_hdr hdr;
	ssize_t n;

	errno = 0;
	n = mlx5dv_devx_get_event(dv_channel_of(ch)->dv, &hdr, sizeof(hdr));
	if (n < 0)
		return errno == EAGAIN && is_gone(dv_channel_of(ch)) ? -EIO : bb_ibv_errno();
	if ((size_t)n < sizeof(hdr))
		return -EIO;
	*cookie = hdr.cookie;
	return 0;
}

int
dv_clock(struct mlx5_ctx *ctx, uint64_t *now)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	int err = ibv_query_rt_values_ex(dv_ctx_of(ctx)->ibv, &values);

	/* libmlx5 returns a negative errno if the kernel maps no clock page. */
	if (err != 0)
		return err < 0 ? err : -err;
	if ((values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0)
		return -EOPNOTSUPP;
	/* libmlx5 returns ticks of the core clock in the nanoseconds field. */
	*now = (uint64_t)values.raw_clock.tv_nsec;
	return 0;
}
