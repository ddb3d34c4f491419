/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Functions that the user of the engine calls for one connection. */
#include <errno.h>

#include "bb_ibcm_priv.h"

/*
 * Sets *c to the connection with this ID. Returns 0; -ENOENT if the caller does not have the ID;
 * -EINVAL if @states does not have the bit 1 << state of the connection's state.
 */
static int
find_owned(struct bb_ibcm *cm, uint32_t id, uint32_t states, struct bb_ibcm_conn **c)
{
	*c = bb_ibcm_find(cm, id);
	if (*c == NULL || !(*c)->owned)
		return -ENOENT;
	return (states & 1u << (*c)->state) != 0 ? 0 : -EINVAL;
}

static bool
path_fits(const struct bb_ibcm_path *p)
{
	return p->local_lid <= 0xffff && p->remote_lid <= 0xffff && p->rate <= 63 &&
	       p->ack_timeout <= 31;
}

/* Returns true if each field that the caller sets fits in its width. */
static bool
req_fits(const struct bb_ibcm_req *r)
{
	return r->qpn > BB_IBCM_QPN && r->qpn <= 0xffffff && r->psn <= 0xffffff &&
	       r->responder_resources <= 255 && r->initiator_depth <= 255 &&
	       r->remote_timeout <= 31 && r->local_timeout <= 31 && r->transport <= BB_IBCM_UC &&
	       r->flow_control <= 1 && r->retry_count <= 7 && r->rnr_retry <= 7 &&
	       r->pkey <= 0xffff && r->mtu >= 1 && r->mtu <= 5 && r->cm_retries <= 15 &&
	       r->srq <= 1 && path_fits(&r->primary);
}

static bool
rep_fits(const struct bb_ibcm_rep *r)
{
	return r->qpn > BB_IBCM_QPN && r->qpn <= 0xffffff && r->psn <= 0xffffff &&
	       r->responder_resources <= 255 && r->initiator_depth <= 255 && r->ack_delay <= 31 &&
	       r->failover <= 3 && r->flow_control <= 1 && r->rnr_retry <= 7 && r->srq <= 1;
}

int
bb_ibcm_connect(struct bb_ibcm *cm, const struct bb_ibcm_net *net, const struct bb_ibcm_req *req,
		const void *priv, uint32_t priv_len, uint64_t cookie, uint64_t now, uint32_t *id)
{
	struct bb_ibcm_conn *c;
	struct bb_ibcm_msg msg;

	if (priv_len > BB_IBCM_PRIV_REQ || !req_fits(req) || net->flow_label > 0xfffff ||
	    net->sl > 15)
		return -EINVAL;
	c = bb_ibcm_slot_take(cm);
	if (c == NULL)
		return -ENOSPC;
	c->state = BB_IBCM_REQ_SENT;
	c->owned = c->active = true;
	c->cookie = cookie;
	c->net = *net;
	c->qpn = req->qpn;
	c->cm_retries = (uint8_t)req->cm_retries;
	c->hold = bb_ibcm_peer_ns(cm, req->primary.ack_timeout);
	bb_ibcm_msg_begin(c, &msg, BB_IBCM_REQ);
	msg.req = *req;
	msg.req.ca_guid = cm->attr.ca_guid;
	memcpy(msg.req.primary.local_gid, net->src, 16);
	memcpy(msg.req.primary.remote_gid, net->dst, 16);
	msg.req.primary.flow_label = net->flow_label;
	msg.req.primary.tclass = net->tclass;
	msg.req.primary.hop_limit = net->hop_limit;
	msg.req.primary.sl = net->sl;
	msg.priv = priv;
	msg.priv_len = priv_len;
	*id = c->id;
	bb_ibcm_wait(cm, c, bb_ibcm_ns(req->remote_timeout), c->cm_retries, now);
	return bb_ibcm_post(cm, c, &msg);
}

