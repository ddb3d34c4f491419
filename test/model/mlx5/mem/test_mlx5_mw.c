/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory windows through the public API. */
#include <pthread.h>

#include "bb_core.h"
#include "keys_env.h"

static void
bind1(struct env *e, struct bb_mw *mw, uint64_t addr, uint64_t len, uint32_t access)
{
	uint32_t old = mw->rkey;

	OK(bb_mw_bind(e->b.qp, 2, mw, len == 0 ? NULL : e->b.mr, addr, len, access,
		      BB_SEND_SIGNALED));
	assert_int_equal(mw->rkey, bb_inc_rkey(old));
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_SUCCESS);
}

static void
bind2(struct env *e, struct bb_mw *mw, uint64_t addr, uint64_t len, uint32_t access)
{
	uint32_t rkey = bb_inc_rkey(mw->rkey);

	OK(bb_post_bind_mw(e->b.qp, 2, mw, rkey, e->b.mr, addr, len, access, BB_SEND_SIGNALED));
	assert_int_equal(mw->rkey, rkey);
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_SUCCESS);
}

KEYS_TEST(test_window_that_was_never_bound_gives_no_access)
{
	enum bb_mw_type type;
	struct bb_mw *mw;

	for (type = BB_MW_TYPE_1; type <= BB_MW_TYPE_2; type++) {
		OK(bb_mw_alloc(e->b.pd, type, &mw));
		all_refused(e, raddr_of(&e->b, 0), mw->rkey);
		OK(bb_mw_free(mw));
	}
}

/* Both ends fail, and the window holds its region no longer. */
KEYS_TEST(test_second_invalidation_by_the_peer_fails)
{
	struct bb_sge sge = sge_of(&e->b, 0, 64);
	struct bb_mw *mw;
	unsigned int i;

	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_2, &mw));
	bind2(e, mw, raddr_of(&e->b, 8192), 64, REMOTE);
	for (i = 0; i < 2; i++) {
		OK(bb_post_recv(e->b.qp, 7, &sge, 1));
		bb_qp_ring_recv(e->b.qp);
		OK(bb_post_send_inv_inline(e->a.qp, 4, "x", 1, mw->rkey, BB_SEND_SIGNALED));
		assert_int_equal(done(e, &e->a, BB_WC_SEND),
				 i == 0 ? BB_WC_SUCCESS : BB_WC_REM_OP_ERR);
		env_expect(e, &e->b, 7, i == 0 ? BB_WC_SUCCESS : BB_WC_REM_INV_REQ_ERR);
	}
	fresh(e);
	OK(bb_mr_dereg(e->b.mr));
	OK(bb_mr_reg(e->b.pd, e->b.buf, ENV_BUF, ENV_ALL | BB_ACCESS_MW_BIND, &e->b.mr));
	OK(bb_mw_free(mw));
}

/* Invalid arguments return -EINVAL and change neither the window nor the QP. */
KEYS_TEST(test_invalid_binds_change_nothing)
{
	struct bb_mr *ro, *foreign, *paged;
	struct bb_dev_attr attr;
	struct bb_mw *one, *two, *theirs;
	struct bb_pd *pd;
	uint32_t rkey;
	uint64_t at = raddr_of(&e->b, 0);

	assert_int_equal(bb_mw_alloc(NULL, BB_MW_TYPE_1, &one), -EINVAL);
	assert_int_equal(bb_mw_alloc(e->b.pd, BB_MW_TYPE_1, NULL), -EINVAL);
	assert_int_equal(bb_mw_free(NULL), -EINVAL);
	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_1, &one));
	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_2, &two));
	OK(bb_mr_reg(e->b.pd, e->b.buf, 4096, BB_ACCESS_MW_BIND | BB_ACCESS_REMOTE_READ, &ro));
	rkey = one->rkey;
