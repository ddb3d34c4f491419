/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Tests in the background: on EAL's lcores besides the main one or, if there are none, in an extra
 * thread. Each lcore has its own queues and memory, and all run the same test at a time. Instead of
 * running tests, one of them can be the target of other processes.
 *
 * Make all calls from the main thread.
 */
#ifndef RUNNER_H
#define RUNNER_H

#include "remote.h"

struct worker;

/* Totals since the first start, or since they were cleared. */
struct totals {
	uint64_t ops, verified, errors;
};

struct runner {
	struct test *t; /* device, options in force, counts of the run */
	struct worker *workers;
	uint32_t n;       /* number of workers created */
	struct row *row;  /* sums of the current test */
	struct row *last; /* the last finished test */
	bool running;
	struct server *server; /* set while it listens; nothing runs then */
	bool have_last;
	struct totals past; /* totals of finished tests */
	/* Over all runs; those of the last run are in t. */
	uint32_t rows, passed, failed;
	uint64_t errors, verified;
};

/* @return 0; -ENOMEM. */
int runner_init(struct runner *r, struct test *t);

/*
 * Starts the tests of t->o. Frees queues and memory of an earlier run first.
 * @return 0, or -1 after printing the reason; nothing runs then.
 */
int runner_start(struct runner *r);

/* Continues with the next test if one has finished. @return true if something still runs. */
bool runner_poll(struct runner *r);

/* Ends the test and the run; waits for the end. */
void runner_stop(struct runner *r);

/*
 * Starts to serve peers that connect to t->o.listen, in the background. Nothing else may run.
 * @return 0, or -1 after printing the reason.
 */
int runner_listen(struct runner *r);

/* Stops listening, if it does; connected peers see the connection break. */
void runner_unlisten(struct runner *r);

/* Frees queues and memory of a finished run; connections end. */
void runner_close(struct runner *r);

/* Ends a run and frees everything. */
void runner_free(struct runner *r);

/* Returns the totals so far; those of a running test are some milliseconds old. */
void runner_totals(const struct runner *r, struct totals *totals);

/*
 * Returns the latencies of the current test, or of the last one. @return false if there are none.
 */
bool runner_latency(struct runner *r, struct hist *lat);

/* Clears totals and latencies. */
void runner_clear(struct runner *r);

/*
 * Returns the test of worker @i, NULL if there are no more. While it runs, use only its queues and
 * memory, and only calls that any thread may make.
 */
struct test *runner_test(const struct runner *r, uint32_t i);

/* Returns the lcore of worker @i: one of EAL's, or that of a registered thread. */
unsigned int runner_lcore(const struct runner *r, uint32_t i);

#endif
