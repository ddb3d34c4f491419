/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A listener and hostile input: requests truncated at every byte, damaged requests, requests of
 * another version, a thousand silent connections. The listener's resources stay bounded, and it
 * serves other peers meanwhile.
 */
#include <pthread.h>

#include "../../fakes/process.h"
#include "bb_bytes.h"
#include "connect_raw.h"

#define HALF_OPEN 256

static void
open_pair(uint32_t half_open_ms)
{
	struct bb_cm_attr attr;

	bb_cm_attr_init(&attr);
	attr.poll_us = 0;
	attr.max_half_open = HALF_OPEN;
	attr.half_open_ms = half_open_ms;
	pair_open_with(&p, "soft0", NULL, &attr);
}

/* A request truncated at any byte is closed; the same bytes sent one at a time are a request. */
PAIR_TEST(open_pair(30000), test_truncated_request_is_closed)
{
	uint8_t buf[BB_CM_MSG_MAX], back[BB_CM_MSG_MAX];
	struct bb_cm_event ev;
	size_t i, n = request(buf);
	int fd;

	for (i = 0; i < n; i++) {
		fd = raw_connect();
		assert_int_equal(send(fd, buf, i, 0), i);
		until(one_half_open);
		close(fd);
		until(none_half_open);
		assert_int_equal(p.b.nev, 0);
	}
	fd = raw_connect();
	for (i = 0; i < n; i++) {
		assert_int_equal(p.b.nev, 0);
		assert_int_equal(send(fd, buf + i, 1, 0), 1);
		turn(&p);
	}
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	assert_int_equal(ev.private_len, 5);
	/* A second request on that connection is a protocol error. */
	assert_int_equal(send(fd, buf, n, 0), n);
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, -EPROTO);
	assert_int_equal(answer(fd, back, sizeof(back)), 0);
	bb_conn_destroy(ev.conn);
	close(fd);
}

PAIR_TEST(open_pair(30000), test_damaged_request_is_refused_or_valid)
{
	uint8_t buf[BB_CM_MSG_MAX], back[BB_CM_MSG_MAX];
	size_t i, n = request(buf);
	unsigned int taken = 0;
	struct bb_cm_event ev;
	int fd;

	for (i = 0; i < n; i++) {
		const uint64_t bad = stats().bad_messages, end = wait_end();

		request(buf);
		buf[i] ^= 0x81;
		fd = raw_connect();
		assert_int_equal(send(fd, buf, n, 0), n);
		/* If the length is larger than the data, the listener waits for more. */
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		ev.conn = NULL;
		until(none_half_open);
		while (stats().conns != 0 || stats().bad_messages == bad) {
			turn(&p);
			if (take(&p.b, &ev) && ev.type == BB_CM_DISCONNECTED) {
				bb_conn_destroy(ev.conn);
				taken++;
				break;
			}
			if (none_half_open() && stats().conns == 0 && p.b.nev == 0)
				break;
			assert_true(rte_get_tsc_cycles() < end);
		}
		(void)answer(fd, back, sizeof(back));
		close(fd);
	}
	/* Session, QP number, PSN, GID, keys, private data: any value is valid. */
	assert_in_range(taken, 40, n - 40);
	assert_true(stats().bad_messages >= 40);
}

PAIR_TEST(open_pair(30000), test_request_of_another_version_gets_our_version)
{
	uint8_t buf[BB_CM_MSG_MAX], back[BB_CM_MSG_MAX];
	struct bb_region regions[BB_REGION_MAX];
	struct bb_cm_header h;
	struct bb_cm_msg msg;
	size_t n = request(buf);
	int fd;

	buf[4] = 2;
	fd = raw_connect();
	/* The answer arrives although its body is not read and the socket ends with a RST. */
	assert_int_equal(send(fd, buf, n, 0), n);
	until(none_half_open);
	n = answer(fd, back, sizeof(back));
	assert_true(n > BB_CM_HEADER);
	assert_null(bb_cm_header_decode(back, &h));
	assert_null(bb_cm_body_decode(h.type, back + BB_CM_HEADER, h.len, &msg, regions));
	assert_int_equal(msg.type, BB_CM_REJ);
	assert_int_equal(msg.reason, BB_REJECT_VERSION);
	close(fd);

	/* A private data length that differs from the one in the header. */
	n = request(buf);
	bb_put16(buf + BB_CM_HEADER + 54, 6);
	fd = raw_connect();
	assert_int_equal(send(fd, buf, n, 0), n);
	assert_int_equal(answer(fd, back, sizeof(back)), 0);
	close(fd);
	assert_int_equal(stats().bad_messages, 2);
}

