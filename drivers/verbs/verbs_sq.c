/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Send queues: requests that the driver itself completes, and doorbells.
 *
 * The driver completes a NOP when all requests before it have completed. So the last request of a
 * doorbell, and each request before a NOP, is either signalled at the provider or a WRITE with the
 * mark VERBS_SILENT. Otherwise the driver could not detect that the request has completed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs_sq.h"

BB_STATIC_ASSERT(VERBS_MAX_SGE <= BB_WQE_MAX_DS, "max_sge bounds every list");

/*
 * Returns the sequence number of the newest request that was posted to the provider. Considers only
 * request @seq and requests before it. The requests in own[] were not posted to the provider.
 */
static uint32_t
given_upto(const struct verbs_qp *q, uint32_t seq)
{
	const struct verbs_own *last = &q->own[(q->own_next - 1) & q->own_mask];

	return last->seq == seq ? last->after_seq : seq;
}

/* Adds request @seq to own[], the requests that the driver itself completes, in order. */
static void
own_add(const struct bb_sq *sq, struct verbs_qp *q, uint32_t seq, bool report, uint8_t syndrome)
{
	const uint32_t after_seq = given_upto(q, seq - 1);
	struct verbs_own *o = &q->own[q->own_next++ & q->own_mask];

	o->after_seq = after_seq;
	o->seq = seq;
	o->idx = (uint16_t)(sq->pi - (sq->seq - seq) - 1);
	o->syndrome = syndrome;
	o->report = report;
}

void
verbs_own(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, uint32_t flags, uint8_t syndrome)
{
	struct verbs_qp *q = verbs_qp_of_sq(sq);
	struct verbs_wr wr;

	verbs_slot(sq, q, opcode, wr_id, flags, 0, &wr);
	verbs_slot_at(sq, q, wr.wr_id)->mark = VERBS_OWN;
	own_add(sq, q, sq->seq, syndrome != 0 || (wr.wr_id & VERBS_WR_REPORT) != 0, syndrome);
	/* Replace verbs_post_ring(), which does not complete the requests in own[]. */
	sq->ring = verbs_sq_ring;
}

void
verbs_sq_close(struct verbs_qp *q)
{
	memset(q->limits, 0, sizeof(q->limits));
	q->bb->sq.write_limit = 0;
}

/*
 * Makes posts call ibv_wr_*() again. Since verbs_hold() they collected requests for
 * ibv_post_send(), and that list is empty now.
 */
static void
release(struct bb_sq *sq, struct verbs_qp *q)
{
	if (q->ex == NULL)
		return;
	if (q->held) {
		q->held = false;
		sq->ops = &verbs_post_ops;
		/* Makes the next post call ibv_wr_start(). */
		verbs_sq_close(q);
	}
	sq->ring = verbs_post_ring;
}

void
verbs_sq_reset(struct verbs_qp *q)
{
	q->failed = false;
	q->refused = false;
	q->ends = false;
	q->done = 0;
	q->own_head = 0;
	q->own_tail = 0;
	q->own_next = 0;
	/*
	 * given_upto() may read an entry before any was added. That entry must have equal seq and
	 * after_seq, so that it has no effect.
	 */
	memset(q->own, 0xff, (size_t)(q->own_mask + 1) * sizeof(*q->own));
	verbs_chain_drop(q);
	release(&q->bb->sq, q);
}

int
verbs_begin(struct bb_sq *sq, enum bb_sq_class c, uint8_t opcode, uint64_t wr_id, uint32_t flags)
{
	struct verbs_qp *q = verbs_qp_of_sq(sq);
	uint32_t none = 0;
	int ret = bb_sq_room(sq, c, 1, &none);

	if (ret != 0)
		return ret;
	if (q->refused || q->ends) {
		verbs_own(sq, opcode, wr_id, flags, BB_SYN_WR_FLUSH);
		return VERBS_ENDS;
	}
	if (c == BB_SQ_NOP)
		return 0;
	q->limits[BB_SQ_MSG] = sq->type != BB_QPT_UD ? sq->depth : 0;
	q->limits[BB_SQ_RD] = sq->type == BB_QPT_RC ? sq->depth : 0;
	q->limits[BB_SQ_UD] = sq->type == BB_QPT_UD ? sq->depth : 0;
	if (q->ex != NULL && !q->held)
		verbs_post_begin(sq, q);
	return 0;
}

int
verbs_lacks(struct bb_sq *sq, enum bb_sq_class c, uint8_t opcode, uint64_t wr_id, uint32_t flags,
	    const char *text)
{
	struct verbs_qp *q = verbs_qp_of_sq(sq);
	int ret = verbs_begin(sq, c, opcode, wr_id, flags);

	if (ret != 0)
		return verbs_posted(ret);
	BB_LOG(ERR, "QP 0x%x: %s; the QP goes to ERR", q->ib->qp_num, text);
	verbs_own(sq, opcode, wr_id, flags,
		  opcode == BB_SQ_BIND_MW ? BB_SYN_MW_BIND : BB_SYN_LOCAL_QP_OP);
	q->ends = true;
	verbs_sq_close(q);
	return 0;
}

