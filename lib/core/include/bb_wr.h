/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Work requests as structs, and lists of them, as man ibv_post_send and ibv_post_recv have them.
 * These functions are for programs that queue or generate requests; the functions of bb_post.h are
 * shorter and faster. Only the owner of a queue may call them.
 */
#ifndef BB_WR_H
#define BB_WR_H

#include "bb_post.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bb_mw;

/** A send request (man ibv_post_send: struct ibv_send_wr). */
struct bb_send_wr {
	uint64_t wr_id;
	enum bb_wr_opcode opcode;
	uint32_t flags;           /**< enum bb_send_flags */
	const struct bb_sge *sge; /**< list of SGEs. With BB_SEND_INLINE the keys are ignored, and
				   * the caller may reuse the memory when the call returns */
	uint32_t nsge;
	uint32_t imm_or_inv; /**< immediate data in network byte order (operations *_WITH_IMM), or
			      * the key to invalidate (SEND_WITH_INV, LOCAL_INV) */
	union {
		/** Fields of RDMA_WRITE, RDMA_WRITE_WITH_IMM and RDMA_READ. */
		struct {
			uint64_t raddr;
			uint32_t rkey;
		} rdma;
		/**
		 * Fields of atomics, which have one SGE of 8 bytes, and of masked atomics, which
		 * have one SGE of 4 or 8 bytes.
		 */
		struct {
			uint64_t raddr;
			uint64_t compare_add;  /**< value to compare with, or to add */
			uint64_t swap;         /**< new value of CMP_AND_SWP */
			uint64_t compare_mask; /**< bits that masked CMP_AND_SWP compares; for
						* masked FETCH_AND_ADD the field boundaries */
			uint64_t swap_mask;    /**< bits that masked CMP_AND_SWP replaces */
			uint32_t rkey;
		} atomic;
		/** Fields of SEND and SEND_WITH_IMM on a UD queue pair. */
		struct {
			const struct bb_ah *ah;
			uint32_t qpn;
			uint32_t qkey; /**< Q_Key of the receiver; if the top bit is set, the QP's
					* own Q_Key is sent instead */
		} ud;
		/** Fields of BIND_MW for a window of type 2. */
		struct {
			struct bb_mw *mw;
			struct bb_mr *mr;
			uint64_t addr, len;
			uint32_t rkey; /**< the window's new rkey */
			uint32_t access;
		} bind_mw;
	};
};

/** A receive request (man ibv_post_recv: struct ibv_recv_wr). */
struct bb_recv_wr {
	uint64_t wr_id;
	const struct bb_sge *sge;
	uint32_t nsge;
};

/**
 * Posts @p n requests in order, up to the first that cannot be posted. No part of the failed
 * request is in the queue. The requests before the failed one are in the queue, and bb_qp_ring()
 * passes them to the device. Every request is checked against the tables of bb_op.h.
 * @param err 0 if all were posted or the queue is full; otherwise why the request at the returned
 * index can never be posted. -EINVAL: the QP's type does not support the operation or flag, or
 * there are too many SGEs or inline bytes. -EINVAL is also the error if an SGE is invalid, or the
 * address handle is missing or belongs to another PD. -ENOTSUP: the device does not support the
 * operation (see bb_dev_query()), for example atomics, windows, immediate data on iWARP, or a READ
 * of more than max_read_sge non-empty SGEs. -ENOTCONN: the state of the QP does not allow posts.
 * The reason is logged, once per queue and reason.
 * @return the number of requests posted, which is also the index of the first request that was not
 * posted.
 */
uint32_t bb_qp_post_list(struct bb_qp *qp, const struct bb_send_wr *wr, uint32_t n, int *err);

/**
 * Posts @p n receives as bb_qp_post_list() posts sends; bb_qp_ring_recv() passes them to the
 * device.
 */
uint32_t bb_qp_post_recv_list(struct bb_qp *qp, const struct bb_recv_wr *wr, uint32_t n, int *err);

#ifdef __cplusplus
}
#endif

#endif
