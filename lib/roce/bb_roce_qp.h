/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The RoCEv2 engine: the protocol of one queue pair. The caller passes it packets, messages to
 * send and the time. The engine sends packets, accesses memory and completes messages through the
 * functions of struct bb_roce_ops. It has no clock, allocation, lock or network of its own. A unit
 * test can therefore inject any packet error and simulate years, and gets the same result each
 * time.
 *
 * Three state machines run a queue pair (IBTA vol. 1, chapter 9):
 *
 * - The requester turns messages into packets (bb_roce_req.c).
 * - The completer processes the responses and runs the timers (bb_roce_comp.c, bb_roce_rto.c).
 * - The responder executes the peer's requests (bb_roce_resp.c; READs and atomics in
 * bb_roce_replay.c).
 *
 * After a lost packet the responder stores the packets that follow (bb_roce_ooo.c), and the
 * requester sends only the lost packet again if it can (bb_roce_repeat.c). bb_roce_ud.c handles
 * datagrams. bb_roce_qp.c has the functions that the caller uses.
 *
 * The caller must use a queue pair from one thread at a time. It calls bb_roce_rx() for each
 * packet that names the queue pair, bb_roce_run() while bb_roce_busy(), and bb_roce_tick() at
 * bb_roce_deadline(). Time is in nanoseconds from any origin and never goes back.
 */
#ifndef BB_ROCE_QP_H
#define BB_ROCE_QP_H

#include "bb_roce_pkt.h"

/* Addresses and other fields of the IP and UDP headers that the engine reads or sets. */
struct bb_roce_net {
	uint8_t src[16], dst[16]; /* GIDs; an IPv4 address is ::ffff:a.b.c.d */
	uint16_t sport;           /* UDP source port */
	uint8_t tclass;           /* traffic class or type of service: DSCP and ECN */
	uint8_t hop_limit;
	uint32_t flow_label; /* valid only for IPv6 */
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
	BB_ROCE_FENCE = 1u << 1, /* wait until all earlier READs and atomics are complete */
};

/* One message of the requester. The caller sets the fields up to net, the engine sets the rest. */
struct bb_roce_msg {
	uint64_t cookie; /* any value of the caller; the engine does not use it */
	uint8_t kind;
	uint8_t flags;
	uint32_t len; /* bytes of the message, up to 1 << 31; 8 for an atomic */
	uint32_t imm; /* immediate in network order; for SEND_INV the key in host order */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap_add, compare;
	/* valid only for UD */
	uint32_t dqpn, qkey;
	const struct bb_roce_net *net; /* destination of a datagram, valid only for UD; must stay
					  valid until the message completes */

	uint32_t psn;     /* PSN of the first packet */
	uint32_t packets; /* number of request packets; for a READ, of response packets */
	uint32_t ssn;     /* SSN of the message's last request: a READ may have several (9.7.7.2) */
};

/* ---- Callbacks of the engine */

struct bb_roce_qp;

struct bb_roce_iov {
	const void *p;
	uint32_t len;
};
/*
 * Maximum number of memory ranges of one packet's payload. If the payload is scattered over more
 * ranges, the callback must copy it into at most this number.
 */
#define BB_ROCE_MAX_IOV 16

enum bb_roce_take {
	BB_ROCE_TAKE_OK,
	BB_ROCE_TAKE_EMPTY,  /* no receive: RC sends an RNR NAK, UC and UD drop the message */
	BB_ROCE_TAKE_FAILED, /* the receive queue is in error, so the queue pair fails */
	BB_ROCE_TAKE_NEVER,  /* the QP has no receive queue, so the request is invalid */
};

/*
 * Status of a callback of RC, or of gather() for UD, not a syndrome: the key to invalidate is in
 * use, or a page of the memory is missing. The callback had no effect, and is repeated later.
 */
#define BB_ROCE_TRY_AGAIN 0xffu

enum bb_roce_access {
	BB_ROCE_ACCESS_WRITE,
	BB_ROCE_ACCESS_READ,
	BB_ROCE_ACCESS_ATOMIC,
};

/* The completion of a receive. */
struct bb_roce_recv {
	uint8_t kind;   /* SEND, SEND_IMM, SEND_INV or WRITE_IMM */
	uint8_t status; /* status of the completion: 0, or BB_SYN_* of lib/format */
	bool solicited;
	uint32_t len; /* bytes of the message, without the 40 bytes of a GRH */
	uint32_t imm; /* immediate in network order; the key for SEND_INV */
	/* QP number of the sender; valid only for UD */
	uint32_t sqpn;
	const struct bb_roce_net *net;
};

