/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Sends by ibv_wr_*(). A post calls ibv_wr_*() at once. The doorbell calls ibv_wr_complete(), then
 * ibv_wr_start() for the next posts. The requests between these two calls are a batch. Only QPs in
 * a thread domain post in this way: for them the provider holds no lock between the two calls (man
 * ibv_wr_post, CONCURRENCY), so the program may do other work meanwhile. The provider executes
 * nothing before ibv_wr_complete().
 *
 * The last request of a doorbell should be signalled (verbs_sq.c), but a post does not know whether
 * it is the last. So only signalled requests and WRITEs are posted in this way. A WRITE that is not
 * signalled gets the mark VERBS_SILENT in its slot. If a NOP follows such a WRITE, the driver posts
 * a signalled WRITE of zero bytes in place of the NOP. The peer permits that WRITE, because it also
 * permits the one before.
 *
 * Three sorts of requests are collected for ibv_post_send() instead (verbs_chain.c):
 * - Unsignalled requests other than WRITEs.
 * - Binds of type 1 windows. libibverbs has only ibv_bind_mw() for them, and the provider executes
 *   that call at once.
 * - Operations that the provider's ibv_wr_*() does not support.
 */
#include "verbs_sq.h"

static inline bool
is_write(uint8_t opcode)
{
	return opcode == BB_WQE_RDMA_WRITE || opcode == BB_WQE_RDMA_WRITE_IMM;
}

void
verbs_post_begin(struct bb_sq *sq, struct verbs_qp *q)
{
	if (!q->open)
		ibv_wr_start(q->ex);
	q->open = true;
	/*
	 * post_write() relies on these flags. Code that sets other flags restores these flags or
	 * calls ibv_wr_complete() or ibv_wr_abort().
	 */
	q->ex->wr_flags = IBV_SEND_SIGNALED;
	sq->write_limit = q->limits[BB_SQ_MSG];
}

/* Implements bb_sq_ops.write. */
static void
post_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t wr_id, uint64_t where,
	   struct bb_sq *sq)
{
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	const uint64_t at = verbs_note(sq, q, where, BB_WQE_RDMA_WRITE, BB_SEND_SIGNALED, 0, wr_id);

	ex->wr_id = q->wr_reported | at;
	ibv_wr_rdma_write(ex, rkey, raddr);
}

/* Passes the operation of a request to the provider. */
static inline void
operation(struct ibv_qp_ex *ex, uint8_t opcode, uint64_t raddr, uint64_t keys)
{
	const uint32_t rkey = (uint32_t)keys, imm = (uint32_t)(keys >> 32);

	switch (opcode) {
	case BB_WQE_RDMA_WRITE:
		ibv_wr_rdma_write(ex, rkey, raddr);
		break;
	case BB_WQE_RDMA_WRITE_IMM:
		ibv_wr_rdma_write_imm(ex, rkey, raddr, imm);
		break;
	case BB_WQE_RDMA_READ:
		ibv_wr_rdma_read(ex, rkey, raddr);
		break;
	case BB_WQE_SEND:
		ibv_wr_send(ex);
		break;
	case BB_WQE_SEND_IMM:
		ibv_wr_send_imm(ex, imm);
		break;
	default:
		ibv_wr_send_inv(ex, bb_be32(imm));
		break;
	}
}

/* Passes the SGEs or the inline data to the provider, and ends the post. */
static inline void
pieces(struct ibv_qp_ex *ex, uint32_t what, const struct bb_sge *sge, uint32_t nsge)
{
	uint8_t data[VERBS_MAX_INLINE];
	struct ibv_sge list[VERBS_MAX_SGE];
	uint32_t n;

	if ((what & BB_SQ_INLINE) != 0) {
		n = verbs_gather(data, sge, nsge);
		if (n != 0)
			ibv_wr_set_inline_data(ex, data, n);
		else
			ibv_wr_set_sge_list(ex, 0, NULL);
	} else {
		n = verbs_sges(list, sge, nsge);
		if (n == 1)
			ibv_wr_set_sge(ex, list[0].lkey, list[0].addr, list[0].length);
		else
			ibv_wr_set_sge_list(ex, n, list);
	}
	ex->wr_flags = IBV_SEND_SIGNALED;
}

static int
post_list(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
	  uint64_t raddr, uint64_t keys)
{
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	const uint8_t opcode = (uint8_t)what;
	struct ibv_qp_ex *ex = q->ex;
	struct verbs_wr wr;
	int ret;

	if (bb_unlikely((opcode == BB_WQE_SEND_INV &&
			 (q->send_ops & IBV_QP_EX_WITH_SEND_WITH_INV) == 0) ||
			(verbs_unsignalled(sq, what >> 16) && !is_write(opcode)))) {
		ret = verbs_hold(sq, bb_sq_class_of(opcode), opcode, wr_id, what >> 16);
		return ret != 0 ? verbs_posted(ret)
				: verbs_chain_ops.list(sq, what, wr_id, sge, nsge, raddr, keys);
	}
	ret = verbs_take(sq, bb_sq_class_of(opcode), opcode, wr_id, what >> 16, VERBS_SILENT, &wr);
	if (bb_unlikely(ret != 0))
		return verbs_posted(ret);
	ex->wr_id = wr.wr_id;
	ex->wr_flags = wr.flags | ((what & BB_SQ_INLINE) != 0 ? IBV_SEND_INLINE : 0u);
	operation(ex, opcode, raddr, keys);
	pieces(ex, what, sge, nsge);
	return 0;
}

