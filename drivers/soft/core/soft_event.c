/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdlib.h>

#include "soft_ctl.h"
#include "soft_kernel.h"

int
soft_event_subscribe(struct mlx5_ctx *ctx_, struct mlx5_obj *obj, const uint16_t *types,
		     unsigned int n, uint64_t cookie)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_ctl *ctl = ctx->dev->ctl;
	struct soft_event_sub *sub[16];
	unsigned int i;
	int ret;

	if (obj != NULL && obj->ctx != ctx_) {
		SOFT_LOG(ERR, "%s: event subscription: the object is another context's",
			 ctx->dev->name);
		return -EINVAL;
	}
	ret = soft_kernel_events(types, n, obj != NULL);
	if (ret != 0)
		return ret;
	for (i = 0; i < n; i++) {
		sub[i] = calloc(1, sizeof(*sub[i]));
		if (sub[i] == NULL) {
			while (i-- > 0)
				free(sub[i]);
			SOFT_LOG(ERR, "%s: no memory for an event subscription", ctx->dev->name);
			return -ENOMEM;
		}
		sub[i]->ctx = ctx;
		sub[i]->obj = obj;
		sub[i]->type = types[i];
		sub[i]->cookie = cookie;
	}
	pthread_mutex_lock(&ctl->event_lock);
	for (i = 0; i < n; i++)
		LIST_INSERT_HEAD(&ctl->subs, sub[i], link);
	pthread_mutex_unlock(&ctl->event_lock);
	return 0;
}

void
soft_event_forget(struct soft_ctx *ctx, struct mlx5_obj *obj)
{
	struct soft_ctl *ctl = ctx->dev->ctl;
	struct soft_event_sub *sub, *next;

	pthread_mutex_lock(&ctl->event_lock);
	for (sub = LIST_FIRST(&ctl->subs); sub != NULL; sub = next) {
		next = LIST_NEXT(sub, link);
		if (sub->ctx != ctx || (obj != NULL && sub->obj != obj))
			continue;
		LIST_REMOVE(sub, link);
		free(sub);
	}
	pthread_mutex_unlock(&ctl->event_lock);
}

/* Called with event_lock held. */
static void
deliver(struct soft_ctx *ctx, uint16_t type, uint64_t cookie)
{
	struct mlx5_cmd_event *event;

	if (ctx->event_count == SOFT_EVENT_QUEUE) {
		ctx->event_lost = true;
		return;
	}
	event = &ctx->events[(ctx->event_head + ctx->event_count++) % SOFT_EVENT_QUEUE];
	event->type = type;
	event->cookie = cookie;
	event->port = 0;
	event->change = 0;
	if (type != BB_PRM_EVENT_PORT_CHANGE)
		return;
	event->port = SOFT_PORT;
	event->change = __atomic_load_n(&ctx->dev->port_down, __ATOMIC_ACQUIRE)
				? BB_PRM_PORT_CHANGE_DOWN
				: BB_PRM_PORT_CHANGE_ACTIVE;
}

void
soft_event_raise(struct soft_dev *dev, struct mlx5_obj *obj, uint16_t type)
{
	struct soft_ctl *ctl = dev->ctl;
	struct soft_event_sub *sub;
	struct soft_ctx *ctx;

	pthread_mutex_lock(&ctl->event_lock);
	if (type == MLX5_CMD_EVENT_DEV_FATAL) {
		/* From the verbs async channel, which needs no subscription. */
		LIST_FOREACH(ctx, &ctl->ctxs, link)
			deliver(ctx, type, 0);
	} else {
		LIST_FOREACH(sub, &ctl->subs, link)
			if (sub->obj == obj && sub->type == type)
				deliver(sub->ctx, type, sub->cookie);
	}
	pthread_mutex_unlock(&ctl->event_lock);
}

int
soft_event_get(struct mlx5_ctx *ctx_, struct mlx5_cmd_event *event)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_ctl *ctl = ctx->dev->ctl;
	int ret = -EAGAIN;

	pthread_mutex_lock(&ctl->event_lock);
	if (ctx->event_lost) {
		/* devx_async_event_read(): told once, before what is still there */
		ctx->event_lost = false;
		ret = -EOVERFLOW;
	} else if (ctx->event_count != 0) {
		*event = ctx->events[ctx->event_head];
		ctx->event_head = (ctx->event_head + 1) % SOFT_EVENT_QUEUE;
		ctx->event_count--;
		ret = 0;
	}
	pthread_mutex_unlock(&ctl->event_lock);
	if (ret == -EOVERFLOW)
		SOFT_LOG(ERR, "%s: more than %d events waited, some are lost: poll events oftener",
			 ctx->dev->name, SOFT_EVENT_QUEUE);
	return ret;
}
