/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Runs tests in the background: on EAL's worker lcores or, if there are none, in an extra thread.
 * Each lcore has its own queues and memory. All lcores run the same test at the same time. Instead
 * of running tests, one lcore can be the target of other processes.
 *
 * Make all calls from the main thread.
 */
#ifndef RUNNER_H
#define RUNNER_H

#include "remote.h"

struct worker;

/* Totals since the first start, or since the last runner_clear(). */
struct totals {
	uint64_t ops, verified, errors;
};

struct runner {
	struct tester
		*t; /* device and options in force; number of passed and failed tests of the run */
	struct worker *workers;
	uint32_t n;        /* number of workers that exist */
	struct test *test; /* sums over all workers for the current test */
	struct test *last; /* the last finished test */
	bool running;
	struct server *server; /* NULL unless the program listens; no tests run while it listens */
	bool have_last;
	struct totals past; /* totals of finished tests */
	/* Numbers of tests, summed over all runs. The numbers of the last run are in t. */
	uint32_t tests, passed, failed;
	uint64_t errors, verified;
};

/* Initializes a runner that uses the device and the options of @t. @return 0; -ENOMEM. */
int runner_init(struct runner *r, struct tester *t);

/*
 * Starts the tests of t->o. First frees queues and memory of an earlier run. @return 0, or -1 after
 * printing the reason; no test runs then.
 */
int runner_start(struct runner *r);

/* Starts the next test if one has finished. @return true if a test still runs. */
bool runner_poll(struct runner *r);

/* Stops the current test and the run. Waits until all workers have stopped. */
void runner_stop(struct runner *r);

/*
 * Starts to serve, in the background, peers that connect to t->o.listen. No test may run. @return
 * 0, or -1 after printing the reason.
 */
int runner_listen(struct runner *r);

/*
 * Stops listening. Connected peers see their connection break. Does nothing if the program does not
 * listen.
 */
void runner_unlisten(struct runner *r);

/* Frees the queues and memory of a finished run and disconnects its connections. */
void runner_close(struct runner *r);

/* Stops the run, if there is one, and frees the runner's resources. */
void runner_free(struct runner *r);

/* Returns the totals so far. The counts of a running test are some milliseconds old. */
void runner_totals(const struct runner *r, struct totals *totals);

/*
 * Copies the latencies of the current test, or of the last one, to *@lat. @return false if there
 * are none.
 */
bool runner_latency(struct runner *r, struct hist *lat);

/* Clears the totals, and the latencies of the current test. */
void runner_clear(struct runner *r);

/*
 * Returns the test of worker @i, NULL if there is no such worker. While the worker runs, use only
 * the queues and memory of its test, and only with functions that any thread may call.
 */
struct tester *runner_tester(const struct runner *r, uint32_t i);

/* Returns the lcore id of worker @i: an EAL lcore, or the id of a registered thread. */
unsigned int runner_lcore(const struct runner *r, uint32_t i);

#endif
