/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * QPs on different engines, in one thread: one end is destroyed or reset while requests are in
 * flight.
 */
#include <unistd.h>

#include "../soft_rig.h"

#define FLUSH     MLX5_CQE_SYNDROME_WR_FLUSH_ERR
#define RETRY_EXC MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR

static const struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 6, .log_stride = 6, .uidx = 9};

/*
 * Puts a SEND in flight from a third QP on a's engine to a fourth QP on b's engine, which has not
 * seen it.
 */
static void
in_flight(struct rig_pair *p, struct rig_qp *x, struct rig_qp *y)
{
	struct rig_link l = rig_link_default();

	rig_qp_open(x, p->u[0], &p->ca, &p->ca, &attr);
	rig_qp_open(y, p->u[1], &p->cb, &p->cb, &attr);
	rig_connect(x, y, &l);
	rig_recv(y, &p->mb, 0, 64);
	rig_send(x, &p->ma, 0, 64, RIG_CQE);
	rig_nop(x, RIG_CQE);
	rig_ring(x);
	rig_expect_none(&p->ca, p->u[0]);
}

RIG_TEST_TWO(test_one_sided_requests_need_no_poll_of_the_target, NULL)
{
	rig_write(&p->a, &p->ma, 0, 100, &p->mb, 0, RIG_CQE);
	rig_read(&p->a, &p->ma, 200, 100, &p->mb, 0, RIG_CQE);
	rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_READ, 1);
	rig_expect_ok(&p->a, MLX5_OPCODE_ATOMIC_FA, 2);
}

RIG_TEST_TWO(test_sends_both_ways_arrive, NULL)
{
	uint32_t i;

	for (i = 0; i < 100; i++) {
		struct rig_cqe e;

		rig_recv(&p->a, &p->ma, 1000, 64);
		rig_recv(&p->b, &p->mb, 1000, 64);
		rig_send(&p->a, &p->ma, i, 64, RIG_CQE);
		rig_send(&p->b, &p->mb, i, 64, RIG_CQE);
		rig_ring(&p->a);
		rig_ring(&p->b);
		rig_polls(p->u[0], 2); /* a sends the request */
		rig_polls(p->u[1], 2); /* b executes it and sends its own request */
		rig_polls(p->u[0], 2); /* a completes its request and executes b's */
		rig_polls(p->u[1], 2);
		assert_true(rig_cqe(&p->ca, &e) && rig_cqe(&p->ca, &e));
		assert_false(rig_cqe(&p->ca, &e));
		assert_true(rig_cqe(&p->cb, &e) && rig_cqe(&p->cb, &e));
		assert_false(rig_cqe(&p->cb, &e));
		assert_memory_equal(p->mb.p + 1000, p->ma.p + i, 64);
	}
}

RIG_TEST_TWO(test_wqe_after_a_send_waits_for_its_response, NULL)
{
	rig_recv(&p->b, &p->mb, 0, 64);
	rig_send(&p->a, &p->ma, 0, 64, RIG_CQE);
	rig_write(&p->a, &p->ma, 64, 8, &p->mb, 64, RIG_CQE);
	rig_ring(&p->a);
	rig_expect_none(&p->ca, p->u[0]);
	assert_int_equal(p->mb.p[64], 0);
	rig_poll(p->u[1]);
	rig_expect_ok(&p->a, MLX5_OPCODE_SEND, 0);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, 1);
}

RIG_TEST_TWO(test_destroyed_requester_executes_nothing, NULL)
{
	struct rig_qp x, y;

	in_flight(p, &x, &y);
	rig_qp_close(&x);
	rig_expect_none(&p->cb, p->u[1]);
	assert_int_equal(p->mb.p[0], 0);
	rig_qp_close(&y);
}

/* The response is on its way back. */
RIG_TEST_TWO(test_response_to_a_destroyed_requester_is_dropped, NULL)
{
	struct rig_qp x, y;
	struct rig_cqe e;

	in_flight(p, &x, &y);
	rig_poll(p->u[1]);
	assert_true(rig_cqe(&p->cb, &e));
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	rig_qp_close(&x);
	rig_expect_none(&p->ca, p->u[0]);
	rig_qp_close(&y);
}

