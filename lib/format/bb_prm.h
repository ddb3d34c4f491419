/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Command mailbox layouts of the mlx5 programming interface: where each field
 * stands that the mlx5 driver writes or the software device decodes.
 *
 * A field is a byte offset of a big-endian dword, the first bit counted from
 * that dword's most significant bit, and a width. The comment names the struct
 * and field of the kernel's include/linux/mlx5/mlx5_ifc.h (DPDK's mlx5_prm.h
 * where the kernel reserves the place); test/golden holds every line of this
 * file against positions taken from those headers.
 */
#ifndef BB_PRM_H
#define BB_PRM_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bb_prm_field {
	uint16_t byte; /* of the dword that holds the first bit */
	uint8_t bit;   /* from the dword's most significant bit */
	uint8_t width; /* at most 32; 64 only at bit 0; wider: a sub-structure */
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

/* Read a field of at most 32 bits. */
static inline uint32_t
bb_prm_get(const void *base, struct bb_prm_field f)
{
	uint32_t mask = f.width >= 32 ? UINT32_MAX : (1u << f.width) - 1;

	return bb_prm_dword(base, f.byte) >> (32 - f.bit - f.width) & mask;
}

/* Write a field of at most 32 bits; bits of v beyond the width are dropped. */
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

/* Read a field of 64 bits. */
static inline uint64_t
bb_prm_get64(const void *base, struct bb_prm_field f)
{
	return (uint64_t)bb_prm_dword(base, f.byte) << 32 |
	       bb_prm_dword(base, (uint16_t)(f.byte + 4));
}

/* Write a field of 64 bits. */
static inline void
bb_prm_set64(void *base, struct bb_prm_field f, uint64_t v)
{
	struct bb_prm_field hi = {f.byte, 0, 32}, lo = {(uint16_t)(f.byte + 4), 0, 32};

	bb_prm_set(base, hi, (uint32_t)(v >> 32));
	bb_prm_set(base, lo, (uint32_t)v);
}

/* Address of a sub-structure (a QP context inside its mailbox, say). */
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
	BB_PRM_OP_CREATE_CQ = 0x400,
	BB_PRM_OP_DESTROY_CQ = 0x401,
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

/* QUERY_HCA_CAP op_mod: capability type << 1 | (1: current values). */
enum bb_prm_cap {
	BB_PRM_CAP_GENERAL = 0x0,
	BB_PRM_CAP_ATOMIC = 0x3,
	BB_PRM_CAP_ROCE = 0x4,
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
	BB_PRM_EVENT_PATH_MIG = 0x01,
	BB_PRM_EVENT_COMM_EST = 0x02,
	BB_PRM_EVENT_CQ_ERROR = 0x04,
	BB_PRM_EVENT_WQ_CATAS_ERROR = 0x05,
	BB_PRM_EVENT_PORT_CHANGE = 0x09,
	BB_PRM_EVENT_WQ_INVAL_REQ_ERROR = 0x10,
	BB_PRM_EVENT_WQ_ACCESS_ERROR = 0x11,
};

/*
 * Mailbox sizes in bytes, with no page list behind (umem-backed objects).
 *
 * BB_PRM_SZ_MODIFY_QP_IN is sizeof(rst2init_qp_in), sizeof(init2init_qp_in),
 * sizeof(init2rtr_qp_in), sizeof(rtr2rts_qp_in), sizeof(rts2rts_qp_in).
 * BB_PRM_SZ_SHORT is sizeof(create_cq_out), sizeof(destroy_cq_in), sizeof(destroy_cq_out),
 * sizeof(create_qp_out), sizeof(destroy_qp_in), sizeof(destroy_qp_out), sizeof(rst2init_qp_out),
 * sizeof(init2init_qp_out), sizeof(init2rtr_qp_out), sizeof(rtr2rts_qp_out),
 * sizeof(rts2rts_qp_out), sizeof(qp_2err_in), sizeof(qp_2err_out), sizeof(qp_2rst_in),
 * sizeof(qp_2rst_out), sizeof(query_qp_in), sizeof(alloc_q_counter_in),
 * sizeof(alloc_q_counter_out), sizeof(dealloc_q_counter_in), sizeof(dealloc_q_counter_out).
 */
