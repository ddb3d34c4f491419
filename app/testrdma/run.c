/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A row: rate first, then latency, each in rounds until its time is over.
 *
 * What completions say is always checked: order, status, opcode, length,
 * immediate data. Memory is checked between the timed spans, with --verify.
 */
#include <math.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "remote.h"

#define STALL_SECONDS 5
#define LIVE_HZ       100
#define LOOK_EVERY    16 /* rounds of the loop between looks at the clock */

/* What is looked at now and then while a phase runs. */
struct watch {
	uint64_t deadline; /* TSC; rolling spans end there */
	uint64_t moved;    /* when the number of completions last changed */
	uint64_t seen;     /* completions then */
	uint64_t count;    /* completions */
	const char *phase;
};

static void
wc_failed(struct test *t, const struct pair *p, const struct bb_wc *wc, const char *side)
{
	char text[BB_ERROR_TEXT_MAX];

	/* The first one names the cause; the flush behind it only follows. */
	if (!t->fatal)
		report_fail(t,
			    "operation %" PRIu64
			    " of pair %u (QP 0x%x) completed at the %s with \"%s\", "
			    "syndrome 0x%02x, vendor syndrome 0x%02x: %s",
			    wc->wr_id & ((UINT64_C(1) << 40) - 1), p->index, wc->qp->qpn, side,
			    bb_wc_status_name(wc->status), wc->syndrome, wc->vendor_err,
			    bb_wc_status_cause(wc->status, wc->vendor_err));
	else
		t->row->res.errors++;
	/* With the WQE and what its keys allow. */
	if (!t->fatal && bb_qp_error_text(wc->qp, text, sizeof(text)) > 0)
		fputs(text, stderr);
	t->fatal = true;
}

/* Who sees the completion may use the result. What is missing then may be there later. */
static void
arrived_check(struct test *t, struct pair *p, uint64_t op)
{
	struct result *res = &t->row->res;

	/* The memory of another process cannot be looked at meanwhile. */
	if (t->cm != NULL && t->row->e->to_target)
		return;
	if (likely(t->row->e->arrived(p, op)))
		return;
	if (res->late++ == 0)
		res->first_late = op;
}

static void
send_completed(struct test *t, const struct bb_wc *wc)
{
	struct pair *p = wc->qp->user;
	const struct row *row = t->row;
	uint64_t want;

	if (unlikely(wc->status != BB_WC_SUCCESS)) {
		wc_failed(t, p, wc, "initiator");
		return;
	}
	want = p->done + row->signal_every;
	if (want > p->end)
		want = p->end;
	if (unlikely(wc->wr_id != p->wr_base + want - 1 || want > p->posted)) {
		report_fail(t,
			    "completion out of order on pair %u: wr_id 0x%" PRIx64
			    ", expected 0x%" PRIx64 " (operation %" PRIu64 ")",
			    p->index, wc->wr_id, p->wr_base + want - 1, want - 1);
		t->fatal = true;
		return;
	}
	if (unlikely(wc->opcode != row->e->wc_opcode))
		report_fail(t,
			    "operation %" PRIu64
			    " of pair %u: completion says opcode %u, expected %u",
			    want - 1, p->index, wc->opcode, row->e->wc_opcode);
	if (row->e->has_byte_len && unlikely(wc->byte_len != row->size))
		report_fail(t,
			    "operation %" PRIu64
			    " of pair %u: completion says %u bytes, expected %u",
			    want - 1, p->index, wc->byte_len, row->size);
	if (t->o.verify)
		arrived_check(t, p, want - 1);
	p->done = want;
}

