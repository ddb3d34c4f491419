/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Receive queue: a ring of receive WQEs of equal size, each of which is a scatter list.
 *
 * Posts return 0 on success, -EAGAIN if the queue is full, or another negative errno. The rules of
 * ownership are those of bb_sq.h.
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
	uint32_t depth;   /**< WQEs that may be outstanding; 0 if the QP has no receive queue */
	uint32_t pi;      /**< WQEs posted since reset */
	uint32_t ci;      /**< WQEs completed since reset */
	uint32_t rung;    /**< value of pi at the last doorbell */
	uint16_t mask;    /**< WQEs in the ring - 1 */
	bool connected;   /**< the QP is RC or UC, so its CQEs do not describe a sender */
	uint8_t pad0;
	uint16_t refused; /**< 1 << enum bb_refusal for each reason already logged */
	uint8_t max_sge;
	uint8_t log_stride;
	uint32_t qpn;   /**< QP number for log lines */
	uint32_t owner; /**< lcore id of the owner; debug builds reject other callers */
	uint64_t full;  /**< statistics: posts refused because the queue was full */
	/* Not accessed on the data path if dbrec is set. */
	void (*ring)(struct bb_rq *rq); /**< passes WQEs to the driver if dbrec is NULL */
	uint32_t *conf_dbrec; /**< dbrec of the configuration; bb_rq_enable() copies it to dbrec */
	void (*conf_ring)(struct bb_rq *rq); /**< ring of the configuration; bb_rq_enable() copies
						it to ring */
	uint64_t done;                       /**< statistics: WQEs completed since bb_rq_init() */
	uint8_t pad[32];
};
BB_STATIC_ASSERT(offsetof(struct bb_rq, ring) == BB_CACHE_LINE, "a post touches one line");
BB_STATIC_ASSERT(sizeof(struct bb_rq) == 2 * BB_CACHE_LINE, "the next struct has its own lines");

/** Configuration of a receive queue. The caller owns the memory. */
struct bb_rq_conf {
	void *buf;           /**< memory of the ring: wqes << log_stride bytes, 64-byte aligned */
	uint64_t *wr_ids;    /**< array of @ref wqes entries */
	uint32_t wqes;       /**< number of WQEs, a power of two from 1 to 32768 */
	uint32_t depth;      /**< WQEs that may be outstanding, 1 to wqes */
	uint32_t log_stride; /**< log2 of the bytes per WQE, 4 to 9 */
	uint32_t max_sge;    /**< SGEs per WQE, at most (1 << log_stride) / 16 */
	uint32_t *dbrec;
	/** Passes the posted WQEs to the driver. Called by bb_rq_ring() if dbrec is NULL. */
	void (*ring)(struct bb_rq *rq);
	uint32_t qpn;   /**< QP number for log lines */
	uint32_t owner; /**< lcore id of the owner; LCORE_ID_ANY: callers are not checked */
};

/**
 * Initializes a receive queue. Until bb_rq_enable(), receives can be posted, but bb_rq_ring() does
 * not pass them to the device. Returns 0, or -EINVAL if the configuration is out of range.
 */
int bb_rq_init(struct bb_rq *rq, const struct bb_rq_conf *conf);
/** Restores the state after bb_rq_init() and sets the doorbell record to 0. */
void bb_rq_reset(struct bb_rq *rq);
/**
 * Passes to the device the receives for which bb_rq_ring() was called since the reset. From then on
 * bb_rq_ring() passes receives to the device. Call it when the QP is in INIT or a later state. A
 * second call after the same reset does nothing.
 */
void bb_rq_enable(struct bb_rq *rq);
/** Returns why a post found no room: -EAGAIN if the queue is full, else another negative errno. */
int bb_rq_refuse(struct bb_rq *rq);
/** Refuses a request that would fail even with more room, as bb_sq_refuse_arg() does. */
int bb_rq_refuse_arg(struct bb_rq *rq, enum bb_refusal why);

/** Posts one receive. The device owns the buffers of the receive until it completes. */
static inline __attribute__((always_inline)) int
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

/** Passes to the device all receives that were posted since the last call. */
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

/** Records that the WQE at @p wqe_counter is complete. Returns the wr_id of the WQE. */
static inline uint64_t
bb_rq_complete(struct bb_rq *rq, uint16_t wqe_counter)
{
	bb_count_add32(&rq->ci, 1);
	bb_count_add(&rq->done, 1);
	return rq->wr_ids[wqe_counter & rq->mask];
}

#ifdef __cplusplus
}
#endif

#endif
