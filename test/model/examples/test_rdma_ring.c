/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* examples/common/rdma_ring: both sides in one thread, on one device. */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "../../fakes/bare_eal.h"
#include "bb_test.h"
#include "rdma_ring.h"

#define WAIT_S    30
#define MAX_SLOTS 1024u
#define RIGHTS    (BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE)

static struct {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qa, *qb; /* of producer, of consumer */
	struct bb_mr *slots_mr, *credit_mr;
	uint64_t *slots, *credit;
	struct rdma_ring_tx tx;
	struct rdma_ring_rx rx;
	uint64_t rng;
} e;

static uint32_t max_inline = RDMA_RING_INLINE;

static uint32_t
rnd(uint32_t n)
{
	e.rng = e.rng * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(e.rng >> 33) % n;
}

/* Fills a message; every byte depends on its number, so that parts of two messages never match. */
static void
message(uint64_t n, uint8_t *m)
{
	uint64_t x = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
	unsigned int i;

	for (i = 0; i < RDMA_RING_DATA; i++, x = x * 5 + 1)
		m[i] = (uint8_t)(x >> 40);
}

static void
ring_open(const char *device, uint32_t slots, uint32_t sq_depth)
{
	struct bb_qp_init_attr init;
	struct bb_qp_addr a, b;
	struct bb_region there, back;
	struct bb_cq_attr cq;
	struct bb_qp_attr attr;

	memset(&e, 0, sizeof(e));
	e.rng = 1;
	OK(bb_dev_open(device, &e.dev));
	OK(bb_pd_alloc(e.dev, &e.pd));
	bb_cq_attr_init(&cq);
	cq.depth = 2 * sq_depth;
	OK(bb_cq_create(e.dev, &cq, &e.cq));
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = e.cq;
	init.sq_depth = sq_depth;
	init.rq_depth = 0;
	init.max_inline = max_inline;
	OK(bb_qp_create(e.pd, &init, &e.qa));
	OK(bb_qp_create(e.pd, &init, &e.qb));
	bb_qp_attr_init(&attr);
	attr.access = BB_ACCESS_REMOTE_WRITE;
	attr.retry_cnt = 1;
	attr.timeout = 8;
	OK(bb_qp_addr(e.qa, 1, 0, &a));
	OK(bb_qp_addr(e.qb, 1, 0, &b));
	OK(bb_qp_connect(e.qa, &a, &b, &attr));
	OK(bb_qp_connect(e.qb, &b, &a, &attr));

	e.slots = rte_zmalloc("slots", rdma_ring_bytes(slots), 4096);
	e.credit = rte_zmalloc("credit", 64, 64);
	assert_non_null(e.slots);
	assert_non_null(e.credit);
	rdma_ring_format(e.slots, slots);
	OK(bb_mr_reg(e.pd, e.slots, rdma_ring_bytes(slots), RIGHTS, &e.slots_mr));
	OK(bb_mr_reg(e.pd, e.credit, 8, RIGHTS, &e.credit_mr));
	OK(bb_region_of(e.slots_mr, "slots", 0, 0, &there));
	OK(bb_region_of(e.credit_mr, "credit", 0, 0, &back));
	assert_int_equal(rdma_ring_tx_init(&e.tx, e.qa, max_inline, e.credit, &there), 0);
	assert_int_equal(rdma_ring_rx_init(&e.rx, e.qb, e.slots, slots, &back), 0);
}

static void
ring_close(void)
{
	OK(bb_qp_destroy(e.qa));
	OK(bb_qp_destroy(e.qb));
	OK(bb_cq_destroy(e.cq));
	OK(bb_mr_dereg(e.slots_mr));
	OK(bb_mr_dereg(e.credit_mr));
	OK(bb_pd_free(e.pd));
	OK(bb_dev_close(e.dev));
	rte_free(e.slots);
	rte_free(e.credit);
}

/* Polls the device until the queues are processed; checks that nothing fails. */
static void
turn(void)
{
	struct bb_wc wc;

	rdma_ring_tx_flush(&e.tx);
	rdma_ring_rx_flush(&e.rx);
	assert_int_equal(bb_cq_poll(e.cq, &wc, 1), 0);
}

static int
push(uint64_t n)
{
	uint8_t m[RDMA_RING_DATA];

	message(n, m);
	return rdma_ring_push(&e.tx, m);
}

