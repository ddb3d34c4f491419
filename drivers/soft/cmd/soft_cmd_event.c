/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Asynchronous events: a context subscribes to events, and the device delivers them to it. */
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
		SOFT_LOG(ERR,
			 "%s: cannot subscribe to events: the object belongs to another device "
			 "context",
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
			SOFT_LOG(ERR, "%s: out of memory for an event subscription",
				 ctx->dev->name);
			return -ENOMEM;
		}
		sub[i]->ctx = ctx;
		sub[i]->type = types[i];
		sub[i]->cookie = cookie;
	}
	pthread_mutex_lock(&ctl->event_lock);
	for (i = 0; i < n; i++)
		LIST_INSERT_HEAD(soft_event_subs_of(ctx->dev, obj), sub[i], link);
	pthread_mutex_unlock(&ctl->event_lock);
	return 0;
}

int
soft_event_get(struct mlx5_ctx *ctx_, struct mlx5_cmd_event *event)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_ctl *ctl = ctx->dev->ctl;
	int ret = -EAGAIN;

	pthread_mutex_lock(&ctl->event_lock);
	if (ctx->event_lost) {
		/*
		 * The overflow is reported once, before the pending events, as by
		 * devx_async_event_read() in the kernel.
		 */
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
		SOFT_LOG(ERR,
			 "%s: events were lost, because more than %d were pending: call "
			 "bb_event_get() more often",
			 ctx->dev->name, SOFT_EVENT_QUEUE);
	return ret;
}
