/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An open loop: each operation has a due time that does not depend on earlier operations.
 *
 * Operation k is due k / rate after the start. Its latency is measured from its due time, not from
 * its post. So the latency includes the time that the operation waited for slow earlier operations,
 * and a stall shows in all operations that became due meanwhile. A closed loop posts an operation
 * when the previous one is done, so it would omit these latencies (Gil Tene: coordinated omission).
 */
#ifndef RATE_H
#define RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_SHIFT 24 /* number of fractional bits of step */

struct schedule {
	bool on;
	uint64_t start; /* TSC at which operation 0 is due */
	uint64_t step;  /* TSC cycles between two operations, << RATE_SHIFT */
	uint64_t count; /* number of operations due at the last update */
	uint64_t limit; /* number of the first operation that the schedule does not contain */
	uint64_t end;   /* TSC at which the schedule ended, if limit is set */
};

/*
 * Starts the schedule at TSC @now. @rate: operations per second, 1 to 1e9. @hz: TSC cycles per
 * second.
 */
static inline void
schedule_begin(struct schedule *s, uint64_t now, uint64_t hz, uint64_t rate)
{
	s->on = true;
	s->start = now;
	s->step = (uint64_t)(((unsigned __int128)hz << RATE_SHIFT) / rate);
	s->count = 0;
	s->limit = UINT64_MAX;
}

/* Returns the TSC at which operation @k is due. */
static inline uint64_t
schedule_due(const struct schedule *s, uint64_t k)
{
	return s->start + (uint64_t)((unsigned __int128)k * s->step >> RATE_SHIFT);
}

/* Returns the number of operations that are due at TSC @now. */
static inline uint64_t
schedule_count(const struct schedule *s, uint64_t now)
{
	uint64_t n;

	if (now < s->start)
		return 0;
	/*
	 * Operation k is due if (k * step) >> RATE_SHIFT is at most now - start. This holds if k *
	 * step is less than (now - start + 1) << RATE_SHIFT. n is how many values of k, from 0,
	 * fulfil this.
	 */
	n = (uint64_t)(((((unsigned __int128)(now - s->start) + 1) << RATE_SHIFT) - 1) / s->step) +
	    1;
	return n < s->limit ? n : s->limit;
}

/*
 * Computes the latency of operation @k, which was done at TSC @now. @return false if the schedule
 * does not contain the operation.
 */
static inline bool
schedule_latency(const struct schedule *s, uint64_t k, uint64_t now, uint64_t *latency)
{
	uint64_t due = schedule_due(s, k);

	*latency = now > due ? now - due : 0;
	return k < s->limit;
}

#endif
