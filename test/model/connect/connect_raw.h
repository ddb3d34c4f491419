/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A peer of a listener that is a plain socket: it sends any bytes at any time. */
#ifndef CONNECT_RAW_H
#define CONNECT_RAW_H

#include "bb_cm_priv.h"
#include "connect_env.h"

static struct pair p;

static inline struct bb_cm_stats
stats(void)
{
	struct bb_cm_stats s;

	bb_cm_stats(p.b.cm, &s);
	return s;
}

static inline int
raw_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&p.addr, sizeof(struct sockaddr_in)),
			 0);
	return fd;
}

/* Creates the listener of a peer that the CM connects to, and returns its address in @addr. */
static inline int
raw_listen(struct sockaddr_storage *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*addr);

	assert_true(fd >= 0);
	OK(bb_cm_addr("127.0.0.1:0", addr));
	assert_int_equal(bind(fd, (struct sockaddr *)addr, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* Accepts the next connection at @listener. */
static inline int
raw_called(int listener)
{
	const uint64_t end = wait_end();
	int fd;

	while ((fd = accept(listener, NULL, NULL)) < 0) {
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	return fd;
}

static inline size_t
request_of(uint8_t *buf, uint64_t session, uint8_t flags)
{
	struct bb_region r = {"x", 4096, 4096, 7, BB_ACCESS_REMOTE_READ};
	struct bb_cm_msg msg = {
		.type = BB_CM_REQ,
		.end = {.addr = {.qpn = 5,
				 .gid = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1},
				 .mtu = 1024},
			.sq_depth = 16,
			.session = session,
			.flags = flags},
		.regions = &r,
		.nregions = 1,
		.private = "hello",
		.private_len = 5,
	};

	return bb_cm_msg_encode(buf, &msg);
}

static inline size_t
request(uint8_t *buf)
{
	return request_of(buf, 0, 0);
}

/* Sends a request on a new descriptor, and returns the descriptor. */
static inline int
ask(uint64_t session, uint8_t flags)
{
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request_of(buf, session, flags);
	int fd = raw_connect();

	assert_int_equal(send(fd, buf, n, 0), n);
	return fd;
}

static inline void
until(bool (*done)(void))
{
	const uint64_t end = wait_end();

	while (!done()) {
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
}

static inline bool
none_half_open(void)
{
	return stats().half_open == 0;
}

static inline bool
one_half_open(void)
{
	return stats().half_open == 1;
}

/* Reads what the listener sends until it closes. */
static inline size_t
answer(int fd, uint8_t *buf, size_t len)
{
	const uint64_t end = wait_end();
	size_t have = 0;
	ssize_t n;

	for (;;) {
		n = recv(fd, buf + have, len - have, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return have;
		have += n > 0 ? (size_t)n : 0;
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
}

/* Builds a valid answer. */
static inline size_t
reply(uint8_t *buf)
{
	const struct bb_cm_msg msg = {
		.type = BB_CM_REP,
		.end = {.addr = {.qpn = 5,
				 .gid = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1},
				 .mtu = 1024},
			.sq_depth = 16,
			.session = 9,
			.flags = BB_CM_RECOVERABLE},
		.private = "hello",
		.private_len = 5,
	};

	return bb_cm_msg_encode(buf, &msg);
}

/* Sends a message without a body. @reason: of a REJ. */
static inline void
say_reason(int fd, uint8_t type, uint32_t reason)
{
	const struct bb_cm_msg msg = {.type = type, .reason = reason};
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n = bb_cm_msg_encode(buf, &msg);

	assert_int_equal(send(fd, buf, n, MSG_NOSIGNAL), n);
}

/* Sends a message without a body: RTU, REJ, DREQ or DREP. */
static inline void
say(int fd, uint8_t type)
{
	say_reason(fd, type, BB_REJECT_CONSUMER);
}

/* Reads the next message of the listener. Returns false if it has closed the connection. */
static inline bool
hear(int fd, struct bb_cm_msg *msg)
{
	static struct bb_region regions[BB_REGION_MAX];
	static uint8_t buf[BB_CM_MSG_MAX];
	const uint64_t end = wait_end();
	struct bb_cm_header h = {0};
	size_t have = 0, need = BB_CM_HEADER;
	ssize_t n;

	while (have < need) {
		n = recv(fd, buf + have, need - have, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			assert_int_equal(have, 0);
			return false;
		}
		have += n > 0 ? (size_t)n : 0;
		if (have == BB_CM_HEADER && need == BB_CM_HEADER) {
			assert_null(bb_cm_header_decode(buf, &h));
			need += h.len;
		}
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_null(bb_cm_body_decode(h.type, buf + BB_CM_HEADER, h.len, msg, regions));
	return true;
}

static inline bool
closed_by_us(int fd)
{
	uint8_t buf[BB_CM_MSG_MAX];

	return answer(fd, buf, sizeof(buf)) == 0;
}

#endif
