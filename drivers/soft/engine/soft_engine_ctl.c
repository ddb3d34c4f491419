/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Control path of engines: creation, UAR pages, QPs, state changes, threads. */
#include <stdlib.h>

#include <rte_thread.h>

#include <unistd.h>

#include "soft_access.h"
#include "soft_bf.h"
#include "soft_netif.h"
#include "soft_shm.h"
#include "soft_wire.h"

#define SOFT_FEW_QPS 4u

static uint32_t soft_last_gen;

/* ---- Creation and destruction of engines */

static soft_msg_handler *const soft_msg_handlers[SOFT_MSG_STATES] = {
	[SOFT_MSG_PENDING] = soft_msg_serve,     [SOFT_MSG_CANCELLED] = soft_msg_serve,
	[SOFT_MSG_RESPONSE] = soft_msg_response, [SOFT_MSG_DGRAM] = soft_dgram_take,
	[SOFT_MSG_PACKET] = soft_packet_take,
};

/*
 * Takes and releases the engine's lock. So every poll that had begun before this call has ended.
 * Also adds the counts of the engine to the shared counters. Implements soft_reader.pass.
 */
static void
soft_engine_pass(struct soft_reader *r)
{
	struct soft_engine *e = container_of(r, struct soft_engine, reader);

	rte_ticketlock_lock(&e->lock);
	soft_served_flush(e);
	soft_wire_count_all(e);
	rte_ticketlock_unlock(&e->lock);
}

struct soft_engine *
soft_engine_create(struct soft_dev *dev)
{
	struct soft_engine *e;
	void *mem;

	soft_time_init();
	if (posix_memalign(&mem, RTE_CACHE_LINE_SIZE, sizeof(*e)) != 0)
		return NULL;
	e = memset(mem, 0, sizeof(*e));
	e->dev = dev;
	e->wake_fd = -1;
	e->msg_handlers = soft_msg_handlers;
	e->next_deadline = SOFT_NO_DEADLINE;
	e->tick_ns = soft_tick_ns();
	e->real_time = !dev->opts.no_clock && !dev->opts.virtual_time;
	e->local = (struct soft_frags){.p = e->local_own, .cap = RTE_DIM(e->local_own)};
	e->req.to = UINT64_MAX;
	e->remote = (struct soft_frags){.p = e->remote_own, .cap = RTE_DIM(e->remote_own)};
	e->shuffle = dev->opts.seed;
	e->net.loses = dev->opts.tx_fault.drop != 0;
	e->net.busy = dev->opts.virtual_time || soft_net_flaps(dev);
	e->chores = e->net.busy;
	e->scan = RTE_MAX(dev->opts.scan, 1u);
	e->few = RTE_MIN(SOFT_FEW_QPS, e->scan / 2);
	e->always = soft_opts_defect(&dev->opts) == SOFT_DEFECT_NO_DOORBELL;
	e->plain = (soft_opts_defect(&dev->opts) | dev->opts.fault | dev->opts.wire) == 0;
	e->turns = e->always | e->net.busy | (dev->link != NULL && dev->link->polled);
	e->pending = e->turns;
	e->packets_left = SOFT_TURN_PACKETS;
	rte_ticketlock_init(&e->lock);
	TAILQ_INIT(&e->run);
	TAILQ_INIT(&e->timers);
	TAILQ_INIT(&e->late);
	TAILQ_INIT(&e->failed);
	TAILQ_INIT(&e->errs);
	TAILQ_INIT(&e->qps);
	TAILQ_INIT(&e->moderated);
	TAILQ_INIT(&e->zips);
	TAILQ_INIT(&e->held_packets);
	LIST_INIT(&e->uncounted);
	TAILQ_INIT(&e->storing);
	soft_shm_engine_add(e);
	e->reader.pass = soft_engine_pass;
	soft_reader_add(&e->reader);
	return e;
}

void
soft_engine_destroy(struct soft_engine *e)
{
	/*
	 * Rejects the remaining requests to destroyed QPs, and frees the results of requests that
	 * destroyed QPs sent.
	 */
	rte_ticketlock_lock(&e->lock);
	soft_inbox_drain(e);
	soft_net_fault_drop_all(e);
	soft_zip_run(e);
	soft_served_flush(e);
	rte_ticketlock_unlock(&e->lock);
	soft_shm_engine_del(e);
	soft_netif_leave(e);
	soft_reader_del(&e->reader);
	if (e->local.grown)
		free(e->local.p);
	if (e->remote.grown)
		free(e->remote.p);
	free(e->held);
	free(e->watch);
	free(e);
}

