/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CQs: wraps and the owner bit, overruns and what fails with the CQ, CQs of several QPs. */
#include "../soft_rig.h"
#include "bb_cqring.h"
#include "soft_data.h"

#define EVENT_CQ_ERROR 0x04
#define EVENT_CATAS    0x05
#define FLUSH          MLX5_CQE_SYNDROME_WR_FLUSH_ERR

static const struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 4, .log_stride = 6, .uidx = 9};

/* CQs of 1, 2, 4, 8 CQEs, filled to the last entry and emptied, over many wraps. */
RIG_TEST(test_small_cqs_work_over_many_laps, NULL)
{
	struct rig_link l = rig_link_default();
	uint32_t log;

	for (log = 0; log < 4; log++) {
		struct rig_cq c;
		struct rig_qp q;
		uint32_t i, k;

		rig_cq_open(&c, p->u[0], log);
		rig_qp_open(&q, p->u[0], &c, &c, &attr);
		rig_connect(&q, &q, &l);
		for (i = 0; i < 50; i++) {
			uint32_t n = 1 + i % (1u << log);
			uint16_t first = q.pi;

			for (k = 0; k < n; k++)
				rig_nop(&q, RIG_CQE);
			rig_ring(&q);
			for (k = 0; k < n; k++)
				rig_expect_ok(&q, MLX5_OPCODE_NOP, (uint16_t)(first + k));
			rig_expect_none(&c, p->u[0]);
		}
		rig_qp_close(&q);
		rig_cq_close(&c);
	}
}

/* The consumer index has 24 bits: a CQ works past 2^24 CQEs. */
RIG_TEST(test_consumer_index_wraps_at_24_bits, NULL)
{
	const struct rig_qp_attr deep = {.log_sq = 12, .log_rq = 2, .log_stride = 6, .uidx = 9};
	struct rig_link l = rig_link_default();
	struct rig_cq c;
	struct rig_qp q;
	uint32_t i, k, n;

	rig_cq_open(&c, p->u[0], 12);
	rig_qp_open(&q, p->u[0], &c, &c, &deep);
	rig_connect(&q, &q, &l);
	/* 4096 per round. */
	for (n = 0; n < (1u << 24) / 4096 + 3; n++) {
		struct rig_cqe e;

		for (i = 0; i < 4096; i++)
			rig_nop(&q, RIG_CQE);
		rig_ring(&q);
		for (i = 0, k = 0; i < 4096 && k < 1000; k++) {
			rig_poll(p->u[0]);
			for (; i < 4096 && rig_cqe(&c, &e); i++)
				if (e.opcode != MLX5_CQE_REQ || e.counter != (uint16_t)(c.ci - 1))
					fail_msg("CQE %u: opcode %u counter %u", c.ci, e.opcode,
						 e.counter);
		}
		if (i != 4096)
			fail_msg("CQE %u did not come", c.ci);
	}
	assert_true(c.ci > 1u << 24);
	rig_qp_close(&q);
	rig_cq_close(&c);
}