static void
recv_completed(struct test *t, const struct bb_wc *wc)
{
	struct pair *p = wc->qp->user;
	const struct engine *e = t->row->e;
	uint64_t op = p->recv_done;

	if (unlikely(wc->status != BB_WC_SUCCESS)) {
		wc_failed(t, p, wc, "target");
		return;
	}
	if (unlikely(wc->wr_id != (WR_RECV | (p->wr_base + op)) || op >= p->posted)) {
		report_fail(t,
			    "receive out of order on pair %u: wr_id 0x%" PRIx64
			    ", expected 0x%" PRIx64,
			    p->index, wc->wr_id, WR_RECV | (p->wr_base + op));
		t->fatal = true;
		return;
	}
	if (unlikely(wc->opcode != e->recv_opcode))
		report_fail(t, "receive %" PRIu64 " of pair %u: opcode %u, expected %u", op,
			    p->index, wc->opcode, e->recv_opcode);
	if (unlikely(wc->byte_len != t->row->size))
		report_fail(t, "receive %" PRIu64 " of pair %u: %u bytes, expected %u", op,
			    p->index, wc->byte_len, t->row->size);
	if (unlikely(!(wc->flags & BB_WC_WITH_IMM) != !e->imm))
		report_fail(t, "receive %" PRIu64 " of pair %u: %s immediate data", op, p->index,
			    e->imm ? "lacks" : "has");
	else if (e->imm && unlikely(wc->imm != op_imm(p, op)))
		report_fail(t, "receive %" PRIu64 " of pair %u: immediate 0x%08x, expected 0x%08x",
			    op, p->index, rte_be_to_cpu_32(wc->imm),
			    rte_be_to_cpu_32(op_imm(p, op)));
	if (t->o.verify)
		arrived_check(t, p, op);
	p->recv_done++;
	t->row->res.recvs++;
}

static void
poll_once(struct test *t, struct watch *w)
{
	struct bb_wc wc[POLL_BURST];
	unsigned int i, n;

	n = bb_cq_poll(t->scq, wc, POLL_BURST);
	for (i = 0; i < n; i++)
		send_completed(t, &wc[i]);
	w->count += n;
	if (t->row->e->recv) {
		n = bb_cq_poll(t->rcq, wc, POLL_BURST);
		for (i = 0; i < n; i++)
			recv_completed(t, &wc[i]);
		w->count += n;
	}
}

static bool
pair_finished(const struct pair *p)
{
	return p->done == p->end && (!p->t->row->e->recv || p->recv_done == p->end);
}

/* Nothing comes back: say what is missing, and give up. */
static bool
stalled(struct test *t, struct watch *w, uint64_t now)
{
	uint32_t i;

	if (w->count != w->seen) {
		w->seen = w->count;
		w->moved = now;
		return false;
	}
	if (now - w->moved < STALL_SECONDS * t->tsc_hz)
		return false;
	for (i = 0; i < t->npairs && pair_finished(&t->pairs[i]); i++)
		;
	if (i == t->npairs)
		i = 0;
	report_fail(t,
		    "no completion for %u s: pair %u posted %" PRIu64 " operations, %" PRIu64
		    " completed, %" PRIu64 " received",
		    STALL_SECONDS, i, t->pairs[i].posted, t->pairs[i].done, t->pairs[i].recv_done);
	t->fatal = true;
	return true;
}

void
live_update(struct test *t)
{
	struct live *live = t->live;
	uint64_t ops = 0;
	uint32_t i, ask;

	for (i = 0; i < t->npairs; i++)
		ops += t->pairs[i].done;
	__atomic_store_n(&live->ops, ops, __ATOMIC_RELAXED);
	__atomic_store_n(&live->bytes, t->row->res.bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&live->errors, t->row->res.errors, __ATOMIC_RELAXED);
	/* Pairs with who asks: the histogram of live is its own again once ask is. */
	ask = __atomic_load_n(&live->ask, __ATOMIC_ACQUIRE);
	if (ask == LIVE_LATENCY)
		live->lat = t->row->lat;
	else if (ask == LIVE_CLEAR)
		hist_reset(&t->row->lat);
	if (ask != LIVE_NOTHING)
		__atomic_store_n(&live->ask, LIVE_NOTHING, __ATOMIC_RELEASE);
	t->live_at = rte_rdtsc();
}

static void
show_progress(struct test *t, const struct watch *w, uint64_t now)
{
	if (t->live == NULL)
		report_progress(t, w->phase);
	else if (now - t->live_at >= t->tsc_hz / LIVE_HZ)
		live_update(t);
}

