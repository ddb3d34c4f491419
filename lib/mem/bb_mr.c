/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory regions: registrations by the application, which have lkeys and rkeys. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"

/*
 * Mask of an offset in the smallest page of all supported CPUs. If pages are larger, the kernel
 * checks the offset.
 */
#define PAGE_MASK UINT64_C(4095)

#define ACCESS_REMOTE                                                                              \
	((uint32_t)(BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC))
#define ACCESS_KNOWN                                                                               \
	(ACCESS_REMOTE |                                                                           \
	 (uint32_t)(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_MW_BIND | BB_ACCESS_ZERO_BASED |             \
		    BB_ACCESS_ON_DEMAND | BB_ACCESS_HUGETLB))

uint32_t
bb_mr_access_in_force(const struct bb_dev *dev, uint32_t access)
{
	uint32_t optional = dev->attr.relaxed_ordering ? BB_ACCESS_RELAXED_ORDERING : 0;

	return access & (ACCESS_KNOWN | optional);
}

int
bb_mr_access_check(const struct bb_dev *dev, uint32_t access, const char **why)
{
	bool odp = (access & BB_ACCESS_ON_DEMAND) != 0;

	if ((access & ~(ACCESS_KNOWN | BB_ACCESS_OPTIONAL_RANGE)) != 0) {
		*why = "unknown access right";
		return -EINVAL;
	}
	if ((access & (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC)) != 0 &&
	    (access & BB_ACCESS_LOCAL_WRITE) == 0) {
		*why = "REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE too";
		return -EINVAL;
	}
	if ((access & BB_ACCESS_REMOTE_ATOMIC) != 0 && !dev->attr.atomics) {
		*why = "the device has no atomics";
		return -EINVAL;
	}
	/* The errno is that of ib_check_mr_access(), which returns EOPNOTSUPP since Linux 6.2. */
	if (odp && !dev->attr.odp) {
		*why = "the device has no on-demand paging: leave ON_DEMAND out";
		return -ENOTSUP;
	}
	if (odp && (((access & BB_ACCESS_REMOTE_WRITE) != 0 && !dev->attr.odp_write) ||
		    ((access & BB_ACCESS_REMOTE_READ) != 0 && !dev->attr.odp_read) ||
		    ((access & BB_ACCESS_REMOTE_ATOMIC) != 0 && !dev->attr.odp_atomic))) {
		*why = "the device has no on-demand paging for this REMOTE right (odp_write, "
		       "odp_read, odp_atomic of bb_dev_query())";
		return -ENOTSUP;
	}
	return 0;
}

/* Checks the rules of man ibv_reg_mr, and those of ib_uverbs_reg_mr() for an iova. */
static int
range_check(const struct bb_dev *dev, const void *addr, uint64_t len, uint64_t iova,
	    uint32_t access, const char **why)
{
	if ((access & BB_ACCESS_ON_DEMAND) != 0 && len == UINT64_MAX && addr == NULL) {
		if (iova != 0) {
			*why = "a region of the whole address space must have iova 0";
			return -EINVAL;
		}
		if (dev->attr.odp_implicit)
			return 0;
		*why = "the device cannot register the whole address space on demand";
		return -ENOTSUP;
	}
	if (len == 0)
		*why = "the length is 0";
	else if (len > UINTPTR_MAX - (uintptr_t)addr)
		*why = "the range exceeds the address space";
	else if (len > UINT64_MAX - iova)
		*why = "iova + length exceeds 2^64";
	else if (len > dev->attr.max_mr_size)
		*why = "the length exceeds the device's max_mr_size";
	else if (((iova ^ (uintptr_t)addr) & PAGE_MASK) != 0)
		*why = (access & BB_ACCESS_ZERO_BASED) != 0
			       ? "ZERO_BASED memory must start on a page of 4096 bytes"
			       : "iova and address must have the same offset in a page of 4096 "
				 "bytes";
	else
		return 0;
	return -EINVAL;
}

uint64_t
bb_mr_bytes(const struct bb_mr *mr)
{
	return mr->len == SIZE_MAX ? 0 : mr->len;
}

int
bb_mr_create(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_mr **out)
{
	struct bb_mem_table *t = pd->mem;
	struct bb_mr_priv *mr;
	int ret;

	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	mr = bb_alloc(pd->dev, "a memory region", sizeof(*mr));
	if (mr == NULL)
		return -ENOMEM;
	mr->kind = attr->kind;
	mr->pub.pd = pd;
	mr->pub.addr = attr->addr;
	mr->pub.len = attr->len;
	mr->pub.iova = attr->iova;
	mr->pub.access = attr->access;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = bb_mem_reg_create(pd, BB_MEM_EXPLICIT, attr, &mr->reg);
	if (ret != 0)
		goto free_mr;
	pthread_mutex_lock(&t->lock);
	if (mr->reg->listed)
		ret = bb_mem_table_insert(t, mr->reg);
	if (ret == 0) {
		t->stats.mrs++;
		t->stats.bytes += bb_mr_bytes(&mr->pub);
	}
	pthread_mutex_unlock(&t->lock);
	if (ret != 0)
		goto destroy_reg;
	pd->mrs++;
	LIST_INSERT_HEAD(&pd->mr_list, mr, link);
	mr->dm = attr->dm;
	if (mr->dm != NULL)
		mr->dm->mrs++;
	bb_mr_keys(mr);
	pthread_mutex_unlock(&pd->dev->lock);
	*out = &mr->pub;
	return 0;

destroy_reg:
	(void)bb_mem_reg_destroy(pd, mr->reg);
free_mr:
	pthread_mutex_unlock(&pd->dev->lock);
	free(mr);
	return ret;
}

