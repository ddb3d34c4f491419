/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Effects of QP attributes: path MTU and PSNs, timeouts and retries, RNR, access rights changed
 * in RTS, and the event of a first message. Time bounds hold on a loaded machine: never too
 * early, late only by the time limit of a hanging test.
 */
#include "../mlx5_env.h"

static int
setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	*state = e;
	if (e == NULL)
		return -1;
	env_open(e);
	env_qps(e);
	return 0;
}

static int
teardown(void **state)
{
	struct env *e = *state;

	env_stop(e);
	free(e);
	return 0;
}

static void
reset(struct bb_qp *qp)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = BB_QP_RESET;
	assert_int_equal(bb_qp_modify(qp, &attr, BB_QP_STATE), 0);
}

static void
reconnect(struct env *e)
{
	reset(e->a.qp);
	reset(e->b.qp);
	connect_pair(e->a.qp, e->b.qp, &e->attr);
}

static uint64_t
now_ns(void)
{
	return (uint64_t)((double)rte_get_timer_cycles() * 1e9 / (double)rte_get_timer_hz());
}

/* Returns the nanoseconds until one WRITE of @len bytes completes with @status. */
static uint64_t
write_ns(struct env *e, uint32_t len, enum bb_wc_status status)
{
	struct bb_sge sge = sge_of(&e->a, 0, len);
	uint64_t start = now_ns();
	struct bb_wc wc;

	assert_int_equal(bb_post_write(e->a.qp, 7, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey,
				       BB_SEND_SIGNALED),
			 0);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, &wc, 1);
	expect(&wc, e->a.qp, 7, status);
	return now_ns() - start;
}

#define T(name) TEST_WITH(setup, teardown, name)

/* A message consumes one PSN per packet of the path MTU; QUERY_QP shows both. */
T(path_mtu)
{
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};
	static const uint32_t lens[] = {0, 1, 255, 256, 257, 4096, 4097, 65536};
	struct env *e = *state;
	size_t i, k;

	for (i = 0; i < RTE_DIM(mtus); i++) {
		struct bb_qp_addr a, b;

		reset(e->a.qp);
		reset(e->b.qp);
		assert_int_equal(bb_qp_addr(e->a.qp, 1, 0, &a), 0);
		assert_int_equal(bb_qp_addr(e->b.qp, 1, 0, &b), 0);
		/* The PSN wraps during the message. The smaller MTU of the two sides counts. */
		a.psn = 0xffffff;
		a.mtu = (uint16_t)mtus[i];
		assert_int_equal(bb_qp_connect(e->a.qp, &a, &b, &e->attr), 0);
		assert_int_equal(bb_qp_connect(e->b.qp, &b, &a, &e->attr), 0);
		for (k = 0; k < RTE_DIM(lens); k++) {
			uint32_t packets = lens[k] == 0 ? 1 : (lens[k] + mtus[i] - 1) / mtus[i];
			struct bb_qp_attr before, after, peer;

			assert_int_equal(bb_qp_query(e->a.qp, &before), 0);
			assert_int_equal(before.path_mtu, mtus[i]);
			(void)write_ns(e, lens[k], BB_WC_SUCCESS);
			assert_int_equal(bb_qp_query(e->a.qp, &after), 0);
			assert_int_equal(bb_qp_query(e->b.qp, &peer), 0);
			assert_int_equal(after.sq_psn, (before.sq_psn + packets) & 0xffffff);
			assert_int_equal(peer.rq_psn, after.sq_psn);
		}
	}
}

/* RTR with a path MTU above the port's is refused, and the QP can still be moved from INIT. */
T(path_mtu_refused)
{
	struct env *e = *state;
	struct bb_qp_addr a, b;

	assert_int_equal(bb_qp_addr(e->a.qp, 1, 0, &a), 0);
	assert_int_equal(bb_qp_addr(e->b.qp, 1, 0, &b), 0);
	a.mtu = 8192;
	b.mtu = 8192;
	assert_int_equal(bb_qp_connect(e->a.qp, &a, &b, &e->attr), -EINVAL);
	a.mtu = 1000;
	assert_int_equal(bb_qp_connect(e->a.qp, &a, &b, &e->attr), -EINVAL);
	assert_int_equal(e->a.qp->state, BB_QP_RESET);
	connect_pair(e->a.qp, e->b.qp, &e->attr);
	(void)write_ns(e, 64, BB_WC_SUCCESS);
}

