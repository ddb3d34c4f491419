/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "port_fixture.h"

T(test_packet_has_all_headers)
{
	static const uint32_t sizes[] = {0, 1, 61, 255, 256, 257, 1023, 1024, 4095, 4096};
	struct soft_port_hold hold;
	struct out o;
	struct frame f;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_neigh(&r->o, PEER6, MAC_PEER);
	rig_open(r);
	soft_port_hold_init(&hold);
	for (unsigned int i = 0; i < RTE_DIM(sizes); i++)
		for (unsigned int held = 0; held < 2; held++)
			for (unsigned int v6 = 0; v6 < 2; v6++) {
				out_init(&o, v6 ? US6 : US4, v6 ? PEER6 : PEER4, sizes[i],
					 held ? &hold : NULL);
				assert_int_equal(send_one(&o), SOFT_PORT_SENT);
				assert_int_equal(soft_port_hold_busy(&hold),
						 held && sizes[i] > SOFT_PORT_COPY);
				assert_true(rig_take(r, &f));
				check_packet(&f, &o, MAC_PEER, 0);
				assert_false(soft_port_hold_busy(&hold));
			}
	assert_int_equal(stats().tx_zero_copy, 2 * 5);
	assert_int_equal(stats().tx_copied, 2 * (9 + 4));
	assert_int_equal(stats().tx_frames, 4 * RTE_DIM(sizes));
}

/* Payload in pieces: sent in place if there are few, else copied together. */
T(test_few_pieces_are_sent_in_place)
{
	static const uint32_t cuts[] = {1, 2, 6, 7, 16};
	struct soft_port_hold hold;
	struct rte_mbuf *m;
	unsigned int k;
	struct frame f;
	struct out o;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	r->o.vlan = 100;
	rig_open(r);
	soft_port_hold_init(&hold);
	for (unsigned int i = 0; i < RTE_DIM(cuts); i++) {
		out_init(&o, US4, PEER4, 16 * 63, &hold);
		o.tx.n = cuts[i];
		for (k = 0; k < cuts[i]; k++)
			o.iov[k] = (struct bb_roce_iov){data + k * 63, 63};
		o.iov[k - 1].len = (17 - k) * 63;
		assert_int_equal(send_one(&o), SOFT_PORT_SENT);
		m = rig_take_mbuf(r);
		assert_non_null(m);
		assert_int_equal(m->nb_segs, cuts[i] <= SOFT_PORT_MAX_SEGS ? cuts[i] + 2 : 1);
		if (m->nb_segs > 1)
			assert_ptr_equal(rte_pktmbuf_mtod(m->next, void *), data);
		assert_int_equal(rte_ring_enqueue(from, m), 0);
		assert_true(rig_take(r, &f));
		check_packet(&f, &o, MAC_PEER, 100);
	}
}

T(test_message_is_busy_until_its_last_mbuf)
{
	struct soft_port_hold hold, other;
	struct rte_mbuf *m[3];
	struct out o;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_open(r);
	soft_port_hold_init(&hold);
	soft_port_hold_init(&other);
	out_init(&o, US4, PEER4, 2000, &hold);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	for (unsigned int i = 0; i < 3; i++) {
		m[i] = rig_take_mbuf(r);
		assert_non_null(m[i]);
	}
	assert_false(soft_port_hold_busy(&other));
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(soft_port_hold_busy(&hold));
		rte_pktmbuf_free(m[(i + 1) % 3]);
	}
	assert_false(soft_port_hold_busy(&hold));
	/* A reader that never frees mbufs: from a certain number on packets are copied. */
	rte_mbuf_ext_refcnt_set(&hold.shinfo, 60000);
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	m[0] = rig_take_mbuf(r);
	assert_int_equal(m[0]->nb_segs, 1);
	rte_pktmbuf_free(m[0]);
	assert_int_equal(rte_mbuf_ext_refcnt_read(&hold.shinfo), 60000);
}

/* The ring takes 15, the port 64 more; no packet is lost and the order is preserved. */
T(test_full_ring_loses_and_reorders_nothing)
{
	struct soft_port_tx tx[100];
	static struct out o[100];
	enum soft_port_sent why;
	struct bb_roce_pkt pkt;
	struct frame f;
	uint32_t n;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_open(r);
	for (uint32_t i = 0; i < 100; i++) {
		out_init(&o[i], US4, PEER4, 8, NULL);
		o[i].pkt.psn = i;
		bb_roce_build(o[i].hdr, &o[i].pkt);
		tx[i] = o[i].tx;
	}
	n = rig_send(r->p, tx, 100, r->now, &why);
	assert_int_equal(n, RINGS - 1 + SOFT_PORT_TXQ);
	assert_int_equal(why, SOFT_PORT_FULL);
	assert_int_equal(stats().tx_full, 1);
	for (uint32_t i = 0; i < 100; i++) {
		assert_true(rig_take(r, &f));
		assert_int_equal(bb_roce_parse(&pkt, f.b + 42, f.len - 46), BB_ROCE_OK);
		assert_int_equal(pkt.psn, i);
		soft_port_poll(r->p, r->now);
		if (n < 100)
			n += rig_send(r->p, tx + n, 100 - n, r->now, &why);
	}
	assert_int_equal(n, 100);
	assert_false(rig_take(r, &f));
	assert_int_equal(stats().tx_frames, 100);
}

