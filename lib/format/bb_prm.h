/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Command mailbox layouts of the mlx5 programming interface: positions of the fields that the mlx5
 * driver writes or the software device decodes.
 *
 * A field is the byte offset of a big-endian dword, the first bit counted from that dword's most
 * significant bit, and a width. Its comment names the struct and field in the kernel's
 * include/linux/mlx5/mlx5_ifc.h, or in DPDK's mlx5_prm.h if the kernel marks the bits as reserved.
 * test/golden checks every line of this file against positions taken from those headers.
 */
#ifndef BB_PRM_H
#define BB_PRM_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bb_prm_field {
	uint16_t byte; /* offset of the dword that holds the first bit */
	uint8_t bit;   /* first bit of the field, counted from the dword's most significant bit */
	uint8_t width; /* bits of the field: at most 32, or 64 if bit is 0; 0 for a sub-structure */
};

#ifdef __cplusplus
#define BB_PRM_F(byte_, bit_, width_)                                                              \
	(bb_prm_field{(byte_), (bit_), (uint8_t)((width_) > 64 ? 0 : (width_))})
#else
#define BB_PRM_F(byte_, bit_, width_)                                                              \
	((struct bb_prm_field){(byte_), (bit_), (uint8_t)((width_) > 64 ? 0 : (width_))})
#endif

