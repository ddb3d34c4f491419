/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Command mailbox layouts of the queues and steering objects of an Ethernet port, which only a
 * kernel's driver writes. The form is that of bb_prm.h; test/golden checks both.
 */
#ifndef BB_PRM_ETH_H
#define BB_PRM_ETH_H

#include "bb_prm_kernel.h"

/* Command opcodes (kernel: MLX5_CMD_OP_*). */
enum bb_prm_eth_op {
	BB_PRM_OP_CREATE_SQ = 0x904,
	BB_PRM_OP_MODIFY_SQ = 0x905,
	BB_PRM_OP_DESTROY_SQ = 0x906,
	BB_PRM_OP_QUERY_SQ = 0x907,
	BB_PRM_OP_CREATE_RQ = 0x908,
	BB_PRM_OP_MODIFY_RQ = 0x909,
	BB_PRM_OP_DESTROY_RQ = 0x90a,
	BB_PRM_OP_QUERY_RQ = 0x90b,
};

/* Mailbox sizes in bytes, without the list that may follow the fixed part. */
#define BB_PRM_SZ_CREATE_SQ_IN         0x110 /* sizeof(create_sq_in) */
#define BB_PRM_SZ_MODIFY_SQ_IN         0x110 /* sizeof(modify_sq_in) */
#define BB_PRM_SZ_QUERY_SQ_OUT         0x110 /* sizeof(query_sq_out) */
#define BB_PRM_SZ_CREATE_TIS_IN        0xc0  /* sizeof(create_tis_in) */
#define BB_PRM_SZ_CREATE_TIR_IN        0x110 /* sizeof(create_tir_in) */
#define BB_PRM_SZ_CREATE_RQT_IN        0x110 /* sizeof(create_rqt_in) */
#define BB_PRM_SZ_CREATE_FLOW_TABLE_IN 0x40  /* sizeof(create_flow_table_in) */
#define BB_PRM_SZ_FLOW_TABLE_IN        0x40  /* sizeof(destroy_flow_table_in) */
#define BB_PRM_SZ_CREATE_FLOW_GROUP_IN 0x400 /* sizeof(create_flow_group_in) */
#define BB_PRM_SZ_SET_FTE_IN           0x340 /* sizeof(set_fte_in) */

/* Contexts of SQs and RQs. In each mailbox the context begins at byte 0x20. */
#define BB_PRM_CREATE_SQ_CTX   BB_PRM_F(0x020, 0, 1920) /* create_sq_in.ctx */
#define BB_PRM_MODIFY_SQ_STATE BB_PRM_F(0x008, 0, 4)    /* modify_sq_in.sq_state */
#define BB_PRM_MODIFY_SQ_CTX   BB_PRM_F(0x020, 0, 1920) /* modify_sq_in.ctx */
#define BB_PRM_QUERY_SQ_CTX    BB_PRM_F(0x020, 0, 1920) /* query_sq_out.sq_context */
#define BB_PRM_SQC_STATE       BB_PRM_F(0x000, 8, 4)    /* sqc.state */
#define BB_PRM_SQC_HAIRPIN     BB_PRM_F(0x000, 14, 1)   /* sqc.hairpin */
#define BB_PRM_SQC_USER_INDEX  BB_PRM_F(0x004, 8, 24)   /* sqc.user_index */
#define BB_PRM_SQC_CQN         BB_PRM_F(0x008, 8, 24)   /* sqc.cqn */
#define BB_PRM_SQC_TIS_LST_SZ  BB_PRM_F(0x020, 0, 16)   /* sqc.tis_lst_sz */
#define BB_PRM_SQC_TIS_NUM_0   BB_PRM_F(0x02c, 8, 24)   /* sqc.tis_num_0 */
#define BB_PRM_SQC_WQ          BB_PRM_F(0x030, 0, 1536) /* sqc.wq */
#define BB_PRM_RQC_MEM_RQ_TYPE BB_PRM_F(0x000, 4, 4)    /* rqc.mem_rq_type */
#define BB_PRM_WQ_UAR_PAGE     BB_PRM_F(0x00c, 8, 24)   /* wq.uar_page */

