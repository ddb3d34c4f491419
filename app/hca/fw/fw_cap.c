/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Capabilities of the PCI function. drivers/front reports those of objects, memory and the port.
 * This file adds the others, and sets some fields that drivers/front leaves 0. Linux's driver needs
 * ib_virt: without ib_virt the driver queries GIDs by MADs.
 */
#include <string.h>

#include "fw.h"
#include "hca_log.h"

/* A field of cmd_hca_cap. */
struct cap {
	struct bb_prm_field f;
	uint32_t value;
};

#define UAR_SZ          5u /* log2 of the size of the BAR in MiB */
#define CLOCK_KHZ       1000000u
#define LOG_BF_REG_SIZE 9u /* log2 of the bytes of both halves of a BlueFlame register */

/* Capability fields that this file always sets, whatever drivers/front reports. */
static const struct cap function_caps[] = {
	{BB_PRM_HCA_VHCA_ID, 1},     {BB_PRM_HCA_LOG_MAX_EQ_SZ, HCA_LOG_EQ},
	{BB_PRM_HCA_LOG_MAX_EQ, 5},  {BB_PRM_HCA_MAX_NUM_EQS, HCA_EQS - 1},
	{BB_PRM_HCA_NUM_PORTS, 1},   {BB_PRM_HCA_UAR_4K, 1},
	{BB_PRM_HCA_UAR_SZ, UAR_SZ}, {BB_PRM_HCA_NUM_OF_UARS_PER_PAGE, 1},
	{BB_PRM_HCA_BF, 1},          {BB_PRM_HCA_LOG_BF_REG_SIZE, LOG_BF_REG_SIZE},
};

/*
 * Capability fields that this file sets if drivers/front reports 0. No object needs these fields.
 */
static const struct cap default_caps[] = {
	{BB_PRM_HCA_LOCAL_CA_ACK_DELAY, 16},
	{BB_PRM_HCA_MAX_WQE_SZ_SQ_DC, 512},
	{BB_PRM_HCA_DEVICE_FREQUENCY_KHZ, CLOCK_KHZ},
};

/*
 * Capabilities of an Ethernet port. RoCE takes its GIDs from a netdev, and Linux creates the netdev
 * only if the device has flow tables and send WQEs of 1024 bytes (Linux 6.1, en/params.c). The
 * limits are those of drivers/front/eth/eth.h. There are no striding RQs, so that mlx5e uses the
 * cyclic ones.
 */
static const struct cap eth_caps[] = {
	{BB_PRM_HCA_PORT_TYPE, 1},
	{BB_PRM_HCA_NIC_FLOW_TABLE, 1},
	{BB_PRM_HCA_ETH_NET_OFFLOADS, 1},
	{BB_PRM_HCA_ROCE, 1},
	{BB_PRM_HCA_CQ_MODERATION, 1},
	{BB_PRM_HCA_MAX_WQE_SZ_SQ, 1024},
	{BB_PRM_HCA_LOG_MAX_RQ, FRONT_LOG_MAX_ETH_QUEUES},
	{BB_PRM_HCA_LOG_MAX_SQ, FRONT_LOG_MAX_ETH_QUEUES},
	{BB_PRM_HCA_LOG_MAX_TIR, FRONT_LOG_MAX_ETH_QUEUES},
	{BB_PRM_HCA_LOG_MAX_TIS, FRONT_LOG_MAX_ETH_QUEUES},
	{BB_PRM_HCA_LOG_MAX_RQT, FRONT_LOG_MAX_ETH_QUEUES},
	{BB_PRM_HCA_LOG_MAX_RQT_SIZE, 8},
	{BB_PRM_HCA_LOG_MAX_TIS_PER_SQ, 3},
	{BB_PRM_HCA_LOG_MAX_STRIDE_SZ_RQ, 11},
	{BB_PRM_HCA_LOG_MAX_STRIDE_SZ_SQ, 7},
	{BB_PRM_HCA_LOG_MAX_WQ_SZ, 15},
	{BB_PRM_HCA_LOG_MAX_VLAN_LIST, 4},
	{BB_PRM_HCA_LOG_MAX_CURRENT_MC_LIST, 7},
	{BB_PRM_HCA_LOG_MAX_CURRENT_UC_LIST, 7},
};

