/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Detects pauses: times in which an lcore did not run, because the scheduler or the hypervisor gave
 * its CPU to other work. A message that was due during a pause is late, however fast the pipeline
 * is. So are the messages after it. These messages are marked, so that the result separates the
 * cost of the machine from that of the pipeline.
 */
#ifndef PAUSES_H
#define PAUSES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Minimum length of a pause. An lcore checks the clock once per message, and works for less than
 * this between two checks.
 */
#define PAUSE_US 5

struct pauses {
	uint64_t last_check, limit; /* TSC of the last check of the clock; gap in cycles above which
				   there was a pause */
	uint64_t longest, total;
	uint64_t end; /* TSC of the end of the last pause */
	uint32_t n;
	/*
	 * true while all messages count as delayed: after a pause of this lcore, and after a
	 * message that a pause of another lcore has delayed. The next pass of the loop without work
	 * sets it to false.
	 */
	bool delayed;
};

/*
 * Checks the clock at TSC @now, and records a pause if the gap since the last check is too large.
 */
static inline void
pauses_look(struct pauses *s, uint64_t now)
{
	uint64_t gap = now - s->last_check;

	s->last_check = now;
	if (__builtin_expect(gap <= s->limit, 1))
		return;
	s->n++;
	s->total += gap;
	s->end = now;
	s->delayed = true;
	if (gap > s->longest)
		s->longest = gap;
}

#endif
