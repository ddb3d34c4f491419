/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion queues: open, read errors, close. cq_wait.c has their wait objects. */
#include <stdlib.h>

#include "fab.h"

/* Depth of a CQ on a device that cannot resize it. */
#define FIXED_DEPTH 32768u

static struct fab_cq *
cq_of(struct fid_cq *fid)
{
	return container_of(fid, struct fab_cq, fid);
}

static ssize_t
cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	const ssize_t n = fab_cq_read(fid, buf, count);
	ssize_t i;

	for (i = 0; i < n; i++)
		src[i] = FI_ADDR_NOTAVAIL;
	return n;
}

/* Returns the errno that libfabric has for a failed request. */
static int
error_of(enum bb_wc_status status)
{
	switch (status) {
	case BB_WC_WR_FLUSH_ERR:
		return FI_ECANCELED;
	case BB_WC_LOC_LEN_ERR:
		return FI_ETRUNC;
	case BB_WC_LOC_PROT_ERR:
		return FI_EFAULT;
	case BB_WC_REM_ACCESS_ERR:
	case BB_WC_LOC_ACCESS_ERR:
		return FI_EACCES;
	case BB_WC_REM_INV_REQ_ERR:
		return FI_EINVAL;
	case BB_WC_RETRY_EXC_ERR:
		return FI_EHOSTUNREACH;
	case BB_WC_RNR_RETRY_EXC_ERR:
		return FI_ENORX;
	default:
		return FI_EIO;
	}
}

static ssize_t
cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct fab_cq *cq = cq_of(fid);
	struct fab_dev *dev = cq->domain->dev;
	const struct fab_comp *c;
	ssize_t ret = -FI_EAGAIN;

	fab_lock(dev);
	c = &cq->comp[cq->at];
	if (cq->at == cq->count || c->status == BB_WC_SUCCESS)
		goto unlock;
	buf->op_context = c->entry.op_context;
	buf->flags = c->entry.flags;
	buf->len = buf->olen = 0;
	buf->buf = NULL;
	buf->data = buf->tag = 0;
	buf->err = error_of(c->status);
	buf->prov_errno = c->status;
	buf->err_data_size = 0;
	if ((flags & FI_PEEK) == 0)
		cq->at++;
	ret = 1;
unlock:
	fab_unlock(dev);
	return ret;
}

static const char *
cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	(void)fid, (void)err_data;
	return fab_error_text(bb_wc_status_cause((enum bb_wc_status)prov_errno, 0), buf, len);
}

static int
cq_close(struct fid *fid)
{
	struct fab_cq *cq = container_of(fid, struct fab_cq, fid.fid);
	struct fab_dev *dev = cq->domain->dev;
	int ret = -FI_EBUSY;

	fab_lock(dev);
	if (cq->refs == 0)
		ret = dev->child ? 0 : bb_cq_destroy(cq->cq);
	if (ret == 0) {
		fab_wait_close(cq);
		cq->domain->refs--;
	}
	fab_unlock(dev);
	if (ret == 0) {
		free(cq->comp);
		free(cq);
	}
	return ret;
}

static struct fi_ops cq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = fab_no_bind,
	.control = fab_wait_control,
	.ops_open = fab_no_ops_open,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = fab_cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = fab_wait_sread,
	.sreadfrom = fab_wait_sreadfrom,
	.signal = fab_wait_signal,
	.strerror = cq_strerror,
};

int
fab_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **fid, void *context)
{
	struct fab_domain *d = container_of(domain, struct fab_domain, fid);
	struct bb_cq_attr bb;
	struct fab_cq *cq;
	int ret = fab_dev_check(d->dev);

	if (ret != 0)
		return ret;
	if (attr->format > FI_CQ_FORMAT_TAGGED) {
		FAB_WARN(CQ, "invalid CQ format %d (at most FI_CQ_FORMAT_TAGGED, %d)\n",
			 attr->format, FI_CQ_FORMAT_TAGGED);
		return -FI_EINVAL;
	}
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return -FI_ENOMEM;
	cq->domain = d;
	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr->format;
	ret = fab_wait_open(cq, attr->wait_obj);
	if (ret != 0)
		goto free_cq;
	bb_cq_attr_init(&bb);
	bb.lcore = d->dev->lcore;
	bb.channel = cq->channel;
	if (attr->size > bb.depth)
		bb.depth = (uint32_t)attr->size;
	if (!d->dev->attr.cq_resize && bb.depth < FIXED_DEPTH)
		bb.depth = FIXED_DEPTH;
	fab_lock(d->dev);
	ret = bb_cq_create(d->dev->dev, &bb, &cq->cq);
	if (ret == 0)
		d->refs++;
	fab_unlock(d->dev);
	if (ret != 0)
		goto close_wait;
	cq->fid.fid = (struct fid){FI_CLASS_CQ, context, &cq_fi_ops};
	cq->fid.ops = &cq_ops;
	*fid = &cq->fid;
	return 0;

close_wait:
	fab_wait_close(cq);
free_cq:
	free(cq);
	return ret;
}
