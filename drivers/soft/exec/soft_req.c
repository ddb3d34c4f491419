/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The requester: passes decoded WQEs to the responder for execution, and completes them. */
#include "bb_roce_pkt.h"
#include "soft_fast.h"
#include "soft_host.h"
#include "soft_seeded.h"
#include "soft_ud.h"

/* Number of WQEs by which the prefetch is ahead of the execution. */
#define PREFETCH_DISTANCE 6u

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

void
soft_req_fail(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d, uint8_t synd,
	      const char *why)
{
	SOFT_LOG(ERR,
		 "%s QP 0x%x WQE %u (opcode 0x%x, %" PRIu64 " bytes) failed: syndrome 0x%02x, %s",
		 e->dev->name, qp->qpn, d->idx, d->opcode, d->len, synd, why);
	soft_req_count(qp, synd);
	if ((d->fm_ce_se & BB_WQE_CE_CQE) != 0 || !soft_defect(e, SOFT_DEFECT_QUIET_ERROR))
		soft_cqe_error(e, qp, false, d->idx, d->opcode, synd);
	qp->sq_ci = (uint16_t)(qp->sq_ci + d->blocks);
	soft_qp_fail(qp, 0);
}

/* Completes a WQE that succeeded: writes its CQE if the WQE is signaled, and advances the queue. */
static inline void
soft_req_complete(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	/* The payload of this message must become visible before that of the next message. */
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

void
soft_req_done(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	soft_req_complete(e, qp, d);
}

/*
 * Handles a request that gets neither ACK nor NAK. An RC request waits for its ack timeout. UC and
 * UD expect no ACK, so their requests complete.
 */
static void
soft_req_silence(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	if (qp->st != BB_PRM_QP_ST_RC) {
		soft_req_complete(e, qp, d);
		return;
	}
	qp->wait = SOFT_WAIT_ACK;
	qp->reads_in_burst = 0;
	/*
	 * An ack timeout of 0 means that the requester waits without limit (IBTA vol. 1,
	 * 9.7.6.1.3).
	 */
	if (qp->ack_timeout != 0)
		soft_qp_timer(e, qp, 4096ull << qp->ack_timeout);
}

/*
 * Starts the ack timer of a request that is sent to another engine. An ack timeout of 0 sets no
 * limit.
 */
static void
soft_peer_timer(struct soft_engine *e, struct soft_qp *qp)
{
	uint64_t ns = SOFT_PEER_UC_NS;

	if (qp->st == BB_PRM_QP_ST_RC)
		ns = RTE_MAX(4096ull << qp->ack_timeout, (uint64_t)SOFT_PEER_CHECK_NS);
	qp->peer_until = qp->st == BB_PRM_QP_ST_RC && qp->ack_timeout == 0
				 ? SOFT_NO_DEADLINE
				 : soft_ticks(e->dev) + soft_time_cycles(ns);
}

const char *
soft_nak_text(uint32_t synd)
{
	switch (synd) {
	case BB_SYN_REMOTE_INVAL_REQ:
		return "the peer rejected the request as invalid (the peer logs the reason)";
	case BB_SYN_REMOTE_ACCESS:
		return "the peer rejected the access to its memory (the peer logs the reason)";
	case BB_SYN_REMOTE_OP:
		return "the peer failed to execute the request (the peer logs the reason)";
	default:
		return "the application changed the WQE before its completion";
	}
}

/*
 * Repeats the request after SOFT_PF_NS, because a page is missing. A card sends RNR NAKs for such
 * requests; it is an assumption [A] that they do not count as retries.
 */
static void
soft_req_park(struct soft_engine *e, struct soft_qp *qp)
{
	qp->wait = SOFT_WAIT_RNR;
	qp->reads_in_burst = 0;
	soft_qp_timer(e, qp, SOFT_PF_NS);
}

bool
soft_req_faulted(const struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		 uint8_t synd)
{
	bool response = d->opcode == BB_WQE_RDMA_READ || soft_is_atomic(d->opcode);
	struct soft_page_fault fault = {
		.type = SOFT_PF_REQUESTER | (response ? SOFT_PF_WRITE : 0),
		.packet = (uint16_t)RTE_MIN(d->len, (uint64_t)qp->mtu),
		.wq = qp->qpn,
		.wqe_index = d->idx,
	};

	return synd == BB_SYN_LOCAL_PROT && e->key_fault == SOFT_KEY_PAGE &&
	       soft_pf_wait(qp, &fault);
}

/*
 * Handles the result of the WQE at sq_ci: an ACK, a NAK, or a reason to try again.
 */
static void
soft_req_finish(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		struct soft_response ans)
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
				soft_req_fail(
					e, qp, d, BB_SYN_RNR_RETRY_EXC,
					"the peer posted no receive before the RNR retries ran "
					"out");
				break;
			}
			qp->rnr_left -= soft_opts_defect(&e->dev->opts) != SOFT_DEFECT_RETRY_FREE;
		}
		qp->rnr_retries++;
		qp->wait = SOFT_WAIT_RNR;
		qp->reads_in_burst = 0;
		soft_qp_timer(e, qp, bb_roce_rnr_ns(ans.code));
		break;
	case SOFT_NAK_SEQ:
		/*
		 * Without packets, the NAK of a repeated request arrives at once. So the retries
		 * run out without delay.
		 */
		SOFT_COUNT(qp, packet_seq_err);
		if (qp->retries_left == 0) {
			soft_req_fail(
				e, qp, d, BB_SYN_RETRY_EXC,
				"the request's PSN is ahead of the PSN that the peer expects: set "
				"sq_psn to the peer's rq_psn");
			break;
		}
		qp->retries_left--;
		qp->retries++;
		break;
	case SOFT_FAULTED:
		soft_req_park(e, qp);
		break;
	case SOFT_BUSY:
		/*
		 * Tries again at once: other threads use the key only for a moment, or the decoder
		 * finds the missing page and waits.
		 */
		break;
	default:
		soft_req_silence(e, qp, d);
		break;
	}
}

