/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Queue pairs of a device that sends packets (options wire, port and shm). The RoCEv2 engine
 * (lib/roce) executes their requests as packets. Where to start reading:
 * - soft_wire.c: a QP's turn
 * - soft_wire_req.c, soft_wire_resp.c: memory and queues of the requester and of the responder
 * - soft_wire_port.c: packets
 * - soft_link.h: links
 *
 * A QP passes up to SOFT_WIRE_SLOTS WQEs at a time to the RoCEv2 engine. These WQEs stay in the
 * ring until they complete. A retransmission decodes the WQE again and checks its keys again, so a
 * changed key takes effect.
 */
#ifndef SOFT_WIRE_H
#define SOFT_WIRE_H

#include "bb_roce_qp.h"
#include "soft_capture.h"
#include "soft_data.h"
#include "soft_link.h"

#define SOFT_WIRE_SLOTS  64u /* Largest number of messages of a QP in flight; power of two. */
#define SOFT_WIRE_INLINE 64u /* Largest inline data that is cached for a turn, bytes. */
/* Number of READs and atomics whose response a responder can repeat; power of two. */
#define SOFT_WIRE_REPLAYS 16u
/* Slots for out-of-order packets of a QP, counted from the missing packet on; power of two. */
#define SOFT_WIRE_MAX_OOO 256u
/*
 * Smallest delay before the first early retransmission, ns. A peer's process may have to wait for a
 * CPU that long.
 */
#define SOFT_WIRE_ADAPTIVE_NS 100000u
/*
 * Longest time that a packet of UC or UD waits for room in the link, ns. It is the longest finite
 * head-of-queue lifetime of InfiniBand switches: HOQLife 19, 4.096 us * 2^19.
 */
#define SOFT_WIRE_LIFETIME_NS (UINT64_C(4096) << 19)
/*
 * Number of consecutive messages of the peer, each answered by the application with one request,
 * after which the traffic counts as a conversation. In a conversation ACKs are delayed.
 */
#define SOFT_WIRE_CONVERSATION 4u

/* Bits of the injected faults that were applied to a packet. */
enum {
	SOFT_HIT_DROP = 1u << 0,
	SOFT_HIT_DUP = 1u << 1,
	SOFT_HIT_REORDER = 1u << 2,
	SOFT_HIT_CORRUPT = 1u << 3,
	SOFT_HIT_ECN = 1u << 4,
	SOFT_HIT_STALL = 1u << 5,
};

/* A serialized packet, on its way through memory. */
struct soft_packet_msg {
	struct soft_msg msg;
	struct bb_roce_net net;
	uint8_t mac[6]; /* MAC address of the destination. */
	bool rx;        /* True for a received packet; its faults are already selected. */
	uint8_t hits;   /* Faults applied to the packet, SOFT_HIT_*. */
	uint32_t dqpn;  /* QP that gets the packet; a multicast packet has a copy for each member */
	uint64_t due;   /* Time at which the packet leaves soft_engine.held_packets, TSC. */
	TAILQ_ENTRY(soft_packet_msg) held;
	uint32_t len;
	uint32_t ip_len;
	uint8_t data[]; /* The packet, from the IP header to the ICRC. */
};

/* Packet types whose headers are predicted (soft_wire_expect.c). */
enum soft_wire_kind {
	SOFT_WIRE_WRITE,
	SOFT_WIRE_WRITE_IMM,
	SOFT_WIRE_SEND,
	SOFT_WIRE_SEND_IMM,
	SOFT_WIRE_ACK,
	SOFT_WIRE_KINDS,
};
#define SOFT_WIRE_HEAD     48u /* Compared bytes: Ethernet, IPv4, UDP and BTH headers. */
#define SOFT_WIRE_HEAD_MAX 72u /* Compared bytes of a frame with IPv6 and a VLAN tag. */

struct rte_mbuf;
struct soft_shm_tx;

/*
 * State of a QP that sends packets. Only the thread that polls its engine uses it. A link may
 * append fields to it: soft_link_ops.qp_size.
 */
