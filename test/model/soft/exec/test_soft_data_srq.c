/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Receives that QPs share, and data in CQEs. WQEs and links are written by hand in the format of
 * rdma-core's struct mlx5_wqe_srq_next_seg (kernel: mlx5_wqe_srq_next_seg).
 */
#include <pthread.h>
#include <sys/mman.h>

#include "../../../fakes/process.h"
#include "soft_rmp_env.h"

#define LENGTH  MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR
#define PROT    MLX5_CQE_SYNDROME_LOCAL_PROT_ERR
#define QP_OP   MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR
#define INVALID MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
#define OP_ERR  MLX5_CQE_SYNDROME_REMOTE_OP_ERR

static int
rmp_arm(struct rmp *r, uint32_t lwm)
{
	uint8_t in[BB_PRM_SZ_RMP] = {0}, out[BB_PRM_SZ_SHORT];

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MODIFY_RMP);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_RMPN, r->rmpn);
	bb_prm_set(in + 0x10, BB_PRM_RMP_BITMASK_LWM, 1);
	bb_prm_set(in + RMPC, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in + WQ, BB_PRM_WQ_LWM, lwm);
	return soft_cmd_if.obj_modify(r->obj, in, sizeof(in), out, sizeof(out));
}

static uint32_t
rmp_query(struct rmp *r, uint16_t base, struct bb_prm_field f)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_RMP];

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_RMP);
	bb_prm_set(in, BB_PRM_QUERY_RMP_RMPN, r->rmpn);
	OK(soft_cmd_if.obj_query(r->obj, in, sizeof(in), out, sizeof(out)));
	return bb_prm_get(out + base, f);
}

/* A pair whose b takes its receives from an RMP, and a second QP of the same kind. */
struct shared {
	struct rig_pair p;
	struct rmp r;
	struct rig_qp a2, b2;
	struct rig_cq cb2; /* receive CQ of b2 */
};

static void
shared_open_port(struct shared *s, const char *port, bool two_uars, uint32_t type, bool basic,
		 uint32_t log, uint32_t log_stride, uint32_t cs_res)
{
	struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 2, .log_stride = 6, .uidx = 0xaaa};
	struct rig_link l = rig_link_default();

	/* No ack timeout: a busy machine may keep a thread off its CPU while the other one runs. */
	l.timeout = 0;
	rig_pair_open(&s->p, port, two_uars, NULL);
	rmp_open(&s->r, &s->p.d, type, basic, log, log_stride);
	rig_cq_open(&s->cb2, s->p.u[1], 8);
	/* Replaces the pair's b by a QP on the RMP. */
	rig_qp_close(&s->p.b);
	rig_qp_reset(&s->p.a);
	rig_qp_open(&s->a2, s->p.u[1], &s->p.cb, &s->p.cb, &attr);
	attr.no_rq = true;
	attr.rmpn = s->r.rmpn;
	attr.cs_res = cs_res;
	attr.uidx = 0xb0b;
	rig_qp_open(&s->p.b, s->p.u[0], &s->p.ca, &s->p.ca, &attr);
	attr.uidx = 0xb0b2;
	rig_qp_open(&s->b2, s->p.u[1], &s->cb2, &s->cb2, &attr);
	rig_connect(&s->p.a, &s->p.b, &l);
	rig_connect(&s->a2, &s->b2, &l);
}

static void
shared_open(struct shared *s, bool two_uars, uint32_t type, bool basic, uint32_t log,
	    uint32_t log_stride, uint32_t cs_res)
{
	shared_open_port(s, NULL, two_uars, type, basic, log, log_stride, cs_res);
}

static void
shared_close(struct shared *s)
{
	rig_qp_close(&s->a2);
	rig_qp_close(&s->b2);
	rig_qp_close(&s->p.b);
	rig_cq_close(&s->cb2);
	rmp_close(&s->r);
	/* rig_pair_close() needs an open QP. */
	rig_qp_open(&s->p.b, s->p.u[1], &s->p.cb, &s->p.cb,
		    &(struct rig_qp_attr){.log_sq = 0, .log_rq = 2, .log_stride = 6});
	rig_pair_close(&s->p);
}

