/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Requests between engines. Each engine has a stack. Any thread pushes messages onto the stack
 * without a lock, and the engine takes the whole stack at once. No thread waits for another: the
 * compare-and-swap of a push fails only if another push succeeded.
 *
 * A QP works in order and has at most one request in flight. So an inbox holds at most one message
 * per QP, plus cancelled requests that the engine has not yet freed.
 *
 * A datagram is sent as a copy, because its sender completes at once. An engine that does not run
 * gets up to SOFT_MAX_DGRAMS datagrams; further datagrams are lost.
 *
 * A request for an engine that does not run is treated like a request to a peer that does not
 * respond: the ack timeout and the retries of its QP end the request. A UC message is lost. A card
 * would execute the request although no thread polls. So if a thread pauses polling, its peers need
 * enough retries for the pause. When the target QP is destroyed, the request is cancelled, as if no
 * response had arrived.
 */
#include <stdlib.h>

#include "soft_data.h"

void
soft_msg_push(struct soft_engine *to, struct soft_msg *m)
{
	struct soft_msg *head = __atomic_load_n(&to->inbox, __ATOMIC_RELAXED);

	do {
		m->next = head;
	} while (!__atomic_compare_exchange_n(&to->inbox, &head, m, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

struct soft_qp *
soft_msg_qp(const struct soft_dev *dev, uint32_t qpn, uint32_t gen)
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
	__atomic_store_n(&m->delayed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->state, SOFT_MSG_PENDING, __ATOMIC_RELAXED);
	soft_msg_push(p->engine, m);
	return 0;
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
	/* A response in flight carries the old generation, so its receiver frees it. */
	qp->msg = NULL;
}

bool
soft_msg_target_lives(const struct soft_qp *qp)
{
	return soft_msg_qp(qp->msg->peer_dev, qp->msg->peer_qpn, qp->msg->peer_gen) != NULL;
}

void
soft_inbox_drain(struct soft_engine *e)
{
	struct soft_msg *m = __atomic_exchange_n(&e->inbox, NULL, __ATOMIC_ACQUIRE);
	struct soft_msg *in_order = NULL, *next;

	e->work += m != NULL;
	soft_now(e);
	/*
	 * The control path also drains the inbox, long after the last poll, so the clock is read
	 * again.
	 */
	soft_engine_clock(e);
	for (; m != NULL; m = next) {
		next = m->next;
		m->next = in_order;
		in_order = m;
	}
	for (m = in_order; m != NULL; m = next) {
		uint32_t state = __atomic_load_n(&m->state, __ATOMIC_ACQUIRE);

		next = m->next;
		e->msg_handlers[state](e, m);
	}
}