int
bb_ibcm_accept(struct bb_ibcm *cm, uint32_t id, const struct bb_ibcm_rep *rep, const void *priv,
	       uint32_t priv_len, uint64_t cookie, uint64_t now)
{
	struct bb_ibcm_conn *c;
	struct bb_ibcm_msg msg;
	int ret = find_owned(cm, id, 1u << BB_IBCM_REQ_RCVD, &c);

	if (ret != 0)
		return ret;
	if (priv_len > BB_IBCM_PRIV_REP || !rep_fits(rep))
		return -EINVAL;
	c->cookie = cookie;
	c->qpn = rep->qpn;
	c->state = BB_IBCM_REP_SENT;
	bb_ibcm_msg_begin(c, &msg, BB_IBCM_REP);
	msg.rep = *rep;
	msg.rep.ca_guid = cm->attr.ca_guid;
	msg.priv = priv;
	msg.priv_len = priv_len;
	bb_ibcm_wait(cm, c, c->interval, c->cm_retries, now);
	return bb_ibcm_post(cm, c, &msg);
}

int
bb_ibcm_ready(struct bb_ibcm *cm, uint32_t id, const void *priv, uint32_t priv_len)
{
	struct bb_ibcm_conn *c;
	struct bb_ibcm_msg msg;
	int ret = find_owned(cm, id, 1u << BB_IBCM_REP_RCVD, &c);

	if (ret != 0)
		return ret;
	if (priv_len > BB_IBCM_PRIV_RTU)
		return -EINVAL;
	c->state = BB_IBCM_ESTABLISHED;
	bb_ibcm_clock_stop(cm, c);
	bb_ibcm_msg_begin(c, &msg, BB_IBCM_RTU);
	msg.priv = priv;
	msg.priv_len = priv_len;
	return bb_ibcm_post(cm, c, &msg);
}

int
bb_ibcm_cookie_set(struct bb_ibcm *cm, uint32_t id, uint64_t cookie)
{
	struct bb_ibcm_conn *c;
	int ret = find_owned(cm, id, UINT32_MAX, &c);

	if (ret == 0)
		c->cookie = cookie;
	return ret;
}

int
bb_ibcm_established(struct bb_ibcm *cm, uint32_t id)
{
	struct bb_ibcm_conn *c;
	int ret = find_owned(cm, id, 1u << BB_IBCM_REP_SENT | 1u << BB_IBCM_ESTABLISHED, &c);

	if (ret != 0 || c->state == BB_IBCM_ESTABLISHED)
		return ret;
	c->state = BB_IBCM_ESTABLISHED;
	bb_ibcm_remove(cm, c, BB_IBCM_BY_GID);
	bb_ibcm_clock_stop(cm, c);
	return 0;
}

/*
 * The slot stays in use for two intervals after the REJ, or until a limit of ended connections is
 * reached. If the peer repeats its message in this time, the engine repeats the REJ. A REQ that the
 * peer repeats later is a new request.
 */
int
bb_ibcm_reject(struct bb_ibcm *cm, uint32_t id, uint16_t reason, const void *priv,
	       uint32_t priv_len, uint64_t now)
{
	struct bb_ibcm_conn *c;
	int ret = find_owned(cm, id, 1u << BB_IBCM_REQ_RCVD | 1u << BB_IBCM_REP_RCVD, &c);

	if (ret == 0)
		ret = bb_ibcm_post_rej(cm, c, reason, priv, priv_len);
	if (ret == 0)
		bb_ibcm_end(cm, c, 2 * c->interval, now);
	return ret;
}

int
bb_ibcm_send_dreq(struct bb_ibcm *cm, struct bb_ibcm_conn *c, const void *priv, uint32_t priv_len,
		  uint64_t now)
{
	uint64_t interval = c->interval;
	struct bb_ibcm_msg msg;

	if (priv_len > BB_IBCM_PRIV_DREQ)
		return -EINVAL;
	if (cm->dreq_interval != 0 && interval > cm->dreq_interval)
		interval = cm->dreq_interval;
	c->state = BB_IBCM_DREQ_SENT;
	cm->n_dreq++;
	bb_ibcm_msg_begin(c, &msg, BB_IBCM_DREQ);
	msg.tid += (uint64_t)1 << 32; /* a DREQ starts a new transaction */
	msg.dreq.remote_qpn = c->remote_qpn;
	msg.priv = priv;
	msg.priv_len = priv_len;
	bb_ibcm_wait(cm, c, interval, c->cm_retries, now);
	return bb_ibcm_post(cm, c, &msg);
}

