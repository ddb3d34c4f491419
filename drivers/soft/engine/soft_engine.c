/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Engines. An engine runs the QPs of one UAR page (inline progress) or of a whole device.
 *
 * soft_engine_progress() is one poll. If the engine may have work, the poll takes the engine's lock
 * and runs a turn of the engine. A turn handles, in this order: messages of other engines, expired
 * timers, QPs with remaining work, registers and doorbell records, QPs in ERR. If the device sends
 * packets, a turn handles registers and records first. With inline progress a poll without work
 * loads five registers and three words of the engine, and takes no lock. If another thread holds
 * the engine's lock, the poll returns at once. A QP executes at most SOFT_RUN_WQES WQEs before the
 * next QP has its turn. A turn of the engine ends after SOFT_TURN_PACKETS packets.
 *
 * soft_engine_progress_port() is one poll of an engine whose device has an ethdev.
 */
#include <rte_tailq.h>

#include "soft_clock.h"
#include "soft_engine.h"
#include "soft_link_port.h"
#include "soft_sleep.h"
#include "soft_wire.h"

/* ---- Timers of QPs */

/* Moves the QPs whose timers have expired to the list of QPs with work. */
static void
soft_timers_run(struct soft_engine *e)
{
	uint64_t now, next = SOFT_NO_DEADLINE;
	struct soft_qp *qp;
	void *tmp;

	now = e->dev->link != NULL ? soft_engine_ticks(e) : soft_ticks(e->dev);
	if (now < e->next_deadline)
		return;
	RTE_TAILQ_FOREACH_SAFE(qp, &e->timers, run, tmp)
	{
		if (qp->deadline <= now)
			soft_qp_queue(e, qp);
		else if (qp->deadline < next)
			next = qp->deadline;
	}
	__atomic_store_n(&e->next_deadline, next, __ATOMIC_RELAXED);
}

/* ---- Lists of QPs */

/*
 * Runs one turn of every QP that has work when the function is called, until the packets of the
 * engine's turn are used up. Always runs the first QP, because requests of other engines may use up
 * the packets in each turn.
 */
static void
soft_run_list(struct soft_engine *e)
{
	uint32_t turns;

	e->work++;
	soft_now(e);
	e->n_full = 0;
	e->full = NULL;
	e->packets_left = RTE_MAX(e->packets_left, 1);
	for (turns = e->n_run; turns != 0 && e->n_run != 0 && e->packets_left > 0; turns--) {
		struct soft_qp *qp = TAILQ_FIRST(&e->run);

		soft_qp_unqueue(e, qp);
		if (qp->wire != NULL)
			soft_wire_run(e, qp->wire);
		else if (qp->wait != SOFT_WAIT_NONE)
			soft_req_timeout(e, qp);
		else
			soft_req_run(e, qp);
	}
}

/* Checks a few QPs in ERR per poll for new receives to flush, because receives have no doorbell. */
static void
soft_err_list(struct soft_engine *e)
{
	uint32_t turns;

	for (turns = e->scan; turns != 0; turns--) {
		struct soft_qp *qp = TAILQ_FIRST(&e->errs);

		if (qp == NULL)
			return;
		TAILQ_REMOVE(&e->errs, qp, err);
		TAILQ_INSERT_TAIL(&e->errs, qp, err);
		soft_flush_rq(e, qp);
		if (qp == TAILQ_FIRST(&e->errs))
			return;
	}
}

/* ---- Polls */

/* Does the rare work of a poll. Returns a value other than 0 if the next poll must continue it. */
static __rte_noinline uint32_t
soft_engine_chores(struct soft_engine *e)
{
	if (!TAILQ_EMPTY(&e->moderated))
		soft_cq_moderated_run(e);
	if (!TAILQ_EMPTY(&e->errs))
		soft_err_list(e);
	if (!TAILQ_EMPTY(&e->held_packets))
		soft_net_fault_run(e);
	soft_failures_run(e);
	if (!TAILQ_EMPTY(&e->zips))
		soft_zip_run(e);
	if (e->net.busy)
		e->net.busy = soft_net_run(e);
	e->chores = !TAILQ_EMPTY(&e->errs) || !TAILQ_EMPTY(&e->moderated) ||
		    !TAILQ_EMPTY(&e->held_packets) || e->failures != 0 || !TAILQ_EMPTY(&e->zips) ||
		    e->net.busy;
	return e->chores;
}