#define BB_PRM_SZ_QUERY_HCA_CAP_IN    0x10   /* sizeof(query_hca_cap_in) */
#define BB_PRM_SZ_QUERY_HCA_CAP_OUT   0x1010 /* sizeof(query_hca_cap_out) */
#define BB_PRM_HCA_CAP_OUT_CAPS       0x10   /* query_hca_cap_out.capability */
#define BB_PRM_SZ_CREATE_CQ_IN        0x110  /* sizeof(create_cq_in) */
#define BB_PRM_SZ_CREATE_QP_IN        0x110  /* sizeof(create_qp_in) */
#define BB_PRM_SZ_MODIFY_QP_IN        0x110
#define BB_PRM_SZ_QUERY_QP_OUT        0x1d0 /* sizeof(query_qp_out) */
#define BB_PRM_SZ_QUERY_Q_COUNTER_IN  0x20  /* sizeof(query_q_counter_in) */
#define BB_PRM_SZ_QUERY_Q_COUNTER_OUT 0x100 /* sizeof(query_q_counter_out) */
#define BB_PRM_SZ_SHORT               0x10

/* QP context: service type, states, RQ type. */
#define BB_PRM_QP_ST_RC       0 /* MLX5_QP_ST_RC */
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
#define BB_PRM_RQ_TYPE_ZERO    3 /* MLX5_ZERO_LEN_RQ */

/* Command header, common to every mailbox. */
#define BB_PRM_CMD_OPCODE   BB_PRM_F(0x000, 0, 16)  /* create_qp_in.opcode */
#define BB_PRM_CMD_UID      BB_PRM_F(0x000, 16, 16) /* create_qp_in.uid */
#define BB_PRM_CMD_OP_MOD   BB_PRM_F(0x004, 16, 16) /* create_qp_in.op_mod */
#define BB_PRM_CMD_STATUS   BB_PRM_F(0x000, 0, 8)   /* create_qp_out.status */
#define BB_PRM_CMD_SYNDROME BB_PRM_F(0x004, 0, 32)  /* create_qp_out.syndrome */

