/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What a peer of lib/connect may send over TCP. What is refused leaves the caller's values alone;
 * what is taken is the same bytes when it is encoded again, and inside the body.
 */
#include <stdlib.h>
#include <string.h>

#include "bb_cm_msg.h"
#include "fuzz.h"

static void
check(bool ok)
{
	if (!ok)
		abort();
}

static bool
untouched(const void *v, size_t len)
{
	const uint8_t *p = v;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != 0x5a)
			return false;
	return true;
}

static void
check_regions(const uint8_t *data, size_t len)
{
	struct bb_region out[BB_REGION_MAX];
	uint8_t again[BB_REGION_MAX * BB_REGION_PACKED];
	int n;

	memset(out, 0x5a, sizeof(out));
	n = bb_region_unpack(data, len, out, BB_REGION_MAX);
	if (n < 0) {
		check(untouched(out, sizeof(out)));
		return;
	}
	check((size_t)bb_region_pack(out, (uint32_t)n, again, sizeof(again)) == len);
	check(memcmp(again, data, len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bb_region out[BB_REGION_MAX];
	uint8_t again[BB_CM_MSG_MAX];
	struct bb_cm_header h;
	struct bb_cm_msg msg;

	check_regions(data, len);
	if (len < BB_CM_HEADER)
		return 0;
	memset(&h, 0x5a, sizeof(h));
	if (bb_cm_header_decode(data, &h) != NULL) {
		check(untouched(&h, sizeof(h)) || h.version != BB_CM_VERSION);
		return 0;
	}
	check(h.len <= BB_CM_BODY_MAX);
	/* A body is as long as its header says; a fuzzer need not find that length. */
	data += BB_CM_HEADER;
	len -= BB_CM_HEADER;
	memset(&msg, 0x5a, sizeof(msg));
	memset(out, 0x5a, sizeof(out));
	if (bb_cm_body_decode(h.type, data, len, &msg, out) != NULL) {
		check(untouched(&msg, sizeof(msg)) && untouched(out, sizeof(out)));
		return 0;
	}
	check(msg.type == h.type && bb_cm_msg_name(msg.type)[0] != '?');
	check(msg.private_len <= BB_CM_PRIVATE_MAX && msg.nregions <= BB_REGION_MAX);
	if (msg.private_len != 0)
		check((const uint8_t *)msg.private + msg.private_len == data + len);
	check(bb_cm_msg_encode(again, &msg) == BB_CM_HEADER + len);
	check(memcmp(again + BB_CM_HEADER, data, len) == 0);
	return 0;
}
