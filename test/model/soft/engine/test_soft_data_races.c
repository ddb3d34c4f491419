/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Engines of two threads that work on each other's QPs, and on one page, at the same time. */
#include <pthread.h>
#include <stdio.h>

#include "../soft_rig.h"

static const struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 6, .log_stride = 6, .uidx = 9};

#define ROUNDS 20000

/*
 * If the threads share a CPU, each window of messages waits for a time slice of the other thread.
 * The test then sends as many messages as fit into SEND_US, but at least LEAST.
 */
#define SEND_US 10000000u
#define LEAST   400u

struct side {
	struct rig_pair *p;
	struct rig_qp *q;
	struct rig_cq *c;
	struct rig_mem *m;
	const struct side *peer;
	/* Messages to send; accessed with __atomic, reduced once, never below sent. */
	uint32_t total;
	uint32_t sent, acked, received;
	const char *failed;
	bool done;
};

static const char *
side_cqe(struct side *s, const struct rig_cqe *e)
{
	uint32_t slot = 4096 + 64 * (s->received % 16), first, last;

	if (e->opcode == MLX5_CQE_REQ)
		return e->counter != (uint16_t)s->acked++ ? "a completion out of order" : NULL;
	if (e->opcode != MLX5_CQE_RESP_SEND)
		return "an error CQE";
	memcpy(&first, s->m->p + slot, 4);
	memcpy(&last, s->m->p + slot + 60, 4);
	if (first != s->received || last != s->received)
		return "a message lost, doubled or torn";
	s->received++;
	rig_recv(s->q, s->m, slot, 64);
	return NULL;
}

/* Sends a running number to the peer, which checks that no message is lost or duplicated. */
static void *
side_run(void *arg)
{
	struct side *s = arg;
	uint64_t start = rig_now_us(), now = start, moved = start;
	uint32_t i, total = ROUNDS;

	for (i = 0; i < 16; i++)
		rig_recv(s->q, s->m, 4096 + 64 * i, 64);
	while ((s->acked < total ||
		s->received < __atomic_load_n(&s->peer->total, __ATOMIC_RELAXED)) &&
	       s->failed == NULL) {
		struct rig_cqe e;

		if (s->sent < total && s->sent - s->acked < 16) {
			uint32_t slot = 64 * (s->sent % 16);

			memcpy(s->m->p + slot, &s->sent, 4);
			memcpy(s->m->p + slot + 60, &s->sent, 4);
			rig_send(s->q, s->m, slot, 64, RIG_CQE);
			rig_ring(s->q);
			s->sent++;
		}
		rig_poll(s->q->u);
		now = rig_now_us();
		while (s->failed == NULL && rig_cqe(s->c, &e)) {
			s->failed = side_cqe(s, &e);
			moved = now;
		}
		if (total == ROUNDS && now - start > SEND_US) {
			total = s->sent > LEAST ? s->sent : LEAST;
			__atomic_store_n(&s->total, total, __ATOMIC_RELAXED);
		}
		if (s->failed == NULL && now - moved > RIG_WAIT_US)
			s->failed = "nothing comes any more";
	}
	printf("%u messages in %lu ms\n", s->sent, (unsigned long)(now - start) / 1000);
	__atomic_store_n(&s->done, true, __ATOMIC_RELAXED);
	return NULL;
}

/* No ack timeout: a busy machine may keep one thread off its CPU while the other one runs. */
static int
setup_no_timeout(void **state)
{
	static struct rig_pair p;
	struct rig_link l = rig_link_default();

	l.timeout = 0;
	rig_pair_open(&p, NULL, true, &l);
	*state = &p;
	return 0;
}

TEST_AS(setup_no_timeout, rig_teardown, NULL, struct rig_pair, p,
	test_threads_that_send_lose_no_message)
{
	struct side a = {.p = p, .q = &p->a, .c = &p->ca, .m = &p->ma, .total = ROUNDS};
	struct side b = {.p = p, .q = &p->b, .c = &p->cb, .m = &p->mb, .total = ROUNDS};
	pthread_t t;

	a.peer = &b;
	b.peer = &a;
	assert_int_equal(pthread_create(&t, NULL, side_run, &b), 0);
	side_run(&a);
	/* The peer may still wait for this engine. */
	while (!__atomic_load_n(&b.done, __ATOMIC_RELAXED))
		rig_poll(p->u[0]);
	pthread_join(t, NULL);
	if (a.failed != NULL || b.failed != NULL)
		fail_msg("a: %s, b: %s", a.failed ? a.failed : "good",
			 b.failed ? b.failed : "good");
}

struct adder {
	uint64_t *target;
	uint64_t adds;
	bool stop;
};

