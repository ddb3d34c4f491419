/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Requests that the responder refuses: error CQEs on both sides, events, states. */
#include <stdio.h>

#include "../../../fakes/log_catch.h"
#include "../soft_rig.h"

#define QP_OP        MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR
#define LENGTH       MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR
#define PROT         MLX5_CQE_SYNDROME_LOCAL_PROT_ERR
#define FLUSH        MLX5_CQE_SYNDROME_WR_FLUSH_ERR
#define INVALID      MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
#define REM_ACCESS   MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR
#define REM_OP       MLX5_CQE_SYNDROME_REMOTE_OP_ERR
#define EVENT_CATAS  0x05
#define EVENT_INVAL  0x10
#define EVENT_ACCESS 0x11

/* The port that loops back, and a port with packets. */
static const char *const ports[] = {NULL, "wire=1"};
#define PORTS (sizeof(ports) / sizeof(ports[0]))

static struct rig_pair *
open_port(const char *port, bool two_uars, const struct rig_link *l)
{
	static struct rig_pair p;
	struct rig_link link = rig_link_default();

	/*
	 * Packets have a timeout; it is long, so that no packet is repeated because this thread
	 * did not run.
	 */
	link.timeout = 18;
	printf("%s\n", port != NULL ? port : "loop");
	rig_pair_open(&p, port, two_uars, l != NULL ? l : &link);
	return &p;
}

static struct rig_pair *
open_pair(bool two_uars, const struct rig_link *l)
{
	return open_port(NULL, two_uars, l);
}

/* Waits for the state of a QP that another engine changes; the QP's owner has to poll. */
static void
expect_state(struct rig_pair *p, struct rig_qp *q, uint32_t state)
{
	rig_polls(p->u[0], 3);
	rig_polls(p->u[1], 3);
	assert_int_equal(rig_qp_state(q), state);
}

/* ---- The responder refuses: an error at the requester, an event and ERR at the responder. */

static void
remote(struct rig_pair *p, uint32_t rkey, uint64_t addr, uint32_t len, uint8_t opcode)
{
	rig_raddr(&p->a, addr, rkey);
	rig_data(&p->a, 2, &p->ma, 0, len);
	rig_wqe(&p->a, opcode, RIG_CQE, 3, 0);
}

/* Defines a function that posts a WQE and spoils it. */
#define BUILD(name, ...)                                                                           \
	static void name(struct rig_pair *p)                                                       \
	{                                                                                          \
		__VA_ARGS__;                                                                       \
	}

BUILD(rkey_unknown, remote(p, 0x123400, (uintptr_t)p->mb.p, 8, MLX5_OPCODE_RDMA_WRITE))
BUILD(rkey_stale_variant,
      remote(p, p->mb.mr->rkey ^ 0x80, (uintptr_t)p->mb.p, 8, MLX5_OPCODE_RDMA_READ))
BUILD(remote_before, remote(p, p->mb.mr->rkey, (uintptr_t)p->mb.p - 1, 8, MLX5_OPCODE_RDMA_WRITE))
BUILD(remote_past_end,
      remote(p, p->mb.mr->rkey, (uintptr_t)p->mb.p + RIG_MEM - 7, 8, MLX5_OPCODE_RDMA_READ))
BUILD(remote_overflow, remote(p, p->mb.mr->rkey, UINT64_MAX - 6, 8, MLX5_OPCODE_RDMA_WRITE))
BUILD(remote_write_imm, rig_recv(&p->b, &p->mb, 0, 8);
      remote(p, p->mb.mr->rkey, (uintptr_t)p->mb.p - 9, 8, MLX5_OPCODE_RDMA_WRITE_IMM))
BUILD(atomic_past_end,
      rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_CS, &p->ma, 0, &p->mb, RIG_MEM, 1, 0, RIG_CQE))
BUILD(atomic_unaligned,
      rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 4, 1, 0, RIG_CQE))

