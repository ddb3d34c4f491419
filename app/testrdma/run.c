/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Runs a test: first the rate phase, then the latency phase. With --verify each phase repeats three
 * steps until its time is over: prepare the memory, time some operations, check the memory.
 * Completions are always checked (check.c).
 */
#include <math.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "remote.h"
#include "stall.h"

#define LIVE_HZ      100
#define ENDLESS      1e8 /* s; hundreds of thousands of hours */
#define CHECK_PASSES 16  /* maximum passes of the loop between two checks of the clock */
#define SPINS        4096 /* polls between two checks of the clock while one operation is outstanding */
/* bytes transferred between two checks of the clock, unless one pass over all pairs has more */
#define CHECK_BYTES (256u << 10)

static void
poll_once(struct tester *t, struct watch *w)
{
	w->count += flows_poll(t);
	if (unlikely(t->orders))
		w->count += remote_read_counts(t);
}

void
live_update(struct tester *t)
{
	struct live *live = t->live;
	uint32_t request;

	__atomic_store_n(&live->ops, flows_done(t), __ATOMIC_RELAXED);
	__atomic_store_n(&live->bytes, t->test->res.bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&live->errors, t->test->res.errors, __ATOMIC_RELAXED);
	/*
	 * While request is set, this thread owns the histogram in struct live. The main thread has
	 * set request, and owns the histogram again after request is cleared.
	 */
	request = __atomic_load_n(&live->request, __ATOMIC_ACQUIRE);
	if (request == LIVE_LATENCY)
		live->lat = t->test->lat;
	else if (request == LIVE_CLEAR)
		hist_reset(&t->test->lat);
	if (request != LIVE_NONE)
		__atomic_store_n(&live->request, LIVE_NONE, __ATOMIC_RELEASE);
	t->live_at = rte_rdtsc();
}

static void
show_progress(struct tester *t, const struct watch *w, uint64_t now)
{
	if (t->live == NULL)
		report_progress(t, w->phase);
	else if (now - t->live_at >= t->tsc_hz / LIVE_HZ)
		live_update(t);
}

static void
check_end(struct tester *t, struct watch *w)
{
	uint64_t now = rte_rdtsc();
	uint32_t i;
	bool over;

	stalled(t, w, now);
	over = now >= w->deadline || tester_stopping(t);
	if (t->orders)
		remote_roll(t, over);
	if (over && t->schedule.on)
		pace_end(t, now);
	if (over) {
		/*
		 * A span (the timed operations of a round) without a given number of operations
		 * must end with a signalled operation.
		 */
		for (i = 0; i < t->nflows; i++) {
			struct pair *p = t->flows[i];

			if (p->end != UINT64_MAX)
				continue;
			if (t->test->e->ping_pong && p->reverse)
				p->end = p->twin->end;
			else
				p->end = p->posted == p->last_sig ? p->posted : p->sig_at;
		}
	}
	show_progress(t, w, now);
}

/*
 * Returns the number of passes between two checks of the clock, if a pass moves @ops operations. It
 * is 1 if a pass moves CHECK_BYTES or more.
 */
static uint32_t
check_interval(const struct test *test, uint32_t ops)
{
	uint64_t rounds = CHECK_BYTES / ((uint64_t)test->size * ops);

	return (uint32_t)RTE_MAX(1u, RTE_MIN(rounds, CHECK_PASSES));
}

static bool
post_receives(struct tester *t, struct pair *p, uint32_t n)
{
	int rc;

	if (!t->test->e->recv || p->peer == NULL)
		return true;
	rc = t->test->e->post_recv(p, n);
	if (unlikely(rc != (int)n)) {
		report_fail(t, "pair %u: %d of %u receives posted: %s", p->index, rc, n,
			    rc < 0 ? strerror(-rc)
				   : "the receive queue is full before its depth is reached");
		t->fatal = true;
		return false;
	}
	bb_qp_ring_recv(p->peer);
	return true;
}

