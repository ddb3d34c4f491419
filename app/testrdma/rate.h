/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An open loop: when each operation is due, whatever became of those before it.
 *
 * Operation k is due k / rate behind the start. Latencies count from there, not from the post: an
 * operation that had to wait because earlier ones were slow has waited, and a stall shows in all
 * that were due meanwhile. A loop that posts the next one when the last one is done would have left
 * them out (what Gil Tene calls coordinated omission).
 */
#ifndef RATE_H
#define RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_SHIFT 24 /* of step */

struct schedule {
	bool on;
	uint64_t start; /* TSC */
	uint64_t step;  /* cycles between operations << RATE_SHIFT */
	uint64_t count; /* that were due when it was looked last */
	uint64_t limit; /* one from here on is none of the schedule: it ended before */
};

/* Begin at @now; @rate operations in a second of @hz cycles, 1 to 1e9. */
static inline void
schedule_begin(struct schedule *s, uint64_t now, uint64_t hz, uint64_t rate)
{
	s->on = true;
	s->start = now;
	s->step = (uint64_t)(((unsigned __int128)hz << RATE_SHIFT) / rate);
	s->count = 0;
	s->limit = UINT64_MAX;
}

/* When operation @k is due. */
static inline uint64_t
schedule_due(const struct schedule *s, uint64_t k)
{
	return s->start + (uint64_t)((unsigned __int128)k * s->step >> RATE_SHIFT);
}

/* How many are due at @now, of those of the schedule. */
static inline uint64_t
schedule_count(const struct schedule *s, uint64_t now)
{
	uint64_t n;

	if (now < s->start)
		return 0;
	/* Operation k is due when k * step >> SHIFT <= now - start, so when k * step is below this.
	 */
	n = (uint64_t)(((((unsigned __int128)(now - s->start) + 1) << RATE_SHIFT) - 1) / s->step) +
	    1;
	return n < s->limit ? n : s->limit;
}

/* The latency of operation @k that was done at @now. @return false: it is none of the schedule. */
static inline bool
schedule_latency(const struct schedule *s, uint64_t k, uint64_t now, uint64_t *latency)
{
	uint64_t due = schedule_due(s, k);

	*latency = now > due ? now - due : 0;
	return k < s->limit;
}

#endif
