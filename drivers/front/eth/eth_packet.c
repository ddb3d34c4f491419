/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_bytes.h"
#include "eth_packet.h"

#define IPV4_HEADER   20u
#define IPV6_HEADER   40u
#define TCP_HEADER    20u
#define UDP_HEADER    8u
#define VLAN_TAG      4u
#define IPV4_FRAGMENT 0x3fffu /* more fragments, or an offset */
#define TCP_FIN_PSH   0x09u
#define TCP_CWR       0x80u

static uint32_t
parse_link(const uint8_t *frame, uint32_t len, struct eth_headers *h)
{
	uint32_t at = ETH_HEADER;

	h->type = bb_get16(frame + 12);
	h->svlan = h->type == ETH_TYPE_SVLAN;
	h->cvlan = h->type == ETH_TYPE_CVLAN;
	if ((!h->svlan && !h->cvlan) || len < at + VLAN_TAG)
		return at;
	h->vlan = bb_get16(frame + at);
	h->type = bb_get16(frame + at + 2);
	return at + VLAN_TAG;
}

static void
parse_ipv4(const uint8_t *frame, uint32_t len, uint32_t at, struct eth_headers *h)
{
	const uint8_t *ip = frame + at;
	uint32_t header, total;

	if (len - at < IPV4_HEADER || ip[0] >> 4 != 4)
		return;
	header = (ip[0] & 0xfu) * 4;
	total = bb_get16(ip + 2);
	if (header < IPV4_HEADER || total < header || total > len - at)
		return;
	h->l3 = at;
	h->l3_end = at + total;
	h->ip_version = 4;
	h->protocol = ip[9];
	h->fragment = (bb_get16(ip + 6) & IPV4_FRAGMENT) != 0;
	if (!h->fragment)
		h->l4 = at + header;
}

/* Extension headers hide the transport header, as on a device without a deep parser. */
static void
parse_ipv6(const uint8_t *frame, uint32_t len, uint32_t at, struct eth_headers *h)
{
	const uint8_t *ip = frame + at;
	uint32_t payload;

	if (len - at < IPV6_HEADER || ip[0] >> 4 != 6)
		return;
	payload = bb_get16(ip + 4);
	if (payload > len - at - IPV6_HEADER)
		return;
	h->l3 = at;
	h->l3_end = at + IPV6_HEADER + payload;
	h->ip_version = 6;
	h->protocol = ip[6];
	h->l4 = at + IPV6_HEADER;
}

void
eth_parse(const uint8_t *frame, uint32_t len, struct eth_headers *h)
{
	uint32_t at, room, need;

	memset(h, 0, sizeof(*h));
	if (len < ETH_HEADER)
		return;
	at = parse_link(frame, len, h);
	if (h->type == ETH_TYPE_IPV4)
		parse_ipv4(frame, len, at, h);
	else if (h->type == ETH_TYPE_IPV6)
		parse_ipv6(frame, len, at, h);
	if (h->l4 == 0)
		return;
	room = h->l3_end - h->l4;
	need = h->protocol == ETH_PROTO_TCP   ? TCP_HEADER
	       : h->protocol == ETH_PROTO_UDP ? UDP_HEADER
					      : UINT32_MAX;
	if (room >= need && h->protocol == ETH_PROTO_TCP)
		need = (uint32_t)(frame[h->l4 + 12] >> 4) * 4;
	if (room < need || need < UDP_HEADER)
		h->l4 = 0;
	else
		h->payload = h->l4 + need;
}

static uint32_t
fold(uint64_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

uint16_t
eth_sum(const uint8_t *p, uint32_t len)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += bb_get16(p + i);
	if (i < len)
		sum += (uint32_t)p[i] << 8;
	return (uint16_t)fold(sum);
}

