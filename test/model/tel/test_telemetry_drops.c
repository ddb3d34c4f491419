/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Counters that no card has, through rte_telemetry's socket and the API: dropped packets by
 * reason, and retries of each queue pair.
 */
#define ENV_TELEMETRY
#include "../mlx5/mlx5_env.h"
#include "telemetry_client.h"

#include "../../fakes/ring_port.h"
#include "ib/bb_qp1.h"

static struct tel client;
static struct ring_port port;

/* Returns the count of a reason in bb_dev_drops(); all reasons fit the array. */
static uint64_t
dropped(struct bb_dev *dev, enum bb_drop_layer layer, const char *reason)
{
	struct bb_dev_drop drops[64];
	int i, n = bb_dev_drops(dev, drops, RTE_DIM(drops));

	assert_in_range(n, 1, RTE_DIM(drops));
	for (i = 0; i < n; i++)
		if (drops[i].layer == layer && strcmp(drops[i].reason, reason) == 0)
			return drops[i].count;
	fail_msg("there is no reason %s", reason);
	return 0;
}

/* An IP fragment arrives at the port: it counts as a lost frame, not as a lost RoCE packet. */
TEST(test_frames_lost_at_a_port_are_counted)
{
	struct bb_dev_drop two[2] = {{.reason = NULL}};
	char spec[128];
	struct bb_wc wc;
	struct env e;
	json_t *a;

	env_open_spec(&e, "soft0,wire");
	a = tel_ask(&client, "/bluebell/port/drops,soft0");
	assert_non_null(strstr(tel_text(a, "error"), "port="));
	json_decref(a);
	assert_true(bb_dev_drops(e.a.dev, NULL, 0) > 2);
	env_stop(&e);

	snprintf(spec, sizeof(spec), "soft0,port=%s,ip=192.0.2.1/24", port.name);
	env_open_spec(&e, spec);
	assert_true(ring_port_give(&port, true));
	assert_true(ring_port_give(&port, true));
	assert_true(ring_port_give(&port, false));
	while (rte_ring_count(port.in) != 0)
		assert_int_equal(bb_cq_poll(e.a.cq, &wc, 1), 0);
	a = tel_ask(&client, "/bluebell/port/drops,soft0");
	assert_int_equal(tel_uint(a, "fragment"), 2);
	assert_int_equal(tel_uint(a, "ip_csum"), 0);
	assert_null(json_object_get(a, "none"));
	assert_null(json_object_get(a, "drop_no_qp"));
	json_decref(a);
	a = tel_ask(&client, "/bluebell/roce/drops,soft0");
	assert_int_equal(tel_uint(a, "drop_no_qp"), 1);
	assert_null(json_object_get(a, "fragment"));
	json_decref(a);
	assert_int_equal(dropped(e.a.dev, BB_DROP_PORT, "fragment"), 2);
	assert_int_equal(dropped(e.a.dev, BB_DROP_ROCE, "drop_no_qp"), 1);
	/* The call also counts entries that do not fit. */
	assert_int_equal(bb_dev_drops(e.a.dev, two, 1), bb_dev_drops(e.a.dev, NULL, 0));
	assert_non_null(two[0].reason);
	assert_null(two[1].reason);
	assert_int_equal(bb_dev_drops(e.a.dev, NULL, 1), -EINVAL);
	env_stop(&e);
	/* A closed device has no counters; a new open starts at 0. */
	a = tel_ask(&client, "/bluebell/port/drops,soft0");
	assert_non_null(json_object_get(a, "error"));
	json_decref(a);
	env_open_spec(&e, spec);
	assert_int_equal(dropped(e.a.dev, BB_DROP_PORT, "fragment"), 0);
	env_stop(&e);
}