static void *
cpu_adds(void *arg)
{
	struct adder *a = arg;

	while (!__atomic_load_n(&a->stop, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(a->target, 1, __ATOMIC_RELAXED);
		a->adds++;
	}
	return NULL;
}

/* Device atomics and lock-prefixed instructions of a CPU on the same word. */
RIG_TEST_TWO(test_device_atomics_agree_with_the_cpus, NULL)
{
	uint64_t *target = (uint64_t *)(void *)p->mb.p;
	struct adder adder = {.target = target};
	uint64_t end = rig_now_us() + 200000;
	uint32_t n = 0, added = 0;
	pthread_t t;

	*target = 0;
	assert_int_equal(pthread_create(&t, NULL, cpu_adds, &adder), 0);
	for (; n < 20000 || rig_now_us() < end; n += 2) {
		uint64_t seen, old;

		rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 0, &p->mb, 0, 1, 0, RIG_CQE);
		rig_done(&p->a, MLX5_OPCODE_ATOMIC_FA, p->a.last);
		added++;
		seen = __atomic_load_n(target, __ATOMIC_RELAXED);
		rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_CS, &p->ma, 0, &p->mb, 0, seen + 1, seen,
			   RIG_CQE);
		rig_done(&p->a, MLX5_OPCODE_ATOMIC_CS, p->a.last);
		memcpy(&old, p->ma.p, 8);
		added += old == seen;
	}
	__atomic_store_n(&adder.stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	printf("%u of %u device atomics took effect beside %u adds of a CPU\n", added, n,
	       (unsigned int)adder.adds);
	assert_true(*target == adder.adds + added);
}

struct watcher {
	const uint8_t *word;
	int stop; /* Accessed with __atomic. */
	uint64_t torn;
};

/*
 * The device overwrites an aligned word with equal bytes, so the word has equal bytes at all
 * times. The test reads payload while it is written on purpose, so ThreadSanitizer must not check
 * it.
 */
__attribute__((no_sanitize_thread)) static void *
watcher_run(void *arg)
{
	struct watcher *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		uint64_t v = *(const volatile uint64_t *)(const void *)w->word;

		w->torn += v != (v & 0xff) * UINT64_C(0x0101010101010101);
	}
	return NULL;
}

/*
 * An aligned 8-byte unit is written in one store, whatever the alignment of the payload around
 * it.
 */
RIG_TEST_TWO(test_aligned_units_are_written_whole, NULL)
{
	static const struct {
		/* Offset and length of the payload; offset of the unit from the payload's start. */
		uint32_t offset, len, unit;
	} cases[] = {{4, 200, 60}, {4, 200, 28}, {1, 15, 7}, {0, 33, 0}, {5, 1001, 507}};
	uint32_t i, k;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct watcher w = {.word = p->mb.p + 64 + cases[i].offset + cases[i].unit};
		pthread_t t;

		memset(p->ma.p, 0, 1024);
		memset(p->ma.p + 1024, 0xff, 1024);
		memset(p->mb.p, 0, 2048);
		assert_int_equal((uintptr_t)w.word & 7, 0);
		assert_int_equal(pthread_create(&t, NULL, watcher_run, &w), 0);
		for (k = 0; k < 10 * ROUNDS; k++) {
			struct rig_cqe e;

			rig_write(&p->a, &p->ma, k & 1 ? 1024 : 0, cases[i].len, &p->mb,
				  64 + cases[i].offset, RIG_CQE);
			rig_ring(&p->a);
			rig_wait(&p->ca, p->u[0], &e);
			assert_int_equal(e.opcode, MLX5_CQE_REQ);
		}
		__atomic_store_n(&w.stop, 1, __ATOMIC_RELAXED);
		pthread_join(t, NULL);
		if (w.torn != 0)
			fail_msg("payload of %u bytes at offset %u: seen torn %lu times",
				 cases[i].len, cases[i].offset, (unsigned long)w.torn);
	}
}

struct ringer {
	struct rig_uar u;
	struct rig_cq c;
	struct rig_qp q;
	struct rig_mem *from, *to;
	uint32_t done;
	bool lost;
};

/*
 * Rings four doorbells, then waits until all requests are complete; a lost doorbell would hang. A
 * poll that finds the other thread polling returns, so that neither thread waits for one without
 * a CPU.
 */
#define RINGER_ROUNDS 20000u

static void *
ringer_run(void *arg)
{
	struct ringer *r = arg;
	uint64_t start = rig_now_us(), now = start;
	uint32_t i, k;

	for (i = 0; i < RINGER_ROUNDS; i++) {
		uint64_t end = now + RIG_WAIT_US;
		struct rig_cqe e;

		for (k = 0; k < 4; k++) {
			rig_write(&r->q, r->from, 0, 8, r->to, 0, RIG_CQE);
			rig_ring(&r->q);
		}
		while (k != 0 && now < end) {
			rig_poll(&r->u);
			if (rig_cqe(&r->c, &e) && e.opcode == MLX5_CQE_REQ)
				k--;
			now = rig_now_us();
		}
		if (k != 0) {
			r->lost = true;
			break;
		}
	}
	r->done = i;
	printf("%u rounds in %lu ms\n", i, (unsigned long)(now - start) / 1000);
	return NULL;
}

