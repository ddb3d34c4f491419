/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The RC completer: processes responses, completes messages in posting order, and runs the timers
 * (IBTA vol. 1, 9.7.5 and 9.7.6; 9.9.2 for errors). Every response names a PSN. A response is
 * processed only if its PSN was sent and is not acknowledged yet.
 */
#include "bb_roce_priv.h"
#include "bb_roce_short.h"

/* mask of the type bits of an AETH syndrome, and of its top bit, which is always 0 */
#define AETH_CLASS 0xe0u

static struct bb_roce_msg *
oldest(const struct bb_roce_qp *qp)
{
	return &qp->req.ring[qp->req.tail & qp->req.mask];
}

static void
start_timer(struct bb_roce_qp *qp, uint64_t now)
{
	qp->req.deadline = BB_ROCE_NEVER;
	if (qp->attr.ack_timeout != 0)
		qp->req.deadline = now + bb_roce_rto_ack_timeout(qp);
}

void
bb_roce_comp_waits(struct bb_roce_qp *qp, uint64_t now)
{
	bb_roce_rto_waits(qp, now);
	if (qp->req.deadline == BB_ROCE_NEVER)
		start_timer(qp, now);
	if (qp->req.rto.deadline == BB_ROCE_NEVER)
		bb_roce_rto_start(qp, now);
}

/* Completes the messages whose packets all have a PSN before @una. */
static void
complete_acked(struct bb_roce_qp *qp, uint32_t una)
{
	struct bb_roce_req *req = &qp->req;
	const uint32_t left = req->unassigned - req->tail;
	uint32_t n = 0;

	while (n != left) {
		const struct bb_roce_msg *msg = &req->ring[(req->tail + n) & req->mask];

		if (bb_roce_psn_distance(msg->psn, una) < msg->packets)
			break;
		n++;
	}
	if (n == 0)
		return;
	if (qp->ops->complete_run == NULL) {
		while (n-- != 0)
			bb_roce_req_done(qp, 0);
		return;
	}
	qp->ops->complete_run(qp->ctx, qp, n);
	req->tail += n;
}

/* Records that all PSNs before @una are acknowledged. */
static inline void
advance(struct bb_roce_qp *qp, uint32_t una)
{
	struct bb_roce_req *req = &qp->req;

	req->una = una;
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->going_back = false;
	req->rnr_wait = false;
}

/* Stops the timers, because no packet is in flight. */
static inline void
stop_timers(struct bb_roce_req *req)
{
	req->deadline = BB_ROCE_NEVER;
	req->rto.deadline = BB_ROCE_NEVER;
}

/*
 * Records that all PSNs before @una are acknowledged. Completes the messages whose last PSN is
 * before @una.
 */
static void
progress(struct bb_roce_qp *qp, uint32_t una, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;
	bool skip;

	if (una == req->una)
		return;
	/*
	 * The requester has restarted and was about to send the acknowledged packets again. Their
	 * first transmission has arrived, so skip them.
	 */
	skip = bb_roce_psn_distance(req->una, una) > bb_roce_psn_distance(req->una, req->nxt);
	bb_roce_rto_acked(qp, una, now);
	bb_roce_rto_waited(qp, now);
	advance(qp, una);
	complete_acked(qp, una);
	/* complete() could not report a completion and has moved the QP to ERR. */
	if (qp->state != BB_ROCE_RTS)
		return;
	if (skip)
		bb_roce_req_rewind(qp);
	if (req->una == req->nxt) {
		stop_timers(req);
	} else {
		bb_roce_rto_waits(qp, now);
		start_timer(qp, now);
		bb_roce_rto_start(qp, now);
	}
	if (req->failed_synd == 0 || (int32_t)(req->tail - req->failed_msg) < 0)
		return;
	if (req->tail == req->failed_msg)
		bb_roce_req_failed(qp, req->failed_synd);
	else
		req->failed_synd = 0; /* the peer has received the first transmission */
}

/*
 * A response with PSN @psn also acknowledges all earlier packets of SENDs and WRITEs. Returns the
 * first PSN that the response does not acknowledge in this way. If @psn belongs to a SEND or WRITE,
 * this is @psn itself. If @psn belongs to a READ or atomic, this is the first PSN of that request.
 * If an earlier READ or atomic still lacks its own response, returns the first PSN of that earlier
 * request and sets *missing (9.7.5.1.2, implied NAK).
 */
