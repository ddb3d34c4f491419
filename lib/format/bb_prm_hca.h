/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Positions of fields in the registers, command queue, event queues and mailboxes that bb_hca
 * implements. bb_hca is a ConnectX PCI function in software, for Linux's own driver. The macros are
 * written as in bb_prm.h, and the same test checks them.
 */
#ifndef BB_PRM_HCA_H
#define BB_PRM_HCA_H

#include "bb_prm.h"

/* Command opcodes (kernel: MLX5_CMD_OP_*). */
enum bb_prm_hca_op {
	BB_PRM_OP_QUERY_ADAPTER = 0x101,
	BB_PRM_OP_INIT_HCA = 0x102,
	BB_PRM_OP_TEARDOWN_HCA = 0x103,
	BB_PRM_OP_ENABLE_HCA = 0x104,
	BB_PRM_OP_DISABLE_HCA = 0x105,
	BB_PRM_OP_QUERY_PAGES = 0x107,
	BB_PRM_OP_MANAGE_PAGES = 0x108,
	BB_PRM_OP_SET_HCA_CAP = 0x109,
	BB_PRM_OP_QUERY_ISSI = 0x10a,
	BB_PRM_OP_SET_ISSI = 0x10b,
	BB_PRM_OP_SET_DRIVER_VERSION = 0x10d,
	BB_PRM_OP_CREATE_EQ = 0x301,
	BB_PRM_OP_DESTROY_EQ = 0x302,
	BB_PRM_OP_QUERY_EQ = 0x303,
	BB_PRM_OP_MAD_IFC = 0x50d,
	BB_PRM_OP_QUERY_VPORT_STATE = 0x750,
	BB_PRM_OP_MODIFY_VPORT_STATE = 0x751,
	BB_PRM_OP_QUERY_NIC_VPORT_CONTEXT = 0x754,
	BB_PRM_OP_MODIFY_NIC_VPORT_CONTEXT = 0x755,
	BB_PRM_OP_QUERY_ROCE_ADDRESS = 0x760,
	BB_PRM_OP_SET_ROCE_ADDRESS = 0x761,
	BB_PRM_OP_QUERY_HCA_VPORT_CONTEXT = 0x762,
	BB_PRM_OP_MODIFY_HCA_VPORT_CONTEXT = 0x763,
	BB_PRM_OP_QUERY_HCA_VPORT_GID = 0x764,
	BB_PRM_OP_QUERY_HCA_VPORT_PKEY = 0x765,
	BB_PRM_OP_QUERY_VPORT_COUNTER = 0x770,
	BB_PRM_OP_ALLOC_UAR = 0x802,
	BB_PRM_OP_DEALLOC_UAR = 0x803,
	BB_PRM_OP_ACCESS_REG = 0x805,
	BB_PRM_OP_CREATE_TIR = 0x900,
	BB_PRM_OP_MODIFY_TIR = 0x901,
	BB_PRM_OP_DESTROY_TIR = 0x902,
	BB_PRM_OP_CREATE_TIS = 0x912,
	BB_PRM_OP_MODIFY_TIS = 0x913,
	BB_PRM_OP_DESTROY_TIS = 0x914,
	BB_PRM_OP_CREATE_RQT = 0x916,
	BB_PRM_OP_MODIFY_RQT = 0x917,
	BB_PRM_OP_DESTROY_RQT = 0x918,
	BB_PRM_OP_SET_FLOW_TABLE_ROOT = 0x92f,
	BB_PRM_OP_CREATE_FLOW_TABLE = 0x930,
	BB_PRM_OP_DESTROY_FLOW_TABLE = 0x931,
	BB_PRM_OP_MODIFY_FLOW_TABLE = 0x93c,
	BB_PRM_OP_CREATE_FLOW_GROUP = 0x933,
	BB_PRM_OP_DESTROY_FLOW_GROUP = 0x934,
	BB_PRM_OP_SET_FLOW_TABLE_ENTRY = 0x936,
	BB_PRM_OP_DELETE_FLOW_TABLE_ENTRY = 0x938,
};

/* Events that concern the whole PCI function and not one object (kernel: enum mlx5_event). */
enum bb_prm_hca_event {
	BB_PRM_EVENT_CMD = 0xa,
	BB_PRM_EVENT_PAGE_REQUEST = 0xb,
	BB_PRM_EVENT_PAGE_FAULT = 0xc,
};

