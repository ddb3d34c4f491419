/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_ibcm_ip.h"

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
