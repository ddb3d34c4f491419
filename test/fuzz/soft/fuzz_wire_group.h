/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * fuzz_wire.c: a multicast group of which the UD queue pair is a member. Bit 5 of a packet's step
 * sends the packet to the group.
 */
#ifndef FUZZ_WIRE_GROUP_H
#define FUZZ_WIRE_GROUP_H

#include "../../model/soft/soft_rig.h"
#include "soft_mcg.h"

/* Returns the GID of the group, of the same IP version as the device's GID. */
static inline void
group_of(const struct rig_dev *d, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (soft_ip_is_v4(d->gid.raw))
		soft_ip_map_v4(gid, (const uint8_t[]){239, 1, 2, 3});
	else
		gid[0] = 0xff;
}

/* Attaches a queue pair. Returns NULL if the device refuses it. */
static inline struct mlx5_obj *
group_attach(const struct rig_dev *d, uint32_t qpn)
{
	uint8_t in[BB_PRM_SZ_MCG] = {0}, out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj = NULL;

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_ATTACH_TO_MCG);
	bb_prm_set(in, BB_PRM_ATTACH_TO_MCG_QPN, qpn);
	group_of(d, bb_prm_sub(in, BB_PRM_ATTACH_TO_MCG_GID));
	(void)soft_cmd_if.obj_create(d->ctx, in, sizeof(in), out, sizeof(out), &obj);
	return obj;
}

/* Makes a packet to the queue pair one to the group. */
static inline void
group_packet(const struct rig_dev *d, struct bb_roce_net *net, struct bb_roce_pkt *pkt,
	     uint8_t mac[6])
{
	group_of(d, net->dst);
	soft_mcast_mac(net->dst, mac);
	pkt->dqpn = BB_ROCE_MCAST_QPN;
}

#endif
