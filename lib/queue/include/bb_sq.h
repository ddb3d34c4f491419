/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Send queue: builds mlx5 WQEs in the ring and publishes them with one doorbell.
 *
 * A send queue is a ring of 64-byte blocks owned by one thread. Each bb_sq_*() builder reserves
 * blocks, fills the WQE and records what its completion needs. The device sees nothing before
 * bb_sq_ring().
 *
 * Applications call these functions through bb_post.h. This layer uses only rings and bytes, no
 * objects, so that it can be tested against memory.
 *
 * Builders return 0 if the WQE is in the ring, and -EAGAIN if the queue is full: ring the doorbell,
 * poll the CQ and try again. They return another negative errno if the request can never be posted.
 * On an error the ring is unchanged.
 *
 * A full queue holds a WQE that requests a CQE, and that CQE frees room: see bb_sq_make_room().
 */
#ifndef BB_SQ_H
#define BB_SQ_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bb_barrier.h"
#include "bb_count.h"
#include "bb_op.h"
#include "bb_segs.h"
#include "bb_sq_conf.h"
#include "bb_sq_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Cache line size in bytes: the unit of sharing between cores. */
#define BB_CACHE_LINE 64

/** Data for the completion of a WQE, at the index of the WQE's first block. */
struct bb_sq_wqe {
	uint64_t wr_id;
	uint32_t seq;      /**< value of bb_sq.seq after this WQE was counted with all its slots */
	uint8_t flags;     /**< enum bb_send_flags from the caller */
	uint8_t wc_opcode; /**< bb_wc_opcode_of(opcode), computed at compile time by the builder; or
			      BB_SQ_OWN */
	uint8_t opcode;    /**< enum bb_wqe_opcode, or enum bb_sq_umr_kind */
	uint8_t mark;      /**< free for a driver's functions in bb_sq.ops; 0 if posts build WQEs */
};
BB_STATIC_ASSERT(sizeof(struct bb_sq_wqe) == 16, "a power of two");

/**
 * Value of bb_sq_wqe.wc_opcode for a NOP that the library posted; its completion is never
 * reported.
 */
#define BB_SQ_OWN 0xff

