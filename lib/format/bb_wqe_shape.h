/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What stands between a send WQE's control segment and its data, by its opcode; for readers. */
#ifndef BB_WQE_SHAPE_H
#define BB_WQE_SHAPE_H

#include "bb_wqe.h"

#define BB_WQE_AV_SEGS (sizeof(struct bb_wqe_av) / BB_WQE_SEG)

struct bb_wqe_shape {
	bool data;         /* it has any; else no part of this is known */
	bool av;           /* an address vector */
	bool raddr;        /* a remote address segment */
	bool written;      /* data comes in: its keys must allow that */
	uint32_t operands; /* segments of an atomic's operands */
};

/* @opmod is the control segment's top byte; @ud: on a queue pair of that type. */
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
