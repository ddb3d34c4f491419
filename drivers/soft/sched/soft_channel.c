/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Completion channels. A channel behaves like a DEVX event file of the kernel that was created
 * without event data (drivers/infiniband/hw/mlx5/devx.c). A subscription is pending in its channel
 * at most once, even if its CQ raised several events. Reading the channel returns the
 * subscription's cookie. The descriptor is an eventfd that is readable while a subscription is
 * pending.
 *
 * All lists are protected by soft_ctl.event_lock, which engines take under their own lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "soft_ctl.h"
#include "soft_hooks.h"

/* A subscription of a channel to a CQ. */
struct soft_comp_sub {
	LIST_ENTRY(soft_comp_sub) of_cq, of_channel;
	TAILQ_ENTRY(soft_comp_sub) ready;
	struct soft_channel *ch;
	uint64_t cookie;
	bool waits; /* pending: the subscription is on the channel's list "ready" */
};

struct soft_channel {
	struct mlx5_channel pub;
	struct soft_ctx *ctx;
	LIST_HEAD(, soft_comp_sub) subs;
	TAILQ_HEAD(, soft_comp_sub) ready;
	bool raised; /* the counter of the eventfd is not 0 */
	/* Callback of soft_channel_sink(), NULL if none. */
	void (*fn)(void *arg);
	void *arg;
};

static struct soft_channel *
soft_channel_of(struct mlx5_channel *ch)
{
	return (struct soft_channel *)(void *)ch;
}

int
soft_channel_create(struct mlx5_ctx *ctx_, struct mlx5_channel **out)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_channel *ch;
	int ret;

	ch = calloc(1, sizeof(*ch));
	if (ch == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for a completion channel", ctx->dev->name);
		return -ENOMEM;
	}
	ch->pub.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ch->pub.fd < 0) {
		ret = -errno;
		SOFT_LOG(ERR, "%s: cannot create the eventfd of a completion channel: %s",
			 ctx->dev->name, strerror(-ret));
		free(ch);
		return ret;
	}
	ch->ctx = ctx;
	LIST_INIT(&ch->subs);
	TAILQ_INIT(&ch->ready);
	pthread_mutex_lock(&ctx->dev->lock);
	ctx->channels++;
	pthread_mutex_unlock(&ctx->dev->lock);
	*out = &ch->pub;
	return 0;
}

/* Removes and frees a subscription. Call with event_lock held. */
static void
sub_free(struct soft_comp_sub *sub)
{
	if (sub->waits)
		TAILQ_REMOVE(&sub->ch->ready, sub, ready);
	LIST_REMOVE(sub, of_cq);
	LIST_REMOVE(sub, of_channel);
	free(sub);
}

int
soft_channel_destroy(struct mlx5_ctx *ctx_, struct mlx5_channel *ch_)
{
	struct soft_channel *ch = soft_channel_of(ch_);
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_ctl *ctl = ctx->dev->ctl;

	if (ch->ctx != ctx) {
		SOFT_LOG(ERR,
			 "%s: cannot destroy a completion channel that belongs to another device "
			 "context",
			 ctx->dev->name);
		return -EINVAL;
	}
	pthread_mutex_lock(&ctl->event_lock);
	while (!LIST_EMPTY(&ch->subs))
		sub_free(LIST_FIRST(&ch->subs));
	pthread_mutex_unlock(&ctl->event_lock);
	close(ch->pub.fd);
	free(ch);
	pthread_mutex_lock(&ctx->dev->lock);
	ctx->channels--;
	pthread_mutex_unlock(&ctx->dev->lock);
	return 0;
}