static void
look(struct test *t, struct watch *w)
{
	uint64_t now = rte_rdtsc();
	uint32_t i;

	stalled(t, w, now);
	if (now >= w->deadline || test_stopping(t)) {
		/* A rolling span ends behind an operation that gives a completion. */
		for (i = 0; i < t->npairs; i++) {
			struct pair *p = &t->pairs[i];

			if (p->end == UINT64_MAX)
				p->end = p->posted == p->last_sig ? p->posted : p->sig_at;
		}
	}
	show_progress(t, w, now);
}

static bool
post_receives(struct test *t, struct pair *p, uint32_t n)
{
	int rc;

	if (!t->row->e->recv)
		return true;
	rc = t->row->e->post_recv(p, n);
	if (unlikely(rc != (int)n)) {
		report_fail(t, "pair %u: %d of %u receives posted: %s", p->index, rc, n,
			    rc < 0 ? strerror(-rc) : "the receive queue is full too early");
		t->fatal = true;
		return false;
	}
	bb_qp_ring_recv(p->peer);
	return true;
}

static bool
post_operations(struct test *t, struct pair *p, uint32_t n)
{
	int rc = t->row->e->post(p, n);

	if (unlikely(rc != (int)n)) {
		report_fail(t, "pair %u: %d of %u operations posted: %s", p->index, rc, n,
			    rc < 0 ? strerror(-rc) : "the send queue is full too early");
		t->fatal = true;
		return false;
	}
	bb_qp_ring(p->qp);
	return true;
}

/* Hand over the next burst of a pair, if there is room for it. */
static void
pair_post(struct test *t, struct pair *p)
{
	const struct row *row = t->row;
	uint64_t left = p->end - p->posted, room = row->window - (p->posted - p->done);
	uint32_t n = row->burst;

	if (row->e->recv)
		room = RTE_MIN(room, row->window - (p->recv_posted - p->recv_done));
	if (n > left)
		n = (uint32_t)left;
	if (n == 0)
		return;
	if (room < n) {
		/* Wait for a whole burst of room, unless nothing under way can make any. */
		if (p->done < p->last_sig || (row->e->recv && p->recv_done < p->posted))
			return;
		n = (uint32_t)room;
	}
	if (post_receives(t, p, n))
		post_operations(t, p, n);
}

static uint64_t
doorbells(const struct test *t)
{
	struct bb_qp_stats stats;
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < t->npairs; i++)
		if (bb_qp_stats(t->pairs[i].qp, &stats) == 0)
			n += stats.doorbells;
	return n;
}

static void
pair_open(struct pair *p, uint64_t ops)
{
	p->end = ops == 0 ? UINT64_MAX : p->posted + ops;
	p->last_sig = p->posted;
	p->sig_at = RTE_MIN(p->posted + p->t->row->signal_every, p->end);
}

/* Run @ops operations on every pair, or (0) until the deadline; timed. */
static void
span(struct test *t, struct watch *w, uint64_t ops)
{
	struct result *res = &t->row->res;
	uint64_t start, before = 0, bells = doorbells(t);
	uint32_t i, open, loops = 0;

	for (i = 0; i < t->npairs; i++) {
		before += t->pairs[i].done;
		pair_open(&t->pairs[i], ops);
	}
	start = rte_rdtsc();
	w->moved = start;
	do {
		open = 0;
		for (i = 0; i < t->npairs; i++) {
			if (pair_finished(&t->pairs[i]))
				continue;
			open++;
			pair_post(t, &t->pairs[i]);
		}
		poll_once(t, w);
		if (++loops % LOOK_EVERY == 0)
			look(t, w);
	} while (open > 0 && !t->fatal);
	res->cycles += rte_rdtsc() - start;
	for (i = 0; i < t->npairs; i++)
		res->ops += t->pairs[i].done;
	res->ops -= before;
	res->doorbells += doorbells(t) - bells;
}

