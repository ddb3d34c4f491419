/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Latency tests, with one message in flight. As in perftest, the time from one post to the next is
 * measured. If both processes send alternately, that is a round trip.
 */
#include <rte_cycles.h>

#include "perf.h"

/* Posts the next message and adds the time since the previous post to the latencies. */
static int
post_timed(struct perf *p)
{
	uint64_t now = rte_rdtsc();
	int rc;

	if (p->posted == 0 && p->o.duration == 0)
		p->res.start = now;
	else if (p->posted > 0 && window_counts(p))
		hist_add(&p->res.lat, now - p->last_post);
	p->last_post = now;
	rc = perf_post(p, &p->qps[0], true);
	if (rc == -EAGAIN)
		say("the send queue is full at message %" PRIu64
		    ", but all messages before it are complete",
		    p->posted);
	if (rc != 0)
		return -1;
	bb_qp_ring(p->qps[0].qp);
	return 0;
}

static int
finished(struct perf *p)
{
	if (p->o.duration > 0 && p->res.messages > 0)
		return 0;
	if (p->o.duration > 0) {
		say("no message was measured: --duration %u is too short, or the peer ended",
		    p->o.duration);
		return -1;
	}
	p->res.end = rte_rdtsc();
	p->res.messages = p->o.iters;
	return 0;
}

/*
 * Each process sends when its previous message is complete and the peer's next message has arrived.
 * The client starts. The server sends back the data that it received.
 */
int
run_pingpong(struct perf *p)
{
	uint64_t n = p->o.iters, ahead = p->server ? 1 : 0, looked = 0;
	bool fill = p->o.check && is_client(p);

	while (p->done < n || p->recv_done < n) {
		if (p->o.check && looked < p->recv_done) {
			if (check_pingpong(p, looked, p->last_msg) != 0)
				return -1;
			looked = p->recv_done;
		}
		if (p->posted < n && p->done == p->posted && p->recv_done >= p->posted + ahead) {
			if (p->server)
				p->qps[0].src = p->last_msg;
			else if (fill)
				check_pingpong_fill(p, p->posted);
			if (post_timed(p) != 0)
				return -1;
		}
		if (perf_step(p) < 0)
			return -1;
	}
	if (p->o.check && looked < n && check_pingpong(p, n - 1, p->last_msg) != 0)
		return -1;
	return finished(p);
}

/* Waits until the last byte of the peer's message has the value of message count @n. */
static int
wait_written(struct perf *p, uint64_t n)
{
	const uint8_t *last = p->qps[0].in + p->size - 1;

	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != (uint8_t)n && !window_over(p))
		if (perf_step(p) < 0)
			return -1;
	if (window_over(p))
		return 0;
	p->recv_done = n;
	perf_progress(p);
	return p->o.check ? check_write_lat(p, n) : 0;
}

/*
 * WRITE latency test. The server sends first, and the client waits first. A WRITE makes no CQE at
 * its target, so both ends poll memory.
 */
int
run_write_lat(struct perf *p)
{
	uint64_t n = p->o.iters, seen = 0;

	window_start(p);
	while ((p->posted < n || seen < n) && !window_over(p)) {
		if (seen < n && !(p->posted == 0 && p->server)) {
			if (wait_written(p, seen + 1) != 0)
				return -1;
			seen++;
		}
		if (p->posted < n && !window_over(p)) {
			p->qps[0].out[p->size - 1] = (uint8_t)(p->posted + 1);
			if (post_timed(p) != 0 || perf_wait(p, p->posted, 0) != 0)
				return -1;
		}
	}
	return finished(p);
}

/* Latency tests of READ and atomics. Only the client sends requests. */
int
run_lat(struct perf *p)
{
	window_start(p);
	while (p->posted < p->o.iters && !window_over(p))
		if (post_timed(p) != 0 || perf_wait(p, p->posted, 0) != 0)
			return -1;
	if (finished(p) != 0)
		return -1;
	return p->o.check && p->o.proto->verb == VERB_READ ? check_reads(p) : 0;
}

int
run_send_lat(struct perf *p)
{
	uint64_t n = p->o.iters, seen = 0;

	/* With --duration the time starts when the first message is received (received()). */
	while ((p->posted < n || seen < n) && !window_over(p)) {
		if (seen < n && !(p->posted == 0 && is_client(p))) {
			if (perf_wait(p, 0, seen + 1) != 0)
				return -1;
			seen++;
		}
		if (p->posted < n && !window_over(p) &&
		    (post_timed(p) != 0 || perf_wait(p, p->posted, 0) != 0))
			return -1;
	}
	return finished(p);
}
