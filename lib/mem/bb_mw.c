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

#include <rte_ticketlock.h> /* a lock whose stores ThreadSanitizer sees */

#include "bb_mem_priv.h"
#include "bb_mem_table.h"
#include "bb_mw.h"

#define ACCESS_REMOTE_WRITES (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC)
#define ACCESS_WINDOW        (BB_ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITES | BB_ACCESS_ZERO_BASED)

#define PAGE_BITS 12
#define MAX_OPS   8

/* A pending request that binds the window to region mr, or unbinds the window if mr is NULL. */
struct op {
	const struct bb_qp *qp; /* QP of the request; NULL if the QP was reset, so that it is
				 * unknown whether the request was executed */
	uint64_t seq;
	struct bb_mr_priv *mr;
	uint32_t rkey; /* key of the window before the request was posted */
};

struct bb_mw_priv {
	struct bb_mw pub;
	struct bb_drv_mr *drv;
	/*
	 * Protects the fields below, because owners of QPs may post and poll while bb_mr_dereg()
	 * runs.
	 */
	rte_ticketlock_t lock;
	struct bb_mr_priv *mr; /* region of the last completed bind, NULL if none */
	struct op ops[MAX_OPS];
	uint32_t n_ops;
};

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
remove_ops(struct bb_mw_priv *w, uint32_t from, uint32_t n)
{
	w->n_ops -= n;
	memmove(&w->ops[from], &w->ops[from + n], (w->n_ops - from) * sizeof(w->ops[0]));
}

enum fate {
	PENDING,
	DONE,
	FAILED,
};

static enum fate
fate_of(const struct op *op)
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
		remove_ops(w, i, 1);
		dropped++;
	}
	return dropped;
}

/*
 * Removes those of the window's requests that have completed, and updates w->mr. The counters of
 * the requests' queues show whether a request has completed. Call with w->lock held. If a request
 * has succeeded, also drops earlier requests whose QP was reset: the device executed them before,
 * or never will.
 */
static void
settle(struct bb_mw_priv *w)
{
	uint32_t i = 0;

	while (i < w->n_ops) {
		const enum fate fate = fate_of(&w->ops[i]);
		struct bb_mr_priv *mr = w->ops[i].mr;

		if (fate == PENDING) {
			i++;
			continue;
		}
		remove_ops(w, i, 1);
		if (fate == FAILED) {
			release(mr);
			continue;
		}
		release(w->mr);
		w->mr = mr;
		i -= drop_lost(w, i);
	}
}

/*
 * Returns 0 if the window has room for one more pending request, -EAGAIN if a request must complete
 * first. Each request asks for a CQE, so there is room again when the owners of the queues ring and
 * poll. Call with w->lock held.
 */
static int
has_room(struct bb_mw_priv *w)
{
	uint32_t i;

	settle(w);
	if (w->n_ops < MAX_OPS)
		return 0;
	for (i = 0; i < w->n_ops; i++)
		if (w->ops[i].qp != NULL)
			return -EAGAIN;
	BB_LOG(ERR,
	       "memory window 0x%x can no longer be bound: %d QPs were reset or destroyed before "
	       "its binds completed: free the window",
	       w->pub.rkey, MAX_OPS);
	return -ENOMEM;
}

static void
add_op(struct bb_mw_priv *w, const struct bb_qp *qp, struct bb_mr_priv *mr, uint32_t rkey)
{
	hold(mr);
	w->ops[w->n_ops++] = (struct op){
		.qp = qp, .seq = bb_sq_seq64(&qp->sq, qp->sq.seq), .mr = mr, .rkey = rkey};
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
		struct op op = w->ops[i];

		if (op.qp != qp) {
			i++;
			continue;
		}
		remove_ops(w, i, 1);
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

	for (i = w->n_ops; i-- > 0;) {
		const struct op op = w->ops[i];

		if (op.qp != qp || op.seq <= rung)
			continue;
		/*
		 * Restores the key that the window had before this request, unless a later request
		 * of another QP has changed the key again.
		 */
		if (i == w->n_ops - 1)
			w->pub.rkey = op.rkey;
		remove_ops(w, i, 1);
		release(op.mr);
	}
}

void
bb_mw_qp_abort(const struct bb_qp *qp)
{
	for_each(qp->ctrl->pd->dev, abort_qp, qp);
}