/* QUERY_HCA_CAP: cmd_hca_cap, page 0 (general) of the output's capability union. */
#define BB_PRM_HCA_LOG_MAX_QP_SZ     BB_PRM_F(0x010, 8, 8)   /* cmd_hca_cap.log_max_qp_sz */
#define BB_PRM_HCA_LOG_MAX_QP        BB_PRM_F(0x010, 27, 5)  /* cmd_hca_cap.log_max_qp */
#define BB_PRM_HCA_LOG_MAX_CQ_SZ     BB_PRM_F(0x018, 8, 8)   /* cmd_hca_cap.log_max_cq_sz */
#define BB_PRM_HCA_LOG_MAX_CQ        BB_PRM_F(0x018, 27, 5)  /* cmd_hca_cap.log_max_cq */
#define BB_PRM_HCA_LOG_MAX_MKEY      BB_PRM_F(0x01c, 10, 6)  /* cmd_hca_cap.log_max_mkey */
#define BB_PRM_HCA_LOG_MAX_MRW_SZ    BB_PRM_F(0x020, 9, 7)   /* cmd_hca_cap.log_max_mrw_sz */
#define BB_PRM_HCA_LOG_MAX_RA_REQ_QP BB_PRM_F(0x028, 10, 6)  /* cmd_hca_cap.log_max_ra_req_qp */
#define BB_PRM_HCA_LOG_MAX_RA_RES_QP BB_PRM_F(0x028, 26, 6)  /* cmd_hca_cap.log_max_ra_res_qp */
#define BB_PRM_HCA_MAX_QP_CNT        BB_PRM_F(0x030, 6, 10)  /* cmd_hca_cap.max_qp_cnt */
#define BB_PRM_HCA_DEVICE_MEMORY     BB_PRM_F(0x034, 8, 1)   /* cmd_hca_cap.device_memory */
#define BB_PRM_HCA_PORT_TYPE         BB_PRM_F(0x034, 22, 2)  /* cmd_hca_cap.port_type */
#define BB_PRM_HCA_NUM_PORTS         BB_PRM_F(0x034, 24, 8)  /* cmd_hca_cap.num_ports */
#define BB_PRM_HCA_LOG_MAX_MSG       BB_PRM_F(0x038, 3, 5)   /* cmd_hca_cap.log_max_msg */
#define BB_PRM_HCA_CQE_VERSION       BB_PRM_F(0x03c, 28, 4)  /* cmd_hca_cap.cqe_version */
#define BB_PRM_HCA_ROCE              BB_PRM_F(0x040, 29, 1)  /* cmd_hca_cap.roce */
#define BB_PRM_HCA_ATOMIC            BB_PRM_F(0x040, 30, 1)  /* cmd_hca_cap.atomic */
#define BB_PRM_HCA_UAR_4K            BB_PRM_F(0x048, 0, 1)   /* cmd_hca_cap.uar_4k */
#define BB_PRM_HCA_BF                BB_PRM_F(0x04c, 0, 1)   /* cmd_hca_cap.bf */
#define BB_PRM_HCA_LOG_BF_REG_SIZE   BB_PRM_F(0x04c, 11, 5)  /* cmd_hca_cap.log_bf_reg_size */
#define BB_PRM_HCA_MAX_WQE_SZ_SQ     BB_PRM_F(0x050, 16, 16) /* cmd_hca_cap.max_wqe_sz_sq */
#define BB_PRM_HCA_MAX_WQE_SZ_RQ     BB_PRM_F(0x054, 16, 16) /* cmd_hca_cap.max_wqe_sz_rq */
#define BB_PRM_HCA_LOG_MAX_PD        BB_PRM_F(0x064, 11, 5)  /* cmd_hca_cap.log_max_pd */
#define BB_PRM_HCA_LOG_MAX_UCTX      BB_PRM_F(0x08c, 3, 5)   /* cmd_hca_cap.log_max_uctx */
#define BB_PRM_HCA_LOG_MAX_UMEM      BB_PRM_F(0x08c, 11, 5)  /* cmd_hca_cap.log_max_umem */
#define BB_PRM_HCA_DEVICE_FREQUENCY_KHZ                                                            \
	BB_PRM_F(0x09c, 0, 32) /* cmd_hca_cap.device_frequency_khz */

/* QUERY_HCA_CAP: atomic_caps. */
#define BB_PRM_ATOMIC_CAP_MODE    BB_PRM_F(0x010, 16, 16) /* atomic_caps.atomic_operations */
#define BB_PRM_ATOMIC_CAP_SIZE_QP BB_PRM_F(0x014, 16, 16) /* atomic_caps.atomic_size_qp */
#define BB_PRM_ATOMIC_CAP_REQ_8B_ENDIANNESS_MODE                                                   \
	BB_PRM_F(0x008, 0, 2) /* atomic_caps.atomic_req_8B_endianness_mode */

/* QUERY_HCA_CAP: roce_cap. */
#define BB_PRM_ROCE_CAP_VERSION BB_PRM_F(0x010, 24, 8) /* roce_cap.roce_version */
#define BB_PRM_ROCE_CAP_R_ROCE_MIN_SRC_UDP_PORT                                                    \
	BB_PRM_F(0x018, 16, 16) /* roce_cap.r_roce_min_src_udp_port */
#define BB_PRM_ROCE_CAP_R_ROCE_MAX_SRC_UDP_PORT                                                    \
	BB_PRM_F(0x018, 0, 16) /* roce_cap.r_roce_max_src_udp_port */
#define BB_PRM_ROCE_CAP_ADDRESS_TABLE_SIZE                                                         \
	BB_PRM_F(0x01c, 16, 16) /* roce_cap.roce_address_table_size */

