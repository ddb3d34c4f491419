/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Send queues: drain and abort. Queue pairs: recover and report the fate of each request. */
#include <errno.h>
#include <string.h>

#include <rte_pause.h>

#include "bb_core.h"
#include "bb_post.h"
#include "bb_recover.h"
#include "bb_time_limit.h"

int
bb_qp_drain(struct bb_qp *qp)
{
	struct bb_sq *sq = &qp->sq;
	int ret;

	/* A QP that failed in RTR is in ERR. Its next post enables the send queue. */
	if (!sq->enabled && __atomic_load_n(&sq->error, __ATOMIC_RELAXED) == 0) {
		BB_LOG(ERR, "QP 0x%x is in %s: it cannot be drained before RTS", qp->qpn,
		       bb_qp_state_name(qp->state));
		return -ENOTCONN;
	}
	if (bb_qp_drained(qp))
		return 0;
	/* If the queue is full, some send in it has a pending CQE, which will make room. */
	ret = sq->sig_seq != sq->seq ? bb_sq_post_own_nop(sq) : 0;
	bb_qp_ring(qp);
	return ret == 0 ? -EAGAIN : ret;
}

/* Position in a walk over the outstanding sends, from the oldest to the newest. */
struct walk {
	uint32_t done; /* sequence number of the send before block idx */
	uint16_t idx;  /* first block of the next send; wraps at 16 bits, as sq->pi does */
};

/* Moves to the next send. Always advances, even if the WQE in the ring is damaged. */
static void
walk_next(const struct bb_sq *sq, struct walk *w)
{
	uint32_t ds = 1;

	if (sq->buf != NULL)
		ds = RTE_MAX(sq->buf[(size_t)(w->idx & sq->mask) * BB_WQE_BB + 7] & BB_WQE_MAX_DS,
			     1);
	w->idx = (uint16_t)(w->idx + bb_wqe_blocks(ds));
	w->done += bb_sq_slots(sq, ds);
}

/* Returns the sequence number of the send that the walk @w through the send queue has reached. */
static uint32_t
walk_seq(const struct bb_sq *sq, const struct walk *w)
{
	return sq->wqes[w->idx & sq->mask].seq;
}

/* Returns the number of sends from @w to the send with sequence number @seq, both included. */
static uint32_t
walk_count(const struct bb_sq *sq, struct walk w, uint32_t seq)
{
	uint32_t n;

	for (n = 0; (int32_t)(seq - w.done) > 0; n++)
		walk_next(sq, &w);
	return n;
}

/* Returns true if the library posted the send at @w: a NOP, which is never reported. */
static bool
is_own(const struct bb_sq *sq, const struct walk *w)
{
	return sq->wqes[w->idx & sq->mask].wc_opcode == BB_SQ_OWN;
}

/*
 * Returns the number of the application's sends from @w to the send with sequence number @seq, both
 * included. NOPs of the library do not count.
 */
static uint32_t
walk_reports(const struct bb_sq *sq, struct walk w, uint32_t seq)
{
	uint32_t n = 0;

	for (; (int32_t)(seq - w.done) > 0; walk_next(sq, &w))
		n += !is_own(sq, &w);
	return n;
}

/* Returns true if a walk from @w over the sends ends exactly at the end of the queue. */
static bool
walk_holds(const struct bb_sq *sq, struct walk w)
{
	while ((int32_t)(sq->seq - w.done) > 0) {
		const uint32_t seq = walk_seq(sq, &w);

		walk_next(sq, &w);
		if (w.done != seq)
			return false;
	}
	return w.done == sq->seq && w.idx == sq->pi;
}

/*
 * Searches for the first block of the oldest outstanding send, from the newest block backwards. A
 * block in the middle of a long WQE still has the sequence number of an older WQE that began at
 * this block. So a block is accepted only if a walk from it over the WQEs ends exactly at the end
 * of the queue (walk_holds()).
 */
uint32_t
bb_sq_pending(const struct bb_sq *sq, uint16_t *counter)
{
	struct walk w = {.done = sq->done};
	uint32_t i;

	for (i = 1; sq->seq != sq->done && i <= sq->mask + 1; i++) {
		w.idx = (uint16_t)(sq->pi - i);
		if (walk_holds(sq, w)) {
			*counter = w.idx;
			return walk_count(sq, w, sq->seq);
		}
	}
	return 0;
}

