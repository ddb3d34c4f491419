/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Packets of the RoCEv2 engine on their way: between devices of the process through memory.
 *
 * A packet goes as the bytes from its IP header to its ICRC, through the inbox of the engine that
 * runs its target, which parses it as any that comes from outside. An engine that does not run
 * keeps SOFT_WIRE_QUEUE packets; then who sends to it has no room and tries again.
 */
#include <stdlib.h>

#include <netinet/in.h>

#include "soft_wire.h"

#include "soft_ctl.h"
#include "soft_port_stack.h"

#define UDP_LEN 8u

/* Where an address leads to inside the process. NULL: nowhere, or where nobody speaks packets. */
static struct soft_dev *
soft_wire_dest_dev(const struct soft_dev *dev, const struct bb_roce_net *net, const uint8_t mac[6])
{
	struct soft_dev *dest = soft_dev_peek_gid(net->dst);

	if (dest == NULL || !dest->opts.wire || memcmp(mac, dest->mac, sizeof(dest->mac)) != 0)
		return NULL;
	if (net->hop_limit == 0 || __atomic_load_n(&dev->port_down, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&dest->port_down, __ATOMIC_RELAXED))
		return NULL;
	return dest;
}

static void
soft_wire_dropped(struct soft_engine *e, enum bb_roce_drop why)
{
	SOFT_LOG(DEBUG, "%s: packet dropped: %s", e->dev->name, bb_roce_drop_str(why));
}

/* A packet from its IP header to its ICRC, in memory of its own. */
static struct soft_packet_msg *
soft_packet_build(const struct soft_wire_dest *to, const struct bb_roce_pkt *pkt,
		  const struct bb_roce_iov *iov, uint32_t n)
{
	uint32_t pad = bb_roce_pad(pkt->len), ip_len, hdr_len, i;
	uint8_t hdr[BB_ROCE_MAX_HDR], *udp, *bth, *at;
	struct soft_packet_msg *m;

	m = malloc(sizeof(*m) + SOFT_WIRE_HEADERS + pkt->len + pad + BB_ROCE_ICRC_LEN);
	if (m == NULL)
		return NULL;
	m->net = to->net;
	memcpy(m->mac, to->mac, sizeof(m->mac));
	m->rx = false;
	m->dqpn = pkt->dqpn;
	hdr_len = bb_roce_build(hdr, pkt);
	m->len = UDP_LEN + hdr_len + pkt->len + pad + BB_ROCE_ICRC_LEN;
	ip_len = soft_port_put_ip(m->data, &to->net, IPPROTO_UDP, m->len);
	udp = m->data + ip_len;
	soft_put16(udp, to->net.sport);
	soft_put16(udp + 2, BB_ROCE_UDP_PORT);
	soft_put16(udp + 4, m->len);
	soft_put16(udp + 6, 0); /* the ICRC is there (annex A17.3.1.2) */
	bth = udp + UDP_LEN;
	memcpy(bth, hdr, hdr_len);
	at = bth + hdr_len;
	for (i = 0; i < n; i++) {
		memcpy(at, iov[i].p, iov[i].len);
		at += iov[i].len;
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

bool
soft_wire_tx(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_pkt *pkt,
	     const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;
	bool dgram = w->qp->st == BB_PRM_QP_ST_UD && msg != NULL;
	const struct soft_wire_dest *to = dgram ? &w->dest[msg->cookie] : &w->path;
	struct soft_dev *dest = soft_wire_dest_dev(e->dev, &to->net, to->mac);
	struct soft_packet_msg *m;
	struct soft_qp *p;

	(void)ctx;
	p = dest != NULL ? soft_qp_find(dest, pkt->dqpn) : NULL;
	/* Lost, as on any network. */
	if (p == NULL)
		return true;
	if (__atomic_load_n(&p->engine->packets, __ATOMIC_RELAXED) >= SOFT_WIRE_QUEUE)
		return false;
	m = soft_packet_build(to, pkt, iov, n);
	if (m == NULL)
		return false;
	if (unlikely(soft_net_faulty(&e->dev->opts.tx_fault)))
		soft_net_fault_strike(e, m, &e->dev->opts.tx_fault);
	else
		soft_packet_go(e, m);
	return true;
}

static void
soft_packet_send(struct soft_engine *e, struct soft_packet_msg *m)
{
	struct soft_dev *dest = soft_wire_dest_dev(e->dev, &m->net, m->mac);
	struct soft_qp *p = dest != NULL ? soft_qp_find(dest, m->dqpn) : NULL;

	if (p != NULL && p->wire != NULL)
		soft_packet_post(p, m);
	else
		free(m);
}

void
soft_wire_input(struct soft_engine *e, const uint8_t *ip, uint32_t ip_len, uint32_t len,
		const struct bb_roce_net *net)
{
	uint32_t roce_len = len - ip_len - UDP_LEN;
	const uint8_t *bth = ip + ip_len + UDP_LEN;
	uint8_t icrc[BB_ROCE_ICRC_LEN];
	enum bb_roce_drop drop;
	struct bb_roce_pkt pkt;
	struct soft_qp *qp;

	if (roce_len < BB_ROCE_BTH_LEN + BB_ROCE_ICRC_LEN) {
		soft_wire_dropped(e, BB_ROCE_DROP_SHORT);
		return;
	}
	roce_len -= BB_ROCE_ICRC_LEN;
	bb_roce_icrc_end(bb_roce_icrc_begin(ip, ip_len, ip + ip_len, bth, roce_len), icrc);
	if (memcmp(icrc, bth + roce_len, sizeof(icrc)) != 0) {
		soft_wire_dropped(e, BB_ROCE_DROP_ICRC);
		return;
	}
	drop = bb_roce_parse(&pkt, bth, roce_len);
	if (drop != BB_ROCE_OK) {
		soft_wire_dropped(e, drop);
		return;
	}
	qp = soft_qp_find(e->dev, pkt.dqpn);
	if (qp != NULL && qp->wire != NULL && qp->engine == e)
		soft_wire_rx(e, qp->wire, &pkt, net);
}

void
soft_packet_go(struct soft_engine *e, struct soft_packet_msg *m)
{
	if (!m->rx) {
		soft_packet_send(e, m);
		return;
	}
	soft_wire_input(e, m->data, m->ip_len, m->len, &m->net);
	free(m);
}

void
soft_wire_arrive(struct soft_engine *e, struct soft_packet_msg *m)
{
	m->rx = true;
	if (unlikely(soft_net_faulty(&e->dev->opts.rx_fault)))
		soft_net_fault_strike(e, m, &e->dev->opts.rx_fault);
	else
		soft_packet_go(e, m);
}
