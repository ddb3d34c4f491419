/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * lib/connect over TCP on the software device: both sides in one process. The same tests run by
 * BB_CM_IB (by_ib()).
 */
#include "connect_env.h"

static struct pair p;

PAIR_TEST(pair_open(&p), test_connection_agrees_on_parameters_and_transfers_data)
{
	struct bb_conn_info info;
	struct bb_cm_event ev;
	struct bb_region r, got;
	struct link l;

	name_buffer(&p, &r);
	p.a.param.private_data = "who is there";
	p.a.param.private_len = 12;
	p.b.param.private_data = "me";
	p.b.param.private_len = 2;
	p.a.param.initiator_depth = 3;
	p.a.param.responder_resources = 9;
	p.b.param.initiator_depth = 5;
	p.b.param.responder_resources = 2;
	p.b.param.rnr_retry_count = 4;
	p.a.param.retry_count = 2;
	p.a.param.path_mtu = 512;
	p.a.init.sq_depth = 32;
	l.qa = end_qp(&p.a);
	l.qb = end_qp(&p.b);
	l.a = call(&p, l.qa);
	assert_int_equal(conn_state(l.a), BB_CONN_CONNECTING);
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	l.b = ev.conn;
	assert_ptr_equal(ev.listener, p.listener);
	check_private(&ev, "who is there", 56);
	assert_false(ev.restarted);
	bb_conn_query(l.b, &info);
	assert_int_equal(info.peer_sq_depth, by_ib() ? 0 : 32);
	assert_int_equal(info.remote.qpn, l.qa->qpn);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	assert_int_equal(l.qb->state, BB_QP_RTS);
	ev = expect(&p, &p.a, BB_CM_ESTABLISHED);
	check_private(&ev, "me", 196);
	expect(&p, &p.b, BB_CM_ESTABLISHED);

	bb_conn_query(l.a, &info);
	assert_int_equal(info.initiator_depth, 2);
	assert_int_equal(info.responder_resources, 5);
	assert_int_equal(info.path_mtu, 512);
	assert_false(info.recoverable);
	if (!by_ib())
		assert_memory_equal(info.peer, "127.0.0.1:", 10);
	bb_conn_query(l.b, &info);
	assert_int_equal(info.initiator_depth, 5);
	assert_int_equal(info.responder_resources, 2);
	{
		struct bb_qp_attr qa, qb;

		OK(bb_qp_query(l.qa, &qa));
		OK(bb_qp_query(l.qb, &qb));
		assert_int_equal(qa.max_rd_atomic, 2);
		assert_int_equal(qb.max_dest_rd_atomic, 2);
		assert_int_equal(qa.path_mtu, 512);
		assert_int_equal(qb.path_mtu, 512);
		assert_int_equal(qa.rnr_retry, 4);
		assert_int_equal(qb.rnr_retry, 7);
		assert_int_equal(qa.retry_cnt, 2);
		assert_int_equal(qb.retry_cnt, 2);
	}
	if (!by_ib()) {
		assert_int_equal(bb_conn_region(l.a, "buf", &got), 0);
		assert_memory_equal(&got, &r, sizeof(r));
	}
	assert_int_equal(bb_conn_region(l.a, "other", &got), -ENOENT);
	writes(&p, &l, 0x42);

	OK(bb_conn_disconnect(l.a, "bye", 3));
	assert_int_equal(l.qa->state, BB_QP_ERR);
	ev = expect(&p, &p.b, BB_CM_DISCONNECTED);
	assert_int_equal(ev.status, 0);
	check_private(&ev, "bye", 220);
	assert_int_equal(l.qb->state, BB_QP_ERR);
	assert_int_equal(expect(&p, &p.a, BB_CM_DISCONNECTED).status, 0);
	assert_int_equal(bb_conn_disconnect(l.a, NULL, 0), -ENOTCONN);
	link_free(&l);
}

