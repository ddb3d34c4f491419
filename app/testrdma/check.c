/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Checks of completions. Each completion must have the expected order, status, opcode, length and
 * immediate data. With --verify the data must have arrived, too.
 */
#include <rte_byteorder.h>
#include <rte_cycles.h>

#include "testrdma.h"

/* Writes a text for the request of completion @wc to @buf. Returns @buf. */
static const char *
wc_what(const struct tester *t, const struct pair *p, const struct bb_wc *wc, char *buf,
	size_t size)
{
	if (wc->wr_id == WR_ORDER)
		snprintf(buf, size, "%s, of pair %u",
			 t->cm != NULL ? "a control message to the target"
				       : "a control message to the initiator",
			 t->cm != NULL || p->twin == NULL ? p->index : p->twin->index);
	else if (wc->wr_id == WR_COPY)
		snprintf(buf, size, "a copy of the target's memory");
	else
		snprintf(buf, size, "operation %" PRIu64 " of pair %u",
			 wc->wr_id & ((UINT64_C(1) << 40) - 1), p->index);
	return buf;
}

static void
wc_failed(struct tester *t, const struct pair *p, const struct bb_wc *wc, const char *side)
{
	char text[BB_ERROR_TEXT_MAX], what[64];

	t->test->res.broken++;
	/* Reports only the first failed completion. The flushed ones are its consequence. */
	if (!t->fatal)
		report_fail(t,
			    "%s (QP 0x%x) completed at the %s with \"%s\", "
			    "syndrome 0x%02x, vendor syndrome 0x%02x: %s",
			    wc_what(t, p, wc, what, sizeof(what)), wc->qp->qpn, side,
			    bb_wc_status_name(wc->status), wc->syndrome, wc->vendor_err,
			    bb_wc_status_cause(wc->status, wc->vendor_err));
	else
		t->test->res.errors++;
	/* The text describes the failed WQE and the access rights of its keys. */
	if (!t->fatal && bb_qp_error_text(wc->qp, text, sizeof(text)) > 0)
		fputs(text, stderr);
	t->fatal = true;
}

/* Counts operation @op as late if its completion was polled before its data have arrived. */
static void
arrived_check(struct tester *t, struct pair *p, uint64_t op)
{
	struct result *res = &t->test->res;

	/* Data written to another process cannot be read while the test runs. */
	if (t->cm != NULL && !p->reverse && op_engine(p, op)->to_target)
		return;
	if (likely(op_engine(p, op)->arrived(p, op)))
		return;
	if (res->late++ == 0)
		res->first_late = op;
}

/*
 * Adds the latencies of the operations that have just completed: those from p->done to @want - 1. A
 * latency is the time since the operation was due.
 */
static void
latencies_add(struct tester *t, const struct pair *p, uint64_t want)
{
	uint64_t now = rte_rdtsc(), op, latency;

	for (op = p->done; op < want; op++)
		if (schedule_latency(&t->schedule, (op - p->first) * t->nflows + p->turn, now,
				     &latency))
			hist_add(&t->test->lat, latency);
}

void
send_completed(struct tester *t, const struct bb_wc *wc)
{
	struct pair *p = wc->qp->user;
	const struct test *test = t->test;
	const struct engine *e;
	uint64_t want;

	if (unlikely(wc->status != BB_WC_SUCCESS)) {
		wc_failed(t, p, wc, "initiator");
		return;
	}
	if (unlikely(wc->wr_id == WR_ORDER)) {
		p->orders--;
		return;
	}
	want = p->done + test->signal_every;
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
	e = op_engine(p, want - 1);
	if (unlikely(wc->opcode != e->wc_opcode))
		report_fail(t,
			    "operation %" PRIu64 " of pair %u completed with opcode %u, expected "
			    "%u",
			    want - 1, p->index, wc->opcode, e->wc_opcode);
	if (e->has_byte_len && unlikely(wc->byte_len != (e->atomic ? 8 : test->size)))
		report_fail(t,
			    "operation %" PRIu64 " of pair %u completed with %u bytes, expected "
			    "%u",
			    want - 1, p->index, wc->byte_len, e->atomic ? 8 : test->size);
	/* The data of a SEND are guaranteed only when the receive has completed. */
	if (t->o.verify && !e->recv_data)
		arrived_check(t, p, want - 1);
	if (t->schedule.on)
		latencies_add(t, p, want);
	p->done = want;
}

void
recv_completed(struct tester *t, const struct bb_wc *wc)
{
	struct pair *p = ((struct pair *)wc->qp->user)->in;
	const struct engine *e = t->test->e;
	/*
	 * If another process sends the messages, the number of sent messages is unknown here. Uses
	 * the limit p->end then.
	 */
	uint64_t op = p->recv_done, sent = p->qp != NULL ? p->posted : p->end;

	if (unlikely(wc->status != BB_WC_SUCCESS)) {
		wc_failed(t, p, wc, "target");
		return;
	}
	if (unlikely(wc->wr_id != (WR_RECV | (p->wr_base + op)) || op >= sent)) {
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
	if (unlikely(wc->byte_len != t->test->size))
		report_fail(t, "receive %" PRIu64 " of pair %u: %u bytes, expected %u", op,
			    p->index, wc->byte_len, t->test->size);
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
	t->test->res.recvs++;
}

unsigned int
flows_poll(struct tester *t)
{
	struct bb_wc wc[POLL_BURST];
	unsigned int i, n, count;

	count = n = bb_cq_poll(t->scq, wc, POLL_BURST);
	for (i = 0; i < n; i++)
		send_completed(t, &wc[i]);
	if (t->test->e->recv) {
		n = bb_cq_poll(t->rcq, wc, POLL_BURST);
		for (i = 0; i < n; i++)
			recv_completed(t, &wc[i]);
		count += n;
	}
	return count;
}
