/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The verbs driver: lists, opens and closes devices.
 *
 * "verbs:mlx5_0" opens the device mlx5_0 of libibverbs with this driver. A name without the prefix,
 * such as "rxe0", is looked up here if no other driver knows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_drv.h"

#define PREFIX "verbs:"

static int
verbs_list(struct bb_dev_info *info, unsigned int n)
{
	struct ibv_device **list;
	int i, num = 0;

	/* If the kernel has no verbs modules, the call fails and there are no devices. */
	list = ibv_get_device_list(&num);
	if (list == NULL)
		return 0;
	for (i = 0; i < num && (unsigned int)i < n; i++) {
		memset(&info[i], 0, sizeof(info[i]));
		snprintf(info[i].name, sizeof(info[i].name), PREFIX "%s",
			 ibv_get_device_name(list[i]));
		snprintf(info[i].driver, sizeof(info[i].driver), "verbs");
		bb_ibv_bus(list[i], info[i].bus, sizeof(info[i].bus));
	}
	ibv_free_device_list(list);
	return num;
}

static int
open_ctx(const char *name, struct ibv_context **ctx)
{
	struct ibv_device **list;
	int i, num = 0, ret = -ENODEV;

	errno = ENOSYS;
	list = ibv_get_device_list(&num);
	/*
	 * ENOSYS means that the kernel has no verbs modules, so there are no devices. Any other
	 * errno is an error.
	 */
	if (list == NULL && errno != ENOSYS)
		ret = bb_ibv_errno();
	for (i = 0; i < num && ret == -ENODEV; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) != 0)
			continue;
		errno = 0;
		*ctx = ibv_open_device(list[i]);
		ret = *ctx != NULL ? 0 : bb_ibv_errno();
	}
	if (list != NULL)
		ibv_free_device_list(list);
	if (ret == 0 || ret == -ENODEV)
		return ret;
	/*
	 * If libibverbs may not open the device file, it searches other folders and then sets
	 * ENOENT. So convert the error to EACCES.
	 */
	if (ret == -ENOENT)
		ret = -EACCES;
	BB_LOG(ERR, "%s: cannot open the device: %s%s", name, strerror(-ret),
	       ret == -EACCES || ret == -EPERM
		       ? ": give this user rights to /dev/infiniband/uverbs*; in a container, pass "
			 "/dev/infiniband through"
		       : "");
	return ret;
}

static int
verbs_open(const char *name, const char *args, struct bb_dev *dev)
{
	const bool mine = strncmp(name, PREFIX, strlen(PREFIX)) == 0;
	const char *ibname = mine ? name + strlen(PREFIX) : name;
	struct verbs_dev *d;
	struct ibv_context *ctx = NULL;
	int ret;

	ret = open_ctx(ibname, &ctx);
	if (ret != 0)
		return ret;
	if (args[0] != '\0') {
		BB_LOG(ERR,
		       "%s: unknown device option \"%s\": the verbs driver has no options, leave "
		       "it out",
		       name, args);
		ret = -EINVAL;
		goto close_ctx;
	}
	d = calloc(1, sizeof(*d));
	if (d == NULL) {
		BB_LOG(ERR, "%s: cannot open the device: out of memory", name);
		ret = -ENOMEM;
		goto close_ctx;
	}
	d->dev = dev;
	d->ctx = ctx;
	snprintf(d->ibname, sizeof(d->ibname), "%s", ibname);
	dev->priv = d;
	/* Make the descriptor non-blocking, because reading events must never block the caller. */
	if (fcntl(ctx->async_fd, F_SETFL, fcntl(ctx->async_fd, F_GETFL) | O_NONBLOCK) != 0) {
		ret = -errno;
		BB_LOG(ERR, "%s: cannot make the device's event descriptor non-blocking: %s", name,
		       strerror(-ret));
		goto free_dev;
	}
	ret = verbs_caps(d, &dev->attr);
	if (ret != 0)
		goto free_dev;
	return 0;

free_dev:
	if (d->siw_low != NULL)
		(void)ibv_destroy_cq(d->siw_low);
	free(d);
close_ctx:
	(void)ibv_close_device(ctx);
	return ret;
}

