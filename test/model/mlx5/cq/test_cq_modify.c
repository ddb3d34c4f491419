/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * CQs through the public API: resizing during traffic, moderated events, timestamps, compressed
 * CQEs.
 */
#include <rte_bitops.h>

#include "../mlx5_types.h"
#include "cq_env.h"

#include "bb_core.h"

static void
recreate(struct side *s, const struct bb_cq_attr *attr)
{
	OK(bb_cq_destroy(s->cq));
	OK(bb_cq_create(s->dev, attr, &s->cq));
}

ENV_TEST_OPEN(test_resize_keeps_unread_completions)
{
	static const uint32_t depths[] = {2048, 256, 512, 300, 65536, 128};
	uint64_t next = 0, want = 0;
	struct bb_wc wc[100];
	unsigned int i, k;

	e->init.sq_depth = 100;
	e->init.rq_depth = 0;
	env_up(e);
	for (i = 0; i < 60; i++) {
		uint32_t depth = depths[i % RTE_DIM(depths)];

		write_some(e, next, 90);
		next += 90;
		wait_unread(e, e->a.cq, 90);
		/* Some CQEs are polled before the resize; the resize moves the rest. */
		k = i % 4 == 0 ? 0 : i % 90;
		if (k != 0)
			env_poll(e, &e->a, wc, k);
		OK(bb_cq_resize(e->a.cq, depth));
		assert_int_equal(bb_cq_depth(e->a.cq), rte_align32pow2(depth));
		env_poll(e, &e->a, wc + k, 90 - k);
		for (k = 0; k < 90; k++)
			expect(&wc[k], e->a.qp, want++, BB_WC_SUCCESS);
		env_silent(e, &e->a);
	}
}

ENV_TEST_OPEN(test_resize_in_traffic_loses_no_completion)
{
	uint64_t next = 0, want = 0, end;
	struct bb_wc wc[16];
	unsigned int n, i, turn = 0, resized = 0;
	struct bb_cq_stats stats;

	e->init.sq_depth = 64;
	e->init.rq_depth = 0;
	env_up(e);
	end = rte_get_timer_cycles() + 4 * ENV_WAIT_S * rte_get_timer_hz();
	while (want < 20000 && rte_get_timer_cycles() < end) {
		if (next < 20000 && next - want < 48) {
			write_some(e, next, 1);
			next++;
		}
		n = bb_cq_poll(e->a.cq, wc, turn++ % 3 == 0 ? RTE_DIM(wc) : 0);
		bb_dev_progress(e->b.dev);
		for (i = 0; i < n; i++)
			expect(&wc[i], e->a.qp, want++, BB_WC_SUCCESS);
		if (turn % 37 == 0) {
			OK(bb_cq_resize(e->a.cq, 64u << (resized % 5)));
			resized++;
		}
	}
	assert_int_equal(want, 20000);
	assert_true(resized > 100);
	OK(bb_cq_stats(e->a.cq, &stats));
	assert_int_equal(stats.cqes, 20000); /* the marks between the rings do not count */
}

ENV_TEST_OPEN(test_resize_to_an_impossible_depth_is_refused)
{
	struct bb_dev_attr attr;
	struct bb_wc wc[64];

	e->init.sq_depth = 64;
	e->init.rq_depth = 64;
	env_up(e);
	OK(bb_dev_query(e->a.dev, &attr));
	assert_true(attr.cq_resize);
	assert_int_equal(bb_cq_resize(NULL, 64), -EINVAL);
	assert_int_equal(bb_cq_resize(e->a.cq, 0), -EINVAL);
	assert_int_equal(bb_cq_resize(e->a.cq, attr.max_cqe + 1), -EINVAL);
	/* 128 WQEs may each produce a CQE. */
	assert_int_equal(bb_cq_resize(e->a.cq, 64), -EINVAL);
	assert_int_equal(bb_cq_depth(e->a.cq), 1024);
	OK(bb_cq_resize(e->a.cq, 1000)); /* same depth as before */
	OK(bb_cq_resize(e->a.cq, 128));
	OK(bb_qp_destroy(e->b.qp));
	OK(bb_qp_destroy(e->a.qp));
	e->init.rq_depth = 0;
	env_up(e);
	OK(bb_cq_resize(e->a.cq, 64));
	/* The ring may be full when the device has to write the CQE that ends it. */
	write_some(e, 0, 64);
	assert_int_equal(bb_cq_resize(e->a.cq, 128), -EBUSY);
	env_poll(e, &e->a, wc, 1);
	OK(bb_cq_resize(e->a.cq, 128));
	env_poll(e, &e->a, wc, 63);
}

