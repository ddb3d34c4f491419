/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Exhausted resources: a socket that accepts no data, or a few bytes at a time; a CM with
 * max_conns connections; a process without free descriptors.
 */
#include <poll.h>

#include "../../fakes/log_catch.h"
#include "../../fakes/process.h"
#include "connect_raw.h"

/* How the substituted socket sends. */
static struct {
	bool on;
	bool stalls; /* Accepts no data. */
	int err;     /* Error after the first bytes of a message, else 0. */
	size_t cut;  /* Bytes of a message that the socket accepts at first. */
	unsigned int calls, waits;
} sock;

ssize_t __real_send(int fd, const void *buf, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);

ssize_t
__wrap_send(int fd, const void *buf, size_t len, int flags)
{
	size_t most;

	if (!sock.on)
		return __real_send(fd, buf, len, flags);
	if (sock.stalls) {
		sock.waits++;
		errno = EAGAIN;
		return -1;
	}
	switch (sock.calls++ % 6) {
	case 0:
	case 3:
		errno = EINTR;
		return -1;
	case 1:
		most = sock.cut;
		break;
	case 4:
		if (sock.err != 0) {
			errno = sock.err;
			return -1;
		}
		most = 1 + sock.cut;
		break;
	default:
		most = 0;
	}
	if (most == 0) {
		sock.waits++;
		errno = EAGAIN;
		return -1;
	}
	return __real_send(fd, buf, most < len ? most : len, flags);
}

static void
open_pair(uint32_t max_conns, uint32_t half_open_ms)
{
	struct bb_cm_attr attr;

	memset(&sock, 0, sizeof(sock));
	bb_cm_attr_init(&attr);
	attr.poll_us = 0;
	attr.max_conns = max_conns;
	attr.half_open_ms = half_open_ms;
	pair_open_with(&p, "soft0", NULL, &attr);
}

PAIR_TEST(open_pair(8, 30000), test_message_sent_in_pieces_arrives_whole)
{
	static const size_t cuts[] = {0, 1, 2, 7, 15, 16, 17, 63, 64, 300};
	struct bb_region r;
	struct link l;
	size_t i;

	OK(bb_region_of(p.b.mr, "buf", 0, 64, &r));
	p.b.param.regions = &r;
	p.b.param.nregions = 1;
	for (i = 0; i < RTE_DIM(cuts); i++) {
		sock.on = true;
		sock.cut = cuts[i];
		sock.calls = 0;
		link_up(&p, &l);
		/* All data was sent: free room in a socket is not an event. */
		assert_int_equal(poll(&(struct pollfd){bb_cm_fd(p.a.cm), POLLIN, 0}, 1, 0), 0);
		assert_int_equal(poll(&(struct pollfd){bb_cm_fd(p.b.cm), POLLIN, 0}, 1, 0), 0);
		writes(&p, &l, (uint8_t)(i + 1));
		link_down(&p, &l);
	}
	assert_true(sock.waits >= 5 * RTE_DIM(cuts));
}

/* Messages that wait for the socket are sent in order: RTU, then DREQ. */
PAIR_TEST(open_pair(8, 30000), test_messages_that_wait_for_the_socket_keep_their_order)
{
	struct bb_cm_event ev;
	unsigned int i;
	struct link l;

	link_call(&p, &l);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	sock.on = true;
	sock.stalls = true;
	expect(&p, &p.a, BB_CM_ESTABLISHED);
	OK(bb_conn_disconnect(l.a, "good-bye", 8));
	for (i = 0; i < 20; i++)
		turn(&p);
	assert_int_equal(p.a.nev + p.b.nev, 0);
	assert_true(sock.waits > 10);
	sock.on = false;
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	ev = expect(&p, &p.b, BB_CM_DISCONNECTED);
	assert_int_equal(ev.private_len, 8);
	assert_memory_equal(ev.private_data, "good-bye", 8);
	assert_int_equal(expect(&p, &p.a, BB_CM_DISCONNECTED).status, 0);
	link_free(&l);
}

/* The peer closes while a message waits for the socket, and before any message is sent. */
PAIR_TEST(open_pair(8, 30000), test_peer_that_closes_while_a_message_waits_fails_the_request)
{
	struct bb_conn *c;
	struct bb_qp *qp;
	size_t cut;

	qp = end_qp(&p.a);
	for (cut = 0; cut < 40; cut += 13) {
		sock.on = true;
		sock.calls = 0;
		sock.cut = cut;
		sock.err = EPIPE;
		c = call(&p, qp);
		assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -EPIPE);
		assert_int_equal(qp->state, BB_QP_RESET);
		bb_conn_destroy(c);
		sock.on = false;
		until(none_half_open);
	}
	sock.on = true;
	sock.calls = 4;
	c = call(&p, qp);
	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -EPIPE);
	assert_int_equal(sock.calls, 5);
	bb_conn_destroy(c);
	sock.on = false;
	until(none_half_open);
	bb_qp_destroy(qp);
}

/*
 * A CM with max_conns connections refuses a peer with a reason, and accepts the next one when a
 * connection has ended.
 */
