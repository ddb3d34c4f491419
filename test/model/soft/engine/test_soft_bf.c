/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Copies of WQEs that the software device executes, from a register that may be written while the
 * device reads it. The tests change the ring after the copy is made; the executed data shows
 * whether the device used the copy or the ring.
 */
#include <sched.h>
#include <stdio.h>

#include "../../../fakes/bare_eal.h"
#include "../soft_rig.h"
#include "bb_barrier.h"

#define SLOT 64
/* Two registers of one page: neither user may treat the page as its own. */
#define SHARED "uar_share=1"

/* Builds an inline WRITE of @v to slot @slot, without a doorbell. */
static void
post(struct rig_qp *q, const struct rig_mem *to, uint32_t slot, uint64_t v)
{
	rig_raddr(q, (uintptr_t)to->p + (size_t)slot * SLOT, to->mr->rkey);
	rig_inline(q, 2, &v, sizeof(v));
	rig_wqe(q, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0);
}

/* Changes the last WQE in the ring so that it writes @v. */
static void
ring_says(struct rig_qp *q, uint64_t v)
{
	memcpy((uint8_t *)rig_seg(q, q->last, 2) + 4, &v, sizeof(v));
}

static uint64_t
slot(const struct rig_mem *m, uint32_t i)
{
	uint64_t v;

	memcpy(&v, m->p + (size_t)i * SLOT, sizeof(v));
	return v;
}

/* Rings with a copy and returns what was executed: 'c' for the copy or 'r' for the ring. */
static char
with_copy(struct rig_pair *p)
{
	uint64_t v;

	post(&p->a, &p->mb, 0, 'c');
	rig_ring_bf(&p->a);
	ring_says(&p->a, 'r');
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
	v = slot(&p->mb, 0);
	memset(p->mb.p, 0, 8);
	return (char)v;
}

static void
plain(struct rig_pair *p)
{
	post(&p->a, &p->mb, 0, 'p');
	rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
	assert_int_equal(slot(&p->mb, 0), 'p');
	memset(p->mb.p, 0, 8);
}

/* Checks that at the latest the fourth separate copy is executed. */
static void
in_step(struct rig_pair *p)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		with_copy(p);
	assert_int_equal(with_copy(p), 'c');
}

RIG_TEST_TWO(test_copied_wqe_is_executed_from_the_copy, SHARED)
{
	unsigned int i;

	in_step(p);
	/* Past the ring's end. */
	for (i = 0; i < 200; i++)
		assert_int_equal(with_copy(p), 'c');
}

RIG_TEST_TWO(test_remains_of_a_copy_are_not_executed, SHARED)
{
	unsigned int i;

	in_step(p);
	for (i = 0; i < 50; i++) {
		if (i * 7 % 3 == 0)
			assert_int_equal(with_copy(p), 'c');
		else
			plain(p);
	}
}

/* Both halves are written before the device looks: the device cannot know which was first. */
RIG_TEST_TWO(test_two_pending_halves_execute_the_ring, SHARED)
{
	unsigned int i;

	for (i = 0; i < 10; i++) {
		in_step(p);
		/* Starts with either half. */
		if (i & 1)
			with_copy(p);
		post(&p->a, &p->mb, 1, 'c');
		rig_ring_bf(&p->a);
		ring_says(&p->a, 'r');
		post(&p->a, &p->mb, 2, 'c');
		rig_ring_bf(&p->a);
		ring_says(&p->a, 's');
		rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(p->a.pi - 2));
		rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(p->a.pi - 1));
		assert_int_equal(slot(&p->mb, 1), 'r');
		assert_int_equal(slot(&p->mb, 2), 's');
		/* The device does not know either whether the half of the next copy is clean. */
		assert_int_equal(with_copy(p), 'r');
	}
}

/* Pending copies of two QPs; the older copy is in the half that the device reads last. */
RIG_TEST_TWO(test_pending_copies_of_two_qps_execute_both, SHARED)
{
	const struct rig_qp_attr attr = {.log_sq = 4, .no_rq = true, .log_stride = 4, .uidx = 3};
	struct rig_link l = rig_link_default();
	struct rig_qp x;
	uint32_t i;

	rig_qp_open(&x, p->u[0], &p->ca, &p->ca, &attr);
	rig_connect(&x, &x, &l);
	for (i = 0; i < 10; i++) {
		in_step(p);
		if ((p->a.bf_offset != 0) != (i & 1))
			with_copy(p);
		post(&p->a, &p->mb, 1, 'c');
		rig_ring_bf(&p->a);
		ring_says(&p->a, 'r');
		x.bf_offset = p->a.bf_offset;
		post(&x, &p->mb, 2, 'c');
		rig_ring_bf(&x);
		ring_says(&x, 's');
		p->a.bf_offset = x.bf_offset;
		rig_polls(p->u[0], 3);
		assert_int_equal(slot(&p->mb, 1), 'r');
		assert_int_equal(slot(&p->mb, 2), 's');
		p->ca.ci += 2;
	}
	rig_qp_close(&x);
	assert_int_equal(with_copy(p), 'r');
	in_step(p);
}

