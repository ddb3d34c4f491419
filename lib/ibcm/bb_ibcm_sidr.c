/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Service ID resolution, by which datagram queue pairs find each other (IBTA vol. 1, 12.11). */
#include <errno.h>

#include "bb_ibcm_priv.h"

/* Starts a SIDR_REP. Both sides use the request ID that the requester chose. */
static void
begin(struct bb_ibcm_msg *rep, uint32_t request_id, uint64_t tid, uint64_t service_id,
      enum bb_ibcm_sidr_status status)
{
	memset(rep, 0, sizeof(*rep));
	rep->type = BB_IBCM_SIDR_REP;
	rep->tid = tid;
	rep->local_id = request_id;
	rep->sidr_rep.status = status;
	rep->sidr_rep.service_id = service_id;
}

int
bb_ibcm_sidr(struct bb_ibcm *cm, const struct bb_ibcm_net *net, uint64_t service_id,
	     uint8_t timeout, uint8_t retries, const void *priv, uint32_t priv_len, uint64_t cookie,
	     uint64_t now, uint32_t *id)
{
	struct bb_ibcm_conn *c;
	struct bb_ibcm_msg msg;

	if (priv_len > BB_IBCM_PRIV_SIDR_REQ || timeout > 31)
		return -EINVAL;
	c = bb_ibcm_slot_take(cm);
	if (c == NULL)
		return -ENOSPC;
	c->state = BB_IBCM_SIDR_SENT;
	c->owned = c->active = true;
	c->cookie = cookie;
	c->net = *net;
	bb_ibcm_msg_begin(c, &msg, BB_IBCM_SIDR_REQ);
	msg.sidr_req.service_id = service_id;
	msg.sidr_req.pkey = cm->attr.pkey;
	msg.priv = priv;
	msg.priv_len = priv_len;
	*id = c->id;
	bb_ibcm_wait(cm, c, bb_ibcm_ns(timeout), retries, now);
	return bb_ibcm_post(cm, c, &msg);
}

int
bb_ibcm_sidr_reply(struct bb_ibcm *cm, uint32_t id, enum bb_ibcm_sidr_status status, uint32_t qpn,
		   uint32_t qkey, const void *priv, uint32_t priv_len)
{
	struct bb_ibcm_conn *c = bb_ibcm_find(cm, id);
	struct bb_ibcm_msg msg;

	if (c == NULL || !c->owned)
		return -ENOENT;
	if (c->state != BB_IBCM_SIDR_RCVD || priv_len > BB_IBCM_PRIV_SIDR_REP || qpn > 0xffffff)
		return -EINVAL;
	begin(&msg, c->remote_id, c->tid, c->service_id, status);
	if (status == BB_IBCM_SIDR_OK) {
		msg.sidr_rep.qpn = qpn;
		msg.sidr_rep.qkey = qkey;
	}
	msg.priv = priv;
	msg.priv_len = priv_len;
	bb_ibcm_send(cm, &c->net, &msg);
	bb_ibcm_slot_free(cm, c);
	return 0;
}

void
bb_ibcm_rx_sidr_req(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp,
		    const struct bb_ibcm_msg *msg, uint64_t now)
{
	const uint64_t service_id = msg->sidr_req.service_id;
	const struct bb_ibcm_service *s;
	struct bb_ibcm_conn *c;
	struct bb_ibcm_msg rep;
	struct bb_ibcm_ip ip;
	bool bad_header;

	c = bb_ibcm_find_peer(cm, BB_IBCM_BY_ID, gmp->net.src, msg->local_id, 0, true);
	if (c != NULL && c->tid == msg->tid) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_DUPLICATE);
		return;
	}
	s = bb_ibcm_service_find(cm, service_id, true, msg, &ip, &bad_header);
	if (s == NULL || ((msg->sidr_req.pkey ^ cm->attr.pkey) & 0x7fff) != 0) {
		cm->stats.sidr_refused++;
		begin(&rep, msg->local_id, msg->tid, service_id,
		      bad_header ? BB_IBCM_SIDR_REJECT : BB_IBCM_SIDR_UNSUPPORTED);
		bb_ibcm_answer(cm, gmp, &rep);
		return;
	}
	if (!bb_ibcm_may_pend(cm, gmp->net.src))
		return;
	c = bb_ibcm_slot_take(cm);
	c->state = BB_IBCM_SIDR_RCVD;
	c->owned = true;
	c->cookie = s->cookie;
	c->tid = msg->tid;
	c->remote_id = msg->local_id;
	c->service_id = service_id;
	bb_ibcm_back(&c->net, gmp);
	bb_ibcm_insert(cm, c, BB_IBCM_BY_ID);
	bb_ibcm_insert(cm, c, BB_IBCM_BY_GID);
	bb_ibcm_clock_set(cm, c, now + bb_ibcm_ns(cm->attr.max_timeout));
	bb_ibcm_report(cm, c, BB_IBCM_EV_SIDR_REQ, 0, msg, s->ip ? &ip : NULL, false);
}

void
bb_ibcm_rx_sidr_rep(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp,
		    const struct bb_ibcm_msg *msg)
{
	struct bb_ibcm_conn *c = bb_ibcm_find(cm, msg->local_id);

	if (c == NULL || c->state != BB_IBCM_SIDR_SENT)
		bb_ibcm_dropped(cm, BB_IBCM_DROP_ID);
	else if (!bb_ibcm_same_gid(c->net.dst, gmp->net.src) ||
		 !bb_ibcm_same_gid(c->net.src, gmp->net.dst))
		bb_ibcm_dropped(cm, BB_IBCM_DROP_PEER);
	else
		bb_ibcm_report(cm, c, BB_IBCM_EV_SIDR_REP, 0, msg, NULL, true);
}
