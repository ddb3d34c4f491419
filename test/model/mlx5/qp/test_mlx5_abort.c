/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * bb_qp_abort(). Two queue pairs make the same posts and ring the doorbell. One of them posts
 * other requests in between and takes them back. Both must agree in ring contents, free room,
 * signalling cadence and completions.
 */
#include "../mem/keys_env.h"

#define DEPTH   24u
#define SLOT    64u
#define ABORTED UINT64_MAX /* wr_id of requests that are taken back */
struct twin {
	struct env *e;
	struct bb_qp *qp[2]; /* qp[1] posts and aborts in between. */
	uint64_t rng;
	uint64_t wr_id;
	uint32_t aborts;
};

static uint32_t
below(struct twin *t, uint32_t n)
{
	t->rng = t->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(t->rng >> 33) % n;
}

/* Posts one request of a kind, with data @fill. Returns the post's result. */
static int
post(const struct twin *t, struct bb_qp *qp, uint32_t kind, uint32_t at, uint8_t fill,
     uint64_t wr_id, uint32_t flags)
{
	const uint64_t raddr = raddr_of(&t->e->b, at * SLOT);
	const uint32_t rkey = t->e->b.mr->rkey;
	struct bb_sge sge = sge_of(&t->e->a, at * SLOT, 8);
	uint8_t data[40];

	memset(data, fill, sizeof(data));
	switch (kind) {
	case 0:
		return bb_post_write_inline(qp, wr_id, data, 1 + at % qp->sq.max_inline, raddr,
					    rkey, flags);
	case 1:
		return bb_post_read(qp, wr_id, &sge, 1, raddr, rkey, flags);
	case 2:
		return bb_post_fetch_add(qp, wr_id, &sge, raddr, rkey, 0, flags);
	case 3:
		return bb_post_masked_cmp_swap(qp, wr_id, &sge, raddr, rkey, 0, 0, 0, 0, flags);
	case 4:
		return bb_post_local_inv(qp, wr_id, t->e->b.mr->rkey ^ 0xff00, flags);
	default:
		return bb_post_nop(qp, wr_id, flags);
	}
}

/* Compares the state that the next post and the next completion depend on. */
static void
compare(const struct twin *t)
{
	const struct bb_sq *a = &t->qp[0]->sq, *b = &t->qp[1]->sq;
	struct bb_qp_stats sa, sb;
	char ta[8192], tb[8192];
	uint32_t i;
	int la;

	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->pi, b->pi);
	assert_int_equal(a->carry, b->carry);
	assert_int_equal(a->done, b->done);
	assert_int_equal(a->sig_seq, b->sig_seq);
	assert_int_equal(a->limit, b->limit);
	assert_int_equal(a->rd_limit, b->rd_limit);
	assert_int_equal(a->fence, b->fence);
	assert_int_equal(a->rung_seq, b->rung_seq);
	OK(bb_qp_stats(t->qp[0], &sa));
	OK(bb_qp_stats(t->qp[1], &sb));
	assert_int_equal(sa.posted, sb.posted);
	assert_int_equal(sa.outstanding, sb.outstanding);
	assert_int_equal(sa.doorbells, sb.doorbells);
	assert_int_equal(sa.send_cqes, sb.send_cqes);
	/* Compares the dumps of outstanding requests, without the QP's number. */
	la = bb_qp_pending_text(t->qp[0], ta, sizeof(ta));
	assert_int_equal(bb_qp_pending_text(t->qp[1], tb, sizeof(tb)) < 0, la < 0);
	if (la > 0) {
		*strchr(ta, '\n') = '\0';
		*strchr(tb, '\n') = '\0';
		assert_string_equal(strchr(ta, ':'), strchr(tb, ':'));
	}
	for (i = 0; i <= a->mask; i++) {
		/* Skips entries that are not outstanding, and blocks in which no request begins. */
		if (a->wqes[i].seq - a->done - 1 >= a->seq - a->done || a->wqes[i].wr_id == 0)
			continue;
		assert_int_equal(a->wqes[i].wr_id, b->wqes[i].wr_id);
		assert_int_equal(a->wqes[i].seq, b->wqes[i].seq);
		assert_int_equal(a->wqes[i].flags, b->wqes[i].flags);
		/* Opcode and index; ds; fence, CE and immediate. */
		assert_memory_equal(a->buf + i * BB_WQE_BB, b->buf + i * BB_WQE_BB, 4);
		assert_int_equal(a->buf[i * BB_WQE_BB + 7], b->buf[i * BB_WQE_BB + 7]);
		assert_memory_equal(a->buf + i * BB_WQE_BB + 8, b->buf + i * BB_WQE_BB + 8, 8);
	}
}