/* Implements bb_sq_ops.post: requests without rare flags here, all others by post_list(). */
static int
post(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece, uint64_t raddr,
     uint64_t keys)
{
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	const uint8_t opcode = (uint8_t)what;
	struct ibv_qp_ex *ex = q->ex;
	struct verbs_wr wr;

	if (bb_unlikely((what >> 16 & ~(uint32_t)BB_SEND_SIGNALED) != 0 ||
			opcode == BB_WQE_SEND_INV || piece->len == 0 ||
			!verbs_goes(sq, q, bb_sq_class_of(opcode)) ||
			(verbs_unsignalled(sq, what >> 16) && !is_write(opcode))))
		return post_list(sq, what, wr_id, piece, 1, raddr, keys);
	verbs_slot(sq, q, opcode, wr_id, what >> 16, VERBS_SILENT, &wr);
	ex->wr_id = wr.wr_id;
	ex->wr_flags = wr.flags | ((what & BB_SQ_INLINE) != 0 ? IBV_SEND_INLINE : 0u);
	operation(ex, opcode, raddr, keys);
	if ((what & BB_SQ_INLINE) == 0)
		ibv_wr_set_sge(ex, piece->lkey, piece->addr, piece->len);
	else
		ibv_wr_set_inline_data(ex, (void *)(uintptr_t)piece->addr, piece->len);
	ex->wr_flags = IBV_SEND_SIGNALED;
	return 0;
}

static int
post_atomic(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *sge,
	    uint64_t raddr, uint32_t rkey, uint64_t swap_add, uint64_t compare)
{
	const uint8_t opcode = (uint8_t)what;
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	struct ibv_qp_ex *ex = q->ex;
	struct verbs_wr wr;
	int ret;

	if (bb_unlikely(verbs_unsignalled(sq, what >> 16))) {
		ret = verbs_hold(sq, BB_SQ_RD, opcode, wr_id, what >> 16);
		return ret != 0 ? verbs_posted(ret)
				: verbs_chain_ops.atomic(sq, what, wr_id, sge, raddr, rkey,
							 swap_add, compare);
	}
	ret = verbs_take(sq, BB_SQ_RD, opcode, wr_id, what >> 16, 0, &wr);
	if (bb_unlikely(ret != 0))
		return verbs_posted(ret);
	ex->wr_id = wr.wr_id;
	ex->wr_flags = wr.flags;
	if (opcode == BB_WQE_ATOMIC_CS)
		ibv_wr_atomic_cmp_swp(ex, rkey, raddr, compare, swap_add);
	else
		ibv_wr_atomic_fetch_add(ex, rkey, raddr, swap_add);
	ibv_wr_set_sge(ex, sge->lkey, sge->addr, sge->len);
	ex->wr_flags = IBV_SEND_SIGNALED;
	return 0;
}

static int
post_datagram(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_wqe_av *av,
	      uint32_t dest_qpn, uint32_t qkey, const struct bb_sge *sge, uint32_t nsge,
	      uint32_t imm)
{
	const uint8_t opcode = (uint8_t)what;
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	struct ibv_qp_ex *ex = q->ex;
	struct verbs_wr wr;
	int ret;

	if (bb_unlikely(verbs_unsignalled(sq, what >> 16))) {
		ret = verbs_hold(sq, BB_SQ_UD, opcode, wr_id, what >> 16);
		return ret != 0 ? verbs_posted(ret)
				: verbs_chain_ops.datagram(sq, what, wr_id, av, dest_qpn, qkey, sge,
							   nsge, imm);
	}
	ret = verbs_take(sq, BB_SQ_UD, opcode, wr_id, what >> 16, 0, &wr);
	if (bb_unlikely(ret != 0))
		return verbs_posted(ret);
	ex->wr_id = wr.wr_id;
	ex->wr_flags = wr.flags | ((what & BB_SQ_INLINE) != 0 ? IBV_SEND_INLINE : 0u);
	operation(ex, opcode, 0, (uint64_t)imm << 32);
	ibv_wr_set_ud_addr(ex, verbs_ah_of(av), dest_qpn, qkey);
	pieces(ex, what, sge, nsge);
	return 0;
}