static uint32_t
acknowledged(const struct bb_roce_qp *qp, uint32_t psn, bool *missing)
{
	const struct bb_roce_req *req = &qp->req;
	uint32_t una = req->una, i;

	*missing = false;
	for (i = req->tail; una != psn; i++) {
		const struct bb_roce_msg *msg = &req->ring[i & req->mask];
		uint32_t end = bb_roce_psn_add(msg->psn, msg->packets);
		bool within = bb_roce_psn_distance(una, psn) < bb_roce_psn_distance(una, end);

		if (bb_roce_is_read_or_atomic(msg->kind)) {
			*missing = !within;
			break;
		}
		una = within ? psn : end;
	}
	return una;
}

/*
 * Uses one retry: sends packets again, from the oldest one that is not acknowledged. Fails the QP
 * if no retries are left.
 */
static void
retry(struct bb_roce_qp *qp, bool by_nak)
{
	struct bb_roce_req *req = &qp->req;

	req->deadline = BB_ROCE_NEVER;
	if (req->retries == 0) {
		qp->stats.retry_exceeded++;
		bb_roce_req_failed(qp, BB_SYN_RETRY_EXC);
		return;
	}
	req->retries--;
	if (!by_nak || !bb_roce_repeat_lost(qp, true))
		bb_roce_req_rewind(qp);
}

/*
 * Handles a NAK that reports the oldest PSN as missing. Only the first such NAK is handled until a
 * PSN is acknowledged or the timer expires. Packets that were sent before the restart cause
 * further NAKs for the same PSN.
 */
static void
go_back(struct bb_roce_qp *qp, uint64_t *count)
{
	struct bb_roce_req *req = &qp->req;

	if (req->going_back || req->nxt == req->una)
		return;
	(*count)++;
	req->going_back = true;
	bb_roce_rto_lost(qp);
	retry(qp, true);
}

enum response_kind {
	RESPONSE_NAK,
	RESPONSE_RNR,
	RESPONSE_ACK,
	RESPONSE_DATA,
};

/*
 * Processes the acknowledgement in a response with PSN @psn. It covers all PSNs before @psn. It
 * also covers @psn if the response is an ACK and the message has no response data. Returns false
 * if the caller must not process the response any further.
 */
static bool
process_ack(struct bb_roce_qp *qp, uint32_t psn, enum response_kind what, uint64_t now)
{
	const struct bb_roce_req *req = &qp->req;
	uint32_t end = bb_roce_psn_add(psn, what == RESPONSE_ACK), una = end, before = req->una;
	bool missing = false, alone = req->probe != BB_ROCE_PROBE_NONE;

	/* No response can be missing if no READ or atomic is outstanding. */
	if (req->rd_atomic != 0 || req->nxt != req->sent) {
		una = acknowledged(qp, end, &missing);
		if (una != end)
			una = acknowledged(qp, psn, &missing);
	}
	progress(qp, una, now);
	if (qp->state != BB_ROCE_RTS)
		return false;
	if (alone && una != before)
		bb_roce_repeat_acked(qp, bb_roce_psn_distance(before, psn) + (what != RESPONSE_NAK),
				     what == RESPONSE_ACK);
	if (missing)
		go_back(qp, &qp->stats.implied_nak_seq);
	return !missing;
}

void
bb_roce_comp_restart_later(struct bb_roce_qp *qp, uint64_t now, uint64_t wait)
{
	struct bb_roce_req *req = &qp->req;

	bb_roce_req_rewind(qp);
	req->going_back = false;
	req->rnr_wait = true;
	req->rto.waiting = false; /* the delay is not the peer's */
	req->deadline = now + wait;
}

static void
rnr_nak(struct bb_roce_qp *qp, uint8_t code, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;

	/* Ignore a repeated RNR NAK: no packet is in flight, so none must be sent again. */
	if (req->nxt == req->una)
		return;
	qp->stats.rnr_nak_retry++;
	if (req->rnr_retries == 0) {
		qp->stats.rnr_retry_exceeded++;
		bb_roce_req_failed(qp, BB_SYN_RNR_RETRY_EXC);
		return;
	}
	if (qp->attr.rnr_retry != 7)
		req->rnr_retries--;
	bb_roce_comp_restart_later(qp, now, bb_roce_rnr_ns(code));
}

