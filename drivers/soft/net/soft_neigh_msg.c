/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Messages of the neighbour table: ARP (RFC 826), ICMPv6 types 135 and 136 (RFC 4861). */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

#include "soft_port_stack.h"

#define ARP_LEN     28
#define ARP_REQUEST 1
#define ARP_REPLY   2

#define ND_LEN        24 /* Bytes of a solicitation or advertisement without options. */
#define ND_SOLICIT    135
#define ND_ADVERTISE  136
#define ND_SOLICITED  0x40
#define ND_OVERRIDE   0x20
#define ND_OPT_SOURCE 1 /* Option with the sender's MAC. */
#define ND_OPT_TARGET 2 /* Option with the target's MAC. */
#define ND_OPT_LEN    8
#define ND_HOP_LIMIT  255 /* Hop limit of a message that has crossed no router. */

static bool
mac_of_host(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return (mac[0] & 1) == 0 && memcmp(mac, zero, 6) != 0;
}

/* ---- ARP */

static bool
arp_send(struct soft_port_stack *s, const uint8_t eth_dst[6], uint8_t op, const uint8_t src_ip[4],
	 const uint8_t dst_mac[6], const uint8_t dst_ip[4])
{
	/* hardware type Ethernet, protocol IPv4 */
	static const uint8_t head[7] = {0, 1, 8, 0, 6, 4, 0};
	uint8_t *p = s->room(s->arg, soft_port_eth_len(s) + ARP_LEN);

	if (p == NULL)
		return false;
	p += soft_port_put_eth(s, p, eth_dst, s->mac, RTE_ETHER_TYPE_ARP);
	memcpy(p, head, 7);
	p[7] = op;
	memcpy(p + 8, s->mac, 6);
	memcpy(p + 14, src_ip, 4);
	memcpy(p + 18, dst_mac, 6);
	memcpy(p + 24, dst_ip, 4);
	return true;
}

enum soft_port_drop
soft_neigh_arp(struct soft_port_stack *s, const uint8_t *arp, uint32_t len,
	       const struct soft_port_rx *rx, uint64_t now)
{
	static const uint8_t head[7] = {0, 1, 8, 0, 6, 4, 0}, zero[4];
	uint8_t sender[16], target[16];
	const uint8_t *mac = arp + 8;
	bool is_own, probe;

	if (len < ARP_LEN)
		return SOFT_DROP_SHORT;
	if (memcmp(arp, head, 7) != 0 || (arp[7] != ARP_REQUEST && arp[7] != ARP_REPLY) ||
	    !mac_of_host(mac))
		return SOFT_DROP_ARP;
	soft_ip_map_v4(sender, arp + 14);
	soft_ip_map_v4(target, arp + 24);
	/* an ARP probe (RFC 5227), which asks whether another host has the address */
	probe = memcmp(arp + 14, zero, 4) == 0;
	is_own = soft_port_is_own_addr(s, target);
	if (soft_port_is_own_addr(s, sender))
		return SOFT_DROP_ADDR_IN_USE;
	if (!probe) {
		if (!soft_ip_is_host(sender) || soft_port_on_link(s, sender) == NULL)
			return SOFT_DROP_ARP;
		/*
		 * If the ARP message is for another host, it shows the sender's MAC but does not
		 * confirm that the sender can be reached.
		 */
		soft_neigh_heard(&s->neigh, sender, mac,
				 !is_own                 ? SOFT_NEIGH_MENTIONED
				 : arp[7] == ARP_REQUEST ? SOFT_NEIGH_ASKED_US
							 : SOFT_NEIGH_REPLIED,
				 now);
	}
	if (arp[7] == ARP_REPLY)
		return SOFT_DROP_NONE;
	if (!is_own)
		return SOFT_DROP_ARP_TARGET;
	if (!arp_send(s, rx->src_mac, ARP_REPLY, arp + 24, mac, arp + 14))
		return SOFT_DROP_NO_BUFFER;
	s->stats.arp_answered++;
	return SOFT_DROP_NONE;
}

/* ---- Neighbour discovery */

/* Returns ff02::1:ffXX:XXXX, the solicited-node group of an address (RFC 4291, 2.7.1). */
static void
solicited_node(const uint8_t ip[16], uint8_t group[16])
{
	const uint8_t raw[16] = {0xff, 2, 0, 0, 0,    0,      0,      0,
				 0,    0, 0, 1, 0xff, ip[13], ip[14], ip[15]};

	memcpy(group, raw, 16);
}

/*
 * Sends a neighbour solicitation or advertisement, as @type says, for the address @target. If
 * @eth_dst is NULL, the frame goes to the MAC of the group @dst (RFC 2464, 7). Returns false if no
 * mbuf is free.
 */
static bool
nd_send(struct soft_port_stack *s, const uint8_t *eth_dst, const uint8_t src[16],
	const uint8_t dst[16], uint8_t type, uint8_t flags, const uint8_t target[16])
{
	const uint8_t group_mac[6] = {0x33, 0x33, dst[12], dst[13], dst[14], dst[15]};
	uint32_t at = soft_port_eth_len(s), len = ND_LEN + ND_OPT_LEN;
	struct bb_roce_net net = {.hop_limit = ND_HOP_LIMIT};
	uint8_t *p = s->room(s->arg, at + 40 + len), *nd;
	uint16_t sum;

	if (p == NULL)
		return false;
	memcpy(net.src, src, 16);
	memcpy(net.dst, dst, 16);
	soft_port_put_eth(s, p, eth_dst == NULL ? group_mac : eth_dst, s->mac, RTE_ETHER_TYPE_IPV6);
	at += soft_port_put_ip(p + at, &net, IPPROTO_ICMPV6, len);
	nd = p + at;
	memset(nd, 0, 8);
	nd[0] = type;
	nd[4] = flags;
	memcpy(nd + 8, target, 16);
	nd[24] = type == ND_SOLICIT ? ND_OPT_SOURCE : ND_OPT_TARGET;
	nd[25] = 1; /* Length of the option, in units of 8 bytes. */
	memcpy(nd + 26, s->mac, 6);
	sum = soft_port_csum(src, dst, 16, IPPROTO_ICMPV6, nd, len);
	memcpy(nd + 2, &sum, 2);
	return true;
}

