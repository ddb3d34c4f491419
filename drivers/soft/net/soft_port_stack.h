/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The small part of an Ethernet and IP host that a RoCEv2 port needs. The stack parses received
 * frames and passes RoCE datagrams on. The stack resolves MACs, and replies to requests of other
 * hosts. It supports ARP (RFC 826), neighbour discovery (RFC 4861), and ICMP and ICMPv6 echo (RFC
 * 792, RFC 4443). It does not support fragments, routing, or duplicate address detection.
 *
 * The stack works on bytes, and does not use mbufs, ethdevs or a clock. All input may be hostile,
 * so bounds are checked before each read. Each discarded frame is counted under one reason. The
 * stack belongs to the thread that polls the port, and takes no lock.
 */
#ifndef SOFT_PORT_STACK_H
#define SOFT_PORT_STACK_H

#include "bb_roce_qp.h"
#include "soft_neigh.h"
#include "soft_port_opts.h"

/*
 * Largest number of addresses. The options set at most SOFT_PORT_IPS, after the link-local address
 * at index 0. A guest's kernel may set all of them.
 */
#define SOFT_PORT_ADDRS 16u

/* Reason for which a frame is discarded. */
enum soft_port_drop {
	SOFT_DROP_NONE,
	SOFT_DROP_SHORT,     /* The frame ends inside a header. */
	SOFT_DROP_SRC_MAC,   /* Sent by a group MAC, or by the port's own MAC (a loop). */
	SOFT_DROP_DST_MAC,   /* Sent to the MAC of another host. */
	SOFT_DROP_VLAN,      /* VLAN other than the port's. */
	SOFT_DROP_ETHERTYPE, /* Ethertype other than ARP, IPv4 or IPv6. */
	SOFT_DROP_IP_HEADER, /* Bad version or header length, or IPv4 options. */
	SOFT_DROP_IP_LENGTH, /* IP length greater than the frame's, or less than the headers'. */
	SOFT_DROP_IP_CSUM,   /* Bad IPv4 header checksum. */
	SOFT_DROP_FRAGMENT,  /* IPv4 or IPv6 fragment: RoCEv2 packets are never fragmented. */
	SOFT_DROP_SRC_IP, /* Source is not an address of a host, or is one of the port's addresses.
			   */
	SOFT_DROP_DST_IP, /* Destination is not an address of the port. */
	SOFT_DROP_PROTOCOL,   /* Protocol other than UDP and ICMP, or an IPv6 extension header. */
	SOFT_DROP_UDP_LENGTH, /* UDP length greater than the packet's, or less than the header's. */
	SOFT_DROP_UDP_CSUM,
	SOFT_DROP_UDP_PORT, /* UDP port other than 4791. */
	SOFT_DROP_ARP, /* ARP of another network type, with an unknown opcode or a bad sender. */
	SOFT_DROP_ARP_TARGET,
	SOFT_DROP_ICMP_CSUM,
	SOFT_DROP_ICMP_TYPE,   /* ICMP type to which the port does not reply. */
	SOFT_DROP_ND,          /* Neighbour discovery message that is invalid by RFC 4861, 7.1. */
	SOFT_DROP_ND_TARGET,   /* Neighbour discovery for an address that the port does not have. */
	SOFT_DROP_ADDR_IN_USE, /* Another host claims one of the port's addresses. */
	SOFT_DROP_NO_BUFFER,   /* No mbuf is free for the reply. */
	SOFT_DROP_SEGMENTS,    /* Chain of mbufs that could not be linearized (soft_port.c). */
	SOFT_DROPS
};
const char *soft_port_drop_str(enum soft_port_drop why);

/* Results of the PMD's checks of a frame. All false if the PMD made no checks. */
struct soft_port_hw {
	bool vlan_stripped;
	bool ip_good, ip_bad;
	bool l4_good, l4_bad;
	uint16_t tci; /* VLAN tag control information; valid if vlan_stripped. */
};