PAIR_TEST(open_pair(2, 30000), test_request_over_max_conns_is_refused_with_a_reason)
{
	struct bb_cm_event ev;
	struct bb_cm_msg msg;
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request(buf);
	struct bb_conn *none = NULL;
	struct link l[2];
	struct bb_qp *qp;
	int fd;

	link_up(&p, &l[0]);
	link_up(&p, &l[1]);
	/* The connecting side has max_conns connections, too. */
	qp = end_qp(&p.a);
	log_begin();
	assert_int_equal(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, qp, &p.a.param, &none),
			 -ENOSPC);
	log_expect("the CM already has 2, its max_conns");
	assert_null(none);
	bb_qp_destroy(qp);
	fd = raw_connect();
	assert_int_equal(send(fd, buf, n, 0), n);
	assert_true(hear(fd, &msg));
	assert_int_equal(msg.type, BB_CM_REJ);
	assert_int_equal(msg.reason, BB_REJECT_NO_RESOURCES);
	assert_false(hear(fd, &msg));
	close(fd);
	assert_int_equal(stats().rejected, 1);
	assert_int_equal(stats().conns, 2);
	assert_int_equal(stats().half_open, 0);
	assert_int_equal(p.b.nev, 0);
	link_down(&p, &l[0]);
	fd = raw_connect();
	assert_int_equal(send(fd, buf, n, 0), n);
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	bb_conn_destroy(ev.conn);
	close(fd);
	link_down(&p, &l[1]);
}

/*
 * No descriptor is free for an incoming connection: it waits, the log says so once, and it gets
 * the descriptor of a half-open connection that was silent for a while.
 */
PAIR_TEST(open_pair(8, 30000), test_connection_without_a_descriptor_gets_a_silent_ones)
{
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request(buf);
	struct bb_cm_event ev;
	uint64_t begin, seconds, lines = 0;
	const char *at;
	int fds[2];

	begin = rte_get_tsc_cycles();
	fds[0] = raw_connect();
	fds[1] = raw_connect();
	log_begin();
	descriptors_leave(1);
	until(one_half_open);
	assert_int_equal(send(fds[1], buf, n, 0), n);
	/* The other connection waits 250 ms; on a busy machine a single turn may take longer. */
	do {
		const bool evicted = stats().evicted != 0;

		if ((rte_get_tsc_cycles() - begin) * 1000 / rte_get_tsc_hz() >= 250)
			break;
		assert_false(evicted);
		assert_int_equal(p.b.nev, 0);
		turn(&p);
	} while (true);
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	descriptors_restore();
	fflush(log_file);
	seconds = (rte_get_tsc_cycles() - begin) / rte_get_tsc_hz();
	for (at = log_text; (at = strstr(at, "accept() failed:")) != NULL; at++)
		lines++;
	assert_non_null(strstr(
		log_text,
		"accept() failed: Too many open files: raise the limit of open files (ulimit -n)"));
	assert_in_range(lines, 1, seconds + 1);
	log_stop();
	assert_int_equal(stats().evicted, 1);
	/* The first connection was closed. */
	assert_int_equal(answer(fds[0], buf, sizeof(buf)), 0);
	bb_conn_destroy(ev.conn);
	close(fds[0]);
	close(fds[1]);
}

/*
 * No descriptor is free, and no connection is half-open: the connection waits, but does not keep
 * bb_cm_fd() readable.
 */
PAIR_TEST(open_pair(8, 30000), test_connection_without_a_descriptor_does_not_end_sleeps)
{
	struct pollfd sleeper = {.fd = bb_cm_fd(p.b.cm), .events = POLLIN};
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request(buf);
	unsigned int turns = 0;
	struct bb_cm_event ev;
	int fd;

	fd = raw_connect();
	assert_int_equal(send(fd, buf, n, 0), n);
	assert_int_equal(poll(&sleeper, 1, -1), 1);
	log_begin();
	descriptors_leave(0);
	/* The CM retries at intervals, so a turn that was late may find the descriptor readable. */
	do {
		turn(&p);
		assert_in_range(++turns, 1, 10000);
	} while (poll(&sleeper, 1, 0) != 0);
	descriptors_restore();
	log_expect("accept() failed: Too many open files");
	assert_int_equal(stats().half_open, 0);
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	bb_conn_destroy(ev.conn);
	close(fd);
}

PAIR_TEST(open_pair(8, 30000), test_destroyed_listener_closes_its_half_open_connections)
{
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request(buf);
	struct bb_listener *second;
	struct sockaddr_storage addr;
	struct bb_cm_event ev;
	int fds[3], i;

	/* Half-open connections of another listener stay with that listener. */
	OK(bb_cm_addr("127.0.0.1:0", &addr));
	OK(bb_listener_create(p.b.cm, (struct sockaddr *)&addr, &second));
	fds[0] = raw_connect();
	assert_int_equal(send(fds[0], buf, n, 0), n);
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	for (i = 1; i < 3; i++)
		fds[i] = raw_connect();
	assert_int_equal(send(fds[2], buf, n - 1, 0), n - 1);
	while (stats().half_open != 2)
		turn(&p);
	OK(bb_listener_destroy(second));
	assert_int_equal(stats().half_open, 2);
	OK(bb_listener_destroy(p.listener));
	assert_int_equal(stats().half_open, 0);
	assert_int_equal(stats().conns, 1);
	for (i = 1; i < 3; i++) {
		assert_int_equal(answer(fds[i], buf, sizeof(buf)), 0);
		close(fds[i]);
	}
	OK(bb_conn_accept(ev.conn, end_qp(&p.b), &p.b.param));
	say(fds[0], BB_CM_RTU);
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	close(fds[0]);
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, -ECONNRESET);
	bb_qp_destroy(ev.conn->qp);
	bb_conn_destroy(ev.conn);
	OK(bb_listener_create(p.b.cm, (struct sockaddr *)&p.addr, &p.listener));
}

CONNECT_MAIN(RTE_LOG_ERR)