struct soft_wire {
	struct bb_roce_qp roce;
	struct soft_qp *qp;
	uint16_t sq_next; /* Block index of the next WQE to pass to the RoCEv2 engine. */
	bool recv_failed; /* True if a receive failed by a local error and has its error CQE. */
	uint8_t in_cqe[SOFT_CS_MAX]; /* Data of the current receive, if its CQE has the data. */
	bool parked; /* True if a page is missing: the QP's next turn is after SOFT_PF_NS. */
	bool waits;  /* True if the next WQE has no message: it waits until sq_next is sq_ci. */
	/*
	 * The WRITE whose access was checked in the turn with number @turn; e->remote has its
	 * memory.
	 */
	struct soft_wire_checked {
		uint64_t turn;
		uint64_t va;
		uint32_t rkey, len;
	} checked;
	/*
	 * Predicted headers for each packet type, learnt from the last frame of that type:
	 * soft_wire_expect.c.
	 */
	struct soft_wire_expect {
		uint8_t head[SOFT_WIRE_HEAD_MAX]; /* First bytes of the predicted frame. */
		uint8_t qpn[2];                   /* Lower bytes of the QP number. */
		uint32_t bth;                     /* Offset of the BTH. */
		uint32_t crc;     /* State of the ICRC after the bytes up to the QP number. */
		uint32_t covered; /* Length of the other bytes that the ICRC covers. */
		uint32_t end;     /* Length of the frame, bytes; 0 if no frame is predicted. */
		uint32_t len;     /* Length of the payload, bytes. */
	} expect[SOFT_WIRE_KINDS];
	uint32_t expect_met; /* Number of frames that matched since the last frame was learnt. */
	uint32_t expect_missed;
	/*
	 * Only for UC and UD: time since which the link has had no room for packets to the GID
	 * full_to.
	 */
	struct soft_full full;
	uint8_t full_to[16];
	uint32_t epsn_at_send; /* PSN that the responder expected when the requester last sent. */
	uint64_t timer;        /* Expiry of the timer that was set last, ns. */
	/* One-packet messages in a row that the application answered with a request. */
	uint32_t n_answered; /* At most SOFT_WIRE_CONVERSATION. */
	struct soft_wire_dest path;
	/* Cached first bytes of packets on the path: [0] of a request, [1] of an ACK. */
	struct soft_port_begin begin[2];
	/* Shape of the last request packet, and of a WQE not yet sent: soft_port_plain.c. */
	struct soft_wire_shape {
		uint64_t head;       /* First 8 bytes of the WQE, with index 0. */
		uint32_t data;       /* First word of the segment with the payload, big endian. */
		uint32_t len;        /* Length of the payload, bytes. */
		uint8_t opcode;      /* Opcode of the WQE. */
		uint8_t at;          /* Offset of the segment with the payload, bytes. */
		uint8_t blocks;      /* Blocks of the WQE, 1 or 2; 0 if there is no last packet. */
		uint8_t fm_se;       /* Byte fm_ce_se of the WQE without the CE bits. */
		bool write, imm;     /* The packet has a RETH, and an ImmDt. */
		uint8_t kind, flags; /* Kind and flags of the message. */
	} shape, next_shape;
	struct soft_wire_dest *dest; /* Only for UD: destination of the message in each slot. */
	struct soft_shm_tx *shm_tx;  /* Shared-memory connection, with the option shm; else NULL. */
	uint32_t *epsn_out; /* Address at which peers in shared memory read the PSN that the
			     * responder expects. */
	struct bb_roce_stats
		counted_stats; /* Copy of roce.stats at the last update of the counters. */
	bool uncounted;        /* True if the QP is on the list soft_engine.uncounted. */
	LIST_ENTRY(soft_wire) count;
	/*
	 * Number of out-of-order packets held, and the PSN of the missing packet. While packets are
	 * held, the QP is on the list soft_engine.storing.
	 */
	uint32_t n_stored, missing_psn;
	uint64_t wait_start; /* Time at which the wait for the missing packet began, ns. */
	TAILQ_ENTRY(soft_wire) storing_link;
	struct soft_done done[SOFT_WIRE_SLOTS];
	/*
	 * Payload of the message in each slot, if it is one contiguous segment. Valid only in the
	 * turn with number @turn.
	 */
	struct soft_wire_frag {
		uint64_t turn;
		struct soft_frag frag;
	} frag[SOFT_WIRE_SLOTS];
	uint8_t inl[SOFT_WIRE_SLOTS][SOFT_WIRE_INLINE]; /* Copies of inline payloads, by slot. */
	struct bb_roce_msg ring[SOFT_WIRE_SLOTS];
	struct bb_roce_replay replay[SOFT_WIRE_REPLAYS];
	struct bb_roce_pkt *out_of_order[SOFT_WIRE_MAX_OOO];
};

