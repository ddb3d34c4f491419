/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Completion queues and work completions.
 *
 * A CQ and the QPs that complete into it belong to one thread: an lcore, or a
 * thread registered with rte_thread_register(). Only the owner polls.
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
#define BB_LAYOUT_VERSION 1u

/** Owner of a queue: the calling thread's lcore id. */
#define BB_LCORE_SELF UINT32_MAX

/** What a CQ is to be like. */
struct bb_cq_attr {
	uint32_t size;  /**< sizeof(struct bb_cq_attr); set by bb_cq_attr_init() */
	uint32_t depth; /**< CQEs that must fit; rounded up to a power of two */
	uint32_t lcore; /**< owner, or BB_LCORE_SELF */
};

/** Defaults: 256 CQEs, owned by the calling thread. */
static inline void
bb_cq_attr_init(struct bb_cq_attr *attr)
{
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

/** What has completed. */
enum bb_wc_opcode {
	BB_WC_SEND,
	BB_WC_RDMA_WRITE,
	BB_WC_RDMA_READ,
	BB_WC_CMP_SWAP,
	BB_WC_FETCH_ADD,
	BB_WC_NOP,
	BB_WC_RECV,          /**< of the receiver */
	BB_WC_RECV_RDMA_IMM, /**< of the receiver of RDMA_WRITE_WITH_IMM */
};

/** Flags of a completion, or-ed. */
enum bb_wc_flags {
	BB_WC_WITH_IMM = 1 << 0,
	BB_WC_SOLICITED = 1 << 1,
};

/** A work completion (man ibv_poll_cq: struct ibv_wc). */
struct bb_wc {
	uint64_t wr_id;
	struct bb_qp *qp;
	uint32_t byte_len;  /**< of receives, READs and atomics */
	uint32_t imm;       /**< network order, with BB_WC_WITH_IMM */
	uint8_t status;     /**< enum bb_wc_status; opcode and below need SUCCESS,
			     *   except wr_id, qp and the syndromes */
	uint8_t opcode;     /**< enum bb_wc_opcode */
	uint8_t flags;      /**< enum bb_wc_flags */
	uint8_t syndrome;   /**< of the CQE, errors only */
	uint8_t vendor_err; /**< vendor syndrome, errors only */
	uint8_t pad[3];
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
	void (*progress)(void *arg); /**< runs the software device; NULL on hardware */
	void *progress_arg;
	struct bb_qp **qps; /**< by user index */
	uint32_t qps_mask;
	uint32_t owner; /**< lcore id */
	uint64_t cqes;  /**< statistics: CQEs consumed */
	/* Not touched on the data path. */
	struct bb_cq_ctrl *ctrl;
};
BB_STATIC_ASSERT(offsetof(struct bb_cq, cqes) == BB_CACHE_LINE, "a poll reads one line");

/** Use bb_cq_create(). */
int bb_cq_create_v(struct bb_dev *dev, const struct bb_cq_attr *attr, uint32_t layout,
		   struct bb_cq **cq);

/**
 * Create a CQ (man ibv_create_cq).
 * @return 0; -EINVAL depth 0 or over max_cqe, lcore not known, attr not set up by
 *   bb_cq_attr_init(); -ENOMEM;
 *   -EPROTO the program was built against another layout: rebuild it.
 */
static inline int
bb_cq_create(struct bb_dev *dev, const struct bb_cq_attr *attr, struct bb_cq **cq)
{
	return bb_cq_create_v(dev, attr, BB_LAYOUT_VERSION, cq);
}

/** Destroy it. -EBUSY while QPs complete into it. */
int bb_cq_destroy(struct bb_cq *cq);

/** CQEs it was made for, after rounding. */
uint32_t bb_cq_depth(const struct bb_cq *cq);

/** Per-CQ numbers, kept by software since the CQ was created. */
struct bb_cq_stats {
	uint64_t cqes;   /**< CQEs consumed */
	uint64_t errors; /**< of them error CQEs */
	uint64_t purged; /**< dropped as their QP was reset or destroyed */
};

/** Read them: owner only, or while the owner does not poll. */
int bb_cq_stats(const struct bb_cq *cq, struct bb_cq_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