static const struct cap net_caps[] = {
	{BB_PRM_NET_CAP_CSUM_CAP, 1},
	{BB_PRM_NET_CAP_VLAN_CAP, 1},
	{BB_PRM_NET_CAP_WQE_VLAN_INSERT, 1},
	{BB_PRM_NET_CAP_SELF_LB_EN_MODIFIABLE, 1},
	/* 256 KiB [A]. mlx5e sends up to 512 KiB without a look at this value. */
	{BB_PRM_NET_CAP_MAX_LSO_CAP, 18},
	/* A WQE needs no inline headers. */
	{BB_PRM_NET_CAP_WQE_INLINE_MODE, 2},
	{BB_PRM_NET_CAP_RSS_IND_TBL_CAP, 8},
	{BB_PRM_NET_CAP_CQE_CHECKSUM_FULL, 1},
};

static const struct cap flow_caps[] = {
	{BB_PRM_FT_PROP_FT_SUPPORT, 1},
	{BB_PRM_FT_PROP_FLOW_MODIFY_EN, 1},
	{BB_PRM_FT_PROP_MODIFY_ROOT, 1},
	{BB_PRM_FT_PROP_IDENTIFIED_MISS_TABLE_MODE, 1},
	{BB_PRM_FT_PROP_FLOW_TABLE_MODIFY, 1},
	{BB_PRM_FT_PROP_IGNORE_FLOW_LEVEL, 1},
	{BB_PRM_FT_PROP_LOG_MAX_FT_SIZE, 20},
	{BB_PRM_FT_PROP_MAX_FT_LEVEL, 127},
	{BB_PRM_FT_PROP_LOG_MAX_FT_NUM, FRONT_LOG_MAX_TABLES},
	{BB_PRM_FT_PROP_LOG_MAX_DESTINATION, 8},
};

static const struct cap roce_caps[] = {
	{BB_PRM_ROCE_CAP_L3_TYPE, 6}, /* IPv4 and IPv6; without it mlx5_ib gives the port no GIDs */
	{BB_PRM_ROCE_CAP_VERSION, 5}, /* RoCE v1 and v2 */
	{BB_PRM_ROCE_CAP_R_ROCE_DEST_UDP_PORT, 4791},
	{BB_PRM_ROCE_CAP_R_ROCE_MAX_SRC_UDP_PORT, 0xffff},
	{BB_PRM_ROCE_CAP_R_ROCE_MIN_SRC_UDP_PORT, 0xc000},
	{BB_PRM_ROCE_CAP_ADDRESS_TABLE_SIZE, FRONT_ADDRESSES},
};

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

static void
fill(uint8_t *caps, const struct cap *list, size_t n, bool always)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (always || bb_prm_get(caps, list[i].f) == 0)
			bb_prm_set(caps, list[i].f, list[i].value);
}

void
fw_cap_reset(struct hca *h)
{
	unsigned int current;

	for (current = 0; current < 2; current++) {
		uint8_t *caps = h->fw.caps[current];

		(void)front_caps(h->front, BB_PRM_CAP_GENERAL, current != 0, caps);
		fill(caps, function_caps, N_OF(function_caps), true);
		fill(caps, default_caps, N_OF(default_caps), false);
		bb_prm_set(caps, BB_PRM_HCA_PORT_TYPE, 0);
		bb_prm_set(caps, BB_PRM_HCA_IB_VIRT, !h->o.eth);
		bb_prm_set(caps, BB_PRM_HCA_ROCE, 0);
		if (h->o.eth)
			fill(caps, eth_caps, N_OF(eth_caps), true);
	}
}

