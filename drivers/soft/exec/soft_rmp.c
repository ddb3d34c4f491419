/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Takes receives from a receive queue that QPs share (RMP). The QPs may belong to several engines,
 * so the RMP has its own lock, the last one in the lock order.
 *
 * A take copies the whole WQE, including its index of the next WQE. The linked list starts at WQE
 * 0, where libmlx5 posts its first receive. The RMP goes to ERR if such an index lies outside the
 * queue, or if the doorbell record says that more WQEs are posted than the queue has. A card
 * reports this error as SRQ_CATAS_ERROR (mlx5_ib_srq_event()). A card may detect it at another time
 * (so the behaviour here is an assumption, [A]).
 */
#include "soft_data.h"

static enum soft_take
soft_rmp_fail(struct soft_rmp *rmp, const char *why)
{
	SOFT_LOG(ERR, "%s RMP 0x%x goes to ERR after %u WQEs: %s", rmp->dev->name, rmp->rmpn,
		 rmp->taken, why);
	rmp->error = true;
	return SOFT_TAKE_FAILED;
}

/* Copies WQE @idx to e->recv, and sets the other fields of e->recv that the responder uses. */
static void
soft_rmp_load(struct soft_engine *e, const struct soft_rmp *rmp, uint16_t idx)
{
	uint32_t stride = 1u << rmp->log_stride;

	memcpy(e->rmp_wqe, rmp->buf + ((size_t)idx << rmp->log_stride), stride);
	/*
	 * From here on, the compiler must use the copy. Without this barrier it might read the ring
	 * again, which software may change meanwhile.
	 */
	bb_dma_rmb();
	e->recv.idx = idx;
	e->recv.list = e->rmp_wqe + rmp->head_bytes;
	e->recv.max = (stride - rmp->head_bytes) / BB_WQE_SEG;
	e->recv.pdn = rmp->pdn;
}

/*
 * Takes the next receive. Call it with the RMP's lock held. Sets *event to the event that the
 * caller must raise after the unlock, or to 0.
 */
static enum soft_take
soft_rmp_next(struct soft_engine *e, struct soft_rmp *rmp, uint16_t *event)
{
	uint32_t mask = (1u << rmp->log_size) - 1;
	uint16_t posted, next;

	if (rmp->error)
		return SOFT_TAKE_FAILED;
	posted = (uint16_t)(bb_be32(bb_dbrec_load(rmp->dbrec)) - rmp->taken);
	if (posted == 0)
		return SOFT_TAKE_EMPTY;
	*event = BB_PRM_EVENT_SRQ_CATAS_ERROR;
	if (unlikely(posted > mask + 1))
		return soft_rmp_fail(
			rmp,
			"the doorbell record announces more WQEs than the RMP has: write the WQE "
			"counter, big endian");
	soft_rmp_load(e, rmp, rmp->head);
	if (rmp->list) {
		next = (uint16_t)(e->rmp_wqe[2] << 8 | e->rmp_wqe[3]);
		if (unlikely(next > mask))
			return soft_rmp_fail(rmp, "next_wqe_index of a WQE is outside the queue");
	} else {
		next = (rmp->head + 1) & mask;
	}
	rmp->head = next;
	rmp->taken++;
	*event = 0;
	/*
	 * The limit event is raised once, when fewer receives are left than the limit (IBTA vol. 1,
	 * 10.2.9).
	 */
	if (rmp->lwm != 0 && posted - 1u < rmp->lwm) {
		rmp->lwm = 0;
		*event = BB_PRM_EVENT_SRQ_RQ_LIMIT;
	}
	return SOFT_TAKE_OK;
}

enum soft_take
soft_rmp_take(struct soft_engine *e, struct soft_qp *qp)
{
	struct soft_rmp *rmp = qp->rmp;
	uint16_t event = 0;
	enum soft_take took;

	if (unlikely(qp->rmp_holds)) {
		soft_rmp_load(e, rmp, qp->rmp_idx);
		return SOFT_TAKE_OK;
	}
	rte_ticketlock_lock(&rmp->lock);
	took = soft_rmp_next(e, rmp, &event);
	rte_ticketlock_unlock(&rmp->lock);
	if (took == SOFT_TAKE_OK) {
		qp->rmp_holds = true;
		qp->rmp_idx = e->recv.idx;
	}
	if (event != 0)
		soft_event_raise(rmp->dev, rmp->obj, event);
	return took;
}
