/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The port: state, addresses and registers, with the values of the software device's port.
 * Registers are those of Linux's include/linux/mlx5/driver.h (MLX5_REG_*).
 */
#include <stdio.h>
#include <string.h>

#include "fw.h"
#include "hca_log.h"
#include "mlx5_cmd.h"

enum {
	REG_PMTU = 0x5003,
	REG_PTYS = 0x5004,
	REG_PAOS = 0x5006,
	REG_PVLC = 0x500f,
	REG_NODE_DESC = 0x6001,
	REG_HOST_ENDIANNESS = 0x7004,
};

#define PORT           1u
#define PHYS_LINK_UP   5u /* port_physical_state */
#define PHYS_POLLING   2u
#define STATE_DOWN     1u
#define STATE_ACTIVE   4u
#define SUBNET_TIMEOUT 18u
#define CAP_MASK       0x02514868u /* capability mask of a port that runs no subnet manager */
/*
 * Bits of the capability mask that a driver may change. They announce a subnet manager, a
 * connection manager, SNMP, device management, or a vendor class (Linux rdma/ib_verbs.h, enum
 * ib_port_capability_mask_bits).
 */
#define CAP_MASK_SETTABLE 0x001b0002u
#define GID_BYTES         16u
#define ALL_ENTRIES       0xffffu
#define PKEY_DEFAULT      0xffffu
#define IB_WIDTHS         0x7u  /* 1x, 2x, 4x */
#define IB_SPEEDS         0x3fu /* SDR to EDR */
#define IB_WIDTH_4X       0x4u
#define IB_SPEED_EDR      0x20u
#define ETH_100G_CR4      (1u << 20)
#define ETH_MTU           9978u
#define ETH_CRC           4u
#define ADMIN_UP          1u /* states of a vport, and of a port in PAOS */
#define OPER_UP           1u
#define OPER_DOWN         0u
#define PAOS_DOWN         2u
#define VLS_4             4u /* code of PortInfo for the virtual lanes VL0 to VL7 */
#define NODE_DESC_BYTES   64u
#define MAD_RESPONSE      0x80u
#define MAD_METHOD        3 /* offset of the method in a MAD (management datagram) */
#define MAD_STATUS        5
#define MAD_UNSUPPORTED   0x0cu /* status: method and attribute are not supported */

/*
 * Returns the attributes of the software device's port, or default values if the device is not
 * open.
 */
static struct mlx5_port
port_of(struct hca *h)
{
	struct mlx5_port p = {.state = BB_PORT_ACTIVE, .max_mtu = 4096, .active_mtu = 4096};
	struct mlx5_ctx *ctx = front_ctx(h->front);

	if (ctx != NULL && ctx->cmd->port_query(ctx, PORT, &p) != 0)
		p.state = BB_PORT_DOWN;
	if (p.gids == 0)
		p.gids = 1;
	return p;
}

/* Returns GID @index; the zero GID if the port has none there. */
static void
gid_of(struct hca *h, uint32_t index, uint8_t gid[GID_BYTES])
{
	struct mlx5_ctx *ctx = front_ctx(h->front);
	struct bb_gid g;

	memset(gid, 0, GID_BYTES);
	if (ctx != NULL && ctx->cmd->gid_query(ctx, PORT, index, &g) == 0) {
		memcpy(gid, g.raw, GID_BYTES);
		return;
	}
	if (index == 0) {
		bb_prm_set(gid, BB_PRM_F(0, 0, 32), 0xfe800000);
		bb_prm_set64(gid + 8, BB_PRM_F(0, 0, 64), h->o.guid);
	}
}

/* Refuses a command that names another vport or port. */
static int
own_port(struct fw_cmd *c)
{
	if (bb_prm_get(c->in, BB_PRM_HCA_VPORT_OTHER_VPORT))
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "another function's vport");
	if (bb_prm_get(c->in, BB_PRM_HCA_VPORT_PORT_NUM) > PORT)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "port %u (1)",
				 bb_prm_get(c->in, BB_PRM_HCA_VPORT_PORT_NUM));
	return BB_PRM_STAT_OK;
}