/* The receives of each SRQ count once, however the QPs of the CQ share the SRQs. */
ENV_TEST_OPEN(test_resize_counts_receives_of_an_srq_once)
{
	struct bb_srq_attr attr;
	struct bb_srq *srq[2];
	struct bb_qp *qp[8];
	struct bb_sge sge;
	uint32_t i, k;

	bb_srq_attr_init(&attr);
	attr.depth = 64;
	for (i = 0; i < RTE_DIM(srq); i++) {
		OK(bb_srq_create(e->a.pd, &attr, &srq[i]));
		sge = sge_of(&e->a, 0, 64);
		for (k = 0; k < 64; k++)
			OK(bb_post_srq_recv(srq[i], k, &sge, 1));
		bb_srq_ring(srq[i]);
	}
	e->init.sq_depth = 1;
	e->init.rq_depth = 0;
	e->init.send_cq = e->init.recv_cq = e->a.cq;
	for (i = 0; i < RTE_DIM(qp); i++) {
		e->init.srq = srq[i % RTE_DIM(srq)];
		OK(bb_qp_create(e->a.pd, &e->init, &qp[i]));
	}
	for (i = 0; i < 2; i++) {
		OK(bb_cq_resize(e->a.cq, 256));
		OK(bb_cq_resize(e->a.cq, 512));
	}
	for (i = 0; i < RTE_DIM(qp); i++)
		OK(bb_qp_destroy(qp[i]));
	for (i = 0; i < RTE_DIM(srq); i++)
		OK(bb_srq_destroy(srq[i]));
}

/* Moderation after a resize keeps the current ring, although MODIFY_CQ always carries a ring. */
ENV_TEST_OPEN(test_moderation_after_a_resize_keeps_the_ring)
{
	static const uint32_t depths[] = {2048, 1024, 4096};
	struct bb_wc wc[16];
	uint64_t i;

	env_up(e);
	for (i = 0; i < RTE_DIM(depths); i++) {
		OK(bb_cq_moderate(e->a.cq, 4, 0));
		write_some(e, i * 16, 8);
		env_poll(e, &e->a, wc, 8);
		OK(bb_cq_resize(e->a.cq, depths[i]));
		OK(bb_cq_moderate(e->a.cq, 0, 0));
		write_some(e, i * 16 + 8, 8);
		env_poll(e, &e->a, wc, 8);
		expect(&wc[7], e->a.qp, i * 16 + 15, BB_WC_SUCCESS);
	}
}

