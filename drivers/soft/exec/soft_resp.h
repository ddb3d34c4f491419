/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations that the responder's files share. */
#ifndef SOFT_RESP_H
#define SOFT_RESP_H

#include "soft_data.h"

static const struct soft_response soft_ack = {.kind = SOFT_ACK};
static const struct soft_response soft_owner = {.kind = SOFT_OWNER};

static inline struct soft_response
soft_nak(uint8_t synd)
{
	return (struct soft_response){.kind = SOFT_NAK, .code = synd};
}

/* Returns true if @p is connected to @qp and the ports of both devices are up. */
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
 * Returns the QP that executes a request of @qp: the QP to which @qp is connected. Returns NULL if
 * no connected QP can process the request. The first request to a QP in RTR raises an event.
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

/*
 * Returns the peer of @qp if the peer is in RTS, else NULL. Raises no event, because the WQE is not
 * yet checked and may be invalid.
 */
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

/*
 * Moves the target QP to ERR and raises @event. Does nothing on a device that sends packets: there
 * soft_wire_failed() moves the QP to ERR, after the NAK has left.
 */
void soft_resp_fail(struct soft_qp *p, uint16_t event);
struct soft_response soft_resp_no_memory(struct soft_engine *e, struct soft_qp *p,
					 const struct soft_qp *qp, const struct soft_req *r,
					 bool write, const char *why);
/*
 * Rejects a request that needs no receive, and raises the event. A reliable peer gets a NAK. The
 * message of an unreliable peer is dropped.
 */
struct soft_response soft_resp_refuse(struct soft_engine *e, struct soft_qp *p,
				      const struct soft_qp *qp, const struct soft_req *r,
				      uint8_t synd, const char *why);
/*
 * Returns true if the requester has more READs and atomics outstanding than the responder has
 * resources for.
 */
bool soft_resp_too_many(const struct soft_qp *p, const struct soft_req *r);
/*
 * Returns true if the response is written into the requester's CQE. That requires cs_req, a
 * signaled WQE, and a response that fits into the CQE.
 */
bool soft_resp_to_cqe(const struct soft_qp *qp, const struct soft_req *r);

/* ---- soft_resp_recv.c */
/* Drops a message of an unreliable peer and logs the reason @why. Returns SOFT_SILENCE. */
struct soft_response soft_resp_drop(const struct soft_qp *p, uint32_t from, uint64_t len,
				    const char *why);
/* Prepares the next receive in e->recv for a message of @qp (NULL for a datagram). */
struct soft_response soft_resp_recv_ready(struct soft_engine *e, struct soft_qp *p,
					  const struct soft_qp *qp, const struct soft_req *r);
/*
 * Resolves the receive's buffers for @len bytes of the message, from offset @off, into e->remote.
 * Returns 0 or the syndrome for the receive's error CQE.
 */
uint8_t soft_resp_scatter_at(struct soft_engine *e, const struct soft_qp *p, struct soft_req *r,
			     uint64_t off, uint64_t len, const char **why);
static inline uint8_t
soft_resp_scatter(struct soft_engine *e, const struct soft_qp *p, struct soft_req *r, uint64_t len,
		  const char **why)
{
	return soft_resp_scatter_at(e, p, r, 0, len, why);
}
/*
 * Returns true if a message of @len bytes waits for a missing page of the receive in e->recv.
 * @synd: the error of soft_resp_scatter_at().
 */
bool soft_resp_recv_faulted(const struct soft_engine *e, struct soft_qp *p, uint64_t len,
			    uint8_t synd);
/* Completes the receive in e->recv with an error CQE and moves the QP to ERR. */
struct soft_response soft_resp_recv_fail(struct soft_engine *e, struct soft_qp *p,
					 const struct soft_qp *qp, uint64_t len, uint8_t synd,
					 const char *why);
/* Completes the receive in e->recv for the message of @r. */
struct soft_response soft_resp_recv_done(struct soft_engine *e, struct soft_qp *p,
					 const struct soft_req *r, uint8_t opcode, uint32_t imm,
					 const uint8_t *data);
struct soft_response soft_resp_send(struct soft_engine *e, struct soft_qp *p,
				    const struct soft_qp *qp, struct soft_req *r);

/* ---- soft_resp_atomic.c */
/*
 * Executes a plain atomic of 8 bytes. Returns the value before the operation. Memory and operands
 * are in host byte order.
 */
uint64_t soft_atomic(struct soft_engine *e, bool add, uint64_t *at, uint64_t swap_add,
		     uint64_t compare);
struct soft_response soft_resp_atomic(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp,
				      struct soft_req *r);
/*
 * Repeats the stored response of an atomic. Returns false if the responder no longer stores that
 * response.
 */
bool soft_resp_atomic_replay(struct soft_engine *e, const struct soft_qp *p, struct soft_qp *qp,
			     const struct soft_req *r);

#endif
