/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The requester of RC and UC: turns messages into packets (IBTA vol. 1, 9.3.3, 9.4, 9.7.3). A
 * message gets its PSNs when its first packet is about to be sent. After a loss, the requester
 * normally restarts at the oldest PSN that is not acknowledged. A READ is split into several
 * requests, each for at most req->chunk response packets. The chunks are counted from the first
 * packet of the READ, so a restart does not change where a request ends.
 */
#include "bb_roce_priv.h"
#include "bb_roce_short.h"

/*
 * Opcodes, indexed by message kind and by 2 * last + first. first is 1 for the first packet of a
 * message, and last is 1 for its last packet.
 */
static const uint8_t opcodes[][4] = {
	[BB_ROCE_MSG_SEND] = {BB_ROCE_SEND_MIDDLE, BB_ROCE_SEND_FIRST, BB_ROCE_SEND_LAST,
			      BB_ROCE_SEND_ONLY},
	[BB_ROCE_MSG_SEND_IMM] = {BB_ROCE_SEND_MIDDLE, BB_ROCE_SEND_FIRST, BB_ROCE_SEND_LAST_IMM,
				  BB_ROCE_SEND_ONLY_IMM},
	[BB_ROCE_MSG_SEND_INV] = {BB_ROCE_SEND_MIDDLE, BB_ROCE_SEND_FIRST, BB_ROCE_SEND_LAST_INV,
				  BB_ROCE_SEND_ONLY_INV},
	[BB_ROCE_MSG_WRITE] = {BB_ROCE_WRITE_MIDDLE, BB_ROCE_WRITE_FIRST, BB_ROCE_WRITE_LAST,
			       BB_ROCE_WRITE_ONLY},
	[BB_ROCE_MSG_WRITE_IMM] = {BB_ROCE_WRITE_MIDDLE, BB_ROCE_WRITE_FIRST,
				   BB_ROCE_WRITE_LAST_IMM, BB_ROCE_WRITE_ONLY_IMM},
};

static struct bb_roce_msg *
next_msg(const struct bb_roce_qp *qp)
{
	return &qp->req.ring[qp->req.next & qp->req.mask];
}

static uint32_t
packets_of(const struct bb_roce_qp *qp, const struct bb_roce_msg *msg)
{
	return bb_roce_packets(msg->len, qp->attr.mtu);
}

static uint32_t
requests_of(const struct bb_roce_qp *qp, const struct bb_roce_msg *msg)
{
	if (msg->kind != BB_ROCE_MSG_READ)
		return 1;
	return (packets_of(qp, msg) + qp->req.chunk - 1) / qp->req.chunk;
}

static uint32_t
ssn_of(const struct bb_roce_qp *qp, const struct bb_roce_msg *msg)
{
	if (qp->req.next != qp->req.unassigned)
		return msg->ssn;
	return (qp->req.ssn + requests_of(qp, msg)) & BB_ROCE_PSN_MASK;
}

/*
 * Returns true if the peer's credits allow the next packet. Credits count messages that consume a
 * receive. If no credits are left, the oldest message may still be sent as a limited message: a
 * whole WRITE, or the first packet of a SEND. The peer's ACK or RNR NAK shows whether it had a
 * receive (9.7.7.2.5).
 */
static bool
has_credit(const struct bb_roce_qp *qp, const struct bb_roce_msg *msg)
{
	const struct bb_roce_req *req = &qp->req;

	if (!req->credits || msg->kind == BB_ROCE_MSG_WRITE || bb_roce_is_read_or_atomic(msg->kind))
		return true;
	if (bb_roce_psn_diff(ssn_of(qp, msg), req->limit) <= 0)
		return true;
	if (req->next != req->tail)
		return false;
	return req->next_pkt == 0 || msg->kind == BB_ROCE_MSG_WRITE_IMM || req->una != msg->psn;
}

/*
 * Does the work of next_span() if a message is posted: returns the number of PSNs that its next
 * packet uses, 0 if it may not be sent now.
 */
