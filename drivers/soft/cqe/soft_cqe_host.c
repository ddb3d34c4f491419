/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Writes CQEs to CQs of the device, for queues that a program runs outside the device. */
#include <errno.h>

#include "soft_cqe.h"
#include "soft_ctl.h"

static bool
put(struct soft_engine *e, struct soft_cq *cq, const uint8_t *cqe, uint32_t flags)
{
	struct bb_cqe *to = soft_cqe_slot(cq, (flags & SOFT_CQ_BIG) != 0);
	uint8_t own = cqe[offsetof(struct bb_cqe, op_own)];

	if (to == NULL) {
		if (!cq->error)
			soft_event_raise(e->dev, cq->obj, BB_PRM_EVENT_CQ_ERROR);
		cq->error = true;
		return false;
	}
	memcpy(to, cqe, offsetof(struct bb_cqe, op_own));
	if (own >> 4 < BB_CQE_REQ_ERR)
		to->timestamp = bb_be64(e->now);
	bb_cqe_own_store(&to->op_own, (uint8_t)(own | (cq->pi >> cq->log_size & 1)));
	cq->pi++;
	if (own >> 4 >= BB_CQE_REQ_ERR)
		cq->sol_pi = cq->pi;
	return true;
}

int
soft_cqe_host(struct mlx5_ctx *ctx, uint32_t cqn, const uint8_t cqe[64])
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	struct soft_cq *cq = cqn < 1u << SOFT_LOG_MAX_CQ ? dev->cqs[cqn] : NULL;
	struct soft_engine *e;
	uint32_t flags;
	bool ok;

	if (cq == NULL)
		return -ENOENT;
	e = cq->uar->engine;
	soft_engine_lock(e);
	e->stamped = false; /* "now" is that of the last turn, which may be long ago */
	soft_now(e);
	flags = __atomic_load_n(&cq->flags, __ATOMIC_RELAXED);
	if ((flags & SOFT_CQ_SHARED) != 0)
		rte_ticketlock_lock(&cq->lock);
	if ((flags & SOFT_CQ_ZIP) != 0)
		soft_zip_end(e, cq);
	ok = put(e, cq, cqe, flags);
	if (ok && (__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_ARMED) != 0)
		soft_cq_notify(e, cq);
	if ((flags & SOFT_CQ_SHARED) != 0)
		rte_ticketlock_unlock(&cq->lock);
	soft_engine_unlock(e);
	return ok ? 0 : -ENOSPC;
}
