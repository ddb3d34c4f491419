/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * MADs that any host may send to QP1. A rejected MAD leaves the caller's message alone. An accepted
 * one keeps its fields when it is built and parsed again, and its private data is inside the MAD.
 */
#include <string.h>

#include "bb_ibcm_ip.h"
#include "bb_ibcm_msg.h"
#include "fuzz.h"

static void
check_ip(const uint8_t *data, uint32_t len)
{
	uint8_t bytes[BB_IBCM_IP_LEN];
	struct bb_ibcm_ip ip, again;

	memset(&ip, FUZZ_FILL, sizeof(ip));
	if (!bb_ibcm_ip_parse(&ip, data, len)) {
		fuzz_check(fuzz_untouched(&ip, sizeof(ip)));
		return;
	}
	bb_ibcm_ip_build(bytes, &ip);
	memset(&again, FUZZ_FILL, sizeof(again));
	fuzz_check(bb_ibcm_ip_parse(&again, bytes, sizeof(bytes)));
	fuzz_check(memcmp(&ip, &again, sizeof(ip)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t mad[BB_IBCM_MAD], twice[BB_IBCM_MAD];
	struct bb_ibcm_msg msg, again;

	memset(&msg, FUZZ_FILL, sizeof(msg));
	if (bb_ibcm_parse(&msg, data, len) != BB_IBCM_PARSED) {
		fuzz_check(fuzz_untouched(&msg, sizeof(msg)));
		return 0;
	}
	fuzz_check(len == BB_IBCM_MAD && bb_ibcm_type_str(msg.type)[0] != '?');
	fuzz_check(msg.priv > data && msg.priv + msg.priv_len == data + len);
	fuzz_check(bb_ibcm_build(mad, &msg));
	fuzz_check(bb_ibcm_parse(&again, mad, sizeof(mad)) == BB_IBCM_PARSED);
	fuzz_check(bb_ibcm_build(twice, &again) && memcmp(mad, twice, sizeof(mad)) == 0);
	/* All fields are equal; only the place of the private data differs. */
	again.priv = msg.priv;
	fuzz_check(memcmp(&msg, &again, sizeof(msg)) == 0);
	check_ip(msg.priv, msg.priv_len);
	return 0;
}