int
verbs_lacked(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, uint32_t flags)
{
	char text[96];

	snprintf(text, sizeof(text), "libibverbs does not support the operation %s",
		 bb_wqe_opcode_name(opcode));
	return verbs_lacks(sq, BB_SQ_RD, opcode, wr_id, flags, text);
}

/*
 * Posts a marker request to a QP in ERR, where the provider flushes every request. The last earlier
 * request may be unsignalled, so only the completion of the marker shows that all earlier requests
 * have completed.
 */
static void
mark(const struct bb_qp *qp, struct verbs_qp *q)
{
	struct ibv_send_wr *bad, wr = {
					 .wr_id = VERBS_WR_MARK | q->wr_base,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	/*
	 * A marker cannot be posted to a UD queue pair, because it would need a destination. So
	 * treat all requests of the queue pair as completed.
	 */
	if (qp->sq.type == BB_QPT_UD || ibv_post_send(q->ib, &wr, &bad) != 0)
		__atomic_store_n(&q->done, q->marked, __ATOMIC_RELAXED);
}

/* Completes with an error all requests with the number @from or a later one. */
static void
refuse(const struct bb_sq *sq, struct verbs_qp *q, uint32_t from)
{
	const uint32_t first = (uint32_t)(sq->pi - (sq->seq - from) - 1);
	const bool bind = sq->wqes[first & sq->mask].opcode == BB_SQ_BIND_MW;
	uint8_t syndrome = bind ? BB_SYN_MW_BIND : BB_SYN_LOCAL_QP_OP;

	/*
	 * own[] has the requests that the driver itself completes. Remove its entries from request
	 * @from on. The loop below adds these requests again, to complete with an error.
	 */
	while (q->own_next != q->own_tail &&
	       (int32_t)(q->own[(q->own_next - 1) & q->own_mask].seq - from) >= 0)
		q->own_next--;
	for (; from != sq->seq + 1; from++) {
		own_add(sq, q, from, true, syndrome);
		syndrome = BB_SYN_WR_FLUSH;
	}
}

void
verbs_rung(struct bb_sq *sq, uint32_t from, int err)
{
	struct bb_qp *qp = container_of(sq, struct bb_qp, sq);
	struct verbs_qp *q = verbs_qp_of_sq(sq);

	if (bb_unlikely(err != 0))
		refuse(sq, q, from);
	else if (bb_unlikely(q->ends))
		err = VERBS_LOGGED;
	if (bb_unlikely(err != 0 && !q->refused)) {
		q->refused = true;
		q->marked = given_upto(q, sq->seq);
		/* If a batch is open it is empty, and mark() must not post in it. */
		(void)verbs_post_abort(q);
		verbs_qp_stop(qp, err == VERBS_LOGGED ? NULL : "a request", err);
		if (q->done != q->marked)
			mark(qp, q);
	}
	q->ends = false;
	q->own_tail = q->own_next;
	if (q->own_head != q->own_tail)
		verbs_own_done(q);
}

/* Returns true if a request was posted by ibv_wr_*() since ibv_wr_start(). */
static bool
batch_used(const struct bb_sq *sq, const struct verbs_qp *q)
{
	/*
	 * While ibv_wr_start() is open, no request waits for ibv_post_send(). So each request since
	 * the last doorbell was posted by ibv_wr_*(), except those in own[], which the driver
	 * itself completes.
	 */
	return q->open && sq->seq - (uint32_t)sq->rung_seq != q->own_next - q->own_tail;
}

int
verbs_hold(struct bb_sq *sq, enum bb_sq_class c, uint8_t opcode, uint64_t wr_id, uint32_t flags)
{
	struct verbs_qp *q = verbs_qp_of_sq(sq);
	int ret;

	/* With held set, verbs_begin() does not call ibv_wr_start(). */
	q->held = true;
	ret = verbs_begin(sq, c, opcode, wr_id, flags);
	if (ret != 0) {
		q->held = false;
		return ret;
	}
	if (q->open && !batch_used(sq, q))
		(void)verbs_post_abort(q);
	sq->ops = &verbs_chain_ops;
	sq->write_limit = 0; /* verbs_chain_ops has no write */
	sq->ring = verbs_sq_ring;
	return 0;
}

void
verbs_sq_ring(struct bb_sq *sq)
{
	struct verbs_qp *q = verbs_qp_of_sq(sq);
	const bool batch = q->held ? q->open : batch_used(sq, q);
	uint32_t from = (uint32_t)sq->rung_seq + 1;
	int err = 0;

	if (bb_sq_rung(sq) == 0)
		return;
	if (batch) {
		err = ibv_wr_complete(q->ex);
		q->open = false;
		verbs_sq_close(q);
	}
	if (err == 0 && q->first != NULL)
		err = verbs_chain_post(sq, q, &from);
	else
		verbs_chain_drop(q);
	release(sq, q);
	verbs_rung(sq, from, err);
}

void
verbs_post_lost(struct bb_sq *sq, int err)
{
	const uint32_t from = (uint32_t)sq->rung_seq + 1;
	struct verbs_qp *q = verbs_qp_of_sq(sq);

	verbs_chain_drop(q);
	release(sq, q);
	if (bb_sq_rung(sq) != 0)
		verbs_rung(sq, from, err);
}
