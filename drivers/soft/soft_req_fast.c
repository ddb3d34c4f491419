/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The requester's short cut: RDMA WRITEs with one piece or inline data, of at most two blocks,
 * that nothing is wrong with. Every check of soft_req.c and soft_resp.c is made here,
 * several at once; the first WQE that does not pass, or is no such WQE, is left to them
 * to be executed or refused. Nothing here tells why.
 */
#include "soft_cqe.h"
#include "soft_fast.h"
#include "soft_resp.h"

/* WQEs from the one that is executed to the one that is fetched. */
#define AHEAD 6u

uint32_t
soft_req_fast(struct soft_engine *e, struct soft_qp *qp, uint32_t budget, const uint8_t *copy)
{
	const uint8_t *ring = copy != NULL ? copy : qp->sq;
	const uint32_t mask = copy != NULL ? 0 : (1u << qp->log_sq) - 1;
	const uint32_t posted = (uint16_t)(qp->sq_pi - qp->sq_ci);
	uint32_t psn = qp->sq_psn, done = 0, at = 0;
	uint16_t ci = qp->sq_ci;
	bool alive = true;
	struct soft_qp *p;

	/* What holds for one WQE holds for all: the lock is held until the end. */
	p = soft_resp_find_rts(qp);
	if (unlikely(p == NULL || p->mtu != qp->mtu ||
		     !__atomic_load_n(&p->rwe, __ATOMIC_RELAXED) ||
		     __atomic_load_n(&p->epsn, __ATOMIC_RELAXED) != psn))
		return 0;
	do {
		const uint8_t *b = ring + ((size_t)(ci & mask) << 6);
		struct soft_write w;
		uint8_t fm_ce_se, *dst;
		const char *why;

		/* From another core's cache: the CPU does not look ahead over a loop this long. */
		if (at + AHEAD < posted)
			rte_prefetch0(ring + ((size_t)((ci + AHEAD) & mask) << 6));

		fm_ce_se = __atomic_load_n(&b[11], __ATOMIC_RELAXED);
		if (unlikely(!soft_fast_decode(e, qp, b, ci, posted - at, &w)))
			break;
		dst = soft_mem_find(e, p->dev, w.rkey, p->pdn, w.raddr, w.len,
				    SOFT_RIGHT_REMOTE_WRITE, &why);
		if (unlikely(dst == NULL))
			break;
		/* A fence resets what soft_req.c counts. */
		if (unlikely(fm_ce_se >> 5 >= 2))
			qp->reads_in_burst = 0;
		soft_mem_copy(e, dst, w.src, w.len);
		/* The next message's payload shall not be seen before this one's. */
		bb_dma_wmb();
		psn++;
		if (unlikely(w.len > qp->mtu))
			psn += (uint32_t)((w.len - 1) >> __builtin_ctz(qp->mtu));
		if (fm_ce_se & BB_WQE_CE_CQE)
			alive = soft_cqe_write(e, qp, qp->scq, bb_be32(qp->user_index), 0, 0,
					       BB_WQE_RDMA_WRITE, ci, BB_CQE_REQ << 4);
		ci = (uint16_t)(ci + w.blocks);
		at += w.blocks;
		done++;
	} while (at != posted && done != budget && likely(alive));
	if (unlikely(done == 0))
		return 0;
	qp->sq_ci = ci;
	qp->sq_psn = psn & SOFT_PSN_MASK;
	__atomic_store_n(&p->epsn, psn & SOFT_PSN_MASK, __ATOMIC_RELAXED);
	qp->retries_left = qp->retry_count;
	qp->rnr_left = qp->rnr_retry;
	soft_served_for(e, p);
	e->served_write += done;
	if (unlikely(!alive))
		soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
	return done;
}

bool
soft_req_fast_copy(struct soft_engine *e, struct soft_qp *qp, const uint8_t *copy)
{
	qp->sq_pi = (uint16_t)(qp->sq_ci + 1);
	if (likely(soft_req_fast(e, qp, 1, copy) != 0)) {
		qp->umr_index = 0;
		qp->reads_in_burst = 0;
		return true;
	}
	qp->sq_pi = qp->sq_ci;
	return false;
}
