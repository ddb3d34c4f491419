/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A completion ring of random bytes, walked as core does: compressed blocks are expanded, one
 * queue is purged, the rest moves to another ring. Byte 0: log2 of the ring's CQEs (0 to 5). Byte
 * 1: the same for the other ring. Byte 2: CQEs consumed before the start. Byte 3: CQEs consumed
 * before the move. The rest fills the ring, repeated if it is short. Memory has the exact size,
 * so that AddressSanitizer detects every access outside it.
 */
#include <stdlib.h>
#include <string.h>

#include "bb_cqring.h"
#include "fuzz.h"

static void *
cqes(uint32_t log_size)
{
	void *p = aligned_alloc(64, (size_t)64 << log_size);

	fuzz_check(p != NULL);
	return p;
}

static void
consume(struct bb_cqring *cq, uint32_t n)
{
	while (n-- != 0) {
		struct bb_cqe *cqe = bb_cqring_peek(cq);

		if (cqe == NULL)
			return;
		if (bb_cqe_is_compressed(cqe)) {
			uint8_t own = cqe->op_own & 1;

			(void)bb_cqring_expand(cq, cqe);
			/* Expanded or not a block: in both cases a single CQE. */
			if (bb_cqe_is_compressed(cqe) || (cqe->op_own & 1) != own)
				abort();
		}
		cq->ci++;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint32_t dbrec[2] __attribute__((aligned(8)));
	uint32_t log_size, log_other, before, ci;
	struct bb_cqring cq;
	uint8_t *ring, *other;
	int ret;

	if (len < 5)
		return 0;
	log_size = data[0] % 6;
	log_other = data[1] % 6;
	ring = cqes(log_size);
	other = cqes(log_other);
	if (bb_cqring_init(&cq, ring, log_size, dbrec) != 0)
		abort();
	cq.compress = 1;
	cq.ci = data[2];
	before = data[3];
	data += 4;
	len -= 4;
	for (uint32_t i = 0; i < 64u << log_size; i++)
		ring[i] = data[i % len];
	consume(&cq, before);
	(void)bb_cqring_purge(&cq, 0x1234);
	bb_cqring_clear(other, log_other);
	ci = cq.ci;
	ret = bb_cqring_move(&cq, other, log_other);
	if (ret == 0 ? cq.buf != other || cq.ci != ci + 1 : cq.buf != ring || cq.ci != ci)
		abort();
	consume(&cq, 64);
	free(ring);
	free(other);
	return 0;
}
