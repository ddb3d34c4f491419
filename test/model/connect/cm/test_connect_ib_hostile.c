/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Connections by BB_CM_IB with silent and hostile peers. */
#include "connect_ib_raw.h"

TEST(test_peer_that_dies_before_rtu_ends_the_connection)
{
	struct bb_conn *c;
	struct bb_qp *qp;
	struct raw r;

	open_devs("soft0", "soft1");
	raw_open(&r, "soft2");
	qp = end_qp(&p.b);
	(void)raw_connect(&r, 0x99, VALID);
	bb_qp1_poll(r.q);
	c = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	p.b.param.timeout_ms = 50;
	OK(bb_conn_accept(c, qp, &p.b.param));
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, -ETIMEDOUT);
	assert_int_equal(qp->state, BB_QP_ERR);
	bb_conn_destroy(c);
	OK(bb_qp_destroy(qp));
	raw_close(&r);
	pair_close(&p);
}

TEST(test_request_with_wrong_ip_header_is_rejected)
{
	struct bb_cm_stats stats;
	struct raw r;

	open_devs("soft0", "soft1");
	raw_open(&r, "soft2");
	(void)raw_connect(&r, 0x99, NONE);
	raw_expect(&r, BB_IBCM_EV_REJECTED);
	assert_int_equal(r.msg.rej.reason, BB_IBCM_REJ_CONSUMER);
	(void)raw_connect(&r, 0x98, OTHER_ADDRESS);
	raw_expect(&r, BB_IBCM_EV_REJECTED);
	assert_int_equal(r.msg.rej.reason, BB_IBCM_REJ_GID);
	bb_cm_stats(p.b.cm, &stats);
	assert_fields(stats, conns, 0, half_open, 0);
	raw_close(&r);
	pair_close(&p);
}

/*
 * The listener is bound to one of two addresses. A peer names that address in the IP CM header, and
 * sends the request to the other one, which a firewall may treat otherwise.
 */
TEST(test_listener_serves_only_its_own_address)
{
	char a[64], b[80], c[64];
	struct raw r;

	snprintf(a, sizeof(a), "soft0,shm=own-%d,ip=192.0.2.1/24", getpid());
	snprintf(b, sizeof(b), "soft1,shm=own-%d,ip=192.0.2.2/24,ip=169.254.0.2/16", getpid());
	snprintf(c, sizeof(c), "soft2,shm=own-%d,ip=192.0.2.3/24", getpid());
	open_devs(a, b);
	raw_open(&r, c);
	(void)raw_connect(&r, 0x99, OTHER_TARGET);
	raw_expect(&r, BB_IBCM_EV_REJECTED);
	assert_int_equal(r.msg.rej.reason, BB_IBCM_REJ_GID);
	assert_int_equal(p.b.nev, 0);
	raw_close(&r);
	pair_close(&p);
}

/* Requests that the CM has not handled, and one that the application has. */
TEST(test_listener_is_destroyed_with_requests_pending)
{
	struct bb_cm_stats stats;
	struct bb_qp1 *q;
	struct link l;
	struct raw r;

	open_devs("soft0", "soft1");
	raw_open(&r, "soft2");
	OK(bb_qp1_get(p.b.dev, &q));
	link_call(&p, &l);
	for (uint32_t i = 0; i < 5; i++)
		(void)raw_connect(&r, 0x100 + i, VALID);
	for (uint32_t i = 0; i < 50; i++) {
		bb_qp1_poll(r.q);
		bb_qp1_poll(q);
	}
	OK(bb_listener_destroy(p.listener));
	for (uint32_t i = 0; i < 50; i++) {
		bb_qp1_poll(r.q);
		bb_qp1_poll(q);
	}
	assert_int_equal(r.events[BB_IBCM_EV_REJECTED], 5);
	bb_cm_stats(p.b.cm, &stats);
	assert_int_equal(stats.conns, 1);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	both_established(&p);
	link_down(&p, &l);
	bb_qp1_put(q);
	OK(bb_listener_create(p.b.cm, (struct sockaddr *)&p.addr, &p.listener));
	raw_close(&r);
	pair_close(&p);
}