/** A send queue. Only the inline functions of this file may access its fields. */
struct bb_sq {
	/* Cache line 0: read or written by every post and completion. */
	uint8_t *buf; /**< ring: (mask + 1) blocks; NULL if posts build no WQEs, see ops */
	struct bb_sq_wqe *wqes; /**< one entry per block */
	uint8_t *last;          /**< address of the control segment of the last WQE built */
	union {
		/**
		 * first two dwords of a control segment in which only the QP number is set: it is
		 * in the second dword, the upper half, in big endian
		 */
		uint64_t qpn_be;
		/**
		 * Number of outstanding requests below which ops->write may be called; 0 if it may
		 * never be called. Shares its memory with the lower half of qpn_be, which is 0 in
		 * queues whose posts build WQEs.
		 */
		uint32_t write_limit;
	};
	/*
	 * seq, carry and pi form one 64-bit number, so that a post updates all three with one
	 * addition.
	 */
	uint32_t seq; /**< WQEs built since reset; a WQE larger than usual counts once per slot, see
			 bb_sq_slots() */
	uint16_t carry;     /**< absorbs the carry of the addition when seq wraps, so that pi stays
			       correct; a doorbell clears it */
	uint16_t pi;        /**< index of the next free block */
	uint32_t sig_seq;   /**< seq of the last WQE that requests a CQE */
	uint32_t mask;      /**< blocks - 1 */
	uint32_t done;      /**< seq of the last WQE known to be complete */
	uint32_t limit;     /**< WQEs of class BB_SQ_MSG that may be outstanding now, see enum
			       bb_sq_class. 0 forces the slow path, which decides whether posts are
			       allowed */
	uint16_t sig_every; /**< largest number of WQEs from one CQE request to the next, at least 1
			     */
	uint16_t max_sge;
	uint16_t max_inline; /**< largest inline data of a WQE, in bytes */
	uint16_t rd_limit; /**< limit of outstanding WQEs for class BB_SQ_RD; see the field limit */
	/* Cache line 1: read or written once per doorbell. */
	uint32_t *dbrec; /**< send doorbell record; NULL if the driver's ring function replaces the
			    doorbell */
	uint8_t *reg;    /**< doorbell register in the UAR of the queue's owner */
	uint16_t *bf_offset; /**< half of the register to use next: 0 or bf_size */
	uint64_t rung_seq; /**< value of seq at the last doorbell; the upper 32 bits count how often
			      seq wrapped */
	uint16_t bf_size;  /**< bytes of one register half; 0 if the UAR has no BlueFlame */
	uint16_t own_offset; /**< storage for bf_offset if no other queue uses the register */
	uint8_t sig_flags;   /**< BB_SEND_SIGNALED if every request is reported, else 0 */
	uint16_t ud_limit; /**< limit of outstanding WQEs for class BB_SQ_UD; see the field limit */
	uint64_t doorbells; /**< statistics: doorbells rung */
	uint64_t cqes;      /**< statistics: CQEs received for sends */
	/**
	 * Called by bb_sq_ring() if this queue or another queue copies WQEs to the register, if the
	 * queue has no dbrec, or if it has a list of rung QPs (rung). NULL if an 8-byte doorbell is
	 * enough.
	 */
	void (*ring)(struct bb_sq *sq);
	/* Not accessed on the data path. */
	/**
	 * WQEs that may be outstanding. While posts are enabled, this is the limit of every
	 * operation class that the queue's type supports
	 */
	uint32_t depth;
	uint32_t owner;   /**< lcore id of the owner; debug builds reject other callers */
	uint16_t refused; /**< 1 << enum bb_refusal for each reason already logged */
	uint8_t type;     /**< enum bb_qp_type */
	uint8_t enabled;  /**< 1 if posts are enabled */
	uint8_t fence; /**< 1 if the next WQE must get a small fence. The limits of all classes are
			  0 until that WQE is posted */
	uint8_t slot_blocks; /**< blocks reserved per slot; the ring has at least depth slots */
	uint8_t error; /**< 1 if the device moved the QP to ERR; the next post then enables the
			  queue. Accessed with __atomic */
	uint8_t umr_no_atomic; /**< 1 if UMRs must leave the atomic access right unchanged */
	uint64_t extra; /**< statistics: number of slots counted in seq that are not requests: NOPs
			   of the library, and the slots of a WQE after its first */
	uint64_t full;  /**< statistics: posts refused because the queue was full */
	/**
	 * Functions that a post calls if the limit of its class is reached: those of rings, or
	 * those of a driver whose posts build no WQEs. Such a driver has limits of 0.
	 */
	const struct bb_sq_ops *ops;
	void *driver;         /**< first argument of ops->write and of @ref piece */
	struct bb_rung *rung; /**< list to which ring() adds the QP; NULL on a card */
	union {
		/**
		 * Doorbell function that ring() calls after it has added the QP to the list rung.
		 * Valid only with such a list. NULL if an 8-byte doorbell is enough.
		 */
		void (*listed_ring)(struct bb_sq *sq);
		/**
		 * Adds the SGE to the request that ops->write started. This is a function of the
		 * libibverbs provider. Valid only if posts build no WQEs.
		 */
		void (*piece)(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t len);
	};
};
BB_STATIC_ASSERT(offsetof(struct bb_sq, carry) == offsetof(struct bb_sq, seq) + 4 &&
			 offsetof(struct bb_sq, pi) == offsetof(struct bb_sq, seq) + 6 &&
			 offsetof(struct bb_sq, seq) % 8 == 0,
		 "one number");
BB_STATIC_ASSERT(offsetof(struct bb_sq, dbrec) == BB_CACHE_LINE, "a post touches one line");
BB_STATIC_ASSERT(offsetof(struct bb_sq, depth) == 2 * BB_CACHE_LINE, "a doorbell touches two");
BB_STATIC_ASSERT(sizeof(struct bb_sq) == 3 * BB_CACHE_LINE, "the next struct has lines of its own");

/**
 * Classes of operations. Each class has a limit, which is 0 if the queue's type does not support
 * the class. So one comparison with the limit checks both the room and the type.
 */
enum bb_sq_class {
	BB_SQ_MSG, /**< SENDs, RDMA_WRITEs and UMRs; allowed on RC and UC */
	BB_SQ_RD,  /**< READs and atomics; allowed on RC */
	BB_SQ_UD,  /**< datagrams; allowed on UD */
	BB_SQ_NOP, /**< NOPs; allowed on every type */
};

/** Restores the state after bb_sq_init() and sets the doorbell record to 0. */
void bb_sq_reset(struct bb_sq *sq);

/**
 * Enables or disables posts. Enable them in RTS and ERR: the queue then accepts the operations
 * that its type supports. While disabled, every post returns -ENOTCONN.
 */
void bb_sq_enable(struct bb_sq *sq, bool on);

