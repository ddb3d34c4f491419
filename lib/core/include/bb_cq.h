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
#define BB_LAYOUT_VERSION 14u

/** Value of the lcore attribute of a queue: the lcore of the calling thread owns the queue. */
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
	/**
	 * If true, the device writes a time stamp into each completion, which bb_cq_poll_ts()
	 * returns.
	 */
	bool timestamps;
	/**
	 * If true, the device may compress the completions of several similar receives into one
	 * CQE. Such a CQ accepts only receive queues of queue pairs: no send queues and no QPs with
	 * an SRQ.
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

/** Flags of a completion. A completion can have several, combined with OR. */
enum bb_wc_flags {
	BB_WC_WITH_IMM = 1 << 0,
	BB_WC_SOLICITED = 1 << 1,
	BB_WC_GRH = 1 << 2,      /**< valid only for UD receives: the first 40 bytes of the buffer
				  * hold a GRH. On RoCE v2 these bytes hold an IPv6 header, or 20
				  * unused bytes followed by an IPv4 header */
	BB_WC_WITH_INV = 1 << 3, /**< the peer's SEND invalidated the rkey in field imm */
};

/** A work completion (man ibv_poll_cq: struct ibv_wc). */
struct bb_wc {
	uint64_t wr_id;
	struct bb_qp *qp;
	/**
	 * message length in bytes; valid only for receives, READs and atomics. On UD the length
	 * includes the 40 bytes for a GRH at the start of the buffer, even if there is no GRH
	 */
	uint32_t byte_len;
	uint32_t imm;       /**< with flag BB_WC_WITH_IMM: immediate data in network byte order;
			     * with flag BB_WC_WITH_INV: the invalidated rkey in host byte order */
	uint8_t status;     /**< enum bb_wc_status. If it is an error, only status, wr_id, qp,
			     * syndrome and vendor_err are valid */
	uint8_t opcode;     /**< enum bb_wc_opcode */
	uint8_t flags;      /**< enum bb_wc_flags */
	uint8_t syndrome;   /**< syndrome of the CQE; valid only on errors */
	uint8_t vendor_err; /**< vendor syndrome; valid only on errors */
	uint8_t sl; /**< service level; valid only for UD receive completions on InfiniBand */
	uint8_t pad[2];
	uint32_t src_qp;     /**< QP number of the sender; valid only for UD receive completions */
	uint16_t pkey_index; /**< P_Key index of the datagram; valid only for UD receive
			      * completions on InfiniBand without immediate data */
	uint16_t slid;       /**< LID of the sender; valid only for UD receive completions on
			      * InfiniBand */
};

/** Returns the name of a status, for example "remote access error". */
const char *bb_wc_status_name(enum bb_wc_status status);

/** Returns one sentence with the most likely cause of an error status and what to check. */
const char *bb_wc_status_cause(enum bb_wc_status status, uint8_t vendor_err);

/** Control-path data of a CQ, opaque. */
struct bb_cq_ctrl;

