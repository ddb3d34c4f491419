/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Whole RoCEv2 packets, from the IP header to the ICRC, for tests of the engine. */
#ifndef ROCE_FRAME_H
#define ROCE_FRAME_H

#include <stddef.h>

#include "bb_roce_qp.h"

/* IPv6, UDP, headers, payload of 4096 bytes, ICRC. */
#define ROCE_FRAME_MAX (40u + 8u + BB_ROCE_MAX_HDR + 4096u + BB_ROCE_ICRC_LEN)

/* Parts of a frame, and the addresses of its sender and receiver. */
struct roce_frame {
	size_t ip_len;
	const uint8_t *udp, *bth;
	size_t bth_len; /* from the BTH to the end of the padding */
	const uint8_t *icrc;
	struct bb_roce_net net;
};

/*
 * Writes the packet to @out, which has room for ROCE_FRAME_MAX bytes. Uses IPv4 if both addresses
 * are IPv4-mapped. Returns the length.
 */
size_t roce_frame_build(uint8_t *out, const struct bb_roce_net *net, const struct bb_roce_pkt *pkt,
			const struct bb_roce_iov *iov, uint32_t n);

/*
 * Finds the parts of a frame. Returns false if these @len bytes are no RoCEv2 packet. Checks
 * neither the ICRC nor anything after the UDP header.
 */
bool roce_frame_split(struct roce_frame *f, const uint8_t *p, size_t len);

/* Recomputes the ICRC and returns whether it matches. */
bool roce_frame_icrc_ok(const struct roce_frame *f, const uint8_t *p);

#endif
