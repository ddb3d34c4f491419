/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Messages of the block target: encode and decode, and every field out of range. */
#include <errno.h>
#include <string.h>

#include "bb_test.h"
#include "blk_proto.h"

static const struct bb_blk_shape shape = {
	.capacity = 1 << 20, .block = 4096, .max_io = 131072, .queues = 2, .depth = 32};
static const struct blk_command write_cmd = {.offset = 8192,
					     .addr = 0x123456789abcdef0,
					     .length = 4096,
					     .rkey = 0x77665544,
					     .digest = 0xdeadbeef,
					     .id = 31,
					     .flags = BB_BLK_FUA,
					     .op = BB_BLK_WRITE};

/* Changes bytes of a message and corrects its checksum. */
static void
poke(uint8_t *msg, uint32_t len, uint32_t at, uint32_t n, uint64_t v)
{
	uint32_t crc;

	for (uint32_t i = 0; i < n; i++)
		msg[at + i] = (uint8_t)(v >> 8 * i);
	crc = blk_crc(msg, len - 4);
	for (uint32_t i = 0; i < 4; i++)
		msg[len - 4 + i] = (uint8_t)(crc >> 8 * i);
}

TEST(test_crc_has_the_check_value)
{
	/* The check value of "123456789" in the catalogues of CRCs. */
	assert_int_equal(blk_crc("123456789", 9), 0xe3069283);
}

TEST(test_command_encodes_to_the_documented_bytes)
{
	/* Written by hand from the table in blk_proto.h. */
	static const uint8_t want[BLK_COMMAND - 4] = {
		'B',  'L',  'K',  'C',  1,    2,    1,    0,    31,   0,    0,
		0,    0,    0x10, 0,    0,    0,    0x20, 0,    0,    0,    0,
		0,    0,    0xf0, 0xde, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12, 0x44,
		0x55, 0x66, 0x77, 0xef, 0xbe, 0xad, 0xde, 0,    0,    0,    0};
	uint8_t msg[BLK_COMMAND];

	blk_command_encode(msg, &write_cmd);
	assert_memory_equal(msg, want, sizeof(want));
}

TEST(test_every_message_round_trips)
{
	struct blk_completion done = {4096, 0xcafe, 17, BLK_NOSPACE}, done2 = {0};
	uint8_t msg[64];
	struct blk_command c = {0};
	struct bb_blk_shape s = {0};
	uint32_t depth = 0;

	blk_hello_encode(msg, 77);
	assert_null(blk_hello_decode(msg, BLK_HELLO, &depth));
	assert_int_equal(depth, 77);
	blk_welcome_encode(msg, &shape);
	assert_null(blk_welcome_decode(msg, BLK_WELCOME, &s));
	assert_fields(s, capacity, shape.capacity, block, shape.block, max_io, shape.max_io);
	assert_fields(s, queues, shape.queues, depth, shape.depth);
	assert_false(s.read_only);
	blk_command_encode(msg, &write_cmd);
	assert_null(blk_command_decode(msg, BLK_COMMAND, &c));
	assert_fields(c, offset, write_cmd.offset, addr, write_cmd.addr, length, write_cmd.length);
	assert_fields(c, rkey, write_cmd.rkey, digest, write_cmd.digest, id, write_cmd.id);
	assert_fields(c, flags, write_cmd.flags, op, write_cmd.op);
	blk_completion_encode(msg, &done);
	assert_null(blk_completion_decode(msg, BLK_COMPLETION, &done2));
	assert_fields(done2, length, done.length, digest, done.digest, id, done.id);
	assert_int_equal(done2.status, done.status);
}

