/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The verbs driver on the null provider: SRQs, and address handles that outlive their destroy
 * call.
 */
#include "../../fakes/log_catch.h"
#include "verbs_drv.h"
#include "verbs_fixture.h"

#define SIG BB_SEND_SIGNALED

/* ---- SRQs */

static void
recv_round(struct fixture *f, uint32_t depth, uint32_t round)
{
	const struct bb_sge sge = piece(f, TO, 8), from = piece(f, FROM, 8);
	struct bb_wc wc[2];
	uint32_t i;

	for (i = 0; i < depth; i++)
		assert_int_equal(bb_post_srq_recv(f->srq, 100 * round + i, &sge, 1), 0);
	assert_int_equal(bb_post_srq_recv(f->srq, 99, &sge, 1), -EAGAIN);
	bb_srq_ring(f->srq);
	for (i = 0; i < depth; i++) {
		assert_int_equal(bb_post_send(f->qp, i, &from, 1, SIG), 0);
		bb_qp_ring(f->qp);
		take(f, wc, 2);
		assert_fields(wc[0], wr_id, 100 * round + i, status, BB_WC_SUCCESS);
	}
	/* Without new receives nothing is passed on. */
	i = null_dev.recvs;
	bb_srq_ring(f->srq);
	assert_int_equal(null_dev.recvs, i);
}

/* It holds the requested number, whatever the size of its ring, in every lap. */
T_F(test_srq_holds_the_requested_number)
{
	static const uint32_t depths[] = {1, 15, 16, 17};
	struct bb_qp_init_attr init;
	struct bb_srq_attr attr;

	for (uint32_t i = 0; i < RTE_DIM(depths); i++) {
		make(f, BB_QPT_RC, true, 0);
		assert_int_equal(bb_qp_destroy(f->qp), 0);
		assert_int_equal(bb_srq_destroy(f->srq), 0);
		f->qp = NULL;
		f->srq = NULL;
		bb_srq_attr_init(&attr);
		attr.depth = depths[i];
		attr.max_sge = 0;
		assert_int_equal(bb_srq_create(f->pd, &attr, &f->srq), 0);
		assert_fields(null_dev.srq_init.attr, max_wr, depths[i], max_sge, 1);
		assert_ptr_equal(null_dev.srq_init.srq_context, f->srq);
		/* A receive has at least one piece. */
		assert_int_equal(bb_srq_query(f->srq, &attr), 0);
		assert_fields(attr, depth, depths[i], max_sge, 1);
		bb_qp_init_attr_init(&init);
		init.rq_depth = 0;
		init.send_cq = init.recv_cq = f->cq;
		init.srq = f->srq;
		assert_int_equal(bb_qp_create(f->pd, &init, &f->qp), 0);
		assert_int_equal(connect_to_itself(f->qp), 0);
		for (uint32_t round = 0; round < 5; round++)
			recv_round(f, depths[i], round);
		fixture_free(f);
	}
}

static uint32_t
limit_of(struct bb_srq *srq)
{
	struct bb_srq_attr attr;

	assert_int_equal(bb_srq_query(srq, &attr), 0);
	return attr.limit;
}

T_ON(BB_QPT_RC, true, test_limit_is_unchanged_by_a_failed_call)
{
	struct bb_srq_attr attr;
	struct bb_srq *srq = NULL;
	uint32_t objects;

	assert_int_equal(limit_of(f->srq), 0);
	assert_int_equal(bb_srq_modify(f->srq, 7), 0);
	assert_int_equal(limit_of(f->srq), 7);
	null_dev.fail_errno = EIO;
	null_dev.fail_at = 1;
	assert_logged(bb_srq_modify(f->srq, 9), -EIO, "cannot set the limit of SRQ");
	assert_int_equal(limit_of(f->srq), 7);
	attr.limit = 33;
	null_dev.fail_at = 1;
	assert_logged(bb_srq_query(f->srq, &attr), -EIO, "cannot query SRQ");
	assert_int_equal(attr.limit, 33);

	/* The SRQ is created with its limit, or not at all. */
	bb_srq_attr_init(&attr);
	attr.limit = 3;
	objects = null_dev.objects;
	null_dev.fail_at = 2;
	assert_int_equal(bb_srq_create(f->pd, &attr, &srq), -EIO);
	assert_null(srq);
	assert_int_equal(null_dev.objects, objects);
	null_dev.fail_errno = ENOMEM;
	null_dev.fail_at = 1;
	assert_logged(bb_srq_create(f->pd, &attr, &srq), -ENOMEM, "raise the locked memory limit");
	assert_null(srq);
	assert_int_equal(bb_srq_create(f->pd, &attr, &srq), 0);
	assert_int_equal(limit_of(srq), 3);
	assert_int_equal(bb_srq_destroy(srq), 0);
}

