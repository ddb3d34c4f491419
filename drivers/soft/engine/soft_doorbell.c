/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Doorbells: detects posted WQEs and starts their execution.
 *
 * A store to a register of the UAR page is a hint; the send doorbell record is authoritative. The
 * register holds the first 8 bytes of a control segment, which are never 0. The device clears the
 * register after reading it. With inline progress and one owner of the page, the thread that rings
 * is the thread that polls, so a plain store clears it. Otherwise the device clears it after the
 * work with a compare-and-exchange. This fails if another doorbell has arrived meanwhile, and the
 * next poll handles the new doorbell. The QP that the register names is run first, if it belongs to
 * this page. A doorbell through the page of another QP is lost, as on a card.
 *
 * If several QPs ring one register between two polls, only the last store is visible. So after any
 * store the device reads the list of rung QPs that the driver keeps beside the register
 * (bb_rung.h), at most SOFT_RUNG_READS entries per poll. Not all software keeps the list, and its
 * entries may be lost or wrong. So after any store the device also scans the doorbell records of
 * the page's QPs, opts.scan records per poll. The scan ends when each record was read once after
 * the last store. A poll that found a store scans half as many records, because it has already done
 * other work. With n QPs on a page, a WQE whose store was hidden starts within ceil(2n / scan) + 1
 * polls. A scan may find a changed record before the register is stored to. The WQEs then run at
 * once, because a record covers only complete WQEs.
 *
 * A doorbell for a QP that is neither in RTS nor in ERR is lost (assumption [A]).
 */
#include "soft_bf.h"
#include "soft_shm.h"
#include "soft_wire.h"

/*
 * Some software, such as libmlx5, does not keep the list of rung QPs. QPs that ring together tend
 * to ring together again. So a QP whose doorbell only the scan has found is entered in a list,
 * hidden[]. After later stores the device first reads the records of the QPs in this list, at most
 * SOFT_HIDDEN_READS per poll beside the scan. While these QPs stay the same, a hidden store costs
 * no scan, with any number of QPs. A QP leaves the list when its record was found unchanged
 * SOFT_HIDDEN_IDLE times in a row.
 */
#define SOFT_HIDDEN_READS 64
#define SOFT_HIDDEN_IDLE  16

#define SOFT_RUNG_READS 64

/* Handles a send doorbell record that announces @posted blocks, more than the ring has. */
static __rte_noinline __attribute__((cold)) void
soft_record_bad(struct soft_qp *qp, uint32_t posted)
{
	SOFT_LOG(ERR,
		 "%s QP 0x%x: the send doorbell record (%u) announces %u blocks, but the ring has "
		 "%u: write the block counter, big endian, to word 1",
		 qp->dev->name, qp->qpn, (uint16_t)(qp->sq_ci + posted), posted, 1u << qp->log_sq);
	qp->sq_pi = qp->sq_ci;
	soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
}

/* Runs the new WQEs of a QP that sends packets. */
static __rte_noinline void
soft_look_wire(struct soft_engine *e, struct soft_qp *qp)
{
	/*
	 * A QP that sends packets, and has no work and no delayed ACK, has received nothing. If it
	 * also has no request outstanding, its requests may access the peer's memory directly.
	 */
	if ((qp->queued == SOFT_Q_NONE || qp->queued == SOFT_Q_TIMER) && qp->wire->shm_tx != NULL &&
	    soft_shm_direct_next(qp)) {
		uint32_t done = soft_shm_direct(e, qp->wire, SOFT_RUN_WQES);

		if (done == SOFT_RUN_WQES && qp->sq_ci != qp->sq_pi)
			soft_qp_queue(e, qp);
		if (done == SOFT_RUN_WQES || (done != 0 && qp->sq_ci == qp->sq_pi))
			return;
	}
	/*
	 * A QP that sends packets may be on the list of timers, because requests wait for an ACK or
	 * response. Its new WQEs run now all the same.
	 */
	if (e->page == NULL)
		soft_now(e);
	soft_wire_run(e, qp->wire);
}

/*
 * Calls functions for the rare cases only as its last action, so that the common path saves no
 * registers.
 */
