/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Detection of a phase in which nothing completes any more. */
#ifndef STALL_H
#define STALL_H

#include "testrdma.h"

/* State checked periodically while a phase runs. */
struct watch {
	uint64_t deadline; /* TSC at which rolling spans end */
	uint64_t moved;    /* time of the last change of count */
	uint64_t seen;     /* value of count at that time */
	uint64_t count;    /* number of completions */
	uint64_t asked;    /* time of the last check of the device's events */
	const char *phase;
};

/* Call before the queues of @t are used: earlier events do not concern them. */
void stall_begin(struct test *t);

/*
 * Returns true if the phase must end: after --patience seconds without a completion, or as soon as
 * an event says that the device or a CQ has failed. Prints the reason and sets t->fatal.
 */
bool stalled(struct test *t, struct watch *w, uint64_t now);

/*
 * Gives up outstanding operations a second after the run was stopped: prints so and sets t->fatal,
 * without an error. Returns false if there is no stop, or the second is not over.
 */
bool stall_abandoned(struct test *t, uint64_t now);

#endif
