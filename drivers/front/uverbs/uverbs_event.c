/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Descriptors from which a program reads events. The device passes events to event_sink(). That
 * function queues an event for the descriptor that has subscribed to it (uverbs_pending.c).
 * Completion channels are those of the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bb_prm.h"
#include "uverbs_queue.h"

#define EQE_TYPE  1 /* offset of the type in an EQE */
#define EQE_BYTES 64

/* ---- Delivery */

static void
wake(void *events)
{
	uverbs_wait_wake(&((struct uverbs_events *)events)->wait);
}

static void
event_sink(void *arg, const struct mlx5_cmd_event *event)
{
	struct uverbs_file *f = arg;
	struct uverbs_sub *sub;

	pthread_mutex_lock(&f->event_lock);
	if ((event->cookie & UVERBS_COOKIE) != 0 || event->type == MLX5_CMD_EVENT_DEV_FATAL) {
		if (f->async != NULL)
			uverbs_pending_add(f->async, event, event->cookie);
	} else if (event->cookie < f->n_subs && f->subs[event->cookie].to != NULL) {
		sub = &f->subs[event->cookie];
		if (sub->to->kind == UV_CHANNEL)
			uverbs_pending_add_type(sub, event->type);
		else
			uverbs_pending_add(sub->to, event, sub->cookie);
	}
	pthread_mutex_unlock(&f->event_lock);
}

void
uverbs_events_start(struct uverbs_file *f)
{
	static const uint16_t types[] = {BB_PRM_EVENT_PORT_CHANGE};

	soft_event_sink(f->soft, event_sink, f);
	/* The kernel reports changes of ports to every context. */
	if (!f->attr.link_up)
		(void)f->soft->cmd->event_subscribe(f->soft, NULL, types, 1, UVERBS_COOKIE);
}

void
uverbs_events_stop(struct uverbs_file *f)
{
	struct uverbs_events *ev;

	soft_event_sink(f->soft, NULL, NULL);
	for (ev = f->events; ev != NULL; ev = ev->next) {
		if (ev->ch != NULL)
			(void)f->soft->cmd->channel_destroy(f->soft, ev->ch);
		ev->ch = NULL;
		ev->closed = true;
		uverbs_pending_raise(ev);
	}
}

/* ---- Descriptors */

int
uverbs_events_new(struct uverbs_file *f, enum uverbs_events_kind kind)
{
	struct uverbs_events *ev = calloc(1, sizeof(*ev));
	int fd, ret = -ENOMEM;

	if (ev == NULL)
		return ret;
	ev->kind = kind;
	if (kind == UV_CHANNEL || kind == UV_COMP) {
		ret = f->soft->cmd->channel_create(f->soft, &ev->ch);
		if (ret != 0)
			goto free_events;
		soft_channel_sink(ev->ch, wake, ev);
		ev->fd = fcntl(ev->ch->fd, F_DUPFD_CLOEXEC, 0);
		/*
		 * As with the kernel's descriptor, a read waits for an event until the program sets
		 * O_NONBLOCK.
		 */
		if (ev->fd >= 0)
			(void)fcntl(ev->fd, F_SETFL, fcntl(ev->fd, F_GETFL) & ~O_NONBLOCK);
	} else {
		if (!uverbs_pending_room(ev))
			goto free_events;
		ev->fd = eventfd(0, EFD_CLOEXEC);
	}
	ret = -errno;
	if (ev->fd < 0)
		goto free_channel;
	fd = fcntl(ev->fd, F_DUPFD_CLOEXEC, 0);
	ret = -errno;
	if (fd < 0)
		goto close_fd;
	ev->refs = 1;
	ev->file = f;
	ev->program_fd = fd;
	ret = f->attr.install(f->attr.arg, fd, ev);
	if (ret != 0)
		goto close_program_fd;
	uverbs_get(f);
	ev->next = f->events;
	f->events = ev;
	if (kind == UV_ASYNC) {
		pthread_mutex_lock(&f->event_lock);
		if (f->async == NULL)
			f->async = ev;
		pthread_mutex_unlock(&f->event_lock);
	}
	return fd;

close_program_fd:
	close(fd);
close_fd:
	close(ev->fd);
free_channel:
	if (ev->ch != NULL)
		(void)f->soft->cmd->channel_destroy(f->soft, ev->ch);
free_events:
	free(ev->event);
	free(ev);
	return ret;
}

struct uverbs_events *
uverbs_events_find(const struct uverbs_file *f, int fd)
{
	struct uverbs_events *ev;

	for (ev = f->events; ev != NULL; ev = ev->next)
		if (ev->program_fd == fd)
			return ev;
	return NULL;
}

void
uverbs_events_get(struct uverbs_events *ev)
{
	__atomic_fetch_add(&ev->refs, 1, __ATOMIC_RELAXED);
}

