/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The port as the command interface shows it: its state, its GIDs, and the resolution of addresses.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "soft_capture.h"
#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_link.h"
#include "soft_netif.h"
#include "soft_shm.h"

void
soft_dev_fill_gids(struct soft_dev *dev)
{
	/* A device that sends packets supports only RoCE v2, so it has no RoCE v1 GIDs. */
	const bool v2_only = dev->opts.wire;
	uint32_t i, max = dev->opts.link_ib ? 1 : v2_only ? 2 : 4;

	memset(dev->gids, 0, sizeof(dev->gids));
	memset(dev->gid_valid, 0, sizeof(dev->gid_valid));
	if (dev->opts.port.shm[0] != '\0') {
		for (i = 0; soft_shm_gid(&dev->opts.port, i, dev->gids[i].raw); i++) {
			dev->gids[i].type = BB_GID_ROCE_V2;
			dev->gid_valid[i] = true;
		}
		return;
	}
	for (i = 0; dev->netif != NULL && i < SOFT_MAX_GIDS; i++) {
		dev->gid_valid[i] = soft_port_gid(dev->netif->port, i, dev->gids[i].raw);
		dev->gids[i].type = BB_GID_ROCE_V2;
	}
	for (i = 0; dev->netif == NULL && i < max; i++) {
		if (i < max / 2 || max == 1)
			soft_dev_link_local_gid(dev->index, dev->gids[i].raw);
		else
			soft_dev_ipv4_gid(dev->index, dev->gids[i].raw);
		dev->gids[i].type = dev->opts.link_ib       ? BB_GID_IB
				    : v2_only || i % 2 != 0 ? BB_GID_ROCE_V2
							    : BB_GID_ROCE_V1;
		dev->gid_valid[i] = true;
	}
}

int
soft_plan_port(const char *name, const char *args, struct soft_plan *plan)
{
	struct soft_opts opts;
	uint32_t i;
	int ret;

	RTE_BUILD_BUG_ON(SOFT_PLAN_IPS < SOFT_PORT_IPS);
	RTE_BUILD_BUG_ON(sizeof(plan->port) < SOFT_PORT_NAME);
	soft_opts_default(&opts);
	ret = soft_opts_parse(name, args, &opts);
	if (ret != 0)
		return ret;
	*plan = (struct soft_plan){.n_ip = opts.port.n_ip};
	memcpy(plan->port, opts.port.name, SOFT_PORT_NAME);
	for (i = 0; i < opts.port.n_ip; i++)
		memcpy(plan->ip[i], opts.port.ip[i].addr, 16);
	soft_shm_mac(plan->ip[0], plan->mac);
	return 0;
}

static int
check_port(const struct mlx5_ctx *ctx, uint32_t port)
{
	if (port == SOFT_PORT)
		return 0;
	SOFT_LOG(ERR, "%s: invalid port %u (1: the device has one port)", ctx->name, port);
	return -EINVAL;
}

int
soft_port_query(struct mlx5_ctx *ctx, uint32_t port, struct mlx5_port *attr)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	int ret = check_port(ctx, port);

	if (ret != 0)
		return ret;
	/*
	 * Polls the port first, so that the reported state includes a link change since the last
	 * poll.
	 */
	if (dev->netif != NULL)
		soft_netif_poll_all();
	pthread_mutex_lock(&dev->lock);
	*attr = (struct mlx5_port){
		.state = __atomic_load_n(&dev->port_down, __ATOMIC_ACQUIRE) ? BB_PORT_DOWN
									    : BB_PORT_ACTIVE,
		.link_layer = dev->opts.link_ib ? BB_LINK_INFINIBAND : BB_LINK_ETHERNET,
		.max_mtu = 4096,
		.active_mtu = 128u << dev->active_mtu,
		.lid = dev->opts.link_ib ? dev->lid : 0,
		.gids = SOFT_MAX_GIDS,
		.pkeys = 1,
		.grh_required = dev->opts.grh_required,
	};
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

/*
 * A RoCE port has only the default partition (kernel: mlx5_query_hca_port(), pkey_tbl_len). So
 * index 0 is the only P_Key.
 */
int
soft_pkey_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, uint16_t *pkey)
{
	int ret = check_port(ctx, port);

	if (ret != 0)
		return ret;
	if (index != 0) {
		SOFT_LOG(ERR, "%s: invalid P_Key index %u (0: the table has one entry)", ctx->name,
			 index);
		return -EINVAL;
	}
	*pkey = SOFT_PKEY;
	return 0;
}

int
soft_gid_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	int ret = check_port(ctx, port);

	if (ret != 0)
		return ret;
	if (index >= SOFT_MAX_GIDS) {
		SOFT_LOG(ERR, "%s: invalid GID index %u (0 to %d)", ctx->name, index,
			 SOFT_MAX_GIDS - 1);
		return -EINVAL;
	}
	if (!dev->gid_valid[index])
		return -ENOENT;
	*gid = dev->gids[index];
	return 0;
}

