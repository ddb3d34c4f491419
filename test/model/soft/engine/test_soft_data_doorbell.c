/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Conditions that start a WQE: doorbell record, doorbell store, UAR page, merged stores. Also
 * stores that must not start one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../soft_rig.h"

#define EVENT_CATAS 0x05

static void
post(struct rig_pair *p)
{
	rig_write(&p->a, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
}

static void
nothing_happened(struct rig_pair *p)
{
	static const uint8_t zero[8];

	rig_expect_none(&p->ca, p->u[0]);
	assert_memory_equal(p->mb.p, zero, 8);
}

RIG_TEST(test_store_without_a_record_starts_nothing, "scan=16")
{
	post(p);
	rig_store(&p->a, p->u[0]);
	nothing_happened(p);
	/* With the record updated, the next store starts the WQE. */
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
}

RIG_TEST(test_record_without_a_store_starts_nothing, "scan=16")
{
	post(p);
	rig_record(&p->a);
	nothing_happened(p);
	rig_store(&p->a, p->u[0]);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
}

RIG_TEST(test_store_to_another_uar_starts_nothing, "scan=16")
{
	struct rig_uar other;

	rig_uar_open(&other, &p->d, MLX5_UAR_BF);
	post(p);
	rig_record(&p->a);
	rig_store(&p->a, &other);
	rig_polls(&other, 100);
	nothing_happened(p);
	rig_polls(&other, 100);
	nothing_happened(p);
	rig_store(&p->a, p->u[0]);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_uar_close(&other);
}

RIG_TEST(test_only_register_halves_are_doorbells, "scan=16")
{
	static const uint32_t offsets[] = {0x800, 0x900, 0xa00, 0xb00, 0x0, 0x808, 0xc00, 0x20};
	uint32_t i;

	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		uint64_t v;

		post(p);
		rig_record(&p->a);
		memcpy(&v, p->a.head, sizeof(v));
		__atomic_store_n((uint64_t *)(void *)(p->ua.uar->base_addr + offsets[i]), v,
				 __ATOMIC_RELEASE);
		if (i < 4) {
			rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
			memset(p->mb.p, 0, 8);
		} else {
			nothing_happened(p);
			rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
			memset(p->mb.p, 0, 8);
		}
	}
}

/* A doorbell with an unknown QP number, and one with all bits set. */
RIG_TEST(test_doorbell_of_an_unknown_qp_is_ignored, "scan=16")
{
	uint64_t *reg = (uint64_t *)(void *)p->ua.uar->reg_addr;

	post(p);
	__atomic_store_n(reg, (uint64_t)htobe32(0xabcde << 8 | 3) << 32, __ATOMIC_RELEASE);
	nothing_happened(p);
	__atomic_store_n(reg, UINT64_MAX, __ATOMIC_RELEASE);
	nothing_happened(p);
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
}

RIG_TEST(test_record_beyond_the_ring_fails_the_qp, "scan=16")
{
	rig_subscribe(&p->d, p->a.obj, EVENT_CATAS, 0xa);
	post(p);
	p->a.dbrec[1] = htobe32(65); /* of 64 blocks */
	rig_store(&p->a, p->u[0]);
	nothing_happened(p);
	rig_expect_event(&p->d, EVENT_CATAS, 0xa);
	assert_int_equal(rig_qp_state(&p->a), BB_PRM_QP_ERR);
}

RIG_TEST(test_upper_half_of_a_record_is_ignored, "scan=16")
{
	post(p);
	p->a.dbrec[1] = htobe32(0xbeef0001);
	rig_store(&p->a, p->u[0]);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
}

