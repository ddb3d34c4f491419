/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Parser of received frames, down to the protocol above IP. */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "bb_bytes.h"
#include "soft_mcg.h"
#include "soft_port_stack.h"

#define VID_MASK 0xfff

const char *
soft_port_drop_str(enum soft_port_drop why)
{
	static const char *const text[SOFT_DROPS] = {
		[SOFT_DROP_NONE] = "none",
		[SOFT_DROP_SHORT] = "short",
		[SOFT_DROP_SRC_MAC] = "src_mac",
		[SOFT_DROP_DST_MAC] = "dst_mac",
		[SOFT_DROP_VLAN] = "vlan",
		[SOFT_DROP_ETHERTYPE] = "ethertype",
		[SOFT_DROP_IP_HEADER] = "ip_header",
		[SOFT_DROP_IP_LENGTH] = "ip_length",
		[SOFT_DROP_IP_CSUM] = "ip_csum",
		[SOFT_DROP_FRAGMENT] = "fragment",
		[SOFT_DROP_SRC_IP] = "src_ip",
		[SOFT_DROP_DST_IP] = "dst_ip",
		[SOFT_DROP_PROTOCOL] = "protocol",
		[SOFT_DROP_UDP_LENGTH] = "udp_length",
		[SOFT_DROP_UDP_CSUM] = "udp_csum",
		[SOFT_DROP_UDP_PORT] = "udp_port",
		[SOFT_DROP_ARP] = "arp",
		[SOFT_DROP_ARP_TARGET] = "arp_target",
		[SOFT_DROP_ICMP_CSUM] = "icmp_csum",
		[SOFT_DROP_ICMP_TYPE] = "icmp_type",
		[SOFT_DROP_ND] = "nd",
		[SOFT_DROP_ND_TARGET] = "nd_target",
		[SOFT_DROP_ADDR_IN_USE] = "addr_in_use",
		[SOFT_DROP_NO_BUFFER] = "no_buffer",
		[SOFT_DROP_SEGMENTS] = "segments",
	};

	return (unsigned int)why < SOFT_DROPS ? text[why] : "?";
}

/* Adds bytes in network order to a one's complement sum (RFC 1071). */
static uint32_t
sum_add(uint32_t sum, const uint8_t *p, uint32_t len)
{
	return sum + rte_raw_cksum(p, len);
}

static uint16_t
sum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~((sum & 0xffff) + (sum >> 16));
}

uint16_t
soft_port_csum(const uint8_t *src, const uint8_t *dst, uint32_t addr_len, uint8_t proto,
	       const uint8_t *l4, uint32_t len)
{
	const uint8_t pseudo[4] = {0, proto, (uint8_t)(len >> 8), (uint8_t)len};
	uint32_t sum = sum_add(0, l4, len);

	if (addr_len != 0) {
		sum = sum_add(sum, src, addr_len);
		sum = sum_add(sum, dst, addr_len);
		sum = sum_add(sum, pseudo, sizeof(pseudo));
	}
	return sum_fold(sum);
}

uint16_t
soft_port_l4_sum(const uint8_t *p, const struct soft_port_rx *rx)
{
	uint32_t addr_len = rx->v4 ? 4 : 16;
	const uint8_t *src = p + rx->l3_off + (rx->v4 ? 12 : 8);

	/* The checksum of ICMP has no pseudo header, that of ICMPv6 has one (RFC 4443, 2.3). */
	if (rx->proto == IPPROTO_ICMP)
		addr_len = 0;
	return soft_port_csum(src, src + (rx->v4 ? 4 : 16), addr_len, rx->proto, p + rx->l4_off,
			      rx->l4_len);
}

/*
 * Returns true for the port's MAC, broadcast, and multicast of IPv4 and IPv6. Neighbour discovery
 * sends to groups, too.
 */
static bool
mac_for_us(const struct soft_port_stack *s, const uint8_t mac[6])
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	return memcmp(mac, s->mac, 6) == 0 || memcmp(mac, all, 6) == 0 ||
	       (mac[0] == 0x33 && mac[1] == 0x33) ||
	       (mac[0] == 0x01 && mac[1] == 0x00 && mac[2] == 0x5e);
}