/* Data of the entries of event queues. */
#define BB_PRM_EQE_COMP_CQN        BB_PRM_F(0x018, 0, 32)  /* eqe_comp.cqn */
#define BB_PRM_EQE_CQ_ERR_CQN      BB_PRM_F(0x000, 0, 32)  /* eqe_cq_err.cqn */
#define BB_PRM_EQE_CQ_ERR_SYNDROME BB_PRM_F(0x008, 24, 8)  /* eqe_cq_err.syndrome */
#define BB_PRM_EQE_QP_SRQ_TYPE     BB_PRM_F(0x014, 0, 8)   /* eqe_qp_srq.type */
#define BB_PRM_EQE_QP_SRQ_N        BB_PRM_F(0x018, 0, 32)  /* eqe_qp_srq.qp_srq_n */
#define BB_PRM_EQE_PORT            BB_PRM_F(0x008, 0, 8)   /* eqe_port_state.port */
#define BB_PRM_EQE_PF_WQE_INDEX    BB_PRM_F(0x004, 16, 16) /* eqe_page_fault.wqe_wqe_index */
#define BB_PRM_EQE_PF_WQE_PACKET   BB_PRM_F(0x008, 16, 16) /* eqe_page_fault.wqe_packet_length */
#define BB_PRM_EQE_PF_WQE_TOKEN    BB_PRM_F(0x00c, 0, 32)  /* eqe_page_fault.wqe_token */
#define BB_PRM_EQE_PF_WQE_TYPE_WQ  BB_PRM_F(0x018, 0, 32)  /* eqe_page_fault.wqe_pftype_wq */
#define BB_PRM_EQE_PF_RDMA_KEY     BB_PRM_F(0x004, 0, 32)  /* eqe_page_fault.rdma_r_key */
#define BB_PRM_EQE_PF_RDMA_PACKET  BB_PRM_F(0x008, 16, 16) /* eqe_page_fault.rdma_packet_length */
#define BB_PRM_EQE_PF_RDMA_LEN     BB_PRM_F(0x00c, 0, 32)  /* eqe_page_fault.rdma_rdma_op_len */
#define BB_PRM_EQE_PF_RDMA_VA      BB_PRM_F(0x010, 0, 64)  /* eqe_page_fault.rdma_rdma_va */
#define BB_PRM_EQE_PF_RDMA_TYPE_TOKEN                                                              \
	BB_PRM_F(0x018, 0, 32) /* eqe_page_fault.rdma_pftype_token                                 \
				*/

/* Capability types of QUERY_HCA_CAP. */
enum bb_prm_hca_cap {
	BB_PRM_CAP_ETHERNET_OFFLOADS = 0x1,
};

/* Sizes of mailboxes in bytes, without the lists that follow their fixed parts. */
#define BB_PRM_SZ_QUERY_ISSI_OUT         0x70   /* sizeof(query_issi_out) */
#define BB_PRM_SZ_QUERY_EQ_OUT           0x110  /* sizeof(query_eq_out) */
#define BB_PRM_SZ_CREATE_EQ_IN           0x110  /* sizeof(create_eq_in) */
#define BB_PRM_SZ_SET_HCA_CAP_IN         0x1010 /* sizeof(set_hca_cap_in) */
#define BB_PRM_SZ_QUERY_ADAPTER_OUT      0x110  /* sizeof(query_adapter_out) */
#define BB_PRM_SZ_HCA_VPORT_OUT          0x210  /* sizeof(query_hca_vport_context_out) */
#define BB_PRM_SZ_NIC_VPORT_OUT          0x110  /* sizeof(query_nic_vport_context_out) */
#define BB_PRM_SZ_MODIFY_NIC_VPORT_IN    0x200  /* sizeof(modify_nic_vport_context_in) */
#define BB_PRM_SZ_SET_ROCE_ADDRESS_IN    0x30   /* sizeof(set_roce_address_in) */
#define BB_PRM_SZ_QUERY_ROCE_ADDRESS_OUT 0x30   /* sizeof(query_roce_address_out) */
#define BB_PRM_SZ_MAD_IFC                0x110  /* sizeof(mad_ifc_in) */
#define BB_PRM_SZ_VPORT_COUNTER_OUT      0x210  /* sizeof(query_vport_counter_out) */
#define BB_PRM_SZ_CMDQ_ENTRY             0x40   /* sizeof(cmd_queue_entry) */
#define BB_PRM_SZ_BOX                    0x240  /* sizeof(cmd_if_box) */
#define BB_PRM_SZ_EQE                    0x40   /* sizeof(eqe) */

/* Initialization segment: start of BAR 0. */
#define BB_PRM_ISEG_HEALTH_BUFFER BB_PRM_F(0x200, 0, 512) /* initial_seg.health_buffer */

/* Health buffer of the initialization segment. */
#define BB_PRM_HEALTH_FW_VERSION BB_PRM_F(0x030, 0, 32) /* health_buffer.fw_version */
#define BB_PRM_HEALTH_VALID      BB_PRM_F(0x038, 4, 1)  /* health_buffer.valid */
#define BB_PRM_HEALTH_SEVERITY   BB_PRM_F(0x038, 5, 3)  /* health_buffer.severity */
#define BB_PRM_HEALTH_SYND       BB_PRM_F(0x03c, 8, 8)  /* health_buffer.synd */

/* Entry of the command queue. */
#define BB_PRM_CMDQ_TYPE  BB_PRM_F(0x000, 0, 8)  /* cmd_queue_entry.type */
#define BB_PRM_CMDQ_INLEN BB_PRM_F(0x004, 0, 32) /* cmd_queue_entry.input_length */
#define BB_PRM_CMDQ_IN_PTR_HIGH                                                                    \
	BB_PRM_F(0x008, 0, 32) /* cmd_queue_entry.input_mailbox_pointer_63_32 */
#define BB_PRM_CMDQ_IN_PTR_LOW                                                                     \
	BB_PRM_F(0x00c, 0, 23)                  /* cmd_queue_entry.input_mailbox_pointer_31_9 */
#define BB_PRM_CMDQ_IN  BB_PRM_F(0x010, 0, 128) /* cmd_queue_entry.command_input_inline_data */
#define BB_PRM_CMDQ_OUT BB_PRM_F(0x020, 0, 128) /* cmd_queue_entry.command_output_inline_data */
#define BB_PRM_CMDQ_OUT_PTR_HIGH                                                                   \
	BB_PRM_F(0x030, 0, 32) /* cmd_queue_entry.output_mailbox_pointer_63_32 */
