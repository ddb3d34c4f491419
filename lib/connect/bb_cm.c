/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The connection manager: polling, deadlines, lists of connections and the queue of events. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_log.h>

#include "bb_cm_priv.h"

#define MAX_CONNS (1u << 20)
/* Maximum descriptors that a poll handles, and maximum deadlines that it checks. */
#define BATCH      64
#define DEADLINES  64
#define LOOP_BATCH 16

void
bb_cm_attr_init(struct bb_cm_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->max_conns = 65536;
	attr->max_half_open = 256;
	attr->half_open_ms = 5000;
	attr->poll_us = 50;
}

static int
check_attr(const struct bb_cm_attr *attr)
{
	int ret = bb_attr_size_check(attr->size, sizeof(*attr), "bb_cm_attr_init");

	if (ret != 0)
		return ret;
	if (attr->max_conns == 0 || attr->max_conns > MAX_CONNS || attr->max_half_open == 0 ||
	    attr->max_half_open > MAX_CONNS || attr->half_open_ms == 0 || attr->poll_us > 1000000 ||
	    attr->transport > BB_CM_RDMA) {
		BB_LOG(ERR,
		       "connect: invalid CM attributes: max_conns %u and max_half_open %u (1 to "
		       "%u), half_open_ms %u (at least 1), poll_us %u (at most 1000000), transport "
		       "%u (at most %u)",
		       attr->max_conns, attr->max_half_open, MAX_CONNS, attr->half_open_ms,
		       attr->poll_us, attr->transport, BB_CM_RDMA);
		return -EINVAL;
	}
	return 0;
}

static const struct bb_cm_ops *ib_ops;

void
bb_cm_ib_register(const struct bb_cm_ops *ops)
{
	ib_ops = ops;
}

static const struct bb_cm_ops *
ops_of(enum bb_cm_transport transport)
{
	switch (transport) {
	case BB_CM_TCP:
		return &bb_cm_tcp_ops;
	case BB_CM_IB:
		return ib_ops;
#ifdef HAVE_RDMACM
	case BB_CM_RDMACM:
		return &bb_cm_rdma_ops;
#endif
	default:
		return NULL;
	}
}

/* ---- Descriptor that makes bb_cm_fd() readable */

static void
woken(struct bb_cm_io *io, uint32_t events)
{
	/* Nothing to do: bb_cm_poll() checks for pending work in any case. */
	(void)io;
	(void)events;
}

static int
open_fds(struct bb_cm *cm)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &cm->io};
	int ret;

	cm->io.ready = woken;
	cm->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (cm->epfd < 0) {
		ret = -errno;
		BB_LOG(ERR,
		       "connect: the CM was not created: epoll_create1() failed: %s (open "
		       "files: see ulimit -n)",
		       strerror(errno));
		return ret;
	}
	cm->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cm->wakefd < 0 || epoll_ctl(cm->epfd, EPOLL_CTL_ADD, cm->wakefd, &ev) != 0) {
		ret = -errno;
		BB_LOG(ERR,
		       "connect: the CM was not created: eventfd() failed: %s (open files: "
		       "see ulimit -n)",
		       strerror(errno));
		if (cm->wakefd >= 0)
			close(cm->wakefd);
		close(cm->epfd);
		return ret;
	}
	return 0;
}

static void
close_fds(struct bb_cm *cm)
{
	close(cm->wakefd);
	close(cm->epfd);
}

void
bb_cm_wake(struct bb_cm *cm)
{
	const uint64_t one = 1;

	if (!cm->awake)
		cm->awake = write(cm->wakefd, &one, sizeof(one)) == (ssize_t)sizeof(one);
}

static void
go_to_sleep(struct bb_cm *cm)
{
	uint64_t n;

	if (cm->awake && !cm->ops->always_awake && TAILQ_EMPTY(&cm->ready) &&
	    cm->n_successors == 0 && cm->resolving == 0)
		cm->awake = read(cm->wakefd, &n, sizeof(n)) != (ssize_t)sizeof(n);
}

int
bb_cm_fd(const struct bb_cm *cm)
{
	return cm->epfd;
}

/* ---- Create, destroy */

