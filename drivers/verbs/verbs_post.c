/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Sends without WQEs: a post of one piece goes to ibv_wr_*() at once, and the doorbell calls
 * ibv_wr_complete(), then ibv_wr_start() for the posts to come. Only on a QP of a thread domain:
 * there the provider takes no lock between them (man ibv_wr_post, CONCURRENCY), so that a program
 * may do what it likes meanwhile. Nothing is executed before ibv_wr_complete().
 *
 * Whether the last request of a doorbell is to be signalled, as verbs_send.c has it, is not known
 * here when it is posted. A WRITE may end a doorbell unsignalled all the same: where a NOP comes
 * behind it, a WRITE of no bytes stands for the NOP, which the peer has given the right to. Other
 * requests come this way signalled only.
 */
#include <string.h>

#include <rte_atomic.h>

#include "verbs_drv.h"

#define WRITE (BB_WQE_RDMA_WRITE | BB_SQ_RADDR)

/* Take the next block, at @where, and write down what its completion needs. */
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
	/* In this order, and with seq loaded again, gcc needs the fewest registers. */
	bb_sq_advance(sq, where, 1);
	w = &sq->wqes[where >> 48 & sq->mask];
	w->wr_id = wr_id;
	memcpy(&w->flags, &info, sizeof(info));
	w->seq = sq->seq;
}

/* May a post go on? */
static inline bool
begun(const struct bb_sq *sq)
{
	return bb_sq_has_room_in(sq, sq->direct_limit);
}

/*
 * Begin what the doorbell ends, if the last one has not. false: there is no room, the queue takes
 * no posts, or WQEs are in front.
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
	/* Of all that verbs_write() takes; who sets others puts these back, or ends this. */
	q->ex->wr_flags = IBV_SEND_SIGNALED;
	q->open = true;
	sq->direct_limit = sq->depth;
	return true;
}

/* Those that verbs_write() is not for. */
static int
post_other(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
	   uint64_t raddr, uint64_t keys)
{
	const uint32_t opcode = what & 0xff;
	struct verbs_qp *q = sq->driver;
	struct ibv_qp_ex *ex = q->ex;
	uint8_t flags = (uint8_t)(what >> 16);
	const bool write = opcode == BB_WQE_RDMA_WRITE || opcode == BB_WQE_RDMA_WRITE_IMM;
	/* verbs_write() leaves sig_seq behind: then one is due a little early. */
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
	/* Its flags stand there: see begin(). */
	ex->wr_id = q->wr_told | where >> 48;
	ibv_wr_rdma_write(ex, rkey, raddr);
}

int
verbs_post(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
	   uint64_t raddr, uint64_t keys)
{
	if (what != BB_SQ_WHAT(WRITE, BB_SEND_SIGNALED))
		return post_other(sq, what, wr_id, piece, raddr, keys);
	/* The first since something stood in the way. */
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

	/* Nothing was posted, WQEs were, or the count is about to wrap. */
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
	/* Loaded again: registers kept over the call cost more. verbs_sq_give() will set given. */
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
