/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Threads and lcores of engines that run by themselves: progress=thread, progress=lcore. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_thread.h>
#include <rte_version.h>

#include "soft_ctl.h"
#include "soft_data.h"
#include "soft_sleep.h"

/*
 * After SOFT_YIELD_NS without work the device's own thread yields after each poll. This is a time,
 * not a number of polls, because a poll takes long in a virtual machine. After SOFT_IDLE_SLEEP
 * polls without work the thread naps after each poll. The first nap takes first_nap(). After every
 * SOFT_NAPS naps in a row the length of a nap doubles, up to the option nap.
 */
#define SOFT_YIELD_NS 100000
/*
 * A thread that yields while other threads need its CPU gets the CPU back after several ms, because
 * it uses its share of the CPU. A thread that naps gets it at the end of the nap. So after a yield
 * of SOFT_CROWD_NS the thread naps in place of the next SOFT_CROWD_NAPS yields.
 */
#define SOFT_CROWD_NS   500000
#define SOFT_CROWD_NAPS 256
#define SOFT_IDLE_SLEEP 20000
#define SOFT_NAPS       64
/* Time without work after which the thread sleeps until there is work, ns: soft_engine_sleep(). */
#define SOFT_SLEEP_NS 1000000
#define SOFT_RETRY_NS 10000000 /* time until the next attempt to sleep after a failed one, ns */
/*
 * To fall asleep and to wake up takes time, longest in a virtual machine. So the thread is without
 * work for at least SOFT_SLEEP_COSTS times that time before it sleeps, and naps meanwhile.
 */
#define SOFT_SLEEP_COSTS 4
#define SOFT_CATCH_UP    32 /* limit of the turns of soft_catch_up() */

static int
soft_engine_lcore(void *arg)
{
	struct soft_engine *e = arg;

	/*
	 * Runs 16 turns per lock, because taking the lock costs as much as a turn. So a control
	 * command waits for at most 16 turns.
	 */
	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED))
		soft_engine_turns(e, 16);
	__atomic_store_n(&e->ended, true, __ATOMIC_RELEASE);
	return 0;
}

#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
#define THREAD_RET uint32_t
#else
#define THREAD_RET void *
#endif

/*
 * e->posted is 1 from soft_posted() until the next turn of soft_assist(). e->late_posts counts the
 * naps after which e->posted was still 1, up to SOFT_LATE. Called after a nap during which the
 * program did not run the device. If a doorbell still waits then, the program that rang it does not
 * poll.
 */
static void
soft_count_late(struct soft_engine *e)
{
	const uint32_t late = __atomic_load_n(&e->late_posts, __ATOMIC_RELAXED);

	if (late < SOFT_LATE && __atomic_exchange_n(&e->posted, 0, __ATOMIC_RELAXED) != 0)
		__atomic_store_n(&e->late_posts, late + 1, __ATOMIC_RELAXED);
}

/* Returns the length of the first nap, us. Where waking up takes long, naps are long. */
static uint32_t
first_nap(const struct soft_engine *e)
{
	const uint64_t us = e->sleep_cost / RTE_MAX(soft_time_cycles(8000), UINT64_C(1));

	return RTE_MAX(SOFT_NAP_US, (uint32_t)RTE_MIN(us, e->dev->opts.nap));
}

/* The TLS model makes access to these variables as fast as to a register. */
#define FAST_TLS __thread volatile __attribute__((tls_model("initial-exec")))

static FAST_TLS bool running; /* true while this thread is in soft_run() */
/* true while this thread is in soft_catch_up(), and in the device's own thread */
static FAST_TLS bool serving;

