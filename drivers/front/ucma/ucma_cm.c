/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Events of the CM engine become events of the program (Linux: cma_ib_handler(),
 * cma_ib_req_handler() and cma_sidr_rep_handler() of drivers/infiniband/core/cma.c).
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "ucma_priv.h"

/* Maximum number of peers whose state ucma_peers_check() caches during a pass. */
#define ASKED 64u

/* Copies a message's private data to @to, without the first @skip bytes, which are for the CM. */
static void
put_private(const struct bb_ibcm_msg *msg, uint32_t skip, uint8_t *to, uint8_t *to_len)
{
	memcpy(to, msg->priv + skip, msg->priv_len - skip);
	*to_len = (uint8_t)(msg->priv_len - skip);
}

/* ---- Requests */

/*
 * Fills in an ID that a request makes. This side responds to the READs that the peer initiates, so
 * the two numbers of READs change places.
 */
static bool
fill(struct ucma_id *id, const struct ucma_id *listener, const struct bb_ibcm_event *ev)
{
	ucma_addr_from_gid(&id->src, ev->ip->dst, ucma_addr_port(&listener->src));
	ucma_addr_from_gid(&id->dst, ev->ip->src, ev->ip->sport);
	memcpy(id->sgid, ev->net->src, 16);
	memcpy(id->dgid, ev->net->dst, 16);
	id->has_dev = ucma_gid_find(id->u, id->sgid, &id->sgid_index);
	id->tos = listener->tos;
	id->ack_timeout = listener->ack_timeout;
	if (ev->type == BB_IBCM_EV_REQ) {
		const struct bb_ibcm_req *r = &ev->msg->req;

		id->qp.remote_qpn = r->qpn;
		id->qp.sq_psn = r->psn;
		id->qp.responder_resources = (uint8_t)r->initiator_depth;
		id->qp.initiator_depth = (uint8_t)r->responder_resources;
		id->qp.retry_count = (uint8_t)r->retry_count;
		id->qp.rnr_retry = (uint8_t)r->rnr_retry;
		id->qp.mtu = (uint8_t)r->mtu;
		id->qp.timeout = r->primary.ack_timeout != 0 ? (uint8_t)r->primary.ack_timeout : 1;
	}
	id->state = UCMA_CONNECT;
	return id->has_dev &&
	       (ev->type == BB_IBCM_EV_SIDR_REQ ||
		(ev->msg->req.transport == BB_IBCM_UC) == (id->qp_type == IBV_QPT_UC));
}

static void
report_request(struct ucma_event *e, const struct ucma_id *id, const struct bb_ibcm_msg *msg)
{
	struct rdma_ucm_conn_param *p = &e->resp.param.conn;

	if (msg->type == BB_IBCM_SIDR_REQ) {
		put_private(msg, BB_IBCM_IP_LEN, e->resp.param.ud.private_data,
			    &e->resp.param.ud.private_data_len);
		return;
	}
	put_private(msg, BB_IBCM_IP_LEN, p->private_data, &p->private_data_len);
	p->qp_num = id->qp.remote_qpn;
	p->responder_resources = id->qp.responder_resources;
	p->initiator_depth = id->qp.initiator_depth;
	p->flow_control = (uint8_t)msg->req.flow_control;
	p->retry_count = id->qp.retry_count;
	p->rnr_retry_count = id->qp.rnr_retry;
	p->srq = (uint8_t)msg->req.srq;
}

/*
 * Returns true if the addresses of a request are those of its sender and receiver. On RoCE the
 * address of a host is its GID (Linux: rdma_ip2gid()). So a request with other addresses must not
 * reach the program.
 */
static bool
addresses_match(const struct bb_ibcm_event *ev)
{
	return memcmp(ev->ip->src, ev->net->dst, sizeof(ev->ip->src)) == 0 &&
	       memcmp(ev->ip->dst, ev->net->src, sizeof(ev->ip->dst)) == 0;
}

/*
 * Drops a request for which there is no room. The peer repeats a REQ, for which there may be room
 * later; a SIDR request is rejected (Linux: cm_destroy_id() of drivers/infiniband/core/cm.c after
 * -ENOMEM of ucma_connect_event_handler() of ucma.c).
 */
static void
no_room(struct ucma *u, const struct bb_ibcm_event *ev)
{
	(void)(ev->type == BB_IBCM_EV_REQ ? bb_ibcm_abandon : bb_ibcm_release)(u->cm, ev->id,
									       u->now);
}

