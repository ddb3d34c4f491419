/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Between soft_port.c, soft_port_eth.c and soft_port_tx.c. */
#ifndef SOFT_PORT_PRIV_H
#define SOFT_PORT_PRIV_H

#include "soft_port.h"

/* What soft_port_eth.c finds out about an ethdev and sets up. */
struct soft_port_eth {
	uint16_t id;
	uint64_t owner;
	char driver[32];
	uint8_t mac[6];
	uint32_t frame; /* bytes of the longest frame, CRC not counted */
	uint32_t mtu;   /* of RoCE */
	bool ip_csum;   /* the PMD writes IPv4 header checksums */
	bool multi_segs, zero_copy, keeps, on_interrupts;
	struct rte_mempool *pool; /* headers, copies and what is received */
	struct rte_mempool *ext;  /* mbufs without memory of their own; zero_copy only */
};

struct soft_port {
	struct soft_port_stack stack;
	struct soft_port_eth eth;
	const struct soft_port_ops *ops;
	void *arg;
	bool up;
	uint64_t link_next;
	uint16_t burst; /* frames that the next poll takes */
	uint32_t txq_first, txq_n;
	uint32_t txq_bytes;                  /* built since the PMD was last asked */
	struct rte_mbuf *txq[SOFT_PORT_TXQ]; /* a ring */
	struct soft_port_stats stats;
};

/* ---- soft_port_eth.c */
int soft_port_eth_start(const char *dev, const struct soft_port_opts *o, struct soft_port_eth *eth);
void soft_port_eth_stop(struct soft_port_eth *eth);

/* ---- soft_port_tx.c */
/* Room for a frame of @len bytes at the end of the queue. NULL: none. A room() of the stack. */
uint8_t *soft_port_room(void *port, uint32_t len);

#endif
