/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The requester: decode a WQE, have it carried out, complete it.
 *
 * The bytes of a WQE are anybody's. It is copied out of the ring first, block by block
 * over the ring's end, so that checks and use see the same bytes, and what does not fit
 * the rules is refused with LOCAL_QP_OP (an inconsistent WQE, IBTA vol. 1, 10.10.2).
 * Which of the rules a card checks, and in which order, is [A] where a comment says so.
 */
#include "soft_data.h"

/* RNR NAK timer codes, in units of 10 us (IBTA vol. 1, table 45). */
static const uint32_t soft_rnr_10us[32] = {
	65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
	48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static uint8_t
soft_req_refuse(struct soft_req *r, uint8_t synd, const char *why)
{
	r->why = why;
	return synd;
}

/* Length of the payload and where its pieces are described; keys come later. */
static uint8_t
soft_req_pieces(struct soft_req *r, uint32_t seg, uint32_t ds, bool inline_ok, uint64_t *pointers)
{
	while (seg < ds) {
		uint8_t *s = r->wqe + (size_t)seg * BB_WQE_SEG;
		uint32_t count = soft_be32(s), i = r->n;

		if (count & BB_WQE_INLINE) {
			count &= ~BB_WQE_INLINE;
			if (!inline_ok)
				return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
						       "inline data where data comes in");
			if (count > (ds - seg) * BB_WQE_SEG - 4)
				return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
						       "inline data reaches beyond the WQE");
			seg += count == 0 ? 1 : bb_wqe_inline_ds(count);
			if (count == 0)
				continue;
			r->piece[i].p = s + 4;
			r->piece[i].len = count;
		} else {
			*pointers |= 1ull << i;
			r->piece[i].p = s;
			r->piece[i].len = count == 0 ? BB_WQE_MAX_SGE_LEN : count;
			seg++;
		}
		r->d.len += r->piece[i].len;
		r->n = i + 1;
	}
	return 0;
}

uint8_t
soft_req_decode(struct soft_engine *e, struct soft_req *r, const struct soft_qp *qp, uint16_t idx,
		uint32_t avail)
{
	uint32_t mask = (1u << qp->log_sq) - 1, w0, w1, ds, blocks, i, seg;
	enum soft_right right = SOFT_RIGHT_LOCAL_READ;
	uint64_t pointers = 0;
	uint8_t synd;

	memcpy(r->wqe, qp->sq + ((size_t)(idx & mask) << 6), BB_WQE_BB);
	w0 = soft_be32(r->wqe);
	w1 = soft_be32(r->wqe + 4);
	ds = w1 & 0xff;
	blocks = bb_wqe_blocks(ds);
	r->d.idx = idx;
	r->d.blocks = 1;
	r->d.opcode = (uint8_t)w0;
	r->d.fm_ce_se = r->wqe[11];
	r->d.len = 0;
	r->d.psn = qp->sq_psn;
	r->d.packets = 1;
	r->d.reads = 0;
	r->n = 0;
	if (unlikely(ds == 0 || ds > BB_WQE_MAX_DS))
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP, "ds is not 1 to 63 segments");
	if (unlikely(blocks > avail))
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
				       "the WQE reaches beyond the doorbell record");
	r->d.blocks = (uint16_t)blocks;
	if (unlikely((w0 >> 8 & 0xffff) != idx))
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
				       "the WQE's index is not the queue's block counter");
	if (unlikely(w1 >> 8 != qp->qpn))
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP, "the WQE names another QP");
	if (unlikely(w0 >> 24 != 0))
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP, "opmod is not 0");
	for (i = 1; i < blocks; i++)
		memcpy(r->wqe + i * BB_WQE_BB, qp->sq + ((size_t)((idx + i) & mask) << 6),
		       BB_WQE_BB);
	/* Holds the compiler to the copy: the ring may change under our eyes. */
	bb_dma_rmb();

	memcpy(&r->imm, r->wqe + 12, sizeof(r->imm));
	seg = 2;
	switch (r->d.opcode) {
	case BB_WQE_NOP:
		return 0;
	case BB_WQE_SEND:
	case BB_WQE_SEND_IMM:
		seg = 1;
		break;
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_WRITE_IMM:
		break;
	case BB_WQE_RDMA_READ:
		right = SOFT_RIGHT_LOCAL_WRITE;
		break;
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
		if (qp->dev->opts.no_atomic)
			return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP, "the device has no atomics");
		/* One piece: that more are refused is [A]. */
		if (ds != 4)
			return soft_req_refuse(
				r, BB_SYN_LOCAL_QP_OP,
				"an atomic is 4 segments: ctrl, raddr, atomic, data");
		r->swap_add = soft_be64(r->wqe + 32);
		r->compare = soft_be64(r->wqe + 40);
		seg = 3;
		right = SOFT_RIGHT_LOCAL_WRITE;
		break;
	default:
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP, "unknown opcode");
	}
	if (seg != 1) {
		if (unlikely(ds < seg))
			return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
					       "the remote address segment is missing");
		r->raddr = soft_be64(r->wqe + 16);
		r->rkey = soft_be32(r->wqe + 24);
	}
	synd = soft_req_pieces(r, seg, ds, right == SOFT_RIGHT_LOCAL_READ, &pointers);
	if (unlikely(synd != 0))
		return synd;

	if (seg == 3) {
		if (unlikely(r->d.len != 8))
			return soft_req_refuse(r, BB_SYN_LOCAL_LENGTH,
					       "an atomic's local piece is not 8 bytes");
	} else if (r->d.len != 0) {
		if (unlikely(r->d.len > 1ull << qp->log_msg_max))
			return soft_req_refuse(r, BB_SYN_LOCAL_LENGTH,
					       "the message is longer than the QP's maximum");
		r->d.packets = (uint32_t)((r->d.len + qp->mtu - 1) >> __builtin_ctz(qp->mtu));
	}
	while (pointers != 0) {
		struct soft_piece *p = &r->piece[__builtin_ctzll(pointers)];
		const uint8_t *s = p->p;

		p->p = soft_mem_find(e, qp->dev, soft_be32(s + 4), qp->pdn, soft_be64(s + 8),
				     p->len, right, &r->why);
		if (unlikely(p->p == NULL))
			return BB_SYN_LOCAL_PROT;
		pointers &= pointers - 1;
	}
	return 0;
}

