/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Events: a DEVX channel for those of queues, the context's async descriptor for
 * ports and for the end of the device. Neither ever blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <rte_log.h>

#include "bb_driver.h"
#include "bb_prm.h"
#include "mlx5_cmd_dv.h"

/* An EQE is 64 bytes with its type in byte 1 (kernel: struct mlx5_eqe). */
#define EQE_TYPE_BYTE 1
#define EQE_BYTES     64
#define MAX_TYPES     8u
#define MAX_SKIPS     64 /* events of no interest per call */

int
dv_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return bb_ibv_errno();
	return 0;
}

int
dv_events_open(struct dv_ctx *c)
{
	int ret;

	ret = dv_set_nonblock(c->ibv->async_fd);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot make its event descriptor non-blocking: %s", c->base.name,
		       strerror(-ret));
		return ret;
	}
	errno = 0;
	c->events = mlx5dv_devx_create_event_channel(c->ibv, 0);
	if (c->events == NULL) {
		ret = bb_ibv_errno();
		/* Kernels before 5.3: dv_event_subscribe() says so to the driver. */
		if (ret == -EOPNOTSUPP || ret == -EPROTONOSUPPORT)
			return 0;
		BB_LOG(ERR, "%s: no event channel: %s", c->base.name, strerror(-ret));
		return ret;
	}
	ret = dv_set_nonblock(c->events->fd);
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot make its event channel non-blocking: %s", c->base.name,
		       strerror(-ret));
		dv_events_close(c);
	}
	return ret;
}

void
dv_events_close(struct dv_ctx *c)
{
	if (c->events != NULL)
		mlx5dv_devx_destroy_event_channel(c->events);
	c->events = NULL;
}

int
dv_event_subscribe(struct mlx5_ctx *ctx, struct mlx5_obj *obj, const uint16_t *types,
		   unsigned int n, uint64_t cookie)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	uint16_t list[MAX_TYPES];

	/* Device-wide events come by the async descriptor in any case. */
	if (obj == NULL)
		return 0;
	if (c->events == NULL)
		return -EOPNOTSUPP;
	if (n > MAX_TYPES)
		return -EINVAL;
	memcpy(list, types, n * sizeof(list[0]));
	return -mlx5dv_devx_subscribe_devx_event(c->events, dv_obj_handle(obj),
						 (uint16_t)(n * sizeof(list[0])), list, cookie);
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
get_devx(struct dv_ctx *c, struct mlx5_cmd_event *event)
{
	union {
		struct mlx5dv_devx_async_event_hdr hdr;
		uint8_t bytes[sizeof(struct mlx5dv_devx_async_event_hdr) + EQE_BYTES];
	} u;
	const uint8_t *eqe = u.bytes + sizeof(u.hdr);
	ssize_t n;
	int i;

	if (c->events == NULL)
		return -EAGAIN;
	for (i = 0; i < MAX_SKIPS; i++) {
		memset(&u, 0, sizeof(u));
		errno = 0;
		n = mlx5dv_devx_get_event(c->events, &u.hdr, sizeof(u));
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
	/* The kernel has let go of the device: the event may have been missed. */
	if (ret == -EIO)
		return __atomic_load_n(&c->fatal, __ATOMIC_RELAXED) ? -EAGAIN : gone(c, event);
	return ret;
}
