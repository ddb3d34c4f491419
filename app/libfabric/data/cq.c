/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completions: taken from the device, converted, counted, and kept until the application reads
 * them. */
#include <stdlib.h>
#include <string.h>

#include "fab.h"

/* Counts a completion for the counters of its endpoint. */
static void
count(const struct fab_ep *ep, const struct bb_wc *wc)
{
	static const uint8_t kinds[] = {
		[BB_WC_SEND] = FAB_COUNT_SEND,
		[BB_WC_RDMA_WRITE] = FAB_COUNT_WRITE,
		[BB_WC_RDMA_READ] = FAB_COUNT_READ,
		[BB_WC_CMP_SWAP] = FAB_COUNT_READ,
		[BB_WC_FETCH_ADD] = FAB_COUNT_READ,
		[BB_WC_NOP] = FAB_COUNTS,
		[BB_WC_RECV] = FAB_COUNT_RECV,
		[BB_WC_RECV_RDMA_IMM] = FAB_COUNTS, /* FI_RECV counts messages only */
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
		ep->dev->on->broken(ep);
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

/*
 * Converts the data of a peer's fi_writedata() that consumed a receive without FI_COMPLETION. The
 * target is always notified of such data (fi_rma(3)).
 */
static __attribute__((noinline)) bool
convert_data(const struct bb_wc *wc, struct fab_comp *c)
{
	*c = (struct fab_comp){
		.entry.flags = flags_of(wc) | FI_REMOTE_CQ_DATA,
		.entry.len = wc->byte_len,
		.entry.data = bb_be32(wc->imm),
		.status = BB_WC_SUCCESS,
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
		return wc->opcode == BB_WC_RECV_RDMA_IMM && convert_data(wc, c);
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

unsigned int
fab_cq_fill(struct fab_cq *cq)
{
	struct bb_wc wcs[FAB_POLL];
	unsigned int i, n;

	if (bb_unlikely(cq->domain->dev->child) || !make_room(cq))
		return 0;
	n = bb_cq_poll(cq->cq, wcs, FAB_POLL);
	for (i = 0; i < n; i++)
		if (convert(&wcs[i], &cq->comp[cq->count]))
			cq->count++;
	return n;
}

int
fab_cq_reserve(struct fab_cq *cq, uint32_t entries)
{
	const struct bb_dev_attr *attr = &cq->domain->dev->attr;
	uint32_t need = cq->used + entries;
	int ret = 0;

	/* Keeps one entry free: bb_cq_resize() fails while all entries may be in use. */
	if (attr->cq_resize && need < attr->max_cqe)
		need++;
	if (need > bb_cq_depth(cq->cq))
		ret = bb_cq_resize(cq->cq, need);
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

ssize_t
fab_cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct fab_cq *cq = container_of(fid, struct fab_cq, fid);
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
	struct bb_cq *which;

	if (cq->at != cq->count)
		return false;
	if (cq->domain->dev->child)
		return true;
	fab_timer_clear(cq->timer);
	if (cq->channel != NULL) {
		/* The descriptor stays readable until every event is read. */
		while (bb_channel_get(cq->channel, &which) == 0)
			;
		bb_cq_arm(cq->cq, false);
	}
	fab_cq_fill(cq);
	return cq->at == cq->count;
}