static int
walk_begin(const struct bb_qp *qp, struct walk *w)
{
	w->done = qp->sq.done;
	w->idx = 0;
	if (bb_qp_drained(qp) || bb_sq_pending(&qp->sq, &w->idx) != 0)
		return 0;
	BB_LOG(ERR,
	       "QP 0x%x: the records of its send queue are corrupt: check the program for "
	       "stray writes",
	       qp->qpn);
	return -EIO;
}

static const struct bb_wqe_ctrl *
walk_ctrl(const struct bb_sq *sq, const struct walk *w)
{
	return (const void *)(sq->buf + (size_t)(w->idx & sq->mask) * BB_WQE_BB);
}

/* Returns true if a send from @w on binds a window, invalidates a key or sets a key's layout. */
static bool
walk_changes_keys(const struct bb_sq *sq, struct walk w)
{
	for (; (int32_t)(sq->seq - w.done) > 0; walk_next(sq, &w))
		if (sq->wqes[w.idx & sq->mask].opcode >= BB_SQ_BIND_MW)
			return true;
	return false;
}

/*
 * Removes the send at @w and all later sends from the queue. No doorbell has covered the send at
 * @w.
 */
static void
cut(struct bb_sq *sq, const struct walk *w)
{
	const uint32_t rung = w->done;
	uint16_t k;

	/*
	 * sq->seq also counts NOPs of the library and the additional slots of long sends, which are
	 * not requests. sq->extra corrects the statistics for both.
	 */
	bb_count_add(&sq->extra, walk_reports(sq, *w, sq->seq) - (uint64_t)(sq->seq - rung));
	for (k = w->idx; k != sq->pi; k++)
		memset(&sq->wqes[k & sq->mask], 0, sizeof(sq->wqes[0]));
	/*
	 * seq, carry and pi are stored by one 64-bit store, so that no reader sees a mix of old and
	 * new values.
	 */
	bb_count_store_pair(&sq->seq, (uint64_t)w->idx << 48 | rung);
}

int
bb_qp_abort(struct bb_qp *qp)
{
	bool umr = false, fence;
	struct bb_dev *dev;
	uint32_t rung, asked;
	struct bb_sq *sq;
	struct walk w;
	int ret;

	if (qp == NULL)
		return -EINVAL;
	sq = &qp->sq;
	dev = qp->ctrl->pd->dev;
	if (sq->dbrec == NULL) {
		BB_LOG(ERR,
		       "%s: QP 0x%x: the verbs driver cannot withdraw posted requests; ring "
		       "the doorbell and let them complete",
		       dev->name, qp->qpn);
		return -ENOTSUP;
	}
	if (!bb_queue_check_owner(sq->owner))
		return bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
	rung = (uint32_t)sq->rung_seq;
	if (sq->seq == rung)
		return 0;
	ret = walk_begin(qp, &w);
	if (ret != 0)
		return ret;
	/*
	 * Among the sends that a doorbell has covered, finds the last one that asks for a CQE. If
	 * no such send is outstanding, the result is the last send known to be complete.
	 */
	for (asked = sq->done; (int32_t)(rung - w.done) > 0; walk_next(sq, &w)) {
		if ((walk_ctrl(sq, &w)->fm_ce_se & BB_WQE_CE_CQE) != 0)
			asked = walk_seq(sq, &w);
		if (!is_own(sq, &w))
			umr = sq->wqes[w.idx & sq->mask].opcode >= BB_SQ_BIND_MW;
	}
	/*
	 * After the abort the next post needs a small fence if the first aborted send got one from
	 * the library. A send that the caller posted with the stronger BB_SEND_FENCE does not have
	 * the bit of the small fence. So also check whether the send before it was a UMR.
	 */
	fence = (walk_ctrl(sq, &w)->fm_ce_se & BB_SEND_SMALL_FENCE) != 0 || umr;
	if (walk_changes_keys(sq, w)) {
		pthread_mutex_lock(&dev->lock);
		bb_mw_qp_abort(qp);
		pthread_mutex_unlock(&dev->lock);
	}
	if ((int32_t)(sq->sig_seq - rung) > 0)
		sq->sig_seq = asked;
	cut(sq, &w);
	sq->fence = 0;
	if (fence)
		bb_sq_fence_next(sq);
	else
		bb_sq_enable(sq, sq->enabled);
	return 0;
}

