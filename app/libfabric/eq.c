/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Event queues: the events of connections. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fab.h"

/* Makes eq->fd readable if the queue has an event, otherwise not readable. */
static void
show(struct fab_eq *q)
{
	uint64_t n = 1;

	if (q->wakeup < 0 || q->fabric->dev->child)
		return;
	if (STAILQ_EMPTY(&q->events))
		(void)!read(q->wakeup, &n, sizeof(n));
	else
		(void)!write(q->wakeup, &n, sizeof(n));
}

void
fab_eq_add(struct fab_eq *q, uint32_t type, int err, fid_t fid, struct fi_info *info,
	   const void *data, size_t len)
{
	struct fab_event *e = calloc(1, sizeof(*e) + sizeof(struct fi_eq_cm_entry) + len);

	if (e == NULL) {
		FAB_WARN(EQ, "no memory for event %u of an endpoint; the event is lost\n", type);
		if (info != NULL)
			fi_freeinfo(info);
		return;
	}
	e->type = type;
	/* eq_strerror() gets prov_errno only. */
	e->err = (struct fi_eq_err_entry){
		.fid = fid, .context = fid->context, .err = err, .prov_errno = err};
	e->info = info;
	e->head = err != 0 ? 0 : sizeof(struct fi_eq_cm_entry);
	if (err == 0)
		memcpy(e->data, &(struct fi_eq_cm_entry){.fid = fid, .info = info}, e->head);
	if (len != 0)
		memcpy(e->data + e->head, data, len);
	e->len = e->head + len;
	STAILQ_INSERT_TAIL(&q->events, e, next);
	show(q);
}

static void
drop(struct fab_eq *q, struct fab_event *e)
{
	STAILQ_REMOVE(&q->events, e, fab_event, next);
	free(e);
	show(q);
}

bool
fab_eq_has(const struct fab_eq *q, fid_t request)
{
	const struct fab_event *e;

	STAILQ_FOREACH(e, &q->events, next)
		if (e->info != NULL && e->info->handle == request)
			return true;
	return false;
}

void
fab_eq_forget(struct fab_eq *q, const struct fid *fid)
{
	struct fab_event *e, *next;

	for (e = STAILQ_FIRST(&q->events); e != NULL; e = next) {
		next = STAILQ_NEXT(e, next);
		if (e->err.fid != fid)
			continue;
		if (e->info != NULL)
			fi_freeinfo(e->info);
		drop(q, e);
	}
}

bool
fab_eq_is_empty(struct fab_eq *q)
{
	if (!q->fabric->dev->child)
		fab_timer_clear(q->timer);
	return STAILQ_EMPTY(&q->events);
}

static ssize_t
read_locked(struct fab_eq *q, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	struct fab_event *e = STAILQ_FIRST(&q->events);
	size_t n;

	if (e == NULL)
		return -FI_EAGAIN;
	if (e->err.err != 0)
		return -FI_EAVAIL;
	if (len < e->head)
		return -FI_ETOOSMALL;
	n = len < e->len ? len : e->len;
	*type = e->type;
	memcpy(buf, e->data, n);
	if ((flags & FI_PEEK) == 0)
		drop(q, e);
	return (ssize_t)n;
}

static ssize_t
eq_read(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	struct fab_eq *q = container_of(fid, struct fab_eq, fid);
	ssize_t n;

	fab_lock(q->fabric->dev);
	bb_count_add(&q->fabric->dev->polls, 1);
	if (fab_eq_is_empty(q))
		fab_dev_run(q->fabric->dev);
	n = read_locked(q, type, buf, len, flags);
	fab_unlock(q->fabric->dev);
	return n;
}

static ssize_t
eq_sread(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, int timeout, uint64_t flags)
{
	struct fab_eq *q = container_of(fid, struct fab_eq, fid);
	const int64_t end = fab_deadline(timeout);
	struct pollfd p = {.fd = q->fd, .events = POLLIN};
	ssize_t n;

	if (q->wait == FI_WAIT_NONE)
		return -FI_ENOSYS;
	for (;;) {
		n = eq_read(fid, type, buf, len, flags);
		if (n != -FI_EAGAIN || fab_now_ms() >= end)
			return n;
		/*
		 * Sleep only briefly, because an expired timeout of the CM does not make its
		 * descriptor readable. A child of fork() does not poll the descriptor, which is the
		 * parent's.
		 */
		if (poll(&p, q->fabric->dev->child ? 0 : 1, FAB_NAP_MS) < 0)
			return errno == EINTR ? -FI_EAGAIN : -errno;
	}
}