#define BB_PRM_CMDQ_OUT_PTR_LOW                                                                    \
	BB_PRM_F(0x034, 0, 23) /* cmd_queue_entry.output_mailbox_pointer_31_9 */
#define BB_PRM_CMDQ_OUTLEN    BB_PRM_F(0x038, 0, 32) /* cmd_queue_entry.output_length */
#define BB_PRM_CMDQ_TOKEN     BB_PRM_F(0x03c, 0, 8)  /* cmd_queue_entry.token */
#define BB_PRM_CMDQ_STATUS    BB_PRM_F(0x03c, 24, 7) /* cmd_queue_entry.status */
#define BB_PRM_CMDQ_OWNERSHIP BB_PRM_F(0x03c, 31, 1) /* cmd_queue_entry.ownership */

/* Block of a mailbox: 512 bytes of data, and the address of the next block. */
#define BB_PRM_BOX_NEXT_HIGH    BB_PRM_F(0x230, 0, 32) /* cmd_if_box.next_pointer_63_32 */
#define BB_PRM_BOX_NEXT_LOW     BB_PRM_F(0x234, 0, 22) /* cmd_if_box.next_pointer_31_10 */
#define BB_PRM_BOX_BLOCK_NUMBER BB_PRM_F(0x238, 0, 32) /* cmd_if_box.block_number */
#define BB_PRM_BOX_TOKEN        BB_PRM_F(0x23c, 8, 8)  /* cmd_if_box.token */

/* Entry of an event queue, and its data. */
#define BB_PRM_EQE_EVENT_TYPE     BB_PRM_F(0x000, 8, 8)   /* eqe.event_type */
#define BB_PRM_EQE_EVENT_SUB_TYPE BB_PRM_F(0x000, 24, 8)  /* eqe.event_sub_type */
#define BB_PRM_EQE_EVENT_DATA     BB_PRM_F(0x020, 0, 224) /* eqe.event_data */
#define BB_PRM_CMD_EVENT_VECTOR                                                                    \
	BB_PRM_F(0x000, 0, 32) /* cmd_inter_comp_event.command_completion_vector */
#define BB_PRM_PAGE_EVENT_FUNCTION_ID BB_PRM_F(0x000, 16, 16) /* pages_req_event.function_id */
#define BB_PRM_PAGE_EVENT_NUM_PAGES   BB_PRM_F(0x004, 0, 32)  /* pages_req_event.num_pages */

/* CREATE_EQ, DESTROY_EQ, QUERY_EQ. The list of pages follows the fixed part. */
#define BB_PRM_CREATE_EQ_EQC              BB_PRM_F(0x010, 0, 512) /* create_eq_in.eq_context_entry */
#define BB_PRM_CREATE_EQ_EVENT_BITMASK    BB_PRM_F(0x058, 0, 256) /* create_eq_in.event_bitmask */
#define BB_PRM_CREATE_EQ_PAS              BB_PRM_F(0x110, 0, 0)   /* create_eq_in.pas */
#define BB_PRM_CREATE_EQ_OUT_EQ_NUMBER    BB_PRM_F(0x008, 24, 8)  /* create_eq_out.eq_number */
#define BB_PRM_DESTROY_EQ_EQ_NUMBER       BB_PRM_F(0x008, 24, 8)  /* destroy_eq_in.eq_number */
#define BB_PRM_QUERY_EQ_EQ_NUMBER         BB_PRM_F(0x008, 24, 8)  /* query_eq_in.eq_number */
#define BB_PRM_QUERY_EQ_OUT_EQC           BB_PRM_F(0x010, 0, 512) /* query_eq_out.eq_context_entry */
#define BB_PRM_QUERY_EQ_OUT_EVENT_BITMASK BB_PRM_F(0x058, 0, 64)  /* query_eq_out.event_bitmask */
#define BB_PRM_EQC_ST                     BB_PRM_F(0x000, 20, 4)  /* eqc.st */
#define BB_PRM_EQC_PAGE_OFFSET            BB_PRM_F(0x008, 20, 6)  /* eqc.page_offset */
#define BB_PRM_EQC_LOG_EQ_SIZE            BB_PRM_F(0x00c, 3, 5)   /* eqc.log_eq_size */
#define BB_PRM_EQC_UAR_PAGE               BB_PRM_F(0x00c, 8, 24)  /* eqc.uar_page */
#define BB_PRM_EQC_INTR                   BB_PRM_F(0x014, 20, 12) /* eqc.intr */
#define BB_PRM_EQC_LOG_PAGE_SIZE          BB_PRM_F(0x018, 3, 5)   /* eqc.log_page_size */
#define BB_PRM_EQC_CONSUMER_COUNTER       BB_PRM_F(0x028, 8, 24)  /* eqc.consumer_counter */
#define BB_PRM_EQC_PRODUCER_COUNTER       BB_PRM_F(0x02c, 8, 24)  /* eqc.producer_counter */