static void
check_refused(struct rig_pair *p, uint8_t syndrome, uint16_t event, bool has_recv)
{
	struct rig_cqe e;
	uint32_t i;

	for (i = 0; i < 10; i++) {
		rig_poll(p->u[0]);
		rig_poll(p->u[1]);
	}
	rig_expect_error(&p->a, 0, syndrome);
	expect_state(p, &p->a, BB_PRM_QP_ERR);
	expect_state(p, &p->b, BB_PRM_QP_ERR);
	rig_expect_event(&p->d, event, 0xb);
	rig_expect_no_event(&p->d);
	if (has_recv) {
		rig_wait(&p->cb, p->u[1], &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
		assert_int_equal(e.syndrome, FLUSH);
	}
	rig_expect_none(&p->cb, p->u[1]);
}

static void
subscribe(struct rig_pair *p)
{
	rig_subscribe(&p->d, p->b.obj, EVENT_ACCESS, 0xb);
	rig_subscribe(&p->d, p->b.obj, EVENT_INVAL, 0xb);
	rig_subscribe(&p->d, p->b.obj, EVENT_CATAS, 0xb);
	rig_subscribe(&p->d, p->a.obj, EVENT_CATAS, 0xa);
}

TEST(test_refused_request_fails_both_ends)
{
	static const struct {
		const char *name;
		void (*build)(struct rig_pair *p);
		uint8_t syndrome;
		uint16_t event;
	} cases[] = {
		{"rkey_unknown", rkey_unknown, REM_ACCESS, EVENT_ACCESS},
		{"rkey_stale_variant", rkey_stale_variant, REM_ACCESS, EVENT_ACCESS},
		{"remote_before", remote_before, REM_ACCESS, EVENT_ACCESS},
		{"remote_past_end", remote_past_end, REM_ACCESS, EVENT_ACCESS},
		{"remote_overflow", remote_overflow, REM_ACCESS, EVENT_ACCESS},
		{"remote_write_imm", remote_write_imm, REM_ACCESS, EVENT_ACCESS},
		{"atomic_past_end", atomic_past_end, REM_ACCESS, EVENT_ACCESS},
		{"atomic_unaligned", atomic_unaligned, INVALID, EVENT_INVAL},
	};
	/* Each refusal is logged, whichever side detects it. */
	static const char *const lines[PORTS] = {
		"rejected a request of QP",
		"goes to ERR because of a request of its peer, syndrome"};
	size_t i, k;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (k = 0; k < 2 * PORTS; k++) {
			struct rig_pair *p = open_port(ports[k / 2], k % 2 != 0, NULL);

			printf("%s, %zu engines\n", cases[i].name, k % 2 + 1);
			subscribe(p);
			cases[i].build(p);
			log_begin();
			rig_ring(&p->a);
			check_refused(p, cases[i].syndrome, cases[i].event,
				      cases[i].build == remote_write_imm);
			log_expect(lines[k / 2]);
			rig_pair_close(p);
		}
	}
}

/* ---- Receives that fail: an error CQE on both sides. */

