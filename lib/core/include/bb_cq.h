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
 * Layout of the structs that inline functions read. A program built against
 * other headers than the library is refused when it creates a queue.
 */
#define BB_LAYOUT_VERSION 11u

/** Owner of a queue: the calling thread's lcore id. */
#define BB_LCORE_SELF UINT32_MAX

/** What a CQ is to be like. */
struct bb_cq_attr {
	uint32_t size;  /**< sizeof(struct bb_cq_attr); set by bb_cq_attr_init() */
	uint32_t depth; /**< CQEs that must fit; rounded up to a power of two */
	uint32_t lcore; /**< owner, or BB_LCORE_SELF */
	/** Where its events go, so that it can be armed; NULL: it is only polled. */
	struct bb_channel *channel;
	/**
	 * Completion vector whose interrupt raises the CQ's events, 0 to
	 * @ref bb_dev_attr.comp_vectors - 1 (man ibv_create_cq).
	 */
	uint32_t comp_vector;
	/** Completions carry the device's time, for bb_cq_poll_ts(). */
	bool timestamps;
	/**
	 * The device may write completions of like receives in a shorter form, several to
	 * a CQE. The CQ then takes queue pairs' own receive queues only: neither send queues nor
	 * QPs with an SRQ.
	 */
	bool compress;
};

/** Defaults: 256 CQEs, owned by the calling thread, no events, completion vector 0. */
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
	BB_WC_GRH = 1 << 2,      /**< of UD: the first 40 bytes of the buffer hold a GRH, or on
				  *   RoCE v2 an IPv6 header, or 20 bytes behind an IPv4 header */
	BB_WC_WITH_INV = 1 << 3, /**< the peer invalidated the rkey in imm */
};

/** A work completion (man ibv_poll_cq: struct ibv_wc). */
struct bb_wc {
	uint64_t wr_id;
	struct bb_qp *qp;
	uint32_t byte_len;  /**< of receives, READs and atomics; UD: 40 more than the data, as the
			     *   data starts 40 bytes into the buffer with a GRH or without */
	uint32_t imm;       /**< network order, with BB_WC_WITH_IMM; with BB_WC_WITH_INV an
			     *   rkey, in host order */
	uint8_t status;     /**< enum bb_wc_status; opcode and below need SUCCESS,
			     *   except wr_id, qp and the syndromes */
	uint8_t opcode;     /**< enum bb_wc_opcode */
	uint8_t flags;      /**< enum bb_wc_flags */
	uint8_t syndrome;   /**< of the CQE, errors only */
	uint8_t vendor_err; /**< vendor syndrome, errors only */
	uint8_t sl;         /**< of UD receives on InfiniBand: service level */
	uint8_t pad[2];
	uint32_t src_qp;     /**< of UD receives: the sender's QP number */
	uint16_t pkey_index; /**< of UD receives without immediate: on InfiniBand */
	uint16_t slid;       /**< of UD receives on InfiniBand: the sender's LID */
};

/** Name of a status: "remote access error". */
const char *bb_wc_status_name(enum bb_wc_status status);

/** What most likely went wrong and what to look at; one sentence. */
const char *bb_wc_status_cause(enum bb_wc_status status, uint8_t vendor_err);

/** Control-path half of a CQ, opaque. */
struct bb_cq_ctrl;

