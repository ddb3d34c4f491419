/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What an engine has to do next: its lock, its lists of QPs, and the mark of a CQ that died. */
#include "soft_data.h"

void
soft_engine_lock(struct soft_engine *e)
{
	rte_ticketlock_lock(&e->lock);
}

void
soft_engine_unlock(struct soft_engine *e)
{
	rte_ticketlock_unlock(&e->lock);
}

/* ---- Lists */

void
soft_qp_timer(struct soft_engine *e, struct soft_qp *qp, uint64_t ns)
{
	soft_qp_unqueue(e, qp);
	qp->deadline = (e->dev->link != NULL ? soft_engine_ticks(e) : soft_ticks(e->dev)) +
		       soft_time_cycles(ns);
	qp->queued = SOFT_Q_TIMER;
	TAILQ_INSERT_TAIL(&e->timers, qp, run);
	if (qp->deadline < e->next_deadline)
		__atomic_store_n(&e->next_deadline, qp->deadline, __ATOMIC_RELAXED);
}

void
soft_qp_unqueue(struct soft_engine *e, struct soft_qp *qp)
{
	if (qp->queued == SOFT_Q_RUN) {
		TAILQ_REMOVE(&e->run, qp, run);
		e->n_run--;
	} else if (qp->queued == SOFT_Q_TIMER) {
		TAILQ_REMOVE(&e->timers, qp, run);
	} else if (qp->queued == SOFT_Q_LATE) {
		TAILQ_REMOVE(&e->late, qp, run);
	}
	qp->queued = SOFT_Q_NONE;
}

void
soft_qp_queue(struct soft_engine *e, struct soft_qp *qp)
{
	soft_qp_unqueue(e, qp);
	qp->queued = SOFT_Q_RUN;
	TAILQ_INSERT_TAIL(&e->run, qp, run);
	e->n_run++;
}

void
soft_qp_later(struct soft_engine *e, struct soft_qp *qp)
{
	soft_qp_unqueue(e, qp);
	qp->queued = SOFT_Q_LATE;
	TAILQ_INSERT_TAIL(&e->late, qp, run);
}

/* ---- Failures */

void
soft_cq_fail(struct soft_engine *e, struct soft_qp *qp, struct soft_cq *cq)
{
	SOFT_LOG(ERR,
		 "%s CQ 0x%x: overrun, %u CQEs are not consumed and QP 0x%x has one more; the CQ "
		 "must hold a CQE for every WQE of its queues",
		 e->dev->name, cq->cqn, 1u << cq->log_size, qp->qpn);
	SOFT_COUNT(qp, cq_overflow);
	soft_event_raise(e->dev, cq->obj, BB_PRM_EVENT_CQ_ERROR);
	e->cq_failed = true;
}