/* Posts requests and takes them back; each would write 0xee, or complete with ABORTED. */
static void
post_and_abort(struct twin *t)
{
	const uint32_t n = below(t, DEPTH + 4);
	uint32_t i;

	/*
	 * The first request is a NOP. A request of two slots may make the library ring a NOP of
	 * its own, which cannot be taken back; it does not after a post that was not rung.
	 */
	for (i = 0; i < n; i++)
		(void)post(t, t->qp[1],
			   i == 0             ? 5
			   : below(t, 4) == 0 ? 4
					      : below(t, 6),
			   32 + below(t, 16), 0xee, ABORTED,
			   below(t, 3) == 0 ? BB_SEND_SIGNALED : 0);
	OK(bb_qp_abort(t->qp[1]));
	t->aborts += n;
}

static void
poll_both(struct twin *t)
{
	struct bb_wc wc[32];
	uint64_t last[2] = {0, 0};
	uint32_t i, n;

	while ((n = bb_cq_poll(t->e->a.cq, wc, 32)) != 0) {
		for (i = 0; i < n; i++) {
			const int k = wc[i].qp == t->qp[1];

			assert_int_equal(wc[i].status, BB_WC_SUCCESS);
			assert_int_not_equal(wc[i].wr_id, ABORTED);
			assert_true(wc[i].wr_id > last[k]);
			last[k] = wc[i].wr_id;
		}
	}
}

static void
start(struct twin *t, struct env *e, uint32_t signal_every, uint32_t max_inline)
{
	uint32_t i;

	*t = (struct twin){.e = e, .rng = 7 + signal_every};
	for (i = 0; i < 2; i++) {
		struct bb_qp_init_attr init = e->init;
		struct bb_qp *peer;

		init.send_cq = init.recv_cq = e->a.cq;
		init.sq_depth = DEPTH;
		init.rq_depth = 0;
		init.max_sge = 1;
		init.max_inline = max_inline;
		init.signal_every = signal_every;
		OK(bb_qp_create(e->a.pd, &init, &t->qp[i]));
		init.send_cq = init.recv_cq = e->b.cq;
		OK(bb_qp_create(e->b.pd, &init, &peer));
		connect_pair(t->qp[i], peer, &e->attr);
		t->qp[i]->user = peer;
	}
}

/*
 * Sets the request numbers close to their wrap: seq exceeds 32 bits, and its high half is in
 * rung_seq.
 */
static void
near_wrap(struct twin *t)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		struct bb_sq *sq = &t->qp[i]->sq;

		sq->seq = sq->done = sq->sig_seq = UINT32_MAX - 40;
		sq->rung_seq = UINT32_MAX - 40;
	}
}

static void
stop(struct twin *t)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		OK(bb_qp_destroy(t->qp[i]->user));
		OK(bb_qp_destroy(t->qp[i]));
	}
}