int
soft_channel_subscribe(struct mlx5_channel *ch_, struct mlx5_obj *obj, uint64_t cookie)
{
	struct soft_channel *ch = soft_channel_of(ch_);
	struct soft_dev *dev = ch->ctx->dev;
	uint64_t id = ((struct soft_obj *)obj)->id;
	struct soft_comp_sub *sub;
	struct soft_cq *cq;

	/*
	 * Rejects objects other than CQs. The kernel accepts them, but their events never arrive.
	 */
	if (obj->ctx != &ch->ctx->pub || id >> 32 != BB_PRM_OP_CREATE_CQ) {
		SOFT_LOG(ERR, "%s: cannot subscribe to completion events: the object %s", dev->name,
			 obj->ctx != &ch->ctx->pub ? "belongs to another device context"
						   : "is not a CQ");
		return -EINVAL;
	}
	sub = calloc(1, sizeof(*sub));
	if (sub == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for an event subscription", dev->name);
		return -ENOMEM;
	}
	sub->ch = ch;
	sub->cookie = cookie;
	pthread_mutex_lock(&dev->lock);
	cq = dev->cqs[(uint32_t)id];
	pthread_mutex_lock(&dev->ctl->event_lock);
	LIST_INSERT_HEAD(&cq->subs, sub, of_cq);
	LIST_INSERT_HEAD(&ch->subs, sub, of_channel);
	pthread_mutex_unlock(&dev->ctl->event_lock);
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

void
soft_channel_sink(struct mlx5_channel *ch_, void (*fn)(void *arg), void *arg)
{
	struct soft_channel *ch = soft_channel_of(ch_);
	struct soft_ctl *ctl = ch->ctx->dev->ctl;

	pthread_mutex_lock(&ctl->event_lock);
	ch->fn = fn;
	ch->arg = arg;
	pthread_mutex_unlock(&ctl->event_lock);
}

/* Makes the descriptor unreadable if no subscription is pending. Call with event_lock held. */
static void
lower(struct soft_channel *ch)
{
	uint64_t count;

	if (!TAILQ_EMPTY(&ch->ready) || !ch->raised)
		return;
	/* drivers/front adds 1 to the count while other events are pending. */
	if (read(ch->pub.fd, &count, sizeof(count)) < 0 ||
	    (--count != 0 && write(ch->pub.fd, &count, sizeof(count)) < 0))
		SOFT_LOG(ERR, "%s: cannot read the eventfd of a completion channel: %s",
			 ch->ctx->dev->name, strerror(errno));
	ch->raised = false;
}

int
soft_channel_get(struct mlx5_channel *ch_, uint64_t *cookie)
{
	struct soft_channel *ch = soft_channel_of(ch_);
	struct soft_ctl *ctl = ch->ctx->dev->ctl;
	struct soft_comp_sub *sub;

	pthread_mutex_lock(&ctl->event_lock);
	sub = TAILQ_FIRST(&ch->ready);
	if (sub != NULL) {
		*cookie = sub->cookie;
		TAILQ_REMOVE(&ch->ready, sub, ready);
		sub->waits = false;
	}
	lower(ch);
	pthread_mutex_unlock(&ctl->event_lock);
	return sub != NULL ? 0 : -EAGAIN;
}

void
soft_channel_fire(struct soft_dev *dev, struct soft_cq *cq)
{
	const uint64_t one = 1;
	struct soft_comp_sub *sub;

	pthread_mutex_lock(&dev->ctl->event_lock);
	LIST_FOREACH(sub, &cq->subs, of_cq) {
		if (sub->waits)
			continue;
		sub->waits = true;
		if (!sub->ch->raised && write(sub->ch->pub.fd, &one, sizeof(one)) < 0)
			SOFT_LOG(ERR, "%s: cannot write to the eventfd of a completion channel: %s",
				 dev->name, strerror(errno));
		TAILQ_INSERT_TAIL(&sub->ch->ready, sub, ready);
		if (!sub->ch->raised && sub->ch->fn != NULL)
			sub->ch->fn(sub->ch->arg);
		sub->ch->raised = true;
	}
	pthread_mutex_unlock(&dev->ctl->event_lock);
}

void
soft_channel_remove_cq(struct soft_dev *dev, struct soft_cq *cq)
{
	struct soft_comp_sub *sub;
	struct soft_channel *ch;

	pthread_mutex_lock(&dev->ctl->event_lock);
	while ((sub = LIST_FIRST(&cq->subs)) != NULL) {
		ch = sub->ch;
		sub_free(sub);
		lower(ch);
	}
	pthread_mutex_unlock(&dev->ctl->event_lock);
}
