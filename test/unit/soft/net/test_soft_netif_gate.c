/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * EAL's interrupt thread at the gate of ports whose engines poll without a pause. It gets the
 * ports' locks for its work, and does not spend a CPU on waiting for them.
 */
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_ticketlock.h>

#include "bb_test.h"
#include "soft_netif.h"
#include "soft_wire.h"

#define PORTS   2
#define TURN_NS 3000
#define LONG_NS 1000000 /* length of a long turn, ns */
#define WORK_US 1000    /* interval between pieces of work of the interrupt thread, us */
#define SEC     UINT64_C(1000000000)
/*
 * Limit in percent of a CPU; trying for the locks took 20 to 40 %. A sanitizer or emulator has a
 * cost of its own, so the limit is at least TIMES the share without polling engines.
 */
#define MOST   12
#define TIMES  3
#define ROUNDS 8
#define NICE   (-10) /* nice value of the interrupt thread while it works */
#define LEAST  10    /* pieces of work in a round: a turn in 20 ms on unshared CPUs */

struct world {
	struct soft_dev *dev[PORTS];
	struct soft_engine *engine[PORTS];
	struct soft_netif nif[PORTS];
	uint32_t ports;
	uint32_t long_of; /* one of this many turns of an engine is long; 0: none */
	pthread_t poller;
	bool stop;           /* __atomic */
	uint32_t turns, had; /* turns of the engines, and those with the port */
	uint32_t held;   /* number of times that a thread has held the first port's lock, without
			  * the interrupt thread; written by the holder */
	uint32_t inside; /* number of ports held by an engine; __atomic */
	uint32_t works, wrong; /* of the interrupt thread, in all and while an engine had a
				* port; __atomic */
	uint32_t real_time,
		niced;         /* works at a real-time priority, and at nice value NICE; __atomic */
	bool works_end, ended; /* __atomic */
	uint64_t spent;        /* CPU time of the interrupt thread, ns; __atomic */
};

static uint64_t most = MOST;

/* Not on the stack: the interrupt thread continues when a test fails. */
static struct world w;

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec;
}

/* Work of a PMD, at unpredictable times. */
static void
work(void *arg)
{
	(void)arg;
	if (__atomic_load_n(&w.inside, __ATOMIC_RELAXED) != 0)
		__atomic_fetch_add(&w.wrong, 1, __ATOMIC_RELAXED);
	if (sched_getscheduler(0) != SCHED_OTHER)
		__atomic_fetch_add(&w.real_time, 1, __ATOMIC_RELAXED);
	if (getpriority(PRIO_PROCESS, 0) == NICE)
		__atomic_fetch_add(&w.niced, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&w.works, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&w.spent, clock_ns(CLOCK_THREAD_CPUTIME_ID), __ATOMIC_RELAXED);
	if (__atomic_load_n(&w.works_end, __ATOMIC_RELAXED) ||
	    rte_eal_alarm_set(WORK_US, work, NULL) != 0)
		__atomic_store_n(&w.ended, true, __ATOMIC_RELEASE);
}

static void
spend(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ns;

	while (clock_ns(CLOCK_MONOTONIC) < end)
		;
}

/* A turn as in soft_link_port.c, without a port. */
static void
engine_turn(uint32_t i)
{
	struct soft_engine *e = w.engine[i];
	struct soft_netif *nif = &w.nif[i];

	rte_ticketlock_lock(&e->lock);
	soft_link_port.begin(e);
	if (soft_netif_mine(e)) {
		__atomic_fetch_add(&w.inside, 1, __ATOMIC_RELAXED);
		w.had++;
		if (i == 0)
			w.held++;
	}
	w.turns++;
	spend(w.long_of != 0 && w.turns % w.long_of == 0 ? LONG_NS : TURN_NS);
	if (soft_netif_mine(e)) {
		__atomic_fetch_sub(&w.inside, 1, __ATOMIC_RELAXED);
		if (__atomic_load_n(&nif->requests, __ATOMIC_RELAXED) != 0)
			soft_netif_pass(nif);
	}
	rte_ticketlock_unlock(&e->lock);
}

