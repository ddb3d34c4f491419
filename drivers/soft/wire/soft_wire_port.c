/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Packets of a device, between its queue pairs and its link. Every packet in both directions passes
 * through this file, on every link, except the frames that soft_wire_expect.c accepts.
 */
#include <stdlib.h>

#include <netinet/in.h>

#include "soft_wire.h"

#include "soft_ctl.h"
#include "soft_mcg.h"
#include "soft_port_stack.h"

#define UDP_LEN 8u

struct soft_packet_msg *
soft_packet_build(const struct soft_link_pkt *p)
{
	const struct soft_wire_dest *to = p->to;
	const struct bb_roce_pkt *pkt = p->pkt;
	uint32_t pad = bb_roce_pad(pkt->len), ip_len, hdr_len, i;
	uint8_t hdr[BB_ROCE_MAX_HDR], *udp, *bth, *at;
	struct soft_packet_msg *m;

	m = malloc(sizeof(*m) + SOFT_WIRE_HEADERS + pkt->len + pad + BB_ROCE_ICRC_LEN);
	if (m == NULL)
		return NULL;
	m->net = to->net;
	memcpy(m->mac, to->mac, sizeof(m->mac));
	m->rx = false;
	m->hits = 0;
	m->dqpn = pkt->dqpn;
	hdr_len = bb_roce_build(hdr, pkt);
	m->len = UDP_LEN + hdr_len + pkt->len + pad + BB_ROCE_ICRC_LEN;
	ip_len = soft_port_put_ip(m->data, &to->net, IPPROTO_UDP, m->len);
	udp = m->data + ip_len;
	bb_put32(udp, (uint32_t)to->net.sport << 16 | BB_ROCE_UDP_PORT);
	/* No UDP checksum: the ICRC covers all (annex A17.3.1.2). */
	bb_put32(udp + 4, m->len << 16);
	bth = udp + UDP_LEN;
	memcpy(bth, hdr, hdr_len);
	at = bth + hdr_len;
	for (i = 0; i < p->n; i++) {
		memcpy(at, p->iov[i].p, p->iov[i].len);
		at += p->iov[i].len;
	}
	memset(at, 0, pad);
	at += pad;
	bb_roce_icrc_end(bb_roce_icrc_more(bb_roce_icrc_begin(m->data, ip_len, udp, bth, hdr_len),
					   bth + hdr_len, pkt->len + pad),
			 at);
	m->ip_len = ip_len;
	m->len += ip_len;
	return m;
}

/* ---- Sent packets */

/*
 * Sends a packet under fault injection. Faults other than loss change bytes, so they need a
 * serialized packet. Returns false if there is no room.
 */
static bool
soft_wire_tx_faulty(struct soft_engine *e, const struct soft_link_pkt *p)
{
	struct soft_packet_msg *m;

	if (soft_net_loses_only(e->dev)) {
		if (soft_net_loses(e))
			return true;
		/*
		 * Loss is decided once for each packet. So a packet that finds no room is sent
		 * again without a new random decision.
		 */
		e->net.spared = e->dev->link->send(e, p) == SOFT_LINK_FULL;
		return !e->net.spared;
	}
	if (e->n_held_packets >= SOFT_WIRE_QUEUE || soft_net_full(e, false))
		return false;
	m = soft_packet_build(p);
	if (m == NULL)
		return false;
	soft_net_fault_apply(e, m, &e->dev->opts.tx_fault);
	return true;
}

/*
 * Sends a serialized packet. Returns false if there is no room; the caller then still owns the
 * packet.
 */