static void
soft_req_count(struct soft_qp *qp, uint8_t synd)
{
	switch (synd) {
	case BB_SYN_LOCAL_LENGTH:
		SOFT_COUNT(qp, req_local_length);
		break;
	case BB_SYN_LOCAL_QP_OP:
		SOFT_COUNT(qp, local_operation);
		break;
	case BB_SYN_LOCAL_PROT:
		SOFT_COUNT(qp, req_local_prot);
		break;
	case BB_SYN_REMOTE_INVAL_REQ:
		SOFT_COUNT(qp, req_remote_invalid);
		break;
	case BB_SYN_REMOTE_ACCESS:
		SOFT_COUNT(qp, req_remote_access);
		break;
	case BB_SYN_REMOTE_OP:
		SOFT_COUNT(qp, req_remote_op);
		break;
	case BB_SYN_RETRY_EXC:
		SOFT_COUNT(qp, retry_exceeded);
		break;
	case BB_SYN_RNR_RETRY_EXC:
		SOFT_COUNT(qp, rnr_retry_exceeded);
		break;
	default:
		break;
	}
}

/* The WQE failed: its CQE, then the QP goes to ERR. */
static void
soft_req_fail(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d, uint8_t synd,
	      const char *why)
{
	SOFT_LOG(ERR, "%s QP 0x%x WQE %u (opcode 0x%x, %" PRIu64 " bytes): syndrome 0x%02x, %s",
		 e->dev->name, qp->qpn, d->idx, d->opcode, d->len, synd, why);
	soft_req_count(qp, synd);
	soft_cqe_error(e, qp, false, d->idx, d->opcode, synd);
	qp->sq_ci = (uint16_t)(qp->sq_ci + d->blocks);
	soft_qp_fail(qp, 0);
}

/* The WQE succeeded. */
static inline void
soft_req_complete(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	/* The next message's payload shall not be seen before this one's. */
	bb_dma_wmb();
	qp->sq_psn = (d->psn + d->packets) & SOFT_PSN_MASK;
	qp->sq_ci = (uint16_t)(qp->sq_ci + d->blocks);
	qp->retries_left = qp->retry_count;
	qp->rnr_left = qp->rnr_retry;
	if (!(d->fm_ce_se & BB_WQE_CE_CQE))
		return;
	if (unlikely(qp->early_cqe))
		qp->early_cqe = false;
	else if (unlikely(!soft_cqe_req(e, qp, d)))
		soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
}

