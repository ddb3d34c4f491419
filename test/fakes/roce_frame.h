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

/* Where the parts of a frame are, and its sender's and receiver's addresses. */
struct roce_frame {
	size_t ip_len;
	const uint8_t *udp, *bth;
	size_t bth_len; /* from the BTH to the end of the padding */
	const uint8_t *icrc;
	struct bb_roce_net net;
};

/*
 * Write the packet to @out, ROCE_FRAME_MAX bytes of room: over IPv4 if both addresses are
 * mapped ones. Returns its length.
 */
size_t roce_frame_build(uint8_t *out, const struct bb_roce_net *net, const struct bb_roce_pkt *pkt,
			const struct bb_roce_iov *iov, uint32_t n);

/*
 * Find the parts: false if this is no RoCEv2 packet of @len bytes, whatever is behind the UDP
 * header. The ICRC is not looked at.
 */
bool roce_frame_split(struct roce_frame *f, const uint8_t *p, size_t len);

/* Recompute the ICRC and compare. */
bool roce_frame_icrc_ok(const struct roce_frame *f, const uint8_t *p);

#endif