/** A completion queue. Only the inline functions here touch its fields. */
struct bb_cq {
	struct bb_cqring ring;
	void (*progress)(void *arg); /**< runs the software device, or fills the ring from a
				      *   library's CQ; NULL on hardware */
	struct bb_qp **qps;          /**< by user index */
	uint32_t qps_mask;
	uint32_t owner; /**< lcore id */
	void *progress_arg;
	/** bb_cq_poll() of a library's CQ; NULL: there is the ring only, as where progress is NULL
	 */
	unsigned int (*poll)(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
	/**
	 * Statistics: ring.ci and this, added with wrap, are the CQEs consumed. ring.ci lacks
	 * completions that a driver reports without a CQE, and counts CQEs that were purged and the
	 * marks of a resize.
	 */
	uint64_t more;
	/* Once per event. */
	uint64_t *arm_reg; /**< the register that arms it; NULL: see bb_cq_arm_slow() */
	uint32_t cqn;
	uint32_t arm_sn; /**< events taken of its channel; __atomic */
	/* Not touched on the data path. */
	struct bb_cq_ctrl *ctrl;
};
BB_STATIC_ASSERT(offsetof(struct bb_cq, progress_arg) == BB_CACHE_LINE, "a poll reads one line");

/** Use bb_cq_create(). */
int bb_cq_create_v(struct bb_dev *dev, const struct bb_cq_attr *attr, uint32_t layout,
		   struct bb_cq **cq);

/**
 * Create a CQ (man ibv_create_cq).
 * @return 0; -EINVAL depth 0 or over max_cqe, comp_vector out of range, lcore not known, attr not
 * set up by bb_cq_attr_init(), channel of another device, timestamps together with compress;
 *   -ENOTSUP the device has no clock, or no compressed CQEs; -ENOMEM;
 *   -EPROTO the program was built against another layout: rebuild it.
 */
static inline int
bb_cq_create(struct bb_dev *dev, const struct bb_cq_attr *attr, struct bb_cq **cq)
{
	return bb_cq_create_v(dev, attr, BB_LAYOUT_VERSION, cq);
}

/** Destroy it. -EBUSY while QPs complete into it. */
int bb_cq_destroy(struct bb_cq *cq);

/** Arm a CQ that has no register, by its driver, or say why it cannot be. Off the fast path. */
int bb_cq_arm_slow(struct bb_cq *cq, bool solicited_only);

/**
 * Ask for one event on the CQ's channel at its next completion (man ibv_req_notify_cq).
 * Completions that are there and not yet polled count: they raise the event at once, so
 * that arming, then polling until nothing is left, then waiting loses none. Arming again
 * before the event came changes nothing but @p solicited_only. Owner only; costs a
 * doorbell, no system call.
 * @param solicited_only only for a receive whose sender set BB_SEND_SOLICITED, or an
 *   error.
 * On a device of the verbs driver the call is one of libibverbs, and an errno of it may come; on
 * siw each completion raises the event, as siw tells nobody of a solicited one.
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
 * Change the depth (man ibv_resize_cq). Completions that wait stay and keep their order;
 * QPs go on meanwhile. A CQ that is armed stays armed, and the change raises no event. Owner only:
 * the ring is another one afterwards.
 * @param depth CQEs that must fit; rounded up to a power of two.
 * @return 0, also when nothing is to change; -EINVAL depth 0, over max_cqe, or less than
 *   the WQEs of the queues that complete into it; -EBUSY as many requests are
 *   outstanding as the CQ is deep, so that the device has no room to mark the change:
 *   poll, then try again; -ENOTSUP the device cannot, or is a card that was opened
 *   without the option cq_resize ("mlx5_0,cq_resize"): resizing is unproven on cards;
 *   -ENOMEM. On an error the CQ is as it was.
 */
int bb_cq_resize(struct bb_cq *cq, uint32_t depth);

/**
 * Hold events back until there are @p count completions, or @p period_us microseconds
 * have passed since the first (man ibv_modify_cq). Polling sees each completion at once
 * in any case. Both 0: an event as soon as there is something. Any thread.
 * @param count at most 65535; 0: no count is waited for.
 * @param period_us at most 4095; 0: no time is waited for, only @p count.
 * @return 0; -EINVAL out of range; -ENOTSUP the device cannot.
 */
int bb_cq_moderate(struct bb_cq *cq, uint32_t count, uint32_t period_us);

/** CQEs it was made for, after rounding. */
uint32_t bb_cq_depth(const struct bb_cq *cq);

/** Per-CQ numbers, kept by software since the CQ was created. */
struct bb_cq_stats {
	uint32_t size;   /**< bytes of the caller's struct; set by bb_cq_stats() */
	uint64_t cqes;   /**< CQEs consumed */
	uint64_t errors; /**< of them error CQEs */
	uint64_t purged; /**< dropped as their QP was reset or destroyed */
};

/** Use bb_cq_stats(). */
int bb_cq_stats_v(const struct bb_cq *cq, struct bb_cq_stats *stats);

/** Read them: any thread, also while the owner polls; the CQ must not be destroyed meanwhile. */
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
