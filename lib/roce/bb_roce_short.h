/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Short paths for ordinary single-packet messages and their ACKs. The caller builds and parses the
 * packets. These functions update the queue pair as bb_roce_post(), bb_roce_run() and bb_roce_rx()
 * would have done.
 */
#ifndef BB_ROCE_SHORT_H
#define BB_ROCE_SHORT_H

#include "bb_cqe.h"
#include "bb_roce_qp.h"

/* A packet of the short path: an RC SEND_ONLY without immediate, that is, a BTH and a payload. */
struct bb_roce_short {
	uint32_t dqpn, psn;
	uint32_t len; /* payload bytes, not 0 */
	uint16_t pkey;
	uint8_t flags; /* SE, MIGREQ and ACKREQ of struct bb_roce_pkt */
};

/*
 * Parses a packet of @len bytes whose first BB_ROCE_BTH_LEN bytes are at @bth; @len is at least
 * that. Returns true if bb_roce_parse() accepts it, it fits the short path and has no congestion
 * mark.
 */
static inline bool
bb_roce_short_parse(struct bb_roce_short *s, const uint8_t *bth, size_t len)
{
	uint32_t w[3], pad;

	bb_roce_bth_load(w, bth);
	pad = w[0] >> BB_ROCE_BTH0_PAD & 3;
	if (w[0] >> BB_ROCE_BTH0_OPCODE != ((uint32_t)BB_ROCE_RC | BB_ROCE_SEND_ONLY) ||
	    (w[0] & BB_ROCE_BTH0_TVER) != 0 || (w[1] & BB_ROCE_BTH1_MARKS) != 0 || (len & 3) != 0 ||
	    len > UINT16_MAX || len <= BB_ROCE_BTH_LEN + pad)
		return false;
	s->dqpn = w[1] & BB_ROCE_QPN_MASK;
	s->psn = w[2] & BB_ROCE_PSN_MASK;
	s->len = (uint32_t)len - BB_ROCE_BTH_LEN - pad;
	s->pkey = (uint16_t)w[0];
	s->flags = bb_roce_bth_flags(w);
	return true;
}

static inline void
bb_roce_short_build(uint8_t *bth, const struct bb_roce_short *s)
{
	bb_roce_bth_store(bth, (uint8_t)BB_ROCE_RC | BB_ROCE_SEND_ONLY, s->flags, s->pkey, s->dqpn,
			  s->psn, bb_roce_pad(s->len));
}

/* ---- Requester */

/* Starts the timers for a packet of PSN @psn with AckReq. */
void bb_roce_short_timed(struct bb_roce_qp *qp, uint32_t psn, uint64_t now);
/* Updates the timers after a packet without AckReq was sent. */
void bb_roce_short_unasked(struct bb_roce_qp *qp, uint64_t now);

/*
 * Sends up to @budget packets of a pending retransmission, which would otherwise block the short
 * path.
 */
void bb_roce_short_again(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);

/*
 * Returns how many single-packet messages bb_roce_short_sent() accepts now. If 0, the caller must
 * use bb_roce_post().
 */
static inline uint32_t
bb_roce_short_room(const struct bb_roce_qp *qp)
{
	const struct bb_roce_req *req = &qp->req;
	uint32_t slots, room;

	/* All posted messages have been sent. No message must be repeated or delayed. */
	if (qp->state != BB_ROCE_RTS || qp->attr.type != BB_ROCE_RC || req->next != req->head ||
	    req->unassigned != req->head || req->nxt != req->sent || req->nxt != req->psn ||
	    req->rnr_wait || req->again != 0 || req->bad != 0 || req->credits)
		return 0;
	slots = req->mask + 1 - (req->head - req->tail);
	room = qp->attr.window - ((req->nxt - req->una) & BB_ROCE_PSN_MASK);
	return slots < room ? slots : room;
}

/*
 * Returns true if the next packet must request an ACK. @more: another packet follows at once, and
 * its ACK covers this one.
 */
static inline bool
bb_roce_short_asks(const struct bb_roce_qp *qp, bool more)
{
	return !more || qp->req.no_ack_req + 1 >= BB_ROCE_UNASKED_MAX || bb_roce_window_asks(qp);
}

/*
 * Returns the next message to post, for the caller to fill in: a SEND or WRITE, with or without
 * immediate, of 1 to MTU bytes without a fence. Fields that its kind does not use may stay as they
 * are.
 */
