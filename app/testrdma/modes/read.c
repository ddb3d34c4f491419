/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RDMA_READ: the target's slot is the source, ours the destination. */
#include "modes.h"

static inline int
read_one(struct pair *p, uint64_t wr_id, const struct bb_sge *sge, uint32_t pieces)
{
	return bb_post_read(p->qp, wr_id, sge, pieces, target_addr(p, p->slot), p->target_rkey,
			    pair_flags(p));
}

static int
read_post(struct pair *p, uint32_t n)
{
	return post_each(p, n, read_one);
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