/* QUERY_PAGES, MANAGE_PAGES: pages of memory that the Linux driver gives to the firmware. */
#define BB_PRM_QUERY_PAGES_OUT_NUM_PAGES BB_PRM_F(0x00c, 0, 32)  /* query_pages_out.num_pages */
#define BB_PRM_MANAGE_PAGES_FUNCTION_ID  BB_PRM_F(0x008, 16, 16) /* manage_pages_in.function_id */
#define BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES                                                      \
	BB_PRM_F(0x00c, 0, 32)                        /* manage_pages_in.input_num_entries */
#define BB_PRM_MANAGE_PAGES_PAS BB_PRM_F(0x010, 0, 0) /* manage_pages_in.pas */
#define BB_PRM_MANAGE_PAGES_OUT_OUTPUT_NUM_ENTRIES                                                 \
	BB_PRM_F(0x008, 0, 32)                            /* manage_pages_out.output_num_entries */
#define BB_PRM_MANAGE_PAGES_OUT_PAS BB_PRM_F(0x010, 0, 0) /* manage_pages_out.pas */

/* ENABLE_HCA, TEARDOWN_HCA, QUERY_ISSI, SET_ISSI, SET_HCA_CAP, QUERY_ADAPTER. */
#define BB_PRM_ENABLE_HCA_FUNCTION_ID BB_PRM_F(0x008, 16, 16) /* enable_hca_in.function_id */
#define BB_PRM_TEARDOWN_HCA_PROFILE   BB_PRM_F(0x008, 16, 16) /* teardown_hca_in.profile */
#define BB_PRM_QUERY_ISSI_OUT_CURRENT_ISSI                                                         \
	BB_PRM_F(0x008, 16, 16) /* query_issi_out.current_issi                                     \
				 */
#define BB_PRM_QUERY_ISSI_OUT_SUPPORTED_ISSI_DW0                                                   \
	BB_PRM_F(0x06c, 0, 32)                               /* query_issi_out.supported_issi_dw0 */
#define BB_PRM_SET_ISSI_CURRENT_ISSI BB_PRM_F(0x008, 16, 16) /* set_issi_in.current_issi */
#define BB_PRM_SET_HCA_CAP_OTHER_FUNCTION                                                          \
	BB_PRM_F(0x008, 0, 1)                                   /* set_hca_cap_in.other_function   \
								 */
#define BB_PRM_SET_HCA_CAP_CAPABILITY BB_PRM_F(0x010, 0, 32768) /* set_hca_cap_in.capability */
#define BB_PRM_QUERY_HCA_CAP_OTHER_FUNCTION                                                        \
	BB_PRM_F(0x008, 0, 1) /* query_hca_cap_in.other_function */
#define BB_PRM_QUERY_ADAPTER_OUT_QUERY_ADAPTER_STRUCT                                              \
	BB_PRM_F(0x010, 0, 2048) /* query_adapter_out.query_adapter_struct */
#define BB_PRM_ADAPTER_IEEE_VENDOR_ID                                                              \
	BB_PRM_F(0x018, 8, 24) /* query_adapter_param_block.ieee_vendor_id */
#define BB_PRM_ADAPTER_VSD_CONTD_PSID                                                              \
	BB_PRM_F(0x0f0, 0, 128) /* query_adapter_param_block.vsd_contd_psid */

/* ALLOC_UAR, DEALLOC_UAR. */

/*
 * InfiniBand port of the function: QUERY_HCA_VPORT_CONTEXT, _GID, _PKEY. The input of
 * MODIFY_HCA_VPORT_CONTEXT has the context at the position of the query's output.
 */
#define BB_PRM_HCA_VPORT_OTHER_VPORT                                                               \
	BB_PRM_F(0x008, 0, 1) /* query_hca_vport_context_in.other_vport */
#define BB_PRM_HCA_VPORT_PORT_NUM BB_PRM_F(0x008, 12, 4) /* query_hca_vport_context_in.port_num */
#define BB_PRM_HCA_VPORT_OUT_CTX                                                                   \
	BB_PRM_F(0x010, 0, 4096) /* query_hca_vport_context_out.hca_vport_context */
#define BB_PRM_HVC_GRH_REQUIRED BB_PRM_F(0x020, 3, 1) /* hca_vport_context.grh_required */
#define BB_PRM_HVC_PORT_PHYSICAL_STATE                                                             \
	BB_PRM_F(0x020, 16, 4)                        /* hca_vport_context.port_physical_state */
#define BB_PRM_HVC_PORT_STATE  BB_PRM_F(0x020, 24, 4) /* hca_vport_context.port_state */
#define BB_PRM_HVC_VPORT_STATE BB_PRM_F(0x020, 28, 4) /* hca_vport_context.vport_state */
#define BB_PRM_HVC_SYSTEM_IMAGE_GUID                                                               \
	BB_PRM_F(0x028, 0, 64)                      /* hca_vport_context.system_image_guid */
#define BB_PRM_HVC_PORT_GUID BB_PRM_F(0x030, 0, 64) /* hca_vport_context.port_guid */
#define BB_PRM_HVC_NODE_GUID BB_PRM_F(0x038, 0, 64) /* hca_vport_context.node_guid */
#define BB_PRM_HVC_CAP_MASK1 BB_PRM_F(0x040, 0, 32) /* hca_vport_context.cap_mask1 */
#define BB_PRM_HVC_CAP_MASK1_FIELD_SELECT                                                          \
	BB_PRM_F(0x044, 0, 32) /* hca_vport_context.cap_mask1_field_select */