/* A receive that @to posted while its QP was in RESET gets the first message of the peer. */
static void
early_receive(struct end *to, struct end *from, struct bb_qp *qp, uint8_t byte)
{
	struct bb_sge sge = {(uintptr_t)from->buf, 64, from->mr->lkey};
	const uint64_t end = wait_end();
	struct bb_wc wc;

	memset(from->buf, byte, 64);
	memset(to->buf + 4096, 0, 64);
	OK(bb_post_send(qp, 1, &sge, 1, BB_SEND_SIGNALED));
	bb_qp_ring(qp);
	while (bb_cq_poll(to->cq, &wc, 1) == 0) {
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(to->buf[4096 + 63], byte);
	while (bb_cq_poll(from->cq, &wc, 1) == 0) {
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(wc.status, BB_WC_SUCCESS);
}

PAIR_TEST(pair_open(&p), test_receives_posted_before_the_connection_take_its_first_messages)
{
	struct bb_sge a, b;
	struct link l;

	l.qa = end_qp(&p.a);
	l.qb = end_qp(&p.b);
	a = (struct bb_sge){(uintptr_t)p.a.buf + 4096, 64, p.a.mr->lkey};
	b = (struct bb_sge){(uintptr_t)p.b.buf + 4096, 64, p.b.mr->lkey};
	OK(bb_post_recv(l.qa, 77, &a, 1));
	OK(bb_post_recv(l.qb, 77, &b, 1));
	bb_qp_ring_recv(l.qa);
	bb_qp_ring_recv(l.qb);
	l.a = call(&p, l.qa);
	l.b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	both_established(&p);
	early_receive(&p.a, &p.b, l.qb, 0x31);
	early_receive(&p.b, &p.a, l.qa, 0x32);
	link_free(&l);
}

/* The messages of BB_CM_IB have the MTU of the connecting side only. */
static void
larger_mtu_is_refused(void)
{
	struct link l;

	rte_log_set_global_level(RTE_LOG_CRIT);
	link_call(&p, &l);
	assert_int_equal(bb_conn_accept(l.b, l.qb, &p.b.param), -EPROTO);
	rte_log_set_global_level(RTE_LOG_ERR);
	assert_int_equal(l.qb->state, BB_QP_RESET);
	OK(bb_conn_reject(l.b, NULL, 0));
	expect(&p, &p.a, BB_CM_REJECTED);
	link_free(&l);
}

/* The path MTU is the smaller value of the two sides; an invalid number is rounded down. */
PAIR_TEST(pair_open(&p), test_path_mtu_is_the_smaller_of_both_sides)
{
	static const uint32_t said[][3] = {
		{1500, 0, 1024}, {0, 1023, 512}, {256, 4096, 256}, {9000, 511, 256}};
	struct bb_conn_info info;
	struct bb_qp_attr attr;
	struct link l;
	size_t i;

	for (i = 0; i < RTE_DIM(said); i++) {
		p.a.param.path_mtu = said[i][0];
		p.b.param.path_mtu = said[i][1];
		if (by_ib() && said[i][1] != 0 && said[i][1] < said[i][0] + 4096 * !said[i][0]) {
			larger_mtu_is_refused();
			continue;
		}
		link_up(&p, &l);
		bb_conn_query(l.a, &info);
		assert_int_equal(info.path_mtu, said[i][2]);
		OK(bb_qp_query(l.qb, &attr));
		assert_int_equal(attr.path_mtu, said[i][2]);
		link_down(&p, &l);
	}
}

/* Both disconnect at the same time; the peer disconnects first; destroyed without a disconnect. */
PAIR_TEST(pair_open(&p), test_connection_ends_by_either_side_or_both)
{
	struct bb_cm_stats stats;
	struct link l;
	int i;

	link_up(&p, &l);
	OK(bb_conn_disconnect(l.b, NULL, 0));
	OK(bb_conn_disconnect(l.a, NULL, 0));
	expect(&p, &p.a, BB_CM_DISCONNECTED);
	expect(&p, &p.b, BB_CM_DISCONNECTED);
	for (i = 0; i < 100; i++)
		turn(&p);
	bb_cm_stats(p.a.cm, &stats);
	assert_int_equal(stats.bad_messages, 0);
	bb_cm_stats(p.b.cm, &stats);
	assert_int_equal(stats.bad_messages, 0);
	link_free(&l);
	link_up(&p, &l);
	OK(bb_conn_disconnect(l.b, NULL, 0));
	expect(&p, &p.a, BB_CM_DISCONNECTED);
	expect(&p, &p.b, BB_CM_DISCONNECTED);
	link_free(&l);
	link_up(&p, &l);
	bb_conn_destroy(l.a);
	assert_int_equal(l.qa->state, BB_QP_RTS);
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, by_ib() ? 0 : -ECONNRESET);
	link_end(&l, l.b);
}

PAIR_TEST(pair_open(&p), test_rejected_request_leaves_its_qp_free)
{
	struct bb_cm_event ev;
	struct bb_conn *a, *b;
	struct bb_qp *qa, *qb;

	qa = end_qp(&p.a);
	a = call(&p, qa);
	b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	OK(bb_conn_reject(b, "no", 2));
	bb_conn_destroy(b);
	ev = expect(&p, &p.a, BB_CM_REJECTED);
	assert_int_equal(ev.reason, BB_REJECT_CONSUMER);
	check_private(&ev, "no", 148);
	assert_string_equal(ev.why, "consumer reject");
	assert_int_equal(qa->state, BB_QP_RESET);
	bb_conn_destroy(a);

	/* A QP of another type is refused before any change; then the request can be accepted. */
	a = call(&p, qa);
	b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	p.b.init.type = BB_QPT_UC;
	qb = end_qp(&p.b);
	assert_int_equal(bb_conn_accept(b, qb, &p.b.param), -EPROTOTYPE);
	bb_qp_destroy(qb);
	p.b.init.type = BB_QPT_RC;
	qb = end_qp(&p.b);
	OK(bb_conn_accept(b, qb, &p.b.param));
	assert_int_equal(bb_conn_accept(b, qb, &p.b.param), -EINVAL);
	both_established(&p);
	bb_conn_destroy(a);
	bb_conn_destroy(b);

	/* The peer closes before the application has decided. */
	bb_qp_destroy(qa);
	qa = end_qp(&p.a);
	a = call(&p, qa);
	b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	bb_conn_destroy(a);
	expect(&p, &p.b, BB_CM_DISCONNECTED);
	assert_int_equal(bb_conn_accept(b, qb, &p.b.param), -ENOTCONN);
	assert_int_equal(bb_conn_reject(b, NULL, 0), -ENOTCONN);
	bb_conn_destroy(b);
	bb_qp_destroy(qa);
	bb_qp_destroy(qb);
}

/* A request that is never accepted. */
static void
never_accepted(struct bb_qp *qa)
{
	struct bb_conn *a, *b;

	p.a.param.timeout_ms = 20;
	a = call(&p, qa);
	b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -ETIMEDOUT);
	expect(&p, &p.b, BB_CM_DISCONNECTED);
	bb_conn_destroy(a);
	bb_conn_destroy(b);
	bb_qp_destroy(qa);
}

