/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * The data path: post, ring, poll. Inline; no lock, allocation or system call.
 *
 * Return values:
 *
 * - A single post returns 0 when its request is queued. It returns -EAGAIN when the queue is full:
 *   ring, poll, then post again. It returns another negative errno when the request can never be
 *   posted; the log says why. After an error no part of the request is in the queue. Flags are the
 *   last argument.
 * - A poll and a list of posts (bb_wr.h, bb_mbuf.h) return the number of entries done. A smaller
 *   number than requested means that there was no further entry, or no room. @p err of a list
 *   reports a request that can never be posted.
 *
 * The device sees a post only after bb_qp_ring(). Only the thread that owns the queue may post,
 * ring and poll.
 *
 * A full send queue always gets room again, because at least one request in the queue asks for a
 * CQE. Masked atomics, binds, invalidations and key layouts take the room of several requests. So a
 * queue may have too little room for one of these although no request in the queue asks for a CQE.
 * The library then posts a NOP that asks for a CQE, and rings the NOP if all requests before the
 * NOP were rung. That NOP takes the room of one request, and no poll reports its completion.
 *
 * An operation that the QP's type does not support is rejected (-EINVAL; the table is in bb_op.h).
 * FENCE has no effect on a QP that is not RC. SOLICITED has no effect with an operation that
 * consumes no receive. The device ignores both flags in these cases; bb_qp_post_list() of bb_wr.h
 * rejects such a request.
 *
 * BB_SEND_INLINE is a flag of bb_wr.h. A post of this header that takes SGEs sends registered
 * memory, which must not change before the completion. Code that is not optimized rejects the flag
 * (-EINVAL). Optimized code rejects a constant flag, and ignores another one. To copy the data into
 * the WQE, call the function *_inline().
 *
 * Posts do not check whether the device supports an operation, as bb_dev_query() reports it:
 * atomics, immediate data on iWARP, a READ of more than max_read_sge SGEs. An unsupported request
 * is queued and completes with BB_WC_LOC_QP_OP_ERR or another error, which moves the QP to ERR. On
 * devices of the verbs driver the log names the unsupported operation. bb_qp_post_list() rejects
 * such a request with -ENOTSUP.
 *
 * Sources: man ibv_post_send, ibv_post_recv, ibv_poll_cq.
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

/** Posts an RDMA_WRITE of a gather list to @p raddr. */
static inline __attribute__((always_inline)) int
bb_post_write(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
	      uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_RDMA_WRITE, true, wr_id, sge, nsge, raddr, rkey, 0,
			      flags);
}

/**
 * Posts an RDMA_WRITE_WITH_IMM, which also consumes a receive of the peer. @p imm is in network
 * byte order.
 */
static inline int
bb_post_write_imm(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
		  uint64_t raddr, uint32_t rkey, uint32_t imm, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_RDMA_WRITE_IMM, true, wr_id, sge, nsge, raddr, rkey,
			      imm, flags);
}

/**
 * Posts an RDMA_WRITE with the data in the WQE, so the caller may reuse @p data when the call
 * returns.
 */
static inline __attribute__((always_inline)) int
bb_post_write_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
		     uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_RDMA_WRITE, true, wr_id, data, len, raddr, rkey, 0,
				 flags);
}

/** Posts an RDMA_WRITE_WITH_IMM with the data in the WQE. */
static inline int
bb_post_write_imm_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
			 uint64_t raddr, uint32_t rkey, uint32_t imm, uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_RDMA_WRITE_IMM, true, wr_id, data, len, raddr,
				 rkey, imm, flags);
}

/** Posts an RDMA_READ from @p raddr into a scatter list, whose MRs need LOCAL_WRITE. */
static inline __attribute__((always_inline)) int
bb_post_read(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
	     uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_RDMA_READ, true, wr_id, sge, nsge, raddr, rkey, 0,
			      flags);
}

/** Posts a SEND of a gather list into a receive of the peer. */
static inline int
bb_post_send(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
	     uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_SEND, false, wr_id, sge, nsge, 0, 0, 0, flags);
}

/** Posts a SEND_WITH_IMM. @p imm is in network byte order. */
static inline int
bb_post_send_imm(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
		 uint32_t imm, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_SEND_IMM, false, wr_id, sge, nsge, 0, 0, imm, flags);
}

/** Posts a SEND with the data in the WQE. */
static inline int
bb_post_send_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
		    uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_SEND, false, wr_id, data, len, 0, 0, 0, flags);
}

/** Posts a SEND_WITH_IMM with the data in the WQE. */
static inline int
bb_post_send_imm_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
			uint32_t imm, uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_SEND_IMM, false, wr_id, data, len, 0, 0, imm,
				 flags);
}

/**
 * Posts a SEND that also invalidates @p rkey at the peer. The rkey must be that of a type 2 window
 * that was bound by the QP at which the SEND arrives. The key is invalid before the peer's receive
 * completes (BB_WC_WITH_INV). If the peer cannot invalidate the key, both the receive and this
 * request fail.
 */
