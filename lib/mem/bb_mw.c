/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory windows and the regions that they are bound to.
 *
 * Each region has a count of the windows that are or may be bound to the region. bb_mr_dereg()
 * checks this count. man ibv_alloc_mw promises that a region with windows cannot be deregistered.
 * The kernel does not check this, and neither does a card as far as is known, so the library must
 * check. An invalidation names a window by its rkey. So a table of two levels, indexed by the key's
 * index, gives the window. The table is read without a lock, because its pages are not freed while
 * the device is open.
 *
 * A post does not change the binding. Until the request has completed, both the old and the new
 * region are held. The poll of a completion does not search for windows. Instead, a caller that
 * must know whether a request has completed looks at the request's queue: at the last completed
 * request and at the first failed request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_mem_table.h"
#include "bb_mw_priv.h"

#define PAGE_BITS 12

struct bb_mw_table {
	/*
	 * A poll that finds a peer's invalidation and bb_mw_free() both take this lock, so that
	 * they do not run at the same time. Take it before a window's lock.
	 */
	rte_ticketlock_t lock;
	struct bb_mw_priv **page[1u << (24 - PAGE_BITS)];
};

static void
table_free(struct bb_mw_table *t)
{
	size_t i;

	for (i = 0; i < RTE_DIM(t->page); i++)
		free(t->page[i]);
	free(t);
}

/*
 * Returns the entry of a key in the table of windows, NULL if the table's page for that entry is
 * not allocated.
 */
static struct bb_mw_priv **
table_slot(const struct bb_dev *dev, uint32_t rkey)
{
	struct bb_mw_table *t = __atomic_load_n(&dev->mws, __ATOMIC_ACQUIRE);
	struct bb_mw_priv **page;

	if (t == NULL)
		return NULL;
	page = __atomic_load_n(&t->page[rkey >> (8 + PAGE_BITS)], __ATOMIC_ACQUIRE);
	return page == NULL ? NULL : &page[rkey >> 8 & ((1u << PAGE_BITS) - 1)];
}

/*
 * Returns the entry of a key in the table of windows. Allocates the table's page for that entry if
 * necessary. Returns NULL if there is no memory. Call with dev->lock held.
 */
static struct bb_mw_priv **
table_slot_make(struct bb_dev *dev, uint32_t rkey)
{
	uint32_t at = rkey >> (8 + PAGE_BITS);
	void *mem;

	if (dev->mws == NULL) {
		mem = bb_alloc(dev, "the table of windows", sizeof(struct bb_mw_table));
		if (mem == NULL)
			return NULL;
		rte_ticketlock_init(&((struct bb_mw_table *)mem)->lock);
		dev->mws_free = table_free;
		__atomic_store_n(&dev->mws, mem, __ATOMIC_RELEASE);
	}
	if (dev->mws->page[at] == NULL) {
		mem = bb_alloc(dev, "the table of windows",
			       (1u << PAGE_BITS) * sizeof(struct bb_mw_priv *));
		if (mem == NULL)
			return NULL;
		__atomic_store_n(&dev->mws->page[at], mem, __ATOMIC_RELEASE);
	}
	return table_slot(dev, rkey);
}

static void
hold(struct bb_mr_priv *mr)
{
	if (mr != NULL)
		__atomic_add_fetch(&mr->windows, 1, __ATOMIC_RELAXED);
}

static void
release(struct bb_mr_priv *mr)
{
	if (mr != NULL)
		__atomic_sub_fetch(&mr->windows, 1, __ATOMIC_RELAXED);
}

static void
release_all(struct bb_mw_priv *w)
{
	release(w->mr);
	w->mr = NULL;
	while (w->n_ops > 0)
		release(w->ops[--w->n_ops].mr);
}

static void
remove_op(struct bb_mw_priv *w, uint32_t i)
{
	w->n_ops--;
	memmove(&w->ops[i], &w->ops[i + 1], (w->n_ops - i) * sizeof(w->ops[0]));
}

enum fate {
	PENDING,
	DONE,
	FAILED,
};

static enum fate
fate_of(const struct bb_mw_op *op)
{
	const struct bb_qp_ctrl *ctrl;
	uint32_t done;

	if (op->qp == NULL)
		return PENDING;
	/*
	 * send_done() records a failure before it marks the send as complete, so this function
	 * reads completion first and failure second.
	 */
	done = __atomic_load_n(&op->qp->sq.done, __ATOMIC_ACQUIRE);
	if (bb_sq_seq64(&op->qp->sq, done) < op->seq)
		return PENDING;
	ctrl = op->qp->ctrl;
	if (__atomic_load_n(&ctrl->send_failed, __ATOMIC_ACQUIRE) && op->seq >= ctrl->failed_seq)
		return FAILED;
	return DONE;
}

