/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A recovering connection between the answer and RTU. The queue pair is in RTS, and the peer is
 * silent, refuses, disconnects, closes, or sends another request.
 */
#include <poll.h>

#include "connect_known.h"

/* The peer gets the answer and is silent. So is the next attempt, and then recover_ms ends. */
KNOWN_TEST(50, 1000, test_silent_peer_fails_attempts_until_recover_ms_ends)
{
	struct bb_cm_event ev;
	unsigned int i;

	close(k->fd);
	assert_int_equal(expect(&p, &p.b, BB_CM_LOST).status, -ECONNRESET);
	for (i = 0; i < 2; i++) {
		k->fd = ask(k->session, BB_CM_RECOVERABLE);
		hears_rep(k->fd, k);
		assert_int_equal(k->qp->state, BB_QP_RTS);
		if (i == 1) {
			say(k->fd, BB_CM_REJ);
			break;
		}
		/* The attempt is abandoned without leaving any state. */
		assert_true(closed_by_us(k->fd));
		assert_int_equal(k->qp->state, BB_QP_RESET);
		assert_int_equal(conn_state(k->conn), BB_CONN_LOST);
		close(k->fd);
	}
	assert_true(closed_by_us(k->fd));
	while (conn_state(k->conn) == BB_CONN_LOST && k->qp->state != BB_QP_RESET)
		turn(&p);
	ev = expect(&p, &p.b, BB_CM_DISCONNECTED);
	assert_int_equal(ev.status, -ETIMEDOUT);
	assert_int_equal(k->qp->state, BB_QP_RESET);
}

/*
 * The peer gets the answer and sends DREQ instead of RTU; a later RTU does not recover the
 * connection.
 */
KNOWN_TEST(30000, 30000, test_dreq_instead_of_rtu_disconnects)
{
	struct bb_cm_msg msg;

	close(k->fd);
	expect(&p, &p.b, BB_CM_LOST);
	k->fd = ask(k->session, BB_CM_RECOVERABLE);
	hears_rep(k->fd, k);
	say(k->fd, BB_CM_DREQ);
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, 0);
	assert_true(hear(k->fd, &msg));
	assert_int_equal(msg.type, BB_CM_DREP);
	assert_int_equal(stats().bad_messages, 0);
	say(k->fd, BB_CM_RTU);
	assert_true(closed_by_us(k->fd));
	assert_int_equal(p.b.nev, 0);
	assert_int_equal(stats().bad_messages, 1);
	assert_int_equal(conn_state(k->conn), BB_CONN_CLOSED);
	assert_int_equal(k->qp->state, BB_QP_ERR);
}

/* LOST, requested again and answered: the queue pair is in RTS, and RTU has not arrived. */
static void
answered(struct known *k)
{
	up(k);
	close(k->fd);
	assert_int_equal(expect(&p, &p.b, BB_CM_LOST).nends, 0);
	k->fd = ask(k->session, BB_CM_RECOVERABLE);
	hears_rep(k->fd, k);
}

/* The next attempt gets what the previous one did not complete. */
static void
comes_back(struct known *k)
{
	struct bb_cm_event ev;

	assert_int_equal(conn_state(k->conn), BB_CONN_LOST);
	assert_int_equal(k->qp->state, BB_QP_RESET);
	k->fd = ask(k->session, BB_CM_RECOVERABLE);
	hears_rep(k->fd, k);
	say(k->fd, BB_CM_RTU);
	ev = expect(&p, &p.b, BB_CM_RECOVERED);
	assert_int_equal(ev.nends, 0);
	assert_int_equal(ev.private_len, 5);
	assert_int_equal(k->qp->state, BB_QP_RTS);
}

static void
post_recv(struct bb_qp *qp, uint64_t wr_id)
{
	const struct bb_sge sge = {(uintptr_t)p.b.buf, 64, p.b.mr->lkey};

	OK(bb_post_recv(qp, wr_id, &sge, 1));
	bb_qp_ring_recv(qp);
}