static void
requested(struct ucma *u, const struct bb_ibcm_event *ev)
{
	struct ucma_id *listener = ucma_id_at(u, ev->cookie), *id = NULL;
	struct ucma_event *e;

	if (!addresses_match(ev)) {
		if (ev->type == BB_IBCM_EV_REQ)
			(void)bb_ibcm_reject(u->cm, ev->id, BB_IBCM_REJ_GID, NULL, 0, u->now);
		(void)bb_ibcm_release(u->cm, ev->id, u->now);
		return;
	}
	/* The listener still exists, because it removes its service when it is destroyed. */
	if (listener->backlog > 0)
		id = ucma_id_new(u, listener->ps, listener->qp_type);
	if (id == NULL) {
		no_room(u, ev);
		return;
	}
	if (!fill(id, listener, ev)) {
		(void)ucma_id_free(id);
		/* Rejects the request. */
		(void)bb_ibcm_release(u->cm, ev->id, u->now);
		return;
	}
	e = ucma_event_request(listener, id);
	if (e == NULL) {
		(void)ucma_id_free(id);
		no_room(u, ev);
		return;
	}
	ucma_cm_set(id, ev->id);
	(void)bb_ibcm_cookie_set(u->cm, ev->id, id->number);
	listener->backlog--;
	report_request(e, id, ev->msg);
}

/* ---- Answers */

static void
replied(struct ucma_id *id, const struct bb_ibcm_msg *msg)
{
	const struct bb_ibcm_rep *r = &msg->rep;
	struct rdma_ucm_conn_param *p;
	struct ucma_event *e;

	id->qp.remote_qpn = r->qpn;
	id->qp.sq_psn = r->psn;
	id->qp.responder_resources = (uint8_t)r->initiator_depth;
	id->qp.initiator_depth = (uint8_t)r->responder_resources;
	id->qp.rnr_retry = (uint8_t)r->rnr_retry;
	id->qp.timeout = ucma_ack_timeout((uint8_t)r->ack_delay, id->qp.timeout - 1);
	e = ucma_event_add(id, UCMA_EV_CONNECT_RESPONSE, 0);
	if (e == NULL)
		return;
	p = &e->resp.param.conn;
	put_private(msg, 0, p->private_data, &p->private_data_len);
	p->qp_num = r->qpn;
	p->responder_resources = id->qp.responder_resources;
	p->initiator_depth = id->qp.initiator_depth;
	p->flow_control = (uint8_t)r->flow_control;
	p->rnr_retry_count = id->qp.rnr_retry;
	p->srq = (uint8_t)r->srq;
}

static void
resolved(struct ucma_id *id, const struct bb_ibcm_msg *msg)
{
	const struct bb_ibcm_sidr_rep *r = &msg->sidr_rep;
	const bool ok = r->status == BB_IBCM_SIDR_OK;
	struct ucma_event *e =
		ucma_event_add(id, ok ? UCMA_EV_ESTABLISHED : UCMA_EV_UNREACHABLE, (int)r->status);
	struct rdma_ucm_ud_param *p;

	if (e == NULL)
		return;
	p = &e->resp.param.ud;
	put_private(msg, 0, p->private_data, &p->private_data_len);
	if (!ok)
		return;
	p->qp_num = r->qpn;
	p->qkey = r->qkey;
	ucma_ah_attr(id, &p->ah_attr);
}

/* ---- Ends of connections */

/* Releases the connection of an ID, then queues the event that reports its end. */
static void
end(struct ucma_id *id, enum ucma_event_type type, int status, bool peer_gone,
    const struct bb_ibcm_msg *rej)
{
	struct ucma_event *e;

	ucma_cm_release(id, peer_gone);
	id->established = false;
	if (type == UCMA_EV_DISCONNECTED)
		id->state = UCMA_DISCONNECT;
	e = ucma_event_add(id, type, status);
	if (e != NULL && rej != NULL)
		put_private(rej, 0, e->resp.param.conn.private_data,
			    &e->resp.param.conn.private_data_len);
}

/*
 * Reports a failed connection. A connection that the engine found stale after the peer's REP is
 * reported as rejected; any other failure as a timeout.
 */
static void
failed(struct ucma_id *id, const struct bb_ibcm_event *ev)
{
	if (ev->msg != NULL && ev->msg->type == BB_IBCM_REP)
		end(id, UCMA_EV_REJECTED, BB_IBCM_REJ_STALE, false, NULL);
	else
		end(id, UCMA_EV_UNREACHABLE, -ETIMEDOUT, false, NULL);
}

/*
 * Ends a connection whose peer is gone, without a message. A DREQ would get no answer, and
 * meanwhile keep the peer's QPN from a new process.
 */
static void
peer_lost(struct ucma_id *id)
{
	if (id->established)
		end(id, UCMA_EV_DISCONNECTED, 0, true, NULL);
	else
		end(id, UCMA_EV_UNREACHABLE, -ETIMEDOUT, true, NULL);
}

