/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Short cuts for messages of one packet that are out of the ordinary in nothing, and for their
 * ACKs. Who uses them makes and takes the packets; they do to the queue pair what bb_roce_post(),
 * bb_roce_run() and bb_roce_rx() would have done.
 */
#ifndef BB_ROCE_SHORT_H
#define BB_ROCE_SHORT_H

#include "bb_cqe.h"
#include "bb_roce_qp.h"

/* Such a packet: a SEND_ONLY of RC without immediate, which is a BTH and a payload. */
struct bb_roce_short {
	uint32_t dqpn, psn;
	uint32_t len; /* of the payload: not 0 */
	uint16_t pkey;
	uint8_t flags; /* SE, MIGREQ and ACKREQ of struct bb_roce_pkt */
};

/*
 * Is a packet of @len bytes, of which the first BB_ROCE_BTH_LEN are at @bth, one that
 * bb_roce_parse() takes, and such a one? It marks no congestion. @len is at least that.
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

/* A packet of that PSN asks for an answer: the timers run. */
void bb_roce_short_timed(struct bb_roce_qp *qp, uint32_t psn, uint64_t now);
/* One that does not went out: they run as far as they do then. */
void bb_roce_short_unasked(struct bb_roce_qp *qp, uint64_t now);

/* Up to @budget packets that are to be sent again go now: else they close the short way. */
void bb_roce_short_again(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);

/* How many messages of one packet bb_roce_short_sent() would take now. 0: post them. */
static inline uint32_t
bb_roce_short_room(const struct bb_roce_qp *qp)
{
	const struct bb_roce_req *req = &qp->req;
	uint32_t slots, room;

	/* All that was posted has been sent, and nothing is to be sent again or put off. */
	if (qp->state != BB_ROCE_RTS || qp->attr.type != BB_ROCE_RC || req->next != req->head ||
	    req->unassigned != req->head || req->nxt != req->sent || req->nxt != req->psn ||
	    req->rnr_wait || req->again != 0 || req->bad != 0 || req->credits)
		return 0;
	slots = req->mask + 1 - (req->head - req->tail);
	room = qp->attr.window - ((req->nxt - req->una) & BB_ROCE_PSN_MASK);
	return slots < room ? slots : room;
}

/*
 * Does the packet that goes next have to ask for an answer? @more: another one goes behind it at
 * once, whose answer will do.
 */
static inline bool
bb_roce_short_asks(const struct bb_roce_qp *qp, bool more)
{
	return !more || qp->req.no_ack_req + 1 >= BB_ROCE_UNASKED_MAX || bb_roce_window_asks(qp);
}

/*
 * The message that is posted next, for the caller to fill in: a SEND or WRITE, with or without
 * immediate, of 1 to MTU bytes without a fence. What its kind has no use for may stay.
 */
static inline struct bb_roce_msg *
bb_roce_short_msg(const struct bb_roce_qp *qp)
{
	return &qp->req.ring[qp->req.head & qp->req.mask];
}

/*
 * It is posted, and sent in a packet of PSN req.nxt that asks for an answer or not. Before it,
 * bb_roce_short_room() has said that it may go.
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
	/* When others are out the timers run already. */
	if (req->rto.timing && req->deadline != UINT64_MAX && req->rto.deadline != UINT64_MAX)
		req->rto.asked = psn;
	else
		bb_roce_short_timed(qp, psn, now);
}

/* The same of a SEND that asks, @flags 0 or BB_ROCE_SOLICITED: its packet goes into *s. */
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

/* May the request of that PSN be taken so, if it is a whole message? */
static inline bool
bb_roce_short_next(const struct bb_roce_qp *qp, uint32_t psn)
{
	const struct bb_roce_resp *r = &qp->resp;

	return (qp->state == BB_ROCE_RTS || qp->state == BB_ROCE_RTR) && psn == r->epsn &&
	       r->fatal == 0 && !r->in_message && r->n_ahead == 0;
}