/*
 * Returns the number of READs and atomics that a card would have outstanding, including the request
 * of @d.
 */
static inline uint32_t
soft_req_reads(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	bool fence = d->fm_ce_se >> 5 >= 2; /* values 2 to 4 are fences; 1 only waits for a UMR */

	if (unlikely(fence) && !soft_defect(e, SOFT_DEFECT_NO_FENCE))
		qp->reads_in_burst = 0;
	if (d->opcode != BB_WQE_RDMA_READ && !soft_is_atomic(d->opcode))
		return 0;
	/* At the limit a card waits for its oldest READ or atomic, so the number stays the same. */
	if (qp->reads_in_burst < 1u << qp->log_sra_max)
		qp->reads_in_burst++;
	return qp->reads_in_burst;
}

/* Applies the seeded defects of the requester. Returns true if the WQE must wait. */
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

/* Executes a UMR in this engine. If the key is in use, the WQE waits for the next turn. */
static void
soft_req_umr(struct soft_engine *e, struct soft_qp *qp, struct soft_req *r)
{
	uint8_t synd = soft_umr_execute(qp, r);

	if (synd == SOFT_SYN_AGAIN)
		return;
	if (synd != 0) {
		soft_req_fail(e, qp, &r->d, synd, r->why);
		return;
	}
	r->d.packets = 0;
	soft_req_complete(e, qp, &r->d);
}

/*
 * Completes a request that was sent, if the QP is still in RTS. A QP that sends to itself may have
 * gone to ERR while its own request was executed.
 */
static void
soft_req_gone(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d)
{
	if (qp->state == BB_PRM_QP_RTS)
		soft_req_complete(e, qp, d);
}

