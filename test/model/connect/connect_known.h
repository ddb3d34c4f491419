/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A connection whose peer is a plain socket that knows the session, so that it can resume the
 * connection.
 */
#ifndef CONNECT_KNOWN_H
#define CONNECT_KNOWN_H

#include "connect_raw.h"

/* A connection whose peer has one descriptor for it at a time. */
struct known {
	struct bb_conn *conn;
	struct bb_qp *qp;
	uint64_t session;
	int fd;
};

static inline void
open_pair(uint32_t timeout_ms, uint32_t recover_ms)
{
	struct bb_cm_attr attr;

	bb_cm_attr_init(&attr);
	attr.poll_us = 0;
	attr.half_open_ms = 30000;
	pair_open_with(&p, "soft0", NULL, &attr);
	p.b.param.timeout_ms = timeout_ms;
	p.b.param.recover_ms = recover_ms;
}

static inline void
hears_rep(int fd, const struct known *k)
{
	struct bb_cm_msg msg;

	assert_true(hear(fd, &msg));
	assert_int_equal(msg.type, BB_CM_REP);
	assert_int_equal(msg.end.session, k->session);
	assert_int_equal(msg.end.addr.qpn, k->qp->qpn);
}

static inline void
accepted(struct known *k)
{
	struct bb_cm_msg msg;

	k->fd = ask(0, BB_CM_RECOVERABLE);
	k->conn = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	k->qp = end_qp(&p.b);
	OK(bb_conn_accept(k->conn, k->qp, &p.b.param));
	assert_true(hear(k->fd, &msg));
	assert_int_equal(msg.type, BB_CM_REP);
	assert_int_not_equal(msg.end.session, 0);
	k->session = msg.end.session;
}

static inline void
up(struct known *k)
{
	accepted(k);
	say(k->fd, BB_CM_RTU);
	expect(&p, &p.b, BB_CM_ESTABLISHED);
}

static inline void
forget(struct known *k)
{
	bb_conn_destroy(k->conn);
	OK(bb_qp_destroy(k->qp));
	if (k->fd >= 0)
		close(k->fd);
	assert_int_equal(stats().conns, 0);
	assert_int_equal(stats().half_open, 0);
	pair_close(&p);
}

/* A test of an established connection k. */
#define KNOWN_TEST(timeout_ms, recover_ms, name)                                                   \
	TEST_ON_AS(struct known, k, open_pair(timeout_ms, recover_ms); up(k), forget(k), name)

#endif