static bool
post_operations(struct tester *t, struct pair *p, uint32_t n)
{
	int rc = t->test->e->post(p, n);

	if (unlikely(rc != (int)n)) {
		report_fail(t, "pair %u: %d of %u operations posted: %s", p->index, rc, n,
			    rc < 0 ? strerror(-rc)
				   : "the send queue is full before its depth is reached");
		t->fatal = true;
		return false;
	}
	bb_qp_ring(p->qp);
	return true;
}

/* Posts receives for messages of another process, as many as may be outstanding. */
static void
post_remote_receives(struct tester *t, struct pair *p)
{
	uint64_t most = RTE_MIN(t->o.depth, t->test->slots), n = p->end - p->recv_posted;

	n = RTE_MIN(n, most - (p->recv_posted - p->recv_done));
	if (n > 0 && p->peer != NULL)
		post_receives(t, p, (uint32_t)n);
}

/* Returns true if @p may send its next message of a round trip. */
static bool
may_send(const struct pair *p)
{
	const struct pair *back = p->twin;

	if (p->posted == back->recv_done + !p->reverse)
		return false;
	/*
	 * The returned message needs a receive at the initiator. Within one process that receive is
	 * posted together with the message. Otherwise it must be posted before the message is sent.
	 */
	return p->reverse || back->qp != NULL || back->recv_posted > p->posted;
}

/* Posts the next burst of operations of @p if its queues have room. */
void
flow_post(struct tester *t, struct pair *p)
{
	const struct test *test = t->test;
	uint64_t left = p->end - p->posted, room = test->window - (p->posted - p->done);
	uint32_t n = test->burst;

	if (p->qp == NULL) {
		if (test->e->recv)
			post_remote_receives(t, p);
		return;
	}
	if (t->schedule.on)
		left = RTE_MIN(left, p->due - p->posted);
	if (test->e->ping_pong && !may_send(p))
		return;
	if (test->e->recv && p->peer != NULL)
		room = RTE_MIN(room, test->window - (p->recv_posted - p->recv_done));
	else if (test->e->recv)
		room = RTE_MIN(room, p->recv_posted - p->posted);
	if (n > left)
		n = (uint32_t)left;
	if (n == 0)
		return;
	if (room < n) {
		/* Waits for room for a whole burst, unless no operation in flight can make room. */
		if (!t->schedule.on &&
		    (p->done < p->last_sig || (test->e->recv && p->recv_done < p->posted)))
			return;
		n = (uint32_t)room;
		if (n == 0)
			return;
	}
	if (post_receives(t, p, n))
		post_operations(t, p, n);
}

static uint64_t
doorbells(const struct tester *t)
{
	struct bb_qp_stats stats;
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < t->nflows; i++)
		if (t->flows[i]->qp != NULL && bb_qp_stats(t->flows[i]->qp, &stats) == 0)
			n += stats.doorbells;
	return n;
}

static void
span_open(struct tester *t, struct pair *p, uint64_t ops)
{
	if (t->orders)
		remote_open(p, ops);
	else
		flow_open(p, ops == 0 ? UINT64_MAX : p->posted + ops);
}

/*
 * Runs and times @ops operations on every flow. If @ops is 0, runs operations until the deadline.
 */
static void
span(struct tester *t, struct watch *w, uint64_t ops)
{
	struct result *res = &t->test->res;
	uint64_t start, before = flows_done(t), bells = doorbells(t);
	uint32_t i, open, loops = 0, every = check_interval(t->test, t->test->burst);

	for (i = 0; i < t->nflows; i++)
		span_open(t, t->flows[i], ops);
	start = rte_rdtsc();
	w->last_progress = start;
	if (t->test->rate != 0)
		pace_begin(t, start);
	do {
		if (t->schedule.on)
			pace_roll(t, rte_rdtsc());
		open = 0;
		for (i = 0; i < t->nflows; i++) {
			if (flow_finished(t->flows[i]))
				continue;
			open++;
			flow_post(t, t->flows[i]);
		}
		poll_once(t, w);
		if (++loops >= every) {
			loops = 0;
			check_end(t, w);
		}
	} while (open > 0 && !t->fatal);
	res->cycles += rte_rdtsc() - start;
	res->ops += flows_done(t) - before;
	res->doorbells += doorbells(t) - bells;
	if (t->schedule.on && t->schedule.limit != UINT64_MAX)
		pace_unposted(t);
	t->schedule.on = false;
}

