/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>

#include "port_fixture.h"

T(test_open_port_reports_driver_mtu_and_gid)
{
	struct soft_port_opts o = r->o;
	struct soft_port_info info;
	struct soft_port *p = NULL;
	uint8_t gid[16], ll[16];
	uint16_t id;

	rig_open(r);
	soft_port_info(r->p, &info);
	assert_string_equal(info.driver, "net_ring");
	assert_int_equal(info.mtu, 4096);
	assert_true(info.up && info.zero_copy && info.multi_segs);
	soft_port_link_local(info.mac, ll);
	assert_true(soft_port_gid(r->p, 0, gid));
	assert_memory_equal(gid, ll, 16);
	assert_true(soft_port_gid(r->p, 1, gid));
	assert_memory_equal(gid, ip_of(US4), 16);
	assert_true(soft_port_gid(r->p, 2, gid));
	assert_memory_equal(gid, ip_of(US6), 16);
	assert_false(soft_port_gid(r->p, 3, gid));
	/* Another device owns it; below, the application does. */
	assert_int_equal(soft_port_open("soft1", &o, &rig_ops, r, &p), -EBUSY);
	strcpy(o.name, "net_nothing0");
	assert_int_equal(soft_port_open("soft1", &o, &rig_ops, r, &p), -EINVAL);
	assert_null(p);
	soft_port_close(r->p);
	r->p = NULL;
	assert_int_equal(rte_eth_dev_get_port_by_name(r->name, &id), 0);
	assert_int_equal(rte_eth_dev_start(id), 0);
	assert_int_equal(soft_port_open("soft0", &r->o, &rig_ops, r, &r->p), -EBUSY);
	assert_int_equal(rte_eth_dev_stop(id), 0);
	rig_open(r);
}

T(test_framesz_sets_the_mtu)
{
	static const uint32_t want[][2] = {
		{358, 256}, {1518, 1024}, {4197, 2048}, {4198, 4096}, {9728, 4096}};
	struct soft_port_info info;

	for (unsigned int i = 0; i < RTE_DIM(want); i++) {
		r->o.framesz = want[i][0];
		rig_open(r);
		soft_port_info(r->p, &info);
		assert_int_equal(info.mtu, want[i][1]);
		soft_port_close(r->p);
		r->p = NULL;
	}
	r->o.framesz = 4198;
	r->o.mtu = 512;
	rig_open(r);
	soft_port_info(r->p, &info);
	assert_int_equal(info.mtu, 512);
}

T(test_received_frames_are_delivered)
{
	static const uint32_t segs[] = {0, 1, 13, 100};
	struct frame f;

	rig_open(r);
	for (unsigned int i = 0; i < RTE_DIM(segs); i++) {
		eth(&f, (char *)r->mac, MAC_PEER, 0x0800);
		udp(&f, PEER4, US4, 4791, segs[i] == 1 ? 40 : 1000, false);
		rig_give(r, &f, segs[i]);
		assert_int_equal(soft_port_poll(r->p, r->now), 1);
		assert_fields(*r, roce, i + 1, got.len, f.len);
		assert_memory_equal(r->got.b, f.b, f.len);
		assert_int_equal(r->rx.l4_off, 34);
		assert_memory_equal(r->rx.net.src, ip_of(PEER4), 16);
	}
	assert_int_equal(stats().rx_frames, RTE_DIM(segs));
	/* A frame for another MAC is counted and not delivered. */
	f.b[0] ^= 2;
	rig_give(r, &f, 0);
	assert_int_equal(soft_port_poll(r->p, r->now), 1);
	assert_int_equal(r->roce, RTE_DIM(segs));
	assert_int_equal(drops(SOFT_DROP_DST_MAC), 1);
	assert_int_equal(rte_mempool_avail_count(test_pool), 511);
}

