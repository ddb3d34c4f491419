/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Address vectors of UD queue pairs, byte for byte as libmlx5 builds them (mlx5_create_ah()). */
#include <string.h>

#include <rte_random.h>

#include "mlx5.h"

/*
 * Returns the device's code for a static rate, given as enum ibv_rate. If the device does not
 * support the rate, returns the code of the next supported one (libmlx5: ib_to_mlx5_rate_table[]).
 * Code 0 means the rate of the port.
 */
static uint8_t
rate_code(uint8_t rate)
{
	static const uint8_t codes[] = {0,  0,  7, 8, 9,  10, 11, 12, 13, 14, 15, 11,
					13, 15, 0, 9, 15, 0,  0,  9,  13, 0,  0};

	return rate < RTE_DIM(codes) ? codes[rate] : 0;
}

void
mlx5_av_fill(const struct bb_path *path, const struct mlx5_av_eth *eth, struct bb_wqe_av *av)
{
	uint32_t hops = path->hop_limit != 0 ? path->hop_limit : MLX5_DEFAULT_HOP_LIMIT;
	uint8_t rate = (uint8_t)(rate_code(path->static_rate) << 4);
	uint32_t grh = 0;

	memset(av, 0, sizeof(*av));
	if (eth != NULL) {
		av->rate_sl = rate | (uint8_t)((path->sl & 7) << 1);
		av->rlid = bb_be16(eth->udp_sport);
		memcpy(av->rmac, eth->dmac, sizeof(av->rmac));
	} else {
		av->rate_sl = rate | (path->sl & 0xf);
		av->fl_mlid = path->src_path_bits & 0x7f;
		av->rlid = bb_be16(path->dlid);
		grh = BB_WQE_AV_GRH;
		if (!path->is_global)
			return;
	}
	av->tclass = path->traffic_class;
	av->hop_limit = (uint8_t)hops;
	av->grh_gid_fl = bb_be32(grh | (uint32_t)path->sgid_index << 20 |
				 (path->flow_label & MLX5_FLOW_LABEL_MASK));
	memcpy(av->rgid, path->dgid, sizeof(av->rgid));
}

int
mlx5_ah_resolve(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	uint32_t label = path->flow_label & MLX5_FLOW_LABEL_MASK;
	struct mlx5_av_eth eth = {0};
	enum bb_gid_type type;
	int ret;

	if (d->link != BB_LINK_ETHERNET) {
		mlx5_av_fill(path, NULL, av);
		return 0;
	}
	ret = mlx5_path_mac(d, pd->priv, path, eth.dmac, &type);
	if (ret != 0)
		return ret;
	/*
	 * Without a flow label any UDP source port is valid. A random port per handle spreads
	 * traffic over the paths of the network.
	 */
	while (label == 0)
		label = (uint32_t)rte_rand() & MLX5_FLOW_LABEL_MASK;
	if (type == BB_GID_ROCE_V2)
		eth.udp_sport = mlx5_udp_sport(&d->caps, label);
	mlx5_av_fill(path, &eth, av);
	return 0;
}