/* With BB_CM_IB a device without a listener rejects. An address that no device has is silent. */
static void
no_answer_by_ib(void)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&p.addr, there = *v4;
	struct bb_qp *qa = end_qp(&p.a);
	struct bb_conn *a;

	v4->sin_port ^= 1;
	a = call(&p, qa);
	assert_int_equal(expect(&p, &p.a, BB_CM_REJECTED).reason, BB_REJECT_NO_LISTENER);
	bb_conn_destroy(a);
	v4->sin_addr.s_addr = htonl(0xcb007109); /* 203.0.113.9 */
	rte_log_set_global_level(RTE_LOG_CRIT);
	p.a.param.timeout_ms = 20;
	a = call(&p, qa);
	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -ETIMEDOUT);
	bb_conn_destroy(a);
	p.a.param.timeout_ms = 30000;
	a = call(&p, qa);
	OK(bb_conn_disconnect(a, NULL, 0));
	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -ECANCELED);
	bb_conn_destroy(a);
	rte_log_set_global_level(RTE_LOG_ERR);
	*v4 = there;
	never_accepted(qa);
}

/* No listener; a listener that sends nothing; a request that is never accepted. */
PAIR_TEST(pair_open(&p), test_request_without_an_answer_fails)
{
	struct sockaddr_storage silent;
	socklen_t len = sizeof(silent);
	struct bb_cm_event ev;
	struct bb_conn *a;
	struct bb_qp *qa;
	int fd;

	if (by_ib()) {
		no_answer_by_ib();
		return;
	}
	qa = end_qp(&p.a);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	OK(bb_cm_addr("127.0.0.1:0", &silent));
	assert_int_equal(bind(fd, (struct sockaddr *)&silent, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&silent, &len), 0);
	OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&silent, qa, &p.a.param, &a));
	ev = expect(&p, &p.a, BB_CM_FAILED);
	assert_int_equal(ev.status, -ECONNREFUSED);
	assert_string_equal(ev.why, "no process answers at the peer's address and port");
	bb_conn_destroy(a);

	assert_int_equal(listen(fd, 8), 0);
	p.a.param.timeout_ms = 20;
	OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&silent, qa, &p.a.param, &a));
	ev = expect(&p, &p.a, BB_CM_FAILED);
	assert_int_equal(ev.status, -ETIMEDOUT);
	assert_string_equal(ev.why, "the peer does not answer");
	bb_conn_destroy(a);

	/* The application destroys the connection before the timeout. */
	p.a.param.timeout_ms = 30000;
	OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&silent, qa, &p.a.param, &a));
	OK(bb_conn_disconnect(a, NULL, 0));
	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -ECANCELED);
	bb_conn_destroy(a);
	close(fd);

	never_accepted(qa);
}

