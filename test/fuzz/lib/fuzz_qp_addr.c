/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A packed QP address from an untrusted source. A rejected one leaves the caller's values alone.
 * An accepted one is in range and gives the same bytes when packed again.
 */
#include <string.h>

#include "bb_qp.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t again[BB_QP_ADDR_PACKED];
	struct bb_qp_addr a;

	memset(&a, FUZZ_FILL, sizeof(a));
	if (bb_qp_addr_unpack(data, len, &a) != 0) {
		fuzz_check(fuzz_untouched(&a, sizeof(a)));
		return 0;
	}
	fuzz_check(len == BB_QP_ADDR_PACKED);
	fuzz_check(a.qpn > 1 && a.qpn < 0xffffff && a.psn <= 0xffffff);
	fuzz_check(a.mtu >= 256 && a.mtu <= 4096 && (a.mtu & (a.mtu - 1)) == 0);
	fuzz_check(bb_qp_addr_pack(&a, again, sizeof(again)) == BB_QP_ADDR_PACKED);
	fuzz_check(memcmp(again, data, sizeof(again)) == 0);
	return 0;
}
