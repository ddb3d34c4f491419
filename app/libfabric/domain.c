/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Domains, and their memory regions. */
#include <stdlib.h>
#include <string.h>

#include "fab.h"

static int
mr_close(struct fid *fid)
{
	struct fab_mr *m = container_of(fid, struct fab_mr, fid.fid);
	struct fab_domain *d = m->domain;
	int ret;

	fab_lock(d->dev);
	ret = d->dev->child ? 0 : bb_mr_dereg(m->mr);
	if (ret == 0)
		d->refs--;
	fab_unlock(d->dev);
	if (ret == 0)
		free(m);
	return ret;
}

static struct fi_ops mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = fab_no_bind,
	.control = fab_no_control,
	.ops_open = fab_no_ops_open,
};

/*
 * Rights of a region. The device may read each region for its own process. Atomics of libfabric
 * have no flag of their own, so FI_REMOTE_WRITE includes them.
 */
static uint32_t
rights(uint64_t access, bool atomics)
{
	uint32_t bb = 0;

	if ((access & (FI_RECV | FI_READ)) != 0)
		bb |= BB_ACCESS_LOCAL_WRITE;
	if ((access & FI_REMOTE_READ) != 0)
		bb |= BB_ACCESS_REMOTE_READ;
	if ((access & FI_REMOTE_WRITE) != 0)
		bb |= BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE |
		      (atomics ? BB_ACCESS_REMOTE_ATOMIC : 0u);
	return bb;
}

static int
mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
       uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct fab_domain *d = container_of(fid, struct fab_domain, fid.fid);
	struct fab_mr *m;
	int ret;

	(void)requested_key; /* FI_MR_PROV_KEY: the device chooses the key */
	/* This provider needs no flags. ofi_rxm sets one for libfabric's own cache. */
	(void)flags;
	if (fid->fclass != FI_CLASS_DOMAIN || offset != 0) {
		FAB_WARN(MR, "a region needs a domain and offset 0, not %llu (FI_MR_VIRT_ADDR)\n",
			 (unsigned long long)offset);
		return -FI_EINVAL;
	}
	ret = fab_dev_check(d->dev);
	if (ret != 0)
		return ret;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -FI_ENOMEM;
	fab_lock(d->dev);
	ret = bb_mr_reg(d->pd, (void *)(uintptr_t)buf, len, rights(access, d->dev->attr.atomics),
			&m->mr);
	if (ret == 0)
		d->refs++;
	fab_unlock(d->dev);
	if (ret != 0) {
		FAB_WARN(MR, "%zu bytes at %p cannot be registered: %s\n", len, buf,
			 strerror(-ret));
		free(m);
		return ret;
	}
	m->domain = d;
	m->fid.fid = (struct fid){FI_CLASS_MR, context, &mr_fi_ops};
	m->fid.mem_desc = FAB_DESC(m->mr->lkey);
	m->fid.key = m->mr->rkey;
	*mr = &m->fid;
	return 0;
}

static int
mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
	uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	if (count != 1) {
		FAB_WARN(MR, "a region of %zu parts is not supported: use 1 (mr_iov_limit)\n",
			 count);
		return -FI_EINVAL;
	}
	return mr_reg(fid, iov->iov_base, iov->iov_len, access, offset, requested_key, flags, mr,
		      context);
}

static int
mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	/* attr->iface is valid with FI_HMEM only, which the provider does not have. */
	return mr_regv(fid, attr->mr_iov, attr->iov_count, attr->access, attr->offset,
		       attr->requested_key, flags, mr, attr->context);
}

struct fi_ops_mr fab_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};

static int
domain_close(struct fid *fid)
{
	struct fab_domain *d = container_of(fid, struct fab_domain, fid.fid);
	int ret;

	fab_lock(d->dev);
	ret = d->refs != 0 ? -FI_EBUSY : d->dev->child ? 0 : bb_pd_free(d->pd);
	if (ret == 0)
		d->fabric->refs--;
	fab_unlock(d->dev);
	if (ret == 0)
		free(d);
	return ret;
}

static int
no_av(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context)
{
	(void)domain, (void)attr, (void)av, (void)context;
	return -FI_ENOSYS;
}

static int
no_scalable(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context)
{
	(void)domain, (void)info, (void)sep, (void)context;
	return -FI_ENOSYS;
}

static int
no_poll(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset)
{
	(void)domain, (void)attr, (void)pollset;
	return -FI_ENOSYS;
}

static int
no_stx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context)
{
	(void)domain, (void)attr, (void)stx, (void)context;
	return -FI_ENOSYS;
}

static int
query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
	     struct fi_atomic_attr *attr, uint64_t flags)
{
	int ret;

	(void)domain;
	attr->size = sizeof(uint64_t);
	if ((flags & FI_COMPARE_ATOMIC) != 0)
		ret = fab_atomic_ops.compwritevalid(NULL, type, op, &attr->count);
	else if ((flags & FI_FETCH_ATOMIC) != 0)
		ret = fab_atomic_ops.readwritevalid(NULL, type, op, &attr->count);
	else
		ret = fab_atomic_ops.writevalid(NULL, type, op, &attr->count);
	return ret;
}

static struct fi_ops domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = fab_no_bind,
	.control = fab_no_control,
	.ops_open = fab_no_ops_open,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = no_av,
	.cq_open = fab_cq_open,
	.endpoint = fab_endpoint,
	.scalable_ep = no_scalable,
	.cntr_open = fab_cntr_open,
	.poll_open = no_poll,
	.stx_ctx = no_stx,
	.srx_ctx = fab_srx_open,
	.query_atomic = query_atomic,
};

int
fab_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
	   void *context)
{
	struct fab_fabric *f = container_of(fabric, struct fab_fabric, fid);
	struct fab_domain *d;
	int ret = fab_dev_check(f->dev);

	(void)info;
	if (ret != 0)
		return ret;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return -FI_ENOMEM;
	d->fabric = f;
	d->dev = f->dev;
	fab_lock(d->dev);
	ret = bb_pd_alloc(d->dev->dev, &d->pd);
	if (ret == 0)
		f->refs++;
	fab_unlock(d->dev);
	if (ret != 0) {
		free(d);
		return ret;
	}
	d->fid.fid = (struct fid){FI_CLASS_DOMAIN, context, &domain_fi_ops};
	d->fid.ops = &domain_ops;
	d->fid.mr = &fab_mr_ops;
	*domain = &d->fid;
	return 0;
}