static bool
soft_packet_send(struct soft_engine *e, struct soft_packet_msg *m)
{
	enum soft_link_sent sent;

	if (likely(e->dev->capture == NULL))
		return e->dev->link->send_bytes(e, m) != SOFT_LINK_FULL;
	/*
	 * Locks the capture until the packet is sent, so that the peer's ACK comes after the packet
	 * in the file.
	 */
	soft_packet_capture_begin(e, SOFT_CAPTURE_OUT, m->data, m->len, m->hits);
	sent = e->dev->link->send_bytes(e, m);
	soft_packet_capture_end(e, sent != SOFT_LINK_FULL);
	return sent != SOFT_LINK_FULL;
}

/*
 * Sends a packet under capture, which needs a serialized packet. Returns false if there is no room.
 */
static bool
soft_wire_tx_captured(struct soft_engine *e, const struct soft_link_pkt *p)
{
	struct soft_packet_msg *m = soft_packet_build(p);

	if (m == NULL)
		return false;
	if (soft_packet_send(e, m))
		return true;
	free(m);
	return false;
}

/*
 * Returns true if @p points to scratch memory of the engine, which the next packet may overwrite.
 */
static bool
soft_wire_scratch(const struct soft_engine *e, const void *p)
{
	uintptr_t at = (uintptr_t)p;

	return at - (uintptr_t)e->bounce < sizeof(e->bounce) ||
	       at - (uintptr_t)e->req.wqe < sizeof(e->req.wqe);
}

/*
 * Returns true if the payload stays valid until the turn ends. The memory of an RC request stays
 * valid until its ACK or response arrives.
 */
static bool
soft_wire_stable(const struct soft_engine *e, const struct soft_wire *w,
		 const struct bb_roce_iov *iov, uint32_t n)
{
	uint32_t i;

	if (w->qp->st != BB_PRM_QP_ST_RC)
		return false;
	for (i = 0; i < n; i++)
		if (soft_wire_scratch(e, iov[i].p))
			return false;
	return true;
}

/*
 * Handles a packet to @to for which the link has no room. Returns true if the packet is dropped. A
 * packet of RC waits, and the ack timer limits the wait. UC and UD have no timer. Their packet is
 * dropped after the head-of-queue lifetime, as in a switch (IBTA vol. 1, 18.2.5.4). So a peer that
 * accepts no packets cannot block datagrams to other peers.
 */
static __rte_noinline bool
soft_wire_expired(struct soft_wire *w, const struct soft_wire_dest *to)
{
	struct soft_engine *e = w->qp->engine;

	if (w->qp->st != BB_PRM_QP_ST_RC) {
		if (!bb_roce_same_gid(w->full_to, to->net.dst)) {
			w->full.since = 0;
			memcpy(w->full_to, to->net.dst, sizeof(w->full_to));
		}
		if (soft_full_expired(&w->full, soft_engine_ns(e), SOFT_WIRE_LIFETIME_NS))
			return true;
	}
	e->full = w;
	return false;
}

bool
soft_wire_tx(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_pkt *pkt,
	     const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;
	bool dgram = w->qp->st == BB_PRM_QP_ST_UD && msg != NULL;
	const struct soft_link_pkt p = {
		.to = dgram ? &w->dest[msg->cookie] : &w->path,
		.pkt = pkt,
		.iov = iov,
		.n = n,
		.stable = msg != NULL && soft_wire_stable(e, w, iov, n),
	};

	bool sent;

	(void)ctx;
	if (unlikely(soft_net_faulty(&e->dev->opts.tx_fault)))
		sent = soft_wire_tx_faulty(e, &p);
	else if (unlikely(e->dev->capture != NULL))
		sent = soft_wire_tx_captured(e, &p);
	else
		sent = e->dev->link->send(e, &p) != SOFT_LINK_FULL;
	if (unlikely(!sent))
		return soft_wire_expired(w, p.to);
	if (unlikely(w->full.since != 0) && bb_roce_same_gid(w->full_to, p.to->net.dst))
		w->full.since = 0;
	return true;
}

/* ---- Received packets */

/*
 * Returns true if the ICRC of the packet is right. Call it only if soft_wire_has_min_length() is
 * true.
 */
