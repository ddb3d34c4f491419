/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RDMA_READ: the target's slot is the source, ours the destination. */
#include "modes.h"

static int
read_post(struct pair *p, uint32_t n)
{
	const struct test *t = p->t;
	uint64_t base = (uint64_t)(uintptr_t)p->local;
	struct bb_sge sge[MAX_SGL];
	uint32_t i;
	int rc = 1;

	for (i = 0; i < n; i++) {
		uint32_t pieces = slot_sges(&t->local, base, p->slot, sge);

		rc = bb_post_read(p->qp, p->wr_base + p->posted, sge, pieces,
				  slot_addr(&t->remote, p->remote, p->slot), t->remote.mr->rkey,
				  pair_flags(p));
		if (unlikely(rc != 1))
			break;
		pair_advance(p);
	}
	return rc < 0 ? rc : (int)i;
}

const struct engine engine_read = {
	.name = "read",
	.help = "RDMA_READ",
	.wc_opcode = BB_WC_RDMA_READ,
	.has_byte_len = true,
	.post = read_post,
	.prepare = data_prepare,
	.verify = data_verify,
	.arrived = data_arrived,
};