int
soft_engine_add_uar(struct soft_engine *e, struct soft_uar_page *uar)
{
	struct soft_watch *w = calloc(1, sizeof(*w)), **grown;
	int ret = 0;

	if (w == NULL)
		return -ENOMEM;
	w->uar = uar;
	rte_ticketlock_lock(&e->lock);
	grown = realloc(e->watch, (e->n_watch + 1) * sizeof(*grown));
	if (grown == NULL) {
		free(w);
		ret = -ENOMEM;
		goto out;
	}
	e->watch = grown;
	e->watch[e->n_watch++] = w;
	uar->engine = e;
	uar->watch = w;
	if (e->dev->opts.progress == SOFT_PROGRESS_INLINE)
		__atomic_store_n(&e->page, e->n_watch == 1 ? uar->base : NULL, __ATOMIC_RELAXED);
out:
	/*
	 * Wakes a thread that sleeps: the program maps the page now, and the thread does not yet
	 * watch that mapping.
	 */
	soft_engine_unlock(e);
	return ret;
}

void
soft_engine_del_uar(struct soft_engine *e, struct soft_uar_page *uar)
{
	struct soft_watch *w = uar->watch;
	uint32_t i;

	rte_ticketlock_lock(&e->lock);
	for (i = 0; e->watch[i] != w; i++)
		;
	e->watch[i] = e->watch[--e->n_watch];
	/*
	 * A thread that polls other pages may read this field without the lock, so the store is
	 * atomic.
	 */
	__atomic_store_n(&e->page, NULL, __ATOMIC_RELAXED);
	uar->watch = NULL;
	rte_ticketlock_unlock(&e->lock);
	free(w->rec);
	free(w->last);
	free(w->qp);
	free(w->hidden);
	free(w->cq);
	free(w);
}

void
soft_engine_owners(struct soft_engine *e, uint32_t n)
{
	const bool alone = e->page != NULL && n == 1;

	__atomic_store_n(&e->alone, alone, __ATOMIC_RELAXED);
	__atomic_store_n(&e->stamps, alone && e->dev->link == NULL && !e->dev->opts.no_clock,
			 __ATOMIC_RELAXED);
}

/*
 * Each thread with a CM rings QP1 under the lock of QP1, while the owner of the page rings its own
 * QPs without that lock. So a register may hold words of two WQEs, and the device executes no copy.
 */
void
soft_engine_qp1(struct soft_uar_page *uar)
{
	struct soft_engine *e = uar->engine;

	rte_ticketlock_lock(&e->lock);
	uar->of_qp1 = true;
	uar->copies = false;
	soft_engine_owners(e, uar->allocs + 1);
	rte_ticketlock_unlock(&e->lock);
}

/* ---- Creation, destruction and states of QPs */

static int
soft_watch_grow(struct soft_watch *w)
{
	uint32_t cap = w->cap == 0 ? 8 : w->cap * 2;
	const uint32_t **rec;
	struct soft_hidden *hidden;
	struct soft_qp **qp;
	uint32_t *last;

	if (w->n < w->cap)
		return 0;
	rec = realloc(w->rec, cap * sizeof(*rec));
	if (rec != NULL)
		w->rec = rec;
	last = realloc(w->last, cap * sizeof(*last));
	if (last != NULL)
		w->last = last;
	qp = realloc(w->qp, cap * sizeof(*qp));
	if (qp != NULL)
		w->qp = qp;
	hidden = realloc(w->hidden, cap * sizeof(*hidden));
	if (hidden != NULL)
		w->hidden = hidden;
	if (rec == NULL || last == NULL || qp == NULL || hidden == NULL)
		return -ENOMEM;
	w->cap = cap;
	return 0;
}

/*
 * Registers @e as a user of the CQ. A CQ is shared if an engine other than that of its UAR page
 * uses it. Returns true if this call makes the CQ shared.
 */
static bool
soft_cq_join(struct soft_cq *cq, struct soft_engine *e)
{
	if (cq->uar->engine == e ||
	    (__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_SHARED) != 0)
		return false;
	__atomic_fetch_or(&cq->flags, SOFT_CQ_SHARED, __ATOMIC_RELAXED);
	return true;
}

/*
 * Starts a scan again that has not ended when the list of QPs changes. It wraps at the end of the
 * list, so it would skip a QP that was not scanned yet.
 */
