/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Table of opcodes (IBTA vol. 1, 9.2.1 table 38; CNP: annex A17.9.3). */
#include "bb_roce_pkt.h"

#define DETH     BB_ROCE_F_DETH
#define RETH     BB_ROCE_F_RETH
#define AETH     BB_ROCE_F_AETH
#define IMM      BB_ROCE_F_IMM
#define FIRST    BB_ROCE_F_FIRST
#define LAST     BB_ROCE_F_LAST
#define ONLY     (BB_ROCE_F_FIRST | BB_ROCE_F_LAST)
#define SEND     (BB_ROCE_F_REQUEST | BB_ROCE_F_PAYLOAD | BB_ROCE_F_SEND)
#define WRITE    (BB_ROCE_F_REQUEST | BB_ROCE_F_PAYLOAD | BB_ROCE_F_WRITE)
#define RESPONSE (BB_ROCE_F_PAYLOAD | BB_ROCE_F_READ_RESP)
#define ATOMIC   (BB_ROCE_F_REQUEST | ONLY | BB_ROCE_F_ATOMIC | BB_ROCE_F_ATOMICETH)

#define LEN(f, bit, len) (((f) & (bit)) != 0 ? (len) : 0)
#define HDR_LEN(f)                                                                                 \
	(BB_ROCE_BTH_LEN + LEN(f, DETH, 8) + LEN(f, RETH, 16) + LEN(f, BB_ROCE_F_ATOMICETH, 28) +  \
	 LEN(f, AETH, 4) + LEN(f, BB_ROCE_F_ATOMICACK, 8) + LEN(f, IMM, 4) +                       \
	 LEN(f, BB_ROCE_F_IETH, 4))

#define ROW(t, op, f) [BB_ROCE_##t | BB_ROCE_##op] = {#t " " #op, BB_ROCE_F_KNOWN | (f), HDR_LEN(f)}

/* Opcodes that both RC and UC have. */
#define SEND_AND_WRITE(t)                                                                          \
	ROW(t, SEND_FIRST, SEND | FIRST), ROW(t, SEND_MIDDLE, SEND),                               \
		ROW(t, SEND_LAST, SEND | LAST), ROW(t, SEND_LAST_IMM, SEND | LAST | IMM),          \
		ROW(t, SEND_ONLY, SEND | ONLY), ROW(t, SEND_ONLY_IMM, SEND | ONLY | IMM),          \
		ROW(t, WRITE_FIRST, WRITE | FIRST | RETH), ROW(t, WRITE_MIDDLE, WRITE),            \
		ROW(t, WRITE_LAST, WRITE | LAST), ROW(t, WRITE_LAST_IMM, WRITE | LAST | IMM),      \
		ROW(t, WRITE_ONLY, WRITE | ONLY | RETH),                                           \
		ROW(t, WRITE_ONLY_IMM, WRITE | ONLY | RETH | IMM)

const struct bb_roce_op_info bb_roce_ops[256] = {
	SEND_AND_WRITE(RC),
	ROW(RC, READ_REQUEST, BB_ROCE_F_REQUEST | ONLY | RETH),
	ROW(RC, READ_RESP_FIRST, RESPONSE | FIRST | AETH),
	ROW(RC, READ_RESP_MIDDLE, RESPONSE),
	ROW(RC, READ_RESP_LAST, RESPONSE | LAST | AETH),
	ROW(RC, READ_RESP_ONLY, RESPONSE | ONLY | AETH),
	ROW(RC, ACK, AETH),
	ROW(RC, ATOMIC_ACK, AETH | BB_ROCE_F_ATOMICACK),
	ROW(RC, CMP_SWAP, ATOMIC),
	ROW(RC, FETCH_ADD, ATOMIC),
	ROW(RC, SEND_LAST_INV, SEND | LAST | BB_ROCE_F_IETH),
	ROW(RC, SEND_ONLY_INV, SEND | ONLY | BB_ROCE_F_IETH),

	SEND_AND_WRITE(UC),

	ROW(UD, SEND_ONLY, SEND | ONLY | DETH),
	ROW(UD, SEND_ONLY_IMM, SEND | ONLY | DETH | IMM),

	[BB_ROCE_CNP] = {"CNP", BB_ROCE_F_KNOWN, BB_ROCE_BTH_LEN + BB_ROCE_CNP_PAD},
};
