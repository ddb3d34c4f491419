/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * States of a connection, independent of the transport of its messages:
 *
 *   connecting side:  CONNECTING -REP-> ESTABLISHED (sends RTU)
 *   accepting side:   half-open -REQ-> REQUESTED -accept-> ACCEPTED (sent REP) -RTU-> ESTABLISHED
 *   both:             ESTABLISHED -disconnect-> DISCONNECTING (sent DREQ) -DREP-> CLOSED
 *                     ESTABLISHED -DREQ-> CLOSED (sends DREP)
 *                     ESTABLISHED -breaks-> CLOSED, or LOST and back (bb_cm_recover.c)
 *
 * The accepting side moves its QP to RTS before it sends REP, because the peer's first data may
 * arrive before the RTU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_common.h>
#include <rte_log.h>

#include "bb_cm_priv.h"
#include "bb_gid_priv.h"

/* ---- Parameters of this side */

/* Sets the requirements of the GID that this side uses. */
static void
gid_wanted(const struct bb_conn *c, struct bb_gid_want *want)
{
	static const uint8_t none[16];
	const bool answered = c->peer.addr.qpn != 0;
	uint8_t peer[16];

	if (c->sgid_fixed) {
		bb_gid_want_init(want);
		want->exact = true;
		memcpy(want->raw, c->sgid, sizeof(want->raw));
		return;
	}
	*want = c->param.gid;
	if (!want->exact && !want->prefer && memcmp(c->sgid, none, sizeof(none)) != 0) {
		want->prefer = true;
		memcpy(want->raw, c->sgid, sizeof(want->raw));
	}
	if (!answered && !c->cm->ops->peer_is_gid)
		return;
	if (answered)
		memcpy(peer, c->peer.addr.gid, sizeof(peer));
	else
		bb_cm_gid_of(&c->addr, peer);
	/* One side's GID decides the address family: the acceptor uses that of its peer. */
	if ((!c->active || c->cm->ops->peer_is_gid) && want->family == BB_GID_ANY_FAMILY)
		want->family = bb_gid_is_ipv4(peer) ? BB_GID_IPV4 : BB_GID_IPV6;
	want->peer_given = true;
	memcpy(want->peer, peer, sizeof(want->peer));
}

/*
 * Chooses the GID of this side. If the GID in use still exists, chooses it again, also if its index
 * has changed.
 */
int
bb_cm_choose_gid(struct bb_conn *c)
{
	struct bb_gid_want want;
	struct bb_gid gid;
	int ret;

	if (!c->cm->dev->ethernet || (c->param.sgid_index_given && !c->sgid_fixed))
		return 0;
	gid_wanted(c, &want);
	ret = bb_gid_choose_logged(c->cm->dev, c->param.path.port, &want, &c->param.path.sgid_index,
				   &c->no_gid);
	if (ret == 0)
		ret = bb_gid_query(c->cm->dev, c->param.path.port, c->param.path.sgid_index, &gid);
	if (ret == 0)
		memcpy(c->sgid, gid.raw, sizeof(c->sgid));
	return ret;
}

/*
 * Gives the connection a session number, drawn at random. A peer that knows the number may resume
 * the connection, so the number must not be guessable.
 */
static int
new_session(struct bb_conn *c)
{
	uint64_t session;

	do {
		if (getrandom(&session, sizeof(session), 0) != (ssize_t)sizeof(session))
			return errno != 0 ? -errno : -EIO;
	} while (session == 0);
	c->own.session = session;
	c->has_session = true;
	LIST_INSERT_HEAD(bb_cm_sessions(c->cm, session), c, session_link);
	return 0;
}

/*
 * Returns true if the port needs a GRH. Returns false if the port cannot be queried; the caller's
 * next query of the port reports that error.
 */
static bool
needs_grh(const struct bb_conn *c)
{
	struct bb_port_attr port;

	return c->cm->ops->addresses && !c->cm->dev->ethernet &&
	       bb_port_query(c->cm->dev, c->param.path.port, &port) == 0 && port.grh_required;
}

