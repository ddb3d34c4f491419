/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The RoCEv2 engine: one queue pair's protocol and nothing else. Packets, messages to send and
 * the time go in; packets, accesses to memory and completions come out, by the functions of struct
 * bb_roce_ops. It has no clock, no allocation, no lock and no network of its own: everything that
 * can happen to a packet, and years of time, run in a unit test and are the same each time.
 *
 * Three machines work on a queue pair (IBTA vol. 1, chapter 9): the requester makes packets of
 * messages (bb_roce_req.c), the completer takes what comes back for them and keeps time
 * (bb_roce_comp.c, bb_roce_rto.c), the responder answers the peer's requests (bb_roce_resp.c and,
 * for READs and atomics, bb_roce_replay.c). Behind a lost packet the responder keeps what comes
 * (bb_roce_ahead.c), and the requester sends that one alone again if it can (bb_roce_again.c).
 * Datagrams are in bb_roce_ud.c. bb_roce_qp.c is what the caller sees.
 *
 * The caller keeps to one thread at a time per queue pair, calls bb_roce_rx() for each packet that
 * names it, bb_roce_run() while bb_roce_busy(), and bb_roce_tick() at bb_roce_deadline(). Time is
 * nanoseconds from any start; it does not go back.
 */
#ifndef BB_ROCE_QP_H
#define BB_ROCE_QP_H

#include "bb_roce_pkt.h"

/* Addresses and what else of the IP and UDP headers the engine is told or asks for. */
struct bb_roce_net {
	uint8_t src[16], dst[16]; /* GIDs; IPv4 as ::ffff:a.b.c.d */
	uint16_t sport;           /* UDP source port */
	uint8_t tclass;           /* DSCP and ECN */
	uint8_t hop_limit;
	uint32_t flow_label; /* of IPv6 */
};

static inline bool
bb_roce_same_gid(const uint8_t a[16], const uint8_t b[16])
{
	uint64_t x[2], y[2];

	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return x[0] == y[0] && x[1] == y[1];
}

/* ---- Messages */

enum bb_roce_kind {
	BB_ROCE_MSG_SEND,
	BB_ROCE_MSG_SEND_IMM,
	BB_ROCE_MSG_SEND_INV,
	BB_ROCE_MSG_WRITE,
	BB_ROCE_MSG_WRITE_IMM,
	BB_ROCE_MSG_READ,
	BB_ROCE_MSG_CMP_SWAP,
	BB_ROCE_MSG_FETCH_ADD,
};

enum {
	BB_ROCE_SOLICITED = 1u << 0,
	BB_ROCE_FENCE = 1u << 1, /* not before all earlier READs and atomics are done */
};

/* One message of the requester. The caller fills the first part, the engine the second. */
struct bb_roce_msg {
	uint64_t cookie; /* the caller's */
	uint8_t kind;
	uint8_t flags;
	uint32_t len; /* bytes, up to 1 << 31; 8 of an atomic */
	uint32_t imm; /* as it travels; SEND_INV: the key, host order */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap_add, compare;
	/* UD only */
	uint32_t dqpn, qkey;
	const struct bb_roce_net *net; /* lives until the message is complete */

	uint32_t psn;     /* of its first packet */
	uint32_t packets; /* of the request, or of a READ's response */
	uint32_t ssn;     /* of its last request: a READ may be several (9.7.7.2) */
};

/* ---- What the engine asks of its caller */

struct bb_roce_qp;

struct bb_roce_iov {
	const void *p;
	uint32_t len;
};
/* Pieces of one packet at most; payload in more of them is put together by who has it. */
#define BB_ROCE_MAX_IOV 16

enum bb_roce_take {
	BB_ROCE_TAKE_OK,
	BB_ROCE_TAKE_EMPTY,  /* RC: an RNR NAK; UC, UD: the message is dropped */
	BB_ROCE_TAKE_FAILED, /* the queue is in error, and so is the queue pair */
	BB_ROCE_TAKE_NEVER,  /* it has no such queue: the request is invalid */
};

/* Answer of bb_roce_ops.invalidate, not a syndrome. */
#define BB_ROCE_AGAIN 0xffu

enum bb_roce_access {
	BB_ROCE_ACCESS_WRITE,
	BB_ROCE_ACCESS_READ,
	BB_ROCE_ACCESS_ATOMIC,
};

/* A message that used up a receive. */
struct bb_roce_recv {
	uint8_t kind;   /* SEND, SEND_IMM, SEND_INV or WRITE_IMM */
	uint8_t status; /* 0, or BB_SYN_* of lib/format */
	bool solicited;
	uint32_t len; /* bytes of the message, those of the GRH not counted */
	uint32_t imm; /* as it travels; SEND_INV: the key */
	/* UD only */
	uint32_t sqpn;
	const struct bb_roce_net *net;
};