static inline int
bb_post_send_inv(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
		 uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_sgl(&qp->sq, BB_WQE_SEND_INV, false, wr_id, sge, nsge, 0, 0,
			      bb_be32(rkey), flags);
}

/** Posts a SEND that invalidates @p rkey, with the data in the WQE. */
static inline int
bb_post_send_inv_inline(struct bb_qp *qp, uint64_t wr_id, const void *data, uint32_t len,
			uint32_t rkey, uint32_t flags)
{
	return bb_sq_post_inline(&qp->sq, BB_WQE_SEND_INV, false, wr_id, data, len, 0, 0,
				 bb_be32(rkey), flags);
}

/**
 * Posts a CMP_SWAP: if *raddr equals @p compare, *raddr becomes @p swap. The old value is written
 * to @p sge, whose length must be 8 bytes. @p raddr must be a multiple of 8, otherwise the post is
 * rejected (-EINVAL) and the QP is unchanged. libibverbs would post such an atomic; the responder
 * then rejects it (IBTA vol. 1, 9.4.5), which moves the QP to ERR.
 */
static inline __attribute__((always_inline)) int
bb_post_cmp_swap(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint64_t raddr,
		 uint32_t rkey, uint64_t compare, uint64_t swap, uint32_t flags)
{
	return bb_sq_post_atomic(&qp->sq, BB_WQE_ATOMIC_CS, wr_id, sge, raddr, rkey, swap, compare,
				 flags);
}

/**
 * Posts a FETCH_ADD: *raddr += @p add. The old value is written to @p sge. The rules of
 * bb_post_cmp_swap() for size and address apply.
 */
static inline __attribute__((always_inline)) int
bb_post_fetch_add(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint64_t raddr,
		  uint32_t rkey, uint64_t add, uint32_t flags)
{
	return bb_sq_post_atomic(&qp->sq, BB_WQE_ATOMIC_FA, wr_id, sge, raddr, rkey, add, 0, flags);
}

/**
 * Posts a masked CMP_SWAP: if *raddr and @p compare agree in the bits of @p compare_mask, the bits
 * of @p swap_mask are taken from @p swap. The operand size is the length of @p sge and must be one
 * of @ref bb_dev_attr masked_atomics. The old value is written to @p sge, in network byte order if
 * masked_atomics_be contains the size. @p raddr must be a multiple of the size, otherwise -EINVAL.
 * If the size is 8 and the QP's max_sge is below 3, a request takes the room of two. Without device
 * support the request completes with an error, and bb_qp_post_list() returns -ENOTSUP.
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
 * Posts a FETCH_ADD on several fields at once. A bit set in @p boundary is the highest bit of a
 * field; no carry crosses it. The rules of bb_post_masked_cmp_swap() for size and result apply.
 */
static inline int
bb_post_masked_fetch_add(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint64_t raddr,
			 uint32_t rkey, uint64_t add, uint64_t boundary, uint32_t flags)
{
	return bb_sq_post_masked(&qp->sq, BB_WQE_ATOMIC_MASKED_FA, wr_id, sge, raddr, rkey, add,
				 boundary, 0, 0, flags);
}

/**
 * Checks the address handle of bb_post_send_ud() and logs an error; programs do not call this
 * function. Returns 0, or -EINVAL if @p ah is NULL or belongs to another PD than the QP.
 */
int bb_ah_refuse(struct bb_qp *qp, const struct bb_ah *ah);
/** Checks in debug builds (BB_DEBUG) that the address handle fits the QP. */
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
 * Posts a SEND of a datagram to UD queue pair @p dest_qpn at @p ah. The handle must belong to the
 * QP's PD (debug builds return -EINVAL otherwise). The data may have at most the active MTU of the
 * port. The receiver drops the datagram if no receive is posted there, if the receive is too short,
 * or if the Q_Key is wrong. The request completes successfully in these cases too.
 * @param qkey the receiver's Q_Key; with the top bit set, the QP's own Q_Key is sent instead
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

/** Posts a SEND_WITH_IMM of a datagram. @p imm is in network byte order. */
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

/** Posts a SEND of a datagram with the data in the WQE. */
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

/** Posts a SEND_WITH_IMM of a datagram with the data in the WQE. */
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

/** Posts a NOP, which completes in order and has no other effect. */
static inline int
bb_post_nop(struct bb_qp *qp, uint64_t wr_id, uint32_t flags)
{
	return bb_sq_post_nop(&qp->sq, wr_id, flags);
}

/** Posts a receive with a scatter list. bb_qp_ring_recv() passes the receive to the device. */
static inline __attribute__((always_inline)) int
bb_post_recv(struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge)
{
	return bb_rq_post(&qp->rq, wr_id, sge, nsge);
}

/** Passes to the device, with one doorbell, all sends that were posted since the last call. */
static inline void
bb_qp_ring(struct bb_qp *qp)
{
	bb_sq_ring(&qp->sq);
}

