/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_roce_pkt.h"
#include "bb_wqe.h"

/* Of BTH byte 1, beside the pad count in bits 4 and 5. */
#define BTH_SE     0x80u
#define BTH_MIGREQ 0x40u
#define BTH_TVER   0x0fu
/* Byte 4; the other bits are reserved and not looked at. */
#define BTH_FECN 0x80u
#define BTH_BECN 0x40u
/* Byte 8 */
#define BTH_ACKREQ 0x80u

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return bb_be32(v);
}

/* The lower three bytes of a word. */
static uint32_t
get24(const uint8_t *word)
{
	return get32(word) & 0xffffff;
}

static uint64_t
get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return bb_be64(v);
}

static void
put32(uint8_t *p, uint32_t v)
{
	v = bb_be32(v);
	memcpy(p, &v, sizeof(v));
}

static void
put24(uint8_t *word, uint8_t upper, uint32_t v)
{
	put32(word, (uint32_t)upper << 24 | (v & 0xffffff));
}

static void
put64(uint8_t *p, uint64_t v)
{
	v = bb_be64(v);
	memcpy(p, &v, sizeof(v));
}

static uint8_t
bth_flags(const uint8_t *p)
{
	return (uint8_t)((p[1] & BTH_SE ? BB_ROCE_SE : 0) |
			 (p[1] & BTH_MIGREQ ? BB_ROCE_MIGREQ : 0) |
			 (p[4] & BTH_FECN ? BB_ROCE_FECN : 0) |
			 (p[4] & BTH_BECN ? BB_ROCE_BECN : 0) |
			 (p[8] & BTH_ACKREQ ? BB_ROCE_ACKREQ : 0));
}

/* What follows the BTH, in the order of the flags. */
static void
parse_extended(struct bb_roce_pkt *pkt, uint32_t flags, const uint8_t *p)
{
	if (flags & BB_ROCE_F_DETH) {
		pkt->qkey = get32(p);
		pkt->sqpn = get24(p + 4);
		p += 8;
	}
	if (flags & (BB_ROCE_F_RETH | BB_ROCE_F_ATOMICETH)) {
		pkt->va = get64(p);
		pkt->rkey = get32(p + 8);
		p += 12;
	}
	if (flags & BB_ROCE_F_RETH) {
		pkt->dmalen = get32(p);
		p += 4;
	}
	if (flags & BB_ROCE_F_ATOMICETH) {
		pkt->swap_add = get64(p);
		pkt->compare = get64(p + 8);
		p += 16;
	}
	if (flags & BB_ROCE_F_AETH) {
		pkt->syndrome = p[0];
		pkt->msn = get24(p);
		p += 4;
	}
	if (flags & BB_ROCE_F_ATOMICACK) {
		pkt->orig = get64(p);
		p += 8;
	}
	if (flags & BB_ROCE_F_IMM)
		memcpy(&pkt->imm, p, 4);
	else if (flags & BB_ROCE_F_IETH)
		pkt->imm = get32(p);
}

static void
parse_bth(struct bb_roce_pkt *pkt, const uint8_t *p)
{
	pkt->opcode = p[0];
	pkt->flags = bth_flags(p);
	pkt->pkey = (uint16_t)(p[2] << 8 | p[3]);
	pkt->dqpn = get24(p + 4);
	pkt->psn = get24(p + 8);
}

/* Nobody knows what follows the BTH. An RC responder answers it, so the BTH is taken. */
static enum bb_roce_drop
parse_unassigned(struct bb_roce_pkt *pkt, const uint8_t *p)
{
	if (BB_ROCE_TYPE(p[0]) != BB_ROCE_RC)
		return BB_ROCE_DROP_OPCODE;
	memset(pkt, 0, sizeof(*pkt));
	parse_bth(pkt, p);
	return BB_ROCE_OK;
}