static inline struct bb_roce_msg *
bb_roce_short_msg(const struct bb_roce_qp *qp)
{
	return &qp->req.ring[qp->req.head & qp->req.mask];
}

/*
 * Posts the message and records it as sent in a packet of PSN req.nxt, which requests an ACK if
 * @ask. Before the call bb_roce_short_room() must have returned a positive number.
 */
static inline void
bb_roce_short_sent(struct bb_roce_qp *qp, struct bb_roce_msg *m, bool ask, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;
	const uint32_t psn = req->nxt;

	req->ssn = (req->ssn + 1) & BB_ROCE_PSN_MASK;
	m->ssn = req->ssn;
	m->psn = psn;
	m->packets = 1;
	req->psn = req->nxt = req->sent = (psn + 1) & BB_ROCE_PSN_MASK;
	req->head++;
	req->unassigned++;
	req->next++;
	qp->stats.tx_packets++;
	if (!ask) {
		req->no_ack_req++;
		bb_roce_short_unasked(qp, now);
		return;
	}
	req->no_ack_req = 0;
	/* With other packets in flight the timers already run. */
	if (req->rto.timing && req->deadline != UINT64_MAX && req->rto.deadline != UINT64_MAX)
		req->rto.asked = psn;
	else
		bb_roce_short_timed(qp, psn, now);
}

/*
 * Posts a SEND with AckReq as bb_roce_short_sent() does, and fills in *s for its packet. @flags: 0
 * or BB_ROCE_SOLICITED.
 */
static inline void
bb_roce_short_send(struct bb_roce_qp *qp, uint64_t cookie, uint32_t len, uint8_t flags,
		   uint64_t now, struct bb_roce_short *s)
{
	struct bb_roce_msg *m = bb_roce_short_msg(qp);
	const uint32_t psn = qp->req.nxt;

	m->cookie = cookie;
	m->kind = BB_ROCE_MSG_SEND;
	m->flags = flags;
	m->len = len;
	bb_roce_short_sent(qp, m, true, now);
	s->dqpn = qp->attr.dqpn;
	s->psn = psn;
	s->len = len;
	s->pkey = qp->attr.pkey;
	s->flags = (uint8_t)(BB_ROCE_MIGREQ | BB_ROCE_ACKREQ |
			     ((flags & BB_ROCE_SOLICITED) != 0 ? BB_ROCE_SE : 0));
}

/* ---- Responder */

/* Returns true if the short path may accept a single-packet request of this PSN. */
static inline bool
bb_roce_short_next(const struct bb_roce_qp *qp, uint32_t psn)
{
	const struct bb_roce_resp *r = &qp->resp;

	return (qp->state == BB_ROCE_RTS || qp->state == BB_ROCE_RTR) && psn == r->epsn &&
	       r->fatal == 0 && !r->in_message && r->n_ahead == 0;
}

/* Returns true if the short path may accept this packet, sent from @src to @dst. */
static inline bool
bb_roce_short_expected(const struct bb_roce_qp *qp, const struct bb_roce_short *s,
		       const uint8_t src[16], const uint8_t dst[16], uint8_t tclass)
{
	/*
	 * One of two matching P_Keys must be a full member's (10.9.3). ECN 3 means congestion (RFC
	 * 3168).
	 */
	return bb_roce_short_next(qp, s->psn) && qp->attr.type == BB_ROCE_RC &&
	       !qp->resp.have_recv && s->pkey == qp->attr.pkey && (s->pkey & 0x8000) != 0 &&
	       s->len <= qp->attr.mtu && (tclass & 3) != 3 &&
	       bb_roce_same_gid(src, qp->attr.path.dst) && bb_roce_same_gid(dst, qp->attr.path.src);
}

/* The less common cases of bb_roce_short_message(). */
void bb_roce_short_took(struct bb_roce_qp *qp, uint32_t len, uint8_t flags);

