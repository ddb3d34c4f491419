/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * List of the QPs that rang a register: it finds QPs whose stores were overwritten, and can neither
 * start a WQE nor hide one.
 */
#include <stdlib.h>

#include "../soft_rig.h"
#include "bb_rung.h"

#define N 300

struct many {
	struct rig_cq c;
	struct rig_qp q[N];
};

static const struct rig_qp_attr many_attr = {
	.log_sq = 2, .no_rq = true, .log_stride = 4, .uidx = 3};

static struct many *
many_open(struct rig_pair *p)
{
	struct many *m = calloc(1, sizeof(*m));
	struct rig_link l = rig_link_default();
	uint32_t i;

	assert_non_null(m);
	rig_cq_open(&m->c, p->u[0], 9);
	for (i = 0; i < N; i++) {
		rig_qp_open(&m->q[i], p->u[0], &m->c, &m->c, &many_attr);
		rig_connect(&m->q[i], &m->q[i], &l);
	}
	return m;
}

static void
many_close(struct many *m)
{
	uint32_t i;

	for (i = 0; i < N; i++)
		rig_qp_close(&m->q[i]);
	rig_cq_close(&m->c);
	free(m);
}

static void
add(struct rig_uar *u, uint32_t qpn)
{
	struct bb_rung *r = u->uar->rung;

	r->qpn[r->n % BB_RUNG_SIZE] = htobe32(qpn << 8);
	__atomic_store_n(&r->n, r->n + 1, __ATOMIC_RELEASE);
}

/* Posts a NOP and rings it, always to the same half of the register. */
static void
nop(struct rig_qp *q)
{
	rig_nop(q, RIG_CQE);
	q->bf_offset = 0;
	rig_ring(q);
}

static uint32_t
drain(struct rig_cq *c)
{
	struct rig_cqe e;
	uint32_t n = 0;

	while (rig_cqe(c, &e))
		n++;
	return n;
}

/* Other QPs in every round. With scan=1 the scan alone would find one record per poll. */
RIG_TEST(test_listed_qps_run_in_one_poll, "scan=1")
{
	struct many *m = many_open(p);
	uint32_t i, round, n;

	for (round = 0; round < 100; round++) {
		n = 2 + round % 60;
		for (i = 0; i < n; i++) {
			struct rig_qp *q = &m->q[(round * 37 + i * 5) % N];

			add(p->u[0], q->qpn);
			nop(q);
		}
		rig_poll(p->u[0]);
		assert_int_equal(drain(&m->c), n);
	}
	many_close(m);
}

RIG_TEST(test_more_listed_qps_run_in_a_few_polls, "scan=1")
{
	struct many *m = many_open(p);
	uint32_t i;

	for (i = 0; i < N; i++) {
		add(p->u[0], m->q[i].qpn);
		nop(&m->q[i]);
	}
	rig_polls(p->u[0], (N + 63) / 64);
	assert_int_equal(drain(&m->c), N);
	many_close(m);
}

RIG_TEST(test_list_without_a_store_starts_nothing, "scan=16")
{
	rig_nop(&p->a, RIG_CQE);
	rig_record(&p->a);
	add(p->u[0], p->a.qpn);
	rig_expect_none(&p->ca, p->u[0]);
	rig_store(&p->a, p->u[0]);
	rig_expect_ok(&p->a, MLX5_OPCODE_NOP, 0);
}

RIG_TEST(test_list_without_a_record_starts_nothing, "scan=16")
{
	rig_nop(&p->a, RIG_CQE);
	add(p->u[0], p->a.qpn);
	nop(&p->b);
	rig_expect_ok(&p->b, MLX5_OPCODE_NOP, 0);
	rig_expect_none(&p->ca, p->u[0]);
	rig_done(&p->a, MLX5_OPCODE_NOP, 0);
}

RIG_TEST(test_wrong_list_entries_are_ignored, "scan=16")
{
	const struct rig_qp_attr receiver = {.log_rq = 2, .log_stride = 6, .uidx = 3};
	struct rig_link l = rig_link_default();
	struct rig_qp x, gone;
	struct rig_uar other;
	uint32_t qpn;

	rig_uar_open(&other, &p->d, MLX5_UAR_BF);
	rig_qp_open(&x, &other, &p->ca, &p->ca, &receiver);
	rig_connect(&x, &x, &l);
	rig_qp_open(&gone, p->u[0], &p->ca, &p->ca, &receiver);
	qpn = gone.qpn;
	rig_qp_close(&gone);
	/* The other page's QP has posted, but its own register was not stored to. */
	rig_nop(&x, RIG_CQE);
	rig_record(&x);
	add(p->u[0], x.qpn);
	add(p->u[0], qpn);
	add(p->u[0], 0);
	add(p->u[0], 0xffffff);
	add(p->u[0], 0xabcde);
	nop(&p->b);
	rig_expect_ok(&p->b, MLX5_OPCODE_NOP, 0);
	rig_polls(&other, 10);
	rig_expect_none(&p->ca, p->u[0]);
	rig_store(&x, &other);
	rig_expect_ok(&x, MLX5_OPCODE_NOP, 0);
	rig_qp_close(&x);
	rig_uar_close(&other);
}

/* The list loses the oldest entries; the scan finds their QPs. */
RIG_TEST(test_list_that_overflows_hides_no_qp, "scan=16")
{
	struct many *m = many_open(p);
	uint32_t i, k;

	for (k = 0; k < 3; k++) {
		for (i = 0; i < N; i++) {
			add(p->u[0], m->q[i].qpn);
			nop(&m->q[i]);
		}
		for (i = 0; i < 2 * BB_RUNG_SIZE + k; i++)
			add(p->u[0], p->a.qpn);
		rig_polls(p->u[0], (2 * (N + 2) + 15) / 16 + 1);
		assert_int_equal(drain(&m->c), N);
	}
	many_close(m);
}

int
main(void)
{
	return bb_test_run(__FILE__, NULL, NULL);
}