int
bb_ibcm_disconnect(struct bb_ibcm *cm, uint32_t id, const void *priv, uint32_t priv_len,
		   uint64_t now)
{
	struct bb_ibcm_conn *c;
	int ret = find_owned(cm, id, 1u << BB_IBCM_ESTABLISHED, &c);

	return ret != 0 ? ret : bb_ibcm_send_dreq(cm, c, priv, priv_len, now);
}

int
bb_ibcm_release(struct bb_ibcm *cm, uint32_t id, uint64_t now)
{
	struct bb_ibcm_conn *c;
	int ret = find_owned(cm, id, UINT32_MAX, &c);

	if (ret != 0)
		return ret;
	/* Linux: cm_destroy_id() of drivers/infiniband/core/cm.c. The reply frees the slot. */
	if (c->state == BB_IBCM_SIDR_RCVD)
		return bb_ibcm_sidr_reply(cm, id, BB_IBCM_SIDR_REJECT, 0, 0, NULL, 0);
	c->owned = false;
	/* From now on the peer may connect the same QP again, as in Linux (cm_destroy_id()). */
	bb_ibcm_remove(cm, c, BB_IBCM_BY_QPN);
	switch (c->state) {
	case BB_IBCM_REQ_SENT:
		bb_ibcm_post_rej(cm, c, BB_IBCM_REJ_TIMEOUT, NULL, 0);
		bb_ibcm_end(cm, c, 2 * c->interval, now);
		break;
	case BB_IBCM_REQ_RCVD:
	case BB_IBCM_REP_RCVD:
	case BB_IBCM_REP_SENT:
		bb_ibcm_post_rej(cm, c, BB_IBCM_REJ_CONSUMER, NULL, 0);
		bb_ibcm_end(cm, c, 2 * c->interval, now);
		break;
	case BB_IBCM_ESTABLISHED:
		bb_ibcm_send_dreq(cm, c, NULL, 0, now);
		/* fall through */
	case BB_IBCM_DREQ_SENT:
		/* The connection ends by itself, but the peer chose how long that takes. */
		bb_ibcm_limit_ended(cm, c, now);
		break;
	case BB_IBCM_TIMEWAIT:
		if (c->heap_at == BB_IBCM_NONE)
			bb_ibcm_slot_free(cm, c);
		else
			bb_ibcm_limit_ended(cm, c, now);
		break;
	case BB_IBCM_SIDR_SENT:
		bb_ibcm_slot_free(cm, c);
		break;
	default:
		break;
	}
	return 0;
}

int
bb_ibcm_abandon(struct bb_ibcm *cm, uint32_t id, uint64_t now)
{
	struct bb_ibcm_conn *c;
	int ret = find_owned(cm, id, UINT32_MAX, &c);

	if (ret != 0)
		return ret;
	switch (c->state) {
	case BB_IBCM_ESTABLISHED:
	case BB_IBCM_DREQ_SENT:
		c->owned = false;
		bb_ibcm_end(cm, c, c->hold, now);
		return 0;
	case BB_IBCM_TIMEWAIT:
		return bb_ibcm_release(cm, id, now);
	case BB_IBCM_REQ_RCVD:
		/* The MRA has stopped the peer's repeats, so the peer would not ask again. */
		if (c->mra) {
			ret = bb_ibcm_reject(cm, id, BB_IBCM_REJ_NO_RESOURCES, NULL, 0, now);
			return ret != 0 ? ret : bb_ibcm_release(cm, id, now);
		}
		bb_ibcm_dropped(cm, BB_IBCM_DROP_ABANDONED);
		/* fall through */
	default:
		bb_ibcm_slot_free(cm, c);
		return 0;
	}
}

uint32_t
bb_ibcm_finish(struct bb_ibcm *cm, uint64_t interval, uint64_t now)
{
	struct bb_ibcm_conn *c;

	if (cm->dreq_interval == interval)
		return cm->n_dreq;
	cm->dreq_interval = interval;
	for (c = cm->conns; c < cm->conns + cm->used; c++)
		if (c->state == BB_IBCM_DREQ_SENT && c->interval > interval)
			bb_ibcm_wait(cm, c, interval, c->tries, now);
	return cm->n_dreq;
}
