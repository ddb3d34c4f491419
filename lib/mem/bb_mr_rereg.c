/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Re-registration of memory regions. The old key is removed from the address table before it
 * becomes invalid, and the new key is added after it is valid. On an error the old key returns to
 * the table.
 */
#include <errno.h>
#include <inttypes.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"

#define REREG_ALL ((uint32_t)(BB_MR_REREG_TRANSLATION | BB_MR_REREG_PD | BB_MR_REREG_ACCESS))

/* PD, memory and rights that a region gets by the re-registration. */
struct rereg {
	struct bb_pd *pd;
	void *addr;
	uint64_t len, iova;
	uint32_t access;
};

/*
 * Checks the rules of ibv_rereg_mr() in libibverbs, of ib_uverbs_rereg_mr(), and for ON_DEMAND of
 * mlx5_ib_rereg_user_mr().
 */
static int
rereg_check(const struct bb_mr_priv *mr, uint32_t flags, const struct bb_pd *pd, const void *addr,
	    size_t len, uint32_t access, const char **why)
{
	const struct bb_dev *dev = mr->pub.pd->dev;
	bool trans = (flags & BB_MR_REREG_TRANSLATION) != 0;

	if (flags == 0 || (flags & ~REREG_ALL) != 0)
		*why = "flags must be a combination of TRANSLATION, PD and ACCESS";
	else if (mr->kind != BB_DRV_MR_MEM)
		*why = "device memory and dma-bufs cannot be re-registered: deregister the MR "
		       "and register it again";
	else if (trans && (addr == NULL || len == 0))
		*why = "the new memory is NULL or empty";
	else if (trans && len > UINTPTR_MAX - (uintptr_t)addr)
		*why = "the new memory exceeds the address space";
	else if (trans && len > dev->attr.max_mr_size)
		*why = "the new memory is longer than the device's max_mr_size";
	else if ((flags & BB_MR_REREG_PD) != 0 && (pd == NULL || pd->dev != dev))
		*why = "the new PD is NULL or another device's";
	else if (access != 0 && (flags & BB_MR_REREG_ACCESS) == 0)
		*why = "access is given, but the flag BB_MR_REREG_ACCESS is not";
	else if ((access & BB_ACCESS_ZERO_BASED) != 0)
		*why = "ZERO_BASED is allowed in bb_mr_reg() only";
	if (*why != NULL)
		return -EINVAL;
	if ((flags & BB_MR_REREG_ACCESS) != 0) {
		int ret = bb_mr_access_check(dev, access, why);

		if (ret != 0)
			return ret;
		if (!trans && ((access ^ mr->pub.access) & BB_ACCESS_ON_DEMAND) != 0) {
			*why = "ON_DEMAND can change only with BB_MR_REREG_TRANSLATION";
			return -ENOTSUP;
		}
	}
	return 0;
}

static void
entry_remove(struct bb_mem_table *t, const struct bb_mem_reg *reg)
{
	pthread_mutex_lock(&t->lock);
	bb_mem_table_remove(t, reg);
	pthread_mutex_unlock(&t->lock);
}

/*
 * Completes a re-registration. The caller has removed the entries of the old range and has inserted
 * @hold, which reserves room for the new entry, into the new PD's table.
 */
