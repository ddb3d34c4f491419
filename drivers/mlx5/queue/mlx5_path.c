/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Address paths: the destination of a QP's packets. The fields set on RoCE and on InfiniBand are
 * those that the kernel sets (drivers/infiniband/hw/mlx5/qp.c, mlx5_set_path()).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "mlx5.h"

uint16_t
mlx5_udp_sport(const struct mlx5_caps *caps, uint32_t flow_label)
{
	uint32_t span = (uint32_t)caps->sport_max - caps->sport_min + 1;

	/* Map a 14-bit hash of the label to the range of ports that the device allows. */
	return (uint16_t)(caps->sport_min + ((flow_label & 0x3fff) ^ (flow_label >> 14)) % span);
}

/*
 * Returns the UDP source port of a QP, which spreads connections over the paths of a network. The
 * port is derived from the flow label, or from both QP numbers if the label is 0. The method is
 * that of InfiniBand Architecture 1.5, annex A17, as in the kernel.
 */
static uint16_t
udp_sport(const struct mlx5_caps *caps, uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn)
{
	uint32_t fl = flow_label & MLX5_FLOW_LABEL_MASK;
	uint64_t v;

	if (fl == 0) {
		v = (uint64_t)qpn * dest_qpn;
		v ^= v >> 20;
		v ^= v >> 40;
		fl = (uint32_t)v & MLX5_FLOW_LABEL_MASK;
	}
	return mlx5_udp_sport(caps, fl);
}

int
mlx5_path_mac(struct mlx5_dev *d, struct mlx5_pd *pd, const struct bb_path *path, uint8_t dmac[6],
	      enum bb_gid_type *type)
{
	char gid_text[INET6_ADDRSTRLEN];
	struct mlx5_av av;
	struct bb_gid gid;
	int ret;

	ret = d->cmd->gid_query(d->ctx, path->port, path->sgid_index, &gid);
	if (ret != 0) {
		BB_LOG(ERR,
		       "%s: no GID at index %u of port %u: bb_gid_query() reads the valid ones",
		       d->ctx->name, path->sgid_index, path->port);
		return ret == -ENOENT ? -EINVAL : ret;
	}
	ret = d->cmd->av_resolve(d->ctx, pd, path->port, path->sgid_index, path->dgid, &av);
	if (ret != 0) {
		inet_ntop(AF_INET6, path->dgid, gid_text, sizeof(gid_text));
		BB_LOG(ERR,
		       "%s: no MAC for the peer's GID %s: %s; check the neighbour table and the "
		       "route through port %u",
		       d->ctx->name, gid_text, strerror(-ret), path->port);
		return ret;
	}
	memcpy(dmac, av.dmac, sizeof(av.dmac));
	*type = gid.type;
	return 0;
}

int
mlx5_path_ready(struct bb_dev *dev, const struct bb_path *path)
{
	const struct mlx5_dev *d = mlx5_dev_of(dev);

	if (d->link != BB_LINK_ETHERNET || d->cmd->av_ready == NULL)
		return 0;
	return d->cmd->av_ready(d->ctx, path->port, path->sgid_index, path->dgid);
}

static int
set_roce(struct mlx5_dev *d, const struct bb_qp *qp, const struct bb_path *path, uint32_t dest_qpn,
	 void *ads)
{
	enum bb_gid_type type;
	uint8_t dmac[6];
	int ret;

	ret = mlx5_path_mac(d, qp->ctrl->pd->priv, path, dmac, &type);
	if (ret != 0)
		return ret;
	bb_prm_set(ads, BB_PRM_ADS_RMAC_47_32, (uint32_t)dmac[0] << 8 | dmac[1]);
	bb_prm_set(ads, BB_PRM_ADS_RMAC_31_0, bb_prm_dword(dmac, 2));
	bb_prm_set(ads, BB_PRM_ADS_ETH_PRIO, path->sl);
	if (type == BB_GID_ROCE_V2) {
		bb_prm_set(ads, BB_PRM_ADS_DSCP, path->traffic_class >> 2);
		bb_prm_set(ads, BB_PRM_ADS_UDP_SPORT,
			   udp_sport(&d->caps, path->flow_label, qp->qpn, dest_qpn));
	}
	return 0;
}

/* Values of enum ibv_rate that this file uses; 0 is the rate of the port. */
enum {
	RATE_56_GBPS = 12,
	RATE_25_GBPS = 15,
	RATE_100_GBPS = 16,
	RATE_200_GBPS = 17,
	RATE_50_GBPS = 20,
	RATE_400_GBPS = 21,
	RATES = 24,
};

