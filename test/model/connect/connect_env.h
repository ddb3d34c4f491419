/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Both sides of connections in one process: one CM listens, another connects, and one thread
 * polls both CMs and their device in turn.
 */
#ifndef CONNECT_ENV_H
#define CONNECT_ENV_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include "../../fakes/bare_eal.h"
#include "bb_test_on.h"
#include "bluebell.h"

#define WAIT_S 30
#define EVENTS 16
#define BUF    65536
#define ALL                                                                                        \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC)

/* Returns true if the program runs its tests by BB_CM_IB: the environment has BB_TEST_CM=ib. */
static inline bool
by_ib(void)
{
	const char *cm = getenv("BB_TEST_CM");

	return cm != NULL && strcmp(cm, "ib") == 0;
}

/* One side of a connection. */
struct end {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_cm *cm;
	struct bb_mr *mr;
	uint8_t *buf;
	struct bb_qp_init_attr init;
	struct bb_conn_param param;
	/* Events that were polled and not yet expected by the test. */
	struct bb_cm_event ev[EVENTS];
	unsigned int nev;
};

struct pair {
	struct end a, b; /* a connects, b listens */
	struct bb_listener *listener;
	struct sockaddr_storage addr;
};

static inline uint64_t
wait_end(void)
{
	return rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();
}

static inline void
end_open(struct end *e, struct bb_dev *dev, const struct bb_cm_attr *attr)
{
	struct bb_dev_attr dev_attr;
	struct bb_cq_attr cq;
	uint32_t access = ALL;

	OK(bb_dev_query(dev, &dev_attr));
	if (!dev_attr.atomics)
		access &= ~(uint32_t)BB_ACCESS_REMOTE_ATOMIC;
	memset(e, 0, sizeof(*e));
	e->dev = dev;
	OK(bb_pd_alloc(dev, &e->pd));
	bb_cq_attr_init(&cq);
	cq.depth = dev_attr.max_cqe < 4096 ? dev_attr.max_cqe : 4096;
	OK(bb_cq_create(dev, &cq, &e->cq));
	OK(bb_cm_create(dev, attr, &e->cm));
	e->buf = rte_zmalloc("connect", BUF, 4096);
	assert_non_null(e->buf);
	OK(bb_mr_reg(e->pd, e->buf, BUF, access, &e->mr));
	bb_qp_init_attr_init(&e->init);
	e->init.send_cq = e->cq;
	e->init.recv_cq = e->cq;
	e->init.sq_depth = 16;
	e->init.rq_depth = 16;
	bb_conn_param_init(&e->param);
	e->param.access = access & ~(uint32_t)BB_ACCESS_LOCAL_WRITE;
	e->param.timeout_ms = WAIT_S * 1000;
}

static inline void
end_close(struct end *e)
{
	struct bb_cm_stats stats;

	bb_cm_stats(e->cm, &stats);
	assert_int_equal(stats.conns, 0);
	assert_int_equal(stats.half_open, 0);
	OK(bb_cm_destroy(e->cm));
	OK(bb_cq_destroy(e->cq));
	OK(bb_mr_dereg(e->mr));
	OK(bb_pd_free(e->pd));
	rte_free(e->buf);
}

/*
 * Returns the address of a device, with port 0: BB_CM_IB knows the addresses of the device, TCP
 * those of the machine.
 */
static inline void
dev_address(struct bb_dev *dev, enum bb_cm_transport transport, struct sockaddr_storage *addr)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	struct bb_gid_want want;
	struct bb_gid gid;
	uint8_t index;

	OK(bb_cm_addr("127.0.0.1:0", addr));
	if (transport != BB_CM_IB)
		return;
	bb_gid_want_init(&want);
	want.family = BB_GID_IPV4;
	OK(bb_gid_choose(dev, 1, &want, &index));
	OK(bb_gid_query(dev, 1, index, &gid));
	memcpy(&v4->sin_addr, gid.raw + 12, 4);
}

static inline void
pair_open_with(struct pair *p, const char *dev_a, const char *dev_b, struct bb_cm_attr *attr)
{
	struct bb_dev *a, *b;

	memset(p, 0, sizeof(*p));
	OK(bb_dev_open(dev_a, &a));
	b = a;
	if (dev_b != NULL)
		OK(bb_dev_open(dev_b, &b));
	end_open(&p->a, a, attr);
	end_open(&p->b, b, attr);
	dev_address(b, attr->transport, &p->addr);
	OK(bb_listener_create(p->b.cm, (struct sockaddr *)&p->addr, &p->listener));
	((struct sockaddr_in *)&p->addr)->sin_port = htons(bb_listener_port(p->listener));
}

static inline void
pair_open(struct pair *p)
{
	struct bb_cm_attr attr;

	bb_cm_attr_init(&attr);
	attr.poll_us = 0;
	if (by_ib())
		attr.transport = BB_CM_IB;
	pair_open_with(p, "soft0", NULL, &attr);
}

static inline void
pair_close(struct pair *p)
{
	struct bb_dev *a = p->a.dev, *b = p->b.dev;

	OK(bb_listener_destroy(p->listener));
	end_close(&p->a);
	end_close(&p->b);
	OK(bb_dev_close(a));
	if (b != a)
		OK(bb_dev_close(b));
}

/* Polls both sides once. */
static inline void
turn(struct pair *p)
{
	struct end *ends[] = {&p->a, &p->b};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct end *e = ends[i];

		bb_dev_progress(e->dev);
		if (e->nev < EVENTS)
			e->nev += bb_cm_poll(e->cm, &e->ev[e->nev], 1);
	}
}

static inline bool
take(struct end *e, struct bb_cm_event *ev)
{
	if (e->nev == 0)
		return false;
	*ev = e->ev[0];
	e->nev--;
	memmove(e->ev, e->ev + 1, e->nev * sizeof(e->ev[0]));
	return true;
}

