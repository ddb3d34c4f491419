/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Drain, and recovery after an error: every request is reported exactly once, with its true
 * outcome.
 */
#include "../mlx5_env.h"

#define SLOT  512u
#define SLOTS 128u
#define ENDS  512u

static struct bb_wr_end ends[ENDS];

static void
start(struct env *e, uint32_t max_inline)
{
	env_open(e);
	e->init.max_sge = 1;
	e->init.max_inline = max_inline;
	env_up(e);
}

#define T(name)              T_INLINE(200, name)
#define T_INLINE(max_, name) TEST_ON_AS(struct env, e, start(e, max_), env_stop(e), name)

static void
wait_cqes(struct env *e, struct side *s, uint32_t n)
{
	uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();

	while (bb_cqring_peek_at(&s->cq->ring, s->cq->ring.ci + n - 1) == NULL) {
		assert_true(rte_get_timer_cycles() < end);
		bb_dev_progress(e->a.dev);
		bb_dev_progress(e->b.dev);
		if (s->cq->progress != NULL)
			s->cq->progress(s->cq->progress_arg);
	}
}

static void
put(struct env *e, uint64_t wr_id, uint32_t offset, uint32_t rkey, uint32_t flags)
{
	uint64_t data = wr_id;

	OK(bb_post_write_inline(e->a.qp, wr_id, &data, sizeof(data), raddr_of(&e->b, offset), rkey,
				flags));
}

static void
expect_end(uint32_t i, uint64_t wr_id, enum bb_wr_fate fate, enum bb_wc_status status)
{
	assert_int_equal(ends[i].wc.wr_id, wr_id);
	if (ends[i].fate != fate)
		fail_msg("end %u: %s, not %s", i, bb_wr_fate_name(ends[i].fate),
			 bb_wr_fate_name(fate));
	assert_int_equal(ends[i].wc.status, status);
}

/* Moves both QPs to RTS again and writes through them. */
static void
bring_back(struct env *e, struct bb_qp *qa, struct bb_qp *qb, struct bb_qp_recovery *ra)
{
	struct bb_qp_recovery rb = {.ends = NULL};
	struct bb_qp_addr a, b;
	struct bb_wr_end rest[64];
	uint64_t data = 0x600d;
	struct bb_wc wc;

	rb.ends = rest;
	rb.max = RTE_DIM(rest);
	OK(bb_qp_addr(qa, 1, 0, &a));
	OK(bb_qp_addr(qb, 1, 0, &b));
	OK(bb_qp_recover(qa, &a, &b, &e->attr, ra));
	OK(bb_qp_recover(qb, &b, &a, qb->state == BB_QP_RESET ? &e->attr : NULL, &rb));
	assert_int_equal(qa->state, BB_QP_RTS);
	assert_int_equal(qb->state, BB_QP_RTS);
	assert_true(bb_qp_drained(qa));
	OK(bb_post_write_inline(qa, 4711, &data, 8, raddr_of(&e->b, ENV_BUF - 8), e->b.mr->rkey,
				BB_SEND_SIGNALED));
	bb_qp_ring(qa);
	do
		env_poll(e, &e->a, &wc, 1);
	while (wc.qp != qa);
	expect(&wc, qa, 4711, BB_WC_SUCCESS);
	assert_memory_equal(e->b.buf + ENV_BUF - 8, &data, 8);
}

/* The target reads the event of its error only after it was brought back. */
T(test_late_event_of_an_error_does_not_change_the_state)
{
	struct bb_qp_recovery r = {.ends = ends, .max = ENDS};
	struct bb_event event;

	put(e, 1, 0, e->b.mr->rkey + 1, BB_SEND_SIGNALED);
	bb_qp_ring(e->a.qp);
	wait_cqes(e, &e->a, 1);
	bring_back(e, e->a.qp, e->b.qp, &r);
	do
		env_event(e, e->b.dev, &event);
	while (event.type != BB_EVENT_QP_ACCESS);
	assert_ptr_equal(event.qp, e->b.qp);
	assert_int_equal(e->b.qp->state, BB_QP_RTS);
	put(e, 2, 0, e->b.mr->rkey, BB_SEND_SIGNALED);
	bb_qp_ring(e->a.qp);
	env_expect(e, &e->a, 2, BB_WC_SUCCESS);
}

