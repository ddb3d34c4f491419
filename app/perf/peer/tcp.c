/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The TCP connection that carries the handshake messages. Its socket is non-blocking, because the
 * software device replies to ARP, READs and other requests only while this thread runs it. If the
 * peer sends nothing for --silence seconds, even in the middle of a message, these functions return
 * an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "perf.h"

#define KEEPALIVE_MAX 32767u /* s; limit of TCP_KEEPIDLE */
/* milliseconds in which tcp_decline() must reach the server */
#define DECLINE_MS 1000

/*
 * Runs the device while the caller waits for @events of @fd. Before a QP is connected, also sleeps
 * until TCP has an event, at most 1 ms.
 */
static int
run_device(struct perf *p, int fd, short events)
{
	struct pollfd pfd = {.fd = fd, .events = events};
	uint32_t i;

	if (stop_signal != 0) {
		say("stopped while waiting for the peer");
		return -1;
	}
	if (p->qps == NULL || p->qps[0].qp == NULL || p->qps[0].qp->state != BB_QP_RTS) {
		bb_dev_progress(p->dev);
		poll(&pfd, 1, 1);
		return 0;
	}
	for (i = 0; i < 64; i++)
		bb_dev_progress(p->dev);
	return 0;
}

/* Runs the device for @ms milliseconds. */
static int
run_device_for(struct perf *p, uint32_t ms)
{
	uint64_t end = rte_rdtsc() + p->tsc_hz / 1000 * ms;
	int rc;

	do
		rc = run_device(p, -1, 0);
	while (rc == 0 && rte_rdtsc() < end);
	return rc;
}

static int
set_up(struct perf *p, int fd)
{
	int one = 1, idle = (int)RTE_MIN(p->o.seconds, KEEPALIVE_MAX);

	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
		say("the TCP socket cannot be set up: %s", strerror(errno));
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* A patient server (perf.h) detects in this way that the peer's host is gone. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	p->fd = fd;
	perf_progress(p);
	return 0;
}

/* Returns an IPv6 socket that also accepts IPv4 or, on a machine without IPv6, an IPv4 socket. */
static int
listen_socket(const struct perf *p)
{
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)p->o.tcp_port)};
	struct sockaddr_in any4 = {.sin_family = AF_INET,
				   .sin_port = htons((uint16_t)p->o.tcp_port)};
	int fd, one = 1, zero = 0, family;

	for (family = AF_INET6;; family = AF_INET) {
		fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd < 0 && family == AF_INET6)
			continue;
		if (fd < 0)
			return -1;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		if ((family == AF_INET6
			     ? bind(fd, (const struct sockaddr *)&any6, sizeof(any6))
			     : bind(fd, (const struct sockaddr *)&any4, sizeof(any4))) == 0 &&
		    listen(fd, 1) == 0)
			return fd;
		close(fd);
		if (family == AF_INET || errno == EADDRINUSE)
			return -1;
	}
}

static int
serve(struct perf *p)
{
	int fd = listen_socket(p), conn;

	if (fd < 0) {
		say("--port %u: cannot listen at this TCP port: %s; give both ends another -p",
		    p->o.tcp_port, strerror(errno));
		return -1;
	}
	printf("waiting for %s on TCP port %u\n", p->o.proto->peer, p->o.tcp_port);
	fflush(stdout);
	perf_progress(p);
	while ((conn = accept(fd, NULL, NULL)) < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			say("the connection of a client cannot be accepted: %s", strerror(errno));
			break;
		}
		if (perf_overdue(p)) {
			say("no client has connected in %u s (--silence); did the client exit "
			    "with an error?",
			    p->o.seconds);
			break;
		}
		if (run_device(p, fd, POLLIN) != 0)
			break;
	}
	close(fd);
	return conn < 0 ? -1 : set_up(p, conn);
}

/*
 * Connects to one address.
 * @return the connection, or -1 and errno.
 */
static int
connect_to(struct perf *p, const struct addrinfo *to)
{
	int fd = socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
			to->ai_protocol);
	socklen_t len = sizeof(errno);
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	int err = 0;

	if (fd < 0)
		return -1;
	if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
		return fd;
	err = errno;
	while (err == EINPROGRESS) {
		if (poll(&pfd, 1, 0) > 0) {
			len = sizeof(err);
			if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && err == 0)
				return fd;
			break;
		}
		if (perf_overdue(p))
			err = ETIMEDOUT;
		else if (run_device(p, fd, POLLOUT) != 0)
			err = EINTR;
	}
	close(fd);
	errno = err;
	return -1;
}

static int
connect_server(struct perf *p)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *all, *a;
	bool again, refused, said = false;
	char service[8];
	int rc, fd = -1;

	snprintf(service, sizeof(service), "%u", p->o.tcp_port);
	rc = getaddrinfo(p->o.host, service, &hints, &all);
	if (rc != 0) {
		say("%s: %s; give the name or the IP address of the server", p->o.host,
		    gai_strerror(rc));
		return -1;
	}
	perf_progress(p);
	do {
		errno = EHOSTUNREACH;
		refused = false;
		for (a = all; a != NULL && fd < 0 && stop_signal == 0; a = a->ai_next) {
			fd = connect_to(p, a);
			refused |= fd < 0 && errno == ECONNREFUSED;
		}
		again = fd < 0 && refused && !perf_overdue(p);
		if (again && !said)
			say("%s port %u: no server listens yet; start %s on that host, without "
			    "HOST; trying for %u s",
			    p->o.host, p->o.tcp_port, p->o.proto->peer, p->o.seconds);
		said |= again;
	} while (again && run_device_for(p, 100) == 0);
	rc = errno;
	freeaddrinfo(all);
	if (fd >= 0)
		return set_up(p, fd);
	if (stop_signal == 0)
		say("%s port %u: %s; first start %s on that host, without HOST", p->o.host,
		    p->o.tcp_port, strerror(rc), p->o.proto->peer);
	return -1;
}

