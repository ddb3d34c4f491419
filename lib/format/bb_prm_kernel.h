/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Command mailbox layouts that only a kernel's driver writes: those for user contexts, page lists
 * and keys over pages, and for objects that the mlx5 driver of this library does not use. The
 * macros are written as in bb_prm.h, and test/golden checks both files.
 */
#ifndef BB_PRM_KERNEL_H
#define BB_PRM_KERNEL_H

#include "bb_prm_hca.h"

/* Command opcodes (kernel: MLX5_CMD_OP_*). */
enum bb_prm_kernel_op {
	BB_PRM_OP_QUERY_MKEY = 0x201,
	BB_PRM_OP_QUERY_SPECIAL_CONTEXTS = 0x203,
	BB_PRM_OP_PAGE_FAULT_RESUME = 0x204,
	BB_PRM_OP_ALLOC_MEMIC = 0x205,
	BB_PRM_OP_DEALLOC_MEMIC = 0x206,
	BB_PRM_OP_QUERY_CQ = 0x402,
	BB_PRM_OP_CREATE_XRC_SRQ = 0x705,
	BB_PRM_OP_DESTROY_XRC_SRQ = 0x706,
	BB_PRM_OP_ALLOC_PD = 0x800,
	BB_PRM_OP_DEALLOC_PD = 0x801,
	BB_PRM_OP_ALLOC_XRCD = 0x80e,
	BB_PRM_OP_DEALLOC_XRCD = 0x80f,
	BB_PRM_OP_ALLOC_TRANSPORT_DOMAIN = 0x816,
	BB_PRM_OP_DEALLOC_TRANSPORT_DOMAIN = 0x817,
	BB_PRM_OP_CREATE_UCTX = 0xa04,
	BB_PRM_OP_DESTROY_UCTX = 0xa06,
	BB_PRM_OP_CREATE_UMEM = 0xa08,
	BB_PRM_OP_DESTROY_UMEM = 0xa0a,
};

/* Mailbox sizes in bytes, without a page list. */
#define BB_PRM_SZ_CREATE_UCTX_IN             0x40  /* sizeof(create_uctx_in) */
#define BB_PRM_SZ_CREATE_UMEM_IN             0x30  /* sizeof(create_umem_in) */
#define BB_PRM_SZ_CREATE_XRC_SRQ_IN          0x110 /* sizeof(create_xrc_srq_in) */
#define BB_PRM_SZ_MEMIC_IN                   0x20  /* sizeof(alloc_memic_in) */
#define BB_PRM_SZ_QUERY_SPECIAL_CONTEXTS_OUT 0x20  /* sizeof(query_special_contexts_out) */

/* Page lists follow the fixed part of a mailbox: addresses of 64 bits, big endian. */
#define BB_PRM_CREATE_QP_PAS       0x110 /* create_qp_in.pas */
#define BB_PRM_CREATE_CQ_PAS       0x110 /* create_cq_in.pas */
#define BB_PRM_CREATE_MKEY_KLM_PAS 0x110 /* create_mkey_in.klm_pas_mtt */
#define BB_PRM_QUERY_MKEY_OUT_KLM  0x110 /* query_mkey_out.bsf0_klm0_pas_mtt0_1 */
#define BB_PRM_WQ_PAS              0x0c0 /* wq.pas */
#define BB_PRM_UMEM_MTT            0x020 /* umem.mtt */

/* User contexts: CREATE_UCTX, DESTROY_UCTX. */
#define BB_PRM_CREATE_UCTX_OUT_UID BB_PRM_F(0x008, 16, 16) /* create_uctx_out.uid */
#define BB_PRM_DESTROY_UCTX_UID    BB_PRM_F(0x008, 16, 16) /* destroy_uctx_in.uid */

/* CREATE_UMEM, DESTROY_UMEM. */
#define BB_PRM_CREATE_UMEM_UMEM   BB_PRM_F(0x010, 0, 256) /* create_umem_in.umem */
#define BB_PRM_UMEM_LOG_PAGE_SIZE BB_PRM_F(0x010, 27, 5)  /* umem.log_page_size */
#define BB_PRM_UMEM_PAGE_OFFSET   BB_PRM_F(0x014, 0, 32)  /* umem.page_offset */
#define BB_PRM_UMEM_NUM_OF_MTT    BB_PRM_F(0x018, 0, 64)  /* umem.num_of_mtt */
#define BB_PRM_CREATE_UMEM_OUT_ID BB_PRM_F(0x008, 8, 24)  /* create_umem_out.umem_id */
#define BB_PRM_DESTROY_UMEM_ID    BB_PRM_F(0x008, 8, 24)  /* destroy_umem_in.umem_id */

/* Keys: CREATE_MKEY over pages. */
#define BB_PRM_CREATE_MKEY_PG_ACCESS      BB_PRM_F(0x00c, 0, 1)  /* create_mkey_in.pg_access */
#define BB_PRM_MKC_RELAXED_ORDERING_WRITE BB_PRM_F(0x000, 13, 1) /* mkc.relaxed_ordering_write */
#define BB_PRM_MKC_LENGTH64               BB_PRM_F(0x00c, 0, 1)  /* mkc.length64 */
#define BB_PRM_MKC_RELAXED_ORDERING_READ  BB_PRM_F(0x038, 25, 1) /* mkc.relaxed_ordering_read */
#define BB_PRM_MKC_MODE_MEMIC             5                      /* MLX5_MKC_ACCESS_MODE_MEMIC */
#define BB_PRM_MKC_MODE_PA                0                      /* MLX5_MKC_ACCESS_MODE_PA */
#define BB_PRM_MKC_MODE_MTT               1                      /* MLX5_MKC_ACCESS_MODE_MTT */