/*
 * Parses the VLAN tag. A port with a VLAN accepts only frames with that tag. A port without a VLAN
 * accepts frames without a tag, or with VID 0, which only sets a priority (802.1Q, 9.6). A frame
 * with two tags belongs to another network.
 */
static enum soft_port_drop
parse_tag(const struct soft_port_stack *s, const uint8_t *p, uint32_t len,
	  const struct soft_port_hw *hw, struct soft_port_rx *rx, uint16_t *type)
{
	bool tagged = hw->vlan_stripped;
	uint16_t tci = hw->tci;

	*type = bb_get16(p + 12);
	rx->l3_off = 14;
	if (*type == RTE_ETHER_TYPE_VLAN) {
		if (tagged)
			return SOFT_DROP_VLAN;
		if (len < 18)
			return SOFT_DROP_SHORT;
		tagged = true;
		tci = bb_get16(p + 14);
		*type = bb_get16(p + 16);
		rx->l3_off = 18;
	}
	return (tagged ? tci & VID_MASK : 0) == s->vlan ? SOFT_DROP_NONE : SOFT_DROP_VLAN;
}

static enum soft_port_drop
parse_ipv4(const uint8_t *ip, uint32_t len, const struct soft_port_hw *hw, struct soft_port_rx *rx)
{
	uint32_t total;

	if (len < 20)
		return SOFT_DROP_SHORT;
	/*
	 * Rejects IP options, because the ICRC is defined over an IP header of 20 bytes (annex
	 * A17.3.3).
	 */
	if (ip[0] != 0x45)
		return SOFT_DROP_IP_HEADER;
	total = bb_get16(ip + 2);
	if (total < 20 || total > len)
		return SOFT_DROP_IP_LENGTH;
	if (hw->ip_bad || (!hw->ip_good && sum_fold(sum_add(0, ip, 20)) != 0))
		return SOFT_DROP_IP_CSUM;
	if ((bb_get16(ip + 6) & 0x3fff) != 0) /* The flag MF or a fragment offset is set. */
		return SOFT_DROP_FRAGMENT;
	rx->v4 = true;
	rx->proto = ip[9];
	rx->l3_len = (uint16_t)total;
	rx->l4_off = rx->l3_off + 20;
	rx->l4_len = (uint16_t)(total - 20);
	soft_ip_map_v4(rx->net.src, ip + 12);
	soft_ip_map_v4(rx->net.dst, ip + 16);
	rx->net.tclass = ip[1];
	rx->net.hop_limit = ip[8];
	return SOFT_DROP_NONE;
}

static enum soft_port_drop
parse_ipv6(const uint8_t *ip, uint32_t len, struct soft_port_rx *rx)
{
	uint32_t payload;

	if (len < 40)
		return SOFT_DROP_SHORT;
	if (ip[0] >> 4 != 6)
		return SOFT_DROP_IP_HEADER;
	payload = bb_get16(ip + 4);
	if (payload > len - 40)
		return SOFT_DROP_IP_LENGTH;
	if (ip[6] == IPPROTO_FRAGMENT)
		return SOFT_DROP_FRAGMENT;
	rx->v4 = false;
	rx->proto = ip[6];
	rx->l3_len = (uint16_t)(40 + payload);
	rx->l4_off = rx->l3_off + 40;
	rx->l4_len = (uint16_t)payload;
	memcpy(rx->net.src, ip + 8, 16);
	memcpy(rx->net.dst, ip + 24, 16);
	rx->net.tclass = (uint8_t)(bb_get16(ip) >> 4);
	rx->net.flow_label = (uint32_t)(ip[1] & 0xf) << 16 | bb_get16(ip + 2);
	rx->net.hop_limit = ip[7];
	/*
	 * An IPv4-mapped source address in an IPv6 header does not prove that the IPv4 host sent
	 * the packet (RFC 4942, 2.2).
	 */
	if (soft_ip_is_v4(rx->net.src))
		return SOFT_DROP_SRC_IP;
	return soft_ip_is_v4(rx->net.dst) ? SOFT_DROP_DST_IP : SOFT_DROP_NONE;
}