/*
 * The peer gets the answer, a receive is posted, and the peer closes: the receive is reported,
 * and the next attempt is answered.
 */
TEST(test_receive_posted_before_the_peer_closes_is_reported)
{
	struct bb_cm_event ev;
	struct known k;

	open_pair(30000, 30000);
	answered(&k);
	post_recv(k.qp, 7);
	close(k.fd);
	ev = expect(&p, &p.b, BB_CM_LOST);
	assert_int_equal(ev.status, -ECONNRESET);
	assert_int_equal(ev.private_len, 0);
	assert_int_equal(ev.nends, 1);
	assert_true(ev.ends[0].recv);
	assert_int_equal(ev.ends[0].fate, BB_WR_NOT_DONE);
	assert_int_equal(ev.ends[0].wc.wr_id, 7);
	comes_back(&k);
	forget(&k);
}

/*
 * The peer gets the answer and sends another request: the new request is answered, the earlier
 * socket closed.
 */
TEST(test_second_request_is_answered_and_the_first_closed)
{
	struct pollfd wakes = {.events = POLLIN};
	struct bb_cm_event ev;
	struct known k;
	int fd, posted;

	for (posted = 0; posted < 2; posted++) {
		open_pair(30000, 30000);
		wakes.fd = bb_cm_fd(p.b.cm);
		answered(&k);
		if (posted)
			post_recv(k.qp, 7);
		fd = ask(k.session, BB_CM_RECOVERABLE);
		if (posted) {
			ev = expect(&p, &p.b, BB_CM_LOST);
			assert_int_equal(ev.nends, 1);
			assert_int_equal(ev.ends[0].wc.wr_id, 7);
		} else {
			/* The descriptor stays readable until the new request is answered. */
			while (k.conn->fd >= 0) {
				assert_int_equal(poll(&wakes, 1, 0), 1);
				assert_int_equal(bb_cm_poll(p.b.cm, &ev, 1), 0);
			}
			assert_int_equal(poll(&wakes, 1, 0), 1);
		}
		hears_rep(fd, &k);
		assert_true(closed_by_us(k.fd));
		close(k.fd);
		k.fd = fd;
		say(fd, BB_CM_RTU);
		assert_int_equal(expect(&p, &p.b, BB_CM_RECOVERED).nends, 0);
		assert_int_equal(k.qp->state, BB_QP_RTS);
		assert_int_equal(stats().conns, 1);
		forget(&k);
	}
}

/* Creates the peer's queue pair, connected to the listener's answer, and sends its request. */
static struct bb_qp *
peer_qp(struct known *k)
{
	struct bb_cm_msg msg = {.type = BB_CM_REQ};
	struct bb_qp *qp = end_qp(&p.a);
	struct bb_qp_addr own;
	uint8_t buf[BB_CM_MSG_MAX];
	struct bb_qp_attr attr;
	size_t n;

	OK(bb_qp_addr(qp, 1, 0, &own));
	msg.end.session = k->session;
	msg.end.flags = BB_CM_RECOVERABLE;
	msg.end.addr = own;
	msg.end.sq_depth = 16;
	msg.end.initiator_depth = 3;
	n = bb_cm_msg_encode(buf, &msg);
	k->fd = raw_connect();
	assert_int_equal(send(k->fd, buf, n, 0), n);
	assert_true(hear(k->fd, &msg));
	assert_int_equal(msg.type, BB_CM_REP);
	bb_qp_attr_init(&attr);
	OK(bb_qp_connect(qp, &own, &msg.end.addr, &attr));
	return qp;
}

/*
 * The peer gets the answer, sends a message, which consumes a receive of the SRQ, and closes: the
 * receive is reported as complete.
 */
