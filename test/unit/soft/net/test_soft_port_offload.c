/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Capabilities that a PMD reports, and their effect: chains of mbufs, external memory, checksums.
 * The PMD is net_ring. This file wraps ethdev and changes what it reports and is asked for.
 */
#include "port_fixture.h"
#include "wrap_ethdev.h"

#define CHAINS   RTE_ETH_TX_OFFLOAD_MULTI_SEGS
#define IP_OUT   RTE_ETH_TX_OFFLOAD_IPV4_CKSUM
#define IP_IN    RTE_ETH_RX_OFFLOAD_IPV4_CKSUM
#define UDP_IN   RTE_ETH_RX_OFFLOAD_UDP_CKSUM
#define PMD_SUMS (RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM)

/* Values that ethdev reports, and the offloads that were requested. */
static struct {
	const char *driver;
	uint64_t tx, rx;
	uint64_t asked_tx, asked_rx;
} pmd;

int
__wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info)
{
	int ret = __real_rte_eth_dev_info_get(id, info);

	info->driver_name = pmd.driver;
	info->tx_offload_capa = pmd.tx;
	info->rx_offload_capa = pmd.rx;
	return ret;
}

/* net_ring itself has only chains. */
int
__wrap_rte_eth_dev_configure(uint16_t id, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf)
{
	struct rte_eth_conf own = *conf;

	pmd.asked_tx = conf->txmode.offloads;
	pmd.asked_rx = conf->rxmode.offloads;
	own.txmode.offloads &= CHAINS;
	own.rxmode.offloads = 0;
	return __real_rte_eth_dev_configure(id, rx, tx, &own);
}

static void
open_as(const char *driver, uint64_t tx, uint64_t rx)
{
	pmd.driver = driver;
	pmd.tx = tx;
	pmd.rx = rx;
	rig_open(r);
}

static void
close_port(void)
{
	soft_port_close(r->p);
	r->p = NULL;
}

/* Payload is sent in place if the PMD supports chains and is on the list of tested ones. */
T(test_payload_is_sent_in_place_on_tested_pmds)
{
	static const struct {
		const char *driver;
		uint64_t tx;
		bool refers;
	} pmds[] = {
		{"net_ring", CHAINS, true},           {"net_ring", 0, false},
		{"net_ring", IP_OUT, false},          {"net_tap", CHAINS | IP_OUT, true},
		{"net_tap", IP_OUT, false},           {"net_virtio", CHAINS, false},
		{"mlx5_pci", CHAINS | IP_OUT, false},
	};
	struct soft_port_hold hold;
	struct soft_port_info info;
	struct rte_mbuf *m;
	struct frame f;
	struct out o;

	rig_neigh(&r->o, PEER6, MAC_PEER);
	soft_port_hold_init(&hold);
	for (unsigned int i = 0; i < RTE_DIM(pmds); i++) {
		open_as(pmds[i].driver, pmds[i].tx, 0);
		assert_int_equal(pmd.asked_tx, pmds[i].tx);
		soft_port_info(r->p, &info);
		assert_int_equal(info.zero_copy, pmds[i].refers);
		assert_int_equal(info.multi_segs, (pmds[i].tx & CHAINS) != 0);
		out_init(&o, US6, PEER6, 2000, &hold);
		assert_int_equal(send_one(&o), SOFT_PORT_SENT);
		m = rig_take_mbuf(r);
		assert_non_null(m);
		assert_int_equal(m->nb_segs, pmds[i].refers ? 3 : 1);
		assert_int_equal(soft_port_hold_busy(&hold), pmds[i].refers);
		assert_int_equal(rte_ring_enqueue(from, m), 0);
		assert_true(rig_take(r, &f));
		check_packet(&f, &o, MAC_PEER, 0);
		assert_false(soft_port_hold_busy(&hold));
		close_port();
	}
}

