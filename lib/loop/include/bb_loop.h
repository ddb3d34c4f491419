/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Poll loop of one lcore. The loop polls CQs, calls their callbacks, runs pollers and measures idle
 * time.
 *
 * A loop belongs to one lcore, as its CQs do. It runs in one of four ways:
 *
 *   bb_loop_start()         on its lcore, by rte_eal_remote_launch()
 *   bb_loop_service_start() as a DPDK service on a service lcore
 *   bb_loop_run()           in the calling thread until bb_loop_stop()
 *   bb_loop_run_once()      one iteration in the calling thread
 *
 * One iteration polls every CQ once and calls every poller once. Then it executes an attach or
 * detach requested by another thread. Apart from the callbacks, an iteration takes no lock,
 * allocates no memory and executes no division.
 *
 * Attach and detach while the loop runs:
 *
 * - From a callback of this loop: the change takes effect at once. A detached CQ or poller is not
 *   accessed again, so its callback may destroy the CQ.
 * - From another thread: the loop executes the change between two iterations. The call returns
 *   after the change, so no callback of a detached object runs any more. The call waits for the
 *   current iteration, so a callback must not wait for the calling thread. The call returns
 *   -ETIMEDOUT, without a change, if the loop does not respond within a second, for example because
 *   its service lcore was never started. Time for which the process was stopped does not count.
 * - From a callback of another loop: the call returns -EBUSY, because otherwise two loops could
 *   wait for each other. The call also returns -EBUSY if the loop is a service that was stopped,
 *   and bb_loop_wait() was not called yet.
 *
 * A loop that bb_loop_run_once() runs counts as not running, also during the call. Only the thread
 * that calls bb_loop_run_once() may attach, detach and destroy.
 */
#ifndef BB_LOOP_H
#define BB_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "bb_cq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A poll loop, opaque. */
struct bb_loop;

/** Maximum completions per callback. */
#define BB_LOOP_MAX_BURST 256u
/** Maximum number of CQs, and of pollers, of a loop. */
#define BB_LOOP_MAX_OBJECTS 65536u

/** Attributes of a loop. */
struct bb_loop_attr {
	uint32_t size;        /**< set by bb_loop_attr_init() */
	uint32_t lcore;       /**< lcore that owns the loop, or BB_LCORE_SELF */
	uint32_t max_cqs;     /**< CQs that can be attached at a time */
	uint32_t max_pollers; /**< pollers that can be attached at a time */
	uint32_t burst;       /**< completions per callback, 1 to BB_LOOP_MAX_BURST */
	bool accounting;      /**< true if busy and idle cycles are counted, which costs one TSC
			       * read per iteration */
};

/** Sets the defaults: BB_LCORE_SELF, 64 CQs, 64 pollers, bursts of 32, accounting on. */
void bb_loop_attr_init(struct bb_loop_attr *attr);

/**
 * Callback for completions of @p cq, at least one. @p wc belongs to the loop and is valid until the
 * callback returns. The callback may post, attach, detach and call bb_loop_stop(). In the callback,
 * bb_loop_run_once(), bb_loop_run() and bb_loop_destroy() of any loop return -EBUSY.
 */
typedef void (*bb_loop_cq_fn)(struct bb_cq *cq, const struct bb_wc *wc, unsigned int n, void *arg);

/**
 * A poller, called once per iteration. The rules are those of bb_loop_cq_fn.
 * @return amount of work done. An iteration is idle if all pollers return 0 and no CQ had
 * completions.
 */
typedef unsigned int (*bb_loop_poll_fn)(void *arg);

/**
 * Creates a loop. EAL must be initialised. Control path; any thread may call this function.
 * @return 0; -EINVAL if the lcore is unknown, or burst or a limit is out of range; -ENOMEM.
 */
int bb_loop_create(const struct bb_loop_attr *attr, struct bb_loop **loop);

/**
 * Frees the loop but not the attached objects, which belong to the caller. Detach a CM first
 * (bb_cm_detach()), because a CM uses its loop until then. Returns 0, or -EBUSY while the loop
 * runs.
 */
int bb_loop_destroy(struct bb_loop *loop);

/** Returns the lcore that owns the loop. */
uint32_t bb_loop_lcore(const struct bb_loop *loop);

/**
 * Makes the loop poll @p cq and call @p cb for each burst of completions. Detach the CQ before you
 * destroy it.
 * @return 0; -EINVAL if the CQ belongs to another lcore; -EALREADY if the CQ is attached; -ENOSPC
 * if max_cqs CQs are attached; -EBUSY and -ETIMEDOUT as described at the top of this file.
 */