/*
 * Callbacks of the engine. bb_roce_rx(), bb_roce_run() and bb_roce_tick() call them, so a callback
 * must not call these three functions. A status is 0 or a syndrome BB_SYN_*.
 */
struct bb_roce_ops {
	/*
	 * Sends a packet: the headers in *pkt and a payload of @n memory ranges. The destination is
	 * attr.path for RC and UC, and @msg->net for UD. @msg is the message that the packet
	 * belongs to, or NULL for a packet of the responder. While the network still reads the
	 * message's memory, the callback may delay the completion of @msg. The ranges are valid
	 * until the message completes; if @msg is NULL, only during the call. Returns false if the
	 * network has no room now. The engine then stays busy and retries in the next
	 * bb_roce_run().
	 */
	bool (*tx)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
		   const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg);

	/*
	 * Requester: looks up the local memory of @len bytes of the message from @off on. Returns
	 * the number of memory ranges, or a negative status.
	 */
	int (*gather)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
		      uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV]);
	/* Writes data of a READ response to the message's local memory. */
	uint8_t (*place)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg,
			 uint32_t off, const uint8_t *data, uint32_t len);
	/*
	 * Writes the result of an atomic to the message's local memory: the original remote value,
	 * in host order.
	 */
	uint8_t (*atomic_result)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg,
				 uint64_t orig);
	/*
	 * Completes the message; messages complete in posting order. The message's slot is free
	 * when the callback returns. If the callback cannot report the completion it may call
	 * bb_roce_qp_err().
	 */
	void (*complete)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg,
			 uint8_t status);
	/* Completes the @n oldest messages, as @n calls of complete() would. May be NULL. */
	void (*complete_run)(void *ctx, struct bb_roce_qp *qp, uint32_t n);

	/*
	 * Responder: takes a receive for the message that begins. That receive is the current
	 * receive until recv_done(). If UC or UD drops the message, the receive stays current and
	 * serves the next message.
	 */
	enum bb_roce_take (*recv_take)(void *ctx, struct bb_roce_qp *qp);
	/*
	 * Writes data of a SEND to the current receive, at byte @off of the message. A status such
	 * as LOCAL_LENGTH or LOCAL_PROT fails the receive.
	 * UD: called exactly once per datagram, even for 0 bytes. The data goes after the 40 bytes
	 * of the GRH. If the receive has room for both, the callback also writes the GRH.
	 */
	uint8_t (*recv_place)(void *ctx, struct bb_roce_qp *qp, uint32_t off, const uint8_t *data,
			      uint32_t len);
	/*
	 * Completes the current receive. A non-zero result means that the completion could not be
	 * reported; the queue pair then fails.
	 */
	uint8_t (*recv_done)(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_recv *r);
	/*
	 * Invalidates the key that a SEND_INV names. Returns BB_ROCE_TRY_AGAIN if that is not
	 * possible now. The engine then sends an RNR NAK, and repeats the callbacks when the peer
	 * sends the packet again.
	 */
	uint8_t (*invalidate)(void *ctx, struct bb_roce_qp *qp, uint32_t rkey);
	/*
	 * Checks that the peer may access @len bytes at @va. Called at the first packet of a
	 * message for the whole length of the message, before any data is written. Returns
	 * REMOTE_INVAL_REQ if the queue pair does not allow the access, REMOTE_ACCESS if the key
	 * does not, and REMOTE_OP if the owner of the memory reports a problem. The key of a
	 * 0-byte access is not checked (9.7.4.1.4).
	 */
	uint8_t (*remote_check)(void *ctx, struct bb_roce_qp *qp, enum bb_roce_access access,
				uint32_t rkey, uint64_t va, uint32_t len);
	/*
	 * Writes data of an RDMA WRITE. The key may have been destroyed since remote_check(). So
	 * remote_write(), remote_read() and remote_atomic() must check the key again.
	 */
	uint8_t (*remote_write)(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va,
				const uint8_t *data, uint32_t len);
	/*
	 * Looks up the memory of a READ response. Returns the number of memory ranges, or a
	 * negative status.
	 */
	int (*remote_read)(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va,
			   uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV]);
	/*
	 * Executes an atomic and sets *orig to the original value, in host order. @kind: CMP_SWAP
	 * or FETCH_ADD.
	 */
	uint8_t (*remote_atomic)(void *ctx, struct bb_roce_qp *qp, uint8_t kind, uint32_t rkey,
				 uint64_t va, uint64_t swap_add, uint64_t compare, uint64_t *orig);

	/*
	 * Called after the queue pair failed and went to ERR. @responder false: the cause is the
	 * message that has just completed with an error. @responder true: the cause is a request
	 * of the peer. For RC, @synd is then the error that a NAK has reported to the peer:
	 * REMOTE_INVAL_REQ, REMOTE_ACCESS or REMOTE_OP. The current receive, if any, has already
	 * completed with an error.
	 */
	void (*failed)(void *ctx, struct bb_roce_qp *qp, bool responder, uint8_t synd);
	/* Called when the first valid packet of the peer arrives before bb_roce_qp_rts(). */
	void (*established)(void *ctx, struct bb_roce_qp *qp);

	/*
	 * Responder: copies a packet and its payload for later execution. Returns NULL if there is
	 * no room; the packet is then dropped. store_pkt and release_pkt may be NULL if
	 * bb_roce_mem.max_out_of_order is 0.
	 */
	struct bb_roce_pkt *(*store_pkt)(void *ctx, struct bb_roce_qp *qp,
					 const struct bb_roce_pkt *pkt);
	/* Releases a copy that store_pkt() made. */
	void (*release_pkt)(void *ctx, struct bb_roce_qp *qp, struct bb_roce_pkt *pkt);
};

