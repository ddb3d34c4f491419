/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ports, GIDs, and paths through them. */
#include <errno.h>
#include <string.h>

#include "verbs_drv.h"

#define DEFAULT_HOP_LIMIT 64u

static uint32_t
mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

enum ibv_mtu
verbs_mtu(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && mtu_bytes(mtu) < bytes)
		mtu++;
	return mtu;
}

int
verbs_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr)
{
	struct ibv_port_attr a;
	int err;

	if (port == 0 || port > UINT8_MAX)
		return -EINVAL;
	err = ibv_query_port(verbs_dev_of(dev)->ctx, (uint8_t)port, &a);
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot query port %u: %s", dev->name, port, strerror(err));
		return -err;
	}
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
verbs_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	struct ibv_gid_entry e;
	int err = ibv_query_gid_ex(verbs_dev_of(dev)->ctx, port, index, &e, 0);

	/* Whoever walks the table meets empty entries. */
	if (err == ENODATA)
		return -ENOENT;
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot read GID %u of port %u: %s", dev->name, index, port,
		       strerror(err));
		return -err;
	}
	memcpy(gid->raw, e.gid.raw, sizeof(gid->raw));
	gid->type = e.gid_type == IBV_GID_TYPE_ROCE_V2   ? BB_GID_ROCE_V2
		    : e.gid_type == IBV_GID_TYPE_ROCE_V1 ? BB_GID_ROCE_V1
							 : BB_GID_IB;
	return 0;
}

void
verbs_path(const struct bb_dev *dev, const struct bb_path *path, struct ibv_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->is_global = dev->ethernet || path->is_global;
	attr->sl = path->sl;
	attr->port_num = path->port;
	attr->static_rate = path->static_rate;
	if (!dev->ethernet) {
		attr->dlid = path->dlid;
		attr->src_path_bits = path->src_path_bits;
	}
	if (!attr->is_global)
		return;
	memcpy(attr->grh.dgid.raw, path->dgid, sizeof(attr->grh.dgid.raw));
	attr->grh.flow_label = path->flow_label;
	attr->grh.sgid_index = path->sgid_index;
	attr->grh.hop_limit = path->hop_limit != 0 ? path->hop_limit : DEFAULT_HOP_LIMIT;
	attr->grh.traffic_class = path->traffic_class;
}
