/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Queue pairs of a device with a port: the RoCEv2 engine (lib/roce) executes their requests as
 * packets. Start reading at soft_wire.c (a QP's turn), soft_wire_req.c and soft_wire_resp.c (memory
 * and queues of requester and responder), soft_wire_port.c (packets) and soft_link.h (links).
 *
 * A QP passes up to SOFT_WIRE_SLOTS WQEs at a time to the engine. They stay in the ring until they
 * complete. A retransmission decodes the WQE again and checks its keys again, so a change of a key
 * takes effect.
 */
#ifndef SOFT_WIRE_H
#define SOFT_WIRE_H

#include "bb_roce_qp.h"
#include "soft_capture.h"
#include "soft_data.h"
#include "soft_link.h"

#define SOFT_WIRE_SLOTS   64u /* Messages of a QP in flight; power of two. */
#define SOFT_WIRE_INLINE  64u /* Bytes of inline data that are cached for the turn. */
#define SOFT_WIRE_REPLAYS 16u /* READs and atomics that a responder can repeat; power of two. */
/* The missing packet and the out-of-order packets after it; power of two. */
#define SOFT_WIRE_AHEAD 256u
/* Smallest delay of the first early retransmission, ns: peers may wait for a CPU. */
#define SOFT_WIRE_ADAPTIVE_NS 100000u
/* Time that a packet of UC or UD waits for room, ns: the longest finite HOQLife, 2^19. */
#define SOFT_WIRE_LIFETIME_NS (UINT64_C(4096) << 19)
/* Consecutive messages, each answered by a request of the application, that make a conversation. */
#define SOFT_WIRE_TALKS 4u

/* Faults that were applied to a packet. */
enum {
	SOFT_HIT_DROP = 1u << 0,
	SOFT_HIT_DUP = 1u << 1,
	SOFT_HIT_REORDER = 1u << 2,
	SOFT_HIT_CORRUPT = 1u << 3,
	SOFT_HIT_ECN = 1u << 4,
	SOFT_HIT_STALL = 1u << 5,
};

/* A packet in transit, in memory. */
struct soft_packet_msg {
	struct soft_msg msg;
	struct bb_roce_net net;
	uint8_t mac[6]; /* MAC of the destination. */
	bool rx;        /* Direction: received; its faults are already drawn. */
	uint8_t hits;   /* Applied faults, SOFT_HIT_*. */
	uint32_t dqpn;
	uint64_t due; /* Time of release, TSC; while on soft_engine.held_packets. */
	TAILQ_ENTRY(soft_packet_msg) held;
	uint32_t len;
	uint32_t ip_len;
	uint8_t data[]; /* From the IP header to the ICRC. */
};

/* Kinds of packets with predicted headers. */
enum soft_wire_kind {
	SOFT_WIRE_WRITE,
	SOFT_WIRE_WRITE_IMM,
	SOFT_WIRE_SEND,
	SOFT_WIRE_SEND_IMM,
	SOFT_WIRE_ACK,
	SOFT_WIRE_KINDS,
};
#define SOFT_WIRE_HEAD     48u /* Bytes that are compared: Ethernet, IPv4, UDP and BTH. */
#define SOFT_WIRE_HEAD_MAX 72u /* Bytes with IPv6 and a VLAN tag. */

struct soft_shm_tx;

/*
 * The wire state of a QP; only its engine's thread uses it. A link may extend it:
 * soft_link_ops.qp_size.
 */
