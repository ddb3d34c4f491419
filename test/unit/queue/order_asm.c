/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The inline data path as a program gets it: order_asm.py reads its machine code. Never run. */
#include "bb_post.h"

void asm_doorbell(struct bb_sq *sq);
void asm_doorbell_or_copy(struct bb_sq *sq);
void asm_blueflame(const struct bb_sq *sq, uint64_t *reg);
void asm_receive(struct bb_rq *rq);
void asm_shared(struct bb_srqring *srq);
unsigned int asm_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
uint32_t asm_consume(struct bb_cqring *cq);
void asm_arm(struct bb_cqring *cq, uint64_t *reg);

void
asm_doorbell(struct bb_sq *sq)
{
	bb_sq_ring(sq);
}

void
asm_doorbell_or_copy(struct bb_sq *sq)
{
	bb_sq_doorbell_or_copy(sq, true);
}

void
asm_blueflame(const struct bb_sq *sq, uint64_t *reg)
{
	bb_sq_blueflame(sq, reg, 1);
}

void
asm_receive(struct bb_rq *rq)
{
	bb_rq_ring(rq);
}

void
asm_shared(struct bb_srqring *srq)
{
	bb_srqring_ring(srq);
}

unsigned int
asm_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	return bb_cq_poll(cq, wc, n);
}

uint32_t
asm_consume(struct bb_cqring *cq)
{
	const struct bb_cqe *cqe = bb_cqring_peek(cq);
	uint32_t counter;

	if (cqe == NULL)
		return 0;
	counter = cqe->wqe_counter;
	cq->ci++;
	bb_cqring_update(cq);
	return counter;
}

void
asm_arm(struct bb_cqring *cq, uint64_t *reg)
{
	bb_cqring_arm(cq, 1, 2, false, reg);
}