/* ---- soft_wire.c */
/* Creates the wire state of a QP. Returns NULL if there is no memory. */
struct soft_wire *soft_wire_create(struct soft_qp *qp);
/* Applies a new state of the QP. Call it under the lock of the QP's engine. */
void soft_wire_enter_state(struct soft_wire *w);
/*
 * Applies changed attributes of a QP that is in RTS or moves to RTS. Call it under the lock of the
 * QP's engine.
 */
void soft_wire_changed(struct soft_wire *w);
/* Begins a new turn, in which addresses cached in the previous turn are invalid. */
static inline void
soft_wire_turn(struct soft_engine *e)
{
	e->decoded = NULL;
	e->turn++;
}
/*
 * Runs one turn of a QP: passes new WQEs on, handles expired timers, and sends what received
 * packets require.
 */
void soft_wire_run(struct soft_engine *e, struct soft_wire *w);
/* Processes a received packet for the QP. */
void soft_wire_rx(struct soft_engine *e, struct soft_wire *w, const struct bb_roce_pkt *pkt,
		  const struct bb_roce_net *net);
/*
 * Schedules the QP after a packet. @last is true for the last packet of a burst from the port: the
 * ACK or response leaves now. Otherwise the ACK or response waits until the rest of the burst is
 * processed.
 */
void soft_wire_received(struct soft_engine *e, struct soft_wire *w, bool last);
/*
 * Sends the ACK that the QP owes, if possible, but no new WQEs. Call it before the control path
 * disconnects the QP.
 */
void soft_wire_last_ack(struct soft_qp *qp);

/* ---- soft_wire_count.c */
/* Adds the increments of the QP's RoCEv2 counters to the device's counters. */
void soft_wire_count(struct soft_wire *w);
/* Defers soft_wire_count() until the engine is idle or soft_quiesce() runs. */
static inline void
soft_wire_count_later(struct soft_engine *e, struct soft_wire *w)
{
	if (likely(w->uncounted))
		return;
	w->uncounted = true;
	LIST_INSERT_HEAD(&e->uncounted, w, count);
}

/*
 * Returns true if the ACK is delayed for a turn. The engine delays an ACK only in a conversation:
 * the application answers each message of the peer with a message. An RPC is an example. The ACK
 * then leaves with the application's message, or after it. So both the application and the peer get
 * their messages earlier, by the time that an ACK costs.
 *
 * Further conditions: exactly one packet has arrived since the requester last sent, and nothing but
 * an ACK is due.
 */
static inline bool
soft_wire_delays_ack(const struct soft_engine *e, const struct soft_wire *w)
{
	return w->n_answered == SOFT_WIRE_CONVERSATION &&
	       ((w->roce.resp.epsn - w->epsn_at_send) & BB_ROCE_PSN_MASK) == 1 &&
	       e->dev->link->receive != NULL;
}

/*
 * Runs soft_wire_count() for the last time, before the QP leaves its engine. Call it under the
 * engine's lock.
 */
void soft_wire_count_last(struct soft_wire *w);
/*
 * Increments the device's counter of packets dropped for reason @why, an enum bb_roce_drop or
 * soft_lost.
 */
void soft_wire_lost(struct soft_dev *dev, uint32_t why);
/*
 * Returns the name of the counter for drop reason @why, such as "drop_icrc". Returns NULL if @why
 * is not a reason.
 */
const char *soft_wire_lost_name(uint32_t why);
/* Logs the number of dropped packets for each reason, at level info. */
void soft_wire_log_lost(const struct soft_dev *dev);