int
fw_query_hca_vport_context(struct fw_cmd *c)
{
	uint8_t *ctx = bb_prm_sub(c->out, BB_PRM_HCA_VPORT_OUT_CTX), gid[GID_BYTES];
	struct mlx5_port p = port_of(c->h);
	bool up = p.state == BB_PORT_ACTIVE;

	if (own_port(c) != 0)
		return BB_PRM_STAT_BAD_PARAM;
	if (fw_need(c, 16, BB_PRM_SZ_HCA_VPORT_OUT) != 0)
		return BB_PRM_STAT_BAD_OUTP_LEN;
	gid_of(c->h, 0, gid);
	bb_prm_set(ctx, BB_PRM_HVC_GRH_REQUIRED, p.grh_required);
	bb_prm_set(ctx, BB_PRM_HVC_PORT_PHYSICAL_STATE, up ? PHYS_LINK_UP : PHYS_POLLING);
	bb_prm_set(ctx, BB_PRM_HVC_PORT_STATE, up ? STATE_ACTIVE : STATE_DOWN);
	bb_prm_set(ctx, BB_PRM_HVC_VPORT_STATE, up ? STATE_ACTIVE : STATE_DOWN);
	bb_prm_set64(ctx, BB_PRM_HVC_SYSTEM_IMAGE_GUID, c->h->o.guid);
	bb_prm_set64(ctx, BB_PRM_HVC_NODE_GUID, c->h->o.guid);
	/* The port's GUID is the interface part of its first GID. */
	memcpy(bb_prm_sub(ctx, BB_PRM_HVC_PORT_GUID), gid + 8, 8);
	bb_prm_set(ctx, BB_PRM_HVC_CAP_MASK1, c->h->fw.port_caps);
	bb_prm_set(ctx, BB_PRM_HVC_CAP_MASK1_FIELD_SELECT, CAP_MASK_SETTABLE);
	bb_prm_set(ctx, BB_PRM_HVC_LID, p.lid);
	bb_prm_set(ctx, BB_PRM_HVC_SM_LID, p.lid);
	bb_prm_set(ctx, BB_PRM_HVC_SUBNET_TIMEOUT, SUBNET_TIMEOUT);
	return BB_PRM_STAT_OK;
}

void
fw_port_reset(struct hca *h)
{
	h->fw.port_caps = CAP_MASK;
}

/* Changes the port's capability mask (Linux mlx5_ib, set_port_caps_atomic()), and nothing else. */
int
fw_modify_hca_vport_context(struct fw_cmd *c)
{
	const uint8_t *ctx = bb_prm_csub(c->in, BB_PRM_HCA_VPORT_OUT_CTX);
	uint32_t mask, *caps = &c->h->fw.port_caps;

	if (fw_need(c, BB_PRM_SZ_HCA_VPORT_OUT, 16) != 0)
		return BB_PRM_STAT_BAD_INP_LEN;
	if (own_port(c) != 0)
		return BB_PRM_STAT_BAD_PARAM;
	mask = bb_prm_get(ctx, BB_PRM_HVC_CAP_MASK1_FIELD_SELECT);
	if (bb_prm_get(ctx, BB_PRM_HVC_FIELD_SELECT) != 0 || (mask & ~CAP_MASK_SETTABLE) != 0)
		return fw_refuse(
			c, BB_PRM_STAT_BAD_PARAM,
			"field_select 0x%x (must be 0), bits 0x%x of the capability mask (a subset of 0x%x)",
			bb_prm_get(ctx, BB_PRM_HVC_FIELD_SELECT), mask, CAP_MASK_SETTABLE);
	*caps = (*caps & ~mask) | (bb_prm_get(ctx, BB_PRM_HVC_CAP_MASK1) & mask);
	return BB_PRM_STAT_OK;
}

