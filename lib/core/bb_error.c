/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Errors of queue pairs: recorded when they occur, formatted as text on request. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bb_core.h"
#include "bb_error.h"
#include "bb_mem_table.h"
#include "bb_text.h"
#include "bb_wqe_priv.h"

/* Largest number of SGEs of the failed WQE that the error text lists. */
#define PIECES_MAX 8

/*
 * The first error of a QP. The poll writes it without a lock. It is freed when the QP is reset or
 * destroyed.
 */
struct bb_qp_error {
	struct bb_wc wc;
	bool send;
	uint32_t n;
	struct bb_wqe_piece pieces[PIECES_MAX];
	char wqe[640];
};

/* Returns the name of an opcode in struct bb_sq_wqe. */
static const char *
request_name(uint8_t opcode)
{
	return opcode == BB_SQ_BIND_MW     ? "BIND_MW"
	       : opcode == BB_SQ_LOCAL_INV ? "LOCAL_INV"
					   : bb_wqe_opcode_name(opcode);
}

/* Formats the WQE at @counter and copies its SGEs. */
static void
wqe_take(struct bb_qp_error *e, const struct bb_qp *qp, bool send, uint16_t counter)
{
	const bool ud = qp->ctrl->init.type == BB_QPT_UD;
	const struct bb_srqring *srq;
	const uint8_t *wqe;

	e->send = send;
	if (send && qp->sq.buf == NULL) {
		snprintf(e->wqe, sizeof(e->wqe), "%s in slot %u, posted through libibverbs",
			 request_name(qp->sq.wqes[counter & qp->sq.mask].opcode), counter);
		if (qp->sq.ops->request != NULL)
			e->n = qp->sq.ops->request(&qp->sq, counter, e->pieces, PIECES_MAX);
	} else if (send) {
		bb_wqe_dump(e->wqe, sizeof(e->wqe), qp->sq.buf, qp->sq.mask + 1, counter, ud);
		e->n = bb_wqe_pieces(e->pieces, PIECES_MAX, qp->sq.buf, qp->sq.mask + 1, counter,
				     ud);
	} else if (qp->ctrl->init.srq != NULL) {
		/*
		 * In an SRQ's WQE the scatter list follows the first segment, which links the WQE
		 * to the next.
		 */
		srq = &qp->ctrl->init.srq->ring;
		wqe = (const uint8_t *)(bb_srqring_wqe(srq, counter) + 1);
		bb_recv_wqe_dump(e->wqe, sizeof(e->wqe), wqe, (1u << srq->log_stride) - BB_WQE_SEG);
		e->n = bb_recv_wqe_pieces(e->pieces, PIECES_MAX, wqe,
					  (1u << srq->log_stride) - BB_WQE_SEG);
	} else {
		wqe = qp->rq.buf + ((size_t)(counter & qp->rq.mask) << qp->rq.log_stride);
		bb_recv_wqe_dump(e->wqe, sizeof(e->wqe), wqe, 1u << qp->rq.log_stride);
		e->n = bb_recv_wqe_pieces(e->pieces, PIECES_MAX, wqe, 1u << qp->rq.log_stride);
	}
}

void
bb_qp_error_record(struct bb_qp *qp, const struct bb_wc *wc, bool send, uint16_t counter)
{
	struct bb_qp_error *e;

	/*
	 * This allocation is allowed because an error is not on the fast path. If there is no
	 * memory, the error is only logged.
	 */
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return;
	e->wc = *wc;
	wqe_take(e, qp, send, counter);
	BB_LOG(ERR, "QP 0x%x: the failed %s: %s", qp->qpn, send ? "request" : "receive", e->wqe);
	__atomic_store_n(&qp->ctrl->error, e, __ATOMIC_RELEASE);
}

void
bb_qp_error_clear(struct bb_qp *qp)
{
	free(__atomic_exchange_n(&qp->ctrl->error, NULL, __ATOMIC_ACQ_REL));
}

static void
add_range(struct bb_text *t, const struct bb_wqe_piece *p, uint64_t start, uint64_t len)
{
	/*
	 * A remote segment has no length field, so only its first address is checked against the
	 * range of the peer's key.
	 */
	if (p->addr < start || p->addr - start > len)
		bb_text_add(t, "; the %s begins outside this memory%s",
			    p->remote ? "remote address" : "SGE",
			    p->remote ? ", so the rkey may belong to another "
					"device"
				      : "");
	else if (p->len > len - (p->addr - start))
		bb_text_add(t, "; the SGE ends %" PRIu64 " bytes past the end of this memory",
			    p->len - (len - (p->addr - start)));
}

static void
add_mr(struct bb_text *t, const struct bb_qp *qp, const struct bb_wqe_piece *p,
       const struct bb_mr_priv *mr)
{
	char access[BB_ACCESS_TEXT_MAX];

	bb_access_text(mr->pub.access, access);
	bb_text_add(t, "%zu bytes at 0x%" PRIx64 ", rights %s", mr->pub.len, mr->pub.iova, access);
	if (mr->pub.pd != qp->ctrl->pd && !p->remote)
		bb_text_add(t, "; its PD is not the PD of the QP");
	add_range(t, p, mr->pub.iova, mr->pub.len);
	if (p->written && (mr->pub.access & BB_ACCESS_LOCAL_WRITE) == 0)
		bb_text_add(t, "; the request writes to it, but LOCAL_WRITE is missing");
}