#define BB_PRM_HVC_FIELD_SELECT   BB_PRM_F(0x000, 0, 32) /* hca_vport_context.field_select */
#define BB_PRM_HVC_LID            BB_PRM_F(0x060, 0, 16) /* hca_vport_context.lid */
#define BB_PRM_HVC_SUBNET_TIMEOUT BB_PRM_F(0x060, 27, 5) /* hca_vport_context.subnet_timeout */
#define BB_PRM_HVC_SM_LID         BB_PRM_F(0x064, 0, 16) /* hca_vport_context.sm_lid */
#define BB_PRM_HCA_VPORT_GID_GID_INDEX                                                             \
	BB_PRM_F(0x00c, 16, 16) /* query_hca_vport_gid_in.gid_index */
#define BB_PRM_HCA_VPORT_GID_OUT_GIDS_NUM                                                          \
	BB_PRM_F(0x00c, 0, 16)                             /* query_hca_vport_gid_out.gids_num */
#define BB_PRM_HCA_VPORT_GID_OUT_GID BB_PRM_F(0x010, 0, 0) /* query_hca_vport_gid_out.gid */
#define BB_PRM_HCA_VPORT_PKEY_PKEY_INDEX                                                           \
	BB_PRM_F(0x00c, 16, 16) /* query_hca_vport_pkey_in.pkey_index */
#define BB_PRM_HCA_VPORT_PKEY_OUT_PKEY BB_PRM_F(0x010, 0, 0) /* query_hca_vport_pkey_out.pkey */

/* Ethernet port of the function: QUERY_NIC_VPORT_CONTEXT, MODIFY_NIC_VPORT_CONTEXT,
 * QUERY_VPORT_STATE. */
#define BB_PRM_NIC_VPORT_OTHER_VPORT                                                               \
	BB_PRM_F(0x008, 0, 1) /* query_nic_vport_context_in.other_vport */
#define BB_PRM_NIC_VPORT_OUT_CTX                                                                   \
	BB_PRM_F(0x010, 0, 2048) /* query_nic_vport_context_out.nic_vport_context */
#define BB_PRM_MODIFY_NIC_VPORT_OTHER_VPORT                                                        \
	BB_PRM_F(0x008, 0, 1) /* modify_nic_vport_context_in.other_vport */
#define BB_PRM_MODIFY_NIC_VPORT_FIELD_SELECT                                                       \
	BB_PRM_F(0x00c, 0, 32) /* modify_nic_vport_context_in.field_select */
#define BB_PRM_MODIFY_NIC_VPORT_CTX                                                                \
	BB_PRM_F(0x100, 0, 2048) /* modify_nic_vport_context_in.nic_vport_context */
#define BB_PRM_NIC_VPORT_SELECT_ROCE_EN                                                            \
	BB_PRM_F(0x000, 30, 1) /* modify_nic_vport_field_select.roce_en */
#define BB_PRM_NIC_VPORT_SELECT_MTU BB_PRM_F(0x000, 25, 1) /* modify_nic_vport_field_select.mtu */
#define BB_PRM_NIC_VPORT_SELECT_DISABLE_MC_LOCAL_LB                                                \
	BB_PRM_F(0x000, 21, 1) /* modify_nic_vport_field_select.disable_mc_local_lb */
#define BB_PRM_NIC_VPORT_SELECT_DISABLE_UC_LOCAL_LB                                                \
	BB_PRM_F(0x000, 20, 1) /* modify_nic_vport_field_select.disable_uc_local_lb */
#define BB_PRM_NVC_DISABLE_MC_LOCAL_LB                                                             \
	BB_PRM_F(0x000, 29, 1) /* nic_vport_context.disable_mc_local_lb */
#define BB_PRM_NVC_DISABLE_UC_LOCAL_LB                                                             \
	BB_PRM_F(0x000, 30, 1)                     /* nic_vport_context.disable_uc_local_lb */
#define BB_PRM_NVC_ROCE_EN BB_PRM_F(0x000, 31, 1)  /* nic_vport_context.roce_en */
#define BB_PRM_NVC_MTU     BB_PRM_F(0x024, 16, 16) /* nic_vport_context.mtu */
#define BB_PRM_NVC_SYSTEM_IMAGE_GUID                                                               \
	BB_PRM_F(0x028, 0, 64)                      /* nic_vport_context.system_image_guid */
#define BB_PRM_NVC_PORT_GUID BB_PRM_F(0x030, 0, 64) /* nic_vport_context.port_guid */
#define BB_PRM_NVC_NODE_GUID BB_PRM_F(0x038, 0, 64) /* nic_vport_context.node_guid */
#define BB_PRM_NVC_PERMANENT_ADDRESS                                                               \
	BB_PRM_F(0x0f4, 0, 64) /* nic_vport_context.permanent_address */
#define BB_PRM_VPORT_STATE_OUT_ADMIN_STATE                                                         \
	BB_PRM_F(0x00c, 24, 4)                              /* query_vport_state_out.admin_state */
#define BB_PRM_VPORT_STATE_OUT_STATE BB_PRM_F(0x00c, 28, 4) /* query_vport_state_out.state */

/* SET_ROCE_ADDRESS, QUERY_ROCE_ADDRESS. */
#define BB_PRM_SET_ROCE_ADDRESS_ROCE_ADDRESS_INDEX                                                 \
	BB_PRM_F(0x008, 0, 16) /* set_roce_address_in.roce_address_index */