/* A poll takes fewer long frames: from the second long one on, until short ones come. */
T(test_poll_takes_fewer_long_frames)
{
	struct frame lengthy, brief;

	rig_open(r);
	eth(&lengthy, (char *)r->mac, MAC_PEER, 0x0800);
	udp(&lengthy, PEER4, US4, 4791, SOFT_PORT_LONG, false);
	eth(&brief, (char *)r->mac, MAC_PEER, 0x0800);
	udp(&brief, PEER4, US4, 4791, 40, false);
	for (uint32_t i = 0; i < RINGS - 1; i++)
		rig_give(r, &lengthy, 0);
	assert_int_equal(soft_port_poll(r->p, r->now), RINGS - 1);
	assert_int_equal(soft_port_poll(r->p, r->now), 0);
	for (uint32_t i = 0; i < SOFT_PORT_LONGS + 2; i++)
		rig_give(r, &lengthy, 0);
	assert_int_equal(soft_port_poll(r->p, r->now), SOFT_PORT_LONGS);
	assert_int_equal(soft_port_poll(r->p, r->now), 2);
	rig_give(r, &brief, 0);
	assert_int_equal(soft_port_poll(r->p, r->now), 1);
	for (uint32_t i = 0; i < RINGS - 1; i++)
		rig_give(r, &brief, 0);
	assert_int_equal(soft_port_poll(r->p, r->now), RINGS - 1);
	assert_int_equal(r->roce, 2 * (RINGS - 1) + SOFT_PORT_LONGS + 3);
}

/* A chain whose first mbuf has no room for the rest. */
T(test_chain_without_room_is_dropped)
{
	struct rte_mbuf *a = rte_pktmbuf_alloc(test_pool), *b = rte_pktmbuf_alloc(test_pool);

	rig_open(r);
	assert_non_null(rte_pktmbuf_append(a, 9000));
	assert_non_null(rte_pktmbuf_append(b, 9000));
	assert_int_equal(rte_pktmbuf_chain(a, b), 0);
	assert_int_equal(rte_ring_enqueue(to, a), 0);
	assert_int_equal(soft_port_poll(r->p, r->now), 1);
	assert_int_equal(drops(SOFT_DROP_SEGMENTS), 1);
	assert_int_equal(rte_mempool_avail_count(test_pool), 511);
}

T(test_ping_is_answered)
{
	struct frame f, out;

	rig_open(r);
	eth(&f, (char *)r->mac, MAC_PEER, 0x86dd);
	echo(&f, PEER6, US6, 1400);
	rig_give(r, &f, 500);
	soft_port_poll(r->p, r->now);
	assert_true(rig_take(r, &out));
	assert_fields(out, len, f.len, b[54], 129);
	assert_int_equal(l4_sum(&out, 14, 54, IPPROTO_ICMPV6), 0);
	assert_memory_equal(out.b + 58, f.b + 58, f.len - 58);
	assert_false(rig_take(r, &out));
}

#define MAC_MOVED "\x02\xbb\x00\x00\x0f\x01"

T(test_port_resolves_its_neighbour)
{
	struct frame f, ask;
	struct soft_port_path path = {0};
	struct out o;

	rig_open(r);
	out_init(&o, US4, PEER4, 8, NULL);
	o.tx.path = &path;
	assert_int_equal(send_one(&o), SOFT_PORT_PENDING);
	assert_int_equal(send_one(&o), SOFT_PORT_PENDING);
	assert_true(rig_take(r, &f));
	arp(&ask, MAC_ALL, 1, (char *)r->mac, US4, "\0\0\0\0\0\0", PEER4);
	assert_int_equal(f.len, ask.len);
	assert_memory_equal(f.b, ask.b, ask.len);
	assert_false(rig_take(r, &f));
	arp(&f, (char *)r->mac, 2, MAC_PEER, PEER4, (char *)r->mac, US4);
	rig_give(r, &f, 0);
	soft_port_poll(r->p, r->now);
	/* The second packet has the headers of the first. */
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(send_one(&o), SOFT_PORT_SENT);
		assert_true(rig_take(r, &f));
		check_packet(&f, &o, MAC_PEER, 0);
	}
	/* The peer's MAC changes: the cached headers are not used. */
	arp(&f, (char *)r->mac, 2, MAC_MOVED, PEER4, (char *)r->mac, US4);
	rig_give(r, &f, 0);
	soft_port_poll(r->p, r->now);
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	assert_true(rig_take(r, &f));
	check_packet(&f, &o, MAC_MOVED, 0);
	/* No host there: three requests, then the destination is unreachable. */
	out_init(&o, US6, "2001:db8::77", 8, NULL);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(send_one(&o), SOFT_PORT_PENDING);
		assert_true(rig_take(r, &f));
		assert_int_equal(f.b[54], 135);
		assert_false(rig_take(r, &f));
		r->now += SEC;
		soft_port_poll(r->p, r->now);
	}
	assert_int_equal(send_one(&o), SOFT_PORT_UNREACHABLE);
	out_init(&o, US4, "198.51.100.1", 8, NULL);
	assert_int_equal(send_one(&o), SOFT_PORT_UNREACHABLE);
	assert_false(rig_take(r, &f));
}

