/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Sends without WQEs. A post of one SGE calls ibv_wr_*() at once. The doorbell calls
 * ibv_wr_complete(), then ibv_wr_start() for the next posts. The requests between these two calls
 * are a batch. Only QPs in a thread domain post in this way: for them the provider holds no lock
 * between the two calls (man ibv_wr_post, CONCURRENCY), so the program may do other work meanwhile.
 * The provider executes nothing before ibv_wr_complete().
 *
 * The last request of a doorbell should be signalled (verbs_send.c), but a post does not know
 * whether it is the last. So requests are posted in this way only if they are signalled, except for
 * WRITEs. If a NOP follows an unsignalled WRITE, the driver posts a signalled WRITE of zero bytes
 * in place of the NOP. The peer permits it, because it permits WRITEs.
 */
#include <string.h>

#include <rte_atomic.h>

#include "verbs_drv.h"

#define WRITE (BB_WQE_RDMA_WRITE | BB_SQ_RADDR)

/* Advances the queue by one block at @where and stores the data that the completion needs. */
static inline void
note(struct bb_sq *sq, uint64_t where, uint8_t opcode, uint8_t flags, enum bb_sq_direct how,
     uint64_t wr_id)
{
	const uint32_t info = flags | (uint32_t)bb_wc_opcode_of(opcode) << 8 |
			      (uint32_t)opcode << 16 | (uint32_t)how << 24;
	struct bb_sq_wqe *w;

	BB_STATIC_ASSERT(
		offsetof(struct bb_sq_wqe, opcode) == offsetof(struct bb_sq_wqe, flags) + 2 &&
			offsetof(struct bb_sq_wqe, direct) == offsetof(struct bb_sq_wqe, flags) + 3,
		"written together");
	/*
	 * Advance the queue first, and read seq again below: this order needs the fewest registers
	 * with gcc.
	 */
	bb_sq_advance(sq, where, 1);
	w = &sq->wqes[where >> 48 & sq->mask];
	w->wr_id = wr_id;
	memcpy(&w->flags, &info, sizeof(info));
	w->seq = sq->seq;
}

/* Returns true if a batch is open and has room for a post. */
static inline bool
begun(const struct bb_sq *sq)
{
	return bb_sq_has_room_in(sq, sq->direct_limit);
}

/*
 * Opens a batch, which the next doorbell completes, unless a batch is open. Returns false if the
 * queue is full or accepts no posts, or if WQEs were posted since the last doorbell.
 */
static bool
begin(struct bb_sq *sq)
{
	struct verbs_qp *q = sq->driver;

	if (bb_sq_outstanding(sq) >= sq->depth || !sq->enabled || sq->fence ||
	    sq->built != BB_SQ_NONE || q->refused || !bb_queue_check_owner(sq->owner))
		return false;
	if (!q->open) {
		q->opened = (uint32_t)sq->rung_seq;
		ibv_wr_start(q->ex);
	}
	sq->ex = q->ex;
	sq->piece = q->ex->wr_set_sge;
	/*
	 * verbs_write() relies on these flags. Code that sets other flags restores these flags or
	 * closes the batch.
	 */
	q->ex->wr_flags = IBV_SEND_SIGNALED;
	q->open = true;
	sq->direct_limit = sq->depth;
	return true;
}

