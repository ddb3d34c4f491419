/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Distributes the open loop of a span (rate.h) over the flows. */
#include "testrdma.h"

void
pace_begin(struct test *t, uint64_t now)
{
	uint32_t i;

	schedule_begin(&t->schedule, now, t->tsc_hz, t->row->rate);
	for (i = 0; i < t->nflows; i++) {
		t->flows[i]->first = t->flows[i]->due = t->flows[i]->posted;
		t->flows[i]->turn = i;
	}
}

/* Updates the number of operations that are due by now. */
void
pace_roll(struct test *t, uint64_t now)
{
	uint64_t count = schedule_count(&t->schedule, now);
	uint32_t i;

	if (count == t->schedule.count)
		return;
	t->schedule.count = count;
	/* The flows alternate. */
	for (i = 0; i < t->nflows; i++)
		t->flows[i]->due = t->flows[i]->first + (count + t->nflows - 1 - i) / t->nflows;
}

/*
 * Ends the schedule. Operations that were due and could not be posted have waited at least until
 * now. Operations posted later, for the last completion, do not belong to the schedule.
 */
void
pace_end(struct test *t, uint64_t now)
{
	struct schedule *s = &t->schedule;
	uint64_t op, latency;
	uint32_t i;

	if (s->limit != UINT64_MAX)
		return;
	pace_roll(t, now);
	s->limit = s->count;
	for (i = 0; i < t->nflows; i++) {
		struct pair *p = t->flows[i];

		/*
		 * A span with a given number of operations, or one announced to the target, runs to
		 * its end.
		 */
		for (op = p->posted; op < p->due && p->end == UINT64_MAX; op++) {
			schedule_latency(s, (op - p->first) * t->nflows + p->turn, now, &latency);
			hist_add(&t->row->lat, latency);
			t->row->res.unposted++;
		}
		p->due = UINT64_MAX;
	}
}