/* Value of e->pending: the only work that is left is to add the counts. */
#define SOFT_ONLY_COUNTS UINT32_MAX

/*
 * Counts a poll without work. Returns true if the counts must wait for further idle polls. Two
 * threads that poll at once may count one poll.
 */
static inline bool
soft_engine_rests(struct soft_engine *e)
{
	const uint32_t idle = __atomic_load_n(&e->idle, __ATOMIC_RELAXED) + 1;

	if (idle >= SOFT_IDLE_POLLS)
		return false;
	__atomic_store_n(&e->idle, idle, __ATOMIC_RELAXED);
	return true;
}

/*
 * Adds the engine's counts to shared counters. An atomic add per poll is expensive, so this happens
 * only after some polls without other work. Returns true while the addition is still due.
 */
static inline bool
soft_engine_counts(struct soft_engine *e)
{
	if (e->work != e->counted) {
		e->counted = e->work;
		__atomic_store_n(&e->idle, 0, __ATOMIC_RELAXED);
		return true;
	}
	if (soft_engine_rests(e))
		return true;
	soft_served_flush(e);
	soft_wire_count_all(e);
	return false;
}

/*
 * Returns true if the next poll must run a turn, even if there is no new doorbell or packet. A turn
 * that would only count an idle poll is not needed.
 */
static inline bool
soft_engine_pending(struct soft_engine *e)
{
	const uint32_t pending = __atomic_load_n(&e->pending, __ATOMIC_RELAXED);

	return pending != 0 && !(pending == SOFT_ONLY_COUNTS && soft_engine_rests(e));
}

/* Returns true if software has stored to a doorbell register or to the arm register of the page. */
static inline bool
soft_page_rung(const uint8_t *page)
{
	const uint64_t *bf = (const uint64_t *)(const void *)(page + SOFT_BF_OFFSET);

	return (__atomic_load_n(&bf[0], __ATOMIC_RELAXED) |
		__atomic_load_n(&bf[SOFT_BF_HALF / 8], __ATOMIC_RELAXED) |
		__atomic_load_n(&bf[2 * SOFT_BF_HALF / 8], __ATOMIC_RELAXED) |
		__atomic_load_n(&bf[3 * SOFT_BF_HALF / 8], __ATOMIC_RELAXED) |
		__atomic_load_n((const uint64_t *)(const void *)(page + SOFT_ARM_OFFSET),
				__ATOMIC_RELAXED)) != 0;
}

/* Returns the bit of page number @i in a set of pages. Pages from number 63 on share a bit. */
static inline uint64_t
soft_page_bit(uint32_t i)
{
	return UINT64_C(1) << RTE_MIN(i, 63u);
}

/* Returns the set of pages whose registers software has stored to. */
static inline uint64_t
soft_engine_rung(const struct soft_engine *e)
{
	uint64_t rung = 0;
	uint32_t i;

	for (i = 0; i < e->n_watch; i++)
		if (soft_page_rung(e->watch[i]->uar->base))
			rung |= soft_page_bit(i);
	return rung;
}

/* Polls a page if it is rung or its scan goes on. Returns the same as soft_engine_watch(). */
static inline uint32_t
soft_engine_watch_one(struct soft_engine *e, struct soft_watch *w, bool rung)
{
	/* Fast path: in most polls the page has not changed. */
	if (!rung && (w->left | w->cq_left | e->always) == 0)
		return 0;
	soft_watch_poll(e, w);
	return w->left | w->cq_left;
}

static __rte_noinline uint32_t
soft_engine_watch_all(struct soft_engine *e, uint64_t rung)
{
	uint32_t i, left = 0;

	for (i = 0; i < e->n_watch; i++) {
		struct soft_watch *w = e->watch[i];

		left |= soft_engine_watch_one(e, w, (rung & soft_page_bit(i)) != 0);
		soft_watch_warm(w);
	}
	return left;
}

/*
 * Checks the registers and doorbell records of the pages. @rung: the pages whose registers software
 * has stored to. Returns a value other than 0 if the next poll must continue the scan.
 */
static inline uint32_t
soft_engine_watch(struct soft_engine *e, uint64_t rung)
{
	if (unlikely(e->page == NULL))
		return soft_engine_watch_all(e, rung);
	return soft_engine_watch_one(e, e->watch[0], rung != 0);
}

