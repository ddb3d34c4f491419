/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_ibcm.h"

/*
 * Positions: struct cma_hdr of Linux drivers/infiniband/core/cma.c. An IPv4 address is in the last
 * four of 16 bytes; the others are reserved.
 */
#define IP_CM_VERSION 0 /* CMA_VERSION: 0 */
#define IP_VERSION    1 /* byte that has the IP version in the upper four bits */
#define IP_PORT       2
#define IP_SRC        4
#define IP_DST        20

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static void
get_addr(uint8_t to[16], const uint8_t *from, uint8_t version)
{
	memcpy(to, from, 16);
	if (version == 4)
		memcpy(to, mapped, sizeof(mapped));
}

static void
put_addr(uint8_t *to, const uint8_t from[16], uint8_t version)
{
	memcpy(to, from, 16);
	if (version == 4)
		memset(to, 0, sizeof(mapped));
}

/*
 * Offsets of the headers in front of a received datagram. The IPv6 header has the layout of a GRH
 * (Linux: struct ib_grh and union rdma_network_hdr of rdma/ib_verbs.h).
 */
#define V6_SRC 8
#define V6_DST 24
#define V4     20
#define V4_TOS (V4 + 1)
#define V4_TTL (V4 + 8)
#define V4_SRC (V4 + 12)
#define V4_DST (V4 + 16)

static void
get_ipv4(uint8_t to[16], const uint8_t *from)
{
	memcpy(to, mapped, sizeof(mapped));
	memcpy(to + sizeof(mapped), from, 4);
}

bool
bb_ibcm_net_parse(struct bb_ibcm_net *net, const uint8_t head[BB_IBCM_GRH])
{
	if (head[0] >> 4 == 6) {
		memset(net, 0, sizeof(*net));
		net->tclass = (uint8_t)(head[0] << 4 | head[1] >> 4);
		net->flow_label = (head[1] & 0xfu) << 16 | (uint32_t)head[2] << 8 | head[3];
		net->hop_limit = head[7];
		memcpy(net->src, head + V6_SRC, 16);
		memcpy(net->dst, head + V6_DST, 16);
		return true;
	}
	/*
	 * Accept only an IPv4 header without options: one with options does not fit into 20 bytes.
	 */
	if (head[V4] != 0x45)
		return false;
	memset(net, 0, sizeof(*net));
	net->tclass = head[V4_TOS];
	net->hop_limit = head[V4_TTL];
	get_ipv4(net->src, head + V4_SRC);
	get_ipv4(net->dst, head + V4_DST);
	return true;
}

bool
bb_ibcm_ip_parse(struct bb_ibcm_ip *ip, const uint8_t *priv, uint32_t len)
{
	uint8_t version;

	if (len < BB_IBCM_IP_LEN || priv[IP_CM_VERSION] != 0)
		return false;
	version = priv[IP_VERSION] >> 4;
	if (version != 4 && version != 6)
		return false;
	ip->version = version;
	ip->sport = (uint16_t)(priv[IP_PORT] << 8 | priv[IP_PORT + 1]);
	get_addr(ip->src, priv + IP_SRC, version);
	get_addr(ip->dst, priv + IP_DST, version);
	return true;
}

void
bb_ibcm_ip_build(uint8_t *priv, const struct bb_ibcm_ip *ip)
{
	priv[IP_CM_VERSION] = 0;
	priv[IP_VERSION] = (uint8_t)(ip->version << 4);
	priv[IP_PORT] = (uint8_t)(ip->sport >> 8);
	priv[IP_PORT + 1] = (uint8_t)ip->sport;
	put_addr(priv + IP_SRC, ip->src, ip->version);
	put_addr(priv + IP_DST, ip->dst, ip->version);
}