static void
post(struct rig_pair *p, struct rig_qp *q, bool nop)
{
	if (nop)
		rig_nop(q, RIG_CQE);
	else
		rig_write(q, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
}

/*
 * One CQE more than the CQ holds. The CQ fails with an event, and so do all its QPs, idle ones
 * too. Its CQEs stay readable, and no CQE is added.
 */
static void
overrun(struct rig_pair *p, bool nop)
{
	struct rig_link l = rig_link_default();
	struct rig_cq c;
	struct rig_qp q, idle;
	uint8_t before[4 * 64];
	uint32_t i;

	rig_cq_open(&c, p->u[0], 2);
	rig_qp_open(&q, p->u[0], &c, &c, &attr);
	rig_qp_open(&idle, p->u[0], &p->ca, &c, &attr);
	rig_connect(&q, &q, &l);
	rig_connect(&idle, &idle, &l);
	rig_subscribe(&p->d, c.obj, EVENT_CQ_ERROR, 0xc);
	rig_subscribe(&p->d, q.obj, EVENT_CATAS, 1);
	rig_subscribe(&p->d, idle.obj, EVENT_CATAS, 2);
	rig_subscribe(&p->d, p->a.obj, EVENT_CATAS, 3);
	for (i = 0; i < 4; i++)
		post(p, &q, nop);
	rig_ring(&q);
	rig_polls(p->u[0], 3);
	memcpy(before, c.mem, sizeof(before));
	rig_expect_no_event(&p->d);
	assert_int_equal(rig_qp_state(&q), BB_PRM_QP_RTS);
	/* The fifth CQE. */
	post(p, &q, nop);
	post(p, &q, nop);
	rig_ring(&q);
	rig_polls(p->u[0], 3);
	rig_expect_event(&p->d, EVENT_CQ_ERROR, 0xc);
	rig_expect_event(&p->d, EVENT_CATAS, 1);
	rig_expect_event(&p->d, EVENT_CATAS, 2);
	rig_expect_no_event(&p->d);
	assert_int_equal(rig_qp_state(&q), BB_PRM_QP_ERR);
	assert_int_equal(rig_qp_state(&idle), BB_PRM_QP_ERR);
	assert_int_equal(rig_qp_state(&p->a), BB_PRM_QP_RTS);
	for (i = 0; i < 4; i++)
		rig_expect_ok(&q, nop ? MLX5_OPCODE_NOP : MLX5_OPCODE_RDMA_WRITE, (uint16_t)i);
	rig_expect_none(&c, p->u[0]);
	/* The CQ stays in error when there is room again. */
	rig_nop(&q, RIG_CQE);
	rig_ring(&q);
	rig_expect_none(&c, p->u[0]);
	rig_qp_close(&q);
	rig_qp_close(&idle);
	rig_cq_close(&c);
}

RIG_TEST(test_overrun_fails_the_cq_and_its_qp, NULL)
{
	overrun(p, true);
	overrun(p, false);
}

/* A receiver's CQ overruns: the sender's request fails, and the receiving QP goes to ERR. */
RIG_TEST(test_overrun_of_the_receive_cq_fails_both_ends, NULL)
{
	struct rig_link l = rig_link_default();
	struct rig_cq c;
	struct rig_qp x, y;
	uint32_t i;

	rig_cq_open(&c, p->u[0], 1);
	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
	rig_qp_open(&y, p->u[0], &p->cb, &c, &attr);
	rig_connect(&x, &y, &l);
	rig_subscribe(&p->d, c.obj, EVENT_CQ_ERROR, 0xc);
	rig_subscribe(&p->d, y.obj, EVENT_CATAS, 1);
	for (i = 0; i < 3; i++) {
		rig_recv(&y, &p->mb, 0, 8);
		rig_send(&x, &p->ma, 0, 8, RIG_CQE);
	}
	rig_done(&x, MLX5_OPCODE_SEND, 0);
	rig_expect_ok(&x, MLX5_OPCODE_SEND, 1);
	rig_expect_error(&x, 2, MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
	rig_expect_event(&p->d, EVENT_CQ_ERROR, 0xc);
	rig_expect_event(&p->d, EVENT_CATAS, 1);
	assert_int_equal(rig_qp_state(&y), BB_PRM_QP_ERR);
	rig_qp_close(&x);
	rig_qp_close(&y);
	rig_cq_close(&c);
}

/* A CQ that ignores overruns loses its oldest CQEs; nothing fails. */
RIG_TEST(test_ignored_overrun_keeps_the_newest_cqes, NULL)
{
	struct rig_link l = rig_link_default();
	struct rig_cq c;
	struct rig_qp q;
	uint32_t i;

	rig_cq_open_oi(&c, p->u[0], 2);
	rig_qp_open(&q, p->u[0], &c, &c, &attr);
	rig_connect(&q, &q, &l);
	rig_subscribe(&p->d, c.obj, EVENT_CQ_ERROR, 0xc);
	for (i = 0; i < 9; i++)
		rig_nop(&q, RIG_CQE);
	rig_ring(&q);
	rig_polls(p->u[0], 3);
	rig_expect_no_event(&p->d);
	assert_int_equal(rig_qp_state(&q), BB_PRM_QP_RTS);
	/* CQEs 5 to 8 are in the ring; index 8 is where index 4 was. */
	for (i = 5; i < 9; i++)
		assert_int_equal(c.mem[(i & 3) * 64 + 61], i);
	assert_int_equal(c.mem[0 * 64 + 63] & 1, 0);
	assert_int_equal(c.mem[1 * 64 + 63] & 1, 1);
	rig_qp_close(&q);
	rig_cq_close(&c);
}

/* A consumer index ahead of the producer index counts as an overrun, too. */
RIG_TEST(test_consumer_index_ahead_is_an_overrun, NULL)
{
	struct rig_link l = rig_link_default();
	struct rig_cq c;
	struct rig_qp q;
	uint32_t i;

	rig_cq_open(&c, p->u[0], 1);
	rig_qp_open(&q, p->u[0], &c, &c, &attr);
	rig_connect(&q, &q, &l);
	rig_subscribe(&p->d, c.obj, EVENT_CQ_ERROR, 0xc);
	c.dbrec[0] = htobe32(7);
	for (i = 0; i < 3; i++)
		rig_nop(&q, RIG_CQE);
	rig_ring(&q);
	rig_polls(p->u[0], 3);
	rig_expect_event(&p->d, EVENT_CQ_ERROR, 0xc);
	rig_qp_close(&q);
	rig_cq_close(&c);
}

/* Flushing more WQEs than the CQ holds overruns the CQ and has no other effect. */
RIG_TEST(test_flush_beyond_the_cq_overruns_it, NULL)
{
	struct rig_link l = rig_link_default();
	struct rig_cq c;
	struct rig_qp q;
	uint32_t i;

	rig_cq_open(&c, p->u[0], 2);
	rig_qp_open(&q, p->u[0], &c, &c, &attr);
	rig_connect(&q, &q, &l);
	rig_subscribe(&p->d, c.obj, EVENT_CQ_ERROR, 0xc);
	for (i = 0; i < 10; i++)
		rig_nop(&q, 0);
	rig_record(&q);
	rig_qp_error(&q);
	for (i = 0; i < 4; i++)
		rig_expect_error(&q, (uint16_t)i, FLUSH);
	rig_expect_none(&c, p->u[0]);
	rig_expect_event(&p->d, EVENT_CQ_ERROR, 0xc);
	rig_expect_no_event(&p->d);
	rig_qp_close(&q);
	rig_cq_close(&c);
}

/* Two engines complete into one CQ: no CQE is lost or torn. */
RIG_TEST(test_cq_of_two_engines_loses_no_cqe, NULL)
{
	struct rig_uar other;
	struct rig_link l = rig_link_default();
	struct rig_cqe e;
	struct rig_cq c;
	struct rig_qp x, y;
	uint32_t i, nx = 0, ny = 0;

	rig_uar_open(&other, &p->d, MLX5_UAR_BF);
	rig_cq_open(&c, p->u[0], 3);
	rig_qp_open(&x, p->u[0], &c, &c, &attr);
	rig_qp_open(&y, &other, &c, &c, &attr);
	rig_connect(&x, &x, &l);
	rig_connect(&y, &y, &l);
	for (i = 0; i < 100; i++) {
		rig_nop(&x, RIG_CQE);
		rig_nop(&y, RIG_CQE);
		rig_ring(&x);
		rig_ring(&y);
		rig_poll(&other);
		rig_poll(p->u[0]);
		while (rig_cqe(&c, &e)) {
			assert_int_equal(e.opcode, MLX5_CQE_REQ);
			if (e.qpn == x.qpn)
				assert_int_equal(e.counter, nx++);
			else
				assert_int_equal(e.counter, ny++);
		}
	}
	assert_int_equal(nx, 100);
	assert_int_equal(ny, 100);
	rig_qp_close(&x);
	rig_qp_close(&y);
	rig_cq_close(&c);
	rig_uar_close(&other);
}

RIG_TEST(test_counter_set_counts_requests_and_errors, NULL)
{
	uint8_t in[BB_PRM_SZ_QUERY_Q_COUNTER_IN] = {0}, out[BB_PRM_SZ_QUERY_Q_COUNTER_OUT];
	struct rig_qp_attr counted = attr;
	struct mlx5_obj *set;
	struct rig_link l = rig_link_default();
	struct rig_qp q;
	uint32_t i;

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_ALLOC_Q_COUNTER);
	OK(soft_cmd_if.obj_create(p->d.ctx, in, BB_PRM_SZ_SHORT, out, BB_PRM_SZ_SHORT, &set));
	counted.counter_set = bb_prm_get(out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID);
	rig_qp_open(&q, p->u[0], &p->ca, &p->ca, &counted);
	rig_connect(&q, &q, &l);
	for (i = 0; i < 3; i++)
		rig_write(&q, &p->ma, 0, 8, &p->mb, 0, 0);
	for (i = 0; i < 2; i++)
		rig_read(&q, &p->ma, 0, 8, &p->mb, 0, 0);
	rig_atomic(&q, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
	rig_done(&q, MLX5_OPCODE_ATOMIC_FA, 5);
	rig_write(&q, &p->ma, 0, 8, &p->mb, RIG_MEM, 0);
	rig_nop(&q, 0);
	rig_ring(&q);
	rig_expect_error(&q, 6, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
	rig_expect_error(&q, 7, FLUSH);

	memset(in, 0, sizeof(in));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_Q_COUNTER);
	bb_prm_set(in, BB_PRM_QUERY_Q_COUNTER_ID, counted.counter_set);
	OK(soft_cmd_if.obj_query(set, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_RX_WRITE_REQUESTS), 3);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_RX_READ_REQUESTS), 2);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_RX_ATOMIC_REQUESTS), 1);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_REQ_REMOTE_ACCESS_ERRORS), 1);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_RESP_REMOTE_ACCESS_ERRORS), 1);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_REQ_CQE_FLUSH_ERROR), 1);
	assert_int_equal(bb_prm_get(out, BB_PRM_Q_COUNTER_CQ_OVERFLOW), 0);
	rig_qp_close(&q);
	OK(soft_cmd_if.obj_destroy(set));
}

