/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Completion channels. A channel consists of a channel of libibverbs and of the events that this
 * driver raises.
 *
 * A CQ of libibverbs raises an event only for completions that arrive after it was armed. A CQ of
 * Bluebell also raises an event for earlier completions that the application has not polled
 * (bb_cq_arm()). So if arming finds such completions, this driver raises the event. The application
 * waits on an epoll descriptor that has both sources. If both raise an event, the first one is
 * reported. The second is dropped unless the CQ was armed again.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs_drv.h"

#define MAX_DROPS 64u /* maximum dropped events per call */

static int
watch(int epfd, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

int
verbs_channel_create(struct bb_channel *ch)
{
	struct verbs_dev *d = verbs_dev_of(ch->dev);
	struct verbs_channel *h = calloc(1, sizeof(*h));
	int ret = -ENOMEM;

	if (h == NULL)
		goto logged;
	h->evfd = -1;
	ch->fd = -1;
	TAILQ_INIT(&h->raised);
	errno = 0;
	h->ib = ibv_create_comp_channel(d->ctx);
	if (h->ib == NULL) {
		ret = bb_ibv_errno();
		goto free_channel;
	}
	h->evfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ch->fd = epoll_create1(EPOLL_CLOEXEC);
	ret = h->evfd < 0 || ch->fd < 0 ? -errno : 0;
	if (ret == 0 && fcntl(h->ib->fd, F_SETFL, fcntl(h->ib->fd, F_GETFL) | O_NONBLOCK) != 0)
		ret = -errno;
	if (ret == 0)
		ret = watch(ch->fd, h->ib->fd);
	if (ret == 0)
		ret = watch(ch->fd, h->evfd);
	if (ret == 0)
		ret = -pthread_mutex_init(&h->lock, NULL);
	if (ret != 0)
		goto close_fds;
	ch->priv = h;
	return 0;

close_fds:
	if (ch->fd >= 0)
		close(ch->fd);
	if (h->evfd >= 0)
		close(h->evfd);
	(void)ibv_destroy_comp_channel(h->ib);
free_channel:
	free(h);
logged:
	BB_LOG(ERR, "%s: cannot create a completion channel: %s", ch->dev->name, strerror(-ret));
	return ret;
}

int
verbs_channel_destroy(struct bb_channel *ch)
{
	struct verbs_channel *h = ch->priv;
	const int fd = h->ib->fd, left = ibv_destroy_comp_channel(h->ib);
	const int err = verbs_gone(verbs_dev_of(ch->dev), left);

	if (err == 0 && left != 0)
		close(fd);
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot destroy a completion channel: %s", ch->dev->name,
		       strerror(err));
		return -err;
	}
	close(ch->fd);
	close(h->evfd);
	pthread_mutex_destroy(&h->lock);
	free(h);
	return 0;
}

/* Removes the CQ from the list of raised events. The caller holds the channel's lock. */
static void
unraise(struct verbs_channel *h, struct verbs_cq *c)
{
	uint64_t n;

	TAILQ_REMOVE(&h->raised, c, link);
	c->raised = false;
	if (TAILQ_EMPTY(&h->raised) && read(h->evfd, &n, sizeof(n)) < 0)
		BB_LOG(DEBUG, "completion channel: cannot read the event descriptor: %s",
		       strerror(errno));
}

/* Removes and returns the CQ of the oldest event that this driver raised; NULL if there is none. */
static struct verbs_cq *
take_raised(struct verbs_channel *h)
{
	struct verbs_cq *c;

	pthread_mutex_lock(&h->lock);
	c = TAILQ_FIRST(&h->raised);
	if (c != NULL) {
		unraise(h, c);
		c->armed = false;
	}
	pthread_mutex_unlock(&h->lock);
	return c;
}

/*
 * Disarms the CQ. Returns true if the CQ was armed; the caller must then report an event of
 * libibverbs for the CQ.
 */
static bool
owed(struct verbs_channel *h, struct verbs_cq *c)
{
	bool armed;

	pthread_mutex_lock(&h->lock);
	armed = c->armed;
	c->armed = false;
	if (c->raised)
		unraise(h, c);
	pthread_mutex_unlock(&h->lock);
	return armed;
}

