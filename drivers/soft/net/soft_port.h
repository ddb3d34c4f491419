/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A device's port on a DPDK ethdev: one receive queue, one transmit queue, the mbufs, and the stack
 * of soft_port_stack.h between the queues.
 *
 * Thread rule: soft_port_open() and soft_port_close() are control path, on any thread, and never
 * during a poll. All other calls belong to one poller at a time, because the ethdev's queues and
 * the stack have no lock. The poller is the owner's soft_engine_progress(), or the device's lcore
 * or thread. To change the poller, a lock or a join must separate the last call of one poller from
 * the first call of the next.
 *
 * Time is a parameter, so that tests control it: nanoseconds, counted from an arbitrary moment,
 * never going back.
 */
#ifndef SOFT_PORT_H
#define SOFT_PORT_H

#include <rte_mbuf.h>

#include "soft_net_fault.h"
#include "soft_port_stack.h"

#define SOFT_PORT_BURST 32
/* Bytes. The frames of a burst count as long if their average length is at least this. */
#define SOFT_PORT_LONG  1024
#define SOFT_PORT_LONGS 8     /* Frames of a receive burst, if frames are long. */
#define SOFT_PORT_FLUSH 16384 /* Bytes of queued packets that cause a flush to the PMD. */
/* Bytes by which each packet counts more than its length towards SOFT_PORT_FLUSH. */
#define SOFT_PORT_EACH 512
#define SOFT_PORT_TXQ  64 /* Largest number of packets that wait for the PMD. */
/* Descriptors requested from the PMD, per direction. */
#define SOFT_PORT_DESC 512
/* Maximum number of mbuf segments for payload that is sent without a copy. */
#define SOFT_PORT_MAX_SEGS 6
/* Bytes. Payload up to this length is copied, because a copy is cheaper than a reference. */
#define SOFT_PORT_COPY    256
#define SOFT_PORT_LINK_NS UINT64_C(50000000) /* Interval between checks of the link. */

struct soft_port;

/*
 * Returns true if the PMD reports nothing unusual about the frame: it stripped no VLAN tag, and the
 * IP checksum is neither bad nor missing.
 */
static inline bool
soft_port_plain_rx(const struct rte_mbuf *m)
{
	return (m->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_IP_CKSUM_BAD)) == 0;
}

struct soft_port_ops {
	/*
	 * Offers the @n last frames of a burst to the device before the stack parses them. Returns
	 * how many of them, from the first on, were RoCE datagrams for on_roce() and were consumed.
	 * May be NULL.
	 */
	uint32_t (*on_frames)(void *arg, struct rte_mbuf **m, uint32_t n);
	/*
	 * Processes a RoCE datagram for one of the port's addresses. @m has one segment; *rx holds
	 * the offsets of the headers in it. IP and UDP are checked, the ICRC is not. The port frees
	 * @m after the call.
	 */
	void (*on_roce)(void *arg, struct rte_mbuf *m, const struct soft_port_rx *rx);
	/*
	 * Processes a frame for the guest's kernel that uses the port, too (soft_port_host()). @m
	 * has one segment. The port frees @m after the call. Not called without such a kernel.
	 */
	void (*on_host)(void *arg, struct rte_mbuf *m);
	/*
	 * Reports that the link went up or down; the device passes it to soft_dev_port_set(). May
	 * be NULL.
	 */
	void (*on_link)(void *arg, bool up);
	/*
	 * Reports one lost frame, received or queued. Called while soft_port_flap() has the port
	 * down. May be NULL.
	 */
	void (*on_lost)(void *arg);
};

struct soft_port_stats {
	uint64_t rx_frames, tx_frames;
	uint64_t tx_zero_copy, tx_copied; /* Packets sent without and with a copy of the payload. */
	/*
	 * Number of packets that were queued without a copy, but that soft_port_settle() copied,
	 * because the PMD had not accepted them.
	 */
	uint64_t tx_unsettled;
	uint64_t tx_full; /* Failed sends, because the queue was full or no mbuf was free. */
	uint64_t tx_pending, tx_unreachable, tx_down;
};