static inline bool
soft_wire_sound(const struct soft_packet *p)
{
	uint32_t roce_len = p->len - p->ip_len - UDP_LEN - BB_ROCE_ICRC_LEN;
	const uint8_t *bth = p->ip + p->ip_len + UDP_LEN;
	uint8_t icrc[BB_ROCE_ICRC_LEN];

	bb_roce_icrc_end(bb_roce_icrc_begin(p->ip, p->ip_len, p->ip + p->ip_len, bth, roce_len),
			 icrc);
	return memcmp(icrc, bth + roce_len, sizeof(icrc)) == 0;
}

/* Checks and processes a packet for @qp, which was found by the QP number in the packet. */
static inline void
soft_wire_input(struct soft_engine *e, struct soft_qp *qp, const struct soft_packet *p)
{
	uint32_t roce_len = p->len - p->ip_len - UDP_LEN - BB_ROCE_ICRC_LEN;
	enum bb_roce_drop drop;
	struct bb_roce_pkt pkt;

	if (!soft_wire_sound(p)) {
		soft_wire_lost(e->dev, BB_ROCE_DROP_ICRC);
		return;
	}
	drop = bb_roce_parse(&pkt, p->ip + p->ip_len + UDP_LEN, roce_len);
	if (drop != BB_ROCE_OK) {
		soft_wire_lost(e->dev, drop);
		return;
	}
	if (likely(qp != NULL && qp->wire != NULL && qp->engine == e))
		soft_wire_rx(e, qp->wire, &pkt, p->net);
	else
		soft_wire_lost(e->dev, SOFT_LOST_NO_QP);
}

/* Returns true if the packet is at least as long as the shortest valid packet. */
static inline bool
soft_wire_has_min_length(const struct soft_packet *p)
{
	return p->len - p->ip_len >= UDP_LEN + BB_ROCE_BTH_LEN + BB_ROCE_ICRC_LEN;
}

/* Returns the QP whose number an unchecked packet contains, or NULL. */
static inline struct soft_qp *
soft_wire_dest_qp(const struct soft_dev *dev, const struct soft_packet *p)
{
	const uint8_t *bth = p->ip + p->ip_len + UDP_LEN;

	return soft_qp_dest(dev, bb_get32(bth + 4) & BB_ROCE_QPN_MASK);
}

/* Puts a copy of a received packet into the inbox of the QP's engine. */
static void
soft_wire_enqueue(struct soft_dev *dev, const struct soft_qp *qp, const struct soft_packet *p)
{
	struct soft_packet_msg *m;

	m = soft_packet_room(qp->engine) ? malloc(sizeof(*m) + p->len) : NULL;
	if (m == NULL) {
		soft_wire_lost(dev, SOFT_LOST_NO_ROOM);
		return;
	}
	m->net = *p->net;
	m->rx = false;
	m->hits = 0;
	m->dqpn = qp->qpn;
	m->ip_len = p->ip_len;
	m->len = p->len;
	memcpy(m->data, p->ip, p->len);
	soft_packet_post(qp, m);
}

/*
 * Checks the ICRC once, before any copy. There are at most SOFT_MAX_QP_MCG copies. Each copy waits
 * in the inbox of its QP's engine, whose length is limited.
 */
bool
soft_wire_cast(struct soft_dev *dev, const struct soft_packet *p)
{
	const uint8_t *bth = p->ip + p->ip_len + UDP_LEN;
	const struct soft_mcg *g = soft_mcg_find(dev, p->net->dst);
	uint32_t i;

	if (g == NULL || (bb_get32(bth + 4) & BB_ROCE_QPN_MASK) != BB_ROCE_MCAST_QPN)
		return false;
	if (!soft_wire_sound(p)) {
		soft_wire_lost(dev, BB_ROCE_DROP_ICRC);
		return true;
	}
	for (i = 0; i < g->n; i++)
		if (g->qp[i]->wire != NULL)
			soft_wire_enqueue(dev, g->qp[i], p);
	return true;
}

