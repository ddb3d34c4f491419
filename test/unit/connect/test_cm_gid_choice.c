/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * GID choice of a connection, and recovery when the GID table moves or the port is down. Both
 * ends use the fake device and talk over TCP.
 */
#include <arpa/inet.h>

#include <rte_cycles.h>

#include "../core/core_fixture.h"

#include "bb_connect.h"

#define WAIT_S 30

static struct bb_cm *cms[2];
static struct bb_conn *conns[2];
static struct bb_qp *qps[2];
static struct bb_conn_param params[2];

/* Returns the next event of either CM. Accepts the requests to side 1 itself. */
static struct bb_cm_event
next(unsigned int *side)
{
	const uint64_t end = rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();
	struct bb_cm_event ev;

	for (;;) {
		for (*side = 0; *side < 2; ++*side) {
			if (bb_cm_poll(cms[*side], &ev, 1) == 0)
				continue;
			if (ev.type != BB_CM_CONNECT_REQUEST)
				return ev;
			conns[1] = ev.conn;
			assert_int_equal(bb_conn_accept(ev.conn, qps[1], &params[1]), 0);
		}
		assert_true(rte_get_tsc_cycles() < end);
	}
}

/* Processes events until both ends have had one of @type. */
static void
both(enum bb_cm_event_type type)
{
	unsigned int side, seen = 0;

	while (seen != 3) {
		if (next(&side).type == type)
			seen |= 1u << side;
	}
}

static uint8_t
index_of(unsigned int side)
{
	struct bb_conn_info info;

	bb_conn_query(conns[side], &info);
	return info.sgid_index;
}

static uint8_t
gid_of(unsigned int side)
{
	struct bb_conn_info info;

	/* Returns the last GID byte that the peer was sent. */
	bb_conn_query(conns[!side], &info);
	return info.remote.gid[15];
}

static void
ethernet(struct fixture *f)
{
	fake.link = BB_LINK_ETHERNET;
	f->dev->ethernet = true;
}

/* Two CMs and a QP for each. The second CM listens. */
static struct bb_listener *listener;
static struct sockaddr_storage addr;

static void
pair_open(struct fixture *f)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_cm_attr attr = DEFAULTS(cm_attr);
	char text[32];

	ethernet(f);
	attr.poll_us = 0;
	init.send_cq = init.recv_cq = f->cq;
	init.sq_depth = init.rq_depth = 16;
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(bb_cm_create(f->dev, &attr, &cms[i]), 0);
		assert_int_equal(bb_qp_create(f->pd, &init, &qps[i]), 0);
		bb_conn_param_init(&params[i]);
		params[i].timeout_ms = WAIT_S * 1000;
		params[i].recover_ms = 4 * WAIT_S * 1000;
		params[i].backoff_min_ms = params[i].backoff_max_ms = 2;
	}
	assert_int_equal(bb_cm_addr("127.0.0.1:0", &addr), 0);
	assert_int_equal(bb_listener_create(cms[1], (struct sockaddr *)&addr, &listener), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", bb_listener_port(listener));
	assert_int_equal(bb_cm_addr(text, &addr), 0);
}

