/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A peer on the shared-memory port that consumes nothing, closes its device or dies, with the test
 * as the peer.
 */
#include "shm_packet.h"

/* Acknowledges packets without consuming them, until the ring is full. */
static void
fill_ring(void)
{
	uint32_t i;

	for (i = 0; soft_ring_waiting(&peer.in) || i == 0; i++) {
		struct bb_wc wc;
		uint32_t polls;

		send_from(MTU, 0);
		ack(us.psn + i, i + 1);
		for (polls = 0; polls < 100 && bb_cq_poll(e.a.cq, &wc, 1) == 0; polls++)
			progress();
		if (polls == 100)
			return;
		assert_int_equal(wc.status, BB_WC_SUCCESS);
	}
}

/*
 * On the fast path, in several packets, and as WRITE, READ and atomic; one request in flight or
 * many.
 */
T(test_peer_that_takes_nothing_ends_requests_with_retry_exceeded)
{
	const struct bb_sge sge = {
		.addr = (uintptr_t)e.a.buf, .len = 3 * MTU, .lkey = e.a.mr->lkey};
	const struct bb_sge word = {.addr = (uintptr_t)e.a.buf, .len = 8, .lkey = e.a.mr->lkey};
	uint32_t kind, n, i;
	struct bb_wc wc;

	fill_ring();
	for (kind = 0; kind < 5; kind++) {
		for (n = 1; n <= 64; n += 63) {
			reconnect(8);
			for (i = 0; i < n && kind != 0; i++)
				assert_int_equal(
					kind == 1
						? bb_post_send(e.a.qp, i, &sge, 1, BB_SEND_SIGNALED)
					: kind == 2 ? bb_post_write(e.a.qp, i, &sge, 1, 0x1000,
								    RKEY, BB_SEND_SIGNALED)
					: kind == 3 ? bb_post_read(e.a.qp, i, &sge, 1, 0x1000, RKEY,
								   BB_SEND_SIGNALED)
						    : bb_post_fetch_add(e.a.qp, i, &word, 0x1000,
									RKEY, 1, BB_SEND_SIGNALED),
					0);
			for (i = 0; i < n && kind == 0; i++)
				send_from(8, 0);
			bb_qp_ring(e.a.qp);
			env_poll(&e, &e.a, &wc, 1);
			assert_int_equal(wc.status, BB_WC_RETRY_EXC_ERR);
			for (i = 1; i < n; i++) {
				env_poll(&e, &e.a, &wc, 1);
				assert_int_equal(wc.status, BB_WC_WR_FLUSH_ERR);
			}
		}
	}
}

/* The peer's process ends, with or without BYE; the device learns it before its next packet. */
static void
peer_ends(bool bye)
{
	struct soft_shm_msg m;

	if (bye) {
		soft_shm_msg_init(&m, SOFT_SHM_BYE);
		assert_int_equal(soft_shm_send(peer.caller, &m, NULL, 0), 0);
		assert_int_equal(soft_shm_send(peer.callee, &m, NULL, 0), 0);
	} else {
		close(peer.caller);
		close(peer.callee);
		peer.caller = peer.callee = -1;
	}
	/* The device's chores come before the packets. */
	__atomic_store_n(&soft_dev_peek_gid(own_gid)->shm->chores_at, 0, __ATOMIC_RELAXED);
}

/* The device learns that the peer has ended, and is stopped before it reads the last packets. */
static void
stop_once(void)
{
	struct soft_shm *shm = soft_dev_peek_gid(own_gid)->shm;

	soft_shm_chores(shm, rte_rdtsc());
	assert_non_null(shm->rx[0]->leaving);
	soft_shm_chores(shm, rte_rdtsc() + 5 * rte_get_tsc_hz());
}

/*
 * A peer that sends and ends at once: its packets are in the ring when the device learns that it
 * has ended, and arrive as they would over a cable.
 */
static void
packets_before_the_end(bool bye, bool stopped)
{
	const uint32_t n = 400;
	struct bb_roce_pkt pkt;
	uint64_t i;

	memset(e.a.buf, 0, n * sizeof(i));
	for (i = 0; i < n; i++) {
		pkt = packet(BB_ROCE_WRITE_ONLY, them.psn + (uint32_t)i, sizeof(i));
		pkt.va = (uintptr_t)e.a.buf + i * sizeof(i);
		pkt.rkey = e.a.mr->rkey;
		pkt.dmalen = sizeof(i);
		write_packet(&pkt, (const uint8_t *)&(uint64_t){i + 1}, THEIRS);
	}
	peer_ends(bye);
	if (stopped)
		stop_once();
	for (i = 0; i < 10 * n; i++)
		progress();
	for (i = 0; i < n; i++)
		assert_int_equal(((const uint64_t *)(const void *)e.a.buf)[i], i + 1);
}

T(test_packets_before_the_close_arrive)
{
	packets_before_the_end(true, false);
}

T(test_packets_before_the_death_arrive)
{
	packets_before_the_end(false, false);
}

T(test_packets_before_the_end_arrive_after_a_stop)
{
	packets_before_the_end(true, true);
}

/* No engine reads the last packets: the connection ends after a second of chores. */
T(test_unread_packets_do_not_hold_the_connection_of_a_peer_that_has_ended)
{
	struct soft_shm *shm = soft_dev_peek_gid(own_gid)->shm;
	struct bb_roce_pkt pkt = packet(BB_ROCE_ACK, us.psn, 0);
	const uint64_t begin = rte_rdtsc();
	uint32_t i;

	write_packet(&pkt, NULL, THEIRS);
	peer_ends(true);
	for (i = 0; i < 10; i++) {
		soft_shm_chores(shm, begin + i * soft_time_cycles(SOFT_SHM_GAP_NS));
		assert_int_equal(shm->rx[0]->state, SOFT_SHM_UP);
	}
	/* soft_time_cycles() rounds. */
	for (; i < 12; i++)
		soft_shm_chores(shm, begin + i * soft_time_cycles(SOFT_SHM_GAP_NS));
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_IDLE);
}

/* The last answer of a peer decides how a request ends, not the end of the peer. */
static void
answer_before_the_end(bool bye, bool stopped)
{
	struct bb_roce_pkt pkt = packet(BB_ROCE_ACK, us.psn, 0);
	struct soft_ring_rec rec;
	struct bb_wc wc;

	send_from(64, 0);
	next(&rec);
	take();
	pkt.syndrome = BB_ROCE_AETH_NAK | BB_ROCE_NAK_INVALID;
	write_packet(&pkt, NULL, THEIRS);
	peer_ends(bye);
	if (stopped)
		stop_once();
	env_poll(&e, &e.a, &wc, 1);
	assert_int_equal(wc.status, BB_WC_REM_INV_REQ_ERR);
}

T(test_answer_before_the_close_ends_the_request)
{
	answer_before_the_end(true, false);
}

T(test_answer_before_the_death_ends_the_request)
{
	answer_before_the_end(false, false);
}

T(test_answer_before_the_end_ends_the_request_after_a_stop)
{
	answer_before_the_end(true, true);
}

TEST_MAIN(env_eal_init("shm_peer_end"))
