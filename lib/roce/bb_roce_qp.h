/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The RoCEv2 engine: the protocol of one queue pair. Its inputs are packets, messages to send and
 * the time. Its outputs are packets, memory accesses and completions, through the functions of
 * struct bb_roce_ops. The engine has no clock, allocation, lock or network of its own. A unit test
 * can therefore run every fault of a packet, and years of time, with the same result each time.
 *
 * Three state machines run a queue pair (IBTA vol. 1, chapter 9):
 *
 * - The requester turns messages into packets (bb_roce_req.c).
 * - The completer processes the responses and runs the timers (bb_roce_comp.c, bb_roce_rto.c).
 * - The responder answers the peer's requests (bb_roce_resp.c; READs and atomics in
 *   bb_roce_replay.c).
 *
 * After a lost packet the responder stores the packets that follow (bb_roce_ahead.c). The requester
 * sends only the lost packet again if it can (bb_roce_again.c). bb_roce_ud.c handles datagrams.
 * bb_roce_qp.c has the functions that the caller uses.
 *
 * The caller uses a queue pair from one thread at a time. It calls bb_roce_rx() for each packet
 * that names the queue pair, bb_roce_run() while bb_roce_busy(), and bb_roce_tick() at
 * bb_roce_deadline(). Time is in nanoseconds from any origin and never goes back.
 */
#ifndef BB_ROCE_QP_H
#define BB_ROCE_QP_H

#include "bb_roce_pkt.h"

/* Addresses and other fields of the IP and UDP headers that the engine reads or sets. */
struct bb_roce_net {
	uint8_t src[16], dst[16]; /* GIDs; IPv4 as ::ffff:a.b.c.d */
	uint16_t sport;           /* UDP source port */
	uint8_t tclass;           /* DSCP and ECN */
	uint8_t hop_limit;
	uint32_t flow_label; /* IPv6 only */
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
	BB_ROCE_FENCE = 1u << 1, /* waits until all earlier READs and atomics are complete */
};

/* One message of the requester. The caller fills in the fields up to net, the engine the rest. */
struct bb_roce_msg {
	uint64_t cookie; /* owned by the caller */
	uint8_t kind;
	uint8_t flags;
	uint32_t len; /* bytes, up to 1 << 31; 8 for an atomic */
	uint32_t imm; /* immediate in network order; for SEND_INV the key in host order */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap_add, compare;
	/* UD only */
	uint32_t dqpn, qkey;
	const struct bb_roce_net *net; /* valid until the message completes */

	uint32_t psn;     /* PSN of the first packet */
	uint32_t packets; /* packets of the request, or of a READ's response */
	uint32_t ssn;     /* SSN of the last request: a READ may have several (9.7.7.2) */
};

/* ---- Callbacks of the engine */

struct bb_roce_qp;

struct bb_roce_iov {
	const void *p;
	uint32_t len;
};
/*
 * Maximum number of pieces of one packet. The callback copies a more scattered payload into fewer.
 */
#define BB_ROCE_MAX_IOV 16

enum bb_roce_take {
	BB_ROCE_TAKE_OK,
	BB_ROCE_TAKE_EMPTY,  /* no receive. RC sends an RNR NAK; UC and UD drop the message */
	BB_ROCE_TAKE_FAILED, /* the receive queue is in error, so the queue pair fails */
	BB_ROCE_TAKE_NEVER,  /* the QP has no receive queue: the request is invalid */
};

/* Result of bb_roce_ops.invalidate(); not a syndrome. */
#define BB_ROCE_AGAIN 0xffu

enum bb_roce_access {
	BB_ROCE_ACCESS_WRITE,
	BB_ROCE_ACCESS_READ,
	BB_ROCE_ACCESS_ATOMIC,
};