static void
pair_close(void)
{
	assert_int_equal(bb_conn_disconnect(conns[0], NULL, 0), 0);
	both(BB_CM_DISCONNECTED);
	for (unsigned int i = 0; i < 2; i++) {
		bb_conn_destroy(conns[i]);
		assert_int_equal(bb_qp_destroy(qps[i]), 0);
	}
	assert_int_equal(bb_listener_destroy(listener), 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(bb_cm_destroy(cms[i]), 0);
}

T(test_chosen_gid_is_kept_by_address)
{
	struct bb_conn_info info;
	struct bb_conn *none;
	uint64_t end;

	pair_open(f);

	/* Three GIDs of equal rank: they are listed and none is chosen. */
	assert_logged(bb_conn_connect(cms[0], (struct sockaddr *)&addr, qps[0], &params[0], &none),
		      -ENOTUNIQ, "several GIDs of port 1 match equally");

	/* A GID chosen for its rank is kept by address, even when it no longer ranks best. */
	fake.gid_v1 = 3;
	assert_int_equal(
		bb_conn_connect(cms[0], (struct sockaddr *)&addr, qps[0], &params[0], &conns[0]),
		0);
	both(BB_CM_ESTABLISHED);
	assert_int_equal(index_of(0), 3);
	assert_int_equal(gid_of(0), 3);
	assert_int_equal(fake.last_attr.path.sgid_index, 3);

	/* The address moves to another index. */
	fake.gid_v1 = 0;
	fake.gid_shift = 2;
	assert_int_equal(bb_conn_recover(conns[0]), 0);
	both(BB_CM_RECOVERED);
	assert_int_equal(index_of(0), 1);
	assert_int_equal(index_of(1), 1);
	assert_int_equal(gid_of(0), 3);
	assert_int_equal(fake.last_attr.path.sgid_index, 1);

	/*
	 * There is no event while the port is down. Then the port comes back, also with another
	 * address.
	 */
	fake.port_down = true;
	assert_int_equal(bb_conn_recover(conns[0]), 0);
	both(BB_CM_LOST);
	end = rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();
	do {
		struct bb_cm_event ev;

		assert_int_equal(bb_cm_poll(cms[0], &ev, 1), 0);
		assert_int_equal(bb_cm_poll(cms[1], &ev, 1), 0);
		bb_conn_query(conns[0], &info);
		assert_int_equal(info.state, BB_CONN_LOST);
		assert_true(rte_get_tsc_cycles() < end);
	} while (info.tries < 2);
	fake.port_down = false;
	fake.gid_shift = 0;
	both(BB_CM_RECOVERED);
	assert_int_equal(index_of(0), 3);

	pair_close();
}

/*
 * Each end asks for its own depths and retries. The QP gets what both agree on; the RNR retry
 * count is the peer's. A CM runs the device only while its connection is being made.
 */
T(test_depths_and_retries_are_what_both_ends_agree_on)
{
	static const struct {
		uint8_t initiator, responder, retry, rnr;
	} want[2] = {{3, 7, 2, 4}, {5, 2, 6, 1}};
	const struct bb_qp_attr *attr[2];
	struct bb_conn_info info;
	struct bb_cm_event ev;
	int before;

	pair_open(f);
	fake.gid_v1 = 3;
	f->dev->attr.max_rd_atomic = 4;
	f->dev->attr.max_dest_rd_atomic = 6;
	for (unsigned int i = 0; i < 2; i++) {
		params[i].initiator_depth = want[i].initiator;
		params[i].responder_resources = want[i].responder;
		params[i].retry_count = want[i].retry;
		params[i].rnr_retry_count = want[i].rnr;
		attr[i] = &qps[i]->ctrl->attr;
	}
	assert_int_equal(
		bb_conn_connect(cms[0], (struct sockaddr *)&addr, qps[0], &params[0], &conns[0]),
		0);
	while (bb_cm_poll(cms[1], &ev, 1) == 0)
		assert_int_equal(bb_cm_poll(cms[0], &ev, 1), 0);
	assert_int_equal(ev.type, BB_CM_CONNECT_REQUEST);
	conns[1] = ev.conn;
	before = fake.progressed;
	assert_int_equal(bb_cm_poll(cms[1], &ev, 1), 0);
	assert_int_equal(fake.progressed, before);
	assert_int_equal(bb_conn_accept(conns[1], qps[1], &params[1]), 0);
	assert_int_equal(bb_cm_poll(cms[1], &ev, 1), 0);
	assert_int_equal(fake.progressed, before + 1);
	both(BB_CM_ESTABLISHED);
	before = fake.progressed;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(bb_cm_poll(cms[i], &ev, 1), 0);
	assert_int_equal(fake.progressed, before);

	bb_conn_query(conns[1], &info);
	assert_fields(info, peer_initiator_depth, 3, peer_responder_resources, 6);
	assert_fields(*attr[0], max_rd_atomic, 2, max_dest_rd_atomic, 4);
	assert_fields(*attr[1], max_rd_atomic, 4, max_dest_rd_atomic, 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_fields(*attr[i], retry_cnt, want[0].retry, rnr_retry, want[1 - i].rnr);
	}
	pair_close();
}

T(test_gid_given_by_index_is_used)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_conn_info info;
	struct bb_cm_attr attr = DEFAULTS(cm_attr);
	struct bb_conn *c;
	struct bb_cm *cm;
	struct bb_qp *qp;

	ethernet(f);
	assert_int_equal(bb_cm_create(f->dev, &attr, &cm), 0);
	init.send_cq = init.recv_cq = f->cq;
	init.sq_depth = init.rq_depth = 16;
	assert_int_equal(bb_qp_create(f->pd, &init, &qp), 0);
	bb_conn_param_init(&params[0]);
	params[0].sgid_index_given = true;
	params[0].path.sgid_index = 1;
	assert_int_equal(bb_cm_addr("127.0.0.1:9", &addr), 0);
	assert_int_equal(bb_conn_connect(cm, (struct sockaddr *)&addr, qp, &params[0], &c), 0);
	bb_conn_query(c, &info);
	assert_int_equal(info.sgid_index, 1);
	bb_conn_destroy(c);
	params[0].path.sgid_index = 2;
	assert_true(bb_conn_connect(cm, (struct sockaddr *)&addr, qp, &params[0], &c) < 0);
	assert_int_equal(bb_qp_destroy(qp), 0);
	assert_int_equal(bb_cm_destroy(cm), 0);
}

TEST_MAIN(fake_eal_init())
