/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Translation of CQEs that are not the plain success of a send: receives, errors, and CQEs that
 * belong to no QP.
 */
#include <string.h>

#include "bb_core.h"
#include "bb_post.h"
#include "bb_scatter.h"

/*
 * Data bytes that a CQE can hold. The data occupy the CQE's first half, which has other fields in
 * CQEs without data.
 */
#define CQE_DATA offsetof(struct bb_cqe, srqn_uidx)

/*
 * Logs what failed and what to check, once between two resets. Flush errors are not logged, so a QP
 * that the application itself moved to ERR logs nothing.
 */
static void
error_explain(struct bb_qp *qp, const struct bb_cqe *cqe, const struct bb_wc *wc, bool send)
{
	if (qp->ctrl->error_logged || wc->status == BB_WC_WR_FLUSH_ERR)
		return;
	qp->ctrl->error_logged = true;
	BB_LOG(ERR, "QP 0x%x: %s (syndrome 0x%02x, vendor 0x%02x): %s", qp->qpn,
	       bb_wc_status_name(wc->status), wc->syndrome, wc->vendor_err,
	       bb_wc_status_cause(wc->status, wc->vendor_err));
	bb_qp_error_record(qp, wc, send, bb_be16(cqe->wqe_counter));
}

/*
 * Handles a CQE that belongs to no existing queue, which means a fault of the device or a bug of
 * the library.
 */
static int
stray(struct bb_cq *cq, const struct bb_cqe *cqe, const char *why)
{
	bb_count_add(&cq->ctrl->purged, 1);
	if (!cq->ctrl->stray_logged)
		BB_LOG(WARNING,
		       "CQ 0x%x: dropped a CQE: %s (opcode %u, user index 0x%x, WQE counter %u)",
		       cq->cqn, why, cqe->op_own >> 4, bb_be32(cqe->srqn_uidx) & 0xffffff,
		       bb_be16(cqe->wqe_counter));
	cq->ctrl->stray_logged = true;
	return 0;
}

/*
 * Sets the status after data from the CQE was copied to the buffers. @left is the number of bytes
 * that did not fit; overflow is first detected here (libmlx5 reports the same status).
 */
static void
scatter_status(struct bb_wc *wc, uint32_t left)
{
	if (left != 0)
		wc->status = BB_WC_LOC_LEN_ERR;
}

static bool
has_data(const struct bb_cqe *cqe, const struct bb_wc *wc)
{
	return wc->status == BB_WC_SUCCESS &&
	       (cqe->op_own & BB_CQE_FORMAT_MASK) == BB_CQE_SCATTER_32;
}

/* Returns the number of data bytes in the CQE. A CQE cannot hold more than CQE_DATA. */
static uint32_t
data_len(const struct bb_cqe *cqe)
{
	uint32_t len = bb_be32(cqe->byte_cnt);

	return len < CQE_DATA ? len : CQE_DATA;
}

/*
 * Returns true if the request returns data, so that the library may write to the WQE's buffers. The
 * WQEs of other requests have inline data instead of buffers, or buffers that are only read.
 */
static bool
returns_data(uint8_t wc_opcode)
{
	return wc_opcode == BB_WC_RDMA_READ || wc_opcode == BB_WC_CMP_SWAP ||
	       wc_opcode == BB_WC_FETCH_ADD;
}

void
bb_qp_send_failed(struct bb_qp *qp, uint32_t seq)
{
	struct bb_qp_ctrl *ctrl = qp->ctrl;

	if (ctrl->send_failed)
		return;
	ctrl->failed_seq = bb_sq_seq64(&qp->sq, seq);
	__atomic_store_n(&ctrl->send_failed, true, __ATOMIC_RELEASE);
	/*
	 * The caller then counts the send as complete by a relaxed store. This barrier orders the
	 * store of failed_seq before that store.
	 */
	bb_smp_wmb();
}

/*
 * Completes the sends that a CQE of the send queue covers. The caller has set wc->status. Returns 1
 * if the poll must report @wc, else 0.
 */
