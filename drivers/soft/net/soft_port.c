/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "soft.h"
#include "soft_port_priv.h"

static bool
link_up(const struct soft_port *p)
{
	struct rte_eth_link link;

	/*
	 * If the PMD has no link status, the link counts as up, because the queues show the real
	 * state.
	 */
	return rte_eth_link_get_nowait(p->eth.id, &link) != 0 || link.link_status != 0;
}

int
soft_port_open(const char *dev, const struct soft_port_opts *o, const struct soft_port_ops *ops,
	       void *arg, struct soft_port **out)
{
	struct soft_port *p = calloc(1, sizeof(*p));
	int ret;

	if (p == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for the port", dev);
		return -ENOMEM;
	}
	ret = soft_port_eth_start(dev, o, &p->eth);
	if (ret != 0) {
		free(p);
		return ret;
	}
	soft_port_stack_init(&p->stack, o, p->eth.mac, soft_port_room, p);
	p->ops = ops;
	p->arg = arg;
	p->up = link_up(p);
	p->burst = SOFT_PORT_BURST;
	*out = p;
	return 0;
}

/* Drops the packets that the PMD has not accepted. Returns the number of dropped packets. */
static uint32_t
drop_queue(struct soft_port *p)
{
	uint32_t n = p->txq_n;

	while (p->txq_n != 0) {
		rte_pktmbuf_free(p->txq[p->txq_first]);
		p->txq_first = (p->txq_first + 1) % SOFT_PORT_TXQ;
		p->txq_n--;
	}
	return n;
}

bool
soft_port_lingers(struct soft_port *p)
{
	if (!p->eth.unread_lost || p->stats.tx_frames + p->txq_n == 0 || !link_up(p))
		return false;
	soft_port_flush(p);
	return true;
}

void
soft_port_close(struct soft_port *p)
{
	drop_queue(p);
	rte_mempool_put_bulk(p->eth.pool, (void **)p->spare, p->spares);
	soft_port_eth_stop(&p->eth);
	free(p);
}

void
soft_port_flap(struct soft_port *p, const struct soft_flap *f)
{
	p->flap = f;
	p->link_next = 0;
}

void
soft_port_host(struct soft_port *p)
{
	/*
	 * The guest's kernel chooses its MAC and its multicast groups, and filters the frames
	 * itself. A PMD without filters receives all frames anyway.
	 */
	int ret = rte_eth_promiscuous_enable(p->eth.id);

	if (ret != 0 && ret != -ENOTSUP)
		SOFT_LOG(
			WARNING,
			"ethdev port %u (%s): cannot receive frames to all MACs: %s; do not change "
			"the MAC in the guest",
			p->eth.id, p->eth.driver, rte_strerror(-ret));
	soft_port_stack_host(&p->stack);
}

void
soft_port_set_addresses(struct soft_port *p, const uint8_t (*gid)[16], const uint8_t (*mac)[6],
			uint32_t n)
{
	soft_port_stack_set(&p->stack, gid, mac, n);
}

void
soft_port_info(const struct soft_port *p, struct soft_port_info *info)
{
	*info = (struct soft_port_info){
		.frame = p->eth.frame,
		.mtu = p->eth.mtu,
		.up = p->up,
		.zero_copy = p->eth.zero_copy,
		.multi_segs = p->eth.multi_segs,
		.ip_csum = p->eth.ip_csum,
		.retains_mbufs = p->eth.retains_mbufs,
		.on_interrupts = p->eth.on_interrupts,
		.driver = p->eth.driver,
	};
	memcpy(info->mac, p->eth.mac, 6);
}

void
soft_port_stats(const struct soft_port *p, struct soft_port_stats *port,
		struct soft_port_stack_stats *stack, struct soft_neigh_stats *neigh)
{
	*port = p->stats;
	*stack = p->stack.stats;
	*neigh = p->stack.neigh.stats;
}

bool
soft_port_gid(const struct soft_port *p, uint32_t index, uint8_t gid[16])
{
	if (index >= p->stack.n_addr)
		return false;
	memcpy(gid, p->stack.addr[index].addr, 16);
	return true;
}

/* ---- Polling a port */

/*
 * Checks the link. Returns false while soft_port_flap() has the port down; every poll then checks
 * again.
 */
static __rte_noinline bool
look_at_link(struct soft_port *p, uint64_t now)
{
	uint64_t edge = UINT64_MAX;
	bool off = p->flap != NULL && soft_flap_down(p->flap, now, &edge);
	bool up = !off && link_up(p);

	p->link_next = off ? 0 : RTE_MIN(now + SOFT_PORT_LINK_NS, edge);
	if (up == p->up)
		return !off;
	p->up = up;
	SOFT_LOG(NOTICE, "ethdev port %u (%s): link %s", p->eth.id, p->eth.driver,
		 up ? "up" : "down");
	if (p->ops->on_link != NULL)
		p->ops->on_link(p->arg, up);
	return !off;
}

/*
 * Drops all waiting frames, received and queued, while soft_port_flap() has the port down.
 * Returns the number of received frames.
 */
