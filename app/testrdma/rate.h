/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An open loop: each operation has a due time, independent of earlier operations.
 *
 * Operation k is due k / rate after the start. Latencies count from then, not from the post. An
 * operation that had to wait because earlier ones were slow has waited, and a stall appears in all
 * operations that were due meanwhile. A closed loop, which posts the next operation when the last
 * one is done, would leave them out (Gil Tene: coordinated omission).
 */
#ifndef RATE_H
#define RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_SHIFT 24 /* fractional bits of step */

struct schedule {
	bool on;
	uint64_t start; /* TSC */
	uint64_t step;  /* cycles between operations << RATE_SHIFT */
	uint64_t count; /* operations due at the last update */
	uint64_t limit; /* operations from this number on do not belong to the schedule */
};

/* Starts the schedule at @now: @rate operations per second of @hz cycles, 1 to 1e9. */
static inline void
schedule_begin(struct schedule *s, uint64_t now, uint64_t hz, uint64_t rate)
{
	s->on = true;
	s->start = now;
	s->step = (uint64_t)(((unsigned __int128)hz << RATE_SHIFT) / rate);
	s->count = 0;
	s->limit = UINT64_MAX;
}

/* Returns the time at which operation @k is due. */
static inline uint64_t
schedule_due(const struct schedule *s, uint64_t k)
{
	return s->start + (uint64_t)((unsigned __int128)k * s->step >> RATE_SHIFT);
}

/* Returns the number of the schedule's operations that are due at @now. */
static inline uint64_t
schedule_count(const struct schedule *s, uint64_t now)
{
	uint64_t n;

	if (now < s->start)
		return 0;
	/*
	 * Operation k is due if k * step >> SHIFT <= now - start, that is, if k * step is below
	 * this.
	 */
	n = (uint64_t)(((((unsigned __int128)(now - s->start) + 1) << RATE_SHIFT) - 1) / s->step) +
	    1;
	return n < s->limit ? n : s->limit;
}

/*
 * Computes the latency of operation @k, done at @now. @return false if it is not in the schedule.
 */
static inline bool
schedule_latency(const struct schedule *s, uint64_t k, uint64_t now, uint64_t *latency)
{
	uint64_t due = schedule_due(s, k);

	*latency = now > due ? now - due : 0;
	return k < s->limit;
}

#endif
