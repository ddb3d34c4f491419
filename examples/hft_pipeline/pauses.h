/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Times in which an lcore did not run, because the scheduler or the hypervisor gave its CPU to
 * other work. A message that was due in such a time is late, however fast the pipeline is, and so
 * are the messages after it. Such messages are marked, so that the result separates the cost of the
 * machine from that of the pipeline.
 */
#ifndef PAUSES_H
#define PAUSES_H

#include <stdbool.h>
#include <stdint.h>

/* Longer than an lcore works between two checks of the clock: it checks once per message. */
#define PAUSE_US 5

struct pauses {
	uint64_t looked, limit; /* TSC */
	uint64_t longest, total;
	uint64_t end; /* end of the last pause */
	uint32_t n;
	/*
	 * Further messages are delayed too: there was a pause, or a message is marked as delayed by
	 * a pause of another lcore. Cleared by the next turn without work.
	 */
	bool behind;
};

/* Checks the clock. */
static inline void
pauses_look(struct pauses *s, uint64_t now)
{
	uint64_t gap = now - s->looked;

	s->looked = now;
	if (__builtin_expect(gap <= s->limit, 1))
		return;
	s->n++;
	s->total += gap;
	s->end = now;
	s->behind = true;
	if (gap > s->longest)
		s->longest = gap;
}

#endif
