/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CQEs that are not a plain success of a send: receives, errors, strays. */
#include <rte_log.h>

#include "bb_core.h"
#include "bb_post.h"

/*
 * Say once in a QP's life what failed and what to look at. A queue that the
 * application itself moved to ERR only flushes: nothing to explain.
 */
static void
error_explain(struct bb_qp *qp, const struct bb_cqe *cqe, const struct bb_wc *wc, bool send)
{
	uint16_t counter = bb_be16(cqe->wqe_counter);
	char wqe[640];

	if (qp->ctrl->error_logged || wc->status == BB_WC_WR_FLUSH_ERR)
		return;
	qp->ctrl->error_logged = true;
	if (send)
		bb_wqe_dump(wqe, sizeof(wqe), qp->sq.buf, qp->sq.mask + 1, counter);
	else
		bb_recv_wqe_dump(wqe, sizeof(wqe),
				 qp->rq.buf +
					 ((size_t)(counter & qp->rq.mask) << qp->rq.log_stride),
				 1u << qp->rq.log_stride);
	BB_LOG(ERR, "QP 0x%x: %s (syndrome 0x%02x, vendor 0x%02x): %s", qp->qpn,
	       bb_wc_status_name(wc->status), wc->syndrome, wc->vendor_err,
	       bb_wc_status_cause(wc->status, wc->vendor_err));
	BB_LOG(ERR, "QP 0x%x: the %s was %s", qp->qpn, send ? "request" : "receive", wqe);
}

/* A CQE that no living queue explains: a device gone wrong, or a bug of ours. */
static int
stray(struct bb_cq *cq, const struct bb_cqe *cqe, const char *why)
{
	cq->ctrl->purged++;
	if (!cq->ctrl->stray_logged)
		BB_LOG(WARNING, "CQE dropped, %s: opcode %u, user index 0x%x, WQE counter %u", why,
		       cqe->op_own >> 4, bb_be32(cqe->srqn_uidx) & 0xffffff,
		       bb_be16(cqe->wqe_counter));
	cq->ctrl->stray_logged = true;
	return 0;
}

/* A completion of the send queue, good or bad; wc->status is set. */
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
	(void)bb_sq_complete(&qp->sq, bb_be16(cqe->wqe_counter));
	if (wc->status == BB_WC_SUCCESS && !(w->flags & BB_SEND_SIGNALED))
		return 0;
	wc->wr_id = w->wr_id;
	wc->opcode = bb_wc_opcode_of(w->opcode);
	return 1;
}

static int
recv_done(struct bb_cq *cq, struct bb_qp *qp, const struct bb_cqe *cqe, struct bb_wc *wc)
{
	if (qp->rq.pi == qp->rq.ci)
		return stray(cq, cqe, "no receive is outstanding");
	wc->wr_id = bb_rq_complete(&qp->rq, bb_be16(cqe->wqe_counter));
	qp->ctrl->recv_done++;
	return 1;
}

static int
error_done(struct bb_cq *cq, struct bb_qp *qp, const struct bb_cqe *cqe, struct bb_wc *wc,
	   bool send)
{
	wc->syndrome = bb_cqe_syndrome(cqe);
	wc->vendor_err = bb_cqe_vendor_syndrome(cqe);
	wc->status = (uint8_t)bb_wc_status_of(wc->syndrome);
	wc->opcode = BB_WC_RECV;
	/* The device has left RTS by itself. Posts go on: they are flushed. */
	/* Atomic, as bb_event_get() may do the same from another thread. */
	__atomic_store_n(&qp->state, BB_QP_ERR, __ATOMIC_RELAXED);
	cq->ctrl->errors++;
	if ((send ? send_done(cq, qp, cqe, wc) : recv_done(cq, qp, cqe, wc)) == 0)
		return 0;
	qp->ctrl->errors++;
	error_explain(qp, cqe, wc, send);
	return 1;
}

int
bb_cq_translate(struct bb_cq *cq, const struct bb_cqe *cqe, struct bb_wc *wc)
{
	uint32_t uidx = bb_be32(cqe->srqn_uidx) & 0xffffff;
	struct bb_qp *qp = uidx <= cq->qps_mask ? cq->qps[uidx] : NULL;
	uint8_t opcode = cqe->op_own >> 4;

	if (uidx == BB_CQE_NO_USER)
		return 0;
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
	case BB_CQE_RESP_SEND_INV:
		break;
	case BB_CQE_REQ_ERR:
	case BB_CQE_RESP_ERR:
		return error_done(cq, qp, cqe, wc, opcode == BB_CQE_REQ_ERR);
	default:
		return stray(cq, cqe, "its opcode is not known");
	}
	wc->opcode = opcode == BB_CQE_RESP_WR_IMM ? BB_WC_RECV_RDMA_IMM : BB_WC_RECV;
	wc->byte_len = bb_be32(cqe->byte_cnt);
	if (cqe->op_own & 2)
		wc->flags |= BB_WC_SOLICITED;
	return recv_done(cq, qp, cqe, wc);
}