TEST(test_moderated_event_waits_for_count_or_period)
{
	struct bb_cq_attr attr;
	struct bb_channel *ch;
	struct bb_wc wc[16];
	uint64_t start, i;
	struct bb_cq *cq;
	struct env e;
	int got;

	env_open(&e);
	OK(bb_channel_create(e.a.dev, &ch));
	bb_cq_attr_init(&attr);
	attr.channel = ch;
	recreate(&e.a, &attr);
	env_up(&e);
	assert_int_equal(bb_cq_moderate(NULL, 0, 0), -EINVAL);
	assert_int_equal(bb_cq_moderate(e.a.cq, 65536, 0), -EINVAL);
	assert_int_equal(bb_cq_moderate(e.a.cq, 0, 4096), -EINVAL);

	/* The fourth completion raises the event. */
	OK(bb_cq_moderate(e.a.cq, 4, 0));
	OK(bb_cq_arm(e.a.cq, false));
	write_some(&e, 0, 3);
	wait_unread(&e, e.a.cq, 3);
	assert_int_equal(bb_channel_wait(ch, 5, &cq), -EAGAIN);
	write_some(&e, 3, 1);
	OK(bb_channel_wait(ch, ENV_WAIT_S * 1000, &cq));
	env_poll(&e, &e.a, wc, 4);

	/* The event is also raised when the period after the first completion ends. */
	OK(bb_cq_moderate(e.a.cq, 1000, 4000));
	OK(bb_cq_arm(e.a.cq, false));
	assert_int_equal(bb_channel_wait(ch, 10, &cq), -EAGAIN);
	start = rte_get_timer_cycles();
	write_some(&e, 4, 1);
	OK(bb_channel_wait(ch, ENV_WAIT_S * 1000, &cq));
	assert_true(rte_get_timer_cycles() - start >= rte_get_timer_hz() * 4 / 1000);
	env_poll(&e, &e.a, wc, 1);

	/*
	 * A request for completions after those that were polled ends the period of the earlier
	 * one. An attempt whose request came too late raises an event and is not judged.
	 */
	for (i = 0; i < 100; i++) {
		OK(bb_cq_arm(e.a.cq, false));
		start = rte_get_timer_cycles();
		write_some(&e, 5 + i, 1);
		env_poll(&e, &e.a, wc, 1);
		OK(bb_cq_arm(e.a.cq, false));
		got = bb_channel_wait(ch, 0, &cq);
		if (rte_get_timer_cycles() - start >= rte_get_timer_hz() * 4 / 1000) {
			bb_channel_wait(ch, 10, &cq);
			continue;
		}
		assert_int_equal(got, -EAGAIN);
		assert_int_equal(bb_channel_wait(ch, 10, &cq), -EAGAIN);
		break;
	}

	/* Lifting moderation releases an event that is held back. */
	OK(bb_cq_moderate(e.a.cq, 1000, 0));
	OK(bb_cq_arm(e.a.cq, false));
	write_some(&e, 5, 1);
	wait_unread(&e, e.a.cq, 1);
	assert_int_equal(bb_channel_wait(ch, 5, &cq), -EAGAIN);
	OK(bb_cq_moderate(e.a.cq, 0, 0));
	OK(bb_channel_wait(ch, ENV_WAIT_S * 1000, &cq));
	assert_ptr_equal(cq, e.a.cq);
	/* Polling was never delayed. */
	env_poll(&e, &e.a, wc, 1);

	side_close(&e.a);
	side_close(&e.b);
	OK(bb_channel_destroy(ch));
	OK(bb_pd_free(e.a.pd));
	if (e.b.pd != e.a.pd)
		OK(bb_pd_free(e.b.pd));
	OK(bb_dev_close(e.a.dev));
	if (e.b.dev != e.a.dev)
		OK(bb_dev_close(e.b.dev));
}

static unsigned int
poll_ts(struct env *e, struct side *s, struct bb_wc *wc, uint64_t *ts)
{
	uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	unsigned int n = 0;

	while (n == 0 && rte_get_timer_cycles() < end) {
		bb_dev_progress(e->a.dev);
		bb_dev_progress(e->b.dev);
		n = bb_cq_poll_ts(s->cq, wc, ts, 1);
	}
	assert_int_equal(n, 1);
	return n;
}

