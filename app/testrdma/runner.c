/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "runner.h"

#define POLL_US 1000

/*
 * State of a worker. It decides which thread may access the worker's test: the worker's thread
 * while the state is GO, otherwise the main thread.
 */
enum worker_state {
	WORKER_STARTING,
	WORKER_REFUSED, /* the worker's thread could not be registered as an lcore */
	WORKER_IDLE,
	WORKER_GO,
	WORKER_OVER, /* the worker has finished its task */
	WORKER_GONE, /* the thread no longer accesses shared data */
};

struct worker {
	struct tester t;
	struct test test;
	struct live live;
	struct server *server; /* server of a worker that listens; NULL if the worker runs tests */
	sem_t go;
	uint32_t state; /* enum worker_state; accessed with __atomic */
	/* task that the worker reads after the semaphore go was posted; NULL ends the worker */
	void (*task)(struct worker *w);
	int rc;      /* result of the last task that creates queues */
	bool thread; /* the worker is an extra thread, not an EAL lcore */
	pthread_t tid;
	unsigned int lcore;
};

static uint32_t
state_of(const struct worker *w)
{
	return __atomic_load_n(&w->state, __ATOMIC_ACQUIRE);
}

static void
state_set(struct worker *w, enum worker_state state)
{
	__atomic_store_n(&w->state, (uint32_t)state, __ATOMIC_RELEASE);
}

static void
do_open(struct worker *w)
{
	w->rc = tester_open_queues(&w->t);
}

static void
do_test(struct worker *w)
{
	test_run(&w->t, &w->test);
}

static void
do_listen(struct worker *w)
{
	w->rc = serve_open(&w->t, &w->server);
}

static void
do_serve(struct worker *w)
{
	serve_run(w->server, false);
}

static void
do_close(struct worker *w)
{
	serve_close(w->server);
	tester_close_queues(&w->t);
}

static int
work(void *arg)
{
	struct worker *w = arg;

	w->lcore = rte_lcore_id();
	state_set(w, WORKER_IDLE);
	for (;;) {
		while (sem_wait(&w->go) != 0)
			;
		if (w->task == NULL)
			break;
		w->task(w);
		state_set(w, WORKER_OVER);
	}
	state_set(w, WORKER_GONE);
	return 0;
}

static void *
work_thread(void *arg)
{
	struct worker *w = arg;

	if (rte_thread_register() != 0) {
		w->lcore = (unsigned int)rte_errno;
		state_set(w, WORKER_REFUSED);
		return NULL;
	}
	work(w);
	rte_thread_unregister();
	return NULL;
}

static void
wait_state_change(const struct worker *w, enum worker_state state)
{
	while (state_of(w) == (uint32_t)state)
		usleep(POLL_US);
}

/* Returns an EAL lcore without work, or RTE_MAX_LCORE if there is none. */
static unsigned int
free_lcore(void)
{
	unsigned int lcore;

	RTE_LCORE_FOREACH_WORKER(lcore)
		if (rte_eal_get_lcore_state(lcore) == WAIT)
			return lcore;
	return RTE_MAX_LCORE;
}

/* Starts a worker and waits until its state is IDLE. */
static int
worker_launch(struct worker *w)
{
	unsigned int lcore = free_lcore();
	int rc;

	w->thread = lcore == RTE_MAX_LCORE;
	if (w->thread)
		rc = -pthread_create(&w->tid, NULL, work_thread, w);
	else
		rc = rte_eal_remote_launch(work, w, lcore);
	if (rc != 0) {
		say("a worker for the traffic cannot be started: %s", strerror(-rc));
		return rc;
	}
	wait_state_change(w, WORKER_STARTING);
	if (state_of(w) == WORKER_REFUSED) {
		pthread_join(w->tid, NULL);
		say("the thread for the traffic cannot be registered with EAL: %s; give EAL a "
		    "second lcore, as -l 0-1",
		    strerror((int)w->lcore));
		return -EINVAL;
	}
	return 0;
}

static void
worker_begin(struct worker *w, void (*task)(struct worker *w))
{
	w->task = task;
	state_set(w, WORKER_GO);
	sem_post(&w->go);
}

static void
worker_end(struct worker *w)
{
	worker_begin(w, NULL);
	/*
	 * Waits for the state too, because ThreadSanitizer does not recognise that
	 * rte_eal_wait_lcore() synchronizes.
	 */
	while (state_of(w) != WORKER_GONE)
		usleep(POLL_US);
	if (w->thread)
		pthread_join(w->tid, NULL);
	else
		rte_eal_wait_lcore(w->lcore);
}

void
runner_close(struct runner *r)
{
	while (r->n > 0) {
		struct worker *w = &r->workers[--r->n];

		worker_begin(w, do_close);
		wait_state_change(w, WORKER_GO);
		worker_end(w);
		sem_destroy(&w->go);
	}
	rte_free(r->workers);
	r->workers = NULL;
}