/* QUERY_MKEY. */
#define BB_PRM_QUERY_MKEY_INDEX BB_PRM_F(0x008, 8, 24) /* query_mkey_in.mkey_index */
#define BB_PRM_QUERY_MKEY_OUT_MKC                                                                  \
	BB_PRM_F(0x010, 0, 512) /* query_mkey_out.memory_key_mkey_entry                            \
				 */

/* On-demand paging: QUERY_SPECIAL_CONTEXTS, PAGE_FAULT_RESUME. */
#define BB_PRM_PAGE_FAULT_RESUME_INFO                                                              \
	BB_PRM_F(0x008, 0, 64) /* page_fault_resume_in.page_fault_info */
#define BB_PRM_TRANS_PAGE_FAULT_ERROR BB_PRM_F(0x000, 0, 1) /* trans_page_fault_info.error */
#define BB_PRM_TRANS_PAGE_FAULT_TYPE                                                               \
	BB_PRM_F(0x000, 5, 3) /* trans_page_fault_info.page_fault_type */
#define BB_PRM_TRANS_PAGE_FAULT_WQ BB_PRM_F(0x000, 8, 24) /* trans_page_fault_info.wq_number */
#define BB_PRM_TRANS_PAGE_FAULT_TOKEN                                                              \
	BB_PRM_F(0x004, 8, 24) /* trans_page_fault_info.fault_token                                \
				*/
#define BB_PRM_QUERY_SPECIAL_CONTEXTS_OUT_NULL_MKEY                                                \
	BB_PRM_F(0x010, 0, 32)                         /* query_special_contexts_out.null_mkey */
#define BB_PRM_ODP_SCHEME_UD    BB_PRM_F(0x018, 0, 32) /* odp_scheme_cap.ud_odp_caps */
#define BB_PRM_ODP_SERVICE_SEND BB_PRM_F(0x000, 0, 1)  /* odp_per_transport_service_cap.send */
#define BB_PRM_ODP_SERVICE_RECEIVE                                                                 \
	BB_PRM_F(0x000, 1, 1) /* odp_per_transport_service_cap.receive                             \
			       */
#define BB_PRM_ODP_SERVICE_SRQ_RECEIVE                                                             \
	BB_PRM_F(0x000, 5, 1) /* odp_per_transport_service_cap.srq_receive */

/* QP context: service types of the kernel's own QPs, and fields that it sets. */
#define BB_PRM_QP_ST_QP0     7                      /* MLX5_QP_ST_QP0 */
#define BB_PRM_QP_ST_QP1     8                      /* MLX5_QP_ST_QP1 */
#define BB_PRM_QP_ST_REG_UMR 12                     /* MLX5_QP_ST_REG_UMR */
#define BB_PRM_QPC_XRCD      BB_PRM_F(0x098, 8, 24) /* qpc.xrcd */
#define BB_PRM_QPC_BLOCK_LB_MC                                                                     \
	BB_PRM_F(0x004, 1, 1)                               /* qpc.block_lb_mc                     \
							     */
#define BB_PRM_QPC_FRE               BB_PRM_F(0x070, 20, 1) /* qpc.fre */
#define BB_PRM_QPC_DETH_SQPN         BB_PRM_F(0x080, 8, 24) /* qpc.deth_sqpn */
#define BB_PRM_QPC_LATENCY_SENSITIVE BB_PRM_F(0x004, 3, 1)  /* qpc.latency_sensitive */

/* Device memory: ALLOC_MEMIC, DEALLOC_MEMIC, and the position of device memory in BAR 0. */
#define BB_PRM_DEV_MEM_CAP_MEMIC_BAR_START_ADDR                                                    \
	BB_PRM_F(0x008, 0, 64) /* device_mem_cap.memic_bar_start_addr */
#define BB_PRM_ALLOC_MEMIC_LOG_ALIGN                                                               \
	BB_PRM_F(0x00c, 24, 8) /* alloc_memic_in.log_memic_addr_alignment */
#define BB_PRM_ALLOC_MEMIC_RANGE_START                                                             \
	BB_PRM_F(0x010, 0, 64)                               /* alloc_memic_in.range_start_addr    \
							      */
#define BB_PRM_ALLOC_MEMIC_RANGE_SIZE BB_PRM_F(0x018, 0, 32) /* alloc_memic_in.range_size */
#define BB_PRM_ALLOC_MEMIC_SIZE       BB_PRM_F(0x01c, 0, 32) /* alloc_memic_in.memic_size */
#define BB_PRM_ALLOC_MEMIC_OUT_START  BB_PRM_F(0x008, 0, 64) /* alloc_memic_out.memic_start_addr */
#define BB_PRM_DEALLOC_MEMIC_START    BB_PRM_F(0x010, 0, 64) /* dealloc_memic_in.memic_start_addr */
#define BB_PRM_DEALLOC_MEMIC_SIZE     BB_PRM_F(0x018, 0, 32) /* dealloc_memic_in.memic_size */

#endif
