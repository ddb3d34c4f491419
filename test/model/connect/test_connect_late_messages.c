/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Late events: messages after the end of a connection, calls for a peer that has closed, and
 * pending events whose connection or listener changes.
 */
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "connect_raw.h"

/* Accepts the next connection at @listener and reads its request. */
static int
called_at(int listener)
{
	int fd = raw_called(listener);
	struct bb_cm_msg msg;

	assert_true(hear(fd, &msg));
	assert_int_equal(msg.type, BB_CM_REQ);
	return fd;
}

static void
say_rep(int fd)
{
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n = reply(buf);

	assert_int_equal(send(fd, buf, n, MSG_NOSIGNAL), n);
}

/* A connection of a to a plain socket that has closed: a connects again. */
struct called {
	struct sockaddr_storage addr;
	struct bb_conn *c;
	struct bb_qp *qp;
	int listener, fd;
};

static void
called_lost(struct called *k, uint32_t timeout_ms)
{
	pair_open(&p);
	p.a.param.recover_ms = WAIT_S * 1000;
	k->listener = raw_listen(&k->addr);
	k->qp = end_qp(&p.a);
	OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&k->addr, k->qp, &p.a.param, &k->c));
	k->fd = called_at(k->listener);
	say_rep(k->fd);
	expect(&p, &p.a, BB_CM_ESTABLISHED);
	k->c->param.timeout_ms = timeout_ms;
	close(k->fd);
	expect(&p, &p.a, BB_CM_LOST);
}

static void
called_end(struct called *k)
{
	bb_conn_destroy(k->c);
	OK(bb_qp_destroy(k->qp));
	close(k->listener);
	pair_close(&p);
}

#define CALLED_TEST(timeout_ms, name)                                                              \
	TEST_ON_AS(struct called, k, called_lost(k, timeout_ms), called_end(k), name)

CALLED_TEST(WAIT_S * 1000, test_answer_after_dreq_does_not_recover)
{
	struct bb_cm_msg msg;

	k->fd = called_at(k->listener);
	say(k->fd, BB_CM_DREQ);
	assert_int_equal(expect(&p, &p.a, BB_CM_DISCONNECTED).status, 0);
	assert_true(hear(k->fd, &msg));
	assert_int_equal(msg.type, BB_CM_DREP);
	say_rep(k->fd);
	assert_true(closed_by_us(k->fd));
	assert_int_equal(p.a.nev, 0);
	assert_int_equal(conn_state(k->c), BB_CONN_CLOSED);
	close(k->fd);
}

/*
 * A peer that is connected to again sends RTU, which only a connecting side sends. The queue pair
 * stays in RESET, and the connection stays LOST: the socket is closed, and the next attempt
 * connects.
 */
CALLED_TEST(WAIT_S * 1000, test_rtu_of_an_accepting_peer_closes_the_attempt)
{
	int i;

	for (i = 0; i < 2; i++) {
		k->fd = called_at(k->listener);
		say(k->fd, BB_CM_RTU);
		assert_true(closed_by_us(k->fd));
		close(k->fd);
		assert_int_equal(conn_state(k->c), BB_CONN_LOST);
		assert_int_equal(k->qp->state, BB_QP_RESET);
		assert_int_equal(p.a.nev, 0);
	}
}

/*
 * The address of either side may be gone for a while, so a peer that cannot reach this side, or has
 * not resolved it in time, rejects only the attempt. A rejection for another reason ends the
 * recovery.
 */
CALLED_TEST(WAIT_S * 1000, test_unreachable_gid_rejects_only_the_attempt)
{
	for (int i = 0; i < 2; i++) {
		k->fd = called_at(k->listener);
		say_reason(k->fd, BB_CM_REJ, i == 0 ? BB_REJECT_GID : BB_REJECT_TIMEOUT);
		assert_true(closed_by_us(k->fd));
		close(k->fd);
		assert_int_equal(conn_state(k->c), BB_CONN_LOST);
		assert_int_equal(p.a.nev, 0);
	}
	k->fd = called_at(k->listener);
	say(k->fd, BB_CM_REJ);
	assert_int_equal(expect(&p, &p.a, BB_CM_REJECTED).reason, BB_REJECT_CONSUMER);
	close(k->fd);
}

