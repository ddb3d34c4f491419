/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The provider's entry for libfabric, fabrics, and waits for several queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fab.h"

static int
no_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **wait)
{
	(void)fabric, (void)attr, (void)wait;
	return -FI_ENOSYS;
}

static int
fabric_close(struct fid *fid)
{
	struct fab_fabric *f = container_of(fid, struct fab_fabric, fid.fid);

	if (__atomic_load_n(&f->refs, __ATOMIC_ACQUIRE) != 0)
		return -FI_EBUSY;
	fab_dev_put(f->dev);
	free(f);
	return 0;
}

int
fab_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	struct fab_dev *dev = container_of(fabric, struct fab_fabric, fid)->dev;
	struct fab_cq *cq;
	int i, ret = 0;

	fab_lock(dev);
	fab_dev_run(dev);
	for (i = 0; i < count && ret == 0; i++) {
		switch (fids[i]->fclass) {
		case FI_CLASS_CQ:
			cq = container_of(fids[i], struct fab_cq, fid.fid);
			/* The caller that fi_cq_signal() wakes must not sleep again at once. */
			if (fab_wait_signaled(cq) || !fab_cq_is_empty(cq))
				ret = -FI_EAGAIN;
			break;
		case FI_CLASS_EQ:
			if (!fab_eq_is_empty(container_of(fids[i], struct fab_eq, fid.fid)))
				ret = -FI_EAGAIN;
			break;
		default:
			ret = -FI_EINVAL;
		}
	}
	fab_unlock(dev);
	return ret;
}

static struct fi_ops fabric_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = fab_no_bind,
	.control = fab_no_control,
	.ops_open = fab_no_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = fab_domain,
	.passive_ep = fab_passive_ep,
	.eq_open = fab_eq_open,
	.wait_open = no_wait_open,
	.trywait = fab_trywait,
};

static const struct fab_on on = {
	.request = fab_pep_event,
	.event = fab_ep_event,
	.broken = fab_ep_broken,
	.drop = fab_connreq_free,
};

int
fab_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fab_fabric *f;
	int ret;

	if (attr->name != NULL && strcmp(attr->name, fab_provider.name) != 0)
		return -FI_ENODATA;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return -FI_ENOMEM;
	ret = fab_dev_get(&on, &f->dev);
	if (ret != 0) {
		free(f);
		return ret;
	}
	f->fid.fid = (struct fid){FI_CLASS_FABRIC, context, &fabric_fi_ops};
	f->fid.ops = &fabric_ops;
	f->fid.api_version = attr->api_version;
	*fabric = &f->fid;
	return 0;
}

static void
cleanup(void)
{
	fab_dev_exit();
}

/* libfabric looks this function up in the loaded file; no header of it declares the name. */
FI_EXT_INI;
FI_EXT_INI
{
	fab_provider.getinfo = fab_getinfo;
	fab_provider.fabric = fab_fabric;
	fab_provider.cleanup = cleanup;
	fi_param_define(&fab_provider, "device", FI_PARAM_STRING,
			"Bluebell's device: mlx5_0, soft0,port=..., or soft0,shm=NAME. Default: a "
			"software device that reaches the processes of this host and user through "
			"shared memory. Such a device without ip= takes a free address.");
	fi_param_define(&fab_provider, "cm", FI_PARAM_STRING,
			"Messages that establish connections: rdma, those of librdmacm, with "
			"addresses of the device; or tcp, with addresses of the host. Default: "
			"rdma for a card, and for a software device with ip=; otherwise tcp.");
	fi_param_define(&fab_provider, "eal", FI_PARAM_STRING,
			"Arguments of DPDK's EAL, separated by spaces. Default: --no-huge -m 256 "
			"--no-shconf --no-pci. Not used in a process that has started EAL itself.");
	return &fab_provider;
}
