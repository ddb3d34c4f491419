/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Converts the transport headers of a RoCEv2 packet between bytes and struct (IBTA vol. 1, 9.2 to
 * 9.6, annex A17), and computes the invariant CRC. Parsed packets are untrusted: lengths are
 * checked before any field is read.
 */
#ifndef BB_ROCE_PKT_H
#define BB_ROCE_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bb_roce_op.h"
#include "bb_wqe.h"

#define BB_ROCE_UDP_PORT 4791u
#define BB_ROCE_BTH_LEN  12u
#define BB_ROCE_RETH_LEN 16u
#define BB_ROCE_AETH_LEN 4u
#define BB_ROCE_IMM_LEN  4u
#define BB_ROCE_MAX_HDR  40u /* longest BTH with its headers: BTH + AtomicETH */
#define BB_ROCE_ICRC_LEN 4u
#define BB_ROCE_PSN_MASK 0xffffffu
#define BB_ROCE_QPN_MASK 0xffffffu

/* Bits of bb_roce_pkt.flags, from the BTH. */
enum {
	BB_ROCE_SE = 1u << 0,
	BB_ROCE_MIGREQ = 1u << 1,
	BB_ROCE_FECN = 1u << 2,
	BB_ROCE_BECN = 1u << 3,
	BB_ROCE_ACKREQ = 1u << 4,
};

/* The three 32-bit words of a BTH, in host order. */
#define BB_ROCE_BTH0_OPCODE 24 /* opcode byte; the P_Key is in the lowest 16 bits */
#define BB_ROCE_BTH0_PAD    20
#define BB_ROCE_BTH0_TVER   (15u << 16)
#define BB_ROCE_BTH1_MARKS  (3u << 30) /* FECN and BECN; the six bits below them are reserved */

static inline void
bb_roce_bth_load(uint32_t w[3], const uint8_t *bth)
{
	memcpy(w, bth, BB_ROCE_BTH_LEN);
	w[0] = bb_be32(w[0]);
	w[1] = bb_be32(w[1]);
	w[2] = bb_be32(w[2]);
}

/* Returns SE and MIGREQ of the first word, FECN and BECN of the second, ACKREQ of the third. */
static inline uint8_t
bb_roce_bth_flags(const uint32_t w[3])
{
	return (uint8_t)((w[0] >> 23 & BB_ROCE_SE) | (w[0] >> 21 & BB_ROCE_MIGREQ) |
			 (w[1] >> 29 & BB_ROCE_FECN) | (w[1] >> 27 & BB_ROCE_BECN) |
			 (w[2] >> 27 & BB_ROCE_ACKREQ));
}

/* Returns the first word of a BTH whose payload is padded by @pad bytes. */
static inline uint32_t
bb_roce_bth_first(uint8_t opcode, uint32_t flags, uint16_t pkey, uint32_t pad)
{
	return (uint32_t)opcode << BB_ROCE_BTH0_OPCODE | (flags & BB_ROCE_SE) << 23 |
	       (flags & BB_ROCE_MIGREQ) << 21 | pad << BB_ROCE_BTH0_PAD | pkey;
}

/* Returns the third word of a BTH. */
static inline uint32_t
bb_roce_bth_last(uint32_t flags, uint32_t psn)
{
	return (flags & BB_ROCE_ACKREQ) << 27 | (psn & BB_ROCE_PSN_MASK);
}

static inline void
bb_roce_bth_store(uint8_t *bth, uint8_t opcode, uint32_t flags, uint16_t pkey, uint32_t dqpn,
		  uint32_t psn, uint32_t pad)
{
	const uint32_t w[3] = {
		bb_be32(bb_roce_bth_first(opcode, flags, pkey, pad)),
		bb_be32((flags & BB_ROCE_FECN) << 29 | (flags & BB_ROCE_BECN) << 27 |
			(dqpn & BB_ROCE_QPN_MASK)),
		bb_be32(bb_roce_bth_last(flags, psn)),
	};

	memcpy(bth, w, BB_ROCE_BTH_LEN);
}

/* Writes a RETH, 16 bytes. */
static inline void
bb_roce_reth_store(uint8_t *reth, uint64_t va, uint32_t rkey, uint32_t len)
{
	const uint32_t w[2] = {bb_be32(rkey), bb_be32(len)};

	va = bb_be64(va);
	memcpy(reth, &va, sizeof(va));
	memcpy(reth + sizeof(va), w, sizeof(w));
}

/* Writes an AETH, 4 bytes. */
static inline void
bb_roce_aeth_store(uint8_t *aeth, uint8_t syndrome, uint32_t msn)
{
	const uint32_t w = bb_be32((uint32_t)syndrome << 24 | (msn & 0xffffff));

	memcpy(aeth, &w, sizeof(w));
}

