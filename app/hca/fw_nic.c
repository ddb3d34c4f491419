/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The vport of an Ethernet port, as far as Linux's mlx5e needs it to make its netdev: a MAC, the
 * MTU and whether RoCE is on. Steering objects get numbers and have no function.
 */
#include <string.h>

#include "fw.h"
#include "hca_log.h"

#define MTU          1500u
#define STATE_UP     1u
#define MAC_PREFIX   0x0200u /* locally administered */
#define FIRST_NUMBER 1u

void
fw_nic_reset(struct hca *h)
{
	uint8_t *ctx = h->fw.nic_vport, mac[8] = {0};

	memset(ctx, 0, sizeof(h->fw.nic_vport));
	bb_prm_set(ctx, BB_PRM_NVC_MTU, MTU);
	bb_prm_set64(ctx, BB_PRM_NVC_SYSTEM_IMAGE_GUID, h->o.guid);
	bb_prm_set64(ctx, BB_PRM_NVC_PORT_GUID, h->o.guid);
	bb_prm_set64(ctx, BB_PRM_NVC_NODE_GUID, h->o.guid);
	/* mac_address_layout: 16 reserved bits, then the MAC. */
	bb_prm_set(mac, BB_PRM_F(0, 16, 16), MAC_PREFIX);
	bb_prm_set(mac, BB_PRM_F(4, 0, 32), (uint32_t)h->o.guid);
	memcpy(bb_prm_sub(ctx, BB_PRM_NVC_PERMANENT_ADDRESS), mac, sizeof(mac));
}

int
fw_query_nic_vport_context(struct fw_cmd *c)
{
	if (fw_need(c, 16, BB_PRM_SZ_NIC_VPORT_OUT) != 0)
		return BB_PRM_STAT_BAD_OUTP_LEN;
	if (bb_prm_get(c->in, BB_PRM_NIC_VPORT_OTHER_VPORT))
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "another function's vport");
	memcpy(bb_prm_sub(c->out, BB_PRM_NIC_VPORT_OUT_CTX), c->h->fw.nic_vport,
	       sizeof(c->h->fw.nic_vport));
	return BB_PRM_STAT_OK;
}

int
fw_modify_nic_vport_context(struct fw_cmd *c)
{
	const uint8_t *select = bb_prm_csub(c->in, BB_PRM_MODIFY_NIC_VPORT_FIELD_SELECT);
	const uint8_t *from = bb_prm_csub(c->in, BB_PRM_MODIFY_NIC_VPORT_CTX);
	uint8_t *to = c->h->fw.nic_vport;

	if (fw_need(c, BB_PRM_SZ_MODIFY_NIC_VPORT_IN, 16) != 0)
		return BB_PRM_STAT_BAD_INP_LEN;
	if (bb_prm_get(c->in, BB_PRM_MODIFY_NIC_VPORT_OTHER_VPORT))
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "another function's vport");
	if (bb_prm_get(select, BB_PRM_NIC_VPORT_SELECT_ROCE_EN))
		bb_prm_set(to, BB_PRM_NVC_ROCE_EN, bb_prm_get(from, BB_PRM_NVC_ROCE_EN));
	if (bb_prm_get(select, BB_PRM_NIC_VPORT_SELECT_MTU))
		bb_prm_set(to, BB_PRM_NVC_MTU, bb_prm_get(from, BB_PRM_NVC_MTU));
	if (bb_prm_get(select, BB_PRM_NIC_VPORT_SELECT_DISABLE_UC_LOCAL_LB))
		bb_prm_set(to, BB_PRM_NVC_DISABLE_UC_LOCAL_LB,
			   bb_prm_get(from, BB_PRM_NVC_DISABLE_UC_LOCAL_LB));
	if (bb_prm_get(select, BB_PRM_NIC_VPORT_SELECT_DISABLE_MC_LOCAL_LB))
		bb_prm_set(to, BB_PRM_NVC_DISABLE_MC_LOCAL_LB,
			   bb_prm_get(from, BB_PRM_NVC_DISABLE_MC_LOCAL_LB));
	return BB_PRM_STAT_OK;
}

int
fw_query_vport_state(struct fw_cmd *c)
{
	bb_prm_set(c->out, BB_PRM_VPORT_STATE_OUT_ADMIN_STATE, STATE_UP);
	bb_prm_set(c->out, BB_PRM_VPORT_STATE_OUT_STATE, STATE_UP);
	return BB_PRM_STAT_OK;
}

/* Executes QUERY_VPORT_COUNTER. The output stays zero: the port counts nothing. */
int
fw_query_vport_counter(struct fw_cmd *c)
{
	return fw_need(c, 16, BB_PRM_SZ_VPORT_COUNTER_OUT);
}

/*
 * Creates an object that is only a number, without any function. The number is in bits 8 to 31 of
 * the dword at byte 8 of the output.
 */
int
fw_number(struct fw_cmd *c)
{
	bb_prm_set(c->out, BB_PRM_F(0x8, 8, 24), FIRST_NUMBER + c->h->fw.next_number++ % 0xffff00u);
	return BB_PRM_STAT_OK;
}