#define NOT1(mr_, addr_, len_, access_, want_)                                                     \
	assert_int_equal(bb_mw_bind(e->b.qp, 0, one, mr_, addr_, len_, access_, 0), want_)
	NOT1(ro, at, 64, BB_ACCESS_REMOTE_READ | BB_ACCESS_ZERO_BASED, -EINVAL);
	NOT1(ro, at, (1ull << 31) + 1, BB_ACCESS_REMOTE_READ, -EOPNOTSUPP);
	NOT1(NULL, at, 64, BB_ACCESS_REMOTE_READ, -EINVAL);
	assert_int_equal(one->rkey, rkey);
#define NOT2(mw_, rkey_, mr_, len_)                                                                \
	assert_int_equal(                                                                          \
		bb_post_bind_mw(e->b.qp, 0, mw_, rkey_, mr_, at, len_, BB_ACCESS_REMOTE_READ, 0),  \
		-EINVAL)
	NOT2(two, bb_inc_rkey(two->rkey), NULL, 64);
	NOT2(two, bb_inc_rkey(two->rkey), ro, 0);
	/* An on-demand region has no lkey. */
	OK(bb_dev_query(e->b.dev, &attr));
	if (attr.odp) {
		OK(bb_mr_reg(e->b.pd, e->b.buf, 4096,
			     BB_ACCESS_MW_BIND | BB_ACCESS_REMOTE_READ | BB_ACCESS_ON_DEMAND,
			     &paged));
		NOT1(paged, at, 64, BB_ACCESS_REMOTE_READ, -EINVAL);
		NOT2(two, bb_inc_rkey(two->rkey), paged, 64);
		OK(bb_mr_dereg(paged));
	}
	if (e->a.pd != e->b.pd)
		assert_int_equal(bb_mw_bind(e->a.qp, 0, one, e->a.mr, raddr_of(&e->a, 0), 64,
					    BB_ACCESS_REMOTE_READ, 0),
				 -EINVAL);
	/* A window of a PD other than the QP's. */
	OK(bb_pd_alloc(e->b.dev, &pd));
	OK(bb_mr_reg(pd, e->b.buf, 4096, ENV_ALL | BB_ACCESS_MW_BIND, &foreign));
	OK(bb_mw_alloc(pd, BB_MW_TYPE_1, &theirs));
	assert_int_equal(bb_mw_bind(e->b.qp, 0, theirs, foreign, at, 64, BB_ACCESS_REMOTE_READ, 0),
			 -EINVAL);
	assert_int_equal(bb_mw_bind(e->b.qp, 0, theirs, NULL, 0, 0, 0, 0), -EINVAL);
	OK(bb_mw_free(theirs));
	OK(bb_mr_dereg(foreign));
	OK(bb_pd_free(pd));
	/* The refused calls posted nothing. */
	env_silent(e, &e->b);
	/* The whole region may be bound. */
	OK(bb_mw_bind(e->b.qp, 0, one, ro, at, 4096, BB_ACCESS_REMOTE_READ, BB_SEND_SIGNALED));
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_SUCCESS);
	bind1(e, one, at, 64, BB_ACCESS_REMOTE_READ);
	assert_int_equal(try(e, OP_READ, at, one->rkey, 64), BB_WC_SUCCESS);
	OK(bb_mr_dereg(ro));
	OK(bb_mw_free(one));
	OK(bb_mw_free(two));
}

/* Registers a second region of b over the same memory. */
static struct bb_mr *
region(struct env *e)
{
	struct bb_mr *mr;

	OK(bb_mr_reg(e->b.pd, e->b.buf, ENV_BUF, ENV_ALL | BB_ACCESS_MW_BIND, &mr));
	return mr;
}

static void
post2(struct env *e, struct bb_mw *mw, struct bb_mr *mr)
{
	OK(bb_post_bind_mw(e->b.qp, 2, mw, bb_inc_rkey(mw->rkey), mr, raddr_of(&e->b, 0), 64,
			   REMOTE, BB_SEND_SIGNALED));
}

static int
post1(struct env *e, struct bb_mw *mw, struct bb_mr *mr)
{
	return bb_mw_bind(e->b.qp, 2, mw, mr, raddr_of(&e->b, 0), 64, REMOTE, BB_SEND_SIGNALED);
}