/*
 * Fills in the capabilities of a type. Returns false if the type is unknown. An InfiniBand port has
 * no offloads and no flow tables, but users may query them: rdma-core's own tests do.
 */
static bool
type_caps(struct hca *h, unsigned int type, bool current, uint8_t *out)
{
	bool offloads = type == BB_PRM_CAP_ETHERNET_OFFLOADS, known;

	/* drivers/front does not report the offloads, because only the netdev has them. */
	known = offloads || front_caps(h->front, (uint16_t)type, current, out) == 0;
	if (type == BB_PRM_CAP_GENERAL)
		memcpy(out, h->fw.caps[current], HCA_CAP_BYTES);
	else if (h->o.eth && offloads)
		fill(out, net_caps, N_OF(net_caps), true);
	else if (h->o.eth && type == BB_PRM_CAP_FLOW_TABLE)
		fill(bb_prm_sub(out, BB_PRM_FLOW_CAP_FLOW_TABLE_PROPERTIES_NIC_RECEIVE), flow_caps,
		     N_OF(flow_caps), true);
	else if (h->o.eth && type == BB_PRM_CAP_ROCE)
		fill(out, roce_caps, N_OF(roce_caps), true);
	else
		return known || type == BB_PRM_CAP_FLOW_TABLE;
	return true;
}

int
fw_query_hca_cap(struct fw_cmd *c)
{
	unsigned int type = c->op_mod >> 1;
	uint8_t caps[HCA_CAP_BYTES] = {0};

	if (fw_need(c, 16, BB_PRM_HCA_CAP_OUT_CAPS + HCA_CAP_BYTES) != 0)
		return BB_PRM_STAT_BAD_OUTP_LEN;
	if (bb_prm_get(c->in, BB_PRM_QUERY_HCA_CAP_OTHER_FUNCTION))
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "capabilities of another function");
	if (!type_caps(c->h, type, c->op_mod & 1, caps))
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "capability type 0x%x is unknown", type);
	memcpy(c->out + BB_PRM_HCA_CAP_OUT_CAPS, caps, HCA_CAP_BYTES);
	return BB_PRM_STAT_OK;
}

/*
 * Sets the current general capabilities. Ignores other types of capabilities, which no driver
 * changes.
 */
int
fw_set_hca_cap(struct fw_cmd *c)
{
	unsigned int type = c->op_mod >> 1;
	const uint8_t *caps = bb_prm_csub(c->in, BB_PRM_SET_HCA_CAP_CAPABILITY);
	struct hca_fw *fw = &c->h->fw;
	uint32_t qp, max;

	if (fw_need(c, BB_PRM_HCA_CAP_OUT_CAPS + HCA_CAP_BYTES, 16) != 0)
		return BB_PRM_STAT_BAD_INP_LEN;
	if (fw->initialized)
		return fw_refuse(c, BB_PRM_STAT_BAD_SYS_STATE,
				 "SET_HCA_CAP must come before INIT_HCA");
	if (bb_prm_get(c->in, BB_PRM_SET_HCA_CAP_OTHER_FUNCTION))
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "capabilities of another function");
	if (type != BB_PRM_CAP_GENERAL)
		return BB_PRM_STAT_OK;
	qp = bb_prm_get(caps, BB_PRM_HCA_LOG_MAX_QP);
	max = bb_prm_get(fw->caps[0], BB_PRM_HCA_LOG_MAX_QP);
	if (qp > max)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "log_max_qp %u (at most %u)", qp, max);
	/* A guest with larger pages would get several registers by one ALLOC_UAR (Linux uar.c). */
	if (bb_prm_get(caps, BB_PRM_HCA_LOG_UAR_PAGE_SZ) != 0)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM,
				 "log_uar_page_sz %u: bb_hca supports only guests with pages of "
				 "4 KiB",
				 bb_prm_get(caps, BB_PRM_HCA_LOG_UAR_PAGE_SZ));
	memcpy(fw->caps[1], caps, HCA_CAP_BYTES);
	return BB_PRM_STAT_OK;
}