static ssize_t
eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct fab_eq *q = container_of(fid, struct fab_eq, fid);
	const size_t room = buf->err_data_size;
	void *const to = buf->err_data;
	struct fab_event *e;
	ssize_t n = -FI_EAGAIN;

	fab_lock(q->fabric->dev);
	e = STAILQ_FIRST(&q->events);
	if (e == NULL || e->err.err == 0)
		goto unlock;
	*buf = e->err;
	if (to != NULL && room != 0) {
		buf->err_data = to;
		buf->err_data_size = room < e->len ? room : e->len;
		memcpy(to, e->data, buf->err_data_size);
	} else if (e->len != 0) {
		/* The data stay valid until the next error is read (fi_eq(3)). */
		free(q->err_data);
		q->err_data = malloc(e->len);
		if (q->err_data != NULL) {
			memcpy(q->err_data, e->data, e->len);
			buf->err_data = q->err_data;
			buf->err_data_size = e->len;
		}
	}
	if ((flags & FI_PEEK) == 0)
		drop(q, e);
	n = sizeof(*buf);
unlock:
	fab_unlock(q->fabric->dev);
	return n;
}

static ssize_t
eq_write(struct fid_eq *fid, uint32_t type, const void *buf, size_t len, uint64_t flags)
{
	struct fab_eq *q = container_of(fid, struct fab_eq, fid);
	struct fab_event *e;

	if (flags != 0)
		return -FI_EBADFLAGS;
	e = calloc(1, sizeof(*e) + len);
	if (e == NULL)
		return -FI_ENOMEM;
	e->type = type;
	e->head = e->len = len;
	memcpy(e->data, buf, len);
	fab_lock(q->fabric->dev);
	STAILQ_INSERT_TAIL(&q->events, e, next);
	show(q);
	fab_unlock(q->fabric->dev);
	return (ssize_t)len;
}

static const char *
eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	(void)fid, (void)err_data;
	return fab_error_text(fi_strerror(prov_errno), buf, len);
}

static int
eq_control(struct fid *fid, int command, void *arg)
{
	struct fab_eq *q = container_of(fid, struct fab_eq, fid.fid);

	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = q->wait;
		return 0;
	}
	if (command != FI_GETWAIT || q->wait != FI_WAIT_FD)
		return -FI_ENOSYS;
	*(int *)arg = q->fd;
	return 0;
}

static void
eq_free(struct fab_eq *q)
{
	struct fab_event *e;

	while ((e = STAILQ_FIRST(&q->events)) != NULL) {
		STAILQ_REMOVE_HEAD(&q->events, next);
		if (e->info != NULL)
			fi_freeinfo(e->info);
		free(e);
	}
	if (q->fd >= 0)
		close(q->fd);
	if (q->wakeup >= 0)
		close(q->wakeup);
	if (q->timer >= 0)
		close(q->timer);
	free(q->err_data);
	free(q);
}

static int
eq_close(struct fid *fid)
{
	struct fab_eq *q = container_of(fid, struct fab_eq, fid.fid);
	struct fab_dev *dev = q->fabric->dev;

	fab_lock(dev);
	if (q->refs != 0) {
		fab_unlock(dev);
		return -FI_EBUSY;
	}
	q->fabric->refs--;
	fab_unlock(dev);
	eq_free(q);
	return 0;
}

static struct fi_ops eq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = fab_no_bind,
	.control = eq_control,
	.ops_open = fab_no_ops_open,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

/*
 * Creates the descriptor that is readable while the CM has work or the queue has an event. On a
 * software device, messages of librdmacm arrive only in polls, so a timer replaces the CM's
 * descriptor.
 */
static int
open_wait(struct fab_eq *q)
{
	const struct fab_dev *d = q->fabric->dev;
	struct epoll_event e = {.events = EPOLLIN};
	int fds[2];
	unsigned int i;

	if (d->rdma && d->attr.software) {
		q->timer = fab_timer_open();
		if (q->timer < 0)
			return q->timer;
	}
	q->wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	q->fd = epoll_create1(EPOLL_CLOEXEC);
	if (q->fd < 0 || q->wakeup < 0)
		return -errno;
	fds[0] = q->wakeup;
	fds[1] = q->timer >= 0 ? q->timer : bb_cm_fd(d->cm);
	for (i = 0; i < 2; i++)
		if (epoll_ctl(q->fd, EPOLL_CTL_ADD, fds[i], &e) != 0)
			return -errno;
	return 0;
}

int
fab_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context)
{
	struct fab_fabric *f = container_of(fabric, struct fab_fabric, fid);
	struct fab_eq *q;
	int ret = fab_dev_check(f->dev);

	if (ret != 0)
		return ret;
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_FD) {
		FAB_WARN(
			EQ,
			"wait object %d is not supported: use FI_WAIT_NONE, FI_WAIT_UNSPEC or FI_WAIT_FD\n",
			attr->wait_obj);
		return -FI_ENOSYS;
	}
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return -FI_ENOMEM;
	q->fabric = f;
	q->wait = attr->wait_obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : attr->wait_obj;
	q->fd = q->wakeup = q->timer = -1;
	STAILQ_INIT(&q->events);
	if (q->wait != FI_WAIT_NONE)
		ret = open_wait(q);
	if (ret != 0) {
		eq_free(q);
		return ret;
	}
	fab_lock(f->dev);
	f->refs++;
	fab_unlock(f->dev);
	q->fid.fid = (struct fid){FI_CLASS_EQ, context, &eq_fi_ops};
	q->fid.ops = &eq_ops;
	*eq = &q->fid;
	return 0;
}