/* ---- A queue pair */

struct bb_roce_attr {
	enum bb_roce_type type;
	uint32_t mtu; /* payload bytes of a packet: 256, 512, 1024, 2048 or 4096 */
	uint16_t pkey;
	uint32_t qpn, dqpn;
	uint32_t qkey; /* UD: Q_Key that received datagrams must have; see bb_roce_qp_change() */
	uint32_t rq_psn;
	struct bb_roce_net path; /* RC, UC: network fields of sent packets; path.dst is the address
				    of the peer */
	uint32_t max_dest_rd_atomic; /* number of READs and atomics of the peer that may be
					outstanding; at most bb_roce_mem.replays */
	uint32_t min_rnr_timer;      /* RNR timer code; see bb_roce_qp_change() */
	/* Attributes that bb_roce_qp_rts() reads: */
	uint32_t sq_psn;
	uint32_t max_rd_atomic; /* maximum number of outstanding READs and atomics of this QP */
	uint32_t ack_timeout; /* code: the timeout is 4.096 us << code, and at most 4 times that; 0
				 means no timeout */
	uint32_t retry_cnt, rnr_retry; /* 0 to 7; an rnr_retry of 7 means no limit */
	/*
	 * RC: maximum number of outstanding PSNs, 1 to BB_ROCE_MAX_WINDOW. A READ counts with all
	 * its response packets, so the window limits the packets in flight in both directions.
	 */
	uint32_t window;
	/*
	 * RC: minimum interval of adaptive retransmission in ns; 0 turns it off. After a few
	 * measured round trips without progress the requester restarts from the oldest PSN that is
	 * not acknowledged. Such a restart uses no retry and does not extend ack_timeout. If
	 * ack_timeout is 0, the number of restarts is not limited.
	 */
	uint32_t adaptive;
	/*
	 * RC: selective repeat. If a NAK reports a packet as lost, only that packet is sent again.
	 * The packets after it are sent again only if the peer has dropped them. No effect if
	 * ack_timeout and adaptive are both 0.
	 */
	bool selective;
};
#define BB_ROCE_MAX_WINDOW (1u << 22)
#define BB_ROCE_ADAPTIVE   4000u /* default of bb_roce_attr.adaptive, in ns */

/*
 * A READ or atomic that the responder has received. The entry stays after the response was sent,
 * because the peer may repeat the request.
 */
struct bb_roce_replay {
	uint64_t seq; /* sequence number of the request's first packet: see bb_roce_resp.seq */
	uint64_t va;
	uint64_t orig; /* result of an atomic, which is never executed twice */
	uint32_t packets;
	/* Indexes of the first response packet to send, and of the packet after the last one. */
	uint32_t first_pkt, end_pkt;
	uint32_t rkey;
	uint32_t len;
	uint32_t msn;
	uint8_t kind;
};