static inline void
soft_req_try(struct soft_engine *e, struct soft_qp *qp)
{
	struct soft_req *r = &e->req;
	struct soft_response ans;
	struct soft_qp *peer;
	uint8_t synd;

	synd = soft_req_decode(e, r, qp, qp->sq_ci, (uint16_t)(qp->sq_pi - qp->sq_ci));
	if (unlikely(synd != 0)) {
		if (soft_req_faulted(e, qp, &r->d, synd))
			soft_req_park(e, qp);
		else
			soft_req_fail(e, qp, &r->d, synd, r->why);
		return;
	}
	soft_umr_pass(qp, &r->d);
	if (unlikely(r->d.opcode == BB_WQE_UMR)) {
		soft_req_umr(e, qp, r);
		return;
	}
	if (r->d.opcode == BB_WQE_NOP) {
		r->d.packets = 0;
		soft_req_complete(e, qp, &r->d);
		return;
	}
	if (unlikely(soft_opts_defect(&e->dev->opts) != SOFT_DEFECT_NONE))
		soft_defect_request(e, qp, r);
	r->d.reads = soft_req_reads(e, qp, &r->d);
	e->packets_left -= r->d.packets;
	if (unlikely(qp->st == BB_PRM_QP_ST_UD)) {
		soft_ud_send(e, qp, r);
		soft_req_gone(e, qp, &r->d);
		return;
	}
	peer = soft_resp_find(qp);
	if (unlikely(peer == NULL)) {
		soft_req_silence(e, qp, &r->d);
		return;
	}
	ans = soft_resp_execute(e, peer, qp, r);
	if (unlikely(peer == qp && qp->st != BB_PRM_QP_ST_RC && ans.kind == SOFT_ACK)) {
		soft_req_gone(e, qp, &r->d);
		return;
	}
	if (likely(ans.kind == SOFT_ACK)) {
		soft_req_complete(e, qp, &r->d);
		return;
	}
	if (ans.kind == SOFT_OWNER && soft_msg_send(qp, peer, &r->d) == 0) {
		qp->wait = SOFT_WAIT_PEER;
		soft_peer_timer(e, qp);
		soft_qp_timer(e, qp, SOFT_PEER_CHECK_NS);
		return;
	}
	if (unlikely(ans.kind == SOFT_NAK_RNR && soft_defect(e, SOFT_DEFECT_RNR_LOST)))
		ans.kind = SOFT_ACK;
	soft_req_finish(e, qp, &r->d, ans);
}

/* Executes the WQE at the head of the queue, unless the option fault applies to it. */
static void
soft_req_one(struct soft_engine *e, struct soft_qp *qp)
{
	if (unlikely(e->dev->opts.fault != SOFT_FAULT_NONE) && soft_fault(e, qp))
		return;
	soft_req_try(e, qp);
	soft_keys_done(e);
}

/*
 * Executes at most @budget plain RDMA WRITEs from the head of the queue on the fast path. Returns
 * the number of WQEs executed.
 */
static inline uint32_t
soft_req_fast(struct soft_engine *e, struct soft_qp *qp, uint32_t budget)
{
	const uint32_t mask = (1u << qp->log_sq) - 1, posted = (uint16_t)(qp->sq_pi - qp->sq_ci);
	struct soft_fast_run r;
	uint32_t at = 0, blocks;

	if (unlikely(!soft_fast_begin(&r, qp, budget)))
		return 0;
	do {
		/*
		 * Prefetches a later WQE, which may be in another core's cache. One pass of this
		 * loop is too long for the CPU to load that WQE early by itself.
		 */
		if (at + PREFETCH_DISTANCE < posted)
			rte_prefetch0(qp->sq + ((size_t)((r.ci + PREFETCH_DISTANCE) & mask) << 6));
		blocks = soft_fast_one(e, &r, qp, qp->sq + ((size_t)(r.ci & mask) << 6),
				       posted - at);
		if (unlikely(blocks == 0))
			break;
		at += blocks;
	} while (at != posted && r.done < r.limit && likely(r.alive));
	return soft_fast_end(e, &r, qp, r.done, 0);
}

