/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Device memory through the public API: what the rows dm of the conformance suite do not cover. It
 * takes receives, its keys have rights, and its owner reads a counter while peers add.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_attr_setaffinity_np() */
#endif
#include "../mlx5_env.h"

#include <pthread.h>

#define LEN 8192 /* size of the target's device memory */
#define OFF 104  /* offset at which its MR begins */

struct dm_env {
	struct env e; /* must be first */
	struct bb_dm *dm;
	struct bb_mr *mr; /* Side b's MR: all but the first OFF bytes. */
};

static int
setup(void **state)
{
	static const uint8_t zero[LEN];
	struct dm_env *d = calloc(1, sizeof(*d));

	*state = d;
	if (d == NULL)
		return -1;
	env_start(&d->e);
	OK(bb_dm_alloc(d->e.b.dev, LEN, 6, &d->dm));
	OK(bb_dm_write(d->dm, 0, zero, LEN));
	/* The device ignores an optional access right that it does not support. */
	OK(bb_mr_reg_dm(d->e.b.pd, d->dm, OFF, LEN - OFF, ENV_ALL | BB_ACCESS_RELAXED_ORDERING,
			&d->mr));
	assert_int_equal(d->mr->access, ENV_ALL | BB_ACCESS_ZERO_BASED);
	return 0;
}

static int
teardown(void **state)
{
	struct dm_env *d = *state;

	if (d->mr != NULL)
		OK(bb_mr_dereg(d->mr));
	if (d->dm != NULL)
		OK(bb_dm_free(d->dm));
	env_stop(&d->e);
	free(d);
	return 0;
}

/* Rings a's doorbell and expects one successful completion. */
static void
done(struct env *e, uint64_t wr_id)
{
	env_done(e, &e->a, wr_id, BB_WC_SUCCESS);
}

/* Rings a's doorbell and expects that the request completes with @status. */
static void
refused(struct env *e, uint64_t wr_id, enum bb_wc_status status)
{
	struct bb_qp_attr attr = e->attr;

	env_done(e, &e->a, wr_id, status);
	attr.state = BB_QP_RESET;
	OK(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE));
	OK(bb_qp_modify(e->b.qp, &attr, BB_QP_STATE));
	connect_pair(e->a.qp, e->b.qp, &e->attr);
}

#define T(name) TEST_AS(setup, teardown, NULL, struct dm_env, d, name)

T(test_receive_scatters_into_device_memory)
{
	struct env *e = &d->e;
	struct bb_sge sge = {4000, 64, d->mr->lkey};
	uint8_t got[16];
	struct bb_wc wc;

	OK(bb_post_recv(e->b.qp, 3, &sge, 1));
	bb_qp_ring_recv(e->b.qp);
	OK(bb_post_send_inline(e->a.qp, 4, "to the device", 13, BB_SEND_SIGNALED));
	done(e, 4);
	env_poll(e, &e->b, &wc, 1);
	expect(&wc, e->b.qp, 3, BB_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 13);
	OK(bb_dm_read(d->dm, got, OFF + 4000, 16));
	assert_memory_equal(got, "to the device", 13);
}

T(test_access_without_the_right_of_the_key_fails)
{
	struct env *e = &d->e;
	struct bb_sge sge = sge_of(&e->a, 0, 8), own;
	uint8_t before[LEN], after[LEN];
	struct bb_mr *ro;
	uint32_t rkey;

	OK(bb_dm_read(d->dm, before, 0, LEN));
	memset(e->a.buf, 0x77, 8);
	OK(bb_mr_reg_dm(e->b.pd, d->dm, 0, 64, BB_ACCESS_REMOTE_READ, &ro));
	OK(bb_post_write(e->a.qp, 1, &sge, 1, 0, ro->rkey, BB_SEND_SIGNALED));
	refused(e, 1, BB_WC_REM_ACCESS_ERR);
	OK(bb_post_fetch_add(e->a.qp, 2, &sge, 0, ro->rkey, 1, BB_SEND_SIGNALED));
	refused(e, 2, BB_WC_REM_ACCESS_ERR);
	OK(bb_dm_read(d->dm, after, 0, LEN));
	assert_memory_equal(before, after, LEN);
	/* The owner's WQEs obey LOCAL_WRITE and the end of the range, too. */
	own = (struct bb_sge){60, 8, ro->lkey};
	OK(bb_post_write(e->b.qp, 3, &own, 1, raddr_of(&e->a, 0), e->a.mr->rkey, BB_SEND_SIGNALED));
	env_done(e, &e->b, 3, BB_WC_LOC_PROT_ERR);
	OK(bb_mr_dereg(ro));
	/* A deregistered key is refused. */
	rkey = d->mr->rkey;
	OK(bb_mr_dereg(d->mr));
	d->mr = NULL;
	e->attr.state = BB_QP_RESET;
	OK(bb_qp_modify(e->a.qp, &e->attr, BB_QP_STATE));
	OK(bb_qp_modify(e->b.qp, &e->attr, BB_QP_STATE));
	connect_pair(e->a.qp, e->b.qp, &e->attr);
	OK(bb_post_write(e->a.qp, 4, &sge, 1, 0, rkey, BB_SEND_SIGNALED));
	refused(e, 4, BB_WC_REM_ACCESS_ERR);
}

