/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Parts of WQEs and CQEs for log lines of the library. Not installed. */
#ifndef BB_WQE_PRIV_H
#define BB_WQE_PRIV_H

#include "bb_wqe.h"

/* Returns the name of a send WQE opcode, "?" if it is unknown. */
const char *bb_wqe_opcode_name(uint8_t opcode);

/* Returns the name of a CQE opcode, "?" if it is unknown. */
const char *bb_cqe_opcode_name(uint8_t opcode);

/* Memory that a WQE refers to by a key. */
struct bb_wqe_piece {
	uint64_t addr;
	uint32_t len; /* bytes; 0 for the peer's memory */
	uint32_t key;
	bool remote;  /* true if the key is an rkey */
	bool written; /* true if data is written to it */
};

/*
 * Lists the pieces of a send WQE, the peer's memory first. Arguments as for bb_wqe_dump().
 * Returns the number of entries in @p pieces, at most @p max.
 */
uint32_t bb_wqe_pieces(struct bb_wqe_piece *pieces, uint32_t max, const void *ring, uint32_t blocks,
		       uint16_t idx, bool ud);

/* Lists the pieces of a receive WQE of @p stride bytes, as bb_wqe_pieces() does. */
uint32_t bb_recv_wqe_pieces(struct bb_wqe_piece *pieces, uint32_t max, const void *wqe,
			    uint32_t stride);

#endif
