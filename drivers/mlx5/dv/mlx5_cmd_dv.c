/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The command interface on libibverbs and mlx5dv: lists, opens and closes real devices. On a
 * machine without devices or kernel modules the list is empty.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bb_driver.h"
#include "mlx5_cmd_dv.h"

/* Access rights have the same bits in the API, the command interfaces and libibverbs. */
#define SAME_BIT(right_)                                                                           \
	BB_STATIC_ASSERT((int)BB_ACCESS_##right_ == (int)IBV_ACCESS_##right_ &&                    \
				 (int)MLX5_ACCESS_##right_ == (int)IBV_ACCESS_##right_,            \
			 "bits go through")
SAME_BIT(LOCAL_WRITE);
SAME_BIT(REMOTE_WRITE);
SAME_BIT(REMOTE_READ);
SAME_BIT(REMOTE_ATOMIC);
SAME_BIT(MW_BIND);
SAME_BIT(ZERO_BASED);
SAME_BIT(ON_DEMAND);
SAME_BIT(HUGETLB);
SAME_BIT(RELAXED_ORDERING);
BB_STATIC_ASSERT(BB_ACCESS_OPTIONAL_RANGE == IBV_ACCESS_OPTIONAL_RANGE, "bits go through");

/*
 * The flags of a re-registration also have the same bits in the API, the command interface and
 * libibverbs.
 */
#define SAME_FLAG(what_)                                                                           \
	BB_STATIC_ASSERT((int)BB_MR_REREG_##what_ == (int)IBV_REREG_MR_CHANGE_##what_ &&           \
				 (int)MLX5_REREG_##what_ == (int)IBV_REREG_MR_CHANGE_##what_,      \
			 "bits go through")
SAME_FLAG(TRANSLATION);
SAME_FLAG(PD);
SAME_FLAG(ACCESS);

static const struct mlx5_cmd_if dv_if;

/*
 * Returns true if the kernel has detached the device. Every DEVX method then returns EIO
 * (uverbs_uapi.c: uverbs_disassociate_api()). The method used here sends no command to firmware, so
 * it fails for no other reason.
 */
static bool
is_gone(struct dv_ctx *c)
{
	uint32_t eqn;

	return __atomic_load_n(&c->fatal, __ATOMIC_RELAXED) ||
	       mlx5dv_devx_query_eqn(c->ibv, 0, &eqn) == EIO;
}

int
dv_died(struct dv_ctx *c, int err)
{
	if (err == EIO && is_gone(c))
		err = 0;
	if (err == 0)
		__atomic_sub_fetch(&c->live, 1, __ATOMIC_RELAXED);
	return -err;
}

static int
dv_list(struct bb_dev_info *info, unsigned int n)
{
	struct ibv_device **list;
	unsigned int total = 0;
	int i, num = 0;

	/* If the kernel has no verbs modules, the call fails and there are no devices. */
	list = ibv_get_device_list(&num);
	if (list == NULL)
		return 0;
	for (i = 0; i < num; i++) {
		if (!mlx5dv_is_supported(list[i]))
			continue;
		if (total < n) {
			struct bb_dev_info *d = &info[total];

			memset(d, 0, sizeof(*d));
			snprintf(d->name, sizeof(d->name), "%s", ibv_get_device_name(list[i]));
			snprintf(d->driver, sizeof(d->driver), "mlx5");
			bb_ibv_bus(list[i], d->bus, sizeof(d->bus));
		}
		total++;
	}
	ibv_free_device_list(list);
	return (int)total;
}

static bool
matches(const struct ibv_device *dev, const char *name)
{
	char bus[BB_DEV_NAME_MAX];

	if (strcmp(dev->name, name) == 0)
		return true;
	bb_ibv_bus(dev, bus, sizeof(bus));
	return bus[0] != '\0' && strcmp(bus, name) == 0;
}

/*
 * Logs why a device could not be opened, and converts the error to one of bb_dev_open(). DEVX needs
 * no Linux capability: CAP_NET_RAW only adds RAW_TX to the context, which no object of this driver
 * needs (Linux, mlx5_ib_devx_create() in drivers/infiniband/hw/mlx5/devx.c).
 */
static int
open_error(const char *name, int err)
{
	switch (err) {
	case EPERM:
	case EACCES:
		BB_LOG(ERR,
		       "%s: cannot open the device: no permission: give the process read and "
		       "write access to /dev/infiniband/uverbs* (group rdma; in a container also "
		       "--device)",
		       name);
		return -err;
	case ENOENT:
	case ENODEV:
	case ENXIO:
		BB_LOG(ERR,
		       "%s: cannot open the device: no node /dev/infiniband/uverbs*: load the "
		       "kernel module ib_uverbs; in a container pass /dev/infiniband through",
		       name);
		return -EACCES;
	case EINVAL:
	case ENOSYS:
	case ENOTTY:
	case EOPNOTSUPP:
	case EPROTONOSUPPORT:
		BB_LOG(ERR,
		       "%s: no DEVX (%s): DEVX needs kernel 4.20 or later with mlx5_ib and "
		       "firmware with user contexts (mlxconfig -d <device> set UCTX_EN=1)",
		       name, strerror(err));
		return -EOPNOTSUPP;
	case ENOMEM:
		BB_LOG(ERR,
		       "%s: cannot open the device: out of memory: raise the locked memory limit "
		       "(ulimit -l)",
		       name);
		return -err;
	default:
		BB_LOG(ERR, "%s: cannot open the device: %s", name, strerror(err));
		return -err;
	}
}

