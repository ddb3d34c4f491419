/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * WQEs, receives, records and doorbells of random bytes, most of them almost valid. The device
 * must not touch memory that no key covers (guard bytes, AddressSanitizer). It must complete
 * every WQE with at most one CQE, and must work again after a reset. BB_SEED and BB_ROUNDS in the
 * environment extend the run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../soft_rig.h"

static uint64_t seed = 20261120;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

static uint64_t
odd_address(const struct rig_mem *m)
{
	switch (rnd(8)) {
	case 0:
		return (uint64_t)rnd(UINT32_MAX) << 32 | rnd(UINT32_MAX);
	case 1:
		return UINT64_MAX - rnd(64);
	case 2:
		return (uintptr_t)m->p + m->len - rnd(64);
	case 3:
		return (uintptr_t)m->p - rnd(64);
	default:
		return (uintptr_t)m->p + rnd(4096) * 8;
	}
}

static uint32_t
odd_key(const struct rig_mem *m)
{
	return rnd(8) == 0 ? rnd(UINT32_MAX) : m->mr->lkey ^ (rnd(16) == 0 ? 1u << rnd(32) : 0);
}

static uint32_t
odd_length(void)
{
	static const uint32_t some[] = {0,          1,          8,          64,         4096,
					0x40000000, 0x80000000, 0xffffffff, 0x80000008, 0x8000000c};

	return rnd(4) == 0 ? some[rnd(10)] : rnd(300);
}

static void
odd_wqe(struct rig_pair *p, struct rig_qp *q, const struct rig_mem *mine, const struct rig_mem *its)
{
	static const uint8_t opcodes[] = {0x00, 0x08, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12};
	uint32_t ds = 1 + rnd(rnd(4) == 0 ? 63 : 6), i, first = q->pi;

	(void)p;
	for (i = 1; i < ds; i++) {
		if (i == 1 && rnd(4) != 0)
			rig_raddr(q, odd_address(its), odd_key(its));
		else if (rnd(16) == 0)
			memset(rig_seg(q, q->pi, i), (int)rnd(256), 16);
		else
			mlx5dv_set_data_seg(rig_seg(q, q->pi, i), odd_length(), odd_key(mine),
					    (uintptr_t)odd_address(mine));
	}
	rig_wqe(q, rnd(16) == 0 ? (uint8_t)rnd(256) : opcodes[rnd(9)], (uint8_t)rnd(256), ds, 0);
	if (rnd(8) == 0)
		((uint8_t *)rig_seg(q, (uint16_t)first, 0))[rnd(16)] ^= (uint8_t)(1 << rnd(8));
}

static void
odd_recv(struct rig_qp *q, const struct rig_mem *m)
{
	struct mlx5_wqe_data_seg *s;
	uint32_t i;

	rig_recv(q, m, rnd(4096), 1 + rnd(4000));
	s = (void *)(q->rq + (((uint32_t)q->rq_pi - 1) % (1u << q->log_rq) << q->log_stride));
	for (i = 0; i < 4 && rnd(4) == 0; i++)
		mlx5dv_set_data_seg(&s[i], odd_length(), odd_key(m), (uintptr_t)odd_address(m));
}

static void
revive(struct rig_pair *p)
{
	struct rig_link l = rig_link_default();
	struct rig_cqe e;

	l.timeout = 1;
	l.retry = 1;
	l.rnr_retry = rnd(3);
	l.log_msg_max = 10 + rnd(8);
	rig_qp_reset(&p->a);
	rig_qp_reset(&p->b);
	while (rig_cqe(&p->ca, &e) || rig_cqe(&p->cb, &e))
		;
	memset(p->a.sq, 0, (size_t)64 << p->a.log_sq);
	memset(p->b.sq, 0, (size_t)64 << p->b.log_sq);
	rig_connect(&p->a, &p->b, &l);
}

TEST(test_random_bytes_in_queues_harm_nothing)
{
	const char *rounds = getenv("BB_ROUNDS"), *start = getenv("BB_SEED");
	uint32_t n = rounds != NULL ? (uint32_t)atoi(rounds) : 30000, i, k, good = 0, bad = 0;
	static struct rig_pair p;
	struct rig_mem inside[2];
	struct mlx5_mr_attr attr;

	if (start != NULL)
		seed = strtoull(start, NULL, 0);
	rig_pair_open(&p, "scan=4", true, NULL);
	/* The keys cover the middle of the memory only; the bytes around it must not change. */
	OK(soft_cmd_if.mr_dereg(p.d.ctx, p.ma.mr));
	OK(soft_cmd_if.mr_dereg(p.d.ctx, p.mb.mr));
	inside[0] = p.ma;
	inside[1] = p.mb;
	for (k = 0; k < 2; k++) {
		inside[k].p += 65536;
		inside[k].len = 65536;
		attr = mlx5_mr_mem(inside[k].p, inside[k].len, RIG_ALL);
		OK(soft_cmd_if.mr_reg(p.d.ctx, p.d.pd, &attr, &inside[k].mr));
	}
	p.ma.mr = inside[0].mr;
	p.mb.mr = inside[1].mr;
	memset(p.ma.p, 0x5a, RIG_MEM);
	memset(p.mb.p, 0x5a, RIG_MEM);
	for (i = 0; i < n; i++) {
		uint32_t posted = 1 + rnd(3), cqes = 0;
		struct rig_cqe e;

		revive(&p);
		for (k = rnd(4); k > 0; k--)
			odd_recv(&p.b, &inside[1]);
		for (k = 0; k < posted; k++)
			odd_wqe(&p, &p.a, &inside[0], &inside[1]);
		if (rnd(16) == 0)
			p.a.dbrec[1] = rnd(UINT32_MAX);
		else
			rig_record(&p.a);
		if (rnd(32) == 0)
			p.b.dbrec[0] = rnd(UINT32_MAX);
		if (rnd(32) == 0)
			p.a.head[rnd(8)] ^= (uint8_t)(1 << rnd(8));
		if (rnd(2) != 0)
			rig_store(&p.a, p.u[0]);
		else
			rig_ring_bf(&p.a);
		for (k = 0; k < 20; k++) {
			rig_poll(p.u[0]);
			rig_poll(p.u[1]);
			while (rig_cqe(&p.ca, &e)) {
				cqes++;
				good += e.opcode == MLX5_CQE_REQ;
				bad += e.opcode == MLX5_CQE_REQ_ERR;
			}
			while (rig_cqe(&p.cb, &e))
				;
		}
		/* A WQE of unknown size is flushed block by block. */
		if (cqes > 64)
			fail_msg("round %u: %u CQEs for %u WQEs", i, cqes, posted);
	}
	for (k = 0; k < RIG_MEM; k++) {
		if (k >= 65536 && k < 131072)
			continue;
		if (p.ma.p[k] != 0x5a || p.mb.p[k] != 0x5a)
			fail_msg("byte %u outside the keys was written", k);
	}
	printf("%u rounds, seed %llu: %u successes, %u errors\n", n, (unsigned long long)seed, good,
	       bad);
	assert_true(good > n / 50 && bad > n / 50);
	/* The QPs work again. */
	revive(&p);
	rig_write(&p.a, &inside[0], 0, 64, &inside[1], 0, RIG_CQE);
	rig_done(&p.a, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_pair_close(&p);
}

TEST_MAIN(0)
