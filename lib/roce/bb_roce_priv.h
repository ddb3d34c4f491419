/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Shared by the files of the engine. */
#ifndef BB_ROCE_PRIV_H
#define BB_ROCE_PRIV_H

#include "bb_cqe.h"
#include "bb_roce_qp.h"

#define BB_ROCE_NEVER   UINT64_MAX
#define BB_ROCE_MAX_MSG (1u << 31) /* bytes of the longest message (9.7.4.1.5) */

/* Returns a - b as a signed distance: two PSNs are at most 2^23 apart. */
static inline int32_t
bb_roce_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* Returns the number of PSNs from @from up to @to, where @to is not before @from. */
static inline uint32_t
bb_roce_psn_distance(uint32_t from, uint32_t to)
{
	return (to - from) & BB_ROCE_PSN_MASK;
}

static inline uint32_t
bb_roce_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & BB_ROCE_PSN_MASK;
}

/* Returns the number of packets for @len bytes (up to 2^31), at least 1. @mtu is a power of two. */
static inline uint32_t
bb_roce_packets(uint32_t len, uint32_t mtu)
{
	return len == 0 ? 1 : ((len - 1) >> __builtin_ctz(mtu)) + 1;
}

static inline bool
bb_roce_is_read_or_atomic(uint8_t kind)
{
	return kind >= BB_ROCE_MSG_READ;
}

/* Sends one packet of @qp after it fills in the common fields. Returns the result of ops->tx(). */
bool bb_roce_send(struct bb_roce_qp *qp, struct bb_roce_pkt *pkt, const struct bb_roce_iov *iov,
		  uint32_t n, const struct bb_roce_msg *msg);
/*
 * Moves the QP to ERR because of a request of the peer, after the NAK was sent, and calls
 * ops->failed().
 */
void bb_roce_resp_failed(struct bb_roce_qp *qp, uint8_t synd);
/* Completes the oldest message. */
void bb_roce_req_done(struct bb_roce_qp *qp, uint8_t status);
/* Moves the QP to ERR because of the oldest message, which completes with @synd. */
void bb_roce_req_failed(struct bb_roce_qp *qp, uint8_t synd);

/* ---- bb_roce_req.c */
uint32_t bb_roce_req_run(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);
bool bb_roce_req_busy(const struct bb_roce_qp *qp);
/* Restarts transmission at the oldest PSN that is not acknowledged. */
void bb_roce_req_rewind(struct bb_roce_qp *qp);

/* ---- bb_roce_comp.c */
/* @flags: those of the packet's opcode, here and in bb_roce_resp_rx(). */
void bb_roce_comp_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags,
		     uint64_t now);
void bb_roce_comp_tick(struct bb_roce_qp *qp, uint64_t now);
/*
 * Starts the ack timer unless it runs. Called after a request packet of RC was sent, and when the
 * link has no room for one. Only the timer detects a link that never has room again because its
 * peer has stopped.
 */
void bb_roce_comp_waits(struct bb_roce_qp *qp, uint64_t now);

/* ---- bb_roce_rto.c */
/* Called by bb_roce_qp_rts(). */
void bb_roce_rto_init(struct bb_roce_qp *qp);
/*
 * Records that a packet of PSNs @first to @last, which requests an ACK, was sent. @fresh: it was
 * sent for the first time. Only such packets are timed and start the interval. The peer need not
 * answer other packets, and the packets after those may be sent much later.
 */
static inline void
bb_roce_rto_asked(struct bb_roce_qp *qp, uint32_t first, uint32_t last, bool fresh, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;

	rto->asked = last;
	if (rto->timing || !fresh)
		return;
	rto->timing = true;
	rto->timed_psn = first;
	rto->timed_at = now;
}
/* Called before all PSNs before @una are acknowledged, while req->una is still the old value. */
void bb_roce_rto_acked(struct bb_roce_qp *qp, uint32_t una, uint64_t now);
/* Starts the wait for progress unless it runs; bb_roce_rto_waited() ends it on progress. */
static inline void
bb_roce_rto_waits(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;

	if (!rto->waiting)
		rto->since = now;
	rto->waiting = true;
}
void bb_roce_rto_waited(struct bb_roce_qp *qp, uint64_t now);
/* Returns the ack timeout in ns: the configured one, or up to four times that. */
uint64_t bb_roce_rto_ack_timeout(const struct bb_roce_qp *qp);
/* Starts the interval if an ACK is due. */
void bb_roce_rto_start(struct bb_roce_qp *qp, uint64_t now);
/*
 * All packets will be sent again: stops timing (Karn) and the interval, since nothing is in flight.
 */
void bb_roce_rto_rewound(struct bb_roce_qp *qp);
/*
 * The oldest packet is sent again and requests an ACK. @missing: the peer reported it missing, so
 * the ACK belongs to this transmission and can be timed. Under constant loss no other packet could
 * be timed.
 */
void bb_roce_rto_again(struct bb_roce_qp *qp, bool missing, uint64_t now);
/* A NAK arrived: the delay comes from losses, not from a peer that became slow. */
void bb_roce_rto_lost(struct bb_roce_qp *qp);
/* Handles the end of the interval. */
void bb_roce_rto_tick(struct bb_roce_qp *qp);

