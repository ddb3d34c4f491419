/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * lib/connect by librdmacm on an iWARP device without atomics, with substitutes for librdmacm and
 * libibverbs. On iWARP receives must be posted before the peer can send, which it can from
 * rdma_connect() or rdma_accept() on: rdmacm_subst.open(). Behaviour of iWARP only is compared
 * with the same device as RoCE.
 */
#include "connect_env.h"
#include "rdmacm_subst.h"
#include "verbs_null.h"

#define RECVS 3u

static struct pair p;

/* State at the moment when the peer of @qp could send for the first time. */
static struct {
	struct bb_qp *qp;
	unsigned int times;
	enum bb_qp_state state;
	uint32_t recvs;
	void (*then)(void);
} opened;

static void
on_open(uint32_t qpn)
{
	if (opened.qp == NULL || opened.qp->qpn != qpn)
		return;
	opened.times++;
	opened.state = opened.qp->state;
	opened.recvs = null_dev.recvs;
	if (opened.then != NULL)
		opened.then();
}

static void
watch(struct bb_qp *qp, void (*then)(void))
{
	memset(&opened, 0, sizeof(opened));
	opened.qp = qp;
	opened.then = then;
	null_dev.recvs = 0;
}

static void
open_pair(bool iwarp)
{
	struct bb_cm_attr attr;

	null_reset();
	null_dev.iwarp = iwarp;
	null_dev.no_atomics = true;
	memset(&rdmacm_subst, 0, sizeof(rdmacm_subst));
	rdmacm_subst.iwarp = iwarp;
	rdmacm_subst.open = on_open;
	strcpy(rdmacm_subst.device, NULL_NAME);
	rdmacm_subst.gid[15] = 1;
	bb_cm_attr_init(&attr);
	attr.transport = BB_CM_RDMACM;
	attr.poll_us = 0;
	pair_open_with(&p, NULL_NAME, NULL, &attr);
}

static void
close_pair(void)
{
	pair_close(&p);
	assert_int_equal(rdmacm_subst.ids, 0);
	assert_int_equal(rdmacm_subst.events, 0);
	assert_int_equal(rdmacm_subst.channels, 0);
	assert_int_equal(null_dev.objects, 0);
}

static struct bb_sge
piece(void)
{
	return (struct bb_sge){(uintptr_t)p.a.buf, 64, p.a.mr->lkey};
}

static void
to_init(struct bb_qp *qp)
{
	const struct bb_sge sge = {(uintptr_t)p.a.buf, 64, 0};
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = BB_QP_INIT;
	attr.access = BB_ACCESS_REMOTE_WRITE;
	OK(bb_qp_modify(qp, &attr, BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS));
	OK(bb_post_recv(qp, 7, &sge, 1));
	bb_qp_ring_recv(qp);
}

/* ---- Endpoints */

static struct bb_ep *
make_ep(bool passive)
{
	struct bb_ep_attr attr;
	struct bb_ep *ep = NULL;
	char where[64];

	bb_ep_attr_init(&attr);
	attr.transport = BB_CM_RDMACM;
	attr.pd = p.a.pd;
	attr.timeout_ms = WAIT_S * 1000;
	attr.qp.sq_depth = 4;
	attr.qp.rq_depth = RECVS;
	snprintf(where, sizeof(where), "127.0.0.1:%u",
		 passive ? 0u : ntohs(((struct sockaddr_in *)&p.addr)->sin_port));
	OK(bb_ep_create(p.a.dev, where, passive, &attr, &ep));
	return ep;
}

static void
keep_recvs(struct bb_ep *ep)
{
	struct bb_sge sge = piece();
	uint32_t i;

	for (i = 0; i < RECVS; i++)
		OK(bb_ep_post_recvv(ep, (void *)(uintptr_t)(i + 1), &sge, 1));
}

/* Checks that the first stored receive gets a message, and that no receive was posted twice. */
static void
check_recvs(struct bb_ep *ep)
{
	struct bb_sge sge = piece();
	struct bb_wc wc;

	assert_int_equal(opened.times, 1);
	assert_int_equal(null_dev.recvs, RECVS);
	assert_int_equal(ep->qp->state, BB_QP_RTS);
	/* The null provider's queue pair is its own peer. */
	OK(bb_post_send(ep->qp, 9, &sge, 1, BB_SEND_SIGNALED));
	bb_qp_ring(ep->qp);
	assert_int_equal(bb_ep_get_recv_comp(ep, &wc), 0);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 1);
}

static struct link peer;

static void
accept_peer(void)
{
	peer.b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	OK(bb_conn_accept(peer.b, peer.qb, &p.b.param));
}

