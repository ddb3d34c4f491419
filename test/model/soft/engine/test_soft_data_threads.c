/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The device in its own thread or on its own lcore: the test does not poll the device. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_pause.h>

#include "../soft_rig.h"
#include "soft_counters.h"
#include "soft_ctl.h"
#include "soft_data.h"
#include "soft_sleep.h"

#define ROUNDS 300

static void
traffic(struct rig_pair *p)
{
	struct rig_cqe e;
	uint32_t i;

	assert_null(p->u[0]->progress);
	for (i = 0; i < ROUNDS; i++) {
		uint64_t old, *word = (uint64_t *)(void *)(p->mb.p + 4096);

		rig_recv(&p->b, &p->mb, 1024, 64);
		rig_write(&p->a, &p->ma, i % 512, 100, &p->mb, 0, RIG_CQE);
		rig_send(&p->a, &p->ma, i % 1000, 64, RIG_CQE);
		rig_atomic(&p->a, MLX5_OPCODE_ATOMIC_FA, &p->ma, 8192, &p->mb, 4096, 1, 0, RIG_CQE);
		if (i & 1)
			rig_ring(&p->a);
		else
			rig_ring_bf(&p->a);
		rig_expect_ok(&p->a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(3 * i));
		rig_expect_ok(&p->a, MLX5_OPCODE_SEND, (uint16_t)(3 * i + 1));
		rig_expect_ok(&p->a, MLX5_OPCODE_ATOMIC_FA, (uint16_t)(3 * i + 2));
		rig_wait(&p->cb, p->u[1], &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND);
		assert_memory_equal(p->mb.p, p->ma.p + i % 512, 100);
		assert_memory_equal(p->mb.p + 1024, p->ma.p + i % 1000, 64);
		memcpy(&old, p->ma.p + 8192, 8);
		assert_true(old == i && *word == i + 1);
	}
	/* Works again after a long idle time; timers run without polls. */
	usleep(100000);
	rig_send(&p->a, &p->ma, 0, 64, RIG_CQE);
	rig_ring(&p->a);
	usleep(20000);
	assert_false(rig_cqe(&p->ca, &e));
	rig_recv(&p->b, &p->mb, 1024, 64);
	rig_expect_ok(&p->a, MLX5_OPCODE_SEND, (uint16_t)(3 * ROUNDS));
	/* A doorbell through another QP's page is ignored here, too. */
	rig_nop(&p->a, RIG_CQE);
	rig_record(&p->a);
	rig_store(&p->a, &p->ub);
	usleep(20000);
	assert_false(rig_cqe(&p->ca, &e));
	rig_store(&p->a, &p->ua);
	rig_expect_ok(&p->a, MLX5_OPCODE_NOP, (uint16_t)(3 * ROUNDS + 1));
}

TEST(test_device_thread_runs_the_traffic)
{
	static struct rig_pair p;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		rig_pair_open(&p, "progress=thread", true, NULL);
		traffic(&p);
		rig_pair_close(&p);
	}
}

/* Waits for the completion of a WQE without running the device. */
static void
completes_alone(struct rig_pair *p)
{
	const uint64_t end = rte_rdtsc() + 10 * rte_get_tsc_hz();
	struct rig_cqe c;

	while (!rig_cqe(&p->ca, &c))
		assert_true(rte_rdtsc() < end);
	assert_int_equal(c.opcode, MLX5_CQE_REQ);
}

static void
posted(struct rig_pair *p)
{
	rig_nop(&p->a, RIG_CQE);
	rig_ring(&p->a);
	soft_posted(p->d.ctx);
}

/*
 * Posts wait for the next poll, which runs the device once. A program that does not poll is served
 * by the device's thread, and after some late posts by its posts themselves.
 */
TEST(test_posts_run_with_the_next_poll_unless_none_comes)
{
	static struct rig_pair p;
	const uint64_t end = rte_rdtsc() + 60 * rte_get_tsc_hz();
	struct soft_engine *e;
	uint32_t turns, rounds = 0;

	rig_pair_open(&p, "progress=thread,nap=1000", true, NULL);
	e = soft_ctx(p.d.ctx)->dev->engine;
	assert_false(soft_assist_posted(p.d.ctx));
	posted(&p);
	turns = e->assisted;
	assert_true(soft_assist_posted(p.d.ctx));
	assert_int_equal(e->assisted, turns + 1);
	assert_false(soft_assist_posted(p.d.ctx));
	completes_alone(&p);
	/* A caller that waits for the answer of a peer does not make the thread nap. */
	(void)soft_run(p.d.ctx);
	assert_int_equal(e->assisted, turns + 1);
	/* While the program polls now and then, the device's thread naps. */
	while (__atomic_load_n(&e->late_posts, __ATOMIC_RELAXED) != SOFT_LATE) {
		assert_true(rte_rdtsc() < end);
		assert_int_equal(e->assisted, turns + 1 + rounds);
		soft_assist(p.d.ctx);
		rounds++;
		usleep(200);
		posted(&p);
		completes_alone(&p);
	}
	assert_true(rounds >= SOFT_LATE);
	turns = e->assisted;
	posted(&p);
	assert_int_equal(e->assisted, turns + 1);
	assert_false(soft_assist_posted(p.d.ctx));
	completes_alone(&p);
	rig_pair_close(&p);
}

static bool called, returned;

