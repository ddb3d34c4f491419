/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Completion queues and work completions.
 *
 * A CQ and the QPs that complete into it belong to one thread: an lcore, or a
 * thread registered with rte_thread_register(). Only the owner polls and arms.
 */
#ifndef BB_CQ_H
#define BB_CQ_H

#include "bb_cqring.h"
#include "bb_dev.h"
#include "bb_rq.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Version of the structs that inline functions read. A program that was built with headers of
 * another version cannot create queues.
 */
#define BB_LAYOUT_VERSION 11u

/** Owner of a queue: the calling thread's lcore id. */
#define BB_LCORE_SELF UINT32_MAX

/** Attributes of a CQ. */
struct bb_cq_attr {
	uint32_t size;  /**< sizeof(struct bb_cq_attr); set by bb_cq_attr_init() */
	uint32_t depth; /**< CQEs that the CQ must hold; rounded up to a power of two */
	uint32_t lcore; /**< lcore that owns the CQ, or BB_LCORE_SELF */
	/** Channel of the CQ's events; a CQ without one (NULL) can only be polled, not armed. */
	struct bb_channel *channel;
	/**
	 * Completion vector whose interrupt raises the CQ's events, 0 to
	 * @ref bb_dev_attr.comp_vectors - 1 (man ibv_create_cq).
	 */
	uint32_t comp_vector;
	/** Completions have device time stamps, for bb_cq_poll_ts(). */
	bool timestamps;
	/**
	 * The device may compress completions of similar receives, several into one CQE. Such a CQ
	 * accepts only receive queues of queue pairs: no send queues and no QPs with an SRQ.
	 */
	bool compress;
};

/** Sets the defaults: 256 CQEs, owned by the calling thread, no events, completion vector 0. */
static inline void
bb_cq_attr_init(struct bb_cq_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->depth = 256;
	attr->lcore = BB_LCORE_SELF;
}

/** Completion status (man ibv_poll_cq). */
enum bb_wc_status {
	BB_WC_SUCCESS,
	BB_WC_LOC_LEN_ERR,
	BB_WC_LOC_QP_OP_ERR,
	BB_WC_LOC_PROT_ERR,
	BB_WC_WR_FLUSH_ERR,
	BB_WC_MW_BIND_ERR,
	BB_WC_BAD_RESP_ERR,
	BB_WC_LOC_ACCESS_ERR,
	BB_WC_REM_INV_REQ_ERR,
	BB_WC_REM_ACCESS_ERR,
	BB_WC_REM_OP_ERR,
	BB_WC_RETRY_EXC_ERR,
	BB_WC_RNR_RETRY_EXC_ERR,
	BB_WC_REM_ABORT_ERR,
	BB_WC_GENERAL_ERR,
};

/** Flags of a completion, or-ed. */
enum bb_wc_flags {
	BB_WC_WITH_IMM = 1 << 0,
	BB_WC_SOLICITED = 1 << 1,
	BB_WC_GRH = 1 << 2,      /**< UD: the first 40 bytes of the buffer hold a GRH. On RoCE v2
				  * they hold an IPv6 header, or 20 bytes followed by an IPv4
				  * header */
	BB_WC_WITH_INV = 1 << 3, /**< the peer invalidated the rkey given in imm */
};

/** A work completion (man ibv_poll_cq: struct ibv_wc). */
struct bb_wc {
	uint64_t wr_id;
	struct bb_qp *qp;
	uint32_t byte_len;  /**< bytes of receives, READs and atomics. UD: data bytes + 40, because
			     * the data starts 40 bytes into the buffer, with or without a GRH */
	uint32_t imm;       /**< immediate in network order with BB_WC_WITH_IMM; rkey in host order
			     * with BB_WC_WITH_INV */
	uint8_t status;     /**< enum bb_wc_status. On errors only this field, wr_id, qp and the
			     * two syndromes are valid */
	uint8_t opcode;     /**< enum bb_wc_opcode */
	uint8_t flags;      /**< enum bb_wc_flags */
	uint8_t syndrome;   /**< syndrome of the CQE; valid only on errors */
	uint8_t vendor_err; /**< vendor syndrome; valid only on errors */
	uint8_t sl;         /**< service level; valid only for UD receives on InfiniBand */
	uint8_t pad[2];
	uint32_t src_qp;     /**< QP number of the sender; valid only for UD receives */
	uint16_t pkey_index; /**< valid only for UD receives without immediate data, on
			      * InfiniBand */
	uint16_t slid;       /**< LID of the sender; valid only for UD receives on InfiniBand */
};

/** Returns the name of a status: "remote access error". */
const char *bb_wc_status_name(enum bb_wc_status status);

/** Returns one sentence with the most likely cause and what to check. */
const char *bb_wc_status_cause(enum bb_wc_status status, uint8_t vendor_err);

/** Control-path half of a CQ, opaque. */
struct bb_cq_ctrl;

