/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A phase of a row in which nothing completes any more.
 */
#ifndef STALL_H
#define STALL_H

#include "testrdma.h"

/* What is looked at now and then while a phase runs. */
struct watch {
	uint64_t deadline; /* TSC; rolling spans end there */
	uint64_t moved;    /* when the number of completions last changed */
	uint64_t seen;     /* completions then */
	uint64_t count;    /* completions */
	uint64_t asked;    /* when the device was last asked what has happened to it */
	const char *phase;
};

/* Before the queues of @t are used: what the device told until now is not about them. */
void stall_begin(struct test *t);

/*
 * Is it over? After --patience seconds without a completion, or as soon as the device says that
 * it, or a CQ, has died. Says so, and sets t->fatal.
 */
bool stalled(struct test *t, struct watch *w, uint64_t now);

/*
 * Gives up what is under way a second after the run was told to stop: says so and sets t->fatal,
 * without an error. False: there is no stop, or the second is not over.
 */
bool stall_abandoned(struct test *t, uint64_t now);

#endif
