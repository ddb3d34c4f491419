/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

#include "soft_mcg.h"
#include "soft_port_stack.h"

void
soft_port_stack_init(struct soft_port_stack *s, const struct soft_port_opts *o,
		     const uint8_t mac[6], uint8_t *(*room)(void *, uint32_t), void *arg)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	memcpy(s->mac, mac, 6);
	soft_port_link_local(mac, s->addr[0].addr);
	s->addr[0].prefix = 64;
	memcpy(&s->addr[1], o->ip, o->n_ip * sizeof(o->ip[0]));
	s->n_addr = 1 + o->n_ip;
	for (i = 0; i < s->n_addr; i++)
		memcpy(s->addr_mac[i], mac, sizeof(s->addr_mac[i]));
	s->vlan = (uint16_t)o->vlan;
	s->room = room;
	s->arg = arg;
	soft_neigh_init(&s->neigh, soft_neigh_question, s);
	/* The call cannot fail, because the table has more entries than the options allow. */
	for (i = 0; i < o->n_neigh; i++)
		(void)soft_neigh_add_static(&s->neigh, o->neigh[i].ip, o->neigh[i].mac);
}

void
soft_port_stack_host(struct soft_port_stack *s)
{
	s->hosted = true;
	soft_port_stack_set(s, NULL, NULL, 0);
}

void
soft_port_stack_set(struct soft_port_stack *s, const uint8_t (*ip)[16], const uint8_t (*mac)[6],
		    uint32_t n)
{
	uint32_t i;

	static_assert(SOFT_PORT_ADDRS > SOFT_PORT_IPS, "no room for the options' addresses");
	memset(s->addr, 0, sizeof(s->addr));
	for (i = 0; i < n; i++) {
		memcpy(s->addr[i].addr, ip[i], sizeof(s->addr[i].addr));
		s->addr[i].prefix = 128;
		memcpy(s->addr_mac[i], mac[i], sizeof(s->addr_mac[i]));
	}
	s->n_addr = n;
	memset(s->guess, 0, sizeof(s->guess));
	s->neigh.gen++;
}

const uint8_t *
soft_port_own_mac(const struct soft_port_stack *s, const uint8_t ip[16])
{
	uint32_t i;

	for (i = 0; i < s->n_addr; i++)
		if (memcmp(s->addr[i].addr, ip, 16) == 0)
			return s->addr_mac[i];
	return NULL;
}

/*
 * Returns true if @ip is the address of the network itself or its broadcast address. No host has
 * either of them (RFC 1122, 3.2.1.3).
 */
static bool
is_net_address(const struct soft_port_ip *net, const uint8_t ip[16])
{
	uint32_t host, mask, bits = 128u - net->prefix;

	if (!soft_ip_is_v4(ip) || bits < 2) /* RFC 3021: a network of two addresses has no network
					     * address and no broadcast address. */
		return false;
	mask = bits >= 32 ? UINT32_MAX : (1u << bits) - 1;
	host = ((uint32_t)ip[12] << 24 | (uint32_t)ip[13] << 16 | (uint32_t)ip[14] << 8 | ip[15]) &
	       mask;
	return host == 0 || host == mask;
}

const uint8_t *
soft_port_on_link(const struct soft_port_stack *s, const uint8_t ip[16])
{
	uint32_t i;

	for (i = 0; i < s->n_addr; i++)
		if (soft_ip_in_prefix(ip, s->addr[i].addr, s->addr[i].prefix) &&
		    !is_net_address(&s->addr[i], ip))
			return s->addr[i].addr;
	return NULL;
}

enum soft_neigh_result
soft_port_resolve(struct soft_port_stack *s, const uint8_t ip[16], uint64_t now, uint16_t *hint,
		  uint8_t mac[6])
{
	/* The MAC of a group is computed, so *hint is not used. */
	if (bb_roce_is_mcast(ip)) {
		soft_mcast_mac(ip, mac);
		return SOFT_NEIGH_FOUND;
	}
	if (!soft_ip_is_host(ip) || soft_port_is_own_addr(s, ip))
		return SOFT_NEIGH_UNREACHABLE;
	if (soft_port_on_link(s, ip) == NULL) {
		const struct soft_neigh_entry *e = soft_neigh_peek(&s->neigh, ip);

		/* The stack has no routes, but a static neighbour may name a router's MAC. */
		if (e == NULL || e->state != SOFT_NEIGH_STATIC)
			return SOFT_NEIGH_UNREACHABLE;
	}
	return soft_neigh_find(&s->neigh, ip, now, hint, mac);
}