ENV_TEST_OPEN(test_timestamps_follow_the_device_clock)
{
	uint64_t hz = 0, before, after, ts[2], last = 0;
	struct bb_cq_attr attr;
	struct bb_qp_attr err;
	struct bb_sge sge;
	unsigned int i;
	struct bb_wc wc;

	bb_cq_attr_init(&attr);
	attr.depth = 1024;
	attr.timestamps = true;
	recreate(&e->a, &attr);
	recreate(&e->b, &attr);
	env_up(e);
	sge = sge_of(&e->b, 0, 64);
	for (i = 0; i < 300; i++) {
		OK(bb_post_recv(e->b.qp, i, &sge, 1));
		bb_qp_ring_recv(e->b.qp);
		assert_int_equal(bb_dev_clock(e->a.dev, &hz, &before), 0);
		OK(bb_post_send_inline(e->a.qp, i, "time", 4, BB_SEND_SIGNALED));
		bb_qp_ring(e->a.qp);
		poll_ts(e, &e->a, &wc, &ts[0]);
		expect(&wc, e->a.qp, i, BB_WC_SUCCESS);
		poll_ts(e, &e->b, &wc, &ts[1]);
		expect(&wc, e->b.qp, i, BB_WC_SUCCESS);
		assert_int_equal(bb_dev_clock(e->a.dev, NULL, &after), 0);
		assert_true(before <= ts[0] && ts[0] <= after);
		assert_true(before <= ts[1] && ts[1] <= after);
		assert_true(ts[0] >= last);
		last = ts[0];
	}
	assert_true(hz > 1000000);
	/* Ten milliseconds by the device's clock agree with the host's clock within a fifth. */
	assert_int_equal(bb_dev_clock(e->a.dev, NULL, &before), 0);
	rte_delay_us_block(10000);
	assert_int_equal(bb_dev_clock(e->a.dev, NULL, &after), 0);
	assert_true(after - before >= hz / 100 * 4 / 5);
	/* Completions with errors have no timestamp. */
	bb_qp_attr_init(&err);
	err.state = BB_QP_ERR;
	OK(bb_qp_modify(e->a.qp, &err, BB_QP_STATE));
	OK(bb_post_nop(e->a.qp, 7, BB_SEND_SIGNALED));
	bb_qp_ring(e->a.qp);
	ts[0] = 99;
	poll_ts(e, &e->a, &wc, &ts[0]);
	expect(&wc, e->a.qp, 7, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(ts[0], 0);
}

/* Creates b's receive CQ with compression allowed; the sends go out by one doorbell. */
static void
start_compressed(struct env *e, struct bb_cq **send_cq)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr;

	env_open(e);
	*send_cq = e->b.cq;
	bb_cq_attr_init(&attr);
	attr.depth = 256;
	attr.compress = true;
	OK(bb_cq_create(e->b.dev, &attr, &e->b.cq));
	side_qp(e, &e->a);
	init = e->init;
	init.send_cq = e->b.cq;
	init.recv_cq = e->b.cq;
	/* Requests cannot complete into a compressed CQ. */
	assert_int_equal(bb_qp_create(e->b.pd, &init, &e->b.qp), -EINVAL);
	init.send_cq = *send_cq;
	OK(bb_qp_create(e->b.pd, &init, &e->b.qp));
	connect_pair(e->a.qp, e->b.qp, &e->attr);
}

static void
stop_compressed(struct env *e, struct bb_cq *send_cq)
{
	if (e->b.qp != NULL)
		OK(bb_qp_destroy(e->b.qp));
	e->b.qp = NULL;
	OK(bb_cq_destroy(send_cq));
	env_stop(e);
}

static void
burst(struct env *e, uint64_t first, unsigned int n)
{
	struct bb_sge sge;
	unsigned int i;

	for (i = 0; i < n; i++) {
		sge = sge_of(&e->b, 64 * (size_t)i, 64);
		OK(bb_post_recv(e->b.qp, first + i, &sge, 1));
	}
	bb_qp_ring_recv(e->b.qp);
	for (i = 0; i < n; i++) {
		sge = sge_of(&e->a, 64 * (size_t)i, 1 + (uint32_t)((first + i) % 60));
		memset((void *)(uintptr_t)sge.addr, (int)(first + i) & 0xff, 64);
		OK(bb_post_send(e->a.qp, first + i, &sge, 1, i + 1 == n ? BB_SEND_SIGNALED : 0));
	}
	env_done(e, &e->a, first + n - 1, BB_WC_SUCCESS);
}