/*
 * Event counters by reason. The counters up to rnr_retry_exceeded have the names of
 * QUERY_Q_COUNTER.
 */
struct bb_roce_stats {
	uint64_t out_of_buffer, out_of_sequence, duplicate, rnr_nak_retry, packet_seq_err;
	uint64_t implied_nak_seq, ack_timeout, roce_adp_retrans;
	uint64_t resp_local_length, resp_local_prot, resp_remote_invalid, resp_remote_access;
	uint64_t retry_exceeded, rnr_retry_exceeded;
	uint64_t rx_write, rx_read, rx_atomic;
	/* Packets dropped without a response to the peer, by reason. */
	uint64_t drop_type, drop_pkey, drop_qkey, drop_source, drop_state, drop_ghost, drop_order;
	uint64_t drop_length, drop_no_recv, drop_access, drop_replay, drop_dest;
	/* Congestion: packets marked by a switch, CNPs received, CNPs sent. */
	uint64_t ecn_ce, cnp, tx_cnp;
	uint64_t tx_packets, retransmitted, stored;
	uint64_t drop_differs; /* stored packets dropped because a different packet with the same
				* PSN arrived */
};

enum bb_roce_state {
	BB_ROCE_RESET,
	BB_ROCE_RTR,
	BB_ROCE_RTS,
	BB_ROCE_ERR,
};

/* Measurement of the round trip, and the adaptive interval (bb_roce_rto.c). */
struct bb_roce_rto {
	uint64_t srtt, rttvar; /* ns; srtt is 0 until a round trip has been measured */
	/* end of the adaptive interval (bb_roce_rto.c); UINT64_MAX if it does not run */
	uint64_t deadline;
	/* Packet whose round trip is being measured: the time at which it was sent, and its PSN. */
	uint64_t timed_at;
	uint32_t timed_psn;
	uint32_t ack_req_psn; /* newest PSN that requests an ACK; valid from una to nxt - 1 */
	uint32_t shift;       /* current number of doublings of the adaptive interval */
	/* value of bb_roce_req.sent when the adaptive interval was last doubled */
	uint32_t doubling_end;
	bool timing;
	bool waiting; /* true if the requester has waited for an acknowledgement since wait_start */
	uint64_t wait_start;
	/* Longest wait for an ACK, in ns, in the current time window and in the previous one. */
	uint64_t longest_wait[2], wait_window_end;
};

/*
 * State of the requester and the completer. The messages from index tail to index head are posted
 * and not complete. The messages from tail to unassigned already have PSNs. Modulo 2^24,
 * una <= nxt <= sent.
 */
struct bb_roce_req {
	struct bb_roce_msg *ring; /* slots for messages; memory of the caller */
	uint32_t mask;            /* slots - 1 */
	uint32_t head, tail;      /* free-running indexes into ring */
	uint32_t next;            /* index of the message whose packet is sent next */
	uint32_t next_pkt;    /* number, from 0, of the next packet to send in its message; for a
				 READ, number of the response packet to request next */
	uint32_t unassigned;  /* index of the first message that has no PSN yet */
	uint32_t psn;         /* first PSN of the next message to which PSNs are assigned */
	uint32_t una;         /* oldest PSN that is not acknowledged */
	uint32_t nxt;         /* PSN of the next packet to send */
	uint32_t sent;        /* highest PSN sent (for a READ: requested) so far, plus 1 */
	uint32_t restart_end; /* value of sent at the last restart of the requester */
	uint32_t chunk;       /* maximum response packets of one READ request */
	uint32_t resume_psn;  /* PSN at which the rest of a READ request was requested again */
	uint32_t no_ack_req;  /* packets sent since the last one with AckReq */
	uint32_t rd_atomic;   /* READs and atomics sent whose response is not complete */
	uint32_t retries, rnr_retries; /* retries left */
	uint32_t ssn, limit; /* ssn: SSN of the last message; limit: last SSN for which the peer has
				granted a credit */
	bool credits;        /* the peer grants credits */
	bool rnr_wait;
	bool going_back; /* true if a NAK caused a restart and no PSN was acknowledged since */
	/*
	 * Selective repeat (bb_roce_repeat.c): only some of the packets in flight are sent again. A
	 * sequence of such packets that begins with the oldest PSN, una, is called a run.
	 */
	bool peer_stores; /* true if the peer has stored packets that followed a lost one */
	bool newest_next; /* true if the next packet is sent only to show the peer that this
		       requester repeats selectively */
	uint8_t probe; /* enum bb_roce_probe: state of the oldest packet during selective repeat */
	int32_t attempts_left; /* positive: number of failures after which the requester stops using
				  selective repeat; negative: number of losses after which it starts
				  again */
	/* Value of nxt when the packet with PSN una was last sent again. */
	uint32_t probe_end;
	/*
	 * run_len: number of packets in the last run of packets sent again; run_end: PSN after the
	 * newest packet of this run that was sent
	 */
	uint32_t run_len, run_end;
	uint32_t run_left; /* packets that selective repeat has selected and not sent again yet */
	/* PSN and message index of the next packet that selective repeat sends again */
	uint32_t run_psn, run_msg;
	uint8_t failed_synd; /* syndrome of message failed_msg if that message is not complete and
				cannot be sent, else 0 */
	uint32_t failed_msg;
	uint64_t deadline; /* end of the ack timeout or RNR wait; UINT64_MAX if neither runs */
	struct bb_roce_rto rto;
};

