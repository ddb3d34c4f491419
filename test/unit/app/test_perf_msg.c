/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The messages of bb_perf and its peers over TCP. The valid messages are those of ibv_rc_pingpong
 * and ib_write_lat, byte for byte. All others are rejected and change nothing.
 */
#include <string.h>

#include "bb_test.h"
#include "perf_msg.h"

/* ibv_rc_pingpong -g 1 on 192.0.2.2 */
static const char pingpong[] = "0000:000011:2ab9f0:00000000000000000000ffffc0000202";
/* ib_write_lat -x 1 on the same host */
static const char keys_gid[] = "0000:0001:000012:9bd1c0:00001fc7:00005601c3a51000:"
			       "00:00:00:00:00:00:00:00:00:00:ff:ff:c0:00:02:02:00000000:";
/* ib_write_lat on InfiniBand */
static const char keys_lid[] = "0007:0010:0000a1:ffffff:80001234:00007f12deadbeef:00000000";

static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 2};

static const uint8_t *
bytes(const char *text)
{
	return (const uint8_t *)text;
}

TEST(test_pingpong_decodes_and_encodes_the_recorded_bytes)
{
	uint8_t again[MSG_PINGPONG];
	struct msg_addr a;

	assert_int_equal(sizeof(pingpong), MSG_PINGPONG);
	assert_null(msg_pingpong_decode(bytes(pingpong), MSG_PINGPONG, &a));
	assert_fields(a, lid, 0, qpn, 0x11, psn, 0x2ab9f0);
	assert_memory_equal(a.gid, gid, 16);
	msg_pingpong_encode(again, &a);
	assert_memory_equal(again, pingpong, MSG_PINGPONG);
}

TEST(test_pingpong_holds_the_widest_numbers)
{
	struct msg_addr a = {.lid = 0xffff, .qpn = UINT32_MAX, .psn = UINT32_MAX}, b;
	uint8_t text[MSG_PINGPONG];

	memset(a.gid, 0xff, sizeof(a.gid));
	msg_pingpong_encode(text, &a);
	assert_string_equal((char *)text, "ffff:ffffff:ffffff:ffffffffffffffffffffffffffffffff");
	assert_null(msg_pingpong_decode(text, sizeof(text), &b));
	assert_int_equal(b.qpn, 0xffffff);
}

TEST(test_keys_decode_and_encode_both_recorded_forms)
{
	uint8_t again[MSG_KEYS_GID];
	struct msg_keys k;

	assert_int_equal(sizeof(keys_gid), MSG_KEYS_GID);
	assert_null(msg_keys_decode(bytes(keys_gid), MSG_KEYS_GID, &k));
	assert_fields(k, addr.qpn, 0x12, addr.psn, 0x9bd1c0, out_reads, 1, rkey, 0x1fc7);
	assert_int_equal(k.vaddr, 0x5601c3a51000);
	assert_memory_equal(k.addr.gid, gid, 16);
	msg_keys_encode(again, MSG_KEYS_GID, &k);
	assert_memory_equal(again, keys_gid, MSG_KEYS_GID);

	assert_int_equal(sizeof(keys_lid), MSG_KEYS);
	assert_null(msg_keys_decode(bytes(keys_lid), MSG_KEYS, &k));
	assert_fields(k, addr.lid, 7, addr.qpn, 0xa1, addr.psn, 0xffffff, out_reads, 16);
	assert_fields(k, rkey, 0x80001234, vaddr, 0x7f12deadbeef, addr.gid[15], 0);
	msg_keys_encode(again, MSG_KEYS, &k);
	assert_memory_equal(again, keys_lid, MSG_KEYS);
}

/* A decoder under test: returns whether it accepts the bytes. */
typedef bool (*take_fn)(const uint8_t *msg, size_t len);

static bool
take_pingpong(const uint8_t *msg, size_t len)
{
	struct msg_addr a, b;
	const char *why;

	memset(&a, 0x5a, sizeof(a));
	b = a;
	why = msg_pingpong_decode(msg, len, &a);
	if (why != NULL)
		assert_memory_equal(&a, &b, sizeof(a));
	return why == NULL;
}

static bool
take_keys(const uint8_t *msg, size_t len)
{
	struct msg_keys a, b;
	const char *why;

	memset(&a, 0x5a, sizeof(a));
	b = a;
	why = msg_keys_decode(msg, len, &a);
	if (why != NULL)
		assert_memory_equal(&a, &b, sizeof(a));
	return why == NULL;
}