/* A message that consumed a receive. */
struct bb_roce_recv {
	uint8_t kind;   /* SEND, SEND_IMM, SEND_INV or WRITE_IMM */
	uint8_t status; /* 0, or BB_SYN_* of lib/format */
	bool solicited;
	uint32_t len; /* bytes of the message, without the GRH */
	uint32_t imm; /* immediate in network order; the key for SEND_INV */
	/* UD only */
	uint32_t sqpn;
	const struct bb_roce_net *net;
};

/*
 * The engine calls these from bb_roce_rx(), _run() and _tick(); they must not call those functions.
 * A status is 0 or a syndrome BB_SYN_*.
 */
struct bb_roce_ops {
	/*
	 * Sends a packet: the headers in *pkt and the payload in @n pieces. The destination is the
	 * queue pair's path (RC, UC) or @msg->net (UD). @msg is the message of the packet, NULL for
	 * the responder's packets. The caller can delay the message's completion while the network
	 * reads its memory. The pieces are valid until the message completes, or during the call if
	 * @msg is NULL. Returns false if there is no room now; the engine stays busy and retries in
	 * the next bb_roce_run().
	 */
	bool (*tx)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
		   const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg);

	/*
	 * Requester: looks up @len bytes of the message from @off on. Returns the number of pieces,
	 * or a negative syndrome.
	 */
	int (*gather)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
		      uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV]);
	/* Writes data of a READ response to the message's local memory. */
	uint8_t (*place)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg,
			 uint32_t off, const uint8_t *data, uint32_t len);
	/* Writes the original value that an atomic returned, in host order. */
	uint8_t (*atomic_result)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg,
				 uint64_t orig);
	/*
	 * Completes the message; messages complete in posting order. Its slot is free on return. If
	 * the caller cannot report the completion it may call bb_roce_qp_err().
	 */
	void (*complete)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg,
			 uint8_t status);

	/*
	 * Responder: takes the next receive for the message that begins. It stays current until
	 * recv_done(). If UC or UD drops the message, the receive serves the next one.
	 */
	enum bb_roce_take (*recv_take)(void *ctx, struct bb_roce_qp *qp);
	/*
	 * Writes data of a SEND at byte @off of the message. A status such as LOCAL_LENGTH or
	 * LOCAL_PROT fails the receive. UD: called once per datagram, even with 0 bytes. @off then
	 * starts after the 40 bytes of the GRH; the receive must have room for them, and the
	 * callback writes them if all fits.
	 */
	uint8_t (*recv_place)(void *ctx, struct bb_roce_qp *qp, uint32_t off, const uint8_t *data,
			      uint32_t len);
	/*
	 * Completes the current receive. A non-zero result means that the completion could not be
	 * reported; the queue pair then fails.
	 */
	uint8_t (*recv_done)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_recv *r);
	/*
	 * Invalidates the key of a SEND_INV. BB_ROCE_AGAIN: not possible now; the packet counts as
	 * lost, and the callbacks are repeated when the peer sends it again.
	 */
	uint8_t (*invalidate)(void *ctx, struct bb_roce_qp *qp, uint32_t rkey);
	/*
	 * Checks that the peer may access @len bytes at @va. Called at the first packet of a
	 * message, for the whole message, before anything is written. Returns REMOTE_INVAL_REQ if
	 * the queue pair does not allow the access, and REMOTE_ACCESS if the key does not.
	 * REMOTE_OP means that the memory's owner reports a problem. The key of a 0-byte access is
	 * not checked (9.7.4.1.4).
	 */
	uint8_t (*remote_check)(void *ctx, struct bb_roce_qp *qp, enum bb_roce_access access,
				uint32_t rkey, uint64_t va, uint32_t len);
	/*
	 * Writes the data. The key may have been destroyed since remote_check(), so the callback
	 * checks it again; so do the two callbacks below.
	 */
	uint8_t (*remote_write)(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va,
				const uint8_t *data, uint32_t len);
	/* Returns the number of pieces for a READ response, or a negative syndrome. */
	int (*remote_read)(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va,
			   uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV]);
	/* @kind: CMP_SWAP or FETCH_ADD; *orig in host order. */
	uint8_t (*remote_atomic)(void *ctx, struct bb_roce_qp *qp, uint8_t kind, uint32_t rkey,
				 uint64_t va, uint64_t swap_add, uint64_t compare, uint64_t *orig);

	/*
	 * The queue pair failed and stopped. @responder false: the message just completed with an
	 * error caused it. @responder true: a request of the peer caused it. @synd is then the
	 * error reported to an RC peer by a NAK that has been sent: REMOTE_INVAL_REQ, REMOTE_ACCESS
	 * or REMOTE_OP. The current receive has already completed with an error.
	 */
	void (*failed)(void *ctx, struct bb_roce_qp *qp, bool responder, uint8_t synd);
	/* The first valid packet arrived before bb_roce_qp_rts(). */
	void (*established)(void *ctx, struct bb_roce_qp *qp);

	/*
	 * Responder: copies a packet and its payload, to be executed later. Returns NULL if there
	 * is no room; the packet is then dropped. keep and unkeep may be NULL if bb_roce_mem.aheads
	 * is 0.
	 */
	struct bb_roce_pkt *(*keep)(void *ctx, struct bb_roce_qp *qp,
				    const struct bb_roce_pkt *pkt);
	/* Releases a copy that keep() made. */
	void (*unkeep)(void *ctx, struct bb_roce_qp *qp, struct bb_roce_pkt *pkt);
};

