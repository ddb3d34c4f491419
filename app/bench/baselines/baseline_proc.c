/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "baseline_proc.h"

/*
 * Writes a cell: a message of @size bytes in mapped memory. The last 8 bytes are the message's
 * number @v and are written last, so a reader that sees the number also sees the data.
 */
static inline void
put_cell(uint8_t *cell, const uint8_t *data, uint32_t size, uint64_t v)
{
	memcpy(cell, data, size - 8);
	__atomic_store_n((uint64_t *)(void *)(cell + size - 8), v, __ATOMIC_RELEASE);
}

static inline bool
await_cell(const uint8_t *cell, uint32_t size, uint64_t v)
{
	const uint64_t *at = (const uint64_t *)(const void *)(cell + size - 8);
	uint64_t idle = 0, since = 0;

	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != v)
		if (remote_give_up(&idle, &since))
			return false;
	return true;
}

double
baseline_mapped_latency(void *run)
{
	const struct baseline_proc_run *r = run;
	struct remote_msg msg = {.op = REMOTE_MAPPED_ECHO, .n = r->n, .size = r->size};
	static uint8_t data[REMOTE_CELL];
	struct round_trips t = {.half = r->n / 2, .ns = -1};
	uint64_t k;

	if (remote_shared == NULL)
		return -1;
	memset(remote_shared->ping, 0, REMOTE_CELL);
	memset(remote_shared->pong, 0, REMOTE_CELL);
	memset(data, (int)(msg.n & 0x7f) + 1, sizeof(data));
	if (remote_send(&msg) != 0)
		return -1;
	for (k = 1; k <= r->n; k++) {
		put_cell(remote_shared->ping, data, r->size, k);
		if (!await_cell(remote_shared->pong, r->size, k)) {
			remote_stop(&msg);
			return -1;
		}
		round_trip_done(&t, k);
	}
	if (remote_wait(&msg) != 0)
		return -1;
	/* Checks that the second process has received the data and sent it back unchanged. */
	return memcmp(remote_shared->pong, data, r->size - 8) == 0 ? t.ns : -1;
}

int
baseline_mapped_echo(uint64_t n, uint32_t size)
{
	uint64_t k;

	for (k = 1; k <= n; k++) {
		if (!await_cell(remote_shared->ping, size, k))
			return -ETIMEDOUT;
		put_cell(remote_shared->pong, remote_shared->ping, size, k);
	}
	return 0;
}

/* ---- TCP */

static int
no_delay(int fd)
{
	const int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		return -errno;
	return 0;
}

/* Sends all bytes without sleeping. */
static int
send_all(int fd, const uint8_t *p, size_t len)
{
	uint64_t idle = 0, since = 0;
	ssize_t k;

	while (len > 0) {
		k = send(fd, p, len, MSG_NOSIGNAL);
		if (k > 0) {
			p += k;
			len -= (size_t)k;
			idle = 0;
		} else if (k == 0 || (errno != EAGAIN && errno != EINTR) ||
			   remote_give_up(&idle, &since)) {
			return -EIO;
		}
	}
	return 0;
}

static int
recv_all(int fd, uint8_t *p, size_t len)
{
	uint64_t idle = 0, since = 0;
	ssize_t k;

	while (len > 0) {
		k = recv(fd, p, len, 0);
		if (k > 0) {
			p += k;
			len -= (size_t)k;
			idle = 0;
		} else if (k == 0 || (errno != EAGAIN && errno != EINTR) ||
			   remote_give_up(&idle, &since)) {
			return -EIO;
		}
	}
	return 0;
}

/* Listens on a port chosen by the kernel. Returns the socket, or -errno. */
static int
listen_local(uint64_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int rc, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 1) == 0 &&
	    getsockname(fd, (struct sockaddr *)&a, &len) == 0) {
		*port = ntohs(a.sin_port);
		return fd;
	}
	rc = -errno;
	close(fd);
	return rc;
}