/* ---- soft_wire_req.c */
/* Passes posted WQEs to the RoCEv2 engine until its slots are full. */
void soft_wire_post(struct soft_engine *e, struct soft_wire *w);
int soft_wire_gather(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
		     uint32_t off, uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV]);
uint8_t soft_wire_place(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
			uint32_t off, const uint8_t *data, uint32_t len);
uint8_t soft_wire_atomic_result(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
				uint64_t orig);
void soft_wire_complete(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
			uint8_t status);
void soft_wire_complete_run(void *ctx, struct bb_roce_qp *roce, uint32_t n);

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

/* ---- soft_wire_ooo.c */
struct bb_roce_pkt *soft_wire_ooo_store(void *ctx, struct bb_roce_qp *roce,
					const struct bb_roce_pkt *pkt);
void soft_wire_ooo_release(void *ctx, struct bb_roce_qp *roce, struct bb_roce_pkt *pkt);

/* ---- soft_wire_ud.c */
/* Copies the destination of the UD WQE in @r to *msg and *dest. */
void soft_wire_ud_dest(const struct soft_qp *qp, const struct soft_req *r, struct bb_roce_msg *msg,
		       struct soft_wire_dest *dest);
/*
 * Completes the receive of a datagram whose data is already written. Returns false if the CQE could
 * not be written.
 */
bool soft_wire_ud_done(struct soft_engine *e, struct soft_wire *w, const struct bb_roce_recv *r);

/* ---- soft_wire_port.c */
/* Largest number of header bytes: IPv6, UDP and all RoCE headers. */
#define SOFT_WIRE_HEADERS (40u + 8u + BB_ROCE_MAX_HDR)
/*
 * Largest number of packets in an engine's inbox, and of its out-of-order packets. Further packets
 * are dropped.
 */
#define SOFT_WIRE_QUEUE 4096u
bool soft_wire_tx(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_pkt *pkt,
		  const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg);
/*
 * Serializes a packet, from the IP header to the ICRC, into newly allocated memory. Returns NULL if
 * there is no memory.
 */
struct soft_packet_msg *soft_packet_build(const struct soft_link_pkt *p);

/* Checks and processes a received packet. Takes ownership of @m. */
void soft_wire_arrive(struct soft_engine *e, struct soft_packet_msg *m);
/* Processes a packet taken from the engine's inbox. */
void soft_packet_take(struct soft_engine *e, struct soft_msg *m);
/* A received packet: its bytes from the IP header to the ICRC, with the UDP header. */
struct soft_packet {
	const uint8_t *ip;
	uint32_t ip_len; /* Length of the IP header, bytes. */
	uint32_t len;
	const struct bb_roce_net *net;
	/*
	 * Bytes of the Ethernet header before the IP header; 0 if soft_wire_learn() must not use
	 * the packet.
	 */
	uint32_t l2_len;
};
/*
 * Delivers a packet that a link received for a QP of the device. If @e owns the QP, @e processes
 * the packet now. Otherwise, or if @e is NULL, the QP's engine gets a copy.
 */
void soft_wire_deliver(struct soft_dev *dev, struct soft_engine *e, const struct soft_packet *p);
/*
 * Delivers a copy of a packet to each member of its multicast group on @dev. Returns false if the
 * packet is not sent to a group, or if the group has no member.
 */
bool soft_wire_cast(struct soft_dev *dev, const struct soft_packet *p);
/*
 * Does the same as soft_wire_cast(), for a packet that a device sends. @dev is the sender's device,
 * or another device that the packet reaches through memory.
 */
void soft_wire_cast_own(struct soft_dev *dev, const struct soft_packet_msg *m);
/*
 * Passes on a received packet to its target QP, or a packet to send to the link. Returns false if
 * there is no room; the caller then still owns the packet.
 */
bool soft_packet_forward(struct soft_engine *e, struct soft_packet_msg *m);

/* ---- soft_wire_expect.c */
/*
 * Fast path: processes received frames as long as they match the predicted headers. No byte of them
 * has been checked before. @e is the polling engine, NULL if no engine polls. The burst ends with
 * the last frame. Returns the number of processed frames. The next frame, if any, needs all checks;
 * no state has changed for it.
 */
