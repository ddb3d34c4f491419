/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Recovery of a connection that broke.
 *
 * Both sides move their QP to RESET and report the fate of each of its requests: whether the
 * request was executed (enum bb_wr_fate). The side that connected before connects again, with
 * pauses that double. Its REQ names the session, a random number from the peer's first REP. The
 * accepting side waits for that REQ. The REQ arrives on a new half-open connection, called the
 * successor. The lost connection then takes over the file descriptor of its successor. If the REQ
 * arrives before the accepting side has detected the loss, that side first resets its QP.
 *
 * The recovered QP gets new PSNs. The GID is looked up again by its address, because its index may
 * have changed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_log.h>
#include <rte_random.h>

#include "bb_cm_priv.h"

static uint32_t
max_ends(const struct bb_qp *qp)
{
	const struct bb_qp_init_attr *init = &qp->ctrl->init;

	return init->sq_depth + (init->srq != NULL ? init->srq->ctrl->attr.depth : init->rq_depth);
}

/* Moves the QP to RESET. Stores the fates of its requests in c->ends and in the event. */
static int
reset(struct bb_conn *c)
{
	struct bb_qp_recovery r = {.max = max_ends(c->qp)};
	int ret;

	free(c->ends);
	c->ends = calloc(r.max, sizeof(*r.ends));
	if (c->ends == NULL)
		return -ENOMEM;
	r.ends = c->ends;
	ret = bb_qp_recover_owned(c->qp, NULL, NULL, NULL, &r);
	c->ev.ends = c->ends;
	c->ev.nends = r.n;
	c->ev.flushed = r.flushed;
	return ret;
}

void
bb_cm_give_up(struct bb_conn *c, int status, const char *why)
{
	c->cm->ops->disconnect(c, true);
	bb_cm_close(c);
	if (c->was_established)
		bb_cm_report(c, BB_CM_DISCONNECTED, status, why);
	else
		bb_cm_report(c, BB_CM_FAILED, status != 0 ? status : -ECANCELED, why);
}

/* Calls reset(). If reset() fails, closes the connection and returns false. */
static bool
take_down(struct bb_conn *c)
{
	int ret = reset(c);

	if (ret == 0)
		return true;
	BB_LOG(ERR,
	       "QP 0x%x: cannot reset the QP to recover its connection (%d): the connection is closed",
	       c->qp->qpn, ret);
	bb_cm_give_up(c, ret, "the queue pair cannot be reset");
	return false;
}

void
bb_cm_lost(struct bb_conn *c, int status, const char *why)
{
	c->cm->ops->disconnect(c, true);
	if (!take_down(c))
		return;
	bb_cm_set_state(c, BB_CONN_LOST);
	c->awaiting_reply = false;
	c->tries = 0;
	c->backoff_ms = c->param.backoff_min_ms;
	c->deadline = bb_cm_after(c->cm, c->param.recover_ms);
	c->next_try = bb_cm_after(c->cm, c->backoff_ms);
	BB_LOG(NOTICE, "QP 0x%x: connection lost: %s", c->qp->qpn, why);
	bb_cm_report(c, BB_CM_LOST, status, why);
}

/*
 * Returns a random pause in the upper half of the current back-off time, so that many connections
 * do not retry at once.
 */
static uint32_t
pause_ms(const struct bb_conn *c)
{
	return c->backoff_ms / 2 + (uint32_t)rte_rand_max(c->backoff_ms - c->backoff_ms / 2 + 1);
}

/*
 * Ends a failed attempt to recover. If this side had replied and the peer had not sent RTU, the QP
 * was in RTS. So the application may have posted requests, and a message of the peer may have
 * consumed a receive of an SRQ. Their fates are reported in another LOST event.
 */
void
bb_cm_try_failed(struct bb_conn *c, int status, const char *why)
{
	c->cm->ops->disconnect(c, true);
	bb_cm_resolve_end(c);
	c->awaiting_reply = false;
	/*
	 * Clear the event, because the peer's data of this attempt must not appear in a later
	 * event.
	 */
	memset(&c->ev, 0, sizeof(c->ev));
	if (c->qp->state != BB_QP_RESET && !take_down(c))
		return;
	BB_LOG(INFO, "QP 0x%x: attempt %u to recover its connection failed: %s (%d)", c->qp->qpn,
	       c->tries, why, status);
	c->next_try = bb_cm_after(c->cm, pause_ms(c));
	c->backoff_ms = RTE_MIN(2 * c->backoff_ms, c->param.backoff_max_ms);
	if (c->ev.nends != 0)
		bb_cm_report(c, BB_CM_LOST, status, why);
}