/*
 * Packets that the PMD has not taken by the end of a turn are copied and no longer refer to the
 * memory.
 */
T(test_untaken_packets_are_copied_at_the_end_of_a_turn)
{
	struct soft_port_hold hold;
	enum soft_port_sent why;
	struct bb_roce_pkt pkt;
	struct frame f;
	struct out o;
	uint32_t i;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_open(r);
	soft_port_hold_init(&hold);
	out_init(&o, US4, PEER4, 1000, &hold);
	for (i = 0; i < RINGS + 4; i++) {
		o.pkt.psn = i;
		bb_roce_build(o.hdr, &o.pkt);
		assert_int_equal(rig_send(r->p, &o.tx, 1, r->now, &why), 1);
	}
	assert_true(soft_port_hold_busy(&hold));
	soft_port_settle(r->p);
	assert_int_equal(stats().tx_unsettled, 5);
	/* The ring retains the mbufs it took. */
	for (i = 0; i < RINGS - 1; i++) {
		assert_true(soft_port_hold_busy(&hold));
		assert_true(rig_take(r, &f));
	}
	assert_false(soft_port_hold_busy(&hold));
	soft_port_settle(r->p);
	for (; i < RINGS + 4; i++) {
		assert_true(rig_take(r, &f));
		assert_int_equal(bb_roce_parse(&pkt, f.b + 42, f.len - 46), BB_ROCE_OK);
		assert_int_equal(pkt.psn, i);
		assert_memory_equal(pkt.payload, data, 1000);
	}
	assert_false(rig_take(r, &f));
}

/*
 * Some long packets or many short ones are sent before the end of the turn, a few short ones are
 * not.
 */
T(test_many_packets_leave_before_the_end_of_a_turn)
{
	const uint32_t len = 4080, n = 4; /* 4 of these are at least SOFT_PORT_FLUSH bytes */
	struct frame f;
	struct out o;
	uint32_t i;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	r->o.framesz = 4198;
	rig_open(r);
	out_init(&o, US4, PEER4, 8, NULL);
	for (i = 0; i < RINGS - 1; i++)
		assert_int_equal(soft_port_send(r->p, &o.tx, r->now), SOFT_PORT_SENT);
	assert_int_equal(rte_ring_count(from), 0);
	soft_port_flush(r->p);
	while (rig_take(r, &f))
		check_packet(&f, &o, MAC_PEER, 0);
	for (i = 0; rte_ring_count(from) == 0; i++) {
		assert_true(i < SOFT_PORT_FLUSH / SOFT_PORT_EACH);
		assert_int_equal(soft_port_send(r->p, &o.tx, r->now), SOFT_PORT_SENT);
	}
	assert_true(i > SOFT_PORT_FLUSH / SOFT_PORT_EACH / 2);
	for (uint32_t got = 0; got < i; soft_port_flush(r->p))
		for (; rig_take(r, &f); got++)
			check_packet(&f, &o, MAC_PEER, 0);
	out_init(&o, US4, PEER4, len, NULL);
	for (i = 0; i < 3 * n; i++) {
		assert_int_equal(rte_ring_count(from), i / n * n);
		assert_int_equal(soft_port_send(r->p, &o.tx, r->now), SOFT_PORT_SENT);
	}
	assert_int_equal(rte_ring_count(from), 3 * n);
	for (i = 0; i < 3 * n; i++) {
		assert_true(rig_take(r, &f));
		check_packet(&f, &o, MAC_PEER, 0);
	}
}

T(test_unsendable_packets_are_refused)
{
	struct frame f;
	struct out o;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_neigh(&r->o, PEER6, MAC_PEER);
	r->o.framesz = 4198;
	rig_open(r);
	/* The longest packet, and one byte more. */
	out_init(&o, US6, PEER6, 4096, NULL);
	o.pkt.opcode = BB_ROCE_WRITE_ONLY_IMM;
	o.tx.hdr_len = bb_roce_build(o.hdr, &o.pkt);
	assert_int_equal(o.tx.hdr_len, 32);
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	o.iov[0].len = 4097;
	assert_int_equal(send_one(&o), SOFT_PORT_REFUSED);
	o.iov[0].len = UINT32_MAX;
	assert_int_equal(send_one(&o), SOFT_PORT_REFUSED);
	o.iov[0].len = 8;
	o.iov[1].len = UINT32_MAX - 7;
	o.tx.n = 2;
	assert_int_equal(send_one(&o), SOFT_PORT_REFUSED);
	out_init(&o, US4, PEER4, 8, NULL);
	o.tx.hdr_len = BB_ROCE_MAX_HDR + 1;
	assert_int_equal(send_one(&o), SOFT_PORT_REFUSED);
	o.tx.hdr_len = BB_ROCE_BTH_LEN - 1;
	assert_int_equal(send_one(&o), SOFT_PORT_REFUSED);
	out_init(&o, US4, PEER4, 8, NULL);
	o.tx.n = BB_ROCE_MAX_IOV + 1;
	assert_int_equal(send_one(&o), SOFT_PORT_REFUSED);
	/* A foreign source address, and one of the other family. */
	out_init(&o, "192.0.2.3", PEER4, 8, NULL);
	assert_int_equal(send_one(&o), SOFT_PORT_NO_SOURCE);
	out_init(&o, US6, PEER4, 8, NULL);
	assert_int_equal(send_one(&o), SOFT_PORT_NO_SOURCE);
	assert_true(rig_take(r, &f));
	assert_false(rig_take(r, &f));
}