/* CREATE_CQ, DESTROY_CQ. */
#define BB_PRM_CREATE_CQ_CQC BB_PRM_F(0x010, 0, 512) /* create_cq_in.cq_context */
#define BB_PRM_CREATE_CQ_UMEM_OFFSET                                                               \
	BB_PRM_F(0x050, 0, 64) /* kernel: inside create_cq_in.reserved_at_280; DPDK:               \
				  create_cq_in.cq_umem_offset */
#define BB_PRM_CREATE_CQ_UMEM_ID    BB_PRM_F(0x058, 0, 32) /* DPDK: create_cq_in.cq_umem_id */
#define BB_PRM_CREATE_CQ_UMEM_VALID BB_PRM_F(0x05c, 0, 1)  /* create_cq_in.cq_umem_valid */
#define BB_PRM_CREATE_CQ_OUT_CQN    BB_PRM_F(0x008, 8, 24) /* create_cq_out.cqn */
#define BB_PRM_DESTROY_CQ_CQN       BB_PRM_F(0x008, 8, 24) /* destroy_cq_in.cqn */

/* CQ context. */
#define BB_PRM_CQC_STATUS         BB_PRM_F(0x000, 0, 4)  /* cqc.status */
#define BB_PRM_CQC_DBR_UMEM_VALID BB_PRM_F(0x000, 6, 1)  /* cqc.dbr_umem_valid */
#define BB_PRM_CQC_CQE_SZ         BB_PRM_F(0x000, 8, 3)  /* cqc.cqe_sz */
#define BB_PRM_CQC_CC             BB_PRM_F(0x000, 11, 1) /* cqc.cc */
#define BB_PRM_CQC_OI             BB_PRM_F(0x000, 14, 1) /* cqc.oi */
#define BB_PRM_CQC_CQE_COMP_EN    BB_PRM_F(0x000, 17, 1) /* cqc.cqe_comp_en */
#define BB_PRM_CQC_ST             BB_PRM_F(0x000, 20, 4) /* cqc.st */
#define BB_PRM_CQC_DBR_UMEM_ID                                                                     \
	BB_PRM_F(0x004, 0, 32) /* kernel: cqc.reserved_at_20; DPDK: cqc.dbr_umem_id */
#define BB_PRM_CQC_PAGE_OFFSET      BB_PRM_F(0x008, 20, 6)  /* cqc.page_offset */
#define BB_PRM_CQC_LOG_CQ_SIZE      BB_PRM_F(0x00c, 3, 5)   /* cqc.log_cq_size */
#define BB_PRM_CQC_UAR_PAGE         BB_PRM_F(0x00c, 8, 24)  /* cqc.uar_page */
#define BB_PRM_CQC_CQ_PERIOD        BB_PRM_F(0x010, 4, 12)  /* cqc.cq_period */
#define BB_PRM_CQC_CQ_MAX_COUNT     BB_PRM_F(0x010, 16, 16) /* cqc.cq_max_count */
#define BB_PRM_CQC_C_EQN            BB_PRM_F(0x014, 0, 32)  /* cqc.c_eqn_or_apu_element */
#define BB_PRM_CQC_LOG_PAGE_SIZE    BB_PRM_F(0x018, 3, 5)   /* cqc.log_page_size */
#define BB_PRM_CQC_CONSUMER_COUNTER BB_PRM_F(0x028, 8, 24)  /* cqc.consumer_counter */
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
#define BB_PRM_QUERY_QP_OUT_OPT_PARAM_MASK                                                         \
	BB_PRM_F(0x010, 0, 32)                           /* query_qp_out.opt_param_mask            \
							  */
#define BB_PRM_QUERY_QP_OUT_QPC BB_PRM_F(0x018, 0, 1856) /* query_qp_out.qpc */