static int
worker_open(struct runner *r, struct worker *w, void (*task)(struct worker *w))
{
	struct tester *t = &w->t;
	int rc;

	sem_init(&w->go, 0, 0);
	rc = worker_launch(w);
	if (rc != 0) {
		sem_destroy(&w->go);
		return rc;
	}
	r->n++;
	t->o = r->t->o;
	t->dev = r->t->dev;
	t->attr = r->t->attr;
	t->pd = r->t->pd;
	t->tsc_hz = r->t->tsc_hz;
	t->started = r->t->started;
	t->ntests = r->t->ntests;
	t->lcore = BB_LCORE_SELF;
	t->live = &w->live;
	/*
	 * Waits for each worker before the next one starts, because control calls must not run
	 * concurrently.
	 */
	worker_begin(w, task);
	wait_state_change(w, WORKER_GO);
	return w->rc;
}

static int
runner_open(struct runner *r)
{
	const struct options *o = &r->t->o;
	unsigned int lcore, lcores = 0;
	uint32_t i;

	RTE_LCORE_FOREACH_WORKER(lcore)
		lcores += rte_eal_get_lcore_state(lcore) == WAIT;
	if (o->lcores > RTE_MAX(lcores, 1u)) {
		say("%u lcores: EAL has only %u idle lcores beside the main lcore; start "
		    "testrdma with -l 0-%u, or give --worker-lcores (at the prompt: set lcores) "
		    "%u",
		    o->lcores, lcores, o->lcores, RTE_MAX(lcores, 1u));
		return -1;
	}
	r->workers = rte_zmalloc("workers", o->lcores * sizeof(*r->workers), 64);
	if (r->workers == NULL) {
		say("no memory for %u lcores; give EAL more (-m MB, hugepages)", o->lcores);
		return -1;
	}
	for (i = 0; i < o->lcores; i++) {
		if (worker_open(r, &r->workers[i], do_open) != 0) {
			runner_close(r);
			return -1;
		}
	}
	return 0;
}

/* Starts the next test on all workers. @return false if there is no further test. */
static bool
test_begin(struct runner *r)
{
	struct tester *t = r->t;
	const struct engine *e;
	uint32_t size, i;

	if (t->fatal || tester_stopping(&r->workers[0].t))
		return false;
	e = options_test(&t->o, t->test_no, &size);
	if (e == NULL)
		return false;
	for (i = 0; i < r->n; i++) {
		struct worker *w = &r->workers[i];

		test_layout(&w->t, &w->test, e, size);
		w->t.test_no = t->test_no;
		hist_reset(&w->live.lat);
		__atomic_store_n(&w->live.ops, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&w->live.bytes, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&w->live.errors, 0, __ATOMIC_RELAXED);
		worker_begin(w, do_test);
	}
	return true;
}

static void
result_add(struct result *sum, const struct result *res)
{
	unsigned int i;

	sum->ops += res->ops;
	sum->cycles += res->cycles;
	sum->doorbells += res->doorbells;
	sum->bytes += res->bytes;
	sum->guards += res->guards;
	sum->recvs += res->recvs;
	sum->rounds += res->rounds;
	sum->errors += res->errors;
	sum->unposted += res->unposted;
	for (i = 0; i < MIX_KINDS; i++)
		sum->kinds[i] += res->kinds[i];
}

/* Collects the results after all workers have finished a test. */
static void
test_end(struct runner *r)
{
	struct test *sum = r->test, *test;
	struct totals totals;
	uint32_t i;

	runner_totals(r, &totals);
	*sum = r->workers[0].test;
	for (i = 1; i < r->n; i++) {
		test = &r->workers[i].test;
		result_add(&sum->res, &test->res);
		hist_merge(&sum->lat, &test->lat);
		sum->complete &= test->complete;
		sum->lcores++;
	}
	for (i = 0; i < r->n; i++)
		r->t->fatal |= r->workers[i].t.fatal;
	test_finish(r->t, sum);
	*r->last = *sum;
	r->have_last = true;
	/* Clears the counts of the workers, because r->past includes them now. */
	r->past = totals;
	for (i = 0; i < r->n; i++)
		memset(&r->workers[i].live, 0, offsetof(struct live, request));
}

int
runner_init(struct runner *r, struct tester *t)
{
	memset(r, 0, sizeof(*r));
	r->t = t;
	r->test = rte_zmalloc("row", sizeof(*r->test), 64);
	r->last = rte_zmalloc("row", sizeof(*r->last), 64);
	if (r->test != NULL && r->last != NULL)
		return 0;
	runner_free(r);
	return -ENOMEM;
}

