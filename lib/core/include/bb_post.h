/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * The data path: post, ring, poll. Inline; no lock, allocation or system call.
 *
 * What calls return:
 *
 * - A single post returns 0 when the request is queued; -EAGAIN when the queue is full: ring, poll,
 *   then post again; another negative errno when the request can never be posted: the log says why.
 *   On an error nothing of the request is in the queue. Flags are the last argument.
 * - A poll, and a list of posts (bb_wr.h, bb_mbuf.h), returns how many it did. Fewer than asked for
 *   means nothing more to take, or no room; @p err of a list tells a request that can never be
 *   posted.
 *
 * Nothing is sent before bb_qp_ring(). Called by the owner only.
 *
 * A full queue gets room: a request in it asks for a CQE. A request that takes the room of several
 * - masked atomics, binds, invalidations, key layouts - may find too little after requests that
 * ask for none. The library then posts a NOP that asks, and rings it if all before it were rung.
 * That NOP takes the room of one request and is never reported.
 *
 * An operation that the QP's type does not do is refused (-EINVAL; the table is in
 * bb_op.h). FENCE on a QP that is not RC, and SOLICITED with an operation that
 * consumes no receive, mean nothing and are left to the device, which ignores them;
 * bb_qp_post_list() of bb_wr.h refuses them.
 *
 * What bb_dev_query() says the device does not do - atomics, on iWARP immediate data, a READ of
 * more than max_read_sge pieces - is not looked for at each post: it is queued, and completes with
 * BB_WC_LOC_QP_OP_ERR or another error, which takes the QP to ERR; on devices of the verbs driver
 * the log says what was lacking. bb_qp_post_list() refuses it, -ENOTSUP.
 *
 * Source of all: man ibv_post_send, ibv_post_recv, ibv_poll_cq.
 */
#ifndef BB_POST_H
#define BB_POST_H

#include "bb_ah.h"
#include "bb_mkey.h"
#include "bb_mw.h"
#include "bb_qp.h"
#include "bb_sq_atomic.h"
#include "bb_sq_ud.h"

#ifdef __cplusplus
extern "C" {
#endif

/** RDMA_WRITE of a gather list to @p raddr. */
static inline __attribute__((always_inline)) int
bb_post_write(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
	      uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_RDMA_WRITE, true, wr_id, sge, nsge, raddr, rkey, 0,
			      flags);
}

/** RDMA_WRITE_WITH_IMM: also consumes a receive of the peer. @p imm in network order. */
static inline int
bb_post_write_imm(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
		  uint64_t raddr, uint32_t rkey, uint32_t imm, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_RDMA_WRITE_IMM, true, wr_id, sge, nsge, raddr, rkey,
			      imm, flags);
}

/** RDMA_WRITE with the data in the WQE: @p data may be reused on return. */
static inline int
bb_post_write_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
		     uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_RDMA_WRITE, true, wr_id, data, len, raddr, rkey, 0,
				 flags);
}

/** RDMA_WRITE_WITH_IMM with the data in the WQE. */
static inline int
bb_post_write_imm_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
			 uint64_t raddr, uint32_t rkey, uint32_t imm, uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_RDMA_WRITE_IMM, true, wr_id, data, len, raddr,
				 rkey, imm, flags);
}

/** RDMA_READ from @p raddr into a scatter list (its MRs need LOCAL_WRITE). */
static inline int
bb_post_read(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
	     uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_RDMA_READ, true, wr_id, sge, nsge, raddr, rkey, 0,
			      flags);
}

/** SEND a gather list into a receive of the peer. */
static inline int
bb_post_send(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
	     uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_SEND, false, wr_id, sge, nsge, 0, 0, 0, flags);
}

/** SEND_WITH_IMM. @p imm in network order. */
static inline int
bb_post_send_imm(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
		 uint32_t imm, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_SEND_IMM, false, wr_id, sge, nsge, 0, 0, imm, flags);
}

/** SEND with the data in the WQE. */
static inline int
bb_post_send_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
		    uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_SEND, false, wr_id, data, len, 0, 0, 0, flags);
}