static THREAD_RET
soft_engine_thread(void *arg)
{
	struct soft_engine *e = arg;
	const uint32_t longest = e->dev->opts.nap;
	uint32_t idle = 0, naps = 0, nap = SOFT_NAP_US, seen = 0, crowded = 0;
	uint64_t yield_at = 0, nap_at = 0, sleep_at = 0, now;
	bool napped = false;

	serving = true;
	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED)) {
		uint64_t before = __atomic_load_n(&e->tried, __ATOMIC_RELAXED);
		uint32_t assisted = __atomic_load_n(&e->assisted, __ATOMIC_RELAXED);

		/*
		 * The program runs the device itself, so this thread sleeps at once and leaves the
		 * CPU to the program.
		 */
		if (assisted != seen) {
			seen = assisted;
			napped = true;
			usleep(longest);
			continue;
		}
		if (napped)
			soft_count_late(e);
		napped = false;
		(void)soft_engine_try(e);
		if (__atomic_load_n(&e->tried, __ATOMIC_RELAXED) != before || idle == 0) {
			idle = 1;
			naps = 0;
			nap = first_nap(e);
			now = rte_rdtsc();
			yield_at = now + soft_time_cycles(SOFT_YIELD_NS);
			sleep_at = now + RTE_MAX(soft_time_cycles(SOFT_SLEEP_NS),
						 SOFT_SLEEP_COSTS * e->sleep_cost);
			nap_at = e->sleep_cost == 0 ? UINT64_MAX
						    : now + soft_time_cycles(SOFT_SLEEP_NS);
			continue;
		}
		idle++;
		now = rte_rdtsc();
		if (now < yield_at)
			continue;
		if (now >= sleep_at) {
			/*
			 * If soft_engine_sleep() returns false, the thread naps and tries again
			 * later.
			 */
			sleep_at = now + soft_time_cycles(SOFT_RETRY_NS);
			if (soft_engine_sleep(e))
				idle = 0;
		} else if (idle > SOFT_IDLE_SLEEP || now >= nap_at || crowded != 0) {
			usleep(nap);
			crowded -= crowded != 0;
			if (++naps % SOFT_NAPS == 0)
				nap = RTE_MIN(2 * nap, longest);
		} else {
			sched_yield();
			if (rte_rdtsc() - now > soft_time_cycles(SOFT_CROWD_NS))
				crowded = SOFT_CROWD_NAPS;
		}
	}
	return 0;
}

static inline struct soft_engine *
engine_of(const struct mlx5_ctx *ctx)
{
	return ((const struct soft_ctx *)(const void *)ctx)->dev->engine;
}

/*
 * Call it after turns of a program's thread. The program may block now, so wake the device's
 * thread, which continues the work that these turns have left.
 */
static void
leave_rest(struct soft_engine *e)
{
	if (unlikely(__atomic_load_n(&e->asleep, __ATOMIC_RELAXED)) &&
	    (__atomic_load_n(&e->pending, __ATOMIC_RELAXED) != 0 ||
	     __atomic_load_n(&e->next_deadline, __ATOMIC_RELAXED) != SOFT_NO_DEADLINE))
		soft_engine_rouse(e);
}

bool
soft_run(struct mlx5_ctx *ctx)
{
	struct soft_engine *e = engine_of(ctx);
	const bool outer = running;
	bool ran;

	running = true;
	ran = soft_engine_try(e);
	running = outer;
	leave_rest(e);
	return ran;
}

bool
soft_interrupted(void)
{
	return running;
}

bool
soft_serving(void)
{
	return running || serving;
}

