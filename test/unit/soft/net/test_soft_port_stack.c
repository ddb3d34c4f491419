/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "stack_fixture.h"

static void
roce4(uint32_t len)
{
	eth(&f, MAC_US, MAC_PEER, 0x0800);
	udp(&f, PEER4, US4, ROCE, len, false);
}

static void
roce6(uint32_t len)
{
	eth(&f, MAC_US, MAC_PEER, 0x86dd);
	udp(&f, PEER6, US6, ROCE, len, false);
}

static void
csum4(void)
{
	set16(&f, 24, 0);
	set16(&f, 24, fold16(sum16(0, f.b + 14, 20)));
}

#define T(name) TEST_WITH(setup, NULL, name)

T(test_roce_over_ipv4_is_parsed)
{
	roce4(60);
	f.b[15] = 0x6b; /* DSCP 26, CE */
	csum4();
	f.len += 3; /* Ethernet padding */
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
	assert_true(rx.v4);
	assert_fields(rx, l3_off, 14, l3_len, 20 + 8 + 60, l4_off, 34, l4_len, 68);
	assert_fields(rx, net.sport, 0xc123, dport, ROCE, net.tclass, 0x6b, net.hop_limit, 64);
	assert_memory_equal(rx.net.src, ip_of(PEER4), 16);
	assert_memory_equal(rx.net.dst, ip_of(US4), 16);
	assert_memory_equal(rx.src_mac, MAC_PEER, 6);
	assert_fields(s.stats, ecn_ce, 1, roce, 1);
}

T(test_roce_over_ipv6_is_parsed)
{
	roce6(33);
	f.b[14] = 0x6a;
	f.b[15] = 0xb3;
	f.b[16] = 0x45;
	f.b[17] = 0x67;
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
	assert_false(rx.v4);
	assert_fields(rx, l3_len, 40 + 8 + 33, l4_off, 54, l4_len, 41, net.tclass, 0xab);
	assert_int_equal(rx.net.flow_label, 0x34567);
	assert_memory_equal(rx.net.src, ip_of(PEER6), 16);
	/* To the link-local address. */
	eth(&f, MAC_US, MAC_PEER, 0x86dd);
	udp(&f, "fe80::2", LL, ROCE, 4, true);
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
}

/* Every shorter length of the frame is rejected without a read past its end. */
T(test_truncated_frame_is_dropped_unread)
{
	uint32_t len;

	roce4(20);
	for (len = f.len; f.len > 0;) {
		f.len = --len;
		assert_int_equal(input(), SOFT_PORT_IN_DROPPED);
	}
	roce6(20);
	for (len = f.len; f.len > 0;) {
		f.len = --len;
		assert_int_equal(input(), SOFT_PORT_IN_DROPPED);
	}
	arp(&f, MAC_ALL, 1, MAC_PEER, PEER4, "\0\0\0\0\0\0", US4);
	for (len = f.len; f.len > 0;) {
		f.len = --len;
		assert_int_equal(input(), SOFT_PORT_IN_DROPPED);
	}
	nd(&f, MAC_US, PEER6, US6, 135, 0, US6, MAC_PEER);
	for (len = f.len; f.len > 0;) {
		f.len = --len;
		assert_int_equal(input(), SOFT_PORT_IN_DROPPED);
	}
	assert_int_equal(sent, 0);
}

T(test_frames_to_other_macs_are_dropped)
{
	roce4(8);
	memcpy(f.b, "\x02\xbb\x00\x00\x00\x02", 6);
	dropped(SOFT_DROP_DST_MAC);
	memcpy(f.b, "\x01\x00\x5e\x00\x00\x01", 6);
	dropped(SOFT_DROP_DST_MAC);
	/* A unicast IP address in a broadcast frame. */
	memcpy(f.b, MAC_ALL, 6);
	dropped(SOFT_DROP_DST_MAC);
	roce4(8);
	memcpy(f.b + 6, MAC_US, 6);
	dropped(SOFT_DROP_SRC_MAC);
	memcpy(f.b + 6, MAC_ALL, 6);
	dropped(SOFT_DROP_SRC_MAC);
	roce4(8);
	set16(&f, 12, 0x88cc);
	dropped(SOFT_DROP_ETHERTYPE);
	set16(&f, 12, 0x8915); /* RoCE v1 */
	dropped(SOFT_DROP_ETHERTYPE);
}

