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

#include <rte_log.h>

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

/* ---- Re-registration during a bind */

/* A thread that binds a window of its own to b's memory, and invalidates it again. */
struct binder {
	struct rig_qp *q;
	struct umr bind, inv;
	uint32_t rounds;
	bool done;
};

static void
binder_make(struct binder *b, struct keys *k, struct rig_qp *q, const struct mlx5_mw *w)
{
	const char *rounds = getenv("BB_ROUNDS");

	b->q = q;
	b->bind = bind_make(k, true);
	b->bind.key = w->rkey;
	b->bind.m.qpn_mkey = htobe32(q->qpn << 8 | 0x77);
	b->inv = inv_make((w->rkey & ~0xffu) | 0x77);
	b->rounds = rounds != NULL ? (uint32_t)atoi(rounds) : 3000;
}

static void *
binder(void *arg)
{
	struct binder *b = arg;

	while (b->rounds-- != 0) {
		umr_ok(b->q, &b->bind);
		umr_ok(b->q, &b->inv);
		/* The window is unbound for most of the time, so that the MR can be replaced. */
		rig_polls(b->q->u, 50);
	}
	__atomic_store_n(&b->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* An MR that retains its key is replaced between two binds, and never while a window is bound. */
TEST(test_mr_re_registered_during_binds_loses_no_window)
{
	const uint32_t level = rte_log_get_global_level();
	struct keys *k = keys_open(true);
	struct binder b[2] = {0};
	uint32_t i, done = 0, busy = 0;
	pthread_t thread[2];
	struct mlx5_mw *w;

	OK(soft_cmd_if.mw_alloc(k->p.d.ctx, k->p.d.pd, 2, &w));
	binder_make(&b[0], k, &k->p.a, w);
	binder_make(&b[1], k, &k->p.b, k->two);
	rte_log_set_global_level(RTE_LOG_CRIT); /* each refusal logs a line */
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, binder, &b[i]), 0);
	while (!__atomic_load_n(&b[0].done, __ATOMIC_ACQUIRE) ||
	       !__atomic_load_n(&b[1].done, __ATOMIC_ACQUIRE)) {
		int ret = soft_cmd_if.mr_rereg(k->p.d.ctx, k->mem.mr, MLX5_REREG_ACCESS, NULL, NULL,
					       0, ALL_MW & ~(done % 2 * BB_ACCESS_REMOTE_READ));

		assert_true(ret == 0 || ret == -EBUSY);
		done += ret == 0;
		busy += ret != 0;
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	rte_log_set_global_level(level);
	print_message("%u re-registrations, %u refused\n", done, busy);
	OK(soft_cmd_if.mw_free(k->p.d.ctx, w));
	keys_close(k); /* deregisters the MR, to which no window is bound */
}

TEST_MAIN(0)