/*
 * Checks source and destination. Group addresses are valid for neighbour discovery and for
 * datagrams.
 */
static enum soft_port_drop
check_addrs(const struct soft_port_stack *s, const struct soft_port_rx *rx)
{
	static const uint8_t unspecified[16];
	uint8_t mac[6];
	bool nd = rx->proto == IPPROTO_ICMPV6 && !rx->v4;
	const uint8_t *own;

	/* A host that does duplicate address detection sends from :: (RFC 4861, 4.3). */
	if (!soft_ip_is_host(rx->net.src) && !(nd && memcmp(rx->net.src, unspecified, 16) == 0))
		return SOFT_DROP_SRC_IP;
	if (soft_port_is_own_addr(s, rx->net.src))
		return SOFT_DROP_SRC_IP;
	if (nd && rx->net.dst[0] == 0xff)
		return SOFT_DROP_NONE;
	/*
	 * Accepts any multicast group. A later lookup finds the queue pairs that are attached to
	 * the group.
	 */
	if (rx->proto == IPPROTO_UDP && bb_roce_is_mcast(rx->net.dst)) {
		soft_mcast_mac(rx->net.dst, mac);
		return memcmp(rx->dst_mac, mac, 6) == 0 ? SOFT_DROP_NONE : SOFT_DROP_DST_MAC;
	}
	own = soft_port_own_mac(s, rx->net.dst);
	if (own == NULL)
		return SOFT_DROP_DST_IP;
	/* RFC 1122, 3.3.6: a broadcast frame must not carry a unicast IP address. */
	return memcmp(rx->dst_mac, own, 6) == 0 ? SOFT_DROP_NONE : SOFT_DROP_DST_MAC;
}

static enum soft_port_drop
parse_udp(const uint8_t *p, const struct soft_port_hw *hw, struct soft_port_rx *rx)
{
	const uint8_t *udp = p + rx->l4_off;
	uint32_t len;

	if (rx->l4_len < SOFT_UDP_HDR)
		return SOFT_DROP_SHORT;
	len = bb_get16(udp + 4);
	if (len < SOFT_UDP_HDR || len > rx->l4_len)
		return SOFT_DROP_UDP_LENGTH;
	rx->l4_len = (uint16_t)len;
	rx->net.sport = bb_get16(udp);
	rx->dport = bb_get16(udp + 2);
	if (rx->dport != BB_ROCE_UDP_PORT)
		return SOFT_DROP_UDP_PORT;
	/*
	 * A checksum field of 0 means none. Annex A17 allows that over IPv6, too, because the ICRC
	 * covers the packet.
	 */
	if (bb_get16(udp + 6) != 0 &&
	    (hw->l4_bad || (!hw->l4_good && soft_port_l4_sum(p, rx) != 0)))
		return SOFT_DROP_UDP_CSUM;
	return SOFT_DROP_NONE;
}