/* TIR, TIS and RQT: targets of received frames, and the context of a sender. */
#define BB_PRM_CREATE_TIR_CTX       BB_PRM_F(0x020, 0, 1920) /* create_tir_in.ctx */
#define BB_PRM_TIRC_DISP_TYPE       BB_PRM_F(0x004, 0, 4)    /* tirc.disp_type */
#define BB_PRM_TIRC_PACKET_MERGE    BB_PRM_F(0x010, 20, 4)   /* tirc.packet_merge_mask */
#define BB_PRM_TIRC_INLINE_RQN      BB_PRM_F(0x01c, 8, 24)   /* tirc.inline_rqn */
#define BB_PRM_TIRC_INDIRECT_TABLE  BB_PRM_F(0x020, 8, 24)   /* tirc.indirect_table */
#define BB_PRM_CREATE_RQT_CTX       BB_PRM_F(0x020, 0, 1920) /* create_rqt_in.rqt_context */
#define BB_PRM_MODIFY_RQT_CTX       BB_PRM_F(0x020, 0, 1920) /* modify_rqt_in.ctx */
#define BB_PRM_RQTC_RQT_ACTUAL_SIZE BB_PRM_F(0x018, 16, 16)  /* rqtc.rqt_actual_size */
#define BB_PRM_RQTC_RQ_NUM          0x0f0                    /* rqtc.rq_num */

/* Flow tables, groups and entries. */
#define BB_PRM_FLOW_OTHER_VPORT BB_PRM_F(0x008, 0, 1)   /* create_flow_table_in.other_vport */
#define BB_PRM_FLOW_TABLE_TYPE  BB_PRM_F(0x010, 0, 8)   /* create_flow_table_in.table_type */
#define BB_PRM_FLOW_TABLE_ID    BB_PRM_F(0x014, 8, 24)  /* destroy_flow_table_in.table_id */
#define BB_PRM_CREATE_FT_CTX    BB_PRM_F(0x018, 0, 320) /* create_flow_table_in.flow_table_context */
#define BB_PRM_MODIFY_FT_SELECT                                                                    \
	BB_PRM_F(0x00c, 16, 16) /* modify_flow_table_in.modify_field_select */
#define BB_PRM_MODIFY_FT_CTX   BB_PRM_F(0x018, 0, 320) /* modify_flow_table_in.flow_table_context */
#define BB_PRM_FTC_MISS_ACTION BB_PRM_F(0x000, 4, 4)   /* flow_table_context.table_miss_action */
#define BB_PRM_FTC_LEVEL       BB_PRM_F(0x000, 8, 8)   /* flow_table_context.level */
#define BB_PRM_FTC_LOG_SIZE    BB_PRM_F(0x000, 24, 8)  /* flow_table_context.log_size */
#define BB_PRM_FTC_MISS_ID     BB_PRM_F(0x004, 8, 24)  /* flow_table_context.table_miss_id */
#define BB_PRM_CREATE_FG_START BB_PRM_F(0x01c, 0, 32)  /* create_flow_group_in.start_flow_index */
#define BB_PRM_CREATE_FG_END   BB_PRM_F(0x024, 0, 32)  /* create_flow_group_in.end_flow_index */
#define BB_PRM_CREATE_FG_ENABLE                                                                    \
	BB_PRM_F(0x03c, 24, 8) /* create_flow_group_in.match_criteria_enable */
#define BB_PRM_CREATE_FG_MATCH   BB_PRM_F(0x040, 0, 4096) /* create_flow_group_in.match_criteria */
#define BB_PRM_DESTROY_FG_ID     BB_PRM_F(0x018, 0, 32)   /* destroy_flow_group_in.group_id */
#define BB_PRM_SET_FTE_INDEX     BB_PRM_F(0x020, 0, 32)   /* set_fte_in.flow_index */
#define BB_PRM_SET_FTE_CTX       BB_PRM_F(0x040, 0, 6144) /* set_fte_in.flow_context */
#define BB_PRM_DELETE_FTE_INDEX  BB_PRM_F(0x020, 0, 32)   /* delete_fte_in.flow_index */
#define BB_PRM_FLOWC_GROUP_ID    BB_PRM_F(0x004, 0, 32)   /* flow_context.group_id */
#define BB_PRM_FLOWC_TAG         BB_PRM_F(0x008, 8, 24)   /* flow_context.flow_tag */
#define BB_PRM_FLOWC_ACTION      BB_PRM_F(0x00c, 16, 16)  /* flow_context.action */
#define BB_PRM_FLOWC_EXTENDED    BB_PRM_F(0x010, 0, 1)    /* flow_context.extended_destination */
#define BB_PRM_FLOWC_DESTS       BB_PRM_F(0x010, 8, 24)   /* flow_context.destination_list_size */
#define BB_PRM_FLOWC_VALUE       BB_PRM_F(0x040, 0, 4096) /* flow_context.match_value */
#define BB_PRM_FLOWC_DESTINATION 0x300                    /* flow_context.destination */
#define BB_PRM_DEST_TYPE         BB_PRM_F(0x000, 0, 8)    /* dest_format_struct.destination_type */
#define BB_PRM_DEST_ID           BB_PRM_F(0x000, 8, 24)   /* dest_format_struct.destination_id */

