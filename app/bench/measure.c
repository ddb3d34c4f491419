/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Clocks, medians, L (the round trip of a cache line between two CPUs), and pairs of measurements:
 * one of the baseline, one of Bluebell.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "bb_barrier.h"
#include "bench.h"
#include "shared.h"

/*
 * A pair of runs is rejected if the round trip of a cache line between the two CPUs changed by more
 * than this fraction.
 */
#define L_MOVED 0.20

int
pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return -pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

unsigned int cpu_self, cpu_peer;

void
cpus_choose(void)
{
	unsigned int i, n = 0;
	cpu_set_t set;

	cpu_self = cpu_peer = 0;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	for (i = 0; i < CPU_SETSIZE && n < 2; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		cpu_peer = i;
		if (n++ == 0)
			cpu_self = i;
	}
}

bool
have_peer_cpu(void)
{
	return cpu_peer != cpu_self;
}

uint64_t
tsc(void)
{
#if defined(__x86_64__)
	/*
	 * Orders the reading of the TSC after earlier instructions. Does not use RDTSCP, because
	 * some virtual machines and valgrind do not support it.
	 */
	bb_tsc_rmb();
	return __builtin_ia32_rdtsc();
#else
	uint64_t v;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(v) : : "memory");
	return v;
#endif
}

static uint64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

double
tsc_ghz(void)
{
	static double ghz;

	if (ghz == 0) {
		uint64_t ns = clock_ns(), t = tsc(), end;

		do
			end = clock_ns();
		while (end - ns < 50000000);
		ghz = (double)(tsc() - t) / (double)(end - ns);
	}
	return ghz;
}

double
ns_since(uint64_t start)
{
	return (double)(tsc() - start) / tsc_ghz();
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
median(double *v, unsigned int n)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), compare);
	return n % 2 != 0 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/*
 * Measures the clock with a chain of dependent multiplications, which take three cycles each. Uses
 * the fastest of several runs, which other work has disturbed least.
 */
double
core_ghz(void)
{
	double best = 0;
	unsigned int i, k;

	for (k = 0; k < 9; k++) {
		const unsigned int n = 10000;
		uint64_t x = 3, t = tsc();
		double ghz;

		for (i = 0; i < n; i++) {
#if defined(__x86_64__)
			__asm__ volatile("imul %0, %0; imul %0, %0" : "+r"(x));
#else
			__asm__ volatile("mul %0, %0, %0; mul %0, %0, %0" : "+r"(x));
#endif
		}
		ghz = 3.0 * 2 * n / ns_since(t);
		if (ghz > best)
			best = ghz;
	}
	return best;
}

struct peer {
	pthread_t thread;
	void *(*fn)(void *);
	void *arg;
};

static void *
peer_body(void *arg)
{
	struct peer *p = arg;

	if (pin(cpu_peer) != 0)
		fprintf(stderr, "bench: cannot run on CPU %u\n", cpu_peer);
	return p->fn(p->arg);
}

int
peer_start(void *(*fn)(void *), void *arg, struct peer **peer)
{
	struct peer *p = malloc(sizeof(*p));
	int rc;

	if (p == NULL)
		return -ENOMEM;
	p->fn = fn;
	p->arg = arg;
	rc = pthread_create(&p->thread, NULL, peer_body, p);
	if (rc != 0) {
		free(p);
		return -rc;
	}
	*peer = p;
	return 0;
}

void
peer_join(struct peer *peer)
{
	pthread_join(peer->thread, NULL);
	free(peer);
}

/* A cache line that two cores write in turn. */
struct cell {
	uint64_t at __attribute__((aligned(128)));
	uint64_t pad[15];
};

#define L_ROUNDS 40
#define L_TRIPS  500

static void *
echo(void *arg)
{
	struct cell *b = arg;
	uint64_t k;

	for (k = 0; k < (uint64_t)L_ROUNDS * L_TRIPS; k++) {
		while (__atomic_load_n(&b->at, __ATOMIC_ACQUIRE) != 2 * k + 1)
			;
		__atomic_store_n(&b->at, 2 * k + 2, __ATOMIC_RELEASE);
	}
	return NULL;
}

double
measure_l(void)
{
	struct cell b = {.at = 0};
	double v[L_ROUNDS];
	struct peer *peer;
	unsigned int r, i;
	uint64_t k = 0;

	if (!have_peer_cpu() || peer_start(echo, &b, &peer) != 0)
		return 0;
	for (r = 0; r < L_ROUNDS; r++) {
		uint64_t t = tsc();

		for (i = 0; i < L_TRIPS; i++, k++) {
			__atomic_store_n(&b.at, 2 * k + 1, __ATOMIC_RELEASE);
			while (__atomic_load_n(&b.at, __ATOMIC_ACQUIRE) != 2 * k + 2)
				;
		}
		v[r] = ns_since(t) / L_TRIPS;
	}
	peer_join(peer);
	return median(v, L_ROUNDS);
}

/*
 * Marks of the start of two periods. row: the measurement of the current row. setup: a part of that
 * measurement whose lost time does not count (measure_setup_begin()).
 */
static struct time_mark {
	struct shared_time lost; /* total time that was lost to other work before the start */
	uint64_t tsc;
} row, setup;

static pid_t peer_pid; /* second process, 0 if there is none; the time that it waits for a CPU is
			  added to that of this process */

void
measure_peer_process(pid_t pid)
{
	peer_pid = pid;
}