/* A parsed frame with IP. Offsets count from the start of the frame, and lie inside it. */
struct soft_port_rx {
	struct bb_roce_net net; /* net.sport is the UDP source port. */
	bool v4;
	uint8_t proto; /* IPPROTO_UDP, IPPROTO_ICMP or IPPROTO_ICMPV6. */
	uint8_t src_mac[6], dst_mac[6];
	uint16_t l3_off, l3_len; /* IP packet, without Ethernet padding. */
	uint16_t l4_off, l4_len; /* For UDP, l4_len is the length field of the UDP header. */
	uint16_t dport;
};
#define SOFT_UDP_HDR 8

#define SOFT_PORT_GUESSES 8u  /* Number of cached headers; a power of two. */
#define SOFT_PORT_GUESS   48u /* Bytes of Ethernet, IPv4 and UDP headers, rounded up to a word. */

/*
 * Cached headers of a valid RoCE datagram over IPv4, without lengths and checksum. If another
 * datagram has equal headers, only its lengths and checksum need a check.
 */
struct soft_port_guess {
	/* First bytes of the frame; all 0 if the slot is empty. */
	uint64_t head[SOFT_PORT_GUESS / 8];
	uint32_t sum; /* Partial checksum of the IPv4 header, without lengths and checksum field. */
	struct soft_port_rx rx;
};

struct soft_port_stack_stats {
	uint64_t frames, roce, hosted, arp_answered, nd_answered, echo_answered, questions;
	uint64_t ecn_ce; /* Number of RoCE datagrams with the ECN mark CE. */
	uint64_t drop[SOFT_DROPS];
};

struct soft_port_stack {
	uint8_t mac[6];
	struct soft_port_ip addr[SOFT_PORT_ADDRS];
	uint8_t addr_mac[SOFT_PORT_ADDRS][6]; /* The MAC that goes with each address. */
	uint32_t n_addr;
	uint16_t vlan; /* 0 if untagged. */
	/*
	 * The host, a guest's kernel, sets the addresses, resolves MACs, and gets each frame that
	 * is no RoCE datagram. The stack answers nothing.
	 */
	bool hosted;
	struct soft_neigh neigh;
	struct soft_port_stack_stats stats;
	struct soft_port_guess guess[SOFT_PORT_GUESSES];
	/*
	 * Returns memory for a frame of @len bytes to send, or NULL if the queue is full or no mbuf
	 * is free. The caller must write the frame before its next call.
	 */
	uint8_t *(*room)(void *arg, uint32_t len);
	void *arg;
};

/* Sets up the addresses of @o, the link-local address of @mac, and the static neighbours. */
void soft_port_stack_init(struct soft_port_stack *s, const struct soft_port_opts *o,
			  const uint8_t mac[6], uint8_t *(*room)(void *, uint32_t), void *arg);

/* Makes the stack one whose addresses a guest's kernel sets. It has no address yet. */
void soft_port_stack_host(struct soft_port_stack *s);
/*
 * Sets the @n addresses, at most SOFT_PORT_ADDRS, of a stack whose addresses a guest's kernel sets,
 * and the MAC of each. Cached headers become stale.
 */
void soft_port_stack_set(struct soft_port_stack *s, const uint8_t (*ip)[16],
			 const uint8_t (*mac)[6], uint32_t n);

/* Returns the MAC that goes with @ip, or NULL if @ip is none of the port's addresses. */
const uint8_t *soft_port_own_mac(const struct soft_port_stack *s, const uint8_t ip[16]);
static inline bool
soft_port_is_own_addr(const struct soft_port_stack *s, const uint8_t ip[16])
{
	return soft_port_own_mac(s, ip) != NULL;
}
/*
 * Returns the source address for a request that resolves the MAC of @ip, or NULL if @ip is in none
 * of the port's networks.
 */
const uint8_t *soft_port_on_link(const struct soft_port_stack *s, const uint8_t ip[16]);

