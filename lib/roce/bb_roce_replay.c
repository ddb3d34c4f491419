/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * READs and atomics in the responder, and their responses (IBTA vol. 1, 9.7.4 and 9.7.5.1).
 *
 * The responder stores the newest max_dest_rd_atomic READs and atomics. The peer may have that many
 * outstanding, so it cannot repeat an older request. For a repeated READ the responder reads the
 * memory again. For a repeated atomic it sends the stored result. It drops a repeated request that
 * is not stored, or that differs from the stored request (C9-105 and following). A repeated READ
 * may request only some packets of the response, those that the peer did not receive. rxe accepts
 * any part of the address range; this responder also compares the PSN.
 *
 * All responses form one stream in PSN order, with a current position. A peer that repeats a
 * request repeats all later requests, too (9.7.3.1). So the stream returns to the position of the
 * repeated request and continues from there, and the responses stay in order. If the repeated
 * request is after the current position, the stream stays there. It will send only the packets that
 * were requested last.
 */
#include "bb_roce_priv.h"

static struct bb_roce_replay *
entry(const struct bb_roce_resp *r, uint32_t i)
{
	return &r->replay[i & (r->replays - 1)];
}

/* Moves the position of the response stream to the next response. */
static void
stream_next(struct bb_roce_resp *r)
{
	r->todo++;
	if ((int32_t)(r->todo - r->answered) > 0)
		r->answered = r->todo;
	r->todo_pkt = r->todo != r->head ? entry(r, r->todo)->first_pkt : 0;
}

/*
 * Moves the position of the response stream back to response @i. The responses after it are sent
 * again to their end, because the peer has not said which of their packets it needs now.
 */
static void
stream_back(struct bb_roce_resp *r, uint32_t i)
{
	while (r->todo != i && --r->todo != i)
		entry(r, r->todo)->end_pkt = entry(r, r->todo)->packets;
	r->todo_pkt = entry(r, i)->first_pkt;
}

static void
push(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, struct bb_roce_replay *e)
{
	struct bb_roce_resp *r = &qp->resp;
	uint32_t max = qp->attr.max_dest_rd_atomic;

	r->msn = bb_roce_psn_add(r->msn, 1);
	e->seq = r->seq;
	e->va = pkt->va;
	e->rkey = pkt->rkey;
	e->msn = r->msn;
	e->end_pkt = e->packets;
	*entry(r, r->head++) = *e;
	if (r->n_replays < max)
		r->n_replays++;
	/*
	 * The new entry may have overwritten the entry whose response is next in the stream. That
	 * response was sent before, as room() has checked. So the stream continues with the oldest
	 * entry that is left.
	 */
	if (r->head - r->todo > max) {
		r->todo = r->head - max;
		r->todo_pkt = entry(r, r->todo)->first_pkt;
	}
	bb_roce_resp_advance(qp, e->packets);
	/* The response to this request will acknowledge all older requests, so no ACK is needed. */
	r->ack_due = false;
}

/*
 * Returns true if the peer may have another READ or atomic outstanding. A request above that limit
 * is an invalid request, for which an RC QP sends a NAK and fails (9.9.3, class C). A request whose
 * response was sent once is not counted, even while that response is being sent again.
 */
static bool
room(const struct bb_roce_qp *qp)
{
	return qp->resp.head - qp->resp.answered < qp->attr.max_dest_rd_atomic;
}

static void
rx_read(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	struct bb_roce_replay e = {.kind = BB_ROCE_MSG_READ, .len = pkt->dmalen};
	uint8_t synd;

	if (pkt->dmalen > BB_ROCE_MAX_MSG) {
		bb_roce_resp_refuse(qp, BB_SYN_REMOTE_INVAL_REQ, qp->resp.seq);
		return;
	}
	synd = qp->ops->remote_check(qp->ctx, qp, BB_ROCE_ACCESS_READ, pkt->rkey, pkt->va,
				     pkt->dmalen);
	if (synd != 0) {
		bb_roce_resp_refuse(qp, synd, qp->resp.seq);
		return;
	}
	qp->stats.rx_read++;
	e.packets = bb_roce_packets(pkt->dmalen, qp->attr.mtu);
	push(qp, pkt, &e);
}

