/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The RDMA IP CM service (IBTA vol. 1, annex A11): service IDs that stand for a port of an IP
 * protocol, and the header with the IP addresses at the start of the private data of a REQ or
 * SIDR_REQ. librdmacm and Linux's rdma_cm use it.
 */
#ifndef BB_IBCM_IP_H
#define BB_IBCM_IP_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the IP CM header (Linux: struct cma_hdr of cma_priv.h, cma.c). */
#define BB_IBCM_IP_LEN 36u

/* Port spaces (Linux: enum rdma_ucm_port_space, uapi/rdma/rdma_user_cm.h). */
enum bb_ibcm_port_space {
	BB_IBCM_PS_TCP = 0x0106, /* RC */
	BB_IBCM_PS_UDP = 0x0111, /* UD, by SIDR */
	BB_IBCM_PS_IB = 0x013f,
};

/* Mask of the service IDs of one port space (Linux: RDMA_IB_IP_PS_MASK, rdma/rdma_cm.h). */
#define BB_IBCM_PS_MASK 0xffffffffffff0000u

/* Returns the service ID of @port in a port space (Linux: rdma_get_service_id()). */
static inline uint64_t
bb_ibcm_service_id(enum bb_ibcm_port_space ps, uint16_t port)
{
	return (uint64_t)ps << 16 | port;
}

/* Addresses of an IP CM header. */
struct bb_ibcm_ip {
	uint8_t version; /* 4 or 6 */
	uint16_t sport;  /* source port in host order; the destination port is in the service ID */
	/* Addresses as GIDs: an IPv4 address is ::ffff:a.b.c.d. */
	uint8_t src[16], dst[16];
};

/*
 * Reads the header from @priv of @len bytes. Returns false, and leaves *ip alone, if there is no
 * valid header: too short, another version, or an IP version other than 4 and 6.
 */
bool bb_ibcm_ip_parse(struct bb_ibcm_ip *ip, const uint8_t *priv, uint32_t len);
/* Writes an IP CM header of BB_IBCM_IP_LEN bytes to @priv. */
void bb_ibcm_ip_build(uint8_t *priv, const struct bb_ibcm_ip *ip);

#endif
