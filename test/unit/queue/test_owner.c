/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Debug builds reject a post from a thread that does not own the queue. */
#ifndef BB_DEBUG
#define BB_DEBUG 1
#endif
#include <rte_lcore.h>

#include "bb_rq.h"
#include "sq_fixture.h"

T_SQ_CONF(4, test_send_queue_refuses_a_foreign_lcore)
{
	f->conf.owner = 3;
	sq_fixture_start(f);
	RTE_PER_LCORE(_lcore_id) = 3;
	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), 0);
	bb_sq_ring(&f->sq);
	assert_int_equal(f->dbrec[1], bb_be32(1));

	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), 0);
	RTE_PER_LCORE(_lcore_id) = 4;
	log_begin();
	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), -EPERM);
	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), -EPERM);
	bb_sq_ring(&f->sq);
	assert_int_equal(log_count("owner lcore 3, caller lcore 4"), 1);
	assert_fields(*f, sq.pi, 2, dbrec[1], bb_be32(1));

	/* A thread that is not registered with EAL. */
	RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), -EPERM);
	RTE_PER_LCORE(_lcore_id) = 3;
	bb_sq_ring(&f->sq);
	assert_int_equal(f->dbrec[1], bb_be32(2));
	RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
}

TEST(test_receive_queue_refuses_a_foreign_lcore)
{
	static uint8_t ring[256] __attribute__((aligned(64)));
	static uint64_t wr_ids[4];
	static uint32_t dbrec;
	const struct bb_rq_conf conf = {
		.buf = ring,
		.wr_ids = wr_ids,
		.wqes = 4,
		.depth = 4,
		.log_stride = 4,
		.max_sge = 1,
		.dbrec = &dbrec,
		.qpn = 1,
		.owner = 0,
	};
	const struct bb_sge sge = {1, 1, 1};
	struct bb_rq rq;

	assert_int_equal(bb_rq_init(&rq, &conf), 0);
	bb_rq_enable(&rq);
	RTE_PER_LCORE(_lcore_id) = 1;
	log_begin();
	assert_int_equal(bb_rq_post(&rq, 0, &sge, 1), -EPERM);
	assert_int_equal(log_count("does not own"), 1);
	RTE_PER_LCORE(_lcore_id) = 0;
	assert_int_equal(bb_rq_post(&rq, 0, &sge, 1), 0);
	RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
}

TEST_MAIN(0)
