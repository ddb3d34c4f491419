/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Frames: headers, checksums, and the segmentation of long TCP and UDP messages. No state, no
 * memory of the guest.
 */
#ifndef ETH_PACKET_H
#define ETH_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#define ETH_MAC    6u
#define ETH_HEADER 14u
/* Shortest frame, without the checksum of the link (IEEE 802.3). */
#define ETH_MIN_FRAME 60u

#define ETH_TYPE_IPV4  0x0800u
#define ETH_TYPE_CVLAN 0x8100u
#define ETH_TYPE_IPV6  0x86ddu
#define ETH_TYPE_SVLAN 0x88a8u

#define ETH_PROTO_TCP 6u
#define ETH_PROTO_UDP 17u

/* Headers of a frame, as far as the frame has them. Offsets in bytes; 0: there is no such header.
 */
struct eth_headers {
	uint16_t type; /* EtherType after the VLAN tag */
	uint16_t vlan; /* tag control information; valid only with a tag */
	bool cvlan, svlan;
	uint32_t l3, l4;
	uint32_t l3_end;    /* end of the IP packet; bytes after it are padding */
	uint32_t payload;   /* first byte after the TCP or UDP header */
	uint8_t ip_version; /* 4, 6, or 0 */
	uint8_t protocol;   /* valid if l3 is not 0 */
	bool fragment;      /* an IP fragment; l4 is then 0 */
};

/* Finds the headers of a frame of @len bytes. Each header that it reports is complete. */
void eth_parse(const uint8_t *frame, uint32_t len, struct eth_headers *h);

/*
 * Returns the sum of 16-bit words in one's complement, for a checksum. If @len is odd, the last
 * byte is the high byte of a word.
 */
uint16_t eth_sum(const uint8_t *p, uint32_t len);

/* Computes the checksum of the IPv4 header. */
void eth_fill_l3_checksum(uint8_t *frame, const struct eth_headers *h);
/* Computes the TCP or UDP checksum. Does nothing if the frame has neither. */
void eth_fill_l4_checksum(uint8_t *frame, const struct eth_headers *h);

/* Sends a frame. Returns false to stop after it. */
typedef bool (*eth_send_fn)(void *arg, uint8_t *frame, uint32_t len);
/*
 * Cuts a TCP or UDP message into frames with @mss bytes of payload at most. Passes each frame from
 * number *@index on to @send, until @send returns false. *@index is then the number of the next
 * frame, 0 after the last one. The first @header bytes of @message are the headers of each frame.
 * @out has room for
 * @header + @mss bytes. Returns false, before any frame, if the headers are not those of TCP
 * or UDP over IP, or end elsewhere.
 */
bool eth_segment(const uint8_t *message, uint32_t len, uint32_t header, uint32_t mss, uint8_t *out,
		 uint32_t *index, eth_send_fn send, void *arg);

#endif
