/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * lib/connect by librdmacm, with substitutes of its functions in place of the kernel. The queue
 * pairs of the software device are connected with the attributes that the substitute gives, and
 * transfer data.
 */
#include "connect_env.h"
#include "rdmacm_subst.h"

static struct pair p;

static void
open_pair(void)
{
	struct bb_gid_want want;
	struct bb_cm_attr attr;
	struct bb_gid gid;

	bb_cm_attr_init(&attr);
	attr.transport = BB_CM_RDMACM;
	attr.poll_us = 0;
	strcpy(rdmacm_subst.device, "soft0");
	pair_open_with(&p, "soft0", NULL, &attr);
	bb_gid_want_init(&want);
	OK(bb_gid_choose(p.a.dev, 1, &want, &rdmacm_subst.sgid_index));
	OK(bb_gid_query(p.a.dev, 1, rdmacm_subst.sgid_index, &gid));
	memcpy(rdmacm_subst.gid, gid.raw, 16);
}

static void
close_pair(void)
{
	pair_close(&p);
	assert_int_equal(rdmacm_subst.ids, 0);
	assert_int_equal(rdmacm_subst.events, 0);
	assert_int_equal(rdmacm_subst.channels, 0);
}

#define T(name) TEST_BETWEEN(open_pair(), close_pair(), name)

T(test_connection_by_librdmacm_transfers_data)
{
	struct bb_region r, got;
	struct bb_qp_attr qa, qb;
	struct bb_cm_event ev;
	struct link l;
	uint8_t packed[BB_REGION_PACKED];
	struct bb_sge sge;
	struct bb_wc wc;
	uint64_t end;

	OK(bb_region_of(p.b.mr, "buf", 0, 0, &r));
	assert_int_equal(bb_region_pack(&r, 1, packed, sizeof(packed)), sizeof(packed));
	p.b.param.private_data = packed;
	p.b.param.private_len = sizeof(packed);
	p.a.param.private_data = "who is there";
	p.a.param.private_len = 12;
	p.a.param.initiator_depth = 2;
	p.b.param.responder_resources = 8;
	p.b.param.initiator_depth = 8;
	p.a.param.responder_resources = 4;
	p.b.param.rnr_retry_count = 5;
	/* 1000 is not an MTU and the path has 1024, so the MTU is 512. */
	p.a.param.path_mtu = 1000;
	p.b.param.path_mtu = 1000;
	l.qa = end_qp(&p.a);
	l.qb = end_qp(&p.b);
	l.a = call(&p, l.qa);
	ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
	l.b = ev.conn;
	assert_ptr_equal(ev.listener, p.listener);
	assert_int_equal(ev.private_len, 12);
	assert_memory_equal(ev.private_data, "who is there", 12);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	ev = expect(&p, &p.a, BB_CM_ESTABLISHED);
	assert_int_equal(bb_region_unpack(ev.private_data, ev.private_len, &got, 1), 1);
	assert_memory_equal(&got, &r, sizeof(r));
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	OK(bb_qp_query(l.qa, &qa));
	OK(bb_qp_query(l.qb, &qb));
	assert_int_equal(qa.dest_qpn, l.qb->qpn);
	assert_int_equal(qb.dest_qpn, l.qa->qpn);
	assert_int_equal(qa.sq_psn, qb.rq_psn);
	assert_int_equal(qb.sq_psn, qa.rq_psn);
	assert_int_equal(qa.max_rd_atomic, 2);
	assert_int_equal(qb.max_dest_rd_atomic, 2);
	assert_int_equal(qb.max_rd_atomic, 4);
	assert_int_equal(qa.rnr_retry, 5);
	assert_int_equal(qa.path_mtu, 512);
	assert_int_equal(qb.path_mtu, 512);
	memset(p.a.buf, 0x42, 64);
	sge = (struct bb_sge){(uintptr_t)p.a.buf, 64, p.a.mr->lkey};
	OK(bb_post_write(l.qa, 1, &sge, 1, got.addr, got.rkey, BB_SEND_SIGNALED));
	bb_qp_ring(l.qa);
	for (end = wait_end(); bb_cq_poll(p.a.cq, &wc, 1) == 0;)
		assert_true(rte_get_tsc_cycles() < end);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_int_equal(p.b.buf[63], 0x42);
	assert_int_equal(bb_conn_disconnect(l.a, "x", 1), -EMSGSIZE);
	link_down(&p, &l);
	/* Destroyed without a disconnect. */
	link_up(&p, &l);
	bb_conn_destroy(l.b);
	expect(&p, &p.a, BB_CM_DISCONNECTED);
	link_end(&l, l.a);
}

/* Calls with @qp and expects that this fails with @status. */
static void
fails(struct bb_qp *qp, int status)
{
	struct bb_conn *c = call(&p, qp);

	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, status);
	bb_conn_destroy(c);
}

