/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The parts of an engine's turn that use the ethdev. They are inline, because most turns find no
 * packet. Such a turn then costs little more than the call of rte_eth_rx_burst().
 */
#ifndef SOFT_LINK_PORT_H
#define SOFT_LINK_PORT_H

#include <rte_debug.h>
#include <rte_ethdev.h>

#include "soft_netif.h"
#include "soft_port_priv.h"

/* ---- soft_link_port.c */
/*
 * Takes the port's lock, which the engine did not retain from an earlier turn, unless the lock is
 * busy. Returns true if the engine now holds the lock.
 */
bool soft_link_port_take(struct soft_engine *e, struct soft_netif *nif);

/* Begins a turn. Returns false if another thread uses the port. */
static __rte_always_inline bool
soft_link_port_begin(struct soft_engine *e, struct soft_netif *nif)
{
	return likely(__atomic_load_n(&nif->lock_retainer, __ATOMIC_RELAXED) == e) ||
	       soft_link_port_take(e, nif);
}

/* Sends the queued frames, and copies the payload of those for which the PMD has no room. */
static __rte_always_inline void
soft_link_port_settle(struct soft_netif *nif)
{
	if (nif->port->txq_n != 0)
		soft_port_settle_inline(nif->port);
	RTE_ASSERT(!soft_port_hold_busy(&nif->hold));
}

/*
 * Receives a burst of packets, and sends those that are queued before and after. Returns true if
 * soft_link_port_end() must be called. Call it after soft_link_port_begin() has returned true, in a
 * turn that has read the clock.
 */
static __rte_always_inline bool
soft_link_port_receive(struct soft_engine *e, struct soft_netif *nif)
{
	struct soft_port *p = nif->port;
	uint32_t n;

	/*
	 * Send or copy the queued requests before a packet is received that could complete them:
	 * see struct soft_netif.
	 */
	soft_link_port_settle(nif);
	nif->now = e->ns;
	if (likely(!soft_port_is_due(p, nif->now))) {
		n = rte_eth_rx_burst(p->eth.id, 0, p->rx, p->burst);
		if (n != 0) {
			soft_port_receive(p, n, nif->now);
			soft_link_port_settle(nif);
		}
	} else {
		(void)soft_port_poll(p, nif->now);
		soft_link_port_settle(nif);
	}
	return unlikely(__atomic_load_n(&nif->requests, __ATOMIC_RELAXED) != 0);
}

/*
 * Ends a turn: sends the queued frames, and handles requests of other threads for the port. Call it
 * after soft_link_port_begin() has returned true.
 */
static __rte_always_inline void
soft_link_port_end(struct soft_netif *nif)
{
	soft_link_port_settle(nif);
	if (unlikely(__atomic_load_n(&nif->requests, __ATOMIC_RELAXED) != 0))
		soft_netif_pass(nif);
}

#endif