static void
soft_scan_restart(struct soft_watch *w)
{
	w->pos = 0;
	w->left = w->left != 0 ? w->n : 0;
}

int
soft_qp_attach(struct soft_qp *qp)
{
	struct soft_engine *e = qp->uar->engine;
	struct soft_watch *w = qp->uar->watch;
	bool shared = false;
	int ret = 0;

	if (qp->dev->link != NULL) {
		qp->wire = soft_wire_create(qp);
		if (qp->wire == NULL)
			return -ENOMEM;
		qp->roce = &qp->wire->roce;
	}
	rte_ticketlock_lock(&e->lock);
	if (qp->has_sq) {
		ret = soft_watch_grow(w);
		if (ret != 0)
			goto out;
		qp->scan_slot = w->n;
		w->rec[w->n] = &qp->dbrec[1];
		w->last[w->n] = 0;
		w->qp[w->n++] = qp;
		soft_scan_restart(w);
		shared |= soft_cq_join(qp->scq, e);
	}
	if (qp->has_rq || qp->rmp != NULL)
		shared |= soft_cq_join(qp->rcq, e);
	qp->engine = e;
	qp->wait = SOFT_WAIT_NONE;
	qp->queued = SOFT_Q_NONE;
	TAILQ_INSERT_TAIL(&e->qps, qp, all);
	__atomic_store_n(&qp->gen, __atomic_add_fetch(&soft_last_gen, 1, __ATOMIC_RELAXED),
			 __ATOMIC_RELEASE);
out:
	rte_ticketlock_unlock(&e->lock);
	/*
	 * Waits until the first engine no longer writes the CQ without the CQ's lock. Only then may
	 * the second engine write.
	 */
	if (shared)
		soft_quiesce();
	return ret;
}

/* Drops all outstanding work of a QP without completions. */
static void
soft_qp_drop_work(struct soft_engine *e, struct soft_qp *qp)
{
	soft_qp_unqueue(e, qp);
	if (qp->in_err)
		TAILQ_REMOVE(&e->errs, qp, err);
	/*
	 * Before this call, soft_qp_detach() runs a QP once more if it owes an ACK. In that run the
	 * QP can fail, for example because its retries are exceeded. No turn of the engine has
	 * handled that failure yet.
	 */
	if (qp->has_failed)
		TAILQ_REMOVE(&e->failed, qp, err);
	qp->in_err = false;
	qp->has_failed = false;
	soft_msg_drop(qp);
	qp->wait = SOFT_WAIT_NONE;
	qp->bf_differs = false;
	qp->early_cqe = false;
	qp->cs_len = 0;
	qp->rmp_holds = false;
	soft_pf_forget(qp);
}

/*
 * Handles the messages in the inbox outside a turn, because it is possible that no thread polls
 * this engine again. The next poll runs the QPs that the messages have queued.
 */
static void
soft_engine_take_inbox(struct soft_engine *e)
{
	soft_inbox_drain(e);
	__atomic_store_n(&e->pending, 1, __ATOMIC_RELAXED);
}

void
soft_qp_detach(struct soft_qp *qp)
{
	struct soft_engine *e = qp->engine;
	struct soft_watch *w = qp->uar->watch;

	rte_ticketlock_lock(&e->lock);
	soft_wire_last_ack(qp);
	__atomic_store_n(&qp->gen, 0, __ATOMIC_RELEASE);
	soft_qp_drop_work(e, qp);
	if (qp->wire != NULL) {
		soft_wire_count_last(qp->wire);
		if (e->predicted == qp->wire)
			e->predicted = NULL;
		bb_roce_qp_err(&qp->wire->roce);
	}
	TAILQ_REMOVE(&e->qps, qp, all);
	if (qp->has_sq) {
		uint32_t slot = qp->scan_slot, last = --w->n;

		soft_hidden_del(w, qp);
		w->rec[slot] = w->rec[last];
		w->last[slot] = w->last[last];
		w->qp[slot] = w->qp[last];
		w->qp[slot]->scan_slot = slot;
		if (w->qp[slot]->hidden != 0)
			w->hidden[w->qp[slot]->hidden - 1].slot = slot;
		if (w->n == 1)
			soft_bf_reset(w);
		soft_scan_restart(w);
	}
	/* Executes or rejects the requests of other engines for this QP. */
	soft_engine_take_inbox(e);
	soft_failures_run(e);
	soft_zip_run(e);
	rte_ticketlock_unlock(&e->lock);
}