static void
soft_req_silence(struct soft_engine *e, struct soft_qp *qp)
{
	qp->wait = SOFT_WAIT_ACK;
	qp->reads_in_burst = 0;
	/* 0: no timer, wait for ever (IBTA vol. 1, 9.7.6.1.3). */
	if (qp->ack_timeout != 0)
		soft_qp_timer(e, qp, 4096ull << qp->ack_timeout);
}

static const char *
soft_nak_text(uint32_t synd)
{
	switch (synd) {
	case BB_SYN_REMOTE_INVAL_REQ:
		return "the peer calls the request invalid (its line above says why)";
	case BB_SYN_REMOTE_ACCESS:
		return "the peer refuses the access (its line above says why)";
	case BB_SYN_REMOTE_OP:
		return "the peer failed to carry it out (its line above says why)";
	default:
		return "the WQE changed while the peer worked on it";
	}
}

/* Act on the answer to the WQE at sq_ci. */
static void
soft_req_finish(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		struct soft_answer ans)
{
	switch (ans.kind) {
	case SOFT_ACK:
		soft_req_complete(e, qp, d);
		break;
	case SOFT_NAK:
		soft_req_fail(e, qp, d, (uint8_t)ans.code, soft_nak_text(ans.code));
		break;
	case SOFT_NAK_RNR:
		SOFT_COUNT(qp, rnr_nak_retry);
		if (qp->rnr_retry != 7) {
			if (qp->rnr_left == 0) {
				soft_req_fail(e, qp, d, BB_SYN_RNR_RETRY_EXC,
					      "the peer posted no receive in time");
				break;
			}
			qp->rnr_left--;
		}
		qp->wait = SOFT_WAIT_RNR;
		qp->reads_in_burst = 0;
		soft_qp_timer(e, qp, soft_rnr_10us[ans.code & 31] * 10000ull);
		break;
	case SOFT_NAK_SEQ:
		/* The NAK comes back at once, and so does the next one. */
		SOFT_COUNT(qp, packet_seq_err);
		if (qp->retries_left == 0)
			soft_req_fail(
				e, qp, d, BB_SYN_RETRY_EXC,
				"its PSN is ahead of what the peer expects: sq_psn must be the "
				"peer's rq_psn");
		else
			qp->retries_left--;
		break;
	default:
		soft_req_silence(e, qp);
		break;
	}
}

/* READs and atomics that a card would have under way, counting this one. */
static inline uint32_t
soft_req_reads(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	bool fence = d->fm_ce_se >> 5 >= 2; /* fm 2 to 4; 1 orders behind a UMR only */

	if (unlikely(fence) && !soft_defect(e, SOFT_DEFECT_NO_FENCE))
		qp->reads_in_burst = 0;
	if (d->opcode != BB_WQE_RDMA_READ && d->opcode != BB_WQE_ATOMIC_CS &&
	    d->opcode != BB_WQE_ATOMIC_FA)
		return 0;
	/* At the limit the requester waits for the oldest one. */
	if (qp->reads_in_burst < 1u << qp->log_sra_max)
		qp->reads_in_burst++;
	return qp->reads_in_burst;
}

/* Defects of the requester. True: leave the WQE for now. */
static bool
soft_req_defect(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	if (qp->early_cqe || d->opcode == BB_WQE_NOP || !(d->fm_ce_se & BB_WQE_CE_CQE) ||
	    !soft_defect(e, SOFT_DEFECT_EARLY_CQE))
		return false;
	soft_cqe_req(e, qp, d);
	qp->early_cqe = true;
	soft_qp_queue(e, qp);
	return true;
}

