/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Handles messages of peers for existing connections, and timeouts: the state transitions of IBTA
 * vol. 1, 12.9.7.
 */
#include <errno.h>

#include "bb_ibcm_priv.h"

/*
 * Ends the connection after the peer's final answer or after a timeout. Reports the event @type
 * unless the caller has released the ID.
 */
static void
over(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t hold, enum bb_ibcm_event_type type,
     int status, const struct bb_ibcm_msg *msg, uint64_t now)
{
	const bool owned = c->owned;

	bb_ibcm_end(cm, c, hold, now);
	if (owned)
		bb_ibcm_report(cm, c, type, status, msg, NULL, false);
}

/*
 * Returns the connection to which the message's remote ID belongs, if the message comes from that
 * connection's peer. With @known the message's local ID must also be the ID of that peer. Otherwise
 * counts the reason for the drop and returns NULL.
 */
static struct bb_ibcm_conn *
find_conn(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
	  bool known, bool *unknown)
{
	struct bb_ibcm_conn *c = bb_ibcm_find(cm, msg->remote_id);

	*unknown = c == NULL || c->state >= BB_IBCM_SIDR_SENT;
	if (*unknown)
		bb_ibcm_dropped(cm, BB_IBCM_DROP_ID);
	else if (!bb_ibcm_same_gid(c->net.dst, gmp->net.src) ||
		 !bb_ibcm_same_gid(c->net.src, gmp->net.dst))
		bb_ibcm_dropped(cm, BB_IBCM_DROP_PEER);
	else if (known && c->remote_id != msg->local_id)
		bb_ibcm_dropped(cm, BB_IBCM_DROP_PEER_ID);
	else
		return c;
	return NULL;
}

/* ---- REP and RTU */

static void
reject_rep(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
	   enum bb_ibcm_reason reason)
{
	struct bb_ibcm_msg rej;

	bb_ibcm_answer_begin(&rej, BB_IBCM_REJ, msg);
	rej.rej.answers = BB_IBCM_ANSWERS_REP;
	rej.rej.reason = reason;
	cm->stats.rejects[reason]++;
	bb_ibcm_answer(cm, gmp, &rej);
}

/* Handles a REP that this side has received before. */
static void
repeated_rep(struct bb_ibcm *cm, struct bb_ibcm_conn *c, const struct bb_ibcm_msg *msg,
	     uint64_t now)
{
	if (c->remote_id != msg->local_id) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_PEER_ID);
		return;
	}
	bb_ibcm_dropped(cm, BB_IBCM_DROP_DUPLICATE);
	if (c->state == BB_IBCM_REP_RCVD) {
		bb_ibcm_send_mra(cm, c, BB_IBCM_ANSWERS_REP, now);
	} else if (bb_ibcm_tx_type(c) != BB_IBCM_REQ) { /* a REQ: the peer has ended it */
		cm->stats.answered_again++;
		bb_ibcm_post_again(cm, c); /* repeats RTU, DREQ or REJ */
	}
}

/* The first REP: the connection gets the peer's ID and QPN. */
static void
first_rep(struct bb_ibcm *cm, struct bb_ibcm_conn *c, const struct bb_ibcm_gmp *gmp,
	  const struct bb_ibcm_msg *msg, uint64_t now)
{
	const struct bb_ibcm_rep *r = &msg->rep;
	const uint8_t *gid = gmp->net.src;
	struct bb_ibcm_conn *old, *same_qpn = NULL;

	if (r->qpn <= BB_IBCM_QPN) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_FIELD);
		return;
	}
	old = bb_ibcm_find_peer(cm, BB_IBCM_BY_ID, gid, msg->local_id, r->ca_guid, false);
	if (old != NULL && old->state == BB_IBCM_TIMEWAIT) {
		bb_ibcm_remove(cm, old, BB_IBCM_BY_ID);
		old = NULL;
	}
	if (old == NULL)
		same_qpn = bb_ibcm_find_qpn(cm, gid, r->qpn, r->ca_guid);
	if (old != NULL || same_qpn != NULL) {
		reject_rep(cm, gmp, msg, BB_IBCM_REJ_STALE);
		/* The peer has lost the connection of this QPN (Linux: cm_rep_handler()). */
		if (same_qpn != NULL && same_qpn->state == BB_IBCM_ESTABLISHED)
			bb_ibcm_send_dreq(cm, same_qpn, NULL, 0, now);
		over(cm, c, 0, BB_IBCM_EV_FAILED, -ECONNREFUSED, msg, now);
		return;
	}
	c->remote_id = msg->local_id;
	c->remote_guid = r->ca_guid;
	c->remote_qpn = r->qpn;
	c->state = BB_IBCM_REP_RCVD;
	bb_ibcm_insert(cm, c, BB_IBCM_BY_ID);
	bb_ibcm_insert(cm, c, BB_IBCM_BY_QPN);
	/* The application must accept or reject before the peer stops repeating its REP. */
	bb_ibcm_clock_set(cm, c, now + (c->cm_retries + 1u) * c->interval);
	c->mra = false;
	bb_ibcm_report(cm, c, BB_IBCM_EV_REP, 0, msg, NULL, false);
}

