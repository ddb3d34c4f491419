/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Functions and constants shared by the files of the RoCEv2 engine. */
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

/*
 * Sets the common fields of a packet of @qp and sends the packet. Returns the result of ops->tx().
 */
bool bb_roce_send(struct bb_roce_qp *qp, struct bb_roce_pkt *pkt, const struct bb_roce_iov *iov,
		  uint32_t n, const struct bb_roce_msg *msg);
/*
 * Moves the QP to ERR because of a request of the peer, after the NAK was sent, and calls
 * ops->failed().
 */
void bb_roce_resp_failed(struct bb_roce_qp *qp, uint8_t synd);
/* Completes the oldest message with @status. */
void bb_roce_req_done(struct bb_roce_qp *qp, uint8_t status);
/* Completes the oldest message with the error @synd and moves the QP to ERR. */
void bb_roce_req_failed(struct bb_roce_qp *qp, uint8_t synd);

/* ---- bb_roce_req.c */
uint32_t bb_roce_req_run(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);
bool bb_roce_req_busy(const struct bb_roce_qp *qp);
/* Restarts transmission at the oldest PSN that is not acknowledged. */
void bb_roce_req_rewind(struct bb_roce_qp *qp);

/* ---- bb_roce_comp.c */
/* Handles a response packet. @flags: flags of the packet's opcode. */
void bb_roce_comp_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags,
		     uint64_t now);
void bb_roce_comp_tick(struct bb_roce_qp *qp, uint64_t now);
/*
 * Starts the ack timer if it does not run. Called after an RC request packet was sent, and when the
 * link has no room for one. If the link never has room again, because the peer has stopped, only
 * this timer detects it.
 */
void bb_roce_comp_waits(struct bb_roce_qp *qp, uint64_t now);

/* ---- bb_roce_rto.c */
/* Called by bb_roce_qp_rts(). */
void bb_roce_rto_init(struct bb_roce_qp *qp);
/*
 * Records that a packet with PSNs @first to @last was sent and requests an ACK. @fresh: the packet
 * was sent for the first time. Only fresh packets with such a request are used to measure the round
 * trip and start the adaptive interval. The peer need not acknowledge other packets before later
 * ones, which may be sent much later.
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
/* Called when an ACK acknowledges all PSNs before @una, before req->una changes to @una. */
void bb_roce_rto_acked(struct bb_roce_qp *qp, uint32_t una, uint64_t now);
/*
 * Starts a wait for progress if none has started. bb_roce_rto_waited() ends the wait when there is
 * progress.
 */
static inline void
bb_roce_rto_waits(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;

	if (!rto->waiting)
		rto->since = now;
	rto->waiting = true;
}
void bb_roce_rto_waited(struct bb_roce_qp *qp, uint64_t now);
/* Returns the ack timeout in ns. It is one to four times the configured ack timeout. */
uint64_t bb_roce_rto_ack_timeout(const struct bb_roce_qp *qp);
/* Starts the adaptive interval if an ACK is outstanding. */
void bb_roce_rto_start(struct bb_roce_qp *qp, uint64_t now);
/*
 * Called before all packets are sent again. Stops the measurement of the round trip (Karn's
 * algorithm) and the adaptive interval, because no packet counts as in flight.
 */
void bb_roce_rto_rewound(struct bb_roce_qp *qp);
/*
 * Records that the oldest packet was sent again and requests an ACK. @missing: the peer has
 * reported the packet as missing. The next ACK then belongs to this transmission, so the round trip
 * can be measured. Under constant loss no other packet can be used for that.
 */
void bb_roce_rto_again(struct bb_roce_qp *qp, bool missing, uint64_t now);
/* Records that a NAK arrived. So losses have caused the delay, and not a slow peer. */
void bb_roce_rto_lost(struct bb_roce_qp *qp);
/* Handles the expiry of the adaptive interval. */
void bb_roce_rto_tick(struct bb_roce_qp *qp);

/* ---- bb_roce_again.c */
/* Values of bb_roce_req.probe: state of the oldest packet while only this packet is sent again. */
enum bb_roce_probe {
	BB_ROCE_PROBE_NONE,
	BB_ROCE_PROBE_MISSING,  /* the peer has reported that the packet did not arrive */
	BB_ROCE_PROBE_IN_DOUBT, /* the packet may have arrived, or may be in flight */
};
/* Called by bb_roce_qp_rts(). */
void bb_roce_again_init(struct bb_roce_qp *qp);
/*
 * Called when the packet with the oldest PSN seems to be lost: a NAK has reported it, or its ACK is
 * late. Returns true if only this packet, or a run of packets that starts with it, must be sent
 * again. Returns false if all packets from it on must be sent again.
 */
bool bb_roce_again_lost(struct bb_roce_qp *qp, bool by_nak);
/*
 * Returns true if the packet with the oldest PSN can be sent again alone, because it belongs to a
 * SEND or WRITE. Call it only while no packets are being sent again. Otherwise a restart from the
 * oldest PSN costs no more than the packets that were sent again since.
 */
bool bb_roce_again_one(const struct bb_roce_req *req);
/* Records that the next packet of the run was sent again. */
void bb_roce_again_sent(struct bb_roce_qp *qp, uint64_t now);
/*
 * Called when the peer has received @acked PSNs from the oldest packet on, after
 * bb_roce_again_lost(). The peer has acknowledged them, sent their READ data, or refused them for
 * lack of a receive. @last: an ACK has reported it.
 */
void bb_roce_again_acked(struct bb_roce_qp *qp, uint32_t acked, bool last);

/* ---- bb_roce_ahead.c */
/*
 * Handles a request packet whose PSN is after the expected one. Stores the packet if the peer uses
 * selective repeat and there is room. Returns false if a different packet with the same PSN was
 * stored before. Both packets are then dropped.
 */
bool bb_roce_ahead_keep(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags);
/*
 * Call it after the PSNs from @before on were executed, if packets are stored. Returns false if no
 * stored packet is left. Otherwise sets *pkt to the stored packet with the expected PSN, or to NULL
 * if that packet is missing. The caller must release the packet.
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
