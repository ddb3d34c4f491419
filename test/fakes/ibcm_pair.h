/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two CM engines, a and b, with a network between them that delivers only on request. Each MAD
 * stays in a list of the network after its delivery, so that a test can deliver it again. Events
 * are recorded; the test answers them.
 */
#ifndef IBCM_PAIR_H
#define IBCM_PAIR_H

#include <stdlib.h>
#include <string.h>

#include "bb_ibcm.h"

/* A program may set these limits before it includes this file. */
#ifndef PAIR_MADS
#define PAIR_MADS   512u
#define PAIR_EVENTS 512u
#endif
#define PAIR_MS 1000000ull

/* A MAD on the network. */
struct pair_mad {
	struct bb_ibcm_net net;
	uint8_t mad[BB_IBCM_MAD];
	uint8_t type;
};

struct pair_event {
	enum bb_ibcm_event_type type;
	uint32_t id;
	uint64_t cookie;
	int status;
	bool has_ip;
	struct bb_ibcm_ip ip;
	struct bb_ibcm_msg msg; /* priv points to priv */
	uint8_t priv[BB_IBCM_PRIV_RTU];
};

struct pair;

struct pair_end {
	struct pair *pair;
	struct bb_ibcm *cm;
	uint8_t gid[16];
	struct pair_event ev[PAIR_EVENTS];
	uint32_t nev;
};

struct pair {
	struct pair_end end[2];
	struct pair_mad mads[PAIR_MADS];
	uint32_t nmads;
	uint32_t next; /* first MAD that pair_deliver_all() has not delivered */
	uint64_t now;
};

static void
pair_tx(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD])
{
	struct pair_end *e = ctx;
	struct pair_mad *m;

	if (e->pair->nmads == PAIR_MADS)
		return;
	m = &e->pair->mads[e->pair->nmads++];
	m->net = *net;
	memcpy(m->mad, mad, BB_IBCM_MAD);
	m->type = mad[17];
}

static void
pair_event(void *ctx, const struct bb_ibcm_event *ev)
{
	struct pair_end *e = ctx;
	struct pair_event *r;

	if (e->nev == PAIR_EVENTS)
		return;
	r = &e->ev[e->nev++];
	memset(r, 0, sizeof(*r));
	r->type = ev->type;
	r->id = ev->id;
	r->cookie = ev->cookie;
	r->status = ev->status;
	if (ev->msg != NULL) {
		r->msg = *ev->msg;
		memcpy(r->priv, ev->msg->priv, ev->msg->priv_len);
		r->msg.priv = r->priv;
	}
	r->has_ip = ev->ip != NULL;
	if (r->has_ip)
		r->ip = *ev->ip;
}

static const struct bb_ibcm_ops pair_ops = {.tx = pair_tx, .event = pair_event};

static inline void
pair_gid(uint8_t gid[16], uint8_t last)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	gid[12] = 10;
	gid[15] = last;
}

/* Engine i has the GUID 0xa0 + i and the address 10.0.0.1 + i. @attr may change the defaults. */
static inline struct pair *
pair_new(void (*change)(struct bb_ibcm_attr *attr))
{
	struct pair *p = calloc(1, sizeof(*p));
	struct bb_ibcm_attr attr;

	if (p == NULL)
		abort();
	p->now = 1000;
	for (unsigned int i = 0; i < 2; i++) {
		p->end[i].pair = p;
		pair_gid(p->end[i].gid, (uint8_t)(1 + i));
		bb_ibcm_attr_init(&attr);
		attr.max_conns = 64;
		attr.max_services = 8;
		attr.max_pending = 32;
		attr.max_pending_per_gid = 16;
		attr.max_ended_per_gid = 16;
		attr.ca_guid = 0xa0 + i;
		attr.seed = 77 + i;
		attr.ops = &pair_ops;
		attr.ctx = &p->end[i];
		if (change != NULL)
			change(&attr);
		if (bb_ibcm_create(&attr, &p->end[i].cm) != 0)
			abort();
	}
	return p;
}

static inline void
pair_free(struct pair *p)
{
	bb_ibcm_destroy(p->end[0].cm);
	bb_ibcm_destroy(p->end[1].cm);
	free(p);
}

static inline struct pair_end *
pair_at(struct pair *p, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < 2; i++)
		if (memcmp(p->end[i].gid, gid, 16) == 0)
			return &p->end[i];
	return NULL;
}

/* Fields of the packet of a MAD on the network. */
static inline struct bb_ibcm_gmp
pair_gmp(const struct pair_mad *m)
{
	return (struct bb_ibcm_gmp){.net = m->net, .sqpn = BB_IBCM_QPN, .qkey = BB_IBCM_QKEY};
}

/* Delivers a MAD, or a copy that the test has changed. */
static inline void
pair_deliver(struct pair *p, const struct pair_mad *m)
{
	struct pair_end *e = pair_at(p, m->net.dst);
	const struct bb_ibcm_gmp gmp = pair_gmp(m);

	if (e != NULL)
		bb_ibcm_rx(e->cm, &gmp, m->mad, BB_IBCM_MAD, p->now);
}

/* Delivers the next MAD. Returns its type, 0 if there is none. */
static inline uint8_t
pair_deliver_next(struct pair *p)
{
	const struct pair_mad *m = &p->mads[p->next];

	if (p->next == p->nmads)
		return 0;
	p->next++;
	pair_deliver(p, m);
	return m->type;
}

static inline void
pair_deliver_all(struct pair *p)
{
	while (pair_deliver_next(p) != 0)
		;
}

static inline struct bb_ibcm_net
pair_net(const struct pair *p, unsigned int from)
{
	struct bb_ibcm_net net = {.flow_label = 0x12345, .tclass = 8, .hop_limit = 64, .sl = 3};

	memcpy(net.src, p->end[from].gid, 16);
	memcpy(net.dst, p->end[1 - from].gid, 16);
	return net;
}

/* A REQ with valid fields: 4 retries, timeouts of 67 ms (code 14). */
static inline struct bb_ibcm_req
pair_req(uint64_t service_id, uint32_t qpn)
{
	return (struct bb_ibcm_req){
		.service_id = service_id,
		.qpn = qpn,
		.psn = 0x123456,
		.responder_resources = 1,
		.initiator_depth = 2,
		.remote_timeout = 14,
		.local_timeout = 14,
		.retry_count = 7,
		.rnr_retry = 6,
		.pkey = 0xffff,
		.mtu = 3,
		.cm_retries = 4,
		.primary = {.ack_timeout = 14},
	};
}

static inline struct bb_ibcm_rep
pair_rep(uint32_t qpn)
{
	return (struct bb_ibcm_rep){
		.qpn = qpn, .psn = 0x654321, .responder_resources = 2, .initiator_depth = 1};
}

/* Moves the time on to the next timeout of both engines, and handles it. Returns false at @limit.
 */
static inline bool
pair_time(struct pair *p, uint64_t limit)
{
	uint64_t a = bb_ibcm_deadline(p->end[0].cm), b = bb_ibcm_deadline(p->end[1].cm);
	uint64_t next = a < b ? a : b;

	if (next > limit)
		return false;
	if (next > p->now)
		p->now = next;
	bb_ibcm_tick(p->end[0].cm, p->now);
	bb_ibcm_tick(p->end[1].cm, p->now);
	return true;
}

#endif
