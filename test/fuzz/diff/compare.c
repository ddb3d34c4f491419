/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Compares the device with the model, and says how long to wait for the device. */
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "exec.h"

/*
 * Limits after which a completion counts as lost. A device that runs in our polls needs the
 * polls, and time for its timers. A device that runs by itself may wait for a CPU.
 */
#define SETTLE_NS    2000000000ull
#define HURRY_NS     100000000ull
#define SETTLE_POLLS 20000u
#define PACE_NS      30000000000ull
#define EXTRA_POLLS  6 /* after everything agrees, to detect unexpected completions */

bool
exec_fail(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return false;
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool
check_wc(struct exec *x, struct model *m, const struct bb_wc *wc, uint32_t cq, char *why,
	 size_t size)
{
	const char *name = bb_wc_status_name((enum bb_wc_status)wc->status), *side;
	const struct m_wc *want;
	struct m_fifo *f;
	uint32_t i;

	for (i = 0; i < QPS && (x->qp[i] == NULL || x->qp[i] != wc->qp); i++)
		;
	if (i == QPS)
		return exec_fail(why, size, "a completion (%s) of no QP, wr_id %llu", name,
				 (unsigned long long)wc->wr_id);
	f = wc->wr_id & 1 ? &m->qp[i].recvs : &m->qp[i].sends;
	side = wc->wr_id & 1 ? "receive" : "send";
	if (cq != (wc->wr_id & 1 ? m->qp[i].rcq : m->qp[i].scq))
		return exec_fail(why, size, "QP %u: a %s completion in CQ %u", i, side, cq);
	if (f->head == f->tail)
		return exec_fail(why, size,
				 "QP %u: a %s completion that is not due: %s, wr_id %llu", i, side,
				 name, (unsigned long long)wc->wr_id);
	want = &f->wc[f->head++ % FIFO];
	if (wc->wr_id != want->wr_id)
		return exec_fail(why, size, "QP %u: %s completion of wr_id %llu (%s), not of %llu",
				 i, side, (unsigned long long)wc->wr_id, name,
				 (unsigned long long)want->wr_id);
	if (wc->status != want->status)
		return exec_fail(why, size,
				 "QP %u: %s wr_id %llu completed with \"%s\", not \"%s\"", i, side,
				 (unsigned long long)wc->wr_id, name,
				 bb_wc_status_name((enum bb_wc_status)want->status));
	if (want->status != BB_WC_SUCCESS) {
		x->counts.bad[want->status % EXEC_OPCODES]++;
		return true;
	}
	x->counts.good[want->opcode % EXEC_OPCODES]++;
	if (wc->opcode != want->opcode || wc->flags != want->flags ||
	    (want->flags & BB_WC_WITH_IMM && wc->imm != want->imm) ||
	    (want->flags & BB_WC_WITH_INV && wc->imm >> 8 != x->rkey[want->imm] >> 8) ||
	    (want->has_len && wc->byte_len != want->len))
		return exec_fail(why, size,
				 "QP %u: %s wr_id %llu: opcode %u flags %u imm 0x%x length %u, not "
				 "opcode %u flags %u imm 0x%x length %u",
				 i, side, (unsigned long long)wc->wr_id, wc->opcode, wc->flags,
				 wc->imm, wc->byte_len, want->opcode, want->flags, want->imm,
				 want->len);
	if (want->from != 0 &&
	    (x->qp[want->from - 1] == NULL || wc->src_qp != x->qp[want->from - 1]->qpn))
		return exec_fail(why, size,
				 "QP %u: receive wr_id %llu is from QP 0x%x, not slot %u", i,
				 (unsigned long long)wc->wr_id, wc->src_qp, want->from - 1);
	return true;
}

static bool
poll_all(struct exec *x, struct model *m, char *why, size_t size)
{
	struct bb_wc wc[16];
	unsigned int n;

	for (uint32_t c = 0; c < CQS; c++) {
		if (x->cq[c] == NULL)
			continue;
		n = bb_cq_poll(x->cq[c], wc, 16);
		for (unsigned int i = 0; i < n; i++)
			if (!check_wc(x, m, &wc[i], c, why, size))
				return false;
	}
	return true;
}

static uint32_t
slot_of(const struct exec *x, const struct bb_event *e)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (e->qp != NULL && x->qp[i] == e->qp)
			return i;
	for (uint32_t i = 0; i < SRQS; i++)
		if (e->srq != NULL && x->srq[i] == e->srq)
			return i;
	return UINT32_MAX;
}

