/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Frames and addresses of a port that the kernel of a guest uses, too. This kernel is called the
 * host of the port (soft_host.h). Frames for the host wait in a ring, because the port receives
 * them in a turn of an engine, in which the host must not be called. The port's lock protects the
 * ring.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "soft_ctl.h"
#include "soft_host.h"
#include "soft_netif.h"

/* Time after which a frame that finds no room in the port is dropped, so that no SQ stalls. */
#define LIFETIME_NS UINT64_C(100000000)
#define TAG         4u

static struct soft_netif *
hosted(struct mlx5_ctx *ctx)
{
	struct soft_netif *nif = soft_ctx(ctx)->dev->netif;

	return nif != NULL && nif->host != NULL ? nif : NULL;
}

int
soft_frames_open(struct mlx5_ctx *ctx)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	const struct soft_port_opts *o = &dev->opts.port;
	struct soft_netif *nif = dev->netif;
	struct soft_netif_host *host;

	if (nif == NULL)
		return -ENODEV;
	if (nif->host != NULL)
		return -EBUSY;
	if (o->n_ip != 0 || o->n_neigh != 0 || o->vlan != 0) {
		SOFT_LOG(ERR,
			 "%s: port=%s: the guest sets the port's addresses: remove ip=, neigh= and "
			 "vlan=",
			 dev->name, o->name);
		return -EINVAL;
	}
	host = calloc(1, sizeof(*host));
	if (host == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&dev->lock);
	memset(dev->gid_valid, 0, sizeof(dev->gid_valid));
	pthread_mutex_unlock(&dev->lock);
	soft_netif_lock(nif);
	soft_port_host(nif->port);
	nif->host = host;
	soft_netif_unlock(nif);
	return 0;
}

void
soft_frames_close(struct soft_netif *nif)
{
	struct soft_netif_host *h = nif->host;

	if (h == NULL)
		return;
	while (h->n != 0) {
		rte_pktmbuf_free(h->held[h->first]);
		h->first = (h->first + 1) % SOFT_NETIF_HELD;
		h->n--;
	}
	SOFT_LOG(INFO,
		 "%s: port=%s: passed %" PRIu64 " frames to the guest and sent %" PRIu64
		 " frames of the guest; dropped %" PRIu64
		 " frames to the guest (its ring was full, or the length was invalid) and %" PRIu64
		 " frames of the guest (the port was full or down, or the frame was too long)",
		 nif->dev->name, nif->dev->opts.port.name, h->rx, h->tx, h->rx_dropped,
		 h->tx_dropped);
	nif->host = NULL;
	free(h);
}

void
soft_frames_port(struct mlx5_ctx *ctx, struct soft_frames_port *port)
{
	struct soft_netif *nif = hosted(ctx);
	struct soft_port_info info;

	memset(port, 0, sizeof(*port));
	if (nif == NULL)
		return;
	soft_netif_lock(nif);
	soft_port_info(nif->port, &info);
	soft_netif_unlock(nif);
	memcpy(port->mac, info.mac, sizeof(port->mac));
	port->frame = info.frame;
}

int
soft_frames_address_set(struct mlx5_ctx *ctx, uint32_t index, const struct bb_gid *gid,
			const uint8_t mac[6])
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	struct soft_netif *nif = hosted(ctx);
	uint8_t ip[SOFT_MAX_GIDS][16], macs[SOFT_MAX_GIDS][6];
	uint32_t i, n = 0;

	static_assert(SOFT_MAX_GIDS <= SOFT_PORT_ADDRS, "the port has no room for all GIDs");
	if (nif == NULL)
		return -EOPNOTSUPP;
	if (index >= SOFT_MAX_GIDS)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	/* A port sends RoCE v2 only, so entries of RoCE v1 stay empty. */
	dev->gid_valid[index] = gid != NULL && gid->type == BB_GID_ROCE_V2;
	if (dev->gid_valid[index]) {
		dev->gids[index] = *gid;
		memcpy(dev->mac, mac, sizeof(dev->mac)); /* for messages to the device itself */
		memcpy(nif->host->mac[index], mac, sizeof(nif->host->mac[index]));
	}
	for (i = 0; i < SOFT_MAX_GIDS; i++)
		if (dev->gid_valid[i]) {
			memcpy(ip[n], dev->gids[i].raw, sizeof(ip[n]));
			memcpy(macs[n++], nif->host->mac[i], sizeof(macs[0]));
		}
	pthread_mutex_unlock(&dev->lock);
	soft_netif_lock(nif);
	soft_port_set_addresses(nif->port, (const uint8_t(*)[16])ip, (const uint8_t(*)[6])macs, n);
	soft_netif_unlock(nif);
	return 0;
}