/* Schedules the QPs whose timers have expired, then runs the QPs with work. */
static inline void
soft_engine_lists(struct soft_engine *e)
{
	if (unlikely(e->next_deadline != SOFT_NO_DEADLINE))
		soft_timers_run(e);
	if (unlikely(e->n_run != 0))
		soft_run_list(e);
}

/*
 * Handles the doorbells and delayed ACKs of a turn whose link has a function receive(), which comes
 * next. Returns a value other than 0 if the next poll must continue the scan.
 */
static inline uint32_t
soft_engine_early(struct soft_engine *e, uint64_t rung)
{
	uint32_t pending;

	e->early = true;
	pending = soft_engine_watch(e, rung);
	e->early = false;
	while (unlikely(!TAILQ_EMPTY(&e->late)))
		soft_qp_queue(e, TAILQ_FIRST(&e->late));
	return pending;
}

/* Ends a turn. Stores whether the next poll must run a turn in any case. */
static inline void
soft_engine_end(struct soft_engine *e, uint32_t pending)
{
	pending |= e->turns | e->n_run;
	if (unlikely(e->served != NULL || !LIST_EMPTY(&e->uncounted)) && soft_engine_counts(e) &&
	    pending == 0)
		pending = SOFT_ONLY_COUNTS;
	if (pending != e->pending)
		__atomic_store_n(&e->pending, pending, __ATOMIC_RELAXED);
}

/* Runs a turn of an engine whose device sends packets through a link that is not polled. */
static __rte_noinline void
soft_engine_turn_link(struct soft_engine *e, const struct soft_link_ops *link, uint64_t rung)
{
	uint32_t pending;

	e->timed = false;
	e->stamped = false;
	if (unlikely(__atomic_load_n(&e->inbox, __ATOMIC_RELAXED) != NULL))
		soft_inbox_drain(e);
	if (link->receive != NULL) {
		pending = soft_engine_early(e, rung);
		(void)link->receive(e);
		soft_engine_lists(e);
		pending |= TAILQ_FIRST(&e->late) != NULL;
	} else {
		soft_engine_lists(e);
		pending = soft_engine_watch(e, rung);
	}
	if (unlikely(e->chores))
		pending |= soft_engine_chores(e);
	soft_engine_end(e, pending);
}

/* Runs a turn of an engine that does not use its link, because another thread does. */
static __rte_noinline void
soft_engine_turn_linkless(struct soft_engine *e, uint64_t rung)
{
	e->packets_left = SOFT_TURN_PACKETS;
	if (unlikely(__atomic_load_n(&e->inbox, __ATOMIC_RELAXED) != NULL))
		soft_inbox_drain(e);
	(void)soft_engine_early(e, rung);
	soft_engine_lists(e);
	if (e->chores)
		(void)soft_engine_chores(e);
	if (!LIST_EMPTY(&e->uncounted))
		(void)soft_engine_counts(e);
}

/*
 * Runs a turn of an engine whose link must be polled. @link: NULL for soft_link_port, whose
 * functions are inline here. Most of these turns find no packet. So the lists, the rare work and
 * the end of the link's turn are run only if one of them has work. Such an engine runs a turn in
 * every poll, so e->pending does not change. It serves no requests in process, so e->served is
 * NULL.
 */
static __rte_always_inline void
soft_engine_turn_by(struct soft_engine *e, const struct soft_link_ops *link, uint64_t rung)
{
	struct soft_netif *nif = e->dev->netif;
	bool end;

	soft_engine_clock_inline(e);
	if (unlikely(!(link == NULL ? soft_link_port_begin(e, nif)
				    : link->begin == NULL || link->begin(e)))) {
		soft_engine_turn_linkless(e, rung);
		return;
	}
	/*
	 * Packets that another engine has received are in the inbox since before the turn began.
	 * They are processed before those that are still in the link.
	 */
	if (unlikely(__atomic_load_n(&e->inbox, __ATOMIC_RELAXED) != NULL))
		soft_inbox_drain(e);
	(void)soft_engine_early(e, rung);
	end = link == NULL ? soft_link_port_receive(e, nif) : link->receive(e);
	if (unlikely(e->next_deadline != SOFT_NO_DEADLINE))
		soft_timers_run(e);
	if (unlikely((e->n_run | e->chores) != 0)) {
		/* A QP that found no packets left is in the list, so only the list needs some. */
		e->packets_left = SOFT_TURN_PACKETS;
		if (e->n_run != 0)
			soft_run_list(e);
		if (e->chores)
			(void)soft_engine_chores(e);
		end = true;
	}
	if (unlikely(end)) {
		if (link == NULL)
			soft_link_port_end(nif);
		else if (link->end != NULL)
			link->end(e);
	}
	if (!LIST_EMPTY(&e->uncounted))
		(void)soft_engine_counts(e);
}