RIG_TEST(test_doorbells_before_rts_are_ignored, "scan=16")
{
	const struct rig_qp_attr attr = {.log_sq = 4, .log_rq = 2, .log_stride = 6, .uidx = 3};
	struct rig_link l = rig_link_default();
	struct rig_qp x;

	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
	assert_int_equal(rig_qp_modify(&x, BB_PRM_OP_RST2INIT_QP, &p->d, x.qpn, &l), 0);
	rig_nop(&x, RIG_CQE);
	rig_ring(&x);
	rig_expect_none(&p->ca, p->u[0]);
	assert_int_equal(rig_qp_modify(&x, BB_PRM_OP_INIT2RTR_QP, &p->d, x.qpn, &l), 0);
	rig_ring(&x);
	rig_expect_none(&p->ca, p->u[0]);
	assert_int_equal(rig_qp_modify(&x, BB_PRM_OP_RTR2RTS_QP, &p->d, x.qpn, &l), 0);
	rig_expect_none(&p->ca, p->u[0]);
	rig_done(&x, MLX5_OPCODE_NOP, 0);
	rig_qp_close(&x);
}

RIG_TEST(test_later_store_runs_earlier_records_once, "scan=16")
{
	uint32_t i;

	for (i = 0; i < 5; i++) {
		rig_nop(&p->a, RIG_CQE);
		rig_record(&p->a);
	}
	rig_expect_none(&p->ca, p->u[0]);
	rig_store(&p->a, p->u[0]);
	for (i = 0; i < 5; i++)
		rig_expect_ok(&p->a, MLX5_OPCODE_NOP, (uint16_t)i);
	rig_store(&p->a, p->u[0]);
	rig_expect_none(&p->ca, p->u[0]);
}

/*
 * 300 QPs ring through one register before the device looks: only one store is left. Every WQE
 * runs within ceil(2n / scan) + 1 polls.
 */
RIG_TEST(test_merged_stores_run_every_qp, "scan=16")
{
	enum {
		N = 300,
		SCAN = 16,
		POLLS = (2 * N + SCAN - 1) / SCAN + 1
	};
	const struct rig_qp_attr attr = {.log_sq = 2, .no_rq = true, .log_stride = 4, .uidx = 3};
	struct rig_qp *q = calloc(N, sizeof(*q));
	struct rig_link l = rig_link_default();
	struct rig_cq c;
	struct rig_cqe e;
	uint32_t i, k, polls;

	assert_non_null(q);
	rig_cq_open(&c, p->u[0], 9);
	for (i = 0; i < N; i++) {
		rig_qp_open(&q[i], p->u[0], &c, &c, &attr);
		rig_connect(&q[i], &q[i], &l);
	}
	for (k = 0; k < 3; k++) {
		for (i = 0; i < N; i++) {
			rig_nop(&q[i], RIG_CQE);
			q[i].bf_offset = 0;
			rig_ring(&q[i]);
		}
		/* Rings once more in the middle of the round. */
		for (polls = 0, i = 0; i < N; polls++) {
			rig_poll(p->u[0]);
			while (rig_cqe(&c, &e))
				i++;
			if (polls == 3 && k == 2)
				rig_ring(&q[7]);
			if (polls > POLLS + (k == 2 ? 4 : 0))
				fail_msg("%u of %u WQEs ran in %u polls", i, N, polls);
		}
		printf("%u merged doorbells: %u polls\n", N, polls);
		rig_expect_none(&c, p->u[0]);
	}
	/*
	 * QPs that are destroyed during a round leave no state behind, and no other QP is
	 * skipped.
	 */
	for (i = 0; i < N; i++) {
		rig_nop(&q[i], RIG_CQE);
		q[i].bf_offset = 0;
		rig_ring(&q[i]);
	}
	rig_poll(p->u[0]);
	for (i = 0; i < N; i += 3)
		rig_qp_close(&q[i]);
	rig_polls(p->u[0], POLLS);
	for (i = 0; rig_cqe(&c, &e);)
		i += e.qpn == q[1].qpn || e.qpn == q[2].qpn || e.qpn == q[N - 1].qpn;
	assert_int_equal(i, 3);
	for (i = 0; i < N; i++)
		if (i % 3 != 0)
			rig_qp_close(&q[i]);
	rig_cq_close(&c);
	free(q);
}

