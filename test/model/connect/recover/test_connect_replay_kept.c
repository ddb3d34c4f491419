/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The requests that a replay stores: which completions belong to them, that each outcome is
 * reported once, and that a reused entry has no state of its former request.
 */
#include "connect_replay.h"

#define KEPT 16u /* entries of the replay */

static void
work(void)
{
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		bb_dev_progress(p.a.dev);
		bb_dev_progress(p.b.dev);
	}
}

/* This side loses the connection by its own request and passes the event to the replay. */
static void
lose(struct bb_replay *r)
{
	struct bb_cm_event ev;

	OK(bb_conn_recover(l.a));
	ev = expect(&p, &p.a, BB_CM_LOST);
	bb_replay_lost(r, &ev, reported, &p);
}

static void
back(void)
{
	expect(&p, &p.b, BB_CM_LOST);
	expect(&p, &p.b, BB_CM_RECOVERED);
	expect(&p, &p.a, BB_CM_RECOVERED);
}

static void
completes(struct bb_replay *r, uint64_t wr_id)
{
	struct bb_wc wc = completion();

	assert_true(bb_replay_completion(r, &wc));
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
}

/*
 * Requests that the recovery finds complete are reported if they were signalled. Receives, and
 * requests that the application has posted itself, do not belong to the replay, whatever their
 * numbers.
 */