struct soft_wire {
	struct bb_roce_qp roce;
	struct soft_qp *qp;
	uint16_t sq_next; /* Block index of the next WQE for the engine. */
	uint32_t posted;  /* Messages passed to the engine, free running. */
	bool recv_failed; /* A receive failed by a local error, and its CQE was written. */
	uint8_t in_cqe_len;
	uint8_t in_cqe[32]; /* Receive data that goes into the CQE. */
	/* The WRITE that was checked in turn @turn; e->remote is its memory. */
	struct soft_wire_checked {
		uint64_t turn;
		uint64_t va;
		uint32_t rkey, len;
	} checked;
	/* Predicted headers by kind, from the last such frame: soft_wire_expect.c. */
	struct soft_wire_expect {
		uint8_t head[SOFT_WIRE_HEAD_MAX]; /* First bytes of the frame. */
		uint32_t crc;                     /* State of the ICRC after the QP number. */
		uint32_t end;                     /* Bytes of the frame; 0 if none is predicted. */
		uint32_t len;                     /* Bytes of payload. */
	} expect[SOFT_WIRE_KINDS];
	uint32_t expect_met; /* Frames that matched since the last one was learnt. */
	uint32_t expect_missed;
	/*
	 * UC, UD: time since which the link has had no room for packets to full_to, ns; 0 if it has
	 * room.
	 */
	uint64_t full_since;
	uint8_t full_to[16];
	uint32_t spoke; /* PSN that the responder expected at the requester's last send. */
	uint64_t timer; /* Expiry of the last set timer, ns. */
	uint32_t talks; /* Single packets in a row that requests answered; at most
			 * SOFT_WIRE_TALKS. */
	struct soft_wire_dest path;
	/* Cached first bytes of packets on the path: of a request, of an ACK. */
	struct soft_port_begin begin[2];
	struct soft_wire_dest *dest; /* UD: destination by slot. */
	struct soft_shm_tx *shm_tx;  /* Connection of a connected QP with the option shm. */
	uint32_t *epsn_out;          /* Published PSN that the responder expects. */
	struct bb_roce_stats told;   /* roce.stats at the last update of the counter set. */
	bool uncounted;              /* On the engine's list uncounted, linked by count. */
	LIST_ENTRY(soft_wire) count;
	/*
	 * Number of out-of-order packets held, and the PSN that they wait for. With packets, the QP
	 * is on the engine's list keepers.
	 */
	uint32_t kept, kept_epsn;
	uint64_t kept_since; /* Start of the wait, ns. */
	TAILQ_ENTRY(soft_wire) keeper;
	struct soft_done done[SOFT_WIRE_SLOTS];
	/* Payload in one piece by slot, as found in turn @turn. */
	struct soft_wire_piece {
		uint64_t turn;
		struct soft_piece piece;
	} piece[SOFT_WIRE_SLOTS];
	uint8_t inl[SOFT_WIRE_SLOTS][SOFT_WIRE_INLINE]; /* Copy of the piece if it was inline
							 * data. */
	struct bb_roce_msg ring[SOFT_WIRE_SLOTS];
	struct bb_roce_replay replay[SOFT_WIRE_REPLAYS];
	struct bb_roce_pkt *ahead[SOFT_WIRE_AHEAD];
};

/* ---- soft_wire.c */
/* Creates the wire state of a QP. Returns NULL without memory. */
struct soft_wire *soft_wire_create(struct soft_qp *qp);
/* Applies a new state of the QP. Under its engine's lock. */
void soft_wire_enter_state(struct soft_wire *w);
/* Applies changed attributes, in RTS or on the transition to it. Under its engine's lock. */
void soft_wire_changed(struct soft_wire *w);
/* Invalidates lookups of the engine's previous turn. */
static inline void
soft_wire_turn(struct soft_engine *e)
{
	e->decoded = NULL;
	e->turn++;
}
/* Runs one turn of a QP: new WQEs, expired timers, received packets. */
void soft_wire_run(struct soft_engine *e, struct soft_wire *w);
/* Processes a packet for the QP. */
void soft_wire_rx(struct soft_engine *e, struct soft_wire *w, const struct bb_roce_pkt *pkt,
		  const struct bb_roce_net *net);
/*
 * Schedules the QP after a packet. With @last the packet ends a port's burst and its answer leaves
 * now; otherwise the answer waits for the rest of the burst.
 */
void soft_wire_took(struct soft_engine *e, struct soft_wire *w, bool last);
/* Sends a delayed ACK, if possible, before the control path disconnects the QP. */
void soft_wire_last_ack(struct soft_qp *qp);

/* ---- soft_wire_count.c */
/* Adds the new counts of the RoCEv2 engine to the device's counters. */
void soft_wire_count(struct soft_wire *w);
/* Defers soft_wire_count() until the engine is idle, or to soft_quiesce(). */
static inline void
soft_wire_count_later(struct soft_engine *e, struct soft_wire *w)
{
	if (likely(w->uncounted))
		return;
	w->uncounted = true;
	LIST_INSERT_HEAD(&e->uncounted, w, count);
}
/* Counts for the last time before the QP leaves its engine. Under the engine's lock. */
void soft_wire_count_last(struct soft_wire *w);
/* Counts a dropped packet; @why is an enum bb_roce_drop or soft_lost. */
void soft_wire_lost(struct soft_dev *dev, uint32_t why);
/*
 * Returns the counter's name of a reason, such as "drop_icrc", or NULL if there is no such reason.
 */