/* A copy whose predecessor must run first, a copy of two blocks, and a copy that is refused. */
RIG_TEST_TWO(test_unsuitable_copy_executes_the_ring, SHARED)
{
	static const uint8_t text[80] = "two blocks";
	uint32_t ds;

	in_step(p);
	post(&p->a, &p->mb, 1, 'x');
	post(&p->a, &p->mb, 2, 'c');
	rig_ring_bf(&p->a);
	ring_says(&p->a, 'r');
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(p->a.pi - 2));
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(p->a.pi - 1));
	assert_int_equal(slot(&p->mb, 1), 'x');
	assert_int_equal(slot(&p->mb, 2), 'c');

	assert_int_equal(with_copy(p), 'c');
	rig_raddr(&p->a, (uintptr_t)p->mb.p + 3 * SLOT, p->mb.mr->rkey);
	ds = rig_inline(&p->a, 2, text, sizeof(text));
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 2 + ds, 0);
	rig_ring_bf(&p->a);
	rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
	assert_memory_equal(p->mb.p + 3 * SLOT, text, sizeof(text));

	assert_int_equal(with_copy(p), 'c');
	rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey + 1);
	rig_inline(&p->a, 2, text, 8);
	rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0);
	rig_ring_bf(&p->a);
	rig_expect_error(&p->a, p->a.last, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
	/* In ERR a copied WQE is flushed. */
	post(&p->a, &p->mb, 4, 'c');
	rig_ring_bf(&p->a);
	rig_expect_error(&p->a, p->a.last, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_int_equal(slot(&p->mb, 4), 0);
}

/* ---- The device sees a part of a copy */

/*
 * The device looks between any two words of any stores: copies and plain doorbells, of one and of
 * two WQEs. Each WQE is executed once, in order, either as its copy or as the ring has it;
 * without a copy, as the ring has it. Words after the 3 segments of a copy are 0 or random.
 */
RIG_TEST_TWO(test_looks_between_the_words_of_a_copy, SHARED)
{
	enum {
		ROUNDS = 30000,
		SLOTS_USED = 16
	};
	uint32_t round, k, ran[2] = {0}, done = 0, posted = 0, rnd = 99;
	bool is_copy[SLOTS_USED] = {false};
	struct rig_qp *q = &p->a;

	for (round = 0; round < ROUNDS; round++) {
		const bool copy = round % 64 < 48 ? (round & 7) != 7 : (round * 11 & 4) != 0;
		uint64_t *reg = (uint64_t *)(void *)(q->u->uar->reg_addr + q->bf_offset);
		uint32_t n = round % 5 == 4 ? 2 : 1;
		uint64_t word[8];
		struct rig_cqe e;

		for (k = 0; k < n; k++, posted++) {
			post(q, &p->mb, posted % SLOTS_USED, (uint64_t)posted << 8 | 'c');
			memset(rig_seg(q, q->last, 3), (round & 1) != 0 ? 0x55 : 0, 16);
			memcpy(word, rig_seg(q, q->last, 0), sizeof(word));
			ring_says(q, (uint64_t)posted << 8 | 'r');
			is_copy[posted % SLOTS_USED] = copy && k == n - 1;
		}
		rig_record(q);
		q->bf_offset ^= 256;
		for (k = 0; k < (copy ? 8 : 1); k++) {
			__atomic_store_n(&reg[k], word[k], __ATOMIC_RELEASE);
			rnd = rnd * 1664525 + 1013904223;
			/*
			 * In some rounds the device often looks between two words, in others
			 * rarely.
			 */
			if ((rnd >> 24) < ((round >> 6 & 1) != 0 ? 100u : 8u))
				rig_poll(p->u[0]);
		}
		/* In some rounds the device catches up. */
		if (posted - done > SLOTS_USED - 4 || (round >> 7 & 1) != 0)
			rig_polls(p->u[0], 4);
		while (rig_cqe(&p->ca, &e)) {
			const uint64_t v = slot(&p->mb, done % SLOTS_USED);
			const char how = (char)(v & 0xff);

			assert_int_equal(e.opcode, MLX5_CQE_REQ);
			assert_int_equal(e.counter, (uint16_t)done);
			assert_int_equal(v >> 8, done);
			assert_true(how == 'r' || (how == 'c' && is_copy[done % SLOTS_USED]));
			ran[how == 'c']++;
			done++;
		}
	}
	rig_polls(p->u[0], 4);
	/* Both outcomes were frequent. */
	printf("%u from the ring, %u copies\n", ran[0], ran[1]);
	assert_true(ran[0] > ROUNDS / 10 && ran[1] > ROUNDS / 10);
}

/* ---- With the device in its own thread */

#define POSTS  300000u
#define WINDOW 20u
#define SLOTS  256u

static uint64_t
value(uint32_t q, uint32_t seq)
{
	return ((uint64_t)seq << 8 | q) * 0x9e3779b97f4a7c15u;
}

struct poster {
	struct rig_qp *q;
	uint32_t posted, done;
};

static void
reap(struct poster *po, uint32_t n, struct rig_cq *c, const struct rig_mem *m)
{
	struct rig_cqe e;
	uint32_t i;

	while (rig_cqe(c, &e)) {
		for (i = 0; i < n && po[i].q->qpn != e.qpn; i++)
			;
		assert_true(i < n);
		assert_int_equal(e.opcode, MLX5_CQE_REQ);
		assert_int_equal(e.counter, (uint16_t)po[i].done);
		if (slot(m, i * SLOTS + po[i].done % SLOTS) != value(i, po[i].done))
			fail_msg("QP %u: WQE %u has written something else", i, po[i].done);
		po[i].done++;
	}
}

/* Waits briefly: the device's thread may need this CPU. */
static void
in_time(uint64_t end)
{
	sched_yield();
	if (rig_now_us() >= end)
		fail_msg("a WQE does not complete");
}

TEST(test_random_copies_and_doorbells_agree)
{
	const struct rig_qp_attr attr = {.log_sq = 5, .no_rq = true, .log_stride = 4, .uidx = 3};
	static struct rig_pair p;
	struct poster po[2] = {0};
	uint32_t i, half = 0, rnd = 12345, left = 0;
	const uint64_t start = rig_now_us(), enough = start + 2000000, end = start + 60000000;
	struct rig_link l = rig_link_default();
	struct rig_qp x;

	rig_pair_open(&p, "progress=thread", true, NULL);
	rig_qp_open(&x, p.u[0], &p.ca, &p.ca, &attr);
	rig_connect(&x, &x, &l);
	po[0].q = &p.a;
	po[1].q = &x;
	for (i = 0; i < POSTS && rig_now_us() < enough;) {
		struct poster *w;
		uint32_t n, max;

		/*
		 * Bursts and single requests alternate, so that the device sees the halves in
		 * step and out of step.
		 */
		if (left == 0) {
			rnd = rnd * 1664525 + 1013904223;
			left = rnd >> 16 & 255;
		}
		left--;
		max = rnd >> 25 & 1 ? 1 : WINDOW;
		rnd = rnd * 1664525 + 1013904223;
		w = &po[rnd >> 16 & 1];
		while (w->posted - w->done >= max || (max == 1 && po[0].posted != po[0].done) ||
		       (max == 1 && po[1].posted != po[1].done)) {
			reap(po, 2, &p.ca, &p.mb);
			in_time(end);
		}
		for (n = (rnd >> 20 & 7) == 0 ? 3 : 1; n != 0; n--, i++) {
			uint32_t k = (uint32_t)(w - po);

			post(w->q, &p.mb, k * SLOTS + w->posted % SLOTS, value(k, w->posted));
			w->posted++;
		}
		w->q->bf_offset = half;
		if ((rnd >> 24 & 3) == 0)
			rig_ring(w->q);
		else
			rig_ring_bf(w->q);
		half = w->q->bf_offset;
	}
	while (po[0].posted != po[0].done || po[1].posted != po[1].done) {
		reap(po, 2, &p.ca, &p.mb);
		in_time(end);
	}
	printf("%u WQEs\n", i);
	rig_qp_close(&x);
	rig_pair_close(&p);
}

int
main(int argc, char **argv)
{
	const int status = rig_copies_by(argc, argv);

	if (status != 0)
		return status;
	if (!BB_STORES_IN_ORDER) {
		printf("SKIP: stores are not seen in order here: copies are not executed\n");
		return 77;
	}
	/* The device's thread needs EAL. */
	if (bare_eal_init() < 0) {
		printf("EAL does not start\n");
		return 77;
	}
	return bb_test_run(__FILE__, NULL, NULL);
}
