/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The responder of RC and UC: PSN checks, packet order, SENDs and WRITEs, ACKs and NAKs (IBTA vol.
 * 1, 9.7.4, 9.7.5 and 9.8.2; errors: 9.9.3). READs and atomics are in bb_roce_replay.c.
 *
 * Responses, ACKs and NAKs leave in PSN order. READ and atomic responses form a stream of their
 * own. At most one ACK or NAK is pending, and it is sent after that stream. An ACK acknowledges
 * all older PSNs, so only the newest ACK is sent. No ACK is sent if a response of the stream
 * acknowledges the same PSNs. An ACK is sent if the peer requested one (AckReq), as in rxe.
 *
 * After an error, the state of the current receive and the error reported to the peer are the same
 * as on the loop port (drivers/soft/exec/soft_resp_recv.c). The loop port of the software device
 * connects QPs of one process without packets. Cases that the loop port does not have follow rxe
 * (rxe_resp.c).
 */
#include "bb_roce_priv.h"
#include "bb_roce_short.h"

/*
 * State of the execution of a stored packet. Such a packet may be forged, so it is executed on
 * trial: if it is invalid, the QP does not change, and the responder requests the packet again. If
 * the second copy is invalid too, the queue pair may fail.
 */
enum {
	TRIAL_NONE,
	TRIAL_BEGINS,
	TRIAL_FAILED,
};

static bool
on_trial(struct bb_roce_resp *r)
{
	if (r->trial == TRIAL_NONE)
		return false;
	r->trial = TRIAL_FAILED;
	return true;
}

static uint8_t
nak_code(uint8_t synd)
{
	switch (synd) {
	case BB_SYN_REMOTE_INVAL_REQ:
		return BB_ROCE_AETH_NAK | BB_ROCE_NAK_INVALID;
	case BB_SYN_REMOTE_ACCESS:
		return BB_ROCE_AETH_NAK | BB_ROCE_NAK_ACCESS;
	default:
		return BB_ROCE_AETH_NAK | BB_ROCE_NAK_OP;
	}
}

static void
set_pending_ack(struct bb_roce_resp *r, uint8_t syndrome, uint64_t seq)
{
	r->ack_due = true;
	r->ack_syndrome = syndrome;
	r->ack_seq = seq;
}

/*
 * Schedules an ACK for packet @seq and all packets before it. Does nothing if the pending ACK or
 * NAK, or a pending response, already acknowledges @seq. A NAK acknowledges all packets before its
 * own PSN.
 */
static void
ack(struct bb_roce_resp *r, uint64_t seq)
{
	if ((r->ack_due && (int64_t)(r->ack_seq - seq) >= 0) || bb_roce_replay_covers(r, seq))
		return;
	set_pending_ack(r, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF, seq);
}

/* Completes the current receive. Returns non-zero if the callback could not report it. */
static uint8_t
recv_done(struct bb_roce_qp *qp, const struct bb_roce_recv *done)
{
	qp->resp.have_recv = false;
	return qp->ops->recv_done(qp->ctx, qp, done);
}

/* Completes the current receive with an error. */
static void
recv_error(struct bb_roce_qp *qp, uint32_t len, uint8_t status)
{
	const struct bb_roce_recv done = {
		.kind = qp->resp.kind == BB_ROCE_MSG_WRITE ? BB_ROCE_MSG_WRITE_IMM : qp->resp.kind,
		.status = status,
		.len = len,
	};

	(void)recv_done(qp, &done); /* The QP fails anyway, so ignore the result. */
}

/*
 * Schedules a NAK with the PSN of packet @seq. After this NAK an RC QP fails. Completes the
 * current receive, if there is one, with an error.
 */
static void
nak(struct bb_roce_qp *qp, uint8_t synd, uint64_t seq)
{
	struct bb_roce_resp *r = &qp->resp;

	if (synd != BB_SYN_REMOTE_ACCESS && synd != BB_SYN_REMOTE_INVAL_REQ)
		synd = BB_SYN_REMOTE_OP;
	if (r->have_recv)
		recv_error(qp, r->off, synd);
	r->fatal = synd;
	set_pending_ack(r, nak_code(synd), seq);
}

