/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CQs of the verbs driver on the null provider: depth, resize, moderation, times. */
#include <rte_bitops.h>

#include "../../fakes/log_catch.h"
#include "verbs_drv.h"
#include "verbs_fixture.h"

static void
write_some(struct fixture *f, uint64_t first, unsigned int n)
{
	const struct bb_sge sge = piece(f, FROM, 8);

	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(
			bb_post_write(f->qp, first + i, &sge, 1, TO, f->mr->rkey, BB_SEND_SIGNALED),
			0);
	bb_qp_ring(f->qp);
}

static void
check(struct fixture *f, uint64_t first, unsigned int n)
{
	struct bb_wc wc[64];

	assert_int_equal(bb_cq_poll(f->cq, wc, n), n);
	for (unsigned int i = 0; i < n; i++) {
		assert_fields(wc[i], wr_id, first + i, status, BB_WC_SUCCESS);
		assert_int_equal(wc[i].opcode, BB_WC_RDMA_WRITE);
	}
}

static void
silent(struct fixture *f)
{
	struct bb_wc wc;

	assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 0);
}

/* Replaces the fixture's CQ and QP. */
static void
remake(struct fixture *f, const struct bb_cq_attr *cattr, uint32_t sq_depth, uint32_t rq_depth)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);

	assert_int_equal(bb_qp_destroy(f->qp), 0);
	f->qp = NULL;
	assert_int_equal(bb_cq_destroy(f->cq), 0);
	f->cq = NULL;
	assert_int_equal(bb_cq_create(f->dev, cattr, &f->cq), 0);
	init.sq_depth = sq_depth;
	init.rq_depth = rq_depth;
	init.max_recv_sge = 2;
	init.max_inline = 16;
	init.send_cq = f->cq;
	init.recv_cq = f->cq;
	assert_int_equal(bb_qp_create(f->pd, &init, &f->qp), 0);
	assert_int_equal(connect_to_itself(f->qp), 0);
}

/*
 * Completions without CQE and others in one stream, polled in parts. The order of each queue is
 * preserved, with the driver's own completions in place.
 */
T_F(test_completions_keep_the_order_of_each_queue)
{
	uint64_t sent, received, want_send, want_recv;
	unsigned int n, k, what;
	struct bb_cq_stats stats;
	uint32_t seed = 1;
	struct bb_wc wc[8];
	struct bb_sge sge;

	for (size_t kind = 0; kind < RTE_DIM(kinds); kind++) {
		make(f, BB_QPT_RC, false, kind);
		sge = piece(f, FROM, 8);
		sent = received = want_send = want_recv = 0;
		for (unsigned int turn = 0; turn < 2000 || want_send != sent; turn++) {
			null_dev.hold = turn % 5 == 1;
			for (unsigned int i = 0; turn < 2000 && i < 3; i++) {
				if (bb_sq_outstanding(&f->qp->sq) > 12)
					break;
				seed = seed * 1103515245u + 12345;
				what = seed >> 16 & 3;
				if (what == 0)
					post_recv(f, received++);
				k = what == 0 ? bb_post_send(f->qp, sent, &sge, 1, BB_SEND_SIGNALED)
				    : what == 1 ? bb_post_nop(f->qp, sent, BB_SEND_SIGNALED)
				    : what == 2 ? bb_post_read(f->qp, sent, &sge, 1, TO, 1,
							       BB_SEND_SIGNALED)
						: bb_post_write(f->qp, sent, &sge, 1, TO, 1,
								BB_SEND_SIGNALED);
				assert_int_equal(k, 0);
				sent++;
			}
			bb_qp_ring(f->qp);
			if (!null_dev.hold)
				null_release();
			n = bb_cq_poll(f->cq, wc, turn % 8);
			for (unsigned int i = 0; i < n; i++) {
				assert_int_equal(wc[i].status, BB_WC_SUCCESS);
				if (wc[i].opcode == BB_WC_RECV)
					assert_int_equal(wc[i].wr_id, want_recv++);
				else
					assert_int_equal(wc[i].wr_id, want_send++);
				assert_int_equal(wc[i].byte_len,
						 wc[i].opcode == BB_WC_RECV ||
								 wc[i].opcode == BB_WC_RDMA_READ
							 ? 8
							 : 0);
			}
		}
		silent(f);
		assert_true(sent > 1000);
		assert_int_equal(want_recv, received);
		assert_int_equal(bb_cq_stats(f->cq, &stats), 0);
		assert_int_equal(stats.cqes, sent + received);
		fixture_free(f);
		null_reset();
	}
}

/* The promised depth fits at the provider; it rounds depths up, too. */
T_F(test_promised_depth_fits_at_the_provider)
{
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);

	cattr.depth = 33;
	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		make(f, BB_QPT_RC, false, k);
		remake(f, &cattr, 64, 0);
		assert_int_equal(bb_cq_depth(f->cq), 64);
		write_some(f, 1, 64);
		check(f, 1, 32);
		check(f, 33, 32);
		silent(f);
		assert_int_equal(null_dev.overruns, 0);
		fixture_free(f);
		null_reset();
	}
}