static void
take(struct env *e, uint64_t first, unsigned int n)
{
	struct bb_wc wc[128];
	unsigned int i;

	env_poll(e, &e->b, wc, n);
	for (i = 0; i < n; i++) {
		expect(&wc[i], e->b.qp, first + i, BB_WC_SUCCESS);
		assert_int_equal(wc[i].opcode, BB_WC_RECV);
		assert_int_equal(wc[i].byte_len, 1 + (first + i) % 60);
		assert_int_equal(e->b.buf[64 * (size_t)i], (first + i) & 0xff);
	}
	env_silent(e, &e->b);
}

/* Returns true if the next CQE is the title of a block. */
static bool
block_waits(const struct bb_cq *cq)
{
	const struct bb_cqe *cqe = bb_cqring_peek(&cq->ring);

	return cqe != NULL && bb_cqe_is_compressed(cqe);
}

TEST(test_compressed_bursts_are_read_in_order)
{
	unsigned int i, seen = 0;
	struct bb_cq *send_cq;
	uint64_t next = 0;
	struct env e;

	start_compressed(&e, &send_cq);
	/* Every size up to 100, so that blocks cross the end of the ring at every offset. */
	for (i = 1; i <= 300; i++) {
		burst(&e, next, 1 + i % 100);
		seen += block_waits(e.b.cq);
		take(&e, next, 1 + i % 100);
		next += 1 + i % 100;
	}
	/*
	 * Blocks may be short if the requester is at another engine or the device runs in a
	 * thread.
	 */
	if (!env_two_uars() && !env_thread())
		assert_true(seen > 250);
	printf("%u of 300 bursts were compressed\n", seen);
	/* Unread blocks are moved to the new ring by a resize and discarded with their queue. */
	burst(&e, next, 40);
	OK(bb_cq_resize(e.b.cq, 1024));
	take(&e, next, 40);
	burst(&e, next, 40);
	OK(bb_qp_destroy(e.b.qp));
	e.b.qp = NULL;
	env_silent(&e, &e.b);
	stop_compressed(&e, send_cq);
}

/*
 * Compressed blocks and CQEs that cannot be compressed both raise the event of an armed CQ, in
 * order.
 */
TEST(test_compressed_and_plain_completions_keep_their_order)
{
	static const uint32_t flags[] = {0, 0, 0, BB_SEND_SOLICITED, 0, 0};
	struct bb_cq *send_cq;
	struct bb_wc wc[64];
	struct bb_sge sge;
	unsigned int i;
	struct env e;

	start_compressed(&e, &send_cq);
	for (i = 0; i < 60; i++) {
		sge = sge_of(&e.b, 64 * (size_t)i, 64);
		OK(bb_post_recv(e.b.qp, i, &sge, 1));
	}
	bb_qp_ring_recv(e.b.qp);
	for (i = 0; i < 60; i++) {
		sge = sge_of(&e.a, 0, i + 1);
		if (i % 7 == 6)
			OK(bb_post_send_imm(e.a.qp, i, &sge, 1, i, BB_SEND_SIGNALED));
		else
			OK(bb_post_send(e.a.qp, i, &sge, 1,
					BB_SEND_SIGNALED | flags[i % RTE_DIM(flags)]));
	}
	bb_qp_ring(e.a.qp);
	env_poll(&e, &e.a, wc, 60);
	env_poll(&e, &e.b, wc, 60);
	for (i = 0; i < 60; i++) {
		expect(&wc[i], e.b.qp, i, BB_WC_SUCCESS);
		assert_int_equal(wc[i].byte_len, i + 1);
		if (i % 7 == 6) {
			assert_int_equal(wc[i].imm, i);
			assert_int_equal(wc[i].flags, BB_WC_WITH_IMM);
		} else {
			assert_int_equal(wc[i].flags,
					 flags[i % RTE_DIM(flags)] != 0 ? BB_WC_SOLICITED : 0);
		}
	}
	stop_compressed(&e, send_cq);
}

