/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Bandwidth tests, with many messages in flight. */
#include <rte_cycles.h>

#include "perf.h"

/* State of the search for the fastest interval with at least a tenth of the messages. */
struct peak_interval {
	uint64_t least, at, count;
};

static void
peak_start(struct perf *p, struct peak_interval *s, uint64_t count)
{
	s->least = p->o.iters / 10 > 0 ? p->o.iters / 10 : 1;
	s->at = p->res.start;
	s->count = count;
}

static void
peak_update(struct perf *p, struct peak_interval *s, uint64_t count)
{
	uint64_t now, cycles, messages = count - s->count;
	struct result *r = &p->res;

	if (messages < s->least)
		return;
	now = rte_rdtsc();
	cycles = now - s->at;
	if (r->peak_messages == 0 ||
	    (double)messages / (double)cycles > (double)r->peak_messages / (double)r->peak_cycles) {
		r->peak_messages = messages;
		r->peak_cycles = cycles > 0 ? cycles : 1;
	}
	s->at = now;
	s->count = count;
}

int
run_bw(struct perf *p)
{
	uint64_t n = p->o.iters, before;
	struct peak_interval s;
	int rc;

	p->res.start = rte_rdtsc();
	peak_start(p, &s, 0);
	while (p->done < n) {
		before = p->posted;
		while (p->posted < n && p->posted - p->done < p->o.tx_depth) {
			rc = perf_post(p, (p->posted + 1) % p->o.cq_mod == 0 || p->posted + 1 == n);
			if (rc == -EAGAIN)
				break;
			if (rc != 0)
				return -1;
		}
		if (p->posted != before)
			bb_qp_ring(p->qp);
		if (perf_step(p) < 0)
			return -1;
		peak_update(p, &s, p->done);
	}
	p->res.end = rte_rdtsc();
	p->res.messages = n;
	return p->o.check && p->o.proto->verb == VERB_READ ? check_reads(p) : 0;
}

/*
 * Starts the time at the first received message, as perftest does, because the time of its post is
 * unknown.
 */
int
run_send_bw_server(struct perf *p)
{
	uint64_t n = p->o.iters;
	struct peak_interval s;

	if (perf_wait(p, 0, 1) != 0)
		return -1;
	p->res.start = rte_rdtsc();
	peak_start(p, &s, p->recv_done);
	while (p->recv_done < n) {
		if (perf_step(p) < 0)
			return -1;
		peak_update(p, &s, p->recv_done);
	}
	p->res.end = rte_rdtsc();
	p->res.messages = n;
	return 0;
}