static int
create(struct bb_dev *dev, const struct bb_cm_attr *attr, struct bb_cm **out)
{
	struct bb_cm *cm;
	int ret;

	if (attr->transport == BB_CM_IB && ib_ops == NULL)
		return -ENOTSUP;
	if (ops_of(attr->transport) == NULL) {
		BB_LOG(ERR, "connect: BB_CM_RDMACM is not available: this library was built "
			    "without librdmacm; use BB_CM_TCP");
		return -ENOTSUP;
	}
	cm = calloc(1, sizeof(*cm));
	if (cm == NULL)
		return -ENOMEM;
	cm->dev = dev;
	cm->attr = *attr;
	cm->ops = ops_of(attr->transport);
	cm->hz = rte_get_tsc_hz();
	cm->poll_cycles = cm->hz / 1000000 * attr->poll_us;
	TAILQ_INIT(&cm->conns);
	TAILQ_INIT(&cm->half_open_conns);
	TAILQ_INIT(&cm->ready);
	TAILQ_INIT(&cm->to_free);
	LIST_INIT(&cm->listeners);
	ret = open_fds(cm);
	if (ret != 0)
		goto fail;
	ret = cm->ops->open != NULL ? cm->ops->open(cm) : 0;
	if (ret != 0)
		goto fail_fds;
	*out = cm;
	return 0;

fail_fds:
	close_fds(cm);
fail:
	free(cm);
	return ret;
}

int
bb_cm_create(struct bb_dev *dev, const struct bb_cm_attr *attr, struct bb_cm **out)
{
	int ret;

	if (dev == NULL || attr == NULL || out == NULL)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret == 0)
		ret = check_attr(attr);
	if (ret != 0)
		return ret;
	if (dev->iwarp && attr->transport == BB_CM_TCP)
		return bb_iwarp_refusal(dev);
	if (attr->transport == BB_CM_RDMA) {
		struct bb_cm_attr choice = *attr;

		choice.transport = BB_CM_IB;
		ret = create(dev, &choice, out);
		if (ret != -ENOTSUP)
			return ret;
		choice.transport = BB_CM_RDMACM;
		return create(dev, &choice, out);
	}
	ret = create(dev, attr, out);
	if (ret == -ENOTSUP && attr->transport == BB_CM_IB)
		BB_LOG(ERR,
		       "connect: %s has no QP1 of the library: BB_CM_IB needs a RoCE device of the "
		       "software driver without host=; use BB_CM_RDMACM or BB_CM_TCP",
		       dev->name);
	return ret;
}

static void
free_closed(struct bb_cm *cm)
{
	struct bb_conn *c;

	while ((c = TAILQ_FIRST(&cm->to_free)) != NULL) {
		TAILQ_REMOVE(&cm->to_free, c, link);
		free(c->own_bytes);
		free(c->peer_regions);
		free(c->peer_private);
		free(c->ends);
		free(c->rx_body);
		free(c->tx);
		free(c);
	}
}

int
bb_cm_destroy(struct bb_cm *cm)
{
	if (cm == NULL)
		return -EINVAL;
	if (!LIST_EMPTY(&cm->listeners) || !TAILQ_EMPTY(&cm->conns) || cm->loop != NULL) {
		BB_LOG(ERR,
		       "connect: the CM is not destroyed: %u connection%s, %s listener and %s "
		       "poll loop still use it; destroy the connections and listeners, and "
		       "detach the loop",
		       cm->stats.conns, BB_PLURAL(cm->stats.conns),
		       LIST_EMPTY(&cm->listeners) ? "no" : "a", cm->loop == NULL ? "no" : "a");
		return -EBUSY;
	}
	free_closed(cm);
	if (cm->ops->close != NULL)
		cm->ops->close(cm);
	close_fds(cm);
	free(cm);
	return 0;
}

void
bb_cm_stats_v(const struct bb_cm *cm, struct bb_cm_stats *stats)
{
	(void)bb_out(stats, &cm->stats, sizeof(cm->stats));
}

/* ---- Deadlines */

uint64_t
bb_cm_now(void)
{
	return rte_get_tsc_cycles();
}

uint64_t
bb_cm_after(const struct bb_cm *cm, uint32_t ms)
{
	/* A deadline of 0 means that none is set, so set bit 0. */
	return (bb_cm_now() + cm->hz / 1000 * ms) | 1;
}

/* ---- Connections */

struct bb_conn *
bb_cm_conn_new(struct bb_cm *cm)
{
	struct bb_conn *c;

	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->cm = cm;
	c->fd = -1;
	c->created_at = bb_cm_now();
	c->state = BB_CONN_CLOSED;
	TAILQ_INSERT_TAIL(&cm->conns, c, link);
	cm->stats.conns++;
	return c;
}