/** A completion queue. Only the inline functions of Bluebell's headers access the fields. */
struct bb_cq {
	struct bb_cqring ring;
	void (*progress)(void *arg); /**< runs the software device, or copies completions of
				      * libibverbs' CQ into the ring; NULL on hardware */
	struct bb_qp **qps;          /**< table of QPs; index is the user index of a CQE */
	uint32_t qps_mask;
	uint32_t owner; /**< lcore id of the owner */
	void *progress_arg;
	/**
	 * Replaces bb_cq_poll() on devices of the verbs driver, whose CQs belong to libibverbs.
	 * NULL if all completions come through the ring, and always NULL if progress is NULL.
	 */
	unsigned int (*poll)(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
	/**
	 * Correction for statistics: ring.ci + more, modulo 2^64, is the number of CQEs consumed. A
	 * correction is needed because ring.ci does not count completions that a driver reports
	 * without a CQE, and because ring.ci counts purged CQEs and the CQEs that mark a resize.
	 */
	uint64_t more;
	/* The following fields are read once per event, not per poll. */
	uint64_t *arm_reg; /**< register that arms the CQ; NULL if bb_cq_arm_slow() arms it */
	uint32_t cqn;
	uint32_t arm_sn; /**< number of this CQ's events consumed from its channel; accessed with
			    __atomic */
	/* The data path does not access the following fields. */
	struct bb_cq_ctrl *ctrl;
};
BB_STATIC_ASSERT(offsetof(struct bb_cq, progress_arg) == BB_CACHE_LINE, "a poll reads one line");

/**
 * Implements bb_cq_create(), which passes the layout version of the headers. Call bb_cq_create()
 * instead.
 */
int bb_cq_create_v(struct bb_dev *dev, const struct bb_cq_attr *attr, uint32_t layout,
		   struct bb_cq **cq);

/**
 * Creates a CQ (man ibv_create_cq).
 * @return 0; -EINVAL if depth is 0 or over max_cqe, comp_vector is out of range, the lcore is
 * unknown, attr was not set up by bb_cq_attr_init(), the channel is of another device, or
 * timestamps and compress are both set; -ENOTSUP if timestamps is set and the device has no clock,
 * or compress is set and the device cannot compress; -ENOMEM; -EPROTO if the program was built with
 * headers of another BB_LAYOUT_VERSION: rebuild the program.
 */
static inline int
bb_cq_create(struct bb_dev *dev, const struct bb_cq_attr *attr, struct bb_cq **cq)
{
	return bb_cq_create_v(dev, attr, BB_LAYOUT_VERSION, cq);
}

/** Destroys the CQ. Returns 0, or -EBUSY while QPs complete into it. */
int bb_cq_destroy(struct bb_cq *cq);

/**
 * Arms a CQ that has no arm register (arm_reg NULL) by a call of the driver, or logs why the CQ
 * cannot be armed. Slow path of bb_cq_arm().
 */
int bb_cq_arm_slow(struct bb_cq *cq, bool solicited_only);

/**
 * Requests one event on the CQ's channel for its next completion (man ibv_req_notify_cq).
 * Completions that are not yet polled raise the event at once. So a thread that arms, then polls
 * until the CQ is empty, then waits, misses no completion. Arming again before the event changes
 * only @p solicited_only. Only the owner may call this function. The cost is one doorbell and no
 * system call.
 *
 * On a device of the verbs driver the call goes to libibverbs and may return its errno. On siw
 * every completion raises the event, because siw does not report which completions are solicited.
 * @param solicited_only raise the event only for a receive whose sender set BB_SEND_SOLICITED, or
 * for an error.
 * @return 0; -EINVAL if the CQ was created without a channel.
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
 * meanwhile. An armed CQ stays armed; the change raises no event. Only the owner may call this
 * function, because it replaces the ring.
 * @param depth CQEs that must fit; rounded up to a power of two.
 * @return 0, also if nothing changes; -EINVAL if depth is 0, over max_cqe, or less than the WQEs of
 * the queues that complete into the CQ; -EBUSY if the outstanding requests may fill the smaller of
 * the old and the new ring, because then the device has no free CQE to mark the change: poll, then
 * try again; -ENOTSUP if the device cannot resize, or is a card that was opened without the option
 * cq_resize ("mlx5_0,cq_resize"). Cards need this option because resizing is not proven on them;
 * -ENOMEM; -EIO if the device has switched to the new ring but does not mark the change in the old
 * one: destroy the CQ. On any other error the CQ is unchanged.
 */
int bb_cq_resize(struct bb_cq *cq, uint32_t depth);

/**
 * Delays events until @p count completions exist or @p period_us microseconds have passed since the
 * first of them (man ibv_modify_cq). Polling is not delayed. If both parameters are 0, each
 * completion raises its event at once. Any thread may call this function.
 * @param count completions, at most 65535; 0: events do not depend on the number of completions.
 * @param period_us microseconds, at most 4095; 0: no time limit.
 * @return 0; -EINVAL if a parameter is out of range; -ENOTSUP if the device cannot moderate events.
 */
int bb_cq_moderate(struct bb_cq *cq, uint32_t count, uint32_t period_us);

/** Returns the capacity in CQEs, after rounding. */
uint32_t bb_cq_depth(const struct bb_cq *cq);

/** Statistics of a CQ, counted by software since its creation. */
struct bb_cq_stats {
	uint32_t size;   /**< bytes of the caller's struct; set by bb_cq_stats() */
	uint64_t cqes;   /**< CQEs consumed */
	uint64_t errors; /**< error CQEs consumed; cqes includes them */
	uint64_t purged; /**< CQEs dropped because their QP was reset or destroyed */
};

/** Implements bb_cq_stats(), which sets the struct's size. Call bb_cq_stats() instead. */
int bb_cq_stats_v(const struct bb_cq *cq, struct bb_cq_stats *stats);

/**
 * Reads the statistics of a CQ. Any thread may call this function, also while the owner polls. The
 * CQ must not be destroyed before the call returns.
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