/* The outcome of a destroyed queue's bind is unknown. */
KEYS_TEST(test_region_of_a_lost_bind_is_held_until_a_later_bind_succeeds)
{
	struct bb_mr *mr = region(e);
	struct bb_mw *mw;

	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_2, &mw));
	post2(e, mw, mr);
	fresh(e);
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	post2(e, mw, e->b.mr);
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_SUCCESS);
	OK(bb_mr_dereg(mr));
	assert_int_equal(bb_mr_dereg(e->b.mr), -EBUSY);
	OK(bb_mw_free(mw));
}

/*
 * Two queues of b, whose binds have no order between them; the first queue's bind to @mr is
 * outstanding.
 */
static struct bb_mw *
pending_make(struct env *e, struct bb_mr *mr, struct side first[2])
{
	struct bb_mw *mw;

	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_1, &mw));
	assert_int_equal(post1(e, mw, mr), 0);
	first[0] = e->a;
	first[1] = e->b;
	env_up(e);
	return mw;
}

/* Destroys the first queue: its bind may have been executed, before or after the other queue's. */
static void
pending_lost(struct side first[2])
{
	OK(bb_qp_destroy(first[0].qp));
	OK(bb_qp_destroy(first[1].qp));
}

/* A bind that is posted from now on and succeeds ends the hold. */
static void
pending_end(struct env *e, struct bb_mw *mw, struct bb_mr *mr)
{
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	bind1(e, mw, raddr_of(&e->b, 0), 64, REMOTE);
	OK(bb_mr_dereg(mr));
	OK(bb_mw_free(mw));
}

/* A bind that was posted later, on the other queue, has succeeded. */
KEYS_TEST(test_success_on_another_queue_proves_no_lost_bind)
{
	struct bb_mr *mr = region(e);
	struct side first[2];
	struct bb_mw *mw = pending_make(e, mr, first);

	bind1(e, mw, raddr_of(&e->b, 0), 64, REMOTE);
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	assert_int_equal(bb_mr_dereg(e->b.mr), -EBUSY);
	pending_lost(first);
	pending_end(e, mw, mr);
}

/*
 * A bind that was posted before the first queue was destroyed succeeds: that proves nothing about
 * the lost bind.
 */
KEYS_TEST(test_success_posted_before_the_loss_proves_nothing)
{
	struct bb_mr *mr = region(e);
	struct side first[2];
	struct bb_mw *mw = pending_make(e, mr, first);

	assert_int_equal(post1(e, mw, e->b.mr), 0);
	pending_lost(first);
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_SUCCESS);
	pending_end(e, mw, mr);
}

KEYS_TEST(test_unpolled_bind_is_settled_after_any_number_of_requests)
{
	struct bb_sq *sq = &e->b.qp->sq;
	struct bb_mr *mr = region(e);
	const uint32_t more = 0x80000010;
	struct bb_mw *mw;

	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_1, &mw));
	assert_int_equal(post1(e, mw, mr), 0);
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_SUCCESS);
	/* Advances the counters as that many requests would. */
	sq->seq += more;
	sq->done += more;
	sq->sig_seq += more;
	sq->rung_seq += more;
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	bind1(e, mw, 0, 0, 0);
	OK(bb_mr_dereg(mr));

	/* A later failure of the queue does not make the completed bind a failed one. */
	mr = region(e);
	assert_int_equal(post1(e, mw, mr), 0);
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_SUCCESS);
	sq->seq += more;
	sq->done += more;
	sq->sig_seq += more;
	sq->rung_seq += more;
	OK(bb_post_write_inline(e->b.qp, 1, "x", 1, raddr_of(&e->a, 0), e->a.mr->rkey ^ 0x77,
				BB_SEND_SIGNALED));
	assert_int_equal(done(e, &e->b, BB_WC_RDMA_WRITE), BB_WC_REM_ACCESS_ERR);
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	fresh(e);
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	OK(bb_mw_free(mw));
	OK(bb_mr_dereg(mr));
}