/* Attributes of an open port. */
struct soft_port_info {
	uint8_t mac[6];
	uint32_t frame; /* Bytes of the longest frame with one VLAN tag, without the CRC. */
	uint32_t mtu;   /* RoCE MTU, bytes. */
	bool up;
	bool zero_copy, multi_segs, ip_csum;
	bool retains_mbufs; /* The PMD may retain mbufs after the burst. */
	/*
	 * The PMD works on EAL's interrupt thread. The caller must prevent that work during calls
	 * of this file's functions.
	 */
	bool on_interrupts;
	const char *driver;
};

/*
 * Opens the ethdev that @o names. Returns 0; -EINVAL if the ethdev does not exist or cannot meet an
 * option; -EBUSY if the ethdev is already owned or started; -ENOMEM; or the PMD's errno. Logs each
 * error.
 */
int soft_port_open(const char *dev, const struct soft_port_opts *o, const struct soft_port_ops *ops,
		   void *arg, struct soft_port **out);
/*
 * Flushes the queue before a close. Returns true if the stop of the PMD would discard frames that
 * the peer may not have read yet. The last frame is often the ACK of the peer's last message, which
 * would fail without it, although it has arrived. So the caller waits, at most
 * SOFT_PORT_LINGER_NAPS times SOFT_PORT_LINGER_US, and calls this function before each wait.
 * Returns false if no frame was sent or the link is down.
 */
bool soft_port_lingers(struct soft_port *p);
#define SOFT_PORT_LINGER_NAPS 100
#define SOFT_PORT_LINGER_US   1000
/*
 * Stops the ethdev. Packets that the PMD has not accepted are lost. A struct soft_port_hold may
 * stay busy until the PMD or receiver that holds its mbufs frees them.
 */
void soft_port_close(struct soft_port *p);

/*
 * Makes the port follow the flap schedule @f from now on. While @f has the port down, no frame
 * leaves and all received frames are lost, including neighbour discovery. At other times the
 * ethdev's link state counts. The caller must not free @f before soft_port_close().
 */
void soft_port_flap(struct soft_port *p, const struct soft_flap *f);

/*
 * Lets another network stack, such as the kernel of a guest, use the port, too. In this file and in
 * soft_frames.c this stack is called the host of the port. The host sets the addresses of the port,
 * which has none after this call. soft_port_ops.on_host() gets all frames that are no RoCE
 * datagrams for these addresses. Each packet to send must name the MAC of its destination. The port
 * receives frames to all MACs, if the PMD allows that.
 */
void soft_port_host(struct soft_port *p);
/*
 * Sets the addresses of a port that a guest's kernel uses, too: @n GIDs, at most SOFT_PORT_ADDRS,
 * and the MAC of each.
 */
void soft_port_set_addresses(struct soft_port *p, const uint8_t (*gid)[16], const uint8_t (*mac)[6],
			     uint32_t n);

void soft_port_info(const struct soft_port *p, struct soft_port_info *info);
void soft_port_stats(const struct soft_port *p, struct soft_port_stats *port,
		     struct soft_port_stack_stats *stack, struct soft_neigh_stats *neigh);
/*
 * Reads GID @index of the port. Index 0 is the link-local address; the ip options follow. All GIDs
 * are RoCE v2. Returns false if there is no such GID.
 */
bool soft_port_gid(const struct soft_port *p, uint32_t index, uint8_t gid[16]);

/*
 * Runs the port once: receives frames, sends replies, repeats requests for MACs, and flushes queued
 * packets. Returns the number of frames received.
 */
uint32_t soft_port_poll(struct soft_port *p, uint64_t now);

/* ---- soft_port_tx.c */

/*
 * Reference count of a message to whose memory mbufs refer. The count is a part of the message and
 * must not move until soft_port_hold_busy() returns false. Its value is one for the message, plus
 * one for each mbuf. PMDs free mbufs on any thread.
 */