/* Posts a request other than the signalled WRITE of verbs_write(). */
static int
post_other(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
	   uint64_t raddr, uint64_t keys)
{
	const uint32_t opcode = what & 0xff;
	struct verbs_qp *q = sq->driver;
	struct ibv_qp_ex *ex = q->ex;
	uint8_t flags = (uint8_t)(what >> 16);
	const bool write = opcode == BB_WQE_RDMA_WRITE || opcode == BB_WQE_RDMA_WRITE_IMM;
	/*
	 * verbs_write() does not update sig_seq, so this may request a CQE a little too early,
	 * which is harmless.
	 */
	const bool due = sq->seq + 1 - sq->sig_seq >= sq->sig_every;

	if ((flags & ~BB_SEND_SIGNALED) != 0 || opcode == BB_WQE_SEND_INV ||
	    (opcode == BB_WQE_RDMA_READ && sq->type != BB_QPT_RC) || piece->len == 0 ||
	    (flags == 0 && !due && !write) || (!begun(sq) && !begin(sq)))
		return bb_sq_post_slow(sq, what, wr_id, piece, raddr, keys);
	ex->wr_id = q->wr_base | sq->pi;
	ex->wr_flags = (what & BB_SQ_INLINE) != 0 ? IBV_SEND_INLINE : 0;
	if (flags != 0 || due) {
		ex->wr_id |= VERBS_WR_REPORT;
		ex->wr_flags |= IBV_SEND_SIGNALED;
		flags |= due ? sq->sig_flags : 0;
		sq->sig_seq = sq->seq + 1;
		note(sq, bb_sq_where(sq), (uint8_t)opcode, flags, BB_SQ_DIRECT, wr_id);
	} else {
		note(sq, bb_sq_where(sq), (uint8_t)opcode, 0, BB_SQ_DIRECT_SILENT, wr_id);
	}
	switch (opcode) {
	case BB_WQE_RDMA_WRITE:
		ibv_wr_rdma_write(ex, (uint32_t)keys, raddr);
		break;
	case BB_WQE_RDMA_WRITE_IMM:
		ibv_wr_rdma_write_imm(ex, (uint32_t)keys, raddr, (uint32_t)(keys >> 32));
		break;
	case BB_WQE_RDMA_READ:
		ibv_wr_rdma_read(ex, (uint32_t)keys, raddr);
		break;
	case BB_WQE_SEND:
		ibv_wr_send(ex);
		break;
	default:
		ibv_wr_send_imm(ex, (uint32_t)(keys >> 32));
		break;
	}
	if ((what & BB_SQ_INLINE) != 0)
		ibv_wr_set_inline_data(ex, (void *)(uintptr_t)piece->addr, piece->len);
	else
		ibv_wr_set_sge(ex, piece->lkey, piece->addr, piece->len);
	ex->wr_flags = IBV_SEND_SIGNALED;
	return 0;
}

void
verbs_write(struct bb_sq *sq, uint32_t rkey, uint64_t raddr, uint64_t wr_id, uint64_t where)
{
	const struct verbs_qp *q;
	struct ibv_qp_ex *ex;

	note(sq, where, BB_WQE_RDMA_WRITE, BB_SEND_SIGNALED, BB_SQ_DIRECT, wr_id);
	q = sq->driver;
	ex = sq->ex;
	/* begin() has set wr_flags for this request. */
	ex->wr_id = q->wr_reported | where >> 48;
	ibv_wr_rdma_write(ex, rkey, raddr);
}

int
verbs_post(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
	   uint64_t raddr, uint64_t keys)
{
	if (what != BB_SQ_WHAT(WRITE, BB_SEND_SIGNALED))
		return post_other(sq, what, wr_id, piece, raddr, keys);
	/* The limit of the batch was reached or no batch is open, so open one. */
	if (!begin(sq))
		return bb_sq_post_slow(sq, what, wr_id, piece, raddr, keys);
	verbs_write(sq, (uint32_t)keys, raddr, wr_id, bb_sq_where(sq));
	ibv_wr_set_sge(sq->ex, piece->lkey, piece->addr, piece->len);
	return 0;
}

void
verbs_sq_ring(struct bb_sq *sq)
{
	int err;

	/*
	 * The fast path is impossible: nothing was posted, WQEs were posted, or seq is about to
	 * wrap.
	 */
	if (bb_unlikely(sq->seq <= (uint32_t)sq->rung_seq || sq->built != BB_SQ_NONE ||
			!bb_queue_check_owner(sq->owner))) {
		verbs_sq_give(sq);
		return;
	}
	err = ibv_wr_complete(sq->ex);
	if (bb_unlikely(err != 0)) {
		verbs_sq_refused(sq, err);
		return;
	}
	/*
	 * Read seq again, because keeping it in a register over the call is slower. q->given is not
	 * updated here; verbs_sq_give() does that later.
	 */
	bb_sq_rung_to(sq, sq->seq);
	ibv_wr_start(sq->ex);
}

bool
verbs_post_abort(struct verbs_qp *q)
{
	const bool open = q->open;

	if (open)
		ibv_wr_abort(q->ex);
	q->open = false;
	return open;
}

void
verbs_post_lost(struct bb_sq *sq, int err)
{
	struct verbs_qp *q = sq->driver;

	q->open = true;
	verbs_sq_refused(sq, err);
	q->open = false;
	sq->direct_limit = 0;
}