/* QP context. */
#define BB_PRM_QPC_STATE               BB_PRM_F(0x000, 0, 4)   /* qpc.state */
#define BB_PRM_QPC_ST                  BB_PRM_F(0x000, 8, 8)   /* qpc.st */
#define BB_PRM_QPC_PM_STATE            BB_PRM_F(0x000, 19, 2)  /* qpc.pm_state */
#define BB_PRM_QPC_PD                  BB_PRM_F(0x004, 8, 24)  /* qpc.pd */
#define BB_PRM_QPC_MTU                 BB_PRM_F(0x008, 0, 3)   /* qpc.mtu */
#define BB_PRM_QPC_LOG_MSG_MAX         BB_PRM_F(0x008, 3, 5)   /* qpc.log_msg_max */
#define BB_PRM_QPC_LOG_RQ_SIZE         BB_PRM_F(0x008, 9, 4)   /* qpc.log_rq_size */
#define BB_PRM_QPC_LOG_RQ_STRIDE       BB_PRM_F(0x008, 13, 3)  /* qpc.log_rq_stride */
#define BB_PRM_QPC_NO_SQ               BB_PRM_F(0x008, 16, 1)  /* qpc.no_sq */
#define BB_PRM_QPC_LOG_SQ_SIZE         BB_PRM_F(0x008, 17, 4)  /* qpc.log_sq_size */
#define BB_PRM_QPC_TS_FORMAT           BB_PRM_F(0x008, 24, 2)  /* qpc.ts_format */
#define BB_PRM_QPC_RLKY                BB_PRM_F(0x008, 27, 1)  /* qpc.rlky */
#define BB_PRM_QPC_COUNTER_SET_ID      BB_PRM_F(0x00c, 0, 8)   /* qpc.counter_set_id */
#define BB_PRM_QPC_UAR_PAGE            BB_PRM_F(0x00c, 8, 24)  /* qpc.uar_page */
#define BB_PRM_QPC_USER_INDEX          BB_PRM_F(0x010, 8, 24)  /* qpc.user_index */
#define BB_PRM_QPC_LOG_PAGE_SIZE       BB_PRM_F(0x014, 3, 5)   /* qpc.log_page_size */
#define BB_PRM_QPC_REMOTE_QPN          BB_PRM_F(0x014, 8, 24)  /* qpc.remote_qpn */
#define BB_PRM_QPC_ADS                 BB_PRM_F(0x018, 0, 352) /* qpc.primary_address_path */
#define BB_PRM_QPC_LOG_ACK_REQ_FREQ    BB_PRM_F(0x070, 0, 4)   /* qpc.log_ack_req_freq */
#define BB_PRM_QPC_LOG_SRA_MAX         BB_PRM_F(0x070, 8, 3)   /* qpc.log_sra_max */
#define BB_PRM_QPC_RETRY_COUNT         BB_PRM_F(0x070, 13, 3)  /* qpc.retry_count */
#define BB_PRM_QPC_RNR_RETRY           BB_PRM_F(0x070, 16, 3)  /* qpc.rnr_retry */
#define BB_PRM_QPC_NEXT_SEND_PSN       BB_PRM_F(0x078, 8, 24)  /* qpc.next_send_psn */
#define BB_PRM_QPC_CQN_SND             BB_PRM_F(0x07c, 8, 24)  /* qpc.cqn_snd */
#define BB_PRM_QPC_CQN_RCV             BB_PRM_F(0x09c, 8, 24)  /* qpc.cqn_rcv */
#define BB_PRM_QPC_LAST_ACKED_PSN      BB_PRM_F(0x088, 8, 24)  /* qpc.last_acked_psn */
#define BB_PRM_QPC_LOG_RRA_MAX         BB_PRM_F(0x090, 8, 3)   /* qpc.log_rra_max */
#define BB_PRM_QPC_ATOMIC_MODE         BB_PRM_F(0x090, 12, 4)  /* qpc.atomic_mode */
#define BB_PRM_QPC_RRE                 BB_PRM_F(0x090, 16, 1)  /* qpc.rre */
#define BB_PRM_QPC_RWE                 BB_PRM_F(0x090, 17, 1)  /* qpc.rwe */
#define BB_PRM_QPC_RAE                 BB_PRM_F(0x090, 18, 1)  /* qpc.rae */
#define BB_PRM_QPC_PAGE_OFFSET         BB_PRM_F(0x090, 20, 6)  /* qpc.page_offset */
#define BB_PRM_QPC_MIN_RNR_NAK         BB_PRM_F(0x094, 3, 5)   /* qpc.min_rnr_nak */
#define BB_PRM_QPC_NEXT_RCV_PSN        BB_PRM_F(0x094, 8, 24)  /* qpc.next_rcv_psn */
#define BB_PRM_QPC_DBR_ADDR            BB_PRM_F(0x0a0, 0, 64)  /* qpc.dbr_addr */
#define BB_PRM_QPC_Q_KEY               BB_PRM_F(0x0a8, 0, 32)  /* qpc.q_key */
#define BB_PRM_QPC_RQ_TYPE             BB_PRM_F(0x0ac, 5, 3)   /* qpc.rq_type */
#define BB_PRM_QPC_SRQN_RMPN_XRQN      BB_PRM_F(0x0ac, 8, 24)  /* qpc.srqn_rmpn_xrqn */
#define BB_PRM_QPC_HW_SQ_WQEBB_COUNTER BB_PRM_F(0x0b4, 0, 16)  /* qpc.hw_sq_wqebb_counter */
#define BB_PRM_QPC_SW_SQ_WQEBB_COUNTER BB_PRM_F(0x0b4, 16, 16) /* qpc.sw_sq_wqebb_counter */
#define BB_PRM_QPC_HW_RQ_COUNTER       BB_PRM_F(0x0b8, 0, 32)  /* qpc.hw_rq_counter */
#define BB_PRM_QPC_SW_RQ_COUNTER       BB_PRM_F(0x0bc, 0, 32)  /* qpc.sw_rq_counter */
#define BB_PRM_QPC_CS_REQ              BB_PRM_F(0x0c4, 16, 8)  /* qpc.cs_req */
#define BB_PRM_QPC_CS_RES              BB_PRM_F(0x0c4, 24, 8)  /* qpc.cs_res */
#define BB_PRM_QPC_DBR_UMEM_VALID      BB_PRM_F(0x0d0, 3, 1)   /* qpc.dbr_umem_valid */
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
#define BB_PRM_ADS_F_ECN          BB_PRM_F(0x020, 5, 1)   /* ads.f_ecn */
#define BB_PRM_ADS_F_ETH_PRIO     BB_PRM_F(0x020, 7, 1)   /* ads.f_eth_prio */
#define BB_PRM_ADS_ECN            BB_PRM_F(0x020, 8, 2)   /* ads.ecn */
#define BB_PRM_ADS_DSCP           BB_PRM_F(0x020, 10, 6)  /* ads.dscp */
#define BB_PRM_ADS_UDP_SPORT      BB_PRM_F(0x020, 16, 16) /* ads.udp_sport */
#define BB_PRM_ADS_ETH_PRIO       BB_PRM_F(0x024, 1, 3)   /* ads.eth_prio */
#define BB_PRM_ADS_SL             BB_PRM_F(0x024, 4, 4)   /* ads.sl */
#define BB_PRM_ADS_VHCA_PORT_NUM  BB_PRM_F(0x024, 8, 8)   /* ads.vhca_port_num */
#define BB_PRM_ADS_RMAC_47_32     BB_PRM_F(0x024, 16, 16) /* ads.rmac_47_32 */
#define BB_PRM_ADS_RMAC_31_0      BB_PRM_F(0x028, 0, 32)  /* ads.rmac_31_0 */

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
#define BB_PRM_Q_COUNTER_IMPLIED_NAK_SEQ_ERR                                                       \
	BB_PRM_F(0x058, 0, 32) /* query_q_counter_out.implied_nak_seq_err */
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

#ifdef __cplusplus
}
#endif

#endif