/*
 * A store hides the one before it, so a scan must find the first QP. It finds it also if another QP
 * is created meanwhile, wherever the scan began.
 */
RIG_TEST(test_qp_created_during_a_scan_hides_no_doorbell, "scan=2")
{
	enum {
		N = 8
	};
	const struct rig_qp_attr attr = {.log_sq = 4, .no_rq = true, .log_stride = 4, .uidx = 3};
	struct rig_link l = rig_link_default();
	struct rig_qp q[N], more;
	uint32_t i, start;
	struct rig_cq c;

	rig_cq_open(&c, p->u[0], 6);
	for (start = 1; start < N + 2; start++) {
		for (i = 0; i < N; i++) {
			rig_qp_open(&q[i], p->u[0], &c, &c, &attr);
			rig_connect(&q[i], &q[i], &l);
		}
		/* A doorbell during a scan makes the next scan begin one QP later. */
		for (i = 0; i < start; i++) {
			rig_nop(&q[0], RIG_CQE);
			rig_ring(&q[0]);
			rig_poll(p->u[0]);
		}
		rig_polls(p->u[0], 2 * N);
		assert_int_equal(rig_completed(&c), start);
		for (i = 0; i < 2; i++) {
			rig_nop(&q[2 + i], RIG_CQE);
			q[2 + i].bf_offset = 0;
			rig_ring(&q[2 + i]);
		}
		rig_poll(p->u[0]);
		rig_qp_open(&more, p->u[0], &c, &c, &attr);
		rig_polls(p->u[0], 2 * N);
		assert_int_equal(rig_completed(&c), 2);
		rig_qp_close(&more);
		for (i = 0; i < N; i++)
			rig_qp_close(&q[i]);
	}
	rig_cq_close(&c);
}

/*
 * 10 of 300 QPs ring together in each round, in any order. When the scan has found them once, one
 * poll runs all of them. A QP that is destroyed meanwhile leaves no entry behind.
 */
RIG_TEST(test_qps_that_ring_together_again_run_in_one_poll, "scan=16")
{
	enum {
		N = 300,
		ACTIVE = 10,
		SCAN = 16,
		POLLS = (2 * N + SCAN - 1) / SCAN + 1
	};
	const struct rig_qp_attr attr = {.log_sq = 2, .no_rq = true, .log_stride = 4, .uidx = 3};
	struct rig_qp *q = calloc(N, sizeof(*q));
	struct rig_link l = rig_link_default();
	uint32_t i, j, round, first = 0, polls, done, learn = 0;
	uint32_t base = 0;
	struct rig_cq c;
	struct rig_cqe e;

	assert_non_null(q);
	rig_cq_open(&c, p->u[0], 9);
	for (i = 0; i < N; i++) {
		rig_qp_open(&q[i], p->u[0], &c, &c, &attr);
		rig_connect(&q[i], &q[i], &l);
	}
	for (round = 0; round < 200; round++) {
		/* Another set of QPs every 50 rounds. */
		if (round % 50 == 0) {
			base = round / 50;
			learn = 2;
		}
		first = round == 0 ? 0 : first + 7;
		for (i = 0; i < ACTIVE; i++) {
			j = base + 29 * ((i * 3 + first) % ACTIVE);
			rig_nop(&q[j], RIG_CQE);
			q[j].bf_offset = 0;
			rig_ring(&q[j]);
		}
		for (polls = 0, done = 0; done < ACTIVE; polls++) {
			assert_in_range(polls, 0, POLLS);
			rig_poll(p->u[0]);
			while (rig_cqe(&c, &e))
				done++;
		}
		if (learn != 0)
			learn--;
		else
			assert_int_equal(polls, 1);
		/* Not one of the active QPs: its record moves another record in the scan. */
		if (round % 50 == 25) {
			rig_qp_close(&q[base + 28]);
			rig_qp_open(&q[base + 28], p->u[0], &c, &c, &attr);
			rig_connect(&q[base + 28], &q[base + 28], &l);
		}
		/* One of the active QPs. */
		if (round % 50 == 35) {
			rig_qp_close(&q[base]);
			rig_qp_open(&q[base], p->u[0], &c, &c, &attr);
			rig_connect(&q[base], &q[base], &l);
			learn = 3;
		}
	}
	for (i = 0; i < N; i++)
		rig_qp_close(&q[i]);
	rig_cq_close(&c);
	free(q);
}

