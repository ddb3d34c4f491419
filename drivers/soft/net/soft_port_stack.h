/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The small part of an Ethernet and IP host that a RoCEv2 port needs: frames in; RoCE
 * datagrams, answers and questions out. ARP (RFC 826), neighbour discovery (RFC 4861), ICMP
 * and ICMPv6 echo (RFC 792, RFC 4443). No fragments, no routing, no duplicate address
 * detection of its own.
 *
 * It works on bytes and knows no mbuf, no ethdev and no clock. All that comes in is hostile:
 * bounds are checked before anything is read, and each frame that is not used is counted by
 * one reason. It belongs to the port's poller, without a lock.
 */
#ifndef SOFT_PORT_STACK_H
#define SOFT_PORT_STACK_H

#include "bb_roce_qp.h"
#include "soft_neigh.h"
#include "soft_port_opts.h"

#define SOFT_PORT_ADDRS (SOFT_PORT_IPS + 1) /* 0: link-local */

/* Why a frame is not used. */
enum soft_port_drop {
	SOFT_DROP_NONE,
	SOFT_DROP_SHORT,      /* ends inside a header */
	SOFT_DROP_SRC_MAC,    /* a group's, or our own: an echo of what we sent */
	SOFT_DROP_DST_MAC,    /* another host's */
	SOFT_DROP_VLAN,       /* not our VLAN */
	SOFT_DROP_ETHERTYPE,  /* not ARP, IPv4, IPv6 */
	SOFT_DROP_IP_HEADER,  /* version, header length, IPv4 options */
	SOFT_DROP_IP_LENGTH,  /* longer than the frame, shorter than its headers */
	SOFT_DROP_IP_CSUM,    /* IPv4 header checksum */
	SOFT_DROP_FRAGMENT,   /* IPv4 or IPv6: RoCEv2 packets are never fragmented */
	SOFT_DROP_SRC_IP,     /* no host's address, or one of ours */
	SOFT_DROP_DST_IP,     /* not ours */
	SOFT_DROP_PROTOCOL,   /* not UDP, ICMP, ICMPv6; an IPv6 extension header */
	SOFT_DROP_UDP_LENGTH, /* longer than the packet, shorter than its header */
	SOFT_DROP_UDP_CSUM,
	SOFT_DROP_UDP_PORT, /* not 4791 */
	SOFT_DROP_ARP,      /* not Ethernet and IPv4, an opcode of no use, a bad sender */
	SOFT_DROP_ARP_TARGET,
	SOFT_DROP_ICMP_CSUM,
	SOFT_DROP_ICMP_TYPE,   /* nothing that is answered */
	SOFT_DROP_ND,          /* a message that RFC 4861, 7.1 calls invalid */
	SOFT_DROP_ND_TARGET,   /* not ours */
	SOFT_DROP_ADDR_IN_USE, /* somebody else says that our address is his */
	SOFT_DROP_NO_BUFFER,   /* no memory for an answer */
	SOFT_DROP_SEGMENTS,    /* in pieces that could not be put together (soft_port.c) */
	SOFT_DROPS
};
const char *soft_port_drop_str(enum soft_port_drop why);

/* What the PMD says about a frame. All false: nothing. */
struct soft_port_hw {
	bool vlan_stripped;
	bool ip_good, ip_bad;
	bool l4_good, l4_bad;
	uint16_t tci; /* if vlan_stripped */
};

/* A frame with IP, as parsed. Offsets are from the start of the frame, and lie in it. */
struct soft_port_rx {
	struct bb_roce_net net; /* sport is that of UDP */
	bool v4;
	uint8_t proto; /* IPPROTO_UDP, _ICMP, _ICMPV6 */
	uint8_t src_mac[6], dst_mac[6];
	uint16_t l3_off, l3_len; /* IP packet: what the Ethernet pads behind it is not counted */
	uint16_t l4_off, l4_len; /* UDP: as long as it says itself */
	uint16_t dport;
};
#define SOFT_UDP_HDR 8

#define SOFT_PORT_GUESSES 8u  /* power of two */
#define SOFT_PORT_GUESS   48u /* Ethernet, IPv4 and UDP, up to a whole word */

/*
 * The headers of a RoCE datagram over IPv4 that was found good, its lengths and checksum left
 * out: another one that has them all is as good, if its lengths and checksum are.
 */
struct soft_port_guess {
	uint64_t head[SOFT_PORT_GUESS / 8]; /* all 0: none */
	uint32_t sum;                       /* of its IPv4 header */
	struct soft_port_rx rx;
};

struct soft_port_stack_stats {
	uint64_t frames, roce, arp_answered, nd_answered, echo_answered, questions;
	uint64_t ecn_ce; /* of the RoCE datagrams */
	uint64_t drop[SOFT_DROPS];
};