static uint32_t
count(const struct m_event *list, uint32_t n, const struct m_event *e)
{
	uint32_t i, same = 0;

	for (i = 0; i < n; i++)
		same += list[i].type == e->type && list[i].slot == e->slot;
	return same;
}

/* Takes the pending events. Returns false for an unexpected one. */
static bool
take_events(struct exec *x, const struct model *m, char *why, size_t size)
{
	struct bb_event event;
	struct m_event e;

	for (uint32_t i = 0; i < x->world.devs; i++) {
		while (bb_event_get(x->dev[i], &event) == 0) {
			e = (struct m_event){event.type, slot_of(x, &event)};
			if (x->n_events == MAX_EVENTS ||
			    count(x->event, x->n_events, &e) == count(m->event, m->n_events, &e))
				return exec_fail(why, size, "event \"%s\" of slot %d is not due",
						 bb_event_name(event.type), (int)e.slot);
			x->event[x->n_events++] = e;
		}
	}
	return true;
}

/*
 * Returns the number of a QP in ERR whose error the library has not seen yet, QPS if there is
 * none.
 */
static uint32_t
not_told(const struct exec *x, const struct model *m)
{
	uint32_t i;

	for (i = 0; i < QPS; i++)
		if (x->qp[i] != NULL && m->qp[i].state == BB_QP_ERR && x->qp[i]->state != BB_QP_ERR)
			break;
	return i;
}

/* Returns an event that is due and missing, NULL if there is none. */
static const struct m_event *
event_due(const struct exec *x, const struct model *m)
{
	for (uint32_t i = 0; i < m->n_events; i++)
		if (count(x->event, x->n_events, &m->event[i]) !=
		    count(m->event, m->n_events, &m->event[i]))
			return &m->event[i];
	return NULL;
}

static const struct m_wc *
first_due(const struct model *m, uint32_t *qp)
{
	for (*qp = 0; *qp < QPS; (*qp)++) {
		const struct m_fifo *s = &m->qp[*qp].sends, *r = &m->qp[*qp].recvs;

		if (s->head != s->tail)
			return &s->wc[s->head % FIFO];
		if (r->head != r->tail)
			return &r->wc[r->head % FIFO];
	}
	return NULL;
}

/* Copies the memory that devices see: of the process, and their own. */
static void
memory_of(const struct exec *x, uint8_t mem[MEM])
{
	memcpy(mem, x->arena, ARENA);
	for (uint32_t i = 0; i < DMS; i++)
		if (x->dm[i] != NULL)
			(void)bb_dm_read(x->dm[i], mem + DM_AT(i), 0,
					 x->dm[i]->len / BB_DM_COPY_ALIGN * BB_DM_COPY_ALIGN);
}

/* Returns whether memory agrees with the model. */
static bool
memory_agrees(const struct exec *x, const struct model *m)
{
	static uint8_t mem[MEM];
	uint32_t i;

	if (m->blur)
		return true;
	if (memcmp(x->arena, m->mem, ARENA) != 0)
		return false;
	for (i = 0; i < DMS && x->dm[i] == NULL; i++)
		;
	if (i == DMS)
		return true;
	memcpy(mem, m->mem, MEM);
	memory_of(x, mem);
	return memcmp(mem, m->mem, MEM) == 0;
}

static bool
memory_differs(const struct exec *x, const struct model *m, char *why, size_t size)
{
	static uint8_t mem[MEM];
	size_t i = 0;

	memcpy(mem, m->mem, MEM);
	memory_of(x, mem);
	while (i < MEM && mem[i] == m->mem[i])
		i++;
	if (i == MEM)
		return exec_fail(why, size, "memory: changed behind the last completion");
	if (i >= ARENA)
		return exec_fail(why, size, "device memory %d offset %d is 0x%02x, not 0x%02x",
				 (int)((i - ARENA) / DM_ROOM), (int)((i - ARENA) % DM_ROOM), mem[i],
				 m->mem[i]);
	return exec_fail(why, size, "memory: buffer %d offset %d is 0x%02x, not 0x%02x%s",
			 (int)(i / BUF_LEN) / 2, (int)(i % BUF_LEN), mem[i], m->mem[i],
			 i / BUF_LEN % 2 == 0 ? " (around the buffers)" : "");
}

