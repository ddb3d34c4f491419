/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Events of the CM engine: the inbox of a CM, and what each event means for its connection. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "bb_cm_ib.h"
#include "bb_gid_priv.h"

#define BATCH 64u /* events that a poll handles at most */
/*
 * Limit of the ack timeout that a peer requests: 17 s. With 31, the device would need hours to
 * report a peer that has died.
 */
#define MAX_ACK_TIMEOUT 22u

/* ---- Functions that run in the thread that polls QP1, under the lock of QP1 */

static void
set_queued(struct ib_conn *ic, bool queued)
{
	struct ib_cm *ib = ic->ib;

	if (ic->queued == queued)
		return;
	ic->queued = queued;
	if (queued)
		TAILQ_INSERT_TAIL(&ib->inbox, ic, link);
	else
		TAILQ_REMOVE(&ib->inbox, ic, link);
	__atomic_store_n(&ib->n_inbox, ib->n_inbox + (queued ? 1 : (uint32_t)-1), __ATOMIC_RELAXED);
}

/* Fills the peer's parameters from a REQ. @net: path to the peer. */
static void
end_of_req(struct bb_cm_end *end, const struct bb_ibcm_req *r, const struct bb_ibcm_net *net)
{
	end->addr.qpn = r->qpn;
	end->addr.psn = r->psn;
	end->addr.mtu = (uint16_t)(128u << r->mtu);
	memcpy(end->addr.gid, net->dst, sizeof(end->addr.gid));
	end->qp_type = r->transport == BB_IBCM_UC ? BB_QPT_UC : BB_QPT_RC;
	end->initiator_depth = (uint8_t)r->initiator_depth;
	end->responder_resources = (uint8_t)r->responder_resources;
	end->retry_count = (uint8_t)r->retry_count;
	end->rnr_retry_count = (uint8_t)r->rnr_retry;
	end->flags = r->srq != 0 ? BB_CM_SRQ : 0;
	end->ack_timeout = (uint8_t)RTE_MIN(r->primary.ack_timeout, MAX_ACK_TIMEOUT);
}

/* Fills the peer's parameters from a REP. The type and the MTU of the QP are those of the REQ. */
static void
end_of_rep(struct bb_cm_end *end, const struct bb_ibcm_rep *r, const struct bb_ibcm_net *net)
{
	end->addr.qpn = r->qpn;
	end->addr.psn = r->psn;
	memcpy(end->addr.gid, net->dst, sizeof(end->addr.gid));
	end->initiator_depth = (uint8_t)r->initiator_depth;
	end->responder_resources = (uint8_t)r->responder_resources;
	end->rnr_retry_count = (uint8_t)r->rnr_retry;
	end->flags = r->srq != 0 ? BB_CM_SRQ : 0;
}

/* Stores an event. The private data of a REQ starts after the IP CM header. */
static void
store(struct ib_conn *ic, const struct bb_ibcm_event *ev)
{
	const uint32_t skip = ev->type == BB_IBCM_EV_REQ ? BB_IBCM_IP_LEN : 0;
	struct ib_event *e;

	if (ic->nev == IB_EVENTS)
		return;
	e = &ic->ev[ic->nev++];
	memset(e, 0, offsetof(struct ib_event, priv));
	e->type = ev->type;
	e->status = ev->status;
	if (ev->msg != NULL && ev->msg->priv_len <= sizeof(e->priv) && ev->msg->priv_len >= skip) {
		e->priv_len = ev->msg->priv_len - skip;
		memcpy(e->priv, ev->msg->priv + skip, e->priv_len);
	}
	if (ev->type == BB_IBCM_EV_REQ)
		end_of_req(&e->end, &ev->msg->req, ev->net);
	else if (ev->type == BB_IBCM_EV_REP)
		end_of_rep(&e->end, &ev->msg->rep, ev->net);
	else if (ev->type == BB_IBCM_EV_REJECTED)
		e->reason = ev->msg->rej.reason;
	set_queued(ic, true);
}

static void
conn_event(struct bb_qp1_user *user, const struct bb_ibcm_event *ev)
{
	store((struct ib_conn *)user, ev);
}

static void
set_from(struct sockaddr_storage *to, const struct bb_ibcm_ip *ip)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;

	if (ip->version == 4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(ip->sport);
		memcpy(&v4->sin_addr, ip->src + 12, 4);
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(ip->sport);
		memcpy(&v6->sin6_addr, ip->src, 16);
	}
}

static void
refuse(const struct ib_cm *ib, const struct bb_ibcm_event *ev, enum bb_ibcm_reason reason)
{
	(void)bb_ibcm_reject(ib->engine, ev->id, (uint16_t)reason, NULL, 0, bb_qp1_now());
	(void)bb_ibcm_release(ib->engine, ev->id, bb_qp1_now());
}