/* ---- A queue pair */

struct bb_roce_attr {
	enum bb_roce_type type;
	uint32_t mtu; /* payload bytes of a packet: 256, 512, 1024, 2048 or 4096 */
	uint16_t pkey;
	uint32_t qpn, dqpn;
	uint32_t qkey; /* UD: Q_Key of its receives; see bb_roce_qp_change() */
	uint32_t rq_psn;
	struct bb_roce_net path;     /* RC, UC: the peer's address is path.dst */
	uint32_t max_dest_rd_atomic; /* READs and atomics that the responder accepts at a time;
				      * at most bb_roce_mem.replays */
	uint32_t min_rnr_timer;      /* RNR timer code; see bb_roce_qp_change() */
	/* Set by bb_roce_qp_rts(): */
	uint32_t sq_psn;
	uint32_t max_rd_atomic;        /* maximum READs and atomics outstanding */
	uint32_t ack_timeout;          /* code: 4.096 us << code, up to 4 times that; 0 means no
					* timeout */
	uint32_t retry_cnt, rnr_retry; /* 0 to 7; 7 RNR retries mean no limit */
	/*
	 * RC: maximum number of outstanding PSNs, 1 to BB_ROCE_MAX_WINDOW. Counts request packets
	 * and the response packets that READs request, and so bounds the packets in flight in both
	 * directions.
	 */
	uint32_t window;
	/*
	 * RC: minimum interval of adaptive retransmission in ns; 0 turns it off. After a few
	 * measured round trips without progress the requester restarts from the oldest PSN that is
	 * not acknowledged. This uses no retries and does not delay ack_timeout. With ack_timeout 0
	 * it repeats without limit.
	 */
	uint32_t adaptive;
	/*
	 * RC: selective repeat. A packet that a NAK reports as lost is sent again alone. The
	 * packets after it are sent again only if the peer turns out to have dropped them. Off if
	 * ack_timeout and adaptive are both 0.
	 */
	bool selective;
};
#define BB_ROCE_MAX_WINDOW (1u << 22)
#define BB_ROCE_ADAPTIVE   4000u /* default if nothing better is known */

/* A READ or atomic that the responder received and must answer, or may have to answer again. */
struct bb_roce_replay {
	uint64_t seq; /* sequence number of its first packet, see struct bb_roce_resp.seq */
	uint64_t va;
	uint64_t orig; /* result of an atomic, which is never executed twice */
	uint32_t packets;
	uint32_t from; /* first packet of the peer's last request; the peer has the packets
			* before it */
	uint32_t rkey;
	uint32_t len;
	uint32_t msn;
	uint8_t kind;
};

