/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * RDMA WRITEs that nothing is wrong with, executed where they stand. Every check of soft_req.c
 * and soft_resp.c is made here, several at once; the first WQE that does not pass, or is no
 * such WQE, is left to them to be executed or refused. Nothing here tells why.
 */
#ifndef SOFT_REQ_FAST_H
#define SOFT_REQ_FAST_H

#include "soft_cqe.h"
#include "soft_fast.h"
#include "soft_resp.h"

/* Some WQEs in a row. */
struct soft_fast_run {
	struct soft_qp *peer;
	uint32_t psn, done;
	uint16_t ci;
	bool alive; /* the CQ has not overrun */
};

/* What holds for one WQE holds for all: the lock is held until the end. */
static __rte_always_inline bool
soft_fast_begin(struct soft_fast_run *r, struct soft_qp *qp)
{
	struct soft_qp *p = soft_resp_find_rts(qp);

	*r = (struct soft_fast_run){.peer = p, .psn = qp->sq_psn, .ci = qp->sq_ci, .alive = true};
	return likely(p != NULL && p->mtu == qp->mtu &&
		      __atomic_load_n(&p->rwe, __ATOMIC_RELAXED) &&
		      __atomic_load_n(&p->epsn, __ATOMIC_RELAXED) == r->psn);
}

/* Execute the WQE at r->ci, in @b, of @left posted blocks. Its blocks; 0: it is not for this. */
static __rte_always_inline uint32_t
soft_fast_one(struct soft_engine *e, struct soft_fast_run *r, struct soft_qp *qp, const uint8_t *b,
	      uint32_t left)
{
	uint8_t fm_ce_se = __atomic_load_n(&b[11], __ATOMIC_RELAXED), *dst;
	struct soft_qp *p = r->peer;
	struct soft_write w;
	const char *why;

	if (unlikely(!soft_fast_decode(e, qp, b, r->ci, left, &w)))
		return 0;
	dst = soft_mem_find(e, p->dev, w.rkey, p->pdn, w.raddr, w.len, SOFT_RIGHT_REMOTE_WRITE,
			    &why);
	if (unlikely(dst == NULL))
		return 0;
	/* A fence resets what soft_req.c counts. */
	if (unlikely(fm_ce_se >> 5 >= 2))
		qp->reads_in_burst = 0;
	soft_mem_copy(e, dst, w.src, w.len);
	/* The next message's payload shall not be seen before this one's. */
	bb_dma_wmb();
	r->psn++;
	if (unlikely(w.len > qp->mtu))
		r->psn += (uint32_t)((w.len - 1) >> __builtin_ctz(qp->mtu));
	if (fm_ce_se & BB_WQE_CE_CQE)
		r->alive = soft_cqe_write(e, qp, qp->scq, bb_be32(qp->user_index), 0, 0,
					  BB_WQE_RDMA_WRITE, r->ci, BB_CQE_REQ << 4);
	r->ci = (uint16_t)(r->ci + w.blocks);
	r->done++;
	return w.blocks;
}

/* Returns how many were executed. */
static __rte_always_inline uint32_t
soft_fast_end(struct soft_engine *e, const struct soft_fast_run *r, struct soft_qp *qp)
{
	if (unlikely(r->done == 0))
		return 0;
	qp->sq_ci = r->ci;
	qp->sq_psn = r->psn & SOFT_PSN_MASK;
	__atomic_store_n(&r->peer->epsn, r->psn & SOFT_PSN_MASK, __ATOMIC_RELAXED);
	qp->retries_left = qp->retry_count;
	qp->rnr_left = qp->rnr_retry;
	soft_served_for(e, r->peer);
	e->served_write += r->done;
	if (unlikely(!r->alive))
		soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
	return r->done;
}

#endif
