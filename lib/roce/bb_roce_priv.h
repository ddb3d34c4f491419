/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Between the files of the engine. */
#ifndef BB_ROCE_PRIV_H
#define BB_ROCE_PRIV_H

#include "bb_cqe.h"
#include "bb_roce_qp.h"

#define BB_ROCE_NEVER   UINT64_MAX
#define BB_ROCE_MAX_MSG (1u << 31) /* bytes of the longest message (9.7.4.1.5) */

/* a - b of PSNs, as a signed distance: PSNs are at most 2^23 apart. */
static inline int32_t
bb_roce_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* PSNs from @from on to @to, which is not behind it. */
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

/* Packets of @len bytes, up to 2^31: one at least. @mtu is a power of two. */
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

/* Send one packet of @qp: common fields are filled in here. ops->tx's answer. */
bool bb_roce_send(struct bb_roce_qp *qp, struct bb_roce_pkt *pkt, const struct bb_roce_iov *iov,
		  uint32_t n, const struct bb_roce_msg *msg);
/* To ERR by a request of the peer's: state, then ops->failed(). The NAK has left. */
void bb_roce_resp_failed(struct bb_roce_qp *qp, uint8_t synd);
/* Complete the oldest message. */
void bb_roce_req_done(struct bb_roce_qp *qp, uint8_t status);
/* To ERR by the oldest message, which completes with @synd. */
void bb_roce_req_failed(struct bb_roce_qp *qp, uint8_t synd);

/* ---- bb_roce_req.c */
uint32_t bb_roce_req_run(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);
bool bb_roce_req_busy(const struct bb_roce_qp *qp);
/* Send again from the oldest PSN that is not acknowledged. */
void bb_roce_req_rewind(struct bb_roce_qp *qp);

/* ---- bb_roce_comp.c */
/* @flags: of its opcode, here and in bb_roce_resp_rx(). */
void bb_roce_comp_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags,
		     uint64_t now);
void bb_roce_comp_tick(struct bb_roce_qp *qp, uint64_t now);
/*
 * Starts the ack timer unless it runs: a request packet of RC went out, or the link has no room for
 * it. A link that never takes it again, as a peer that has stopped, is found by the timer alone.
 */
void bb_roce_comp_waits(struct bb_roce_qp *qp, uint64_t now);

/* ---- bb_roce_rto.c */
/* At bb_roce_qp_rts(). */
void bb_roce_rto_init(struct bb_roce_qp *qp);
/*
 * A packet of PSNs @first to @last asks for an answer and went out; @fresh: not before. Only such
 * packets are timed, and start the interval: the peer need not answer others, and those behind them
 * may be long in coming.
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
/* All before @una is about to be acknowledged: it is ahead of req->una. */
void bb_roce_rto_acked(struct bb_roce_qp *qp, uint32_t una, uint64_t now);
/* The wait for progress begins, unless it has; it ends well. */
static inline void
bb_roce_rto_waits(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;

	if (!rto->waiting)
		rto->since = now;
	rto->waiting = true;
}
void bb_roce_rto_waited(struct bb_roce_qp *qp, uint64_t now);
/* The ack timeout, in ns: as asked for, or up to four times that. */
uint64_t bb_roce_rto_ack_timeout(const struct bb_roce_qp *qp);
/* The interval begins, if an answer is due. */
void bb_roce_rto_start(struct bb_roce_qp *qp, uint64_t now);
/* All is to be sent again: nothing is timed (Karn), and nothing is out. */
void bb_roce_rto_rewound(struct bb_roce_qp *qp);
/*
 * The oldest packet is sent again: an answer to it is waited for. @missing: the peer has said that
 * it had not come, so the answer is to this one, and is timed. Where there is always something that
 * is lost no other packet would be.
 */
void bb_roce_rto_again(struct bb_roce_qp *qp, bool missing, uint64_t now);
/* A NAK: it is losses that hold things up, not a peer that has become slow. */
void bb_roce_rto_lost(struct bb_roce_qp *qp);
/* The interval has passed. */
void bb_roce_rto_tick(struct bb_roce_qp *qp);