/* Returns true if the WQE at the head of the queue is a READ or a SEND. */
static inline bool
soft_req_head_is_more(const struct soft_qp *qp)
{
	const uint8_t *b = soft_wqe_at(qp, qp->sq_ci);
	const uint8_t opcode = __atomic_load_n(&b[3], __ATOMIC_RELAXED);

	return opcode == BB_WQE_RDMA_READ || opcode == BB_WQE_SEND;
}

/* Returns true if the fast path executes the WQEs of the QP as soft_req_decode() would. */
static inline bool
soft_req_plain(const struct soft_engine *e, const struct soft_qp *qp)
{
	return e->plain && !qp->bf_differs;
}

/*
 * Executes WQEs that soft_req_fast() does not support, at most @budget. The first WQE is one of
 * them. Returns the rest of @budget if soft_req_fast() may support the next WQE, or 0 if the turn
 * of the QP has ended.
 */
static __rte_noinline uint32_t
soft_req_run_slow(struct soft_engine *e, struct soft_qp *qp, uint32_t budget)
{
	const bool plain = soft_req_plain(e, qp);
	bool first = true;

	/* The stored BlueFlame copy belongs to a WQE that was already executed, so it is stale. */
	if (unlikely(qp->bf_differs) && (uint16_t)(qp->sq_ci - qp->bf_idx - 1) < 0x8000)
		qp->bf_differs = false;
	for (; qp->sq_ci != qp->sq_pi; first = false) {
		if (unlikely(qp->state != BB_PRM_QP_RTS || qp->wait != SOFT_WAIT_NONE))
			return 0;
		if (budget == 0 || unlikely(e->packets_left <= 0)) {
			qp->umr_index = 0;
			soft_qp_queue(e, qp);
			return 0;
		}
		/*
		 * The fast path does not know which WQEs must wait for a UMR; soft_req_decode()
		 * does.
		 */
		if (likely(plain && qp->umr_index == 0)) {
			if (soft_req_head_is_more(qp)) {
				uint32_t n = soft_req_more(e, qp, budget);

				budget -= n;
				if (n != 0)
					continue;
			} else if (!first) {
				return budget;
			}
		}
		budget--;
		e->packets_left--;
		if (unlikely(soft_opts_defect(&e->dev->opts) == SOFT_DEFECT_EARLY_CQE) &&
		    soft_req_decode(e, &e->req, qp, qp->sq_ci, (uint16_t)(qp->sq_pi - qp->sq_ci)) ==
			    0 &&
		    soft_req_defect(e, qp, &e->req.d)) {
			soft_keys_done(e);
			return 0;
		}
		soft_req_one(e, qp);
	}
	qp->umr_index = 0;
	qp->reads_in_burst = 0;
	return 0;
}

void
soft_req_run(struct soft_engine *e, struct soft_qp *qp)
{
	uint32_t budget = SOFT_RUN_WQES;

	if (unlikely(e->packets_left <= 0)) {
		if (qp->state == BB_PRM_QP_RTS && qp->wait == SOFT_WAIT_NONE)
			soft_qp_queue(e, qp);
		return;
	}
	do {
		if (likely(soft_req_plain(e, qp) && qp->sq_ci != qp->sq_pi &&
			   qp->state == BB_PRM_QP_RTS && qp->wait == SOFT_WAIT_NONE &&
			   qp->umr_index == 0)) {
			budget -= soft_req_fast(e, qp, budget);
			if (likely(qp->sq_ci == qp->sq_pi)) {
				qp->reads_in_burst = 0;
				return;
			}
		}
		budget = soft_req_run_slow(e, qp, budget);
	} while (budget != 0);
}