/* ---- A counter: peers add to it, the owner reads it without any doorbell. */

#define ADDS  3000                              /* by each side, at least */
#define SEEN  100                               /* distinct values that the reader saw, at least */
#define START (UINT64_C(0xffffffff) - ADDS / 2) /* the carry into the upper half comes early */

/* Reads a counter that only grows, 4 bytes at a time (see bb_dm.h). */
static uint64_t
counter_read(const struct bb_dm *dm, uint64_t off)
{
	uint32_t hi, lo, again;

	OK(bb_dm_read(dm, &hi, off + 4, 4));
	for (;; hi = again) {
		OK(bb_dm_read(dm, &lo, off, 4));
		OK(bb_dm_read(dm, &again, off + 4, 4));
		if (again == hi)
			return (uint64_t)hi << 32 | lo;
	}
}

struct reader {
	const struct bb_dm *dm;
	uint64_t off, last, falls;
	uint32_t changes; /* Distinct values seen; accessed with __atomic, as stop is. */
	bool stop;
};

static void
read_once(struct reader *r)
{
	uint64_t v = counter_read(r->dm, r->off);

	r->falls += v < r->last;
	if (v != r->last)
		__atomic_add_fetch(&r->changes, 1, __ATOMIC_RELAXED);
	r->last = v;
}

static void *
read_on(void *arg)
{
	struct reader *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
		read_once(r);
	return NULL;
}

/* A device with its own thread leaves the reader to the main thread: two threads are enough. */
#define READER_THREAD (!env_thread())

static void
add_one(struct dm_env *d, struct side *s, uint64_t wr_id)
{
	struct bb_sge sge = sge_of(s, 0, 8);

	OK(bb_post_fetch_add(s->qp, wr_id, &sge, 512 - OFF, d->mr->rkey, 1, BB_SEND_SIGNALED));
	bb_qp_ring(s->qp);
}

T(test_counter_is_read_while_peers_add)
{
	struct env *e = &d->e;
	uint64_t start = START, added = 0, neighbours[2], end;
	struct reader r = {.dm = d->dm, .off = 512, .last = START};
	bool both = e->a.dev == e->b.dev; /* the owner's completions arrive at a's device */
	pthread_t thread;
	uint32_t i;

	OK(bb_dm_write(d->dm, 512, &start, 8));
	if (READER_THREAD)
		assert_int_equal(pthread_create(&thread, NULL, read_on, &r), 0);
	end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	for (i = 0; i < ADDS || (__atomic_load_n(&r.changes, __ATOMIC_RELAXED) < SEEN &&
				 rte_get_timer_cycles() < end);
	     i++) {
		add_one(d, &e->a, i);
		if (both)
			add_one(d, &e->b, i);
		if (!READER_THREAD)
			read_once(&r);
		env_expect(e, &e->a, i, BB_WC_SUCCESS);
		if (both) {
			env_expect(e, &e->b, i, BB_WC_SUCCESS);
		}
		added += both ? 2 : 1;
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
	if (READER_THREAD)
		assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(r.falls, 0);
	assert_true(r.changes >= SEEN);
	assert_int_equal(counter_read(d->dm, 512), START + added);
	OK(bb_dm_read(d->dm, &neighbours[0], 504, 8));
	OK(bb_dm_read(d->dm, &neighbours[1], 520, 8));
	assert_int_equal(neighbours[0] | neighbours[1], 0);
}

TEST_MAIN(env_eal_init("mlx5_dm"))