/* ---- bb_roce_again.c */
/* What is known of the oldest packet, which is sent again while nxt stays: bb_roce_req.probe. */
enum bb_roce_probe {
	BB_ROCE_PROBE_NONE,
	BB_ROCE_PROBE_MISSING,  /* the peer has said so of all that has been sent of it */
	BB_ROCE_PROBE_IN_DOUBT, /* it may have come, or be on the way */
};
/* At bb_roce_qp_rts(). */
void bb_roce_again_init(struct bb_roce_qp *qp);
/*
 * The oldest PSN seems to be lost: a NAK said so, or it is late. True: it alone, or a row from it
 * on, is to be sent again; else go back to it.
 */
bool bb_roce_again_lost(struct bb_roce_qp *qp, bool by_nak);
/*
 * Can the oldest PSN go again by itself, when no others are being sent again? That of a SEND or
 * WRITE. While there are, going back to it costs no more than has been sent again since.
 */
bool bb_roce_again_one(const struct bb_roce_req *req);
/* The next of that row went out. */
void bb_roce_again_sent(struct bb_roce_qp *qp, uint64_t now);
/*
 * It was to be sent again, and the peer has had @acked PSNs from it on: acknowledged, answered with
 * data or refused for want of a receive. @last: by an ACK.
 */
void bb_roce_again_acked(struct bb_roce_qp *qp, uint32_t acked, bool last);

/* ---- bb_roce_ahead.c */
/*
 * A request whose PSN is ahead of the expected one: keeps it if the peer repeats selectively and
 * there is room. False: another packet with its PSN was kept, and both are dropped.
 */
bool bb_roce_ahead_keep(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags);
/*
 * PSNs from @before on have been executed, and some packets are kept. False: none is left. Else
 * *pkt is the one that is expected now, to be given back; NULL: it is missing.
 */
bool bb_roce_ahead_next(struct bb_roce_qp *qp, uint32_t before, struct bb_roce_pkt **pkt);

/* ---- bb_roce_resp.c: RC and UC */
void bb_roce_resp_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags);
/* Answers: READ responses, atomics, ACKs and NAKs, in the order of their PSNs. */
uint32_t bb_roce_resp_run(struct bb_roce_qp *qp, uint32_t budget);
static inline bool
bb_roce_resp_busy(const struct bb_roce_qp *qp)
{
	return qp->resp.ack_due || qp->resp.todo != qp->resp.head;
}
/* First good packet of the peer's. */
void bb_roce_resp_established(struct bb_roce_qp *qp);
/* The access of packet @seq is refused: a NAK, then it fails. UC: the message is dropped. */
void bb_roce_resp_refuse(struct bb_roce_qp *qp, uint8_t synd, uint64_t seq);
/* A receive for the packet, or what it means that there is none. */
bool bb_roce_resp_recv_ready(struct bb_roce_qp *qp);
/* The receive in hand cannot take the message, of which @len bytes have come. */
void bb_roce_resp_recv_refused(struct bb_roce_qp *qp, uint32_t len, uint8_t status);
/* Complete the receive in hand by the last packet. False: the queue pair fails. @net: UD */
bool bb_roce_resp_recv_complete(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint8_t kind,
				uint32_t len, const struct bb_roce_net *net);
/* The next @packets PSNs are taken. */
void bb_roce_resp_advance(struct bb_roce_qp *qp, uint32_t packets);

/* ---- bb_roce_replay.c */
/* A READ or atomic at the expected PSN. */
void bb_roce_replay_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt);
/* One behind it, @seq in terms of resp.seq. */
void bb_roce_replay_again(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint64_t seq);
/* Is an answer due that acknowledges @seq? */
bool bb_roce_replay_covers(const struct bb_roce_resp *r, uint64_t seq);
/* The newest packet an ACK may name that is sent for the SEND or WRITE packet @seq again. */
uint64_t bb_roce_replay_ack_limit(const struct bb_roce_qp *qp, uint64_t seq);
/* Send the next packet that is due. Packets sent, 0 if it cannot be; -1: no room. */
int bb_roce_replay_run(struct bb_roce_qp *qp);

/* ---- bb_roce_ud.c */
void bb_roce_ud_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
		   const struct bb_roce_net *net);
uint32_t bb_roce_ud_run(struct bb_roce_qp *qp, uint32_t budget);

#endif
