/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Shared receive queue: WQEs in a linked list, released in any order.
 *
 * Every WQE begins with a segment that names its successor (rdma-core: struct
 * mlx5_wqe_srq_next_seg), followed by its scatter list. Device and software start at WQE 0 and
 * follow these indices. The free WQEs come after the WQE posted last. A completion links its WQE to
 * the last free WQE. So the last free WQE is never posted, and a ring of n WQEs holds n - 1
 * receives.
 *
 * Results and ownership are as in bb_sq.h: 0 posted, -EAGAIN full, or another negative errno.
 */
#ifndef BB_SRQRING_H
#define BB_SRQRING_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** First segment of a WQE of a shared receive queue. */
struct bb_wqe_srq_next {
	uint8_t rsvd0[2];
	uint16_t next_wqe_index;
	uint8_t signature;
	uint8_t rsvd5[11];
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_srq_next) == BB_WQE_SEG, "next segment");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_srq_next, next_wqe_index) == 2, "next segment");

/** A shared receive queue, owned by one thread. */
struct bb_srqring {
	uint8_t *buf;
	uint64_t *wr_ids; /**< one per WQE */
	uint8_t *held;    /**< one per WQE: 1 from post to completion, else 0 */
	uint32_t *dbrec;  /**< doorbell record, 32 bits; NULL if the driver uses ring() instead */
	uint32_t depth;   /**< WQEs that may be outstanding */
	uint32_t pi;      /**< WQEs posted since creation */
	uint32_t ci;      /**< WQEs completed since creation */
	uint32_t rung;    /**< value of pi at the last doorbell */
	uint16_t head;    /**< index of the next WQE to post */
	uint16_t tail;    /**< index of the last free WQE */
	uint16_t mask;    /**< WQEs in the ring - 1 */
	uint16_t refused; /**< 1 << enum bb_refusal for each reason already logged */
	uint8_t max_sge;
	uint8_t log_stride;
	uint8_t pad[6];
	/* Not touched by a successful post. */
	uint64_t full;                        /**< statistics: posts refused because the queue was
					       * full */
	uint32_t srqn;                        /**< SRQ number for log lines */
	uint32_t owner;                       /**< lcore id, checked in debug builds */
	void (*ring)(struct bb_srqring *srq); /**< passes the posted WQEs to the driver if
					       * dbrec is NULL, else NULL */
};
BB_STATIC_ASSERT(offsetof(struct bb_srqring, full) == BB_CACHE_LINE, "one line");

/** Configuration of a shared receive queue. The caller owns the memory. */
struct bb_srqring_conf {
	void *buf;           /**< wqes << log_stride bytes, 64-byte aligned */
	uint64_t *wr_ids;    /**< @ref wqes entries */
	uint8_t *held;       /**< @ref wqes entries */
	uint32_t wqes;       /**< power of two, 2 to 32768 */
	uint32_t depth;      /**< 1 to wqes - 1 */
	uint32_t log_stride; /**< log2 of bytes, 5 to 9 */
	uint32_t max_sge;    /**< at most stride / 16 - 1 */
	uint32_t *dbrec;     /**< doorbell record, 32 bits; NULL if ring is set */
	/** Called by bb_srqring_ring() if dbrec is NULL; passes the posted WQEs to the driver. */
	void (*ring)(struct bb_srqring *srq);
	uint32_t srqn;  /**< SRQ number for log lines */
	uint32_t owner; /**< lcore id; LCORE_ID_ANY turns the check off */
};

/** Initializes the queue and links its WQEs, before the device uses it. Returns 0 or -EINVAL. */
int bb_srqring_init(struct bb_srqring *srq, const struct bb_srqring_conf *conf);
/** Returns the reason for missing room: -EAGAIN if the queue is full, else another errno. */
int bb_srqring_refuse(struct bb_srqring *srq);
/** Refuses a request that more room would not help, as bb_sq_refuse_arg(). */
int bb_srqring_refuse_arg(struct bb_srqring *srq, enum bb_refusal why);

/** Returns the WQE at an index; upper bits of the index are ignored. */
static inline struct bb_wqe_srq_next *
bb_srqring_wqe(const struct bb_srqring *srq, uint32_t idx)
{
	return (struct bb_wqe_srq_next *)(void *)(srq->buf +
						  ((size_t)(idx & srq->mask) << srq->log_stride));
}

/** Posts one receive. The device owns its buffers until its completion. */
static inline int
bb_srqring_post(struct bb_srqring *srq, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge)
{
	struct bb_wqe_srq_next *wqe;
	struct bb_wqe_data *seg;
	uint32_t idx = srq->head, i, n = 0;

	if (bb_unlikely(nsge > srq->max_sge))
		return bb_srqring_refuse_arg(srq, BB_REFUSED_MAX_SGE);
	if (bb_unlikely(bb_sq_count_sge(sge, nsge) < 0))
		return bb_srqring_refuse_arg(srq, BB_REFUSED_SGE_LEN);
	if (bb_unlikely(srq->pi - srq->ci >= srq->depth || !bb_queue_check_owner(srq->owner)))
		return bb_srqring_refuse(srq);
	wqe = bb_srqring_wqe(srq, idx);
	srq->head = bb_be16(wqe->next_wqe_index);
	seg = (struct bb_wqe_data *)(void *)(wqe + 1);
	for (i = 0; i < nsge; i++) {
		/* A byte count of 0 would mean 2^31 bytes, so empty pieces are left out. */
		if (sge[i].len != 0)
			bb_sq_fill_data(&seg[n++], &sge[i]);
	}
	if ((n + 1) << 4 < 1u << srq->log_stride) {
		const struct bb_sge end = {0, 0, BB_WQE_INVALID_LKEY};

		bb_sq_fill_data(&seg[n], &end);
	}
	srq->wr_ids[idx & srq->mask] = wr_id;
	srq->held[idx & srq->mask] = 1;
	srq->pi++;
	return 0;
}

/** Passes all receives posted since the last call to the device. */
static inline void
bb_srqring_ring(struct bb_srqring *srq)
{
	if (srq->pi == srq->rung)
		return;
	if (bb_unlikely(srq->dbrec == NULL)) {
		srq->ring(srq);
		return;
	}
	bb_dma_wmb();
	bb_dbrec_store(srq->dbrec, bb_be32(srq->pi & 0xffff));
	srq->rung = srq->pi;
}

/**
 * Releases the WQE at @p idx, as named by a completion.
 * @return false, without a change, if it is not outstanding.
 */
static inline bool
bb_srqring_complete(struct bb_srqring *srq, uint16_t idx, uint64_t *wr_id)
{
	if (bb_unlikely(idx > srq->mask || !srq->held[idx]))
		return false;
	*wr_id = srq->wr_ids[idx];
	srq->held[idx] = 0;
	bb_srqring_wqe(srq, srq->tail)->next_wqe_index = bb_be16(idx);
	srq->tail = idx;
	srq->ci++;
	return true;
}

#ifdef __cplusplus
}
#endif

#endif
