/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * How bench detects that other work used its CPUs: the texts of /proc, the rule, and a real
 * thread.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "bb_test.h"
#include "shared.h"

#define MS 1000000u

static const char stat_text[] = "cpu  1 2 3 4 5 6 7 99 9 10\n"
				"cpu1 1 2 3 4 5 6 7 25 9 10\n"
				"cpu10 1 2 3 4 5 6 7 40 9 10\n"
				"cpu2 1 2 3\n"
				"intr 88 cpu3 1 1 1 1 1 1 1 1\n";

TEST(test_texts_of_proc_are_parsed_or_refused)
{
	struct shared_time t = {5, 7};

	assert_true(shared_add_thread("106399 2077460 2\n", &t));
	assert_int_equal(t.waited, 2077465);
	assert_true(shared_add_cpu(stat_text, 10, 100, &t));
	assert_int_equal(t.stolen, 7 + 400 * (uint64_t)MS);
	assert_true(shared_add_cpu(stat_text, 1, 1000, &t));
	assert_int_equal(t.stolen, 7 + 425 * (uint64_t)MS);
	/* No such CPU; cut off; the name within a word; empty text; no unit. */
	assert_false(shared_add_cpu(stat_text, 0, 100, &t));
	assert_false(shared_add_cpu(stat_text, 2, 100, &t));
	assert_false(shared_add_cpu(stat_text, 3, 100, &t));
	assert_false(shared_add_cpu("", 1, 100, &t));
	assert_false(shared_add_cpu(stat_text, 1, 0, &t));
	assert_false(shared_add_thread("106399\n", &t));
	assert_false(shared_add_thread("", &t));
	assert_fields(t, waited, 2077465, stolen, 7 + 425 * (uint64_t)MS);
}

TEST(test_waiting_counts_from_a_twentieth_of_the_time)
{
	const struct shared_time zero = {0, 0};
	struct shared_time t;

	/* The threshold: a twentieth of a second. */
	t = (struct shared_time){.waited = 49 * MS};
	assert_float_equal(shared_part(&zero, &t, 1000 * MS), 0, 0);
	t.waited = 50 * MS;
	assert_float_equal(shared_part(&zero, &t, 1000 * MS), 0.05, 1e-9);
	/* Waiting and stolen time add up. */
	t = (struct shared_time){.waited = 30 * MS, .stolen = 30 * MS};
	assert_float_equal(shared_part(&zero, &t, 1000 * MS), 0.06, 1e-9);
	/* Less than 10 ms of waiting is not counted. */
	t = (struct shared_time){.waited = 10 * MS - 1};
	assert_float_equal(shared_part(&zero, &t, 20 * MS), 0, 0);
	t.waited++;
	assert_float_equal(shared_part(&zero, &t, 20 * MS), 0.5, 1e-9);
	/*
	 * A thread that ended took its waiting time with it, so the difference may be negative.
	 */
	assert_float_equal(shared_part(&t, &zero, 20 * MS), 0, 0);
}

static uint64_t
now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

static void *
spin(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_ACQUIRE))
		;
	return NULL;
}

TEST(test_two_threads_on_one_cpu_are_detected)
{
	const unsigned int cpu = (unsigned int)sched_getcpu();
	struct shared_time before, after;
	bool stop = false;
	cpu_set_t old, one;
	pthread_t thread;
	double part = 0;
	uint64_t t;

	assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof(old), &old), 0);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof(one), &one), 0);
	shared_now(0, &cpu, 1, &before);
	if (before.waited == 0) /* this kernel does not count waiting time; otherwise a thread
				 * has always waited */
		skip();
	assert_int_equal(pthread_create(&thread, NULL, spin, &stop), 0);
	/* One of the two threads waits nearly all the time, unless the process is stopped. */
	for (unsigned int i = 0; i < 20 && part <= 0.5; i++) {
		shared_now(0, &cpu, 1, &before);
		t = now_ns(CLOCK_MONOTONIC);
		while (now_ns(CLOCK_MONOTONIC) - t < 300 * MS)
			;
		shared_now(0, &cpu, 1, &after);
		part = shared_part(&before, &after, now_ns(CLOCK_MONOTONIC) - t);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	pthread_setaffinity_np(pthread_self(), sizeof(old), &old);
	assert_true(part > 0.5);
}

TEST_MAIN(0)