enum soft_port_drop
soft_port_parse(const struct soft_port_stack *s, const uint8_t *p, uint32_t len,
		const struct soft_port_hw *hw, struct soft_port_rx *rx)
{
	enum soft_port_drop why;
	uint16_t type;

	memset(rx, 0, sizeof(*rx));
	if (len < 14)
		return SOFT_DROP_SHORT;
	len = RTE_MIN(len, UINT16_MAX);
	memcpy(rx->dst_mac, p, 6);
	memcpy(rx->src_mac, p + 6, 6);
	if ((p[6] & 1) != 0 || memcmp(p + 6, s->mac, 6) == 0)
		return SOFT_DROP_SRC_MAC;
	/* A host's addresses may have MACs of their own: see check_addrs(). */
	if (!s->hosted && !mac_for_us(s, p))
		return SOFT_DROP_DST_MAC;
	why = parse_tag(s, p, len, hw, rx, &type);
	if (why != SOFT_DROP_NONE)
		return why;
	switch (type) {
	case RTE_ETHER_TYPE_ARP:
		return SOFT_DROP_NONE;
	case RTE_ETHER_TYPE_IPV4:
		why = parse_ipv4(p + rx->l3_off, len - rx->l3_off, hw, rx);
		break;
	case RTE_ETHER_TYPE_IPV6:
		why = parse_ipv6(p + rx->l3_off, len - rx->l3_off, rx);
		break;
	default:
		return SOFT_DROP_ETHERTYPE;
	}
	if (why == SOFT_DROP_NONE)
		why = check_addrs(s, rx);
	if (why != SOFT_DROP_NONE)
		return why;
	if (rx->proto == IPPROTO_UDP)
		return parse_udp(p, hw, rx);
	if (rx->proto == (rx->v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return SOFT_DROP_NONE;
	return SOFT_DROP_PROTOCOL;
}

/* ---- Cached headers */

/* Mask of the bytes to compare: all but the lengths of IP and UDP, and the IP checksum. */
static const uint8_t compared[SOFT_PORT_GUESS] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0,    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0,    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0,    0,    0xff, 0xff, 0,    0,    0,    0,    0,    0,
};

#define GUESS_L3  14u
#define GUESS_UDP 34u
#define GUESS_BTH 42u

/*
 * Returns the cache slot of a datagram. The slot depends on the last bytes of the source address
 * and port, in which peers and their QPs differ.
 */
static inline uint32_t
guess_of(const uint8_t *p)
{
	return (p[GUESS_L3 + 15] ^ p[GUESS_UDP + 1]) & (SOFT_PORT_GUESSES - 1);
}

static inline uint64_t
compared_word(const uint8_t *p, uint32_t i)
{
	uint64_t v, mask;

	memcpy(&v, p + 8 * i, sizeof(v));
	memcpy(&mask, compared + 8 * i, sizeof(mask));
	return v & mask;
}

void
soft_port_learn(struct soft_port_stack *s, const uint8_t *p, uint32_t len,
		const struct soft_port_hw *hw, const struct soft_port_rx *rx)
{
	struct soft_port_guess *g;
	uint8_t ip[20];
	uint32_t i;

	/*
	 * Does not cache a frame with a VLAN tag or a UDP checksum: soft_port_guess() compares
	 * neither.
	 */
	if (!rx->v4 || rx->l3_off != GUESS_L3 || hw->vlan_stripped || len < SOFT_PORT_GUESS ||
	    bb_get16(p + GUESS_UDP + 6) != 0)
		return;
	g = &s->guess[guess_of(p)];
	for (i = 0; i < SOFT_PORT_GUESS / 8; i++)
		g->head[i] = compared_word(p, i);
	memcpy(ip, p + GUESS_L3, sizeof(ip));
	memset(ip + 2, 0, 2);
	memset(ip + 10, 0, 2);
	g->sum = sum_add(0, ip, sizeof(ip));
	g->rx = *rx;
}

bool
soft_port_guess(const struct soft_port_stack *s, const uint8_t *p, uint32_t len,
		const struct soft_port_hw *hw, struct soft_port_rx *rx)
{
	const struct soft_port_guess *g;
	uint32_t i, total, udp, sum;
	uint64_t diff = 0;
	uint16_t w[2];

	if (len < SOFT_PORT_GUESS || hw->vlan_stripped || hw->ip_bad)
		return false;
	g = &s->guess[guess_of(p)];
	for (i = 0; i < SOFT_PORT_GUESS / 8; i++)
		diff |= compared_word(p, i) ^ g->head[i];
	if (diff != 0 || !g->rx.v4)
		return false;
	total = bb_get16(p + GUESS_L3 + 2);
	udp = bb_get16(p + GUESS_UDP + 4);
	if (total > RTE_MIN(len, UINT16_MAX) - GUESS_L3 || total < GUESS_BTH - GUESS_L3 ||
	    udp > total - 20 || udp < SOFT_UDP_HDR)
		return false;
	memcpy(&w[0], p + GUESS_L3 + 2, 2);
	memcpy(&w[1], p + GUESS_L3 + 10, 2);
	sum = g->sum + w[0] + w[1];
	if (!hw->ip_good && sum_fold(sum) != 0)
		return false;
	*rx = g->rx;
	rx->l3_len = (uint16_t)total;
	rx->l4_len = (uint16_t)udp;
	return true;
}