static __rte_noinline void
soft_engine_turn_polled(struct soft_engine *e, const struct soft_link_ops *link, uint64_t rung)
{
	soft_engine_turn_by(e, link, rung);
}

/*
 * Runs a turn. @rung: the pages whose registers software has stored to. @stamp: result of
 * soft_engine_stamp(), or 0.
 */
static __rte_always_inline void
soft_engine_turn(struct soft_engine *e, uint64_t rung, uint64_t stamp)
{
	uint32_t pending;

	e->packets_left = SOFT_TURN_PACKETS;
	if (unlikely(e->dev->link != NULL)) {
		if (e->dev->link->polled)
			soft_engine_turn_polled(e, e->dev->link, rung);
		else
			soft_engine_turn_link(e, e->dev->link, rung);
		return;
	}
	e->stamped = stamp != 0;
	if (stamp != 0)
		e->now = stamp;
	if (unlikely(__atomic_load_n(&e->inbox, __ATOMIC_RELAXED) != NULL))
		soft_inbox_drain(e);
	soft_engine_lists(e);
	pending = soft_engine_watch(e, rung);
	if (unlikely(e->chores))
		pending |= soft_engine_chores(e);
	soft_engine_end(e, pending);
}

/*
 * Does the same as rte_ticketlock_trylock(). But no local variable has its address taken, so the
 * caller needs no stack protector.
 */
static inline bool
soft_engine_trylock(struct soft_engine *e)
{
	const rte_ticketlock_t old = {
		.tickets = __atomic_load_n(&e->lock.tickets, __ATOMIC_RELAXED),
	};
	static const rte_ticketlock_t one = {.s = {.next = 1}};

	/* "next" is the upper half, so the sum has no carry into "current". */
	return old.s.next == old.s.current &&
	       __sync_bool_compare_and_swap(&e->lock.tickets, old.tickets,
					    old.tickets + one.tickets);
}

/* Runs a turn for a caller that has not looked at the registers. */
static void
soft_engine_run(struct soft_engine *e)
{
	soft_engine_turn(e, soft_engine_rung(e), 0);
}

/*
 * Returns true if an idle engine, to whose page software has not stored, has work again, so that
 * the caller must take the lock. Work that arrives during the call may be missed; the next poll
 * finds it.
 */
static inline bool
soft_engine_awake(struct soft_engine *e)
{
	const struct soft_link_ops *link = e->dev->link;
	uint64_t deadline;

	if (__atomic_load_n(&e->inbox, __ATOMIC_RELAXED) != NULL)
		return true;
	if (unlikely(link != NULL && link->waiting != NULL) && link->waiting(e))
		return true;
	deadline = __atomic_load_n(&e->next_deadline, __ATOMIC_RELAXED);
	return deadline != SOFT_NO_DEADLINE && soft_ticks(e->dev) >= deadline;
}

/*
 * Returns true if an engine has work; @rung: the pages whose registers software has stored to.
 * Called with the lock held, because the list of pages may change.
 */
static inline bool
soft_engine_due(struct soft_engine *e, uint64_t rung)
{
	const struct soft_link_ops *link = e->dev->link;

	if (rung != 0 || soft_engine_pending(e) ||
	    __atomic_load_n(&e->inbox, __ATOMIC_RELAXED) != NULL)
		return true;
	if (link != NULL && link->waiting != NULL && link->waiting(e))
		return true;
	return e->next_deadline != SOFT_NO_DEADLINE && soft_ticks(e->dev) >= e->next_deadline;
}

/* Runs a turn in a thread that may be cancelled. Its system calls are cancellation points. */
static void __rte_noinline
soft_engine_run_held(struct soft_engine *e)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	soft_engine_run(e);
	pthread_setcancelstate(before, NULL);
}

