/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fast paths for single-packet messages and their ACKs. The caller builds and parses the packets.
 * These functions update the queue pair as bb_roce_post(), bb_roce_run() and bb_roce_rx() would
 * do.
 */
#ifndef BB_ROCE_SHORT_H
#define BB_ROCE_SHORT_H

#include "bb_cqe.h"
#include "bb_roce_qp.h"

/*
 * A packet that the fast path can parse: an RC SEND_ONLY without immediate, which has a BTH and a
 * payload only.
 */
struct bb_roce_short {
	uint32_t dqpn, psn;
	uint32_t len; /* payload bytes, at least 1 */
	uint16_t pkey;
	uint8_t flags; /* SE, MIGREQ and ACKREQ, with the bits of bb_roce_pkt.flags */
};

/*
 * Parses a packet of @len bytes whose first BB_ROCE_BTH_LEN bytes are at @bth. @len must be at
 * least BB_ROCE_BTH_LEN. Returns true if bb_roce_parse() would accept the packet, struct
 * bb_roce_short can describe it, and it has no congestion mark.
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

/* Starts the timers after a packet of PSN @psn with AckReq was sent. */
void bb_roce_short_ack_req(struct bb_roce_qp *qp, uint32_t psn, uint64_t now);
/* Updates the timers after a packet without AckReq was sent. */
void bb_roce_short_no_ack_req(struct bb_roce_qp *qp, uint64_t now);

/*
 * Sends up to @budget packets that must be sent again. Until they are sent, bb_roce_short_room()
 * returns 0.
 */
void bb_roce_short_repeat(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);

/*
 * Returns how many messages bb_roce_short_assign() accepts now. If the result is 0, the caller must
 * use bb_roce_post().
 */
static inline uint32_t
bb_roce_short_room(const struct bb_roce_qp *qp)
{
	const struct bb_roce_req *req = &qp->req;
	uint32_t slots, room;

	/*
	 * The fast path is possible only if all posted messages have been sent, and none must be
	 * repeated or delayed.
	 */
	if (qp->state != BB_ROCE_RTS || qp->attr.type != BB_ROCE_RC || req->next != req->head ||
	    req->unassigned != req->head || req->nxt != req->sent || req->nxt != req->psn ||
	    req->rnr_wait || req->run_left != 0 || req->failed_synd != 0 || req->credits)
		return 0;
	slots = req->mask + 1 - (req->head - req->tail);
	room = qp->attr.window - ((req->nxt - req->una) & BB_ROCE_PSN_MASK);
	return slots < room ? slots : room;
}

/*
 * Returns how many of the next packets may be sent without AckReq if more packets follow them. The
 * first of these packets is the one that the last bb_roce_short_assign() has posted. Call it before
 * bb_roce_short_timers().
 */
static inline uint32_t
bb_roce_short_quiet(const struct bb_roce_qp *qp)
{
	const struct bb_roce_req *req = &qp->req;
	const uint32_t flight = (req->nxt - req->una - 1) & BB_ROCE_PSN_MASK;
	const uint32_t quarter = qp->attr.window / 4;
	const int32_t room = (int32_t)(qp->attr.window - flight);
	int32_t most = quarter < BB_ROCE_MAX_NO_ACK_REQ ? (int32_t)quarter
							: (int32_t)BB_ROCE_MAX_NO_ACK_REQ;

	most -= (int32_t)req->no_ack_req;
	if (most > room)
		most = room;
	return most > 1 ? (uint32_t)most - 1 : 0;
}

/*
 * Returns the next free message, for the caller to fill in: a SEND or WRITE, with or without
 * immediate, of 1 to MTU bytes, without a fence. Fields that the message's kind does not use may
 * keep any value.
 */
static inline struct bb_roce_msg *
bb_roce_short_msg(const struct bb_roce_qp *qp)
{
	return &qp->req.ring[qp->req.head & qp->req.mask];
}

/*
 * Posts the message @m, whose packet the caller is about to send. bb_roce_short_room() must have
 * returned at least 1 before the call. The next call for the queue pair must be
 * bb_roce_short_timers(). If the packet has no AckReq, other calls of this function may come first,
 * and one call of bb_roce_short_quiet_sent() covers all their packets.
 */
static inline void
bb_roce_short_assign(struct bb_roce_qp *qp, struct bb_roce_msg *m)
{
	struct bb_roce_req *req = &qp->req;
	const uint32_t psn = req->nxt;

	req->ssn = (req->ssn + 1) & BB_ROCE_PSN_MASK;
	m->ssn = req->ssn;
	m->psn = psn;
	m->packets = 1;
	req->psn = req->nxt = req->sent = (psn + 1) & BB_ROCE_PSN_MASK;
	/* The three indexes were equal, which bb_roce_short_room() has checked. */
	req->unassigned = req->next = ++req->head;
	qp->stats.tx_packets++;
}