void
ib_listener_event(struct bb_qp1_user *user, const struct bb_ibcm_event *ev)
{
	struct bb_listener *l = ((struct ib_listener *)user)->l;
	struct ib_cm *ib = ib_of(l->cm);
	struct ib_conn *ic;

	/*
	 * On RoCE the IP address of a host is its GID (Linux: rdma_ip2gid()). If the header could
	 * have any addresses, a peer could evade the limits per address, and reach a listener that
	 * is bound to another address of the device.
	 */
	if (memcmp(ev->ip->src, ev->net->dst, sizeof(ev->ip->src)) != 0 ||
	    memcmp(ev->ip->dst, ev->net->src, sizeof(ev->ip->dst)) != 0) {
		refuse(ib, ev, BB_IBCM_REJ_GID);
		return;
	}
	ic = ib->requests < l->cm->attr.max_half_open ? ib_conn_new(ib) : NULL;
	if (ic == NULL) {
		refuse(ib, ev, BB_IBCM_REJ_NO_RESOURCES);
		return;
	}
	ic->id = ev->id;
	ic->has_id = true;
	ic->listener = l;
	ic->request = true;
	ib->requests++;
	set_from(&ic->from, ev->ip);
	memcpy(ic->local_gid, ev->net->src, sizeof(ic->local_gid));
	(void)bb_ibcm_cookie_set(ib->engine, ev->id, bb_qp1_cookie(&ic->user));
	store(ic, ev);
}

/* ---- Connections of the engine */

struct ib_conn *
ib_conn_new(struct ib_cm *ib)
{
	struct ib_conn *ic = calloc(1, sizeof(*ic));

	if (ic == NULL)
		return NULL;
	ic->user.event = conn_event;
	ic->ib = ib;
	return ic;
}

void
ib_conn_free(struct ib_conn *ic)
{
	struct ib_cm *ib = ic->ib;

	set_queued(ic, false);
	if (ic->request)
		ib->requests--;
	if (ic->has_id)
		(void)bb_ibcm_release(ib->engine, ic->id, bb_qp1_now());
	free(ic);
}

void
ib_conn_abandon(struct ib_conn *ic)
{
	if (ic->has_id)
		(void)bb_ibcm_abandon(ic->ib->engine, ic->id, bb_qp1_now());
	ic->has_id = false;
	ib_conn_free(ic);
}

/*
 * Puts the REQ of @c into the inbox of @to, as if @to had received it. Call under the lock of QP1.
 */
static void
move_request(struct ib_conn *ic, const struct bb_conn *c, struct ib_cm *to)
{
	struct ib_event *e = &ic->ev[0];

	memset(e, 0, offsetof(struct ib_event, priv));
	e->type = BB_IBCM_EV_REQ;
	e->end = c->peer;
	e->priv_len = c->peer_private_len; /* comes from an event, so it fits */
	if (e->priv_len != 0)
		memcpy(e->priv, c->peer_private, e->priv_len);
	ic->nev = 1;
	ic->ib = to;
	ic->c = NULL;
	ic->request = true;
	to->requests++;
	set_queued(ic, true);
}

int
ib_migrate(struct bb_conn *c, struct bb_cm *cm)
{
	struct ib_conn *ic = c->transport_ctx;
	struct ib_cm *to = ib_of(cm);
	int ret = 0;

	if (ic == NULL)
		return -ENOTCONN;
	bb_qp1_lock(to->q);
	if (ic->nev != 0)
		ret = -ENOTCONN; /* the peer has cancelled its request */
	else if (to->requests >= cm->attr.max_half_open)
		ret = -ENOSPC;
	else
		move_request(ic, c, to);
	bb_qp1_unlock(to->q);
	if (ret == 0)
		c->transport_ctx = NULL;
	return ret;
}

/* ---- Functions that run in the CM's own thread, without the lock of QP1 */

/*
 * Creates a connection for a request. It is half-open until its peer's MAC is resolved. Without
 * room the request is abandoned: the peer repeats it, or gets a rejection.
 */
