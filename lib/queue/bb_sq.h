/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Send queue: build mlx5 WQEs in the ring, publish them with one doorbell.
 *
 * A send queue is a ring of 64-byte blocks that one thread owns. Each
 * bb_sq_*() builder reserves blocks, fills the WQE and remembers what the
 * completion needs; nothing reaches the device before bb_sq_ring().
 *
 * Applications call these through bb_post.h. The layer knows rings and bytes
 * only, no objects, so that it can be tested against memory.
 *
 * Builders return 1 when the WQE is in the ring, 0 when the queue is full
 * (ring, poll the CQ, then try again) and a negative errno when the request can never
 * be posted; the ring is then as it was.
 *
 * A full queue holds a WQE that asks for a CQE, and that CQE frees room. See bb_sq_make_room().
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

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that are shared or not as a whole. */
#define BB_CACHE_LINE 64

struct ibv_qp_ex; /* of libibverbs, and the provider's: nothing here looks into it */

/** What the completion of a WQE needs, kept per first block of the WQE. */
struct bb_sq_wqe {
	uint64_t wr_id;
	uint32_t seq;      /**< bb_sq.seq with this one and its slots counted */
	uint8_t flags;     /**< enum bb_send_flags as the caller gave them */
	uint8_t wc_opcode; /**< bb_wc_opcode_of(opcode): a post has it as a constant; or BB_SQ_OWN
			    */
	uint8_t opcode;    /**< enum bb_wqe_opcode, or enum bb_sq_umr_kind */
	uint8_t direct;    /**< enum bb_sq_direct */
};
BB_STATIC_ASSERT(sizeof(struct bb_sq_wqe) == 16, "a power of two");

/** bb_sq_wqe.wc_opcode of a NOP that the library posted: its completion is never reported. */
#define BB_SQ_OWN 0xff

/** No block of a ring. */
#define BB_SQ_NONE UINT32_MAX

/** How a request was posted. */
enum bb_sq_direct {
	BB_SQ_BUILT,         /**< as a WQE in the ring */
	BB_SQ_DIRECT,        /**< by bb_sq.post: it takes a block, in which no WQE is */
	BB_SQ_DIRECT_SILENT, /**< so, and nothing tells when it succeeds */
};

/** How the doorbell is rung. */
enum bb_db_mode {
	BB_DB_DOORBELL,  /**< 8 bytes to the register */
	BB_DB_BLUEFLAME, /**< a single WQE of 2 to 16 segments in 64-byte blocks; else 8 bytes */
};

