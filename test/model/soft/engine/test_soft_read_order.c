/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A READ does not pass an earlier WRITE of its QP. Two threads, each with its own QP and engine,
 * post a WRITE of their own flag and a READ of the other thread's flag. At least one READ must
 * find the new value, or each READ was executed before the WRITE of its own thread was visible.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "../soft_rig.h"

/* A test ends after ROUNDS, or after LIMIT_US if the threads share a CPU. */
#define ROUNDS   100000u
#define LIMIT_US 2000000u

/*
 * Before its flag a thread writes AREA bytes that both CPUs have in their caches. Until the CPU
 * owns these lines again, no later store becomes visible.
 */
#define AREA   2048
#define AREAS  8192 /* offset of the areas of both threads, in the memory of the flags */
#define ACROSS 4096 /* bytes from one area to the next one */

#define FROM 4096 /* offset of the new value of the flag, in the thread's own memory */
#define INTO 4160 /* offset of the value that the READ found */

struct race {
	struct rig_pair *p;
	bool two_pieces; /* a READ has two SGEs, which the fast path does not support */
	uint32_t arrived;
	uint64_t seen[2];
	bool stop;
	uint32_t rounds, passed;
};

struct side {
	struct race *r;
	uint32_t i;
	struct rig_qp *q;
	struct rig_cq *c;
	struct rig_mem *m;
	const char *failed;
};

/* Waits for the other thread, for the @n-th time. The other thread's requests may need a poll. */
static void
meet(struct side *s, uint32_t n)
{
	uint32_t polls = 0;

	__atomic_fetch_add(&s->r->arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&s->r->arrived, __ATOMIC_ACQUIRE) < 2 * n) {
		rig_poll(s->q->u);
		if (++polls % 64 == 0)
			sched_yield();
	}
}

/* Brings both areas into this CPU's caches. */
static void
load_areas(const struct side *s)
{
	const volatile uint8_t *at = s->r->p->mb.p + AREAS;
	uint32_t i;

	for (i = 0; i < AREA; i += 64)
		(void)(at[i] + at[ACROSS + i]);
}

static void
post(struct side *s, uint64_t round)
{
	const struct rig_mem *flags = &s->r->p->mb;

	memcpy(s->m->p + FROM, &round, 8);
	rig_write(s->q, s->m, 2 * AREAS, AREA, flags, AREAS + ACROSS * s->i, 0);
	rig_write(s->q, s->m, FROM, 8, flags, 128 * s->i, 0);
	if (!s->r->two_pieces) {
		rig_read(s->q, s->m, INTO, 8, flags, 128 * !s->i, RIG_CQE);
	} else {
		rig_raddr(s->q, (uintptr_t)flags->p + 128 * !s->i, flags->mr->rkey);
		rig_data(s->q, 2, s->m, INTO, 8);
		rig_data(s->q, 3, s->m, INTO + 8, 8);
		rig_wqe(s->q, MLX5_OPCODE_RDMA_READ, RIG_CQE, 4, 0);
	}
}

static void *
run(void *arg)
{
	struct side *s = arg;
	struct race *r = s->r;
	const uint64_t end = rig_now_us() + LIMIT_US;
	struct rig_cqe e;
	uint32_t polls;
	uint64_t n;

	for (n = 1; !r->stop; n++) {
		load_areas(s);
		post(s, n);
		meet(s, (uint32_t)(2 * n - 1));
		rig_ring(s->q);
		for (polls = 1; !rig_cqe(s->c, &e); polls++) {
			rig_poll(s->q->u);
			if (polls % 64 == 0)
				sched_yield();
		}
		if (e.opcode != MLX5_CQE_REQ)
			s->failed = "a READ failed";
		memcpy(&r->seen[s->i], s->m->p + INTO, 8);
		if (s->i == 0 && (s->failed != NULL || n == ROUNDS || rig_now_us() > end))
			r->stop = true;
		meet(s, (uint32_t)(2 * n));
		if (s->i == 0) {
			r->rounds++;
			r->passed += r->seen[0] != n && r->seen[1] != n;
		}
	}
	return NULL;
}

static void
race(const char *args, bool two_pieces)
{
	static struct rig_pair p;
	struct rig_link l = rig_link_default();
	struct race r = {.p = &p, .two_pieces = two_pieces};
	struct side a = {.r = &r, .i = 0, .q = &p.a, .c = &p.ca, .m = &p.ma};
	struct side b = {.r = &r, .i = 1, .q = &p.b, .c = &p.cb, .m = &p.mb};
	pthread_t t;

	/* No ack timeout: a busy machine may keep one thread off its CPU. */
	l.timeout = 0;
	rig_pair_open(&p, args, true, &l);
	assert_int_equal(pthread_create(&t, NULL, run, &b), 0);
	run(&a);
	pthread_join(t, NULL);
	rig_pair_close(&p);
	printf("%u rounds\n", r.rounds);
	if (a.failed != NULL || b.failed != NULL)
		fail_msg("%s", a.failed != NULL ? a.failed : b.failed);
	if (r.passed != 0)
		fail_msg("in %u of %u rounds both READs passed the WRITEs", r.passed, r.rounds);
}

TEST(test_read_does_not_pass_an_earlier_write)
{
	race(NULL, false);
}

TEST(test_read_of_two_pieces_does_not_pass_an_earlier_write)
{
	race(NULL, true);
}

TEST(test_read_in_packets_does_not_pass_an_earlier_write)
{
	race("wire", false);
}

TEST_MAIN(0)
