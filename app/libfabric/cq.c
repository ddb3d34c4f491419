/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion queues: reading of completions and of errors. cq_wait.c has their wait objects. */
#include <stdlib.h>
#include <string.h>

#include "fab.h"

/* Depth of a CQ on a device that cannot resize it. */
#define FIXED_DEPTH 32768u

static uint64_t last_id; /* id of the CQ that was opened last */

static struct fab_cq *
cq_of(struct fid_cq *fid)
{
	return container_of(fid, struct fab_cq, fid);
}

/* Counts a completion for the counters of its endpoint. */
static void
count(const struct fab_ep *ep, const struct bb_wc *wc)
{
	static const uint8_t kinds[] = {
		[BB_WC_SEND] = FAB_COUNT_SEND,      [BB_WC_RDMA_WRITE] = FAB_COUNT_WRITE,
		[BB_WC_RDMA_READ] = FAB_COUNT_READ, [BB_WC_CMP_SWAP] = FAB_COUNT_READ,
		[BB_WC_FETCH_ADD] = FAB_COUNT_READ, [BB_WC_NOP] = FAB_COUNTS,
		[BB_WC_RECV] = FAB_COUNT_RECV,      [BB_WC_RECV_RDMA_IMM] = FAB_COUNT_RECV,
	};
	struct fab_cntr *c;

	if (wc->opcode >= sizeof(kinds) || kinds[wc->opcode] >= FAB_COUNTS)
		return;
	c = ep->cntr[kinds[wc->opcode]];
	if (c == NULL)
		return;
	if (wc->status == BB_WC_SUCCESS)
		c->value++;
	else
		c->errors++;
}

static inline uint64_t
flags_of(const struct bb_wc *wc)
{
	static const uint64_t flags[] = {
		[BB_WC_SEND] = FI_MSG | FI_SEND,
		[BB_WC_RDMA_WRITE] = FI_RMA | FI_WRITE,
		[BB_WC_RDMA_READ] = FI_RMA | FI_READ,
		[BB_WC_CMP_SWAP] = FI_ATOMIC | FI_READ,
		[BB_WC_FETCH_ADD] = FI_ATOMIC | FI_READ,
		[BB_WC_RECV] = FI_MSG | FI_RECV,
		[BB_WC_RECV_RDMA_IMM] = FI_RMA | FI_REMOTE_WRITE,
	};

	return wc->opcode < sizeof(flags) / sizeof(flags[0]) ? flags[wc->opcode] : 0;
}

/*
 * Converts a completion for the application. Returns false if the application gets none. Only the
 * status, wr_id and qp of a failed completion are valid, and its opcode.
 */
static __attribute__((noinline)) bool
convert_failed(struct fab_ep *ep, const struct bb_wc *wc, struct fab_comp *c)
{
	if (wc->status != BB_WC_WR_FLUSH_ERR)
		fab_ep_broken(ep);
	if (wc->wr_id == FAB_INJECTED(ep))
		return false;
	*c = (struct fab_comp){
		.entry.op_context =
			wc->wr_id == FAB_SILENT(ep) ? NULL : (void *)(uintptr_t)wc->wr_id,
		.entry.flags = flags_of(wc),
		.status = (enum bb_wc_status)wc->status,
	};
	return true;
}

static inline __attribute__((always_inline)) bool
convert(const struct bb_wc *wc, struct fab_comp *c)
{
	struct fab_ep *ep = wc->qp->user;
	const bool data = (wc->flags & BB_WC_WITH_IMM) != 0;
	const bool received = wc->opcode == BB_WC_RECV || wc->opcode == BB_WC_RECV_RDMA_IMM;

	if (bb_unlikely(ep->counts))
		count(ep, wc);
	if (bb_unlikely(wc->status != BB_WC_SUCCESS))
		return convert_failed(ep, wc, c);
	if (wc->wr_id == FAB_SILENT(ep) || wc->wr_id == FAB_INJECTED(ep))
		return false;
	c->entry.op_context = (void *)(uintptr_t)wc->wr_id;
	c->entry.flags = flags_of(wc) | (data ? FI_REMOTE_CQ_DATA : 0);
	c->entry.len = received ? wc->byte_len : 0;
	c->entry.buf = NULL;
	c->entry.data = data ? bb_be32(wc->imm) : 0;
	c->status = BB_WC_SUCCESS;
	return true;
}