/* A call that is refused at once leaves no state behind. */
PAIR_TEST(pair_open(&p), test_invalid_arguments_are_refused_without_state)
{
	static uint8_t data[1025];
	/* BB_CM_IB refuses regions and recovery as such. */
	const int inval = by_ib() ? -ENOTSUP : -EINVAL;
	struct bb_conn_param param;
	struct bb_region r[2];
	struct bb_listener *second;
	struct bb_conn *a = NULL;
	struct bb_qp *qa, *ud;
	struct sockaddr_storage addr;
	const struct sockaddr *to = (const struct sockaddr *)&p.addr;
	const struct sockaddr local = {.sa_family = AF_UNIX};
	struct bb_cm_attr attr;
	struct bb_cm *cm = NULL;
	struct bb_dev *other;

	qa = end_qp(&p.a);
	p.a.init.type = BB_QPT_UD;
	ud = end_qp(&p.a);
	assert_int_equal(bb_conn_connect(p.a.cm, to, ud, &p.a.param, &a), -EINVAL);
#define REFUSED(error, ...)                                                                        \
	do {                                                                                       \
		param = p.a.param;                                                                 \
		__VA_ARGS__;                                                                       \
		assert_int_equal(bb_conn_connect(p.a.cm, to, qa, &param, &a), error);              \
	} while (0)
	REFUSED(-EMSGSIZE, param.private_data = data,
		param.private_len = by_ib() ? 57 : sizeof(data));
	REFUSED(-EINVAL, param.retry_count = 8);
	REFUSED(-EINVAL, param.ack_timeout = 32);
	REFUSED(-EINVAL, param.min_rnr_timer = 32);
	REFUSED(-EINVAL, param.path_mtu = 255);
	REFUSED(-EINVAL, param.timeout_ms = 0);
	REFUSED(inval, param.recover_ms = 1, param.backoff_max_ms = param.backoff_min_ms - 1);
	REFUSED(inval, param.recover_ms = 1, param.backoff_min_ms = 0);
	REFUSED(-EINVAL, param.size = 1);
	OK(bb_region_of(p.a.mr, "a", 0, 0, &r[0]));
	r[1] = r[0];
	REFUSED(inval, param.regions = r, param.nregions = 2);
	REFUSED(-EMSGSIZE, param.regions = r, param.nregions = 33);
	REFUSED(-ENOENT, param.gid.exact = true, memset(param.gid.raw, 0xcc, 16));
	assert_int_equal(bb_conn_connect(p.a.cm, &local, qa, &p.a.param, &a), -EINVAL);
	/* A CM belongs to one device. */
	bb_cm_attr_init(&attr);
	OK(bb_dev_open("soft1", &other));
	OK(bb_cm_create(other, &attr, &cm));
	assert_int_equal(bb_conn_connect(cm, to, qa, &p.a.param, &a), -EINVAL);
	OK(bb_cm_destroy(cm));
	OK(bb_dev_close(other));
	assert_null(a);
	assert_int_equal(bb_listener_create(p.a.cm, &local, &second), -EINVAL);
	assert_int_equal(bb_listener_create(p.a.cm, to, &second), -EADDRINUSE);
	assert_int_equal(bb_cm_destroy(p.b.cm), -EBUSY);
	cm = NULL;
	attr.max_half_open = 0;
	assert_int_equal(bb_cm_create(p.a.dev, &attr, &cm), -EINVAL);
	bb_cm_attr_init(&attr);
	attr.max_conns = 0;
	assert_int_equal(bb_cm_create(p.a.dev, &attr, &cm), -EINVAL);
	bb_cm_attr_init(&attr);
	attr.half_open_ms = 0;
	assert_int_equal(bb_cm_create(p.a.dev, &attr, &cm), -EINVAL);
	bb_cm_attr_init(&attr);
	attr.transport = (enum bb_cm_transport)7;
	assert_int_equal(bb_cm_create(p.a.dev, &attr, &cm), -EINVAL);
	assert_null(cm);
	bb_qp_destroy(qa);
	bb_qp_destroy(ud);

	OK(bb_cm_addr("192.0.2.1:80", &addr));
	assert_int_equal(addr.ss_family, AF_INET);
	OK(bb_cm_addr("[2001:db8::1]:65535", &addr));
	assert_int_equal(addr.ss_family, AF_INET6);
	OK(bb_cm_addr(":1", &addr));
	assert_int_equal(bb_cm_addr("192.0.2.1:65536", &addr), -EINVAL);
	assert_int_equal(bb_cm_addr("192.0.2.1:4294967297", &addr), -EINVAL);
	assert_int_equal(bb_cm_addr("192.0.2.1", &addr), -EINVAL);
	assert_int_equal(bb_cm_addr("192.0.2.1:", &addr), -EINVAL);
	assert_int_equal(bb_cm_addr("host:1", &addr), -EINVAL);
	assert_int_equal(bb_cm_addr("[::1:1", &addr), -EINVAL);
}