RIG_TEST_TWO(test_reset_requester_executes_only_new_requests, NULL)
{
	struct rig_link l = rig_link_default();
	struct rig_qp x, y;
	struct rig_cqe e;

	in_flight(p, &x, &y);
	rig_qp_reset(&x);
	rig_qp_up(&x, &p->d, y.qpn, &l);
	rig_send(&x, &p->ma, 100, 64, RIG_CQE);
	rig_ring(&x);
	rig_polls(p->u[0], 3);
	rig_polls(p->u[1], 3);
	rig_expect_ok(&x, MLX5_OPCODE_SEND, 0);
	rig_expect_none(&p->ca, p->u[0]);
	assert_true(rig_cqe(&p->cb, &e));
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	rig_expect_none(&p->cb, p->u[1]);
	assert_memory_equal(p->mb.p, p->ma.p + 100, 64);
	rig_qp_close(&x);
	rig_qp_close(&y);
}

/*
 * The outcome of the request in flight is reported first, then the remaining requests are
 * flushed.
 */
RIG_TEST_TWO(test_requester_in_err_reports_its_request_first, NULL)
{
	struct rig_qp x, y;

	in_flight(p, &x, &y);
	rig_qp_error(&x);
	/*
	 * The target has not looked at the request: it is withdrawn without help of the other
	 * engine.
	 */
	rig_expect_error(&x, 0, FLUSH);
	rig_expect_error(&x, 1, FLUSH);
	rig_poll(p->u[1]);
	rig_expect_none(&p->cb, p->u[1]);
	rig_qp_close(&x);
	rig_qp_close(&y);
}

RIG_TEST_TWO(test_destroyed_target_exceeds_the_retries, NULL)
{
	struct rig_qp x, y;

	in_flight(p, &x, &y);
	rig_qp_close(&y);
	/* b's engine is not polled any more. */
	rig_expect_error(&x, 0, RETRY_EXC);
	rig_expect_error(&x, 1, FLUSH);
	rig_qp_close(&x);
}

RIG_TEST_TWO(test_reset_target_exceeds_the_retries, NULL)
{
	struct rig_qp x, y;

	in_flight(p, &x, &y);
	rig_qp_reset(&y);
	rig_expect_error(&x, 0, RETRY_EXC);
	rig_qp_close(&y);
	rig_qp_close(&x);
}

RIG_TEST_TWO(test_target_in_err_exceeds_the_retries, NULL)
{
	struct rig_qp x, y;
	struct rig_cqe e;

	in_flight(p, &x, &y);
	rig_qp_error(&y);
	rig_expect_error(&x, 0, RETRY_EXC);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.syndrome, FLUSH);
	rig_qp_close(&y);
	rig_qp_close(&x);
}

/* Both QPs and their engines are destroyed while the request and a response are in flight. */
RIG_TEST_TWO(test_engines_end_with_a_request_in_flight, NULL)
{
	struct rig_uar u, v;
	struct rig_cq c, d;
	struct rig_link l = rig_link_default();
	struct rig_qp x, y;
	int answered;

	for (answered = 0; answered < 4; answered++) {
		rig_uar_open(&u, &p->d, MLX5_UAR_BF);
		rig_uar_open(&v, &p->d, MLX5_UAR_BF);
		rig_cq_open(&c, &u, 4);
		rig_cq_open(&d, &v, 4);
		rig_qp_open(&x, &u, &c, &c, &attr);
		rig_qp_open(&y, &v, &d, &d, &attr);
		rig_connect(&x, &y, &l);
		rig_recv(&y, &p->mb, 0, 64);
		rig_send(&x, &p->ma, 0, 64, RIG_CQE);
		rig_ring(&x);
		rig_poll(&u);
		if (answered & 1)
			rig_poll(&v);
		if (answered & 2) {
			rig_qp_close(&y);
			rig_cq_close(&d);
			rig_uar_close(&v);
			rig_qp_close(&x);
			rig_cq_close(&c);
			rig_uar_close(&u);
		} else {
			rig_qp_close(&x);
			rig_cq_close(&c);
			rig_uar_close(&u);
			rig_qp_close(&y);
			rig_cq_close(&d);
			rig_uar_close(&v);
		}
	}
}

/*
 * The WQE or its keys change between the two engines: the request is refused, not executed
 * unchecked.
 */
