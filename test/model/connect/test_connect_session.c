/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connections that break, and hostile peers that try to resume them: the same request repeatedly,
 * two at once, another QP type, refusals, silence. No attempt leaves any state behind.
 */
#include "connect_known.h"

KNOWN_TEST(30000, 30000, test_same_request_breaks_and_recovers_each_time)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	struct bb_conn_info info;
	unsigned int i;
	char text[32];
	int fd;

	for (i = 0; i < 20; i++) {
		fd = ask(k->session, BB_CM_RECOVERABLE);
		assert_int_equal(expect(&p, &p.b, BB_CM_LOST).status, -ECONNRESET);
		hears_rep(fd, k);
		assert_true(closed_by_us(k->fd));
		close(k->fd);
		k->fd = fd;
		say(fd, BB_CM_RTU);
		expect(&p, &p.b, BB_CM_RECOVERED);
		assert_int_equal(k->qp->state, BB_QP_RTS);
		assert_int_equal(stats().conns, 1);
		bb_conn_query(k->conn, &info);
		assert_int_equal(info.tries, 1);
		/* The peer's address is that of the last attempt. */
		assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &len), 0);
		snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(from.sin_port));
		assert_string_equal(info.peer, text);
	}
	assert_int_equal(stats().recovered, 20);
}

/* Two attempts in one poll: the last one is answered, the other closed. */
KNOWN_TEST(30000, 30000, test_last_of_two_attempts_is_answered)
{
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n;
	int fds[2];

	fds[0] = raw_connect();
	fds[1] = raw_connect();
	while (stats().half_open != 2)
		turn(&p);
	n = request_of(buf, k->session, BB_CM_RECOVERABLE);
	assert_int_equal(send(fds[0], buf, n, 0), n);
	assert_int_equal(send(fds[1], buf, n, 0), n);
	expect(&p, &p.b, BB_CM_LOST);
	while (stats().half_open != 0)
		turn(&p);
	assert_int_equal(stats().conns, 1);
	assert_true(closed_by_us(fds[0]));
	hears_rep(fds[1], k);
	say(fds[1], BB_CM_RTU);
	expect(&p, &p.b, BB_CM_RECOVERED);
	close(fds[0]);
	close(fds[1]);
}

/*
 * A slow peer whose request is read exactly when half_open_ms ends: the resumed connection stays,
 * and the peer is not refused.
 */
KNOWN_TEST(30000, 30000, test_request_read_at_the_deadline_resumes)
{
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n;
	int fd;

	p.b.cm->attr.half_open_ms = 20;
	fd = raw_connect();
	until(one_half_open);
	usleep(30000);
	n = request_of(buf, k->session, BB_CM_RECOVERABLE);
	assert_int_equal(send(fd, buf, n, 0), n);
	expect(&p, &p.b, BB_CM_LOST);
	hears_rep(fd, k);
	say(fd, BB_CM_RTU);
	expect(&p, &p.b, BB_CM_RECOVERED);
	assert_int_equal(stats().timeouts, 0);
	close(fd);
}

/*
 * The application disconnects or destroys the connection while a request to resume it is pending.
 * The peer's socket is closed, and later messages are ignored.
 */
TEST(test_end_of_the_connection_closes_a_pending_attempt)
{
	struct known k;
	unsigned int i;
	int fd;

	for (i = 0; i < 4; i++) {
		open_pair(30000, 30000);
		up(&k);
		fd = ask(k.session, BB_CM_RECOVERABLE);
		expect(&p, &p.b, BB_CM_LOST);
		assert_non_null(k.conn->successor);
		if (i % 2 == 0) {
			OK(bb_conn_disconnect(k.conn, NULL, 0));
			assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, 0);
			assert_int_equal(stats().half_open, 0);
		}
		bb_conn_destroy(k.conn);
		if (i < 2) {
			assert_true(closed_by_us(fd));
			close(fd);
		} else {
			(void)send(fd, "x", 1, MSG_NOSIGNAL);
			close(fd);
			/* The first turn closes the descriptor and frees the connection. */
			turn(&p);
			turn(&p);
		}
		k.conn = NULL;
		forget(&k);
	}
}

/*
 * A known session with another peer end is a new request, and the answer says that the session is
 * unknown.
 */