/* Returns the fate of a send that was flushed. */
static enum bb_wr_fate
flushed_fate(const struct bb_qp *qp)
{
	switch (qp->ctrl->send_error) {
	case BB_WC_LOC_LEN_ERR:
	case BB_WC_LOC_QP_OP_ERR:
	case BB_WC_LOC_PROT_ERR:
	case BB_WC_MW_BIND_ERR:
	case BB_WC_REM_INV_REQ_ERR:
	case BB_WC_REM_ACCESS_ERR:
	case BB_WC_REM_OP_ERR:
	case BB_WC_RNR_RETRY_EXC_ERR:
		return BB_WR_NOT_DONE;
	default:
		return BB_WR_UNKNOWN;
	}
}

/* Returns true if a doorbell covered the send before the recovery began. */
static bool
was_rung(const struct bb_qp *qp, const struct walk *w)
{
	return (int32_t)(qp->ctrl->recovery.rung - walk_seq(&qp->sq, w)) >= 0;
}

static bool
has_room(const struct bb_qp_recovery *r, uint64_t entries)
{
	return r->n <= r->max && entries <= r->max - r->n;
}

static void
report(struct bb_qp_recovery *r, const struct bb_wc *wc, enum bb_wr_fate fate, bool recv)
{
	struct bb_wr_end *end = &r->ends[r->n++];

	end->wc = *wc;
	end->fate = fate;
	end->recv = recv;
}

/* Reports a send that has no CQE. Skips NOPs of the library. */
static void
report_send(struct bb_qp *qp, struct bb_qp_recovery *r, struct walk *w, enum bb_wr_fate fate)
{
	const struct bb_sq_wqe *wqe = &qp->sq.wqes[w->idx & qp->sq.mask];
	struct bb_wc wc = {
		.wr_id = wqe->wr_id,
		.qp = qp,
		.status = fate == BB_WR_DONE ? BB_WC_SUCCESS : BB_WC_WR_FLUSH_ERR,
		.opcode = wqe->wc_opcode,
	};

	if (!is_own(&qp->sq, w))
		report(r, &wc, fate, false);
	walk_next(&qp->sq, w);
}

static bool
cqe_is_send(const struct bb_cqe *cqe)
{
	return cqe->op_own >> 4 == BB_CQE_REQ || cqe->op_own >> 4 == BB_CQE_REQ_ERR;
}

static uint32_t
cqe_seq(const struct bb_qp *qp, const struct bb_cqe *cqe)
{
	return qp->sq.wqes[bb_be16(cqe->wqe_counter) & qp->sq.mask].seq;
}

/*
 * Returns the number of sends that a CQE completes: the send that asked for the CQE, and the
 * unsignalled sends before that send. Returns 0 for a CQE of a receive, and for a CQE whose send is
 * not outstanding.
 */
static uint32_t
cqe_sends(const struct bb_qp *qp, const struct bb_cqe *cqe, const struct walk *w)
{
	if (!cqe_is_send(cqe) || qp->sq.wqes == NULL ||
	    cqe_seq(qp, cqe) - qp->sq.done > bb_sq_outstanding(&qp->sq))
		return 0;
	return walk_count(&qp->sq, *w, cqe_seq(qp, cqe));
}

static enum bb_wr_fate
wc_fate(const struct bb_qp *qp, const struct bb_wc *wc, const struct walk *w, bool recv)
{
	if (wc->status == BB_WC_SUCCESS)
		return BB_WR_DONE;
	if (wc->status != BB_WC_WR_FLUSH_ERR)
		return BB_WR_FAILED;
	return recv || !was_rung(qp, w) ? BB_WR_NOT_DONE : flushed_fate(qp);
}

/*
 * Reports the requests that @cqe completes: first the unsignalled sends, then the request that
 * asked for the CQE. @sends is the result of cqe_sends(). @w is the oldest send without a report
 * and moves past the reported sends. Then marks the CQE as used, so that bb_cq_compact() removes
 * it.
 */
static void
take_cqe(struct bb_cq *cq, struct bb_qp *qp, struct bb_cqe *cqe, uint32_t sends, struct walk *w,
	 struct bb_qp_recovery *r)
{
	const bool recv = !cqe_is_send(cqe);
	struct bb_wc wc;

