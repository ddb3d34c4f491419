/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_bytes.h"
#include "bb_roce_pkt.h"

/* Returns the lower three bytes of a big-endian 32-bit word. */
static uint32_t
get24(const uint8_t *word)
{
	return bb_get32(word) & 0xffffff;
}

static void
put24(uint8_t *word, uint8_t upper, uint32_t v)
{
	bb_put32(word, (uint32_t)upper << 24 | (v & 0xffffff));
}

/* Flags of all headers that may follow the BTH. */
#define EXTENDED                                                                                   \
	(BB_ROCE_F_DETH | BB_ROCE_F_RETH | BB_ROCE_F_ATOMICETH | BB_ROCE_F_AETH |                  \
	 BB_ROCE_F_ATOMICACK | BB_ROCE_F_IMM | BB_ROCE_F_IETH)

static inline void
get_key(struct bb_roce_pkt *pkt, const uint8_t *p)
{
	pkt->va = bb_get64(p);
	pkt->rkey = bb_get32(p + 8);
}

static inline void
get_aeth(struct bb_roce_pkt *pkt, const uint8_t *p)
{
	pkt->syndrome = p[0];
	pkt->msn = get24(p);
}

/*
 * Parses the headers after the BTH, in the order of the flags. The most common combinations of
 * headers are checked first.
 */
static inline void
parse_extended(struct bb_roce_pkt *pkt, uint32_t flags, const uint8_t *p)
{
	switch (flags & EXTENDED) {
	case 0:
		return;
	case BB_ROCE_F_RETH:
		get_key(pkt, p);
		pkt->dmalen = bb_get32(p + 12);
		return;
	case BB_ROCE_F_AETH:
		get_aeth(pkt, p);
		return;
	default:
		break;
	}
	if (flags & BB_ROCE_F_DETH) {
		pkt->qkey = bb_get32(p);
		pkt->sqpn = get24(p + 4);
		p += 8;
	}
	if (flags & (BB_ROCE_F_RETH | BB_ROCE_F_ATOMICETH)) {
		get_key(pkt, p);
		p += 12;
	}
	if (flags & BB_ROCE_F_RETH) {
		pkt->dmalen = bb_get32(p);
		p += 4;
	}
	if (flags & BB_ROCE_F_ATOMICETH) {
		pkt->swap_add = bb_get64(p);
		pkt->compare = bb_get64(p + 8);
		p += 16;
	}
	if (flags & BB_ROCE_F_AETH) {
		get_aeth(pkt, p);
		p += 4;
	}
	if (flags & BB_ROCE_F_ATOMICACK) {
		pkt->orig = bb_get64(p);
		p += 8;
	}
	if (flags & BB_ROCE_F_IMM)
		memcpy(&pkt->imm, p, 4);
	else if (flags & BB_ROCE_F_IETH)
		pkt->imm = bb_get32(p);
}

static inline void
parse_bth(struct bb_roce_pkt *pkt, const uint32_t w[3])
{
	bb_roce_pkt_clear(pkt);
	pkt->opcode = (uint8_t)(w[0] >> BB_ROCE_BTH0_OPCODE);
	pkt->flags = bb_roce_bth_flags(w);
	pkt->pkey = (uint16_t)w[0];
	pkt->dqpn = w[1] & BB_ROCE_QPN_MASK;
	pkt->psn = w[2] & BB_ROCE_PSN_MASK;
}

