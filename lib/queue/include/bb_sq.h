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

#ifdef __cplusplus
extern "C" {
#endif

/** Cache line size in bytes: the unit of sharing between cores. */
#define BB_CACHE_LINE 64

struct ibv_qp_ex; /* of libibverbs; this file does not access its fields */

/** Data for the completion of a WQE, at the index of the WQE's first block. */
struct bb_sq_wqe {
	uint64_t wr_id;
	uint32_t seq;      /**< value of bb_sq.seq after this WQE and its extra slots */
	uint8_t flags;     /**< enum bb_send_flags from the caller */
	uint8_t wc_opcode; /**< bb_wc_opcode_of(opcode), a constant where it is posted; or
			    * BB_SQ_OWN */
	uint8_t opcode;    /**< enum bb_wqe_opcode, or enum bb_sq_umr_kind */
	uint8_t direct;    /**< enum bb_sq_direct */
};
BB_STATIC_ASSERT(sizeof(struct bb_sq_wqe) == 16, "a power of two");

/** bb_sq_wqe.wc_opcode of a NOP that the library posted; its completion is never reported. */
#define BB_SQ_OWN 0xff

/** Index of no block. */
#define BB_SQ_NONE UINT32_MAX

/** How a request was posted. */
enum bb_sq_direct {
	BB_SQ_BUILT,         /**< as a WQE in the ring */
	BB_SQ_DIRECT,        /**< by bb_sq.post(): uses a block that contains no WQE */
	BB_SQ_DIRECT_SILENT, /**< by bb_sq.post(), and its success is not reported */
};

/** A send queue. Only the inline functions of this file may access its fields. */
struct bb_sq {
	/* Line 0: touched by every post and completion. */
	uint8_t *buf;           /**< ring: (mask + 1) blocks */
	struct bb_sq_wqe *wqes; /**< one entry per block */
	uint8_t *last;          /**< control segment of the last WQE built */
	uint64_t qpn_be;        /**< second dword of a control segment with ds 0; the first dword
				 * is 0 */
	/* seq, carry and pi form one 64-bit number; a post adds to it once. */
	uint32_t seq;       /**< WQEs built since reset */
	uint16_t carry;     /**< takes seq's overflow, so that pi gets none; a doorbell clears it */
	uint16_t pi;        /**< index of the next free block */
	uint32_t sig_seq;   /**< seq of the last WQE that requests a CQE */
	uint32_t mask;      /**< blocks - 1 */
	uint32_t done;      /**< seq of the last WQE known to be complete */
	uint32_t limit;     /**< WQEs of class BB_SQ_MSG that may be outstanding now. 0 forces the
			     * slow path, which decides whether posts are allowed. See enum
			     * bb_sq_class */
	uint16_t sig_every; /**< WQEs from one CQE request to the next, >= 1 */
	uint16_t max_sge;
	uint16_t max_inline; /**< bytes */
	uint16_t rd_limit;   /**< limit of class BB_SQ_RD */
	/* Line 1: touched once per doorbell. */
	uint32_t *dbrec; /**< send doorbell record; NULL if the ring function of the driver replaces
			    it */
	union {
		uint8_t *reg; /**< doorbell register of the owner's UAR */
		/** Without dbrec: argument of piece(), valid once write() may be called. */
		struct ibv_qp_ex *ex;
	};
	union {
		uint16_t *bf_offset; /**< half of the register to use next: 0 or bf_size */
		/**
		 * Without dbrec: gives the provider the piece of the request that write() began.
		 */
		void (*piece)(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t len);
	};
	uint64_t rung_seq;   /**< WQEs passed to the device since reset; seq in the low half */
	uint16_t bf_size;    /**< bytes of one register half; 0 if the UAR has no BlueFlame */
	uint16_t own_offset; /**< storage for bf_offset if no other queue uses the register */
	uint8_t sig_flags;   /**< BB_SEND_SIGNALED if every request is reported, else 0 */
	uint16_t ud_limit;   /**< limit of class BB_SQ_UD */
	uint64_t doorbells;  /**< statistics: doorbells rung */
	uint64_t cqes;       /**< statistics: CQEs that reported sends */
	/**
	 * Called by bb_sq_ring() if WQEs are copied or there is no dbrec; NULL: 8-byte doorbell.
	 */
	void (*ring)(struct bb_sq *sq);
	/* Not touched on the data path. */
	uint32_t depth;   /**< value of the limits while posts are enabled */
	uint32_t owner;   /**< lcore id, checked in debug builds */
	uint16_t refused; /**< 1 << enum bb_refusal for each reason already logged */
	uint8_t type;     /**< enum bb_qp_type */
	uint8_t enabled;  /**< posts are enabled */
	uint8_t fence;    /**< 1 if the next WQE must get a small fence; limits are 0 until then */
	uint8_t slot_blocks;   /**< blocks reserved for each of depth WQEs */
	uint8_t error;         /**< the device moved the QP to ERR; the next post enables the queue.
				* __atomic */
	uint8_t umr_no_atomic; /**< UMRs leave the atomic access right unchanged */
	uint64_t extra;        /**< statistics: part of seq that is not a request: extra slots, the
				* library's NOPs */
	uint64_t full;         /**< statistics: posts refused because the queue was full */
	/* Used if posts do not build WQEs. */
	/**
	 * Called to post one piece if limit is 0. It is bb_sq_post_slow(), or the function of a
	 * driver that uses no WQEs; limit and rd_limit are then always 0. The driver's requests may
	 * leave sig_seq unchanged.
	 * @p what BB_SQ_WHAT(); @p keys rkey, and immediate << 32
	 */
	int (*post)(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
		    uint64_t raddr, uint64_t keys);
	void *driver;          /**< owned by the driver */
	uint32_t direct_limit; /**< like limit, for requests passed to the driver directly */
	uint32_t built; /**< index of the first WQE built since the doorbell, or BB_SQ_NONE */
	/**
	 * Starts a signalled RDMA_WRITE of one piece, while direct_limit has room. A driver with
	 * its own post() sets it; it cannot fail. piece() then adds the piece. Two calls, so that
	 * neither must save the other's arguments. @p where bb_sq_where()
	 */
	void (*write)(struct bb_sq *sq, uint32_t rkey, uint64_t raddr, uint64_t wr_id,
		      uint64_t where);
};
BB_STATIC_ASSERT(offsetof(struct bb_sq, carry) == offsetof(struct bb_sq, seq) + 4 &&
			 offsetof(struct bb_sq, pi) == offsetof(struct bb_sq, seq) + 6 &&
			 offsetof(struct bb_sq, seq) % 8 == 0,
		 "one number");
BB_STATIC_ASSERT(offsetof(struct bb_sq, dbrec) == BB_CACHE_LINE, "a post touches one line");
BB_STATIC_ASSERT(offsetof(struct bb_sq, depth) == 2 * BB_CACHE_LINE, "a doorbell touches two");
BB_STATIC_ASSERT(sizeof(struct bb_sq) == 3 * BB_CACHE_LINE, "the next struct has lines of its own");

/**
 * Operation for bb_sq.post(): enum bb_wqe_opcode, BB_SQ_RADDR, BB_SQ_INLINE and enum bb_send_flags,
 * or-ed.
 */
#define BB_SQ_WHAT(opcode_, flags_) ((uint32_t)(opcode_) | (uint32_t)(flags_) << 16)
#define BB_SQ_RADDR                 (1u << 8) /**< has a remote address */
#define BB_SQ_INLINE                (1u << 9) /**< the piece is inline data to copy */

/**
 * Classes of operations, each with a limit. The limit is 0 if the queue's type does not support the
 * class. So the room check of every post also checks the type.
 */
enum bb_sq_class {
	BB_SQ_MSG, /**< SENDs, WRITEs, UMRs: for RC and UC */
	BB_SQ_RD,  /**< READs and atomics: for RC */
	BB_SQ_UD,  /**< datagrams: for UD */
	BB_SQ_NOP, /**< NOPs: for every type */
};

/** Restores the state after bb_sq_init() and sets the doorbell record to 0. */
void bb_sq_reset(struct bb_sq *sq);

/** Enables the posts that the type supports (QP in RTS or ERR), or refuses all with -ENOTCONN. */
void bb_sq_enable(struct bb_sq *sq, bool on);

/**
 * Records that the QP is in ERR while posts are disabled: the owner's next post succeeds. Any
 * thread.
 */
static inline void
bb_sq_error(struct bb_sq *sq)
{
	__atomic_store_n(&sq->error, 1, __ATOMIC_RELAXED);
}

/**
 * Refuses a request that more room would not help. Returns its errno; logs once per queue and
 * reason.
 */
int bb_sq_refuse_arg(struct bb_sq *sq, enum bb_refusal why);

/**
 * Slow path of a post whose class @p c is at its limit. It also handles the WQE after a UMR WQE:
 * there is room, and @p flags gets the fence that it needs. Off the fast path.
 * @return 0: post with the flags; -EAGAIN: the queue is full; another errno as bb_sq_refuse_arg().
 */
int bb_sq_no_room(struct bb_sq *sq, enum bb_sq_class c, uint32_t *flags);

/**
 * Checks room for a WQE that takes @p slots usual ones, without a previous check by the caller.
 * Results are those of bb_sq_no_room().
 */
int bb_sq_room(struct bb_sq *sq, enum bb_sq_class c, uint32_t slots, uint32_t *flags);

/**
 * Ensures that a CQE arrives which frees room, after a WQE that takes @p slots usual ones found
 * none. A usual WQE needs no help: a queue without room for it holds depth WQEs, and one in
 * sig_every requests a CQE. A larger WQE may lack room while no outstanding WQE requests a CQE.
 * This function then posts a NOP that does. It rings the doorbell if all earlier WQEs were rung;
 * otherwise the caller's next doorbell passes the NOP on. Off the fast path.
 */
void bb_sq_make_room(struct bb_sq *sq, uint32_t slots);

/**
 * Posts a NOP that requests a CQE and is never reported, even if it is flushed (BB_SQ_OWN). Does
 * not ring the doorbell. Off the fast path.
 * @return as bb_sq_post_nop().
 */
int bb_sq_post_own_nop(struct bb_sq *sq);

/** Makes the next WQE request a CQE. There must be room, and the caller builds that WQE at once. */
static inline void
bb_sq_ask_cqe(struct bb_sq *sq)
{
	sq->sig_seq = sq->seq + 1 - sq->sig_every;
}

/** Requests a small fence for the next WQE; bb_sq_room() adds it. */
void bb_sq_fence_next(struct bb_sq *sq);

/** Returns true if the calling thread is lcore @p owner, or @p owner is LCORE_ID_ANY. */
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

/** Returns the number of WQEs posted and not known to be complete. */
static inline uint32_t
bb_sq_outstanding(const struct bb_sq *sq)
{
	return sq->seq - sq->done;
}

/** Returns seq, carry and pi as one number: a post reads them in a single load. */
static inline uint64_t
bb_sq_where(const struct bb_sq *sq)
{
	uint64_t where;

	memcpy(&where, &sq->seq, sizeof(where));
	return where;
}

/**
 * Adds one WQE of @p blocks; @p where is bb_sq_where(). A single addition, because the next post
 * waits for its result.
 */
static inline void
bb_sq_advance(struct bb_sq *sq, uint64_t where, uint32_t blocks)
{
	bb_count_store_pair(&sq->seq, where + ((uint64_t)blocks << 48 | 1));
}

/**
 * Returns true if one more WQE of any size fits under @p limit, which is one of the queue's limits.
 */
static inline bool
bb_sq_has_room_in(const struct bb_sq *sq, uint32_t limit)
{
	return (uint32_t)bb_sq_where(sq) - sq->done < limit && bb_queue_check_owner(sq->owner);
}

/** Returns true if one more SEND or WRITE fits. */
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

/** Returns true if one more request of @p opcode fits. */
static inline bool
bb_sq_has_room_for(const struct bb_sq *sq, uint8_t opcode)
{
	return bb_sq_has_room_in(sq, bb_sq_class_of(opcode) == BB_SQ_RD ? sq->rd_limit : sq->limit);
}

/** Returns the segment after @p seg, wrapping at the end of the ring. */
static inline void *
bb_sq_next_seg(const struct bb_sq *sq, void *seg)
{
	uint8_t *next = (uint8_t *)seg + BB_WQE_SEG;

	return next == sq->buf + ((size_t)sq->mask + 1) * BB_WQE_BB ? sq->buf : next;
}

/**
 * Reserves the blocks of a WQE of @p ds segments, for which there is room. Writes its control
 * segment and the data for its completion. Call it before filling the other segments: the compiler
 * must assume that a store to the ring changes the queue's fields, so read these first. The device
 * reads nothing before bb_sq_ring().
 * @return the control segment; the first block never wraps.
 */
static inline struct bb_wqe_ctrl *
bb_sq_commit(struct bb_sq *sq, uint8_t opcode, uint32_t ds, uint64_t wr_id, uint32_t flags,
	     uint32_t imm)
{
	const uint64_t where = bb_sq_where(sq);
	const uint32_t pi = (uint32_t)(where >> 48), seq = (uint32_t)where + 1;
	uint8_t *ctrl = sq->buf + (size_t)(pi & sq->mask) * BB_WQE_BB;
	typedef uint64_t two __attribute__((vector_size(16)));
	struct bb_sq_wqe *w = &sq->wqes[pi & sq->mask];
	uint32_t fm_ce_se = flags & (BB_SEND_SIGNALED | BB_SEND_SOLICITED | BB_SEND_FENCE |
				     BB_SEND_SMALL_FENCE);
	uint64_t head, tail;
	uint32_t info;
	two note;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stores of several fields at once are written for little-endian hosts"
#endif
	/* Few stores, adjacent ones combined: the stores limit the rate of posts. */
	head = bb_be64((uint64_t)pi << 40) | sq->qpn_be |
	       ((uint64_t)ds << 56 | (uint64_t)opcode << 24);
	info = (uint8_t)flags | (uint32_t)bb_wc_opcode_of(opcode) << 8 | (uint32_t)opcode << 16;
	/* Without a signalled WQE the queue could never be found empty again. */
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
	note = (two){wr_id, seq | (uint64_t)info << 32};
	memcpy(w, &note, sizeof(note));
	tail = (uint64_t)fm_ce_se << 24 | (uint64_t)imm << 32;
	memcpy(ctrl, &head, sizeof(head));
	memcpy(ctrl + 8, &tail, sizeof(tail));
	return (struct bb_wqe_ctrl *)(void *)ctrl;
}

/**
 * Returns how many usual WQEs' room a WQE of @p ds segments takes: seq counts these. Off the fast
 * path.
 */
static inline uint32_t
bb_sq_slots(const struct bb_sq *sq, uint32_t ds)
{
	return (bb_wqe_blocks(ds) + sq->slot_blocks - 1) / sq->slot_blocks;
}

/** Does as bb_sq_commit() for a WQE that takes @p slots usual ones. Off the fast path. */
struct bb_wqe_ctrl *bb_sq_commit_slots(struct bb_sq *sq, uint8_t opcode, uint32_t ds,
				       uint32_t slots, uint64_t wr_id, uint32_t flags,
				       uint32_t imm);

/**
 * Slow paths of the builders: the queue is full, refuses posts, or the WQE follows one that changes
 * a key and gets a fence. So the fast path need not check for the fence. This one serves
 * bb_sq_post_sgl() with one piece, and bb_sq_post_inline(): see bb_sq.post.
 */
int bb_sq_post_slow(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
		    uint64_t raddr, uint64_t keys);
/** Slow path of bb_sq_post_nop(). */
int bb_sq_post_nop_slow(struct bb_sq *sq, uint64_t wr_id, uint32_t flags);

/** bb_sq_post_sgl() for any number of pieces, some of which may be empty. */
static inline int
bb_sq_post_list(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
		const struct bb_sge *sge, uint32_t nsge, uint64_t raddr, uint32_t rkey,
		uint32_t imm, uint32_t flags)
{
	struct bb_wqe_ctrl *ctrl;
	uint32_t i;
	int pieces;
	void *seg;

	/* Check before reading the list, whose length may be out of range. */
	if (bb_unlikely(nsge > sq->max_sge))
		return bb_sq_refuse_arg(sq, BB_REFUSED_MAX_SGE);
	pieces = bb_sq_count_sge(sge, nsge);
	if (bb_unlikely(pieces < 0))
		return bb_sq_refuse_arg(sq, BB_REFUSED_SGE_LEN);
	if (bb_unlikely(!bb_sq_has_room_for(sq, opcode))) {
		uint32_t more = flags;
		int ret = bb_sq_no_room(sq, bb_sq_class_of(opcode), &more);

		if (ret != 0)
			return ret;
		flags = more;
	}
	ctrl = bb_sq_commit(sq, opcode, 1 + (uint32_t)has_raddr + (uint32_t)pieces, wr_id, flags,
			    imm);

	/* A WQE starts on a block boundary, so the first block never wraps. */
	seg = ctrl + 1;
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
	return 0;
}

/** Builds a WQE with one non-empty piece. There must be room. */
static inline void
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
 * constant arguments simplify the code.
 */
static inline __attribute__((always_inline)) int
bb_sq_post_sgl(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
	       const struct bb_sge *sge, uint32_t nsge, uint64_t raddr, uint32_t rkey, uint32_t imm,
	       uint32_t flags)
{
	/* The common request has one piece of valid length: a WQE of known size. */
	if (bb_unlikely(nsge != 1 || sge->len - 1 >= BB_WQE_MAX_SGE_LEN))
		return bb_sq_post_list(sq, opcode, has_raddr, wr_id, sge, nsge, raddr, rkey, imm,
				       flags);
	if (bb_unlikely(!bb_sq_has_room_for(sq, opcode))) {
		/* A copy: a piece whose address is passed on would have to be stored in memory. */
		struct bb_sge piece;

		if (opcode == BB_WQE_RDMA_WRITE && flags == BB_SEND_SIGNALED &&
		    bb_sq_has_room_in(sq, sq->direct_limit)) {
			sq->write(sq, rkey, raddr, wr_id, bb_sq_where(sq));
			sq->piece(sq->ex, sge->lkey, sge->addr, sge->len);
			return 0;
		}
		piece = *sge;
		return sq->post(sq, BB_SQ_WHAT(opcode | (has_raddr ? BB_SQ_RADDR : 0), flags),
				wr_id, &piece, raddr, rkey | (uint64_t)imm << 32);
	}
	bb_sq_build(sq, opcode, has_raddr, wr_id, sge, raddr, rkey, imm, flags);
	return 0;
}

/**
 * Copies inline data after its header, wrapping at the end of the ring. Data of up to @p in_block
 * bytes stays in the WQE's first block, which never wraps.
 */
static inline void
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
 * Builds a WQE with inline data. There must be room. Always inlined, so that constant arguments
 * simplify the code.
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

/** Posts a SEND or RDMA_WRITE with inline data. @p data may be reused at once. */
static inline int
bb_sq_post_inline(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
		  const void *data, uint32_t len, uint64_t raddr, uint32_t rkey, uint32_t imm,
		  uint32_t flags)
{
	if (bb_unlikely(len > sq->max_inline))
		return bb_sq_refuse_arg(sq, BB_REFUSED_MAX_INLINE);
	if (bb_unlikely(!bb_sq_has_room(sq))) {
		const struct bb_sge piece = {(uintptr_t)data, len, 0};

		return sq->post(
			sq,
			BB_SQ_WHAT(opcode | (has_raddr ? BB_SQ_RADDR : 0) | BB_SQ_INLINE, flags),
			wr_id, &piece, raddr, rkey | (uint64_t)imm << 32);
	}
	bb_sq_build_inline(sq, opcode, has_raddr, wr_id, data, len, raddr, rkey, imm, flags);
	return 0;
}

/** Posts a NOP, which completes in order and does nothing, on a queue of any type. */
static inline int
bb_sq_post_nop(struct bb_sq *sq, uint64_t wr_id, uint32_t flags)
{
	if (bb_unlikely(!bb_sq_has_room_in(sq, sq->limit | sq->ud_limit)))
		return bb_sq_post_nop_slow(sq, wr_id, flags);
	bb_sq_commit(sq, BB_WQE_NOP, 1, wr_id, flags, 0);
	return 0;
}

#ifdef __cplusplus
}
#endif

#include "bb_sq_ring.h"

#endif
