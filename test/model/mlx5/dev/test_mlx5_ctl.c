/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The control path on the software device: open, query, counters, events, many QPs. */
#include "../mlx5_env.h"
#include "soft_ctl.h"

#define MANY   1000
#define MANY_S 20 /* CPU seconds for creating, connecting and destroying them */

TEST(test_device_is_listed_and_unknown_ones_are_refused)
{
	struct bb_dev_info info[16];
	struct bb_dev *dev = NULL;
	struct bb_dev_attr attr;
	int i, n;
	bool found = false;

	n = bb_dev_list(info, RTE_DIM(info));
	assert_true(n >= 1);
	for (i = 0; i < n && i < (int)RTE_DIM(info); i++)
		found |= strcmp(info[i].name, "soft0") == 0;
	assert_true(found);
	assert_int_equal(bb_dev_list(NULL, 0), n);

	assert_int_equal(bb_dev_open("nosuch0", &dev), -ENODEV);
	assert_int_equal(bb_dev_open("0000:ff:1f.7", &dev), -ENODEV);
	assert_int_equal(bb_dev_open("soft0,nosuch=1", &dev), -EINVAL);
	assert_int_equal(bb_dev_open("soft0,progress=never", &dev), -EINVAL);
	assert_int_equal(bb_dev_open("soft0,no_devx", &dev), -EOPNOTSUPP);
	assert_null(dev);

	OK(bb_dev_open("soft0", &dev));
	OK(bb_dev_query(dev, &attr));
	assert_true(attr.software);
	assert_true(attr.atomics);
	assert_true(attr.counters);
	assert_int_equal(attr.bf_size, 256);
	OK(bb_dev_close(dev));
}

/* Device options apply at the device's first open, so these tests must be the first to open it. */
TEST_IF(!env_two_uars(), test_device_without_optional_capabilities_transfers_data)
{
	struct bb_dev_attr attr;
	struct bb_dev_stats stats;
	struct bb_qp_attr qa;
	struct env e;

	env_open_spec(&e, "soft0,no_atomic,no_bf,no_counters");
	OK(bb_dev_query(e.a.dev, &attr));
	assert_false(attr.atomics);
	assert_false(attr.counters);
	assert_int_equal(attr.bf_size, 0);
	OK(bb_dev_stats(e.a.dev, &stats));
	env_qps(&e);
	qa = e.attr;
	qa.state = BB_QP_INIT;
	assert_int_equal(bb_qp_modify(e.a.qp, &qa,
				      BB_QP_STATE | BB_QP_PORT | BB_QP_PKEY_INDEX | BB_QP_ACCESS),
			 -EINVAL);
	e.attr.access = BB_ACCESS_REMOTE_WRITE;
	connect_pair(e.a.qp, e.b.qp, &e.attr);
	OK(bb_post_write_inline(e.a.qp, 1, "without", 7, raddr_of(&e.b, 0), e.b.mr->rkey,
				BB_SEND_SIGNALED));
	env_done(&e, &e.a, 1, BB_WC_SUCCESS);
	assert_memory_equal(e.b.buf, "without", 7);
	env_stop(&e);
}

ENV_TEST_OPEN(test_query_returns_the_attributes_in_force)
{
	struct bb_qp_attr q;
	struct bb_wc wc;
	uint32_t psn;

	env_qps(e);
	OK(bb_qp_query(e->a.qp, &q));
	assert_int_equal(q.state, BB_QP_RESET);
	e->attr.timeout = 11;
	e->attr.retry_cnt = 5;
	e->attr.rnr_retry = 4;
	e->attr.min_rnr_timer = 9;
	e->attr.max_rd_atomic = 8;
	e->attr.max_dest_rd_atomic = 8;
	e->attr.path.traffic_class = 0x20;
	e->attr.path.sl = 3;
	connect_pair(e->a.qp, e->b.qp, &e->attr);
	OK(bb_qp_query(e->a.qp, &q));
	assert_int_equal(q.state, BB_QP_RTS);
	assert_int_equal(q.access, e->attr.access);
	assert_int_equal(q.dest_qpn, e->b.qp->qpn);
	assert_int_equal(q.path_mtu, 4096);
	assert_int_equal(q.timeout, 11);
	assert_int_equal(q.retry_cnt, 5);
	assert_int_equal(q.rnr_retry, 4);
	assert_int_equal(q.min_rnr_timer, 9);
	assert_int_equal(q.max_rd_atomic, 8);
	assert_int_equal(q.max_dest_rd_atomic, 8);
	assert_int_equal(q.path.sl, 3);
	assert_int_equal(q.path.hop_limit, 64);
	assert_int_equal(q.path.port, 1);
	/* The PSN has advanced by one packet. */
	psn = q.sq_psn;
	OK(bb_post_write_inline(e->a.qp, 1, "x", 1, raddr_of(&e->b, 0), e->b.mr->rkey,
				BB_SEND_SIGNALED));
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, &wc, 1);
	OK(bb_qp_query(e->a.qp, &q));
	assert_int_equal(q.sq_psn, (psn + 1) & 0xffffff);
	OK(bb_qp_query(e->b.qp, &q));
	assert_int_equal(q.rq_psn, (psn + 1) & 0xffffff);
	q.state = BB_QP_ERR;
	OK(bb_qp_modify(e->a.qp, &q, BB_QP_STATE));
	OK(bb_qp_query(e->a.qp, &q));
	assert_int_equal(q.state, BB_QP_ERR);
}