/**
 * Records that the QP has gone to ERR. If posts are disabled, the owner's next post then enables
 * them: the send queue accepts the request, and the device flushes it. May be called from any
 * thread.
 */
static inline void
bb_sq_error(struct bb_sq *sq)
{
	__atomic_store_n(&sq->error, 1, __ATOMIC_RELAXED);
}

/**
 * Refuses a request that would fail even with more room. Returns the errno of @p why. Logs each
 * reason once per queue.
 */
__attribute__((cold)) int bb_sq_refuse_arg(struct bb_sq *sq, enum bb_refusal why);

/**
 * Checks whether @p slots slots are free for a WQE of class @p c. After a UMR WQE the limits are 0
 * although there is room: the function then adds the required fence to @p flags. Not on the fast
 * path.
 * @return 0: the caller must post with the returned flags. -EAGAIN: the queue is full. Otherwise
 * an errno as from bb_sq_refuse_arg().
 */
int bb_sq_room(struct bb_sq *sq, enum bb_sq_class c, uint32_t slots, uint32_t *flags);

/**
 * Ensures that a CQE arrives that frees room, after a WQE of @p slots slots did not fit.
 * WQEs of one slot need no help. If such a WQE does not fit, depth WQEs are outstanding, and one in
 * sig_every of these requests a CQE. A WQE of several slots may not fit although no outstanding WQE
 * requests a CQE. This function then posts a NOP that requests one. It rings the doorbell if all
 * earlier WQEs were rung. Otherwise the caller's next doorbell also covers the NOP. Not on the fast
 * path.
 */
void bb_sq_make_room(struct bb_sq *sq, uint32_t slots);

/**
 * Posts a NOP (BB_SQ_OWN) that requests a CQE. Its completion is never reported, even if it is
 * flushed. Does not ring the doorbell. Not on the fast path.
 * @return as bb_sq_post_nop().
 */
int bb_sq_post_own_nop(struct bb_sq *sq);

/**
 * Makes the next WQE request a CQE. The queue must have room, and the caller must build that WQE
 * at once.
 */
static inline void
bb_sq_ask_cqe(struct bb_sq *sq)
{
	sq->sig_seq = sq->seq + 1 - sq->sig_every;
}

/** Makes the next WQE get a small fence, which bb_sq_room() adds. */
void bb_sq_fence_next(struct bb_sq *sq);

/** Returns true if the calling thread runs on lcore @p owner, or if @p owner is LCORE_ID_ANY. */
bool bb_queue_is_owner(uint32_t owner);

/** Checks in debug builds (BB_DEBUG) that the calling thread owns the queue. */
static inline bool
bb_queue_check_owner(uint32_t owner)
{
#ifdef BB_DEBUG
	return bb_queue_is_owner(owner);
#else
	(void)owner;
	return true;
#endif
}

/** Returns the number of slots whose WQEs were built and are not known to be complete. */
static inline uint32_t
bb_sq_outstanding(const struct bb_sq *sq)
{
	return sq->seq - sq->done;
}

/** Returns seq, carry and pi as one number, read with a single load. */
static inline uint64_t
bb_sq_where(const struct bb_sq *sq)
{
	uint64_t where;

	memcpy(&where, &sq->seq, sizeof(where));
	return where;
}

/**
 * Counts one WQE of @p blocks blocks. @p where is the result of bb_sq_where(). Uses a single
 * addition to keep the path from one post to the next short, because each post depends on the
 * result of the previous one.
 */
static inline void
bb_sq_advance(struct bb_sq *sq, uint64_t where, uint32_t blocks)
{
	bb_count_store_pair(&sq->seq, where + ((uint64_t)blocks << 48 | 1));
}

/** Returns true if another WQE of one slot may be posted under @p limit, the limit of its class. */
static inline bool
bb_sq_has_room_in(const struct bb_sq *sq, uint32_t limit)
{
	return (uint32_t)bb_sq_where(sq) - sq->done < limit && bb_queue_check_owner(sq->owner);
}

/** Returns true if one more SEND or RDMA_WRITE fits and the queue accepts posts. */
static inline bool
bb_sq_has_room(const struct bb_sq *sq)
{
	return bb_sq_has_room_in(sq, sq->limit);
}

/** Returns the class of an operation with a gather or scatter list. */
static inline enum bb_sq_class
bb_sq_class_of(uint8_t opcode)
{
	return opcode == BB_WQE_RDMA_READ ? BB_SQ_RD : BB_SQ_MSG;
}