static int
send_done(struct bb_cq *cq, struct bb_qp *qp, const struct bb_cqe *cqe, struct bb_wc *wc)
{
	const struct bb_sq_wqe *w;
	uint32_t behind;

	if (qp->sq.wqes == NULL)
		return stray(cq, cqe, "the QP has no send queue");
	w = &qp->sq.wqes[bb_be16(cqe->wqe_counter) & qp->sq.mask];
	behind = w->seq - qp->sq.done;
	if (behind == 0 || behind > bb_sq_outstanding(&qp->sq))
		return stray(cq, cqe, "it names a WQE that is not outstanding");
	if (has_data(cqe, wc)) {
		if (!qp->ctrl->init.scatter_to_cqe || !returns_data(w->wc_opcode))
			return stray(cq, cqe, "it contains data for a request that returns none");
		scatter_status(
			wc, bb_sq_scatter(&qp->sq, bb_be16(cqe->wqe_counter), cqe, data_len(cqe)));
	}
	if (wc->status != BB_WC_SUCCESS)
		bb_qp_send_failed(qp, w->seq);
	(void)bb_sq_complete(&qp->sq, bb_be16(cqe->wqe_counter));
	if (w->wc_opcode == BB_SQ_OWN ||
	    (wc->status == BB_WC_SUCCESS && !(w->flags & BB_SEND_SIGNALED)))
		return 0;
	wc->wr_id = w->wr_id;
	wc->opcode = w->wc_opcode;
	return 1;
}

static int
srq_done(struct bb_cq *cq, struct bb_srq *srq, const struct bb_cqe *cqe, struct bb_wc *wc)
{
	uint16_t idx = bb_be16(cqe->wqe_counter);

	if (!bb_srqring_complete(&srq->ring, idx, &wc->wr_id))
		return stray(cq, cqe, "it names a receive of the SRQ that is not outstanding");
	/*
	 * The WQE was returned to the SRQ, but no post overwrites it before this function returns.
	 */
	if (has_data(cqe, wc))
		scatter_status(wc, bb_srqring_scatter(&srq->ring, idx, cqe, data_len(cqe)));
	srq->ctrl->completed++;
	return 1;
}

static int
recv_done(struct bb_cq *cq, struct bb_qp *qp, const struct bb_cqe *cqe, struct bb_wc *wc)
{
	if (qp->ctrl->init.srq != NULL)
		return srq_done(cq, qp->ctrl->init.srq, cqe, wc);
	if (qp->rq.pi == qp->rq.ci)
		return stray(cq, cqe, "no receive is outstanding");
	if (has_data(cqe, wc)) {
		/*
		 * If no receive is posted at this index, the WQE has no buffers, or those of an old
		 * receive. So its buffers must not be written.
		 */
		if ((uint16_t)(bb_be16(cqe->wqe_counter) - qp->rq.ci) >=
		    (uint16_t)(qp->rq.pi - qp->rq.ci))
			return stray(cq, cqe,
				     "it contains data for a receive that is not "
				     "outstanding");
		scatter_status(
			wc, bb_rq_scatter(&qp->rq, bb_be16(cqe->wqe_counter), cqe, data_len(cqe)));
	}
	wc->wr_id = bb_rq_complete(&qp->rq, bb_be16(cqe->wqe_counter));
	return 1;
}

/*
 * Vendor syndromes of a receive CQE with BB_SYN_REMOTE_ABORTED on a QP with an SRQ: a page was
 * missing (mlx5dv.h: MLX5_CQE_VENDOR_SYNDROME_ODP_PFAULT), or a packet had a wrong PSN (UCX,
 * ib_mlx5.h: UCT_IB_MLX5_CQE_VENDOR_SYND_PSN).
 */
#define VENDOR_ODP_PFAULT 0x93
#define VENDOR_PSN        0x99

/*
 * Returns true if the device took a receive from the SRQ without a message. libmlx5 hides such a
 * CQE if a page was missing (rdma-core, providers/mlx5/cq.c: is_odp_pfault_err()). UCX releases the
 * receive in both cases (uct_rc_mlx5_iface_check_rx_completion(),
 * uct_rc_verbs_iface_poll_rx_common()).
 */