int
fw_query_hca_vport_gid(struct fw_cmd *c)
{
	uint32_t index = bb_prm_get(c->in, BB_PRM_HCA_VPORT_GID_GID_INDEX), i, n = 1;
	uint8_t *gid = bb_prm_sub(c->out, BB_PRM_HCA_VPORT_GID_OUT_GID);
	struct mlx5_port p = port_of(c->h);

	if (own_port(c) != 0)
		return BB_PRM_STAT_BAD_PARAM;
	if (index == ALL_ENTRIES) {
		index = 0;
		n = p.gids;
	}
	if (fw_need(c, 16, 16 + n * GID_BYTES) != 0)
		return BB_PRM_STAT_BAD_OUTP_LEN;
	for (i = 0; i < n && index + i < p.gids; i++)
		gid_of(c->h, index + i, gid + i * GID_BYTES);
	bb_prm_set(c->out, BB_PRM_HCA_VPORT_GID_OUT_GIDS_NUM, n);
	return BB_PRM_STAT_OK;
}

int
fw_query_hca_vport_pkey(struct fw_cmd *c)
{
	uint32_t index = bb_prm_get(c->in, BB_PRM_HCA_VPORT_PKEY_PKEY_INDEX);

	if (own_port(c) != 0)
		return BB_PRM_STAT_BAD_PARAM;
	if (fw_need(c, 16, 20) != 0)
		return BB_PRM_STAT_BAD_OUTP_LEN;
	/* Entries of 32 bits, the P_Key in the lower half. The table has one P_Key. */
	if (index == 0 || index == ALL_ENTRIES)
		bb_prm_set(bb_prm_sub(c->out, BB_PRM_HCA_VPORT_PKEY_OUT_PKEY), BB_PRM_F(0, 16, 16),
			   PKEY_DEFAULT);
	return BB_PRM_STAT_OK;
}

/*
 * Answers each management datagram with the status "not supported", because the device has no
 * subnet management agent.
 */
int
fw_mad_ifc(struct fw_cmd *c)
{
	uint8_t *mad = bb_prm_sub(c->out, BB_PRM_MAD_IFC_OUT_RESPONSE_MAD_PACKET);

	if (fw_need(c, BB_PRM_SZ_MAD_IFC, BB_PRM_SZ_MAD_IFC) != 0)
		return BB_PRM_STAT_BAD_INP_LEN;
	memcpy(mad, bb_prm_csub(c->in, BB_PRM_MAD_IFC_MAD), 256);
	mad[MAD_METHOD] |= MAD_RESPONSE;
	mad[MAD_STATUS] = MAD_UNSUPPORTED;
	return BB_PRM_STAT_OK;
}

static void
reg_pmtu(struct hca *h, uint8_t *r)
{
	uint32_t mtu = h->o.eth ? ETH_MTU : port_of(h).active_mtu, frame;
	uint8_t mac[6];

	/* The MTU of an Ethernet port is the length of a frame (Linux mlx5e: MLX5E_HW2SW_MTU()). */
	if (h->o.eth && front_ethernet_port(h->front, mac, &frame))
		mtu = frame + ETH_CRC;
	bb_prm_set(r, BB_PRM_PMTU_MAX_MTU, mtu);
	bb_prm_set(r, BB_PRM_PMTU_ADMIN_MTU, mtu);
	bb_prm_set(r, BB_PRM_PMTU_OPER_MTU, mtu);
}

int
fw_query_vport_state(struct fw_cmd *c)
{
	bool up = port_of(c->h).state == BB_PORT_ACTIVE;

	bb_prm_set(c->out, BB_PRM_VPORT_STATE_OUT_ADMIN_STATE, ADMIN_UP);
	bb_prm_set(c->out, BB_PRM_VPORT_STATE_OUT_STATE, up ? OPER_UP : OPER_DOWN);
	return BB_PRM_STAT_OK;
}