/* Messages cut at every byte, longer by one byte, and with each byte replaced by invalid ones. */
static void
check_hostile(const char *text, size_t len, take_fn take)
{
	static const uint8_t wrong[] = {'g', ' ', '-', '+', 'x', '\0', '\n', 0x80, 0xff, '/', '`'};
	uint8_t *msg = malloc(len + 1);

	assert_non_null(msg);
	for (size_t i = 0; i <= len + 1; i++) {
		/*
		 * Allocated with the exact size, so that a sanitizer detects a read past the end.
		 */
		uint8_t *exact = malloc(i > 0 ? i : 1);

		assert_non_null(exact);
		memset(exact, '0', i);
		memcpy(exact, text, i < len ? i : len);
		assert_int_equal(take(exact, i), i == len);
		free(exact);
	}
	for (size_t i = 0; i < len; i++) {
		for (size_t k = 0; k < sizeof(wrong); k++) {
			memcpy(msg, text, len);
			if (msg[i] == wrong[k])
				continue;
			msg[i] = wrong[k];
			if (take(msg, len))
				fail_msg("byte %zu is %#x and is taken", i, wrong[k]);
		}
		memcpy(msg, text, len);
		msg[i] = msg[i] == ':' ? '0' : ':';
		assert_false(take(msg, len));
	}
	free(msg);
}

TEST(test_damaged_pingpong_and_keys_are_refused)
{
	check_hostile(pingpong, sizeof(pingpong), take_pingpong);
	check_hostile(keys_gid, sizeof(keys_gid), take_keys);
	/* The first 59 bytes of the long form are not a valid short form. */
	assert_false(take_keys(bytes(keys_gid), MSG_KEYS));
}

TEST(test_damaged_short_keys_are_refused)
{
	check_hostile(keys_lid, sizeof(keys_lid), take_keys);
}

TEST(test_binary_keys_decode_and_encode_fields_in_network_byte_order)
{
	static const uint8_t msg[MSG_KEYS_CM] = {
		[3] = 7,     [7] = 16,    [9] = 0x01,  [11] = 0x12, [13] = 0x9b, [14] = 0xd1,
		[15] = 0xc0, [16] = 0x80, [19] = 0xc7, [26] = 0x56, [31] = 0x08, [42] = 0xff,
		[43] = 0xff, [44] = 192,  [46] = 2,    [47] = 2,    [51] = 9,
	};
	/* Byte, and a value that makes the field too large. */
	static const uint8_t large[][2] = {{0, 1}, {1, 1}, {4, 1}, {5, 1}, {8, 1}, {12, 1}};
	uint8_t again[MSG_KEYS_CM];
	struct msg_keys k;

	assert_null(msg_keys_decode(msg, sizeof(msg), &k));
	assert_fields(k, addr.lid, 7, out_reads, 16, addr.qpn, 0x10012, addr.psn, 0x9bd1c0);
	assert_fields(k, rkey, 0x800000c7, vaddr, 0x560000000008, srqn, 9);
	assert_memory_equal(k.addr.gid, gid, 16);
	memset(again, 0x5a, sizeof(again));
	msg_keys_encode(again, sizeof(again), &k);
	assert_memory_equal(again, msg, sizeof(msg));
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		memcpy(again, msg, sizeof(msg));
		again[large[i][0]] = large[i][1];
		assert_false(take_keys(again, sizeof(again)));
	}
	assert_false(take_keys(msg, sizeof(msg) - 1));
}

TEST(test_done_is_exactly_five_bytes)
{
	assert_null(msg_done_decode(bytes("done"), 5));
	assert_non_null(msg_done_decode(bytes("done"), 4));
	assert_non_null(msg_done_decode(bytes("don\0"), 5));
	assert_non_null(msg_done_decode(bytes("dones"), 5));
}

static void
check_version(const char *text, bool good, uint32_t want)
{
	uint8_t msg[MSG_VERSION] = {0};
	uint32_t v = 1;

	memcpy(msg, text, strlen(text) < MSG_VERSION ? strlen(text) : MSG_VERSION);
	assert_int_equal(msg_version_decode(msg, MSG_VERSION, &v) == NULL, good);
	assert_int_equal(v, good ? want : 1);
	assert_non_null(msg_version_decode(msg, MSG_VERSION - 1, &v));
}

TEST(test_version_is_two_numbers_with_a_dot)
{
	uint8_t msg[MSG_VERSION];

	check_version("6.06", true, 606);
	check_version("5.7", true, 570);
	check_version("5.70", true, 570);
	check_version("10.123", true, 1012);
	check_version("", false, 0);
	check_version("6", false, 0);
	check_version("6.", false, 0);
	check_version(".06", false, 0);
	check_version("6.06-rc", false, 0);
	check_version("12345.0", false, 0);
	check_version("6.06000000000000", false, 0); /* no NUL in 16 bytes */
	check_version("-6.06", false, 0);
	msg_version_encode(msg, MSG_VERSION_OWN);
	assert_memory_equal(msg, "6.06\0\0\0\0\0\0\0\0\0\0\0", MSG_VERSION);
}