#define BB_PRM_SET_ROCE_ADDRESS_VHCA_PORT_NUM                                                      \
	BB_PRM_F(0x008, 28, 4) /* set_roce_address_in.vhca_port_num */
#define BB_PRM_SET_ROCE_ADDRESS_ROCE_ADDRESS                                                       \
	BB_PRM_F(0x010, 0, 256) /* set_roce_address_in.roce_address */
#define BB_PRM_QUERY_ROCE_ADDRESS_ROCE_ADDRESS_INDEX                                               \
	BB_PRM_F(0x008, 0, 16) /* query_roce_address_in.roce_address_index */
#define BB_PRM_QUERY_ROCE_ADDRESS_OUT_ROCE_ADDRESS                                                 \
	BB_PRM_F(0x010, 0, 256) /* query_roce_address_out.roce_address */
#define BB_PRM_ROCE_ADDR_SOURCE_L3_ADDRESS                                                         \
	BB_PRM_F(0x000, 0, 128)                            /* roce_addr_layout.source_l3_address */
#define BB_PRM_ROCE_ADDR_VLAN_VALID BB_PRM_F(0x010, 3, 1)  /* roce_addr_layout.vlan_valid */
#define BB_PRM_ROCE_ADDR_VLAN_ID    BB_PRM_F(0x010, 4, 12) /* roce_addr_layout.vlan_id */
#define BB_PRM_ROCE_ADDR_SOURCE_MAC_47_32                                                          \
	BB_PRM_F(0x010, 16, 16) /* roce_addr_layout.source_mac_47_32 */
#define BB_PRM_ROCE_ADDR_SOURCE_MAC_31_0                                                           \
	BB_PRM_F(0x014, 0, 32)                               /* roce_addr_layout.source_mac_31_0 */
#define BB_PRM_ROCE_ADDR_ROCE_VERSION BB_PRM_F(0x018, 24, 8) /* roce_addr_layout.roce_version */

/* ACCESS_REG, and the registers that it reads or writes. */
#define BB_PRM_ACCESS_REG_REGISTER_ID BB_PRM_F(0x008, 16, 16) /* access_register_in.register_id */
#define BB_PRM_ACCESS_REG_REGISTER_DATA                                                            \
	BB_PRM_F(0x010, 0, 0) /* access_register_in.register_data                                  \
			       */
#define BB_PRM_ACCESS_REG_OUT_REGISTER_DATA                                                        \
	BB_PRM_F(0x010, 0, 0)                        /* access_register_out.register_data */
#define BB_PRM_PMTU_MAX_MTU   BB_PRM_F(0x004, 0, 16) /* pmtu_reg.max_mtu */
#define BB_PRM_PMTU_ADMIN_MTU BB_PRM_F(0x008, 0, 16) /* pmtu_reg.admin_mtu */
#define BB_PRM_PMTU_OPER_MTU  BB_PRM_F(0x00c, 0, 16) /* pmtu_reg.oper_mtu */
#define BB_PRM_PTYS_ETH_PROTO_CAPABILITY                                                           \
	BB_PRM_F(0x00c, 0, 32) /* ptys_reg.eth_proto_capability                                    \
				*/
#define BB_PRM_PTYS_IB_LINK_WIDTH_CAPABILITY                                                       \
	BB_PRM_F(0x010, 0, 16) /* ptys_reg.ib_link_width_capability */
#define BB_PRM_PTYS_IB_PROTO_CAPABILITY BB_PRM_F(0x010, 16, 16) /* ptys_reg.ib_proto_capability */
#define BB_PRM_PTYS_ETH_PROTO_ADMIN     BB_PRM_F(0x018, 0, 32)  /* ptys_reg.eth_proto_admin */
#define BB_PRM_PTYS_IB_LINK_WIDTH_ADMIN BB_PRM_F(0x01c, 0, 16)  /* ptys_reg.ib_link_width_admin */
#define BB_PRM_PTYS_IB_PROTO_ADMIN      BB_PRM_F(0x01c, 16, 16) /* ptys_reg.ib_proto_admin */
#define BB_PRM_PTYS_ETH_PROTO_OPER      BB_PRM_F(0x024, 0, 32)  /* ptys_reg.eth_proto_oper */
#define BB_PRM_PTYS_IB_LINK_WIDTH_OPER  BB_PRM_F(0x028, 0, 16)  /* ptys_reg.ib_link_width_oper */
#define BB_PRM_PTYS_IB_PROTO_OPER       BB_PRM_F(0x028, 16, 16) /* ptys_reg.ib_proto_oper */
#define BB_PRM_PVLC_VL_HW_CAP           BB_PRM_F(0x004, 28, 4)  /* pvlc_reg.vl_hw_cap */
#define BB_PRM_PVLC_VL_ADMIN            BB_PRM_F(0x008, 28, 4)  /* pvlc_reg.vl_admin */
#define BB_PRM_PVLC_VL_OPERATIONAL      BB_PRM_F(0x00c, 28, 4)  /* pvlc_reg.vl_operational */
#define BB_PRM_PAOS_ADMIN_STATUS        BB_PRM_F(0x000, 20, 4)  /* paos_reg.admin_status */
#define BB_PRM_PAOS_OPER_STATUS         BB_PRM_F(0x000, 28, 4)  /* paos_reg.oper_status */

