/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The poll loop on a second lcore, launched and as a service. The first lcore writes CQEs,
 * changes what is attached, and reads the accounting.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_pause.h>
#include <rte_service.h>

#include "loop_fake.h"

static unsigned int
completions(const struct fake *f)
{
	return __atomic_load_n(&f->completions, __ATOMIC_ACQUIRE);
}

/*
 * Waits up to 30 seconds for a counter of another lcore. Returns false if it does not get there.
 */
static bool
wait_for(const unsigned int *v, unsigned int want)
{
	uint64_t end = rte_get_timer_cycles() + 30 * rte_get_timer_hz();

	while (__atomic_load_n(v, __ATOMIC_ACQUIRE) < want) {
		if (rte_get_timer_cycles() > end)
			return false;
		rte_pause();
	}
	return true;
}

static void
need_worker(void)
{
	if (!rte_lcore_is_enabled(WORKER)) {
		print_message("needs two cores\n");
		skip();
	}
}

TEST(test_loop_starts_and_stops_on_its_lcore)
{
	struct bb_loop *loop;
	struct fake *f;

	need_worker();
	loop = loop_new(WORKER);
	f = fake_new(WORKER);
	assert_int_equal(bb_loop_attach_cq(loop, &f->cq, on_cq, f), 0);
	assert_int_equal(bb_loop_run(loop), -EINVAL);
	assert_int_equal(bb_loop_run_once(loop), -EINVAL);
	for (unsigned int lap = 1; lap <= 3; lap++) {
		assert_int_equal(bb_loop_start(loop), 0);
		assert_true(bb_loop_running(loop));
		assert_int_equal(bb_loop_start(loop), -EBUSY);
		assert_int_equal(bb_loop_destroy(loop), -EBUSY);
		fake_complete(f, 100);
		assert_true(wait_for(&f->completions, lap * 100));
		assert_int_equal(bb_loop_stop(loop), 0);
		assert_int_equal(bb_loop_wait(loop), 0);
		assert_false(bb_loop_running(loop));
	}
	assert_int_equal(completions(f), 300);
	assert_false(f->misordered);
	assert_int_equal(bb_loop_destroy(loop), 0);
	fake_free(f);
}

static int
do_nothing_until(void *arg)
{
	while (!__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE))
		rte_pause();
	return 0;
}