/* Allocates a window that has the index of @rkey in the table. */
static struct bb_mw *
alloc_same(struct env *e, uint32_t rkey)
{
	struct bb_mw *mw = NULL;

	do {
		assert_int_equal(bb_mw_free(mw), mw == NULL ? -EINVAL : 0);
		OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_2, &mw));
	} while (mw->rkey >> 8 != rkey >> 8);
	return mw;
}

/*
 * The completion of a remote invalidation is polled late: the window was bound to a new key
 * already, or was freed and its index belongs to another window. The current region stays held.
 */
KEYS_TEST(test_late_invalidation_keeps_the_current_region_held)
{
	struct bb_sge sge;
	struct bb_mr *mr;
	struct bb_mw *mw;
	struct bb_wc wc[2];
	int freed, i;

	for (freed = 0; freed < 2; freed++) {
		mr = region(e);
		sge = sge_of(&e->b, 0, 64);
		OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_2, &mw));
		bind2(e, mw, raddr_of(&e->b, 4096), 64, REMOTE);
		OK(bb_post_recv(e->b.qp, 7, &sge, 1));
		bb_qp_ring_recv(e->b.qp);
		OK(bb_post_send_inv_inline(e->a.qp, 4, "x", 1, mw->rkey, BB_SEND_SIGNALED));
		assert_int_equal(done(e, &e->a, BB_WC_SEND), BB_WC_SUCCESS);
		if (freed) {
			const uint32_t rkey = mw->rkey;

			OK(bb_mw_free(mw));
			mw = alloc_same(e, rkey);
		}
		post2(e, mw, mr);
		bb_qp_ring(e->b.qp);
		env_poll(e, &e->b, wc, 2);
		for (i = 0; i < 2; i++)
			assert_int_equal(wc[i].status, BB_WC_SUCCESS);
		assert_int_equal(wc[0].flags, BB_WC_WITH_INV);
		/*
		 * The library refuses this. The software device would refuse it, too; a card may
		 * not.
		 */
		assert_int_equal(((struct bb_mr_priv *)mr)->windows, 1);
		assert_int_equal(bb_mr_dereg(mr), -EBUSY);
		/* The previous region is not held. */
		OK(bb_mr_dereg(e->b.mr));
		OK(bb_mw_free(mw));
		e->b.mr = mr;
	}
}

static void *
free_mw(void *mw)
{
	return (void *)(intptr_t)bb_mw_free(mw);
}

/* One thread frees a window while another polls the completion that the peer has invalidated it. */
KEYS_TEST(test_window_may_be_freed_while_its_completion_is_polled)
{
	struct bb_sge sge = sge_of(&e->b, 0, 64);
	struct bb_mw *mw;
	struct bb_wc wc;
	pthread_t t;
	void *ret;
	int i;

	for (i = 0; i < 100; i++) {
		OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_2, &mw));
		bind2(e, mw, raddr_of(&e->b, 4096), 64, REMOTE);
		OK(bb_post_recv(e->b.qp, 7, &sge, 1));
		bb_qp_ring_recv(e->b.qp);
		OK(bb_post_send_inv_inline(e->a.qp, 4, "x", 1, mw->rkey, BB_SEND_SIGNALED));
		assert_int_equal(done(e, &e->a, BB_WC_SEND), BB_WC_SUCCESS);
		assert_int_equal(pthread_create(&t, NULL, free_mw, mw), 0);
		env_poll(e, &e->b, &wc, 1);
		assert_int_equal(wc.flags, BB_WC_WITH_INV);
		assert_int_equal(pthread_join(t, &ret), 0);
		assert_null(ret);
	}
}

#define OPS_MAX 8 /* unsettled requests of one window */