/* Takes a slot for a request that changes a key. Returns the same values as verbs_take(). */
static int
key_take(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, uint32_t flags)
{
	struct ibv_qp_ex *ex = verbs_qp_of_sq(sq)->ex;
	struct verbs_wr wr;
	int ret = verbs_take(sq, BB_SQ_MSG, opcode, wr_id, flags, 0, &wr);

	if (ret != 0)
		return ret;
	ex->wr_id = wr.wr_id;
	ex->wr_flags = wr.flags;
	return 0;
}

static int
post_local_inv(struct bb_sq *sq, uint64_t wr_id, uint32_t rkey, uint32_t flags)
{
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	int ret;

	if ((q->send_ops & IBV_QP_EX_WITH_LOCAL_INV) == 0 || verbs_unsignalled(sq, flags)) {
		ret = verbs_hold(sq, BB_SQ_MSG, BB_SQ_LOCAL_INV, wr_id, flags);
		return ret != 0 ? verbs_posted(ret)
				: verbs_chain_ops.local_inv(sq, wr_id, rkey, flags);
	}
	ret = key_take(sq, BB_SQ_LOCAL_INV, wr_id, flags);
	if (ret != 0)
		return verbs_posted(ret);
	ibv_wr_local_inv(q->ex, rkey);
	q->ex->wr_flags = IBV_SEND_SIGNALED;
	return 0;
}

static int
post_bind(struct bb_sq *sq, uint64_t wr_id, bool type2, uint32_t new_rkey,
	  const struct bb_bind *bind, uint32_t flags)
{
	struct ibv_mw *mw = container_of(bind->mw_obj, struct verbs_mr, base)->mw;
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	struct ibv_mw_bind_info info;
	int ret;

	if (!type2 || (q->send_ops & IBV_QP_EX_WITH_BIND_MW) == 0 || verbs_unsignalled(sq, flags)) {
		ret = verbs_hold(sq, BB_SQ_MSG, BB_SQ_BIND_MW, wr_id, flags);
		return ret != 0 ? verbs_posted(ret)
				: verbs_chain_ops.bind(sq, wr_id, type2, new_rkey, bind, flags);
	}
	ret = key_take(sq, BB_SQ_BIND_MW, wr_id, flags);
	if (ret != 0)
		return verbs_posted(ret);
	verbs_bind_info(q->scq->d, mw, bind, &info);
	ibv_wr_bind_mw(q->ex, mw, new_rkey, &info);
	q->ex->wr_flags = IBV_SEND_SIGNALED;
	return 0;
}

static int
post_nop(struct bb_sq *sq, uint64_t wr_id, uint32_t flags)
{
	const struct bb_sq_wqe *before = &sq->wqes[(sq->pi - 1u) & sq->mask];
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	struct ibv_qp_ex *ex = q->ex;
	struct verbs_wr wr;
	int ret = verbs_begin(sq, BB_SQ_NOP, BB_WQE_NOP, wr_id, flags);

	if (ret != 0)
		return verbs_posted(ret);
	if (before->mark != VERBS_SILENT || before->seq != sq->seq) {
		verbs_own(sq, BB_WQE_NOP, wr_id, flags, 0);
		return 0;
	}
	ret = verbs_take(sq, BB_SQ_MSG, BB_WQE_NOP, wr_id, flags, 0, &wr);
	if (ret != 0)
		return verbs_posted(ret);
	ex->wr_id = wr.wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, 0, 0);
	ibv_wr_set_sge_list(ex, 0, NULL);
	return 0;
}

/*
 * Handles an error of ibv_wr_complete(): the provider accepted no request posted since
 * ibv_wr_start().
 */
static __attribute__((noinline, cold)) void
refused(struct bb_sq *sq, int err)
{
	const uint32_t from = (uint32_t)sq->rung_seq + 1;

	bb_sq_rung_to(sq, sq->seq);
	verbs_qp_of_sq(sq)->open = false;
	verbs_rung(sq, from, err);
}

void
verbs_post_ring(struct bb_sq *sq)
{
	int err;

	/* The fast path is impossible: nothing was posted, or seq is about to wrap. */
	if (bb_unlikely(sq->seq <= (uint32_t)sq->rung_seq || !bb_queue_check_owner(sq->owner))) {
		verbs_sq_ring(sq);
		return;
	}
	err = ibv_wr_complete(sq->driver);
	if (bb_unlikely(err != 0)) {
		refused(sq, err);
		return;
	}
	/* Read seq again, because keeping it in a register over the call is slower. */
	bb_sq_rung_to(sq, sq->seq);
	ibv_wr_start(sq->driver);
}

bool
verbs_post_abort(struct verbs_qp *q)
{
	const bool open = q->open;

	if (open)
		ibv_wr_abort(q->ex);
	q->open = false;
	verbs_sq_close(q);
	return open;
}

const struct bb_sq_ops verbs_post_ops = {
	.write = post_write,
	.post = post,
	.list = post_list,
	.atomic = post_atomic,
	.datagram = post_datagram,
	.nop = post_nop,
	.bind = post_bind,
	.local_inv = post_local_inv,
	.lacked = verbs_lacked,
};
