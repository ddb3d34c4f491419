/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_queue_log.h"
#include "bb_srqring.h"

/* half of the range of the 16-bit counter in the SRQ's doorbell record */
#define SRQ_MAX_WQES       32768u
#define SRQ_MIN_LOG_STRIDE 5u /* log2 of 32 bytes: the next segment and one SGE */
#define SRQ_MAX_LOG_STRIDE 9u

static int
check_conf(const struct bb_srqring_conf *conf)
{
	if (conf->buf == NULL || conf->wr_ids == NULL || conf->held == NULL ||
	    (conf->dbrec == NULL) != (conf->ring != NULL) ||
	    ((uintptr_t)conf->buf & (BB_WQE_BB - 1)) != 0 || ((uintptr_t)conf->dbrec & 3) != 0) {
		BB_QUEUE_LOG(ERR,
			     "SRQ 0x%06x: ring %p, tables %p and %p and doorbell record %p must "
			     "not be NULL; the ring must be aligned to 64 bytes, the record to 4",
			     conf->srqn, conf->buf, (void *)conf->wr_ids, (void *)conf->held,
			     (void *)conf->dbrec);
		return -EINVAL;
	}
	if (conf->wqes < 2 || (conf->wqes & (conf->wqes - 1)) != 0 || conf->wqes > SRQ_MAX_WQES) {
		BB_QUEUE_LOG(ERR,
			     "SRQ 0x%06x: invalid number of WQEs %u (a power of two, 2 to "
			     "%u)",
			     conf->srqn, conf->wqes, SRQ_MAX_WQES);
		return -EINVAL;
	}
	/* A released WQE is linked to the last free WQE, so one WQE must always be free. */
	if (conf->depth == 0 || conf->depth >= conf->wqes) {
		BB_QUEUE_LOG(ERR, "SRQ 0x%06x: invalid depth %u (1 to %u: one WQE must stay free)",
			     conf->srqn, conf->depth, conf->wqes - 1);
		return -EINVAL;
	}
	if (conf->log_stride < SRQ_MIN_LOG_STRIDE || conf->log_stride > SRQ_MAX_LOG_STRIDE ||
	    conf->max_sge > (1u << conf->log_stride) / BB_WQE_SEG - 1) {
		BB_QUEUE_LOG(ERR,
			     "SRQ 0x%06x: %u SGEs and a head of 16 bytes do not fit into a WQE of "
			     "2^%u bytes, which must be 32 to 512",
			     conf->srqn, conf->max_sge, conf->log_stride);
		return -EINVAL;
	}
	return 0;
}

int
bb_srqring_init(struct bb_srqring *srq, const struct bb_srqring_conf *conf)
{
	uint32_t i;

	if (check_conf(conf) != 0)
		return -EINVAL;
	memset(srq, 0, sizeof(*srq));
	srq->buf = conf->buf;
	srq->wr_ids = conf->wr_ids;
	srq->held = conf->held;
	srq->dbrec = conf->dbrec;
	srq->depth = conf->depth;
	srq->mask = (uint16_t)(conf->wqes - 1);
	srq->tail = srq->mask;
	srq->max_sge = (uint8_t)conf->max_sge;
	srq->log_stride = (uint8_t)conf->log_stride;
	srq->srqn = conf->srqn;
	srq->owner = conf->owner;
	srq->ring = conf->ring;
	memset(conf->buf, 0, (size_t)conf->wqes << conf->log_stride);
	memset(conf->held, 0, conf->wqes);
	for (i = 0; i < srq->mask; i++)
		bb_srqring_wqe(srq, i)->next_wqe_index = bb_be16((uint16_t)(i + 1));
	if (srq->dbrec != NULL)
		bb_dbrec_store(srq->dbrec, 0);
	return 0;
}

int
bb_srqring_refuse_arg(struct bb_srqring *srq, enum bb_refusal why)
{
	return bb_queue_refuse("SRQ", srq->srqn, srq->owner, &srq->refused, why);
}

int
bb_srqring_refuse(struct bb_srqring *srq)
{
	if (srq->pi - srq->ci >= srq->depth) {
		srq->full++;
		return -EAGAIN;
	}
	/* There was room, so bb_queue_check_owner() must have failed in the caller. */
	return bb_srqring_refuse_arg(srq, BB_REFUSED_OWNER);
}