int
bb_cm_own_end(struct bb_conn *c)
{
	const struct bb_conn_param *p = &c->param;
	const struct bb_qp_ctrl *q = c->qp->ctrl;
	const struct bb_dev_attr *dev = &c->cm->dev->attr;
	struct bb_cm_end *e = &c->own;
	struct bb_qp_addr addr;
	int ret = 0;

	if (!c->active && e->session == 0)
		ret = new_session(c);
	/*
	 * With librdmacm, the kernel finds GID, LID and MTU and chooses the PSN, so these fields
	 * stay 0.
	 */
	memset(&addr, 0, sizeof(addr));
	addr.qpn = c->qp->qpn;
	if (ret == 0 && c->cm->ops->addresses)
		ret = bb_cm_choose_gid(c);
	if (ret == 0 && c->cm->ops->addresses)
		ret = bb_qp_addr(c->qp, p->path.port, p->path.sgid_index, &addr);
	if (ret != 0)
		return ret;
	e->addr = addr;
	if (p->path_mtu != 0 && p->path_mtu < addr.mtu)
		e->addr.mtu = (uint16_t)p->path_mtu;
	e->qp_type = (uint8_t)q->init.type;
	e->initiator_depth = (uint8_t)RTE_MIN((uint32_t)p->initiator_depth, dev->max_rd_atomic);
	e->responder_resources =
		(uint8_t)RTE_MIN((uint32_t)p->responder_resources, dev->max_dest_rd_atomic);
	e->retry_count = p->retry_count;
	e->rnr_retry_count = p->rnr_retry_count;
	e->flags =
		(uint8_t)((p->recover_ms != 0 ? BB_CM_RECOVERABLE : 0) |
			  (q->init.srq != NULL ? BB_CM_SRQ : 0) | (needs_grh(c) ? BB_CM_GRH : 0));
	e->sq_depth = q->init.sq_depth;
	e->rq_depth = q->init.srq != NULL ? 0 : q->init.rq_depth;
	return 0;
}

void
bb_cm_depths(struct bb_conn *c)
{
	c->rd_init = RTE_MIN(c->own.initiator_depth, c->peer.responder_resources);
	c->rd_resp = RTE_MIN(c->own.responder_resources, c->peer.initiator_depth);
}

bool
bb_cm_is_recoverable(const struct bb_conn *c)
{
	return c->param.recover_ms != 0 && (c->peer.flags & BB_CM_RECOVERABLE) != 0;
}

int
bb_cm_qp_error(struct bb_conn *c)
{
	struct bb_qp_attr attr;

	if (c->qp == NULL || c->qp->state == BB_QP_RESET || c->qp->state == BB_QP_ERR)
		return 0;
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	return bb_qp_modify(c->qp, &attr, BB_QP_STATE);
}

/* ---- Parameters and private data from the peer */

int
bb_cm_store_peer(struct bb_conn *c, const struct bb_cm_msg *msg)
{
	struct bb_region *regions = NULL;
	uint8_t *private = NULL;

	if (msg->nregions != 0) {
		regions = malloc(msg->nregions * sizeof(*regions));
		if (regions == NULL)
			return -ENOMEM;
		memcpy(regions, msg->regions, msg->nregions * sizeof(*regions));
	}
	if (msg->private_len != 0) {
		private = malloc(msg->private_len);
		if (private == NULL) {
			free(regions);
			return -ENOMEM;
		}
		memcpy(private, msg->private, msg->private_len);
	}
	free(c->peer_private);
	c->peer_private = private;
	c->peer_private_len = msg->private_len;
	c->ev.private_data = private;
	c->ev.private_len = msg->private_len;
	if (msg->type == BB_CM_REQ || msg->type == BB_CM_REP) {
		free(c->peer_regions);
		c->peer_regions = regions;
		c->npeer_regions = msg->nregions;
		c->peer = msg->end;
	}
	return 0;
}

