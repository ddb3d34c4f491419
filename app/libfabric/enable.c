/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Makes the queue pair of an endpoint, with room for its completions. */
#include <string.h>

#include "fab.h"

/*
 * Returns the receives of an endpoint that need room in its CQ. A receive of a shared context
 * completes once. The first endpoint that uses a context with a CQ reserves room for all receives
 * of the context, and the last endpoint returns it.
 */
static uint32_t
receives(const struct fab_ep *ep)
{
	const struct fab_ep *other;

	if (ep->srx == NULL)
		return ep->rx_size;
	LIST_FOREACH(other, &ep->dev->eps, next)
		if (other != ep && other->qp != NULL && other->srx == ep->srx &&
		    other->rx_cq == ep->rx_cq)
			return 0;
	return ep->srx->depth;
}

/* Makes room in the CQs for the completions of an endpoint. */
static int
reserve(struct fab_ep *ep)
{
	int ret = fab_cq_reserve(ep->tx_cq, ep->tx_size);

	if (ret != 0)
		return ret;
	ret = fab_cq_reserve(ep->rx_cq, receives(ep));
	if (ret != 0)
		ep->tx_cq->used -= ep->tx_size;
	return ret;
}

void
fab_ep_unreserve(struct fab_ep *ep)
{
	ep->tx_cq->used -= ep->tx_size;
	ep->rx_cq->used -= receives(ep);
}

/* Computes ep->tx and ep->rx, the attributes of requests that use the endpoint's default flags. */
static void
set_own(struct fab_ep *ep)
{
	const bool tx_quiet = ep->tx_selective && (ep->tx_op_flags & FI_COMPLETION) == 0;
	const bool rx_quiet = ep->rx_selective && (ep->rx_op_flags & FI_COMPLETION) == 0;

	/*
	 * Without counters a request that requests no completion keeps its context, because a
	 * failure is still reported with it.
	 */
	ep->tx = (struct fab_own){
		.context = tx_quiet && ep->counts ? 0 : UINT64_MAX,
		.silent = tx_quiet && ep->counts ? FAB_SILENT(ep) : 0,
		.max = (ep->tx_op_flags & FI_INJECT) != 0 ? FAB_INJECT : FAB_MAX_MSG,
		.flags = tx_quiet ? ep->quiet : BB_SEND_SIGNALED,
	};
	ep->rx = (struct fab_own){
		.context = rx_quiet ? 0 : UINT64_MAX,
		.silent = rx_quiet ? FAB_SILENT(ep) : 0,
	};
}

int
fab_ep_enable(struct fab_ep *ep)
{
	struct bb_qp_init_attr attr;
	int ret;

	if (ep->qp != NULL)
		return 0;
	ret = fab_dev_check(ep->dev);
	if (ret != 0)
		return ret;
	if (ep->tx_cq == NULL || ep->rx_cq == NULL) {
		FAB_WARN(EP_CTRL, "an endpoint needs a CQ for FI_TRANSMIT and one for FI_RECV\n");
		return -FI_ENOCQ;
	}
	ret = reserve(ep);
	if (ret != 0)
		return ret;
	bb_qp_init_attr_init(&attr);
	attr.type = BB_QPT_RC;
	attr.send_cq = ep->tx_cq->cq;
	attr.recv_cq = ep->rx_cq->cq;
	attr.sq_depth = ep->tx_size;
	attr.rq_depth = ep->rx_size;
	attr.max_sge = FAB_IOV;
	attr.max_recv_sge = FAB_IOV;
	attr.max_inline = FAB_INJECT;
	attr.srq = ep->srx != NULL ? ep->srx->srq : NULL;
	ret = bb_qp_create(ep->domain->pd, &attr, &ep->qp);
	if (ret != 0) {
		FAB_WARN(EP_CTRL,
			 "a queue pair of %u sends and %u receives cannot be created: %s\n",
			 attr.sq_depth, attr.rq_depth, strerror(-ret));
		fab_ep_unreserve(ep);
		return ret;
	}
	ep->qp->user = ep;
	set_own(ep);
	return 0;
}