/* No peer answers: retry_cnt + 1 attempts, each of at least 4.096 us << timeout. */
T(timeouts)
{
	struct env *e = *state;
	struct bb_dev_stats s0, s1;
	uint32_t timeout, retry;

	for (timeout = 1; timeout <= 9; timeout += 4) {
		for (retry = 0; retry <= 7; retry += 7) {
			uint64_t ns;

			e->attr.timeout = (uint8_t)timeout;
			e->attr.retry_cnt = (uint8_t)retry;
			reconnect(e);
			reset(e->b.qp);
			assert_int_equal(bb_dev_stats(e->a.dev, &s0), 0);
			ns = write_ns(e, 64, BB_WC_RETRY_EXC_ERR);
			assert_int_equal(bb_dev_stats(e->a.dev, &s1), 0);
			assert_true(ns >= (retry + 1) * (4096ull << timeout));
			assert_int_equal(s1.ack_timeout - s0.ack_timeout, retry + 1);
			assert_int_equal(s1.retry_exceeded - s0.retry_exceeded, 1);
			assert_int_equal(e->a.qp->state, BB_QP_ERR);
		}
	}
}

/* timeout 0: no attempt is repeated, and the request waits until the QP is reset. */
T(no_timeout)
{
	struct bb_qp_addr a, b;
	struct env *e = *state;
	struct bb_sge sge;
	struct bb_wc wc;

	e->attr.timeout = 0;
	e->attr.retry_cnt = 0;
	assert_int_equal(bb_qp_addr(e->a.qp, 1, 0, &a), 0);
	assert_int_equal(bb_qp_addr(e->b.qp, 1, 0, &b), 0);
	assert_int_equal(bb_qp_connect(e->a.qp, &a, &b, &e->attr), 0);
	sge = sge_of(&e->a, 0, 8);
	assert_int_equal(bb_post_write(e->a.qp, 1, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey,
				       BB_SEND_SIGNALED),
			 0);
	bb_qp_ring(e->a.qp);
	env_silent(e, &e->a);
	reset(e->a.qp);
	assert_int_equal(bb_cq_poll(e->a.cq, &wc, 1), 0);
}

/*
 * No receive is posted: rnr_retry + 1 attempts. A peer that posts a receive in time gets the
 * message.
 */
T(rnr)
{
	struct env *e = *state;
	struct bb_dev_stats s0, s1, b0, b1;
	struct bb_sge sge;
	struct bb_wc wc;
	uint32_t retry;

	/* Code 1 is 0.01 ms, code 8 0.16 ms (man ibv_modify_qp). */
	for (retry = 0; retry <= 6; retry += 3) {
		uint64_t start;

		e->attr.rnr_retry = (uint8_t)retry;
		e->attr.min_rnr_timer = 8;
		reconnect(e);
		assert_int_equal(bb_dev_stats(e->a.dev, &s0), 0);
		assert_int_equal(bb_dev_stats(e->b.dev, &b0), 0);
		start = now_ns();
		assert_int_equal(bb_post_send_inline(e->a.qp, 1, "hello", 5, BB_SEND_SIGNALED), 0);
		bb_qp_ring(e->a.qp);
		env_poll(e, &e->a, &wc, 1);
		expect(&wc, e->a.qp, 1, BB_WC_RNR_RETRY_EXC_ERR);
		assert_true(now_ns() - start >= retry * 160000ull);
		assert_int_equal(bb_dev_stats(e->a.dev, &s1), 0);
		assert_int_equal(bb_dev_stats(e->b.dev, &b1), 0);
		assert_int_equal(s1.rnr_nak_retry - s0.rnr_nak_retry, retry + 1);
		assert_int_equal(b1.out_of_buffer - b0.out_of_buffer, retry + 1);
		assert_int_equal(s1.rnr_retry_exceeded - s0.rnr_retry_exceeded, 1);
	}
	/* 7 means no limit. */
	e->attr.rnr_retry = 7;
	e->attr.min_rnr_timer = 1;
	reconnect(e);
	assert_int_equal(bb_post_send_inline(e->a.qp, 2, "hello", 5, BB_SEND_SIGNALED), 0);
	bb_qp_ring(e->a.qp);
	do {
		env_silent(e, &e->a);
		assert_int_equal(bb_dev_stats(e->a.dev, &s0), 0);
	} while (s0.rnr_nak_retry - s1.rnr_nak_retry < 20);
	sge = sge_of(&e->b, 0, 64);
	assert_int_equal(bb_post_recv(e->b.qp, 3, &sge, 1), 0);
	bb_qp_ring_recv(e->b.qp);
	env_poll(e, &e->b, &wc, 1);
	expect(&wc, e->b.qp, 3, BB_WC_SUCCESS);
	assert_memory_equal(e->b.buf, "hello", 5);
	env_poll(e, &e->a, &wc, 1);
	expect(&wc, e->a.qp, 2, BB_WC_SUCCESS);
}