/*
 * Waits until the only outstanding operation of @p completes. @return TSC at which the completion
 * was polled.
 */
static uint64_t
wait_done(struct tester *t, struct watch *w, struct pair *p)
{
	uint64_t now = 0;
	uint32_t spins = 0;
	struct bb_wc wc;

	while (p->done != p->end && !t->fatal) {
		if (bb_cq_poll(t->scq, &wc, 1) == 1) {
			now = rte_rdtsc();
			w->count++;
			send_completed(t, &wc);
		} else if (++spins % SPINS == 0) {
			stalled(t, w, rte_rdtsc());
		}
	}
	return now;
}

/*
 * Waits until the only message of @p is returned. If the target is in this process, sends the
 * message back when it has arrived. @return TSC at which the returned message was polled.
 */
static uint64_t
wait_reply(struct tester *t, struct watch *w, struct pair *p)
{
	struct pair *back = p->twin;
	uint64_t now = 0;
	uint32_t spins = 0;
	struct bb_wc wc;

	while (back->recv_done != back->end && !t->fatal) {
		if (bb_cq_poll(t->rcq, &wc, 1) == 1) {
			now = rte_rdtsc();
			w->count++;
			recv_completed(t, &wc);
			if (back->qp != NULL && back->posted < p->recv_done && !t->fatal)
				post_operations(t, back, 1);
		} else if (++spins % SPINS == 0) {
			stalled(t, w, rte_rdtsc());
		}
	}
	return now;
}

/* Waits until the target, in another process, has reported a receive for the next message. */
static bool
credit_wait(struct tester *t, struct watch *w, const struct pair *p)
{
	w->last_progress = rte_rdtsc();
	while (t->orders && t->test->e->recv && p->recv_posted == p->posted && !t->fatal) {
		poll_once(t, w);
		stalled(t, w, rte_rdtsc());
	}
	return !t->fatal;
}

/*
 * Runs one operation of the first pair and records its latency. The latency ends with the
 * completion, or with the returned message of a round trip.
 */
static bool
run_one(struct tester *t, struct watch *w)
{
	struct pair *p = t->flows[0], *back = t->test->e->two_way ? p->twin : NULL;
	uint64_t start, end;

	span_open(t, p, 1);
	if (!post_receives(t, p, 1))
		return false;
	if (back != NULL) {
		span_open(t, back, 1);
		if (!post_receives(t, back, 1))
			return false;
		if (!t->test->e->ping_pong && back->qp != NULL && !post_operations(t, back, 1))
			return false;
	}
	if (!credit_wait(t, w, p))
		return false;
	start = rte_rdtsc();
	w->last_progress = start;
	if (!post_operations(t, p, 1))
		return false;
	end = t->test->e->ping_pong ? wait_reply(t, w, p) : wait_done(t, w, p);
	if (!t->fatal)
		hist_add(&t->test->lat, end - start);
	return !t->fatal;
}

/* Runs up to @ops operations one by one on the first pair. @return number of operations. */
static uint64_t
run_one_by_one(struct tester *t, struct watch *w, uint64_t ops)
{
	struct pair *p = t->flows[0];
	uint32_t every = check_interval(t->test, 1);
	uint64_t i, now;

	for (i = 0; i < ops && run_one(t, w); i++) {
		uint32_t spins = 0;

		while ((!flow_finished(p) || (t->test->e->two_way && !flow_finished(p->twin))) &&
		       !t->fatal) {
			poll_once(t, w);
			if (++spins % SPINS == 0)
				stalled(t, w, rte_rdtsc());
		}
		if (i % every == 0) {
			now = rte_rdtsc();
			show_progress(t, w, now);
			if (now >= w->deadline || tester_stopping(t))
				return i + 1;
		}
	}
	return i;
}

static void
prepare(struct tester *t, uint32_t nflows, uint64_t n)
{
	uint32_t i;

	for (i = 0; i < nflows; i++)
		t->test->e->prepare(t->flows[i], t->flows[i]->posted, n);
	remote_push(t);
}