/** A completion queue. Only the inline functions here touch its fields. */
struct bb_cq {
	struct bb_cqring ring;
	void (*progress)(void *arg); /**< runs the software device, or fills the ring from the CQ
				      * of a library; NULL on hardware */
	struct bb_qp **qps;          /**< QPs by user index */
	uint32_t qps_mask;
	uint32_t owner; /**< lcore id of the owner */
	void *progress_arg;
	/**
	 * bb_cq_poll() for the CQ of a library. NULL if completions come through the ring only, and
	 * always NULL if progress is NULL.
	 */
	unsigned int (*poll)(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
	/**
	 * Correction for statistics: ring.ci + more, modulo 2^64, is the number of CQEs consumed.
	 * ring.ci lacks the completions that a driver reports without a CQE. It includes purged
	 * CQEs and the marks of a resize.
	 */
	uint64_t more;
	/* Read once per event, not per poll. */
	uint64_t *arm_reg; /**< register that arms the CQ; NULL if bb_cq_arm_slow() arms it */
	uint32_t cqn;
	uint32_t arm_sn; /**< events taken from its channel; __atomic */
	/* Not touched on the data path. */
	struct bb_cq_ctrl *ctrl;
};
BB_STATIC_ASSERT(offsetof(struct bb_cq, progress_arg) == BB_CACHE_LINE, "a poll reads one line");

/** Use bb_cq_create(). */
int bb_cq_create_v(struct bb_dev *dev, const struct bb_cq_attr *attr, uint32_t layout,
		   struct bb_cq **cq);

/**
 * Creates a CQ (man ibv_create_cq).
 * @return 0; -EINVAL depth is 0 or over max_cqe, comp_vector is out of range, the lcore is unknown,
 * attr was not set up by bb_cq_attr_init(), the channel is of another device, or timestamps and
 * compress are both set; -ENOTSUP the device has no clock, or no compressed CQEs; -ENOMEM; -EPROTO
 * the program was built for another layout: rebuild it.
 */
static inline int
bb_cq_create(struct bb_dev *dev, const struct bb_cq_attr *attr, struct bb_cq **cq)
{
	return bb_cq_create_v(dev, attr, BB_LAYOUT_VERSION, cq);
}

/** Destroys the CQ. Returns 0, or -EBUSY while QPs complete into it. */
int bb_cq_destroy(struct bb_cq *cq);

/**
 * Arms a CQ without a register through its driver, or logs why it cannot be armed. Off the fast
 * path.
 */
int bb_cq_arm_slow(struct bb_cq *cq, bool solicited_only);

/**
 * Requests one event on the CQ's channel for its next completion (man ibv_req_notify_cq).
 * Completions that are not yet polled raise the event at once. So a thread that arms, then polls
 * until the CQ is empty, then waits, misses none. Arming again before the event changes only @p
 * solicited_only. Owner only; costs a doorbell, no system call.
 *
 * On a device of the verbs driver the call goes to libibverbs and may return its errno. On siw
 * every completion raises the event, because siw does not report solicited ones.
 * @param solicited_only raise the event only for a receive whose sender set BB_SEND_SOLICITED, or
 * for an error.
 * @return 0; -EINVAL the CQ was created without a channel.
 */
static inline int
bb_cq_arm(struct bb_cq *cq, bool solicited_only)
{
	if (bb_unlikely(cq->arm_reg == NULL))
		return bb_cq_arm_slow(cq, solicited_only);
	bb_cqring_arm(&cq->ring, cq->cqn, __atomic_load_n(&cq->arm_sn, __ATOMIC_RELAXED),
		      solicited_only, cq->arm_reg);
	return 0;
}

/**
 * Changes the depth (man ibv_resize_cq). Pending completions stay in order, and QPs continue
 * meanwhile. An armed CQ stays armed; the change raises no event. Owner only, because the ring is
 * replaced.
 * @param depth CQEs that must fit; rounded up to a power of two.
 * @return 0, also if nothing changes; -EINVAL depth is 0, over max_cqe, or less than the WQEs of
 * the queues that complete into the CQ; -EBUSY as many requests are outstanding as the CQ is deep,
 * so the device has no room to mark the change: poll, then try again; -ENOTSUP the device cannot
 * resize, or is a card that was opened without the option cq_resize ("mlx5_0,cq_resize"): resizing
 * is unproven on cards; -ENOMEM. On an error the CQ is unchanged.
 */
int bb_cq_resize(struct bb_cq *cq, uint32_t depth);

/**
 * Delays events until @p count completions exist or @p period_us microseconds have passed since the
 * first (man ibv_modify_cq). Polling is not delayed. With both 0, each completion raises its event
 * at once. Any thread.
 * @param count at most 65535; 0: no count.
 * @param period_us at most 4095; 0: no time limit.
 * @return 0; -EINVAL out of range; -ENOTSUP the device cannot moderate events.
 */
int bb_cq_moderate(struct bb_cq *cq, uint32_t count, uint32_t period_us);

/** Returns the capacity in CQEs, after rounding. */
uint32_t bb_cq_depth(const struct bb_cq *cq);

/** Statistics of a CQ, counted by software since its creation. */
struct bb_cq_stats {
	uint32_t size;   /**< bytes of the caller's struct; set by bb_cq_stats() */
	uint64_t cqes;   /**< CQEs consumed */
	uint64_t errors; /**< error CQEs among them */
	uint64_t purged; /**< CQEs dropped because their QP was reset or destroyed */
};

/** Use bb_cq_stats(). */
int bb_cq_stats_v(const struct bb_cq *cq, struct bb_cq_stats *stats);

/**
 * Reads the statistics. Any thread, also while the owner polls; the CQ must not be destroyed
 * meanwhile.
 */
static inline int
bb_cq_stats(const struct bb_cq *cq, struct bb_cq_stats *stats)
{
	if (stats != NULL)
		stats->size = sizeof(*stats);
	return bb_cq_stats_v(cq, stats);
}

#ifdef __cplusplus
}
#endif

#endif