/* Completions in the ring and at the provider stay, in order. */
T_KINDS(BB_QPT_RC, false, test_resize_keeps_completions_in_order)
{
	static const uint32_t depths[] = {512, 32, 64, 300, 2048, 33};
	uint64_t next = 0, want = 0;
	unsigned int part;

	for (unsigned int i = 0; i < 100; i++) {
		const uint32_t depth = depths[i % RTE_DIM(depths)];

		write_some(f, next, 9);
		/* Some are polled, which puts others into the ring. */
		part = i % 10;
		check(f, want, part);
		write_some(f, next + 9, 4);
		assert_int_equal(bb_cq_resize(f->cq, depth), 0);
		assert_int_equal(bb_cq_depth(f->cq), rte_align32pow2(depth));
		assert_int_equal(null_dev.resized, rte_align32pow2(depth));
		/* Every seventh time, two resizes in a row. */
		if (i % 7 == 0)
			assert_int_equal(bb_cq_resize(f->cq, 128), 0);
		check(f, want + part, 13 - part);
		silent(f);
		next += 13;
		want += 13;
	}
}

/* A NOP and an error, which the driver completes, are in the new ring, too. */
T_ON(BB_QPT_RC, false, test_resize_keeps_the_drivers_completions)
{
	const struct bb_sge sge[] = {{FROM, 8, 1}};
	struct bb_wc wc[3];

	assert_int_equal(bb_post_nop(f->qp, 1, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_cq_resize(f->cq, 1024), 0);
	null_dev.bad_wr = 1;
	assert_int_equal(bb_post_write(f->qp, 2, sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_cq_resize(f->cq, 64), 0);
	take(f, wc, 2);
	assert_fields(wc[0], wr_id, 1, opcode, BB_WC_NOP);
	assert_fields(wc[1], wr_id, 2, status, BB_WC_LOC_QP_OP_ERR);
}

T_F(test_refused_resize_changes_nothing)
{
	struct bb_dev_attr attr;
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);

	make(f, BB_QPT_RC, false, 0);
	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_true(attr.cq_resize);
	cattr.depth = 32;
	remake(f, &cattr, 32, 0);
	assert_int_equal(bb_cq_resize(f->cq, 0), -EINVAL);
	assert_int_equal(bb_cq_resize(f->cq, attr.max_cqe + 1), -EINVAL);
	assert_int_equal(bb_cq_resize(f->cq, 16), -EINVAL);
	write_some(f, 0, 32);
	assert_int_equal(bb_cq_resize(f->cq, 128), -EBUSY);
	check(f, 0, 5);

	/* Returns the provider's error, and no completion is lost. */
	null_dev.fail_errno = ENOMEM;
	null_dev.fail_at = 1;
	assert_int_equal(bb_cq_resize(f->cq, 128), -ENOMEM);
	assert_int_equal(bb_cq_depth(f->cq), 32);
	check(f, 5, 27);
	write_some(f, 100, 32);
	check(f, 100, 32);
	silent(f);
	assert_int_equal(bb_cq_resize(f->cq, attr.max_cqe), 0);
	fixture_free(f);

	null_dev.no_resize = true;
	make(f, BB_QPT_RC, false, 0);
	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_false(attr.cq_resize);
	assert_int_equal(bb_cq_resize(f->cq, 1024), -ENOTSUP);
}

T_KINDS(BB_QPT_RC, false, test_moderation_reaches_the_provider)
{
	struct bb_dev_attr attr;

	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_true(attr.cq_moderation);
	assert_int_equal(bb_cq_moderate(f->cq, 16, 4095), 0);
	assert_fields(null_dev, cq_count, 16, cq_period, 4095);
	/* More than the device accepts: the moderation stays unchanged. */
	assert_int_equal(bb_cq_moderate(f->cq, NULL_MODERATE + 1, 1), -EINVAL);
	assert_int_equal(null_dev.cq_count, 16);
	assert_int_equal(bb_cq_moderate(f->cq, 0, 0), 0);
	assert_int_equal(null_dev.cq_count + null_dev.cq_period, 0);
	write_some(f, 1, 3);
	check(f, 1, 3);
}

/* Each completion has the provider's time. A NOP has that of the last request before it. */
T_F(test_each_completion_has_its_time)
{
	uint64_t hz = 0, now = 0, ts[8] = {0};
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);
	struct bb_wc wc[8];

	null_dev.clock = UINT64_C(5000000000);
	cattr.timestamps = true;
	make(f, BB_QPT_RC, false, 0);
	remake(f, &cattr, 16, 16);
	assert_int_equal(bb_dev_clock(f->dev, &hz, &now), 0);
	assert_int_equal(hz, NULL_HZ);
	assert_int_equal(now, UINT64_C(5000000000));
	write_some(f, 0, 3);
	post_recv(f, 50);
	assert_int_equal(bb_post_send_inline(f->qp, 3, "x", 1, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	/* The receive completes before its SEND. */
	assert_int_equal(bb_cq_poll_ts(f->cq, wc, ts, 8), 5);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(ts[i], now + 1 + i);
	assert_fields(wc[3], opcode, BB_WC_RECV, wr_id, 50);
	assert_int_equal(wc[4].wr_id, 3);

	/* A time moves with its completion to another ring. */
	write_some(f, 10, 4);
	assert_int_equal(bb_cq_poll_ts(f->cq, wc, ts, 1), 1);
	assert_int_equal(bb_cq_resize(f->cq, 1024), 0);
	assert_int_equal(bb_cq_poll_ts(f->cq, wc + 1, ts + 1, 7), 3);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(wc[i].wr_id, 10 + i);
		assert_int_equal(ts[i], now + 6 + i);
	}
	/*
	 * A NOP that waits for nothing has the present time; one after a request has the
	 * request's.
	 */
	assert_int_equal(bb_dev_clock(f->dev, NULL, &now), 0);
	assert_int_equal(bb_post_nop(f->qp, 20, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_cq_poll_ts(f->cq, wc, ts, 8), 1);
	assert_int_equal(ts[0], now);
	write_some(f, 21, 1);
	assert_int_equal(bb_post_nop(f->qp, 22, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_cq_poll_ts(f->cq, wc, ts, 8), 2);
	assert_int_equal(wc[1].wr_id, 22);
	assert_true(ts[0] > now);
	assert_int_equal(ts[1], ts[0]);
	null_dev.bad_wr = 1;
	write_some(f, 23, 1);
	ts[0] = 9;
	assert_int_equal(bb_cq_poll_ts(f->cq, wc, ts, 8), 1);
	assert_int_equal(wc[0].status, BB_WC_LOC_QP_OP_ERR);
	assert_int_equal(ts[0], 0);
	fixture_free(f);

	/* A provider without extended CQs has no timestamps. */
	null_dev.no_cq_ex = true;
	make(f, BB_QPT_RC, false, 1);
	assert_int_equal(bb_cq_create(f->dev, &cattr, &f->cq), -ENOTSUP);
}

static int bad_poll;

static int
bad_start(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	(void)ex;
	(void)attr;
	return bad_poll;
}

static int
bad_next(struct ibv_cq_ex *ex)
{
	(void)ex;
	return bad_poll;
}

static int
bad_plain(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq;
	(void)n;
	(void)wc;
	return bad_poll;
}

/*
 * The provider's poll fails: no completion is found, the cause is logged once per CQ, and polling
 * continues.
 */
T_F(test_failed_poll_is_logged_once_and_polling_continues)
{
	static const struct {
		size_t kind;
		bool next;
		int err;
		const char *said;
	} cases[] = {
		{0, false, EIO, "ibv_start_poll() failed: Input/output error (5)"},
		{0, false, -2, "ibv_start_poll() failed: provider error (-2)"},
		{0, true, EINVAL, "ibv_next_poll() failed: Invalid argument (22)"},
		{1, false, -1, "ibv_poll_cq() failed: provider error (-1)"},
	};
	struct ibv_cq_ex good = {0};
	struct bb_wc wc[4];

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		int (*plain)(struct ibv_cq *, int, struct ibv_wc *);
		struct verbs_cq *c;

		make(f, BB_QPT_RC, false, cases[i].kind);
		write_some(f, 0, 4);
		bad_poll = cases[i].err;
		c = f->cq->progress_arg;
		plain = c->cq->context->ops.poll_cq;
		if (c->ex == NULL) {
			c->cq->context->ops.poll_cq = bad_plain;
		} else {
			good = *c->ex;
			if (cases[i].next)
				c->ex->next_poll = bad_next;
			else
				c->ex->start_poll = bad_start;
		}
		log_begin();
		/*
		 * The first completion of a burst is delivered before the next one is requested.
		 */
		assert_int_equal(bb_cq_poll(f->cq, wc, 4), cases[i].next);
		log_expect(cases[i].said);
		log_begin();
		for (size_t k = 0; k < 3 && !cases[i].next; k++)
			silent(f);
		log_expect(NULL);
		if (c->ex != NULL) {
			c->ex->start_poll = good.start_poll;
			c->ex->next_poll = good.next_poll;
		}
		c->cq->context->ops.poll_cq = plain;
		/* The null provider lost no completion. */
		check(f, cases[i].next, 4 - cases[i].next);
		/* An empty CQ is no failure. */
		log_begin();
		silent(f);
		log_expect(NULL);
		fixture_free(f);
		null_reset();
	}
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
