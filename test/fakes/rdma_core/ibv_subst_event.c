/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Events. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ibv_subst_priv.h"

#define QUEUE 64

struct devx_event {
	uint64_t cookie;
	uint8_t type;
	uint32_t bytes;
	int err;
};

static struct ibv_async_event async[QUEUE];
static unsigned int n_async, next_async;
static struct devx_event devx[QUEUE];
static unsigned int n_devx, next_devx;

LIST_HEAD(channel_list, channel);
static struct channel_list channels;

void
subst_events_reset(void)
{
	n_async = next_async = n_devx = next_devx = 0;
}

struct mlx5dv_devx_event_channel *
mlx5dv_devx_create_event_channel(struct ibv_context *context,
				 enum mlx5dv_devx_create_event_channel_flags flags)
{
	struct channel *ch;
	int err = turn(__func__);

	if (err == 0 && (subst.no_channel ||
			 (flags & ~MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA) != 0))
		err = EOPNOTSUPP;
	if (err != 0)
		return null(err);
	ch = handle(sizeof(*ch));
	ch->ctx = ctx_of(context);
	ch->peer = -1;
	LIST_INSERT_HEAD(&channels, ch, link);
	if (flags != 0) {
		int fl;

		if (soft_cmd_if.channel_create(ch->ctx->soft, &ch->comp) != 0)
			abort();
		/* Blocking, as the kernel's, until the caller changes it. */
		ch->pub.fd = subst.bad_channel_fd ? -1 : ch->comp->fd;
		fl = fcntl(ch->comp->fd, F_GETFL);
		if (fcntl(ch->comp->fd, F_SETFL, fl & ~O_NONBLOCK) != 0)
			abort();
		return &ch->pub;
	}
	ch->pub.fd = subst.bad_channel_fd ? -1 : eventfd(0, 0);
	return &ch->pub;
}

void
mlx5dv_devx_destroy_event_channel(struct mlx5dv_devx_event_channel *channel)
{
	struct channel *ch = (struct channel *)(void *)channel;

	if (ch->comp != NULL)
		soft_cmd_if.channel_destroy(ch->ctx->soft, ch->comp);
	else
		close(channel->fd);
	if (ch->peer >= 0)
		close(ch->peer);
	LIST_REMOVE(ch, link);
	subst.subscriptions -= ch->subscriptions;
	free(ch->cookies);
	release(channel);
}

/*
 * As devx.c after is_destroyed: poll() always returns POLLIN and POLLRDHUP, pending events are
 * lost. A socket after shutdown behaves so, and replaces the channel's descriptor.
 */
void
subst_remove(void)
{
	struct channel *ch;
	int pair[2];

	subst.gone = true;
	LIST_FOREACH(ch, &channels, link) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0 ||
		    shutdown(pair[0], SHUT_RD) != 0 || dup2(pair[0], ch->pub.fd) < 0)
			abort();
		close(pair[0]);
		ch->peer = pair[1];
	}
}

static void
keep(struct channel *ch, uint64_t cookie)
{
	uint64_t *grown = realloc(ch->cookies, (ch->subscriptions + 1) * sizeof(*grown));

	if (grown == NULL)
		abort();
	grown[ch->subscriptions++] = cookie;
	ch->cookies = grown;
	subst.subscriptions++;
}

static bool
has(const struct channel *ch, uint64_t cookie)
{
	for (uint32_t i = 0; i < ch->subscriptions; i++)
		if (ch->cookies[i] == cookie)
			return true;
	return false;
}

/*
 * Returns whether an event belongs to another channel. An event without an owner comes on any
 * channel.
 */
static bool
of_another(const struct channel *ch, uint64_t cookie)
{
	const struct channel *other;

	if (has(ch, cookie))
		return false;
	LIST_FOREACH(other, &channels, link)
		if (other->comp == NULL && has(other, cookie))
			return true;
	return false;
}

