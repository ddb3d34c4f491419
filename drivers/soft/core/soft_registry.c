/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Devices of the process and their addresses on its shared network. Device n has the MAC
 * 02:bb:00:00:00:n, the GIDs formed from it and from 192.0.2.(n+1), and the LID n+1.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft_ctl.h"
#include "soft_host.h"

/* Protects the list of devices. No other lock is taken while this lock is held. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct soft_dev *registry[SOFT_MAX_DEVS];

static void
ctl_destroy(struct soft_ctl *ctl)
{
	if (ctl == NULL)
		return;
	free(ctl->mkey_draw.order);
	free(ctl->qp_draw.order);
	free(ctl->cq_ids.used);
	free(ctl->pd_ids.used);
	free(ctl->umem_ids.used);
	free(ctl->uar_ids.used);
	free(ctl->counter_ids.used);
	free(ctl->rmp_ids.used);
	free(ctl->rmps);
	free(ctl->mkey_variant);
	free(ctl->umems);
	free(ctl->pds);
	pthread_mutex_destroy(&ctl->event_lock);
	free(ctl);
}

/*
 * Numbers of each type of object start at another value, so that a number used for a wrong type
 * names no object.
 */
static struct soft_ctl *
ctl_create(void)
{
	struct soft_ctl *ctl = calloc(1, sizeof(*ctl));

	if (ctl == NULL)
		return NULL;
	pthread_mutex_init(&ctl->event_lock, NULL);
	ctl->mkey_variant = calloc(1u << SOFT_LOG_MAX_MKEY, 1);
	ctl->umems = calloc(1u << SOFT_LOG_MAX_UMEM, sizeof(*ctl->umems));
	ctl->rmps = calloc(1u << SOFT_LOG_MAX_RMP, sizeof(*ctl->rmps));
	ctl->pds = calloc(1u << SOFT_LOG_MAX_PD, sizeof(*ctl->pds));
	if (ctl->mkey_variant != NULL && ctl->umems != NULL && ctl->pds != NULL &&
	    ctl->rmps != NULL &&
	    /* Index 1 is never used, because key 0x100 ends a scatter list. */
	    soft_draw_init(&ctl->mkey_draw, 0x10, SOFT_FEW_MKEYS, 1u << SOFT_LOG_MAX_MKEY) == 0 &&
	    soft_draw_init(&ctl->qp_draw, SOFT_FIRST_QPN, 1u << SOFT_LOG_MAX_QP,
			   1u << SOFT_LOG_MAX_QP) == 0 &&
	    soft_ids_init(&ctl->cq_ids, 0x400, 1u << SOFT_LOG_MAX_CQ) == 0 &&
	    soft_ids_init(&ctl->pd_ids, 0x20, 1u << SOFT_LOG_MAX_PD) == 0 &&
	    soft_ids_init(&ctl->umem_ids, 0x1000, 1u << SOFT_LOG_MAX_UMEM) == 0 &&
	    soft_ids_init(&ctl->uar_ids, 0x40, 1u << SOFT_LOG_MAX_UAR) == 0 &&
	    soft_ids_init(&ctl->rmp_ids, 0x80, 1u << SOFT_LOG_MAX_RMP) == 0 &&
	    soft_ids_init(&ctl->counter_ids, 1, SOFT_MAX_COUNTER_SETS) == 0)
		return ctl;
	ctl_destroy(ctl);
	return NULL;
}

void
soft_dev_own_mac(struct soft_dev *dev)
{
	memcpy(dev->mac, (const uint8_t[]){0x02, 0xbb, 0, 0, 0, (uint8_t)dev->index}, 6);
}

