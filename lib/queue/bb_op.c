/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>

#include "bb_op.h"

#define RC (1u << BB_QPT_RC)
#define UC (1u << BB_QPT_UC)
#define UD (1u << BB_QPT_UD)

/* Flags of every request. FENCE is valid only on RC, which bb_wr_check() checks. */
#define ANY  (BB_SEND_SIGNALED | BB_SEND_FENCE | BB_SEND_SMALL_FENCE)
#define DATA (ANY | BB_SEND_INLINE)
#define MSG  (DATA | BB_SEND_SOLICITED)

/* QP types and flags that each operation supports (man ibv_post_send). */
static const struct rule {
	const char *name;
	uint32_t types; /* 1 << enum bb_qp_type for each type; 0: not supported */
	uint32_t flags;
	uint8_t wqe_opcode;
} rules[BB_WR_OPCODES] = {
	[BB_WR_RDMA_WRITE] = {"RDMA_WRITE", RC | UC, DATA, BB_WQE_RDMA_WRITE},
	[BB_WR_RDMA_WRITE_WITH_IMM] = {"RDMA_WRITE_WITH_IMM", RC | UC, MSG, BB_WQE_RDMA_WRITE_IMM},
	[BB_WR_SEND] = {"SEND", RC | UC | UD, MSG, BB_WQE_SEND},
	[BB_WR_SEND_WITH_IMM] = {"SEND_WITH_IMM", RC | UC | UD, MSG, BB_WQE_SEND_IMM},
	[BB_WR_RDMA_READ] = {"RDMA_READ", RC, ANY, BB_WQE_RDMA_READ},
	[BB_WR_ATOMIC_CMP_AND_SWP] = {"ATOMIC_CMP_AND_SWP", RC, ANY, BB_WQE_ATOMIC_CS},
	[BB_WR_ATOMIC_FETCH_AND_ADD] = {"ATOMIC_FETCH_AND_ADD", RC, ANY, BB_WQE_ATOMIC_FA},
	[BB_WR_LOCAL_INV] = {"LOCAL_INV", RC | UC, ANY, BB_WQE_UMR},
	[BB_WR_BIND_MW] = {"BIND_MW", RC | UC, ANY, BB_WQE_UMR},
	[BB_WR_SEND_WITH_INV] = {"SEND_WITH_INV", RC | UC, MSG, BB_WQE_SEND_INV},
	[BB_WR_TSO] = {"TSO", 0, 0, 0},
	[BB_WR_DRIVER1] = {"DRIVER1", 0, 0, 0},
	[BB_WR_MASKED_CMP_AND_SWP] = {"MASKED_CMP_AND_SWP", RC, ANY, BB_WQE_ATOMIC_MASKED_CS},
	[BB_WR_MASKED_FETCH_AND_ADD] = {"MASKED_FETCH_AND_ADD", RC, ANY, BB_WQE_ATOMIC_MASKED_FA},
	[BB_WR_FLUSH] = {"FLUSH", 0, 0, 0},
	[BB_WR_ATOMIC_WRITE] = {"ATOMIC_WRITE", 0, 0, 0},
};

int
bb_wr_check(enum bb_qp_type type, enum bb_wr_opcode opcode, uint32_t flags)
{
	if ((unsigned int)opcode >= BB_WR_OPCODES || (unsigned int)type > BB_QPT_UD)
		return -EINVAL;
	if (rules[opcode].types == 0)
		return -ENOTSUP;
	if ((rules[opcode].types & 1u << type) == 0 || (flags & ~rules[opcode].flags) != 0)
		return -EINVAL;
	/* Both fences would make a value of the WQE's field that no public header defines. */
	if ((flags & BB_SEND_FENCE) != 0 &&
	    (type != BB_QPT_RC || (flags & BB_SEND_SMALL_FENCE) != 0))
		return -EINVAL;
	return 0;
}

uint8_t
bb_wr_wqe_opcode(enum bb_wr_opcode opcode)
{
	return (unsigned int)opcode < BB_WR_OPCODES ? rules[opcode].wqe_opcode : BB_WQE_NOP;
}

const char *
bb_wr_opcode_name(enum bb_wr_opcode opcode)
{
	return (unsigned int)opcode < BB_WR_OPCODES ? rules[opcode].name : "?";
}

const char *
bb_qp_type_name(enum bb_qp_type type)
{
	static const char *const names[] = {"RC", "UC", "UD"};

	return (unsigned int)type <= BB_QPT_UD ? names[type] : "?";
}