static struct shared *
open_shared(uint32_t type, bool basic)
{
	static struct shared s;

	shared_open(&s, false, type, basic, 3, basic ? 5 : 6, 0);
	return &s;
}

/* Expects the CQE of a receive of the first or second pair. */
static void
expect_recv(struct shared *s, bool second, uint16_t idx, uint32_t bytes)
{
	struct rig_qp *q = second ? &s->b2 : &s->p.b;
	struct rig_cqe e;

	rig_wait(q->rcq, q->u, &e);
	if (e.opcode != MLX5_CQE_RESP_SEND || e.counter != idx || e.bytes != bytes ||
	    e.qpn != q->qpn || e.uidx != (second ? 0xb0b2 : 0xb0b))
		fail_msg("CQE opcode %u WQE %u, %u bytes, QP 0x%x user 0x%x syndrome 0x%02x; not "
			 "WQE %u, %u bytes, QP 0x%x",
			 e.opcode, e.counter, e.bytes, e.qpn, e.uidx, e.syndrome, idx, bytes,
			 q->qpn);
}

static void
expect_recv_error(struct rig_qp *q, uint16_t idx, uint8_t syndrome)
{
	struct rig_cqe e;

	rig_wait(q->rcq, q->u, &e);
	if (e.opcode != MLX5_CQE_RESP_ERR || e.counter != idx || e.syndrome != syndrome ||
	    e.qpn != q->qpn)
		fail_msg("CQE opcode %u WQE %u QP 0x%x syndrome 0x%02x, not error 0x%02x of WQE %u",
			 e.opcode, e.counter, e.qpn, e.syndrome, syndrome, idx);
}

static void
send_ok(struct shared *s, bool second, size_t off, uint32_t len, uint16_t idx)
{
	struct rig_qp *q = second ? &s->a2 : &s->p.a;
	uint16_t at = q->pi;

	rig_send(q, &s->p.ma, off, len, RIG_CQE);
	rig_ring(q);
	/* The sender's and receiver's completions share a CQ: the receiver's comes first. */
	expect_recv(s, second, idx, len);
	rig_expect_ok(q, MLX5_OPCODE_SEND, at);
}

TEST(test_links_are_followed_in_any_order)
{
	static const uint16_t order[] = {0, 5, 2, 7, 1, 6, 3, 4};
	struct shared *s = open_shared(BB_PRM_WQ_TYPE_LIST, false);
	uint32_t i;

	for (i = 0; i < 7; i++)
		rmp_wqe(&s->r, order[i], order[i + 1], &s->p.mb, order[i] * 256u, 100);
	rmp_record(&s->r, 7);
	for (i = 0; i < 7; i++) {
		send_ok(s, i == 2 || i == 5, i * 1000u, 100, order[i]);
		assert_memory_equal(s->p.mb.p + order[i] * 256, s->p.ma.p + i * 1000, 100);
		assert_int_equal(rmp_query(&s->r, WQ, BB_PRM_WQ_HW_COUNTER), i + 1);
	}
	/*
	 * The RMP is empty: receiver not ready. The receive posted then is WQE 4, the next one of
	 * the list.
	 */
	rig_send(&s->p.a, &s->p.ma, 0, 8, RIG_CQE);
	rig_ring(&s->p.a);
	rig_expect_none(&s->p.ca, s->p.u[0]);
	rmp_wqe(&s->r, 4, 0, &s->p.mb, 0, 8);
	rmp_record(&s->r, 1);
	expect_recv(s, false, 4, 8);
	rig_expect_ok(&s->p.a, MLX5_OPCODE_SEND, 7 - 2);
	shared_close(s);
}

