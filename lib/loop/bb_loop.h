/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Poll loop of one lcore: polls CQs and calls back, runs pollers, accounts for
 * idle time.
 *
 * A loop belongs to one lcore, as its CQs do. It is run in one of four ways:
 *
 *   bb_loop_start()         on its lcore, by rte_eal_remote_launch()
 *   bb_loop_service_start() as a DPDK service on a service lcore
 *   bb_loop_run()           in the calling thread until bb_loop_stop()
 *   bb_loop_run_once()      one iteration in the calling thread
 *
 * One iteration polls every CQ once, calls every poller once, then carries out
 * an attach or detach that another thread asked for. It takes no lock, calls no
 * allocator and divides nothing; what callbacks do is theirs.
 *
 * Attach and detach while the loop runs:
 *
 *   - from a callback of this loop: at once. A CQ or poller that was detached
 *     is not touched again, so its callback may destroy the CQ.
 *   - from another thread: handed to the loop, which does it between two
 *     iterations; the call returns when it is done, so no callback of the
 *     detached object is running any more. It waits for the iteration under way:
 *     a callback must not wait for that thread. -ETIMEDOUT after a second in
 *     which the loop did not come round (its service lcore was never started);
 *     nothing was changed then.
 *   - from a callback of another loop: refused with -EBUSY, as two loops could
 *     wait for each other. So is a change of a service that was stopped and
 *     not yet waited for.
 *
 * Between calls of bb_loop_run_once() the loop counts as not running: then
 * attach and detach belong to the thread that drives it.
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

/** Most completions one callback can get. */
#define BB_LOOP_MAX_BURST 256u
/** Most CQs, and most pollers, of a loop. */
#define BB_LOOP_MAX_OBJECTS 65536u

/** What a loop is to be like. */
struct bb_loop_attr {
	uint32_t size;        /**< set by bb_loop_attr_init() */
	uint32_t lcore;       /**< owner, or BB_LCORE_SELF */
	uint32_t max_cqs;     /**< CQs that can be attached at a time */
	uint32_t max_pollers; /**< pollers that can be attached at a time */
	uint32_t burst;       /**< completions per callback, 1 to BB_LOOP_MAX_BURST */
	bool accounting;      /**< busy and idle cycles: one TSC read per iteration */
};

/** BB_LCORE_SELF, 64 CQs, 64 pollers, bursts of 32, accounting on. */
void bb_loop_attr_init(struct bb_loop_attr *attr);

/**
 * Completions of @p cq, at least one. @p wc is the loop's and valid until the
 * callback returns. Posting, attaching, detaching and bb_loop_stop() are
 * allowed inside; bb_loop_run_once(), bb_loop_run() and bb_loop_destroy() of
 * any loop are refused with -EBUSY.
 */
typedef void (*bb_loop_cq_fn)(struct bb_cq *cq, const struct bb_wc *wc, unsigned int n, void *arg);

/**
 * A poller, called once per iteration. Rules as for bb_loop_cq_fn.
 * @return amount of work done; 0 counts the iteration as idle if nothing else
 *   worked.
 */
typedef unsigned int (*bb_loop_poll_fn)(void *arg);

/**
 * Create a loop. EAL must be initialised. Control path, any thread.
 * @return 0; -EINVAL lcore not known, burst or a limit out of range; -ENOMEM.
 */
int bb_loop_create(const struct bb_loop_attr *attr, struct bb_loop **loop);

/** Free it; what was attached stays the caller's. -EBUSY while it runs. */
int bb_loop_destroy(struct bb_loop *loop);

/** The lcore it belongs to. */
uint32_t bb_loop_lcore(const struct bb_loop *loop);

/**
 * Have @p cq polled and @p cb called for each burst of completions. The CQ must
 * be detached before it is destroyed.
 * @return 0; -EINVAL the CQ belongs to another lcore; -EALREADY it is attached;
 *   -ENOSPC max_cqs are attached; -EBUSY see above.
 */
int bb_loop_attach_cq(struct bb_loop *loop, struct bb_cq *cq, bb_loop_cq_fn cb, void *arg);

/** @return 0; -ENOENT it was not attached; -EBUSY see above. */
int bb_loop_detach_cq(struct bb_loop *loop, struct bb_cq *cq);

/**
 * Call @p fn with @p arg once per iteration. Function and argument together
 * name a poller.
 * @return 0; -EALREADY; -ENOSPC; -EBUSY see above.
 */
int bb_loop_attach_poller(struct bb_loop *loop, bb_loop_poll_fn fn, void *arg);

/** @return 0; -ENOENT; -EBUSY see above. */
int bb_loop_detach_poller(struct bb_loop *loop, bb_loop_poll_fn fn, void *arg);

/**
 * Run it on its lcore, by rte_eal_remote_launch().
 * @return 0; -EBUSY it runs, or the lcore does other work; -EINVAL the lcore is
 *   the main lcore, a service lcore or none of EAL's: use bb_loop_run() or
 *   bb_loop_service_start().
 */
int bb_loop_start(struct bb_loop *loop);

/**
 * Run it as a DPDK service on its lcore, beside other services there. The
 * application makes the lcore a service lcore (rte_service_lcore_add()) and
 * starts it (rte_service_lcore_start()), before or after.
 * @return 0; -EBUSY it runs; -EINVAL not a service lcore; -ENOMEM no service
 *   slot or memory is left.
 */
int bb_loop_service_start(struct bb_loop *loop);

/**
 * Run it in the calling thread, which must be its lcore, until bb_loop_stop().
 * @return 0 when it was stopped; -EBUSY it runs already, or this is a callback;
 *   -EINVAL the thread is another lcore.
 */
int bb_loop_run(struct bb_loop *loop);

/**
 * One iteration in the calling thread, which must be its lcore.
 * @return amount of work done, completions and what pollers returned; -EBUSY
 *   and -EINVAL as bb_loop_run().
 */
int bb_loop_run_once(struct bb_loop *loop);

/**
 * Tell a running loop to stop after the iteration under way. Any thread, also
 * from a callback; does not wait.
 * @return 0; -EALREADY it does not run.
 */
int bb_loop_stop(struct bb_loop *loop);

/**
 * Wait until a loop that was started with bb_loop_start() or
 * bb_loop_service_start() has ended. To be called after bb_loop_stop(), by one
 * thread, not from a callback. A service ends here: it may be started again
 * only after this call.
 * @return 0; -EBUSY called from a callback.
 */
int bb_loop_wait(struct bb_loop *loop);

/** Whether it is started and not yet ended. Any thread. */
bool bb_loop_running(const struct bb_loop *loop);

/** What a loop has done since it was created. */
struct bb_loop_stats {
	uint64_t iterations;  /**< since it was created */
	uint64_t idle;        /**< of them without work */
	uint64_t completions; /**< given to callbacks */
	uint64_t work;        /**< returned by pollers */
	uint64_t busy_cycles; /**< TSC cycles of iterations with work */
	uint64_t idle_cycles; /**< TSC cycles of iterations without */
};

/**
 * Read the accounting. Any thread, any time: all numbers are of the same
 * iteration, of a running loop at most 256 iterations old (and 10 us, with
 * attr.accounting). With attr.accounting off the cycles stay 0. Time between two calls
 * of bb_loop_run_once(), and other services' time, is not counted.
 */
void bb_loop_stats(const struct bb_loop *loop, struct bb_loop_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
