/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "stack_fixture.h"

#define T(name) TEST_WITH(setup, NULL, name)

T(test_arp_request_is_answered)
{
	uint8_t mac[6];

	arp(&f, MAC_ALL, 1, MAC_PEER, PEER4, "\0\0\0\0\0\0", US4);
	f.len += 18; /* 60 bytes, as Ethernet pads */
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	arp(&f, MAC_PEER, 2, MAC_US, US4, MAC_PEER, PEER4);
	assert_int_equal(out.len, f.len);
	assert_memory_equal(out.b, f.b, f.len);
	/* The sender of a request is known from then on: no request is needed. */
	assert_int_equal(soft_port_resolve(&s, ip_of(PEER4), SEC, NULL, mac), SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, MAC_PEER, 6);
}

T(test_malformed_arp_is_dropped)
{
	uint8_t mac[6];

	arp(&f, MAC_ALL, 1, MAC_PEER, PEER4, "\0\0\0\0\0\0", "192.0.2.7");
	dropped(SOFT_DROP_ARP_TARGET);
	arp(&f, MAC_ALL, 3, MAC_PEER, PEER4, "\0\0\0\0\0\0", US4);
	dropped(SOFT_DROP_ARP);
	arp(&f, MAC_ALL, 1, MAC_PEER, PEER4, "\0\0\0\0\0\0", US4);
	f.b[14] = 1; /* hardware type */
	dropped(SOFT_DROP_ARP);
	arp(&f, MAC_ALL, 1, MAC_PEER, PEER4, "\0\0\0\0\0\0", US4);
	f.b[18] = 8; /* address lengths */
	dropped(SOFT_DROP_ARP);
	arp(&f, MAC_ALL, 1, MAC_PEER, PEER4, "\0\0\0\0\0\0", US4);
	memcpy(f.b + 22, MAC_ALL, 6);
	dropped(SOFT_DROP_ARP);
	memset(f.b + 22, 0, 6);
	dropped(SOFT_DROP_ARP);
	arp(&f, MAC_ALL, 1, MAC_PEER, "198.51.100.2", "\0\0\0\0\0\0", US4);
	dropped(SOFT_DROP_ARP); /* not on our network */
	arp(&f, MAC_ALL, 1, MAC_PEER, "192.0.2.255", "\0\0\0\0\0\0", US4);
	dropped(SOFT_DROP_ARP);
	arp(&f, MAC_ALL, 1, MAC_PEER, US4, "\0\0\0\0\0\0", US4);
	dropped(SOFT_DROP_ADDR_IN_USE);
	arp(&f, MAC_ALL, 1, MAC_PEER, PEER4, "\0\0\0\0\0\0", US4);
	no_room = true;
	dropped(SOFT_DROP_NO_BUFFER);
	no_room = false;
	assert_int_equal(s.neigh.count, 2);
	/* An address probe is answered; the sender is not learned. */
	arp(&f, MAC_ALL, 1, "\x02\xcc\0\0\0\x07", "0.0.0.0", "\0\0\0\0\0\0", US4);
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_int_equal(sent, 1);
	assert_int_equal(s.neigh.count, 2);
	/* An unsolicited answer makes no entry and updates a known one. */
	arp(&f, MAC_US, 2, MAC_PEER, "192.0.2.8", MAC_US, US4);
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_int_equal(s.neigh.count, 2);
	arp(&f, MAC_ALL, 2, "\x02\xcc\0\0\0\x08", PEER4, MAC_ALL, PEER4);
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_int_equal(soft_port_resolve(&s, ip_of(PEER4), SEC, NULL, mac), SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, "\x02\xcc\0\0\0\x08", 6);
}

T(test_arp_request_learns_from_its_answer)
{
	uint8_t mac[6];

	assert_int_equal(soft_port_resolve(&s, ip_of(PEER4), SEC, NULL, mac), SOFT_NEIGH_PENDING);
	arp(&f, MAC_ALL, 1, MAC_US, US4, "\0\0\0\0\0\0", PEER4);
	assert_int_equal(out.len, f.len);
	assert_memory_equal(out.b, f.b, f.len);
	arp(&f, MAC_US, 2, MAC_PEER, PEER4, MAC_US, US4);
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_int_equal(soft_port_resolve(&s, ip_of(PEER4), SEC, NULL, mac), SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, MAC_PEER, 6);
	assert_int_equal(s.stats.questions, 1);
	/* Later the neighbour is probed by unicast. */
	soft_neigh_tick(&s.neigh, 40 * SEC);
	assert_int_equal(soft_port_resolve(&s, ip_of(PEER4), 41 * SEC, NULL, mac),
			 SOFT_NEIGH_FOUND);
	assert_int_equal(sent, 2);
	assert_memory_equal(out.b, MAC_PEER, 6);
}