static uint32_t
span_of_next(const struct bb_roce_qp *qp)
{
	const struct bb_roce_req *req = &qp->req;
	const struct bb_roce_msg *msg = next_msg(qp);
	uint32_t room, span = 1;

	if (req->rnr_wait)
		return 0;
	if (req->failed_synd != 0 && req->next == req->failed_msg)
		return 0;
	if (qp->attr.type != BB_ROCE_RC)
		return 1;
	if (req->next_pkt == 0 && (msg->flags & BB_ROCE_FENCE) != 0 && req->rd_atomic != 0)
		return 0;
	if (bb_roce_is_read_or_atomic(msg->kind)) {
		/* If max_rd_atomic is 0 the message must fail, which send_packet() handles. */
		if (req->rd_atomic >= qp->attr.max_rd_atomic && qp->attr.max_rd_atomic != 0)
			return 0;
		if (msg->kind == BB_ROCE_MSG_READ) {
			uint32_t left = packets_of(qp, msg) - req->next_pkt;

			span = req->chunk - req->next_pkt % req->chunk;
			if (span > left)
				span = left;
		}
	}
	room = qp->attr.window - bb_roce_psn_distance(req->una, req->nxt);
	if (span > room || !has_credit(qp, msg))
		return 0;
	return span;
}

/* Returns the number of PSNs that the next packet uses, or 0 if no packet may be sent now. */
static inline uint32_t
next_span(const struct bb_roce_qp *qp)
{
	return qp->req.next == qp->req.head ? 0 : span_of_next(qp);
}

/*
 * Returns true if the newest packets were sent without AckReq. They need the ACK of a later
 * packet. A later packet may be impossible to send, because it has no credit or its payload cannot
 * be read. In that case no ACK would ever arrive.
 */
static bool
newest_without_ack_req(const struct bb_roce_req *req)
{
	return req->no_ack_req != 0 && req->una != req->nxt && !req->rnr_wait;
}

bool
bb_roce_req_busy(const struct bb_roce_qp *qp)
{
	return qp->req.run_left != 0 || next_span(qp) != 0 || newest_without_ack_req(&qp->req);
}

static void
assign(struct bb_roce_qp *qp, struct bb_roce_msg *msg)
{
	struct bb_roce_req *req = &qp->req;

	msg->ssn = ssn_of(qp, msg);
	msg->psn = req->psn;
	msg->packets = packets_of(qp, msg);
	req->ssn = msg->ssn;
	req->psn = bb_roce_psn_add(req->psn, msg->packets);
	req->unassigned++;
}

/*
 * Handles the error @synd of the message at req->next, whose next packet cannot be sent. The
 * message completes with this error after all earlier messages have completed.
 */
static void
cannot_send(struct bb_roce_qp *qp, uint8_t synd)
{
	struct bb_roce_req *req = &qp->req;

	if (req->next == req->tail) {
		bb_roce_req_failed(qp, synd);
		return;
	}
	req->failed_synd = synd;
	req->failed_msg = req->next;
}

/* Builds the request packet of an atomic, or of a READ for up to @span response packets. */
static void
read_or_atomic(const struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t span,
	       struct bb_roce_pkt *pkt)
{
	uint32_t off = qp->req.next_pkt * qp->attr.mtu, left = msg->len - off;

	pkt->flags = BB_ROCE_ACKREQ;
	pkt->rkey = msg->rkey;
	pkt->va = msg->raddr + off;
	if (msg->kind == BB_ROCE_MSG_READ) {
		pkt->opcode = BB_ROCE_READ_REQUEST;
		pkt->dmalen = left / qp->attr.mtu < span ? left : span * qp->attr.mtu;
		return;
	}
	pkt->opcode = msg->kind == BB_ROCE_MSG_CMP_SWAP ? BB_ROCE_CMP_SWAP : BB_ROCE_FETCH_ADD;
	pkt->swap_add = msg->swap_add;
	pkt->compare = msg->kind == BB_ROCE_MSG_CMP_SWAP ? msg->compare : 0;
}

/*
 * Returns true if the last packet of a message may be sent without AckReq. That saves an ACK, which
 * both sides would have to process. The ACK of the next message covers this one, if nothing can
 * delay the next message. Only a few consecutive packets omit AckReq. A repeated packet always has
 * AckReq, because its ACK may be the only one that is missing.
 */
static bool
may_omit_ack_req(const struct bb_roce_req *req)
{
	const struct bb_roce_msg *behind = &req->ring[(req->next + 1) & req->mask];

	return req->next + 1 != req->head && !bb_roce_is_read_or_atomic(behind->kind) &&
	       (behind->flags & BB_ROCE_FENCE) == 0 && req->nxt == req->sent && !req->credits &&
	       req->no_ack_req + 1 < BB_ROCE_MAX_NO_ACK_REQ;
}

/*
 * Builds the headers of packet @n of a SEND or WRITE. @again: only this packet of the message
 * is sent again. The caller adds the payload.
 */