/* Cyclic RMPs: consecutive WQEs, with a link segment that is ignored, and without one. */
TEST(test_cyclic_rmp_takes_wqes_in_a_row)
{
	int basic;
	uint32_t i;

	for (basic = 0; basic < 2; basic++) {
		struct shared *s = open_shared(BB_PRM_WQ_TYPE_CYCLIC, basic != 0);

		for (i = 0; i < 50; i++) {
			rmp_wqe(&s->r, i & 7, 0xffff, &s->p.mb, (i & 7) * 64u, 64);
			rmp_record(&s->r, 1);
			send_ok(s, i % 3 == 0, i * 10u, 64, i & 7);
			assert_memory_equal(s->p.mb.p + (i & 7) * 64, s->p.ma.p + i * 10, 64);
		}
		shared_close(s);
	}
}

/* An invalid record or link: the RMP fails, and each QP that needs a receive fails with it. */
TEST(test_invalid_link_or_record_fails_the_rmp)
{
	static struct shared shared, *s = &shared;
	int kind;

	for (kind = 0; kind < 4; kind++) {
		shared_open_port(s, kind < 2 ? NULL : "wire=1", false, BB_PRM_WQ_TYPE_LIST, false,
				 3, 6, 0);
		rig_subscribe(&s->p.d, s->r.obj, BB_PRM_EVENT_SRQ_CATAS_ERROR, 77);
		rig_subscribe(&s->p.d, s->p.b.obj, BB_PRM_EVENT_WQ_CATAS_ERROR, 78);
		rmp_wqe(&s->r, 0, kind % 2 == 0 ? 8 : 1, &s->p.mb, 0, 100);
		rmp_record(&s->r, kind % 2 == 0 ? 1 : 9);
		rig_send(&s->p.a, &s->p.ma, 0, 8, RIG_CQE);
		rig_ring(&s->p.a);
		rig_expect_error(&s->p.a, 0, OP_ERR);
		rig_expect_event(&s->p.d, BB_PRM_EVENT_SRQ_CATAS_ERROR, 77);
		rig_expect_event(&s->p.d, BB_PRM_EVENT_WQ_CATAS_ERROR, 78);
		assert_int_equal(s->p.mb.p[0], 0);
		assert_int_equal(rig_qp_state(&s->p.b), BB_PRM_QP_ERR);
		assert_int_equal(rmp_query(&s->r, RMPC, BB_PRM_RMPC_STATE), BB_PRM_RMPC_ERR);
		assert_int_equal(rmp_arm(&s->r, 1), -EREMOTEIO);
		/* The other QP works until it needs a receive. */
		rig_write(&s->a2, &s->p.ma, 0, 8, &s->p.mb, 0, RIG_CQE);
		rig_done(&s->a2, MLX5_OPCODE_RDMA_WRITE, 0);
		rig_send(&s->a2, &s->p.ma, 0, 8, RIG_CQE);
		rig_ring(&s->a2);
		rig_expect_error(&s->a2, 1, OP_ERR);
		rig_expect_no_event(&s->p.d);
		shared_close(s);
	}
}

