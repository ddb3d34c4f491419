/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The invariant CRC: known packets, a bit-by-bit CRC for comparison, and the masked fields. */
#include "../queue/queue_test.h"
#include "bb_roce_pkt.h"

/* From test/golden/data/rxe-6.1-conversations.pcap, from the IP header to the ICRC. */
static const char *const known[] = {
	/* WRITE_ONLY_IMM without payload, IPv4 */
	"4500005071be4000401144d9c0000203c0000202f31e12b7003c00000b00ffff0000001e80991c8b"
	"00007fe0f4003010000012d8000000108000018000908dd9f27f0000db14000000000800856e2b6d",
	/* ACK, IPv4: its CRC depends on the mask of the TTL being right */
	"4500003066ff400040114fb8c0000203c0000202c12112b7001c00001100ffff0000001100f57622"
	"1f000001632a07db",
	/* CMP_SWAP, IPv4 */
	"450000486bb2400040114aedc0000203c0000202c1e412b7003400001300ffff0000001680d2f120"
	"000055869421f0000000074d00000000000000000000000000000000ce56e224",
	/* SEND_ONLY with payload, IPv4 */
	"4500006c6c9f4000401149dcc0000203c0000202c21112b7005800000400ffff00000017807e844c"
	"c3f498560575a354d376825f6a5cde9700e5110b80621a37d404fb8723f12fe7e5c73dea3ce03e0f"
	"56c06ec01d4d581d326928b2cb43eaa047e5276ad65651bb9a546973",
	/* READ_REQUEST, IPv6 */
	"6000000000281140fe80000000000000505400fffe000203fe80000000000000505400fffe000202"
	"c2d912b7002800000c00ffff0000001b80d5cbfb0000560573ec100000000cbe0000003d7715b899",
};

static uint32_t
from_hex(const char *hex, uint8_t *raw)
{
	uint32_t i, n = (uint32_t)strlen(hex) / 2;
	unsigned int v;

	for (i = 0; i < n; i++) {
		assert_int_equal(sscanf(hex + 2 * (size_t)i, "%2x", &v), 1);
		raw[i] = (uint8_t)v;
	}
	return n;
}

static uint32_t
ip_len_of(const uint8_t *raw)
{
	return raw[0] >> 4 == 6 ? 40 : (raw[0] & 0xfu) * 4;
}

/*
 * Computes the ICRC: @hdr bytes after the UDP header in the first call, the rest in pieces of
 * @piece.
 */
static void
icrc(const uint8_t *raw, uint32_t n, uint32_t hdr, uint32_t piece, uint8_t out[4])
{
	uint32_t ip = ip_len_of(raw), at = ip + 8 + hdr, crc, len;

	crc = bb_roce_icrc_begin(raw, ip, raw + ip, raw + ip + 8, hdr);
	for (; at < n; at += len) {
		len = n - at < piece ? n - at : piece;
		crc = bb_roce_icrc_more(crc, raw + at, len);
	}
	bb_roce_icrc_end(crc, out);
}

/* Adds one byte to a CRC-32, one bit at a time. */
static uint32_t
crc_byte(uint32_t crc, uint8_t v)
{
	uint32_t b;

	crc ^= v;
	for (b = 0; b < 8; b++)
		crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	return crc;
}

/* CRC-32 one bit at a time, with its own masking of the variant fields. */
static void
icrc_plain(const uint8_t *raw, uint32_t n, uint8_t out[4])
{
	uint32_t ip = ip_len_of(raw), crc = 0xffffffff, i;

	for (i = 0; i < n + 8; i++) {
		uint32_t at = i - 8;
		uint8_t v = i < 8 ? 0xff : raw[at];

		if (i >= 8 && raw[0] >> 4 == 4 && (at == 1 || at == 8 || at == 10 || at == 11))
			v = 0xff;
		if (i >= 8 && raw[0] >> 4 == 6 && ((at > 0 && at < 4) || at == 7))
			v = 0xff;
		if (i >= 8 && raw[0] >> 4 == 6 && at == 0)
			v |= 0x0f;
		if (i >= 8 && (at == ip + 6 || at == ip + 7 || at == ip + 8 + 4))
			v = 0xff;
		crc = crc_byte(crc, v);
	}
	crc = ~crc;
	for (i = 0; i < 4; i++)
		out[i] = (uint8_t)(crc >> 8 * i);
}

TEST(test_icrc_has_the_check_value)
{
	uint8_t out[4];

	/* The check value in catalogues of CRCs. */
	bb_roce_icrc_end(bb_roce_icrc_more(0, "123456789", 9), out);
	assert_memory_equal(out, "\x26\x39\xf4\xcb", 4);
	assert_int_equal(bb_roce_icrc_more(0x12345678, NULL, 0), 0x12345678);
}

