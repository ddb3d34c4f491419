/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A device's port on a DPDK ethdev: one receive and one transmit queue, the mbufs, and the stack of
 * soft_port_stack.h between them.
 *
 * Thread rule: soft_port_open() and soft_port_close() are control path, on any thread, and never
 * during a poll. All other calls belong to one poller at a time: the owner's
 * soft_engine_progress(), or the device's lcore or thread. The ethdev's queues and the stack have
 * no lock. A poller may hand over the port after its last call. A lock or a join must come before
 * the next poller's first call.
 *
 * Time is a parameter, so that tests control it: nanoseconds from any start, never going back.
 */
#ifndef SOFT_PORT_H
#define SOFT_PORT_H

#include <rte_mbuf.h>

#include "soft_net_fault.h"
#include "soft_port_stack.h"

#define SOFT_PORT_BURST 32
/* Bytes: frames of a burst count as long if their average length is at least this. */
#define SOFT_PORT_LONG  1024
#define SOFT_PORT_LONGS 8     /* Frames of a receive burst, if frames are long. */
#define SOFT_PORT_FLUSH 16384 /* Bytes of queued packets at which they are flushed to the PMD. */
/* Bytes that count for SOFT_PORT_FLUSH for each packet, in addition to its length. */
#define SOFT_PORT_EACH 512
#define SOFT_PORT_TXQ  64 /* Largest number of packets that wait for the PMD. */
/* Descriptors requested from the PMD, per direction. */
#define SOFT_PORT_DESC 512
/* Maximum number of mbuf segments for payload that is sent without a copy. */
#define SOFT_PORT_MAX_SEGS 6
/* Bytes: payload up to this length is copied, because that is cheaper. */
#define SOFT_PORT_COPY    256
#define SOFT_PORT_LINK_NS UINT64_C(50000000) /* Interval between checks of the link. */

struct soft_port;

/*
 * Returns true if the frame needs no special care: the PMD stripped no VLAN tag, and did not find
 * the IP checksum to be bad or missing.
 */
static inline bool
soft_port_said_nothing(const struct rte_mbuf *m)
{
	return (m->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_IP_CKSUM_BAD)) == 0;
}

struct soft_port_ops {
	/*
	 * Offers a frame with soft_port_said_nothing() before the stack parses it. @last: the
	 * last frame of its burst. Returns true if the frame is a RoCE datagram for on_roce() and
	 * was consumed. May be NULL.
	 */
	bool (*on_frame)(void *arg, const uint8_t *frame, uint32_t len, bool last);
	/*
	 * Takes a RoCE datagram for one of the port's addresses. @m is one segment; *rx holds the
	 * offsets in it. IP and UDP are checked, the ICRC is not. The port frees @m after the
	 * call.
	 */
	void (*on_roce)(void *arg, struct rte_mbuf *m, const struct soft_port_rx *rx);
	/*
	 * Reports that the link went up or down; the device passes it to soft_dev_port_set(). May
	 * be NULL.
	 */
	void (*on_link)(void *arg, bool up);
	/*
	 * Reports one frame lost, received or queued, while soft_port_flap() had the port down.
	 * May be NULL.
	 */
	void (*on_lost)(void *arg);
};

struct soft_port_stats {
	uint64_t rx_frames, tx_frames;
	uint64_t tx_zero_copy, tx_copied; /* Packets sent without and with a copy of the payload. */
	uint64_t tx_unsettled;            /* Packets that soft_port_settle() copied. */
	uint64_t tx_full; /* Sends that failed because the queue was full or no mbuf was free. */
	uint64_t tx_pending, tx_unreachable, tx_down;
};

/* Attributes of an open port. */
struct soft_port_info {
	uint8_t mac[6];
	uint32_t mtu; /* RoCE MTU, bytes. */
	bool up;
	bool zero_copy, multi_segs, ip_csum;
	bool keeps;         /* The PMD retains mbufs after the burst. */
	bool on_interrupts; /* EAL's interrupt thread must not work on the ethdev during a call
			     * of this file. */
	const char *driver;
};

/*
 * Opens the ethdev that @o names. Returns 0; -EINVAL if there is no such ethdev or it cannot meet
 * an option; -EBUSY if it is already owned or started; -ENOMEM; or the PMD's errno. Each error is
 * logged.
 */
int soft_port_open(const char *dev, const struct soft_port_opts *o, const struct soft_port_ops *ops,
		   void *arg, struct soft_port **out);
/*
 * Stops the ethdev. Packets that the PMD has not accepted are lost. A struct soft_port_hold may
 * stay busy until the holder of its mbufs frees them.
 */
