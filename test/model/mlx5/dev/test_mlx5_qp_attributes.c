/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Effects of QP attributes: path MTU and PSNs, timeouts and retries. Time bounds hold on a loaded
 * machine: never too early, late only by the time limit of a hanging test.
 */
#include "../mlx5_env.h"

static void
reset(struct bb_qp *qp)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = BB_QP_RESET;
	OK(bb_qp_modify(qp, &attr, BB_QP_STATE));
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

	OK(bb_post_write(e->a.qp, 7, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey, BB_SEND_SIGNALED));
	env_done(e, &e->a, 7, status);
	return now_ns() - start;
}

#define T(name) TEST_ON_AS(struct env, e, env_open(e); env_qps(e), env_stop(e), name)

/* A message consumes one PSN per packet of the path MTU; QUERY_QP shows both. */
T(test_message_takes_one_psn_per_packet_of_the_path_mtu)
{
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};
	static const uint32_t lens[] = {0, 1, 255, 256, 257, 4096, 4097, 65536};
	size_t i, k;

	for (i = 0; i < RTE_DIM(mtus); i++) {
		struct bb_qp_addr a, b;

		reset(e->a.qp);
		reset(e->b.qp);
		OK(bb_qp_addr(e->a.qp, 1, 0, &a));
		OK(bb_qp_addr(e->b.qp, 1, 0, &b));
		/* The PSN wraps during the message. The smaller MTU of the two sides counts. */
		a.psn = 0xffffff;
		a.mtu = (uint16_t)mtus[i];
		OK(bb_qp_connect(e->a.qp, &a, &b, &e->attr));
		OK(bb_qp_connect(e->b.qp, &b, &a, &e->attr));
		for (k = 0; k < RTE_DIM(lens); k++) {
			uint32_t packets = lens[k] == 0 ? 1 : (lens[k] + mtus[i] - 1) / mtus[i];
			struct bb_qp_attr before, after, peer;

			OK(bb_qp_query(e->a.qp, &before));
			assert_int_equal(before.path_mtu, mtus[i]);
			(void)write_ns(e, lens[k], BB_WC_SUCCESS);
			OK(bb_qp_query(e->a.qp, &after));
			OK(bb_qp_query(e->b.qp, &peer));
			assert_int_equal(after.sq_psn, (before.sq_psn + packets) & 0xffffff);
			assert_int_equal(peer.rq_psn, after.sq_psn);
		}
	}
}

/* RTR with a path MTU above the port's is refused, and the QP can still be moved from INIT. */
T(test_path_mtu_above_the_ports_is_refused)
{
	struct bb_qp_addr a, b;

	OK(bb_qp_addr(e->a.qp, 1, 0, &a));
	OK(bb_qp_addr(e->b.qp, 1, 0, &b));
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
T(test_silent_peer_is_tried_retry_cnt_times)
{
	struct bb_dev_stats s0, s1;
	uint32_t timeout, retry;

	for (timeout = 1; timeout <= 9; timeout += 4) {
		for (retry = 0; retry <= 7; retry += 7) {
			uint64_t ns;

			e->attr.timeout = (uint8_t)timeout;
			e->attr.retry_cnt = (uint8_t)retry;
			reconnect(e);
			reset(e->b.qp);
			OK(bb_dev_stats(e->a.dev, &s0));
			ns = write_ns(e, 64, BB_WC_RETRY_EXC_ERR);
			OK(bb_dev_stats(e->a.dev, &s1));
			assert_true(ns >= (retry + 1) * (4096ull << timeout));
			assert_int_equal(s1.ack_timeout - s0.ack_timeout, retry + 1);
			assert_int_equal(s1.retry_exceeded - s0.retry_exceeded, 1);
			assert_int_equal(e->a.qp->state, BB_QP_ERR);
		}
	}
}

/* timeout 0: no attempt is repeated, and the request waits until the QP is reset. */
T(test_timeout_0_waits_until_the_reset)
{
	struct bb_qp_addr a, b;
	struct bb_sge sge;
	struct bb_wc wc;

	e->attr.timeout = 0;
	e->attr.retry_cnt = 0;
	OK(bb_qp_addr(e->a.qp, 1, 0, &a));
	OK(bb_qp_addr(e->b.qp, 1, 0, &b));
	OK(bb_qp_connect(e->a.qp, &a, &b, &e->attr));
	sge = sge_of(&e->a, 0, 8);
	OK(bb_post_write(e->a.qp, 1, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey, BB_SEND_SIGNALED));
	bb_qp_ring(e->a.qp);
	env_silent(e, &e->a);
	reset(e->a.qp);
	assert_int_equal(bb_cq_poll(e->a.cq, &wc, 1), 0);
}

TEST_MAIN(env_eal_init("life"))