	for (; sends > 1; sends--)
		report_send(qp, r, w, BB_WR_DONE);
	if (sends != 0 && is_own(&qp->sq, w)) {
		(void)bb_cq_translate(cq, cqe, &wc);
		walk_next(&qp->sq, w);
	} else if (bb_cq_translate(cq, cqe, &wc) != 0) {
		report(r, &wc, wc_fate(qp, &wc, w, recv), recv);
		if (!recv)
			walk_next(&qp->sq, w);
	} else if (sends != 0) {
		/* The send succeeded, because it is unsignalled and a later send has completed. */
		report_send(qp, r, w, BB_WR_DONE);
	}
	cqe->srqn_uidx = bb_be32(BB_CQE_NO_USER);
}

/*
 * Reports all pending CQEs of @qp in @cq and removes them. CQEs of other QPs stay in @cq. Returns
 * 0, or -ENOSPC if the application's array is full.
 */
static int
take_cqes(struct bb_cq *cq, struct bb_qp *qp, struct walk *w, struct bb_qp_recovery *r)
{
	uint32_t taken = 0;
	uint64_t ci;
	int ret = 0;

	for (ci = cq->ring.ci; ci - cq->ring.ci <= cq->ring.mask; ci++) {
		struct bb_cqe *cqe = bb_cqring_peek_at(&cq->ring, ci);
		uint32_t sends, entries = 1;

		if (cqe == NULL)
			break;
		if (bb_cqe_is_compressed(cqe))
			(void)bb_cqring_expand(&cq->ring, cqe);
		if ((bb_be32(cqe->srqn_uidx) & 0xffffff) != qp->user_index)
			continue;
		sends = cqe_sends(qp, cqe, w);
		if (sends != 0)
			entries = walk_reports(&qp->sq, *w, cqe_seq(qp, cqe));
		if (!has_room(r, entries)) {
			ret = -ENOSPC;
			break;
		}
		take_cqe(cq, qp, cqe, sends, w, r);
		taken++;
	}
	if (taken != 0)
		bb_cq_compact(cq);
	/* bb_cq_translate() may have posted a receive again that the device took in vain. */
	if (qp->ctrl->init.srq != NULL)
		bb_srqring_ring(&qp->ctrl->init.srq->ring);
	return ret;
}

/*
 * Posts a NOP whose CQE shows that the unsignalled sends before the NOP are complete or flushed.
 * This NOP is needed because an unsignalled send that succeeded has no CQE, and there may be no
 * later CQE that completes it. In ERR the device flushes the NOP after all earlier sends. The
 * kernel's ib_drain_sq() relies on the same order.
 */
static void
post_marker(struct bb_qp *qp)
{
	if (qp->ctrl->recovery.marked)
		return;
	/*
	 * If the queue is full, a later call posts the NOP: the poll of a pending CQE makes room
	 * for it. The doorbell is needed in this case too, because the only send that asks for a
	 * CQE may be one that no doorbell has covered.
	 */
	qp->ctrl->recovery.marked = bb_sq_post_own_nop(&qp->sq) == 0;
	bb_qp_ring(qp);
}

/*
 * Reports CQEs of @qp until all its requests have ended, or until BB_FLUSH_MS have passed. Time for
 * which the process was stopped does not count: the thread of a software device was stopped, too.
 */
static int
collect(struct bb_qp *qp, struct walk *w, struct bb_qp_recovery *r)
{
	struct bb_cq *scq = qp->ctrl->send_cq, *rcq = qp->ctrl->recv_cq;
	struct bb_time_limit limit;
	int ret;

	bb_time_limit_start(&limit, BB_FLUSH_MS);
	for (;;) {
		const bool last = bb_time_limit_reached(&limit);

		/* On verbs each CQ must be polled; on mlx5 one call runs the whole device. */
		if (scq->progress != NULL)
			scq->progress(scq->progress_arg);
		if (rcq != scq && rcq->progress != NULL)
			rcq->progress(rcq->progress_arg);
		ret = take_cqes(scq, qp, w, r);
		if (ret == 0 && rcq != scq)
			ret = take_cqes(rcq, qp, w, r);
		if (ret != 0)
			return ret;
		if (bb_qp_drained(qp) && qp->rq.ci == qp->rq.rung)
			return 0;
		if (!bb_qp_drained(qp))
			post_marker(qp);
		if (last) {
			BB_LOG(WARNING,
			       "QP 0x%x: the device did not flush the QP within %u ms; the "
			       "outcome of its remaining requests is unknown",
			       qp->qpn, BB_FLUSH_MS);
			return 0;
		}
		rte_pause();
	}
}

/*
 * Reports the requests that still have no CQE. A request has none if a stuck device did not flush
 * the request, or if no doorbell has covered the request.
 */
