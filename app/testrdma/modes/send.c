/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * SEND and SEND_WITH_IMM. Receives complete in the order in which they were posted, so operation n
 * uses the receive of slot n. The buffer of a receive is a little longer than its message. The
 * extra bytes are guard bytes.
 */
#include "modes.h"

POST_ONE
send_one(const struct pair *p, const struct request *rq)
{
	(void)p;
	return bb_post_send(rq->qp, rq->wr_id, rq->sge, rq->pieces, rq->flags);
}

POST_ONE
send_inline_one(const struct pair *p, const struct request *rq)
{
	(void)p;
	return bb_post_send_inline(rq->qp, rq->wr_id, inline_data(rq), rq->size, rq->flags);
}

int
send_post(struct pair *p, uint32_t n)
{
	if (p->t->test->use_inline)
		return post_pieces(p, n, 1, send_inline_one);
	return post_each(p, n, send_one);
}

POST_ONE
send_imm_one(const struct pair *p, const struct request *rq)
{
	return bb_post_send_imm(rq->qp, rq->wr_id, rq->sge, rq->pieces, op_imm(p, rq->op),
				rq->flags);
}

POST_ONE
send_imm_inline_one(const struct pair *p, const struct request *rq)
{
	return bb_post_send_imm_inline(rq->qp, rq->wr_id, inline_data(rq), rq->size,
				       op_imm(p, rq->op), rq->flags);
}

static int
send_imm_post(struct pair *p, uint32_t n)
{
	if (p->t->test->use_inline)
		return post_pieces(p, n, 1, send_imm_inline_one);
	return post_each(p, n, send_imm_one);
}

int
send_post_recv(struct pair *p, uint32_t n)
{
	const struct tester *t = p->t;
	const uint32_t pieces = p->target->lay.n;
	struct bb_sge sge[MAX_SGL];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < n; i++) {
		slot_sges(p->target, p->remote, p->recv_slot, sge, pieces);
		sge[pieces - 1].len += RECV_SLACK;
		rc = bb_post_recv(p->peer, WR_RECV | (p->wr_base + p->recv_posted), sge, pieces);
		if (unlikely(rc != 0))
			break;
		p->recv_posted++;
		if (++p->recv_slot == t->test->slots)
			p->recv_slot = 0;
	}
	return burst_result(rc, i);
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