T(test_neighbour_solicitation_is_answered)
{
	uint8_t mac[6];

	nd(&f, "\x33\x33\xff\0\0\x01", PEER6, "ff02::1:ff00:1", 135, 0, US6, MAC_PEER);
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_memory_equal(out.b, MAC_PEER, 6);
	assert_int_equal(out.len, 14 + 40 + 32);
	assert_memory_equal(out.b + 22, ip_of(US6), 16);
	assert_memory_equal(out.b + 38, ip_of(PEER6), 16);
	assert_fields(out, b[21], 255, b[54], 136, b[58], 0x60);
	assert_memory_equal(out.b + 62, ip_of(US6), 16);
	assert_memory_equal(out.b + 78, "\x02\x01" MAC_US, 8);
	assert_int_equal(l4_sum(&out, 14, 54, IPPROTO_ICMPV6), 0);
	assert_int_equal(soft_port_resolve(&s, ip_of(PEER6), SEC, NULL, mac), SOFT_NEIGH_FOUND);
	/*
	 * A solicitation to the link-local address without the option is answered to the sender's
	 * MAC.
	 */
	nd(&f, MAC_US, "fe80::2", LL, 135, 0, LL, NULL);
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_memory_equal(out.b, MAC_PEER, 6);
	/* Duplicate address detection for our address is answered to all nodes. */
	nd(&f, "\x33\x33\xff\0\0\x01", "::", "ff02::1:ff00:1", 135, 0, US6, NULL);
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_memory_equal(out.b, "\x33\x33\0\0\0\x01", 6);
	assert_memory_equal(out.b + 38, ip_of("ff02::1"), 16);
	assert_int_equal(out.b[58], 0x20);
	assert_int_equal(l4_sum(&out, 14, 54, IPPROTO_ICMPV6), 0);
	assert_int_equal(s.stats.nd_answered, 3);
}

/* Recomputes the checksum after a change to the message of nd(). */
static void
nd_sum(void)
{
	set16(&f, 56, 0);
	set16(&f, 56, l4_sum(&f, 14, 54, IPPROTO_ICMPV6));
}

T(test_malformed_neighbour_discovery_is_dropped)
{
	nd(&f, MAC_US, PEER6, US6, 135, 0, "2001:db8::7", MAC_PEER);
	dropped(SOFT_DROP_ND_TARGET);
	nd(&f, MAC_US, PEER6, US6, 135, 0, US4, MAC_PEER);
	dropped(SOFT_DROP_ND_TARGET);
	nd(&f, MAC_US, PEER6, US6, 135, 0, US6, MAC_PEER);
	f.b[21] = 254; /* passed a router */
	dropped(SOFT_DROP_ND);
	nd(&f, MAC_US, PEER6, US6, 135, 0, US6, MAC_PEER);
	f.b[55] = 1; /* code */
	nd_sum();
	dropped(SOFT_DROP_ND);
	nd(&f, MAC_US, PEER6, US6, 135, 0, US6, MAC_PEER);
	f.b[57] ^= 1;
	dropped(SOFT_DROP_ICMP_CSUM);
	nd(&f, MAC_US, PEER6, US6, 135, 0, US6, MAC_PEER);
	f.b[79] = 0; /* an option of length 0 would loop forever */
	nd_sum();
	dropped(SOFT_DROP_ND);
	f.b[79] = 2; /* longer than the message */
	nd_sum();
	dropped(SOFT_DROP_ND);
	nd(&f, MAC_US, PEER6, US6, 135, 0, US6, MAC_ALL);
	dropped(SOFT_DROP_ND);
	nd(&f, MAC_US, "2001:db8:1::2", US6, 135, 0, US6, MAC_PEER);
	dropped(SOFT_DROP_ND); /* not on our network */
	/* Duplicate detection with the option, or not to the group. */
	nd(&f, "\x33\x33\xff\0\0\x01", "::", "ff02::1:ff00:1", 135, 0, US6, MAC_PEER);
	dropped(SOFT_DROP_ND);
	nd(&f, MAC_US, "::", US6, 135, 0, US6, NULL);
	dropped(SOFT_DROP_ND);
	nd(&f, "\x33\x33\0\0\0\x01", PEER6, "ff02::1", 136, 0x40, PEER6, MAC_PEER);
	dropped(SOFT_DROP_ND); /* a group asks */
	nd(&f, MAC_US, PEER6, US6, 136, 0x60, "ff02::5", MAC_PEER);
	dropped(SOFT_DROP_ND);
	nd(&f, MAC_US, PEER6, US6, 136, 0x60, PEER4, MAC_PEER);
	dropped(SOFT_DROP_ND);
	nd(&f, MAC_US, PEER6, US6, 136, 0x60, US6, MAC_PEER);
	dropped(SOFT_DROP_ADDR_IN_USE);
	assert_int_equal(s.neigh.count, 1);
}