/* Returns the number of credits that a credit code stands for (9.7.7.2.3 table 46). */
static uint32_t
credits_of(uint8_t code)
{
	if (code < 2)
		return code;
	return code % 2 == 0 ? 1u << code / 2 : 3u << (code - 3) / 2;
}

static void
take_credits(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	struct bb_roce_req *req = &qp->req;
	uint8_t code = pkt->syndrome & BB_ROCE_AETH_VALUE;
	uint32_t limit;

	if (code == BB_ROCE_CREDITS_OFF) {
		req->credits = false;
		return;
	}
	limit = bb_roce_psn_add(pkt->msn, credits_of(code));
	/*
	 * Granted credits are never withdrawn. A lower limit comes from an older ACK that arrives
	 * late.
	 */
	if (!req->credits || bb_roce_psn_diff(limit, req->limit) > 0)
		req->limit = limit;
	req->credits = true;
}

static void
nak(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	switch (pkt->syndrome & BB_ROCE_AETH_VALUE) {
	case BB_ROCE_NAK_PSN:
		go_back(qp, &qp->stats.packet_seq_err);
		break;
	case BB_ROCE_NAK_INVALID:
		bb_roce_req_failed(qp, BB_SYN_REMOTE_INVAL_REQ);
		break;
	case BB_ROCE_NAK_ACCESS:
		bb_roce_req_failed(qp, BB_SYN_REMOTE_ACCESS);
		break;
	case BB_ROCE_NAK_OP:
		bb_roce_req_failed(qp, BB_SYN_REMOTE_OP);
		break;
	default:
		bb_roce_req_failed(qp, BB_SYN_BAD_RESP);
	}
}

/* Records that the expected packet of a READ response or an atomic's response was processed. */
static void
response_done(struct bb_roce_qp *qp, bool ends_request, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;

	/* A request that is about to be sent again is not counted in rd_atomic. */
	if (ends_request && req->nxt != req->una)
		req->rd_atomic--;
	progress(qp, bb_roce_psn_add(req->una, 1), now);
}

/*
 * Handles the expected packet of a READ response. The packet must be a first or last packet
 * exactly where the request expects one, and must have the expected length (9.7.2, 9.7.5.2.3).
 */
static void
read_response(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint64_t now)
{
	const struct bb_roce_req *req = &qp->req;
	const struct bb_roce_msg *msg = oldest(qp);
	uint16_t flags = bb_roce_ops[pkt->opcode].flags;
	uint32_t n = bb_roce_psn_distance(msg->psn, req->una), off = n * qp->attr.mtu;
	bool first = n % req->chunk == 0, whole = n + 1 == msg->packets;
	bool last = whole || n % req->chunk == req->chunk - 1;
	uint8_t synd;

	if (((flags & BB_ROCE_F_LAST) != 0) != last ||
	    ((flags & BB_ROCE_F_FIRST) != 0 ? !first && pkt->psn != req->resume_psn : first) ||
	    pkt->len != (whole ? msg->len - off : qp->attr.mtu)) {
		bb_roce_req_failed(qp, BB_SYN_BAD_RESP);
		return;
	}
	if (pkt->len != 0) {
		synd = qp->ops->place(qp->ctx, qp, msg, off, pkt->payload, pkt->len);
		if (synd == BB_ROCE_TRY_AGAIN) {
			bb_roce_comp_restart_later(qp, now, BB_ROCE_PAGE_NS);
			return;
		}
		if (synd != 0) {
			bb_roce_req_failed(qp, synd);
			return;
		}
	}
	response_done(qp, last, now);
}

static void
atomic_response(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint64_t now)
{
	uint8_t synd = qp->ops->atomic_result(qp->ctx, qp, oldest(qp), pkt->orig);

	if (synd == BB_ROCE_TRY_AGAIN) {
		bb_roce_comp_restart_later(qp, now, BB_ROCE_PAGE_NS);
		return;
	}
	if (synd != 0) {
		bb_roce_req_failed(qp, synd);
		return;
	}
	response_done(qp, true, now);
}

