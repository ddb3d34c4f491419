/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Declarations shared by soft_port.c, soft_port_eth.c, soft_port_linux.c, soft_port_tx.c,
 * soft_port_plain.c and soft_link_port.c.
 */
#ifndef SOFT_PORT_PRIV_H
#define SOFT_PORT_PRIV_H

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ethdev.h>

#include "soft_port.h"

/* Capabilities of an ethdev, and the resources that soft_port_eth.c set up for it. */
struct soft_port_eth {
	uint16_t id;
	uint64_t owner;
	char driver[32];
	uint8_t mac[6];
	uint32_t frame; /* Bytes of the longest frame, without CRC. */
	uint32_t mtu;   /* RoCE MTU, bytes. */
	bool ip_csum;   /* The PMD writes IPv4 header checksums. */
	bool multi_segs, zero_copy, retains_mbufs, on_interrupts, unread_lost;
	struct rte_mempool *pool; /* Mbufs for headers, copies and received frames. */
	struct rte_mempool *ext;  /* Mbufs without data room; zero_copy only. */
};

#define SOFT_PORT_SPARES 32
#define SOFT_PORT_REFILL 16 /* Mbufs per call of the pool. */

struct soft_port {
	struct soft_port_stack stack;
	struct soft_port_eth eth;
	const struct soft_port_ops *ops;
	void *arg;
	bool up;
	uint64_t link_next;
	uint16_t burst; /* Largest number of frames that the next poll receives. */
	uint32_t txq_first, txq_n;
	uint32_t txq_bytes;                  /* Bytes queued since the last flush. */
	struct rte_mbuf *txq[SOFT_PORT_TXQ]; /* Ring of packets that wait for the PMD. */
	uint32_t spares;
	/* Free mbufs for the next frames to send, as the pool returns them: fields not reset. */
	struct rte_mbuf *spare[SOFT_PORT_SPARES];
	/* Frames of the current poll. Not on the stack, so that a poll needs no stack protector. */
	struct rte_mbuf *rx[SOFT_PORT_BURST];
	struct soft_port_stats stats;
	const struct soft_flap *flap; /* Flap schedule, NULL if none. */
};

/* ---- soft_port_eth.c */
int soft_port_eth_start(const char *dev, const struct soft_port_opts *o, struct soft_port_eth *eth);
void soft_port_eth_stop(struct soft_port_eth *eth);

/* ---- soft_port_linux.c */
/*
 * Sets the PMD's MTU to that of the port's frames, if the PMD supports it. @if_index: number of the
 * interface of Linux whose MTU the PMD sets and may be larger, else 0. Returns 0 or a negative
 * errno, logged.
 */
int soft_port_set_mtu(const char *dev, const struct soft_port_opts *o,
		      const struct soft_port_eth *eth, unsigned int if_index);
/*
 * Makes the PMD receive the multicast groups of neighbour discovery. @no_restart: the PMD cannot be
 * started again after a failed start. Returns 0 or a negative errno, logged.
 */
int soft_port_set_filters(const char *dev, const struct soft_port_opts *o,
			  const struct soft_port_eth *eth, bool no_restart);

/* ---- soft_port_tx.c */
/*
 * Takes an mbuf from the pool, and further ones as spares. Returns NULL if none is free. Called if
 * there is no spare.
 */
struct rte_mbuf *soft_port_refill(struct soft_port *p);

/*
 * Returns an mbuf of one segment for a frame to send, or NULL if none is free. The caller must set
 * data_off, data_len, pkt_len, ol_flags and tx_offload. Prefers the newest spare mbuf: it was just
 * received, so it is in the cache. Using spares also saves calls of the pool.
 */
static inline struct rte_mbuf *
soft_port_raw_mbuf(struct soft_port *p)
{
	if (unlikely(p->spares == 0))
		return soft_port_refill(p);
	return p->spare[--p->spares];
}

/* Returns an empty mbuf for a frame to send, or NULL if none is free. */
static inline struct rte_mbuf *
soft_port_mbuf(struct soft_port *p)
{
	struct rte_mbuf *m = soft_port_raw_mbuf(p);

	if (likely(m != NULL))
		rte_pktmbuf_reset(m);
	return m;
}