/* Event counters by reason. The first group has the names of QUERY_Q_COUNTER. */
struct bb_roce_stats {
	uint64_t out_of_buffer, out_of_sequence, duplicate, rnr_nak_retry, packet_seq_err;
	uint64_t implied_nak_seq, ack_timeout, roce_adp_retrans;
	uint64_t resp_local_length, resp_local_prot, resp_remote_invalid, resp_remote_access;
	uint64_t retry_exceeded, rnr_retry_exceeded;
	uint64_t rx_write, rx_read, rx_atomic;
	/* Packets dropped without an answer. */
	uint64_t drop_type, drop_pkey, drop_qkey, drop_source, drop_state, drop_ghost, drop_order;
	uint64_t drop_length, drop_no_recv, drop_access, drop_replay, drop_dest;
	/* Congestion: packets marked by a switch, CNPs received, CNPs sent. */
	uint64_t ecn_ce, cnp, tx_cnp;
	uint64_t tx_packets, rx_packets, tx_acks, retransmitted, kept;
	uint64_t drop_differs; /* stored packets dropped because a different packet with the same
				* PSN arrived */
};

enum bb_roce_state {
	BB_ROCE_RESET,
	BB_ROCE_RTR,
	BB_ROCE_RTS,
	BB_ROCE_ERR,
};

/* Round-trip measurement and adaptive interval: bb_roce_rto.c. */
struct bb_roce_rto {
	uint64_t srtt, rttvar; /* ns; srtt 0: not measured yet */
	uint64_t deadline;     /* UINT64_MAX if the timer is off */
	uint64_t timed_at;     /* when timed_psn was sent */
	uint32_t timed_psn;
	uint32_t asked;   /* newest PSN that requests an ACK; valid if una <= asked < nxt */
	uint32_t shift;   /* number of times the interval was doubled */
	uint32_t doubled; /* value of req.sent at the last doubling */
	bool timing;
	bool waiting; /* waiting for progress, since the time below */
	uint64_t since;
	/* Longest wait for progress in the current time window and in the one before, in ns. */
	uint64_t gap[2], gap_end;
};

/*
 * Requester and completer. Messages tail to head are posted and not complete; those before
 * unassigned have PSNs. On the ring of PSNs una <= nxt <= sent.
 */
struct bb_roce_req {
	struct bb_roce_msg *ring;      /* owned by the caller */
	uint32_t mask;                 /* slots - 1 */
	uint32_t head, tail;           /* free-running indexes */
	uint32_t next;                 /* message whose packet is sent next */
	uint32_t next_pkt;             /* index of its next packet, or of a READ's response
					* packet */
	uint32_t unassigned;           /* first message that has no PSN yet */
	uint32_t psn;                  /* PSN of the next message that gets PSNs */
	uint32_t una;                  /* oldest PSN that is not acknowledged */
	uint32_t nxt;                  /* PSN of the next packet to send */
	uint32_t sent;                 /* PSN after the newest one sent or requested */
	uint32_t redone;               /* value of sent when all packets were last sent again */
	uint32_t chunk;                /* maximum response packets of one READ request */
	uint32_t resumed;              /* PSN inside a chunk at which a READ was requested again */
	uint32_t no_ack_req;           /* packets sent since the last one with AckReq */
	uint32_t rd_atomic;            /* READs and atomics sent and not yet answered */
	uint32_t retries, rnr_retries; /* retries left */
	uint32_t ssn, limit;           /* SSN of the last message; last SSN with credit */
	bool credits;                  /* the peer grants credits */
	bool rnr_wait;
	bool going_back; /* restarted because of a NAK, nothing acknowledged since */
	/* Selective repeat: bb_roce_again.c. */
	bool keeps;                    /* the peer has stored packets that followed a lost one */
	bool shows;                    /* the next packet shows the peer that this requester
					* repeats selectively */
	uint8_t probe;                 /* enum bb_roce_probe */
	int32_t chances;               /* attempts left; if negative, losses until the next
					* attempt */
	uint32_t probed;               /* value of nxt when una was last sent again */
	uint32_t row, again_end;       /* packets in the last run that was sent again, and the
					* PSN after it */
	uint32_t again;                /* packets of that run still to send */
	uint32_t again_psn, again_msg; /* the next of them, and its message */
	uint8_t bad;                   /* syndrome of message bad_msg, which cannot be sent; 0 if
					* none */
	uint32_t bad_msg;
	uint64_t deadline; /* UINT64_MAX if the timer is off */
	struct bb_roce_rto rto;
};

