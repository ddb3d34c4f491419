/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Endpoints and shared receive contexts: open, bind, close. */
#include <stdlib.h>
#include <string.h>

#include "fab.h"

/* Maximum number of polls of flush(). One poll takes up to FAB_POLL completions. */
#define MAX_FLUSH 4096

static int
ep_control(struct fid *fid, int command, void *arg)
{
	struct fab_ep *ep = container_of(fid, struct fab_ep, fid.fid);
	int ret;

	(void)arg;
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	fab_lock(ep->dev);
	ret = fab_ep_enable(ep);
	fab_unlock(ep->dev);
	return ret;
}

static int
cannot_bind(const char *why)
{
	FAB_WARN(EP_CTRL, "fi_ep_bind() failed: %s\n", why);
	return -FI_EINVAL;
}

static int
bind_cq(struct fab_ep *ep, struct fab_cq *cq, uint64_t flags)
{
	if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0) {
		FAB_WARN(EP_CTRL,
			 "flags %#llx do not bind a CQ: use FI_TRANSMIT, FI_RECV, "
			 "FI_SELECTIVE_COMPLETION\n",
			 (unsigned long long)flags);
		return -FI_EBADFLAGS;
	}
	if (((flags & FI_TRANSMIT) != 0 && ep->tx_cq != NULL) ||
	    ((flags & FI_RECV) != 0 && ep->rx_cq != NULL) || cq->domain != ep->domain)
		return cannot_bind(cq->domain != ep->domain
					   ? "the CQ belongs to another domain"
					   : "the endpoint has a CQ for these flags");
	if ((flags & FI_TRANSMIT) != 0) {
		ep->tx_cq = cq;
		ep->tx_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
		cq->refs++;
	}
	if ((flags & FI_RECV) != 0) {
		ep->rx_cq = cq;
		ep->rx_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
		cq->refs++;
	}
	return 0;
}

static int
bind_cntr(struct fab_ep *ep, struct fab_cntr *cntr, uint64_t flags)
{
	static const uint64_t kinds[FAB_COUNTS] = {
		[FAB_COUNT_SEND] = FI_SEND,
		[FAB_COUNT_RECV] = FI_RECV,
		[FAB_COUNT_READ] = FI_READ,
		[FAB_COUNT_WRITE] = FI_WRITE,
	};
	unsigned int i;

	/*
	 * Refuse FI_REMOTE_READ and FI_REMOTE_WRITE: the target's device reports no completion of a
	 * peer's READ or WRITE.
	 */
	if ((flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE)) != 0) {
		FAB_WARN(EP_CTRL,
			 "flags %#llx do not bind a counter: use FI_SEND, FI_RECV, "
			 "FI_READ, FI_WRITE\n",
			 (unsigned long long)flags);
		return -FI_EBADFLAGS;
	}
	for (i = 0; i < FAB_COUNTS; i++)
		if ((flags & kinds[i]) != 0 && ep->cntr[i] != NULL)
			return cannot_bind("the endpoint has a counter for these flags");
	for (i = 0; i < FAB_COUNTS; i++) {
		if ((flags & kinds[i]) == 0)
			continue;
		ep->cntr[i] = cntr;
		cntr->refs++;
	}
	ep->counts = true;
	ep->quiet = BB_SEND_SIGNALED;
	return 0;
}

static int
ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fab_ep *ep = container_of(fid, struct fab_ep, fid.fid);
	struct fab_srx *srx;
	int ret = 0;

	if (ep->qp != NULL)
		return -FI_EOPBADSTATE;
	fab_lock(ep->dev);
	switch (bfid->fclass) {
	case FI_CLASS_EQ:
		if (ep->eq != NULL) {
			ret = cannot_bind("the endpoint has an event queue");
			break;
		}
		ep->eq = container_of(bfid, struct fab_eq, fid.fid);
		ep->eq->refs++;
		break;
	case FI_CLASS_CQ:
		ret = bind_cq(ep, container_of(bfid, struct fab_cq, fid.fid), flags);
		break;
	case FI_CLASS_CNTR:
		ret = bind_cntr(ep, container_of(bfid, struct fab_cntr, fid.fid), flags);
		break;
	case FI_CLASS_SRX_CTX:
		srx = container_of(bfid, struct fab_srx, fid.fid);
		if (ep->srx != NULL || srx->domain != ep->domain) {
			ret = cannot_bind(ep->srx != NULL
						  ? "the endpoint has a shared receive context"
						  : "the shared receive context belongs to another "
						    "domain");
			break;
		}
		ep->srx = srx;
		srx->refs++;
		break;
	default:
		ret = cannot_bind("the object is no EQ, CQ, counter or shared receive context");
	}
	fab_unlock(ep->dev);
	return ret;
}

/*
 * Flushes the requests of an endpoint that is being closed. They complete with FI_ECANCELED, so
 * that the application gets its buffers back. The device flushes a queue pair in ERR during polls,
 * so this function polls the device. A message in a buffer of a shared receive context is no
 * outstanding request of the queue pair. So this function also polls until the CQs are empty.
 */
static void
flush(struct fab_ep *ep)
{
	const struct bb_qp_attr attr = {.size = sizeof(attr), .state = BB_QP_ERR};
	struct bb_qp_stats stats;
	unsigned int i, n;

	if (bb_qp_modify(ep->qp, &attr, BB_QP_STATE) != 0)
		return;
	for (i = 0; i < MAX_FLUSH; i++) {
		n = fab_cq_fill(ep->tx_cq);
		n += fab_cq_fill(ep->rx_cq);
		if (bb_qp_stats(ep->qp, &stats) != 0 ||
		    (n == 0 && stats.outstanding == 0 && stats.recv_outstanding == 0))
			break;
	}
}