static bool
armed(const struct rig_cq *c)
{
	return (rig_soft_cq(c)->flags & SOFT_CQ_ARMED) != 0;
}

/*
 * A store to the arm register hides the one before it, so a scan must find the first CQ. It finds
 * it also if another CQ is created meanwhile, wherever the scan began.
 */
RIG_TEST(test_cq_created_during_a_scan_hides_no_arm_request, "scan=3")
{
	enum {
		N = 8
	};
	struct rig_cq c[N], more;
	uint32_t i, start;

	for (start = 1; start <= N + 2; start++) {
		struct bb_cqring ring[N] = {{0}};
		uint64_t *reg = (void *)(p->u[0]->uar->base_addr + BB_UAR_ARM_OFFSET);

		for (i = 0; i < N; i++) {
			rig_cq_open(&c[i], p->u[0], 4);
			ring[i].dbrec = c[i].dbrec;
		}
		/* A request during a scan makes the next scan begin further on. */
		for (i = 0; i < start; i++) {
			bb_cqring_arm(&ring[0], c[0].cqn, 1, i % 2 != 0, reg);
			rig_poll(p->u[0]);
		}
		rig_polls(p->u[0], 2 * N);
		assert_true(armed(&c[0]));
		for (i = 2; i < 4; i++)
			bb_cqring_arm(&ring[i], c[i].cqn, 1, false, reg);
		rig_poll(p->u[0]);
		rig_cq_open(&more, p->u[0], 4);
		rig_polls(p->u[0], 2 * N);
		assert_true(armed(&c[2]));
		assert_true(armed(&c[3]));
		assert_false(armed(&c[4]));
		rig_cq_close(&more);
		for (i = 0; i < N; i++)
			rig_cq_close(&c[i]);
	}
}

TEST_MAIN(0)