static bool
is_aborted(const struct bb_qp *qp, const struct bb_wc *wc)
{
	return qp->ctrl->init.srq != NULL && wc->syndrome == BB_SYN_REMOTE_ABORTED &&
	       (wc->vendor_err == VENDOR_ODP_PFAULT || wc->vendor_err == VENDOR_PSN);
}

/*
 * Tells the device that the slots of all CQEs up to and including @cqe are free, before the poll
 * does. The caller has read them all. The device may then write new CQEs there, so a poll can take
 * more CQEs than the ring has: the consumer index must move with each release.
 */
static void
release_early(struct bb_cqring *cq, const struct bb_cqe *cqe)
{
	const uint64_t idx = (uint64_t)(cqe - (const struct bb_cqe *)(const void *)cq->buf);

	bb_cqring_seek(cq, cq->ci + ((idx - cq->ci) & cq->mask) + 1);
	bb_cqring_update(cq);
}

/*
 * Posts a receive of an SRQ again that the device took without a message. The receive gets another
 * WQE. Its old WQE becomes the last free one, because the kernel may still read that WQE to find
 * the missing page (rdma-core: mlx5_complete_odp_fault()).
 */
static int
srq_repost(struct bb_cq *cq, const struct bb_qp *qp, const struct bb_cqe *cqe)
{
	struct bb_srqring *srq = &qp->ctrl->init.srq->ring;
	const uint16_t idx = bb_be16(cqe->wqe_counter);
	struct bb_wqe_srq_next *to;
	uint64_t wr_id;
	uint32_t head;

	if (!bb_srqring_complete(srq, idx, &wr_id))
		return stray(cq, cqe, "it names a receive of the SRQ that is not outstanding");
	head = srq->head & srq->mask;
	to = bb_srqring_wqe(srq, head);
	srq->head = bb_be16(to->next_wqe_index);
	memcpy(to + 1, bb_srqring_wqe(srq, idx) + 1, (1u << srq->log_stride) - sizeof(*to));
	srq->wr_ids[head] = wr_id;
	srq->held[head] = 1;
	srq->pi++;
	/* A recovery must keep the CQEs of other QPs. It rings after it has freed the slot. */
	if (qp->ctrl->recovery.begun)
		return 0;
	/* The receive may complete at once, and a full CQ then needs the slot of this CQE. */
	release_early(&cq->ring, cqe);
	bb_srqring_ring(srq);
	return 0;
}

/*
 * Returns the status to record for a failed send: see bb_qp_ctrl.send_error. The peer may have
 * executed later requests of an RC QP if
 * - the error is local: it may have been found when the request was sent again, or in the response
 *   of a READ or an atomic;
 * - the request is a READ: the peer reads the memory when it sends the response, which may be after
 *   it has executed later requests.
 */
static uint8_t
send_error_of(const struct bb_qp *qp, const struct bb_wc *wc)
{
	const bool local = wc->status == BB_WC_LOC_LEN_ERR || wc->status == BB_WC_LOC_QP_OP_ERR ||
			   wc->status == BB_WC_LOC_PROT_ERR;

	if (qp->ctrl->init.type != BB_QPT_RC || (!local && wc->opcode != BB_WC_RDMA_READ))
		return wc->status;
	return BB_WC_GENERAL_ERR;
}

static int
error_done(struct bb_cq *cq, struct bb_qp *qp, const struct bb_cqe *cqe, struct bb_wc *wc,
	   bool send)
{
	wc->syndrome = bb_cqe_syndrome(cqe);
	wc->vendor_err = bb_cqe_vendor_syndrome(cqe);
	wc->status = (uint8_t)bb_wc_status_of(wc->syndrome);
	wc->opcode = BB_WC_RECV;
	if (!send && is_aborted(qp, wc))
		return srq_repost(cq, qp, cqe);
	bb_qp_failed(qp);
	bb_count_add(&cq->ctrl->errors, 1);
	if ((send ? send_done(cq, qp, cqe, wc) : recv_done(cq, qp, cqe, wc)) == 0)
		return 0;
	bb_count_add(&qp->ctrl->errors, 1);
	if (send && wc->status != BB_WC_WR_FLUSH_ERR && qp->ctrl->send_error == 0)
		qp->ctrl->send_error = send_error_of(qp, wc);
	error_explain(qp, cqe, wc, send);
	return 1;
}