T(test_vlan_tag_must_match)
{
	struct soft_port_hw hw = {.vlan_stripped = true, .tci = 0x600c};

	eth_vlan(&f, MAC_US, MAC_PEER, 0x600c, 0x0800);
	udp(&f, PEER4, US4, ROCE, 8, false);
	dropped(SOFT_DROP_VLAN);
	f.b[15] = 0; /* priority tag without a VLAN */
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
	assert_int_equal(rx.l3_off, 18);
	start(12);
	dropped(SOFT_DROP_VLAN);
	f.b[15] = 12;
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
	assert_int_equal(input_hw(&hw, SEC), SOFT_PORT_IN_DROPPED); /* a second tag */
	roce4(8);
	dropped(SOFT_DROP_VLAN);
	/* The PMD stripped the tag. */
	assert_int_equal(input_hw(&hw, SEC), SOFT_PORT_IN_ROCE);
	hw.tci = 13;
	assert_int_equal(input_hw(&hw, SEC), SOFT_PORT_IN_DROPPED);
	/* Answers carry the port's tag. */
	eth_vlan(&f, MAC_US, MAC_PEER, 12, 0x0800);
	echo(&f, PEER4, US4, 5);
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_int_equal(get16(&out, 12), 0x8100);
	assert_int_equal(get16(&out, 14), 12);
	assert_int_equal(get16(&out, 16), 0x0800);
	assert_int_equal(out.len, 18 + 20 + 8 + 5);
}

T(test_bad_ipv4_header_is_dropped)
{
	struct soft_port_hw good = {.ip_good = true}, bad = {.ip_bad = true};

	roce4(8);
	f.b[14] = 0x46; /* options */
	csum4();
	dropped(SOFT_DROP_IP_HEADER);
	f.b[14] = 0x65;
	dropped(SOFT_DROP_IP_HEADER);
	roce4(8);
	set16(&f, 16, 37);
	csum4();
	dropped(SOFT_DROP_IP_LENGTH);
	set16(&f, 16, 19);
	csum4();
	dropped(SOFT_DROP_IP_LENGTH);
	roce4(8);
	f.b[24] ^= 1;
	dropped(SOFT_DROP_IP_CSUM);
	assert_int_equal(input_hw(&good, SEC), SOFT_PORT_IN_ROCE);
	roce4(8);
	assert_int_equal(input_hw(&bad, SEC), SOFT_PORT_IN_DROPPED);
	assert_int_equal(s.stats.drop[SOFT_DROP_IP_CSUM], 2);
	set16(&f, 20, 0x2000); /* not the last fragment */
	csum4();
	dropped(SOFT_DROP_FRAGMENT);
	set16(&f, 20, 0x0001); /* last fragment */
	csum4();
	dropped(SOFT_DROP_FRAGMENT);
	set16(&f, 20, 0); /* fragmentable, but whole */
	csum4();
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
	f.b[23] = 6;
	csum4();
	dropped(SOFT_DROP_PROTOCOL);
	f.b[23] = IPPROTO_ICMPV6;
	csum4();
	dropped(SOFT_DROP_PROTOCOL);
}

T(test_bad_ipv6_headers_are_dropped)
{
	roce6(8);
	f.b[14] = 0x50;
	dropped(SOFT_DROP_IP_HEADER);
	roce6(8);
	set16(&f, 18, 17);
	dropped(SOFT_DROP_IP_LENGTH);
	roce6(8);
	f.b[20] = IPPROTO_FRAGMENT;
	dropped(SOFT_DROP_FRAGMENT);
	f.b[20] = 0; /* hop by hop */
	dropped(SOFT_DROP_PROTOCOL);
	f.b[20] = IPPROTO_ICMP;
	dropped(SOFT_DROP_PROTOCOL);
	/* An IPv4-mapped source in an IPv6 packet. */
	roce6(8);
	memcpy(f.b + 22, ip_of(PEER4), 16);
	dropped(SOFT_DROP_SRC_IP);
	roce6(8);
	memcpy(f.b + 38, ip_of(US4), 16);
	dropped(SOFT_DROP_DST_IP);
}

