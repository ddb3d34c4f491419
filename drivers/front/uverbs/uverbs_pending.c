/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Pending events of a descriptor: those that the program has not read. The eventfd of the
 * descriptor is readable while there are any. A completion channel has an eventfd of the device.
 * Its count is 1 if the channel has events, plus 1 if other events are pending.
 */
#include <stdlib.h>
#include <unistd.h>

#include <rte_log.h>

#include "uverbs_priv.h"

void
uverbs_pending_raise(struct uverbs_events *ev)
{
	const uint64_t one = 1;

	/* An error means that the counter is at its maximum, so the descriptor is readable. */
	if (write(ev->fd, &one, sizeof(one)) == sizeof(one))
		uverbs_wait_wake(&ev->wait);
}

bool
uverbs_pending_removed(struct uverbs_events *ev, unsigned int n)
{
	uint64_t count;

	ev->n -= n;
	if (n == 0 || ev->n != 0)
		return true;
	if (read(ev->fd, &count, sizeof(count)) < 0)
		return false;
	return --count == 0 || write(ev->fd, &count, sizeof(count)) > 0;
}

/* ---- Events with data, in a ring */

static struct mlx5_cmd_event *
event_at(const struct uverbs_events *ev, unsigned int i)
{
	return &ev->event[(ev->first + i) % ev->size];
}

bool
uverbs_pending_room(struct uverbs_events *ev)
{
	const unsigned int size = ev->size != 0 ? 2 * ev->size : UVERBS_MAX_EVENTS;
	struct mlx5_cmd_event *to;
	unsigned int i;

	if (ev->size != 0 && (ev->kind != UV_ASYNC || size > UVERBS_MAX_ASYNC_EVENTS))
		return false;
	to = calloc(size, sizeof(*to));
	if (to == NULL)
		return false;
	for (i = 0; i < ev->n; i++)
		to[i] = *event_at(ev, i);
	free(ev->event);
	ev->event = to;
	ev->first = 0;
	ev->size = size;
	return true;
}

void
uverbs_pending_add(struct uverbs_events *ev, const struct mlx5_cmd_event *event, uint64_t cookie)
{
	struct mlx5_cmd_event *to;

	if (ev->n == ev->size && !uverbs_pending_room(ev)) {
		/* Linux has no errno for lost events of UV_ASYNC. */
		if (ev->kind == UV_ASYNC && !ev->lost)
			rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1,
				"uverbs: asynchronous event 0x%x is lost, and maybe later ones: %u "
				"events are pending; read them by ibv_get_async_event()\n",
				event->type, ev->n);
		ev->lost = true;
		return;
	}
	to = event_at(ev, ev->n);
	*to = *event;
	to->cookie = cookie;
	if (ev->n++ == 0)
		uverbs_pending_raise(ev);
}

bool
uverbs_pending_take(struct uverbs_events *ev, struct mlx5_cmd_event *event)
{
	bool any;

	pthread_mutex_lock(&ev->file->event_lock);
	any = ev->n != 0;
	if (any) {
		*event = *event_at(ev, 0);
		ev->first = (ev->first + 1) % ev->size;
		any = uverbs_pending_removed(ev, 1);
	}
	pthread_mutex_unlock(&ev->file->event_lock);
	return any;
}

bool
uverbs_pending_lost(struct uverbs_events *ev)
{
	bool lost;

	pthread_mutex_lock(&ev->file->event_lock);
	lost = ev->lost;
	ev->lost = false;
	pthread_mutex_unlock(&ev->file->event_lock);
	return lost;
}

void
uverbs_pending_drop(struct uverbs_file *f, uint64_t handle)
{
	struct uverbs_events *ev;
	unsigned int i, left = 0;

	pthread_mutex_lock(&f->event_lock);
	ev = f->async;
	if (ev != NULL) {
		for (i = 0; i < ev->n; i++)
			if (event_at(ev, i)->cookie != (UVERBS_COOKIE | handle))
				*event_at(ev, left++) = *event_at(ev, i);
		(void)uverbs_pending_removed(ev, ev->n - left);
	}
	pthread_mutex_unlock(&f->event_lock);
}

/* ---- Events without data, of subscriptions to a UV_CHANNEL */

void
uverbs_pending_add_type(struct uverbs_sub *sub, uint16_t type)
{
	if ((sub->waits >> type & 1) != 0)
		return;
	sub->waits |= UINT64_C(1) << type;
	if (sub->to->n++ == 0)
		uverbs_pending_raise(sub->to);
}

bool
uverbs_pending_take_type(struct uverbs_events *ev, uint64_t *cookie)
{
	struct uverbs_file *f = ev->file;
	struct uverbs_sub *sub;
	bool any = false;
	uint32_t i;

	pthread_mutex_lock(&f->event_lock);
	for (i = 0; i < f->n_subs && ev->n != 0 && !any; i++) {
		sub = &f->subs[i];
		if (sub->to != ev || sub->waits == 0)
			continue;
		sub->waits &= sub->waits - 1;
		*cookie = sub->cookie;
		any = uverbs_pending_removed(ev, 1);
	}
	pthread_mutex_unlock(&f->event_lock);
	return any;
}
