/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The core of the CM engine: creation, services, sending of messages, reporting of events. */
#include <errno.h>
#include <stdlib.h>

#include "bb_ibcm_priv.h"

void
bb_ibcm_attr_init(struct bb_ibcm_attr *attr)
{
	*attr = (struct bb_ibcm_attr){
		.max_conns = 65536,
		.max_services = 1024,
		.max_pending = 4096,
		.max_pending_per_gid = 256,
		.max_ended_per_gid = 256,
		.mra_timeout = 24,
		.min_timeout = 12,
		.max_timeout = 22,
		.max_mra_timeout = 24,
		.pkey = 0xffff,
	};
}

int
bb_ibcm_create(const struct bb_ibcm_attr *attr, struct bb_ibcm **out)
{
	struct bb_ibcm *cm;
	int ret;

	if (attr->max_conns == 0 || attr->max_conns > 1u << 20 || attr->max_services == 0 ||
	    attr->max_services > 1u << 20 || attr->max_pending_per_gid == 0 ||
	    attr->max_pending == 0 || attr->max_ended_per_gid == 0 ||
	    attr->min_timeout > attr->max_timeout || attr->max_timeout > 31 ||
	    attr->mra_timeout > 31 || attr->max_mra_timeout > 31 || attr->ops == NULL)
		return -EINVAL;
	cm = calloc(1, sizeof(*cm));
	if (cm == NULL)
		return -ENOMEM;
	cm->attr = *attr;
	ret = bb_ibcm_tables_init(cm);
	if (ret != 0) {
		bb_ibcm_destroy(cm);
		return ret;
	}
	*out = cm;
	return 0;
}

void
bb_ibcm_destroy(struct bb_ibcm *cm)
{
	bb_ibcm_tables_free(cm);
	free(cm);
}

uint32_t
bb_ibcm_in_use(const struct bb_ibcm *cm)
{
	return cm->in_use;
}

const struct bb_ibcm_stats *
bb_ibcm_stats(const struct bb_ibcm *cm)
{
	return &cm->stats;
}

const char *
bb_ibcm_drop_name(enum bb_ibcm_drop why)
{
	static const char *const names[BB_IBCM_DROPS] = {
		[BB_IBCM_DROP_LENGTH] = "length",
		[BB_IBCM_DROP_VERSION] = "version",
		[BB_IBCM_DROP_CLASS] = "class",
		[BB_IBCM_DROP_METHOD] = "method",
		[BB_IBCM_DROP_TYPE] = "type",
		[BB_IBCM_DROP_QKEY] = "qkey",
		[BB_IBCM_DROP_SQPN] = "sqpn",
		[BB_IBCM_DROP_ID] = "id",
		[BB_IBCM_DROP_PEER] = "peer",
		[BB_IBCM_DROP_PEER_ID] = "peer_id",
		[BB_IBCM_DROP_QPN] = "qpn",
		[BB_IBCM_DROP_FIELD] = "field",
		[BB_IBCM_DROP_STATE] = "state",
		[BB_IBCM_DROP_DUPLICATE] = "duplicate",
		[BB_IBCM_DROP_PENDING] = "pending",
		[BB_IBCM_DROP_PER_GID] = "per_gid",
		[BB_IBCM_DROP_ABANDONED] = "abandoned",
	};

	return names[why];
}

/* ---- Services */

static bool
same_service(const struct bb_ibcm_service *a, const struct bb_ibcm_service *b)
{
	return a->service_id == b->service_id && a->mask == b->mask && a->datagram == b->datagram &&
	       a->ip_version == b->ip_version && bb_ibcm_same_gid(a->addr, b->addr);
}

static bool
is_any(const uint8_t addr[16])
{
	static const uint8_t zero[16];

	return bb_ibcm_same_gid(addr, zero);
}

/*
 * Returns the precedence of a service. A mask with more bits takes precedence. If the masks have
 * equally many bits, a service with an address takes precedence.
 */
static int
rank(const struct bb_ibcm_service *s)
{
	return 2 * __builtin_popcountll(s->mask) + (is_any(s->addr) ? 0 : 1);
}

int
bb_ibcm_listen(struct bb_ibcm *cm, const struct bb_ibcm_service *s)
{
	uint32_t at;

	for (at = 0; at < cm->nservices; at++)
		if (same_service(&cm->services[at], s))
			return -EADDRINUSE;
	if (cm->nservices == cm->attr.max_services)
		return -ENOSPC;
	for (at = 0; at < cm->nservices && rank(&cm->services[at]) >= rank(s); at++)
		;
	memmove(&cm->services[at + 1], &cm->services[at],
		(cm->nservices - at) * sizeof(*cm->services));
	cm->services[at] = *s;
	cm->nservices++;
	return 0;
}