/* May this packet be taken so, from one address to another? */
static inline bool
bb_roce_short_expected(const struct bb_roce_qp *qp, const struct bb_roce_short *s,
		       const uint8_t src[16], const uint8_t dst[16], uint8_t tclass)
{
	/* Of one P_Key at least one side is a full member (10.9.3). RFC 3168: 3 is congestion. */
	return bb_roce_short_next(qp, s->psn) && qp->attr.type == BB_ROCE_RC &&
	       !qp->resp.have_recv && s->pkey == qp->attr.pkey && (s->pkey & 0x8000) != 0 &&
	       s->len <= qp->attr.mtu && (tclass & 3) != 3 &&
	       bb_roce_same_gid(src, qp->attr.path.dst) && bb_roce_same_gid(dst, qp->attr.path.src);
}

/* bb_roce_short_message() of what has more to it. */
void bb_roce_short_took(struct bb_roce_qp *qp, uint32_t len, uint8_t flags);

/* A message of one packet, @len bytes, was carried out; @flags: ACKREQ, or none. */
static inline void
bb_roce_short_message(struct bb_roce_qp *qp, uint8_t kind, uint32_t len, uint8_t flags)
{
	const uint8_t ack = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
	struct bb_roce_resp *r = &qp->resp;

	qp->stats.rx_packets++;
	r->nak_sent = false;
	r->kind = kind;
	/* With READs to answer, a NAK that has come too late, or the first one. */
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

/* That packet was taken: its receive is filled and complete. */
static inline void
bb_roce_short_taken(struct bb_roce_qp *qp, const struct bb_roce_short *s)
{
	bb_roce_short_message(qp, BB_ROCE_MSG_SEND, s->len, s->flags);
}

/* ---- Packets with the headers of one that came before */

/*
 * If another packet comes with its addresses, P_Key, opcode and length, is it one for
 * bb_roce_short_wrote(), bb_roce_short_message() or bb_roce_short_acked(), as far as these go?
 * Until the next bb_roce_qp_rtr(). It is an RDMA WRITE or a SEND of one packet with or without
 * immediate, not empty, or an ACK.
 */
bool bb_roce_short_repeats(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
			   const struct bb_roce_net *net);

/* May it be a message that takes a receive? None is in hand. */
static inline bool
bb_roce_short_receives(const struct bb_roce_qp *qp)
{
	return !qp->resp.have_recv;
}

/*
 * Such a WRITE, for which bb_roce_short_next() is true, was carried out, as its RETH says; one with
 * an immediate has completed its receive.
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

/* One whose PSN is ahead of the expected one, to be kept: may bb_roce_short_ahead() take it? */
static inline bool
bb_roce_short_is_ahead(const struct bb_roce_qp *qp, uint32_t psn)
{
	const struct bb_roce_resp *r = &qp->resp;

	return (qp->state == BB_ROCE_RTS || qp->state == BB_ROCE_RTR) && r->fatal == 0 &&
	       ((psn - r->epsn - 1) & BB_ROCE_PSN_MASK) + 1 < r->aheads;
}

void bb_roce_short_ahead(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt);

/* May such an ACK be taken so? It has no credits, and there are none to be forgotten. */
static inline bool
bb_roce_short_ack_next(const struct bb_roce_qp *qp, uint32_t psn, uint8_t syndrome)
{
	const struct bb_roce_req *req = &qp->req;

	return qp->state == BB_ROCE_RTS && syndrome == (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF) &&
	       !req->credits &&
	       ((psn - req->una) & BB_ROCE_PSN_MASK) < ((req->sent - req->una) & BB_ROCE_PSN_MASK);
}

/* It is taken. */
void bb_roce_short_acked(struct bb_roce_qp *qp, uint32_t psn, uint64_t now);

/* ---- ACKs out */

/* Is an ACK, and no NAK or response, all that it has to answer? bb_roce_ack_psn() is its PSN. */
static inline bool
bb_roce_short_ack_due(const struct bb_roce_qp *qp)
{
	const struct bb_roce_resp *r = &qp->resp;

	return r->ack_due && r->todo == r->head && r->fatal == 0 &&
	       r->ack_syndrome == (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF) && !qp->cnp_due &&
	       (qp->state == BB_ROCE_RTS || qp->state == BB_ROCE_RTR);
}

/* It has left. */
static inline void
bb_roce_short_ack_sent(struct bb_roce_qp *qp)
{
	qp->stats.tx_packets++;
	qp->stats.tx_acks++;
	qp->resp.ack_due = false;
}

#endif