static inline uint32_t
bb_prm_dword(const void *base, uint16_t byte)
{
	const uint8_t *p = (const uint8_t *)base + byte;

	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Returns the value of a field of at most 32 bits. */
static inline uint32_t
bb_prm_get(const void *base, struct bb_prm_field f)
{
	uint32_t mask = f.width >= 32 ? UINT32_MAX : (1u << f.width) - 1;

	return bb_prm_dword(base, f.byte) >> (32 - f.bit - f.width) & mask;
}

/* Writes a field of at most 32 bits; drops bits of v beyond the width. */
static inline void
bb_prm_set(void *base, struct bb_prm_field f, uint32_t v)
{
	uint32_t mask = (f.width >= 32 ? UINT32_MAX : (1u << f.width) - 1)
			<< (32 - f.bit - f.width);
	uint32_t d = (bb_prm_dword(base, f.byte) & ~mask) | (v << (32 - f.bit - f.width) & mask);
	uint8_t *p = (uint8_t *)base + f.byte;

	p[0] = (uint8_t)(d >> 24);
	p[1] = (uint8_t)(d >> 16);
	p[2] = (uint8_t)(d >> 8);
	p[3] = (uint8_t)d;
}

/* Returns the value of a field of 64 bits. */
static inline uint64_t
bb_prm_get64(const void *base, struct bb_prm_field f)
{
	return (uint64_t)bb_prm_dword(base, f.byte) << 32 |
	       bb_prm_dword(base, (uint16_t)(f.byte + 4));
}

/* Writes a field of 64 bits. */
static inline void
bb_prm_set64(void *base, struct bb_prm_field f, uint64_t v)
{
	struct bb_prm_field hi = {f.byte, 0, 32}, lo = {(uint16_t)(f.byte + 4), 0, 32};

	bb_prm_set(base, hi, (uint32_t)(v >> 32));
	bb_prm_set(base, lo, (uint32_t)v);
}

/* Returns the address of the sub-structure @f, such as the QP context in a mailbox. */
static inline void *
bb_prm_sub(void *base, struct bb_prm_field f)
{
	return (uint8_t *)base + f.byte;
}

static inline const void *
bb_prm_csub(const void *base, struct bb_prm_field f)
{
	return (const uint8_t *)base + f.byte;
}

/* Command opcodes (kernel: MLX5_CMD_OP_*). */
enum bb_prm_op {
	BB_PRM_OP_QUERY_HCA_CAP = 0x100,
	BB_PRM_OP_CREATE_MKEY = 0x200,
	BB_PRM_OP_DESTROY_MKEY = 0x202,
	BB_PRM_OP_CREATE_CQ = 0x400,
	BB_PRM_OP_DESTROY_CQ = 0x401,
	BB_PRM_OP_MODIFY_CQ = 0x403,
	BB_PRM_OP_CREATE_QP = 0x500,
	BB_PRM_OP_DESTROY_QP = 0x501,
	BB_PRM_OP_RST2INIT_QP = 0x502,
	BB_PRM_OP_INIT2RTR_QP = 0x503,
	BB_PRM_OP_RTR2RTS_QP = 0x504,
	BB_PRM_OP_RTS2RTS_QP = 0x505,
	BB_PRM_OP_2ERR_QP = 0x507,
	BB_PRM_OP_2RST_QP = 0x50a,
	BB_PRM_OP_QUERY_QP = 0x50b,
	BB_PRM_OP_INIT2INIT_QP = 0x50e,
	BB_PRM_OP_ALLOC_Q_COUNTER = 0x771,
	BB_PRM_OP_DEALLOC_Q_COUNTER = 0x772,
	BB_PRM_OP_QUERY_Q_COUNTER = 0x773,
	BB_PRM_OP_ATTACH_TO_MCG = 0x806,
	BB_PRM_OP_DETACH_FROM_MCG = 0x807,
	BB_PRM_OP_QUERY_CONG_STATISTICS = 0x826,
	BB_PRM_OP_QUERY_LAG = 0x842,
	BB_PRM_OP_CREATE_RMP = 0x90c,
	BB_PRM_OP_MODIFY_RMP = 0x90d,
	BB_PRM_OP_DESTROY_RMP = 0x90e,
	BB_PRM_OP_QUERY_RMP = 0x90f,
};

/* Command statuses (kernel: MLX5_CMD_STAT_*). */
enum bb_prm_status {
	BB_PRM_STAT_OK = 0x00,
	BB_PRM_STAT_INT_ERR = 0x01,
	BB_PRM_STAT_BAD_OP = 0x02,
	BB_PRM_STAT_BAD_PARAM = 0x03,
	BB_PRM_STAT_BAD_SYS_STATE = 0x04,
	BB_PRM_STAT_BAD_RES = 0x05,
	BB_PRM_STAT_RES_BUSY = 0x06,
	BB_PRM_STAT_LIM_ERR = 0x08,
	BB_PRM_STAT_BAD_RES_STATE = 0x09,
	BB_PRM_STAT_IX_ERR = 0x0a,
	BB_PRM_STAT_NO_RES = 0x0f,
	BB_PRM_STAT_BAD_QP_STATE = 0x10,
	BB_PRM_STAT_BAD_SIZE_OUTS_CQES = 0x40,
	BB_PRM_STAT_BAD_INP_LEN = 0x50,
	BB_PRM_STAT_BAD_OUTP_LEN = 0x51,
};

/*
 * Capability types of QUERY_HCA_CAP. Its op_mod is type << 1 for the maximum values, and type << 1
 * | 1 for the current values.
 */
enum bb_prm_cap {
	BB_PRM_CAP_GENERAL = 0x0,
	BB_PRM_CAP_ODP = 0x2,
	BB_PRM_CAP_ATOMIC = 0x3,
	BB_PRM_CAP_ROCE = 0x4,
	BB_PRM_CAP_FLOW_TABLE = 0x7,
	BB_PRM_CAP_DEV_MEM = 0xf,
	BB_PRM_CAP_DEV_EVENT = 0x14,
	BB_PRM_CAP_PORT_SELECTION = 0x25,
};

/* opt_param_mask bits of the QP transitions (kernel: MLX5_QP_OPTPAR_*). */
#define BB_PRM_OPTPAR_RRE         (1u << 1)
#define BB_PRM_OPTPAR_RAE         (1u << 2)
#define BB_PRM_OPTPAR_RWE         (1u << 3)
#define BB_PRM_OPTPAR_PKEY_INDEX  (1u << 4)
#define BB_PRM_OPTPAR_Q_KEY       (1u << 5)
#define BB_PRM_OPTPAR_RNR_TIMEOUT (1u << 6)
#define BB_PRM_OPTPAR_PRI_PORT    (1u << 16)

/* Event types (kernel: enum mlx5_event). */
enum bb_prm_event {
	BB_PRM_EVENT_COMP = 0x00,
	BB_PRM_EVENT_PATH_MIG = 0x01,
	BB_PRM_EVENT_COMM_EST = 0x02,
	BB_PRM_EVENT_CQ_ERROR = 0x04,
	BB_PRM_EVENT_WQ_CATAS_ERROR = 0x05,
	BB_PRM_EVENT_PORT_CHANGE = 0x09,
	BB_PRM_EVENT_WQ_INVAL_REQ_ERROR = 0x10,
	BB_PRM_EVENT_WQ_ACCESS_ERROR = 0x11,
	BB_PRM_EVENT_SRQ_CATAS_ERROR = 0x12,
	BB_PRM_EVENT_SRQ_LAST_WQE = 0x13,
	BB_PRM_EVENT_SRQ_RQ_LIMIT = 0x14,
};

/* Subtypes of BB_PRM_EVENT_PORT_CHANGE (MLX5_PORT_CHANGE_SUBTYPE_*). */
enum bb_prm_port_change {
	BB_PRM_PORT_CHANGE_DOWN = 1,
	BB_PRM_PORT_CHANGE_ACTIVE = 4,
	BB_PRM_PORT_CHANGE_LID = 6,
	BB_PRM_PORT_CHANGE_PKEY = 7,
	BB_PRM_PORT_CHANGE_GUID = 8,
};

/*
 * Mailbox sizes in bytes, without a page list: all objects are backed by umems.
 *
 * BB_PRM_SZ_MODIFY_QP_IN is sizeof(rst2init_qp_in), sizeof(init2init_qp_in),
 * sizeof(init2rtr_qp_in), sizeof(rtr2rts_qp_in), sizeof(rts2rts_qp_in).
 * BB_PRM_SZ_SHORT is sizeof(create_mkey_out), sizeof(destroy_mkey_in), sizeof(destroy_mkey_out),
 * sizeof(create_cq_out), sizeof(destroy_cq_in), sizeof(destroy_cq_out), sizeof(modify_cq_out),
 * sizeof(create_qp_out), sizeof(destroy_qp_in), sizeof(destroy_qp_out), sizeof(rst2init_qp_out),
 * sizeof(init2init_qp_out), sizeof(init2rtr_qp_out), sizeof(rtr2rts_qp_out),
 * sizeof(rts2rts_qp_out), sizeof(qp_2err_in), sizeof(qp_2err_out), sizeof(qp_2rst_in),
 * sizeof(qp_2rst_out), sizeof(query_qp_in), sizeof(alloc_q_counter_in),
 * sizeof(alloc_q_counter_out), sizeof(dealloc_q_counter_in), sizeof(dealloc_q_counter_out),
 * sizeof(create_rmp_out), sizeof(modify_rmp_out), sizeof(query_rmp_in), sizeof(destroy_rmp_in),
 * sizeof(destroy_rmp_out), sizeof(query_lag_in), sizeof(query_lag_out), sizeof(attach_to_mcg_out),
 * sizeof(detach_from_mcg_out).
 *
 * BB_PRM_SZ_RMP is sizeof(create_rmp_in), sizeof(modify_rmp_in), sizeof(query_rmp_out).
 *
 * BB_PRM_SZ_MCG is sizeof(attach_to_mcg_in), sizeof(detach_from_mcg_in).
 */
#define BB_PRM_SZ_QUERY_HCA_CAP_IN          0x10   /* sizeof(query_hca_cap_in) */
#define BB_PRM_SZ_QUERY_HCA_CAP_OUT         0x1010 /* sizeof(query_hca_cap_out) */
#define BB_PRM_HCA_CAP_OUT_CAPS             0x10   /* query_hca_cap_out.capability */
#define BB_PRM_SZ_CREATE_MKEY_IN            0x110  /* sizeof(create_mkey_in) */
#define BB_PRM_SZ_CREATE_CQ_IN              0x110  /* sizeof(create_cq_in) */
#define BB_PRM_SZ_MODIFY_CQ_IN              0x110  /* sizeof(modify_cq_in) */
#define BB_PRM_SZ_CREATE_QP_IN              0x110  /* sizeof(create_qp_in) */
#define BB_PRM_SZ_MODIFY_QP_IN              0x110
#define BB_PRM_SZ_QUERY_QP_OUT              0x1d0 /* sizeof(query_qp_out) */
#define BB_PRM_SZ_QUERY_Q_COUNTER_IN        0x20  /* sizeof(query_q_counter_in) */
#define BB_PRM_SZ_QUERY_Q_COUNTER_OUT       0x100 /* sizeof(query_q_counter_out) */
#define BB_PRM_SZ_QUERY_CONG_STATISTICS_IN  0x10  /* sizeof(query_cong_statistics_in) */
#define BB_PRM_SZ_QUERY_CONG_STATISTICS_OUT 0x110 /* sizeof(query_cong_statistics_out) */
#define BB_PRM_SZ_RMP                       0x110
#define BB_PRM_SZ_MCG                       0x20
#define BB_PRM_SZ_SHORT                     0x10

/* QP context: service type, states, RQ type. */
#define BB_PRM_QP_ST_RC       0 /* MLX5_QP_ST_RC */
#define BB_PRM_QP_ST_UC       1 /* MLX5_QP_ST_UC */
#define BB_PRM_QP_ST_UD       2 /* MLX5_QP_ST_UD */
#define BB_PRM_QP_PM_MIGRATED 3 /* MLX5_QP_PM_MIGRATED */
enum bb_prm_qp_state {
	BB_PRM_QP_RST = 0,
	BB_PRM_QP_INIT = 1,
	BB_PRM_QP_RTR = 2,
	BB_PRM_QP_RTS = 3,
	BB_PRM_QP_SQER = 4,
	BB_PRM_QP_SQD = 5,
	BB_PRM_QP_ERR = 6,
};
#define BB_PRM_RQ_TYPE_REGULAR 0 /* MLX5_NON_ZERO_RQ */
#define BB_PRM_RQ_TYPE_SRQ     1 /* MLX5_SRQ_RQ */
#define BB_PRM_RQ_TYPE_ZERO    3 /* MLX5_ZERO_LEN_RQ */
#define BB_PRM_WQ_TYPE_LIST    0 /* MLX5_WQ_TYPE_LINKED_LIST */
#define BB_PRM_WQ_TYPE_CYCLIC  1 /* MLX5_WQ_TYPE_CYCLIC */
#define BB_PRM_RMPC_RDY        1 /* MLX5_RMPC_STATE_RDY */
#define BB_PRM_RMPC_ERR        3 /* MLX5_RMPC_STATE_ERR */

/* Command header, common to every mailbox. */
#define BB_PRM_CMD_OPCODE   BB_PRM_F(0x000, 0, 16)  /* create_qp_in.opcode */
#define BB_PRM_CMD_UID      BB_PRM_F(0x000, 16, 16) /* create_qp_in.uid */
#define BB_PRM_CMD_OP_MOD   BB_PRM_F(0x004, 16, 16) /* create_qp_in.op_mod */
#define BB_PRM_CMD_STATUS   BB_PRM_F(0x000, 0, 8)   /* create_qp_out.status */
#define BB_PRM_CMD_SYNDROME BB_PRM_F(0x004, 0, 32)  /* create_qp_out.syndrome */

/* QUERY_HCA_CAP: cmd_hca_cap, page 0 (general) of the output's capability union. */
#define BB_PRM_HCA_LOG_MAX_SRQ_SZ    BB_PRM_F(0x010, 0, 8)  /* cmd_hca_cap.log_max_srq_sz */
#define BB_PRM_HCA_LOG_MAX_QP_SZ     BB_PRM_F(0x010, 8, 8)  /* cmd_hca_cap.log_max_qp_sz */
#define BB_PRM_HCA_EVENT_CAP         BB_PRM_F(0x010, 16, 1) /* cmd_hca_cap.event_cap */
#define BB_PRM_HCA_LOG_MAX_QP        BB_PRM_F(0x010, 27, 5) /* cmd_hca_cap.log_max_qp */
#define BB_PRM_HCA_LOG_MAX_CQ_SZ     BB_PRM_F(0x018, 8, 8)  /* cmd_hca_cap.log_max_cq_sz */
#define BB_PRM_HCA_LOG_MAX_CQ        BB_PRM_F(0x018, 27, 5) /* cmd_hca_cap.log_max_cq */
#define BB_PRM_HCA_LOG_MAX_MKEY      BB_PRM_F(0x01c, 10, 6) /* cmd_hca_cap.log_max_mkey */
#define BB_PRM_HCA_MAX_INDIRECTION   BB_PRM_F(0x020, 0, 8)  /* cmd_hca_cap.max_indirection */
#define BB_PRM_HCA_FIXED_BUFFER_SIZE BB_PRM_F(0x020, 8, 1)  /* cmd_hca_cap.fixed_buffer_size */
#define BB_PRM_HCA_LOG_MAX_KLM_LIST_SIZE                                                           \
	BB_PRM_F(0x020, 26, 6) /* cmd_hca_cap.log_max_klm_list_size */
#define BB_PRM_HCA_REPEATED_BLOCK_DISABLED                                                         \
	BB_PRM_F(0x040, 6, 1) /* cmd_hca_cap.repeated_block_disabled */
#define BB_PRM_HCA_UMR_MODIFY_ATOMIC_DISABLED                                                      \
	BB_PRM_F(0x040, 8, 1) /* cmd_hca_cap.umr_modify_atomic_disabled */
#define BB_PRM_HCA_UMR_INDIRECT_MKEY_DISABLED                                                      \
	BB_PRM_F(0x040, 9, 1) /* cmd_hca_cap.umr_indirect_mkey_disabled */
#define BB_PRM_HCA_UMR_FENCE         BB_PRM_F(0x040, 10, 2)  /* cmd_hca_cap.umr_fence */
#define BB_PRM_HCA_IMAICL            BB_PRM_F(0x044, 17, 1)  /* cmd_hca_cap.imaicl */
#define BB_PRM_HCA_LOG_MAX_MRW_SZ    BB_PRM_F(0x020, 9, 7)   /* cmd_hca_cap.log_max_mrw_sz */
#define BB_PRM_HCA_LOG_MAX_RA_REQ_QP BB_PRM_F(0x028, 10, 6)  /* cmd_hca_cap.log_max_ra_req_qp */
#define BB_PRM_HCA_LOG_MAX_RA_RES_QP BB_PRM_F(0x028, 26, 6)  /* cmd_hca_cap.log_max_ra_res_qp */
#define BB_PRM_HCA_MAX_QP_CNT        BB_PRM_F(0x030, 6, 10)  /* cmd_hca_cap.max_qp_cnt */
#define BB_PRM_HCA_DEVICE_MEMORY     BB_PRM_F(0x034, 8, 1)   /* cmd_hca_cap.device_memory */
#define BB_PRM_HCA_PORT_TYPE         BB_PRM_F(0x034, 22, 2)  /* cmd_hca_cap.port_type */
#define BB_PRM_HCA_NUM_PORTS         BB_PRM_F(0x034, 24, 8)  /* cmd_hca_cap.num_ports */
#define BB_PRM_HCA_LOG_MAX_MSG       BB_PRM_F(0x038, 3, 5)   /* cmd_hca_cap.log_max_msg */
#define BB_PRM_HCA_STAT_RATE_SUPPORT BB_PRM_F(0x03c, 0, 16)  /* cmd_hca_cap.stat_rate_support */
#define BB_PRM_HCA_CQE_VERSION       BB_PRM_F(0x03c, 28, 4)  /* cmd_hca_cap.cqe_version */
#define BB_PRM_HCA_ROCE              BB_PRM_F(0x040, 29, 1)  /* cmd_hca_cap.roce */
#define BB_PRM_HCA_ATOMIC            BB_PRM_F(0x040, 30, 1)  /* cmd_hca_cap.atomic */
#define BB_PRM_HCA_CC_QUERY_ALLOWED  BB_PRM_F(0x02c, 1, 1)   /* cmd_hca_cap.cc_query_allowed */
#define BB_PRM_HCA_CQ_OI             BB_PRM_F(0x044, 0, 1)   /* cmd_hca_cap.cq_oi */
#define BB_PRM_HCA_CQ_RESIZE         BB_PRM_F(0x044, 1, 1)   /* cmd_hca_cap.cq_resize */
#define BB_PRM_HCA_CQ_MODERATION     BB_PRM_F(0x044, 2, 1)   /* cmd_hca_cap.cq_moderation */
#define BB_PRM_HCA_UAR_4K            BB_PRM_F(0x048, 0, 1)   /* cmd_hca_cap.uar_4k */
#define BB_PRM_HCA_PORT_SELECTION    BB_PRM_F(0x048, 16, 1)  /* cmd_hca_cap.port_selection_cap */
#define BB_PRM_HCA_BF                BB_PRM_F(0x04c, 0, 1)   /* cmd_hca_cap.bf */
#define BB_PRM_HCA_LOG_BF_REG_SIZE   BB_PRM_F(0x04c, 11, 5)  /* cmd_hca_cap.log_bf_reg_size */
#define BB_PRM_HCA_LAG_AFFINITY      BB_PRM_F(0x04c, 24, 1)  /* cmd_hca_cap.lag_tx_port_affinity */
#define BB_PRM_HCA_NUM_LAG_PORTS     BB_PRM_F(0x04c, 28, 4)  /* cmd_hca_cap.num_lag_ports */
#define BB_PRM_HCA_MAX_WQE_SZ_SQ     BB_PRM_F(0x050, 16, 16) /* cmd_hca_cap.max_wqe_sz_sq */
#define BB_PRM_HCA_MAX_WQE_SZ_RQ     BB_PRM_F(0x054, 16, 16) /* cmd_hca_cap.max_wqe_sz_rq */
#define BB_PRM_HCA_MAX_QP_MCG        BB_PRM_F(0x05c, 7, 25)  /* cmd_hca_cap.max_qp_mcg */
#define BB_PRM_HCA_LOG_MAX_MCG       BB_PRM_F(0x060, 24, 8)  /* cmd_hca_cap.log_max_mcg */
#define BB_PRM_HCA_LOG_MAX_PD        BB_PRM_F(0x064, 11, 5)  /* cmd_hca_cap.log_max_pd */
#define BB_PRM_HCA_BASIC_CYCLIC      BB_PRM_F(0x070, 0, 1)   /* cmd_hca_cap.basic_cyclic_rcv_wqe */
#define BB_PRM_HCA_LOG_MAX_RMP       BB_PRM_F(0x070, 3, 5)   /* cmd_hca_cap.log_max_rmp */
#define BB_PRM_HCA_LOG_MAX_UCTX      BB_PRM_F(0x08c, 3, 5)   /* cmd_hca_cap.log_max_uctx */
#define BB_PRM_HCA_LOG_MAX_UMEM      BB_PRM_F(0x08c, 11, 5)  /* cmd_hca_cap.log_max_umem */
#define BB_PRM_HCA_DEVICE_FREQUENCY_KHZ                                                            \
	BB_PRM_F(0x09c, 0, 32)                            /* cmd_hca_cap.device_frequency_khz */
#define BB_PRM_HCA_CQE_COMPRESSION BB_PRM_F(0x0b4, 31, 1) /* cmd_hca_cap.cqe_compression */
#define BB_PRM_HCA_CQE_COMPRESSION_MAX_NUM                                                         \
	BB_PRM_F(0x0b8, 16, 16) /* cmd_hca_cap.cqe_compression_max_num */

/* QUERY_HCA_CAP: atomic_caps. */
#define BB_PRM_ATOMIC_CAP_MODE    BB_PRM_F(0x010, 16, 16) /* atomic_caps.atomic_operations */
#define BB_PRM_ATOMIC_CAP_SIZE_QP BB_PRM_F(0x014, 16, 16) /* atomic_caps.atomic_size_qp */
#define BB_PRM_ATOMIC_CAP_REQ_8B_ENDIANNESS_MODE                                                   \
	BB_PRM_F(0x008, 0, 2) /* atomic_caps.atomic_req_8B_endianness_mode */

/* QUERY_HCA_CAP: cmd_hca_cap, capabilities of memory regions. */
#define BB_PRM_HCA_RELAXED_ORDERING_WRITE                                                          \
	BB_PRM_F(0x01c, 8, 1) /* cmd_hca_cap.relaxed_ordering_write */
#define BB_PRM_HCA_RELAXED_ORDERING_ONLY                                                           \
	BB_PRM_F(0x074, 9, 1) /* DPDK: cmd_hca_cap.mkc_order_write_after_write_ro_only */
#define BB_PRM_HCA_UMR_EXTENDED_TRANSLATION_OFFSET                                                 \
	BB_PRM_F(0x020, 24, 1) /* cmd_hca_cap.umr_extended_translation_offset */
#define BB_PRM_HCA_NULL_MKEY BB_PRM_F(0x020, 25, 1) /* cmd_hca_cap.null_mkey */
#define BB_PRM_HCA_PG        BB_PRM_F(0x044, 7, 1)  /* cmd_hca_cap.pg */

/* QUERY_HCA_CAP: odp_cap. */
#define BB_PRM_ODP_CAP_MEM_PAGE_FAULT BB_PRM_F(0x0c0, 0, 1) /* odp_cap.mem_page_fault */
#define BB_PRM_ODP_CAP_TRANSPORT                                                                   \
	BB_PRM_F(0x000, 0, 512) /* odp_cap.transport_page_fault_scheme_cap */
#define BB_PRM_ODP_CAP_MEMORY     BB_PRM_F(0x040, 0, 512) /* odp_cap.memory_page_fault_scheme_cap */
#define BB_PRM_ODP_SCHEME_RC      BB_PRM_F(0x010, 0, 32)  /* odp_scheme_cap.rc_odp_caps */
#define BB_PRM_ODP_SERVICE_WRITE  BB_PRM_F(0x000, 2, 1)   /* odp_per_transport_service_cap.write */
#define BB_PRM_ODP_SERVICE_READ   BB_PRM_F(0x000, 3, 1)   /* odp_per_transport_service_cap.read */
#define BB_PRM_ODP_SERVICE_ATOMIC BB_PRM_F(0x000, 4, 1)   /* odp_per_transport_service_cap.atomic */

/* QUERY_HCA_CAP: roce_cap. */
#define BB_PRM_ROCE_CAP_QP_TS_FORMAT BB_PRM_F(0x000, 30, 2) /* roce_cap.qp_ts_format */
#define BB_PRM_ROCE_CAP_VERSION      BB_PRM_F(0x010, 24, 8) /* roce_cap.roce_version */
#define BB_PRM_ROCE_CAP_R_ROCE_MIN_SRC_UDP_PORT                                                    \
	BB_PRM_F(0x018, 16, 16) /* roce_cap.r_roce_min_src_udp_port */
#define BB_PRM_ROCE_CAP_R_ROCE_MAX_SRC_UDP_PORT                                                    \
	BB_PRM_F(0x018, 0, 16) /* roce_cap.r_roce_max_src_udp_port */
#define BB_PRM_ROCE_CAP_ADDRESS_TABLE_SIZE                                                         \
	BB_PRM_F(0x01c, 16, 16) /* roce_cap.roce_address_table_size */

/*
 * QUERY_HCA_CAP: device_event_cap. Event type t is bit t % 64 (0 is lowest) of the 64-bit number t
 * / 64.
 */
#define BB_PRM_DEV_EVENT_CAP_AFFILIATED                                                            \
	BB_PRM_F(0x000, 0, 256) /* device_event_cap.user_affiliated_events */
#define BB_PRM_DEV_EVENT_CAP_UNAFFILIATED                                                          \
	BB_PRM_F(0x020, 0, 256) /* device_event_cap.user_unaffiliated_events */

/* QUERY_HCA_CAP: port_selection_cap. */
#define BB_PRM_PORT_SELECTION_CAP_BYPASS                                                           \
	BB_PRM_F(0x000, 18, 1) /* port_selection_cap.port_select_flow_table_bypass */

/* QUERY_HCA_CAP: device_mem_cap. */
#define BB_PRM_DEV_MEM_CAP_MEMIC BB_PRM_F(0x000, 0, 1) /* device_mem_cap.memic */
#define BB_PRM_DEV_MEM_CAP_LOG_MIN_MEMIC_ALLOC_SIZE                                                \
	BB_PRM_F(0x004, 11, 5) /* device_mem_cap.log_min_memic_alloc_size */
#define BB_PRM_DEV_MEM_CAP_LOG_MAX_MEMIC_ADDR_ALIGNMENT                                            \
	BB_PRM_F(0x004, 24, 8) /* device_mem_cap.log_max_memic_addr_alignment */
#define BB_PRM_DEV_MEM_CAP_MEMIC_BAR_SIZE                                                          \
	BB_PRM_F(0x010, 0, 32) /* device_mem_cap.memic_bar_size                                    \
				*/
#define BB_PRM_DEV_MEM_CAP_MAX_MEMIC_SIZE                                                          \
	BB_PRM_F(0x014, 0, 32) /* device_mem_cap.max_memic_size                                    \
				*/
/* CREATE_MKEY, DESTROY_MKEY. The translation entries follow the mailbox's fixed part. */
#define BB_PRM_CREATE_MKEY_MKC BB_PRM_F(0x010, 0, 512) /* create_mkey_in.memory_key_mkey_entry */
#define BB_PRM_CREATE_MKEY_XLT_ACTUAL                                                              \
	BB_PRM_F(0x060, 0, 32) /* create_mkey_in.translations_octword_actual_size */
#define BB_PRM_CREATE_MKEY_OUT_INDEX BB_PRM_F(0x008, 8, 24) /* create_mkey_out.mkey_index */
#define BB_PRM_DESTROY_MKEY_INDEX    BB_PRM_F(0x008, 8, 24) /* destroy_mkey_in.mkey_index */

/* Memory key context. */
#define BB_PRM_MKC_FREE                   BB_PRM_F(0x000, 1, 1)  /* mkc.free */
#define BB_PRM_MKC_ACCESS_MODE_4_2        BB_PRM_F(0x000, 3, 3)  /* mkc.access_mode_4_2 */
#define BB_PRM_MKC_RELAXED_ORDERING_WRITE BB_PRM_F(0x000, 13, 1) /* mkc.relaxed_ordering_write */
#define BB_PRM_MKC_UMR_EN                 BB_PRM_F(0x000, 16, 1) /* mkc.umr_en */
#define BB_PRM_MKC_A                      BB_PRM_F(0x000, 17, 1) /* mkc.a */
#define BB_PRM_MKC_RW                     BB_PRM_F(0x000, 18, 1) /* mkc.rw */
#define BB_PRM_MKC_RR                     BB_PRM_F(0x000, 19, 1) /* mkc.rr */
#define BB_PRM_MKC_LW                     BB_PRM_F(0x000, 20, 1) /* mkc.lw */
#define BB_PRM_MKC_LR                     BB_PRM_F(0x000, 21, 1) /* mkc.lr */
#define BB_PRM_MKC_ACCESS_MODE            BB_PRM_F(0x000, 22, 2) /* mkc.access_mode_1_0 */
#define BB_PRM_MKC_QPN                    BB_PRM_F(0x004, 0, 24) /* mkc.qpn */
#define BB_PRM_MKC_MKEY_7_0               BB_PRM_F(0x004, 24, 8) /* mkc.mkey_7_0 */
#define BB_PRM_MKC_EN_RINVAL              BB_PRM_F(0x00c, 7, 1)  /* mkc.en_rinval */
#define BB_PRM_MKC_PD                     BB_PRM_F(0x00c, 8, 24) /* mkc.pd */
#define BB_PRM_MKC_START_ADDR             BB_PRM_F(0x010, 0, 64) /* mkc.start_addr */
#define BB_PRM_MKC_LEN                    BB_PRM_F(0x018, 0, 64) /* mkc.len */
#define BB_PRM_MKC_XLT_OCTWORD_SIZE       BB_PRM_F(0x034, 0, 32) /* mkc.translations_octword_size */
#define BB_PRM_MKC_LOG_PAGE_SIZE                                                                   \
	BB_PRM_F(0x038, 27, 5) /* kernel: inside mkc.log_page_size; DPDK: mkc.log_page_size */
#define BB_PRM_MKC_MODE_KLMS 2 /* MLX5_MKC_ACCESS_MODE_KLMS */
#define BB_PRM_MKC_MODE_KSM  3 /* MLX5_MKC_ACCESS_MODE_KSM */

/* CREATE_CQ, DESTROY_CQ. */
#define BB_PRM_CREATE_CQ_CQC BB_PRM_F(0x010, 0, 512) /* create_cq_in.cq_context */
#define BB_PRM_CREATE_CQ_UMEM_OFFSET                                                               \
	BB_PRM_F(0x050, 0, 64) /* kernel: inside create_cq_in.reserved_at_280; DPDK:               \
				  create_cq_in.cq_umem_offset */
#define BB_PRM_CREATE_CQ_UMEM_ID    BB_PRM_F(0x058, 0, 32) /* DPDK: create_cq_in.cq_umem_id */
#define BB_PRM_CREATE_CQ_UMEM_VALID BB_PRM_F(0x05c, 0, 1)  /* create_cq_in.cq_umem_valid */
#define BB_PRM_CREATE_CQ_OUT_CQN    BB_PRM_F(0x008, 8, 24) /* create_cq_out.cqn */
#define BB_PRM_DESTROY_CQ_CQN       BB_PRM_F(0x008, 8, 24) /* destroy_cq_in.cqn */

/*
 * MODIFY_CQ: with op_mod RESIZE it sets a new ring; otherwise the select field names the attributes
 * that change. [A], an assumption that was not tested on a card: the umem of the new ring has its
 * fields at the positions of CREATE_CQ. In both commands the kernel marks these positions as
 * reserved and has cq_umem_valid after them.
 */
#define BB_PRM_MODIFY_CQ_CQN BB_PRM_F(0x008, 8, 24) /* modify_cq_in.cqn */
#define BB_PRM_MODIFY_CQ_FIELD_SELECT                                                              \
	BB_PRM_F(0x00c, 0, 32) /* modify_cq_in.modify_field_select_resize_field_select */
#define BB_PRM_MODIFY_CQ_CQC        BB_PRM_F(0x010, 0, 512) /* modify_cq_in.cq_context */
#define BB_PRM_MODIFY_CQ_UMEM_VALID BB_PRM_F(0x05c, 0, 1)   /* modify_cq_in.cq_umem_valid */
#define BB_PRM_CQ_OP_MOD_RESIZE     1                       /* MLX5_CQ_OPMOD_RESIZE */
#define BB_PRM_CQ_RESIZE_LOG_SIZE   (1u << 0)               /* MLX5_MODIFY_CQ_MASK_LOG_SIZE */
#define BB_PRM_CQ_RESIZE_PG_OFFSET  (1u << 1)               /* MLX5_MODIFY_CQ_MASK_PG_OFFSET */
#define BB_PRM_CQ_RESIZE_PG_SIZE    (1u << 2)               /* MLX5_MODIFY_CQ_MASK_PG_SIZE */
#define BB_PRM_CQ_MODIFY_PERIOD     (1u << 0)               /* MLX5_CQ_MODIFY_PERIOD */
#define BB_PRM_CQ_MODIFY_COUNT      (1u << 1)               /* MLX5_CQ_MODIFY_COUNT */

/* CQ context. */
#define BB_PRM_CQC_STATUS              BB_PRM_F(0x000, 0, 4)  /* cqc.status */
#define BB_PRM_CQC_DBR_UMEM_VALID      BB_PRM_F(0x000, 6, 1)  /* cqc.dbr_umem_valid */
#define BB_PRM_CQC_CQE_SZ              BB_PRM_F(0x000, 8, 3)  /* cqc.cqe_sz */
#define BB_PRM_CQC_CC                  BB_PRM_F(0x000, 11, 1) /* cqc.cc */
#define BB_PRM_CQC_OI                  BB_PRM_F(0x000, 14, 1) /* cqc.oi */
#define BB_PRM_CQC_CQE_COMP_EN         BB_PRM_F(0x000, 17, 1) /* cqc.cqe_comp_en */
#define BB_PRM_CQC_MINI_CQE_RES_FORMAT BB_PRM_F(0x000, 18, 2) /* cqc.mini_cqe_res_format */
#define BB_PRM_CQC_ST                  BB_PRM_F(0x000, 20, 4) /* cqc.st */
#define BB_PRM_CQ_MINI_CSUM            1                      /* MLX5_CQE_FORMAT_CSUM */
#define BB_PRM_CQC_DBR_UMEM_ID                                                                     \
	BB_PRM_F(0x004, 0, 32) /* kernel: cqc.reserved_at_20; DPDK: cqc.dbr_umem_id */
#define BB_PRM_CQC_PAGE_OFFSET      BB_PRM_F(0x008, 20, 6)  /* cqc.page_offset */
#define BB_PRM_CQC_LOG_CQ_SIZE      BB_PRM_F(0x00c, 3, 5)   /* cqc.log_cq_size */
#define BB_PRM_CQC_UAR_PAGE         BB_PRM_F(0x00c, 8, 24)  /* cqc.uar_page */
#define BB_PRM_CQC_CQ_PERIOD        BB_PRM_F(0x010, 4, 12)  /* cqc.cq_period */
#define BB_PRM_CQC_CQ_MAX_COUNT     BB_PRM_F(0x010, 16, 16) /* cqc.cq_max_count */
#define BB_PRM_CQC_C_EQN            BB_PRM_F(0x014, 0, 32)  /* cqc.c_eqn_or_apu_element */
#define BB_PRM_CQC_LOG_PAGE_SIZE    BB_PRM_F(0x018, 3, 5)   /* cqc.log_page_size */
#define BB_PRM_CQC_PRODUCER_COUNTER BB_PRM_F(0x02c, 8, 24)  /* cqc.producer_counter */
#define BB_PRM_CQC_DBR_ADDR         BB_PRM_F(0x038, 0, 64)  /* cqc.dbr_addr */

/* CREATE_QP, DESTROY_QP, QP transitions, QUERY_QP. */
#define BB_PRM_CREATE_QP_INPUT_QPN      BB_PRM_F(0x008, 8, 24)   /* create_qp_in.input_qpn */
#define BB_PRM_CREATE_QP_OPT_PARAM_MASK BB_PRM_F(0x010, 0, 32)   /* create_qp_in.opt_param_mask */
#define BB_PRM_CREATE_QP_QPC            BB_PRM_F(0x018, 0, 1856) /* create_qp_in.qpc */
#define BB_PRM_CREATE_QP_WQ_UMEM_OFFSET BB_PRM_F(0x100, 0, 64)   /* create_qp_in.wq_umem_offset */
#define BB_PRM_CREATE_QP_WQ_UMEM_ID     BB_PRM_F(0x108, 0, 32)   /* create_qp_in.wq_umem_id */
#define BB_PRM_CREATE_QP_WQ_UMEM_VALID  BB_PRM_F(0x10c, 0, 1)    /* create_qp_in.wq_umem_valid */
#define BB_PRM_CREATE_QP_OUT_QPN        BB_PRM_F(0x008, 8, 24)   /* create_qp_out.qpn */
#define BB_PRM_MODIFY_QP_QPN            BB_PRM_F(0x008, 8, 24)   /* rst2init_qp_in.qpn */
#define BB_PRM_MODIFY_QP_OPT_PARAM_MASK BB_PRM_F(0x010, 0, 32)   /* rst2init_qp_in.opt_param_mask */
#define BB_PRM_MODIFY_QP_QPC            BB_PRM_F(0x018, 0, 1856) /* rst2init_qp_in.qpc */
#define BB_PRM_DESTROY_QP_QPN           BB_PRM_F(0x008, 8, 24)   /* destroy_qp_in.qpn */
#define BB_PRM_QUERY_QP_QPN             BB_PRM_F(0x008, 8, 24)   /* query_qp_in.qpn */
#define BB_PRM_QUERY_QP_OUT_QPC         BB_PRM_F(0x018, 0, 1856) /* query_qp_out.qpc */

/* QP context. */
#define BB_PRM_QPC_STATE                BB_PRM_F(0x000, 0, 4)   /* qpc.state */
#define BB_PRM_QPC_LAG_TX_PORT_AFFINITY BB_PRM_F(0x000, 4, 4)   /* qpc.lag_tx_port_affinity */
#define BB_PRM_QPC_ST                   BB_PRM_F(0x000, 8, 8)   /* qpc.st */
#define BB_PRM_QPC_PM_STATE             BB_PRM_F(0x000, 19, 2)  /* qpc.pm_state */
#define BB_PRM_QPC_PD                   BB_PRM_F(0x004, 8, 24)  /* qpc.pd */
#define BB_PRM_QPC_MTU                  BB_PRM_F(0x008, 0, 3)   /* qpc.mtu */
#define BB_PRM_QPC_LOG_MSG_MAX          BB_PRM_F(0x008, 3, 5)   /* qpc.log_msg_max */
#define BB_PRM_QPC_LOG_RQ_SIZE          BB_PRM_F(0x008, 9, 4)   /* qpc.log_rq_size */
#define BB_PRM_QPC_LOG_RQ_STRIDE        BB_PRM_F(0x008, 13, 3)  /* qpc.log_rq_stride */
#define BB_PRM_QPC_NO_SQ                BB_PRM_F(0x008, 16, 1)  /* qpc.no_sq */
#define BB_PRM_QPC_LOG_SQ_SIZE          BB_PRM_F(0x008, 17, 4)  /* qpc.log_sq_size */
#define BB_PRM_QPC_TS_FORMAT            BB_PRM_F(0x008, 24, 2)  /* qpc.ts_format */
#define BB_PRM_QPC_RLKY                 BB_PRM_F(0x008, 27, 1)  /* qpc.rlky */
#define BB_PRM_QPC_COUNTER_SET_ID       BB_PRM_F(0x00c, 0, 8)   /* qpc.counter_set_id */
#define BB_PRM_QPC_UAR_PAGE             BB_PRM_F(0x00c, 8, 24)  /* qpc.uar_page */
#define BB_PRM_QPC_USER_INDEX           BB_PRM_F(0x010, 8, 24)  /* qpc.user_index */
#define BB_PRM_QPC_LOG_PAGE_SIZE        BB_PRM_F(0x014, 3, 5)   /* qpc.log_page_size */
#define BB_PRM_QPC_REMOTE_QPN           BB_PRM_F(0x014, 8, 24)  /* qpc.remote_qpn */
#define BB_PRM_QPC_ADS                  BB_PRM_F(0x018, 0, 352) /* qpc.primary_address_path */
#define BB_PRM_QPC_LOG_ACK_REQ_FREQ     BB_PRM_F(0x070, 0, 4)   /* qpc.log_ack_req_freq */
#define BB_PRM_QPC_LOG_SRA_MAX          BB_PRM_F(0x070, 8, 3)   /* qpc.log_sra_max */
#define BB_PRM_QPC_RETRY_COUNT          BB_PRM_F(0x070, 13, 3)  /* qpc.retry_count */
#define BB_PRM_QPC_RNR_RETRY            BB_PRM_F(0x070, 16, 3)  /* qpc.rnr_retry */
#define BB_PRM_QPC_NEXT_SEND_PSN        BB_PRM_F(0x078, 8, 24)  /* qpc.next_send_psn */
#define BB_PRM_QPC_CQN_SND              BB_PRM_F(0x07c, 8, 24)  /* qpc.cqn_snd */
#define BB_PRM_QPC_CQN_RCV              BB_PRM_F(0x09c, 8, 24)  /* qpc.cqn_rcv */
#define BB_PRM_QPC_LOG_RRA_MAX          BB_PRM_F(0x090, 8, 3)   /* qpc.log_rra_max */
#define BB_PRM_QPC_ATOMIC_MODE          BB_PRM_F(0x090, 12, 4)  /* qpc.atomic_mode */
#define BB_PRM_QPC_RRE                  BB_PRM_F(0x090, 16, 1)  /* qpc.rre */
#define BB_PRM_QPC_RWE                  BB_PRM_F(0x090, 17, 1)  /* qpc.rwe */
#define BB_PRM_QPC_RAE                  BB_PRM_F(0x090, 18, 1)  /* qpc.rae */
#define BB_PRM_QPC_PAGE_OFFSET          BB_PRM_F(0x090, 20, 6)  /* qpc.page_offset */
#define BB_PRM_QPC_MIN_RNR_NAK          BB_PRM_F(0x094, 3, 5)   /* qpc.min_rnr_nak */
#define BB_PRM_QPC_NEXT_RCV_PSN         BB_PRM_F(0x094, 8, 24)  /* qpc.next_rcv_psn */
#define BB_PRM_QPC_DBR_ADDR             BB_PRM_F(0x0a0, 0, 64)  /* qpc.dbr_addr */
#define BB_PRM_QPC_Q_KEY                BB_PRM_F(0x0a8, 0, 32)  /* qpc.q_key */
#define BB_PRM_QPC_RQ_TYPE              BB_PRM_F(0x0ac, 5, 3)   /* qpc.rq_type */
#define BB_PRM_QPC_SRQN_RMPN_XRQN       BB_PRM_F(0x0ac, 8, 24)  /* qpc.srqn_rmpn_xrqn */
#define BB_PRM_QPC_HW_SQ_WQEBB_COUNTER  BB_PRM_F(0x0b4, 0, 16)  /* qpc.hw_sq_wqebb_counter */
#define BB_PRM_QPC_SW_SQ_WQEBB_COUNTER  BB_PRM_F(0x0b4, 16, 16) /* qpc.sw_sq_wqebb_counter */
#define BB_PRM_QPC_HW_RQ_COUNTER        BB_PRM_F(0x0b8, 0, 32)  /* qpc.hw_rq_counter */
#define BB_PRM_QPC_SW_RQ_COUNTER        BB_PRM_F(0x0bc, 0, 32)  /* qpc.sw_rq_counter */
#define BB_PRM_QPC_CS_REQ               BB_PRM_F(0x0c4, 16, 8)  /* qpc.cs_req */
#define BB_PRM_QPC_CS_RES               BB_PRM_F(0x0c4, 24, 8)  /* qpc.cs_res */
#define BB_PRM_QPC_DBR_UMEM_VALID       BB_PRM_F(0x0d0, 3, 1)   /* qpc.dbr_umem_valid */
#define BB_PRM_QPC_DBR_UMEM_ID                                                                     \
	BB_PRM_F(0x0e4, 0, 32) /* kernel: inside qpc.reserved_at_684; DPDK: qpc.dbr_umem_id */

/* Address path (inside the QP context at QPC_ADS). */
#define BB_PRM_ADS_PKEY_INDEX     BB_PRM_F(0x000, 16, 16) /* ads.pkey_index */
#define BB_PRM_ADS_GRH            BB_PRM_F(0x004, 8, 1)   /* ads.grh */
#define BB_PRM_ADS_MLID           BB_PRM_F(0x004, 9, 7)   /* ads.mlid */
#define BB_PRM_ADS_RLID           BB_PRM_F(0x004, 16, 16) /* ads.rlid */
#define BB_PRM_ADS_ACK_TIMEOUT    BB_PRM_F(0x008, 0, 5)   /* ads.ack_timeout */
#define BB_PRM_ADS_SRC_ADDR_INDEX BB_PRM_F(0x008, 8, 8)   /* ads.src_addr_index */
#define BB_PRM_ADS_STAT_RATE      BB_PRM_F(0x008, 20, 4)  /* ads.stat_rate */
#define BB_PRM_ADS_HOP_LIMIT      BB_PRM_F(0x008, 24, 8)  /* ads.hop_limit */
#define BB_PRM_ADS_TCLASS         BB_PRM_F(0x00c, 4, 8)   /* ads.tclass */
#define BB_PRM_ADS_FLOW_LABEL     BB_PRM_F(0x00c, 12, 20) /* ads.flow_label */
#define BB_PRM_ADS_RGID_RIP       BB_PRM_F(0x010, 0, 128) /* ads.rgid_rip */
#define BB_PRM_ADS_F_DSCP         BB_PRM_F(0x020, 4, 1)   /* ads.f_dscp */
#define BB_PRM_ADS_ECN            BB_PRM_F(0x020, 8, 2)   /* ads.ecn */
#define BB_PRM_ADS_DSCP           BB_PRM_F(0x020, 10, 6)  /* ads.dscp */
#define BB_PRM_ADS_UDP_SPORT      BB_PRM_F(0x020, 16, 16) /* ads.udp_sport */
#define BB_PRM_ADS_ETH_PRIO       BB_PRM_F(0x024, 1, 3)   /* ads.eth_prio */
#define BB_PRM_ADS_SL             BB_PRM_F(0x024, 4, 4)   /* ads.sl */
#define BB_PRM_ADS_VHCA_PORT_NUM  BB_PRM_F(0x024, 8, 8)   /* ads.vhca_port_num */
#define BB_PRM_ADS_RMAC_47_32     BB_PRM_F(0x024, 16, 16) /* ads.rmac_47_32 */
#define BB_PRM_ADS_RMAC_31_0      BB_PRM_F(0x028, 0, 32)  /* ads.rmac_31_0 */

/* CREATE_RMP, MODIFY_RMP, QUERY_RMP, DESTROY_RMP: a receive queue shared by several QPs. */
#define BB_PRM_CREATE_RMP_CTX      BB_PRM_F(0x020, 0, 1920) /* create_rmp_in.ctx */
#define BB_PRM_CREATE_RMP_OUT_RMPN BB_PRM_F(0x008, 8, 24)   /* create_rmp_out.rmpn */
#define BB_PRM_MODIFY_RMP_STATE    BB_PRM_F(0x008, 0, 4)    /* modify_rmp_in.rmp_state */
#define BB_PRM_MODIFY_RMP_RMPN     BB_PRM_F(0x008, 8, 24)   /* modify_rmp_in.rmpn */
#define BB_PRM_MODIFY_RMP_BITMASK  BB_PRM_F(0x010, 0, 64)   /* modify_rmp_in.bitmask */
#define BB_PRM_MODIFY_RMP_CTX      BB_PRM_F(0x020, 0, 1920) /* modify_rmp_in.ctx */
#define BB_PRM_RMP_BITMASK_LWM     BB_PRM_F(0x004, 31, 1)   /* rmp_bitmask.lwm */
#define BB_PRM_QUERY_RMP_RMPN      BB_PRM_F(0x008, 8, 24)   /* query_rmp_in.rmpn */
#define BB_PRM_QUERY_RMP_OUT_CTX   BB_PRM_F(0x020, 0, 1920) /* query_rmp_out.rmp_context */
#define BB_PRM_DESTROY_RMP_RMPN    BB_PRM_F(0x008, 8, 24)   /* destroy_rmp_in.rmpn */
#define BB_PRM_RMPC_STATE          BB_PRM_F(0x000, 8, 4)    /* rmpc.state */
#define BB_PRM_RMPC_BASIC_CYCLIC   BB_PRM_F(0x004, 0, 1)    /* rmpc.basic_cyclic_rcv_wqe */
#define BB_PRM_RMPC_WQ             BB_PRM_F(0x030, 0, 1536) /* rmpc.wq */
#define BB_PRM_WQ_TYPE             BB_PRM_F(0x000, 0, 4)    /* wq.wq_type */
#define BB_PRM_WQ_PAGE_OFFSET      BB_PRM_F(0x004, 11, 5)   /* wq.page_offset */
#define BB_PRM_WQ_LWM              BB_PRM_F(0x004, 16, 16)  /* wq.lwm */
#define BB_PRM_WQ_PD               BB_PRM_F(0x008, 8, 24)   /* wq.pd */
#define BB_PRM_WQ_DBR_ADDR         BB_PRM_F(0x010, 0, 64)   /* wq.dbr_addr */
#define BB_PRM_WQ_HW_COUNTER       BB_PRM_F(0x018, 0, 32)   /* wq.hw_counter */
#define BB_PRM_WQ_SW_COUNTER       BB_PRM_F(0x01c, 0, 32)   /* wq.sw_counter */
#define BB_PRM_WQ_LOG_STRIDE       BB_PRM_F(0x020, 12, 4)   /* wq.log_wq_stride */
#define BB_PRM_WQ_LOG_PG_SZ        BB_PRM_F(0x020, 19, 5)   /* wq.log_wq_pg_sz */
#define BB_PRM_WQ_LOG_SZ           BB_PRM_F(0x020, 27, 5)   /* wq.log_wq_sz */
#define BB_PRM_WQ_DBR_UMEM_VALID   BB_PRM_F(0x024, 0, 1)    /* wq.dbr_umem_valid */
#define BB_PRM_WQ_UMEM_VALID       BB_PRM_F(0x024, 1, 1)    /* wq.wq_umem_valid */
#define BB_PRM_WQ_DBR_UMEM_ID      BB_PRM_F(0x028, 0, 32)   /* wq.dbr_umem_id */
#define BB_PRM_WQ_UMEM_ID          BB_PRM_F(0x02c, 0, 32)   /* wq.wq_umem_id */
#define BB_PRM_WQ_UMEM_OFFSET      BB_PRM_F(0x030, 0, 64)   /* wq.wq_umem_offset */

/* ATTACH_TO_MCG, DETACH_FROM_MCG. */
#define BB_PRM_ATTACH_TO_MCG_QPN   BB_PRM_F(0x008, 8, 24)  /* attach_to_mcg_in.qpn */
#define BB_PRM_ATTACH_TO_MCG_GID   BB_PRM_F(0x010, 0, 128) /* attach_to_mcg_in.multicast_gid */
#define BB_PRM_DETACH_FROM_MCG_QPN BB_PRM_F(0x008, 8, 24)  /* detach_from_mcg_in.qpn */
#define BB_PRM_DETACH_FROM_MCG_GID BB_PRM_F(0x010, 0, 128) /* detach_from_mcg_in.multicast_gid */

/* ALLOC_Q_COUNTER, DEALLOC_Q_COUNTER, QUERY_Q_COUNTER. */
#define BB_PRM_ALLOC_Q_COUNTER_OUT_ID                                                              \
	BB_PRM_F(0x008, 24, 8) /* alloc_q_counter_out.counter_set_id */
#define BB_PRM_DEALLOC_Q_COUNTER_ID                                                                \
	BB_PRM_F(0x008, 24, 8)                              /* dealloc_q_counter_in.counter_set_id \
							     */
#define BB_PRM_QUERY_Q_COUNTER_CLEAR BB_PRM_F(0x018, 0, 1)  /* query_q_counter_in.clear */
#define BB_PRM_QUERY_Q_COUNTER_ID    BB_PRM_F(0x01c, 24, 8) /* query_q_counter_in.counter_set_id */
#define BB_PRM_Q_COUNTER_RX_WRITE_REQUESTS                                                         \
	BB_PRM_F(0x010, 0, 32) /* query_q_counter_out.rx_write_requests */
#define BB_PRM_Q_COUNTER_RX_READ_REQUESTS                                                          \
	BB_PRM_F(0x018, 0, 32) /* query_q_counter_out.rx_read_requests */
#define BB_PRM_Q_COUNTER_RX_ATOMIC_REQUESTS                                                        \
	BB_PRM_F(0x020, 0, 32) /* query_q_counter_out.rx_atomic_requests */
#define BB_PRM_Q_COUNTER_OUT_OF_BUFFER                                                             \
	BB_PRM_F(0x030, 0, 32) /* query_q_counter_out.out_of_buffer */
#define BB_PRM_Q_COUNTER_OUT_OF_SEQUENCE                                                           \
	BB_PRM_F(0x038, 0, 32) /* query_q_counter_out.out_of_sequence */
#define BB_PRM_Q_COUNTER_DUPLICATE_REQUEST                                                         \
	BB_PRM_F(0x040, 0, 32) /* query_q_counter_out.duplicate_request */
#define BB_PRM_Q_COUNTER_RNR_NAK_RETRY_ERR                                                         \
	BB_PRM_F(0x048, 0, 32) /* query_q_counter_out.rnr_nak_retry_err */
#define BB_PRM_Q_COUNTER_PACKET_SEQ_ERR                                                            \
	BB_PRM_F(0x050, 0, 32) /* query_q_counter_out.packet_seq_err */
#define BB_PRM_Q_COUNTER_LOCAL_ACK_TIMEOUT_ERR                                                     \
	BB_PRM_F(0x060, 0, 32) /* query_q_counter_out.local_ack_timeout_err */
#define BB_PRM_Q_COUNTER_RESP_LOCAL_LENGTH_ERROR                                                   \
	BB_PRM_F(0x078, 0, 32) /* query_q_counter_out.resp_local_length_error */
#define BB_PRM_Q_COUNTER_REQ_LOCAL_LENGTH_ERROR                                                    \
	BB_PRM_F(0x07c, 0, 32) /* query_q_counter_out.req_local_length_error */
#define BB_PRM_Q_COUNTER_LOCAL_OPERATION_ERROR                                                     \
	BB_PRM_F(0x084, 0, 32) /* query_q_counter_out.local_operation_error */
#define BB_PRM_Q_COUNTER_RESP_LOCAL_PROTECTION                                                     \
	BB_PRM_F(0x088, 0, 32) /* query_q_counter_out.resp_local_protection */
#define BB_PRM_Q_COUNTER_REQ_LOCAL_PROTECTION                                                      \
	BB_PRM_F(0x08c, 0, 32) /* query_q_counter_out.req_local_protection */
#define BB_PRM_Q_COUNTER_REQ_REMOTE_INVALID_REQUEST                                                \
	BB_PRM_F(0x0a0, 0, 32) /* query_q_counter_out.req_remote_invalid_request */
#define BB_PRM_Q_COUNTER_RESP_REMOTE_INVALID_REQUEST                                               \
	BB_PRM_F(0x0a4, 0, 32) /* query_q_counter_out.resp_remote_invalid_request */
#define BB_PRM_Q_COUNTER_REQ_REMOTE_ACCESS_ERRORS                                                  \
	BB_PRM_F(0x0a8, 0, 32) /* query_q_counter_out.req_remote_access_errors */
#define BB_PRM_Q_COUNTER_RESP_REMOTE_ACCESS_ERRORS                                                 \
	BB_PRM_F(0x0ac, 0, 32) /* query_q_counter_out.resp_remote_access_errors */
#define BB_PRM_Q_COUNTER_REQ_REMOTE_OPERATION_ERRORS                                               \
	BB_PRM_F(0x0b0, 0, 32) /* query_q_counter_out.req_remote_operation_errors */
#define BB_PRM_Q_COUNTER_REQ_TRANSPORT_RETRIES_EXCEEDED                                            \
	BB_PRM_F(0x0b4, 0, 32) /* query_q_counter_out.req_transport_retries_exceeded */
#define BB_PRM_Q_COUNTER_REQ_RNR_RETRIES_EXCEEDED                                                  \
	BB_PRM_F(0x070, 0, 32) /* query_q_counter_out.req_rnr_retries_exceeded */
#define BB_PRM_Q_COUNTER_CQ_OVERFLOW BB_PRM_F(0x0b8, 0, 32) /* query_q_counter_out.cq_overflow */
#define BB_PRM_Q_COUNTER_RESP_CQE_FLUSH_ERROR                                                      \
	BB_PRM_F(0x0bc, 0, 32) /* query_q_counter_out.resp_cqe_flush_error */
#define BB_PRM_Q_COUNTER_REQ_CQE_FLUSH_ERROR                                                       \
	BB_PRM_F(0x0c0, 0, 32) /* query_q_counter_out.req_cqe_flush_error */

/* QUERY_LAG: bonding of a card's ports. */
#define BB_PRM_QUERY_LAG_OUT_CTX     BB_PRM_F(0x008, 0, 64) /* query_lag_out.ctx */
#define BB_PRM_LAGC_PORT_SELECT_MODE BB_PRM_F(0x000, 21, 3) /* lagc.port_select_mode */
#define BB_PRM_LAGC_LAG_STATE        BB_PRM_F(0x000, 29, 3) /* lagc.lag_state */

/* QUERY_CONG_STATISTICS: congestion counters of the port. */
#define BB_PRM_QUERY_CONG_STATISTICS_CLEAR                                                         \
	BB_PRM_F(0x008, 0, 1) /* query_cong_statistics_in.clear */
#define BB_PRM_CONG_RP_CNP_HANDLED_HIGH                                                            \
	BB_PRM_F(0x020, 0, 32) /* query_cong_statistics_out.rp_cnp_handled_high */
#define BB_PRM_CONG_RP_CNP_HANDLED_LOW                                                             \
	BB_PRM_F(0x024, 0, 32) /* query_cong_statistics_out.rp_cnp_handled_low */
#define BB_PRM_CONG_NP_ECN_MARKED_ROCE_PACKETS_HIGH                                                \
	BB_PRM_F(0x054, 0, 32) /* query_cong_statistics_out.np_ecn_marked_roce_packets_high */
#define BB_PRM_CONG_NP_ECN_MARKED_ROCE_PACKETS_LOW                                                 \
	BB_PRM_F(0x058, 0, 32) /* query_cong_statistics_out.np_ecn_marked_roce_packets_low */
#define BB_PRM_CONG_NP_CNP_SENT_HIGH                                                               \
	BB_PRM_F(0x05c, 0, 32) /* query_cong_statistics_out.np_cnp_sent_high */
#define BB_PRM_CONG_NP_CNP_SENT_LOW                                                                \
	BB_PRM_F(0x060, 0, 32) /* query_cong_statistics_out.np_cnp_sent_low */

#ifdef __cplusplus
}
#endif

#endif