int
mlx5dv_devx_subscribe_devx_event(struct mlx5dv_devx_event_channel *channel,
				 struct mlx5dv_devx_obj *obj, uint16_t events_sz,
				 uint16_t events_num[], uint64_t cookie)
{
	struct channel *ch = (struct channel *)(void *)channel;
	uint32_t i, n = events_sz / (uint32_t)sizeof(events_num[0]);
	int err = turn(__func__);

	if (err == 0 && events_sz % sizeof(events_num[0]) != 0)
		err = EINVAL;
	if (err != 0)
		return err;
	if (ch->comp != NULL) {
		/* The kernel accepts other types too; this substitute knows completions only. */
		if (n != 1 || events_num[0] != BB_PRM_EVENT_COMP)
			abort();
		err = -soft_cmd_if.channel_subscribe(ch->comp, obj->soft, cookie);
	} else {
		err = -soft_cmd_if.event_subscribe(ch->ctx->soft, obj->soft, events_num, n, cookie);
	}
	for (i = 0; err == 0 && i < n; i++)
		keep(ch, cookie);
	subst.cookie = cookie;
	return err;
}

void
subst_async(enum ibv_event_type type, int port)
{
	async[n_async % QUEUE].event_type = type;
	async[n_async++ % QUEUE].element.port_num = port;
}

void
subst_devx_overflow(void)
{
	devx[n_devx++ % QUEUE] = (struct devx_event){.err = EOVERFLOW};
}

void
subst_devx_event(uint64_t cookie, uint8_t type, uint32_t bytes)
{
	devx[n_devx++ % QUEUE] = (struct devx_event){cookie, type, bytes, 0};
}

/* The software device has one queue per context; the kernel has a descriptor for each kind. */
static void
sort_events(struct ctx *c)
{
	struct mlx5_cmd_event ev;

	while (soft_cmd_if.event_get(c->soft, &ev) == 0) {
		if (ev.type == BB_PRM_EVENT_PORT_CHANGE)
			subst_async(ev.change == BB_PRM_PORT_CHANGE_DOWN ? IBV_EVENT_PORT_ERR
									 : IBV_EVENT_PORT_ACTIVE,
				    (int)ev.port);
		else
			subst_devx_event(ev.cookie, (uint8_t)ev.type, 64);
	}
}

static bool
nonblocking(int fd)
{
	return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

ssize_t
mlx5dv_devx_get_event(struct mlx5dv_devx_event_channel *channel,
		      struct mlx5dv_devx_async_event_hdr *event, size_t len)
{
	struct channel *ch = (struct channel *)(void *)channel;
	int err = turn(__func__);
	struct devx_event *e;
	uint64_t cookie;

	if (!nonblocking(channel->fd))
		abort(); /* would block forever */
	/* O_NONBLOCK is checked before is_destroyed (devx.c: devx_async_event_read()). */
	if (subst.gone) {
		errno = EAGAIN;
		return -1;
	}
	if (ch->comp != NULL) {
		if (err == 0 && len < sizeof(event->cookie))
			err = EINVAL;
		if (err == 0)
			err = -soft_cmd_if.channel_get(ch->comp, &cookie);
		if (err == 0) {
			event->cookie = cookie;
			return sizeof(event->cookie);
		}
		errno = err;
		return -1;
	}
	sort_events(ch->ctx);
	if (err == 0 && (next_devx == n_devx || of_another(ch, devx[next_devx % QUEUE].cookie)))
		err = EAGAIN;
	if (err != 0) {
		errno = err;
		return -1;
	}
	e = &devx[next_devx++ % QUEUE];
	if (e->err != 0 || sizeof(*event) + e->bytes > len) {
		errno = e->err != 0 ? e->err : ENOSPC;
		return -1;
	}
	event->cookie = e->cookie;
	memset(event->out_data, 0, e->bytes);
	if (e->bytes > 1)
		event->out_data[1] = e->type;
	return (ssize_t)(sizeof(*event) + e->bytes);
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int err = turn(__func__);

	if (!nonblocking(context->async_fd))
		abort(); /* would block forever */
	sort_events(ctx_of(context));
	if (err == 0 && next_async == n_async)
		err = EAGAIN;
	if (err != 0) {
		errno = err;
		return -1;
	}
	*event = async[next_async++ % QUEUE];
	subst.handles++; /* must be acknowledged */
	return 0;
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
	subst.handles--;
}

static int
query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	int err = turn(__func__);
	uint64_t now;

	if (err == 0 && (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK) != 0)
		err = EINVAL;
	if (err == 0)
		err = -soft_cmd_if.clock(ctx_of(context)->soft, &now);
	/* As libmlx5: a negative errno if there is no clock page. */
	if (err != 0)
		return err == EOPNOTSUPP ? -err : err;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)now;
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

void
subst_clock_ops(struct verbs_context *verbs)
{
	verbs->query_rt_values = query_rt_values;
}