int bb_loop_attach_cq(struct bb_loop *loop, struct bb_cq *cq, bb_loop_cq_fn cb, void *arg);

/**
 * Detaches a CQ.
 * @return 0; -ENOENT if the CQ is not attached; -EBUSY and -ETIMEDOUT as described at the top of
 * this file.
 */
int bb_loop_detach_cq(struct bb_loop *loop, struct bb_cq *cq);

/**
 * Makes the loop call @p fn with @p arg once per iteration. Function and argument together identify
 * a poller.
 * @return 0; -EALREADY if the poller is attached; -ENOSPC if max_pollers pollers are attached;
 * -EBUSY and -ETIMEDOUT as described at the top of this file.
 */
int bb_loop_attach_poller(struct bb_loop *loop, bb_loop_poll_fn fn, void *arg);

/**
 * Detaches a poller.
 * @return 0; -ENOENT if the poller is not attached; -EBUSY and -ETIMEDOUT as the comment of this
 * file says.
 */
int bb_loop_detach_poller(struct bb_loop *loop, bb_loop_poll_fn fn, void *arg);

/**
 * Runs the loop on its lcore, by rte_eal_remote_launch().
 * @return 0; -EBUSY if the loop runs, or the lcore is busy; -EINVAL if the lcore is the main lcore,
 * a service lcore or not an EAL lcore: use bb_loop_run() or bb_loop_service_start().
 */
int bb_loop_start(struct bb_loop *loop);

/**
 * Runs the loop as a DPDK service on its lcore, beside other services. The application makes the
 * lcore a service lcore (rte_service_lcore_add()) and starts it (rte_service_lcore_start()), before
 * or after this call.
 * @return 0; -EBUSY if the loop runs; -EINVAL if the lcore is not a service lcore; -ENOMEM if no
 * service slot or memory is left.
 */
int bb_loop_service_start(struct bb_loop *loop);

/**
 * Runs the loop in the calling thread, which must run on the loop's lcore, until bb_loop_stop().
 * @return 0 after a stop; -EBUSY if the loop runs already, or in a callback; -EINVAL if the calling
 * thread runs on another lcore.
 */
int bb_loop_run(struct bb_loop *loop);

/**
 * Runs one iteration in the calling thread, which must run on the loop's lcore.
 * @return amount of work done: completions plus the results of the pollers; -EBUSY and -EINVAL as
 * bb_loop_run().
 */
int bb_loop_run_once(struct bb_loop *loop);

/**
 * Makes a running loop stop after the current iteration. Does not wait. Any thread may call this
 * function, also from a callback.
 * @return 0; -EALREADY if the loop does not run.
 */
int bb_loop_stop(struct bb_loop *loop);

/**
 * Waits until a loop started with bb_loop_start() or bb_loop_service_start() has ended. Call it
 * after bb_loop_stop(), from one thread, not from a callback. If the loop runs as a service, this
 * call ends the service, which may be started again only after the call.
 * @return 0; -EBUSY in a callback.
 */
int bb_loop_wait(struct bb_loop *loop);

/** Returns true if the loop was started and has not ended. Any thread may call this function. */
bool bb_loop_running(const struct bb_loop *loop);

/** Counters of a loop since its creation. */
struct bb_loop_stats {
	uint32_t size;        /**< bytes of the caller's struct; set by bb_loop_stats() */
	uint64_t iterations;  /**< number of iterations */
	uint64_t idle;        /**< iterations without work */
	uint64_t completions; /**< completions passed to callbacks */
	uint64_t work;        /**< sum of the pollers' results */
	uint64_t busy_cycles; /**< TSC cycles of iterations with work */
	uint64_t idle_cycles; /**< TSC cycles of iterations without work */
};

/** Implements bb_loop_stats(), which sets the struct's size. Call bb_loop_stats() instead. */
void bb_loop_stats_v(const struct bb_loop *loop, struct bb_loop_stats *stats);

/**
 * Reads the counters of a loop. Any thread may call this function at any time. All numbers are of
 * the same iteration. If the loop runs, that iteration is at most 256 iterations old, and with
 * attr.accounting at most 10 us. With attr.accounting off the cycles stay 0. Time between two calls
 * of bb_loop_run_once(), and time of other services, is not counted.
 */
static inline void
bb_loop_stats(const struct bb_loop *loop, struct bb_loop_stats *stats)
{
	if (stats != NULL)
		stats->size = sizeof(*stats);
	bb_loop_stats_v(loop, stats);
}

#ifdef __cplusplus
}
#endif

#endif