struct soft_port_hold {
	struct rte_mbuf_ext_shared_info shinfo;
};
void soft_port_hold_init(struct soft_port_hold *h);
/* Returns true while an mbuf refers to the message's memory. Any thread. */
static inline bool
soft_port_hold_busy(const struct soft_port_hold *h)
{
	/*
	 * Acquire: the PMD's reads through the mbufs come before the caller's writes to the memory.
	 */
	return __atomic_load_n(&h->shinfo.refcnt, __ATOMIC_ACQUIRE) > 1;
}

/* A packet to send. The port adds Ethernet, IP, UDP, padding and ICRC. */
struct soft_port_tx {
	const struct bb_roce_net *net; /* net->src must be one of the port's addresses. */
	const uint8_t *mac;            /* Destination's MAC; used for a guest's kernel only. */
	struct soft_port_path *path;   /* Cached path to net->dst; may be NULL. */
	const uint8_t *hdr;            /* BTH and extension headers, by bb_roce_build(). */
	uint32_t hdr_len;              /* Bytes, at most BB_ROCE_MAX_HDR. */
	const struct bb_roce_iov *iov; /* Array of contiguous fragments of the payload. */
	uint32_t n;                    /* Number of entries in iov, at most BB_ROCE_MAX_IOV. */
	struct soft_port_hold *hold;   /* Reference count of the payload's memory; NULL: the port
					* copies the payload. */
};

enum soft_port_sent {
	SOFT_PORT_SENT,
	SOFT_PORT_FULL,        /* The queue is full or no mbuf is free; try again after a poll. */
	SOFT_PORT_PENDING,     /* Resolution in progress; packets to other neighbours can be
				* sent. */
	SOFT_PORT_UNREACHABLE, /* No host replies, or the address is in none of the port's networks.
				*/
	SOFT_PORT_DOWN,        /* The link is down. */
	SOFT_PORT_REFUSED,     /* The packet is longer than a frame, or its headers are too long. */
	SOFT_PORT_NO_SOURCE,   /* The packet's source is not an address of the port. */
};

/*
 * Queues a packet. The next soft_port_flush() or poll passes the queue to the PMD. If the packet
 * brings the queue to SOFT_PORT_FLUSH bytes, this call itself passes the queue on; each packet
 * counts SOFT_PORT_EACH bytes more than its length. The port reads the payload only during the
 * call, unless tx->hold is set. After SOFT_PORT_FULL or SOFT_PORT_PENDING the caller tries again.
 */
enum soft_port_sent soft_port_send(struct soft_port *p, const struct soft_port_tx *tx,
				   uint64_t now);
/*
 * Queues a copy of an IP packet of @len bytes from @net->src for the neighbour @net->dst; @to is
 * its MAC, used only if a guest's kernel uses the port, too. Returns the same values as
 * soft_port_send().
 */
enum soft_port_sent soft_port_send_ip(struct soft_port *p, const uint8_t *ip, uint32_t len,
				      const struct bb_roce_net *net, const uint8_t to[6],
				      uint64_t now);
/*
 * Queues a copy of a whole frame of the guest's kernel, without the CRC. Returns SOFT_PORT_SENT,
 * FULL, DOWN or REFUSED (too long).
 */
enum soft_port_sent soft_port_send_frame(struct soft_port *p, const uint8_t *frame, uint32_t len);
/* Returns true if the queue has no room, even after a flush. */
bool soft_port_is_full(struct soft_port *p);
/* Passes queued packets to the PMD until the PMD accepts no more. */
void soft_port_flush(struct soft_port *p);
/*
 * Ends the use of messages' memory by queued packets. Flushes the queue. Then copies the payload of
 * each packet that the PMD has not accepted. If there is no mbuf for the copy, the packet is lost.
 * Afterwards soft_port_hold_busy() is false for each message, unless the PMD retains the mbufs that
 * it has accepted (soft_port_info.retains_mbufs).
 */
void soft_port_settle(struct soft_port *p);
/*
 * Starts a resolution of @ip if needed. Returns what soft_port_send() would return for a packet to
 * @ip.
 */
enum soft_port_sent soft_port_reach(struct soft_port *p, const uint8_t ip[16], uint64_t now,
				    uint8_t mac[6]);

#endif
