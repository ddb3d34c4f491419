/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "bb_wqe.h"

const char *
bb_wqe_opcode_name(uint8_t opcode)
{
	switch (opcode) {
	case BB_WQE_NOP:
		return "NOP";
	case BB_WQE_RDMA_WRITE:
		return "RDMA_WRITE";
	case BB_WQE_RDMA_WRITE_IMM:
		return "RDMA_WRITE_IMM";
	case BB_WQE_SEND:
		return "SEND";
	case BB_WQE_SEND_IMM:
		return "SEND_IMM";
	case BB_WQE_RDMA_READ:
		return "RDMA_READ";
	case BB_WQE_ATOMIC_CS:
		return "CMP_SWAP";
	case BB_WQE_ATOMIC_FA:
		return "FETCH_ADD";
	default:
		return "?";
	}
}