void
bb_cm_close(struct bb_conn *c)
{
	bb_cm_resolve_end(c);
	bb_cm_drop_successor(c);
	(void)bb_cm_qp_error(c);
	bb_cm_set_state(c, BB_CONN_CLOSED);
	c->deadline = 0;
	c->awaiting_reply = false;
}

/* Fails a connection that was never ESTABLISHED. */
static void
fail(struct bb_conn *c, int status, const char *why)
{
	c->cm->ops->disconnect(c, true);
	if (c->half_open) {
		bb_cm_conn_free(c);
		return;
	}
	bb_cm_close(c);
	bb_cm_report(c, BB_CM_FAILED, status, why);
}

static void
closed(struct bb_conn *c, int status, const char *why)
{
	bb_cm_close(c);
	bb_cm_report(c, BB_CM_DISCONNECTED, status, why);
}

/* ---- Messages */

static void
refuse_req(struct bb_conn *c, uint32_t reason, int status, const char *why)
{
	(void)c->cm->ops->send(c, BB_CM_REJ, reason, why, (uint32_t)strlen(why));
	c->cm->stats.rejected++;
	fail(c, status, why);
}

/* Passes a REQ to the application, or to the lost connection that the REQ resumes. */
static void
take_req(struct bb_conn *c)
{
	struct bb_cm *cm = c->cm;

	if (c->peer.session != 0 && bb_cm_resume(c))
		return;
	if (cm->stats.conns - cm->stats.half_open >= cm->attr.max_conns) {
		refuse_req(c, BB_REJECT_NO_RESOURCES, -ENOSPC,
			   "the CM already has max_conns "
			   "connections");
		return;
	}
	TAILQ_REMOVE(&cm->half_open_conns, c, half_link);
	cm->stats.half_open--;
	c->half_open = false;
	/*
	 * No deadline is set: the peer limits the time that it waits for the application, and then
	 * hangs up.
	 */
	c->deadline = 0;
	bb_cm_set_state(c, BB_CONN_REQUESTED);
	c->ev.listener = c->listener;
	c->ev.restarted = c->peer.session != 0;
	bb_cm_report(c, BB_CM_CONNECT_REQUEST, 0, "a peer requests a connection");
}

/*
 * Resolves the MAC of the peer's GID before the application gets the request, so that
 * bb_conn_accept() need not wait for it.
 */
static void
resolve_req(struct bb_conn *c)
{
	int ret = bb_cm_may_resolve(c) ? bb_cm_peer_ready(c, &c->peer) : -EAGAIN;
	struct bb_listener *l = c->listener;

	/* This side's address may have moved to another index since the last connection. */
	if (ret != 0 && ret != -EAGAIN && c->path_sure && l != NULL && l->accepted) {
		l->accepted = false;
		if (bb_cm_request_path(c))
			ret = bb_cm_peer_ready(c, &c->peer);
	}
	if (ret == -EAGAIN) {
		bb_cm_resolve_begin(c);
		return;
	}
	bb_cm_resolve_end(c);
	/*
	 * If path_sure is false, this side's GID is only a guess. Then report the request in spite
	 * of the error, because the application may accept it with another local GID that can reach
	 * the peer.
	 */
	if (ret == 0 || !c->path_sure) {
		take_req(c);
		return;
	}
	bb_cm_bad(c, "REQ", "names a GID that cannot be reached");
	refuse_req(c, BB_REJECT_GID, ret, "your GID cannot be reached from here");
}

static void
received_req(struct bb_conn *c, const struct bb_cm_msg *msg)
{
	if (bb_cm_store_peer(c, msg) != 0) {
		fail(c, -ENOMEM, "no memory");
		return;
	}
	if (bb_cm_request_path(c))
		resolve_req(c);
	else
		take_req(c);
}