TEST(test_message_before_the_peer_closes_is_reported_done)
{
	const uint64_t end = wait_end();
	struct bb_srq_attr attr;
	struct bb_cm_event ev;
	struct bb_srq *srq;
	struct bb_qp *from;
	struct bb_sge sge;
	struct known k;
	struct bb_wc wc;

	open_pair(30000, 30000);
	bb_srq_attr_init(&attr);
	attr.depth = 16;
	OK(bb_srq_create(p.b.pd, &attr, &srq));
	sge = (struct bb_sge){(uintptr_t)p.b.buf, 64, p.b.mr->lkey};
	OK(bb_post_srq_recv(srq, 7, &sge, 1));
	bb_srq_ring(srq);
	p.b.init.srq = srq;
	up(&k);
	close(k.fd);
	expect(&p, &p.b, BB_CM_LOST);
	from = peer_qp(&k);
	memcpy(p.a.buf, "hello", 5);
	sge = (struct bb_sge){(uintptr_t)p.a.buf, 5, p.a.mr->lkey};
	OK(bb_post_send(from, 1, &sge, 1, BB_SEND_SIGNALED));
	bb_qp_ring(from);
	while (bb_cq_poll(p.a.cq, &wc, 1) == 0) {
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	close(k.fd);
	ev = expect(&p, &p.b, BB_CM_LOST);
	assert_int_equal(ev.nends, 1);
	assert_true(ev.ends[0].recv);
	assert_int_equal(ev.ends[0].fate, BB_WR_DONE);
	assert_int_equal(ev.ends[0].wc.wr_id, 7);
	assert_int_equal(ev.ends[0].wc.byte_len, 5);
	assert_memory_equal(p.b.buf, "hello", 5);
	comes_back(&k);
	bb_conn_destroy(k.conn);
	OK(bb_qp_destroy(k.qp));
	OK(bb_qp_destroy(from));
	OK(bb_srq_destroy(srq));
	close(k.fd);
	pair_close(&p);
}

/* The values of this attempt count; after the recovery another RTU is a protocol error. */
KNOWN_TEST(30000, 30000, test_values_of_the_last_attempt_count)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	struct bb_conn_info info;
	struct bb_region region;
	struct bb_cm_event ev;
	struct bb_qp *from;
	char text[64];

	assert_int_equal(bb_conn_region(k->conn, "x", &region), 0);
	bb_conn_query(k->conn, &info);
	assert_int_equal(info.responder_resources, 0);
	close(k->fd);
	expect(&p, &p.b, BB_CM_LOST);
	from = peer_qp(k);
	say(k->fd, BB_CM_RTU);
	ev = expect(&p, &p.b, BB_CM_RECOVERED);
	assert_int_equal(ev.private_len, 0);
	assert_int_equal(bb_conn_region(k->conn, "x", &region), -ENOENT);
	bb_conn_query(k->conn, &info);
	assert_int_equal(info.responder_resources, 3);
	assert_int_equal(info.remote.qpn, from->qpn);
	assert_int_equal(info.tries, 1);
	assert_int_equal(getsockname(k->fd, (struct sockaddr *)&at, &len), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_string_equal(info.peer, text);
	assert_int_equal(k->conn->deadline, 0);
	say(k->fd, BB_CM_RTU);
	assert_int_equal(expect(&p, &p.b, BB_CM_LOST).status, -EPROTO);
	assert_int_equal(stats().bad_messages, 1);
	OK(bb_qp_destroy(from));
}

/*
 * The application ends the connection: the peer sees that at once, and posted requests are
 * flushed.
 */
TEST(test_disconnect_flushes_posted_requests)
{
	struct known k;
	struct bb_wc wc;

	open_pair(30000, 30000);
	answered(&k);
	post_recv(k.qp, 7);
	OK(bb_conn_disconnect(k.conn, NULL, 0));
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, 0);
	assert_true(closed_by_us(k.fd));
	assert_int_equal(k.qp->state, BB_QP_ERR);
	turn(&p);
	assert_int_equal(bb_cq_poll(p.b.cq, &wc, 1), 1);
	assert_int_equal(wc.status, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 7);
	forget(&k);
}

CONNECT_MAIN(RTE_LOG_CRIT)