/*
 * All are called from within bb_roce_rx(), _run() or _tick() and must not call these. A status is
 * 0 or a syndrome, BB_SYN_*.
 */
struct bb_roce_ops {
	/*
	 * Send a packet: *pkt (not its payload), the payload in @n pieces, to the queue pair's
	 * path (RC, UC) or @msg->net (UD). @msg: the message it is part of, so that the caller can
	 * hold its completion back while the network reads its memory; NULL for the responder's.
	 * The pieces are valid until the message completes, or during the call if @msg is NULL.
	 * False: no room now; the engine is busy and asks again in the next bb_roce_run().
	 */
	bool (*tx)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
		   const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg);

	/* Requester: @len bytes of the message from @off on. Pieces, or minus a syndrome. */
	int (*gather)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
		      uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV]);
	/* Data of a READ response for the message's own memory. */
	uint8_t (*place)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg,
			 uint32_t off, const uint8_t *data, uint32_t len);
	/* What an atomic found, in host order. */
	uint8_t (*atomic_result)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg,
				 uint64_t orig);
	/*
	 * The message is done, in the order of posting. Its slot is free on return. Who cannot
	 * take it may end the queue pair: bb_roce_qp_err().
	 */
	void (*complete)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg,
			 uint8_t status);

	/*
	 * Responder: take the next receive, for the message that begins. It is in hand until
	 * recv_done(); one of a message that UC or UD drops serves the next message.
	 */
	enum bb_roce_take (*recv_take)(void *ctx, struct bb_roce_qp *qp);
	/*
	 * Data of a SEND, from byte @off of the message on. LOCAL_LENGTH, LOCAL_PROT and others
	 * fail it. Of a datagram: once, with 0 bytes too, and @off is behind the 40 bytes of the
	 * GRH, for which the receive must have room and which the caller writes if this fits.
	 */
	uint8_t (*recv_place)(void *ctx, struct bb_roce_qp *qp, uint32_t off, const uint8_t *data,
			      uint32_t len);
	/* Completion of the receive taken. Not 0: it could not be told, the queue pair fails. */
	uint8_t (*recv_done)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_recv *r);
	/*
	 * Invalidate the key of a SEND_INV. BB_ROCE_AGAIN: not now; the packet counts as lost,
	 * and all of this is asked again when it comes once more.
	 */
	uint8_t (*invalidate)(void *ctx, struct bb_roce_qp *qp, uint32_t rkey);
	/*
	 * May the peer do this to @len bytes at @va? Asked at the first packet of a message, for
	 * all of it, before anything is written. REMOTE_INVAL_REQ for a queue pair that does not
	 * allow it, REMOTE_ACCESS for a key that does not; the key of 0 bytes is not looked at
	 * (9.7.4.1.4). REMOTE_OP: the owner of the memory has a problem with it.
	 */
	uint8_t (*remote_check)(void *ctx, struct bb_roce_qp *qp, enum bb_roce_access access,
				uint32_t rkey, uint64_t va, uint32_t len);
	/* The accesses themselves. The key may have gone since it was checked: ask it again. */
	uint8_t (*remote_write)(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va,
				const uint8_t *data, uint32_t len);
	/* Pieces for a READ response, or minus a syndrome. */
	int (*remote_read)(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va,
			   uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV]);
	/* @kind: CMP_SWAP or FETCH_ADD; *orig in host order. */
	uint8_t (*remote_atomic)(void *ctx, struct bb_roce_qp *qp, uint8_t kind, uint32_t rkey,
				 uint64_t va, uint64_t swap_add, uint64_t compare, uint64_t *orig);

	/*
	 * The queue pair has failed and does nothing more: by the message just completed with an
	 * error (@responder false), or by a request of the peer. Then @synd is REMOTE_INVAL_REQ,
	 * REMOTE_ACCESS or REMOTE_OP as an RC peer was told, in a NAK that has left; what was in
	 * hand has been completed with an error before.
	 */
	void (*failed)(void *ctx, struct bb_roce_qp *qp, bool responder, uint8_t synd);
	/* The first good packet came before bb_roce_qp_rts(). */
	void (*established)(void *ctx, struct bb_roce_qp *qp);

	/*
	 * Responder: a copy of a packet and its payload, to be executed later. NULL: no room, it
	 * is dropped. Both may be NULL if bb_roce_mem.aheads is 0.
	 */
	struct bb_roce_pkt *(*keep)(void *ctx, struct bb_roce_qp *qp,
				    const struct bb_roce_pkt *pkt);
	/* Such a copy is given back. */
	void (*unkeep)(void *ctx, struct bb_roce_qp *qp, struct bb_roce_pkt *pkt);
};