/** A send queue. Only the inline functions here touch its fields. */
struct bb_sq {
	/* Line 0: touched by every post and completion. */
	uint8_t *buf;           /**< ring: (mask + 1) blocks */
	struct bb_sq_wqe *wqes; /**< one entry per block */
	uint8_t *last;          /**< control segment of the last WQE built */
	uint64_t qpn_be;        /**< second dword of a control segment, ds 0; first dword 0 */
	/* One number of 64 bits, to which a post adds once. */
	uint32_t seq;       /**< WQEs built since reset */
	uint16_t carry;     /**< out of seq, never into pi: a doorbell clears it */
	uint16_t pi;        /**< index of the next block to build in */
	uint32_t sig_seq;   /**< of the last WQE that asks for a CQE */
	uint32_t mask;      /**< blocks - 1 */
	uint32_t done;      /**< seq of the last WQE known complete */
	uint32_t limit;     /**< WQEs that may be outstanding now; 0: not postable, or not at
			     *   first sight. Counts for BB_SQ_MSG, see enum bb_sq_class */
	uint16_t sig_every; /**< WQEs from one that asks for a CQE to the next, >= 1 */
	uint16_t max_sge;
	uint16_t max_inline; /**< bytes */
	uint16_t rd_limit;   /**< of BB_SQ_RD */
	/* Line 1: once per doorbell. */
	uint32_t *dbrec; /**< send doorbell record; NULL: see ring */
	union {
		uint8_t *reg; /**< doorbell register of the owner's UAR */
		/** Without dbrec: what piece takes, once write may be called. */
		struct ibv_qp_ex *ex;
	};
	union {
		uint16_t *bf_offset; /**< half of the register to use next: 0 or bf_size */
		/** Without dbrec: tells the provider the piece of what write has begun. */
		void (*piece)(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t len);
	};
	uint64_t rung_seq;   /**< WQEs handed over since reset; seq in the low half */
	uint16_t bf_size;    /**< bytes of one register half; 0: no BlueFlame UAR */
	uint16_t own_offset; /**< bf_offset of a register that no other queue uses */
	uint8_t sig_flags;   /**< BB_SEND_SIGNALED if every request is to be reported, or 0 */
	uint16_t ud_limit;   /**< limit of BB_SQ_UD */
	uint64_t doorbells;  /**< statistics: doorbells rung */
	uint64_t cqes;       /**< statistics: CQEs that told of sends */
	/** What bb_sq_ring() calls: where WQEs are copied, and without dbrec; NULL: 8 bytes. */
	void (*ring)(struct bb_sq *sq);
	/* Not touched on the data path. */
	uint32_t depth;      /**< limits while enabled */
	uint32_t owner;      /**< lcore id, checked in debug builds */
	uint16_t refused;    /**< 1 << enum bb_refusal of those already logged */
	uint8_t type;        /**< enum bb_qp_type */
	uint8_t enabled;     /**< takes posts */
	uint8_t fence;       /**< the next WQE gets a small fence; limits are 0 until then */
	uint8_t slot_blocks; /**< blocks that are set aside for each of depth WQEs */
	uint8_t error;       /**< the device took the QP to ERR: the next post enables; __atomic */
	uint8_t umr_no_atomic; /**< UMRs leave the right to atomics as it is */
	uint64_t extra; /**< statistics: of seq, what is no request: further slots, own NOPs */
	uint64_t full;  /**< statistics: posts refused for want of room */
	/* Where posts do not build WQEs. */
	/**
	 * What posts of one piece call when limit lets none through: bb_sq_post_slow(), or the
	 * function of a driver that has no use for WQEs, with limit and rd_limit always 0. Its
	 * requests may leave sig_seq where it is.
	 * @p what BB_SQ_WHAT(); @p keys rkey, and immediate << 32
	 */
	int (*post)(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
		    uint64_t raddr, uint64_t keys);
	void *driver;          /**< the driver's */
	uint32_t direct_limit; /**< as limit, of requests that a driver may take at once */
	uint32_t built;        /**< the first WQE in the ring since the doorbell, or BB_SQ_NONE */
	/**
	 * A signalled RDMA_WRITE of one piece while direct_limit lets it through: a driver with a
	 * post of its own takes it, and cannot refuse. Its piece follows, by piece: neither then
	 * keeps the other's arguments over a call. @p where bb_sq_where()
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
 * An operation for bb_sq.post: enum bb_wqe_opcode, or-ed with BB_SQ_RADDR and BB_SQ_INLINE, and
 * enum bb_send_flags.
 */
#define BB_SQ_WHAT(opcode_, flags_) ((uint32_t)(opcode_) | (uint32_t)(flags_) << 16)
#define BB_SQ_RADDR                 (1u << 8) /**< it has a remote address */
#define BB_SQ_INLINE                (1u << 9) /**< the piece is the data itself, to be copied */

/**
 * What a limit is for. That of operations the queue's type does not do is 0: so the check for
 * room, which every post makes, is the check of the type, too.
 */
enum bb_sq_class {
	BB_SQ_MSG, /**< SENDs, WRITEs, UMRs: RC and UC */
	BB_SQ_RD,  /**< READs and atomics: RC */
	BB_SQ_UD,  /**< datagrams: UD */
	BB_SQ_NOP, /**< every type */
};

/** What a send queue is made of; memory belongs to the caller. */
struct bb_sq_conf {
	void *buf;              /**< ring of @ref blocks, 64-byte aligned */
	struct bb_sq_wqe *wqes; /**< @ref blocks entries */
	uint32_t blocks;        /**< power of two, 1 to 32768 */
	uint32_t qpn;
	uint32_t depth;   /**< WQEs that may be outstanding; so many of the largest fit the ring */
	uint32_t max_sge; /**< pieces of a WQE; 0 is as 1 where a type has more than datagrams */
	uint32_t max_inline; /**< bytes */
	enum bb_qp_type type;
	bool signal_all;    /**< report every request, signalled or not; sig_every is then 1 */
	uint32_t sig_every; /**< ask for a CQE at the latest at this many WQEs, 1 to depth */
	uint32_t *dbrec;
	void *reg;
	/** In place of dbrec and reg, which are NULL then: called by bb_sq_ring(); bb_sq_rung(). */
	void (*ring)(struct bb_sq *sq);
	/** As of struct bb_sq; NULL: bb_sq_post_slow(). */
	int (*post)(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
		    uint64_t raddr, uint64_t keys);
	/** As of struct bb_sq; @ref post sets ex and piece before it lets one through. */
	void (*write)(struct bb_sq *sq, uint32_t rkey, uint64_t raddr, uint64_t wr_id,
		      uint64_t where);
	void *driver;
	uint32_t bf_size; /**< 0 or a power of two >= 64 */
	/**
	 * Where the half of the register to use next is kept, starting at 0: one for all
	 * queues that ring the same register, of either db_mode, as halves alternate per register.
	 * NULL: no other queue rings it.
	 */
	uint16_t *bf_offset;
	enum bb_db_mode db_mode; /**< BLUEFLAME without bf_size rings with 8 bytes */
	bool umr_no_atomic;      /**< its UMRs may not name the right to atomics */
	uint32_t owner;          /**< lcore id; LCORE_ID_ANY is never checked */
};

/**
 * Prepare a send queue. It is not postable before bb_sq_enable().
 * @return 0, or -EINVAL when the configuration contradicts itself.
 */
int bb_sq_init(struct bb_sq *sq, const struct bb_sq_conf *conf);

/** Back to the state after bb_sq_init(); the doorbell record is zeroed too. */
void bb_sq_reset(struct bb_sq *sq);

/** Let posts that its type does through (QP in RTS or ERR), or none: -ENOTCONN. */
void bb_sq_enable(struct bb_sq *sq, bool on);

/** Any thread: the QP is in ERR without bb_sq_enable(); its owner's next post goes through. */
static inline void
bb_sq_error(struct bb_sq *sq)
{
	__atomic_store_n(&sq->error, 1, __ATOMIC_RELAXED);
}

/**
 * Refuse a request that no room would let through: its errno, logged once per queue
 * and reason.
 */
int bb_sq_refuse_arg(struct bb_sq *sq, enum bb_refusal why);

/**
 * What to do when the limit of @p c says no. The WQE behind a UMR WQE meets that, too: there
 * is room then, and @p flags gets the fence that it needs. Off the fast path.
 * @return 1: go on with the flags; 0: full; else why not, as bb_sq_refuse_arg().
 */
int bb_sq_no_room(struct bb_sq *sq, enum bb_sq_class c, uint32_t *flags);

/** Without having looked before, for a WQE that takes the room of @p slots usual ones. */
int bb_sq_room(struct bb_sq *sq, enum bb_sq_class c, uint32_t slots, uint32_t *flags);

/**
 * Ensures that a CQE comes which frees room, where a WQE of @p slots usual ones finds none.
 * A usual WQE needs no help: a queue without room for it holds depth WQEs, and one of each
 * sig_every asks for a CQE. A larger WQE may find less room than it needs after WQEs that ask
 * for none; a NOP that does follows them then. The NOP is rung if all before it were rung, else
 * the caller's next doorbell hands it over. Off the fast path.
 */
void bb_sq_make_room(struct bb_sq *sq, uint32_t slots);

/**
 * Posts a NOP that asks for a CQE and is not reported, not even if it is flushed (BB_SQ_OWN).
 * Does not ring. Off the fast path.
 * @return 1; 0: full; a negative errno as bb_sq_post_nop().
 */
int bb_sq_post_own_nop(struct bb_sq *sq);

/** Makes the next WQE ask for a CQE. For a WQE that has room: the caller builds it at once. */
static inline void
bb_sq_ask_cqe(struct bb_sq *sq)
{
	sq->sig_seq = sq->seq + 1 - sq->sig_every;
}

/** Give the next WQE a small fence: bb_sq_room() will. */
void bb_sq_fence_next(struct bb_sq *sq);

/** True if the calling thread is lcore @p owner, or @p owner is LCORE_ID_ANY. */
bool bb_queue_is_owner(uint32_t owner);

/** Debug builds (BB_DEBUG) catch posts from a thread that does not own the queue. */
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

/** WQEs that are posted and not known complete. */
static inline uint32_t
bb_sq_outstanding(const struct bb_sq *sq)
{
	return sq->seq - sq->done;
}

/** seq, carry and pi as one number: what a post reads of the ring's state, once. */
static inline uint64_t
bb_sq_where(const struct bb_sq *sq)
{
	uint64_t where;

	memcpy(&where, &sq->seq, sizeof(where));
	return where;
}

/** One WQE more, of @p blocks; @p where is bb_sq_where(). One addition: the next post waits for it.
 */
static inline void
bb_sq_advance(struct bb_sq *sq, uint64_t where, uint32_t blocks)
{
	bb_count_store_pair(&sq->seq, where + ((uint64_t)blocks << 48 | 1));
}

/** Whether one more WQE, of any size, may be built under @p limit, one of the queue's. */
static inline bool
bb_sq_has_room_in(const struct bb_sq *sq, uint32_t limit)
{
	return (uint32_t)bb_sq_where(sq) - sq->done < limit && bb_queue_check_owner(sq->owner);
}

/** The same for SENDs and WRITEs. */
static inline bool
bb_sq_has_room(const struct bb_sq *sq)
{
	return bb_sq_has_room_in(sq, sq->limit);
}

/** The class of an operation with a gather or scatter list. */
static inline enum bb_sq_class
bb_sq_class_of(uint8_t opcode)
{
	return opcode == BB_WQE_RDMA_READ ? BB_SQ_RD : BB_SQ_MSG;
}

/** Whether one more of it may be built. */
static inline bool
bb_sq_has_room_for(const struct bb_sq *sq, uint8_t opcode)
{
	return bb_sq_has_room_in(sq, bb_sq_class_of(opcode) == BB_SQ_RD ? sq->rd_limit : sq->limit);
}

/** The segment behind @p seg, at the start of the ring if @p seg is the last. */
static inline void *
bb_sq_next_seg(const struct bb_sq *sq, void *seg)
{
	uint8_t *next = (uint8_t *)seg + BB_WQE_SEG;

	return next == sq->buf + ((size_t)sq->mask + 1) * BB_WQE_BB ? sq->buf : next;
}

/**
 * Take the next block or blocks for a WQE of @p ds segments, for which there is room; write its
 * control segment, and what its completion needs. Before the other segments are filled: stores
 * to the ring could change the queue for all that compiler and CPU know, so what is read of the
 * queue is read in front of them. The device looks at nothing before bb_sq_ring().
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
	/* Few stores, and those to one line together: it is they that a post waits for. */
	head = bb_be64((uint64_t)pi << 40) | sq->qpn_be |
	       ((uint64_t)ds << 56 | (uint64_t)opcode << 24);
	info = (uint8_t)flags | (uint32_t)bb_wc_opcode_of(opcode) << 8 | (uint32_t)opcode << 16;
	/* A queue without a signalled WQE in it could never be found empty again. */
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

/** How many usual WQEs' room one of @p ds segments takes: seq counts these. Off the fast path. */
static inline uint32_t
bb_sq_slots(const struct bb_sq *sq, uint32_t ds)
{
	return (bb_wqe_blocks(ds) + sq->slot_blocks - 1) / sq->slot_blocks;
}

/** The same of a WQE that takes the room of @p slots usual ones. Off the fast path. */
struct bb_wqe_ctrl *bb_sq_commit_slots(struct bb_sq *sq, uint8_t opcode, uint32_t ds,
				       uint32_t slots, uint64_t wr_id, uint32_t flags,
				       uint32_t imm);

/**
 * The builders without room at first sight: the queue is full, takes no posts, or the WQE
 * is behind one that changes a key and gets a fence. Off the fast path, so that there
 * nobody looks for the fence. This one is of bb_sq_post_sgl() with one piece, and of
 * bb_sq_post_inline(): see bb_sq.post.
 */
int bb_sq_post_slow(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
		    uint64_t raddr, uint64_t keys);
/** bb_sq_post_nop() likewise. */
int bb_sq_post_nop_slow(struct bb_sq *sq, uint64_t wr_id, uint32_t flags);

/** bb_sq_post_sgl() of any number of pieces, empty ones among them. */
static inline int
bb_sq_post_list(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
		const struct bb_sge *sge, uint32_t nsge, uint64_t raddr, uint32_t rkey,
		uint32_t imm, uint32_t flags)
{
	struct bb_wqe_ctrl *ctrl;
	uint32_t i;
	int pieces;
	void *seg;

	/* Before the list is read, which may not be as long as that. */
	if (bb_unlikely(nsge > sq->max_sge))
		return bb_sq_refuse_arg(sq, BB_REFUSED_MAX_SGE);
	pieces = bb_sq_count_sge(sge, nsge);
	if (bb_unlikely(pieces < 0))
		return bb_sq_refuse_arg(sq, BB_REFUSED_SGE_LEN);
	if (bb_unlikely(!bb_sq_has_room_for(sq, opcode))) {
		uint32_t more = flags;
		int ret = bb_sq_no_room(sq, bb_sq_class_of(opcode), &more);

		if (ret <= 0)
			return ret;
		flags = more;
	}
	ctrl = bb_sq_commit(sq, opcode, 1 + (uint32_t)has_raddr + (uint32_t)pieces, wr_id, flags,
			    imm);

	/* The first block never wraps: a WQE starts on a block. */
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
	return 1;
}

/** Build a WQE with one piece that is not empty; there is room. */
static inline void
bb_sq_build(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
	    const struct bb_sge *sge, uint64_t raddr, uint32_t rkey, uint32_t imm, uint32_t flags)
{
	struct bb_wqe_ctrl *ctrl = bb_sq_commit(sq, opcode, has_raddr ? 3 : 2, wr_id, flags, imm);

	if (has_raddr)
		bb_sq_fill_raddr(ctrl + 1, raddr, rkey);
	bb_sq_fill_data(ctrl + (has_raddr ? 2 : 1), sge);
}

/** SEND, RDMA_WRITE, RDMA_READ with a gather or scatter list. Constant arguments must reach it. */
static inline __attribute__((always_inline)) int
bb_sq_post_sgl(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
	       const struct bb_sge *sge, uint32_t nsge, uint64_t raddr, uint32_t rkey, uint32_t imm,
	       uint32_t flags)
{
	/* The usual request has one piece, neither empty nor too long: a WQE of known size. */
	if (bb_unlikely(nsge != 1 || sge->len - 1 >= BB_WQE_MAX_SGE_LEN))
		return bb_sq_post_list(sq, opcode, has_raddr, wr_id, sge, nsge, raddr, rkey, imm,
				       flags);
	if (bb_unlikely(!bb_sq_has_room_for(sq, opcode))) {
		/* A copy: a piece whose address is given away must be written to memory. */
		struct bb_sge piece;

		if (opcode == BB_WQE_RDMA_WRITE && flags == BB_SEND_SIGNALED &&
		    bb_sq_has_room_in(sq, sq->direct_limit)) {
			sq->write(sq, rkey, raddr, wr_id, bb_sq_where(sq));
			sq->piece(sq->ex, sge->lkey, sge->addr, sge->len);
			return 1;
		}
		piece = *sge;
		return sq->post(sq, BB_SQ_WHAT(opcode | (has_raddr ? BB_SQ_RADDR : 0), flags),
				wr_id, &piece, raddr, rkey | (uint64_t)imm << 32);
	}
	bb_sq_build(sq, opcode, has_raddr, wr_id, sge, raddr, rkey, imm, flags);
	return 1;
}

/**
 * Copy inline data behind its header, over the end of the ring if need be. Up to
 * @p in_block bytes stay in the WQE's first block, which never wraps.
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

/** Build a WQE with the data in it; there is room. Constant arguments must reach it. */
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

/** SEND and RDMA_WRITE with the data in the WQE; @p data may be reused at once. */
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
	return 1;
}

/** NOP: completes in order, does nothing, on a queue of any type. */
static inline int
bb_sq_post_nop(struct bb_sq *sq, uint64_t wr_id, uint32_t flags)
{
	if (bb_unlikely(!bb_sq_has_room_in(sq, sq->limit | sq->ud_limit)))
		return bb_sq_post_nop_slow(sq, wr_id, flags);
	bb_sq_commit(sq, BB_WQE_NOP, 1, wr_id, flags, 0);
	return 1;
}

#ifdef __cplusplus
}
#endif

#include "bb_sq_ring.h"

#endif
