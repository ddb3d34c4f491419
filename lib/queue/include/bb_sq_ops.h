/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Send queue: functions that a post calls instead of its inline path, when a limit in
 * struct bb_sq requires it. Included by bb_sq.h.
 *
 * A post to a ring calls them if the ring is full, if the queue refuses posts, or if the next WQE
 * needs a fence. So they add no cost to the fast path of a ring. A driver that posts with calls of
 * its own, as drivers/verbs does, sets all limits to 0. Each post then calls these functions with
 * the caller's arguments and builds no WQE.
 *
 * The caller has checked the arguments: number and lengths of SGEs, inline length, size and
 * alignment of atomics, owner. Results are those of posts (bb_sq.h).
 */
#ifndef BB_SQ_OPS_H
#define BB_SQ_OPS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bb_bind;
struct bb_sge;
struct bb_sq;
struct bb_wqe_av;
struct bb_wqe_piece;
struct ibv_qp_ex; /* struct of libibverbs; this file does not access its fields */

/**
 * Builds the argument @p what of the functions in struct bb_sq_ops. It combines enum bb_wqe_opcode,
 * BB_SQ_RADDR, BB_SQ_INLINE and enum bb_send_flags.
 */
#define BB_SQ_WHAT(opcode_, flags_) ((uint32_t)(opcode_) | (uint32_t)(flags_) << 16)
#define BB_SQ_RADDR                 (1u << 8) /**< the request has a remote address */
#define BB_SQ_INLINE                (1u << 9) /**< the SGEs are inline data to copy */

/**
 * Functions of a send queue. All queues that post in the same way share one constant table. The
 * queue's owner calls all functions but @ref request.
 */
struct bb_sq_ops {
	/**
	 * Starts a signalled RDMA_WRITE of one SGE. Cannot fail; call it only while fewer than
	 * bb_sq.write_limit requests are outstanding. The caller then passes the SGE to
	 * bb_sq.piece. The SGE is the argument of a second call, so that this function need not
	 * save it. @p ex is bb_sq.driver. @p where is the result of bb_sq_where().
	 */
	void (*write)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t wr_id,
		      uint64_t where, struct bb_sq *sq);
	/**
	 * Posts a WRITE, READ or SEND of one SGE that is not empty, or of inline data.
	 * @p what is a value of BB_SQ_WHAT(). @p keys is rkey | immediate << 32, where the
	 * immediate has the byte order of a WQE.
	 */
	int (*post)(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
		    uint64_t raddr, uint64_t keys);
	/** Does the same as @ref post for any number of SGEs, some of which may be empty. */
	int (*list)(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *sge,
		    uint32_t nsge, uint64_t raddr, uint64_t keys);
	/** Posts an 8-byte atomic. @p what is a value of BB_SQ_WHAT(). */
	int (*atomic)(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *sge,
		      uint64_t raddr, uint32_t rkey, uint64_t swap_add, uint64_t compare);
	/** Posts a datagram. @p what is a value of BB_SQ_WHAT(). */
	int (*datagram)(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_wqe_av *av,
			uint32_t dest_qpn, uint32_t qkey, const struct bb_sge *sge, uint32_t nsge,
			uint32_t imm);
	/** Posts a NOP. */
	int (*nop)(struct bb_sq *sq, uint64_t wr_id, uint32_t flags);
	/*
	 * The next three functions are NULL in the table of a queue with a ring, because such a
	 * queue builds WQEs for binds and invalidations.
	 */
	/** Binds a memory window. Arguments are those of bb_sq_post_bind(). */
	int (*bind)(struct bb_sq *sq, uint64_t wr_id, bool type2, uint32_t new_rkey,
		    const struct bb_bind *bind, uint32_t flags);
	/** Invalidates a key. Arguments are those of bb_sq_post_local_inv(). */
	int (*local_inv)(struct bb_sq *sq, uint64_t wr_id, uint32_t rkey, uint32_t flags);
	/** Posts a request that the driver does not support, so that it completes in error. */
	int (*lacked)(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, uint32_t flags);
	/**
	 * Writes the SGEs of the request in slot @p idx to @p pieces, at most @p max, as
	 * bb_wqe_pieces() does. Returns the number of SGEs written. The function pointer is NULL if
	 * the queue does not keep SGEs.
	 */
	uint32_t (*request)(const struct bb_sq *sq, uint16_t idx, struct bb_wqe_piece *pieces,
			    uint32_t max);
};

/** Functions of send queues that build WQEs in a ring. */
extern const struct bb_sq_ops bb_sq_ring_ops;

#ifdef __cplusplus
}
#endif

#endif