static void
check_size(uint32_t value, bool good, uint32_t want)
{
	uint8_t msg[MSG_U32];
	uint32_t v = 1;

	msg_u32_encode(msg, value);
	assert_int_equal(msg_cycle_decode(msg, MSG_U32, &v) == NULL, good);
	assert_int_equal(v, good ? want : 1);
}

TEST(test_sizes_out_of_range_are_refused)
{
	uint8_t msg[MSG_U32];
	uint32_t v = 1;

	msg_u32_encode(msg, 0x01020304);
	assert_memory_equal(msg, "\1\2\3\4", 4);
	check_size(4096, true, 4096);
	check_size(65536, true, 65536);
	check_size(MSG_MAX_CYCLE, true, MSG_MAX_CYCLE);
	check_size(2 * MSG_MAX_CYCLE, false, 0);
	check_size(0, true, 0);
	check_size(UINT32_MAX, true, 0);
	check_size(0x7fffffff, false, 0);
	check_size(0x80000000, false, 0);
	check_size(4097, false, 0);
	msg_u32_encode(msg, 64);
	assert_null(msg_line_decode(msg, MSG_U32, &v));
	assert_int_equal(v, 64);
	assert_non_null(msg_line_decode(msg, MSG_U32 - 1, &v));
	msg_u32_encode(msg, 2 * MSG_MAX_LINE);
	assert_non_null(msg_line_decode(msg, MSG_U32, &v));
}

TEST(test_mtu_is_one_digit_and_nul)
{
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};
	uint8_t msg[MSG_MTU];
	uint32_t i, v = 1;

	for (i = 0; i < 5; i++) {
		msg_mtu_encode(msg, mtus[i]);
		assert_int_equal(msg[0], '1' + i);
		assert_int_equal(msg[1], 0);
		assert_null(msg_mtu_decode(msg, MSG_MTU, &v));
		assert_int_equal(v, mtus[i]);
	}
	v = 1;
	assert_non_null(msg_mtu_decode(bytes("0"), MSG_MTU, &v));
	assert_non_null(msg_mtu_decode(bytes("6"), MSG_MTU, &v));
	assert_non_null(msg_mtu_decode(bytes("33"), MSG_MTU, &v));
	assert_non_null(msg_mtu_decode(bytes("3"), 1, &v));
	assert_int_equal(v, 1);
}

TEST(test_report_round_trips_and_refuses_nonsense)
{
	struct msg_report r = {.size = 65536, .iters = 5000, .peak = 1.5, .average = 1, .rate = 2},
			  b;
	uint8_t msg[MSG_REPORT_PARTS * MSG_REPORT_PART];

	msg_report_encode(msg, &r);
	assert_memory_equal(msg, "\0\0\0\0\0\1\0\0\0\0\0\0\0\0\x13\x88\x3f\xf8", 18);
	assert_null(msg_report_decode(msg, sizeof(msg), &b));
	assert_memory_equal(&r, &b, sizeof(r));
	assert_true(msg_report_usable(&b));
	assert_non_null(msg_report_decode(msg, sizeof(msg) - 1, &b));
	memset(msg, 0xff, sizeof(msg));
	assert_null(msg_report_decode(msg, sizeof(msg), &b));
	assert_false(msg_report_usable(&b));
	r.average = -1;
	assert_false(msg_report_usable(&r));
}

TEST(test_slots_of_a_cycle_stay_in_the_buffer)
{
	struct msg_cycle c;

	msg_cycle_of(&c, 2, 4096, 64);
	assert_int_equal(c.slots, 64);
	assert_int_equal(msg_slot_offset(&c, 0), 0);
	assert_int_equal(msg_slot_offset(&c, 1), 64);
	assert_int_equal(msg_slot_offset(&c, 63), 4032);
	assert_int_equal(msg_slot_offset(&c, 64), 0);
	msg_cycle_of(&c, 65, 4096, 64);
	assert_fields(c, step, 128, slots, 32);
	msg_cycle_of(&c, 1500, 4096, 64);
	assert_int_equal(c.slots, 2);
	assert_int_equal(msg_slot_offset(&c, 3), 1536);
	msg_cycle_of(&c, 2049, 4096, 64);
	assert_int_equal(c.slots, 1);
	assert_int_equal(msg_slot_offset(&c, 7), 0);
	msg_cycle_of(&c, 65536, 4096, 64);
	assert_int_equal(msg_slot_offset(&c, 7), 0);
	/* A message longer than half the buffer leaves one place. */
	msg_cycle_of(&c, 8, 4096, 4096);
	assert_int_equal(c.slots, 1);
}

TEST_MAIN(0)