/* Waits for the next event of a side, which must be of type @type. */
static inline struct bb_cm_event
expect(struct pair *p, struct end *e, enum bb_cm_event_type type)
{
	const uint64_t end = wait_end();
	struct bb_cm_event ev;

	while (!take(e, &ev)) {
		turn(p);
		if (rte_get_tsc_cycles() > end)
			fail_msg("\"%s\" does not come", bb_cm_event_name(type));
	}
	if (ev.type != type)
		fail_msg("\"%s\" (%d: %s), not \"%s\"", bb_cm_event_name(ev.type), ev.status,
			 ev.why, bb_cm_event_name(type));
	return ev;
}

static inline struct bb_qp *
end_qp(struct end *e)
{
	struct bb_qp *qp = NULL;

	OK(bb_qp_create(e->pd, &e->init, &qp));
	return qp;
}

static inline struct bb_conn *
call(struct pair *p, struct bb_qp *qp)
{
	struct bb_conn *c = NULL;

	OK(bb_conn_connect(p->a.cm, (struct sockaddr *)&p->addr, qp, &p->a.param, &c));
	return c;
}

struct link {
	struct bb_conn *a, *b;
	struct bb_qp *qa, *qb;
};

/* Connects two new QPs up to the request that b has to accept. */
static inline void
link_call(struct pair *p, struct link *l)
{
	l->qa = end_qp(&p->a);
	l->qb = end_qp(&p->b);
	l->a = call(p, l->qa);
	l->b = expect(p, &p->b, BB_CM_CONNECT_REQUEST).conn;
}

static inline void
both_established(struct pair *p)
{
	expect(p, &p->a, BB_CM_ESTABLISHED);
	expect(p, &p->b, BB_CM_ESTABLISHED);
}

/* Makes a connection. */
static inline void
link_up(struct pair *p, struct link *l)
{
	link_call(p, l);
	OK(bb_conn_accept(l->b, l->qb, &p->b.param));
	assert_ptr_equal(expect(p, &p->a, BB_CM_ESTABLISHED).conn, l->a);
	assert_ptr_equal(expect(p, &p->b, BB_CM_ESTABLISHED).conn, l->b);
}

/* Destroys the connection that is left of a link, and the QPs. */
static inline void
link_end(struct link *l, struct bb_conn *left)
{
	bb_conn_destroy(left);
	OK(bb_qp_destroy(l->qa));
	OK(bb_qp_destroy(l->qb));
}

static inline void
link_free(struct link *l)
{
	bb_conn_destroy(l->a);
	link_end(l, l->b);
}

static inline void
link_down(struct pair *p, struct link *l)
{
	OK(bb_conn_disconnect(l->a, NULL, 0));
	expect(p, &p->b, BB_CM_DISCONNECTED);
	expect(p, &p->a, BB_CM_DISCONNECTED);
	link_free(l);
}

static inline enum bb_conn_state
conn_state(const struct bb_conn *c)
{
	struct bb_conn_info info;

	bb_conn_query(c, &info);
	return info.state;
}

/* Names b's buffer in @r, which b offers to its peers as "buf". */
static inline void
name_buffer(struct pair *p, struct bb_region *r)
{
	OK(bb_region_of(p->b.mr, "buf", 0, 0, r));
	/* BB_CM_IB does not send regions. */
	if (by_ib())
		return;
	p->b.param.regions = r;
	p->b.param.nregions = 1;
}

/* Checks private data: with BB_CM_IB it is padded with zeros to the size of the field, @field. */
static inline void
check_private(const struct bb_cm_event *ev, const char *text, uint32_t field)
{
	const uint8_t *data = ev->private_data;
	const uint32_t len = (uint32_t)strlen(text);

	assert_int_equal(ev->private_len, by_ib() ? field : len);
	assert_memory_equal(data, text, len);
	for (uint32_t i = len; i < ev->private_len; i++)
		assert_int_equal(data[i], 0);
}

/* Writes from a to b's region "buf" and checks the byte there. */
static inline void
writes(struct pair *p, struct link *l, uint8_t byte)
{
	const uint64_t end = wait_end();
	struct bb_region r;
	struct bb_sge sge;
	struct bb_wc wc;

	if (by_ib())
		OK(bb_region_of(p->b.mr, "buf", 0, 0, &r));
	else
		OK(bb_conn_region(l->a, "buf", &r));
	memset(p->a.buf, byte, 64);
	memset(p->b.buf, 0, 64);
	sge = (struct bb_sge){(uintptr_t)p->a.buf, 64, p->a.mr->lkey};
	OK(bb_post_write(l->qa, 1, &sge, 1, r.addr, r.rkey, BB_SEND_SIGNALED));
	bb_qp_ring(l->qa);
	while (bb_cq_poll(p->a.cq, &wc, 1) == 0) {
		turn(p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	/* UC has no ack, so the data may arrive after the completion. */
	while (p->a.init.type == BB_QPT_UC && p->b.buf[63] != byte) {
		turn(p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(p->b.buf[0], byte);
	assert_int_equal(p->b.buf[63], byte);
}

/* A test between @open and pair_close(); the file has the pair p. */
#define PAIR_TEST(open, name) TEST_BETWEEN(open, pair_close(&p), name)

/* main() of a program whose tests log at @level at least. */
#define CONNECT_MAIN(level)                                                                        \
	int main(void)                                                                             \
	{                                                                                          \
		if (bare_eal_init() < 0)                                                           \
			return 77;                                                                 \
		rte_log_set_global_level(level);                                                   \
		return bb_test_run(__FILE__, NULL, NULL);                                          \
	}

#endif
