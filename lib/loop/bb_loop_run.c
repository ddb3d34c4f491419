/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Poll loop: start, run and stop a loop on its lcore, as a service, or in the calling thread. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "bb_driver.h"
#include "bb_loop.h"
#include "bb_loop_priv.h"

static int
loop_body(void *arg)
{
	struct bb_loop *loop = arg;

	RTE_PER_LCORE(bb_loop_current) = loop;
	loop->tsc = rte_rdtsc();
	while (likely(__atomic_load_n(&loop->state, __ATOMIC_RELAXED) == LOOP_RUNNING))
		bb_loop_iterate(loop);
	RTE_PER_LCORE(bb_loop_current) = NULL;
	bb_loop_publish(loop);
	/*
	 * This is the last access to the loop, because a waiting thread may free it after this
	 * store.
	 */
	__atomic_store_n(&loop->state, LOOP_IDLE, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Marks an idle loop as running. Returns 0, or -EBUSY if the loop is running. The caller holds the
 * mutex loop->control. An attach also holds this mutex, so the loop cannot start during an attach.
 */
static int
loop_claim(struct bb_loop *loop, enum loop_mode mode)
{
	if (bb_loop_running(loop)) {
		BB_LOG(ERR, "loop of lcore %u is not started: it runs already", loop->lcore);
		return -EBUSY;
	}
	loop->mode = mode;
	__atomic_store_n(&loop->state, LOOP_RUNNING, __ATOMIC_RELEASE);
	return 0;
}

static void
loop_release(struct bb_loop *loop)
{
	__atomic_store_n(&loop->state, LOOP_IDLE, __ATOMIC_RELEASE);
}

/* Returns 0 if the calling thread may run @loop now, otherwise a negative errno. */
static int
loop_check_caller(const struct bb_loop *loop)
{
	if (unlikely(RTE_PER_LCORE(bb_loop_current) != NULL)) {
		BB_LOG(ERR, "loop of lcore %u: cannot be run from a callback of a loop",
		       loop->lcore);
		return -EBUSY;
	}
	if (unlikely(rte_lcore_id() != loop->lcore)) {
		BB_LOG(ERR,
		       "loop of lcore %u: cannot be run by lcore %u: "
		       "run it on the lcore that owns it",
		       loop->lcore, rte_lcore_id());
		return -EINVAL;
	}
	return 0;
}

int
bb_loop_run(struct bb_loop *loop)
{
	int rc = loop_check_caller(loop);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&loop->control);
	rc = loop_claim(loop, LOOP_MODE_CALLER);
	pthread_mutex_unlock(&loop->control);
	return rc != 0 ? rc : loop_body(loop);
}

int
bb_loop_run_once(struct bb_loop *loop)
{
	unsigned int work;
	int rc = loop_check_caller(loop);

	if (unlikely(rc != 0))
		return rc;
	if (unlikely(bb_loop_running(loop))) {
		BB_LOG(ERR, "loop of lcore %u: bb_loop_run_once() rejected: the loop runs already",
		       loop->lcore);
		return -EBUSY;
	}
	RTE_PER_LCORE(bb_loop_current) = loop;
	if (loop->accounting)
		loop->tsc = rte_rdtsc();
	work = bb_loop_iterate(loop);
	bb_loop_publish(loop);
	RTE_PER_LCORE(bb_loop_current) = NULL;
	return work > INT_MAX ? INT_MAX : (int)work;
}

int
bb_loop_start(struct bb_loop *loop)
{
	int rc;

	if (rte_eal_lcore_role(loop->lcore) != ROLE_RTE || loop->lcore == rte_get_main_lcore()) {
		BB_LOG(ERR,
		       "loop of lcore %u is not started: its lcore is not a worker lcore: call "
		       "bb_loop_run() on that lcore, or bb_loop_service_start() for a service "
		       "lcore",
		       loop->lcore);
		return -EINVAL;
	}
	pthread_mutex_lock(&loop->control);
	rc = loop_claim(loop, LOOP_MODE_LCORE);
	if (rc == 0) {
		rc = rte_eal_remote_launch(loop_body, loop, loop->lcore);
		if (rc != 0) {
			BB_LOG(ERR,
			       "loop of lcore %u is not started: the lcore is busy (error %d): "
			       "wait for its work with rte_eal_wait_lcore()",
			       loop->lcore, rc);
			loop->mode = LOOP_MODE_CALLER; /* bb_loop_wait() has no work to wait for */
			loop_release(loop);
		}
	}
	pthread_mutex_unlock(&loop->control);
	return rc;
}

static int32_t
loop_service(void *arg)
{
	struct bb_loop *loop = arg;

	/*
	 * The application may have mapped the service to more lcores. The loop runs only on the
	 * lcore that owns it.
	 */
	if (unlikely(rte_lcore_id() != loop->lcore))
		return 0;
	if (likely(__atomic_load_n(&loop->state, __ATOMIC_ACQUIRE) == LOOP_RUNNING)) {
		RTE_PER_LCORE(bb_loop_current) = loop;
		if (loop->accounting)
			loop->tsc = rte_rdtsc();
		bb_loop_iterate(loop);
		RTE_PER_LCORE(bb_loop_current) = NULL;
	}
	__atomic_store_n(&loop->service_left, 1, __ATOMIC_RELEASE);
	return 0;
}

static int
loop_service_add(struct bb_loop *loop)
{
	/*
	 * The service is declared MT safe, so that EAL takes no lock around a call. It is safe
	 * because loop_service() checks the lcore.
	 */
	struct rte_service_spec spec = {
		.callback = loop_service,
		.callback_userdata = loop,
		.capabilities = RTE_SERVICE_CAP_MT_SAFE,
		.socket_id = (int)rte_lcore_to_socket_id(loop->lcore),
	};
	int rc;

	snprintf(spec.name, sizeof(spec.name), "bb_loop_%u_%p", loop->lcore, (void *)loop);
	rc = rte_service_component_register(&spec, &loop->service);
	if (rc != 0) {
		BB_LOG(ERR,
		       "loop of lcore %u is not started: EAL accepts no more services (error %d)",
		       loop->lcore, rc);
		return -ENOMEM;
	}
	rc = rte_service_map_lcore_set(loop->service, loop->lcore, 1);
	if (rc == 0)
		rc = rte_service_component_runstate_set(loop->service, 1);
	if (rc == 0)
		rc = rte_service_runstate_set(loop->service, 1);
	if (rc != 0) {
		BB_LOG(ERR,
		       "loop of lcore %u is not started: EAL cannot start its service (error %d)",
		       loop->lcore, rc);
		rte_service_component_unregister(loop->service);
	}
	return rc;
}

int
bb_loop_service_start(struct bb_loop *loop)
{
	int rc;

	if (rte_eal_lcore_role(loop->lcore) != ROLE_SERVICE) {
		BB_LOG(ERR,
		       "loop of lcore %u is not started: its lcore is not a service lcore: make it "
		       "one with rte_service_lcore_add() or EAL's -S",
		       loop->lcore);
		return -EINVAL;
	}
	pthread_mutex_lock(&loop->control);
	rc = loop_claim(loop, LOOP_MODE_SERVICE);
	if (rc == 0) {
		rc = loop_service_add(loop);
		if (rc != 0)
			loop_release(loop);
	}
	pthread_mutex_unlock(&loop->control);
	return rc;
}

int
bb_loop_stop(struct bb_loop *loop)
{
	uint32_t state = LOOP_RUNNING;

	/*
	 * This function takes no lock, because a callback may stop its loop while another thread
	 * holds loop->control and waits for the loop.
	 */
	if (__atomic_compare_exchange_n(&loop->state, &state, LOOP_STOPPING, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
	    state == LOOP_STOPPING)
		return 0;
	return -EALREADY;
}

static void
loop_service_end(struct bb_loop *loop)
{
	rte_service_runstate_set(loop->service, 0);
	while (rte_service_may_be_active(loop->service) == 1)
		rte_pause();
	/*
	 * This load orders the code below after the last iteration, which EAL alone does not
	 * guarantee.
	 */
	(void)__atomic_load_n(&loop->service_left, __ATOMIC_ACQUIRE);
	bb_loop_publish(loop);
	rte_service_component_runstate_set(loop->service, 0);
	rte_service_map_lcore_set(loop->service, loop->lcore, 0);
	rte_service_component_unregister(loop->service);
	loop_release(loop);
}

int
bb_loop_wait(struct bb_loop *loop)
{
	enum loop_mode mode;

	if (RTE_PER_LCORE(bb_loop_current) != NULL) {
		BB_LOG(ERR, "loop of lcore %u: a callback cannot wait for a loop", loop->lcore);
		return -EBUSY;
	}
	while (__atomic_load_n(&loop->state, __ATOMIC_ACQUIRE) == LOOP_RUNNING)
		rte_delay_us_sleep(100);
	pthread_mutex_lock(&loop->control);
	mode = loop->mode;
	/* The lcore may have other work when this function is called again. */
	if (mode == LOOP_MODE_LCORE)
		loop->mode = LOOP_MODE_CALLER;
	pthread_mutex_unlock(&loop->control);
	if (mode == LOOP_MODE_LCORE)
		rte_eal_wait_lcore(loop->lcore);
	else if (mode == LOOP_MODE_SERVICE && bb_loop_running(loop))
		loop_service_end(loop);
	return 0;
}