/*
 * If @status is BB_ROCE_TRY_AGAIN, schedules an RNR NAK and returns true. No other NAK follows for
 * later packets. It would make the peer repeat them before its RNR timer expires.
 */
static bool
try_again(struct bb_roce_qp *qp, uint8_t status)
{
	const uint8_t rnr = BB_ROCE_AETH_RNR | (qp->attr.min_rnr_timer & BB_ROCE_AETH_VALUE);

	if (status != BB_ROCE_TRY_AGAIN)
		return false;
	set_pending_ack(&qp->resp, rnr, qp->resp.seq);
	qp->resp.nak_sent = true;
	return true;
}

void
bb_roce_resp_refuse(struct bb_roce_qp *qp, uint8_t synd, uint64_t seq)
{
	if (try_again(qp, synd) || on_trial(&qp->resp))
		return;
	if (qp->attr.type == BB_ROCE_RC) {
		if (synd == BB_SYN_REMOTE_ACCESS)
			qp->stats.resp_remote_access++;
		else if (synd == BB_SYN_REMOTE_INVAL_REQ)
			qp->stats.resp_remote_invalid++;
		nak(qp, synd, seq);
		return;
	}
	qp->stats.drop_access++;
	qp->resp.in_message = false;
}

/*
 * Handles a packet that a correct requester never sends. RC fails the QP with a NAK. UC drops the
 * packet and increments *@drop.
 */
static void
invalid(struct bb_roce_qp *qp, uint64_t *drop)
{
	if (on_trial(&qp->resp))
		return;
	if (qp->attr.type == BB_ROCE_RC) {
		qp->stats.resp_remote_invalid++;
		nak(qp, BB_SYN_REMOTE_INVAL_REQ, qp->resp.seq);
		return;
	}
	(*drop)++;
	qp->resp.in_message = false;
}

/* Fails the QP because of a local error, such as a completion that cannot be reported. */
static void
fail_locally(struct bb_roce_qp *qp)
{
	if (qp->attr.type == BB_ROCE_RC)
		nak(qp, BB_SYN_REMOTE_OP, qp->resp.seq);
	else
		bb_roce_resp_failed(qp, BB_SYN_REMOTE_OP);
}

void
bb_roce_resp_recv_refused(struct bb_roce_qp *qp, uint32_t len, uint8_t status)
{
	bool too_long = status == BB_SYN_LOCAL_LENGTH;

	if (try_again(qp, status) || on_trial(&qp->resp))
		return;
	if (too_long)
		qp->stats.resp_local_length++;
	else if (status == BB_SYN_LOCAL_PROT)
		qp->stats.resp_local_prot++;
	if (too_long && qp->attr.type != BB_ROCE_RC) {
		qp->stats.drop_length++;
		qp->resp.in_message = false;
		return;
	}
	recv_error(qp, len, status);
	if (too_long)
		nak(qp, BB_SYN_REMOTE_INVAL_REQ, qp->resp.seq);
	else
		fail_locally(qp);
}

bool
bb_roce_resp_recv_ready(struct bb_roce_qp *qp)
{
	struct bb_roce_resp *r = &qp->resp;

	if (r->have_recv)
		return true;
	switch (qp->ops->recv_take(qp->ctx, qp)) {
	case BB_ROCE_TAKE_OK:
		r->have_recv = true;
		return true;
	case BB_ROCE_TAKE_EMPTY:
		qp->stats.out_of_buffer++;
		if (qp->attr.type == BB_ROCE_RC)
			return !try_again(qp, BB_ROCE_TRY_AGAIN);
		qp->stats.drop_no_recv++;
		r->in_message = false;
		return false;
	case BB_ROCE_TAKE_NEVER:
		invalid(qp, &qp->stats.drop_no_recv);
		return false;
	default:
		fail_locally(qp);
		return false;
	}
}

void
bb_roce_resp_advance(struct bb_roce_qp *qp, uint32_t packets)
{
	struct bb_roce_resp *r = &qp->resp;

	r->epsn = bb_roce_psn_add(r->epsn, packets);
	r->seq += packets;
	/*
	 * A pending NAK for the expected PSN is obsolete, because that PSN has arrived. An ACK
	 * replaces it.
	 */
	if (r->ack_due && r->ack_syndrome != (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF))
		set_pending_ack(r, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF, r->seq - 1);
}