uint32_t
soft_port_put_eth(const struct soft_port_stack *s, uint8_t *p, const uint8_t dst[6],
		  const uint8_t src[6], uint16_t type)
{
	uint32_t at = 12;

	memcpy(p, dst, 6);
	memcpy(p + 6, src, 6);
	if (s->vlan != 0) {
		p[at++] = RTE_ETHER_TYPE_VLAN >> 8;
		p[at++] = RTE_ETHER_TYPE_VLAN & 0xff;
		p[at++] = (uint8_t)(s->vlan >> 8);
		p[at++] = (uint8_t)s->vlan;
	}
	p[at++] = (uint8_t)(type >> 8);
	p[at++] = (uint8_t)type;
	return at;
}

uint32_t
soft_port_put_ip(uint8_t *p, const struct bb_roce_net *net, uint8_t proto, uint32_t len)
{
	uint16_t sum;

	if (!soft_ip_is_v4(net->dst)) {
		p[0] = (uint8_t)(0x60 | net->tclass >> 4);
		p[1] = (uint8_t)(net->tclass << 4 | (net->flow_label >> 16 & 0xf));
		p[2] = (uint8_t)(net->flow_label >> 8);
		p[3] = (uint8_t)net->flow_label;
		p[4] = (uint8_t)(len >> 8);
		p[5] = (uint8_t)len;
		p[6] = proto;
		p[7] = net->hop_limit;
		memcpy(p + 8, net->src, 16);
		memcpy(p + 24, net->dst, 16);
		return 40;
	}
	len += 20;
	p[0] = 0x45;
	p[1] = net->tclass;
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
	/* The identification is 0, because the packet is never fragmented (RFC 6864, 4.1). */
	p[4] = 0;
	p[5] = 0;
	p[6] = 0x40; /* flag DF: do not fragment */
	p[7] = 0;
	p[8] = net->hop_limit;
	p[9] = proto;
	p[10] = 0;
	p[11] = 0;
	memcpy(p + 12, net->src + 12, 4);
	memcpy(p + 16, net->dst + 12, 4);
	sum = soft_port_csum(NULL, NULL, 0, 0, p, 20);
	memcpy(p + 10, &sum, 2);
	return 20;
}

/* Checks an ICMP or ICMPv6 message, and passes it to the echo or neighbour discovery code. */
static enum soft_port_drop
input_icmp(struct soft_port_stack *s, const uint8_t *p, const struct soft_port_rx *rx, uint64_t now)
{
	if (rx->l4_len < 8)
		return SOFT_DROP_SHORT;
	if (soft_port_l4_sum(p, rx) != 0)
		return SOFT_DROP_ICMP_CSUM;
	if (!rx->v4 && (p[rx->l4_off] == 135 || p[rx->l4_off] == 136))
		return soft_neigh_nd(s, p, rx, now);
	return soft_port_echo(s, p, rx);
}

enum soft_port_in
soft_port_input(struct soft_port_stack *s, const uint8_t *p, uint32_t len,
		const struct soft_port_hw *hw, struct soft_port_rx *rx, uint64_t now)
{
	enum soft_port_drop why;

	s->stats.frames++;
	if (likely(soft_port_guess(s, p, len, hw, rx))) {
		s->stats.roce++;
		s->stats.ecn_ce += (rx->net.tclass & 3) == 3;
		return SOFT_PORT_IN_ROCE;
	}
	why = soft_port_parse(s, p, len, hw, rx);
	if (why == SOFT_DROP_NONE && rx->proto == IPPROTO_UDP) {
		soft_port_learn(s, p, len, hw, rx);
		s->stats.roce++;
		s->stats.ecn_ce += (rx->net.tclass & 3) == 3;
		return SOFT_PORT_IN_ROCE;
	}
	if (s->hosted) {
		s->stats.hosted++;
		return SOFT_PORT_IN_HOST;
	}
	if (why == SOFT_DROP_NONE && rx->l3_len == 0)
		why = soft_neigh_arp(s, p + rx->l3_off, RTE_MIN(len, UINT16_MAX) - rx->l3_off, rx,
				     now);
	else if (why == SOFT_DROP_NONE)
		why = input_icmp(s, p, rx, now);
	if (why == SOFT_DROP_NONE)
		return SOFT_PORT_IN_DONE;
	s->stats.drop[why]++;
	return SOFT_PORT_IN_DROPPED;
}
