/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* An ethdev on rings into which a test puts frames. */
#ifndef RING_PORT_H
#define RING_PORT_H

#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

struct ring_port {
	char name[RTE_ETH_NAME_MAX_LEN]; /* for the option port= */
	uint16_t id;
	struct rte_ring *in, *out;
	struct rte_mempool *pool;
};

/* Returns whether the port was made. */
static inline bool
ring_port_open(struct ring_port *p)
{
	int port;

	p->in = rte_ring_create("ring_port_in", 64, SOCKET_ID_ANY, 0);
	p->out = rte_ring_create("ring_port_out", 64, SOCKET_ID_ANY, 0);
	p->pool = rte_pktmbuf_pool_create("ring_port", 63, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					  SOCKET_ID_ANY);
	if (p->in == NULL || p->out == NULL || p->pool == NULL)
		return false;
	port = rte_eth_from_rings("ring_port", &p->in, 1, &p->out, 1, 0);
	p->id = (uint16_t)port;
	return port >= 0 && rte_eth_dev_get_name_by_port(p->id, p->name) == 0;
}

/*
 * Feeds a RoCE datagram from 192.0.2.9 to 192.0.2.1 for the missing QP 0, or a fragment. The MAC
 * is the one that soft_port_eth.c gives to a port without one.
 */
static inline bool
ring_port_give(struct ring_port *p, bool fragment)
{
	const uint16_t len = 64, ip_len = len - sizeof(struct rte_ether_hdr);
	const struct rte_ether_hdr eth = {
		.dst_addr.addr_bytes = {0x02, 0xbb, 0x00, 0x01, 0x00, (uint8_t)p->id},
		.src_addr.addr_bytes = {0x02, 0x00, 0x00, 0x00, 0x00, 0x09},
		.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4),
	};
	struct rte_ipv4_hdr ip = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16(ip_len),
		.fragment_offset = fragment ? RTE_BE16(RTE_IPV4_HDR_MF_FLAG) : 0,
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = RTE_BE32(UINT32_C(0xc0000209)),
		.dst_addr = RTE_BE32(UINT32_C(0xc0000201)),
	};
	const struct rte_udp_hdr udp = {
		.dst_port = RTE_BE16(4791),
		.dgram_len = rte_cpu_to_be_16(ip_len - sizeof(ip)),
	};
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->pool);
	uint8_t *frame;

	if (m == NULL)
		return false;
	frame = (uint8_t *)rte_pktmbuf_append(m, len);
	memset(frame, 0, len);
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(frame, &eth, sizeof(eth));
	memcpy(frame + sizeof(eth), &ip, sizeof(ip));
	memcpy(frame + sizeof(eth) + sizeof(ip), &udp, sizeof(udp));
	return rte_ring_enqueue(p->in, m) == 0;
}

#endif