RIG_TEST_TWO(test_wqe_changed_in_flight_is_refused, NULL)
{
	struct rig_qp x, y;
	struct rig_mem m;

	in_flight(p, &x, &y);
	mlx5dv_set_data_seg(rig_seg(&x, 0, 1), 32, p->ma.mr->lkey, (uintptr_t)p->ma.p);
	rig_poll(p->u[1]);
	rig_expect_error(&x, 0, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
	rig_expect_error(&x, 1, FLUSH);
	rig_qp_close(&x);
	rig_qp_close(&y);

	rig_mem_open(&m, &p->d, NULL, 4096, RIG_ALL);
	rig_recv(&p->b, &p->mb, 0, 64);
	rig_send(&p->a, &m, 0, 64, RIG_CQE);
	rig_ring(&p->a);
	rig_polls(p->u[0], 3);
	rig_mem_close(&m);
	rig_polls(p->u[1], 3);
	rig_expect_error(&p->a, 0, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}

/* Allocates a set of counters and returns the number of one of them. */
static uint32_t
counters_alloc(struct rig_dev *d, struct mlx5_obj **obj)
{
	uint8_t in[BB_PRM_SZ_QUERY_Q_COUNTER_IN] = {0}, out[BB_PRM_SZ_QUERY_Q_COUNTER_OUT];

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_ALLOC_Q_COUNTER);
	assert_int_equal(
		d->ctx->cmd->obj_create(d->ctx, in, BB_PRM_SZ_SHORT, out, BB_PRM_SZ_SHORT, obj), 0);
	return bb_prm_get(out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID);
}

static uint32_t
counter(struct rig_dev *d, struct mlx5_obj *obj, uint32_t id, struct bb_prm_field f)
{
	uint8_t in[BB_PRM_SZ_QUERY_Q_COUNTER_IN] = {0}, out[BB_PRM_SZ_QUERY_Q_COUNTER_OUT];

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_Q_COUNTER);
	bb_prm_set(in, BB_PRM_QUERY_Q_COUNTER_ID, id);
	assert_int_equal(d->ctx->cmd->obj_query(obj, in, sizeof(in), out, sizeof(out)), 0);
	return bb_prm_get(out, f);
}

/* The target's owner does not poll: the request ends by the ack timeout and its retries. */
RIG_TEST_TWO(test_send_to_an_engine_that_does_not_run_ends_by_retries, NULL)
{
	struct rig_qp_attr counted = attr;
	struct mlx5_obj *obj;
	struct rig_qp x, y;
	struct rig_link l = rig_link_default();

	l.retry = 3;
	counted.counter_set = counters_alloc(&p->d, &obj);
	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &counted);
	rig_qp_open(&y, p->u[1], &p->cb, &p->cb, &attr);
	rig_connect(&x, &y, &l);
	rig_recv(&y, &p->mb, 0, 64);
	rig_send(&x, &p->ma, 0, 64, RIG_CQE);
	rig_nop(&x, RIG_CQE);
	rig_ring(&x);
	rig_expect_error(&x, 0, RETRY_EXC);
	rig_expect_error(&x, 1, FLUSH);
	assert_int_equal(rig_qp_state(&x), BB_PRM_QP_ERR);
	assert_int_equal(
		counter(&p->d, obj, counted.counter_set, BB_PRM_Q_COUNTER_LOCAL_ACK_TIMEOUT_ERR),
		4);
	/* The request was withdrawn. */
	rig_expect_none(&p->cb, p->u[1]);
	assert_int_equal(p->mb.p[0], 0);
	rig_qp_close(&x);
	rig_qp_close(&y);
	assert_int_equal(p->d.ctx->cmd->obj_destroy(obj), 0);
}

/*
 * Ack timeout 0 means no limit (IBTA vol. 1, 9.7.6.1.3): the request waits, and is executed once.
 */
