/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * SEND and SEND_WITH_IMM. Receives complete in the order they were posted, so
 * operation n lands in the receive of slot n; each is a little longer than its
 * message, and the bytes behind the message are guards.
 */
#include "modes.h"

static inline int
send_one(struct pair *p, uint64_t wr_id, const struct bb_sge *sge, uint32_t pieces)
{
	if (p->t->row->use_inline)
		return bb_post_send_inline(p->qp, wr_id, (const void *)(uintptr_t)sge[0].addr,
					   p->t->row->size, pair_flags(p));
	return bb_post_send(p->qp, wr_id, sge, pieces, pair_flags(p));
}

int
send_post(struct pair *p, uint32_t n)
{
	return post_each(p, n, send_one);
}

static inline int
send_imm_one(struct pair *p, uint64_t wr_id, const struct bb_sge *sge, uint32_t pieces)
{
	uint32_t imm = op_imm(p, p->posted);

	if (p->t->row->use_inline)
		return bb_post_send_imm_inline(p->qp, wr_id, (const void *)(uintptr_t)sge[0].addr,
					       p->t->row->size, imm, pair_flags(p));
	return bb_post_send_imm(p->qp, wr_id, sge, pieces, imm, pair_flags(p));
}

static int
send_imm_post(struct pair *p, uint32_t n)
{
	return post_each(p, n, send_imm_one);
}

int
send_post_recv(struct pair *p, uint32_t n)
{
	const struct test *t = p->t;
	uint64_t base = (uint64_t)(uintptr_t)p->remote;
	struct bb_sge sge[MAX_SGL];
	uint32_t i, pieces;
	int rc = 1;

	for (i = 0; i < n; i++) {
		pieces = slot_sges(p->far, base, p->recv_slot, sge);
		sge[pieces - 1].len += RECV_SLACK;
		rc = bb_post_recv(p->peer, WR_RECV | (p->wr_base + p->recv_posted), sge, pieces);
		if (unlikely(rc != 1))
			break;
		p->recv_posted++;
		if (++p->recv_slot == t->row->slots)
			p->recv_slot = 0;
	}
	return rc < 0 ? rc : (int)i;
}

const struct engine engine_send = {
	.name = "send",
	.help = "SEND into a receive",
	.recv = true,
	.recv_data = true,
	.to_target = true,
	.wc_opcode = BB_WC_SEND,
	.recv_opcode = BB_WC_RECV,
	.post = send_post,
	.post_recv = send_post_recv,
	.prepare = data_prepare,
	.verify = data_verify,
	.arrived = data_arrived,
};

const struct engine engine_send_imm = {
	.name = "send_imm",
	.help = "SEND_WITH_IMM",
	.recv = true,
	.recv_data = true,
	.imm = true,
	.to_target = true,
	.wc_opcode = BB_WC_SEND,
	.recv_opcode = BB_WC_RECV,
	.post = send_imm_post,
	.post_recv = send_post_recv,
	.prepare = data_prepare,
	.verify = data_verify,
	.arrived = data_arrived,
};