static struct soft_dev *
dev_create(uint32_t index)
{
	struct soft_dev *dev = calloc(1, sizeof(*dev));

	if (dev == NULL)
		return NULL;
	snprintf(dev->name, sizeof(dev->name), "soft%u", index);
	dev->index = index;
	pthread_mutex_init(&dev->lock, NULL);
	rte_ticketlock_init(&dev->umr_lock);
	LIST_INIT(&dev->uars);
	soft_dev_own_mac(dev);
	dev->lid = (uint16_t)(index + 1);
	dev->mkeys = calloc(1u << SOFT_LOG_MAX_MKEY, sizeof(*dev->mkeys));
	dev->qps = calloc(1u << SOFT_LOG_MAX_QP, sizeof(*dev->qps));
	dev->cqs = calloc(1u << SOFT_LOG_MAX_CQ, sizeof(*dev->cqs));
	dev->ctl = ctl_create();
	dev->faults = soft_pf_queue_make();
	if (dev->mkeys == NULL || dev->qps == NULL || dev->cqs == NULL || dev->ctl == NULL ||
	    dev->faults == NULL) {
		free(dev->mkeys);
		free(dev->qps);
		free(dev->cqs);
		free(dev->faults);
		ctl_destroy(dev->ctl);
		pthread_mutex_destroy(&dev->lock);
		free(dev);
		return NULL;
	}
	return dev;
}

struct soft_dev *
soft_dev_get(uint32_t index)
{
	struct soft_dev *dev;

	if (index >= SOFT_MAX_DEVS)
		return NULL;
	pthread_mutex_lock(&registry_lock);
	if (registry[index] == NULL)
		__atomic_store_n(&registry[index], dev_create(index), __ATOMIC_RELEASE);
	dev = registry[index];
	pthread_mutex_unlock(&registry_lock);
	return dev;
}

void
soft_dev_forget(uint32_t index)
{
	pthread_mutex_init(&registry_lock, NULL);
	registry[index] = NULL;
}

struct soft_dev *
soft_dev_peek(uint32_t index)
{
	return index < SOFT_MAX_DEVS ? __atomic_load_n(&registry[index], __ATOMIC_ACQUIRE) : NULL;
}

/*
 * Returns NULL for an open device whose port has another type, because that port is on another
 * network.
 */
struct soft_dev *
soft_dev_reachable(uint32_t index, bool ib)
{
	struct soft_dev *dev = soft_dev_get(index);
	bool reachable;

	if (dev == NULL)
		return NULL;
	pthread_mutex_lock(&registry_lock);
	reachable = dev->contexts == 0 || dev->opts.link_ib == ib;
	pthread_mutex_unlock(&registry_lock);
	return reachable ? dev : NULL;
}

void
soft_dev_count_contexts(struct soft_dev *dev, int change)
{
	pthread_mutex_lock(&registry_lock);
	dev->contexts += (uint32_t)change;
	pthread_mutex_unlock(&registry_lock);
}

void
soft_dev_set_opts(struct soft_dev *dev, const struct soft_opts *opts)
{
	pthread_mutex_lock(&registry_lock);
	dev->opts = *opts;
	pthread_mutex_unlock(&registry_lock);
}

/* ---- Addresses of devices */

/* The link-local address is fe80::/64 with the MAC as EUI-64 (RFC 4291, appendix A). */
void
soft_dev_link_local_gid(uint32_t index, uint8_t gid[16])
{
	const uint8_t raw[16] = {0xfe, 0x80, 0, 0,    0,    0, 0, 0,
				 0,    0xbb, 0, 0xff, 0xfe, 0, 0, (uint8_t)index};

	memcpy(gid, raw, 16);
}

/* Writes ::ffff:192.0.2.(index + 1) to @gid. RFC 5737 has these addresses for documentation. */
void
soft_dev_ipv4_gid(uint32_t index, uint8_t gid[16])
{
	const uint8_t raw[16] = {0, 0, 0,    0,    0,   0, 0, 0,
				 0, 0, 0xff, 0xff, 192, 0, 2, (uint8_t)(index + 1)};

	memcpy(gid, raw, 16);
}

