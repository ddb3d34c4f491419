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

/* Returns a - b as a signed number, for two PSNs that are less than 2^23 apart. */
static inline int32_t
bb_roce_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/*
 * Returns the number of PSNs from @from up to, but not including, @to. @to must not be before
 * @from.
 */
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

/*
 * Returns the number of packets for @len bytes (at most 2^31), which is at least 1. @mtu must be a
 * power of two.
 */
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
/* Moves the QP to ERR after a NAK for a request of the peer was sent, and calls ops->failed(). */
void bb_roce_resp_failed(struct bb_roce_qp *qp, uint8_t synd);
/* Completes the oldest message with @status. */
void bb_roce_req_done(struct bb_roce_qp *qp, uint8_t status);
/* Completes the oldest message with the error @synd and moves the QP to ERR. */
void bb_roce_req_failed(struct bb_roce_qp *qp, uint8_t synd);

/* ---- bb_roce_req.c: the requester */
uint32_t bb_roce_req_run(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);
bool bb_roce_req_busy(const struct bb_roce_qp *qp);
/* Restarts the transmission from the oldest PSN that is not acknowledged. */
void bb_roce_req_rewind(struct bb_roce_qp *qp);
/* Time after which the requester accesses its memory again if a page was missing, ns. */
#define BB_ROCE_PAGE_NS 100000u
/*
 * Restarts the requester from the oldest PSN that is not acknowledged, @wait ns after @now. Until
 * then it sends nothing.
 */
void bb_roce_comp_restart_later(struct bb_roce_qp *qp, uint64_t now, uint64_t wait);

/* ---- bb_roce_comp.c: the completer */
/* Handles a response packet. @flags: flags of the packet's opcode. */
void bb_roce_comp_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags,
		     uint64_t now);
void bb_roce_comp_tick(struct bb_roce_qp *qp, uint64_t now);
/*
 * Starts the ack timer unless it already runs. Called after an RC request packet was sent, and
 * when the link has no room for one. If the peer has stopped, the link may never have room again,
 * which only this timer detects.
 */
void bb_roce_comp_waits(struct bb_roce_qp *qp, uint64_t now);

/* ---- bb_roce_rto.c: round-trip measurement and adaptive interval */
/* Initializes the measurement; called by bb_roce_qp_rts(). */
void bb_roce_rto_init(struct bb_roce_qp *qp);
/*
 * Records that a packet with PSNs @first to @last was sent and requests an ACK. @fresh: the packet
 * was sent for the first time. Only a fresh packet is used to measure the round trip and to start
 * the adaptive interval. The peer need not acknowledge a repeated packet before later packets,
 * which may be sent much later.
 */
static inline void
bb_roce_rto_ack_requested(struct bb_roce_qp *qp, uint32_t first, uint32_t last, bool fresh,
			  uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;

	rto->ack_req_psn = last;
	if (rto->timing || !fresh)
		return;
	rto->timing = true;
	rto->timed_psn = first;
	rto->timed_at = now;
}
/* Handles the acknowledgement of all PSNs before @una. Call it before req->una changes to @una. */
void bb_roce_rto_acked(struct bb_roce_qp *qp, uint32_t una, uint64_t now);
/*
 * Records that the requester waits for the peer's next response from now on, unless it waits
 * already. bb_roce_rto_waited() ends this wait when a response acknowledges a PSN.
 */
static inline void
bb_roce_rto_waits(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;

	if (!rto->waiting)
		rto->wait_start = now;
	rto->waiting = true;
}
void bb_roce_rto_waited(struct bb_roce_qp *qp, uint64_t now);
/* Returns the ack timeout in ns, which is one to four times the configured ack timeout. */
uint64_t bb_roce_rto_ack_timeout(const struct bb_roce_qp *qp);
/*
 * Starts the adaptive interval if an ACK is outstanding. After this interval without progress the
 * requester sends all packets again (bb_roce_rto.c).
 */
void bb_roce_rto_start(struct bb_roce_qp *qp, uint64_t now);
/*
 * Stops the measurement of the round trip (Karn's algorithm) and the adaptive interval. Called
 * before all packets are sent again, because no packet then counts as in flight.
 */
void bb_roce_rto_rewound(struct bb_roce_qp *qp);
/*
 * Records that the oldest packet was sent again and requests an ACK. @missing: the peer has
 * reported that packet as missing. The next ACK then belongs to the second transmission, so the
 * round trip can be measured. If packets are lost all the time, no other packet gives a round trip.
 */
void bb_roce_rto_repeated(struct bb_roce_qp *qp, bool missing, uint64_t now);
/*
 * Records that a NAK arrived. The missing ACK then comes from a loss and not from a slow peer, so
 * the adaptive interval is no longer doubled.
 */
void bb_roce_rto_lost(struct bb_roce_qp *qp);
/* Handles the expiry of the adaptive interval: sends packets again that are not acknowledged. */
void bb_roce_rto_tick(struct bb_roce_qp *qp);

/* ---- bb_roce_repeat.c: selective repeat of the requester */
/* Values of bb_roce_req.probe: state of the oldest packet while only this packet is sent again. */
enum bb_roce_probe {
	BB_ROCE_PROBE_NONE,
	BB_ROCE_PROBE_MISSING,  /* the peer has reported that the packet did not arrive */
	BB_ROCE_PROBE_IN_DOUBT, /* the packet may have arrived, or may be in flight */
};
/* Initializes selective repeat; called by bb_roce_qp_rts(). */
void bb_roce_repeat_init(struct bb_roce_qp *qp);
/*
 * Decides what to send again when the packet with the oldest PSN seems to be lost, because a NAK
 * has reported it (@by_nak) or its ACK is late. Returns true if only this packet, or a run of
 * packets that starts with it, must be sent again. Returns false if this packet and all packets
 * after it must be sent again.
 */
