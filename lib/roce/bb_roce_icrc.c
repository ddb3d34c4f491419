/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The CRC is Ethernet's (vol. 1, 7.8.1), least significant bit first: what gzip has. */
#include <string.h>

#include <isa-l/crc.h>

#include "bb_roce_pkt.h"

/* Of eight bytes of ones, in place of the local route header that RoCEv2 does not have. */
#define LRH_CRC 0x2144df1cu
#define IP_MAX  60u /* of version 4 with all options */
#define UDP_LEN 8u

/* Fields that routers or congested switches change. */
static void
mask_ip(uint8_t *ip)
{
	if (ip[0] >> 4 == 6) {
		ip[0] |= 0x0f; /* traffic class, flow label */
		memset(ip + 1, 0xff, 3);
		ip[7] = 0xff; /* hop limit */
	} else {
		ip[1] = 0xff;  /* type of service */
		ip[8] = 0xff;  /* time to live */
		ip[10] = 0xff; /* checksum */
		ip[11] = 0xff;
	}
}

/* Up to BB_ROCE_MAX_HDR bytes, of which few are left to a call or a loop. */
static inline void
copy_headers(uint8_t *to, const uint8_t *from, size_t n)
{
	if (n < 16) {
		memcpy(to, from, n);
		return;
	}
	memcpy(to, from, 16);
	if (n > 32)
		memcpy(to + 16, from + 16, 16);
	memcpy(to + n - 16, from + n - 16, 16);
}

uint32_t
bb_roce_icrc_begin(const uint8_t *ip, size_t ip_len, const uint8_t *udp, const uint8_t *bth,
		   size_t hdr_len)
{
	uint8_t head[IP_MAX + UDP_LEN + BB_ROCE_MAX_HDR], *p = head;
	size_t n = hdr_len < BB_ROCE_MAX_HDR ? hdr_len : BB_ROCE_MAX_HDR;
	uint32_t crc;

	/* Nearly always one of two lengths, each then a few moves instead of a call. */
	if (ip_len == 20)
		memcpy(p, ip, 20);
	else if (ip_len == 40)
		memcpy(p, ip, 40);
	else
		memcpy(p, ip, ip_len);
	mask_ip(p);
	p += ip_len;
	memcpy(p, udp, UDP_LEN);
	p[6] = 0xff; /* checksum */
	p[7] = 0xff;
	p += UDP_LEN;
	copy_headers(p, bth, n);
	p[4] = 0xff; /* FECN, BECN and what is reserved beside them */
	crc = crc32_gzip_refl(LRH_CRC, head, (uint64_t)(p + n - head));
	return bb_roce_icrc_more(crc, bth + n, hdr_len - n);
}

uint32_t
bb_roce_icrc_more(uint32_t crc, const void *p, size_t len)
{
	return len == 0 ? crc : crc32_gzip_refl(crc, p, len);
}

void
bb_roce_icrc_end(uint32_t crc, uint8_t out[BB_ROCE_ICRC_LEN])
{
	out[0] = (uint8_t)crc;
	out[1] = (uint8_t)(crc >> 8);
	out[2] = (uint8_t)(crc >> 16);
	out[3] = (uint8_t)(crc >> 24);
}
