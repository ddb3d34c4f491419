/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Names of opcodes and the memory of WQEs, for log lines of the library. Not installed. */
#ifndef BB_WQE_PRIV_H
#define BB_WQE_PRIV_H

#include "bb_wqe.h"

/* Returns the name of a send WQE opcode, or "?" if it is unknown. */
const char *bb_wqe_opcode_name(uint8_t opcode);

/* Returns the name of a CQE opcode, or "?" if it is unknown. */
const char *bb_cqe_opcode_name(uint8_t opcode);

/* A memory range that a WQE refers to by a key. */
struct bb_wqe_piece {
	uint64_t addr;
	uint32_t len; /* bytes; 0 for the peer's memory, whose length is not in the WQE */
	uint32_t key;
	bool remote;  /* true if the key is an rkey */
	bool written; /* true if the request writes to the range */
};

/*
 * Lists the memory ranges of a send WQE, the peer's range first. The arguments are those of
 * bb_wqe_dump(). Writes at most @max entries to @pieces and returns their number.
 */
uint32_t bb_wqe_pieces(struct bb_wqe_piece *pieces, uint32_t max, const void *ring, uint32_t blocks,
		       uint16_t idx, bool ud);

/*
 * Lists the memory ranges of a receive WQE of @stride bytes, as bb_wqe_pieces() does for a send
 * WQE.
 */
uint32_t bb_recv_wqe_pieces(struct bb_wqe_piece *pieces, uint32_t max, const void *wqe,
			    uint32_t stride);

#endif
