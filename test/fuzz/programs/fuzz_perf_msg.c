/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages of a peer of bb_perf over TCP. The first byte selects the decoder, the rest is the
 * message. A rejected message leaves the caller's values alone. An accepted one is the same after
 * encoding and decoding again, and within the ranges that the program computes with.
 */
#include <string.h>

#include "fuzz.h"
#include "perf_msg.h"

static void
check_pingpong(const uint8_t *msg, size_t len)
{
	struct msg_addr a, b;
	uint8_t again[MSG_PINGPONG];

	memset(&a, FUZZ_FILL, sizeof(a));
	if (msg_pingpong_decode(msg, len, &a) != NULL) {
		fuzz_check(fuzz_untouched(&a, sizeof(a)));
		return;
	}
	fuzz_check(len == MSG_PINGPONG && a.qpn <= 0xffffff && a.psn <= 0xffffff);
	msg_pingpong_encode(again, &a);
	fuzz_check(msg_pingpong_decode(again, sizeof(again), &b) == NULL);
	fuzz_check(a.lid == b.lid && a.qpn == b.qpn && a.psn == b.psn);
	fuzz_check(memcmp(a.gid, b.gid, sizeof(a.gid)) == 0);
}

static void
check_keys(const uint8_t *msg, size_t len)
{
	struct msg_keys a, b;
	uint8_t again[MSG_KEYS_GID];

	memset(&a, FUZZ_FILL, sizeof(a));
	if (msg_keys_decode(msg, len, &a) != NULL) {
		fuzz_check(fuzz_untouched(&a, sizeof(a)));
		return;
	}
	fuzz_check(len == MSG_KEYS || len == MSG_KEYS_GID || len == MSG_KEYS_CM);
	fuzz_check(a.addr.qpn <= 0xffffff && a.addr.psn <= 0xffffff);
	msg_keys_encode(again, len, &a);
	fuzz_check(msg_keys_decode(again, len, &b) == NULL);
	fuzz_check(a.rkey == b.rkey && a.vaddr == b.vaddr && a.srqn == b.srqn);
	fuzz_check(a.out_reads == b.out_reads && a.addr.psn == b.addr.psn);
	fuzz_check(memcmp(a.addr.gid, b.addr.gid, sizeof(a.addr.gid)) == 0);
}

static void
check_version(const uint8_t *msg, size_t len)
{
	uint32_t v = 0x5a5a5a5a, w;
	uint8_t again[MSG_VERSION];

	if (msg_version_decode(msg, len, &v) != NULL) {
		fuzz_check(v == 0x5a5a5a5a);
		return;
	}
	fuzz_check(v <= 999999);
	msg_version_encode(again, v);
	fuzz_check(msg_version_decode(again, sizeof(again), &w) == NULL && v == w);
}

/* Any accepted sizes give places inside the cycle buffer. */
static void
check_sizes(const uint8_t *msg, size_t len)
{
	uint32_t cycle = 0x5a5a5a5a, line = 0x5a5a5a5a, size;
	struct msg_cycle c;

	if (len < 2 * MSG_U32)
		return;
	if (msg_cycle_decode(msg, MSG_U32, &cycle) != NULL ||
	    msg_line_decode(msg + MSG_U32, MSG_U32, &line) != NULL)
		return;
	fuzz_check(cycle <= MSG_MAX_CYCLE && line <= MSG_MAX_LINE);
	cycle = cycle < 4096 ? 4096 : cycle;
	line = line < 64 ? 64 : line;
	for (size = 1; size <= 2 * cycle; size = size * 3 + 1) {
		msg_cycle_of(&c, size, cycle, line);
		fuzz_check(c.slots >= 1);
		for (uint64_t n = 0; n < 3; n++)
			fuzz_check(c.slots == 1 ||
				   msg_slot_offset(&c, c.slots * n + c.slots - 1) + size <= cycle);
	}
}

static void
check_report(const uint8_t *msg, size_t len)
{
	uint8_t again[MSG_REPORT_PARTS * MSG_REPORT_PART];
	struct msg_report r;

	if (msg_report_decode(msg, len, &r) != NULL)
		return;
	(void)msg_report_usable(&r);
	msg_report_encode(again, &r);
	fuzz_check(len == sizeof(again) && memcmp(again, msg, len) == 0);
}

static void
check_mtu(const uint8_t *msg, size_t len)
{
	uint8_t again[MSG_MTU];
	uint32_t mtu;

	if (msg_mtu_decode(msg, len, &mtu) != NULL)
		return;
	fuzz_check(mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0);
	msg_mtu_encode(again, mtu);
	fuzz_check(memcmp(again, msg, sizeof(again)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	switch (*data++) {
	case 'p':
		check_pingpong(data, len - 1);
		break;
	case 'k':
		check_keys(data, len - 1);
		break;
	case 'v':
		check_version(data, len - 1);
		break;
	case 's':
		check_sizes(data, len - 1);
		break;
	case 'm':
		check_mtu(data, len - 1);
		break;
	case 'r':
		check_report(data, len - 1);
		break;
	default:
		(void)msg_done_decode(data, len - 1);
	}
	return 0;
}