/* MAD_IFC. */
#define BB_PRM_MAD_IFC_MAD BB_PRM_F(0x010, 0, 2048) /* mad_ifc_in.mad */
#define BB_PRM_MAD_IFC_OUT_RESPONSE_MAD_PACKET                                                     \
	BB_PRM_F(0x010, 0, 2048) /* mad_ifc_out.response_mad_packet */

/* QUERY_HCA_CAP: fields of cmd_hca_cap that the firmware alone decides. */
#define BB_PRM_HCA_VHCA_ID            BB_PRM_F(0x004, 16, 16) /* cmd_hca_cap.vhca_id */
#define BB_PRM_HCA_LOG_MAX_SRQ        BB_PRM_F(0x014, 11, 5)  /* cmd_hca_cap.log_max_srq */
#define BB_PRM_HCA_LOG_MAX_EQ_SZ      BB_PRM_F(0x01c, 0, 8)   /* cmd_hca_cap.log_max_eq_sz */
#define BB_PRM_HCA_LOG_MAX_EQ         BB_PRM_F(0x01c, 28, 4)  /* cmd_hca_cap.log_max_eq */
#define BB_PRM_HCA_IB_VIRT            BB_PRM_F(0x034, 2, 1)   /* cmd_hca_cap.ib_virt */
#define BB_PRM_HCA_NIC_FLOW_TABLE     BB_PRM_F(0x034, 6, 1)   /* cmd_hca_cap.nic_flow_table */
#define BB_PRM_HCA_LOCAL_CA_ACK_DELAY BB_PRM_F(0x034, 11, 5)  /* cmd_hca_cap.local_ca_ack_delay */
#define BB_PRM_HCA_COMPACT_ADDRESS_VECTOR                                                          \
	BB_PRM_F(0x040, 0, 1) /* cmd_hca_cap.compact_address_vector */
#define BB_PRM_HCA_UMR_MODIFY_ENTITY_SIZE_DISABLED                                                 \
	BB_PRM_F(0x040, 7, 1) /* cmd_hca_cap.umr_modify_entity_size_disabled */
#define BB_PRM_HCA_ETH_NET_OFFLOADS BB_PRM_F(0x040, 28, 1)  /* cmd_hca_cap.eth_net_offloads */
#define BB_PRM_HCA_XRC              BB_PRM_F(0x044, 28, 1)  /* cmd_hca_cap.xrc */
#define BB_PRM_HCA_UD               BB_PRM_F(0x044, 29, 1)  /* cmd_hca_cap.ud */
#define BB_PRM_HCA_UC               BB_PRM_F(0x044, 30, 1)  /* cmd_hca_cap.uc */
#define BB_PRM_HCA_RC               BB_PRM_F(0x044, 31, 1)  /* cmd_hca_cap.rc */
#define BB_PRM_HCA_UAR_SZ           BB_PRM_F(0x048, 10, 6)  /* cmd_hca_cap.uar_sz */
#define BB_PRM_HCA_MAX_WQE_SZ_SQ_DC BB_PRM_F(0x058, 16, 16) /* cmd_hca_cap.max_wqe_sz_sq_dc */
#define BB_PRM_HCA_LOG_MAX_TRANSPORT_DOMAIN                                                        \
	BB_PRM_F(0x064, 3, 5) /* cmd_hca_cap.log_max_transport_domain */
#define BB_PRM_HCA_LOG_MAX_XRCD       BB_PRM_F(0x064, 27, 5) /* cmd_hca_cap.log_max_xrcd */
#define BB_PRM_HCA_LOG_MAX_RQ         BB_PRM_F(0x06c, 3, 5)  /* cmd_hca_cap.log_max_rq */
#define BB_PRM_HCA_LOG_MAX_SQ         BB_PRM_F(0x06c, 11, 5) /* cmd_hca_cap.log_max_sq */
#define BB_PRM_HCA_LOG_MAX_TIR        BB_PRM_F(0x06c, 19, 5) /* cmd_hca_cap.log_max_tir */
#define BB_PRM_HCA_LOG_MAX_TIS        BB_PRM_F(0x06c, 27, 5) /* cmd_hca_cap.log_max_tis */
#define BB_PRM_HCA_LOG_MAX_RQT        BB_PRM_F(0x070, 11, 5) /* cmd_hca_cap.log_max_rqt */
#define BB_PRM_HCA_LOG_MAX_RQT_SIZE   BB_PRM_F(0x070, 19, 5) /* cmd_hca_cap.log_max_rqt_size */
#define BB_PRM_HCA_LOG_MAX_TIS_PER_SQ BB_PRM_F(0x070, 27, 5) /* cmd_hca_cap.log_max_tis_per_sq */
#define BB_PRM_HCA_LOG_MAX_STRIDE_SZ_RQ                                                            \
	BB_PRM_F(0x074, 3, 5) /* cmd_hca_cap.log_max_stride_sz_rq                                  \
			       */
#define BB_PRM_HCA_LOG_MAX_STRIDE_SZ_SQ                                                            \
	BB_PRM_F(0x074, 19, 5)                              /* cmd_hca_cap.log_max_stride_sz_sq */
