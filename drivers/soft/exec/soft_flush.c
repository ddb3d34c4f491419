/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Flushes a QP in ERR: completes each posted WQE with a flush CQE. */
#include "soft_data.h"

/* Completes each posted send WQE with a flush CQE, from the first WQE without a CQE on. */
static void
soft_flush_sq(struct soft_engine *e, struct soft_qp *qp)
{
	uint32_t rec = bb_dbrec_load(&qp->dbrec[1]), mask = (1u << qp->log_sq) - 1;
	uint16_t posted = (uint16_t)(bb_be32(rec) - qp->sq_ci);

	qp->uar->watch->last[qp->scan_slot] = rec;
	qp->sq_pi = (uint16_t)(qp->sq_ci + posted);
	if (unlikely(posted > mask + 1)) {
		qp->sq_pi = qp->sq_ci;
		return;
	}
	while (posted != 0) {
		const uint8_t *wqe = qp->sq + ((size_t)(qp->sq_ci & mask) << 6);
		uint32_t blocks = bb_wqe_blocks(wqe[7] & BB_WQE_MAX_DS);

		/* A WQE with 0 blocks would never end the loop, so it counts as one block. */
		if (blocks == 0)
			blocks = 1;
		if (blocks > posted)
			blocks = posted;
		SOFT_COUNT(qp, req_flush);
		if ((wqe[11] & BB_WQE_CE_CQE) != 0 || !soft_defect(e, SOFT_DEFECT_FLUSH_LOST))
			soft_cqe_error(e, qp, false, qp->sq_ci, wqe[3], BB_SYN_WR_FLUSH);
		qp->sq_ci = (uint16_t)(qp->sq_ci + blocks);
		posted = (uint16_t)(posted - blocks);
	}
}

void
soft_flush_rq(struct soft_engine *e, struct soft_qp *qp)
{
	uint32_t posted;

	posted = (uint16_t)(bb_be32(bb_dbrec_load(&qp->dbrec[0])) - qp->rq_ci);
	if (unlikely(posted > 1u << qp->log_rq))
		return;
	for (; posted != 0; posted--) {
		SOFT_COUNT(qp, resp_flush);
		soft_cqe_error(e, qp, true, qp->rq_ci, 0, BB_SYN_WR_FLUSH);
		qp->rq_ci++;
	}
}

void
soft_qp_flush(struct soft_engine *e, struct soft_qp *qp)
{
	/*
	 * Another engine may still execute the WQE at the head, so its result is not known. The
	 * WQEs after it wait for that result.
	 */
	if (qp->has_sq && qp->wait != SOFT_WAIT_PEER)
		soft_flush_sq(e, qp);
	if (qp->has_rq)
		soft_flush_rq(e, qp);
}