/* ---- A queue pair */

struct bb_roce_attr {
	enum bb_roce_type type;
	uint32_t mtu; /* payload bytes of a packet: 256, 512, 1024, 2048 or 4096 */
	uint16_t pkey;
	uint32_t qpn, dqpn;
	uint32_t qkey; /* UD: of its receives; bb_roce_qp_change() */
	uint32_t rq_psn;
	struct bb_roce_net path;     /* RC, UC: peer is path.dst */
	uint32_t max_dest_rd_atomic; /* READs and atomics it answers at a time; <= replays */
	uint32_t min_rnr_timer;      /* code; bb_roce_qp_change() */
	/* Given at bb_roce_qp_rts() */
	uint32_t sq_psn;
	uint32_t max_rd_atomic;        /* READs and atomics under way */
	uint32_t ack_timeout;          /* code: 4.096 us << it, up to 4 times that; 0: for ever */
	uint32_t retry_cnt, rnr_retry; /* 0 to 7; 7 RNR retries are any number */
	/*
	 * RC: PSNs that may be outstanding, 1 to BB_ROCE_MAX_WINDOW: request packets, and the
	 * response packets that READs ask for. It bounds what is in flight in both directions.
	 */
	uint32_t window;
	/*
	 * RC: adaptive retransmission: go back to the oldest PSN that is not acknowledged after a
	 * few round trips as measured, in nanoseconds no sooner than this. It uses up no retries
	 * and does not put off ack_timeout; without one it goes on for ever. 0: off.
	 */
	uint32_t adaptive;
	/*
	 * RC: selective repeat: a packet that a NAK says is lost is sent again alone, and all
	 * behind it only if the peer turns out not to have kept that. Off where neither
	 * ack_timeout nor adaptive is on.
	 */
	bool selective;
};
#define BB_ROCE_MAX_WINDOW (1u << 22)
#define BB_ROCE_ADAPTIVE   4000u /* where nothing else is known */

/* A READ or atomic that the responder has seen, to be answered, or once more. */
struct bb_roce_replay {
	uint64_t seq; /* of its first packet: struct bb_roce_resp.seq */
	uint64_t va;
	uint64_t orig; /* of an atomic: never executed twice */
	uint32_t packets;
	uint32_t from; /* packet from which on the peer asked last; it has those before */
	uint32_t rkey;
	uint32_t len;
	uint32_t msn;
	uint8_t kind;
};

/* What happened, by reason. Names of the first group are those of QUERY_Q_COUNTER. */
struct bb_roce_stats {
	uint64_t out_of_buffer, out_of_sequence, duplicate, rnr_nak_retry, packet_seq_err;
	uint64_t implied_nak_seq, ack_timeout, roce_adp_retrans;
	uint64_t resp_local_length, resp_local_prot, resp_remote_invalid, resp_remote_access;
	uint64_t retry_exceeded, rnr_retry_exceeded;
	uint64_t rx_write, rx_read, rx_atomic;
	/* Packets dropped without an answer. */
	uint64_t drop_type, drop_pkey, drop_qkey, drop_source, drop_state, drop_ghost, drop_order;
	uint64_t drop_length, drop_no_recv, drop_access, drop_replay, drop_dest;
	/* Congestion: packets that a switch has marked, CNPs that came and were sent. */
	uint64_t ecn_ce, cnp, tx_cnp;
	uint64_t tx_packets, rx_packets, tx_acks, retransmitted, kept;
	uint64_t drop_differs; /* kept, and dropped as another packet came with its PSN */
};

enum bb_roce_state {
	BB_ROCE_RESET,
	BB_ROCE_RTR,
	BB_ROCE_RTS,
	BB_ROCE_ERR,
};

/* The round trip, and when to go back early: bb_roce_rto.c. */
struct bb_roce_rto {
	uint64_t srtt, rttvar; /* ns; srtt 0: not measured */
	uint64_t deadline;     /* UINT64_MAX: none */
	uint64_t timed_at;     /* when timed_psn was sent */
	uint32_t timed_psn;
	uint32_t asked;   /* newest PSN that asks for an answer; it counts if una <= it < nxt */
	uint32_t shift;   /* the interval is doubled so many times */
	uint32_t doubled; /* req.sent then */
	bool timing;
	bool waiting; /* for progress, since then */
	uint64_t since;
	/* The longest such wait of this window of time and of the one before. */
	uint64_t gap[2], gap_end;
};

