/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Waits for a peer that may be gone, and runs the device meanwhile. */
#include <rte_cycles.h>

#include "perf.h"

#define CHECK_EVERY 65536u /* idle polls between two checks of the clock */

static int
look_at_events(struct perf *p)
{
	struct bb_event event;

	while (bb_event_get(p->dev, &event) == 0) {
		if (event.type == BB_EVENT_QP_COMM_EST || event.type == BB_EVENT_PORT_CHANGE ||
		    event.type == BB_EVENT_PORT_ACTIVE)
			continue;
		if (event.type == BB_EVENT_PORT_DOWN) {
			say("the port of %s is down; waiting up to %u s for the link",
			    bb_dev_name(p->dev), p->o.seconds);
			continue;
		}
		say("the device reports \"%s\": the peer sent what its rights or the local "
		    "memory do not allow; is the peer's --size the same?",
		    bb_event_name(event.type));
		return -1;
	}
	return 0;
}

int
perf_stopped(const struct perf *p)
{
	say("stopped after %" PRIu64 " messages sent and %" PRIu64 " received", p->done,
	    p->recv_done);
	return -1;
}

int
perf_idle(struct perf *p)
{
	uint64_t now, served;

	if (++p->spins % CHECK_EVERY != 0)
		return 0;
	if (stop_signal != 0)
		return perf_stopped(p);
	if (look_at_events(p) != 0)
		return -1;
	now = rte_rdtsc();
	/* ibv_*_pingpong closes its connection before the test. */
	if (p->o.proto->verb != VERB_PINGPONG && peer_gone(p)) {
		/*
		 * The peer's last messages may still be arriving, so gives up only at the second
		 * check.
		 */
		if (p->peer_gone) {
			if (window_cut(p))
				return 0;
			say("the peer has closed the connection after %" PRIu64 " messages sent "
			    "to it and %" PRIu64 " received from it; see the peer's output",
			    p->done, p->recv_done);
			return -1;
		}
		p->peer_gone = true;
		return 0;
	}
	if (now - p->last_progress < p->limit)
		return 0;
	served = perf_served(p);
	if (served != p->last_served) {
		p->last_served = served;
		p->last_progress = now;
		return 0;
	}
	say("no message in %u s (--silence); of %" PRIu64 " messages of %u bytes %" PRIu64
	    " were posted, %" PRIu64 " completed, %" PRIu64 " received. %s",
	    p->o.seconds, p->target, p->size, p->posted, p->done, p->recv_done,
	    p->o.type == BB_QPT_RC
		    ? "Are the peer's -n, -q, -a, -b and -D the same, and does it still run?"
		    : "UC and UD do not repeat lost packets: try again, or give a smaller "
		      "--tx-depth");
	return -1;
}

void
perf_linger(struct perf *p, double seconds)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(seconds * (double)p->tsc_hz);

	/* Does nothing for UD and UC, which have no acknowledgements. */
	if (p->o.type != BB_QPT_RC)
		return;
	while (rte_rdtsc() < end && stop_signal == 0)
		bb_dev_progress(p->dev);
}
