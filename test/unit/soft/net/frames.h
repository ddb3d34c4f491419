/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Frames of a peer, built and parsed without the code under test. */
#ifndef FRAMES_H
#define FRAMES_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MAC_US   "\x02\xbb\x00\x00\x00\x01"
#define MAC_PEER "\x02\xcc\x00\x00\x00\x02"
#define MAC_ALL  "\xff\xff\xff\xff\xff\xff"

struct frame {
	uint8_t b[10000];
	uint32_t len;
};

static inline void
put(struct frame *f, const void *p, uint32_t len)
{
	memcpy(f->b + f->len, p, len);
	f->len += len;
}

static inline void
put16(struct frame *f, uint16_t v)
{
	v = htons(v);
	put(f, &v, 2);
}

/* Returns the address as a GID. */
static inline const uint8_t *
ip_of(const char *text)
{
	static uint8_t ring[8][16];
	static unsigned int n;
	uint8_t *ip = ring[n++ % 8];

	memset(ip, 0, 16);
	if (inet_pton(AF_INET, text, ip + 12) == 1) {
		ip[10] = 0xff;
		ip[11] = 0xff;
	} else if (inet_pton(AF_INET6, text, ip) != 1) {
		__builtin_trap();
	}
	return ip;
}

/* Computes the sum of RFC 1071, byte by byte. */
static inline uint32_t
sum16(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	return sum;
}

static inline uint16_t
fold16(uint32_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(0xffff ^ sum);
}

static inline void
set16(struct frame *f, uint32_t at, uint16_t v)
{
	f->b[at] = (uint8_t)(v >> 8);
	f->b[at + 1] = (uint8_t)v;
}

static inline uint16_t
get16(const struct frame *f, uint32_t at)
{
	return (uint16_t)(f->b[at] << 8 | f->b[at + 1]);
}

static inline void
eth(struct frame *f, const char *dst, const char *src, uint16_t type)
{
	f->len = 0;
	put(f, dst, 6);
	put(f, src, 6);
	put16(f, type);
}

static inline void
eth_vlan(struct frame *f, const char *dst, const char *src, uint16_t tci, uint16_t type)
{
	eth(f, dst, src, 0x8100);
	put16(f, tci);
	put16(f, type);
}

/* Appends an IP header for @len bytes of payload to a frame of eth(). */
static inline void
ip(struct frame *f, const char *src, const char *dst, uint8_t proto, uint32_t len)
{
	const uint8_t *s = ip_of(src), *d = ip_of(dst);
	uint32_t at = f->len;

	if (strchr(src, ':') != NULL) {
		put(f, "\x60\x00\x00\x00", 4);
		put16(f, (uint16_t)len);
		put(f, &proto, 1);
		put(f, proto == IPPROTO_ICMPV6 ? "\xff" : "\x40", 1);
		put(f, s, 16);
		put(f, d, 16);
		return;
	}
	put(f, "\x45\x00", 2);
	put16(f, (uint16_t)(20 + len));
	put(f, "\x12\x34\x40\x00\x40", 5);
	put(f, &proto, 1);
	put16(f, 0);
	put(f, s + 12, 4);
	put(f, d + 12, 4);
	set16(f, at + 10, fold16(sum16(0, f->b + at, 20)));
}

/* Returns the checksum from @l4 to the end, with the pseudo header of the IP header at @l3. */
static inline uint16_t
l4_sum(const struct frame *f, uint32_t l3, uint32_t l4, uint8_t proto)
{
	uint32_t sum = sum16(0, f->b + l4, f->len - l4);

	if (proto == IPPROTO_ICMP)
		return fold16(sum);
	sum += proto + f->len - l4;
	return fold16(f->b[l3] >> 4 == 4 ? sum16(sum, f->b + l3 + 12, 8)
					 : sum16(sum, f->b + l3 + 8, 32));
}

/* Appends UDP with @len pattern bytes, and a checksum if @csum. */
static inline void
udp(struct frame *f, const char *src, const char *dst, uint16_t dport, uint32_t len, bool csum)
{
	uint32_t l3 = f->len, l4, i;

	ip(f, src, dst, IPPROTO_UDP, 8 + len);
	l4 = f->len;
	put16(f, 0xc123);
	put16(f, dport);
	put16(f, (uint16_t)(8 + len));
	put16(f, 0);
	for (i = 0; i < len; i++)
		f->b[f->len++] = (uint8_t)(i * 7);
	if (csum)
		set16(f, l4 + 6, l4_sum(f, l3, l4, IPPROTO_UDP));
}

static inline void
echo(struct frame *f, const char *src, const char *dst, uint32_t len)
{
	bool v6 = strchr(src, ':') != NULL;
	uint32_t l3 = f->len, l4, i;
	uint8_t proto = v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;

	ip(f, src, dst, proto, 8 + len);
	l4 = f->len;
	put(f, v6 ? "\x80\x00\x00\x00\x12\x34\x00\x07" : "\x08\x00\x00\x00\x12\x34\x00\x07", 8);
	for (i = 0; i < len; i++)
		f->b[f->len++] = (uint8_t)(i * 3 + 1);
	set16(f, l4 + 2, l4_sum(f, l3, l4, proto));
}

static inline void
arp(struct frame *f, const char *eth_dst, uint16_t op, const char *src_mac, const char *src,
    const char *dst_mac, const char *dst)
{
	eth(f, eth_dst, src_mac, 0x0806);
	put(f, "\x00\x01\x08\x00\x06\x04", 6);
	put16(f, op);
	put(f, src_mac, 6);
	put(f, ip_of(src) + 12, 4);
	put(f, dst_mac, 6);
	put(f, ip_of(dst) + 12, 4);
}

/* Builds a neighbour discovery message, without the MAC option if @mac is NULL. */
static inline void
nd(struct frame *f, const char *eth_dst, const char *src, const char *dst, uint8_t type,
   uint8_t flags, const char *target, const char *mac)
{
	uint32_t l3, l4;

	eth(f, eth_dst, MAC_PEER, 0x86dd);
	l3 = f->len;
	ip(f, src, dst, IPPROTO_ICMPV6, mac != NULL ? 32 : 24);
	l4 = f->len;
	put(f, &type, 1);
	put(f, "\0\0", 2);
	put(f, "\0", 1);
	put(f, &flags, 1);
	put(f, "\0\0\0", 3);
	put(f, ip_of(target), 16);
	if (mac != NULL) {
		put(f, type == 135 ? "\x01\x01" : "\x02\x01", 2);
		put(f, mac, 6);
	}
	set16(f, l4 + 2, l4_sum(f, l3, l4, IPPROTO_ICMPV6));
}

#endif
