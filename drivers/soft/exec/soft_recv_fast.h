/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fast path of one-packet messages that consume a receive. The data must fit into the first SGE of
 * the next receive of the QP's own queue. The CQ must have room, and must be neither armed nor
 * shared. Every other message goes to soft_wire_resp.c, before any state has changed.
 */
#ifndef SOFT_RECV_FAST_H
#define SOFT_RECV_FAST_H

#include "soft_access.h"
#include "soft_cqe.h"
#include "soft_fast.h"

/*
 * Returns the scatter list of the next receive, or NULL if the fast path cannot handle the message.
 * Does not check whether the QP gets short messages in the CQE (cs_res): that is up to the caller.
 */
static inline const uint8_t *
soft_recv_peek(const struct soft_qp *qp)
{
	uint16_t posted;

	if (unlikely(!qp->has_rq || qp->rmp != NULL))
		return NULL;
	posted = (uint16_t)(bb_be32(bb_dbrec_load(&qp->dbrec[0])) - qp->rq_ci);
	if (unlikely(posted == 0 || posted > 1u << qp->log_rq))
		return NULL;
	/* In an unshared CQ with room, the completion written later cannot fail. */
	if (unlikely(__atomic_load_n(&qp->rcq->flags, __ATOMIC_RELAXED) != 0 ||
		     soft_cqe_slot(qp->rcq, false) == NULL))
		return NULL;
	return qp->rq + ((size_t)(qp->rq_ci & ((1u << qp->log_rq) - 1)) << qp->log_rq_stride);
}

/* Returns what soft_recv_peek() does, for a caller that always writes to the scatter list. */
static inline const uint8_t *
soft_recv_next(const struct soft_qp *qp)
{
	return unlikely(qp->cs_res != 0) ? NULL : soft_recv_peek(qp);
}

/*
 * Returns the address to which @len bytes go in the first SGE of @list. Returns NULL if the fast
 * path cannot handle the message.
 */
static inline uint8_t *
soft_recv_addr(struct soft_engine *e, const struct soft_qp *qp, const uint8_t *list, uint32_t len)
{
	uint32_t count = bb_be32(soft_ring32(list));

	if (unlikely((count & BB_WQE_INLINE) != 0 || count < len))
		return NULL;
	return soft_mem_find(e, qp->dev, bb_be32(soft_ring32(list + 4)), qp->pdn,
			     bb_be64(soft_ring64(list + 8)), len, SOFT_RIGHT_LOCAL_WRITE,
			     &e->req.why);
}

/*
 * Completes the receive of a message. @imm is in network byte order. @data: 32 bytes that go into
 * the CQE, NULL if the data is already written to the scatter list. Returns false if the QP has
 * failed.
 */
static inline bool
soft_recv_complete_data(struct soft_engine *e, struct soft_qp *qp, uint8_t opcode, bool solicited,
			uint32_t imm, uint32_t len, const uint8_t *data)
{
	bb_dma_wmb();
	if (unlikely(!soft_cqe_write_data(e, qp, qp->rcq, soft_pair(bb_be32(qp->user_index), imm),
					  soft_pair(0, bb_be32(len)), 0, 0, qp->rq_ci,
					  (uint8_t)(opcode << 4 | (solicited ? SOFT_CQE_SE : 0) |
						    (data != NULL ? BB_CQE_SCATTER_32 : 0)),
					  data))) {
		soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
		return false;
	}
	qp->rq_ci++;
	return true;
}

static inline bool
soft_recv_complete(struct soft_engine *e, struct soft_qp *qp, uint8_t opcode, bool solicited,
		   uint32_t imm, uint32_t len)
{
	return soft_recv_complete_data(e, qp, opcode, solicited, imm, len, NULL);
}

#endif