/* One WQE. */
static inline void
soft_req_one(struct soft_engine *e, struct soft_qp *qp)
{
	struct soft_req *r = &e->req;
	struct soft_answer ans;
	struct soft_qp *peer;
	uint8_t synd;

	synd = soft_req_decode(e, r, qp, qp->sq_ci, (uint16_t)(qp->sq_pi - qp->sq_ci));
	if (unlikely(synd != 0)) {
		soft_req_fail(e, qp, &r->d, synd, r->why);
		return;
	}
	if (unlikely(qp->bf_bad)) {
		qp->bf_bad = false;
		if (qp->bf_idx == r->d.idx) {
			soft_req_fail(e, qp, &r->d, BB_SYN_LOCAL_QP_OP,
				      "the BlueFlame copy is not what the ring says");
			return;
		}
	}
	if (r->d.opcode == BB_WQE_NOP) {
		r->d.packets = 0;
		soft_req_complete(e, qp, &r->d);
		return;
	}
	r->d.reads = soft_req_reads(e, qp, &r->d);
	peer = soft_resp_find(qp);
	if (unlikely(peer == NULL)) {
		soft_req_silence(e, qp);
		return;
	}
	ans = soft_resp_execute(e, peer, qp, r);
	if (likely(ans.kind == SOFT_ACK)) {
		soft_req_complete(e, qp, &r->d);
		return;
	}
	if (ans.kind == SOFT_OWNER && soft_msg_send(qp, peer, &r->d) == 0) {
		qp->wait = SOFT_WAIT_PEER;
		soft_qp_timer(e, qp, SOFT_PEER_CHECK_NS);
		return;
	}
	if (unlikely(ans.kind == SOFT_NAK_RNR && soft_defect(e, SOFT_DEFECT_RNR_LOST)))
		ans.kind = SOFT_ACK;
	soft_req_finish(e, qp, &r->d, ans);
}

void
soft_req_run(struct soft_engine *e, struct soft_qp *qp)
{
	bool plain = e->dev->opts.defect == SOFT_DEFECT_NONE && !qp->bf_bad;
	uint32_t budget = SOFT_RUN_WQES;

	while (qp->sq_ci != qp->sq_pi) {
		if (unlikely(qp->state != BB_PRM_QP_RTS || qp->wait != SOFT_WAIT_NONE))
			return;
		if (budget == 0) {
			soft_qp_queue(e, qp);
			return;
		}
		if (likely(plain)) {
			uint32_t n = soft_req_fast(e, qp, budget);

			budget -= n;
			if (n != 0)
				continue;
		}
		budget--;
		if (unlikely(e->dev->opts.defect == SOFT_DEFECT_EARLY_CQE) &&
		    soft_req_decode(e, &e->req, qp, qp->sq_ci, (uint16_t)(qp->sq_pi - qp->sq_ci)) ==
			    0 &&
		    soft_req_defect(e, qp, &e->req.d))
			return;
		soft_req_one(e, qp);
	}
	qp->reads_in_burst = 0;
}

void
soft_req_answer(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		struct soft_answer ans)
{
	if (unlikely(qp->state == BB_PRM_QP_ERR)) {
		/* It failed for another reason meanwhile: tell this WQE's fate if known. */
		if (ans.kind == SOFT_ACK)
			soft_req_complete(e, qp, d);
		else if (ans.kind == SOFT_NAK)
			soft_req_fail(e, qp, d, (uint8_t)ans.code, soft_nak_text(ans.code));
		soft_qp_flush(e, qp);
		return;
	}
	soft_req_finish(e, qp, d, ans);
	soft_req_run(e, qp);
}

void
soft_req_timeout(struct soft_engine *e, struct soft_qp *qp)
{
	enum soft_qp_wait why = qp->wait;

	if (why == SOFT_WAIT_PEER) {
		if (soft_msg_target_lives(qp) || !soft_msg_cancel(qp)) {
			soft_qp_timer(e, qp, SOFT_PEER_CHECK_NS);
			return;
		}
		qp->wait = SOFT_WAIT_NONE;
		if (qp->state == BB_PRM_QP_ERR)
			soft_qp_flush(e, qp);
		else
			soft_req_silence(e, qp);
		return;
	}
	qp->wait = SOFT_WAIT_NONE;
	if (why == SOFT_WAIT_ACK) {
		SOFT_COUNT(qp, ack_timeout);
		if (qp->retries_left == 0) {
			soft_req_decode(e, &e->req, qp, qp->sq_ci,
					(uint16_t)(qp->sq_pi - qp->sq_ci));
			soft_req_fail(
				e, qp, &e->req.d, BB_SYN_RETRY_EXC,
				"the peer does not answer: is it in RTR or RTS, and connected "
				"to this QP?");
			return;
		}
		qp->retries_left--;
	}
	soft_req_run(e, qp);
}
