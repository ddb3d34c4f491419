/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The CM engine under loss, duplication and reordering, in virtual time. sim_run() fails if an
 * event comes twice, comes after the last one or never comes, or if an engine holds a slot at the
 * end.
 */
#include "bb_test.h"
#include "ibcm_sim.h"

#define MS 1000000ull

static const struct sim_attr quiet = {
	.conns = 1000, .at_a_time = 64, .max_delay = 100, .cm_retries = 15};

/* Returns the interval after which a message is repeated: code 15 of ibcm_sim.c. */
#define INTERVAL (4096ull << 15)
/* A wait that MRA has extended. */
#define MRA (4096ull << 24)

static void
print(const struct sim_attr *a, const struct sim_result *r)
{
	print_message("seed %llu: %u established, %u rejected, %u failed; longest %llu ms; "
		      "%llu lost, %llu duplicated, %llu repeats, %llu again, %llu MRA, %u new\n",
		      (unsigned long long)a->seed, r->established, r->rejected, r->failed,
		      (unsigned long long)(r->longest / MS), (unsigned long long)r->lost,
		      (unsigned long long)r->duplicated, (unsigned long long)r->repeats,
		      (unsigned long long)r->answered_again, (unsigned long long)r->mras, r->again);
}

TEST(test_connections_without_faults_need_no_repeat)
{
	struct sim_attr a = quiet;
	struct sim_result r;

	a.seed = 1;
	r = sim_run(&a);
	print(&a, &r);
	assert_fields(r, established, 1000, failed, 0, repeats, 0, answered_again, 0, mras, 0);
}

TEST(test_ten_thousand_connections_come_up_with_five_percent_loss)
{
	struct sim_attr a = quiet;
	struct sim_result r;

	a.seed = 2;
	a.conns = 10000;
	a.loss = 50;
	a.dup = 50;
	a.max_delay = 40000;
	r = sim_run(&a);
	print(&a, &r);
	assert_fields(r, established, 10000, failed, 0, again, 0);
	assert_true(r.lost > 1000 && r.duplicated > 1000 && r.repeats > 500);
	/* Both REQ and REP may be repeated 15 times. */
	assert_true(r.longest <= 2 * 16 * INTERVAL);
}

TEST(test_rejections_and_slow_answers_with_five_percent_loss)
{
	struct sim_attr a = quiet;
	struct sim_result r;

	for (a.seed = 10; a.seed < 20; a.seed++) {
		a.loss = 50;
		a.dup = 50;
		a.max_delay = 40000;
		a.hesitate = 100;
		a.reject = 100;
		r = sim_run(&a);
		print(&a, &r);
		assert_int_equal(r.established + r.rejected + r.failed, 1000);
		assert_int_equal(r.failed, 0);
		assert_true(r.again < 10);
		assert_true(r.rejected > 100 && r.mras > 50);
	}
}

/* With few retries and 40 % loss, many attempts fail. Each ends on both sides, in its time. */
TEST(test_attempts_fail_within_their_bounds)
{
	struct sim_attr a = quiet;
	struct sim_result r;

	for (a.seed = 30; a.seed < 50; a.seed++) {
		a.loss = 400;
		a.dup = 200;
		a.max_delay = 130000;
		a.cm_retries = 1 + (uint32_t)a.seed % 3;
		a.hesitate = 100;
		a.reject = 50;
		r = sim_run(&a);
		print(&a, &r);
		assert_int_equal(r.established + r.rejected + r.failed, 1000);
		assert_true(r.failed > 20);
		/* REQ and REP with their repeats, each with one MRA. */
		assert_true(r.longest <= 2 * ((a.cm_retries + 1) * INTERVAL + INTERVAL + MRA));
	}
}

TEST(test_dead_network_fails_every_attempt_and_leaves_nothing)
{
	struct sim_attr a = quiet;
	struct sim_result r;

	a.seed = 60;
	a.loss = 1000;
	a.cm_retries = 3;
	r = sim_run(&a);
	print(&a, &r);
	assert_fields(r, failed, 1000, longest, 4 * INTERVAL);
}

TEST(test_same_seed_gives_the_same_run)
{
	struct sim_attr a = quiet;
	struct sim_result r, again;

	a.seed = 70;
	a.loss = 200;
	a.dup = 200;
	a.max_delay = 100000;
	r = sim_run(&a);
	again = sim_run(&a);
	assert_memory_equal(&r, &again, sizeof(r));
}

TEST_MAIN(0)
