/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The loop of an lcore. Each turn receives messages, runs the stages of the lcore, sends messages
 * with one doorbell, and polls once.
 */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "hft.h"

#define BURST 16 /* maximum messages of a link, or ticks, per pass of the main loop */
/* Checks of the connections per second. Each check is a system call, which delays ticks. */
#define WATCH_HZ 100
/* a check of the connections that takes longer than this many times PAUSE_US counts as a pause */
#define WATCH_LIMITS 20
#define POLL_TURNS   16 /* passes of the main loop between two polls of the CQ */
/* passes between two polls if the device receives packets only when it is polled */
#define TAKE_TURNS 4
#define KILL_ID    (UINT64_MAX - 1)

static int deliver(struct worker *p, enum stage s, const union hft_msg *m);

/* DEFECT_SEQ: sends a message with the number of the next pass over the ring. */
static int
false_number(struct rdma_ring_tx *tx, const union hft_msg *m)
{
	int rc = rdma_ring_push(tx, m);

	if (rc == 0)
		rdma_ring_encode(tx->next[tx->head - 1 - tx->posted], tx->head - 1 + tx->slots, m);
	return rc;
}

/* Passes a message of stage @s to the next stage, by a call or through the ring. */
static int
forward(struct worker *p, enum stage s, const union hft_msg *m)
{
	struct end *e = &p->end[s];
	int rc;

	if (!e->used)
		return deliver(p, (enum stage)(s + 1), m);
	if (e->nbacklog > 0)
		rc = -EAGAIN;
	else if (bb_unlikely(p->o->defect == DEFECT_SEQ && e->tx.head >= p->o->defect_at))
		rc = false_number(&e->tx, m);
	else
		rc = rdma_ring_push(&e->tx, m);
	/*
	 * Makes the loop send orders and warm-up orders at once, before it handles the next tick.
	 */
	p->urgent |= m->kind == MSG_ORDER || m->kind == MSG_WARM;
	/*
	 * The ring is full. The lcore takes no further input that leads to this ring until the
	 * backlog is sent, so the backlog has room.
	 */
	if (rc == -EAGAIN) {
		e->backlog[e->nbacklog++] = *m;
		p->n_backlog++;
		return 0;
	}
	if (rc != 0)
		return worker_fail(p, rc, "the link from %s to %s failed: %s", stage_name[s],
				   stage_name[s + 1], strerror(-rc));
	return 0;
}

/*
 * Sets the kill switch. Uses compare and swap, so that a second gateway detects that the switch was
 * set. If the send queue is full, completions() tries again.
 */
static int
kill_post(struct worker *p)
{
	struct gateway *g = &p->gateway;
	struct end *e = &p->end[STAGE_RISK];
	const struct bb_sge sge = {(uintptr_t)g->old, 8, g->old_mr->lkey};
	int rc;

	*g->old = UINT64_MAX;
	rc = bb_post_cmp_swap(e->qp, KILL_ID, &sge, e->region[1].addr, e->region[1].rkey, 0, 1,
			      BB_SEND_SIGNALED);
	if (rc == -EAGAIN)
		return 0;
	if (rc != 0)
		return worker_fail(p, rc, "the kill switch cannot be set: %s", strerror(-rc));
	bb_qp_ring(e->qp);
	g->orders_at_post = g->norders;
	return 0;
}