/* Fills in the fields of @wc that describe the sender of a datagram. */
static void
datagram(const struct bb_cq *cq, const struct bb_cqe *cqe, struct bb_wc *wc)
{
	uint32_t from = bb_be32(cqe->flags_rqpn);

	wc->src_qp = from & BB_CQE_RQPN_QPN;
	if ((from & BB_CQE_RQPN_GRH) != 0)
		wc->flags |= BB_WC_GRH;
	if ((wc->flags & BB_WC_WITH_IMM) == 0)
		wc->pkey_index = (uint16_t)bb_be32(cqe->imm);
	/*
	 * On Ethernet there is no SL and no SLID, and the bits of the SL distinguish RoCE v1 from
	 * v2.
	 */
	if (cq->ctrl->dev->ethernet)
		return;
	wc->sl = from >> BB_CQE_RQPN_SL_SHIFT & 0xf;
	wc->slid = bb_be16(cqe->slid);
}

/*
 * Expands a block of compressed CQEs into full CQEs in the ring. The poll then reads these CQEs one
 * by one.
 */
static int
expand(struct bb_cq *cq, const struct bb_cqe *cqe)
{
	size_t at = (size_t)((const uint8_t *)cqe - cq->ring.buf);

	return bb_cqring_expand(&cq->ring, (struct bb_cqe *)(void *)(cq->ring.buf + at));
}

int
bb_cq_translate(struct bb_cq *cq, const struct bb_cqe *cqe, struct bb_wc *wc)
{
	uint32_t uidx = bb_be32(cqe->srqn_uidx) & 0xffffff;
	struct bb_qp *qp = uidx <= cq->qps_mask ? cq->qps[uidx] : NULL;
	uint8_t opcode = cqe->op_own >> 4;

	if (uidx == BB_CQE_NO_USER)
		return 0;
	if (bb_unlikely(bb_cqe_is_compressed(cqe)) && expand(cq, cqe) != 0)
		return stray(cq, cqe, "it begins a malformed block of compressed CQEs");
	if (qp == NULL)
		return stray(cq, cqe, "it belongs to no queue pair");
	memset(wc, 0, sizeof(*wc));
	wc->qp = qp;
	switch (opcode) {
	case BB_CQE_REQ:
		wc->byte_len = bb_be32(cqe->byte_cnt);
		return send_done(cq, qp, cqe, wc);
	case BB_CQE_RESP_WR_IMM:
	case BB_CQE_RESP_SEND_IMM:
		wc->imm = cqe->imm;
		wc->flags = BB_WC_WITH_IMM;
		break;
	case BB_CQE_RESP_SEND:
		break;
	case BB_CQE_RESP_SEND_INV:
		wc->imm = bb_be32(cqe->imm);
		wc->flags = BB_WC_WITH_INV;
		bb_mw_invalidated(qp->ctrl->pd->dev, wc->imm);
		break;
	case BB_CQE_REQ_ERR:
	case BB_CQE_RESP_ERR:
		return error_done(cq, qp, cqe, wc, opcode == BB_CQE_REQ_ERR);
	default:
		return stray(cq, cqe, "its opcode is unknown");
	}
	if (qp->ctrl->init.type == BB_QPT_UD)
		datagram(cq, cqe, wc);
	wc->opcode = opcode == BB_CQE_RESP_WR_IMM ? BB_WC_RECV_RDMA_IMM : BB_WC_RECV;
	wc->byte_len = bb_be32(cqe->byte_cnt);
	if (cqe->op_own & BB_CQE_SE)
		wc->flags |= BB_WC_SOLICITED;
	return recv_done(cq, qp, cqe, wc);
}