RIG_TEST_TWO(test_send_without_an_ack_timeout_waits_for_the_engine, NULL)
{
	const uint64_t start = rig_now_us();
	struct rig_qp x, y;
	struct rig_link l = rig_link_default();
	struct rig_cqe e;

	l.timeout = 0;
	l.retry = 0;
	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
	rig_qp_open(&y, p->u[1], &p->cb, &p->cb, &attr);
	rig_connect(&x, &y, &l);
	rig_recv(&y, &p->mb, 0, 64);
	rig_send(&x, &p->ma, 0, 64, RIG_CQE);
	rig_ring(&x);
	while (rig_now_us() - start < 300000)
		rig_expect_none(&p->ca, p->u[0]);
	rig_polls(p->u[1], 2);
	rig_expect_ok(&x, MLX5_OPCODE_SEND, 0);
	assert_true(rig_cqe(&p->cb, &e));
	rig_expect_none(&p->cb, p->u[1]);
	assert_memory_equal(p->mb.p, p->ma.p, 64);
	rig_qp_close(&x);
	rig_qp_close(&y);
}

/* UC has no retries: the message is lost, the receive stays, and the next message consumes it. */
RIG_TEST_TWO(test_uc_message_to_an_engine_that_does_not_run_is_lost, NULL)
{
	struct rig_qp_attr uc = attr;
	struct rig_qp x, y;
	struct rig_link l = rig_link_default();

	uc.st = BB_PRM_QP_ST_UC;
	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &uc);
	rig_qp_open(&y, p->u[1], &p->cb, &p->cb, &uc);
	rig_connect(&x, &y, &l);
	rig_recv(&y, &p->mb, 4096, 64);
	rig_send(&x, &p->ma, 0, 64, RIG_CQE);
	rig_done(&x, MLX5_OPCODE_SEND, 0);
	rig_expect_none(&p->cb, p->u[1]);
	assert_int_equal(p->mb.p[4096], 0);
	rig_send(&x, &p->ma, 7, 64, RIG_CQE);
	rig_ring(&x);
	rig_polls(p->u[0], 2);
	rig_polls(p->u[1], 2);
	rig_expect_ok(&x, MLX5_OPCODE_SEND, 1);
	assert_memory_equal(p->mb.p + 4096, p->ma.p + 7, 64);
	rig_qp_close(&x);
	rig_qp_close(&y);
}

/* Time in which the requester does not run either does not count: the process was suspended. */
RIG_TEST_TWO(test_uc_message_waits_while_nobody_runs, NULL)
{
	struct rig_qp_attr uc = attr;
	struct rig_qp x, y;
	struct rig_link l = rig_link_default();

	uc.st = BB_PRM_QP_ST_UC;
	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &uc);
	rig_qp_open(&y, p->u[1], &p->cb, &p->cb, &uc);
	rig_connect(&x, &y, &l);
	rig_recv(&y, &p->mb, 4096, 64);
	rig_send(&x, &p->ma, 0, 64, RIG_CQE);
	rig_ring(&x);
	rig_poll(p->u[0]);
	usleep(1500000);
	rig_poll(p->u[0]);
	rig_polls(p->u[1], 2);
	rig_expect_ok(&x, MLX5_OPCODE_SEND, 0);
	assert_memory_equal(p->mb.p + 4096, p->ma.p, 64);
	rig_qp_close(&x);
	rig_qp_close(&y);
}

/* The reset handles the inbox of the engine, with a packet that another QP must acknowledge. */
TEST(test_reset_leaves_no_work_of_another_qp)
{
	struct rig_link l = rig_link_default();
	struct rig_pair p;
	struct rig_qp x;
	struct rig_cqe e;
	uint32_t i;

	l.timeout = 0; /* no time limit, so no repeat either */
	rig_pair_open(&p, "wire=1", true, &l);
	rig_qp_open(&x, p.u[1], &p.cb, &p.cb, &attr);
	rig_qp_up(&x, &p.d, x.qpn, &l);
	rig_polls(p.u[1], 100);
	rig_write(&p.a, &p.ma, 0, 64, &p.mb, 0, RIG_CQE);
	rig_ring(&p.a);
	rig_polls(p.u[0], 4);
	rig_qp_reset(&x);
	for (i = 0; !rig_cqe(&p.ca, &e); i++) {
		assert_true(i < 100);
		rig_poll(p.u[1]);
		rig_poll(p.u[0]);
	}
	assert_int_equal(e.opcode, 0);
	rig_qp_close(&x);
	rig_pair_close(&p);
}

TEST_MAIN(0)
