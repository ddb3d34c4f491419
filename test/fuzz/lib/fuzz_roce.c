/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * RoCEv2 packets of random bytes, from the BTH to the end of the padding. An accepted packet is
 * built again from its parsed fields. It gives the same bytes except reserved ones, and parses to
 * the same fields. A dropped packet leaves the caller's struct alone. The first byte is the split
 * for the ICRC, whose value must not depend on it.
 */
#include <stdlib.h>
#include <string.h>

#include "bb_roce_pkt.h"
#include "fuzz.h"

/* Clears reserved bits of BTH, DETH and CNP; the padding has any content. */
static void
clear_reserved(uint8_t *p, const struct bb_roce_pkt *pkt)
{
	p[4] &= 0xc0;
	p[8] &= 0x80;
	if (bb_roce_ops[pkt->opcode].flags & BB_ROCE_F_DETH)
		p[BB_ROCE_BTH_LEN + 4] = 0;
	if (pkt->opcode == BB_ROCE_CNP)
		memset(p + BB_ROCE_BTH_LEN, 0, BB_ROCE_CNP_PAD);
}

static void
check_taken(uint8_t *p, size_t len, const struct bb_roce_pkt *pkt)
{
	uint32_t hdr_len = bb_roce_ops[pkt->opcode].hdr_len;
	uint8_t hdr[BB_ROCE_MAX_HDR];
	struct bb_roce_pkt again;

	if (bb_roce_ops[pkt->opcode].flags == 0) {
		fuzz_check(BB_ROCE_TYPE(pkt->opcode) == BB_ROCE_RC && pkt->len == 0);
		fuzz_check(bb_roce_build(hdr, pkt) == BB_ROCE_BTH_LEN);
		return;
	}
	fuzz_check(hdr_len >= BB_ROCE_BTH_LEN && hdr_len <= BB_ROCE_MAX_HDR && hdr_len <= len);
	fuzz_check(pkt->payload == p + hdr_len &&
		   hdr_len + pkt->len + bb_roce_pad(pkt->len) == len);
	fuzz_check(pkt->dqpn <= BB_ROCE_QPN_MASK && pkt->psn <= BB_ROCE_PSN_MASK);
	clear_reserved(p, pkt);
	fuzz_check(bb_roce_build(hdr, pkt) == hdr_len && memcmp(hdr, p, hdr_len) == 0);
	memset(&again, 0, sizeof(again));
	fuzz_check(bb_roce_parse(&again, p, len) == BB_ROCE_OK);
	fuzz_check(memcmp(&again, pkt, sizeof(again)) == 0);
}

static void
check_icrc(const uint8_t *p, size_t len, size_t cut)
{
	static const uint8_t ip[20] = {0x45}, udp[8] = {0x12, 0xb7};
	uint8_t whole[BB_ROCE_ICRC_LEN], parts[BB_ROCE_ICRC_LEN];
	uint32_t crc;

	if (len < BB_ROCE_BTH_LEN)
		return;
	cut = BB_ROCE_BTH_LEN + cut % (len - BB_ROCE_BTH_LEN + 1);
	bb_roce_icrc_end(bb_roce_icrc_begin(ip, sizeof(ip), udp, p, len), whole);
	crc = bb_roce_icrc_begin(ip, sizeof(ip), udp, p, cut);
	bb_roce_icrc_end(bb_roce_icrc_more(crc, p + cut, len - cut), parts);
	fuzz_check(memcmp(whole, parts, sizeof(whole)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bb_roce_pkt pkt, before;
	enum bb_roce_drop why;
	uint8_t *p, cut;

	if (len == 0)
		return 0;
	cut = *data++;
	/*
	 * Allocated with the exact size, so that AddressSanitizer detects every access past it.
	 */
	p = malloc(--len);
	fuzz_check(p != NULL);
	memcpy(p, data, len);
	check_icrc(p, len, cut);
	memset(&pkt, 0, sizeof(pkt));
	memset(&before, 0, sizeof(before));
	why = bb_roce_parse(&pkt, p, len);
	fuzz_check(why < BB_ROCE_DROPS && why != BB_ROCE_DROP_ICRC);
	fuzz_check(bb_roce_drop_str(why)[0] != '\0');
	if (why == BB_ROCE_OK)
		check_taken(p, len, &pkt);
	else
		fuzz_check(memcmp(&pkt, &before, sizeof(pkt)) == 0);
	free(p);
	return 0;
}