static void
rx_rep(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
       uint64_t now)
{
	bool unknown;
	struct bb_ibcm_conn *c = find_conn(cm, gmp, msg, false, &unknown);

	if (unknown) {
		reject_rep(cm, gmp, msg, BB_IBCM_REJ_COMM_ID);
	} else if (c != NULL && !c->active) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_STATE);
	} else if (c != NULL && c->state == BB_IBCM_REQ_SENT) {
		first_rep(cm, c, gmp, msg, now);
	} else if (c != NULL && (c->in_tables & 1u << BB_IBCM_BY_ID) == 0) {
		/* The connection ended before the first REP came. */
		bb_ibcm_dropped(cm, BB_IBCM_DROP_STATE);
		reject_rep(cm, gmp, msg, BB_IBCM_REJ_TIMEOUT);
	} else if (c != NULL) {
		repeated_rep(cm, c, msg, now);
	}
}

static void
rx_rtu(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg)
{
	bool unknown;
	struct bb_ibcm_conn *c = find_conn(cm, gmp, msg, true, &unknown);

	if (c == NULL)
		return;
	if (c->state != BB_IBCM_REP_SENT) {
		bb_ibcm_dropped(cm, c->state == BB_IBCM_ESTABLISHED && !c->active
					    ? BB_IBCM_DROP_DUPLICATE
					    : BB_IBCM_DROP_STATE);
		return;
	}
	c->state = BB_IBCM_ESTABLISHED;
	bb_ibcm_remove(cm, c, BB_IBCM_BY_GID);
	bb_ibcm_clock_stop(cm, c);
	bb_ibcm_report(cm, c, BB_IBCM_EV_ESTABLISHED, 0, msg, NULL, false);
}

/* ---- MRA and REJ */

/* Accepts one MRA for each message that this side sends, so that the wait has an end. */
static void
rx_mra(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
       uint64_t now)
{
	bool unknown;
	struct bb_ibcm_conn *c = find_conn(cm, gmp, msg, false, &unknown);
	uint32_t code = msg->mra.timeout;

	if (c == NULL)
		return;
	if (c->state != BB_IBCM_REQ_SENT && c->remote_id != msg->local_id) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_PEER_ID);
		return;
	}
	if (c->state == BB_IBCM_REQ_SENT
		    ? msg->mra.answers != BB_IBCM_ANSWERS_REQ
		    : c->state != BB_IBCM_REP_SENT || msg->mra.answers != BB_IBCM_ANSWERS_REP) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_STATE);
		return;
	}
	if (c->mra) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_DUPLICATE);
		return;
	}
	if (code > cm->attr.max_mra_timeout)
		code = cm->attr.max_mra_timeout;
	c->mra = true;
	bb_ibcm_clock_set(cm, c, now + bb_ibcm_ns(code) + c->interval);
}

/*
 * Returns the connection that a REJ ends. A REJ with remote ID 0 comes from a peer that gave up
 * before it knew this side's ID. Such a REJ is looked up by the peer's own ID.
 */
static struct bb_ibcm_conn *
find_rejected(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg)
{
	struct bb_ibcm_conn *c;
	bool unknown;

	if (msg->remote_id != 0) {
		c = find_conn(cm, gmp, msg, false, &unknown);
		/*
		 * In state REQ_SENT the peer's ID is not known yet: a peer may reject a REQ without
		 * choosing an ID.
		 */
		if (c != NULL && c->state != BB_IBCM_REQ_SENT && c->remote_id != msg->local_id) {
			bb_ibcm_dropped(cm, BB_IBCM_DROP_PEER_ID);
			c = NULL;
		}
		return c;
	}
	c = msg->rej.reason != BB_IBCM_REJ_TIMEOUT
		    ? NULL
		    : bb_ibcm_find_peer(cm, BB_IBCM_BY_ID, gmp->net.src, msg->local_id, 0, false);
	if (c == NULL || c->active ||
	    (c->state != BB_IBCM_REQ_RCVD && c->state != BB_IBCM_REP_SENT)) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_ID);
		return NULL;
	}
	return c;
}

