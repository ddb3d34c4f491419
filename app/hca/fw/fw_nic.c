/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The vport of an Ethernet port, as far as Linux's mlx5e needs it to make its netdev: a MAC, the
 * MTU and whether RoCE is on, and the RoCE addresses. The netdev's queues and steering are in
 * drivers/front/eth.
 */
#include <errno.h>
#include <string.h>

#include "bb_dev.h"
#include "fw.h"
#include "hca_log.h"

#define MTU        1500u
#define MAC_PREFIX 0x0200u /* locally administered */

/* Linux mlx5_core.h: MLX5_ROCE_VERSION_1, _2. */
#define ROCE_V1 0u
#define ROCE_V2 2u

void
fw_nic_reset(struct hca *h)
{
	uint8_t *ctx = h->fw.nic_vport, mac[8] = {0};
	uint32_t frame;

	memset(h->fw.roce, 0, sizeof(h->fw.roce));
	memset(ctx, 0, sizeof(h->fw.nic_vport));
	bb_prm_set(ctx, BB_PRM_NVC_MTU, MTU);
	bb_prm_set64(ctx, BB_PRM_NVC_SYSTEM_IMAGE_GUID, h->o.guid);
	bb_prm_set64(ctx, BB_PRM_NVC_PORT_GUID, h->o.guid);
	bb_prm_set64(ctx, BB_PRM_NVC_NODE_GUID, h->o.guid);
	/* mac_address_layout: 16 reserved bits, then the MAC. */
	bb_prm_set(mac, BB_PRM_F(0, 16, 16), MAC_PREFIX);
	bb_prm_set(mac, BB_PRM_F(4, 0, 32), (uint32_t)h->o.guid);
	(void)front_ethernet_port(h->front, mac + 2, &frame);
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

/* Executes QUERY_VPORT_COUNTER. The output stays zero: the port counts nothing. */
int
fw_query_vport_counter(struct fw_cmd *c)
{
	return fw_need(c, 16, BB_PRM_SZ_VPORT_COUNTER_OUT);
}

/* Returns the index in a command about a RoCE address, or refuses the command and returns -1. */
static int
address_index(struct fw_cmd *c)
{
	uint32_t index = bb_prm_get(c->in, BB_PRM_SET_ROCE_ADDRESS_ROCE_ADDRESS_INDEX);

	if (bb_prm_get(c->in, BB_PRM_SET_ROCE_ADDRESS_VHCA_PORT_NUM) > 1) {
		(void)fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "a RoCE address of another port");
		return -1;
	}
	if (index >= FRONT_ADDRESSES) {
		(void)fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "index %u of a RoCE address (0 to %u)",
				index, FRONT_ADDRESSES - 1);
		return -1;
	}
	return (int)index;
}

/*
 * Executes SET_ROCE_ADDRESS: the address becomes a GID of the software device's port. An address of
 * zeros empties the entry (Linux lib/gid.c).
 */
int
fw_set_roce_address(struct fw_cmd *c)
{
	const uint8_t *a = bb_prm_csub(c->in, BB_PRM_SET_ROCE_ADDRESS_ROCE_ADDRESS);
	const uint8_t *l3 = bb_prm_csub(a, BB_PRM_ROCE_ADDR_SOURCE_L3_ADDRESS), zero[16] = {0};
	const uint8_t *mac = a + BB_PRM_ROCE_ADDR_SOURCE_MAC_47_32.byte + 2;
	uint32_t version = bb_prm_get(a, BB_PRM_ROCE_ADDR_ROCE_VERSION);
	bool empty = memcmp(l3, zero, sizeof(zero)) == 0;
	struct bb_gid gid = {
		.size = sizeof(gid),
		.type = version == ROCE_V2 ? BB_GID_ROCE_V2 : BB_GID_ROCE_V1,
	};
	int index, rc;

	if (fw_need(c, BB_PRM_SZ_SET_ROCE_ADDRESS_IN, 16) != 0)
		return BB_PRM_STAT_BAD_INP_LEN;
	index = address_index(c);
	if (index < 0)
		return BB_PRM_STAT_BAD_PARAM;
	if (!empty && version != ROCE_V1 && version != ROCE_V2)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "RoCE version %u (0: v1, 2: v2)",
				 version);
	/* Firmware refuses a group MAC (Linux 6.15, the fix of mlx5_rdma_add_roce_addr()). */
	if (!empty && (mac[0] & 1) != 0)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "a group MAC of a RoCE address");
	/*
	 * RoCE in VLANs is not supported. Linux sets an address for each netdev of a VLAN, and
	 * would warn of a refusal. So the entry stays empty, and the device refuses QPs that name
	 * it.
	 */
	if (bb_prm_get(a, BB_PRM_ROCE_ADDR_VLAN_VALID)) {
		HCA_LOG(INFO,
			"RoCE address %d in VLAN %u is not supported: the GID entry stays empty",
			index, bb_prm_get(a, BB_PRM_ROCE_ADDR_VLAN_ID));
		empty = true;
	}
	memcpy(gid.raw, l3, sizeof(gid.raw));
	rc = front_set_address(c->h->front, (uint32_t)index, empty ? NULL : &gid, mac);
	if (rc == -EADDRINUSE)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM,
				 "another function has this GID: give the netdevs different "
				 "addresses");
	if (rc == -EOPNOTSUPP)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM,
				 "the device has its addresses from its options: remove shm=");
	if (rc != 0)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "cannot set RoCE address %d: %s", index,
				 strerror(-rc));
	memcpy(c->h->fw.roce[index], a, HCA_ROCE_ADDRESS);
	return BB_PRM_STAT_OK;
}

int
fw_query_roce_address(struct fw_cmd *c)
{
	int index = address_index(c);

	if (index < 0)
		return BB_PRM_STAT_BAD_PARAM;
	if (fw_need(c, 16, BB_PRM_SZ_QUERY_ROCE_ADDRESS_OUT) != 0)
		return BB_PRM_STAT_BAD_OUTP_LEN;
	memcpy(bb_prm_sub(c->out, BB_PRM_QUERY_ROCE_ADDRESS_OUT_ROCE_ADDRESS), c->h->fw.roce[index],
	       HCA_ROCE_ADDRESS);
	return BB_PRM_STAT_OK;
}
