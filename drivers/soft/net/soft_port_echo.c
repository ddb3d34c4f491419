/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Replies to ping: RFC 792 and RFC 4443, 4.2. */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

#include "soft_port_stack.h"

enum soft_port_drop
soft_port_echo(struct soft_port_stack *s, const uint8_t *p, const struct soft_port_rx *rx)
{
	const uint8_t ask = rx->v4 ? 8 : 128, answer = rx->v4 ? 0 : 129;
	const uint8_t *icmp = p + rx->l4_off;
	struct bb_roce_net net = {.hop_limit = 64, .tclass = rx->net.tclass};
	uint32_t at = soft_port_eth_len(s), addr_len = rx->v4 ? 0 : 16;
	uint8_t *out;
	uint16_t sum;

	if (icmp[0] != ask || icmp[1] != 0)
		return SOFT_DROP_ICMP_TYPE;
	/* Replies only to unicast sources: not to ::, and not to a group. */
	if (!soft_ip_is_host(rx->net.src))
		return SOFT_DROP_SRC_IP;
	if (!soft_port_is_own_addr(s, rx->net.dst))
		return SOFT_DROP_DST_IP;
	out = s->room(s->arg, at + (rx->v4 ? 20u : 40u) + rx->l4_len);
	if (out == NULL)
		return SOFT_DROP_NO_BUFFER;
	memcpy(net.src, rx->net.dst, 16);
	memcpy(net.dst, rx->net.src, 16);
	/* The reply goes to the MAC of the sender, so that it needs no resolution. */
	soft_port_put_eth(s, out, rx->src_mac, s->mac,
			  rx->v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	at += soft_port_put_ip(out + at, &net, rx->proto, rx->l4_len);
	memcpy(out + at, icmp, rx->l4_len);
	out[at] = answer;
	out[at + 2] = 0;
	out[at + 3] = 0;
	sum = soft_port_csum(net.src, net.dst, addr_len, rx->proto, out + at, rx->l4_len);
	memcpy(out + at + 2, &sum, 2);
	s->stats.echo_answered++;
	return SOFT_DROP_NONE;
}