/* Returns the PSN of the last message of bb_roce_short_assign(). */
static inline uint32_t
bb_roce_short_last_psn(const struct bb_roce_qp *qp)
{
	return (qp->req.nxt - 1) & BB_ROCE_PSN_MASK;
}

/* Updates the timers after @n packets of bb_roce_short_assign() were sent without AckReq. */
static inline void
bb_roce_short_quiet_sent(struct bb_roce_qp *qp, uint32_t n, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;

	req->no_ack_req += n;
	/* Only a packet with AckReq starts the adaptive interval. */
	if (!req->rto.waiting || (req->deadline == UINT64_MAX && qp->attr.ack_timeout != 0))
		bb_roce_short_no_ack_req(qp, now);
}

/*
 * Updates the timers after the packet of bb_roce_short_assign() was sent. @ask: that packet
 * requests an ACK.
 */
static inline void
bb_roce_short_timers(struct bb_roce_qp *qp, bool ask, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;

	if (!ask) {
		bb_roce_short_quiet_sent(qp, 1, now);
		return;
	}
	req->no_ack_req = 0;
	/* The timers already run if other packets are in flight. */
	if (req->rto.timing && req->deadline != UINT64_MAX && req->rto.deadline != UINT64_MAX)
		req->rto.ack_req_psn = bb_roce_short_last_psn(qp);
	else
		bb_roce_short_ack_req(qp, bb_roce_short_last_psn(qp), now);
}

/*
 * Posts a SEND as bb_roce_short_assign() does, and sets *s to the packet that the caller must send,
 * which has AckReq. @flags: 0 or BB_ROCE_SOLICITED.
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
	bb_roce_short_assign(qp, m);
	bb_roce_short_timers(qp, true, now);
	s->dqpn = qp->attr.dqpn;
	s->psn = psn;
	s->len = len;
	s->pkey = qp->attr.pkey;
	s->flags = (uint8_t)(BB_ROCE_MIGREQ | BB_ROCE_ACKREQ |
			     ((flags & BB_ROCE_SOLICITED) != 0 ? BB_ROCE_SE : 0));
}

/* ---- Responder */

/* Returns true if the fast path may accept a single-packet request with this PSN. */
static inline bool
bb_roce_short_next(const struct bb_roce_qp *qp, uint32_t psn)
{
	const struct bb_roce_resp *r = &qp->resp;

	return (qp->state == BB_ROCE_RTS || qp->state == BB_ROCE_RTR) && psn == r->epsn &&
	       r->fatal == 0 && !r->in_message && r->n_out_of_order == 0;
}

/*
 * Returns true if an RC packet with P_Key @pkey, sent from @src to @dst, comes from the QP's peer
 * and has no congestion mark.
 */
static inline bool
bb_roce_short_from_peer(const struct bb_roce_qp *qp, uint16_t pkey, const uint8_t src[16],
			const uint8_t dst[16], uint8_t tclass)
{
	/*
	 * Two P_Keys match only if at least one belongs to a full member (10.9.3). ECN 3 means
	 * congestion (RFC 3168).
	 */
	return qp->attr.type == BB_ROCE_RC && pkey == qp->attr.pkey && (pkey & 0x8000) != 0 &&
	       (tclass & 3) != 3 && bb_roce_same_gid(src, qp->attr.path.dst) &&
	       bb_roce_same_gid(dst, qp->attr.path.src);
}

/* Returns true if the fast path may accept this packet, which was sent from @src to @dst. */
static inline bool
bb_roce_short_expected(const struct bb_roce_qp *qp, const struct bb_roce_short *s,
		       const uint8_t src[16], const uint8_t dst[16], uint8_t tclass)
{
	return bb_roce_short_next(qp, s->psn) && !qp->resp.have_recv && s->len <= qp->attr.mtu &&
	       bb_roce_short_from_peer(qp, s->pkey, src, dst, tclass);
}

/* Handles the cases of bb_roce_short_message() that are not common. */
void bb_roce_short_message_slow(struct bb_roce_qp *qp, uint32_t len, uint8_t flags);