static int
mr_reg(struct bb_pd *pd, void *addr, size_t len, uint64_t iova, uint32_t access, struct bb_mr **out)
{
	struct bb_drv_mr_attr attr = {
		.kind = BB_DRV_MR_MEM,
		.addr = addr,
		.len = len,
		.iova = iova,
	};
	const char *why = NULL;
	int ret;

	if (pd == NULL || out == NULL)
		return -EINVAL;
	ret = bb_mr_access_check(pd->dev, access, &why);
	if (ret == 0)
		ret = range_check(pd->dev, addr, len, iova, access, &why);
	if (ret != 0) {
		BB_LOG(ERR,
		       "%s: %zu bytes at %p with access 0x%x, iova 0x%" PRIx64
		       ", are not registered: %s",
		       pd->dev->name, len, addr, access, iova, why);
		return ret;
	}
	attr.access = bb_mr_access_in_force(pd->dev, access);
	return bb_mr_create(pd, &attr, out);
}

int
bb_mr_reg(struct bb_pd *pd, void *addr, size_t len, uint32_t access, struct bb_mr **mr)
{
	uint64_t iova = (access & BB_ACCESS_ZERO_BASED) != 0 ? 0 : (uintptr_t)addr;

	return mr_reg(pd, addr, len, iova, access, mr);
}

int
bb_mr_reg_iova(struct bb_pd *pd, void *addr, size_t len, uint64_t iova, uint32_t access,
	       struct bb_mr **mr)
{
	if ((access & BB_ACCESS_ZERO_BASED) != 0)
		iova = 0;
	return mr_reg(pd, addr, len, iova, access, mr);
}

void
bb_mr_keys(struct bb_mr_priv *mr)
{
	const struct bb_drv_mr *key = mr->reg->drv_mr;

	mr->pub.lkey = (mr->pub.access & BB_ACCESS_ON_DEMAND) != 0 ? BB_LKEY_NONE : key->lkey;
	mr->pub.rkey = (mr->pub.access & ACCESS_REMOTE) != 0 ? key->rkey : 0;
}

int
bb_mr_busy(const struct bb_mr_priv *mr, const char *what)
{
	uint32_t windows = __atomic_load_n(&mr->windows, __ATOMIC_RELAXED);

	if (windows != 0) {
		bb_mw_settle(mr->pub.pd->dev);
		windows = __atomic_load_n(&mr->windows, __ATOMIC_RELAXED);
	}
	if (windows == 0 && mr->mkeys == 0)
		return 0;
	BB_LOG(ERR,
	       "%s: the MR with lkey 0x%x is not %s: %u memory window%s bound to it and %u key%s "
	       "to it; unbind the windows and destroy the keys first",
	       mr->pub.pd->dev->name, mr->reg->drv_mr->lkey, what, windows,
	       windows == 1 ? " is" : "s are", mr->mkeys, mr->mkeys == 1 ? " refers" : "s refer");
	return -EBUSY;
}

int
bb_mr_dereg(struct bb_mr *pub)
{
	struct bb_mr_priv *mr = (struct bb_mr_priv *)pub;
	struct bb_mem_table *t;
	struct bb_pd *pd;
	int ret;

	if (pub == NULL)
		return -EINVAL;
	pd = pub->pd;
	t = pd->mem;
	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = bb_mr_busy(mr, "deregistered");
	if (ret != 0)
		goto unlock;
	/*
	 * Removes the key from the table before its deregistration, so that no lookup returns an
	 * invalid key.
	 */
	pthread_mutex_lock(&t->lock);
	bb_mem_table_remove(t, mr->reg);
	pthread_mutex_unlock(&t->lock);
	ret = bb_mem_reg_destroy(pd, mr->reg);
	pthread_mutex_lock(&t->lock);
	if (ret == 0) {
		t->stats.mrs--;
		t->stats.bytes -= bb_mr_bytes(pub);
		pd->mrs--;
		LIST_REMOVE(mr, link);
		if (mr->dm != NULL)
			mr->dm->mrs--;
	} else if (mr->reg->listed) {
		/*
		 * The insertion cannot fail, because an entry was just removed and arrays do not
		 * shrink.
		 */
		(void)bb_mem_table_insert(t, mr->reg);
	}
	pthread_mutex_unlock(&t->lock);
unlock:
	pthread_mutex_unlock(&pd->dev->lock);
	if (ret == 0)
		free(mr);
	return ret;
}