bool
soft_engine_try(struct soft_engine *e)
{
	uint64_t rung;
	bool due;

	if (!soft_engine_trylock(e)) {
		/*
		 * The lock's holder may be the device's thread, which looks for work a last time
		 * before it sleeps. Either it finds the caller's doorbell, or soft_engine_rouse()
		 * finds it asleep.
		 */
		bb_smp_mb();
		soft_engine_rouse(e);
		return true;
	}
	rung = soft_engine_rung(e);
	due = soft_engine_due(e, rung);
	if (due) {
		if (unlikely(e->cancels))
			soft_engine_run_held(e);
		else
			soft_engine_turn(e, rung, 0);
		__atomic_store_n(&e->tried, e->work, __ATOMIC_RELAXED);
	}
	rte_ticketlock_unlock(&e->lock);
	return due;
}

void
soft_engine_catch_up(struct soft_engine *e, uint32_t n)
{
	uint64_t rung, work;
	bool more = true;

	soft_engine_lock(e);
	while (n-- != 0 && more) {
		rung = soft_engine_rung(e);
		if (!soft_engine_due(e, rung))
			break;
		work = e->work;
		soft_engine_turn(e, rung, 0);
		__atomic_store_n(&e->tried, e->work, __ATOMIC_RELAXED);
		/* Counts to add and QPs in ERR make further turns due, but are no requests. */
		more = rung != 0 || e->work != work || e->n_run != 0 || soft_engine_scans(e);
	}
	rte_ticketlock_unlock(&e->lock);
}

/*
 * Reads the clock for a turn that follows a doorbell of this thread. Returns 0 if there is no such
 * doorbell, or no clock. An engine that sends no packets needs no clock for other turns. The TSC is
 * read before the lock is taken, because the lock waits until the stores of the post are visible. A
 * read after the lock would wait for them, too, and cost a tenth of the time of a WRITE.
 */
static inline uint64_t
soft_engine_stamp(const struct soft_engine *e, bool rung)
{
	return rung && __atomic_load_n(&e->stamps, __ATOMIC_RELAXED) ? rte_rdtsc() : 0;
}

void
soft_engine_progress(void *engine)
{
	struct soft_engine *e = engine;
	const uint8_t *page = __atomic_load_n(&e->page, __ATOMIC_RELAXED);
	const bool rung = page != NULL && soft_page_rung(page);
	uint64_t stamp;

	if (!rung && page != NULL && !soft_engine_pending(e) && !soft_engine_awake(e))
		return;
	stamp = soft_engine_stamp(e, rung);
	/*
	 * Does not wait for the lock. The thread that holds the lock polls this engine, or executes
	 * a control command, which soon releases the lock. That thread may be preempted. Work that
	 * it does not handle stays in a register, a list or the inbox, and the next poll of any
	 * thread handles it. Polls cannot starve a control command: the command has a ticket, so
	 * trylock fails until the command has had the lock.
	 */
	if (unlikely(!soft_engine_trylock(e)))
		return;
	soft_engine_turn(e, rung, stamp);
	rte_ticketlock_unlock(&e->lock);
}

/*
 * Does the same as soft_engine_progress() for a device whose link is soft_link_port. Every poll
 * runs a turn. One function, because most polls find neither a doorbell nor a packet.
 */
static void
soft_engine_progress_port(void *engine)
{
	struct soft_engine *e = engine;
	const uint8_t *page = __atomic_load_n(&e->page, __ATOMIC_RELAXED);
	const bool rung = likely(page != NULL) && soft_page_rung(page);

	if (unlikely(!soft_engine_trylock(e)))
		return;
	soft_engine_turn_by(e, NULL, rung);
	rte_ticketlock_unlock(&e->lock);
}

soft_engine_poll *
soft_engine_poll_of(const struct soft_dev *dev)
{
	return dev->link == &soft_link_port ? soft_engine_progress_port : soft_engine_progress;
}

bool
soft_engine_look(struct soft_engine *e)
{
	if (!soft_engine_trylock(e))
		return false;
	soft_engine_run(e);
	rte_ticketlock_unlock(&e->lock);
	return true;
}

void
soft_engine_turns(struct soft_engine *e, uint32_t n)
{
	if (unlikely(!soft_engine_trylock(e)))
		return;
	for (; n != 0; n--)
		soft_engine_run(e);
	rte_ticketlock_unlock(&e->lock);
}