TEST(test_invalid_receive_fails_only_its_message)
{
	static const uint8_t want[][2] = {{LENGTH, INVALID}, {PROT, OP_ERR}, {QP_OP, OP_ERR}};
	uint32_t kind;

	for (kind = 0; kind < 3; kind++) {
		struct shared *s = open_shared(BB_PRM_WQ_TYPE_LIST, false);
		struct mlx5_wqe_data_seg *seg = (void *)(s->r.mem + 16);

		rig_subscribe(&s->p.d, s->p.b.obj, BB_PRM_EVENT_SRQ_LAST_WQE, 5);
		rig_subscribe(&s->p.d, s->b2.obj, BB_PRM_EVENT_SRQ_LAST_WQE, 6);
		rmp_wqe(&s->r, 0, 1, &s->p.mb, 0, 99);
		rmp_wqe(&s->r, 1, 2, &s->p.mb, 256, 100);
		rmp_wqe(&s->r, 2, 3, &s->p.mb, 512, 100);
		if (kind == 1)
			seg->lkey ^= htobe32(0x100);
		if (kind == 2)
			seg->byte_count = htobe32(MLX5_INLINE_SEG | 8);
		rmp_record(&s->r, 3);
		rig_send(&s->p.a, &s->p.ma, 0, 100, RIG_CQE);
		rig_ring(&s->p.a);
		expect_recv_error(&s->p.b, 0, want[kind][0]);
		rig_expect_error(&s->p.a, 0, want[kind][1]);
		rig_expect_event(&s->p.d, BB_PRM_EVENT_SRQ_LAST_WQE, 5);
		rig_expect_no_event(&s->p.d);
		/* No receive of the RMP is flushed; the next QP consumes the next receive. */
		rig_expect_none(&s->p.ca, s->p.u[0]);
		assert_int_equal(rig_qp_state(&s->p.b), BB_PRM_QP_ERR);
		send_ok(s, true, 40, 100, 1);
		assert_memory_equal(s->p.mb.p + 256, s->p.ma.p + 40, 100);
		rig_qp_error(&s->b2);
		rig_expect_event(&s->p.d, BB_PRM_EVENT_SRQ_LAST_WQE, 6);
		rig_expect_none(&s->cb2, s->p.u[1]);
		shared_close(s);
	}
}

/*
 * A message that fails after it consumed its receive: that receive is flushed, other receives of
 * the RMP are not.
 */
