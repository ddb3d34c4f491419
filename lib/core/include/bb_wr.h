/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Work requests as data, and lists of them: what man ibv_post_send and ibv_post_recv
 * have. For programs that queue or generate requests; the functions of bb_post.h are
 * shorter and faster. Called by the owner only.
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
	const struct bb_sge *sge; /**< with INLINE the keys are not looked at, and the memory
				   *   may be reused on return */
	uint32_t nsge;
	uint32_t imm_or_inv; /**< _WITH_IMM: in network order; SEND_WITH_INV, LOCAL_INV: the key */
	union {
		/** RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ */
		struct {
			uint64_t raddr;
			uint32_t rkey;
		} rdma;
		/** Atomics; one piece of 8 bytes, of masked ones 4 or 8 */
		struct {
			uint64_t raddr;
			uint64_t compare_add;  /**< to compare with, or to add */
			uint64_t swap;         /**< CMP_AND_SWP */
			uint64_t compare_mask; /**< masked; FETCH_AND_ADD: field boundaries */
			uint64_t swap_mask;    /**< masked CMP_AND_SWP */
			uint32_t rkey;
		} atomic;
		/** SEND and SEND_WITH_IMM of a UD queue pair */
		struct {
			const struct bb_ah *ah;
			uint32_t qpn;
			uint32_t qkey; /**< top bit set: the QP's own */
		} ud;
		/** BIND_MW of a window of type 2 */
		struct {
			struct bb_mw *mw;
			struct bb_mr *mr;
			uint64_t addr, len;
			uint32_t rkey; /**< the window's new one */
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
 * Post @p n requests in order, up to the first that cannot be posted. Of that one
 * nothing is in the queue; those before it are, and bb_qp_ring() hands them over.
 * Every request is held against the tables of bb_op.h.
 * @param err 0 when all were posted or the queue is full; else why the request at the
 *   index returned can never be posted: -EINVAL an operation or flag that the type of
 *   QP does not take, too many pieces, too much inline data, a bad piece, no address
 *   handle or one of another PD; -ENOTSUP the device does not do it, as bb_dev_query() tells:
 *   atomics, windows, on iWARP immediate data, a READ of more than max_read_sge pieces that are
 *   not empty; -ENOTCONN the state. The log says why, once per queue and reason.
 * @return how many were posted: the index of the first that was not.
 */
uint32_t bb_qp_post_list(struct bb_qp *qp, const struct bb_send_wr *wr, uint32_t n, int *err);

/** The same for receives; bb_qp_ring_recv() hands them over. */
uint32_t bb_qp_post_recv_list(struct bb_qp *qp, const struct bb_recv_wr *wr, uint32_t n, int *err);

#ifdef __cplusplus
}
#endif

#endif
