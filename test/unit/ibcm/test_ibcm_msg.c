/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CM messages and the IP CM header as bytes. Recorded messages of Linux:
 * test/golden/test_ibcm_rxe.c.
 */
#include "bb_ibcm.h"
#include "bb_ibcm_msg.h"
#include "bb_test.h"

static uint64_t seed = 1;

static uint64_t
rnd(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed ^ seed >> 29;
}

static void
fill(uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)rnd();
}

/* A MAD of class CM with random content. */
static void
random_mad(uint8_t mad[BB_IBCM_MAD], uint8_t type)
{
	static const uint8_t head[4] = {1, 7, 2, 3};

	fill(mad, BB_IBCM_MAD);
	memcpy(mad, head, sizeof(head));
	mad[16] = 0;
	mad[17] = type;
}

/*
 * Every bit of a MAD is a field's, or reserved. A message built from a parsed one has the same
 * fields, so all bits are equal but those that are reserved. Their number is that of tables 106 to
 * 120. Two fields at one position would give a wrong number, too.
 */
TEST(test_rebuilt_message_differs_in_reserved_bits_only)
{
	static const struct {
		uint8_t type;
		unsigned int reserved; /* bits after the header */
	} want[] = {
		/* 4 and 24 to 27; twice 6 bits by the rate, 3 by the SL; 3 and 2 by the timeouts */
		{BB_IBCM_REQ, 64 + 2 * (6 + 3) + 3 + 2},
		{BB_IBCM_MRA, 6 + 3},
		{BB_IBCM_REJ, 6 + 1},
		{BB_IBCM_REP, 8 * 3 + 4},
		{BB_IBCM_RTU, 0},
		{BB_IBCM_DREQ, 8},
		{BB_IBCM_DREP, 0},
		{BB_IBCM_SIDR_REQ, 16},
		{BB_IBCM_SIDR_REP, 16 + 8},
		/* 8 to 11, 16 to 19; 3 by the timeout; 4 by the flow label, 2, 3 and 3 */
		{BB_IBCM_LAP, 64 + 3 + 4 + 2 + 3 + 3},
		{BB_IBCM_APR, 16},
	};

	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		uint8_t mad[BB_IBCM_MAD], again[BB_IBCM_MAD], differ[BB_IBCM_MAD] = {0};
		unsigned int bits = 0;

		for (unsigned int n = 0; n < 200; n++) {
			struct bb_ibcm_msg msg;

			random_mad(mad, want[i].type);
			assert_int_equal(bb_ibcm_parse(&msg, mad, sizeof(mad)), BB_IBCM_PARSED);
			assert_true(bb_ibcm_build(again, &msg));
			for (unsigned int b = BB_IBCM_MAD_HEAD; b < BB_IBCM_MAD; b++) {
				differ[b] |= mad[b] ^ again[b];
				/* A reserved bit is built as 0. */
				assert_int_equal(again[b] & ~mad[b], 0);
			}
			assert_memory_equal(mad + 8, again + 8, 8);
		}
		for (unsigned int b = BB_IBCM_MAD_HEAD; b < BB_IBCM_MAD; b++)
			bits += (unsigned int)__builtin_popcount(differ[b]);
		if (bits != want[i].reserved)
			fail_msg("%s: %u reserved bits, expected %u",
				 bb_ibcm_type_str(want[i].type), bits, want[i].reserved);
	}
}

TEST(test_private_data_has_the_lengths_of_linux)
{
	static const uint32_t want[BB_IBCM_TYPES] = {92,  222, 148, 196, 224, 220,
						     224, 216, 136, 168, 148};

	for (uint8_t t = 0; t < BB_IBCM_TYPES; t++)
		assert_int_equal(bb_ibcm_priv_max((uint8_t)(BB_IBCM_REQ + t)), want[t]);
	assert_int_equal(bb_ibcm_priv_max(BB_IBCM_REQ - 1), 0);
	assert_int_equal(bb_ibcm_priv_max(BB_IBCM_TYPES_END), 0);
}

TEST(test_build_pads_private_data_and_refuses_too_much)
{
	for (uint8_t t = BB_IBCM_REQ; t < BB_IBCM_TYPES_END; t++) {
		const uint32_t max = bb_ibcm_priv_max(t);
		uint8_t mad[BB_IBCM_MAD], priv[256];
		struct bb_ibcm_msg msg, out;

		memset(&msg, 0, sizeof(msg));
		memset(priv, 0xab, sizeof(priv));
		memset(mad, 0xcd, sizeof(mad));
		msg.type = t;
		msg.priv = priv;
		msg.priv_len = max - 1;
		assert_true(bb_ibcm_build(mad, &msg));
		assert_int_equal(bb_ibcm_parse(&out, mad, sizeof(mad)), BB_IBCM_PARSED);
		assert_int_equal(out.priv_len, max);
		assert_memory_equal(out.priv, priv, max - 1);
		assert_int_equal(out.priv[max - 1], 0);
		assert_ptr_equal(out.priv + max, mad + sizeof(mad));
		msg.priv_len = max + 1;
		memset(mad, 0xcd, sizeof(mad));
		assert_false(bb_ibcm_build(mad, &msg));
		assert_int_equal(mad[0], 0xcd);
	}
}

