/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ports, GIDs and the MAC of a GID. */
#include <errno.h>
#include <string.h>

#include "mlx5_cmd_dv.h"

#define AH_HOP_LIMIT 64 /* hop limit of an address handle that never sends */

int
dv_port_query(struct mlx5_ctx *ctx, uint32_t port, struct mlx5_port *attr)
{
	struct bb_port_attr a;
	int ret = bb_ibv_port(dv_ctx_of(ctx)->ibv, port, &a);

	if (ret == 0)
		*attr = (struct mlx5_port){
			.state = a.state,
			.link_layer = a.link_layer,
			.max_mtu = a.max_mtu,
			.active_mtu = a.active_mtu,
			.lid = a.lid,
			.gids = a.gids,
			.pkeys = a.pkeys,
			.grh_required = a.grh_required,
		};
	return ret;
}

int
dv_pkey_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, uint16_t *pkey)
{
	return bb_ibv_pkey(dv_ctx_of(ctx)->ibv, port, index, pkey);
}

int
dv_gid_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	return bb_ibv_gid(dv_ctx_of(ctx)->ibv, port, index, gid);
}

static struct ibv_ah_attr
ah_attr(uint32_t port, uint32_t sgid_index, const uint8_t dgid[16])
{
	struct ibv_ah_attr attr = {.is_global = 1,
				   .port_num = (uint8_t)port,
				   .grh.hop_limit = AH_HOP_LIMIT,
				   .grh.sgid_index = (uint8_t)sgid_index};

	memcpy(attr.grh.dgid.raw, dgid, sizeof(attr.grh.dgid.raw));
	return attr;
}

int
dv_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index, const uint8_t dgid[16])
{
	const struct ibv_ah_attr attr = ah_attr(port, sgid_index, dgid);

	return bb_ibv_ready(dv_ctx_of(ctx)->ibv, &attr);
}

int
dv_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port, uint32_t sgid_index,
	      const uint8_t dgid[16], struct mlx5_av *av)
{
	struct ibv_ah_attr attr = ah_attr(port, sgid_index, dgid);
	struct mlx5dv_ah num = {0};
	struct mlx5dv_obj obj = {0};
	struct ibv_ah *ah;
	int ret;

	(void)ctx;
	errno = 0;
	ah = ibv_create_ah(dv_pd_handle(pd), &attr);
	if (ah == NULL)
		return bb_ibv_errno();
	obj.ah.in = ah;
	obj.ah.out = &num;
	ret = -mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH);
	if (ret == 0)
		memcpy(av->dmac, num.av->rmac, sizeof(av->dmac));
	(void)ibv_destroy_ah(ah);
	return ret;
}