/* A compressed CQE has no field that names a receive of an SRQ. */
TEST(test_srq_on_a_compressed_cq_is_refused)
{
	struct bb_qp_init_attr init;
	struct bb_srq_attr attr;
	struct bb_qp *qp = NULL;
	struct bb_cq *send_cq;
	struct env e;

	start_compressed(&e, &send_cq);
	init = e.init;
	init.send_cq = send_cq;
	init.recv_cq = e.b.cq;
	bb_srq_attr_init(&attr);
	OK(bb_srq_create(e.b.pd, &attr, &init.srq));
	assert_int_equal(bb_qp_create(e.b.pd, &init, &qp), -EINVAL);
	assert_null(qp);
	/* An uncompressed CQ is accepted. */
	init.recv_cq = send_cq;
	OK(bb_qp_create(e.b.pd, &init, &qp));
	OK(bb_qp_destroy(qp));
	OK(bb_srq_destroy(init.srq));
	stop_compressed(&e, send_cq);
}

/* Datagrams of two senders on a compressed CQ: each completion names its sender and has its GRH. */
TYPES_TEST(BB_QPT_UD, test_compressed_datagrams_name_their_sender)
{
	static const unsigned int bursts[] = {1, 8, 1, 1, 8, 8};
	struct side from[2], to;
	struct bb_cq_attr attr;
	struct bb_wc wc[8];
	struct bb_sge sge;
	unsigned int b, i;

	from[0] = from[1] = t->e.a;
	to = t->e.b;
	side_qp(&t->e, &from[1]);
	OK(bb_qp_ud_up(from[1].qp, 1, 0, TYPES_QKEY, 3));
	bb_cq_attr_init(&attr);
	attr.compress = true;
	OK(bb_cq_create(to.dev, &attr, &to.cq));
	t->e.init.send_cq = t->e.b.cq;
	t->e.init.recv_cq = to.cq;
	OK(bb_qp_create(to.pd, &t->e.init, &to.qp));
	OK(bb_qp_ud_up(to.qp, 1, 0, TYPES_QKEY, 4));
	for (b = 0; b < RTE_DIM(bursts); b++) {
		const unsigned int n = bursts[b];

		for (i = 0; i < n; i++) {
			sge = sge_of(&to, 256 * (size_t)i, 256);
			OK(bb_post_recv(to.qp, i, &sge, 1));
		}
		bb_qp_ring_recv(to.qp);
		/*
		 * The first half comes from one sender, the second from the other; their order is
		 * undefined.
		 */
		for (i = 0; i < n; i++) {
			sge = sge_of(&t->e.a, 0, 10 + i);
			OK(bb_post_send_ud(from[i < n / 2].qp, i, &sge, 1, t->to_b, to.qp->qpn,
					   TYPES_QKEY, BB_SEND_SIGNALED));
		}
		bb_qp_ring(from[0].qp);
		bb_qp_ring(from[1].qp);
		env_poll(&t->e, &t->e.a, wc, n);
		env_poll(&t->e, &to, wc, n);
		for (i = 0; i < n; i++) {
			expect(&wc[i], to.qp, i, BB_WC_SUCCESS);
			assert_in_range(wc[i].byte_len, TYPES_GRH + 10, TYPES_GRH + 9 + n);
			assert_int_equal(wc[i].src_qp,
					 from[wc[i].byte_len - TYPES_GRH - 10 < n / 2].qp->qpn);
			assert_int_equal(wc[i].flags, BB_WC_GRH);
		}
	}
	OK(bb_qp_destroy(to.qp));
	OK(bb_qp_destroy(from[1].qp));
	OK(bb_cq_destroy(to.cq));
}

TEST_MAIN(env_eal_init("cq_modify"))