void
bb_cm_recovered(struct bb_conn *c)
{
	c->awaiting_reply = false;
	c->deadline = 0;
	c->recoveries++;
	c->cm->stats.recovered++;
	bb_cm_set_state(c, BB_CONN_ESTABLISHED);
	bb_cm_report(c, BB_CM_RECOVERED, 0, "the connection recovered");
}

/* ---- Connecting side */

static void
resend_req(struct bb_conn *c)
{
	struct bb_port_attr port;
	int ret;

	c->tries++;
	ret = bb_port_query(c->cm->dev, c->param.path.port, &port);
	if (ret == 0 && port.state != BB_PORT_ACTIVE)
		ret = -ENETDOWN;
	if (ret == 0)
		ret = bb_cm_own_end(c);
	if (ret == 0) {
		c->awaiting_reply = true;
		c->next_try = bb_cm_after(c->cm, c->param.timeout_ms);
		ret = c->cm->ops->connect(c);
	}
	if (ret != 0)
		bb_cm_try_failed(c, ret,
				 ret == -ENETDOWN ? "the port is down"
						  : "the connection request cannot be started");
}

/* ---- Accepting side */

/*
 * Moves the transport connection and the peer's parameters from the successor (the new connection
 * on which the peer resumes @c) to @c.
 */
static void
take_over_successor(struct bb_conn *c)
{
	struct bb_conn *h = c->successor;

	c->cm->ops->disconnect(c, true);
	c->cm->ops->adopt(c, h);
	c->peer = h->peer;
	c->addr = h->addr;
	free(c->peer_regions);
	c->peer_regions = h->peer_regions;
	c->npeer_regions = h->npeer_regions;
	free(c->peer_private);
	c->peer_private = h->peer_private;
	c->peer_private_len = h->peer_private_len;
	h->peer_regions = NULL;
	h->peer_private = NULL;
	bb_cm_conn_free(h);
}

static void
resend_rep(struct bb_conn *c)
{
	int ret;

	take_over_successor(c);
	c->tries++;
	c->ev.private_data = c->peer_private;
	c->ev.private_len = c->peer_private_len;
	ret = bb_cm_own_end(c);
	if (ret == 0) {
		bb_cm_depths(c);
		ret = bb_cm_qp_up(c);
	}
	if (ret == 0)
		ret = c->cm->ops->send(c, BB_CM_REP, 0, c->param.private_data,
				       c->param.private_len);
	if (ret != 0) {
		bb_cm_try_failed(c, ret, "the peer's request cannot be answered");
		return;
	}
	c->awaiting_reply = true;
	c->next_try = bb_cm_after(c->cm, c->param.timeout_ms);
}

bool
bb_cm_resume(struct bb_conn *c)
{
	struct bb_conn *old;

	LIST_FOREACH(old, bb_cm_sessions(c->cm, c->peer.session), session_link) {
		if (old->own.session == c->peer.session &&
		    (old->state == BB_CONN_ESTABLISHED || old->state == BB_CONN_LOST))
			break;
	}
	if (old == NULL || !bb_cm_is_recoverable(old) || (c->peer.flags & BB_CM_RECOVERABLE) == 0 ||
	    c->peer.qp_type != old->own.qp_type)
		return false;
	bb_cm_drop_successor(old);
	old->successor = c;
	c->predecessor = old;
	/*
	 * The peer's request has arrived on this new connection, so the deadline of half-open
	 * connections no longer applies. The wait ends at the deadline of the lost connection.
	 */
	c->deadline = 0;
	c->cm->n_successors++;
	/*
	 * Wake the application, because bb_cm_lost_step() processes the new connection in a later
	 * poll.
	 */
	bb_cm_wake(c->cm);
	return true;
}

void
bb_cm_lost_step(struct bb_conn *c)
{
	const bool due = (int64_t)(bb_cm_now() - c->next_try) >= 0;

	/* The peer has sent another request, so our reply was lost or ignored. */
	if (c->successor != NULL && c->awaiting_reply)
		bb_cm_try_failed(c, -ECONNRESET, "the peer started the connection anew");
	else if (c->successor != NULL && bb_cm_peer_ready(c, &c->successor->peer) != -EAGAIN)
		resend_rep(c);
	else if (c->awaiting_reply && due)
		bb_cm_try_failed(c, -ETIMEDOUT, "the peer does not answer");
	else if (c->active && !c->awaiting_reply && due)
		resend_req(c);
}
