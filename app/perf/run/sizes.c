/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Runs the sizes of a test, one after the other.
 *
 * Between the sizes perftest exchanges keys in bandwidth tests if both ends send, and in all SEND
 * tests. After each size of a bandwidth test in both directions it exchanges reports. All other
 * tests have no message over TCP between sizes.
 */
#include "perf.h"

void
sizes_end(struct perf *p)
{
	struct size_result *s = &p->res.sizes[p->res.n_sizes++];

	s->size = p->size;
	s->messages = p->res.messages;
	s->sent = p->done;
	s->received = p->recv_done;
	s->samples = p->res.lat.count;
	s->peer = p->res.peer;
	s->peer_reported = p->res.peer_reported;
	report_figures(p, &s->figures);
	report_size(p, s);
}

static int
run_one(struct perf *p)
{
	if (p->o.proto->bandwidth)
		return run_bw(p);
	if (p->o.proto->verb == VERB_WRITE)
		return run_write_lat(p);
	if (p->o.proto->verb == VERB_SEND)
		return run_send_lat(p);
	return run_lat(p);
}

int
sizes_run(struct perf *p)
{
	bool send = p->o.proto->verb == VERB_SEND, bw = p->o.proto->bandwidth;
	bool both = p->o.bidirectional, all = p->o.all;
	uint32_t i, n = options_sizes(&p->o);

	/*
	 * A server that is only the target of one-sided operations gets no message before the end
	 * of the test.
	 */
	if (p->server && !both && !send && (bw || p->o.proto->verb != VERB_WRITE)) {
		perf_begin_size(p, p->o.size);
		p->patient = !p->attr.counters;
		return 0;
	}
	for (i = 0; i < n; i++) {
		if (i > 0)
			perf_begin_size(p, options_size(&p->o, i));
		if (send && perf_post_recvs(p) != 0)
			return -1;
		if ((send || both) && perftest_sync(p, "keys, before the messages") != 0)
			return -1;
		if (run_one(p) != 0)
			return -1;
		if (both && all && !send && perftest_sync(p, "keys, after the messages") != 0)
			return -1;
		if (both && !(send && p->o.duration > 0) && perftest_reports(p) != 0)
			return -1;
		sizes_end(p);
		if (send && bw && all && perftest_sync(p, "keys, after the messages") != 0)
			return -1;
	}
	return 0;
}