int
runner_start(struct runner *r)
{
	struct tester *t = r->t;

	runner_close(r);
	t->ntests = options_tests(&t->o);
	t->test_no = t->passed = t->failed = 0;
	t->errors = t->verified = 0;
	t->fatal = false;
	t->started = rte_rdtsc();
	if (tester_check(t) != 0 || runner_open(r) != 0)
		return -1;
	r->tests += t->ntests;
	report_start(t);
	r->running = test_begin(r);
	return 0;
}

bool
runner_poll(struct runner *r)
{
	uint32_t i;

	if (!r->running)
		return false;
	for (i = 0; i < r->n; i++)
		if (state_of(&r->workers[i]) != WORKER_OVER)
			return true;
	test_end(r);
	r->running = test_begin(r);
	if (r->running)
		return true;
	report_summary(r->t);
	r->passed += r->t->passed;
	r->failed += r->t->failed;
	r->errors += r->t->errors;
	r->verified += r->t->verified;
	return false;
}

void
runner_stop(struct runner *r)
{
	uint32_t i;

	for (i = 0; i < r->n && r->running; i++)
		__atomic_store_n(&r->workers[i].live.stop, 1, __ATOMIC_RELAXED);
	while (runner_poll(r))
		usleep(POLL_US);
}

int
runner_listen(struct runner *r)
{
	struct worker *w;

	runner_close(r);
	r->workers = w = rte_zmalloc("workers", sizeof(*w), 64);
	if (w == NULL) {
		say("no memory for a worker; give EAL more (-m MB, hugepages)");
		return -1;
	}
	if (worker_open(r, w, do_listen) != 0) {
		runner_close(r);
		return -1;
	}
	r->server = w->server;
	worker_begin(w, do_serve);
	return 0;
}

void
runner_unlisten(struct runner *r)
{
	if (r->server == NULL)
		return;
	__atomic_store_n(&r->workers[0].live.stop, 1, __ATOMIC_RELAXED);
	wait_state_change(&r->workers[0], WORKER_GO);
	r->errors += serve_errors(r->server);
	r->server = NULL;
	runner_close(r);
}

void
runner_free(struct runner *r)
{
	runner_stop(r);
	runner_unlisten(r);
	runner_close(r);
	rte_free(r->test);
	rte_free(r->last);
	r->test = r->last = NULL;
}

void
runner_totals(const struct runner *r, struct totals *totals)
{
	uint32_t i;

	*totals = r->past;
	for (i = 0; i < r->n && r->running; i++) {
		const struct live *live = &r->workers[i].live;

		totals->ops += __atomic_load_n(&live->ops, __ATOMIC_RELAXED);
		totals->verified += __atomic_load_n(&live->bytes, __ATOMIC_RELAXED);
		totals->errors += __atomic_load_n(&live->errors, __ATOMIC_RELAXED);
	}
}

/* Makes a worker execute @request. @return false if the worker's test ended before. */
static bool
worker_request(struct worker *w, enum live_request request)
{
	__atomic_store_n(&w->live.request, (uint32_t)request, __ATOMIC_RELEASE);
	for (;;) {
		/*
		 * Reads the state before request, because the worker may execute the request and
		 * then end.
		 */
		bool over = state_of(w) != WORKER_GO;

		if (__atomic_load_n(&w->live.request, __ATOMIC_ACQUIRE) == LIVE_NONE)
			return true;
		if (over)
			break;
		usleep(POLL_US);
	}
	w->live.request = LIVE_NONE;
	return false;
}

bool
runner_latency(struct runner *r, struct hist *lat)
{
	uint32_t i;

	hist_reset(lat);
	for (i = 0; i < r->n && r->running; i++) {
		struct worker *w = &r->workers[i];

		hist_merge(lat, worker_request(w, LIVE_LATENCY) ? &w->live.lat : &w->test.lat);
	}
	if (!r->running && r->have_last)
		hist_merge(lat, &r->last->lat);
	return r->running || r->have_last;
}

void
runner_clear(struct runner *r)
{
	struct totals totals;
	uint32_t i;

	/*
	 * Only a worker may clear its own counters. So this function keeps their present values as
	 * negative values in r->past, and the totals become 0.
	 */
	memset(&r->past, 0, sizeof(r->past));
	runner_totals(r, &totals);
	r->past.ops -= totals.ops;
	r->past.verified -= totals.verified;
	r->past.errors -= totals.errors;
	for (i = 0; i < r->n && r->running; i++)
		if (!worker_request(&r->workers[i], LIVE_CLEAR))
			hist_reset(&r->workers[i].test.lat);
	r->have_last = false;
}

struct tester *
runner_tester(const struct runner *r, uint32_t i)
{
	return i < r->n ? &r->workers[i].t : NULL;
}

unsigned int
runner_lcore(const struct runner *r, uint32_t i)
{
	return r->workers[i].lcore;
}
