/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RDMA_WRITE and RDMA_WRITE_WITH_IMM. */
#include "modes.h"

static int
write_post(struct pair *p, uint32_t n)
{
	const struct test *t = p->t;
	const struct row *row = t->row;
	uint64_t base = (uint64_t)(uintptr_t)p->local;
	struct bb_sge sge[MAX_SGL];
	uint32_t i;
	int rc = 1;

	for (i = 0; i < n; i++) {
		uint64_t wr_id = p->wr_base + p->posted;
		uint64_t raddr = slot_addr(&t->remote, p->remote, p->slot);
		uint32_t pieces = slot_sges(&t->local, base, p->slot, sge);

		if (row->use_inline)
			rc = bb_post_write_inline(p->qp, wr_id, (const void *)sge[0].addr,
						  row->size, raddr, t->remote.mr->rkey,
						  pair_flags(p));
		else
			rc = bb_post_write(p->qp, wr_id, sge, pieces, raddr, t->remote.mr->rkey,
					   pair_flags(p));
		if (unlikely(rc != 1))
			break;
		pair_advance(p);
	}
	return rc < 0 ? rc : (int)i;
}

static int
write_imm_post(struct pair *p, uint32_t n)
{
	const struct test *t = p->t;
	const struct row *row = t->row;
	uint64_t base = (uint64_t)(uintptr_t)p->local;
	struct bb_sge sge[MAX_SGL];
	uint32_t i;
	int rc = 1;

	for (i = 0; i < n; i++) {
		uint64_t wr_id = p->wr_base + p->posted;
		uint64_t raddr = slot_addr(&t->remote, p->remote, p->slot);
		uint32_t pieces = slot_sges(&t->local, base, p->slot, sge);
		uint32_t imm = op_imm(p, p->posted);

		if (row->use_inline)
			rc = bb_post_write_imm_inline(p->qp, wr_id, (const void *)sge[0].addr,
						      row->size, raddr, t->remote.mr->rkey, imm,
						      pair_flags(p));
		else
			rc = bb_post_write_imm(p->qp, wr_id, sge, pieces, raddr, t->remote.mr->rkey,
					       imm, pair_flags(p));
		if (unlikely(rc != 1))
			break;
		pair_advance(p);
	}
	return rc < 0 ? rc : (int)i;
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
