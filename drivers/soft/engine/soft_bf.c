/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Reads WQE copies from the BlueFlame registers. soft_bf.h explains when a copy may be executed. */
#include "soft_bf.h"
#include "soft_fast.h"

static void
fill(uint64_t *reg, uint32_t words, uint64_t v)
{
	uint32_t i;

	for (i = 1; i < words; i++)
		__atomic_store_n(&reg[i], v, __ATOMIC_RELAXED);
}

void
soft_bf_reset(struct soft_watch *w)
{
	uint32_t half;

	for (half = 0; half < 4; half++)
		fill(soft_page_half(w->uar->base, half), SOFT_BF_HALF / 8, 0);
	/*
	 * Another thread may be storing a copy of a WQE at this moment. So the device cannot use
	 * any half of a register yet: no bit SOFT_BF_CLEAN is set.
	 */
	w->bf = 0;
}

/*
 * Stores a complete BlueFlame copy of a WQE in the QP, if the copy differs from the WQE in the
 * ring. soft_req_decode() then uses the copy; otherwise it uses the ring. With @only stores the
 * copy only if no other WQE is posted. Does nothing while another engine executes a request of the
 * QP, because that engine reads the copy stored before.
 */
static void
store_copy(struct soft_qp *qp, const uint64_t *copy, bool only)
{
	const uint32_t ds = bb_get32((const uint8_t *)copy + 4) & 0xff, blocks = bb_wqe_blocks(ds);
	const uint16_t idx = (uint16_t)(bb_get32((const uint8_t *)copy) >> 8);
	const uint32_t mask = (1u << qp->log_sq) - 1;
	uint16_t posted, at = (uint16_t)(idx - qp->sq_ci);
	uint32_t i;

	if (qp->state != BB_PRM_QP_RTS || qp->wait != SOFT_WAIT_NONE || qp->wire != NULL)
		return;
	qp->bf_differs = false;
	posted = (uint16_t)(bb_be32(bb_dbrec_load(&qp->dbrec[1])) - qp->sq_ci);
	if (posted > mask + 1 || blocks == 0 || at >= posted || blocks > (uint16_t)(posted - at) ||
	    (only && (at != 0 || blocks != posted)))
		return;
	for (i = 0; i < blocks; i++) {
		uint32_t len = ds * BB_WQE_SEG - i * BB_WQE_BB;

		if (memcmp(qp->sq + ((size_t)((idx + i) & mask) << 6), &copy[i * SOFT_BF_WORDS],
			   len < BB_WQE_BB ? len : BB_WQE_BB) != 0)
			qp->bf_differs = true;
	}
	if (!qp->bf_differs)
		return;
	memcpy(qp->bf_copy, copy, (size_t)blocks * BB_WQE_BB);
	qp->bf_idx = idx;
}

void
soft_bf_take(struct soft_watch *w, uint64_t *reg, uint64_t head)
{
	uint64_t copy[SOFT_BF_HALF / 8];
	const uint32_t blocks = bb_wqe_blocks(bb_get32((uint8_t *)&head + 4) & 0xff);
	uint32_t i, words = blocks * SOFT_BF_WORDS;

	if (words < SOFT_BF_WORDS || words > SOFT_BF_HALF / 8)
		words = SOFT_BF_HALF / 8;
	copy[0] = head;
	for (i = 1; i < words; i++)
		copy[i] = __atomic_load_n(&reg[i], __ATOMIC_RELAXED);
	fill(reg, words, 0);
	if (words == blocks * SOFT_BF_WORDS)
		store_copy(w->qp[0], copy, true);
}

bool
soft_bf_look(struct soft_watch *w, uint32_t half, uint64_t head, uint64_t copy[SOFT_BF_WORDS])
{
	const uint64_t *reg = soft_page_half(w->uar->base, half);
	uint64_t *other = soft_page_half(w->uar->base, half ^ 1);
	const bool older = (w->bf & SOFT_BF_OLDER(half)) != 0;
	uint32_t i;

	if (!BB_STORES_IN_ORDER || !w->uar->copies)
		return false;
	w->bf &= ~SOFT_BF_OLDER(half);
	w->bf |= SOFT_BF_SHARED;
	if (__atomic_load_n(other, __ATOMIC_ACQUIRE) != 0) {
		w->bf &= ~SOFT_BF_CLEAN(half ^ 1);
		w->bf |= SOFT_BF_OLDER(half ^ 1);
		return false;
	}
	if (!older && (w->bf & SOFT_BF_CLEAN(half ^ 1)) == 0) {
		fill(other, SOFT_BF_WORDS, SOFT_BF_NONE);
		w->bf |= SOFT_BF_CLEAN(half ^ 1);
	}
	if ((w->bf & SOFT_BF_CLEAN(half)) == 0)
		return false;
	copy[0] = head;
	for (i = 1; i < SOFT_BF_WORDS; i++) {
		copy[i] = __atomic_load_n(&reg[i], __ATOMIC_RELAXED);
		if (copy[i] == SOFT_BF_NONE)
			return false;
	}
	bb_dma_rmb();
	return __atomic_load_n(other, __ATOMIC_RELAXED) == 0;
}

bool
soft_bf_run(struct soft_engine *e, struct soft_watch *w, const uint64_t copy[SOFT_BF_WORDS])
{
	const uint32_t w1 = bb_get32((const uint8_t *)copy + 4);
	const struct soft_opts *o = &e->dev->opts;
	struct soft_fast_run r;
	struct soft_qp *qp;

	qp = soft_qp_find(e->dev, w1 >> 8);
	if (qp == NULL || qp->uar != w->uar || !qp->has_sq || qp->state != BB_PRM_QP_RTS ||
	    qp->wire != NULL)
		return false;
	if (qp->queued == SOFT_Q_NONE && qp->wait == SOFT_WAIT_NONE && qp->sq_pi == qp->sq_ci &&
	    e->packets_left > 0 && (soft_opts_defect(o) | o->fault | o->wire) == 0) {
		soft_now(e);
		if (soft_fast_begin(&r, qp, 1) &&
		    soft_fast_one(e, &r, qp, (const uint8_t *)copy, 1) != 0) {
			/*
			 * Software wrote the doorbell record before this copy, so this WQE counts
			 * as posted even if the device has not read the record yet.
			 */
			qp->sq_pi = r.ci;
			soft_fast_end(e, &r, qp, r.done, 0);
			qp->bf_differs = false;
			qp->umr_index = 0;
			qp->reads_in_burst = 0;
			e->work++;
			/*
			 * The next WQE also arrives through the register, so prefetching the ring
			 * would be useless.
			 */
			w->hot = UINT32_MAX;
			w->left = w->n == 1 ? 0 : w->n;
			return true;
		}
	}
	if (bb_wqe_blocks(w1 & 0xff) == 1)
		store_copy(qp, copy, false);
	return false;
}

void
soft_bf_release(struct soft_watch *w, uint32_t half, bool copied)
{
	if (copied)
		fill(soft_page_half(w->uar->base, half), SOFT_BF_WORDS, SOFT_BF_NONE);
	else
		w->bf &= ~SOFT_BF_CLEAN(half);
}