/**
 * Removes from the queue every send that was posted since the last bb_qp_ring() (man ibv_wr_post:
 * ibv_wr_abort()). No removed send is executed or completes. Room, signalling, statistics and dumps
 * are as before these posts. A window with a removed bind gets its previous key again, unless
 * another queue pair has bound the window since. Receives stay posted. Only the owner may call this
 * function. The cost grows with the number of outstanding sends.
 * @return 0, also if there is no send to remove; -EINVAL if @p qp is NULL; -EPERM if the caller is
 * not the owner (debug builds only); -ENOTSUP on a device of the verbs driver, because its provider
 * may have read the requests already; -EIO if the memory of the ring was overwritten.
 */
int bb_qp_abort(struct bb_qp *qp);

/** Passes to the device all receives that were posted since the last call. */
static inline void
bb_qp_ring_recv(struct bb_qp *qp)
{
	bb_rq_ring(&qp->rq);
}

/**
 * Consumes a plain CQE (bb_cqring_is_plain()).
 * @return 1 if @p wc was written; 0 if the CQE completes only unsignalled requests, which are not
 * reported; -1, without any change, if bb_cq_translate() must consume the CQE.
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
	w = bb_sq_complete(&qp->sq, bb_cqe_wqe_counter(cqe));
	memcpy(&what, &w->flags, sizeof(what));
	if (!(what & BB_SEND_SIGNALED))
		return 0;
	wc->wr_id = w->wr_id;
	wc->qp = qp;
	wc->byte_len = bb_be32(cqe->byte_cnt);
	/* Keep only wc_opcode, which goes to wc->opcode. status and the other bytes become 0. */
	what &= 0xff00;
	memcpy(&wc->status, &what, sizeof(what));
	return 1;
}

/**
 * Frees the CQEs from the ring's consumer index up to but not including @p ci, which is larger than
 * the consumer index.
 */
static inline void
bb_cq_taken(struct bb_cq *cq, uint64_t ci)
{
	bb_cqring_seek(&cq->ring, ci);
	bb_cqring_update(&cq->ring);
}

/**
 * Continues bb_cq_poll_ring() at CQE number @p ci, which need not be a plain CQE. The caller has
 * already written @p done completions to the entries before @p wc.
 */
unsigned int bb_cq_poll_rest(struct bb_cq *cq, struct bb_wc *wc, unsigned int n, unsigned int done,
			     uint64_t ci);

/**
 * Polls the ring without running the device; part of bb_cq_poll().
 */
static inline __attribute__((always_inline)) unsigned int
bb_cq_poll_ring(struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	const struct bb_cqe *cqe = cq->ring.next;
	uint8_t own = bb_cqe_own_load(&cqe->op_own) ^ cq->ring.lap;
	uint64_t ci = cq->ring.ci;
	unsigned int done = 0;

	/* Both calls on this path are tail calls, so that no register is saved. */
	if (!bb_cqring_is_plain(own) || n == 0)
		return bb_cqring_is_there(own) ? bb_cq_poll_rest(cq, wc, n, 0, ci) : 0;
	do {
		int got;

		bb_dma_rmb();
		got = bb_cq_take(cq, cqe, wc);
		if (bb_unlikely(got < 0))
			return bb_cq_poll_rest(cq, wc, n, done, ci);
		wc += got;
		done += (unsigned int)got;
		ci++;
		cqe = bb_cqring_after(&cq->ring, cqe, ci);
		if (done == n)
			break;
		own = bb_cqe_own_load(&cqe->op_own) ^ cq->ring.lap;
	} while (bb_unlikely(bb_cqring_is_plain(own)));
	if (done != n && bb_unlikely(bb_cqring_is_there(own)))
		return bb_cq_poll_rest(cq, wc, n, done, ci);
	bb_cqring_release(&cq->ring, cqe, ci);
	return done;
}

/** Runs the device and polls the ring; part of bb_cq_poll(). */
unsigned int bb_cq_poll_device(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);

/**
 * Consumes up to @p n completions. The call frees the room of unsignalled requests that succeeded,
 * but does not report them. After an error every request of the queue is reported.
 * @return the number of completions written to @p wc.
 */
static inline __attribute__((always_inline)) unsigned int
bb_cq_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	/* All calls are tail calls, so that no register is saved. */
	if (cq->progress != NULL)
		return cq->poll != NULL ? cq->poll(cq, wc, n) : bb_cq_poll_device(cq, wc, n);
	return bb_cq_poll_ring(cq, wc, n);
}

/**
 * Polls as bb_cq_poll() does, and also returns the time at which the device wrote each completion,
 * by the clock of bb_dev_clock() (man ibv_wc_read_completion_ts). Errors have time 0. A call costs
 * more than bb_cq_poll().
 * @param ts array of @p n times, in ticks of that clock.
 */
unsigned int bb_cq_poll_ts(struct bb_cq *cq, struct bb_wc *wc, uint64_t *ts, unsigned int n);

#ifdef __cplusplus
}
#endif

#endif