/* Each address that a guest's kernel sets has its own source MAC, with cached headers, too. */
T(test_packet_has_the_mac_of_the_hosts_address)
{
	const uint8_t mac[2][6] = {{2, 0xbb, 0, 0, 0, 0x21}, {2, 0xbb, 0, 0, 0, 0x22}};
	const char *const own[2] = {US4, US6}, *const peer[2] = {PEER4, PEER6};
	struct soft_port_path path[2] = {{.hint = SOFT_NEIGH_NONE}, {.hint = SOFT_NEIGH_NONE}};
	uint8_t gid[2][16], macs[2][6];
	unsigned int i, round;
	struct frame f;
	struct out o;

	memset(&r->o.ip, 0, sizeof(r->o.ip));
	r->o.n_ip = 0;
	rig_open(r);
	soft_port_host(r->p);
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 2 && round % 2 == 0; i++) {
			memcpy(gid[i], ip_of(own[i]), sizeof(gid[i]));
			memcpy(macs[i], mac[(i + round / 2) % 2], sizeof(macs[i]));
		}
		if (round % 2 == 0)
			soft_port_set_addresses(r->p, (const uint8_t(*)[16])gid,
						(const uint8_t(*)[6])macs, 2);
		for (i = 0; i < 2; i++) {
			out_init(&o, own[i], peer[i], 100, NULL);
			o.tx.mac = (const uint8_t *)MAC_PEER;
			o.tx.path = &path[i];
			memcpy(r->mac, macs[i], sizeof(r->mac));
			assert_int_equal(send_one(&o), SOFT_PORT_SENT);
			assert_true(rig_take(r, &f));
			check_packet(&f, &o, MAC_PEER, 0);
		}
	}
	/* A packet that is already built, from an address with a MAC, and from none. */
	assert_int_equal(soft_port_send_ip(r->p, data, 100, &o.net, o.tx.mac, r->now),
			 SOFT_PORT_SENT);
	soft_port_flush(r->p);
	assert_true(rig_take(r, &f));
	assert_int_equal(f.len, 114);
	assert_memory_equal(f.b, MAC_PEER, 6);
	assert_memory_equal(f.b + 6, macs[1], 6);
	o.net.src[15] ^= 0x80;
	assert_int_equal(soft_port_send_ip(r->p, data, 100, &o.net, o.tx.mac, r->now),
			 SOFT_PORT_NO_SOURCE);
}

T(test_without_mbufs_no_packet_is_lost)
{
	struct rte_mempool *pool;
	struct rte_mbuf *all[2047];
	struct soft_port_hold hold;
	char name[32];
	struct frame f;
	struct out o;
	uint16_t id;
	uint32_t n;

	rig_neigh(&r->o, PEER4, MAC_PEER);
	rig_open(r);
	soft_port_hold_init(&hold);
	assert_int_equal(rte_eth_dev_get_port_by_name(r->name, &id), 0);
	/* 4198 bytes, rounded up to whole cache lines, and headroom. */
	snprintf(name, sizeof(name), "bb_port_%u_%u", id, 4224u + RTE_PKTMBUF_HEADROOM);
	pool = rte_mempool_lookup(name);
	assert_non_null(pool);
	for (n = 0; n < RTE_DIM(all) && (all[n] = rte_pktmbuf_alloc(pool)) != NULL; n++)
		;
	out_init(&o, US4, PEER4, 1000, &hold);
	assert_int_equal(send_one(&o), SOFT_PORT_FULL);
	/* One mbuf for the headers, none for the end of the packet. */
	rte_pktmbuf_free(all[--n]);
	assert_int_equal(send_one(&o), SOFT_PORT_FULL);
	assert_false(soft_port_hold_busy(&hold));
	/* An answer that cannot be sent is counted. */
	all[n++] = rte_pktmbuf_alloc(pool);
	eth(&f, (char *)r->mac, MAC_PEER, 0x0800);
	echo(&f, PEER4, US4, 8);
	rig_give(r, &f, 0);
	soft_port_poll(r->p, r->now);
	assert_int_equal(drops(SOFT_DROP_NO_BUFFER), 1);
	rte_pktmbuf_free_bulk(all, n);
	assert_int_equal(send_one(&o), SOFT_PORT_SENT);
	assert_true(rig_take(r, &f));
	check_packet(&f, &o, MAC_PEER, 0);
	/* The port took 16 mbufs at once, and sent two. */
	assert_int_equal(rte_mempool_avail_count(pool), 2047 - 14);
}

TEST_MAIN(rig_eal(NULL, 0))