/* Without parameters an endpoint asks for no right that the device lacks. */
TEST(test_ep_connect_posts_receives_before_the_peer_can_send)
{
	struct bb_ep *ep;
	int iwarp;

	for (iwarp = 0; iwarp < 2; iwarp++) {
		open_pair(iwarp != 0);
		peer.qb = end_qp(&p.b);
		ep = make_ep(false);
		watch(ep->qp, accept_peer);
		keep_recvs(ep);
		OK(bb_ep_connect(ep, NULL));
		assert_int_equal(opened.state, iwarp ? BB_QP_INIT : BB_QP_RESET);
		assert_int_equal(opened.recvs, iwarp ? RECVS : 0);
		check_recvs(ep);
		expect(&p, &p.b, BB_CM_ESTABLISHED);
		OK(bb_ep_destroy(ep));
		expect(&p, &p.b, BB_CM_DISCONNECTED);
		bb_conn_destroy(peer.b);
		OK(bb_qp_destroy(peer.qb));
		close_pair();
	}
}

static void
caller_hears(void)
{
	expect(&p, &p.a, BB_CM_ESTABLISHED);
}

TEST(test_ep_accept_posts_receives_before_the_peer_can_send)
{
	struct bb_ep *listener, *ep;
	uint64_t end;
	int iwarp;

	for (iwarp = 0; iwarp < 2; iwarp++) {
		open_pair(iwarp != 0);
		listener = make_ep(true);
		((struct sockaddr_in *)&p.addr)->sin_port = htons(bb_ep_port(listener));
		peer.qa = end_qp(&p.a);
		watch(peer.qa, NULL);
		peer.a = call(&p, peer.qa);
		for (end = wait_end(); opened.times == 0; turn(&p))
			assert_true(rte_get_tsc_cycles() < end);
		OK(bb_ep_get_request(listener, &ep));
		watch(ep->qp, caller_hears);
		keep_recvs(ep);
		OK(bb_ep_accept(ep, NULL));
		assert_int_equal(opened.state, iwarp ? BB_QP_INIT : BB_QP_RTS);
		assert_int_equal(opened.recvs, iwarp ? RECVS : 0);
		check_recvs(ep);
		bb_conn_destroy(peer.a);
		OK(bb_qp_destroy(peer.qa));
		OK(bb_ep_destroy(ep));
		OK(bb_ep_destroy(listener));
		close_pair();
	}
}

/* ---- Connections */

/* A QP with posted receives is in INIT; only iWARP accepts it, on both sides. */
TEST(test_qp_in_init_is_accepted_on_iwarp_only)
{
	struct bb_qp_attr attr;
	struct bb_conn *c = NULL;
	struct link l;
	int iwarp;

	for (iwarp = 0; iwarp < 2; iwarp++) {
		open_pair(iwarp != 0);
		l.qa = end_qp(&p.a);
		l.qb = end_qp(&p.b);
		watch(l.qa, NULL);
		to_init(l.qa);
		if (iwarp == 0) {
			assert_int_equal(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, l.qa,
							 &p.a.param, &c),
					 -EINVAL);
			assert_null(c);
			bb_qp_attr_init(&attr);
			attr.state = BB_QP_RESET;
			OK(bb_qp_modify(l.qa, &attr, BB_QP_STATE));
		}
		l.a = call(&p, l.qa);
		l.b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
		assert_int_equal(opened.times, 1);
		assert_int_equal(opened.state, iwarp ? BB_QP_INIT : BB_QP_RESET);
		assert_int_equal(opened.recvs, 1);
		watch(l.qb, NULL);
		to_init(l.qb);
		if (iwarp == 0) {
			assert_int_equal(bb_conn_accept(l.b, l.qb, &p.b.param), -EINVAL);
			OK(bb_qp_modify(l.qb, &attr, BB_QP_STATE));
		}
		OK(bb_conn_accept(l.b, l.qb, &p.b.param));
		assert_int_equal(opened.times, 1);
		assert_int_equal(opened.recvs, 1);
		assert_int_equal(l.qb->state, BB_QP_RTS);
		both_established(&p);
		assert_int_equal(l.qa->state, BB_QP_RTS);
		link_down(&p, &l);
		close_pair();
	}
}

/*
 * A failed accept leaves a queue pair that can be used again, after its receives are posted
 * again.
 */