void
soft_qp_look(struct soft_engine *e, struct soft_qp *qp)
{
	uint32_t rec, posted;

	if (unlikely(!qp->has_sq))
		return;
	if (unlikely(qp->state != BB_PRM_QP_RTS)) {
		if (qp->state == BB_PRM_QP_ERR)
			soft_qp_flush(e, qp);
		return;
	}
	/*
	 * If the device polls on a core of its own, the WQE is still in the cache of another core.
	 */
	if (e->page == NULL)
		rte_prefetch0(soft_wqe_at(qp, qp->sq_ci));
	rec = bb_dbrec_load(&qp->dbrec[1]);
	qp->uar->watch->last[qp->scan_slot] = rec;
	posted = (uint16_t)(bb_be32(rec) - qp->sq_ci);
	if (unlikely(posted > 1u << qp->log_sq)) {
		soft_record_bad(qp, posted);
		return;
	}
	qp->sq_pi = (uint16_t)bb_be32(rec);
	if (unlikely(qp->wire != NULL)) {
		soft_look_wire(e, qp);
		return;
	}
	if (unlikely(qp->queued != SOFT_Q_NONE))
		return;
	soft_now(e);
	soft_req_run(e, qp);
}

/* Rejects a doorbell for QP number @qpn, which does not exist or belongs to another page. */
static __rte_noinline __attribute__((cold)) void
soft_doorbell_bad(struct soft_engine *e, const struct soft_watch *w, uint32_t qpn)
{
	const struct soft_qp *qp = soft_qp_find(e->dev, qpn);

	if (qp == NULL) {
		SOFT_LOG(WARNING, "%s: ignored a doorbell on UAR page %u: QP 0x%x does not exist",
			 e->dev->name, w->uar->id, qpn);
		return;
	}
	SOFT_LOG(WARNING,
		 "%s QP 0x%x: ignored a doorbell on UAR page %u: the QP was created with "
		 "UAR page %u: ring the doorbell there",
		 e->dev->name, qpn, w->uar->id, qp->uar->id);
}

/* Handles a doorbell that software rang in the UAR page; @head is the first 8 bytes stored. */
static inline void
soft_doorbell(struct soft_engine *e, struct soft_watch *w, uint64_t head)
{
	const uint32_t qpn = bb_be32((uint32_t)(head >> 32)) >> 8;
	struct soft_qp *qp = soft_qp_find(e->dev, qpn);

	w->left = w->n;
	e->work++;
	if (unlikely(qp == NULL || qp->uar != w->uar)) {
		soft_doorbell_bad(e, w, qpn);
		return;
	}
	w->hot = qp->scan_slot;
	/*
	 * With one QP on the page, a doorbell cannot hide one of another QP, so no scan is needed.
	 */
	if (w->n == 1)
		w->left = 0;
	else
		w->hidden_left = w->n_hidden;
	soft_qp_look(e, qp);
}

/*
 * Returns true if software stored a copy of a WQE to this half of a register, and not only a
 * doorbell of 8 bytes: a word after the first 8 bytes is not 0.
 */
static inline bool
soft_reg_copied(const uint64_t *reg)
{
	uint64_t any = 0;
	uint32_t i;

#pragma GCC unroll 8
	for (i = 1; i < SOFT_BF_WORDS; i++)
		any |= __atomic_load_n(&reg[i], __ATOMIC_RELAXED);
	return any != 0;
}

/* Handles a store to a register that may be a copy of a WQE, or whose halves may be stale. */
static __rte_noinline void
soft_reg_take_copy(struct soft_engine *e, struct soft_watch *w, uint64_t *reg, uint64_t head)
{
	/* The page had several owners before, so its registers may hold stale copies of WQEs. */
	if (unlikely(w->bf != 0))
		soft_bf_reset(w);
	if (w->n == 1 && w->uar->copies && unlikely(soft_reg_copied(reg)))
		soft_bf_take(w, reg, head);
	soft_doorbell(e, w, head);
}

/*
 * Handles a store to a register. The caller has checked by soft_engine_alone() that no other thread
 * can store to the register meanwhile.
 */
static __rte_noinline void
soft_reg_take(struct soft_engine *e, struct soft_watch *w, uint64_t *reg)
{
	uint64_t head = __atomic_load_n(reg, __ATOMIC_ACQUIRE);

	__atomic_store_n(reg, 0, __ATOMIC_RELAXED);
	if ((w->n == 1 && w->uar->copies) || unlikely(w->bf != 0))
		soft_reg_take_copy(e, w, reg, head);
	else
		soft_doorbell(e, w, head);
}