static const struct rig_qp_attr own_attr = {.log_sq = 4, .log_rq = 2, .log_stride = 6, .uidx = 3};

/* A test with QP @x, the only one of page @other. */
#define OWN_PAGE_TEST(name)                                                                        \
	static void name##_own(struct rig_pair *p, struct rig_uar *other, struct rig_qp *x);       \
	RIG_TEST(name, "scan=16")                                                                  \
	{                                                                                          \
		struct rig_link l = rig_link_default();                                            \
		struct rig_uar other;                                                              \
		struct rig_qp x;                                                                   \
                                                                                                   \
		rig_uar_open(&other, &p->d, MLX5_UAR_BF);                                          \
		rig_qp_open(&x, &other, &p->ca, &p->ca, &own_attr);                                \
		rig_connect(&x, &x, &l);                                                           \
		name##_own(p, &other, &x);                                                         \
		rig_qp_close(&x);                                                                  \
		rig_uar_close(&other);                                                             \
	}                                                                                          \
	static void name##_own(struct rig_pair *p, struct rig_uar *other __attribute__((unused)),  \
			       struct rig_qp *x)

/* The store for a QP of another page merges with, and hides, the store of this page's only QP. */
OWN_PAGE_TEST(test_store_hidden_by_another_page_is_found)
{
	rig_nop(x, RIG_CQE);
	rig_ring(x);
	post(p);
	rig_store(&p->a, other); /* same half: x's store is overwritten */
	rig_polls(other, 3);
	rig_expect_ok(x, MLX5_OPCODE_NOP, 0);
	nothing_happened(p);
}

/* ---- BlueFlame */

RIG_TEST(test_blueflame_and_doorbells_run_every_wqe, "scan=16")
{
	uint32_t i, k;

	/* 1 to 4 blocks in alternating halves, past the ring's end; then a plain doorbell. */
	for (i = 0; i < 200; i++) {
		uint32_t n = 1 + i % 13;

		rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
		for (k = 0; k < n; k++)
			rig_data(&p->a, 2 + k, &p->ma, i + 2 * k, 2);
		rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 2 + n, 0);
		if (i % 5 == 4)
			rig_ring(&p->a);
		else
			rig_ring_bf(&p->a);
		rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
		assert_memory_equal(p->mb.p, p->ma.p + i, 2 * n);
	}
}

/*
 * The copy differs from the ring. A card executes the copy, so the copy of a page's only QP is
 * executed. The copy may ask for a CQE that the ring does not ask for, as in Linux's wc.c. It may
 * have several blocks, and an operation other than WRITE. Later requests are executed as usual.
 */