/*
 * Updates the state after a packet was executed. @off: bytes of the message so far. @last: the
 * packet is the last of the message.
 */
static void
packet_executed(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t off, bool last)
{
	struct bb_roce_resp *r = &qp->resp;

	r->in_message = !last;
	r->off = off;
	if (last)
		r->msn = bb_roce_psn_add(r->msn, 1);
	bb_roce_resp_advance(qp, 1);
	if (qp->attr.type == BB_ROCE_RC && (pkt->flags & BB_ROCE_ACKREQ))
		ack(r, r->seq - 1);
}

bool
bb_roce_resp_recv_complete(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint8_t kind,
			   uint32_t len, const struct bb_roce_net *net)
{
	const struct bb_roce_recv done = {
		.kind = kind,
		.solicited = (pkt->flags & BB_ROCE_SE) != 0,
		.len = len,
		.imm = pkt->imm,
		.sqpn = pkt->sqpn,
		.net = net,
	};

	if (recv_done(qp, &done) == 0)
		return true;
	fail_locally(qp);
	return false;
}

static void
rx_send(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	struct bb_roce_resp *r = &qp->resp;
	uint32_t off = flags & BB_ROCE_F_FIRST ? 0 : r->off;
	uint8_t kind = BB_ROCE_MSG_SEND, status;

	if (pkt->len > BB_ROCE_MAX_MSG - off) {
		invalid(qp, &qp->stats.drop_length);
		return;
	}
	if (!bb_roce_resp_recv_ready(qp))
		return;
	r->kind = kind;
	if (pkt->len != 0) {
		status = qp->ops->recv_place(qp->ctx, qp, off, pkt->payload, pkt->len);
		if (status != 0) {
			bb_roce_resp_recv_refused(qp, off + pkt->len, status);
			return;
		}
	}
	if (flags & BB_ROCE_F_IETH) {
		/*
		 * Invalidate the key before the completion is reported, so that the peer cannot
		 * use it afterwards.
		 */
		kind = BB_ROCE_MSG_SEND_INV;
		status = qp->ops->invalidate(qp->ctx, qp, pkt->imm);
		if (try_again(qp, status))
			return;
		if (status != 0) {
			r->kind = kind;
			bb_roce_resp_recv_refused(qp, off + pkt->len, BB_SYN_REMOTE_INVAL_REQ);
			return;
		}
	} else if (flags & BB_ROCE_F_IMM) {
		kind = BB_ROCE_MSG_SEND_IMM;
	}
	if ((flags & BB_ROCE_F_LAST) &&
	    !bb_roce_resp_recv_complete(qp, pkt, kind, off + pkt->len, NULL))
		return;
	packet_executed(qp, pkt, off + pkt->len, flags & BB_ROCE_F_LAST);
}

/* Checks the memory access of a whole WRITE at its first packet (9.7.4.1.4). */
static bool
write_begins(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	struct bb_roce_resp *r = &qp->resp;
	uint8_t synd;

	synd = qp->ops->remote_check(qp->ctx, qp, BB_ROCE_ACCESS_WRITE, pkt->rkey, pkt->va,
				     pkt->dmalen);
	if (synd != 0) {
		bb_roce_resp_refuse(qp, synd, r->seq);
		return false;
	}
	r->kind = BB_ROCE_MSG_WRITE;
	r->va = pkt->va;
	r->rkey = pkt->rkey;
	r->dmalen = pkt->dmalen;
	return true;
}