static void
take_rep(struct bb_conn *c)
{
	const bool again = c->was_established;
	int ret = bb_cm_qp_up(c);

	if (ret == -EAGAIN) {
		bb_cm_resolve_begin(c);
		return;
	}
	bb_cm_resolve_end(c);
	if (ret == 0)
		ret = c->cm->ops->send(c, BB_CM_RTU, 0, NULL, 0);
	if (ret != 0) {
		bb_cm_broken(c, ret, "the queue pair cannot be connected to the peer's");
		return;
	}
	if (again) {
		bb_cm_recovered(c);
		return;
	}
	c->was_established = true;
	bb_cm_set_state(c, BB_CONN_ESTABLISHED);
	c->deadline = 0;
	c->cm->stats.established++;
	bb_cm_report(c, BB_CM_ESTABLISHED, 0, "established");
}

static void
received_rep(struct bb_conn *c, const struct bb_cm_msg *msg)
{
	int ret;

	if (c->cm->ops->addresses && msg->end.qp_type != c->own.qp_type) {
		bb_cm_broken(c, -EPROTO, "the queue pair of the peer has a different type");
		return;
	}
	if (c->was_established)
		c->ev.restarted = msg->end.session != c->own.session;
	ret = bb_cm_store_peer(c, msg);
	if (ret != 0) {
		bb_cm_broken(c, ret, "no memory");
		return;
	}
	c->own.session = msg->end.session;
	bb_cm_depths(c);
	take_rep(c);
}

void
bb_cm_resolve_step(struct bb_conn *c)
{
	if (c->half_open)
		resolve_req(c);
	else if (c->state == BB_CONN_LOST && (int64_t)(bb_cm_now() - c->next_try) >= 0)
		bb_cm_try_failed(c, -ETIMEDOUT, "the peer's GID does not answer");
	else
		take_rep(c);
}

static void
received_rtu(struct bb_conn *c)
{
	if (c->state == BB_CONN_LOST) {
		bb_cm_recovered(c);
		return;
	}
	c->was_established = true;
	/* The application has disconnected meanwhile. */
	if (c->state == BB_CONN_DISCONNECTING)
		return;
	bb_cm_set_state(c, BB_CONN_ESTABLISHED);
	c->deadline = 0;
	c->cm->stats.established++;
	bb_cm_report(c, BB_CM_ESTABLISHED, 0, "established");
}

static void
received_rej(struct bb_conn *c, const struct bb_cm_msg *msg)
{
	/*
	 * The address may return at either side before recover_ms ends. TIMEOUT: the peer has not
	 * resolved it in time.
	 */
	if (c->state == BB_CONN_LOST &&
	    (msg->reason == BB_REJECT_GID || msg->reason == BB_REJECT_TIMEOUT)) {
		bb_cm_try_failed(c, -EHOSTUNREACH, bb_reject_name(msg->reason));
		return;
	}
	c->cm->ops->disconnect(c, false);
	(void)bb_cm_store_peer(c, msg);
	bb_cm_close(c);
	c->ev.reason = msg->reason;
	bb_cm_report(c, BB_CM_REJECTED, -ECONNREFUSED, bb_reject_name(msg->reason));
}

static void
received_dreq(struct bb_conn *c, const struct bb_cm_msg *msg)
{
	(void)bb_cm_store_peer(c, msg);
	(void)c->cm->ops->send(c, BB_CM_DREP, 0, NULL, 0);
	closed(c, 0, "the peer disconnected");
}

void
bb_cm_bad(struct bb_conn *c, const char *what, const char *why)
{
	struct bb_cm *cm = c->cm;
	const uint64_t now = bb_cm_now();
	struct bb_conn_info info;

	cm->stats.bad_messages++;
	/*
	 * Limit the log lines, because any host that can connect to the port may send any number of
	 * invalid messages.
	 */
	if (cm->last_log != 0 && now - cm->last_log < cm->hz) {
		cm->suppressed++;
		return;
	}
	bb_conn_query(c, &info);
	if (cm->suppressed != 0)
		BB_LOG(NOTICE, "connect: %u more invalid messages from peers were not logged",
		       cm->suppressed);
	BB_LOG(NOTICE, "connect: invalid message from peer %s: its %s %s", info.peer, what, why);
	cm->last_log = now;
	cm->suppressed = 0;
}