T(test_access_error_leaves_later_requests_not_done)
{
	struct bb_qp_recovery r = {.ends = ends, .max = ENDS};
	struct bb_sge sge = sge_of(&e->a, 0, 64);
	const uint32_t good = e->b.mr->rkey;
	struct bb_qp_addr addr;

	memset(e->b.buf, 0, ENV_BUF);
	put(e, 10, 0, good, 0);
	put(e, 11, 8, good, BB_SEND_SIGNALED);
	put(e, 12, 16, good, 0);
	put(e, 13, 24, good + 1, BB_SEND_SIGNALED);
	put(e, 14, 32, good, 0);
	OK(bb_post_read(e->a.qp, 15, &sge, 1, raddr_of(&e->b, 0), good, 0));
	bb_qp_ring(e->a.qp);
	wait_cqes(e, &e->a, 4);
	/* Posted to a failed queue, and never rung. */
	put(e, 16, 40, good, 0);
	OK(bb_qp_recover(e->a.qp, NULL, NULL, NULL, &r));
	assert_int_equal(e->a.qp->state, BB_QP_RESET);
	assert_int_equal(r.n, 7);
	assert_int_equal(r.flushed, BB_WR_NOT_DONE);
	expect_end(0, 10, BB_WR_DONE, BB_WC_SUCCESS);
	expect_end(1, 11, BB_WR_DONE, BB_WC_SUCCESS);
	expect_end(2, 12, BB_WR_DONE, BB_WC_SUCCESS);
	expect_end(3, 13, BB_WR_FAILED, BB_WC_REM_ACCESS_ERR);
	expect_end(4, 14, BB_WR_NOT_DONE, BB_WC_WR_FLUSH_ERR);
	expect_end(5, 15, BB_WR_NOT_DONE, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(ends[5].wc.opcode, BB_WC_RDMA_READ);
	expect_end(6, 16, BB_WR_NOT_DONE, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(*(uint64_t *)(void *)(e->b.buf + 16), 12);
	assert_int_equal(*(uint64_t *)(void *)(e->b.buf + 32), 0);
	env_silent(e, &e->a);
	/* The reset has erased the address that the QP was connected with. */
	OK(bb_qp_addr(e->a.qp, 1, 0, &addr));
	assert_int_equal(bb_qp_recover(e->a.qp, &addr, &addr, NULL, &r), -EINVAL);
	assert_int_equal(bb_qp_recover(e->a.qp, NULL, &addr, &e->attr, &r), -EINVAL);
	assert_int_equal(e->a.qp->state, BB_QP_RESET);
	r.n = 99;
	bring_back(e, e->a.qp, e->b.qp, &r);
	assert_int_equal(r.n, 0);
}

/* The application has polled flush errors itself. */
T(test_polled_requests_are_not_reported_again)
{
	struct bb_qp_recovery r = {.ends = ends, .max = ENDS};
	struct bb_wc wc[3];

	put(e, 1, 0, 1, 0);
	put(e, 2, 8, e->b.mr->rkey, 0);
	put(e, 3, 8, e->b.mr->rkey, 0);
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->a, wc, 2);
	expect(&wc[1], e->a.qp, 2, BB_WC_WR_FLUSH_ERR);
	bring_back(e, e->a.qp, e->b.qp, &r);
	assert_int_equal(r.flushed, BB_WR_NOT_DONE);
	assert_int_equal(r.n, 1);
	expect_end(0, 3, BB_WR_NOT_DONE, BB_WC_WR_FLUSH_ERR);
}

/* The peer does not answer: later requests may have been executed or not. */
T(test_requests_after_a_silent_peer_are_unknown)
{
	struct bb_qp_recovery r = {.ends = ends, .max = ENDS};
	struct bb_qp_attr attr = e->attr;

	e->attr.timeout = 1;
	e->attr.retry_cnt = 1;
	bring_back(e, e->a.qp, e->b.qp, &r);
	attr.state = BB_QP_RESET;
	OK(bb_qp_modify(e->b.qp, &attr, BB_QP_STATE));
	put(e, 1, 0, e->b.mr->rkey, 0);
	put(e, 2, 8, e->b.mr->rkey, 0);
	bb_qp_ring(e->a.qp);
	wait_cqes(e, &e->a, 2);
	bring_back(e, e->a.qp, e->b.qp, &r);
	assert_int_equal(r.n, 2);
	expect_end(0, 1, BB_WR_FAILED, BB_WC_RETRY_EXC_ERR);
	expect_end(1, 2, BB_WR_UNKNOWN, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(r.flushed, BB_WR_UNKNOWN);
}

/* A message that waits in the CQ is not lost; unused receives are returned. */
T(test_unpolled_message_is_reported_done)
{
	struct bb_qp_recovery r = {.ends = ends, .max = ENDS};
	struct bb_sge sge = sge_of(&e->b, 0, 64);
	struct bb_wc wc;
	uint64_t i;

	for (i = 0; i < 4; i++)
		OK(bb_post_recv(e->b.qp, 100 + i, &sge, 1));
	bb_qp_ring_recv(e->b.qp);
	OK(bb_post_recv(e->b.qp, 104, &sge, 1));
	OK(bb_post_send_imm_inline(e->a.qp, 1, "abc", 3, 0x11223344, BB_SEND_SIGNALED));
	bb_qp_ring(e->a.qp);
	wait_cqes(e, &e->b, 1);
	env_poll(e, &e->a, &wc, 1);
	OK(bb_qp_recover(e->b.qp, NULL, NULL, NULL, &r));
	assert_int_equal(r.n, 5);
	for (i = 0; i < 5; i++)
		assert_true(ends[i].recv);
	expect_end(0, 100, BB_WR_DONE, BB_WC_SUCCESS);
	assert_int_equal(ends[0].wc.byte_len, 3);
	assert_int_equal(ends[0].wc.imm, 0x11223344);
	for (i = 1; i < 5; i++)
		expect_end((uint32_t)i, 100 + i, BB_WR_NOT_DONE, BB_WC_WR_FLUSH_ERR);
	bring_back(e, e->a.qp, e->b.qp, &r);
}

/* Too few entries: no request is lost, and the next call continues. */
T(test_recovery_continues_after_too_few_entries)
{
	struct bb_qp_recovery r = {.ends = ends, .max = 3};
	uint32_t next = 0, i, calls;
	int ret;

	for (i = 0; i < 10; i++)
		put(e, i, 8 * i, i == 4 ? 1 : e->b.mr->rkey, i == 3 ? BB_SEND_SIGNALED : 0);
	bb_qp_ring(e->a.qp);
	wait_cqes(e, &e->a, 7);
	put(e, 10, 80, e->b.mr->rkey, 0); /* not rung */
	/* One CQE completes requests 0 to 3: three entries are not enough. */
	assert_int_equal(bb_qp_recover(e->a.qp, NULL, NULL, NULL, &r), -ENOSPC);
	assert_int_equal(r.n, 0);
	assert_int_equal(e->a.qp->state, BB_QP_ERR);
	r.max = 4;
	for (calls = 0; calls < 10; calls++) {
		ret = bb_qp_recover(e->a.qp, NULL, NULL, NULL, &r);
		for (i = 0; i < r.n; i++, next++)
			expect_end(i, next,
				   next < 4    ? BB_WR_DONE
				   : next == 4 ? BB_WR_FAILED
					       : BB_WR_NOT_DONE,
				   next < 4    ? BB_WC_SUCCESS
				   : next == 4 ? BB_WC_REM_ACCESS_ERR
					       : BB_WC_WR_FLUSH_ERR);
		if (ret == 0)
			break;
		assert_int_equal(ret, -ENOSPC);
	}
	assert_int_equal(next, 11);
	assert_int_equal(e->a.qp->state, BB_QP_RESET);
	bring_back(e, e->a.qp, e->b.qp, &r);
}

/* Requests that have no CQE because they were never rung need entries, too. */
T(test_requests_never_rung_need_entries)
{
	struct bb_qp_recovery r = {.ends = ends, .max = 3};
	struct bb_sge sge = sge_of(&e->a, 0, 64);
	uint64_t i;

	for (i = 0; i < 4; i++)
		OK(bb_post_recv(e->a.qp, 100 + i, &sge, 1));
	assert_int_equal(bb_qp_recover(e->a.qp, NULL, NULL, NULL, &r), -ENOSPC);
	assert_int_equal(r.n, 0);
	assert_int_equal(e->a.qp->state, BB_QP_ERR);
	r.max = 4;
	OK(bb_qp_recover(e->a.qp, NULL, NULL, NULL, &r));
	assert_int_equal(r.n, 4);
	for (i = 0; i < 4; i++)
		expect_end((uint32_t)i, 100 + i, BB_WR_NOT_DONE, BB_WC_WR_FLUSH_ERR);
	bring_back(e, e->a.qp, e->b.qp, &r);
}

/* A shared CQ: the other QP's completions stay, in order, before and after. */
T(test_other_qp_of_the_cq_keeps_its_completions)
{
	struct bb_qp_recovery r = {.ends = ends, .max = ENDS};
	struct bb_qp *first_a = e->a.qp, *first_b = e->b.qp, *second_a, *second_b;
	struct bb_wc wc[16];
	uint64_t i;

	env_up(e);
	second_a = e->a.qp;
	second_b = e->b.qp;
	for (i = 0; i < 8; i++) {
		e->a.qp = second_a;
		put(e, 200 + i, 1024, e->b.mr->rkey, BB_SEND_SIGNALED);
		bb_qp_ring(second_a);
		wait_cqes(e, &e->a, (uint32_t)(2 * i + 1));
		e->a.qp = first_a;
		put(e, i, 2048, i == 5 ? 1 : e->b.mr->rkey, BB_SEND_SIGNALED);
		bb_qp_ring(first_a);
		wait_cqes(e, &e->a, (uint32_t)(2 * i + 2));
	}
	OK(bb_qp_recover(first_a, NULL, NULL, NULL, &r));
	assert_int_equal(r.n, 8);
	for (i = 0; i < 8; i++)
		assert_int_equal(ends[i].wc.wr_id, i);
	env_poll(e, &e->a, wc, 8);
	for (i = 0; i < 8; i++)
		expect(&wc[i], second_a, 200 + i, BB_WC_SUCCESS);
	env_silent(e, &e->a);
	bring_back(e, first_a, first_b, &r);
	OK(bb_qp_destroy(second_a));
	OK(bb_qp_destroy(second_b));
	e->b.qp = first_b;
}

/*
 * A compressed receive CQ that is shared with another QP; a block has several messages of a QP.
 */
T(test_other_qp_of_a_compressed_cq_keeps_its_completions)
{
	struct bb_qp_recovery r = {.ends = ends, .max = ENDS};
	struct bb_qp *first_a = e->a.qp, *first_b = e->b.qp, *qa[2], *qb[2];
	struct bb_sge sge = sge_of(&e->b, 0, 64);
	struct bb_cq *old = e->b.cq, *cq;
	struct bb_cq_attr attr;
	struct bb_wc wc[16];
	uint64_t i;
	int k;

	bb_cq_attr_init(&attr);
	attr.compress = true;
	OK(bb_cq_create(e->b.dev, &attr, &cq));
	for (k = 0; k < 2; k++) {
		struct bb_qp_init_attr init = e->init;

		side_qp(e, &e->a);
		qa[k] = e->a.qp;
		init.send_cq = old;
		init.recv_cq = cq;
		OK(bb_qp_create(e->b.pd, &init, &qb[k]));
		connect_pair(qa[k], qb[k], &e->attr);
		for (i = 0; i < 16; i++)
			OK(bb_post_recv(qb[k], (uint64_t)k * 100 + i, &sge, 1));
		bb_qp_ring_recv(qb[k]);
	}
	for (i = 0; i < 8; i++) {
		k = (int)i & 1;
		OK(bb_post_send_inline(qa[k], i, "abc", 3, 0));
		OK(bb_post_send_inline(qa[k], i, "abc", 3, 0));
		OK(bb_post_send_inline(qa[k], i, "abc", 3, BB_SEND_SIGNALED));
		bb_qp_ring(qa[k]);
		env_poll(e, &e->a, wc, 1);
	}
	e->b.cq = cq;
	wait_cqes(e, &e->b, 1);
	OK(bb_qp_recover(qb[0], NULL, NULL, NULL, &r));
	assert_int_equal(r.n, 16);
	for (i = 0; i < 16; i++) {
		expect_end((uint32_t)i, i, i < 12 ? BB_WR_DONE : BB_WR_NOT_DONE,
			   i < 12 ? BB_WC_SUCCESS : BB_WC_WR_FLUSH_ERR);
		assert_int_equal(ends[i].wc.byte_len, i < 12 ? 3 : 0);
	}
	env_poll(e, &e->b, wc, 12);
	for (i = 0; i < 12; i++)
		expect(&wc[i], qb[1], 100 + i, BB_WC_SUCCESS);
	env_silent(e, &e->b);
	for (k = 0; k < 2; k++) {
		OK(bb_qp_destroy(qa[k]));
		OK(bb_qp_destroy(qb[k]));
	}
	OK(bb_cq_destroy(cq));
	e->b.cq = old;
	e->a.qp = first_a;
	e->b.qp = first_b;
}

/*
 * A request of several slots counts as one request, wherever the recovery finds it: a bind has
 * three blocks.
 */
static void
several_slots(struct env *e)
{
	enum {
		NOT_RUNG,
		RUNG,
		FIRST_POLLED,
		FIRST_FAILS,
		WAYS
	};
	const uint32_t good = e->b.mr->rkey;
	struct bb_mr *mr;
	struct bb_mw *mw;
	char text[2048];
	uint32_t i, k;

	for (i = 0; i < 16 * WAYS; i++) {
		struct bb_qp_recovery r = {.ends = ends, .max = 3};
		const uint32_t way = i % WAYS, first = way == FIRST_POLLED ? 2 : 1;
		const bool done = way == RUNG || way == FIRST_POLLED;
		struct bb_wc wc;

		OK(bb_mr_reg(e->a.pd, e->a.buf, 4096, ENV_ALL | BB_ACCESS_MW_BIND, &mr));
		OK(bb_mw_alloc(e->a.pd, BB_MW_TYPE_1, &mw));
		/* Advances through the ring, past its end. */
		for (k = 0; k < 31 * i; k++) {
			put(e, 0, 0, good, BB_SEND_SIGNALED);
			bb_qp_ring(e->a.qp);
			env_poll(e, &e->a, &wc, 1);
		}
		put(e, 1, 0, way == FIRST_FAILS ? 1 : good, BB_SEND_SIGNALED);
		OK(bb_mw_bind(e->a.qp, 2, mw, mr, raddr_of(&e->a, 0), 64, BB_ACCESS_REMOTE_WRITE,
			      0));
		put(e, 3, 8, good, BB_SEND_SIGNALED);
		assert_true(bb_sq_outstanding(&e->a.qp->sq) > 3);
		if (way != NOT_RUNG) {
			bb_qp_ring(e->a.qp);
			wait_cqes(e, &e->a, way == FIRST_FAILS ? 3 : 2);
		}
		if (way == FIRST_POLLED)
			env_poll(e, &e->a, &wc, 1);
		assert_true(bb_qp_pending_text(e->a.qp, text, sizeof(text)) > 0);
		assert_non_null(strstr(
			text,
			first == 1 ? " 3 requests without a completion; the oldest, wr_id 0x1,"
				   : " 2 requests without a completion; the oldest, wr_id 0x2,"));
		bring_back(e, e->a.qp, e->b.qp, &r);
		assert_int_equal(r.n, 4 - first);
		for (k = way == FIRST_FAILS; k < r.n; k++)
			expect_end(k, first + k, done ? BB_WR_DONE : BB_WR_NOT_DONE,
				   done ? BB_WC_SUCCESS : BB_WC_WR_FLUSH_ERR);
		if (way == FIRST_FAILS)
			expect_end(0, 1, BB_WR_FAILED, BB_WC_REM_ACCESS_ERR);
		OK(bb_mw_free(mw));
		OK(bb_mr_dereg(mr));
	}
}

T_INLINE(64, test_request_of_two_slots_is_recovered_once)
{
	several_slots(e);
}

T_INLINE(8, test_request_of_three_slots_is_recovered_once)
{
	several_slots(e);
}

T(test_drain_completes_all_requests)
{
	struct bb_qp_attr attr;
	struct bb_qp_stats stats;
	struct bb_wc wc;
	uint32_t i, calls;

	OK(bb_qp_drain(e->a.qp));
	for (i = 0; i < 300; i++) {
		uint32_t k, n = 1 + i % 7;

		for (k = 0; k < n; k++)
			put(e, k, 8 * k, e->b.mr->rkey, 0);
		if (i % 3 == 0)
			bb_qp_ring(e->a.qp);
		assert_false(bb_qp_drained(e->a.qp));
		for (calls = 0; bb_qp_drain(e->a.qp) == -EAGAIN; calls++) {
			assert_in_range(calls, 0, 100000000);
			/* None of them was signalled, and the library's NOP is not reported. */
			assert_int_equal(bb_cq_poll(e->a.cq, &wc, 1), 0);
		}
		assert_true(bb_qp_drained(e->a.qp));
	}
	/* Repeated calls post one NOP. */
	OK(bb_qp_stats(e->a.qp, &stats));
	assert_in_range(stats.posted, 1197, 1197 + 300);
	/* A full queue is not an error. */
	while (bb_post_nop(e->a.qp, 1, 0) == 0)
		;
	for (calls = 0; bb_qp_drain(e->a.qp) == -EAGAIN; calls++) {
		assert_in_range(calls, 0, 100000000);
		assert_int_equal(bb_cq_poll(e->a.cq, &wc, 1), 0);
	}
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_RESET;
	OK(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE));
	assert_int_equal(bb_qp_drain(e->a.qp), -ENOTCONN);
}

static uint64_t seed = 20261120;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

/* Returns true if the target's memory has the bytes that request @id of @len bytes wrote. */
static bool
slot_has(const struct env *e, uint64_t id, uint32_t len)
{
	uint8_t want[SLOT];

	fill(want, len, (uint32_t)id);
	return memcmp(e->b.buf + (id % SLOTS) * SLOT, want, len) == 0;
}

/*
 * WRITEs of one to four blocks, polled or not, one of them refused, some not rung. For every
 * request since the last poll the recovery's result agrees with the target's memory.
 */
T(test_random_outcomes_agree_with_the_targets_memory)
{
	static uint32_t len[1 << 16];
	uint32_t round, i, slow = 0;
	uint64_t id = 1, start;

	for (round = 0; round < 400; round++) {
		struct bb_qp_recovery r = {.ends = ends, .max = ENDS};
		uint32_t n = 1 + rnd(100), bad = rnd(2) != 0 ? rnd(n) : n, rung = rnd(n + 1);
		uint64_t first = id, reported = id - 1;
		struct bb_wc wc[8];

		memset(e->b.buf, 0xee, SLOTS * SLOT);
		for (i = 0; i < n; i++, id++) {
			uint8_t data[SLOT];

			len[id & 0xffff] = 8 + rnd(180);
			fill(data, len[id & 0xffff], (uint32_t)id);
			OK(bb_post_write_inline(e->a.qp, id, data, len[id & 0xffff],
						raddr_of(&e->b, (id % SLOTS) * SLOT),
						i == bad ? 1 : e->b.mr->rkey,
						rnd(3) == 0 ? BB_SEND_SIGNALED : 0));
			if (i < rung && rnd(4) == 0)
				bb_qp_ring(e->a.qp);
			if (rnd(8) == 0) {
				uint32_t k, got = bb_cq_poll(e->a.cq, wc, 8);

				for (k = 0; k < got; k++)
					reported = wc[k].wr_id;
			}
		}
		start = env_cpu_ns();
		bring_back(e, e->a.qp, e->b.qp, &r);
		/* The recovery does not wait if the device owes no completion. */
		slow += env_cpu_ns() - start > 500000000;
		assert_true(r.n == 0 || ends[0].wc.wr_id > reported);
		for (i = 0; i < r.n; i++) {
			uint64_t me = ends[i].wc.wr_id;
			bool there = slot_has(e, me, len[me & 0xffff]);

			assert_in_range(me, first, id - 1);
			assert_int_equal(me, id - r.n + i);
			if (ends[i].fate == BB_WR_DONE)
				assert_true(there);
			else if (ends[i].fate != BB_WR_UNKNOWN)
				assert_false(there);
			if (me == first + bad && ends[i].fate == BB_WR_FAILED)
				assert_int_equal(ends[i].wc.status, BB_WC_REM_ACCESS_ERR);
			else
				assert_int_not_equal(ends[i].fate, BB_WR_FAILED);
		}
		/* Requests that were never rung are returned to be posted again. */
		assert_true(r.n == 0 || ends[r.n - 1].wc.wr_id == id - 1);
	}
	assert_in_range(slow, 0, 10);
}

TEST_MAIN(env_eal_init("recover"))