enum bb_roce_drop
bb_roce_parse(struct bb_roce_pkt *pkt, const uint8_t *p, size_t len)
{
	const struct bb_roce_op_info *op;
	uint32_t w[3], pad;

	if (len < BB_ROCE_BTH_LEN)
		return BB_ROCE_DROP_SHORT;
	bb_roce_bth_load(w, p);
	if ((w[0] & BB_ROCE_BTH0_TVER) != 0)
		return BB_ROCE_DROP_VERSION;
	op = &bb_roce_ops[p[0]];
	if (op->flags == 0) {
		/*
		 * The headers after the BTH are unknown. An RC responder sends a NAK for such a
		 * packet, so the BTH is parsed and the payload is empty.
		 */
		if (BB_ROCE_TYPE(p[0]) != BB_ROCE_RC)
			return BB_ROCE_DROP_OPCODE;
		parse_bth(pkt, w);
		pkt->payload = p + BB_ROCE_BTH_LEN;
		return BB_ROCE_OK;
	}
	pad = w[0] >> BB_ROCE_BTH0_PAD & 3;
	if (len < op->hdr_len || len - op->hdr_len < pad || (len & 3) != 0)
		return BB_ROCE_DROP_SHORT;
	if (!(op->flags & BB_ROCE_F_PAYLOAD) && (len != op->hdr_len || pad != 0))
		return BB_ROCE_DROP_PAYLOAD;
	/* The UDP length field has 16 bits, so no valid packet is longer. */
	if (len > UINT16_MAX)
		return BB_ROCE_DROP_PAYLOAD;
	parse_bth(pkt, w);
	parse_extended(pkt, op->flags, p + BB_ROCE_BTH_LEN);
	pkt->len = (uint32_t)len - op->hdr_len - pad;
	pkt->payload = p + op->hdr_len;
	return BB_ROCE_OK;
}

static inline void
put_key(uint8_t *p, const struct bb_roce_pkt *pkt)
{
	bb_put64(p, pkt->va);
	bb_put32(p + 8, pkt->rkey);
}

static inline void
build_extended(uint8_t *p, uint32_t flags, const struct bb_roce_pkt *pkt)
{
	switch (flags & EXTENDED) {
	case 0:
		return;
	case BB_ROCE_F_RETH:
		bb_roce_reth_store(p, pkt->va, pkt->rkey, pkt->dmalen);
		return;
	case BB_ROCE_F_AETH:
		bb_roce_aeth_store(p, pkt->syndrome, pkt->msn);
		return;
	default:
		break;
	}
	if (flags & BB_ROCE_F_DETH) {
		bb_put32(p, pkt->qkey);
		put24(p + 4, 0, pkt->sqpn);
		p += 8;
	}
	if (flags & (BB_ROCE_F_RETH | BB_ROCE_F_ATOMICETH)) {
		put_key(p, pkt);
		p += 12;
	}
	if (flags & BB_ROCE_F_RETH) {
		bb_put32(p, pkt->dmalen);
		p += 4;
	}
	if (flags & BB_ROCE_F_ATOMICETH) {
		bb_put64(p, pkt->swap_add);
		bb_put64(p + 8, pkt->compare);
		p += 16;
	}
	if (flags & BB_ROCE_F_AETH) {
		bb_roce_aeth_store(p, pkt->syndrome, pkt->msn);
		p += 4;
	}
	if (flags & BB_ROCE_F_ATOMICACK) {
		bb_put64(p, pkt->orig);
		p += 8;
	}
	if (flags & BB_ROCE_F_IMM)
		memcpy(p, &pkt->imm, 4);
	else if (flags & BB_ROCE_F_IETH)
		bb_put32(p, pkt->imm);
}

uint32_t
bb_roce_build(uint8_t *hdr, const struct bb_roce_pkt *pkt)
{
	const struct bb_roce_op_info *op = &bb_roce_ops[pkt->opcode];

	if (op->flags == 0 && BB_ROCE_TYPE(pkt->opcode) != BB_ROCE_RC)
		return 0;
	bb_roce_bth_store(hdr, pkt->opcode, pkt->flags, pkt->pkey, pkt->dqpn, pkt->psn,
			  bb_roce_pad(pkt->len));
	if (pkt->opcode == BB_ROCE_CNP)
		memset(hdr + BB_ROCE_BTH_LEN, 0, BB_ROCE_CNP_PAD);
	else
		build_extended(hdr + BB_ROCE_BTH_LEN, op->flags, pkt);
	return op->flags != 0 ? op->hdr_len : BB_ROCE_BTH_LEN;
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
		return "payload, but its opcode has none";
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
	/* Waits in units of 10 us, indexed by RNR timer code. */
	static const uint32_t times[32] = {
		65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
		48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return times[code & BB_ROCE_AETH_VALUE] * UINT64_C(10000);
}
