/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A device's port on a DPDK ethdev: one receive and one transmit queue of it, the mbufs, and the
 * stack of soft_port_stack.h between.
 *
 * Who may call: soft_port_open() and _close() are control path, any thread, not while the port is
 * polled. Everything else belongs to one poller at a time, the owner's soft_engine_progress() or
 * the device's lcore or thread: the ethdev's queues and the stack have no lock. A poller hands
 * over by ending its last call before the next one's first, with a lock or a join between.
 *
 * Time is nanoseconds from any start and does not go back: a parameter, so that tests decide it.
 */
#ifndef SOFT_PORT_H
#define SOFT_PORT_H

#include <rte_mbuf.h>

#include "soft_net_fault.h"
#include "soft_port_stack.h"

#define SOFT_PORT_BURST    32
#define SOFT_PORT_LONG     1024               /* bytes: frames as long on average are long */
#define SOFT_PORT_LONGS    8                  /* a burst of those */
#define SOFT_PORT_FLUSH    16384              /* bytes of packets built and not yet given away */
#define SOFT_PORT_EACH     512                /* of them, that a packet counts more than it has */
#define SOFT_PORT_TXQ      64                 /* packets built and not yet taken by the PMD */
#define SOFT_PORT_DESC     512                /* asked of the PMD, each direction */
#define SOFT_PORT_MAX_SEGS 6                  /* pieces of payload that are sent as they lie */
#define SOFT_PORT_COPY     256                /* bytes of payload up to which a copy is cheaper */
#define SOFT_PORT_LINK_NS  UINT64_C(50000000) /* between two looks at the link */

struct soft_port;

/* Of a tag, or of a sum that is wrong or that it has not looked at, the PMD would say so. */
static inline bool
soft_port_said_nothing(const struct rte_mbuf *m)
{
	return (m->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_IP_CKSUM_BAD)) == 0;
}

struct soft_port_ops {
	/*
	 * A frame of which soft_port_said_nothing(), before anything of it is looked at; @last of
	 * those that came with it. True: it is a RoCE datagram for on_roce() and was taken. May be
	 * NULL.
	 */
	bool (*on_frame)(void *arg, const uint8_t *frame, uint32_t len, bool last);
	/*
	 * A RoCE datagram for one of our addresses: @m is one segment, *rx says where everything
	 * stands in it. UDP and IP are checked, the ICRC is not. @m is freed after the call.
	 */
	void (*on_roce)(void *arg, struct rte_mbuf *m, const struct soft_port_rx *rx);
	/* The link went up or down; the device tells it by soft_dev_port_set(). May be NULL. */
	void (*on_link)(void *arg, bool up);
	/* A frame came, or was about to leave, while soft_port_flap() had it down. May be NULL. */
	void (*on_lost)(void *arg);
};

struct soft_port_stats {
	uint64_t rx_frames, tx_frames;
	uint64_t tx_zero_copy, tx_copied; /* packets with payload */
	uint64_t tx_unsettled;            /* soft_port_settle() copied */
	uint64_t tx_full;                 /* asked for, no room in the PMD or no mbuf */
	uint64_t tx_pending, tx_unreachable, tx_down;
};

/* What a port turned out to be. */
struct soft_port_info {
	uint8_t mac[6];
	uint32_t mtu; /* of RoCE */
	bool up;
	bool zero_copy, multi_segs, ip_csum;
	bool keeps;         /* mbufs are not free when the burst ends */
	bool on_interrupts; /* EAL's interrupt thread must not work on it during a call here */
	const char *driver;
};

/*
 * Take the ethdev that @o names. -ENODEV no such; -EBUSY somebody has started it; -EINVAL an
 * option that it cannot do, -ENOMEM, or what the PMD says: with a line in the log.
 */
int soft_port_open(const char *dev, const struct soft_port_opts *o, const struct soft_port_ops *ops,
		   void *arg, struct soft_port **out);
/*
 * Stop the ethdev. Packets not yet taken by the PMD are lost. A struct soft_port_hold may stay
 * busy until who has its mbufs frees them.
 */
