/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Posts requests and receives, and processes their completions. */
#include "perf.h"

static int
posted(struct perf *p, struct perf_qp *q, bool signaled, int rc)
{
	if (likely(rc == 0)) {
		p->posted++;
		q->posted++;
		if (signaled)
			q->signaled = q->posted;
	}
	if (likely(rc == 0 || rc == -EAGAIN))
		return rc;
	say("message %" PRIu64 " cannot be posted: %s; the lines above say why", q->posted,
	    strerror(-rc));
	return -1;
}

static uint64_t
wr_id(const struct perf_qp *q, uint64_t number)
{
	return (uint64_t)q->index << WR_QP_SHIFT | number;
}

int
perf_post(struct perf *p, struct perf_qp *q, bool signaled)
{
	uint32_t off = msg_slot_offset(&p->layout, q->posted), size = p->size,
		 flags = signaled ? BB_SEND_SIGNALED : 0;
	uint64_t id = wr_id(q, q->posted + 1), to = q->peer.vaddr + off;
	const uint8_t *from = q->src + off;
	struct bb_sge sge = {(uint64_t)(uintptr_t)from, size, p->mr->lkey};
	bool in_wqe = size <= p->o.max_inline;
	int rc;

	switch (p->o.proto->verb) {
	case VERB_WRITE:
		if (in_wqe)
			rc = bb_post_write_inline(q->qp, id, from, size, to, q->peer.rkey, flags);
		else
			rc = bb_post_write(q->qp, id, &sge, 1, to, q->peer.rkey, flags);
		break;
	case VERB_READ:
		rc = bb_post_read(q->qp, id, &sge, 1, to, q->peer.rkey, flags);
		break;
	case VERB_ATOMIC:
		if (p->o.cmp_swap)
			rc = bb_post_cmp_swap(q->qp, id, &sge, to, q->peer.rkey, 0, 0, flags);
		else
			rc = bb_post_fetch_add(q->qp, id, &sge, to, q->peer.rkey, 1, flags);
		break;
	default:
		if (is_ud(p) && in_wqe)
			rc = bb_post_send_ud_inline(q->qp, id, from, size, q->ah, q->peer.addr.qpn,
						    PERF_QKEY, flags);
		else if (is_ud(p))
			rc = bb_post_send_ud(q->qp, id, &sge, 1, q->ah, q->peer.addr.qpn, PERF_QKEY,
					     flags);
		else if (in_wqe)
			rc = bb_post_send_inline(q->qp, id, from, size, flags);
		else
			rc = bb_post_send(q->qp, id, &sge, 1, flags);
	}
	return posted(p, q, signaled, rc);
}

static uint8_t *
recv_slot(const struct perf *p, const struct perf_qp *q, uint64_t n)
{
	return q->in + (size_t)(n % p->recv_slots) * p->recv_step;
}

static int
post_recvs(struct perf *p, struct perf_qp *q)
{
	struct bb_sge sge = {.len = p->size + (is_ud(p) ? UD_GRH : 0), .lkey = p->mr->lkey};
	uint64_t before = q->recv_posted;
	int rc;

	while (q->recv_posted - q->recv_done < p->recv_slots && q->recv_posted < p->o.iters) {
		sge.addr = (uint64_t)(uintptr_t)recv_slot(p, q, q->recv_posted);
		rc = bb_post_recv(q->qp, WR_RECV | wr_id(q, q->recv_posted), &sge, 1);
		if (rc == -EAGAIN)
			break;
		if (rc != 0) {
			say("receive %" PRIu64 " cannot be posted: %s", q->recv_posted,
			    strerror(-rc));
			return -1;
		}
		q->recv_posted++;
	}
	if (q->recv_posted != before)
		bb_qp_ring_recv(q->qp);
	return 0;
}

int
perf_post_recvs(struct perf *p)
{
	uint32_t i;

	/*
	 * The client of a bandwidth test in one direction needs no receives. With --all it posts
	 * none, because receives of an earlier size would stay in the queue.
	 */
	if (p->o.all && p->o.proto->bandwidth && is_client(p) && !p->o.bidirectional)
		return 0;
	for (i = 0; i < p->o.qps; i++)
		if (post_recvs(p, &p->qps[i]) != 0)
			return -1;
	return 0;
}