KNOWN_TEST(30000, 30000, test_session_of_another_peer_end_is_a_new_request)
{
	uint8_t buf[BB_CM_MSG_MAX];
	struct bb_cm_event ev;
	unsigned int i;
	size_t n;
	int fd;

	for (i = 0; i < 3; i++) {
		n = request_of(buf, k->session + (i == 0), i == 1 ? 0 : BB_CM_RECOVERABLE);
		if (i == 2)
			buf[BB_CM_HEADER + 36] = BB_QPT_UC; /* qp_type */
		fd = raw_connect();
		assert_int_equal(send(fd, buf, n, 0), n);
		ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
		assert_true(ev.restarted);
		assert_ptr_not_equal(ev.conn, k->conn);
		assert_int_equal(conn_state(k->conn), BB_CONN_ESTABLISHED);
		OK(bb_conn_reject(ev.conn, NULL, 0));
		bb_conn_destroy(ev.conn);
		close(fd);
	}
}

/*
 * Checks that a request with the session of a connection which cannot be resumed is a new
 * request.
 */
static void
is_new(uint64_t session)
{
	int fd = ask(session, BB_CM_RECOVERABLE);
	struct bb_cm_event ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);

	assert_true(ev.restarted);
	bb_conn_destroy(ev.conn);
	close(fd);
}

/*
 * The connection is not yet established, or has ended, or does not allow recovery, or was made by
 * this side.
 */
TEST(test_request_to_a_connection_that_cannot_resume_is_new)
{
	struct sockaddr_storage addr;
	uint8_t buf[BB_CM_MSG_MAX];
	struct known k;
	int listener;
	size_t n;

	open_pair(30000, 30000);
	accepted(&k);
	is_new(k.session);
	say(k.fd, BB_CM_RTU);
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	OK(bb_conn_disconnect(k.conn, NULL, 0));
	is_new(k.session);
	say(k.fd, BB_CM_DREP);
	expect(&p, &p.b, BB_CM_DISCONNECTED);
	is_new(k.session);
	forget(&k);

	open_pair(30000, 0);
	up(&k);
	is_new(k.session);
	forget(&k);

	open_pair(30000, 30000);
	listener = raw_listen(&addr);
	k.qp = end_qp(&p.b);
	OK(bb_conn_connect(p.b.cm, (struct sockaddr *)&addr, k.qp, &p.b.param, &k.conn));
	k.fd = raw_called(listener);
	n = reply(buf);
	assert_true(hear(k.fd, &(struct bb_cm_msg){0}));
	assert_int_equal(send(k.fd, buf, n, 0), n);
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	is_new(k.conn->own.session);
	assert_int_equal(conn_state(k.conn), BB_CONN_ESTABLISHED);
	close(listener);
	forget(&k);
}

static void
to_err(struct bb_qp *qp)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(qp, &attr, BB_QP_STATE));
}

/*
 * The QP goes to ERR before RTU. The application gets ESTABLISHED, then LOST. A connection
 * without recovery reports nothing, because the application moved the QP to ERR itself.
 */
TEST(test_qp_in_err_before_rtu_is_established_then_lost)
{
	struct known k;
	unsigned int i;

	open_pair(30000, 30000);
	accepted(&k);
	to_err(k.qp);
	say(k.fd, BB_CM_RTU);
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	assert_int_equal(expect(&p, &p.b, BB_CM_LOST).status, -EIO);
	forget(&k);

	open_pair(30000, 0);
	up(&k);
	to_err(k.qp);
	for (i = 0; i < 100; i++)
		turn(&p);
	assert_int_equal(p.b.nev, 0);
	assert_int_equal(conn_state(k.conn), BB_CONN_ESTABLISHED);
	forget(&k);
}

/* A message of another version on a connection: only a new peer gets an answer with our version. */
KNOWN_TEST(30000, 0, test_message_of_another_version_disconnects)
{
	const struct bb_cm_msg rtu = {.type = BB_CM_RTU};
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n;

	n = bb_cm_msg_encode(buf, &rtu);
	buf[4] = 2;
	assert_int_equal(send(k->fd, buf, n, 0), n);
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, -EPROTO);
	assert_true(closed_by_us(k->fd));
}

/* A request that resumes a connection, followed by the same request: a protocol error. */
KNOWN_TEST(30000, 30000, test_second_request_on_a_socket_is_a_protocol_error)
{
	uint8_t buf[2 * BB_CM_MSG_MAX];
	size_t n;
	int fd;

	n = request_of(buf, k->session, BB_CM_RECOVERABLE);
	n += request_of(buf + n, k->session, BB_CM_RECOVERABLE);
	fd = raw_connect();
	assert_int_equal(send(fd, buf, n, 0), n);
	assert_true(closed_by_us(fd));
	assert_int_equal(stats().bad_messages, 1);
	assert_int_equal(stats().half_open, 0);
	assert_int_equal(p.b.nev, 0);
	assert_int_equal(conn_state(k->conn), BB_CONN_ESTABLISHED);
	close(fd);
}

#define SILENT 130 /* two polls process most of these, a third the rest */