/* ---- soft_port_parse.c */
/*
 * Parses a frame down to ARP or to the protocol above IP. On SOFT_DROP_NONE *rx is complete. For
 * ARP, rx->l3_len is 0 and the message begins at rx->l3_off.
 */
enum soft_port_drop soft_port_parse(const struct soft_port_stack *s, const uint8_t *p, uint32_t len,
				    const struct soft_port_hw *hw, struct soft_port_rx *rx);
/*
 * Fast path of soft_port_parse(), for a RoCE datagram whose headers are cached. Returns false if
 * they are not cached. @len is the frame's length; SOFT_PORT_GUESS bytes must be readable.
 */
bool soft_port_guess(const struct soft_port_stack *s, const uint8_t *p, uint32_t len,
		     const struct soft_port_hw *hw, struct soft_port_rx *rx);
/* Caches the headers of a RoCE datagram that soft_port_parse() accepted. */
void soft_port_learn(struct soft_port_stack *s, const uint8_t *p, uint32_t len,
		     const struct soft_port_hw *hw, const struct soft_port_rx *rx);
/*
 * Returns the checksum over rx->l4_len bytes and the pseudo header of *rx. The result is 0 if the
 * packet's checksum field is right.
 */
uint16_t soft_port_l4_sum(const uint8_t *p, const struct soft_port_rx *rx);
/* Returns the checksum of a message to send. @src and @dst are the addresses in the IP header. */
uint16_t soft_port_csum(const uint8_t *src, const uint8_t *dst, uint32_t addr_len, uint8_t proto,
			const uint8_t *l4, uint32_t len);

/* ---- soft_port_stack.c */
enum soft_port_in {
	SOFT_PORT_IN_DROPPED,
	SOFT_PORT_IN_DONE, /* ARP, ND or ICMP; the stack has processed the frame. */
	SOFT_PORT_IN_ROCE, /* *rx is a RoCE datagram for one of the port's addresses. */
	SOFT_PORT_IN_HOST, /* The frame is for the guest's kernel. */
};
enum soft_port_in soft_port_input(struct soft_port_stack *s, const uint8_t *p, uint32_t len,
				  const struct soft_port_hw *hw, struct soft_port_rx *rx,
				  uint64_t now);

/*
 * Resolves the MAC for packets to @ip. Outside the port's networks only static neighbours are
 * found.
 */
enum soft_neigh_result soft_port_resolve(struct soft_port_stack *s, const uint8_t ip[16],
					 uint64_t now, uint16_t *hint, uint8_t mac[6]);

/* Writes an Ethernet header, with the port's VLAN tag if it has one. Returns its length. */
uint32_t soft_port_put_eth(const struct soft_port_stack *s, uint8_t *p, const uint8_t dst[6],
			   const uint8_t src[6], uint16_t type);
static inline uint32_t
soft_port_eth_len(const struct soft_port_stack *s)
{
	return s->vlan != 0 ? 18 : 14;
}
/*
 * Writes an IP header for @len bytes of payload, with the checksum of IPv4. Returns its length.
 */
uint32_t soft_port_put_ip(uint8_t *p, const struct bb_roce_net *net, uint8_t proto, uint32_t len);

/* ---- soft_port_echo.c */
enum soft_port_drop soft_port_echo(struct soft_port_stack *s, const uint8_t *p,
				   const struct soft_port_rx *rx);

/* ---- soft_neigh_msg.c */
enum soft_port_drop soft_neigh_arp(struct soft_port_stack *s, const uint8_t *arp, uint32_t len,
				   const struct soft_port_rx *rx, uint64_t now);
enum soft_port_drop soft_neigh_nd(struct soft_port_stack *s, const uint8_t *p,
				  const struct soft_port_rx *rx, uint64_t now);
/* Sends an ARP request or a neighbour solicitation. Has the type soft_neigh_ask_t. */
bool soft_neigh_question(void *stack, const uint8_t ip[16], const uint8_t *mac);

#endif