static void *
poll_ports(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&w.stop, __ATOMIC_RELAXED))
		for (uint32_t i = 0; i < w.ports; i++)
			engine_turn(i);
	return NULL;
}

static void
world_start(uint32_t ports, uint32_t long_of)
{
	memset(&w, 0, sizeof(w));
	w.ports = ports;
	w.long_of = long_of;
	for (uint32_t i = 0; i < ports; i++) {
		w.dev[i] = calloc(1, sizeof(*w.dev[i]));
		assert_int_equal(posix_memalign((void **)&w.engine[i], RTE_CACHE_LINE_SIZE,
						sizeof(*w.engine[i])),
				 0);
		memset(w.engine[i], 0, sizeof(*w.engine[i]));
		rte_ticketlock_init(&w.engine[i]->lock);
		w.engine[i]->dev = w.dev[i];
		w.dev[i]->netif = &w.nif[i];
		w.nif[i].dev = w.dev[i];
		assert_int_equal(soft_netif_gate_join(&w.nif[i]), 0);
	}
	assert_int_equal(rte_eal_alarm_set(WORK_US, work, NULL), 0);
}

static void
world_end(void)
{
	__atomic_store_n(&w.works_end, true, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&w.ended, __ATOMIC_ACQUIRE))
		usleep(100);
	for (uint32_t i = 0; i < w.ports; i++) {
		soft_netif_gate_leave(&w.nif[i]);
		/* No engine holds the port now. */
		soft_netif_leave(w.engine[i]);
		assert_true(rte_spinlock_trylock(&w.nif[i].lock));
		free(w.engine[i]);
		free(w.dev[i]);
	}
}

/* Waits until the thread has worked often enough. Returns its share of that time, in percent. */
static uint64_t
share_once(void)
{
	uint64_t before = clock_ns(CLOCK_MONOTONIC), spent, end = before + 60 * SEC;
	uint32_t works = __atomic_load_n(&w.works, __ATOMIC_RELAXED);

	spent = __atomic_load_n(&w.spent, __ATOMIC_RELAXED);
	while (clock_ns(CLOCK_MONOTONIC) < before + SEC / 2 ||
	       __atomic_load_n(&w.works, __ATOMIC_RELAXED) - works < LEAST) {
		if (clock_ns(CLOCK_MONOTONIC) > end)
			return UINT64_MAX; /* the caller fails after it has cleaned up */
		usleep(1000);
	}
	spent = __atomic_load_n(&w.spent, __ATOMIC_RELAXED) - spent;
	return 100 * spent / (clock_ns(CLOCK_MONOTONIC) - before);
}

/*
 * Returns the least share of several rounds. On a shared machine other work sometimes adds to it,
 * but waiting for the locks would add to every round.
 */
static uint64_t
share(void)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < ROUNDS && least > most; i++)
		least = RTE_MIN(least, share_once());
	return least;
}

static int
nobody_polls(void **st)
{
	uint64_t percent;

	(void)st;
	world_start(1, 0);
	percent = share_once();
	world_end();
	if (percent != UINT64_MAX)
		most = RTE_MAX(most, TIMES * percent);
	printf("%lu %% of a CPU where nobody polls, so %lu at most\n", percent, most);
	return 0;
}

static void
polled(uint32_t ports, uint32_t long_of)
{
	uint64_t percent;

	world_start(ports, long_of);
	assert_int_equal(pthread_create(&w.poller, NULL, poll_ports, NULL), 0);
	percent = share();
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	pthread_join(w.poller, NULL);
	world_end();
	printf("%u works, %lu %% of a CPU; %u turns, %u with a port\n", w.works, percent, w.turns,
	       w.had);
	assert_int_equal(w.wrong, 0);
	assert_true(percent <= most);
	assert_true(w.had >= w.turns / 2);
}