static __rte_noinline uint32_t
drop_all(struct soft_port *p)
{
	struct rte_mbuf *m[SOFT_PORT_BURST];
	uint16_t n = rte_eth_rx_burst(p->eth.id, 0, m, p->burst);
	uint32_t lost = n + drop_queue(p);

	rte_pktmbuf_free_bulk(m, n);
	p->stats.rx_frames += n;
	while (p->ops->on_lost != NULL && lost-- != 0)
		p->ops->on_lost(p->arg);
	return n;
}

/*
 * Returns the results of the PMD's checks of a frame. If the PMD did not check a checksum (UNKNOWN,
 * NONE), both flags for that checksum are false, and the stack checks it.
 */
static struct soft_port_hw
hw_of(const struct rte_mbuf *m)
{
	uint64_t ip = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
	uint64_t l4 = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;

	return (struct soft_port_hw){
		.vlan_stripped = (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0,
		.ip_good = ip == RTE_MBUF_F_RX_IP_CKSUM_GOOD,
		.ip_bad = ip == RTE_MBUF_F_RX_IP_CKSUM_BAD,
		.l4_good = l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD,
		.l4_bad = l4 == RTE_MBUF_F_RX_L4_CKSUM_BAD,
		.tci = m->vlan_tci,
	};
}

#define RX_REPORTS                                                                                 \
	(RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK)

/*
 * Copies a chain of mbufs into its first segment. net_ring, and PMDs with small buffers, deliver
 * chains. Returns false if the chain is longer than the port's frames, so that its first segment
 * has too little room.
 */
static __rte_noinline bool
make_linear(struct soft_port *p, struct rte_mbuf *m)
{
	if (rte_pktmbuf_linearize(m) == 0)
		return true;
	p->stack.stats.frames++;
	p->stack.stats.drop[SOFT_DROP_SEGMENTS]++;
	return false;
}

static __rte_noinline void
receive(struct soft_port *p, struct rte_mbuf *m, uint64_t now)
{
	static const struct soft_port_hw nothing;
	const struct soft_port_hw *rx_hw = &nothing;
	struct soft_port_hw hw;
	struct soft_port_rx rx;

	if ((m->ol_flags & RX_REPORTS) != 0) {
		hw = hw_of(m);
		rx_hw = &hw;
	}
	switch (soft_port_input(&p->stack, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, rx_hw,
				&rx, now)) {
	case SOFT_PORT_IN_ROCE:
		p->ops->on_roce(p->arg, m, &rx);
		break;
	case SOFT_PORT_IN_HOST:
		p->ops->on_host(p->arg, m);
		break;
	default:
		break;
	}
}

/* Not inline, so that the common path saves fewer registers. */
static __rte_noinline void
put_back(struct soft_port *p, uint32_t n)
{
	rte_mempool_put_bulk(p->eth.pool, (void **)p->rx, n);
}

/*
 * Stores mbufs as spares as long as there is room, and frees the others by one call of the pool.
 * Returns the bytes of the frames.
 */
static inline uint32_t
free_received(struct soft_port *p, uint32_t n)
{
	struct rte_mbuf **m = p->rx;
	uint32_t i, left = 0, bytes = 0;

	for (i = 0; i < n; i++) {
		bytes += m[i]->pkt_len;
		if (unlikely(!soft_port_is_single(p, m[i])))
			rte_pktmbuf_free(m[i]);
		else if (p->spares != SOFT_PORT_SPARES)
			p->spare[p->spares++] = m[i];
		else
			m[left++] = m[i];
	}
	if (left != 0)
		put_back(p, left);
	return bytes;
}

void
soft_port_receive(struct soft_port *p, uint32_t n, uint64_t now)
{
	struct rte_mbuf **m = p->rx;
	uint32_t i = 0, taken;

	while (i < n) {
		if (unlikely(m[i]->nb_segs != 1) && !make_linear(p, m[i])) {
			i++;
			continue;
		}
		if (likely(p->ops->on_frames != NULL)) {
			taken = p->ops->on_frames(p->arg, &m[i], n - i);
			p->stack.stats.frames += taken;
			p->stack.stats.roce += taken;
			i += taken;
		}
		if (unlikely(i < n && m[i]->nb_segs == 1))
			receive(p, m[i++], now);
	}
	/*
	 * After a burst of long frames the next burst has fewer frames, so that replies leave
	 * earlier while the peer continues.
	 */
	p->burst = free_received(p, n) >= (uint32_t)SOFT_PORT_LONG * n ? SOFT_PORT_LONGS
								       : SOFT_PORT_BURST;
	p->stats.rx_frames += n;
}

uint32_t
soft_port_poll(struct soft_port *p, uint64_t now)
{
	uint16_t n;

	if (unlikely(now >= p->link_next) && !look_at_link(p, now))
		return drop_all(p);
	if (unlikely(now >= p->stack.neigh.next_deadline))
		soft_neigh_tick(&p->stack.neigh, now);
	n = rte_eth_rx_burst(p->eth.id, 0, p->rx, p->burst);
	if (n != 0)
		soft_port_receive(p, n, now);
	if (p->txq_n != 0)
		soft_port_flush(p);
	return n;
}