static int
collect_remaining(struct bb_qp *qp, struct walk *w, struct bb_qp_recovery *r)
{
	struct bb_wc wc = {.qp = qp, .status = BB_WC_WR_FLUSH_ERR, .opcode = BB_WC_RECV};
	uint32_t sends = walk_count(&qp->sq, *w, qp->sq.seq);
	const uint64_t reports = walk_reports(&qp->sq, *w, qp->sq.seq);

	if (!has_room(r, reports + (qp->rq.pi - qp->rq.ci)))
		return -ENOSPC;
	if (!bb_qp_drained(qp))
		bb_qp_send_failed(qp, qp->sq.done + 1);
	for (; sends != 0; sends--)
		report_send(qp, r, w, was_rung(qp, w) ? BB_WR_UNKNOWN : BB_WR_NOT_DONE);
	bb_count_add32(&qp->sq.done, bb_sq_outstanding(&qp->sq));
	while (qp->rq.pi != qp->rq.ci) {
		const bool rung = (int32_t)(qp->rq.rung - qp->rq.ci) > 0;

		wc.wr_id = qp->rq.wr_ids[qp->rq.ci & qp->rq.mask];
		report(r, &wc, rung ? BB_WR_UNKNOWN : BB_WR_NOT_DONE, true);
		bb_count_add32(&qp->rq.ci, 1);
		bb_count_add(&qp->rq.done, 1);
	}
	return 0;
}

static int
to_state(struct bb_qp *qp, enum bb_qp_state state)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = state;
	return bb_qp_modify(qp, &attr, BB_QP_STATE);
}

/* Moves the QP to ERR and reports every request. */
static int
give_up(struct bb_qp *qp, struct bb_qp_recovery *r)
{
	struct walk w;
	int ret;

	ret = walk_begin(qp, &w);
	if (ret == 0)
		ret = to_state(qp, BB_QP_ERR);
	if (ret == 0 && !qp->ctrl->recovery.begun) {
		qp->ctrl->recovery.begun = true;
		qp->ctrl->recovery.rung = (uint32_t)qp->sq.rung_seq;
	}
	if (ret == 0)
		ret = collect(qp, &w, r);
	if (ret == 0)
		ret = collect_remaining(qp, &w, r);
	if (ret == -ENOSPC)
		BB_LOG(ERR,
		       "QP 0x%x: %u entries are too few for the outcomes of all its requests: "
		       "call again for the rest",
		       qp->qpn, r->max);
	r->flushed = flushed_fate(qp);
	return ret;
}

int
bb_qp_recover_owned(struct bb_qp *qp, const struct bb_qp_addr *local,
		    const struct bb_qp_addr *remote, const struct bb_qp_attr *attr,
		    struct bb_qp_recovery *recovery)
{
	struct bb_qp_attr again;
	int ret;

	if (qp == NULL || recovery == NULL || (recovery->ends == NULL && recovery->max != 0) ||
	    (remote != NULL && local == NULL))
		return -EINVAL;
	recovery->n = 0;
	recovery->flushed = BB_WR_UNKNOWN;
	if (remote != NULL && attr == NULL && qp->state == BB_QP_RESET) {
		BB_LOG(ERR,
		       "QP 0x%x is in RESET, which discards its attributes: pass attributes to "
		       "bb_qp_recover()",
		       qp->qpn);
		return -EINVAL;
	}
	again = attr != NULL ? *attr : qp->ctrl->attr;
	if (qp->state != BB_QP_RESET) {
		ret = give_up(qp, recovery);
		if (ret == 0)
			ret = to_state(qp, BB_QP_RESET);
		if (ret != 0)
			return ret;
	}
	return remote != NULL ? bb_qp_connect_owned(qp, local, remote, &again) : 0;
}

int
bb_qp_recover_v(struct bb_qp *qp, const struct bb_qp_addr *local, const struct bb_qp_addr *remote,
		const struct bb_qp_attr *attr, struct bb_qp_recovery *recovery)
{
	int ret = qp == NULL || recovery == NULL ? -EINVAL : bb_qp_unowned(qp, "bb_qp_recover()");
	struct bb_qp_recovery r = {0};
	int err;

	if (ret != 0)
		return ret;
	memcpy(&r, recovery, RTE_MIN((size_t)recovery->size, sizeof(r)));
	ret = bb_qp_recover_owned(qp, local, remote, attr, &r);
	err = bb_out(recovery, &r, sizeof(r));
	return ret != 0 ? ret : err;
}
