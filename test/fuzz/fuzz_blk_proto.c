/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages between clients and the block target. The first byte selects the decoder, and whether
 * the checksum is corrected, so that inputs get past it. An accepted message gives the same bytes
 * when encoded again. A rejected message leaves the caller's values alone. A command that is
 * reported to be in bounds must be.
 */
#include <stdlib.h>
#include <string.h>

#include "blk_proto.h"
#include "fuzz.h"

static void
check_command(const uint8_t *msg, size_t len)
{
	static const struct bb_blk_shape shape = {
		.capacity = 1 << 24, .block = 512, .max_io = 131072, .queues = 1, .depth = 1};
	uint8_t again[BLK_COMMAND];
	struct blk_command c;

	memset(&c, FUZZ_FILL, sizeof(c));
	if (blk_command_decode(msg, len, &c) != NULL) {
		fuzz_check(fuzz_untouched(&c, sizeof(c)));
		return;
	}
	blk_command_encode(again, &c);
	fuzz_check(len == sizeof(again) && memcmp(again, msg, len) == 0);
	if (blk_command_check(&c, &shape) == BLK_OK && c.op != BB_BLK_FLUSH)
		fuzz_check(c.length >= shape.block && c.length <= shape.max_io &&
			   c.offset < shape.capacity && c.length <= shape.capacity - c.offset &&
			   (c.offset | c.length) % shape.block == 0);
}

static void
check_completion(const uint8_t *msg, size_t len)
{
	uint8_t again[BLK_COMPLETION];
	struct blk_completion c;

	memset(&c, FUZZ_FILL, sizeof(c));
	if (blk_completion_decode(msg, len, &c) != NULL) {
		fuzz_check(fuzz_untouched(&c, sizeof(c)));
		return;
	}
	blk_completion_encode(again, &c);
	fuzz_check(len == sizeof(again) && memcmp(again, msg, len) == 0);
	fuzz_check(blk_status_errno(c.status) <= 0 && blk_status_name(c.status)[0] != '\0');
}

static void
check_welcome(const uint8_t *msg, size_t len)
{
	uint8_t again[BLK_WELCOME];
	struct bb_blk_shape s;

	memset(&s, FUZZ_FILL, sizeof(s));
	if (blk_welcome_decode(msg, len, &s) != NULL) {
		fuzz_check(fuzz_untouched(&s, sizeof(s)));
		return;
	}
	fuzz_check(s.depth >= 1 && s.depth <= BB_BLK_MAX_DEPTH && s.max_io >= s.block);
	fuzz_check(s.max_io <= BB_BLK_MAX_IO && s.capacity % s.block == 0 && s.queues >= 1);
	blk_welcome_encode(again, &s);
	fuzz_check(len == sizeof(again) && memcmp(again, msg, len) == 0);
}

static void
check_hello(const uint8_t *msg, size_t len)
{
	uint8_t again[BLK_HELLO];
	uint32_t depth;

	memset(&depth, FUZZ_FILL, sizeof(depth));
	if (blk_hello_decode(msg, len, &depth) != NULL) {
		fuzz_check(fuzz_untouched(&depth, sizeof(depth)));
		return;
	}
	blk_hello_encode(again, depth);
	fuzz_check(depth >= 1 && len == sizeof(again) && memcmp(again, msg, len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t msg[64], kind;
	uint32_t crc;

	if (len == 0)
		return 0;
	kind = *data++;
	len--;
	if (len > sizeof(msg))
		len = sizeof(msg);
	memcpy(msg, data, len);
	if (kind >= 'a' && len >= 4) {
		crc = blk_crc(msg, (uint32_t)len - 4);
		for (uint32_t i = 0; i < 4; i++)
			msg[len - 4 + i] = (uint8_t)(crc >> 8 * i);
	}
	switch (kind | 0x20) {
	case 'c':
		check_command(msg, len);
		break;
	case 'd':
		check_completion(msg, len);
		break;
	case 'w':
		check_welcome(msg, len);
		break;
	case 'h':
		check_hello(msg, len);
		break;
	default:
		break;
	}
	return 0;
}