static void
lost_now(struct shared_time *lost)
{
	const unsigned int cpus[] = {cpu_self, cpu_peer};

	shared_now(peer_pid, cpus, have_peer_cpu() ? 2 : 1, lost);
}

static void
begin(struct time_mark *b)
{
	lost_now(&b->lost);
	b->tsc = tsc();
}

static double
row_shared(void)
{
	const uint64_t ns = (uint64_t)ns_since(row.tsc);
	struct shared_time lost;

	lost_now(&lost);
	return shared_part(&row.lost, &lost, ns);
}

void
measure_setup_begin(void)
{
	begin(&setup);
}

void
measure_setup_end(void)
{
	struct shared_time lost;

	lost_now(&lost);
	row.lost.waited += lost.waited - setup.lost.waited;
	row.lost.stolen += lost.stolen - setup.lost.stolen;
	row.tsc += tsc() - setup.tsc;
}

static void
pair_finish(struct pair *p, double *f, double *o, double *r, unsigned int n)
{
	p->baseline = median(f, n);
	p->bluebell = median(o, n);
	p->ratio = median(r, n);
	p->pairs = n;
	p->valid = n > 0;
	p->baseline_limit_scale = 3.8 / core_ghz();
}

void
measure_pair(measure_fn baseline, void *baseline_arg, measure_fn bluebell, void *bluebell_arg,
	     struct pair *p)
{
	double f[BENCH_MAX_REPEAT], o[BENCH_MAX_REPEAT], r[BENCH_MAX_REPEAT];
	unsigned int i, n = 0;

	*p = (struct pair){.valid = false};
	if (bench_stopped())
		return;
	/* The first runs are not measured: they warm up caches and branch predictors. */
	baseline(baseline_arg);
	bluebell(bluebell_arg);
	begin(&row);
	for (i = 0; i < opts.repeat; i++) {
		f[n] = baseline(baseline_arg);
		o[n] = bluebell(bluebell_arg);
		if (f[n] <= 0 || o[n] < 0 || bench_stopped())
			return;
		r[n] = o[n] / f[n];
		n++;
	}
	p->shared = row_shared();
	pair_finish(p, f, o, r, n);
}

struct hist measure_samples;

const struct quantile bench_quantiles[BENCH_QUANTILES] = {
	{"p50", "p50", 500000},    {"p90", "p90", 900000},  {"p99", "p99", 990000},
	{"p99.9", "p999", 999000}, {"max", "max", 1000000},
};

/* Runs the baseline or Bluebell once. Stores the samples of the run in @one. */
static double
run_side(measure_fn side, void *arg, struct hist *one)
{
	double v;

	hist_reset(&measure_samples);
	v = side(arg);
	*one = measure_samples;
	return v;
}

static void
tail_of(const struct hist *all, struct tail *t)
{
	unsigned int i;

	t->samples = all->count;
	for (i = 0; i < BENCH_QUANTILES; i++)
		t->ns[i] = (double)hist_quantile(all, bench_quantiles[i].ppm) / 2 / tsc_ghz();
}

void
measure_pair_cross(measure_fn baseline, void *baseline_arg, measure_fn bluebell, void *bluebell_arg,
		   struct pair *p)
{
	double f[BENCH_MAX_REPEAT], o[BENCH_MAX_REPEAT], r[BENCH_MAX_REPEAT];
	double lb[BENCH_MAX_REPEAT], la[BENCH_MAX_REPEAT];
	double fl[BENCH_MAX_REPEAT], ol[BENCH_MAX_REPEAT];
	static struct hist baseline_one, ours_one, baseline_all, ours_all;
	unsigned int n = 0, tries;

	*p = (struct pair){.baseline_only = bluebell == NULL};
	if (bench_stopped())
		return;
	hist_reset(&baseline_all);
	hist_reset(&ours_all);
	hist_reset(&ours_one);
	baseline(baseline_arg);
	if (bluebell != NULL)
		bluebell(bluebell_arg);
	begin(&row);
	for (tries = 0; n < opts.repeat && tries < 3 * opts.repeat; tries++) {
		lb[n] = measure_l();
		f[n] = run_side(baseline, baseline_arg, &baseline_one);
		o[n] = bluebell != NULL ? run_side(bluebell, bluebell_arg, &ours_one) : 0;
		la[n] = measure_l();
		if (f[n] <= 0 || o[n] < 0 || bench_stopped()) {
			/*
			 * Clears the number of rejected pairs. Otherwise report_row() would print
			 * them as the cause of this failure.
			 */
			p->rejected = 0;
			return;
		}
		if (fabs(la[n] - lb[n]) > L_MOVED * lb[n]) {
			p->rejected++;
			continue;
		}
		hist_merge(&baseline_all, &baseline_one);
		hist_merge(&ours_all, &ours_one);
		r[n] = o[n] / f[n];
		fl[n] = 2 * f[n] / (lb[n] + la[n]);
		ol[n] = 2 * o[n] / (lb[n] + la[n]);
		n++;
	}
	p->shared = row_shared();
	pair_finish(p, f, o, r, n);
	tail_of(&baseline_all, &p->baseline_tail);
	tail_of(&ours_all, &p->bluebell_tail);
	p->baseline_l = median(fl, n);
	p->bluebell_l = median(ol, n);
	p->l_before = median(lb, n);
	p->l_after = median(la, n);
}