static void
send_or_write(const struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t n, bool again,
	      struct bb_roce_pkt *pkt)
{
	const struct bb_roce_req *req = &qp->req;
	uint32_t off = n * qp->attr.mtu, left = msg->len - off;
	bool first = n == 0, last = n + 1 == msg->packets;

	pkt->opcode = opcodes[msg->kind][2 * last + first];
	pkt->len = left < qp->attr.mtu ? left : qp->attr.mtu;
	pkt->va = msg->raddr;
	pkt->rkey = msg->rkey;
	pkt->dmalen = msg->len;
	pkt->imm = msg->imm;
	/*
	 * SE is set only in the last packet of a message that consumes a receive, because only
	 * such a packet can raise an event (9.2.3).
	 */
	if (last && (msg->flags & BB_ROCE_SOLICITED) != 0 && msg->kind != BB_ROCE_MSG_WRITE)
		pkt->flags |= BB_ROCE_SE;
	if (qp->attr.type != BB_ROCE_RC)
		return;
	/*
	 * An ACK is requested at the end of a message, before the window is full, and for a packet
	 * that has no credit. Without that ACK the requester would not continue.
	 */
	if (again || (last && !may_omit_ack_req(req)) || bb_roce_window_needs_ack(qp) ||
	    (req->credits && bb_roce_psn_diff(msg->ssn, req->limit) > 0))
		pkt->flags |= BB_ROCE_ACKREQ;
}

/* Updates the state after a packet that uses @span PSNs was sent. */
static void
packet_sent(struct bb_roce_qp *qp, struct bb_roce_msg *msg, uint32_t span, bool ack_req,
	    uint64_t now)
{
	struct bb_roce_req *req = &qp->req;
	uint32_t first = req->nxt, end = bb_roce_psn_add(first, span);
	bool fresh = first == req->sent;

	if (bb_roce_is_read_or_atomic(msg->kind)) {
		req->rd_atomic++;
		if (req->next_pkt % req->chunk != 0)
			req->resume_psn = req->nxt;
	}
	req->no_ack_req = ack_req ? 0 : req->no_ack_req + 1;
	if (!fresh)
		qp->stats.retransmitted++;
	if (bb_roce_psn_distance(req->una, end) > bb_roce_psn_distance(req->una, req->sent))
		req->sent = end;
	req->nxt = end;
	if (ack_req)
		bb_roce_rto_ack_requested(qp, first, bb_roce_psn_add(end, BB_ROCE_PSN_MASK), fresh,
					  now);
	req->next_pkt += span;
	if (req->next_pkt == msg->packets) {
		req->next++;
		req->next_pkt = 0;
	}
}

/*
 * Sends the next packet, which uses @span PSNs. Returns false if the link has no room or the
 * message cannot be sent.
 */
static bool
send_packet(struct bb_roce_qp *qp, uint32_t span, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;
	struct bb_roce_msg *msg = next_msg(qp);
	struct bb_roce_iov iov[BB_ROCE_MAX_IOV];
	struct bb_roce_pkt pkt;
	int n = 0;

	if (bb_roce_is_read_or_atomic(msg->kind) && qp->attr.max_rd_atomic == 0) {
		cannot_send(qp, BB_SYN_LOCAL_QP_OP);
		return false;
	}
	if (req->next == req->unassigned)
		assign(qp, msg);
	bb_roce_pkt_clear(&pkt);
	pkt.psn = req->nxt;
	if (bb_roce_is_read_or_atomic(msg->kind))
		read_or_atomic(qp, msg, span, &pkt);
	else
		send_or_write(qp, msg, req->next_pkt, false, &pkt);
	if (pkt.len != 0) {
		n = qp->ops->gather(qp->ctx, qp, msg, req->next_pkt * qp->attr.mtu, pkt.len, iov);
		if (n == -(int)BB_ROCE_TRY_AGAIN) {
			bb_roce_comp_restart_later(qp, now, BB_ROCE_PAGE_NS);
			return false;
		}
		if (n < 0) {
			cannot_send(qp, (uint8_t)-n);
			return false;
		}
	}
	if (!bb_roce_send(qp, &pkt, iov, (uint32_t)n, msg)) {
		if (qp->attr.type == BB_ROCE_RC)
			bb_roce_comp_waits(qp, now);
		return false;
	}
	packet_sent(qp, msg, span, (pkt.flags & BB_ROCE_ACKREQ) != 0, now);
	if (qp->attr.type == BB_ROCE_RC) {
		bb_roce_comp_waits(qp, now);
	} else {
		/* UC has no ACKs, so a packet counts as acknowledged when it is sent. */
		req->una = req->nxt;
		if (req->next != req->tail)
			bb_roce_req_done(qp, 0);
	}
	return true;
}