/*
 * The PSNs of QUERY_QP when packets carry the requests: three packets of a WRITE, three of a
 * READ.
 */
TEST_IF(!env_two_uars(), test_psns_count_the_packets_on_a_wire)
{
	struct bb_qp_attr before, q;
	struct bb_sge sge;
	struct bb_wc wc;
	struct env e;

	env_open_spec(&e, "soft0,wire=1");
	env_up(&e);
	OK(bb_qp_query(e.a.qp, &before));
	sge = sge_of(&e.a, 0, 8193);
	OK(bb_post_write(e.a.qp, 1, &sge, 1, raddr_of(&e.b, 0), e.b.mr->rkey, BB_SEND_SIGNALED));
	bb_qp_ring(e.a.qp);
	env_poll(&e, &e.a, &wc, 1);
	OK(bb_qp_query(e.a.qp, &q));
	assert_int_equal(q.sq_psn, (before.sq_psn + 3) & 0xffffff);
	assert_int_equal(q.rq_psn, before.rq_psn);
	OK(bb_qp_query(e.b.qp, &q));
	assert_int_equal(q.rq_psn, (before.sq_psn + 3) & 0xffffff);
	/* A READ consumes as many PSNs as its response has packets (9.7.3.1). */
	OK(bb_post_read(e.a.qp, 1, &sge, 1, raddr_of(&e.b, 0), e.b.mr->rkey, BB_SEND_SIGNALED));
	bb_qp_ring(e.a.qp);
	env_poll(&e, &e.a, &wc, 1);
	OK(bb_qp_query(e.a.qp, &q));
	assert_int_equal(q.sq_psn, (before.sq_psn + 6) & 0xffffff);
	OK(bb_qp_query(e.b.qp, &q));
	assert_int_equal(q.rq_psn, (before.sq_psn + 6) & 0xffffff);
	env_stop(&e);
}

/*
 * The port marks every packet that may be marked; without ECT in the traffic class it marks none.
 */
TEST_IF(!env_two_uars(), test_marked_packets_are_answered_by_cnps)
{
	uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	struct bb_dev_stats stats;
	struct bb_sge sge;
	struct bb_wc wc;
	unsigned int ecn;
	struct env e;

	for (ecn = 0; ecn < 3; ecn++) {
		env_open_spec(&e, "soft0,wire=1,tx_ecn=100");
		e.attr.path.traffic_class = (uint8_t)(26 << 2 | ecn);
		env_up(&e);
		sge = sge_of(&e.a, 0, 8);
		OK(bb_post_write(e.a.qp, 1, &sge, 1, raddr_of(&e.b, 0), e.b.mr->rkey,
				 BB_SEND_SIGNALED));
		bb_qp_ring(e.a.qp);
		env_poll(&e, &e.a, &wc, 1);
		/* The notification may arrive after the ACK. */
		do {
			bb_dev_progress(e.a.dev);
			OK(bb_dev_stats(e.a.dev, &stats));
		} while (ecn != 0 && (stats.cnp_handled < 1 || stats.ecn_marked < 2) &&
			 rte_get_timer_cycles() < end);
		assert_int_equal(stats.cnp_handled != 0, ecn != 0);
		assert_int_equal(stats.ecn_marked != 0, ecn != 0);
		assert_true(stats.cnp_sent >= stats.cnp_handled);
		assert_int_equal(stats.cnp_sent != 0, ecn != 0);
		env_stop(&e);
	}
}

ENV_TEST(test_refused_request_is_counted_by_the_requesters_device)
{
	struct bb_dev_stats before, after;
	struct bb_sge sge;
	struct bb_wc wc[2];

	sge = sge_of(&e->a, 0, 8);
	OK(bb_dev_stats(e->a.dev, &before));
	OK(bb_post_write(e->a.qp, 5, &sge, 1, raddr_of(&e->b, 0), 1, 0));
	OK(bb_post_nop(e->a.qp, 6, 0));
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, wc, 2);
	OK(bb_dev_stats(e->a.dev, &after));
	assert_int_equal(after.remote_access_err - before.remote_access_err, 1);
	assert_int_equal(after.flushed - before.flushed, 1);
}

static void
drain_events(struct bb_dev *dev)
{
	struct bb_event ev;

	while (bb_event_get(dev, &ev) == 0)
		;
}

