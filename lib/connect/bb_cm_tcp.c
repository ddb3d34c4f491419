/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages over TCP. The header is read and checked first. Memory for the body is allocated after
 * that, because the header has its length. So an incoming connection that sends nothing uses no
 * memory beyond its struct. Descriptors are level-triggered, so the next poll reports unread data
 * again.
 */
#define _GNU_SOURCE /* for accept4() */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_log.h>

#include "bb_cm_priv.h"

/* Maximum connections accepted per listener and poll. */
#define ACCEPT_BATCH 16
/*
 * Maximum messages read per connection and poll, because a peer that floods the connection must not
 * delay the poll. A correct peer never sends more at a time.
 */
#define RECEIVE_BATCH 8
#define BACKLOG       4096
/* Time in ms between attempts to accept a connection while no descriptor is free. */
#define PAUSE_MS 50
/*
 * Time in ms after which the loss of the peer's machine is detected. If all data is acknowledged,
 * keep-alive detects the loss: the first probe follows after 10 s, then one every 5 s. If data is
 * unacknowledged, TCP_USER_TIMEOUT detects the loss. Without that option the kernel would
 * retransmit for a quarter of an hour. TCP_USER_TIMEOUT also limits keep-alive (man 7 tcp).
 */
#define GONE_MS      25000
#define KEEP_IDLE_S  10
#define KEEP_INTVL_S 5

static void
watch(struct bb_conn *c, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = &c->io};

	if (c->watched == events)
		return;
	if (epoll_ctl(c->cm->epfd, c->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c->fd, &ev) !=
	    0)
		BB_LOG(ERR, "connect: a TCP connection cannot be polled: epoll_ctl() failed: %s",
		       strerror(errno));
	c->watched = events;
}

/*
 * Removes the descriptor from epoll, then closes it. If a child of fork() also holds the
 * descriptor, close() does not remove it from epoll. epoll would then report a connection that has
 * been freed (man 7 epoll, questions and answers).
 */
static void
unwatch_and_close(struct bb_cm *cm, int fd)
{
	(void)epoll_ctl(cm->epfd, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
}

static void
set_options(int fd)
{
	int one = 1, idle = KEEP_IDLE_S, intvl = KEEP_INTVL_S, gone = GONE_MS;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &intvl, sizeof(intvl));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &gone, sizeof(gone));
}

static void
reset_rx(struct bb_conn *c)
{
	free(c->rx_body);
	c->rx_body = NULL;
	c->rx_have = 0;
}

static void
tcp_disconnect(struct bb_conn *c, bool abort)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};

	if (c->fd < 0)
		return;
	/*
	 * The peer needs no data that is still queued, so abort with RST. This avoids TIME_WAIT,
	 * which would hold the port for minutes.
	 */
	if (abort && !c->rej_sent)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	unwatch_and_close(c->cm, c->fd);
	c->fd = -1;
	c->watched = 0;
	c->connecting = false;
	reset_rx(c);
	free(c->tx);
	c->tx = NULL;
}

/* ---- Sending */

/* Stores the unsent bytes of a message until the socket accepts them. */
static int
store_unsent(struct bb_conn *c, const uint8_t *p, size_t len)
{
	uint8_t *more;

	more = malloc(c->tx_len - c->tx_off + len);
	if (more == NULL)
		return -ENOMEM;
	if (c->tx != NULL)
		memcpy(more, c->tx + c->tx_off, c->tx_len - c->tx_off);
	memcpy(more + (c->tx_len - c->tx_off), p, len);
	free(c->tx);
	c->tx = more;
	c->tx_len = c->tx_len - c->tx_off + (uint32_t)len;
	c->tx_off = 0;
	watch(c, EPOLLIN | EPOLLOUT);
	return 0;
}