static void
reg_ptys(struct hca *h, uint8_t *r)
{
	if (h->o.eth) {
		bb_prm_set(r, BB_PRM_PTYS_ETH_PROTO_CAPABILITY, ETH_100G_CR4);
		bb_prm_set(r, BB_PRM_PTYS_ETH_PROTO_ADMIN, ETH_100G_CR4);
		bb_prm_set(r, BB_PRM_PTYS_ETH_PROTO_OPER, ETH_100G_CR4);
		return;
	}
	bb_prm_set(r, BB_PRM_PTYS_IB_LINK_WIDTH_CAPABILITY, IB_WIDTHS);
	bb_prm_set(r, BB_PRM_PTYS_IB_PROTO_CAPABILITY, IB_SPEEDS);
	bb_prm_set(r, BB_PRM_PTYS_IB_LINK_WIDTH_ADMIN, IB_WIDTHS);
	bb_prm_set(r, BB_PRM_PTYS_IB_PROTO_ADMIN, IB_SPEEDS);
	bb_prm_set(r, BB_PRM_PTYS_IB_LINK_WIDTH_OPER, IB_WIDTH_4X);
	bb_prm_set(r, BB_PRM_PTYS_IB_PROTO_OPER, IB_SPEED_EDR);
}

/*
 * Executes ACCESS_REG. The output begins as a copy of the input, in which the fields of a known
 * register are then set. A write changes nothing.
 */
int
fw_access_reg(struct fw_cmd *c)
{
	uint32_t id = bb_prm_get(c->in, BB_PRM_ACCESS_REG_REGISTER_ID), n, need;
	uint8_t *r = bb_prm_sub(c->out, BB_PRM_ACCESS_REG_OUT_REGISTER_DATA);

	n = (c->inlen < c->outlen ? c->inlen : c->outlen) - 16;
	need = id == REG_PTYS || id == REG_NODE_DESC ? 64 : id == REG_HOST_ENDIANNESS ? 4 : 16;
	switch (id) {
	case REG_PMTU:
	case REG_PTYS:
	case REG_PAOS:
	case REG_PVLC:
	case REG_NODE_DESC:
	case REG_HOST_ENDIANNESS:
		break;
	default:
		/* mlx5e reads counters and the like of an Ethernet port: all are 0. */
		if (c->h->o.eth)
			return BB_PRM_STAT_OK;
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "register 0x%04x is unknown", id);
	}
	if (fw_need(c, 16 + need, 16 + need) != 0)
		return BB_PRM_STAT_BAD_INP_LEN;
	memcpy(r, bb_prm_csub(c->in, BB_PRM_ACCESS_REG_REGISTER_DATA), n < 256 ? n : 256);
	if (id == REG_PMTU)
		reg_pmtu(c->h, r);
	else if (id == REG_PTYS)
		reg_ptys(c->h, r);
	else if (id == REG_NODE_DESC)
		snprintf((char *)r, NODE_DESC_BYTES, "Bluebell software ConnectX");
	if (id == REG_PVLC) {
		bb_prm_set(r, BB_PRM_PVLC_VL_HW_CAP, VLS_4);
		bb_prm_set(r, BB_PRM_PVLC_VL_ADMIN, VLS_4);
		bb_prm_set(r, BB_PRM_PVLC_VL_OPERATIONAL, VLS_4);
	}
	if (id == REG_PAOS) {
		bb_prm_set(r, BB_PRM_PAOS_ADMIN_STATUS, ADMIN_UP);
		bb_prm_set(r, BB_PRM_PAOS_OPER_STATUS,
			   port_of(c->h).state == BB_PORT_ACTIVE ? OPER_UP : PAOS_DOWN);
	}
	return BB_PRM_STAT_OK;
}