/*
 * Returns -EAGAIN while soft_av_resolve() would have to wait, because a neighbour on the network
 * has not answered or a peer's socket is full. Does not check the arguments; soft_av_resolve()
 * does.
 */
int
soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index, const uint8_t dgid[16])
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	int ret;

	(void)port;
	(void)sgid_index;
	if (dev->opts.link_ib || bb_roce_is_mcast(dgid) || soft_dev_has_gid(dev, dgid))
		return 0;
	if (dev->netif != NULL)
		return soft_netif_ready(dev, dgid);
	if (dev->shm == NULL)
		return 0;
	pthread_mutex_lock(&dev->lock);
	ret = soft_shm_reach(dev, dgid, SOFT_SHM_ANY, false);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

void
soft_flush(struct mlx5_ctx *ctx)
{
	soft_capture_flush(soft_ctx(ctx)->dev->capture);
}

int
soft_peer_opening(struct mlx5_ctx *ctx, const uint8_t gid[16], uint32_t qpn, uint64_t *opening)
{
	const uint32_t slot = soft_shm_slot_of(qpn);
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	int ret;

	*opening = 0;
	if (dev->shm == NULL)
		return 0;
	/*
	 * If the device has the address, it may still share it with other processes of its host
	 * (option host). Then the slot of the QPN decides.
	 */
	if (soft_dev_has_gid(dev, gid) &&
	    (dev->shm->slot == SOFT_SHM_ALL || slot == SOFT_SHM_ANY || slot == dev->shm->slot))
		return 0;
	pthread_mutex_lock(&dev->lock);
	ret = soft_shm_opening(dev, gid, slot, opening);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

/*
 * Resolves the MAC address of a GID when an AH is created, as the kernel does
 * (rdma_resolve_ip_route, or rdma_get_ll_mac() for a link-local GID). Fails if no host has the
 * address.
 */
int
soft_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port, uint32_t sgid_index,
		const uint8_t dgid[16], struct mlx5_av *av)
{
	static const uint8_t link_local[8] = {0xfe, 0x80};
	struct soft_dev *dev = soft_ctx(ctx)->dev, *dest;
	char text[INET6_ADDRSTRLEN];
	int ret = check_port(ctx, port);

	if (ret != 0)
		return ret;
	if (((struct soft_pd *)pd)->ctx != soft_ctx(ctx)) {
		SOFT_LOG(ERR, "%s: cannot resolve a path: the PD belongs to another device context",
			 ctx->name);
		return -EINVAL;
	}
	if (dev->opts.link_ib) {
		SOFT_LOG(ERR, "%s: cannot resolve a path to a MAC: the port is an InfiniBand port",
			 ctx->name);
		return -EINVAL;
	}
	if (soft_gid_empty(dgid)) {
		SOFT_LOG(ERR, "%s: cannot resolve a path: dgid is zero: set it to the peer's GID",
			 ctx->name);
		return -EINVAL;
	}
	if (sgid_index >= SOFT_MAX_GIDS || !dev->gid_valid[sgid_index]) {
		SOFT_LOG(ERR, "%s: cannot resolve a path: source GID index %u names an empty GID",
			 ctx->name, sgid_index);
		return -EINVAL;
	}
	/* The MAC of a group is computed from its GID (Linux: ib_resolve_eth_dmac()). */
	if (bb_roce_is_mcast(dgid)) {
		soft_mcast_mac(dgid, av->dmac);
		return 0;
	}
	if (dev->netif != NULL) {
		if (!soft_dev_has_gid(dev, dgid))
			return soft_netif_resolve(dev, dgid, av->dmac);
		memcpy(av->dmac, dev->mac, 6);
		return 0;
	}
	if (dev->shm == NULL && memcmp(dgid, link_local, sizeof(link_local)) == 0) {
		const uint8_t mac[6] = {dgid[8] ^ 2, dgid[9],  dgid[10],
					dgid[13],    dgid[14], dgid[15]};

		memcpy(av->dmac, mac, 6);
		return 0;
	}
	if (dev->shm != NULL)
		return soft_shm_resolve(dev, dgid, av->dmac);
	dest = soft_dev_by_gid(dgid);
	if (dest == NULL) {
		inet_ntop(AF_INET6, dgid, text, sizeof(text));
		SOFT_LOG(ERR,
			 "%s: no answer from GID %s: the devices of this process have the GIDs "
			 "::ffff:192.0.2.1 to ::ffff:192.0.2.%d",
			 ctx->name, text, SOFT_MAX_DEVS);
		return -EHOSTUNREACH;
	}
	memcpy(av->dmac, dest->mac, 6);
	return 0;
}
