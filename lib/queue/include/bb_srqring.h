/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Shared receive queue: receive WQEs in a linked list, which complete in any order.
 *
 * Every WQE begins with a segment that names the next WQE of the list (rdma-core: struct
 * mlx5_wqe_srq_next_seg). The scatter list follows that segment. Both the device and software
 * start at WQE 0 and follow the list.
 *
 * The posted WQEs come first in the list, the free WQEs after them. A completion appends its WQE
 * to the end of the list. Appending needs a last free WQE, which is therefore never posted, so a
 * ring of n WQEs holds n - 1 receives.
 *
 * Posts return 0 on success, -EAGAIN if the queue is full, or another negative errno. The rules of
 * ownership are those of bb_sq.h.
 */
#ifndef BB_SRQRING_H
#define BB_SRQRING_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * First segment of a WQE of a shared receive queue: contains the index of the next WQE of the list.
 */
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
	uint8_t *held;    /**< one per WQE: 1 from its post to its completion, else 0 */
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
	/* A successful post does not write the following fields. */
	uint64_t full;  /**< statistics: posts refused because the queue was full */
	uint32_t srqn;  /**< SRQ number for log lines */
	uint32_t owner; /**< lcore id of the owner; debug builds reject other callers */
	void (*ring)(struct bb_srqring *srq); /**< if dbrec is NULL: passes the posted WQEs to the
						 driver; otherwise NULL */
};
BB_STATIC_ASSERT(offsetof(struct bb_srqring, full) == BB_CACHE_LINE, "one line");

/** Configuration of a shared receive queue. The caller owns the memory. */
struct bb_srqring_conf {
	void *buf;           /**< memory of the ring: wqes << log_stride bytes, 64-byte aligned */
	uint64_t *wr_ids;    /**< one entry per WQE of the ring: wqes entries */
	uint8_t *held;       /**< one entry per WQE of the ring: wqes entries */
	uint32_t wqes;       /**< number of WQEs, a power of two from 2 to 32768 */
	uint32_t depth;      /**< WQEs that may be outstanding, 1 to wqes - 1 */
	uint32_t log_stride; /**< log2 of the bytes per WQE, 5 to 9 */
	uint32_t max_sge;    /**< SGEs per WQE, at most (1 << log_stride) / 16 - 1 */
	uint32_t *dbrec;     /**< doorbell record, 32 bits; NULL if ring is set */
	/** Passes the posted WQEs to the driver. Called by bb_srqring_ring() if dbrec is NULL. */
	void (*ring)(struct bb_srqring *srq);
	uint32_t srqn;  /**< SRQ number for log lines */
	uint32_t owner; /**< lcore id of the owner; LCORE_ID_ANY: callers are not checked */
};

/**
 * Initializes the queue and links all WQEs. Call it before the device uses the queue. Returns 0,
 * or -EINVAL if the configuration is out of range.
 */
int bb_srqring_init(struct bb_srqring *srq, const struct bb_srqring_conf *conf);
/** Returns why a post found no room: -EAGAIN if the queue is full, else another negative errno. */
int bb_srqring_refuse(struct bb_srqring *srq);
/** Refuses a request that would fail even with more room, as bb_sq_refuse_arg() does. */
int bb_srqring_refuse_arg(struct bb_srqring *srq, enum bb_refusal why);

/** Returns the WQE at index @p idx; ignores bits of the index beyond the ring size. */
static inline struct bb_wqe_srq_next *
bb_srqring_wqe(const struct bb_srqring *srq, uint32_t idx)
{
	return (struct bb_wqe_srq_next *)(void *)(srq->buf +
						  ((size_t)(idx & srq->mask) << srq->log_stride));
}

/** Posts one receive. The device owns the buffers of the receive until it completes. */
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
		/* A byte count of 0 would mean 2^31 bytes, so empty SGEs are left out. */
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

/** Passes to the device all receives that were posted since the last call. */
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
 * Releases the WQE at index @p idx, which a completion named.
 * @return true, or false without a change if that WQE is not outstanding.
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
