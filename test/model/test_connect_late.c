/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What comes late: messages behind the end of a connection, calls for a peer that has gone, and
 * events that wait for the application while what they speak of changes.
 */
#include "../fakes/bare_eal.h"
#include "connect_raw.h"

/* The next connection at it, and the request that comes. */
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

/* Who connects calls again, and is told good-bye: an answer behind that brings nothing back. */
static void
test_answer(void **st)
{
	struct sockaddr_storage addr;
	struct bb_cm_msg msg;
	struct bb_conn *c;
	struct bb_qp *qp;
	int listener, fd;

	(void)st;
	pair_open(&p);
	p.a.param.recover_ms = WAIT_S * 1000;
	listener = raw_listen(&addr);
	qp = end_qp(&p.a);
	assert_int_equal(bb_conn_connect(p.a.cm, (struct sockaddr *)&addr, qp, &p.a.param, &c), 0);
	fd = called_at(listener);
	say_rep(fd);
	expect(&p, &p.a, BB_CM_ESTABLISHED);
	close(fd);
	expect(&p, &p.a, BB_CM_LOST);
	fd = called_at(listener);
	say(fd, BB_CM_DREQ);
	assert_int_equal(expect(&p, &p.a, BB_CM_DISCONNECTED).status, 0);
	assert_true(hear(fd, &msg));
	assert_int_equal(msg.type, BB_CM_DREP);
	say_rep(fd);
	assert_true(closed_by_us(fd));
	assert_int_equal(p.a.nev, 0);
	assert_int_equal(conn_state(c), BB_CONN_CLOSED);
	bb_conn_destroy(c);
	assert_int_equal(bb_qp_destroy(qp), 0);
	close(fd);
	close(listener);
	pair_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer),
	};

	if (bare_eal_init() < 0)
		return 77;
	rte_log_set_global_level(RTE_LOG_CRIT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