OWN_PAGE_TEST(test_blueflame_copy_that_differs_is_executed)
{
	static const uint8_t text[100] = "several blocks";
	uint32_t i, ds;

	for (i = 0; i < 40; i++) {
		memset(p->mb.p, 0, 128);
		switch (i % 4) {
		case 0:
			rig_raddr(x, (uintptr_t)p->mb.p, p->mb.mr->rkey);
			rig_inline(x, 2, "abcdefgh", 8);
			rig_wqe(x, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0);
			rig_ring_bf(x);
			((uint8_t *)rig_seg(x, x->last, 2))[5] = 'B';
			rig_expect_ok(x, MLX5_OPCODE_RDMA_WRITE, (uint16_t)x->last);
			assert_memory_equal(p->mb.p, "abcdefgh", 8);
			break;
		case 1:
			/* A NOP with a CQE, padded to a length that a copy may have. */
			rig_wqe(x, MLX5_OPCODE_NOP, RIG_CQE, 2, 0);
			rig_ring_bf(x);
			((uint8_t *)rig_seg(x, x->last, 0))[11] = 0;
			rig_expect_ok(x, MLX5_OPCODE_NOP, (uint16_t)x->last);
			break;
		case 2:
			rig_raddr(x, (uintptr_t)p->mb.p, p->mb.mr->rkey);
			ds = rig_inline(x, 2, text, sizeof(text));
			rig_wqe(x, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 2 + ds, 0);
			rig_ring_bf(x);
			((uint8_t *)rig_seg(x, x->last, 6))[3] ^= 0xff;
			rig_expect_ok(x, MLX5_OPCODE_RDMA_WRITE, (uint16_t)x->last);
			assert_memory_equal(p->mb.p, text, sizeof(text));
			break;
		default:
			/* Later, a plain doorbell for a WQE in the same slot of the ring. */
			rig_raddr(x, (uintptr_t)p->mb.p, p->mb.mr->rkey);
			rig_inline(x, 2, "ABCDEFGH", 8);
			rig_wqe(x, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0);
			rig_done(x, MLX5_OPCODE_RDMA_WRITE, (uint16_t)x->last);
			assert_memory_equal(p->mb.p, "ABCDEFGH", 8);
			break;
		}
	}
}

/*
 * The copy of a WQE whose predecessor was not rung may be merged of two copies: the ring is
 * executed.
 */
OWN_PAGE_TEST(test_blueflame_copy_that_may_be_merged_is_not_executed)
{
	rig_wqe(x, MLX5_OPCODE_NOP, RIG_CQE, 1, 0);
	rig_raddr(x, (uintptr_t)p->mb.p, p->mb.mr->rkey);
	rig_inline(x, 2, "abcdefgh", 8);
	rig_wqe(x, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0);
	rig_ring_bf(x);
	((uint8_t *)rig_seg(x, x->last, 2))[5] = 'B';
	rig_expect_ok(x, MLX5_OPCODE_NOP, 0);
	rig_expect_ok(x, MLX5_OPCODE_RDMA_WRITE, 1);
	assert_memory_equal(p->mb.p, "aBcdefgh", 8);
}

/*
 * The only QP of a page: a plain doorbell over an old copy is not a copy. The same holds for a
 * copy of an earlier second QP.
 */
OWN_PAGE_TEST(test_plain_doorbell_over_a_copy_is_no_copy)
{
	struct rig_link l = rig_link_default();
	struct rig_qp y;
	uint32_t i;

	for (i = 0; i < 12; i++) {
		rig_write(x, &p->ma, i, 1 + i, &p->mb, 0, RIG_CQE);
		if (i % 3 == 0)
			rig_ring_bf(x);
		else
			rig_ring(x);
		rig_expect_ok(x, MLX5_OPCODE_RDMA_WRITE, (uint16_t)i);
	}
	rig_qp_open(&y, other, &p->ca, &p->ca, &own_attr);
	rig_connect(&y, &y, &l);
	rig_write(&y, &p->ma, 0, 64, &p->mb, 0, RIG_CQE);
	y.bf_offset = x->bf_offset;
	rig_ring_bf(&y);
	rig_expect_ok(&y, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_qp_close(&y);
	rig_write(x, &p->ma, 0, 8, &p->mb, 0, RIG_CQE);
	rig_done(x, MLX5_OPCODE_RDMA_WRITE, 12);
}

/*
 * BlueFlame of one QP merged with a plain doorbell of another QP: the device must not take it for
 * a copy of the second QP.
 */
RIG_TEST(test_merged_copy_is_not_taken_for_another_qps, "scan=16")
{
	post(p);
	rig_ring_bf(&p->a);
	rig_nop(&p->b, RIG_CQE);
	rig_ring(&p->b);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_expect_ok(&p->b, MLX5_OPCODE_NOP, 0);
}

int
main(int argc, char **argv)
{
	const int status = rig_copies_by(argc, argv);

	if (status != 0)
		return status;
	return bb_test_run(__FILE__, NULL, NULL);
}