void
bb_roce_comp_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;
	bool ack = (pkt->opcode & 0x1f) == BB_ROCE_ACK, data = !ack;
	uint8_t kind = (flags & BB_ROCE_F_AETH) != 0 ? pkt->syndrome & AETH_CLASS : 0;
	uint32_t ahead = bb_roce_psn_distance(req->una, pkt->psn);

	if (ahead >= bb_roce_psn_distance(req->una, req->sent)) {
		/*
		 * An unsolicited ACK has the PSN of the last ACK and only updates the credits
		 * (9.7.7.2.2).
		 */
		if (ack && kind == BB_ROCE_AETH_ACK && ahead == BB_ROCE_PSN_MASK)
			take_credits(qp, pkt);
		else
			qp->stats.drop_ghost++;
		return;
	}
	if ((kind != BB_ROCE_AETH_ACK && data) ||
	    (kind != BB_ROCE_AETH_ACK && kind != BB_ROCE_AETH_RNR && kind != BB_ROCE_AETH_NAK)) {
		bb_roce_req_failed(qp, BB_SYN_BAD_RESP);
		return;
	}
	if ((flags & BB_ROCE_F_AETH) != 0 && kind == BB_ROCE_AETH_ACK)
		take_credits(qp, pkt);
	if (!process_ack(qp, pkt->psn,
			 data                       ? RESPONSE_DATA
			 : kind == BB_ROCE_AETH_ACK ? RESPONSE_ACK
			 : kind == BB_ROCE_AETH_RNR ? RESPONSE_RNR
						    : RESPONSE_NAK,
			 now))
		return;
	if (!ack) {
		bool is_read = oldest(qp)->kind == BB_ROCE_MSG_READ;

		if (!bb_roce_is_read_or_atomic(oldest(qp)->kind) ||
		    is_read != ((flags & BB_ROCE_F_READ_RESP) != 0))
			bb_roce_req_failed(qp, BB_SYN_BAD_RESP);
		else if (req->una != pkt->psn)
			go_back(qp, &qp->stats.implied_nak_seq);
		else if (is_read)
			read_response(qp, pkt, now);
		else
			atomic_response(qp, pkt, now);
	} else if (kind == BB_ROCE_AETH_RNR) {
		rnr_nak(qp, pkt->syndrome & BB_ROCE_AETH_VALUE, now);
	} else if (kind == BB_ROCE_AETH_NAK) {
		nak(qp, pkt);
	}
}

/*
 * Returns true if an ACK of all PSNs before @end completes all requests, and process_ack() has no
 * other work.
 */
static inline bool
acks_all(const struct bb_roce_qp *qp, uint32_t end)
{
	const struct bb_roce_req *req = &qp->req;

	return ((end ^ req->nxt) | (end ^ req->sent) | (end ^ req->psn) | req->rd_atomic |
		req->failed_synd) == 0 &&
	       req->probe == BB_ROCE_PROBE_NONE && qp->ops->complete_run != NULL;
}

/* Not inline, so that the common path of bb_roce_short_acked() saves fewer registers. */
static __attribute__((noinline)) void
short_acked_some(struct bb_roce_qp *qp, uint32_t psn, uint64_t now)
{
	(void)process_ack(qp, psn, RESPONSE_ACK, now);
}

void
bb_roce_short_acked(struct bb_roce_qp *qp, uint32_t psn, uint64_t now)
{
	const uint32_t end = bb_roce_psn_add(psn, 1);
	struct bb_roce_req *req = &qp->req;
	uint32_t n;

	if (!acks_all(qp, end)) {
		short_acked_some(qp, psn, now);
		return;
	}
	/* Does what progress() does, without the search for the last message that completes. */
	bb_roce_rto_acked(qp, end, now);
	if (req->rto.waiting)
		bb_roce_rto_waited(qp, now);
	advance(qp, end);
	n = req->unassigned - req->tail;
	qp->ops->complete_run(qp->ctx, qp, n);
	req->tail += n;
	/* The state differs if a completion could not be reported. */
	if (qp->state == BB_ROCE_RTS)
		stop_timers(req);
}

void
bb_roce_comp_tick(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;

	if (now < req->deadline || req->deadline == BB_ROCE_NEVER) {
		if (now >= req->rto.deadline)
			bb_roce_rto_tick(qp);
		return;
	}
	req->deadline = BB_ROCE_NEVER;
	if (req->rnr_wait) {
		req->rnr_wait = false;
		return;
	}
	qp->stats.ack_timeout++;
	req->going_back = false;
	retry(qp, false);
}