/* State of the responder. */
struct bb_roce_resp {
	uint32_t epsn, msn;
	uint64_t seq; /* number of accepted packets: counts like epsn, but starts at 0 and does not
			 wrap */
	/* The request message in progress. */
	uint8_t kind;
	bool in_message;  /* true if a message is in progress; while it is false, UC drops all
			     packets but first packets of messages */
	bool have_recv;   /* true if there is a current receive, for this message or the next */
	bool established; /* true if established() was called */
	uint32_t off, dmalen, rkey;
	uint64_t va;
	bool nak_sent; /* a NAK for the expected PSN was sent; none follows until that PSN arrives
			  (9.7.5.1.3) */
	/*
	 * The pending ACK or NAK, which is sent after all pending READ responses. ack_due is true
	 * if there is one.
	 */
	bool ack_due;
	uint8_t ack_syndrome;
	uint64_t ack_seq;
	uint8_t fatal; /* syndrome for failed() if the QP must fail after the pending NAK is sent,
			  else 0 */
	/*
	 * Stored packets whose PSN is after the expected PSN; the index is the PSN modulo
	 * max_out_of_order. The array is memory of the caller.
	 */
	struct bb_roce_pkt **out_of_order;
	uint32_t max_out_of_order, n_out_of_order;
	uint32_t missing;     /* PSN of the last NAK for a lost packet */
	uint8_t trial;        /* enum in bb_roce_resp.c: state of the execution of a stored packet,
			       * whose failure must not fail the QP */
	uint32_t newest;      /* highest PSN received after the lost packet, plus 1 */
	uint64_t store_until; /* value of seq up to which packets may be stored; see bb_roce_ooo.c
			       */
	/*
	 * The newest READs and atomics of the peer, at most bb_roce_mem.replays entries. The
	 * responses of the entries from todo to head are still to be sent.
	 */
	struct bb_roce_replay *replay; /* array in memory of the caller */
	uint32_t replays;
	uint32_t head, todo;
	uint32_t todo_pkt;
	uint32_t answered; /* the responses of all entries before this index have been sent at least
			      once */
	uint32_t n_replays; /* number of valid entries in replay */
};

struct bb_roce_qp {
	const struct bb_roce_ops *ops;
	void *ctx; /* first argument of all callbacks; the engine does not access it */
	enum bb_roce_state state;
	struct bb_roce_attr attr;
	struct bb_roce_req req;
	struct bb_roce_resp resp;
	struct bb_roce_stats stats;
	bool cnp_due;
	uint64_t cnp_next; /* earliest time of the next CNP, in ns */
};

/* Memory that the caller provides. It must remain valid as long as the queue pair exists. */
struct bb_roce_mem {
	struct bb_roce_msg *ring;
	uint32_t slots; /* entries of ring, a power of two */
	struct bb_roce_replay *replay;
	uint32_t replays; /* entries of replay, a power of two; 0 for UC and UD */
	struct bb_roce_pkt *
		*out_of_order;     /* array of max_out_of_order entries, all initially NULL */
	uint32_t max_out_of_order; /* power of two, or 0: the responder then drops packets after a
				      lost one */
};

/* Initializes a queue pair in state RESET. *mem itself is copied. */
void bb_roce_qp_init(struct bb_roce_qp *qp, const struct bb_roce_ops *ops, void *ctx,
		     const struct bb_roce_mem *mem);