static bool
check_qps(const struct exec *x, const struct model *m, char *why, size_t size)
{
	struct bb_qp_stats stats;
	struct bb_qp_attr attr;
	int ret;

	for (uint32_t i = 0; i < QPS; i++) {
		const struct m_qp *q = &m->qp[i];

		if (x->qp[i] == NULL)
			continue;
		bb_qp_attr_init(&attr);
		ret = bb_qp_query(x->qp[i], &attr);
		if (ret != 0)
			return exec_fail(why, size, "QP %u: bb_qp_query() returned %d", i, ret);
		if (attr.state != q->state)
			return exec_fail(why, size, "QP %u is in %s, not %s", i,
					 bb_qp_state_name(attr.state),
					 bb_qp_state_name((enum bb_qp_state)q->state));
		ret = bb_qp_stats(x->qp[i], &stats);
		if (ret != 0 || stats.posted != q->posted || stats.recv_posted != q->recv_posted ||
		    stats.errors != q->errors || stats.recv_outstanding != model_waiting(&q->rq))
			return exec_fail(
				why, size,
				"QP %u: posted %llu, receives %llu (%u outstanding), errors "
				"%llu; not %llu, %llu (%u), %llu",
				i, (unsigned long long)stats.posted,
				(unsigned long long)stats.recv_posted, stats.recv_outstanding,
				(unsigned long long)stats.errors, (unsigned long long)q->posted,
				(unsigned long long)q->recv_posted, model_waiting(&q->rq),
				(unsigned long long)q->errors);
	}
	return true;
}

static bool
check_srqs(const struct exec *x, const struct model *m, char *why, size_t size)
{
	struct bb_srq_stats stats;
	struct bb_srq_attr attr;

	for (uint32_t i = 0; i < SRQS; i++) {
		const struct m_srq *srq = &m->srq[i];

		if (x->srq[i] == NULL)
			continue;
		if (bb_srq_stats(x->srq[i], &stats) != 0 || bb_srq_query(x->srq[i], &attr) != 0)
			return exec_fail(why, size, "SRQ %u cannot be asked", i);
		if (stats.outstanding != srq->outstanding || attr.limit != srq->limit ||
		    stats.qps != srq->refs)
			return exec_fail(why, size,
					 "SRQ %u: %u outstanding, limit %u, %u QPs; not %u, %u, %u",
					 i, stats.outstanding, attr.limit, stats.qps,
					 srq->outstanding, srq->limit, srq->refs);
	}
	return true;
}

bool
exec_settle(struct exec *x, struct model *m, char *why, size_t size)
{
	uint64_t end = 0;
	uint32_t i, quiet = 0, calm = 0, polls = 0, qp, deaf;
	const struct m_event *event;
	const struct m_wc *due;

	x->n_events = 0;
	for (i = 0; i < QPS; i++)
		quiet += m->qp[i].quiet;
	while (calm <= EXTRA_POLLS) {
		if (!poll_all(x, m, why, size) || !take_events(x, m, why, size))
			return false;
		due = first_due(m, &qp);
		deaf = not_told(x, m);
		event = event_due(x, m);
		if (due == NULL && deaf == QPS && event == NULL && memory_agrees(x, m)) {
			calm++;
			continue;
		}
		/* A completion means that its data are there, and older data stay. */
		if (due == NULL && deaf == QPS && event == NULL && (quiet == 0 || calm != 0))
			return memory_differs(x, m, why, size);
		if (++polls % 64 != 0)
			continue;
		if (end == 0)
			end = now_ns() + (m->own_pace ? PACE_NS : x->hurry ? HURRY_NS : SETTLE_NS);
		if (polls < SETTLE_POLLS || now_ns() < end)
			continue;
		if (due == NULL && deaf != QPS)
			return exec_fail(why, size, "QP %u is in ERR, and nothing told", deaf);
		if (due == NULL && event != NULL)
			return exec_fail(why, size, "no event \"%s\" of slot %u came",
					 bb_event_name((enum bb_event_type)event->type),
					 event->slot);
		if (due == NULL)
			return memory_differs(x, m, why, size);
		return exec_fail(why, size, "QP %u: no completion of %s wr_id %llu (\"%s\") came",
				 qp, due->wr_id & 1 ? "receive" : "send",
				 (unsigned long long)due->wr_id,
				 bb_wc_status_name((enum bb_wc_status)due->status));
	}
	if (m->blur)
		memory_of(x, m->mem);
	return check_qps(x, m, why, size) && check_srqs(x, m, why, size);
}