/* Handles a store to a register while software may store to the register again. */
static __rte_noinline void
soft_reg_take_shared(struct soft_engine *e, struct soft_watch *w, uint32_t half, uint64_t *reg)
{
	uint64_t head = __atomic_load_n(reg, __ATOMIC_ACQUIRE), copy[SOFT_BF_WORDS];
	const bool copied = soft_bf_look(w, half, head, copy);

	if (!copied || !soft_bf_run(e, w, copy))
		soft_doorbell(e, w, head);
	soft_bf_release(w, half, copied);
	(void)__atomic_compare_exchange_n(reg, &head, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static inline void
soft_reg_poll(struct soft_engine *e, struct soft_watch *w, uint8_t *page, uint32_t half)
{
	uint64_t *reg = soft_page_half(page, half);

	if (likely(__atomic_load_n(reg, __ATOMIC_RELAXED) == 0))
		return;
	/*
	 * The second register of the page may belong to another thread, which becomes an owner
	 * before its first doorbell. So the number of owners is checked again.
	 */
	if (soft_engine_alone(e))
		soft_reg_take(e, w, reg);
	else
		soft_reg_take_shared(e, w, half, reg);
}

static void
soft_hidden_add(struct soft_watch *w, struct soft_qp *qp)
{
	if (qp->hidden != 0)
		return;
	w->hidden[w->n_hidden++] = (struct soft_hidden){
		.rec = &qp->dbrec[1],
		.slot = qp->scan_slot,
	};
	qp->hidden = w->n_hidden;
}

/*
 * Removes a QP from hidden[] and moves the last entry to its place. So the reads after a store may
 * skip the moved entry. The scan still reads the record of that entry's QP.
 */
void
soft_hidden_del(struct soft_watch *w, struct soft_qp *qp)
{
	uint32_t i = qp->hidden - 1;

	if (qp->hidden == 0)
		return;
	w->hidden[i] = w->hidden[--w->n_hidden];
	w->qp[w->hidden[i].slot]->hidden = i + 1;
	qp->hidden = 0;
}

/*
 * Reads the doorbell records of the QPs in hidden[], whose stores to the register are often
 * overwritten by another QP's. Runs the QPs whose record has changed.
 */
static void
soft_hidden_read(struct soft_engine *e, struct soft_watch *w)
{
	uint32_t n = RTE_MIN(w->hidden_left, (uint32_t)SOFT_HIDDEN_READS);

	w->hidden_left -= n;
	for (; n != 0 && w->n_hidden != 0; n--) {
		struct soft_hidden *h;

		if (w->hidden_pos >= w->n_hidden)
			w->hidden_pos = 0;
		h = &w->hidden[w->hidden_pos];
		if (bb_dbrec_load(h->rec) != w->last[h->slot]) {
			h->unchanged = 0;
			w->hidden_pos++;
			soft_qp_look(e, w->qp[h->slot]);
		} else if (++h->unchanged < SOFT_HIDDEN_IDLE) {
			w->hidden_pos++;
		} else {
			soft_hidden_del(w, w->qp[h->slot]);
		}
	}
}

/*
 * Reads the list of QPs that rang register @reg, up to entry number @end, and runs the QPs whose
 * record has changed. Returns true if entries are left.
 */
static __rte_noinline bool
soft_rung_read(struct soft_engine *e, struct soft_watch *w, uint32_t reg, uint32_t end)
{
	const struct bb_rung *r = &w->uar->rung[reg];
	uint32_t i, n = end - w->rung_at[reg];

	if (unlikely(n > BB_RUNG_SIZE)) {
		n = BB_RUNG_SIZE;
		w->rung_at[reg] = end - n;
	}
	n = RTE_MIN(n, (uint32_t)SOFT_RUNG_READS);
	for (i = 0; i < n; i++) {
		const uint32_t *at = &r->qpn[w->rung_at[reg]++ % BB_RUNG_SIZE];
		struct soft_qp *qp =
			soft_qp_find(e->dev, bb_be32(__atomic_load_n(at, __ATOMIC_RELAXED)) >> 8);

		if (likely(qp != NULL && qp->uar == w->uar && qp->has_sq) &&
		    bb_dbrec_load(&qp->dbrec[1]) != w->last[qp->scan_slot])
			soft_qp_look(e, qp);
	}
	return w->rung_at[reg] != end;
}

/* Reads the list of QPs that rang register @reg, with the same result as soft_rung_read(). */
static inline bool
soft_rung_poll(struct soft_engine *e, struct soft_watch *w, uint32_t reg)
{
	const uint32_t end = __atomic_load_n(&w->uar->rung[reg].n, __ATOMIC_ACQUIRE);

	if (unlikely(end - w->rung_at[reg] > 1))
		return soft_rung_read(e, w, reg, end);
	/*
	 * If the list has only one new entry, it names the same QP as the register, so the list
	 * need not be read.
	 */
	w->rung_at[reg] = end;
	return false;
}

/* Reads the next doorbell records of the scan and runs the QPs whose record has changed. */
static void
soft_watch_scan(struct soft_engine *e, struct soft_watch *w)
{
	const bool first = soft_rung_poll(e, w, 0), listed = soft_rung_poll(e, w, 1) || first;
	uint32_t i, n, pos = w->pos;

	if (w->hidden_left != 0)
		soft_hidden_read(e, w);
	n = RTE_MIN(w->left, w->left == w->n ? (e->scan + 1) / 2 : e->scan);
	w->left -= n;
	for (; n != 0; n--) {
		if (unlikely(bb_dbrec_load(w->rec[pos]) != w->last[pos])) {
			if (!listed)
				soft_hidden_add(w, w->qp[pos]);
			soft_qp_look(e, w->qp[pos]);
		}
		if (++pos == w->n)
			pos = 0;
	}
	w->pos = pos;
	/*
	 * Prefetches the doorbell records that the next poll reads, because with thousands of QPs
	 * they are not in the cache.
	 */
	for (i = 0, n = RTE_MIN(w->left, e->scan); i < n; i++, pos++)
		rte_prefetch0(w->rec[pos < w->n ? pos : pos - w->n]);
}

/*
 * Scans a page with at most soft_engine.few QPs. Reads all doorbell records, which costs less than
 * to read the lists of rung QPs (bb_rung.h). So rung_at does not advance. After more QPs were
 * created on the page, soft_rung_read() reads old entries once, which is harmless.
 */
static inline void
soft_watch_scan_few(struct soft_engine *e, struct soft_watch *w)
{
	uint32_t i;

	w->left = 0;
	for (i = 0; i < w->n; i++)
		if (unlikely(bb_dbrec_load(w->rec[i]) != w->last[i]))
			soft_qp_look(e, w->qp[i]);
}

/*
 * Prefetches the WQE of the next doorbell, on a device that runs on another core than its software.
 * Software writes the doorbell record before the register, so the record announces the WQE early.
 * This is only a hint: the device executes the WQE only after it has read the register, or the
 * record in a scan that the register started.
 */
void
soft_watch_warm(const struct soft_watch *w)
{
	const struct soft_qp *qp;

	if (w->hot >= w->n || bb_dbrec_load(w->rec[w->hot]) == w->last[w->hot])
		return;
	qp = w->qp[w->hot];
	rte_prefetch0(soft_wqe_at(qp, qp->sq_ci));
}

void
soft_watch_poll(struct soft_engine *e, struct soft_watch *w)
{
	uint8_t *page = w->uar->base;
	uint64_t *arm = (uint64_t *)(void *)(page + SOFT_ARM_OFFSET);

	if (unlikely(__atomic_load_n(arm, __ATOMIC_RELAXED) != 0))
		soft_arm_take(e, w, arm);
	if (unlikely(w->cq_left != 0))
		soft_arm_scan(e, w);
	/* The page has two registers with two halves each. */
	soft_reg_poll(e, w, page, 0);
	soft_reg_poll(e, w, page, 1);
	soft_reg_poll(e, w, page, 2);
	soft_reg_poll(e, w, page, 3);
	if (unlikely(e->always != 0))
		w->left = w->n;
	if (w->left != 0 && w->n <= e->few)
		soft_watch_scan_few(e, w);
	else if (w->left != 0)
		soft_watch_scan(e, w);
}