TEST(test_bad_receive_fails_both_ends)
{
	static const struct {
		const char *name;
		uint32_t bytes;
		uint64_t lkey_xor, addr_add;
		uint8_t here, vendor, there;
	} cases[] = {
		{"too small", 63, 0, 0, LENGTH, 0xd4, INVALID},
		{"the key does not exist", 64, 0x100000, 0, PROT, 0x2a, REM_OP},
		{"outside", 64, 0, RIG_MEM - 63, PROT, 0x2c, REM_OP},
		{"inline bit", 0x80000040, 0, 0, QP_OP, 0x68, REM_OP},
	};
	size_t i;
	int two;

	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		size_t c = i / 2;
		struct rig_pair *p;
		struct mlx5_wqe_data_seg *s;
		struct rig_cqe e;
		uint32_t k;

		two = (int)(i & 1);
		p = open_pair(two, NULL);
		printf("%s, %d engines\n", cases[c].name, two + 1);
		subscribe(p);
		rig_recv(&p->b, &p->mb, 0, 64);
		rig_recv(&p->b, &p->mb, 0, 64);
		s = (void *)p->b.rq;
		mlx5dv_set_data_seg(s, cases[c].bytes, p->mb.mr->lkey ^ (uint32_t)cases[c].lkey_xor,
				    (uintptr_t)p->mb.p + cases[c].addr_add);
		rig_send(&p->a, &p->ma, 0, 64, RIG_CQE);
		rig_ring(&p->a);
		for (k = 0; k < 10; k++) {
			rig_poll(p->u[0]);
			rig_poll(p->u[1]);
		}
		rig_expect_error(&p->a, 0, cases[c].there);
		rig_wait(&p->cb, p->u[1], &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
		assert_int_equal(e.syndrome, cases[c].here);
		assert_int_equal(e.vendor, cases[c].vendor);
		assert_int_equal(e.counter, 0);
		rig_wait(&p->cb, p->u[1], &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
		assert_int_equal(e.syndrome, FLUSH);
		assert_int_equal(e.counter, 1);
		expect_state(p, &p->b, BB_PRM_QP_ERR);
		rig_expect_no_event(&p->d);
		rig_pair_close(p);
	}
}

/* List entries that a message does not reach are not checked. */
TEST(test_unused_entry_of_a_receive_is_not_checked)
{
	struct rig_pair *p = open_pair(false, NULL);
	struct mlx5_wqe_data_seg *s = (void *)p->b.rq;
	struct rig_cqe e;

	rig_recv(&p->b, &p->mb, 0, 64);
	mlx5dv_set_data_seg(&s[1], 64, 0x777700, 0);
	rig_send(&p->a, &p->ma, 0, 64, RIG_CQE);
	rig_done(&p->a, MLX5_OPCODE_SEND, 0);
	rig_wait(&p->cb, p->u[1], &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
	rig_pair_close(p);
}

/* A QP without a receive queue cannot accept a SEND. */
static void
no_receive_queue(const char *port)
{
	const struct rig_qp_attr attr = {.log_sq = 4, .no_rq = true, .log_stride = 4, .uidx = 3};
	struct rig_pair *p = open_port(port, false, NULL);
	struct rig_link l = rig_link_default();
	struct rig_qp x, y;

	l.timeout = 18;
	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
	rig_qp_open(&y, p->u[0], &p->cb, &p->cb, &attr);
	rig_connect(&x, &y, &l);
	rig_subscribe(&p->d, y.obj, EVENT_INVAL, 0xe);
	rig_write(&x, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	rig_send(&x, &p->ma, 0, 8, RIG_CQE);
	log_begin();
	rig_done(&x, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_expect_error(&x, 1, INVALID);
	log_expect("was created without a receive queue");
	rig_expect_event(&p->d, EVENT_INVAL, 0xe);
	assert_int_equal(rig_qp_state(&y), BB_PRM_QP_ERR);
	rig_qp_close(&x);
	rig_qp_close(&y);
	rig_pair_close(p);
}

TEST(test_send_without_a_receive_queue_is_refused)
{
	size_t i;

	for (i = 0; i < PORTS; i++)
		no_receive_queue(ports[i]);
}

/* The receive record is ahead by more than the ring's depth. */
TEST(test_record_beyond_the_ring_fails_the_qp)
{
	size_t i;

	for (i = 0; i < PORTS; i++) {
		struct rig_pair *p = open_port(ports[i], false, NULL);

		subscribe(p);
		p->b.dbrec[0] = htobe32(17); /* of 16 */
		rig_send(&p->a, &p->ma, 0, 8, RIG_CQE);
		rig_ring(&p->a);
		rig_expect_error(&p->a, 0, REM_OP);
		rig_expect_event(&p->d, EVENT_CATAS, 0xb);
		rig_expect_no_event(&p->d);
		assert_int_equal(rig_qp_state(&p->b), BB_PRM_QP_ERR);
		rig_pair_close(p);
	}
}

/* Different path MTUs: a message of one packet may arrive, a longer message cannot. */
TEST(test_different_mtus_refuse_a_long_message)
{
	const struct rig_qp_attr attr = {.log_sq = 4, .log_rq = 2, .log_stride = 6, .uidx = 3};
	struct rig_pair *p = open_pair(false, NULL);
	struct rig_link l = rig_link_default();
	struct rig_qp x, y;

	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
	rig_qp_open(&y, p->u[0], &p->cb, &p->cb, &attr);
	l.mtu = 3;
	rig_qp_up(&x, &p->d, y.qpn, &l);
	l.mtu = 2;
	rig_qp_up(&y, &p->d, x.qpn, &l);
	rig_write(&x, &p->ma, 0, 512, &p->mb, 0, RIG_CQE);
	rig_write(&x, &p->ma, 0, 513, &p->mb, 0, RIG_CQE);
	rig_done(&x, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_expect_error(&x, 1, INVALID);
	rig_qp_close(&x);
	rig_qp_close(&y);
	rig_pair_close(p);
}

TEST_MAIN(0)