/* Match of a flow entry on the headers of a frame: the first 64 bytes of fte_match_param. */
#define BB_PRM_MATCH_SMAC_HIGH   BB_PRM_F(0x000, 0, 32)  /* fte_match_set_lyr_2_4.smac_47_16 */
#define BB_PRM_MATCH_SMAC_LOW    BB_PRM_F(0x004, 0, 16)  /* fte_match_set_lyr_2_4.smac_15_0 */
#define BB_PRM_MATCH_ETHERTYPE   BB_PRM_F(0x004, 16, 16) /* fte_match_set_lyr_2_4.ethertype */
#define BB_PRM_MATCH_DMAC_HIGH   BB_PRM_F(0x008, 0, 32)  /* fte_match_set_lyr_2_4.dmac_47_16 */
#define BB_PRM_MATCH_DMAC_LOW    BB_PRM_F(0x00c, 0, 16)  /* fte_match_set_lyr_2_4.dmac_15_0 */
#define BB_PRM_MATCH_FIRST_PRIO  BB_PRM_F(0x00c, 16, 3)  /* fte_match_set_lyr_2_4.first_prio */
#define BB_PRM_MATCH_FIRST_CFI   BB_PRM_F(0x00c, 19, 1)  /* fte_match_set_lyr_2_4.first_cfi */
#define BB_PRM_MATCH_FIRST_VID   BB_PRM_F(0x00c, 20, 12) /* fte_match_set_lyr_2_4.first_vid */
#define BB_PRM_MATCH_IP_PROTOCOL BB_PRM_F(0x010, 0, 8)   /* fte_match_set_lyr_2_4.ip_protocol */
#define BB_PRM_MATCH_IP_DSCP     BB_PRM_F(0x010, 8, 6)   /* fte_match_set_lyr_2_4.ip_dscp */
#define BB_PRM_MATCH_IP_ECN      BB_PRM_F(0x010, 14, 2)  /* fte_match_set_lyr_2_4.ip_ecn */
#define BB_PRM_MATCH_CVLAN_TAG   BB_PRM_F(0x010, 16, 1)  /* fte_match_set_lyr_2_4.cvlan_tag */
#define BB_PRM_MATCH_SVLAN_TAG   BB_PRM_F(0x010, 17, 1)  /* fte_match_set_lyr_2_4.svlan_tag */
#define BB_PRM_MATCH_FRAG        BB_PRM_F(0x010, 18, 1)  /* fte_match_set_lyr_2_4.frag */
#define BB_PRM_MATCH_IP_VERSION  BB_PRM_F(0x010, 19, 4)  /* fte_match_set_lyr_2_4.ip_version */
#define BB_PRM_MATCH_TCP_FLAGS   BB_PRM_F(0x010, 23, 9)  /* fte_match_set_lyr_2_4.tcp_flags */
#define BB_PRM_MATCH_TCP_SPORT   BB_PRM_F(0x014, 0, 16)  /* fte_match_set_lyr_2_4.tcp_sport */
#define BB_PRM_MATCH_TCP_DPORT   BB_PRM_F(0x014, 16, 16) /* fte_match_set_lyr_2_4.tcp_dport */
#define BB_PRM_MATCH_TTL         BB_PRM_F(0x018, 24, 8)  /* fte_match_set_lyr_2_4.ttl_hoplimit */
#define BB_PRM_MATCH_UDP_SPORT   BB_PRM_F(0x01c, 0, 16)  /* fte_match_set_lyr_2_4.udp_sport */
#define BB_PRM_MATCH_UDP_DPORT   BB_PRM_F(0x01c, 16, 16) /* fte_match_set_lyr_2_4.udp_dport */
#define BB_PRM_MATCH_SRC_IP      BB_PRM_F(0x020, 0, 128) /* fte_match_set_lyr_2_4.src_ipv4_src_ipv6 */
#define BB_PRM_MATCH_DST_IP      BB_PRM_F(0x030, 0, 128) /* fte_match_set_lyr_2_4.dst_ipv4_dst_ipv6 */

#endif