int
bb_ibcm_unlisten(struct bb_ibcm *cm, const struct bb_ibcm_service *s)
{
	uint32_t at;

	for (at = 0; at < cm->nservices; at++)
		if (same_service(&cm->services[at], s))
			break;
	if (at == cm->nservices)
		return -ENOENT;
	cm->nservices--;
	memmove(&cm->services[at], &cm->services[at + 1],
		(cm->nservices - at) * sizeof(*cm->services));
	return 0;
}

const struct bb_ibcm_service *
bb_ibcm_service_find(const struct bb_ibcm *cm, uint64_t service_id, bool datagram,
		     const struct bb_ibcm_msg *msg, struct bb_ibcm_ip *ip, bool *bad_header)
{
	const bool valid = bb_ibcm_ip_parse(ip, msg->priv, msg->priv_len);

	*bad_header = false;
	for (uint32_t i = 0; i < cm->nservices; i++) {
		const struct bb_ibcm_service *s = &cm->services[i];

		if (s->datagram != datagram || ((s->service_id ^ service_id) & s->mask) != 0)
			continue;
		if (!s->ip)
			return s;
		if (!valid)
			*bad_header = true;
		else if (s->ip_version != 0 && s->ip_version != ip->version)
			continue;
		else if (is_any(s->addr) || bb_ibcm_same_gid(s->addr, ip->dst))
			return s;
	}
	return NULL;
}

bool
bb_ibcm_may_pend(struct bb_ibcm *cm, const uint8_t gid[16])
{
	if (cm->pending >= cm->attr.max_pending || cm->in_use == cm->attr.max_conns) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_PENDING);
		return false;
	}
	if (bb_ibcm_gid_is_full(cm, gid, cm->attr.max_pending_per_gid)) {
		bb_ibcm_dropped(cm, BB_IBCM_DROP_PER_GID);
		return false;
	}
	return true;
}

struct bb_ibcm_conn *
bb_ibcm_find_qpn(struct bb_ibcm *cm, const uint8_t gid[16], uint32_t qpn, uint64_t guid)
{
	struct bb_ibcm_conn *c = bb_ibcm_find_peer(cm, BB_IBCM_BY_QPN, gid, qpn, guid, false);

	if (c == NULL || !c->owned || cm->attr.ops->reused == NULL)
		return c;
	cm->attr.ops->reused(cm->attr.ctx, c->id, c->cookie);
	return bb_ibcm_find_peer(cm, BB_IBCM_BY_QPN, gid, qpn, guid, false);
}

/* ---- Messages */

void
bb_ibcm_msg_begin(const struct bb_ibcm_conn *c, struct bb_ibcm_msg *msg, uint8_t type)
{
	memset(msg, 0, sizeof(*msg));
	msg->type = type;
	msg->tid = c->tid;
	msg->local_id = c->id;
	msg->remote_id = c->remote_id;
}

void
bb_ibcm_answer_begin(struct bb_ibcm_msg *msg, uint8_t type, const struct bb_ibcm_msg *to)
{
	memset(msg, 0, sizeof(*msg));
	msg->type = type;
	msg->tid = to->tid;
	msg->local_id = to->remote_id;
	msg->remote_id = to->local_id;
}

void
bb_ibcm_back(struct bb_ibcm_net *net, const struct bb_ibcm_gmp *gmp)
{
	*net = gmp->net;
	memcpy(net->src, gmp->net.dst, sizeof(net->src));
	memcpy(net->dst, gmp->net.src, sizeof(net->dst));
	net->hop_limit = BB_IBCM_HOPS;
}

static void
transmit(struct bb_ibcm *cm, const struct bb_ibcm_net *net, const uint8_t *mad, uint8_t type)
{
	cm->stats.tx[type - BB_IBCM_REQ]++;
	cm->attr.ops->tx(cm->attr.ctx, net, mad);
}

void
bb_ibcm_send(struct bb_ibcm *cm, const struct bb_ibcm_net *net, const struct bb_ibcm_msg *msg)
{
	uint8_t mad[BB_IBCM_MAD];

	if (bb_ibcm_build(mad, msg))
		transmit(cm, net, mad, msg->type);
}

