/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Allocates device memory and copies to and from it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <rte_common.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"

#define DM_ACCESS                                                                                  \
	((uint32_t)(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |       \
		    BB_ACCESS_REMOTE_ATOMIC | BB_ACCESS_ZERO_BASED))

int
bb_dm_alloc(struct bb_dev *dev, uint64_t len, uint32_t log_align, struct bb_dm **out)
{
	struct bb_dm_ctrl *dm;
	const char *why = NULL;
	int ret;

	if (dev == NULL || out == NULL)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	if (dev->attr.max_dm_size == 0 || dev->drv->dm_alloc == NULL) {
		BB_LOG(ERR, "%s: the device has no device memory (max_dm_size is 0)", dev->name);
		return -ENOTSUP;
	}
	if (len == 0)
		why = "the length is 0";
	else if (len > dev->attr.max_dm_size)
		why = "the length exceeds the device's max_dm_size";
	else if (log_align > dev->attr.max_dm_log_align)
		why = "the alignment is above the device's max_dm_log_align";
	if (why != NULL) {
		BB_LOG(ERR,
		       "%s: %" PRIu64 " bytes of device memory aligned to 2^%u are not "
		       "allocated: %s",
		       dev->name, len, log_align, why);
		return -EINVAL;
	}
	dm = bb_alloc(dev, "device memory", sizeof(*dm));
	if (dm == NULL)
		return -ENOMEM;
	dm->pub.dev = dev;
	dm->pub.len = len;
	dm->pub.log_align = log_align;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->dm_alloc(dm);
	if (ret == 0)
		dev->dms++;
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		free(dm);
		return ret;
	}
	*out = &dm->pub;
	return 0;
}

int
bb_dm_free(struct bb_dm *pub)
{
	struct bb_dm_ctrl *dm = container_of(pub, struct bb_dm_ctrl, pub);
	struct bb_dev *dev;
	int ret;

	if (pub == NULL)
		return -EINVAL;
	dev = pub->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	if (dm->mrs != 0) {
		BB_LOG(ERR,
		       "%s: an allocation of %" PRIu64 " bytes of device memory is not freed: %u "
		       "MR%s of it live; deregister them first",
		       dev->name, pub->len, dm->mrs, BB_PLURAL(dm->mrs));
		ret = -EBUSY;
	} else {
		ret = dev->drv->dm_free(dm);
		if (ret == 0)
			dev->dms--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret == 0)
		free(dm);
	return ret;
}

/* Checks the arguments of a copy. The errors and the order of the checks are those of libmlx5. */
static int
copy_check(const struct bb_dm *dm, const void *mem, uint64_t off, size_t len)
{
	if (dm == NULL || (mem == NULL && len != 0))
		return -EINVAL;
	if (len > dm->len || off > dm->len - len) {
		BB_LOG(ERR,
		       "%s: a copy of %zu bytes at offset %" PRIu64 " exceeds the %" PRIu64 " "
		       "bytes of the device memory",
		       dm->dev->name, len, off, dm->len);
		return -EFAULT;
	}
	if (((off | len) & (BB_DM_COPY_ALIGN - 1)) != 0) {
		BB_LOG(ERR,
		       "%s: invalid copy of %zu bytes at offset %" PRIu64 " of device memory: "
		       "length and offset must be multiples of %u",
		       dm->dev->name, len, off, BB_DM_COPY_ALIGN);
		return -EINVAL;
	}
	return bb_process_owns(dm->dev);
}

int
bb_dm_write(struct bb_dm *dm, uint64_t off, const void *src, size_t len)
{
	int ret = copy_check(dm, src, off, len);

	if (ret != 0 || len == 0)
		return ret;
	return dm->dev->drv->dm_write(container_of(dm, struct bb_dm_ctrl, pub), off, src, len);
}

int
bb_dm_read(const struct bb_dm *dm, void *dst, uint64_t off, size_t len)
{
	int ret = copy_check(dm, dst, off, len);

	if (ret != 0 || len == 0)
		return ret;
	return dm->dev->drv->dm_read(
		container_of((struct bb_dm *)(uintptr_t)dm, struct bb_dm_ctrl, pub), dst, off, len);
}

int
bb_mr_reg_dm(struct bb_pd *pd, struct bb_dm *dm, uint64_t off, size_t len, uint32_t access,
	     struct bb_mr **mr)
{
	struct bb_drv_mr_attr attr = {
		.kind = BB_DRV_MR_DM,
		.len = len,
		.offset = off,
		.dm = container_of(dm, struct bb_dm_ctrl, pub),
	};
	const char *why = NULL;
	int ret = -EINVAL;

	if (pd == NULL || dm == NULL || mr == NULL)
		return -EINVAL;
	/*
	 * The checks are those of UVERBS_METHOD_DM_MR_REG and MLX5_IB_DM_MEMIC_ALLOWED_ACCESS in
	 * Linux.
	 */
	if (pd->dev != dm->dev)
		why = "PD and device memory belong to different devices";
	else if (len == 0)
		why = "the length is 0";
	else if (len > dm->len || off > dm->len - len)
		why = "the range exceeds the device memory";
	else if ((access & ~(DM_ACCESS | BB_ACCESS_OPTIONAL_RANGE)) != 0)
		why = "device memory allows only LOCAL_WRITE and REMOTE_* rights";
	else
		ret = bb_mr_access_check(pd->dev, access, &why);
	if (why != NULL) {
		BB_LOG(ERR,
		       "%s: %zu bytes at offset %" PRIu64 " of device memory with access 0x%x are "
		       "not registered: %s",
		       pd->dev->name, len, off, access, why);
		return ret;
	}
	/*
	 * Optional rights are removed, because the kernel rejects them for device memory although a
	 * device may ignore them.
	 */
	attr.access = (access & DM_ACCESS) | BB_ACCESS_ZERO_BASED;
	return bb_mr_create(pd, &attr, mr);
}
