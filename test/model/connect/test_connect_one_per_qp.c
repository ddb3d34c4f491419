/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A queue pair has one connection. Until it ends, every other call that needs the queue pair is
 * refused.
 */
#include "connect_env.h"

static struct pair p;
static struct bb_region region;

static void
open_pair(void)
{
	pair_open(&p);
	p.a.param.recover_ms = p.b.param.recover_ms = 4 * WAIT_S * 1000;
	p.a.param.backoff_min_ms = p.b.param.backoff_min_ms = 1;
	name_buffer(&p, &region);
}

/* Checks that each call with @qp returns -EBUSY and changes nothing. */
static void
assert_refused(struct bb_qp *qp)
{
	const enum bb_qp_state state = qp->state;
	struct bb_qp_addr addr = {.qpn = qp->qpn, .mtu = 1024};
	struct bb_qp_recovery recovery = {0};
	struct bb_conn *none = NULL;
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	assert_int_equal(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, qp, &p.a.param, &none),
			 -EBUSY);
	assert_int_equal(bb_conn_connect(p.b.cm, (struct sockaddr *)&p.addr, qp, &p.a.param, &none),
			 -EBUSY);
	assert_null(none);
	assert_int_equal(bb_qp_connect(qp, &addr, &addr, &attr), -EBUSY);
	assert_int_equal(bb_qp_recover(qp, NULL, NULL, NULL, &recovery), -EBUSY);
	assert_int_equal(bb_qp_destroy(qp), -EBUSY);
	assert_int_equal(qp->state, state);
}

static void
to_reset(struct bb_qp *qp)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = BB_QP_RESET;
	OK(bb_qp_modify(qp, &attr, BB_QP_STATE));
}

/*
 * Checks that @qp is free: a connection that ends before its request is sent can own and release
 * it.
 */
static void
assert_free(struct bb_qp *qp)
{
	struct bb_conn *c;

	if (qp->state != BB_QP_RESET)
		to_reset(qp);
	c = call(&p, qp);
	assert_int_equal(bb_qp_destroy(qp), -EBUSY);
	bb_conn_destroy(c);
	OK(bb_qp_destroy(qp));
}

PAIR_TEST(open_pair(), test_qp_of_a_connection_is_refused_in_every_state)
{
	struct bb_conn *third;
	struct link l;

	l.qa = end_qp(&p.a);
	l.qb = end_qp(&p.b);
	l.a = call(&p, l.qa);
	assert_refused(l.qa);
	l.b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	/* Accepting with the queue pair of the connecting side is refused. */
	assert_int_equal(bb_conn_accept(l.b, l.qa, &p.b.param), -EBUSY);
	assert_int_equal(conn_state(l.b), BB_CONN_REQUESTED);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	assert_refused(l.qb);
	both_established(&p);
	assert_refused(l.qa);
	assert_refused(l.qb);
	/* Accepting another request with a queue pair of an established connection is refused. */
	{
		struct bb_qp *other = end_qp(&p.a);
		struct bb_conn *c = call(&p, other);

		third = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
		assert_int_equal(bb_conn_accept(third, l.qb, &p.b.param), -EBUSY);
		assert_int_equal(bb_conn_accept(third, l.qa, &p.b.param), -EBUSY);
		OK(bb_conn_reject(third, NULL, 0));
		bb_conn_destroy(third);
		expect(&p, &p.a, BB_CM_REJECTED);
		/* A rejected connection does not own its queue pair any more. */
		assert_free(other);
		bb_conn_destroy(c);
	}
	writes(&p, &l, 0x11);

	/* During a recovery the queue pairs are in RESET, and stay with their connection. */
	OK(bb_conn_recover(l.a));
	expect(&p, &p.a, BB_CM_LOST);
	assert_int_equal(l.qa->state, BB_QP_RESET);
	assert_refused(l.qa);
	expect(&p, &p.b, BB_CM_LOST);
	assert_refused(l.qb);
	expect(&p, &p.a, BB_CM_RECOVERED);
	expect(&p, &p.b, BB_CM_RECOVERED);
	writes(&p, &l, 0x22);

	OK(bb_conn_disconnect(l.a, NULL, 0));
	assert_refused(l.qa);
	expect(&p, &p.b, BB_CM_DISCONNECTED);
	expect(&p, &p.a, BB_CM_DISCONNECTED);
	/* The connection has ended: the queue pair is free before the connection is destroyed. */
	assert_free(l.qa);
	OK(bb_qp_destroy(l.qb));
	bb_conn_destroy(l.a);
	bb_conn_destroy(l.b);
}