PAIR_TEST(pair_open(&p), test_pending_event_of_a_destroyed_connection_is_dropped)
{
	const uint64_t end = wait_end();
	struct bb_conn_param param;
	struct bb_cm_stats stats;
	struct bb_cm_event ev;
	struct link l;

	/* BB_CM_IB has no recovery. */
	if (by_ib())
		return;
	/* bb_conn_recover() returns -EBUSY while an event of the connection is pending. */
	p.a.param.recover_ms = p.b.param.recover_ms = WAIT_S * 1000;
	param = p.a.param;
	l.qa = end_qp(&p.a);
	l.qb = end_qp(&p.b);
	OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, l.qa, &param, &l.a));
	l.b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	/* The connecting side cannot accept or reject. */
	assert_int_equal(bb_conn_accept(l.a, l.qa, &param), -EINVAL);
	assert_int_equal(bb_conn_reject(l.a, NULL, 0), -EINVAL);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	do {
		assert_int_equal(bb_cm_poll(p.a.cm, &ev, 0), 0);
		bb_cm_stats(p.a.cm, &stats);
		assert_true(rte_get_tsc_cycles() < end);
	} while (stats.established == 0);
	assert_int_equal(conn_state(l.a), BB_CONN_ESTABLISHED);
	assert_int_equal(bb_conn_recover(l.a), -EBUSY);
	bb_conn_destroy(l.a);
	assert_int_equal(bb_cm_poll(p.a.cm, &ev, 1), 0);
	bb_cm_stats(p.a.cm, &stats);
	assert_int_equal(stats.conns, 0);
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	expect(&p, &p.b, BB_CM_LOST);
	link_end(&l, l.b);
	p.b.nev = 0;
}

