/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The sizes of a test, one after the other.
 *
 * Between the sizes perftest exchanges keys in bandwidth tests if both ends send, and in all SEND
 * tests. After each size of a bandwidth test in both directions it exchanges reports. All other
 * tests have no message over TCP between sizes.
 */
#include <rte_common.h>

#include "perf.h"

uint32_t
sizes_count(const struct perf *p)
{
	uint32_t n = 0;

	if (!p->o.all)
		return 1;
	while (n < SIZE_COUNT && SIZE_MIN << n <= p->o.size)
		n++;
	return n;
}

uint32_t
sizes_get(const struct perf *p, uint32_t i)
{
	return p->o.all ? SIZE_MIN << i : p->o.size;
}

void
sizes_begin(struct perf *p, uint32_t size)
{
	uint32_t i;

	p->size = size;
	/* A message above 8 KiB has a completion of its own, so that the rate is smooth. */
	p->cq_mod = p->o.all && !p->o.cq_mod_given && size > 8192 ? 1 : p->o.cq_mod;
	if (p->o.proto->bandwidth)
		msg_cycle_of(&p->layout, size, p->cycle, p->line);
	if (p->rq_depth > 0) {
		p->recv_step = (uint32_t)RTE_ALIGN_CEIL(size + UD_GRH, 64u);
		p->recv_slots = (uint32_t)RTE_MIN(p->rq_depth, p->in_size / p->recv_step);
	}
	p->total_sent += p->done;
	p->total_received += p->recv_done;
	p->posted = p->done = p->recv_done = 0;
	for (i = 0; i < p->o.qps; i++) {
		struct perf_qp *q = &p->qps[i];

		q->total_sent += q->done;
		q->total_received += q->recv_done;
		q->posted = q->done = q->signaled = q->recv_posted = q->recv_done = 0;
	}
	hist_reset(&p->res.lat);
	p->res.messages = p->res.peak_messages = p->res.peak_cycles = 0;
	p->res.peer_reported = false;
	p->window.state = WINDOW_IDLE;
	check_next_size(p);
}

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
	uint32_t i, n = sizes_count(p);

	/*
	 * A server that is only the target of one-sided operations gets no message before the end
	 * of the test.
	 */
	if (p->server && !both && !send && (bw || p->o.proto->verb != VERB_WRITE)) {
		sizes_begin(p, p->o.size);
		return 0;
	}
	for (i = 0; i < n; i++) {
		if (i > 0)
			sizes_begin(p, sizes_get(p, i));
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