T(test_each_step_that_fails_is_reported)
{
	static uint8_t data[57];
	struct bb_cm_event ev;
	struct bb_conn *a, *b;
	struct bb_qp *qa, *qb;
	unsigned int i;
	struct link l;
	uint16_t port;

	qa = end_qp(&p.a);
	rdmacm_subst.addr_error = EADDRNOTAVAIL;
	fails(qa, -EADDRNOTAVAIL);
	rdmacm_subst.route_error = EHOSTUNREACH;
	fails(qa, -EHOSTUNREACH);
	rdmacm_subst.unreachable = ETIMEDOUT;
	fails(qa, -ETIMEDOUT);
	strcpy(rdmacm_subst.device, "mlx4_7");
	fails(qa, -EXDEV);
	strcpy(rdmacm_subst.device, "soft0");

	port = ((struct sockaddr_in *)&p.addr)->sin_port;
	((struct sockaddr_in *)&p.addr)->sin_port = htons(7);
	a = call(&p, qa);
	assert_int_equal(expect(&p, &p.a, BB_CM_REJECTED).reason, BB_REJECT_NO_LISTENER);
	bb_conn_destroy(a);
	((struct sockaddr_in *)&p.addr)->sin_port = port;

	a = call(&p, qa);
	b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	OK(bb_conn_reject(b, "no", 2));
	bb_conn_destroy(b);
	ev = expect(&p, &p.a, BB_CM_REJECTED);
	assert_int_equal(ev.reason, BB_REJECT_CONSUMER);
	assert_memory_equal(ev.private_data, "no", 2);
	bb_conn_destroy(a);

	/* Destroyed before and after the peer has seen the request. */
	a = call(&p, qa);
	bb_conn_destroy(a);
	a = call(&p, qa);
	b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	bb_conn_destroy(a);
	qb = end_qp(&p.b);
	assert_int_equal(bb_conn_accept(b, qb, &p.b.param), -ENOTCONN);
	assert_int_equal(qb->state, BB_QP_RESET);
	bb_conn_destroy(b);
	bb_qp_destroy(qb);

	p.a.param.private_data = data;
	p.a.param.private_len = 57;
	assert_int_equal(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, qa, &p.a.param, &a),
			 -EMSGSIZE);
	p.a.param.private_len = 0;
	p.a.param.recover_ms = 1;
	assert_int_equal(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, qa, &p.a.param, &a),
			 -ENOTSUP);
	p.a.param.recover_ms = 0;
	bb_qp_destroy(qa);

	link_up(&p, &l);
	rdmacm_subst_remove();
	assert_int_equal(expect(&p, &p.a, BB_CM_DISCONNECTED).status, -ENODEV);
	expect(&p, &p.b, BB_CM_DISCONNECTED);
	link_free(&l);
	/* The listener sees it, too, and stays. */
	for (i = 0; i < 10; i++)
		turn(&p);
	assert_int_equal(p.b.nev, 0);
	link_up(&p, &l);
	link_down(&p, &l);
}

/* No call goes to the kernel for a queue pair that another connection owns. */
T(test_qp_of_a_connection_is_refused)
{
	struct bb_conn *a, *b, *none = NULL;
	struct bb_qp *other;
	struct link l;

	link_up(&p, &l);
	assert_int_equal(
		bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, l.qa, &p.a.param, &none),
		-EBUSY);
	other = end_qp(&p.a);
	a = call(&p, other);
	assert_int_equal(
		bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, other, &p.a.param, &none),
		-EBUSY);
	assert_null(none);
	b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	assert_int_equal(bb_conn_accept(b, l.qb, &p.b.param), -EBUSY);
	assert_int_equal(bb_conn_accept(b, other, &p.b.param), -EBUSY);
	assert_int_equal(l.qa->state, BB_QP_RTS);
	assert_int_equal(l.qb->state, BB_QP_RTS);
	OK(bb_conn_reject(b, NULL, 0));
	bb_conn_destroy(b);
	expect(&p, &p.a, BB_CM_REJECTED);
	OK(bb_qp_destroy(other));
	bb_conn_destroy(a);
	link_down(&p, &l);
}

TEST(test_kernel_without_rdmacm_returns_enotsup)
{
	struct bb_cm_attr attr;
	struct bb_dev *dev;
	struct bb_cm *cm;

	OK(bb_dev_open("soft0", &dev));
	bb_cm_attr_init(&attr);
	attr.transport = BB_CM_RDMACM;
	rdmacm_subst.no_kernel = true;
	assert_int_equal(bb_cm_create(dev, &attr, &cm), -ENOTSUP);
	rdmacm_subst.no_kernel = false;
	OK(bb_dev_close(dev));
}

CONNECT_MAIN(RTE_LOG_CRIT)