/* More than 4 times round the ring, with every kind of request before and within the abort. */
KEYS_TEST(test_aborted_posts_leave_no_trace)
{
	static const uint32_t cadence[] = {0, 1, 3, DEPTH};
	struct twin t;
	uint32_t c, i;

	/* With 12 bytes inline, masked atomics and invalidations take two slots. */
	for (c = 0; c < 2 * RTE_DIM(cadence); c++) {
		start(&t, e, cadence[c / 2], c % 2 == 0 ? 40 : 12);
		if (c >= RTE_DIM(cadence))
			near_wrap(&t);
		memset(e->b.buf + 32 * SLOT, 0, 16 * SLOT);
		for (i = 0; i < 3000; i++) {
			const uint32_t kind = below(&t, 6) % 5, at = below(&t, 32);
			const uint32_t flags = below(&t, 4) == 0 ? BB_SEND_SIGNALED : 0;
			int ret[2];

			t.wr_id++;
			ret[0] = post(&t, t.qp[0], kind == 4 ? 5 : kind, at, 1, t.wr_id, flags);
			ret[1] = post(&t, t.qp[1], kind == 4 ? 5 : kind, at, 1, t.wr_id, flags);
			assert_int_equal(ret[0], ret[1]);
			if (ret[0] == -EAGAIN || below(&t, 3) == 0) {
				bb_qp_ring(t.qp[0]);
				bb_qp_ring(t.qp[1]);
				compare(&t);
				post_and_abort(&t);
				compare(&t);
			}
			if (ret[0] == -EAGAIN || below(&t, 5) == 0)
				poll_both(&t);
		}
		assert_true(t.aborts > 3000);
		for (i = 32 * SLOT; i < 48 * SLOT; i++)
			assert_int_equal(e->b.buf[i], 0);
		bb_qp_ring(t.qp[0]);
		bb_qp_ring(t.qp[1]);
		for (i = 0; i < 1000; i++)
			poll_both(&t);
		stop(&t);
	}
}

KEYS_TEST(test_abort_without_posts_changes_nothing)
{
	struct bb_wc wc;
	struct twin t;

	start(&t, e, 0, 40);
	assert_int_equal(bb_qp_abort(NULL), -EINVAL);
	OK(bb_qp_abort(t.qp[0]));
	OK(bb_post_nop(t.qp[0], 1, BB_SEND_SIGNALED));
	bb_qp_ring(t.qp[0]);
	OK(bb_qp_abort(t.qp[0]));
	env_poll(e, &e->a, &wc, 1);
	assert_int_equal(wc.wr_id, 1);
	stop(&t);
}

/* After a bind is taken back the window has its previous key and holds no region. */
KEYS_TEST(test_aborted_bind_gives_the_key_back)
{
	struct bb_mr *mr;
	struct bb_mw *mw;
	struct bb_wc wc;
	struct twin t;
	uint32_t rkey, i;

	start(&t, e, 0, 40);
	OK(bb_mr_reg(e->a.pd, e->a.buf, 4096, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_MW_BIND, &mr));
	OK(bb_mw_alloc(e->a.pd, BB_MW_TYPE_1, &mw));
	for (i = 0; i < 20; i++) {
		rkey = mw->rkey;
		OK(bb_mw_bind(t.qp[0], 1, mw, mr, (uintptr_t)e->a.buf, 64, BB_ACCESS_REMOTE_READ,
			      0));
		OK(bb_mw_bind(t.qp[0], 1, mw, mr, (uintptr_t)e->a.buf, 128, BB_ACCESS_REMOTE_READ,
			      0));
		assert_int_not_equal(mw->rkey, rkey);
		OK(bb_qp_abort(t.qp[0]));
		assert_int_equal(mw->rkey, rkey);
	}
	/* An invalidation by another low byte does not change the key. */
	OK(bb_post_local_inv(t.qp[0], 1, mw->rkey ^ 0x80, 0));
	OK(bb_qp_abort(t.qp[0]));
	assert_int_equal(mw->rkey, rkey);
	/* Two queues, of which the first one aborts first. */
	for (i = 0; i < 2; i++)
		OK(bb_mw_bind(t.qp[i], 1, mw, mr, (uintptr_t)e->a.buf, 64, BB_ACCESS_REMOTE_READ,
			      0));
	OK(bb_qp_abort(t.qp[0]));
	OK(bb_qp_abort(t.qp[1]));
	assert_int_equal(mw->rkey, rkey);
	/* The next bind uses the key of the aborted bind. */
	OK(bb_mw_bind(t.qp[0], 2, mw, mr, (uintptr_t)e->a.buf, 64, BB_ACCESS_REMOTE_READ,
		      BB_SEND_SIGNALED));
	bb_qp_ring(t.qp[0]);
	env_poll(e, &e->a, &wc, 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	OK(bb_mw_free(mw));
	OK(bb_mr_dereg(mr));
	stop(&t);
}

TEST_MAIN(env_eal_init("mlx5_abort"))
