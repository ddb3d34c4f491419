/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Requests that bind and invalidate memory windows. */
#include <errno.h>

#include "bb_mem_table.h"
#include "bb_mw_priv.h"

#define ACCESS_REMOTE_WRITES (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC)
#define ACCESS_WINDOW        (BB_ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITES | BB_ACCESS_ZERO_BASED)

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

/* Posts a bind. A window of type 1 gets its next key; @new_rkey is for type 2. */
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
	ret = bb_mw_has_room(w);
	if (mw->type == BB_MW_TYPE_1)
		new_rkey = bb_inc_rkey(mw->rkey);
	if (ret == 0)
		ret = bb_sq_post_bind(&qp->sq, wr_id, mw->type == BB_MW_TYPE_2, mw->rkey, new_rkey,
				      bind, flags | BB_SQ_ASK_CQE);
	if (ret == 0) {
		bb_mw_add_op(w, qp, (struct bb_mr_priv *)mr, new_rkey);
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
		return post(qp, wr_id, mw, 0, NULL, &bind, flags);
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
	return post(qp, wr_id, mw, 0, mr, &bind, flags);
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
	if ((new_rkey ^ ((const struct bb_mw_priv *)mw)->drv->rkey) >> 8 != 0)
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
	struct bb_mw_priv *w = bb_mw_find(qp->ctrl->pd->dev, rkey);
	int ret;

	if (w == NULL)
		return bb_sq_post_local_inv(&qp->sq, wr_id, rkey, flags);
	bb_sq_make_room(&qp->sq, bb_sq_umr_slots(&qp->sq, false));
	rte_ticketlock_lock(&w->lock);
	ret = bb_mw_has_room(w);
	if (ret == 0)
		ret = bb_sq_post_local_inv(&qp->sq, wr_id, rkey, flags | BB_SQ_ASK_CQE);
	if (ret == 0)
		bb_mw_add_op(w, qp, NULL, w->pub.rkey);
	rte_ticketlock_unlock(&w->lock);
	return ret;
}