static const struct bb_mem_reg *
find_in(const struct bb_mem_regs *regs, uint32_t key)
{
	const struct bb_mem_reg *reg;

	TAILQ_FOREACH(reg, regs, link)
		if (reg->drv_mr->lkey == key)
			return reg;
	return NULL;
}

/*
 * Adds a description of the SGE @p to the text if an automatic registration of the QP's PD has the
 * SGE's key. Returns false if none has this key.
 */
static bool
add_auto(struct bb_text *t, const struct bb_qp *qp, const struct bb_wqe_piece *p)
{
	struct bb_mem_table *m = qp->ctrl->pd->mem;
	const struct bb_mem_reg *reg;
	const char *what = "the heap";

	pthread_mutex_lock(&m->lock);
	reg = find_in(&m->heap, p->key);
	if (reg == NULL) {
		what = "a mempool";
		reg = find_in(&m->pools, p->key);
	}
	if (reg == NULL) {
		what = "memory that was freed since";
		reg = find_in(&m->retired, p->key);
	}
	if (reg != NULL) {
		bb_text_add(t, "of %s, %" PRIu64 " bytes at 0x%" PRIx64 ", rights local_write",
			    what, reg->end - reg->start, reg->start);
		add_range(t, p, reg->start, reg->end - reg->start);
	}
	pthread_mutex_unlock(&m->lock);
	return reg != NULL;
}

static void
add_key(struct bb_text *t, const struct bb_qp *qp, const struct bb_wqe_piece *p)
{
	const struct bb_mr_priv *mr = bb_mr_by_key(qp->ctrl->pd->dev, p->key);

	bb_text_add(t, "  %s 0x%x: ", p->remote ? "the peer's rkey" : "lkey", p->key);
	if (mr != NULL && p->remote && mr->pub.rkey != p->key)
		mr = NULL;
	if (mr != NULL) {
		if (p->remote)
			bb_text_add(t, "this device also has an MR with that rkey: ");
		add_mr(t, qp, p, mr);
	} else if (p->remote) {
		bb_text_add(t, "not a key of this device; check the peer's registrations");
	} else if (!add_auto(t, qp, p)) {
		bb_text_add(t, "no registration of this device and PD has this lkey: wrong key, or "
			       "deregistered memory");
	}
	bb_text_add(t, "\n");
}

static void
add_wqe(struct bb_text *t, const struct bb_qp *qp, const struct bb_qp_error *e)
{
	uint32_t i;

	bb_text_add(t, "  the %s: %s\n", e->send ? "request" : "receive", e->wqe);
	for (i = 0; i < e->n; i++)
		add_key(t, qp, &e->pieces[i]);
}

int
bb_qp_error_text(struct bb_qp *qp, char *buf, size_t size)
{
	const struct bb_qp_error *e;
	struct bb_text t;
	struct bb_dev *dev;
	int ret;

	if (qp == NULL || (buf == NULL && size != 0))
		return -EINVAL;
	dev = qp->ctrl->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	t = bb_text_start(buf, size);
	pthread_mutex_lock(&dev->lock);
	e = __atomic_load_n(&qp->ctrl->error, __ATOMIC_ACQUIRE);
	if (e != NULL) {
		bb_text_add(&t, "QP 0x%x: %s (syndrome 0x%02x, vendor syndrome 0x%02x)\n", qp->qpn,
			    bb_wc_status_name(e->wc.status), e->wc.syndrome, e->wc.vendor_err);
		bb_text_add(&t, "  likely cause: %s\n",
			    bb_wc_status_cause(e->wc.status, e->wc.vendor_err));
		add_wqe(&t, qp, e);
	}
	pthread_mutex_unlock(&dev->lock);
	return e != NULL ? (int)t.len : -ENOENT;
}

int
bb_qp_pending_text(struct bb_qp *qp, char *buf, size_t size)
{
	struct bb_qp_error *e;
	struct bb_text t;
	struct bb_dev *dev;
	uint16_t counter;
	uint32_t n;
	int ret;

	if (qp == NULL || (buf == NULL && size != 0))
		return -EINVAL;
	dev = qp->ctrl->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	n = bb_sq_pending(&qp->sq, &counter);
	if (n == 0)
		return -ENOENT;
	e = bb_alloc(dev, "the text of an error", sizeof(*e));
	if (e == NULL)
		return -ENOMEM;
	wqe_take(e, qp, true, counter);
	t = bb_text_start(buf, size);
	pthread_mutex_lock(&dev->lock);
	bb_text_add(&t,
		    "QP 0x%x: %u request%s without a completion; the oldest, wr_id 0x%" PRIx64 ", "
		    "was%s announced to the device by a doorbell\n",
		    qp->qpn, n, BB_PLURAL(n), qp->sq.wqes[counter & qp->sq.mask].wr_id,
		    (int32_t)((uint32_t)qp->sq.rung_seq - (qp->sq.done + 1)) >= 0 ? "" : " not");
	add_wqe(&t, qp, e);
	pthread_mutex_unlock(&dev->lock);
	free(e);
	return (int)t.len;
}