/*
 * The connection ends, because the peer has closed, before its ESTABLISHED event was polled:
 * ESTABLISHED comes first.
 */
PAIR_TEST(pair_open(&p), test_established_is_reported_before_the_end)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request(buf);
	const uint64_t end = wait_end();
	struct bb_cm_event ev;
	struct bb_cm_msg msg;
	struct bb_conn *c;
	struct bb_qp *qp;
	int fd;

	qp = end_qp(&p.b);
	fd = raw_connect();
	assert_int_equal(send(fd, buf, n, 0), n);
	c = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	OK(bb_conn_accept(c, qp, &p.b.param));
	assert_true(hear(fd, &msg));
	say(fd, BB_CM_RTU);
	while (conn_state(c) != BB_CONN_ESTABLISHED) {
		assert_int_equal(bb_cm_poll(p.b.cm, &ev, 0), 0);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(fd);
	OK(bb_conn_disconnect(c, NULL, 0));
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, 0);
	assert_int_equal(qp->state, BB_QP_ERR);
	bb_conn_destroy(c);
	OK(bb_qp_destroy(qp));
}

/* A silent peer of a new attempt: the socket is closed after timeout_ms, and connected again. */
CALLED_TEST(20, test_silent_peer_is_connected_to_again)
{
	int i;

	for (i = 0; i < 2; i++) {
		k->fd = called_at(k->listener);
		assert_true(closed_by_us(k->fd));
		close(k->fd);
		assert_int_equal(conn_state(k->c), BB_CONN_LOST);
	}
}

/* The peer has closed, and the application accepts or rejects it before a poll reports that. */
PAIR_TEST(pair_open(&p), test_accept_of_a_closed_peer_returns_enotconn)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request(buf);
	struct bb_conn_info info;
	struct bb_conn *c;
	struct bb_qp *qp;
	int fd, i;

	qp = end_qp(&p.b);
	for (i = 0; i < 2; i++) {
		fd = raw_connect();
		assert_int_equal(send(fd, buf, n, 0), n);
		c = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
		close(fd);
		if (i == 0) {
			assert_int_equal(bb_conn_accept(c, qp, &p.b.param), -ENOTCONN);
			assert_int_equal(qp->state, BB_QP_RESET);
			/* The queue pair is free for another connection. */
			bb_conn_query(c, &info);
			assert_null(info.qp);
			assert_int_equal(bb_conn_reject(c, NULL, 0), -ENOTCONN);
		} else {
			assert_int_equal(bb_conn_reject(c, NULL, 0), -ENOTCONN);
			assert_int_equal(bb_conn_accept(c, qp, &p.b.param), -ENOTCONN);
		}
		turn(&p);
		assert_int_equal(p.b.nev, 0);
		bb_conn_destroy(c);
	}
	OK(bb_qp_destroy(qp));
}

/* Connects two peers at the same time, each with its request. */
static void
two_requests(int fds[2])
{
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request(buf);
	const uint64_t end = wait_end();
	struct bb_cm_event ev;
	int i;

	for (i = 0; i < 2; i++) {
		fds[i] = raw_connect();
		assert_int_equal(send(fds[i], buf, n, 0), n);
	}
	while (stats().conns - stats().half_open != 2) {
		assert_int_equal(bb_cm_poll(p.b.cm, &ev, 0), 0);
		assert_true(rte_get_tsc_cycles() < end);
	}
}

static unsigned int nseen;

/* The first request's callback destroys the other request's listener. */
static void
on_request(struct bb_cm *cm, const struct bb_cm_event *ev, void *arg)
{
	struct pair *pair = arg;

	(void)cm;
	assert_int_equal(ev->type, BB_CM_CONNECT_REQUEST);
	assert_ptr_equal(ev->listener, nseen == 0 ? pair->listener : NULL);
	if (nseen++ == 0)
		OK(bb_listener_destroy(pair->listener));
	bb_conn_destroy(ev->conn);
}