static bool
is_pending(enum bb_conn_state state)
{
	return state == BB_CONN_CONNECTING || state == BB_CONN_ACCEPTED;
}

/* Removes the connection, which cannot recover any more, from its replay. */
static void
leave_replay(struct bb_conn *c)
{
	if (c->replay != NULL)
		c->replay->conn = NULL;
	c->replay = NULL;
}

void
bb_cm_set_state(struct bb_conn *c, enum bb_conn_state state)
{
	c->cm->pending += (uint32_t)is_pending(state) - (uint32_t)is_pending(c->state);
	c->state = state;
	if (state == BB_CONN_CLOSED)
		bb_cm_release_qp(c);
	if (state == BB_CONN_CLOSED || state == BB_CONN_DISCONNECTING)
		leave_replay(c);
}

void
bb_cm_own_qp(struct bb_conn *c, struct bb_qp *qp)
{
	c->qp = qp;
	qp->ctrl->conn = c;
	c->owns_qp = true;
}

void
bb_cm_release_qp(struct bb_conn *c)
{
	if (c->owns_qp)
		c->qp->ctrl->conn = NULL;
	c->owns_qp = false;
}

void
bb_cm_drop_successor(struct bb_conn *c)
{
	if (c->successor == NULL)
		return;
	c->cm->ops->disconnect(c->successor, true);
	bb_cm_conn_free(c->successor);
}

void
bb_cm_conn_free(struct bb_conn *c)
{
	struct bb_cm *cm = c->cm;

	if (c->freeing)
		return;
	bb_cm_set_state(c, BB_CONN_CLOSED);
	bb_cm_resolve_end(c);
	bb_cm_drop_successor(c);
	if (c->predecessor != NULL) {
		c->predecessor->successor = NULL;
		cm->n_successors--;
	}
	if (c->half_open) {
		TAILQ_REMOVE(&cm->half_open_conns, c, half_link);
		cm->stats.half_open--;
	}
	if (c->queued)
		TAILQ_REMOVE(&cm->ready, c, ready_link);
	if (c->has_session)
		LIST_REMOVE(c, session_link);
	if (cm->cursor == c)
		cm->cursor = TAILQ_NEXT(c, link);
	TAILQ_REMOVE(&cm->conns, c, link);
	cm->stats.conns--;
	c->freeing = true;
	TAILQ_INSERT_TAIL(&cm->to_free, c, link);
}

static void
look_at_deadline(struct bb_conn *c, uint64_t now)
{
	if (!bb_cm_can_receive(c))
		return;
	if (c->deadline != 0 && now >= c->deadline) {
		bb_cm_expired(c);
		return;
	}
	if (c->resolving)
		bb_cm_resolve_step(c);
	else if (c->state == BB_CONN_LOST)
		bb_cm_lost_step(c);
	else if (c->state == BB_CONN_ESTABLISHED && c->successor != NULL)
		bb_cm_lost(c, -ECONNRESET, "the peer started the connection anew");
	else if (c->state == BB_CONN_ESTABLISHED && bb_cm_is_recoverable(c) &&
		 __atomic_load_n(&c->qp->state, __ATOMIC_RELAXED) == BB_QP_ERR)
		bb_cm_lost(c, -EIO, "the queue pair went to ERR");
}

static void
look_at_deadlines(struct bb_cm *cm)
{
	const uint64_t now = bb_cm_now();
	uint32_t i, n = RTE_MIN(cm->stats.conns, (uint32_t)DEADLINES);
	struct bb_conn *c;

	for (i = 0; i < n; i++) {
		if (cm->cursor == NULL)
			cm->cursor = TAILQ_FIRST(&cm->conns);
		c = cm->cursor;
		if (c == NULL)
			return;
		cm->cursor = TAILQ_NEXT(c, link);
		look_at_deadline(c, now);
	}
}

/* ---- Events */

const char *
bb_cm_event_name(enum bb_cm_event_type type)
{
	static const char *const names[] = {
		[BB_CM_CONNECT_REQUEST] = "connect request",
		[BB_CM_ESTABLISHED] = "established",
		[BB_CM_REJECTED] = "rejected",
		[BB_CM_FAILED] = "failed",
		[BB_CM_DISCONNECTED] = "disconnected",
		[BB_CM_LOST] = "lost",
		[BB_CM_RECOVERED] = "recovered",
	};

	return (unsigned int)type < RTE_DIM(names) ? names[type] : "?";
}