static int
tcp_send(struct bb_conn *c, uint8_t type, uint32_t reason, const void *priv, uint32_t len)
{
	struct bb_cm_msg msg = {
		.type = type,
		.end = c->own,
		.regions = c->param.regions,
		.nregions = c->param.nregions,
		.reason = reason,
		.private = priv,
		.private_len = len,
	};
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n, done = 0;
	ssize_t sent;

	if (c->fd < 0)
		return -ENOTCONN;
	n = bb_cm_msg_encode(buf, &msg);
	c->rej_sent = type == BB_CM_REJ;
	while (c->tx == NULL && done < n) {
		sent = send(c->fd, buf + done, n - done, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno != EAGAIN)
			return -errno;
		if (sent < 0)
			break;
		done += (size_t)sent;
	}
	if (done == n)
		return 0;
	if (c->tx == NULL)
		c->tx_len = c->tx_off = 0;
	return store_unsent(c, buf + done, n - done);
}

static void
send_unsent(struct bb_conn *c)
{
	ssize_t sent;

	while (c->tx_off < c->tx_len) {
		sent = send(c->fd, c->tx + c->tx_off, c->tx_len - c->tx_off, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno != EAGAIN) {
			bb_cm_broken(c, -errno, "the TCP connection to the peer failed");
			return;
		}
		if (sent < 0)
			return;
		c->tx_off += (uint32_t)sent;
	}
	free(c->tx);
	c->tx = NULL;
	watch(c, EPOLLIN);
}

/* ---- Receiving */

static void
refuse(struct bb_conn *c, const char *why)
{
	bb_cm_bad(c, "message", why);
	bb_cm_broken(c, -EPROTO, why);
}

/*
 * Reads up to @len bytes into @buf. Returns 1 if all bytes are read, 0 if some are missing,
 * negative if the connection is broken.
 */
static int
fill(struct bb_conn *c, uint8_t *buf, uint32_t len)
{
	ssize_t n;

	while (c->rx_have < len) {
		n = recv(c->fd, buf + c->rx_have, len - c->rx_have, 0);
		if (n > 0) {
			c->rx_have += (uint32_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		bb_cm_broken(c, n == 0 ? -ECONNRESET : -errno,
			     n == 0 ? "the peer closed the TCP connection"
				    : "the TCP connection to the peer failed");
		return -1;
	}
	return 1;
}

/*
 * Reads the header. Returns 1 if the header is complete and valid, so that the caller can read the
 * body.
 */
static int
read_header(struct bb_conn *c)
{
	const char *why;
	int ret;

	ret = fill(c, c->rx_head, BB_CM_HEADER);
	if (ret != 1)
		return ret;
	c->rx.version = BB_CM_VERSION;
	why = bb_cm_header_decode(c->rx_head, &c->rx);
	if (why != NULL) {
		/*
		 * Reply with a REJ in this side's version. The peer can read its header, which is
		 * the same in all versions.
		 */
		if (c->rx.version != BB_CM_VERSION && c->half_open)
			(void)tcp_send(c, BB_CM_REJ, BB_REJECT_VERSION, NULL, 0);
		refuse(c, why);
		return -1;
	}
	c->rx_body = malloc(c->rx.len + 1);
	if (c->rx_body == NULL) {
		bb_cm_broken(c, -ENOMEM, "no memory for a message");
		return -1;
	}
	c->rx_have = 0;
	return 1;
}

/* Reads one message. Returns 1 if the message was complete. */
static int
read_message(struct bb_conn *c)
{
	struct bb_region regions[BB_REGION_MAX];
	struct bb_cm_msg msg;
	const char *why;
	uint8_t *body;
	int ret = 1;

	if (c->rx_body == NULL)
		ret = read_header(c);
	if (ret == 1)
		ret = fill(c, c->rx_body, c->rx.len);
	if (ret != 1)
		return ret;
	body = c->rx_body;
	c->rx_body = NULL;
	c->rx_have = 0;
	why = bb_cm_body_decode(c->rx.type, body, c->rx.len, &msg, regions);
	if (why != NULL)
		refuse(c, why);
	else
		bb_cm_received(c, &msg);
	free(body);
	return why != NULL ? -1 : 1;
}

static void
connect_done(struct bb_conn *c)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
		err = errno;
	if (err != 0) {
		bb_cm_broken(c, -err, "no process answers at the peer's address and port");
		return;
	}
	c->connecting = false;
	/* Set the TCP timeouts only now. Until now, timeout_ms has limited the wait. */
	set_options(c->fd);
	watch(c, EPOLLIN);
	bb_cm_connected(c);
}

static void
conn_ready(struct bb_cm_io *io, uint32_t events)
{
	struct bb_conn *c = (struct bb_conn *)io;
	unsigned int i;

	/*
	 * Skip a connection that was closed in this batch, or that waits for the application or for
	 * a MAC.
	 */
	if (c->fd < 0 || !bb_cm_can_receive(c) || c->resolving)
		return;
	if (c->connecting) {
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			connect_done(c);
		return;
	}
	if (c->tx != NULL && (events & EPOLLOUT) != 0)
		send_unsent(c);
	for (i = 0; i < RECEIVE_BATCH && c->fd >= 0 && bb_cm_can_receive(c) && !c->resolving; i++)
		if (read_message(c) != 1)
			return;
}

/* ---- Listening, connecting */

static void
accept_conn(struct bb_listener *l, int fd, const struct sockaddr_storage *from)
{
	struct bb_cm *cm = l->cm;
	struct bb_conn *c = bb_cm_conn_new(cm);

	if (c == NULL) {
		close(fd);
		return;
	}
	set_options(fd);
	c->fd = fd;
	c->io.ready = conn_ready;
	c->listener = l;
	c->addr = *from;
	c->half_open = true;
	c->deadline = bb_cm_after(cm, cm->attr.half_open_ms);
	TAILQ_INSERT_TAIL(&cm->half_open_conns, c, half_link);
	cm->stats.half_open++;
	bb_cm_set_state(c, BB_CONN_CONNECTING);
	watch(c, EPOLLIN);
}

/*
 * Sets the epoll events of a listener. While no descriptor is free, there are none: a connection
 * that waits would make bb_cm_fd() readable without an end.
 */
static void
watch_listener(struct bb_listener *l, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = &l->io};

	(void)epoll_ctl(l->cm->epfd, EPOLL_CTL_MOD, l->fd, &ev);
	l->paused_at = events == 0 ? bb_cm_now() : 0;
}

