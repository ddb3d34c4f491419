/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A link carries the packets of a device: through memory, through an ethdev, or through shared
 * memory to other processes. soft_wire_port.c connects the RoCEv2 engine with a link. The engine
 * sends with soft_wire_tx() and soft_packet_go(), and a link passes received packets to
 * soft_wire_input(). A link does not depend on the protocol of a queue pair.
 *
 * The engine @e calls all functions except waiting() under its lock.
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
	SOFT_LINK_FULL, /* The link has no room. The caller still owns the packet and retries. */
	SOFT_LINK_LOST, /* The packet is lost, because the destination does not exist. */
};

/* Destination of a packet. */
struct soft_wire_dest {
	struct bb_roce_net net;
	uint8_t mac[6];
	bool own; /* The destination is an address of this device. */
	struct soft_port_path path;
};

/* A packet as the RoCEv2 engine builds it: headers and pieces of payload. */
struct soft_link_pkt {
	struct soft_wire_dest *to;
	const struct bb_roce_pkt *pkt;
	const struct bb_roce_iov *iov;
	uint32_t n;
	bool stable; /* The pieces are valid until the engine's turn ends; otherwise only during the
		      * call. */
};

struct soft_link_ops {
	/* Builds and sends a packet. */
	enum soft_link_sent (*send)(struct soft_engine *e, const struct soft_link_pkt *p);
	/*
	 * Sends a packet that is serialized already, ICRC included. Takes ownership of @m, except
	 * if it returns SOFT_LINK_FULL.
	 */
	enum soft_link_sent (*send_bytes)(struct soft_engine *e, struct soft_packet_msg *m);
	/*
	 * Sends short requests and ACKs of a queue pair without the RoCEv2 engine, which costs
	 * less. Updates the queue pair for each packet as the RoCEv2 engine would. Stops at the
	 * first packet that it does not support; the RoCEv2 engine then sends that packet. May be
	 * NULL.
	 */
	void (*plain)(struct soft_engine *e, struct soft_wire *w);
	/* Begins the engine's turn. A link without receive() receives packets here. May be NULL. */
	void (*begin)(struct soft_engine *e);
	/*
	 * Receives packets. The engine calls it after it has read the doorbells, so that new
	 * requests are sent first: most polls receive nothing. No timer of the turn expires before
	 * the call. May be NULL. A link with receive() may delay ACKs, and must have plain(),
	 * begin() and end().
	 */
	void (*receive)(struct soft_engine *e);
	/* Ends the engine's turn and flushes sent packets. May be NULL. */
	void (*end)(struct soft_engine *e);
	/*
	 * Bytes of the link's struct for a queue pair, whose first member is a struct soft_wire. 0
	 * if the link needs no fields of its own.
	 */
	size_t qp_size;
	/* Called when a queue pair is in RTR with a known path. May be NULL. */
	void (*connected)(struct soft_wire *w);
	/*
	 * Executes at most @budget WQEs at the head of the queue in the peer's memory, without
	 * packets. Called only for a queue pair with shm_tx. Returns the number of executed WQEs.
	 * The QP may be in ERR afterwards. May be NULL.
	 */
	uint32_t (*direct)(struct soft_engine *e, struct soft_wire *w, uint32_t budget);
	/* True if packets arrive without a doorbell. An engine then runs a turn in every poll. */
	bool polled;
	/*
	 * Returns true if an idle engine should run a turn. Called without the lock, so it may miss
	 * a packet that arrives now. May be NULL.
	 */
	bool (*waiting)(struct soft_engine *e);
};

/* Returns true if @gid is an address of the device. */
static inline bool
soft_dev_has_gid(const struct soft_dev *dev, const uint8_t gid[16])
{
	uint32_t i;

	for (i = 0; i < SOFT_MAX_GIDS; i++)
		if (dev->gid_valid[i] && memcmp(dev->gids[i].raw, gid, 16) == 0)
			return true;
	return false;
}

/* ---- soft_link_memory.c: to other devices of the process */
extern const struct soft_link_ops soft_link_memory;
/* Send a packet to @dest, which has the packet's destination address. */
enum soft_link_sent soft_memory_send(struct soft_dev *dest, const struct soft_link_pkt *p);
enum soft_link_sent soft_memory_send_bytes(struct soft_dev *dest, struct soft_packet_msg *m);

/* ---- soft_link_port.c: through an ethdev */
extern const struct soft_link_ops soft_link_port;
/* Receives the frames of a device's struct soft_netif. */
extern const struct soft_port_ops soft_link_port_rx;
/* Variant for devices with the option rx_full. So polls of other devices do not check it. */
extern const struct soft_link_ops soft_link_port_fills;

/* ---- soft_port_plain.c: soft_link_ops.plain of an ethdev */
void soft_port_plain(struct soft_engine *e, struct soft_wire *w);

/* ---- soft_link_shm.c: to other processes of the host */
extern const struct soft_link_ops soft_link_shm, soft_link_shm_fills;

#endif