static struct bb_mw_priv *
find(const struct bb_dev *dev, uint32_t rkey)
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
	w = find(dev, rkey);
	if (w != NULL) {
		rte_ticketlock_lock(&w->lock);
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

/* Returns why the range of the MR cannot be bound, NULL if it can. */
static const char *
range_bad(const struct bb_mw *mw, const struct bb_mr *mr, uint64_t addr, uint64_t len,
	  uint32_t access)
{
	if (mr->pd != mw->pd)
		return "the MR and the window have different PDs";
	if ((mr->access & BB_ACCESS_MW_BIND) == 0)
		return "the MR was registered without MW_BIND";
	/* An ON_DEMAND region has no lkey, and a bind names its region by the lkey. */
	if ((mr->access & BB_ACCESS_ON_DEMAND) != 0)
		return "an ON_DEMAND MR cannot be bound";
	if (addr < mr->iova || len > mr->len || addr - mr->iova > mr->len - len)
		return "the range exceeds the MR";
	if ((access & ~(uint32_t)ACCESS_WINDOW) != 0)
		return "a window allows only REMOTE_* rights";
	if ((access & BB_ACCESS_REMOTE_ATOMIC) != 0 && !mw->pd->dev->attr.memory_window_atomics)
		return "the device has no atomics through windows: leave REMOTE_ATOMIC out";
	if ((access & ACCESS_REMOTE_WRITES) != 0 && (mr->access & BB_ACCESS_LOCAL_WRITE) == 0)
		return "REMOTE_WRITE and REMOTE_ATOMIC need an MR with LOCAL_WRITE";
	return NULL;
}

static int
refuse(const struct bb_qp *qp, const struct bb_mw *mw, int err, const char *why)
{
	BB_LOG(ERR, "QP 0x%x: the memory window 0x%x is not bound: %s", qp->qpn, mw->rkey, why);
	return err;
}

static int
post(struct bb_qp *qp, uint64_t wr_id, struct bb_mw *mw, uint32_t new_rkey, struct bb_mr *mr,
     struct bb_bind *bind, uint32_t flags)
{
	struct bb_mw_priv *w = (struct bb_mw_priv *)mw;
	int ret;

	bind->mw_obj = w->drv;
	/* This call may ring a doorbell, so it must be made before w->lock is taken. */
	bb_sq_make_room(&qp->sq, bb_sq_umr_slots(&qp->sq, bind->len != 0));
	rte_ticketlock_lock(&w->lock);
	ret = has_room(w);
	if (ret == 0)
		ret = bb_sq_post_bind(&qp->sq, wr_id, mw->type == BB_MW_TYPE_2, mw->rkey, new_rkey,
				      bind, flags | BB_SQ_ASK_CQE);
	if (ret == 0) {
		add_op(w, qp, (struct bb_mr_priv *)mr, mw->rkey);
		mw->rkey = new_rkey;
	}
	rte_ticketlock_unlock(&w->lock);
	return ret;
}

int
bb_mw_bind(struct bb_qp *qp, uint64_t wr_id, struct bb_mw *mw, struct bb_mr *mr, uint64_t addr,
	   uint64_t len, uint32_t access, uint32_t flags)
{
	struct bb_bind bind = {.addr = addr, .len = len, .access = access};
	const char *why = NULL;

	if (mw->type != BB_MW_TYPE_1)
		return refuse(qp, mw, -EINVAL, "the window is of type 2: use bb_post_bind_mw()");
	if (mw->pd != qp->ctrl->pd)
		return refuse(qp, mw, -EINVAL, "the window and the QP have different PDs");
	if (len == 0)
		return post(qp, wr_id, mw, bb_inc_rkey(mw->rkey), NULL, &bind, flags);
	if (mr == NULL)
		return refuse(qp, mw, -EINVAL, "the MR is NULL");
	if (len > BB_WQE_MAX_SGE_LEN)
		return refuse(qp, mw, -EOPNOTSUPP, "a window has at most 2^31 bytes");
	if (((access | mr->access) & BB_ACCESS_ZERO_BASED) != 0)
		why = "a window of type 1 and its MR must not be ZERO_BASED";
	else
		why = range_bad(mw, mr, addr, len, access);
	if (why != NULL)
		return refuse(qp, mw, -EINVAL, why);
	bind.lkey = mr->lkey;
	bind.mr_obj = ((struct bb_mr_priv *)mr)->reg->drv_mr;
	return post(qp, wr_id, mw, bb_inc_rkey(mw->rkey), mr, &bind, flags);
}

int
bb_post_bind_mw(struct bb_qp *qp, uint64_t wr_id, struct bb_mw *mw, uint32_t new_rkey,
		struct bb_mr *mr, uint64_t addr, uint64_t len, uint32_t access, uint32_t flags)
{
	struct bb_bind bind = {
		.addr = addr,
		.len = len,
		.access = access,
		.zero_based = (access & BB_ACCESS_ZERO_BASED) != 0,
	};
	const char *why = NULL;

	if (mw->type != BB_MW_TYPE_2)
		return refuse(qp, mw, -EINVAL, "the window is of type 1: use bb_mw_bind()");
	if (mw->pd != qp->ctrl->pd)
		return refuse(qp, mw, -EINVAL, "the window and the QP have different PDs");
	if (mr == NULL || len == 0)
		return refuse(qp, mw, -EINVAL,
			      "a window of type 2 needs an MR and a length of at least 1; to "
			      "unbind it, post an invalidate");
	if (len > BB_WQE_MAX_SGE_LEN)
		return refuse(qp, mw, -EOPNOTSUPP, "a window has at most 2^31 bytes");
	if ((new_rkey ^ mw->rkey) >> 8 != 0)
		return refuse(qp, mw, -EINVAL,
			      "the new rkey may differ from the current rkey only in the low "
			      "byte: use bb_inc_rkey()");
	why = range_bad(mw, mr, addr, len, access);
	if (why != NULL)
		return refuse(qp, mw, -EINVAL, why);
	bind.lkey = mr->lkey;
	bind.mr_obj = ((struct bb_mr_priv *)mr)->reg->drv_mr;
	return post(qp, wr_id, mw, new_rkey, mr, &bind, flags);
}

int
bb_post_local_inv(struct bb_qp *qp, uint64_t wr_id, uint32_t rkey, uint32_t flags)
{
	struct bb_mw_priv *w = find(qp->ctrl->pd->dev, rkey);
	int ret;

	if (w == NULL)
		return bb_sq_post_local_inv(&qp->sq, wr_id, rkey, flags);
	bb_sq_make_room(&qp->sq, bb_sq_umr_slots(&qp->sq, false));
	rte_ticketlock_lock(&w->lock);
	ret = has_room(w);
	if (ret == 0)
		ret = bb_sq_post_local_inv(&qp->sq, wr_id, rkey, flags | BB_SQ_ASK_CQE);
	if (ret == 0)
		add_op(w, qp, NULL, rkey);
	rte_ticketlock_unlock(&w->lock);
	return ret;
}