T(test_frames_to_other_addresses_are_dropped)
{
	static const char *const src4[] = {"0.0.0.0",         "127.0.0.1", "224.0.0.1",
					   "255.255.255.255", US4,         "240.0.0.1"};
	static const char *const src6[] = {"::", "::1", "ff02::1", US6, LL};
	static const char *const dst4[] = {"192.0.2.3", "192.0.2.255", "255.255.255.255",
					   "240.0.0.1"};
	static const char *const dst6[] = {"2001:db8::3", "fe02::1", "::"};

	for (unsigned int i = 0; i < RTE_DIM(src4); i++) {
		eth(&f, MAC_US, MAC_PEER, 0x0800);
		udp(&f, src4[i], US4, ROCE, 8, false);
		dropped(SOFT_DROP_SRC_IP);
	}
	for (unsigned int i = 0; i < RTE_DIM(src6); i++) {
		eth(&f, MAC_US, MAC_PEER, 0x86dd);
		udp(&f, src6[i], US6, ROCE, 8, false);
		dropped(SOFT_DROP_SRC_IP);
	}
	for (unsigned int i = 0; i < RTE_DIM(dst4); i++) {
		eth(&f, MAC_US, MAC_PEER, 0x0800);
		udp(&f, PEER4, dst4[i], ROCE, 8, false);
		dropped(SOFT_DROP_DST_IP);
	}
	for (unsigned int i = 0; i < RTE_DIM(dst6); i++) {
		eth(&f, MAC_US, MAC_PEER, 0x86dd);
		udp(&f, PEER6, dst6[i], ROCE, 8, false);
		dropped(SOFT_DROP_DST_IP);
	}
}

/* Datagrams to a group are accepted at the MAC of that group only (RFC 1112, 6.4; RFC 2464, 7). */
T(test_datagrams_to_a_group_are_accepted_at_its_mac)
{
	static const struct {
		const char *group, *mac;
	} rows[] = {
		{"239.200.1.2", "\x01\x00\x5e\x48\x01\x02"},
		{"224.0.0.1", "\x01\x00\x5e\x00\x00\x01"},
		{"ff02::1", "\x33\x33\x00\x00\x00\x01"},
		{"ff1e::dead:beef", "\x33\x33\xde\xad\xbe\xef"},
	};
	uint8_t mac[6];

	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		const bool v4 = strchr(rows[i].group, ':') == NULL;

		eth(&f, rows[i].mac, MAC_PEER, v4 ? 0x0800 : 0x86dd);
		udp(&f, v4 ? PEER4 : PEER6, rows[i].group, ROCE, 8, false);
		/* Twice: by the parser, and by the cached headers. */
		for (unsigned int k = 0; k < 2; k++) {
			assert_int_equal(input(), SOFT_PORT_IN_ROCE);
			assert_memory_equal(rx.net.dst, ip_of(rows[i].group), 16);
		}
		for (unsigned int k = 0; k < 6; k++) {
			f.b[k] ^= 0x10;
			dropped(SOFT_DROP_DST_MAC);
			f.b[k] ^= 0x10;
		}
		memcpy(f.b, MAC_US, 6);
		dropped(SOFT_DROP_DST_MAC);
		memcpy(f.b, MAC_ALL, 6);
		dropped(SOFT_DROP_DST_MAC);
		/* The MAC of packets to a group needs no question. */
		assert_int_equal(soft_port_resolve(&s, ip_of(rows[i].group), SEC, NULL, mac),
				 SOFT_NEIGH_FOUND);
		assert_memory_equal(mac, rows[i].mac, 6);
	}
	assert_int_equal(sent, 0);
	eth(&f, rows[0].mac, MAC_PEER, 0x0800);
	udp(&f, PEER4, rows[0].group, 5353, 8, false);
	dropped(SOFT_DROP_UDP_PORT);
}

