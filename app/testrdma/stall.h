/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Detects that a running phase makes no progress: outstanding operations no longer complete. */
#ifndef STALL_H
#define STALL_H

#include "testrdma.h"

/* State of the periodic checks while the rate phase or the latency phase of a test runs. */
struct watch {
	uint64_t deadline; /* TSC at which the timed operations end if their number is not given */
	uint64_t last_progress;    /* TSC of the last change of count */
	uint64_t last_count;       /* value of count when last_progress was set */
	uint64_t count;            /* number of completions so far */
	uint64_t last_event_check; /* TSC of the last check of the device's events */
	const char *phase;
};

/*
 * Records the events so far, so that only later ones count as a cause of a stall. Call it before
 * the queues of @t are used.
 */
void stall_begin(struct tester *t);

/*
 * Returns true if the phase must end. That is after --patience seconds without a completion, or at
 * once if an event reports that the device or a CQ has failed. Prints the reason and sets t->fatal.
 */
bool stalled(struct tester *t, struct watch *w, uint64_t now);

/*
 * Abandons the outstanding operations one second after the user stopped the run. In that case
 * prints that the test is incomplete, sets t->fatal, counts no error and returns true. Returns
 * false if the run was not stopped, or was stopped less than a second ago.
 */
bool stall_abandoned(struct tester *t, uint64_t now);

#endif