uint32_t soft_wire_expected(struct soft_dev *dev, struct soft_engine *e, struct rte_mbuf **m,
			    uint32_t n);
/* Predicts the headers of the next packet from @p. Does nothing if @p failed a check. */
void soft_wire_learn(struct soft_wire *w, const struct soft_packet *p);
/* Drops the predicted headers of a queue pair. */
static inline void
soft_wire_expect_clear(struct soft_wire *w)
{
	memset(w->expect, 0, sizeof(w->expect));
	w->expect_missed = 0;
	w->expect_met = 0;
}

/* ---- soft_wire_fault.c */
/*
 * Applies the faults of @f to a packet; @f must enable at least one fault. Takes ownership of @m.
 */
void soft_net_fault_apply(struct soft_engine *e, struct soft_packet_msg *m,
			  const struct soft_net_fault *f);
/*
 * Returns true if fault injection drops the next packet. Call it only for a device for which
 * soft_net_loses_only() returns true.
 */
bool soft_net_loses(struct soft_engine *e);
/*
 * Returns true while the option tx_full or, if @rx, the option rx_full makes the link accept no
 * packet. Any thread may call it.
 */
static inline bool
soft_net_full(const struct soft_engine *e, bool rx)
{
	const uint64_t until = __atomic_load_n(&e->net.full_until[rx], __ATOMIC_RELAXED);

	return until != 0 && soft_ticks(e->dev) < until;
}
/* Passes on the delayed packets whose due time has passed. */
void soft_net_fault_run(struct soft_engine *e);
void soft_net_fault_drop_all(struct soft_engine *e);
/*
 * Returns true if the device's engines simulate a flapping port. For an ethdev, soft_port.c
 * simulates it.
 */
static inline bool
soft_net_flaps(const struct soft_dev *dev)
{
	return dev->flap.up != 0 && dev->netif == NULL;
}
/*
 * Executes the timed work of fault injection and capture. Returns true while such work is still
 * pending.
 */
bool soft_net_run(struct soft_engine *e);
/* Records a packet of the device for the option capture; see soft_capture.h. */
void soft_packet_capture_begin(struct soft_engine *e, enum soft_capture_dir dir, const uint8_t *ip,
			       uint32_t len, uint8_t hits);
void soft_packet_capture_end(struct soft_engine *e, bool keep);
static inline void
soft_packet_capture(struct soft_engine *e, enum soft_capture_dir dir, const uint8_t *ip,
		    uint32_t len, uint8_t hits)
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
/* Adds a packet to the inbox of the engine of @p. */
static inline void
soft_packet_post(const struct soft_qp *p, struct soft_packet_msg *m)
{
	m->msg.state = SOFT_MSG_PACKET;
	__atomic_fetch_add(&p->engine->packets, 1, __ATOMIC_RELAXED);
	soft_msg_push(p->engine, &m->msg);
}

/*
 * Records the next WQE as a message of one packet, for its completion and for retransmissions.
 * Returns the message's cookie. Call it before bb_roce_short_assign(). A payload that an earlier
 * message has cached in the slot is of an earlier turn, so it is stale.
 */
static inline uint32_t
soft_wire_record_msg(struct soft_wire *w, uint8_t opcode, uint32_t blocks, uint8_t fm_ce_se,
		     uint64_t len)
{
	const uint32_t slot = w->roce.req.head % SOFT_WIRE_SLOTS;
	struct soft_done *d = &w->done[slot];

	/* Stores each field: an initializer makes the compiler join fields to words first. */
	d->idx = w->sq_next;
	d->blocks = (uint16_t)blocks;
	d->opcode = opcode;
	d->fm_ce_se = fm_ce_se;
	d->len = len;
	d->psn = w->qp->sq_psn;
	d->packets = 1;
	d->reads = 0;
	w->sq_next = (uint16_t)(w->sq_next + blocks);
	return slot;
}

static inline struct soft_wire *
soft_wire_of(struct bb_roce_qp *roce)
{
	return container_of(roce, struct soft_wire, roce);
}

#endif