/* A request is pending while its listener is destroyed: with polls, and with a loop. */
TEST(test_pending_request_outlives_its_listener)
{
	struct bb_loop_attr attr;
	struct bb_cm_event ev;
	struct bb_loop *loop;
	int fds[2], i;

	for (i = 0; i < 2; i++) {
		pair_open(&p);
		two_requests(fds);
		if (i == 0) {
			assert_int_equal(bb_cm_poll(p.b.cm, &ev, 1), 1);
			assert_ptr_equal(ev.listener, p.listener);
			bb_conn_destroy(ev.conn);
			OK(bb_listener_destroy(p.listener));
			assert_int_equal(bb_cm_poll(p.b.cm, &ev, 1), 1);
			assert_null(ev.listener);
			bb_conn_destroy(ev.conn);
		} else {
			bb_loop_attr_init(&attr);
			OK(bb_loop_create(&attr, &loop));
			nseen = 0;
			OK(bb_cm_attach(p.b.cm, loop, on_request, &p));
			assert_true(bb_loop_run_once(loop) >= 0);
			assert_int_equal(nseen, 2);
			OK(bb_cm_detach(p.b.cm));
			OK(bb_loop_destroy(loop));
		}
		close(fds[0]);
		close(fds[1]);
		OK(bb_listener_create(p.b.cm, (struct sockaddr *)&p.addr, &p.listener));
		pair_close(&p);
	}
}

/* The first callback is the last one. */
static void
on_last_request(struct bb_cm *cm, const struct bb_cm_event *ev, void *arg)
{
	assert_null(arg);
	nseen++;
	bb_conn_destroy(ev->conn);
	OK(bb_cm_detach(cm));
}

/* A callback detaches the CM: the events after its own are left to a poll, or another loop. */
PAIR_TEST(pair_open(&p), test_callback_may_detach_its_cm)
{
	struct bb_loop_attr attr;
	struct bb_loop *loop;
	int fds[2], i;

	two_requests(fds);
	/* A failing attach leaves the CM detached. */
	bb_loop_attr_init(&attr);
	attr.max_pollers = 0;
	OK(bb_loop_create(&attr, &loop));
	assert_int_equal(bb_cm_attach(p.b.cm, loop, on_last_request, NULL), -ENOSPC);
	assert_int_equal(bb_cm_detach(p.b.cm), -ENOENT);
	OK(bb_loop_destroy(loop));
	bb_loop_attr_init(&attr);
	OK(bb_loop_create(&attr, &loop));
	nseen = 0;
	for (i = 0; i < 2; i++) {
		OK(bb_cm_attach(p.b.cm, loop, on_last_request, NULL));
		assert_int_equal(bb_cm_attach(p.b.cm, loop, on_last_request, NULL), -EALREADY);
		assert_true(bb_loop_run_once(loop) >= 0);
		assert_int_equal(nseen, i + 1);
		assert_int_equal(bb_cm_detach(p.b.cm), -ENOENT);
	}
	OK(bb_loop_destroy(loop));
	close(fds[0]);
	close(fds[1]);
}

static int
tcp_option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value = 0;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, name, &value, &len), 0);
	return value;
}

/*
 * Either side of a connection detects a dead machine in 25 s, also while data waits for its
 * acknowledgement. A connection that is being made has timeout_ms instead.
 */
PAIR_TEST(pair_open(&p), test_sockets_detect_a_dead_machine_in_25_seconds)
{
	struct bb_conn *c;
	struct bb_qp *qp;
	struct link l;
	int fds[2], i;

	qp = end_qp(&p.a);
	c = call(&p, qp);
	assert_int_equal(tcp_option(c->fd, TCP_USER_TIMEOUT), 0);
	bb_conn_destroy(c);
	OK(bb_qp_destroy(qp));
	link_up(&p, &l);
	fds[0] = l.a->fd;
	fds[1] = l.b->fd;
	for (i = 0; i < 2; i++) {
		assert_int_equal(tcp_option(fds[i], TCP_USER_TIMEOUT), 25000);
		assert_int_equal(tcp_option(fds[i], TCP_KEEPIDLE), 10);
		assert_int_equal(tcp_option(fds[i], TCP_KEEPINTVL), 5);
	}
	link_down(&p, &l);
}