/** SEND_WITH_IMM with the data in the WQE. */
static inline int
bb_post_send_imm_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
			uint32_t imm, uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_SEND_IMM, false, wr_id, data, len, 0, 0, imm,
				 flags);
}

/**
 * SEND that also invalidates the peer's @p rkey, a type 2 window bound by the QP it arrives
 * at: before the completion of the receive (BB_WC_WITH_INV) nobody can use it any more. A key
 * that cannot be invalidated fails the receive and this request.
 */
static inline int
bb_post_send_inv(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
		 uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_SEND_INV, false, wr_id, sge, nsge, 0, 0,
			      bb_be32(rkey), flags);
}

/** The same with the data in the WQE. */
static inline int
bb_post_send_inv_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
			uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_SEND_INV, false, wr_id, data, len, 0, 0,
				 bb_be32(rkey), flags);
}

/**
 * If *raddr == @p compare then *raddr = @p swap; the old value lands in @p sge, of 8 bytes.
 * @p raddr must be a multiple of 8, else the post is refused (-EINVAL) and the QP stays as it is.
 * libibverbs posts such an atomic, and the responder refuses it (IBTA vol. 1, 9.4.5), which takes
 * the QP to ERR.
 */
static inline int
bb_post_cmp_swap(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint64_t raddr,
		 uint32_t rkey, uint64_t compare, uint64_t swap, uint32_t flags)
{
	return bb_sq_post_atomic(&qp->sq, BB_WQE_ATOMIC_CS, wr_id, sge, raddr, rkey, swap, compare,
				 flags);
}

/** *raddr += @p add; the old value lands in @p sge. Size and address as of bb_post_cmp_swap(). */
static inline int
bb_post_fetch_add(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint64_t raddr,
		  uint32_t rkey, uint64_t add, uint32_t flags)
{
	return bb_sq_post_atomic(&qp->sq, BB_WQE_ATOMIC_FA, wr_id, sge, raddr, rkey, add, 0, flags);
}

/**
 * CMP_SWAP under masks: if *raddr and @p compare agree in the bits of @p compare_mask,
 * the bits of @p swap_mask are taken from @p swap. The size is that of @p sge, one of
 * @ref bb_dev_attr masked_atomics; the old value lands there, in network order if
 * masked_atomics_be says so. @p raddr must be a multiple of the size (-EINVAL). With 8 bytes and a
 * max_sge below 3, a request takes the room of two. -ENOTSUP where the device has none is said by
 * the completion of the request and by bb_qp_post_list().
 */
static inline int
bb_post_masked_cmp_swap(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint64_t raddr,
			uint32_t rkey, uint64_t compare, uint64_t compare_mask, uint64_t swap,
			uint64_t swap_mask, uint32_t flags)
{
	return bb_sq_post_masked(&qp->sq, BB_WQE_ATOMIC_MASKED_CS, wr_id, sge, raddr, rkey, swap,
				 compare, swap_mask, compare_mask, flags);
}

/**
 * FETCH_ADD of several fields at once: a bit set in @p boundary is the highest bit of
 * a field, over which no carry passes. Size and result as of bb_post_masked_cmp_swap().
 */
static inline int
bb_post_masked_fetch_add(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint64_t raddr,
			 uint32_t rkey, uint64_t add, uint64_t boundary, uint32_t flags)
{
	return bb_sq_post_masked(&qp->sq, BB_WQE_ATOMIC_MASKED_FA, wr_id, sge, raddr, rkey, add,
				 boundary, 0, 0, flags);
}

/** Use bb_post_send_ud(): -EINVAL for no address handle or one of another PD, else 0. */
int bb_ah_refuse(struct bb_qp *qp, const struct bb_ah *ah);
/** Debug builds (BB_DEBUG) catch address handles that do not go with the QP. */
static inline int
bb_ah_check(struct bb_qp *qp, const struct bb_ah *ah)
{
#ifdef BB_DEBUG
	return bb_ah_refuse(qp, ah);
#else
	(void)qp;
	(void)ah;
	return 0;
#endif
}