void
eth_fill_l3_checksum(uint8_t *frame, const struct eth_headers *h)
{
	uint8_t *ip = frame + h->l3;

	if (h->l3 == 0 || h->ip_version != 4)
		return;
	bb_put16(ip + 10, 0);
	bb_put16(ip + 10, (uint16_t)~eth_sum(ip, (ip[0] & 0xfu) * 4));
}

void
eth_fill_l4_checksum(uint8_t *frame, const struct eth_headers *h)
{
	uint32_t field, len, sum;
	const uint8_t *ip = frame + h->l3;

	if (h->l4 == 0)
		return;
	field = h->l4 + (h->protocol == ETH_PROTO_TCP ? 16 : 6);
	len = h->l3_end - h->l4;
	bb_put16(frame + field, 0);
	/* The pseudo-header: addresses, protocol and length. */
	sum = h->ip_version == 4 ? eth_sum(ip + 12, 8) : eth_sum(ip + 8, 32);
	sum = fold((uint64_t)sum + h->protocol + len + eth_sum(frame + h->l4, len));
	sum = ~sum & 0xffff;
	/* A checksum of 0 in a UDP header means "no checksum", so send 0xffff instead (RFC 768). */
	bb_put16(frame + field, sum == 0 && h->protocol == ETH_PROTO_UDP ? 0xffff : sum);
}

/* Sets the fields of a segment that differ from the message's headers. */
static void
fit_headers(uint8_t *frame, struct eth_headers *h, uint32_t len, uint32_t index, uint32_t offset,
	    bool last)
{
	uint8_t *ip = frame + h->l3, *l4 = frame + h->l4;

	h->l3_end = len;
	if (h->ip_version == 4) {
		bb_put16(ip + 2, len - h->l3);
		bb_put16(ip + 4, bb_get16(ip + 4) + index);
		eth_fill_l3_checksum(frame, h);
	} else {
		bb_put16(ip + 4, len - h->l3 - IPV6_HEADER);
	}
	if (h->protocol == ETH_PROTO_TCP) {
		bb_put32(l4 + 4, bb_get32(l4 + 4) + offset);
		if (!last)
			l4[13] &= (uint8_t)~TCP_FIN_PSH;
		if (index != 0)
			l4[13] &= (uint8_t)~TCP_CWR;
	} else {
		bb_put16(l4 + 4, len - h->l4);
	}
	eth_fill_l4_checksum(frame, h);
}

/*
 * Finds the headers at the start of a message, whose length field may be too small for the whole
 * message, or 0. Returns false if they do not end at @header.
 */
static bool
message_headers(uint8_t *out, uint32_t header, struct eth_headers *h)
{
	uint32_t at = ETH_HEADER;
	struct eth_headers link = {0};

	if (header < ETH_HEADER)
		return false;
	at = parse_link(out, header, &link);
	if (link.type == ETH_TYPE_IPV4 && header - at >= IPV4_HEADER)
		bb_put16(out + at + 2, header - at);
	else if (link.type == ETH_TYPE_IPV6 && header - at >= IPV6_HEADER)
		bb_put16(out + at + 4, header - at - IPV6_HEADER);
	else
		return false;
	eth_parse(out, header, h);
	return h->l4 != 0 && h->payload == header;
}

bool
eth_segment(const uint8_t *message, uint32_t len, uint32_t header, uint32_t mss, uint8_t *out,
	    uint32_t *index, eth_send_fn send, void *arg)
{
	struct eth_headers h;
	uint32_t at, part, i = *index;
	bool more = true;

	if (mss == 0 || header > len)
		return false;
	memcpy(out, message, header);
	if (!message_headers(out, header, &h))
		return false;
	for (at = header + i * mss; more && (at < len || i == 0); at += part) {
		part = len - at < mss ? len - at : mss;
		memcpy(out, message, header);
		memcpy(out + header, message + at, part);
		fit_headers(out, &h, header + part, i++, at - header, at + part == len);
		more = send(arg, out, header + part);
	}
	*index = at < len ? i : 0;
	return true;
}
