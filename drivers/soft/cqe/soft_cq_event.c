/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Arm requests for CQs: handles a store to offset 0x20 of a UAR page, and decides when an event is
 * raised.
 *
 * Software stores 8 bytes, big endian: cmd_sn<<28 | solicited<<24 | consumer index, then the CQ
 * number. The first 4 bytes equal the CQ's arm record (libmlx5: mlx5_arm_cq(), kernel:
 * mlx5_cq_arm()). All CQs of a page share the register, so a later store may hide an earlier one.
 * So any store makes the device scan the arm records of all CQs of the page, as for send doorbells.
 * A CQ is armed through the page that its context names. A store to another page is rejected
 * (assumption [A]).
 *
 * Each arm request raises one event, for CQEs after the consumer index of the request. If such CQEs
 * are already in the ring, the event is raised at once (Linux commit ed23a72778f3 says so of
 * Mellanox HCAs). cmd_sn counts the events that software has read. So cmd_sn distinguishes a new
 * arm request from one whose event was already raised. An arm request with the cmd_sn of the last
 * event is a late repetition, and the device ignores it (assumption [A]).
 *
 * The RESIZE CQE, which ends the old ring of a resized CQ, is not a completion. So it raises no
 * event, and an armed CQ stays armed. For cards this is an assumption [A]: man ibv_req_notify_cq
 * mentions completions only.
 *
 * The lock of the engine of the CQ's page protects the CQ's fields. If the CQ is shared, its own
 * lock protects them in addition.
 */
#include <stdlib.h>

#include "soft_cqe.h"

/*
 * soft_cq.last_arm of a new CQ on a page to which a guest or a verbs program stores. The first
 * request of libmlx5 has the value 0, as the record before it. So a scan takes the value 0 of such
 * a CQ for a request: it may be one whose store to the register was hidden. A CQ that was never
 * armed may then raise one event. A card that recovers doorbells from records does the same: for
 * that reason Linux sets another value (dr_create_cq(), mlx5_create_cq()).
 */
#define NEVER_ARMED UINT32_MAX

/* Returns true if a record asks for no event: 2 << 28 of Linux, 3 << 28 of lib/queue. */
static bool
is_initial(uint32_t word)
{
	return (word | 1u << 28) == 3u << 28;
}

/*
 * Takes the CQ's lock if the CQ is shared. Returns true if it took the lock. The caller passes the
 * result to cq_unlock(), because SOFT_CQ_SHARED may be set before the unlock.
 */
static bool
cq_lock(struct soft_cq *cq)
{
	if ((__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_SHARED) == 0)
		return false;
	rte_ticketlock_lock(&cq->lock);
	return true;
}

static void
cq_unlock(struct soft_cq *cq, bool locked)
{
	if (locked)
		rte_ticketlock_unlock(&cq->lock);
}

static void
fire(struct soft_engine *e, struct soft_cq *cq)
{
	__atomic_fetch_and(&cq->flags, ~(uint32_t)SOFT_CQ_ARMED, __ATOMIC_RELAXED);
	cq->due = 0;
	cq->fired = true;
	cq->fired_sn = cq->arm_sn;
	soft_channel_fire(e->dev, cq);
}

/*
 * If the arm request is for solicited completions only, CQEs of solicited receives and of errors
 * raise the event. With moderation (cq_max_count, cq_period) the event is raised at the given
 * number of CQEs, or when the period after the first CQE has passed, whichever is first. A limit of
 * 0 is not checked (assumption [A]). A new request has no period before it has a CQE.
 */
void
soft_cq_notify(struct soft_engine *e, struct soft_cq *cq)
{
	uint32_t there = cq->pi - cq->arm_ci;

	/* The last solicited CQE may be arbitrarily old, so its distance from pi is compared. */
	if (there == 0 || (cq->arm_solicited && cq->pi - cq->sol_pi >= there)) {
		cq->due = 0;
		return;
	}
	if ((cq->mod_count == 0 && cq->mod_period == 0) ||
	    (cq->mod_count != 0 && there >= cq->mod_count)) {
		fire(e, cq);
		return;
	}
	if (cq->mod_period != 0 && cq->due == 0)
		cq->due = rte_rdtsc() + soft_time_cycles(cq->mod_period * 1000ull);
}

/*
 * Puts an armed CQ with a moderation period on the engine's list, so that the engine raises the
 * event once the period has passed.
 */