/*
 * Drops those of the first @n operations whose QP was reset, because their completions will never
 * be polled. Returns the number dropped.
 */
static uint32_t
drop_lost(struct bb_mw_priv *w, uint32_t n)
{
	uint32_t i = 0, dropped = 0;

	while (i + dropped < n) {
		if (w->ops[i].qp != NULL) {
			i++;
			continue;
		}
		release(w->ops[i].mr);
		remove_op(w, i);
		dropped++;
	}
	return dropped;
}

/*
 * Removes a request that the device has not executed. The window has the key that it had before,
 * unless a later request has changed the key again.
 */
static void
undo(struct bb_mw_priv *w, uint32_t at)
{
	const struct bb_mw_op op = w->ops[at];
	uint32_t i = at;

	remove_op(w, at);
	release(op.mr);
	while (i < w->n_ops && (w->ops[i].qp == NULL || w->ops[i].old_rkey != op.new_rkey))
		i++;
	if (i < w->n_ops)
		w->ops[i].old_rkey = op.old_rkey;
	else if (w->pub.rkey == op.new_rkey)
		__atomic_store_n(&w->pub.rkey, op.old_rkey, __ATOMIC_RELAXED);
}

/*
 * Removes those of the window's requests that have completed, and updates w->mr. The counters of
 * the requests' queues show whether a request has completed. Call with w->lock held. If a request
 * has succeeded, also drops earlier requests whose QP was reset: the device executed them before,
 * or never will.
 *
 * The device executes the requests in the order of the posts, because each names the key that the
 * one before it has set. So a request that has succeeded waits for earlier ones of other QPs whose
 * completions were not polled.
 */
static void
settle(struct bb_mw_priv *w)
{
	bool waits = false;
	uint32_t i = 0;

	while (i < w->n_ops) {
		const enum fate fate = fate_of(&w->ops[i]);
		struct bb_mr_priv *mr = w->ops[i].mr;

		if (fate == FAILED) {
			undo(w, i);
			continue;
		}
		if (fate == PENDING || waits) {
			waits |= w->ops[i].qp != NULL;
			i++;
			continue;
		}
		remove_op(w, i);
		release(w->mr);
		w->mr = mr;
		i -= drop_lost(w, i);
	}
}

int
bb_mw_has_room(struct bb_mw_priv *w)
{
	uint32_t i;

	settle(w);
	if (w->n_ops < BB_MW_MAX_OPS)
		return 0;
	for (i = 0; i < w->n_ops; i++)
		if (w->ops[i].qp != NULL)
			return -EAGAIN;
	BB_LOG(ERR,
	       "memory window 0x%x can no longer be bound: %d QPs were reset or destroyed before "
	       "its binds completed: free the window",
	       w->pub.rkey, BB_MW_MAX_OPS);
	return -ENOMEM;
}

void
bb_mw_add_op(struct bb_mw_priv *w, const struct bb_qp *qp, struct bb_mr_priv *mr, uint32_t new_rkey)
{
	hold(mr);
	w->ops[w->n_ops++] = (struct bb_mw_op){
		.qp = qp,
		.seq = bb_sq_seq64(&qp->sq, qp->sq.seq),
		.mr = mr,
		.old_rkey = w->pub.rkey,
		.new_rkey = new_rkey,
	};
}

/*
 * For every window: calls settle(), which removes completed requests, then @fn unless @fn is NULL.
 * Holds the window's lock during both. Call with dev->lock held.
 */
static void
for_each(const struct bb_dev *dev, void (*fn)(struct bb_mw_priv *w, const struct bb_qp *qp),
	 const struct bb_qp *qp)
{
	uint32_t i, k;

	for (i = 0; dev->mws != NULL && i < RTE_DIM(dev->mws->page); i++) {
		for (k = 0; dev->mws->page[i] != NULL && k < 1u << PAGE_BITS; k++) {
			struct bb_mw_priv *w = dev->mws->page[i][k];

			if (w == NULL)
				continue;
			rte_ticketlock_lock(&w->lock);
			settle(w);
			if (fn != NULL)
				fn(w, qp);
			rte_ticketlock_unlock(&w->lock);
		}
	}
}

void
bb_mw_settle(const struct bb_dev *dev)
{
	for_each(dev, NULL, NULL);
}

/*
 * Handles the reset of a QP. The device may have executed a bind whose completion was not polled,
 * so the window may be bound to the bind's MR. That MR cannot be deregistered until a bind or an
 * invalidation that was posted after the reset has succeeded.
 */
