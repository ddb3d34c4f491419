/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Copies of WQEs in the registers: soft_bf.h has the rules. */
#include "soft_bf.h"
#include "soft_req_fast.h"

void
soft_bf_forget(struct soft_watch *w)
{
	uint64_t *reg = (uint64_t *)(void *)(w->uar->base + SOFT_BF_OFFSET);
	uint32_t i;

	for (i = 0; i < 4 * SOFT_BF_HALF / 8; i++)
		if (i % (SOFT_BF_HALF / 8) != 0)
			__atomic_store_n(&reg[i], 0, __ATOMIC_RELAXED);
	/* A copy may be under way. */
	w->bf = 0;
}

/* Is there a copy in the register half, or just the 8 bytes of a doorbell? */
static inline bool
soft_bf_copied(const uint64_t *reg)
{
	return (__atomic_load_n(&reg[1], __ATOMIC_RELAXED) |
		__atomic_load_n(&reg[2], __ATOMIC_RELAXED) |
		__atomic_load_n(&reg[3], __ATOMIC_RELAXED) |
		__atomic_load_n(&reg[4], __ATOMIC_RELAXED) |
		__atomic_load_n(&reg[5], __ATOMIC_RELAXED) |
		__atomic_load_n(&reg[6], __ATOMIC_RELAXED) |
		__atomic_load_n(&reg[7], __ATOMIC_RELAXED)) != 0;
}

void
soft_bf_check(struct soft_engine *e, struct soft_watch *w, uint64_t *reg, uint64_t head)
{
	uint64_t copy[SOFT_BF_HALF / 8];
	uint32_t i, words, ds, mask;
	struct soft_qp *qp;
	uint16_t idx, posted;

	if (!soft_bf_copied(reg))
		return;
	ds = soft_be32((uint8_t *)&head + 4) & 0xff;
	words = bb_wqe_blocks(ds) * (BB_WQE_BB / 8);
	if (words < BB_WQE_BB / 8 || words > SOFT_BF_HALF / 8)
		words = SOFT_BF_HALF / 8;
	copy[0] = head;
	for (i = 1; i < words; i++) {
		copy[i] = __atomic_load_n(&reg[i], __ATOMIC_RELAXED);
		__atomic_store_n(&reg[i], 0, __ATOMIC_RELAXED);
	}
	qp = w->qp[0];
	idx = (uint16_t)(soft_be32(&head) >> 8);
	posted = (uint16_t)(bb_be32(bb_dbrec_load(&qp->dbrec[1])) - qp->sq_ci);
	if (qp->state != BB_PRM_QP_RTS || idx != qp->sq_ci || posted == 0 ||
	    posted != bb_wqe_blocks(ds) || ds * 2 > words)
		return;
	mask = (1u << qp->log_sq) - 1;
	for (i = 0; i < posted; i++) {
		uint32_t len = ds * BB_WQE_SEG - i * BB_WQE_BB;

		if (memcmp(qp->sq + ((size_t)((idx + i) & mask) << 6), &copy[i * BB_WQE_BB / 8],
			   len < BB_WQE_BB ? len : BB_WQE_BB) != 0) {
			e->bf_mismatch++;
			qp->bf_bad = true;
			qp->bf_idx = idx;
			return;
		}
	}
}

bool
soft_bf_run(struct soft_engine *e, struct soft_watch *w, uint32_t half, uint64_t head)
{
	const uint64_t *reg = soft_bf_half(w->uar, half);
	const uint32_t sure = SOFT_BF_CLEAN(half) | SOFT_BF_STEP(half);
	const struct soft_opts *o = &e->dev->opts;
	uint64_t copy[BB_WQE_BB / 8];
	struct soft_fast_run r;
	struct soft_qp *qp;
	uint32_t i;

	if (!BB_STORES_IN_ORDER || !w->uar->bf || (w->bf & sure) != sure || !soft_bf_copied(reg))
		return false;
	copy[0] = head;
	for (i = 1; i < BB_WQE_BB / 8; i++)
		copy[i] = __atomic_load_n(&reg[i], __ATOMIC_RELAXED);
	bb_dma_rmb();
	if (__atomic_load_n(soft_bf_half(w->uar, half ^ 1), __ATOMIC_RELAXED) != 0)
		return false;
	qp = soft_qp_find(e->dev, soft_be32((uint8_t *)&head + 4) >> 8);
	if (qp == NULL || qp->uar != w->uar || !qp->has_sq || qp->state != BB_PRM_QP_RTS ||
	    qp->wire != NULL || qp->queued != SOFT_Q_NONE || qp->wait != SOFT_WAIT_NONE ||
	    qp->sq_pi != qp->sq_ci || qp->bf_bad || (o->defect | o->fault | o->wire) != 0)
		return false;
	soft_now(e);
	if (!soft_fast_begin(&r, qp) || soft_fast_one(e, &r, qp, (const uint8_t *)copy, 1) == 0)
		return false;
	/* Also before the record is read: it covers this WQE. */
	qp->sq_pi = r.ci;
	soft_fast_end(e, &r, qp);
	qp->umr_index = 0;
	qp->reads_in_burst = 0;
	e->work++;
	/* Nothing to fetch early: the next one comes this way, too. */
	w->hot = UINT32_MAX;
	w->left = w->n == 1 ? 0 : w->n;
	return true;
}