struct soft_port_stack {
	uint8_t mac[6];
	struct soft_port_ip addr[SOFT_PORT_ADDRS];
	uint32_t n_addr;
	uint16_t vlan; /* 0: untagged */
	struct soft_neigh neigh;
	struct soft_port_stack_stats stats;
	struct soft_port_guess guess[SOFT_PORT_GUESSES];
	/*
	 * Room of @len bytes for a frame to be sent, which the caller fills before it does
	 * anything else. NULL: none now.
	 */
	uint8_t *(*room)(void *arg, uint32_t len);
	void *arg;
};

/* Addresses are those of @o and the link-local one of @mac; static neighbours too. */
void soft_port_stack_init(struct soft_port_stack *s, const struct soft_port_opts *o,
			  const uint8_t mac[6], uint8_t *(*room)(void *, uint32_t), void *arg);

/* One of our addresses. */
bool soft_port_is_ours(const struct soft_port_stack *s, const uint8_t ip[16]);
/* Is @ip on our network, so that its MAC can be asked for? Then *src is who asks (NULL: no). */
const uint8_t *soft_port_on_link(const struct soft_port_stack *s, const uint8_t ip[16]);

/* ---- soft_port_parse.c */
/*
 * Parse a frame down to ARP or to the protocol above IP. SOFT_DROP_NONE: *rx is complete, and
 * rx->l3_len is 0 for ARP, whose bytes begin at rx->l3_off.
 */
enum soft_port_drop soft_port_parse(const struct soft_port_stack *s, const uint8_t *p, uint32_t len,
				    const struct soft_port_hw *hw, struct soft_port_rx *rx);
/*
 * The same, quickly, of a RoCE datagram that is as the one before it from there; false: it is not,
 * or not known to be. @len bytes are the frame's, and SOFT_PORT_GUESS can be read of it.
 */
bool soft_port_guess(const struct soft_port_stack *s, const uint8_t *p, uint32_t len,
		     const struct soft_port_hw *hw, struct soft_port_rx *rx);
/* Remember a RoCE datagram that soft_port_parse() took. */
void soft_port_learn(struct soft_port_stack *s, const uint8_t *p, uint32_t len,
		     const struct soft_port_hw *hw, const struct soft_port_rx *rx);
/* The checksum of @l4_len bytes with the pseudo header of *rx, 0 if the one inside is right. */
uint16_t soft_port_l4_sum(const uint8_t *p, const struct soft_port_rx *rx);
/* The same of a frame we build: @ip_src and @ip_dst as they stand in its IP header. */
uint16_t soft_port_csum(const uint8_t *src, const uint8_t *dst, uint32_t addr_len, uint8_t proto,
			const uint8_t *l4, uint32_t len);

/* ---- soft_port_stack.c */
enum soft_port_in {
	SOFT_PORT_IN_DROPPED,
	SOFT_PORT_IN_DONE, /* ARP, ND or ICMP: dealt with */
	SOFT_PORT_IN_ROCE, /* *rx is a RoCE datagram for one of our addresses */
};
enum soft_port_in soft_port_input(struct soft_port_stack *s, const uint8_t *p, uint32_t len,
				  const struct soft_port_hw *hw, struct soft_port_rx *rx,
				  uint64_t now);

/* The MAC for packets to @ip: a neighbour's, or pending. Off our networks: static ones only. */
enum soft_neigh_answer soft_port_resolve(struct soft_port_stack *s, const uint8_t ip[16],
					 uint64_t now, uint16_t *hint, uint8_t mac[6]);

/* Write an Ethernet header, with our tag if there is one; returns its length. */
uint32_t soft_port_put_eth(const struct soft_port_stack *s, uint8_t *p, const uint8_t dst[6],
			   uint16_t type);
static inline uint32_t
soft_port_eth_len(const struct soft_port_stack *s)
{
	return s->vlan != 0 ? 18 : 14;
}
/* An IP header for @len bytes after its end; returns its length. IPv4: its checksum is written. */
uint32_t soft_port_put_ip(uint8_t *p, const struct bb_roce_net *net, uint8_t proto, uint32_t len);

/* ---- soft_port_echo.c */
enum soft_port_drop soft_port_echo(struct soft_port_stack *s, const uint8_t *p,
				   const struct soft_port_rx *rx);

/* ---- soft_neigh_msg.c */
enum soft_port_drop soft_neigh_arp(struct soft_port_stack *s, const uint8_t *arp, uint32_t len,
				   const struct soft_port_rx *rx, uint64_t now);
enum soft_port_drop soft_neigh_nd(struct soft_port_stack *s, const uint8_t *p,
				  const struct soft_port_rx *rx, uint64_t now);
/* soft_neigh_ask_t */
bool soft_neigh_question(void *stack, const uint8_t ip[16], const uint8_t *mac);

#endif