/*
 * Moves the QP from RESET to RTR, where the responder is active. Returns -EINVAL without a change
 * if the QP is not in RESET or an attribute is out of range.
 */
int bb_roce_qp_rtr(struct bb_roce_qp *qp, const struct bb_roce_attr *attr);
/*
 * Moves the QP from RTR to RTS, where the requester is also active. Reads the fields of *attr from
 * sq_psn on. Returns -EINVAL if the QP is not in RTR or an attribute is out of range.
 */
int bb_roce_qp_rts(struct bb_roce_qp *qp, const struct bb_roce_attr *attr);
/*
 * Changes attributes in RTR or RTS. The Q_Key of a UD QP applies from the next datagram on, the
 * RNR timer code of an RC QP from the next RNR NAK on. Returns -EINVAL without a change in other
 * states and for an invalid code.
 */
int bb_roce_qp_change(struct bb_roce_qp *qp, uint32_t qkey, uint32_t min_rnr_timer);
/*
 * Drops all stored packets, so that the peer must send them again. May be called at any time, also
 * from bb_roce_ops.store_pkt() of another queue pair.
 */
void bb_roce_ooo_drop(struct bb_roce_qp *qp);
/*
 * Moves the QP to ERR and drops the stored packets. The peer is not informed. Call this function
 * also before the memory of the QP is freed.
 */
void bb_roce_qp_err(struct bb_roce_qp *qp);
/* Completes the remaining messages with @status, in order. Call it only in ERR. */
void bb_roce_qp_flush(struct bb_roce_qp *qp, uint8_t status);

/*
 * Posts a message. In RTS the next bb_roce_run() sends the message. In ERR the message waits for
 * bb_roce_qp_flush(). Returns -EINVAL in RESET, and for a kind that the QP type does not support.
 * Returns -EMSGSIZE if the message is longer than 1 << 31 bytes (UD: than the MTU), and -ENOBUFS
 * if all slots are in use.
 */
int bb_roce_post(struct bb_roce_qp *qp, const struct bb_roce_msg *msg);

/*
 * Handles a received packet. The caller must have checked that its destination QP is qp->attr.qpn
 * and that its ICRC is correct.
 */
void bb_roce_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, const struct bb_roce_net *net,
		uint64_t now);
/*
 * Sends at most @budget packets: those of the responder first, then those of the requester.
 * Returns the number of packets sent.
 */
uint32_t bb_roce_run(struct bb_roce_qp *qp, uint32_t budget, uint64_t now);
/* After 15 packets in a row without AckReq, the next packet that ends a message requests an ACK. */
#define BB_ROCE_MAX_NO_ACK_REQ 16u

/*
 * Returns true if the next packet must request an ACK because the window is nearly full. Without
 * that ACK the window would stay full.
 */
static inline bool
bb_roce_window_needs_ack(const struct bb_roce_qp *qp)
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

/*
 * Returns true if the requester has nothing to send and the last packet that it sent requested an
 * ACK.
 */
static inline bool
bb_roce_req_idle(const struct bb_roce_req *req)
{
	return ((req->next ^ req->head) | req->no_ack_req | req->run_left) == 0;
}

/* Returns true if the responder has a response, ACK, NAK or CNP to send. */
static inline bool
bb_roce_has_response(const struct bb_roce_qp *qp)
{
	return ((qp->resp.todo ^ qp->resp.head) | qp->cnp_due | qp->resp.ack_due) != 0;
}

/* Returns true if neither the responder nor the requester has a packet to send. */
static inline bool
bb_roce_idle(const struct bb_roce_qp *qp)
{
	return !bb_roce_has_response(qp) && bb_roce_req_idle(&qp->req);
}

/* Second condition of bb_roce_busy(): returns true if a pending packet may be sent now. */
bool bb_roce_can_send(const struct bb_roce_qp *qp);
/* Returns true if bb_roce_run() would send a packet. */
static inline bool
bb_roce_busy(const struct bb_roce_qp *qp)
{
	return !bb_roce_idle(qp) && bb_roce_can_send(qp);
}
/* Returns the time at which to call bb_roce_tick(), or UINT64_MAX if no timer runs. */
static inline uint64_t
bb_roce_deadline(const struct bb_roce_qp *qp)
{
	uint64_t early = qp->req.rto.deadline;

	return early < qp->req.deadline ? early : qp->req.deadline;
}
void bb_roce_tick(struct bb_roce_qp *qp, uint64_t now);

#endif
