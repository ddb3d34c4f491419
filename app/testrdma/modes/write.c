/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RDMA_WRITE and RDMA_WRITE_WITH_IMM. */
#include "modes.h"

static inline int
write_one(struct pair *p, uint64_t wr_id, const struct bb_sge *sge, uint32_t pieces)
{
	uint64_t raddr = target_addr(p, p->slot);

	if (p->t->row->use_inline)
		return bb_post_write_inline(p->qp, wr_id, (const void *)(uintptr_t)sge[0].addr,
					    p->t->row->size, raddr, p->target_rkey, pair_flags(p));
	return bb_post_write(p->qp, wr_id, sge, pieces, raddr, p->target_rkey, pair_flags(p));
}

int
write_post(struct pair *p, uint32_t n)
{
	return post_each(p, n, write_one);
}

static inline int
write_imm_one(struct pair *p, uint64_t wr_id, const struct bb_sge *sge, uint32_t pieces)
{
	uint64_t raddr = target_addr(p, p->slot);
	uint32_t imm = op_imm(p, p->posted);

	if (p->t->row->use_inline)
		return bb_post_write_imm_inline(p->qp, wr_id, (const void *)(uintptr_t)sge[0].addr,
						p->t->row->size, raddr, p->target_rkey, imm,
						pair_flags(p));
	return bb_post_write_imm(p->qp, wr_id, sge, pieces, raddr, p->target_rkey, imm,
				 pair_flags(p));
}

static int
write_imm_post(struct pair *p, uint32_t n)
{
	return post_each(p, n, write_imm_one);
}

/* The immediate takes a receive; the payload does not use its buffer. */
static int
write_imm_post_recv(struct pair *p, uint32_t n)
{
	uint32_t i;
	int rc = 1;

	for (i = 0; i < n; i++) {
		rc = bb_post_recv(p->peer, WR_RECV | (p->wr_base + p->recv_posted), NULL, 0);
		if (unlikely(rc != 1))
			break;
		p->recv_posted++;
	}
	return rc < 0 ? rc : (int)i;
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