static void
rate_phase(struct tester *t, uint64_t cycles)
{
	uint64_t ops = t->test->slots;
	struct watch w = {.deadline = rte_rdtsc() + cycles, .phase = "rate"};

	if (!t->o.verify) {
		span(t, &w, 0);
		return;
	}
	/* With --rate, a round has at most the operations due in a quarter of the phase. */
	if (t->test->rate != 0)
		ops = RTE_MAX(1u, RTE_MIN(ops, cycles / 4 * t->test->rate / t->tsc_hz / t->nflows));
	do {
		prepare(t, t->nflows, ops);
		span(t, &w, ops);
		if (t->fatal)
			return;
		remote_pull(t);
		round_verify(t, t->nflows, ops);
		w.phase = "verify";
		show_progress(t, &w, rte_rdtsc());
		w.phase = "rate";
	} while (rte_rdtsc() < w.deadline && !tester_stopping(t));
}

static void
latency_phase(struct tester *t, uint64_t cycles)
{
	struct watch w = {.deadline = rte_rdtsc() + cycles, .phase = "latency"};
	uint32_t flows = t->test->e->two_way ? 2 : 1;
	uint64_t n;

	do {
		if (t->o.verify)
			prepare(t, flows, t->test->slots);
		n = run_one_by_one(t, &w, t->test->slots);
		if (t->fatal)
			return;
		if (t->o.verify) {
			remote_pull(t);
			round_verify(t, flows, n);
		}
	} while (rte_rdtsc() < w.deadline && !tester_stopping(t));
}

/* Adds flow @p to a test, and assigns the next slots in both memories to it. */
static void
flow_add(struct tester *t, struct pair *p)
{
	uint64_t slots = (uint64_t)t->nflows * t->test->slots;

	p->local = p->initiator->mem + EDGE + slots * p->initiator->lay.stride;
	p->remote = p->target->mem + EDGE + slots * p->target->lay.stride;
	p->wr_base = WR_ID(t->test_no, p->index);
	p->posted = p->done = p->last_sig = p->end = 0;
	p->recv_posted = p->recv_done = 0;
	p->slot = p->recv_slot = 0;
	p->sent_end = 0;
	p->rolling = false;
	t->flows[t->nflows++] = p;
}

static void
flows_set(struct tester *t)
{
	uint32_t i;

	t->nflows = 0;
	for (i = 0; i < t->npairs; i++) {
		flow_add(t, &t->pairs[i]);
		if (t->test->e->two_way)
			flow_add(t, &t->twins[i]);
	}
}

void
test_run(struct tester *t, struct test *test)
{
	bool endless = isinf(t->o.duration) != 0;
	bool paced = test->rate != 0; /* true if the rate phase also measures the latencies */
	double rate = endless ? 0.09 : t->o.duration / 2, hz = (double)t->tsc_hz;
	uint32_t i;

	t->test = test;
	t->stop_seen = 0;
	memset(&test->res, 0, sizeof(test->res));
	hist_reset(&test->lat);
	flows_set(t);
	test_fill(t);
	for (i = 0; i < t->nflows && test->e->start != NULL; i++)
		test->e->start(t->flows[i]);
	remote_push(t);
	remote_test(t);

	/*
	 * In a test without a given end the rate phase and the latency phase alternate. A tenth of
	 * each 100 ms is the latency phase. An open loop has only the rate phase, and ends only at
	 * the user's command, because its operations wait for late ones before them. With --verify
	 * each round has a schedule of its own anyway.
	 */
	if (endless && paced && !t->o.verify)
		rate = ENDLESS;
	do {
		if (!t->fatal)
			rate_phase(t, (uint64_t)((paced ? 2 * rate : rate) * hz));
		if (!t->fatal && !tester_stopping(t) && !paced)
			latency_phase(t, (uint64_t)((endless ? 0.01 : rate) * hz));
	} while (endless && !t->fatal && !tester_stopping(t));
	test->complete = !t->fatal && (endless || !tester_stopping(t));
	test->lcores = 1;
	if (test->e->pick != NULL)
		mixed_count(t, test->res.kinds);
	if (t->live != NULL)
		live_update(t);
}