void soft_port_close(struct soft_port *p);

/*
 * Makes the port follow the flap schedule @f from now on. While @f has the port down, no frame
 * leaves and received frames are lost, neighbour discovery included; otherwise the ethdev's link
 * decides. The caller keeps @f alive until soft_port_close().
 */
void soft_port_flap(struct soft_port *p, const struct soft_flap *f);

void soft_port_info(const struct soft_port *p, struct soft_port_info *info);
void soft_port_stats(const struct soft_port *p, struct soft_port_stats *port,
		     struct soft_port_stack_stats *stack, struct soft_neigh_stats *neigh);
/*
 * Reads GID @index of the port, all RoCE v2: index 0 is link-local, then the ip options follow.
 * Returns false if there is none.
 */
bool soft_port_gid(const struct soft_port *p, uint32_t index, uint8_t gid[16]);

/*
 * Runs the port once: receives frames, sends answers, repeats requests for MACs, and flushes queued
 * packets. Returns the number of frames received.
 */
uint32_t soft_port_poll(struct soft_port *p, uint64_t now);

/* ---- soft_port_tx.c */

/*
 * Reference count of a message whose memory mbufs refer to. It lies in the message and keeps its
 * address until soft_port_hold_busy() returns false. The count is one for the message, plus one
 * for each mbuf; PMDs free mbufs on any thread.
 */
struct soft_port_hold {
	struct rte_mbuf_ext_shared_info shinfo;
};
void soft_port_hold_init(struct soft_port_hold *h);
/* Returns true while an mbuf refers to the message's memory. Any thread. */
static inline bool
soft_port_hold_busy(const struct soft_port_hold *h)
{
	/* Acquire: reads by the mbufs' holders come before the caller's writes to the memory. */
	return __atomic_load_n(&h->shinfo.refcnt, __ATOMIC_ACQUIRE) > 1;
}

/* A packet to send. The port adds Ethernet, IP, UDP, padding and ICRC. */
struct soft_port_tx {
	const struct bb_roce_net *net; /* net->src must be one of the port's addresses. */
	struct soft_port_path *path;   /* Cached path to net->dst; may be NULL. */
	const uint8_t *hdr;            /* BTH and extension headers, by bb_roce_build(). */
	uint32_t hdr_len;              /* Bytes, at most BB_ROCE_MAX_HDR. */
	const struct bb_roce_iov *iov; /* Pieces of payload. */
	uint32_t n;                    /* Number of pieces, at most BB_ROCE_MAX_IOV. */
	struct soft_port_hold *hold;   /* Of the payload's memory; NULL if it must be copied. */
};

enum soft_port_sent {
	SOFT_PORT_SENT,
	SOFT_PORT_FULL,        /* Try again after a poll. */
	SOFT_PORT_PENDING,     /* Resolution in progress; packets to other neighbours can be
				* sent. */
	SOFT_PORT_UNREACHABLE, /* No host answers, or the address is in none of the port's
				* networks. */
	SOFT_PORT_DOWN,        /* No link. */
	SOFT_PORT_REFUSED,     /* Packet longer than a frame, headers out of range, or a
				* foreign source address. */
};

/*
 * Queues a packet. soft_port_flush() or the next poll passes it to the PMD; so does the packet
 * that brings the queue to SOFT_PORT_FLUSH bytes, with SOFT_PORT_EACH added for each packet. The
 * port reads the payload only during the call, unless tx->hold is set. After SOFT_PORT_FULL or
 * SOFT_PORT_PENDING the caller tries again.
 */
enum soft_port_sent soft_port_send(struct soft_port *p, const struct soft_port_tx *tx,
				   uint64_t now);
/*
 * Queues a copy of an IP packet of @len bytes for the neighbour @dst. Same results as
 * soft_port_send().
 */
enum soft_port_sent soft_port_send_ip(struct soft_port *p, const uint8_t *ip, uint32_t len,
				      const uint8_t dst[16], uint64_t now);
/* Passes queued packets to the PMD until it is full. */
void soft_port_flush(struct soft_port *p);
/*
 * Flushes, then copies each queued packet that still refers to memory under a hold; a packet
 * without an mbuf for its copy is lost. Afterwards no hold is busy, unless the PMD retains mbufs
 * (soft_port_info.keeps).
 */
void soft_port_settle(struct soft_port *p);
/*
 * Returns whether packets can be sent to @ip, as soft_port_send() does; starts a resolution if
 * needed.
 */
enum soft_port_sent soft_port_reach(struct soft_port *p, const uint8_t ip[16], uint64_t now,
				    uint8_t mac[6]);

#endif
