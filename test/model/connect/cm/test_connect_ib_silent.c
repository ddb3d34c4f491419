/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Requests by BB_CM_IB of a host that does not answer when its MAC is asked for. The program
 * replaces the device's function that resolves the MAC.
 */
#include "soft_ctl.h"

#include "connect_ib_raw.h"

#define HALF_OPEN 256u /* default of max_half_open */

static uint8_t silent[16]; /* GID of the host without a MAC */

int __real_soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
			 const uint8_t dgid[16]);
int __wrap_soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
			 const uint8_t dgid[16]);

int
__wrap_soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
		     const uint8_t dgid[16])
{
	return memcmp(dgid, silent, sizeof(silent)) == 0
		       ? -EAGAIN
		       : __real_soft_av_ready(ctx, port, sgid_index, dgid);
}

static struct bb_cm_stats
stats(void)
{
	struct bb_cm_stats s;

	bb_cm_stats(p.b.cm, &s);
	return s;
}

/* Opens the pair and a host without a MAC, whose requests use all half-open connections. */
static void
open_full(struct raw *r)
{
	const uint64_t end = wait_end();
	struct bb_cm_attr attr;
	uint32_t sent = 0;

	bb_cm_attr_init(&attr);
	attr.transport = BB_CM_IB;
	attr.poll_us = 0;
	attr.half_open_ms = 4 * WAIT_S * 1000;
	pair_open_with(&p, "soft0", "soft1", &attr);
	assert_int_equal(attr.max_half_open, HALF_OPEN);
	raw_open(r, "soft2");
	memcpy(silent, r->gid, sizeof(silent));
	while (stats().half_open < HALF_OPEN) {
		if (sent < HALF_OPEN)
			(void)raw_connect(r, 0x100 + sent++, VALID);
		bb_qp1_poll(r->q);
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
}

static void
close_full(struct raw *r)
{
	memset(silent, 0, sizeof(silent));
	raw_close(r);
	pair_close(&p);
}

/* The host sends no more requests than fill the table. */
TEST(test_silent_host_with_all_half_open_connections_does_not_shut_out_others)
{
	struct link l;
	struct raw r;

	open_full(&r);
	link_call(&p, &l);
	assert_in_range(stats().evicted, 1, HALF_OPEN);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	both_established(&p);
	link_down(&p, &l);
	close_full(&r);
}

/* The host sends a request at each turn, and never waits for an answer. */
TEST(test_flood_of_a_silent_host_does_not_shut_out_others)
{
	const uint64_t end = wait_end();
	uint32_t qpn = 0x1000;
	struct bb_conn *a, *b;
	struct bb_cm_event ev;
	struct bb_qp *qa, *qb;
	struct raw r;
	bool room;

	open_full(&r);
	r.forgets = true;
	qa = end_qp(&p.a);
	qb = end_qp(&p.b);
	a = call(&p, qa);
	while (!take(&p.b, &ev)) {
		room = bb_ibcm_in_use(bb_qp1_lock(r.q)) < 1000;
		bb_qp1_unlock(r.q);
		if (room)
			(void)raw_connect(&r, ++qpn, VALID);
		bb_qp1_poll(r.q);
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(ev.type, BB_CM_CONNECT_REQUEST);
	b = ev.conn;
	OK(bb_conn_accept(b, qb, &p.b.param));
	both_established(&p);
	assert_in_range(stats().evicted, 1, UINT32_MAX);
	bb_conn_destroy(a);
	bb_conn_destroy(b);
	OK(bb_qp_destroy(qa));
	OK(bb_qp_destroy(qb));
	close_full(&r);
}

CONNECT_IB_MAIN
