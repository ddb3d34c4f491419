/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Where a device's packets go. Between the RoCEv2 engine and a link stands soft_wire_port.c,
 * through which every packet passes: out by soft_wire_tx() and soft_packet_go(), in by
 * soft_wire_input(). A link carries packets and knows no queue pair's
 * protocol.
 *
 * All functions but waiting() are called by the engine @e, under its lock.
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
	SOFT_LINK_FULL, /* no room now: it stays the sender's, who tries again */
	SOFT_LINK_LOST, /* as on any network: nobody there */
};

/* Where a datagram goes. */
struct soft_wire_dest {
	struct bb_roce_net net;
	uint8_t mac[6];
	bool own; /* an address of the device itself */
	struct soft_port_path path;
};

/* A packet as the RoCEv2 engine makes it: headers and pieces of its payload. */
struct soft_link_pkt {
	struct soft_wire_dest *to;
	const struct bb_roce_pkt *pkt;
	const struct bb_roce_iov *iov;
	uint32_t n;
	bool stable; /* the pieces stay until the engine's turn ends, not only during the call */
};

struct soft_link_ops {
	enum soft_link_sent (*send)(struct soft_engine *e, const struct soft_link_pkt *p);
	/* The same of one in bytes, ICRC included, which is given away unless it is FULL. */
	enum soft_link_sent (*send_bytes)(struct soft_engine *e, struct soft_packet_msg *m);
	/*
	 * What can be sent the short way, of a queue pair's WQEs and answers: all that leaves is
	 * done to the queue pair, and the rest is left. May be NULL.
	 */
	void (*plain)(struct soft_engine *e, struct soft_wire *w);
	/* The engine's turn begins. Without receive() take in what has come. May be NULL. */
	void (*begin)(struct soft_engine *e);
	/*
	 * Take in what has come, behind the doorbells: what they sent leaves now, not after the
	 * look at a queue that is mostly empty. Before it no timer ends. May be NULL; if not, an
	 * ACK may be put off, and none of plain(), begin() and end() is NULL.
	 */
	void (*receive)(struct soft_engine *e);
	/* It ends: what was sent leaves. May be NULL. */
	void (*end)(struct soft_engine *e);
	/* Bytes of the link's struct of a queue pair, which begins with a struct soft_wire; 0: it
	 * is one. */
	size_t qp_size;
	/* A queue pair is in RTR, and its path is known. May be NULL. */
	void (*connected)(struct soft_wire *w);
	/*
	 * Of a queue pair with shm_tx: executes what goes without the RoCEv2 engine, at the head of
	 * the queue, at most @budget WQEs, and returns how many; the QP may have failed.
	 */
	uint32_t (*direct)(struct soft_engine *e, struct soft_wire *w, uint32_t budget);
	/* Packets come without a doorbell: an engine takes its turn in every poll. */
	bool polled;
	/* In those that this finds worth it, without the lock: it may miss what comes now. */
	bool (*waiting)(struct soft_engine *e);
};

/* Is that an address of the device? */
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
/* To @dest, whose addresses are those of the packet. */
enum soft_link_sent soft_memory_send(struct soft_dev *dest, const struct soft_link_pkt *p);
enum soft_link_sent soft_memory_send_bytes(struct soft_dev *dest, struct soft_packet_msg *m);

/* ---- soft_link_port.c: by an ethdev */
extern const struct soft_link_ops soft_link_port;
/* Takes what comes from a device's struct soft_netif. */
extern const struct soft_port_ops soft_link_port_rx;
/* With the option rx_full, which costs no poll of other devices anything. */
extern const struct soft_link_ops soft_link_port_fills;

/* ---- soft_port_plain.c: soft_link_ops.plain of an ethdev */
void soft_port_plain(struct soft_engine *e, struct soft_wire *w);

/* ---- soft_link_shm.c: to other processes of the host */
extern const struct soft_link_ops soft_link_shm, soft_link_shm_fills;

#endif
