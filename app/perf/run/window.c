/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * --duration: the second and third quarter of the time are measured, the first and the last are
 * not. So both ends send during each other's measurement, although they do not start at the same
 * moment. perftest does this too, but rounds the quarter to whole seconds.
 */
#include <rte_cycles.h>

#include "perf.h"

/* Minimum number of measured messages; a latency is the time between two messages. */
#define MEASURED_MIN 2

/*
 * Returns the number of messages as perftest counts them. A bandwidth test of SENDs counts the sent
 * messages of an end that sends, plus the received messages. All other tests count completed
 * requests.
 */
static uint64_t
counted(const struct perf *p)
{
	bool bw = p->o.proto->bandwidth;

	if (p->o.proto->verb != VERB_SEND || !bw)
		return p->done;
	return (perf_sends(p) ? p->done : 0) + p->recv_done;
}

/* Returns a quarter of --duration in TSC cycles, rounded up. */
static uint64_t
quarter(const struct perf *p)
{
	return (p->o.duration * p->tsc_hz + 3) / 4;
}

void
window_start(struct perf *p)
{
	struct window *w = &p->window;

	if (p->o.duration == 0 || w->state != WINDOW_IDLE)
		return;
	w->state = WINDOW_START;
	w->until = rte_rdtsc() + quarter(p);
}

void
window_update(struct perf *p)
{
	struct window *w = &p->window;
	uint64_t now;

	if (w->state == WINDOW_IDLE || w->state == WINDOW_ENDED)
		return;
	now = rte_rdtsc();
	/*
	 * Each part begins when the previous part has ended. So no part becomes shorter, even if
	 * this process did not run for a while. The measured part lasts until at least MEASURED_MIN
	 * messages were counted.
	 */
	if (w->state == WINDOW_START && now >= w->until) {
		w->state = WINDOW_OPEN;
		w->until = now + 2 * quarter(p);
		w->count = counted(p);
		p->res.start = now;
	} else if (w->state == WINDOW_OPEN &&
		   ((now >= w->until && counted(p) >= w->count + MEASURED_MIN) || w->cut)) {
		w->state = WINDOW_TAIL;
		w->until = now + quarter(p);
		p->res.end = now;
		p->res.messages = counted(p) - w->count;
	}
	if (w->state == WINDOW_TAIL && (now >= w->until || w->cut))
		w->state = WINDOW_ENDED;
}

bool
window_over(const struct perf *p)
{
	return p->window.state == WINDOW_ENDED;
}

bool
window_counts(const struct perf *p)
{
	return p->o.duration == 0 || p->window.state == WINDOW_OPEN;
}

bool
window_cut(struct perf *p)
{
	struct window *w = &p->window;

	if (p->o.proto->verb != VERB_WRITE || p->o.proto->bandwidth || w->state < WINDOW_OPEN)
		return false;
	if (w->state == WINDOW_OPEN)
		say("the peer ended before --duration; the figures are those of %.2f s",
		    (double)(rte_rdtsc() - p->res.start) / (double)p->tsc_hz);
	w->cut = true;
	window_update(p);
	return true;
}
