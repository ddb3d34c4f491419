/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The responder: what its files share. */
#ifndef SOFT_RESP_H
#define SOFT_RESP_H

#include "soft_data.h"

static const struct soft_answer soft_ack = {.kind = SOFT_ACK};
static const struct soft_answer soft_owner = {.kind = SOFT_OWNER};

static inline struct soft_answer
soft_nak(uint8_t synd)
{
	return (struct soft_answer){.kind = SOFT_NAK, .code = synd};
}

/* Is @p connected to @qp, and the cable plugged in? */
static inline bool
soft_resp_linked(const struct soft_qp *qp, const struct soft_qp *p)
{
	if (unlikely(p->remote_qpn != qp->qpn || p->peer_dev != qp->dev || p->st != qp->st))
		return false;
	return likely(!__atomic_load_n(&qp->dev->port_down, __ATOMIC_RELAXED) &&
		      !__atomic_load_n(&p->dev->port_down, __ATOMIC_RELAXED));
}

/* ---- soft_resp.c */
struct soft_qp *soft_resp_find_in_rtr(const struct soft_qp *qp, struct soft_qp *p);

/*
 * Find the QP that @qp is connected to, for a request that is sent: the first to a QP in RTR
 * raises an event. NULL: nobody answers.
 */
static inline struct soft_qp *
soft_resp_find(const struct soft_qp *qp)
{
	struct soft_qp *p;

	if (unlikely(qp->peer_dev == NULL))
		return NULL;
	p = soft_qp_find(qp->peer_dev, qp->remote_qpn);
	if (unlikely(p == NULL))
		return NULL;
	if (unlikely(soft_qp_state(p) != BB_PRM_QP_RTS))
		return soft_resp_find_in_rtr(qp, p);
	return soft_resp_linked(qp, p) ? p : NULL;
}

/* Only one in RTS, and nothing is raised: the request may turn out to be none. */
static inline struct soft_qp *
soft_resp_find_rts(const struct soft_qp *qp)
{
	struct soft_qp *p;

	if (unlikely(qp->peer_dev == NULL))
		return NULL;
	p = soft_qp_find(qp->peer_dev, qp->remote_qpn);
	if (unlikely(p == NULL || soft_qp_state(p) != BB_PRM_QP_RTS))
		return NULL;
	return soft_resp_linked(qp, p) ? p : NULL;
}

/* The target goes to ERR. A QP on a port is left to its RoCEv2 engine, which is told of it. */
void soft_resp_fail(struct soft_qp *p, uint16_t event);
/*
 * Refuse a request that needs no receive: tell the requester, raise the event. Only a
 * reliable peer is told; what an unreliable one wants is dropped.
 */
struct soft_answer soft_resp_refuse(struct soft_engine *e, struct soft_qp *p,
				    const struct soft_qp *qp, const struct soft_req *r,
				    uint8_t synd, const char *why);
/* More READs and atomics under way than the responder has resources for? */
bool soft_resp_too_many(const struct soft_qp *p, const struct soft_req *r);
/* Does the answer travel in the requester's CQE? Only where there is one (cs_req). */
bool soft_resp_to_cqe(const struct soft_qp *qp, const struct soft_req *r);

/* ---- soft_resp_recv.c */
/* A message of an unreliable peer that comes to nothing: one line, and SOFT_SILENCE. */
struct soft_answer soft_resp_drop(const struct soft_qp *p, uint32_t from, uint64_t len,
				  const char *why);
/* Is there a receive for a message of @qp (NULL: a datagram)? Then it is e->recv. */
struct soft_answer soft_resp_recv_ready(struct soft_engine *e, struct soft_qp *p,
					const struct soft_qp *qp, const struct soft_req *r);
/*
 * Where @len bytes of its message from @off on go: e->remote. 0, or what is wrong with the
 * receive.
 */
uint8_t soft_resp_scatter_at(struct soft_engine *e, const struct soft_qp *p, struct soft_req *r,
			     uint64_t off, uint64_t len, const char **why);
static inline uint8_t
soft_resp_scatter(struct soft_engine *e, const struct soft_qp *p, struct soft_req *r, uint64_t len,
		  const char **why)
{
	return soft_resp_scatter_at(e, p, r, 0, len, why);
}
/* The receive taken fails: its CQE, then ERR. */
struct soft_answer soft_resp_recv_fail(struct soft_engine *e, struct soft_qp *p,
				       const struct soft_qp *qp, uint64_t len, uint8_t synd,
				       const char *why);
/* The completion of a receive. */
struct soft_answer soft_resp_recv_done(struct soft_engine *e, struct soft_qp *p,
				       const struct soft_req *r, uint8_t opcode, uint32_t imm,
				       const uint8_t *data);
struct soft_answer soft_resp_send(struct soft_engine *e, struct soft_qp *p,
				  const struct soft_qp *qp, struct soft_req *r);

/* ---- soft_resp_atomic.c */
/* A plain one of 8 bytes: what was there before. Memory and operands are in host order. */
uint64_t soft_atomic(struct soft_engine *e, bool add, uint64_t *at, uint64_t swap_add,
		     uint64_t compare);
struct soft_answer soft_resp_atomic(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp,
				    struct soft_req *r);
/* The same answer again. False: it is not remembered. */
bool soft_resp_atomic_replay(struct soft_engine *e, const struct soft_qp *p, struct soft_qp *qp,
			     const struct soft_req *r);

#endif
