/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A link transports the packets of a device: through memory, through an ethdev, or through shared
 * memory to other processes. soft_wire_port.c connects the RoCEv2 engine with a link. The engine
 * sends with soft_wire_tx() and soft_packet_forward(). A link passes received packets to
 * soft_wire_input(). A link does not depend on the transport type of a queue pair.
 *
 * The engine @e calls all functions except waiting() under its lock. A turn is one run of the
 * engine under that lock (soft_engine.c).
 */
#ifndef SOFT_LINK_H
#define SOFT_LINK_H

#include "bb_roce_qp.h"
#include "soft_data.h"
#include "soft_port_opts.h"

struct soft_packet_msg;
struct soft_port_ops;
struct soft_wire;

enum soft_link_sent {
	SOFT_LINK_SENT,
	SOFT_LINK_FULL, /* No room. The caller still owns the packet and sends it again. */
	SOFT_LINK_LOST, /* The packet is lost, because no such destination exists. */
};

/* Destination of a packet. */
struct soft_wire_dest {
	struct bb_roce_net net;
	uint8_t mac[6];
	bool own; /* True if the destination is an address of this device itself, or a group. */
	struct soft_port_path path;
};

/* A packet as the RoCEv2 engine builds it: headers, and a list of payload segments in memory. */
struct soft_link_pkt {
	struct soft_wire_dest *to;
	const struct bb_roce_pkt *pkt;
	const struct bb_roce_iov *iov;
	uint32_t n;
	/*
	 * True if the payload segments stay valid until the turn ends; false if only during the
	 * call.
	 */
	bool stable;
};

struct soft_link_ops {
	/* Serializes a packet and sends it. */
	enum soft_link_sent (*send)(struct soft_engine *e, const struct soft_link_pkt *p);
	/*
	 * Sends a packet that is already serialized, with its ICRC. Takes ownership of @m, unless
	 * it returns SOFT_LINK_FULL.
	 */
	enum soft_link_sent (*send_bytes)(struct soft_engine *e, struct soft_packet_msg *m);
	/*
	 * Fast path: sends short requests and ACKs of a queue pair without the RoCEv2 engine, which
	 * would cost more. Updates the queue pair for each packet as the RoCEv2 engine would. Stops
	 * at the first packet that the fast path does not support; the RoCEv2 engine then sends
	 * that packet. May be NULL.
	 */
	void (*plain)(struct soft_engine *e, struct soft_wire *w);
	/*
	 * Begins the engine's turn. Returns false if the turn must not call receive() and end().
	 * Only for a polled link. May be NULL.
	 */
	bool (*begin)(struct soft_engine *e);
	/*
	 * Receives packets. The engine calls it after it has read the doorbells. So new requests do
	 * not wait for a receive, which finds no packets in most polls. No timer expires between
	 * the start of the turn and this call. A polled link also flushes the packets queued for
	 * sending. Returns true if end() must be called although no QP runs any more in the turn.
	 * May be NULL. A link with receive() may delay ACKs.
	 */
	bool (*receive)(struct soft_engine *e);
	/*
	 * Ends the engine's turn and flushes the packets queued for sending. Only for a polled
	 * link. May be NULL.
	 */
	void (*end)(struct soft_engine *e);
	/*
	 * Bytes of the link's struct for a queue pair, whose first member is a struct soft_wire. 0
	 * if the link needs only a struct soft_wire.
	 */
	size_t qp_size;
	/* Called when a queue pair has reached RTR and its path is known. May be NULL. */
	void (*connected)(struct soft_wire *w);
	/*
	 * Executes at most @budget WQEs from the head of the send queue. Accesses the peer's memory
	 * for them and sends no packets. Called only for a queue pair whose shm_tx is not NULL.
	 * Returns the number of executed WQEs. The QP may be in ERR after the call. May be NULL.
	 */
	uint32_t (*direct)(struct soft_engine *e, struct soft_wire *w, uint32_t budget);
	/*
	 * Returns true if no WQE may be posted to the RoCEv2 engine now, because direct() can
	 * execute the next WQE once the packets in flight are acknowledged. Called only for a queue
	 * pair whose shm_tx is not NULL. May be NULL.
	 */
	bool (*holds)(struct soft_engine *e, struct soft_wire *w);
	/* Called at the first packet that a queue pair receives in RTR. May be NULL. */
	void (*established)(struct soft_wire *w);
	/*
	 * True if packets can arrive while no doorbell was rung. The engine then runs a turn in
	 * every poll. The link has receive().
	 */
	bool polled;
	/*
	 * Returns true if an idle engine should run a turn. Called without the lock, so a packet
	 * that arrives during the call may be found only in the next poll. May be NULL.
	 */
	bool (*waiting)(struct soft_engine *e);
};

/* Returns true if @gid is a GID of the device. */
static inline bool
soft_dev_has_gid(const struct soft_dev *dev, const uint8_t gid[16])
{
	uint32_t i;

	for (i = 0; i < SOFT_MAX_GIDS; i++)
		if (dev->gid_valid[i] && memcmp(dev->gids[i].raw, gid, 16) == 0)
			return true;
	return false;
}

/* ---- soft_link_memory.c: link to other devices of this process */
extern const struct soft_link_ops soft_link_memory;
/*
 * Send a packet to @dest through memory. The caller has found @dest by the packet's destination
 * address.
 */
enum soft_link_sent soft_memory_send(struct soft_dev *dest, const struct soft_link_pkt *p);
enum soft_link_sent soft_memory_send_bytes(struct soft_dev *dest, struct soft_packet_msg *m);

/* ---- soft_link_port.c: link through an ethdev; soft_link_port.h has the parts of a turn */
extern const struct soft_link_ops soft_link_port;
/* Functions that receive the frames of a device's struct soft_netif. */
extern const struct soft_port_ops soft_link_port_rx;
/*
 * The link of a device with the option rx_full. It is separate, so that other devices need not
 * check the option in each poll.
 */
extern const struct soft_link_ops soft_link_port_fills;

/* ---- soft_port_plain.c: fast path of the link through an ethdev */
void soft_port_plain(struct soft_engine *e, struct soft_wire *w);

/* ---- soft_link_shm.c: link to other processes of the host */
extern const struct soft_link_ops soft_link_shm, soft_link_shm_fills;

#endif