/** Returns true if one more request of @p opcode fits and the queue accepts it. */
static inline bool
bb_sq_has_room_for(const struct bb_sq *sq, uint8_t opcode)
{
	return bb_sq_has_room_in(sq, bb_sq_class_of(opcode) == BB_SQ_RD ? sq->rd_limit : sq->limit);
}

/** Returns the segment after @p seg; wraps at the end of the ring. */
static inline void *
bb_sq_next_seg(const struct bb_sq *sq, void *seg)
{
	uint8_t *next = (uint8_t *)seg + BB_WQE_SEG;

	return next == sq->buf + ((size_t)sq->mask + 1) * BB_WQE_BB ? sq->buf : next;
}

/**
 * Reserves the blocks of a WQE of @p ds segments and writes its control segment and its completion
 * data. The queue must have room. The device reads nothing before bb_sq_ring(). Call this function
 * before filling the other segments, and read the queue's fields before filling them, because the
 * compiler must assume that a store to the ring changes these fields.
 * @return the control segment. The first block of a WQE never wraps.
 */
static inline __attribute__((always_inline)) struct bb_wqe_ctrl *
bb_sq_commit(struct bb_sq *sq, uint8_t opcode, uint32_t ds, uint64_t wr_id, uint32_t flags,
	     uint32_t imm)
{
	const uint64_t where = bb_sq_where(sq);
	const uint32_t pi = (uint32_t)(where >> 48), seq = (uint32_t)where + 1;
	/*
	 * Offset of the entry in wqes. A block is four times as large as an entry, so the offset of
	 * the block is four times this offset.
	 */
	const size_t at = (size_t)(pi & sq->mask) * sizeof(struct bb_sq_wqe);
	uint8_t *ctrl = sq->buf + at * (BB_WQE_BB / sizeof(struct bb_sq_wqe));
	uint8_t *w = (uint8_t *)sq->wqes + at;
	uint32_t fm_ce_se = flags & (BB_SEND_SIGNALED | BB_SEND_SOLICITED | BB_SEND_FENCE |
				     BB_SEND_SMALL_FENCE);
	uint64_t head, tail;
	uint32_t info;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stores of several fields at once are written for little-endian hosts"
#endif
	head = bb_be64((uint64_t)pi << 40) | sq->qpn_be |
	       ((uint64_t)ds << 56 | (uint64_t)opcode << 24);
	info = (uint8_t)flags | (uint32_t)bb_wc_opcode_of(opcode) << 8 | (uint32_t)opcode << 16;
	/*
	 * Every signalled WQE also requests a CQE, otherwise done would never catch up with the
	 * last WQE.
	 */
	if ((flags & BB_SEND_SIGNALED) != 0) {
		fm_ce_se |= BB_WQE_CE_CQE;
		sq->sig_seq = seq;
	} else if (seq - sq->sig_seq >= sq->sig_every) {
		fm_ce_se |= BB_WQE_CE_CQE;
		sq->sig_seq = seq;
		info |= sq->sig_flags;
	}
	sq->last = ctrl;
	bb_sq_advance(sq, where, bb_wqe_blocks(ds));
	tail = (uint64_t)fm_ce_se << 24 | (uint64_t)imm << 32;
	/* Adjacent fields are combined into stores of 8 bytes. */
	bb_wqe_store64(w, wr_id);
	bb_wqe_store64(w + offsetof(struct bb_sq_wqe, seq), seq | (uint64_t)info << 32);
	bb_wqe_store64(ctrl, head);
	bb_wqe_store64(ctrl + 8, tail);
	return (struct bb_wqe_ctrl *)(void *)ctrl;
}

/**
 * Returns the slots that a WQE of @p ds segments occupies, at least 1. A slot has room for the
 * largest WQE of an ordinary request. seq and the limits count slots. Not on the fast path.
 */
static inline uint32_t
bb_sq_slots(const struct bb_sq *sq, uint32_t ds)
{
	return (bb_wqe_blocks(ds) + sq->slot_blocks - 1) / sq->slot_blocks;
}

/** Does the same as bb_sq_commit() for a WQE of @p slots slots. Not on the fast path. */
struct bb_wqe_ctrl *bb_sq_commit_slots(struct bb_sq *sq, uint8_t opcode, uint32_t ds,
				       uint32_t slots, uint64_t wr_id, uint32_t flags,
				       uint32_t imm);

/**
 * Builds a WQE with any number of SGEs, of which @p pieces are not empty. The queue must have room.
 */