/*
 * Parses the device options into @c. Option bf_copy: see mlx5_bf_copy_choose(). Option no_bf makes
 * lcores use the uncached UAR, as libmlx5 does with MLX5_SHUT_UP_BF. Option cq_resize allows
 * MODIFY_CQ to move a CQ to the umem of another ring. No open-source driver resizes a CQ in this
 * way: the kernel's mlx5_ib_resize_cq() passes physical pages. So the option is not tested on
 * cards, and it is off by default.
 */
static int
options(const char *name, const char *args, struct mlx5_ctx *c)
{
	static const char bf_copy[] = "bf_copy=";
	const size_t skip = sizeof(bf_copy) - 1;
	size_t len;

	while (args != NULL && *args != '\0') {
		len = strcspn(args, ",");
		if (len == 9 && strncmp(args, "cq_resize", len) == 0) {
			c->cq_resize = true;
		} else if (len == 5 && strncmp(args, "no_bf", len) == 0) {
			c->no_bf = true;
		} else if (len > skip && len - skip < sizeof(c->bf_copy) &&
			   strncmp(args, bf_copy, skip) == 0) {
			memcpy(c->bf_copy, args + skip, len - skip);
			c->bf_copy[len - skip] = '\0';
		} else {
			BB_LOG(ERR,
			       "%s: unknown device option in \"%s\" (valid options: cq_resize, "
			       "no_bf, bf_copy=none|plain|neon|avx2|avx512|movdir64b)",
			       name, args);
			return -EINVAL;
		}
		args += len;
		args += *args == ',';
	}
	return 0;
}

static int
open_device(struct ibv_device *dev, const char *args, struct mlx5_ctx **out)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct dv_ctx *c;
	int ret;

	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		BB_LOG(ERR, "%s: cannot open the device: out of memory", dev->name);
		return -ENOMEM;
	}
	ret = options(dev->name, args, &c->base);
	if (ret != 0)
		goto free_ctx;
	c->base.cmd = &dv_if;
	snprintf(c->base.name, sizeof(c->base.name), "%s", dev->name);
	errno = 0;
	c->ibv = mlx5dv_open_device(dev, &attr);
	if (c->ibv == NULL) {
		ret = open_error(dev->name, -bb_ibv_errno());
		goto free_ctx;
	}
	c->base.comp_vectors = bb_ibv_comp_vectors(c->ibv);
	ret = dv_events_open(c);
	if (ret != 0)
		goto close_dev;
	dv_dmabuf_probe(c);
	*out = &c->base;
	return 0;

close_dev:
	(void)ibv_close_device(c->ibv);
free_ctx:
	free(c);
	return ret;
}

static int
dv_close(struct mlx5_ctx *ctx)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	uint32_t live = __atomic_load_n(&c->live, __ATOMIC_RELAXED);

	if (live != 0) {
		BB_LOG(ERR, "%s: cannot close the device: destroy its %u objects first", ctx->name,
		       live);
		return -EBUSY;
	}
	bb_ibv_ready_end(c->ibv);
	dv_events_close(c);
	dv_dmabuf_probe_end(c);
	/* Only log a failure, because the descriptor is closed in any case. */
	if (ibv_close_device(c->ibv) != 0)
		BB_LOG(WARNING, "%s: the device was closed, but the kernel reported an error: %s",
		       ctx->name, strerror(errno));
	free(c);
	return 0;
}

static int
dv_open(const char *name, const char *args, struct mlx5_ctx **ctx)
{
	struct ibv_device **list;
	int i, num = 0, ret = -ENODEV;

	list = ibv_get_device_list(&num);
	if (list == NULL)
		return -ENODEV;
	for (i = 0; i < num; i++) {
		if (!mlx5dv_is_supported(list[i]) || !matches(list[i], name))
			continue;
		ret = open_device(list[i], args, ctx);
		break;
	}
	ibv_free_device_list(list);
	return ret;
}

static const struct mlx5_cmd_if dv_if = {
	.name = "dv",
	.list = dv_list,
	.open = dv_open,
	.close = dv_close,
	.general = dv_general,
	.obj_create = dv_obj_create,
	.obj_modify = dv_obj_modify,
	.obj_query = dv_obj_query,
	.obj_destroy = dv_obj_destroy,
	.umem_reg = dv_umem_reg,
	.umem_reg_dmabuf = dv_umem_reg_dmabuf,
	.umem_dereg = dv_umem_dereg,
	.uar_alloc = dv_uar_alloc,
	.uar_free = dv_uar_free,
	.dm_alloc = dv_dm_alloc,
	.dm_free = dv_dm_free,
	.dm_write = dv_dm_write,
	.dm_read = dv_dm_read,
	.query_eqn = dv_query_eqn,
	.pd_alloc = dv_pd_alloc,
	.pd_free = dv_pd_free,
	.mr_reg = dv_mr_reg,
	.mr_dereg = dv_mr_dereg,
	.mr_rereg = dv_mr_rereg,
	.mw_alloc = dv_mw_alloc,
	.mw_free = dv_mw_free,
	.port_query = dv_port_query,
	.gid_query = dv_gid_query,
	.pkey_query = dv_pkey_query,
	.av_resolve = dv_av_resolve,
	.av_ready = dv_av_ready,
	.event_subscribe = dv_event_subscribe,
	.event_get = dv_event_get,
	.clock = dv_clock,
	.channel_create = dv_channel_create,
	.channel_destroy = dv_channel_destroy,
	.channel_subscribe = dv_channel_subscribe,
	.channel_get = dv_channel_get,
};
MLX5_CMD_REGISTER(dv_if)