static void
moderate(struct soft_engine *e, struct soft_cq *cq)
{
	if (cq->moderated || cq->mod_period == 0)
		return;
	cq->moderated = true;
	TAILQ_INSERT_TAIL(&e->moderated, cq, mod);
	e->chores = true;
	__atomic_store_n(&e->pending, 1, __ATOMIC_RELAXED);
}

void
soft_cq_moderated_run(struct soft_engine *e)
{
	struct soft_cq *cq, *next;
	uint64_t now = rte_rdtsc();
	bool locked;

	for (cq = TAILQ_FIRST(&e->moderated); cq != NULL; cq = next) {
		next = TAILQ_NEXT(cq, mod);
		locked = cq_lock(cq);
		if (cq->due != 0 && now >= cq->due)
			fire(e, cq);
		if ((__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_ARMED) == 0) {
			cq->moderated = false;
			TAILQ_REMOVE(&e->moderated, cq, mod);
		}
		cq_unlock(cq, locked);
	}
}

/*
 * Arms the CQ if its arm record has changed or software stored to the arm register: @named if that
 * store named the CQ.
 */
static void
arm(struct soft_engine *e, struct soft_cq *cq, bool named)
{
	uint32_t rec = bb_dbrec_load(&cq->dbrec[1]), word = bb_be32(rec), there;
	/* Software may have never written the record. Then the value need not be a valid request.
	 */
	const bool unwritten = rec == 0 && cq->last_arm == NEVER_ARMED;
	uint8_t sn = word >> 28 & 3;
	bool locked;

	/*
	 * Software stored to the register, but this arm record was already handled by
	 * soft_cq_move().
	 */
	if (rec == cq->last_arm &&
	    (__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_ARMED) != 0)
		return;
	cq->last_arm = rec;
	/*
	 * Atomic, because soft_cq_move() calls this function on the application's thread, while the
	 * engine's thread may read the field.
	 */
	__atomic_store_n(&e->work, e->work + 1, __ATOMIC_RELAXED);
	locked = cq_lock(cq);
	/* Linux reports an event of a CQ that it has not armed as an error. */
	if (!named && !cq->fired && is_initial(word))
		goto out;
	there = (cq->pi - word) & 0xffffff;
	if ((word & 0xce000000) != 0 || there > 1u << cq->log_size) {
		if (!unwritten)
			SOFT_LOG(ERR,
				 "%s CQ 0x%x: invalid arm record 0x%08x: %s: write cmd_sn << 28 | "
				 "solicited << 24 "
				 "| consumer index, big endian, to word 1",
				 e->dev->name, cq->cqn, word,
				 there > 1u << cq->log_size
					 ? "the consumer index is outside the ring"
					 : "reserved bits are set");
		goto out;
	}
	if (cq->fired && sn == cq->fired_sn)
		goto out;
	cq->arm_sn = sn;
	cq->arm_ci = cq->pi - there;
	cq->arm_solicited = (word >> 24 & 1) != 0;
	__atomic_fetch_or(&cq->flags, SOFT_CQ_ARMED, __ATOMIC_RELAXED);
	moderate(e, cq);
	soft_cq_notify(e, cq);
out:
	cq_unlock(cq, locked);
}