/* ---- Received frames */

void
soft_frames_hold(struct soft_netif *nif, struct rte_mbuf *m)
{
	struct soft_netif_host *h = nif->host;

	if (h->n == SOFT_NETIF_HELD || m->data_len < RTE_ETHER_HDR_LEN) {
		h->rx_dropped++;
		return;
	}
	rte_mbuf_refcnt_update(m, 1);
	h->held[(h->first + h->n++) % SOFT_NETIF_HELD] = m;
}

uint32_t
soft_frames_poll(struct mlx5_ctx *ctx, bool alone)
{
	struct soft_netif *nif = hosted(ctx);
	struct soft_port_stack_stats stack;
	struct soft_neigh_stats neigh;
	struct soft_port_stats port;
	uint64_t n;

	if (nif == NULL)
		return 0;
	/* An engine that retains the lock polls the port in each of its turns. */
	if ((alone || __atomic_load_n(&nif->lock_retainer, __ATOMIC_RELAXED) == NULL) &&
	    soft_netif_trylock(nif)) {
		soft_port_poll(nif->port, soft_dev_ns(nif->dev));
		soft_netif_unlock(nif);
	}
	soft_port_stats(nif->port, &port, &stack, &neigh);
	n = port.rx_frames - nif->host->polled;
	nif->host->polled = port.rx_frames;
	return (uint32_t)RTE_MIN(n, UINT32_MAX);
}

/* Copies a frame. Inserts the VLAN tag that the PMD has removed. Returns its length, 0 if it does
 * not fit. */
static uint32_t
copy_frame(const struct rte_mbuf *m, uint8_t *to, uint32_t size)
{
	const uint8_t *from = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t len = m->data_len, tag = 0;

	if ((m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0)
		tag = TAG;
	if (len > size || tag > size - len)
		return 0;
	memcpy(to, from, 12);
	if (tag != 0) {
		to[12] = RTE_ETHER_TYPE_VLAN >> 8;
		to[13] = RTE_ETHER_TYPE_VLAN & 0xff;
		to[14] = (uint8_t)(m->vlan_tci >> 8);
		to[15] = (uint8_t)m->vlan_tci;
	}
	memcpy(to + 12 + tag, from + 12, len - 12);
	return len + tag;
}

uint32_t
soft_frames_get(struct mlx5_ctx *ctx, uint8_t *to, uint32_t size)
{
	struct soft_netif *nif = hosted(ctx);
	struct soft_netif_host *h;
	struct rte_mbuf *m;
	uint32_t len = 0;

	if (nif == NULL || nif->host->n == 0)
		return 0;
	h = nif->host;
	soft_netif_lock(nif);
	while (len == 0 && h->n != 0) {
		m = h->held[h->first];
		h->first = (h->first + 1) % SOFT_NETIF_HELD;
		h->n--;
		len = copy_frame(m, to, size);
		if (len != 0)
			h->rx++;
		else
			h->rx_dropped++;
		rte_pktmbuf_free(m);
	}
	soft_netif_unlock(nif);
	return len;
}

/* ---- Frames to send */

bool
soft_frames_ready(struct mlx5_ctx *ctx)
{
	struct soft_netif *nif = hosted(ctx);
	struct soft_netif_host *h;
	struct soft_port_info info;
	bool full;

	if (nif == NULL)
		return true;
	h = nif->host;
	soft_netif_lock(nif);
	soft_port_info(nif->port, &info);
	full = info.up && soft_port_is_full(nif->port);
	soft_netif_unlock(nif);
	if (full)
		return soft_full_expired(&h->full, soft_dev_ns(nif->dev), LIFETIME_NS);
	h->full.since = 0;
	return true;
}

void
soft_frames_send(struct mlx5_ctx *ctx, const uint8_t *frame, uint32_t len)
{
	struct soft_netif *nif = hosted(ctx);

	if (nif == NULL)
		return;
	soft_netif_lock(nif);
	if (soft_port_send_frame(nif->port, frame, len) == SOFT_PORT_SENT)
		nif->host->tx++;
	else
		nif->host->tx_dropped++;
	soft_netif_unlock(nif);
}

void
soft_frames_flush(struct mlx5_ctx *ctx)
{
	struct soft_netif *nif = hosted(ctx);

	if (nif == NULL)
		return;
	soft_netif_lock(nif);
	soft_port_flush(nif->port);
	soft_netif_unlock(nif);
}
