/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ports, GIDs, P_Keys, and the conversion of paths to address vectors. */
#include <errno.h>
#include <string.h>

#include "verbs_drv.h"

#define DEFAULT_HOP_LIMIT 64u

enum ibv_mtu
verbs_mtu(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && bb_ibv_mtu(mtu) < bytes)
		mtu++;
	return mtu;
}

int
verbs_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr)
{
	int ret = bb_ibv_port(verbs_dev_of(dev)->ctx, port, attr);

	if (ret != 0)
		BB_LOG(ERR, "%s: cannot query port %u: %s", dev->name, port, strerror(-ret));
	return ret;
}

int
verbs_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	int ret = bb_ibv_gid(verbs_dev_of(dev)->ctx, port, index, gid);

	if (ret != 0 && ret != -ENOENT)
		BB_LOG(ERR, "%s: cannot read GID %u of port %u: %s", dev->name, index, port,
		       strerror(-ret));
	return ret;
}

int
verbs_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey)
{
	int ret = bb_ibv_pkey(verbs_dev_of(dev)->ctx, port, index, pkey);

	if (ret != 0)
		BB_LOG(ERR, "%s: cannot read P_Key %u of port %u: %s", dev->name, index, port,
		       strerror(-ret));
	return ret;
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