/* The log names the peer's address, and a flood of bad messages logs one line a second. */
PAIR_TEST(open_pair(30000), test_flood_of_bad_messages_logs_one_line_a_second)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	const uint64_t begin = rte_get_tsc_cycles();
	uint64_t seconds, lines = 0, reports = 0, unlogged = 0, all = 0;
	char want[128], *text = NULL;
	const char *at;
	uint8_t back[BB_CM_MSG_MAX];
	size_t size = 0;
	unsigned int i;
	FILE *log;
	int fd;

	log = open_memstream(&text, &size);
	assert_non_null(log);
	rte_openlog_stream(log);
	rte_log_set_global_level(RTE_LOG_NOTICE);
	for (i = 0; i < 21; i++) {
		/* One second by the TSC, whose rate DPDK rounds to 10 MHz. */
		if (i == 20)
			usleep(1100000);
		fd = raw_connect();
		if (i == 0 || i == 20)
			assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &len), 0);
		assert_int_equal(send(fd, "GET / HTTP/1.0\r\n", 16, 0), 16);
		assert_int_equal(answer(fd, back, sizeof(back)), 0);
		close(fd);
		fflush(log);
		if (i != 0 && i != 20)
			continue;
		snprintf(want, sizeof(want), "127.0.0.1:%u: its message has no Bluebell",
			 ntohs(from.sin_port));
		assert_non_null(strstr(text, want));
	}
	seconds = (rte_get_tsc_cycles() - begin) / rte_get_tsc_hz();
	for (at = text; (at = strstr(at, "connect: ")) != NULL; all++) {
		unsigned int more;
		int end = 0;

		at += strlen("connect: ");
		(void)sscanf(at, "%u more invalid messages from peers were not logged%n", &more,
			     &end);
		if (end != 0) {
			reports++;
			unlogged += more;
		}
	}
	for (at = text; (at = strstr(at, ": its message has no Bluebell")) != NULL; at++)
		lines++;
	assert_int_equal(lines + reports, all);
	assert_int_equal(lines + unlogged, 21);
	assert_in_range(lines, 2, seconds + 1);
	rte_log_set_global_level(RTE_LOG_ERR);
	rte_openlog_stream(NULL);
	fclose(log);
	free(text);
	assert_int_equal(stats().bad_messages, 21);
}

/* An answer byte by byte, truncated at each byte; and a complete answer, sent twice. */
PAIR_TEST(open_pair(30000), test_truncated_answer_fails_the_connection)
{
	struct sockaddr_storage addr;
	uint8_t buf[BB_CM_MSG_MAX];
	struct bb_cm_event ev;
	struct bb_conn *c;
	struct bb_qp *qp;
	size_t i, n = reply(buf);
	int fd, in;

	qp = end_qp(&p.a);
	fd = raw_listen(&addr);
	for (i = 0; i <= n; i++) {
		OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&addr, qp, &p.a.param, &c));
		in = raw_called(fd);
		assert_int_equal(send(in, buf, i, 0), i);
		if (i < n) {
			turn(&p);
			assert_int_equal(p.a.nev, 0);
			shutdown(in, SHUT_WR);
			assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -ECONNRESET);
			assert_int_equal(qp->state, BB_QP_RESET);
		} else {
			ev = expect(&p, &p.a, BB_CM_ESTABLISHED);
			assert_int_equal(ev.private_len, 5);
			assert_int_equal(send(in, buf, n, 0), n);
			assert_int_equal(expect(&p, &p.a, BB_CM_DISCONNECTED).status, -EPROTO);
			assert_int_equal(qp->state, BB_QP_ERR);
		}
		bb_conn_destroy(c);
		close(in);
	}
	close(fd);
	bb_qp_destroy(qp);
}

static void *
flood(void *arg)
{
	const struct bb_cm_msg msg = {.type = BB_CM_DREP};
	uint8_t buf[64 * BB_CM_HEADER];
	size_t i;

	for (i = 0; i < 64; i++)
		bb_cm_msg_encode(buf + i * BB_CM_HEADER, &msg);
	while (send(*(int *)arg, buf, sizeof(buf), MSG_NOSIGNAL) == sizeof(buf))
		;
	return NULL;
}