enum bb_roce_drop
bb_roce_parse(struct bb_roce_pkt *pkt, const uint8_t *p, size_t len)
{
	const struct bb_roce_op_info *op;
	uint32_t pad;

	if (len < BB_ROCE_BTH_LEN)
		return BB_ROCE_DROP_SHORT;
	if ((p[1] & BTH_TVER) != 0)
		return BB_ROCE_DROP_VERSION;
	op = &bb_roce_ops[p[0]];
	if (op->flags == 0)
		return parse_unassigned(pkt, p);
	pad = p[1] >> 4 & 3;
	if (len < op->hdr_len || len - op->hdr_len < pad || (len & 3) != 0)
		return BB_ROCE_DROP_SHORT;
	if (!(op->flags & BB_ROCE_F_PAYLOAD) && (len != op->hdr_len || pad != 0))
		return BB_ROCE_DROP_PAYLOAD;
	/* More than any packet of IP: the length must fit. */
	if (len > UINT16_MAX)
		return BB_ROCE_DROP_PAYLOAD;
	memset(pkt, 0, sizeof(*pkt));
	parse_bth(pkt, p);
	parse_extended(pkt, op->flags, p + BB_ROCE_BTH_LEN);
	pkt->len = (uint32_t)len - op->hdr_len - pad;
	pkt->payload = p + op->hdr_len;
	return BB_ROCE_OK;
}

static void
build_extended(uint8_t *p, uint32_t flags, const struct bb_roce_pkt *pkt)
{
	if (flags & BB_ROCE_F_DETH) {
		put32(p, pkt->qkey);
		put24(p + 4, 0, pkt->sqpn);
		p += 8;
	}
	if (flags & (BB_ROCE_F_RETH | BB_ROCE_F_ATOMICETH)) {
		put64(p, pkt->va);
		put32(p + 8, pkt->rkey);
		p += 12;
	}
	if (flags & BB_ROCE_F_RETH) {
		put32(p, pkt->dmalen);
		p += 4;
	}
	if (flags & BB_ROCE_F_ATOMICETH) {
		put64(p, pkt->swap_add);
		put64(p + 8, pkt->compare);
		p += 16;
	}
	if (flags & BB_ROCE_F_AETH) {
		put24(p, pkt->syndrome, pkt->msn);
		p += 4;
	}
	if (flags & BB_ROCE_F_ATOMICACK) {
		put64(p, pkt->orig);
		p += 8;
	}
	if (flags & BB_ROCE_F_IMM)
		memcpy(p, &pkt->imm, 4);
	else if (flags & BB_ROCE_F_IETH)
		put32(p, pkt->imm);
}

uint32_t
bb_roce_build(uint8_t *hdr, const struct bb_roce_pkt *pkt)
{
	const struct bb_roce_op_info *op = &bb_roce_ops[pkt->opcode];
	uint32_t f = pkt->flags;

	if (op->flags == 0)
		return 0;
	hdr[0] = pkt->opcode;
	hdr[1] = (uint8_t)((f & BB_ROCE_SE ? BTH_SE : 0) | (f & BB_ROCE_MIGREQ ? BTH_MIGREQ : 0) |
			   bb_roce_pad(pkt->len) << 4);
	hdr[2] = (uint8_t)(pkt->pkey >> 8);
	hdr[3] = (uint8_t)pkt->pkey;
	put24(hdr + 4,
	      (uint8_t)((f & BB_ROCE_FECN ? BTH_FECN : 0) | (f & BB_ROCE_BECN ? BTH_BECN : 0)),
	      pkt->dqpn);
	put24(hdr + 8, f & BB_ROCE_ACKREQ ? BTH_ACKREQ : 0, pkt->psn);
	if (pkt->opcode == BB_ROCE_CNP)
		memset(hdr + BB_ROCE_BTH_LEN, 0, BB_ROCE_CNP_PAD);
	else
		build_extended(hdr + BB_ROCE_BTH_LEN, op->flags, pkt);
	return op->hdr_len;
}

const char *
bb_roce_drop_str(enum bb_roce_drop why)
{
	switch (why) {
	case BB_ROCE_OK:
		return "not dropped";
	case BB_ROCE_DROP_SHORT:
		return "too short for its headers or its padding";
	case BB_ROCE_DROP_VERSION:
		return "transport header version is not 0";
	case BB_ROCE_DROP_OPCODE:
		return "opcode is none of RC, UC or UD";
	case BB_ROCE_DROP_PAYLOAD:
		return "payload that its opcode does not have";
	case BB_ROCE_DROP_ICRC:
		return "wrong ICRC";
	case BB_ROCE_DROPS:
		break;
	}
	return "unknown reason";
}

uint64_t
bb_roce_rnr_ns(uint32_t code)
{
	/* In units of 10 us. */
	static const uint32_t times[32] = {
		65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
		48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return times[code & BB_ROCE_AETH_VALUE] * UINT64_C(10000);
}