#define BB_PRM_HCA_LOG_MAX_WQ_SZ     BB_PRM_F(0x078, 27, 5) /* cmd_hca_cap.log_max_wq_sz */
#define BB_PRM_HCA_LOG_MAX_VLAN_LIST BB_PRM_F(0x07c, 11, 5) /* cmd_hca_cap.log_max_vlan_list */
#define BB_PRM_HCA_LOG_MAX_CURRENT_MC_LIST                                                         \
	BB_PRM_F(0x07c, 19, 5) /* cmd_hca_cap.log_max_current_mc_list */
#define BB_PRM_HCA_LOG_MAX_CURRENT_UC_LIST                                                         \
	BB_PRM_F(0x07c, 27, 5)                             /* cmd_hca_cap.log_max_current_uc_list */
#define BB_PRM_HCA_MAX_NUM_EQS     BB_PRM_F(0x08c, 16, 16) /* cmd_hca_cap.max_num_eqs */
#define BB_PRM_HCA_LOG_UAR_PAGE_SZ BB_PRM_F(0x090, 16, 16) /* cmd_hca_cap.log_uar_page_sz */
#define BB_PRM_HCA_NUM_OF_UARS_PER_PAGE                                                            \
	BB_PRM_F(0x0a4, 0, 32) /* cmd_hca_cap.num_of_uars_per_page */

/* QUERY_HCA_CAP: other groups of capabilities that the driver of an Ethernet port reads. */
#define BB_PRM_ROCE_CAP_L3_TYPE BB_PRM_F(0x010, 12, 4) /* roce_cap.l3_type */
#define BB_PRM_ROCE_CAP_R_ROCE_DEST_UDP_PORT                                                       \
	BB_PRM_F(0x014, 16, 16) /* roce_cap.r_roce_dest_udp_port */
#define BB_PRM_NET_CAP_CSUM_CAP                                                                    \
	BB_PRM_F(0x000, 0, 1) /* per_protocol_networking_offload_caps.csum_cap */
#define BB_PRM_NET_CAP_VLAN_CAP                                                                    \
	BB_PRM_F(0x000, 1, 1) /* per_protocol_networking_offload_caps.vlan_cap */
#define BB_PRM_NET_CAP_WQE_VLAN_INSERT                                                             \
	BB_PRM_F(0x000, 7, 1) /* per_protocol_networking_offload_caps.wqe_vlan_insert */
#define BB_PRM_NET_CAP_SELF_LB_EN_MODIFIABLE                                                       \
	BB_PRM_F(0x000, 8, 1) /* per_protocol_networking_offload_caps.self_lb_en_modifiable */
#define BB_PRM_NET_CAP_MAX_LSO_CAP                                                                 \
	BB_PRM_F(0x000, 11, 5) /* per_protocol_networking_offload_caps.max_lso_cap */
#define BB_PRM_NET_CAP_WQE_INLINE_MODE                                                             \
	BB_PRM_F(0x000, 18, 2) /* per_protocol_networking_offload_caps.wqe_inline_mode */
#define BB_PRM_NET_CAP_RSS_IND_TBL_CAP                                                             \
	BB_PRM_F(0x000, 20, 4) /* per_protocol_networking_offload_caps.rss_ind_tbl_cap */
#define BB_PRM_NET_CAP_CQE_CHECKSUM_FULL                                                           \
	BB_PRM_F(0x004, 3, 1) /* per_protocol_networking_offload_caps.cqe_checksum_full */
#define BB_PRM_FLOW_CAP_FLOW_TABLE_PROPERTIES_NIC_RECEIVE                                          \
	BB_PRM_F(0x040, 0, 512) /* flow_table_nic_cap.flow_table_properties_nic_receive */
#define BB_PRM_FT_PROP_FT_SUPPORT BB_PRM_F(0x000, 0, 1) /* flow_table_prop_layout.ft_support */
#define BB_PRM_FT_PROP_FLOW_MODIFY_EN                                                              \
	BB_PRM_F(0x000, 3, 1)                            /* flow_table_prop_layout.flow_modify_en */
#define BB_PRM_FT_PROP_MODIFY_ROOT BB_PRM_F(0x000, 4, 1) /* flow_table_prop_layout.modify_root */
#define BB_PRM_FT_PROP_IDENTIFIED_MISS_TABLE_MODE                                                  \
	BB_PRM_F(0x000, 5, 1) /* flow_table_prop_layout.identified_miss_table_mode */
#define BB_PRM_FT_PROP_FLOW_TABLE_MODIFY                                                           \
	BB_PRM_F(0x000, 6, 1) /* flow_table_prop_layout.flow_table_modify */
#define BB_PRM_FT_PROP_IGNORE_FLOW_LEVEL                                                           \
	BB_PRM_F(0x000, 21, 1) /* flow_table_prop_layout.ignore_flow_level */
#define BB_PRM_FT_PROP_LOG_MAX_FT_SIZE                                                             \
	BB_PRM_F(0x004, 2, 6) /* flow_table_prop_layout.log_max_ft_size */
#define BB_PRM_FT_PROP_MAX_FT_LEVEL                                                                \
	BB_PRM_F(0x004, 24, 8) /* flow_table_prop_layout.max_ft_level                              \
				*/
#define BB_PRM_FT_PROP_LOG_MAX_FT_NUM                                                              \
	BB_PRM_F(0x00c, 24, 8) /* flow_table_prop_layout.log_max_ft_num */
#define BB_PRM_FT_PROP_LOG_MAX_DESTINATION                                                         \
	BB_PRM_F(0x010, 24, 8) /* flow_table_prop_layout.log_max_destination */

#endif
