/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_bytes.h"
#include "roce_frame.h"

#define IP4_LEN 20u
#define IP6_LEN 40u
#define UDP_LEN 8u

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* Returns the ones' complement sum of RFC 791. */
static uint16_t
ip_checksum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += bb_get16(p + i);
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Builds the IP header before @len bytes. */
static size_t
build_ip(uint8_t *out, const struct bb_roce_net *net, size_t len)
{
	if (memcmp(net->src, mapped, 12) == 0 && memcmp(net->dst, mapped, 12) == 0) {
		memset(out, 0, IP4_LEN);
		out[0] = 0x45;
		out[1] = net->tclass;
		bb_put16(out + 2, IP4_LEN + len);
		out[6] = 0x40; /* don't fragment */
		out[8] = net->hop_limit;
		out[9] = 17;
		memcpy(out + 12, net->src + 12, 4);
		memcpy(out + 16, net->dst + 12, 4);
		bb_put16(out + 10, ip_checksum(out, IP4_LEN));
		return IP4_LEN;
	}
	out[0] = (uint8_t)(0x60 | net->tclass >> 4);
	out[1] = (uint8_t)(net->tclass << 4 | (net->flow_label >> 16 & 15));
	bb_put16(out + 2, net->flow_label & 0xffff);
	bb_put16(out + 4, len);
	out[6] = 17;
	out[7] = net->hop_limit;
	memcpy(out + 8, net->src, 16);
	memcpy(out + 24, net->dst, 16);
	return IP6_LEN;
}

size_t
roce_frame_build(uint8_t *out, const struct bb_roce_net *net, const struct bb_roce_pkt *pkt,
		 const struct bb_roce_iov *iov, uint32_t n)
{
	uint8_t hdr[BB_ROCE_MAX_HDR], *p = out, *udp, *bth;
	uint32_t hdr_len = bb_roce_build(hdr, pkt), i;
	size_t len = UDP_LEN + hdr_len + pkt->len + bb_roce_pad(pkt->len) + BB_ROCE_ICRC_LEN;
	uint32_t crc;

	p += build_ip(p, net, len);
	udp = p;
	bb_put16(udp, net->sport);
	bb_put16(udp + 2, BB_ROCE_UDP_PORT);
	bb_put16(udp + 4, len);
	bb_put16(udp + 6, 0);
	p += UDP_LEN;
	bth = p;
	memcpy(p, hdr, hdr_len);
	p += hdr_len;
	crc = bb_roce_icrc_begin(out, (size_t)(udp - out), udp, bth, hdr_len);
	for (i = 0; i < n; i++) {
		memcpy(p, iov[i].p, iov[i].len);
		crc = bb_roce_icrc_more(crc, p, iov[i].len);
		p += iov[i].len;
	}
	memset(p, 0, bb_roce_pad(pkt->len));
	crc = bb_roce_icrc_more(crc, p, bb_roce_pad(pkt->len));
	p += bb_roce_pad(pkt->len);
	bb_roce_icrc_end(crc, p);
	return (size_t)(p - out) + BB_ROCE_ICRC_LEN;
}

static bool
split_ip4(struct roce_frame *f, const uint8_t *p, size_t len)
{
	if (len < IP4_LEN)
		return false;
	f->ip_len = (p[0] & 15u) * 4u;
	if (f->ip_len < IP4_LEN || f->ip_len > len || bb_get16(p + 2) != len || p[9] != 17 ||
	    (bb_get16(p + 6) & 0x3fff) != 0 || ip_checksum(p, f->ip_len) != 0)
		return false;
	f->net.tclass = p[1];
	f->net.hop_limit = p[8];
	memcpy(f->net.src, mapped, 12);
	memcpy(f->net.src + 12, p + 12, 4);
	memcpy(f->net.dst, mapped, 12);
	memcpy(f->net.dst + 12, p + 16, 4);
	return true;
}

static bool
split_ip6(struct roce_frame *f, const uint8_t *p, size_t len)
{
	if (len < IP6_LEN || bb_get16(p + 4) != len - IP6_LEN || p[6] != 17)
		return false;
	f->ip_len = IP6_LEN;
	f->net.tclass = (uint8_t)(p[0] << 4 | p[1] >> 4);
	f->net.flow_label = (p[1] & 15u) << 16 | bb_get16(p + 2);
	f->net.hop_limit = p[7];
	memcpy(f->net.src, p + 8, 16);
	memcpy(f->net.dst, p + 24, 16);
	return true;
}

bool
roce_frame_split(struct roce_frame *f, const uint8_t *p, size_t len)
{
	memset(f, 0, sizeof(*f));
	if (len == 0 || !(p[0] >> 4 == 4   ? split_ip4(f, p, len)
			  : p[0] >> 4 == 6 ? split_ip6(f, p, len)
					   : false))
		return false;
	f->udp = p + f->ip_len;
	if (len - f->ip_len < UDP_LEN + BB_ROCE_ICRC_LEN + BB_ROCE_BTH_LEN ||
	    bb_get16(f->udp + 2) != BB_ROCE_UDP_PORT || bb_get16(f->udp + 4) != len - f->ip_len)
		return false;
	f->net.sport = bb_get16(f->udp);
	f->bth = f->udp + UDP_LEN;
	f->bth_len = len - f->ip_len - UDP_LEN - BB_ROCE_ICRC_LEN;
	f->icrc = f->bth + f->bth_len;
	return true;
}

bool
roce_frame_icrc_ok(const struct roce_frame *f, const uint8_t *p)
{
	uint8_t want[BB_ROCE_ICRC_LEN];

	bb_roce_icrc_end(bb_roce_icrc_begin(p, f->ip_len, f->udp, f->bth, f->bth_len), want);
	return memcmp(want, f->icrc, sizeof(want)) == 0;
}
