/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Handles a stall: asks the device for the cause, prints what is missing, and ends the test. */
#include "stall.h"

#define EVENT_CHECK_HZ 10 /* checks of the device's events per second while nothing completes */
#define STOP_SECONDS   1  /* seconds that outstanding operations get to complete after a stop */

/*
 * How many fatal events of devices, and how many of CQs, all threads have read since the program
 * began. Accessed with __atomic.
 */
static uint32_t dead_devices, dead_cqs;

static void
events_take(struct bb_dev *dev)
{
	struct bb_event ev;

	while (bb_event_get(dev, &ev) == 0)
		if (ev.type == BB_EVENT_DEV_FATAL)
			__atomic_fetch_add(&dead_devices, 1, __ATOMIC_RELAXED);
		else if (ev.type == BB_EVENT_CQ_ERROR)
			__atomic_fetch_add(&dead_cqs, 1, __ATOMIC_RELAXED);
}

void
stall_begin(struct tester *t)
{
	events_take(t->dev);
	t->dead_devices = __atomic_load_n(&dead_devices, __ATOMIC_RELAXED);
	t->dead_cqs = __atomic_load_n(&dead_cqs, __ATOMIC_RELAXED);
}

/* Returns the name of the event that explains the stall, NULL if there is none. */
static const char *
failure_event(const struct tester *t)
{
	events_take(t->dev);
	if (__atomic_load_n(&dead_devices, __ATOMIC_RELAXED) != t->dead_devices)
		return bb_event_name(BB_EVENT_DEV_FATAL);
	if (__atomic_load_n(&dead_cqs, __ATOMIC_RELAXED) != t->dead_cqs)
		return bb_event_name(BB_EVENT_CQ_ERROR);
	return NULL;
}

/* Prints the outstanding requests, of both sides if the target is in this process. */
static void
pending_show(const struct pair *p)
{
	struct bb_qp *const qps[] = {p->qp, p->peer};
	char text[BB_ERROR_TEXT_MAX];
	unsigned int i;

	for (i = 0; i < RTE_DIM(qps); i++)
		if (qps[i] != NULL && bb_qp_pending_text(qps[i], text, sizeof(text)) > 0)
			fputs(text, stderr);
}

/* Returns the likely cause of a stall. */
static const char *
stall_cause(const struct tester *t, const struct pair *p)
{
	if (t->test->e->recv && p->done == p->posted && p->recv_done < p->posted)
		return t->orders ? "the sends are complete, but the target reports no receive; is "
				   "the target still running, or did it lose a completion? Enter "
				   "show qp and show wqe there"
				 : "the sends are complete, but their receives are not: the "
				   "completion of a receive is lost";
	if (p->posted == p->done)
		return "no operation is in flight: the target, or the other direction, must "
		       "continue first";
	return "no request failed, so a request is not executed (does the device make "
	       "progress?), or its completion is lost";
}

bool
stall_abandoned(struct tester *t, uint64_t now)
{
	if (!tester_stopping(t))
		return false;
	if (t->stop_seen == 0)
		t->stop_seen = now;
	if (now - t->stop_seen < STOP_SECONDS * t->tsc_hz)
		return false;
	say("stopped with operations in flight: the test is incomplete");
	t->fatal = true;
	return true;
}

bool
stalled(struct tester *t, struct watch *w, uint64_t now)
{
	const char *event = NULL;
	const struct pair *p;
	uint32_t i;

	if (stall_abandoned(t, now))
		return true;
	if (w->count != w->last_count) {
		w->last_count = w->count;
		w->last_progress = now;
		return false;
	}
	if (now - RTE_MAX(w->last_progress, w->last_event_check) >= t->tsc_hz / EVENT_CHECK_HZ) {
		w->last_event_check = now;
		event = failure_event(t);
	}
	if (event == NULL && (double)(now - w->last_progress) < t->o.patience * (double)t->tsc_hz)
		return false;
	for (i = 0; i < t->nflows && flow_finished(t->flows[i]); i++)
		;
	p = t->flows[i == t->nflows ? 0 : i];
	if (event != NULL) {
		report_fail(t,
			    "the device reports \"%s\": pair %u posted %" PRIu64
			    " operations, %" PRIu64 ""
			    " completed, %" PRIu64 " received; no more will complete",
			    event, p->index, p->posted, p->done, p->recv_done);
	} else {
		report_fail(t,
			    "no completion for %g s: pair %u posted %" PRIu64
			    " operations, %" PRIu64 " completed, %" PRIu64 " received; %s",
			    t->o.patience, p->index, p->posted, p->done, p->recv_done,
			    stall_cause(t, p));
		pending_show(p);
	}
	t->fatal = true;
	return true;
}