static uint8_t
atomic_kind(const struct bb_roce_pkt *pkt)
{
	return pkt->opcode == (BB_ROCE_RC | BB_ROCE_CMP_SWAP) ? BB_ROCE_MSG_CMP_SWAP
							      : BB_ROCE_MSG_FETCH_ADD;
}

static void
rx_atomic(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	struct bb_roce_replay e = {.kind = atomic_kind(pkt), .len = 8, .packets = 1};
	uint8_t synd;

	if ((pkt->va & 7) != 0) {
		bb_roce_resp_refuse(qp, BB_SYN_REMOTE_INVAL_REQ, qp->resp.seq);
		return;
	}
	synd = qp->ops->remote_check(qp->ctx, qp, BB_ROCE_ACCESS_ATOMIC, pkt->rkey, pkt->va, 8);
	if (synd == 0)
		synd = qp->ops->remote_atomic(qp->ctx, qp, e.kind, pkt->rkey, pkt->va,
					      pkt->swap_add, pkt->compare, &e.orig);
	if (synd != 0) {
		bb_roce_resp_refuse(qp, synd, qp->resp.seq);
		return;
	}
	qp->stats.rx_atomic++;
	push(qp, pkt, &e);
}

void
bb_roce_replay_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	if (!room(qp))
		bb_roce_resp_refuse(qp, BB_SYN_REMOTE_INVAL_REQ, qp->resp.seq);
	else if (bb_roce_ops[pkt->opcode].flags & BB_ROCE_F_ATOMIC)
		rx_atomic(qp, pkt);
	else
		rx_read(qp, pkt);
}

/*
 * Returns true if the request repeats the stored request, or a part of the stored READ. @k: index
 * of the response packet with which the repeated response starts. A part ends with a whole packet
 * or with the READ. For a READ of 0 bytes the address is not compared.
 */
static bool
equal_request(const struct bb_roce_replay *e, const struct bb_roce_pkt *pkt, uint32_t k,
	      uint32_t mtu)
{
	uint32_t off = k * mtu, left = e->len - off;

	if (bb_roce_ops[pkt->opcode].flags & BB_ROCE_F_ATOMIC)
		return e->kind == atomic_kind(pkt) && e->va == pkt->va && e->rkey == pkt->rkey;
	if (e->kind != BB_ROCE_MSG_READ)
		return false;
	if (pkt->dmalen != left &&
	    (pkt->dmalen == 0 || pkt->dmalen > left || (pkt->dmalen & (mtu - 1)) != 0))
		return false;
	return e->len == 0 || (pkt->va == e->va + off && pkt->rkey == e->rkey);
}

/*
 * Returns true if the responder can send the response packets @k to @end - 1 of entry @i now. The
 * peer expects the opcodes of a response of its own. A response that was never sent whole must go
 * on to its end. An earlier part that is still to be sent must be sent first, because the peer
 * needs both. In both cases the peer requests the part again after a timeout.
 */
static bool
part_possible(const struct bb_roce_resp *r, uint32_t i, uint32_t k, uint32_t end)
{
	const struct bb_roce_replay *e = entry(r, i);
	bool pending = (int32_t)(i - r->todo) >= 0, sent = (int32_t)(i - r->answered) < 0;

	return (end == e->packets || sent) && !(pending && k >= e->end_pkt);
}

bool
bb_roce_replay_covers(const struct bb_roce_resp *r, uint64_t seq)
{
	const struct bb_roce_replay *e;

	if (r->todo == r->head)
		return false;
	e = entry(r, r->head - 1);
	return (int64_t)(e->seq + e->packets - seq) > 0;
}

