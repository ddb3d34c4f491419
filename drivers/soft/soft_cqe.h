/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Writing CQEs: 64 bytes, the owner bit last.
 *
 * The consumer index in the CQ's doorbell record is read only when the ring looks full
 * by the index read before. A CQ that is full when a CQE is due is overrun: it dies, and
 * with it the QPs that complete into it.
 *
 * The timestamp is written as 0 [A]: there is no free-running device clock.
 */
#ifndef SOFT_CQE_H
#define SOFT_CQE_H

#include "soft_data.h"

/* The place of the next CQE. NULL: there is none. */
static inline struct bb_cqe *
soft_cqe_slot(struct soft_cq *cq)
{
	uint32_t size = 1u << cq->log_size;

	if (unlikely(cq->error))
		return NULL;
	if (unlikely(((cq->pi - cq->ci_seen) & 0xffffff) >= size)) {
		cq->ci_seen = bb_be32(bb_dbrec_load(cq->dbrec)) & 0xffffff;
		if (((cq->pi - cq->ci_seen) & 0xffffff) >= size)
			return NULL;
	}
	return (struct bb_cqe *)(void *)(cq->buf + ((size_t)(cq->pi & (size - 1)) << 6));
}

/* @w4 to @w6: bytes 32 to 55 in memory order; @op_flags: op_own without the owner bit. */
static inline bool
soft_cqe_write(struct soft_engine *e, struct soft_qp *qp, struct soft_cq *cq, uint64_t w4,
	       uint64_t w5, uint64_t w6, uint8_t sop, uint16_t counter, uint8_t op_flags)
{
	/* Read once: it may turn true while this CQE is written, by nobody else yet. */
	bool locked = __atomic_load_n(&cq->shared, __ATOMIC_RELAXED), died = false;
	struct bb_cqe *cqe;
	uint8_t owner;

	if (unlikely(locked))
		rte_ticketlock_lock(&cq->lock);
	cqe = soft_cqe_slot(cq);
	if (unlikely(cqe == NULL)) {
		died = !cq->error;
		cq->error = true;
		goto out;
	}
	owner = cq->pi >> cq->log_size & 1;
	if (unlikely(e->dev->opts.defect != SOFT_DEFECT_NONE) &&
	    !soft_cqe_defect(e, &counter, &owner))
		goto out;
	memset(cqe, 0, 32);
	memcpy((uint8_t *)cqe + 32, &w4, sizeof(w4));
	memcpy((uint8_t *)cqe + 40, &w5, sizeof(w5));
	memcpy((uint8_t *)cqe + 48, &w6, sizeof(w6));
	cqe->sop_qpn = bb_be32((uint32_t)sop << 24 | qp->qpn);
	cqe->wqe_counter = bb_be16(counter);
	cqe->signature = 0;
	bb_cqe_own_store(&cqe->op_own, op_flags | owner);
	cq->pi++;
out:
	if (unlikely(locked))
		rte_ticketlock_unlock(&cq->lock);
	if (unlikely(died))
		soft_cq_fail(e, qp, cq);
	return cqe != NULL;
}

static inline uint64_t
soft_pair(uint32_t first_be, uint32_t second_be)
{
	return (uint64_t)second_be << 32 | first_be;
}

#endif