bool bb_roce_repeat_lost(struct bb_roce_qp *qp, bool by_nak);
/*
 * Returns true if the packet with the oldest PSN can be sent again alone, because it belongs to a
 * SEND or WRITE. Call it only if no packets are being sent again. Otherwise a restart from the
 * oldest PSN costs no more than those packets.
 */
bool bb_roce_repeat_possible(const struct bb_roce_req *req);
/*
 * Records that the next packet of a run was sent. A run is a sequence of packets that begins with a
 * lost packet and that selective repeat sends again.
 */
void bb_roce_repeat_sent(struct bb_roce_qp *qp, uint64_t now);
/*
 * Evaluates an acknowledgement after bb_roce_repeat_lost(). The peer has received @acked PSNs from
 * the oldest packet on: it has acknowledged them, sent their READ data, or refused them for lack of
 * a receive. @last: true if an ACK has reported this, false if a response with data or a NAK has.
 */
void bb_roce_repeat_acked(struct bb_roce_qp *qp, uint32_t acked, bool last);

/* ---- bb_roce_ooo.c: selective repeat of the responder */
/*
 * Handles a request packet whose PSN is after the expected PSN. Stores the packet if the peer uses
 * selective repeat and there is room. Returns false if a different packet with the same PSN was
 * stored before. Both packets are then dropped.
 */
bool bb_roce_ooo_store(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags);
/*
 * Removes the stored packet with the expected PSN. Call it while packets are stored, after the
 * execution of a packet has advanced the expected PSN. @before: expected PSN before that execution.
 * Returns false if no packet is stored any more. Otherwise sets *pkt to the removed packet, which
 * the caller must release, or to NULL if the packet with the expected PSN is missing.
 */
bool bb_roce_ooo_next(struct bb_roce_qp *qp, uint32_t before, struct bb_roce_pkt **pkt);

/* ---- bb_roce_resp.c: the responder of RC and UC */
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
/*
 * Calls ops->established() if the QP is in RTR and the callback was not called before. Call it for
 * every request packet that is valid where it arrives, whether it is executed or rejected by a NAK.
 */
static inline void
bb_roce_resp_established(struct bb_roce_qp *qp)
{
	if (qp->resp.established || qp->state != BB_ROCE_RTR)
		return;
	qp->resp.established = true;
	qp->ops->established(qp->ctx, qp);
}
/*
 * Refuses the memory access of request packet @seq. An RC QP sends a NAK with the error @synd and
 * then goes to ERR. A UC QP drops the message. If @synd is BB_ROCE_TRY_AGAIN, an RC QP sends an RNR
 * NAK for the packet that it executes.
 */
void bb_roce_resp_refuse(struct bb_roce_qp *qp, uint8_t synd, uint64_t seq);
/*
 * Returns true if there is a current receive for the packet, after taking one if necessary.
 * Without a posted receive it returns false, and an RC QP sends an RNR NAK, while a UC or UD QP
 * drops the message. If the receive queue has failed or does not exist, it fails the QP and returns
 * false.
 */
bool bb_roce_resp_recv_ready(struct bb_roce_qp *qp);
/*
 * Fails the current message because its data could not be placed in the current receive. @len:
 * bytes of the message that have arrived. @status: error of the receive's completion, or
 * BB_ROCE_TRY_AGAIN: then the QP sends an RNR NAK, and the message can go on.
 */
void bb_roce_resp_recv_refused(struct bb_roce_qp *qp, uint32_t len, uint8_t status);
/*
 * Completes the current receive after the last packet of its message was executed. Returns false
 * if the QP goes to ERR. @net: network fields of the packet; valid only for UD, else NULL.
 */
bool bb_roce_resp_recv_complete(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint8_t kind,
				uint32_t len, const struct bb_roce_net *net);
/* Advances the expected PSN by @packets PSNs. */
void bb_roce_resp_advance(struct bb_roce_qp *qp, uint32_t packets);

/* ---- bb_roce_replay.c: READs and atomics in the responder */
/* Handles a READ or atomic request that has the expected PSN. */
void bb_roce_replay_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt);
/*
 * Handles a repeated READ or atomic request, whose PSN is before the expected PSN. @seq: number of
 * the packet, counted as bb_roce_resp.seq.
 */
void bb_roce_replay_duplicate(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint64_t seq);
/* Returns true if a pending READ or atomic response also acknowledges packet @seq. */
bool bb_roce_replay_covers(const struct bb_roce_resp *r, uint64_t seq);
/*
 * Returns the newest packet that an ACK may acknowledge when the SEND or WRITE packet @seq is
 * repeated. That is the last packet before the next stored READ or atomic, because only the
 * response of a READ or atomic may acknowledge it.
 */
uint64_t bb_roce_replay_ack_limit(const struct bb_roce_qp *qp, uint64_t seq);
/*
 * Sends the next packet of the pending READ and atomic responses. Call it only if a response is
 * pending. Returns 1 if a packet was sent, and -1 if the link has no room or a page is missing.
 * Returns 0 if the memory of a READ can no longer be read; the request is then dropped, or refused
 * with a NAK.
 */
int bb_roce_replay_run(struct bb_roce_qp *qp);

/* ---- bb_roce_ud.c: datagrams */
void bb_roce_ud_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
		   const struct bb_roce_net *net);
uint32_t bb_roce_ud_run(struct bb_roce_qp *qp, uint32_t budget);

#endif