/*
 * Finds the MAC in the option @kind; *mac is NULL if there is no such option. Returns false if the
 * options are malformed.
 */
static bool
nd_options(const uint8_t *p, uint32_t len, uint8_t kind, const uint8_t **mac)
{
	*mac = NULL;
	while (len != 0) {
		uint32_t size;

		if (len < 2)
			return false;
		size = p[1] * 8u;
		if (size == 0 || size > len)
			return false;
		if (p[0] == kind && size == ND_OPT_LEN && *mac == NULL)
			*mac = p + 2;
		p += size;
		len -= size;
	}
	return *mac == NULL || mac_of_host(*mac);
}

static enum soft_port_drop
nd_solicited(struct soft_port_stack *s, const uint8_t *nd, const struct soft_port_rx *rx,
	     uint64_t now)
{
	static const uint8_t unspecified[16], all_nodes[16] = {0xff, 2, [15] = 1};
	bool dad = memcmp(rx->net.src, unspecified, 16) == 0;
	const uint8_t *target = nd + 8, *mac;
	uint8_t group[16];

	/* Validates the solicitation by RFC 4861, 7.1.1. */
	if (!nd_options(nd + ND_LEN, rx->l4_len - ND_LEN, ND_OPT_SOURCE, &mac))
		return SOFT_DROP_ND;
	solicited_node(target, group);
	if (dad && (mac != NULL || memcmp(rx->net.dst, group, 16) != 0))
		return SOFT_DROP_ND;
	if (soft_ip_is_v4(target) || !soft_port_is_own_addr(s, target))
		return SOFT_DROP_ND_TARGET;
	if (!dad && soft_port_on_link(s, rx->net.src) == NULL)
		return SOFT_DROP_ND;
	if (!dad && mac != NULL)
		soft_neigh_heard(&s->neigh, rx->net.src, mac, SOFT_NEIGH_ASKED_US, now);
	if (!nd_send(s,
		     dad           ? NULL
		     : mac != NULL ? mac
				   : rx->src_mac,
		     target, dad ? all_nodes : rx->net.src, ND_ADVERTISE,
		     dad ? ND_OVERRIDE : ND_SOLICITED | ND_OVERRIDE, target))
		return SOFT_DROP_NO_BUFFER;
	s->stats.nd_answered++;
	return SOFT_DROP_NONE;
}

static enum soft_port_drop
nd_advertised(struct soft_port_stack *s, const uint8_t *nd, const struct soft_port_rx *rx,
	      uint64_t now)
{
	const uint8_t *target = nd + 8, *mac;

	/* RFC 4861, 7.1.2: an advertisement to a group cannot be a reply to a solicitation. */
	if (!nd_options(nd + ND_LEN, rx->l4_len - ND_LEN, ND_OPT_TARGET, &mac) ||
	    !soft_ip_is_host(target) || soft_ip_is_v4(target) || !soft_ip_is_host(rx->net.src) ||
	    (rx->net.dst[0] == 0xff && (nd[4] & ND_SOLICITED) != 0))
		return SOFT_DROP_ND;
	if (soft_port_is_own_addr(s, target))
		return SOFT_DROP_ADDR_IN_USE;
	/* A neighbour that replies to a unicast solicitation may omit its MAC (RFC 4861, 4.4). */
	if (mac == NULL)
		mac = rx->src_mac;
	soft_neigh_heard(&s->neigh, target, mac,
			 (nd[4] & ND_OVERRIDE) == 0    ? SOFT_NEIGH_WEAKLY
			 : (nd[4] & ND_SOLICITED) != 0 ? SOFT_NEIGH_REPLIED
						       : SOFT_NEIGH_MENTIONED,
			 now);
	return SOFT_DROP_NONE;
}

enum soft_port_drop
soft_neigh_nd(struct soft_port_stack *s, const uint8_t *p, const struct soft_port_rx *rx,
	      uint64_t now)
{
	const uint8_t *nd = p + rx->l4_off;

	if (rx->net.hop_limit != ND_HOP_LIMIT || nd[1] != 0 || rx->l4_len < ND_LEN)
		return SOFT_DROP_ND;
	return nd[0] == ND_SOLICIT ? nd_solicited(s, nd, rx, now) : nd_advertised(s, nd, rx, now);
}

/* ---- Requests for MACs */

bool
soft_neigh_question(void *stack, const uint8_t ip[16], const uint8_t *mac)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, zero[6];
	struct soft_port_stack *s = stack;
	const uint8_t *src = soft_port_on_link(s, ip);
	uint8_t group[16];
	bool sent;

	if (src == NULL)
		return true;
	if (soft_ip_is_v4(ip)) {
		sent = arp_send(s, mac == NULL ? all : mac, ARP_REQUEST, src + 12, zero, ip + 12);
	} else {
		solicited_node(ip, group);
		sent = nd_send(s, mac, src, mac == NULL ? group : ip, ND_SOLICIT, 0, ip);
	}
	s->stats.questions += sent;
	return sent;
}
