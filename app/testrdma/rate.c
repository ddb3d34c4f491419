/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Distributes the operations of an open loop (rate.h) over the flows of a test: its pairs of queue
 * pairs, and their reverse directions.
 */
#include <rte_common.h>

#include "testrdma.h"

#define UNPOSTED_SAMPLES 100000 /* about as many latencies of operations that were not posted */

void
pace_begin(struct tester *t, uint64_t now)
{
	uint32_t i;

	schedule_begin(&t->schedule, now, t->tsc_hz, t->test->rate);
	for (i = 0; i < t->nflows; i++) {
		t->flows[i]->first = t->flows[i]->due = t->flows[i]->posted;
		t->flows[i]->turn = i;
	}
}

/* Updates the number of operations that are due at TSC @now. */
void
pace_roll(struct tester *t, uint64_t now)
{
	uint64_t count = schedule_count(&t->schedule, now);
	uint32_t i;

	if (count == t->schedule.count)
		return;
	t->schedule.count = count;
	/* Deals out the operations: operation k belongs to flow k modulo the number of flows. */
	for (i = 0; i < t->nflows; i++)
		t->flows[i]->due = t->flows[i]->first + (count + t->nflows - 1 - i) / t->nflows;
}

/*
 * Ends the schedule at TSC @now. Operations that are posted only so that the last completion
 * arrives do not belong to the schedule.
 */
void
pace_end(struct tester *t, uint64_t now)
{
	struct schedule *s = &t->schedule;
	uint32_t i;

	if (s->limit != UINT64_MAX)
		return;
	pace_roll(t, now);
	s->limit = s->count;
	s->end = now;
	for (i = 0; i < t->nflows; i++) {
		struct pair *p = t->flows[i];

		/*
		 * Skips a flow with a known last operation, because all operations up to the last
		 * one will still be posted. The last operation is known in two cases: the number of
		 * operations was given, or the initiator has written it to the target.
		 */
		p->overdue = p->end == UINT64_MAX ? p->due : 0;
		p->due = UINT64_MAX;
	}
}

/*
 * Counts the operations that were due at the end of the schedule and never posted. The latency of
 * each is the time that it had waited then. There may be billions, so the latency of one in the
 * middle stands for several.
 */
void
pace_unposted(struct tester *t)
{
	const struct schedule *s = &t->schedule;
	uint64_t op, n, left = 0, step, latency;
	uint32_t i;

	for (i = 0; i < t->nflows; i++)
		if (t->flows[i]->overdue > t->flows[i]->posted)
			left += t->flows[i]->overdue - t->flows[i]->posted;
	step = left / UNPOSTED_SAMPLES + 1;
	for (i = 0; i < t->nflows; i++) {
		const struct pair *p = t->flows[i];

		for (op = p->posted; op < p->overdue; op += n) {
			n = RTE_MIN(step, p->overdue - op);
			schedule_latency(s, (op + n / 2 - p->first) * t->nflows + p->turn, s->end,
					 &latency);
			hist_add_many(&t->test->lat, latency, n);
		}
	}
	t->test->res.unposted += left;
}