TEST(test_taken_receive_of_a_failed_message_is_flushed)
{
	struct mlx5_mr_attr attr;
	struct mlx5_mr *mr;
	struct shared *s;
	uint8_t *two;

	/* On demand, because other memory may not be unmapped before the WRITE. */
	NEED_KERNEL_COPIES();
	s = open_shared(BB_PRM_WQ_TYPE_LIST, false);
	two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(two != MAP_FAILED);
	attr = mlx5_mr_mem(two, 8192, RIG_ALL | BB_ACCESS_ON_DEMAND);
	OK(soft_cmd_if.mr_reg(s->p.d.ctx, s->p.d.pd, &attr, &mr));
	assert_int_equal(munmap(two + 4096, 4096), 0);
	rig_subscribe(&s->p.d, s->p.b.obj, BB_PRM_EVENT_SRQ_LAST_WQE, 5);
	rmp_wqe(&s->r, 0, 1, &s->p.mb, 0, 99);
	rmp_wqe(&s->r, 1, 2, &s->p.mb, 256, 100);
	rmp_record(&s->r, 2);
	rig_raddr(&s->p.a, (uintptr_t)two + 4096, mr->rkey);
	rig_data(&s->p.a, 2, &s->p.ma, 0, 8);
	rig_wqe(&s->p.a, MLX5_OPCODE_RDMA_WRITE_IMM, RIG_CQE, 3, 0);
	rig_ring(&s->p.a);
	/* The device flushes at the end of its turn, after the requester's CQE. */
	rig_expect_error(&s->p.a, 0, OP_ERR);
	expect_recv_error(&s->p.b, 0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_expect_event(&s->p.d, BB_PRM_EVENT_SRQ_LAST_WQE, 5);
	rig_expect_none(&s->p.ca, s->p.u[0]);
	send_ok(s, true, 40, 100, 1);
	OK(soft_cmd_if.mr_dereg(s->p.d.ctx, mr));
	assert_int_equal(munmap(two, 4096), 0);
	shared_close(s);
}

TEST(test_limit_event_comes_once_below_the_limit)
{
	struct shared *s = open_shared(BB_PRM_WQ_TYPE_CYCLIC, false);
	uint32_t i;

	rig_subscribe(&s->p.d, s->r.obj, BB_PRM_EVENT_SRQ_RQ_LIMIT, 9);
	for (i = 0; i < 8; i++)
		rmp_wqe(&s->r, i, 0, &s->p.mb, 0, 8);
	rmp_record(&s->r, 8);
	assert_int_equal(rmp_arm(&s->r, 6), 0);
	send_ok(s, false, 0, 8, 0); /* 7 left */
	send_ok(s, true, 0, 8, 1);  /* 6: not fewer than 6 */
	rig_expect_no_event(&s->p.d);
	assert_int_equal(rmp_query(&s->r, WQ, BB_PRM_WQ_LWM), 6);
	send_ok(s, false, 0, 8, 2);
	rig_expect_event(&s->p.d, BB_PRM_EVENT_SRQ_RQ_LIMIT, 9);
	assert_int_equal(rmp_query(&s->r, WQ, BB_PRM_WQ_LWM), 0);
	send_ok(s, true, 0, 8, 3);
	rig_expect_no_event(&s->p.d);
	/* A message that finds no receive consumes none, and raises no event. */
	for (i = 4; i < 8; i++)
		send_ok(s, false, 0, 8, (uint16_t)i);
	assert_int_equal(rmp_arm(&s->r, 8), 0);
	rig_send(&s->p.a, &s->p.ma, 0, 8, RIG_CQE);
	rig_ring(&s->p.a);
	rig_expect_none(&s->p.ca, s->p.u[0]);
	rig_expect_no_event(&s->p.d);
	rmp_record(&s->r, 8);
	expect_recv(s, false, 0, 8);
	rig_expect_event(&s->p.d, BB_PRM_EVENT_SRQ_RQ_LIMIT, 9);
	shared_close(s);
}

/* The record's 16 bits and the ring's end wrap many times, with one WQE in the ring. */
TEST(test_rmp_counters_wrap)
{
	static struct shared s;
	uint32_t i, k;

	shared_open(&s, false, BB_PRM_WQ_TYPE_CYCLIC, false, 4, 5, 0);
	for (i = 0; i < 16; i++)
		rmp_wqe(&s.r, i, 0, &s.p.mb, i * 8u, 8);
	for (i = 0; i < 66000; i += 16) {
		struct rig_cqe e;

		rmp_record(&s.r, 16);
		for (k = 0; k < 16; k++)
			rig_send(&s.p.a, &s.p.ma, (i + k) & 0xfff, 8, 0);
		rig_ring(&s.p.a);
		for (k = 0; k < 16; k++) {
			rig_wait(&s.p.ca, s.p.u[0], &e);
			if (e.opcode != MLX5_CQE_RESP_SEND || e.counter != k)
				fail_msg("receive %u: opcode %u WQE %u", i + k, e.opcode,
					 e.counter);
		}
		assert_memory_equal(s.p.mb.p + 8, s.p.ma.p + ((i + 1) & 0xfff), 8);
	}
	shared_close(&s);
}

/* ---- Two engines, each with a QP on the RMP and its own thread */

#define MESSAGES 12000u

struct runner {
	struct shared *s;
	bool second;
	uint8_t *seen; /* Receives seen, by WQE index. */
	uint32_t got, twice;
};

static void *
run_one(void *arg)
{
	struct runner *r = arg;
	struct rig_qp *a = r->second ? &r->s->a2 : &r->s->p.a;
	struct rig_qp *b = r->second ? &r->s->b2 : &r->s->p.b;
	uint64_t now = rig_now_us(), moved = now;
	uint32_t sent = 0;
	struct rig_cqe e;

	while (r->got < MESSAGES && now - moved < RIG_WAIT_US) {
		if (sent - r->got < 32 && sent < MESSAGES) {
			rig_send(a, &r->s->p.ma, 0, 8, 0);
			rig_ring(a);
			sent++;
		}
		rig_poll(b->u);
		now = rig_now_us();
		while (rig_cqe(b->rcq, &e)) {
			moved = now;
			if (e.opcode != MLX5_CQE_RESP_SEND || e.qpn != b->qpn)
				return NULL;
			r->twice += __atomic_fetch_add(&r->seen[e.counter], 1, __ATOMIC_RELAXED);
			r->got++;
		}
	}
	return NULL;
}

TEST(test_two_engines_take_each_receive_once)
{
	static uint8_t seen[1u << 15];
	static struct shared s;
	struct runner one = {&s, false, seen, 0, 0}, two = {&s, true, seen, 0, 0};
	pthread_t thread;
	uint32_t i;

	memset(seen, 0, sizeof(seen));
	shared_open(&s, true, BB_PRM_WQ_TYPE_LIST, false, 15, 5, 0);
	/* Links every WQE once, in a scrambled order that begins at 0. */
	for (i = 0; i < 1u << 15; i++)
		rmp_wqe(&s.r, i * 5 & 0x7fff, (uint16_t)((i + 1) * 5 & 0x7fff), &s.p.mb,
			(size_t)(i & 1023) * 8, 8);
	assert_int_equal(rmp_arm(&s.r, 20000), 0);
	rig_subscribe(&s.p.d, s.r.obj, BB_PRM_EVENT_SRQ_RQ_LIMIT, 1);
	rmp_record(&s.r, 1u << 15);
	assert_int_equal(pthread_create(&thread, NULL, run_one, &two), 0);
	run_one(&one);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(one.got, MESSAGES);
	assert_int_equal(two.got, MESSAGES);
	assert_int_equal(one.twice + two.twice, 0);
	/* The first WQEs of the list were consumed, without a gap. */
	for (i = 0; i < 1u << 15; i++)
		assert_int_equal(seen[i * 5 & 0x7fff], i < 2 * MESSAGES);
	assert_int_equal(rmp_query(&s.r, WQ, BB_PRM_WQ_HW_COUNTER), 2 * MESSAGES);
	rig_expect_event(&s.p.d, BB_PRM_EVENT_SRQ_RQ_LIMIT, 1);
	rig_expect_no_event(&s.p.d);
	shared_close(&s);
}

/* ---- Data in CQEs */

static void
expect_format(const struct rig_cq *c, const uint8_t *data, uint32_t len)
{
	const uint8_t *cqe = rig_cqe_bytes(c);

	assert_int_equal(cqe[63] & 0xc, data != NULL ? MLX5_INLINE_SCATTER_32 : 0);
	if (data != NULL)
		assert_memory_equal(cqe, data, len);
}

TEST(test_short_receive_is_in_the_cqe)
{
	static const uint32_t lens[] = {1, 7, 8, 31, 32};
	static struct shared s;
	uint32_t i;

	shared_open(&s, false, BB_PRM_WQ_TYPE_CYCLIC, false, 3, 6, 1);
	memset(s.p.mb.p, 0xee, 4096);
	for (i = 0; i < 5; i++) {
		rmp_wqe(&s.r, i & 7, 0, &s.p.mb, 0, 64);
		rmp_record(&s.r, 1);
		rig_send(&s.a2, &s.p.ma, i * 3u, lens[i], 0);
		rig_ring(&s.a2);
		expect_recv(&s, true, i & 7, lens[i]);
		expect_format(&s.cb2, s.p.ma.p + i * 3, lens[i]);
		/* The device leaves the buffer unchanged; software copies the data. */
		assert_int_equal(s.p.mb.p[0], 0xee);
	}
	/*
	 * Longer data goes to the buffer, by the receive's list. An empty message writes nothing.
	 */
	rmp_wqe(&s.r, 5, 0, &s.p.mb, 0, 64);
	rmp_wqe(&s.r, 6, 0, &s.p.mb, 0, 64);
	rmp_wqe(&s.r, 7, 0, &s.p.mb, 0, 32);
	rmp_record(&s.r, 3);
	rig_send(&s.a2, &s.p.ma, 9, 33, 0);
	rig_send(&s.a2, &s.p.ma, 9, 0, 0);
	rig_send(&s.a2, &s.p.ma, 9, 33, 0);
	rig_ring(&s.a2);
	expect_recv(&s, true, 5, 33);
	expect_format(&s.cb2, NULL, 0);
	assert_memory_equal(s.p.mb.p, s.p.ma.p + 9, 33);
	expect_recv(&s, true, 6, 0);
	expect_format(&s.cb2, NULL, 0);
	expect_recv_error(&s.b2, 7, LENGTH);
	shared_close(&s);
}

TEST_MAIN(0)