/*
 * Returns true if the kernel has detached the device. The channel is then always readable, and a
 * non-blocking read returned EAGAIN before Linux 6.4 (uverbs_main.c: ib_uverbs_event_poll(),
 * ib_uverbs_event_read()).
 */
static bool
is_gone(const struct verbs_channel *h)
{
	struct pollfd pfd = {.fd = h->ib->fd};

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLERR) != 0;
}

int
verbs_channel_get(struct bb_channel *ch, struct bb_cq **cq)
{
	struct verbs_channel *h = ch->priv;
	struct verbs_cq *c = take_raised(h);
	unsigned int i;

	if (c != NULL) {
		*cq = c->bb;
		return 0;
	}
	for (i = 0; i < MAX_DROPS; i++) {
		struct ibv_cq *ib;
		void *context;

		errno = 0;
		if (ibv_get_cq_event(h->ib, &ib, &context) != 0) {
			if (errno == EAGAIN || errno == EINTR)
				return is_gone(h) ? -EIO : -EAGAIN;
			BB_LOG(ERR, "%s: cannot read completion events: %s", ch->dev->name,
			       strerror(errno));
			return bb_ibv_errno();
		}
		*cq = context;
		c = (*cq)->ctrl->priv;
		ibv_ack_cq_events(ib, 1);
		if (owed(h, c))
			return 0;
	}
	return -EAGAIN;
}

/*
 * Returns true if the CQ has a completion, not polled yet, that must raise the event. No call
 * reports whether a receive was solicited, so every receive raises it.
 */
static bool
unread(const struct bb_cq *cq, bool solicited_only)
{
	struct bb_cqring walk = cq->ring;
	const struct bb_cqe *cqe;

	for (; walk.ci - cq->ring.ci <= cq->ring.mask; walk.ci++) {
		cqe = bb_cqring_peek(&walk);
		if (cqe == NULL)
			return false;
		if (!solicited_only || cqe->op_own >> 4 != BB_CQE_REQ)
			return true;
	}
	return false;
}

/*
 * Raises the event if the CQ is still armed. Reading an event disarms the CQ, and another thread
 * may have read one.
 */
static void
raise_event(struct verbs_channel *h, struct verbs_cq *c)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&h->lock);
	if (c->armed && !c->raised) {
		c->raised = true;
		TAILQ_INSERT_TAIL(&h->raised, c, link);
		if (write(h->evfd, &one, sizeof(one)) < 0)
			BB_LOG(ERR, "%s: cannot raise a completion event of CQ 0x%x: %s",
			       c->d->ibname, c->bb->cqn, strerror(errno));
	}
	pthread_mutex_unlock(&h->lock);
}

int
verbs_cq_arm(struct bb_cq *cq, bool solicited_only)
{
	struct verbs_channel *h = cq->ctrl->channel->priv;
	struct verbs_cq *c = cq->ctrl->priv;
	int err;

	pthread_mutex_lock(&h->lock);
	c->armed = true;
	c->solicited_only = solicited_only;
	pthread_mutex_unlock(&h->lock);
	/*
	 * With siw and rxe, arm for every completion instead of solicited ones. siw treats every
	 * receive as unsolicited, also a failed one (siw_rqe_complete()). rxe of Linux 6.12 treats
	 * the receives that it flushes as unsolicited (flush_recv_wqe()), and no call reports the
	 * version of rxe. A superfluous event only wakes the waiting thread, but a missing event
	 * would leave it asleep.
	 */
	err = ibv_req_notify_cq(c->cq, solicited_only && !c->d->siw && !c->d->rxe);
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot arm CQ 0x%x: %s", cq->ctrl->dev->name, cq->cqn,
		       strerror(err));
		return -err;
	}
	/* Arm first, then poll: the provider raises an event for any completion after this poll. */
	verbs_drain(c);
	if (unread(cq, solicited_only))
		raise_event(h, c);
	return 0;
}

void
verbs_raise(struct verbs_cq *c, bool error)
{
	const struct bb_channel *ch = c->bb->ctrl->channel;

	if (ch != NULL && (error || !c->solicited_only))
		raise_event(ch->priv, c);
}

void
verbs_channel_remove(struct verbs_channel *h, struct verbs_cq *c)
{
	pthread_mutex_lock(&h->lock);
	if (c->raised)
		unraise(h, c);
	pthread_mutex_unlock(&h->lock);
}