void
soft_req_response(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		  struct soft_response ans)
{
	if (unlikely(qp->state == BB_PRM_QP_ERR)) {
		/*
		 * The QP failed for another reason while the peer executed this WQE. If the WQE
		 * succeeded, it completes with success.
		 */
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

/*
 * Called while a request waits at another engine. Returns true if the ack timeout and the retries
 * of its QP are used up. Each expired ack timeout counts as a retry, but the request is not sent
 * again. If the target polls, but executes other requests first, the ack timer starts again.
 */
static bool
soft_peer_gave_up(struct soft_engine *e, struct soft_qp *qp)
{
	if (qp->state == BB_PRM_QP_ERR || soft_ticks(e->dev) < qp->peer_until)
		return false;
	if (__atomic_exchange_n(&qp->msg->delayed, 0, __ATOMIC_RELAXED) != 0) {
		soft_peer_timer(e, qp);
		return false;
	}
	if (qp->st != BB_PRM_QP_ST_RC)
		return true;
	SOFT_COUNT(qp, ack_timeout);
	if (qp->retries_left == 0)
		return true;
	qp->retries_left -= soft_opts_defect(&e->dev->opts) != SOFT_DEFECT_RETRY_FREE;
	qp->retries++;
	soft_peer_timer(e, qp);
	return false;
}

/*
 * Extends the time limit of the request by the time in which this engine did not run. A stopped or
 * suspended process stops the peer's thread, too.
 */
static void
soft_peer_late(const struct soft_engine *e, struct soft_qp *qp)
{
	const uint64_t now = soft_ticks(e->dev);

	if (qp->peer_until != SOFT_NO_DEADLINE && now > qp->deadline)
		qp->peer_until += now - qp->deadline;
}

/* Handles the expired timer of a request that another engine has not yet executed. */
static void
soft_peer_check(struct soft_engine *e, struct soft_qp *qp)
{
	const bool lives = soft_msg_target_lives(qp);
	struct soft_done d = qp->msg->d;

	soft_peer_late(e, qp);
	if ((lives && !soft_peer_gave_up(e, qp)) || !soft_msg_cancel(qp)) {
		soft_qp_timer(e, qp, SOFT_PEER_CHECK_NS);
		return;
	}
	qp->wait = SOFT_WAIT_NONE;
	if (qp->state == BB_PRM_QP_ERR) {
		soft_qp_flush(e, qp);
		return;
	}
	if (lives && qp->st == BB_PRM_QP_ST_RC) {
		soft_req_fail(
			e, qp, &d, BB_SYN_RETRY_EXC,
			"the thread that owns the peer's QP does not run the peer's device: let "
			"that thread poll or call bb_dev_progress()");
		return;
	}
	soft_req_silence(e, qp, &d);
	if (qp->wait == SOFT_WAIT_NONE)
		soft_req_run(e, qp);
}

void
soft_req_timeout(struct soft_engine *e, struct soft_qp *qp)
{
	enum soft_qp_wait why = qp->wait;

	if (why == SOFT_WAIT_PEER) {
		soft_peer_check(e, qp);
		return;
	}
	qp->wait = SOFT_WAIT_NONE;
	if (why == SOFT_WAIT_ACK) {
		SOFT_COUNT(qp, ack_timeout);
		if (qp->retries_left == 0) {
			soft_req_decode(e, &e->req, qp, qp->sq_ci,
					(uint16_t)(qp->sq_pi - qp->sq_ci));
			soft_keys_done(e);
			soft_req_fail(
				e, qp, &e->req.d, BB_SYN_RETRY_EXC,
				"the peer did not respond: check that the peer's QP is in RTR or "
				"RTS and connected to this QP");
			return;
		}
		qp->retries_left -= soft_opts_defect(&e->dev->opts) != SOFT_DEFECT_RETRY_FREE;
		qp->retries++;
	}
	soft_req_run(e, qp);
}
