/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Requests between engines: a stack per engine that anybody pushes to without a lock
 * and the engine takes as a whole. Nobody waits for another thread: a push is a
 * compare-and-swap that is lost only to another push that went through.
 *
 * A QP has one request in flight at most, as it works in order, so what an inbox holds
 * is bounded by the number of QPs, plus requests that were given up and not yet found.
 *
 * A datagram goes as a copy, as its sender completes at once; an engine that does not run
 * gets SOFT_MAX_DGRAMS of them, and those behind are lost.
 *
 * A request waits for ever for an engine that does not run: the target's owner polls
 * or not, and a card would not know. When the target QP is gone it is given up and
 * counts as not answered.
 */
#include <stdlib.h>

#include "soft_resp.h"
#include "soft_ud.h"
#include "soft_wire.h"

#include "soft_access.h"
static void
soft_msg_push(struct soft_engine *to, struct soft_msg *m)
{
	struct soft_msg *head = __atomic_load_n(&to->inbox, __ATOMIC_RELAXED);

	do {
		m->next = head;
	} while (!__atomic_compare_exchange_n(&to->inbox, &head, m, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

static struct soft_qp *
soft_qp_of(const struct soft_dev *dev, uint32_t qpn, uint32_t gen)
{
	struct soft_qp *qp = soft_qp_find(dev, qpn);

	return qp != NULL && __atomic_load_n(&qp->gen, __ATOMIC_ACQUIRE) == gen ? qp : NULL;
}

int
soft_msg_send(struct soft_qp *qp, const struct soft_qp *p, const struct soft_done *d)
{
	struct soft_msg *m = qp->msg;

	if (m == NULL) {
		m = calloc(1, sizeof(*m));
		if (m == NULL)
			return -ENOMEM;
		qp->msg = m;
	}
	m->dev = qp->dev;
	m->qpn = qp->qpn;
	m->gen = __atomic_load_n(&qp->gen, __ATOMIC_RELAXED);
	m->peer_dev = p->dev;
	m->peer_qpn = p->qpn;
	m->peer_gen = __atomic_load_n(&p->gen, __ATOMIC_RELAXED);
	m->d = *d;
	__atomic_store_n(&m->state, SOFT_MSG_PENDING, __ATOMIC_RELAXED);
	soft_msg_push(p->engine, m);
	return 0;
}

bool
soft_dgram_post(const struct soft_qp *p, const struct soft_dgram *d, const struct soft_piece *piece,
		uint32_t n)
{
	struct soft_engine *to = p->engine;
	struct soft_dgram_msg *m;
	uint8_t *at;
	uint32_t i;

	if (__atomic_load_n(&to->dgrams, __ATOMIC_RELAXED) >= SOFT_MAX_DGRAMS)
		return false;
	m = calloc(1, sizeof(*m) + d->len);
	if (m == NULL)
		return false;
	m->msg.peer_dev = p->dev;
	m->msg.peer_qpn = p->qpn;
	m->msg.peer_gen = __atomic_load_n(&p->gen, __ATOMIC_RELAXED);
	m->dgram = *d;
	for (i = 0, at = m->data; i < n; i++) {
		memcpy(at, piece[i].p, piece[i].len);
		at += piece[i].len;
	}
	__atomic_fetch_add(&to->dgrams, 1, __ATOMIC_RELAXED);
	m->msg.state = SOFT_MSG_DGRAM;
	soft_msg_push(to, &m->msg);
	return true;
}

bool
soft_msg_cancel(struct soft_qp *qp)
{
	uint32_t state = SOFT_MSG_PENDING;

	if (!__atomic_compare_exchange_n(&qp->msg->state, &state, SOFT_MSG_CANCELLED, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	qp->msg = NULL;
	return true;
}

void
soft_msg_drop(struct soft_qp *qp)
{
	if (qp->msg == NULL)
		return;
	if (qp->wait != SOFT_WAIT_PEER)
		free(qp->msg);
	else
		soft_msg_cancel(qp);
	/* An answer under way finds the generation changed, and is freed there. */
	qp->msg = NULL;
}

bool
soft_msg_target_lives(const struct soft_qp *qp)
{
	return soft_qp_of(qp->msg->peer_dev, qp->msg->peer_qpn, qp->msg->peer_gen) != NULL;
}

static struct soft_answer
soft_msg_execute(struct soft_engine *e, const struct soft_msg *m, struct soft_qp *qp)
{
	struct soft_answer ans = {.kind = SOFT_SILENCE};
	struct soft_req *r = &e->req;
	struct soft_qp *p;
	uint8_t synd;

	p = soft_resp_find(qp);
	if (p == NULL || p->engine != e || p != soft_qp_of(m->peer_dev, m->peer_qpn, m->peer_gen))
		return ans;
	synd = soft_req_decode(e, r, qp, m->d.idx, m->d.blocks);
	if (synd == 0 && (r->d.opcode != m->d.opcode || r->d.len != m->d.len))
		synd = BB_SYN_LOCAL_QP_OP;
	if (synd != 0) {
		ans.kind = SOFT_NAK;
		ans.code = synd;
	} else {
		r->d = m->d;
		ans = soft_resp_execute(e, p, qp, r);
		bb_dma_wmb();
	}
	soft_keys_done(e);
	return ans;
}

/* A request of another engine's QP for one of ours. */
static void
soft_msg_serve(struct soft_engine *e, struct soft_msg *m)
{
	uint32_t state = SOFT_MSG_PENDING;
	struct soft_qp *qp;

	if (!__atomic_compare_exchange_n(&m->state, &state, SOFT_MSG_TAKEN, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		free(m);
		return;
	}
	/* Found now, the QP and its engine stay until this engine leaves its lock. */
	qp = soft_qp_of(m->dev, m->qpn, m->gen);
	if (qp == NULL) {
		free(m);
		return;
	}
	m->ans = soft_msg_execute(e, m, qp);
	__atomic_store_n(&m->state, SOFT_MSG_ANSWER, __ATOMIC_RELEASE);
	soft_msg_push(qp->engine, m);
}

/* An answer to one of our QPs. */
static void
soft_msg_answer(struct soft_engine *e, struct soft_msg *m)
{
	struct soft_qp *qp = soft_qp_of(m->dev, m->qpn, m->gen);

	if (qp == NULL || qp->engine != e || qp->msg != m || qp->wait != SOFT_WAIT_PEER) {
		free(m);
		return;
	}
	soft_qp_unqueue(e, qp);
	qp->wait = SOFT_WAIT_NONE;
	soft_req_answer(e, qp, &m->d, m->ans);
}

/* A datagram of another engine's QP for one of ours, if it is still there. */
static void
soft_dgram_take(struct soft_engine *e, struct soft_dgram_msg *m)
{
	const struct soft_piece piece = {.p = m->data, .len = m->dgram.len};
	struct soft_qp *p = soft_qp_of(m->msg.peer_dev, m->msg.peer_qpn, m->msg.peer_gen);
	uint32_t state = p != NULL ? soft_qp_state(p) : BB_PRM_QP_RST;

	__atomic_fetch_sub(&e->dgrams, 1, __ATOMIC_RELAXED);
	if (p != NULL && p->engine == e && (state == BB_PRM_QP_RTR || state == BB_PRM_QP_RTS)) {
		soft_ud_receive(e, p, &m->dgram, &piece, m->dgram.len != 0);
		soft_keys_done(e);
	}
	free(m);
}

void
soft_packet_post(const struct soft_qp *p, struct soft_packet_msg *m)
{
	m->msg.state = SOFT_MSG_PACKET;
	__atomic_fetch_add(&p->engine->packets, 1, __ATOMIC_RELAXED);
	soft_msg_push(p->engine, &m->msg);
}

static void
soft_packet_take(struct soft_engine *e, struct soft_packet_msg *m)
{
	__atomic_fetch_sub(&e->packets, 1, __ATOMIC_RELAXED);
	soft_wire_arrive(e, m);
}

void
soft_inbox_drain(struct soft_engine *e)
{
	struct soft_msg *m = __atomic_exchange_n(&e->inbox, NULL, __ATOMIC_ACQUIRE);
	struct soft_msg *in_order = NULL, *next;

	soft_now(e);
	/* The control path drains too, long after the last poll. */
	soft_engine_clock(e);
	for (; m != NULL; m = next) {
		next = m->next;
		m->next = in_order;
		in_order = m;
	}
	for (m = in_order; m != NULL; m = next) {
		uint32_t state = __atomic_load_n(&m->state, __ATOMIC_ACQUIRE);

		next = m->next;
		if (state == SOFT_MSG_DGRAM)
			soft_dgram_take(e, (struct soft_dgram_msg *)m);
		else if (state == SOFT_MSG_PACKET)
			soft_packet_take(e, (struct soft_packet_msg *)m);
		else if (state == SOFT_MSG_ANSWER)
			soft_msg_answer(e, m);
		else
			soft_msg_serve(e, m);
	}
}