/* AETH syndromes: kind in bits 5 and 6, value below (9.3.5.2; codes in tables 44 and 45). */
enum {
	BB_ROCE_AETH_KIND = 0x60,
	BB_ROCE_AETH_VALUE = 0x1f,
	BB_ROCE_AETH_ACK = 0x00, /* value: credits */
	BB_ROCE_AETH_RNR = 0x20, /* value: timer code */
	BB_ROCE_AETH_NAK = 0x60, /* value: BB_ROCE_NAK_* */
	BB_ROCE_CREDITS_OFF = 0x1f,
};
enum {
	BB_ROCE_NAK_PSN = 0,
	BB_ROCE_NAK_INVALID = 1,
	BB_ROCE_NAK_ACCESS = 2,
	BB_ROCE_NAK_OP = 3,
};

/*
 * A packet. Parsing sets fields of absent headers to 0; building ignores them. The payload bytes of
 * a sent packet are passed separately: see bb_roce_ops.tx.
 */
struct bb_roce_pkt {
	uint8_t opcode; /* the whole opcode byte */
	uint8_t flags;
	uint16_t pkey;
	uint32_t dqpn;
	uint32_t psn;
	/* RETH; va and rkey also of AtomicETH */
	uint64_t va;
	uint32_t rkey;
	uint32_t dmalen;
	/* AtomicETH; compare is 0 for FETCH_ADD */
	uint64_t swap_add, compare;
	/* AETH */
	uint8_t syndrome;
	uint32_t msn;
	uint64_t orig; /* AtomicAckETH */
	uint32_t imm;  /* ImmDt in network order, or the key of IETH in host order */
	/* DETH */
	uint32_t qkey, sqpn;
	uint32_t len;           /* payload bytes without padding */
	const uint8_t *payload; /* payload of a received packet, inside the packet; not used to
				 * send */
};

/*
 * Sets all fields to 0. Two calls of half the size: for the whole struct gcc emits a string
 * instruction, which is slow to start.
 */
static inline void
bb_roce_pkt_clear(struct bb_roce_pkt *pkt)
{
	const size_t half = offsetof(struct bb_roce_pkt, compare);

	memset(pkt, 0, half);
	memset((uint8_t *)pkt + half, 0, sizeof(*pkt) - half);
}

/* Returns the wait that the code of an RNR NAK requests, in ns (9.7.5.2.8 table 45). */
uint64_t bb_roce_rnr_ns(uint32_t code);

/* Reasons of bb_roce_parse() to drop a packet. */
enum bb_roce_drop {
	BB_ROCE_OK,
	BB_ROCE_DROP_SHORT,   /* too short for the headers of its opcode, or not padded to 4
			       * bytes */
	BB_ROCE_DROP_VERSION, /* TVer is not 0 */
	BB_ROCE_DROP_OPCODE,  /* neither an opcode of RC, UC or UD, nor a CNP */
	BB_ROCE_DROP_PAYLOAD, /* payload or padding that its opcode may not have, or longer than
			       * an IP packet */
	BB_ROCE_DROP_ICRC,    /* set by the caller, which checks the ICRC */
	BB_ROCE_DROPS
};
const char *bb_roce_drop_str(enum bb_roce_drop why);

/*
 * Parses @len bytes at @p, from the end of the UDP header to the ICRC. Writes *pkt only if it
 * returns BB_ROCE_OK. An unassigned RC opcode, or one newer than this table, yields the BTH's
 * fields only: the responder refuses it as an unsupported request (9.7.4.1.3).
 */
enum bb_roce_drop bb_roce_parse(struct bb_roce_pkt *pkt, const uint8_t *p, size_t len);

/* Returns the number of zero bytes that pad a payload of @len bytes to a multiple of 4. */
static inline uint32_t
bb_roce_pad(uint32_t len)
{
	return -len & 3;
}

/*
 * Writes the headers of *pkt to @hdr, which has room for BB_ROCE_MAX_HDR bytes. The pad count
 * follows from pkt->len. Returns the length of the headers, as in the opcode table. An unassigned
 * RC opcode gets a BTH only, as bb_roce_parse() accepts it. Returns 0 for any other unknown opcode.
 */
uint32_t bb_roce_build(uint8_t *hdr, const struct bb_roce_pkt *pkt);

/*
 * Computes the invariant CRC (annex A17.3.3 with vol. 1, 7.8.1). It covers the IP header as sent,
 * the UDP header, and the packet from the BTH to the end of the padding. Fields that routers may
 * change count as ones.
 *
 * bb_roce_icrc_begin() takes the IP header (@ip_len at least 20 for version 4, 40 for version 6),
 * the 8 bytes of UDP, and @hdr_len bytes from the BTH on. bb_roce_icrc_more() takes any number of
 * pieces that follow. bb_roce_icrc_end() returns the four bytes in the memory order in which they
 * follow the padding.
 */
uint32_t bb_roce_icrc_begin(const uint8_t *ip, size_t ip_len, const uint8_t *udp,
			    const uint8_t *bth, size_t hdr_len);
uint32_t bb_roce_icrc_more(uint32_t crc, const void *p, size_t len);
void bb_roce_icrc_end(uint32_t crc, uint8_t out[BB_ROCE_ICRC_LEN]);

#endif