/* ---- bb_roce_again.c */
/* State of the oldest packet, which is sent again while nxt does not change: bb_roce_req.probe. */
enum bb_roce_probe {
	BB_ROCE_PROBE_NONE,
	BB_ROCE_PROBE_MISSING,  /* the peer reported that none of its transmissions arrived */
	BB_ROCE_PROBE_IN_DOUBT, /* the packet may have arrived, or may be in flight */
};
/* Called by bb_roce_qp_rts(). */
void bb_roce_again_init(struct bb_roce_qp *qp);
/*
 * The oldest PSN seems to be lost: a NAK reported it, or it is late. Returns true if it alone, or a
 * run of packets from it on, is to be sent again; false if all PSNs from it on are.
 */
bool bb_roce_again_lost(struct bb_roce_qp *qp, bool by_nak);
/*
 * Returns true if the oldest PSN can be sent again alone: it belongs to a SEND or WRITE. Call it
 * only when no other packets are being sent again. While some are, restarting from the oldest PSN
 * costs no more than what was sent again since.
 */
bool bb_roce_again_one(const struct bb_roce_req *req);
/* Records that the next packet of that run was sent. */
void bb_roce_again_sent(struct bb_roce_qp *qp, uint64_t now);
/*
 * The oldest packet was to be sent again, and the peer has received @acked PSNs from it on:
 * acknowledged, answered with data, or refused for lack of a receive. @last: reported by an ACK.
 */
void bb_roce_again_acked(struct bb_roce_qp *qp, uint32_t acked, bool last);

/* ---- bb_roce_ahead.c */
/*
 * Handles a request whose PSN is after the expected one: stores it if the peer repeats selectively
 * and there is room. Returns false if a different packet with its PSN was stored; both are dropped.
 */
bool bb_roce_ahead_keep(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags);
/*
 * Call when the PSNs from @before on have been executed and some packets are stored. Returns false
 * if none is left. Otherwise *pkt is the packet with the expected PSN, which the caller must
 * release, or NULL if it is missing.
 */
bool bb_roce_ahead_next(struct bb_roce_qp *qp, uint32_t before, struct bb_roce_pkt **pkt);

/* ---- bb_roce_resp.c: RC and UC */
void bb_roce_resp_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags);
/*
 * Sends pending READ responses, atomic responses, ACKs and NAKs in PSN order, at most @budget
 * packets. Returns the number of packets sent.
 */
uint32_t bb_roce_resp_run(struct bb_roce_qp *qp, uint32_t budget);
static inline bool
bb_roce_resp_busy(const struct bb_roce_qp *qp)
{
	return qp->resp.ack_due || qp->resp.todo != qp->resp.head;
}
/* Called for the first valid packet of the peer. */
void bb_roce_resp_established(struct bb_roce_qp *qp);
/*
 * Refuses the memory access of request packet @seq. An RC QP sends a NAK and then goes to ERR. A UC
 * QP drops the message.
 */
void bb_roce_resp_refuse(struct bb_roce_qp *qp, uint8_t synd, uint64_t seq);
/*
 * Returns true if a receive is ready for the packet. Otherwise sends an RNR NAK, drops the message
 * or fails the QP, and returns false.
 */
bool bb_roce_resp_recv_ready(struct bb_roce_qp *qp);
/*
 * Fails the current message, because the receive cannot take it. @len: bytes of the message that
 * have arrived. @status: error of the receive's completion.
 */
void bb_roce_resp_recv_refused(struct bb_roce_qp *qp, uint32_t len, uint8_t status);
/*
 * Completes the current receive when the last packet of its message arrives. Returns false if the
 * QP goes to ERR. @net: network fields of the packet; used for UD only.
 */
bool bb_roce_resp_recv_complete(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint8_t kind,
				uint32_t len, const struct bb_roce_net *net);
/* Advances the expected PSN by @packets. */
void bb_roce_resp_advance(struct bb_roce_qp *qp, uint32_t packets);

/* ---- bb_roce_replay.c */
/* Handles a READ or atomic request that has the expected PSN. */
void bb_roce_replay_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt);
/*
 * Handles a repeated READ or atomic request, whose PSN is before the expected one. @seq: its PSN as
 * an extended number, like resp.seq.
 */
void bb_roce_replay_again(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint64_t seq);
/* Returns true if a pending READ response or atomic response acknowledges packet @seq. */
bool bb_roce_replay_covers(const struct bb_roce_resp *r, uint64_t seq);
/*
 * Returns the newest packet that an ACK may acknowledge when the SEND or WRITE packet @seq is
 * repeated: the last packet before the next stored READ or atomic, which only its response
 * acknowledges.
 */
uint64_t bb_roce_replay_ack_limit(const struct bb_roce_qp *qp, uint64_t seq);
/*
 * Sends the next packet of the pending READ and atomic responses. Call it only if one is pending.
 * Returns 1 if a packet was sent, or -1 if the link has no room. Returns 0 if the memory of a READ
 * can no longer be read: the request is then dropped, or refused with a NAK.
 */
int bb_roce_replay_run(struct bb_roce_qp *qp);

/* ---- bb_roce_ud.c */
void bb_roce_ud_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
		   const struct bb_roce_net *net);
uint32_t bb_roce_ud_run(struct bb_roce_qp *qp, uint32_t budget);

#endif