/* Records that a message of one packet, @len bytes, was executed. @flags: ACKREQ, or 0. */
static inline void
bb_roce_short_message(struct bb_roce_qp *qp, uint8_t kind, uint32_t len, uint8_t flags)
{
	const uint8_t ack = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
	struct bb_roce_resp *r = &qp->resp;

	qp->stats.rx_packets++;
	r->nak_sent = false;
	r->kind = kind;
	/* READs are pending, a pending NAK is obsolete, or this is the peer's first packet. */
	if (qp->state != BB_ROCE_RTS || r->todo != r->head ||
	    (r->ack_due && r->ack_syndrome != ack)) {
		bb_roce_short_took(qp, len, flags);
		return;
	}
	r->off = len;
	r->msn = (r->msn + 1) & BB_ROCE_PSN_MASK;
	r->epsn = (r->epsn + 1) & BB_ROCE_PSN_MASK;
	if (flags & BB_ROCE_ACKREQ) {
		r->ack_due = true;
		r->ack_syndrome = ack;
		r->ack_seq = r->seq;
	}
	r->seq++;
}

/* Records that the packet was accepted: its receive is filled and completed. */
static inline void
bb_roce_short_taken(struct bb_roce_qp *qp, const struct bb_roce_short *s)
{
	bb_roce_short_message(qp, BB_ROCE_MSG_SEND, s->len, s->flags);
}

/* ---- Packets with the same headers as an earlier one */

/*
 * Returns true if later packets with the same addresses, P_Key, opcode and length can take the
 * short path. Other fields are still to be checked. Their functions are bb_roce_short_wrote(),
 * bb_roce_short_message() and bb_roce_short_acked(). The packet must be an ACK, or a non-empty RDMA
 * WRITE or SEND of one packet, with or without immediate. The result is valid until the next
 * bb_roce_qp_rtr().
 */
bool bb_roce_short_repeats(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
			   const struct bb_roce_net *net);

/*
 * Returns true if the short path may accept a message that consumes a receive. It may not if the
 * responder has already taken a receive.
 */
static inline bool
bb_roce_short_receives(const struct bb_roce_qp *qp)
{
	return !qp->resp.have_recv;
}

/*
 * Records that a WRITE, for which bb_roce_short_next() returned true, was executed as its RETH
 * requests. A WRITE with immediate has completed its receive.
 */
static inline void
bb_roce_short_wrote(struct bb_roce_qp *qp, uint64_t va, uint32_t rkey, uint32_t len, uint8_t flags)
{
	struct bb_roce_resp *r = &qp->resp;

	r->va = va;
	r->rkey = rkey;
	r->dmalen = len;
	qp->stats.rx_write++;
	bb_roce_short_message(qp, BB_ROCE_MSG_WRITE, len, flags);
}

/* Returns true if bb_roce_short_ahead() may store a packet whose PSN is after the expected one. */
static inline bool
bb_roce_short_is_ahead(const struct bb_roce_qp *qp, uint32_t psn)
{
	const struct bb_roce_resp *r = &qp->resp;

	return (qp->state == BB_ROCE_RTS || qp->state == BB_ROCE_RTR) && r->fatal == 0 &&
	       ((psn - r->epsn - 1) & BB_ROCE_PSN_MASK) + 1 < r->aheads;
}

void bb_roce_short_ahead(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt);

/*
 * Returns true if the short path may accept this ACK: it grants no credits, and the requester
 * counts none.
 */
static inline bool
bb_roce_short_ack_next(const struct bb_roce_qp *qp, uint32_t psn, uint8_t syndrome)
{
	const struct bb_roce_req *req = &qp->req;

	return qp->state == BB_ROCE_RTS && syndrome == (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF) &&
	       !req->credits &&
	       ((psn - req->una) & BB_ROCE_PSN_MASK) < ((req->sent - req->una) & BB_ROCE_PSN_MASK);
}

/* Processes such an ACK. */
void bb_roce_short_acked(struct bb_roce_qp *qp, uint32_t psn, uint64_t now);

/* ---- Sending ACKs */

/*
 * Returns true if an ACK is the only pending answer: no NAK, no response. bb_roce_ack_psn() returns
 * its PSN.
 */
static inline bool
bb_roce_short_ack_due(const struct bb_roce_qp *qp)
{
	const struct bb_roce_resp *r = &qp->resp;

	return r->ack_due && r->todo == r->head && r->fatal == 0 &&
	       r->ack_syndrome == (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF) && !qp->cnp_due &&
	       (qp->state == BB_ROCE_RTS || qp->state == BB_ROCE_RTR);
}

/* Records that the ACK was sent. */
static inline void
bb_roce_short_ack_sent(struct bb_roce_qp *qp)
{
	qp->stats.tx_packets++;
	qp->stats.tx_acks++;
	qp->resp.ack_due = false;
}

#endif
