/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ports, GIDs and the MAC behind a GID. */
#include <errno.h>
#include <string.h>

#include "mlx5_cmd_dv.h"

#define AH_HOP_LIMIT 64 /* of an AH that never sends */

static uint32_t
mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

int
dv_port_query(struct mlx5_ctx *ctx, uint32_t port, struct mlx5_port *attr)
{
	struct ibv_port_attr a;
	int err;

	if (port == 0 || port > UINT8_MAX)
		return -EINVAL;
	err = ibv_query_port(dv_ctx_of(ctx)->ibv, (uint8_t)port, &a);
	if (err != 0)
		return -err;
	attr->state = a.state == IBV_PORT_ACTIVE ? BB_PORT_ACTIVE : BB_PORT_DOWN;
	attr->link_layer =
		a.link_layer == IBV_LINK_LAYER_ETHERNET ? BB_LINK_ETHERNET : BB_LINK_INFINIBAND;
	attr->max_mtu = mtu_bytes(a.max_mtu);
	attr->active_mtu = mtu_bytes(a.active_mtu);
	attr->lid = a.lid;
	attr->gids = a.gid_tbl_len > 0 ? (uint32_t)a.gid_tbl_len : 0;
	return 0;
}

int
dv_gid_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	struct ibv_gid_entry e;
	int err;

	err = ibv_query_gid_ex(dv_ctx_of(ctx)->ibv, port, index, &e, 0);
	if (err != 0)
		return err == ENODATA ? -ENOENT : -err;
	memcpy(gid->raw, e.gid.raw, sizeof(gid->raw));
	switch (e.gid_type) {
	case IBV_GID_TYPE_IB:
		gid->type = BB_GID_IB;
		return 0;
	case IBV_GID_TYPE_ROCE_V1:
		gid->type = BB_GID_ROCE_V1;
		return 0;
	case IBV_GID_TYPE_ROCE_V2:
		gid->type = BB_GID_ROCE_V2;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

int
dv_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port, uint32_t sgid_index,
	      const uint8_t dgid[16], struct mlx5_av *av)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = (uint8_t)port, .grh.hop_limit = AH_HOP_LIMIT};
	struct mlx5dv_ah num = {0};
	struct mlx5dv_obj obj = {0};
	struct ibv_ah *ah;
	int ret;

	(void)ctx;
	memcpy(attr.grh.dgid.raw, dgid, sizeof(attr.grh.dgid.raw));
	attr.grh.sgid_index = (uint8_t)sgid_index;
	errno = 0;
	ah = ibv_create_ah(dv_pd_handle(pd), &attr);
	if (ah == NULL)
		return dv_errno();
	obj.ah.in = ah;
	obj.ah.out = &num;
	ret = -mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH);
	if (ret == 0)
		memcpy(av->dmac, num.av->rmac, sizeof(av->dmac));
	(void)ibv_destroy_ah(ah);
	return ret;
}