static void
rx_rej(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
       uint64_t now)
{
	struct bb_ibcm_conn *c = find_rejected(cm, gmp, msg);

	if (c == NULL)
		return;
	switch (c->state) {
	case BB_IBCM_REQ_SENT:
	case BB_IBCM_REQ_RCVD:
	case BB_IBCM_REP_RCVD:
	case BB_IBCM_REP_SENT:
		/*
		 * The slot of a passive side stays in use, so that a delayed REQ does not look like
		 * a new request.
		 */
		over(cm, c, c->active ? 0 : 2 * c->interval, BB_IBCM_EV_REJECTED, -ECONNREFUSED,
		     msg, now);
		break;
	case BB_IBCM_ESTABLISHED:
	case BB_IBCM_DREQ_SENT:
		over(cm, c, c->hold, BB_IBCM_EV_DISCONNECTED, -ECONNRESET, msg, now);
		break;
	default:
		bb_ibcm_dropped(cm, BB_IBCM_DROP_STATE);
	}
}

/* ---- DREQ and DREP */

static void
rx_dreq(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
	uint64_t now)
{
	bool unknown;
	struct bb_ibcm_conn *c = find_conn(cm, gmp, msg, true, &unknown);
	struct bb_ibcm_msg drep;

	if (unknown) {
		/* Answer in any case, because the peer repeats its DREQ (Linux: cm_issue_drep()).
		 */
		bb_ibcm_answer_begin(&drep, BB_IBCM_DREP, msg);
		bb_ibcm_answer(cm, gmp, &drep);
	}
	if (c == NULL)
		return;
	if (msg->dreq.remote_qpn != c->qpn) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_QPN);
		return;
	}
	switch (c->state) {
	case BB_IBCM_REP_SENT: /* the RTU is lost */
	case BB_IBCM_REP_RCVD:
	case BB_IBCM_ESTABLISHED:
	case BB_IBCM_DREQ_SENT:
	case BB_IBCM_TIMEWAIT:
		break;
	default:
		bb_ibcm_dropped(cm, BB_IBCM_DROP_STATE);
		return;
	}
	bb_ibcm_msg_begin(c, &drep, BB_IBCM_DREP);
	drep.tid = msg->tid;
	bb_ibcm_send(cm, &c->net, &drep);
	if (c->state == BB_IBCM_TIMEWAIT) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_DUPLICATE);
		cm->stats.answered_again++;
		return;
	}
	bb_ibcm_remove(cm, c, BB_IBCM_BY_GID);
	over(cm, c, c->hold, BB_IBCM_EV_DISCONNECTED, 0, msg, now);
}

static void
rx_drep(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
	uint64_t now)
{
	bool unknown;
	struct bb_ibcm_conn *c = find_conn(cm, gmp, msg, true, &unknown);

	if (c == NULL)
		return;
	if (c->state == BB_IBCM_DREQ_SENT)
		over(cm, c, c->hold, BB_IBCM_EV_DISCONNECTED, 0, msg, now);
	else
		bb_ibcm_dropped(cm, BB_IBCM_DROP_STATE);
}

/* ---- LAP: alternate paths are not supported */

static void
rx_lap(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg)
{
	bool unknown;
	struct bb_ibcm_conn *c = find_conn(cm, gmp, msg, true, &unknown);
	struct bb_ibcm_msg apr;

	if (c == NULL && !unknown)
		return;
	bb_ibcm_answer_begin(&apr, BB_IBCM_APR, msg);
	apr.apr.status = unknown ? BB_IBCM_APR_COMM_ID : BB_IBCM_APR_UNSUPPORTED;
	if (c != NULL)
		bb_ibcm_dropped(cm, BB_IBCM_DROP_STATE);
	bb_ibcm_answer(cm, gmp, &apr);
}

/* ---- Entry points */

static void
handle(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg,
       uint64_t now)
{
	switch (msg->type) {
	case BB_IBCM_REQ:
		bb_ibcm_rx_req(cm, gmp, msg, now);
		break;
	case BB_IBCM_MRA:
		rx_mra(cm, gmp, msg, now);
		break;
	case BB_IBCM_REJ:
		rx_rej(cm, gmp, msg, now);
		break;
	case BB_IBCM_REP:
		rx_rep(cm, gmp, msg, now);
		break;
	case BB_IBCM_RTU:
		rx_rtu(cm, gmp, msg);
		break;
	case BB_IBCM_DREQ:
		rx_dreq(cm, gmp, msg, now);
		break;
	case BB_IBCM_DREP:
		rx_drep(cm, gmp, msg, now);
		break;
	case BB_IBCM_SIDR_REQ:
		bb_ibcm_rx_sidr_req(cm, gmp, msg, now);
		break;
	case BB_IBCM_SIDR_REP:
		bb_ibcm_rx_sidr_rep(cm, gmp, msg);
		break;
	case BB_IBCM_LAP:
		rx_lap(cm, gmp, msg);
		break;
	default: /* APR: this engine sends no LAP */
		bb_ibcm_dropped(cm, BB_IBCM_DROP_STATE);
	}
}