static bool
begins_behind_first(void)
{
	return p.b.cm->cursor == TAILQ_NEXT(TAILQ_FIRST(&p.b.cm->conns), link);
}

/*
 * More connections than a poll processes. One ends before a poll sees that its peer has
 * restarted: that peer sees it end. Another is destroyed just before a poll would process it.
 */
KNOWN_TEST(30000, 30000, test_connections_beyond_one_poll_end_safely)
{
	int fds[SILENT], fd, i;
	struct bb_conn *next;
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n;

	fd = raw_connect();
	until(one_half_open);
	for (i = 0; i < SILENT; i++) {
		fds[i] = raw_connect();
		turn(&p);
	}
	until(begins_behind_first);
	n = request_of(buf, k->session, BB_CM_RECOVERABLE);
	assert_int_equal(send(fd, buf, n, 0), n);
	turn(&p);
	assert_non_null(k->conn->successor);
	assert_int_equal(conn_state(k->conn), BB_CONN_ESTABLISHED);
	OK(bb_conn_disconnect(k->conn, NULL, 0));
	assert_null(k->conn->successor);
	assert_true(closed_by_us(fd));
	close(fd);

	until(begins_behind_first);
	next = TAILQ_NEXT(p.b.cm->cursor, link);
	p.b.cm->ops->disconnect(p.b.cm->cursor, true);
	bb_cm_conn_free(p.b.cm->cursor);
	assert_ptr_equal(p.b.cm->cursor, next);
	for (i = 0; i < SILENT; i++)
		close(fds[i]);
	until(none_half_open);
	bb_conn_destroy(k->conn);
	k->conn = NULL;
	turn(&p);
}

KNOWN_TEST(30000, 0, test_second_rtu_is_a_protocol_error)
{
	say(k->fd, BB_CM_RTU);
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, -EPROTO);
	assert_int_equal(k->qp->state, BB_QP_ERR);
	assert_int_equal(stats().established, 1);
	assert_int_equal(stats().bad_messages, 1);
	assert_true(closed_by_us(k->fd));
}

TEST(test_reset_socket_disconnects)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};
	struct known k;
	int fd;

	open_pair(30000, 0);
	fd = raw_connect();
	until(one_half_open);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(fd);
	until(none_half_open);
	up(&k);
	assert_int_equal(setsockopt(k.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(k.fd);
	k.fd = -1;
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, -ECONNRESET);
	forget(&k);
}

/* Refused when RTU is due: the connection was never made. */
TEST(test_rej_instead_of_rtu_is_a_rejection)
{
	struct bb_cm_event ev;
	struct known k;

	open_pair(30000, 30000);
	accepted(&k);
	say(k.fd, BB_CM_REJ);
	ev = expect(&p, &p.b, BB_CM_REJECTED);
	assert_int_equal(ev.status, -ECONNREFUSED);
	assert_int_equal(ev.reason, BB_REJECT_CONSUMER);
	assert_int_equal(k.qp->state, BB_QP_ERR);
	assert_int_equal(stats().bad_messages, 0);
	forget(&k);
}

/* This side disconnects; the peer closes without an answer, or stays silent. */
TEST(test_disconnect_ends_without_an_answer_of_the_peer)
{
	struct bb_cm_event ev;
	struct bb_cm_msg msg;
	struct known k;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		open_pair(i == 0 ? 30000 : 50, 30000);
		up(&k);
		OK(bb_conn_disconnect(k.conn, NULL, 0));
		assert_true(hear(k.fd, &msg));
		assert_int_equal(msg.type, BB_CM_DREQ);
		if (i == 0) {
			close(k.fd);
			k.fd = -1;
		}
		ev = expect(&p, &p.b, BB_CM_DISCONNECTED);
		assert_int_equal(ev.status, 0);
		assert_int_equal(k.qp->state, BB_QP_ERR);
		assert_int_equal(stats().timeouts, i);
		if (i == 1)
			assert_true(closed_by_us(k.fd));
		forget(&k);
	}
}

/* The peer answers the reply before it reads that the connection is closed. */
TEST(test_rtu_after_disconnect_is_valid)
{
	struct bb_cm_msg msg;
	struct known k;

	open_pair(WAIT_S * 1000, 0);
	accepted(&k);
	OK(bb_conn_disconnect(k.conn, NULL, 0));
	assert_true(hear(k.fd, &msg));
	assert_int_equal(msg.type, BB_CM_DREQ);
	say(k.fd, BB_CM_RTU);
	say(k.fd, BB_CM_DREP);
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, 0);
	assert_int_equal(stats().bad_messages, 0);
	forget(&k);
}

CONNECT_MAIN(RTE_LOG_CRIT)
