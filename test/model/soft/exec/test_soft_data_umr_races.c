/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UMR WQEs of random bytes, most of them almost valid. Also keys that are invalidated while
 * another engine writes through them. BB_ROUNDS in the environment extends the run.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdlib.h>

#include "soft_umr_env.h"

/* ---- Random bytes */

static uint64_t seed = 3;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

TEST(test_random_umrs_are_applied_or_refused)
{
	const char *rounds = getenv("BB_ROUNDS");
	unsigned int n = rounds != NULL ? (unsigned int)atoi(rounds) : 3000, i, good = 0;
	struct keys *k = keys_open(false);
	struct rig_link link = rig_link_default();

	for (i = 0; i < n; i++) {
		struct umr w;
		struct rig_cqe e;
		uint32_t flips = rnd(4), j;

		switch (rnd(5)) {
		case 0:
			w = bind_make(k, true);
			break;
		case 1:
			w = bind_make(k, false);
			break;
		case 2:
			w = inv_make(rnd(2) != 0 ? k->two->rkey : k->key);
			break;
		case 3:
			w = list_make(k);
			break;
		default:
			w = pattern_make(k);
			break;
		}
		for (j = 0; j < flips; j++)
			((uint8_t *)&w)[rnd(sizeof(w.u) + sizeof(w.m) + 80) + 12] ^=
				(uint8_t)(1u << rnd(8));
		if (w.ds == 0 || w.ds > 63)
			w.ds = 8;
		umr_put(&k->p.b, &w, (uint8_t)(RIG_CQE | rnd(2) << 5));
		/* Also uses one of the keys, sometimes far out of its range. */
		rig_raddr(&k->p.b, (uintptr_t)k->p.ma.p, k->p.ma.mr->rkey);
		mlx5dv_set_data_seg(rig_seg(&k->p.b, k->p.b.pi, 2), 1 + rnd(300),
				    rnd(2) != 0 ? k->key : k->two->rkey,
				    rnd(4) == 0 ? rnd(512) : 0);
		rig_wqe(&k->p.b, MLX5_OPCODE_RDMA_WRITE, RIG_CQE | 0x20, 3, 0);
		rig_ring(&k->p.b);
		rig_polls(k->p.u[1], 3);
		for (j = 0; rig_cqe(&k->p.cb, &e); j++)
			good += e.opcode == MLX5_CQE_REQ;
		assert_int_equal(j, 2);
		if (rig_qp_state(&k->p.b) == BB_PRM_QP_ERR) {
			rig_qp_reset(&k->p.a);
			rig_qp_reset(&k->p.b);
			rig_connect(&k->p.a, &k->p.b, &link);
			while (rig_cqe(&k->p.ca, &e))
				;
		}
	}
	print_message("%u rounds, %u of %u WQEs were good\n", n, good, 2 * n);
	assert_in_range(good, n / 10, 2 * n);
	keys_close(k);
}

/* ---- Invalidation during a write */

struct race {
	struct keys *k;
	uint32_t rounds, hits;
	bool stop;
};

/* a's owner: writes through the key until a write is refused, then starts again. */
static void *
writer(void *arg)
{
	struct race *r = arg;
	struct rig_qp *q = &r->k->p.a;
	struct rig_cqe e;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		rig_raddr(q, 0, r->k->key);
		rig_data(q, 2, &r->k->p.ma, 0, 256);
		rig_wqe(q, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0);
		rig_ring(q);
		rig_wait(&r->k->p.ca, r->k->p.u[0], &e);
		if (e.opcode != MLX5_CQE_REQ)
			break;
		__atomic_add_fetch(&r->hits, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST(test_invalidated_memory_does_not_change)
{
	struct race r = {.k = keys_open(true)};
	struct rig_qp *q = &r.k->p.b;
	uint8_t before[2048];
	struct rig_link link = rig_link_default();
	struct rig_cqe e;
	uint32_t i, round, seen = 0, checked = 0;
	uint64_t end;

	for (round = 0; round < 30; round++) {
		struct umr lay = list_make(r.k), inv = inv_make(r.k->key);
		pthread_t thread;
		uint16_t at;

		umr_ok(q, &lay);
		r.stop = false;
		assert_int_equal(pthread_create(&thread, NULL, writer, &r), 0);
		/* The writer is writing, a while longer in each round. */
		end = rig_now_us() + RIG_WAIT_US;
		while (__atomic_load_n(&r.hits, __ATOMIC_RELAXED) < seen + 1 + round * 5 &&
		       rig_now_us() < end)
			rig_poll(r.k->p.u[1]);
		seen = __atomic_load_n(&r.hits, __ATOMIC_RELAXED);
		at = q->pi;
		umr_put(q, &inv, RIG_CQE);
		rig_ring(q);
		do {
			rig_wait(&r.k->p.cb, r.k->p.u[1], &e);
			/* The target may refuse the writer's request here first. */
		} while (e.opcode == MLX5_CQE_RESP_ERR);
		checked += e.opcode == MLX5_CQE_REQ && e.counter == at;
		if (e.opcode == MLX5_CQE_REQ && e.counter == at) {
			memset(r.k->mem.p, (int)round, sizeof(before));
			memset(before, (int)round, sizeof(before));
		}
		/* b's engine answers the last request. */
		for (i = 0; i < 2000; i++)
			rig_poll(r.k->p.u[1]);
		if (e.opcode == MLX5_CQE_REQ && e.counter == at)
			assert_memory_equal(r.k->mem.p, before, sizeof(before));
		__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
		while (pthread_tryjoin_np(thread, NULL) != 0)
			rig_poll(r.k->p.u[1]);
		rig_qp_reset(&r.k->p.a);
		rig_qp_reset(&r.k->p.b);
		rig_connect(&r.k->p.a, &r.k->p.b, &link);
		while (rig_cqe(&r.k->p.ca, &e) || rig_cqe(&r.k->p.cb, &e))
			;
		/* Whichever side flushed the invalidation, the key is free for the next round. */
		umr_ok(q, &inv);
	}
	print_message("%u writes went through\n", r.hits);
	print_message("%u of 30 invalidations completed\n", checked);
	assert_true(r.hits >= 30 && checked != 0);
	keys_close(r.k);
}

TEST_MAIN(0)