TEST(test_worker_gets_a_polled_port_cheaply)
{
	polled(1, 0);
}

TEST(test_worker_gets_two_polled_ports_cheaply)
{
	polled(2, 0);
}

TEST(test_worker_gets_a_port_despite_long_turns)
{
	polled(2, 10);
}

/* An engine that holds the port and no longer polls. */
TEST(test_worker_gets_the_port_of_an_engine_that_stopped_polling)
{
	uint64_t percent;

	world_start(1, 0);
	engine_turn(0);
	percent = share();
	world_end();
	printf("%u works, %lu %% of a CPU\n", w.works, percent);
	assert_int_equal(w.wrong, 0);
	assert_true(percent <= most);
}

/* Returns whether this process may set NICE. */
static void *
try_nice(void *may)
{
	*(bool *)may = setpriority(PRIO_PROCESS, 0, NICE) == 0;
	return NULL;
}

/*
 * The work of a PMD spins on locks of EAL. At a real-time priority it would keep the CPU from a
 * lock's holder that waits for it.
 */
TEST(test_work_has_a_high_but_no_real_time_priority)
{
	pthread_t thread;
	uint64_t percent;
	bool may;

	/* Another thread, which ends with its nice value. */
	assert_int_equal(pthread_create(&thread, NULL, try_nice, &may), 0);
	pthread_join(thread, NULL);
	world_start(1, 0);
	percent = share_once();
	world_end();
	assert_true(percent != UINT64_MAX);
	assert_int_equal(w.real_time, 0);
	assert_int_equal(w.niced, may ? w.works : 0);
}

/* An engine that holds the second port and wants the first. */
static void *
want_both(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&w.stop, __ATOMIC_RELAXED)) {
		soft_netif_lock(&w.nif[0]);
		soft_netif_lock(&w.nif[1]);
		__atomic_fetch_add(&w.inside, 1, __ATOMIC_RELAXED);
		spend(TURN_NS);
		__atomic_fetch_sub(&w.inside, 1, __ATOMIC_RELAXED);
		soft_netif_unlock(&w.nif[1]);
		soft_netif_unlock(&w.nif[0]);
		usleep(10);
	}
	return NULL;
}

TEST(test_engines_that_want_both_ports_do_not_deadlock)
{
	uint64_t percent;

	world_start(2, 0);
	assert_int_equal(pthread_create(&w.poller, NULL, want_both, NULL), 0);
	percent = share_once();
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	pthread_join(w.poller, NULL);
	world_end();
	assert_int_equal(w.wrong, 0);
	assert_true(percent != UINT64_MAX);
}

/* Thread sanitizer reports a holder that need not see what the holder before it has written. */
TEST(test_holders_of_a_lock_see_what_earlier_ones_have_written)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + 60 * SEC;
	uint32_t held = 0, had = 0, changes = 0;

	world_start(1, 0);
	assert_int_equal(pthread_create(&w.poller, NULL, poll_ports, NULL), 0);
	while (changes < 100 && clock_ns(CLOCK_MONOTONIC) < end) {
		soft_netif_lock(&w.nif[0]);
		held++;
		w.held++;
		changes += w.had != had;
		had = w.had;
		soft_netif_unlock(&w.nif[0]);
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	pthread_join(w.poller, NULL);
	world_end();
	assert_int_equal(changes, 100);
	assert_int_equal(w.held, w.had + held);
}

int
main(void)
{
	const char *argv[] = {"gate",
			      "--no-huge",
			      "-m",
			      "64",
			      "--no-pci",
			      "--no-shconf",
			      "--no-telemetry",
			      "--log-level=lib.eal:4"};

	if (rte_eal_init(RTE_DIM(argv), (char **)(uintptr_t)argv) < 0)
		return 1;
	return bb_test_run(__FILE__, nobody_polls, NULL);
}
