/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The order of an engine's work with a port. Posted requests are sent before received packets are
 * processed, and no timer expires before the received packets are processed. In a conversation an
 * ACK is sent after the response.
 */
#include <unistd.h>

#include "../../../fakes/bare_eal.h"
#include "bb_cqe.h"
#include "bb_roce_op.h"
#include "soft_ctl.h"
#include "soft_netif.h"
#include "soft_port_stack.h"
#include "soft_wire.h"

#include "ring_pair_env.h"

#define AT_BTH  (14 + 28)
#define TIMEOUT 4 /* 4.096 us << 4 */

static void
open_both(uint32_t timeout)
{
	struct rig_link l = rig_link_default();
	uint32_t i;

	l.timeout = timeout;
	for (i = 0; i < 2; i++)
		open_side(i, "");
	for (i = 0; i < 2; i++)
		rig_qp_up(&s[i].q, &s[1 - i].d, s[1 - i].q.qpn, &l);
}

static void
post(uint32_t i)
{
	rig_write(&s[i].q, &s[i].m, 0, 8, &s[1 - i].m, 8, RIG_CQE);
	rig_ring(&s[i].q);
}

static void
completes(uint32_t i)
{
	struct rig_cqe e;

	assert_true(rig_cqe(&s[i].c, &e));
	assert_int_equal(e.opcode, BB_CQE_REQ);
}

/* Returns the opcode of the next frame for @i. */
static uint8_t
opcode(uint32_t i)
{
	struct rte_mbuf *m;
	void *p = NULL;
	uint8_t op;

	assert_int_equal(rte_ring_dequeue(s[i].in, &p), 0);
	m = p;
	op = *rte_pktmbuf_mtod_offset(m, const uint8_t *, AT_BTH);
	rte_pktmbuf_free(m);
	return op;
}

/*
 * A message in each direction, so that both sides know the connection; this is not a conversation
 * yet.
 */
static void
warm(void)
{
	uint32_t i, k;

	for (k = 0; k < 8; k++) {
		post(k / 4);
		for (i = 0; i < 2; i++) {
			rig_polls(&s[0].u, 2);
			rig_polls(&s[1].u, 2);
		}
		completes(k / 4);
	}
	assert_int_equal(rte_ring_count(s[0].in) + rte_ring_count(s[1].in), 0);
}

#define T(timeout, name) TEST_BETWEEN(open_both(timeout), close_both(), name)

T(0, test_new_post_is_sent_before_the_ack)
{
	warm();
	post(0);
	rig_poll(&s[0].u);
	post(1);
	rig_poll(&s[1].u);
	/* Both frames were sent in one turn. */
	assert_int_equal(opcode(0), BB_ROCE_RC | BB_ROCE_WRITE_ONLY);
	assert_int_equal(opcode(0), BB_ROCE_RC | BB_ROCE_ACK);
	assert_int_equal(rte_ring_count(s[0].in), 0);
}

/*
 * The response arrived in time, but the owner polls after the timeout, with or without a new
 * post.
 */
T(TIMEOUT, test_response_in_time_prevents_a_late_timeout)
{
	uint32_t k;

	/* A single resend on a busy machine does not repeat 20 times. */
	warm();
	for (k = 0; k < 20; k++) {
		post(0);
		rig_poll(&s[0].u);
		rig_poll(&s[1].u);
		assert_int_equal(rte_ring_count(s[0].in), 1);
		usleep(2000);
		post(0);
		rig_poll(&s[0].u);
		completes(0);
		/* The new request, and no resend of the previous one. */
		assert_int_equal(rte_ring_count(s[1].in), 1);
		rig_poll(&s[1].u);
		rig_poll(&s[0].u);
		completes(0);
	}
}

/* Completions have the timestamp of the turn that made them, on every path. */
T(0, test_completions_have_the_time_of_their_turn)
{
	uint64_t before, last = 0;
	struct rig_cqe e;
	uint32_t k;

	warm();
	for (k = 0; k < 8; k++) {
		rig_recv(&s[1].q, &s[1].m, 0, 64);
		before = rte_rdtsc();
		rig_send(&s[0].q, &s[0].m, 0, 8, RIG_CQE);
		rig_ring(&s[0].q);
		rig_poll(&s[0].u);
		rig_poll(&s[1].u);
		assert_true(rig_cqe(&s[1].c, &e));
		assert_int_equal(e.opcode, BB_CQE_RESP_SEND);
		assert_in_range(e.time, before, rte_rdtsc());
		assert_true(e.time >= last);
		last = e.time;
		before = rte_rdtsc();
		rig_poll(&s[0].u);
		assert_true(rig_cqe(&s[0].c, &e));
		assert_int_equal(e.opcode, BB_CQE_REQ);
		assert_in_range(e.time, before, rte_rdtsc());
	}
}

/* Exchanges as many messages with responses as make a conversation. */
static void
talk(void)
{
	uint32_t i;

	warm();
	for (i = 0; i < SOFT_WIRE_CONVERSATION; i++) {
		post(0);
		rig_poll(&s[0].u);
		rig_poll(&s[1].u);
		post(1);
		rig_poll(&s[1].u);
		rig_polls(&s[0].u, 2);
		rig_poll(&s[1].u);
		completes(0);
		completes(1);
	}
	assert_int_equal(rte_ring_count(s[0].in) + rte_ring_count(s[1].in), 0);
}