/* Each queue pair has its own retry counter, with packets and without; a reset keeps it. */
static void
retries_of(const char *spec)
{
	struct bb_qp_attr attr;
	struct bb_sge sge;
	struct env e;
	json_t *a;

	env_open_spec(&e, spec);
	env_qps(&e);
	e.attr.timeout = 12;
	e.attr.retry_cnt = 1;
	e.attr.rnr_retry = 2;
	e.attr.min_rnr_timer = 1;
	connect_pair(e.a.qp, e.b.qp, &e.attr);
	sge = sge_of(&e.a, 0, 64);
	/* The peer has no receive. */
	OK(bb_post_send(e.a.qp, 1, &sge, 1, BB_SEND_SIGNALED));
	env_done(&e, &e.a, 1, BB_WC_RNR_RETRY_EXC_ERR);
	a = tel_ask_number(&client, "/bluebell/qp/info", "soft0", e.a.qp->qpn);
	assert_int_equal(tel_uint(a, "rnr_retries"), 2);
	json_decref(a);
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_RESET;
	OK(bb_qp_modify(e.a.qp, &attr, BB_QP_STATE));
	OK(bb_qp_modify(e.b.qp, &attr, BB_QP_STATE));
	connect_pair(e.a.qp, e.b.qp, &e.attr);
	/* The peer does not answer. */
	OK(bb_qp_modify(e.b.qp, &attr, BB_QP_STATE));
	OK(bb_post_write(e.a.qp, 2, &sge, 1, raddr_of(&e.b, 0), e.b.mr->rkey, BB_SEND_SIGNALED));
	env_done(&e, &e.a, 2, BB_WC_RETRY_EXC_ERR);
	a = tel_ask_number(&client, "/bluebell/qp/info", "soft0", e.a.qp->qpn);
	assert_true(tel_uint(a, "retries") >= 1);
	assert_int_equal(tel_uint(a, "rnr_retries"), 2);
	json_decref(a);
	a = tel_ask_number(&client, "/bluebell/qp/info", "soft0", e.b.qp->qpn);
	assert_int_equal(tel_uint(a, "retries"), 0);
	assert_int_equal(tel_uint(a, "rnr_retries"), 0);
	json_decref(a);
	env_stop(&e);
}

TEST(test_retries_are_counted)
{
	retries_of("soft0");
	retries_of("soft0,wire");
}

/* Received CM messages of two kinds that the engine drops, and a third that it rejects. */
static void
receive_bad_messages(struct bb_qp1 *q)
{
	struct bb_ibcm_gmp gmp = {.sqpn = BB_IBCM_QPN, .qkey = BB_IBCM_QKEY};
	struct bb_ibcm *cm = bb_qp1_lock(q);
	const uint8_t mad[BB_IBCM_MAD] = {1};

	bb_ibcm_rx(cm, &gmp, mad, sizeof(mad) - 1, 0);
	gmp.qkey = 1;
	bb_ibcm_rx(cm, &gmp, mad, sizeof(mad), 0);
	bb_ibcm_rx(cm, &gmp, mad, sizeof(mad), 0);
	bb_qp1_unlock(q);
}

TEST(test_dropped_cm_messages_are_counted)
{
	struct bb_qp1 *q;
	const char *key;
	uint64_t sum = 0;
	struct env e;
	json_t *a, *v;

	env_open_spec(&e, "soft0");
	a = tel_ask(&client, "/bluebell/cm/drops,soft0");
	assert_non_null(strstr(tel_text(a, "error"), "BB_CM_IB"));
	json_decref(a);
	OK(bb_qp1_get(e.a.dev, &q));
	receive_bad_messages(q);
	a = tel_ask(&client, "/bluebell/cm/drops,soft0");
	assert_int_equal(tel_uint(a, "length"), 1);
	assert_int_equal(tel_uint(a, "qkey"), 2);
	assert_int_equal(json_object_size(a), BB_IBCM_DROPS + 3);
	json_object_foreach(a, key, v) sum += (uint64_t)json_integer_value(v);
	assert_int_equal(sum, 3);
	json_decref(a);
	bb_qp1_put(q);
	a = tel_ask(&client, "/bluebell/cm/drops,soft0");
	assert_non_null(json_object_get(a, "error"));
	json_decref(a);
	env_stop(&e);
}

int
main(void)
{
	return tel_main("drops", __FILE__, &client, &port);
}
