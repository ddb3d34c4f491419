/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Address path of a connected QP: checks of INIT2RTR, and the peer's device. */
#include <arpa/inet.h>
#include <string.h>

#include "soft_ctl.h"
#include "soft_shm.h"

#define SOFT_SYNDROME 0xbb0a0000u

static int
check_eth_path(struct soft_cmd *cmd, const uint8_t *ads)
{
	uint32_t index = bb_prm_get(ads, BB_PRM_ADS_SRC_ADDR_INDEX);
	uint32_t sport = bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT);
	const uint8_t *gid = bb_prm_csub(ads, BB_PRM_ADS_RGID_RIP);

	if (bb_prm_get(ads, BB_PRM_ADS_RLID) != 0 || bb_prm_get(ads, BB_PRM_ADS_GRH) != 0 ||
	    bb_prm_get(ads, BB_PRM_ADS_SL) != 0 || bb_prm_get(ads, BB_PRM_ADS_MLID) != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "rlid, mlid, grh or sl is set (all 0 on an Ethernet port)");
	if (index >= SOFT_MAX_GIDS || !cmd->dev->gid_valid[index])
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"src_addr_index %u names an empty GID: choose one that bb_gid_query() "
			"returns",
			index);
	if (bb_prm_get(ads, BB_PRM_ADS_HOP_LIMIT) == 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "hop_limit is 0, so no packet would arrive (1 to 255)");
	if (cmd->dev->gids[index].type == BB_GID_ROCE_V2 && sport < SOFT_MIN_UDP_SPORT)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid udp_sport 0x%x (0x%x to 0xffff)", sport,
				   SOFT_MIN_UDP_SPORT);
	if (cmd->dev->gids[index].type == BB_GID_ROCE_V1 && sport != 0)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"udp_sport 0x%x is set (0: the source GID is of type RoCE v1, which has "
			"no UDP)",
			sport);
	if (soft_gid_empty(gid) || gid[0] == 0xff)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "rgid_rip, the peer's GID, is zero or a multicast GID");
	return 0;
}

static int
check_ib_path(struct soft_cmd *cmd, const uint8_t *ads)
{
	uint32_t rlid = bb_prm_get(ads, BB_PRM_ADS_RLID);
	uint32_t index = bb_prm_get(ads, BB_PRM_ADS_SRC_ADDR_INDEX);

	if (rlid == 0 || rlid >= 0xc000)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid rlid 0x%x (unicast LIDs: 0x1 to 0xbfff)", rlid);
	if (bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT) != 0 ||
	    bb_prm_get(ads, BB_PRM_ADS_RMAC_47_32) != 0 ||
	    bb_prm_get(ads, BB_PRM_ADS_RMAC_31_0) != 0 ||
	    bb_prm_get(ads, BB_PRM_ADS_ETH_PRIO) != 0 || bb_prm_get(ads, BB_PRM_ADS_DSCP) != 0 ||
	    bb_prm_get(ads, BB_PRM_ADS_ECN) != 0)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"udp_sport, rmac, eth_prio, dscp or ecn is set (all 0 on an InfiniBand "
			"port)");
	if (bb_prm_get(ads, BB_PRM_ADS_GRH) == 0 && cmd->dev->opts.grh_required)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "grh is 0, but the port requires a GRH (option grh_required)");
	if (bb_prm_get(ads, BB_PRM_ADS_GRH) != 0 &&
	    (index >= SOFT_MAX_GIDS || !cmd->dev->gid_valid[index]))
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"src_addr_index %u names an empty GID: choose one that bb_gid_query() "
			"returns",
			index);
	if (bb_prm_get(ads, BB_PRM_ADS_GRH) != 0 &&
	    soft_gid_empty(bb_prm_csub(ads, BB_PRM_ADS_RGID_RIP)))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "grh is 1, but rgid_rip, the peer's GID, is zero");
	return 0;
}

int
soft_cmd_check_path(struct soft_cmd *cmd, const uint8_t *ads)
{
	return cmd->dev->opts.link_ib ? check_ib_path(cmd, ads) : check_eth_path(cmd, ads);
}

struct soft_dev *
soft_cmd_find_peer(struct soft_cmd *cmd, const struct soft_qp *qp, const uint8_t *ads,
		   uint32_t remote_qpn)
{
	const uint8_t *gid = bb_prm_csub(ads, BB_PRM_ADS_RGID_RIP);
	char text[INET6_ADDRSTRLEN];
	struct soft_dev *peer;
	uint8_t mac[6];

	if (cmd->dev->opts.link_ib) {
		peer = soft_dev_by_lid((uint16_t)bb_prm_get(ads, BB_PRM_ADS_RLID));
		if (peer == NULL)
			SOFT_LOG(WARNING,
				 "%s: QP 0x%x: the peer's LID 0x%x is unknown, so messages will be "
				 "lost: open the peer's device first",
				 cmd->dev->name, qp->qpn, bb_prm_get(ads, BB_PRM_ADS_RLID));
		return peer;
	}
	if (cmd->dev->shm != NULL) {
		/* The process of the peer may start later. */
		int ret = soft_shm_reach(cmd->dev, gid, soft_shm_slot_of(remote_qpn), true);

		if (ret != 0 && ret != -EAGAIN)
			SOFT_LOG(NOTICE, "%s: QP 0x%x: cannot reach the peer's GID %s yet: %s",
				 cmd->dev->name, qp->qpn,
				 inet_ntop(AF_INET6, gid, text, sizeof(text)),
				 soft_shm_reach_error(ret));
		return NULL;
	}
	/*
	 * With port= the peer may be on any host, so there is no device of this process to look up.
	 */
	if (cmd->dev->netif != NULL)
		return NULL;
	peer = soft_dev_by_gid(gid);
	if (peer == NULL) {
		inet_ntop(AF_INET6, gid, text, sizeof(text));
		SOFT_LOG(WARNING,
			 "%s: QP 0x%x: the peer's GID %s is unknown, so messages will be lost: "
			 "open the peer's device first",
			 cmd->dev->name, qp->qpn, text);
		return NULL;
	}
	if (peer->opts.wire != cmd->dev->opts.wire) {
		SOFT_LOG(WARNING,
			 "%s: QP 0x%x: %s and %s use different transports, so messages will be "
			 "lost: set the option wire=1 on both devices or on neither",
			 cmd->dev->name, qp->qpn, cmd->dev->name, peer->name);
		return NULL;
	}
	memcpy(mac, ads + BB_PRM_ADS_RMAC_47_32.byte + 2, 6);
	if (memcmp(mac, peer->mac, 6) != 0) {
		SOFT_LOG(WARNING,
			 "%s: QP 0x%x: rmac %02x:%02x:%02x:%02x:%02x:%02x is not the MAC of the "
			 "peer's device %s, so messages will be lost: set rmac to that MAC",
			 cmd->dev->name, qp->qpn, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5],
			 peer->name);
		return NULL;
	}
	return peer;
}