/* Each of the four decoders detects every single-bit error and every other length. */
TEST(test_any_single_bit_or_length_error_is_detected)
{
	static const uint32_t lens[] = {BLK_HELLO, BLK_WELCOME, BLK_COMMAND, BLK_COMPLETION};
	struct blk_completion done = {.id = 1}, done2;
	struct blk_command c;
	struct bb_blk_shape s;
	uint32_t depth;
	uint8_t msg[64];
	const char *wrong;
	size_t len;

	for (uint32_t kind = 0; kind < 4; kind++) {
		memset(msg, 0, sizeof(msg));
		switch (kind) {
		case 0:
			blk_hello_encode(msg, 1);
			break;
		case 1:
			blk_welcome_encode(msg, &shape);
			break;
		case 2:
			blk_command_encode(msg, &write_cmd);
			break;
		default:
			blk_completion_encode(msg, &done);
		}
		for (uint32_t bit = 0; bit <= lens[kind] * 8 + 64; bit++) {
			len = lens[kind];
			if (bit < lens[kind] * 8)
				msg[bit / 8] ^= (uint8_t)(1u << bit % 8);
			else
				len = bit - lens[kind] * 8; /* 0 to 64 */
			wrong = kind == 0   ? blk_hello_decode(msg, len, &depth)
				: kind == 1 ? blk_welcome_decode(msg, len, &s)
				: kind == 2 ? blk_command_decode(msg, len, &c)
					    : blk_completion_decode(msg, len, &done2);
			if (len != lens[kind] || bit < lens[kind] * 8)
				assert_non_null(wrong);
			else
				assert_null(wrong);
			if (bit < lens[kind] * 8)
				msg[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

TEST(test_bad_field_is_refused_and_writes_nothing)
{
	/* Each field with a correct checksum: kind, offset, bytes, value. */
	static const struct {
		char kind;
		uint32_t at, n;
		uint64_t v;
	} bad[] = {
		{'h', 0, 1, 'X'},       {'h', 4, 1, 2},         {'h', 5, 1, 1},
		{'h', 7, 1, 1},         {'h', 8, 4, 0},         {'w', 4, 1, 0},
		{'w', 5, 1, 2},         {'w', 6, 2, 0},         {'w', 6, 2, 257},
		{'w', 8, 8, 0},         {'w', 8, 8, 4097},      {'w', 8, 8, 1ull << 63},
		{'w', 16, 4, 256},      {'w', 16, 4, 8192},     {'w', 16, 4, 4095},
		{'w', 16, 4, 0},        {'w', 20, 4, 2048},     {'w', 20, 4, 4097},
		{'w', 20, 4, 2u << 20}, {'w', 24, 4, 0},        {'w', 24, 4, 65536},
		{'c', 3, 1, 'D'},       {'c', 4, 1, 2},         {'c', 5, 1, 0},
		{'c', 5, 1, 4},         {'c', 6, 2, 2},         {'c', 7, 1, 1},
		{'c', 10, 2, 1},        {'c', 12, 4, 0},        {'c', 40, 4, 1u << 31},
		{'c', 5, 2, 0x0101},    {'c', 5, 2, 0x0001},    {'f', 6, 2, BB_BLK_FUA},
		{'f', 12, 4, 1},        {'f', 16, 8, 4096},     {'f', 24, 8, 1},
		{'f', 32, 4, 1},        {'f', 36, 4, 1},        {'d', 5, 1, BLK_STATUSES},
		{'d', 16, 8, 1},        {'d', 24, 4, 1u << 31}, {'d', 0, 1, 'C'},
	};
	const struct blk_command flush = {.op = BB_BLK_FLUSH, .id = 3};
	const struct blk_completion done = {.id = 1};
	struct blk_completion done2;
	struct blk_command c, before;
	struct bb_blk_shape s;
	uint8_t msg[64];
	const char *wrong;
	uint32_t depth;

	memset(&before, 0x5a, sizeof(before));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c = before;
		switch (bad[i].kind) {
		case 'h':
			blk_hello_encode(msg, 1);
			poke(msg, BLK_HELLO, bad[i].at, bad[i].n, bad[i].v);
			wrong = blk_hello_decode(msg, BLK_HELLO, &depth);
			break;
		case 'w':
			blk_welcome_encode(msg, &shape);
			poke(msg, BLK_WELCOME, bad[i].at, bad[i].n, bad[i].v);
			wrong = blk_welcome_decode(msg, BLK_WELCOME, &s);
			break;
		case 'd':
			blk_completion_encode(msg, &done);
			poke(msg, BLK_COMPLETION, bad[i].at, bad[i].n, bad[i].v);
			wrong = blk_completion_decode(msg, BLK_COMPLETION, &done2);
			break;
		default:
			blk_command_encode(msg, bad[i].kind == 'f' ? &flush : &write_cmd);
			assert_null(blk_command_decode(msg, BLK_COMMAND, &c));
			c = before;
			poke(msg, BLK_COMMAND, bad[i].at, bad[i].n, bad[i].v);
			wrong = blk_command_decode(msg, BLK_COMMAND, &c);
			assert_memory_equal(&c, &before, sizeof(c));
		}
		if (wrong == NULL)
			fail_msg("%c: %u bytes at %u can be %#llx", bad[i].kind, bad[i].n,
				 bad[i].at, (unsigned long long)bad[i].v);
	}
}

static enum blk_status
check(uint8_t op, uint64_t offset, uint32_t length, bool read_only)
{
	struct blk_command c = {.op = op, .offset = offset, .length = length};
	struct bb_blk_shape s = shape;

	s.read_only = read_only;
	return blk_command_check(&c, &s);
}

TEST(test_command_outside_the_medium_is_refused)
{
	const uint64_t end = shape.capacity;

	assert_int_equal(check(BB_BLK_READ, 0, 4096, false), BLK_OK);
	assert_int_equal(check(BB_BLK_READ, end - 4096, 4096, false), BLK_OK);
	assert_int_equal(check(BB_BLK_READ, end - 131072, 131072, false), BLK_OK);
	assert_int_equal(check(BB_BLK_WRITE, 0, 4096, false), BLK_OK);
	assert_int_equal(check(BB_BLK_FLUSH, 0, 0, true), BLK_OK);
	assert_int_equal(check(BB_BLK_READ, 0, 4095, false), BLK_INVALID);
	assert_int_equal(check(BB_BLK_READ, 512, 4096, false), BLK_INVALID);
	assert_int_equal(check(BB_BLK_READ, 0, 131072 + 4096, false), BLK_INVALID);
	assert_int_equal(check(BB_BLK_READ, end, 4096, false), BLK_RANGE);
	assert_int_equal(check(BB_BLK_READ, end - 4096, 8192, false), BLK_RANGE);
	assert_int_equal(check(BB_BLK_READ, UINT64_MAX - 4095, 4096, false), BLK_RANGE);
	assert_int_equal(check(BB_BLK_READ, UINT64_MAX - 4095, 8192, false), BLK_RANGE);
	assert_int_equal(check(BB_BLK_WRITE, 0, 4096, true), BLK_READONLY);
	assert_int_equal(check(BB_BLK_READ, 0, 4096, true), BLK_OK);
}

TEST(test_every_status_has_name_and_errno)
{
	for (unsigned int i = 0; i < BLK_STATUSES; i++) {
		assert_string_not_equal(blk_status_name((enum blk_status)i), "unknown status");
		assert_true(blk_status_errno((enum blk_status)i) <= 0);
	}
	assert_string_equal(blk_status_name(BLK_STATUSES), "unknown status");
	assert_int_equal(blk_status_errno(BLK_STATUSES), -EPROTO);
	assert_int_equal(blk_status_errno(BLK_OK), 0);
	assert_int_equal(blk_status_errno(BLK_NOSPACE), -ENOSPC);
}

TEST_MAIN(0)