/*
 * Sends the next of the packets that bb_roce_repeat.c has selected to be sent again. Returns false
 * if the link has no room or the QP failed.
 */
static bool
send_repeat(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;
	struct bb_roce_msg *msg = &req->ring[req->run_msg & req->mask];
	uint32_t nth = bb_roce_psn_distance(msg->psn, req->run_psn);
	struct bb_roce_iov iov[BB_ROCE_MAX_IOV];
	struct bb_roce_pkt pkt;
	int n = 0;

	bb_roce_pkt_clear(&pkt);
	pkt.psn = req->run_psn;
	send_or_write(qp, msg, nth, true, &pkt);
	if (pkt.len != 0) {
		n = qp->ops->gather(qp->ctx, qp, msg, nth * qp->attr.mtu, pkt.len, iov);
		if (n == -(int)BB_ROCE_TRY_AGAIN) {
			bb_roce_comp_restart_later(qp, now, BB_ROCE_PAGE_NS);
			return false;
		}
		if (n < 0 && req->run_psn == req->una) {
			bb_roce_req_failed(qp, (uint8_t)-n);
			return false;
		}
		/*
		 * The payload cannot be read. The message fails later, when it is the oldest
		 * message.
		 */
		if (n < 0) {
			req->run_left = 0;
			return true;
		}
	}
	if (!bb_roce_send(qp, &pkt, iov, (uint32_t)n, msg)) {
		bb_roce_comp_waits(qp, now);
		return false;
	}
	qp->stats.retransmitted++;
	bb_roce_repeat_sent(qp, now);
	if (req->run_left != 0 &&
	    bb_roce_is_read_or_atomic(req->ring[req->run_msg & req->mask].kind))
		req->run_left = 0;
	bb_roce_comp_waits(qp, now);
	return true;
}

void
bb_roce_short_repeat(struct bb_roce_qp *qp, uint32_t budget, uint64_t now)
{
	while (budget-- != 0 && qp->state == BB_ROCE_RTS && qp->req.run_left != 0)
		if (!send_repeat(qp, now))
			return;
}

uint32_t
bb_roce_req_run(struct bb_roce_qp *qp, uint32_t budget, uint64_t now)
{
	uint32_t span, n = 0;

	while (n < budget && qp->state == BB_ROCE_RTS) {
		if (qp->req.run_left != 0) {
			if (!send_repeat(qp, now))
				break;
			n++;
			continue;
		}
		span = next_span(qp);
		if (span == 0) {
			/*
			 * The newest packets in flight have no AckReq, and no packet can follow
			 * them. So send again from the oldest packet that is not acknowledged
			 * (9.7.5.1.1). A repeated message ends with AckReq, so this happens only
			 * once. If an ACK is already on its way, the responder gets a duplicate,
			 * which is harmless.
			 */
			if (!newest_without_ack_req(&qp->req))
				break;
			bb_roce_req_rewind(qp);
			continue;
		}
		if (!send_packet(qp, span, now))
			break;
		n++;
	}
	return n;
}

void
bb_roce_req_rewind(struct bb_roce_qp *qp)
{
	struct bb_roce_req *req = &qp->req;

	req->next = req->tail;
	req->next_pkt = 0;
	if (req->tail != req->unassigned)
		req->next_pkt =
			bb_roce_psn_distance(req->ring[req->tail & req->mask].psn, req->una);
	req->nxt = req->una;
	req->restart_end = req->sent;
	req->rd_atomic = 0;
	req->no_ack_req = 0;
	req->run_left = 0;
	req->run_end = req->una;
	req->probe = BB_ROCE_PROBE_NONE;
	bb_roce_rto_rewound(qp);
}

void
bb_roce_short_ack_req(struct bb_roce_qp *qp, uint32_t psn, uint64_t now)
{
	bb_roce_rto_ack_requested(qp, psn, psn, true, now);
	bb_roce_comp_waits(qp, now);
}

void
bb_roce_short_no_ack_req(struct bb_roce_qp *qp, uint64_t now)
{
	bb_roce_comp_waits(qp, now);
}
