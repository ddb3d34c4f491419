/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The shape of a send WQE: which segments are between its control segment and its data. The opcode
 * determines the shape. For code that reads WQEs.
 */
#ifndef BB_WQE_SHAPE_H
#define BB_WQE_SHAPE_H

#include "bb_wqe.h"

#define BB_WQE_AV_SEGS (sizeof(struct bb_wqe_av) / BB_WQE_SEG)

struct bb_wqe_shape {
	bool data;    /* false if the opcode has no data or is unknown */
	bool av;      /* true if the WQE has an address vector */
	bool raddr;   /* true if the WQE has a remote address segment */
	bool written; /* true if the request writes to local memory, for which its lkeys need local
			 write access */
	uint32_t operands; /* number of segments with the operands of an atomic */
};

/*
 * Returns the shape of a WQE. @opmod: top byte of the first dword of the control segment. @ud:
 * true if the queue pair is UD.
 */
static inline struct bb_wqe_shape
bb_wqe_shape(uint8_t opcode, uint32_t opmod, bool ud)
{
	switch (opcode) {
	case BB_WQE_SEND:
	case BB_WQE_SEND_IMM:
	case BB_WQE_SEND_INV:
		return (struct bb_wqe_shape){.data = true, .av = ud};
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_WRITE_IMM:
		return (struct bb_wqe_shape){.data = true, .raddr = true};
	case BB_WQE_RDMA_READ:
		return (struct bb_wqe_shape){.data = true, .raddr = true, .written = true};
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
	case BB_WQE_ATOMIC_MASKED_CS:
	case BB_WQE_ATOMIC_MASKED_FA:
		return (struct bb_wqe_shape){
			.data = true,
			.raddr = true,
			.written = true,
			.operands =
				opcode == BB_WQE_ATOMIC_MASKED_CS && opmod == bb_wqe_atomic_opmod(8)
					? 2
					: 1,
		};
	default:
		return (struct bb_wqe_shape){.data = false};
	}
}

#endif