static uint32_t
us_of(uint64_t ticks)
{
	uint64_t us = ticks / (rte_get_tsc_hz() / 1000000);

	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* Adds the pauses of the stage's lcore to the stage's report. */
static void
report_pauses(const struct worker *p, union hft_msg *m)
{
	m->report.pauses_us = us_of(p->pauses.total);
	m->report.longest_us = us_of(p->pauses.longest);
	m->report.pauses = (uint16_t)(p->pauses.n < UINT16_MAX ? p->pauses.n : UINT16_MAX);
}

/* Records the latency of an order. Also adds it to quiet if no pause has delayed the order. */
static void
arrived(struct worker *p, uint64_t stamp)
{
	const uint64_t due = stamp & ~STAMP_HELD_UP, took = rte_rdtsc() - due;

	hist_add(&p->gateway.latency, took);
	if (due == stamp && (p->pauses.n == 0 || p->pauses.end <= due))
		hist_add(&p->gateway.quiet, took);
}

static int
gateway(struct worker *p, const union hft_msg *m)
{
	struct gateway *g = &p->gateway;
	const struct options *o = p->o;

	if (m->kind == MSG_REPORT) {
		if (m->report.stage < STAGE_GATEWAY)
			g->report[m->report.stage] = *m;
		return 0;
	}
	if (m->kind == MSG_WARM) {
		order_check(&g->warm, m->order.seq);
		return 0;
	}
	arrived(p, m->stamp);
	if (o->defect == DEFECT_ORDER && m->order.seq + 1 == o->defect_at)
		return 0;
	order_check(&g->in, m->order.seq);
	if (g->norders == g->max_orders)
		return worker_fail(p, -EPROTO,
				   "the gateway received more orders than there were "
				   "ticks");
	g->orders[g->norders++] = order_out_of(m);
	if (o->kill_after == 0 || g->norders < o->kill_after || g->kill_due)
		return 0;
	g->kill_due = true;
	return kill_post(p);
}

static int
deliver(struct worker *p, enum stage s, const union hft_msg *m)
{
	union hft_msg out[STAGE_OUT];
	unsigned int n, i;
	int rc = 0;

	switch (s) {
	case STAGE_BOOK:
		n = book_stage(&p->book, m, out);
		break;
	case STAGE_STRATEGY:
		n = strategy_stage(&p->strategy, m, out);
		break;
	case STAGE_RISK:
		n = risk_stage(&p->risk, m, out);
		break;
	case STAGE_GATEWAY:
		return gateway(p, m);
	default:
		return -EINVAL;
	}
	for (i = 0; i < n && rc == 0; i++) {
		if (bb_unlikely(out[i].kind == MSG_REPORT) && out[i].report.stage == s)
			report_pauses(p, &out[i]);
		rc = forward(p, s, &out[i]);
	}
	return rc;
}

/* Sends the messages of the backlogs, as far as the rings have room. */
static int
backlog(struct worker *p)
{
	uint32_t i, k;
	int rc;

	for (i = 0; i < p->nout; i++) {
		struct end *e = p->out[i];

		for (k = 0, rc = 0; k < e->nbacklog && rc == 0; k += rc == 0)
			rc = rdma_ring_push(&e->tx, &e->backlog[k]);
		if (rc != 0 && rc != -EAGAIN)
			return worker_fail(p, rc, "the link from %s to %s failed: %s",
					   stage_name[e->link], stage_name[e->link + 1],
					   strerror(-rc));
		e->nbacklog -= k;
		p->n_backlog -= k;
		memmove(e->backlog, e->backlog + k, e->nbacklog * sizeof(e->backlog[0]));
	}
	return 0;
}

/* Sends tick @n, with the defects that --defect makes for ticks. */
static int
tick(struct worker *p, uint32_t n, uint64_t due)
{
	const uint8_t *msg = p->feed.file->msg[n];
	const struct options *o = p->o;
	bool here = n + 1 == o->defect_at;
	union hft_msg m = {.bytes = {0}};
	int rc;

	if (p->pauses.delayed)
		due |= STAMP_HELD_UP;
	if (here && o->defect == DEFECT_DROP)
		return 0;
	if (o->defect == DEFECT_SWAP && n + 1 < p->feed.file->h.messages) {
		if (here)
			return 0;
		if (n == o->defect_at) {
			m.stamp = due;
			m.number = n;
			memcpy(m.tick.itch, msg, itch_len(msg[0]));
			rc = forward(p, STAGE_FEED, &m);
			if (rc != 0)
				return rc;
			n--;
			msg = p->feed.file->msg[n];
		}
	}
	m.stamp = due;
	m.number = n;
	memcpy(m.tick.itch, msg, itch_len(msg[0]));
	rc = forward(p, STAGE_FEED, &m);
	if (rc == 0 && here && o->defect == DEFECT_TWICE)
		rc = forward(p, STAGE_FEED, &m);
	return rc;
}

static int
completions(struct worker *p)
{
	struct gateway *g = &p->gateway;
	struct bb_wc wc;

	if (bb_likely(bb_cq_poll(p->cq, &wc, 1) == 0))
		return bb_unlikely(g->kill_due && g->orders_at_post == 0) ? kill_post(p) : 0;
	if (wc.status == BB_WC_SUCCESS && wc.wr_id == KILL_ID) {
		g->killed = true;
		g->orders_at_kill = g->norders;
		g->kill_found = *g->old;
		return 0;
	}
	return links_error(p, &wc);
}

/* Rings one doorbell per ring with new messages. Returns true if there were any. */
static bool
ring(struct worker *p)
{
	bool posted = false;
	uint32_t i;

	p->urgent = false;
	for (i = 0; i < p->nout; i++) {
		posted |= rdma_ring_tx_pending(&p->out[i]->tx);
		rdma_ring_tx_flush(&p->out[i]->tx);
	}
	return posted;
}

/*
 * Rings the doorbells now, instead of at the end of the pass of the main loop. Also polls, because
 * a software device sends during polls.
 */
static int
send_out(struct worker *p)
{
	return ring(p) ? completions(p) : 0;
}

/*
 * Sends the ticks that are due. The stamp of a tick is the time at which the tick was due, not its
 * send time. So ticks that a slow tick delays count as late.
 */
static int
feed(struct worker *p)
{
	struct feed *f = &p->feed;
	uint64_t now = rte_rdtsc();
	union hft_msg end;
	uint32_t i;
	int rc;

	pauses_look(&p->pauses, now);
	for (i = 0; i < BURST && f->next < f->file->h.messages && stop_signal == 0; i++) {
		if (now < f->due) {
			/*
			 * Prefetches the next message, because the part of the file that contains
			 * it is not in a cache. A packet that a card has written would be.
			 */
			rte_prefetch0(f->file->msg[f->next]);
			rte_prefetch0(f->file->msg[f->next] + ITCH_MAX - 1);
			return 0;
		}
		rc = tick(p, f->next, f->gap_q16 == 0 ? now : f->due);
		if (rc == 0 && p->urgent)
			rc = send_out(p);
		f->next++;
		p->n_received++;
		if (f->gap_q16 != 0)
			f->due = f->start +
				 (uint64_t)((unsigned __int128)f->next * f->gap_q16 >> 16);
		if (rc != 0 || f->out->nbacklog > 0)
			return rc;
	}
	if (f->next < f->file->h.messages && stop_signal == 0)
		return 0;
	memset(&end, 0, sizeof(end));
	end.number = f->next;
	end.kind = MSG_REPORT;
	end.report.stage = STAGE_FEED;
	report_pauses(p, &end);
	f->done = true;
	p->unended--;
	/* Uses the start time if a signal arrived before the first tick was due. */
	f->end_tsc = now > f->start ? now : f->start;
	return forward(p, STAGE_FEED, &end);
}

/* Returns true if all stages of the lcore have finished and all their messages are sent. */
static bool
finished(const struct worker *p)
{
	uint32_t i;

	for (i = 0; i < p->nout; i++)
		if (rdma_ring_tx_pending(&p->out[i]->tx))
			return false;
	return p->unended == 0 && p->n_backlog == 0 && p->gateway.kill_due == p->gateway.killed;
}

/* DEFECT_CREDIT: sends credit for messages that were not received, and then never again. */
static void
false_credit(struct rdma_ring_rx *rx)
{
	const uint64_t tail = rx->tail;

	rx->tail += 4 * (uint64_t)rx->slots;
	rdma_ring_rx_flush(rx);
	rx->tail = rx->last_credit = tail;
	rx->batch = UINT32_MAX;
}

static void
mark_delayed(struct pauses *s, union hft_msg *m)
{
	if (m->kind == MSG_REPORT)
		return;
	s->delayed |= (m->stamp & STAMP_HELD_UP) != 0;
	if (bb_unlikely(s->delayed))
		m->stamp |= STAMP_HELD_UP;
}

/*
 * Receives messages. Skips an input whose messages lead to a full ring, and continues with the
 * other inputs. Otherwise two lcores could wait for each other: this lcore would take no orders
 * because one of its rings is full, and the peer makes room in that ring only after it has sent
 * these orders.
 */
static int
take_in(struct worker *p)
{
	union hft_msg m;
	uint32_t i, k;
	int rc;

	for (i = 0; i < p->nin; i++) {
		struct end *e = p->in[i];

		for (k = 0; k < BURST && (e->next == NULL || e->next->nbacklog == 0); k++) {
			rc = rdma_ring_pop(&e->rx, &m);
			if (rc == 0)
				break;
			if (rc < 0)
				return worker_fail(p, rc, "the link from %s to %s failed: %s",
						   stage_name[e->link], stage_name[e->link + 1],
						   strerror(-rc));
			p->n_received++;
			/*
			 * The message was read before this check. A pause before the read
			 * has delayed the message, which must then be marked.
			 */
			pauses_look(&p->pauses, rte_rdtsc());
			mark_delayed(&p->pauses, &m);
			if (bb_unlikely(p->o->defect == DEFECT_CREDIT &&
					e->rx.tail == p->o->defect_at))
				false_credit(&e->rx);
			rc = deliver(p, (enum stage)(e->link + 1), &m);
			if (rc == 0 && p->urgent)
				rc = send_out(p);
			if (rc != 0)
				return rc;
			/* The report of the previous stage is the last message of a link. */
			if (m.kind == MSG_REPORT && m.report.stage == e->link &&
			    !e->report_received) {
				e->report_received = true;
				p->unended--;
			}
		}
	}
	return 0;
}

/*
 * Returns the end through which the messages of stage @s leave the lcore, NULL if they stay on the
 * lcore.
 */
static struct end *
output_of(struct worker *p, uint32_t s)
{
	while (s < LINKS && !p->end[s].used)
		s++;
	return s < LINKS ? &p->end[s] : NULL;
}

static void
sort_ends(struct worker *p)
{
	uint32_t i;

	p->nin = p->nout = 0;
	for (i = 0; i < LINKS; i++) {
		if (p->end[i].used && p->end[i].producer)
			p->out[p->nout++] = &p->end[i];
		else if (p->end[i].used)
			p->in[p->nin++] = &p->end[i];
		p->end[i].next = output_of(p, i + 1);
	}
	p->feed.out = output_of(p, STAGE_FEED);
	p->unended = p->nin + runs(p, STAGE_FEED);
}

int
worker_run(struct worker *p)
{
	const uint64_t hz = rte_get_tsc_hz(), watch_gap = hz / WATCH_HZ;
	const bool has_feed = runs(p, STAGE_FEED);
	const bool has_book = runs(p, STAGE_BOOK) && p->o->params.warm;
	const uint32_t poll_turns = p->target_progress ? TAKE_TURNS : POLL_TURNS;
	uint64_t watch = rte_rdtsc() + watch_gap, now;
	uint32_t turns = 0, i;
	bool posted;
	int rc = 0;

	sort_ends(p);
	p->pauses.limit = hz / 1000000 * PAUSE_US;
	if (has_feed) {
		p->feed.gap_q16 = p->o->rate == 0 ? 0 : (hz << 16) / p->o->rate;
		printf("hft_pipeline: connected; replaying %u ticks\n", p->feed.file->h.messages);
		fflush(stdout);
		p->feed.start = rte_rdtsc() + (p->o->rate == 0 ? 0 : hz / 100);
		p->feed.due = p->feed.start;
	}
	p->pauses.last_check = rte_rdtsc();
	/*
	 * Marks messages that arrived before this point as delayed, because they have waited for
	 * the start of the loop.
	 */
	p->pauses.delayed = true;
	while (rc == 0) {
		p->n_received = 0;
		if (p->n_backlog > 0)
			rc = backlog(p);
		if (rc == 0)
			rc = take_in(p);
		if (rc == 0 && has_feed && !p->feed.done && p->feed.out->nbacklog == 0)
			rc = feed(p);
		posted = ring(p);
		for (i = 0; i < p->nin; i++)
			rdma_ring_rx_flush(&p->in[i]->rx);
		if (finished(p))
			break;
		/*
		 * Polls at once after a post, otherwise only in some passes. A poll takes longer
		 * than a check of the rings, and so delays the next check. Over shared memory
		 * messages arrive without a poll.
		 */
		turns++;
		if (rc == 0 && (posted || p->n_backlog > 0 || turns % poll_turns == 0))
			rc = completions(p);
		if (p->n_received == 0 && has_book)
			book_warm(p->book.book);
		if (p->n_received == 0 && p->n_backlog == 0)
			p->pauses.delayed = false;
		if (turns % POLL_TURNS == 0)
			pauses_look(&p->pauses, rte_rdtsc());
		if (turns % 256 != 0 || rc != 0)
			continue;
		now = rte_rdtsc();
		if (now < watch)
			continue;
		watch = now + watch_gap;
		rc = links_watch(p);
		/*
		 * The check of the connections does not count as a pause, unless it took longer
		 * than WATCH_LIMITS allows.
		 */
		now = rte_rdtsc();
		if (now - p->pauses.last_check < WATCH_LIMITS * p->pauses.limit)
			p->pauses.last_check = now;
		if (rc == 0 && __atomic_load_n(&some_failed, __ATOMIC_RELAXED))
			rc = -EINTR;
		if (rc == 0 && stop_signal != 0 && p->o->listen != NULL)
			rc = worker_fail(p, -EINTR, "stopped by a signal");
	}
	return rc;
}
