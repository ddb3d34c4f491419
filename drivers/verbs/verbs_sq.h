/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Send queues: the parts that posts by ibv_wr_*() (verbs_post.c) and posts by ibv_post_send()
 * (verbs_chain.c) share. The queue has no ring of WQEs. Each request takes one slot. A slot is an
 * entry of bb_sq.wqes, and the wr_id of the provider's request contains its offset.
 */
#ifndef VERBS_SQ_H
#define VERBS_SQ_H

#include <rte_atomic.h>

#include "bb_sq_umr.h"
#include "bb_wqe_priv.h"
#include "verbs_drv.h"

/* Value of bb_sq_wqe.mark: a WRITE posted by ibv_wr_*() that is not signalled at the provider. */
#define VERBS_SILENT 1u
/* Value of bb_sq_wqe.mark: the driver itself completes the request. */
#define VERBS_OWN 2u

/*
 * Returned instead of an errno if the request took a slot and completes in error. The provider
 * never gets such a request.
 */
#define VERBS_ENDS 1

/* A request as the provider gets it. */
struct verbs_wr {
	uint64_t wr_id;
	unsigned int flags; /* enum ibv_send_flags */
};

/*
 * Takes the slot at @where, the result of bb_sq_where(), and stores the data that the completion
 * needs. Returns the slot's part of the wr_id.
 */
static inline uint64_t
verbs_note(struct bb_sq *sq, const struct verbs_qp *q, uint64_t where, uint8_t opcode,
	   uint32_t flags, uint8_t mark, uint64_t wr_id)
{
	const uint32_t info = (uint8_t)flags | (uint32_t)bb_wc_opcode_of(opcode) << 8 |
			      (uint32_t)opcode << 16 | (uint32_t)mark << 24;
	struct bb_sq_wqe *w;
	uint64_t at;

	BB_STATIC_ASSERT(
		offsetof(struct bb_sq_wqe, opcode) == offsetof(struct bb_sq_wqe, flags) + 2 &&
			offsetof(struct bb_sq_wqe, mark) == offsetof(struct bb_sq_wqe, flags) + 3 &&
			sizeof(struct bb_sq_wqe) == 16,
		"written together");
	/*
	 * Advance the queue first, and read seq again below: this order needs the fewest registers
	 * with gcc.
	 */
	bb_sq_advance(sq, where, 1);
	/*
	 * Bits 48 and up of @where are the index. A shift by 44 gives the byte offset of the entry,
	 * because an entry has 16 bytes.
	 */
	at = where >> 44 & q->slot_mask;
	w = (struct bb_sq_wqe *)(void *)((uint8_t *)sq->wqes + at);
	w->wr_id = wr_id;
	memcpy(&w->flags, &info, sizeof(info));
	w->seq = sq->seq;
	/* Prevents the compiler from loading later operands while @w still needs a register. */
	rte_compiler_barrier();
	return at;
}

/* Converts enum bb_send_flags, except BB_SEND_SIGNALED, to enum ibv_send_flags. */
static inline unsigned int
verbs_flags(uint32_t flags)
{
	return ((flags & BB_SEND_SOLICITED) != 0 ? IBV_SEND_SOLICITED : 0u) |
	       ((flags & BB_SEND_FENCE) != 0 ? IBV_SEND_FENCE : 0u);
}

/* Returns true if a request with @flags needs no CQE: neither the caller nor the queue requests
 * one. */
static inline bool
verbs_unsignalled(const struct bb_sq *sq, uint32_t flags)
{
	/*
	 * bb_sq_ops.write does not update sig_seq, so this may request a CQE a little too early,
	 * which is harmless.
	 */
	return (flags & (BB_SEND_SIGNALED | BB_SQ_ASK_CQE)) == 0 &&
	       sq->seq + 1 - sq->sig_seq < sq->sig_every;
}

/*
 * Takes the next slot for a request that the provider gets. The queue must have room. @mark is
 * stored in the slot if the request is unsignalled.
 */
static inline __attribute__((always_inline)) void
verbs_slot(struct bb_sq *sq, const struct verbs_qp *q, uint8_t opcode, uint64_t wr_id,
	   uint32_t flags, uint8_t mark, struct verbs_wr *wr)
{
	const uint64_t where = bb_sq_where(sq);

	wr->wr_id = q->wr_base;
	wr->flags = verbs_flags(flags);
	if (!verbs_unsignalled(sq, flags)) {
		flags |= sq->sig_flags;
		wr->wr_id = q->wr_reported;
		wr->flags |= IBV_SEND_SIGNALED;
		sq->sig_seq = (uint32_t)where + 1;
		mark = 0;
	}
	wr->wr_id |= verbs_note(sq, q, where, opcode, flags, mark, wr_id);
}

