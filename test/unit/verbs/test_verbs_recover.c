/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The verbs driver on the null provider: recovery reports every request, whichever CQ has it. */
#include "verbs_fixture.h"

#define SIG BB_SEND_SIGNALED

T_ON(BB_QPT_RC, false, test_recovery_reports_the_fate_of_each_request)
{
	struct bb_wr_end ends[32];
	struct bb_qp_recovery r = {.ends = ends, .max = RTE_DIM(ends)};
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct bb_qp_addr addr;
	struct bb_sge sge, two[2];

	sge = piece(f, FROM, 8);
	two[0] = sge;
	two[1] = sge;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, i == 1 ? SIG : 0), 0);
	assert_int_equal(bb_post_write(f->qp, 3, two, 2, TO, 1, SIG), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_post_write(f->qp, 4, &sge, 1, TO, 1, SIG), 0);
	assert_int_equal(bb_post_write(f->qp, 5, two, 2, TO, 1, 0), 0);
	attr.access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE;
	assert_int_equal(bb_qp_addr(f->qp, 1, 0, &addr), 0);
	assert_int_equal(bb_qp_recover(f->qp, &addr, &addr, &attr, &r), 0);
	assert_int_equal(r.n, 6);
	for (uint32_t i = 0; i < 6; i++) {
		assert_fields(ends[i], wc.wr_id, i, fate, i < 4 ? BB_WR_DONE : BB_WR_NOT_DONE);
	}
	one(f, bb_post_write(f->qp, 9, &sge, 1, TO, 1, SIG), 9, BB_WC_RDMA_WRITE);
}

/* Replaces the fixture's QP by one whose receives complete in a CQ of their own, and returns it. */
static struct bb_cq *
split_cqs(struct fixture *f)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;

	assert_int_equal(bb_qp_destroy(f->qp), 0);
	f->qp = NULL;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), 0);
	init.sq_depth = 16;
	init.rq_depth = f->srq != NULL ? 0 : 16;
	init.max_recv_sge = f->srq != NULL ? 0 : 2;
	init.send_cq = f->cq;
	init.recv_cq = cq;
	init.srq = f->srq;
	assert_int_equal(bb_qp_create(f->pd, &init, &f->qp), 0);
	assert_int_equal(connect_to_itself(f->qp), 0);
	return cq;
}

static void
join_cqs(struct fixture *f, struct bb_cq *cq)
{
	assert_int_equal(bb_qp_destroy(f->qp), 0);
	f->qp = NULL;
	assert_int_equal(bb_cq_destroy(cq), 0);
}

/* Posts @receives, sends @messages and polls only the sends. Then recovers the QP. */
static void
recover(struct fixture *f, uint32_t receives, uint32_t messages)
{
	struct bb_wr_end ends[64];
	struct bb_qp_recovery r = {.ends = ends, .max = RTE_DIM(ends)};
	struct bb_sge sge = piece(f, FROM, 8);
	struct bb_cq *cq = split_cqs(f);
	uint32_t i;

	for (i = 0; i < receives; i++)
		post_recv(f, i);
	for (i = 0; i < messages; i++)
		one(f, bb_post_send(f->qp, i, &sge, 1, SIG), i, BB_WC_SEND);
	assert_int_equal(bb_qp_recover(f->qp, NULL, NULL, NULL, &r), 0);
	assert_int_equal(r.n, f->srq != NULL ? messages : receives);
	for (i = 0; i < r.n; i++) {
		assert_fields(ends[i], wc.wr_id, i, fate,
			      i < messages ? BB_WR_DONE : BB_WR_NOT_DONE);
		assert_true(ends[i].recv);
	}
	join_cqs(f, cq);
}

T_KINDS(BB_QPT_RC, false, test_receives_of_a_separate_cq_are_recovered)
{
	recover(f, 4, 1);
}

/* More messages than the driver gets from the provider at a time. */
T_KINDS(BB_QPT_RC, true, test_unpolled_messages_of_an_srq_are_recovered)
{
	recover(f, 40, 40);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