/*
 * Identifies the peer's process when the peer has answered: the link knows how to reach it, or that
 * it has been killed since. A later check could find another process with its QPN.
 */
static void
answered(struct ucma_id *id)
{
	if (!ucma_find_opening(id))
		peer_lost(id);
}

void
ucma_cm_event(void *ctx, const struct bb_ibcm_event *ev)
{
	struct ucma *u = ctx;
	struct ucma_id *id;

	if (ev->type == BB_IBCM_EV_REQ || ev->type == BB_IBCM_EV_SIDR_REQ) {
		requested(u, ev);
		return;
	}
	/*
	 * Ignore the event if the ID is destroyed or has another connection now. The connection is
	 * then already released.
	 */
	id = ucma_id_at(u, ev->cookie);
	if (id == NULL || !id->has_cm || id->cm != ev->id)
		return;
	switch (ev->type) {
	case BB_IBCM_EV_REP:
		replied(id, ev->msg);
		answered(id);
		break;
	case BB_IBCM_EV_ESTABLISHED:
		id->established = true;
		(void)ucma_event_add(id, UCMA_EV_ESTABLISHED, 0);
		answered(id);
		break;
	case BB_IBCM_EV_REJECTED:
		end(id, UCMA_EV_REJECTED, (int)ev->msg->rej.reason, false, ev->msg);
		break;
	case BB_IBCM_EV_FAILED:
		failed(id, ev);
		break;
	case BB_IBCM_EV_DISCONNECTED:
		end(id, UCMA_EV_DISCONNECTED, ev->status == -ETIMEDOUT ? ev->status : 0, false,
		    NULL);
		break;
	case BB_IBCM_EV_SIDR_REP:
		ucma_cm_release(id, false);
		resolved(id, ev->msg);
		break;
	default:
		break;
	}
}

/* An answer of ucma_ops.reach() in a pass of ucma_peers_check(). */
struct answer {
	uint8_t gid[16];
	uint32_t qpns; /* QPN without its lowest log_qpns bits, which stands for a process */
	uint64_t opening;
	int ret;
};

/*
 * Asks the link for the state of an ID's peer. Asks only once for all IDs with the same peer, and
 * caches the answer in @table. If the table is full, replaces its last entry.
 */
static const struct answer *
ask(const struct ucma *u, const struct ucma_id *id, struct answer *table, uint32_t *n)
{
	const uint32_t qpn = id->qp.remote_qpn, qpns = qpn >> u->attr.log_qpns;
	struct answer *to;
	uint32_t i;

	for (i = 0; i < *n; i++)
		if (table[i].qpns == qpns &&
		    memcmp(table[i].gid, id->dgid, sizeof(table[i].gid)) == 0)
			return &table[i];
	to = &table[*n < ASKED ? (*n)++ : ASKED - 1];
	memcpy(to->gid, id->dgid, sizeof(to->gid));
	to->qpns = qpns;
	to->opening = 0;
	to->ret = u->attr.ops->reach(u->attr.ctx, id->sgid_index, id->dgid, qpn, &to->opening);
	return to;
}

/*
 * A process that is killed sends no DREQ, and a process that is started then may get its QPNs. The
 * link to the killed process was up when its connection was made. So the process is gone if the
 * link is down now (-EAGAIN), too.
 */
void
ucma_cm_reused(void *ctx, uint32_t cm, uint64_t cookie)
{
	struct ucma *u = ctx;
	struct ucma_id *id = ucma_id_at(u, cookie);
	uint64_t opening = 0;
	int ret;

	if (id == NULL || !id->has_cm || id->cm != cm)
		return;
	ret = u->attr.ops->reach(u->attr.ctx, id->sgid_index, id->dgid, id->qp.remote_qpn,
				 &opening);
	if (ret == -EHOSTUNREACH ||
	    (id->opening != 0 &&
	     (ret == -EAGAIN || (ret == 0 && opening != 0 && opening != id->opening))))
		peer_lost(id);
}

/*
 * A process that is killed sends no DREQ. So this function asks the link whether the peers of all
 * connections still exist, and ends the connections of those that do not.
 */
void
ucma_peers_check(struct ucma *u)
{
	struct answer table[ASKED];
	const struct answer *a;
	struct ucma_id *id;
	uint32_t n = 0;

	TAILQ_FOREACH(id, &u->live, link) {
		if (!id->has_cm)
			continue;
		a = ask(u, id, table, &n);
		if (a->ret == -EHOSTUNREACH)
			peer_lost(id);
		/*
		 * Any other error has a local cause, such as a lack of descriptors, and says
		 * nothing of the peer.
		 */
		if (a->ret != 0)
			continue;
		if (id->opening == 0)
			id->opening = a->opening;
		else if (a->opening != 0 && a->opening != id->opening)
			peer_lost(id);
	}
}
