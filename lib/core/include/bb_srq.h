/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Shared receive queues: one pool of receives for many QPs.
 *
 * Create an SRQ, set @ref bb_qp_init_attr.srq of the QPs to this SRQ, and post receives to the SRQ.
 * Each message consumes the receive at the head of the SRQ, whichever QP the message is for.
 * Completions arrive in the receive CQs of the QPs, in no fixed order between these CQs. When a
 * completion is polled, its receive is freed in the SRQ.
 *
 * An SRQ, its QPs and their CQs belong to one thread. A receive CQ counts the depth of an SRQ once,
 * however many of its QPs use the SRQ: all receives of the SRQ may complete into it.
 *
 * A QP in ERR does not flush the receives of its SRQ, because the other QPs still use these
 * receives. BB_EVENT_SRQ_LAST_WQE reports that the QP in ERR consumes no further receive. Before
 * you destroy a QP that was in the middle of a message, wait for this event. Then poll the receive
 * CQ. Otherwise a receive that the card had begun to fill is lost.
 */
#ifndef BB_SRQ_H
#define BB_SRQ_H

#include "bb_cq.h"
#include "bb_mem.h"
#include "bb_srqring.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Attributes of an SRQ (man ibv_create_srq). */
struct bb_srq_attr {
	uint32_t size;    /**< set by bb_srq_attr_init() */
	uint32_t depth;   /**< receives that can be outstanding, 1 to @ref bb_dev_attr.max_srq_wr */
	uint32_t max_sge; /**< SGEs of a receive, up to @ref bb_dev_attr.max_srq_sge */
	uint32_t limit;   /**< limit set by bb_srq_modify(), 0 if it is not armed */
	uint32_t lcore;   /**< lcore that owns the SRQ, or BB_LCORE_SELF */
};

/** Sets the defaults: 128 receives of 1 SGE, no limit, owned by the calling thread. */
static inline void
bb_srq_attr_init(struct bb_srq_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->depth = 128;
	attr->max_sge = 1;
	attr->limit = 0;
	attr->lcore = BB_LCORE_SELF;
}

/** Control-path data of an SRQ, opaque. */
struct bb_srq_ctrl;

/** A shared receive queue. Only the inline functions of Bluebell's headers access the fields. */
struct bb_srq {
	struct bb_srqring ring;
	/* The data path does not access the following fields. */
	uint32_t srqn;
	struct bb_srq_ctrl *ctrl;
	void *user; /**< free for the application */
};

/**
 * Implements bb_srq_create(), which passes the layout version of the headers. Call bb_srq_create()
 * instead.
 */
int bb_srq_create_v(struct bb_pd *pd, const struct bb_srq_attr *attr, uint32_t layout,
		    struct bb_srq **srq);

/**
 * Creates an SRQ (man ibv_create_srq). The keys of its receives must be keys of @p pd, whichever PD
 * the QPs belong to.
 * @return 0; -EINVAL if depth, max_sge or limit is out of range, or attr was not set up by
 * bb_srq_attr_init(); -ENOTSUP if the device has no SRQs; -ENOMEM; -EPROTO if the program was built
 * with headers of another BB_LAYOUT_VERSION: rebuild the program.
 */
static inline int
bb_srq_create(struct bb_pd *pd, const struct bb_srq_attr *attr, struct bb_srq **srq)
{
	return bb_srq_create_v(pd, attr, BB_LAYOUT_VERSION, srq);
}

/** Destroys the SRQ and drops its posted receives. Returns 0, or -EBUSY while QPs use it. */
int bb_srq_destroy(struct bb_srq *srq);

/**
 * Arms the limit (man ibv_modify_srq, IBV_SRQ_LIMIT). One BB_EVENT_SRQ_LIMIT is raised when a
 * message consumes a receive and fewer than @p limit receives are left. The event disarms the
 * limit, so arm it again for the next event. A @p limit of 0 disarms. If fewer receives are left at
 * the time of the call, the event is raised only when the next receive is consumed.
 * @return 0; -EINVAL if @p limit exceeds the depth.
 */
int bb_srq_modify(struct bb_srq *srq, uint32_t limit);

/** Implements bb_srq_query(), which sets the struct's size. Call bb_srq_query() instead. */
int bb_srq_query_v(struct bb_srq *srq, struct bb_srq_attr *attr);

/**
 * Reads the granted depth and max_sge, and the limit (man ibv_query_srq). The limit is 0 after
 * BB_EVENT_SRQ_LIMIT was raised.
 */
static inline int
bb_srq_query(struct bb_srq *srq, struct bb_srq_attr *attr)
{
	if (attr != NULL)
		attr->size = sizeof(*attr);
	return bb_srq_query_v(srq, attr);
}

/** Statistics of an SRQ, counted by software. */
struct bb_srq_stats {
	uint32_t size; /**< bytes of the caller's struct; set by bb_srq_stats() */
	uint64_t posted;
	uint64_t completed;
	uint64_t full;        /**< posts rejected because the queue was full */
	uint32_t outstanding; /**< receives posted and not yet polled */
	uint32_t qps;         /**< QPs that use the SRQ */
};

/** Implements bb_srq_stats(), which sets the struct's size. Call bb_srq_stats() instead. */
int bb_srq_stats_v(const struct bb_srq *srq, struct bb_srq_stats *stats);

/**
 * Reads the statistics of an SRQ. Only the owner may call this function, or another thread while
 * the owner does not post or poll.
 */
static inline int
bb_srq_stats(const struct bb_srq *srq, struct bb_srq_stats *stats)
{
	if (stats != NULL)
		stats->size = sizeof(*stats);
	return bb_srq_stats_v(srq, stats);
}

/**
 * Posts a receive (man ibv_post_srq_recv). bb_srq_ring() passes it to the device.
 * @return 0 or an error of bb_post_recv().
 */
static inline int
bb_post_srq_recv(struct bb_srq *srq, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge)
{
	return bb_srqring_post(&srq->ring, wr_id, sge, nsge);
}

/** Passes to the device all receives that were posted since the last call. */
static inline void
bb_srq_ring(struct bb_srq *srq)
{
	bb_srqring_ring(&srq->ring);
}

#ifdef __cplusplus
}
#endif

#endif