TEST(test_start_on_a_busy_lcore_is_refused)
{
	struct bb_loop *loop;
	int end = 0;

	need_worker();
	loop = loop_new(WORKER);
	assert_int_equal(rte_eal_remote_launch(do_nothing_until, &end, WORKER), 0);
	assert_int_equal(bb_loop_start(loop), -EBUSY);
	assert_false(bb_loop_running(loop));
	/* The call does not wait for the other work of the lcore. */
	assert_int_equal(bb_loop_wait(loop), 0);
	__atomic_store_n(&end, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(WORKER);
	assert_int_equal(bb_loop_start(loop), 0);
	assert_int_equal(bb_loop_stop(loop), 0);
	assert_int_equal(bb_loop_wait(loop), 0);
	end = 0;
	assert_int_equal(rte_eal_remote_launch(do_nothing_until, &end, WORKER), 0);
	assert_int_equal(bb_loop_wait(loop), 0);
	__atomic_store_n(&end, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(WORKER);
	assert_int_equal(bb_loop_destroy(loop), 0);
}

TEST(test_running_loop_takes_changes)
{
	struct bb_loop *loop;
	struct poller *p;
	struct fake *f;
	unsigned int seen;

	need_worker();
	loop = loop_new(WORKER);
	assert_int_equal(bb_loop_start(loop), 0);
	for (unsigned int i = 0; i < 300; i++) {
		p = calloc(1, sizeof(*p));
		assert_non_null(p);
		assert_int_equal(bb_loop_attach_poller(loop, on_poll, p), 0);
		if (i % 3 == 0)
			assert_true(wait_for(&p->calls, 1));
		assert_int_equal(bb_loop_attach_poller(loop, on_poll, p), -EALREADY);
		assert_int_equal(bb_loop_detach_poller(loop, on_poll, p), 0);
		/* Plain reads, then free: the loop must no longer use the poller. */
		seen = p->calls;
		rte_delay_us_block(2);
		assert_int_equal(p->calls, seen);
		free(p);
	}
	f = fake_new(WORKER);
	for (unsigned int i = 1; i <= 50; i++) {
		assert_int_equal(bb_loop_attach_cq(loop, &f->cq, on_cq, f), 0);
		fake_complete(f, 10);
		assert_true(wait_for(&f->completions, i * 10));
		assert_int_equal(bb_loop_detach_cq(loop, &f->cq), 0);
		assert_int_equal(bb_loop_detach_cq(loop, &f->cq), -ENOENT);
	}
	assert_false(f->misordered);
	fake_free(f);
	assert_int_equal(bb_loop_stop(loop), 0);
	assert_int_equal(bb_loop_wait(loop), 0);
	assert_int_equal(bb_loop_destroy(loop), 0);
}

/*
 * Attaching while the loop is being stopped succeeds or is refused. It is never lost and never
 * hangs.
 */
TEST(test_change_during_stop_is_not_lost)
{
	struct poller p = {.at_three = NULL};
	struct bb_loop *loop;

	need_worker();
	loop = loop_new(WORKER);
	for (unsigned int i = 0; i < 300; i++) {
		assert_int_equal(bb_loop_start(loop), 0);
		if (i % 2 == 0)
			rte_delay_us_block(i % 20);
		assert_int_equal(bb_loop_stop(loop), 0);
		assert_int_equal(bb_loop_attach_poller(loop, on_poll, &p), 0);
		assert_int_equal(bb_loop_detach_poller(loop, on_poll, &p), 0);
		assert_int_equal(bb_loop_wait(loop), 0);
	}
	assert_int_equal(bb_loop_destroy(loop), 0);
}

TEST(test_stats_are_read_whole)
{
	struct poller p = {.at_three = NULL};
	struct bb_loop_stats st, last = {.iterations = 0};
	struct bb_loop *loop;
	unsigned int i, moved = 0;
	uint64_t end;

	need_worker();
	loop = loop_new(WORKER);
	assert_int_equal(bb_loop_attach_poller(loop, on_poll, &p), 0);
	assert_int_equal(bb_loop_start(loop), 0);
	assert_true(wait_for(&p.calls, 1));
	end = rte_get_timer_cycles() + 60 * rte_get_timer_hz();
	/* On a busy machine the loop may not run during the first 20000 reads. */
	for (i = 0; i < 20000 || (moved <= 10 && rte_get_timer_cycles() < end); i++) {
		bb_loop_stats(loop, &st);
		/* One unit of work per iteration: a torn read of the statistics would show. */
		assert_fields(st, work, st.iterations, idle, 0);
		assert_true(st.iterations >= last.iterations);
		assert_true(st.busy_cycles >= last.busy_cycles);
		moved += st.iterations != last.iterations;
		last = st;
	}
	assert_true(moved > 10);
	assert_int_equal(bb_loop_stop(loop), 0);
	assert_int_equal(bb_loop_wait(loop), 0);
	assert_int_equal(bb_loop_destroy(loop), 0);
}

TEST(test_loop_runs_as_a_service)
{
	struct poller p = {.at_three = NULL};
	struct bb_loop *loop;
	struct fake *f;

	need_worker();
	loop = loop_new(WORKER);
	f = fake_new(WORKER);
	assert_int_equal(rte_service_lcore_add(WORKER), 0);
	assert_int_equal(bb_loop_start(loop), -EINVAL);
	assert_int_equal(bb_loop_attach_cq(loop, &f->cq, on_cq, f), 0);

	/* The lcore does not run yet, so no thread can execute a change. */
	assert_int_equal(bb_loop_service_start(loop), 0);
	assert_int_equal(bb_loop_service_start(loop), -EBUSY);
	assert_int_equal(bb_loop_attach_poller(loop, on_poll, &p), -ETIMEDOUT);
	assert_int_equal(rte_service_lcore_start(WORKER), 0);
	for (unsigned int lap = 1; lap <= 3; lap++) {
		fake_complete(f, 100);
		assert_true(wait_for(&f->completions, lap * 100));
		p.calls = 0;
		assert_int_equal(bb_loop_attach_poller(loop, on_poll, &p), 0);
		assert_true(wait_for(&p.calls, 5));
		assert_int_equal(bb_loop_detach_poller(loop, on_poll, &p), 0);
		assert_int_equal(bb_loop_stop(loop), 0);
		assert_true(bb_loop_running(loop));
		assert_int_equal(bb_loop_attach_poller(loop, on_poll, &p), -EBUSY);
		assert_int_equal(bb_loop_destroy(loop), -EBUSY);
		assert_int_equal(bb_loop_wait(loop), 0);
		assert_false(bb_loop_running(loop));
		assert_int_equal(bb_loop_service_start(loop), 0);
	}
	assert_false(f->misordered);
	assert_int_equal(bb_loop_stop(loop), 0);
	assert_int_equal(bb_loop_wait(loop), 0);
	assert_int_equal(rte_service_get_count(), 0);
	assert_int_equal(rte_service_lcore_stop(WORKER), 0);
	rte_eal_wait_lcore(WORKER);
	assert_int_equal(rte_service_lcore_del(WORKER), 0);
	assert_int_equal(bb_loop_destroy(loop), 0);
	fake_free(f);
}

/* Calls of sched_yield() by this thread until its process stops once and resumes; 0: never. */
static __thread unsigned int yields_left;

/* Replaces libc's function, which a thread calls while it waits for the loop. */
int
sched_yield(void)
{
	const unsigned int left = yields_left;

	if (left != 0)
		yields_left--;
	if (left == 2)
		usleep(1100000); /* stopped */
	if (left == 1)
		assert_int_equal(rte_service_lcore_start(WORKER), 0);
	return (int)syscall(SYS_sched_yield);
}

/* While the process is stopped, the loop cannot respond. */
TEST(test_attach_waits_for_the_loop_after_the_process_was_stopped)
{
	struct poller p = {.at_three = NULL};
	struct bb_loop *loop;

	need_worker();
	loop = loop_new(WORKER);
	assert_int_equal(rte_service_lcore_add(WORKER), 0);
	assert_int_equal(bb_loop_service_start(loop), 0);
	yields_left = 3;
	assert_int_equal(bb_loop_attach_poller(loop, on_poll, &p), 0);
	assert_int_equal(yields_left, 0);
	assert_true(wait_for(&p.calls, 1));
	assert_int_equal(bb_loop_stop(loop), 0);
	assert_int_equal(bb_loop_wait(loop), 0);
	assert_int_equal(rte_service_lcore_stop(WORKER), 0);
	rte_eal_wait_lcore(WORKER);
	assert_int_equal(rte_service_lcore_del(WORKER), 0);
	assert_int_equal(bb_loop_destroy(loop), 0);
}

TEST_MAIN_WITH(setup, teardown, 0)
