/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The inline data path as a program compiles it. order_asm.py reads its machine code; it never
 * runs.
 */
#include <rte_cycles.h>

#include "bb_bf_copy.h"
#include "bb_post.h"
#include "bb_uar_wide.h"

void asm_doorbell(struct bb_sq *sq);
void asm_doorbell_or_copy(struct bb_sq *sq);
void asm_doorbell_or_neon(struct bb_sq *sq);
void asm_blueflame(const struct bb_sq *sq, uint64_t *reg);
void asm_blueflame_neon(const struct bb_sq *sq, uint64_t *reg);
void asm_receive(struct bb_rq *rq);
void asm_shared(struct bb_srqring *srq);
unsigned int asm_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
uint32_t asm_consume(struct bb_cqring *cq);
void asm_arm(struct bb_cqring *cq, uint64_t *reg);
uint64_t asm_time(const uint32_t *found);

void
asm_doorbell(struct bb_sq *sq)
{
	bb_sq_ring(sq);
}

void
asm_doorbell_or_copy(struct bb_sq *sq)
{
	bb_bf_doorbell(sq, bb_bf_block_plain);
}

void
asm_doorbell_or_neon(struct bb_sq *sq)
{
	bb_bf_doorbell(sq, bb_uar_block_neon);
}

void
asm_blueflame(const struct bb_sq *sq, uint64_t *reg)
{
	bb_bf_blocks(sq, reg, 1, bb_bf_block_plain);
}

void
asm_blueflame_neon(const struct bb_sq *sq, uint64_t *reg)
{
	bb_bf_blocks(sq, reg, 1, bb_uar_block_neon);
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

/* The time of data that another core has stored. */
uint64_t
asm_time(const uint32_t *found)
{
	if (__atomic_load_n(found, __ATOMIC_RELAXED) == 0)
		return 0;
	bb_tsc_rmb();
	return rte_rdtsc();
}