/* Sends a message to 1 and runs its turn. Returns the number of frames that 1 sent in that turn. */
static uint32_t
ask(void)
{
	static uint64_t n = 0x0102030405060708;

	n++;
	memcpy(s[0].m.p, &n, 8);
	post(0);
	rig_poll(&s[0].u);
	rig_poll(&s[1].u);
	assert_memory_equal(s[1].m.p + 8, &n, 8);
	return rte_ring_count(s[0].in);
}

T(0, test_ack_follows_the_response_of_the_same_turn)
{
	talk();
	assert_int_equal(ask(), 0);
	post(1);
	rig_poll(&s[1].u);
	assert_int_equal(opcode(0), BB_ROCE_RC | BB_ROCE_WRITE_ONLY);
	assert_int_equal(opcode(0), BB_ROCE_RC | BB_ROCE_ACK);
	assert_int_equal(rte_ring_count(s[0].in), 0);
}

/* A response on the slow path, which may fail: the ACK is sent first. */
T(0, test_ack_precedes_a_response_that_may_fail)
{
	talk();
	assert_int_equal(ask(), 0);
	rig_write(&s[1].q, &s[0].m, 0, 8, &s[0].m, 8, RIG_CQE);
	rig_ring(&s[1].q);
	rig_poll(&s[1].u);
	assert_int_equal(rig_qp_state(&s[1].q), BB_PRM_QP_ERR);
	assert_int_equal(opcode(0), BB_ROCE_RC | BB_ROCE_ACK);
	assert_int_equal(rte_ring_count(s[0].in), 0);
}

/* Without a response the ACK is one turn late, and only once. */
T(0, test_ack_without_a_response_is_one_turn_late)
{
	talk();
	assert_int_equal(ask(), 0);
	rig_poll(&s[1].u);
	assert_int_equal(opcode(0), BB_ROCE_RC | BB_ROCE_ACK);
	assert_int_equal(ask(), 1);
	assert_int_equal(opcode(0), BB_ROCE_RC | BB_ROCE_ACK);
	assert_int_equal(ask(), 1);
}

/* A side that has its data may stop polling. */
TEST(test_ack_at_the_end)
{
	uint32_t k;

	for (k = 0; k < 3; k++) {
		open_both(0);
		talk();
		assert_int_equal(ask(), 0);
		if (k == 0)
			rig_qp_reset(&s[1].q);
		else if (k == 1)
			rig_qp_error(&s[1].q);
		else
			rig_qp_close(&s[1].q);
		assert_int_equal(rte_ring_count(s[0].in), 1);
		rig_poll(&s[0].u);
		completes(0);
		if (k == 2)
			rig_qp_open(&s[1].q, &s[1].u, &s[1].c, &s[1].c, &attr);
		close_both();
	}
}

T(0, test_last_engine_of_a_port_retains_its_lock)
{
	struct soft_dev *dev = soft_ctx(s[0].d.ctx)->dev;
	struct soft_engine *e = soft_qp_find(dev, s[0].q.qpn)->engine;
	struct rig_uar other;

	rig_uar_open(&other, &s[0].d, MLX5_UAR_BF);
	rig_poll(&s[0].u);
	assert_ptr_equal(dev->netif->lock_retainer, e);
	rig_poll(&other);
	assert_null(dev->netif->lock_retainer);
	rig_uar_close(&other);
	rig_poll(&s[0].u);
	assert_ptr_equal(dev->netif->lock_retainer, e);
}

/* The device asks for an address once; further calls look for the answer and never wait. */
TEST(test_av_ready_asks_once_and_never_waits)
{
	const uint8_t peer[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 77};
	const uint8_t nobody[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 200};
	const uint8_t far[16] = {[10] = 0xff, [11] = 0xff, 203, 0, 113, 9};
	struct soft_port_stack_stats stack;
	struct soft_port_stats port;
	struct soft_neigh_stats before, after;
	struct soft_netif *nif;
	struct mlx5_av av;
	uint32_t k;

	open_side(0, "");
	open_side(1, ",ip=192.0.2.77/24");
	nif = soft_ctx(s[0].d.ctx)->dev->netif;
	soft_port_stats(nif->port, &port, &stack, &before);
	for (k = 0; k < 100; k++)
		assert_int_equal(soft_cmd_if.av_ready(s[0].d.ctx, 1, 2, nobody), -EAGAIN);
	soft_port_stats(nif->port, &port, &stack, &after);
	assert_int_equal(after.asked - before.asked, 1);
	/* Request and answer take one poll each. */
	for (k = 0; soft_cmd_if.av_ready(s[0].d.ctx, 1, 2, peer) == -EAGAIN; k++)
		assert_true(k < 4);
	OK(soft_cmd_if.av_ready(s[0].d.ctx, 1, 2, peer));
	OK(soft_cmd_if.av_resolve(s[0].d.ctx, s[0].d.pd, 1, 2, peer, &av));
	assert_int_equal(av.dmac[5], s[1].port);
	OK(soft_cmd_if.av_ready(s[0].d.ctx, 1, 2, s[0].d.gid.raw));
	/* There is no route to the address. */
	assert_int_equal(soft_cmd_if.av_ready(s[0].d.ctx, 1, 2, far), -EHOSTUNREACH);
	close_both();
}

int
main(void)
{
	if (bare_eal_init() < 0)
		return 77;
	if (!make_rings())
		return 1;
	return bb_test_run(__FILE__, NULL, NULL);
}