void
bb_ibcm_answer(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const struct bb_ibcm_msg *msg)
{
	struct bb_ibcm_net net;

	bb_ibcm_back(&net, gmp);
	bb_ibcm_send(cm, &net, msg);
}

int
bb_ibcm_post(struct bb_ibcm *cm, struct bb_ibcm_conn *c, const struct bb_ibcm_msg *msg)
{
	if (!bb_ibcm_build(c->tx, msg))
		return -EINVAL;
	transmit(cm, &c->net, c->tx, msg->type);
	return 0;
}

void
bb_ibcm_post_again(struct bb_ibcm *cm, struct bb_ibcm_conn *c)
{
	transmit(cm, &c->net, c->tx, bb_ibcm_tx_type(c));
}

void
bb_ibcm_wait(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t interval, uint8_t tries,
	     uint64_t now)
{
	c->interval = interval;
	c->tries = tries;
	c->mra = false;
	bb_ibcm_clock_set(cm, c, now + interval);
}

int
bb_ibcm_post_rej(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint16_t reason, const void *priv,
		 uint32_t priv_len)
{
	struct bb_ibcm_msg msg;
	int ret;

	bb_ibcm_msg_begin(c, &msg, BB_IBCM_REJ);
	switch (c->state) {
	case BB_IBCM_REQ_RCVD:
		msg.rej.answers = BB_IBCM_ANSWERS_REQ;
		break;
	case BB_IBCM_REP_RCVD:
		msg.rej.answers = BB_IBCM_ANSWERS_REP;
		break;
	default:
		msg.rej.answers = BB_IBCM_ANSWERS_OTHER;
	}
	msg.rej.reason = reason;
	if (reason == BB_IBCM_REJ_TIMEOUT) {
		/*
		 * A peer that has got no message of this side does not know this side's ID. It then
		 * finds the connection by this GUID (12.6.7.2).
		 */
		const uint64_t guid = cm->attr.ca_guid;

		msg.rej.ari_len = sizeof(guid);
		for (unsigned int i = 0; i < sizeof(guid); i++)
			msg.rej.ari[i] = (uint8_t)(guid >> (56 - 8 * i));
	}
	msg.priv = priv;
	msg.priv_len = priv_len;
	ret = bb_ibcm_post(cm, c, &msg);
	if (ret == 0 && reason < BB_IBCM_REJ_REASONS)
		cm->stats.rejects[reason]++;
	return ret;
}

void
bb_ibcm_send_mra(struct bb_ibcm *cm, struct bb_ibcm_conn *c, enum bb_ibcm_answered answers,
		 uint64_t now)
{
	struct bb_ibcm_msg msg;

	bb_ibcm_msg_begin(c, &msg, BB_IBCM_MRA);
	msg.mra.answers = answers;
	msg.mra.timeout = cm->attr.mra_timeout;
	bb_ibcm_send(cm, &c->net, &msg);
	cm->stats.answered_again++;
	if (c->mra)
		return;
	c->mra = true;
	bb_ibcm_clock_set(cm, c, now + bb_ibcm_ns(cm->attr.mra_timeout));
}

/* ---- Events and ended connections */

void
bb_ibcm_end(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t hold, uint64_t now)
{
	if (hold == 0 && !c->owned) {
		bb_ibcm_slot_free(cm, c);
		return;
	}
	cm->n_dreq -= c->state == BB_IBCM_DREQ_SENT;
	c->state = BB_IBCM_TIMEWAIT;
	/* From now on the peer may connect the same QP again, as in Linux (cm_enter_timewait()). */
	bb_ibcm_remove(cm, c, BB_IBCM_BY_QPN);
	if (hold == 0)
		bb_ibcm_clock_stop(cm, c);
	else
		bb_ibcm_clock_set(cm, c, now + hold);
	if (!c->owned)
		bb_ibcm_limit_ended(cm, c, now);
}

void
bb_ibcm_report(struct bb_ibcm *cm, struct bb_ibcm_conn *c, enum bb_ibcm_event_type type, int status,
	       const struct bb_ibcm_msg *msg, const struct bb_ibcm_ip *ip, bool ends)
{
	const struct bb_ibcm_net net = c->net;
	const struct bb_ibcm_event ev = {
		.type = type,
		.id = c->id,
		.cookie = c->cookie,
		.status = status,
		.msg = msg,
		.ip = ip,
		.net = &net,
	};
	const bool owned = c->owned;

	if (ends)
		bb_ibcm_slot_free(cm, c);
	if (owned)
		cm->attr.ops->event(cm->attr.ctx, &ev);
}