TEST(test_failed_accept_leaves_a_usable_qp)
{
	struct link l;
	struct bb_wc wc;
	int iwarp;

	for (iwarp = 0; iwarp < 2; iwarp++) {
		open_pair(iwarp != 0);
		watch(NULL, NULL);
		link_call(&p, &l);
		if (iwarp)
			to_init(l.qb);
		rdmacm_subst.accept_error = ENOMEM;
		assert_int_equal(bb_conn_accept(l.b, l.qb, &p.b.param), -ENOMEM);
		assert_int_equal(l.qb->state, BB_QP_RESET);
		assert_int_equal(bb_cq_poll(p.b.cq, &wc, 1), 0);
		if (iwarp)
			to_init(l.qb);
		OK(bb_conn_accept(l.b, l.qb, &p.b.param));
		assert_int_equal(l.qb->state, BB_QP_RTS);
		both_established(&p);
		link_down(&p, &l);
		close_pair();
	}
}

#define IWARP_TEST(name) TEST_BETWEEN(open_pair(true), close_pair(), name)

/* A QP in another state is refused, on iWARP, too. */
IWARP_TEST(test_qp_in_err_is_refused)
{
	struct bb_qp_attr attr;
	struct bb_conn *c = NULL;
	struct bb_qp *qp;

	qp = end_qp(&p.a);
	to_init(qp);
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(qp, &attr, BB_QP_STATE));
	assert_int_equal(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, qp, &p.a.param, &c),
			 -EINVAL);
	assert_null(c);
	OK(bb_qp_destroy(qp));
}

/* A refused TCP connection is a rejection; another error is not. */
IWARP_TEST(test_refused_tcp_connection_is_a_rejection)
{
	struct bb_cm_event ev;
	struct bb_conn *a;
	struct bb_ep *ep;
	struct bb_qp *qp;

	watch(NULL, NULL);
	((struct sockaddr_in *)&p.addr)->sin_port = htons(7);
	qp = end_qp(&p.a);
	a = call(&p, qp);
	ev = expect(&p, &p.a, BB_CM_REJECTED);
	assert_ptr_equal(ev.conn, a);
	assert_int_equal(ev.reason, BB_REJECT_NO_LISTENER);
	bb_conn_destroy(a);
	OK(bb_qp_destroy(qp));

	qp = end_qp(&p.a);
	rdmacm_subst.connect_error = ENETUNREACH;
	a = call(&p, qp);
	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -ENETUNREACH);
	bb_conn_destroy(a);
	OK(bb_qp_destroy(qp));

	ep = make_ep(false);
	assert_int_equal(bb_ep_connect(ep, NULL), -ECONNREFUSED);
	assert_int_equal(ep->event.type, BB_CM_REJECTED);
	assert_int_equal(ep->event.reason, BB_REJECT_NO_LISTENER);
	OK(bb_ep_destroy(ep));
}

IWARP_TEST(test_accept_of_a_closed_peer_returns_enotconn)
{
	struct link l;

	watch(NULL, NULL);
	link_call(&p, &l);
	bb_conn_destroy(l.a);
	assert_int_equal(bb_conn_accept(l.b, l.qb, &p.b.param), -ENOTCONN);
	link_end(&l, l.b);
}

TEST(test_read_depths_are_agreed_for_each_direction)
{
	struct bb_conn_info a, b;
	struct link l;
	int iwarp;

	for (iwarp = 0; iwarp < 2; iwarp++) {
		open_pair(iwarp != 0);
		watch(NULL, NULL);
		p.a.param.initiator_depth = 2;
		p.a.param.responder_resources = 4;
		p.b.param.initiator_depth = 8;
		p.b.param.responder_resources = 8;
		link_up(&p, &l);
		bb_conn_query(l.a, &a);
		bb_conn_query(l.b, &b);
		assert_int_equal(a.initiator_depth, 2);
		assert_int_equal(a.responder_resources, 4);
		assert_int_equal(b.initiator_depth, 4);
		assert_int_equal(b.responder_resources, 2);
		link_down(&p, &l);
		close_pair();
	}
}

/* ---- RoCE by messages over TCP: a thread asks the kernel for the peer's address */

static unsigned int ahs;

static void
on_ah(void)
{
	__atomic_add_fetch(&ahs, 1, __ATOMIC_RELAXED);
}

TEST(test_kernel_is_asked_before_a_request_is_reported)
{
	struct bb_cm_attr attr;
	struct link l;
	unsigned int i;

	null_reset();
	null_dev.no_atomics = true;
	null_dev.on_ah = on_ah;
	bb_cm_attr_init(&attr);
	attr.poll_us = 0;
	pair_open_with(&p, NULL_NAME, NULL, &attr);
	ahs = 0;
	/* bb_conn_accept() uses the answer, and so does each later connection. */
	for (i = 0; i < 3; i++) {
		link_up(&p, &l);
		assert_int_equal(__atomic_load_n(&ahs, __ATOMIC_RELAXED), 1);
		link_down(&p, &l);
	}
	pair_close(&p);
	assert_int_equal(null_dev.objects, 0);
}

TEST_MAIN(bare_eal_init() < 0 ? 77 : 0)