/* The responder. */
struct bb_roce_resp {
	uint32_t epsn, msn;
	uint64_t seq; /* packets accepted: like epsn, but starts at 0 and does not wrap */
	/* The message in progress. */
	uint8_t kind;
	bool in_message;  /* false: UC drops packets until a message begins */
	bool have_recv;   /* a receive is current, for this message or the next */
	bool established; /* the caller was informed */
	uint32_t off, dmalen, rkey;
	uint64_t va;
	bool nak_sent; /* sent once, until the expected PSN arrives (9.7.5.1.3) */
	/* The ACK or NAK to send after all READ responses. */
	bool ack_due;
	uint8_t ack_syndrome;
	uint64_t ack_seq;
	uint8_t fatal; /* QP fails once the NAK is sent: the syndrome for failed(), else 0 */
	/* Stored packets after the expected one, by PSN. The array belongs to the caller. */
	struct bb_roce_pkt **ahead;
	uint32_t aheads, n_ahead;
	uint32_t missing;    /* PSN of the last NAK for a lost packet */
	uint8_t trial;       /* a stored packet is being executed: bb_roce_resp.c */
	uint32_t newest;     /* PSN after the newest packet that followed the missing one */
	uint64_t keep_until; /* packets are stored while seq is below it; see bb_roce_ahead.c */
	/*
	 * The newest READs and atomics, at most replays; those from todo to head are to be
	 * answered.
	 */
	struct bb_roce_replay *replay; /* owned by the caller */
	uint32_t replays;
	uint32_t head, todo;
	uint32_t todo_pkt;
	uint32_t answered; /* entries before it have been answered at least once */
	uint32_t kept;     /* number of valid entries */
};

struct bb_roce_qp {
	const struct bb_roce_ops *ops;
	void *ctx; /* first argument of all ops; owned by the caller */
	enum bb_roce_state state;
	struct bb_roce_attr attr;
	struct bb_roce_req req;
	struct bb_roce_resp resp;
	struct bb_roce_stats stats;
	bool cnp_due;
	uint64_t cnp_next; /* time of the earliest next CNP, ns */
};

/* Memory that the caller provides. It must live as long as the queue pair. */
struct bb_roce_mem {
	struct bb_roce_msg *ring;
	uint32_t slots; /* power of two */
	struct bb_roce_replay *replay;
	uint32_t replays;           /* power of two; 0 for UC and UD */
	struct bb_roce_pkt **ahead; /* all entries NULL */
	uint32_t aheads;            /* power of two; 0: packets after a lost one are dropped */
};

/* Initializes a queue pair in RESET. */
void bb_roce_qp_init(struct bb_roce_qp *qp, const struct bb_roce_ops *ops, void *ctx,
		     const struct bb_roce_mem *mem);
/*
 * Moves from RESET to RTR: the responder is active. Returns -EINVAL, without a change, if the state
 * is wrong or an attribute is out of range.
 */
int bb_roce_qp_rtr(struct bb_roce_qp *qp, const struct bb_roce_attr *attr);
/*
 * Moves from RTR to RTS: the requester is active. Reads the last group of *attr. Returns -EINVAL if
 * the state is wrong or an attribute is out of range.
 */