/* State of a listening side under a flood of requests. */
struct flood {
	struct bb_conn *good, *held[512]; /* held: the hostile peer's, which get no answer */
	uint32_t nheld, up, sent;
	uint64_t largest; /* largest number of messages that a single poll has received */
	struct bb_qp *qb;
	struct bb_qp1 *q;
};

static void
flood_event(struct flood *f, const struct bb_cm_event *ev)
{
	uint32_t i;

	if (ev->type == BB_CM_CONNECT_REQUEST && memcmp(ev->private_data, "good", 4) == 0) {
		OK(bb_conn_accept(ev->conn, f->qb, &p.b.param));
		f->good = ev->conn;
	} else if (ev->type == BB_CM_CONNECT_REQUEST) {
		assert_true(f->nheld < RTE_DIM(f->held));
		f->held[f->nheld++] = ev->conn;
	} else if (ev->conn == f->good) {
		assert_int_equal(ev->type, BB_CM_ESTABLISHED);
		f->up++;
	} else {
		/* The hostile peer's engine has given up a request. */
		assert_int_equal(ev->type, BB_CM_DISCONNECTED);
		for (i = 0; f->held[i] != ev->conn; i++)
			assert_true(i < f->nheld);
		f->held[i] = f->held[--f->nheld];
		bb_conn_destroy(ev->conn);
	}
}

/* Sends 40 requests, if the hostile peer's engine has room for them, and polls all sides. */
static void
flood_turn(struct flood *f, struct raw *r)
{
	const uint64_t before = bb_qp1_stats(f->q)->received;
	uint32_t room = bb_ibcm_in_use(bb_qp1_lock(r->q)) < 1000 ? 40 : 0;
	struct bb_cm_event ev;

	bb_qp1_unlock(r->q);
	for (; room != 0; room--)
		(void)raw_connect(r, 0x100 + ++f->sent, VALID);
	bb_qp1_poll(r->q);
	bb_dev_progress(p.b.dev);
	if (bb_cm_poll(p.b.cm, &ev, 1) == 1)
		flood_event(f, &ev);
	f->largest = RTE_MAX(f->largest, bb_qp1_stats(f->q)->received - before);
	bb_dev_progress(p.a.dev);
	if (bb_cm_poll(p.a.cm, &ev, 1) == 1) {
		assert_int_equal(ev.type, BB_CM_ESTABLISHED);
		f->up++;
	}
}

/*
 * A hostile peer sends requests as fast as it can and answers nothing. A poll handles a bounded
 * number of messages, and another peer connects meanwhile.
 */
TEST(test_flood_of_requests_stops_neither_polls_nor_other_peers)
{
	const uint64_t end = wait_end();
	const struct bb_ibcm_stats *stats;
	struct flood f = {0};
	struct bb_cm_event ev;
	struct bb_conn *a;
	struct bb_qp *qa;
	struct raw r;

	open_devs("soft0", "soft1");
	raw_open(&r, "soft2");
	r.forgets = true;
	OK(bb_qp1_get(p.b.dev, &f.q));
	stats = bb_ibcm_stats(bb_qp1_lock(f.q));
	bb_qp1_unlock(f.q);
	qa = end_qp(&p.a);
	f.qb = end_qp(&p.b);
	p.a.param.private_data = "good";
	p.a.param.private_len = 4;
	a = call(&p, qa);
	while (f.up < 2 || stats->drop[BB_IBCM_DROP_PER_GID] < 500) {
		flood_turn(&f, &r);
		assert_true(f.nheld <= 256);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_true(f.largest <= 32);
	raw_close(&r);
	while (f.nheld != 0)
		bb_conn_destroy(f.held[--f.nheld]);
	bb_conn_destroy(f.good);
	expect(&p, &p.a, BB_CM_DISCONNECTED);
	bb_conn_destroy(a);
	OK(bb_qp_destroy(qa));
	OK(bb_qp_destroy(f.qb));
	/* Requests that had no event yet. */
	OK(bb_listener_destroy(p.listener));
	for (uint32_t i = 0; i < RTE_DIM(f.held); i++) {
		turn(&p);
		while (take(&p.b, &ev))
			bb_conn_destroy(ev.conn);
	}
	bb_qp1_put(f.q);
	OK(bb_listener_create(p.b.cm, (struct sockaddr *)&p.addr, &p.listener));
	pair_close(&p);
}

CONNECT_IB_MAIN