/* The two registers of one page belong to two threads; each thread's poll serves both. */
TEST(test_threads_of_one_page_serve_each_other)
{
	static struct ringer r[2];
	static struct rig_mem m;
	static struct rig_dev d;
	struct rig_link l = rig_link_default();
	pthread_t t;
	uint32_t i;

	rig_dev_open(&d, "soft2", "uar_share=1");
	rig_mem_open(&m, &d, NULL, 4096, RIG_ALL);
	for (i = 0; i < 2; i++) {
		rig_uar_open(&r[i].u, &d, MLX5_UAR_BF);
		rig_cq_open(&r[i].c, &r[i].u, 4);
		rig_qp_open(&r[i].q, &r[i].u, &r[i].c, &r[i].c, &attr);
		rig_connect(&r[i].q, &r[i].q, &l);
		r[i].from = &m;
		r[i].to = &m;
	}
	assert_int_equal(r[0].u.uar->page_id, r[1].u.uar->page_id);
	assert_ptr_not_equal(r[0].u.uar->reg_addr, r[1].u.uar->reg_addr);
	assert_int_equal(pthread_create(&t, NULL, ringer_run, &r[1]), 0);
	ringer_run(&r[0]);
	pthread_join(t, NULL);
	for (i = 0; i < 2; i++) {
		if (r[i].lost)
			fail_msg("thread %u: a doorbell of round %u was lost", i, r[i].done);
		assert_int_equal(r[i].done, RINGER_ROUNDS);
		rig_qp_close(&r[i].q);
		rig_cq_close(&r[i].c);
		rig_uar_close(&r[i].u);
	}
	rig_mem_close(&m);
	rig_dev_close(&d);
}

struct control {
	struct rig_pair *p;
	bool stop;
	uint32_t rounds;
};

/*
 * Runs control commands on b's engine while a's owner works: QPs, keys, state transitions,
 * queries.
 */
static void *
control_run(void *arg)
{
	static const uint16_t ops[] = {BB_PRM_OP_RST2INIT_QP, BB_PRM_OP_INIT2RTR_QP,
				       BB_PRM_OP_RTR2RTS_QP, BB_PRM_OP_RTS2RTS_QP};
	struct control *c = arg;
	struct rig_link l = rig_link_default();
	uint32_t i;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		struct rig_mem m;

		rig_mem_open(&m, &c->p->d, NULL, 4096, RIG_ALL);
		/*
		 * One of a's requests may move the QP to ERR at any time; then the remaining
		 * transitions are refused.
		 */
		rig_qp_modify(&c->p->b, BB_PRM_OP_2RST_QP, &c->p->d, 0, &l);
		for (i = 0; i < 4; i++)
			rig_qp_modify(&c->p->b, ops[i], &c->p->d, c->p->a.qpn, &l);
		rig_mem_close(&m);
		c->rounds++;
	}
	return NULL;
}

/* Each life of b meets a's requests at some point; a is reset when it failed. */
RIG_TEST_TWO(test_control_path_meets_requests_safely, NULL)
{
	struct control c = {.p = p};
	uint32_t i, good = 0, bad = 0;
	struct rig_link l = rig_link_default();
	pthread_t t;

	l.timeout = 1;
	l.retry = 1;
	l.rnr_retry = 0; /* b posts no receive */
	rig_qp_reset(&p->a);
	rig_qp_up(&p->a, &p->d, p->b.qpn, &l);
	assert_int_equal(pthread_create(&t, NULL, control_run, &c), 0);
	for (i = 0; i < 3000; i++) {
		struct rig_cqe e;

		if (i % 3 == 0)
			rig_write(&p->a, &p->ma, 0, 512, &p->mb, 0, RIG_CQE);
		else if (i % 3 == 1)
			rig_read(&p->a, &p->ma, 1024, 512, &p->mb, 0, RIG_CQE);
		else
			rig_send(&p->a, &p->ma, 0, 8, RIG_CQE);
		rig_ring(&p->a);
		do {
			rig_poll(p->u[0]);
			rig_poll(p->u[1]);
		} while (!rig_cqe(&p->ca, &e));
		if (e.opcode == MLX5_CQE_REQ) {
			good++;
			continue;
		}
		bad++;
		rig_qp_reset(&p->a);
		while (rig_cqe(&p->ca, &e))
			;
		rig_qp_up(&p->a, &p->d, p->b.qpn, &l);
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	printf("%u requests done, %u failed, %u lives of the peer\n", good, bad, c.rounds);
}

TEST_MAIN(0)