/*
 * Returns the device's code of a static rate (kernel: ib_to_mlx5_rate_map()). Address handles use a
 * different table, that of libmlx5: see mlx5_ah.c.
 */
static uint32_t
rate_code(uint8_t rate)
{
	switch (rate) {
	case 0:
	case 1: /* 1 is not a rate; the default formula would give 6, the code of 400 Gb/s */
		return 0;
	case RATE_56_GBPS:
		return 1;
	case RATE_25_GBPS:
		return 2;
	case RATE_100_GBPS:
		return 3;
	case RATE_200_GBPS:
		return 4;
	case RATE_50_GBPS:
		return 5;
	case RATE_400_GBPS:
		return 6;
	default:
		return rate + 5;
	}
}

/*
 * Returns the code of the highest rate that the device supports and that does not exceed @rate, as
 * the kernel does (mlx5r_ib_rate()).
 */
static uint32_t
rate_set(const struct mlx5_caps *caps, uint8_t rate)
{
	/* The device's codes have four bits, so skip rates whose code is above 15. */
	while (rate != 0 &&
	       (rate_code(rate) > 15 || (1u << rate_code(rate) & caps->stat_rates) == 0))
		rate--;
	return rate_code(rate);
}

static uint8_t
rate_get(uint32_t code)
{
	uint8_t rate;

	for (rate = 0; rate < RATES; rate++)
		if (rate_code(rate) == code)
			return rate;
	return 0;
}

int
mlx5_path_set(struct mlx5_dev *d, const struct bb_qp *qp, const struct bb_path *path,
	      uint32_t dest_qpn, void *ads)
{
	bool roce = d->link == BB_LINK_ETHERNET, grh = roce || path->is_global;
	uint32_t hops = path->hop_limit != 0 ? path->hop_limit : MLX5_DEFAULT_HOP_LIMIT;
	int ret;

	if (roce) {
		ret = set_roce(d, qp, path, dest_qpn, ads);
		if (ret != 0)
			return ret;
	} else {
		bb_prm_set(ads, BB_PRM_ADS_RLID, path->dlid);
		bb_prm_set(ads, BB_PRM_ADS_GRH, path->is_global != 0);
		bb_prm_set(ads, BB_PRM_ADS_SL, path->sl);
		bb_prm_set(ads, BB_PRM_ADS_MLID, path->src_path_bits);
	}
	if (grh) {
		bb_prm_set(ads, BB_PRM_ADS_SRC_ADDR_INDEX, path->sgid_index);
		bb_prm_set(ads, BB_PRM_ADS_HOP_LIMIT, hops);
		bb_prm_set(ads, BB_PRM_ADS_TCLASS, path->traffic_class);
		bb_prm_set(ads, BB_PRM_ADS_FLOW_LABEL, path->flow_label & MLX5_FLOW_LABEL_MASK);
		memcpy(bb_prm_sub(ads, BB_PRM_ADS_RGID_RIP), path->dgid, sizeof(path->dgid));
	}
	bb_prm_set(ads, BB_PRM_ADS_STAT_RATE, rate_set(&d->caps, path->static_rate));
	bb_prm_set(ads, BB_PRM_ADS_VHCA_PORT_NUM, path->port);
	return 0;
}

void
mlx5_path_get(const struct mlx5_dev *d, const void *ads, struct bb_path *path)
{
	memset(path, 0, sizeof(*path));
	path->port = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_VHCA_PORT_NUM);
	path->sgid_index = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_SRC_ADDR_INDEX);
	path->hop_limit = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_HOP_LIMIT);
	path->traffic_class = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_TCLASS);
	path->flow_label = bb_prm_get(ads, BB_PRM_ADS_FLOW_LABEL);
	path->static_rate = rate_get(bb_prm_get(ads, BB_PRM_ADS_STAT_RATE));
	memcpy(path->dgid, bb_prm_csub(ads, BB_PRM_ADS_RGID_RIP), sizeof(path->dgid));
	if (d->link == BB_LINK_ETHERNET) {
		path->sl = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_ETH_PRIO);
	} else {
		path->sl = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_SL);
		path->dlid = (uint16_t)bb_prm_get(ads, BB_PRM_ADS_RLID);
		path->is_global = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_GRH);
		path->src_path_bits = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_MLID);
	}
}