/* A peer sends harmless messages without end after the connection has ended: polls return. */
PAIR_TEST(open_pair(30000), test_endless_messages_do_not_hold_a_poll)
{
	const struct bb_cm_msg bye = {.type = BB_CM_DREQ};
	uint8_t buf[BB_CM_MSG_MAX];
	struct bb_cm_event ev;
	pthread_t t;
	size_t i, n = request(buf);
	int fd;

	fd = raw_connect();
	assert_int_equal(send(fd, buf, n, 0), n);
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	OK(bb_conn_accept(ev.conn, end_qp(&p.b), &p.b.param));
	n = bb_cm_msg_encode(buf, &bye);
	assert_int_equal(send(fd, buf, n, 0), n);
	ev = expect(&p, &p.b, BB_CM_DISCONNECTED);
	assert_int_equal(ev.status, 0);
	assert_int_equal(pthread_create(&t, NULL, flood, &fd), 0);
	/* Ends the test if a poll never returns. */
	alarm(WAIT_S);
	for (i = 0; i < 1000; i++)
		turn(&p);
	alarm(0);
	bb_qp_destroy(ev.conn->qp);
	bb_conn_destroy(ev.conn);
	turn(&p);
	pthread_join(t, NULL);
	close(fd);
}

/* The connecting side gets wrong or truncated answers. */
PAIR_TEST(open_pair(30000), test_wrong_answer_fails_the_connection)
{
	static const uint8_t types[] = {BB_CM_REQ, BB_CM_RTU, BB_CM_DREQ, BB_CM_DREP, BB_CM_REP};
	struct sockaddr_storage addr;
	uint8_t buf[BB_CM_MSG_MAX];
	struct bb_conn *c;
	struct bb_qp *qp;
	size_t i, n;
	int fd, in;

	qp = end_qp(&p.a);
	fd = raw_listen(&addr);
	for (i = 0; i < sizeof(types); i++) {
		struct bb_cm_msg msg = {.type = types[i],
					.end = {.addr = {.qpn = 5, .lid = 1, .mtu = 1024},
						.sq_depth = 16,
						.session = 9,
						.qp_type = 1}};

		OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&addr, qp, &p.a.param, &c));
		in = raw_called(fd);
		n = bb_cm_msg_encode(buf, &msg);
		assert_int_equal(send(in, buf, n, 0), n);
		/* The last one is an answer of a UC queue pair to an RC queue pair. */
		assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -EPROTO);
		assert_int_equal(qp->state, BB_QP_RESET);
		bb_conn_destroy(c);
		close(in);
	}
	OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&addr, qp, &p.a.param, &c));
	in = raw_called(fd);
	assert_int_equal(send(in, buf, BB_CM_HEADER + 10, 0), BB_CM_HEADER + 10);
	shutdown(in, SHUT_WR);
	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -ECONNRESET);
	bb_conn_destroy(c);
	close(in);
	close(fd);
	bb_qp_destroy(qp);
}

/*
 * A thousand silent connections: at most max_half_open of them are held, a real peer is still
 * accepted, and all of them are closed in the end.
 */
TEST(test_silent_connections_are_held_up_to_max_half_open)
{
	struct link l;
	int fds[1000];
	unsigned int i;

	if (!descriptors_raise(2048)) {
		print_message("skipped: the limit of descriptors is below 2048\n");
		skip();
	}
	/* None of them is closed by its own deadline. */
	open_pair(300000);
	for (i = 0; i < 1000; i++) {
		fds[i] = raw_connect();
		turn(&p);
		assert_true(stats().half_open <= HALF_OPEN);
	}
	link_up(&p, &l);
	link_down(&p, &l);
	assert_in_range(stats().evicted, 1000 - HALF_OPEN, 1000);
	assert_int_equal(stats().timeouts, 0);
	for (i = 0; i < 1000; i++)
		close(fds[i]);
	until(none_half_open);
	pair_close(&p);
}

/* A silent connection is closed after half_open_ms with a reason. */
PAIR_TEST(open_pair(20), test_silent_connection_is_closed_with_a_reason)
{
	struct bb_cm_msg msg;
	char byte;
	int fd;

	fd = raw_connect();
	assert_true(hear(fd, &msg));
	assert_int_equal(msg.type, BB_CM_REJ);
	assert_int_equal(msg.reason, BB_REJECT_TIMEOUT);
	/* An orderly close, because a reset might overtake the reason. */
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	assert_int_equal(stats().timeouts, 1);
	close(fd);
}

PAIR_TEST(open_pair(20), test_complete_request_waits_without_limit)
{
	uint8_t buf[BB_CM_MSG_MAX];
	const size_t n = request(buf);
	struct bb_cm_event ev;
	unsigned int i;
	int fd;

	fd = raw_connect();
	assert_int_equal(send(fd, buf, n, 0), n);
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	usleep(40000);
	for (i = 0; i < 10; i++)
		turn(&p);
	assert_int_equal(p.b.nev, 0);
	assert_int_equal(conn_state(ev.conn), BB_CONN_REQUESTED);
	assert_int_equal(stats().timeouts, 0);
	bb_conn_destroy(ev.conn);
	close(fd);
}

CONNECT_MAIN(RTE_LOG_ERR)