/* Access rights are taken from a QP in RTS and granted again. */
T(rights_in_rts)
{
	struct env *e = *state;
	struct bb_qp_attr attr;

	e->attr.access = 0;
	connect_pair(e->a.qp, e->b.qp, &e->attr);
	attr = e->attr;
	attr.access = BB_ACCESS_REMOTE_WRITE;
	assert_int_equal(bb_qp_modify(e->b.qp, &attr, BB_QP_ACCESS), 0);
	(void)write_ns(e, 64, BB_WC_SUCCESS);
	attr.access = BB_ACCESS_REMOTE_READ;
	assert_int_equal(bb_qp_modify(e->b.qp, &attr, BB_QP_ACCESS), 0);
	(void)write_ns(e, 64, BB_WC_REM_INV_REQ_ERR);
}

static void
drain_events(struct bb_dev *dev)
{
	struct bb_event ev;

	while (bb_event_get(dev, &ev) == 0)
		;
}

/* A QP in RTR accepts a message, and its owner gets one event that the QP may be moved to RTS. */
T(comm_est)
{
	const uint32_t to_rts = BB_QP_STATE | BB_QP_TIMEOUT | BB_QP_RETRY_CNT | BB_QP_RNR_RETRY |
				BB_QP_SQ_PSN | BB_QP_MAX_RD_ATOMIC;
	const uint32_t to_rtr = BB_QP_STATE | BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN |
				BB_QP_RQ_PSN | BB_QP_MAX_DEST_RD_ATOMIC | BB_QP_MIN_RNR_TIMER;
	struct bb_qp_addr a, b;
	struct env *e = *state;
	struct bb_qp_attr attr = e->attr;
	struct bb_event ev;
	struct bb_wc wc;

	assert_int_equal(bb_qp_addr(e->a.qp, 1, 0, &a), 0);
	assert_int_equal(bb_qp_addr(e->b.qp, 1, 0, &b), 0);
	assert_int_equal(bb_qp_connect(e->a.qp, &a, &b, &e->attr), 0);
	attr.state = BB_QP_INIT;
	assert_int_equal(bb_qp_modify(e->b.qp, &attr,
				      BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS),
			 0);
	attr.state = BB_QP_RTR;
	memcpy(attr.path.dgid, a.gid, sizeof(attr.path.dgid));
	attr.dest_qpn = a.qpn;
	attr.path_mtu = a.mtu;
	attr.rq_psn = a.psn;
	assert_int_equal(bb_qp_modify(e->b.qp, &attr, to_rtr), 0);
	drain_events(e->a.dev);
	drain_events(e->b.dev);
	/* A request that sends no packet does not reach the peer. */
	assert_int_equal(bb_post_nop(e->a.qp, 1, BB_SEND_SIGNALED), 0);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, &wc, 1);
	assert_int_equal(bb_event_get(e->b.dev, &ev), -EAGAIN);
	(void)write_ns(e, 64, BB_WC_SUCCESS);
	(void)write_ns(e, 64, BB_WC_SUCCESS);
	env_event(e, e->b.dev, &ev);
	assert_int_equal(ev.type, BB_EVENT_QP_COMM_EST);
	assert_ptr_equal(ev.qp, e->b.qp);
	assert_int_equal(e->b.qp->state, BB_QP_RTR);
	assert_int_equal(bb_event_get(e->b.dev, &ev), -EAGAIN);
	attr.state = BB_QP_RTS;
	attr.sq_psn = b.psn;
	assert_int_equal(bb_qp_modify(e->b.qp, &attr, to_rts), 0);
	(void)write_ns(e, 64, BB_WC_SUCCESS);
	assert_int_equal(bb_event_get(e->b.dev, &ev), -EAGAIN);
}

TEST_MAIN(env_eal_init("life"))
