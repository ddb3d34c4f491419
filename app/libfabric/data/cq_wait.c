/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Wait objects of completion queues. A card makes the descriptor of its channel readable. A
 * software device runs only inside polls, so there a timer makes the descriptor readable every
 * millisecond: the application then reads the CQ, which runs the device.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fab.h"

static int
watch(struct fab_cq *cq, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return epoll_ctl(cq->fd, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

static int
open_timer(struct fab_cq *cq)
{
	cq->timer = fab_timer_open();
	return cq->timer < 0 ? cq->timer : watch(cq, cq->timer);
}

static int
open_channel(struct fab_cq *cq)
{
	const int ret = bb_channel_create(cq->domain->dev->dev, &cq->channel);

	return ret != 0 ? ret : watch(cq, bb_channel_fd(cq->channel));
}

int
fab_wait_open(struct fab_cq *cq, enum fi_wait_obj wait)
{
	int ret;

	cq->fd = cq->timer = cq->wakeup = -1;
	cq->wait = wait == FI_WAIT_UNSPEC ? FI_WAIT_FD : wait;
	if (cq->wait == FI_WAIT_NONE)
		return 0;
	if (cq->wait != FI_WAIT_FD) {
		FAB_WARN(
			CQ,
			"wait object %d is not supported: use FI_WAIT_NONE, FI_WAIT_UNSPEC or FI_WAIT_FD\n",
			wait);
		return -FI_ENOSYS;
	}
	cq->fd = epoll_create1(EPOLL_CLOEXEC);
	cq->wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ret = cq->fd < 0 || cq->wakeup < 0 ? -errno : watch(cq, cq->wakeup);
	if (ret == 0)
		ret = cq->domain->dev->attr.software ? open_timer(cq) : open_channel(cq);
	if (ret != 0)
		fab_wait_close(cq);
	return ret;
}

void
fab_wait_close(struct fab_cq *cq)
{
	const int fds[] = {cq->fd, cq->timer, cq->wakeup};
	unsigned int i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (cq->channel != NULL && !cq->domain->dev->child)
		bb_channel_destroy(cq->channel);
}

bool
fab_wait_signaled(struct fab_cq *cq)
{
	uint64_t signals;

	/* A child of fork() shares the descriptor with its parent, which gets the signal. */
	return cq->wakeup >= 0 && !cq->domain->dev->child &&
	       read(cq->wakeup, &signals, sizeof(signals)) > 0;
}

int
fab_wait_control(struct fid *fid, int command, void *arg)
{
	struct fab_cq *cq = container_of(fid, struct fab_cq, fid.fid);

	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = cq->wait;
		return 0;
	}
	if (command != FI_GETWAIT || cq->wait != FI_WAIT_FD)
		return -FI_ENOSYS;
	*(int *)arg = cq->fd;
	return 0;
}

ssize_t
fab_wait_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	struct fab_cq *cq = container_of(fid, struct fab_cq, fid);
	struct fab_dev *dev = cq->domain->dev;
	const int64_t end = fab_deadline(timeout);
	struct pollfd p = {.fd = cq->fd, .events = POLLIN};
	const bool child = dev->child;
	ssize_t n;

	(void)cond;
	if (cq->wait == FI_WAIT_NONE)
		return -FI_ENOSYS;
	for (;;) {
		n = fid->ops->read(fid, buf, count);
		if (n != -FI_EAGAIN || fab_now_ms() >= end)
			return n;
		if (child) {
			if (poll(NULL, 0, FAB_NAP_MS) < 0)
				return -FI_EAGAIN;
			continue;
		}
		if (fab_wait_signaled(cq))
			return -FI_ECANCELED;
		fab_lock(dev);
		n = fab_cq_is_empty(cq);
		fab_unlock(dev);
		if (n != 0 && poll(&p, 1, FAB_NAP_MS) < 0)
			return errno == EINTR ? -FI_EAGAIN : -errno;
	}
}

ssize_t
fab_wait_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src, const void *cond,
		   int timeout)
{
	const ssize_t n = fab_wait_sread(fid, buf, count, cond, timeout);
	ssize_t i;

	for (i = 0; i < n; i++)
		src[i] = FI_ADDR_NOTAVAIL;
	return n;
}

int
fab_wait_signal(struct fid_cq *fid)
{
	struct fab_cq *cq = container_of(fid, struct fab_cq, fid);
	const uint64_t one = 1;

	const int ret = fab_dev_check(cq->domain->dev);

	if (ret != 0)
		return ret;
	if (cq->wakeup < 0)
		return -FI_ENOSYS;
	return write(cq->wakeup, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
}
