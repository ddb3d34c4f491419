/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory regions and windows. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_drv.h"

/*
 * The driver passes access rights on unchanged, so their bits in bb_mem.h and in libibverbs must be
 * equal.
 */
BB_STATIC_ASSERT((int)BB_ACCESS_LOCAL_WRITE == (int)IBV_ACCESS_LOCAL_WRITE &&
			 (int)BB_ACCESS_REMOTE_WRITE == (int)IBV_ACCESS_REMOTE_WRITE &&
			 (int)BB_ACCESS_REMOTE_READ == (int)IBV_ACCESS_REMOTE_READ &&
			 (int)BB_ACCESS_REMOTE_ATOMIC == (int)IBV_ACCESS_REMOTE_ATOMIC &&
			 (int)BB_ACCESS_MW_BIND == (int)IBV_ACCESS_MW_BIND &&
			 (int)BB_ACCESS_ZERO_BASED == (int)IBV_ACCESS_ZERO_BASED &&
			 (int)BB_ACCESS_ON_DEMAND == (int)IBV_ACCESS_ON_DEMAND &&
			 (int)BB_ACCESS_HUGETLB == (int)IBV_ACCESS_HUGETLB,
		 "bits go through");
BB_STATIC_ASSERT((int)BB_ACCESS_RELAXED_ORDERING == (int)IBV_ACCESS_RELAXED_ORDERING &&
			 BB_ACCESS_OPTIONAL_RANGE == (uint32_t)IBV_ACCESS_OPTIONAL_RANGE,
		 "bits go through");
BB_STATIC_ASSERT((int)BB_MR_REREG_TRANSLATION == (int)IBV_REREG_MR_CHANGE_TRANSLATION &&
			 (int)BB_MR_REREG_PD == (int)IBV_REREG_MR_CHANGE_PD &&
			 (int)BB_MR_REREG_ACCESS == (int)IBV_REREG_MR_CHANGE_ACCESS,
		 "bits go through");

static struct ibv_mr *
region_reg(struct verbs_pd *p, const struct bb_drv_mr_attr *attr, uint32_t access)
{
	errno = 0;
	switch (attr->kind) {
	case BB_DRV_MR_MEM:
		return ibv_reg_mr_iova2(p->pd, attr->addr, attr->len, attr->iova, access);
	case BB_DRV_MR_DM:
		return ibv_reg_dm_mr(p->pd, attr->dm->priv, attr->offset, attr->len, access);
	case BB_DRV_MR_DMABUF:
		return ibv_reg_dmabuf_mr(p->pd, attr->offset, attr->len, attr->iova, attr->fd,
					 (int)access);
	default:
		errno = EOPNOTSUPP;
		return NULL;
	}
}

/*
 * Returns true if a registration may be repeated without the access rights that a device may
 * ignore. Kernels before 5.7 know none of these rights. ibv_reg_mr_iova2() removes them on such
 * kernels. The other calls pass them on, and the kernel or its driver rejects them.
 */
static bool
without_optional(uint32_t access)
{
	return (access & BB_ACCESS_OPTIONAL_RANGE) != 0 && (errno == EINVAL || errno == EOPNOTSUPP);
}

/*
 * Removes the flag ZERO_BASED for MRs other than device memory. The flag is redundant for them,
 * because the iova 0 is passed too. rxe of Linux 6.12 rejects the flag except for windows
 * (drivers/infiniband/sw/rxe/rxe_verbs.h, RXE_ACCESS_SUPPORTED_MR). Device memory needs the flag,
 * because ibv_reg_dm_mr() has no iova argument.
 */
static uint32_t
without_zero_based(enum bb_drv_mr_kind kind, uint32_t access)
{
	return kind == BB_DRV_MR_DM ? access : access & ~(uint32_t)BB_ACCESS_ZERO_BASED;
}

static struct ibv_mr *
region_make(struct verbs_pd *p, const struct bb_drv_mr_attr *attr)
{
	const uint32_t access = without_zero_based(attr->kind, attr->access);
	struct ibv_mr *mr = region_reg(p, attr, access);

	if (mr == NULL && without_optional(access))
		mr = region_reg(p, attr, access & ~BB_ACCESS_OPTIONAL_RANGE);
	return mr;
}