void
bb_cm_connected(struct bb_conn *c)
{
	int ret = c->cm->ops->send(c, BB_CM_REQ, 0, c->param.private_data, c->param.private_len);

	if (ret != 0)
		bb_cm_broken(c, ret, "the request cannot be sent");
}

/* Returns true if the connection's state allows a message of this type. */
static bool
is_due(const struct bb_conn *c, uint8_t type)
{
	const bool calling = c->active && (c->state == BB_CONN_CONNECTING || c->awaiting_reply);

	switch (type) {
	case BB_CM_REQ:
		return c->half_open && c->predecessor == NULL;
	case BB_CM_REP:
		return calling;
	case BB_CM_REJ:
		return calling || c->state == BB_CONN_ACCEPTED;
	case BB_CM_RTU:
		return !c->active && (c->state == BB_CONN_ACCEPTED || c->awaiting_reply ||
				      (c->state == BB_CONN_DISCONNECTING && !c->was_established));
	case BB_CM_DREQ:
		return c->state == BB_CONN_ESTABLISHED || c->state == BB_CONN_ACCEPTED ||
		       c->state == BB_CONN_DISCONNECTING || c->awaiting_reply;
	case BB_CM_DREP:
		return c->state == BB_CONN_DISCONNECTING;
	default:
		return false;
	}
}

void
bb_cm_received(struct bb_conn *c, const struct bb_cm_msg *msg)
{
	/* Both sides have disconnected at the same time, so the peer's message is ignored. */
	if (c->state == BB_CONN_CLOSED && (msg->type == BB_CM_DREQ || msg->type == BB_CM_DREP))
		return;
	if (!is_due(c, msg->type)) {
		bb_cm_bad(c, bb_cm_msg_name(msg->type), "is not expected in this state");
		bb_cm_broken(c, -EPROTO, "the peer sent an unexpected message");
		return;
	}
	switch (msg->type) {
	case BB_CM_REQ:
		received_req(c, msg);
		break;
	case BB_CM_REP:
		received_rep(c, msg);
		break;
	case BB_CM_RTU:
		received_rtu(c);
		break;
	case BB_CM_REJ:
		received_rej(c, msg);
		break;
	case BB_CM_DREQ:
		received_dreq(c, msg);
		break;
	default:
		c->cm->ops->disconnect(c, true);
		closed(c, 0, "this side disconnected");
	}
}

/* Handles a lost transport connection or an invalid message of the peer. */
void
bb_cm_broken(struct bb_conn *c, int status, const char *why)
{
	switch (c->state) {
	case BB_CONN_CONNECTING:
		fail(c, status, why);
		break;
	case BB_CONN_LOST:
		bb_cm_try_failed(c, status, why);
		break;
	case BB_CONN_ESTABLISHED:
		if (bb_cm_is_recoverable(c)) {
			bb_cm_lost(c, status, why);
			break;
		}
		/* fall through */
	case BB_CONN_REQUESTED:
	case BB_CONN_ACCEPTED:
		c->cm->ops->disconnect(c, true);
		closed(c, status, why);
		break;
	case BB_CONN_DISCONNECTING:
		c->cm->ops->disconnect(c, true);
		closed(c, 0, "this side disconnected");
		break;
	case BB_CONN_CLOSED:
		c->cm->ops->disconnect(c, true);
	}
}

void
bb_cm_expired(struct bb_conn *c)
{
	struct bb_cm *cm = c->cm;

	cm->stats.timeouts++;
	switch (c->state) {
	case BB_CONN_LOST:
		bb_cm_give_up(c, -ETIMEDOUT,
			      "the connection was not recovered within "
			      "recover_ms");
		break;
	case BB_CONN_CONNECTING:
		if (c->half_open && cm->attr.transport == BB_CM_TCP) {
			const char *why = c->resolving ? "your GID does not answer"
						       : "your request did not arrive";

			(void)cm->ops->send(c, BB_CM_REJ, BB_REJECT_TIMEOUT, why,
					    (uint32_t)strlen(why));
		}
		/* fall through */
	default:
		bb_cm_broken(c, -ETIMEDOUT, "the peer does not answer");
	}
}