static inline void
bb_sq_build_list(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
		 const struct bb_sge *sge, uint32_t nsge, uint32_t pieces, uint64_t raddr,
		 uint32_t rkey, uint32_t imm, uint32_t flags)
{
	struct bb_wqe_ctrl *ctrl =
		bb_sq_commit(sq, opcode, 1 + (uint32_t)has_raddr + pieces, wr_id, flags, imm);
	void *seg = ctrl + 1;
	uint32_t i;

	/* The first block of a WQE never wraps, because a WQE starts at a block. */
	if (has_raddr) {
		bb_sq_fill_raddr(seg, raddr, rkey);
		seg = (uint8_t *)seg + BB_WQE_SEG;
	}
	for (i = 0; i < nsge; i++) {
		if (sge[i].len == 0)
			continue;
		bb_sq_fill_data(seg, &sge[i]);
		seg = bb_sq_next_seg(sq, seg);
	}
}

/** Posts as bb_sq_post_sgl() does, for any number of SGEs, some of which may be empty. */
static inline int
bb_sq_post_list(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
		const struct bb_sge *sge, uint32_t nsge, uint64_t raddr, uint32_t rkey,
		uint32_t imm, uint32_t flags)
{
	int pieces;

	/* The list's length may be out of range, so check it before reading the list. */
	if (bb_unlikely(nsge > sq->max_sge))
		return bb_sq_refuse_arg(sq, BB_REFUSED_MAX_SGE);
	pieces = bb_sq_count_sge(sge, nsge);
	if (bb_unlikely(pieces < 0))
		return bb_sq_refuse_arg(sq, BB_REFUSED_SGE_LEN);
	if (bb_unlikely(!bb_sq_has_room_for(sq, opcode))) {
		if (!bb_queue_check_owner(sq->owner))
			return bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
		return sq->ops->list(sq, BB_SQ_WHAT(opcode | (has_raddr ? BB_SQ_RADDR : 0), flags),
				     wr_id, sge, nsge, raddr, rkey | (uint64_t)imm << 32);
	}
	bb_sq_build_list(sq, opcode, has_raddr, wr_id, sge, nsge, (uint32_t)pieces, raddr, rkey,
			 imm, flags);
	return 0;
}

/**
 * Builds a WQE with one non-empty SGE. The queue must have room. Always inlined, so that constant
 * arguments remove branches.
 */
static inline __attribute__((always_inline)) void
bb_sq_build(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
	    const struct bb_sge *sge, uint64_t raddr, uint32_t rkey, uint32_t imm, uint32_t flags)
{
	struct bb_wqe_ctrl *ctrl = bb_sq_commit(sq, opcode, has_raddr ? 3 : 2, wr_id, flags, imm);

	if (has_raddr)
		bb_sq_fill_raddr(ctrl + 1, raddr, rkey);
	bb_sq_fill_data(ctrl + (has_raddr ? 2 : 1), sge);
}

/**
 * Posts a SEND, RDMA_WRITE or RDMA_READ with a gather or scatter list. Always inlined, so that
 * constant arguments remove branches.
 */
static inline __attribute__((always_inline)) int
bb_sq_post_sgl(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
	       const struct bb_sge *sge, uint32_t nsge, uint64_t raddr, uint32_t rkey, uint32_t imm,
	       uint32_t flags)
{
	/*
	 * The called function gets the address of this copy, so the caller's SGE may stay in
	 * registers.
	 */
	struct bb_sge piece;

	if (BB_SEND_INLINE_MISUSED(flags))
		return bb_sq_refuse_arg(sq, BB_REFUSED_FLAGS);
	/* Most requests have one SGE of valid length, for which the size of the WQE is constant. */
	if (bb_unlikely(nsge != 1 || sge->len - 1 >= BB_WQE_MAX_SGE_LEN)) {
		if (nsge == 1) {
			piece = *sge;
			sge = &piece;
		}
		return bb_sq_post_list(sq, opcode, has_raddr, wr_id, sge, nsge, raddr, rkey, imm,
				       flags);
	}
	if (bb_unlikely(!bb_sq_has_room_for(sq, opcode))) {
		if (opcode == BB_WQE_RDMA_WRITE && flags == BB_SEND_SIGNALED &&
		    bb_sq_has_room_in(sq, sq->write_limit)) {
			sq->ops->write((struct ibv_qp_ex *)sq->driver, rkey, raddr, wr_id,
				       bb_sq_where(sq), sq);
			sq->piece((struct ibv_qp_ex *)sq->driver, sge->lkey, sge->addr, sge->len);
			return 0;
		}
		if (!bb_queue_check_owner(sq->owner))
			return bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
		piece = *sge;
		return sq->ops->post(sq, BB_SQ_WHAT(opcode | (has_raddr ? BB_SQ_RADDR : 0), flags),
				     wr_id, &piece, raddr, rkey | (uint64_t)imm << 32);
	}
	bb_sq_build(sq, opcode, has_raddr, wr_id, sge, raddr, rkey, imm, flags);
	return 0;
}