/**
 * SEND a datagram to the UD queue pair @p dest_qpn at @p ah, which must be of the QP's
 * PD (debug builds refuse another, -EINVAL); at most an active MTU of the port. It is lost, and
 * this side completes, when the receiver has no receive posted, too short a one, or another Q_Key.
 * @param qkey the receiver's Q_Key; with the top bit set, the QP's own is sent instead
 */
static inline int
bb_post_send_ud(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
		const struct bb_ah *ah, uint32_t dest_qpn, uint32_t qkey, uint32_t flags)
{
	int bad = bb_ah_check(qp, ah);

	if (bad != 0)
		return bad;
	return bb_sq_post_ud(&qp->sq, BB_WQE_SEND, wr_id, &ah->av, dest_qpn, qkey, sge, nsge, 0,
			     flags);
}

/** SEND_WITH_IMM of a datagram. @p imm in network order. */
static inline int
bb_post_send_ud_imm(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
		    const struct bb_ah *ah, uint32_t dest_qpn, uint32_t qkey, uint32_t imm,
		    uint32_t flags)
{
	int bad = bb_ah_check(qp, ah);

	if (bad != 0)
		return bad;
	return bb_sq_post_ud(&qp->sq, BB_WQE_SEND_IMM, wr_id, &ah->av, dest_qpn, qkey, sge, nsge,
			     imm, flags);
}

/** SEND of a datagram with the data in the WQE. */
static inline int
bb_post_send_ud_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
		       const struct bb_ah *ah, uint32_t dest_qpn, uint32_t qkey, uint32_t flags)
{
	int bad = bb_ah_check(qp, ah);

	if (bad != 0)
		return bad;
	return bb_sq_post_ud_inline(&qp->sq, BB_WQE_SEND, wr_id, &ah->av, dest_qpn, qkey, data, len,
				    0, flags);
}

/** SEND_WITH_IMM of a datagram with the data in the WQE. */
static inline int
bb_post_send_ud_imm_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
			   const struct bb_ah *ah, uint32_t dest_qpn, uint32_t qkey, uint32_t imm,
			   uint32_t flags)
{
	int bad = bb_ah_check(qp, ah);

	if (bad != 0)
		return bad;
	return bb_sq_post_ud_inline(&qp->sq, BB_WQE_SEND_IMM, wr_id, &ah->av, dest_qpn, qkey, data,
				    len, imm, flags);
}

/** Completes in order and does nothing else. */
static inline int
bb_post_nop(struct bb_qp *qp, uint64_t wr_id, uint32_t flags)
{
	return bb_sq_post_nop(&qp->sq, wr_id, flags);
}

/** Post a receive. */
static inline int
bb_post_recv(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge)
{
	return bb_rq_post(&qp->rq, wr_id, sge, nsge);
}

/** Publish all sends posted since the last call: one doorbell. */
static inline void
bb_qp_ring(struct bb_qp *qp)
{
	bb_sq_ring(&qp->sq);
}

/**
 * Takes back every send posted since the last bb_qp_ring() (man ibv_wr_post: ibv_wr_abort()). Room,
 * signalling, numbers and dumps are as before those posts; none of them is executed or completes. A
 * window that one of them binds has its previous key, unless another queue pair bound it since.
 * Receives stay posted. Owner only; the cost grows with the sends that are outstanding.
 * @return 0, also if there is nothing to take back; -EINVAL no QP; -EPERM another thread, in debug
 *   builds; -ENOTSUP a device of the verbs driver, whose provider may have seen the requests; -EIO
 *   the ring was damaged from outside.
 */
int bb_qp_abort(struct bb_qp *qp);

/** Publish all receives posted since the last call. */
static inline void
bb_qp_ring_recv(struct bb_qp *qp)
{
	bb_rq_ring(&qp->rq);
}

/**
 * Take a CQE that is there and plain (bb_cqring_is_plain()).
 * @return 1 if @p wc was written, 0 if there is nothing to report, -1 if it is of no queue: then
 * nothing has been done.
 */
