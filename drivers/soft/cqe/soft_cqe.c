/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Builds the CQEs of each opcode, and the vendor syndromes of error CQEs. */
#include "soft_cqe.h"

/* Applies a seeded defect to a CQE for @cq. Returns false if the defect suppresses the CQE. */
static bool
soft_cqe_defect(struct soft_engine *e, const struct soft_cq *cq, struct soft_cqe_parts *c)
{
	if (soft_defect(e, SOFT_DEFECT_SKIP_CQE))
		return false;
	if (soft_defect(e, SOFT_DEFECT_WQE_COUNTER))
		c->counter++;
	if ((cq->pi >> cq->log_size & 1) != 0 && soft_defect(e, SOFT_DEFECT_OWNER_BIT))
		c->owner_flip = 1;
	return true;
}

/*
 * Writes a CQE and raises the event of an armed CQ. If the CQ is shared, call it with the CQ's lock
 * held.
 */
static bool
soft_cqe_write_locked(struct soft_engine *e, uint32_t qpn, struct soft_cq *cq, uint32_t flags,
		      const struct soft_cqe_parts *c, bool *died)
{
	struct soft_cqe_parts wrong;

	if ((flags & SOFT_CQ_ZIP) != 0) {
		if (soft_zip_take(e, qpn, cq, c))
			return true;
		soft_zip_end(e, cq);
	}
	if ((flags & SOFT_CQ_DEFECT) != 0) {
		wrong = *c;
		c = &wrong;
		if (!soft_cqe_defect(e, cq, &wrong))
			return true;
	}
	if (!soft_cqe_put(e, qpn, cq, c, (flags & SOFT_CQ_BIG) != 0, died))
		return false;
	/*
	 * Loads the flag again: another thread may have changed it, and only the lock keeps it
	 * stable.
	 */
	if ((__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_ARMED) != 0)
		soft_cq_notify(e, cq);
	return true;
}

bool
soft_cqe_write_slow(struct soft_engine *e, struct soft_qp *qp, struct soft_cq *cq,
		    struct soft_cqe_parts c)
{
	uint32_t flags = __atomic_load_n(&cq->flags, __ATOMIC_RELAXED);
	bool died = false, ok;

	if ((flags & SOFT_CQ_SHARED) != 0)
		rte_ticketlock_lock(&cq->lock);
	ok = soft_cqe_write_locked(e, qp->qpn, cq, flags, &c, &died);
	if ((flags & SOFT_CQ_SHARED) != 0)
		rte_ticketlock_unlock(&cq->lock);
	if (died)
		soft_cq_fail(e, qp, cq);
	return ok;
}

/* Returns the format of a CQE with payload. @room is soft_qp.cs_req or soft_qp.cs_res. */
static uint8_t
scatter(uint8_t room)
{
	return room == SOFT_CS_MAX ? BB_CQE_SCATTER_64 : BB_CQE_SCATTER_32;
}

/* Writes the CQE of a WQE whose CQE may have a length or data, as those of READs and atomics. */
static __rte_noinline bool
soft_cqe_req_data(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	uint32_t bytes = 0;

	if (d->opcode == BB_WQE_RDMA_READ || soft_is_atomic(d->opcode))
		bytes = (uint32_t)d->len;
	if (bytes != 0 && unlikely(soft_defect(e, SOFT_DEFECT_READ_LEN)))
		bytes = 0;
	if (unlikely(qp->cs_len != 0)) {
		qp->cs_len = 0;
		return soft_cqe_write_data(e, qp, qp->scq, bb_be32(qp->user_index),
					   soft_pair(0, bb_be32(bytes)), 0, d->opcode, d->idx,
					   BB_CQE_REQ << 4 | scatter(qp->cs_req), qp->cs_data);
	}
	return soft_cqe_write(e, qp, qp->scq, bb_be32(qp->user_index), soft_pair(0, bb_be32(bytes)),
			      0, d->opcode, d->idx, BB_CQE_REQ << 4);
}

bool
soft_cqe_req(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	if (unlikely(d->opcode >= BB_WQE_RDMA_READ || qp->cs_len != 0))
		return soft_cqe_req_data(e, qp, d);
	return soft_cqe_write(e, qp, qp->scq, bb_be32(qp->user_index), 0, 0, d->opcode, d->idx,
			      BB_CQE_REQ << 4);
}

bool
soft_cqe_resp(struct soft_engine *e, struct soft_qp *qp, uint8_t opcode, bool solicited,
	      uint32_t imm, uint32_t len, const uint8_t *data)
{
	uint8_t flags = (uint8_t)(opcode << 4 | (uint8_t)solicited << 1);

	qp->rmp_holds = false;
	if (data != NULL)
		flags |= scatter(qp->cs_res);
	return soft_cqe_write_data(e, qp, qp->rcq, soft_pair(bb_be32(qp->user_index), imm),
				   soft_pair(0, bb_be32(len)), 0, 0, e->recv.idx, flags, data);
}

bool
soft_cqe_error(struct soft_engine *e, struct soft_qp *qp, bool responder, uint16_t idx,
	       uint8_t wqe_opcode, uint8_t synd)
{
	uint64_t w6 = (uint64_t)soft_vendor_of(e, responder, wqe_opcode, synd)
			      << (8 * (BB_CQE_VENDOR_SYNDROME_BYTE - 48)) |
		      (uint64_t)synd << (8 * (BB_CQE_SYNDROME_BYTE - 48));

	if (responder)
		qp->rmp_holds = false;
	return soft_cqe_write(e, qp, responder ? qp->rcq : qp->scq, bb_be32(qp->user_index), 0, w6,
			      wqe_opcode, idx, (responder ? BB_CQE_RESP_ERR : BB_CQE_REQ_ERR) << 4);
}

uint8_t
soft_vendor_of(const struct soft_engine *e, bool responder, uint8_t wqe_opcode, uint8_t synd)
{
	switch (synd) {
	case BB_SYN_LOCAL_LENGTH:
		return responder ? SOFT_VEND_RECV_LENGTH : SOFT_VEND_SEND_LENGTH;
	case BB_SYN_LOCAL_QP_OP:
		return responder ? SOFT_VEND_LOCAL_QP_OP : e->qp_op_fault;
	case BB_SYN_LOCAL_PROT:
		if (responder)
			return SOFT_VEND_KEY_RECV | e->key_fault;
		if (wqe_opcode == BB_WQE_RDMA_READ || soft_is_atomic(wqe_opcode))
			return SOFT_VEND_KEY_DATA | e->key_fault;
		return SOFT_VEND_KEY_GATHER | e->key_fault;
	case BB_SYN_MW_BIND:
		return SOFT_VEND_UMR;
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