int bb_roce_qp_rts(struct bb_roce_qp *qp, const struct bb_roce_attr *attr);
/*
 * Changes attributes in RTR or RTS: the Q_Key of UD, from the next datagram on, and the RNR timer
 * code of RC, from the next RNR NAK on. Returns -EINVAL, without a change, in other states and for
 * an invalid code.
 */
int bb_roce_qp_change(struct bb_roce_qp *qp, uint32_t qkey, uint32_t min_rnr_timer);
/*
 * Releases all stored packets; the peer must send them again. May be called at any time, also from
 * bb_roce_ops.keep() of another queue pair.
 */
void bb_roce_ahead_drop(struct bb_roce_qp *qp);
/*
 * Moves the QP to ERR without informing the peer and releases the stored packets. Call it also
 * before the QP's memory is freed.
 */
void bb_roce_qp_err(struct bb_roce_qp *qp);
/* Completes the remaining messages with @status, in order. Call it in ERR. */
void bb_roce_qp_flush(struct bb_roce_qp *qp, uint8_t status);

/*
 * Posts a message. The next bb_roce_run() in RTS sends it; in ERR it waits for bb_roce_qp_flush().
 * Returns -EINVAL in RESET or for a kind that the QP type does not support, -EMSGSIZE beyond 1 <<
 * 31 bytes (UD: beyond the MTU), -ENOBUFS if all slots are in use.
 */
int bb_roce_post(struct bb_roce_qp *qp, const struct bb_roce_msg *msg);

/* Handles a packet whose destination QP is qp->attr.qpn and whose ICRC is correct. */
void bb_roce_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, const struct bb_roce_net *net,
		uint64_t now);
/* Sends up to @budget packets, answers before requests. Returns the number sent. */
uint32_t bb_roce_run(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);
/* Maximum packets in a row without AckReq. */
#define BB_ROCE_UNASKED_MAX 16u

/*
 * Returns true if the next packet must request an ACK because the window is nearly full. Without
 * that ACK nothing would reopen the window.
 */
static inline bool
bb_roce_window_asks(const struct bb_roce_qp *qp)
{
	const struct bb_roce_req *req = &qp->req;

	return req->no_ack_req + 1 >= qp->attr.window / 4 ||
	       ((req->nxt - req->una) & BB_ROCE_PSN_MASK) + 1 >= qp->attr.window;
}

/* Returns the newest PSN that the pending ACK or NAK covers. */
static inline uint32_t
bb_roce_ack_psn(const struct bb_roce_resp *r)
{
	return (r->epsn + (uint32_t)(r->ack_seq - r->seq)) & BB_ROCE_PSN_MASK;
}

/* Returns true if nothing is left to send and every packet in flight is covered by an AckReq. */
static inline bool
bb_roce_req_idle(const struct bb_roce_req *req)
{
	return ((req->next ^ req->head) | req->no_ack_req | req->again) == 0;
}

/* Returns true if an answer is pending. */
static inline bool
bb_roce_answers(const struct bb_roce_qp *qp)
{
	return ((qp->resp.todo ^ qp->resp.head) | qp->cnp_due | qp->resp.ack_due) != 0;
}

/* Returns true if no answer and no request is pending. */
static inline bool
bb_roce_idle(const struct bb_roce_qp *qp)
{
	return !bb_roce_answers(qp) && bb_roce_req_idle(&qp->req);
}

/* Part of bb_roce_busy(): returns true if something can be sent now. */
bool bb_roce_can_send(const struct bb_roce_qp *qp);
/* Returns true if bb_roce_run() would send something. */
static inline bool
bb_roce_busy(const struct bb_roce_qp *qp)
{
	return !bb_roce_idle(qp) && bb_roce_can_send(qp);
}
/* Returns the time at which to call bb_roce_tick(), UINT64_MAX if no timer runs. */
static inline uint64_t
bb_roce_deadline(const struct bb_roce_qp *qp)
{
	uint64_t early = qp->req.rto.deadline;

	return early < qp->req.deadline ? early : qp->req.deadline;
}
void bb_roce_tick(struct bb_roce_qp *qp, uint64_t now);

#endif
