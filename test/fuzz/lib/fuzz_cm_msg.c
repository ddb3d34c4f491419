/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages that a peer of lib/connect may send over TCP. A rejected message leaves the caller's
 * values alone. An accepted one stays inside the body and gives the same bytes when encoded
 * again.
 */
#include <string.h>

#include "bb_cm_msg.h"
#include "fuzz.h"

static void
check_regions(const uint8_t *data, size_t len)
{
	struct bb_region out[BB_REGION_MAX];
	uint8_t again[BB_REGION_MAX * BB_REGION_PACKED];
	int n;

	memset(out, FUZZ_FILL, sizeof(out));
	n = bb_region_unpack(data, len, out, BB_REGION_MAX);
	if (n < 0) {
		fuzz_check(fuzz_untouched(out, sizeof(out)));
		return;
	}
	fuzz_check((size_t)bb_region_pack(out, (uint32_t)n, again, sizeof(again)) == len);
	fuzz_check(memcmp(again, data, len) == 0);
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
	memset(&h, FUZZ_FILL, sizeof(h));
	if (bb_cm_header_decode(data, &h) != NULL) {
		fuzz_check(fuzz_untouched(&h, sizeof(h)) || h.version != BB_CM_VERSION);
		return 0;
	}
	fuzz_check(h.len <= BB_CM_BODY_MAX);
	/* The body's length is set in the header; a fuzzer need not find it. */
	data += BB_CM_HEADER;
	len -= BB_CM_HEADER;
	memset(&msg, FUZZ_FILL, sizeof(msg));
	memset(out, FUZZ_FILL, sizeof(out));
	if (bb_cm_body_decode(h.type, data, len, &msg, out) != NULL) {
		fuzz_check(fuzz_untouched(&msg, sizeof(msg)) && fuzz_untouched(out, sizeof(out)));
		return 0;
	}
	fuzz_check(msg.type == h.type && bb_cm_msg_name(msg.type)[0] != '?');
	fuzz_check(msg.private_len <= BB_CM_PRIVATE_MAX && msg.nregions <= BB_REGION_MAX);
	if (msg.private_len != 0)
		fuzz_check((const uint8_t *)msg.private + msg.private_len == data + len);
	fuzz_check(bb_cm_msg_encode(again, &msg) == BB_CM_HEADER + len);
	fuzz_check(memcmp(again + BB_CM_HEADER, data, len) == 0);
	return 0;
}
