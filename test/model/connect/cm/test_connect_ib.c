/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connections by BB_CM_IB between two devices: contents of the messages, lost messages, and many
 * connections.
 */
#include "connect_ib_raw.h"

#define MANY 1000u

/* ---- Messages */

TEST(test_devices_connect_over_every_link_and_address_family)
{
	static const char *const specs[][2] = {{"soft0", "soft1"},
					       {"soft0,wire=1", "soft1,wire=1"}};
	static const enum bb_qp_type types[] = {BB_QPT_RC, BB_QPT_UC};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct bb_region r;
	struct bb_gid gid;
	struct link l;

	for (unsigned int i = 0; i < 4; i++) {
		open_devs(specs[i / 2][0], specs[i / 2][1]);
		p.a.init.type = p.b.init.type = types[i % 2];
		name_buffer(&p, &r);
		link_up(&p, &l);
		writes(&p, &l, (uint8_t)(i + 1));
		link_down(&p, &l);
		/* The link-local GID is an address, too. */
		OK(bb_gid_query(p.b.dev, 1, 0, &gid));
		memcpy(&v6.sin6_addr, gid.raw, 16);
		v6.sin6_port = ((struct sockaddr_in *)&p.addr)->sin_port;
		OK(bb_listener_destroy(p.listener));
		OK(bb_listener_create(p.b.cm, (struct sockaddr *)&v6, &p.listener));
		memcpy(&p.addr, &v6, sizeof(v6));
		link_up(&p, &l);
		writes(&p, &l, (uint8_t)(i + 9));
		link_down(&p, &l);
		pair_close(&p);
	}
}

/* The fields that Linux's rdma_cm needs, in a REQ and a REP of the CM. */
TEST(test_messages_have_the_fields_of_rdma_cm)
{
	struct bb_ibcm_service service = {.service_id = bb_ibcm_service_id(BB_IBCM_PS_TCP, 7174),
					  .mask = UINT64_MAX,
					  .ip = true};
	const struct bb_ibcm_rep rep = {.qpn = 0x77,
					.psn = 0xabcdef,
					.responder_resources = 4,
					.initiator_depth = 6,
					.rnr_retry = 3};
	struct bb_qp_attr qa;
	struct bb_conn *c;
	struct bb_qp *qp;
	struct raw r;

	open_devs("soft0", "soft1");
	raw_open(&r, "soft2");
	service.cookie = bb_qp1_cookie(&r.user);
	OK(bb_ibcm_listen(bb_qp1_lock(r.q), &service));
	bb_qp1_unlock(r.q);
	memcpy(&((struct sockaddr_in *)&p.addr)->sin_addr, r.gid + 12, 4);
	((struct sockaddr_in *)&p.addr)->sin_port = htons(7174);
	p.a.param.private_data = "hello";
	p.a.param.private_len = 5;
	p.a.param.initiator_depth = 7;
	p.a.param.responder_resources = 4;
	p.a.param.retry_count = 6;
	p.a.param.rnr_retry_count = 2;
	p.a.param.ack_timeout = 15;
	p.a.param.path_mtu = 1024;
	qp = end_qp(&p.a);
	c = call(&p, qp);
	raw_expect(&r, BB_IBCM_EV_REQ);
	assert_fields(r.msg.req, service_id, 0x1061c06, qpn, qp->qpn, initiator_depth, 7,
		      responder_resources, 4, retry_count, 6, rnr_retry, 2);
	assert_fields(r.msg.req, pkey, 0xffff, mtu, 3, transport, BB_IBCM_RC, flow_control, 1,
		      cm_retries, 15, primary.ack_timeout, 15);
	assert_fields(r.msg.req, primary.local_lid, 0xffff, primary.remote_lid, 0xffff,
		      primary.hop_limit, 64, primary.subnet_local, 0);
	assert_memory_equal(r.msg.req.primary.remote_gid, r.gid, 16);
	assert_memory_equal(r.ip.dst, r.gid, 16);
	assert_memory_equal(r.ip.src, r.msg.req.primary.local_gid, 16);
	assert_int_equal(r.ip.version, 4);
	assert_memory_equal(r.priv + BB_IBCM_IP_LEN, "hello", 6);
	OK(bb_ibcm_accept(bb_qp1_lock(r.q), r.id, &rep, "hi", 2, bb_qp1_cookie(&r.user),
			  bb_qp1_now()));
	bb_qp1_unlock(r.q);
	raw_expect(&r, BB_IBCM_EV_ESTABLISHED);
	expect(&p, &p.a, BB_CM_ESTABLISHED);
	OK(bb_qp_query(qp, &qa));
	/* A PSN in a message is the first that its sender expects. */
	assert_fields(qa, dest_qpn, 0x77, sq_psn, 0xabcdef, rnr_retry, 3, retry_cnt, 6, timeout, 15,
		      path_mtu, 1024);
	assert_fields(qa, max_rd_atomic, 4, max_dest_rd_atomic, 4);
	raw_release(&r, r.id);
	bb_qp1_poll(r.q);
	assert_int_equal(expect(&p, &p.a, BB_CM_DISCONNECTED).status, 0);
	bb_conn_destroy(c);
	OK(bb_qp_destroy(qp));
	raw_close(&r);
	pair_close(&p);
}

