/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The parts that all posting functions share: keys, flags, the lock, and the doorbell. */
#ifndef POST_H
#define POST_H

#include <errno.h>
#include <string.h>

#include "fab.h"

/* Marks the posting functions that are called most often: all calls in them are inlined. */
#define FAB_HOT __attribute__((flatten))

/* A request of the application. */
struct fab_req {
	const struct iovec *iov;
	void **desc; /* NULL, or the descriptor of each entry of iov */
	size_t n;
	uint64_t flags;
	void *context;
	bool silent; /* inject: the application gets no completion */
	bool imm;
	uint64_t data; /* immediate data, at most 4 bytes (cq_data_size); valid if imm is true */
	uint64_t addr, key;
};

static inline __attribute__((always_inline)) struct fab_ep *
fab_ep_of(struct fid_ep *fid)
{
	return container_of(fid, struct fab_ep, fid);
}

/*
 * Writes the SGE of a buffer. Returns 0, or a negative errno if the buffer is too long or a message
 * to send has no descriptor. A receive without a descriptor takes an empty message only, as with
 * libfabric's provider verbs: a message with data fails with FI_EFAULT.
 */
static inline __attribute__((always_inline)) int
fab_sge(const void *buf, size_t len, const void *desc, bool receive, struct bb_sge *sge)
{
	if (bb_unlikely(len > FAB_MAX_MSG))
		return -FI_EMSGSIZE;
	if (!receive && bb_unlikely(desc == NULL && len != 0))
		return -FI_EINVAL; /* FI_MR_LOCAL: a local buffer needs a descriptor */
	*sge = (struct bb_sge){(uintptr_t)buf, (uint32_t)len, FAB_LKEY(desc)};
	return 0;
}

/* Writes the SGEs of a request. Returns the bytes of the message, or an errno of fab_sge(). */
static inline __attribute__((always_inline)) ssize_t
fab_sges(const struct fab_req *r, bool receive, struct bb_sge *sge)
{
	size_t i, len = 0;

	if (r->n > FAB_IOV)
		return -FI_EINVAL;
	for (i = 0; i < r->n; i++) {
		void *const desc = r->desc != NULL ? r->desc[i] : NULL;
		const int ret =
			fab_sge(r->iov[i].iov_base, r->iov[i].iov_len, desc, receive, &sge[i]);

		if (ret != 0)
			return ret;
		len += r->iov[i].iov_len;
	}
	return len > FAB_MAX_MSG ? -FI_EMSGSIZE : (ssize_t)len;
}

/*
 * Copies a short message into @to, so that it can be posted inline. Returns its bytes, or -1 if it
 * is longer than FAB_INJECT or has too many parts.
 */
static inline __attribute__((always_inline)) int
fab_short(const struct fab_req *r, unsigned char to[FAB_INJECT], const void **data)
{
	size_t i, len = 0;

	*data = to;
	if (r->n > FAB_IOV)
		return -1;
	if (r->n == 1) {
		*data = r->iov->iov_base;
		return r->iov->iov_len <= FAB_INJECT ? (int)r->iov->iov_len : -1;
	}
	for (i = 0; i < r->n; i++) {
		if (r->iov[i].iov_len > FAB_INJECT - len)
			return -1;
		memcpy(to + len, r->iov[i].iov_base, r->iov[i].iov_len);
		len += r->iov[i].iov_len;
	}
	return (int)len;
}

/* Sets the wr_id of a request, and returns its flags for Bluebell. */
static inline __attribute__((always_inline)) uint32_t
fab_want(const struct fab_ep *ep, const struct fab_req *r, uint64_t *wr_id)
{
	const uint32_t fence = (r->flags & FI_FENCE) != 0 ? BB_SEND_FENCE : 0;

	*wr_id = (uintptr_t)r->context;
	if (!r->silent && (!ep->tx_selective || (r->flags & FI_COMPLETION) != 0))
		return fence | BB_SEND_SIGNALED;
	if (r->silent)
		*wr_id = FAB_INJECTED(ep);
	else if (ep->counts)
		*wr_id = FAB_SILENT(ep);
	return fence | ep->quiet;
}

/* Rings the doorbell, unless FI_MORE announces another request. Returns @ret. */
static inline __attribute__((always_inline)) ssize_t
fab_rung(struct fab_ep *ep, const struct fab_req *r, int ret)
{
	/* Also rings if the queue is full, because only executed requests free room. */
	if ((r->flags & FI_MORE) == 0 || ret != 0)
		bb_qp_ring(ep->qp);
	fab_unlock(ep->dev);
	return ret;
}

/* Takes the lock, if the endpoint has a queue pair. */
static inline __attribute__((always_inline)) bool
fab_begin(struct fab_ep *ep)
{
	fab_lock(ep->dev);
	if (bb_likely(ep->qp != NULL))
		return true;
	fab_unlock(ep->dev);
	return false;
}

/* Rings the doorbell for a request with the endpoint's own flags. Returns @ret. */
static inline __attribute__((always_inline)) ssize_t
fab_end(struct fab_ep *ep, int ret)
{
	bb_qp_ring(ep->qp);
	fab_unlock(ep->dev);
	return ret;
}

/* Returns the wr_id of a request with the endpoint's own flags. */
static inline __attribute__((always_inline)) uint64_t
fab_id(const struct fab_own *own, const void *context)
{
	return ((uintptr_t)context & own->context) | own->silent;
}

/* A message that is ready to be posted. */
struct fab_ready {
	unsigned char copy[FAB_INJECT];
	struct bb_sge sge[FAB_IOV];
	const void *data; /* data of a short message, which is posted inline */
	uint32_t len, flags;
	uint64_t wr_id;
	bool inlined;
};

/* Prepares the message of a SEND or WRITE, and takes the lock. Returns 0 or a negative errno. */
static inline __attribute__((always_inline)) ssize_t
fab_prepare(struct fab_ep *ep, const struct fab_req *r, struct fab_ready *m)
{
	ssize_t len = fab_short(r, m->copy, &m->data);

	m->inlined = len >= 0;
	if (!m->inlined) {
		if (r->silent || (r->flags & FI_INJECT) != 0)
			return -FI_EMSGSIZE;
		len = fab_sges(r, false, m->sge);
		if (len < 0)
			return len;
	}
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	m->len = (uint32_t)len;
	m->flags = fab_want(ep, r, &m->wr_id);
	return 0;
}

#endif