static void
rx_write(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	struct bb_roce_resp *r = &qp->resp;
	bool first = flags & BB_ROCE_F_FIRST, last = flags & BB_ROCE_F_LAST;
	uint32_t off = first ? 0 : r->off;
	uint32_t total = first ? pkt->dmalen : r->dmalen;
	uint8_t synd;

	/*
	 * The packets of a WRITE together must have exactly the length in the RETH, which must be
	 * reached with the last packet (9.7.4.1.5).
	 */
	if (total > BB_ROCE_MAX_MSG || pkt->len > total - off ||
	    last != (pkt->len == total - off)) {
		invalid(qp, &qp->stats.drop_length);
		return;
	}
	if (first && !write_begins(qp, pkt))
		return;
	/*
	 * Without a receive the last packet is not written, as in rxe. After the RNR NAK the peer
	 * sends that packet again.
	 */
	if ((flags & BB_ROCE_F_IMM) && !bb_roce_resp_recv_ready(qp))
		return;
	if (pkt->len != 0) {
		synd = qp->ops->remote_write(qp->ctx, qp, r->rkey, r->va + off, pkt->payload,
					     pkt->len);
		if (synd != 0) {
			bb_roce_resp_refuse(qp, synd, r->seq);
			return;
		}
	}
	if ((flags & BB_ROCE_F_IMM) &&
	    !bb_roce_resp_recv_complete(qp, pkt, BB_ROCE_MSG_WRITE_IMM, total, NULL))
		return;
	if (last)
		qp->stats.rx_write++;
	packet_executed(qp, pkt, off + pkt->len, last);
}

/* Returns true if a packet with these opcode flags may follow the previous packet (9.7.4.1.2). */
static bool
in_order(const struct bb_roce_resp *r, uint32_t flags)
{
	if (flags & BB_ROCE_F_FIRST)
		return !r->in_message;
	return r->in_message &&
	       (flags & BB_ROCE_F_WRITE) == (r->kind == BB_ROCE_MSG_WRITE ? BB_ROCE_F_WRITE : 0u);
}

/*
 * Returns true if the payload length is valid. Every packet but the last must have the length of
 * an MTU. The last packet must not be empty, unless it is also the first (9.7.4.1.5).
 */
static bool
fits(const struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	if (!(flags & BB_ROCE_F_LAST))
		return pkt->len == qp->attr.mtu;
	return pkt->len <= qp->attr.mtu && (pkt->len != 0 || (flags & BB_ROCE_F_FIRST));
}

/* Executes an RC packet that has the expected PSN, or a UC packet with any PSN. */
static void
execute(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	if (!(flags & BB_ROCE_F_REQUEST) || !in_order(&qp->resp, flags)) {
		invalid(qp, &qp->stats.drop_order);
		return;
	}
	bb_roce_resp_established(qp);
	if (!(flags & (BB_ROCE_F_SEND | BB_ROCE_F_WRITE)))
		bb_roce_replay_rx(qp, pkt);
	else if (!fits(qp, pkt, flags))
		invalid(qp, &qp->stats.drop_length);
	else if (flags & BB_ROCE_F_SEND)
		rx_send(qp, pkt, flags);
	else
		rx_write(qp, pkt, flags);
}

/*
 * Handles a packet whose PSN is before the expected PSN. A SEND or WRITE is acknowledged again but
 * not executed (C9-105). The PSN of that ACK must be before the next stored READ or atomic.
 * Otherwise the peer would conclude that the response of the READ or atomic was lost.
 */
static void
duplicate(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags, uint64_t seq)
{
	qp->stats.duplicate++;
	if (flags & (BB_ROCE_F_SEND | BB_ROCE_F_WRITE))
		ack(&qp->resp, bb_roce_replay_ack_limit(qp, seq));
	else if (flags & BB_ROCE_F_REQUEST)
		bb_roce_replay_duplicate(qp, pkt, seq);
	else
		qp->stats.drop_replay++;
}

/*
 * Schedules a NAK that reports the expected packet as missing. Sends only one such NAK per PSN
 * (9.7.5.1.3).
 */
static void
nak_missing(struct bb_roce_resp *r)
{
	if (!r->nak_sent)
		set_pending_ack(r, BB_ROCE_AETH_NAK | BB_ROCE_NAK_PSN, r->seq);
	r->nak_sent = true;
	r->missing = r->epsn;
}

/*
 * Executes the stored packets in PSN order, up to the next packet that is missing. @before:
 * expected PSN before the last packet was executed.
 */
