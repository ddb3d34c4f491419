/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Conversion of libibverbs' devices, ports and GIDs to Bluebell's types. */
#include <endian.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bb_ibv.h"

int
bb_ibv_errno(void)
{
	return errno > 0 ? -errno : -EIO;
}

/* Number of pages per call of mincore(). */
#define PAGES 4096u

static bool
has_hole(const void *addr, uint64_t len)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t at = (uintptr_t)addr & ~(page - 1), end = (uintptr_t)addr + len;
	/* result of mincore(), which is not used; only the errno counts */
	unsigned char in_core[PAGES];

	for (; at < end; at += PAGES * page) {
		const uint64_t left = end - at;

		/*
		 * mincore() sets ENOMEM for unmapped pages; any other errno says nothing about the
		 * range.
		 */
		if (mincore((void *)(uintptr_t)at, left < PAGES * page ? left : PAGES * page,
			    in_core) != 0 &&
		    errno == ENOMEM)
			return true;
	}
	return false;
}

int
bb_ibv_reg_errno(const void *addr, uint64_t len)
{
	int ret = bb_ibv_errno();

	return ret == -ENOMEM && has_hole(addr, len) ? -EFAULT : ret;
}

void
bb_ibv_bus(const struct ibv_device *dev, char *bus, size_t size)
{
	char link[IBV_SYSFS_PATH_MAX + sizeof("/device")], target[PATH_MAX];
	ssize_t n;

	bus[0] = '\0';
	snprintf(link, sizeof(link), "%s/device", dev->ibdev_path);
	n = readlink(link, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	snprintf(bus, size, "%s", basename(target));
}

uint32_t
bb_ibv_comp_vectors(const struct ibv_context *ctx)
{
	return ctx->num_comp_vectors > 0 ? (uint32_t)ctx->num_comp_vectors : 1;
}

uint32_t
bb_ibv_mtu(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

int
bb_ibv_port(struct ibv_context *ctx, uint32_t port, struct bb_port_attr *attr)
{
	struct ibv_port_attr a;
	int err;

	if (port == 0 || port > UINT8_MAX)
		return -EINVAL;
	err = ibv_query_port(ctx, (uint8_t)port, &a);
	if (err != 0)
		return -err;
	attr->state = a.state == IBV_PORT_ACTIVE ? BB_PORT_ACTIVE : BB_PORT_DOWN;
	attr->link_layer =
		a.link_layer == IBV_LINK_LAYER_ETHERNET ? BB_LINK_ETHERNET : BB_LINK_INFINIBAND;
	attr->max_mtu = bb_ibv_mtu(a.max_mtu);
	attr->active_mtu = bb_ibv_mtu(a.active_mtu);
	attr->lid = a.lid;
	attr->gids = a.gid_tbl_len > 0 ? (uint32_t)a.gid_tbl_len : 0;
	attr->pkeys = a.pkey_tbl_len;
	attr->grh_required =
		attr->link_layer == BB_LINK_INFINIBAND && (a.flags & IBV_QPF_GRH_REQUIRED) != 0;
	return 0;
}

int
bb_ibv_pkey(struct ibv_context *ctx, uint32_t port, uint32_t index, uint16_t *pkey)
{
	__be16 be;

	/* Return -EIO: libibverbs reads a file of sysfs and does not set errno reliably. */
	if (ibv_query_pkey(ctx, (uint8_t)port, (int)index, &be) != 0)
		return -EIO;
	*pkey = be16toh(be);
	return 0;
}

int
bb_ibv_gid(struct ibv_context *ctx, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	struct ibv_gid_entry e;
	int err = ibv_query_gid_ex(ctx, port, index, &e, 0);

	/*
	 * ENODATA means an empty entry, which is not an error: callers that iterate over the table
	 * find many.
	 */
	if (err != 0)
		return err == ENODATA ? -ENOENT : -err;
	switch (e.gid_type) {
	case IBV_GID_TYPE_IB:
		gid->type = BB_GID_IB;
		break;
	case IBV_GID_TYPE_ROCE_V1:
		gid->type = BB_GID_ROCE_V1;
		break;
	case IBV_GID_TYPE_ROCE_V2:
		gid->type = BB_GID_ROCE_V2;
		break;
	default:
		return -EOPNOTSUPP;
	}
	memcpy(gid->raw, e.gid.raw, sizeof(gid->raw));
	return 0;
}
