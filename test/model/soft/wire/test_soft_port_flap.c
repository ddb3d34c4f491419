/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The option flap on an ethdev, in real time. Tests that must know the port's state use an hour
 * up and an hour down, and the test shifts the start time. The option is on device 0's port.
 */
#include <unistd.h>

#include "../../../fakes/bare_eal.h"
#include "../../../unit/soft/net/frames.h"
#include "bb_cqe.h"
#include "ring_pair_env.h"
#include "soft_ctl.h"
#include "soft_wire.h"

#define LEN    3000u /* three packets */
#define COOKIE 7u
#define HOUR   UINT64_C(3600000000000)
#define HOURS  ",flap=3600000:3600000"

static struct rte_mempool *pool;

static void
open_both(const char *more)
{
	struct rig_link l = rig_link_default();
	uint32_t i;

	l.retry = 7;
	l.timeout = 10; /* 4 ms, eight times */
	open_side(0, more);
	open_side(1, "");
	for (i = 0; i < 2; i++)
		rig_qp_up(&s[i].q, &s[1 - i].d, s[1 - i].q.qpn, &l);
	rig_subscribe(&s[0].d, NULL, BB_PRM_EVENT_PORT_CHANGE, COOKIE);
}

static struct soft_dev *
flapping(void)
{
	return soft_ctx(s[0].d.ctx)->dev;
}

static uint64_t
lost(void)
{
	return __atomic_load_n(&flapping()->lost[SOFT_LOST_PORT_DOWN], __ATOMIC_RELAXED);
}

static enum bb_port_state
state(void)
{
	struct mlx5_port port;

	OK(soft_cmd_if.port_query(s[0].d.ctx, 1, &port));
	return port.state;
}

/* Returns true if the port has an event, and stores it in *change. */
static bool
changed(uint8_t *change)
{
	struct mlx5_cmd_event e;

	if (soft_cmd_if.event_get(s[0].d.ctx, &e) != 0)
		return false;
	assert_int_equal(e.type, BB_PRM_EVENT_PORT_CHANGE);
	assert_int_equal(e.cookie, COOKIE);
	assert_int_equal(e.port, 1);
	*change = e.change;
	return true;
}

/* Lets an hour pass. The device is not polled, but a query reports the new state. */
static void
hour(enum bb_port_state becomes)
{
	uint64_t end = rig_now_us() + RIG_WAIT_US;
	uint8_t change = 0;

	assert_int_not_equal(state(), becomes);
	assert_false(changed(&change));
	flapping()->flap.start -= HOUR;
	while (state() != becomes)
		assert_true(rig_now_us() < end);
	assert_true(changed(&change));
	assert_int_equal(change, becomes == BB_PORT_DOWN ? BB_PRM_PORT_CHANGE_DOWN
							 : BB_PRM_PORT_CHANGE_ACTIVE);
	assert_false(changed(&change));
}

static void
post(uint32_t i, uint32_t len)
{
	rig_write(&s[i].q, &s[i].m, 0, len, &s[1 - i].m, MEM / 2, RIG_CQE);
	rig_ring(&s[i].q);
}

static void
polls(uint32_t n)
{
	while (n-- != 0) {
		rig_poll(&s[0].u);
		rig_poll(&s[1].u);
	}
}

/* Returns 0 or the syndrome of the next completion of @i. */
static uint8_t
result(uint32_t i)
{
	uint64_t end = rig_now_us() + RIG_WAIT_US;
	struct rig_cqe e;

	while (!rig_cqe(&s[i].c, &e)) {
		assert_true(rig_now_us() < end);
		polls(1);
	}
	assert_int_equal(e.counter, s[i].q.last);
	return e.opcode == BB_CQE_REQ ? 0 : e.syndrome;
}

/* Checks that a WRITE with new bytes arrives. */
static void
write_one(uint32_t i)
{
	static uint8_t n;

	memset(s[i].m.p, ++n, LEN);
	post(i, LEN);
	assert_int_equal(result(i), 0);
	assert_memory_equal(s[1 - i].m.p + MEM / 2, s[i].m.p, LEN);
}

/* Sends a neighbour request for the address of device 0. */
static void
ask(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct frame f;

	assert_non_null(m);
	arp(&f, MAC_ALL, 1, MAC_PEER, "192.0.2.9", "\0\0\0\0\0\0", "192.0.2.1");
	memcpy(rte_pktmbuf_append(m, (uint16_t)f.len), f.b, f.len);
	assert_int_equal(rte_ring_enqueue(s[0].in, m), 0);
}

#define T(options, name) TEST_BETWEEN(open_both(options), close_both(), name)

/*
 * While the port is down no packet is sent or received, all of them are counted, and later
 * traffic resumes.
 */
T(HOURS, test_port_that_is_down_passes_no_packet)
{
	uint64_t before;
	uint8_t old[8];

	write_one(0);
	write_one(1);
	polls(10);
	assert_int_equal(lost(), 0);
	hour(BB_PORT_DOWN);
	/* Sent: short and long messages, and an answer to a neighbour request. */
	post(0, 8);
	post(0, LEN);
	rig_polls(&s[0].u, 10);
	before = lost();
	assert_true(before >= 4);
	ask();
	rig_polls(&s[0].u, 10);
	assert_true(lost() >= before + 1);
	assert_int_equal(rte_ring_count(s[1].in), 0);
	/* Received packets. */
	memcpy(old, s[0].m.p + MEM / 2, 8);
	memset(s[1].m.p, old[0] + 1, 8);
	post(1, 8);
	rig_poll(&s[1].u);
	assert_int_equal(rte_ring_count(s[0].in), 1);
	rig_polls(&s[0].u, 10);
	assert_int_equal(rte_ring_count(s[0].in), 0);
	assert_int_equal(rte_ring_count(s[1].in), 0);
	assert_memory_equal(s[0].m.p + MEM / 2, old, 8);
	hour(BB_PORT_ACTIVE);
}

/*
 * The port is down for less than the retries last: the requests succeed. It is up for most of the
 * time, so that a thread that runs at intervals does not meet only a port that is down.
 */
T(",flap=40:3", test_short_outage_fails_no_request)
{
	uint64_t end = rig_now_us() + RIG_WAIT_US;
	uint8_t change, last = UINT8_MAX;
	uint32_t i, changes = 0;

	for (i = 0; i < 20 || changes < 6 || lost() == 0; i++) {
		assert_true(rig_now_us() < end);
		write_one(i % 2);
		usleep(500);
		/* The events alternate; a thread that is late has missed two of them. */
		for (; changed(&change); changes++) {
			assert_int_not_equal(change, last);
			last = change;
		}
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(rig_qp_state(&s[i].q), BB_PRM_QP_RTS);
}

/* The port is down for longer: neither side gets an ACK. */
T(HOURS, test_long_outage_fails_both_sides)
{
	uint32_t i;

	write_one(0);
	hour(BB_PORT_DOWN);
	for (i = 0; i < 2; i++) {
		post(i, LEN);
		assert_int_equal(result(i), BB_SYN_RETRY_EXC);
		assert_int_equal(rig_qp_state(&s[i].q), BB_PRM_QP_ERR);
	}
}

int
main(void)
{
	if (bare_eal_init() < 0)
		return 77;
	pool = rte_pktmbuf_pool_create("test", 63, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
	if (pool == NULL)
		return 1;
	if (!make_rings())
		return 1;
	return bb_test_run(__FILE__, NULL, NULL);
}