/*
 * The requester and completer. Messages tail to head are posted and not complete, those before
 * unassigned have PSNs; una <= nxt <= sent on the ring of PSNs.
 */
struct bb_roce_req {
	struct bb_roce_msg *ring;      /* the caller's */
	uint32_t mask;                 /* slots - 1 */
	uint32_t head, tail;           /* free running */
	uint32_t next;                 /* message whose packet is sent next */
	uint32_t next_pkt;             /* which of its packets; of a READ's response */
	uint32_t unassigned;           /* first message that has no PSN yet */
	uint32_t psn;                  /* of the next message that gets one */
	uint32_t una;                  /* oldest PSN that is not acknowledged */
	uint32_t nxt;                  /* of the packet that is sent next */
	uint32_t sent;                 /* behind the newest PSN sent or asked for */
	uint32_t redone;               /* sent when all was to be sent again last */
	uint32_t chunk;                /* response packets of one READ request at most */
	uint32_t resumed;              /* PSN inside a chunk where a READ was asked for again */
	uint32_t no_ack_req;           /* packets since one that had AckReq */
	uint32_t rd_atomic;            /* READs and atomics sent and not answered */
	uint32_t retries, rnr_retries; /* left */
	uint32_t ssn, limit;           /* of the last message, of the last with credit */
	bool credits;                  /* the peer counts them */
	bool rnr_wait;
	bool going_back; /* for a NAK, and nothing has been acknowledged since */
	/* Selective repeat: bb_roce_again.c. */
	bool keeps;                    /* the peer has kept packets behind a lost one */
	bool shows;                    /* that it repeats selectively, by the next packet */
	uint8_t probe;                 /* enum bb_roce_probe */
	int32_t chances;               /* < 0: losses until there is one */
	uint32_t probed;               /* nxt when una was sent again last */
	uint32_t row, again_end;       /* packets that went with it, and the PSN behind them */
	uint32_t again;                /* of them still to be sent, */
	uint32_t again_psn, again_msg; /* the next one and its message */
	uint8_t bad;                   /* syndrome of message bad_msg, which cannot be sent */
	uint32_t bad_msg;
	uint64_t deadline; /* UINT64_MAX: none */
	struct bb_roce_rto rto;
};

/* The responder. */
struct bb_roce_resp {
	uint32_t epsn, msn;
	uint64_t seq; /* packets taken: epsn that does not wrap, from another start */
	/* The message that is coming in. */
	uint8_t kind;
	bool in_message;  /* else UC drops all until a message begins */
	bool have_recv;   /* a receive is in hand, for this message or the next */
	bool established; /* the caller has been told */
	uint32_t off, dmalen, rkey;
	uint64_t va;
	bool nak_sent; /* once, until the expected PSN comes (9.7.5.1.3) */
	/* The answer behind all READ responses: an ACK or NAK. */
	bool ack_due;
	uint8_t ack_syndrome;
	uint64_t ack_seq;
	uint8_t fatal; /* it fails when the NAK has left: what failed() is told */
	/* Packets ahead of the expected one, by PSN: the caller's. */
	struct bb_roce_pkt **ahead;
	uint32_t aheads, n_ahead;
	uint32_t missing;    /* PSN of the last NAK for a packet that was lost */
	uint8_t trial;       /* a kept packet is being executed: bb_roce_resp.c */
	uint32_t newest;     /* PSN after the newest packet that followed it */
	uint64_t keep_until; /* seq: until then packets ahead are kept; bb_roce_ahead.c */
	/* READs and atomics, the newest replays of them; todo..head are to be answered. */
	struct bb_roce_replay *replay; /* the caller's */
	uint32_t replays;
	uint32_t head, todo;
	uint32_t todo_pkt;
	uint32_t answered; /* those before it have been answered once */
	uint32_t kept;     /* replays that are valid */
};

struct bb_roce_qp {
	const struct bb_roce_ops *ops;
	void *ctx; /* the caller's, first argument of all ops */
	enum bb_roce_state state;
	struct bb_roce_attr attr;
	struct bb_roce_req req;
	struct bb_roce_resp resp;
	struct bb_roce_stats stats;
	bool cnp_due;
	uint64_t cnp_next; /* before it no other CNP is due */
};

/* Memory that the caller gives and keeps until the queue pair is gone. */
struct bb_roce_mem {
	struct bb_roce_msg *ring;
	uint32_t slots; /* power of two */
	struct bb_roce_replay *replay;
	uint32_t replays;           /* power of two; of UC and UD 0 */
	struct bb_roce_pkt **ahead; /* all NULL */
	uint32_t aheads;            /* power of two; 0: packets ahead of a lost one are dropped */
};

