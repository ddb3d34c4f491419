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
	if (unlikely(e->dev->opts.defect != SOFT_DEFECT_NONE)) {
		if (soft_defect(e, SOFT_DEFECT_SKIP_CQE))
			goto out;
		if (soft_defect(e, SOFT_DEFECT_WQE_COUNTER))
			counter++;
		if (owner != 0 && soft_defect(e, SOFT_DEFECT_OWNER_BIT))
			owner = 0;
	}
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

bool
soft_cqe_req(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	uint32_t bytes = 0;

	if (d->opcode == BB_WQE_RDMA_READ || d->opcode == BB_WQE_ATOMIC_CS ||
	    d->opcode == BB_WQE_ATOMIC_FA)
		bytes = (uint32_t)d->len;
	return soft_cqe_write(e, qp, qp->scq, bb_be32(qp->user_index), soft_pair(0, bb_be32(bytes)),
			      0, d->opcode, d->idx, BB_CQE_REQ << 4);
}

bool
soft_cqe_resp(struct soft_engine *e, struct soft_qp *qp, uint8_t opcode, bool solicited,
	      uint32_t imm, uint32_t len)
{
	return soft_cqe_write(e, qp, qp->rcq, soft_pair(bb_be32(qp->user_index), imm),
			      soft_pair(0, bb_be32(len)), 0, 0, qp->rq_ci,
			      (uint8_t)(opcode << 4 | (uint8_t)solicited << 1));
}

bool
soft_cqe_error(struct soft_engine *e, struct soft_qp *qp, bool responder, uint16_t idx,
	       uint8_t wqe_opcode, uint8_t synd)
{
	uint64_t w6 = (uint64_t)soft_vendor_of(synd) << (8 * (BB_CQE_VENDOR_SYNDROME_BYTE - 48)) |
		      (uint64_t)synd << (8 * (BB_CQE_SYNDROME_BYTE - 48));

	return soft_cqe_write(e, qp, responder ? qp->rcq : qp->scq, bb_be32(qp->user_index), 0, w6,
			      wqe_opcode, idx, (responder ? BB_CQE_RESP_ERR : BB_CQE_REQ_ERR) << 4);
}

uint8_t
soft_vendor_of(uint8_t synd)
{
	switch (synd) {
	case BB_SYN_LOCAL_LENGTH:
		return SOFT_VEND_LOCAL_LENGTH;
	case BB_SYN_LOCAL_QP_OP:
		return SOFT_VEND_LOCAL_QP_OP;
	case BB_SYN_LOCAL_PROT:
		return SOFT_VEND_LOCAL_PROT;
	case BB_SYN_RETRY_EXC:
		return SOFT_VEND_RETRY;
	case BB_SYN_RNR_RETRY_EXC:
		return SOFT_VEND_RNR;
	case BB_SYN_REMOTE_ACCESS:
		return SOFT_VEND_REMOTE_ACCESS;
	case BB_SYN_REMOTE_OP:
		return SOFT_VEND_REMOTE_OP;
	case BB_SYN_REMOTE_INVAL_REQ:
		return SOFT_VEND_REMOTE_INVAL;
	default:
		return SOFT_VEND_FLUSH;
	}
}