TEST(test_qp_is_free_after_a_connection_that_was_not_made)
{
	const uint16_t port = (open_pair(), ((struct sockaddr_in *)&p.addr)->sin_port);
	struct bb_conn *a, *b;
	struct bb_qp *qp = end_qp(&p.a);
	struct link l;

	((struct sockaddr_in *)&p.addr)->sin_port = htons(1);
	a = call(&p, qp);
	assert_refused(qp);
	expect(&p, &p.a, BB_CM_FAILED);
	((struct sockaddr_in *)&p.addr)->sin_port = port;
	l.a = call(&p, qp);
	bb_conn_destroy(a);
	/* Destroying the first connection later does not take the queue pair from the second. */
	assert_refused(qp);
	b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	OK(bb_conn_disconnect(l.a, NULL, 0));
	expect(&p, &p.a, BB_CM_FAILED);
	bb_conn_destroy(l.a);
	expect(&p, &p.b, BB_CM_DISCONNECTED);
	/* A failed accept leaves its queue pair free. */
	l.qb = end_qp(&p.b);
	assert_int_equal(bb_conn_accept(b, l.qb, &p.b.param), -ENOTCONN);
	bb_conn_destroy(b);
	p.b.param.sgid_index_given = true;
	p.b.param.path.sgid_index = 200;
	l.qa = qp;
	l.a = call(&p, l.qa);
	l.b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	assert_true(bb_conn_accept(l.b, l.qb, &p.b.param) < 0);
	p.b.param.sgid_index_given = false;
	p.b.param.path.sgid_index = 0;
	OK(bb_qp_destroy(l.qb));
	l.qb = end_qp(&p.b);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	both_established(&p);
	writes(&p, &l, 0x33);
	link_down(&p, &l);
	pair_close(&p);
}

/* Destroys the requests of connections that ended before they were made. */
static void
drop_requests(void)
{
	const uint64_t end = wait_end();
	struct bb_cm_stats stats;
	struct bb_cm_event ev;

	do {
		turn(&p);
		if (take(&p.b, &ev) && ev.type == BB_CM_CONNECT_REQUEST)
			bb_conn_destroy(ev.conn);
		bb_cm_stats(p.b.cm, &stats);
		assert_true(rte_get_tsc_cycles() < end);
	} while (stats.conns != 0);
}

PAIR_TEST(open_pair(), test_endpoint_of_an_owned_qp_is_refused)
{
	struct bb_ep_attr attr;
	struct bb_conn *c;
	struct bb_ep *ep;
	char where[32];

	bb_ep_attr_init(&attr);
	attr.timeout_ms = 1;
	snprintf(where, sizeof(where), "127.0.0.1:%u", bb_listener_port(p.listener));
	OK(bb_ep_create(p.a.dev, where, false, &attr, &ep));
	c = call(&p, ep->qp);
	assert_int_equal(bb_ep_connect(ep, NULL), -EBUSY);
	bb_conn_destroy(c);
	assert_int_equal(bb_ep_connect(ep, NULL), -ETIMEDOUT);
	OK(bb_ep_destroy(ep));
	drop_requests();
}

CONNECT_MAIN(RTE_LOG_CRIT)