T(test_bad_udp_headers_are_dropped)
{
	struct soft_port_hw good = {.l4_good = true}, bad = {.l4_bad = true};

	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t l4 = v6 ? 54 : 34;

		v6 ? roce6(8) : roce4(8);
		set16(&f, l4 + 2, 4790);
		dropped(SOFT_DROP_UDP_PORT);
		set16(&f, l4 + 4, 7);
		dropped(SOFT_DROP_UDP_LENGTH);
		set16(&f, l4 + 4, 17);
		dropped(SOFT_DROP_UDP_LENGTH);
		/* Shorter than the packet: the UDP length counts. */
		v6 ? roce6(8) : roce4(8);
		set16(&f, l4 + 4, 12);
		assert_int_equal(input(), SOFT_PORT_IN_ROCE);
		assert_int_equal(rx.l4_len, 12);
		/* With a checksum, also for an odd length. */
		eth(&f, MAC_US, MAC_PEER, v6 ? 0x86dd : 0x0800);
		udp(&f, v6 ? PEER6 : PEER4, v6 ? US6 : US4, ROCE, 33, true);
		assert_int_equal(input(), SOFT_PORT_IN_ROCE);
		assert_int_equal(input_hw(&bad, SEC), SOFT_PORT_IN_DROPPED);
		f.b[f.len - 1] ^= 1;
		dropped(SOFT_DROP_UDP_CSUM);
		assert_int_equal(input_hw(&good, SEC), SOFT_PORT_IN_ROCE);
	}
	eth(&f, MAC_US, MAC_PEER, 0x0800);
	ip(&f, PEER4, US4, IPPROTO_UDP, 7);
	f.len += 7;
	dropped(SOFT_DROP_SHORT);
}

T(test_ping_is_answered)
{
	static const uint32_t sizes[] = {0, 1, 56, 1471};

	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t l4 = v6 ? 54 : 34;
		uint8_t proto = v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;

		for (unsigned int i = 0; i < RTE_DIM(sizes); i++) {
			eth(&f, MAC_US, MAC_PEER, v6 ? 0x86dd : 0x0800);
			echo(&f, v6 ? PEER6 : PEER4, v6 ? US6 : US4, sizes[i]);
			assert_int_equal(input(), SOFT_PORT_IN_DONE);
			assert_int_equal(out.len, f.len);
			assert_memory_equal(out.b, MAC_PEER, 6);
			assert_memory_equal(out.b + 6, MAC_US, 6);
			assert_int_equal(out.b[l4], v6 ? 129 : 0);
			assert_memory_equal(out.b + l4 + 4, f.b + l4 + 4, 4 + sizes[i]);
			assert_int_equal(l4_sum(&out, 14, l4, proto), 0);
			if (v6) {
				assert_memory_equal(out.b + 22, ip_of(US6), 16);
				assert_memory_equal(out.b + 38, ip_of(PEER6), 16);
				assert_int_equal(get16(&out, 18), 8 + sizes[i]);
				assert_int_equal(out.b[21], 64);
			} else {
				assert_int_equal(sum16(0, out.b + 14, 20) % 0xffff, 0);
				assert_memory_equal(out.b + 26, ip_of(US4) + 12, 4);
				assert_memory_equal(out.b + 30, ip_of(PEER4) + 12, 4);
				assert_int_equal(get16(&out, 20), 0x4000);
				assert_int_equal(out.b[22], 64);
			}
		}
		f.b[l4 + 9] ^= 1;
		dropped(SOFT_DROP_ICMP_CSUM);
		eth(&f, MAC_US, MAC_PEER, v6 ? 0x86dd : 0x0800);
		echo(&f, v6 ? PEER6 : PEER4, v6 ? US6 : US4, 8);
		no_room = true;
		dropped(SOFT_DROP_NO_BUFFER);
		no_room = false;
		f.b[l4] = v6 ? 129 : 0; /* an answer */
		set16(&f, l4 + 2, 0);
		set16(&f, l4 + 2, l4_sum(&f, 14, l4, proto));
		dropped(SOFT_DROP_ICMP_TYPE);
		eth(&f, MAC_US, MAC_PEER, v6 ? 0x86dd : 0x0800);
		ip(&f, v6 ? PEER6 : PEER4, v6 ? US6 : US4, proto, 7);
		f.len += 7;
		dropped(SOFT_DROP_SHORT);
	}
	/*
	 * Neither an unspecified source nor a group address is answered, so the port is no
	 * amplifier.
	 */
	eth(&f, "\x33\x33\0\0\0\x01", MAC_PEER, 0x86dd);
	echo(&f, PEER6, "ff02::1", 8);
	dropped(SOFT_DROP_DST_IP);
	eth(&f, MAC_US, MAC_PEER, 0x86dd);
	echo(&f, "::", US6, 8);
	dropped(SOFT_DROP_SRC_IP);
	assert_int_equal(s.stats.echo_answered, 8);
}

/*
 * Compares the guess with the full parse: equal results where both accept, and the guess accepts
 * no frame that the parse rejects.
 */
