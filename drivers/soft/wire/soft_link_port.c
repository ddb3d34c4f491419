/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The link of port=: the device's ethdev sends and receives the packets. Packets to an address of
 * the device itself go through memory, because an Ethernet port does not receive its own frames.
 */
#include <stdlib.h>

#include "soft_link_port.h"
#include "soft_mcg.h"
#include "soft_wire.h"

/* ---- Received frames */

static void
on_link(void *arg, bool up)
{
	struct soft_netif *nif = arg;

	soft_dev_port_set(nif->dev, up);
}

/* Returns the engine that polls the port, or NULL if the control path polls it. */
static inline struct soft_engine *
poller_of(const struct soft_netif *nif)
{
	return __atomic_load_n(&nif->lock_retainer, __ATOMIC_RELAXED);
}

static void
on_roce(void *arg, struct rte_mbuf *m, const struct soft_port_rx *rx)
{
	struct soft_netif *nif = arg;
	struct soft_packet p = {
		.ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, rx->l3_off),
		.ip_len = (uint32_t)rx->l4_off - rx->l3_off,
		.len = (uint32_t)rx->l4_off - rx->l3_off + rx->l4_len,
		.net = &rx->net,
		.l2_len = soft_port_plain_rx(m) ? rx->l3_off : 0,
	};

	soft_wire_deliver(nif->dev, poller_of(nif), &p);
}

static uint32_t
on_frames(void *arg, struct rte_mbuf **m, uint32_t n)
{
	struct soft_netif *nif = arg;

	return soft_wire_expected(nif->dev, poller_of(nif), m, n);
}

static void
on_host(void *arg, struct rte_mbuf *m)
{
	soft_frames_hold(arg, m);
}

static void
on_lost(void *arg)
{
	struct soft_netif *nif = arg;

	soft_wire_lost(nif->dev, SOFT_LOST_PORT_DOWN);
}

const struct soft_port_ops soft_link_port_rx = {
	.on_frames = on_frames,
	.on_roce = on_roce,
	.on_host = on_host,
	.on_link = on_link,
	.on_lost = on_lost,
};

/* ---- Turns of the engine */

bool
soft_link_port_take(struct soft_engine *e, struct soft_netif *nif)
{
	/*
	 * If another engine holds the lock, request that it releases the lock after its turn.
	 */
	if (__atomic_load_n(&nif->lock_retainer, __ATOMIC_RELAXED) != NULL)
		__atomic_fetch_or(&nif->requests, SOFT_NETIF_SHARED, __ATOMIC_RELAXED);
	if (!soft_netif_trylock(nif))
		return false;
	/* Release: other threads read lock_retainer in soft_netif_trylock(). */
	__atomic_store_n(&nif->lock_retainer, e, __ATOMIC_RELEASE);
	return true;
}

/*
 * The inline functions of soft_link_port.h, for callers that know only struct soft_link_ops. The
 * engine's turn calls the inline functions themselves.
 */
static bool
link_begin(struct soft_engine *e)
{
	return soft_link_port_begin(e, e->dev->netif);
}

static bool
link_receive(struct soft_engine *e)
{
	return soft_link_port_receive(e, e->dev->netif);
}

/*
 * Does nothing while the option rx_full is in effect: received packets stay in the PMD, so that the
 * sender finds no room. Otherwise does the same as link_receive().
 */
static bool
link_receive_unless_full(struct soft_engine *e)
{
	return soft_net_full(e, true) || link_receive(e);
}

static void
link_end(struct soft_engine *e)
{
	if (soft_netif_mine(e))
		soft_link_port_end(e->dev->netif);
}

/* ---- Sent packets */

static enum soft_link_sent
link_sent(struct soft_engine *e, enum soft_port_sent sent)
{
	switch (sent) {
	case SOFT_PORT_SENT:
		return SOFT_LINK_SENT;
	case SOFT_PORT_FULL:
	case SOFT_PORT_PENDING: /* Only QPs with this destination wait for the resolution. */
		return SOFT_LINK_FULL;
	case SOFT_PORT_REFUSED:
		SOFT_LOG(ERR, "%s: dropped a packet that is too long for port=%s", e->dev->name,
			 e->dev->opts.port.name);
		return SOFT_LINK_LOST;
	case SOFT_PORT_NO_SOURCE:
		SOFT_LOG(
			ERR,
			"%s: dropped a packet whose source is not an address of port=%s (any more)",
			e->dev->name, e->dev->opts.port.name);
		return SOFT_LINK_LOST;
	default:
		return SOFT_LINK_LOST;
	}
}