static void *
catch_up(void *ctx)
{
	__atomic_store_n(&called, true, __ATOMIC_RELEASE);
	soft_catch_up(ctx);
	__atomic_store_n(&returned, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Another poll has cleared e->posted, but not run the device, whose lock this thread has. */
TEST(test_catch_up_waits_for_a_busy_device_and_executes_posts)
{
	static struct rig_pair p;
	struct soft_engine *e;
	struct rig_cqe c;
	pthread_t thread;

	rig_pair_open(&p, "progress=thread", true, NULL);
	e = soft_ctx(p.d.ctx)->dev->engine;
	soft_engine_lock(e);
	posted(&p);
	assert_true(soft_assist_posted(p.d.ctx));
	OK(pthread_create(&thread, NULL, catch_up, p.d.ctx));
	while (!__atomic_load_n(&called, __ATOMIC_ACQUIRE))
		usleep(100);
	usleep(20000);
	assert_false(rig_cqe(&p.ca, &c));
	assert_false(__atomic_load_n(&returned, __ATOMIC_ACQUIRE));
	soft_engine_unlock(e);
	OK(pthread_join(thread, NULL));
	assert_true(rig_cqe(&p.ca, &c));
	assert_int_equal(c.opcode, MLX5_CQE_REQ);
	rig_pair_close(&p);
}

/* The counts of served requests are added after 16 polls without work, and catch_up() does not wait
 * for that. */
TEST(test_catch_up_ends_with_the_last_request)
{
	static struct soft_counters counters;
	static struct rig_pair p;
	struct soft_engine *e;
	struct rig_cqe c;

	rig_pair_open(&p, "progress=inline", false, NULL);
	e = p.ua.arg;
	rig_write(&p.a, &p.ma, 0, 64, &p.mb, 0, RIG_CQE);
	rig_ring(&p.a);
	soft_engine_catch_up(e, 32);
	assert_true(rig_cqe(&p.ca, &c));
	assert_int_equal(c.opcode, MLX5_CQE_REQ);
	/* Counts that are due make all polls run a turn. */
	e->served = &counters;
	e->idle = 0;
	e->pending = 1;
	soft_engine_catch_up(e, 32);
	assert_true(e->idle < SOFT_IDLE_POLLS / 2);
	assert_ptr_equal(e->served, &counters);
	rig_polls(&p.ua, SOFT_IDLE_POLLS + 1);
	assert_null(e->served);
	rig_pair_close(&p);
}

TEST(test_only_the_first_caller_wakes_a_sleeping_thread)
{
	struct soft_engine *e =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*e), RTE_CACHE_LINE_SIZE));
	uint64_t n;

	assert_non_null(e);
	memset(e, 0, sizeof(*e));
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(e->wake_fd >= 0);
	soft_engine_rouse(e);
	assert_true(read(e->wake_fd, &n, sizeof(n)) < 0);
	e->asleep = true;
	soft_engine_rouse(e);
	soft_engine_rouse(e);
	assert_int_equal(read(e->wake_fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(n, 1);
	close(e->wake_fd);
	free(e);
}

TEST(test_lcore_runs_the_traffic_and_returns)
{
	static struct rig_pair p;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		rig_pair_open(&p, "progress=lcore,lcore=1", true, NULL);
		traffic(&p);
		rig_pair_close(&p);
		assert_true(rte_eal_get_lcore_state(1) == WAIT);
	}
}

static int
busy(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED))
		rte_pause();
	return 0;
}

/* An lcore that does not exist, the main lcore, and a busy lcore. */
TEST(test_unusable_lcore_is_refused)
{
	struct mlx5_ctx *ctx;
	bool stop = false;

	assert_int_equal(soft_cmd_if.open("soft0", "progress=lcore,lcore=7", &ctx), -EINVAL);
	assert_int_equal(soft_cmd_if.open("soft0", "progress=lcore,lcore=9999", &ctx), -EINVAL);
	assert_int_equal(soft_cmd_if.open("soft0", "progress=lcore,lcore=0", &ctx), -EINVAL);
	assert_int_equal(rte_eal_remote_launch(busy, &stop, 1), 0);
	assert_int_equal(soft_cmd_if.open("soft0", "progress=lcore,lcore=1", &ctx), -EBUSY);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	rte_eal_wait_lcore(1);
	OK(soft_cmd_if.open("soft0", "progress=lcore,lcore=1", &ctx));
	OK(soft_cmd_if.close(ctx));
}

int
main(void)
{
	/* Two lcores, also on a machine with one CPU. */
	const char *lcores =
		sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "--lcores=0,1" : "--lcores=0@0,1@0";
	const char *args[] = {"test",
			      lcores,
			      "--no-huge",
			      "-m",
			      "256",
			      "--no-pci",
			      "--no-telemetry",
			      "--no-shconf",
			      "--log-level=lib.eal:3"};
	char text[RTE_DIM(args)][32], *argv[RTE_DIM(args)];
	unsigned int i;

	for (i = 0; i < RTE_DIM(args); i++) {
		snprintf(text[i], sizeof(text[i]), "%s", args[i]);
		argv[i] = text[i];
	}
	if (rte_eal_init(RTE_DIM(args), argv) < 0) {
		printf("EAL does not start\n");
		return 77;
	}
	return bb_test_run(__FILE__, NULL, NULL);
}
