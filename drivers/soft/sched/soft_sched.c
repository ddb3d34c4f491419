/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Scheduling of an engine: its lock, its lists of QPs, and its failures. Failures are recorded here
 * and handled at the end of the turn. Also soft_quiesce(), which waits until each engine's and each
 * port's lock has been released once.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "bb_roce_qp.h"
#include "soft_data.h"
#include "soft_sleep.h"

void
soft_engine_lock(struct soft_engine *e)
{
	rte_ticketlock_lock(&e->lock);
}

void
soft_engine_unlock(struct soft_engine *e)
{
	rte_ticketlock_unlock(&e->lock);
	soft_engine_rouse(e);
}

void
soft_engine_rouse(struct soft_engine *e)
{
	const uint64_t one = 1;

	/*
	 * Only the first caller writes. A failed write means that the eventfd's counter is at its
	 * limit, so the descriptor is readable. write() would be a cancellation point: a thread
	 * that ended in it would leave the engine's thread asleep for ever.
	 */
	if (__atomic_load_n(&e->asleep, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&e->asleep, false, __ATOMIC_SEQ_CST) &&
	    syscall(SYS_write, e->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* ---- Readers: engines and ports, which read the lookup tables under their own locks */

static pthread_mutex_t readers_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, soft_reader) readers = LIST_HEAD_INITIALIZER(readers);

void
soft_reader_add(struct soft_reader *r)
{
	pthread_mutex_lock(&readers_lock);
	LIST_INSERT_HEAD(&readers, r, link);
	pthread_mutex_unlock(&readers_lock);
}

void
soft_reader_del(struct soft_reader *r)
{
	pthread_mutex_lock(&readers_lock);
	LIST_REMOVE(r, link);
	pthread_mutex_unlock(&readers_lock);
}

void
soft_readers_forget(void)
{
	pthread_mutex_init(&readers_lock, NULL);
	LIST_INIT(&readers);
}

void
soft_quiesce(void)
{
	struct soft_reader *r;

	pthread_mutex_lock(&readers_lock);
	LIST_FOREACH(r, &readers, link)
		r->pass(r);
	pthread_mutex_unlock(&readers_lock);
}

/* ---- Lists of QPs */

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

/* ---- Failed QPs and CQs */

void
soft_qp_fail(struct soft_qp *qp, uint16_t event)
{
	struct soft_engine *e = qp->engine;
	uint32_t old = qp->state;

	if (old == BB_PRM_QP_ERR || old == BB_PRM_QP_RST)
		return;
	__atomic_store_n(&qp->state, BB_PRM_QP_ERR, __ATOMIC_RELEASE);
	if (event != 0)
		soft_event_raise(qp->dev, qp->obj, event);
	if (qp->roce != NULL)
		bb_roce_qp_err(qp->roce);
	/*
	 * If the target has not yet read the request, cancels the request, so that the flush needs
	 * no other engine. A request that the target is executing stays outstanding.
	 */
	if (qp->wait != SOFT_WAIT_PEER || soft_msg_cancel(qp)) {
		soft_qp_unqueue(e, qp);
		qp->wait = SOFT_WAIT_NONE;
	}
	TAILQ_INSERT_TAIL(&e->failed, qp, err);
	qp->has_failed = true;
	e->failures |= SOFT_QP_FAILED;
	e->chores = true;
	/*
	 * The control path may fail a QP while the engine runs no turn. The flag "pending" makes
	 * the next poll run a turn, which handles the failure.
	 */
	__atomic_store_n(&e->pending, 1, __ATOMIC_RELAXED);
}

void
soft_cq_fail(struct soft_engine *e, struct soft_qp *qp, struct soft_cq *cq)
{
	SOFT_LOG(ERR,
		 "%s CQ 0x%x: overrun: all %u CQEs are unread, and QP 0x%x has one more: create "
		 "the CQ with a CQE for every WQE of its queues",
		 e->dev->name, cq->cqn, 1u << cq->log_size, qp->qpn);
	SOFT_COUNT(qp, cq_overflow);
	soft_event_raise(e->dev, cq->obj, BB_PRM_EVENT_CQ_ERROR);
	e->failures |= SOFT_CQ_FAILED;
	e->chores = true;
}