/* Returns true if a request of class @c may take a slot without verbs_begin(). */
static inline bool
verbs_goes(const struct bb_sq *sq, const struct verbs_qp *q, enum bb_sq_class c)
{
	return bb_sq_has_room_in(sq, q->limits[c]);
}

/*
 * Decides whether the caller may post a request of class @c. Called if verbs_goes() returns false:
 * the queue is full, or q->limits[@c] is 0, so that this function checks the type and the state of
 * the queue.
 * @return 0 if the caller must post the request; VERBS_ENDS if the caller must not post it, because
 * the driver completes it with an error; otherwise the errno that the post returns.
 */
int verbs_begin(struct bb_sq *sq, enum bb_sq_class c, uint8_t opcode, uint64_t wr_id,
		uint32_t flags);

/* Takes a slot for a request of class @c. Returns the same values as verbs_begin(). */
static inline __attribute__((always_inline)) int
verbs_take(struct bb_sq *sq, enum bb_sq_class c, uint8_t opcode, uint64_t wr_id, uint32_t flags,
	   uint8_t mark, struct verbs_wr *wr)
{
	const struct verbs_qp *q = verbs_qp_of_sq(sq);

	if (bb_unlikely(!verbs_goes(sq, q, c))) {
		int ret = verbs_begin(sq, c, opcode, wr_id, flags);

		if (ret != 0)
			return ret;
	}
	verbs_slot(sq, q, opcode, wr_id, flags, mark, wr);
	return 0;
}

/* Converts a result of verbs_take() to the value that a post returns. */
static inline int
verbs_posted(int ret)
{
	return ret == VERBS_ENDS ? 0 : ret;
}

/*
 * Posts a request that libibverbs or the provider does not support: it completes in error at its
 * doorbell, and all later requests are flushed. Logs @text, which says what is missing. Returns the
 * value that the post returns.
 */
int verbs_lacks(struct bb_sq *sq, enum bb_sq_class c, uint8_t opcode, uint64_t wr_id,
		uint32_t flags, const char *text);
/* Implements bb_sq_ops.lacked. */
int verbs_lacked(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, uint32_t flags);
/*
 * Takes a slot for a request that the driver itself completes, in order, with @syndrome. The queue
 * must have room.
 */
void verbs_own(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, uint32_t flags, uint8_t syndrome);
/*
 * Ends a doorbell, whose first request had the number @from. If @err is not 0, the provider has
 * rejected the request @from and gets no later request. @err is an errno or VERBS_LOGGED.
 */
void verbs_rung(struct bb_sq *sq, uint32_t from, int err);

/*
 * Makes posts of a queue that uses ibv_wr_*() collect requests for ibv_post_send() until the next
 * doorbell. The doorbell first completes the requests that ibv_wr_*() has already got. Needed for a
 * request that ibv_wr_*() cannot post, and for the requests after it. If the result is 0, the
 * caller must add that request to the list. Returns the same values as verbs_begin().
 */
int verbs_hold(struct bb_sq *sq, enum bb_sq_class c, uint8_t opcode, uint64_t wr_id,
	       uint32_t flags);

/* ---- verbs_post.c */
/*
 * Calls ibv_wr_start(), which begins a batch that the next doorbell completes. Does nothing if a
 * batch was begun already.
 */
void verbs_post_begin(struct bb_sq *sq, struct verbs_qp *q);

/* ---- verbs_chain.c */
/*
 * Posts the requests that were collected for ibv_post_send(), and empties their list. If the
 * provider rejects a request, returns an errno or VERBS_LOGGED and sets @from to the number of that
 * request.
 */
int verbs_chain_post(struct bb_sq *sq, struct verbs_qp *q, uint32_t *from);
/* Copies inline data of several SGEs to @to. Returns the length. */
uint32_t verbs_gather(uint8_t *to, const struct bb_sge *sge, uint32_t nsge);
/* Converts the SGEs that are not empty. Returns their number. */
uint32_t verbs_sges(struct ibv_sge *to, const struct bb_sge *sge, uint32_t nsge);
/* Sets the arguments of a bind. @mw must exist. */
void verbs_bind_info(struct verbs_dev *d, const struct ibv_mw *mw, const struct bb_bind *bind,
		     struct ibv_mw_bind_info *info);

#endif
