/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Times in which a place did not run: the scheduler gave its processor to somebody else, or the
 * hypervisor did. What was due in such a time is late however fast the place is, and so is what
 * waits behind it. Both are marked on their way, so that the result can tell what the machine
 * cost from what the pipeline did.
 */
#ifndef PAUSES_H
#define PAUSES_H

#include <stdbool.h>
#include <stdint.h>

/* Longer than a place works between two looks at the clock: it takes one for each message. */
#define PAUSE_US 5

struct pauses {
	uint64_t looked, limit; /* TSC */
	uint64_t longest, total;
	uint64_t end; /* of the last one */
	uint32_t n;
	/*
	 * There was a pause, or a message says that it was held up by one of another place, and
	 * there has been no turn without work since: what comes waits behind that.
	 */
	bool behind;
};

/* A look at the clock. */
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