const char *soft_wire_lost_name(uint32_t why);
/* Logs the numbers of dropped packets by reason, at level info. */
void soft_wire_tell_lost(const struct soft_dev *dev);

/* ---- soft_wire_req.c */
/* Passes posted WQEs to the engine, as far as it has slots. */
void soft_wire_post(struct soft_engine *e, struct soft_wire *w);
int soft_wire_gather(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
		     uint32_t off, uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV]);
uint8_t soft_wire_place(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
			uint32_t off, const uint8_t *data, uint32_t len);
uint8_t soft_wire_atomic_result(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
				uint64_t orig);
void soft_wire_complete(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
			uint8_t status);

/* ---- soft_wire_resp.c */
enum bb_roce_take soft_wire_recv_take(void *ctx, struct bb_roce_qp *roce);
uint8_t soft_wire_recv_place(void *ctx, struct bb_roce_qp *roce, uint32_t off, const uint8_t *data,
			     uint32_t len);
uint8_t soft_wire_recv_done(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_recv *r);
uint8_t soft_wire_invalidate(void *ctx, struct bb_roce_qp *roce, uint32_t rkey);
uint8_t soft_wire_remote_check(void *ctx, struct bb_roce_qp *roce, enum bb_roce_access access,
			       uint32_t rkey, uint64_t va, uint32_t len);
uint8_t soft_wire_remote_write(void *ctx, struct bb_roce_qp *roce, uint32_t rkey, uint64_t va,
			       const uint8_t *data, uint32_t len);
int soft_wire_remote_read(void *ctx, struct bb_roce_qp *roce, uint32_t rkey, uint64_t va,
			  uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV]);
uint8_t soft_wire_remote_atomic(void *ctx, struct bb_roce_qp *roce, uint8_t kind, uint32_t rkey,
				uint64_t va, uint64_t swap_add, uint64_t compare, uint64_t *orig);

/* ---- soft_wire_ahead.c */
struct bb_roce_pkt *soft_wire_ahead_keep(void *ctx, struct bb_roce_qp *roce,
					 const struct bb_roce_pkt *pkt);
void soft_wire_ahead_drop(void *ctx, struct bb_roce_qp *roce, struct bb_roce_pkt *pkt);

/* ---- soft_wire_ud.c */
/* Writes the destination of the WQE of @r to *msg and *dest. */
void soft_wire_ud_dest(const struct soft_qp *qp, const struct soft_req *r, struct bb_roce_msg *msg,
		       struct soft_wire_dest *dest);
/*
 * Completes the receive of a datagram whose data is in place. Returns false if its CQE could not be
 * written.
 */
bool soft_wire_ud_done(struct soft_engine *e, struct soft_wire *w, const struct bb_roce_recv *r);

/* ---- soft_wire_port.c */
/* Bytes of IPv6, UDP and all headers before the payload. */
#define SOFT_WIRE_HEADERS (40u + 8u + BB_ROCE_MAX_HDR)
/* Limit of packets in an engine's inbox, and of its out-of-order packets; more are dropped. */
#define SOFT_WIRE_QUEUE 4096u
bool soft_wire_tx(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_pkt *pkt,
		  const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg);
/* Builds a packet from IP header to ICRC in memory of its own. Returns NULL without memory. */
struct soft_packet_msg *soft_packet_build(const struct soft_link_pkt *p);

/* Processes a received packet; nothing of it is checked yet. Takes ownership. */
void soft_wire_arrive(struct soft_engine *e, struct soft_packet_msg *m);
/* Processes a packet of the inbox. */
void soft_packet_take(struct soft_engine *e, struct soft_msg *m);
/* A received packet: bytes from IP header to ICRC, the UDP header included. */
struct soft_packet {
	const uint8_t *ip;
	uint32_t ip_len; /* Bytes of the IP header. */
	uint32_t len;
	const struct bb_roce_net *net;
	uint32_t l2_len; /* Bytes of the Ethernet header before ip; 0 if soft_wire_learn() must
			  * not use it. */
};
/*
 * Delivers a packet that a link received for a QP of the device. @e processes it at once if it owns
 * the QP. Otherwise, and if @e is NULL, the QP's engine gets a copy.
 */
void soft_wire_deliver(struct soft_dev *dev, struct soft_engine *e, const struct soft_packet *p);
/*
 * Passes a packet on: to its target QP, or to the link. Returns false without room; the caller
 * keeps the packet then.
 */
