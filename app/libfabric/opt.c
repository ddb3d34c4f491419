/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Options of endpoints, passive endpoints and shared receive contexts: fi_endpoint(3). */
#include <string.h>

#include "fab.h"

static const struct fab_dev *
device_of(fid_t fid)
{
	switch (fid->fclass) {
	case FI_CLASS_PEP:
		return container_of(fid, struct fab_pep, fid.fid)->fabric->dev;
	case FI_CLASS_SRX_CTX:
		return container_of(fid, struct fab_srx, fid.fid)->domain->dev;
	default:
		return container_of(fid, struct fab_ep, fid.fid)->dev;
	}
}

static int
get(fid_t fid, int level, int name, void *value, size_t *len)
{
	const struct fab_dev *dev = device_of(fid);
	size_t size;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size))
		return -FI_ETOOSMALL;
	size = fab_cm_max(dev);
	memcpy(value, &size, sizeof(size));
	*len = sizeof(size);
	return 0;
}

static int
set(fid_t fid, int level, int name, const void *value, size_t len)
{
	(void)fid, (void)level, (void)name, (void)value, (void)len;
	return -FI_ENOPROTOOPT;
}

static ssize_t
no_cancel(fid_t fid, void *context)
{
	(void)fid, (void)context;
	return -FI_ENOSYS;
}

static int
no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx, void *context)
{
	(void)sep, (void)index, (void)attr, (void)tx, (void)context;
	return -FI_ENOSYS;
}

static int
no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx, void *context)
{
	(void)sep, (void)index, (void)attr, (void)rx, (void)context;
	return -FI_ENOSYS;
}

static ssize_t
no_size_left(struct fid_ep *ep)
{
	(void)ep;
	return -FI_ENOSYS;
}

struct fi_ops_ep fab_opt_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = no_cancel,
	.getopt = get,
	.setopt = set,
	.tx_ctx = no_tx_ctx,
	.rx_ctx = no_rx_ctx,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};