/* Makes room for FAB_POLL completions after those that the application has not read. */
static bool
make_room(struct fab_cq *cq)
{
	struct fab_comp *comp;

	if (cq->at != 0) {
		cq->count -= cq->at;
		if (cq->count != 0)
			memmove(cq->comp, cq->comp + cq->at, cq->count * sizeof(cq->comp[0]));
		cq->at = 0;
	}
	if (cq->count + FAB_POLL <= cq->size)
		return true;
	comp = realloc(cq->comp, (cq->size * 2 + FAB_POLL) * sizeof(*comp));
	if (comp == NULL)
		return false;
	cq->comp = comp;
	cq->size = cq->size * 2 + FAB_POLL;
	return true;
}

void
fab_cq_fill(struct fab_cq *cq)
{
	struct bb_wc wcs[FAB_POLL];
	unsigned int i, n;

	if (bb_unlikely(cq->domain->dev->child) || !make_room(cq))
		return;
	n = bb_cq_poll(cq->cq, wcs, FAB_POLL);
	for (i = 0; i < n; i++)
		if (convert(&wcs[i], &cq->comp[cq->count]))
			cq->count++;
}

int
fab_cq_reserve(struct fab_cq *cq, uint32_t entries)
{
	int ret = 0;

	if (cq->used + entries > bb_cq_depth(cq->cq))
		ret = bb_cq_resize(cq->cq, cq->used + entries);
	if (ret == 0)
		cq->used += entries;
	else
		FAB_WARN(CQ,
			 "a CQ of %u entries cannot get room for %u more: %s; bind fewer "
			 "endpoints to it\n",
			 bb_cq_depth(cq->cq), entries, strerror(-ret));
	return ret;
}

/* Writes one entry in the format of the CQ, and returns the address of the next entry. */
static void *
put(const struct fab_cq *cq, void *buf, const struct fab_comp *comp)
{
	/* The struct of each format is a prefix of the next larger one. */
	switch (cq->format) {
	case FI_CQ_FORMAT_DATA:
		memcpy(buf, &comp->entry, sizeof(struct fi_cq_data_entry));
		return (struct fi_cq_data_entry *)buf + 1;
	case FI_CQ_FORMAT_TAGGED:
		memcpy(buf, &comp->entry, sizeof(comp->entry));
		((struct fi_cq_tagged_entry *)buf)->tag = 0; /* messages have no tag here */
		return (struct fi_cq_tagged_entry *)buf + 1;
	case FI_CQ_FORMAT_MSG:
		memcpy(buf, &comp->entry, sizeof(struct fi_cq_msg_entry));
		return (struct fi_cq_msg_entry *)buf + 1;
	default:
		memcpy(buf, &comp->entry, sizeof(struct fi_cq_entry));
		return (struct fi_cq_entry *)buf + 1;
	}
}

static ssize_t
cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct fab_cq *cq = cq_of(fid);
	struct fab_dev *dev = cq->domain->dev;
	ssize_t n = 0;

	fab_lock(dev);
	bb_count_add(&dev->polls, 1);
	if (cq->at == cq->count)
		fab_cq_fill(cq);
	while ((size_t)n < count && cq->at < cq->count &&
	       cq->comp[cq->at].status == BB_WC_SUCCESS) {
		buf = put(cq, buf, &cq->comp[cq->at++]);
		n++;
	}
	if (n == 0)
		n = cq->at < cq->count && count != 0 ? -FI_EAVAIL : -FI_EAGAIN;
	fab_unlock(dev);
	return n;
}

bool
fab_cq_is_empty(struct fab_cq *cq)
{
	if (cq->at != cq->count)
		return false;
	if (cq->domain->dev->child)
		return true;
	fab_timer_clear(cq->timer);
	if (cq->channel != NULL)
		bb_cq_arm(cq->cq, false);
	fab_cq_fill(cq);
	return cq->at == cq->count;
}

static ssize_t
cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	const ssize_t n = cq_read(fid, buf, count);
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
	const char *text = bb_wc_status_cause((enum bb_wc_status)prov_errno, 0);

	(void)fid, (void)err_data;
	if (buf != NULL && len != 0) {
		strncpy(buf, text, len - 1);
		buf[len - 1] = '\0';
	}
	return text;
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
	.read = cq_read,
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
	cq->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
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