/* Creates the provider's MR or window. Returns 0 or a negative errno. */
static int
object_make(struct verbs_pd *p, const struct bb_drv_mr_attr *attr, struct verbs_mr *m)
{
	errno = 0;
	if (attr->kind == BB_DRV_MR_MW) {
		m->mw = ibv_alloc_mw(p->pd, attr->mw_type == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		if (m->mw == NULL)
			return bb_ibv_errno();
		m->base.rkey = m->mw->rkey;
		return 0;
	}
	m->mr = region_make(p, attr);
	if (m->mr == NULL)
		return attr->kind == BB_DRV_MR_MEM && (attr->access & BB_ACCESS_ON_DEMAND) == 0
			       ? bb_ibv_reg_errno(attr->addr, attr->len)
			       : bb_ibv_errno();
	m->base.lkey = m->mr->lkey;
	m->base.rkey = m->mr->rkey;
	return 0;
}

static void
refused(const struct bb_dev *dev, const struct bb_drv_mr_attr *attr, int ret)
{
	if (attr->kind == BB_DRV_MR_MW)
		BB_LOG(ERR, "%s: cannot allocate a memory window of type %u: %s%s", dev->name,
		       attr->mw_type, strerror(-ret), bb_mem_hint(ret, false));
	else
		BB_LOG(ERR, "%s: cannot register %" PRIu64 " bytes %s %p with access 0x%x: %s%s",
		       dev->name, attr->len,
		       attr->kind == BB_DRV_MR_DMABUF ? "of a dma-buf at" : "at",
		       attr->kind == BB_DRV_MR_DMABUF ? (void *)(uintptr_t)attr->offset
						      : attr->addr,
		       attr->access, strerror(-ret),
		       bb_mem_hint(ret, attr->kind == BB_DRV_MR_DMABUF));
}

/*
 * Returns the reason why the device does not support this MR, whose iova differs from its address.
 * Returns NULL if the device supports it.
 */
static const char *
refuse_iova(const struct verbs_dev *d, const struct bb_drv_mr_attr *attr)
{
	if (attr->kind == BB_DRV_MR_MW ||
	    (attr->kind == BB_DRV_MR_MEM && attr->iova == (uintptr_t)attr->addr))
		return NULL;
	/* siw_reg_user_mr() ignores the iova, so siw would reject or misplace a peer's WRITE. */
	if (d->siw && attr->kind == BB_DRV_MR_MEM)
		return "siw ignores the iova";
	return d->hns ? "libhns copies short receives to the iova as if it were an address" : NULL;
}

/*
 * Registers memory. May run inside an EAL memory event callback, so it allocates only with
 * calloc().
 */
int
verbs_mr_reg(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_drv_mr **out)
{
	const char *why = refuse_iova(verbs_dev_of(pd->dev), attr);
	struct verbs_mr *m;
	int ret;

	if (why != NULL) {
		BB_LOG(ERR,
		       "%s: cannot register an MR with iova 0x%" PRIx64
		       ": the iova must be the address of the memory in this process, because %s: "
		       "use bb_mr_reg()",
		       pd->dev->name, attr->iova, why);
		return -ENOTSUP;
	}
	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		BB_LOG(ERR, "%s: out of memory for a memory region or window", pd->dev->name);
		return -ENOMEM;
	}
	m->kind = attr->kind;
	m->refs = 1;
	ret = object_make(pd->priv, attr, m);
	if (ret != 0) {
		refused(pd->dev, attr, ret);
		free(m);
		return ret;
	}
	*out = &m->base;
	return 0;
}

void
verbs_mr_put(struct verbs_mr *m)
{
	if (__atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(m);
}

int
verbs_mr_dereg(struct bb_pd *pd, struct bb_drv_mr *mr)
{
	struct verbs_mr *m = container_of(mr, struct verbs_mr, base);
	int err;

	err = m->kind == BB_DRV_MR_MW ? ibv_dealloc_mw(m->mw) : ibv_dereg_mr(m->mr);
	err = verbs_gone(verbs_dev_of(pd->dev), err);
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot release key 0x%x: %s", pd->dev->name, mr->rkey,
		       strerror(err));
		return -err;
	}
	if (m->kind == BB_DRV_MR_MW)
		__atomic_store_n(&m->mw, NULL, __ATOMIC_RELAXED);
	verbs_mr_put(m);
	return 0;
}

int
verbs_mr_rereg(struct bb_pd *pd, struct bb_drv_mr *mr, uint32_t flags, struct bb_pd *new_pd,
	       void *addr, uint64_t len, uint32_t access)
{
	struct verbs_mr *m = container_of(mr, struct verbs_mr, base);
	struct verbs_pd *np = new_pd != NULL ? new_pd->priv : NULL;
	int ret;

	access = without_zero_based(m->kind, access);
	errno = 0;
	ret = ibv_rereg_mr(m->mr, (int)flags, np != NULL ? np->pd : NULL, addr, len, (int)access);
	if (ret != 0 && ret != IBV_REREG_MR_ERR_DO_FORK_OLD && without_optional(access)) {
		errno = 0;
		ret = ibv_rereg_mr(m->mr, (int)flags, np != NULL ? np->pd : NULL, addr, len,
				   (int)(access & ~BB_ACCESS_OPTIONAL_RANGE));
	}
	/*
	 * The new registration is valid. Only MADV_DOFORK for the old memory failed, so log it and
	 * go on.
	 */
	if (ret == IBV_REREG_MR_ERR_DO_FORK_OLD) {
		BB_LOG(WARNING,
		       "%s: an MR was re-registered, but the kernel still excludes its old memory "
		       "from fork(): child processes cannot access that memory",
		       pd->dev->name);
	} else if (ret != 0) {
		/* @ret is an enum ibv_rereg_mr_err_code; the cause of the failure is in errno. */
		ret = (flags & BB_MR_REREG_TRANSLATION) != 0 ? bb_ibv_reg_errno(addr, len)
							     : bb_ibv_errno();
		BB_LOG(ERR, "%s: cannot re-register lkey 0x%x (flags 0x%x): %s%s", pd->dev->name,
		       mr->lkey, flags, strerror(-ret),
		       ret == -EOPNOTSUPP || ret == -ENOTSUP || ret == -ENOSYS
			       ? ": the device cannot re-register: deregister the MR and register "
				 "it again"
			       : bb_mem_hint(ret, false));
		return ret == -ENOSYS || ret == -EOPNOTSUPP ? -ENOTSUP : ret;
	}
	mr->lkey = m->mr->lkey;
	mr->rkey = m->mr->rkey;
	return 0;
}
