/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Registers umems of the application, and dma-bufs. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <rte_common.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"

#define PAGE_MASK UINT64_C(4095)

/* IB_ACCESS_* rights that the kernel's devx_umem_get() accepts. */
#define UMEM_ACCESS (BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ)

#define DMABUF_ACCESS                                                                              \
	((uint32_t)(UMEM_ACCESS | BB_ACCESS_REMOTE_ATOMIC | BB_ACCESS_RELAXED_ORDERING))

/* Returns the reason for which the library rejects a umem, NULL if the umem is valid. */
static const char *
umem_invalid_reason(const struct bb_umem_attr *attr)
{
	if (attr->len == 0)
		return "the length is 0";
	if (attr->len > UINTPTR_MAX - (uintptr_t)attr->addr)
		return "the range exceeds the address space";
	if ((attr->access & ~(uint32_t)UMEM_ACCESS) != 0)
		return "a umem allows only LOCAL_WRITE, REMOTE_WRITE and REMOTE_READ";
	if ((attr->access & BB_ACCESS_REMOTE_WRITE) != 0 &&
	    (attr->access & BB_ACCESS_LOCAL_WRITE) == 0)
		return "REMOTE_WRITE needs LOCAL_WRITE too";
	if ((attr->pgsz_bitmap & BB_UMEM_ANY_PAGE) == 0)
		return "pgsz_bitmap allows no page size of 4 KiB or more";
	return NULL;
}

static int
umem_check(const struct bb_dev *dev, const struct bb_umem_attr *attr)
{
	const char *why;
	int ret;

	ret = bb_attr_size_check(attr->size, sizeof(*attr), "bb_umem_attr_init");
	if (ret != 0)
		return ret;
	if (dev->attr.max_umem == 0 || dev->drv->umem_reg == NULL) {
		BB_LOG(ERR, "%s: umem not registered: the device has none (max_umem is 0)",
		       dev->name);
		return -ENOTSUP;
	}
	if (attr->dmabuf_fd != -1 && !dev->attr.dmabuf) {
		BB_LOG(ERR,
		       "%s: umem not registered: the kernel or rdma-core has no umems of "
		       "dma-bufs",
		       dev->name);
		return -ENOTSUP;
	}
	why = umem_invalid_reason(attr);
	if (why == NULL)
		return 0;
	BB_LOG(ERR, "%s: a umem of %zu bytes at %p with access 0x%x is not registered: %s",
	       dev->name, attr->len, attr->addr, attr->access, why);
	return -EINVAL;
}

int
bb_umem_reg_ex(struct bb_dev *dev, const struct bb_umem_attr *attr, struct bb_umem **out)
{
	struct bb_umem_ctrl *umem;
	int ret;

	if (dev == NULL || attr == NULL || out == NULL)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret == 0)
		ret = umem_check(dev, attr);
	if (ret != 0)
		return ret;
	umem = bb_alloc(dev, "a umem", sizeof(*umem));
	if (umem == NULL)
		return -ENOMEM;
	umem->pub.dev = dev;
	umem->pub.access = attr->access;
	umem->pub.addr = attr->addr;
	umem->pub.len = attr->len;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->umem_reg(umem, attr);
	if (ret == 0)
		dev->umems++;
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		free(umem);
		return ret;
	}
	*out = &umem->pub;
	return 0;
}

int
bb_umem_reg(struct bb_dev *dev, void *addr, size_t len, uint32_t access, struct bb_umem **umem)
{
	struct bb_umem_attr attr;

	bb_umem_attr_init(&attr);
	attr.addr = addr;
	attr.len = len;
	attr.access = access;
	return bb_umem_reg_ex(dev, &attr, umem);
}

int
bb_umem_dereg(struct bb_umem *pub)
{
	struct bb_umem_ctrl *umem = container_of(pub, struct bb_umem_ctrl, pub);
	struct bb_dev *dev;
	int ret;

	if (pub == NULL)
		return -EINVAL;
	dev = pub->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->umem_dereg(umem);
	if (ret == 0)
		dev->umems--;
	pthread_mutex_unlock(&dev->lock);
	if (ret == 0)
		free(umem);
	return ret;
}

int
bb_mr_reg_dmabuf(struct bb_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd,
		 uint32_t access, struct bb_mr **mr)
{
	struct bb_drv_mr_attr attr = {
		.kind = BB_DRV_MR_DMABUF,
		.addr = (void *)(uintptr_t)offset,
		.len = len,
		.iova = iova,
		.offset = offset,
		.fd = fd,
	};
	const char *why = NULL;
	int ret = -EINVAL;

	if (pd == NULL || mr == NULL)
		return -EINVAL;
	if (!pd->dev->attr.dmabuf) {
		ret = -ENOTSUP;
		why = "the kernel or rdma-core has no MRs of dma-bufs";
	} else if (len == 0) {
		why = "the length is 0";
	} else if (len > UINT64_MAX - offset || len > UINT64_MAX - iova) {
		why = "offset or iova + length exceeds 2^64";
	} else if (len > pd->dev->attr.max_mr_size) {
		why = "the length exceeds the device's max_mr_size";
	} else if (((offset ^ iova) & PAGE_MASK) != 0) {
		/*
		 * UVERBS_METHOD_REG_DMABUF_MR in Linux checks the offsets and the rights in this
		 * way.
		 */
		why = "iova and offset must have the same offset in a page of 4096 bytes";
	} else if ((access & ~DMABUF_ACCESS) != 0) {
		why = "a dma-buf allows only LOCAL_WRITE, REMOTE_* and RELAXED_ORDERING";
	} else {
		ret = bb_mr_access_check(pd->dev, access, &why);
	}
	if (why != NULL) {
		BB_LOG(ERR,
		       "%s: %zu bytes at offset %" PRIu64 " of a dma-buf with access 0x%x, iova "
		       "0x%" PRIx64 ", are not registered: %s",
		       pd->dev->name, len, offset, access, iova, why);
		return ret;
	}
	attr.access = bb_mr_access_in_force(pd->dev, access);
	return bb_mr_create(pd, &attr, mr);
}
