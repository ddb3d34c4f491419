/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RDMA_WRITE and RDMA_WRITE_WITH_IMM. */
#include "modes.h"

POST_ONE
write_one(const struct pair *p, const struct request *rq)
{
	(void)p;
	return bb_post_write(rq->qp, rq->wr_id, rq->sge, rq->pieces, rq->raddr, rq->rkey,
			     rq->flags);
}

static __rte_always_inline int
write_inline(const struct request *rq, uint32_t len)
{
	return bb_post_write_inline(rq->qp, rq->wr_id, inline_data(rq), len, rq->raddr, rq->rkey,
				    rq->flags);
}

POST_ONE
write_inline_one(const struct pair *p, const struct request *rq)
{
	(void)p;
	return write_inline(rq, rq->size);
}

POST_ONE
write_inline8_one(const struct pair *p, const struct request *rq)
{
	(void)p;
	return write_inline(rq, 8);
}

int
write_post(struct pair *p, uint32_t n)
{
	if (p->t->test->use_inline)
		return post_each_inline(p, n, write_inline_one, write_inline8_one);
	return post_each(p, n, write_one);
}

POST_ONE
write_imm_one(const struct pair *p, const struct request *rq)
{
	return bb_post_write_imm(rq->qp, rq->wr_id, rq->sge, rq->pieces, rq->raddr, rq->rkey,
				 op_imm(p, rq->op), rq->flags);
}

POST_ONE
write_imm_inline_one(const struct pair *p, const struct request *rq)
{
	return bb_post_write_imm_inline(rq->qp, rq->wr_id, inline_data(rq), rq->size, rq->raddr,
					rq->rkey, op_imm(p, rq->op), rq->flags);
}

static int
write_imm_post(struct pair *p, uint32_t n)
{
	if (p->t->test->use_inline)
		return post_pieces(p, n, 1, write_imm_inline_one);
	return post_each(p, n, write_imm_one);
}

/*
 * A WRITE with immediate data consumes a receive, but its payload does not go to the receive's
 * buffer.
 */
static int
write_imm_post_recv(struct pair *p, uint32_t n)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < n; i++) {
		rc = bb_post_recv(p->peer, WR_RECV | (p->wr_base + p->recv_posted), NULL, 0);
		if (unlikely(rc != 0))
			break;
		p->recv_posted++;
	}
	return burst_result(rc, i);
}

const struct engine engine_write = {
	.name = "write",
	.help = "RDMA_WRITE",
	.to_target = true,
	.wc_opcode = BB_WC_RDMA_WRITE,
	.post = write_post,
	.prepare = data_prepare,
	.verify = data_verify,
	.arrived = data_arrived,
};

const struct engine engine_write_imm = {
	.name = "write_imm",
	.help = "RDMA_WRITE_WITH_IMM, takes a receive",
	.recv = true,
	.imm = true,
	.to_target = true,
	.wc_opcode = BB_WC_RDMA_WRITE,
	.recv_opcode = BB_WC_RECV_RDMA_IMM,
	.post = write_imm_post,
	.post_recv = write_imm_post_recv,
	.prepare = data_prepare,
	.verify = data_verify,
	.arrived = data_arrived,
};