static int
failed(struct perf *p, const struct bb_wc *wc)
{
	char text[BB_ERROR_TEXT_MAX];
	bool recv = (wc->wr_id & WR_RECV) != 0;

	/* These are the errors of requests to a peer that has closed its queue pair. */
	if ((wc->status == BB_WC_RETRY_EXC_ERR || wc->status == BB_WC_WR_FLUSH_ERR) &&
	    window_cut(p))
		return 0;
	say("%s %" PRIu64 " of %" PRIu64 " completed with \"%s\", syndrome 0x%02x, vendor syndrome "
	    "0x%02x: %s%s",
	    recv ? "receive" : "request", wc->wr_id & WR_NUMBER, p->o.iters,
	    bb_wc_status_name(wc->status), wc->syndrome, wc->vendor_err,
	    bb_wc_status_cause(wc->status, wc->vendor_err),
	    wc->status == BB_WC_LOC_LEN_ERR || wc->status == BB_WC_REM_INV_REQ_ERR ||
			    wc->status == BB_WC_REM_ACCESS_ERR
		    ? " Is the peer's --size the same?"
		    : "");
	/* The text includes the failed WQE and the access that its keys allow. */
	if (bb_qp_error_text(wc->qp, text, sizeof(text)) > 0)
		fputs(text, stderr);
	return -1;
}

static int
received(struct perf *p, struct perf_qp *q, const struct bb_wc *wc)
{
	uint32_t grh = is_ud(p) ? UD_GRH : 0, few;
	uint64_t n = q->recv_done;

	if (unlikely((wc->wr_id & WR_NUMBER) != n || wc->opcode != BB_WC_RECV || wc->qp != q->qp)) {
		say("receive %" PRIu64 " completed out of order: receive %" PRIu64 " was expected",
		    wc->wr_id & WR_NUMBER, n);
		return -1;
	}
	if (unlikely(wc->byte_len != p->size + grh)) {
		say("message %" PRIu64
		    " of the peer has %u bytes, not %u; give the same -s to both "
		    "ends",
		    n, wc->byte_len - grh, p->size);
		return -1;
	}
	p->last_msg = recv_slot(p, q, n) + grh;
	if (p->o.check && p->o.proto->verb == VERB_SEND && check_message(p, q, n, p->last_msg) != 0)
		return -1;
	q->recv_done++;
	p->recv_done++;
	if (unlikely(p->recv_done == 1))
		window_start(p);
	/*
	 * Posts several receives at a time in a bandwidth test, because each call rings a doorbell.
	 */
	few = p->o.proto->bandwidth && p->recv_slots > 2 * POLL_BURST ? POLL_BURST : 1;
	return q->recv_posted - q->recv_done + few <= p->recv_slots ? post_recvs(p, q) : 0;
}

/* Records that the requests of @q below number @upto are complete. */
static int
completed(struct perf *p, struct perf_qp *q, uint64_t upto)
{
	uint64_t n, old;

	if (p->o.check && p->o.proto->verb == VERB_ATOMIC) {
		for (n = q->done; n < upto; n++) {
			memcpy(&old, q->out + msg_slot_offset(&p->layout, n), sizeof(old));
			if (check_atomic(p, q, n, old) != 0)
				return -1;
		}
	}
	p->done += upto - q->done;
	q->done = upto;
	return 0;
}

int
perf_step(struct perf *p)
{
	struct bb_wc wc[POLL_BURST];
	unsigned int n = bb_cq_poll(p->cq, wc, POLL_BURST), i;
	struct perf_qp *q;
	int rc;

	for (i = 0; i < n; i++) {
		q = &p->qps[(wc[i].wr_id & ~WR_RECV) >> WR_QP_SHIFT];
		if (unlikely(wc[i].status != BB_WC_SUCCESS))
			rc = failed(p, &wc[i]);
		else if (wc[i].wr_id & WR_RECV)
			rc = received(p, q, &wc[i]);
		else
			rc = completed(p, q, wc[i].wr_id & WR_NUMBER);
		if (unlikely(rc != 0))
			return -1;
	}
	if (p->o.duration > 0)
		window_update(p);
	if (n == 0)
		return perf_idle(p);
	perf_progress(p);
	/* One-sided requests over shared memory complete in the poll, so no poll may be idle. */
	return unlikely(stop_signal != 0) ? perf_stopped(p) : (int)n;
}

int
perf_wait(struct perf *p, uint64_t done, uint64_t recvs)
{
	while ((p->done < done || p->recv_done < recvs) && !window_over(p))
		if (perf_step(p) < 0)
			return -1;
	return 0;
}