static inline int
bb_cq_take(struct bb_cq *cq, const struct bb_cqe *cqe, struct bb_wc *wc)
{
	const uint32_t uidx = bb_be32(cqe->srqn_uidx) & 0xffffff;
	struct bb_qp *qp = bb_likely(uidx <= cq->qps_mask) ? cq->qps[uidx] : NULL;
	const struct bb_sq_wqe *w;
	uint32_t what;

	BB_STATIC_ASSERT(offsetof(struct bb_wc, opcode) == offsetof(struct bb_wc, status) + 1 &&
				 offsetof(struct bb_wc, syndrome) ==
					 offsetof(struct bb_wc, status) + 3 &&
				 BB_WC_SUCCESS == 0,
			 "written together");
	BB_STATIC_ASSERT(offsetof(struct bb_sq_wqe, wc_opcode) ==
				 offsetof(struct bb_sq_wqe, flags) + 1,
			 "read together");
	if (bb_unlikely(qp == NULL))
		return -1;
	w = bb_sq_complete(&qp->sq, bb_be16(cqe->wqe_counter));
	memcpy(&what, &w->flags, sizeof(what));
	if (!(what & BB_SEND_SIGNALED))
		return 0;
	wc->wr_id = w->wr_id;
	wc->qp = qp;
	wc->byte_len = bb_be32(cqe->byte_cnt);
	/* Status, opcode, and no flags. */
	what &= 0xff00;
	memcpy(&wc->status, &what, sizeof(what));
	return 1;
}

/** Give back the CQEs from the ring's next to before @p ci, of which there are some. */
static inline void
bb_cq_taken(struct bb_cq *cq, uint64_t ci)
{
	bb_count_add(&cq->ring.ci, ci - cq->ring.ci);
	bb_cqring_update(&cq->ring);
}

/**
 * The rest of bb_cq_poll_ring() from a CQE of any kind on, the one numbered @p ci. @p done
 * completions have been written.
 */
unsigned int bb_cq_poll_rest(struct bb_cq *cq, struct bb_wc *wc, unsigned int n, unsigned int done,
			     uint64_t ci);

/** What bb_cq_poll() finds in the ring as it stands: it calls this. */
static inline unsigned int
bb_cq_poll_ring(struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	uint64_t ci = cq->ring.ci;
	const struct bb_cqe *cqe = bb_cqring_at(&cq->ring, ci);
	uint8_t own = bb_cqring_own(&cq->ring, cqe, ci);
	unsigned int done = 0;
	struct bb_wc *at = wc;

	/* Nothing is called and returns: no register is saved for it. */
	if (!bb_cqring_is_plain(own) || n == 0)
		return bb_cqring_is_there(own) ? bb_cq_poll_rest(cq, wc, n, 0, ci) : 0;
	do {
		int got;

		bb_dma_rmb();
		got = bb_cq_take(cq, cqe, at);
		if (bb_unlikely(got < 0))
			return bb_cq_poll_rest(cq, wc, n, done, ci);
		at += got;
		done += (unsigned int)got;
		ci++;
		if (done == n)
			break;
		cqe = bb_cqring_at(&cq->ring, ci);
		own = bb_cqring_own(&cq->ring, cqe, ci);
	} while (bb_cqring_is_plain(own));
	if (done != n && bb_unlikely(bb_cqring_is_there(own)))
		return bb_cq_poll_rest(cq, wc, n, done, ci);
	bb_cq_taken(cq, ci);
	return done;
}

/**
 * Take up to @p n completions. Unsignalled requests that succeeded are accounted
 * for and not reported; on an error every request of the queue is reported.
 * @return how many were written to @p wc.
 */
static inline unsigned int
bb_cq_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	if (cq->progress != NULL) {
		if (cq->poll != NULL)
			return cq->poll(cq, wc, n);
		cq->progress(cq->progress_arg);
	}
	return bb_cq_poll_ring(cq, wc, n);
}

/**
 * bb_cq_poll() that tells when the device wrote each completion, by the clock of
 * bb_dev_clock() (man ibv_wc_read_completion_ts). Errors have no time: 0. A call costs
 * more than bb_cq_poll().
 * @param ts @p n values.
 */
unsigned int bb_cq_poll_ts(struct bb_cq *cq, struct bb_wc *wc, uint64_t *ts, unsigned int n);

#ifdef __cplusplus
}
#endif

#endif
