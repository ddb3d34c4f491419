/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RDMA_READ: the target's slot is the source, the local slot the destination. */
#include "modes.h"

POST_ONE
read_one(const struct pair *p, const struct request *rq)
{
	(void)p;
	return bb_post_read(rq->qp, rq->wr_id, rq->sge, rq->pieces, rq->raddr, rq->rkey, rq->flags);
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
