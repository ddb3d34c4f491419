/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Events. DEVX channels report the events of queues. The async descriptor of the context reports
 * events of ports and the loss of the device. Reads of these descriptors never wait.
 *
 * The kernel holds a subscription, 128 bytes per type, until its channel is destroyed. Destroying
 * the object only removes the subscription from the kernel's lists (devx.c:
 * devx_cleanup_subscription(), and devx_async_event_destroy_uobj(), which frees it). So a new
 * channel is created after MAX_SUBSCRIPTIONS subscriptions. The old channel is destroyed with the
 * last of its objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "bb_driver.h"
#include "bb_prm.h"
#include "mlx5_cmd_dv.h"

/* An event queue entry (EQE) has 64 bytes, and its type is in byte 1 (kernel: struct mlx5_eqe). */
#define EQE_TYPE_BYTE 1
#define EQE_BYTES     64
#define MAX_TYPES     8u
#define MAX_SKIPS     64 /* maximum number of irrelevant events skipped per call */
/* maximum per channel: 512 KiB of kernel memory, enough for 1000 QPs */
#define MAX_SUBSCRIPTIONS 4096u

int
dv_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return bb_ibv_errno();
	return 0;
}

/* Creates an event channel, which then gets all new subscriptions. */
static int
events_add(struct dv_ctx *c)
{
	struct dv_events *e = calloc(1, sizeof(*e));
	int ret;

	if (e == NULL)
		return -ENOMEM;
	errno = 0;
	e->dv = mlx5dv_devx_create_event_channel(c->ibv, 0);
	if (e->dv == NULL) {
		ret = bb_ibv_errno();
		goto free_events;
	}
	ret = dv_set_nonblock(e->dv->fd);
	if (ret != 0)
		goto destroy;
	LIST_INSERT_HEAD(&c->events, e, next);
	return 0;

destroy:
	mlx5dv_devx_destroy_event_channel(e->dv);
free_events:
	free(e);
	return ret;
}

static void
events_remove(struct dv_events *e)
{
	LIST_REMOVE(e, next);
	mlx5dv_devx_destroy_event_channel(e->dv);
	free(e);
}

int
dv_events_open(struct dv_ctx *c)
{
	int ret;

	ret = dv_set_nonblock(c->ibv->async_fd);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot make the device's event descriptor non-blocking: %s",
		       c->base.name, strerror(-ret));
		return ret;
	}
	pthread_mutex_init(&c->events_lock, NULL);
	ret = events_add(c);
	/*
	 * Kernels before 5.3 have no event channels. Opening the device succeeds all the same;
	 * dv_event_subscribe() will return -EOPNOTSUPP.
	 */
	if (ret == 0 || ret == -EOPNOTSUPP || ret == -EPROTONOSUPPORT)
		return 0;
	BB_LOG(ERR, "%s: cannot create a non-blocking event channel: %s", c->base.name,
	       strerror(-ret));
	pthread_mutex_destroy(&c->events_lock);
	return ret;
}

void
dv_events_close(struct dv_ctx *c)
{
	while (!LIST_EMPTY(&c->events))
		events_remove(LIST_FIRST(&c->events));
	pthread_mutex_destroy(&c->events_lock);
}

/*
 * Returns the channel for an object's subscriptions; NULL if the kernel has no event channels. The
 * caller holds events_lock.
 */
static struct dv_events *
events_for(struct dv_ctx *c, const struct dv_obj *o)
{
	struct dv_events *e = LIST_FIRST(&c->events);

	if (o->events != NULL)
		return o->events;
	/*
	 * Use the first channel. If it is full and no descriptor is free for a new channel, use the
	 * full one.
	 */
	if (e == NULL || e->subscriptions < MAX_SUBSCRIPTIONS || events_add(c) != 0)
		return e;
	if (e->objs == 0)
		events_remove(e);
	return LIST_FIRST(&c->events);
}

int
dv_event_subscribe(struct mlx5_ctx *ctx, struct mlx5_obj *obj, const uint16_t *types,
		   unsigned int n, uint64_t cookie)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	uint16_t list[MAX_TYPES];
	struct dv_events *e;
	struct dv_obj *o;
	int ret;

	/*
	 * Device events arrive on the async descriptor without a subscription. So this call only
	 * reports at open whether objects can have subscriptions.
	 */
	if (obj == NULL)
		return LIST_EMPTY(&c->events) ? -EOPNOTSUPP : 0;
	if (n > MAX_TYPES)
		return -EINVAL;
	memcpy(list, types, n * sizeof(list[0]));
	o = dv_obj_of(obj);
	pthread_mutex_lock(&c->events_lock);
	e = events_for(c, o);
	ret = e == NULL ? -EOPNOTSUPP
			: -mlx5dv_devx_subscribe_devx_event(
				  e->dv, o->dv, (uint16_t)(n * sizeof(list[0])), list, cookie);
	if (ret == 0) {
		e->subscriptions += n;
		e->objs += o->events == NULL;
		o->events = e;
	}
	pthread_mutex_unlock(&c->events_lock);
	return ret;
}