int
verbs_gone(struct verbs_dev *d, int err)
{
	struct ibv_device_attr_ex attr;

	if (err != EIO && err != EBUSY)
		return err;
	if (!__atomic_load_n(&d->gone, __ATOMIC_RELAXED)) {
		/*
		 * The event that reports the loss may not be read yet, so send a command to check
		 * whether the device is gone.
		 */
		if (ibv_query_device_ex(d->ctx, NULL, &attr) != EIO)
			return err;
		__atomic_store_n(&d->gone, true, __ATOMIC_RELAXED);
	}
	return 0;
}

static int
verbs_close(struct bb_dev *dev)
{
	struct verbs_dev *d = verbs_dev_of(dev);
	unsigned int i;

	bb_ibv_ready_end(d->ctx);
	if (d->siw_low != NULL)
		(void)ibv_destroy_cq(d->siw_low);
	d->siw_low = NULL;
	if (ibv_close_device(d->ctx) != 0) {
		int ret = bb_ibv_errno();

		BB_LOG(ERR, "%s: cannot close the device: %s", dev->name, strerror(-ret));
		return ret;
	}
	for (i = 0; i < RTE_DIM(d->qpns.page); i++)
		free(d->qpns.page[i]);
	free(d);
	return 0;
}

/* Returns 0 for all counters, because libibverbs has none. */
static int
verbs_stats(struct bb_dev *dev, struct bb_dev_stats *stats)
{
	(void)dev;
	memset(stats, 0, sizeof(*stats));
	return 0;
}

/* Reads the clock of the completion timestamps, in ticks. */
int
verbs_clock(struct bb_dev *dev, uint64_t *now)
{
	struct verbs_dev *d = verbs_dev_of(dev);
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	int err = ibv_query_rt_values_ex(d->ctx, &v);

	if (err == EOPNOTSUPP || err == ENOSYS)
		return -ENOTSUP;
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot read the device's clock: %s", dev->name, strerror(err));
		return -err;
	}
	/* Providers store the ticks in the fields for seconds and nanoseconds, so combine both. */
	*now = (uint64_t)v.raw_clock.tv_sec * UINT64_C(1000000000) + (uint64_t)v.raw_clock.tv_nsec;
	return 0;
}

static const struct bb_driver verbs_driver = {
	.name = "verbs",
	.last = true,
	.list = verbs_list,
	.open = verbs_open,
	.close = verbs_close,
	.port_query = verbs_port_query,
	.gid_query = verbs_gid_query,
	.pkey_query = verbs_pkey_query,
	.event_get = verbs_event_get,
	.stats = verbs_stats,
	.pd_alloc = verbs_pd_alloc,
	.pd_free = verbs_pd_free,
	.mr_reg = verbs_mr_reg,
	.mr_dereg = verbs_mr_dereg,
	.mr_rereg = verbs_mr_rereg,
	.dm_alloc = verbs_dm_alloc,
	.dm_free = verbs_dm_free,
	.dm_write = verbs_dm_write,
	.dm_read = verbs_dm_read,
	.clock = verbs_clock,
	.channel_create = verbs_channel_create,
	.channel_destroy = verbs_channel_destroy,
	.channel_get = verbs_channel_get,
	.path_ready = verbs_path_ready,
	.ah_resolve = verbs_ah_resolve,
	.ah_release = verbs_ah_release,
	.cq_create = verbs_cq_create,
	.cq_destroy = verbs_cq_destroy,
	.cq_arm = verbs_cq_arm,
	.cq_resize = verbs_cq_resize,
	.cq_moderate = verbs_cq_moderate,
	.qp_create = verbs_qp_create,
	.qp_modify = verbs_qp_modify,
	.qp_query = verbs_qp_query,
	.mcast_attach = verbs_mcast_attach,
	.mcast_detach = verbs_mcast_detach,
	.qp_destroy = verbs_qp_destroy,
	.srq_create = verbs_srq_create,
	.srq_modify = verbs_srq_modify,
	.srq_query = verbs_srq_query,
	.srq_destroy = verbs_srq_destroy,
};
BB_DRIVER_REGISTER(verbs_driver)