static bool
guessed(const struct soft_port_hw *hw)
{
	struct soft_port_rx a, b;
	enum soft_port_drop why;
	bool taken;

	memset(&a, 0, sizeof(a));
	taken = soft_port_guess(&s, f.b, f.len, hw, &a);
	why = soft_port_parse(&s, f.b, f.len, hw, &b);
	if (!taken)
		return false;
	assert_int_equal(why, SOFT_DROP_NONE);
	assert_int_equal(b.proto, IPPROTO_UDP);
	assert_memory_equal(&a, &b, sizeof(a));
	return true;
}

/* A frame with the headers of an earlier one is taken by the guess, whatever else changes. */
T(test_guess_takes_only_equal_headers)
{
	static const struct soft_port_hw none, good = {.ip_good = true}, bad = {.ip_bad = true};
	const struct soft_port_hw stripped = {.vlan_stripped = true};
	uint32_t rng = 1, i, k, at, taken = 0;

	/* Nothing is cached: not even a zero frame with a correct checksum is taken. */
	memset(&f, 0, sizeof(f));
	f.len = 100;
	f.b[17] = 50;
	f.b[39] = 20;
	set16(&f, 24, 0xffff - 50);
	assert_false(guessed(&none));
	assert_false(guessed(&good));
	roce4(60);
	assert_false(guessed(&none));
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
	for (i = 0; i < 200; i++) {
		roce4(i);
		assert_int_equal(guessed(&none), f.len >= SOFT_PORT_GUESS);
		assert_int_equal(guessed(&good), f.len >= SOFT_PORT_GUESS);
		assert_false(guessed(&bad));
		assert_false(guessed(&stripped));
	}
	for (i = 0; i < 200000; i++) {
		roce4(20 + i % 64);
		for (k = 0; k <= i % 3; k++) {
			rng = rng * 1103515245 + 12345;
			at = rng >> 16 & 63;
			f.b[at < 48 ? at : 16 + at % 4] ^= (uint8_t)(1u << (rng >> 8 & 7));
		}
		if (i & 1)
			csum4();
		taken += guessed(i & 8 ? &good : &none);
	}
	assert_true(taken > 1000 && taken < 100000);
	/*
	 * A frame that a switch marked (CE) does not match unmarked ones, but matches the next
	 * marked one.
	 */
	roce4(60);
	f.b[15] = 3;
	csum4();
	assert_false(guessed(&none));
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
	assert_true(guessed(&none));
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
	assert_fields(s.stats, ecn_ce, 2, roce, 3);
}

/* A guest's kernel sets the addresses. Those of a macvlan have another MAC than the netdev's. */
T(test_hosts_datagram_has_the_mac_of_its_address)
{
	static const char *const mac[2] = {MAC_US, "\x02\xbb\x00\x00\x00\x11"};
	static const char *const own[2] = {US4, "192.0.2.17"};
	uint8_t ips[2][16], macs[2][6];
	unsigned int i, to, round;

	soft_port_stack_host(&s);
	for (i = 0; i < 2; i++) {
		memcpy(ips[i], ip_of(own[i]), sizeof(ips[i]));
		memcpy(macs[i], mac[i], sizeof(macs[i]));
	}
	soft_port_stack_set(&s, (const uint8_t(*)[16])ips, (const uint8_t(*)[6])macs, 2);
	/* In the second round the headers of the accepted frames are cached. */
	for (round = 0; round < 2; round++)
		for (i = 0; i < 2; i++)
			for (to = 0; to < 2; to++) {
				eth(&f, mac[to], MAC_PEER, 0x0800);
				udp(&f, PEER4, own[i], ROCE, 60, false);
				assert_int_equal(input(),
						 i == to ? SOFT_PORT_IN_ROCE : SOFT_PORT_IN_HOST);
			}
	/* The MACs change places. */
	for (i = 0; i < 2; i++)
		memcpy(macs[i], mac[1 - i], sizeof(macs[i]));
	soft_port_stack_set(&s, (const uint8_t(*)[16])ips, (const uint8_t(*)[6])macs, 2);
	eth(&f, mac[0], MAC_PEER, 0x0800);
	udp(&f, PEER4, own[0], ROCE, 60, false);
	assert_int_equal(input(), SOFT_PORT_IN_HOST);
	eth(&f, mac[0], MAC_PEER, 0x0800);
	udp(&f, PEER4, own[1], ROCE, 60, false);
	assert_int_equal(input(), SOFT_PORT_IN_ROCE);
}

TEST_MAIN(0)