void
bb_roce_replay_duplicate(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint64_t seq)
{
	struct bb_roce_resp *r = &qp->resp;
	uint32_t i;

	for (i = r->head; i != r->head - r->n_replays; i--) {
		struct bb_roce_replay *e = entry(r, i - 1);
		uint32_t k, end;

		if (seq - e->seq >= e->packets)
			continue;
		k = (uint32_t)(seq - e->seq);
		if (!equal_request(e, pkt, k, qp->attr.mtu))
			break;
		end = e->kind == BB_ROCE_MSG_READ ? k + bb_roce_packets(pkt->dmalen, qp->attr.mtu)
						  : e->packets;
		if (!part_possible(r, i - 1, k, end))
			break;
		e->first_pkt = k;
		e->end_pkt = end;
		if ((int32_t)(i - 1 - r->todo) <= 0)
			stream_back(r, i - 1);
		if (r->ack_due && bb_roce_replay_covers(r, r->ack_seq))
			r->ack_due = false;
		return;
	}
	qp->stats.drop_replay++;
}

uint64_t
bb_roce_replay_ack_limit(const struct bb_roce_qp *qp, uint64_t seq)
{
	const struct bb_roce_resp *r = &qp->resp;
	uint64_t limit = r->seq - 1;
	uint32_t i;

	for (i = r->head; i != r->head - r->n_replays; i--) {
		const struct bb_roce_replay *e = entry(r, i - 1);

		if ((int64_t)(e->seq - seq) > 0)
			limit = e->seq - 1;
	}
	return limit;
}

/*
 * Handles a READ whose memory can no longer be read. If its response was sent before, the peer may
 * have received the data and destroyed the key, and the request may be a late duplicate. The
 * responder then drops the request. If the response was not sent before, the responder sends a NAK
 * with the PSN of the response that it cannot send.
 */
static void
read_unreadable(struct bb_roce_qp *qp, uint8_t synd)
{
	struct bb_roce_resp *r = &qp->resp;
	uint64_t seq = entry(r, r->todo)->seq + r->todo_pkt;

	if ((int32_t)(r->todo - r->answered) < 0) {
		qp->stats.drop_replay++;
		stream_next(r);
		return;
	}
	r->todo = r->head;
	bb_roce_resp_refuse(qp, synd, seq);
}

/*
 * Returns the opcode of response packet @n of a READ. A repeated response may start or end in the
 * middle of the READ. Its packets have the opcodes of a new response.
 */
static uint8_t
read_opcode(const struct bb_roce_replay *e, uint32_t n)
{
	bool first = n == e->first_pkt, last = n == e->end_pkt - 1;

	if (first)
		return BB_ROCE_RC | (last ? BB_ROCE_READ_RESP_ONLY : BB_ROCE_READ_RESP_FIRST);
	return BB_ROCE_RC | (last ? BB_ROCE_READ_RESP_LAST : BB_ROCE_READ_RESP_MIDDLE);
}

int
bb_roce_replay_run(struct bb_roce_qp *qp)
{
	struct bb_roce_resp *r = &qp->resp;
	const struct bb_roce_replay *e = entry(r, r->todo);
	uint32_t n = r->todo_pkt, off = n * qp->attr.mtu;
	bool again = (int32_t)(r->todo - r->answered) < 0;
	struct bb_roce_iov iov[BB_ROCE_MAX_IOV];
	struct bb_roce_pkt pkt = {
		.opcode = BB_ROCE_RC | BB_ROCE_ATOMIC_ACK,
		.psn = bb_roce_psn_add(r->epsn, (uint32_t)(e->seq - r->seq) + n),
		.syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF,
		/*
		 * The first transmission of a response has the MSN of its request. A repeated
		 * response has the current MSN.
		 */
		.msn = again ? r->msn : e->msn,
		.orig = e->orig,
	};
	int pieces = 0;

	if (e->kind == BB_ROCE_MSG_READ) {
		pkt.opcode = read_opcode(e, n);
		pkt.len = e->len - off < qp->attr.mtu ? e->len - off : qp->attr.mtu;
		if (pkt.len != 0)
			pieces = qp->ops->remote_read(qp->ctx, qp, e->rkey, e->va + off, pkt.len,
						      iov);
		if (pieces == -(int)BB_ROCE_TRY_AGAIN)
			return -1;
		if (pieces < 0) {
			read_unreadable(qp, (uint8_t)-pieces);
			return 0;
		}
	}
	if (!bb_roce_send(qp, &pkt, iov, (uint32_t)pieces, NULL))
		return -1;
	if (n + 1 == e->end_pkt)
		stream_next(r);
	else
		r->todo_pkt = n + 1;
	return 1;
}
