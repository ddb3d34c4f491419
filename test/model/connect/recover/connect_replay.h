/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A connection that breaks and recovers; one side posts through a replay. */
#ifndef CONNECT_REPLAY_H
#define CONNECT_REPLAY_H

#include "connect_env.h"

static struct pair p;
static struct link l;
static struct bb_region region;

#define MAX_REPORTS 32

static struct bb_wr_end reports[MAX_REPORTS];
static unsigned int nreports;

static inline void
reported(const struct bb_wr_end *e, void *arg)
{
	assert_ptr_equal(arg, &p);
	assert_true(nreports < MAX_REPORTS);
	reports[nreports++] = *e;
}

static inline void
open_pair(const char *dev_a, const char *dev_b)
{
	struct bb_cm_attr attr;

	bb_cm_attr_init(&attr);
	attr.poll_us = 0;
	pair_open_with(&p, dev_a, dev_b, &attr);
	p.a.param.recover_ms = 4 * WAIT_S * 1000;
	p.b.param.recover_ms = 4 * WAIT_S * 1000;
	p.a.param.backoff_min_ms = 1;
	p.a.param.backoff_max_ms = 20;
	p.a.init.max_inline = 64;
	p.a.param.ack_timeout = 4;
	p.a.param.retry_count = 2;
	OK(bb_region_of(p.b.mr, "buf", 0, 4096, &region));
	p.b.param.regions = &region;
	p.b.param.nregions = 1;
}

static inline struct bb_replay *
begin(enum bb_replay_policy policy)
{
	struct bb_replay *r = NULL;

	link_up(&p, &l);
	memset(p.a.buf, 0, BUF);
	memset(p.b.buf, 0, BUF);
	OK(bb_replay_create(l.a, 16, policy, &r));
	nreports = 0;
	return r;
}

static inline struct bb_replay *
start(enum bb_replay_policy policy, const char *dev_a, const char *dev_b)
{
	open_pair(dev_a, dev_b);
	return begin(policy);
}

static inline void
stop(struct bb_replay *r)
{
	struct bb_wc wc[16];

	bb_replay_destroy(r);
	bb_conn_destroy(l.a);
	bb_conn_destroy(l.b);
	bb_qp_destroy(l.qa);
	bb_qp_destroy(l.qb);
	p.a.nev = p.b.nev = 0;
	(void)bb_cq_poll(p.a.cq, wc, 16);
	pair_close(&p);
}

/*
 * Posts an inline WRITE of @value to the region's 8-byte slot number @place, with a wrong key if
 * @bad.
 */
static inline uint32_t
put(struct bb_replay *r, uint64_t wr_id, uint64_t value, uint32_t place, uint32_t flags, bool bad,
    int *err)
{
	struct bb_sge sge = {(uintptr_t)&value, 8, 0};
	struct bb_send_wr wr = {
		.wr_id = wr_id,
		.opcode = BB_WR_RDMA_WRITE,
		.flags = flags | BB_SEND_INLINE,
		.sge = &sge,
		.nsge = 1,
	};
	struct bb_region g;

	assert_int_equal(bb_conn_region(l.a, "buf", &g), 0);
	wr.rdma.raddr = g.addr + 8 * place;
	wr.rdma.rkey = g.rkey + (bad ? 77 : 0);
	return bb_replay_post(r, &wr, 1, err);
}

static inline struct bb_wc
completion(void)
{
	const uint64_t end = wait_end();
	struct bb_wc wc;

	while (bb_cq_poll(p.a.cq, &wc, 1) == 0) {
		bb_dev_progress(p.a.dev);
		bb_dev_progress(p.b.dev);
		assert_true(rte_get_tsc_cycles() < end);
	}
	return wc;
}

/* Closes the peer and starts it again, with the region at its present address. */
static inline void
restart(struct bb_replay *r)
{
	struct bb_cm_event ev;

	bb_conn_destroy(l.b);
	bb_qp_destroy(l.qb);
	ev = expect(&p, &p.a, BB_CM_LOST);
	bb_replay_lost(r, &ev, reported, &p);
	l.b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	l.qb = end_qp(&p.b);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	assert_true(expect(&p, &p.a, BB_CM_RECOVERED).restarted);
	expect(&p, &p.b, BB_CM_ESTABLISHED);
}

/* A test of a replay r on soft0. */
#define REPLAY_TEST(policy, name)                                                                  \
	static void name##_on(struct bb_replay *r);                                                \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct bb_replay *r = start(policy, "soft0", NULL);                                \
                                                                                                   \
		name##_on(r);                                                                      \
		stop(r);                                                                           \
	}                                                                                          \
	static void name##_on(struct bb_replay *r)

#endif