/* Polls until message @n has arrived, and checks its contents. */
static void
pop(uint64_t n)
{
	const uint64_t end = rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();
	uint8_t got[RDMA_RING_DATA], want[RDMA_RING_DATA];
	int rc;

	while ((rc = rdma_ring_pop(&e.rx, got)) == 0) {
		turn();
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(rc, 1);
	message(n, want);
	assert_memory_equal(got, want, sizeof(got));
}

TEST(test_partly_arrived_message_is_not_read)
{
	uint64_t slot[RDMA_RING_UNITS], seen[RDMA_RING_UNITS], w[RDMA_RING_UNITS], n;
	uint8_t m[RDMA_RING_DATA], got[RDMA_RING_DATA];
	unsigned int missing, i;

	for (n = 0; n < 200000; n += 1 + n / 7) {
		message(n, m);
		rdma_ring_encode(slot, n, m);
		memset(got, 0, sizeof(got));
		assert_int_equal(rdma_ring_load(slot, w), (uint16_t)n);
		rdma_ring_decode(w, got);
		assert_memory_equal(got, m, sizeof(m));
		/* Every set of arrived units except none and all. */
		for (missing = 1; missing < 1u << RDMA_RING_UNITS; missing++) {
			for (i = 0; i < RDMA_RING_UNITS; i++)
				seen[i] = missing & 1u << i ? (uint16_t)(n - 64) : slot[i];
			assert_int_equal(rdma_ring_load(seen, w),
					 missing == (1u << RDMA_RING_UNITS) - 1 ? (uint16_t)(n - 64)
										: UINT32_MAX);
		}
	}
}

/* Random bursts of pushes and pops. Numbers pass 2^16, so that the 16 bits of a unit wrap. */
static void
run_random(const char *device, uint32_t slots, uint32_t sq_depth, uint64_t messages)
{
	uint64_t in = 0, out = 0, i, n;

	ring_open(device, slots, sq_depth);
	while (out < messages) {
		n = rnd(2 * slots) + 1;
		for (i = 0; i < n && in < messages && push(in) == 0; i++)
			in++;
		assert_true(in - out <= slots);
		turn();
		for (n = rnd(2 * slots); n > 0 && out < in; n--)
			pop(out++);
		turn();
	}
	assert_int_equal(in, messages);
	assert_int_equal(e.rx.tail, messages);
	/*
	 * Each credit covers at least one batch, because a credit may wait for room in the queue.
	 */
	assert_true(e.rx.credits <= messages / e.rx.batch);
	assert_true(messages - e.rx.last_credit < e.rx.batch);
	ring_close();
}

TEST(test_random_traffic_keeps_the_order)
{
	run_random("soft0", 4, 16, 70000);
	run_random("soft0", 64, 128, 140000);
	run_random("soft0,shuffle=1", MAX_SLOTS, 512, 20000);
	/* The send queue is full before the ring is. */
	run_random("soft0", 64, 4, 20000);
}

TEST(test_messages_over_packets_keep_the_order)
{
	run_random("soft0,wire=1", 16, 32, 2000);
}

TEST(test_random_traffic_keeps_the_order_for_any_inline_size)
{
	static const uint32_t most[] = {1, 2, 3, RDMA_RING_MAX_WRITE};
	unsigned int i;

	for (i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		max_inline = most[i] * RDMA_RING_SLOT;
		run_random("soft0", 32, 16, 70000);
		run_random("soft0,shuffle=1", 8, 4, 5000);
		run_random("soft0,wire=1", 16, 8, 2000);
	}
	max_inline = RDMA_RING_INLINE;
}

static uint64_t
writes_posted(const struct bb_qp *qp)
{
	struct bb_qp_stats stats;

	OK(bb_qp_stats(qp, &stats));
	return stats.posted;
}

TEST(test_messages_pushed_together_share_a_write)
{
	const uint32_t slots = 16, most = RDMA_RING_INLINE / RDMA_RING_SLOT;
	struct bb_qp_stats stats;
	uint64_t in = 0, out = 0;

	ring_open("soft0", slots, 64);
	/* A single message leaves at the next flush. */
	assert_int_equal(push(in++), 0);
	turn();
	assert_int_equal(writes_posted(e.qa), 1);
	pop(out++);
	/* Complete WRITEs are posted before the flush. The last one ends at the end of the ring. */
	while (in < slots)
		assert_int_equal(push(in++), 0);
	turn();
	assert_int_equal(writes_posted(e.qa), 1 + (slots - 1 + most - 1) / most);
	OK(bb_qp_stats(e.qa, &stats));
	assert_int_equal(stats.doorbells, 2);
	while (out < in)
		pop(out++);
	turn();
	/* The first slot of the next round needs another WRITE than the last of this round. */
	while (in < 2 * slots - 1)
		assert_int_equal(push(in++), 0);
	turn();
	while (out < in)
		pop(out++);
	turn();
	assert_int_equal(push(in++), 0);
	assert_int_equal(push(in++), 0);
	OK(bb_qp_stats(e.qa, &stats));
	turn();
	assert_int_equal(writes_posted(e.qa), stats.posted + 1);
	pop(out++);
	pop(out++);
	/* The consumer has no CQE and the producer one for several WRITEs. */
	OK(bb_qp_stats(e.qa, &stats));
	assert_true(stats.send_cqes < stats.posted);
	ring_close();
}

/* Messages that found no room in the send queue leave at a later flush. */
TEST(test_full_send_queue_keeps_pushed_messages)
{
	uint64_t in = 0, out = 0;
	unsigned int i;

	ring_open("soft0", 64, 2);
	for (i = 0; i < 3; i++) {
		/* Nothing is polled, so the queue pair takes two WRITEs. */
		while (push(in) == 0) {
			in++;
			rdma_ring_tx_flush(&e.tx);
		}
		assert_true(rdma_ring_tx_pending(&e.tx));
		assert_true(e.tx.full > 0);
		turn();
		turn();
		assert_false(rdma_ring_tx_pending(&e.tx));
		while (out < in)
			pop(out++);
	}
	ring_close();
}

TEST(test_full_ring_waits_for_a_credit)
{
	const uint32_t slots = 64, batch = slots / 4;
	uint64_t in = 0, out = 0;
	uint32_t i, round;

	ring_open("soft0", slots, 256);
	while (push(in) == 0)
		in++;
	assert_int_equal(in, slots);
	assert_int_equal(e.tx.full, 1);
	for (round = 0; round < 10; round++) {
		/* A slow consumer sends no credit for less than a batch. */
		for (i = 0; i < batch - 1; i++) {
			pop(out++);
			turn();
			assert_int_equal(push(in), -EAGAIN);
		}
		assert_int_equal(e.rx.credits, round);
		pop(out++);
		turn();
		assert_int_equal(e.rx.credits, round + 1);
		for (i = 0; i < batch; i++)
			assert_int_equal(push(in++), 0);
		assert_int_equal(push(in), -EAGAIN);
	}
	while (out < in)
		pop(out++);
	turn();
	/*
	 * Three batches were available at once and gave one credit; the last credit had not been
	 * flushed.
	 */
	assert_int_equal(e.rx.credits, 10 + 2);
	for (i = 0; i < slots; i++)
		assert_int_equal(push(in++), 0);
	rdma_ring_tx_flush(&e.tx);
	turn();
	{
		uint8_t m[RDMA_RING_DATA];

		while (rdma_ring_pop(&e.rx, m) == 1)
			out++;
	}
	assert_int_equal(out, in);
	turn();
	assert_int_equal(e.rx.credits, 10 + 3);
	ring_close();
}

/* Continues with message @n, as if the earlier messages had been sent. */
static void
skip_to(uint64_t n)
{
	e.tx.head = e.tx.posted = e.tx.rung = n;
	rdma_ring_tx_plan(&e.tx);
}

TEST(test_errors_of_a_faulty_side_are_reported)
{
	uint8_t m[RDMA_RING_DATA] = {0};
	struct bb_region good, bad;
	unsigned int i;

	/* A number that is neither the next one nor of the previous round, in any unit. */
	for (i = 0; i < RDMA_RING_UNITS; i++) {
		ring_open("soft0", 8, 16);
		assert_int_equal(rdma_ring_pop(&e.rx, m), 0);
		e.slots[i] = 1;
		assert_int_equal(rdma_ring_pop(&e.rx, m), -EPROTO);
		e.slots[i] = (uint16_t)-8;
		assert_int_equal(rdma_ring_pop(&e.rx, m), -EPROTO);
		ring_close();
	}
	/*
	 * The consumer waits for a missing message, and does not take the next round's message
	 * for it.
	 */
	ring_open("soft0", 8, 64);
	skip_to(1);
	assert_int_equal(push(1), 0);
	turn();
	assert_int_equal(rdma_ring_pop(&e.rx, m), 0);
	e.tx.limit = 16;
	skip_to(8);
	assert_int_equal(push(8), 0);
	turn();
	assert_int_equal(rdma_ring_pop(&e.rx, m), -EPROTO);
	ring_close();
	/* A credit for more messages than were sent, or one that goes back. */
	ring_open("soft0", 8, 16);
	for (i = 0; i < 8; i++)
		assert_int_equal(push(i), 0);
	*e.credit = 9;
	assert_int_equal(push(8), -EPROTO);
	*e.credit = 4;
	assert_int_equal(push(8), -EPROTO);
	ring_close();
	ring_open("soft0", 8, 64);
	for (i = 0; i < 8; i++)
		assert_int_equal(push(i), 0);
	*e.credit = 8;
	for (i = 0; i < 8; i++)
		assert_int_equal(push(8 + i), 0);
	*e.credit = 7;
	assert_int_equal(push(16), -EPROTO);
	/* Regions that cannot be a ring. */
	OK(bb_region_of(e.slots_mr, "slots", 0, 0, &good));
	for (i = 0; i < 5; i++) {
		bad = good;
		if (i == 0)
			bad.len -= 1;
		else if (i == 1)
			bad.len = 7 * RDMA_RING_SLOT;
		else if (i == 2)
			bad.len = 2 * RDMA_RING_SLOT;
		else if (i == 3)
			bad.len = UINT64_C(1) << 40;
		else
			bad.addr += 8;
		assert_int_equal(rdma_ring_tx_init(&e.tx, e.qa, RDMA_RING_INLINE, e.credit, &bad),
				 -EINVAL);
	}
	assert_int_equal(rdma_ring_tx_init(&e.tx, e.qa, RDMA_RING_SLOT - 1, e.credit, &good),
			 -EINVAL);
	bad = good;
	bad.len = 7;
	assert_int_equal(rdma_ring_rx_init(&e.rx, e.qb, e.slots, 8, &bad), -EINVAL);
	bad.len = 8;
	bad.addr += 4;
	assert_int_equal(rdma_ring_rx_init(&e.rx, e.qb, e.slots, 8, &bad), -EINVAL);
	assert_int_equal(rdma_ring_rx_init(&e.rx, e.qb, e.slots, 7, &good), -EINVAL);
	ring_close();
}

/* The peer's queue pair fails: a completion reports it, and both sides stop. */
TEST(test_failed_peer_stops_both_sides)
{
	const uint64_t end = rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();
	uint8_t m[RDMA_RING_DATA] = {0};
	struct bb_qp_attr attr;
	struct bb_wc wc;

	ring_open("soft0", 8, 16);
	assert_int_equal(push(0), 0);
	turn();
	pop(0);
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(e.qb, &attr, BB_QP_STATE));
	assert_int_equal(push(1), 0);
	rdma_ring_tx_flush(&e.tx);
	while (bb_cq_poll(e.cq, &wc, 1) == 0)
		assert_true(rte_get_tsc_cycles() < end);
	assert_int_not_equal(wc.status, BB_WC_SUCCESS);
	assert_ptr_equal(wc.qp, e.qa);
	assert_int_equal(push(2), 0);
	assert_true(rdma_ring_tx_pending(&e.tx));
	rdma_ring_tx_fail(&e.tx, -EPIPE);
	rdma_ring_tx_fail(&e.tx, -EIO);
	/* A program that waits for its last messages must not wait for this one. */
	assert_false(rdma_ring_tx_pending(&e.tx));
	rdma_ring_rx_fail(&e.rx, -EPIPE);
	assert_int_equal(push(3), -EPIPE);
	rdma_ring_tx_flush(&e.tx);
	assert_false(rdma_ring_tx_pending(&e.tx));
	assert_int_equal(rdma_ring_pop(&e.rx, m), -EPIPE);
	ring_close();
}

TEST(test_pop_after_a_failure_returns_the_error_and_no_message)
{
	uint8_t m[RDMA_RING_DATA] = {0};
	unsigned int i;

	ring_open("soft0", 8, 16);
	for (i = 0; i < 2; i++)
		assert_int_equal(push(i), 0);
	turn();
	pop(0);
	rdma_ring_rx_fail(&e.rx, -EPIPE);
	rdma_ring_rx_fail(&e.rx, -EIO);
	assert_int_equal(rdma_ring_pop(&e.rx, m), -EPIPE);
	ring_close();
	/* The producer repairs a damaged slot, after the consumer has reported the damage. */
	ring_open("soft0", 8, 16);
	e.slots[0] = 1;
	assert_int_equal(rdma_ring_pop(&e.rx, m), -EPROTO);
	assert_int_equal(push(0), 0);
	turn();
	assert_int_equal(rdma_ring_pop(&e.rx, m), -EPROTO);
	ring_close();
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
