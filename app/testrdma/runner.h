/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Rows in the background: on lcores that EAL has beside the main one, or, when there is none, in a
 * thread of its own. Each has queues and memory of its own, and all run the same row at a time. Or,
 * instead of rows, one of them is the target of other processes.
 *
 * All calls are the main thread's.
 */
#ifndef RUNNER_H
#define RUNNER_H

#include "remote.h"

struct worker;

/* What was done since the first start, or since they were cleared. */
struct totals {
	uint64_t ops, verified, errors;
};

struct runner {
	struct test *t; /* device, options in force, counts of the run */
	struct worker *workers;
	uint32_t n;       /* workers that are set up */
	struct row *row;  /* sums of the one that runs */
	struct row *last; /* the last one that was over */
	bool running;
	struct server *server; /* while it listens, and then nothing runs */
	bool have_last;
	struct totals past; /* of rows that are over */
	/* Of all runs; those of the last one are in t. */
	uint32_t rows, passed, failed;
	uint64_t errors, verified;
};

/* @return 0; -ENOMEM. */
int runner_init(struct runner *r, struct test *t);

/*
 * Begin the rows of t->o. Queues and memory of an earlier run are freed before.
 * @return 0, or -1 after a line that says why, and then nothing runs.
 */
int runner_start(struct runner *r);

/* Go on to the next row where one is over. @return whether something runs still. */
bool runner_poll(struct runner *r);

/* End the row, and the run; waits until it is so. */
void runner_stop(struct runner *r);

/*
 * Be the target of who connects to t->o.listen, in the background. Nothing runs.
 * @return 0, or -1 after a line that says why.
 */
int runner_listen(struct runner *r);

/* Listen no more, if it does; who is connected sees it break. */
void runner_unlisten(struct runner *r);

/* Queues and memory of a run that is over; connections end. */
void runner_close(struct runner *r);

/* End what runs, free everything. */
void runner_free(struct runner *r);

/* What was done so far; of what runs as it was some milliseconds ago. */
void runner_totals(const struct runner *r, struct totals *totals);

/* Latencies of the row that runs, or of the last one. @return false: there are none. */
bool runner_latency(struct runner *r, struct hist *lat);

/* Forget totals and latencies. */
void runner_clear(struct runner *r);

/*
 * The test of worker @i, NULL: there are no more. While it runs only its queues and memory may be
 * looked at, by what any thread may call.
 */
struct test *runner_test(const struct runner *r, uint32_t i);

/* The lcore of worker @i, one of EAL's or one that a thread has registered as. */
unsigned int runner_lcore(const struct runner *r, uint32_t i);

#endif