static void
handle_qp_reset(struct bb_mw_priv *w, const struct bb_qp *qp)
{
	uint32_t i = 0, n = w->n_ops;

	for (; n != 0; n--) {
		struct bb_mw_op op = w->ops[i];

		if (op.qp != qp) {
			i++;
			continue;
		}
		remove_op(w, i);
		op.qp = NULL;
		if (op.mr != NULL)
			w->ops[w->n_ops++] = op;
	}
}

void
bb_mw_qp_reset(const struct bb_qp *qp)
{
	for_each(qp->ctrl->pd->dev, handle_qp_reset, qp);
}

/* Removes the window's requests on @qp that no doorbell has covered. */
static void
abort_qp(struct bb_mw_priv *w, const struct bb_qp *qp)
{
	const uint64_t rung = bb_count_get(&qp->sq.rung_seq);
	uint32_t i;

	for (i = w->n_ops; i-- > 0;)
		if (w->ops[i].qp == qp && w->ops[i].seq > rung)
			undo(w, i);
}

void
bb_mw_qp_abort(const struct bb_qp *qp)
{
	for_each(qp->ctrl->pd->dev, abort_qp, qp);
}

struct bb_mw_priv *
bb_mw_find(const struct bb_dev *dev, uint32_t rkey)
{
	struct bb_mw_priv **slot = table_slot(dev, rkey);

	return slot == NULL ? NULL : __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

void
bb_mw_invalidated(const struct bb_dev *dev, uint32_t rkey)
{
	struct bb_mw_table *t = __atomic_load_n(&dev->mws, __ATOMIC_ACQUIRE);
	struct bb_mw_priv *w;

	if (t == NULL)
		return;
	rte_ticketlock_lock(&t->lock);
	w = bb_mw_find(dev, rkey);
	if (w != NULL) {
		rte_ticketlock_lock(&w->lock);
		settle(w);
		/*
		 * If @rkey is the key that the last posted request set, the device has executed all
		 * requests on the window. Another @rkey belongs to an earlier bind, or to a freed
		 * window with the same index, so the current state does not change.
		 */
		if (w->pub.rkey == rkey)
			release_all(w);
		rte_ticketlock_unlock(&w->lock);
	}
	rte_ticketlock_unlock(&t->lock);
}

int
bb_mw_alloc(struct bb_pd *pd, enum bb_mw_type type, struct bb_mw **out)
{
	struct bb_drv_mr_attr attr = {.kind = BB_DRV_MR_MW, .mw_type = type};
	struct bb_mw_priv **slot, *w;
	struct bb_dev *dev;
	int ret;

	if (pd == NULL || out == NULL)
		return -EINVAL;
	dev = pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	if (type != BB_MW_TYPE_1 && type != BB_MW_TYPE_2) {
		BB_LOG(ERR, "%s: invalid window type %d (1 or 2)", dev->name, (int)type);
		return -EINVAL;
	}
	if (!dev->attr.memory_windows) {
		BB_LOG(ERR,
		       "%s: the device has no memory windows: give peers the rkey of an MR "
		       "instead",
		       dev->name);
		return -ENOTSUP;
	}
	w = bb_alloc(dev, "a memory window", sizeof(*w));
	if (w == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = dev->drv->mr_reg(pd, &attr, &w->drv);
	if (ret != 0)
		goto unlock;
	slot = table_slot_make(dev, w->drv->rkey);
	if (slot == NULL) {
		(void)dev->drv->mr_dereg(pd, w->drv);
		ret = -ENOMEM;
		goto unlock;
	}
	rte_ticketlock_init(&w->lock);
	w->pub.pd = pd;
	w->pub.rkey = w->drv->rkey;
	w->pub.type = type;
	pd->mws++;
	__atomic_store_n(slot, w, __ATOMIC_RELEASE);
unlock:
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		free(w);
		return ret;
	}
	*out = &w->pub;
	return 0;
}

int
bb_mw_free(struct bb_mw *pub)
{
	struct bb_mw_priv *w = (struct bb_mw_priv *)pub;
	struct bb_dev *dev;
	int ret;

	if (pub == NULL)
		return -EINVAL;
	dev = pub->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	(void)bb_mem_reap_locked(pub->pd);
	ret = dev->drv->mr_dereg(pub->pd, w->drv);
	if (ret == 0) {
		rte_ticketlock_lock(&dev->mws->lock);
		__atomic_store_n(table_slot(dev, pub->rkey), NULL, __ATOMIC_RELEASE);
		release_all(w);
		rte_ticketlock_unlock(&dev->mws->lock);
		pub->pd->mws--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret == 0)
		free(w);
	return ret;
}