/*
 * Limits the lengths of additional information to the size of their fields. The length fields of
 * the messages have more bits.
 */
static void
limit_lengths(struct bb_ibcm_msg *msg)
{
	uint32_t *len;

	switch (msg->type) {
	case BB_IBCM_REJ:
		len = &msg->rej.ari_len;
		break;
	case BB_IBCM_SIDR_REP:
		len = &msg->sidr_rep.info_len;
		break;
	case BB_IBCM_APR:
		len = &msg->apr.info_len;
		break;
	default:
		return;
	}
	if (*len > BB_IBCM_ARI)
		*len = BB_IBCM_ARI;
}

void
bb_ibcm_rx(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const uint8_t *mad, size_t len,
	   uint64_t now)
{
	static const enum bb_ibcm_drop bad[] = {
		[BB_IBCM_BAD_LENGTH] = BB_IBCM_DROP_LENGTH,
		[BB_IBCM_BAD_VERSION] = BB_IBCM_DROP_VERSION,
		[BB_IBCM_BAD_CLASS] = BB_IBCM_DROP_CLASS,
		[BB_IBCM_BAD_METHOD] = BB_IBCM_DROP_METHOD,
		[BB_IBCM_BAD_TYPE] = BB_IBCM_DROP_TYPE,
	};
	enum bb_ibcm_parsed parsed;
	struct bb_ibcm_msg msg;

	if (gmp->qkey != BB_IBCM_QKEY) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_QKEY);
		return;
	}
	/* A CM on another QP, by redirection, is not supported. */
	if (gmp->sqpn != BB_IBCM_QPN) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_SQPN);
		return;
	}
	parsed = bb_ibcm_parse(&msg, mad, len);
	if (parsed != BB_IBCM_PARSED) {
		bb_ibcm_dropped(cm, bad[parsed]);
		return;
	}
	cm->stats.rx[msg.type - BB_IBCM_REQ]++;
	limit_lengths(&msg);
	handle(cm, gmp, &msg, now);
}

uint64_t
bb_ibcm_deadline(const struct bb_ibcm *cm)
{
	const struct bb_ibcm_conn *c = bb_ibcm_clock_first(cm);

	return c == NULL ? BB_IBCM_NEVER : c->deadline;
}

/* Sends the request again, or gives up if it was sent often enough. */
static void
expired(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t now)
{
	const bool sent = c->state == BB_IBCM_REQ_SENT || c->state == BB_IBCM_REP_SENT ||
			  c->state == BB_IBCM_DREQ_SENT || c->state == BB_IBCM_SIDR_SENT;

	if (sent && c->tries > 0) {
		c->tries--;
		cm->stats.repeats++;
		bb_ibcm_clock_set(cm, c, now + c->interval);
		bb_ibcm_post_again(cm, c);
		return;
	}
	if (c->state != BB_IBCM_TIMEWAIT)
		cm->stats.timeouts++;
	switch (c->state) {
	case BB_IBCM_TIMEWAIT:
		bb_ibcm_end(cm, c, 0, now);
		break;
	case BB_IBCM_DREQ_SENT:
		over(cm, c, c->hold, BB_IBCM_EV_DISCONNECTED, -ETIMEDOUT, NULL, now);
		break;
	case BB_IBCM_SIDR_SENT:
	case BB_IBCM_SIDR_RCVD:
		bb_ibcm_report(cm, c, BB_IBCM_EV_FAILED, -ETIMEDOUT, NULL, NULL, true);
		break;
	default: /* REQ_SENT, REQ_RCVD, REP_SENT, REP_RCVD */
		bb_ibcm_post_rej(cm, c, BB_IBCM_REJ_TIMEOUT, NULL, 0);
		over(cm, c, 2 * c->interval, BB_IBCM_EV_FAILED, -ETIMEDOUT, NULL, now);
	}
}

void
bb_ibcm_tick(struct bb_ibcm *cm, uint64_t now)
{
	struct bb_ibcm_conn *c;

	while ((c = bb_ibcm_clock_first(cm)) != NULL && c->deadline <= now)
		expired(cm, c, now);
}