/*
 * Sends command @msg to the second process and accepts its connection. Returns the socket, or
 * -errno.
 */
static int
accept_peer(struct remote_msg *msg)
{
	int fd = -1, rc, listener = listen_local(&msg->value);

	if (listener < 0)
		return listener;
	rc = remote_send(msg);
	if (rc == 0) {
		/* Limits the wait, because the second process may end before it connects. */
		const struct timeval limit = {.tv_sec = REMOTE_SECONDS};

		setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		fd = accept(listener, NULL, NULL);
		rc = fd < 0 ? -errno : no_delay(fd);
		if (rc != 0)
			remote_stop(msg);
	}
	close(listener);
	if (rc == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int
ping(int fd, uint64_t n, uint8_t *p, uint32_t size, bool first)
{
	uint64_t k;

	for (k = 0; k < n; k++) {
		if (first && send_all(fd, p, size) != 0)
			return -EIO;
		if (recv_all(fd, p, size) != 0)
			return -EIO;
		if (!first && send_all(fd, p, size) != 0)
			return -EIO;
	}
	return 0;
}

double
baseline_tcp_latency(void *run)
{
	const struct baseline_proc_run *r = run;
	struct remote_msg msg = {.op = REMOTE_TCP_ECHO, .n = r->n, .size = r->size};
	uint8_t data[REMOTE_CELL] = {1};
	int rc, fd = accept_peer(&msg);
	const uint64_t half = r->n / 2;
	double ns = 0;
	uint64_t k, t;

	if (fd < 0)
		return -1;
	rc = ping(fd, 1, data, r->size, true);
	if (rc == 0) {
		t = tsc();
		rc = ping(fd, half - 1, data, r->size, true);
		ns = ns_since(t) / (double)(half - 1) / 2;
	}
	t = tsc();
	for (k = half; k < r->n && rc == 0; k++) {
		rc = ping(fd, 1, data, r->size, true);
		sample_round_trip(&t);
	}
	if (rc != 0)
		remote_stop(&msg);
	else
		rc = remote_wait(&msg);
	close(fd);
	return rc == 0 && data[0] == 1 ? ns : -1;
}

double
baseline_tcp_rate(void *run)
{
	const struct baseline_proc_run *r = run;
	struct remote_msg msg = {.op = REMOTE_TCP_SINK, .n = r->n, .size = r->size};
	static uint8_t data[BENCH_MAX_SIZE];
	int rc = 0, fd = accept_peer(&msg);
	uint64_t k, t = tsc();
	double ns;

	if (fd < 0)
		return -1;
	if (r->size > sizeof(data)) {
		close(fd);
		return -1;
	}
	for (k = 0; k < r->n && rc == 0; k++)
		rc = send_all(fd, data, r->size);
	if (rc == 0)
		rc = recv_all(fd, data, 1);
	ns = ns_since(t);
	if (rc != 0)
		remote_stop(&msg);
	else
		rc = remote_wait(&msg);
	close(fd);
	return rc == 0 ? 1000 * (double)r->n / ns : -1;
}

int
baseline_tcp_peer(const struct remote_msg *msg)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)msg->value),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	int rc, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t left = msg->n * msg->size;
	static uint8_t data[65536];

	if (fd < 0)
		return -errno;
	rc = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ? no_delay(fd) : -errno;
	if (rc == 0 && msg->op == REMOTE_TCP_ECHO)
		rc = ping(fd, msg->n, data, (uint32_t)msg->size, false);
	while (rc == 0 && msg->op == REMOTE_TCP_SINK && left > 0) {
		const size_t k = left < sizeof(data) ? left : sizeof(data);

		rc = recv_all(fd, data, k);
		left -= k;
	}
	if (rc == 0 && msg->op == REMOTE_TCP_SINK)
		rc = send_all(fd, data, 1);
	close(fd);
	return rc;
}