REPLAY_TEST(BB_REPLAY_NOT_DONE, test_completed_requests_are_reported_once)
{
	const uint64_t own[] = {1, 1 + KEPT, (1ull << 32) + 1};
	struct bb_sge sge;
	unsigned int i;
	int err;

	for (i = 0; i < 3; i++)
		assert_int_equal(
			put(r, 100 + i, 1 + i, i, i == 0 ? 0 : BB_SEND_SIGNALED, false, &err), 1);
	work();
	sge = (struct bb_sge){(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
	for (i = 0; i < RTE_DIM(own); i++)
		OK(bb_post_recv(l.qa, own[i], &sge, 1));
	/* Not rung, so not executed. */
	for (i = 0; i < RTE_DIM(own); i++)
		OK(bb_post_write(l.qa, own[i], &sge, 1, region.addr, region.rkey, 0));
	lose(r);
	assert_int_equal(bb_replay_pending(r), 0);
	assert_int_equal(nreports, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(reports[i].wc.wr_id, 101 + i);
		assert_int_equal(reports[i].fate, BB_WR_DONE);
		assert_int_equal(reports[i].wc.status, BB_WC_SUCCESS);
	}
}

/*
 * Completions of the application's own requests, with numbers before, between, after and far from
 * those of the replay's pending entries, which are 1 and 2.
 */
REPLAY_TEST(BB_REPLAY_NOT_DONE, test_foreign_completions_are_passed_through)
{
	struct bb_wc wc = {.status = BB_WC_SUCCESS};
	uint64_t numbers[] = {0, 1, 2, KEPT, 1000, UINT32_MAX, 1ull << 32, UINT64_MAX};
	unsigned int i;
	int err;

	assert_int_equal(put(r, 100, 1, 0, BB_SEND_SIGNALED, false, &err), 1);
	completes(r, 100);
	assert_int_equal(put(r, 101, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
	assert_int_equal(put(r, 102, 1, 0, BB_SEND_SIGNALED, false, &err), 1);
	for (i = 0; i < RTE_DIM(numbers); i++) {
		wc.wr_id = numbers[i];
		assert_true(bb_replay_completion(r, &wc));
		assert_int_equal(wc.wr_id, numbers[i]);
		assert_int_equal(bb_replay_pending(r), 2);
	}
	wc = completion();
	assert_true(bb_replay_completion(r, &wc));
	lose(r);
	assert_int_equal(bb_replay_pending(r), 1);
	/* The request waits to be posted, so it cannot complete. */
	wc = (struct bb_wc){.wr_id = (uint64_t)BB_REPLAY_TAG << 32 | 2, .status = BB_WC_SUCCESS};
	assert_false(bb_replay_completion(r, &wc));
	assert_int_equal(bb_replay_pending(r), 1);
}

/*
 * While the connection is LOST no request is posted; afterwards no new request overtakes the
 * waiting ones.
 */
REPLAY_TEST(BB_REPLAY_NOT_DONE, test_new_requests_do_not_overtake_waiting_ones)
{
	struct bb_wc wc;
	int err;

	lose(r);
	assert_int_equal(put(r, 99, 1, 0, 0, false, &err), 0);
	assert_int_equal(err, 0);
	back();
	assert_int_equal(put(r, 100, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
	assert_int_equal(put(r, 101, 2, 0, BB_SEND_SIGNALED, false, &err), 1);
	wc = completion();
	assert_true(bb_replay_completion(r, &wc));
	lose(r);
	back();
	assert_int_equal(put(r, 102, 3, 0, BB_SEND_SIGNALED, false, &err), 0);
	assert_int_equal(err, 0);
	assert_int_equal(bb_replay_resume(r, reported, &p), 1);
	assert_int_equal(put(r, 102, 3, 0, BB_SEND_SIGNALED, false, &err), 1);
	completes(r, 101);
	completes(r, 102);
	assert_int_equal(nreports, 0);
	assert_int_equal(*(uint64_t *)(void *)p.b.buf, 3);
}

REPLAY_TEST(BB_REPLAY_NOT_DONE, test_waiting_requests_are_posted_as_the_queue_has_room)
{
	struct bb_sge sge;
	struct bb_wc wc;
	unsigned int i;
	int err;

	sge = (struct bb_sge){(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
	assert_int_equal(put(r, 100, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(put(r, 101 + i, 1 + i, i, BB_SEND_SIGNALED, false, &err), 1);
	wc = completion();
	assert_true(bb_replay_completion(r, &wc));
	lose(r);
	back();
	while (bb_sq_outstanding(&l.qa->sq) < 14)
		OK(bb_post_write(l.qa, 1000, &sge, 1, region.addr + 1024, region.rkey,
				 BB_SEND_SIGNALED));
	assert_int_equal(bb_replay_resume(r, reported, &p), -EAGAIN);
	for (i = 0; i < 14; i++) {
		wc = completion();
		assert_true(bb_replay_completion(r, &wc));
		assert_int_equal(wc.wr_id, 1000);
	}
	/* The requests were rung. */
	completes(r, 101);
	completes(r, 102);
	assert_int_equal(bb_replay_resume(r, reported, &p), 1);
	completes(r, 103);
	assert_int_equal(nreports, 0);
}

/* An entry whose former request failed, and was polled and reported, is like new. */
REPLAY_TEST(BB_REPLAY_NONE, test_reused_entry_is_like_new)
{
	struct bb_wc wc;
	unsigned int i;
	int err;

	assert_int_equal(put(r, 100, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
	for (i = 1; i < KEPT; i++)
		assert_int_equal(put(r, 100 + i, 1, 0, BB_SEND_SIGNALED, false, &err), 1);
	wc = completion();
	assert_true(bb_replay_completion(r, &wc));
	for (i = 1; i < KEPT; i++) {
		wc = completion();
		assert_false(bb_replay_completion(r, &wc));
	}
	lose(r);
	assert_int_equal(nreports, KEPT - 1);
	back();
	/* Without bb_replay_resume(), which has nothing to do. */
	for (i = 0; i < 2 * KEPT; i++) {
		assert_int_equal(put(r, 200 + i, i, 0, BB_SEND_SIGNALED, false, &err), 1);
		completes(r, 200 + i);
	}
}

/* A new request in a reused entry is not "maybe executed" because the former request was. */
REPLAY_TEST(BB_REPLAY_UNKNOWN, test_reused_entry_does_not_inherit_a_fate)
{
	struct bb_wc wc;
	unsigned int i;
	int err;

	assert_int_equal(put(r, 100, 1, 0, BB_SEND_SIGNALED, false, &err), 1);
	lose(r);
	assert_int_equal(bb_replay_pending(r), 1);
	back();
	assert_int_equal(bb_replay_resume(r, reported, &p), 1);
	completes(r, 100);
	for (i = 1; i < KEPT - 1; i++) {
		assert_int_equal(put(r, 100 + i, 1, 0, BB_SEND_SIGNALED, false, &err), 1);
		completes(r, 100 + i);
	}
	assert_int_equal(put(r, 200, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
	assert_int_equal(put(r, 201, 1, 0, BB_SEND_SIGNALED, false, &err), 1);
	wc = completion();
	assert_true(bb_replay_completion(r, &wc));
	strcpy(region.name, "other");
	restart(r);
	assert_int_equal(bb_replay_resume(r, reported, &p), -ENOENT);
	assert_int_equal(nreports, 1);
	assert_int_equal(reports[0].wc.wr_id, 201);
	assert_int_equal(reports[0].fate, BB_WR_NOT_DONE);
}

/* A SEND that found no receive, as the event reports, was not executed. */
TEST(test_send_without_a_receive_is_posted_again)
{
	struct bb_replay *r;
	struct bb_sge sge;
	struct bb_send_wr wr = {.wr_id = 7, .flags = BB_SEND_SIGNALED, .nsge = 1};
	unsigned int polled;
	struct bb_wc wc;
	int err;

	for (polled = 0; polled < 2; polled++) {
		open_pair("soft0", NULL);
		p.b.param.rnr_retry_count = 0;
		r = begin(BB_REPLAY_NOT_DONE);
		sge = (struct bb_sge){(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
		wr.opcode = BB_WR_SEND;
		wr.sge = &sge;
		assert_int_equal(bb_replay_post(r, &wr, 1, &err), 1);
		work();
		if (polled) {
			wc = completion();
			assert_int_equal(wc.status, BB_WC_RNR_RETRY_EXC_ERR);
			assert_false(bb_replay_completion(r, &wc));
		}
		lose(r);
		assert_int_equal(bb_replay_pending(r), 1);
		back();
		sge = (struct bb_sge){(uintptr_t)p.b.buf, 8, p.b.mr->lkey};
		OK(bb_post_recv(l.qb, 1, &sge, 1));
		bb_qp_ring_recv(l.qb);
		assert_int_equal(bb_replay_resume(r, reported, &p), 1);
		completes(r, 7);
		assert_int_equal(nreports, 0);
		stop(r);
	}
}

/*
 * After a second post the second loss decides: the request may have been executed, also if the
 * first post surely was not.
 */
TEST(test_second_loss_decides_the_fate)
{
	struct bb_send_wr wr = {
		.wr_id = 7, .opcode = BB_WR_SEND, .flags = BB_SEND_SIGNALED, .nsge = 1};
	struct bb_replay *r;
	struct bb_qp_attr attr;
	struct bb_cm_event ev;
	struct bb_sge sge;
	struct bb_wc wc;
	int err;

	open_pair("soft0", NULL);
	p.b.param.rnr_retry_count = 0;
	r = begin(BB_REPLAY_NOT_DONE);
	sge = (struct bb_sge){(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
	wr.sge = &sge;
	assert_int_equal(bb_replay_post(r, &wr, 1, &err), 1);
	wc = completion();
	assert_int_equal(wc.status, BB_WC_RNR_RETRY_EXC_ERR);
	assert_false(bb_replay_completion(r, &wc));
	lose(r);
	back();
	assert_int_equal(bb_replay_resume(r, reported, &p), 1);
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(l.qa, &attr, BB_QP_STATE));
	wc = completion();
	assert_int_equal(wc.status, BB_WC_WR_FLUSH_ERR);
	assert_false(bb_replay_completion(r, &wc));
	ev = expect(&p, &p.a, BB_CM_LOST);
	assert_int_equal(ev.flushed, BB_WR_UNKNOWN);
	bb_replay_lost(r, &ev, reported, &p);
	assert_int_equal(nreports, 1);
	assert_int_equal(reports[0].fate, BB_WR_UNKNOWN);
	stop(r);
}

/* The peer stops answering, and the event reports it: the outcome of the requests is unknown. */
TEST(test_request_without_an_answer_has_unknown_fate)
{
	enum bb_replay_policy policy;
	struct bb_replay *r;
	unsigned int i;
	int err;

	for (policy = BB_REPLAY_NOT_DONE; policy <= BB_REPLAY_UNKNOWN; policy++) {
		r = start(policy, "soft0", NULL);
		bb_conn_destroy(l.b);
		bb_qp_destroy(l.qb);
		assert_int_equal(put(r, 100, 1, 0, BB_SEND_SIGNALED, false, &err), 1);
		for (i = 0; i < 100; i++) {
			rte_delay_us_block(100);
			bb_dev_progress(p.a.dev);
		}
		lose(r);
		l.b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
		l.qb = end_qp(&p.b);
		assert_int_equal(bb_replay_pending(r), policy == BB_REPLAY_UNKNOWN);
		assert_int_equal(nreports, policy != BB_REPLAY_UNKNOWN);
		if (nreports != 0) {
			assert_int_equal(reports[0].fate, BB_WR_UNKNOWN);
			assert_int_equal(reports[0].wc.status, BB_WC_RETRY_EXC_ERR);
		}
		stop(r);
	}
}

/* A request up to the last byte of the region is inside it; one byte more is not. */
TEST(test_only_requests_inside_the_region_follow_it)
{
	static const struct {
		int32_t off;
		uint32_t len;
		bool inside;
	} at[] = {
		{0, 8, true},    {4088, 8, true},  {4089, 8, false}, {-1, 8, false},
		{4096, 0, true}, {4097, 0, false}, {-8, 8, false},   {8192, 8, false},
	};
	struct bb_replay *r;
	struct bb_sge sge;
	unsigned int i;
	int err;

	for (i = 0; i < RTE_DIM(at); i++) {
		struct bb_send_wr wr = {.opcode = BB_WR_RDMA_WRITE, .nsge = 1};

		open_pair("soft0", NULL);
		OK(bb_region_of(p.b.mr, "buf", 8192, 4096, &region));
		r = begin(BB_REPLAY_NOT_DONE);
		assert_int_equal(put(r, 1, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
		sge = (struct bb_sge){(uintptr_t)p.a.buf, at[i].len, p.a.mr->lkey};
		wr.sge = &sge;
		wr.rdma.raddr = region.addr + (uint64_t)(int64_t)at[i].off;
		wr.rdma.rkey = region.rkey;
		assert_int_equal(bb_replay_post(r, &wr, 1, &err), 1);
		(void)completion();
		strcpy(region.name, "other");
		restart(r);
		assert_int_equal(bb_replay_pending(r), 1);
		assert_int_equal(bb_replay_resume(r, reported, &p), at[i].inside ? -ENOENT : 1);
		stop(r);
	}
}

/* The region of the second of three requests is gone: it was reported, and is not pending. */
TEST(test_reported_request_after_a_posted_one_is_not_pending)
{
	struct bb_replay *r = start(BB_REPLAY_NOT_DONE, "soft0", NULL);
	unsigned int i;
	int err;

	/* The first request fails; those with a wrong key name no region. */
	for (i = 0; i < 4; i++)
		assert_int_equal(put(r, i, i, i, BB_SEND_SIGNALED, i != 2, &err), 1);
	(void)completion();
	strcpy(region.name, "other");
	restart(r);
	assert_int_equal(bb_replay_pending(r), 3);
	assert_int_equal(bb_replay_resume(r, reported, &p), -ENOENT);
	assert_int_equal(reports[nreports - 1].wc.wr_id, 2);
	assert_int_equal(bb_replay_pending(r), 2);
	stop(r);
}

TEST(test_masked_atomics_follow_the_region)
{
	static const enum bb_wr_opcode kinds[] = {BB_WR_MASKED_CMP_AND_SWP,
						  BB_WR_MASKED_FETCH_AND_ADD};
	struct bb_replay *r;
	unsigned int i;
	int err;

	for (i = 0; i < RTE_DIM(kinds); i++) {
		struct bb_send_wr wr = {.opcode = kinds[i], .nsge = 1};
		struct bb_sge sge;

		r = start(BB_REPLAY_NOT_DONE, "soft0", NULL);
		assert_int_equal(put(r, 1, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
		sge = (struct bb_sge){(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
		wr.sge = &sge;
		wr.atomic.raddr = region.addr + 4088;
		wr.atomic.rkey = region.rkey;
		assert_int_equal(bb_replay_post(r, &wr, 1, &err), 1);
		(void)completion();
		strcpy(region.name, "other");
		restart(r);
		assert_int_equal(bb_replay_pending(r), 1);
		assert_int_equal(bb_replay_resume(r, reported, &p), -ENOENT);
		stop(r);
	}
}

TEST(test_inline_pieces_are_stored_as_one)
{
	struct bb_sge sge[BB_REPLAY_MAX_SGE + 1];
	struct bb_send_wr wr = {.wr_id = 5,
				.opcode = BB_WR_RDMA_WRITE,
				.flags = BB_SEND_INLINE | BB_SEND_SIGNALED,
				.sge = sge,
				.nsge = 3};
	struct bb_replay *r;
	int err;

	open_pair("soft0", NULL);
	p.a.init.max_sge = BB_REPLAY_MAX_SGE + 1;
	p.a.init.max_inline = BB_REPLAY_MAX_INLINE;
	r = begin(BB_REPLAY_NOT_DONE);
	assert_int_equal(put(r, 1, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
	memcpy(p.a.buf, "Bluebell", 8);
	sge[0] = (struct bb_sge){(uintptr_t)p.a.buf, 4, 0};
	sge[1] = (struct bb_sge){0, 0, 0};
	sge[2] = (struct bb_sge){(uintptr_t)p.a.buf + 4, 4, 0};
	wr.rdma.raddr = region.addr;
	wr.rdma.rkey = region.rkey;
	assert_int_equal(bb_replay_post(r, &wr, 1, &err), 1);
	memset(p.a.buf, 0, 8);
	(void)completion();
	lose(r);
	back();
	assert_int_equal(bb_replay_resume(r, reported, &p), 1);
	completes(r, 5);
	assert_memory_equal(p.b.buf, "Bluebell", 8);

	/* The maximum number of stored bytes and of pieces; one more is refused. */
	wr.nsge = 1;
	sge[0].len = BB_REPLAY_MAX_INLINE;
	assert_int_equal(bb_replay_post(r, &wr, 1, &err), 1);
	completes(r, 5);
	wr.flags = BB_SEND_SIGNALED;
	for (wr.nsge = 0; wr.nsge < RTE_DIM(sge); wr.nsge++)
		sge[wr.nsge] = (struct bb_sge){(uintptr_t)p.a.buf, 1, p.a.mr->lkey};
	OK(bb_replay_post(r, &wr, 1, &err));
	assert_int_equal(err, -EINVAL);
	wr.nsge--;
	assert_int_equal(bb_replay_post(r, &wr, 1, &err), 1);
	completes(r, 5);
	stop(r);
}

CONNECT_MAIN(RTE_LOG_CRIT)