/* Returns true if an application that sleeps on the descriptor would wake up. */
static bool
wakes(const struct end *e)
{
	struct pollfd fd = {.fd = bb_cm_fd(e->cm), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

PAIR_TEST(pair_open(&p), test_descriptor_signals_events_of_local_calls)
{
	struct sockaddr_storage silent;
	struct bb_cm_event ev;
	struct bb_conn *c;
	struct bb_qp *qp;
	int listener, fds[2], i;

	listener = raw_listen(&silent);
	qp = end_qp(&p.a);
	assert_false(wakes(&p.a));
	for (i = 0; i < 2; i++) {
		OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&silent, qp, &p.a.param, &c));
		fds[0] = called_at(listener);
		assert_false(wakes(&p.a));
		OK(bb_conn_disconnect(c, NULL, 0));
		assert_true(wakes(&p.a));
		assert_true(wakes(&p.a));
		assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -ECANCELED);
		assert_false(wakes(&p.a));
		bb_conn_destroy(c);
		close(fds[0]);
	}
	OK(bb_qp_destroy(qp));
	close(listener);

	/* Two events, and an application that polls one of them. */
	assert_false(wakes(&p.b));
	two_requests(fds);
	for (i = 0; i < 2; i++) {
		assert_true(wakes(&p.b));
		assert_int_equal(bb_cm_poll(p.b.cm, &ev, 1), 1);
		assert_int_equal(ev.type, BB_CM_CONNECT_REQUEST);
		bb_conn_destroy(ev.conn);
	}
	assert_false(wakes(&p.b));
	for (i = 0; i < 2; i++)
		close(fds[i]);
}

/*
 * A child of fork() has all descriptors, too. An object that the parent destroyed raises no more
 * events, whatever arrives for it.
 */
PAIR_TEST(pair_open(&p), test_child_of_fork_keeps_no_event_alive)
{
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request(buf);
	struct bb_cm_event ev;
	pid_t child;
	int fds[2];

	fds[0] = raw_connect();
	assert_int_equal(send(fds[0], buf, n, 0), n);
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	bb_conn_destroy(ev.conn);
	OK(bb_listener_destroy(p.listener));
	(void)send(fds[0], buf, n, MSG_NOSIGNAL);
	fds[1] = raw_connect();
	assert_false(wakes(&p.b));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fds[0]);
	close(fds[1]);
	OK(bb_listener_create(p.b.cm, (struct sockaddr *)&p.addr, &p.listener));
}

/*
 * An application that sleeps on the descriptor recovers a connection; only the pauses between
 * attempts depend on time.
 */
PAIR_TEST(pair_open(&p), test_program_that_sleeps_on_the_descriptor_recovers)
{
	uint8_t buf[BB_CM_MSG_MAX];
	struct bb_cm_msg msg;
	struct bb_cm_event ev;
	struct bb_conn *c;
	struct bb_qp *qp;
	uint64_t session;
	unsigned int i;
	size_t n;
	int fd[2];

	p.b.param.recover_ms = WAIT_S * 1000;
	fd[0] = raw_connect();
	n = request_of(buf, 0, BB_CM_RECOVERABLE);
	assert_int_equal(send(fd[0], buf, n, 0), n);
	c = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	qp = end_qp(&p.b);
	OK(bb_conn_accept(c, qp, &p.b.param));
	assert_true(hear(fd[0], &msg));
	session = msg.end.session;
	say(fd[0], BB_CM_RTU);
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	fd[1] = raw_connect();
	n = request_of(buf, session, BB_CM_RECOVERABLE);
	assert_int_equal(send(fd[1], buf, n, 0), n);
	/* Each step wakes it at least once: the connection, its request, LOST, its answer. */
	for (i = 0; i < 100 && qp->state != BB_QP_RESET; i++) {
		assert_true(wakes(&p.b));
		(void)bb_cm_poll(p.b.cm, &ev, 0);
	}
	assert_true(wakes(&p.b));
	assert_int_equal(bb_cm_poll(p.b.cm, &ev, 1), 1);
	assert_int_equal(ev.type, BB_CM_LOST);
	assert_true(wakes(&p.b));
	assert_int_equal(bb_cm_poll(p.b.cm, &ev, 1), 0);
	assert_int_equal(qp->state, BB_QP_RTS);
	assert_false(wakes(&p.b));
	assert_true(hear(fd[1], &msg));
	assert_int_equal(msg.type, BB_CM_REP);
	bb_conn_destroy(c);
	OK(bb_qp_destroy(qp));
	close(fd[0]);
	close(fd[1]);
}

CONNECT_MAIN(RTE_LOG_CRIT)