T_ON(BB_QPT_RC, true, test_refused_call_leaves_the_srq_unchanged)
{
	struct bb_wc wc[2];
	struct bb_sge sge = piece(f, FROM, 8);

	post_recv(f, 1);
	null_dev.bad_wr = 1;
	assert_int_equal(bb_post_srq_recv(f->srq, 2, &sge, 1), 0);
	log_begin();
	bb_srq_ring(f->srq);
	log_expect(
		"the provider rejected a receive: Invalid argument; the receive never completes");
	assert_int_equal(bb_post_send(f->qp, 3, &sge, 1, SIG), 0);
	bb_qp_ring(f->qp);
	take(f, wc, 2);
	assert_fields(wc[0], wr_id, 1, status, BB_WC_SUCCESS);
	assert_int_equal(bb_qp_destroy(f->qp), 0);
	f->qp = NULL;
	null_dev.fail_errno = EINVAL;
	null_dev.fail_at = 1;
	assert_logged(bb_srq_destroy(f->srq), -EINVAL, "cannot destroy SRQ");
	/* The destroy may be repeated. */
}

/* ---- Address handles */

#define QPS 3u

struct three {
	struct fixture f;
	struct bb_cq *cq[QPS];
	struct bb_qp *qp[QPS];
};

static void
three_make(struct three *t)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);

	make(&t->f, BB_QPT_UD, false, 0);
	init.type = BB_QPT_UD;
	for (uint32_t i = 0; i < QPS; i++) {
		assert_int_equal(bb_cq_create(t->f.dev, &cattr, &t->cq[i]), 0);
		init.send_cq = init.recv_cq = t->cq[i];
		assert_int_equal(bb_qp_create(t->f.pd, &init, &t->qp[i]), 0);
		assert_int_equal(bb_qp_ud_up(t->qp[i], 1, 0, 0x11, 5), 0);
	}
}

static void
three_free(struct three *t)
{
	for (uint32_t i = 0; i < QPS; i++) {
		if (t->qp[i] != NULL)
			assert_int_equal(bb_qp_destroy(t->qp[i]), 0);
		assert_int_equal(bb_cq_destroy(t->cq[i]), 0);
	}
	fixture_free(&t->f);
}

static void
three_post(struct three *t, const struct bb_ah *ah)
{
	const struct bb_sge sge = piece(&t->f, FROM, 8);

	for (uint32_t i = 0; i < QPS; i++) {
		assert_int_equal(bb_post_send_ud(t->qp[i], 1, &sge, 1, ah, 5, 0x11, SIG), 0);
		bb_qp_ring(t->qp[i]);
	}
}

/* Ways in which a QP's requests end. */
enum end {
	COMPLETED,
	RESET,
	DESTROYED,
	ENDS
};

static void
end_of(struct three *t, uint32_t q, enum end end)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct bb_wc wc;

	attr.state = BB_QP_RESET;
	if (end == COMPLETED) {
		assert_int_equal(bb_cq_poll(t->cq[q], &wc, 1), 1);
	} else if (end == RESET) {
		assert_int_equal(bb_qp_modify(t->qp[q], &attr, BB_QP_STATE), 0);
	} else {
		assert_int_equal(bb_qp_destroy(t->qp[q]), 0);
		t->qp[q] = NULL;
	}
}

/* A handle is freed when the last QP with outstanding requests is done, in any order. */
T(test_handle_is_freed_with_the_last_user)
{
	static const uint32_t orders[][QPS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					       {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	const struct bb_path path = {.port = 1, .dgid = {[15] = 1}};
	struct bb_ah *ah, *look[QPS];
	struct three t;

	for (uint32_t end = 0; end < ENDS; end++) {
		for (uint32_t o = 0; o < RTE_DIM(orders); o++) {
			three_make(&t);
			assert_int_equal(bb_ah_create(t.f.pd, &path, &ah), 0);
			three_post(&t, ah);
			assert_int_equal(bb_ah_destroy(ah), 0);
			for (uint32_t i = 0; i < QPS; i++) {
				assert_int_equal(null_dev.ah_destroyed, 0);
				/* One QP ends in another way. */
				end_of(&t, orders[o][i],
				       (enum end)(i == 1 ? (end + 1) % ENDS : end));
				/* Creating a handle checks those that are pending. */
				assert_int_equal(bb_ah_create(t.f.pd, &path, &look[i]), 0);
			}
			assert_int_equal(null_dev.ah_destroyed, 1);
			for (uint32_t i = 0; i < QPS; i++)
				assert_int_equal(bb_ah_destroy(look[i]), 0);
			assert_int_equal(null_dev.ah_destroyed, 1 + QPS);
			three_free(&t);
			null_reset();
		}
	}
}

/* Handles still pending are freed with the PD, each for its own requests. */
T(test_pending_handles_are_freed_with_the_pd)
{
	const struct bb_path path = {.port = 1, .dgid = {[15] = 1}};
	struct bb_ah *ah[2];
	struct three t;

	three_make(&t);
	for (uint32_t i = 0; i < RTE_DIM(ah); i++) {
		assert_int_equal(bb_ah_create(t.f.pd, &path, &ah[i]), 0);
		three_post(&t, ah[i]);
		assert_int_equal(bb_ah_destroy(ah[i]), 0);
	}
	for (uint32_t i = 0; i < QPS; i++) {
		struct bb_wc wc;

		/* The second handle waits for the second request. */
		assert_int_equal(bb_cq_poll(t.cq[i], &wc, 1), 1);
	}
	assert_int_equal(null_dev.ah_destroyed, 0);
	three_free(&t);
	assert_int_equal(null_dev.ah_destroyed, 2);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