bool
soft_assist(struct mlx5_ctx *ctx)
{
	struct soft_engine *e = engine_of(ctx);

	__atomic_store_n(&e->posted, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&e->assisted, __atomic_load_n(&e->assisted, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELAXED);
	return soft_run(ctx);
}

void
soft_posted(struct mlx5_ctx *ctx)
{
	struct soft_engine *e = engine_of(ctx);

	if (unlikely(__atomic_load_n(&e->late_posts, __ATOMIC_RELAXED) == SOFT_LATE))
		(void)soft_assist(ctx);
	else
		__atomic_store_n(&e->posted, 1, __ATOMIC_RELAXED);
}

bool
soft_assist_posted(struct mlx5_ctx *ctx)
{
	if (__atomic_load_n(&engine_of(ctx)->posted, __ATOMIC_RELAXED) == 0)
		return false;
	(void)soft_assist(ctx);
	return true;
}

void
soft_expect_cancel(struct mlx5_ctx *ctx)
{
	struct soft_engine *e = engine_of(ctx);

	soft_engine_lock(e);
	e->cancels = true;
	soft_engine_unlock(e);
}

void
soft_catch_up(struct mlx5_ctx *ctx)
{
	struct soft_engine *e = engine_of(ctx);

	__atomic_store_n(&e->posted, 0, __ATOMIC_RELAXED);
	serving = true;
	soft_engine_catch_up(e, SOFT_CATCH_UP);
	serving = false;
	leave_rest(e);
}

static void *
soft_engine_plain(void *arg)
{
	(void)soft_engine_thread(arg);
	return NULL;
}

/* Starts a thread, on the CPUs that are not used by an lcore; without EAL, on any CPU. */
static int
soft_control_thread(struct soft_engine *e)
{
	if (rte_lcore_count() == 0)
		return -pthread_create(&e->thread, NULL, soft_engine_plain, e);
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
	rte_thread_t thread;
	int ret = rte_thread_create_control(&thread, "bb-soft", soft_engine_thread, e);

	if (ret == 0)
		e->thread = (pthread_t)thread.opaque_id;
	return ret;
#else
	return rte_ctrl_thread_create(&e->thread, "bb-soft", NULL, soft_engine_thread, e);
#endif
}

/*
 * Starts a thread with signals blocked, because a handler of the application might need a lock that
 * the thread holds. Signals of memory faults stay unblocked. So if the application has a handler
 * for faults in its own memory, the handler also runs for the device's accesses to that memory.
 */
static int
soft_engine_thread_start(struct soft_engine *e)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	sigset_t mask, before;
	unsigned int i;
	int ret;

	sigfillset(&mask);
	for (i = 0; i < RTE_DIM(faults); i++)
		sigdelset(&mask, faults[i]);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	ret = soft_control_thread(e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

static void
close_wake_fd(struct soft_engine *e)
{
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	e->wake_fd = -1;
}

int
soft_engine_start(struct soft_engine *e)
{
	const struct soft_opts *o = &e->dev->opts;
	int ret;

	if (o->progress == SOFT_PROGRESS_INLINE)
		return 0;
	e->stop = e->ended = false;
	if (o->progress == SOFT_PROGRESS_THREAD) {
		e->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		ret = soft_engine_thread_start(e);
		if (ret != 0) {
			close_wake_fd(e);
			SOFT_LOG(ERR, "%s: cannot create the thread of progress=thread: %s",
				 e->dev->name, strerror(-ret));
			return ret;
		}
		e->started = true;
		return 0;
	}
	if (o->lcore >= RTE_MAX_LCORE || !rte_lcore_is_enabled(o->lcore) ||
	    o->lcore == rte_get_main_lcore()) {
		SOFT_LOG(ERR,
			 "%s: invalid lcore=%u (a worker lcore of EAL: one of -l that is not the "
			 "main lcore)",
			 e->dev->name, o->lcore);
		return -EINVAL;
	}
	if (rte_eal_remote_launch(soft_engine_lcore, e, o->lcore) != 0) {
		SOFT_LOG(ERR, "%s: lcore=%u is busy: name an lcore that runs no other function",
			 e->dev->name, o->lcore);
		return -EBUSY;
	}
	e->started = true;
	return 0;
}

void
soft_engine_stop(struct soft_engine *e)
{
	if (!e->started)
		return;
	__atomic_store_n(&e->stop, true, __ATOMIC_RELAXED);
	if (e->dev->opts.progress == SOFT_PROGRESS_THREAD) {
		soft_engine_rouse(e);
		pthread_join(e->thread, NULL);
		close_wake_fd(e);
	} else {
		rte_eal_wait_lcore(e->dev->opts.lcore);
	}
	/*
	 * EAL's wait already orders the memory accesses of the two threads. But ThreadSanitizer
	 * does not see this order, because it is inside librte_eal, which is not instrumented.
	 */
	(void)__atomic_load_n(&e->ended, __ATOMIC_ACQUIRE);
	e->started = false;
}