/* A queue pair in RESET. */
void bb_roce_qp_init(struct bb_roce_qp *qp, const struct bb_roce_ops *ops, void *ctx,
		     const struct bb_roce_mem *mem);
/* RESET to RTR: it answers. -EINVAL for an attribute out of its range, nothing changed. */
int bb_roce_qp_rtr(struct bb_roce_qp *qp, const struct bb_roce_attr *attr);
/* RTR to RTS: it asks too. Takes the last group of *attr. -EINVAL. */
int bb_roce_qp_rts(struct bb_roce_qp *qp, const struct bb_roce_attr *attr);
/*
 * What may change in RTR and RTS: the Q_Key of UD, for the next datagram, and of RC the time that
 * the next RNR NAK tells. -EINVAL in other states, or for a code that is none, nothing changed.
 */
int bb_roce_qp_change(struct bb_roce_qp *qp, uint32_t qkey, uint32_t min_rnr_timer);
/*
 * Give back what it keeps: it has to come again. At any time, within bb_roce_ops.keep() of another
 * queue pair, too.
 */
void bb_roce_ahead_drop(struct bb_roce_qp *qp);
/* To ERR, without a word to anybody. What it keeps is given back: before its memory goes, too. */
void bb_roce_qp_err(struct bb_roce_qp *qp);
/* Complete what is left with @status, in order. In ERR. */
void bb_roce_qp_flush(struct bb_roce_qp *qp, uint8_t status);

/*
 * Post a message. -EINVAL in RESET and for one its type does not have, -EMSGSIZE (UD: beyond the
 * MTU; beyond 1 << 31), -ENOBUFS when all slots are taken. Sent by the next bb_roce_run() in RTS;
 * in ERR it waits for bb_roce_qp_flush().
 */
int bb_roce_post(struct bb_roce_qp *qp, const struct bb_roce_msg *msg);

/* A packet for the queue pair: qp->attr.qpn is what it names, its ICRC is right. */
void bb_roce_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, const struct bb_roce_net *net,
		uint64_t now);
/* Send up to @budget packets. Returns how many. Answers go before requests. */
uint32_t bb_roce_run(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);
/* Packets in a row that ask for no answer. */
#define BB_ROCE_UNASKED_MAX 16u

/* Before the window is full one has to ask: nothing else would tell when to go on. */
static inline bool
bb_roce_window_asks(const struct bb_roce_qp *qp)
{
	const struct bb_roce_req *req = &qp->req;

	return req->no_ack_req + 1 >= qp->attr.window / 4 ||
	       ((req->nxt - req->una) & BB_ROCE_PSN_MASK) + 1 >= qp->attr.window;
}

/* The newest packet that the ACK or NAK which is due speaks of. */
static inline uint32_t
bb_roce_ack_psn(const struct bb_roce_resp *r)
{
	return (r->epsn + (uint32_t)(r->ack_seq - r->seq)) & BB_ROCE_PSN_MASK;
}

/* Nothing to ask, and nothing out that was not asked to be answered. */
static inline bool
bb_roce_req_idle(const struct bb_roce_req *req)
{
	return ((req->next ^ req->head) | req->no_ack_req | req->again) == 0;
}

/* Is there something to answer? */
static inline bool
bb_roce_answers(const struct bb_roce_qp *qp)
{
	return ((qp->resp.todo ^ qp->resp.head) | qp->cnp_due | qp->resp.ack_due) != 0;
}

/* Nothing to answer and nothing to ask. */
static inline bool
bb_roce_idle(const struct bb_roce_qp *qp)
{
	return !bb_roce_answers(qp) && bb_roce_req_idle(&qp->req);
}

/* Of bb_roce_busy(): is there something, which may have to wait? */
bool bb_roce_can_send(const struct bb_roce_qp *qp);
/* Would bb_roce_run() send something? */
static inline bool
bb_roce_busy(const struct bb_roce_qp *qp)
{
	return !bb_roce_idle(qp) && bb_roce_can_send(qp);
}
/* When bb_roce_tick() is to be called. UINT64_MAX: no timer runs. */
static inline uint64_t
bb_roce_deadline(const struct bb_roce_qp *qp)
{
	uint64_t early = qp->req.rto.deadline;

	return early < qp->req.deadline ? early : qp->req.deadline;
}
void bb_roce_tick(struct bb_roce_qp *qp, uint64_t now);

#endif
