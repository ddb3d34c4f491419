/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Queue pairs of a device that has a port: the RoCEv2 engine (lib/roce) carries out their
 * requests, as packets. Where to start reading: soft_wire.c (a QP's turn), soft_wire_req.c and
 * soft_wire_resp.c (what the engine asks of the requester's and the responder's memory and
 * queues), soft_wire_port.c (packets), soft_link.h (where they go).
 *
 * A QP's WQEs are given to the engine up to SOFT_WIRE_SLOTS at a time and stay in the ring until
 * they are complete, so a WQE is decoded anew when its payload is sent once more, and its keys are
 * asked again: what has become of them meanwhile counts.
 */
#ifndef SOFT_WIRE_H
#define SOFT_WIRE_H

#include "bb_roce_qp.h"
#include "soft_capture.h"
#include "soft_data.h"
#include "soft_link.h"

#define SOFT_WIRE_SLOTS   64u  /* messages of a QP under way; power of two */
#define SOFT_WIRE_INLINE  64u  /* bytes of inline data that are kept for the turn */
#define SOFT_WIRE_REPLAYS 16u  /* READs and atomics that it answers; power of two */
#define SOFT_WIRE_AHEAD   256u /* the missing packet and those kept behind it; power of two */
/* First early resend, at the soonest: peers may have to wait for a CPU. */
#define SOFT_WIRE_ADAPTIVE_NS 100000u
/* How long a packet of UC or UD waits for room: the longest HOQLife but for ever, 2^19. */
#define SOFT_WIRE_LIFETIME_NS (UINT64_C(4096) << 19)
/* Messages in a row, each answered by a request of the application, that make a conversation. */
#define SOFT_WIRE_TALKS 4u

/* Faults that struck a packet. */
enum {
	SOFT_HIT_DROP = 1u << 0,
	SOFT_HIT_DUP = 1u << 1,
	SOFT_HIT_REORDER = 1u << 2,
	SOFT_HIT_CORRUPT = 1u << 3,
	SOFT_HIT_ECN = 1u << 4,
	SOFT_HIT_STALL = 1u << 5,
};

/* A packet on its way, in memory. */
struct soft_packet_msg {
	struct soft_msg msg;
	struct bb_roce_net net;
	uint8_t mac[6]; /* where it goes */
	bool rx;        /* it has arrived, and a fault has struck or not */
	uint8_t hits;   /* SOFT_HIT_*: faults that struck it */
	uint32_t dqpn;
	uint64_t due; /* TSC; on soft_engine.held_packets */
	TAILQ_ENTRY(soft_packet_msg) held;
	uint32_t len;
	uint32_t ip_len;
	uint8_t data[]; /* from the IP header to the ICRC */
};

/* Kinds of packets that are expected as the one before was. */
enum soft_wire_kind {
	SOFT_WIRE_WRITE,
	SOFT_WIRE_WRITE_IMM,
	SOFT_WIRE_SEND,
	SOFT_WIRE_SEND_IMM,
	SOFT_WIRE_ACK,
	SOFT_WIRE_KINDS,
};
#define SOFT_WIRE_HEAD     48u /* bytes that are compared: of Ethernet, IPv4, UDP and BTH */
#define SOFT_WIRE_HEAD_MAX 72u /* with IPv6 and a tag */

struct soft_shm_tx;

/* One a QP, the engine's thread's alone. A link may have more of it: soft_link_ops.qp_size. */
struct soft_wire {
	struct bb_roce_qp roce;
	struct soft_qp *qp;
	uint16_t sq_next; /* block of the WQE that is given to the engine next */
	uint32_t posted;  /* messages given to it, free running */
	bool recv_failed; /* by its own fault, and its CQE was written */
	uint8_t in_cqe_len;
	uint8_t in_cqe[32]; /* data of a receive that goes into its CQE */
	/* A WRITE that was checked in that turn of the engine: e->remote is what it names. */
	struct soft_wire_checked {
		uint64_t turn;
		uint64_t va;
		uint32_t rkey, len;
	} checked;
	/* Of each kind, as the one that came last had it: soft_wire_expect.c */
	struct soft_wire_expect {
		uint8_t head[SOFT_WIRE_HEAD_MAX]; /* of the frame */
		uint32_t crc;                     /* of the ICRC, behind the QP number */
		uint32_t end;                     /* bytes of the frame; 0: none is expected */
		uint32_t len;                     /* of its payload */
	} expect[SOFT_WIRE_KINDS];
	uint32_t expect_met; /* frames, since the last one was learnt */
	uint32_t expect_missed;
	/* UC, UD: since when (ns, 0: not) the link has had no room for packets to that address. */
	uint64_t full_since;
	uint8_t full_to[16];
	uint32_t spoke; /* what its responder expected when its requester sent last */
	uint64_t timer; /* ns: when that ends which was set last */
	uint32_t talks; /* up to SOFT_WIRE_TALKS: times that one packet was answered by requests */
	struct soft_wire_dest path;
	/* Beginnings of packets on that path, as they were sent last: a request's, an ACK's. */
	struct soft_port_begin begin[2];
	struct soft_wire_dest *dest; /* UD: by slot */
	struct soft_shm_tx *shm_tx;  /* of a connected QP with the option shm */
	uint32_t *epsn_out;          /* where peers look for what its responder expects */
	struct bb_roce_stats told;   /* what the counter set has of roce.stats */
	bool uncounted;              /* on the engine's list of that name, by "count" */
	LIST_ENTRY(soft_wire) count;
	/* Packets it keeps, on the engine's list of keepers, and what it has waited for since. */
	uint32_t kept, kept_epsn;
	uint64_t kept_since; /* ns */
	TAILQ_ENTRY(soft_wire) keeper;
	struct soft_done done[SOFT_WIRE_SLOTS];
	/* By slot: payload in one piece, as found in the engine's turn of that number. */
	struct soft_wire_piece {
		uint64_t turn;
		struct soft_piece piece;
	} piece[SOFT_WIRE_SLOTS];
	uint8_t inl[SOFT_WIRE_SLOTS][SOFT_WIRE_INLINE]; /* that piece, if it was inline data */
	struct bb_roce_msg ring[SOFT_WIRE_SLOTS];
	struct bb_roce_replay replay[SOFT_WIRE_REPLAYS];
	struct bb_roce_pkt *ahead[SOFT_WIRE_AHEAD];
};

/* ---- soft_wire.c */
/* NULL: no memory. */
struct soft_wire *soft_wire_create(struct soft_qp *qp);
/* The QP has a new state: under its engine's lock. */
void soft_wire_enter_state(struct soft_wire *w);
/* In RTS, or on the way there, attributes may be new: under its engine's lock. */
void soft_wire_changed(struct soft_wire *w);
/* What was looked up in the engine's turn before may be something else now. */
static inline void
soft_wire_turn(struct soft_engine *e)
{
	e->decoded = NULL;
	e->turn++;
}
/* Its turn: new WQEs, timers, packets. */
void soft_wire_run(struct soft_engine *e, struct soft_wire *w);
/* A packet that names it. */
void soft_wire_rx(struct soft_engine *e, struct soft_wire *w, const struct bb_roce_pkt *pkt,
		  const struct bb_roce_net *net);
/*
 * It has taken a packet. @last: behind which no other one has come, by a port; else its answer
 * waits for those.
 */
void soft_wire_took(struct soft_engine *e, struct soft_wire *w, bool last);
/* The control path takes the QP from its peer: an ACK that is put off leaves, if it can. */
void soft_wire_last_ack(struct soft_qp *qp);

/* ---- soft_wire_count.c */
/* Tell the device's counters what is new in the engine's. */
void soft_wire_count(struct soft_wire *w);
/* The same when the engine has nothing else to do, or in soft_quiesce(). */
static inline void
soft_wire_count_later(struct soft_engine *e, struct soft_wire *w)
{
	if (likely(w->uncounted))
		return;
	w->uncounted = true;
	LIST_INSERT_HEAD(&e->uncounted, w, count);
}
/* The QP leaves its engine, whose lock is held. */
void soft_wire_count_last(struct soft_wire *w);
/* A packet that came was dropped: enum bb_roce_drop or soft_lost. */
void soft_wire_lost(struct soft_dev *dev, uint32_t why);
/* "drop_icrc"; NULL: there is no such reason. */
const char *soft_wire_lost_name(uint32_t why);
/* How many and why, in the log at level info. */
void soft_wire_tell_lost(const struct soft_dev *dev);

/* ---- soft_wire_req.c */
/* Give the engine the WQEs that are posted and have room. */
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
/* Where the WQE of @r goes: into *msg and *dest. */
void soft_wire_ud_dest(const struct soft_qp *qp, const struct soft_req *r, struct bb_roce_msg *msg,
		       struct soft_wire_dest *dest);
/* The receive of a datagram whose data is in place. False: its CQE could not be written. */
bool soft_wire_ud_done(struct soft_engine *e, struct soft_wire *w, const struct bb_roce_recv *r);

/* ---- soft_wire_port.c */
/* IPv6, UDP, and all that may stand in front of the payload. */
#define SOFT_WIRE_HEADERS (40u + 8u + BB_ROCE_MAX_HDR)
/* Packets that an engine has to take in, and that it keeps: more are refused. */
#define SOFT_WIRE_QUEUE 4096u
bool soft_wire_tx(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_pkt *pkt,
		  const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg);
/* A packet from its IP header to its ICRC, in memory of its own. NULL: no memory. */
struct soft_packet_msg *soft_packet_build(const struct soft_link_pkt *p);

/* A packet that came: in full, not yet looked at. */
void soft_wire_arrive(struct soft_engine *e, struct soft_packet_msg *m);
/* The same of one that came through the inbox. */
void soft_packet_take(struct soft_engine *e, struct soft_msg *m);
/* A packet that has come, as bytes from its IP header to its ICRC. UDP's header is part of it. */
struct soft_packet {
	const uint8_t *ip;
	uint32_t ip_len; /* of the header */
	uint32_t len;
	const struct bb_roce_net *net;
	uint32_t l2_len; /* of its Ethernet header, in front of it; 0: for soft_wire_learn() none */
};
/*
 * A packet that a link has received for a QP of the device: by @e, which takes it at once if the
 * QP is one of its own; else, and if @e is NULL, a copy goes to the QP's engine.
 */
void soft_wire_deliver(struct soft_dev *dev, struct soft_engine *e, const struct soft_packet *p);
/* It goes on now: to its target, or out. False: no room, and it stays the caller's. */
bool soft_packet_go(struct soft_engine *e, struct soft_packet_msg *m);

/* ---- soft_wire_expect.c */
/*
 * A frame of @len bytes from the wire, of which no more is known, is to be taken by @e (NULL: none)
 * if it is as the one before. @last: soft_wire_took(). False: nothing was done, all checks are to
 * be made.
 */
bool soft_wire_expected(struct soft_dev *dev, struct soft_engine *e, const uint8_t *frame,
			uint32_t len, bool last);
/* A packet went through all checks, and passed or not. */
void soft_wire_learn(struct soft_wire *w, const struct soft_packet *p);
/* Its queue pair expects nothing any more. */
static inline void
soft_wire_forget(struct soft_wire *w)
{
	memset(w->expect, 0, sizeof(w->expect));
	w->expect_missed = 0;
	w->expect_met = 0;
}

/* ---- soft_wire_fault.c */
/* Faults that are not all 0 decide what becomes of it. The packet is given away. */
void soft_net_fault_strike(struct soft_engine *e, struct soft_packet_msg *m,
			   const struct soft_net_fault *f);
/* Of a device with soft_net_loses_only(): is the next one lost? */
bool soft_net_loses(struct soft_engine *e);
/* Does the link take no packet now, out or @rx in, as tx_full and rx_full say? From any thread. */
static inline bool
soft_net_full(const struct soft_engine *e, bool rx)
{
	const uint64_t until = __atomic_load_n(&e->net.full_until[rx], __ATOMIC_RELAXED);

	return until != 0 && soft_ticks(e->dev) < until;
}
/* Packets whose time has come. */
void soft_net_fault_run(struct soft_engine *e);
void soft_net_fault_drop_all(struct soft_engine *e);
/* Do the device's engines take its port down? That of an ethdev goes with the link: soft_port.c. */
static inline bool
soft_net_flaps(const struct soft_dev *dev)
{
	return dev->flap.up != 0 && dev->netif == NULL;
}
/* A poll of an engine that is busy. Is it still? */
bool soft_net_run(struct soft_engine *e);
/* A packet of the device is on the wire: for the option capture, soft_capture.h. */
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
/* Is there room for another one? */
static inline bool
soft_packet_room(const struct soft_engine *to)
{
	return __atomic_load_n(&to->packets, __ATOMIC_RELAXED) < SOFT_WIRE_QUEUE;
}
/* Hand a packet to the engine of @p. */
static inline void
soft_packet_post(const struct soft_qp *p, struct soft_packet_msg *m)
{
	m->msg.state = SOFT_MSG_PACKET;
	__atomic_fetch_add(&p->engine->packets, 1, __ATOMIC_RELAXED);
	soft_msg_push(p->engine, &m->msg);
}

/*
 * The WQE that is next becomes a message of one packet: what completing it, or sending it again,
 * takes. Returns its cookie.
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