static void
listener_ready(struct bb_cm_io *io, uint32_t events)
{
	struct bb_listener *l = (struct bb_listener *)io;
	struct bb_cm *cm = l->cm;
	struct sockaddr_storage from;
	socklen_t len;
	int fd, i;

	(void)events;
	for (i = 0; i < ACCEPT_BATCH; i++) {
		/* Connections that are not accepted now stay in the kernel's backlog. */
		if (!bb_cm_make_room(cm))
			return;
		len = sizeof(from);
		memset(&from, 0, sizeof(from));
		fd = accept4(l->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			accept_conn(l, fd, &from);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
			continue;
		/* Log this at most once per second. */
		if (bb_cm_now() - l->last_log >= cm->hz) {
			l->last_log = bb_cm_now();
			BB_LOG(ERR,
			       "connect: no connection was accepted: accept() failed: %s: raise "
			       "the limit of open files (ulimit -n)",
			       strerror(errno));
		}
		/* Close the oldest half-open connection to free a descriptor. */
		if (!bb_cm_evict(cm)) {
			watch_listener(l, 0);
			return;
		}
	}
}

/* Watches the listeners again that do not accept for want of a descriptor. */
static void
tcp_poll(struct bb_cm *cm)
{
	struct bb_listener *l;

	LIST_FOREACH(l, &cm->listeners, link)
		if (l->paused_at != 0 && bb_cm_now() - l->paused_at >= cm->hz / 1000 * PAUSE_MS)
			watch_listener(l, EPOLLIN);
}

static int
tcp_listen(struct bb_listener *l, const struct sockaddr *addr)
{
	const bool v6 = addr->sa_family == AF_INET6;
	socklen_t len = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &l->io};
	struct sockaddr_storage got;
	int ret, one = 1, zero = 0;

	l->fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return -errno;
	(void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (v6)
		(void)setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	l->io.ready = listener_ready;
	if (bind(l->fd, addr, len) != 0 || listen(l->fd, BACKLOG) != 0)
		goto fail;
	len = sizeof(got);
	if (getsockname(l->fd, (struct sockaddr *)&got, &len) != 0 ||
	    epoll_ctl(l->cm->epfd, EPOLL_CTL_ADD, l->fd, &ev) != 0)
		goto fail;
	l->port = ntohs(v6 ? ((struct sockaddr_in6 *)&got)->sin6_port
			   : ((struct sockaddr_in *)&got)->sin_port);
	return 0;

fail:
	ret = -errno;
	close(l->fd);
	return ret;
}

static void
tcp_unlisten(struct bb_listener *l)
{
	unwatch_and_close(l->cm, l->fd);
}

static int
tcp_connect(struct bb_conn *c)
{
	const struct sockaddr *addr = (const struct sockaddr *)&c->addr;
	socklen_t len = addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						    : sizeof(struct sockaddr_in);

	c->fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	c->io.ready = conn_ready;
	c->connecting = true;
	/*
	 * If connect() succeeds at once, epoll reports EPOLLOUT too. So one handler continues in
	 * both cases.
	 */
	if (connect(c->fd, addr, len) != 0 && errno != EINPROGRESS) {
		int ret = -errno;

		tcp_disconnect(c, true);
		return ret;
	}
	watch(c, EPOLLOUT);
	return 0;
}

static void
tcp_adopt(struct bb_conn *c, struct bb_conn *from)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &c->io};

	c->fd = from->fd;
	c->io.ready = conn_ready;
	c->watched = EPOLLIN;
	(void)epoll_ctl(c->cm->epfd, EPOLL_CTL_MOD, c->fd, &ev);
	from->fd = -1;
	from->watched = 0;
	reset_rx(from);
	reset_rx(c);
}