static int
ep_close(struct fid *fid)
{
	struct fab_ep *ep = container_of(fid, struct fab_ep, fid.fid);
	struct fab_dev *dev = ep->dev;
	unsigned int i;

	fab_lock(dev);
	if (ep->conn != NULL) {
		if (ep->state == FAB_CONNECTED)
			bb_conn_disconnect(ep->conn, NULL, 0);
		bb_conn_destroy(ep->conn);
		fab_connreq_forget(ep->request);
	}
	if (ep->qp != NULL) {
		flush(ep);
		bb_qp_destroy(ep->qp);
		fab_ep_unreserve(ep);
	}
	if (ep->tx_cq != NULL)
		ep->tx_cq->refs--;
	if (ep->rx_cq != NULL)
		ep->rx_cq->refs--;
	if (ep->srx != NULL)
		ep->srx->refs--;
	for (i = 0; i < FAB_COUNTS; i++)
		if (ep->cntr[i] != NULL)
			ep->cntr[i]->refs--;
	if (ep->eq != NULL) {
		fab_eq_forget(ep->eq, fid);
		ep->eq->refs--;
	}
	LIST_REMOVE(ep, next);
	ep->domain->refs--;
	__atomic_fetch_sub(&dev->active, 1, __ATOMIC_RELAXED);
	fab_unlock(dev);
	fi_freeinfo(ep->info);
	free(ep);
	return 0;
}

static struct fi_ops ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = fab_no_ops_open,
};

static uint32_t
depth_of(size_t wanted)
{
	return wanted == 0 ? FAB_DEPTH : wanted > FAB_MAX_DEPTH ? FAB_MAX_DEPTH : (uint32_t)wanted;
}

int
fab_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **fid, void *context)
{
	struct fab_domain *d = container_of(domain, struct fab_domain, fid);
	struct fab_ep *ep;
	int ret = fab_dev_check(d->dev);

	if (ret != 0)
		return ret;
	if (info->ep_attr != NULL && info->ep_attr->type != FI_EP_MSG) {
		FAB_WARN(EP_CTRL,
			 "endpoint type %d is not supported: use FI_EP_MSG, or provider "
			 "\"bluebell;ofi_rxm\" for FI_EP_RDM\n",
			 info->ep_attr->type);
		return -FI_EINVAL;
	}
	ep = calloc(1, sizeof(*ep));
	if (ep == NULL)
		return -FI_ENOMEM;
	ep->info = fi_dupinfo(info);
	if (ep->info == NULL) {
		free(ep);
		return -FI_ENOMEM;
	}
	ep->domain = d;
	ep->dev = d->dev;
	ep->tx_op_flags = info->tx_attr != NULL ? info->tx_attr->op_flags & FAB_TX_FLAGS : 0;
	ep->rx_op_flags = info->rx_attr != NULL ? info->rx_attr->op_flags : 0;
	ep->tx_size = depth_of(info->tx_attr != NULL ? info->tx_attr->size : 0);
	ep->rx_size = depth_of(info->rx_attr != NULL ? info->rx_attr->size : 0);
	ep->fid.fid = (struct fid){FI_CLASS_EP, context, &ep_fi_ops};
	ep->fid.ops = &fab_opt_ops;
	ep->fid.cm = &fab_ep_cm_ops;
	ep->fid.msg = &fab_msg_ops;
	ep->fid.rma = &fab_rma_ops;
	ep->fid.atomic = &fab_atomic_ops;
	fab_lock(d->dev);
	ret = fab_connreq_take(ep, info->handle);
	if (ret != 0) {
		fab_unlock(d->dev);
		fi_freeinfo(ep->info);
		free(ep);
		return ret;
	}
	LIST_INSERT_HEAD(&d->dev->eps, ep, next);
	d->refs++;
	__atomic_fetch_add(&d->dev->active, 1, __ATOMIC_RELAXED);
	fab_unlock(d->dev);
	*fid = &ep->fid;
	return 0;
}

static int
srx_close(struct fid *fid)
{
	struct fab_srx *s = container_of(fid, struct fab_srx, fid.fid);
	struct fab_dev *dev = s->domain->dev;
	int ret = -FI_EBUSY;

	fab_lock(dev);
	if (s->refs == 0)
		ret = dev->child ? 0 : bb_srq_destroy(s->srq);
	if (ret == 0)
		s->domain->refs--;
	fab_unlock(dev);
	if (ret == 0)
		free(s);
	return ret;
}

/*
 * fi_enable() of a shared receive context does nothing, because a CQ is bound to each endpoint
 * instead.
 */
static int
srx_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops srx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = fab_no_bind,
	.control = srx_control,
	.ops_open = fab_no_ops_open,
};

int
fab_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **fid, void *context)
{
	struct fab_domain *d = container_of(domain, struct fab_domain, fid);
	struct bb_srq_attr srq;
	struct fab_srx *s;
	int ret = fab_dev_check(d->dev);

	if (ret != 0)
		return ret;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -FI_ENOMEM;
	s->domain = d;
	s->depth = depth_of(attr != NULL ? attr->size : 0);
	bb_srq_attr_init(&srq);
	srq.depth = s->depth;
	srq.max_sge = FAB_IOV;
	srq.lcore = d->dev->lcore;
	fab_lock(d->dev);
	ret = bb_srq_create(d->pd, &srq, &s->srq);
	if (ret == 0)
		d->refs++;
	fab_unlock(d->dev);
	if (ret != 0) {
		free(s);
		return ret;
	}
	s->fid.fid = (struct fid){FI_CLASS_SRX_CTX, context, &srx_fi_ops};
	s->fid.ops = &fab_opt_ops;
	s->fid.msg = &fab_srx_msg_ops;
	*fid = &s->fid;
	return 0;
}