/* Returns true if an mbuf has one segment with its own memory, and no other user. */
static inline bool
soft_port_is_single(const struct soft_port *p, const struct rte_mbuf *m)
{
	return m->pool == p->eth.pool && RTE_MBUF_DIRECT(m) && m->nb_segs == 1 && m->next == NULL &&
	       rte_mbuf_refcnt_read(m) == 1;
}

/* Frees an mbuf, or stores it as a spare. */
static inline void
soft_port_give_back(struct soft_port *p, struct rte_mbuf *m)
{
	if (likely(p->spares != SOFT_PORT_SPARES && soft_port_is_single(p, m)))
		p->spare[p->spares++] = m;
	else
		rte_pktmbuf_free(m);
}

/* ---- soft_port.c */
/* Processes and frees the @n frames in p->rx. */
void soft_port_receive(struct soft_port *p, uint32_t n, uint64_t now);
/* Returns true if a poll has more to do than to receive frames and to flush queued packets. */
static inline bool
soft_port_is_due(const struct soft_port *p, uint64_t now)
{
	return now >= p->link_next || now >= p->stack.neigh.next_deadline;
}

/* ---- soft_port_tx.c */
/*
 * Passes the first @n queued packets to the PMD. They must be adjacent in the ring. Returns true if
 * the PMD has accepted all of them.
 */
static inline bool
soft_port_pass(struct soft_port *p, uint32_t n)
{
	const uint32_t taken = rte_eth_tx_burst(p->eth.id, 0, &p->txq[p->txq_first], (uint16_t)n);

	p->stats.tx_frames += taken;
	p->txq_n -= taken;
	p->txq_first = p->txq_n != 0 ? (p->txq_first + taken) % SOFT_PORT_TXQ : 0;
	return taken == n;
}

/*
 * Does the same as soft_port_settle(). Needs no other function if packets are queued, adjacent in
 * the ring, and the PMD accepts them.
 */
static inline void
soft_port_settle_inline(struct soft_port *p)
{
	p->txq_bytes = 0;
	if (unlikely(p->txq_first + p->txq_n > SOFT_PORT_TXQ) || !soft_port_pass(p, p->txq_n))
		soft_port_settle(p);
}
/*
 * Appends a frame of @len bytes to the queue. Returns the frame's memory, or NULL if the queue is
 * full or no mbuf is free. The stack calls this function as room().
 */
uint8_t *soft_port_room(void *port, uint32_t len);

/* Appends a frame to the queue; the caller has checked for room. */
static inline void
soft_port_enqueue(struct soft_port *p, struct rte_mbuf *m)
{
	p->txq[(p->txq_first + p->txq_n++) % SOFT_PORT_TXQ] = m;
}

/*
 * Appends a packet to the queue, and flushes the queue after SOFT_PORT_FLUSH bytes. Because of the
 * early flush, the peer processes the first of many packets while this host builds more, and
 * reports a missing packet early. The PMD can also copy packets while they are in the first-level
 * cache.
 */
static inline void
soft_port_push(struct soft_port *p, struct rte_mbuf *m)
{
	soft_port_enqueue(p, m);
	p->txq_bytes += m->pkt_len + SOFT_PORT_EACH;
	if (p->txq_bytes >= SOFT_PORT_FLUSH)
		soft_port_flush(p);
}

static inline void
soft_port_put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Writes the lengths, and the IPv4 checksum that depends on them, into the headers of a path. */
static inline void
soft_port_put_lengths(const struct soft_port *p, const struct soft_port_path *path,
		      struct rte_mbuf *m, uint8_t *head, uint32_t udp_len)
{
	uint8_t *ip = head + path->l2_len, *udp = ip + path->l3_len;
	uint16_t total = rte_cpu_to_be_16((uint16_t)(udp_len + 20));
	uint32_t sum = path->sum + total;

	soft_port_put16(udp + 4, udp_len);
	if (path->l3_len != 20) {
		soft_port_put16(ip + 4, udp_len);
		return;
	}
	memcpy(ip + 2, &total, sizeof(total));
	if (p->eth.ip_csum) {
		m->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
		m->l2_len = path->l2_len;
		m->l3_len = 20;
		return;
	}
	/* RFC 1624: only the length changes, so the sum of the other words is reused. */
	sum = (sum & 0xffff) + (sum >> 16);
	total = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	memcpy(ip + 10, &total, sizeof(total));
}

#endif