static int
tcp_qp_up(struct bb_conn *c)
{
	return bb_cm_connect_qp(c, &c->own.addr, &c->peer.addr);
}

const struct bb_cm_ops bb_cm_tcp_ops = {
	.max_private_req = BB_CM_PRIVATE_MAX,
	.max_private_rep = BB_CM_PRIVATE_MAX,
	.max_private_rej = BB_CM_PRIVATE_MAX,
	.max_private_dreq = BB_CM_PRIVATE_MAX,
	.name = "BB_CM_TCP",
	.messages = true,
	.addresses = true,
	.poll = tcp_poll,
	.listen = tcp_listen,
	.unlisten = tcp_unlisten,
	.connect = tcp_connect,
	.send = tcp_send,
	.qp_up = tcp_qp_up,
	.adopt = tcp_adopt,
	.disconnect = tcp_disconnect,
};

/* ---- Listeners, for all transports */

int
bb_listener_create(struct bb_cm *cm, const struct sockaddr *addr, struct bb_listener **listener)
{
	struct bb_listener *l;
	int ret;

	if (cm == NULL || addr == NULL || listener == NULL ||
	    (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
		return -EINVAL;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->cm = cm;
	ret = cm->ops->listen(l, addr);
	if (ret != 0) {
		BB_LOG(ERR, "connect: cannot listen: %s", strerror(-ret));
		free(l);
		return ret;
	}
	LIST_INSERT_HEAD(&cm->listeners, l, link);
	*listener = l;
	return 0;
}

uint16_t
bb_listener_port(const struct bb_listener *l)
{
	return l->port;
}

int
bb_listener_destroy(struct bb_listener *l)
{
	struct bb_conn *c, *next;

	if (l == NULL)
		return -EINVAL;
	for (c = TAILQ_FIRST(&l->cm->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->listener != l)
			continue;
		c->listener = NULL;
		c->ev.listener = NULL;
		if (!c->half_open)
			continue;
		l->cm->ops->disconnect(c, true);
		bb_cm_conn_free(c);
	}
	l->cm->ops->unlisten(l);
	LIST_REMOVE(l, link);
	free(l);
	return 0;
}