void
dv_event_remove(struct dv_ctx *c, struct dv_events *events)
{
	pthread_mutex_lock(&c->events_lock);
	if (--events->objs == 0 && events != LIST_FIRST(&c->events))
		events_remove(events);
	pthread_mutex_unlock(&c->events_lock);
}

static int
gone(struct dv_ctx *c, struct mlx5_cmd_event *event)
{
	__atomic_store_n(&c->fatal, true, __ATOMIC_RELAXED);
	memset(event, 0, sizeof(*event));
	event->type = MLX5_CMD_EVENT_DEV_FATAL;
	return 0;
}

static int
get_from(struct dv_ctx *c, struct dv_events *e, struct mlx5_cmd_event *event)
{
	union {
		struct mlx5dv_devx_async_event_hdr hdr;
		uint8_t bytes[sizeof(struct mlx5dv_devx_async_event_hdr) + EQE_BYTES];
	} u;
	const uint8_t *eqe = u.bytes + sizeof(u.hdr);
	ssize_t n;
	int i;

	for (i = 0; i < MAX_SKIPS; i++) {
		memset(&u, 0, sizeof(u));
		errno = 0;
		n = mlx5dv_devx_get_event(e->dv, &u.hdr, sizeof(u));
		if (n < 0 && errno == EOVERFLOW) {
			BB_LOG(WARNING, "%s: the kernel ran out of memory and lost events",
			       c->base.name);
			continue;
		}
		if (n < 0)
			return bb_ibv_errno();
		if ((size_t)n <= sizeof(u.hdr) + EQE_TYPE_BYTE)
			continue;
		memset(event, 0, sizeof(*event));
		event->type = eqe[EQE_TYPE_BYTE];
		event->cookie = u.hdr.cookie;
		return 0;
	}
	return -EAGAIN;
}

static int
get_devx(struct dv_ctx *c, struct mlx5_cmd_event *event)
{
	struct dv_events *e;
	int ret = -EAGAIN;

	pthread_mutex_lock(&c->events_lock);
	LIST_FOREACH(e, &c->events, next) {
		ret = get_from(c, e, event);
		if (ret != -EAGAIN)
			break;
	}
	pthread_mutex_unlock(&c->events_lock);
	return ret;
}

static int
port_changed(const struct ibv_async_event *ev, enum bb_prm_port_change change,
	     struct mlx5_cmd_event *event)
{
	memset(event, 0, sizeof(*event));
	event->type = BB_PRM_EVENT_PORT_CHANGE;
	event->port = (uint32_t)ev->element.port_num;
	event->change = (uint8_t)change;
	return 0;
}

static int
get_async(struct dv_ctx *c, struct mlx5_cmd_event *event)
{
	struct ibv_async_event ev;
	int i;

	for (i = 0; i < MAX_SKIPS; i++) {
		errno = 0;
		if (ibv_get_async_event(c->ibv, &ev) != 0)
			return bb_ibv_errno();
		ibv_ack_async_event(&ev);
		switch (ev.event_type) {
		case IBV_EVENT_DEVICE_FATAL:
			return gone(c, event);
		case IBV_EVENT_PORT_ACTIVE:
			return port_changed(&ev, BB_PRM_PORT_CHANGE_ACTIVE, event);
		case IBV_EVENT_PORT_ERR:
			return port_changed(&ev, BB_PRM_PORT_CHANGE_DOWN, event);
		case IBV_EVENT_LID_CHANGE:
			return port_changed(&ev, BB_PRM_PORT_CHANGE_LID, event);
		case IBV_EVENT_PKEY_CHANGE:
			return port_changed(&ev, BB_PRM_PORT_CHANGE_PKEY, event);
		case IBV_EVENT_GID_CHANGE:
			return port_changed(&ev, BB_PRM_PORT_CHANGE_GUID, event);
		default:
			continue;
		}
	}
	return -EAGAIN;
}

int
dv_event_get(struct mlx5_ctx *ctx, struct mlx5_cmd_event *event)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	int ret;

	ret = get_devx(c, event);
	if (ret == -EAGAIN)
		ret = get_async(c, event);
	/*
	 * The kernel has detached the device. Report its loss here, because the event may have been
	 * missed.
	 */
	if (ret == -EIO)
		return __atomic_load_n(&c->fatal, __ATOMIC_RELAXED) ? -EAGAIN : gone(c, event);
	return ret;
}