/* A bind that was flushed has not changed the key, so the window can be bound again. */
KEYS_TEST(test_failed_bind_gives_the_key_back)
{
	const uint64_t at = raddr_of(&e->b, 0);
	struct bb_qp_attr attr;
	struct bb_mw *mw;
	uint32_t rkey;

	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_1, &mw));
	bind1(e, mw, at, 64, REMOTE);
	rkey = mw->rkey;
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(e->b.qp, &attr, BB_QP_STATE));
	assert_int_equal(post1(e, mw, e->b.mr), 0);
	assert_int_equal(post1(e, mw, e->b.mr), 0);
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_WR_FLUSH_ERR);
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_WR_FLUSH_ERR);
	fresh(e);
	assert_int_equal(mw->rkey, rkey);
	assert_int_equal(try(e, OP_READ, at, rkey, 64), BB_WC_SUCCESS);
	bind1(e, mw, at, 64, REMOTE);
	assert_int_equal(try(e, OP_READ, at, mw->rkey, 64), BB_WC_SUCCESS);
	OK(bb_mw_free(mw));
}

/* Binds on two queues are executed in the order of the posts, and polled in the reverse order. */
KEYS_TEST(test_bind_that_is_polled_first_was_executed_last)
{
	struct bb_cq *cq[2] = {e->b.cq, NULL};
	struct bb_mr *mr = region(e);
	struct bb_cq_attr attr;
	struct side first[2];
	struct bb_mw *mw;

	bb_cq_attr_init(&attr);
	attr.depth = 256;
	OK(bb_cq_create(e->b.dev, &attr, &cq[1]));
	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_1, &mw));
	assert_int_equal(post1(e, mw, mr), 0);
	bb_qp_ring(e->b.qp);
	first[0] = e->a;
	first[1] = e->b;
	e->b.cq = cq[1];
	env_up(e);
	bind1(e, mw, raddr_of(&e->b, 0), 64, REMOTE);
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	env_expect(e, &first[1], 2, BB_WC_SUCCESS);
	OK(bb_mr_dereg(mr));
	assert_int_equal(bb_mr_dereg(e->b.mr), -EBUSY);
	OK(bb_mw_free(mw));
	pending_lost(first);
	OK(bb_qp_destroy(e->a.qp));
	OK(bb_qp_destroy(e->b.qp));
	OK(bb_cq_destroy(cq[1]));
	e->b.cq = cq[0];
	env_up(e);
}

/*
 * The library tracks OPS_MAX unsettled requests of a window; further binds return -EAGAIN until a
 * completion is polled, or until the window is freed.
 */
KEYS_TEST(test_window_tracks_a_few_unsettled_binds)
{
	struct bb_mr *mr = region(e);
	struct bb_wc wc[OPS_MAX];
	struct bb_mw *mw, *two;
	uint32_t rkey, i;

	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_1, &mw));
	for (i = 0; i < OPS_MAX; i++)
		assert_int_equal(post1(e, mw, i == 0 ? mr : e->b.mr), 0);
	rkey = mw->rkey;
	assert_int_equal(post1(e, mw, mr), -EAGAIN);
	assert_int_equal(mw->rkey, rkey);
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	bb_qp_ring(e->b.qp);
	env_poll(e, &e->b, wc, OPS_MAX);
	for (i = 0; i < OPS_MAX; i++)
		assert_int_equal(wc[i].status, BB_WC_SUCCESS);
	OK(bb_mr_dereg(mr));
	mr = region(e);
	assert_int_equal(post1(e, mw, mr), 0);
	assert_int_equal(done(e, &e->b, BB_WC_BIND_MW), BB_WC_SUCCESS);
	OK(bb_mw_free(mw));

	/* Unpolled invalidations hold no region and take no room. */
	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_2, &two));
	for (i = 0; i < 2 * OPS_MAX; i++) {
		OK(bb_post_local_inv(e->b.qp, 3, two->rkey, 0));
		fresh(e);
	}
	OK(bb_mw_free(two));

	/* Unsettled binds hold their region and take room until the window is freed. */
	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_1, &mw));
	for (i = 0; i < OPS_MAX; i++) {
		assert_int_equal(post1(e, mw, mr), 0);
		fresh(e);
	}
	assert_int_equal(post1(e, mw, e->b.mr), -ENOMEM);
	env_silent(e, &e->b);
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	OK(bb_mw_free(mw));
	OK(bb_mr_dereg(mr));
}

TEST_MAIN(env_eal_init("mlx5_mw"))