static void
run_stored(struct bb_roce_qp *qp, uint32_t before)
{
	struct bb_roce_resp *r = &qp->resp;
	struct bb_roce_pkt *pkt;

	while (r->epsn != before && bb_roce_ooo_next(qp, before, &pkt)) {
		if (pkt == NULL) {
			nak_missing(r);
			return;
		}
		before = r->epsn;
		r->trial = TRIAL_BEGINS;
		execute(qp, pkt, bb_roce_ops[pkt->opcode].flags);
		qp->ops->release_pkt(qp->ctx, qp, pkt);
		if (r->trial == TRIAL_FAILED) {
			r->trial = TRIAL_NONE;
			nak_missing(r);
			return;
		}
		r->trial = TRIAL_NONE;
	}
	/*
	 * Acknowledge the stored packets, even if none of them requested an ACK. If a packet is
	 * missing, the NAK above acknowledges them.
	 */
	ack(r, r->seq - 1);
}

/* Handles a packet whose PSN is after the expected PSN. */
static void
rx_out_of_order(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	qp->stats.out_of_sequence++;
	if ((flags & BB_ROCE_F_REQUEST) != 0 && !bb_roce_ooo_store(qp, pkt, flags))
		qp->resp.nak_sent = false;
	nak_missing(&qp->resp);
}

static void
rx_rc(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	int32_t diff = bb_roce_psn_diff(pkt->psn, qp->resp.epsn);
	struct bb_roce_resp *r = &qp->resp;

	if (r->fatal != 0) {
		qp->stats.drop_state++;
	} else if (diff > 0) {
		rx_out_of_order(qp, pkt, flags);
	} else if (diff < 0) {
		duplicate(qp, pkt, flags, r->seq + (uint64_t)(int64_t)diff);
	} else {
		uint32_t before = r->epsn;

		r->nak_sent = false;
		execute(qp, pkt, flags);
		if (r->n_out_of_order != 0 && r->epsn != before)
			run_stored(qp, before);
	}
}

/*
 * UC: after a missing or dropped packet the rest of the message is dropped. The first packet of
 * the next message is accepted with any PSN (9.8.2.2).
 */
static void
rx_uc(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	struct bb_roce_resp *r = &qp->resp;
	bool gap = pkt->psn != r->epsn;

	if (gap)
		qp->stats.out_of_sequence++;
	if (flags & BB_ROCE_F_FIRST) {
		if (r->in_message)
			qp->stats.drop_order++; /* the previous message has no last packet */
	}
	/* A message of which a packet is missing is dropped. */
	if (gap || (flags & BB_ROCE_F_FIRST))
		r->in_message = false;
	execute(qp, pkt, flags);
	r->epsn = bb_roce_psn_add(pkt->psn, 1);
}

void
bb_roce_resp_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	if (qp->attr.type == BB_ROCE_RC)
		rx_rc(qp, pkt, flags);
	else
		rx_uc(qp, pkt, flags);
}

uint32_t
bb_roce_resp_run(struct bb_roce_qp *qp, uint32_t budget)
{
	struct bb_roce_resp *r = &qp->resp;
	struct bb_roce_pkt pkt;
	uint32_t sent = 0;

	while (sent < budget) {
		if (r->todo != r->head) {
			int ret = bb_roce_replay_run(qp);

			if (ret < 0)
				return sent;
			sent += (uint32_t)ret;
			continue;
		}
		if (!r->ack_due)
			return sent;
		bb_roce_pkt_clear(&pkt);
		pkt.opcode = BB_ROCE_RC | BB_ROCE_ACK;
		pkt.psn = bb_roce_ack_psn(r);
		pkt.syndrome = r->ack_syndrome;
		pkt.msn = r->msn;
		if (!bb_roce_send(qp, &pkt, NULL, 0, NULL))
			return sent;
		sent++;
		r->ack_due = false;
		if (r->fatal != 0) {
			bb_roce_resp_failed(qp, r->fatal);
			return sent;
		}
	}
	return sent;
}

void
bb_roce_short_message_slow(struct bb_roce_qp *qp, uint32_t len, uint8_t flags)
{
	const struct bb_roce_pkt pkt = {.flags = flags};

	bb_roce_resp_established(qp);
	packet_executed(qp, &pkt, len, true);
}

void
bb_roce_short_out_of_order(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	rx_out_of_order(qp, pkt, bb_roce_ops[pkt->opcode].flags);
}
