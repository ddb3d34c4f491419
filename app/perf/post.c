/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Posts requests and receives, and processes their completions. */
#include <rte_cycles.h>

#include "perf.h"

static int
posted(struct perf *p, int rc)
{
	if (likely(rc == 0))
		p->posted++;
	if (likely(rc == 0 || rc == -EAGAIN))
		return rc;
	say("message %" PRIu64 " cannot be posted: %s; the lines above say why", p->posted,
	    strerror(-rc));
	return -1;
}

int
perf_post(struct perf *p, bool signaled)
{
	uint32_t off = msg_slot_offset(&p->layout, p->posted),
		 flags = signaled ? BB_SEND_SIGNALED : 0;
	uint64_t wr_id = p->posted + 1, to = p->peer.vaddr + off;
	const uint8_t *from = p->src + off;
	struct bb_sge sge = {(uint64_t)(uintptr_t)from, p->o.size, p->mr->lkey};
	bool in_wqe = p->o.size <= p->o.max_inline;
	int rc;

	switch (p->o.proto->verb) {
	case VERB_WRITE:
		if (in_wqe)
			rc = bb_post_write_inline(p->qp, wr_id, from, p->o.size, to, p->peer.rkey,
						  flags);
		else
			rc = bb_post_write(p->qp, wr_id, &sge, 1, to, p->peer.rkey, flags);
		break;
	case VERB_READ:
		rc = bb_post_read(p->qp, wr_id, &sge, 1, to, p->peer.rkey, flags);
		break;
	case VERB_ATOMIC:
		if (p->o.cmp_swap)
			rc = bb_post_cmp_swap(p->qp, wr_id, &sge, to, p->peer.rkey, 0, 0, flags);
		else
			rc = bb_post_fetch_add(p->qp, wr_id, &sge, to, p->peer.rkey, 1, flags);
		break;
	default:
		if (is_ud(p) && in_wqe)
			rc = bb_post_send_ud_inline(p->qp, wr_id, from, p->o.size, p->ah,
						    p->peer.addr.qpn, PERF_QKEY, flags);
		else if (is_ud(p))
			rc = bb_post_send_ud(p->qp, wr_id, &sge, 1, p->ah, p->peer.addr.qpn,
					     PERF_QKEY, flags);
		else if (in_wqe)
			rc = bb_post_send_inline(p->qp, wr_id, from, p->o.size, flags);
		else
			rc = bb_post_send(p->qp, wr_id, &sge, 1, flags);
	}
	return posted(p, rc);
}

static uint8_t *
recv_slot(const struct perf *p, uint64_t n)
{
	return p->in + (size_t)(n % p->recv_slots) * p->recv_step;
}

int
perf_post_recvs(struct perf *p)
{
	struct bb_sge sge = {.len = p->o.size + (is_ud(p) ? UD_GRH : 0), .lkey = p->mr->lkey};
	uint64_t before = p->recv_posted;
	int rc;

	while (p->recv_posted - p->recv_done < p->recv_slots) {
		sge.addr = (uint64_t)(uintptr_t)recv_slot(p, p->recv_posted);
		rc = bb_post_recv(p->qp, WR_RECV | p->recv_posted, &sge, 1);
		if (rc == -EAGAIN)
			break;
		if (rc != 0) {
			say("receive %" PRIu64 " cannot be posted: %s", p->recv_posted,
			    strerror(-rc));
			return -1;
		}
		p->recv_posted++;
	}
	if (p->recv_posted != before)
		bb_qp_ring_recv(p->qp);
	return 0;
}

static int
failed(const struct perf *p, const struct bb_wc *wc)
{
	char text[BB_ERROR_TEXT_MAX];
	bool recv = (wc->wr_id & WR_RECV) != 0;

	say("%s %" PRIu64 " of %" PRIu64 " completed with \"%s\", syndrome 0x%02x, vendor syndrome "
	    "0x%02x: %s%s",
	    recv ? "receive" : "request", wc->wr_id & ~WR_RECV, p->o.iters,
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
received(struct perf *p, const struct bb_wc *wc)
{
	uint32_t grh = is_ud(p) ? UD_GRH : 0;
	uint64_t n = p->recv_done;

	if (unlikely(wc->wr_id != (WR_RECV | n) || wc->opcode != BB_WC_RECV)) {
		say("receive %" PRIu64 " completed out of order: receive %" PRIu64 " was expected",
		    wc->wr_id & ~WR_RECV, n);
		return -1;
	}
	if (unlikely(wc->byte_len != p->o.size + grh)) {
		say("message %" PRIu64
		    " of the peer has %u bytes, not %u; give the same -s to both "
		    "ends",
		    n, wc->byte_len - grh, p->o.size);
		return -1;
	}
	p->last_msg = recv_slot(p, n) + grh;
	if (p->o.check && p->o.proto->verb == VERB_SEND && check_message(p, n, p->last_msg) != 0)
		return -1;
	p->recv_done++;
	return 0;
}

/* Records that the requests below number @upto are complete. */
static int
completed(struct perf *p, uint64_t upto)
{
	uint64_t n, old;

	if (p->o.check && p->o.proto->verb == VERB_ATOMIC) {
		for (n = p->done; n < upto; n++) {
			memcpy(&old, p->out + msg_slot_offset(&p->layout, n), sizeof(old));
			if (check_atomic(p, n, old) != 0)
				return -1;
		}
	}
	p->done = upto;
	return 0;
}

int
perf_step(struct perf *p)
{
	struct bb_wc wc[POLL_BURST];
	unsigned int n = bb_cq_poll(p->cq, wc, POLL_BURST), i;
	uint64_t recvs = p->recv_done;
	int rc;

	for (i = 0; i < n; i++) {
		if (unlikely(wc[i].status != BB_WC_SUCCESS))
			rc = failed(p, &wc[i]);
		else if (wc[i].wr_id & WR_RECV)
			rc = received(p, &wc[i]);
		else
			rc = completed(p, wc[i].wr_id);
		if (unlikely(rc != 0))
			return -1;
	}
	if (recvs != p->recv_done && perf_post_recvs(p) != 0)
		return -1;
	if (n > 0)
		perf_progress(p);
	else if (perf_idle(p) != 0)
		return -1;
	return (int)n;
}

int
perf_wait(struct perf *p, uint64_t done, uint64_t recvs)
{
	while (p->done < done || p->recv_done < recvs)
		if (perf_step(p) < 0)
			return -1;
	return 0;
}
