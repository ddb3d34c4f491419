/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* REQ messages: checks, duplicates, stale connections, and the start of a passive connection. */
#include "bb_ibcm_priv.h"

/* Sends a REJ for a REQ that gets no slot. */
static void
refuse(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
       enum bb_ibcm_reason reason)
{
	struct bb_ibcm_msg rej;

	bb_ibcm_answer_begin(&rej, BB_IBCM_REJ, msg);
	rej.rej.answers = BB_IBCM_ANSWERS_REQ;
	rej.rej.reason = reason;
	cm->stats.rejects[reason]++;
	bb_ibcm_answer(cm, gmp, &rej);
}

/*
 * Checks the fields of a REQ. Returns 0, or the reason to reject it. The GIDs of the path must be
 * those in the header of the packet. Otherwise a peer could make this device send to another host.
 */
static enum bb_ibcm_reason
check(const struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_req *r)
{
	if (!bb_ibcm_same_gid(r->primary.local_gid, gmp->net.src) ||
	    !bb_ibcm_same_gid(r->primary.remote_gid, gmp->net.dst))
		return BB_IBCM_REJ_GID;
	if (r->transport > BB_IBCM_UC)
		return BB_IBCM_REJ_TRANSPORT;
	if (r->mtu < 1 || r->mtu > 5)
		return BB_IBCM_REJ_MTU;
	/* The specification has no reject reason for an invalid QPN or P_Key. */
	if (r->qpn <= BB_IBCM_QPN || ((r->pkey ^ cm->attr.pkey) & 0x7fff) != 0)
		return BB_IBCM_REJ_UNSUPPORTED;
	return 0;
}

/*
 * Handles a REQ with the ID of a connection of the same peer. Returns false if the REQ is a new
 * request, because the connection has ended and the peer uses its ID again.
 */
static bool
duplicate(struct bb_ibcm *cm, struct bb_ibcm_conn *c, const struct bb_ibcm_gmp *gmp,
	  const struct bb_ibcm_msg *msg, uint64_t now)
{
	if (c->active || c->tid != msg->tid || c->remote_qpn != msg->req.qpn) {
		if (c->state == BB_IBCM_TIMEWAIT) {
			bb_ibcm_remove(cm, c, BB_IBCM_BY_ID);
			return false;
		}
		/* The peer has forgotten the connection (12.9.8.3.1). */
		refuse(cm, gmp, msg, BB_IBCM_REJ_STALE);
		return true;
	}
	bb_ibcm_dropped(cm, BB_IBCM_DROP_DUPLICATE);
	if (c->state == BB_IBCM_REQ_RCVD) {
		bb_ibcm_send_mra(cm, c, BB_IBCM_ANSWERS_REQ, now);
	} else if (c->state == BB_IBCM_REP_SENT ||
		   (c->state == BB_IBCM_TIMEWAIT && bb_ibcm_tx_type(c) == BB_IBCM_REJ)) {
		cm->stats.answered_again++;
		bb_ibcm_post_again(cm, c);
	}
	return true;
}

/*
 * Handles a REQ with a QPN that a connection to this peer uses. The peer has lost that connection:
 * the REQ is rejected, and the connection ends by DREQ, as in Linux (cm_match_req() of cm.c).
 */
static void
stale(struct bb_ibcm *cm, struct bb_ibcm_conn *c, const struct bb_ibcm_gmp *gmp,
      const struct bb_ibcm_msg *msg, uint64_t now)
{
	refuse(cm, gmp, msg, BB_IBCM_REJ_STALE);
	if (c->state == BB_IBCM_ESTABLISHED)
		bb_ibcm_send_dreq(cm, c, NULL, 0, now);
}

void
bb_ibcm_rx_req(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
	       uint64_t now)
{
	const struct bb_ibcm_req *r = &msg->req;
	const struct bb_ibcm_service *s;
	enum bb_ibcm_reason reason;
	struct bb_ibcm_conn *c;
	struct bb_ibcm_ip ip;
	bool bad_header;

	c = bb_ibcm_find_peer(cm, BB_IBCM_BY_ID, gmp->net.src, msg->local_id, r->ca_guid, false);
	if (c != NULL && duplicate(cm, c, gmp, msg, now))
		return;
	reason = check(cm, gmp, r);
	if (reason != 0) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_FIELD);
		refuse(cm, gmp, msg, reason);
		return;
	}
	c = bb_ibcm_find_qpn(cm, gmp->net.src, r->qpn, r->ca_guid);
	if (c != NULL) {
		stale(cm, c, gmp, msg, now);
		return;
	}
	s = bb_ibcm_service_find(cm, r->service_id, false, msg, &ip, &bad_header);
	if (s == NULL) {
		refuse(cm, gmp, msg, bad_header ? BB_IBCM_REJ_CONSUMER : BB_IBCM_REJ_SERVICE_ID);
		return;
	}
	if (!bb_ibcm_may_pend(cm, gmp->net.src))
		return;
	c = bb_ibcm_slot_take(cm);
	c->state = BB_IBCM_REQ_RCVD;
	c->owned = true;
	c->cookie = s->cookie;
	c->tid = msg->tid;
	c->remote_id = msg->local_id;
	c->remote_guid = r->ca_guid;
	c->remote_qpn = r->qpn;
	c->cm_retries = (uint8_t)r->cm_retries;
	c->hold = bb_ibcm_peer_ns(cm, r->primary.ack_timeout);
	bb_ibcm_back(&c->net, gmp);
	bb_ibcm_insert(cm, c, BB_IBCM_BY_ID);
	bb_ibcm_insert(cm, c, BB_IBCM_BY_QPN);
	bb_ibcm_insert(cm, c, BB_IBCM_BY_GID);
	/*
	 * The deadline is the time at which the peer stops repeating its REQ: until then the caller
	 * can answer. The interval is the time that the peer takes to answer this side's REP.
	 */
	bb_ibcm_wait(cm, c, bb_ibcm_peer_ns(cm, r->local_timeout), 0, now);
	bb_ibcm_clock_set(cm, c,
			  now + (r->cm_retries + 1) * bb_ibcm_peer_ns(cm, r->remote_timeout));
	bb_ibcm_report(cm, c, BB_IBCM_EV_REQ, 0, msg, s->ip ? &ip : NULL, false);
}