TEST(test_accepted_qp_has_the_parameters_of_the_request)
{
	struct bb_qp_attr attr;
	struct bb_cm_event ev;
	struct bb_conn *c;
	struct bb_qp *qp;
	struct raw r;

	open_devs("soft0", "soft1");
	raw_open(&r, "soft2");
	qp = end_qp(&p.b);
	p.b.param.initiator_depth = 9;
	p.b.param.responder_resources = 9;
	(void)raw_connect(&r, 0x99, VALID);
	do {
		turn(&p);
		bb_qp1_poll(r.q);
	} while (!take(&p.b, &ev));
	assert_int_equal(ev.type, BB_CM_CONNECT_REQUEST);
	check_private(&ev, "evil", 56);
	c = ev.conn;
	OK(bb_conn_accept(c, qp, &p.b.param));
	raw_expect(&r, BB_IBCM_EV_REP);
	OK(bb_qp_query(qp, &attr));
	assert_fields(attr, dest_qpn, 0x99, sq_psn, 0x123456, rnr_retry, 4, retry_cnt, 5, timeout,
		      22, path_mtu, 512);
	assert_fields(r.msg.rep, qpn, qp->qpn, psn, attr.rq_psn, initiator_depth, 4,
		      responder_resources, 2);
	assert_fields(attr, max_rd_atomic, 4, max_dest_rd_atomic, 2);
	/* This side ends the connection before the RTU. */
	assert_int_equal(conn_state(c), BB_CONN_ACCEPTED);
	bb_conn_destroy(c);
	OK(bb_qp_destroy(qp));
	raw_expect(&r, BB_IBCM_EV_REJECTED);
	raw_release(&r, r.id);
	raw_close(&r);
	pair_close(&p);
}

/* ---- Many connections, lost messages */

/* Events of many connections; the listening side accepts. */
struct many {
	struct bb_conn *a[MANY], *b[MANY];
	struct bb_qp *qa[MANY], *qb[MANY];
	uint32_t accepted, up_a, up_b, down_a, down_b, failed;
};

static void
many_event(struct many *m, const struct bb_cm_event *ev, bool b)
{
	switch (ev->type) {
	case BB_CM_CONNECT_REQUEST:
		m->b[m->accepted] = ev->conn;
		OK(bb_conn_accept(ev->conn, m->qb[m->accepted], &p.b.param));
		m->accepted++;
		break;
	case BB_CM_ESTABLISHED:
		*(b ? &m->up_b : &m->up_a) += 1;
		break;
	case BB_CM_DISCONNECTED:
		*(b ? &m->down_b : &m->down_a) += 1;
		break;
	default:
		m->failed++;
	}
}

static void
many_turn(struct many *m)
{
	struct bb_cm_event ev;

	bb_dev_progress(p.a.dev);
	bb_dev_progress(p.b.dev);
	if (bb_cm_poll(p.a.cm, &ev, 1) == 1)
		many_event(m, &ev, false);
	if (bb_cm_poll(p.b.cm, &ev, 1) == 1)
		many_event(m, &ev, true);
}

/* Returns the index of the connecting side's QP with this number. */
static uint32_t
caller_of(const struct many *m, uint32_t n, uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < n && m->qa[i]->qpn != qpn; i++)
		;
	assert_true(i < n);
	return i;
}

/* Opens @n connections, up to @window at a time, and then closes all by either side in turn. */
static void
open_and_close(uint32_t n, uint32_t window)
{
	struct many *m = calloc(1, sizeof(*m));
	uint64_t end = wait_end();
	struct bb_conn_info info;
	uint32_t called = 0;

	assert_non_null(m);
	for (uint32_t i = 0; i < n; i++) {
		m->qa[i] = end_qp(&p.a);
		m->qb[i] = end_qp(&p.b);
	}
	while (m->up_a < n || m->up_b < n) {
		for (; called < n && called - m->up_b < window; called++)
			m->a[called] = call(&p, m->qa[called]);
		many_turn(m);
		assert_int_equal(m->failed, 0);
		assert_true(rte_get_tsc_cycles() < end);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (i % 2 == 0)
			OK(bb_conn_disconnect(m->a[i], NULL, 0));
		bb_conn_query(m->b[i], &info);
		if (caller_of(m, n, info.remote.qpn) % 2 != 0)
			OK(bb_conn_disconnect(m->b[i], NULL, 0));
	}
	for (end = wait_end(); m->down_a < n || m->down_b < n;) {
		many_turn(m);
		assert_true(rte_get_tsc_cycles() < end);
	}
	for (uint32_t i = 0; i < n; i++) {
		bb_conn_destroy(m->a[i]);
		bb_conn_destroy(m->b[i]);
		OK(bb_qp_destroy(m->qa[i]));
		OK(bb_qp_destroy(m->qb[i]));
	}
	free(m);
}

TEST(test_thousand_connections_are_open_between_two_devices)
{
	open_devs("soft0", "soft1");
	p.a.init.sq_depth = p.a.init.rq_depth = 1;
	p.b.init.sq_depth = p.b.init.rq_depth = 1;
	open_and_close(MANY, 64);
	pair_close(&p);
}

TEST(test_connections_come_up_and_end_when_messages_are_lost)
{
	open_devs("soft0,wire=1,tx_drop=5,rx_drop=5,seed=3",
		  "soft1,wire=1,tx_drop=5,rx_drop=5,seed=4");
	/* Repeats come each 0.5 s. A process that is stopped for some seconds passes, too. */
	p.a.param.timeout_ms = p.b.param.timeout_ms = 15000;
	open_and_close(100, 100);
	pair_close(&p);
}

CONNECT_IB_MAIN