void soft_port_close(struct soft_port *p);

/*
 * From here on it is down when @f says so, and its link tells when it is not: nothing leaves then
 * and what comes is lost, questions of neighbours included. @f stays the caller's.
 */
void soft_port_flap(struct soft_port *p, const struct soft_flap *f);

void soft_port_info(const struct soft_port *p, struct soft_port_info *info);
void soft_port_stats(const struct soft_port *p, struct soft_port_stats *port,
		     struct soft_port_stack_stats *stack, struct soft_neigh_stats *neigh);
/* GID @index of the port, all RoCE v2: 0 the link-local one, then the ip options. False: none. */
bool soft_port_gid(const struct soft_port *p, uint32_t index, uint8_t gid[16]);

/* Receive, answer, ask, send what is left. Returns how many frames came. */
uint32_t soft_port_poll(struct soft_port *p, uint64_t now);

/* ---- soft_port_tx.c */

/*
 * Of a message whose memory the network reads: lives in the message, at the same address until
 * soft_port_hold_busy() says no. Its count is one for the message and one for each mbuf that
 * refers to the memory; PMDs free mbufs on any thread.
 */
struct soft_port_hold {
	struct rte_mbuf_ext_shared_info shinfo;
};
void soft_port_hold_init(struct soft_port_hold *h);
/* Does an mbuf still refer to the message's memory? Any thread. */
static inline bool
soft_port_hold_busy(const struct soft_port_hold *h)
{
	/* Acquire: what the mbufs' readers did comes before what the caller does to the memory. */
	return __atomic_load_n(&h->shinfo.refcnt, __ATOMIC_ACQUIRE) > 1;
}

/* A packet to be sent. The port adds Ethernet, IP, UDP, padding and ICRC. */
struct soft_port_tx {
	const struct bb_roce_net *net; /* src is one of ours */
	struct soft_port_path *path;   /* of *net; may be NULL */
	const uint8_t *hdr;            /* BTH and what follows, by bb_roce_build() */
	uint32_t hdr_len;              /* up to BB_ROCE_MAX_HDR */
	const struct bb_roce_iov *iov; /* payload */
	uint32_t n;                    /* up to BB_ROCE_MAX_IOV */
	struct soft_port_hold *hold;   /* NULL: the payload is copied */
};

enum soft_port_sent {
	SOFT_PORT_SENT,
	SOFT_PORT_FULL,        /* try again after a poll */
	SOFT_PORT_PENDING,     /* the neighbour is being asked for; others can be sent to */
	SOFT_PORT_UNREACHABLE, /* nobody answers, or not of our networks */
	SOFT_PORT_DOWN,        /* no link */
	SOFT_PORT_REFUSED,     /* longer than a frame, headers out of range, a source not ours */
};

/*
 * Queue a packet behind those before it; the next soft_port_flush() or poll gives it to the PMD,
 * or the packet that makes it SOFT_PORT_FLUSH bytes, with SOFT_PORT_EACH for each.
 * Pieces are read during the call only, but for those under a hold. FULL, PENDING: try again.
 */
enum soft_port_sent soft_port_send(struct soft_port *p, const struct soft_port_tx *tx,
				   uint64_t now);
/* The same of @len bytes from the IP header on, for the neighbour @dst. A copy is taken. */
enum soft_port_sent soft_port_send_ip(struct soft_port *p, const uint8_t *ip, uint32_t len,
				      const uint8_t dst[16], uint64_t now);
/* Give the PMD what it takes. */
void soft_port_flush(struct soft_port *p);
/*
 * The same, and copy what is left and refers to memory under a hold, or lose it without an mbuf:
 * unless the PMD keeps what it took (soft_port_info.keeps), no hold is busy any more.
 */
void soft_port_settle(struct soft_port *p);
/* Can an address be sent to? As soft_port_send() finds out, and asks if need be. */
enum soft_port_sent soft_port_reach(struct soft_port *p, const uint8_t ip[16], uint64_t now,
				    uint8_t mac[6]);

#endif