const char *
bb_reject_name(uint32_t reason)
{
	switch (reason) {
	case BB_REJECT_NO_RESOURCES:
		return "no resources";
	case BB_REJECT_TIMEOUT:
		return "timeout";
	case BB_REJECT_UNSUPPORTED:
		return "unsupported request";
	case BB_REJECT_NO_LISTENER:
		return "no listener";
	case BB_REJECT_QP_TYPE:
		return "different type of queue pair";
	case BB_REJECT_STALE:
		return "stale connection";
	case BB_REJECT_GID:
		return "the GID cannot be reached";
	case BB_REJECT_CONSUMER:
		return "consumer reject";
	case BB_REJECT_VERSION:
		return "different version of the connection protocol";
	default:
		return "reason";
	}
}

void
bb_cm_report(struct bb_conn *c, enum bb_cm_event_type type, int status, const char *why)
{
	c->ev.type = type;
	c->ev.status = status;
	c->ev.why = why;
	c->ev.conn = c;
	if (!c->queued)
		TAILQ_INSERT_TAIL(&c->cm->ready, c, ready_link);
	c->queued = true;
	bb_cm_wake(c->cm);
}

static unsigned int
deliver(struct bb_cm *cm, struct bb_cm_event *event, unsigned int n)
{
	struct bb_conn *c;
	unsigned int i;

	for (i = 0; i < n; i++) {
		c = TAILQ_FIRST(&cm->ready);
		if (c == NULL)
			break;
		TAILQ_REMOVE(&cm->ready, c, ready_link);
		c->queued = false;
		(void)bb_out_at(event, i, &c->ev, sizeof(c->ev));
		memset(&c->ev, 0, sizeof(c->ev));
	}
	return i;
}

static void
work(struct bb_cm *cm)
{
	struct epoll_event ev[BATCH];
	int i, n;

	if (cm->pending + cm->resolving + cm->n_successors != 0 && cm->dev->drv->progress != NULL)
		bb_dev_progress(cm->dev);
	n = epoll_wait(cm->epfd, ev, BATCH, 0);
	for (i = 0; i < n; i++) {
		struct bb_cm_io *io = ev[i].data.ptr;

		io->ready(io, ev[i].events);
	}
	if (cm->ops->poll != NULL)
		cm->ops->poll(cm);
	look_at_deadlines(cm);
}

unsigned int
bb_cm_poll_v(struct bb_cm *cm, struct bb_cm_event *event, unsigned int n)
{
	const uint64_t now = bb_cm_now();
	unsigned int done;

	if ((int64_t)(now - cm->next_poll) >= 0) {
		/*
		 * Free the connections only now, because memory that events point to must live
		 * until the next poll.
		 */
		free_closed(cm);
		if (TAILQ_EMPTY(&cm->ready))
			work(cm);
		cm->next_poll = now + cm->poll_cycles;
	}
	done = deliver(cm, event, n);
	go_to_sleep(cm);
	return done;
}

static unsigned int
loop_poll(void *arg)
{
	struct bb_cm *cm = arg;
	const struct bb_loop *loop = cm->loop;
	struct bb_cm_event ev;
	unsigned int n;

	/*
	 * Poll one event at a time, because a callback may destroy the connection of a later event,
	 * or detach the CM.
	 */
	for (n = 0; n < LOOP_BATCH && cm->loop == loop && bb_cm_poll(cm, &ev, 1) == 1; n++)
		cm->fn(cm, &ev, cm->arg);
	return n;
}

int
bb_cm_attach(struct bb_cm *cm, struct bb_loop *loop, bb_cm_fn fn, void *arg)
{
	int ret;

	if (cm == NULL || loop == NULL || fn == NULL)
		return -EINVAL;
	if (cm->loop != NULL)
		return -EALREADY;
	cm->fn = fn;
	cm->arg = arg;
	/* Set cm->loop before the first poll, because another thread may already poll. */
	cm->loop = loop;
	ret = bb_loop_attach_poller(loop, loop_poll, cm);
	if (ret != 0)
		cm->loop = NULL;
	return ret;
}

int
bb_cm_detach(struct bb_cm *cm)
{
	int ret;

	if (cm == NULL)
		return -EINVAL;
	if (cm->loop == NULL)
		return -ENOENT;
	ret = bb_loop_detach_poller(cm->loop, loop_poll, cm);
	if (ret == 0)
		cm->loop = NULL;
	return ret;
}
