/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Transport headers of a RoCEv2 packet, between bytes and struct (IBTA vol. 1, 9.2 to 9.6,
 * annex A17), and the invariant CRC. What is parsed comes from anybody: bounds first.
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
#define BB_ROCE_MAX_HDR  40u /* of BTH and what follows it: BTH + AtomicETH */
#define BB_ROCE_ICRC_LEN 4u
#define BB_ROCE_PSN_MASK 0xffffffu
#define BB_ROCE_QPN_MASK 0xffffffu

/* Bits of bb_roce_pkt.flags: those of the BTH. */
enum {
	BB_ROCE_SE = 1u << 0,
	BB_ROCE_MIGREQ = 1u << 1,
	BB_ROCE_FECN = 1u << 2,
	BB_ROCE_BECN = 1u << 3,
	BB_ROCE_ACKREQ = 1u << 4,
};

/* The words of a BTH, in host order. */
#define BB_ROCE_BTH0_OPCODE 24 /* the opcode byte, the P_Key below */
#define BB_ROCE_BTH0_PAD    20
#define BB_ROCE_BTH0_TVER   (15u << 16)
#define BB_ROCE_BTH1_MARKS  (3u << 30) /* FECN, BECN; the bits below are reserved */

static inline void
bb_roce_bth_load(uint32_t w[3], const uint8_t *bth)
{
	memcpy(w, bth, BB_ROCE_BTH_LEN);
	w[0] = bb_be32(w[0]);
	w[1] = bb_be32(w[1]);
	w[2] = bb_be32(w[2]);
}

/* SE and MIGREQ of the first word, FECN and BECN of the second, ACKREQ of the third. */
static inline uint8_t
bb_roce_bth_flags(const uint32_t w[3])
{
	return (uint8_t)((w[0] >> 23 & BB_ROCE_SE) | (w[0] >> 21 & BB_ROCE_MIGREQ) |
			 (w[1] >> 29 & BB_ROCE_FECN) | (w[1] >> 27 & BB_ROCE_BECN) |
			 (w[2] >> 27 & BB_ROCE_ACKREQ));
}

/* The first word of a BTH of a packet with a payload that is padded by @pad bytes. */
static inline uint32_t
bb_roce_bth_first(uint8_t opcode, uint32_t flags, uint16_t pkey, uint32_t pad)
{
	return (uint32_t)opcode << BB_ROCE_BTH0_OPCODE | (flags & BB_ROCE_SE) << 23 |
	       (flags & BB_ROCE_MIGREQ) << 21 | pad << BB_ROCE_BTH0_PAD | pkey;
}

/* The last one. */
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

/* 16 bytes of RETH. */
static inline void
bb_roce_reth_store(uint8_t *reth, uint64_t va, uint32_t rkey, uint32_t len)
{
	const uint32_t w[2] = {bb_be32(rkey), bb_be32(len)};

	va = bb_be64(va);
	memcpy(reth, &va, sizeof(va));
	memcpy(reth + sizeof(va), w, sizeof(w));
}

/* 4 bytes of AETH. */
static inline void
bb_roce_aeth_store(uint8_t *aeth, uint8_t syndrome, uint32_t msn)
{
	const uint32_t w = bb_be32((uint32_t)syndrome << 24 | (msn & 0xffffff));

	memcpy(aeth, &w, sizeof(w));
}

/* AETH syndromes: kind in bits 5 and 6, value below (9.3.5.2, table 44 and 45 for codes). */
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
 * A packet. Fields that its opcode has no header for are 0 after parsing and not looked at
 * by building. Payload bytes are not part of it when it is sent: see bb_roce_ops.tx.
 */
struct bb_roce_pkt {
	uint8_t opcode; /* whole byte */
	uint8_t flags;
	uint16_t pkey;
	uint32_t dqpn;
	uint32_t psn;
	/* RETH; va and rkey of AtomicETH too */
	uint64_t va;
	uint32_t rkey;
	uint32_t dmalen;
	/* AtomicETH; compare is 0 for FETCH_ADD */
	uint64_t swap_add, compare;
	/* AETH */
	uint8_t syndrome;
	uint32_t msn;
	uint64_t orig; /* AtomicAckETH */
	uint32_t imm;  /* ImmDt as it travels, or the key of IETH in host order */
	/* DETH */
	uint32_t qkey, sqpn;
	uint32_t len;           /* payload bytes, padding not counted */
	const uint8_t *payload; /* received: in the packet; sent: not used */
};

/* All fields 0. In parts: of the whole gcc makes a string instruction, which is slow to start. */
static inline void
bb_roce_pkt_clear(struct bb_roce_pkt *pkt)
{
	const size_t half = offsetof(struct bb_roce_pkt, compare);

	memset(pkt, 0, half);
	memset((uint8_t *)pkt + half, 0, sizeof(*pkt) - half);
}

/* How long the code of an RNR NAK asks to wait, in ns (9.7.5.2.8 table 45). */
uint64_t bb_roce_rnr_ns(uint32_t code);

/* Why a packet is dropped by bb_roce_parse(). */
enum bb_roce_drop {
	BB_ROCE_OK,
	BB_ROCE_DROP_SHORT,   /* no room for the headers of its opcode or its padding to 4 */
	BB_ROCE_DROP_VERSION, /* TVer is not 0 */
	BB_ROCE_DROP_OPCODE,  /* not an opcode of RC, UC or UD, nor a CNP */
	BB_ROCE_DROP_PAYLOAD, /* payload or padding where there is none; longer than IP has */
	BB_ROCE_DROP_ICRC,    /* of who checks it */
	BB_ROCE_DROPS
};
const char *bb_roce_drop_str(enum bb_roce_drop why);

/*
 * Parse what stands between the UDP header and the ICRC: @len bytes at @p. *pkt is written
 * only if the answer is BB_ROCE_OK. Of an opcode of RC that nobody has assigned, or that is
 * newer than this table, it has the fields of the BTH: it is a request to be refused (9.7.4.1.3).
 */
enum bb_roce_drop bb_roce_parse(struct bb_roce_pkt *pkt, const uint8_t *p, size_t len);

/* Zero bytes behind a payload of @len bytes, so that the packet ends on 4. */
static inline uint32_t
bb_roce_pad(uint32_t len)
{
	return -len & 3;
}

/*
 * Write the headers of *pkt to @hdr, BB_ROCE_MAX_HDR bytes of room. pkt->len decides about the
 * pad count. Returns their length, that of the opcode's table row. An opcode of RC that is not
 * assigned has a BTH alone, as bb_roce_parse() takes it; 0 for any other unknown opcode.
 */
uint32_t bb_roce_build(uint8_t *hdr, const struct bb_roce_pkt *pkt);

/*
 * The invariant CRC (annex A17.3.3 with vol. 1, 7.8.1): over the IP header as sent, the UDP
 * header, BTH and the rest to the end of the padding, fields that may change on the way taken as
 * ones. bb_roce_icrc_begin() takes the IP header (@ip_len 20 and up for version 4, 40 for 6), the
 * 8 bytes of UDP and @hdr_len bytes from BTH on; bb_roce_icrc_more() any number of pieces behind
 * them; bb_roce_icrc_end() gives the four bytes as they are stored in memory order behind the
 * padding.
 */
uint32_t bb_roce_icrc_begin(const uint8_t *ip, size_t ip_len, const uint8_t *udp,
			    const uint8_t *bth, size_t hdr_len);
uint32_t bb_roce_icrc_more(uint32_t crc, const void *p, size_t len);
void bb_roce_icrc_end(uint32_t crc, uint8_t out[BB_ROCE_ICRC_LEN]);

#endif