/* One operation after the other on the first pair. @return how many were made. */
static uint64_t
one_by_one(struct test *t, struct watch *w, uint64_t ops)
{
	struct pair *p = &t->pairs[0];
	uint64_t i, t0, t1;
	unsigned int n;
	struct bb_wc wc;

	for (i = 0; i < ops && !t->fatal; i++) {
		uint32_t spins = 0;

		pair_open(p, 1);
		if (!post_receives(t, p, 1))
			break;
		t0 = rte_rdtsc();
		w->moved = t0;
		if (!post_operations(t, p, 1))
			break;
		while ((n = bb_cq_poll(t->scq, &wc, 1)) == 0)
			if (++spins % 65536 == 0 && stalled(t, w, rte_rdtsc()))
				break;
		t1 = rte_rdtsc();
		if (n == 1) {
			hist_add(&t->row->lat, t1 - t0);
			w->count++;
			send_completed(t, &wc);
		}
		while (!pair_finished(p) && !t->fatal) {
			poll_once(t, w);
			if (++spins % 65536 == 0)
				stalled(t, w, rte_rdtsc());
		}
		if (i % LOOK_EVERY == 0) {
			show_progress(t, w, t1);
			if (t1 >= w->deadline || test_stopping(t))
				return i + 1;
		}
	}
	return i;
}

static void
prepare(struct test *t, uint32_t npairs, uint64_t n)
{
	uint32_t i;

	for (i = 0; i < npairs; i++)
		t->row->e->prepare(&t->pairs[i], t->pairs[i].posted, n);
	remote_push(t);
}

static void
rate_phase(struct test *t, uint64_t cycles)
{
	struct watch w = {.deadline = rte_rdtsc() + cycles, .phase = "rate"};

	if (!t->o.verify) {
		span(t, &w, 0);
		return;
	}
	do {
		prepare(t, t->npairs, t->row->slots);
		span(t, &w, t->row->slots);
		if (t->fatal)
			return;
		remote_pull(t);
		round_verify(t, t->npairs, t->row->slots);
		w.phase = "verify";
		show_progress(t, &w, rte_rdtsc());
		w.phase = "rate";
	} while (rte_rdtsc() < w.deadline && !test_stopping(t));
}

static void
latency_phase(struct test *t, uint64_t cycles)
{
	struct watch w = {.deadline = rte_rdtsc() + cycles, .phase = "latency"};
	uint64_t n;

	do {
		if (t->o.verify)
			prepare(t, 1, t->row->slots);
		n = one_by_one(t, &w, t->row->slots);
		if (t->fatal)
			return;
		if (t->o.verify) {
			remote_pull(t);
			round_verify(t, 1, n);
		}
	} while (rte_rdtsc() < w.deadline && !test_stopping(t));
}

void
row_run(struct test *t, struct row *row)
{
	bool endless = isinf(t->o.duration) != 0;
	double rate = endless ? 0.09 : t->o.duration / 2, hz = (double)t->tsc_hz;
	uint32_t i;

	t->row = row;
	memset(&row->res, 0, sizeof(row->res));
	hist_reset(&row->lat);
	for (i = 0; i < t->npairs; i++) {
		struct pair *p = &t->pairs[i];

		p->local = t->local.mem + EDGE + (size_t)i * row->slots * t->local.lay.stride;
		p->remote = t->remote.mem + EDGE + (size_t)i * row->slots * t->remote.lay.stride;
		p->wr_base = WR_ID(t->row_no, i);
		p->posted = p->done = p->last_sig = 0;
		p->recv_posted = p->recv_done = 0;
		p->slot = p->recv_slot = 0;
	}
	row_fill(t);
	for (i = 0; i < t->npairs && row->e->start != NULL; i++)
		row->e->start(&t->pairs[i]);
	remote_push(t);

	/* Without an end the phases take turns: of each 100 ms, a tenth is for latency. */
	do {
		rate_phase(t, (uint64_t)(rate * hz));
		if (!t->fatal && !test_stopping(t))
			latency_phase(t, (uint64_t)((endless ? 0.01 : rate) * hz));
	} while (endless && !t->fatal && !test_stopping(t));
	row->complete = !t->fatal && (endless || !test_stopping(t));
	row->lcores = 1;
	if (t->live != NULL)
		live_update(t);
}