/* Connections in a loop: callbacks accept, and one of them destroys another connection. */
static unsigned int loop_up;
static struct bb_conn *loop_conn[8];

static void
on_event(struct bb_cm *cm, const struct bb_cm_event *ev, void *arg)
{
	struct end *e = arg;

	(void)cm;
	switch (ev->type) {
	case BB_CM_CONNECT_REQUEST:
		OK(bb_conn_accept(ev->conn, end_qp(e), &e->param));
		break;
	case BB_CM_ESTABLISHED:
		loop_conn[loop_up++] = ev->conn;
		break;
	default:
		fail();
	}
}

PAIR_TEST(pair_open(&p), test_callbacks_of_a_loop_accept_connections)
{
	struct bb_loop_attr attr;
	struct bb_loop *loop, *second;
	struct bb_conn *a[2];
	struct bb_qp *qa[2], *qb;
	struct bb_conn_info info;
	uint64_t end;
	unsigned int i;

	bb_loop_attr_init(&attr);
	OK(bb_loop_create(&attr, &loop));
	assert_int_equal(bb_cm_detach(p.b.cm), -ENOENT);
	OK(bb_cm_attach(p.b.cm, loop, on_event, &p.b));
	assert_int_equal(bb_cm_attach(p.b.cm, loop, on_event, &p.b), -EALREADY);
	OK(bb_loop_create(&attr, &second));
	assert_int_equal(bb_cm_attach(p.b.cm, second, on_event, &p.b), -EALREADY);
	OK(bb_loop_destroy(second));
	assert_int_equal(bb_cm_destroy(p.b.cm), -EBUSY);
	OK(bb_cm_attach(p.a.cm, loop, on_event, &p.a));
	assert_int_equal(bb_cm_destroy(p.a.cm), -EBUSY);
	loop_up = 0;
	for (i = 0; i < 2; i++) {
		qa[i] = end_qp(&p.a);
		a[i] = call(&p, qa[i]);
	}
	for (end = wait_end(); loop_up < 4;) {
		assert_true(bb_loop_run_once(loop) >= 0);
		assert_true(rte_get_tsc_cycles() < end);
	}
	OK(bb_cm_detach(p.a.cm));
	OK(bb_cm_detach(p.b.cm));
	for (i = 0; i < 4; i++) {
		bb_conn_query(loop_conn[i], &info);
		qb = info.qp;
		bb_conn_destroy(loop_conn[i]);
		bb_qp_destroy(qb);
	}
	(void)a;
	(void)qa;
	OK(bb_loop_destroy(loop));
}

TEST(test_peer_of_a_port_that_needs_a_grh_sends_one)
{
	static const char *const near[] = {"soft0,link=ib,grh_required", "soft0,link=ib"};
	struct bb_cm_attr attr;
	struct bb_qp_attr a, b;
	struct link l;
	unsigned int i;

	bb_cm_attr_init(&attr);
	attr.poll_us = 0;
	for (i = 0; i < 2; i++) {
		pair_open_with(&p, near[i], "soft1,link=ib", &attr);
		link_up(&p, &l);
		OK(bb_qp_query(l.qa, &a));
		OK(bb_qp_query(l.qb, &b));
		assert_int_equal(a.path.is_global, i == 0);
		assert_int_equal(b.path.is_global, i == 0);
		link_down(&p, &l);
		pair_close(&p);
	}
}

CONNECT_MAIN(RTE_LOG_ERR)