void
uverbs_events_put(struct uverbs_events *ev)
{
	if (__atomic_fetch_sub(&ev->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	close(ev->fd);
	uverbs_put(ev->file);
	free(ev->event);
	free(ev);
}

void
uverbs_events_close(struct uverbs_events *ev)
{
	struct uverbs_file *f = ev->file;
	struct uverbs_events **at;
	uint32_t i;

	pthread_mutex_lock(&f->lock);
	for (at = &f->events; *at != ev; at = &(*at)->next)
		;
	*at = ev->next;
	ev->program_fd = -1;
	ev->closed = true;
	pthread_mutex_lock(&f->event_lock);
	if (f->async == ev)
		f->async = NULL;
	for (i = 0; i < f->n_subs; i++)
		if (f->subs[i].to == ev)
			f->subs[i].to = NULL;
	pthread_mutex_unlock(&f->event_lock);
	if (ev->ch != NULL)
		(void)f->soft->cmd->channel_destroy(f->soft, ev->ch);
	ev->ch = NULL;
	uverbs_pending_raise(ev);
	pthread_mutex_unlock(&f->lock);
	uverbs_events_put(ev);
}

/* ---- DEVX subscriptions */

/* Returns a free entry, UINT32_MAX if there is no memory. Call with event_lock held. */
static uint32_t
sub_entry(struct uverbs_file *f)
{
	struct uverbs_sub *to;
	uint32_t i, n;

	for (i = 0; i < f->n_subs; i++)
		if (!f->subs[i].used)
			return i;
	n = f->n_subs == 0 ? 64 : 2 * f->n_subs;
	to = realloc(f->subs, n * sizeof(*to));
	if (to == NULL)
		return UINT32_MAX;
	memset(to + f->n_subs, 0, (n - f->n_subs) * sizeof(*to));
	f->subs = to;
	i = f->n_subs;
	f->n_subs = n;
	return i;
}

/*
 * Returns the entry of a closed descriptor for the same object and types, UINT32_MAX if there is
 * none. The device goes on to raise these events, because it has no call that ends a subscription.
 * Call with event_lock held.
 */
static uint32_t
closed_entry(const struct uverbs_file *f, const struct mlx5_obj *obj, uint64_t types)
{
	const struct uverbs_sub *sub;
	uint32_t i;

	for (i = 0; i < f->n_subs; i++) {
		sub = &f->subs[i];
		if (sub->used && sub->to == NULL && sub->obj == obj && sub->types == types)
			return i;
	}
	return UINT32_MAX;
}

/* Returns the mask of event types, 0 if the device does not have one of them. */
static uint64_t
mask_of(const uint16_t *types, unsigned int n)
{
	uint64_t mask = 0;

	while (n-- > 0) {
		if (types[n] > 63)
			return 0;
		mask |= UINT64_C(1) << types[n];
	}
	return mask;
}

/*
 * Subscribes @ev to events by an entry of the file's table. Sets *@entry to its index. Returns 0 or
 * an errno.
 */
static int
subscribe(struct uverbs_file *f, struct uverbs_events *ev, struct mlx5_obj *obj,
	  const uint16_t *types, unsigned int n, uint64_t cookie, uint32_t *entry)
{
	const uint64_t mask = mask_of(types, n);
	bool raised;
	uint32_t at;
	int ret;

	pthread_mutex_lock(&f->event_lock);
	at = closed_entry(f, obj, mask);
	raised = at != UINT32_MAX;
	if (!raised)
		at = sub_entry(f);
	*entry = at;
	if (at != UINT32_MAX)
		f->subs[at] = (struct uverbs_sub){
			.to = ev, .obj = obj, .cookie = cookie, .types = mask, .used = true};
	pthread_mutex_unlock(&f->event_lock);
	if (at == UINT32_MAX)
		return ENOMEM;
	if (raised)
		return 0;
	ret = f->soft->cmd->event_subscribe(f->soft, obj, types, n, at);
	if (ret != 0) {
		pthread_mutex_lock(&f->event_lock);
		f->subs[at] = (struct uverbs_sub){0};
		pthread_mutex_unlock(&f->event_lock);
	}
	return -ret;
}

int
uverbs_subscribe(struct uverbs_file *f, struct uverbs_events *ev, struct mlx5_obj *obj,
		 const uint16_t *types, unsigned int n, uint64_t cookie)
{
	uint32_t entry = UINT32_MAX;
	unsigned int comps = 0, i;
	int ret = 0;

	for (i = 0; i < n; i++)
		comps += types[i] == BB_PRM_EVENT_COMP;
	if (n == 0 || (ev->kind != UV_CHANNEL && ev->kind != UV_DEVX) ||
	    (comps != 0 && obj == NULL))
		return EINVAL;
	if (ev->kind == UV_DEVX || comps != n)
		ret = subscribe(f, ev, obj, types, n, cookie, &entry);
	/* The device raises completion events for channels only. */
	if (ret != 0 || ev->kind != UV_CHANNEL || comps == 0)
		return ret;
	ret = -f->soft->cmd->channel_subscribe(ev->ch, obj, cookie);
	if (ret == 0 || entry == UINT32_MAX)
		return ret;
	/*
	 * Cancels the first half. The device goes on to raise the events until the object ends, so
	 * the entry stays in use until then.
	 */
	pthread_mutex_lock(&f->event_lock);
	(void)uverbs_pending_removed(ev, (unsigned int)__builtin_popcountll(f->subs[entry].waits));
	f->subs[entry].to = NULL;
	pthread_mutex_unlock(&f->event_lock);
	return ret;
}

void
uverbs_unsubscribe(struct uverbs_file *f, const void *obj)
{
	struct uverbs_sub *sub;
	uint32_t i;

	pthread_mutex_lock(&f->event_lock);
	for (i = 0; i < f->n_subs; i++) {
		sub = &f->subs[i];
		if (!sub->used || sub->obj != obj)
			continue;
		if (sub->to != NULL)
			(void)uverbs_pending_removed(
				sub->to, (unsigned int)__builtin_popcountll(sub->waits));
		*sub = (struct uverbs_sub){0};
	}
	pthread_mutex_unlock(&f->event_lock);
}

/* ---- Reads */

/*
 * Takes a completion event, or an event without data. Returns the number of bytes or a negative
 * errno.
 */
static ssize_t
read_channel(struct uverbs_events *ev, void *buf, size_t len)
{
	struct ib_uverbs_comp_event_desc comp;
	uint64_t cookie;
	int ret;

	if (len < sizeof(cookie))
		return -EINVAL;
	do {
		if (ev->kind == UV_CHANNEL && uverbs_pending_take_type(ev, &cookie))
			break;
		ret = ev->file->soft->cmd->channel_get(ev->ch, &cookie);
		if (ret != 0)
			return ret;
	} while (ev->kind == UV_COMP && !uverbs_comp_event(ev->file, cookie, &comp));
	if (ev->kind == UV_COMP)
		memcpy(buf, &comp, sizeof(comp));
	else
		memcpy(buf, &cookie, sizeof(cookie));
	return sizeof(cookie);
}

/*
 * Takes an event that is not a completion event. Returns the number of bytes or a negative errno:
 * -EOVERFLOW if DEVX events were lost, as Linux does when it has no memory for an event. Linux has
 * no errno for lost events of UV_ASYNC.
 */
static ssize_t
read_event(struct uverbs_events *ev, void *buf, size_t len)
{
	struct ib_uverbs_async_event_desc async;
	uint8_t eqe[sizeof(uint64_t) + EQE_BYTES] = {0};
	struct mlx5_cmd_event event;

	if (ev->kind == UV_DEVX && uverbs_pending_lost(ev))
		return -EOVERFLOW;
	if (len < (ev->kind == UV_ASYNC ? sizeof(async) : sizeof(eqe)))
		return -EINVAL;
	do {
		if (!uverbs_pending_take(ev, &event))
			return -EAGAIN;
	} while (ev->kind == UV_ASYNC && !uverbs_async_event(ev->file, &event, &async));
	if (ev->kind == UV_ASYNC) {
		memcpy(buf, &async, sizeof(async));
		return sizeof(async);
	}
	memcpy(eqe, &event.cookie, sizeof(event.cookie));
	eqe[sizeof(uint64_t) + EQE_TYPE] = (uint8_t)event.type;
	memcpy(buf, eqe, sizeof(eqe));
	return sizeof(eqe);
}

static void
put_events(void *events)
{
	uverbs_events_put(events);
}

/* Waits for an event. The thread may be cancelled meanwhile. Returns 0 or -EINTR. */
static int
wait_for_event(struct uverbs_events *ev, uint32_t seen)
{
	int ret;

	pthread_cleanup_push(put_events, ev);
	ret = uverbs_wait(&ev->wait, seen);
	pthread_cleanup_pop(0);
	return ret;
}

/*
 * A thread that holds a lock must not be cancelled, and must not execute signal handlers, which may
 * call exit().
 */
ssize_t
uverbs_events_read(struct uverbs_events *ev, void *buf, size_t len)
{
	sigset_t all, before;
	uint32_t seen;
	int state, ret;
	ssize_t rc;

	sigfillset(&all);
	for (;;) {
		seen = uverbs_wait_begin(&ev->wait);
		pthread_sigmask(SIG_BLOCK, &all, &before);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		pthread_mutex_lock(&ev->file->lock);
		if (ev->closed)
			rc = -EIO;
		else if (ev->kind == UV_CHANNEL || ev->kind == UV_COMP)
			rc = read_channel(ev, buf, len);
		else
			rc = read_event(ev, buf, len);
		pthread_mutex_unlock(&ev->file->lock);
		pthread_setcancelstate(state, NULL);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (rc != -EAGAIN || (fcntl(ev->fd, F_GETFL) & O_NONBLOCK) != 0)
			return rc;
		ret = wait_for_event(ev, seen);
		if (ret != 0)
			return ret;
	}
}