void
tcp_decline(const struct perf *p)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *all, *a;
	struct pollfd pfd = {.events = POLLOUT};
	char service[8];
	int fd = -1;

	snprintf(service, sizeof(service), "%u", p->o.tcp_port);
	if (p->o.rdma_cm || getaddrinfo(p->o.host, service, &hints, &all) != 0)
		return;
	for (a = all; a != NULL && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
			    a->ai_protocol);
		if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			continue;
		pfd.fd = fd;
		if (errno == EINPROGRESS && poll(&pfd, 1, DECLINE_MS) > 0 &&
		    (pfd.revents & POLLERR) == 0)
			continue;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(all);
	if (fd >= 0)
		close(fd);
}

int
tcp_open(struct perf *p)
{
	return p->server ? serve(p) : connect_server(p);
}

int
tcp_write(struct perf *p, const void *buf, size_t len)
{
	const uint8_t *at = buf;
	ssize_t n;

	perf_progress(p);
	while (len > 0) {
		n = send(p->fd, at, len, MSG_NOSIGNAL);
		if (n > 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR) {
			say("the peer has closed the TCP connection (%s); see the peer's output",
			    strerror(errno));
			return -1;
		}
		if (perf_overdue(p)) {
			say("the peer has read nothing from the TCP connection in %u s "
			    "(--silence)",
			    p->o.seconds);
			return -1;
		}
		if (run_device(p, p->fd, POLLOUT) != 0)
			return -1;
	}
	return 0;
}

int
tcp_read(struct perf *p, void *buf, size_t len, const char *what)
{
	uint8_t *at = buf;
	size_t left = len;
	ssize_t n;

	perf_progress(p);
	while (left > 0) {
		n = recv(p->fd, at, left, 0);
		if (n > 0) {
			at += n;
			left -= (size_t)n;
			continue;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			say("the peer has closed the TCP connection before its message \"%s\"; "
			    "does the peer run %s? See its output",
			    what, p->o.proto->peer);
			return -1;
		}
		if (perf_overdue(p)) {
			say("the peer's message \"%s\" is incomplete: %zu of %zu bytes in %u s; "
			    "does the peer run %s?",
			    what, len - left, len, p->o.seconds, p->o.proto->peer);
			return -1;
		}
		if (run_device(p, p->fd, POLLIN) != 0)
			return -1;
	}
	return 0;
}

void
tcp_close(struct perf *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/*
 * Runs the device for two timeouts of the server's queue pair, at least a second, or until the
 * server closes. No message confirms that the server of write_lat has the ACK of its last WRITE. If
 * the ACK was lost, the server repeats the WRITE.
 */
static void
repeat_last_ack(struct perf *p)
{
	double timeout = 4.096e-6 * (double)(UINT64_C(1) << p->o.qp_timeout);
	double seconds = RTE_MIN(RTE_MAX(2 * timeout, 1.0), (double)p->o.seconds);
	uint64_t end = rte_rdtsc() + (uint64_t)(seconds * (double)p->tsc_hz);

	while (rte_rdtsc() < end && !tcp_peer_gone(p) && run_device(p, p->fd, POLLIN) == 0)
		;
}

void
tcp_finish(struct perf *p)
{
	uint8_t rest[64];
	ssize_t n;

	/*
	 * The server keeps its end of the TCP connection open until the program exits, after its
	 * device is closed. A bb_perf client waits for that and then closes its own device.
	 * net_memif crashes if both ends close at the same time, because its interrupt thread then
	 * frees the same regions as rte_eth_dev_stop().
	 */
	if (is_client(p)) {
		if (p->o.proto->verb == VERB_WRITE && !p->o.proto->bandwidth &&
		    p->o.type == BB_QPT_RC)
			repeat_last_ack(p);
		/*
		 * Destroys the queue pairs first. Otherwise they would report the end of the
		 * server's device as an error.
		 */
		(void)perf_destroy_qps(p);
		shutdown(p->fd, SHUT_WR);
	}
	perf_progress(p);
	do {
		n = recv(p->fd, rest, sizeof(rest), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
	} while (!perf_overdue(p) && run_device(p, p->fd, POLLIN) == 0);
}

/*
 * Tells the peer that all messages of this process are complete, and waits until the peer says the
 * same. Returns false if the peer closes the connection instead.
 */
static bool
exchange_done(struct perf *p)
{
	uint8_t done[MSG_DONE];
	size_t have = 0;
	ssize_t n;

	(void)send(p->fd, "done", MSG_DONE, MSG_NOSIGNAL);
	perf_progress(p);
	while (have < MSG_DONE) {
		n = recv(p->fd, done + have, MSG_DONE - have, 0);
		if (n > 0)
			have += (size_t)n;
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return false;
		else if (perf_overdue(p) || run_device(p, p->fd, POLLIN) != 0)
			return false;
	}
	return true;
}

bool
tcp_pingpong_finish(struct perf *p)
{
	if (!exchange_done(p))
		return false;
	tcp_finish(p);
	return true;
}

bool
tcp_peer_gone(const struct perf *p)
{
	uint8_t byte;
	ssize_t n = recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}
