/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Converts the transport headers of a RoCEv2 packet between bytes and struct bb_roce_pkt (IBTA
 * vol. 1, 9.2 to 9.6, annex A17), and computes the invariant CRC. Received packets are untrusted,
 * so every length is checked before a field is read.
 */
#ifndef BB_ROCE_PKT_H
#define BB_ROCE_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bb_roce_op.h"
#include "bb_wqe.h"

#define BB_ROCE_UDP_PORT  4791u
#define BB_ROCE_BTH_LEN   12u
#define BB_ROCE_RETH_LEN  16u
#define BB_ROCE_AETH_LEN  4u
#define BB_ROCE_IMM_LEN   4u
#define BB_ROCE_MAX_HDR   40u /* longest BTH with the headers after it: BTH + AtomicETH */
#define BB_ROCE_ICRC_LEN  4u
#define BB_ROCE_PSN_MASK  0xffffffu
#define BB_ROCE_QPN_MASK  0xffffffu
#define BB_ROCE_MCAST_QPN 0xffffffu /* QP number of all receivers of a multicast group (10.5.2) */

/* Bits of bb_roce_pkt.flags, copied from the BTH. */
enum {
	BB_ROCE_SE = 1u << 0,
	BB_ROCE_MIGREQ = 1u << 1,
	BB_ROCE_FECN = 1u << 2,
	BB_ROCE_BECN = 1u << 3,
	BB_ROCE_ACKREQ = 1u << 4,
};

/*
 * Returns true if @gid is that of a multicast group: IPv6 multicast, or an IPv4-mapped multicast
 * address (Linux: rdma_is_multicast_addr()).
 */
static inline bool
bb_roce_is_mcast(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return gid[0] == 0xff ||
	       (memcmp(gid, mapped, sizeof(mapped)) == 0 && (gid[12] & 0xf0) == 0xe0);
}

/* Positions of fields in the three 32-bit words of a BTH, in host order. */
#define BB_ROCE_BTH0_OPCODE 24 /* opcode byte; the lowest 16 bits are the P_Key */
#define BB_ROCE_BTH0_PAD    20
#define BB_ROCE_BTH0_TVER   (15u << 16)
#define BB_ROCE_BTH1_MARKS  (3u << 30) /* FECN and BECN; the six bits below are reserved */

static inline void
bb_roce_bth_load(uint32_t w[3], const uint8_t *bth)
{
	memcpy(w, bth, BB_ROCE_BTH_LEN);
	w[0] = bb_be32(w[0]);
	w[1] = bb_be32(w[1]);
	w[2] = bb_be32(w[2]);
}

/*
 * Returns the flags of a BTH: SE and MIGREQ from word 0, FECN and BECN from word 1, ACKREQ from
 * word 2.
 */
static inline uint8_t
bb_roce_bth_flags(const uint32_t w[3])
{
	return (uint8_t)((w[0] >> 23 & BB_ROCE_SE) | (w[0] >> 21 & BB_ROCE_MIGREQ) |
			 (w[1] >> 29 & BB_ROCE_FECN) | (w[1] >> 27 & BB_ROCE_BECN) |
			 (w[2] >> 27 & BB_ROCE_ACKREQ));
}

/* Returns word 0 of a BTH. @pad is the number of padding bytes after the payload. */
static inline uint32_t
bb_roce_bth_first(uint8_t opcode, uint32_t flags, uint16_t pkey, uint32_t pad)
{
	return (uint32_t)opcode << BB_ROCE_BTH0_OPCODE | (flags & BB_ROCE_SE) << 23 |
	       (flags & BB_ROCE_MIGREQ) << 21 | pad << BB_ROCE_BTH0_PAD | pkey;
}

/* Returns word 2 of a BTH. */
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

/* Writes the 16 bytes of a RETH. */
static inline void
bb_roce_reth_store(uint8_t *reth, uint64_t va, uint32_t rkey, uint32_t len)
{
	const uint32_t w[2] = {bb_be32(rkey), bb_be32(len)};

	va = bb_be64(va);
	memcpy(reth, &va, sizeof(va));
	memcpy(reth + sizeof(va), w, sizeof(w));
}

/* Writes the 4 bytes of an AETH. */
static inline void
bb_roce_aeth_store(uint8_t *aeth, uint8_t syndrome, uint32_t msn)
{
	const uint32_t w = bb_be32((uint32_t)syndrome << 24 | (msn & 0xffffff));

	memcpy(aeth, &w, sizeof(w));
}

/*
 * AETH syndromes: the type is in bits 5 and 6, the value in the bits below (9.3.5.2; codes in
 * tables 44 and 45).
 */
enum {
	BB_ROCE_AETH_KIND = 0x60,
	BB_ROCE_AETH_VALUE = 0x1f,
	BB_ROCE_AETH_ACK = 0x00, /* ACK; the value is a credit code */
	BB_ROCE_AETH_RNR = 0x20, /* RNR NAK; the value is a timer code */
	BB_ROCE_AETH_NAK = 0x60, /* NAK; the value is one of BB_ROCE_NAK_* */
	BB_ROCE_CREDITS_OFF = 0x1f,
};
enum {
	BB_ROCE_NAK_PSN = 0,
	BB_ROCE_NAK_INVALID = 1,
	BB_ROCE_NAK_ACCESS = 2,
	BB_ROCE_NAK_OP = 3,
};