TEST(test_parse_refuses_what_is_not_a_cm_message)
{
	static const struct {
		unsigned int byte;
		uint8_t value;
		enum bb_ibcm_parsed want;
	} bad[] = {
		{0, 0, BB_IBCM_BAD_VERSION},    {0, 2, BB_IBCM_BAD_VERSION},
		{0, 0x80, BB_IBCM_BAD_VERSION}, {1, 0x03, BB_IBCM_BAD_CLASS},
		{1, 0x87, BB_IBCM_BAD_CLASS},   {2, 1, BB_IBCM_BAD_VERSION},
		{2, 3, BB_IBCM_BAD_VERSION},    {3, 0x01, BB_IBCM_BAD_METHOD},
		{3, 0x83, BB_IBCM_BAD_METHOD},  {16, 1, BB_IBCM_BAD_TYPE},
		{17, 0x0f, BB_IBCM_BAD_TYPE},   {17, 0x1b, BB_IBCM_BAD_TYPE},
		{17, 0, BB_IBCM_BAD_TYPE},      {17, 0xff, BB_IBCM_BAD_TYPE},
	};
	uint8_t mad[BB_IBCM_MAD + 1] = {0}, guard[sizeof(struct bb_ibcm_msg)];
	struct bb_ibcm_msg msg;

	memset(&msg, 0x5a, sizeof(msg));
	memset(guard, 0x5a, sizeof(guard));
	for (size_t len = 0; len <= sizeof(mad); len++) {
		random_mad(mad, BB_IBCM_REQ);
		if (len != BB_IBCM_MAD)
			assert_int_equal(bb_ibcm_parse(&msg, mad, len), BB_IBCM_BAD_LENGTH);
	}
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		random_mad(mad, BB_IBCM_REQ);
		mad[bad[i].byte] = bad[i].value;
		assert_int_equal(bb_ibcm_parse(&msg, mad, BB_IBCM_MAD), bad[i].want);
	}
	assert_memory_equal(&msg, guard, sizeof(guard));
}

TEST(test_ip_header_round_trip)
{
	static const uint8_t bytes[BB_IBCM_IP_LEN] = {
		0, 0x40, 0xd9, 0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   0, 192, 0,
		2, 3,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2,   2};
	uint8_t again[BB_IBCM_IP_LEN], six[BB_IBCM_IP_LEN];
	struct bb_ibcm_ip ip;

	assert_true(bb_ibcm_ip_parse(&ip, bytes, sizeof(bytes)));
	assert_fields(ip, version, 4, sport, 0xd98a, src[11], 0xff, src[12], 192, dst[15], 2);
	bb_ibcm_ip_build(again, &ip);
	assert_memory_equal(again, bytes, sizeof(bytes));
	fill(six, sizeof(six));
	six[0] = 0;
	six[1] = 0x60;
	assert_true(bb_ibcm_ip_parse(&ip, six, sizeof(six)));
	assert_int_equal(ip.version, 6);
	assert_memory_equal(ip.src, six + 4, 16);
	bb_ibcm_ip_build(again, &ip);
	assert_memory_equal(again, six, sizeof(six));
}

TEST(test_ip_header_with_other_version_is_refused)
{
	uint8_t bytes[BB_IBCM_IP_LEN] = {0, 0x40};
	struct bb_ibcm_ip ip;

	assert_false(bb_ibcm_ip_parse(&ip, bytes, sizeof(bytes) - 1));
	for (unsigned int v = 0; v < 256; v++) {
		bytes[1] = (uint8_t)v;
		assert_int_equal(bb_ibcm_ip_parse(&ip, bytes, sizeof(bytes)),
				 v >> 4 == 4 || v >> 4 == 6);
	}
	bytes[0] = 1;
	bytes[1] = 0x40;
	assert_false(bb_ibcm_ip_parse(&ip, bytes, sizeof(bytes)));
}

TEST(test_service_id_of_port_spaces)
{
	/* RDMA_IB_IP_PS_TCP, _UDP and _IB of Linux include/rdma/rdma_cm.h, with port 0x1c06. */
	assert_int_equal(bb_ibcm_service_id(BB_IBCM_PS_TCP, 0x1c06), 0x1061c06);
	assert_int_equal(bb_ibcm_service_id(BB_IBCM_PS_UDP, 0x1c06), 0x1111c06);
	assert_int_equal(bb_ibcm_service_id(BB_IBCM_PS_IB, 0x1c06), 0x13f1c06);
}

TEST(test_addresses_in_front_of_a_datagram)
{
	static const uint8_t v4[BB_IBCM_GRH] = {[20] = 0x45, 0x68, 0,   0, 0, 0, 0,   0, 63, 17,
						0,           0,    192, 0, 2, 1, 192, 0, 2,  2};
	uint8_t v6[BB_IBCM_GRH] = {0x6a, 0xb1, 0x23, 0x45, 0, 0, 17, 62};
	uint8_t none[BB_IBCM_GRH] = {0};
	struct bb_ibcm_net net;

	assert_true(bb_ibcm_net_parse(&net, v4));
	assert_fields(net, tclass, 0x68, hop_limit, 63, flow_label, 0);
	assert_fields(net, src[11], 0xff, src[12], 192, src[15], 1, dst[10], 0xff, dst[15], 2);
	for (unsigned int i = 8; i < sizeof(v6); i++)
		v6[i] = (uint8_t)i;
	assert_true(bb_ibcm_net_parse(&net, v6));
	assert_fields(net, tclass, 0xab, hop_limit, 62, flow_label, 0x12345);
	assert_memory_equal(net.src, v6 + 8, 16);
	assert_memory_equal(net.dst, v6 + 24, 16);
	/* Neither version 4 nor 6, and an IPv4 header with options. */
	net.hop_limit = 9;
	for (unsigned int version = 0; version < 16; version++) {
		none[0] = none[20] = (uint8_t)(version << 4 | 6);
		assert_int_equal(bb_ibcm_net_parse(&net, none), version == 6);
		if (version == 5)
			assert_int_equal(net.hop_limit, 9);
	}
}

TEST_MAIN(0)