/* Short parts have code of their own. The bytes begin or end at a page that cannot be read. */
TEST(test_icrc_of_all_short_lengths)
{
	uint64_t seed = 42;
	uint32_t len, i, k;

	for (len = 1; len <= 160; len++) {
		for (i = 0; i < 4; i++) {
			struct guarded g = guarded_alloc(len, (i & 1) != 0);
			const uint32_t start = i < 2 ? (uint32_t)rnd(&seed) : 0;
			uint32_t want = ~start;

			for (k = 0; k < len; k++) {
				g.p[k] = (uint8_t)rnd(&seed);
				want = crc_byte(want, g.p[k]);
			}
			assert_int_equal(bb_roce_icrc_more(start, g.p, len), ~want);
			guarded_free(&g);
		}
	}
}

TEST(test_icrc_of_recorded_packets)
{
	uint8_t raw[256], out[4];
	uint32_t n;

	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		n = from_hex(known[i], raw) - 4;
		icrc(raw, n, 12, 1000, out);
		assert_memory_equal(out, raw + n, 4);
		icrc_plain(raw, n, out);
		assert_memory_equal(out, raw + n, 4);
	}
}

static uint32_t
random_packet(uint64_t *seed, uint8_t *raw, size_t size)
{
	bool v6 = rnd_below(seed, 2) != 0;
	uint32_t ip = v6 ? 40 : 20 + 4 * rnd_below(seed, 11), i;
	uint32_t n = ip + 8 + 12 + rnd_below(seed, (uint32_t)size - 80);

	for (i = 0; i < n; i++)
		raw[i] = (uint8_t)rnd(seed);
	raw[0] = v6 ? (uint8_t)(0x60 | (raw[0] & 15)) : (uint8_t)(0x40 | ip / 4);
	return n;
}

/*
 * IPv4 with and without options, and IPv6, of any length: equal to the bit-by-bit CRC for any
 * split into pieces.
 */
TEST(test_icrc_is_the_same_for_any_split)
{
	uint64_t seed = 3;
	uint8_t raw[600], want[4], out[4];
	uint32_t n, from, hdr;

	for (uint32_t round = 0; round < 3000; round++) {
		n = random_packet(&seed, raw, sizeof(raw));
		from = ip_len_of(raw) + 8;
		hdr = 12 + rnd_below(&seed, n - from - 12 + 1);
		icrc_plain(raw, n, want);
		icrc(raw, n, hdr, 1 + rnd_below(&seed, 64), out);
		assert_memory_equal(out, want, 4);
		icrc(raw, n, n - from, 1, out);
		assert_memory_equal(out, want, 4);
	}
}

/* Flips each bit: variant fields do not change the CRC, each other bit does. */
TEST(test_only_variant_fields_leave_the_icrc)
{
	uint64_t seed = 4;
	uint8_t raw[160], first[4], out[4];
	uint32_t n, free_bits, ip;

	for (uint32_t round = 0; round < 20; round++) {
		n = random_packet(&seed, raw, sizeof(raw));
		ip = ip_len_of(raw);
		icrc(raw, n, 12, 64, first);
		free_bits = 0;
		for (uint32_t bit = 0; bit < 8 * n; bit++) {
			/* Version and header length cannot be flipped: they define the packet. */
			if (bit < 4 || (raw[0] >> 4 == 4 && bit < 8))
				continue;
			raw[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
			icrc(raw, n, 12, 64, out);
			raw[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
			if (memcmp(out, first, 4) != 0)
				continue;
			free_bits++;
			assert_true(bit / 8 < ip ? bit / 8 <= 11
						 : bit / 8 == ip + 6 || bit / 8 == ip + 7 ||
							   bit / 8 == ip + 12);
		}
		/* Checksum of UDP and the byte of the BTH: 24. TOS, TTL, checksum: 32. IPv6: 36. */
		assert_int_equal(free_bits, raw[0] >> 4 == 4 ? 24 + 32 : 24 + 36);
	}
}

/* The caller's bytes are not changed, and no byte past their ends is read. */
TEST(test_icrc_only_reads)
{
	struct guarded ip = guarded_alloc(20, false), udp = guarded_alloc(8, false),
		       bth = guarded_alloc(40, false);
	uint8_t raw[256], out[4];
	uint32_t n = from_hex(known[0], raw) - 4;

	memcpy(ip.p, raw, 20);
	memcpy(udp.p, raw + 20, 8);
	memcpy(bth.p, raw + 28, 32);
	memmove(bth.p + 8, bth.p, 32);
	mprotect(ip.p - (uintptr_t)ip.p % GUARD_PAGE, GUARD_PAGE, PROT_READ);
	mprotect(udp.p - (uintptr_t)udp.p % GUARD_PAGE, GUARD_PAGE, PROT_READ);
	mprotect(bth.p - (uintptr_t)bth.p % GUARD_PAGE, GUARD_PAGE, PROT_READ);
	assert_int_equal(n, 20 + 8 + 32 + 16);
	bb_roce_icrc_end(
		bb_roce_icrc_more(bb_roce_icrc_begin(ip.p, 20, udp.p, bth.p + 8, 32), raw + 60, 16),
		out);
	assert_memory_equal(out, raw + n, 4);
	guarded_free(&ip);
	guarded_free(&udp);
	guarded_free(&bth);
}

TEST_MAIN(0)
