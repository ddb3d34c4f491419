/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Receive queue: scatter lists in a ring of fixed strides.
 *
 * Results and ownership are as in bb_sq.h: 0 posted, -EAGAIN full, or another negative errno.
 */
#ifndef BB_RQ_H
#define BB_RQ_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A receive queue: a ring of WQEs of fixed size, owned by one thread. */
struct bb_rq {
	uint8_t *buf;
	uint64_t *wr_ids; /**< one per WQE */
	uint32_t *dbrec;  /**< receive doorbell record; NULL if ring is set */
	uint32_t depth;   /**< WQEs that may be outstanding; 0: no receive queue */
	uint32_t pi;      /**< WQEs posted since reset */
	uint32_t ci;      /**< WQEs completed since reset */
	uint32_t rung;    /**< pi at the last doorbell */
	uint16_t mask;    /**< WQEs in the ring - 1 */
	uint16_t pad0;
	uint16_t refused; /**< 1 << enum bb_refusal for each reason already logged */
	uint8_t max_sge;
	uint8_t log_stride;
	uint32_t qpn;   /**< QP number for log lines */
	uint32_t owner; /**< lcore id, checked in debug builds */
	uint64_t full;  /**< statistics: posts refused because the queue was full */
	/* Not touched if a device reads the ring. */
	void (*ring)(struct bb_rq *rq); /**< without dbrec: passes the posted WQEs to the driver */
	uint32_t *conf_dbrec;           /**< value of dbrec from bb_rq_enable() on */
	void (*conf_ring)(struct bb_rq *rq); /**< value of ring from bb_rq_enable() on */
	uint8_t pad[40];
};
BB_STATIC_ASSERT(offsetof(struct bb_rq, ring) == BB_CACHE_LINE, "a post touches one line");
BB_STATIC_ASSERT(sizeof(struct bb_rq) == 2 * BB_CACHE_LINE, "the next struct has its own lines");

/** Configuration of a receive queue. The caller owns the memory. */
struct bb_rq_conf {
	void *buf;           /**< wqes << log_stride bytes, 64-byte aligned */
	uint64_t *wr_ids;    /**< @ref wqes entries */
	uint32_t wqes;       /**< power of two, 1 to 32768 */
	uint32_t depth;      /**< 1 to wqes */
	uint32_t log_stride; /**< log2 of bytes, 4 to 9 */
	uint32_t max_sge;    /**< at most stride / 16 */
	uint32_t *dbrec;
	/** Called by bb_rq_ring() in place of a dbrec, which is then NULL; as in the send queue. */
	void (*ring)(struct bb_rq *rq);
	uint32_t qpn;   /**< QP number for log lines */
	uint32_t owner; /**< lcore id; LCORE_ID_ANY turns the check off */
};

/**
 * Initializes a receive queue. Receives stay in the ring until bb_rq_enable(), even if they are
 * rung. Returns 0 or -EINVAL.
 */
int bb_rq_init(struct bb_rq *rq, const struct bb_rq_conf *conf);
/** Restores the state after bb_rq_init() and sets the doorbell record to 0. */
void bb_rq_reset(struct bb_rq *rq);
/**
 * Passes the receives that were rung since the reset to the device (QP in INIT or later). From then
 * on bb_rq_ring() does so. Does nothing if it was called since the reset.
 */
void bb_rq_enable(struct bb_rq *rq);
/** Returns the reason for missing room: -EAGAIN if the queue is full, else another errno. */
int bb_rq_refuse(struct bb_rq *rq);
/** Refuses a request that could not succeed with more room either; see bb_sq_refuse_arg(). */
int bb_rq_refuse_arg(struct bb_rq *rq, enum bb_refusal why);

/** Posts one receive. The device owns its buffers until its completion. */
static inline int
bb_rq_post(struct bb_rq *rq, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge)
{
	struct bb_wqe_data *seg;
	uint32_t idx = rq->pi & rq->mask, i, n = 0;
	int pieces;

	if (bb_unlikely(nsge > rq->max_sge))
		return bb_rq_refuse_arg(rq, BB_REFUSED_MAX_SGE);
	pieces = bb_sq_count_sge(sge, nsge);
	if (bb_unlikely(pieces < 0))
		return bb_rq_refuse_arg(rq, BB_REFUSED_SGE_LEN);
	if (bb_unlikely(rq->pi - rq->ci >= rq->depth || !bb_queue_check_owner(rq->owner)))
		return bb_rq_refuse(rq);
	seg = (struct bb_wqe_data *)(void *)(rq->buf + ((size_t)idx << rq->log_stride));
	for (i = 0; i < nsge; i++) {
		if (sge[i].len != 0)
			bb_sq_fill_data(&seg[n++], &sge[i]);
	}
	if (n << 4 < 1u << rq->log_stride) {
		const struct bb_sge end = {0, 0, BB_WQE_INVALID_LKEY};

		bb_sq_fill_data(&seg[n], &end);
	}
	rq->wr_ids[idx] = wr_id;
	bb_count_add32(&rq->pi, 1);
	return 0;
}

/** Passes all receives posted since the last call to the device. */
static inline void
bb_rq_ring(struct bb_rq *rq)
{
	if (rq->pi == rq->rung)
		return;
	if (bb_unlikely(rq->dbrec == NULL)) {
		rq->ring(rq);
		return;
	}
	bb_dma_wmb();
	bb_dbrec_store(rq->dbrec, bb_be32(rq->pi & 0xffff));
	rq->rung = rq->pi;
}

/** Records the completion of the WQE at @p wqe_counter. Returns its wr_id. */
static inline uint64_t
bb_rq_complete(struct bb_rq *rq, uint16_t wqe_counter)
{
	bb_count_add32(&rq->ci, 1);
	return rq->wr_ids[wqe_counter & rq->mask];
}

#ifdef __cplusplus
}
#endif

#endif
