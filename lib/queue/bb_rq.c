/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_queue_log.h"
#include "bb_rq.h"

/* half of the range of the 16-bit counter in the receive queue's doorbell record */
#define RQ_MAX_WQES       32768u
#define RQ_MIN_LOG_STRIDE 4u
#define RQ_MAX_LOG_STRIDE 9u

static int
check_conf(const struct bb_rq_conf *conf)
{
	if (conf->buf == NULL || conf->wr_ids == NULL ||
	    (conf->dbrec == NULL) != (conf->ring != NULL) ||
	    ((uintptr_t)conf->buf & (BB_WQE_BB - 1)) != 0 || ((uintptr_t)conf->dbrec & 3) != 0) {
		BB_QUEUE_LOG(ERR,
			     "receive queue of QP 0x%06x: ring %p, wr_id table %p and doorbell "
			     "record %p: none may be NULL, and they must be aligned to 64, 8 and 4 "
			     "bytes",
			     conf->qpn, conf->buf, (void *)conf->wr_ids, (void *)conf->dbrec);
		return -EINVAL;
	}
	if (conf->wqes == 0 || (conf->wqes & (conf->wqes - 1)) != 0 || conf->wqes > RQ_MAX_WQES) {
		BB_QUEUE_LOG(ERR,
			     "receive queue of QP 0x%06x: invalid number of WQEs %u (a power of "
			     "two, at most %u)",
			     conf->qpn, conf->wqes, RQ_MAX_WQES);
		return -EINVAL;
	}
	if (conf->depth == 0 || conf->depth > conf->wqes) {
		BB_QUEUE_LOG(ERR, "receive queue of QP 0x%06x: invalid depth %u (1 to %u)",
			     conf->qpn, conf->depth, conf->wqes);
		return -EINVAL;
	}
	if (conf->log_stride < RQ_MIN_LOG_STRIDE || conf->log_stride > RQ_MAX_LOG_STRIDE ||
	    conf->max_sge > (1u << conf->log_stride) / BB_WQE_SEG) {
		BB_QUEUE_LOG(ERR,
			     "receive queue of QP 0x%06x: %u SGEs do not fit into a WQE of 2^%u "
			     "bytes, which must be 16 to 512",
			     conf->qpn, conf->max_sge, conf->log_stride);
		return -EINVAL;
	}
	return 0;
}

int
bb_rq_init(struct bb_rq *rq, const struct bb_rq_conf *conf)
{
	if (check_conf(conf) != 0)
		return -EINVAL;
	memset(rq, 0, sizeof(*rq));
	rq->buf = conf->buf;
	rq->wr_ids = conf->wr_ids;
	rq->conf_dbrec = conf->dbrec;
	rq->conf_ring = conf->ring;
	rq->depth = conf->depth;
	rq->mask = (uint16_t)(conf->wqes - 1);
	rq->max_sge = (uint8_t)conf->max_sge;
	rq->log_stride = (uint8_t)conf->log_stride;
	rq->qpn = conf->qpn;
	rq->owner = conf->owner;
	bb_rq_reset(rq);
	return 0;
}

/*
 * Value of bb_rq.ring while the QP is in RESET. It records how many receives the application has
 * rung; bb_rq_enable() passes them to the device.
 */
static void
hold(struct bb_rq *rq)
{
	rq->rung = rq->pi;
}

void
bb_rq_reset(struct bb_rq *rq)
{
	rq->pi = 0;
	rq->ci = 0;
	rq->rung = 0;
	rq->refused = 0;
	rq->full = 0;
	rq->dbrec = NULL;
	rq->ring = hold;
	if (rq->conf_dbrec != NULL)
		bb_dbrec_store(rq->conf_dbrec, 0);
}

void
bb_rq_enable(struct bb_rq *rq)
{
	const uint32_t posted = rq->pi, rung = rq->rung;

	if (rq->ring != hold)
		return;
	rq->dbrec = rq->conf_dbrec;
	rq->ring = rq->conf_ring;
	/*
	 * Passes only the receives that bb_rq_ring() was called for, not those that were only
	 * posted.
	 */
	rq->pi = rung;
	rq->rung = 0;
	bb_rq_ring(rq);
	rq->pi = posted;
}

int
bb_rq_refuse_arg(struct bb_rq *rq, enum bb_refusal why)
{
	/*
	 * The struct of a QP without a receive queue was never initialized, so all its fields are
	 * 0.
	 */
	if (rq->depth == 0)
		why = BB_REFUSED_NO_RQ;
	return bb_queue_refuse("receive queue of QP", rq->qpn, rq->owner, &rq->refused, why);
}

int
bb_rq_refuse(struct bb_rq *rq)
{
	if (rq->depth != 0 && rq->pi - rq->ci >= rq->depth) {
		bb_count_add(&rq->full, 1);
		return -EAGAIN;
	}
	/* There was room, so bb_queue_check_owner() must have failed in the caller. */
	return bb_rq_refuse_arg(rq, BB_REFUSED_OWNER);
}
