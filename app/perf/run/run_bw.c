/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Bandwidth tests, with many messages in flight. */
#include <rte_cycles.h>

#include "perf.h"

/*
 * Search for the fastest interval. An interval ends when at least a tenth of all messages were both
 * posted and completed since its begin. Messages posted before do not count, because one poll can
 * find many of their completions at once.
 */
struct peak_interval {
	uint64_t least, at, first;
};

static void
peak_start(struct perf *p, struct peak_interval *s)
{
	s->least = p->target / 10 > 0 ? p->target / 10 : 1;
	s->at = p->res.start;
	s->first = 0;
}

static void
peak_update(struct perf *p, struct peak_interval *s)
{
	struct result *r = &p->res;
	uint64_t now, cycles, messages;

	if (p->done < s->first + s->least)
		return;
	now = rte_rdtsc();
	cycles = now > s->at ? now - s->at : 1;
	messages = p->done - s->first;
	if (r->peak_messages == 0 ||
	    (double)messages / (double)cycles > (double)r->peak_messages / (double)r->peak_cycles) {
		r->peak_messages = messages;
		r->peak_cycles = cycles;
	}
	s->at = now;
	s->first = p->posted;
}

/* Posts messages on @q until its queue is full. Returns 0 or -1. */
static int
post_many(struct perf *p, struct perf_qp *q)
{
	uint64_t n = p->o.iters, before = q->posted;
	int rc = 0;

	while (q->posted < n && q->posted - q->done < p->o.tx_depth) {
		rc = perf_post(p, q, (q->posted + 1) % p->cq_mod == 0 || q->posted + 1 == n);
		if (rc != 0)
			break;
	}
	if (q->posted != before)
		bb_qp_ring(q->qp);
	return rc == -EAGAIN ? 0 : rc;
}

/*
 * Waits after --duration until all one-sided requests have completed, so that the counters of both
 * ends agree. The peer's device executes such requests until TCP is closed. Not used for SENDs, for
 * which the peer posts no receives any more.
 */
static int
drain(struct perf *p)
{
	struct perf_qp *q;
	uint32_t i;
	int rc;

	for (i = 0; i < p->o.qps; i++) {
		q = &p->qps[i];
		while (q->done < q->posted) {
			if (q->signaled < q->posted) {
				rc = perf_post(p, q, true);
				if (rc == 0)
					bb_qp_ring(q->qp);
				else if (rc != -EAGAIN)
					return -1;
			}
			if (perf_step(p) < 0)
				return -1;
		}
	}
	return 0;
}

/*
 * An end that receives does not know when the peer has posted its first message. So, as in
 * perftest, the measured time of that end starts when the first message has arrived. If both ends
 * send, the server also waits for that message before it sends.
 */
int
run_bw(struct perf *p)
{
	bool send = p->o.proto->verb == VERB_SEND, sends = perf_sends(p);
	bool receives = send && (p->server || p->o.bidirectional), after = send && p->server;
	uint64_t to_send = sends ? p->target : 0, to_receive = receives ? p->target : 0;
	struct peak_interval s;
	uint32_t i;

	if (after && perf_wait(p, 0, 1) != 0)
		return -1;
	window_start(p);
	if (p->o.duration == 0)
		p->res.start = rte_rdtsc();
	peak_start(p, &s);
	while ((p->done < to_send || p->recv_done < to_receive) && !window_over(p)) {
		for (i = 0; sends && i < p->o.qps; i++)
			if (post_many(p, &p->qps[i]) != 0)
				return -1;
		if (perf_step(p) < 0)
			return -1;
		if (sends && p->o.duration == 0)
			peak_update(p, &s);
	}
	if (p->o.duration > 0 && p->res.messages == 0) {
		say("no message was measured: --duration %u is too short", p->o.duration);
		return -1;
	}
	if (p->o.duration > 0)
		return send ? 0 : drain(p);
	p->res.end = rte_rdtsc();
	p->res.messages = p->target;
	return p->o.check && p->o.proto->verb == VERB_READ ? check_reads(p) : 0;
}
