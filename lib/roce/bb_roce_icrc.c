/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The invariant CRC uses the polynomial of Ethernet's CRC (vol. 1, 7.8.1), least significant bit
 * first, as gzip does.
 */
#include <stdbool.h>
#include <string.h>

#include <isa-l/crc.h>
#ifdef __x86_64__
#include <smmintrin.h>
#include <wmmintrin.h>
#endif

#include "bb_roce_pkt.h"

/* CRC of eight bytes 0xff, which stand for the local route header that RoCEv2 does not have. */
#define LRH_CRC 0x2144df1cu
#define IP_MAX  60u /* IP version 4 with all options */
#define UDP_LEN 8u

/* Sets all bits of the fields that routers or congested switches may change. */
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

/*
 * Copies use units of 16 bytes. A load of the same size as the preceding store need not wait until
 * the store is complete.
 */
typedef uint64_t word16 __attribute__((vector_size(16)));

static inline word16
load16(const void *p)
{
	word16 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void
store16(uint8_t *p, word16 v)
{
	memcpy(p, &v, sizeof(v));
}

#define V4_HDR  28u  /* IP header without options, and UDP header */
#define V4_MIN  16u  /* minimum bytes after the IP and UDP headers */
#define V4_HEAD 128u /* maximum number of bytes that the first CRC call covers */

/* Masks for the fields that mask_ip() sets and for the UDP checksum, as two units of 16 bytes. */
static const uint8_t v4_mask[2][16] = {
	{[1] = 0xff, [8] = 0xff, [10] = 0xff, [11] = 0xff},
	{[10] = 0xff, [11] = 0xff},
};
/*
 * Mask for byte 4 of the BTH. For 16 bytes that begin with byte k of the BTH (k is 0 to 4), the
 * mask is the 16 bytes at bth_mask + k.
 */
static const uint8_t bth_mask[20] = {[4] = 0xff};

/*
 * Starts the CRC of the most common packet: IP version 4 without options, UDP, and at least V4_MIN
 * bytes after these headers. All @len bytes must be contiguous.
 */
static inline uint32_t
begin_v4(const uint8_t *ip, size_t len)
{
	uint8_t head[V4_HEAD];
	size_t n = len < V4_HEAD ? len : V4_HEAD, at = n - 16 < 32 ? n - 16 : 32;
	uint32_t crc;

	store16(head, load16(ip) | load16(v4_mask[0]));
	store16(head + 16, load16(ip + 16) | load16(v4_mask[1]));
	store16(head + at, load16(ip + at) | load16(bth_mask + (at - V4_HDR)));
	/* The last 16 bytes may overlap the previous ones, so they are copied after this loop. */
	while (at + 32 < n) {
		at += 16;
		store16(head + at, load16(ip + at));
	}
	if (n > 48)
		store16(head + n - 16, load16(ip + n - 16));
	crc = crc32_gzip_refl(LRH_CRC, head, n);
	return len == n ? crc : crc32_gzip_refl(crc, ip + n, len - n);
}

/* Copies up to BB_ROCE_MAX_HDR bytes; most lengths need neither a call nor a loop. */
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

/*
 * Starts the CRC of any packet that begin_v4() cannot handle. Not inline, because inlining would
 * make the common path 50 % more expensive.
 */
static __attribute__((noinline)) uint32_t
begin_any(const uint8_t *ip, size_t ip_len, const uint8_t *udp, const uint8_t *bth, size_t hdr_len)
{
	uint8_t head[IP_MAX + UDP_LEN + BB_ROCE_MAX_HDR], *p = head;
	size_t n = hdr_len < BB_ROCE_MAX_HDR ? hdr_len : BB_ROCE_MAX_HDR;
	uint32_t crc;

	/*
	 * Almost all headers have 40 bytes. For that constant length the compiler emits a few
	 * moves instead of a call.
	 */
	if (ip_len == 40)
		memcpy(p, ip, 40);
	else
		memcpy(p, ip, ip_len);
	mask_ip(p);
	p += ip_len;
	memcpy(p, udp, UDP_LEN);
	p[6] = 0xff; /* UDP checksum */
	p[7] = 0xff;
	p += UDP_LEN;
	copy_headers(p, bth, n);
	p[4] = 0xff; /* FECN, BECN and the reserved bits in the same byte */
	crc = crc32_gzip_refl(LRH_CRC, head, (uint64_t)(p + n - head));
	return bb_roce_icrc_more(crc, bth + n, hdr_len - n);
}

uint32_t
bb_roce_icrc_begin(const uint8_t *ip, size_t ip_len, const uint8_t *udp, const uint8_t *bth,
		   size_t hdr_len)
{
	if (ip_len == 20 && ip[0] >> 4 != 6 && udp == ip + 20 && bth == ip + V4_HDR &&
	    hdr_len >= V4_MIN)
		return begin_v4(ip, V4_HDR + hdr_len);
	return begin_any(ip, ip_len, udp, bth, hdr_len);
}

/* ---- Short parts of a packet */

#ifdef __x86_64__

/*
 * CRC of a few bytes by carry-less multiplication, for the part of a short packet that differs from
 * the packet before. It takes half the instructions of ISA-L's function, which is for long buffers.
 *
 * Bit 0 of a number is its highest power of x. P is the polynomial. The CRC is the remainder of
 * message * x^32 by P. Each 8 bytes of the message are multiplied by the remainder of a power of x,
 * which depends on their place in the message. The sum of these products has at most 96 bits, and
 * the same remainder. Barrett's reduction computes this remainder with the quotient of x^96 by P.
 */
#define SHORT_MIN 8u
#define SHORT_MAX 64u

#define CLMUL __attribute__((target("pclmul,sse4.1")))

/* Remainder of x^(8 * d + 32) by P, for 8 bytes after which d = 0, 4, 8, ... bytes follow. */
static const uint64_t places[SHORT_MAX / 4 - 1][2] __attribute__((aligned(16))) = {
	{0x1db710640}, {0x163cd6124}, {0xccaa009e},  {0x140d44a2e}, {0x1751997d0},
	{0x65673b46},  {0x15a546366}, {0x1dac4fb5c}, {0xf1da05aa},  {0x14e01d2d4},
	{0x174359406}, {0x2a283862},  {0x3db1ecdc},  {0x1b2bdfa4c}, {0x1c6e41596},
};

/* Returns the product for the 8 bytes @v, after which @dist bytes of the message follow. */
static inline CLMUL __m128i
at_place(__m128i v, size_t dist)
{
	return _mm_clmulepi64_si128(
		v, _mm_load_si128((const __m128i *)(const void *)places[dist / 4]), 0x00);
}

static inline CLMUL __m128i
load8(const uint8_t *p)
{
	return _mm_loadl_epi64((const __m128i *)(const void *)p);
}

/* Does the same as crc32_gzip_refl(). @len is from SHORT_MIN to SHORT_MAX, and a multiple of 4. */
static CLMUL uint32_t
crc_short(uint32_t crc, const uint8_t *p, size_t len)
{
	/* Quotient of x^96 by P without its last bit, which does not change the result. */
	const __m128i mu = _mm_cvtsi64_si128((long long)0xb4e5b025f7011641);
	const __m128i poly = _mm_cvtsi64_si128(0x1db710641);
	const uint8_t *end = p + len;
	uint32_t first = 0, i;
	__m128i sum, q;

	if ((len & 4) != 0)
		memcpy(&first, p, 4);
	/* The state is added to the first four bytes. */
	sum = at_place(_mm_cvtsi32_si128((int)(first ^ ~crc)), len - 8);
	sum = _mm_xor_si128(sum, load8(end - 8));
#pragma GCC unroll 8
	for (i = 8; i < SHORT_MAX; i += 8) {
		if (len < i + 8)
			break;
		sum = _mm_xor_si128(sum, at_place(load8(end - i - 8), i));
	}
	q = _mm_clmulepi64_si128(sum, mu, 0x00);
	q = _mm_clmulepi64_si128(q, poly, 0x00);
	return ~(uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, q), 2);
}

/* Returns true if crc_short() supports the length and the CPU. */
static inline bool
is_short(size_t len)
{
	const size_t over = len - SHORT_MIN;

	/* The rotation makes a length that is no multiple of 4 large. */
	return (over >> 2 | over << 62) <= (SHORT_MAX - SHORT_MIN) / 4 &&
	       __builtin_cpu_supports("pclmul");
}

#endif

uint32_t
bb_roce_icrc_more(uint32_t crc, const void *p, size_t len)
{
#ifdef __x86_64__
	if (is_short(len))
		return crc_short(crc, p, len);
#endif
	return len == 0 ? crc : crc32_gzip_refl(crc, p, len);
}