void
soft_arm_take(struct soft_engine *e, struct soft_watch *w, uint64_t *reg)
{
	uint64_t head = __atomic_load_n(reg, __ATOMIC_ACQUIRE);
	uint32_t cqn = bb_get32((uint8_t *)&head + 4) & 0xffffff;
	struct soft_cq *cq = NULL;

	w->cq_left = w->n_cq;
	if (cqn < 1u << SOFT_LOG_MAX_CQ)
		cq = __atomic_load_n(&e->dev->cqs[cqn], __ATOMIC_ACQUIRE);
	if (cq == NULL) {
		SOFT_LOG(WARNING,
			 "%s: ignored an arm request on UAR page %u: CQ 0x%x does not exist",
			 e->dev->name, w->uar->id, cqn);
	} else if (cq->uar != w->uar) {
		SOFT_LOG(WARNING,
			 "%s CQ 0x%x: ignored an arm request on UAR page %u: the CQ was created "
			 "with UAR page %u: arm the CQ there",
			 e->dev->name, cqn, w->uar->id, cq->uar->id);
	} else {
		arm(e, cq, true);
		/* The page has only this CQ, so this store cannot hide the store of another CQ. */
		if (w->n_cq == 1)
			w->cq_left = 0;
	}
	/*
	 * The exchange fails if software has stored again meanwhile; the next poll handles that
	 * store.
	 */
	__atomic_compare_exchange_n(reg, &head, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void
soft_arm_scan(struct soft_engine *e, struct soft_watch *w)
{
	uint32_t n = RTE_MIN(w->cq_left, e->scan);

	w->cq_left -= n;
	while (n-- != 0) {
		struct soft_cq *cq = w->cq[w->cq_pos];

		w->cq_pos = w->cq_pos + 1 < w->n_cq ? w->cq_pos + 1 : 0;
		if (bb_dbrec_load(&cq->dbrec[1]) != cq->last_arm)
			arm(e, cq, false);
	}
}

/* ---- Functions of the control path */

/*
 * Starts a scan again that has not ended when the list of CQs changes. It wraps at the end of the
 * list, so it would skip a CQ that was not scanned yet.
 */
static void
restart_scan(struct soft_watch *w)
{
	w->cq_pos = 0;
	w->cq_left = w->cq_left != 0 ? w->n_cq : 0;
}

int
soft_cq_attach(struct soft_cq *cq)
{
	struct soft_engine *e = cq->uar->engine;
	struct soft_watch *w = cq->uar->watch;
	int ret = 0;

	rte_ticketlock_init(&cq->lock);
	soft_engine_lock(e);
	if (w->n_cq == w->cap_cq) {
		uint32_t cap = w->cap_cq == 0 ? 8 : w->cap_cq * 2;
		struct soft_cq **grown = realloc(w->cq, cap * sizeof(*grown));

		if (grown == NULL) {
			ret = -ENOMEM;
			goto out;
		}
		w->cq = grown;
		w->cap_cq = cap;
	}
	cq->last_arm =
		cq->uar->shared || e->dev->opts.mmap ? NEVER_ARMED : bb_dbrec_load(&cq->dbrec[1]);
	cq->scan_slot = w->n_cq;
	w->cq[w->n_cq++] = cq;
	restart_scan(w);
out:
	soft_engine_unlock(e);
	return ret;
}

void
soft_cq_detach(struct soft_cq *cq)
{
	struct soft_engine *e = cq->uar->engine;
	struct soft_watch *w = cq->uar->watch;
	uint32_t slot = cq->scan_slot;

	soft_engine_lock(e);
	w->cq[slot] = w->cq[--w->n_cq];
	w->cq[slot]->scan_slot = slot;
	restart_scan(w);
	if (cq->moderated)
		TAILQ_REMOVE(&e->moderated, cq, mod);
	soft_engine_unlock(e);
}

void
soft_cq_moderate(struct soft_cq *cq, uint16_t count, uint16_t period_us)
{
	struct soft_engine *e = cq->uar->engine;
	bool locked;

	soft_engine_lock(e);
	locked = cq_lock(cq);
	cq->mod_count = count;
	cq->mod_period = period_us;
	cq->due = 0;
	if ((__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_ARMED) != 0) {
		moderate(e, cq);
		soft_cq_notify(e, cq);
	}
	cq_unlock(cq, locked);
	soft_engine_unlock(e);
}

int
soft_cq_move(struct soft_cq *cq, uint8_t *buf, uint32_t log_size)
{
	struct soft_engine *e = cq->uar->engine;
	struct bb_cqe *cqe;
	int ret = 0;

	soft_engine_lock(e);
	/*
	 * An arm request from before the resize refers to CQEs of the old ring, so handle it first.
	 */
	if (bb_dbrec_load(&cq->dbrec[1]) != cq->last_arm)
		arm(e, cq, false);
	rte_ticketlock_lock(&cq->lock);
	soft_zip_end(e, cq);
	/*
	 * Reads the consumer index again, because the new ring may have less room than the old one
	 * had.
	 */
	cq->last_ci = bb_be32(bb_dbrec_load(cq->dbrec)) & 0xffffff;
	cqe = soft_cqe_slot(cq, (__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_BIG) != 0);
	if (cq->error)
		ret = -EIO;
	else if (cqe == NULL)
		ret = -ENOSPC;
	else if (((cq->pi + 1 - cq->last_ci) & 0xffffff) > 1u << log_size)
		ret = -EINVAL;
	if (ret == 0) {
		memset(cqe, 0, offsetof(struct bb_cqe, op_own));
		bb_cqe_own_store(&cqe->op_own,
				 (uint8_t)(BB_CQE_RESIZE << 4 | (cq->pi >> cq->log_size & 1)));
		cq->pi++;
		if ((__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_ARMED) != 0)
			cq->arm_ci++;
		cq->buf = buf;
		cq->log_size = log_size;
	}
	rte_ticketlock_unlock(&cq->lock);
	soft_engine_unlock(e);
	return ret;
}