/*
 * GIDs that guest kernels (soft_host.h) have set, in addition to each device's own addresses, by
 * device and entry; zero: none. One thread runs all devices of guests, so there is no lock.
 */
static uint8_t host_gids[SOFT_MAX_DEVS][SOFT_MAX_GIDS][16];
static uint32_t n_host_gids; /* __atomic, because other threads look up GIDs, too */

/* Returns the index of the device whose guest kernel has set this GID, SOFT_MAX_DEVS if none. */
static uint32_t
host_gid_owner(const uint8_t gid[16])
{
	static const uint8_t none[16];
	uint32_t i, k;

	if (__atomic_load_n(&n_host_gids, __ATOMIC_ACQUIRE) == 0 || memcmp(gid, none, 16) == 0)
		return SOFT_MAX_DEVS;
	for (i = 0; i < SOFT_MAX_DEVS; i++)
		for (k = 0; k < SOFT_MAX_GIDS; k++)
			if (memcmp(host_gids[i][k], gid, 16) == 0)
				return i;
	return SOFT_MAX_DEVS;
}

int
soft_roce_address_set(struct mlx5_ctx *ctx, uint32_t index, const struct bb_gid *gid,
		      const uint8_t mac[6])
{
	static const uint8_t none[16];
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	uint8_t *entry;
	uint32_t owner;

	if (index >= SOFT_MAX_GIDS)
		return -EINVAL;
	if (dev->opts.link_ib || dev->netif != NULL || dev->opts.port.shm[0] != '\0')
		return -EOPNOTSUPP;
	/*
	 * A guest must not take the GID of another guest, because it would get that guest's
	 * packets.
	 */
	owner = gid != NULL ? host_gid_owner(gid->raw) : SOFT_MAX_DEVS;
	if (owner != SOFT_MAX_DEVS && owner != dev->index)
		return -EADDRINUSE;
	pthread_mutex_lock(&dev->lock);
	entry = host_gids[dev->index][index];
	if (memcmp(entry, none, sizeof(none)) != 0)
		__atomic_sub_fetch(&n_host_gids, 1, __ATOMIC_RELEASE);
	memset(entry, 0, 16);
	/* A device that sends packets supports only RoCE v2, so entries of RoCE v1 stay empty. */
	dev->gid_valid[index] = gid != NULL && (!dev->opts.wire || gid->type == BB_GID_ROCE_V2);
	if (dev->gid_valid[index]) {
		dev->gids[index] = *gid;
		memcpy(entry, gid->raw, 16);
		memcpy(dev->mac, mac, sizeof(dev->mac));
		__atomic_add_fetch(&n_host_gids, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

/* Returns the index of the device that has the address @gid, or SOFT_MAX_DEVS. */
static uint32_t
gid_owner(const uint8_t gid[16])
{
	uint8_t own[16];
	uint32_t i;

	for (i = 0; i < SOFT_MAX_DEVS; i++) {
		soft_dev_link_local_gid(i, own);
		if (memcmp(own, gid, 16) == 0)
			return i;
		soft_dev_ipv4_gid(i, own);
		if (memcmp(own, gid, 16) == 0)
			return i;
	}
	return host_gid_owner(gid);
}

struct soft_dev *
soft_dev_by_gid(const uint8_t gid[16])
{
	uint32_t i = gid_owner(gid);

	return i < SOFT_MAX_DEVS ? soft_dev_reachable(i, false) : NULL;
}

struct soft_dev *
soft_dev_peek_gid(const uint8_t gid[16])
{
	return soft_dev_peek(gid_owner(gid));
}

struct soft_dev *
soft_dev_peek_lid(uint16_t lid)
{
	return lid == 0 ? NULL : soft_dev_peek(lid - 1u);
}

struct soft_dev *
soft_dev_by_lid(uint16_t lid)
{
	return lid == 0 || lid > SOFT_MAX_DEVS ? NULL : soft_dev_reachable(lid - 1u, true);
}
