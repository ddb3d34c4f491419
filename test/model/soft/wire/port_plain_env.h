/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Two devices, each with a port on net_ring. This program is the peer of both. */
#ifndef PORT_PLAIN_ENV_H
#define PORT_PLAIN_ENV_H

#include <stdio.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "../../../unit/soft/net/frames.h"
#include "../soft_rig.h"
#include "bb_cqe.h"
#include "bb_roce_pkt.h"
#include "capture_read.h"

#define RINGS  256
#define MTU    1024u /* of rig_link_default() */
#define PEERQP 0x4242u
#define BLOCKS 64u
#define FENCE  0x80u /* fm_ce_se: MLX5_WQE_CTRL_FENCE */
#define SE     0x02u
#define MEM    8192u
#define VLAN   5u
#define MAC_A  MAC_PEER
#define MAC_B  "\x02\xcc\x00\x00\x00\x03"

/* One of the two devices, and the ends of its rings. */
struct side {
	struct rte_ring *to, *from;
	struct rig_dev d;
	struct rig_uar u;
	struct rig_cq c;
	struct rig_qp q;
	struct rig_mem m;
	uint8_t mac[6];
	uint32_t done;
};

static struct side s[2];
static struct rte_mempool *pool;
static struct rig_dev peer; /* GID of the device */
static const char *us, *them;
static bool vlan, by_pmd;       /* the PMD makes the checksum of the IPv4 header */
static const char *faults = ""; /* options of both devices */
static char path[64];
static uint32_t rkey;
static uint64_t seed;

/* Outstanding WQEs: where each ends in the queue, and its PSN. */
static struct {
	uint16_t end;
	uint32_t psn;
	bool packet;
} out[BLOCKS];
static uint32_t head, tail;
static uint32_t psn, epsn, una, sent;
static uint32_t holes; /* Number of PSNs that came late or never. */
static uint16_t freed;

static inline uint32_t
dice(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33) % n;
}

/* ---- Frames */

/* Offloads that the last frame of each device requested from the PMD. */
static struct {
	uint64_t flags, lengths;
} asked[2];

static inline void
tag(struct frame *f)
{
	if (!vlan)
		return;
	memmove(f->b + 16, f->b + 12, f->len - 12);
	f->len += 4;
	set16(f, 12, 0x8100);
	set16(f, 14, VLAN);
}

static inline void
give(const struct frame *f)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		assert_non_null(m);
		memcpy(rte_pktmbuf_append(m, (uint16_t)f->len), f->b, f->len);
		memcpy(rte_pktmbuf_mtod(m, void *), s[i].mac, 6);
		assert_int_equal(rte_ring_enqueue(s[i].to, m), 0);
	}
}

static inline bool
take(struct side *a, struct frame *f)
{
	void *p;
	struct rte_mbuf *m;

	if (rte_ring_dequeue(a->from, &p) != 0)
		return false;
	m = p;
	assert_int_equal(m->nb_segs, 1);
	asked[a - s].flags = m->ol_flags & RTE_MBUF_F_TX_OFFLOAD_MASK;
	asked[a - s].lengths = m->tx_offload;
	f->len = m->data_len;
	memcpy(f->b, rte_pktmbuf_mtod(m, void *), f->len);
	rte_pktmbuf_free(m);
	return true;
}

static inline void
poll(void)
{
	uint32_t i;

	for (i = 0; i < 2; i++)
		rig_polls(&s[i].u, 3);
}

/* Returns true if @f is a packet and not a neighbour request, whose body has our MAC, too. */
static inline bool
is_packet(const struct frame *f)
{
	uint32_t l3 = vlan ? 18 : 14;

	return get16(f, l3 - 2) == 0x0800 || (get16(f, l3 - 2) == 0x86dd && f->b[l3 + 6] == 17);
}

/* Records a request that is newer than all before it. */
static inline void
look(const struct frame *f)
{
	uint32_t l3 = vlan ? 18 : 14, bth = l3 + (f->b[l3] >> 4 == 4 ? 20 : 40) + 8;
	uint32_t next = ((uint32_t)get16(f, bth + 8) & 0xff) << 16 | get16(f, bth + 10);

	if (f->b[bth] <= (BB_ROCE_RC | BB_ROCE_WRITE_ONLY_IMM) && (int32_t)(next + 1 - sent) > 0) {
		holes += next - sent;
		sent = next + 1;
	}
}

/*
 * Finishes a frame as the PMD would. A checksum that the PMD must make is absent in the frame,
 * and its offload fields give the header; this function makes it. Any other checksum must be
 * present. A captured frame always has it.
 */
static inline void
finish(uint32_t i, struct frame *f)
{
	const struct rte_mbuf where = {.l2_len = vlan ? 18 : 14, .l3_len = 20};
	const uint32_t l3 = where.l2_len;

	if (!by_pmd || i == 1 || f->b[l3] != 0x45) {
		assert_int_equal(asked[i].flags, 0);
	} else {
		assert_int_equal(asked[i].flags, RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM);
		assert_int_equal(asked[i].lengths, where.tx_offload);
		assert_int_equal(get16(f, l3 + 10), 0);
		set16(f, l3 + 10, fold16(sum16(0, f->b + l3, 20)));
	}
	if (f->b[l3] == 0x45)
		assert_int_equal(fold16(sum16(0, f->b + l3, 20)), 0);
}

/*
 * Checks that both devices sent the same packets. Stores the last one in *last and returns their
 * number.
 */
static inline uint32_t
same(struct frame *last)
{
	static struct frame one, other;
	uint32_t n = 0;

	while (take(&s[0], &one)) {
		assert_true(take(&s[1], &other));
		assert_int_equal(one.len, other.len);
		assert_int_equal(is_packet(&one), is_packet(&other));
		if (!is_packet(&one))
			continue;
		finish(0, &one);
		finish(1, &other);
		*last = one;
		look(last);
		memcpy(other.b + 6, last->b + 6, 6); /* source MAC address */
		assert_memory_equal(last->b, other.b, last->len);
		n++;
	}
	assert_false(take(&s[1], &other));
	return n;
}

/* Sends a packet from the peer to both devices. */
static inline void
from_peer(const struct bb_roce_pkt *pkt)
{
	uint8_t hdr[BB_ROCE_MAX_HDR], icrc[BB_ROCE_ICRC_LEN];
	uint32_t len = bb_roce_build(hdr, pkt), l3, l4;
	struct frame f;

	eth(&f, MAC_ALL, MAC_PEER, strchr(us, ':') != NULL ? 0x86dd : 0x0800);
	l3 = f.len;
	ip(&f, them, us, IPPROTO_UDP, 8 + len + BB_ROCE_ICRC_LEN);
	l4 = f.len;
	put16(&f, 0xc123);
	put16(&f, BB_ROCE_UDP_PORT);
	put16(&f, (uint16_t)(8 + len + BB_ROCE_ICRC_LEN));
	put16(&f, 0);
	put(&f, hdr, len);
	bb_roce_icrc_end(bb_roce_icrc_begin(f.b + l3, l4 - l3, f.b + l4, hdr, len), icrc);
	put(&f, icrc, sizeof(icrc));
	tag(&f);
	give(&f);
}

/* Sends a neighbour advertisement with the peer's MAC. */
static inline void
neighbour(const char *mac)
{
	struct frame f;

	if (strchr(us, ':') != NULL)
		nd(&f, MAC_ALL, them, us, 136, 0x60, them, mac);
	else
		arp(&f, MAC_ALL, 2, mac, them, MAC_US, us);
	tag(&f);
	give(&f);
	poll();
}

#endif