void
soft_wire_cast_own(struct soft_dev *dev, const struct soft_packet_msg *m)
{
	const struct soft_packet p = {
		.ip = m->data, .ip_len = m->ip_len, .len = m->len, .net = &m->net};

	(void)soft_wire_cast(dev, &p);
}

void
soft_wire_deliver(struct soft_dev *dev, struct soft_engine *e, const struct soft_packet *p)
{
	struct soft_qp *qp;

	if (unlikely(__atomic_load_n(&dev->port_down, __ATOMIC_RELAXED))) {
		soft_wire_lost(dev, SOFT_LOST_PORT_DOWN);
		return;
	}
	if (unlikely(!soft_wire_has_min_length(p))) {
		soft_wire_lost(dev, BB_ROCE_DROP_SHORT);
		return;
	}
	/*
	 * If the QP number is corrupted, the packet goes to a wrong engine, whose ICRC check drops
	 * it.
	 */
	qp = soft_wire_dest_qp(dev, p);
	if (unlikely(qp == NULL || qp->wire == NULL)) {
		if (!soft_wire_cast(dev, p))
			soft_wire_lost(dev, SOFT_LOST_NO_QP);
		return;
	}
	/*
	 * Injected faults apply only to packets in the inbox. So the engine of the QP processes the
	 * packet at once, without a copy, only if no faults are injected.
	 */
	if (likely(qp->engine == e && !soft_net_faulty(&dev->opts.rx_fault))) {
		soft_packet_capture(e, SOFT_CAPTURE_IN, p->ip, p->len, 0);
		soft_wire_input(e, qp, p);
		if (p->l2_len != 0)
			soft_wire_learn(qp->wire, p);
		return;
	}
	soft_wire_enqueue(dev, qp, p);
}

/* ---- Serialized packets */

/*
 * Returns the QP that a received packet is for, or NULL. A packet to a multicast group contains the
 * number of no QP. Such a packet was copied for each member of the group, and the copy names its
 * member. The member gets the copy only if it is still attached to the group.
 */
static inline struct soft_qp *
soft_packet_qp(const struct soft_dev *dev, const struct soft_packet_msg *m,
	       const struct soft_packet *p)
{
	struct soft_qp *qp = soft_wire_dest_qp(dev, p);

	if (likely(qp != NULL))
		return qp;
	qp = soft_qp_find(dev, m->dqpn);
	return soft_mcg_has(soft_mcg_find(dev, m->net.dst), qp) ? qp : NULL;
}

bool
soft_packet_forward(struct soft_engine *e, struct soft_packet_msg *m)
{
	const struct soft_packet p = {
		.ip = m->data, .ip_len = m->ip_len, .len = m->len, .net = &m->net};

	if (!m->rx)
		return soft_packet_send(e, m);
	if (likely(soft_wire_has_min_length(&p)))
		soft_wire_input(e, soft_packet_qp(e->dev, m, &p), &p);
	else
		soft_wire_lost(e->dev, BB_ROCE_DROP_SHORT);
	free(m);
	return true;
}

void
soft_wire_arrive(struct soft_engine *e, struct soft_packet_msg *m)
{
	m->rx = true;
	m->hits = 0;
	if (unlikely(soft_net_faulty(&e->dev->opts.rx_fault))) {
		soft_net_fault_apply(e, m, &e->dev->opts.rx_fault);
	} else {
		soft_packet_capture(e, SOFT_CAPTURE_IN, m->data, m->len, 0);
		(void)soft_packet_forward(e, m);
	}
}

void
soft_packet_take(struct soft_engine *e, struct soft_msg *m)
{
	__atomic_fetch_sub(&e->packets, 1, __ATOMIC_RELAXED);
	soft_wire_arrive(e, (struct soft_packet_msg *)m);
}
