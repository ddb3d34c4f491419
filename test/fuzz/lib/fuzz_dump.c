/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Dumps of WQEs and CQEs of random bytes. Byte 0: log2 of the ring's blocks (0 to 4). Bytes 1 and
 * 2: index of the WQE. The rest fills the ring, repeated if it is short. Memory has the exact
 * size, so that AddressSanitizer detects every read outside it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bb_cqe.h"
#include "bb_wqe_priv.h"
#include "fuzz.h"

#define TEXT_MAX 8192

/* The text has the returned length, and a short buffer gets its start. */
#define CHECK_DUMP(call_)                                                                          \
	do {                                                                                       \
		size_t size = TEXT_MAX;                                                            \
		char *buf = whole;                                                                 \
		int n = call_, m;                                                                  \
		fuzz_check(n > 0 && n < TEXT_MAX && strlen(whole) == (size_t)n);                   \
		size = (size_t)n / 2 + 1;                                                          \
		buf = malloc(size);                                                                \
		fuzz_check(buf != NULL);                                                           \
		m = call_;                                                                         \
		fuzz_check(m == n && strlen(buf) == size - 1 &&                                    \
			   memcmp(buf, whole, size - 1) == 0);                                     \
		free(buf);                                                                         \
		buf = NULL;                                                                        \
		size = 0;                                                                          \
		fuzz_check((call_) == n);                                                          \
	} while (0)

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static char whole[TEXT_MAX];
	struct bb_wqe_piece pieces[4];
	struct bb_cqe cqe;
	uint32_t blocks;
	uint8_t *ring;
	uint16_t idx;

	if (len < 4)
		return 0;
	blocks = 1u << data[0] % 5;
	idx = (uint16_t)(data[1] << 8 | data[2]);
	data += 3;
	len -= 3;
	ring = malloc((size_t)blocks * BB_WQE_BB);
	fuzz_check(ring != NULL);
	for (size_t i = 0; i < (size_t)blocks * BB_WQE_BB; i++)
		ring[i] = data[i % len];
	CHECK_DUMP(bb_wqe_dump(buf, size, ring, blocks, idx, false));
	CHECK_DUMP(bb_wqe_dump(buf, size, ring, blocks, idx, true));
	CHECK_DUMP(bb_recv_wqe_dump(buf, size, ring, blocks * BB_WQE_BB));
	fuzz_check(bb_wqe_pieces(pieces, 4, ring, blocks, idx, false) <= 4);
	fuzz_check(bb_wqe_pieces(pieces, 4, ring, blocks, idx, true) <= 4);
	fuzz_check(bb_recv_wqe_pieces(pieces, 4, ring, blocks * BB_WQE_BB) <= 4);
	memcpy(&cqe, ring, sizeof(cqe));
	CHECK_DUMP(bb_cqe_dump(buf, size, &cqe));
	free(ring);
	return 0;
}