/* Records that a single-packet message of @len bytes was executed. @flags: ACKREQ or 0. */
static inline void
bb_roce_short_message(struct bb_roce_qp *qp, uint8_t kind, uint32_t len, uint8_t flags)
{
	const uint8_t ack = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
	struct bb_roce_resp *r = &qp->resp;

	r->nak_sent = false;
	r->kind = kind;
	/*
	 * A slower function handles three rare cases: READs are pending, a pending NAK is obsolete,
	 * or this is the peer's first packet.
	 */
	if (qp->state != BB_ROCE_RTS || r->todo != r->head ||
	    (r->ack_due && r->ack_syndrome != ack)) {
		bb_roce_short_message_slow(qp, len, flags);
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

/*
 * Records that the packet was accepted. Before the call the caller has filled and completed the
 * receive.
 */
static inline void
bb_roce_short_accepted(struct bb_roce_qp *qp, const struct bb_roce_short *s)
{
	bb_roce_short_message(qp, BB_ROCE_MSG_SEND, s->len, s->flags);
}

/* ---- Packets with the same headers as an earlier packet */

/*
 * Returns true if later packets may take the fast path if they have the addresses, P_Key, opcode
 * and length of this packet. The packet must be an ACK, or a non-empty RDMA WRITE or SEND of one
 * packet, with or without immediate.
 * The caller must still check the other fields of each later packet. It then calls
 * bb_roce_short_written(), bb_roce_short_message() or bb_roce_short_acked(). The result is valid
 * until the next bb_roce_qp_rtr().
 */
bool bb_roce_short_repeats(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
			   const struct bb_roce_net *net);

/*
 * Returns true if the fast path may accept a message that consumes a receive. It must not if the
 * responder already has a current receive.
 */
static inline bool
bb_roce_short_receives(const struct bb_roce_qp *qp)
{
	return !qp->resp.have_recv;
}

/*
 * Records that a WRITE with these values in its RETH was executed. bb_roce_short_next() must have
 * returned true for the WRITE. If the WRITE has an immediate, the caller has completed the receive
 * that the immediate consumes.
 */
static inline void
bb_roce_short_written(struct bb_roce_qp *qp, uint64_t va, uint32_t rkey, uint32_t len,
		      uint8_t flags)
{
	struct bb_roce_resp *r = &qp->resp;

	r->va = va;
	r->rkey = rkey;
	r->dmalen = len;
	qp->stats.rx_write++;
	bb_roce_short_message(qp, BB_ROCE_MSG_WRITE, len, flags);
}

/*
 * Returns true if bb_roce_short_out_of_order() may store a packet with PSN @psn, which is after the
 * expected one.
 */
static inline bool
bb_roce_short_is_out_of_order(const struct bb_roce_qp *qp, uint32_t psn)
{
	const struct bb_roce_resp *r = &qp->resp;

	return (qp->state == BB_ROCE_RTS || qp->state == BB_ROCE_RTR) && r->fatal == 0 &&
	       ((psn - r->epsn - 1) & BB_ROCE_PSN_MASK) + 1 < r->max_out_of_order;
}

void bb_roce_short_out_of_order(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt);

/*
 * Returns true if the fast path may accept this ACK: it grants no credits, and the requester does
 * not count credits.
 */
static inline bool
bb_roce_short_ack_next(const struct bb_roce_qp *qp, uint32_t psn, uint8_t syndrome)
{
	const struct bb_roce_req *req = &qp->req;

	return qp->state == BB_ROCE_RTS && syndrome == (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF) &&
	       !req->credits &&
	       ((psn - req->una) & BB_ROCE_PSN_MASK) < ((req->sent - req->una) & BB_ROCE_PSN_MASK);
}

/* Processes an ACK for which bb_roce_short_ack_next() returned true. */
void bb_roce_short_acked(struct bb_roce_qp *qp, uint32_t psn, uint64_t now);

/* ---- Sending ACKs */

/*
 * Returns true if the responder has an ACK to send and nothing else: no NAK, no CNP, and no READ or
 * atomic response. bb_roce_ack_psn() returns the PSN of the ACK.
 */
static inline bool
bb_roce_short_ack_due(const struct bb_roce_qp *qp)
{
	const struct bb_roce_resp *r = &qp->resp;

	return r->ack_due && r->todo == r->head && r->fatal == 0 &&
	       r->ack_syndrome == (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF) && !qp->cnp_due &&
	       (qp->state == BB_ROCE_RTS || qp->state == BB_ROCE_RTR);
}

/* Records that the pending ACK was sent. */
static inline void
bb_roce_short_ack_sent(struct bb_roce_qp *qp)
{
	qp->stats.tx_packets++;
	qp->resp.ack_due = false;
}

#endif