T(test_neighbour_solicitation_has_its_fields)
{
	uint8_t mac[6];

	assert_int_equal(soft_port_resolve(&s, ip_of(PEER6), SEC, NULL, mac), SOFT_NEIGH_PENDING);
	assert_memory_equal(out.b, "\x33\x33\xff\0\0\x02", 6);
	assert_memory_equal(out.b + 22, ip_of(US6), 16);
	assert_memory_equal(out.b + 38, ip_of("ff02::1:ff00:2"), 16);
	assert_int_equal(out.b[54], 135);
	assert_memory_equal(out.b + 62, ip_of(PEER6), 16);
	assert_memory_equal(out.b + 78, "\x01\x01" MAC_US, 8);
	assert_int_equal(l4_sum(&out, 14, 54, IPPROTO_ICMPV6), 0);
	nd(&f, MAC_US, PEER6, US6, 136, 0x60, PEER6, "\x02\xcc\0\0\0\x05");
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_int_equal(soft_port_resolve(&s, ip_of(PEER6), SEC, NULL, mac), SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, "\x02\xcc\0\0\0\x05", 6);
	/* Link-local addresses are solicited from the link-local address. */
	assert_int_equal(soft_port_resolve(&s, ip_of("fe80::9"), SEC, NULL, mac),
			 SOFT_NEIGH_PENDING);
	assert_memory_equal(out.b + 22, ip_of(LL), 16);
	/* The answer to a unicast solicitation may omit the MAC. */
	nd(&f, MAC_US, "fe80::9", LL, 136, 0x60, "fe80::9", NULL);
	assert_int_equal(input(), SOFT_PORT_IN_DONE);
	assert_int_equal(soft_port_resolve(&s, ip_of("fe80::9"), SEC, NULL, mac), SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, MAC_PEER, 6);
	soft_neigh_tick(&s.neigh, 40 * SEC);
	sent = 0;
	assert_int_equal(soft_port_resolve(&s, ip_of(PEER6), 41 * SEC, NULL, mac),
			 SOFT_NEIGH_FOUND);
	assert_int_equal(sent, 1);
	assert_memory_equal(out.b, "\x02\xcc\0\0\0\x05", 6);
	assert_memory_equal(out.b + 38, ip_of(PEER6), 16);
}

T(test_only_hosts_on_link_routers_and_groups_are_reachable)
{
	static const char *const no[] = {"198.51.100.2",  "192.0.2.0", "192.0.2.255", US4, US6, LL,
					 "2001:db8:1::2", "0.0.0.0"};
	uint8_t mac[6];

	for (unsigned int i = 0; i < RTE_DIM(no); i++)
		assert_int_equal(soft_port_resolve(&s, ip_of(no[i]), SEC, NULL, mac),
				 SOFT_NEIGH_UNREACHABLE);
	assert_int_equal(sent, 0);
	/* Addresses off our networks: by a static neighbour, the MAC of a router. */
	assert_int_equal(soft_port_resolve(&s, ip_of("203.0.113.9"), SEC, NULL, mac),
			 SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, "\x02\xdd\0\0\0\x09", 6);
	/* The MAC of a group follows from its address. */
	assert_int_equal(soft_port_resolve(&s, ip_of("224.0.0.1"), SEC, NULL, mac),
			 SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, "\x01\x00\x5e\0\0\x01", 6);
	assert_int_equal(soft_port_resolve(&s, ip_of("ff02::1"), SEC, NULL, mac), SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, "\x33\x33\0\0\0\x01", 6);
	assert_int_equal(sent, 0);
}

TEST_MAIN(0)