/*
 * Consumes the CQE of a SEND that an RC or UC QP received in its own receive queue, without data in
 * the CQE and without immediate data: the common receive. @own is the result of bb_cqring_own().
 * Returns false, without any change, if the CQE is of another kind; bb_cq_translate() then handles
 * it.
 */
static inline bool
take_recv(struct bb_cq *cq, const struct bb_cqe *cqe, uint8_t own, struct bb_wc *wc)
{
	const uint32_t uidx = bb_be32(cqe->srqn_uidx) & 0xffffff;
	struct bb_qp *qp;

	if ((own & ~BB_CQE_SE) != BB_CQE_RESP_SEND << 4 || uidx > cq->qps_mask)
		return false;
	qp = cq->qps[uidx];
	if (qp == NULL || !qp->rq.connected || qp->rq.pi == qp->rq.ci)
		return false;
	*wc = (struct bb_wc){
		.wr_id = bb_rq_complete(&qp->rq, bb_be16(cqe->wqe_counter)),
		.qp = qp,
		.byte_len = bb_be32(cqe->byte_cnt),
		.opcode = BB_WC_RECV,
		.flags = (own & BB_CQE_SE) != 0 ? BB_WC_SOLICITED : 0,
	};
	return true;
}

/* Continues bb_cq_poll_rest() at a CQE that needs bb_cq_translate(). */
static __attribute__((noinline)) unsigned int
poll_any(struct bb_cq *cq, struct bb_wc *wc, unsigned int n, unsigned int done, uint64_t ci)
{
	while (done < n) {
		const struct bb_cqe *cqe = bb_cqring_peek_at(&cq->ring, ci);
		int got;

		if (cqe == NULL)
			break;
		got = bb_cq_translate(cq, cqe, wc);
		wc += got;
		done += (unsigned int)got;
		ci++;
	}
	bb_cq_taken(cq, ci);
	return done;
}

unsigned int
bb_cq_poll_rest(struct bb_cq *cq, struct bb_wc *wc, unsigned int n, unsigned int done, uint64_t ci)
{
	const struct bb_cqe *cqe = bb_cqring_at(&cq->ring, ci);

	/*
	 * All functions but poll_any() are inlined. poll_any() is called last, so that no register
	 * is saved.
	 */
	while (done < n) {
		const uint8_t own = bb_cqe_own_load(&cqe->op_own) ^ cq->ring.lap;
		int got = -1;

		if (!bb_cqring_is_there(own))
			break;
		bb_dma_rmb();
		if (take_recv(cq, cqe, own, wc))
			got = 1;
		else if (bb_cqring_is_plain(own))
			got = bb_cq_take(cq, cqe, wc);
		if (got < 0)
			return poll_any(cq, wc, n, done, ci);
		wc += got;
		done += (unsigned int)got;
		ci++;
		cqe = bb_cqring_after(&cq->ring, cqe, ci);
	}
	bb_cqring_release(&cq->ring, cqe, ci);
	return done;
}

unsigned int
bb_cq_poll_device(struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	cq->progress(cq->progress_arg);
	return bb_cq_poll_ring(cq, wc, n);
}

unsigned int
bb_cq_poll_ts(struct bb_cq *cq, struct bb_wc *wc, uint64_t *ts, unsigned int n)
{
	unsigned int done = 0;
	uint64_t first, ci;

	if (cq->progress != NULL)
		cq->progress(cq->progress_arg);
	first = cq->ring.ci;
	ci = first;
	while (done < n) {
		const struct bb_cqe *cqe = bb_cqring_peek_at(&cq->ring, ci);
		uint64_t time;

		if (cqe == NULL)
			break;
		time = bb_be64(cqe->timestamp);
		ci++;
		if (bb_cq_translate(cq, cqe, &wc[done]) == 0)
			continue;
		/* An error CQE has no time stamp, because the syndromes occupy this field. */
		ts[done] = wc[done].status == BB_WC_SUCCESS ? time : 0;
		done++;
	}
	if (ci != first)
		bb_cq_taken(cq, ci);
	return done;
}