bool soft_packet_go(struct soft_engine *e, struct soft_packet_msg *m);

/* ---- soft_wire_expect.c */
/*
 * Processes a frame of @len bytes that matches the predicted headers; nothing of it is checked yet.
 * @e is the polling engine, NULL if none; @last as in soft_wire_took(). Returns false if the frame
 * needs all checks; nothing has changed then.
 */
bool soft_wire_expected(struct soft_dev *dev, struct soft_engine *e, const uint8_t *frame,
			uint32_t len, bool last);
/* Learns the headers of a packet after all checks, if it passed them. */
void soft_wire_learn(struct soft_wire *w, const struct soft_packet *p);
/* Drops the predictions of a queue pair. */
static inline void
soft_wire_forget(struct soft_wire *w)
{
	memset(w->expect, 0, sizeof(w->expect));
	w->expect_missed = 0;
	w->expect_met = 0;
}

/* ---- soft_wire_fault.c */
/* Applies the faults of @f, of which at least one is set, to a packet. Takes ownership. */
void soft_net_fault_strike(struct soft_engine *e, struct soft_packet_msg *m,
			   const struct soft_net_fault *f);
/*
 * Returns true if fault injection loses the next packet, for a device with soft_net_loses_only().
 */
bool soft_net_loses(struct soft_engine *e);
/* Returns true while the link accepts no packet, as tx_full and rx_full (@rx) say. Any thread. */
static inline bool
soft_net_full(const struct soft_engine *e, bool rx)
{
	const uint64_t until = __atomic_load_n(&e->net.full_until[rx], __ATOMIC_RELAXED);

	return until != 0 && soft_ticks(e->dev) < until;
}
/* Passes on held packets whose time has come. */
void soft_net_fault_run(struct soft_engine *e);
void soft_net_fault_drop_all(struct soft_engine *e);
/*
 * Returns true if the device's engines simulate a flapping port. For an ethdev soft_port.c does it.
 */
static inline bool
soft_net_flaps(const struct soft_dev *dev)
{
	return dev->flap.up != 0 && dev->netif == NULL;
}
/*
 * Runs timed work of fault injection and capture. Returns true while the engine is still busy with
 * it.
 */
bool soft_net_run(struct soft_engine *e);
/* Record a packet of the device for the option capture, see soft_capture.h. */
void soft_packet_capture_begin(struct soft_engine *e, enum soft_capture_dir dir, const uint8_t *ip,
			       uint32_t len, uint8_t hits);
void soft_packet_capture_end(struct soft_engine *e, bool keep);
static inline void
soft_packet_seen(struct soft_engine *e, enum soft_capture_dir dir, const uint8_t *ip, uint32_t len,
		 uint8_t hits)
{
	if (likely(e->dev->capture == NULL))
		return;
	soft_packet_capture_begin(e, dir, ip, len, hits);
	soft_packet_capture_end(e, true);
}

/* ---- The inbox of an engine */
/* Returns true if the engine's inbox has room for a packet. */
static inline bool
soft_packet_room(const struct soft_engine *to)
{
	return __atomic_load_n(&to->packets, __ATOMIC_RELAXED) < SOFT_WIRE_QUEUE;
}
/* Posts a packet to the inbox of the engine of @p. */
static inline void
soft_packet_post(const struct soft_qp *p, struct soft_packet_msg *m)
{
	m->msg.state = SOFT_MSG_PACKET;
	__atomic_fetch_add(&p->engine->packets, 1, __ATOMIC_RELAXED);
	soft_msg_push(p->engine, &m->msg);
}

/*
 * Records the next WQE as a message of one packet, for completion and retransmission. Returns its
 * cookie.
 */
static inline uint32_t
soft_wire_note(struct soft_wire *w, uint8_t opcode, uint32_t blocks, uint8_t fm_ce_se, uint64_t len)
{
	const uint32_t slot = w->posted++ % SOFT_WIRE_SLOTS;

	w->done[slot] = (struct soft_done){
		.idx = w->sq_next,
		.blocks = (uint16_t)blocks,
		.opcode = opcode,
		.fm_ce_se = fm_ce_se,
		.len = len,
		.psn = w->qp->sq_psn,
		.packets = 1,
	};
	w->piece[slot].turn = 0;
	w->sq_next = (uint16_t)(w->sq_next + blocks);
	return slot;
}

static inline struct soft_wire *
soft_wire_of(struct bb_roce_qp *roce)
{
	return container_of(roce, struct soft_wire, roce);
}

#endif
