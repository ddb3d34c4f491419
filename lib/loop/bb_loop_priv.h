/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Shared by bb_loop.c (objects, iteration) and bb_loop_run.c (the thread that runs the loop). */
#ifndef BB_LOOP_PRIV_H
#define BB_LOOP_PRIV_H

#include <pthread.h>
#include <sys/queue.h>

#include <rte_common.h>
#include <rte_per_lcore.h>

#include "bb_loop.h"

enum loop_state {
	LOOP_IDLE,
	LOOP_RUNNING,
	LOOP_STOPPING,
};

enum loop_mode {
	LOOP_MODE_CALLER,  /* bb_loop_run() */
	LOOP_MODE_LCORE,   /* rte_eal_remote_launch() */
	LOOP_MODE_SERVICE, /* rte_service */
};

struct loop_cq {
	struct bb_cq *cq; /* attached CQ; NULL if it was detached and the slot is not removed yet */
	bb_loop_cq_fn cb;
	void *arg;
};

struct loop_poller {
	bb_loop_poll_fn fn; /* NULL if detached */
	void *arg;
};

/*
 * Statistics that other threads read. Only the loop's thread writes them; seq is odd while it
 * changes the other fields.
 */
struct loop_stats {
	uint64_t seq;
	struct bb_loop_stats s;
};

/* An attach or detach that another thread passes to the loop's thread. */
struct loop_cmd {
	int (*apply)(struct bb_loop *loop, const struct loop_cmd *cmd);
	struct bb_cq *cq;
	bb_loop_cq_fn cb;
	bb_loop_poll_fn fn;
	void *arg;
	int rc;   /* result; valid once done is set */
	int done; /* 1 when the command is done; accessed with __atomic */
};

struct bb_loop {
	struct loop_cq *cqs;
	struct loop_poller *pollers;
	uint32_t n_cqs, n_pollers;
	uint32_t burst;
	uint32_t state;       /* enum loop_state; accessed with __atomic */
	struct loop_cmd *cmd; /* pending command, NULL if none; accessed with __atomic */
	uint64_t tsc;         /* TSC at the end of the last iteration */
	bool accounting;
	bool dirty; /* true if a detached CQ or poller is still in the loop's arrays */
	/*
	 * Written with release order at the end of each service call, so that bb_loop_wait() sees
	 * everything that the call has written. The value has no meaning. Accessed with __atomic.
	 */
	uint32_t service_left;

	struct bb_loop_stats now; /* current statistics; only the loop's thread accesses them */
	uint64_t published;       /* value of tsc at the last publication */
	uint64_t publish_cycles;
	uint32_t to_publish; /* iterations until the next publication */

	struct loop_stats stats __rte_cache_aligned;

	/* An iteration does not access the following fields. */
	pthread_mutex_t control __rte_cache_aligned; /* held by start, attach, detach, destroy */
	uint32_t lcore;
	uint32_t max_cqs, max_pollers;
	enum loop_mode mode; /* how the loop runs; protected by the mutex control */
	uint32_t service;
	uint32_t number; /* number of the loop in telemetry */
	LIST_ENTRY(bb_loop) link;

	struct bb_wc wc[] __rte_cache_aligned;
};

/* The loop whose iteration this thread runs; NULL if none. */
RTE_DECLARE_PER_LCORE(struct bb_loop *, bb_loop_current);

/*
 * Functions of bb_loop_tel.c. They add the loop to telemetry, or remove it. Any thread may call
 * them.
 */
void bb_loop_tel_add(struct bb_loop *loop);
void bb_loop_tel_remove(struct bb_loop *loop);

/* Runs one iteration. Returns the number of completions plus the sum of the pollers' results. */
unsigned int bb_loop_iterate(struct bb_loop *loop);

/*
 * Publishes the current numbers to readers. Call it in the loop's thread, or while the loop does
 * not run.
 */
void bb_loop_publish(struct bb_loop *loop);

#endif
