/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completions and events: exactly the expected ones, in order. */
#include <sched.h>

#include "conform.h"

double
now_s(void)
{
	return (double)rte_get_timer_cycles() / (double)rte_get_timer_hz();
}

void
fx_progress(struct fx *fx)
{
	bb_dev_progress(fx->a.dev);
	if (fx->two)
		bb_dev_progress(fx->b.dev);
}

unsigned int
fx_poll(struct fx *fx, struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	if (fx->two)
		fx_progress(fx);
	return bb_cq_poll(cq, wc, n);
}

void
wait_wc(struct fx *fx, struct bb_cq *cq, struct bb_wc *wc, unsigned int n, const char *what)
{
	double end = now_s() + fx->timeout;
	unsigned int got = 0, spins = 0;

	while (got < n) {
		unsigned int now = fx_poll(fx, cq, wc + got, n - got);

		got += now;
		if (now != 0)
			continue;
		if (++spins > 1000)
			sched_yield();
		CHECK(fx, now_s() < end, "%s: %u of %u completions came within %.1f s", what, got,
		      n, fx->timeout);
	}
}

void
check_quiet(struct fx *fx, struct bb_cq *cq, const char *what)
{
	struct bb_wc wc;

	if (fx_poll(fx, cq, &wc, 1) != 0)
		fail(fx, "%s: a completion too many: wr_id %" PRIu64 ", %s", what, wc.wr_id,
		     bb_wc_status_name(wc.status));
}

void
check_wc(struct fx *fx, const struct bb_wc *wc, const struct bb_qp *qp, uint64_t wr_id,
	 enum bb_wc_status status, const char *what)
{
	CHECK(fx, wc->status == status,
	      "%s: completed with \"%s\" (syndrome 0x%02x), expected \"%s\"", what,
	      bb_wc_status_name(wc->status), wc->status != 0 ? wc->syndrome : 0,
	      bb_wc_status_name(status));
	CHECK(fx, wc->wr_id == wr_id, "%s: completion has wr_id %" PRIu64 ", expected %" PRIu64,
	      what, wc->wr_id, wr_id);
	CHECK(fx, wc->qp == qp, "%s: completion names another QP", what);
	if (status != BB_WC_SUCCESS)
		CHECK(fx, wc->syndrome != 0, "%s: error completion without a syndrome", what);
}

struct bb_wc
expect_wc(struct fx *fx, struct bb_cq *cq, const struct bb_qp *qp, uint64_t wr_id,
	  enum bb_wc_status status, const char *what)
{
	struct bb_wc wc;

	wait_wc(fx, cq, &wc, 1, what);
	check_wc(fx, &wc, qp, wr_id, status, what);
	return wc;
}

struct bb_wc
complete(struct fx *fx, struct bb_cq *cq, struct bb_qp *qp, int posted, uint64_t wr_id,
	 enum bb_wc_status status, const char *what)
{
	CHECK(fx, posted == 0, "%s: the post returned %d", what, posted);
	bb_qp_ring(qp);
	return expect_wc(fx, cq, qp, wr_id, status, what);
}

void
settle(struct fx *fx, struct bb_qp *qp, struct bb_cq *cq)
{
	uint64_t id = fx->wr_id++;
	int ret = bb_post_nop(qp, id, BB_SEND_SIGNALED);
	struct bb_wc wc = complete(fx, cq, qp, ret, id, BB_WC_SUCCESS, "the NOP behind it");

	CHECK(fx, wc.opcode == BB_WC_NOP, "the NOP behind it: opcode %u", wc.opcode);
	check_quiet(fx, cq, "behind the NOP");
}

struct bb_event
wait_event(struct fx *fx, struct side *s, const char *what)
{
	double end = now_s() + fx->timeout;
	struct bb_event event;

	while (bb_event_get(s->dev, &event) != 0) {
		CHECK(fx, now_s() < end, "%s: no event within %.1f s", what, fx->timeout);
		fx_progress(fx);
	}
	check_no_event(fx, s, what);
	return event;
}

void
wait_refusal(struct fx *fx, const char *what)
{
	if (fx->b.attr.refusal_events)
		(void)wait_event(fx, fx->two ? &fx->b : &fx->a, what);
}

void
check_no_event(struct fx *fx, struct side *s, const char *what)
{
	struct bb_event event;

	if (bb_event_get(s->dev, &event) == 0)
		fail(fx, "%s: event \"%s\" that nothing explains", what, bb_event_name(event.type));
}