static void
rereg_settle(struct bb_mr_priv *mr, const struct rereg *to, const struct bb_mem_reg *hold)
{
	struct bb_mem_table *from = mr->pub.pd->mem, *t = to->pd->mem;
	struct bb_mem_reg *reg = mr->reg;

	pthread_mutex_lock(&from->lock);
	from->stats.mrs--;
	from->stats.bytes -= bb_mr_bytes(&mr->pub);
	pthread_mutex_unlock(&from->lock);
	mr->pub.pd->mrs--;
	LIST_REMOVE(mr, link);
	mr->pub.pd = to->pd;
	mr->pub.addr = to->addr;
	mr->pub.len = to->len;
	mr->pub.iova = to->iova;
	mr->pub.access = to->access;
	bb_mr_keys(mr);
	bb_mem_reg_range(reg, (uintptr_t)to->addr, to->len, to->iova, to->access);
	to->pd->mrs++;
	LIST_INSERT_HEAD(&to->pd->mr_list, mr, link);
	pthread_mutex_lock(&t->lock);
	t->stats.mrs++;
	t->stats.bytes += bb_mr_bytes(&mr->pub);
	bb_mem_table_remove(t, hold);
	if (reg->listed)
		(void)bb_mem_table_insert(t, reg);
	pthread_mutex_unlock(&t->lock);
}

static int
rereg_locked(struct bb_mr_priv *mr, uint32_t flags, const struct rereg *to)
{
	struct bb_pd *pd = mr->pub.pd;
	bool trans = (flags & BB_MR_REREG_TRANSLATION) != 0;
	bool access = (flags & BB_MR_REREG_ACCESS) != 0;
	/*
	 * Placeholder entry, which no lookup finds. It reserves room in the table, so that the
	 * insertion of the new range cannot fail.
	 */
	struct bb_mem_reg hold = {.kind = BB_MEM_EXPLICIT,
				  .drv_mr = mr->reg->drv_mr,
				  .start = UINT64_MAX,
				  .end = UINT64_MAX};
	int ret;

	ret = bb_mr_busy(mr, "re-registered");
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&to->pd->mem->lock);
	ret = bb_mem_table_insert(to->pd->mem, &hold);
	pthread_mutex_unlock(&to->pd->mem->lock);
	if (ret != 0)
		return ret;
	entry_remove(pd->mem, mr->reg);
	ret = pd->dev->drv->mr_rereg(
		pd, mr->reg->drv_mr, flags, (flags & BB_MR_REREG_PD) != 0 ? to->pd : NULL,
		trans ? to->addr : NULL, trans ? to->len : 0, access ? to->access : 0);
	if (ret == 0) {
		rereg_settle(mr, to, &hold);
		return 0;
	}
	entry_remove(to->pd->mem, &hold);
	pthread_mutex_lock(&pd->mem->lock);
	if (mr->reg->listed)
		(void)bb_mem_table_insert(pd->mem, mr->reg);
	pthread_mutex_unlock(&pd->mem->lock);
	return ret;
}

int
bb_mr_rereg(struct bb_mr *pub, uint32_t flags, struct bb_pd *pd, void *addr, size_t len,
	    uint32_t access)
{
	struct bb_mr_priv *mr = (struct bb_mr_priv *)pub;
	const char *why = NULL;
	struct bb_dev *dev;
	struct rereg to;
	int ret;

	if (pub == NULL)
		return -EINVAL;
	dev = pub->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	ret = rereg_check(mr, flags, pd, addr, len, access, &why);
	if (ret != 0) {
		BB_LOG(ERR, "%s: the MR with lkey 0x%x is not re-registered (flags 0x%x): %s",
		       dev->name, mr->reg->drv_mr->lkey, flags, why);
		return ret;
	}
	to = (struct rereg){pub->pd, pub->addr, pub->len, pub->iova, pub->access};
	if ((flags & BB_MR_REREG_PD) != 0)
		to.pd = pd;
	if ((flags & BB_MR_REREG_ACCESS) != 0)
		to.access =
			bb_mr_access_in_force(dev, access) | (pub->access & BB_ACCESS_ZERO_BASED);
	if ((flags & BB_MR_REREG_TRANSLATION) != 0) {
		to.addr = addr;
		to.len = len;
		to.iova = (uintptr_t)addr;
		to.access &= ~(uint32_t)BB_ACCESS_ZERO_BASED;
	}
	pthread_mutex_lock(&dev->lock);
	(void)bb_mem_reap_locked(pub->pd);
	ret = rereg_locked(mr, flags, &to);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}