/* Performs the actions of the QP's new state, such as a flush in ERR. */
static void
soft_qp_enter_state(struct soft_qp *qp)
{
	struct soft_engine *e = qp->engine;

	if (unlikely(qp->wire != NULL))
		soft_wire_enter_state(qp->wire);
	switch (qp->state) {
	case BB_PRM_QP_RST:
		__atomic_store_n(&qp->gen, __atomic_add_fetch(&soft_last_gen, 1, __ATOMIC_RELAXED),
				 __ATOMIC_RELEASE);
		soft_qp_drop_work(e, qp);
		qp->umr_index = 0;
		qp->sq_pi = 0;
		qp->sq_ci = 0;
		qp->rq_ci = 0;
		if (qp->has_sq)
			qp->uar->watch->last[qp->scan_slot] = 0;
		break;
	case BB_PRM_QP_RTS:
		qp->retries_left = qp->retry_count;
		qp->rnr_left = qp->rnr_retry;
		qp->reads_in_burst = 0;
		break;
	case BB_PRM_QP_ERR:
		/*
		 * Withdraws a request that the target's engine has not yet read, so that the flush
		 * does not depend on that engine. A request that the target executes at this moment
		 * stays outstanding.
		 */
		if (qp->wait != SOFT_WAIT_PEER || soft_msg_cancel(qp)) {
			soft_qp_unqueue(e, qp);
			qp->wait = SOFT_WAIT_NONE;
		}
		soft_qp_flush(e, qp);
		/*
		 * The receives of an RMP stay for its other QPs. Only the receive that this QP has
		 * taken is flushed.
		 */
		if (qp->rmp_holds) {
			SOFT_COUNT(qp, resp_flush);
			soft_cqe_error(e, qp, true, qp->rmp_idx, 0, BB_SYN_WR_FLUSH);
		}
		if (qp->rmp != NULL)
			soft_event_raise(qp->dev, qp->obj, BB_PRM_EVENT_SRQ_LAST_WQE);
		if (qp->has_rq && !qp->in_err) {
			TAILQ_INSERT_TAIL(&e->errs, qp, err);
			e->chores = true;
			qp->in_err = true;
			__atomic_store_n(&e->pending, 1, __ATOMIC_RELAXED);
		}
		break;
	default:
		break;
	}
	soft_shm_qp_update(qp);
}

void
soft_qp_state_changed(struct soft_qp *qp, uint32_t old_state)
{
	if (qp->state == old_state)
		return;
	soft_qp_enter_state(qp);
	/* Rejects requests for this QP. The QPs that sent these requests get no ACK. */
	if (qp->state == BB_PRM_QP_RST || qp->state == BB_PRM_QP_ERR)
		soft_engine_take_inbox(qp->engine);
	soft_failures_run(qp->engine);
	soft_zip_run(qp->engine);
}

/* ---- Failed QPs and CQs */

static bool
soft_cq_dead(const struct soft_cq *cq)
{
	return __atomic_load_n(&cq->error, __ATOMIC_RELAXED);
}

/*
 * Moves QPs of this engine to ERR if their CQ has failed. QPs of other engines detect the failure
 * when they write their next CQE.
 */
static void
soft_cq_sweep(struct soft_engine *e)
{
	struct soft_qp *qp;

	TAILQ_FOREACH(qp, &e->qps, all) {
		if ((qp->has_sq && soft_cq_dead(qp->scq)) ||
		    ((qp->has_rq || qp->rmp != NULL) && soft_cq_dead(qp->rcq)))
			soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
	}
}

void
soft_failures_run(struct soft_engine *e)
{
	struct soft_qp *qp;
	uint8_t failures;

	/*
	 * A flush may make another CQ fail. The loop ends, because each CQ and each QP fails only
	 * once.
	 */
	while ((failures = e->failures) != 0) {
		e->failures = 0;
		if ((failures & SOFT_LISTS_LARGE) != 0)
			soft_xlt_shrink(e);
		if ((failures & SOFT_CQ_FAILED) != 0)
			soft_cq_sweep(e);
		while ((qp = TAILQ_FIRST(&e->failed)) != NULL) {
			TAILQ_REMOVE(&e->failed, qp, err);
			qp->has_failed = false;
			/* The control path may have changed the QP's state after the failure. */
			if (qp->state == BB_PRM_QP_ERR)
				soft_qp_enter_state(qp);
		}
	}
}
