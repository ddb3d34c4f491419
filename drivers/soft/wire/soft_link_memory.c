/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The link of wire=1: serialized packets go through the inbox of the target's engine, which parses
 * them like packets from a network. The inbox of an engine that does not poll holds up to
 * SOFT_WIRE_QUEUE packets. After that, senders find no room and try again later.
 */
#include <stdlib.h>

#include "soft_mcg.h"
#include "soft_wire.h"

/*
 * Returns the device of this process and this link that has the packet's destination address, or
 * NULL.
 */
static struct soft_dev *
memory_dest(const struct soft_dev *dev, const struct bb_roce_net *net, const uint8_t mac[6])
{
	struct soft_dev *dest = soft_dev_peek_gid(net->dst);

	if (dest == NULL || dest->link != dev->link ||
	    memcmp(mac, dest->mac, sizeof(dest->mac)) != 0)
		return NULL;
	if (net->hop_limit == 0 || __atomic_load_n(&dev->port_down, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&dest->port_down, __ATOMIC_RELAXED))
		return NULL;
	return dest;
}

/* Finds the target QP. Returns SOFT_LINK_SENT if its engine has room for a packet. */
static enum soft_link_sent
memory_target(const struct soft_dev *dest, uint32_t dqpn, struct soft_qp **to)
{
	*to = dest != NULL ? soft_qp_dest(dest, dqpn) : NULL;
	if (*to == NULL || (*to)->wire == NULL)
		return SOFT_LINK_LOST;
	if (!soft_packet_room((*to)->engine) || soft_net_full((*to)->engine, true))
		return SOFT_LINK_FULL;
	return SOFT_LINK_SENT;
}

enum soft_link_sent
soft_memory_send(struct soft_dev *dest, const struct soft_link_pkt *p)
{
	struct soft_packet_msg *m;
	enum soft_link_sent sent;
	struct soft_qp *to;

	sent = memory_target(dest, p->pkt->dqpn, &to);
	if (sent != SOFT_LINK_SENT)
		return sent;
	m = soft_packet_build(p);
	if (m == NULL)
		return SOFT_LINK_FULL;
	soft_packet_post(to, m);
	return SOFT_LINK_SENT;
}

enum soft_link_sent
soft_memory_send_bytes(struct soft_dev *dest, struct soft_packet_msg *m)
{
	enum soft_link_sent sent;
	struct soft_qp *to;

	sent = memory_target(dest, m->dqpn, &to);
	if (sent == SOFT_LINK_SENT)
		soft_packet_post(to, m);
	else if (sent == SOFT_LINK_LOST)
		free(m);
	return sent;
}

/*
 * Delivers a serialized packet to its group on all devices of this link, as a switch that floods.
 * Copies that find no room are dropped.
 */
static enum soft_link_sent
memory_cast(const struct soft_dev *dev, const struct soft_packet_msg *m)
{
	struct soft_dev *dest;
	uint8_t mac[6];
	uint32_t i;

	soft_mcast_mac(m->net.dst, mac);
	if (m->net.hop_limit == 0 || memcmp(m->mac, mac, sizeof(mac)) != 0 ||
	    __atomic_load_n(&dev->port_down, __ATOMIC_RELAXED))
		return SOFT_LINK_LOST;
	for (i = 0; i < SOFT_MAX_DEVS; i++) {
		dest = soft_dev_peek(i);
		if (dest != NULL && dest->link == dev->link &&
		    !__atomic_load_n(&dest->port_down, __ATOMIC_RELAXED))
			soft_wire_cast_own(dest, m);
	}
	return SOFT_LINK_SENT;
}

static __rte_noinline enum soft_link_sent
memory_cast_new(const struct soft_dev *dev, const struct soft_link_pkt *p)
{
	struct soft_packet_msg *m = soft_packet_build(p);
	enum soft_link_sent sent;

	if (m == NULL)
		return SOFT_LINK_FULL;
	sent = memory_cast(dev, m);
	free(m);
	return sent;
}

static enum soft_link_sent
memory_send(struct soft_engine *e, const struct soft_link_pkt *p)
{
	struct soft_dev *dest = memory_dest(e->dev, &p->to->net, p->to->mac);

	if (unlikely(dest == NULL) && bb_roce_is_mcast(p->to->net.dst))
		return memory_cast_new(e->dev, p);
	return soft_memory_send(dest, p);
}

static enum soft_link_sent
memory_send_bytes(struct soft_engine *e, struct soft_packet_msg *m)
{
	struct soft_dev *dest = memory_dest(e->dev, &m->net, m->mac);
	enum soft_link_sent sent;

	if (likely(dest != NULL) || !bb_roce_is_mcast(m->net.dst))
		return soft_memory_send_bytes(dest, m);
	sent = memory_cast(e->dev, m);
	free(m);
	return sent;
}

const struct soft_link_ops soft_link_memory = {
	.send = memory_send,
	.send_bytes = memory_send_bytes,
};