/* Drops and counts a packet whose hop limit is 0, or whose port is down. */
static __rte_noinline enum soft_link_sent
link_dead(struct soft_dev *dev)
{
	if (__atomic_load_n(&dev->port_down, __ATOMIC_RELAXED))
		soft_wire_lost(dev, SOFT_LOST_PORT_DOWN);
	return SOFT_LINK_LOST;
}

/*
 * Sends a packet to an address of the device itself, or to a group. An Ethernet port does not
 * receive its own frames. So members of the group on the device get their copies through memory.
 */
static __rte_noinline enum soft_link_sent
link_send_own(struct soft_engine *e, const struct soft_link_pkt *p, const struct soft_port_tx *tx)
{
	struct soft_packet_msg *m;
	enum soft_link_sent sent;

	if (!bb_roce_is_mcast(tx->net->dst))
		return soft_memory_send(e->dev, p);
	if (!soft_netif_mine(e))
		return SOFT_LINK_FULL;
	sent = link_sent(e, soft_port_send(e->dev->netif->port, tx, soft_engine_ns(e)));
	if (sent != SOFT_LINK_SENT || soft_mcg_find(e->dev, tx->net->dst) == NULL)
		return sent;
	m = soft_packet_build(p);
	if (m == NULL) {
		soft_wire_lost(e->dev, SOFT_LOST_NO_ROOM);
		return sent;
	}
	soft_wire_cast_own(e->dev, m);
	free(m);
	return sent;
}

static enum soft_link_sent
link_send(struct soft_engine *e, const struct soft_link_pkt *p)
{
	struct soft_netif *nif = e->dev->netif;
	uint8_t hdr[BB_ROCE_MAX_HDR];
	const struct soft_port_tx tx = {
		.net = &p->to->net,
		.mac = p->to->mac,
		.path = &p->to->path,
		.hdr = hdr,
		.hdr_len = bb_roce_build(hdr, p->pkt),
		.iov = p->iov,
		.n = p->n,
		.hold = p->stable && nif->refer ? &nif->hold : NULL,
	};

	if (unlikely(soft_netif_is_dead(e->dev, tx.net)))
		return link_dead(e->dev);
	if (unlikely(p->to->own))
		return link_send_own(e, p, &tx);
	if (!soft_netif_mine(e))
		return SOFT_LINK_FULL;
	return link_sent(e, soft_port_send(nif->port, &tx, soft_engine_ns(e)));
}

static enum soft_link_sent
link_send_bytes(struct soft_engine *e, struct soft_packet_msg *m)
{
	struct soft_netif *nif = e->dev->netif;
	enum soft_link_sent sent;

	if (unlikely(soft_netif_is_dead(e->dev, &m->net))) {
		sent = link_dead(e->dev);
	} else {
		if (soft_dev_has_gid(e->dev, m->net.dst))
			return soft_memory_send_bytes(e->dev, m);
		if (!soft_netif_mine(e))
			return SOFT_LINK_FULL;
		sent = link_sent(e, soft_port_send_ip(nif->port, m->data, m->len, &m->net, m->mac,
						      soft_engine_ns(e)));
		if (sent == SOFT_LINK_SENT && bb_roce_is_mcast(m->net.dst))
			soft_wire_cast_own(e->dev, m);
	}
	if (sent != SOFT_LINK_FULL)
		free(m);
	return sent;
}

#define LINK_OPS(receive_)                                                                         \
	{                                                                                          \
		.send = link_send, .plain = soft_port_plain, .send_bytes = link_send_bytes,        \
		.begin = link_begin, .receive = receive_, .end = link_end, .polled = true          \
	}

const struct soft_link_ops soft_link_port = LINK_OPS(link_receive);
const struct soft_link_ops soft_link_port_fills = LINK_OPS(link_receive_unless_full);
