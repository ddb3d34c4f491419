/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Asynchronous events. A raised event is queued for each context that subscribed to it. */
#include <stdlib.h>

#include "soft_ctl.h"

struct soft_event_subs *
soft_event_subs_of(struct soft_dev *dev, struct mlx5_obj *obj)
{
	return obj == NULL ? &dev->ctl->subs : &((struct soft_obj *)obj)->subs;
}

void
soft_event_remove(struct soft_ctx *ctx, struct mlx5_obj *obj)
{
	struct soft_ctl *ctl = ctx->dev->ctl;
	struct soft_event_sub *sub, *next;

	pthread_mutex_lock(&ctl->event_lock);
	for (sub = LIST_FIRST(soft_event_subs_of(ctx->dev, obj)); sub != NULL; sub = next) {
		next = LIST_NEXT(sub, link);
		if (obj == NULL && sub->ctx != ctx)
			continue;
		LIST_REMOVE(sub, link);
		free(sub);
	}
	pthread_mutex_unlock(&ctl->event_lock);
}

/* Queues an event for a context. Call with event_lock held. */
static void
deliver(struct soft_ctx *ctx, uint16_t type, uint64_t cookie)
{
	struct mlx5_cmd_event event = {.type = type, .cookie = cookie};

	if (type == BB_PRM_EVENT_PORT_CHANGE) {
		event.port = SOFT_PORT;
		event.change = __atomic_load_n(&ctx->dev->port_down, __ATOMIC_ACQUIRE)
				       ? BB_PRM_PORT_CHANGE_DOWN
				       : BB_PRM_PORT_CHANGE_ACTIVE;
	}
	if (ctx->sink != NULL)
		ctx->sink(ctx->sink_arg, &event);
	else if (ctx->event_count == SOFT_EVENT_QUEUE)
		ctx->event_lost = true;
	else
		ctx->events[(ctx->event_head + ctx->event_count++) % SOFT_EVENT_QUEUE] = event;
}

void
soft_event_sink(struct mlx5_ctx *ctx_, void (*fn)(void *arg, const struct mlx5_cmd_event *event),
		void *arg)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);

	pthread_mutex_lock(&ctx->dev->ctl->event_lock);
	ctx->sink = fn;
	ctx->sink_arg = arg;
	pthread_mutex_unlock(&ctx->dev->ctl->event_lock);
}

void
soft_event_raise(struct soft_dev *dev, struct mlx5_obj *obj, uint16_t type)
{
	struct soft_ctl *ctl = dev->ctl;
	struct soft_event_sub *sub;
	struct soft_ctx *ctx;

	pthread_mutex_lock(&ctl->event_lock);
	if (type == MLX5_CMD_EVENT_DEV_FATAL) {
		/*
		 * Every context gets DEV_FATAL, because a verbs program gets it without a
		 * subscription.
		 */
		LIST_FOREACH(ctx, &ctl->ctxs, link)
			deliver(ctx, type, 0);
	} else {
		LIST_FOREACH(sub, soft_event_subs_of(dev, obj), link)
			if (sub->type == type)
				deliver(sub->ctx, type, sub->cookie);
	}
	pthread_mutex_unlock(&ctl->event_lock);
}

void
soft_dev_port_set(struct soft_dev *dev, bool up)
{
	__atomic_store_n(&dev->port_down, !up, __ATOMIC_RELEASE);
	soft_event_raise(dev, NULL, BB_PRM_EVENT_PORT_CHANGE);
}