T(test_link_change_is_reported)
{
	struct out o;
	uint16_t id;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_open(r);
	soft_port_poll(r->p, r->now);
	assert_int_equal(r->links, 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(r->name, &id), 0);
	assert_int_equal(rte_eth_dev_set_link_down(id), 0);
	soft_port_poll(r->p, r->now + 49 * MS);
	assert_int_equal(r->links, 0);
	soft_port_poll(r->p, r->now + 50 * MS);
	assert_int_equal(r->links, 1);
	assert_false(r->up);
	out_init(&o, US4, PEER4, 8, NULL);
	assert_int_equal(send_one(&o), SOFT_PORT_DOWN);
	assert_int_equal(rte_eth_dev_set_link_up(id), 0);
	soft_port_poll(r->p, r->now + 100 * MS);
	assert_int_equal(r->links, 2);
	assert_true(r->up);
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
}

/* Feeds a ping, a neighbour solicitation and a packet. */
static void
give_all(void)
{
	struct frame f;

	eth(&f, (char *)r->mac, MAC_PEER, 0x0800);
	echo(&f, PEER4, US4, 40);
	rig_give(r, &f, 0);
	arp(&f, MAC_ALL, 1, MAC_PEER, PEER4, "\0\0\0\0\0\0", US4);
	rig_give(r, &f, 0);
	eth(&f, (char *)r->mac, MAC_PEER, 0x0800);
	udp(&f, PEER4, US4, 4791, 40, false);
	rig_give(r, &f, 0);
}

static void
poll_at(uint64_t now, uint32_t links, bool up)
{
	r->now = now;
	soft_port_poll(r->p, r->now);
	assert_fields(*r, links, links, up, up);
}

T(test_flapping_link_is_down_three_of_four_seconds)
{
	struct soft_flap flap = {.up = SEC, .down = 3 * SEC};
	struct out o, ask;
	struct frame f;
	uint16_t id;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_open(r);
	r->up = true;
	flap.start = r->now;
	soft_port_flap(r->p, &flap);
	poll_at(flap.start, 0, true);
	poll_at(flap.start + SEC - 1, 0, true);
	give_all();
	poll_at(r->now, 0, true);
	assert_int_equal(r->roce, 1);
	assert_true(rig_take(r, &f) && rig_take(r, &f));
	/* A pending neighbour request, and packets that the PMD has not taken. */
	out_init(&ask, US4, "192.0.2.77", 8, NULL);
	assert_int_equal(send_one(&ask), SOFT_PORT_PENDING);
	out_init(&o, US4, PEER4, 8, NULL);
	for (uint32_t i = 1; i < RINGS - 1 + SOFT_PORT_TXQ; i++)
		assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	assert_int_equal(r->lost, 0);
	poll_at(flap.start + SEC, 1, false);
	assert_int_equal(r->lost, SOFT_PORT_TXQ);
	rig_drain(from);
	give_all();
	/* The request would be repeated now. */
	poll_at(flap.start + 3 * SEC, 1, false);
	assert_int_equal(r->lost, SOFT_PORT_TXQ + 3);
	assert_int_equal(send_one(&o), SOFT_PORT_DOWN);
	poll_at(flap.start + 4 * SEC - 1, 1, false);
	assert_false(rig_take(r, &f));
	assert_int_equal(r->roce, 1);
	poll_at(flap.start + 4 * SEC, 2, true);
	while (rig_take(r, &f))
		assert_int_equal(get16(&f, 12), 0x0806);
	give_all();
	poll_at(r->now, 2, true);
	assert_int_equal(r->roce, 2);
	assert_true(rig_take(r, &f) && rig_take(r, &f));
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	assert_int_equal(r->lost, SOFT_PORT_TXQ + 3);
	/* The link state of the ethdev counts as well. */
	assert_int_equal(rte_eth_dev_get_port_by_name(r->name, &id), 0);
	assert_int_equal(rte_eth_dev_set_link_down(id), 0);
	poll_at(flap.start + 4 * SEC + 50 * MS, 3, false);
	poll_at(flap.start + 8 * SEC, 3, false);
	poll_at(flap.start + 9 * SEC, 3, false);
	assert_int_equal(rte_eth_dev_set_link_up(id), 0);
	poll_at(flap.start + 10 * SEC, 3, false);
	poll_at(flap.start + 12 * SEC, 4, true);
	assert_int_equal(rte_mempool_avail_count(test_pool), 511);
}