TEST(test_refused_request_and_port_changes_raise_events)
{
	struct soft_dev *soft = soft_dev_get(0);
	struct bb_sge sge;
	struct bb_event ev;
	struct bb_wc wc;
	struct env e;

	assert_non_null(soft);
	env_start(&e);
	drain_events(e.a.dev);
	drain_events(e.b.dev);
	/* The peer's request was refused; the responder's QP gets an event. */
	sge = sge_of(&e.a, 0, 8);
	OK(bb_post_write(e.a.qp, 5, &sge, 1, raddr_of(&e.b, 0), 1, 0));
	bb_qp_ring(e.a.qp);
	env_poll(&e, &e.a, &wc, 1);
	assert_int_equal(wc.status, BB_WC_REM_ACCESS_ERR);
	env_event(&e, e.b.dev, &ev);
	assert_int_equal(ev.type, BB_EVENT_QP_ACCESS);
	assert_ptr_equal(ev.qp, e.b.qp);
	assert_int_equal(e.b.qp->state, BB_QP_ERR);
	assert_int_equal(bb_event_get(e.b.dev, &ev), -EAGAIN);

	soft_dev_port_set(soft, false);
	env_event(&e, e.a.dev, &ev);
	assert_int_equal(ev.type, BB_EVENT_PORT_DOWN);
	assert_int_equal(ev.port, 1);
	soft_dev_port_set(soft, true);
	env_event(&e, e.a.dev, &ev);
	assert_int_equal(ev.type, BB_EVENT_PORT_ACTIVE);
	env_stop(&e);
}

ENV_TEST(test_event_of_a_destroyed_qp_is_discarded)
{
	struct bb_sge sge;
	struct bb_event ev;
	struct bb_wc wc;

	drain_events(e->b.dev);
	sge = sge_of(&e->a, 0, 8);
	OK(bb_post_write(e->a.qp, 5, &sge, 1, raddr_of(&e->b, 0), 1, 0));
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, &wc, 1);
	OK(bb_qp_destroy(e->b.qp));
	e->b.qp = NULL;
	side_qp(e, &e->b);
	assert_int_equal(bb_event_get(e->b.dev, &ev), -EAGAIN);
}

/*
 * A device that is opened twice is one device with two users, which do not see each other's
 * objects.
 */
ENV_TEST(test_second_user_of_a_device_cannot_use_foreign_objects)
{
	struct bb_qp_init_attr init;
	struct bb_dev *dev;
	struct bb_qp *qp;
	struct bb_pd *pd;

	OK(bb_dev_open("soft0", &dev));
	OK(bb_pd_alloc(dev, &pd));
	init = e->init;
	init.send_cq = e->a.cq;
	init.recv_cq = e->a.cq;
	assert_int_equal(bb_qp_create(pd, &init, &qp), -EINVAL);
	OK(bb_pd_free(pd));
	OK(bb_dev_close(dev));
}

TEST(test_thousand_qps_transfer_data)
{
	static struct bb_qp *a[MANY], *b[MANY];
	uint64_t start = env_cpu_ns(), v;
	struct bb_qp_init_attr init;
	struct bb_cq_attr cqa;
	struct bb_cq *ca, *cb;
	struct bb_wc wc[64];
	unsigned int i, got;
	struct env e;

	env_open(&e);
	bb_cq_attr_init(&cqa);
	cqa.depth = MANY * 16;
	OK(bb_cq_create(e.a.dev, &cqa, &ca));
	OK(bb_cq_create(e.b.dev, &cqa, &cb));
	bb_qp_init_attr_init(&init);
	init.sq_depth = 8;
	init.rq_depth = 8;
	init.max_inline = 8;
	for (i = 0; i < MANY; i++) {
		init.send_cq = init.recv_cq = ca;
		OK(bb_qp_create(e.a.pd, &init, &a[i]));
		init.send_cq = init.recv_cq = cb;
		OK(bb_qp_create(e.b.pd, &init, &b[i]));
		connect_pair(a[i], b[i], &e.attr);
	}
	for (i = 0; i < MANY; i++) {
		v = i + 1;
		OK(bb_post_write_inline(a[i], i, &v, 8, raddr_of(&e.b, i * 8), e.b.mr->rkey,
					BB_SEND_SIGNALED));
		bb_qp_ring(a[i]);
	}
	for (got = 0; got < MANY;) {
		unsigned int n = bb_cq_poll(ca, wc, RTE_DIM(wc));

		while (n-- > 0) {
			assert_int_equal(wc[n].status, BB_WC_SUCCESS);
			assert_ptr_equal(wc[n].qp, a[wc[n].wr_id]);
			got++;
		}
	}
	for (i = 0; i < MANY; i++) {
		memcpy(&v, e.b.buf + i * 8, 8);
		assert_int_equal(v, i + 1);
		OK(bb_qp_destroy(a[i]));
		OK(bb_qp_destroy(b[i]));
	}
	OK(bb_cq_destroy(ca));
	OK(bb_cq_destroy(cb));
	env_stop(&e);
	assert_true(env_cpu_ns() - start < MANY_S * UINT64_C(1000000000));
}

TEST_MAIN(env_eal_init("mlx5_ctl"))
