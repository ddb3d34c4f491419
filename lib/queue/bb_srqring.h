/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Shared receive queue: WQEs in a linked list, given back in any order.
 *
 * Every WQE begins with a segment that names the one behind it (rdma-core: struct
 * mlx5_wqe_srq_next_seg), then comes its scatter list. Device and software start at
 * WQE 0 and follow these indices. Free WQEs hang behind the last one posted; a
 * completion hangs its WQE behind the last free one, which therefore can never be
 * posted itself: a ring of n WQEs takes n - 1 receives.
 *
 * Returns and ownership as in bb_sq.h: 1 posted, 0 full, negative errno.
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

/** A shared receive queue that one thread owns. */
struct bb_srqring {
	uint8_t *buf;
	uint64_t *wr_ids; /**< one per WQE */
	uint8_t *held;    /**< one per WQE: 1 from post to completion */
	uint32_t *dbrec;  /**< doorbell record, one word; NULL: see ring */
	uint32_t depth;   /**< WQEs that may be outstanding */
	uint32_t pi;      /**< WQEs posted since creation */
	uint32_t ci;      /**< WQEs completed since creation */
	uint32_t rung;    /**< pi at the last doorbell */
	uint16_t head;    /**< WQE to post next */
	uint16_t tail;    /**< last free WQE */
	uint16_t mask;    /**< WQEs in the ring - 1 */
	uint16_t refused; /**< 1 << enum bb_refusal of those already logged */
	uint8_t max_sge;
	uint8_t log_stride;
	uint8_t pad[6];
	/* Not touched by a post that succeeds. */
	uint64_t full;                        /**< statistics: posts refused for want of room */
	uint32_t srqn;                        /**< for the log */
	uint32_t owner;                       /**< lcore id, checked in debug builds */
	void (*ring)(struct bb_srqring *srq); /**< without dbrec: hands over what was posted */
};
BB_STATIC_ASSERT(offsetof(struct bb_srqring, full) == BB_CACHE_LINE, "one line");

/** What a shared receive queue is made of; memory belongs to the caller. */
struct bb_srqring_conf {
	void *buf;           /**< wqes << log_stride bytes, 64-byte aligned */
	uint64_t *wr_ids;    /**< @ref wqes entries */
	uint8_t *held;       /**< @ref wqes entries */
	uint32_t wqes;       /**< power of two, 2 to 32768 */
	uint32_t depth;      /**< 1 to wqes - 1 */
	uint32_t log_stride; /**< log2 of bytes, 5 to 9 */
	uint32_t max_sge;    /**< at most stride / 16 - 1 */
	uint32_t *dbrec;
	/** In place of dbrec, which is NULL then, called by bb_srqring_ring(). */
	void (*ring)(struct bb_srqring *srq);
	uint32_t srqn;  /**< for the log */
	uint32_t owner; /**< lcore id; LCORE_ID_ANY is never checked */
};

/** Prepare the queue and link its WQEs, before the device knows it. 0 or -EINVAL. */
int bb_srqring_init(struct bb_srqring *srq, const struct bb_srqring_conf *conf);
/** Why there was no room: 0 for a full queue, else an errno; as bb_sq_room(). */
int bb_srqring_refuse(struct bb_srqring *srq);
/** Refuse a request that no room would let through, as bb_sq_refuse_arg(). */
int bb_srqring_refuse_arg(struct bb_srqring *srq, enum bb_refusal why);

/** The WQE at an index, whatever its upper bits. */
static inline struct bb_wqe_srq_next *
bb_srqring_wqe(const struct bb_srqring *srq, uint32_t idx)
{
	return (struct bb_wqe_srq_next *)(void *)(srq->buf +
						  ((size_t)(idx & srq->mask) << srq->log_stride));
}

/** Post one receive; buffers are the device's until its completion. */
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
		/* Written with byte count 0 an empty piece would be one of 2^31. */
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
	return 1;
}

/** Hand every receive posted since the last call to the device. */
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
 * Give the WQE at @p idx back, as a completion names it.
 * @return false, and nothing changes, if it is not outstanding.
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