static void
request(struct ib_conn *ic, struct bb_cm_msg *msg)
{
	struct bb_cm *cm = ic->ib->cm;
	struct bb_conn *c = NULL;
	struct bb_listener *l;

	if (bb_cm_make_room(cm))
		c = bb_cm_conn_new(cm);
	bb_qp1_lock(ic->ib->q);
	l = ic->listener;
	ic->listener = NULL;
	ic->request = false;
	ic->ib->requests--;
	ic->c = c;
	if (c == NULL)
		ib_conn_abandon(ic);
	bb_qp1_unlock(ib_of(cm)->q);
	if (c == NULL)
		return;
	c->transport_ctx = ic;
	c->listener = l;
	c->addr = ic->from;
	memcpy(c->sgid, ic->local_gid, sizeof(c->sgid));
	c->sgid_fixed = true;
	c->half_open = true;
	TAILQ_INSERT_TAIL(&cm->half_open_conns, c, half_link);
	cm->stats.half_open++;
	bb_cm_set_state(c, BB_CONN_CONNECTING);
	c->deadline = bb_cm_after(cm, cm->attr.half_open_ms);
	bb_cm_received(c, msg);
}

static void
rejected(struct bb_conn *c, struct bb_cm_msg *msg)
{
	/* The peer has withdrawn a request that the application has not answered yet. */
	if (!c->active && c->state != BB_CONN_ACCEPTED) {
		bb_cm_broken(c, -ECONNRESET, "the peer cancelled its request");
		return;
	}
	msg->type = BB_CM_REJ;
	bb_cm_received(c, msg);
}

static void
disconnected(struct bb_conn *c, struct bb_cm_msg *msg, int status)
{
	if (c->state == BB_CONN_DISCONNECTING) {
		msg->type = BB_CM_DREP;
		bb_cm_received(c, msg);
	} else if (status == 0 && c->state != BB_CONN_CONNECTING) {
		msg->type = BB_CM_DREQ;
		bb_cm_received(c, msg);
	} else {
		bb_cm_broken(c, status != 0 ? status : -ECONNRESET,
			     status == -ETIMEDOUT ? "the peer does not answer"
						  : "the peer ended the connection");
	}
}

static void
handle(struct ib_conn *ic, const struct ib_event *e)
{
	struct bb_cm_msg msg = {
		.end = e->end,
		.reason = e->reason,
		.private = e->priv_len != 0 ? e->priv : NULL,
		.private_len = e->priv_len,
	};
	struct bb_conn *c = ic->c;

	if (e->type == BB_IBCM_EV_REQ) {
		msg.type = BB_CM_REQ;
		request(ic, &msg);
		return;
	}
	/* The application has ended the connection before the event. */
	if (c->state == BB_CONN_CLOSED)
		return;
	switch (e->type) {
	case BB_IBCM_EV_REP:
		msg.type = BB_CM_REP;
		msg.end.qp_type = c->own.qp_type;
		msg.end.addr.mtu = c->own.addr.mtu;
		bb_cm_received(c, &msg);
		break;
	case BB_IBCM_EV_ESTABLISHED:
		msg.type = BB_CM_RTU;
		msg.private_len = 0;
		/* This side may have disconnected before it handled this event. */
		if (c->state == BB_CONN_ACCEPTED)
			bb_cm_received(c, &msg);
		break;
	case BB_IBCM_EV_REJECTED:
		rejected(c, &msg);
		break;
	case BB_IBCM_EV_DISCONNECTED:
		disconnected(c, &msg, e->status);
		break;
	default:
		bb_cm_broken(c, e->status,
			     e->status == -ECONNREFUSED
				     ? "the peer's reply names a queue pair that "
				       "is connected already"
				     : "the peer does not answer");
	}
}

/*
 * Takes the next event of a connection that can handle one. Examines at most *@left connections,
 * and subtracts their number from *@left. Returns NULL if there is no event.
 */
static struct ib_conn *
next_event(struct ib_cm *ib, struct ib_event *e, uint32_t *left)
{
	struct ib_conn *ic = NULL;

	bb_qp1_lock(ib->q);
	while (*left != 0 && (ic = TAILQ_FIRST(&ib->inbox)) != NULL) {
		--*left;
		set_queued(ic, false);
		if (ic->c == NULL || (bb_cm_can_receive(ic->c) && !ic->c->resolving))
			break;
		set_queued(ic, true);
		ic = NULL;
	}
	if (ic != NULL) {
		*e = ic->ev[0];
		ic->nev--;
		memmove(&ic->ev[0], &ic->ev[1], ic->nev * sizeof(ic->ev[0]));
		set_queued(ic, ic->nev != 0);
	}
	bb_qp1_unlock(ib->q);
	return ic;
}

void
ib_poll(struct bb_cm *cm)
{
	struct ib_cm *ib = ib_of(cm);
	struct ib_event e;
	struct ib_conn *ic;
	uint32_t left;

	bb_qp1_poll(ib->q);
	left = __atomic_load_n(&ib->n_inbox, __ATOMIC_RELAXED);
	if (left > BATCH)
		left = BATCH;
	while (left != 0 && (ic = next_event(ib, &e, &left)) != NULL)
		handle(ic, &e);
}