/* The reader of a ring still has mbufs when the port is closed and opened again. */
T(test_port_reopens_with_mbufs_still_out)
{
	struct soft_port_hold hold;
	struct rte_mbuf *m;
	struct frame f;
	struct out o;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_open(r);
	soft_port_hold_init(&hold);
	out_init(&o, US4, PEER4, 1000, &hold);
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	m = rig_take_mbuf(r);
	assert_non_null(m);
	soft_port_close(r->p);
	assert_true(soft_port_hold_busy(&hold));
	rig_open(r);
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	assert_true(rig_take(r, &f));
	check_packet(&f, &o, MAC_PEER, 0);
	soft_port_close(r->p);
	r->p = NULL;
	/* With larger mbufs, while the small ones are still in use. */
	r->o.framesz = 9000;
	rig_open(r);
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	assert_true(rig_take(r, &f));
	check_packet(&f, &o, MAC_PEER, 0);
	soft_port_close(r->p);
	r->p = NULL;
	assert_true(soft_port_hold_busy(&hold));
	rte_pktmbuf_free(m);
	assert_false(soft_port_hold_busy(&hold));
	rig_open(r);
	/* Packets that the PMD has not taken are freed with the port. */
	out_init(&o, US4, PEER4, 1000, &hold);
	while (send_one(&o) == SOFT_PORT_SENT)
		;
	soft_port_close(r->p);
	r->p = NULL;
	assert_true(soft_port_hold_busy(&hold));
	rig_drain(from);
	assert_false(soft_port_hold_busy(&hold));
}

/* Two ports back to back: one writes, the other reads, with zero-copy mbufs of the first. */
T(test_two_ports_exchange_zero_copy_mbufs)
{
	struct rig *b = rig_new(from, to), *a = r;
	struct soft_port_hold hold;
	struct out o;

	memcpy(b->o.ip[0].addr, ip_of(PEER4), 16);
	memcpy(b->o.ip[1].addr, ip_of(PEER6), 16);
	rig_open(a);
	rig_open(b);
	assert_memory_not_equal(a->mac, b->mac, 6);
	soft_port_hold_init(&hold);
	out_init(&o, US4, PEER4, 4000, &hold);
	/* A request and its answer; the other port learns the requester's address. */
	assert_int_equal(send_one(&o), SOFT_PORT_PENDING);
	soft_port_poll(b->p, b->now);
	soft_port_poll(a->p, a->now);
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	assert_true(soft_port_hold_busy(&hold));
	soft_port_poll(b->p, b->now);
	assert_false(soft_port_hold_busy(&hold));
	assert_int_equal(b->roce, 1);
	check_packet(&b->got, &o, b->mac, 0);
	rig_free(b);
}

TEST_MAIN(rig_eal(NULL, 0))