/* A PMD that offloads the header checksum computes it, and gets all that it needs for that. */
T(test_checksum_is_left_to_a_pmd_that_offloads_it)
{
	static const uint32_t vlans[] = {0, 100}, sizes[] = {8, 2000};
	unsigned int by_pmd;
	struct soft_port_hold hold;
	uint32_t l3;
	struct rte_mbuf *m;
	struct frame f;
	struct out o;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_neigh(&r->o, PEER6, MAC_PEER);
	soft_port_hold_init(&hold);
	for (unsigned int i = 0; i < 8; i++) {
		by_pmd = i & 1;
		r->o.vlan = vlans[i >> 1 & 1];
		l3 = r->o.vlan != 0 ? 18 : 14;
		open_as("net_ring", CHAINS | (by_pmd ? IP_OUT : 0), 0);
		for (unsigned int k = 0; k < 2; k++) {
			out_init(&o, k ? US6 : US4, k ? PEER6 : PEER4, sizes[i >> 2], &hold);
			assert_int_equal(send_one(&o), SOFT_PORT_SENT);
			m = rig_take_mbuf(r);
			assert_non_null(m);
			assert_int_equal(m->ol_flags & PMD_SUMS, by_pmd && k == 0 ? PMD_SUMS : 0);
			if (by_pmd && k == 0) {
				assert_fields(*m, l2_len, l3, l3_len, 20);
			}
			assert_int_equal(rte_ring_enqueue(from, m), 0);
			assert_true(rig_take(r, &f));
			if (by_pmd && k == 0) {
				assert_int_equal(get16(&f, l3 + 10), 0);
				set16(&f, l3 + 10, fold16(sum16(0, f.b + l3, 20)));
			}
			check_packet(&f, &o, MAC_PEER, r->o.vlan);
		}
		close_port();
	}
}

static void
give(const struct frame *f, uint64_t flags, uint16_t tci)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)f->len), f->b, f->len);
	m->ol_flags |= flags;
	m->vlan_tci = tci;
	assert_int_equal(rte_ring_enqueue(to, m), 0);
	assert_int_equal(soft_port_poll(r->p, r->now), 1);
}

/* A checksum that the PMD verified is not verified again; others are. */
T(test_verified_checksum_is_not_checked_again)
{
	static const struct {
		bool ip, udp; /* wrong */
		uint64_t said;
		enum soft_port_drop why;
	} frames[] = {
		{false, false, 0, SOFT_DROP_NONE},
		{true, false, 0, SOFT_DROP_IP_CSUM},
		{true, false, RTE_MBUF_F_RX_IP_CKSUM_NONE, SOFT_DROP_IP_CSUM},
		{true, false, RTE_MBUF_F_RX_IP_CKSUM_GOOD, SOFT_DROP_NONE},
		{false, false, RTE_MBUF_F_RX_IP_CKSUM_GOOD, SOFT_DROP_NONE},
		{false, false, RTE_MBUF_F_RX_IP_CKSUM_BAD, SOFT_DROP_IP_CSUM},
		{false, true, 0, SOFT_DROP_UDP_CSUM},
		{false, true, RTE_MBUF_F_RX_L4_CKSUM_NONE, SOFT_DROP_UDP_CSUM},
		{false, true, RTE_MBUF_F_RX_IP_CKSUM_GOOD, SOFT_DROP_UDP_CSUM},
		{false, true, RTE_MBUF_F_RX_L4_CKSUM_GOOD, SOFT_DROP_NONE},
		{false, false, RTE_MBUF_F_RX_L4_CKSUM_GOOD, SOFT_DROP_NONE},
		{false, false, RTE_MBUF_F_RX_L4_CKSUM_BAD, SOFT_DROP_UDP_CSUM},
	};
	uint32_t taken = 0;
	uint64_t dropped;
	struct frame f;

	open_as("net_ring", CHAINS, IP_IN | UDP_IN | RTE_ETH_RX_OFFLOAD_TCP_CKSUM);
	assert_int_equal(pmd.asked_rx, IP_IN | UDP_IN);
	for (unsigned int i = 0; i < RTE_DIM(frames); i++) {
		eth(&f, (char *)r->mac, MAC_PEER, 0x0800);
		udp(&f, PEER4, US4, 4791, 1000, true);
		assert_int_not_equal(get16(&f, 40), 0);
		if (frames[i].ip)
			f.b[24] ^= 1;
		if (frames[i].udp)
			f.b[41] ^= 1;
		dropped = drops(frames[i].why);
		give(&f, frames[i].said, 0);
		taken += frames[i].why == SOFT_DROP_NONE;
		assert_int_equal(r->roce, taken);
		if (frames[i].why != SOFT_DROP_NONE)
			assert_int_equal(drops(frames[i].why), dropped + 1);
	}
}

T(test_stripped_vlan_tag_is_read_from_the_mbuf)
{
	struct frame f;

	r->o.vlan = 100;
	open_as("net_ring", CHAINS, 0);
	assert_int_equal(pmd.asked_rx, 0);
	eth(&f, (char *)r->mac, MAC_PEER, 0x0800);
	udp(&f, PEER4, US4, 4791, 40, false);
	give(&f, RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED, 5 << 13 | 100);
	assert_int_equal(r->roce, 1);
	give(&f, RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED, 101);
	assert_int_equal(drops(SOFT_DROP_VLAN), 1);
	give(&f, 0, 100);
	assert_int_equal(drops(SOFT_DROP_VLAN), 2);
	assert_int_equal(r->roce, 1);
}

TEST_MAIN(rig_eal(NULL, 0))
