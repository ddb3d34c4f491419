/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Handles the messages in an engine's inbox, except packets: requests of other engines, their
 * results, and datagrams.
 */
#include <stdlib.h>

#include "soft_access.h"
#include "soft_resp.h"
#include "soft_ud.h"

bool
soft_dgram_post(const struct soft_qp *p, const struct soft_dgram *d, const struct soft_frag *frag,
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
		memcpy(at, frag[i].p, frag[i].len);
		at += frag[i].len;
	}
	__atomic_fetch_add(&to->dgrams, 1, __ATOMIC_RELAXED);
	m->msg.state = SOFT_MSG_DGRAM;
	soft_msg_push(to, &m->msg);
	return true;
}

static struct soft_response
soft_msg_execute(struct soft_engine *e, const struct soft_msg *m, struct soft_qp *qp)
{
	struct soft_response ans = {.kind = SOFT_SILENCE};
	struct soft_req *r = &e->req;
	struct soft_qp *p;
	uint8_t synd;

	p = soft_resp_find(qp);
	if (p == NULL || p->engine != e || p != soft_msg_qp(m->peer_dev, m->peer_qpn, m->peer_gen))
		return ans;
	synd = soft_req_decode(e, r, qp, m->d.idx, m->d.blocks);
	if (synd == 0 && (r->d.opcode != m->d.opcode || r->d.len != m->d.len))
		synd = BB_SYN_LOCAL_QP_OP;
	if (synd == BB_SYN_LOCAL_PROT && e->key_fault == SOFT_KEY_PAGE) {
		/*
		 * A page of the SGEs went away after the requester's engine had found it. That
		 * engine decodes the request again and reports the page fault.
		 */
		ans.kind = SOFT_BUSY;
	} else if (synd != 0) {
		ans.kind = SOFT_NAK;
		ans.code = synd;
	} else {
		r->d = m->d;
		e->packets_left -= r->d.packets;
		ans = soft_resp_execute(e, p, qp, r);
		bb_dma_wmb();
	}
	soft_keys_done(e);
	return ans;
}

/* Returns true if the target of a request may execute it now, or later. */
static bool
soft_msg_executable(const struct soft_msg *m)
{
	const struct soft_qp *p = soft_msg_qp(m->peer_dev, m->peer_qpn, m->peer_gen);
	const uint32_t state = p != NULL ? soft_qp_state(p) : BB_PRM_QP_RST;

	return state == BB_PRM_QP_RTR || state == BB_PRM_QP_RTS;
}

/*
 * Executes a request that a QP of another engine sent to a QP of this engine, and sends the result
 * back. A turn that has executed enough leaves the request in the inbox for the next turn.
 */
void
soft_msg_serve(struct soft_engine *e, struct soft_msg *m)
{
	uint32_t state = SOFT_MSG_PENDING;
	struct soft_qp *qp;

	if (unlikely(e->packets_left <= 0) && soft_msg_executable(m)) {
		__atomic_store_n(&m->delayed, 1, __ATOMIC_RELAXED);
		soft_msg_push(e, m);
		return;
	}
	if (!__atomic_compare_exchange_n(&m->state, &state, SOFT_MSG_TAKEN, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		free(m);
		return;
	}
	/*
	 * The QP found here, and the engine of that QP, exist at least until this engine releases
	 * its lock.
	 */
	qp = soft_msg_qp(m->dev, m->qpn, m->gen);
	if (qp == NULL) {
		free(m);
		return;
	}
	m->response = soft_msg_execute(e, m, qp);
	__atomic_store_n(&m->state, SOFT_MSG_RESPONSE, __ATOMIC_RELEASE);
	soft_msg_push(qp->engine, m);
}

/* Handles the result of a request that a QP of this engine sent to another engine. */
void
soft_msg_response(struct soft_engine *e, struct soft_msg *m)
{
	struct soft_qp *qp = soft_msg_qp(m->dev, m->qpn, m->gen);

	if (qp == NULL || qp->engine != e || qp->msg != m || qp->wait != SOFT_WAIT_PEER) {
		free(m);
		return;
	}
	soft_qp_unqueue(e, qp);
	qp->wait = SOFT_WAIT_NONE;
	soft_req_response(e, qp, &m->d, m->response);
}

/*
 * Delivers a datagram from a QP of another engine to a QP of this engine, if the QP still exists.
 */
void
soft_dgram_take(struct soft_engine *e, struct soft_msg *msg)
{
	struct soft_dgram_msg *m = (struct soft_dgram_msg *)msg;
	const struct soft_frag frag = {.p = m->data, .len = m->dgram.len};
	struct soft_qp *p = soft_msg_qp(m->msg.peer_dev, m->msg.peer_qpn, m->msg.peer_gen);
	uint32_t state = p != NULL ? soft_qp_state(p) : BB_PRM_QP_RST;

	__atomic_fetch_sub(&e->dgrams, 1, __ATOMIC_RELAXED);
	if (p != NULL && p->engine == e && (state == BB_PRM_QP_RTR || state == BB_PRM_QP_RTS)) {
		soft_ud_receive(e, p, &m->dgram, &frag, m->dgram.len != 0);
		soft_keys_done(e);
	}
	free(m);
}