/**
 * Copies inline data after its 4-byte header; wraps at the end of the ring. The first @p in_block
 * bytes lie in the WQE's first block, which never wraps.
 */
static inline __attribute__((always_inline)) void
bb_sq_fill_inline(const struct bb_sq *sq, void *seg, const void *data, uint32_t len,
		  uint32_t in_block)
{
	uint8_t *dst = (uint8_t *)seg + 4;
	uint32_t hdr = bb_be32(BB_WQE_INLINE | len);
	size_t room;

	memcpy(seg, &hdr, sizeof(hdr));
	if (bb_likely(len <= in_block)) {
		bb_sq_copy_inline(dst, data, len);
		return;
	}
	room = (size_t)(sq->buf + ((size_t)sq->mask + 1) * BB_WQE_BB - dst);
	if (bb_likely(len <= room)) {
		memcpy(dst, data, len);
		return;
	}
	memcpy(dst, data, room);
	memcpy(sq->buf, (const uint8_t *)data + room, len - room);
}

/**
 * Builds a WQE with inline data. The queue must have room. Always inlined, so that constant
 * arguments remove branches.
 */
static inline __attribute__((always_inline)) void
bb_sq_build_inline(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
		   const void *data, uint32_t len, uint64_t raddr, uint32_t rkey, uint32_t imm,
		   uint32_t flags)
{
	const uint32_t ds = 1 + (uint32_t)has_raddr + bb_wqe_inline_ds(len);
	void *seg = bb_sq_commit(sq, opcode, ds, wr_id, flags, imm) + 1;

	if (has_raddr) {
		bb_sq_fill_raddr(seg, raddr, rkey);
		seg = (uint8_t *)seg + BB_WQE_SEG;
	}
	if (len != 0)
		bb_sq_fill_inline(sq, seg, data, len, has_raddr ? 28 : 44);
}

/**
 * Posts inline data if the limit of the queue is reached. Not inlined: an SGE whose address is
 * passed on would give each caller a stack frame, and a check of the stack if the compiler adds
 * one.
 * @param what a value of BB_SQ_WHAT() | rkey << 32
 * @param len_imm length | immediate << 32
 */
__attribute__((cold)) int bb_sq_post_inline_full(struct bb_sq *sq, uint64_t what, uint64_t wr_id,
						 const void *data, uint64_t raddr,
						 uint64_t len_imm);

/** Posts a SEND or RDMA_WRITE with inline data. @p data may be reused at once. */
static inline __attribute__((always_inline)) int
bb_sq_post_inline(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
		  const void *data, uint32_t len, uint64_t raddr, uint32_t rkey, uint32_t imm,
		  uint32_t flags)
{
	if (bb_unlikely(len > sq->max_inline))
		return bb_sq_refuse_arg(sq, BB_REFUSED_MAX_INLINE);
	if (bb_unlikely(!bb_sq_has_room(sq)))
		return bb_sq_post_inline_full(
			sq,
			BB_SQ_WHAT(opcode | (has_raddr ? BB_SQ_RADDR : 0) | BB_SQ_INLINE, flags) |
				(uint64_t)rkey << 32,
			wr_id, data, raddr, len | (uint64_t)imm << 32);
	bb_sq_build_inline(sq, opcode, has_raddr, wr_id, data, len, raddr, rkey, imm, flags);
	return 0;
}

/** Posts a NOP, which completes in order and does nothing, on a queue of any type. */
static inline int
bb_sq_post_nop(struct bb_sq *sq, uint64_t wr_id, uint32_t flags)
{
	if (bb_unlikely(!bb_sq_has_room_in(sq, sq->limit | sq->ud_limit)))
		return bb_queue_check_owner(sq->owner) ? sq->ops->nop(sq, wr_id, flags)
						       : bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
	bb_sq_commit(sq, BB_WQE_NOP, 1, wr_id, flags, 0);
	return 0;
}

#ifdef __cplusplus
}
#endif

#include "bb_sq_ring.h"

#endif
