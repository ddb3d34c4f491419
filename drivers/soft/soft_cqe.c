/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The kinds of CQEs, and vendor syndromes. */
#include "soft_cqe.h"

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
	uint64_t w6 = (uint64_t)soft_vendor_of(e, responder, wqe_opcode, synd)
			      << (8 * (BB_CQE_VENDOR_SYNDROME_BYTE - 48)) |
		      (uint64_t)synd << (8 * (BB_CQE_SYNDROME_BYTE - 48));

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
		return SOFT_VEND_LOCAL_QP_OP;
	case BB_SYN_LOCAL_PROT:
		if (responder)
			return SOFT_VEND_KEY_RECV | e->key_fault;
		if (wqe_opcode == BB_WQE_RDMA_READ || wqe_opcode == BB_WQE_ATOMIC_CS ||
		    wqe_opcode == BB_WQE_ATOMIC_FA)
			return SOFT_VEND_KEY_DATA | e->key_fault;
		return SOFT_VEND_KEY_GATHER | e->key_fault;
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

bool
soft_cqe_defect(struct soft_engine *e, uint16_t *counter, uint8_t *owner)
{
	if (soft_defect(e, SOFT_DEFECT_SKIP_CQE))
		return false;
	if (soft_defect(e, SOFT_DEFECT_WQE_COUNTER))
		*counter = (uint16_t)(*counter + 1);
	if (*owner != 0 && soft_defect(e, SOFT_DEFECT_OWNER_BIT))
		*owner = 0;
	return true;
}