/*
 * A parsed packet, or one to build. Parsing sets the fields of absent headers to 0, and building
 * ignores these fields. The payload of a sent packet is passed separately: see bb_roce_ops.tx.
 */
struct bb_roce_pkt {
	uint8_t opcode; /* the whole opcode byte */
	uint8_t flags;
	uint16_t pkey;
	uint32_t dqpn;
	uint32_t psn;
	/* RETH; va and rkey are also used for AtomicETH */
	uint64_t va;
	uint32_t rkey;
	uint32_t dmalen;
	/* AtomicETH; compare is 0 for a FETCH_ADD */
	uint64_t swap_add, compare;
	/* AETH */
	uint8_t syndrome;
	uint32_t msn;
	uint64_t orig; /* AtomicAckETH */
	uint32_t imm;  /* ImmDt in network order, or the key of IETH in host order */
	/* DETH */
	uint32_t qkey, sqpn;
	uint32_t len;           /* payload bytes without padding */
	const uint8_t *payload; /* payload inside a received packet; not used for sent packets */
};

/*
 * Sets all fields to 0 with two calls, each for half of the struct. For the whole struct gcc emits
 * a string instruction, which starts slowly.
 */
static inline void
bb_roce_pkt_clear(struct bb_roce_pkt *pkt)
{
	const size_t half = offsetof(struct bb_roce_pkt, compare);

	memset(pkt, 0, half);
	memset((uint8_t *)pkt + half, 0, sizeof(*pkt) - half);
}

/*
 * Returns the wait time in ns that an RNR NAK requests with timer code @code (9.7.5.2.8 table 45).
 */
uint64_t bb_roce_rnr_ns(uint32_t code);

/* Reasons for which bb_roce_parse() rejects a packet. */
enum bb_roce_drop {
	BB_ROCE_OK,
	BB_ROCE_DROP_SHORT,   /* too short for the headers of its opcode, or not padded to 4
			       * bytes */
	BB_ROCE_DROP_VERSION, /* TVer is not 0 */
	BB_ROCE_DROP_OPCODE,  /* neither an opcode of RC, UC or UD, nor a CNP */
	BB_ROCE_DROP_PAYLOAD, /* payload or padding that the opcode does not allow, or more bytes
				 than an IP packet can have */
	BB_ROCE_DROP_ICRC,    /* set by the caller, which checks the ICRC */
	BB_ROCE_DROPS
};
const char *bb_roce_drop_str(enum bb_roce_drop why);

/*
 * Parses @len bytes at @p, which begin after the UDP header and end before the ICRC. Writes *pkt
 * only if it returns BB_ROCE_OK. For an RC opcode that is unassigned, or assigned after this table
 * was made, it parses only the fields of the BTH. The responder rejects such a packet as an
 * unsupported request (9.7.4.1.3).
 */
enum bb_roce_drop bb_roce_parse(struct bb_roce_pkt *pkt, const uint8_t *p, size_t len);

/* Returns the number of zero bytes after a payload of @len bytes that pad it to a multiple of 4. */
static inline uint32_t
bb_roce_pad(uint32_t len)
{
	return -len & 3;
}

/*
 * Writes the headers of *pkt to @hdr, which must have room for BB_ROCE_MAX_HDR bytes. Computes the
 * pad count from pkt->len. Returns the length of the headers, as the opcode table gives it. For an
 * unassigned RC opcode the function writes a BTH only, which is what bb_roce_parse() accepts.
 * Returns 0 for any other unknown opcode.
 */
uint32_t bb_roce_build(uint8_t *hdr, const struct bb_roce_pkt *pkt);

/*
 * Computes the invariant CRC (annex A17.3.3 with vol. 1, 7.8.1). It covers the IP header as sent,
 * the UDP header, and the packet from the BTH to the end of the padding. All bits of fields that
 * routers may change count as ones.
 *
 * bb_roce_icrc_begin() takes the IP header, the 8 bytes of the UDP header, and @hdr_len bytes from
 * the BTH on. @ip_len is at least 20 for version 4, and 40 for version 6. bb_roce_icrc_more() may
 * then be called any number of times, with the bytes that follow. bb_roce_icrc_end() returns the
 * ICRC, whose four bytes in memory are those that follow the padding in the packet.
 */
uint32_t bb_roce_icrc_begin(const uint8_t *ip, size_t ip_len, const uint8_t *udp,
			    const uint8_t *bth, size_t hdr_len);
uint32_t bb_roce_icrc_more(uint32_t crc, const void *p, size_t len);
static inline void
bb_roce_icrc_end(uint32_t crc, uint8_t out[BB_ROCE_ICRC_LEN])
{
	out[0] = (uint8_t)crc;
	out[1] = (uint8_t)(crc >> 8);
	out[2] = (uint8_t)(crc >> 16);
	out[3] = (uint8_t)(crc >> 24);
}

#endif
